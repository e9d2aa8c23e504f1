//! Operations over axes: reductions, softmax, norms.

use super::Reader;
use super::array::{Array, axis_of, elements, types};
use super::builder::{Made, attributes, element_of};
use super::node::Node;
use super::value::{Groups, Tensor, Value};
use crate::front::{Action, Element, Named, Window};
use crate::network::Kind;
use serde_json::{Map, Value as Json};

/// What becomes of the elements along some axes: ONNX's name, the front end's.
const REDUCTIONS: &[(&str, &str)] = &[
    ("ReduceSum", "reduce_sum"),
    ("ReduceMean", "reduce_mean"),
    ("ReduceMax", "reduce_max"),
    ("ReduceMin", "reduce_min"),
    ("ReduceProd", "reduce_prod"),
    ("ReduceL1", "reduce_l1"),
    ("ReduceL2", "reduce_l2"),
    ("ReduceSumSquare", "reduce_sum_square"),
    ("ReduceLogSum", "reduce_log_sum"),
    ("ReduceLogSumExp", "reduce_log_sum_exp"),
];

/// What a reduction of constants gives.
fn reduced(name: &str, values: &[f64]) -> f64 {
    let sum = |f: fn(f64) -> f64| values.iter().map(|v| f(*v)).sum::<f64>();
    match name {
        "reduce_mean" => sum(|v| v) / values.len() as f64,
        "reduce_max" => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        "reduce_min" => values.iter().copied().fold(f64::INFINITY, f64::min),
        "reduce_prod" => values.iter().product(),
        "reduce_l1" => sum(f64::abs),
        "reduce_l2" => sum(|v| v * v).sqrt(),
        "reduce_sum_square" => sum(|v| v * v),
        "reduce_log_sum" => sum(|v| v).ln(),
        "reduce_log_sum_exp" => sum(f64::exp).ln(),
        _ => sum(|v| v),
    }
}

impl Reader<'_> {
    pub(super) fn reduce(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let rank = x.shape().len();
        let name = REDUCTIONS.iter().find(|(of, _)| *of == node.kind);
        let (_, name) = name.ok_or("the operation is not supported")?;
        let axes = node.axes(1, rank)?;
        let axes = match axes {
            Some(axes) if !axes.is_empty() => axes,
            _ if node.int("noop_with_empty_axes", 0) != 0 => return self.reduced_each(name, x),
            _ => (0..rank).collect(),
        };
        self.reduced(name, &x, &axes, node.int("keepdims", 1) != 0)
    }

    /// A reduction over no axes: what it makes of one element.
    fn reduced_each(&mut self, name: &str, x: Value) -> Result<Value, String> {
        match name {
            "reduce_l1" | "reduce_l2" => self.unary("Abs", &x),
            "reduce_sum_square" => self.unary("Square", &x),
            "reduce_log_sum" => self.unary("Log", &x),
            _ => Ok(x),
        }
    }

    /// What becomes of the elements along some axes.
    pub(super) fn reduced(
        &mut self,
        name: &'static str,
        x: &Value,
        axes: &[usize],
        keeps: bool,
    ) -> Result<Value, String> {
        let value = match x {
            Value::Array(array) => {
                Value::Array(array.reduced(axes, |values| reduced(name, values))?)
            }
            Value::Tensor(tensor) => match self.pooled(name, tensor, axes)? {
                Some(value) => value,
                None => self.across(name, Map::new(), tensor, axes, x.kind())?,
            },
        };
        Self::without(value, axes, keeps)
    }

    /// Without the axes that were reduced, where they are not kept.
    fn without(value: Value, axes: &[usize], keeps: bool) -> Result<Value, String> {
        if keeps {
            return Ok(value);
        }
        let mut axes = axes.to_vec();
        axes.sort_unstable();
        axes.iter()
            .rev()
            .try_fold(value, |value, axis| value.squeezed(*axis))
    }

    /// A mean or a maximum over all rows and columns: a pooling.
    fn pooled(&mut self, name: &str, x: &Tensor, axes: &[usize]) -> Result<Option<Value>, String> {
        let Some(mut groups) = x.storage(self.builder.extents(x.source)) else {
            return Ok(None);
        };
        let shape = x.shape();
        let places = || groups[1].iter().chain(&groups[2]);
        let all = axes.iter().filter(|d| shape[**d] != 1);
        let exact = places().count() == all.clone().count()
            && all.clone().all(|d| places().any(|p| p == d));
        if !exact || places().count() == 0 || types::is_integer(x.kind) {
            return Ok(None);
        }
        let [c, h, w] = self.builder.extents(x.source);
        let window = Window {
            kernel: [h, w],
            stride: [h, w],
            ..Window::POINT
        };
        let action = match name {
            "reduce_mean" => Action::AveragePool(window, false),
            "reduce_max" => Action::MaxPool(window),
            _ => return Ok(None),
        };
        let made = Made {
            kind: Kind::Pool,
            output: [c, 1, 1],
            action,
            element: Element::Float16,
        };
        let made = self.builder.layer_of(made, &[x.source], |layer| {
            (layer.kernel, layer.stride) = (window.kernel, window.stride);
        })?;
        let mut shape = shape;
        for d in axes {
            shape[*d] = 1;
        }
        groups = [std::mem::take(&mut groups[0]), Vec::new(), Vec::new()];
        Ok(Some(Value::Tensor(Tensor::stored(
            made, &shape, &groups, x.kind,
        ))))
    }

    /// An operation for which all elements along some axes are needed: they become the channels, or groups of channels.
    pub(super) fn across(
        &mut self,
        name: &'static str,
        mut attributes: Map<String, Json>,
        x: &Tensor,
        axes: &[usize],
        kind: i32,
    ) -> Result<Value, String> {
        let mut shape = x.shape();
        let extents = shape.clone();
        let reduces = name.starts_with("reduce") || name.starts_with("arg");
        let many: Vec<usize> = axes.iter().copied().filter(|d| shape[*d] != 1).collect();
        let own = x.storage(self.builder.extents(x.source));
        let outer = own.as_ref().and_then(|groups| {
            let before = groups[0].len().checked_sub(many.len())?;
            (groups[0][before..] == many[..]).then(|| groups[0][..before].to_vec())
        });
        let (mut groups, source) = if let (Some(groups), Some(outer)) = (own, outer) {
            let count: i64 = outer.iter().map(|d| shape[*d]).product();
            if count > 1 {
                attributes.insert("group".to_owned(), Json::from(count));
            }
            (groups, x.source)
        } else {
            let kept: Vec<usize> = (0..shape.len())
                .filter(|d| shape[*d] != 1 && !many.contains(d))
                .collect();
            let (rows, columns) =
                kept.split_at(kept.len().saturating_sub(1).max(kept.len().min(1)));
            let groups = [many.clone(), rows.to_vec(), columns.to_vec()];
            let source = self.builder.arranged(x, &groups)?;
            (groups, source)
        };
        let [mut channels, h, w] = self.builder.extents(source);
        if reduces {
            for d in axes {
                shape[*d] = 1;
            }
            groups[0].retain(|d| !many.contains(d));
            channels = groups[0].iter().map(|d| shape[*d]).product();
        }
        let named = Named {
            name,
            attributes,
            across: true,
        };
        let made = self
            .builder
            .vector(named, [channels, h, w], &[source], element_of(kind))?;
        let sums = ["reduce_sum", "reduce_l1", "reduce_sum_square"].contains(&name);
        if sums && element_of(kind) == Element::Float16 {
            // Sums of many go beyond half precision where their mean does not.
            let count: i64 = many.iter().map(|d| extents[*d]).product();
            self.builder
                .store_in_steps(made, (count as f64).log2().ceil());
        }
        Ok(Value::Tensor(Tensor::stored(made, &shape, &groups, kind)))
    }

    pub(super) fn arg(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?;
        let axis = axis_of(node.int("axis", 0), x.shape().len())?;
        let name = if node.kind == "ArgMax" {
            "arg_max"
        } else {
            "arg_min"
        };
        let last = node.int("select_last_index", 0) != 0;
        let value = match x {
            Value::Tensor(tensor) => {
                let parameters = attributes([("select_last_index", f64::from(u8::from(last)))]);
                self.across(name, parameters, tensor, &[axis], types::INT64)?
            }
            Value::Array(array) => {
                let better = |b: f64, a: f64| match (name, last) {
                    ("arg_max", false) => b > a,
                    ("arg_max", true) => b >= a,
                    (_, false) => b < a,
                    (_, true) => b <= a,
                };
                let found = array.reduced(&[axis], |values| {
                    let all = values.iter().enumerate();
                    let best = all.reduce(|a, b| if better(*b.1, *a.1) { b } else { a });
                    best.map_or(0.0, |(at, _)| at as f64)
                })?;
                Value::Array(Array {
                    kind: types::INT64,
                    ..found
                })
            }
        };
        Self::without(value, &[axis], node.int("keepdims", 1) != 0)
    }

    pub(super) fn softmax(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let name = match node.kind {
            "Softmax" => "softmax",
            "LogSoftmax" => "log_softmax",
            _ => "hardmax",
        };
        let x = node.input(0)?.clone();
        let shape = x.shape();
        // Before version 13, all axes from this one on are taken together.
        let together = self.version < 13;
        let axis = axis_of(node.int("axis", if together { 1 } else { -1 }), shape.len())?;
        let x = Self::made(&x)?;
        if together && elements(&shape[axis + 1..]) != 1 {
            let flat = [elements(&shape[..axis]), elements(&shape[axis..])];
            let x = self.reshaped(&Value::Tensor(x), &flat)?;
            let x = Self::made(&x)?;
            let y = self.across(name, Map::new(), &x, &[1], x.kind)?;
            return self.reshaped(&y, &shape);
        }
        self.across(name, Map::new(), &x, &[axis], x.kind)
    }

    /// Mean 0 and variance 1 over some axes.
    fn normalised(&mut self, x: &Value, axes: &[usize], epsilon: f64) -> Result<Value, String> {
        let x = Self::made(x)?;
        self.across(
            "layer_norm",
            attributes([("epsilon", epsilon)]),
            &x,
            axes,
            x.kind,
        )
    }

    /// A factor and an offset, where they are given, of the shape of the last axes.
    fn scaled(
        &mut self,
        value: Value,
        factor: Option<&Value>,
        offset: Option<&Value>,
    ) -> Result<Value, String> {
        let value = match factor {
            Some(factor) => self.binary("Mul", &value, factor)?,
            None => value,
        };
        match offset {
            Some(offset) => self.binary("Add", &value, offset),
            None => Ok(value),
        }
    }

    pub(super) fn layer_norm(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let rank = x.shape().len();
        let axis = axis_of(node.int("axis", -1), rank)?;
        let axes: Vec<usize> = (axis..rank).collect();
        let epsilon = node.float("epsilon", 1e-5);
        let value = if node.kind == "LayerNormalization" {
            self.normalised(&x, &axes, epsilon)?
        } else {
            let x = Self::made(&x)?;
            self.across(
                "rms_norm",
                attributes([("epsilon", epsilon)]),
                &x,
                &axes,
                x.kind,
            )?
        };
        let (factor, offset) = (node.optional(1).cloned(), node.optional(2).cloned());
        self.scaled(value, factor.as_ref(), offset.as_ref())
    }

    /// A layer norm whose mean and reciprocal deviation are results as well.
    pub(super) fn layer_norm_with_statistics(
        &mut self,
        node: &Node<'_>,
    ) -> Result<Vec<Value>, String> {
        let x = node.input(0)?.clone();
        let rank = x.shape().len();
        let axes: Vec<usize> = (axis_of(node.int("axis", -1), rank)?..rank).collect();
        let value = self.layer_norm(node)?;
        let mean = self.reduced("reduce_mean", &x, &axes, true)?;
        let centred = self.binary("Sub", &x, &mean)?;
        let squares = self.unary("Square", &centred)?;
        let spread = self.reduced("reduce_mean", &squares, &axes, true)?;
        let epsilon = Array::scalar(types::FLOAT, node.float("epsilon", 1e-5));
        let spread = self.binary("Add", &spread, &Value::Array(epsilon))?;
        let deviation = self.unary("Sqrt", &spread)?;
        let reciprocal = self.unary("Reciprocal", &deviation)?;
        Ok(vec![value, mean, reciprocal])
    }

    /// A number for each channel of a map, as a shape that goes beside it.
    fn of_channels(&mut self, value: &Value, rank: usize) -> Result<Value, String> {
        let mut shape = vec![1; rank - 1];
        shape[0] = elements(&value.shape());
        self.reshaped(value, &shape)
    }

    /// Instance, group and mean-variance norms.
    pub(super) fn map_norm(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let shape = x.shape();
        let rank = shape.len();
        let epsilon = node.float("epsilon", 1e-5);
        if node.kind == "MeanVarianceNormalization" {
            let axes = node.ints("axes").map_or(vec![0, 2, 3], <[i64]>::to_vec);
            let axes: Result<Vec<usize>, String> =
                axes.iter().map(|axis| axis_of(*axis, rank)).collect();
            return self.normalised(&x, &axes?, 1e-9);
        }
        let groups = match node.kind {
            "GroupNormalization" => node.int("num_groups", 1),
            _ => shape[1],
        };
        if groups < 1 || shape[1] % groups != 0 {
            return Err(format!("{} channels in {groups} groups", shape[1]));
        }
        let grouped = [&[shape[0], groups, shape[1] / groups], &shape[2..]].concat();
        let x = self.reshaped(&x, &grouped)?;
        let axes: Vec<usize> = (2..grouped.len()).collect();
        let value = self.normalised(&x, &axes, epsilon)?;
        let (factor, offset) = (node.input(1)?.clone(), node.input(2)?.clone());
        if node.kind == "GroupNormalization"
            && elements(&factor.shape()) == groups
            && groups != shape[1]
        {
            // Before version 21, one number for each group.
            let of = |reader: &mut Self, value: &Value| {
                let mut shape = vec![1; grouped.len() - 1];
                shape[0] = groups;
                reader.reshaped(value, &shape)
            };
            let (factor, offset) = (of(self, &factor)?, of(self, &offset)?);
            let value = self.scaled(value, Some(&factor), Some(&offset))?;
            return self.reshaped(&value, &shape);
        }
        let value = self.reshaped(&value, &shape)?;
        let factor = self.of_channels(&factor, rank)?;
        let offset = self.of_channels(&offset, rank)?;
        self.scaled(value, Some(&factor), Some(&offset))
    }

    /// Batch norm: the channels' statistics are known.
    pub(super) fn batch_norm(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let rank = x.shape().len();
        if node.int("training_mode", 0) != 0 {
            return Err("training is not supported".to_owned());
        }
        let given: Vec<Value> = (1..5)
            .map(|at| node.input(at).cloned())
            .collect::<Result<_, _>>()?;
        let arrays: Option<Vec<&Array>> = given
            .iter()
            .map(|value| match value {
                Value::Array(array) => Some(array),
                Value::Tensor(_) => None,
            })
            .collect();
        let epsilon = node.float("epsilon", 1e-5);
        let column = |reader: &mut Self, value: &Value| {
            if rank < 2 {
                return Ok(value.clone());
            }
            reader.of_channels(value, rank)
        };
        if let Some(all) = arrays {
            let factor = all[0].with(all[3], types::FLOAT, |s, v| s / (v + epsilon).sqrt())?;
            let moved = all[2].with(&factor, types::FLOAT, |m, f| m * f)?;
            let offset = all[1].with(&moved, types::FLOAT, |b, m| b - m)?;
            let factor = column(self, &Value::Array(factor))?;
            let offset = column(self, &Value::Array(offset))?;
            return self.scaled(x, Some(&factor), Some(&offset));
        }
        let epsilon = Value::Array(Array::scalar(types::FLOAT, epsilon));
        let spread = self.binary("Add", &given[3], &epsilon)?;
        let spread = self.unary("Sqrt", &spread)?;
        let factor = self.binary("Div", &given[0], &spread)?;
        let mean = column(self, &given[2])?;
        let centred = self.binary("Sub", &x, &mean)?;
        let (factor, offset) = (column(self, &factor)?, column(self, &given[1])?);
        self.scaled(centred, Some(&factor), Some(&offset))
    }

    pub(super) fn lp_norm(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let axis = axis_of(node.int("axis", -1), x.shape().len())?;
        let p = node.int("p", 2);
        let x = Self::made(&x)?;
        self.across(
            "lp_normalization",
            attributes([("p", p as f64)]),
            &x,
            &[axis],
            x.kind,
        )
    }

    /// Groups of dimensions for a map: images and channels, rows, columns.
    pub(super) fn map_groups(rank: usize) -> Groups {
        match rank {
            3 => [vec![1], vec![0], vec![2]],
            4 => [vec![0, 1], vec![2], vec![3]],
            _ => [
                (0..rank.saturating_sub(2)).collect(),
                vec![rank - 2],
                vec![rank - 1],
            ],
        }
    }
}
