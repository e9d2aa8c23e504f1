//! Functions of an element, as the vector processor computes them: in binary64.

use crate::network::Layer;
use serde_json::Value;

/// A function of each element. Names and parameters are those of ONNX, in small letters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Function {
    Exponential,
    Gelu,
    /// With `tanh` in the place of the error function.
    GeluByTanh,
    Sigmoid,
    Tanh,
    Erf,
    /// `alpha · x + beta` between 0 and 1.
    HardSigmoid {
        alpha: f64,
        beta: f64,
    },
    /// x times a hard sigmoid of 1/6 and 1/2.
    HardSwish,
    /// x times the sigmoid of `alpha · x`.
    Swish {
        alpha: f64,
    },
    /// `alpha · x` below zero.
    LeakyRelu {
        alpha: f64,
    },
    /// `alpha · (e^x − 1)` below zero.
    Elu {
        alpha: f64,
    },
    Softplus,
    /// x times the hyperbolic tangent of softplus.
    Mish,
    /// Nothing below the one, nothing above the other.
    Clip {
        least: f64,
        most: f64,
    },
    /// `gamma · x` above zero, `gamma · alpha · (e^x − 1)` below.
    Selu {
        alpha: f64,
        gamma: f64,
    },
    /// `alpha · (e^(x / alpha) − 1)` below zero.
    Celu {
        alpha: f64,
    },
    /// Zero up to `alpha`.
    ThresholdedRelu {
        alpha: f64,
    },
    /// Towards zero by `bias` beyond `lambd`, zero between.
    Shrink {
        bias: f64,
        lambd: f64,
    },
    /// Whether it is infinite: below zero, above zero.
    IsInfinite([bool; 2]),
    /// What has no parameters.
    Plain(Known<fn(f64) -> f64>),
}

/// A function by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<F> {
    name: &'static str,
    pub(crate) apply: F,
}

impl<F> PartialEq for Known<F> {
    fn eq(&self, other: &Known<F>) -> bool {
        self.name == other.name
    }
}

impl<F: Copy> Known<F> {
    /// The function of a table with this name.
    pub(crate) fn find(name: &str, table: &[(&'static str, F)]) -> Option<Known<F>> {
        let (name, apply) = *table.iter().find(|(known, _)| *known == name)?;
        Some(Known { name, apply })
    }
}

/// Functions without parameters, by the operation's name.
const PLAIN: &[(&str, fn(f64) -> f64)] = &[
    ("abs", f64::abs),
    ("acos", f64::acos),
    ("acosh", f64::acosh),
    ("asin", f64::asin),
    ("asinh", f64::asinh),
    ("atan", f64::atan),
    ("atanh", f64::atanh),
    ("ceil", f64::ceil),
    ("cos", f64::cos),
    ("cosh", f64::cosh),
    ("floor", f64::floor),
    ("is_nan", |x| f64::from(u8::from(x.is_nan()))),
    ("log", f64::ln),
    ("neg", |x| -x),
    ("not", |x| f64::from(u8::from(x == 0.0))),
    ("reciprocal", |x| 1.0 / x),
    ("round", f64::round_ties_even),
    ("sign", |x| if x == 0.0 { x } else { x.signum() }),
    ("sin", f64::sin),
    ("sinh", f64::sinh),
    ("softsign", |x| x / (1.0 + x.abs())),
    ("sqrt", f64::sqrt),
    ("square", |x| x * x),
    ("tan", f64::tan),
    ("trunc", f64::trunc),
];

impl Function {
    /// The function that an operation of the front end is; nothing where it is another one.
    pub(crate) fn of(layer: &Layer) -> Option<Function> {
        let number = |key: &str, otherwise: f64| {
            let value = layer.other.get(key).and_then(Value::as_f64);
            value.unwrap_or(otherwise)
        };
        let by_tanh = || layer.other.get("approximate").and_then(Value::as_str) == Some("tanh");
        Some(match layer.operation.as_str() {
            "exp" => Function::Exponential,
            "gelu" if by_tanh() => Function::GeluByTanh,
            "gelu" => Function::Gelu,
            "sigmoid" => Function::Sigmoid,
            "tanh" => Function::Tanh,
            "erf" => Function::Erf,
            "hard_sigmoid" => Function::HardSigmoid {
                alpha: number("alpha", 0.2),
                beta: number("beta", 0.5),
            },
            "hard_swish" => Function::HardSwish,
            "swish" => Function::Swish {
                alpha: number("alpha", 1.0),
            },
            "leaky_relu" => Function::LeakyRelu {
                alpha: number("alpha", 0.01),
            },
            "elu" => Function::Elu {
                alpha: number("alpha", 1.0),
            },
            "softplus" => Function::Softplus,
            "mish" => Function::Mish,
            "clip" => Function::Clip {
                least: number("min", f64::NEG_INFINITY),
                most: number("max", f64::INFINITY),
            },
            "selu" => Function::Selu {
                alpha: number("alpha", 1.673_263_192_176_818_8),
                gamma: number("gamma", 1.050_701_022_148_132_3),
            },
            "celu" => Function::Celu {
                alpha: number("alpha", 1.0),
            },
            "thresholded_relu" => Function::ThresholdedRelu {
                alpha: number("alpha", 1.0),
            },
            "shrink" => Function::Shrink {
                bias: number("bias", 0.0),
                lambd: number("lambd", 0.5),
            },
            "is_inf" => Function::IsInfinite(
                ["detect_negative", "detect_positive"].map(|key| number(key, 1.0) != 0.0),
            ),
            name => Function::Plain(Known::find(name, PLAIN)?),
        })
    }

    pub(crate) fn apply(self, x: f64) -> f64 {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        // Without overflow on either side.
        let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
        match self {
            Function::Exponential => x.exp(),
            Function::Gelu => 0.5 * x * (1.0 + libm::erf(x / std::f64::consts::SQRT_2)),
            Function::GeluByTanh => {
                let inner = std::f64::consts::FRAC_2_PI.sqrt() * (x + 0.044_715 * x * x * x);
                0.5 * x * (1.0 + inner.tanh())
            }
            Function::Sigmoid => sigmoid(x),
            Function::Tanh => x.tanh(),
            Function::Erf => libm::erf(x),
            Function::HardSigmoid { alpha, beta } => (alpha * x + beta).clamp(0.0, 1.0),
            Function::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
            Function::Swish { alpha } => x * sigmoid(alpha * x),
            Function::LeakyRelu { alpha } if x < 0.0 => alpha * x,
            Function::Elu { alpha } if x < 0.0 => alpha * x.exp_m1(),
            Function::LeakyRelu { .. } | Function::Elu { .. } => x,
            Function::Softplus => softplus(x),
            Function::Mish => x * softplus(x).tanh(),
            // As ONNX has it, the upper bound wins where the bounds are crossed.
            Function::Clip { least, most } => x.max(least).min(most),
            Function::Selu { alpha, gamma } if x <= 0.0 => gamma * alpha * x.exp_m1(),
            Function::Selu { gamma, .. } => gamma * x,
            Function::Celu { alpha } => x.max(0.0) + (alpha * (x / alpha).exp_m1()).min(0.0),
            Function::ThresholdedRelu { alpha } => {
                if x > alpha {
                    x
                } else {
                    0.0
                }
            }
            Function::Shrink { bias, lambd } => {
                if x < -lambd {
                    x + bias
                } else if x > lambd {
                    x - bias
                } else {
                    0.0
                }
            }
            Function::IsInfinite([below, above]) => {
                let found = below && x == f64::NEG_INFINITY || above && x == f64::INFINITY;
                f64::from(u8::from(found))
            }
            Function::Plain(function) => (function.apply)(x),
        }
    }
}
