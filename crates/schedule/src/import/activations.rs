//! Operations element by element, by name.

use super::Reader;
use super::array::{Array, types};
use super::node::Node;
use super::value::Value;

impl Reader<'_> {
    /// Operations element by element.
    pub(super) fn of_elements(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        match node.kind {
            "Relu" => self.bounded(&x, 0.0, f64::INFINITY),
            "Clip" => self.clip(node),
            "Where" => {
                let (a, b) = (node.input(1)?.clone(), node.input(2)?.clone());
                self.chosen(&x, &a, &b)
            }
            "Mod" if node.int("fmod", 0) != 0 => self.binary("FMod", &x, &node.input(1)?.clone()),
            "Div" if types::is_integer(x.kind()) => {
                self.binary("DivTrunc", &x, &node.input(1)?.clone())
            }
            "Sum" | "Mean" | "Max" | "Min" => {
                let of = match node.kind {
                    "Sum" | "Mean" => "Add",
                    other => other,
                };
                let mut all = x;
                for at in 1..node.inputs.len() {
                    all = self.binary(of, &all, &node.input(at)?.clone())?;
                }
                if node.kind == "Mean" {
                    let count = Array::scalar(types::FLOAT, node.inputs.len() as f64);
                    return self.binary("Div", &all, &Value::Array(count));
                }
                Ok(all)
            }
            "LeakyRelu" | "Elu" | "Celu" | "Selu" | "ThresholdedRelu" | "HardSigmoid"
            | "Shrink" | "Swish" | "QuickGelu" | "IsInf" => self.with_parameters(node, &x),
            "Gelu" => self.gelu(node.text("approximate"), &x),
            "BiasGelu" | "FastGelu" => {
                let sum = match node.optional(1).cloned() {
                    Some(bias) => self.binary("Add", &x, &bias)?,
                    None => x,
                };
                self.gelu((node.kind == "FastGelu").then_some("tanh"), &sum)
            }
            kind if super::elements::OF_TWO.iter().any(|(of, _)| *of == kind) => {
                self.binary(kind, &x, &node.input(1)?.clone())
            }
            kind => self.unary(kind, &x),
        }
    }

    /// A function of one element whose attributes are numbers; `IsInf` where it is none of the others.
    fn with_parameters(&mut self, node: &Node<'_>, x: &Value) -> Result<Value, String> {
        let number = |name: &str, otherwise: f64| node.float(name, otherwise);
        match node.kind {
            "LeakyRelu" => {
                let alpha = number("alpha", 0.01);
                self.function("leaky_relu", [("alpha", alpha)], x, |v| {
                    if v < 0.0 { alpha * v } else { v }
                })
            }
            "Elu" => {
                let alpha = number("alpha", 1.0);
                self.function("elu", [("alpha", alpha)], x, |v| {
                    if v < 0.0 { alpha * v.exp_m1() } else { v }
                })
            }
            "Celu" => {
                let alpha = number("alpha", 1.0);
                self.function("celu", [("alpha", alpha)], x, |v| {
                    v.max(0.0) + (alpha * (v / alpha).exp_m1()).min(0.0)
                })
            }
            "Selu" => {
                let (alpha, gamma) = (
                    number("alpha", 1.673_263_192_176_818_8),
                    number("gamma", 1.050_701_022_148_132_3),
                );
                let of = |v: f64| {
                    if v <= 0.0 {
                        gamma * alpha * v.exp_m1()
                    } else {
                        gamma * v
                    }
                };
                self.function("selu", [("alpha", alpha), ("gamma", gamma)], x, of)
            }
            "ThresholdedRelu" => {
                let alpha = number("alpha", 1.0);
                self.function("thresholded_relu", [("alpha", alpha)], x, |v| {
                    if v > alpha { v } else { 0.0 }
                })
            }
            "HardSigmoid" => {
                let (alpha, beta) = (number("alpha", 0.2), number("beta", 0.5));
                let of = |v: f64| (alpha * v + beta).clamp(0.0, 1.0);
                self.function("hard_sigmoid", [("alpha", alpha), ("beta", beta)], x, of)
            }
            "Shrink" => {
                let (bias, lambd) = (number("bias", 0.0), number("lambd", 0.5));
                let of = |v: f64| {
                    if v < -lambd {
                        v + bias
                    } else if v > lambd {
                        v - bias
                    } else {
                        0.0
                    }
                };
                self.function("shrink", [("bias", bias), ("lambd", lambd)], x, of)
            }
            "Swish" | "QuickGelu" => {
                let otherwise = if node.kind == "Swish" { 1.0 } else { 1.702 };
                let alpha = number("alpha", otherwise);
                self.function("swish", [("alpha", alpha)], x, |v| {
                    v / (1.0 + (-alpha * v).exp())
                })
            }
            _ => {
                let (below, above) = (
                    node.int("detect_negative", 1),
                    node.int("detect_positive", 1),
                );
                let parameters = [
                    ("detect_negative", below as f64),
                    ("detect_positive", above as f64),
                ];
                let of = |v: f64| {
                    super::elements::truth(
                        below != 0 && v == f64::NEG_INFINITY || above != 0 && v == f64::INFINITY,
                    )
                };
                let found = self.function("is_inf", parameters, x, of)?;
                Ok(Self::called(found, types::BOOL))
            }
        }
    }

    fn gelu(&mut self, approximate: Option<&str>, x: &Value) -> Result<Value, String> {
        let mut attributes = serde_json::Map::new();
        match approximate {
            None | Some("none") => {}
            Some("tanh") => {
                attributes.insert("approximate".to_owned(), "tanh".into());
            }
            Some(other) => return Err(format!("the approximation `{other}` is not supported")),
        }
        Self::made(x)?;
        let named = super::elements::named("gelu", attributes);
        self.elementwise(named, &[x], &x.shape(), x.kind())
    }

    fn clip(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let known = |at: usize, name: &str, otherwise: f64| match node.optional(at) {
            None => Some(node.float(name, otherwise)),
            Some(Value::Array(array)) => array.single(),
            Some(Value::Tensor(_)) => None,
        };
        let bounds = (
            known(1, "min", f64::NEG_INFINITY),
            known(2, "max", f64::INFINITY),
        );
        if let (Some(least), Some(most)) = bounds {
            return self.bounded(&x, least, most);
        }
        let mut value = x;
        if let Some(least) = node.optional(1).cloned() {
            value = self.binary("Max", &value, &least)?;
        }
        if let Some(most) = node.optional(2).cloned() {
            value = self.binary("Min", &value, &most)?;
        }
        Ok(value)
    }
}
