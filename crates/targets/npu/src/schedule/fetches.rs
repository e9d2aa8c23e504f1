//! Which bytes of the image stand in the CMX of a tile: transfers from sections, latest first.

use super::Slice;
use crate::address::{self, Target};
use crate::dma::{Descriptor, Operation};
use crate::image::Image;
use chipless_model::Pattern;
use std::ops::Range;

/// Bytes of CMX that have a list of transfers of their own: descriptors stand apart from the data.
const PART: u64 = 16 << 10;

/// Runs of one transfer that are looked at: fetches of descriptors are one run, rarely a few.
const RUNS: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Fetches {
    /// In the order in which they ran.
    fetches: Vec<Fetch>,
    /// Those that touch each part of each tile, in that order.
    tiles: [Vec<Vec<u32>>; address::TILES as usize],
}

/// A transfer that brings bytes of a section into CMX.
#[derive(Debug)]
struct Fetch {
    section: usize,
    from: Pattern,
    to: Pattern,
}

impl Fetch {
    /// Whether it writes any of these bytes.
    fn touches(&self, bytes: &Range<u64>) -> bool {
        let extent = self.to.extent();
        let is_near = extent.start < i128::from(bytes.end) && i128::from(bytes.start) < extent.end;
        let run = |start: u64| start < bytes.end && bytes.start < start + self.to.run;
        is_near && (self.to.loops.is_empty() || self.to.runs().take(RUNS).any(run))
    }

    /// Where these bytes are from, if it brings all of them in one piece.
    fn origin(&self, bytes: &Range<u64>) -> Option<Slice> {
        let (position, size) = (self.to.position(bytes.start)?, bytes.end - bytes.start);
        let is_piece = |run: u64| position % run + size <= run;
        let offset = self.from.offset_of(position)?;
        (is_piece(self.from.run) && is_piece(self.to.run)).then_some(Slice {
            section: self.section,
            offset,
            size,
        })
    }
}

/// What stands at a place of CMX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// These bytes.
    Known(Slice),
    /// A part of what was asked for was brought by another transfer, or by none.
    Mixed,
    /// Nothing was brought there.
    Nothing,
}

impl Fetches {
    /// Follows a transfer if it brings bytes of a section with contents into CMX.
    pub(super) fn follow(&mut self, image: &Image<'_>, descriptor: &Descriptor) {
        let Operation::Move {
            source,
            from,
            destination,
            to,
            conversion: None,
        } = &descriptor.operation
        else {
            return;
        };
        let Target::Cmx { tiles, offset } = image.resolve(*destination) else {
            return;
        };
        let Target::Section(section, start) = image.resolve(*source) else {
            return;
        };
        let size = image.bytes(section).len() as u64;
        let (Some(from), Some(to)) = (from.shifted(start as i64), to.shifted(offset as i64)) else {
            return;
        };
        if !from.fits(size) || !to.fits(address::CMX_REACH) {
            return;
        }
        self.add(tiles, Fetch { section, from, to });
    }

    /// Adds a transfer to these tiles, a bit for each. It lies inside them.
    fn add(&mut self, tiles: u8, fetch: Fetch) {
        let extent = fetch.to.extent();
        if extent.is_empty() {
            return;
        }
        let parts = extent.start as u64 / PART..(extent.end as u64).div_ceil(PART);
        let number = self.fetches.len() as u32;
        for tile in address::tiles(tiles) {
            let lists = &mut self.tiles[tile as usize];
            if lists.len() < parts.end as usize {
                lists.resize_with(parts.end as usize, Vec::new);
            }
            for list in &mut lists[parts.start as usize..parts.end as usize] {
                list.push(number);
            }
        }
        self.fetches.push(fetch);
    }

    /// What stands at `offset` of a tile's CMX, `size` bytes of it.
    pub(super) fn at(&self, tile: u8, offset: u64, size: u64) -> Content {
        let bytes = offset..offset + size;
        let parts = (bytes.start / PART..bytes.end.div_ceil(PART))
            .filter_map(|part| self.tiles[tile as usize].get(part as usize));
        let touches = |number: &&u32| self.fetches[**number as usize].touches(&bytes);
        let last = parts
            .filter_map(|list| list.iter().rev().find(touches))
            .max();
        match last.map(|number| self.fetches[*number as usize].origin(&bytes)) {
            Some(Some(from)) => Content::Known(from),
            Some(None) => Content::Mixed,
            None => Content::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::Loop;
    use proptest::prelude::*;

    /// As many bytes, and at most as many runs, for both sides of a transfer.
    fn sides() -> impl Strategy<Value = (Pattern, Pattern)> {
        let side = (1u64..5, 0u64..3000).prop_map(|(gap, start)| (gap * 10, start * 20));
        (1u64..5, 1u64..30, side.clone(), side).prop_map(|(count, run, from, to)| {
            let pattern = |(gap, start): (u64, u64)| {
                let stride = (run + gap) as i64;
                Pattern::new(start, run, [Loop { count, stride }])
            };
            (pattern(from), pattern(to))
        })
    }

    proptest! {
        /// Against the origin of every byte.
        #[test]
        fn the_latest_transfer_decides(transfers in prop::collection::vec((sides(), 1u8..4), 0..40), asked in prop::collection::vec((0u64..60_000, 1u64..40), 20)) {
            let mut fetches = Fetches::default();
            let mut naive = vec![None; 70_000];
            for (section, ((from, to), tiles)) in transfers.into_iter().enumerate() {
                if tiles & 2 != 0 {
                    let bytes = |p: &Pattern| p.runs().flat_map(|s| s..s + p.run).collect::<Vec<_>>();
                    for (from, to) in bytes(&from).into_iter().zip(bytes(&to)) {
                        naive[to as usize] = Some((section, from));
                    }
                }
                fetches.add(tiles, Fetch { section, from, to });
            }
            // Most bytes are asked for where something is.
            let known = naive.iter().position(Option::is_some).unwrap_or(0) as u64;
            for (number, (offset, size)) in asked.into_iter().enumerate() {
                let offset = if number % 2 == 0 { known + offset % 200 } else { offset };
                let bytes = &naive[offset as usize..(offset + size) as usize];
                let in_turn = |pair: &[Option<(usize, u64)>]| matches!(pair, [Some((s, a)), Some((t, b))] if s == t && a + 1 == *b);
                match fetches.at(1, offset, size) {
                    Content::Known(from) => {
                        prop_assert_eq!(bytes[0], Some((from.section, from.offset)));
                        prop_assert!(from.size == size && bytes.windows(2).all(in_turn));
                    }
                    Content::Mixed => {
                        prop_assert!(bytes.iter().any(Option::is_some));
                        prop_assert!(bytes[0].is_none() || !bytes.windows(2).all(in_turn));
                    }
                    Content::Nothing => prop_assert!(bytes.iter().all(Option::is_none)),
                }
            }
        }
    }
}
