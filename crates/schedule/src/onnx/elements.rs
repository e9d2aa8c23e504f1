//! Nodes that work on every element by itself.

use super::attributes::Attributes;
use super::graph::Reader;
use super::proto::Node;
use super::value::{Known, Outcome, Value};
use crate::front::{
    Action, Activation, Arithmetic, Element, Function, Layout, Numbers, Piece, Source, Table,
};
use crate::network::Kind;
use std::rc::Rc;

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
            Source::Constant(_) => false,
        };
        if sources.len() == value.pieces.len() && value.pieces.iter().all(whole) {
            return value;
        }
        let mut layer = self.plain(Kind::PointToPoint, value.extents);
        // The name of the node is that of what it does with the copy.
        layer.name = match &value.name {
            Some(name) => name.to_string(),
            None => format!("copy_for_{}", layer.name),
        };
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

/// A constant as it stands beside each element of an activation; nothing where it does not, or has several scales.
pub(super) fn table(x: &Value, constant: Numbers) -> Option<Table> {
    let dims = x.dims();
    let scale = match &constant.scales {
        None => None,
        Some((scales, _)) => match scales[..] {
            [scale] => Some(scale),
            _ => return None,
        },
    };
    // Axes are aligned at the last one; what stands before them is the batch.
    let shape = &constant.shape;
    let (batch, given) = shape.split_at(shape.len().saturating_sub(dims.len()));
    let mut shape = vec![1; dims.len() - given.len()];
    shape.extend(given);
    let fits = |(has, of): (&i64, &i64)| *has == 1 || has == of;
    if batch.iter().any(|extent| *extent != 1) || !shape.iter().zip(&dims).all(fits) {
        return None;
    }
    // Where an element stands along the axes of the file.
    let [c, h, w] = x.extents;
    let place = |[channel, row, column]: [i64; 3]| match x.layout {
        Layout::Map => vec![channel, row, column],
        Layout::Line => vec![channel, row],
        Layout::Sequence => vec![row, channel],
        Layout::Vector => vec![(channel * h + row) * w + column],
        Layout::Split(groups) => vec![row, channel / (c / groups), channel % (c / groups)],
        Layout::Heads(groups) => vec![channel / (c / groups), row, channel % (c / groups)],
        // Nothing stands beside them.
        Layout::Parts(..) | Layout::Stacked(..) => Vec::new(),
    };
    let index = |at: [i64; 3]| {
        let along = place(at).into_iter().zip(&shape);
        along.fold(0, |index, (at, extent)| index * extent + at % extent)
    };
    // What is the same along channels, rows or columns is kept once.
    let sides: &[usize] = match x.layout {
        Layout::Map => &[0, 1, 2],
        Layout::Line | Layout::Vector => &[0, 1],
        Layout::Sequence => &[1, 0],
        Layout::Split(_) => &[1, 0, 0],
        Layout::Heads(_) => &[0, 1, 0],
        Layout::Parts(..) | Layout::Stacked(..) => return None,
    };
    let mut extents = [1; 3];
    for (side, _) in sides.iter().zip(&shape).filter(|(_, extent)| **extent > 1) {
        extents[*side] = x.extents[*side];
    }
    if x.layout == Layout::Vector {
        extents = x.extents;
    }
    let spread = |values: Rc<Vec<f64>>| {
        let mut all = Vec::with_capacity(extents.iter().product::<i64>() as usize);
        for channel in 0..extents[0] {
            for row in 0..extents[1] {
                let columns = 0..extents[2];
                all.extend(columns.map(|column| values[index([channel, row, column]) as usize]));
            }
        }
        Rc::new(all)
    };
    Some(Table {
        name: String::new(),
        values: constant.values.map(spread),
        extents,
        scale,
        element: Element::Int8,
    })
}
