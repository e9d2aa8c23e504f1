//! Functions of an element, as the vector processor computes them: in binary64.

use serde_json::{Map, Value};

/// A function of each element. Names and parameters are those of ONNX, in small letters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Function {
    Gelu,
    /// With `tanh` in the place of the error function.
    GeluByTanh,
    /// `alpha · x + beta` between 0 and 1.
    HardSigmoid {
        alpha: f64,
        beta: f64,
    },
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
    Plain(Known<OfOne>),
}

/// A function of two numbers.
pub type OfTwo = fn(f64, f64) -> f64;

/// Functions of two operands, by the operation's name.
pub(crate) const OF_TWO: &[(&str, OfTwo)] = &[
    ("subtract", |a, b| a - b),
    ("divide", |a, b| a / b),
    ("pow", f64::powf),
    ("max", |a, b| if a.is_nan() || a > b { a } else { b }),
    ("min", |a, b| if a.is_nan() || a < b { a } else { b }),
    // Of the divisor's sign, as Python has it, and of the dividend's, as C has it.
    ("mod", |a, b| {
        let rest = a % b;
        if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
            rest + b
        } else {
            rest
        }
    }),
    ("fmod", |a, b| a % b),
    ("div_trunc", |a, b| (a / b).trunc()),
    ("equal", equal),
    ("greater", |a, b| truth(a > b)),
    ("less", |a, b| truth(a < b)),
    ("greater_or_equal", |a, b| truth(a >= b)),
    ("less_or_equal", |a, b| truth(a <= b)),
    ("and", |a, b| truth(a != 0.0 && b != 0.0)),
    ("or", |a, b| truth(a != 0.0 || b != 0.0)),
    ("xor", |a, b| truth((a != 0.0) != (b != 0.0))),
    ("prelu", |x, slope| if x < 0.0 { x * slope } else { x }),
];

#[expect(clippy::float_cmp, reason = "the operation is an exact comparison")]
fn equal(a: f64, b: f64) -> f64 {
    truth(a == b)
}

fn truth(value: bool) -> f64 {
    f64::from(u8::from(value))
}

/// The function of an operation of two operands: `pow`, `max`, `equal`, …
pub fn of_two(operation: &str) -> Option<OfTwo> {
    Known::find(operation, OF_TWO).map(|known| known.apply)
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

/// A function of one number.
pub type OfOne = fn(f64) -> f64;

/// The function of an operation without parameters: `exp`, `sqrt`, `sigmoid`, …
pub fn of_one(operation: &str) -> Option<OfOne> {
    Known::find(operation, PLAIN).map(|known| known.apply)
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Without overflow on either side.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Functions without parameters, by the operation's name.
const PLAIN: &[(&str, OfOne)] = &[
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
    ("erf", libm::erf),
    ("exp", f64::exp),
    ("floor", f64::floor),
    ("hard_swish", |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
    ("is_nan", |x| f64::from(u8::from(x.is_nan()))),
    ("log", f64::ln),
    ("mish", |x| x * softplus(x).tanh()),
    ("neg", |x| -x),
    ("not", |x| f64::from(u8::from(x == 0.0))),
    ("reciprocal", |x| 1.0 / x),
    ("round", f64::round_ties_even),
    ("sigmoid", sigmoid),
    ("sign", |x| if x == 0.0 { x } else { x.signum() }),
    ("sin", f64::sin),
    ("sinh", f64::sinh),
    ("softplus", softplus),
    ("softsign", |x| x / (1.0 + x.abs())),
    ("sqrt", f64::sqrt),
    ("square", |x| x * x),
    ("tan", f64::tan),
    ("tanh", f64::tanh),
    ("trunc", f64::trunc),
];

impl Function {
    /// The function that an operation of the front end is with these parameters; nothing where it is another one.
    pub(crate) fn of(operation: &str, parameters: &Map<String, Value>) -> Option<Function> {
        let number = |key: &str, otherwise: f64| {
            let value = parameters.get(key).and_then(Value::as_f64);
            value.unwrap_or(otherwise)
        };
        let by_tanh = || parameters.get("approximate").and_then(Value::as_str) == Some("tanh");
        Some(match operation {
            "gelu" if by_tanh() => Function::GeluByTanh,
            "gelu" => Function::Gelu,
            "hard_sigmoid" => Function::HardSigmoid {
                alpha: number("alpha", 0.2),
                beta: number("beta", 0.5),
            },
            "swish" => Function::Swish {
                alpha: number("alpha", 1.0),
            },
            "leaky_relu" => Function::LeakyRelu {
                alpha: number("alpha", 0.01),
            },
            "elu" => Function::Elu {
                alpha: number("alpha", 1.0),
            },
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
        match self {
            Function::Gelu => 0.5 * x * (1.0 + libm::erf(x / std::f64::consts::SQRT_2)),
            Function::GeluByTanh => {
                let inner = std::f64::consts::FRAC_2_PI.sqrt() * (x + 0.044_715 * x * x * x);
                0.5 * x * (1.0 + inner.tanh())
            }
            Function::HardSigmoid { alpha, beta } => (alpha * x + beta).clamp(0.0, 1.0),
            Function::Swish { alpha } => x * sigmoid(alpha * x),
            Function::LeakyRelu { alpha } if x < 0.0 => alpha * x,
            Function::Elu { alpha } if x < 0.0 => alpha * x.exp_m1(),
            Function::LeakyRelu { .. } | Function::Elu { .. } => x,
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
