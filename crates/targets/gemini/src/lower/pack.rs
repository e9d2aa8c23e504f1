//! Weights as they lie in DRAM: for each output channel its taps, each with the input channels rounded up to 64 bits, and 32
//! bytes of parameters. How the chip lays out those 32 bytes is not published; here they are `k` and `b` in binary64 and zeros.
//!
//! Schedules that were converted from an ancestor have neither the rounding nor the parameters, which their units know.

use crate::network::Network;
use crate::operation::{Kind, Operation};
use crate::schedule::DramOut;
use chipless_kernels::cast::{Rounding, encode_f64};
use chipless_model::{ElementType, Kind as ElementKind, SplitMix64};
use std::collections::HashMap;
use std::ops::Range;

/// Numbers of any type, row by row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Array {
    /// Dimensions, outermost first.
    pub shape: Vec<u64>,
    /// As many as the shape says.
    pub values: Vec<f64>,
}

impl From<Vec<f64>> for Array {
    fn from(values: Vec<f64>) -> Array {
        Array {
            shape: vec![values.len() as u64],
            values,
        }
    }
}

/// The arrays of a layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrays {
    /// Weights: K, C, R, S.
    pub weight: Array,
    /// Multiplier of each output channel; ones where it is empty.
    pub k: Array,
    /// What is added to the sum of each output channel; zeros where it is empty.
    pub b: Array,
}

/// Where weights come from.
#[derive(Clone, Copy, Debug)]
pub enum WeightData<'d> {
    /// Arrays of the layers by name; those of constants as `weight`.
    Given(&'d HashMap<String, Arrays>),
    /// Random numbers that keep results inside their range.
    Seeded(u64),
}

/// The numbers of a layer: by FNV-1a of its name, so that they do not depend on the other layers.
fn numbers(seed: u64, name: &str) -> SplitMix64 {
    let hash = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    SplitMix64(name.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, hash))
}

/// What rounds to no float16 any more.
const FLOAT16_BEYOND: f64 = 65520.0;

/// Elements of the weights of one layer, at most.
const MOST_ELEMENTS: u64 = 1 << 30;

/// Arrays of every layer that needs some and has none.
pub(crate) fn seeded(operation: &Operation, name: &str, seed: u64) -> Option<Arrays> {
    let Kind::Convolution {
        groups,
        quantisation,
        ..
    } = &operation.kind
    else {
        return None;
    };
    let channels = operation.operands[0].shape[1] / u64::from((*groups).max(1));
    let depth = channels.checked_mul(operation.kernel.iter().map(|v| u64::from(*v)).product())?;
    let count = depth
        .checked_mul(u64::from(operation.channels))
        .filter(|n| *n <= MOST_ELEMENTS)?;
    let mut sequence = numbers(seed, name);
    let values = (0..count)
        .map(|_| f64::from(sequence.number() as i8))
        .collect();
    let weight = Array {
        shape: weight_shape(operation, channels).to_vec(),
        values,
    };
    let b: Vec<f64> = (0..operation.channels)
        .map(|_| f64::from(sequence.number() as i8))
        .collect();
    // Inputs and weights spread over the range of a byte; their sums then fill a good part of the output's range.
    let spread = 74.0 * 74.0 * (depth.max(1) as f64).sqrt();
    let scale = quantisation.output_scale.unwrap_or(16.0);
    let k = 40.0
        / (spread
            * (scale * quantisation.input_scale)
                .abs()
                .max(f64::MIN_POSITIVE));
    Some(Arrays {
        weight,
        k: vec![k; operation.channels as usize].into(),
        b: b.into(),
    })
}

/// K, C, R, S.
fn weight_shape(operation: &Operation, channels: u64) -> [u64; 4] {
    let [rows, columns] = operation.kernel.map(u64::from);
    [u64::from(operation.channels), channels, rows, columns]
}

/// Whether an array has a shape; dimensions of one element at the end may be left out.
fn has_shape(array: &Array, shape: &[u64]) -> bool {
    let trimmed = |shape: &[u64]| {
        shape
            .iter()
            .rposition(|extent| *extent != 1)
            .map_or(0, |last| last + 1)
    };
    array.shape[..trimmed(&array.shape)] == shape[..trimmed(shape)]
        && shape
            .iter()
            .fold(1u64, |n, extent| n.saturating_mul(*extent))
            == array.values.len() as u64
}

/// What a number is not, of those that a type has; `None` where it is one. Reals are rounded to the type, integers are not.
fn refused(element: ElementType, value: f64) -> Option<String> {
    let bits = element.bits();
    if element.kind() == ElementKind::Float {
        return (!value.is_finite() || value.abs() >= FLOAT16_BEYOND)
            .then(|| format!("a finite number of {element}"));
    }
    let most = (1i64 << (bits - 1)) as f64;
    let fits = value.fract() == 0.0 && (-most..most).contains(&value);
    (!fits).then(|| {
        format!(
            "a whole number from {} to {}, as {element} has them",
            -most,
            most - 1.0
        )
    })
}

/// `k` and `b` of each output channel.
pub(crate) type Parameters = std::sync::Arc<[[f64; 2]]>;

/// `k` and `b` of each output channel of a layer; 1 and 0 where the arrays have none.
pub(crate) fn parameters(operation: &Operation, arrays: &Arrays) -> Parameters {
    (0..operation.channels as usize)
        .map(|channel| {
            let of =
                |array: &Array, otherwise| array.values.get(channel).copied().unwrap_or(otherwise);
            [of(&arrays.k, 1.0), of(&arrays.b, 0.0)]
        })
        .collect()
}

/// Why a transfer cannot bring weights of this layer, whatever these are; `None` where it can.
pub(crate) fn misfit(
    out: &DramOut,
    layer: &str,
    operation: &Operation,
    is_packed: bool,
) -> Option<String> {
    let (Kind::Convolution { weight, .. }, Some(row)) =
        (&operation.kind, Row::of_operation(operation, is_packed))
    else {
        return Some(format!(
            "layer `{layer}` ({}) has no weights, and transfer {} brings some",
            operation.name, out.transfer
        ));
    };
    if is_packed && weight.bits() > 8 {
        return Some(format!(
            "the schedule was converted from a dialect that counts a byte for each element, layer `{layer}` has weights of {weight}"
        ));
    }
    let (first, count) = (u64::from(out.bounds.lower[1]), out.bounds.shape()[1]);
    let (end, total) = (first.saturating_add(count), u64::from(operation.channels));
    if end > total {
        return Some(format!(
            "layer `{layer}`: expected output channels up to {total}, found {end}"
        ));
    }
    let sizes = operation.kernel.map(u64::from).into_iter();
    let each = sizes
        .chain([row.channels as u64])
        .try_fold(row.size as u64, u64::checked_mul)
        .and_then(|bytes| bytes.checked_add(row.parameters as u64));
    let Some(row) = each else {
        return Some(format!(
            "the weights of an output channel of layer `{layer}` have more than 2^64 bytes"
        ));
    };
    (row.checked_mul(count) != Some(out.size)).then(|| {
        format!(
            "transfer {} has {} bytes of weights, layer `{layer}` has {row} for each of its {total} output channels",
            out.transfer, out.size
        )
    })
}

/// The bytes of a transfer of weights.
///
/// # Errors
/// Arrays of another shape than the layer or the transfer says, numbers that its type does not have.
pub(crate) fn pack(
    out: &DramOut,
    layer: &str,
    operation: &Operation,
    arrays: &Arrays,
    is_packed: bool,
) -> Result<Vec<u8>, String> {
    if let Some(why) = misfit(out, layer, operation, is_packed) {
        return Err(why);
    }
    let (first, count) = (out.bounds.lower[1] as usize, out.bounds.shape()[1] as usize);
    channels(layer, operation, arrays, first..first + count, is_packed)
}

/// The weights of some output channels of a convolution, one channel after another.
///
/// # Errors
/// Arrays of another shape than the layer says, numbers that its type does not have, channels that it does not have.
pub(crate) fn channels(
    layer: &str,
    operation: &Operation,
    arrays: &Arrays,
    of: Range<usize>,
    is_packed: bool,
) -> Result<Vec<u8>, String> {
    let Kind::Convolution { groups, weight, .. } = &operation.kind else {
        return Err(format!(
            "layer `{layer}` ({}) has no weights",
            operation.name
        ));
    };
    let channels = (operation.operands[0].shape[1] / u64::from((*groups).max(1))) as usize;
    let taps = operation
        .kernel
        .iter()
        .map(|v| *v as usize)
        .product::<usize>();
    let total = operation.channels as usize;
    let shape = weight_shape(operation, channels as u64);
    if !has_shape(&arrays.weight, &shape) {
        return Err(format!(
            "layer `{layer}`: expected weights of the shape {shape:?}, found {:?}",
            arrays.weight.shape
        ));
    }
    for (name, array) in [("k", &arrays.k), ("b", &arrays.b)] {
        if !array.values.is_empty() && !has_shape(array, &[total as u64]) {
            return Err(format!(
                "layer `{layer}`: expected {name} of the shape [{total}], found {:?}",
                array.shape
            ));
        }
        if let Some(value) = array.values.iter().find(|value| !value.is_finite()) {
            return Err(format!(
                "layer `{layer}`: expected finite numbers in {name}, found {value}"
            ));
        }
    }
    let row = Row::of(*weight, channels, is_packed);
    let (size, padded) = (row.size, row.channels);
    if of.end > total {
        return Err(format!(
            "layer `{layer}`: expected output channels up to {total}, found {}",
            of.end
        ));
    }
    let bytes = taps * padded * size + row.parameters;
    let parameters = parameters(operation, arrays);
    let mut packed = vec![0; bytes * of.len()];
    let mut taken = vec![0.0; padded];
    for (k, packed) in of.zip(packed.chunks_exact_mut(bytes)) {
        let all = &arrays.weight.values[k * channels * taps..][..channels * taps];
        if let Some((at, want)) = all
            .iter()
            .enumerate()
            .find_map(|(at, value)| Some((at, refused(*weight, *value)?)))
        {
            let ([_, _, _, columns], channel, tap) =
                (shape.map(|extent| extent as usize), at / taps, at % taps);
            let place = [k, channel, tap / columns, tap % columns];
            return Err(format!(
                "layer `{layer}`: expected {want}, as weight {place:?}, found {}",
                all[at]
            ));
        }
        for (tap, to) in packed[..taps * padded * size]
            .chunks_exact_mut(padded * size)
            .enumerate()
        {
            for (channel, value) in taken.iter_mut().take(channels).enumerate() {
                *value = all[channel * taps + tap];
            }
            encode_f64(*weight, &taken, Rounding::NearestEven, to).map_err(|e| e.to_string())?;
        }
        let beside = &mut packed[taps * padded * size..];
        for (to, value) in beside.chunks_exact_mut(8).zip(parameters[k]) {
            to.copy_from_slice(&value.to_le_bytes());
        }
    }
    Ok(packed)
}

/// The bytes of a constant operand, N, C, H, W.
///
/// # Errors
/// Another shape than the network says, numbers that its type does not have.
pub(crate) fn constant(
    name: &str,
    shape: [u64; 4],
    element: ElementType,
    given: &Array,
) -> Result<Vec<u8>, String> {
    if !has_shape(given, &shape) {
        return Err(format!(
            "constant `{name}`: expected the shape {shape:?}, found {:?}",
            given.shape
        ));
    }
    let mut wrong = given
        .values
        .iter()
        .filter_map(|value| Some((value, refused(element, *value)?)));
    if let Some((value, want)) = wrong.next() {
        return Err(format!("constant `{name}`: expected {want}, found {value}"));
    }
    let mut bytes = vec![0; given.values.len() * element.bits() as usize / 8];
    encode_f64(element, &given.values, Rounding::NearestEven, &mut bytes)
        .map_err(|e| e.to_string())?;
    Ok(bytes)
}

/// The operations of a network's layers, each worked out once.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    known: HashMap<String, std::sync::Arc<Result<Operation, String>>>,
}

impl Operations {
    pub(crate) fn of(
        &mut self,
        network: &Network,
        name: &str,
    ) -> std::sync::Arc<Result<Operation, String>> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let operation = std::sync::Arc::new(Operation::of(network, name));
        self.known.insert(name.to_owned(), operation.clone());
        operation
    }
}

/// Bytes of parameters behind the weights of an output channel; the first 16 are `k` and `b` in binary64 here.
const PARAMETERS: usize = 32;

/// How the weights of an output channel lie: tap by tap a row of input channels, parameters behind the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Bytes of a weight.
    pub(crate) size: usize,
    /// Input channels, rounded up to 64 bits unless data are packed.
    pub(crate) channels: usize,
    /// Bytes of parameters.
    pub(crate) parameters: usize,
}

impl Row {
    /// Of an operation that has weights.
    pub(crate) fn of_operation(operation: &Operation, is_packed: bool) -> Option<Row> {
        let Kind::Convolution { groups, weight, .. } = operation.kind else {
            return None;
        };
        let channels = operation.operands.first()?.shape[1] / u64::from(groups.max(1));
        Some(Row::of(weight, usize::try_from(channels).ok()?, is_packed))
    }

    pub(crate) fn of(weight: ElementType, channels: usize, is_packed: bool) -> Row {
        let size = (weight.bits() / 8).max(1) as usize;
        let aligned = channels.next_multiple_of((8 / size).max(1));
        Row {
            size,
            channels: if is_packed { channels } else { aligned },
            parameters: if is_packed { 0 } else { PARAMETERS },
        }
    }
}
