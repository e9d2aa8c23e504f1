//! Integers that lose digits: what is neither arithmetic on bits nor on whole numbers passes through binary32, which holds every integer
//! up to 2^24 only.
//!
//! A result of a floating-point type is rounded anyhow, so that only those that are integers count.

use super::{Elements, fault};
use chipless_kernels::cast::decode_i64;
use chipless_kernels::strided;
use chipless_model::{ElementType, Fault, Kind, Storage};

chipless_model::rules! {
    INTEGER_ROUNDED Fault Warning Hardware "neff-integer-rounded" "an integer lost digits in binary32"
        "DMA casts and DMA computations, casts of the engines, and arithmetic of the engines other than on bits or with native integers convert integers to binary32. Binary32 holds every integer up to 2^24 (16777216). A larger integer becomes the nearest one that binary32 holds. `run` reports this where the data of the run show it and the result is an integer."
        "Keep large integers out of the operation: copy them without a cast, use operations on bits or the integer operations of GpSimd, or split them into halves of 16 bits."
        "NKI API reference, nki.isa.dma_compute, nki.isa.tensor_tensor and Supported Math Operators";
}

/// Whether elements are integers.
pub(super) fn is_integer(element: ElementType) -> bool {
    element.kind() != Kind::Float
}

/// Whether elements are integers of which binary32 does not hold all.
pub(super) fn is_wide(element: ElementType) -> bool {
    is_integer(element) && element.bits() > 24
}

/// Remarks the first of some packed elements that binary32 does not hold. `first` is the index of the first of them in the tensor.
pub(super) fn remark_packed(
    storage: &mut Storage<'_>,
    element: ElementType,
    packed: &[u8],
    first: usize,
) -> Result<(), Fault> {
    if !is_wide(element) {
        return Ok(());
    }
    let mut values = vec![0; packed.len() * 8 / element.bits() as usize];
    decode_i64(element, packed, &mut values).map_err(fault)?;
    let exact = |value: i64| match element {
        ElementType::UInt64 => i128::from(value as u64),
        _ => i128::from(value),
    };
    let lost = |value: &i128| (*value as f32) as i128 != *value;
    let mut values = values.into_iter().map(exact).enumerate();
    if let Some((index, value)) = values.find(|(_, value)| lost(value)) {
        storage.remark(&INTEGER_ROUNDED, || {
            format!(
                "element {} of a source is {value} ({element}) and becomes {} in binary32",
                first + index,
                (value as f32) as i128
            )
        });
    }
    Ok(())
}

/// Remarks the first element of a source that binary32 does not hold.
pub(super) fn remark_source(storage: &mut Storage<'_>, from: &Elements) -> Result<(), Fault> {
    if !is_wide(from.element) {
        return Ok(());
    }
    let mut packed = Vec::new();
    strided::gather(storage.bytes(from.buffer), &from.pattern, &mut packed).map_err(fault)?;
    remark_packed(storage, from.element, &packed, 0)
}

/// Remarks the first result that binary32 does not hold, given those of binary64. `first` is the index of the first of them in the tensor.
#[expect(clippy::float_cmp, reason = "whether digits were lost")]
pub(super) fn remark_results(
    storage: &mut Storage<'_>,
    element: ElementType,
    results: &[f32],
    exact: &[f64],
    first: usize,
) {
    let mut pairs = results.iter().zip(exact).enumerate();
    let is_lost = |result: f32, exact: f64| exact.fract() == 0.0 && f64::from(result) != exact;
    if let Some((index, (result, exact))) = pairs.find(|(_, (r, e))| is_lost(**r, **e)) {
        storage.remark(&INTEGER_ROUNDED, || {
            format!(
                "element {} of the result should be {exact} ({element}); binary32 gives {result}",
                first + index
            )
        });
    }
}
