//! An instruction as a [`Compute`]: its operands found in the memories of the core, its operation found in the tables.

mod chains;
mod movements;
mod reductions;
mod selections;

use super::search::VALUES;
use super::{Action, Compute, Step, Value, is_integer};
use crate::kernels::alu::{Group, Operation};
use crate::kernels::{Context, Elements};
use crate::stream::{Evidence, Instruction, Opcode, Operand, Slot};
use chipless_model::{Direction, ElementType, Fault};
use smallvec::SmallVec;

/// Element type code of binary32.
const BINARY32: u8 = 0xa;
/// Which shares its format with `TENSOR_SCALAR`.
const EXPONENTIAL: u8 = 0x30;
/// Which shares its format with `SCALAR_TENSOR_TENSOR`.
const SELECT_REDUCE: u8 = 0xea;

/// The meaning of an instruction of the vector, scalar or `GpSimd` engine; `None` for those of other kinds.
pub(in crate::kernels) fn make(
    context: &Context,
    slot: &Slot,
    setup: Option<&Slot>,
) -> Result<Option<Compute>, Fault> {
    let mut maker = Maker {
        context,
        setup,
        opcode: slot.head.opcode,
        operands: slot.operands(),
        length: None,
        sources: SmallVec::new(),
        destinations: SmallVec::new(),
        evidence: Opcode::of(slot.head.opcode).map_or(Evidence::Assumed, |o| o.evidence),
    };
    let action = match slot.decode() {
        Instruction::TensorTensor(i) => maker.tensor_tensor(i)?,
        Instruction::TensorScalar(i) if slot.head.opcode == EXPONENTIAL => maker.exponential(i)?,
        Instruction::TensorScalar(i) => maker.tensor_scalar(i)?,
        Instruction::ScalarTensorTensor(i) if slot.head.opcode == SELECT_REDUCE => {
            maker.select_reduce(i)?
        }
        Instruction::ScalarTensorTensor(i) => maker.scalar_tensor_tensor(i)?,
        Instruction::Activate(i) => maker.activate(i)?,
        Instruction::Reduce(i) => maker.reduce(i)?,
        Instruction::ReadAccumulator(i) => maker.read_accumulator(i)?,
        Instruction::Iota(i) => maker.iota(i)?,
        Instruction::AffineSelect(i) => maker.affine_select(i)?,
        Instruction::RangeSelect(i) => maker.range_select(i)?,
        Instruction::Select(i) => maker.select(i)?,
        Instruction::CopyPredicatedScalar(i) => maker.copy_predicated_scalar(i)?,
        Instruction::Statistics(i) => maker.statistics(i)?,
        Instruction::LoadValues(i) => {
            maker.source("src")?;
            maker.expect_elements(VALUES)?;
            maker
                .destinations
                .push(context.chip.search_values(i.src().address, i.channels())?);
            Action::LoadValues
        }
        Instruction::LoadTable(i) => maker.load_table(i)?,
        Instruction::Gather(i) => maker.gather(i)?,
        Instruction::IndirectCopy(i) => maker.indirect_copy(i)?,
        Instruction::SequenceBounds(i) => maker.sequence_bounds(i)?,
        Instruction::Nonzero(i) => maker.nonzero(i)?,
        Instruction::CrossLaneReduce(i) => maker.cross_lane_reduce(i)?,
        Instruction::MatchReplace(i) => maker.match_replace(i)?,
        Instruction::Dropout(i) => maker.dropout(i)?,
        Instruction::Move(i) => maker.move_registers(i)?,
        _ => return Ok(None),
    };
    Ok(Some(maker.finish(action)))
}

struct Maker<'c> {
    context: &'c Context,
    /// The instruction that says more of what this one does.
    setup: Option<&'c Slot>,
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
        let partitions = self
            .operands
            .first()
            .map_or(0, |o| usize::from(o.partitions));
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
        let found = self
            .operands
            .iter()
            .find(|operand| operand.role == role)
            .copied();
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
        self.destinations
            .push(self.context.chip.elements(&operand)?);
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
        Err(Fault::program(format!(
            "src: {found} elements of each partition, expected {expected}"
        )))
    }

    /// Two sources, and a destination as long as each of them.
    fn tensors(&mut self) -> Result<(), Fault> {
        self.source("src0")?;
        self.source("src1")?;
        self.destination(self.length.unwrap_or_default())
    }

    /// An operand of the instruction: a constant, or the source with an element of each partition.
    fn value(
        &mut self,
        role: &'static str,
        value: u32,
        source: u8,
        code: u8,
    ) -> Result<Value<u32>, Fault> {
        match source {
            0 => Ok(Value::Constant(value)),
            1 => {
                let partitions = self.operands.first().map_or(0, |o| o.partitions);
                let (steps, counts) = ([1, 0, 0, 0], [1; 4]);
                let operand = Operand {
                    role,
                    direction: Direction::Read,
                    code,
                    address: value,
                    steps,
                    counts,
                    partitions,
                    quadrants: 1,
                };
                self.sources.push(self.context.chip.elements(&operand)?);
                Ok(Value::Partition(self.sources.len() - 1))
            }
            other => Err(Fault::unsupported(format!(
                "{role} comes from a register (source {other}), which is not supported"
            ))),
        }
    }

    /// The same as a number; an element of a partition may be of any type.
    fn number(
        &mut self,
        role: &'static str,
        value: u32,
        source: u8,
        code: u8,
    ) -> Result<Value<f32>, Fault> {
        Ok(self.value(role, value, source, code)?.as_number())
    }

    fn operation(code: u8) -> Result<Operation, Fault> {
        let known = Operation::of(code);
        known.ok_or_else(|| {
            Fault::unsupported(format!(
                "operation {code:#04x} is not supported: its meaning is not known"
            ))
        })
    }

    /// Whether the opcode is one of the forms on bit patterns.
    fn is_bitwise(&self) -> bool {
        matches!(self.opcode, 0x51 | 0x52 | 0x53 | 0x5e | 0x9e)
    }

    /// The group that operations work in, which must be one: `bypass` fits everywhere.
    fn group(&self, operations: &[Operation]) -> Result<Group, Fault> {
        let mut group = if self.is_bitwise() {
            Some(Group::Bits)
        } else {
            None
        };
        for operation in operations.iter().filter(|o| **o != Operation::Bypass) {
            let own = operation.group();
            if *group.get_or_insert(own) != own {
                return Err(Fault::unsupported(format!(
                    "{operation} is not supported here: it is an operation on {own}"
                )));
            }
        }
        let group = group.unwrap_or(Group::Arithmetic);
        if group == Group::Bits && !self.is_bitwise() {
            return Err(Fault::unsupported(
                "operations on bits are not supported here: they have an opcode of their own",
            ));
        }
        Ok(group)
    }

    /// The types that operations without conversion take: all equal, and whole numbers.
    fn unconverted(&self, group: Group, operations: &[Operation]) -> Result<(), Fault> {
        let types: SmallVec<[ElementType; 3]> = self
            .sources
            .iter()
            .chain(&self.destinations)
            .map(|e| e.element)
            .collect();
        let (first, is_equal) = (types[0], types.windows(2).all(|pair| pair[0] == pair[1]));
        if !is_equal || !is_integer(first) {
            return Err(Fault::program(
                "operations without conversion take integers, all of one type",
            ));
        }
        if group == Group::Integer {
            let signed = match first {
                ElementType::Int32 => true,
                ElementType::UInt32 => false,
                other => {
                    return Err(Fault::program(format!(
                        "operations on whole numbers take 32 bits, not {other}"
                    )));
                }
            };
            if let Some(o) = operations
                .iter()
                .find(|o| o.signedness().is_some_and(|s| s != signed))
            {
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
                let number = |s: Step<u32>| Step {
                    operation: s.operation,
                    operand: s.operand.as_number(),
                    reversed: s.reversed,
                };
                Ok(Action::Chain(steps.into_iter().map(number).collect()))
            }
            group => {
                self.unconverted(group, &operations)?;
                Ok(if group == Group::Integer {
                    Action::IntegerChain(steps)
                } else {
                    Action::BitChain(steps)
                })
            }
        }
    }
}
