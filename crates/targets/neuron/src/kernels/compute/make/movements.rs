//! Elements that move as they are: between partitions, and by their indices.

use super::Maker;
use crate::kernels::Elements;
use crate::kernels::compute::Action;
use crate::kernels::compute::search::CORE_PARTITIONS;
use crate::kernels::registers::TABLE_ELEMENTS;
use crate::stream::formats::{Gather, IndirectCopy, LoadTable, Nonzero, SequenceBounds};
use crate::stream::{Instruction, OnChip, Operand, Slot};
use chipless_model::{Direction, ElementType, Fault};

/// Partitions that a shuffle moves elements between.
const QUADRANT: u8 = 32;
/// Partitions that share indices.
const SHARING: u8 = CORE_PARTITIONS as u8;
/// Elements of a partition that are copied by indices, at most.
const MOST_GATHERED: u64 = 1024;
/// The bit of an address that says that indices lie there, and the element type code of indices.
const INDIRECT: u32 = 1 << 29;
const INDEX: u8 = 0x5;
/// Leaves a partition as it is.
const UNMODIFIED: u8 = 255;

impl Maker<'_> {
    /// `STREAM_SHUFFLE`: within each 32 partitions, each takes the elements of another one.
    pub(super) fn shuffle(&mut self) -> Result<Action, Fault> {
        let Some(Instruction::LoadMask(mask)) = self.setup.map(Slot::decode) else {
            return Err(Fault::program(
                "no LOAD_MASK_SELECT before it says where partitions come from",
            ));
        };
        let (from, to) = (self.operand("src")?, self.operand("dst")?);
        if from.code != to.code || !from.partitions.is_multiple_of(QUADRANT) {
            return Err(Fault::program(format!(
                "{} partitions, and types {:#x} and {:#x}: expected a multiple of {QUADRANT}, and one type",
                from.partitions, from.code, to.code
            )));
        }
        self.sources.clear();
        self.destinations.clear();
        for first in (0..from.partitions).step_by(usize::from(QUADRANT)) {
            for (to_row, from_row) in (0..QUADRANT).zip(mask.partitions()) {
                if from_row == UNMODIFIED {
                    continue;
                }
                if from_row >= QUADRANT {
                    return Err(Fault::unsupported(format!(
                        "partition {from_row} in a mask is not supported: its meaning is not known"
                    )));
                }
                let source = self.partition(&from, first + from_row)?;
                let destination = self.partition(&to, first + to_row)?;
                self.sources.push(source);
                self.destinations.push(destination);
            }
        }
        Ok(Action::Move)
    }

    /// What of an operand is in one of its partitions.
    fn partition(&self, operand: &Operand, number: u8) -> Result<Elements, Fault> {
        let stride = OnChip::at(operand.address).map_or(0, |at| at.space.stride());
        self.context.chip.elements(&Operand {
            address: operand.address + u32::from(number) * stride,
            partitions: 1,
            ..*operand
        })
    }

    pub(super) fn load_table(&mut self, i: LoadTable<'_>) -> Result<Action, Fault> {
        self.source("src")?;
        let elements = self.length.unwrap_or_default() as u64;
        if elements > TABLE_ELEMENTS {
            return Err(Fault::program(format!(
                "{elements} elements of each partition, a table has room for {TABLE_ELEMENTS}"
            )));
        }
        let (start, mask) = (i.start(), i.mask());
        let why = if mask & mask.wrapping_add(1) != 0 {
            Some("the mask has gaps")
        } else if start & mask != 0 {
            Some("the first index has bits of the mask")
        } else {
            None
        };
        if let Some(why) = why {
            return Err(Fault::unsupported(format!(
                "indices from {start:#x} on by mask {mask:#x} are not supported: {why}"
            )));
        }
        let element = self.sources[0].element;
        self.destinations.push(self.context.chip.table(
            i.src().address,
            i.channels(),
            elements,
            element,
        )?);
        Ok(Action::Move)
    }

    /// `GET_SEQUENCE_BOUNDS`: twice as many results as elements, in one partition.
    pub(super) fn sequence_bounds(&mut self, i: SequenceBounds<'_>) -> Result<Action, Fault> {
        self.source("src")?;
        self.destination(2 * self.length.unwrap_or_default())?;
        let is_taken = |element| matches!(element, ElementType::Int32 | ElementType::Float32);
        let (from, to) = (self.sources[0].element, self.destinations[0].element);
        if !is_taken(from) || !is_taken(to) {
            return Err(Fault::program(format!(
                "segments of {from} as {to}, expected int32 or float32"
            )));
        }
        if (i.channels(), i.dst().counts[2]) != (1, 2) {
            return Err(Fault::program(format!(
                "{} partitions, and {} in the highest dimension of dst: expected 1 and 2",
                i.channels(),
                i.dst().counts[2]
            )));
        }
        Ok(Action::SequenceBounds)
    }

    pub(super) fn nonzero(&mut self, i: Nonzero<'_>) -> Result<Action, Fault> {
        self.source("src")?;
        self.destination(self.length.unwrap_or_default() + 1)?;
        let (from, to) = (self.sources[0].element, self.destinations[0].element);
        if !matches!(from, ElementType::Int32 | ElementType::Float32) || to != ElementType::Int32 {
            return Err(Fault::program(format!(
                "indices of {from} as {to}, expected those of int32 or float32 as int32"
            )));
        }
        let first = |address: u32| OnChip::at(address).map_or(0, |at| at.partition);
        let (read, written) = (first(i.src().address), first(i.dst().address));
        if read != written || !(read as usize).is_multiple_of(CORE_PARTITIONS) {
            return Err(Fault::unsupported(format!(
                "from partition {read} to {written} is not supported, only from a multiple of {CORE_PARTITIONS} to the same"
            )));
        }
        Ok(Action::Nonzero {
            offset: i.offset(),
            padding: i.padding(),
        })
    }

    /// `INDIRECT_COPY`: indices lie across 16 partitions, and each of these takes the runs that they all name.
    pub(super) fn indirect_copy(&mut self, i: IndirectCopy<'_>) -> Result<Action, Fault> {
        let (to, run) = (self.operand("dst")?, i.run());
        if to.code != i.data_type() || !to.partitions.is_multiple_of(SHARING) {
            return Err(Fault::program(format!(
                "{} partitions, and types {:#x} and {:#x}: expected a multiple of {SHARING}, and one type",
                to.partitions,
                i.data_type(),
                to.code
            )));
        }
        let written = to.elements();
        if !matches!(run, 1 | 2 | 4 | 8 | 16 | 32)
            || u64::from(i.elements()) != written
            || !written.is_multiple_of(run.into())
            || written > MOST_GATHERED
        {
            return Err(Fault::program(format!(
                "{} elements in runs of {run} for {written}: runs are of 1, 2, 4, 8, 16 or 32, and all of them at most {MOST_GATHERED} elements",
                i.elements()
            )));
        }
        if i.index() & INDIRECT == 0 {
            return Err(Fault::unsupported(format!(
                "the address {:#x} of the indices, without bit 29, is not supported",
                i.index()
            )));
        }
        let size = u16::try_from(i.size()).map_err(|_| {
            Fault::unsupported(format!(
                "elements that are scattered (bytes 0x26 to 0x29 are {:#x}) are not supported",
                i.size()
            ))
        })?;
        let indices = written as usize / usize::from(run);
        let columns = indices.div_ceil(usize::from(SHARING));
        for (role, code, address, count) in [
            ("index", INDEX, i.index() & !INDIRECT, columns as u16),
            ("data", to.code, i.data(), size),
        ] {
            let operand = Operand {
                role,
                direction: Direction::Read,
                code,
                address,
                steps: [1, 0, 0, 0],
                counts: [count, 1, 1, 1],
                ..to
            };
            self.sources.push(self.context.chip.elements(&operand)?);
        }
        self.length = Some(columns);
        self.destination(written as usize)?;
        Ok(Action::CopyRuns {
            indices,
            run: run.into(),
        })
    }

    pub(super) fn gather(&mut self, i: Gather<'_>) -> Result<Action, Fault> {
        let loaded = self.setup.map(|slot| (slot.decode(), slot.operands()));
        let Some((Instruction::LoadTable(table), held)) = loaded else {
            return Err(Fault::program(
                "no POOL_BUFFER_LOAD before it fills the table",
            ));
        };
        self.tensor()?;
        let (indices, to) = (self.sources[0].element, self.destinations[0].element);
        if !matches!(
            indices,
            ElementType::UInt8 | ElementType::UInt16 | ElementType::UInt32
        ) {
            return Err(Fault::program(format!(
                "indices of {indices}, expected uint8, uint16 or uint32"
            )));
        }
        let held = self.context.chip.elements(&held[0])?;
        let narrow = to.bits() < 32 && i.imm() != 0;
        let supported = held.element.bits() == to.bits() && i.free() <= 1;
        let missing = match i.missing() {
            0 if supported && !narrow => Some(i.imm()),
            1 if supported => None,
            _ => {
                return Err(Fault::unsupported(format!(
                    "elements of {} as {to}, missing {}, imm {:#x}, free {}: that is not supported",
                    held.element,
                    i.missing(),
                    i.imm(),
                    i.free()
                )));
            }
        };
        let partitions = |address: u32, count: u8| {
            let first = OnChip::at(address).map_or(0, |at| at.partition);
            (first, first + u32::from(count))
        };
        let (filled, read) = (
            partitions(table.src().address, table.channels()),
            partitions(i.src().address, i.channels()),
        );
        if read != partitions(i.dst().address, i.channels())
            || read.0 < filled.0
            || read.1 > filled.1
        {
            return Err(Fault::unsupported(format!(
                "partitions {} to {} of a table of {} to {} are not supported, or the destination is in others",
                read.0, read.1, filled.0, filled.1
            )));
        }
        let elements = table.src().elements();
        self.sources.push(
            self.context
                .chip
                .table(i.src().address, i.channels(), elements, to)?,
        );
        Ok(Action::Gather {
            elements: elements as usize,
            start: table.start(),
            mask: table.mask(),
            missing,
        })
    }
}
