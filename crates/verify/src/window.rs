//! A bit for each of the bytes that are looked at together.

use chipless_model::{Series, SeriesBuilder};
use std::ops::Range;

/// Bytes of a window.
pub(crate) const WINDOW: u64 = 1024;

/// Bits of a word.
pub(crate) const WORD: usize = 64;

/// Some bytes of a window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window(pub(crate) [u64; WINDOW as usize / WORD]);

impl Window {
    /// Adds bytes, counted from the start of the window.
    pub(crate) fn add(&mut self, bytes: Range<u64>) {
        if bytes.is_empty() {
            return;
        }
        for (word, mask) in words(bytes.start as usize, bytes.end as usize) {
            self.0[word] |= mask;
        }
    }

    /// The first run of its bytes among some, counted from the start of the window.
    pub(crate) fn first(&self, bytes: Range<u64>) -> Option<Range<u64>> {
        let (low, high) = (bytes.start as usize, bytes.end as usize);
        let first = self.next(low, high, 0)?;
        let end = self.next(first, high, u64::MAX).unwrap_or(high);
        Some(first as u64..end as u64)
    }

    /// Adds the runs of its bytes among some, counted from the start of the window, which stands at `start`.
    pub(crate) fn add_to(
        &self,
        bytes: Range<u64>,
        start: u64,
        runs: &mut SeriesBuilder,
        visit: &mut dyn FnMut(Series),
    ) {
        let (mut before, mut count) = (0, 0);
        for (word, mask) in words(bytes.start as usize, bytes.end as usize) {
            let mut bits = self.0[word] & mask;
            // What pads pixels looks the same in every word.
            if bits == before && runs.repeat(count, WORD as u64) {
                continue;
            }
            (before, count) = (bits, 0);
            while bits != 0 {
                let (first, size) = first_run(bits);
                let at = start + (word * WORD) as u64 + u64::from(first);
                runs.add(at..at + u64::from(size), &mut *visit);
                count += 1;
                bits &= (u64::MAX << first).checked_shl(size).unwrap_or(0);
            }
        }
    }

    /// The first bit from one to before another that is set, or where the words are flipped, that is not.
    fn next(&self, low: usize, high: usize, flip: u64) -> Option<usize> {
        let mut skipped = u64::MAX << (low % WORD);
        for word in low / WORD..high.div_ceil(WORD) {
            let found = (self.0[word] ^ flip) & skipped;
            if found != 0 {
                let bit = word * WORD + found.trailing_zeros() as usize;
                return (bit < high).then_some(bit);
            }
            skipped = u64::MAX;
        }
        None
    }
}

/// The first run of bits that are set, of a word that has any: where it starts, and how many they are.
fn first_run(bits: u64) -> (u32, u32) {
    let first = bits.trailing_zeros();
    (first, (bits >> first).trailing_ones())
}

/// Words and their bits from one bit to before another, a later one.
pub(crate) fn words(first: usize, last: usize) -> impl Iterator<Item = (usize, u64)> {
    (first / WORD..last.div_ceil(WORD)).map(move |word| {
        let low = first.saturating_sub(word * WORD);
        let high = (last - word * WORD).min(WORD);
        (word, (u64::MAX >> (WORD - (high - low))) << low)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_flag_for_each_byte(runs in prop::collection::vec((0u64..1024, 1u64..200), 0..8), rows in (0u64..64, 1u64..20, 1u64..8), asked in (0u64..1024, 1u64..1024)) {
            let (mut window, mut flags) = (Window::default(), [false; WINDOW as usize]);
            let rows = (0..16).map(|row| (rows.0 + 64 / rows.2 * row, rows.1));
            for (start, size) in runs.into_iter().chain(rows) {
                let end = (start + size).min(WINDOW);
                window.add(start..end);
                flags[start as usize..end as usize].fill(true);
            }
            let (low, high) = (asked.0, (asked.0 + asked.1).min(WINDOW));
            let first = (low..high).find(|byte| flags[*byte as usize]);
            let found = first.map(|first| first..(first..high).find(|byte| !flags[*byte as usize]).unwrap_or(high));
            prop_assert_eq!(window.first(low..high), found);
            let mut each = Vec::new();
            let mut runs = SeriesBuilder::default();
            window.add_to(low..high, 0, &mut runs, &mut |series| each.extend(series.runs().flatten()));
            each.extend(runs.take().into_iter().flat_map(Series::runs).flatten());
            let want: Vec<u64> = (low..high).filter(|byte| flags[*byte as usize]).collect();
            prop_assert_eq!(each, want);
        }
    }
}
