//! What engines keep from one instruction to the next, as a buffer of the core: the sequencers' registers, the accumulators, the
//! values that the search looks for, and the table of `GpSimd`.

use super::{Chip, Elements};
use crate::graph::Engine;
use crate::stream::{OnChip, PARTITIONS, REGISTERS};
use chipless_model::{ElementType, Fault, Loop, Pattern};

const ENGINES: u64 = Engine::ALL.len() as u64;
const WORD: u64 = 4;
/// Values of each partition that the vector engine's search looks for.
const SEARCH_VALUES: u64 = 8;

/// First byte of the accumulators: one binary32 for each partition and engine.
const ACCUMULATORS: u64 = ENGINES * REGISTERS as u64 * WORD;
/// First byte of the search's values.
const SEARCH: u64 = ACCUMULATORS + ENGINES * PARTITIONS as u64 * WORD;
/// First byte of the table that elements are gathered from.
const TABLE: u64 = SEARCH + PARTITIONS as u64 * SEARCH_VALUES * WORD;
/// Elements of each partition that it has room for, of up to 32 bits.
pub(super) const TABLE_ELEMENTS: u64 = 512;
const TABLE_ROW: u64 = TABLE_ELEMENTS * WORD;
/// Bytes of all of it.
pub(crate) const REGISTER_BYTES: u64 = TABLE + PARTITIONS as u64 * TABLE_ROW;

impl Chip {
    /// A register of an engine.
    pub(crate) fn register(
        &self,
        engine: Engine,
        number: u8,
        element: ElementType,
    ) -> Result<Elements, Fault> {
        if matches!(number, 128 | 129) {
            return Err(Fault::unsupported(format!(
                "register {number}, the address of the instruction, is not supported"
            )));
        }
        if number >= REGISTERS {
            return Err(Fault::program(format!(
                "register {number}: there are {REGISTERS}"
            )));
        }
        let at = (engine.index() as u64 * u64::from(REGISTERS) + u64::from(number)) * WORD;
        Ok(self.kept(at, WORD, element))
    }

    /// An engine's accumulators of so many partitions, from that of an address on.
    pub(super) fn accumulators(
        &self,
        engine: Engine,
        address: u32,
        channels: u8,
    ) -> Result<Elements, Fault> {
        let at = ACCUMULATORS + engine.index() as u64 * u64::from(PARTITIONS) * WORD;
        let (first, count) = partitions(address, channels)?;
        Ok(self.kept(at + first * WORD, count * WORD, ElementType::Float32))
    }

    /// The values that are looked for in so many partitions, from that of an address on.
    pub(super) fn search_values(&self, address: u32, channels: u8) -> Result<Elements, Fault> {
        let (first, count) = partitions(address, channels)?;
        let size = SEARCH_VALUES * WORD;
        Ok(self.kept(SEARCH + first * size, count * size, ElementType::Float32))
    }

    /// The first elements of the table, in so many partitions, from that of an address on.
    pub(super) fn table(
        &self,
        address: u32,
        channels: u8,
        elements: u64,
        element: ElementType,
    ) -> Result<Elements, Fault> {
        let (first, count) = partitions(address, channels)?;
        let rows = Loop {
            count,
            stride: TABLE_ROW as i64,
        };
        let run = elements * element.bits() / 8;
        Ok(Elements {
            buffer: self.registers,
            pattern: Pattern::new(TABLE + first * TABLE_ROW, run, [rows]),
            element,
        })
    }

    fn kept(&self, offset: u64, size: u64, element: ElementType) -> Elements {
        Elements {
            buffer: self.registers,
            pattern: Pattern::contiguous(offset, size),
            element,
        }
    }
}

/// The first partition, and how many.
fn partitions(address: u32, channels: u8) -> Result<(u64, u64), Fault> {
    let first = OnChip::at(address).map(|at| u64::from(at.partition));
    let first = first.filter(|first| first + u64::from(channels) <= u64::from(PARTITIONS));
    let first = first.ok_or_else(|| {
        Fault::program(format!(
            "{channels} partitions from {address:#x} on: there are {PARTITIONS}"
        ))
    })?;
    Ok((first, u64::from(channels)))
}
