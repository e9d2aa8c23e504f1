//! Which bytes of the image stand in the CMX of a tile: transfers from sections, latest first.

use super::Slice;
use crate::address::{self, Target};
use crate::dma::{Descriptor, Operation};
use crate::image::Image;

/// Pieces of one transfer that are worth following: fetches of descriptors are one run, rarely a few.
const RUNS: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Fetches {
    tiles: [Vec<Fetch>; address::TILES as usize],
}

#[derive(Clone, Copy, Debug)]
struct Fetch {
    offset: u64,
    from: Slice,
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
        let Target::Cmx { tiles, offset } = address::resolve(image, *destination) else {
            return;
        };
        let Target::Section(section, start) = address::resolve(image, *source) else {
            return;
        };
        let size = image.bytes(section).len() as u64;
        let (Some(from), Some(to)) = (from.shifted(start as i64), to.shifted(offset as i64)) else {
            return;
        };
        if !from.fits(size) || !to.fits(address::CMX_SIZE) {
            return;
        }
        let (mut sources, mut destinations) = (from.runs(), to.runs());
        let (mut source, mut destination) = ((0, 0), (0, 0));
        for _ in 0..RUNS {
            if source.1 == 0 {
                let Some(at) = sources.next() else { return };
                source = (at, from.run);
            }
            if destination.1 == 0 {
                let Some(at) = destinations.next() else {
                    return;
                };
                destination = (at, to.run);
            }
            let run = source.1.min(destination.1);
            let fetch = Fetch {
                offset: destination.0,
                from: Slice {
                    section,
                    offset: source.0,
                    size: run,
                },
            };
            for tile in address::tiles(tiles) {
                self.tiles[tile as usize].push(fetch);
            }
            source = (source.0 + run, source.1 - run);
            destination = (destination.0 + run, destination.1 - run);
        }
    }

    /// What stands at `offset` of a tile's CMX, `size` bytes of it.
    pub(super) fn at(&self, tile: u8, offset: u64, size: u64) -> Content {
        let end = offset + size;
        for fetch in self.tiles[tile as usize].iter().rev() {
            let fetched = fetch.offset + fetch.from.size;
            if fetch.offset <= offset && end <= fetched {
                return Content::Known(Slice {
                    section: fetch.from.section,
                    offset: fetch.from.offset + (offset - fetch.offset),
                    size,
                });
            }
            if fetch.offset < end && offset < fetched {
                return Content::Mixed;
            }
        }
        Content::Nothing
    }
}
