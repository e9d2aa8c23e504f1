//! Registers of the sequencers: operations on them, and elements of memory that are loaded into them or stored from them.

use super::addressed::{Side, number};
use super::alu::Operation;
use super::dependence::{Relation, follow};
use super::{Chip, Context, Elements, tensor_of};
use crate::graph::Engine;
use crate::stream::formats::{Field, RegisterOperation};
use crate::stream::operand::leaves_partitions;
use crate::stream::{
    Details, DmaTarget, ElementCode, Instruction, OnChip, Opcode, PSUM_BASE, PSUM_PARTITION_BYTES,
    REGISTERS, Scalars, Slot, Space, Support,
};
use chipless_kernels::strided;
use chipless_model::{
    Access, BufferId, Dependence, Direction, Doubt, ElementType, Fault, Grade, Kernel, Kind,
    Pattern, Storage,
};
use smallvec::SmallVec;
use std::borrow::Cow;

/// Opcodes that store; those that load have the same layout (docs/neuron-opcodes.md).
const TENSOR_STORE: u8 = 0xab;
const PSEUDO_TENSOR_STORE: u8 = 0xcd;

/// Elements of one `TENSOR_LOAD` or `TENSOR_STORE`, at most.
const MOST_ELEMENTS: u64 = 32;
/// Bytes of a store that stand in the instruction.
const IMMEDIATE_BYTES: u64 = 32;

/// The words of a number in registers, low one first.
type Words = Vec<Elements>;

/// An operation on registers.
#[derive(Debug)]
pub(super) struct Alu {
    operation: Operation,
    element: ElementType,
    first: Words,
    second: Second,
    result: Words,
}

#[derive(Debug)]
enum Second {
    Registers(Words),
    Constant(u64),
}

/// What is known of the registers of an engine before a program runs: those that hold constants, while its slots are followed in order.
#[derive(Debug)]
pub(crate) struct Known([Option<u32>; REGISTERS as usize]);

impl Default for Known {
    fn default() -> Known {
        Known([None; REGISTERS as usize])
    }
}

impl Known {
    /// What a register holds.
    pub(crate) fn get(&self, number: u8) -> Option<u32> {
        self.0.get(usize::from(number)).copied().flatten()
    }

    fn set(&mut self, number: u8, value: Option<u32>) {
        if let Some(place) = self.0.get_mut(usize::from(number)) {
            *place = value;
        }
    }

    /// The next slot is executed.
    pub(crate) fn step(&mut self, slot: &Slot, context: &Context) {
        match slot.decode() {
            Instruction::Move(i) => {
                let (sources, immediates) = (i.sources(), i.immediates());
                let before = Known(self.0);
                let words = immediates.chunks_exact(4).zip(sources);
                let moves = words.zip(i.destinations()).take(i.moves().into());
                for ((word, source), destination) in moves {
                    let value = match i.from() {
                        0 => before.get(source),
                        _ => word.first_chunk().map(|word| u32::from_le_bytes(*word)),
                    };
                    self.set(destination, value);
                }
            }
            Instruction::RegisterOperation(i) => {
                let result = Alu::new(context, slot, i).ok();
                let result = result.and_then(|alu| {
                    let wide = |low: u8, high: u8| {
                        let high = if alu.element.bits() == 64 {
                            self.get(high)?
                        } else {
                            0
                        };
                        Some(u64::from(high) << 32 | u64::from(self.get(low)?))
                    };
                    let second = match alu.second {
                        Second::Registers(_) => wide(i.src1(), i.src1_high())?,
                        Second::Constant(value) => value,
                    };
                    alu.evaluate(wide(i.src0(), i.src0_high())?, second).ok()
                });
                self.set(i.dst(), result.map(|bits| bits as u32));
                if matches!(i.element(), 0x1 | 0xc) {
                    self.set(i.dst_high(), result.map(|bits| (bits >> 32) as u32));
                }
            }
            Instruction::RegisterMemory(_) | Instruction::RegisterVariable(_) => {
                let Ok(moved) = Moved::of(slot) else {
                    return *self = Known::default();
                };
                if moved.direction == Direction::Read {
                    for number in moved.registers.into_iter().flatten() {
                        self.set(number, None);
                        if moved.element.bits() == 64 {
                            self.set(number + 1, None);
                        }
                    }
                }
            }
            // What is not executed may write registers, or go back to where they held something else.
            _ if slot.support() == Support::Listed => {
                *self = Known::default();
            }
            _ => {}
        }
    }
}

/// The bytes of an instruction that say something only in other cases must be 0.
fn unused(slot: &Slot, names: &[&str]) -> Result<(), Fault> {
    let named = |field: &&Field| names.contains(&field.name);
    let fields = slot.format().fields.iter().filter(named);
    for field in fields {
        let at = usize::from(field.at);
        let bytes = &slot.bytes()[at..at + usize::from(field.kind.size())];
        if let Some(byte) = bytes.iter().position(|b| *b != 0) {
            let (at, value) = (at + byte, bytes[byte]);
            return Err(Fault::unsupported(format!(
                "byte {at:#04x} ({}) is {value:#04x}: that is not supported here, only 0 is",
                field.name
            )));
        }
    }
    Ok(())
}

impl Alu {
    pub(super) fn new(
        context: &Context,
        slot: &Slot,
        i: RegisterOperation<'_>,
    ) -> Result<Alu, Fault> {
        let (chip, engine) = (&context.chip, context.engine);
        let element = match i.element() {
            0x1 => ElementType::UInt64,
            0x8 => ElementType::Int32,
            0x9 => ElementType::UInt32,
            0xa => ElementType::Float32,
            0xc => ElementType::Int64,
            other => {
                return Err(Fault::unsupported(format!(
                    "registers of type {other:#x} are not supported"
                )));
            }
        };
        if i.result() != 0 && i.result() != i.element() {
            return Err(Fault::unsupported(format!(
                "byte 0x0f (result) is {:#04x}: results of another type than the operands are not supported",
                i.result()
            )));
        }
        let operation = Operation::of(i.op()).ok_or_else(|| {
            Fault::unsupported(format!(
                "operation {:#04x} is not supported: its meaning is not known",
                i.op()
            ))
        })?;
        let is_wide = element.bits() == 64;
        if !is_wide {
            unused(slot, &["src0_high", "src1_high", "dst_high", "imm_high"])?;
        }
        let words = |low: u8, high: u8| -> Result<Words, Fault> {
            let numbers = [low, high];
            let numbers = &numbers[..if is_wide { 2 } else { 1 }];
            let register = |n: &u8| chip.register(engine, *n, ElementType::UInt32);
            numbers.iter().map(register).collect()
        };
        let second = match i.from() {
            0 => {
                unused(slot, &["imm", "imm_high"])?;
                Second::Registers(words(i.src1(), i.src1_high())?)
            }
            1 => {
                unused(slot, &["src1", "src1_high"])?;
                Second::Constant(u64::from(i.imm_high()) << 32 | u64::from(i.imm()))
            }
            other => {
                return Err(Fault::unsupported(format!(
                    "operands from {other} are not supported"
                )));
            }
        };
        let alu = Alu {
            operation,
            element,
            first: words(i.src0(), i.src0_high())?,
            second,
            result: words(i.dst(), i.dst_high())?,
        };
        // Whether there is such an operation on the type does not depend on the numbers.
        alu.evaluate(1, 1)?;
        Ok(alu)
    }

    fn sources(&self) -> impl Iterator<Item = &Elements> {
        let second = match &self.second {
            Second::Registers(words) => &words[..],
            Second::Constant(_) => &[],
        };
        self.first.iter().chain(second)
    }

    pub(super) fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.sources().for_each(|word| visit(word.read_access()));
        self.result
            .iter()
            .for_each(|word| visit(word.write_access()));
    }

    pub(super) fn dependence(
        &self,
        doubtful: &dyn Doubt,
        visit: &mut dyn FnMut(BufferId, Pattern),
    ) {
        for (from, to) in self
            .sources()
            .flat_map(|from| self.result.iter().map(move |to| (from, to)))
        {
            follow(from, to, Relation::All, doubtful, visit);
        }
    }

    pub(super) fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let first = number(&self.first, storage);
        let second = match &self.second {
            Second::Registers(words) => number(words, storage),
            Second::Constant(value) => *value,
        };
        let result = self.evaluate(first, second)?;
        for (n, word) in self.result.iter().enumerate() {
            let at = word.pattern.offset as usize;
            let bytes = ((result >> (32 * n)) as u32).to_le_bytes();
            storage.bytes_mut(word.buffer)[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        Ok(())
    }

    /// The bits of the result.
    fn evaluate(&self, first: u64, second: u64) -> Result<u64, Fault> {
        let Alu {
            operation, element, ..
        } = self;
        if element.kind() == Kind::Float {
            let gives_number = operation.identity().is_some()
                || matches!(
                    operation,
                    Operation::Bypass
                        | Operation::Subtract
                        | Operation::Divide
                        | Operation::Difference
                        | Operation::Magnitude
                );
            let is_logical = matches!(
                operation,
                Operation::LogicalAnd | Operation::LogicalOr | Operation::LogicalXor
            );
            let function = operation
                .on_numbers()
                .filter(|_| gives_number && !is_logical);
            let function = function.ok_or_else(|| {
                Fault::unsupported(format!(
                    "{operation} of registers of {element} is not supported: what it gives is not known"
                ))
            })?;
            let [a, b] = [first, second].map(|bits| f32::from_bits(bits as u32));
            return Ok(function(a, b).to_bits().into());
        }
        let bits = element.bits() as u32;
        let is_signed = operation
            .signedness()
            .unwrap_or(element.kind() == Kind::Signed);
        let number = |value: u64| {
            let high = 64 - bits;
            if is_signed {
                i128::from(((value << high) as i64) >> high)
            } else {
                i128::from((value << high) >> high)
            }
        };
        let (a, b) = (number(first), number(second));
        let result = operation
            .on_registers(a, b, bits)
            .map_err(|why| Fault::unsupported(format!("{operation} of registers {why}")))?;
        Ok(result as u64)
    }
}

/// `TENSOR_LOAD`, `TENSOR_STORE`.
#[derive(Debug)]
pub(crate) struct RegisterMemory<'a> {
    slot: &'a Slot,
    direction: Direction,
    memory: Side,
    held: Held,
    grade: Grade,
}

/// What the elements of memory belong to.
#[derive(Debug)]
enum Held {
    /// The words of each element.
    Registers(Vec<Words>),
    /// Their bytes.
    Immediate(Vec<u8>),
}

/// What an instruction says of elements and registers, before it is known where the elements are.
pub(crate) struct Moved {
    pub(crate) direction: Direction,
    pub(crate) scalars: Scalars,
    pub(crate) element: ElementType,
    /// Numbers of the registers; `None` where the elements stand in the instruction.
    registers: Option<SmallVec<[u8; 32]>>,
    bytes: [u8; 32],
}

impl Moved {
    /// What a slot of one of the four instructions says, if its numbers may stand there.
    pub(crate) fn of(slot: &Slot) -> Result<Moved, Fault> {
        let (scalars, from, bytes) = match slot.decode() {
            Instruction::RegisterMemory(i) => (i.memory(), i.from(), i.registers()),
            Instruction::RegisterVariable(i) => (i.memory(), i.from(), i.registers()),
            _ => return Err(Fault::unsupported("moves no registers")),
        };
        let direction = match slot.head.opcode {
            TENSOR_STORE | PSEUDO_TENSOR_STORE => Direction::Write,
            _ => Direction::Read,
        };
        let code = slot.bytes()[0x0c];
        let element = match code {
            0x1..=0x5 | 0x8..=0xa => ElementCode::of(code).map(|code| code.element),
            _ => None,
        };
        let element = element.ok_or_else(|| {
            Fault::program(format!(
                "elements of type {code:#x}: whole numbers of up to 64 bits and fp32 fit into registers"
            ))
        })?;
        let size = element.bits() / 8;
        let elements = scalars.elements();
        let most = match from {
            1 => IMMEDIATE_BYTES / size,
            _ => MOST_ELEMENTS,
        };
        if elements == 0 || elements > most {
            return Err(Fault::program(format!(
                "{elements} elements, possible are 1 to {most}"
            )));
        }
        let (used, registers) = match (from, direction) {
            (0, _) => {
                let numbers = &bytes[..elements as usize];
                if let Some(odd) = numbers.iter().find(|n| size == 8 && **n % 2 != 0) {
                    return Err(Fault::program(format!(
                        "register {odd} for an element of 64 bits, which begins at an even one"
                    )));
                }
                (elements, Some(numbers.into()))
            }
            (1, Direction::Write) => (elements * size, None),
            _ => {
                return Err(Fault::program(format!(
                    "registers are loaded from memory, byte 0x0d (from) is {from:#04x}"
                )));
            }
        };
        if let Some(at) = bytes[used as usize..].iter().position(|b| *b != 0) {
            let at = 0x20 + used as usize + at;
            return Err(Fault::unsupported(format!(
                "byte {at:#04x} (registers) is {:#04x}: that is not supported, behind the last element only 0 is",
                slot.bytes()[at]
            )));
        }
        Ok(Moved {
            direction,
            scalars,
            element,
            registers,
            bytes,
        })
    }

    /// Its elements at an address of the chip.
    pub(crate) fn on_chip(&self, chip: &Chip, address: u64) -> Result<Elements, Fault> {
        let place = u32::try_from(address).ok().and_then(OnChip::at);
        let Some(OnChip { space, .. }) = place else {
            return Err(Fault::unsupported(format!(
                "address {address:#x} is not supported: it is not on the chip, and where variables lie is only known when a program is loaded"
            )));
        };
        let (buffer, first, bytes) = match space {
            Space::StateBuffer => (chip.state_buffer, 0, chip.state_buffer_partition),
            Space::Psum => (chip.psum, PSUM_BASE, PSUM_PARTITION_BYTES),
        };
        let within = address - u64::from(first);
        let pattern = self.scalars.pattern(within, self.element.bits() / 8);
        match leaves_partitions(&pattern, space, bytes) {
            None => Ok(Elements {
                buffer,
                pattern,
                element: self.element,
            }),
            Some(why) => Err(Fault::program(format!("memory reaches {why}"))),
        }
    }

    /// With its registers found.
    fn held(&self, chip: &Chip, engine: Engine) -> Result<Held, Fault> {
        let Some(numbers) = &self.registers else {
            let size = self.scalars.elements() * self.element.bits() / 8;
            return Ok(Held::Immediate(self.bytes[..size as usize].to_vec()));
        };
        let words = |number: &u8| -> Result<Words, Fault> {
            let register = |n: u8| chip.register(engine, n, ElementType::UInt32);
            let low = register(*number)?;
            Ok(if self.element.bits() == 64 {
                vec![low, register(number + 1)?]
            } else {
                vec![low]
            })
        };
        let words: Result<Vec<Words>, Fault> = numbers.iter().map(words).collect();
        let words = words?;
        let mut seen: Vec<u64> = words.iter().flatten().map(|w| w.pattern.offset).collect();
        seen.sort_unstable();
        if self.direction == Direction::Read && seen.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Fault::unsupported(
                "two elements for one register are not supported: which of them stays is not known",
            ));
        }
        Ok(Held::Registers(words))
    }
}

/// Whether such an instruction can be executed wherever its elements are.
pub(super) fn check(slot: &Slot, context: &Context) -> Result<(), Fault> {
    let moved = Moved::of(slot)?;
    moved.held(&context.chip, context.engine)?;
    if let Instruction::RegisterMemory(i) = slot.decode()
        && let DmaTarget::Absolute(at) = i.memory().address.target()
    {
        moved.on_chip(&context.chip, at)?;
    }
    Ok(())
}

impl<'a> RegisterMemory<'a> {
    pub(crate) fn new(
        slot: &'a Slot,
        moved: &Moved,
        memory: Side,
        grade: Grade,
        context: &Context,
    ) -> Result<RegisterMemory<'a>, Fault> {
        Ok(RegisterMemory {
            slot,
            grade,
            direction: moved.direction,
            memory,
            held: moved.held(&context.chip, context.engine)?,
        })
    }

    fn registers(&self) -> impl Iterator<Item = &Elements> {
        let words = match &self.held {
            Held::Registers(words) => &words[..],
            Held::Immediate(_) => &[],
        };
        words.iter().flatten()
    }
}

impl Kernel for RegisterMemory<'_> {
    fn operation(&self) -> Cow<'static, str> {
        Opcode::name_of(self.slot.head.opcode)
    }

    fn details(&self) -> String {
        Details(self.slot).to_string()
    }

    fn waits_above(&self, wait: usize) -> bool {
        self.slot.waits_above(wait)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.memory.accesses(self.direction, visit);
        for word in self.registers() {
            visit(match self.direction {
                Direction::Read => word.write_access(),
                Direction::Write => word.read_access(),
            });
        }
    }

    fn traffic(&self) -> (u64, u64) {
        let bytes = self.memory.elements().bytes();
        match self.direction {
            Direction::Read => (bytes, 0),
            Direction::Write => (0, bytes),
        }
    }

    fn tensor(&self, access: &Access) -> Option<(ElementType, Vec<u64>)> {
        self.memory
            .tensor(access)
            .or_else(|| tensor_of(access, self.registers()))
    }

    fn dependence(
        &self,
        doubtful: &dyn Doubt,
        visit: &mut dyn FnMut(BufferId, Pattern),
    ) -> Dependence {
        if self.memory.is_doubtful(doubtful) {
            return Dependence::Control;
        }
        let Side::Fixed(memory) = &self.memory else {
            return Dependence::Bytes;
        };
        let Held::Registers(words) = &self.held else {
            return Dependence::Bytes;
        };
        let (size, run) = (memory.element.bits() / 8, memory.pattern.run);
        let places = memory
            .pattern
            .runs()
            .flat_map(|start| (start..start + run).step_by(size as usize));
        for (words, at) in words.iter().zip(places) {
            let one = Elements {
                pattern: Pattern::contiguous(at, size),
                ..memory.clone()
            };
            for word in words {
                match self.direction {
                    Direction::Read => follow(&one, word, Relation::All, doubtful, visit),
                    Direction::Write => follow(word, &one, Relation::All, doubtful, visit),
                }
            }
        }
        Dependence::Bytes
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let memory = self.memory.find(storage)?;
        let size = (memory.element.bits() / 8) as usize;
        match (&self.held, self.direction) {
            (Held::Registers(words), Direction::Read) => {
                let mut packed = Vec::new();
                memory.gather(storage, &mut packed)?;
                let is_signed = memory.element.kind() == Kind::Signed;
                for (words, bytes) in words.iter().zip(packed.chunks_exact(size)) {
                    let sign = if is_signed && bytes[size - 1] & 0x80 != 0 {
                        0xff
                    } else {
                        0
                    };
                    let mut wide = [sign; 8];
                    wide[..size].copy_from_slice(bytes);
                    for (word, bytes) in words.iter().zip(wide.chunks_exact(4)) {
                        let at = word.pattern.offset as usize;
                        storage.bytes_mut(word.buffer)[at..at + 4].copy_from_slice(bytes);
                    }
                }
                Ok(())
            }
            (held, _) => {
                let packed = match held {
                    Held::Registers(words) => words
                        .iter()
                        .flat_map(|words| {
                            number(words, storage).to_le_bytes().into_iter().take(size)
                        })
                        .collect(),
                    Held::Immediate(bytes) => bytes.clone(),
                };
                strided::scatter(&packed, storage.bytes_mut(memory.buffer), &memory.pattern)
                    .map_err(super::fault)
            }
        }
    }

    fn grade(&self) -> Grade {
        self.grade
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        Some(
            format!(
                "{}: its meaning is {}",
                self.operation(),
                self.grade().phrase()
            )
            .into(),
        )
    }
}
