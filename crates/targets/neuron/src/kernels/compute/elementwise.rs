//! Element by element: chains of operations, functions of tables, generated numbers, selections.

use super::{Action, Compute, Inputs, Numbers, Results, Step, Value};
use crate::kernels::alu::Operation;
use crate::kernels::curve::Function;
use crate::kernels::integers::{is_integer, is_wide};
use chipless_model::{Fault, Storage};

/// Puts `act(value, operand)` in place of each value.
fn each<T: Copy>(
    values: &mut [T],
    length: usize,
    operand: Value<T>,
    inputs: &[Vec<T>],
    act: impl Fn(T, T) -> T,
) {
    match operand {
        Value::Constant(operand) => {
            for value in values {
                *value = act(*value, operand);
            }
        }
        Value::Partition(source) => {
            for (values, operand) in values.chunks_mut(length.max(1)).zip(&inputs[source]) {
                for value in values {
                    *value = act(*value, *operand);
                }
            }
        }
        Value::Tensor(source) => {
            for (value, operand) in values.iter_mut().zip(&inputs[source]) {
                *value = act(*value, *operand);
            }
        }
    }
}

/// One step on numbers: the common operations as loops of their own.
pub(super) fn step(
    values: &mut [f32],
    length: usize,
    step: &Step<f32>,
    inputs: &[Vec<f32>],
) -> Result<(), Fault> {
    let Step {
        operation,
        operand,
        reversed,
    } = *step;
    match (operation, reversed) {
        (Operation::Add, _) => each(values, length, operand, inputs, |a, b| a + b),
        (Operation::Multiply, _) => each(values, length, operand, inputs, |a, b| a * b),
        (Operation::Subtract, false) => each(values, length, operand, inputs, |a, b| a - b),
        (Operation::Subtract, true) => each(values, length, operand, inputs, |a, b| b - a),
        (_, false) => each(values, length, operand, inputs, on_numbers(operation)?),
        (_, true) => {
            let act = on_numbers(operation)?;
            each(values, length, operand, inputs, |a, b| act(b, a));
        }
    }
    Ok(())
}

/// The function of an operation on numbers.
pub(super) fn on_numbers(operation: Operation) -> Result<fn(f32, f32) -> f32, Fault> {
    let function = operation.on_numbers();
    function.ok_or_else(|| Fault::unsupported(format!("{operation} on numbers is not supported")))
}

impl Compute {
    /// The results of a chain in binary64, where it is sums and products of integers that become integers of 32 bits.
    pub(super) fn exact(&self, inputs: &Inputs<f32>) -> Option<Vec<f64>> {
        let Action::Chain(steps) = &self.action else {
            return None;
        };
        let is_exact = is_wide(self.destinations[0].element)
            && self.sources.iter().all(|s| is_integer(s.element));
        if !is_exact {
            return None;
        }
        let inputs: Vec<Vec<f64>> = inputs
            .iter()
            .map(|values| values.iter().copied().map(f64::from).collect())
            .collect();
        let mut values = inputs[0].clone();
        for step in steps {
            let act: fn(f64, f64) -> f64 = match (step.operation, step.reversed) {
                (Operation::Add, _) => |a, b| a + b,
                (Operation::Multiply, _) => |a, b| a * b,
                (Operation::Subtract, false) => |a, b| a - b,
                (Operation::Subtract, true) => |a, b| b - a,
                _ => return None,
            };
            let operand = match step.operand {
                Value::Constant(value) => Value::Constant(f64::from(value)),
                Value::Partition(source) => Value::Partition(source),
                Value::Tensor(source) => Value::Tensor(source),
            };
            each(&mut values, self.length, operand, &inputs, act);
        }
        Some(values)
    }

    pub(super) fn chain(
        &self,
        steps: &[Step<f32>],
        inputs: &mut Inputs<f32>,
    ) -> Result<Vec<f32>, Fault> {
        let mut values = std::mem::take(&mut inputs[0]);
        for operation in steps {
            step(&mut values, self.length, operation, inputs)?;
        }
        Ok(values)
    }

    pub(super) fn integer_chain(
        &self,
        steps: &[Step<u32>],
        inputs: &mut Inputs<u32>,
    ) -> Result<Vec<u32>, Fault> {
        let mut values = std::mem::take(&mut inputs[0]);
        for Step {
            operation,
            operand,
            reversed,
        } in steps
        {
            let why = std::cell::Cell::new(None);
            each(&mut values, self.length, *operand, inputs, |a, b| {
                let (a, b) = if *reversed { (b, a) } else { (a, b) };
                operation.on_integers(a, b).unwrap_or_else(|reason| {
                    why.set(Some(reason));
                    0
                })
            });
            if let Some(why) = why.get() {
                return Err(Fault::program(format!("{operation} {why}")));
            }
        }
        Ok(values)
    }

    pub(super) fn bit_chain(
        &self,
        steps: &[Step<u32>],
        inputs: &mut Inputs<u32>,
        width: u32,
    ) -> Result<Vec<u32>, Fault> {
        let mut values = std::mem::take(&mut inputs[0]);
        for Step {
            operation,
            operand,
            reversed,
        } in steps
        {
            if operation.on_bits(0, 0, width).is_none() {
                return Err(Fault::unsupported(format!(
                    "{operation} on bits is not supported"
                )));
            }
            let mask = u32::MAX >> (32 - width);
            each(&mut values, self.length, *operand, inputs, |a, b| {
                let (a, b) = if *reversed {
                    (b & mask, a)
                } else {
                    (a, b & mask)
                };
                operation.on_bits(a, b, width).unwrap_or(0)
            });
        }
        Ok(values)
    }

    pub(super) fn curve(
        &self,
        function: &Function,
        scale: Value<f32>,
        bias: Value<f32>,
        inputs: &mut Inputs<f32>,
    ) -> Vec<f32> {
        let mut values = std::mem::take(&mut inputs[0]);
        let (length, one) = (
            self.length.max(1),
            |value: Value<f32>, partition: usize| match value {
                Value::Constant(value) => value,
                Value::Partition(source) | Value::Tensor(source) => inputs[source][partition],
            },
        );
        for (partition, values) in values.chunks_mut(length).enumerate() {
            let (scale, bias) = (one(scale, partition), one(bias, partition));
            for value in values {
                *value = function.at(scale.mul_add(*value, bias));
            }
        }
        values
    }

    /// The numbers of the positions, partition by partition.
    pub(super) fn generate(&self, numbers: Numbers) -> Vec<i64> {
        let mut values = Vec::with_capacity(self.partitions * self.length);
        for partition in 0..self.partitions {
            numbers.of(partition, |number| values.push(i64::from(number)));
        }
        values
    }

    pub(super) fn keep_by_number(
        &self,
        numbers: Numbers,
        comparison: fn(i32) -> bool,
        fill: usize,
        inputs: &[Vec<f32>],
    ) -> Vec<f32> {
        let (mut kept, mut values) = (Vec::with_capacity(inputs[0].len()), inputs[0].iter());
        for partition in 0..self.partitions {
            numbers.of(partition, |number| {
                let value = values.next().copied().unwrap_or_default();
                kept.push(if comparison(number) {
                    value
                } else {
                    inputs[fill][0]
                });
            });
        }
        kept
    }

    pub(super) fn keep_by_index(
        &self,
        start: f32,
        fill: f32,
        bounds: &[(Operation, Value<f32>); 2],
        inputs: &[Vec<f32>],
    ) -> Result<Vec<f32>, Fault> {
        let [first, second] = bounds;
        let holds = [on_numbers(first.0)?, on_numbers(second.0)?];
        let mut kept = inputs[0].clone();
        for (partition, values) in kept.chunks_mut(self.length.max(1)).enumerate() {
            let bound = |value: &Value<f32>| match *value {
                Value::Constant(bound) => bound,
                Value::Partition(source) | Value::Tensor(source) => inputs[source][partition],
            };
            let bounds = [bound(&first.1), bound(&second.1)];
            for (k, value) in values.iter_mut().enumerate() {
                let index = start + k as f32;
                if holds[0](index, bounds[0]) == 0.0 || holds[1](index, bounds[1]) == 0.0 {
                    *value = fill;
                }
            }
        }
        Ok(kept)
    }

    pub(super) fn exponential(&self, less: Value<f32>, inputs: &[Vec<f32>]) -> Vec<f32> {
        let elements = inputs[0].iter().enumerate();
        let values = elements.map(|(at, element)| {
            let less = match less {
                Value::Constant(less) => less,
                Value::Partition(source) | Value::Tensor(source) => {
                    inputs[source][at / self.length.max(1)]
                }
            };
            f64::from(element - less).exp() as f32
        });
        values.collect()
    }

    pub(super) fn select_number(
        &self,
        fill: Value<f32>,
        reverse: bool,
        inputs: &[Vec<f32>],
    ) -> Vec<f32> {
        let pairs = inputs[0].iter().zip(&inputs[1]).enumerate();
        let chosen = pairs.map(|(at, (predicate, element))| {
            let fill = match fill {
                Value::Constant(fill) => fill,
                Value::Partition(source) | Value::Tensor(source) => {
                    inputs[source][at / self.length.max(1)]
                }
            };
            let holds = (*predicate != 0.0) != reverse;
            if holds { *element } else { fill }
        });
        chosen.collect()
    }

    pub(super) fn select(
        &self,
        scalar: Value<u32>,
        predicate: Value<u32>,
        reverse: bool,
        inputs: &mut Inputs<u32>,
    ) -> Vec<u32> {
        let mut values = std::mem::take(&mut inputs[0]);
        for (partition, values) in values.chunks_mut(self.length.max(1)).enumerate() {
            let one = |value: Value<u32>| match value {
                Value::Constant(value) => value,
                Value::Partition(source) | Value::Tensor(source) => inputs[source][partition],
            };
            if (one(predicate) != 0) == reverse {
                values.fill(one(scalar));
            }
        }
        values
    }

    /// Between equal types bits move as they are, else numbers are rounded to the type of the destination.
    pub(super) fn copy_predicated(&self, storage: &Storage<'_>) -> Result<Results, Fault> {
        let [predicate, data] = &self.sources[..] else {
            return Err(Fault::program("needs a predicate and data"));
        };
        let destination = &self.destinations[0];
        let predicate = predicate.read_bits(storage)?;
        let mut kept = destination.read_bits(storage)?;
        let source = if data.element == destination.element {
            data.read_bits(storage)?
        } else {
            let (mut packed, mut values) = (Vec::new(), Vec::new());
            data.read(storage, &mut packed, &mut values)?;
            destination.as_bits(&values)?
        };
        for ((kept, source), predicate) in kept.iter_mut().zip(source).zip(predicate) {
            if predicate != 0 {
                *kept = source;
            }
        }
        Ok(Results::Bits(kept))
    }

    pub(super) fn fill_predicated(
        &self,
        scalar: Value<u32>,
        reverse: bool,
        storage: &Storage<'_>,
    ) -> Result<Results, Fault> {
        let inputs = self.bits(storage)?;
        let mut kept = self.destinations[0].read_bits(storage)?;
        for (at, (kept, predicate)) in kept.iter_mut().zip(&inputs[0]).enumerate() {
            if (*predicate != 0) == reverse {
                *kept = match scalar {
                    Value::Constant(scalar) => scalar,
                    Value::Partition(source) | Value::Tensor(source) => {
                        inputs[source][at / self.length]
                    }
                };
            }
        }
        Ok(Results::Bits(kept))
    }

    pub(super) fn dropout(
        &self,
        rate: Value<f32>,
        keeps: bool,
        inputs: &mut Inputs<f32>,
    ) -> Result<Vec<f32>, Fault> {
        let mut values = std::mem::take(&mut inputs[0]);
        for (partition, values) in values.chunks_mut(self.length.max(1)).enumerate() {
            let rate = match rate {
                Value::Constant(rate) => rate,
                Value::Partition(source) | Value::Tensor(source) => inputs[source][partition],
            };
            // Random numbers are at least 0 and below 1.
            let all = if keeps { rate >= 1.0 } else { rate <= 0.0 };
            let none = if keeps { rate <= 0.0 } else { rate >= 1.0 };
            match (all, none) {
                (true, _) => {}
                (_, true) => values.fill(0.0),
                _ => {
                    let kind = if keeps { "keep" } else { "drop" };
                    let message = format!(
                        "a {kind} rate of {rate} is not supported: the hardware's generator of random numbers is not public"
                    );
                    return Err(Fault::unsupported(message));
                }
            }
        }
        Ok(values)
    }
}

impl Numbers {
    /// The numbers of one partition, in order.
    fn of(&self, partition: usize, mut visit: impl FnMut(i32)) {
        let g = &self.generator;
        let first = g
            .base
            .wrapping_add((partition as i32).wrapping_mul(self.per_partition));
        let [a, b, c, d] = g.counts.map(i32::from);
        let steps = g.steps.map(i32::from);
        for l in 0..d {
            for k in 0..c {
                for j in 0..b {
                    for i in 0..a {
                        let offset = [i, j, k, l]
                            .iter()
                            .zip(steps)
                            .fold(0i32, |sum, (index, step)| {
                                sum.wrapping_add(index.wrapping_mul(step))
                            });
                        visit(first.wrapping_add(offset));
                    }
                }
            }
        }
    }
}
