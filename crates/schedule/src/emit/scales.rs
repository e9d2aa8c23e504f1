//! How integers stand for numbers in every tensor: as the file says it, or by a rule that needs no data.
//!
//! The rule: network inputs lie between −1 and 1; bounds are carried from layer to layer; each tensor gets the power of two as its
//! scale that holds its bound in 7 bits, and zero stands for zero.

use super::weights::{Constants, constants, power};
use crate::front::{
    Action, Activation, Arithmetic, Front, Function, Numbers, Operand, Operation, Quantisation,
    Source, Table,
};
use crate::network::Layer;
use std::rc::Rc;

/// Scales of what goes in and of every layer's result; none where weights that decide them are not there.
#[derive(Clone, Debug)]
pub(super) struct Scales {
    pub(super) inputs: Vec<Quantisation>,
    pub(super) layers: Vec<Quantisation>,
    /// Weights as integers, for the layers that have some.
    pub(super) constants: Vec<Option<Constants>>,
    /// Constants beside activations as integers, where they are known.
    pub(super) tables: Vec<Option<(Quantisation, Vec<i8>)>>,
}

/// Every number as it is, or a power of two of it where a layer says so.
pub(super) fn as_they_are(front: &Front) -> Scales {
    Scales {
        inputs: vec![PLAIN; front.inputs.len()],
        layers: (front.operations.iter())
            .map(|operation| operation.output.unwrap_or(PLAIN))
            .collect(),
        constants: vec![None; front.network.layers.len()],
        tables: vec![None; front.constants.len()],
    }
}

/// The scales of a network.
///
/// # Errors
/// The tensor that is not there, or the layer whose result the file does not store in 8 bits.
pub(super) fn scales(front: &Front) -> Result<Scales, String> {
    let says = front
        .operations
        .iter()
        .any(|operation| operation.output.is_some())
        || front
            .inputs
            .iter()
            .any(|input| input.quantisation.is_some());
    let quantised = says && !front.is_calibrated;
    if front.bits() == 16 {
        return Ok(as_they_are(front));
    }
    let plain = |bound: f64| Quantisation {
        scale: power(bound),
        zero: 0.0,
    };
    let mut scales = Scales {
        inputs: front
            .inputs
            .iter()
            .map(|input| input.quantisation.unwrap_or(plain(1.0)))
            .collect(),
        layers: Vec::new(),
        constants: Vec::new(),
        tables: vec![None; front.constants.len()],
    };
    let mut bounds: Vec<f64> = Vec::new();
    for (operation, layer) in front.operations.iter().zip(&front.network.layers) {
        let tables: Vec<usize> = tables_of(operation).collect();
        for table in &tables {
            scales.tables[*table] = Some(stored_table(&front.constants[*table])?);
        }
        let of = |source: Source| match source {
            Source::Input(_) => 1.0,
            Source::Layer(layer) => bounds[layer],
            Source::Constant(constant) => most_of(&front.constants[constant]),
        };
        let operand = |operand: &Operand| {
            operand
                .pieces
                .iter()
                .map(|piece| of(piece.source))
                .fold(0.0, f64::max)
        };
        let read: Vec<f64> = operation.operands.iter().map(operand).collect();
        let stored = |operand: &Operand| taken(&scales, operand);
        let constants = match &operation.action {
            Action::Weighted { .. } => Some(constants(
                operation,
                layer,
                stored(&operation.operands[0]).scale,
            )?),
            _ => None,
        };
        let moves = matches!(operation.action, Action::Move(_));
        let is_real = |table: &usize| quantised && front.constants[*table].scale.is_none();
        if !moves && tables.iter().any(is_real) {
            return Err(format!(
                "the constant beside the operand of `{}` is not stored in 8 bits: a DequantizeLinear behind it is missing",
                layer.name
            ));
        }
        let divisor = tables.first().map(|table| &front.constants[*table]);
        let mut bound = bound(
            &operation.action,
            layer,
            &read,
            (constants.as_ref(), divisor),
        )?;
        if let Activation::Bounded(most) = operation.activation {
            bound = bound.min(most);
        }
        let own = match operation.output {
            Some(own) => own,
            None if quantised && keeps_scale(operation) => {
                let activations = operation
                    .operands
                    .iter()
                    .filter(|operand| !is_table(operand));
                coarsest(activations.map(stored))
            }
            None if quantised => {
                return Err(format!(
                    "the result of `{}` is not stored in 8 bits: a QuantizeLinear behind it is missing",
                    layer.name
                ));
            }
            None => plain(bound),
        };
        if moves {
            for table in tables {
                let moved = stored_like(&front.constants[table], quantised, own)?;
                scales.tables[table] = Some((own, moved));
            }
        }
        bounds.push(bound);
        scales.layers.push(own);
        scales.constants.push(constants);
    }
    Ok(scales)
}

/// Whether the result is stored as what is read.
fn keeps_scale(operation: &Operation) -> bool {
    match operation.action {
        Action::MaxPool(_) | Action::Move(_) => true,
        Action::Function(Function::Identity) => operation.activation == Activation::None,
        _ => false,
    }
}

/// The largest number that a layer can give, from those that it reads.
fn bound(
    action: &Action,
    layer: &Layer,
    read: &[f64],
    (constants, table): (Option<&Constants>, Option<&Table>),
) -> Result<f64, String> {
    let most = |numbers: &Numbers| -> Result<f64, String> {
        let values = numbers.values.clone()?;
        Ok(values.iter().fold(0.0, |most: f64, v| most.max(v.abs())))
    };
    Ok(match action {
        Action::Weighted { .. } => constants.map_or(0.0, |constants| constants.bound(read[0])),
        Action::Combine(Arithmetic::Multiply) => read[0] * read[1],
        Action::Combine(Arithmetic::Divide) => {
            let scale = table.and_then(|table| table.scale).unwrap_or(1.0);
            let values = table.map_or_else(|| Ok(Rc::default()), |table| table.values.clone())?;
            combined(Arithmetic::Divide, read[0], &values, scale)
        }
        Action::Combine(_) => read[0] + read[1],
        Action::Product => read[0] * read[1] * (layer.channels / layer.groups) as f64,
        Action::Softmax(_) => 1.0,
        Action::Function(function) => of_function(*function, read[0]),
        Action::Constant(arithmetic, numbers) => {
            combined(*arithmetic, read[0], &numbers.values.clone()?, 1.0)
        }
        Action::LayerNorm(factor, offset, _) => {
            most(factor)? * (layer.output[0] as f64).sqrt()
                + offset.as_ref().map_or(Ok(0.0), most)?
        }
        Action::Affine(factor, offset) => {
            let (factor, offset) = (factor.values.clone()?, offset.values.clone()?);
            factor
                .iter()
                .zip(offset.iter())
                .fold(0.0, |most: f64, (f, o)| {
                    most.max(read[0] * f.abs() + o.abs())
                })
        }
        Action::Move(_) | Action::Named(_) | Action::Strided(_) | Action::Take(..) => {
            read.iter().copied().fold(0.0, f64::max)
        }
        Action::MaxPool(_) | Action::AveragePool(..) => read[0],
    })
}

/// The largest number that comes of numbers up to a bound and constants in such steps.
fn combined(arithmetic: Arithmetic, bound: f64, values: &[f64], scale: f64) -> f64 {
    let all = || values.iter().map(|value| value.abs() * scale);
    let most = all().fold(0.0, f64::max);
    match arithmetic {
        Arithmetic::Multiply => bound * most,
        Arithmetic::Divide => {
            let least = all().fold(f64::MAX, f64::min);
            if least > 0.0 { bound / least } else { bound }
        }
        Arithmetic::Add | Arithmetic::Subtract => bound + most,
    }
}

/// The constants that an operation reads.
fn tables_of(operation: &Operation) -> impl Iterator<Item = usize> {
    let pieces = operation
        .operands
        .iter()
        .flat_map(|operand| &operand.pieces);
    pieces.filter_map(|piece| match piece.source {
        Source::Constant(constant) => Some(constant),
        Source::Input(_) | Source::Layer(_) => None,
    })
}

/// Whether an operand is a constant.
fn is_table(operand: &Operand) -> bool {
    let mut pieces = operand.pieces.iter();
    pieces.all(|piece| matches!(piece.source, Source::Constant(_)))
}

/// The largest number of a constant, 0 where it is not there.
fn most_of(table: &Table) -> f64 {
    let values = table.values.as_deref().map_or(&[][..], Vec::as_slice);
    let most = values.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    most * table.scale.unwrap_or(1.0)
}

/// A constant as integers: as it is stored, or in steps of the power of two that holds its largest number in 7 bits.
fn stored_table(table: &Table) -> Result<(Quantisation, Vec<i8>), String> {
    let values = table.values.clone()?;
    let zero = 0.0;
    if let Some(scale) = table.scale {
        let as_they_are = integers(&values, PLAIN);
        return Ok((Quantisation { scale, zero }, as_they_are));
    }
    let scale = power(most_of(table));
    let stored = Quantisation { scale, zero };
    Ok((stored, integers(&values, stored)))
}

/// Real numbers as integers.
fn integers(reals: &[f64], stored: Quantisation) -> Vec<i8> {
    let integer = |real: &f64| {
        let steps = (real / stored.scale + 0.5).floor() + stored.zero;
        steps.clamp(-128.0, 127.0) as i8
    };
    reals.iter().map(integer).collect()
}

/// A constant that is joined with activations, stored as the result is. Real numbers of a quantised file are stored only there.
fn stored_like(table: &Table, quantised: bool, own: Quantisation) -> Result<Vec<i8>, String> {
    if quantised && table.scale.is_none() {
        return Ok(integers(&table.values.clone()?, own));
    }
    let (stored, values) = stored_table(table)?;
    if stored == own {
        return Ok(values);
    }
    let real = |value: &i8| (f64::from(*value) - stored.zero) * stored.scale;
    Ok(integers(&values.iter().map(real).collect::<Vec<_>>(), own))
}

/// The largest number that a function gives for numbers up to a bound.
fn of_function(function: Function, bound: f64) -> f64 {
    match function {
        Function::Sigmoid | Function::Tanh | Function::Erf | Function::HardSigmoid(..) => 1.0,
        Function::LeakyRelu(alpha) => bound * alpha.abs().max(1.0),
        Function::Elu(alpha) => bound.max(alpha.abs()),
        Function::Softplus => bound + std::f64::consts::LN_2,
        Function::Clip(least, most) => {
            let clipped = [-bound, bound].map(|x: f64| x.max(least).min(most).abs());
            clipped[0].max(clipped[1])
        }
        Function::Gelu
        | Function::GeluByTanh
        | Function::HardSwish
        | Function::Swish(_)
        | Function::Mish
        | Function::Identity => bound,
    }
}

/// How a reader takes an operand.
pub(super) fn taken(scales: &Scales, operand: &Operand) -> Quantisation {
    let of = |source: Source| match source {
        Source::Input(input) => scales.inputs[input],
        Source::Layer(layer) => scales.layers[layer],
        Source::Constant(constant) => {
            let stored = scales.tables[constant].as_ref();
            stored.map_or(PLAIN, |(stored, _)| *stored)
        }
    };
    operand
        .quantisation
        .unwrap_or_else(|| coarsest(operand.pieces.iter().map(|piece| of(piece.source))))
}

/// Where nothing says how numbers are stored.
pub(super) const PLAIN: Quantisation = Quantisation {
    scale: 1.0,
    zero: 0.0,
};

/// What is joined without being stored again is held by the coarsest scale of all.
fn coarsest(all: impl Iterator<Item = Quantisation>) -> Quantisation {
    all.reduce(|a, b| if b.scale > a.scale { b } else { a })
        .unwrap_or(PLAIN)
}
