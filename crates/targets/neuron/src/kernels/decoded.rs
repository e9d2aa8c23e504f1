//! What must be known of a slot before it is executed.

use crate::stream::formats::Dma;
use crate::stream::{DmaTarget, Slot};
use chipless_model::Fault;

/// Whether everything that stands in a slot is known, and done.
pub(crate) fn decoded(slot: &Slot) -> Result<(), Fault> {
    if let Some(why) = slot.events().find_map(|events| events.refusal()) {
        return Err(Fault::unsupported(why));
    }
    if slot.is_decoded() {
        return Ok(());
    }
    slot.undecoded()
        .map_or(Ok(()), |byte| Err(Fault::unsupported(byte.to_string())))
}

/// Whether the bounds of a transfer's addresses are what is known of them: registers, for addresses in registers.
pub(super) fn bounds(i: Dma<'_>) -> Result<(), Fault> {
    let sides = [
        (0x26, "src_bound", i.src_bound(), i.src()),
        (0x27, "dst_bound", i.dst_bound(), i.dst()),
    ];
    for (at, name, bound, side) in sides {
        let is_offset = matches!(side.address.target(), DmaTarget::TableRegister { .. });
        let is_known = match i.kind() {
            0 => is_offset,
            // Of an index, where nobody is told of one that is out of bounds.
            _ => bound & BOUND_IS_SILENT == 0,
        };
        if bound != 0 && (bound & BOUND_COUNTS == 0 || !is_known) {
            return Err(Fault::unsupported(format!(
                "byte {at:#04x} ({name}) is {bound:#04x}: that is not supported here, only 0 is"
            )));
        }
    }
    Ok(())
}

/// The bit that says that the bound of an address counts; the lowest six bits are the number of its register.
pub(crate) const BOUND_COUNTS: u8 = 0x80;

/// The bit that says that nobody is told of an address beyond it.
const BOUND_IS_SILENT: u8 = 0x40;
