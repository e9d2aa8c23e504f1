//! Functions of one half that give one half: there are 65,536 of each, so that each value is computed once.

use super::elementwise::function_of;
use super::invocation::Invocation;
use chipless_kernels::Error;
use chipless_kernels::cast::{Rounding, decode_f32, encode_f32};
use chipless_model::ElementType;
use std::cell::RefCell;

/// Functions whose values a thread keeps.
const KEPT: usize = 16;

/// A value that has not been computed: the bits of a NaN. Where a function gives just that, it is computed each time.
const UNKNOWN: u16 = u16::MAX;

/// The values of a function by the bits of its argument.
struct Table {
    /// The operation and its scalars, as they are printed: so that zeros of either sign differ.
    function: String,
    values: Vec<u16>,
}

thread_local! {
    static TABLES: RefCell<Vec<Table>> = RefCell::default();
}

/// A function of one half that gives one half.
pub(crate) struct HalfFunction {
    name: String,
    function: Box<dyn Fn(f32) -> f32>,
}

impl HalfFunction {
    /// What an invocation makes of each half, if it makes each from one, and nothing else.
    pub(crate) fn of(invocation: &Invocation) -> Option<HalfFunction> {
        let ([input], [output]) = (&invocation.inputs[..], &invocation.outputs[..]) else {
            return None;
        };
        let half = (ElementType::Float16, ElementType::Float16);
        let (from, to) = (&input.shape, &output.shape);
        if (from.element, to.element) != half || from.elements() != to.elements() {
            return None;
        }
        Some(HalfFunction {
            function: function_of(invocation.operation, &invocation.parameters)?,
            name: format!("{:?} {:?}", invocation.operation, invocation.parameters),
        })
    }

    /// Its value for a half, which is kept. Rare beside those that are known: apart from these, their loop stays short.
    #[cold]
    fn compute(&self, half: [u8; 2], values: &mut [u16]) -> Result<u16, Error> {
        let (mut x, mut y) = ([0.0], [0; 2]);
        decode_f32(ElementType::Float16, &half, &mut x)?;
        let result = [(self.function)(x[0])];
        encode_f32(ElementType::Float16, &result, Rounding::NearestEven, &mut y)?;
        let value = u16::from_le_bytes(y);
        values[usize::from(u16::from_le_bytes(half))] = value;
        Ok(value)
    }

    /// Replaces halves, as they are stored, by its values.
    pub(crate) fn replace(&self, halves: &mut [u8]) -> Result<(), Error> {
        TABLES.with_borrow_mut(|tables| {
            let found = tables.iter().position(|table| table.function == self.name);
            let mut table = found.map_or_else(
                || Table {
                    function: self.name.clone(),
                    values: vec![UNKNOWN; 1 << 16],
                },
                |found| tables.remove(found),
            );
            let values = &mut table.values;
            for half in halves.as_chunks_mut::<2>().0 {
                let known = values[usize::from(u16::from_le_bytes(*half))];
                let value = if known == UNKNOWN {
                    self.compute(*half, values)?
                } else {
                    known
                };
                *half = value.to_le_bytes();
            }
            tables.push(table);
            if tables.len() > KEPT {
                tables.remove(0);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_becomes_what_the_function_gives() {
        let function = |x: f32| (x * 0.7).sin() / x;
        let every: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let (mut x, mut want) = (vec![0.0; 1 << 16], vec![0; 2 << 16]);
        decode_f32(ElementType::Float16, &every, &mut x).expect("as long");
        for x in &mut x {
            *x = function(*x);
        }
        encode_f32(ElementType::Float16, &x, Rounding::NearestEven, &mut want).expect("as long");
        // The second time from the table alone.
        for _ in 0..2 {
            let mut halves = every.clone();
            let name = "a test's".to_owned();
            let function = Box::new(function);
            let replaced = HalfFunction { name, function }.replace(&mut halves);
            replaced.expect("halves can be decoded");
            assert!(halves == want);
        }
    }
}
