//! What a tensor of the network is while it is read: a constant, or a view of what a layer makes.

use super::array::{Array, elements, strides};
use crate::front::Source;

/// A tensor.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// Its numbers are known.
    Array(Array),
    /// A layer makes it, or it is given to the network.
    Tensor(Tensor),
}

/// Elements of what a layer makes: from the first on, so many along each dimension, so far apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tensor {
    pub(super) source: Source,
    /// The place of the first element in the order of channels, rows and columns.
    pub(super) offset: i64,
    /// Extent and stride of each dimension.
    pub(super) dims: Vec<(i64, i64)>,
    /// ONNX's number of the element type.
    pub(super) kind: i32,
}

/// Which dimensions make channels, rows and columns, outermost first.
pub(super) type Groups = [Vec<usize>; 3];

impl Value {
    pub(super) fn shape(&self) -> Vec<i64> {
        match self {
            Value::Array(array) => array.shape.clone(),
            Value::Tensor(tensor) => tensor.shape(),
        }
    }

    pub(super) fn kind(&self) -> i32 {
        match self {
            Value::Array(array) => array.kind,
            Value::Tensor(tensor) => tensor.kind,
        }
    }

    /// The same elements, seen in another way: dimensions made by a function of extents and strides, and how far the first moves.
    pub(super) fn viewed(
        &self,
        view: impl FnOnce(&[(i64, i64)]) -> (Vec<(i64, i64)>, i64),
    ) -> Result<Value, String> {
        Ok(match self {
            Value::Array(array) => {
                let (dims, offset) = view(&array.dims());
                Value::Array(array.viewed(&dims, offset)?)
            }
            Value::Tensor(tensor) => {
                let (dims, offset) = view(&tensor.dims);
                Value::Tensor(Tensor {
                    dims,
                    offset: tensor.offset + offset,
                    ..tensor.clone()
                })
            }
        })
    }

    /// Refuses a dimension that is not there, as of a matrix that is none.
    fn has(&self, axis: usize) -> Result<(), String> {
        let rank = self.shape().len();
        if axis < rank {
            return Ok(());
        }
        Err(format!(
            "expected an array of at least {} dimensions, found one of {rank}",
            axis + 1
        ))
    }

    /// Dimensions in another order.
    pub(super) fn transposed(&self, order: &[usize]) -> Result<Value, String> {
        order.iter().try_for_each(|axis| self.has(*axis))?;
        self.viewed(|dims| (order.iter().map(|d| dims[*d]).collect(), 0))
    }

    /// A dimension of one element more.
    pub(super) fn unsqueezed(&self, axis: usize) -> Result<Value, String> {
        axis.checked_sub(1)
            .map_or(Ok(()), |before| self.has(before))?;
        self.viewed(|dims| {
            let mut dims = dims.to_vec();
            dims.insert(axis, (1, 0));
            (dims, 0)
        })
    }

    /// Without a dimension of one element.
    pub(super) fn squeezed(&self, axis: usize) -> Result<Value, String> {
        self.has(axis)?;
        self.viewed(|dims| {
            let mut dims = dims.to_vec();
            dims.remove(axis);
            (dims, 0)
        })
    }

    /// So many elements along a dimension from one on, every so many.
    pub(super) fn sliced(
        &self,
        axis: usize,
        start: i64,
        count: i64,
        step: i64,
    ) -> Result<Value, String> {
        self.has(axis)?;
        self.viewed(|dims| {
            let mut dims = dims.to_vec();
            let (_, stride) = dims[axis];
            dims[axis] = (count, stride * step);
            (dims, start * stride)
        })
    }

    /// One element of a dimension, without the dimension.
    pub(super) fn at(&self, axis: usize, index: i64) -> Result<Value, String> {
        self.sliced(axis, index, 1, 1)?.squeezed(axis)
    }

    /// Repeated to a shape.
    pub(super) fn broadcast_to(&self, shape: &[i64]) -> Result<Value, String> {
        let own = self.shape();
        if own == shape {
            return Ok(self.clone());
        }
        let fits = own.len() <= shape.len()
            && own
                .iter()
                .rev()
                .zip(shape.iter().rev())
                .all(|(has, of)| *has == 1 || has == of);
        if !fits {
            return Err(format!("{own:?} cannot be repeated to {shape:?}"));
        }
        let missing = shape.len() - own.len();
        self.viewed(|dims| {
            let of = |d: usize| match d.checked_sub(missing).map(|d| dims[d]) {
                Some((extent, stride)) if extent == shape[d] => (extent, stride),
                _ => (shape[d], 0),
            };
            ((0..shape.len()).map(of).collect(), 0)
        })
    }
}

impl Tensor {
    /// What a source makes, as this shape: all of it, row by row.
    pub(super) fn whole(source: Source, shape: &[i64], kind: i32) -> Tensor {
        let strides = strides(shape);
        Tensor {
            source,
            offset: 0,
            dims: shape.iter().copied().zip(strides).collect(),
            kind,
        }
    }

    /// What a source makes whose channels, rows and columns are these dimensions.
    pub(super) fn stored(source: Source, shape: &[i64], groups: &Groups, kind: i32) -> Tensor {
        let mut dims: Vec<(i64, i64)> = shape.iter().map(|extent| (*extent, 0)).collect();
        let mut stride = 1;
        for d in groups.iter().flatten().rev() {
            dims[*d].1 = stride;
            stride *= shape[*d];
        }
        Tensor {
            source,
            offset: 0,
            dims,
            kind,
        }
    }

    pub(super) fn shape(&self) -> Vec<i64> {
        self.dims.iter().map(|(extent, _)| *extent).collect()
    }

    /// Which dimensions make the channels, rows and columns of the source, where they are all of it, each element once.
    pub(super) fn storage(&self, extents: [i64; 3]) -> Option<Groups> {
        if self.offset != 0 {
            return None;
        }
        let mut order: Vec<usize> = (0..self.dims.len())
            .filter(|d| self.dims[*d].0 != 1)
            .collect();
        order.sort_by_key(|d| std::cmp::Reverse(self.dims[*d].1));
        let mut left: i64 = extents.iter().product();
        let mut groups = Groups::default();
        let mut at = 0;
        let mut rest = extents[0];
        for d in order {
            let (extent, stride) = self.dims[d];
            while rest == 1 && at < 2 {
                at += 1;
                rest = extents[at];
            }
            if extent == 0 || left % extent != 0 || rest % extent != 0 || left / extent != stride {
                return None;
            }
            groups[at].push(d);
            (left, rest) = (left / extent, rest / extent);
        }
        (left == 1).then_some(groups)
    }

    /// Another shape of the same elements in the same order, where strides can say it.
    pub(super) fn reshaped(&self, shape: &[i64]) -> Option<Tensor> {
        let mut dims = Vec::with_capacity(shape.len());
        let own: Vec<(i64, i64)> = self.dims.iter().copied().filter(|d| d.0 != 1).collect();
        let mut at = 0;
        let mut open = 0;
        while open < shape.len() {
            if shape[open] == 1 {
                dims.push((1, 0));
                open += 1;
                continue;
            }
            // Dimensions from here on that make the same number of elements as some of the new ones.
            let (mut end, mut has) = (at + 1, own.get(at)?.0);
            let (mut to, mut wants) = (open + 1, shape[open]);
            while has != wants {
                if has < wants {
                    has *= own.get(end)?.0;
                    end += 1;
                } else {
                    wants *= *shape.get(to)?;
                    to += 1;
                }
            }
            let run = &own[at..end];
            let follow = run
                .windows(2)
                .all(|pair| pair[0].1 == pair[1].1 * pair[1].0);
            if !follow {
                return None;
            }
            let mut stride = run.last()?.1;
            let mut made = Vec::new();
            for extent in shape[open..to].iter().rev() {
                made.push((*extent, stride));
                stride *= extent;
            }
            dims.extend(made.into_iter().rev());
            (at, open) = (end, to);
        }
        (at == own.len() && elements(shape) == elements(&self.shape())).then(|| Tensor {
            dims,
            ..self.clone()
        })
    }
}

/// Channels, rows and columns for a shape, row by row: its last three dimensions that have more than one element, the others with the
/// channels.
pub(super) fn usual(shape: &[i64]) -> Groups {
    let mut groups = Groups::default();
    let many: Vec<usize> = (0..shape.len()).filter(|d| shape[*d] != 1).collect();
    let last = many.len().saturating_sub(3);
    for (at, d) in many.iter().enumerate() {
        groups[at.saturating_sub(last)].push(*d);
    }
    groups
}
