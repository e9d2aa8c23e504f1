//! Pools over windows of depth, height and width.

use super::operation::Operation;
use super::quantize::integer_range;
use super::tensor::{Call, Values};
use super::volume::Volume;
use chipless_model::Fault;

/// A window that moves over depth, height and width, in this order in every array. Four-dimensional tensors have a depth of 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Places of the window.
    pub kernel: [u32; 3],
    /// Steps of the window.
    pub stride: [u32; 3],
    /// Distance of its places.
    pub dilation: [u32; 3],
    /// Places before the tensor.
    pub pad_begin: [u32; 3],
    /// Places after the tensor.
    pub pad_end: [u32; 3],
    /// A mean is over the places inside the tensor; else padding counts as zeros.
    pub exclude_pads: bool,
}

/// Where the tile of a max pool with indices lies in the whole tensors. Arrays are logical dims, outermost first, filled up
/// with leading ones (zeros) to five.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TilePosition {
    /// First dim of the flat index. Only indices into the whole tensor have been seen; they are what is computed.
    pub axis: i64,
    /// Sizes of the whole input.
    pub input_dims: [u32; 5],
    /// Sizes of the whole output.
    pub output_dims: [u32; 5],
    /// Of this tile's input in the whole input.
    pub input_offset: [u32; 5],
    /// Of this tile's output in the whole output.
    pub output_offset: [u32; 5],
}

/// The places of one window along one dim.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// First place inside the tensor.
    first: usize,
    /// Places inside the tensor.
    inside: usize,
    /// Places inside the padded tensor.
    padded: usize,
}

/// Spans of every output place of a dim.
fn spans(
    pool: &Pool,
    dim: usize,
    outputs: usize,
    output_offset: u32,
    inputs: usize,
    input_offset: u32,
    whole: usize,
) -> Vec<Span> {
    let [kernel, stride, dilation, pad_begin, pad_end] = [
        pool.kernel,
        pool.stride,
        pool.dilation,
        pool.pad_begin,
        pool.pad_end,
    ]
    .map(|values| i64::from(values[dim]));
    let (low, high) = (
        i64::from(input_offset),
        i64::from(input_offset) + inputs as i64,
    );
    let end = whole as i64 + pad_end;
    // Window places below a position.
    let below = |position: i64, start: i64| {
        (position - start + dilation - 1)
            .div_euclid(dilation)
            .clamp(0, kernel)
    };
    (0..outputs as i64)
        .map(|output| {
            let start = (output + i64::from(output_offset)) * stride - pad_begin;
            let skipped = below(low, start);
            Span {
                first: (start + skipped * dilation - low).max(0) as usize,
                inside: (below(high, start) - skipped) as usize,
                padded: below(end, start) as usize,
            }
        })
        .collect()
}

impl Pool {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        match &call.input(0)?.values {
            Values::Float(x) if call.operation == Operation::MaxPool => self
                .map(call, |window| largest(x, window, f32::NEG_INFINITY).0)
                .map(Values::Float),
            Values::Integer(x) if call.operation == Operation::MaxPool => {
                let lowest = integer_range(call.input(0)?.shape.element).0;
                self.map(call, |window| largest(x, window, lowest).0)
                    .map(Values::Integer)
            }
            _ => {
                let x = call.floats(0)?;
                let places = |span: &Span| {
                    if self.exclude_pads {
                        span.inside
                    } else {
                        span.padded
                    }
                };
                let mean = |window: &Window<'_>| {
                    let count = window.spans.iter().map(places).product::<usize>();
                    let mut sum = 0.0;
                    window.for_each(|at, _| sum += f64::from(x[at]));
                    if count == 0 {
                        0.0
                    } else {
                        (sum / count as f64) as f32
                    }
                };
                self.map(call, mean).map(Values::Float)
            }
        }
    }

    fn map<T: Copy + Default>(
        &self,
        call: Call<'_>,
        function: impl Fn(&Window<'_>) -> T,
    ) -> Result<Vec<T>, Fault> {
        let mut results = vec![T::default(); call.output(0)?.elements() as usize];
        self.windows(call, None, |output, window| {
            results[output] = function(window);
        })?;
        Ok(results)
    }

    /// The maxima and the flat index of each in the whole input; the first one of equals.
    pub(super) fn with_indices(
        &self,
        call: Call<'_>,
        tile: &TilePosition,
    ) -> Result<Vec<Values>, Fault> {
        let count = call.output(0)?.elements() as usize;
        call.expect_elements("indices", call.output(1)?, count)?;
        let x = call.floats(0)?;
        let (mut maxima, mut indices) = (vec![0.0; count], vec![0; count]);
        self.windows(call, Some(tile), |output, window| {
            (maxima[output], indices[output]) = largest(x, window, f32::NEG_INFINITY);
        })?;
        Ok(vec![Values::Float(maxima), Values::Integer(indices)])
    }

    /// Calls `visit` with the number of every output element and its window.
    fn windows(
        &self,
        call: Call<'_>,
        tile: Option<&TilePosition>,
        mut visit: impl FnMut(usize, &Window<'_>),
    ) -> Result<(), Fault> {
        let (input, output) = (&call.input(0)?.shape, call.output(0)?);
        let (x, y) = (Volume::new(call, input)?, Volume::new(call, output)?);
        if x.sizes[..2] != y.sizes[..2] || input.dims.len() != output.dims.len() {
            return Err(call.fault(format_args!(
                "batch and channels of {input} and {output} differ"
            )));
        }
        // Five dims are batch, channel and volume; four have their leading one first and no depth.
        let volume = |dims: [u32; 5], missing| {
            if input.dims.len() == 5 {
                dims
            } else {
                [dims[1], dims[2], missing, dims[3], dims[4]]
            }
        };
        let (whole, input_offset, output_offset) = match tile {
            Some(tile) => (
                volume(tile.input_dims, 1).map(|dim| dim as usize),
                volume(tile.input_offset, 0),
                volume(tile.output_offset, 0),
            ),
            None => (x.sizes, [0; 5], [0; 5]),
        };
        let along = |dim: usize| {
            let place = dim + 2;
            spans(
                self,
                dim,
                y.sizes[place],
                output_offset[place],
                x.sizes[place],
                input_offset[place],
                whole[place],
            )
        };
        let (depth, height, width) = (along(0), along(1), along(2));
        for batch in 0..y.sizes[0] {
            for channel in 0..y.sizes[1] {
                for (d, depth) in depth.iter().enumerate() {
                    for (h, height) in height.iter().enumerate() {
                        for (w, width) in width.iter().enumerate() {
                            let spans = [*depth, *height, *width];
                            let first = [batch, channel, depth.first, height.first, width.first];
                            let window = Window {
                                first,
                                spans,
                                dilation: self.dilation,
                                x: &x,
                                whole,
                                offset: input_offset,
                            };
                            visit(y.at([batch, channel, d, h, w]), &window);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Pools whose parts follow from the sizes: output place i of m takes places i·n/m, rounded down, to (i + 1)·n/m, rounded up.
pub(super) fn adaptive(call: Call<'_>) -> Result<Vec<Values>, Fault> {
    let (input, output) = (&call.input(0)?.shape, call.output(0)?);
    let (x, y) = (Volume::new(call, input)?, Volume::new(call, output)?);
    let (values, sizes) = (call.floats(0)?, call.integers(1)?);
    let wanted = &y.sizes[5 - sizes.len().min(3)..];
    if x.sizes[..2] != y.sizes[..2] || !sizes.iter().copied().eq(wanted.iter().map(|s| *s as i64)) {
        return Err(call.fault(format_args!("{input} to {sizes:?} does not give {output}")));
    }
    let mean = call.operation == Operation::AdaptiveAveragePool;
    let part = |dim: usize, place: usize| {
        let (n, m) = (x.sizes[dim], y.sizes[dim]);
        place * n / m..((place + 1) * n).div_ceil(m)
    };
    let count = output.elements() as usize;
    let (mut results, mut indices) = (vec![0.0; count], vec![0; count]);
    let [batches, channels, depths, rows, columns] = y.sizes;
    for outer in 0..batches * channels * depths {
        let (batch, channel, depth) = (
            outer / (channels * depths),
            outer / depths % channels,
            outer % depths,
        );
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)))
        {
            let (mut sum, mut taken, mut best) = (0.0f64, 0usize, (f32::NEG_INFINITY, 0));
            for d in part(2, depth) {
                for h in part(3, row) {
                    for w in part(4, column) {
                        let value = values[x.at([batch, channel, d, h, w])];
                        (sum, taken) = (sum + f64::from(value), taken + 1);
                        if value > best.0 {
                            best = (value, ((d * x.sizes[3] + h) * x.sizes[4] + w) as i64);
                        }
                    }
                }
            }
            let at = y.at([batch, channel, depth, row, column]);
            results[at] = if mean {
                (sum / taken as f64) as f32
            } else {
                best.0
            };
            indices[at] = best.1;
        }
    }
    let mut outputs = vec![Values::Float(results)];
    if !mean {
        call.expect_elements("indices", call.output(1)?, count)?;
        outputs.push(Values::Integer(indices));
    }
    Ok(outputs)
}

/// One window: its places inside the tensor.
struct Window<'a> {
    first: [usize; 5],
    spans: [Span; 3],
    dilation: [u32; 3],
    x: &'a Volume,
    whole: [usize; 5],
    offset: [u32; 5],
}

impl Window<'_> {
    /// Calls `visit` with the number of every element and its coordinates.
    fn for_each(&self, mut visit: impl FnMut(usize, [usize; 5])) {
        let [depth, height, width] = self.spans;
        let [dd, dh, dw] = self.dilation.map(|dilation| dilation as usize);
        let [batch, channel, d0, h0, w0] = self.first;
        for d in 0..depth.inside {
            for h in 0..height.inside {
                for w in 0..width.inside {
                    let index = [batch, channel, d0 + d * dd, h0 + h * dh, w0 + w * dw];
                    visit(self.x.at(index), index);
                }
            }
        }
    }

    /// Number of a place in the whole tensor, counted in the order batch, channel, depth, height, width.
    fn flat(&self, index: [usize; 5]) -> i64 {
        index
            .iter()
            .zip(self.offset)
            .zip(self.whole)
            .fold(0i64, |flat, ((index, offset), size)| {
                flat.wrapping_mul(size as i64)
                    .wrapping_add(*index as i64 + i64::from(offset))
            })
    }
}

/// The largest value of a window and its flat index in the whole tensor; `lowest` and 0 where the window is empty.
fn largest<T: Copy + PartialOrd>(x: &[T], window: &Window<'_>, lowest: T) -> (T, i64) {
    let mut best: Option<(T, [usize; 5])> = None;
    window.for_each(|at, index| {
        if best.is_none_or(|(value, _)| x[at] > value) {
            best = Some((x[at], index));
        }
    });
    best.map_or((lowest, 0), |(value, index)| (value, window.flat(index)))
}
