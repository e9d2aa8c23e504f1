//! What a network computes, in real numbers: layer by layer, as the front end has it, without its quantisation.

use crate::front::{
    Action, Activation, Arithmetic, Front, Function, Move, Numbers, Operand, Operation, Source,
    Window,
};
use crate::network::Layer;
use chipless_kernels::{Update, window};
use std::f64::consts::{PI, SQRT_2};

/// Numbers in the order of channels, rows, columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    /// Channels, rows, columns.
    pub extents: [usize; 3],
    /// The numbers.
    pub values: Vec<f32>,
}

impl Map {
    fn zeros(extents: [usize; 3]) -> Map {
        Map {
            extents,
            values: vec![0.0; extents.iter().product()],
        }
    }

    fn channel(&self, channel: usize) -> &[f32] {
        let [_, rows, columns] = self.extents;
        &self.values[channel * rows * columns..][..rows * columns]
    }

    /// Row by row, channels innermost.
    fn by_place(&self) -> Vec<f32> {
        let [channels, rows, columns] = self.extents;
        let places = rows * columns;
        let mut turned = vec![0.0; self.values.len()];
        for channel in 0..channels {
            for (place, value) in self.channel(channel).iter().enumerate() {
                turned[place * channels + channel] = *value;
            }
        }
        debug_assert_eq!(turned.len(), places * channels);
        turned
    }
}

/// Computes the layers of a network for one image, in order. `visit` sees the result of each and may change it: what reads the layer then reads
/// that. Gives the outputs.
///
/// # Errors
/// The layer that this cannot compute, or the constant that is not there.
pub fn compute(
    front: &Front,
    inputs: &[Map],
    visit: &mut dyn FnMut(usize, &mut Map),
) -> Result<Vec<Map>, String> {
    let layers = &front.network.layers;
    let mut last = vec![0; layers.len()];
    for (reader, operation) in front.operations.iter().enumerate() {
        for operand in &operation.operands {
            note_readers(operand, reader, &mut last);
        }
    }
    for operand in &front.outputs {
        note_readers(operand, layers.len(), &mut last);
    }
    let mut ends = vec![Vec::new(); layers.len() + 1];
    for (layer, last) in last.into_iter().enumerate() {
        ends[last].push(layer);
    }
    let mut state = State {
        front,
        inputs,
        results: Vec::with_capacity(layers.len()),
    };
    for (index, (operation, layer)) in front.operations.iter().zip(layers).enumerate() {
        let mut result = state
            .layer(operation, layer)
            .map_err(|text| format!("`{}`: {text}", layer.name))?;
        visit(index, &mut result);
        state.results.push(result);
        // What nothing reads any more makes room.
        for layer in &ends[index] {
            state.results[*layer] = Map::default();
        }
    }
    front
        .outputs
        .iter()
        .map(|operand| state.operand(operand))
        .collect()
}

fn note_readers(operand: &Operand, reader: usize, last: &mut [usize]) {
    for piece in &operand.pieces {
        if let Source::Layer(layer) = piece.source {
            last[layer] = last[layer].max(reader);
        }
    }
}

struct State<'f> {
    front: &'f Front,
    inputs: &'f [Map],
    results: Vec<Map>,
}

impl State<'_> {
    /// The pieces of an operand, one behind the other.
    fn operand(&self, operand: &Operand) -> Result<Map, String> {
        let mut values = Vec::new();
        let mut extents = [0; 3];
        for piece in &operand.pieces {
            let constant;
            let map = match piece.source {
                Source::Input(input) => self.inputs.get(input).ok_or("an input is missing")?,
                Source::Layer(layer) => &self.results[layer],
                Source::Constant(table) => {
                    let table = &self.front.constants[table];
                    let scale = table.scale.unwrap_or(1.0);
                    let values = table.values.clone()?;
                    constant = Map {
                        extents: table.extents.map(|extent| extent as usize),
                        values: values.iter().map(|v| (v * scale) as f32).collect(),
                    };
                    &constant
                }
            };
            let [from, to] = piece.channels.map(|channel| channel as usize);
            extents = [extents[0] + to - from, map.extents[1], map.extents[2]];
            let each = extents[1] * extents[2];
            let part = map.values.get(from * each..to * each);
            values.extend_from_slice(part.ok_or("an operand has fewer channels than are read")?);
        }
        Ok(Map { extents, values })
    }

    fn layer(&self, operation: &Operation, layer: &Layer) -> Result<Map, String> {
        let operands = operation.operands.iter();
        let operands: Vec<Map> = operands
            .map(|operand| self.operand(operand))
            .collect::<Result<_, _>>()?;
        let extents = layer.output.map(|extent| extent as usize);
        let first = operands.first().ok_or("it reads nothing")?;
        let mut result = match &operation.action {
            Action::Weighted { window, .. } => weighted(operation, layer, window, first)?,
            Action::Product => {
                let second = operands.get(1).ok_or("it reads one operand only")?;
                product(first, second, layer.groups as usize, extents)
            }
            Action::MaxPool(window) => pool(first, window, extents, None),
            Action::AveragePool(window, padded) => pool(first, window, extents, Some(*padded)),
            Action::Combine(arithmetic) => {
                let second = operands.get(1).ok_or("it reads one operand only")?;
                combine(*arithmetic, first, second, extents)
            }
            Action::Constant(arithmetic, numbers) => {
                let numbers = reals(numbers)?;
                by_channel(first, |channel, x| {
                    let one = numbers.get(channel).or(numbers.first()).copied();
                    apply(*arithmetic, x, one.unwrap_or(0.0))
                })
            }
            Action::Softmax(groups) => softmax(first, *groups as usize),
            Action::LayerNorm(factor, offset, epsilon) => {
                let offset = offset.as_ref().map(reals).transpose()?;
                layer_norm(first, &reals(factor)?, offset.as_deref(), *epsilon as f32)
            }
            Action::Affine(factor, offset) => {
                let (factor, offset) = (reals(factor)?, reals(offset)?);
                by_channel(first, |channel, x| x * factor[channel] + offset[channel])
            }
            Action::Function(function) => by_channel(first, |_, x| function.of(x.into()) as f32),
            Action::Move(how) => moved(*how, &operands, extents),
            Action::Named(_) | Action::Strided(_) | Action::Take(..) => {
                return Err("operations of fp16 networks are not computed here".to_owned());
            }
        };
        if result.extents != extents {
            return Err(format!(
                "it gives {:?}, the network says {extents:?}",
                result.extents
            ));
        }
        let bound = match operation.activation {
            Activation::None => return Ok(result),
            Activation::Relu => f32::INFINITY,
            Activation::Bounded(most) => most as f32,
        };
        for value in &mut result.values {
            *value = value.max(0.0).min(bound);
        }
        Ok(result)
    }
}

/// A constant tensor as real numbers.
fn reals(numbers: &Numbers) -> Result<Vec<f32>, String> {
    let values = numbers.values.clone()?;
    let Some((scales, axis)) = &numbers.scales else {
        return Ok(values.iter().map(|v| *v as f32).collect());
    };
    let inner: i64 = numbers
        .shape
        .get(axis + 1..)
        .unwrap_or(&[])
        .iter()
        .product();
    let along = numbers.shape.get(*axis).copied().unwrap_or(1).max(1) as usize;
    let scale = |at: usize| {
        let place = at / inner.max(1) as usize % along;
        scales.get(place).or(scales.first()).copied().unwrap_or(1.0)
    };
    let real = |(at, value): (usize, &f64)| (value * scale(at)) as f32;
    Ok(values.iter().enumerate().map(real).collect())
}

fn weighted(
    operation: &Operation,
    layer: &Layer,
    window: &Window,
    input: &Map,
) -> Result<Map, String> {
    let Action::Weighted {
        weight,
        columns,
        bias,
        ..
    } = &operation.action
    else {
        return Err("it has no weights".to_owned());
    };
    let stored = reals(weight)?;
    let outputs = layer.output[0] as usize;
    let inner = stored.len() / outputs.max(1);
    // K, C of a group, R, S.
    let weights = if *columns {
        let turned = (0..stored.len()).map(|at| stored[at % inner * outputs + at / inner]);
        turned.collect()
    } else {
        stored
    };
    let extents = layer.output.map(|extent| extent as usize);
    let groups = layer.groups.max(1) as usize;
    let mut result = if groups == 1 && window.dilation == [1, 1] {
        convolved(&weights, window, input, extents)?
    } else {
        by_taps(&weights, window, input, groups, extents)
    };
    if let Some(bias) = bias {
        let bias = reals(bias)?;
        result = by_channel(&result, |channel, x| {
            x + bias.get(channel).or(bias.first()).copied().unwrap_or(0.0)
        });
    }
    Ok(result)
}

/// A convolution over all channels.
fn convolved(
    weights: &[f32],
    window: &Window,
    input: &Map,
    [outputs, rows, columns]: [usize; 3],
) -> Result<Map, String> {
    let [channels, size_y, size_x] = input.extents;
    let [kernel_y, kernel_x] = window.kernel.map(|extent| extent as usize);
    let taps = kernel_y * kernel_x;
    // K, R, S, C.
    let mut by_tap = vec![0.0; weights.len()];
    for (at, weight) in weights.iter().enumerate() {
        let (k, c, tap) = (at / (channels * taps), at / taps % channels, at % taps);
        by_tap[(k * taps + tap) * channels + c] = *weight;
    }
    let shape = window::Window {
        size_x,
        size_y,
        channels,
        kernel_x,
        kernel_y,
        stride_x: window.stride[1] as usize,
        stride_y: window.stride[0] as usize,
        pad_left: window.padding[2] as usize,
        pad_up: window.padding[0] as usize,
        out_x: columns,
        out_y: rows,
    };
    let mut places = vec![0.0; outputs * rows * columns];
    window::convolve(
        &shape,
        &input.by_place(),
        &by_tap,
        outputs,
        &mut places,
        Update::Set,
    )
    .map_err(|error| error.to_string())?;
    let mut result = Map::zeros([outputs, rows, columns]);
    let each = rows * columns;
    for (at, value) in places.into_iter().enumerate() {
        result.values[at % outputs * each + at / outputs] = value;
    }
    Ok(result)
}

/// A convolution by groups or with holes, tap by tap.
fn by_taps(
    weights: &[f32],
    window: &Window,
    input: &Map,
    groups: usize,
    extents: [usize; 3],
) -> Map {
    let mut result = Map::zeros(extents);
    let [outputs, rows, columns] = extents;
    let (inputs, of_group) = (input.extents[0] / groups, outputs / groups);
    let [kernel_y, kernel_x] = window.kernel.map(|extent| extent as usize);
    for k in 0..outputs {
        let sums = &mut result.values[k * rows * columns..][..rows * columns];
        for c in 0..inputs {
            let channel = input.channel(k / of_group * inputs + c);
            for tap in 0..kernel_y * kernel_x {
                let weight = weights[(k * inputs + c) * kernel_y * kernel_x + tap];
                let places = Places::of(window, [tap / kernel_x, tap % kernel_x], input.extents);
                for (place, sum) in sums.iter_mut().enumerate() {
                    if let Some(at) = places.at(place / columns, place % columns) {
                        *sum += weight * channel[at];
                    }
                }
            }
        }
    }
    result
}

/// Where a tap of a window reads.
struct Places {
    stride: [i64; 2],
    first: [i64; 2],
    extents: [i64; 2],
}

impl Places {
    fn of(window: &Window, tap: [usize; 2], [_, rows, columns]: [usize; 3]) -> Places {
        let pad = [window.padding[0], window.padding[2]];
        Places {
            stride: window.stride,
            first: [0, 1].map(|d| tap[d] as i64 * window.dilation[d] - pad[d]),
            extents: [rows as i64, columns as i64],
        }
    }

    fn at(&self, row: usize, column: usize) -> Option<usize> {
        let y = row as i64 * self.stride[0] + self.first[0];
        let x = column as i64 * self.stride[1] + self.first[1];
        let inside = (0..self.extents[0]).contains(&y) && (0..self.extents[1]).contains(&x);
        inside.then_some((y * self.extents[1] + x) as usize)
    }
}

/// The largest of each window, or its mean: then it is said whether what is padded counts.
fn pool(input: &Map, window: &Window, extents: [usize; 3], mean: Option<bool>) -> Map {
    let mut result = Map::zeros(extents);
    let [channels, rows, columns] = extents;
    let [kernel_y, kernel_x] = window.kernel.map(|extent| extent as usize);
    let taps: Vec<Places> = (0..kernel_y * kernel_x)
        .map(|tap| Places::of(window, [tap / kernel_x, tap % kernel_x], input.extents))
        .collect();
    for channel in 0..channels {
        let values = input.channel(channel);
        for place in 0..rows * columns {
            let read = taps.iter();
            let read =
                read.filter_map(|tap| Some(values[tap.at(place / columns, place % columns)?]));
            result.values[channel * rows * columns + place] = match mean {
                None => read.fold(f32::NEG_INFINITY, f32::max),
                Some(padded) => {
                    let (sum, count) = read.fold((0.0, 0), |(sum, n), v| (sum + v, n + 1));
                    let count = if padded { taps.len() } else { count };
                    sum / count.max(1) as f32
                }
            };
        }
    }
    result
}

/// `out[g·K + k][l] = Σ x[g·M + m][l] · y[g·K + k][m]`.
fn product(x: &Map, y: &Map, groups: usize, extents: [usize; 3]) -> Map {
    let mut result = Map::zeros(extents);
    let [outputs, rows, columns] = extents;
    let (inner, of_group) = (x.extents[0] / groups, outputs / groups);
    let places = rows * columns;
    for k in 0..outputs {
        let factors = y.channel(k);
        let sums = &mut result.values[k * places..][..places];
        for (m, factor) in factors.iter().enumerate().take(inner) {
            let values = x.channel(k / of_group * inner + m);
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += factor * value;
            }
        }
    }
    result
}

fn apply(arithmetic: Arithmetic, a: f32, b: f32) -> f32 {
    match arithmetic {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        Arithmetic::Divide => a / b,
    }
}

/// Two operands, element by element; an extent of one is for all.
fn combine(arithmetic: Arithmetic, a: &Map, b: &Map, extents: [usize; 3]) -> Map {
    let mut result = Map::zeros(extents);
    let [_, rows, columns] = extents;
    let at = |of: &Map, place: [usize; 3]| {
        let [channels, h, w] = of.extents;
        let [c, y, x] = [0, 1, 2].map(|d| {
            if [channels, h, w][d] == 1 {
                0
            } else {
                place[d]
            }
        });
        of.values[(c * h + y) * w + x]
    };
    for (n, value) in result.values.iter_mut().enumerate() {
        let place = [n / (rows * columns), n / columns % rows, n % columns];
        *value = apply(arithmetic, at(a, place), at(b, place));
    }
    result
}

fn by_channel(input: &Map, function: impl Fn(usize, f32) -> f32) -> Map {
    let each = (input.extents[1] * input.extents[2]).max(1);
    let values = input.values.iter().enumerate();
    Map {
        extents: input.extents,
        values: values.map(|(n, x)| function(n / each, *x)).collect(),
    }
}

/// Over the channels of each place, by groups.
fn softmax(input: &Map, groups: usize) -> Map {
    let mut result = input.clone();
    let [channels, rows, columns] = input.extents;
    let (places, each) = (rows * columns, channels / groups.max(1));
    for group in 0..groups {
        for place in 0..places {
            let at = |channel: usize| (group * each + channel) * places + place;
            let most = (0..each).map(|c| input.values[at(c)]);
            let most = most.fold(f32::NEG_INFINITY, f32::max);
            let powers: Vec<f32> = (0..each)
                .map(|c| (input.values[at(c)] - most).exp())
                .collect();
            let sum: f32 = powers.iter().sum();
            for (channel, power) in powers.into_iter().enumerate() {
                result.values[at(channel)] = power / sum;
            }
        }
    }
    result
}

/// Over the channels of each place.
fn layer_norm(input: &Map, factor: &[f32], offset: Option<&[f32]>, epsilon: f32) -> Map {
    let mut result = input.clone();
    let [channels, rows, columns] = input.extents;
    let places = rows * columns;
    for place in 0..places {
        let all = || (0..channels).map(|channel| input.values[channel * places + place]);
        let mean = all().sum::<f32>() / channels as f32;
        let variance = all().map(|x| (x - mean) * (x - mean)).sum::<f32>() / channels as f32;
        let deviation = (variance + epsilon).sqrt();
        for (channel, x) in all().enumerate() {
            let of = |numbers: &[f32]| numbers.get(channel).or(numbers.first()).copied();
            let (factor, offset) = (of(factor).unwrap_or(1.0), offset.and_then(of));
            result.values[channel * places + place] =
                (x - mean) / deviation * factor + offset.unwrap_or(0.0);
        }
    }
    result
}

fn moved(how: Move, operands: &[Map], extents: [usize; 3]) -> Map {
    let mut result = Map::zeros(extents);
    let [_, rows, columns] = extents;
    let Some(first) = operands.first() else {
        return result;
    };
    if how == Move::Reshape {
        result.values.clone_from(&first.values);
        return result;
    }
    for (n, value) in result.values.iter_mut().enumerate() {
        let mut place = [n / (rows * columns), n / columns % rows, n % columns];
        let mut from = first;
        match how {
            Move::Exchange => place.swap(0, 1),
            Move::Slice(axis, start) => place[axis] += start as usize,
            Move::Concat(axis) => {
                for operand in operands {
                    from = operand;
                    if place[axis] < operand.extents[axis] {
                        break;
                    }
                    place[axis] -= operand.extents[axis];
                }
            }
            Move::Repeat([down, across]) => {
                place[1] /= down as usize;
                place[2] /= across as usize;
            }
            Move::Reshape => {}
        }
        let [_, h, w] = from.extents;
        *value = from.values[(place[0] * h + place[1]) * w + place[2]];
    }
    result
}

impl Function {
    /// Of a number.
    pub fn of(self, x: f64) -> f64 {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let hard = |alpha: f64, beta: f64| (alpha * x + beta).clamp(0.0, 1.0);
        // Without a large power, whatever x is.
        let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
        match self {
            Function::Gelu => 0.5 * x * (1.0 + libm::erf(x / SQRT_2)),
            Function::GeluByTanh => {
                0.5 * x * (1.0 + ((2.0 / PI).sqrt() * (x + 0.044_715 * x * x * x)).tanh())
            }
            Function::Sigmoid => sigmoid(x),
            Function::Tanh => x.tanh(),
            Function::Erf => libm::erf(x),
            Function::HardSigmoid(alpha, beta) => hard(alpha, beta),
            Function::HardSwish => x * hard(1.0 / 6.0, 0.5),
            Function::Swish(alpha) => x * sigmoid(alpha * x),
            Function::LeakyRelu(alpha) => {
                if x < 0.0 {
                    alpha * x
                } else {
                    x
                }
            }
            Function::Elu(alpha) => {
                if x < 0.0 {
                    alpha * x.exp_m1()
                } else {
                    x
                }
            }
            Function::Softplus => softplus(x),
            Function::Mish => x * softplus(x).tanh(),
            Function::Clip(least, most) => x.max(least).min(most),
            Function::Identity => x,
        }
    }
}
