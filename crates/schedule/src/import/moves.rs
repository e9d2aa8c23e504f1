//! Operations that move elements: most only change how a tensor is seen.

use super::Reader;
use super::array::{Array, axis_of, elements, types};
use super::builder::Made;
use super::node::Node;
use super::value::{Groups, Tensor, Value, usual};
use crate::front::{Action, Move, View};
use crate::network::Kind;
use chipless_gemini::strided::Axis;

impl Reader<'_> {
    /// A tensor of a value: of a constant, none.
    pub(super) fn made(value: &Value) -> Result<Tensor, String> {
        match value {
            Value::Tensor(tensor) => Ok(tensor.clone()),
            Value::Array(_) => Err("of constants alone it is not supported".to_owned()),
        }
    }

    /// The same numbers, called by another type that is stored alike.
    pub(super) fn called(value: Value, kind: i32) -> Value {
        match value {
            Value::Array(array) => Value::Array(Array { kind, ..array }),
            Value::Tensor(tensor) => Value::Tensor(Tensor { kind, ..tensor }),
        }
    }

    /// The same elements in the same order as another shape.
    pub(super) fn reshaped(&mut self, value: &Value, shape: &[i64]) -> Result<Value, String> {
        let own = value.shape();
        if elements(&own) != elements(shape) {
            return Err(format!("{own:?} as {shape:?}"));
        }
        match value {
            Value::Array(array) => Ok(Value::Array(array.reshaped(shape.to_vec()))),
            Value::Tensor(tensor) => {
                if let Some(seen) = tensor.reshaped(shape) {
                    return Ok(Value::Tensor(seen));
                }
                let source = self.builder.by_rows(tensor)?;
                Ok(Value::Tensor(Tensor::whole(source, shape, tensor.kind)))
            }
        }
    }

    pub(super) fn reshape(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let own = x.shape();
        let mut shape = node.list(1, "shape")?.ok_or("its shape is missing")?;
        if node.int("allowzero", 0) == 0 {
            for (at, extent) in shape
                .iter_mut()
                .enumerate()
                .filter(|(_, extent)| **extent == 0)
            {
                *extent = own.get(at).copied().unwrap_or(0);
            }
        }
        let known = elements(
            &shape
                .iter()
                .copied()
                .filter(|e| *e != -1)
                .collect::<Vec<_>>(),
        );
        for extent in shape.iter_mut().filter(|extent| **extent == -1) {
            *extent = elements(&own).checked_div(known).unwrap_or(0);
        }
        // A model that was exported for a batch of one says 1 where it means the batch.
        let given = shape.clone();
        if let (Some(batch), [first @ 1, ..]) = (self.batch, &mut shape[..])
            && own.first() == Some(&batch)
            && elements(&own) != elements(&given)
            && batch.checked_mul(known) == Some(elements(&own))
        {
            *first = batch;
        }
        self.reshaped(&x, &shape)
    }

    pub(super) fn flatten(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let shape = x.shape();
        let axis = node.int("axis", 1);
        let axis = if axis < 0 {
            axis + shape.len() as i64
        } else {
            axis
        };
        let (before, after) = shape
            .split_at_checked(axis as usize)
            .ok_or_else(|| format!("an axis of {axis}"))?;
        self.reshaped(&x, &[elements(before), elements(after)])
    }

    pub(super) fn squeeze(node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let shape = x.shape();
        let mut axes = match node.axes(1, shape.len())? {
            Some(axes) => axes,
            None => (0..shape.len()).filter(|d| shape[*d] == 1).collect(),
        };
        axes.sort_unstable();
        if let Some(axis) = axes.iter().find(|axis| shape[**axis] != 1) {
            return Err(format!("the axis {axis} has {} elements", shape[*axis]));
        }
        axes.iter().rev().try_fold(x, |x, axis| x.squeezed(*axis))
    }

    pub(super) fn unsqueeze(node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let axes = node.list(1, "axes")?.ok_or("its axes are missing")?;
        let rank = x.shape().len() + axes.len();
        let mut axes = axes
            .iter()
            .map(|axis| axis_of(*axis, rank))
            .collect::<Result<Vec<usize>, _>>()?;
        axes.sort_unstable();
        axes.iter().try_fold(x, |x, axis| x.unsqueezed(*axis))
    }

    pub(super) fn transpose(node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?;
        let rank = x.shape().len();
        let order: Vec<usize> = match node.ints("perm") {
            Some(order) => order
                .iter()
                .map(|axis| axis_of(*axis, rank))
                .collect::<Result<_, _>>()?,
            None => (0..rank).rev().collect(),
        };
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted != (0..rank).collect::<Vec<_>>() {
            return Err(format!("{order:?} is no order of {rank} axes"));
        }
        x.transposed(&order)
    }

    pub(super) fn expand(node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?;
        let wanted = node.constant(1)?.ok_or("its shape is missing")?.whole();
        let shape = super::array::broadcast(&x.shape(), &wanted)?;
        x.broadcast_to(&shape)
    }

    pub(super) fn tile(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let shape = x.shape();
        let times = node.constant(1)?.ok_or("its repeats are missing")?.whole();
        if times.len() != shape.len() {
            return Err(format!("repeats of {times:?} for {shape:?}"));
        }
        let seen = x.viewed(|dims| {
            let pair = |(times, dim): (&i64, &(i64, i64))| [(*times, 0), *dim];
            (times.iter().zip(dims).flat_map(pair).collect(), 0)
        })?;
        let shape: Vec<i64> = shape.iter().zip(&times).map(|(e, n)| e * n).collect();
        self.reshaped(&seen, &shape)
    }

    pub(super) fn slice(node: &Node<'_>) -> Result<Value, String> {
        let mut x = node.input(0)?.clone();
        let shape = x.shape();
        let starts = node.list(1, "starts")?.ok_or("its starts are missing")?;
        let ends = node.list(2, "ends")?.ok_or("its ends are missing")?;
        let axes = match node.list(3, "axes")? {
            Some(axes) => axes,
            None => (0..starts.len() as i64).collect(),
        };
        let steps = match node.constant(4)? {
            Some(steps) => steps.whole(),
            None => vec![1; starts.len()],
        };
        if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
            return Err("its starts, ends, axes and steps are not of one length".to_owned());
        }
        for (((start, end), axis), step) in starts.iter().zip(&ends).zip(&axes).zip(&steps) {
            let axis = axis_of(*axis, shape.len())?;
            let extent = shape[axis];
            let place = |at: i64| {
                if at < 0 {
                    at.saturating_add(extent)
                } else {
                    at
                }
            };
            let (first, last) = match step {
                0 => return Err("a step of 0".to_owned()),
                1.. => (place(*start).clamp(0, extent), place(*end).clamp(0, extent)),
                _ => (
                    place(*start).clamp(-1, extent - 1),
                    place(*end).clamp(-1, extent - 1),
                ),
            };
            let count = (last - first + step - step.signum()) / step;
            x = x.sliced(axis, first, count.max(0), *step)?;
        }
        Ok(x)
    }

    pub(super) fn split(node: &Node<'_>) -> Result<Vec<Value>, String> {
        let x = node.input(0)?;
        let shape = x.shape();
        let axis = axis_of(node.int("axis", 0), shape.len())?;
        let parts = node.int("num_outputs", node.outputs.len() as i64).max(1);
        let sizes = if let Some(sizes) = node.list(1, "split")? {
            sizes
        } else {
            let each = (shape[axis] + parts - 1) / parts;
            let size = |at: i64| (shape[axis] - at * each).clamp(0, each);
            (0..parts).map(size).collect()
        };
        if sizes.iter().sum::<i64>() != shape[axis] {
            return Err(format!("parts of {sizes:?} of {} elements", shape[axis]));
        }
        let mut start = 0;
        let mut part = |size: &i64| {
            start += size;
            x.sliced(axis, start - size, *size, 1)
        };
        sizes.iter().map(&mut part).collect()
    }

    pub(super) fn concat(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let values: Vec<Value> = (0..node.inputs.len())
            .map(|at| node.input(at).cloned())
            .collect::<Result<_, _>>()?;
        let rank = values.first().ok_or("it has no inputs")?.shape().len();
        let axis = axis_of(node.int("axis", 0), rank)?;
        self.joined(&values, axis)
    }

    /// Values one after another along an axis.
    pub(super) fn joined(&mut self, values: &[Value], axis: usize) -> Result<Value, String> {
        let values: Vec<Value> = values
            .iter()
            .filter(|value| value.shape()[axis] != 0)
            .cloned()
            .collect();
        let first = match &values[..] {
            [] => return Err("nothing is joined".to_owned()),
            [only] => return Ok(only.clone()),
            [first, ..] => first,
        };
        let mut shape = first.shape();
        let alike = |value: &Value| {
            let own = value.shape();
            own.len() == shape.len() && (0..own.len()).all(|d| d == axis || own[d] == shape[d])
        };
        if let Some(other) = values.iter().find(|value| !alike(value)) {
            return Err(format!(
                "{shape:?} and {:?} along the axis {axis}",
                other.shape()
            ));
        }
        let arrays: Option<Vec<Array>> = values
            .iter()
            .map(|value| match value {
                Value::Array(array) => Some(array.clone()),
                Value::Tensor(_) => None,
            })
            .collect();
        if let Some(arrays) = arrays {
            return Ok(Value::Array(Array::joined(&arrays, axis)?));
        }
        let kind = first.kind();
        let groups = self.joined_storage(&values, &shape, axis);
        let side = groups.iter().position(|group| group.contains(&axis));
        let side = side.ok_or("an axis that no storage has")?;
        shape[axis] = values.iter().map(|value| value.shape()[axis]).sum();
        let mut reads = Vec::new();
        for value in &values {
            let own = value.shape();
            let mut source = match value {
                Value::Tensor(tensor) => self.builder.arranged(tensor, &groups)?,
                Value::Array(array) => {
                    let dims = array.dims();
                    let of: Vec<(i64, i64)> = groups.iter().flatten().map(|d| dims[*d]).collect();
                    let extents = [0, 1, 2]
                        .map(|g: usize| groups[g].iter().map(|d| own[*d]).product::<i64>());
                    self.builder.table(&array.viewed(&of, 0)?, extents)
                }
            };
            if reads.contains(&source) || self.builder.stored(source).is_some() {
                source = self.copied(source)?;
            }
            reads.push(source);
        }
        let output = [0, 1, 2].map(|g: usize| groups[g].iter().map(|d| shape[*d]).product());
        let made = Made {
            kind: Kind::Transpose,
            output,
            action: Action::Move(Move::Concat(side)),
            element: super::builder::element_of(kind),
        };
        let made = self.builder.layer(made, &reads)?;
        Ok(Value::Tensor(Tensor::stored(made, &shape, &groups, kind)))
    }

    /// How what is joined along an axis is stored: so that the axis is the outermost of channels, rows or columns.
    fn joined_storage(&self, values: &[Value], shape: &[i64], axis: usize) -> Groups {
        let own = |value: &Value| match value {
            Value::Tensor(tensor) => {
                let groups = tensor.storage(self.builder.extents(tensor.source))?;
                let first = groups.iter().any(|group| group.first() == Some(&axis));
                first.then_some(groups)
            }
            Value::Array(_) => None,
        };
        if let Some(groups) = values.iter().find_map(own) {
            return groups;
        }
        let many = |range: std::ops::Range<usize>| -> Vec<usize> {
            range.filter(|d| shape[*d] != 1).collect()
        };
        let before = many(0..axis);
        let mut after = many(axis + 1..shape.len());
        if before.is_empty() {
            let columns = after.pop().into_iter().collect();
            return [vec![axis], after, columns];
        }
        let last = after.pop();
        let rows = [vec![axis], after].concat();
        [before, rows, last.into_iter().collect()]
    }

    pub(super) fn pad(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let rank = x.shape().len();
        let pads = node.list(1, "pads")?.ok_or("its pads are missing")?;
        let axes = match node.constant(3)? {
            Some(axes) => axes
                .whole()
                .iter()
                .map(|axis| axis_of(*axis, rank))
                .collect::<Result<Vec<_>, _>>()?,
            None => (0..rank).collect(),
        };
        if pads.len() != 2 * axes.len() {
            return Err(format!("pads of {pads:?} for {rank} dimensions"));
        }
        let mut all = vec![[0, 0]; rank];
        for (at, axis) in axes.iter().enumerate() {
            all[*axis] = [pads[at], pads[at + axes.len()]];
        }
        let fill = match node.constant(2)? {
            Some(value) => value.single().unwrap_or(0.0),
            None => node.float("value", 0.0),
        };
        match node.text("mode").unwrap_or("constant") {
            "constant" => self.padded(&x, &all, fill),
            mode => {
                let shape = x.shape();
                let mut x = x;
                for (axis, [before, after]) in all.into_iter().enumerate() {
                    let extent = shape[axis];
                    if [before, after] == [0, 0] {
                        continue;
                    }
                    let place = |at: i64| match mode {
                        "edge" => Ok(at.clamp(0, extent - 1)),
                        "wrap" => Ok(at.rem_euclid(extent)),
                        "reflect" => {
                            let period = (2 * (extent - 1)).max(1);
                            let at = at.rem_euclid(period);
                            Ok(if at < extent { at } else { period - at })
                        }
                        _ => Err(format!("the mode `{mode}` is not supported")),
                    };
                    let places = (-before..extent + after).map(place);
                    x = self.taken(&x, axis, &places.collect::<Result<Vec<_>, _>>()?)?;
                }
                Ok(x)
            }
        }
    }

    /// So many elements of one number before and behind each dimension; fewer elements where that is negative.
    pub(super) fn padded(
        &mut self,
        x: &Value,
        pads: &[[i64; 2]],
        fill: f64,
    ) -> Result<Value, String> {
        let mut x = x.clone();
        for (axis, pad) in pads.iter().enumerate() {
            let [before, after] = pad.map(|pad| pad.min(0));
            if [before, after] != [0, 0] {
                let extent = x.shape()[axis] + before + after;
                x = x.sliced(axis, -before, extent, 1)?;
            }
        }
        let pads: Vec<[i64; 2]> = pads.iter().map(|pad| pad.map(|pad| pad.max(0))).collect();
        if pads.iter().all(|pad| *pad == [0, 0]) {
            return Ok(x);
        }
        let own = x.shape();
        let shape: Vec<i64> = own.iter().zip(&pads).map(|(e, [a, b])| e + a + b).collect();
        let tensor = match &x {
            Value::Array(array) => {
                let inside = array.dims();
                let mut values = vec![fill; usize::try_from(elements(&shape)).unwrap_or(0)];
                let strides = super::array::strides(&shape);
                for (at, value) in array.values.iter().enumerate() {
                    let at = at as i64;
                    let of = (0..own.len()).map(|d| {
                        let index = if own[d] == 0 {
                            0
                        } else {
                            at / inside[d].1 % own[d]
                        };
                        (index + pads[d][0]) * strides[d]
                    });
                    values[of.sum::<i64>() as usize] = *value;
                }
                return Ok(Value::Array(Array::new(shape, array.kind, values)));
            }
            Value::Tensor(tensor) => tensor,
        };
        let groups = match tensor.storage(self.builder.extents(tensor.source)) {
            Some(groups) => Self::with_padded(groups, &pads),
            None => usual(&shape),
        };
        let axes = groups.iter().flatten().map(|d| Axis {
            extent: shape[*d] as u64,
            stride: tensor.dims[*d].1,
            valid: [pads[*d][0] as u64, (pads[*d][0] + own[*d]) as u64],
        });
        let view = View {
            axes: axes.collect(),
            offset: tensor.offset,
            fill,
        };
        let output = [0, 1, 2].map(|g: usize| groups[g].iter().map(|d| shape[*d]).product());
        let made = self.builder.strided(tensor.source, view, output)?;
        Ok(Value::Tensor(Tensor::stored(
            made,
            &shape,
            &groups,
            tensor.kind,
        )))
    }

    /// Groups that have the dimensions of one element, too, that are padded.
    fn with_padded(mut groups: Groups, pads: &[[i64; 2]]) -> Groups {
        for (d, pad) in pads.iter().enumerate() {
            if *pad != [0, 0] && !groups.iter().flatten().any(|own| *own == d) {
                let side = if groups[0].iter().all(|own| *own > d) {
                    0
                } else {
                    2
                };
                let at = groups[side].iter().take_while(|own| **own < d).count();
                groups[side].insert(at, d);
            }
        }
        groups
    }

    pub(super) fn depth_to_space(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let b = node.int("blocksize", 1).max(1);
        let [n, c, h, w] = x.shape()[..] else {
            return Err(format!("of {:?} it is not supported", x.shape()));
        };
        if node.kind == "SpaceToDepth" {
            let split = self.reshaped(&x, &[n, c, h / b, b, w / b, b])?;
            let first = node.text("mode") == Some("CRD");
            let order = if first {
                [0, 1, 3, 5, 2, 4]
            } else {
                [0, 3, 5, 1, 2, 4]
            };
            let turned = split.transposed(&order)?;
            return self.reshaped(&turned, &[n, c * b * b, h / b, w / b]);
        }
        let first = node.text("mode") == Some("CRD");
        let (shape, order) = if first {
            ([n, c / (b * b), b, b, h, w], [0, 1, 4, 2, 5, 3])
        } else {
            ([n, b, b, c / (b * b), h, w], [0, 3, 4, 1, 5, 2])
        };
        let split = self.reshaped(&x, &shape)?;
        let turned = split.transposed(&order)?;
        self.reshaped(&turned, &[n, c / (b * b), h * b, w * b])
    }

    pub(super) fn trilu(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let shape = x.shape();
        let [.., rows, columns] = shape[..] else {
            return Err(format!("of {shape:?} it is not supported"));
        };
        let k = node.constant(1)?.and_then(Array::single).unwrap_or(0.0) as i64;
        let upper = node.int("upper", 1) != 0;
        let kept = |at: i64| {
            let (row, column) = (at / columns, at % columns);
            super::elements::truth(if upper {
                column >= row + k
            } else {
                column <= row + k
            })
        };
        let mask = Array::new(
            vec![rows, columns],
            types::BOOL,
            (0..rows * columns).map(kept).collect(),
        );
        let zero = Value::Array(Array::scalar(x.kind(), 0.0));
        self.chosen(&Value::Array(mask), &x, &zero)
    }
}
