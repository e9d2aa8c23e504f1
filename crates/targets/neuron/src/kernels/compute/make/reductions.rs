//! Fewer elements than are read, or the same in another place: reductions, running values, statistics, the search.

use super::Maker;
use crate::graph::Engine;
use crate::kernels::alu::{Group, Operation};
use crate::kernels::compute::Action;
use crate::kernels::compute::search::{BLOCK, VALUES};
use crate::stream::formats::{CrossLaneReduce, MatchReplace, ReadAccumulator, Reduce, Statistics};
use chipless_model::{ElementType, Fault};

const CROSS_LANE_REDUCE: u8 = 0x7c;
const CROSS_LANE_REDUCE_BITS: u8 = 0x7d;

/// Elements of each partition that `BATCH_NORM_STATS2` takes at most.
const MOST_COUNTED: usize = 512;

impl Maker<'_> {
    pub(super) fn reduce(&mut self, i: Reduce<'_>) -> Result<Action, Fault> {
        self.source("src")?;
        let (length, operation) = (self.length.unwrap_or_default(), Self::operation(i.op())?);
        let reduced = match i.dimensions() {
            0 => 0,
            1 => {
                return Err(Fault::program(
                    "dimensions 1: not dense, which no instruction may have",
                ));
            }
            n @ 2..=5 => usize::from(n) - 1,
            n => {
                return Err(Fault::unsupported(format!(
                    "dimensions {n} are not supported: their meaning is not known"
                )));
            }
        };
        let group: usize = i.src().counts[..reduced]
            .iter()
            .map(|n| usize::from(*n))
            .product();
        let is_reduction = matches!(self.opcode, 0x42 | 0x52);
        if i.negate() > 1 || (i.negate() == 1 && self.opcode != 0x42) {
            return Err(Fault::unsupported(format!(
                "byte 0x23 (negate) is {:#04x}: that is not supported here",
                i.negate()
            )));
        }
        let results = if is_reduction {
            length.checked_div(group).unwrap_or(0)
        } else {
            length
        };
        self.destination(results)?;
        if is_reduction && reduced == 0 {
            return Err(Fault::unsupported(
                "a reduction over no dimension is not supported",
            ));
        }
        let no_operation = || match (operation, reduced) {
            (Operation::Bypass, 0) => Ok(()),
            _ => Err(Fault::unsupported(format!(
                "{operation} over {reduced} dimensions is not supported here"
            ))),
        };
        match self.opcode {
            0x42 | 0x52 => self.reduction(operation, group, i.negate() == 1),
            0x4e => {
                if self.group(&[operation])? != Group::Arithmetic || reduced != 1 {
                    return Err(Fault::unsupported(format!(
                        "{operation} over {reduced} dimensions is not supported here"
                    )));
                }
                Ok(Action::Cumulative {
                    operation,
                    row: group,
                })
            }
            0x48 => no_operation().map(|()| Action::Reciprocal),
            0x6a => no_operation().and_then(|()| self.shuffle()),
            0x6b => {
                no_operation()?;
                let (from, to) = (&self.sources[0], &self.destinations[0]);
                if from.element != to.element
                    || !length.is_multiple_of(BLOCK)
                    || !usize::from(i.channels()).is_multiple_of(BLOCK)
                {
                    return Err(Fault::program(format!(
                        "{length} elements of {} in {} partitions to {} are no blocks of {BLOCK} × {BLOCK}",
                        from.element,
                        i.channels(),
                        to.element
                    )));
                }
                Ok(Action::TransposeBlocks)
            }
            _ => Err(Fault::unsupported(
                "this instruction is not supported: what it does is not known well enough",
            )),
        }
    }

    pub(super) fn reduction(
        &mut self,
        operation: Operation,
        group: usize,
        negate: bool,
    ) -> Result<Action, Fault> {
        match self.group(&[operation])? {
            Group::Bits => {
                self.unconverted(Group::Bits, &[operation])?;
                if !matches!(operation, Operation::And | Operation::Or | Operation::Xor) {
                    return Err(Fault::unsupported(format!(
                        "{operation} as a reduction is not supported"
                    )));
                }
                Ok(Action::ReduceBits { operation, group })
            }
            Group::Arithmetic if operation.identity().is_some() => Ok(Action::Reduce {
                operation,
                group,
                negate,
            }),
            _ => Err(Fault::unsupported(format!(
                "{operation} as a reduction is not supported"
            ))),
        }
    }

    /// `CROSS_LANE_REDUCE`: over all partitions, or over all elements.
    pub(super) fn cross_lane_reduce(&mut self, i: CrossLaneReduce<'_>) -> Result<Action, Fault> {
        self.source("src")?;
        let length = self.length.unwrap_or_default();
        let place = match i.axis() {
            0 => None,
            1 => Some(length),
            other => {
                return Err(Fault::unsupported(format!(
                    "axis {other} is not supported: its meaning is not known"
                )));
            }
        };
        self.destination(place.unwrap_or(1))?;
        let factor = f32::from_bits(i.scale());
        let (operation, scale) = match (self.opcode, i.op()) {
            (CROSS_LANE_REDUCE, 1) => (Operation::Add, factor),
            // Only an average says what the factor does.
            (_, op) if !matches!(factor, 0.0 | 1.0) => {
                return Err(Fault::unsupported(format!(
                    "scale {factor} with operation {op} is not supported, only 0 or 1 is"
                )));
            }
            (CROSS_LANE_REDUCE, 0) => (Operation::Add, 1.0),
            (CROSS_LANE_REDUCE, 2) => (Operation::Max, 1.0),
            (CROSS_LANE_REDUCE_BITS, 3) => (Operation::Or, 1.0),
            (CROSS_LANE_REDUCE_BITS, 4) => (Operation::And, 1.0),
            (CROSS_LANE_REDUCE_BITS, 5) => (Operation::Xor, 1.0),
            (_, op) => {
                return Err(Fault::program(format!("it has no operation {op}")));
            }
        };
        if self.opcode == CROSS_LANE_REDUCE_BITS {
            self.unconverted(Group::Bits, &[operation])?;
        }
        Ok(Action::ReducePartitions {
            operation,
            scale,
            place,
        })
    }

    pub(super) fn read_accumulator(&mut self, i: ReadAccumulator<'_>) -> Result<Action, Fault> {
        let engine = if self.opcode == 0x24 {
            Engine::Act
        } else {
            Engine::Dve
        };
        if i.elements() != 1 || i.negate() > 1 || (i.negate() == 1 && engine == Engine::Act) {
            return Err(Fault::unsupported(format!(
                "{} elements and negate {} are not supported here",
                i.elements(),
                i.negate()
            )));
        }
        self.sources.push(
            self.context
                .chip
                .accumulators(engine, i.dst().address, i.channels())?,
        );
        self.destination(1)?;
        Ok(Action::ReadAccumulator {
            negate: i.negate() == 1,
        })
    }

    pub(super) fn statistics(&mut self, i: Statistics<'_>) -> Result<Action, Fault> {
        self.source("src")?;
        let length = self.length.unwrap_or_default();
        if self.opcode != 0x61 && (i.count0(), i.count1()) != (0, 0) {
            return Err(Fault::unsupported(
                "bytes 0x28 and 0x2c (counts) are not 0: what they do is not known",
            ));
        }
        let (action, results) = match self.opcode {
            0x61 if length > MOST_COUNTED => {
                return Err(Fault::program(format!(
                    "{length} elements of each partition, at most {MOST_COUNTED} are counted"
                )));
            }
            0x61 => {
                let counts = [i.count0(), i.count1()].map(f32::from_bits);
                (Action::Statistics { counts }, 6)
            }
            0x62 if length > 0 && length.is_multiple_of(3) => (Action::Aggregate, 2),
            0x62 => {
                return Err(Fault::program(format!(
                    "{length} elements of each partition are no triples of count, mean and summed squares"
                )));
            }
            0x6c | 0x6e if length < VALUES => {
                return Err(Fault::program(format!(
                    "{length} elements of each partition, expected at least {VALUES}"
                )));
            }
            0x6c => (Action::Largest, VALUES),
            0x6e => {
                self.sources.push(
                    self.context
                        .chip
                        .search_values(i.src().address, i.channels())?,
                );
                (Action::FindIndices, VALUES)
            }
            _ => {
                return Err(Fault::unsupported(
                    "this instruction is not supported: what it does is not known well enough",
                ));
            }
        };
        self.destination(results)?;
        let to = self.destinations[0].element;
        if self.opcode == 0x6e && !matches!(to, ElementType::UInt16 | ElementType::UInt32) {
            return Err(Fault::program(format!(
                "indices are written as {to}, expected uint16 or uint32"
            )));
        }
        Ok(action)
    }

    pub(super) fn match_replace(&mut self, i: MatchReplace<'_>) -> Result<Action, Fault> {
        self.tensor()?;
        self.sources.push(
            self.context
                .chip
                .search_values(i.src().address, i.channels())?,
        );
        Ok(Action::ReplaceValues(f32::from_bits(i.value())))
    }
}
