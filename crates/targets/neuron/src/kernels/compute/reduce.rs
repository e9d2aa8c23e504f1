//! Reductions, running values, accumulators, statistics. All in binary32, in the order of the pattern.

use super::elementwise::{on_numbers, step};
use super::{Accumulator, Compute, Inputs, Start, Step, Value};
use crate::kernels::alu::Operation;
use chipless_model::Fault;

/// So many elements become one.
pub(super) fn reduce(
    operation: Operation,
    group: usize,
    negate: bool,
    values: &[f32],
) -> Result<Vec<f32>, Fault> {
    let act = on_numbers(operation)?;
    let one = |group: &[f32]| {
        let first = match operation {
            Operation::LargestMagnitude | Operation::SmallestMagnitude => group[0].abs(),
            Operation::LogicalAnd | Operation::LogicalOr | Operation::LogicalXor => {
                f32::from(group[0] != 0.0)
            }
            _ => group[0],
        };
        let reduced = group[1..].iter().fold(first, |sum, value| act(sum, *value));
        if negate { -reduced } else { reduced }
    };
    Ok(values.chunks_exact(group.max(1)).map(one).collect())
}

/// The elements that become one behind each other, and how many: those at the same place of each row, or all.
pub(super) fn by_place<T: Copy>(row: Option<usize>, values: &[T]) -> (Vec<T>, usize) {
    let Some(row) = row.filter(|row| *row > 0) else {
        return (values.to_vec(), values.len());
    };
    let column = |place: usize| values.iter().skip(place).step_by(row).copied();
    ((0..row).flat_map(column).collect(), values.len() / row)
}

/// The same on bit patterns.
pub(super) fn reduce_bits(
    operation: Operation,
    group: usize,
    values: &[u32],
    width: u32,
) -> Result<Vec<u32>, Fault> {
    let one = |group: &[u32]| {
        let reduced = group[1..]
            .iter()
            .try_fold(group[0], |all, bits| operation.on_bits(all, *bits, width));
        reduced.ok_or_else(|| Fault::unsupported(format!("{operation} on bits is not supported")))
    };
    values.chunks_exact(group.max(1)).map(one).collect()
}

/// Running values, beginning anew after each row.
pub(super) fn cumulative(
    operation: Operation,
    row: usize,
    values: &[f32],
) -> Result<Vec<f32>, Fault> {
    let (act, mut running) = (on_numbers(operation)?, values.to_vec());
    for row in running.chunks_mut(row.max(1)) {
        for k in 1..row.len() {
            row[k] = act(row[k - 1], row[k]);
        }
    }
    Ok(running)
}

impl Compute {
    pub(super) fn scan(
        &self,
        start: Value<f32>,
        (first, first_reversed): (Operation, bool),
        (second, second_reversed): (Operation, bool),
        inputs: &[Vec<f32>],
    ) -> Result<Vec<f32>, Fault> {
        let (first, second) = (on_numbers(first)?, on_numbers(second)?);
        let (length, mut values) = (self.length.max(1), inputs[0].clone());
        let rows = values
            .chunks_mut(length)
            .zip(inputs[1].chunks(length))
            .enumerate();
        for (partition, (values, others)) in rows {
            let mut running = match start {
                Value::Constant(start) => start,
                Value::Partition(source) | Value::Tensor(source) => inputs[source][partition],
            };
            for (value, other) in values.iter_mut().zip(others) {
                running = if first_reversed {
                    first(running, *value)
                } else {
                    first(*value, running)
                };
                running = if second_reversed {
                    second(*other, running)
                } else {
                    second(running, *other)
                };
                *value = running;
            }
        }
        Ok(values)
    }

    /// What the accumulators hold after these values.
    pub(super) fn accumulate(
        &self,
        accumulator: Accumulator,
        inputs: &[Vec<f32>],
        values: &[f32],
    ) -> Result<Vec<f32>, Fault> {
        let act = on_numbers(accumulator.operation)?;
        if matches!(accumulator.start, Start::Zeroed) {
            return Ok(vec![0.0; self.partitions]);
        }
        let rows = values.chunks(self.length.max(1)).enumerate();
        rows.map(|(partition, values)| {
            let start = accumulator.at(partition, inputs)?;
            Ok(values
                .iter()
                .fold(start, |running, value| act(running, *value)))
        })
        .collect()
    }

    /// The elements or the running values, and the last of them.
    pub(super) fn cache(
        &self,
        first: &Step<f32>,
        accumulator: Accumulator,
        keeps_running: bool,
        inputs: &mut Inputs<f32>,
    ) -> Result<(Vec<f32>, Vec<f32>), Fault> {
        let mut values = std::mem::take(&mut inputs[0]);
        step(&mut values, self.length, first, inputs)?;
        let last = self.accumulate(accumulator, inputs, &values)?;
        if keeps_running {
            let act = on_numbers(accumulator.operation)?;
            for (partition, values) in values.chunks_mut(self.length.max(1)).enumerate() {
                let mut running = accumulator.at(partition, inputs)?;
                for value in values {
                    running = act(running, *value);
                    *value = running;
                }
            }
        }
        Ok((values, last))
    }

    /// Six numbers of each partition: count, mean, and count times variance of the even elements, then of the odd ones.
    pub(super) fn statistics(&self, counts: [f32; 2], values: &[f32]) -> Vec<f32> {
        let mut results = Vec::with_capacity(6 * self.partitions);
        for values in values.chunks(self.length.max(1)) {
            for (parity, written) in counts.into_iter().enumerate() {
                let every = || values.iter().skip(parity).step_by(2);
                let count = every().count() as f32;
                let mean = if count == 0.0 {
                    0.0
                } else {
                    every().sum::<f32>() / count
                };
                let squares = every().fold(0.0, |sum: f32, x| (x - mean).mul_add(x - mean, sum));
                results.extend([written, mean, squares]);
            }
        }
        results
    }

    /// Mean and variance of what the triples of each partition stand for.
    pub(super) fn aggregate(&self, values: &[f32]) -> Vec<f32> {
        let mut results = Vec::with_capacity(2 * self.partitions);
        for triples in values.chunks(self.length.max(1)) {
            let triples = || triples.chunks_exact(3);
            let count: f32 = triples().map(|t| t[0]).sum();
            let mean = triples().map(|t| t[0] * t[1]).sum::<f32>() / count;
            let squares: f32 = triples()
                .map(|t| t[0].mul_add((t[1] - mean) * (t[1] - mean), t[2]))
                .sum();
            results.extend([mean, squares / count]);
        }
        results
    }
}

impl Accumulator {
    /// What it holds of a partition at the start.
    fn at(&self, partition: usize, inputs: &[Vec<f32>]) -> Result<f32, Fault> {
        match self.start {
            Start::Held(source) => Ok(inputs[source][partition]),
            Start::Zeroed => Ok(0.0),
            Start::Loaded(Value::Constant(value)) => Ok(value),
            Start::Loaded(Value::Partition(source) | Value::Tensor(source)) => {
                Ok(inputs[source][partition])
            }
            Start::Reset => self.operation.identity().ok_or_else(|| {
                Fault::unsupported(format!(
                    "an accumulator of {} is not supported",
                    self.operation
                ))
            }),
        }
    }
}
