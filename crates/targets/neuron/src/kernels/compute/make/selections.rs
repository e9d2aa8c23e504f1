//! Numbers of positions, selections, and registers.

use super::{BINARY32, Maker};
use crate::graph::Engine;
use crate::kernels::alu::Operation;
use crate::kernels::compute::{Action, Numbers, Value, is_integer};
use crate::stream::Evidence;
use crate::stream::formats::{
    AffineSelect, CopyPredicatedScalar, Dropout, Iota, Move, RangeSelect, ScalarTensorTensor,
    Select,
};
use chipless_model::{ElementType, Fault};
use smallvec::SmallVec;

/// `RANGE_SELECT` puts the most negative finite number where an index is outside.
const MOST_NEGATIVE: u32 = 0xff7f_ffff;

impl Maker<'_> {
    pub(super) fn iota(&mut self, i: Iota<'_>) -> Result<Action, Fault> {
        let numbers = Numbers {
            generator: i.values(),
            per_partition: i.per_channel(),
        };
        self.destination(numbers.count())?;
        Ok(Action::Generate(numbers))
    }

    pub(super) fn affine_select(&mut self, i: AffineSelect<'_>) -> Result<Action, Fault> {
        let numbers = Numbers {
            generator: i.values(),
            per_partition: i.per_channel(),
        };
        self.source("src")?;
        self.expect_elements(numbers.count())?;
        self.destination(numbers.count())?;
        let comparison: fn(i32) -> bool = match i.comparison() {
            0 => |n| n > 0,
            1 => |n| n >= 0,
            2 => |n| n == 0,
            3 => |n| n != 0,
            other => {
                return Err(Fault::unsupported(format!(
                    "comparison {other} is not supported: its meaning is not known"
                )));
            }
        };
        self.sources.push(self.context.chip.register(
            self.context.engine,
            i.fill_register(),
            ElementType::Float32,
        )?);
        Ok(Action::KeepByNumber {
            numbers,
            comparison,
            fill: self.sources.len() - 1,
        })
    }

    pub(super) fn range_select(&mut self, i: RangeSelect<'_>) -> Result<Action, Fault> {
        self.tensor()?;
        let comparison = |code: u8| match Self::operation(code)? {
            o @ (Operation::Equal
            | Operation::Greater
            | Operation::AtLeast
            | Operation::AtMost
            | Operation::Less) => Ok(o),
            other => Err(Fault::program(format!(
                "{other} is no comparison of an index with a bound"
            ))),
        };
        let bounds = [
            (
                comparison(i.comparison0())?,
                self.number("bound0", i.bound0(), i.bound0_source(), BINARY32)?,
            ),
            (
                comparison(i.comparison1())?,
                self.number("bound1", i.bound1(), i.bound1_source(), BINARY32)?,
            ),
        ];
        if i.fill() != MOST_NEGATIVE {
            self.weaken(Evidence::Assumed);
        }
        let operation = Self::operation(i.reduction())?;
        if i.accumulator() != 0 && operation != Operation::Max {
            return Err(Fault::unsupported(format!(
                "{operation} as a reduction is not supported here, only Max is"
            )));
        }
        let not_loaded = |_: &mut Self| {
            Err(Fault::unsupported(
                "accumulator command 4 is not supported here",
            ))
        };
        let accumulator = self.accumulator(
            i.accumulator(),
            operation,
            Engine::Dve,
            i.dst().address,
            i.channels(),
            not_loaded,
        )?;
        let (start, fill) = (f32::from_bits(i.start()), f32::from_bits(i.fill()));
        Ok(Action::KeepByIndex {
            start,
            fill,
            bounds,
            accumulator,
        })
    }

    /// `SELECT_REDUCE`: elements where the predicate holds, else a number, and the largest of both into the accumulator.
    pub(super) fn select_reduce(&mut self, i: ScalarTensorTensor<'_>) -> Result<Action, Fault> {
        self.tensors()?;
        let (predicate, elements) = (self.sources[0].element, self.sources[1].element);
        if !is_integer(predicate) {
            return Err(Fault::program(format!(
                "the predicate is of {predicate}, expected an integer type"
            )));
        }
        if matches!(elements, ElementType::Int32 | ElementType::UInt32) {
            return Err(Fault::program(format!(
                "elements of {elements} are selected by other instructions"
            )));
        }
        let operations = (Self::operation(i.op0())?, Self::operation(i.op1())?);
        if operations != (Operation::Bypass, Operation::Max) || i.reverse() > 1 {
            return Err(Fault::unsupported(format!(
                "{} and {}, reverse {:#04x}: only bypass and max, reverse 0 or 1, are supported here",
                operations.0,
                operations.1,
                i.reverse()
            )));
        }
        if !matches!(i.accumulator(), 0 | 2 | 3) {
            return Err(Fault::unsupported(format!(
                "accumulator command {} is not supported here",
                i.accumulator()
            )));
        }
        let fill = self.number("imm", i.imm(), i.imm_source(), BINARY32)?;
        let not_loaded = |_: &mut Self| Err(Fault::unsupported("nothing is loaded here"));
        let accumulator = self.accumulator(
            i.accumulator(),
            Operation::Max,
            Engine::Dve,
            i.dst().address,
            i.channels(),
            not_loaded,
        )?;
        Ok(Action::SelectReduce {
            fill,
            reverse: i.reverse() == 1,
            accumulator,
        })
    }

    pub(super) fn select(&mut self, i: Select<'_>) -> Result<Action, Fault> {
        self.tensor()?;
        let code = self.operand("src")?.code;
        let scalar = self.value("scalar", i.scalar(), i.scalar_source(), code)?;
        let predicate = self.value(
            "predicate",
            i.predicate(),
            i.predicate_source(),
            i.predicate_type(),
        )?;
        match i.reverse() {
            n @ (0 | 1) => Ok(Action::Select {
                scalar,
                predicate,
                reverse: n == 1,
            }),
            other => Err(Fault::unsupported(format!(
                "reverse {other:#04x} is not supported: its meaning is not known"
            ))),
        }
    }

    pub(super) fn dropout(&mut self, i: Dropout<'_>) -> Result<Action, Fault> {
        self.tensor()?;
        let code = match i.threshold_type() {
            0 => BINARY32,
            code => code,
        };
        if i.threshold_source() == 0 && code != BINARY32 {
            return Err(Fault::unsupported(format!(
                "a rate of type {code:#x} in the instruction is not supported, only fp32 is"
            )));
        }
        let rate = self.number("threshold", i.threshold(), i.threshold_source(), code)?;
        match i.rate() {
            n @ (0 | 1) => Ok(Action::Dropout {
                rate,
                keeps: n == 1,
            }),
            other => Err(Fault::unsupported(format!(
                "byte 0x2b (rate) is {other:#04x}: that is not supported"
            ))),
        }
    }

    pub(super) fn copy_predicated_scalar(
        &mut self,
        i: CopyPredicatedScalar<'_>,
    ) -> Result<Action, Fault> {
        self.tensor()?;
        let (predicate, to) = (self.sources[0].element, self.destinations[0].element);
        if !is_integer(predicate) {
            return Err(Fault::program(format!(
                "the predicate is of {predicate}, expected an integer type"
            )));
        }
        if i.scalar_type() != self.operand("dst")?.code || i.reverse() > 1 {
            return Err(Fault::unsupported(format!(
                "a scalar of type {:#x} for {to}, reverse {}: that is not supported",
                i.scalar_type(),
                i.reverse()
            )));
        }
        // How a narrow type lies in the four bytes is not said.
        if i.scalar_source() == 0 && to.bits() < 32 && i.scalar() != 0 {
            return Err(Fault::unsupported(format!(
                "the scalar {:#x} of {to} is not supported: only 0 is, and scalars of 32 bits",
                i.scalar()
            )));
        }
        let scalar = self.value("scalar", i.scalar(), i.scalar_source(), i.scalar_type())?;
        Ok(Action::FillPredicated {
            scalar,
            reverse: i.reverse() == 1,
        })
    }

    pub(super) fn move_registers(&mut self, i: Move<'_>) -> Result<Action, Fault> {
        let (moves, engine) = (usize::from(i.moves()), self.context.engine);
        if !(1..=8).contains(&moves) || !matches!(i.element(), 0x8..=BINARY32) || i.from() > 1 {
            return Err(Fault::unsupported(format!(
                "{moves} moves of type {:#x} from {} are not supported",
                i.element(),
                i.from()
            )));
        }
        let mut values = SmallVec::new();
        for n in 0..moves {
            let register = |number: u8| {
                self.context
                    .chip
                    .register(engine, number, ElementType::UInt32)
            };
            let (source, destination) = (i.sources()[n], i.destinations()[n]);
            self.destinations.push(register(destination)?);
            values.push(if i.from() == 0 {
                self.sources.push(register(source)?);
                Value::Partition(self.sources.len() - 1)
            } else {
                let all = i.immediates();
                let word = all[4 * n..]
                    .first_chunk()
                    .map_or(0, |word| u32::from_le_bytes(*word));
                Value::Constant(word)
            });
        }
        Ok(Action::MoveRegisters(values))
    }
}

impl Numbers {
    /// Numbers of a partition.
    fn count(&self) -> usize {
        self.generator
            .counts
            .iter()
            .map(|n| usize::from(*n))
            .product()
    }
}
