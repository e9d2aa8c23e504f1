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
use chipless_model::{Dependence, Series, Swizzle};
use std::ops::Range;

/// Calls with the runs of such bytes among some of the own tile, in order: of bytes in doubt, or of those not known to be zero.
pub(super) type Each<'a> = &'a dyn Fn(Range<u64>, &mut dyn FnMut(Series));

/// Elements of a window, `[y][x][c]`, and which of them are in doubt.
pub(super) struct Window {
    channels: usize,
    doubtful: Vec<bool>,
}

impl Window {
    /// By channel, whether any of its elements is in doubt.
    pub(super) fn doubtful_channels(&self) -> Vec<bool> {
        let mut found = vec![false; self.channels];
        // Neighbours are mostly alike, which is seen at once.
        let mut last: &[bool] = &[];
        for pixel in self.doubtful.chunks(self.channels) {
            if pixel != last {
                last = pixel;
                let each = found.iter_mut().zip(pixel);
                each.for_each(|(found, doubtful)| *found |= doubtful);
            }
        }
        found
    }
}

/// Which weights of an output channel are neither zero nor absent.
pub(super) enum Present {
    /// A bit for each.
    Map(Vec<u8>),
    /// Half-precision or bfloat16 numbers. The sign of a zero does not matter.
    Floats(Vec<u8>),
    /// Bytes, and which of them is zero.
    Bytes(Vec<u8>, u8),
}

impl Present {
    /// By channel of so many, whether the weight of any tap is.
    fn channels(&self, channels: usize) -> Vec<bool> {
        let union = |bytes: &[u8], size: usize, zero: u8| {
            let mut union = vec![0; size];
            for tap in bytes.chunks_exact(size) {
                let each = union.iter_mut().zip(tap);
                each.for_each(|(any, byte)| *any |= byte ^ zero);
            }
            union
        };
        let any = match self {
            Present::Map(bits) if channels.is_multiple_of(8) => {
                Present::Map(union(bits, channels / 8, 0))
            }
            Present::Map(bits) => {
                let has = |channel| {
                    let mut weights = (channel..8 * bits.len()).step_by(channels);
                    weights.any(|weight| self.has(weight))
                };
                return (0..channels).map(has).collect();
            }
            Present::Floats(bytes) => Present::Floats(union(bytes, 2 * channels, 0)),
            Present::Bytes(bytes, zero) => Present::Bytes(union(bytes, channels, *zero), 0),
        };
        (0..channels).map(|channel| any.has(channel)).collect()
    }

    /// Whether the weight of this number is.
    pub(super) fn has(&self, weight: usize) -> bool {
        match self {
            Present::Map(bits) => bits[weight / 8] >> (weight % 8) & 1 == 1,
            Present::Floats(bytes) => bytes[2 * weight] != 0 || bytes[2 * weight + 1] & 0x7f != 0,
            Present::Bytes(bytes, zero) => bytes[weight] != *zero,
        }
    }
}

impl Workload {
    /// Tells `visit` tile, start and size of written bytes that depend on bytes in doubt, and `leave` start and size of those in the
    /// accumulators. `known(offset, size)` as for [`accesses_with`](Workload::accesses_with); `accumulated` tells the doubtful bytes of the
    /// sums that an earlier workload left in the accumulators. `zero` tells the bytes that are not known to be zero, where that was followed.
    pub fn dependence(
        &self,
        known: Known<'_>,
        doubtful: Each<'_>,
        accumulated: Each<'_>,
        zero: Option<Each<'_>>,
        visit: &mut dyn FnMut(u8, u64, u64),
        leave: &mut dyn FnMut(u64, u64),
    ) -> Dependence {
        // Of what nobody executes, registers may contradict each other: an input without channels, for example.
        if self.unsupported.is_some() {
            return Dependence::Everything;
        }
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
        accumulated(0..self.accumulator_bytes(), &mut |found| {
            for run in found.runs() {
                outputs[run.start as usize / 4..(run.end as usize).div_ceil(4)].fill(true);
            }
        });
        let channels = window.doubtful_channels();
        if !channels.contains(&true) {
            // All that is in doubt is among the weights.
        } else if self.operation.sums_channels() {
            let used = if self.uses_weights() {
                self.used_channels(table.as_deref(), known, &channels)
            } else {
                channels
            };
            if used.contains(&true) {
                // Without a branch the channels are compared many at once.
                let pixel = |pixel: &[bool]| {
                    let each = pixel.iter().zip(&used);
                    let both = each.map(|(doubtful, used)| u8::from(*doubtful) & u8::from(*used));
                    both.fold(0, |any, one| any | one) != 0
                };
                let pixels = window.doubtful.chunks(window.channels).map(pixel);
                self.spread(&pixels.collect::<Vec<bool>>(), 1, |position, _| {
                    outputs[position * extent.z..][..extent.z].fill(true);
                });
            }
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
        doubtful: Each<'_>,
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
        doubtful: Each<'_>,
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
        doubtful: Each<'_>,
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
    pub(super) fn weights_of_a_channel(&self) -> usize {
        let channels = if self.operation == Operation::Depthwise {
            1
        } else {
            self.input.channels(&self.geometry)
        };
        self.geometry.taps() * channels
    }

    /// Those of some input channels that have a weight other than zero for any output channel: all of them, where that is not known.
    fn used_channels(
        &self,
        table: Option<&[Entry]>,
        known: Known<'_>,
        channels: &[bool],
    ) -> Vec<bool> {
        let Some(table) = table else {
            return channels.to_vec();
        };
        let numbered = channels.iter().enumerate().filter(|(_, counts)| **counts);
        let mut unused: Vec<usize> = numbered.map(|(channel, _)| channel).collect();
        let mut used = vec![false; channels.len()];
        for entry in table {
            if unused.is_empty() {
                break;
            }
            let Some(present) = self.weights_present(entry, known) else {
                return channels.to_vec();
            };
            let new = present.channels(channels.len());
            unused.retain(|channel| {
                used[*channel] = new[*channel];
                !used[*channel]
            });
        }
        used
    }

    /// Which weights of an output channel are neither zero nor absent; `None` where that is not known.
    pub(super) fn weights_present(&self, entry: &Entry, known: Known<'_>) -> Option<Present> {
        let each = self.weights_of_a_channel() as u64;
        if !self.weights.dense {
            let map = self.known_bytes(entry.map?, each.div_ceil(8), known)?;
            return Some(Present::Map(map));
        }
        let size = self.weights.stored_bytes(each);
        let bytes = self.known_bytes(entry.weights, size, known)?;
        match (self.weights.stored_bits(), &self.weights.palette) {
            (16, None) => Some(Present::Floats(bytes)),
            (8, None) => Some(Present::Bytes(bytes, self.weights.zero_point as u8)),
            _ => None,
        }
    }

    /// Which elements of a window are in doubt; `None` where the pointers to them are.
    pub(super) fn window_in_doubt(
        &self,
        tensor: &Tensor,
        known: Known<'_>,
        doubtful: Each<'_>,
    ) -> Option<Window> {
        let window = self.geometry.window();
        let channels = tensor.channels(&self.geometry);
        let mut elements = vec![false; window.y * window.x * channels];
        if let Some(sparse) = tensor.sparse {
            let mut pointers = false;
            tensor.sparse_patterns(sparse, &self.geometry, &mut |pattern| {
                let mut runs = pattern.runs().map(|at| at..at + pattern.run);
                pointers |= runs.any(|run| is_any(run, doubtful));
            });
            if pointers {
                return None;
            }
            for y in 0..window.y {
                for x in 0..window.x {
                    let found = tensor.storage_element(sparse, (y, x), &self.geometry, known);
                    let is_doubtful =
                        found.is_some_and(|(start, size)| is_any(start..start + size, doubtful));
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
        doubtful: Each<'_>,
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
    fn in_doubt(&self, address: u64, doubtful: Each<'_>, elements: &mut [bool]) {
        let (bits, count) = (self.format.bits(), elements.len());
        let mut before = 0;
        for (start, size) in self.swizzle.pieces(address, self.bytes(count)) {
            doubtful(start..start + size, &mut |found| {
                for run in found.runs() {
                    let bytes = before + run.start - start..before + run.end - start;
                    let last = ((bytes.end * 8).div_ceil(bits) as usize).min(count);
                    elements[(bytes.start * 8 / bits) as usize..last].fill(true);
                }
            });
            before += size;
        }
    }
}

/// Whether any of some bytes is in doubt.
fn is_any(bytes: Range<u64>, doubtful: Each<'_>) -> bool {
    let mut is_any = false;
    doubtful(bytes, &mut |_| is_any = true);
    is_any
}

/// Whether any of some logical bytes is in doubt.
fn any(swizzle: Swizzle, start: u64, size: u64, doubtful: Each<'_>) -> bool {
    let mut pieces = swizzle.pieces(start, size);
    pieces.any(|(start, size)| is_any(start..start + size, doubtful))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Few bits are set, so that most channels are without a weight in some taps and some in all.
        #[test]
        fn channels_are_those_of_any_tap(channels in 1usize..20, taps in 1usize..5, set in prop::collection::vec((0usize..800, 0u8..=255), 0..6), zero: u8) {
            let weights = channels * taps;
            let bytes = |count: usize, zero: u8| {
                let mut bytes = vec![zero; count];
                for (at, value) in &set {
                    bytes[at % count] = *value;
                }
                bytes
            };
            let mut map = bytes(weights.div_ceil(8), 0);
            if !weights.is_multiple_of(8) {
                // Nobody stores weights there.
                *map.last_mut().expect("not empty") &= (1 << (weights % 8)) - 1;
            }
            for present in [Present::Map(map), Present::Floats(bytes(2 * weights, 0)), Present::Bytes(bytes(weights, zero), zero)] {
                let has = |channel| (channel..weights).step_by(channels).any(|weight| present.has(weight));
                let want: Vec<bool> = (0..channels).map(has).collect();
                prop_assert_eq!(present.channels(channels), want);
            }
        }
    }
}
