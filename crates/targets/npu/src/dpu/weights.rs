//! Weight tables, weights, their sparsity maps and palettes.
//!
//! The table has 16 bytes for each output channel: where its weights stand, where its sparsity map stands, scale, bias.
//! The weights of a channel stand in the order `[ky][kx][c]`. Where they are sparse, a map has one bit for each, least
//! significant first, and only the weights whose bit is set are stored. Table, weights and maps are swizzled alike.

use super::formats::Decoded;
use chipless_kernels::room::Room;
use chipless_model::{ElementType, Fault, Swizzle};

/// Bytes of a weight table entry.
const ENTRY_BYTES: u64 = 16;

/// The sparsity pointer of a channel without a map.
pub(super) const NO_MAP: u32 = 0xff_ffff;

/// Where weights come from.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    /// Tile offset of the weight table.
    pub(super) table: u64,
    /// Added to the pointers of the table: 0x18000 in programs of compilers up to release 2026.3.1, where the memory that a program
    /// may use starts there.
    pub(super) offset: u64,
    /// What the elements are; with a palette, what its entries are.
    pub(super) format: ElementType,
    pub(super) zero_point: i16,
    /// All weights are stored; no map.
    pub(super) dense: bool,
    pub(super) swizzle: Swizzle,
    pub(super) palette: Option<Palette>,
}

/// Sixteen weights that 4-bit codes choose from.
#[derive(Clone, Debug)]
pub(super) struct Palette {
    pub(super) entries: [u16; 16],
}

impl Palette {
    fn values<T: Decoded>(&self, format: ElementType, zero_point: i16) -> Result<[T; 16], Fault> {
        let mut bytes = [0; 32];
        let size = if format.bits() == 16 { 2 } else { 1 };
        for (bytes, entry) in bytes.chunks_exact_mut(size).zip(self.entries) {
            bytes.copy_from_slice(&entry.to_le_bytes()[..size]);
        }
        let mut values = [T::default(); 16];
        T::decode(format, zero_point, &bytes[..16 * size], &mut values)
            .map_err(|e| Fault::program(format!("palette: {e}")))?;
        Ok(values)
    }
}

/// What the weight table says of an output channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Tile offset of the weights.
    pub(super) weights: u64,
    /// Tile offset of the sparsity map.
    pub(super) map: Option<u64>,
    pub(super) scale: u32,
    pub(super) bias: u32,
}

impl Weights {
    /// Bytes of the table for this many channels.
    pub(super) fn table_bytes(channels: usize) -> u64 {
        channels as u64 * ENTRY_BYTES
    }

    /// Bits of a stored weight.
    pub(super) fn stored_bits(&self) -> u64 {
        if self.palette.is_some() {
            4
        } else {
            self.format.bits()
        }
    }

    /// Bytes that this many stored weights take.
    pub(super) fn stored_bytes(&self, count: u64) -> u64 {
        (count * self.stored_bits()).div_ceil(8)
    }

    /// The entries of a table from its logical bytes.
    pub(super) fn parse_table(&self, bytes: &[u8]) -> Vec<Entry> {
        let word = |bytes: &[u8; 16], at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let entry = |bytes: &[u8; 16]| Entry {
            weights: u64::from(word(bytes, 0)) + self.offset,
            map: (word(bytes, 4) != NO_MAP).then(|| u64::from(word(bytes, 4)) + self.offset),
            scale: word(bytes, 8),
            bias: word(bytes, 12),
        };
        bytes.as_chunks().0.iter().map(entry).collect()
    }

    /// The entries of the table for this many channels.
    pub(super) fn read_table(&self, tile: &[u8], channels: usize) -> Result<Vec<Entry>, Fault> {
        let size = Weights::table_bytes(channels);
        let mut scratch = Vec::new();
        let bytes = self.swizzle.read(tile, self.table, size, &mut scratch).ok_or_else(|| {
            Fault::program(format!(
                "weight table: {size} bytes for {channels} channels at {:#x} do not lie in the tile's {:#x} bytes",
                self.table,
                tile.len()
            ))
        })?;
        Ok(self.parse_table(bytes))
    }

    /// The weights of these channels, `each` for every channel, absent ones as zero. Channels are counted from `first` in errors.
    pub(super) fn gather<T: Decoded>(
        &self,
        tile: &[u8],
        entries: &[Entry],
        first: usize,
        each: usize,
    ) -> Result<Room<T>, Fault> {
        let mut weights = Room::take(entries.len() * each);
        self.gather_into(tile, entries, first, each, &mut weights)?;
        Ok(weights)
    }

    /// The same, into a place for them.
    pub(super) fn gather_into<T: Decoded>(
        &self,
        tile: &[u8],
        entries: &[Entry],
        first: usize,
        each: usize,
        weights: &mut [T],
    ) -> Result<(), Fault> {
        if !self.dense {
            weights.fill(T::default());
        }
        let palette = self
            .palette
            .as_ref()
            .map(|palette| palette.values::<T>(self.format, self.zero_point))
            .transpose()?;
        let (mut scratch, mut map_scratch) = (Vec::new(), Vec::new());
        let mut packed = vec![T::default(); if self.dense { 0 } else { each }];
        for (channel, (entry, weights)) in
            (first..).zip(entries.iter().zip(weights.chunks_exact_mut(each.max(1))))
        {
            if self.dense {
                self.stored(
                    tile,
                    entry,
                    channel,
                    palette.as_ref(),
                    weights,
                    &mut scratch,
                )?;
                continue;
            }
            let map = self.map(tile, entry, channel, each, &mut map_scratch)?;
            let packed = &mut packed[..count_bits(map, 0, each)];
            self.stored(tile, entry, channel, palette.as_ref(), packed, &mut scratch)?;
            expand(map, 0, packed, weights);
        }
        Ok(())
    }

    /// Which weights of a channel are stored.
    pub(super) fn presence(
        &self,
        tile: &[u8],
        entry: &Entry,
        channel: usize,
        each: usize,
    ) -> Result<Vec<bool>, Fault> {
        let mut scratch = Vec::new();
        Ok(bits(self.map(tile, entry, channel, each, &mut scratch)?, 0)
            .take(each)
            .collect())
    }

    /// The sparsity map of a channel.
    fn map<'a>(
        &self,
        tile: &'a [u8],
        entry: &Entry,
        channel: usize,
        each: usize,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Fault> {
        let map = entry.map.ok_or_else(|| {
            Fault::program(format!(
                "weight table, channel {channel}: sparse weights without a sparsity map"
            ))
        })?;
        let size = (each as u64).div_ceil(8);
        self.swizzle.read(tile, map, size, scratch).ok_or_else(|| {
            Fault::program(format!(
                "weight table, channel {channel}: its sparsity map of {size} bytes at {map:#x} does not lie in the tile's {:#x} bytes",
                tile.len()
            ))
        })
    }

    /// The stored weights of a channel, from the first.
    fn stored<T: Decoded>(
        &self,
        tile: &[u8],
        entry: &Entry,
        channel: usize,
        palette: Option<&[T; 16]>,
        out: &mut [T],
        scratch: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let size = self.stored_bytes(out.len() as u64);
        let bytes = self.swizzle.read(tile, entry.weights, size, scratch).ok_or_else(|| {
            Fault::program(format!(
                "weight table, channel {channel}: its {} weights ({size} bytes) at {:#x} do not lie in the tile's {:#x} bytes",
                out.len(),
                entry.weights,
                tile.len()
            ))
        })?;
        let Some(palette) = palette else {
            return T::decode(self.format, self.zero_point, bytes, out)
                .map_err(|e| Fault::program(format!("weights of channel {channel}: {e}")));
        };
        let codes = bytes.iter().flat_map(|byte| [byte & 0xf, byte >> 4]);
        for (weight, code) in out.iter_mut().zip(codes) {
            *weight = palette[usize::from(code)];
        }
        Ok(())
    }
}

/// The bits of a map from bit `first`, least significant first.
pub(super) fn bits(map: &[u8], first: usize) -> impl Iterator<Item = bool> {
    let bytes = map.get(first / 8..).unwrap_or_default();
    bytes
        .iter()
        .flat_map(|byte| (0..8).map(move |i| byte >> i & 1 == 1))
        .skip(first % 8)
}

/// How many of `count` bits of a map from bit `first` are set. Bits beyond its end are not.
pub(super) fn count_bits(map: &[u8], first: usize, count: usize) -> usize {
    let (map, first) = (map.get(first / 8..).unwrap_or_default(), first % 8);
    let ones_before = |end: usize| {
        let (whole, rest) = map.split_at_checked(end / 8).unwrap_or((map, &[]));
        let rest = rest
            .first()
            .map_or(0, |byte| (byte & ((1 << (end % 8)) - 1)).count_ones());
        let (words, bytes) = whole.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        let words: usize = words.map(|word| word.count_ones() as usize).sum();
        let bytes: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
        words + (bytes + rest) as usize
    };
    ones_before(first + count) - ones_before(first)
}

/// Puts packed values where the bits of a map from bit `first` are set; the others stay.
pub(super) fn expand<T: Copy>(map: &[u8], first: usize, packed: &[T], out: &mut [T]) {
    let mut packed = packed.iter();
    let map = map.get(first / 8..).unwrap_or_default();
    if !first.is_multiple_of(8) {
        for (out, present) in out.iter_mut().zip(bits(map, first % 8)) {
            if present && let Some(value) = packed.next() {
                *out = *value;
            }
        }
        return;
    }
    for (out, byte) in out.chunks_mut(8).zip(map) {
        if *byte == 0xff {
            // The usual case: all of them.
            for (out, value) in out.iter_mut().zip(&mut packed) {
                *out = *value;
            }
            continue;
        }
        let mut rest = *byte;
        while let Some(out) = out.get_mut(rest.trailing_zeros() as usize) {
            if let Some(value) = packed.next() {
                *out = *value;
            }
            rest &= rest - 1;
        }
    }
}
