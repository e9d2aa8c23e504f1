//! How integers stand for numbers, from data: what each tensor holds for some inputs decides its scale.

use crate::compute::{Map, compute};
use crate::front::{Action, Front, Function, Move, Operand, Quantisation, Source};

/// Bins of a histogram.
const BINS: usize = 2048;
/// Steps of 8 bits.
const STEPS: f64 = 255.0;
/// What a percentile leaves out at either end.
const TAIL: f64 = 1e-4;

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
    // What joins layers without one that reads it.
    for number in 0..front.outputs.len() {
        let stored = joined(front, &front.outputs[number]);
        let output = &mut front.outputs[number];
        output.quantisation = output.quantisation.or(stored);
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
