//! Which outputs of a workload depend on bytes that are in doubt.
//!
//! A convolution multiplies a channel by the weights that are stored: channels that pad a tensor and have no weight do not count, whatever
//! stands there. Depthwise convolution, pooling and addition work on each channel by itself.

use super::access::Known;
use super::activations::Tensor;
use super::geometry::{Geometry, Slide};
use super::operation::Operation;
use super::weights::{Entry, Weights, count_bits};
use super::workload::{ACCUMULATORS, Workload};
use chipless_model::{Dependence, Swizzle};
use std::ops::Range;

/// The first run of such bytes from one to before another of the own tile: of bytes in doubt, or of those not known to be zero.
pub(super) type First<'a> = &'a dyn Fn(u64, u64) -> Option<Range<u64>>;

/// Elements of a window, `[y][x][c]`, and which of them are in doubt.
pub(super) struct Window {
    channels: usize,
    doubtful: Vec<bool>,
}

impl Window {
    /// By channel, whether none of its elements is in doubt.
    pub(super) fn channels_without(&self, channels: usize) -> Vec<bool> {
        let mut without = vec![true; channels];
        for pixel in self.doubtful.chunks(self.channels) {
            let each = without.iter_mut().zip(pixel);
            each.for_each(|(without, doubtful)| *without &= !doubtful);
        }
        without
    }
}

impl Workload {
    /// Tells `visit` tile, start and size of written bytes that depend on bytes in doubt, and `leave` start and size of those in the
    /// accumulators. `known(offset, size)` as for [`accesses_with`](Workload::accesses_with); `accumulated` tells the doubtful bytes of the
    /// sums that an earlier workload left in the accumulators. `zero` tells the first bytes that are not known to be zero, where that
    /// was followed.
    pub fn dependence(
        &self,
        known: Known<'_>,
        doubtful: First<'_>,
        accumulated: First<'_>,
        zero: Option<First<'_>>,
        visit: &mut dyn FnMut(u8, u64, u64),
        leave: &mut dyn FnMut(u64, u64),
    ) -> Dependence {
        let table = match self.doubtful_table(known, doubtful) {
            Ok(table) => table,
            Err(dependence) => return dependence,
        };
        let Some(mut window) = self.window_in_doubt(&self.input, known, doubtful) else {
            return Dependence::Control;
        };
        if let Some(second) = &self.second {
            let Some(other) = self.window_in_doubt(second, known, doubtful) else {
                return Dependence::Control;
            };
            let both = window.doubtful.iter_mut().zip(other.doubtful);
            both.for_each(|(one, other)| *one |= other);
        }
        let zeros = zero.map(|zero| self.zero_channels(&self.input, zero));
        let zeros = zeros.filter(|zeros| zeros.contains(&true));
        let rows = self.doubtful_weights(table.as_deref(), known, doubtful, zeros.as_deref());
        let extent = self.geometry.extent();
        let mut outputs = vec![false; extent.volume()];
        let (mut at, sums) = (0, self.accumulator_bytes());
        while let Some(found) = accumulated(at, sums) {
            let sums = found.start as usize / 4..(found.end as usize).div_ceil(4);
            outputs[sums].fill(true);
            at = found.end;
        }
        if !window.doubtful.contains(&true) {
            // All that is in doubt is among the weights.
        } else if self.operation.sums_channels() {
            let used = if self.uses_weights() {
                self.used_channels(table.as_deref(), known, window.channels)
            } else {
                vec![true; window.channels]
            };
            // Without a branch the channels are compared many at once.
            let pixel = |pixel: &[bool]| {
                let each = pixel.iter().zip(&used);
                let both = each.map(|(doubtful, used)| u8::from(*doubtful) & u8::from(*used));
                both.fold(0, |any, one| any | one) != 0
            };
            let pixels: Vec<bool> = window.doubtful.chunks(window.channels).map(pixel).collect();
            self.spread(&pixels, 1, |position, _| {
                outputs[position * extent.z..][..extent.z].fill(true);
            });
        } else {
            self.spread(&window.doubtful, extent.z, |position, channel| {
                outputs[position * extent.z + channel] = true;
            });
        }
        for (channel, _) in rows.iter().enumerate().filter(|(_, doubtful)| **doubtful) {
            let channels = outputs.iter_mut().skip(channel).step_by(extent.z);
            channels.for_each(|output| *output = true);
        }
        if !outputs.contains(&true) {
            return Dependence::Bytes;
        }
        if self.continued {
            let mut start = 0;
            let sums = &outputs[..outputs.len().min(ACCUMULATORS)];
            for alike in sums.chunk_by(|one, other| one == other) {
                let size = 4 * alike.len() as u64;
                if alike[0] {
                    leave(start, size);
                }
                start += size;
            }
        } else {
            self.output.written(self.tile, &outputs, visit);
        }
        Dependence::Bytes
    }

    /// The weight table, where its bytes are known; an error where they are in doubt.
    fn doubtful_table(
        &self,
        known: Known<'_>,
        doubtful: First<'_>,
    ) -> Result<Option<Vec<Entry>>, Dependence> {
        if !self.uses_weight_table() {
            return Ok(None);
        }
        let size = Weights::table_bytes(self.geometry.outputs);
        if any(self.weights.swizzle, self.weights.table, size, doubtful) {
            return Err(if self.uses_weights() {
                Dependence::Control
            } else {
                Dependence::Everything
            });
        }
        Ok(self.known_table(known))
    }

    /// The weight table, where its bytes are known.
    pub(super) fn known_table(&self, known: Known<'_>) -> Option<Vec<Entry>> {
        let size = Weights::table_bytes(self.geometry.outputs);
        let bytes = self.known_bytes(self.weights.table, size, known)?;
        Some(self.weights.parse_table(&bytes))
    }

    /// By output channel, whether its weights or its map are in doubt; but for dense weights of input channels that are zero.
    fn doubtful_weights(
        &self,
        table: Option<&[Entry]>,
        known: Known<'_>,
        doubtful: First<'_>,
        zeros: Option<&[bool]>,
    ) -> Vec<bool> {
        let Some(table) = table.filter(|_| self.uses_weights()) else {
            return Vec::new();
        };
        let each = self.weights_of_a_channel();
        let swizzle = self.weights.swizzle;
        let channel = |entry: &Entry| {
            let stored = |count| {
                let size = self.weights.stored_bytes(count);
                any(swizzle, entry.weights, size, doubtful)
            };
            if self.weights.dense {
                return stored(each as u64)
                    && zeros
                        .is_none_or(|zeros| self.counts_doubtful(entry, each, zeros, doubtful));
            }
            let Some(map) = entry.map else { return false };
            let size = (each as u64).div_ceil(8);
            any(swizzle, map, size, doubtful)
                || self
                    .known_bytes(map, size, known)
                    .is_some_and(|map| stored(count_bits(&map, 0, each) as u64))
        };
        table.iter().map(channel).collect()
    }

    /// Whether a doubtful one of the dense weights of an output channel is that of an input channel that is not zero.
    fn counts_doubtful(
        &self,
        entry: &Entry,
        each: usize,
        zeros: &[bool],
        doubtful: First<'_>,
    ) -> bool {
        let bits = self.weights.stored_bits();
        if self.operation != Operation::Convolution || !bits.is_multiple_of(8) {
            return true;
        }
        let size = bits / 8;
        (0..each)
            .filter(|weight| !zeros[weight % zeros.len()])
            .any(|weight| {
                let at = entry.weights + weight as u64 * size;
                any(self.weights.swizzle, at, size, doubtful)
            })
    }

    /// Weights of an output channel, present or not.
    fn weights_of_a_channel(&self) -> usize {
        let channels = if self.operation == Operation::Depthwise {
            1
        } else {
            self.input.channels(&self.geometry)
        };
        self.geometry.taps() * channels
    }

    /// Input channels that have a weight other than zero for any output channel: all of them, where that is not known.
    fn used_channels(
        &self,
        table: Option<&[Entry]>,
        known: Known<'_>,
        channels: usize,
    ) -> Vec<bool> {
        let mut used = vec![false; channels];
        for entry in table.unwrap_or_default() {
            let Some(present) = self.weights_present(entry, known) else {
                return vec![true; channels];
            };
            for tap in present.chunks(channels) {
                let each = used.iter_mut().zip(tap);
                each.for_each(|(used, present)| *used |= present);
            }
        }
        if table.is_none() {
            used.fill(true);
        }
        used
    }

    /// Which weights of an output channel are neither zero nor absent; `None` where that is not known.
    pub(super) fn weights_present(&self, entry: &Entry, known: Known<'_>) -> Option<Vec<bool>> {
        if self.weights.dense {
            return self.weights_other_than_zero(entry, known);
        }
        let each = self.weights_of_a_channel();
        let map = self.known_bytes(entry.map?, (each as u64).div_ceil(8), known)?;
        let mut present = vec![false; each];
        for (weights, byte) in present.chunks_mut(8).zip(map) {
            let bits = weights.iter_mut().enumerate();
            bits.for_each(|(bit, weight)| *weight = byte >> bit & 1 == 1);
        }
        Some(present)
    }

    /// Which of the dense weights of an output channel are not zero; `None` where they are not known.
    fn weights_other_than_zero(&self, entry: &Entry, known: Known<'_>) -> Option<Vec<bool>> {
        let size = self
            .weights
            .stored_bytes(self.weights_of_a_channel() as u64);
        let bytes = self.known_bytes(entry.weights, size, known)?;
        match (self.weights.stored_bits(), &self.weights.palette) {
            // The sign of a zero does not matter.
            (16, None) => {
                let (weights, _) = bytes.as_chunks();
                let is_some = |w: &[u8; 2]| u16::from_le_bytes(*w) & 0x7fff != 0;
                Some(weights.iter().map(is_some).collect())
            }
            (8, None) => {
                let zero = self.weights.zero_point as u8;
                Some(bytes.iter().map(|weight| *weight != zero).collect())
            }
            _ => None,
        }
    }

    /// Which elements of a window are in doubt; `None` where the pointers to them are.
    pub(super) fn window_in_doubt(
        &self,
        tensor: &Tensor,
        known: Known<'_>,
        doubtful: First<'_>,
    ) -> Option<Window> {
        let window = self.geometry.window();
        let channels = tensor.channels(&self.geometry);
        let mut elements = vec![false; window.y * window.x * channels];
        if let Some(sparse) = tensor.sparse {
            let mut pointers = false;
            tensor.sparse_patterns(sparse, &self.geometry, &mut |pattern| {
                pointers |= pattern
                    .runs()
                    .any(|at| doubtful(at, at + pattern.run).is_some());
            });
            if pointers {
                return None;
            }
            for y in 0..window.y {
                for x in 0..window.x {
                    let found = tensor.storage_element(sparse, (y, x), &self.geometry, known);
                    let is_doubtful =
                        found.is_some_and(|(start, size)| doubtful(start, start + size).is_some());
                    let pixel = (y * window.x + x) * channels;
                    elements[pixel..pixel + channels].fill(is_doubtful);
                }
            }
        } else {
            let together = tensor.pixels_together(&self.geometry);
            for (number, pixels) in elements.chunks_mut(together * channels).enumerate() {
                let pixel = number * together;
                self.pixels_in_doubt(
                    tensor,
                    (pixel / window.x, pixel % window.x),
                    doubtful,
                    pixels,
                );
            }
        }
        Some(Window {
            channels,
            doubtful: elements,
        })
    }

    /// Which elements of pixels that stand together are in doubt.
    fn pixels_in_doubt(
        &self,
        tensor: &Tensor,
        (y, x): (usize, usize),
        doubtful: First<'_>,
        elements: &mut [bool],
    ) {
        let (first, read) = tensor.read_channels(&self.geometry);
        let start = self.geometry.start;
        let at = tensor.position(start.y + y, start.x + x, first);
        let Some(taken) = tensor.taken else {
            return tensor.in_doubt(at, doubtful, elements);
        };
        let mut stored = vec![false; read];
        tensor.in_doubt(at, doubtful, &mut stored);
        for (element, channel) in elements.iter_mut().zip(taken.channels()) {
            *element = stored[channel];
        }
    }

    /// Calls with every output position, and the channel, that looks at a doubtful element of a window.
    fn spread(&self, window: &[bool], channels: usize, mut visit: impl FnMut(usize, usize)) {
        let (x, y) = (self.geometry.x, self.geometry.y);
        let outputs = |slide: Slide, at: usize| {
            (0..slide.kernel).filter_map(move |tap| {
                let from = (at + slide.pad).checked_sub(tap)?;
                (from % slide.stride == 0 && from / slide.stride < slide.outputs)
                    .then_some(from / slide.stride)
            })
        };
        for (index, _) in window.iter().enumerate().filter(|(_, doubtful)| **doubtful) {
            let (pixel, channel) = (index / channels, index % channels);
            for out_y in outputs(y, pixel / x.size) {
                for out_x in outputs(x, pixel % x.size) {
                    visit(out_y * x.outputs + out_x, channel);
                }
            }
        }
    }
}

impl Tensor {
    /// Pixels of a window that are read whole and so stand side by side: a row of them, or one.
    fn pixels_together(&self, geometry: &Geometry) -> usize {
        let is_whole = self.taken.is_none() && self.read_channels(geometry) == (0, self.size.z);
        if is_whole { geometry.window().x } else { 1 }
    }

    /// Which elements from an address on, before swizzling, are in doubt.
    fn in_doubt(&self, address: u64, doubtful: First<'_>, elements: &mut [bool]) {
        let (bits, count) = (self.format.bits(), elements.len());
        let mut before = 0;
        for (start, size) in self.swizzle.pieces(address, self.bytes(count)) {
            let (mut at, end) = (start, start + size);
            while at < end
                && let Some(found) = doubtful(at, end)
            {
                let bytes = before + found.start - start..before + found.end - start;
                let last = ((bytes.end * 8).div_ceil(bits) as usize).min(count);
                elements[(bytes.start * 8 / bits) as usize..last].fill(true);
                at = found.end;
            }
            before += size;
        }
    }
}

/// Whether any of some logical bytes is in doubt.
fn any(swizzle: Swizzle, start: u64, size: u64, doubtful: First<'_>) -> bool {
    swizzle
        .pieces(start, size)
        .any(|(start, size)| doubtful(start, start + size).is_some())
}
