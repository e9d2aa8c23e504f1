//! DMA transfers.

use super::Descriptors;
use super::layer_of;
use super::pieces::{self, Pieces};
use chipless_kernels::{cast, strided};
use chipless_model::{
    Access, BufferId, Dependence, Direction, Doubt, ElementType, Fault, Kernel, Loop, Pattern,
    Storage, Zero,
};
use std::borrow::Cow;

/// A DMA transfer with its addresses resolved to buffers.
#[derive(Debug)]
pub(crate) struct Transfer<'i> {
    pub(crate) descriptors: Descriptors<'i>,
    pub(crate) source: Source,
    /// Every buffer that receives the bytes: one, or several for a multicast to tiles; none for register writes.
    /// Of an unsupported transfer, all that it may have written.
    pub(crate) destinations: Vec<(BufferId, Pattern)>,
    /// Operation, for listings.
    pub(crate) name: &'static str,
}

/// Where a transfer's bytes come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// Nowhere: barriers only.
    None,
    /// A walk over a buffer, converted if types differ.
    Walk(BufferId, Pattern, Option<(ElementType, ElementType)>),
    /// Rows of a buffer picked by 64-bit indices.
    Rows {
        /// Whose rows.
        buffer: BufferId,
        /// Row 0.
        offset: u64,
        /// Bytes of a row.
        row: u64,
        /// Rows from `offset` to the end of the buffer.
        rows: u64,
        /// The indices.
        list: (BufferId, Pattern),
    },
    /// Eight bytes, repeated.
    Fill(u64),
    /// What Chipless names and does not execute.
    Unsupported(&'static str),
}

/// The operation of a transfer that brings descriptors.
pub(crate) const FETCH: &str = "fetch";
/// Operation of a transfer that writes registers.
pub(crate) const REGISTER_WRITE: &str = "register write";
/// The name of transfers that write the same number everywhere.
pub(crate) const FILL: &str = "fill";

impl Kernel for Transfer<'_> {
    fn operation(&self) -> Cow<'static, str> {
        self.name.into()
    }

    fn layer<'l>(&self, label: &'l str) -> Option<&'l str> {
        layer_of(label)
    }

    /// So do writes to the registers that start them.
    fn brings_tasks(&self) -> bool {
        self.name == FETCH || self.name == REGISTER_WRITE
    }

    fn details(&self) -> String {
        match &self.source {
            Source::Walk(_, _, Some((before, after))) => format!("{before} to {after}"),
            Source::Rows { row, list, .. } => {
                format!("{} rows of {row} bytes", list.1.bytes().unwrap_or(0) / 8)
            }
            Source::Fill(value) => format!("{value:#018x}"),
            Source::Unsupported(what) => format!("{what}: not executed"),
            Source::None | Source::Walk(_, _, None) => String::new(),
        }
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.descriptors.accesses(visit);
        match &self.source {
            Source::Walk(buffer, pattern, _) => visit(Access::read(*buffer, pattern.clone())),
            Source::Rows {
                buffer,
                offset,
                row,
                rows,
                list,
            } => {
                visit(Access::read(list.0, list.1.clone()));
                visit(Access::read(*buffer, Pattern::contiguous(*offset, row * rows)).may());
            }
            Source::None | Source::Fill(_) | Source::Unsupported(_) => {}
        }
        for (buffer, pattern) in &self.destinations {
            let access = Access::write(*buffer, pattern.clone());
            visit(if let Source::Unsupported(_) = self.source {
                access.may()
            } else {
                access
            });
        }
    }

    fn dependence(
        &self,
        doubtful: &dyn Doubt,
        visit: &mut dyn FnMut(BufferId, Pattern),
    ) -> Dependence {
        if self.descriptors.are_doubtful(doubtful) {
            return Dependence::Control;
        }
        let (buffer, from, conversion) = match &self.source {
            Source::None | Source::Fill(_) | Source::Unsupported(_) => return Dependence::Bytes,
            // Which rows are picked is not known: a row that nobody has written may be one that nobody picks.
            Source::Rows { list, .. } => {
                let is_doubtful = |at| doubtful.any(list.0, at..at + list.1.run);
                return if list.1.runs().any(is_doubtful) {
                    Dependence::Control
                } else {
                    Dependence::Bytes
                };
            }
            Source::Walk(buffer, from, conversion) => (*buffer, from, conversion),
        };
        // Registers are written.
        if self.destinations.is_empty() {
            return Dependence::Control;
        }
        let mut written = Pieces::new(&self.destinations);
        let each = |bytes, visit: &mut dyn FnMut(_)| doubtful.each(buffer, bytes, visit);
        pieces::found(from, &each, &mut |found| {
            let Some((before, after)) = conversion else {
                return written.add_all(found, visit);
            };
            for run in found.runs() {
                let element = |byte: u64| byte * 8 / before.bits();
                let (first, last) = (element(run.start), element(run.end - 1));
                let bytes = first * after.bits() / 8..((last + 1) * after.bits()).div_ceil(8);
                written.add(bytes, visit);
            }
        });
        written.flush(visit);
        Dependence::Bytes
    }

    fn zeros(&self, zero: &dyn Zero, visit: &mut dyn FnMut(BufferId, Pattern)) {
        let Source::Walk(buffer, from, conversion) = &self.source else {
            return;
        };
        // Zero is zero in all types.
        let (before, after) = conversion.map_or((8, 8), |(a, b)| (a.bits(), b.bits()));
        let mut pieces = Pieces::new(&self.destinations);
        let mut written = |low: u64, high: u64| {
            let (first, end) = ((low * 8).div_ceil(before), high * 8 / before);
            pieces.add((first * after).div_ceil(8)..end * after / 8, visit);
        };
        let each = |bytes, visit: &mut dyn FnMut(_)| zero.each_other(*buffer, bytes, visit);
        pieces::missed(from, &each, &mut |zeros| written(zeros.start, zeros.end));
        pieces.flush(visit);
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        self.descriptors.check(storage)?;
        let bytes = match &self.source {
            Source::None => return Ok(()),
            Source::Unsupported(what) => {
                return Err(Fault::unsupported(format!("{what} is not supported")));
            }
            Source::Walk(buffer, pattern, None) => return self.copy(storage, *buffer, pattern),
            Source::Walk(buffer, pattern, Some((before, after))) => {
                let mut read = Vec::new();
                strided::gather(storage.bytes(*buffer), pattern, &mut read).map_err(fault)?;
                convert(&read, *before, *after).map_err(fault)?
            }
            Source::Rows {
                buffer,
                offset,
                row,
                rows,
                list,
            } => {
                let mut indices = Vec::new();
                strided::gather(storage.bytes(list.0), &list.1, &mut indices).map_err(fault)?;
                let rows = Rows {
                    bytes: storage.bytes(*buffer),
                    offset: *offset,
                    size: *row,
                    count: *rows,
                };
                rows.pick(&indices)?
            }
            Source::Fill(value) => {
                let size = self
                    .destinations
                    .first()
                    .and_then(|d| d.1.bytes())
                    .unwrap_or(0) as usize;
                value.to_le_bytes().into_iter().cycle().take(size).collect()
            }
        };
        for (buffer, pattern) in &self.destinations {
            strided::scatter(&bytes, storage.bytes_mut(*buffer), pattern).map_err(fault)?;
        }
        Ok(())
    }

    /// A conversion knows its types, and a list of indices is one; other bytes are moved as they are.
    fn tensor(&self, access: &Access) -> Option<(ElementType, Vec<u64>)> {
        let element = match (&self.source, access.direction) {
            _ if access.tensor == Access::DESCRIPTION => return None,
            (Source::Walk(_, _, Some((before, _))), Direction::Read) => *before,
            (Source::Walk(_, _, Some((_, after))), Direction::Write) => *after,
            (Source::Rows { list, .. }, Direction::Read)
                if (list.0, &list.1) == (access.buffer, &access.pattern) =>
            {
                ElementType::Int64
            }
            _ => return None,
        };
        Some((element, Vec::new()))
    }

    fn source_of(&self, buffer: BufferId, byte: u64) -> Option<(BufferId, u64)> {
        let Source::Walk(source, from, None) = &self.source else {
            return None;
        };
        let mut destinations = self.destinations.iter().rev().filter(|d| d.0 == buffer);
        destinations.find_map(|(_, to)| Some((*source, to.counterpart(byte, from)?)))
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        match &self.source {
            Source::Fill(_) => Some("DMA fill (memset)".into()),
            Source::Walk(_, _, Some((ElementType::Int8, _))) => {
                Some("DMA conversion int8 to int4".into())
            }
            Source::Walk(_, _, Some((_, ElementType::BFloat16))) => {
                Some("DMA conversion fp32 to bf16".into())
            }
            _ => None,
        }
    }
}

impl Transfer<'_> {
    /// Bytes move as they are: straight from buffer to buffer, or by way of a copy where a destination is also the source.
    fn copy(
        &self,
        storage: &mut Storage<'_>,
        source: BufferId,
        from: &Pattern,
    ) -> Result<(), Fault> {
        if let [(destination, to)] = &self.destinations[..]
            && *destination == source
        {
            return strided::copy_within(storage.bytes_mut(source), from, to).map_err(fault);
        }
        if self
            .destinations
            .iter()
            .any(|(destination, _)| *destination == source)
        {
            let mut bytes = Vec::new();
            strided::gather(storage.bytes(source), from, &mut bytes).map_err(fault)?;
            for (destination, to) in &self.destinations {
                strided::scatter(&bytes, storage.bytes_mut(*destination), to).map_err(fault)?;
            }
            return Ok(());
        }
        for (destination, to) in &self.destinations {
            if let Some(([read], write)) = storage.split([source], *destination) {
                strided::copy(read, from, write, to).map_err(fault)?;
            }
        }
        Ok(())
    }
}

struct Rows<'s> {
    bytes: &'s [u8],
    offset: u64,
    size: u64,
    count: u64,
}

impl Rows<'_> {
    fn pick(&self, indices: &[u8]) -> Result<Vec<u8>, Fault> {
        let (indices, _) = indices.as_chunks::<8>();
        let mut picked = Vec::with_capacity(indices.len() * self.size as usize);
        for (position, index) in indices.iter().enumerate() {
            let index = i64::from_le_bytes(*index);
            if !u64::try_from(index).is_ok_and(|i| i < self.count) {
                return Err(Fault::program(format!(
                    "index {index} at position {position} of the list is outside the {} rows that the source has",
                    self.count
                )));
            }
            let start = (self.offset + index as u64 * self.size) as usize;
            picked.extend_from_slice(&self.bytes[start..start + self.size as usize]);
        }
        Ok(picked)
    }
}

fn convert(
    bytes: &[u8],
    before: ElementType,
    after: ElementType,
) -> Result<Vec<u8>, chipless_kernels::Error> {
    let count = (bytes.len() as u64 * 8 / before.bits()) as usize;
    let mut converted = vec![0; after.bytes_for(count as u64).unwrap_or(0) as usize];
    if before == ElementType::Float32 {
        let mut values = vec![0.0; count];
        cast::decode_f32(before, bytes, &mut values)?;
        cast::encode_f32(after, &values, cast::Rounding::NearestEven, &mut converted)?;
    } else {
        let mut values = vec![0; count];
        cast::decode_i64(before, bytes, &mut values)?;
        cast::encode_i64(after, &values, &mut converted)?;
    }
    Ok(converted)
}

/// Patterns that fit and match have been checked before: what remains is a bug of ours, reported rather than hidden.
fn fault(error: impl std::fmt::Display) -> Fault {
    Fault::program(error.to_string())
}

/// The rows that a buffer holds from an offset on.
pub(crate) fn rows_from(offset: u64, row: u64, size: u64) -> u64 {
    size.saturating_sub(offset).checked_div(row).unwrap_or(0)
}

/// A list of `count` 64-bit indices.
pub(crate) fn list(offset: u64, count: u64) -> Pattern {
    Pattern::new(offset, 8, [Loop { count, stride: 8 }])
}
