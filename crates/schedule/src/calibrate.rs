//! How integers stand for numbers, from data: what each tensor holds for some inputs decides its scale. And what 8 bits cost: the network in
//! real numbers beside the same with every tensor in its steps.

use crate::compute::{Map, compute};
use crate::emit::scales::{Scales, scales, taken};
use crate::front::{
    Action, Front, Function, Move, Numbers, Operand, Operation, Quantisation, Source,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::rc::Rc;

/// Bins of a histogram.
const BINS: usize = 2048;
/// Steps of 8 bits.
const STEPS: f64 = 255.0;
/// What a percentile leaves out at either end.
const TAIL: f64 = 1e-4;
/// Relative error from which a layer is named.
const POOR: f64 = 0.5;
/// Distinct values from which on a layer is no more named.
const FEW: usize = 8;

/// How the range of a tensor follows from what it held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// From the least to the greatest.
    #[default]
    MinMax,
    /// Without a ten-thousandth at either end.
    Percentile,
    /// That with the least mean square of the error, of clipping and rounding.
    MeanSquare,
}

/// What a tensor held.
#[derive(Clone, Debug)]
struct Held {
    least: f32,
    most: f32,
    /// How many numbers in each of the equal parts of the range; filled in a second pass.
    bins: Vec<u64>,
}

impl Held {
    fn new() -> Held {
        Held {
            least: 0.0,
            most: 0.0,
            bins: Vec::new(),
        }
    }

    fn see(&mut self, values: &[f32]) {
        for value in values.iter().filter(|value| value.is_finite()) {
            self.least = self.least.min(*value);
            self.most = self.most.max(*value);
        }
    }

    fn count(&mut self, values: &[f32]) {
        self.bins.resize(BINS, 0);
        let width = (self.most - self.least) / BINS as f32;
        for value in values.iter().filter(|value| value.is_finite()) {
            let bin = ((value - self.least) / width) as usize;
            self.bins[bin.min(BINS - 1)] += 1;
        }
    }

    /// The middle of a bin.
    fn middle(&self, bin: usize) -> f64 {
        let width = f64::from(self.most - self.least) / BINS as f64;
        f64::from(self.least) + (bin as f64 + 0.5) * width
    }

    fn range(&self, method: Method) -> [f64; 2] {
        let whole = [self.least.into(), self.most.into()];
        let all: u64 = self.bins.iter().sum();
        match method {
            _ if all == 0 => whole,
            Method::MinMax => whole,
            Method::Percentile => {
                let cut = (all as f64 * TAIL) as u64;
                let low = self
                    .past(0..BINS, cut)
                    .map_or(whole[0], |bin| self.middle(bin));
                let high = self.past((0..BINS).rev(), cut);
                let high = high.map_or(whole[1], |bin| self.middle(bin));
                [low.min(0.0), high.max(0.0)]
            }
            Method::MeanSquare => {
                let factors = (4..=20).rev().map(|n| f64::from(n) / 20.0);
                let ranges = factors.map(|factor| whole.map(|end| end * factor));
                let best = ranges
                    .map(|range| (self.square(range), range))
                    .min_by(|a, b| a.0.total_cmp(&b.0));
                best.map_or(whole, |(_, range)| range)
            }
        }
    }

    /// The bin before which there are so many numbers.
    fn past(&self, mut bins: impl Iterator<Item = usize>, cut: u64) -> Option<usize> {
        let mut seen = 0;
        bins.find(|bin| {
            seen += self.bins[*bin];
            seen > cut
        })
    }

    /// The sum of squares of what a range in 8 bits gets wrong.
    fn square(&self, [low, high]: [f64; 2]) -> f64 {
        let step = (high - low) / STEPS;
        let bins = self.bins.iter().enumerate().filter(|(_, n)| **n > 0);
        bins.map(|(bin, count)| {
            let value = self.middle(bin);
            let clipped = (value - value.clamp(low, high)).powi(2);
            (clipped + step * step / 12.0) * *count as f64
        })
        .sum()
    }
}

/// How 8 bits hold a range, which holds zero.
fn quantisation([low, high]: [f64; 2]) -> Quantisation {
    let scale = (high - low) / STEPS;
    if !(scale.is_finite() && scale > 0.0) {
        return Quantisation {
            scale: 1.0,
            zero: 0.0,
        };
    }
    let zero = (-128.0 - low / scale).round().clamp(-128.0, 127.0);
    Quantisation { scale, zero }
}

/// Sets how every tensor of a network of real numbers is stored, from what it holds for these images.
///
/// # Errors
/// A layer that cannot be computed; no images.
pub fn calibrate(front: &mut Front, images: &[Vec<Map>], method: Method) -> Result<(), String> {
    if images.is_empty() {
        return Err("expected at least one image to calibrate with, found none".to_owned());
    }
    let mut inputs = vec![Held::new(); front.inputs.len()];
    let mut layers = vec![Held::new(); front.operations.len()];
    let passes: &[fn(&mut Held, &[f32])] = match method {
        Method::MinMax => &[Held::see],
        Method::Percentile | Method::MeanSquare => &[Held::see, Held::count],
    };
    for pass in passes {
        for image in images {
            for (held, input) in inputs.iter_mut().zip(image) {
                pass(held, &input.values);
            }
            compute(front, image, &mut |layer, result| {
                pass(&mut layers[layer], &result.values);
            })?;
        }
    }
    for (input, held) in front.inputs.iter_mut().zip(&inputs) {
        input.quantisation = Some(quantisation(held.range(method)));
    }
    let ranges: Vec<[f64; 2]> = layers.iter().map(|held| held.range(method)).collect();
    for (index, range) in ranges.iter().enumerate() {
        let stored = kept(front, index).unwrap_or_else(|| quantisation(*range));
        front.operations[index].output = Some(stored);
    }
    let joined = |front: &Front, operand: &Operand| {
        let parts = operand.pieces.iter().map(|piece| match piece.source {
            Source::Input(input) => (
                front.inputs[input].quantisation,
                inputs[input].range(method),
            ),
            Source::Layer(layer) => (front.operations[layer].output, ranges[layer]),
            Source::Constant(_) => (None, [0.0; 2]),
        });
        let parts: Vec<_> = parts.collect();
        let differ = parts.windows(2).any(|pair| pair[0].0 != pair[1].0);
        let all = parts.iter().fold([0.0f64; 2], |all, (_, range)| {
            [all[0].min(range[0]), all[1].max(range[1])]
        });
        differ.then(|| quantisation(all))
    };
    for index in 0..front.operations.len() {
        for number in 0..front.operations[index].operands.len() {
            let stored = joined(front, &front.operations[index].operands[number]);
            let operand = &mut front.operations[index].operands[number];
            operand.quantisation = operand.quantisation.or(stored);
        }
    }
    front.is_calibrated = true;
    Ok(())
}

/// How the operand of a layer is stored that only chooses or moves numbers: its result is stored alike.
fn kept(front: &Front, index: usize) -> Option<Quantisation> {
    let operation = &front.operations[index];
    let moves = match &operation.action {
        Action::MaxPool(_) => true,
        Action::Move(how) => !matches!(how, Move::Concat(_)),
        Action::Function(Function::Identity) => {
            operation.activation == crate::front::Activation::None
        }
        _ => false,
    };
    let [operand] = &operation.operands[..] else {
        return None;
    };
    let [piece] = &operand.pieces[..] else {
        return None;
    };
    match piece.source {
        _ if !moves => None,
        Source::Input(input) => front.inputs[input].quantisation,
        Source::Layer(layer) => front.operations[layer].output,
        Source::Constant(_) => None,
    }
}

/// What 8 bits cost.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Comparison {
    /// Images that were computed both ways.
    pub images: usize,
    /// Whether they are random numbers.
    pub random: bool,
    /// Each output.
    pub outputs: Vec<OutputError>,
    /// Layers whose numbers are mostly lost, in order.
    pub poor: Vec<LayerError>,
}

/// How far off an output is.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct OutputError {
    /// Its place among the outputs, from 1 on.
    pub output: usize,
    /// Of the angle between both results.
    pub cosine: f64,
    /// Norm of the difference by the norm of the real numbers.
    pub relative_error: f64,
}

/// How far off a layer is.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct LayerError {
    /// Its name.
    pub layer: String,
    /// Norm of the difference by the norm of the real numbers.
    pub relative_error: f64,
    /// Different numbers that it gives, of 256.
    pub steps: usize,
}

/// Sums over two results.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    difference: f64,
    real: f64,
    stored: f64,
    product: f64,
}

impl Sums {
    fn add(&mut self, real: &[f32], stored: &[f32]) {
        for (real, stored) in real.iter().zip(stored) {
            let (real, stored) = (f64::from(*real), f64::from(*stored));
            self.difference += (real - stored) * (real - stored);
            self.real += real * real;
            self.stored += stored * stored;
            self.product += real * stored;
        }
    }

    fn relative(&self) -> f64 {
        if self.difference == 0.0 {
            0.0
        } else {
            (self.difference / self.real).sqrt()
        }
    }

    fn cosine(&self) -> f64 {
        if self.difference == 0.0 {
            1.0
        } else {
            self.product / (self.real * self.stored).sqrt().max(f64::MIN_POSITIVE)
        }
    }
}

/// Computes images in real numbers, and with weights and every result rounded as they are stored.
///
/// # Errors
/// A layer that cannot be computed, or a constant that is not there.
pub fn compare(front: &Front, images: &[Vec<Map>], random: bool) -> Result<Comparison, String> {
    let scales = scales(front)?;
    let rounded = rounded(front, &scales);
    let layers = front.operations.len();
    let mut outputs = vec![Sums::default(); front.outputs.len()];
    let mut sums = vec![Sums::default(); layers];
    let mut seen = vec![[false; 256]; layers];
    for image in images {
        let mut reals = Vec::with_capacity(layers);
        let real = compute(front, image, &mut |_, result| {
            reals.push(std::mem::take(&mut result.values));
            result
                .values
                .clone_from(reals.last().unwrap_or(&Vec::new()));
        })?;
        let mut stored_image = image.clone();
        for (input, stored) in stored_image.iter_mut().zip(&scales.inputs) {
            round(&mut input.values, *stored, &mut [false; 256]);
        }
        let stored = compute(&rounded, &stored_image, &mut |layer, result| {
            round(&mut result.values, scales.layers[layer], &mut seen[layer]);
            sums[layer].add(&reals[layer], &result.values);
            reals[layer] = Vec::new();
        })?;
        for ((sums, real), stored) in outputs.iter_mut().zip(&real).zip(&stored) {
            sums.add(&real.values, &stored.values);
        }
    }
    let steps = |layer: usize| seen[layer].iter().filter(|seen| **seen).count();
    let poor = (0..layers).filter(|layer| {
        let collapsed = steps(*layer) < FEW && sums[*layer].relative() > POOR / 2.0;
        sums[*layer].relative() > POOR || collapsed
    });
    let error = |layer: usize| LayerError {
        layer: front.network.layers[layer].name.clone(),
        relative_error: sums[layer].relative(),
        steps: steps(layer),
    };
    let outputs = outputs.iter().enumerate().map(|(at, sums)| OutputError {
        output: at + 1,
        cosine: sums.cosine(),
        relative_error: sums.relative(),
    });
    Ok(Comparison {
        images: images.len(),
        random,
        outputs: outputs.collect(),
        poor: poor.map(error).collect(),
    })
}

/// Numbers as they are stored, and which steps occur.
fn round(values: &mut [f32], stored: Quantisation, seen: &mut [bool; 256]) {
    for value in values {
        let step = (f64::from(*value) / stored.scale + 0.5).floor() + stored.zero;
        let step = if step.is_nan() {
            0.0
        } else {
            step.clamp(-128.0, 127.0)
        };
        seen[(step as i16 + 128) as usize] = true;
        *value = ((step - stored.zero) * stored.scale) as f32;
    }
}

/// The network with weights and biases rounded as they are stored.
fn rounded(front: &Front, scales: &Scales) -> Front {
    let mut rounded = front.clone();
    for (index, operation) in rounded.operations.iter_mut().enumerate() {
        let input = operation
            .operands
            .first()
            .map(|operand| taken(scales, operand));
        let (Some(constants), Some(input)) = (&scales.constants[index], input) else {
            continue;
        };
        let Operation {
            action:
                Action::Weighted {
                    weight,
                    columns,
                    bias,
                    ..
                },
            ..
        } = operation
        else {
            continue;
        };
        let inner = constants.weights.len() / constants.scales.len().max(1);
        let weights = constants.weights.iter().enumerate();
        let values = weights.map(|(at, w)| f64::from(*w) * constants.scales[at / inner.max(1)]);
        *weight = Numbers {
            values: Ok(Rc::new(values.collect())),
            shape: constants.shape.to_vec(),
            scales: None,
        };
        *columns = false;
        if bias.is_some() {
            let steps = constants.biases.iter().zip(&constants.scales);
            let values: Vec<f64> = steps.map(|(b, scale)| b * scale * input.scale).collect();
            *bias = Some(Numbers {
                shape: vec![values.len() as i64],
                values: Ok(Rc::new(values)),
                scales: None,
            });
        }
    }
    rounded
}
