//! Instructions of the vector, scalar and `GpSimd` engines, made out: tensors in, tensors out, and what happens between.
//!
//! | module | what |
//! |---|---|
//! | [`make`] | an instruction as a [`Compute`] |
//! | [`elementwise`] | chains of operations, functions of tables, generated numbers, selections |
//! | [`reduce`] | reductions, running values, accumulators, statistics |
//! | [`search`] | largest values and where they stand, transpositions of blocks |
//!
//! All sources are read before anything is written. Within a partition elements are in the order of their pattern, partitions
//! follow each other.

mod elementwise;
mod make;
mod reduce;
mod search;

use super::alu::{Group, Operation};
use super::curve::Function;
use super::dependence::{Relation, follow};
use super::integers::{self, is_integer};
use super::{Elements, fault};
use crate::stream::Evidence;
use crate::stream::formats::Generator;
use chipless_kernels::cast::{Rounding, encode_f32, encode_i64};
use chipless_kernels::strided;
use chipless_model::{Access, BufferId, Doubt, Fault, Kind, Pattern, Storage};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

pub(super) use make::make;

/// An instruction, made out.
#[derive(Debug)]
pub(crate) struct Compute {
    /// Tensors first, then single elements of each partition.
    sources: SmallVec<[Elements; 4]>,
    destinations: SmallVec<[Elements; 2]>,
    /// Partitions of all of them.
    partitions: usize,
    /// Elements of the first tensor in each partition.
    length: usize,
    action: Action,
    /// The weakest thing that its numbers rest on.
    pub(super) evidence: Evidence,
}

/// What happens to the elements.
#[derive(Debug)]
enum Action {
    /// One operation after another on binary32 numbers.
    Chain(SmallVec<[Step<f32>; 2]>),
    /// The same on whole numbers of 32 bits.
    IntegerChain(SmallVec<[Step<u32>; 2]>),
    /// The same on bit patterns.
    BitChain(SmallVec<[Step<u32>; 2]>),
    /// `function(scale * x + bias)`.
    Curve {
        function: Arc<Function>,
        scale: Value<f32>,
        bias: Value<f32>,
        accumulator: Option<Accumulator>,
    },
    Reciprocal,
    /// `exp(x - less)`
    Exponential {
        less: Value<f32>,
        accumulator: Option<Accumulator>,
    },
    /// So many elements become one.
    Reduce {
        operation: Operation,
        group: usize,
        negate: bool,
    },
    /// The same on bit patterns.
    ReduceBits {
        operation: Operation,
        group: usize,
    },
    /// Partitions become one: the elements at the same place of rows of so many, or all of them, each times `scale`.
    ReducePartitions {
        operation: Operation,
        scale: f32,
        place: Option<usize>,
    },
    /// Running values that begin anew after so many elements.
    Cumulative {
        operation: Operation,
        row: usize,
    },
    /// `running = (x op0 running) op1 y`
    Scan {
        start: Value<f32>,
        first: (Operation, bool),
        second: (Operation, bool),
    },
    /// `running = running op1 (x op0 number)`; the elements or the running values are written.
    Cache {
        step: Step<f32>,
        accumulator: Accumulator,
        keeps_running: bool,
    },
    /// The accumulator of each partition, or its opposite.
    ReadAccumulator {
        negate: bool,
    },
    /// Count, mean and summed squares of differences to it, of even and of odd elements. The counts are the instruction's.
    Statistics {
        counts: [f32; 2],
    },
    /// Mean and variance of what such triples stand for.
    Aggregate,
    /// Numbers that follow from the position alone.
    Generate(Numbers),
    /// Elements where such a number compares with 0; else the number of a register.
    KeepByNumber {
        numbers: Numbers,
        comparison: fn(i32) -> bool,
        fill: usize,
    },
    /// Elements whose index compares with both bounds.
    KeepByIndex {
        start: f32,
        fill: f32,
        bounds: [(Operation, Value<f32>); 2],
        accumulator: Option<Accumulator>,
    },
    /// Elements where a number of the partition is not 0, else the scalar; or the other way round.
    Select {
        scalar: Value<u32>,
        predicate: Value<u32>,
        reverse: bool,
    },
    /// Elements of the second source where the first is not 0, else a number; or the other way round.
    SelectReduce {
        fill: Value<f32>,
        reverse: bool,
        accumulator: Option<Accumulator>,
    },
    /// Elements where the predicate is not 0; the others of the destination stay.
    CopyPredicated,
    /// A scalar where the predicate is not 0, or where it is; the other elements of the destination stay.
    FillPredicated {
        scalar: Value<u32>,
        reverse: bool,
    },
    /// The eight largest, smallest first.
    Largest,
    /// Eight values into the registers of the search.
    LoadValues,
    /// Where those values stand.
    FindIndices,
    /// Another value in their place.
    ReplaceValues(f32),
    /// Blocks of 32 elements × 32 partitions, each transposed.
    TransposeBlocks,
    /// All elements, or none: for rates in between the generator would have to be known.
    Dropout {
        rate: Value<f32>,
        keeps: bool,
    },
    /// Each source to its destination, as it is.
    Move,
    /// Elements of the second source, which has so many of each partition, by indices that agree with `start` but for the bits of `mask`;
    /// for others a number, or what the destination held.
    Gather {
        elements: usize,
        start: u32,
        mask: u32,
        missing: Option<u32>,
    },
    /// Runs of so many elements of the second source, by so many indices that partitions share.
    CopyRuns {
        indices: usize,
        run: usize,
    },
    /// Where the run of each element begins, then where it ends.
    SequenceBounds,
    /// Indices of the elements that are not 0, in every 16th partition, behind them so many of `padding` as there are zeros, then their number.
    Nonzero {
        offset: i32,
        padding: i32,
    },
    /// Registers of the engine, from others or from the instruction.
    MoveRegisters(SmallVec<[Value<u32>; 8]>),
}

/// An operation on a value and an operand.
#[derive(Debug)]
struct Step<T> {
    operation: Operation,
    operand: Value<T>,
    /// Whether the operand comes first.
    reversed: bool,
}

/// Where an operand comes from.
#[derive(Clone, Copy, Debug)]
enum Value<T> {
    /// The instruction.
    Constant(T),
    /// A source with one element for each partition.
    Partition(usize),
    /// A source with as many elements as the first.
    Tensor(usize),
}

impl Value<u32> {
    /// A constant's bits taken for a number.
    fn as_number(self) -> Value<f32> {
        match self {
            Value::Constant(bits) => Value::Constant(f32::from_bits(bits)),
            Value::Partition(source) => Value::Partition(source),
            Value::Tensor(source) => Value::Tensor(source),
        }
    }
}

/// A running value of each partition that outlives the instruction: the last source, where it goes on, and the last destination.
#[derive(Clone, Copy, Debug)]
struct Accumulator {
    operation: Operation,
    start: Start,
}

impl Accumulator {
    /// Whether a source is what it held.
    fn holds(self, source: usize) -> bool {
        matches!(self.start, Start::Held(held) if held == source)
    }
}

/// What an accumulator holds at the start of an instruction.
#[derive(Clone, Copy, Debug)]
enum Start {
    /// What it held, which is this source.
    Held(usize),
    /// Nothing: what it is set to by this operation's identity.
    Reset,
    /// It is set to 0 and does not take part.
    Zeroed,
    /// This value.
    Loaded(Value<f32>),
}

/// Numbers of positions: those of the pattern, and from one partition to the next.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    generator: Generator,
    per_partition: i32,
}

/// What comes out.
enum Results {
    Numbers(Vec<f32>),
    Bits(Vec<u32>),
    Integers(Vec<i64>),
}

impl Compute {
    pub(super) fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        for source in &self.sources {
            visit(source.read_access());
        }
        for destination in &self.destinations {
            // Which elements a predicated copy writes, data decide: others must keep away from all of them.
            visit(destination.write_access());
        }
    }

    /// Elements of the largest tensor that is read or written: one operation each.
    pub(super) fn arithmetic(&self) -> u64 {
        let tensors = self.sources.iter().chain(&self.destinations);
        tensors.map(Elements::count).max().unwrap_or(0)
    }

    /// What is written that depends on doubtful bytes.
    pub(super) fn dependence(
        &self,
        doubtful: &dyn Doubt,
        visit: &mut dyn FnMut(BufferId, Pattern),
    ) {
        for (d, to) in self.destinations.iter().enumerate() {
            for (s, from) in self.sources.iter().enumerate() {
                if let Some(relation) = self.relation((s, from), (d, to)) {
                    follow(from, to, relation, doubtful, visit);
                }
            }
        }
    }

    /// What of a destination depends on an element of a source, if anything does.
    #[allow(clippy::enum_glob_use, reason = "a table of them")]
    fn relation(
        &self,
        (s, from): (usize, &Elements),
        (d, to): (usize, &Elements),
    ) -> Option<Relation> {
        use Action::*;
        let partition = Relation::Partition(self.partitions as u64);
        Some(match &self.action {
            Move => return (s == d).then_some(Relation::Each),
            MoveRegisters(_) => Relation::All,
            TransposeBlocks => Relation::Block {
                side: search::BLOCK as u64,
                row: self.length as u64,
            },
            Reduce { group, .. } | ReduceBits { group, .. } => Relation::Group(*group as u64),
            ReducePartitions { place, .. } => match place {
                Some(row) => Relation::Place(*row as u64),
                None => Relation::All,
            },
            // A register: one word for all of them.
            KeepByNumber { fill, .. } if s == *fill => Relation::All,
            // Partitions share them.
            CopyRuns { .. } if s == 0 => Relation::All,
            Curve { accumulator, .. }
            | KeepByIndex { accumulator, .. }
            | SelectReduce { accumulator, .. }
            | Exponential { accumulator, .. }
                if d == 0 && accumulator.is_some_and(|a| a.holds(s)) =>
            {
                return None;
            }
            Gather { .. } if s > 0 => partition,
            Chain(_)
            | IntegerChain(_)
            | BitChain(_)
            | Curve { .. }
            | Reciprocal
            | Exponential { .. }
            | KeepByNumber { .. }
            | KeepByIndex { .. }
            | Select { .. }
            | SelectReduce { .. }
            | CopyPredicated
            | FillPredicated { .. }
            | Dropout { .. }
            | Gather { .. }
                if d == 0 && from.count() == to.count() =>
            {
                Relation::Each
            }
            _ => partition,
        })
    }

    /// Where a byte that is moved comes from.
    pub(super) fn source_of(&self, buffer: BufferId, byte: u64) -> Option<(BufferId, u64)> {
        let Action::Move = self.action else {
            return None;
        };
        let mut moves = self.sources.iter().zip(&self.destinations);
        moves.find_map(|(from, to)| to.taken_from(from, buffer, byte))
    }

    /// What is written, element by element.
    pub(super) fn destinations(&self) -> impl Iterator<Item = &Elements> {
        self.destinations.iter()
    }

    #[allow(clippy::enum_glob_use, reason = "a table of them")]
    pub(super) fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        use Action::*;
        let results: SmallVec<[Results; 2]> = match &self.action {
            IntegerChain(_) | BitChain(_) | ReduceBits { .. } | Select { .. } | TransposeBlocks => {
                smallvec![Results::Bits(self.on_bits(self.bits(storage)?)?)]
            }
            ReducePartitions {
                operation, place, ..
            } if operation.group() == Group::Bits => {
                let (bits, group) = reduce::by_place(*place, &self.bits(storage)?[0]);
                let reduced = reduce::reduce_bits(*operation, group, &bits, self.width())?;
                smallvec![Results::Bits(reduced)]
            }
            CopyPredicated => smallvec![self.copy_predicated(storage)?],
            FillPredicated { scalar, reverse } => {
                smallvec![self.fill_predicated(*scalar, *reverse, storage)?]
            }
            Move => {
                let inputs = self.bits(storage)?;
                inputs.into_iter().map(Results::Bits).collect()
            }
            Gather {
                elements,
                start,
                mask,
                missing,
            } => {
                smallvec![self.gather(*elements, (*start, *mask), *missing, storage)?]
            }
            CopyRuns { indices, run } => {
                smallvec![Results::Bits(self.copy_runs(
                    *indices,
                    *run,
                    &self.bits(storage)?
                )?)]
            }
            Nonzero { offset, padding } => smallvec![self.nonzero(*offset, *padding, storage)?],
            MoveRegisters(values) => move_registers(values, &self.bits(storage)?),
            SequenceBounds => {
                smallvec![Results::Integers(
                    self.sequence_bounds(&self.bits(storage)?[0])
                )]
            }
            Generate(numbers) => smallvec![Results::Integers(self.generate(*numbers))],
            FindIndices => smallvec![Results::Integers(
                self.find_indices(&self.remarked(storage)?)
            )],
            _ => {
                let inputs = self.remarked(storage)?;
                let exact = self.exact(&inputs);
                let results = self.on_numbers(inputs)?;
                if let (Some(exact), [Results::Numbers(values), ..]) = (exact, &results[..]) {
                    let element = self.destinations[0].element;
                    integers::remark_results(storage, element, values, &exact, 0);
                }
                results
            }
        };
        let mut packed = Vec::new();
        for (destination, results) in self.destinations.iter().zip(results) {
            destination.put(storage, &mut packed, results)?;
        }
        Ok(())
    }

    fn numbers(&self, storage: &Storage<'_>) -> Result<Inputs<f32>, Fault> {
        let mut packed = Vec::new();
        let read = |source: &Elements| {
            let mut values = Vec::new();
            source.read(storage, &mut packed, &mut values)?;
            Ok(values)
        };
        self.sources.iter().map(read).collect()
    }

    /// The same, of which those that lose digits are remarked where integers come out.
    fn remarked(&self, storage: &mut Storage<'_>) -> Result<Inputs<f32>, Fault> {
        if self.destinations.iter().any(|to| is_integer(to.element)) {
            for source in &self.sources {
                integers::remark_source(storage, source)?;
            }
        }
        self.numbers(storage)
    }

    fn bits(&self, storage: &Storage<'_>) -> Result<Inputs<u32>, Fault> {
        self.sources
            .iter()
            .map(|source| source.read_bits(storage))
            .collect()
    }

    /// What becomes of numbers.
    #[allow(clippy::enum_glob_use, reason = "a table of them")]
    #[expect(clippy::too_many_lines, reason = "a table: one arm for each action")]
    fn on_numbers(&self, mut inputs: Inputs<f32>) -> Result<SmallVec<[Results; 2]>, Fault> {
        use Action::*;
        let mut accumulated = None;
        let values = match &self.action {
            Chain(steps) => self.chain(steps, &mut inputs)?,
            Curve {
                function,
                scale,
                bias,
                accumulator,
            } => {
                let values = self.curve(function, *scale, *bias, &mut inputs);
                accumulated = accumulator
                    .map(|a| self.accumulate(a, &inputs, &values))
                    .transpose()?;
                values
            }
            Reciprocal => inputs[0].iter().map(|x| 1.0 / x).collect(),
            Exponential { less, accumulator } => {
                let values = self.exponential(*less, &inputs);
                accumulated = accumulator
                    .map(|a| self.accumulate(a, &inputs, &values))
                    .transpose()?;
                values
            }
            Reduce {
                operation,
                group,
                negate,
            } => reduce::reduce(*operation, *group, *negate, &inputs[0])?,
            ReducePartitions {
                operation,
                scale,
                place,
            } => {
                let (mut values, group) = reduce::by_place(*place, &inputs[0]);
                for value in &mut values {
                    *value *= scale;
                }
                reduce::reduce(*operation, group, false, &values)?
            }
            Cumulative { operation, row } => reduce::cumulative(*operation, *row, &inputs[0])?,
            Scan {
                start,
                first,
                second,
            } => self.scan(*start, *first, *second, &inputs)?,
            Cache {
                step,
                accumulator,
                keeps_running,
            } => {
                let (values, last) = self.cache(step, *accumulator, *keeps_running, &mut inputs)?;
                accumulated = Some(last);
                values
            }
            ReadAccumulator { negate } => inputs[0]
                .iter()
                .map(|x| if *negate { -x } else { *x })
                .collect(),
            Statistics { counts } => self.statistics(*counts, &inputs[0]),
            Aggregate => self.aggregate(&inputs[0]),
            KeepByNumber {
                numbers,
                comparison,
                fill,
            } => self.keep_by_number(*numbers, *comparison, *fill, &inputs),
            KeepByIndex {
                start,
                fill,
                bounds,
                accumulator,
            } => {
                let values = self.keep_by_index(*start, *fill, bounds, &inputs)?;
                accumulated = accumulator
                    .map(|a| self.accumulate(a, &inputs, &values))
                    .transpose()?;
                values
            }
            SelectReduce {
                fill,
                reverse,
                accumulator,
            } => {
                let values = self.select_number(*fill, *reverse, &inputs);
                accumulated = accumulator
                    .map(|a| self.accumulate(a, &inputs, &values))
                    .transpose()?;
                values
            }
            Largest => self.largest(&inputs[0]),
            LoadValues => inputs[0]
                .chunks(search::VALUES)
                .flat_map(|values| values.iter().rev().copied())
                .collect(),
            ReplaceValues(value) => self.replace_values(*value, &mut inputs),
            Dropout { rate, keeps } => self.dropout(*rate, *keeps, &mut inputs)?,
            IntegerChain(_)
            | BitChain(_)
            | ReduceBits { .. }
            | Select { .. }
            | TransposeBlocks
            | Move
            | Gather { .. }
            | CopyRuns { .. }
            | SequenceBounds
            | Nonzero { .. }
            | MoveRegisters(_)
            | CopyPredicated
            | FillPredicated { .. }
            | Generate(_)
            | FindIndices => return Err(Fault::program("works on bits")),
        };
        let results = [Some(values), accumulated].into_iter().flatten();
        Ok(results.map(Results::Numbers).collect())
    }

    /// What becomes of bit patterns and whole numbers.
    fn on_bits(&self, mut inputs: Inputs<u32>) -> Result<Vec<u32>, Fault> {
        match &self.action {
            Action::IntegerChain(steps) => self.integer_chain(steps, &mut inputs),
            Action::BitChain(steps) => self.bit_chain(steps, &mut inputs, self.width()),
            Action::ReduceBits { operation, group } => {
                reduce::reduce_bits(*operation, *group, &inputs[0], self.width())
            }
            Action::Select {
                scalar,
                predicate,
                reverse,
            } => Ok(self.select(*scalar, *predicate, *reverse, &mut inputs)),
            Action::TransposeBlocks => Ok(self.transpose_blocks(&inputs[0])),
            _ => Err(Fault::program("works on numbers")),
        }
    }

    /// Bits of an element of the first source.
    fn width(&self) -> u32 {
        self.sources.first().map_or(32, |s| s.element.bits() as u32)
    }
}

/// A word for each register that is written.
fn move_registers(values: &[Value<u32>], inputs: &[Vec<u32>]) -> SmallVec<[Results; 2]> {
    let of = |value: &Value<u32>| match value {
        Value::Constant(bits) => *bits,
        Value::Partition(source) | Value::Tensor(source) => inputs[*source][0],
    };
    values
        .iter()
        .map(|value| Results::Bits(vec![of(value)]))
        .collect()
}

/// The elements of each source.
type Inputs<T> = SmallVec<[Vec<T>; 4]>;

impl Elements {
    /// Bit patterns, the higher bits zero; elements are of at most 32 bits.
    fn read_bits(&self, storage: &Storage<'_>) -> Result<Vec<u32>, Fault> {
        let (mut packed, size) = (Vec::new(), (self.element.bits() / 8) as usize);
        if !matches!(size, 1 | 2 | 4) {
            return Err(Fault::unsupported(format!(
                "bits of {} are not supported",
                self.element
            )));
        }
        self.gather(storage, &mut packed)?;
        Ok(words(&packed, size))
    }

    /// Numbers rounded to the type, as bit patterns.
    fn as_bits(&self, values: &[f32]) -> Result<Vec<u32>, Fault> {
        let size = (self.element.bits() / 8) as usize;
        let mut packed = vec![0; values.len() * size];
        encode_f32(self.element, values, Rounding::NearestEven, &mut packed).map_err(fault)?;
        Ok(words(&packed, size))
    }

    fn put(
        &self,
        storage: &mut Storage<'_>,
        packed: &mut Vec<u8>,
        results: Results,
    ) -> Result<(), Fault> {
        let size = (self.element.bits() / 8) as usize;
        match results {
            Results::Numbers(values) => return self.write(storage, packed, &values),
            Results::Integers(values) if self.element.kind() == Kind::Float => {
                let values: Vec<f32> = values.iter().map(|v| *v as f32).collect();
                return self.write(storage, packed, &values);
            }
            Results::Integers(values) => {
                packed.resize(values.len() * size, 0);
                encode_i64(self.element, &values, packed).map_err(fault)?;
            }
            Results::Bits(values) => {
                packed.clear();
                for value in values {
                    packed.extend(value.to_le_bytes().iter().take(size));
                }
            }
        }
        strided::scatter(packed, storage.bytes_mut(self.buffer), &self.pattern).map_err(fault)
    }
}

/// Elements of so many bytes as words.
fn words(packed: &[u8], size: usize) -> Vec<u32> {
    let word = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |n, byte| n << 8 | u32::from(*byte))
    };
    packed.chunks_exact(size).map(word).collect()
}
