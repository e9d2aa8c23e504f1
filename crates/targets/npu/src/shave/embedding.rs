//! Sums over rows of a table, and places among sorted bounds.

use super::index::place;
use super::tensor::{Call, Values};
use chipless_model::Fault;

/// Bags of rows: input 2 says where in the indices (input 1) each begins; a bag's result is the sum of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddingBag {
    /// The row of an empty bag; zeros where negative.
    pub default: i64,
}

impl EmbeddingBag {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (table, indices, offsets) = (call.floats(0)?, call.integers(1)?, call.integers(2)?);
        let shape = &call.input(0)?.shape;
        let rows = shape.dims.last().map_or(1, |dim| *dim as usize);
        let width = table.len() / rows;
        call.expect_elements("output", call.output(0)?, offsets.len() * width)?;
        let mut results = vec![0.0f64; offsets.len() * width];
        for (bag, sums) in results.chunks_exact_mut(width).enumerate() {
            let end = offsets
                .get(bag + 1)
                .copied()
                .unwrap_or(indices.len() as i64);
            let range = usize::try_from(offsets[bag])
                .ok()
                .zip(usize::try_from(end).ok());
            let of_bag = range
                .and_then(|(start, end)| indices.get(start..end))
                .ok_or_else(|| {
                    call.fault(format_args!(
                        "bag {bag} is from {} to {end} of {} indices",
                        offsets[bag],
                        indices.len()
                    ))
                })?;
            let default = [self.default];
            let of_bag = match (of_bag, self.default) {
                ([], 0..) => &default,
                _ => of_bag,
            };
            for index in of_bag {
                let row = &table[place(call, *index, rows)? * width..][..width];
                sums.iter_mut()
                    .zip(row)
                    .for_each(|(sum, x)| *sum += f64::from(*x));
            }
        }
        Ok(Values::Float(
            results.into_iter().map(|sum| sum as f32).collect(),
        ))
    }
}

/// For each row of indices (input 1) the sum of the rows of a table, each times its weight (input 2) where there are weights.
pub(super) fn packed(call: Call<'_>) -> Result<Values, Fault> {
    let (table, indices) = (call.floats(0)?, call.integers(1)?);
    let weights = (call.inputs.len() > 2)
        .then(|| call.floats(2))
        .transpose()?;
    let rows = call
        .input(0)?
        .shape
        .dims
        .last()
        .map_or(1, |dim| *dim as usize);
    let width = table.len() / rows;
    let each = call.around(&call.input(1)?.shape, 0)?.size;
    let bags = indices.len() / each;
    call.expect_elements("output", call.output(0)?, bags * width)?;
    if let Some(weights) = weights.filter(|weights| weights.len() != indices.len()) {
        return Err(call.fault(format_args!(
            "{} weights for {} indices",
            weights.len(),
            indices.len()
        )));
    }
    let mut results = vec![0.0f64; bags * width];
    for (at, index) in indices.iter().enumerate() {
        let weight = f64::from(weights.map_or(1.0, |weights| weights[at]));
        let row = &table[place(call, *index, rows)? * width..][..width];
        let sums = &mut results[at / each * width..][..width];
        sums.iter_mut()
            .zip(row)
            .for_each(|(sum, x)| *sum += weight * f64::from(*x));
    }
    Ok(Values::Float(
        results.into_iter().map(|sum| sum as f32).collect(),
    ))
}

/// For each element of x the number of bounds (input 1, sorted) below it; `right` lets an interval hold its right bound.
pub(super) fn bucketize(call: Call<'_>, right: bool) -> Result<Values, Fault> {
    fn numbers<T: PartialOrd>(x: &[T], bounds: &[T], right: bool) -> Values {
        let number = |x: &T| bounds.partition_point(|bound| bound < x || (!right && bound == x));
        Values::Integer(x.iter().map(|x| number(x) as i64).collect())
    }
    match &call.input(0)?.values {
        Values::Float(x) => Ok(numbers(x, call.floats(1)?, right)),
        Values::Integer(x) => Ok(numbers(x, call.integers(1)?, right)),
    }
}
