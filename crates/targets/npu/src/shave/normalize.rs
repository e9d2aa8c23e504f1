//! Normalisations. Means and sums are kept in binary64 and rounded to binary32 with the result.

use super::exponential::exp;
use super::operation::Operation;
use super::reduce::Groups;
use super::tensor::{Call, Values};
use chipless_kernels::wide;
use chipless_model::Fault;

/// Softmax along an axis, its logarithm, or its numerators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Softmax {
    /// Memory dim, innermost 0.
    pub axis: usize,
    /// Places at the end of the axis that take no part; they become zero.
    pub pad: usize,
}

impl Softmax {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let x = call.floats(0)?;
        let around = call.around(&call.input(0)?.shape, self.axis)?;
        let used = around.size.saturating_sub(self.pad);
        let mut results = vec![0.0; x.len()];
        if around.inner == 1 && call.operation == Operation::Softmax && used > 0 {
            let lines = x.chunks(SIDE_BY_SIDE * around.size);
            for (x, results) in lines.zip(results.chunks_mut(SIDE_BY_SIDE * around.size)) {
                softmax_lines(x, around.size, used, results);
            }
            return Ok(Values::Float(results));
        }
        around.lines(|first| {
            let line = || (0..used).map(|place| first + place * around.inner);
            let highest = line().map(|at| x[at]).fold(f32::NEG_INFINITY, f32::max);
            line().for_each(|at| results[at] = exp(x[at] - highest));
            let sum: f64 = line().map(|at| f64::from(results[at])).sum();
            for at in line() {
                results[at] = match call.operation {
                    Operation::LogSoftmax => x[at] - highest - sum.ln() as f32,
                    Operation::ExpStabilized => results[at],
                    _ => results[at] / sum as f32,
                };
            }
        });
        Ok(Values::Float(results))
    }
}

/// Lines that are summed side by side: an addition waits for the one before, but not for those of other lines.
const SIDE_BY_SIDE: usize = 8;

/// Softmax of some lines of this size, of which so many places are used.
fn softmax_lines(x: &[f32], size: usize, used: usize, results: &mut [f32]) {
    for (x, results) in x.chunks(size).zip(results.chunks_mut(size)) {
        let (x, results) = (&x[..used], &mut results[..used]);
        let highest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        wide(move || {
            for (result, x) in results.iter_mut().zip(x) {
                *result = exp(*x - highest);
            }
        });
    }
    let mut sums = [0.0_f64; SIDE_BY_SIDE];
    if results.len() == SIDE_BY_SIDE * size {
        let lines: [&[f32]; SIDE_BY_SIDE] =
            std::array::from_fn(|line| &results[line * size..][..used]);
        for place in 0..used {
            for (sum, line) in sums.iter_mut().zip(lines) {
                *sum += f64::from(line[place]);
            }
        }
    } else {
        for (sum, line) in sums.iter_mut().zip(results.chunks(size)) {
            *sum = line[..used].iter().map(|value| f64::from(*value)).sum();
        }
    }
    for (sum, line) in sums.into_iter().zip(results.chunks_mut(size)) {
        let (sum, line) = (sum as f32, &mut line[..used]);
        wide(move || {
            for value in line {
                *value /= sum;
            }
        });
    }
}

/// Mean and variance normalisation over height and width of each channel: logical dims 2 and up.
#[derive(Clone, Debug, PartialEq)]
pub struct Mvn1 {
    /// Over the channels too.
    pub across_channels: bool,
    /// Divide by the deviation; else only the mean is subtracted.
    pub normalize_variance: bool,
    /// Added to the variance.
    pub epsilon: f32,
}

impl Mvn1 {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let shape = &call.input(0)?.shape;
        let first = if self.across_channels { 1 } else { 2 };
        let axes: Result<Vec<usize>, Fault> = (first..shape.dims.len())
            .map(|logical| call.memory_axis(shape, logical))
            .collect();
        let epsilon = self
            .normalize_variance
            .then_some((self.epsilon, EpsilonPlace::InsideRoot));
        mean_variance(call, &axes?, epsilon).map(Values::Float)
    }
}

/// Where the small constant of a deviation goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpsilonPlace {
    /// √(variance + ε).
    InsideRoot,
    /// √variance + ε.
    OutsideRoot,
}

/// Mean and variance normalisation over given axes, then scale and bias where given.
#[derive(Clone, Debug, PartialEq)]
pub struct Mvn6 {
    /// Memory dims, innermost 0.
    pub axes: Vec<usize>,
    /// Divide by the deviation; else only the mean is subtracted.
    pub normalize_variance: bool,
    /// The small constant.
    pub epsilon: f32,
    /// Where it goes.
    pub epsilon_place: EpsilonPlace,
    /// The input after x is a factor.
    pub scale: bool,
    /// The last input is added.
    pub bias: bool,
}

impl Mvn6 {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let epsilon = self
            .normalize_variance
            .then_some((self.epsilon, self.epsilon_place));
        let mut results = mean_variance(call, &self.axes, epsilon)?;
        let dims = &call.input(0)?.shape.dims;
        let mut affine = |index: usize, function: fn(&mut f32, f32)| -> Result<(), Fault> {
            let values = call.floats(index)?;
            let mut elements = results.iter_mut();
            call.broadcast(dims, [index])?.for_each(|[at]| {
                if let Some(element) = elements.next() {
                    function(element, values[at]);
                }
            });
            Ok(())
        };
        if self.scale {
            affine(1, |element, scale| *element *= scale)?;
        }
        if self.bias {
            affine(1 + usize::from(self.scale), |element, bias| {
                *element += bias;
            })?;
        }
        Ok(Values::Float(results))
    }
}

/// x − mean, over the deviation where `epsilon` is given.
fn mean_variance(
    call: Call<'_>,
    axes: &[usize],
    epsilon: Option<(f32, EpsilonPlace)>,
) -> Result<Vec<f32>, Fault> {
    let x = call.floats(0)?;
    let groups = Groups::new(call, &call.input(0)?.shape, axes)?;
    let size = groups.size as f64;
    let means: Vec<f32> = groups
        .fold(x, 0.0, |sum, x| sum + f64::from(x))
        .into_iter()
        .map(|sum: f64| (sum / size) as f32)
        .collect();
    let centred = groups.map(x, &means, |x, mean| x - mean);
    let Some((epsilon, place)) = epsilon else {
        return Ok(centred);
    };
    let deviations: Vec<f32> = groups
        .fold(&centred, 0.0, |sum, x| sum + f64::from(x) * f64::from(x))
        .into_iter()
        .map(|sum: f64| match place {
            EpsilonPlace::InsideRoot => (sum / size + f64::from(epsilon)).sqrt() as f32,
            EpsilonPlace::OutsideRoot => ((sum / size).sqrt() + f64::from(epsilon)) as f32,
        })
        .collect();
    Ok(groups.map(&centred, &deviations, |x, deviation| x / deviation))
}

/// Division by the Euclidean norm.
#[derive(Clone, Debug, PartialEq)]
pub struct NormalizeL2 {
    /// Logical dims, outermost 0, unlike every other operation's.
    pub logical_axes: Vec<usize>,
    /// The small constant.
    pub epsilon: f32,
    /// The sum of squares is at least epsilon; else epsilon is added to it.
    pub epsilon_is_minimum: bool,
}

impl NormalizeL2 {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let x = call.floats(0)?;
        let shape = &call.input(0)?.shape;
        let axes: Result<Vec<usize>, Fault> = self
            .logical_axes
            .iter()
            .map(|logical| call.memory_axis(shape, *logical))
            .collect();
        let groups = Groups::new(call, shape, &axes?)?;
        let epsilon = f64::from(self.epsilon);
        let norms: Vec<f32> = groups
            .fold(x, 0.0, |sum, x| sum + f64::from(x) * f64::from(x))
            .into_iter()
            .map(|sum: f64| {
                if self.epsilon_is_minimum {
                    sum.max(epsilon)
                } else {
                    sum + epsilon
                }
                .sqrt() as f32
            })
            .collect();
        Ok(Values::Float(groups.map(x, &norms, |x, norm| x / norm)))
    }
}

/// Division by the root of the mean square along the innermost dim, times gamma (input 1).
#[derive(Clone, Debug, PartialEq)]
pub struct RmsNorm {
    /// Added to the mean square.
    pub epsilon: f32,
}

impl RmsNorm {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (x, gamma) = (call.floats(0)?, call.floats(1)?);
        let shape = &call.input(0)?.shape;
        let groups = Groups::new(call, shape, &[0])?;
        let roots: Vec<f32> = groups
            .fold(x, 0.0, |sum, x| sum + f64::from(x) * f64::from(x))
            .into_iter()
            .map(|sum: f64| (sum / groups.size as f64 + f64::from(self.epsilon)).sqrt() as f32)
            .collect();
        let mut results = groups.map(x, &roots, |x, root| x / root);
        let mut elements = results.iter_mut();
        call.broadcast(&shape.dims, [1])?.for_each(|[at]| {
            if let Some(element) = elements.next() {
                *element *= gamma[at];
            }
        });
        Ok(Values::Float(results))
    }
}

/// Local response normalisation: x / (bias + alpha / sizeⁿ · Σ x²)^beta, the sum over a window around x in n axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Lrn {
    /// Weight of the sum.
    pub alpha: f32,
    /// Exponent.
    pub beta: f32,
    /// Added to the sum.
    pub bias: f32,
    /// Places of the window in each axis.
    pub size: u32,
    /// Memory dims, innermost 0.
    pub axes: Vec<usize>,
}

impl Lrn {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let x = call.floats(0)?;
        let shape = &call.input(0)?.shape;
        let (before, after) = (
            (self.size as usize).saturating_sub(1) / 2,
            self.size as usize / 2,
        );
        let mut sums: Vec<f64> = x.iter().map(|x| f64::from(*x) * f64::from(*x)).collect();
        for axis in &self.axes {
            let around = call.around(shape, *axis)?;
            let single = sums.clone();
            around.lines(|first| {
                for place in 0..around.size {
                    let window = place.saturating_sub(before)..(place + after + 1).min(around.size);
                    sums[first + place * around.inner] = window
                        .map(|place| single[first + place * around.inner])
                        .sum();
                }
            });
        }
        let weight = f64::from(self.alpha) / f64::from(self.size).powi(self.axes.len() as i32);
        let divided = |(x, sum): (&f32, &f64)| {
            x / ((f64::from(self.bias) + weight * sum) as f32).powf(self.beta)
        };
        Ok(Values::Float(x.iter().zip(&sums).map(divided).collect()))
    }
}

/// x · cos + rotated x · sin along the innermost dim, where (a, b) of each pair rotates to (−b, a). Pairs are element i of either half, or
/// neighbours; tables have a number for each element, or one for each pair.
pub(super) fn rotary_embedding(call: Call<'_>) -> Result<Values, Fault> {
    let (is_interleaved, is_half) = match call.operation {
        Operation::RotaryEmbeddingHalf => (false, true),
        Operation::RotaryEmbeddingHalfInterleaved => (true, true),
        Operation::RotaryEmbeddingInterleaved => (true, false),
        _ => (false, false),
    };
    let (x, cos, sin) = (call.floats(0)?, call.floats(1)?, call.floats(2)?);
    let shape = &call.input(0)?.shape;
    let width = call.around(shape, 0)?.size;
    if !width.is_multiple_of(2) {
        return Err(call.fault(format_args!(
            "expected an even innermost dim, found {shape}"
        )));
    }
    let half = width / 2;
    let mut dims = shape.dims.clone();
    if is_half {
        dims[0] /= 2;
    }
    let table = |index: usize, values: &[f32]| -> Result<Vec<f32>, Fault> {
        let mut repeated = Vec::with_capacity(x.len());
        call.broadcast(&dims, [index])?
            .for_each(|[at]| repeated.push(values[at]));
        Ok(repeated)
    };
    let (cos, sin) = (table(1, cos)?, table(2, sin)?);
    let each = if is_half { half } else { width };
    let tables = cos.chunks_exact(each).zip(sin.chunks_exact(each));
    let mut results = vec![0.0; x.len()];
    for ((x, results), (cos, sin)) in x
        .chunks_exact(width)
        .zip(results.chunks_exact_mut(width))
        .zip(tables)
    {
        for pair in 0..half {
            let (a, b) = if is_interleaved {
                (2 * pair, 2 * pair + 1)
            } else {
                (pair, pair + half)
            };
            let (of_a, of_b) = if is_half { (pair, pair) } else { (a, b) };
            results[a] = x[a] * cos[of_a] - x[b] * sin[of_a];
            results[b] = x[b] * cos[of_b] + x[a] * sin[of_b];
        }
    }
    Ok(Values::Float(results))
}
