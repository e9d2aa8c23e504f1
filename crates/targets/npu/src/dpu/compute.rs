//! The sums: what the multipliers make of a window of activations and the weights.

use super::formats::Element;
use super::geometry::Slide;
use super::kept::Shelved;
use super::operation::{Elementwise, Operation};
use super::weights::Entry;
use super::workload::Workload;
use chipless_kernels::matrix::{MatrixMut, Panels};
use chipless_kernels::room::Room;
use chipless_kernels::window::{self, Window};
use chipless_kernels::{Update, wide};
use chipless_model::Fault;

/// Weights that are prepared at a time, so that they stay in the second-level cache: the channels of larger layers are done in groups.
const PREPARED: usize = 1 << 18;

/// Channels of a group are a multiple of these: a product goes over its inputs once for each.
const CHANNELS: usize = 128;

/// Inputs that are looked through together for what has to be hidden.
const HIDDEN_BLOCK: usize = 1024;

impl Workload {
    /// The sums of the box, `[y][x][k]`, on top of what the accumulators hold.
    pub(super) fn sums<T: Shelved>(
        &self,
        tile: &[u8],
        table: &[Entry],
        earlier: Option<Room<T::Sum>>,
    ) -> Result<Room<T::Sum>, Fault> {
        let mut input: Room<T> = self.input.gather(tile, &self.geometry)?;
        let update = if earlier.is_some() {
            Update::Accumulate
        } else {
            Update::Set
        };
        let count = self.geometry.extent().volume();
        let sums = || earlier.unwrap_or_else(|| Room::take(count));
        let sums = match self.operation {
            Operation::Convolution => self.convolution(tile, table, &mut input, sums(), update)?,
            Operation::Depthwise => self.depthwise(tile, table, &mut input, sums(), update)?,
            Operation::MaxPool => {
                let mut largest = Room::<T>::take(count);
                window::pool_max(&self.window(), &input, &mut largest).map_err(refused)?;
                let mut sums = sums();
                for (sum, value) in sums.iter_mut().zip(&*largest) {
                    *sum = T::Sum::from(*value);
                }
                sums
            }
            Operation::AveragePool { weight } => {
                let weight = self.constant(weight)?;
                let mut sums = sums();
                window::pool_sum(&self.window(), &input, &mut sums, Update::Set)
                    .map_err(refused)?;
                for sum in &mut *sums {
                    *sum = T::scale(*sum, weight);
                }
                sums
            }
            Operation::Reduce { weight, .. } => {
                let weight = self.constant(weight)?;
                let (window, mut sums) = (self.window(), sums());
                let positions = window.out_x * window.out_y;
                let mut of_channels = Room::take(positions * window.channels);
                window::pool_sum(&window, &input, &mut of_channels, Update::Set)
                    .map_err(refused)?;
                let of_channels = of_channels.chunks(window.channels.max(1));
                let boxes = sums.chunks_mut(self.geometry.outputs.max(1));
                for (channels, outputs) in of_channels.zip(boxes) {
                    let channels = channels.iter();
                    let sum = channels.fold(T::Sum::default(), |sum, of_channel| sum + *of_channel);
                    outputs.fill(T::scale(sum, weight));
                }
                sums
            }
            Operation::Elementwise {
                function,
                scale_a,
                scale_b,
            } => {
                let second: Room<T> = match &self.second {
                    Some(second) => second.gather(tile, &self.geometry)?,
                    None => Room::take(0),
                };
                let mut sums = sums();
                sums.truncate(input.len().min(second.len()));
                let (sums_of, input, second) = (&mut *sums, &*input, &*second);
                let scaled = move |a: &T, b: &T| (a.scaled(scale_a), b.scaled(scale_b));
                // Each function has its own loop: chosen inside, it would cost more than it computes.
                let operands = input.iter().zip(second);
                wide(move || match function {
                    Elementwise::Add => {
                        for (sum, (a, b)) in sums_of.iter_mut().zip(operands) {
                            let (a, b) = scaled(a, b);
                            *sum = a + b;
                        }
                    }
                    Elementwise::Subtract => {
                        for (sum, (a, b)) in sums_of.iter_mut().zip(operands) {
                            let (a, b) = scaled(a, b);
                            *sum = a - b;
                        }
                    }
                    Elementwise::Multiply => {
                        for (sum, (a, b)) in sums_of.iter_mut().zip(operands) {
                            let (a, b) = scaled(a, b);
                            *sum = a * b;
                        }
                    }
                });
                sums
            }
        };
        Ok(sums)
    }

    fn convolution<T: Shelved>(
        &self,
        tile: &[u8],
        table: &[Entry],
        input: &mut [T],
        mut sums: Room<T::Sum>,
        update: Update,
    ) -> Result<Room<T::Sum>, Fault> {
        let window = self.window();
        let each = self.geometry.taps() * window.channels;
        let hidden = self.hide(input);
        let group = (PREPARED / each / CHANNELS).max(1) * CHANNELS;
        for (number, entries) in table.chunks(group).enumerate() {
            let first = number * group;
            let mut add = |panels: &Panels<T>| {
                let (rows, columns) = (window.out_x * window.out_y, entries.len());
                let places = sums.get_mut(first..).unwrap_or_default();
                let places = MatrixMut::with_stride(places, rows, columns, table.len())?;
                window::convolve_packed(&window, input, panels, places, update)
            };
            if entries.len() == table.len() {
                let kept = self.weights.prepare::<T>(tile, entries, each, false)?;
                add(kept.panels()?).map_err(refused)?;
            } else {
                let panels = self.weights.panels::<T>(tile, entries, first, each)?;
                add(&panels).map_err(refused)?;
            }
            if hidden.is_empty() {
                continue;
            }
            let weights: Room<T> = self.weights.gather(tile, entries, first, each)?;
            let present = self.presence(tile, entries, first, each)?;
            for (index, value) in &hidden {
                self.each_tap(index / window.channels, |position, tap| {
                    let sums = &mut sums[position * table.len() + first..][..entries.len()];
                    for (k, sum) in sums.iter_mut().enumerate() {
                        let weight = k * each + tap * window.channels + index % window.channels;
                        if present[weight] {
                            *sum = value.multiply_add_to(weights[weight], *sum);
                        }
                    }
                });
            }
        }
        Ok(sums)
    }

    fn depthwise<T: Shelved>(
        &self,
        tile: &[u8],
        table: &[Entry],
        input: &mut [T],
        mut sums: Room<T::Sum>,
        update: Update,
    ) -> Result<Room<T::Sum>, Fault> {
        let (taps, channels) = (self.geometry.taps(), self.geometry.channels);
        let hidden = self.hide(input);
        let kept = self.weights.prepare::<T>(tile, table, taps, true)?;
        window::depthwise_by_tap(&self.window(), input, kept.taps()?, &mut sums, update)
            .map_err(refused)?;
        if hidden.is_empty() {
            return Ok(sums);
        }
        let weights: Room<T> = self.weights.gather(tile, table, 0, taps)?;
        let present = self.presence(tile, table, 0, taps)?;
        for (index, value) in &hidden {
            let channel = index % channels;
            self.each_tap(index / channels, |position, tap| {
                let (sum, weight) = (
                    &mut sums[position * channels + channel],
                    channel * taps + tap,
                );
                if present[weight] {
                    *sum = value.multiply_add_to(weights[weight], *sum);
                }
            });
        }
        Ok(sums)
    }

    /// Takes out of the input of a sparse convolution what would turn the zero of an absent weight into a NaN: whatever
    /// stands behind absent weights contributes nothing, garbage included. It comes back weight by weight.
    fn hide<T: Element>(&self, input: &mut [T]) -> Vec<(usize, T)> {
        let mut hidden = Vec::new();
        if self.weights.dense {
            return hidden;
        }
        for (number, block) in input.chunks_mut(HIDDEN_BLOCK).enumerate() {
            // Mostly there are none: to see that takes a few instructions for many numbers.
            if T::are_finite(block) {
                continue;
            }
            let first = number * HIDDEN_BLOCK;
            for (index, value) in (first..).zip(block) {
                if !value.is_finite() {
                    hidden.push((index, std::mem::take(value)));
                }
            }
        }
        hidden
    }

    /// Which of the weights of these channels are stored.
    fn presence(
        &self,
        tile: &[u8],
        entries: &[Entry],
        first: usize,
        each: usize,
    ) -> Result<Vec<bool>, Fault> {
        let mut present = Vec::with_capacity(entries.len() * each);
        for (channel, entry) in (first..).zip(entries) {
            present.extend(self.weights.presence(tile, entry, channel, each)?);
        }
        Ok(present)
    }

    /// Calls with every output position that looks at a pixel of the window, and with the tap that it does it by.
    fn each_tap(&self, pixel: usize, mut visit: impl FnMut(usize, usize)) {
        let (x, y) = (self.geometry.x, self.geometry.y);
        let outputs = |slide: Slide, at: usize| {
            (0..slide.kernel).filter_map(move |tap| {
                let from = (at + slide.pad).checked_sub(tap)?;
                (from % slide.stride == 0 && from / slide.stride < slide.outputs)
                    .then_some((tap, from / slide.stride))
            })
        };
        for (tap_y, out_y) in outputs(y, pixel / x.size) {
            for (tap_x, out_x) in outputs(x, pixel % x.size) {
                visit(out_y * x.outputs + out_x, tap_y * x.kernel + tap_x);
            }
        }
    }

    /// The constant weight of an average pool.
    fn constant<T: Element>(&self, bits: u16) -> Result<T, Fault> {
        let mut value = [T::default()];
        let size = self.weights.format.bits().div_ceil(8) as usize;
        T::decode(
            self.weights.format,
            0,
            &bits.to_le_bytes()[..size],
            &mut value,
        )
        .map_err(refused)?;
        Ok(value[0])
    }

    fn window(&self) -> Window {
        let (x, y) = (self.geometry.x, self.geometry.y);
        Window {
            size_x: x.size,
            size_y: y.size,
            channels: self.input.channels(&self.geometry),
            kernel_x: x.kernel,
            kernel_y: y.kernel,
            stride_x: x.stride,
            stride_y: y.stride,
            pad_left: x.pad,
            pad_up: y.pad,
            out_x: x.outputs,
            out_y: y.outputs,
        }
    }
}

fn refused(error: impl std::fmt::Display) -> Fault {
    Fault::program(error.to_string())
}
