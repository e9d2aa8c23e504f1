//! What can be wrong with a transfer that an instruction hands to its queue set.

use super::Check;
use crate::def::VariableType;
use crate::kernels::sequencer::Moved;
use crate::rules::stream::{
    DMA_BOUNDS, DMA_COUNT, DMA_OVERLAP, DMA_QUEUE, DMA_TARGET, DMA_VARIABLE, DMA_WRITES_INPUT,
    ELEMENT_CODE, INSTRUCTION, KEPT_BYTES, NOT_EXECUTED, OPERAND_ALIGNMENT,
};
use crate::stream::formats::Dma;
use crate::stream::operand::{Unresolved, kept_bytes, leaves_partitions, overlaps, variable};
use crate::stream::{DmaSide, DmaTarget, ElementCode, Instruction, Slot, Space};
use chipless_model::Pattern;

impl Check<'_, '_> {
    pub(super) fn dma(&mut self, index: usize, dma: Dma<'_>, behind: Option<&Slot>) {
        let by_index = match behind.map(Slot::decode) {
            _ if dma.kind() == 0 => [false, false],
            _ if !dma.has_indices() => {
                let message = format!(
                    "a transfer of kind {} is not supported: how its tiles lie is not known",
                    dma.kind()
                );
                return self.report(&NOT_EXECUTED, index, message);
            }
            Some(Instruction::DmaExtension(more)) => more.by_index(),
            _ => {
                let message = "no PSEUDO_EXTENSION behind it says where its indices are";
                return self.report(&INSTRUCTION, index, message.to_owned());
            }
        };
        let codes = dma.codes();
        let sides = [("src", dma.src(), codes.0), ("dst", dma.dst(), codes.1)];
        for ((role, side, _), by_index) in sides.iter().zip(by_index) {
            if by_index {
                // Of rows that indices find, the one of index 0.
                let target = side.address.target();
                let row = Pattern::contiguous(target.offset().unwrap_or(0), side.row());
                self.place(index, role, target, &row);
            } else {
                self.side(index, role, side);
            }
        }
        let [source, destination] =
            sides.map(|(_, side, code)| (side.bytes(), ElementCode::of(code)));
        match (source.1, destination.1) {
            _ if !dma.casts() => {
                if source.0 != destination.0 {
                    let (from, to) = (dma.src(), dma.dst());
                    let message = format!(
                        "{} bytes ({} rows of {}) from the source, {} ({} rows of {}) to the destination",
                        source.0,
                        from.rows(),
                        from.row(),
                        destination.0,
                        to.rows(),
                        to.row()
                    );
                    self.report(&DMA_COUNT, index, message);
                }
            }
            (Some(from), Some(to)) => {
                let (read, written) = (
                    source.0 * 8 / from.element.bits(),
                    destination.0 * 8 / to.element.bits(),
                );
                if read != written {
                    self.report(
                        &DMA_COUNT,
                        index,
                        format!(
                            "{read} elements of {} are read, {written} of {} written",
                            from.name, to.name
                        ),
                    );
                }
            }
            _ => {
                self.report(
                    &ELEMENT_CODE,
                    index,
                    format!(
                        "a cast from code {:#x} to {:#x} is not supported: not both are known",
                        codes.0, codes.1
                    ),
                );
            }
        }
        if let Some((_, _, variable)) = variable(self.definition, dma.dst().address.target()).ok()
            && matches!(
                variable.kind,
                Some(VariableType::Input | VariableType::File)
            )
        {
            let kind = variable.kind.map_or("", VariableType::name);
            self.report(
                &DMA_WRITES_INPUT,
                index,
                format!("dst is {}, a variable of type {kind}", dma.dst().address),
            );
        }
        for (role, side, _) in sides {
            let is_fixed = role == "dst" && !by_index[1];
            if is_fixed && dma.completion().1 > 1 && overlaps(&side.pattern()) {
                let message = "rows of dst overlap: which of them is written last is not known";
                self.report(&DMA_OVERLAP, index, message.to_owned());
            }
        }
        self.queue(index, dma);
    }

    /// `TENSOR_LOAD`, `TENSOR_STORE`: where their elements lie.
    pub(super) fn register_memory(&mut self, index: usize, slot: &Slot) {
        let Ok(moved) = Moved::of(slot) else { return };
        let target = match slot.decode() {
            Instruction::RegisterVariable(_) => moved.scalars.symbolic(),
            _ => moved.scalars.address.target(),
        };
        let size = moved.element.bits() / 8;
        let pattern = moved.scalars.pattern(target.offset().unwrap_or(0), size);
        if target
            .offset()
            .is_some_and(|offset| !offset.is_multiple_of(size))
        {
            let message = format!("memory: elements of {} start at {target}", moved.element);
            self.report(&OPERAND_ALIGNMENT, index, message);
        }
        match target {
            DmaTarget::Registers { .. } | DmaTarget::Absolute(_) => {}
            _ => self.place(index, "memory", target, &pattern),
        }
    }

    fn side(&mut self, index: usize, role: &'static str, side: &DmaSide) {
        let target = side.address.target();
        if let DmaTarget::Registers { .. } = target {
            return;
        }
        self.place(index, role, target, &side.pattern());
    }

    /// Whether bytes lie in the variable that an address leads to. Of an offset in a register nothing is known.
    fn place(&mut self, index: usize, role: &str, target: DmaTarget, pattern: &Pattern) {
        let (name, variable) = match variable(self.definition, target) {
            Ok((_, name, variable)) => (name.to_string(), variable),
            Err(Unresolved::Unsupported(why)) => {
                return self.report(&DMA_TARGET, index, format!("{role}: {why}"));
            }
            Err(Unresolved::Missing(what)) => {
                return self.report(&DMA_VARIABLE, index, format!("{role} needs {what}"));
            }
        };
        if let DmaTarget::TableRegister { .. } = target {
            let extent = pattern.extent();
            let span = extent.end - extent.start;
            if let Some(size) = variable.size
                && span > i128::from(size)
            {
                let message =
                    format!("{role} spans {span:#x} bytes of {name}, which has {size:#x}");
                self.report(&DMA_BOUNDS, index, message);
            }
            return;
        }
        if variable.kind == Some(VariableType::StateBuffer) {
            if let Some(why) = leaves_partitions(
                pattern,
                Space::StateBuffer,
                self.context.chip.state_buffer_partition,
            ) {
                self.report(
                    &DMA_BOUNDS,
                    index,
                    format!("{role} reaches {why}, of {name}"),
                );
            }
            if role == "dst"
                && let Some(why) = kept_bytes(self.definition, pattern)
            {
                self.report(&KEPT_BYTES, index, format!("dst reaches {why}"));
            }
        } else if let Some(size) = variable.size
            && !pattern.fits(size)
        {
            let extent = pattern.extent();
            let message = format!(
                "{role} reaches bytes {:#x} to {:#x} of {name}, which has {size:#x}",
                extent.start, extent.end
            );
            self.report(&DMA_BOUNDS, index, message);
        }
    }

    fn queue(&mut self, index: usize, dma: Dma<'_>) {
        let (semaphore, increment) = dma.completion();
        let semaphore = u64::from(semaphore);
        match self
            .definition
            .dynamic_queue_set(self.room.engine, semaphore)
        {
            None => self.report(
                &DMA_QUEUE,
                index,
                format!(
                    "{} owns no queue set of type dynamic",
                    self.room.engine.name()
                ),
            ),
            Some(position) => {
                let Some((name, set)) = self.definition.queues.get_index(position) else {
                    return;
                };
                if !set.semaphore_set.is_empty() && !set.semaphore_set.contains(&semaphore) {
                    self.report(
                        &DMA_QUEUE,
                        index,
                        format!(
                            "$S[{semaphore}] is not in the semaphore_set of {name}, which has {:?}",
                            set.semaphore_set
                        ),
                    );
                }
                if u64::from(increment) != set.queues() {
                    let message = format!(
                        "$S[{semaphore}] rises by {}, {name} has {} queues",
                        increment,
                        set.queues()
                    );
                    self.report(&DMA_QUEUE, index, message);
                }
            }
        }
    }
}
