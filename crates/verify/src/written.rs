//! Which bytes of a buffer have been written: a bit for each byte, in pages that vanish once they are full.

/// Bytes of a page.
const PAGE: u64 = 4096;
const WORDS: usize = (PAGE / 64) as usize;
const EMPTY: u32 = 0;
const FULL: u32 = 1;

/// A set of bytes.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// By page: EMPTY, FULL, or 2 + index into `bits`. Pages beyond the end are empty.
    pages: Vec<u32>,
    bits: Vec<[u64; WORDS]>,
    free: Vec<u32>,
}

impl Written {
    /// Adds the bytes from `low` to before `high`.
    pub(crate) fn insert(&mut self, low: u64, high: u64) {
        let mut at = low;
        while at < high {
            let page = (at / PAGE) as usize;
            let end = high.min((page as u64 + 1) * PAGE);
            if self.pages.len() <= page {
                self.pages.resize(page + 1, EMPTY);
            }
            if end - at == PAGE {
                self.release(page);
                self.pages[page] = FULL;
            } else if self.pages[page] != FULL {
                self.set(page, (at % PAGE) as usize, (at % PAGE + (end - at)) as usize);
            }
            at = end;
        }
    }

    /// The first byte from `low` to before `high` that is not in the set.
    pub(crate) fn first_missing(&self, low: u64, high: u64) -> Option<u64> {
        let mut at = low;
        while at < high {
            let page = at / PAGE;
            let end = high.min((page + 1) * PAGE);
            match self.pages.get(page as usize).copied().unwrap_or(EMPTY) {
                EMPTY => return Some(at),
                FULL => {}
                index => {
                    let bits = &self.bits[index as usize - 2];
                    let (first, last) = (at % PAGE, at % PAGE + (end - at));
                    if let Some(missing) = words(first as usize, last as usize).find_map(|(word, mask)| {
                        let missing = !bits[word] & mask;
                        (missing != 0).then(|| word as u64 * 64 + u64::from(missing.trailing_zeros()))
                    }) {
                        return Some(page * PAGE + missing);
                    }
                }
            }
            at = end;
        }
        None
    }

    /// One past the last byte of the gap that starts at `low`, at most `high`.
    pub(crate) fn gap_end(&self, low: u64, high: u64) -> u64 {
        let mut at = low;
        while at < high {
            let page = at / PAGE;
            let end = high.min((page + 1) * PAGE);
            match self.pages.get(page as usize).copied().unwrap_or(EMPTY) {
                EMPTY => {}
                FULL => return at,
                index => {
                    let bits = &self.bits[index as usize - 2];
                    let (first, last) = (at % PAGE, at % PAGE + (end - at));
                    if let Some(found) = words(first as usize, last as usize).find_map(|(word, mask)| {
                        let found = bits[word] & mask;
                        (found != 0).then(|| word as u64 * 64 + u64::from(found.trailing_zeros()))
                    }) {
                        return page * PAGE + found;
                    }
                }
            }
            at = end;
        }
        high
    }

    fn set(&mut self, page: usize, first: usize, last: usize) {
        if self.pages[page] == EMPTY {
            let index = self.free.pop().unwrap_or_else(|| {
                self.bits.push([0; WORDS]);
                self.bits.len() as u32 + 1
            });
            self.pages[page] = index;
        }
        let bits = &mut self.bits[self.pages[page] as usize - 2];
        for (word, mask) in words(first, last) {
            bits[word] |= mask;
        }
        if words(first, last).all(|(word, _)| bits[word] == u64::MAX) && bits.iter().all(|word| *word == u64::MAX) {
            self.release(page);
            self.pages[page] = FULL;
        }
    }

    fn release(&mut self, page: usize) {
        let index = self.pages[page];
        if index > FULL {
            self.bits[index as usize - 2] = [0; WORDS];
            self.free.push(index);
        }
    }
}

/// Words of a page and their bits from `first` to before `last`.
fn words(first: usize, last: usize) -> impl Iterator<Item = (usize, u64)> {
    (first / 64..last.div_ceil(64)).map(move |word| {
        let low = first.saturating_sub(word * 64);
        let high = (last - word * 64).min(64);
        (word, (u64::MAX >> (64 - (high - low))) << low)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_flag_for_each_byte(writes in prop::collection::vec((0u64..12_000, 1u64..5000), 0..12), read in (0u64..12_000, 1u64..6000)) {
            let mut written = Written::default();
            let mut flags = vec![false; 20_000];
            for (start, size) in writes {
                written.insert(start, start + size);
                flags[start as usize..(start + size) as usize].fill(true);
            }
            let (low, high) = (read.0, read.0 + read.1);
            let missing = (low..high).find(|byte| !flags[*byte as usize]);
            prop_assert_eq!(written.first_missing(low, high), missing);
            if let Some(missing) = missing {
                let end = (missing..high).find(|byte| flags[*byte as usize]).unwrap_or(high);
                prop_assert_eq!(written.gap_end(missing, high), end);
            }
        }
    }
}
