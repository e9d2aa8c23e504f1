//! Swizzled addresses: units of 32 bytes rotate inside rows of 1 KiB, by an amount that depends on the row, so that tensors whose pitch is a
//! power of two spread over the banks of a memory (CMX of the NPU4).

use crate::access::Pattern;
use std::ops::Range;

/// Bytes of a row inside which addresses rotate (NPU4), as a power of two.
const ROW_LOG2: u32 = 10;
/// The same on NPU3, where units have 16 bytes.
const NARROW_ROW_LOG2: u32 = 9;

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
    pub const ROW: u64 = 1 << ROW_LOG2;

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
    #[inline]
    pub fn row(self) -> u64 {
        1 << self.row_log2()
    }

    /// The same as a power of two. Addresses are taken apart by shifts and masks: rows of two sizes would be divisions, of which every access
    /// takes a few.
    #[inline]
    fn row_log2(self) -> u32 {
        if self.is_narrow {
            NARROW_ROW_LOG2
        } else {
            ROW_LOG2
        }
    }

    /// Bytes from the start of its row to an address.
    #[inline]
    fn column(self, address: u64) -> u64 {
        address & (self.row() - 1)
    }

    /// As registers have it.
    pub fn key(self) -> u32 {
        self.key.into()
    }

    /// Whether addresses are left alone.
    #[inline]
    pub fn is_off(self) -> bool {
        self.key == 0
    }

    /// Bytes by which a row is turned.
    #[inline]
    pub fn turn(self, row: u64) -> u64 {
        let turn = (row & ((1 << self.key) - 1)) << (self.row_log2() - u32::from(self.key));
        self.column(turn)
    }

    /// Where the byte of a logical address stands.
    #[inline]
    pub fn physical(self, address: u64) -> u64 {
        let column = self.column(address);
        let turned = column + self.turn(address >> self.row_log2());
        address - column + self.column(turned)
    }

    /// The logical address of a byte that stands here.
    #[inline]
    pub fn logical(self, at: u64) -> u64 {
        let column = self.column(at);
        let turned = column + self.row() - self.turn(at >> self.row_log2());
        at - column + self.column(turned)
    }

    /// Bytes from an address on that stand together, the first of them at `start`: up to the end of its row, or up to where its row wraps.
    #[inline]
    fn together(self, address: u64, start: u64) -> u64 {
        self.row() - self.column(address).max(self.column(start))
    }

    /// Where so many bytes from an address on stand, if there are any and they stand together. Where addresses are left alone, they do.
    #[inline]
    pub fn piece(self, address: u64, size: u64) -> Option<u64> {
        let start = self.physical(address);
        let is_one = size > 0 && size <= self.together(address, start);
        (is_one || self.is_off()).then_some(start)
    }

    /// Start and size of the contiguous pieces that hold `size` logical bytes from `address`, in the order of the logical bytes.
    #[inline]
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
        for start in pattern.runs() {
            // Most runs are a few bytes of a row.
            if let Some(at) = self.piece(start, pattern.run) {
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
        if let Some(start) = self.piece(address, size) {
            return range(memory, start, size).map(|range| &memory[range]);
        }
        scratch.clear();
        for (start, size) in self.pieces(address, size) {
            scratch.extend_from_slice(&memory[range(memory, start, size)?]);
        }
        Some(scratch)
    }

    /// Puts logical bytes from `address`; `None` where they would leave the memory.
    #[inline]
    pub fn write(self, memory: &mut [u8], address: u64, bytes: &[u8]) -> Option<()> {
        let Some(start) = self.piece(address, bytes.len() as u64) else {
            return self.write_pieces(memory, address, bytes);
        };
        let range = range(memory, start, bytes.len() as u64)?;
        copy(&mut memory[range], bytes);
        Some(())
    }

    fn write_pieces(self, memory: &mut [u8], address: u64, mut bytes: &[u8]) -> Option<()> {
        for (start, size) in self.pieces(address, bytes.len() as u64) {
            let (piece, rest) = bytes.split_at(size as usize);
            let range = range(memory, start, size)?;
            memory[range].copy_from_slice(piece);
            bytes = rest;
        }
        Some(())
    }
}

/// Copies bytes between slices of the same length. Some channels of a pixel are a few vectors: a call takes longer than to copy them.
#[inline]
fn copy(to: &mut [u8], from: &[u8]) {
    /// Bytes of such channels, at most.
    const FEW: usize = 256;
    let (places, []) = to.as_chunks_mut::<16>() else {
        return to.copy_from_slice(from);
    };
    if from.len() > FEW {
        return to.copy_from_slice(from);
    }
    for (place, vector) in places.iter_mut().zip(from.as_chunks().0) {
        *place = *vector;
    }
}

/// The range of `size` bytes from `start`, where it lies inside the memory.
#[inline]
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

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        if self.left == 0 {
            return None;
        }
        let start = self.swizzle.physical(self.address);
        let size = if self.swizzle.is_off() {
            self.left
        } else {
            self.left.min(self.swizzle.together(self.address, start))
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
