//! Weights as they are stored: integers with a scale for each output channel, and biases in steps of the products.

use crate::front::{Action, Numbers, Operation};
use crate::network::Layer;

/// Weights and biases of a layer.
#[derive(Clone, Debug)]
pub(super) struct Constants {
    /// Stored, K, C of a group, R, S.
    pub(super) weights: Vec<i8>,
    pub(super) shape: [i64; 4],
    /// Of each output channel.
    pub(super) scales: Vec<f64>,
    /// In steps of the products.
    pub(super) biases: Vec<f64>,
    /// What each output channel adds up to at most: |bias| and the norm of the weights, both real.
    reach: Vec<[f64; 2]>,
}

impl Constants {
    /// The largest result for inputs up to a bound.
    pub(super) fn bound(&self, input: f64) -> f64 {
        self.reach
            .iter()
            .fold(0.0, |most: f64, [bias, norm]| most.max(bias + input * norm))
    }
}

/// The constants of a layer whose input has this scale.
///
/// # Errors
/// The tensor that is not there.
pub(super) fn constants(
    operation: &Operation,
    layer: &Layer,
    input: f64,
) -> Result<Constants, String> {
    let Action::Weighted {
        weight,
        columns,
        bias,
        window,
    } = &operation.action
    else {
        return Err(format!("`{}` has no weights", layer.name));
    };
    let k = layer.output[0] as usize;
    let values = weight.values.clone()?;
    let inner = values.len() / k.max(1);
    let at = |channel: usize, i: usize| {
        if *columns {
            i * k + channel
        } else {
            channel * inner + i
        }
    };
    let given = weight
        .scales
        .as_ref()
        .map(|(scales, _)| std::rc::Rc::clone(scales));
    let mut constants = Constants {
        weights: Vec::with_capacity(values.len()),
        shape: [
            k as i64,
            inner as i64 / (window.kernel[0] * window.kernel[1]),
            window.kernel[0],
            window.kernel[1],
        ],
        scales: Vec::with_capacity(k),
        biases: Vec::with_capacity(k),
        reach: Vec::with_capacity(k),
    };
    let biases = bias.as_ref().map(|bias| bias.values.clone()).transpose()?;
    for channel in 0..k {
        let own = || (0..inner).map(|i| values[at(channel, i)]);
        let own_scale = || {
            let most = own().fold(0.0, |most: f64, v| most.max(v.abs()));
            // Where data say how results are stored, steps need be no powers of two.
            if operation.output.is_some() && most > 0.0 {
                most / 127.0
            } else {
                power(most)
            }
        };
        let scale = given.as_ref().map_or_else(own_scale, |scales| {
            let scale = scales.get(channel).or(scales.first());
            scale.copied().unwrap_or(1.0)
        });
        let stored = |value: f64| {
            if given.is_some() {
                value
            } else {
                (value / scale + 0.5).floor()
            }
        };
        let real = |value: f64| {
            if given.is_some() {
                value * scale
            } else {
                value
            }
        };
        constants
            .weights
            .extend(own().map(|value| stored(value).clamp(-128.0, 127.0) as i8));
        let norm = own().map(real).fold(0.0, |sum, v| sum + v * v).sqrt();
        let (bias, whole) = bias_of(
            bias.as_ref(),
            biases.as_ref().map(|b| b.as_slice()),
            channel,
            input * scale,
        );
        constants.scales.push(scale);
        constants.biases.push(whole);
        constants.reach.push([bias.abs(), norm]);
    }
    Ok(constants)
}

/// A bias, real and in steps of the products.
fn bias_of(
    bias: Option<&Numbers>,
    values: Option<&[f64]>,
    channel: usize,
    step: f64,
) -> (f64, f64) {
    let (Some(bias), Some(values)) = (bias, values) else {
        return (0.0, 0.0);
    };
    let value = values
        .get(channel)
        .or(values.first())
        .copied()
        .unwrap_or(0.0);
    match &bias.scales {
        Some((scales, _)) => {
            let scale = scales
                .get(channel)
                .or(scales.first())
                .copied()
                .unwrap_or(step);
            // Stored in steps of the products, as a rule; whatever else is turned into those.
            let same = (scale / step - 1.0).abs() < 1e-5;
            (
                value * scale,
                if same {
                    value
                } else {
                    (value * scale / step + 0.5).floor()
                },
            )
        }
        None => (value, (value / step + 0.5).floor()),
    }
}

/// The power of two that holds a bound in 7 bits.
pub(super) fn power(bound: f64) -> f64 {
    if bound > 0.0 && bound.is_finite() {
        (bound / 127.0).log2().ceil().exp2()
    } else {
        1.0
    }
}
