//! Convolutions and pools, of lines, maps and volumes.

use super::Reader;
use super::array::{Array, elements, types};
use super::builder::{Made, numbers};
use super::node::Node;
use super::value::{Tensor, Value};
use crate::front::{Action, Element, Named, View, Window};
use crate::network::Kind;
use chipless_gemini::strided::Axis;
use serde_json::Map;

/// Elements that one of a result may need, at most: a core must hold them and as many weights.
const MOST_TAPS: i64 = 1 << 16;

/// A window over any number of sides.
#[derive(Clone)]
pub(super) struct Sides {
    pub(super) kernel: Vec<i64>,
    pub(super) stride: Vec<i64>,
    pub(super) dilation: Vec<i64>,
    /// Before and behind.
    pub(super) padding: Vec<[i64; 2]>,
    /// Extents of the result.
    pub(super) output: Vec<i64>,
}

impl Sides {
    /// What a node says of its window over an input of these sides.
    pub(super) fn of(node: &Node<'_>, input: &[i64], kernel: Vec<i64>) -> Result<Sides, String> {
        let sides = input.len();
        let list = |name: &str| {
            node.ints(name)
                .map_or_else(|| vec![1; sides], <[i64]>::to_vec)
        };
        let (stride, dilation) = (list("strides"), list("dilations"));
        let pads = node
            .ints("pads")
            .map_or_else(|| vec![0; 2 * sides], <[i64]>::to_vec);
        let fits =
            [kernel.len(), stride.len(), dilation.len()] == [sides; 3] && pads.len() == 2 * sides;
        let positive = kernel
            .iter()
            .chain(&stride)
            .chain(&dilation)
            .all(|v| (1..1 << 20).contains(v));
        if !fits || !positive {
            return Err(format!("a window of {kernel:?} over {input:?}"));
        }
        let mut window = Sides {
            padding: (0..sides).map(|d| [pads[d], pads[d + sides]]).collect(),
            kernel,
            stride,
            dilation,
            output: Vec::new(),
        };
        let same = node.text("auto_pad").unwrap_or("NOTSET");
        for (d, extent) in input.iter().enumerate() {
            let span = window.span(d);
            if same.starts_with("SAME") {
                let to = (extent - 1) / window.stride[d] + 1;
                let all = ((to - 1) * window.stride[d] + span - extent).max(0);
                window.padding[d] = if same == "SAME_LOWER" {
                    [all - all / 2, all / 2]
                } else {
                    [all / 2, all - all / 2]
                };
            } else if same == "VALID" {
                window.padding[d] = [0, 0];
            }
            let [before, after] = window.padding[d];
            let room = extent + before + after - span;
            let ceiling = node.int("ceil_mode", 0) != 0;
            let mut to = if ceiling {
                (room + window.stride[d] - 1).div_euclid(window.stride[d]) + 1
            } else {
                room.div_euclid(window.stride[d]) + 1
            };
            // The last window begins inside of the input or its first padding.
            if ceiling && (to - 1) * window.stride[d] >= extent + before {
                to -= 1;
            }
            if to < 1 {
                return Err(format!(
                    "a window of {span} elements over {}",
                    extent + before + after
                ));
            }
            window.output.push(to);
        }
        Ok(window)
    }

    pub(super) fn span(&self, d: usize) -> i64 {
        (self.kernel[d] - 1) * self.dilation[d] + 1
    }

    /// Where the last window ends, counted from the first element.
    pub(super) fn end(&self, d: usize) -> i64 {
        (self.output[d] - 1) * self.stride[d] + self.span(d) - self.padding[d][0]
    }

    /// Rows and columns of two sides, of which the first may be none.
    pub(super) fn rows_and_columns(&self, rows: Option<usize>, columns: usize) -> Window {
        let side = |of: &[i64], d: Option<usize>| d.map_or(1, |d| of[d]);
        let pad = |d: Option<usize>| d.map_or([0, 0], |d| self.padding[d].map(|pad| pad.max(0)));
        let ([top, bottom], [left, right]) = (pad(rows), pad(Some(columns)));
        let pair = |of: &[i64]| [side(of, rows), side(of, Some(columns))];
        Window {
            kernel: pair(&self.kernel),
            stride: pair(&self.stride),
            padding: [top, bottom, left, right],
            dilation: pair(&self.dilation),
        }
    }
}

impl Reader<'_> {
    pub(super) fn convolution(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let (x, weight) = (node.input(0)?.clone(), node.input(1)?.clone());
        let (shape, of) = (x.shape(), weight.shape());
        if shape.len() < 3 || of.len() != shape.len() {
            return Err(format!("weights of {of:?} over {shape:?}"));
        }
        let window = Sides::of(node, &shape[2..], of[2..].to_vec())?;
        let bias = node.optional(2).cloned();
        self.convolved(&x, &weight, bias.as_ref(), &window, node.int("group", 1))
    }

    fn convolved(
        &mut self,
        x: &Value,
        weight: &Value,
        bias: Option<&Value>,
        window: &Sides,
        groups: i64,
    ) -> Result<Value, String> {
        let (Value::Array(of), None | Some(Value::Array(_))) = (weight, bias) else {
            return self.unfolded(x, weight, bias, window, groups);
        };
        let bias = match bias {
            Some(Value::Array(bias)) => Some(bias),
            _ => None,
        };
        self.convolved_with(x, of, bias, window, groups)
    }

    /// A convolution with weights and biases that are known.
    fn convolved_with(
        &mut self,
        x: &Value,
        weight: &Array,
        bias: Option<&Array>,
        window: &Sides,
        groups: i64,
    ) -> Result<Value, String> {
        let shape = x.shape();
        let (n, c, k) = (shape[0], shape[1], weight.shape[0]);
        if groups < 1 || k % groups != 0 || weight.shape[1] * groups != c {
            return Err(format!(
                "{c} channels arrive; weights of {:?}, group={groups}, expect {}",
                weight.shape,
                weight.shape[1] * groups
            ));
        }
        // What is padded by less than nothing is cut.
        let cut: Vec<[i64; 2]> = [[0, 0]; 2]
            .into_iter()
            .chain(window.padding.iter().map(|pad| pad.map(|pad| pad.min(0))))
            .collect();
        let x = self.padded(x, &cut, 0.0)?;
        let sides = window.kernel.len();
        let mut inside = window.clone();
        for pad in &mut inside.padding {
            *pad = pad.map(|pad| pad.max(0));
        }
        let of_images = |reader: &mut Self| -> Result<Value, String> {
            let images = (0..n).map(|image| {
                let one = x.sliced(0, image, 1, 1)?;
                reader.convolved_with(&one, weight, bias, &inside, groups)
            });
            let images = images.collect::<Result<Vec<_>, _>>()?;
            reader.joined(&images, 0)
        };
        let (arrangement, of_window) = match sides {
            1 => (
                [vec![1], vec![0], vec![2]],
                window.rows_and_columns(None, 0),
            ),
            2 if n == 1 => (
                [vec![1], vec![2], vec![3]],
                window.rows_and_columns(Some(0), 1),
            ),
            3 if n == 1 => return self.volume(&x, weight, bias, &inside, groups),
            2 | 3 => return of_images(self),
            _ => return Err(format!("over {sides} sides it is not supported")),
        };
        let span: i64 = (0..sides).map(|d| window.span(d)).product();
        if groups == 1 && window.dilation.iter().any(|d| *d > 1) && c * span > MOST_TAPS {
            // What lies between the elements of the window is not needed.
            let bias = bias.map(|bias| Value::Array(bias.clone()));
            let weight = Value::Array(weight.clone());
            return self.unfolded(&x, &weight, bias.as_ref(), &inside, groups);
        }
        let taps: i64 = window.kernel.iter().product();
        if groups == 1 && c > 1 && c * taps > MOST_TAPS {
            return self.summed(&x, weight, bias, &inside, MOST_TAPS / taps);
        }
        let tensor = Self::made(&x)?;
        let tensor = self.real(&tensor)?;
        let source = self.builder.arranged(&tensor, &arrangement)?;
        let mut to = vec![n, k];
        to.extend(&window.output);
        let output = [0, 1, 2].map(|g: usize| arrangement[g].iter().map(|d| to[*d]).product());
        let [rows, columns] = of_window.kernel;
        let made = Made {
            kind: if groups > 1 {
                Kind::GroupConv
            } else {
                Kind::Conv
            },
            output,
            action: Action::Weighted {
                window: of_window,
                weight: numbers(vec![k, c / groups, rows, columns], weight.values.to_vec()),
                columns: false,
                bias: bias.map(|bias| numbers(vec![k], bias.values.to_vec())),
            },
            element: Element::Float16,
        };
        let made = self.builder.layer_of(made, &[source], |layer| {
            (layer.channels, layer.groups) = (c, groups);
            (layer.kernel, layer.stride) = (of_window.kernel, of_window.stride);
        })?;
        Ok(Value::Tensor(Tensor::stored(
            made,
            &to,
            &arrangement,
            types::FLOAT,
        )))
    }

    /// A convolution as the sum of convolutions of `each` channels: a core has no room for what one element of all of them needs.
    fn summed(
        &mut self,
        x: &Value,
        weight: &Array,
        bias: Option<&Array>,
        window: &Sides,
        each: i64,
    ) -> Result<Value, String> {
        let (c, each) = (x.shape()[1], each.max(1));
        let mut sum: Option<Value> = None;
        for first in (0..c).step_by(each as usize) {
            let count = each.min(c - first);
            let part = x.sliced(1, first, count, 1)?;
            let places: Vec<i64> = (first..first + count).collect();
            let of_part = weight.taken(1, &places)?;
            let bias = bias.filter(|_| first == 0);
            let value = self.convolved_with(&part, &of_part, bias, window, 1)?;
            sum = Some(match sum {
                Some(sum) => self.binary("Add", &sum, &value)?,
                None => value,
            });
        }
        sum.ok_or_else(|| "it has no channels".to_owned())
    }

    /// A convolution over depth, rows and columns: one over rows and columns for each depth of the result.
    fn volume(
        &mut self,
        x: &Value,
        weight: &Array,
        bias: Option<&Array>,
        window: &Sides,
        groups: i64,
    ) -> Result<Value, String> {
        let shape = x.shape();
        let (c, depth, k) = (shape[1], shape[2], weight.shape[0]);
        let each = c / groups;
        let flat = Sides {
            kernel: window.kernel[1..].to_vec(),
            stride: window.stride[1..].to_vec(),
            dilation: window.dilation[1..].to_vec(),
            padding: window.padding[1..].to_vec(),
            output: window.output[1..].to_vec(),
        };
        let mut layers = Vec::new();
        for to in 0..window.output[0] {
            let first = to * window.stride[0] - window.padding[0][0];
            let taps: Vec<i64> = (0..window.kernel[0])
                .filter(|tap| (0..depth).contains(&(first + tap * window.dilation[0])))
                .collect();
            let Some(tap) = taps.first() else {
                return Err("a window that lies in the padding".to_owned());
            };
            let count = taps.len() as i64;
            let part = x.sliced(
                2,
                first + tap * window.dilation[0],
                count,
                window.dilation[0],
            )?;
            let flattened = self.reshaped(&part, &[1, c * count, shape[3], shape[4]])?;
            let taken = weight.taken(2, &taps)?;
            let of = [k, each * count, window.kernel[1], window.kernel[2]];
            let taken = taken.reshaped(of.to_vec());
            let map = self.convolved_with(&flattened, &taken, bias, &flat, groups)?;
            layers.push(map.unsqueezed(2)?);
        }
        self.joined(&layers, 2)
    }

    /// What each window sees: N, C, for each side which element of the window, and for each side where the window stands.
    pub(super) fn windows(
        &mut self,
        x: &Value,
        window: &Sides,
        fill: f64,
    ) -> Result<Value, String> {
        let (shape, sides) = (x.shape(), window.kernel.len());
        let pad = |d: usize| [window.padding[d][0], (window.end(d) - shape[d + 2]).max(0)];
        let pads: Vec<[i64; 2]> = [[0, 0]; 2].into_iter().chain((0..sides).map(pad)).collect();
        let x = self.padded(x, &pads, fill)?;
        x.viewed(|dims| {
            let steps = dims[2..].iter().map(|(_, stride)| *stride);
            let elements = steps.clone().zip(&window.dilation).map(|(s, d)| s * d);
            let places = steps.zip(&window.stride).map(|(s, d)| s * d);
            let mut seen = dims[..2].to_vec();
            seen.extend(window.kernel.iter().copied().zip(elements));
            seen.extend(window.output.iter().copied().zip(places));
            (seen, 0)
        })
    }

    /// A convolution with weights that the network computes: what each window sees as a line, times the weights.
    fn unfolded(
        &mut self,
        x: &Value,
        weight: &Value,
        bias: Option<&Value>,
        window: &Sides,
        groups: i64,
    ) -> Result<Value, String> {
        let (shape, of) = (x.shape(), weight.shape());
        let (n, c, k, sides) = (shape[0], shape[1], of[0], window.kernel.len());
        let seen = self.windows(x, window, 0.0)?;
        let (taps, places) = (elements(&window.kernel), elements(&window.output));
        let seen = self.reshaped(&seen, &[n, groups, c / groups * taps, places])?;
        let weight = self.reshaped(weight, &[1, groups, k / groups, c / groups * taps])?;
        let product = self.product(&weight, &seen)?;
        let mut to = vec![n, k];
        to.extend(&window.output);
        let value = self.reshaped(&product, &to)?;
        match bias {
            None => Ok(value),
            Some(bias) => {
                let mut beside = vec![1; sides + 1];
                beside[0] = k;
                let bias = self.reshaped(bias, &beside)?;
                self.binary("Add", &value, &bias)
            }
        }
    }

    /// A transposed convolution: a convolution of the input with zeros between its elements.
    pub(super) fn transposed_convolution(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let weight = node.input(1)?.clone();
        let (shape, of_weight) = (x.shape(), weight.shape());
        if shape.len() < 3 || of_weight.len() != shape.len() {
            return Err(format!("weights of {of_weight:?} over {shape:?}"));
        }
        let sides = shape.len() - 2;
        let kernel = of_weight[2..].to_vec();
        let list = |name: &str, of: i64| {
            node.ints(name)
                .map_or_else(|| vec![of; sides], <[i64]>::to_vec)
        };
        let (stride, dilation, extra) = (
            list("strides", 1),
            list("dilations", 1),
            list("output_padding", 0),
        );
        let pads = node
            .ints("pads")
            .map_or_else(|| vec![0; 2 * sides], <[i64]>::to_vec);
        let groups = node.int("group", 1).max(1);
        let wanted = node.ints("output_shape");
        let same = node.text("auto_pad").unwrap_or("NOTSET");
        let (mut padding, mut output) = (Vec::new(), Vec::new());
        for d in 0..sides {
            let span = (kernel[d] - 1) * dilation[d] + 1;
            let full = stride[d] * (shape[d + 2] - 1) + extra[d] + span;
            let mut pad = [pads[d], pads[d + sides]];
            let to = match wanted {
                Some(wanted) => Some(wanted[wanted.len() - sides + d]),
                None if same.starts_with("SAME") => Some(shape[d + 2] * stride[d]),
                None => None,
            };
            if let Some(to) = to {
                let all = (full - to).max(0);
                let small = all / 2;
                pad = if same == "SAME_UPPER" {
                    [small, all - small]
                } else {
                    [all - small, small]
                };
            }
            let to = to.unwrap_or(full - pad[0] - pad[1]);
            output.push(to);
            padding.push([span - 1 - pad[0], 0]);
        }
        let spread = self.spread_out(&x, &stride)?;
        // Zeros behind the last element as far as the last window reaches.
        let of = spread.shape();
        for d in 0..sides {
            let span = (kernel[d] - 1) * dilation[d] + 1;
            padding[d][1] = output[d] - 1 + span - padding[d][0] - of[d + 2];
        }
        // Weights C, K of a group, … become K, C of a group, … from the last element to the first.
        let (c, each) = (of_weight[0], of_weight[1]);
        let flipped = weight.viewed(|dims| {
            let mut turned = vec![
                (groups, dims[0].1 * (c / groups)),
                dims[1],
                (c / groups, dims[0].1),
            ];
            let mut offset = 0;
            for (extent, step) in &dims[2..] {
                turned.push((*extent, -step));
                offset += (extent - 1) * step;
            }
            (turned, offset)
        })?;
        let to = [&[groups * each, c / groups], &kernel[..]].concat();
        let flipped = self.reshaped(&flipped, &to)?;
        let window = Sides {
            kernel,
            stride: vec![1; sides],
            dilation,
            padding,
            output,
        };
        let bias = node.optional(2).cloned();
        self.convolved(&spread, &flipped, bias.as_ref(), &window, groups)
    }

    /// Zeros between the elements of each side, one fewer than the strides say.
    fn spread_out(&mut self, x: &Value, stride: &[i64]) -> Result<Value, String> {
        if stride.iter().all(|stride| *stride == 1) {
            return Ok(x.clone());
        }
        let tensor = Self::made(x)?;
        let shape = tensor.shape();
        let groups = Self::map_groups(shape.len());
        let mut to = shape.clone();
        for (d, stride) in stride.iter().enumerate() {
            to[d + 2] *= stride;
        }
        let mut axes = Vec::new();
        for d in groups.iter().flatten() {
            let (extent, own) = tensor.dims[*d];
            axes.push(Axis {
                extent: extent as u64,
                stride: own,
                valid: [0, extent as u64],
            });
            if let Some(between) = d.checked_sub(2).map(|d| stride[d]).filter(|s| *s > 1) {
                axes.push(Axis {
                    extent: between as u64,
                    stride: 0,
                    valid: [0, 1],
                });
            }
        }
        let view = View {
            axes,
            offset: tensor.offset,
            fill: 0.0,
        };
        let output = [0, 1, 2].map(|g: usize| groups[g].iter().map(|d| to[*d]).product());
        let made = self.builder.strided(tensor.source, view, output)?;
        Ok(Value::Tensor(Tensor::stored(
            made,
            &to,
            &groups,
            tensor.kind,
        )))
    }

    /// An operation that does nothing but copy.
    pub(super) fn identity(&mut self, tensor: &Tensor) -> Result<Tensor, String> {
        let groups = self.builder.storage(tensor);
        let source = self.builder.arranged(tensor, &groups)?;
        let named = Named {
            name: "quantize",
            attributes: Map::new(),
            across: false,
        };
        let extents = self.builder.extents(source);
        let element = self.builder.element(source);
        let made = self.builder.vector(named, extents, &[source], element)?;
        Ok(Tensor::stored(made, &tensor.shape(), &groups, tensor.kind))
    }
}
