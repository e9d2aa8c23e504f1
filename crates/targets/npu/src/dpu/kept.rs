//! Weights that have been prepared for the multipliers, kept for the next workload that has the same.
//!
//! The workloads of a layer multiply parts of one image by the same weights, on several tiles that each have a copy. To unpack and order
//! weights costs as much as to multiply by them where an image is small; to see that they are the same bytes costs next to nothing.

use super::formats::Element;
use super::weights::{Entry, Weights, count_bits};
use chipless_kernels::matrix::Panels;
use chipless_kernels::room::Room;
use chipless_kernels::window::by_tap;
use chipless_model::{ElementType, Fault};
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes that a thread keeps, at most. The weights of a layer for all tiles, mostly: those of a layer that is done are of no use, and
/// memory that was used before is cheaper than new one.
const MOST: usize = 2 << 20;

/// Weights that are kept.
pub(super) struct Kept<T: Element> {
    like: Like,
    /// By channel, how many weights are stored.
    counts: Vec<usize>,
    /// All maps, then all weights, as they stand in the tile.
    bytes: Room<u8>,
    prepared: Prepared<T>,
}

/// In the order of use.
enum Prepared<T: Element> {
    /// Of a convolution over all channels.
    Panels(Panels<T>),
    /// Of one of each channel by itself, `[j][i][c]`.
    Taps(Vec<T>),
}

/// What the numbers of weights depend on beside their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Like {
    format: ElementType,
    zero_point: i16,
    palette: Option<[u16; 16]>,
    dense: bool,
    channels: usize,
    each: usize,
    is_depthwise: bool,
}

/// What a thread keeps, what was used last at the end.
pub(super) type Shelf<T> = RefCell<Vec<Rc<Kept<T>>>>;

/// Numbers whose prepared weights each thread keeps.
pub(super) trait Shelved: Element {
    /// Lends what this thread keeps.
    fn with_shelf<R>(act: impl FnOnce(&Shelf<Self>) -> R) -> R;
}

macro_rules! shelved {
    ($number:ident) => {
        impl Shelved for $number {
            fn with_shelf<R>(act: impl FnOnce(&Shelf<$number>) -> R) -> R {
                thread_local! {
                    static SHELF: Shelf<$number> = Shelf::default();
                }
                SHELF.with(act)
            }
        }
    };
}

shelved!(f32);
shelved!(i16);

impl<T: Element> Kept<T> {
    /// Of a convolution over all channels.
    ///
    /// # Errors
    /// They were prepared for a depthwise one.
    pub(super) fn panels(&self) -> Result<&Panels<T>, Fault> {
        match &self.prepared {
            Prepared::Panels(panels) => Ok(panels),
            Prepared::Taps(_) => Err(Fault::unsupported(
                "weights of a depthwise convolution over all channels",
            )),
        }
    }

    /// Of a depthwise convolution, `[j][i][c]`.
    ///
    /// # Errors
    /// They were prepared for one over all channels.
    pub(super) fn taps(&self) -> Result<&[T], Fault> {
        match &self.prepared {
            Prepared::Taps(taps) => Ok(taps),
            Prepared::Panels(_) => Err(Fault::unsupported(
                "weights of a convolution over all channels in a depthwise one",
            )),
        }
    }

    fn size(&self) -> usize {
        let prepared = match &self.prepared {
            Prepared::Panels(panels) => panels.bytes(),
            Prepared::Taps(taps) => size_of_val(&**taps),
        };
        prepared + self.bytes.len()
    }
}

impl Weights {
    /// The weights of these channels, `each` for every channel, which are kept unless they are many.
    pub(super) fn prepare<T: Shelved>(
        &self,
        tile: &[u8],
        entries: &[Entry],
        each: usize,
        is_depthwise: bool,
    ) -> Result<Rc<Kept<T>>, Fault> {
        let like = Like {
            format: self.format,
            zero_point: self.zero_point,
            palette: self.palette.as_ref().map(|palette| palette.entries),
            dense: self.dense,
            channels: entries.len(),
            each,
            is_depthwise,
        };
        let known = T::with_shelf(|shelf| {
            let mut shelf = shelf.borrow_mut();
            let is_same = |kept: &Rc<Kept<T>>| kept.like == like && self.are(tile, entries, kept);
            let found = shelf.iter().rposition(is_same)?;
            let kept = shelf.remove(found);
            shelf.push(Rc::clone(&kept));
            Some(kept)
        });
        if let Some(known) = known {
            return Ok(known);
        }
        let prepared = if is_depthwise {
            let weights: Room<T> = self.gather(tile, entries, 0, each)?;
            Prepared::Taps(by_tap(&weights, entries.len()))
        } else {
            Prepared::Panels(self.panels(tile, entries, 0, each)?)
        };
        let mut kept = Kept {
            like,
            counts: Vec::new(),
            bytes: Room::take(0),
            prepared,
        };
        let each_at_most = self.stored_bytes(each as u64) as usize + each.div_ceil(8);
        let at_most = entries.len() * each_at_most;
        if kept.size() + at_most > MOST / 2 {
            return Ok(Rc::new(kept));
        }
        let mut bytes = Room::take(at_most);
        bytes.truncate(0);
        let mut keep = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            true
        };
        let mut is_whole = self.maps(tile, entries, each, &mut keep);
        kept.counts = self.counts(&bytes, entries.len(), each);
        is_whole &= self.stored_weights(tile, entries, &kept.counts, &mut |piece| {
            bytes.extend_from_slice(piece);
            true
        });
        kept.bytes = bytes;
        let kept = Rc::new(kept);
        if is_whole {
            T::with_shelf(|shelf| {
                let mut shelf = shelf.borrow_mut();
                shelf.push(Rc::clone(&kept));
                let mut size: usize = shelf.iter().map(|kept| kept.size()).sum();
                while size > MOST {
                    size -= shelf.remove(0).size();
                }
            });
        }
        Ok(kept)
    }

    /// The weights of these channels of a convolution over all channels. Channels are counted from `first` in errors.
    pub(super) fn panels<T: Element>(
        &self,
        tile: &[u8],
        entries: &[Entry],
        first: usize,
        each: usize,
    ) -> Result<Panels<T>, Fault> {
        let channels = entries.len();
        let panels = match T::of_halves(self.format).filter(|_| self.palette.is_none()) {
            Some(decode) => Panels::of_halves(channels, each, decode, |range, rows| {
                let first = first + range.start;
                self.gather_into(tile, &entries[range], first, each, rows)
            }),
            None => Panels::transposed(channels, each, |range, rows| {
                let first = first + range.start;
                self.gather_into(tile, &entries[range], first, each, rows)
            }),
        }?;
        // A compiler that pads channels, or shifts a kernel from one group of channels to the next, tells it in the maps.
        Ok(if self.dense {
            panels
        } else {
            panels.without_zeros()
        })
    }

    /// Whether maps and weights of these channels are the bytes that are kept.
    fn are<T: Element>(&self, tile: &[u8], entries: &[Entry], kept: &Kept<T>) -> bool {
        let mut rest = &kept.bytes[..];
        let mut is_next = |piece: &[u8]| match rest.split_at_checked(piece.len()) {
            Some((own, after)) if own == piece => {
                rest = after;
                true
            }
            _ => false,
        };
        self.maps(tile, entries, kept.like.each, &mut is_next)
            && self.stored_weights(tile, entries, &kept.counts, &mut is_next)
    }

    /// By channel, how many weights are stored, by all maps one after the other.
    fn counts(&self, maps: &[u8], channels: usize, each: usize) -> Vec<usize> {
        if self.dense {
            return vec![each; channels];
        }
        let maps = maps.chunks_exact(each.div_ceil(8).max(1));
        maps.map(|map| count_bits(map, 0, each)).collect()
    }

    /// Tells `visit` the pieces of all maps, until it says no: false then, and where they leave the tile.
    fn maps(
        &self,
        tile: &[u8],
        entries: &[Entry],
        each: usize,
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> bool {
        let size = (each as u64).div_ceil(8);
        let maps = entries.iter().map(|entry| entry.map.map(|map| (map, size)));
        self.dense || self.each_piece(tile, maps, visit)
    }

    /// The same of the weights, of which each channel has so many.
    fn stored_weights(
        &self,
        tile: &[u8],
        entries: &[Entry],
        counts: &[usize],
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> bool {
        let weights = entries.iter().zip(counts);
        let weights =
            weights.map(|(entry, count)| Some((entry.weights, self.stored_bytes(*count as u64))));
        self.each_piece(tile, weights, visit)
    }

    fn each_piece(
        &self,
        tile: &[u8],
        ranges: impl Iterator<Item = Option<(u64, u64)>>,
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> bool {
        // Those of most channels stand side by side.
        let mut ranges = ranges.peekable();
        while let Some(range) = ranges.next() {
            let Some((start, mut size)) = range else {
                return false;
            };
            let is_next = |next: &Option<(u64, u64)>, size| {
                next.is_some_and(|(next, _)| start.checked_add(size) == Some(next))
            };
            while let Some(Some((_, more))) = ranges.next_if(|next| is_next(next, size)) {
                size += more;
            }
            for (at, size) in self.swizzle.pieces(start, size) {
                let piece = tile.get(at as usize..);
                let piece = piece.and_then(|rest| rest.get(..size as usize));
                if !piece.is_some_and(&mut *visit) {
                    return false;
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::Swizzle;

    /// Three channels of 40 weights in bytes, with or without maps, in a tile of rows that are turned.
    #[test]
    fn weights_are_prepared_again_when_any_byte_has_changed() {
        const EACH: usize = 40;
        for dense in [true, false] {
            let weights = Weights {
                table: 0,
                offset: 0,
                format: ElementType::Int8,
                zero_point: 3,
                dense,
                swizzle: Swizzle::from_key(5).expect("key exists"),
                palette: None,
            };
            let entries: Vec<Entry> = (0..3)
                .map(|channel| Entry {
                    weights: 2000 + channel * 48,
                    map: Some(1010 + channel * 8),
                    scale: 0,
                    bias: 0,
                })
                .collect();
            let mut tile: Vec<u8> = (0..4096).map(|i| (i * 7 % 251) as u8).collect();
            let prepare = |tile: &[u8], is_depthwise| {
                let kept = weights.prepare::<i16>(tile, &entries, EACH, is_depthwise);
                kept.expect("inside the tile")
            };
            let taps = |kept: &Kept<i16>| match &kept.prepared {
                Prepared::Taps(taps) => taps.clone(),
                Prepared::Panels(_) => Vec::new(),
            };
            let first = prepare(&tile, true);
            assert!(Rc::ptr_eq(&first, &prepare(&tile, true)));
            assert!(!Rc::ptr_eq(&first, &prepare(&tile, false)));
            for byte in (1000..1040).chain(1990..2150) {
                tile[byte] ^= 0x55;
                let fresh = weights.gather::<i16>(&tile, &entries, 0, EACH);
                let fresh = by_tap(&fresh.expect("inside the tile"), entries.len());
                assert_eq!(taps(&prepare(&tile, true)), fresh, "byte {byte}");
            }
            let outside = weights.prepare::<i16>(&tile[..2050], &entries, EACH, true);
            assert!(outside.is_err());
        }
    }
}
