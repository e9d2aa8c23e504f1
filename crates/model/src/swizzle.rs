//! Swizzled addresses: units of 32 bytes rotate inside rows of 1 KiB, by an amount that depends on the row, so that tensors whose pitch is a
//! power of two spread over the banks of a memory (CMX of the NPU4).

use crate::access::Pattern;
use std::ops::Range;

/// Bytes of a row inside which addresses rotate (NPU4).
const ROW: u64 = 1024;
/// The same on NPU3, where units have 16 bytes.
const NARROW_ROW: u64 = 512;

/// How the addresses of a tensor are permuted. Key 0 leaves them alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Swizzle {
    key: u8,
    is_narrow: bool,
}

impl Swizzle {
    /// Addresses are left alone.
    pub const OFF: Swizzle = Swizzle {
        key: 0,
        is_narrow: false,
    };

    /// Bytes of the longest row inside which addresses rotate.
    pub const ROW: u64 = ROW;

    /// The swizzle of a key register; `None` for keys that no hardware knows (6 and 7).
    pub fn from_key(key: u32) -> Option<Swizzle> {
        (key <= 5).then_some(Swizzle {
            key: key as u8,
            is_narrow: false,
        })
    }

    /// The same key where rows have 512 bytes (NPU3).
    #[must_use]
    pub fn narrow(self) -> Swizzle {
        Swizzle {
            is_narrow: !self.is_off(),
            ..self
        }
    }

    /// Bytes of a row inside which its addresses rotate.
    pub fn row(self) -> u64 {
        if self.is_narrow { NARROW_ROW } else { ROW }
    }

    /// As registers have it.
    pub fn key(self) -> u32 {
        self.key.into()
    }

    /// Whether addresses are left alone.
    pub fn is_off(self) -> bool {
        self.key == 0
    }

    /// Bytes by which a row is turned.
    pub fn turn(self, row: u64) -> u64 {
        let size = self.row();
        ((row & ((1 << self.key) - 1)) << (size.ilog2() - u32::from(self.key))) % size
    }

    /// Where the byte of a logical address stands.
    pub fn physical(self, address: u64) -> u64 {
        let size = self.row();
        let row = address / size;
        row * size + (address % size + self.turn(row)) % size
    }

    /// The logical address of a byte that stands here.
    pub fn logical(self, at: u64) -> u64 {
        let size = self.row();
        let row = at / size;
        row * size + (at % size + size - self.turn(row)) % size
    }

    /// Start and size of the contiguous pieces that hold `size` logical bytes from `address`, in the order of the logical bytes.
    pub fn pieces(self, address: u64, size: u64) -> impl Iterator<Item = (u64, u64)> {
        Pieces {
            swizzle: self,
            address,
            left: size,
        }
    }

    /// Start and size of the contiguous pieces that hold the bytes of a pattern of logical addresses, in the order of these. Only for patterns
    /// that [fit](Pattern::fits) their buffer.
    pub fn each_piece(self, pattern: &Pattern, mut visit: impl FnMut(u64, u64)) {
        let row = self.row();
        for start in pattern.runs() {
            let at = self.physical(start);
            // Most runs are a few bytes of a row.
            if self.is_off() || (start % row).max(at % row) + pattern.run <= row {
                visit(at, pattern.run);
            } else {
                let pieces = self.pieces(start, pattern.run);
                pieces.for_each(|(start, size)| visit(start, size));
            }
        }
    }

    /// A range that holds all pieces: whole rows, or the bytes themselves where addresses are left alone.
    pub fn rows(self, address: u64, size: u64) -> Range<u64> {
        let end = address.saturating_add(size);
        if self.is_off() {
            address..end
        } else {
            let row = self.row();
            address / row * row..end.div_ceil(row).saturating_mul(row)
        }
    }

    /// `size` logical bytes from `address`: borrowed where they stand together, else gathered into `scratch`.
    /// `None` where they are not all inside the memory.
    pub fn read<'a>(
        self,
        memory: &'a [u8],
        address: u64,
        size: u64,
        scratch: &'a mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        if self.is_off() {
            return range(memory, address, size).map(|range| &memory[range]);
        }
        scratch.clear();
        for (start, size) in self.pieces(address, size) {
            scratch.extend_from_slice(&memory[range(memory, start, size)?]);
        }
        Some(scratch)
    }

    /// Puts logical bytes from `address`; `None` where they would leave the memory.
    pub fn write(self, memory: &mut [u8], address: u64, mut bytes: &[u8]) -> Option<()> {
        for (start, size) in self.pieces(address, bytes.len() as u64) {
            let (piece, rest) = bytes.split_at(size as usize);
            let range = range(memory, start, size)?;
            memory[range].copy_from_slice(piece);
            bytes = rest;
        }
        Some(())
    }
}

/// The range of `size` bytes from `start`, where it lies inside the memory.
fn range(memory: &[u8], start: u64, size: u64) -> Option<Range<usize>> {
    let end = start.checked_add(size)?;
    (end <= memory.len() as u64).then_some(start as usize..end as usize)
}

/// Iterator over start and size of contiguous pieces.
struct Pieces {
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
                .min(self.swizzle.row() - self.address % self.swizzle.row())
                .min(self.swizzle.row() - start % self.swizzle.row())
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
        let narrow = swizzle.narrow();
        assert_eq!(narrow.physical(0x14000), 0x14000, "rows 0 of 16 KiB stay");
        assert_eq!(narrow.physical(0x14200), 0x14210, "one unit on in row 1");
        assert_eq!(narrow.logical(0x14200), 0x143f0, "its last unit wraps");
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
            prop_assert!(want.iter().zip(address..).all(|(at, logical)| swizzle.logical(*at) == logical));
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
