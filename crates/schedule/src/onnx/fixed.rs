//! Inputs that become constants: a sample rate, a flag, whatever does not change from run to run.

use super::proto::{self, Tensor, ValueInfo};
use super::summary::element;
use super::{Refused, port_names};
use prost::Message;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What an input is fixed at.
#[derive(Clone, Debug, PartialEq)]
pub enum Fixed {
    /// One number for all its elements.
    Number(f64),
    /// Its shape, and its elements row by row.
    Array(Vec<i64>, Vec<f64>),
}

/// Inputs by name, and what they are fixed at.
pub type Constants = BTreeMap<String, Fixed>;

/// The model with constants in place of inputs.
///
/// # Errors
/// A file that is no ONNX model; a name that no input has; a shape or numbers that the input cannot hold.
pub fn with_constants<'b>(
    bytes: &'b [u8],
    constants: &Constants,
) -> Result<Cow<'b, [u8]>, Refused> {
    if constants.is_empty() {
        return Ok(Cow::Borrowed(bytes));
    }
    let alone = |text: String| Refused(vec![text]);
    let mut model = super::model(bytes)?;
    let graph = model.graph.get_or_insert_default();
    for (name, fixed) in constants {
        let names = port_names(graph)[0].join(", ");
        let is_named = |input: &ValueInfo| input.name.as_ref() == Some(name);
        let input = graph.input.iter().find(|input| is_named(input));
        let input = input.ok_or_else(|| {
            let text = "expected the name of an input";
            alone(format!("{text} ({names}) as --constant, found `{name}`"))
        })?;
        let tensor = tensor(name, input, fixed);
        graph.initializer.push(tensor.map_err(alone)?);
        graph.input.retain(|input| !is_named(input));
    }
    Ok(Cow::Owned(model.encode_to_vec()))
}

/// The constant that an input becomes.
fn tensor(name: &str, input: &ValueInfo, fixed: &Fixed) -> Result<Tensor, String> {
    let declared = input.r#type.as_ref().and_then(|t| t.tensor_type.as_ref());
    let kind = declared.and_then(|t| t.elem_type).unwrap_or(1);
    let shape = declared.and_then(|t| t.shape.as_ref());
    let extents = shape.map(|shape| {
        let extent = |dim: &proto::Dimension| dim.dim_value.filter(|extent| *extent > 0);
        shape.dim.iter().map(extent).collect::<Vec<_>>()
    });
    let (dims, numbers) = match fixed {
        Fixed::Number(number) => {
            let known = extents.unwrap_or_default().into_iter();
            let dims: Option<Vec<i64>> = known.collect();
            let dims = dims.ok_or_else(|| {
                format!("the input `{name}` has open dimensions; pass an array, as in --constant {name}=FILE.npy")
            })?;
            let count = dims
                .iter()
                .try_fold(1_i64, |all, dim| all.checked_mul(*dim));
            let count = count.and_then(|count| usize::try_from(count).ok());
            let count = count.filter(|count| *count <= 1 << 26);
            let count = count.ok_or_else(|| format!("the input `{name}` is too large"))?;
            (dims, vec![*number; count])
        }
        Fixed::Array(found, numbers) => {
            let fits = |extents: &Vec<Option<i64>>| {
                let mut pairs = extents.iter().zip(found);
                extents.len() == found.len()
                    && pairs.all(|(known, found)| known.is_none_or(|known| known == *found))
            };
            if let Some(extents) = extents.filter(|extents| !fits(extents)) {
                let open = |extent: &Option<i64>| extent.map_or("N".to_owned(), |e| e.to_string());
                let expected: Vec<String> = extents.iter().map(open).collect();
                return Err(format!(
                    "expected an array of the shape [{}] for `{name}`, found {found:?}",
                    expected.join(", ")
                ));
            }
            (found.clone(), numbers.clone())
        }
    };
    let mut tensor = Tensor {
        name: Some(name.to_owned()),
        data_type: Some(kind),
        dims,
        ..Tensor::default()
    };
    let whole = |least: f64, beyond: f64| {
        let wrong = |n: &&f64| n.fract() != 0.0 || **n < least || **n >= beyond || n.is_nan();
        match numbers.iter().find(wrong) {
            Some(number) => Err(format!(
                "expected a {} for the input `{name}`, found {number}",
                element(kind)
            )),
            None => Ok(numbers.iter().copied()),
        }
    };
    let two = |bits: i32| 2_f64.powi(bits);
    let words = |least: f64, beyond: f64| Ok::<_, String>(whole(least, beyond)?.map(|n| n as i32));
    // onnx.proto3, `TensorProto.DataType`; each kind has its field there.
    match kind {
        1 => tensor.float_data = numbers.iter().map(|n| *n as f32).collect(),
        11 => tensor.double_data.clone_from(&numbers),
        10 => {
            let half = |n: &f64| i32::from(half::f16::from_f64(*n).to_bits());
            tensor.int32_data = numbers.iter().map(half).collect();
        }
        2 => tensor.int32_data = words(0.0, 256.0)?.collect(),
        3 => tensor.int32_data = words(-128.0, 128.0)?.collect(),
        4 => tensor.int32_data = words(0.0, two(16))?.collect(),
        5 => tensor.int32_data = words(-two(15), two(15))?.collect(),
        6 => tensor.int32_data = words(-two(31), two(31))?.collect(),
        7 => tensor.int64_data = whole(-two(63), two(63))?.map(|n| n as i64).collect(),
        9 => tensor.int32_data = words(0.0, 2.0)?.collect(),
        12 => tensor.uint64_data = whole(0.0, two(32))?.map(|n| n as u64).collect(),
        13 => tensor.uint64_data = whole(0.0, two(64))?.map(|n| n as u64).collect(),
        other => {
            return Err(format!(
                "constants of the type {} are not supported, which the input `{name}` has",
                element(other)
            ));
        }
    }
    Ok(tensor)
}
