//! Input tensors: where their elements stand, and how a window of them becomes a dense array `[y][x][c]`.
//!
//! Dense tensors are row-major with channels innermost. Sparse ones have a table of storage elements, one pointer for
//! each pixel, and a map with one bit for each element, least significant first: 0 is the value zero, 1 the next stored
//! value of the pixel's storage element.

use super::formats::Element;
use super::geometry::{Axes, Geometry, Slide};
use super::ranges::strided;
use super::weights::{count_bits, expand};
use crate::address::CMX_REACH;
use crate::npu3720;
use chipless_kernels::room::Room;
use chipless_model::{ElementType, Fault, Loop, Pattern, Swizzle};
use std::borrow::Cow;

/// Channels that a pixel of a compressed first convolution has in memory, whatever its registers say.
const COMPRESSED_PITCH: usize = 4;

/// Bytes of a storage element pointer.
const POINTER_BYTES: u64 = 4;

/// An input tensor in a tile.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) format: ElementType,
    pub(super) zero_point: i16,
    /// Tile offset of element (0, 0, 0), or what storage element pointers count from.
    pub(super) base: u64,
    pub(super) size: Axes,
    pub(super) swizzle: Swizzle,
    pub(super) sparse: Option<StorageElements>,
    /// Where a convolution takes some channels of a pixel only: its weights are stored for these.
    pub(super) taken: Option<Taken>,
    /// Where a tensor lies in two tiles: rows in the first one. Those of the second tile stand where the first ones do, a tile further.
    pub(super) first_rows: Option<usize>,
}

/// The channels of a pixel that a first convolution takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// One bit for each.
    pub(super) pattern: u16,
    /// Channels that a pixel has in memory.
    pub(super) stored: usize,
}

impl Taken {
    /// As registers tell it: the input is compressed, or the weights of the other channels are left out and count as zero.
    pub(super) fn of(compressed: bool, inserted: bool, pattern: u32, size: Axes) -> Option<Taken> {
        (compressed || inserted).then_some(Taken {
            pattern: pattern as u16,
            stored: if compressed { COMPRESSED_PITCH } else { size.z },
        })
    }

    /// Their numbers.
    pub(super) fn channels(self) -> impl Iterator<Item = usize> {
        let stored = self.stored.min(u16::BITS as usize);
        (0..stored).filter(move |channel| self.pattern >> channel & 1 == 1)
    }

    /// Whether it names none, or more than there are.
    pub(super) fn names_others(self) -> bool {
        self.pattern == 0 || self.channels().count() != self.pattern.count_ones() as usize
    }

    /// Whether a pixel has fewer channels in memory than its registers say.
    pub(super) fn is_compressed(self) -> bool {
        self.stored == COMPRESSED_PITCH
    }
}

/// Where the storage elements of a sparse tensor are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StorageElements {
    /// Tile offset of the pointers, one for each pixel.
    pub(super) table: u64,
    /// Tile offset of the map, one bit for each element. Without a map all elements are stored.
    pub(super) map: Option<u64>,
}

impl StorageElements {
    /// Some bytes of the map, where they are known.
    fn map_bytes(
        self,
        start: usize,
        end: usize,
        known: &dyn Fn(u64, u64) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        match self.map {
            Some(map) => known(map + start as u64, (end - start) as u64),
            None => Some(vec![0xff; end - start]),
        }
    }
}

impl Tensor {
    /// Channels of the dense array that a window becomes.
    pub(super) fn channels(&self, geometry: &Geometry) -> usize {
        self.taken
            .map_or(geometry.channels, |taken| taken.channels().count())
    }

    /// Channels of a pixel in memory.
    fn pitch(&self) -> usize {
        self.taken.map_or(self.size.z, |taken| taken.stored)
    }

    /// Bytes of this many elements.
    pub(super) fn bytes(&self, elements: usize) -> u64 {
        (elements as u64 * self.format.bits()).div_ceil(8)
    }

    /// First channel and number of channels of a pixel that are read.
    pub(super) fn read_channels(&self, geometry: &Geometry) -> (usize, usize) {
        match self.taken {
            Some(taken) => (0, taken.stored),
            None => (geometry.start.z, geometry.channels),
        }
    }

    /// The window as a dense array `[y][x][c]`, integers less their zero point.
    pub(super) fn gather<T: Element>(
        &self,
        tile: &[u8],
        geometry: &Geometry,
    ) -> Result<Room<T>, Fault> {
        match self.sparse {
            Some(elements) => self.gather_sparse(elements, tile, geometry),
            None => self.gather_dense(tile, geometry),
        }
    }

    fn gather_dense<T: Element>(&self, tile: &[u8], geometry: &Geometry) -> Result<Room<T>, Fault> {
        let window = geometry.window();
        let (first, read) = self.read_channels(geometry);
        let (_, end) = self.dense_span(geometry);
        // Nothing is allocated for what the tile does not hold.
        if end > tile.len() as u64 {
            return Err(outside("activations", end, tile));
        }
        let channels = self.channels(geometry);
        let mut dense = Room::<T>::take(window.y * window.x * channels);
        let fill = |y: usize, x: usize, out: &mut [T]| {
            let address = self.position(geometry.start.y + y, geometry.start.x + x, first);
            self.decode_at(tile, address, out)
                .unwrap_or_else(|| Err(outside("activations", end, tile)))
        };
        let is_whole = read == self.pitch() && window.x == self.size.x;
        if is_whole && self.taken.is_none() && self.first_rows.is_none() {
            // One row goes on in the next.
            fill(0, 0, &mut dense)?;
            return Ok(dense);
        }
        for (y, row) in dense.chunks_exact_mut(window.x * channels).enumerate() {
            if let Some(taken) = self.taken {
                let mut stored = vec![T::default(); read];
                for (x, pixel) in row.chunks_exact_mut(channels).enumerate() {
                    fill(y, x, &mut stored)?;
                    for (value, c) in pixel.iter_mut().zip(taken.channels()) {
                        *value = stored[c];
                    }
                }
            } else if read == self.pitch() {
                fill(y, 0, row)?;
            } else {
                for (x, pixel) in row.chunks_exact_mut(channels).enumerate() {
                    fill(y, x, pixel)?;
                }
            }
        }
        Ok(dense)
    }

    /// Decodes elements from a logical address on; `None` where they leave the tile.
    fn decode_at<T: Element>(
        &self,
        tile: &[u8],
        address: u64,
        out: &mut [T],
    ) -> Option<Result<(), Fault>> {
        let (bits, size) = (self.format.bits(), self.bytes(out.len()));
        if let Some(start) = self.swizzle.piece(address, size) {
            let bytes = tile.get(start as usize..)?.get(..size as usize)?;
            return Some(self.decode(bytes, out));
        }
        if !(address * 8).is_multiple_of(bits) {
            let mut scratch = Vec::new();
            let bytes = self.swizzle.read(tile, address, size, &mut scratch)?;
            return Some(self.decode(bytes, out));
        }
        // Pieces end between elements, but for a last byte that is not full, and are decoded where they stand.
        let mut rest = out;
        for (start, size) in self.swizzle.pieces(address, size) {
            let bytes = tile.get(start as usize..)?.get(..size as usize)?;
            let count = ((size * 8 / bits) as usize).min(rest.len());
            let (piece, after) = std::mem::take(&mut rest).split_at_mut(count);
            if let Err(fault) = self.decode(bytes, piece) {
                return Some(Err(fault));
            }
            rest = after;
        }
        Some(Ok(()))
    }

    fn gather_sparse<T: Element>(
        &self,
        elements: StorageElements,
        tile: &[u8],
        geometry: &Geometry,
    ) -> Result<Room<T>, Fault> {
        let (window, start) = (geometry.window(), geometry.start);
        let last = self.pixel(start.y + window.y - 1, start.x + window.x - 1);
        let map_size = ((last as u64 + 1) * self.size.z as u64).div_ceil(8);
        let map_end = elements.map.unwrap_or(0) + map_size;
        // The array has no more elements than the map has bits.
        if map_end > tile.len() as u64 {
            return Err(outside("sparsity map", map_end, tile));
        }
        let map = match elements.map {
            Some(map) => Cow::Borrowed(tile.get(map as usize..).unwrap_or_default()),
            None => Cow::Owned(vec![0xff; map_size as usize]),
        };
        let map = &*map;
        let mut dense = Room::<T>::zeros(window.volume());
        let mut packed = vec![T::default(); self.size.z];
        for (index, pixel) in dense.chunks_exact_mut(window.z).enumerate() {
            let (x, y) = (start.x + index % window.x, start.y + index / window.x);
            let number = self.pixel(y, x);
            let bit = number * self.size.z;
            let before = count_bits(map, bit, start.z);
            let stored = count_bits(map, bit + start.z, window.z);
            if stored == 0 {
                continue;
            }
            let data = self.base
                + storage_element(tile, elements.table + number as u64 * POINTER_BYTES, (x, y))?;
            let packed = &mut packed[..before + stored];
            let size = self.bytes(packed.len());
            let bytes = tile
                .get(data as usize..)
                .and_then(|rest| rest.get(..size as usize))
                .ok_or_else(|| {
                    outside(
                        &format!("storage element of pixel ({x}, {y}) ({size} bytes at {data:#x})"),
                        data + size,
                        tile,
                    )
                })?;
            self.decode(bytes, packed)?;
            expand(map, bit + start.z, &packed[before..], pixel);
        }
        Ok(dense)
    }

    fn decode<T: Element>(&self, bytes: &[u8], out: &mut [T]) -> Result<(), Fault> {
        T::decode(self.format, self.zero_point, bytes, out)
            .map_err(|e| Fault::program(format!("activations: {e}")))
    }

    fn pixel(&self, y: usize, x: usize) -> usize {
        y * self.size.x + x
    }

    /// Tile offset of an element of a dense tensor, before swizzling.
    pub(super) fn position(&self, y: usize, x: usize, c: usize) -> u64 {
        let (y, base) = match self.first_rows {
            Some(rows) if y >= rows => (y - rows, self.base + npu3720::CMX_SIZE),
            _ => (y, self.base),
        };
        base + (self.pixel(y, x) * self.pitch() + c) as u64 * self.format.bits() / 8
    }

    /// First byte of a window of a dense tensor and the end of its last, before swizzling.
    fn dense_span(&self, geometry: &Geometry) -> (u64, u64) {
        let (window, start) = (geometry.window(), geometry.start);
        let (first, read) = self.read_channels(geometry);
        let last = self.position(start.y + window.y - 1, start.x + window.x - 1, first);
        (
            self.position(start.y, start.x, first),
            last + self.bytes(read),
        )
    }

    /// The bytes of a dense tensor that the taps of a window fall on, before swizzling.
    pub(super) fn dense_patterns(&self, geometry: &Geometry, emit: &mut dyn FnMut(Pattern)) {
        let (first, read) = self.read_channels(geometry);
        let (start, end) = self.dense_span(geometry);
        if end > CMX_REACH {
            // Nowhere to be read from: one piece says so as well as millions.
            emit(Pattern::contiguous(start, end - start));
            return;
        }
        // Rows and columns repeat regularly: a loop for each.
        let pixel = self.bytes(self.pitch()) as i64;
        let row = self.bytes(self.pitch() * self.size.x) as i64;
        for (y, rows) in self.in_tiles(geometry) {
            for (x, columns) in regular(geometry.x) {
                let start = self.position(
                    geometry.start.y + y.start,
                    geometry.start.x + x.start,
                    first,
                );
                let whole = [
                    Loop {
                        count: x.len() as u64,
                        stride: pixel,
                    },
                    Loop {
                        count: columns,
                        stride: geometry.x.stride as i64 * pixel,
                    },
                    Loop {
                        count: y.len() as u64,
                        stride: row,
                    },
                    Loop {
                        count: rows,
                        stride: geometry.y.stride as i64 * row,
                    },
                ];
                emit(Pattern::new(start, self.bytes(read), whole));
            }
        }
    }

    /// The rows that the taps of a window fall on, those of each tile apart.
    fn in_tiles(&self, geometry: &Geometry) -> Vec<(std::ops::Range<usize>, u64)> {
        let rows = regular(geometry.y);
        let Some(split) = self.first_rows else {
            return rows;
        };
        let split = split.saturating_sub(geometry.start.y);
        let stride = geometry.y.stride;
        let mut found = Vec::new();
        for (range, count) in rows {
            let is_apart = range.end <= split && count == 1 || range.start >= split;
            if is_apart {
                found.push((range, count));
                continue;
            }
            for number in 0..count as usize {
                let range = range.start + number * stride..range.end + number * stride;
                let middle = split.clamp(range.start, range.end);
                let parts = [range.start..middle, middle..range.end];
                found.extend(
                    parts
                        .into_iter()
                        .filter(|part| !part.is_empty())
                        .map(|part| (part, 1)),
                );
            }
        }
        found
    }

    /// The bytes of a sparse tensor's pointers and map that belong to a window.
    pub(super) fn sparse_patterns(
        &self,
        elements: StorageElements,
        geometry: &Geometry,
        emit: &mut dyn FnMut(Pattern),
    ) {
        let window = geometry.window();
        let first = self.pixel(geometry.start.y, geometry.start.x) as u64;
        let rows = Loop {
            count: window.y as u64,
            stride: self.size.x as i64 * POINTER_BYTES as i64,
        };
        emit(Pattern::new(
            elements.table + first * POINTER_BYTES,
            window.x as u64 * POINTER_BYTES,
            [rows],
        ));
        let Some(first) = elements.map else {
            return;
        };
        let map = |y| {
            let start = self.pixel(geometry.start.y + y, geometry.start.x) * self.size.z;
            let (start, end) = (start / 8, (start + window.x * self.size.z).div_ceil(8));
            (first + start as u64, (end - start) as u64)
        };
        strided((0..window.y).map(map).collect(), emit);
    }

    /// The storage element of one pixel of a window: tile offset and bytes; `None` where it is empty or not known.
    pub(super) fn storage_element(
        &self,
        elements: StorageElements,
        (y, x): (usize, usize),
        geometry: &Geometry,
        known: &dyn Fn(u64, u64) -> Option<Vec<u8>>,
    ) -> Option<(u64, u64)> {
        let number = self.pixel(geometry.start.y + y, geometry.start.x + x);
        let pointer = known(
            elements.table + number as u64 * POINTER_BYTES,
            POINTER_BYTES,
        )?;
        let (start, end) = (
            number * self.size.z / 8,
            ((number + 1) * self.size.z).div_ceil(8),
        );
        let map = elements.map_bytes(start, end, known)?;
        let last = geometry.start.z + geometry.channels;
        let stored = count_bits(&map, number * self.size.z - start * 8, last);
        let pointer = u32::from_le_bytes(*pointer.first_chunk()?);
        (stored > 0).then(|| (self.base + pointer_offset(pointer), self.bytes(stored)))
    }

    /// Every storage element of a window: tile offset and bytes, from the bytes of the pointers and of the map.
    /// `None` where those are not known.
    pub(super) fn storage_elements(
        &self,
        elements: StorageElements,
        geometry: &Geometry,
        known: &dyn Fn(u64, u64) -> Option<Vec<u8>>,
    ) -> Option<Vec<(u64, u64)>> {
        let window = geometry.window();
        let mut found = Vec::new();
        for y in 0..window.y {
            let row = self.pixel(geometry.start.y + y, geometry.start.x);
            let pointers = known(
                elements.table + row as u64 * POINTER_BYTES,
                window.x as u64 * POINTER_BYTES,
            )?;
            let (start, end) = (
                row * self.size.z / 8,
                ((row + window.x) * self.size.z).div_ceil(8),
            );
            let map = elements.map_bytes(start, end, known)?;
            for (x, pointer) in pointers.as_chunks().0.iter().enumerate() {
                let stored = count_bits(
                    &map,
                    (row + x) * self.size.z - start * 8,
                    geometry.start.z + window.z,
                );
                if stored > 0 {
                    found.push((
                        self.base + pointer_offset(u32::from_le_bytes(*pointer)),
                        self.bytes(stored),
                    ));
                }
            }
        }
        Some(found)
    }
}

fn outside(what: &str, end: u64, tile: &[u8]) -> Fault {
    Fault::program(format!(
        "{what}: ends at {end:#x}, beyond the tile's {:#x} bytes",
        tile.len()
    ))
}

/// The offset from the tensor's base of the storage element of a pixel.
fn storage_element(tile: &[u8], pointer: u64, (x, y): (usize, usize)) -> Result<u64, Fault> {
    let word = tile
        .get(pointer as usize..)
        .and_then(|rest| rest.first_chunk());
    let word = u32::from_le_bytes(
        *word.ok_or_else(|| outside("storage element table", pointer + POINTER_BYTES, tile))?,
    );
    if word & 0x1ff != 0 {
        return Err(Fault::unsupported(format!(
            "storage element of pixel ({x}, {y}): its pointer {word:#x} counts from base {}; only base 0 is known",
            word & 0x1ff
        )));
    }
    Ok(pointer_offset(word))
}

/// Bits 9 to 31 of a pointer count units of 16 bytes.
fn pointer_offset(word: u32) -> u64 {
    u64::from(word >> 9) * 16
}

/// The taps of an axis as a range of positions and how often it repeats, one stride apart. Windows that are cut by
/// padding stand alone.
fn regular(slide: Slide) -> Vec<(std::ops::Range<usize>, u64)> {
    let mut found: Vec<(std::ops::Range<usize>, u64)> = Vec::new();
    for range in slide.taps() {
        match found.last_mut() {
            Some((first, count))
                if first.len() == range.len()
                    && range.start == first.start + *count as usize * slide.stride =>
            {
                *count += 1;
            }
            _ => found.push((range, 1)),
        }
    }
    found
}
