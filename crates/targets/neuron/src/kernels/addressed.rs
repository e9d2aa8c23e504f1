//! Transfers whose addresses are found when they are used: in registers of the engine that hands them over.
//!
//! The registers go on while a transfer is on its way, so the instruction notes what they held ([`Latch`]), and the transfer goes by that.

use super::dependence::{Relation, follow};
use super::transfer::{Operation, Text, Transfer, UNPROVEN};
use super::{Elements, move_bytes};
use crate::stream::operand::leaves_partitions;
use crate::stream::{Details, Opcode, Slot, Space};
use chipless_model::{
    Access, BufferId, Dependence, Direction, Doubt, ElementType, Fault, Grade, Kernel, Pattern,
    Storage,
};
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;
use std::sync::Arc;

/// Bytes that addresses may lead to.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) name: String,
    pub(crate) buffer: BufferId,
    /// First byte in the buffer.
    pub(crate) offset: u64,
    pub(crate) size: u64,
    /// The address of the first byte.
    pub(crate) address: u64,
    /// The memory of the chip that it is, and the usable bytes of a partition.
    pub(crate) on_chip: Option<(Space, u32)>,
}

/// Elements that are found when they are used.
#[derive(Debug)]
pub(crate) struct Found {
    /// `src`, `dst` or `memory`.
    pub(crate) role: &'static str,
    /// The words of the address, low one first.
    pub(crate) words: SmallVec<[Elements; 2]>,
    /// The words that all bytes must stay below, where the instruction names such a bound.
    pub(crate) bound: Option<Elements>,
    /// The elements as they would lie from address 0 on.
    pub(crate) elements: Elements,
    /// Where they may be, by address.
    pub(crate) regions: Arc<[Region]>,
}

/// One side of a transfer.
#[derive(Debug)]
pub(crate) enum Side {
    Fixed(Elements),
    Found(Box<Found>),
}

impl Found {
    /// What is read to find them.
    fn sources(&self) -> impl Iterator<Item = &Elements> {
        self.words.iter().chain(&self.bound)
    }

    /// Where they are, as things stand.
    fn find(&self, storage: &Storage<'_>) -> Result<Elements, Fault> {
        let Found { role, .. } = self;
        let address = number(&self.words, storage);
        let extent = self.elements.pattern.extent();
        let (start, end) = (
            extent.start + i128::from(address),
            extent.end + i128::from(address),
        );
        let holds = |region: &&Region| {
            let first = i128::from(region.address);
            (first..first + i128::from(region.size)).contains(&i128::from(address))
        };
        let Some(region) = self.regions.iter().find(holds) else {
            let message = match &*self.regions {
                [only] => format!(
                    "{role}: a register says byte {address:#x} of {}, which has {:#x}",
                    only.name, only.size
                ),
                _ => format!("{role}: registers say address {address:#x}, where nothing is"),
            };
            return Err(Fault::program(message));
        };
        let base = i128::from(region.address);
        if start < base || end > base + i128::from(region.size) {
            return Err(Fault::program(format!(
                "{role} reaches bytes {:#x} to {:#x} of {}, which has {:#x}",
                start - base,
                end - base,
                region.name,
                region.size
            )));
        }
        if let Some(bound) = &self.bound {
            let bound = number(std::slice::from_ref(bound), storage);
            if end > i128::from(bound) {
                return Err(Fault::unsupported(format!(
                    "{role} reaches bytes {start:#x} to {end:#x}, beyond its bound {bound:#x}: what hardware does there is not known, and not supported"
                )));
            }
        }
        let by = i64::try_from(address - region.address).ok();
        let within = by.and_then(|by| self.elements.pattern.shifted(by));
        let pattern = within.filter(|within| match region.on_chip {
            None => true,
            Some((space, bytes)) => leaves_partitions(within, space, bytes).is_none(),
        });
        let pattern = pattern.ok_or_else(|| {
            Fault::program(format!("{role} leaves the partitions of {}", region.name))
        })?;
        let spot = i64::try_from(region.offset).ok();
        let pattern = spot.and_then(|by| pattern.shifted(by));
        Ok(Elements {
            buffer: region.buffer,
            pattern: pattern
                .ok_or_else(|| Fault::program(format!("{role}: the offset is beyond 2^63")))?,
            element: self.elements.element,
        })
    }
}

/// The bits of a number in the words of registers, low one first.
pub(super) fn number(words: &[Elements], storage: &Storage<'_>) -> u64 {
    words.iter().rev().fold(0, |high, word| {
        let at = word.pattern.offset as usize;
        let bytes = storage.bytes(word.buffer).get(at..).unwrap_or_default();
        let low = bytes
            .first_chunk()
            .map_or(0, |word| u32::from_le_bytes(*word));
        high << 32 | u64::from(low)
    })
}

impl Side {
    pub(super) fn accesses(&self, direction: Direction, visit: &mut dyn FnMut(Access)) {
        let access = |buffer, pattern| match direction {
            Direction::Read => Access::read(buffer, pattern),
            Direction::Write => Access::write(buffer, pattern),
        };
        match self {
            Side::Fixed(elements) => visit(access(elements.buffer, elements.pattern.clone())),
            Side::Found(found) => {
                found.sources().for_each(|word| visit(word.read_access()));
                for region in &*found.regions {
                    let all = Pattern::contiguous(region.offset, region.size);
                    visit(access(region.buffer, all).may());
                }
            }
        }
    }

    /// Where its elements are, as things stand.
    pub(super) fn find<'s>(&'s self, storage: &Storage<'_>) -> Result<Cow<'s, Elements>, Fault> {
        match self {
            Side::Fixed(elements) => Ok(Cow::Borrowed(elements)),
            Side::Found(found) => found.find(storage).map(Cow::Owned),
        }
    }

    /// Its elements, where the instruction says where they are.
    pub(crate) fn fixed(self) -> Option<Elements> {
        match self {
            Side::Fixed(elements) => Some(elements),
            Side::Found(_) => None,
        }
    }

    /// The type of its elements, where an access touches them; words that say where they are have none here.
    pub(crate) fn tensor(&self, access: &Access) -> Option<(ElementType, Vec<u64>)> {
        let elements = self.elements();
        let is_meant = match self {
            Side::Fixed(_) => elements.is_touched_by(access),
            Side::Found(found) => {
                let mut regions = found.regions.iter();
                regions.any(|region| region.buffer == access.buffer)
            }
        };
        is_meant.then(|| (elements.element, Vec::new()))
    }

    /// Its elements, or as many like them.
    pub(crate) fn elements(&self) -> &Elements {
        match self {
            Side::Fixed(elements) => elements,
            Side::Found(found) => &found.elements,
        }
    }

    /// Whether doubtful bytes decide where they are.
    pub(super) fn is_doubtful(&self, doubtful: &dyn Doubt) -> bool {
        match self {
            Side::Fixed(_) => false,
            Side::Found(found) => found.sources().any(|word| {
                let at = word.pattern.offset;
                doubtful.any(word.buffer, at..at + word.pattern.run)
            }),
        }
    }
}

/// A transfer of which at least one side is found when it starts.
#[derive(Debug)]
pub(crate) struct Addressed<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) from: Side,
    pub(crate) to: Side,
    pub(crate) casts: bool,
}

impl Kernel for Addressed<'_> {
    fn operation(&self) -> Cow<'static, str> {
        if self.casts { "dma cast" } else { "dma copy" }.into()
    }

    fn details(&self) -> String {
        Details(self.slot).to_string()
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.from.accesses(Direction::Read, visit);
        self.to.accesses(Direction::Write, visit);
    }

    fn traffic(&self) -> (u64, u64) {
        (self.from.elements().bytes(), self.to.elements().bytes())
    }

    fn dependence(&self, doubtful: &dyn Doubt, _: &mut dyn FnMut(BufferId, Pattern)) -> Dependence {
        // Which bytes are moved is not known before a run; of those alone it could be told.
        if self.from.is_doubtful(doubtful) || self.to.is_doubtful(doubtful) {
            Dependence::Control
        } else {
            Dependence::Bytes
        }
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let (from, to) = (self.from.find(storage)?, self.to.find(storage)?);
        let operation = if self.casts {
            Operation::Cast
        } else {
            Operation::Copy
        };
        let transfer = Transfer {
            text: Text::Slot(self.slot),
            sources: smallvec![from.into_owned()],
            to: to.into_owned(),
            operation,
        };
        transfer.execute(storage)
    }

    fn tensor(&self, access: &Access) -> Option<(ElementType, Vec<u64>)> {
        let side = match access.direction {
            Direction::Read => &self.from,
            Direction::Write => &self.to,
        };
        side.tensor(access)
    }

    fn grade(&self) -> Grade {
        Grade::Assumed
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        Some(UNPROVEN.into())
    }
}

/// The instruction that hands such a transfer over: it notes what registers hold.
#[derive(Debug)]
pub(crate) struct Latch<'a> {
    pub(crate) slot: &'a Slot,
    /// Registers, and where their words go.
    pub(crate) words: SmallVec<[(Elements, Elements); 4]>,
}

impl Kernel for Latch<'_> {
    fn operation(&self) -> Cow<'static, str> {
        Opcode::name_of(self.slot.head.opcode)
    }

    fn details(&self) -> String {
        Details(self.slot).to_string()
    }

    fn waits_above(&self, wait: usize) -> bool {
        self.slot.waits_above(wait)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        for (from, to) in &self.words {
            visit(from.read_access());
            visit(to.write_access());
        }
    }

    fn dependence(
        &self,
        doubtful: &dyn Doubt,
        visit: &mut dyn FnMut(BufferId, Pattern),
    ) -> Dependence {
        for (from, to) in &self.words {
            follow(from, to, Relation::Each, doubtful, visit);
        }
        Dependence::Bytes
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        self.words
            .iter()
            .try_for_each(|(from, to)| move_bytes(storage, from, to))
    }

    fn source_of(&self, buffer: BufferId, byte: u64) -> Option<(BufferId, u64)> {
        let mut words = self.words.iter();
        words.find_map(|(from, to)| to.taken_from(from, buffer, byte))
    }

    fn grade(&self) -> Grade {
        Grade::Assumed
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        Some(
            format!(
                "{}: {UNPROVEN} is {}",
                self.operation(),
                Grade::Assumed.phrase()
            )
            .into(),
        )
    }
}
