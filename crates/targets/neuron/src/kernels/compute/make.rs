//! An instruction as a [`Compute`]: its operands found in the memories of the core, its operation found in the tables.

use super::search::{BLOCK, VALUES};
use super::{Accumulator, Action, Compute, Numbers, Start, Step, Value, is_integer};
use crate::graph::Engine;
use crate::kernels::alu::{Group, Operation};
use crate::kernels::{Context, Elements};
use crate::stream::{
    Evidence, Instruction, Opcode, Operand, Slot,
    formats::{
        Activate, AffineSelect, Dropout, Iota, MatchReplace, Move, RangeSelect, ReadAccumulator, Reduce, ScalarTensorTensor,
        Select, Statistics, TensorScalar, TensorTensor,
    },
};
use chipless_model::{Direction, ElementType, Fault};
use smallvec::SmallVec;

/// Element type code of binary32.
const BINARY32: u8 = 0xa;
/// `RANGE_SELECT` puts the most negative finite number where an index is outside.
const MOST_NEGATIVE: u32 = 0xff7f_ffff;

/// The meaning of an instruction of the vector, scalar or `GpSimd` engine; `None` for those of other kinds.
pub(in crate::kernels) fn make(context: &Context<'_>, slot: &Slot) -> Result<Option<Compute>, Fault> {
    let mut maker = Maker {
        context,
        opcode: slot.head.opcode,
        operands: slot.operands(),
        length: None,
        sources: SmallVec::new(),
        destinations: SmallVec::new(),
        evidence: Opcode::of(slot.head.opcode).map_or(Evidence::Assumed, |o| o.evidence),
    };
    let action = match slot.decode() {
        Instruction::TensorTensor(i) => maker.tensor_tensor(i)?,
        Instruction::TensorScalar(i) => maker.tensor_scalar(i)?,
        Instruction::ScalarTensorTensor(i) => maker.scalar_tensor_tensor(i)?,
        Instruction::Activate(i) => maker.activate(i)?,
        Instruction::Reduce(i) => maker.reduce(i)?,
        Instruction::ReadAccumulator(i) => maker.read_accumulator(i)?,
        Instruction::Iota(i) => maker.iota(i)?,
        Instruction::AffineSelect(i) => maker.affine_select(i)?,
        Instruction::RangeSelect(i) => maker.range_select(i)?,
        Instruction::Select(i) => maker.select(i)?,
        Instruction::Statistics(i) => maker.statistics(i)?,
        Instruction::LoadValues(i) => {
            maker.source("src")?;
            maker.expect_elements(VALUES)?;
            maker.destinations.push(context.chip.search_values(i.src().address, i.channels())?);
            Action::LoadValues
        }
        Instruction::MatchReplace(i) => maker.match_replace(i)?,
        Instruction::Dropout(i) => maker.dropout(i)?,
        Instruction::Move(i) => maker.move_registers(i)?,
        _ => return Ok(None),
    };
    Ok(Some(maker.finish(action)))
}

struct Maker<'c> {
    context: &'c Context<'c>,
    opcode: u8,
    /// The tensors of the slot.
    operands: SmallVec<[Operand; 3]>,
    /// Elements of the first source in each partition.
    length: Option<usize>,
    sources: SmallVec<[Elements; 4]>,
    destinations: SmallVec<[Elements; 2]>,
    evidence: Evidence,
}

impl Maker<'_> {
    fn finish(self, action: Action) -> Compute {
        let partitions = self.operands.first().map_or(0, |o| usize::from(o.partitions));
        // What is generated has no source: its destination says how much.
        let generated = self.operands.first().map_or(0, |o| o.elements() as usize);
        Compute {
            sources: self.sources,
            destinations: self.destinations,
            partitions,
            length: self.length.unwrap_or(generated),
            action,
            evidence: self.evidence,
        }
    }

    /// The numbers rest on something weaker than the opcode.
    fn weaken(&mut self, evidence: Evidence) {
        self.evidence = self.evidence.min(evidence);
    }

    fn operand(&self, role: &str) -> Result<Operand, Fault> {
        let found = self.operands.iter().find(|operand| operand.role == role).copied();
        found.ok_or_else(|| Fault::unsupported(format!("the instruction has no {role}")))
    }

    /// Adds a tensor to the sources, all of them as long as the first, and gives its place among them.
    fn source(&mut self, role: &str) -> Result<usize, Fault> {
        let operand = self.operand(role)?;
        let (found, expected) = (operand.elements() as usize, self.length);
        self.sources.push(self.context.chip.elements(&operand)?);
        if *self.length.get_or_insert(found) != found {
            return Err(Fault::program(format!(
                "{role}: {found} elements of each partition, expected {}",
                expected.unwrap_or_default()
            )));
        }
        Ok(self.sources.len() - 1)
    }

    /// Adds the destination, which takes so many elements of each partition.
    fn destination(&mut self, elements: usize) -> Result<(), Fault> {
        let operand = self.operand("dst")?;
        if operand.elements() != elements as u64 {
            return Err(Fault::program(format!(
                "{elements} elements are made of each partition, {} written",
                operand.elements()
            )));
        }
        self.destinations.push(self.context.chip.elements(&operand)?);
        Ok(())
    }

    /// The source of that role, and a destination as long as it; gives the length.
    fn tensor(&mut self) -> Result<usize, Fault> {
        self.source("src")?;
        let length = self.length.unwrap_or_default();
        self.destination(length)?;
        Ok(length)
    }

    fn expect_elements(&self, expected: usize) -> Result<(), Fault> {
        let found = self.length.unwrap_or_default();
        if found == expected {
            return Ok(());
        }
        Err(Fault::program(format!("src: {found} elements of each partition, expected {expected}")))
    }

    /// Two sources, and a destination as long as each of them.
    fn tensors(&mut self) -> Result<(), Fault> {
        self.source("src0")?;
        self.source("src1")?;
        self.destination(self.length.unwrap_or_default())
    }

    /// An operand of the instruction: a constant, or the source with an element of each partition.
    fn value(&mut self, role: &'static str, value: u32, source: u8, code: u8) -> Result<Value<u32>, Fault> {
        match source {
            0 => Ok(Value::Constant(value)),
            1 => {
                let partitions = self.operands.first().map_or(0, |o| o.partitions);
                let (steps, counts) = ([1, 0, 0, 0], [1; 4]);
                let operand = Operand { role, direction: Direction::Read, code, address: value, steps, counts, partitions };
                self.sources.push(self.context.chip.elements(&operand)?);
                Ok(Value::Partition(self.sources.len() - 1))
            }
            other => Err(Fault::unsupported(format!(
                "{role} comes from a register (source {other}), which is not supported"
            ))),
        }
    }

    /// The same as a number; an element of a partition may be of any type.
    fn number(&mut self, role: &'static str, value: u32, source: u8, code: u8) -> Result<Value<f32>, Fault> {
        Ok(self.value(role, value, source, code)?.as_number())
    }

    fn operation(code: u8) -> Result<Operation, Fault> {
        let known = Operation::of(code);
        known.ok_or_else(|| Fault::unsupported(format!("operation {code:#04x} is not supported: its meaning is not known")))
    }

    /// Whether the opcode is one of the forms on bit patterns.
    fn is_bitwise(&self) -> bool {
        matches!(self.opcode, 0x51 | 0x52 | 0x53 | 0x5e | 0x9e)
    }

    /// The group that operations work in, which must be one: `bypass` fits everywhere.
    fn group(&self, operations: &[Operation]) -> Result<Group, Fault> {
        let mut group = if self.is_bitwise() { Some(Group::Bits) } else { None };
        for operation in operations.iter().filter(|o| **o != Operation::Bypass) {
            let own = operation.group();
            if *group.get_or_insert(own) != own {
                return Err(Fault::unsupported(format!("{operation} is not supported here: it is an operation on {own}")));
            }
        }
        let group = group.unwrap_or(Group::Arithmetic);
        if group == Group::Bits && !self.is_bitwise() {
            return Err(Fault::unsupported("operations on bits are not supported here: they have an opcode of their own"));
        }
        Ok(group)
    }

    /// The types that operations without conversion take: all equal, and whole numbers.
    fn unconverted(&self, group: Group, operations: &[Operation]) -> Result<(), Fault> {
        let types: SmallVec<[ElementType; 3]> = self.sources.iter().chain(&self.destinations).map(|e| e.element).collect();
        let (first, is_equal) = (types[0], types.windows(2).all(|pair| pair[0] == pair[1]));
        if !is_equal || !is_integer(first) {
            return Err(Fault::program("operations without conversion take integers, all of one type"));
        }
        if group == Group::Integer {
            let signed = match first {
                ElementType::Int32 => true,
                ElementType::UInt32 => false,
                other => return Err(Fault::program(format!("operations on whole numbers take 32 bits, not {other}"))),
            };
            if let Some(o) = operations.iter().find(|o| o.signedness().is_some_and(|s| s != signed)) {
                return Err(Fault::program(format!("{o} does not take {first}")));
            }
        }
        Ok(())
    }

    /// Operations one after another.
    fn chain(&self, steps: SmallVec<[Step<u32>; 2]>) -> Result<Action, Fault> {
        let operations: SmallVec<[Operation; 2]> = steps.iter().map(|s| s.operation).collect();
        match self.group(&operations)? {
            Group::Arithmetic => {
                let number = |s: Step<u32>| Step { operation: s.operation, operand: s.operand.as_number(), reversed: s.reversed };
                Ok(Action::Chain(steps.into_iter().map(number).collect()))
            }
            group => {
                self.unconverted(group, &operations)?;
                Ok(if group == Group::Integer { Action::IntegerChain(steps) } else { Action::BitChain(steps) })
            }
        }
    }

    fn tensor_tensor(&mut self, i: TensorTensor<'_>) -> Result<Action, Fault> {
        self.tensors()?;
        let operation = Self::operation(i.op())?;
        match self.opcode {
            0x72 | 0x99 if operation != Operation::Bypass => {
                Err(Fault::unsupported(format!("{operation} is not supported here, only bypass is")))
            }
            0x72 | 0x99 => {
                let (predicate, data, to) = (&self.sources[0], &self.sources[1], &self.destinations[0]);
                if !is_integer(predicate.element) {
                    return Err(Fault::program(format!("the predicate is of {}, expected an integer type", predicate.element)));
                }
                if self.opcode == 0x72 && data.element != to.element {
                    return Err(Fault::program(format!("{} is copied to {} without a conversion", data.element, to.element)));
                }
                Ok(Action::CopyPredicated)
            }
            _ => {
                if operation != Operation::Add || self.group(&[operation])? != Group::Arithmetic {
                    self.weaken(Evidence::Quoted);
                }
                self.chain([Step { operation, operand: Value::Tensor(1), reversed: false }].into_iter().collect())
            }
        }
    }

    fn tensor_scalar(&mut self, i: TensorScalar<'_>) -> Result<Action, Fault> {
        self.tensor()?;
        let code = self.scalar_code(self.operand("src")?.code);
        let (first, second) = (Self::operation(i.op0())?, Self::operation(i.op1())?);
        let operand = self.value("imm0", i.imm0(), i.imm0_source(), code)?;
        let (reversed, both) = (i.reverse() & 1 != 0, i.reverse() & 2 != 0);
        if i.reverse() > 3 {
            return Err(Fault::unsupported(format!("reverse {:#04x} is not supported: its meaning is not known", i.reverse())));
        }
        if matches!(self.opcode, 0x9a | 0xe6) {
            return self.cache(&i, Step { operation: first, operand, reversed }, second);
        }
        if i.accumulator() != 0 {
            return Err(Fault::unsupported("byte 0x0c (accumulator) is not 0: that is not supported here"));
        }
        let mut steps: SmallVec<[Step<u32>; 2]> = SmallVec::new();
        steps.push(Step { operation: first, operand, reversed });
        if second != Operation::Bypass {
            let operand = self.value("imm1", i.imm1(), i.imm1_source(), code)?;
            steps.push(Step { operation: second, operand, reversed: both });
        }
        self.chain(steps)
    }

    /// Type of immediates in memory: binary32, or that of the data where bits are not converted.
    fn scalar_code(&self, data: u8) -> u8 {
        if self.is_bitwise() { data } else { BINARY32 }
    }

    fn cache(&mut self, i: &TensorScalar<'_>, step: Step<u32>, operation: Operation) -> Result<Action, Fault> {
        self.group(&[step.operation, operation]).and_then(|group| match group {
            Group::Arithmetic => Ok(()),
            other => Err(Fault::unsupported(format!("operations on {other} are not supported here"))),
        })?;
        let operand = step.operand.as_number();
        let loaded = |maker: &mut Self| maker.number("imm1", i.imm1(), i.imm1_source(), BINARY32);
        let Some(accumulator) = self.accumulator(i.accumulator(), operation, Engine::Dve, i.dst().address, i.channels(), loaded)? else {
            return Err(Fault::unsupported("an accumulator that is left alone is not supported here"));
        };
        let step = Step { operation: step.operation, operand, reversed: step.reversed };
        Ok(Action::Cache { step, accumulator, keeps_running: self.opcode == 0xe6 })
    }

    /// What becomes of the accumulators, which are made the last source and the last destination.
    fn accumulator(
        &mut self,
        command: u8,
        operation: Operation,
        engine: Engine,
        address: u32,
        channels: u8,
        loaded: impl FnOnce(&mut Self) -> Result<Value<f32>, Fault>,
    ) -> Result<Option<Accumulator>, Fault> {
        if command == 0 {
            return Ok(None);
        }
        let elements = self.context.chip.accumulators(engine, address, channels)?;
        let start = match command {
            1 => Start::Zeroed,
            2 => {
                self.sources.push(elements.clone());
                Start::Held(self.sources.len() - 1)
            }
            3 => Start::Reset,
            4 => {
                self.weaken(Evidence::Assumed);
                Start::Loaded(loaded(self)?)
            }
            other => return Err(Fault::unsupported(format!("accumulator command {other} is not supported: its meaning is not known"))),
        };
        self.destinations.push(elements);
        Ok(Some(Accumulator { operation, start }))
    }

    fn scalar_tensor_tensor(&mut self, i: ScalarTensorTensor<'_>) -> Result<Action, Fault> {
        self.tensors()?;
        if i.accumulator() != 0 {
            return Err(Fault::unsupported("byte 0x2c (accumulator) is not 0: that is not supported here"));
        }
        if i.reverse() > 3 {
            return Err(Fault::unsupported(format!("reverse {:#04x} is not supported: its meaning is not known", i.reverse())));
        }
        let code = if self.is_bitwise() { self.operand("src0")?.code } else { i.imm_type() };
        if i.imm_source() == 0 && code != BINARY32 && !self.is_bitwise() {
            return Err(Fault::unsupported(format!("an immediate of type {code:#x} in the instruction is not supported, only fp32 is")));
        }
        let (op0, op1) = (Self::operation(i.op0())?, Self::operation(i.op1())?);
        let (reversed, both) = (i.reverse() & 1 != 0, i.reverse() & 2 != 0);
        if self.opcode == 0xe5 {
            let start = self.number("imm", i.imm(), i.imm_source(), code)?;
            // What a second dimension does to the running value is not said.
            if i.src0().counts[1] > 1 || i.src1().counts[1] > 1 {
                self.weaken(Evidence::Assumed);
            }
            return match self.group(&[op0, op1])? {
                Group::Arithmetic => Ok(Action::Scan { start, first: (op0, reversed), second: (op1, both) }),
                other => Err(Fault::unsupported(format!("operations on {other} are not supported here"))),
            };
        }
        let operand = self.value("imm", i.imm(), i.imm_source(), code)?;
        let steps = [
            Step { operation: op0, operand, reversed },
            Step { operation: op1, operand: Value::Tensor(1), reversed: both },
        ];
        self.chain(steps.into_iter().collect())
    }

    fn activate(&mut self, i: Activate<'_>) -> Result<Action, Fault> {
        self.tensor()?;
        let (function, is_certain) = self.context.functions.select(i.function())?;
        if !is_certain {
            self.weaken(Evidence::Assumed);
        }
        if (i.imm(), i.imm_source()) != (0, 0) {
            return Err(Fault::unsupported("byte 0x2c (imm) is not 0: parameters of functions are not supported"));
        }
        let scale = self.number("scale", i.scale(), i.scale_source(), BINARY32)?;
        // The source of the bias is coded the other way round.
        let bias_source = match i.bias_source() {
            0 => 1,
            1 => 0,
            other => other,
        };
        let bias = self.number("bias", i.bias(), bias_source, i.bias_type())?;
        let not_loaded = |_: &mut Self| Err(Fault::unsupported("accumulator command 4 is not supported here: what is loaded is not known"));
        let accumulator = self.accumulator(i.accumulator(), Operation::Add, Engine::Act, i.dst().address, i.channels(), not_loaded)?;
        Ok(Action::Curve { function, scale, bias, accumulator })
    }

    fn reduce(&mut self, i: Reduce<'_>) -> Result<Action, Fault> {
        self.source("src")?;
        let (length, operation) = (self.length.unwrap_or_default(), Self::operation(i.op())?);
        let reduced = match i.dimensions() {
            0 => 0,
            1 => return Err(Fault::program("dimensions 1: not dense, which no instruction may have")),
            n @ 2..=5 => usize::from(n) - 1,
            n => return Err(Fault::unsupported(format!("dimensions {n} are not supported: their meaning is not known"))),
        };
        let group: usize = i.src().counts[..reduced].iter().map(|n| usize::from(*n)).product();
        let is_reduction = matches!(self.opcode, 0x42 | 0x52);
        if i.negate() > 1 || (i.negate() == 1 && self.opcode != 0x42) {
            return Err(Fault::unsupported(format!("byte 0x23 (negate) is {:#04x}: that is not supported here", i.negate())));
        }
        let results = if is_reduction { length.checked_div(group).unwrap_or(0) } else { length };
        self.destination(results)?;
        if is_reduction && reduced == 0 {
            return Err(Fault::unsupported("a reduction over no dimension is not supported"));
        }
        let no_operation = || match (operation, reduced) {
            (Operation::Bypass, 0) => Ok(()),
            _ => Err(Fault::unsupported(format!("{operation} over {reduced} dimensions is not supported here"))),
        };
        match self.opcode {
            0x42 | 0x52 => self.reduction(operation, group, i.negate() == 1),
            0x4e => {
                if self.group(&[operation])? != Group::Arithmetic || reduced != 1 {
                    return Err(Fault::unsupported(format!("{operation} over {reduced} dimensions is not supported here")));
                }
                Ok(Action::Cumulative { operation, row: group })
            }
            0x48 => no_operation().map(|()| Action::Reciprocal),
            0x6b => {
                no_operation()?;
                let (from, to) = (&self.sources[0], &self.destinations[0]);
                if from.element != to.element || length % BLOCK != 0 || usize::from(i.channels()) % BLOCK != 0 {
                    return Err(Fault::program(format!(
                        "{length} elements of {} in {} partitions to {} are no blocks of {BLOCK} × {BLOCK}",
                        from.element, i.channels(), to.element
                    )));
                }
                Ok(Action::TransposeBlocks)
            }
            _ => Err(Fault::unsupported("this instruction is not supported: what it does is not known well enough")),
        }
    }

    fn reduction(&mut self, operation: Operation, group: usize, negate: bool) -> Result<Action, Fault> {
        match self.group(&[operation])? {
            Group::Bits => {
                self.unconverted(Group::Bits, &[operation])?;
                if !matches!(operation, Operation::And | Operation::Or | Operation::Xor) {
                    return Err(Fault::unsupported(format!("{operation} as a reduction is not supported")));
                }
                Ok(Action::ReduceBits { operation, group })
            }
            Group::Arithmetic if operation.identity().is_some() => Ok(Action::Reduce { operation, group, negate }),
            _ => Err(Fault::unsupported(format!("{operation} as a reduction is not supported"))),
        }
    }

    fn read_accumulator(&mut self, i: ReadAccumulator<'_>) -> Result<Action, Fault> {
        let engine = if self.opcode == 0x24 { Engine::Act } else { Engine::Dve };
        if i.elements() != 1 || i.negate() > 1 || (i.negate() == 1 && engine == Engine::Act) {
            return Err(Fault::unsupported(format!("{} elements and negate {} are not supported here", i.elements(), i.negate())));
        }
        self.sources.push(self.context.chip.accumulators(engine, i.dst().address, i.channels())?);
        self.destination(1)?;
        Ok(Action::ReadAccumulator { negate: i.negate() == 1 })
    }

    fn iota(&mut self, i: Iota<'_>) -> Result<Action, Fault> {
        let numbers = Numbers { generator: i.values(), per_partition: i.per_channel() };
        self.destination(numbers.count())?;
        Ok(Action::Generate(numbers))
    }

    fn affine_select(&mut self, i: AffineSelect<'_>) -> Result<Action, Fault> {
        let numbers = Numbers { generator: i.values(), per_partition: i.per_channel() };
        self.source("src")?;
        self.expect_elements(numbers.count())?;
        self.destination(numbers.count())?;
        let comparison: fn(i32) -> bool = match i.comparison() {
            0 => |n| n > 0,
            1 => |n| n >= 0,
            2 => |n| n == 0,
            3 => |n| n != 0,
            other => return Err(Fault::unsupported(format!("comparison {other} is not supported: its meaning is not known"))),
        };
        self.sources.push(self.context.chip.register(self.context.engine, i.fill_register(), ElementType::Float32)?);
        Ok(Action::KeepByNumber { numbers, comparison, fill: self.sources.len() - 1 })
    }

    fn range_select(&mut self, i: RangeSelect<'_>) -> Result<Action, Fault> {
        self.tensor()?;
        let comparison = |code: u8| match Self::operation(code)? {
            o @ (Operation::Equal | Operation::Greater | Operation::AtLeast | Operation::AtMost | Operation::Less) => Ok(o),
            other => Err(Fault::program(format!("{other} is no comparison of an index with a bound"))),
        };
        let bounds = [
            (comparison(i.comparison0())?, self.number("bound0", i.bound0(), i.bound0_source(), BINARY32)?),
            (comparison(i.comparison1())?, self.number("bound1", i.bound1(), i.bound1_source(), BINARY32)?),
        ];
        if i.fill() != MOST_NEGATIVE {
            self.weaken(Evidence::Assumed);
        }
        let operation = Self::operation(i.reduction())?;
        if i.accumulator() != 0 && operation != Operation::Max {
            return Err(Fault::unsupported(format!("{operation} as a reduction is not supported here, only Max is")));
        }
        let not_loaded = |_: &mut Self| Err(Fault::unsupported("accumulator command 4 is not supported here"));
        let accumulator = self.accumulator(i.accumulator(), operation, Engine::Dve, i.dst().address, i.channels(), not_loaded)?;
        let (start, fill) = (f32::from_bits(i.start()), f32::from_bits(i.fill()));
        Ok(Action::KeepByIndex { start, fill, bounds, accumulator })
    }

    fn select(&mut self, i: Select<'_>) -> Result<Action, Fault> {
        self.tensor()?;
        let code = self.operand("src")?.code;
        let scalar = self.value("scalar", i.scalar(), i.scalar_source(), code)?;
        let predicate = self.value("predicate", i.predicate(), i.predicate_source(), i.predicate_type())?;
        match i.reverse() {
            n @ (0 | 1) => Ok(Action::Select { scalar, predicate, reverse: n == 1 }),
            other => Err(Fault::unsupported(format!("reverse {other:#04x} is not supported: its meaning is not known"))),
        }
    }

    fn statistics(&mut self, i: Statistics<'_>) -> Result<Action, Fault> {
        self.source("src")?;
        let length = self.length.unwrap_or_default();
        if (i.count0(), i.count1()) != (0, 0) {
            return Err(Fault::unsupported("bytes 0x28 and 0x2c (counts) are not 0: what they do is not known"));
        }
        let (action, results) = match self.opcode {
            0x61 => (Action::Statistics, 6),
            0x62 if length > 0 && length % 3 == 0 => (Action::Aggregate, 2),
            0x62 => return Err(Fault::program(format!("{length} elements of each partition are no triples of count, mean and summed squares"))),
            0x6c | 0x6e if length < VALUES => {
                return Err(Fault::program(format!("{length} elements of each partition, expected at least {VALUES}")));
            }
            0x6c => (Action::Largest, VALUES),
            0x6e => {
                self.sources.push(self.context.chip.search_values(i.src().address, i.channels())?);
                (Action::FindIndices, VALUES)
            }
            _ => return Err(Fault::unsupported("this instruction is not supported: what it does is not known well enough")),
        };
        self.destination(results)?;
        let to = self.destinations[0].element;
        if self.opcode == 0x6e && !matches!(to, ElementType::UInt16 | ElementType::UInt32) {
            return Err(Fault::program(format!("indices are written as {to}, expected uint16 or uint32")));
        }
        Ok(action)
    }

    fn match_replace(&mut self, i: MatchReplace<'_>) -> Result<Action, Fault> {
        self.tensor()?;
        self.sources.push(self.context.chip.search_values(i.src().address, i.channels())?);
        Ok(Action::ReplaceValues(f32::from_bits(i.value())))
    }

    fn dropout(&mut self, i: Dropout<'_>) -> Result<Action, Fault> {
        self.tensor()?;
        let code = match i.threshold_type() {
            0 => BINARY32,
            code => code,
        };
        if i.threshold_source() == 0 && code != BINARY32 {
            return Err(Fault::unsupported(format!("a rate of type {code:#x} in the instruction is not supported, only fp32 is")));
        }
        let rate = self.number("threshold", i.threshold(), i.threshold_source(), code)?;
        match i.rate() {
            n @ (0 | 1) => Ok(Action::Dropout { rate, keeps: n == 1 }),
            other => Err(Fault::unsupported(format!("byte 0x2b (rate) is {other:#04x}: that is not supported"))),
        }
    }

    fn move_registers(&mut self, i: Move<'_>) -> Result<Action, Fault> {
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
            let register = |number: u8| self.context.chip.register(engine, number, ElementType::UInt32);
            let (source, destination) = (i.sources()[n], i.destinations()[n]);
            self.destinations.push(register(destination)?);
            values.push(match i.from() {
                0 => {
                    self.sources.push(register(source)?);
                    Value::Partition(self.sources.len() - 1)
                }
                _ => {
                    let all = i.immediates();
                    let word = all[4 * n..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
                    Value::Constant(word)
                }
            });
        }
        Ok(Action::MoveRegisters(values))
    }
}

impl Numbers {
    /// Numbers of a partition.
    fn count(&self) -> usize {
        self.generator.counts.iter().map(|n| usize::from(*n)).product()
    }
}
