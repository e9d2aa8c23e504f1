//! Which bytes of a buffer have been written. Most buffers are written in a few pieces, which are kept as ranges; of the others whole pages are
//! ranges, however long, and each byte of the rest has a bit.

use crate::window::{WINDOW, WORD, Window, words};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Bytes of a page.
const PAGE: u64 = 4096;
const WORDS: usize = PAGE as usize / WORD;

/// Ranges, at most, that are looked at one after the other.
const FEW: usize = 8;

/// A set of bytes.
#[derive(Debug)]
pub(crate) enum Written {
    /// Ranges in order, no two of which touch.
    Few(SmallVec<[(u64, u64); 1]>),
    Many(Box<Pages>),
}

impl Default for Written {
    fn default() -> Written {
        Written::Few(SmallVec::new())
    }
}

impl Written {
    /// Adds the bytes from `low` to before `high`.
    pub(crate) fn insert(&mut self, low: u64, high: u64) {
        match self {
            Written::Few(ranges) => {
                join(ranges, low, high);
                if ranges.len() > FEW {
                    let mut pages = Box::<Pages>::default();
                    for (low, high) in ranges.drain(..) {
                        pages.insert(low, high);
                    }
                    *self = Written::Many(pages);
                }
            }
            Written::Many(pages) => pages.insert(low, high),
        }
    }

    /// Adds the bytes of some runs.
    pub(crate) fn extend(&mut self, runs: impl IntoIterator<Item = (u64, u64)>) {
        let mut runs = runs.into_iter();
        while let Written::Few(_) = self
            && let Some((low, high)) = runs.next()
        {
            self.insert(low, high);
        }
        if let Written::Many(pages) = self {
            pages.extend(runs);
        }
    }

    /// The first byte from `low` to before `high` that is not in the set.
    pub(crate) fn first_missing(&self, low: u64, high: u64) -> Option<u64> {
        match self {
            Written::Few(ranges) => {
                let around = ranges.iter().find(|range| range.0 <= low && low < range.1);
                let first = around.map_or(low, |range| range.1);
                (first < high).then_some(first)
            }
            Written::Many(pages) => pages.first(low, high, false),
        }
    }

    /// One past the last byte of the gap that starts at `low`, at most `high`.
    pub(crate) fn gap_end(&self, low: u64, high: u64) -> u64 {
        match self {
            Written::Few(ranges) => {
                let next = ranges.iter().find(|range| range.1 > low);
                next.map_or(high, |range| range.0.clamp(low, high))
            }
            Written::Many(pages) => pages.first(low, high, true).unwrap_or(high),
        }
    }

    /// Adds those bytes of a window from `start` on that are not in the set.
    pub(crate) fn add_missing_to(&self, window: &mut Window, start: u64) {
        let end = start.saturating_add(WINDOW);
        match self {
            Written::Few(ranges) => {
                let mut at = start;
                for (low, high) in ranges.iter().filter(|range| range.1 > start) {
                    let low = low.clamp(&at, &end);
                    window.add(at - start..low - start);
                    at = (*high).clamp(at, end);
                }
                window.add(at - start..end - start);
            }
            Written::Many(pages) => {
                let page = start / PAGE;
                if let Some(bits) = pages.partial.get(&page) {
                    let first = (start % PAGE) as usize / WORD;
                    let bits = bits[first..].iter();
                    window.0.iter_mut().zip(bits).for_each(|(w, b)| *w |= !b);
                } else if pages.full_until(page).is_none() {
                    window.add(0..WINDOW);
                }
            }
        }
    }
}

/// Adds a range to others that are in order and do not touch.
fn join(ranges: &mut SmallVec<[(u64, u64); 1]>, mut low: u64, mut high: u64) {
    if low >= high {
        return;
    }
    let first = ranges.partition_point(|range| range.1 < low);
    let mut end = first;
    while let Some(range) = ranges.get(end).filter(|range| range.0 <= high) {
        (low, high) = (low.min(range.0), high.max(range.1));
        end += 1;
    }
    ranges.drain(first..end);
    ranges.insert(first, (low, high));
}

/// A set of bytes in many pieces.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    /// Ranges of pages all of whose bytes are in the set: first page, and one past the last. No two touch.
    full: BTreeMap<u64, u64>,
    /// Pages of which some bytes are.
    partial: FxHashMap<u64, Box<[u64; WORDS]>>,
}

impl Pages {
    /// Adds the bytes of some runs.
    fn extend(&mut self, mut runs: impl Iterator<Item = (u64, u64)>) {
        let mut next = runs.next();
        while let Some((low, high)) = next {
            let page = low / PAGE;
            // Mostly runs that follow each other are a few bytes each of one page.
            if is_part_of(page, (low, high))
                && let Some(bits) = self.partial.get_mut(&page)
            {
                let mut is_full = false;
                while let Some((low, high)) = next
                    && is_part_of(page, (low, high))
                {
                    let first = (low % PAGE) as usize;
                    is_full |= mark(bits, first, first + (high - low) as usize);
                    next = runs.next();
                }
                if is_full {
                    self.fill(page, page + 1);
                }
                continue;
            }
            self.insert(low, high);
            next = runs.next();
        }
    }

    /// Adds the bytes from `low` to before `high`.
    fn insert(&mut self, low: u64, high: u64) {
        let mut at = low;
        while at < high {
            let page = at / PAGE;
            let end = high.min((page + 1).saturating_mul(PAGE));
            // Most ranges are a few bytes of a page of which others have been written.
            let (first, last) = ((at % PAGE) as usize, (at % PAGE + (end - at)) as usize);
            if end - at < PAGE
                && let Some(bits) = self.partial.get_mut(&page)
            {
                if mark(bits, first, last) {
                    self.fill(page, page + 1);
                }
                at = end;
                continue;
            }
            let whole = if at.is_multiple_of(PAGE) {
                high / PAGE
            } else {
                0
            };
            if whole > page {
                self.fill(page, whole);
                at = whole * PAGE;
                continue;
            }
            if let Some(end) = self.full_until(page) {
                at = end.saturating_mul(PAGE);
                continue;
            }
            let mut bits = Box::new([0; WORDS]);
            mark(&mut bits, first, last);
            self.partial.insert(page, bits);
            at = end;
        }
    }

    /// The first byte of a range that is in the set, or that is not.
    fn first(&self, low: u64, high: u64, inside: bool) -> Option<u64> {
        let mut at = low;
        while at < high {
            let page = at / PAGE;
            let end = high.min((page + 1).saturating_mul(PAGE));
            if let Some(bits) = self.partial.get(&page) {
                let wanted = |word: u64| if inside { word } else { !word };
                let (first, last) = (at % PAGE, at % PAGE + (end - at));
                let found = words(first as usize, last as usize).find_map(|(word, mask)| {
                    let found = wanted(bits[word]) & mask;
                    (found != 0).then(|| (word * WORD) as u64 + u64::from(found.trailing_zeros()))
                });
                if let Some(found) = found {
                    return Some(page * PAGE + found);
                }
                at = end;
            } else if let Some(end) = self.full_until(page) {
                if inside {
                    return Some(at);
                }
                at = end.saturating_mul(PAGE);
            } else if inside {
                // Few pages are looked at one by one, many are skipped at once.
                let is_far = (high / PAGE - page) as usize > self.partial.len();
                at = if is_far {
                    self.next_page(page).saturating_mul(PAGE)
                } else {
                    end
                };
            } else {
                return Some(at);
            }
        }
        None
    }

    /// One past the last page of the range of full pages that holds this one.
    fn full_until(&self, page: u64) -> Option<u64> {
        self.full
            .range(..=page)
            .next_back()
            .map(|(_, end)| *end)
            .filter(|end| *end > page)
    }

    /// The next page of which bytes are in the set.
    fn next_page(&self, page: u64) -> u64 {
        let full = self.full.range(page + 1..).next().map(|(first, _)| *first);
        self.partial
            .keys()
            .copied()
            .filter(|other| *other > page)
            .chain(full)
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Makes pages full.
    fn fill(&mut self, first: u64, end: u64) {
        if !self.partial.is_empty() {
            if end - first > self.partial.len() as u64 {
                self.partial.retain(|page, _| !(first..end).contains(page));
            } else {
                (first..end).for_each(|page| drop(self.partial.remove(&page)));
            }
        }
        let (mut low, mut high) = (first, end);
        while let Some((other, other_end)) = self
            .full
            .range(..=high)
            .next_back()
            .map(|(a, b)| (*a, *b))
            .filter(|(_, end)| *end >= low)
        {
            (low, high) = (low.min(other), high.max(other_end));
            self.full.remove(&other);
        }
        self.full.insert(low, high);
    }
}

/// Whether a run has bytes, and they are some of those of a page.
fn is_part_of(page: u64, (low, high): (u64, u64)) -> bool {
    low < high && low / PAGE == page && (high - 1) / PAGE == page && high - low < PAGE
}

/// Adds bytes of a page; whether all of them are in the set now.
fn mark(bits: &mut [u64; WORDS], first: usize, last: usize) -> bool {
    let mut is_full = true;
    for (word, mask) in words(first, last) {
        bits[word] |= mask;
        is_full &= bits[word] == u64::MAX;
    }
    is_full && bits.iter().all(|word| *word == u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_memory_of_any_size_costs_nothing() {
        let mut written = Written::default();
        written.insert(1, u64::MAX);
        assert_eq!(
            (
                written.first_missing(0, u64::MAX),
                written.gap_end(0, u64::MAX)
            ),
            (Some(0), 1)
        );
        assert_eq!(written.first_missing(1, u64::MAX), None);
        let mut written = Written::default();
        written.insert(1 << 60, (1 << 60) + 3);
        assert_eq!(
            (
                written.first_missing(0, u64::MAX),
                written.gap_end(0, u64::MAX)
            ),
            (Some(0), 1 << 60)
        );
    }

    proptest! {
        #[test]
        fn agrees_with_a_flag_for_each_byte(writes in prop::collection::vec((0u64..12_000, prop_oneof![1u64..100, 1u64..5000]), 0..24), read in (0u64..12_000, 1u64..6000)) {
            let mut written = Written::default();
            let mut flags = vec![false; 20_000];
            let runs: Vec<(u64, u64)> = writes.iter().map(|(start, size)| (*start, start + size)).collect();
            let mut together = Written::default();
            together.extend(runs);
            for (start, size) in writes {
                written.insert(start, start + size);
                flags[start as usize..(start + size) as usize].fill(true);
            }
            let (low, high) = (read.0, read.0 + read.1);
            let missing = (low..high).find(|byte| !flags[*byte as usize]);
            prop_assert_eq!(written.first_missing(low, high), missing);
            prop_assert_eq!(together.first_missing(low, high), missing);
            if let Some(missing) = missing {
                let end = (missing..high).find(|byte| flags[*byte as usize]).unwrap_or(high);
                prop_assert_eq!(written.gap_end(missing, high), end);
            }
        }
    }
}
