//! Pools over windows and over whole maps, and sums over neighbouring channels.

use super::Reader;
use super::array::{Array, elements, types};
use super::builder::{MOST, Made, numbers};
use super::node::Node;
use super::value::{Tensor, Value};
use super::window::Sides;
use crate::front::{Action, Window};
use crate::network::Kind;

impl Reader<'_> {
    pub(super) fn pool(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let shape = x.shape();
        if shape.len() < 3 {
            return Err(format!("of {shape:?} it is not supported"));
        }
        let kernel = node
            .ints("kernel_shape")
            .ok_or("its kernel is missing")?
            .to_vec();
        let window = Sides::of(node, &shape[2..], kernel)?;
        match node.kind {
            "MaxPool" => self.pooled_over(&x, &window, true, false),
            "AveragePool" => {
                let padded = node.int("count_include_pad", 0) != 0;
                self.averaged(&x, &window, padded)
            }
            _ => {
                let is_square = node.int("p", 2) == 2;
                let p = node.int("p", 2) as f64;
                let power = Value::Array(Array::scalar(types::FLOAT, p));
                let x = self.unary("Abs", &x)?;
                let x = if is_square {
                    self.unary("Square", &x)?
                } else {
                    self.binary("Pow", &x, &power)?
                };
                let mean = self.averaged(&x, &window, true)?;
                let count = elements(&window.kernel) as f64;
                let count = Value::Array(Array::scalar(types::FLOAT, count));
                let sum = self.binary("Mul", &mean, &count)?;
                if is_square {
                    return self.unary("Sqrt", &sum);
                }
                let root = Value::Array(Array::scalar(types::FLOAT, 1.0 / p));
                self.binary("Pow", &sum, &root)
            }
        }
    }

    /// The mean of each window, over what lies inside, or also over what is padded.
    fn averaged(&mut self, x: &Value, window: &Sides, padded: bool) -> Result<Value, String> {
        let shape = x.shape();
        // Windows that reach behind the padding count only what is there: known numbers for each row and column.
        let beyond = (0..window.kernel.len()).any(|d| {
            let end = (window.output[d] - 1) * window.stride[d] + window.span(d);
            end > shape[d + 2] + window.padding[d][0] + window.padding[d][1]
        });
        if !padded || !beyond {
            return self.pooled_over(x, window, false, padded);
        }
        let mut value = self.pooled_over(x, window, false, false)?;
        let rank = shape.len();
        for d in 0..window.kernel.len() {
            let [before, after] = window.padding[d];
            let ratio = |to: i64| {
                let first = to * window.stride[d] - before;
                let places = (0..window.kernel[d]).map(|tap| first + tap * window.dilation[d]);
                let inside = places
                    .clone()
                    .filter(|at| (0..shape[d + 2]).contains(at))
                    .count();
                let counted = places
                    .filter(|at| (-before..shape[d + 2] + after).contains(at))
                    .count();
                inside as f64 / counted.max(1) as f64
            };
            let ratios: Vec<f64> = (0..window.output[d]).map(ratio).collect();
            let mut beside = vec![1; rank];
            beside[d + 2] = window.output[d];
            let ratios = Value::Array(Array::new(beside, types::FLOAT, ratios));
            value = self.binary("Mul", &value, &ratios)?;
        }
        Ok(value)
    }

    /// A pooling over one or two sides at a time.
    fn pooled_over(
        &mut self,
        x: &Value,
        window: &Sides,
        largest: bool,
        padded: bool,
    ) -> Result<Value, String> {
        let tensor = Self::made(x)?;
        let shape = tensor.shape();
        let sides = window.kernel.len();
        // Rows and columns first, then depth.
        let (rows, columns) = if sides == 1 {
            (None, 0)
        } else {
            (Some(sides - 2), sides - 1)
        };
        let of_window = window.rows_and_columns(rows, columns);
        if of_window.dilation != [1, 1] {
            return self.dilated(x, window, largest);
        }
        let mut to = shape.clone();
        let mut pooled: Vec<usize> = rows.into_iter().chain([columns]).collect();
        for d in &mut pooled {
            *d += 2;
        }
        for d in &pooled {
            to[*d] = window.output[*d - 2];
        }
        let others: Vec<usize> = (0..shape.len()).filter(|d| !pooled.contains(d)).collect();
        let groups = match pooled[..] {
            [columns] => [others, Vec::new(), vec![columns]],
            [rows, columns] => [others, vec![rows], vec![columns]],
            _ => return Err(format!("over {sides} sides it is not supported")),
        };
        let value = self.pool_layer(&tensor, &groups, of_window, &to, [largest, padded])?;
        if sides < 3 {
            return Ok(value);
        }
        let rest = Sides {
            kernel: window.kernel[..sides - 2].to_vec(),
            stride: window.stride[..sides - 2].to_vec(),
            dilation: window.dilation[..sides - 2].to_vec(),
            padding: window.padding[..sides - 2].to_vec(),
            output: window.output[..sides - 2].to_vec(),
        };
        // What was pooled goes with the channels.
        let flat = [&to[..2], &to[2..sides]].concat();
        let rank = to.len();
        let order: Vec<usize> = [0, 1, rank - 2, rank - 1]
            .into_iter()
            .chain(2..rank - 2)
            .collect();
        let turned = value.transposed(&order)?;
        let lines = [&[to[0], to[1] * to[rank - 2] * to[rank - 1]], &flat[2..]].concat();
        let lines = self.reshaped(&turned, &lines)?;
        let lines = self.pooled_over(&lines, &rest, largest, padded)?;
        let shape = [
            &[to[0], to[1], to[rank - 2], to[rank - 1]],
            &rest.output[..],
        ]
        .concat();
        let value = self.reshaped(&lines, &shape)?;
        let order: Vec<usize> = [0, 1].into_iter().chain(4..rank).chain([2, 3]).collect();
        value.transposed(&order)
    }

    fn pool_layer(
        &mut self,
        tensor: &Tensor,
        groups: &super::value::Groups,
        window: Window,
        to: &[i64],
        [largest, padded]: [bool; 2],
    ) -> Result<Value, String> {
        let source = self.builder.arranged(tensor, groups)?;
        let output = [0, 1, 2].map(|g: usize| groups[g].iter().map(|d| to[*d]).product());
        let made = Made {
            kind: Kind::Pool,
            output,
            action: if largest {
                Action::MaxPool(window)
            } else {
                Action::AveragePool(window, padded)
            },
            element: self.builder.element(source),
        };
        let made = self.builder.layer_of(made, &[source], |layer| {
            (layer.kernel, layer.stride) = (window.kernel, window.stride);
        })?;
        Ok(Value::Tensor(Tensor::stored(made, to, groups, tensor.kind)))
    }

    /// A pooling whose elements do not lie side by side: the largest of, or the mean over, shifted views.
    fn dilated(&mut self, x: &Value, window: &Sides, largest: bool) -> Result<Value, String> {
        let shape = x.shape();
        let sides = window.kernel.len();
        let reaches_out = (0..sides).any(|d| {
            let [before, _] = window.padding[d];
            before > 0 || window.end(d) > shape[d + 2]
        });
        if !largest && reaches_out {
            return Err("a mean over dilated windows with padding is not supported".to_owned());
        }
        let seen = self.windows(x, window, if largest { -MOST } else { 0.0 })?;
        let axes: Vec<usize> = (2..sides + 2).collect();
        let name = if largest { "reduce_max" } else { "reduce_mean" };
        self.reduced(name, &seen, &axes, false)
    }

    pub(super) fn global_pool(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let axes: Vec<usize> = (2..x.shape().len()).collect();
        let name = match node.kind {
            "GlobalAveragePool" => "reduce_mean",
            "GlobalMaxPool" => "reduce_max",
            _ if node.int("p", 2) == 1 => "reduce_l1",
            _ => "reduce_l2",
        };
        self.reduced(name, &x, &axes, true)
    }

    /// Each channel by the squares of its neighbours.
    pub(super) fn local_response(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let (size, c) = (node.int("size", 1), x.shape()[1]);
        let (alpha, beta) = (node.float("alpha", 0.0001), node.float("beta", 0.75));
        let before = (size - 1) / 2;
        let near = |at: i64| {
            let (to, from) = (at / c, at % c);
            let inside = (to - before..=to + size - 1 - before).contains(&from);
            if inside { alpha / size as f64 } else { 0.0 }
        };
        let band = numbers(vec![c, c], (0..c * c).map(near).collect());
        let squares = self.unary("Square", &x)?;
        let squares = Self::made(&squares)?;
        let sums = self.linear(&squares, 1, band, c, false)?;
        // The channels stand first there.
        let rank = x.shape().len();
        let order: Vec<usize> = [1, 0].into_iter().chain(2..rank).collect();
        let sums = sums.transposed(&order)?;
        let one = Value::Array(Array::scalar(types::FLOAT, node.float("bias", 1.0)));
        let sums = self.binary("Add", &sums, &one)?;
        let beta = Value::Array(Array::scalar(types::FLOAT, beta));
        let divisor = self.binary("Pow", &sums, &beta)?;
        self.binary("Div", &x, &divisor)
    }
}
