//! The sums: what the multipliers make of a window of activations and the weights.

use super::formats::Number;
use super::weights::Entry;
use super::window::{self, Window};
use super::workload::{Operation, Workload};
use chipless_model::Fault;

/// Weights that are held dense at a time; channels beyond are done in groups. More than the memory of a tile holds.
const DENSE_WEIGHTS: usize = 4 << 20;

/// Arithmetic of a class of numbers.
pub(super) trait Arithmetic: Number {
    /// What accumulators hold: floats, or 32-bit integers that wrap.
    type Sum: Copy + Default;

    fn convolve(window: &Window, input: &[Self], weights: &[Self], outputs: usize) -> Result<Vec<Self::Sum>, Fault>;
    fn depthwise(window: &Window, input: &[Self], weights: &[Self]) -> Result<Vec<Self::Sum>, Fault>;
    fn pool_max(window: &Window, input: &[Self]) -> Result<Vec<Self::Sum>, Fault>;
    fn pool_sum(window: &Window, input: &[Self]) -> Result<Vec<Self::Sum>, Fault>;

    /// `sum + a · b`.
    fn multiply_add(sum: Self::Sum, a: Self, b: Self) -> Self::Sum;

    /// `sum · factor`.
    fn scale(sum: Self::Sum, factor: Self) -> Self::Sum;

    /// `a · scale_a + b · scale_b`.
    fn scaled_add(a: Self, scale_a: u16, b: Self, scale_b: u16) -> Self::Sum;

    /// Replaces values that make anything but zero of a product with zero, infinities and NaNs, by zero.
    fn take_non_finite(input: &mut [Self]) -> Vec<(usize, Self)>;
}

impl Arithmetic for f32 {
    type Sum = f32;

    fn convolve(window: &Window, input: &[f32], weights: &[f32], outputs: usize) -> Result<Vec<f32>, Fault> {
        Ok(window::convolve(window, input, weights, outputs))
    }

    fn depthwise(window: &Window, input: &[f32], weights: &[f32]) -> Result<Vec<f32>, Fault> {
        Ok(window::depthwise(window, input, weights))
    }

    fn pool_max(window: &Window, input: &[f32]) -> Result<Vec<f32>, Fault> {
        Ok(window::pool_max(window, input))
    }

    fn pool_sum(window: &Window, input: &[f32]) -> Result<Vec<f32>, Fault> {
        Ok(window::pool_sum(window, input))
    }

    fn multiply_add(sum: f32, a: f32, b: f32) -> f32 {
        sum + a * b
    }

    fn scale(sum: f32, factor: f32) -> f32 {
        sum * factor
    }

    fn scaled_add(a: f32, scale_a: u16, b: f32, scale_b: u16) -> f32 {
        a * f32::from(scale_a) + b * f32::from(scale_b)
    }

    fn take_non_finite(input: &mut [f32]) -> Vec<(usize, f32)> {
        let taken = input.iter_mut().enumerate().filter(|(_, value)| !value.is_finite());
        taken.map(|(index, value)| (index, std::mem::take(value))).collect()
    }
}

impl Arithmetic for i16 {
    type Sum = i32;

    fn convolve(window: &Window, input: &[i16], weights: &[i16], outputs: usize) -> Result<Vec<i32>, Fault> {
        Ok(window::convolve(window, input, weights, outputs))
    }

    fn depthwise(window: &Window, input: &[i16], weights: &[i16]) -> Result<Vec<i32>, Fault> {
        Ok(window::depthwise(window, input, weights))
    }

    fn pool_max(window: &Window, input: &[i16]) -> Result<Vec<i32>, Fault> {
        Ok(window::pool_max(window, input))
    }

    fn pool_sum(window: &Window, input: &[i16]) -> Result<Vec<i32>, Fault> {
        Ok(window::pool_sum(window, input))
    }

    fn multiply_add(sum: i32, a: i16, b: i16) -> i32 {
        sum.wrapping_add(i32::from(a) * i32::from(b))
    }

    fn scale(sum: i32, factor: i16) -> i32 {
        sum.wrapping_mul(i32::from(factor))
    }

    fn scaled_add(a: i16, scale_a: u16, b: i16, scale_b: u16) -> i32 {
        // 9 bits times 16, twice: 26 bits.
        i32::from(a) * i32::from(scale_a) + i32::from(b) * i32::from(scale_b)
    }

    fn take_non_finite(_: &mut [i16]) -> Vec<(usize, i16)> {
        Vec::new()
    }
}

impl Workload {
    /// The sums of the box, `[y][x][k]`.
    pub(super) fn sums<T: Arithmetic>(&self, tile: &[u8], table: &[Entry]) -> Result<Vec<T::Sum>, Fault> {
        let mut input: Vec<T> = self.input.gather(tile, &self.geometry)?;
        match self.operation {
            Operation::Convolution => self.convolution(tile, table, &mut input),
            Operation::Depthwise => self.depthwise(tile, table, &mut input),
            Operation::MaxPool => T::pool_max(&self.window(), &input),
            Operation::AveragePool { weight } => {
                let weight = self.constant(weight)?;
                let sums = T::pool_sum(&self.window(), &input)?;
                Ok(sums.into_iter().map(|sum| T::scale(sum, weight)).collect())
            }
            Operation::Add { scale_a, scale_b } => {
                let second: Vec<T> = match &self.second {
                    Some(second) => second.gather(tile, &self.geometry)?,
                    None => Vec::new(),
                };
                Ok(input.into_iter().zip(second).map(|(a, b)| T::scaled_add(a, scale_a, b, scale_b)).collect())
            }
        }
    }

    fn convolution<T: Arithmetic>(&self, tile: &[u8], table: &[Entry], input: &mut [T]) -> Result<Vec<T::Sum>, Fault> {
        let window = self.window();
        let channels = self.input.channels(&self.geometry);
        let each = self.geometry.taps() * channels;
        let hidden = if self.weights.dense { Vec::new() } else { T::take_non_finite(input) };
        let mut whole = Vec::new();
        let group = (DENSE_WEIGHTS / each).max(1);
        for (number, entries) in table.chunks(group).enumerate() {
            let first = number * group;
            let weights: Vec<T> = self.weights.gather(tile, entries, first, each)?;
            let mut sums = T::convolve(&window, input, &weights, entries.len())?;
            if !hidden.is_empty() {
                let present = self.presence(tile, entries, first, each)?;
                for (index, value) in &hidden {
                    self.each_tap(index / channels, |position, tap| {
                        let sums = &mut sums[position * entries.len()..][..entries.len()];
                        for (k, sum) in sums.iter_mut().enumerate() {
                            let weight = k * each + tap * channels + index % channels;
                            if present[weight] {
                                *sum = T::multiply_add(*sum, *value, weights[weight]);
                            }
                        }
                    });
                }
            }
            if entries.len() == table.len() {
                return Ok(sums);
            }
            whole.resize(sums.len() / entries.len() * table.len(), T::Sum::default());
            for (whole, sums) in whole.chunks_exact_mut(table.len()).zip(sums.chunks_exact(entries.len())) {
                whole[first..][..sums.len()].copy_from_slice(sums);
            }
        }
        Ok(whole)
    }

    fn depthwise<T: Arithmetic>(&self, tile: &[u8], table: &[Entry], input: &mut [T]) -> Result<Vec<T::Sum>, Fault> {
        let (taps, channels) = (self.geometry.taps(), self.geometry.channels);
        let hidden = if self.weights.dense { Vec::new() } else { T::take_non_finite(input) };
        let weights: Vec<T> = self.weights.gather(tile, table, 0, taps)?;
        let mut sums = T::depthwise(&self.window(), input, &weights)?;
        if !hidden.is_empty() {
            let present = self.presence(tile, table, 0, taps)?;
            for (index, value) in &hidden {
                let channel = index % channels;
                self.each_tap(index / channels, |position, tap| {
                    let (sum, weight) = (&mut sums[position * channels + channel], channel * taps + tap);
                    if present[weight] {
                        *sum = T::multiply_add(*sum, *value, weights[weight]);
                    }
                });
            }
        }
        Ok(sums)
    }

    /// Which of the weights of these channels are stored.
    fn presence(&self, tile: &[u8], entries: &[Entry], first: usize, each: usize) -> Result<Vec<bool>, Fault> {
        let mut present = Vec::with_capacity(entries.len() * each);
        for (channel, entry) in (first..).zip(entries) {
            present.extend(self.weights.presence(tile, entry, channel, each)?);
        }
        Ok(present)
    }

    /// Calls with every output position that looks at a pixel of the window, and with the tap that it does it by.
    fn each_tap(&self, pixel: usize, mut visit: impl FnMut(usize, usize)) {
        let (x, y) = (self.geometry.x, self.geometry.y);
        let outputs = |slide: super::geometry::Slide, at: usize| {
            (0..slide.kernel).filter_map(move |tap| {
                let from = (at + slide.pad).checked_sub(tap)?;
                (from % slide.stride == 0 && from / slide.stride < slide.outputs).then_some((tap, from / slide.stride))
            })
        };
        for (tap_y, out_y) in outputs(y, pixel / x.size) {
            for (tap_x, out_x) in outputs(x, pixel % x.size) {
                visit(out_y * x.outputs + out_x, tap_y * x.kernel + tap_x);
            }
        }
    }

    /// The constant weight of an average pool.
    fn constant<T: Arithmetic>(&self, bits: u16) -> Result<T, Fault> {
        let mut value = [T::default()];
        let bytes = bits.to_le_bytes();
        let size = self.weights.format.bits().div_ceil(8) as usize;
        T::decode(self.weights.format, 0, &bytes[..size], &mut value).map_err(|e| Fault::program(format!("pool_wt_data: {e}")))?;
        Ok(value[0])
    }

    fn window(&self) -> Window {
        let (x, y) = (self.geometry.x, self.geometry.y);
        Window {
            height: y.size,
            width: x.size,
            channels: self.input.channels(&self.geometry),
            ky: y.kernel,
            kx: x.kernel,
            sy: y.stride,
            sx: x.stride,
            top: y.pad,
            left: x.pad,
            oh: y.outputs,
            ow: x.outputs,
        }
    }
}
