//! Transfers whose rows indices in the state buffer find: gathers, scatters, and gathers that are transposed.
//!
//! The rows of one side are places in a variable, `first + index × step`. Those whose index is out of bounds are left out, or stop the run.

pub(crate) mod form;

use super::transfer::{Compute, put};
use super::{Elements, fault, integers, tensor_of};
use crate::kernels::addressed::{Region, number};
use crate::stream::{Details, Slot};
use chipless_kernels::cast::{Rounding, decode_f32, encode_f32};
use chipless_kernels::strided;
use chipless_model::{
    Access, BufferId, Dependence, Direction, Doubt, ElementType, Fault, Grade, Kernel, Pattern,
    Storage,
};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// A transfer of so many rows.
#[derive(Debug)]
pub(crate) struct Indexed<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) count: usize,
    pub(crate) from: Rows,
    pub(crate) to: Rows,
    /// What a destination becomes with what it held; without, it becomes the source.
    pub(crate) compute: Option<Compute>,
    /// Whether an index that is out of bounds stops the run; otherwise its row is left out.
    pub(crate) bounds_are_kept: bool,
    /// Whether indices of the destination may be equal.
    pub(crate) repeats: bool,
    /// Whether the rows of the source are the columns of the destination.
    pub(crate) transposes: bool,
}

/// The rows of one side.
#[derive(Debug)]
pub(crate) enum Rows {
    /// They follow each other in these elements.
    InOrder(Elements),
    ByIndex(Box<ByIndex>),
}

/// Rows that indices find.
#[derive(Debug)]
pub(crate) struct ByIndex {
    /// `src` or `dst`.
    pub(crate) role: &'static str,
    /// An index for each row.
    pub(crate) indices: Elements,
    pub(crate) region: Region,
    /// Bytes from the start of the region to the row of index 0.
    pub(crate) first: u64,
    /// Bytes from the row of an index to that of the next.
    pub(crate) step: i64,
    /// Bytes of a row.
    pub(crate) row: usize,
    /// The word that indices must stay below.
    pub(crate) limit: Option<Elements>,
    /// Bytes behind which no row may reach.
    pub(crate) bytes: Option<u64>,
    /// The elements as they lie where indices count from 0 on.
    pub(crate) elements: Elements,
}

/// What is moved, in the order of the rows.
enum Moved {
    Bytes(Vec<u8>),
    /// Numbers that become elements of another type, or join those of the destination.
    Numbers(Vec<f32>),
}

impl ByIndex {
    fn sources(&self) -> impl Iterator<Item = &Elements> {
        std::iter::once(&self.indices).chain(&self.limit)
    }

    /// Where each row begins in the buffer; nothing for those that are left out.
    fn find(&self, storage: &Storage<'_>, are_kept: bool) -> Result<Vec<Option<usize>>, Fault> {
        let mut packed = Vec::new();
        self.indices.gather(storage, &mut packed)?;
        let indices = packed.chunks_exact(4).map(|word| {
            let word = word.first_chunk().copied().unwrap_or_default();
            u32::from_le_bytes(word)
        });
        let limit = self.limit.as_ref();
        let limit = limit.map(|word| number(std::slice::from_ref(word), storage));
        let place = |(at, index)| self.place((at, index), limit, are_kept);
        indices.enumerate().map(place).collect()
    }

    fn place(
        &self,
        (at, index): (usize, u32),
        limit: Option<u64>,
        are_kept: bool,
    ) -> Result<Option<usize>, Fault> {
        let ByIndex { role, region, .. } = self;
        if limit == Some(u64::from(index)) {
            return Err(Fault::unsupported(format!(
                "{role}: index {at} is {index}, just its bound: whether that is still inside is not known, and not supported"
            )));
        }
        let start = i128::from(self.first) + i128::from(index) * i128::from(self.step);
        let end = start + self.row as i128;
        let is_out = limit.is_some_and(|limit| u64::from(index) > limit)
            || self.bytes.is_some_and(|bytes| end > i128::from(bytes));
        if is_out && !are_kept {
            return Ok(None);
        }
        if is_out || start < 0 || end > i128::from(region.size) {
            return Err(Fault::program(format!(
                "{role}: index {at} is {index}, out of bounds: its row is bytes {start:#x} to {end:#x} of {}, which has {:#x}",
                region.name, region.size
            )));
        }
        Ok(usize::try_from(i128::from(region.offset) + start).ok())
    }
}

impl Rows {
    /// Its elements, or as many like them.
    pub(crate) fn elements(&self) -> &Elements {
        match self {
            Rows::InOrder(elements) => elements,
            Rows::ByIndex(by) => &by.elements,
        }
    }

    fn by_index(&self) -> Option<&ByIndex> {
        match self {
            Rows::InOrder(_) => None,
            Rows::ByIndex(by) => Some(by),
        }
    }

    /// The type of what an access touches: rows, or the words that find them.
    fn tensor(&self, access: &Access) -> Option<(ElementType, Vec<u64>)> {
        let Rows::ByIndex(by) = self else {
            return tensor_of(access, [self.elements()]);
        };
        let is_region = access.buffer == by.region.buffer
            && access.pattern == Pattern::contiguous(by.region.offset, by.region.size);
        if is_region {
            return Some((by.elements.element, Vec::new()));
        }
        tensor_of(access, by.sources())
    }

    fn accesses(&self, direction: Direction, is_part: bool, visit: &mut dyn FnMut(Access)) {
        let access = |buffer, pattern| match direction {
            Direction::Read => Access::read(buffer, pattern),
            Direction::Write => Access::write(buffer, pattern),
        };
        match self {
            Rows::InOrder(elements) => {
                let access = access(elements.buffer, elements.pattern.clone());
                visit(if is_part { access.may() } else { access });
            }
            Rows::ByIndex(by) => {
                by.sources().for_each(|word| visit(word.read_access()));
                let all = Pattern::contiguous(by.region.offset, by.region.size);
                visit(access(by.region.buffer, all).may());
            }
        }
    }
}

impl Kernel for Indexed<'_> {
    fn operation(&self) -> Cow<'static, str> {
        match (&self.from, &self.to) {
            _ if self.transposes => "dma gather transpose",
            (_, Rows::InOrder(_)) => "dma gather",
            (Rows::InOrder(_), _) => "dma scatter",
            _ => "dma gather and scatter",
        }
        .into()
    }

    fn details(&self) -> String {
        Details(self.slot).to_string()
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        let has_bounds = |by: &ByIndex| by.limit.is_some() || by.bytes.is_some();
        let mut sides = [&self.from, &self.to].into_iter();
        let leaves_out =
            !self.bounds_are_kept && sides.any(|rows| rows.by_index().is_some_and(has_bounds));
        self.from.accesses(Direction::Read, leaves_out, visit);
        if self.compute.is_some() {
            self.to.accesses(Direction::Read, leaves_out, visit);
        }
        self.to.accesses(Direction::Write, leaves_out, visit);
    }

    fn tensor(&self, access: &Access) -> Option<(ElementType, Vec<u64>)> {
        let rows = match access.direction {
            Direction::Read => [&self.from, &self.to],
            Direction::Write => [&self.to, &self.from],
        };
        rows.into_iter().find_map(|rows| rows.tensor(access))
    }

    fn traffic(&self) -> (u64, u64) {
        (self.from.elements().bytes(), self.to.elements().bytes())
    }

    fn dependence(&self, doubtful: &dyn Doubt, _: &mut dyn FnMut(BufferId, Pattern)) -> Dependence {
        let is_doubtful = |words: &Elements| {
            let mut runs = words.pattern.runs();
            runs.any(|at| doubtful.any(words.buffer, at..at + words.pattern.run))
        };
        let sides = [&self.from, &self.to]
            .into_iter()
            .filter_map(Rows::by_index);
        // Which bytes are moved is not known before a run; of those alone it could be told.
        if sides.flat_map(ByIndex::sources).any(is_doubtful) {
            Dependence::Control
        } else {
            Dependence::Bytes
        }
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let find = |rows: &Rows| {
            let by = rows.by_index();
            by.map(|by| by.find(storage, self.bounds_are_kept))
                .transpose()
        };
        let (from, to) = (find(&self.from)?, find(&self.to)?);
        let is_left_out = |row: usize| {
            let mut sides = [&from, &to].into_iter().flatten();
            sides.any(|places| places[row].is_none())
        };
        let left_out: Vec<bool> = (0..self.count).map(is_left_out).collect();
        let moved = self.read(storage, from.as_deref())?;
        match (&self.to, to) {
            (Rows::ByIndex(by), Some(places)) => {
                let places = places.into_iter().zip(left_out);
                let places = places.map(|(place, left_out)| place.filter(|_| !left_out));
                self.scatter(storage, by, &moved, &places.collect::<Vec<_>>())
            }
            (to, _) => self.put(storage, to.elements(), &moved, &left_out),
        }
    }

    fn grade(&self) -> Grade {
        Grade::Assumed
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        Some("where the indices of a transfer lie, and that they count its steps".into())
    }
}

impl Indexed<'_> {
    /// What the rows of the source hold; zeros where nothing is moved.
    fn read(
        &self,
        storage: &mut Storage<'_>,
        places: Option<&[Option<usize>]>,
    ) -> Result<Moved, Fault> {
        let (source, element) = (self.from.elements(), self.to.elements().element);
        let mut packed = Vec::new();
        match (&self.from, places) {
            (Rows::ByIndex(by), Some(places)) => {
                let bytes = storage.bytes(by.region.buffer);
                packed.resize(places.len() * by.row, 0);
                for (row, place) in packed.chunks_exact_mut(by.row).zip(places) {
                    if let Some(place) = *place {
                        row.copy_from_slice(&bytes[place..place + by.row]);
                    }
                }
            }
            _ => source.gather(storage, &mut packed)?,
        }
        if source.element == element && self.compute.is_none() {
            return Ok(Moved::Bytes(packed));
        }
        if integers::is_integer(element) {
            integers::remark_packed(storage, source.element, &packed, 0)?;
        }
        let mut values = vec![0.0; packed.len() * 8 / source.element.bits() as usize];
        decode_f32(source.element, &packed, &mut values).map_err(fault)?;
        Ok(Moved::Numbers(values))
    }

    /// A row of the destination, given what it holds.
    fn row(&self, moved: &Moved, row: usize, held: &mut [u8]) -> Result<(), Fault> {
        let values = match moved {
            Moved::Bytes(bytes) => {
                let at = row * held.len();
                held.copy_from_slice(&bytes[at..at + held.len()]);
                return Ok(());
            }
            Moved::Numbers(values) => values,
        };
        let element = self.to.elements().element;
        let count = held.len() * 8 / element.bits() as usize;
        let values = &values[row * count..(row + 1) * count];
        let mut results = vec![0.0; count];
        if let Some(how) = self.compute {
            decode_f32(element, held, &mut results).map_err(fault)?;
            put(how, &mut results, values, 1.0, false);
        } else {
            results.copy_from_slice(values);
        }
        encode_f32(element, &results, Rounding::NearestEven, held).map_err(fault)
    }

    /// Into elements that follow each other: what is left out stays.
    fn put(
        &self,
        storage: &mut Storage<'_>,
        to: &Elements,
        moved: &Moved,
        left_out: &[bool],
    ) -> Result<(), Fault> {
        let mut held = Vec::new();
        to.gather(storage, &mut held)?;
        let size = held.len() / self.count.max(1);
        let kept = left_out.iter().enumerate().filter(|(_, out)| !**out);
        if let (true, Moved::Bytes(bytes)) = (self.transposes, moved) {
            let element = (to.element.bits() / 8) as usize;
            for (row, _) in kept {
                let values = bytes[row * size..(row + 1) * size].chunks_exact(element);
                for (column, value) in values.enumerate() {
                    let at = (column * self.count + row) * element;
                    held[at..at + element].copy_from_slice(value);
                }
            }
        } else {
            for (row, _) in kept {
                self.row(moved, row, &mut held[row * size..(row + 1) * size])?;
            }
        }
        strided::scatter(&held, storage.bytes_mut(to.buffer), &to.pattern).map_err(fault)
    }

    /// Into rows that indices find.
    fn scatter(
        &self,
        storage: &mut Storage<'_>,
        by: &ByIndex,
        moved: &Moved,
        places: &[Option<usize>],
    ) -> Result<(), Fault> {
        let mut written: FxHashMap<usize, usize> = FxHashMap::default();
        for (row, place) in places.iter().enumerate() {
            let Some(place) = *place else { continue };
            let bytes = &mut storage.bytes_mut(by.region.buffer)[place..place + by.row];
            let before = written.insert(place, row);
            let first = before.map(|first| (first, bytes.to_vec()));
            self.row(moved, row, bytes)?;
            match first {
                // The order of additions decides the last bits alone; the instruction says whether they happen.
                Some((first, _)) if self.compute.is_some() && !self.repeats => {
                    return Err(Fault::program(format!(
                        "{}: indices {first} and {row} are equal, although the instruction says that none are",
                        by.role
                    )));
                }
                Some((first, held)) if self.compute.is_none() && held != bytes => {
                    return Err(Fault::unsupported(format!(
                        "{}: indices {first} and {row} are equal, and their rows differ: which of them stays is not known, and not supported",
                        by.role
                    )));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
