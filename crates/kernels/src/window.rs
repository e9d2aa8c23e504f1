//! Convolution and pooling over images stored row by row, channels innermost.
//!
//! Output `(x, y)` reads, for each tap `(i, j)` of the kernel, the input at `(x · stride_x + i - pad_left,
//! y · stride_y + j - pad_up)`; places outside the input are padding and contribute nothing. Images are `[y][x][channel]`.
//! Every output is one chain of additions over the taps, row by row, whatever the number of threads.

use crate::matrix::product::{Columns, Product};
use crate::matrix::rows::{Pieces, Rows};
use crate::matrix::{Matrix, MatrixMut, Panels};
use crate::room::Room;
use crate::wide::{Body, wide};
use crate::{Error, Number, Update};
use rayon::prelude::*;
use std::ops::Range;

#[cfg(test)]
mod tests;

/// How a kernel moves over an image. Any numbers are allowed: kernels larger than the image and outputs that read nothing
/// but padding are only padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Width of the input.
    pub size_x: usize,
    /// Height of the input.
    pub size_y: usize,
    /// Channels of the input.
    pub channels: usize,
    /// Width of the kernel.
    pub kernel_x: usize,
    /// Height of the kernel.
    pub kernel_y: usize,
    /// Input columns from one output to the next.
    pub stride_x: usize,
    /// Input rows from one output to the next.
    pub stride_y: usize,
    /// Columns of padding on the left.
    pub pad_left: usize,
    /// Rows of padding above.
    pub pad_up: usize,
    /// Width of the output.
    pub out_x: usize,
    /// Height of the output.
    pub out_y: usize,
}

/// Convolution over all channels: input `[y][x][c]`, weights `[k][j][i][c]`, output `[y][x][k]`, `k` being the output
/// channels.
pub fn convolve<T: Number>(
    window: &Window,
    input: &[T],
    weights: &[T],
    out_channels: usize,
    output: &mut [T::Sum],
    update: Update,
) -> Result<(), Error> {
    check_length(
        "weights",
        &[
            out_channels,
            window.kernel_y,
            window.kernel_x,
            window.channels,
        ],
        weights.len(),
    )?;
    let depth = weights.len().checked_div(out_channels).unwrap_or(0);
    let b = Columns::Transposed(Matrix::new(weights, out_channels, depth)?);
    let shape = [window.out_y, window.out_x, out_channels];
    check_length("output", &shape, output.len())?;
    let c = MatrixMut::new(output, window.out_x * window.out_y, out_channels)?;
    product(window, input, b, depth, c, update)
}

/// The same with weights that were [packed](Panels::transposed): a row for each output channel, `[j][i][c]`. Of the output, a row holds these
/// channels of a pixel. What weights [leave out](Panels::without_zeros) is not multiplied where no sum shows it.
pub fn convolve_packed<T: Number>(
    window: &Window,
    input: &[T],
    weights: &Panels<T>,
    output: MatrixMut<'_, T::Sum>,
    update: Update,
) -> Result<(), Error> {
    check_length(
        "weights",
        &[window.kernel_y, window.kernel_x, window.channels],
        weights.depth(),
    )?;
    check_length("output", &[window.out_y, window.out_x], output.rows)?;
    check_length("output channels", &[weights.columns()], output.columns)?;
    let skips = update == Update::Set && weights.can_skip(input);
    let panels = weights;
    let (b, depth) = (Columns::Packed { panels, skips }, weights.depth());
    product(window, input, b, depth, output, update)
}

/// A convolution as a product; the depth is that of B.
fn product<T: Number>(
    window: &Window,
    input: &[T],
    b: Columns<'_, T>,
    depth: usize,
    c: MatrixMut<'_, T::Sum>,
    update: Update,
) -> Result<(), Error> {
    window.check_input(input)?;
    if c.rows == 0 || c.columns == 0 {
        return Ok(());
    }
    let rows = window.out_x * window.out_y;
    let then = update.into();
    if window.sees_pixels() {
        let a = Rows::Stored(Matrix::new(input, rows, depth)?);
        Product { a, b, depth, then }.run(c);
        return Ok(());
    }
    if depth == 0 {
        // Outputs that see nothing are what they begin with.
        let a = Rows::Stored(Matrix::new(&[], rows, 0)?);
        Product { a, b, depth, then }.run(c);
        return Ok(());
    }
    let Some(padded) = window.padded(input) else {
        let positions = Positions::new(window);
        let seen = |position: usize, depth: Range<usize>, elements: &mut [T]| {
            positions.see(window, input, position, depth, elements);
        };
        let a = Rows::Made(&seen);
        Product { a, b, depth, then }.run(c);
        return Ok(());
    };
    let (elements, size_x) = match &padded {
        Padded::Within => (input, window.size_x),
        Padded::Copy { elements, size_x } => (&**elements, *size_x),
    };
    let pitch = size_x * window.channels;
    let starts: Vec<usize> = (0..rows)
        .map(|position| {
            let (x, y) = (position % window.out_x, position / window.out_x);
            y * window.stride_y * pitch + x * window.stride_x * window.channels
        })
        .collect();
    // Row `position` of the first operand is what the kernel sees there: `[j][i][c]`.
    let a = Rows::Pieces(Pieces {
        elements,
        starts: &starts,
        length: window.kernel_x * window.channels,
        pitch,
    });
    Product { a, b, depth, then }.run(c);
    Ok(())
}

/// Convolution of each channel by itself: input `[y][x][c]`, weights `[c][j][i]`, output `[y][x][c]`. Products are
/// rounded before they are added, except on `AArch64`.
pub fn depthwise<T: Number>(
    window: &Window,
    input: &[T],
    weights: &[T],
    output: &mut [T::Sum],
    update: Update,
) -> Result<(), Error> {
    check_length(
        "weights",
        &[window.channels, window.kernel_y, window.kernel_x],
        weights.len(),
    )?;
    depthwise_by_tap(
        window,
        input,
        &by_tap(weights, window.channels),
        output,
        update,
    )
}

/// Weights `[c][j][i]` in the order of use: `[j][i][c]`.
pub fn by_tap<T: Number>(weights: &[T], channels: usize) -> Vec<T> {
    let taps = weights.len().checked_div(channels).unwrap_or(0);
    let mut ordered = vec![T::default(); taps * channels];
    for (channel, weights) in weights.chunks_exact(taps.max(1)).take(channels).enumerate() {
        let places = ordered[channel..].iter_mut().step_by(channels);
        places
            .zip(weights)
            .for_each(|(place, weight)| *place = *weight);
    }
    ordered
}

/// The same as [`depthwise`] with weights in the [order of use](by_tap).
pub fn depthwise_by_tap<T: Number>(
    window: &Window,
    input: &[T],
    weights: &[T],
    output: &mut [T::Sum],
    update: Update,
) -> Result<(), Error> {
    check_length(
        "weights",
        &[window.kernel_y, window.kernel_x, window.channels],
        weights.len(),
    )?;
    let step = Depthwise {
        weights,
        width: window.kernel_x,
        update,
    };
    window.sweep(input, output, &step)
}

/// Does something with the input's pixel under each tap `[i, j]` inside the input, row by row. Not a function that takes a closure: of these
/// nobody knows whether they are inlined, and compiled for vectors.
macro_rules! each_tap {
    ($taps:expr, |$pixel:pat_param, $tap:pat_param| $body:expr) => {
        let Taps {
            window,
            input,
            across,
            down,
        } = *$taps;
        for (j, y) in down.taps.clone().zip(down.first..) {
            let row = &window.row(input, y)[across.first * window.channels..];
            let pixels = row.chunks_exact(window.channels);
            for (i, $pixel) in across.taps.clone().zip(pixels) {
                let $tap = [i, j];
                $body
            }
        }
    };
}

/// What a convolution does to each pixel of which each channel stands by itself; weights are in the order of use.
struct Depthwise<'a, T> {
    weights: &'a [T],
    /// Taps of a row of the kernel.
    width: usize,
    update: Update,
}

impl<T: Number> Depthwise<'_, T> {
    /// The sums of some channels, which stay in registers while all taps are added, in the order of these.
    #[allow(clippy::inline_always, reason = "as of `Row`")]
    #[inline(always)]
    fn sums<const COUNT: usize>(&self, first: usize, pixel: &mut [T::Sum], taps: &Taps<'_, T>) {
        let channels = taps.window.channels;
        let Some(place) = pixel[first..].first_chunk_mut::<COUNT>() else {
            return;
        };
        let mut sums = if self.update == Update::Set {
            [T::Sum::default(); COUNT]
        } else {
            *place
        };
        each_tap!(taps, |values, [i, j]| {
            let weights = &self.weights[(j * self.width + i) * channels + first..];
            let values = values[first..].first_chunk::<COUNT>();
            if let (Some(values), Some(weights)) = (values, weights.first_chunk::<COUNT>()) {
                for c in 0..COUNT {
                    sums[c] = values[c].multiply_add_to(weights[c], sums[c]);
                }
            }
        });
        *place = sums;
    }
}

impl<T: Number> Step<T, T::Sum> for Depthwise<'_, T> {
    #[allow(clippy::inline_always, reason = "as of `Row`")]
    #[inline(always)]
    fn pixel(&self, pixel: &mut [T::Sum], taps: &Taps<'_, T>) {
        let channels = taps.window.channels;
        let mut first = 0;
        while first + CHANNELS <= channels {
            self.sums::<CHANNELS>(first, pixel, taps);
            first += CHANNELS;
        }
        while first + 8 <= channels {
            self.sums::<8>(first, pixel, taps);
            first += 8;
        }
        while first < channels {
            self.sums::<1>(first, pixel, taps);
            first += 1;
        }
    }
}

/// The largest input under each tap: input `[y][x][c]`, output `[y][x][c]`. Where there is nothing but padding, negative
/// infinity or the least integer. NaN is passed over.
pub fn pool_max<T: Number>(window: &Window, input: &[T], output: &mut [T]) -> Result<(), Error> {
    window.sweep(input, output, &Largest)
}

/// The largest of each channel.
struct Largest;

impl<T: Number> Step<T, T> for Largest {
    #[allow(clippy::inline_always, reason = "as of `Row`")]
    #[inline(always)]
    fn pixel(&self, largest: &mut [T], taps: &Taps<'_, T>) {
        largest.fill(T::LOWEST);
        each_tap!(taps, |pixel, _| {
            for (largest, value) in largest.iter_mut().zip(pixel) {
                *largest = if *value > *largest { *value } else { *largest };
            }
        });
    }
}

/// The sum of the inputs under the taps: input `[y][x][c]`, output `[y][x][c]`.
pub fn pool_sum<T: Number>(
    window: &Window,
    input: &[T],
    output: &mut [T::Sum],
    update: Update,
) -> Result<(), Error> {
    window.sweep(input, output, &Sum(update))
}

/// The sum of each channel.
struct Sum(Update);

impl<T: Number> Step<T, T::Sum> for Sum {
    #[allow(clippy::inline_always, reason = "as of `Row`")]
    #[inline(always)]
    fn pixel(&self, sums: &mut [T::Sum], taps: &Taps<'_, T>) {
        if self.0 == Update::Set {
            sums.fill(T::Sum::default());
        }
        each_tap!(taps, |pixel, _| {
            for (sum, value) in sums.iter_mut().zip(pixel) {
                *sum = value.add_to(*sum);
            }
        });
    }
}

fn check_length(operand: &'static str, shape: &[usize], found: usize) -> Result<(), Error> {
    // Beyond 2^128 no slice is that long either.
    let expected = shape.iter().fold(1_u128, |product, size| {
        product.saturating_mul(*size as u128)
    });
    let expected = if shape.contains(&0) { 0 } else { expected };
    if expected == found as u128 {
        Ok(())
    } else {
        Err(Error::Length {
            operand,
            expected,
            found,
        })
    }
}

/// Channels whose sums a depthwise convolution holds in registers: enough of them to hide how long an addition takes.
const CHANNELS: usize = 32;

/// Numbers read from which on threads are worth it.
const PARALLEL: usize = 1 << 18;

/// An image with its padding has so many times the elements of the image, at most: small images have much padding.
const PADDED: usize = 16;

/// What all outputs see of an image.
enum Padded<T: Number> {
    /// No padding.
    Within,
    /// A copy with padding.
    Copy { elements: Room<T>, size_x: usize },
}

impl Window {
    fn check_input<T>(&self, input: &[T]) -> Result<(), Error> {
        check_length(
            "input",
            &[self.size_y, self.size_x, self.channels],
            input.len(),
        )
    }

    /// Whether each output sees one pixel of the input, in the order of these.
    fn sees_pixels(&self) -> bool {
        (self.kernel_x, self.kernel_y, self.pad_left, self.pad_up) == (1, 1, 0, 0)
            && (self.stride_x, self.stride_y) == (1, 1)
            && (self.size_x, self.size_y) == (self.out_x, self.out_y)
    }

    /// The input with zeros around it, as large as what all outputs see. `None` where these are many more than the input has elements. Only for
    /// outputs that are not empty, and kernels that see something.
    fn padded<T: Number>(&self, input: &[T]) -> Option<Padded<T>> {
        let seen = |outputs: usize, stride: usize, kernel: usize| {
            (outputs - 1).checked_mul(stride)?.checked_add(kernel)
        };
        let seen_x = seen(self.out_x, self.stride_x, self.kernel_x)?;
        let seen_y = seen(self.out_y, self.stride_y, self.kernel_y)?;
        let is_within = (self.pad_left, self.pad_up) == (0, 0)
            && seen_x <= self.size_x
            && seen_y <= self.size_y;
        if is_within {
            return Some(Padded::Within);
        }
        let pitch = seen_x.checked_mul(self.channels)?;
        let size = seen_y.checked_mul(pitch)?;
        if size > PADDED.saturating_mul(input.len()) {
            return None;
        }
        let mut elements = Room::take(size);
        let left = self.pad_left.min(seen_x) * self.channels;
        let copied = (self.size_x * self.channels).min(pitch - left);
        for (y, row) in elements.chunks_exact_mut(pitch).enumerate() {
            let Some(y) = y.checked_sub(self.pad_up).filter(|y| *y < self.size_y) else {
                row.fill(T::default());
                continue;
            };
            let (before, rest) = row.split_at_mut(left);
            let (inside, after) = rest.split_at_mut(copied);
            before.fill(T::default());
            inside.copy_from_slice(&self.row(input, y)[..copied]);
            after.fill(T::default());
        }
        Some(Padded::Copy {
            elements,
            size_x: seen_x,
        })
    }

    fn row<'a, T>(&self, input: &'a [T], y: usize) -> &'a [T] {
        let size = self.size_x * self.channels;
        &input[y * size..][..size]
    }

    /// Does `step` for each pixel of the output, with the taps of it that lie inside the input.
    fn sweep<T: Sync, S: Send>(
        &self,
        input: &[T],
        output: &mut [S],
        step: &impl Step<T, S>,
    ) -> Result<(), Error> {
        self.check_input(input)?;
        check_length(
            "output",
            &[self.out_y, self.out_x, self.channels],
            output.len(),
        )?;
        if output.is_empty() {
            return Ok(());
        }
        let positions = Positions::new(self);
        let row = |(down, pixels): (&Position, &mut [S])| {
            wide(Row {
                window: self,
                input,
                across: &positions.x,
                down,
                pixels,
                step,
            });
        };
        let lines = output.chunks_exact_mut(self.out_x * self.channels);
        let work = positions.taps().saturating_mul(self.channels);
        if work < PARALLEL {
            positions.y.iter().zip(lines).for_each(row);
        } else {
            positions
                .y
                .par_iter()
                .zip(output.par_chunks_exact_mut(self.out_x * self.channels))
                .for_each(row);
        }
        Ok(())
    }
}

/// What is done for each pixel of an output. Not a closure, as of [`each_tap`].
trait Step<T, S>: Sync {
    fn pixel(&self, pixel: &mut [S], taps: &Taps<'_, T>);
}

/// A row of output pixels and what [`Window::sweep`] does with it.
struct Row<'a, T, S, Act> {
    window: &'a Window,
    input: &'a [T],
    across: &'a [Position],
    down: &'a Position,
    pixels: &'a mut [S],
    step: &'a Act,
}

impl<T, S, Act: Step<T, S>> Body for Row<'_, T, S, Act> {
    #[allow(
        clippy::inline_always,
        reason = "the body must end up inside the function that enables the vector instructions"
    )]
    #[inline(always)]
    fn run(self) {
        let channels = self.window.channels;
        let pixels = self.pixels.chunks_exact_mut(channels);
        for (across, pixel) in self.across.iter().zip(pixels) {
            let taps = Taps {
                window: self.window,
                input: self.input,
                across,
                down: self.down,
            };
            self.step.pixel(pixel, &taps);
        }
    }
}

/// The taps of one output that lie inside the input.
#[derive(Clone, Copy)]
struct Taps<'a, T> {
    window: &'a Window,
    input: &'a [T],
    across: &'a Position,
    down: &'a Position,
}

/// The taps of one output position, along one side, that lie inside the input.
struct Position {
    taps: Range<usize>,
    /// Input under the first of them.
    first: usize,
}

impl Position {
    fn new(position: usize, stride: usize, pad: usize, kernel: usize, size: usize) -> Position {
        let (start, pad) = (position as u128 * stride as u128, pad as u128);
        // All of these are at most `kernel` or `size`, or not used.
        let end = (size as u128 + pad)
            .saturating_sub(start)
            .min(kernel as u128) as usize;
        let begin = pad.saturating_sub(start).min(end as u128) as usize;
        let first = if begin < end {
            (start + begin as u128 - pad) as usize
        } else {
            0
        };
        Position {
            taps: begin..end,
            first,
        }
    }

    /// The input under a tap; `None` for padding.
    fn input(&self, tap: usize) -> Option<usize> {
        self.taps
            .contains(&tap)
            .then(|| self.first + tap - self.taps.start)
    }

    /// Writes a row of the kernel's view, from element `start` on: the channels of tap after tap, padding being zero.
    fn copy<T: Copy + Default>(
        &self,
        channels: usize,
        row: &[T],
        start: usize,
        elements: &mut [T],
    ) {
        let (low, high) = (self.taps.start * channels, self.taps.end * channels);
        let end = start + elements.len();
        let begin = low.clamp(start, end);
        let finish = high.clamp(begin, end);
        let (before, rest) = elements.split_at_mut(begin - start);
        let (inside, after) = rest.split_at_mut(finish - begin);
        before.fill(T::default());
        after.fill(T::default());
        if !inside.is_empty() {
            inside.copy_from_slice(&row[self.first * channels + begin - low..][..finish - begin]);
        }
    }
}

/// The positions of an output, along both sides.
struct Positions {
    x: Vec<Position>,
    y: Vec<Position>,
}

impl Positions {
    /// Only for outputs that are not empty: their sides are as long as some slice, at most.
    fn new(window: &Window) -> Positions {
        let w = window;
        // An image without pixels has neither width nor height, lest its taps be endless.
        let (size_x, size_y) = if w.size_x == 0 || w.size_y == 0 {
            (0, 0)
        } else {
            (w.size_x, w.size_y)
        };
        Positions {
            x: (0..w.out_x)
                .map(|x| Position::new(x, w.stride_x, w.pad_left, w.kernel_x, size_x))
                .collect(),
            y: (0..w.out_y)
                .map(|y| Position::new(y, w.stride_y, w.pad_up, w.kernel_y, size_y))
                .collect(),
        }
    }

    /// Some elements of what the kernel sees from an output: `[j][i][c]`, padding being zero.
    fn see<T: Number>(
        &self,
        window: &Window,
        input: &[T],
        position: usize,
        depth: Range<usize>,
        mut elements: &mut [T],
    ) {
        let (across, down) = (
            &self.x[position % window.out_x],
            &self.y[position / window.out_x],
        );
        let row_depth = window.kernel_x * window.channels;
        let mut start = depth.start;
        while start < depth.end {
            let tap = start / row_depth;
            let row_start = tap * row_depth;
            let end = depth.end.min(row_start + row_depth);
            let (row, rest) = std::mem::take(&mut elements).split_at_mut(end - start);
            match down.input(tap) {
                Some(y) => across.copy(
                    window.channels,
                    window.row(input, y),
                    start - row_start,
                    row,
                ),
                None => row.fill(T::default()),
            }
            elements = rest;
            start = end;
        }
    }

    /// Taps inside the input, of all positions.
    fn taps(&self) -> usize {
        let along = |positions: &[Position]| {
            positions
                .iter()
                .map(|position| position.taps.len())
                .fold(0, usize::saturating_add)
        };
        along(&self.x).saturating_mul(along(&self.y))
    }
}
