//! Marks on the bytes of buffers, in pages: few bytes have one.

use crate::window::{WORD, Window};
use chipless_model::BufferId;
use rustc_hash::FxHashMap;
use std::ops::{BitOr, Range};

/// Bytes of a page.
const PAGE: u64 = 4096;

/// A number for each byte; 0 where there is none.
#[derive(Debug, Default)]
pub(crate) struct Marks<N> {
    pages: FxHashMap<(BufferId, u64), Box<[N; PAGE as usize]>>,
    /// Pages by buffer.
    counts: FxHashMap<BufferId, usize>,
}

impl<N: Copy + Default + Ord + BitOr<Output = N>> Marks<N> {
    pub(crate) fn has(&self, buffer: BufferId) -> bool {
        self.counts.contains_key(&buffer)
    }

    pub(crate) fn at(&self, buffer: BufferId, byte: u64) -> N {
        let page = self.pages.get(&(buffer, byte / PAGE));
        page.map_or(N::default(), |page| page[(byte % PAGE) as usize])
    }

    /// The first run of bytes without a mark.
    pub(crate) fn first_without(&self, buffer: BufferId, bytes: Range<u64>) -> Option<Range<u64>> {
        let mut at = bytes.start;
        while at < bytes.end {
            match self.first(buffer, at..bytes.end) {
                Some(marked) if marked.start == at => at = marked.end,
                Some(marked) => return Some(at..marked.start),
                None => return Some(at..bytes.end),
            }
        }
        None
    }

    pub(crate) fn first(&self, buffer: BufferId, bytes: Range<u64>) -> Option<Range<u64>> {
        if !self.has(buffer) {
            return None;
        }
        let mut at = bytes.start;
        while at < bytes.end {
            let end = bytes.end.min((at / PAGE + 1) * PAGE);
            if let Some(page) = self.pages.get(&(buffer, at / PAGE)) {
                let base = at / PAGE * PAGE;
                let part = &page[(at - base) as usize..(end - base) as usize];
                if let Some(first) = first_mark(part) {
                    let count = part[first..]
                        .iter()
                        .take_while(|mark| **mark != N::default())
                        .count();
                    let low = at + first as u64;
                    return Some(low..low + count as u64);
                }
            }
            at = end;
        }
        None
    }

    /// Adds those bytes of a window from `start` on whose marks count.
    pub(crate) fn add_to(
        &self,
        window: &mut Window,
        buffer: BufferId,
        start: u64,
        counts: impl Fn(N) -> bool,
    ) {
        let Some(page) = self.pages.get(&(buffer, start / PAGE)) else {
            return;
        };
        let marks = page[(start % PAGE) as usize..].chunks(WORD);
        for (word, marks) in window.0.iter_mut().zip(marks) {
            // Neighbours are mostly alike.
            let others = marks.iter().filter(|mark| **mark != marks[0]).count();
            if others == 0 {
                let is_counted = marks[0] != N::default() && counts(marks[0]);
                *word |= u64::from(is_counted).wrapping_neg();
            } else {
                for (bit, mark) in marks.iter().enumerate() {
                    let is_counted = *mark != N::default() && counts(*mark);
                    *word |= u64::from(is_counted) << bit;
                }
            }
        }
    }

    pub(crate) fn set(&mut self, buffer: BufferId, bytes: Range<u64>, number: N) {
        let mut at = bytes.start;
        while at < bytes.end {
            let (page, end) = (at / PAGE, bytes.end.min((at / PAGE + 1) * PAGE));
            let counts = &mut self.counts;
            let marks = self.pages.entry((buffer, page)).or_insert_with(|| {
                *counts.entry(buffer).or_default() += 1;
                Box::new([N::default(); PAGE as usize])
            });
            marks[(at - page * PAGE) as usize..(end - page * PAGE) as usize].fill(number);
            at = end;
        }
    }

    pub(crate) fn clear(&mut self, buffer: BufferId, bytes: Range<u64>) {
        let mut at = bytes.start;
        while at < bytes.end {
            let (page, end) = (at / PAGE, bytes.end.min((at / PAGE + 1) * PAGE));
            let is_whole = end - at == PAGE;
            if is_whole {
                if self.pages.remove(&(buffer, page)).is_some()
                    && let Some(count) = self.counts.get_mut(&buffer)
                {
                    *count -= 1;
                    if *count == 0 {
                        self.counts.remove(&buffer);
                    }
                }
            } else if let Some(marks) = self.pages.get_mut(&(buffer, page)) {
                marks[(at - page * PAGE) as usize..(end - page * PAGE) as usize].fill(N::default());
            }
            at = end;
        }
    }

    /// The numbers of some bytes.
    pub(crate) fn all(&self, buffer: BufferId, bytes: Range<u64>) -> Vec<N> {
        let mut found = Vec::new();
        let mut pages: Vec<_> = self
            .pages
            .iter()
            .filter(|((b, _), _)| *b == buffer)
            .collect();
        pages.sort_by_key(|((_, page), _)| *page);
        for ((_, page), marks) in pages {
            for (mark, byte) in marks.iter().zip(page * PAGE..) {
                if *mark != N::default() && bytes.contains(&byte) && found.last() != Some(mark) {
                    found.push(*mark);
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The first of some marks that is one.
fn first_mark<N: Copy + Default + Ord + BitOr<Output = N>>(marks: &[N]) -> Option<usize> {
    // Most bytes have none: many are compared at once.
    const MANY: usize = 32;
    let none = N::default();
    let without = |marks: &&[N]| marks.iter().fold(none, |all, mark| all | *mark) == none;
    let skipped = MANY * marks.chunks(MANY).take_while(without).count();
    let rest = marks.get(skipped..)?;
    Some(skipped + rest.iter().position(|mark| *mark != none)?)
}
