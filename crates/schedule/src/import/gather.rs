//! Elements by their places: gathers, scatters, one-hot tensors.

use super::Reader;
use super::array::{Array, axis_of, elements, types};
use super::builder::Made;
use super::node::Node;
use super::value::{Groups, Tensor, Value};
use crate::front::Action;
use crate::network::Kind;
use std::sync::Arc;

impl Reader<'_> {
    /// These places along an axis.
    pub(super) fn taken(
        &mut self,
        x: &Value,
        axis: usize,
        places: &[i64],
    ) -> Result<Value, String> {
        let shape = x.shape();
        let step = match places {
            [] => return Err("it has no indices".to_owned()),
            [_] => 1,
            [first, second, ..] => second - first,
        };
        if let Some(place) = places.iter().find(|at| !(0..shape[axis]).contains(*at)) {
            return Err(format!("an index of {place} into {} elements", shape[axis]));
        }
        if places.windows(2).all(|pair| pair[1] - pair[0] == step) {
            return x.sliced(axis, places[0], places.len() as i64, step);
        }
        let tensor = match x {
            Value::Array(array) => return Ok(Value::Array(array.taken(axis, places)?)),
            Value::Tensor(tensor) => tensor,
        };
        let alone = |groups: &Groups| groups.iter().any(|group| group[..] == [axis]);
        let own = tensor
            .storage(self.builder.extents(tensor.source))
            .filter(alone);
        let many = |range: std::ops::Range<usize>| -> Vec<usize> {
            range.filter(|d| shape[*d] != 1).collect()
        };
        let groups =
            own.unwrap_or_else(|| [many(0..axis), vec![axis], many(axis + 1..shape.len())]);
        let source = self.builder.arranged(tensor, &groups)?;
        let side = groups
            .iter()
            .position(|group| group.contains(&axis))
            .unwrap_or(1);
        let mut output = self.builder.extents(source);
        output[side] = places.len() as i64;
        let made = Made {
            kind: Kind::Transpose,
            output,
            action: Action::Take(side, Arc::from(places)),
            element: self.builder.element(source),
        };
        let made = self.builder.layer(made, &[source])?;
        let mut shape = shape;
        shape[axis] = places.len() as i64;
        Ok(Value::Tensor(Tensor::stored(
            made,
            &shape,
            &groups,
            tensor.kind,
        )))
    }

    pub(super) fn gather(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let (x, indices) = (node.input(0)?.clone(), node.input(1)?.clone());
        let shape = x.shape();
        let axis = axis_of(node.int("axis", 0), shape.len())?;
        let extent = shape[axis];
        let Value::Array(places) = indices else {
            return self.looked_up(&x, &indices, axis);
        };
        let whole: Vec<i64> = places
            .whole()
            .iter()
            .map(|at| if *at < 0 { at + extent } else { *at })
            .collect();
        let mut to = shape;
        to.splice(axis..=axis, places.shape.iter().copied());
        if to.contains(&0) {
            return Ok(Value::Array(Array::new(to, x.kind(), Vec::new())));
        }
        let taken = self.taken(&x, axis, &whole)?;
        self.reshaped(&taken, &to)
    }

    /// Lines of a table by numbers that the network computes: a product with what is 1 at each number and 0 elsewhere.
    fn looked_up(&mut self, x: &Value, indices: &Value, axis: usize) -> Result<Value, String> {
        let shape = x.shape();
        let extent = shape[axis];
        let hot = self.one_hot(indices, extent)?;
        let hot = Self::called(hot, x.kind());
        // The axis first, everything else as a line.
        let order: Vec<usize> = [axis]
            .into_iter()
            .chain((0..shape.len()).filter(|d| *d != axis))
            .collect();
        let lines = x.transposed(&order)?;
        let rest: Vec<i64> = order[1..].iter().map(|d| shape[*d]).collect();
        let lines = self.reshaped(&lines, &[extent, elements(&rest)])?;
        let of = indices.shape();
        let flat = self.reshaped(&hot, &[elements(&of), extent])?;
        let product = self.product(&flat, &lines)?;
        // Indices first, then what stood before and behind the axis.
        let split = self.reshaped(&product, &[&of[..], &rest[..]].concat())?;
        let order: Vec<usize> = (of.len()..of.len() + axis)
            .chain(0..of.len())
            .chain(of.len() + axis..of.len() + rest.len())
            .collect();
        split.transposed(&order)
    }

    /// 1 at each number, 0 elsewhere, along a new last dimension of so many. Negative numbers count from the end.
    pub(super) fn one_hot(&mut self, indices: &Value, depth: i64) -> Result<Value, String> {
        if depth > i64::from(i16::MAX) {
            return Err(format!(
                "indices into {depth} elements; at most {} are supported",
                i16::MAX
            ));
        }
        let number = |value: i64| Value::Array(Array::scalar(types::INT64, value as f64));
        let indices = self.cast(indices, types::INT64)?;
        let is_negative = self.binary("Less", &indices, &number(0))?;
        let from_end = self.binary("Add", &indices, &number(depth))?;
        let inside = self.chosen(&is_negative, &from_end, &indices)?;
        let rank = inside.shape().len();
        let column = inside.unsqueezed(rank)?;
        let all = Value::Array(Array::list(&(0..depth).collect::<Vec<_>>()));
        self.binary("Equal", &column, &all)
    }

    /// Elements at places of the whole, in row-major order, that are known.
    pub(super) fn at_places(
        &mut self,
        x: &Value,
        places: &[i64],
        shape: &[i64],
    ) -> Result<Value, String> {
        let flat = self.reshaped(x, &[elements(&x.shape())])?;
        let taken = self.taken(&flat, 0, places)?;
        self.reshaped(&taken, shape)
    }

    pub(super) fn gather_elements(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let indices = node.constant(1)?.ok_or("its indices are missing")?.clone();
        let shape = x.shape();
        let axis = axis_of(node.int("axis", 0), shape.len())?;
        let places = places_along(&shape, &indices, axis);
        self.at_places(&x, &places, &indices.shape)
    }

    pub(super) fn gather_nd(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let indices = node.constant(1)?.ok_or("its indices are missing")?.clone();
        let batch = node.int("batch_dims", 0) as usize;
        let shape = x.shape();
        let (places, run) = places_nd(&shape, &indices, batch)?;
        let depth = *indices.shape.last().ok_or("its indices are one number")? as usize;
        let inner = &shape[batch + depth..];
        let all: Vec<i64> = places.iter().flat_map(|at| *at..*at + run).collect();
        let to = [&indices.shape[..indices.shape.len() - 1], inner].concat();
        self.at_places(&x, &all, &to)
    }

    /// Elements of a tensor with others in the place of some of them.
    fn replaced(
        &mut self,
        x: &Value,
        updates: &Value,
        places: &[i64],
        reduction: &str,
    ) -> Result<Value, String> {
        if reduction != "none" {
            return Err(format!("the reduction `{reduction}` is not supported"));
        }
        let shape = x.shape();
        let count = elements(&shape);
        let flat = self.reshaped(x, &[count])?;
        let others = self.reshaped(updates, &[elements(&updates.shape())])?;
        let both = self.joined(&[flat, others], 0)?;
        let mut from: Vec<i64> = (0..count).collect();
        for (number, place) in places.iter().enumerate() {
            let at = usize::try_from(*place).ok().and_then(|at| from.get_mut(at));
            *at.ok_or_else(|| format!("an index of {place} into {count} elements"))? =
                count + number as i64;
        }
        let taken = self.taken(&both, 0, &from)?;
        self.reshaped(&taken, &shape)
    }

    pub(super) fn scatter(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let (x, updates) = (node.input(0)?.clone(), node.input(2)?.clone());
        let indices = node.constant(1)?.ok_or("its indices are missing")?.clone();
        let reduction = node.text("reduction").unwrap_or("none");
        let shape = x.shape();
        if node.kind == "ScatterND" {
            let (places, run) = places_nd(&shape, &indices, 0)?;
            let all: Vec<i64> = places.iter().flat_map(|at| *at..*at + run).collect();
            return self.replaced(&x, &updates, &all, reduction);
        }
        let axis = axis_of(node.int("axis", 0), shape.len())?;
        let places = places_along(&shape, &indices, axis);
        self.replaced(&x, &updates, &places, reduction)
    }

    pub(super) fn hot(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let indices = node.input(0)?.clone();
        let depth = node
            .constant(1)?
            .and_then(Array::single)
            .ok_or("its depth is missing")?;
        let values = node.input(2)?.clone();
        let (off, on) = (values.at(0, 0)?, values.at(0, 1)?);
        let hot = self.one_hot(&indices, depth as i64)?;
        let hot = self.chosen(&hot, &on, &off)?;
        let rank = hot.shape().len();
        let axis = axis_of(node.int("axis", -1), rank)?;
        let mut order: Vec<usize> = (0..rank - 1).collect();
        order.insert(axis, rank - 1);
        hot.transposed(&order)
    }

    pub(super) fn reverse_sequence(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let lengths = node.constant(1)?.ok_or("its lengths are missing")?.whole();
        let (time, batch) = (
            node.int("time_axis", 0) as usize,
            node.int("batch_axis", 1) as usize,
        );
        let steps = *x.shape().get(time).ok_or("its time axis is missing")?;
        let mut parts = Vec::new();
        for (image, length) in lengths.iter().enumerate() {
            let one = x.sliced(batch, image as i64, 1, 1)?;
            let place = |at: i64| if at < *length { length - 1 - at } else { at };
            let places: Vec<i64> = (0..steps).map(place).collect();
            parts.push(self.taken(&one, time, &places)?);
        }
        self.joined(&parts, batch)
    }
}

/// Places in row-major order where an index along an axis stands in the place of that of its own element.
fn places_along(shape: &[i64], indices: &Array, axis: usize) -> Vec<i64> {
    let strides = super::array::strides(shape);
    let own = super::array::strides(&indices.shape);
    let place = |(at, index): (usize, &f64)| {
        let index = *index as i64;
        let index = if index < 0 {
            index + shape[axis]
        } else {
            index
        };
        let of = (0..shape.len()).map(|d| {
            let here = at as i64 / own[d] % indices.shape[d];
            strides[d] * if d == axis { index } else { here }
        });
        of.sum()
    };
    indices.values.iter().enumerate().map(place).collect()
}

/// Places in row-major order that rows of indices name, and how many elements follow each.
fn places_nd(shape: &[i64], indices: &Array, batch: usize) -> Result<(Vec<i64>, i64), String> {
    let depth = *indices.shape.last().ok_or("its indices are one number")? as usize;
    if batch + depth > shape.len() {
        return Err(format!("indices of {:?} into {shape:?}", indices.shape));
    }
    let strides = super::array::strides(shape);
    let run = elements(&shape[batch + depth..]);
    let rows = elements(&indices.shape[..indices.shape.len() - 1]);
    let of_batch = elements(&indices.shape[..batch]).max(1);
    let images = rows / of_batch;
    let inner = elements(&shape[batch..]);
    let place = |(row, index): (usize, &[f64])| {
        let of = index.iter().enumerate().map(|(d, index)| {
            let extent = shape[batch + d];
            let index = *index as i64;
            strides[batch + d] * if index < 0 { index + extent } else { index }
        });
        row as i64 / images.max(1) * inner + of.sum::<i64>()
    };
    let rows = indices.values.chunks(depth.max(1)).enumerate();
    Ok((rows.map(place).collect(), run))
}
