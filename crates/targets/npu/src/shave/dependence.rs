//! Which elements of the outputs of an invocation depend on elements of its inputs that are in doubt.
//!
//! Most operations work element by element, or on each line along some dims by itself. Of the others every output
//! depends on every input.

use super::elementwise;
use super::invocation::{Invocation, TensorRef};
use super::operation::Operation;
use super::parameters::Parameters;
use super::tensor::Shape;
use std::ops::Range;

/// Elements of one tensor that are told apart. Tensors of a tile have fewer.
const MOST: u64 = 1 << 22;

/// Calls with runs of a tensor's elements, in order.
pub(super) type Runs<'r> = &'r dyn Fn(&TensorRef, &mut dyn FnMut(Range<u64>));

/// By output, the elements that depend on doubtful elements of the inputs, which `doubtful` tells. `None` where it is not known: all
/// of them may.
pub fn dependent_elements(
    invocation: &Invocation,
    doubtful: Runs<'_>,
) -> Option<Vec<Vec<Range<u64>>>> {
    let mixed = mixed_dims(invocation)?;
    let unused = unused(invocation);
    let inputs = invocation.inputs.iter().map(|input| {
        let mut runs = Vec::new();
        doubtful(input, &mut |run| runs.push(run));
        (&input.shape, runs)
    });
    let inputs: Vec<(&Shape, Vec<Range<u64>>)> = inputs.collect();
    let of_output = |output: &TensorRef| {
        let output = &output.shape;
        if output.elements() > MOST {
            return None;
        }
        let mut dependent = vec![false; output.elements() as usize];
        for (input, runs) in &inputs {
            let mut shared = Shared::new(input, output, &mixed)?;
            if shared.mark(input, runs, unused) {
                shared.spread(output, &mut dependent);
            }
        }
        let mut found = Vec::new();
        if dependent.contains(&true) {
            let all = 0..output.elements();
            lines(output, &all, unused, |_, line| {
                runs_of(&dependent[line.start as usize..line.end as usize], |run| {
                    found.push(line.start + run.start as u64..line.start + run.end as u64);
                });
            });
        }
        Some(found)
    };
    invocation.outputs.iter().map(of_output).collect()
}

/// The dims that an input and an output have in common, so that an element of one counts for the elements of the other at the same
/// place there; it counts for all places of the other dims.
struct Shared {
    /// By dim, from one index to the next; 0 where the dim is not shared.
    strides: Vec<usize>,
    /// By place, whether it is marked.
    marks: Vec<bool>,
}

impl Shared {
    /// `None` where the shapes do not go together.
    fn new(input: &Shape, output: &Shape, mixed: &[usize]) -> Option<Shared> {
        let steps = steps(input, output, mixed)?;
        let mut count = 1;
        let stride = |(step, size): (bool, &u32)| {
            let own = if step { 0 } else { count };
            count *= if step { 1 } else { *size as usize };
            own
        };
        let strides = steps.into_iter().zip(&output.dims).map(stride).collect();
        let marks = vec![false; count];
        Some(Shared { strides, marks })
    }

    /// The place of the first element of a line.
    fn place(&self, shape: &Shape, mut line: u64) -> usize {
        let mut place = 0;
        for (dim, stride) in shape.dims.iter().zip(&self.strides).skip(1) {
            let size = u64::from(*dim).max(1);
            place += (line % size) as usize * stride;
            line /= size;
        }
        place
    }

    /// Marks the places of elements; whether there are any.
    fn mark(&mut self, input: &Shape, runs: &[Range<u64>], unused: Option<(usize, u64)>) -> bool {
        let mut is_marked = false;
        for run in runs {
            lines(input, run, unused, |number, elements| {
                is_marked = true;
                let place = self.place(input, number);
                let (first, size) = (number * innermost(input), elements.end - elements.start);
                if self.strides.first().is_none_or(|stride| *stride == 0) {
                    self.marks[place] = true;
                } else {
                    let first = place + (elements.start - first) as usize;
                    self.marks[first..first + size as usize].fill(true);
                }
            });
        }
        is_marked
    }

    /// Sets the elements of an output whose places are marked.
    fn spread(&self, output: &Shape, dependent: &mut [bool]) {
        let size = innermost(output) as usize;
        for (number, line) in dependent.chunks_mut(size).enumerate() {
            let place = self.place(output, number as u64);
            if self.strides.first().is_none_or(|stride| *stride == 0) {
                if self.marks[place] {
                    line.fill(true);
                }
            } else {
                let marks = &self.marks[place..place + line.len()];
                line.iter_mut().zip(marks).for_each(|(d, mark)| *d |= mark);
            }
        }
    }
}

/// Elements of a line, along the innermost dim.
fn innermost(shape: &Shape) -> u64 {
    u64::from(shape.dims.first().copied().unwrap_or(1)).max(1)
}

/// Calls with the number of each line that a run of elements touches, and with its elements there, but for those of the dim of which
/// the elements from one on take no part.
fn lines(
    shape: &Shape,
    run: &Range<u64>,
    unused: Option<(usize, u64)>,
    mut visit: impl FnMut(u64, Range<u64>),
) {
    let size = innermost(shape);
    let Range { mut start, end } = run.start..run.end.min(shape.elements());
    while start < end {
        let line = start / size;
        let next = (line + 1) * size;
        let mut elements = start..end.min(next);
        if let Some((axis, from)) = unused {
            if axis == 0 {
                elements.end = elements.end.min(line * size + from);
            } else if place(shape, start, axis) >= from {
                elements.end = elements.start;
            }
        }
        if elements.start < elements.end {
            visit(line, elements);
        }
        start = next;
    }
}

/// Calls with the runs of what is true.
fn runs_of(flags: &[bool], mut visit: impl FnMut(Range<usize>)) {
    let mut start = 0;
    for alike in flags.chunk_by(|one, other| one == other) {
        let end = start + alike.len();
        if alike[0] {
            visit(start..end);
        }
        start = end;
    }
}

/// Memory dims along which elements of one line depend on each other; `None` where all depend on all.
fn mixed_dims(invocation: &Invocation) -> Option<Vec<usize>> {
    let operation = invocation.operation;
    let shape = &invocation.inputs.first()?.shape;
    Some(match &invocation.parameters {
        Parameters::Activation(_) | Parameters::Dequantize(_) => Vec::new(),
        Parameters::Softmax(softmax) => vec![softmax.axis],
        Parameters::Reduce(reduce) => reduce.axes.clone(),
        Parameters::CumulativeSum(sum) => vec![sum.axis],
        Parameters::TopK(top_k) => vec![top_k.axis],
        Parameters::Lrn(lrn) => lrn.axes.clone(),
        Parameters::RmsNorm(_) => vec![0],
        Parameters::Mvn6(mvn) => mvn.axes.clone(),
        Parameters::Mvn1(mvn) => {
            let first = if mvn.across_channels { 1 } else { 2 };
            (first..shape.dims.len())
                .map(|logical| shape.memory_axis(logical))
                .collect::<Option<_>>()?
        }
        Parameters::NormalizeL2(normalize) => normalize
            .logical_axes
            .iter()
            .map(|logical| shape.memory_axis(*logical))
            .collect::<Option<_>>()?,
        Parameters::None
            if matches!(
                operation,
                Operation::Convert | Operation::DynamicExpand | Operation::Select
            ) || elementwise::covers(operation) =>
        {
            Vec::new()
        }
        _ => return None,
    })
}

/// A dim of which the elements from one on take no part.
fn unused(invocation: &Invocation) -> Option<(usize, u64)> {
    let Parameters::Softmax(softmax) = &invocation.parameters else {
        return None;
    };
    let size = invocation.inputs.first()?.shape.dims.get(softmax.axis)?;
    Some((softmax.axis, u64::from(*size) - softmax.pad as u64))
}

/// The index along a dim of the element of this number.
fn place(shape: &Shape, number: u64, axis: usize) -> u64 {
    let inner: u64 = shape
        .dims
        .iter()
        .take(axis)
        .map(|dim| u64::from(*dim))
        .product();
    number / inner.max(1) % u64::from(shape.dims.get(axis).copied().unwrap_or(1).max(1))
}

/// By dim of the output, whether an element of the input counts for all of its places there, not only for its own.
fn steps(input: &Shape, output: &Shape, mixed: &[usize]) -> Option<Vec<bool>> {
    if input.dims.len() > output.dims.len() {
        return None;
    }
    (0..output.dims.len())
        .map(|dim| {
            let (from, to) = (input.dims.get(dim).copied().unwrap_or(1), output.dims[dim]);
            if mixed.contains(&dim) || from == 1 {
                Some(true)
            } else {
                (from == to).then_some(false)
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::ElementType;

    fn shape(dims: &[u32]) -> Shape {
        Shape {
            element: ElementType::Float16,
            dims: dims.to_vec(),
            order: 0x4321,
        }
    }

    #[test]
    fn an_element_counts_for_its_line_and_where_it_is_repeated() {
        let (input, output) = (shape(&[3, 1, 2]), shape(&[3, 4, 2]));
        let marked = |mixed: &[usize], number: u64| {
            let mut shared = Shared::new(&input, &output, mixed).expect("the dims agree");
            assert!(shared.mark(&input, std::slice::from_ref(&(number..number + 1)), None));
            let mut found = vec![false; 24];
            shared.spread(&output, &mut found);
            let numbers = found.iter().enumerate().filter(|(_, hit)| **hit);
            numbers.map(|(number, _)| number).collect::<Vec<_>>()
        };
        assert_eq!(marked(&[], 4), [13, 16, 19, 22]);
        assert_eq!(marked(&[0], 4), (12..24).collect::<Vec<_>>());
        assert_eq!(steps(&shape(&[2]), &shape(&[3]), &[]), None);
    }
}
