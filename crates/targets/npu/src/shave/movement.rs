//! Operations that move elements to places that the shapes give: gather and scatter of slices, borders, permutations, blocks.

use super::index::{pick, place, scatter};
use super::tensor::{Call, Shape, Values};
use super::volume::Volume;
use chipless_model::Fault;

/// The value of no place: a border.
const NOWHERE: usize = usize::MAX;

/// The values at the given places; `value` at those that are nowhere.
fn pick_or(values: &Values, places: &[usize], value: f32) -> Values {
    match values {
        Values::Float(values) => Values::Float(
            places
                .iter()
                .map(|at| values.get(*at).copied().unwrap_or(value))
                .collect(),
        ),
        Values::Integer(values) => Values::Integer(
            places
                .iter()
                .map(|at| values.get(*at).copied().unwrap_or(value as i64))
                .collect(),
        ),
    }
}

/// For every element of `output` in order, the place that its coordinates, innermost first, have in another tensor.
pub(super) fn places(output: &Shape, mut place: impl FnMut(&[usize]) -> usize) -> Vec<usize> {
    let mut coordinates = vec![0; output.dims.len()];
    (0..output.elements())
        .map(|_| {
            let at = place(&coordinates);
            for (coordinate, size) in coordinates.iter_mut().zip(&output.dims) {
                *coordinate += 1;
                if *coordinate < *size as usize {
                    break;
                }
                *coordinate = 0;
            }
            at
        })
        .collect()
}

/// Element `i` of an axis comes from `i − shift`, counted around. Axes are those of the model, outermost 0; negative ones count from
/// the end. One shift may be that of all axes.
pub(super) fn roll(call: Call<'_>) -> Result<Values, Fault> {
    let (x, shifts, axes) = (call.input(0)?, call.integers(1)?, call.integers(2)?);
    let output = call.output(0)?;
    if x.shape.dims != output.dims || (shifts.len() != 1 && shifts.len() != axes.len()) {
        let (count, axes) = (shifts.len(), axes.len());
        return Err(call.fault(format_args!(
            "{} with {count} shifts of {axes} axes does not give {output}",
            x.shape
        )));
    }
    let rank = output.dims.len();
    let mut back = vec![0; rank];
    for (number, axis) in axes.iter().enumerate() {
        let logical = if *axis < 0 {
            axis.checked_add(rank as i64)
        } else {
            Some(*axis)
        };
        let logical = logical.and_then(|axis| usize::try_from(axis).ok());
        let axis = call.memory_axis(&x.shape, logical.unwrap_or(rank))?;
        let size = i64::from(output.dims[axis]);
        let shift = shifts.get(number).or(shifts.first()).copied().unwrap_or(0);
        back[axis] = (back[axis] - shift.rem_euclid(size)).rem_euclid(size);
    }
    let picked = places(output, |coordinates| {
        let around = coordinates.iter().zip(&back).zip(&output.dims);
        let from = around.map(|((at, back), size)| (at + *back as usize) % *size as usize);
        x.shape.number_at(from)
    });
    Ok(pick(&x.values, &picked))
}

/// Selects slices along a memory dim, innermost 0, with indices of their own for each batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gather {
    /// The dim.
    pub axis: usize,
    /// Outermost dims that x and the indices share.
    pub batch_dims: usize,
    /// Dims of the indices in the model; the reference fills them up with ones.
    pub index_rank: usize,
}

impl Gather {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (x, indices) = (call.input(0)?, call.integers(1)?);
        let around = call.around(&x.shape, self.axis)?;
        let outermost = x.shape.dims.iter().rev().take(self.batch_dims);
        let batches: usize = outermost.map(|dim| *dim as usize).product();
        if self.axis + self.batch_dims >= x.shape.dims.len()
            || !indices.len().is_multiple_of(batches)
        {
            return Err(call.fault(format_args!(
                "{} batch dims and axis {} of {}, with {} indices",
                self.batch_dims,
                self.axis,
                x.shape,
                indices.len()
            )));
        }
        let outer = around.outer / batches;
        let mut picked = Vec::with_capacity(call.output(0)?.elements() as usize);
        for (batch, indices) in indices.chunks_exact(indices.len() / batches).enumerate() {
            for row in batch * outer..(batch + 1) * outer {
                for index in indices {
                    let start =
                        (row * around.size + place(call, *index, around.size)?) * around.inner;
                    picked.extend(start..start + around.inner);
                }
            }
        }
        Ok(pick(&x.values, &picked))
    }
}

/// Writes slices along a memory dim, innermost 0: `y[…, indices[k], …] = updates[…, k, …]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScatterUpdate {
    /// The dim.
    pub axis: usize,
}

impl ScatterUpdate {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (x, indices, updates) = (call.input(0)?, call.integers(1)?, call.input(2)?);
        let around = call.around(&x.shape, self.axis)?;
        let count = around.outer * indices.len() * around.inner;
        call.expect_elements("updates", &updates.shape, count)?;
        let mut at = Vec::with_capacity(count);
        for row in 0..around.outer {
            for index in indices {
                let start = (row * around.size + place(call, *index, around.size)?) * around.inner;
                at.extend(start..start + around.inner);
            }
        }
        match (&x.values, &updates.values) {
            (Values::Float(x), Values::Float(updates)) => {
                Ok(Values::Float(scatter(x, &at, updates, |_, update| update)))
            }
            (Values::Integer(x), Values::Integer(updates)) => {
                Ok(Values::Integer(scatter(x, &at, updates, |_, update| {
                    update
                })))
            }
            _ => Err(call.fault(format_args!("updates {} for {}", updates.shape, x.shape))),
        }
    }
}

/// What a border holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PadMode {
    /// One value.
    Constant,
    /// The element at the edge.
    Edge,
    /// The tensor reflected, without the edge.
    Reflect,
    /// The tensor reflected, with the edge.
    Symmetric,
}

/// A border around a tensor. Arrays are memory dims, innermost first.
#[derive(Clone, Debug, PartialEq)]
pub struct Pad {
    /// Places before.
    pub begin: Vec<u32>,
    /// Places after.
    pub end: Vec<u32>,
    /// The value of a constant border.
    pub value: f32,
    /// What the border holds.
    pub mode: PadMode,
}

impl Pad {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (x, output) = (call.input(0)?, call.output(0)?);
        let sizes = x.shape.dims.iter().zip(&self.begin).zip(&self.end);
        let padded = sizes
            .map(|((size, begin), end)| u64::from(*size) + u64::from(*begin) + u64::from(*end));
        if !padded.eq(output.dims.iter().map(|dim| u64::from(*dim))) {
            return Err(call.fault(format_args!(
                "{} with {:?} before and {:?} after does not give {output}",
                x.shape, self.begin, self.end
            )));
        }
        let picked = places(output, |coordinates| {
            let (mut at, mut stride) = (0, 1);
            for ((coordinate, begin), size) in
                coordinates.iter().zip(&self.begin).zip(&x.shape.dims)
            {
                let size = *size as usize;
                match self.inside(*coordinate as i64 - i64::from(*begin), size as i64) {
                    Some(place) => at += place * stride,
                    None => return NOWHERE,
                }
                stride *= size;
            }
            at
        });
        Ok(pick_or(&x.values, &picked, self.value))
    }

    /// The place of the tensor whose element stands at a place that may be outside.
    fn inside(&self, place: i64, size: i64) -> Option<usize> {
        if (0..size).contains(&place) {
            return Some(place as usize);
        }
        let reflected = |period: i64, last: i64| {
            let place = place.rem_euclid(period.max(1));
            if place < size { place } else { last - place }
        };
        let place = match self.mode {
            PadMode::Constant => return None,
            PadMode::Edge => place.clamp(0, size - 1),
            PadMode::Reflect => reflected(2 * size - 2, 2 * size - 2),
            PadMode::Symmetric => reflected(2 * size, 2 * size - 1),
        };
        Some(place as usize)
    }
}

/// Another order of memory dims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permute {
    /// For each memory dim of the output, innermost first, that of x.
    pub from: Vec<usize>,
}

impl Permute {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (x, output) = (call.input(0)?, call.output(0)?);
        let rank = x.shape.dims.len();
        let fits = |(dim, from): (&u32, &usize)| x.shape.dims.get(*from) == Some(dim);
        let each_once = (0..rank).all(|dim| self.from.contains(&dim));
        if output.dims.len() != rank || !each_once || !output.dims.iter().zip(&self.from).all(fits)
        {
            return Err(call.fault(format_args!(
                "{} in the order {:?} does not give {output}",
                x.shape, self.from
            )));
        }
        let strides: Vec<usize> = self
            .from
            .iter()
            .map(|dim| call.around(&x.shape, *dim).map(|around| around.inner))
            .collect::<Result<_, _>>()?;
        let picked = places(output, |coordinates| {
            coordinates
                .iter()
                .zip(&strides)
                .map(|(at, stride)| at * stride)
                .sum()
        });
        Ok(pick(&x.values, &picked))
    }
}

/// Blocks of space to the batch or back. Arrays are logical dims, outermost first; the first is the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceBatch {
    /// Places of a block.
    pub block: Vec<u32>,
    /// Places padded or cropped before.
    pub begin: Vec<u32>,
    /// Places padded or cropped after.
    pub end: Vec<u32>,
}

impl SpaceBatch {
    /// Of the two tensors one is spatial: its places in block `b` of batch `n` are those of batch `b · batches + n` of the other.
    pub(super) fn evaluate(&self, call: Call<'_>, to_batch: bool) -> Result<Values, Fault> {
        let (x, output) = (call.input(0)?, call.output(0)?);
        let (space, blocks) = if to_batch {
            (&x.shape, output)
        } else {
            (output, &x.shape)
        };
        let rank = self.block.len();
        let axes = |shape: &Shape| -> Result<Vec<usize>, Fault> {
            (0..rank).map(|dim| call.memory_axis(shape, dim)).collect()
        };
        let (space_axes, block_axes) = (axes(space)?, axes(blocks)?);
        let count: u64 = self
            .block
            .iter()
            .skip(1)
            .map(|dim| u64::from(*dim))
            .product();
        let fits = |dim: usize| {
            let (space, blocks) = (
                u64::from(space.dims[space_axes[dim]]),
                u64::from(blocks.dims[block_axes[dim]]),
            );
            if dim == 0 {
                self.block[0] == 1 && blocks == space * count
            } else {
                let padded = space + u64::from(self.begin[dim]) + u64::from(self.end[dim]);
                padded == blocks * u64::from(self.block[dim])
            }
        };
        if x.shape.dims.len() != rank || output.dims.len() != rank || !(0..rank).all(fits) {
            return Err(call.fault(format_args!(
                "{} in blocks of {:?} does not give {output}",
                x.shape, self.block
            )));
        }
        let stride =
            |shape: &Shape, axis: usize| call.around(shape, axis).map(|around| around.inner);
        let strides: Vec<usize> = if to_batch { &space_axes } else { &block_axes }
            .iter()
            .map(|axis| stride(&x.shape, *axis))
            .collect::<Result<_, _>>()?;
        let batches = space.dims[space_axes[0]] as usize;
        let picked = places(output, |coordinates| {
            if to_batch {
                let batch = coordinates[block_axes[0]];
                let (mut rest, mut at) = (batch / batches, batch % batches * strides[0]);
                for dim in (1..rank).rev() {
                    let block = self.block[dim] as usize;
                    let padded = coordinates[block_axes[dim]] * block + rest % block;
                    rest /= block;
                    let place = padded.wrapping_sub(self.begin[dim] as usize);
                    if place >= space.dims[space_axes[dim]] as usize {
                        return NOWHERE;
                    }
                    at += place * strides[dim];
                }
                at
            } else {
                let (mut number, mut at) = (0, 0);
                for dim in 1..rank {
                    let block = self.block[dim] as usize;
                    let place = coordinates[space_axes[dim]] + self.begin[dim] as usize;
                    number = number * block + place % block;
                    at += place / block * strides[dim];
                }
                at + (number * batches + coordinates[space_axes[0]]) * strides[0]
            }
        });
        Ok(pick_or(&x.values, &picked, 0.0))
    }
}

/// Zeros around an image, so that there is a patch for every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchPadding {
    /// As many as patches need, an odd one before the image.
    SameLower,
    /// As many as patches need, an odd one after the image.
    SameUpper,
    /// None.
    Valid,
}

/// Patches of height and width, each becoming the channels of one place: channels of x innermost, then columns, then rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImagePatches {
    /// Height and width of a patch.
    pub kernel: [u32; 2],
    /// Steps from patch to patch.
    pub stride: [u32; 2],
    /// Distance of the places of a patch.
    pub rate: [u32; 2],
    /// How the border is padded with zeros.
    pub padding: PatchPadding,
}

impl ImagePatches {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (input, output) = (call.input(0)?, call.output(0)?);
        let (x, y) = (Volume::new(call, &input.shape)?, Volume::new(call, output)?);
        let [kernel, stride, rate] =
            [self.kernel, self.stride, self.rate].map(|pair| pair.map(|value| value as usize));
        // Places that patches take along an axis beyond those of the image.
        let missing = |axis: usize| {
            let last = (y.sizes[3 + axis] - 1) * stride[axis] + (kernel[axis] - 1) * rate[axis];
            (last + 1).saturating_sub(x.sizes[3 + axis])
        };
        let before = [0, 1].map(|axis| match self.padding {
            PatchPadding::SameLower => missing(axis).div_ceil(2),
            PatchPadding::SameUpper => missing(axis) / 2,
            PatchPadding::Valid => 0,
        });
        let fits = |axis: usize| self.padding != PatchPadding::Valid || missing(axis) == 0;
        if y.sizes[0] != x.sizes[0]
            || y.sizes[1] != x.sizes[1] * kernel[0] * kernel[1]
            || !(fits(0) && fits(1))
        {
            return Err(call.fault(format_args!(
                "{} in patches of {:?} does not give {output}",
                input.shape, self.kernel
            )));
        }
        let mut picked = vec![0; output.elements() as usize];
        for batch in 0..y.sizes[0] {
            for channel in 0..y.sizes[1] {
                let (patch, from) = (channel / x.sizes[1], channel % x.sizes[1]);
                let (down, across) = (patch / kernel[1] * rate[0], patch % kernel[1] * rate[1]);
                for row in 0..y.sizes[3] {
                    for column in 0..y.sizes[4] {
                        let v = (row * stride[0] + down).checked_sub(before[0]);
                        let h = (column * stride[1] + across).checked_sub(before[1]);
                        let inside = v
                            .filter(|v| *v < x.sizes[3])
                            .zip(h.filter(|h| *h < x.sizes[4]));
                        picked[y.at([batch, channel, 0, row, column])] =
                            inside.map_or(NOWHERE, |(v, h)| x.at([batch, from, 0, v, h]));
                    }
                }
            }
        }
        Ok(pick_or(&input.values, &picked, 0.0))
    }
}

/// Repeats along every dim as often as the output has room for.
pub(super) fn tile(call: Call<'_>) -> Result<Values, Fault> {
    let (input, output) = (&call.input(0)?.shape, call.output(0)?);
    let fits = |(from, to): (&u32, &u32)| to.is_multiple_of(*from);
    if input.dims.len() != output.dims.len() || !input.dims.iter().zip(&output.dims).all(fits) {
        return Err(call.fault(format_args!("{input} does not repeat to {output}")));
    }
    let (mut places, mut stride) = (vec![0], 1);
    for (from, to) in input.dims.iter().zip(&output.dims) {
        places = (0..*to)
            .flat_map(|at| {
                let own = (at % from) as usize * stride;
                places.iter().map(move |place| place + own)
            })
            .collect();
        stride *= *from as usize;
    }
    Ok(pick(&call.input(0)?.values, &places))
}
