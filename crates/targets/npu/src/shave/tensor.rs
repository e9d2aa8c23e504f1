//! Tensors by value, and walks over their elements.

use super::operation::Operation;
use chipless_model::{ElementType, Fault, Kind};
use std::fmt;

/// Element type, sizes and dim order of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Type of one element.
    pub element: ElementType,
    /// Sizes in memory order, innermost first.
    pub dims: Vec<u32>,
    /// Which logical dim each memory dim is: four bits per dim, the lowest for the outermost one, value = logical dim + 1.
    /// 0x4321 is NCHW, 0x2431 is NHWC.
    pub order: u64,
}

impl Shape {
    /// Number of elements; saturates beyond 2^64.
    pub fn elements(&self) -> u64 {
        self.dims.iter().fold(1, |product: u64, dim| {
            product.saturating_mul(u64::from(*dim))
        })
    }

    /// The number of the element at these coordinates, innermost first.
    pub(super) fn number_at(&self, coordinates: impl Iterator<Item = usize>) -> usize {
        let (mut number, mut stride) = (0, 1);
        for (coordinate, size) in coordinates.zip(&self.dims) {
            number += coordinate * stride;
            stride *= *size as usize;
        }
        number
    }

    /// The memory dim, innermost 0, that holds a logical dim, outermost 0; `None` where the order has no such dim.
    pub fn memory_axis(&self, logical: usize) -> Option<usize> {
        let rank = self.dims.len();
        (0..rank.min(16))
            .find(|place| self.order >> (4 * place) & 15 == logical as u64 + 1)
            .map(|place| rank - 1 - place)
    }

    /// Sizes around a memory dim: elements inside it, its own size, elements outside it.
    /// Element `i` of the dim in inner place `n` and outer place `o` is number `(o · size + i) · inner + n`.
    pub(super) fn around(&self, axis: usize) -> Option<Around> {
        let product = |dims: &[u32]| dims.iter().map(|dim| *dim as usize).product();
        let size = *self.dims.get(axis)? as usize;
        Some(Around {
            inner: product(self.dims.get(..axis)?),
            size,
            outer: product(self.dims.get(axis + 1..)?),
        })
    }

    /// The same shape with every dim of `axes` set to one.
    pub(super) fn reduced(&self, axes: &[usize]) -> Vec<u32> {
        self.dims
            .iter()
            .enumerate()
            .map(|(axis, dim)| if axes.contains(&axis) { 1 } else { *dim })
            .collect()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.element, self.dims)
    }
}

/// See [`Shape::around`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    pub(super) inner: usize,
    pub(super) size: usize,
    pub(super) outer: usize,
}

impl Around {
    /// Calls `visit` with the number of the first element of every line along the dim.
    pub(super) fn lines(self, mut visit: impl FnMut(usize)) {
        for outer in 0..self.outer {
            for inner in 0..self.inner {
                visit(outer * self.size * self.inner + inner);
            }
        }
    }
}

/// Element values in memory order, innermost dim fastest.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Of every floating-point type. An output is not yet rounded to its element type.
    Float(Vec<f32>),
    /// Of every integer type; u64 beyond 2^63 wraps. An output is within the range of its element type.
    Integer(Vec<i64>),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Float(values) => values.len(),
            Values::Integer(values) => values.len(),
        }
    }

    /// Whether an element is zero.
    pub(crate) fn is_zero(&self, number: usize) -> bool {
        match self {
            Values::Float(values) => values.get(number).is_some_and(|value| *value == 0.0),
            Values::Integer(values) => values.get(number).is_some_and(|value| *value == 0),
        }
    }
}

/// A tensor by value.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Element type, sizes and order.
    pub shape: Shape,
    /// Its elements.
    pub values: Values,
}

impl Tensor {
    /// A tensor, after a check that the values are as many as the shape says and of its kind.
    pub fn new(shape: Shape, values: Values) -> Result<Tensor, Fault> {
        Tensor::check(&shape, &values)?;
        Ok(Tensor { shape, values })
    }

    /// A tensor of zeros.
    pub fn zeros(shape: &Shape) -> Result<Tensor, Fault> {
        let count = shape.elements() as usize;
        let values = match shape.element.kind() {
            Kind::Float => Values::Float(vec![0.0; count]),
            _ => Values::Integer(vec![0; count]),
        };
        Tensor::new(shape.clone(), values)
    }

    pub(super) fn check(shape: &Shape, values: &Values) -> Result<(), Fault> {
        if shape.dims.contains(&0) || shape.elements() != values.len() as u64 {
            return Err(Fault::program(format!(
                "{} values for a tensor {shape}",
                values.len()
            )));
        }
        if (shape.element.kind() == Kind::Float) != matches!(values, Values::Float(_)) {
            return Err(Fault::program(format!(
                "values of the wrong kind for a tensor {shape}"
            )));
        }
        Ok(())
    }
}

/// What an operation works on: the input tensors and the shapes of the outputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) operation: Operation,
    pub(super) inputs: &'a [Tensor],
    pub(super) outputs: &'a [&'a Shape],
}

impl<'a> Call<'a> {
    /// A fault of the program in this operation.
    pub(super) fn fault(&self, message: impl fmt::Display) -> Fault {
        Fault::program(format!("{}: {message}", self.operation))
    }

    /// Something that this operation could do and Chipless does not.
    pub(super) fn unsupported(&self, message: impl fmt::Display) -> Fault {
        Fault::unsupported(format!("{}: {message}", self.operation))
    }

    pub(super) fn input(&self, index: usize) -> Result<&'a Tensor, Fault> {
        self.inputs
            .get(index)
            .ok_or_else(|| self.fault(format_args!("no input {index}")))
    }

    pub(super) fn output(&self, index: usize) -> Result<&'a Shape, Fault> {
        self.outputs
            .get(index)
            .copied()
            .ok_or_else(|| self.fault(format_args!("no output {index}")))
    }

    /// The elements of an input that has to be of a floating-point type.
    pub(super) fn floats(&self, index: usize) -> Result<&'a [f32], Fault> {
        let input = self.input(index)?;
        match &input.values {
            Values::Float(values) => Ok(values),
            Values::Integer(_) => Err(self.fault(format_args!(
                "input {index}: expected floating point, found {}",
                input.shape
            ))),
        }
    }

    /// The elements of an input that has to be of an integer type.
    pub(super) fn integers(&self, index: usize) -> Result<&'a [i64], Fault> {
        let input = self.input(index)?;
        match &input.values {
            Values::Integer(values) => Ok(values),
            Values::Float(_) => Err(self.fault(format_args!(
                "input {index}: expected integers, found {}",
                input.shape
            ))),
        }
    }

    /// Sizes around a memory dim of a shape.
    pub(super) fn around(&self, shape: &Shape, axis: usize) -> Result<Around, Fault> {
        shape
            .around(axis)
            .ok_or_else(|| self.fault(format_args!("axis {axis} is not below the rank of {shape}")))
    }

    /// The memory dim of a logical one.
    pub(super) fn memory_axis(&self, shape: &Shape, logical: usize) -> Result<usize, Fault> {
        shape.memory_axis(logical).ok_or_else(|| {
            self.fault(format_args!(
                "{shape} in order {:#x} has no logical dim {logical}",
                shape.order
            ))
        })
    }

    /// A fault unless a tensor has as many elements as needed.
    pub(super) fn expect_elements(
        &self,
        name: &str,
        shape: &Shape,
        expected: usize,
    ) -> Result<(), Fault> {
        if shape.elements() == expected as u64 {
            return Ok(());
        }
        Err(self.fault(format_args!(
            "{name}: expected {expected} elements, found {shape}"
        )))
    }

    /// A fault unless every dim of an input is the output's or one.
    pub(super) fn broadcast<const N: usize>(
        &self,
        output: &[u32],
        inputs: [usize; N],
    ) -> Result<Broadcast<N>, Fault> {
        let mut dims: [&[u32]; N] = [&[]; N];
        for (dims, index) in dims.iter_mut().zip(inputs) {
            *dims = &self.input(index)?.shape.dims;
        }
        Broadcast::new(output, dims).map_err(|at| {
            self.fault(format_args!(
                "dims {:?} do not repeat to the output's {output:?}",
                dims[at]
            ))
        })
    }
}

/// A walk over the elements of an output together with the elements of `N` inputs that belong to each; dims of one
/// are repeated. A reduction is the same walk: over the full tensor, with its output in the place of an input.
#[derive(Clone, Debug)]
pub(super) struct Broadcast<const N: usize> {
    /// Sizes and element strides, innermost first, dims that all inputs pass alike folded.
    loops: Vec<(usize, [usize; N])>,
}

impl<const N: usize> Broadcast<N> {
    /// The walk over `output`, or the number of the input whose dims do not fit.
    pub(super) fn new(output: &[u32], inputs: [&[u32]; N]) -> Result<Broadcast<N>, usize> {
        let mut loops: Vec<(usize, [usize; N])> = Vec::with_capacity(output.len());
        let mut extents = [1usize; N];
        for (at, dims) in inputs.iter().enumerate() {
            let fits = |(axis, dim): (usize, &u32)| *dim == 1 || output.get(axis) == Some(dim);
            if !dims.iter().enumerate().all(fits) {
                return Err(at);
            }
        }
        for (axis, size) in output.iter().enumerate() {
            let mut strides = [0; N];
            for ((stride, extent), dims) in strides.iter_mut().zip(&mut extents).zip(inputs) {
                let dim = dims.get(axis).copied().unwrap_or(1) as usize;
                if dim != 1 {
                    *stride = *extent;
                    *extent *= dim;
                }
            }
            let size = *size as usize;
            match loops.last_mut() {
                _ if size == 1 => {}
                Some((inner, steps))
                    if strides
                        .iter()
                        .zip(steps.iter())
                        .all(|(stride, step)| *stride == *step * *inner) =>
                {
                    *inner *= size;
                }
                _ => loops.push((size, strides)),
            }
        }
        Ok(Broadcast { loops })
    }

    /// Elements of the output.
    pub(super) fn count(&self) -> usize {
        self.loops.iter().map(|(size, _)| size).product()
    }

    /// Size and strides of the loops, innermost first.
    pub(super) fn loops(&self) -> &[(usize, [usize; N])] {
        &self.loops
    }

    /// Calls `visit` for every element of the output in order, with the element number of each input.
    pub(super) fn for_each(&self, mut visit: impl FnMut([usize; N])) {
        self.each_line(|size, start, strides| {
            let mut at = start;
            for _ in 0..size {
                visit(at);
                for (at, stride) in at.iter_mut().zip(strides) {
                    *at += stride;
                }
            }
        });
    }

    /// Calls `visit` for every line of elements of the output in order, with its size, the element number of each input at its start
    /// and the elements from one to the next.
    pub(super) fn each_line(&self, mut visit: impl FnMut(usize, [usize; N], [usize; N])) {
        let Some(((size, strides), outer)) = self.loops.split_first() else {
            return visit(1, [0; N], [0; N]);
        };
        let mut index = vec![0; outer.len()];
        let mut start = [0; N];
        loop {
            visit(*size, start, *strides);
            let next = index
                .iter_mut()
                .zip(outer)
                .find_map(|(index, (size, strides))| {
                    let wraps = *index + 1 == *size;
                    for (start, stride) in start.iter_mut().zip(strides) {
                        *start = if wraps {
                            *start - stride * *index
                        } else {
                            *start + stride
                        };
                    }
                    *index = if wraps { 0 } else { *index + 1 };
                    (!wraps).then_some(())
                });
            if next.is_none() {
                return;
            }
        }
    }
}
