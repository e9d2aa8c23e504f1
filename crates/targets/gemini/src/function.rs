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
}

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
            _ => return None,
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
        }
    }
}
