//! Little-endian fields of fixed-size records.

/// A record of the hardware or the loader, whose size has been checked where it was cut out of its section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a>(pub(crate) &'a [u8]);

impl Record<'_> {
    fn array<const N: usize>(self, offset: usize) -> [u8; N] {
        let mut bytes = [0; N];
        // Records are cut to their full size, so the slice is there; a shorter one reads as zero rather than panicking.
        if let Some(field) = self.0.get(offset..offset + N) {
            bytes.copy_from_slice(field);
        }
        bytes
    }

    pub(crate) fn u8(self, offset: usize) -> u8 {
        u8::from_le_bytes(self.array(offset))
    }

    pub(crate) fn u16(self, offset: usize) -> u16 {
        u16::from_le_bytes(self.array(offset))
    }

    pub(crate) fn u32(self, offset: usize) -> u32 {
        u32::from_le_bytes(self.array(offset))
    }

    pub(crate) fn u64(self, offset: usize) -> u64 {
        u64::from_le_bytes(self.array(offset))
    }

    /// A barrier mask: 64 low bits and 32 high ones at two places.
    pub(crate) fn mask(self, low: usize, high: usize) -> u128 {
        u128::from(self.u64(low)) | u128::from(self.u32(high)) << 64
    }
}

/// `width` bits from `low`.
pub(crate) fn bits(word: u64, low: u32, width: u32) -> u64 {
    word >> low & ((1 << width) - 1)
}
