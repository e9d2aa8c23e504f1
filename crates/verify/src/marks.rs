//! Marks on the bytes of buffers, in pages: few bytes have one.

use chipless_model::BufferId;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Numbers of causes by byte; 0 where there is none.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    pages: FxHashMap<(BufferId, u64), Box<[u16; PAGE as usize]>>,
    /// Pages by buffer.
    counts: FxHashMap<BufferId, usize>,
}

impl Marks {
    pub(crate) fn has(&self, buffer: BufferId) -> bool {
        self.counts.contains_key(&buffer)
    }

    pub(crate) fn at(&self, buffer: BufferId, byte: u64) -> u16 {
        let page = self.pages.get(&(buffer, byte / PAGE));
        page.map_or(0, |page| page[(byte % PAGE) as usize])
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
                    let count = part[first..].iter().take_while(|mark| **mark != 0).count();
                    let low = at + first as u64;
                    return Some(low..low + count as u64);
                }
            }
            at = end;
        }
        None
    }

    pub(crate) fn set(&mut self, buffer: BufferId, bytes: Range<u64>, cause: u16) {
        let mut at = bytes.start;
        while at < bytes.end {
            let (page, end) = (at / PAGE, bytes.end.min((at / PAGE + 1) * PAGE));
            let counts = &mut self.counts;
            let marks = self.pages.entry((buffer, page)).or_insert_with(|| {
                *counts.entry(buffer).or_default() += 1;
                Box::new([0; PAGE as usize])
            });
            marks[(at - page * PAGE) as usize..(end - page * PAGE) as usize].fill(cause);
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
                marks[(at - page * PAGE) as usize..(end - page * PAGE) as usize].fill(0);
            }
            at = end;
        }
    }

    /// The causes of some bytes.
    pub(crate) fn all(&self, buffer: BufferId, bytes: Range<u64>) -> Vec<u16> {
        let mut found = Vec::new();
        let mut pages: Vec<_> = self
            .pages
            .iter()
            .filter(|((b, _), _)| *b == buffer)
            .collect();
        pages.sort_by_key(|((_, page), _)| *page);
        for ((_, page), marks) in pages {
            for (mark, byte) in marks.iter().zip(page * PAGE..) {
                if *mark != 0 && bytes.contains(&byte) && found.last() != Some(mark) {
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
fn first_mark(marks: &[u16]) -> Option<usize> {
    // Most bytes have none: many are compared at once.
    const MANY: usize = 32;
    let without = |marks: &&[u16]| marks.iter().fold(0, |all, mark| all | mark) == 0;
    let skipped = MANY * marks.chunks(MANY).take_while(without).count();
    let rest = marks.get(skipped..)?;
    Some(skipped + rest.iter().position(|mark| *mark != 0)?)
}
