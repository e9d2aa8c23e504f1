//! The way back: what the bytes that an effect overwrites were before it.
//!
//! Each effect leaves a record, the old bytes of its write accesses, so a step back costs what it copies. When the records outgrow
//! their share of the budget, the oldest are merged into a *stretch*: one record for many effects, which has the oldest bytes of each
//! page once, however often they were overwritten. To go back into a stretch is to go to its start and to execute again. When
//! the stretches outgrow the budget, neighbours are merged; one stretch alone is no larger than what the run has written.

use chipless_kernels::strided;
use chipless_model::{Access, BufferId, Certainty, Direction, Pattern, Program, Storage, TaskId};
use std::collections::{BTreeMap, VecDeque};

/// Bytes of old contents that are kept, unless one merged stretch alone needs more.
pub const BUDGET: usize = 512 << 20;

const PAGE: usize = 4096;

/// What an effect overwrites.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pieces: Vec<Piece>,
}

#[derive(Debug)]
struct Piece {
    buffer: BufferId,
    pattern: Pattern,
    bytes: Vec<u8>,
}

impl Record {
    /// The bytes that a task is about to overwrite. A pattern that does not fit its buffer has none: the engine refuses its task.
    pub(crate) fn before(program: &Program<'_>, task: TaskId, storage: &Storage<'_>) -> Record {
        let mut pieces = Vec::new();
        program.kernel(task).accesses(&mut |access| {
            if access.direction == Direction::Write
                && let Some(pattern) = span(&access, storage.bytes(access.buffer).len() as u64)
            {
                let (buffer, held) = (access.buffer, storage.bytes(access.buffer));
                let bytes = if pattern.loops.is_empty() {
                    held[pattern.offset as usize..][..pattern.run as usize].to_vec()
                } else {
                    let mut bytes = Vec::new();
                    if strided::gather(held, &pattern, &mut bytes).is_err() {
                        return;
                    }
                    bytes
                };
                pieces.push(Piece {
                    buffer,
                    pattern,
                    bytes,
                });
            }
        });
        Record { pieces }
    }

    /// Puts the old bytes back.
    pub(crate) fn restore(&self, storage: &mut Storage<'_>) {
        for piece in &self.pieces {
            // It was gathered from there, so it fits.
            let _ = strided::scatter(
                &piece.bytes,
                storage.bytes_mut(piece.buffer),
                &piece.pattern,
            );
        }
    }

    fn size(&self) -> usize {
        let header = size_of::<Piece>();
        self.pieces.iter().map(|p| p.bytes.len() + header).sum()
    }
}

/// What to keep of a write access: its pattern, everything between its first and last byte where that is hardly more, and of a
/// bound that data decide as much as the buffer has.
fn span(access: &Access, size: u64) -> Option<Pattern> {
    let pattern = &access.pattern;
    let inside = pattern.inside(size);
    if inside.is_empty() {
        return None;
    }
    let length = inside.end - inside.start;
    if access.certainty == Certainty::May || pattern.bytes()? >= length / 2 {
        return Some(Pattern::contiguous(inside.start, length));
    }
    Some(pattern.clone())
}

/// Old bytes of a page, and which of them are known.
struct Page {
    bytes: Box<[u8; PAGE]>,
    known: [u64; PAGE / 64],
}

/// Many effects in one record.
struct Stretch {
    /// The first of its effects.
    first: usize,
    pages: BTreeMap<(BufferId, usize), Page>,
}

impl Stretch {
    fn size(&self) -> usize {
        self.pages.len() * (PAGE + PAGE / 8)
    }

    /// Older bytes take the place of what is there.
    fn put(&mut self, buffer: BufferId, offset: usize, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done;
            let (page, within) = (at / PAGE, at % PAGE);
            let size = (PAGE - within).min(bytes.len() - done);
            let page = self.pages.entry((buffer, page)).or_insert_with(|| Page {
                bytes: Box::new([0; PAGE]),
                known: [0; PAGE / 64],
            });
            page.bytes[within..within + size].copy_from_slice(&bytes[done..done + size]);
            mark(&mut page.known, within, size);
            done += size;
        }
    }

    fn put_record(&mut self, record: &Record) {
        for piece in &record.pieces {
            let run = piece.pattern.run as usize;
            let starts = piece.pattern.runs();
            for (start, bytes) in starts.zip(piece.bytes.chunks(run.max(1))) {
                self.put(piece.buffer, start as usize, bytes);
            }
        }
    }

    /// Takes in the stretch before it.
    fn take(&mut self, earlier: Stretch) {
        for ((buffer, number), page) in earlier.pages {
            for (start, size) in runs(&page.known) {
                self.put(
                    buffer,
                    number * PAGE + start,
                    &page.bytes[start..start + size],
                );
            }
        }
        self.first = earlier.first;
    }

    fn restore(&self, storage: &mut Storage<'_>) {
        for ((buffer, number), page) in &self.pages {
            let held = storage.bytes_mut(*buffer);
            for (start, size) in runs(&page.known) {
                let at = number * PAGE + start;
                held[at..at + size].copy_from_slice(&page.bytes[start..start + size]);
            }
        }
    }
}

/// Sets `size` bits from `start`.
fn mark(known: &mut [u64; PAGE / 64], start: usize, size: usize) {
    let mut at = start;
    while at < start + size {
        let (word, bit) = (at / 64, at % 64);
        let count = (64 - bit).min(start + size - at);
        let ones = if count == 64 {
            u64::MAX
        } else {
            ((1 << count) - 1) << bit
        };
        known[word] |= ones;
        at += count;
    }
}

/// Start and size of each run of bits that are set.
fn runs(known: &[u64; PAGE / 64]) -> Vec<(usize, usize)> {
    let is_set = |at: usize| known[at / 64] >> (at % 64) & 1 == 1;
    let mut found = Vec::new();
    let mut at = 0;
    while at < PAGE {
        if known[at / 64] == 0 {
            at = (at / 64 + 1) * 64;
        } else if is_set(at) {
            let start = at;
            while at < PAGE && is_set(at) {
                at += 1;
            }
            found.push((start, at - start));
        } else {
            at += 1;
        }
    }
    found
}

/// The records of all effects until the present.
pub(crate) struct Log {
    budget: usize,
    stretches: Vec<Stretch>,
    stretched: usize,
    /// Number of the first effect that has a record of its own.
    first: usize,
    recent: VecDeque<Record>,
    size: usize,
}

impl Log {
    pub(crate) fn new(budget: usize) -> Log {
        Log {
            budget,
            stretches: Vec::new(),
            stretched: 0,
            first: 0,
            recent: VecDeque::new(),
            size: 0,
        }
    }

    /// Keeps the record of the next effect.
    pub(crate) fn push(&mut self, record: Record) {
        self.size += record.size();
        self.recent.push_back(record);
        if self.size > self.budget / 2 {
            self.merge_oldest();
        }
    }

    /// Half of the records become stretches, and stretches become fewer while they are too large together.
    fn merge_oldest(&mut self) {
        while self.size > self.budget / 4 && self.recent.len() > 1 {
            let (mut count, mut size) = (0, 0);
            for record in self.recent.iter().take(self.recent.len() - 1) {
                (count, size) = (count + 1, size + record.size());
                if size > self.budget / 16 {
                    break;
                }
            }
            let mut stretch = Stretch {
                first: self.first,
                pages: BTreeMap::new(),
            };
            // The oldest bytes come last, and stay.
            for record in self.recent.drain(..count).rev() {
                stretch.put_record(&record);
            }
            self.size -= size;
            self.first += count;
            self.stretched += stretch.size();
            self.stretches.push(stretch);
        }
        while self.stretched > self.budget / 2 && self.stretches.len() > 1 {
            let mut merged = Vec::with_capacity(self.stretches.len().div_ceil(2));
            let mut all = std::mem::take(&mut self.stretches).into_iter();
            while let Some(earlier) = all.next() {
                merged.push(match all.next() {
                    Some(mut later) => {
                        later.take(earlier);
                        later
                    }
                    None => earlier,
                });
            }
            self.stretched = merged.iter().map(Stretch::size).sum();
            self.stretches = merged;
        }
    }

    /// Goes back before the last effect, or before a stretch of them. Returns the number of the effect that comes next; `None` at the
    /// start.
    pub(crate) fn back(&mut self, storage: &mut Storage<'_>) -> Option<usize> {
        if let Some(record) = self.recent.pop_back() {
            self.size -= record.size();
            record.restore(storage);
            return Some(self.first + self.recent.len());
        }
        let stretch = self.stretches.pop()?;
        self.stretched -= stretch.size();
        stretch.restore(storage);
        self.first = stretch.first;
        Some(self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_known_bytes_are_found_again() {
        let mut known = [0; PAGE / 64];
        for (start, size) in [(0, 1), (60, 10), (128, 64), (4000, 96)] {
            mark(&mut known, start, size);
        }
        assert_eq!(runs(&known), [(0, 1), (60, 10), (128, 64), (4000, 96)]);
    }
}
