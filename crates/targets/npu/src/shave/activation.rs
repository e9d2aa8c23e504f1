//! Activations: operations on one element that have scalars of their own.

use super::tensor::{Call, Values};
use chipless_model::Fault;

/// A unary operation with scalars of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// x within bounds. The compiler gives −65504 or 65504 where a bound is missing.
    Clamp {
        /// Lower bound.
        minimum: f32,
        /// Upper bound.
        maximum: f32,
    },
    /// x for x ≥ 0, else alpha·(eˣ − 1).
    Elu {
        /// Limit towards −∞, negated.
        alpha: f32,
    },
    /// clip(alpha·x + beta, 0, 1).
    HardSigmoid {
        /// Slope.
        alpha: f32,
        /// Value at 0.
        beta: f32,
    },
    /// x for x ≥ 0, else slope·x.
    LeakyRelu {
        /// The slope.
        slope: f32,
    },
    /// To the nearest integer.
    Round {
        /// Halves go away from zero, not to the even neighbour.
        half_away: bool,
    },
    /// lambda · (x for x > 0, else alpha·(eˣ − 1)).
    Selu {
        /// Limit towards −∞ over lambda, negated.
        alpha: f32,
        /// Scale of everything.
        lambda: f32,
    },
    /// x / (1 + e^(−beta·x)).
    Swish {
        /// Steepness; 1 is `SiLU`.
        beta: f32,
    },
}

impl Activation {
    pub(super) fn evaluate(self, call: Call<'_>) -> Result<Values, Fault> {
        if let (Activation::Clamp { minimum, maximum }, Values::Integer(x)) =
            (self, &call.input(0)?.values)
        {
            // The casts saturate, and turn a NaN into a bound that holds.
            let (low, high) = (minimum.ceil() as i64, maximum.floor() as i64);
            return Ok(Values::Integer(
                x.iter().map(|x| (*x).min(high).max(low)).collect(),
            ));
        }
        let function = self.function();
        let x = call.floats(0)?;
        Ok(Values::Float(x.iter().map(|x| function(*x)).collect()))
    }

    pub(super) fn function(self) -> Box<dyn Fn(f32) -> f32> {
        match self {
            Activation::Clamp { minimum, maximum } => Box::new(move |x| clip(x, minimum, maximum)),
            Activation::Elu { alpha } => {
                Box::new(move |x| if x < 0.0 { alpha * x.exp_m1() } else { x })
            }
            Activation::HardSigmoid { alpha, beta } => {
                Box::new(move |x| clip(alpha * x + beta, 0.0, 1.0))
            }
            Activation::LeakyRelu { slope } => {
                Box::new(move |x| if x < 0.0 { x * slope } else { x })
            }
            Activation::Round { half_away: false } => Box::new(f32::round_ties_even),
            Activation::Round { half_away: true } => Box::new(f32::round),
            Activation::Selu { alpha, lambda } => {
                Box::new(move |x| lambda * if x > 0.0 { x } else { alpha * x.exp_m1() })
            }
            Activation::Swish { beta } => Box::new(move |x| x / (1.0 + (-beta * x).exp())),
        }
    }
}

/// Within bounds; unlike `f32::clamp`, bounds that contradict each other are no panic. NaN stays NaN.
pub(super) fn clip(x: f32, low: f32, high: f32) -> f32 {
    if x > high {
        high
    } else if x < low {
        low
    } else {
        x
    }
}

pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}
