//! Nodes that are taken into the layer before them.

use super::attributes::Attributes;
use super::constant::{Constant, Data};
use super::elements::table;
use super::fold::axis_of;
use super::graph::Reader;
use super::proto::Node;
use super::value::{Known, Outcome, Scales, Stored, Value};
use crate::front::{
    Action, Activation, Arithmetic, Function, Layout, Numbers, Piece, Quantisation, Source,
};
use crate::network::Kind;
use std::rc::Rc;

impl<'g> Reader<'g> {
    /// The layer that makes a tensor, if this node alone reads it and the result is not stored yet.
    pub(super) fn maker(&self, node: &'g Node, input: usize, value: &Value) -> Option<usize> {
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

    /// An activation and a constant: a bias of the layer before it, or a layer of its own.
    pub(super) fn with_constant(
        &mut self,
        arithmetic: Arithmetic,
        node: &'g Node,
        input: usize,
        x: &Value,
        (constant, scales): (&Constant, Option<&Scales>),
    ) -> Outcome {
        let (single, along_channels) = spread(x, constant);
        if arithmetic == Arithmetic::Add && along_channels {
            let layer = self
                .maker(node, input, x)
                .filter(|layer| self.operations[*layer].activation == Activation::None);
            if let Some(layer) = layer
                && let Action::Weighted {
                    bias: bias @ None, ..
                } = &mut self.operations[layer].action
            {
                *bias = Some(Self::numbers(constant, scales));
                return Ok(Known::Value(x.clone()));
            }
        }
        let numbers = Self::reals(constant, scales);
        if arithmetic == Arithmetic::Divide
            && numbers
                .values
                .as_ref()
                .is_ok_and(|values| values.contains(&0.0))
        {
            return Err(format!("the divisor `{}` contains 0", constant.name));
        }
        if single || along_channels {
            return Ok(self.pointwise(x, Action::Constant(arithmetic, numbers)));
        }
        let stored = Self::numbers(constant, scales);
        let table = table(x, stored).ok_or_else(|| not_spread(x, constant))?;
        let beside = self.operand_of(table, x.layout);
        let layer = self.plain(Kind::PointToPoint, x.extents);
        let action = Action::Combine(arithmetic);
        Ok(Known::Value(self.layer(
            layer,
            &[x, &beside],
            None,
            action,
            x.layout,
        )))
    }

    /// A constant less an activation.
    pub(super) fn less(
        &mut self,
        (constant, scales): (&Constant, Option<&Scales>),
        x: &Value,
    ) -> Outcome {
        if !matches!(spread(x, constant), (true, _) | (_, true)) {
            return Err(not_spread(x, constant));
        }
        let channels = x.extents[0] as usize;
        let numbers = Self::reals(constant, scales);
        let each = |values: Rc<Vec<f64>>| {
            let of = |channel| values.get(channel).or(values.first()).copied();
            Rc::new((0..channels).filter_map(of).collect())
        };
        let all = |values| Numbers {
            values,
            shape: vec![channels as i64],
            scales: None,
        };
        let minus = all(Ok(Rc::new(vec![-1.0; channels])));
        Ok(self.pointwise(x, Action::Affine(minus, all(numbers.values.map(each)))))
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
            parts.push(Self::reals(constant, scales));
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

    pub(super) fn quantise(
        &mut self,
        attributes: &Attributes<'_>,
        inputs: &[Option<Known>],
    ) -> Outcome {
        let mut x = Self::value(inputs, 0)?.clone();
        let (quantisation, stored_as) = Self::quantisation(attributes, inputs, Stored::Unsigned)?;
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
        x.stored_as = stored_as;
        Ok(Known::Value(x))
    }

    pub(super) fn dequantise(
        &mut self,
        attributes: &Attributes<'_>,
        inputs: &[Option<Known>],
    ) -> Outcome {
        if let Some(Some(Known::Constant(constant, _))) = inputs.first() {
            return dequantised(constant, attributes, inputs);
        }
        let mut x = Self::value(inputs, 0)?.clone();
        let (quantisation, _) = Self::quantisation(attributes, inputs, x.stored_as)?;
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
    fn quantisation(
        attributes: &Attributes<'_>,
        inputs: &[Option<Known>],
        otherwise: Stored,
    ) -> Result<(Quantisation, Stored), String> {
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
        let zero = Self::constant(inputs, 2)?.map(|(zero, _)| zero);
        let stored = Stored::of(zero.map(|zero| zero.kind), attributes, otherwise)?;
        let zero = match zero {
            Some(zero) => zero
                .single()
                .ok_or("more than one zero point is not supported for activations")?,
            None => 0.0,
        };
        let zero = zero - stored.shift();
        Ok((Quantisation { scale, zero }, stored))
    }
}

/// Whether a constant beside an activation is one number, and whether it has one for each channel.
fn spread(x: &Value, constant: &Constant) -> (bool, bool) {
    let count = super::fold::product(&constant.shape);
    let channels = x.extents[0];
    let last = constant.shape.last() == Some(&channels);
    let trailing = constant
        .shape
        .iter()
        .rev()
        .take_while(|extent| **extent == 1)
        .count();
    let along_channels = match x.layout {
        Layout::Map => trailing == 2 || channels == 1,
        Layout::Line => trailing == 1 || channels == 1,
        Layout::Sequence => last,
        Layout::Vector => x.extents[1] * x.extents[2] == 1 && last,
        Layout::Split(_) | Layout::Heads(_) | Layout::Parts(..) | Layout::Stacked(..) => false,
    };
    (count == 1, count == channels && along_channels)
}

fn not_spread(x: &Value, constant: &Constant) -> String {
    format!(
        "a constant of the shape {:?} beside {:?} is not supported",
        constant.shape,
        x.dims()
    )
}

/// A constant of integers with their scales; those of 8 bits come out signed.
fn dequantised(
    constant: &Constant,
    attributes: &Attributes<'_>,
    inputs: &[Option<Known>],
) -> Outcome {
    let (scale, _) = Reader::constant(inputs, 1)?.ok_or("its scale is missing")?;
    let scale = scale.numbers()?;
    if attributes.int("block_size").is_some_and(|size| size != 0) {
        return Err("scales of blocks are not supported".to_owned());
    }
    // Biases are 32-bit integers.
    let shift = match constant.kind {
        6 => 0.0,
        kind => Stored::of(Some(kind), attributes, Stored::Signed)?.shift(),
    };
    let zeros = match Reader::constant(inputs, 2)? {
        Some((zero, _)) => zero.numbers()?,
        None => Rc::new(vec![0.0]),
    };
    if let Some(zero) = zeros.iter().find(|zero| **zero - shift != 0.0) {
        return Err(format!(
            "a constant with a zero point of {zero} is not supported; expected {shift}"
        ));
    }
    let rank = constant.shape.len();
    let axis = match (scale.len(), rank) {
        (1, _) | (_, 1) => 0,
        _ => axis_of(attributes.int("axis").unwrap_or(1), rank)?,
    };
    let extent = constant.shape.get(axis).copied().unwrap_or(1);
    if scale.len() != 1 && scale.len() as i64 != extent {
        return Err(format!(
            "{} scales along an axis of {extent} elements",
            scale.len()
        ));
    }
    let mut signed = constant.clone();
    if let Data::There(numbers) = &mut signed.data
        && shift != 0.0
    {
        *numbers = Rc::new(numbers.iter().map(|number| number - shift).collect());
    }
    Ok(Known::Constant(signed, Some((scale.to_vec(), axis as i64))))
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
