//! Instructions that work element by element, partition by partition.

use super::{Elements, fault, integers, move_bytes};
use chipless_kernels::strided;
use chipless_model::{Fault, Storage};

/// `COPY` and `CAST`. Between equal types bits move as they are.
pub(super) fn copy(storage: &mut Storage<'_>, from: &Elements, to: &Elements) -> Result<(), Fault> {
    if from.element == to.element {
        return move_bytes(storage, from, to);
    }
    if integers::is_integer(to.element) {
        integers::remark_source(storage, from)?;
    }
    let (mut packed, mut values) = (Vec::new(), Vec::new());
    from.read(storage, &mut packed, &mut values)?;
    to.write(storage, &mut packed, &values)
}

/// `MEMSET`: the low bytes of a value everywhere.
pub(super) fn fill(storage: &mut Storage<'_>, value: u32, to: &Elements) -> Result<(), Fault> {
    let (value, size) = (value.to_le_bytes(), (to.element.bits() / 8) as usize);
    let value = value
        .get(..size)
        .ok_or_else(|| Fault::unsupported(format!("elements of {size} bytes are not supported")))?;
    strided::fill(value, storage.bytes_mut(to.buffer), &to.pattern).map_err(fault)
}
