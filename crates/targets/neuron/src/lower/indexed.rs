//! Transfers whose rows indices find: where their variables are.

use super::addresses::{Wanted, element, register};
use super::builder::Builder;
use super::core::{Core, written_once};
use crate::kernels::indexed::form::{Form, Index};
use crate::kernels::indexed::{ByIndex, Indexed, Rows};
use crate::kernels::sequencer::Known;
use crate::kernels::{Context, Elements};
use crate::stream::formats::Dma;
use crate::stream::{DmaSide, DmaTarget, Slot};
use chipless_model::{Fault, Program};
use smallvec::SmallVec;

/// A transfer by its slots, and the registers that the first of them notes for it.
pub(super) struct ByIndices<'p> {
    pub(super) transfer: Indexed<'p>,
    pub(super) noted: SmallVec<[(Elements, Elements); 4]>,
}

/// The transfer of a slot, which the slot behind it says more of.
pub(super) fn indexed<'p>(
    core: &mut Core<'p, '_>,
    (slot, dma): (&'p Slot, Dma<'_>),
    behind: Option<&Slot>,
    (context, known): (&Context, &Known),
    builder: &mut Builder<'p>,
) -> Result<ByIndices<'p>, Fault> {
    let Form {
        count,
        sides: [of_source, of_destination],
        compute,
        bounds_are_kept,
        repeats,
        transposes,
    } = Form::of(dma, behind, context)?;
    let mut noted = SmallVec::new();
    let mut side = |role, side: &DmaSide, code, index: Option<Index>| -> Result<Rows, Fault> {
        let wanted = Wanted {
            role,
            target: side.address.target(),
            pattern: side.pattern(),
            element: element(code, dma.casts())?,
        };
        let wanted = wanted.resolved(known, Some(u64::MAX));
        let Some(index) = index else {
            let elements = wanted.side(core, context, &builder.program)?.fixed();
            return elements
                .map(Rows::InOrder)
                .ok_or_else(|| in_registers(role));
        };
        let limit = match index.limit {
            Some(number) => {
                let place = core.note(builder);
                noted.push((register(context, number)?, place.clone()));
                Some(place)
            }
            None => None,
        };
        let rows = by_index(wanted, (index, limit), core, &builder.program)?;
        Ok(Rows::ByIndex(Box::new(rows)))
    };
    let codes = dma.codes();
    let from = side("src", &dma.src(), codes.0, of_source)?;
    let to = side("dst", &dma.dst(), codes.1, of_destination)?;
    let (source, destination) = (from.elements(), to.elements());
    if let Rows::InOrder(to) = &to {
        written_once(to, &builder.program)?;
    }
    let read = source.bytes().saturating_mul(destination.element.bits());
    let written = destination.bytes().saturating_mul(source.element.bits());
    let are_rows = |elements: &Elements| {
        let row = elements.bytes().checked_div(count as u64).unwrap_or(0);
        row * count as u64 == elements.bytes() && (row * 8).is_multiple_of(elements.element.bits())
    };
    if read != written || !are_rows(source) || !are_rows(destination) {
        return Err(Fault::program(format!(
            "{} bytes are read, {} written, in {count} rows",
            source.bytes(),
            destination.bytes()
        )));
    }
    let transfer = Indexed {
        slot,
        count,
        from,
        to,
        compute,
        bounds_are_kept,
        repeats,
        transposes,
    };
    Ok(ByIndices { transfer, noted })
}

fn in_registers(role: &str) -> Fault {
    Fault::unsupported(format!(
        "{role}: an address in registers together with indices is not supported, only one in the instruction is"
    ))
}

/// The rows of a side that indices find, those of the variable that its address leads to.
fn by_index(
    wanted: Wanted,
    (index, limit): (Index, Option<Elements>),
    core: &Core<'_, '_>,
    program: &Program<'_>,
) -> Result<ByIndex, Fault> {
    let first = match wanted.target {
        DmaTarget::Variable { offset, .. } | DmaTarget::Table { offset, .. } => u64::from(offset),
        _ => return Err(in_registers(wanted.role)),
    };
    let region = wanted.variable(core, program)?;
    if region.on_chip.is_some() {
        return Err(Fault::unsupported(format!(
            "{}: rows of {} found by indices are not supported, only those of a variable in device memory are",
            wanted.role, region.name
        )));
    }
    Ok(ByIndex {
        role: wanted.role,
        indices: index.indices,
        first,
        step: index.step,
        row: index.row,
        limit,
        bytes: index.bytes,
        elements: Elements {
            buffer: region.buffer,
            pattern: wanted.pattern,
            element: wanted.element,
        },
        region,
    })
}
