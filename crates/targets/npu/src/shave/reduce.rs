//! Reductions over axes, and running sums.
//!
//! Sums of floating-point numbers are kept in binary64 and rounded to binary32 once, except running sums, which are
//! binary32 throughout.

use super::operation::Operation;
use super::tensor::{Broadcast, Call, Shape, Values};
use chipless_kernels::wide;
use chipless_model::Fault;

/// Groups that are folded side by side.
const SIDE_BY_SIDE: usize = 8;

/// Axes of a reduction: memory dims, innermost 0. The output keeps each as a dim of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduce {
    /// The memory dims to reduce.
    pub axes: Vec<usize>,
}

impl Reduce {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let input = call.input(0)?;
        let groups = Groups::new(call, &input.shape, &self.axes)?;
        call.expect_elements("output", call.output(0)?, groups.count)?;
        match &input.values {
            Values::Float(x) => reduce_floats(call.operation, &groups, x).map(Values::Float),
            Values::Integer(x) => reduce_integers(call.operation, &groups, x).map(Values::Integer),
        }
        .ok_or_else(|| call.unsupported("not a reduction"))
    }
}

fn reduce_floats(operation: Operation, groups: &Groups, x: &[f32]) -> Option<Vec<f32>> {
    let size = groups.size as f64;
    let round = |values: Vec<f64>| values.into_iter().map(|value| value as f32).collect();
    Some(match operation {
        Operation::ReduceSum => round(groups.fold(x, 0.0, |sum, x| sum + f64::from(x))),
        Operation::ReduceMean => groups
            .fold(x, 0.0, |sum, x| sum + f64::from(x))
            .into_iter()
            .map(|sum| (sum / size) as f32)
            .collect(),
        Operation::ReduceL1 => round(groups.fold(x, 0.0, |sum, x| sum + f64::from(x.abs()))),
        Operation::ReduceL2 => groups
            .fold(x, 0.0, |sum, x| sum + f64::from(x) * f64::from(x))
            .into_iter()
            .map(|sum| sum.sqrt() as f32)
            .collect(),
        Operation::ReduceProd => round(groups.fold(x, 1.0, |product, x| product * f64::from(x))),
        Operation::ReduceAnd => groups.fold(x, 1.0, |all, x| if x == 0.0 { 0.0 } else { all }),
        Operation::ReduceOr => groups.fold(x, 0.0, |any, x| if x == 0.0 { any } else { 1.0 }),
        Operation::ReduceMax => groups.fold(x, f32::NEG_INFINITY, f32::max),
        Operation::ReduceMin => groups.fold(x, f32::INFINITY, f32::min),
        _ => return None,
    })
}

/// Quotients and roots go towards zero.
fn reduce_integers(operation: Operation, groups: &Groups, x: &[i64]) -> Option<Vec<i64>> {
    let sum =
        |value: fn(i64) -> i64| groups.fold(x, 0i64, move |sum, x| sum.wrapping_add(value(x)));
    Some(match operation {
        Operation::ReduceSum => sum(|x| x),
        Operation::ReduceMean => sum(|x| x)
            .into_iter()
            .map(|sum| sum / groups.size as i64)
            .collect(),
        Operation::ReduceL1 => sum(i64::wrapping_abs),
        Operation::ReduceL2 => sum(|x| x.wrapping_mul(x))
            .into_iter()
            .map(|sum| (sum as f64).sqrt() as i64)
            .collect(),
        Operation::ReduceProd => groups.fold(x, 1i64, i64::wrapping_mul),
        Operation::ReduceAnd => groups.fold(x, 1, |all, x| if x == 0 { 0 } else { all }),
        Operation::ReduceOr => groups.fold(x, 0, |any, x| if x == 0 { any } else { 1 }),
        Operation::ReduceMax => groups.fold(x, i64::MIN, i64::max),
        Operation::ReduceMin => groups.fold(x, i64::MAX, i64::min),
        _ => return None,
    })
}

/// The elements of a tensor in groups: those that differ only in the places along some axes.
pub(super) struct Groups {
    walk: Broadcast<1>,
    /// Number of groups.
    pub(super) count: usize,
    /// Elements of each group.
    pub(super) size: usize,
}

impl Groups {
    pub(super) fn new(call: Call<'_>, shape: &Shape, axes: &[usize]) -> Result<Groups, Fault> {
        for axis in axes {
            call.around(shape, *axis)?;
        }
        let reduced = shape.reduced(axes);
        let walk =
            Broadcast::new(&shape.dims, [&reduced]).map_err(|_| call.fault("axes do not fit"))?;
        let count: usize = reduced.iter().map(|dim| *dim as usize).product();
        Ok(Groups {
            walk,
            count,
            size: shape.elements() as usize / count.max(1),
        })
    }

    /// Whether the elements of each group stand side by side.
    fn is_contiguous(&self) -> bool {
        match self.walk.loops() {
            [(size, [0])] | [(size, [0]), (_, [1])] => *size == self.size,
            _ => false,
        }
    }

    /// Folds each group of `x`.
    pub(super) fn fold<X: Copy, A: Copy>(
        &self,
        x: &[X],
        start: A,
        step: impl Fn(A, X) -> A,
    ) -> Vec<A> {
        let mut results = vec![start; self.count];
        if self.is_contiguous() && x.len() == self.count * self.size {
            // A step waits for the one before, but not for those of other groups.
            let groups = x.chunks(SIDE_BY_SIDE * self.size);
            for (results, x) in results.chunks_mut(SIDE_BY_SIDE).zip(groups) {
                if let Some(results) = results.first_chunk_mut::<SIDE_BY_SIDE>() {
                    let groups: [&[X]; SIDE_BY_SIDE] =
                        std::array::from_fn(|group| &x[group * self.size..][..self.size]);
                    for place in 0..self.size {
                        for (result, group) in results.iter_mut().zip(groups) {
                            *result = step(*result, group[place]);
                        }
                    }
                } else {
                    for (result, x) in results.iter_mut().zip(x.chunks(self.size)) {
                        *result = x.iter().fold(*result, |result, x| step(result, *x));
                    }
                }
            }
            return results;
        }
        let mut elements = x.iter();
        self.walk.for_each(|[group]| {
            if let Some(x) = elements.next() {
                results[group] = step(results[group], *x);
            }
        });
        results
    }

    /// Maps each element of `x` with the value of its group.
    pub(super) fn map<A: Copy>(
        &self,
        x: &[f32],
        groups: &[A],
        function: impl Fn(f32, A) -> f32,
    ) -> Vec<f32> {
        if self.is_contiguous() && x.len() == self.count * self.size {
            let mut results = x.to_vec();
            let (size, groups, function) = (self.size, groups.iter(), &function);
            let places = &mut results;
            wide(move || {
                for (x, group) in places.chunks_mut(size).zip(groups) {
                    for x in x {
                        *x = function(*x, *group);
                    }
                }
            });
            return results;
        }
        let mut elements = x.iter();
        let mut results = Vec::with_capacity(x.len());
        self.walk.for_each(|[group]| {
            results.extend(elements.next().map(|x| function(*x, groups[group])));
        });
        results
    }
}

/// A running sum along an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CumulativeSum {
    /// Memory dim, innermost 0.
    pub axis: usize,
    /// An element is not part of its own sum.
    pub exclusive: bool,
    /// Sums run from the end.
    pub reverse: bool,
}

impl CumulativeSum {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        Ok(match &call.input(0)?.values {
            Values::Float(x) => Values::Float(self.sums(call, x, 0.0, |sum, x| sum + x)?),
            Values::Integer(x) => Values::Integer(self.sums(call, x, 0, i64::wrapping_add)?),
        })
    }

    fn sums<T: Copy>(
        &self,
        call: Call<'_>,
        x: &[T],
        zero: T,
        add: fn(T, T) -> T,
    ) -> Result<Vec<T>, Fault> {
        let around = call.around(&call.input(0)?.shape, self.axis)?;
        let mut results = x.to_vec();
        around.lines(|first| {
            let mut sum = zero;
            for step in 0..around.size {
                let place = if self.reverse {
                    around.size - 1 - step
                } else {
                    step
                };
                let at = first + place * around.inner;
                let before = sum;
                sum = add(sum, x[at]);
                results[at] = if self.exclusive { before } else { sum };
            }
        });
        Ok(results)
    }
}
