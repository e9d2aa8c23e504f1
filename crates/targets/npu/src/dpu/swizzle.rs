//! CMX swizzling: 32-byte units rotate inside 1 KiB rows, by an amount that depends on the row, so that tensors with a
//! power-of-two pitch spread over the memory's cuts.

use std::ops::Range;

/// Bytes of a row inside which addresses rotate (NPU4; NPU3 has 512).
pub(super) const ROW: u64 = 1024;

/// Bytes by which a key turns a row.
pub(crate) fn turn(key: u32, row: u64) -> u64 {
    ((row & ((1 << key) - 1)) << (10 - key)) % ROW
}

/// How addresses of one buffer are permuted. Key 0 leaves them alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Swizzle {
    key: u32,
}

impl Swizzle {
    /// The swizzle of a key register; `None` for keys that no hardware knows (6 and 7).
    pub(super) fn from_key(key: u32) -> Option<Swizzle> {
        (key <= 5).then_some(Swizzle { key })
    }

    pub(super) fn key(self) -> u32 {
        self.key
    }

    pub(super) fn is_off(self) -> bool {
        self.key == 0
    }

    /// Where the byte of a logical address stands.
    pub(super) fn physical(self, address: u64) -> u64 {
        let rotated = (address + turn(self.key, address / ROW)) % ROW;
        address / ROW * ROW + rotated
    }

    /// The contiguous pieces that hold `size` logical bytes from `address`, in the order of the logical bytes.
    pub(super) fn pieces(self, address: u64, size: u64) -> Pieces {
        Pieces {
            swizzle: self,
            address,
            left: size,
        }
    }

    /// A range that holds all pieces: whole rows, or the bytes themselves where addresses are left alone.
    pub(super) fn rows(self, address: u64, size: u64) -> Range<u64> {
        let end = address.saturating_add(size);
        if self.is_off() {
            address..end
        } else {
            address / ROW * ROW..end.div_ceil(ROW).saturating_mul(ROW)
        }
    }

    /// `size` logical bytes from `address`: borrowed where they stand together, else gathered into `scratch`.
    /// `None` where they are not all inside the tile.
    pub(super) fn read<'a>(
        self,
        tile: &'a [u8],
        address: u64,
        size: u64,
        scratch: &'a mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        if self.is_off() {
            return range(tile, address, size).map(|range| &tile[range]);
        }
        scratch.clear();
        for (start, size) in self.pieces(address, size) {
            scratch.extend_from_slice(&tile[range(tile, start, size)?]);
        }
        Some(scratch)
    }

    /// Puts logical bytes from `address`; `None` where they would leave the tile.
    pub(super) fn write(self, tile: &mut [u8], address: u64, mut bytes: &[u8]) -> Option<()> {
        for (start, size) in self.pieces(address, bytes.len() as u64) {
            let (piece, rest) = bytes.split_at(size as usize);
            let range = range(tile, start, size)?;
            tile[range].copy_from_slice(piece);
            bytes = rest;
        }
        Some(())
    }
}

/// Ranges of logical bytes, and where in memory they stand: start and size, in no particular order. Those that follow each other
/// are one; a row that is needed whole is one range, however it is turned, and so are several in succession.
pub(super) struct Ranges {
    swizzle: Swizzle,
    /// What comes next, if it is not empty.
    logical: Range<u64>,
    found: Vec<(u64, u64)>,
}

impl Ranges {
    pub(super) fn new(swizzle: Swizzle) -> Ranges {
        Ranges {
            swizzle,
            logical: 0..0,
            found: Vec::new(),
        }
    }

    /// Adds `size` logical bytes from `address`.
    pub(super) fn add(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size);
        if address == self.logical.end {
            self.logical.end = end;
            return;
        }
        self.turn();
        self.logical = address..end;
    }

    /// Where they stand in memory.
    pub(super) fn finish(mut self) -> Vec<(u64, u64)> {
        self.turn();
        self.found
    }

    fn turn(&mut self) {
        let (address, end) = (self.logical.start, self.logical.end);
        let (size, ranges) = (end - address, &mut self.found);
        if size == 0 {
            return;
        }
        if self.swizzle.is_off() {
            ranges.push((address, size));
            return;
        }
        let start = self.swizzle.physical(address);
        // Many are a few bytes of one row, in one piece.
        if address % ROW + size <= ROW && start % ROW + size <= ROW {
            ranges.push((start, size));
            return;
        }
        let (first, last) = (address.div_ceil(ROW) * ROW, end / ROW * ROW);
        if first >= last {
            ranges.extend(self.swizzle.pieces(address, size));
        } else {
            ranges.extend(self.swizzle.pieces(address, first - address));
            ranges.push((first, last - first));
            ranges.extend(self.swizzle.pieces(last, end - last));
        }
    }
}

/// The range of `size` bytes from `start`, where it lies inside the tile.
fn range(tile: &[u8], start: u64, size: u64) -> Option<Range<usize>> {
    let end = start.checked_add(size)?;
    (end <= tile.len() as u64).then_some(start as usize..end as usize)
}

/// Iterator over start and size of contiguous pieces.
#[derive(Clone, Debug)]
pub(super) struct Pieces {
    swizzle: Swizzle,
    address: u64,
    left: u64,
}

impl Iterator for Pieces {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        if self.left == 0 {
            return None;
        }
        let start = self.swizzle.physical(self.address);
        let size = if self.swizzle.is_off() {
            self.left
        } else {
            // Up to the end of the logical row, and up to the point where the rotated row wraps.
            self.left
                .min(ROW - self.address % ROW)
                .min(ROW - start % ROW)
        };
        self.address += size;
        self.left -= size;
        Some((start, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn production_key_moves_row_by_row() {
        let swizzle = Swizzle::from_key(5).expect("key 5 exists");
        assert_eq!(swizzle.physical(0x18000), 0x18000, "rows 0 of 32 KiB stay");
        assert_eq!(swizzle.physical(0x18400), 0x18420, "one unit on in row 1");
        assert_eq!(
            swizzle.physical(0x187ff),
            0x1841f,
            "the last unit of row 1 wraps to its start"
        );
        assert!(Swizzle::from_key(6).is_none());
    }

    proptest! {
        #[test]
        fn pieces_hold_each_byte_where_it_belongs(key in 0u32..=5, address in 0u64..70_000, size in 0u64..5_000) {
            let swizzle = Swizzle::from_key(key).expect("key exists");
            let want: Vec<u64> = (address..address + size).map(|a| {
                // The rule as a rotation of units, independent of the one above.
                let (row, column) = (a / 1024, a % 1024);
                let units = (row % 32) % (1 << key) * (32 >> key);
                row * 1024 + (column + units * 32) % 1024
            }).collect();
            let got: Vec<u64> = swizzle.pieces(address, size).flat_map(|(start, size)| start..start + size).collect();
            prop_assert_eq!(&got, &want);
            let sorted = |mut bytes: Vec<u64>| { bytes.sort_unstable(); bytes };
            // The same bytes in three parts.
            let mut ranges = Ranges::new(swizzle);
            let cuts = [0, size / 3, size / 2, size];
            for part in cuts.windows(2) {
                ranges.add(address + part[0], part[1] - part[0]);
            }
            let ranges = ranges.finish();
            prop_assert!(ranges.len() <= 5, "{ranges:?}");
            // Backwards, and with a part that stands elsewhere.
            let mut parts = Ranges::new(swizzle);
            for part in cuts.windows(2).rev() {
                parts.add(address + part[0], part[1] - part[0]);
                parts.add(100_000, 7);
            }
            let elsewhere = |byte: &u64| *byte < 80_000;
            let mut bytes: Vec<u64> = parts.finish().into_iter().flat_map(|(start, size)| start..start + size).filter(elsewhere).collect();
            bytes.sort_unstable();
            prop_assert_eq!(&bytes, &sorted(want.clone()));
            prop_assert_eq!(sorted(ranges.into_iter().flat_map(|(start, size)| start..start + size).collect()), sorted(want));
        }

        #[test]
        fn what_is_written_is_read(key in 0u32..=5, address in 0u64..7_000, bytes in prop::collection::vec(any::<u8>(), 0..3_000)) {
            let swizzle = Swizzle::from_key(key).expect("key exists");
            let mut tile = vec![0; 10_240];
            swizzle.write(&mut tile, address, &bytes).expect("inside");
            prop_assert!(tile.iter().filter(|b| **b != 0).count() <= bytes.len());
            let mut scratch = Vec::new();
            prop_assert_eq!(swizzle.read(&tile, address, bytes.len() as u64, &mut scratch), Some(&bytes[..]));
            prop_assert_eq!(swizzle.read(&tile, 10_000, 241, &mut scratch), None);
        }
    }
}
