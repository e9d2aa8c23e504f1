//! Operations that move elements to or from places that are data: gather, scatter, one-hot, reversal, top-k.
//!
//! An index counts from 0, a negative one from the end of its dim, as in ONNX; any other is a fault. What a kernel
//! itself does with an index outside of its dim is not known.

use super::tensor::{Around, Call, Shape, Values};
use chipless_model::{Fault, Kind};

pub(super) fn place(call: Call<'_>, index: i64, size: usize) -> Result<usize, Fault> {
    let from_start = if index < 0 {
        index.checked_add(size as i64)
    } else {
        Some(index)
    };
    from_start
        .and_then(|index| usize::try_from(index).ok())
        .filter(|index| *index < size)
        .ok_or_else(|| call.fault(format_args!("index {index} is outside of a dim of {size}")))
}

/// The values at the given places.
pub(super) fn pick(values: &Values, places: &[usize]) -> Values {
    match values {
        Values::Float(values) => Values::Float(places.iter().map(|at| values[*at]).collect()),
        Values::Integer(values) => Values::Integer(places.iter().map(|at| values[*at]).collect()),
    }
}

/// For every element of a tensor of indices, the element of `target` with the same coordinates but the index along `axis`.
fn along_axis(
    call: Call<'_>,
    target: &Shape,
    indices: &Shape,
    values: &[i64],
    axis: usize,
) -> Result<Vec<usize>, Fault> {
    let around = call.around(target, axis)?;
    let fits = |(dim, (index, target)): (usize, (&u32, &u32))| dim == axis || index <= target;
    if indices.dims.len() != target.dims.len()
        || !indices.dims.iter().zip(&target.dims).enumerate().all(fits)
    {
        return Err(call.fault(format_args!(
            "indices {indices} do not fit {target} along axis {axis}"
        )));
    }
    let mut places = Vec::with_capacity(values.len());
    let mut coordinates = vec![0usize; target.dims.len()];
    for index in values {
        let mut at = place(call, *index, around.size)? * around.inner;
        let mut stride = 1;
        for (dim, (coordinate, size)) in coordinates.iter().zip(&target.dims).enumerate() {
            if dim != axis {
                at += coordinate * stride;
            }
            stride *= *size as usize;
        }
        places.push(at);
        for (coordinate, size) in coordinates.iter_mut().zip(&indices.dims) {
            *coordinate += 1;
            if *coordinate < *size as usize {
                break;
            }
            *coordinate = 0;
        }
    }
    Ok(places)
}

/// Selects elements along a memory dim, innermost 0: y[…, i, …] = x[…, indices[…, i, …], …].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatherElements {
    /// The dim.
    pub axis: usize,
}

impl GatherElements {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (x, indices) = (call.input(0)?, call.input(1)?);
        let places = along_axis(call, &x.shape, &indices.shape, call.integers(1)?, self.axis)?;
        Ok(pick(&x.values, &places))
    }
}

/// Element offsets of the slices that index tuples name. `dims` are the indexed ones, outermost first; a tuple is
/// consecutive, its outermost coordinate first.
fn tuples(
    call: Call<'_>,
    indices: &[i64],
    dims: &[usize],
    slice: usize,
) -> Result<Vec<usize>, Fault> {
    let offset = |tuple: &[i64]| {
        let number = tuple
            .iter()
            .zip(dims)
            .try_fold(0, |number, (index, size)| {
                Ok(number * size + place(call, *index, *size)?)
            })?;
        Ok(number * slice)
    };
    if dims.is_empty() {
        Ok(Vec::new())
    } else {
        indices.chunks_exact(dims.len()).map(offset).collect()
    }
}

/// Selects slices by tuples of indices, the innermost dim of input 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatherNd {
    /// Outermost dims that x and indices share; leading dims of one count.
    pub batch_dims: usize,
    /// Sizes of x, innermost first; the reference holds it flattened.
    pub dims: Vec<u32>,
}

impl GatherNd {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (x, indices) = (call.input(0)?, &call.input(1)?.shape);
        let sizes: Vec<usize> = self.dims.iter().rev().map(|dim| *dim as usize).collect();
        let width = indices.dims.first().map_or(0, |dim| *dim as usize);
        let count = sizes
            .iter()
            .try_fold(1usize, |count, size| count.checked_mul(*size));
        call.expect_elements("x", &x.shape, count.unwrap_or(usize::MAX))?;
        let parts = sizes
            .split_at_checked(self.batch_dims)
            .and_then(|(batch, rest)| Some((batch, rest.split_at_checked(width)?)));
        let Some((batch, (indexed, slice))) = parts else {
            return Err(call.fault(format_args!(
                "{} batch dims and {width} indices for dims {sizes:?}",
                self.batch_dims
            )));
        };
        let batches: usize = batch.iter().product();
        let (batch_size, slice) = (
            indexed.iter().chain(slice).product::<usize>(),
            slice.iter().product::<usize>(),
        );
        let values = call.integers(1)?;
        if !values.len().is_multiple_of(batches * width) {
            return Err(call.fault(format_args!(
                "indices {indices} do not divide into {batches} batches"
            )));
        }
        let per_batch = values.len() / batches;
        let mut places = Vec::with_capacity(call.output(0)?.elements() as usize);
        for (number, indices) in values.chunks_exact(per_batch).enumerate() {
            for start in tuples(call, indices, indexed, slice)? {
                let start = number * batch_size + start;
                places.extend(start..start + slice);
            }
        }
        Ok(pick(&x.values, &places))
    }
}

/// A copy of x in which the slices named by tuples of indices, the innermost dim of input 1, are those of input 2.
pub(super) fn scatter_nd(call: Call<'_>) -> Result<Values, Fault> {
    let (x, indices, updates) = (call.input(0)?, &call.input(1)?.shape, call.input(2)?);
    let sizes: Vec<usize> = x.shape.dims.iter().rev().map(|dim| *dim as usize).collect();
    let width = indices.dims.first().map_or(0, |dim| *dim as usize);
    let Some((indexed, slice)) = sizes.split_at_checked(width) else {
        return Err(call.fault(format_args!("{width} indices for {}", x.shape)));
    };
    let slice: usize = slice.iter().product();
    let starts = tuples(call, call.integers(1)?, indexed, slice)?;
    call.expect_elements("updates", &updates.shape, starts.len() * slice)?;
    let places: Vec<usize> = starts
        .into_iter()
        .flat_map(|start| start..start + slice)
        .collect();
    match (&x.values, &updates.values) {
        (Values::Float(x), Values::Float(updates)) => {
            Ok(Values::Float(scatter(x, &places, updates, |_, update| {
                update
            })))
        }
        (Values::Integer(x), Values::Integer(updates)) => Ok(Values::Integer(scatter(
            x,
            &places,
            updates,
            |_, update| update,
        ))),
        _ => Err(call.fault(format_args!("updates {} for {}", updates.shape, x.shape))),
    }
}

/// A copy of `x` with every update combined with the value at its place, one after the other.
pub(super) fn scatter<T: Copy>(
    x: &[T],
    places: &[usize],
    updates: &[T],
    combine: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut results = x.to_vec();
    for (at, update) in places.iter().zip(updates) {
        results[*at] = combine(results[*at], *update);
    }
    results
}

/// What becomes of several values for one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The last one stays.
    None,
    /// Their sum.
    Sum,
    /// Their product.
    Product,
    /// The smallest.
    Minimum,
    /// The largest.
    Maximum,
    /// Their mean; of integers, towards zero.
    Mean,
}

/// Writes elements along a memory dim, innermost 0: y[…, indices[…, i, …], …] = updates[…, i, …].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScatterElements {
    /// The dim.
    pub axis: usize,
    /// What becomes of several values.
    pub reduction: Reduction,
    /// The value of x takes part in the reduction.
    pub use_initial: bool,
}

impl ScatterElements {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (x, indices, updates) = (call.input(0)?, &call.input(1)?.shape, call.input(2)?);
        let places = along_axis(call, &x.shape, indices, call.integers(1)?, self.axis)?;
        call.expect_elements("updates", &updates.shape, places.len())?;
        let mut counts = vec![u32::from(self.use_initial); x.shape.elements() as usize];
        for at in &places {
            counts[*at] += 1;
        }
        let mean = self.reduction == Reduction::Mean;
        match (&x.values, &updates.values) {
            (Values::Float(x), Values::Float(updates)) => {
                let (start, combine): (f32, fn(f32, f32) -> f32) = match self.reduction {
                    Reduction::None => (0.0, |_, update| update),
                    Reduction::Sum | Reduction::Mean => (0.0, |value, update| value + update),
                    Reduction::Product => (1.0, |value, update| value * update),
                    Reduction::Minimum => (f32::INFINITY, f32::min),
                    Reduction::Maximum => (f32::NEG_INFINITY, f32::max),
                };
                let mut results =
                    scatter(&self.initial(x, &places, start), &places, updates, combine);
                if mean {
                    results
                        .iter_mut()
                        .zip(&counts)
                        .filter(|(_, count)| **count > 1)
                        .for_each(|(result, count)| *result /= *count as f32);
                }
                Ok(Values::Float(results))
            }
            (Values::Integer(x), Values::Integer(updates)) => {
                let (start, combine): (i64, fn(i64, i64) -> i64) = match self.reduction {
                    Reduction::None => (0, |_, update| update),
                    Reduction::Sum | Reduction::Mean => (0, i64::wrapping_add),
                    Reduction::Product => (1, i64::wrapping_mul),
                    Reduction::Minimum => (i64::MAX, i64::min),
                    Reduction::Maximum => (i64::MIN, i64::max),
                };
                let mut results =
                    scatter(&self.initial(x, &places, start), &places, updates, combine);
                if mean {
                    results
                        .iter_mut()
                        .zip(&counts)
                        .filter(|(_, count)| **count > 1)
                        .for_each(|(result, count)| *result /= i64::from(*count));
                }
                Ok(Values::Integer(results))
            }
            _ => Err(call.fault(format_args!("updates {} for {}", updates.shape, x.shape))),
        }
    }

    /// x, with the neutral value where updates come and x takes no part.
    fn initial<T: Copy>(&self, x: &[T], places: &[usize], neutral: T) -> Vec<T> {
        let mut initial = x.to_vec();
        if !self.use_initial {
            for at in places {
                initial[*at] = neutral;
            }
        }
        initial
    }
}

/// Indices to rows with one "on".
#[derive(Clone, Debug, PartialEq)]
pub struct OneHot {
    /// Memory dim of the rows in the output, innermost 0.
    pub axis: usize,
    /// Places of a row.
    pub depth: u32,
    /// The value at the index.
    pub on: f32,
    /// The value elsewhere; all of the row where the index is outside.
    pub off: f32,
    /// A negative index counts from the end; else it is outside.
    pub negative_from_end: bool,
}

impl OneHot {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (indices, output) = (call.integers(0)?, call.output(0)?);
        let around = call.around(output, self.axis)?;
        if around.size != self.depth as usize {
            return Err(call.fault(format_args!(
                "depth {} along axis {} of {output}",
                self.depth, self.axis
            )));
        }
        call.expect_elements(
            "indices",
            &call.input(0)?.shape,
            around.inner * around.outer,
        )?;
        let mut results = vec![self.off; output.elements() as usize];
        let mut next = indices.iter();
        around.lines(|first| {
            let Some(index) = next.next() else { return };
            let index = if *index < 0 && self.negative_from_end {
                index.saturating_add(around.size as i64)
            } else {
                *index
            };
            if let Some(place) = usize::try_from(index)
                .ok()
                .filter(|place| *place < around.size)
            {
                results[first + place * around.inner] = self.on;
            }
        });
        Ok(match output.element.kind() {
            Kind::Float => Values::Float(results),
            Kind::Signed | Kind::Unsigned => {
                Values::Integer(results.into_iter().map(|value| value as i64).collect())
            }
        })
    }
}

/// Reverses the first elements of each sequence, as many as input 1 says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReverseSequence {
    /// Memory dim of the batch, innermost 0: it chooses the length.
    pub batch_axis: usize,
    /// Memory dim of the sequence, innermost 0.
    pub sequence_axis: usize,
}

impl ReverseSequence {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (x, lengths) = (call.input(0)?, call.integers(1)?);
        let (batch, sequence) = (
            call.around(&x.shape, self.batch_axis)?,
            call.around(&x.shape, self.sequence_axis)?,
        );
        call.expect_elements("lengths", &call.input(1)?.shape, batch.size)?;
        let mut places: Vec<usize> = (0..x.shape.elements() as usize).collect();
        for at in &mut places {
            let (length, place) = (
                lengths[*at / batch.inner % batch.size],
                *at / sequence.inner % sequence.size,
            );
            let length = usize::try_from(length)
                .ok()
                .filter(|length| *length <= sequence.size);
            let length = length.ok_or_else(|| {
                call.fault(format_args!(
                    "a length is outside of 0 to {}",
                    sequence.size
                ))
            })?;
            if place < length {
                *at = *at - place * sequence.inner + (length - 1 - place) * sequence.inner;
            }
        }
        Ok(pick(&x.values, &places))
    }
}

/// The order of the results of a top-k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopKOrder {
    /// Any; here by value.
    Unspecified,
    /// The best first.
    Value,
    /// The lowest index first.
    Index,
}

/// The k largest or smallest along a memory dim, and their indices. Of equal values those of lower index come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopK {
    /// The dim, innermost 0.
    pub axis: usize,
    /// The smallest, not the largest.
    pub smallest: bool,
    /// The order of the results.
    pub order: TopKOrder,
    /// How many.
    pub k: u32,
}

impl TopK {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Vec<Values>, Fault> {
        let x = call.input(0)?;
        let around = call.around(&x.shape, self.axis)?;
        let k = self.k as usize;
        if k > around.size {
            return Err(call.fault(format_args!("{k} of a dim of {}", around.size)));
        }
        // Zeros of either sign are equal; NaN is beyond infinity.
        let (places, indices) = match &x.values {
            Values::Float(x) => self.best(around, |a, b| (x[a] + 0.0).total_cmp(&(x[b] + 0.0))),
            Values::Integer(x) => self.best(around, |a, b| x[a].cmp(&x[b])),
        };
        Ok(vec![pick(&x.values, &places), Values::Integer(indices)])
    }

    /// The places of the results in x, and their indices along the dim, in memory order of the output.
    fn best(
        &self,
        around: Around,
        compare: impl Fn(usize, usize) -> std::cmp::Ordering,
    ) -> (Vec<usize>, Vec<i64>) {
        let k = self.k as usize;
        let mut places = vec![0; around.outer * k * around.inner];
        let mut indices = vec![0; places.len()];
        let mut line: Vec<usize> = Vec::with_capacity(around.size);
        around.lines(|first| {
            line.clear();
            line.extend((0..around.size).map(|place| first + place * around.inner));
            // A stable sort keeps equal values in the order of their indices.
            line.sort_by(|a, b| {
                if self.smallest {
                    compare(*a, *b)
                } else {
                    compare(*b, *a)
                }
            });
            line.truncate(k);
            if self.order == TopKOrder::Index {
                line.sort_unstable();
            }
            let (outer, inner) = (first / (around.size * around.inner), first % around.inner);
            for (number, at) in line.iter().enumerate() {
                let result = (outer * k + number) * around.inner + inner;
                places[result] = *at;
                indices[result] = ((at - first) / around.inner) as i64;
            }
        });
        (places, indices)
    }
}

/// Of scores [t, n, c] the classes [n, t] with the largest score of each step, without the last class (the blank) and, where `merge`, without
/// repeats; −1 fills up. A sequence ends where the mask [t, n] is 0.
pub(super) fn ctc_greedy_decoder(call: Call<'_>, merge: bool) -> Result<Values, Fault> {
    let (scores, mask) = (call.floats(0)?, call.floats(1)?);
    let shape = &call.input(0)?.shape;
    let [classes, sequences, steps] = match *shape.dims.as_slice() {
        [classes, sequences, steps] => [classes, sequences, steps].map(|dim| dim as usize),
        _ => return Err(call.fault(format_args!("expected three dims, found {shape}"))),
    };
    call.expect_elements("mask", &call.input(1)?.shape, steps * sequences)?;
    call.expect_elements("output", call.output(0)?, steps * sequences)?;
    let mut results = vec![-1.0; steps * sequences];
    for sequence in 0..sequences {
        let mut found = results[sequence * steps..][..steps].iter_mut();
        let mut last = None;
        for step in 0..steps {
            let at = step * sequences + sequence;
            if mask[at] == 0.0 {
                break;
            }
            let scores = &scores[at * classes..][..classes];
            let best = (1..classes).fold(0, |best, class| {
                if scores[class] > scores[best] {
                    class
                } else {
                    best
                }
            });
            let is_repeat = merge && last == Some(best);
            if best + 1 < classes
                && !is_repeat
                && let Some(place) = found.next()
            {
                *place = best as f32;
            }
            last = Some(best);
        }
    }
    Ok(Values::Float(results))
}
