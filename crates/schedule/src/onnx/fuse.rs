//! Nodes that are taken into the layer before them.

use super::graph::{Attributes, Known, Outcome, Reader, Value};
use super::proto::Node;
use crate::front::{
    Action, Activation, Arithmetic, Function, Layout, Numbers, Piece, Quantisation, Source,
};
use crate::network::Kind;
use std::rc::Rc;

impl<'g> Reader<'g> {
    /// The layer that makes a tensor, if this node alone reads it and the result is not stored yet.
    fn maker(&self, node: &'g Node, input: usize, value: &Value) -> Option<usize> {
        let [
            Piece {
                source: Source::Layer(layer),
                channels,
                ..
            },
        ] = value.pieces[..]
        else {
            return None;
        };
        let tensor = node.input.get(input)?.as_str();
        let alone = self.uses.get(tensor) == Some(&1);
        let whole = channels == [0, self.layers[layer].output[0]];
        let fusable =
            self.layers[layer].kind.multiplies() || self.layers[layer].kind == Kind::Eltwise;
        (alone
            && whole
            && fusable
            && self.operations[layer].output.is_none()
            && value.quantisation.is_none())
        .then_some(layer)
    }

    pub(super) fn activation(
        &mut self,
        node: &'g Node,
        activation: Activation,
        inputs: &[Option<Known>],
    ) -> Outcome {
        let x = Self::value(inputs, 0)?.clone();
        let layer = self
            .maker(node, 0, &x)
            .filter(|layer| self.operations[*layer].activation == Activation::None);
        let Some(layer) = layer else {
            let known = self.function(Function::Identity, inputs)?;
            if let Some(operation) = self.operations.last_mut() {
                operation.activation = activation;
            }
            return Ok(known);
        };
        self.operations[layer].activation = activation;
        Ok(Known::Value(x))
    }

    pub(super) fn clip(
        &mut self,
        node: &'g Node,
        attributes: &Attributes<'_>,
        inputs: &[Option<Known>],
    ) -> Outcome {
        let bound = |at: usize, name: &str| -> Result<Option<f64>, String> {
            Ok(match Self::constant(inputs, at)? {
                Some((constant, _)) => Some(
                    constant
                        .single()
                        .ok_or_else(|| format!("its bound `{}` is not there", constant.name))?,
                ),
                None => attributes.float(name),
            })
        };
        let activation = match (bound(1, "min")?, bound(2, "max")?) {
            (Some(0.0), Some(most)) if most >= 0.0 => Activation::Bounded(most),
            (Some(0.0), None) => Activation::Relu,
            (least, most) => {
                return Err(format!(
                    "bounds of {least:?} and {most:?} are not supported; the lower must be 0"
                ));
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

    /// An activation and a constant: a bias of the layer before it, or a layer of its own.
    pub(super) fn with_constant(
        &mut self,
        arithmetic: Arithmetic,
        node: &'g Node,
        input: usize,
        x: &Value,
        constant: Numbers,
    ) -> Outcome {
        let count: i64 = constant.shape.iter().product();
        let channels = x.extents[0];
        let trailing = constant
            .shape
            .iter()
            .rev()
            .take_while(|extent| **extent == 1)
            .count();
        let along_channels = match x.layout {
            Layout::Map => count == channels && trailing >= 2,
            Layout::Sequence => count == channels && constant.shape.last() == Some(&channels),
            Layout::Vector => count == channels && x.extents[1] * x.extents[2] == 1,
            Layout::Split(_) | Layout::Heads(_) => false,
        };
        if arithmetic == Arithmetic::Add && along_channels {
            let layer = self
                .maker(node, input, x)
                .filter(|layer| self.operations[*layer].activation == Activation::None);
            if let Some(layer) = layer
                && let Action::Weighted {
                    bias: bias @ None, ..
                } = &mut self.operations[layer].action
            {
                *bias = Some(constant);
                return Ok(Known::Value(x.clone()));
            }
        }
        if count != 1 && !along_channels {
            return Err(format!(
                "a constant of the shape {:?} beside {:?} is not supported",
                constant.shape,
                x.dims()
            ));
        }
        Ok(self.pointwise(x, Action::Constant(arithmetic, constant)))
    }

    pub(super) fn batch_norm(
        &mut self,
        node: &'g Node,
        attributes: &Attributes<'_>,
        inputs: &[Option<Known>],
    ) -> Outcome {
        let x = Self::value(inputs, 0)?.clone();
        let mut parts = Vec::new();
        for at in 1..5 {
            let (constant, scales) = Self::constant(inputs, at)?.ok_or("a parameter is missing")?;
            if constant.shape.iter().product::<i64>() != x.extents[0] {
                return Err(format!(
                    "{} channels arrive, its parameter {at} has the shape {:?}",
                    x.extents[0], constant.shape
                ));
            }
            parts.push(Self::numbers(constant, scales));
        }
        let epsilon = attributes.float("epsilon").unwrap_or(1e-5);
        let (factor, offset) = folded(&parts, epsilon);
        if let Some(layer) = self
            .maker(node, 0, &x)
            .filter(|layer| self.operations[*layer].activation == Activation::None)
            && let Action::Weighted {
                weight,
                columns,
                bias,
                ..
            } = &mut self.operations[layer].action
            && weight.scales.is_none()
        {
            let (scaled, shifted) = norm_into(weight, *columns, bias.as_ref(), &factor, &offset);
            (*weight, *bias) = (scaled, Some(shifted));
            return Ok(Known::Value(x));
        }
        Ok(self.pointwise(&x, Action::Affine(factor, offset)))
    }

    pub(super) fn quantise(&mut self, inputs: &[Option<Known>]) -> Outcome {
        let mut x = Self::value(inputs, 0)?.clone();
        let quantisation = Self::quantisation(inputs)?;
        match x.pieces[..] {
            [
                Piece {
                    source: Source::Layer(layer),
                    channels,
                    ..
                },
            ] if channels == [0, self.layers[layer].output[0]] && x.quantisation.is_none() => {
                let stored = &mut self.operations[layer].output;
                if stored.is_some_and(|stored| stored != quantisation) {
                    return Err("the result is stored in two ways".to_owned());
                }
                *stored = Some(quantisation);
            }
            [
                Piece {
                    source: Source::Input(input),
                    ..
                },
            ] if self.inputs[input].quantisation.is_none() => {
                self.inputs[input].quantisation = Some(quantisation);
            }
            // What is stored in one way is stored again in another.
            _ if x.quantisation.is_some_and(|stored| stored != quantisation) => {
                x.pieces = x.stored().collect();
            }
            _ => {}
        }
        x.quantisation = Some(quantisation);
        Ok(Known::Value(x))
    }

    pub(super) fn dequantise(
        &mut self,
        attributes: &Attributes<'_>,
        inputs: &[Option<Known>],
    ) -> Outcome {
        if let Some(Some(Known::Constant(constant, _))) = inputs.first() {
            let (scale, _) = Self::constant(inputs, 1)?.ok_or("its scale is missing")?;
            let scale = scale.numbers()?;
            if let Some((zero, _)) = Self::constant(inputs, 2)?
                && zero.numbers()?.iter().any(|zero| *zero != 0.0)
            {
                return Err("a constant with a zero point other than 0 is not supported".to_owned());
            }
            let axis = if scale.len() == 1 {
                0
            } else {
                attributes.int("axis").unwrap_or(1)
            };
            return Ok(Known::Constant(
                constant.clone(),
                Some((scale.to_vec(), axis)),
            ));
        }
        let mut x = Self::value(inputs, 0)?.clone();
        let quantisation = Self::quantisation(inputs)?;
        if let [
            Piece {
                source: Source::Input(input),
                ..
            },
        ] = x.pieces[..]
        {
            self.inputs[input].quantisation.get_or_insert(quantisation);
        }
        x.quantisation = Some(quantisation);
        Ok(Known::Value(x))
    }

    /// Scale and zero point of an activation, as 8-bit signed integers.
    fn quantisation(inputs: &[Option<Known>]) -> Result<Quantisation, String> {
        let (scale, _) = Self::constant(inputs, 1)?.ok_or("its scale is missing")?;
        let scale = match scale.single() {
            Some(scale) if scale > 0.0 && scale.is_finite() => scale,
            _ => {
                return Err(
                    "a scale that is not one positive number is not supported for activations"
                        .to_owned(),
                );
            }
        };
        let zero = match Self::constant(inputs, 2)? {
            Some((zero, _)) => zero
                .single()
                .ok_or("more than one zero point is not supported for activations")?,
            None => 0.0,
        };
        // Unsigned numbers are the signed ones and 128.
        let zero = if zero > 127.0 { zero - 128.0 } else { zero };
        if !(-128.0..=127.0).contains(&zero) {
            return Err(format!("a zero point of {zero} is none of 8 bits"));
        }
        Ok(Quantisation { scale, zero })
    }
}

/// Factor and offset of a batch norm.
fn folded(parts: &[Numbers], epsilon: f64) -> (Numbers, Numbers) {
    let all: Result<Vec<_>, String> = parts.iter().map(|part| part.values.clone()).collect();
    let shape = parts[0].shape.clone();
    let numbers = |values: Result<Vec<f64>, String>| Numbers {
        values: values.map(Rc::new),
        shape: shape.clone(),
        scales: None,
    };
    match all {
        Err(missing) => (numbers(Err(missing.clone())), numbers(Err(missing))),
        Ok(all) => {
            let [scale, shift, mean, variance] = &all[..] else {
                return (numbers(Ok(Vec::new())), numbers(Ok(Vec::new())));
            };
            let factor: Vec<f64> = scale
                .iter()
                .zip(variance.iter())
                .map(|(s, v)| s / (v + epsilon).sqrt())
                .collect();
            let offset = shift
                .iter()
                .zip(mean.iter())
                .zip(&factor)
                .map(|((b, m), f)| b - m * f)
                .collect();
            (numbers(Ok(factor)), numbers(Ok(offset)))
        }
    }
}

/// Weights and bias with the factor and the offset of a batch norm behind them.
fn norm_into(
    weight: &Numbers,
    columns: bool,
    bias: Option<&Numbers>,
    factor: &Numbers,
    offset: &Numbers,
) -> (Numbers, Numbers) {
    let all = || -> Result<(Vec<f64>, Vec<f64>), String> {
        let (values, factor, offset) = (
            weight.values.clone()?,
            factor.values.clone()?,
            offset.values.clone()?,
        );
        let outputs = factor.len().max(1);
        let inner = values.len() / outputs;
        let channel = |at: usize| {
            if columns {
                at % outputs
            } else {
                at / inner.max(1)
            }
        };
        let scaled = values
            .iter()
            .enumerate()
            .map(|(at, value)| value * factor[channel(at)])
            .collect();
        let bias = bias.map(|bias| bias.values.clone()).transpose()?;
        let old = |k: usize| bias.as_ref().map_or(0.0, |bias| bias[k]);
        Ok((
            scaled,
            (0..outputs)
                .map(|k| offset[k] + old(k) * factor[k])
                .collect(),
        ))
    };
    let (scaled, shifted) = match all() {
        Ok((scaled, shifted)) => (Ok(Rc::new(scaled)), Ok(Rc::new(shifted))),
        Err(missing) => (Err(missing.clone()), Err(missing)),
    };
    let bias = Numbers {
        values: shifted,
        shape: factor.shape.clone(),
        scales: None,
    };
    (
        Numbers {
            values: scaled,
            shape: weight.shape.clone(),
            scales: None,
        },
        bias,
    )
}
