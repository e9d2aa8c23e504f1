//! Nodes that work on every element by itself.

use super::graph::{Attributes, Known, Outcome, Reader, Value};
use super::proto::Node;
use crate::front::{Action, Activation, Arithmetic, Function, Layout, Piece, Source};
use crate::network::Kind;

impl<'g> Reader<'g> {
    pub(super) fn function(&mut self, function: Function, inputs: &[Option<Known>]) -> Outcome {
        let x = Self::value(inputs, 0)?.clone();
        Ok(self.pointwise(&x, Action::Function(function)))
    }

    pub(super) fn clip(
        &mut self,
        node: &'g Node,
        attributes: &Attributes<'_>,
        inputs: &[Option<Known>],
    ) -> Outcome {
        let bound = |at: usize, name: &str| -> Result<Option<f64>, String> {
            Ok(match Self::constant(inputs, at)? {
                Some((constant, scales)) => match Self::reals(constant, scales).values?[..] {
                    [bound] => Some(bound),
                    _ => return Err(format!("its bound `{}` is not one number", constant.name)),
                },
                None => attributes.float(name),
            })
        };
        let activation = match (bound(1, "min")?, bound(2, "max")?) {
            (Some(0.0), Some(most)) if most >= 0.0 => Activation::Bounded(most),
            (Some(0.0), None) => Activation::Relu,
            (least, most) => {
                let bounds = (
                    least.unwrap_or(f64::NEG_INFINITY),
                    most.unwrap_or(f64::INFINITY),
                );
                return self.function(Function::Clip(bounds.0, bounds.1), inputs);
            }
        };
        let x = Self::value(inputs, 0)?.clone();
        // A Relu before it says nothing more.
        if let Some(layer) = self
            .maker(node, 0, &x)
            .filter(|layer| self.operations[*layer].activation == Activation::Relu)
        {
            self.operations[layer].activation = activation;
            return Ok(Known::Value(x));
        }
        self.activation(node, activation, inputs)
    }

    pub(super) fn combine(
        &mut self,
        arithmetic: Arithmetic,
        node: &'g Node,
        inputs: &[Option<Known>],
    ) -> Outcome {
        match (inputs.first(), inputs.get(1)) {
            (Some(Some(Known::Value(x))), Some(Some(Known::Value(y)))) => {
                if arithmetic == Arithmetic::Divide {
                    return Err("a quotient of two activations is not supported".to_owned());
                }
                let extents = together(x, y)?;
                let (x, y) = (x.clone(), y.clone());
                let (x, y) = (self.whole_results(x), self.whole_results(y));
                let mut layer = self.plain(Kind::Eltwise, extents);
                layer.operands = 2;
                Ok(Known::Value(self.layer(
                    layer,
                    &[&x, &y],
                    None,
                    Action::Combine(arithmetic),
                    x.layout,
                )))
            }
            (Some(Some(Known::Value(x))), Some(Some(Known::Constant(constant, scales)))) => {
                self.with_constant(arithmetic, node, 0, x, (constant, scales.as_ref()))
            }
            (Some(Some(Known::Constant(constant, scales))), Some(Some(Known::Value(x)))) => {
                let constant = (constant, scales.as_ref());
                match arithmetic {
                    Arithmetic::Subtract => self.less(constant, x),
                    Arithmetic::Divide => Err(
                        "a quotient of a constant and an activation is not supported".to_owned(),
                    ),
                    _ => self.with_constant(arithmetic, node, 1, x, constant),
                }
            }
            _ => Err("an operand is missing, or both are constants".to_owned()),
        }
    }

    /// An operand made of whole results, each once, as SET's model adds them; of anything else, a layer that copies it.
    fn whole_results(&mut self, value: Value) -> Value {
        let mut sources: Vec<Source> = value.pieces.iter().map(|piece| piece.source).collect();
        sources.sort_unstable();
        sources.dedup();
        let whole = |piece: &Piece| match piece.source {
            Source::Layer(layer) => piece.channels == [0, self.layers[layer].output[0]],
            Source::Input(input) => piece.channels == [0, self.inputs[input].extents[0]],
        };
        if sources.len() == value.pieces.len() && value.pieces.iter().all(whole) {
            return value;
        }
        let mut layer = self.plain(Kind::PointToPoint, value.extents);
        if let Some(name) = &value.name {
            layer.name = name.to_string();
        }
        let action = Action::Function(Function::Identity);
        let copy = self.layer(layer, &[&value], None, action, value.layout);
        if let Some(operation) = self.operations.last_mut() {
            operation.output = value.quantisation;
        }
        Value {
            quantisation: value.quantisation,
            ..copy
        }
    }
}

/// The function that a node is.
pub(super) fn function(kind: &str, attributes: &Attributes<'_>) -> Result<Function, String> {
    let number = |name: &str, otherwise: f64| attributes.float(name).unwrap_or(otherwise);
    Ok(match kind {
        "Gelu" => match attributes.text("approximate") {
            None | Some("none") => Function::Gelu,
            Some("tanh") => Function::GeluByTanh,
            Some(other) => return Err(format!("the approximation `{other}` is not supported")),
        },
        "Sigmoid" => Function::Sigmoid,
        "Tanh" => Function::Tanh,
        "Erf" => Function::Erf,
        "HardSigmoid" => Function::HardSigmoid(number("alpha", 0.2), number("beta", 0.5)),
        "HardSwish" => Function::HardSwish,
        "Swish" => Function::Swish(number("alpha", 1.0)),
        "LeakyRelu" => Function::LeakyRelu(number("alpha", 0.01)),
        "Elu" => Function::Elu(number("alpha", 1.0)),
        "Softplus" => Function::Softplus,
        "Mish" => Function::Mish,
        _ => return Err("the operation is not supported".to_owned()),
    })
}

/// The extents of what comes of two operands. What has one row or column is repeated along the other's; channels are not.
fn together(x: &Value, y: &Value) -> Result<[i64; 3], String> {
    let alike = x.layout == y.layout
        && x.extents[0] == y.extents[0]
        && (1..3).all(|d| x.extents[d] == y.extents[d] || x.extents[d].min(y.extents[d]) == 1);
    let repeats = matches!(x.layout, Layout::Map | Layout::Line | Layout::Sequence);
    if alike && (repeats || x.extents == y.extents) {
        return Ok(std::array::from_fn(|d| x.extents[d].max(y.extents[d])));
    }
    Err(format!(
        "operands of {:?} and {:?} are not supported; one may have a single row or column where the other has several, and no more",
        x.dims(),
        y.dims()
    ))
}
