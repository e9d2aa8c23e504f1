//! What instructions and transfers do to memory.
//!
//! | module | instructions |
//! |---|---|
//! | [`array`] | `LDWEIGHTS`, `MATMUL` |
//! | [`elements`] | `COPY`, `CAST`, `MEMSET`, `TENSOR_TENSOR` |
//! | [`transfer`] | what a DMA queue moves: instructions' transfers and descriptors |
//! | [`control`] | everything without an effect, and everything that is not executed |
//!
//! All arithmetic is done in binary32: operands are widened, the result is rounded once to its type, to nearest even.

pub(crate) mod array;
pub(crate) mod control;
pub(crate) mod elements;
pub(crate) mod transfer;

use crate::stream::{Instruction, Slot};
use chipless_kernels::cast::{Rounding, decode_f32, encode_f32};
use chipless_kernels::{Error, strided};
use chipless_model::{BufferId, ElementType, Fault, Pattern, Storage};

/// Elements of a buffer, in an order.
#[derive(Clone, Debug)]
pub(crate) struct Elements {
    pub(crate) buffer: BufferId,
    pub(crate) pattern: Pattern,
    pub(crate) element: ElementType,
}

impl Elements {
    /// Bytes; lowering made sure that they can be counted.
    pub(crate) fn bytes(&self) -> u64 {
        self.pattern.bytes().unwrap_or(u64::MAX)
    }

    /// The numbers, in place of what `values` held; `packed` is room to work.
    fn read(&self, storage: &Storage<'_>, packed: &mut Vec<u8>, values: &mut Vec<f32>) -> Result<(), Fault> {
        packed.clear();
        strided::gather(storage.bytes(self.buffer), &self.pattern, packed).map_err(fault)?;
        values.resize(packed.len() * 8 / self.element.bits() as usize, 0.0);
        decode_f32(self.element, packed, values).map_err(fault)
    }

    /// Rounds numbers and puts them; `packed` is room to work.
    fn write(&self, storage: &mut Storage<'_>, packed: &mut Vec<u8>, values: &[f32]) -> Result<(), Fault> {
        packed.resize(values.len() * self.element.bits() as usize / 8, 0);
        encode_f32(self.element, values, Rounding::NearestEven, packed).map_err(fault)?;
        strided::scatter(packed, storage.bytes_mut(self.buffer), &self.pattern).map_err(fault)
    }
}

/// Moves bytes as they are.
fn move_bytes(storage: &mut Storage<'_>, from: &Elements, to: &Elements) -> Result<(), Fault> {
    match storage.pair(from.buffer, to.buffer) {
        Some((source, destination)) => strided::copy(source, &from.pattern, destination, &to.pattern),
        None => strided::copy_within(storage.bytes_mut(to.buffer), &from.pattern, &to.pattern),
    }
    .map_err(fault)
}

fn fault(error: Error) -> Fault {
    Fault { unsupported: matches!(error, Error::Memory { .. }), message: error.to_string() }
}

/// The operands of a slot as text, without the name of its operation.
fn operands_text(slot: &Slot) -> String {
    let text = slot.decode().to_string();
    text.split_once(' ').map_or_else(String::new, |(_, operands)| operands.to_owned())
}

/// Names what the waits and signals of an instruction rest on besides proven rules.
fn unproven_events(instruction: &Instruction<'_>) -> Option<std::borrow::Cow<'static, str>> {
    instruction.events().find_map(|events| match (events.wait().proven(), events.update().proven()) {
        (true, true) => None,
        (false, _) => Some(format!("wait mode {:#04x}", events.wait_mode).into()),
        (true, false) => Some(format!("update mode {:#04x}", events.update_mode).into()),
    })
}

/// Names a type code that no program at hand has proven.
fn unproven_codes(codes: impl IntoIterator<Item = u8>) -> Option<std::borrow::Cow<'static, str>> {
    let unproven = codes.into_iter().filter_map(crate::stream::ElementCode::of).find(|code| !code.proven)?;
    Some(format!("element type {} of an instruction", unproven.name).into())
}
