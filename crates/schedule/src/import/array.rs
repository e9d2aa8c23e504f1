//! Constants of a network, and what is computed of them while it is read.

pub(super) use crate::onnx::axis_of;
use std::rc::Rc;

/// ONNX's numbers of element types.
pub(super) mod types {
    pub(crate) const FLOAT: i32 = 1;
    pub(crate) const UINT8: i32 = 2;
    pub(crate) const INT8: i32 = 3;
    pub(crate) const INT32: i32 = 6;
    pub(crate) const INT64: i32 = 7;
    pub(crate) const BOOL: i32 = 9;
    pub(crate) const FLOAT16: i32 = 10;
    pub(crate) const DOUBLE: i32 = 11;

    /// Whether numbers of a type are whole.
    pub(crate) const fn is_integer(kind: i32) -> bool {
        matches!(kind, 2..=7 | 12 | 13)
    }
}

/// Elements that are made here of fewer, at most.
const MOST: usize = 1 << 26;

/// A constant: numbers in row-major order.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) shape: Vec<i64>,
    /// ONNX's number of the element type.
    pub(super) kind: i32,
    pub(super) values: Rc<Vec<f64>>,
}

/// Elements of a shape.
pub(super) fn elements(shape: &[i64]) -> i64 {
    shape
        .iter()
        .fold(1, |all: i64, extent| all.saturating_mul(*extent))
}

/// Row-major strides.
pub(super) fn strides(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1_i64; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d].saturating_mul(shape[d]);
    }
    strides
}

/// The shape to which two are broadcast.
pub(super) fn broadcast(a: &[i64], b: &[i64]) -> Result<Vec<i64>, String> {
    let rank = a.len().max(b.len());
    let at = |shape: &[i64], d: usize| {
        let missing = rank - shape.len();
        if d < missing { 1 } else { shape[d - missing] }
    };
    (0..rank)
        .map(|d| match (at(a, d), at(b, d)) {
            (x, y) if x == y => Ok(x),
            (1, y) => Ok(y),
            (x, 1) => Ok(x),
            _ => Err(format!("the shapes {a:?} and {b:?} do not go together")),
        })
        .collect()
}

impl Array {
    pub(super) fn new(shape: Vec<i64>, kind: i32, values: Vec<f64>) -> Array {
        Array {
            shape,
            kind,
            values: Rc::new(values),
        }
    }

    pub(super) fn scalar(kind: i32, value: f64) -> Array {
        Array::new(Vec::new(), kind, vec![value])
    }

    /// Whole numbers, of shapes and axes.
    pub(super) fn list(values: &[i64]) -> Array {
        let numbers = values.iter().map(|v| *v as f64).collect();
        Array::new(vec![values.len() as i64], types::INT64, numbers)
    }

    pub(super) fn whole(&self) -> Vec<i64> {
        self.values.iter().map(|v| *v as i64).collect()
    }

    /// The only number.
    pub(super) fn single(&self) -> Option<f64> {
        match self.values[..] {
            [value] => Some(value),
            _ => None,
        }
    }

    /// Elements as a view names them: extents, strides and the first place.
    pub(super) fn viewed(&self, dims: &[(i64, i64)], offset: i64) -> Result<Array, String> {
        let shape: Vec<i64> = dims.iter().map(|(extent, _)| *extent).collect();
        let count = usize::try_from(elements(&shape)).unwrap_or(0);
        if count > MOST.max(self.values.len()) {
            return Err(format!("a constant of the shape {shape:?}"));
        }
        let mut values = Vec::with_capacity(count);
        let mut place = vec![0; dims.len()];
        let mut at = offset;
        for _ in 0..count {
            let value = usize::try_from(at).ok().and_then(|at| self.values.get(at));
            values.push(*value.ok_or("a view reaches outside of its constant")?);
            for (d, (extent, stride)) in dims.iter().enumerate().rev() {
                place[d] += 1;
                at += stride;
                if place[d] < *extent {
                    break;
                }
                at -= stride * extent;
                place[d] = 0;
            }
        }
        Ok(Array::new(shape, self.kind, values))
    }

    /// Extents and strides.
    pub(super) fn dims(&self) -> Vec<(i64, i64)> {
        let strides = strides(&self.shape);
        self.shape.iter().copied().zip(strides).collect()
    }

    /// Repeated to a shape.
    pub(super) fn broadcast_to(&self, shape: &[i64]) -> Result<Array, String> {
        if self.shape == shape {
            return Ok(self.clone());
        }
        let missing = shape.len() - self.shape.len().min(shape.len());
        let own = self.dims();
        let dims: Vec<(i64, i64)> = (0..shape.len())
            .map(|d| match d.checked_sub(missing).map(|d| own[d]) {
                Some((extent, stride)) if extent == shape[d] => (extent, stride),
                _ => (shape[d], 0),
            })
            .collect();
        self.viewed(&dims, 0)
    }

    pub(super) fn reshaped(&self, shape: Vec<i64>) -> Array {
        Array {
            shape,
            ..self.clone()
        }
    }

    /// A function of each element.
    pub(super) fn map(&self, kind: i32, function: impl Fn(f64) -> f64) -> Array {
        let values = self.values.iter().map(|v| function(*v)).collect();
        Array::new(self.shape.clone(), kind, values)
    }

    /// A function of the elements of two at the same place.
    pub(super) fn with(
        &self,
        other: &Array,
        kind: i32,
        function: impl Fn(f64, f64) -> f64,
    ) -> Result<Array, String> {
        let shape = broadcast(&self.shape, &other.shape)?;
        let (a, b) = (self.broadcast_to(&shape)?, other.broadcast_to(&shape)?);
        let both = a.values.iter().zip(b.values.iter());
        let values = both.map(|(a, b)| function(*a, *b)).collect();
        Ok(Array::new(shape, kind, values))
    }

    /// These places along an axis.
    pub(super) fn taken(&self, axis: usize, places: &[i64]) -> Result<Array, String> {
        let extent = self.shape[axis];
        let inner = elements(&self.shape[axis + 1..]) as usize;
        let outer = elements(&self.shape[..axis]) as usize;
        let mut values = Vec::with_capacity(outer * places.len() * inner);
        for o in 0..outer {
            for place in places {
                if !(0..extent).contains(place) {
                    return Err(format!("an index of {place} into {extent} elements"));
                }
                let start = (o * extent as usize + *place as usize) * inner;
                values.extend_from_slice(&self.values[start..start + inner]);
            }
        }
        let mut shape = self.shape.clone();
        shape[axis] = places.len() as i64;
        Ok(Array::new(shape, self.kind, values))
    }

    /// Arrays one after another along an axis.
    pub(super) fn joined(parts: &[Array], axis: usize) -> Result<Array, String> {
        let first = parts.first().ok_or("nothing is joined")?;
        let mut shape = first.shape.clone();
        shape[axis] = parts.iter().map(|part| part.shape[axis]).sum();
        let outer = elements(&shape[..axis]) as usize;
        let mut values = Vec::with_capacity(elements(&shape) as usize);
        for o in 0..outer {
            for part in parts {
                let run = elements(&part.shape[axis..]) as usize;
                values.extend_from_slice(&part.values[o * run..(o + 1) * run]);
            }
        }
        Ok(Array::new(shape, first.kind, values))
    }

    /// What the elements along some axes become; the axes keep one element.
    pub(super) fn reduced(
        &self,
        axes: &[usize],
        function: impl Fn(&[f64]) -> f64,
    ) -> Result<Array, String> {
        let kept: Vec<usize> = (0..self.shape.len())
            .filter(|d| !axes.contains(d))
            .collect();
        let order: Vec<usize> = kept.iter().chain(axes).copied().collect();
        let dims = self.dims();
        let turned: Vec<(i64, i64)> = order.iter().map(|d| dims[*d]).collect();
        let all = self.viewed(&turned, 0)?;
        let run = axes.iter().map(|d| self.shape[*d]).product::<i64>() as usize;
        let values = if run == 0 {
            vec![
                function(&[]);
                elements(&kept.iter().map(|d| self.shape[*d]).collect::<Vec<_>>()) as usize
            ]
        } else {
            all.values.chunks(run).map(function).collect()
        };
        let mut shape = self.shape.clone();
        for d in axes {
            shape[*d] = 1;
        }
        Ok(Array::new(shape, self.kind, values))
    }

    /// The product of matrices, as `numpy` has it; both have two axes or more.
    pub(super) fn product(&self, other: &Array) -> Result<Array, String> {
        let (ra, rb) = (self.shape.len(), other.shape.len());
        let (m, k, n) = (self.shape[ra - 2], self.shape[ra - 1], other.shape[rb - 1]);
        let batch = broadcast(&self.shape[..ra - 2], &other.shape[..rb - 2])?;
        let a = self.broadcast_to(&[&batch[..], &[m, k]].concat())?;
        let b = other.broadcast_to(&[&batch[..], &[k, n]].concat())?;
        let (m, k, n) = (m as usize, k as usize, n as usize);
        let mut values = Vec::with_capacity(elements(&batch) as usize * m * n);
        for of in 0..elements(&batch) as usize {
            let (a, b) = (&a.values[of * m * k..], &b.values[of * k * n..]);
            for row in 0..m {
                for column in 0..n {
                    values.push((0..k).map(|i| a[row * k + i] * b[i * n + column]).sum());
                }
            }
        }
        Ok(Array::new(
            [&batch[..], &[m as i64, n as i64]].concat(),
            self.kind,
            values,
        ))
    }
}
