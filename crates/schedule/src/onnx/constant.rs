//! Constants of an ONNX file: their shapes, and their numbers where they are there.

use super::proto::Tensor;
use std::collections::HashMap;
use std::rc::Rc;

/// Where files that an ONNX file names are read from: the bytes of a file beside it, nothing if it is not there.
pub type Beside<'f> = &'f dyn Fn(&str) -> Option<Vec<u8>>;

/// A constant.
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    /// Its name.
    pub(crate) name: String,
    /// Extents.
    pub(crate) shape: Vec<i64>,
    /// ONNX's number of the type of its elements.
    pub(crate) kind: i32,
    /// Its numbers, exact in binary64 (64-bit integers of shapes are small).
    pub(crate) data: Data,
}

/// The numbers of a constant.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    /// In row-major order.
    There(Rc<Vec<f64>>),
    /// In a file that is not there.
    Absent(String),
}

/// Elements of a constant, at most.
const MOST: usize = 1 << 31;

impl Constant {
    /// Its numbers.
    ///
    /// # Errors
    /// The tensor and the file that is not there.
    pub(crate) fn numbers(&self) -> Result<Rc<Vec<f64>>, String> {
        match &self.data {
            Data::There(numbers) => Ok(Rc::clone(numbers)),
            Data::Absent(file) => Err(format!(
                "the tensor `{}` lies in the file {file}, which is not there",
                self.name
            )),
        }
    }

    /// The only number of a constant with one element.
    pub(crate) fn single(&self) -> Option<f64> {
        match &self.data {
            Data::There(numbers) if numbers.len() == 1 => numbers.first().copied(),
            _ => None,
        }
    }
}

/// External files that were read, by name.
#[derive(Default)]
pub(crate) struct Externals(HashMap<String, Option<Rc<Vec<u8>>>>);

/// Reads a constant.
///
/// # Errors
/// A type that no network of integers or floats has, fewer bytes than the shape needs.
pub(crate) fn read(
    tensor: &Tensor,
    externals: &mut Externals,
    beside: Beside<'_>,
) -> Result<Constant, String> {
    let name = tensor.name.clone().unwrap_or_default();
    let wrong = |text: String| format!("the tensor `{name}`: {text}");
    let mut count = 1_usize;
    for extent in &tensor.dims {
        let extent =
            usize::try_from(*extent).map_err(|_| wrong(format!("an extent of {extent}")))?;
        count = count
            .checked_mul(extent)
            .filter(|c| *c <= MOST)
            .ok_or_else(|| wrong("too many elements".to_owned()))?;
    }
    let mut constant = Constant {
        name: name.clone(),
        shape: tensor.dims.clone(),
        kind: tensor.data_type.unwrap_or(0),
        data: Data::There(Rc::default()),
    };
    let external = |key: &str| {
        let entry = tensor
            .external_data
            .iter()
            .find(|entry| entry.key.as_deref() == Some(key))?;
        entry.value.clone()
    };
    let mut bytes: &[u8] = tensor.raw_data.as_deref().unwrap_or_default();
    let file;
    if tensor.data_location == Some(1) {
        let location = external("location")
            .ok_or_else(|| wrong("external data without a location".to_owned()))?;
        let found = externals
            .0
            .entry(location.clone())
            .or_insert_with(|| beside(&location).map(Rc::new));
        let Some(found) = found else {
            constant.data = Data::Absent(location);
            return Ok(constant);
        };
        file = Rc::clone(found);
        let number = |key: &str| external(key).and_then(|v| v.parse::<usize>().ok());
        let start = number("offset").unwrap_or(0);
        let end = number("length").map_or(Some(file.len()), |length| start.checked_add(length));
        bytes = end
            .and_then(|end| file.get(start..end))
            .ok_or_else(|| wrong(format!("the file {location} ends before its data")))?;
    }
    let kind = constant.kind;
    let numbers: Vec<f64> = if bytes.is_empty() && count > 0 {
        let typed: Vec<f64> = match kind {
            1 => tensor.float_data.iter().map(|v| f64::from(*v)).collect(),
            2..=6 | 9 => tensor.int32_data.iter().map(|v| f64::from(*v)).collect(),
            7 => tensor.int64_data.iter().map(|v| *v as f64).collect(),
            10 => (tensor.int32_data.iter())
                .map(|v| half::f16::from_bits(*v as u16).to_f64())
                .collect(),
            12 | 13 => tensor.uint64_data.iter().map(|v| *v as f64).collect(),
            11 => tensor.double_data.clone(),
            other => return Err(wrong(format!("data of ONNX type {other} is not supported"))),
        };
        typed
    } else {
        fn each<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<f64> {
            bytes
                .as_chunks::<N>()
                .0
                .iter()
                .map(|chunk| read(*chunk))
                .collect()
        }
        match kind {
            1 => each(bytes, |b: [u8; 4]| f64::from(f32::from_le_bytes(b))),
            2 | 9 => each(bytes, |[b]: [u8; 1]| f64::from(b)),
            3 => each(bytes, |[b]: [u8; 1]| f64::from(b as i8)),
            4 => each(bytes, |b: [u8; 2]| f64::from(u16::from_le_bytes(b))),
            5 => each(bytes, |b: [u8; 2]| f64::from(i16::from_le_bytes(b))),
            6 => each(bytes, |b: [u8; 4]| f64::from(i32::from_le_bytes(b))),
            7 => each(bytes, |b: [u8; 8]| i64::from_le_bytes(b) as f64),
            10 => each(bytes, |b: [u8; 2]| half::f16::from_le_bytes(b).to_f64()),
            11 => each(bytes, |b: [u8; 8]| f64::from_le_bytes(b)),
            12 => each(bytes, |b: [u8; 4]| f64::from(u32::from_le_bytes(b))),
            13 => each(bytes, |b: [u8; 8]| u64::from_le_bytes(b) as f64),
            16 => each(bytes, |b: [u8; 2]| half::bf16::from_le_bytes(b).to_f64()),
            other => return Err(wrong(format!("data of ONNX type {other} is not supported"))),
        }
    };
    if numbers.len() != count {
        return Err(wrong(format!(
            "expected {count} elements, found {}",
            numbers.len()
        )));
    }
    constant.data = Data::There(Rc::new(numbers));
    Ok(constant)
}
