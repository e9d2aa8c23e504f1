//! A slot of an engine as a task: what it touches and what it does is made out of its bytes when it is asked for.

use super::array::{LoadWeights, Matmul};
use super::{Chip, Elements, elements};
use crate::stream::{ADD, Instruction, Opcode, Operand, Slot, Support};
use chipless_model::{Access, BufferId, Fault, Kernel, Storage};
use std::borrow::Cow;

/// A slot, and the memories of its core. It stands for every slot with the same [body](crate::stream::Bodies).
#[derive(Debug)]
pub(crate) struct Executed<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) chip: Chip,
}

/// What a slot does.
enum Effect {
    /// Nothing but its waits and signals.
    None,
    LoadWeights(LoadWeights),
    Matmul(Matmul),
    Copy {
        from: Elements,
        to: Elements,
    },
    Fill {
        value: u32,
        to: Elements,
    },
    Add {
        first: Elements,
        second: Elements,
        to: Elements,
    },
}

impl Executed<'_> {
    fn effect(&self) -> Result<Effect, Fault> {
        let instruction = self.slot.decode();
        if let Some(why) = instruction.events().find_map(|e| e.refusal()) {
            return Err(Fault::unsupported(why));
        }
        let operands = instruction.operands();
        Ok(match (instruction, &operands[..]) {
            (Instruction::LoadWeights(i), [from]) => {
                Effect::LoadWeights(LoadWeights::new(&self.chip, i, from)?)
            }
            (Instruction::Matmul(i), [to, from]) => {
                Effect::Matmul(Matmul::new(&self.chip, i, to, from)?)
            }
            (Instruction::TensorTensor(i), [to, first, second]) => {
                if i.operation != ADD {
                    return Err(Fault::unsupported(format!(
                        "operation {:#04x} is not supported: only additions (0x04) are proven",
                        i.operation
                    )));
                }
                if first.code != second.code {
                    return Err(Fault::unsupported(
                        "operands of different types are not supported: which code is whose is not known",
                    ));
                }
                equal(first, to)?;
                equal(second, to)?;
                Effect::Add {
                    first: self.chip.elements(first)?,
                    second: self.chip.elements(second)?,
                    to: self.chip.elements(to)?,
                }
            }
            (Instruction::Copy(_) | Instruction::Cast(_), [to, from]) => {
                equal(from, to)?;
                Effect::Copy {
                    from: self.chip.elements(from)?,
                    to: self.chip.elements(to)?,
                }
            }
            (Instruction::Memset(i), [to]) => Effect::Fill {
                value: i.value.get(),
                to: self.chip.elements(to)?,
            },
            (
                Instruction::EventSemaphore(_) | Instruction::NoEffect(_) | Instruction::Dma(_),
                [],
            ) => Effect::None,
            _ => return Err(Fault::unsupported(unsupported(self.slot.head.opcode))),
        })
    }
}

/// Why a slot is not executed, if it is not.
pub(crate) fn refusal(slot: &Slot, state_buffer_partition: u32) -> Option<Fault> {
    let [state_buffer, psum, array] = [0, 1, 2].map(BufferId::from_raw);
    let chip = Chip {
        state_buffer,
        psum,
        array,
        state_buffer_partition,
    };
    Executed { slot, chip }.effect().err()
}

/// Why an opcode is not executed.
fn unsupported(opcode: u8) -> String {
    match Opcode::of(opcode).map(|o| o.support) {
        Some(Support::Listed) if Opcode::triggers(opcode) => TRIGGERS.to_owned(),
        Some(Support::Listed) => {
            "this instruction is not supported: what it does is not proven".to_owned()
        }
        _ => format!("opcode {opcode:#04x} is not supported: it has no known name"),
    }
}

/// Why instructions that trigger descriptors are not executed, and their descriptors neither.
pub(crate) const TRIGGERS: &str = "decides which DMA descriptors move, and when; this is not supported, and the order of the list would not be that of the program";

/// As many elements of each partition are written as read.
fn equal(from: &Operand, to: &Operand) -> Result<(), Fault> {
    if from.elements() == to.elements() {
        return Ok(());
    }
    Err(Fault::program(format!(
        "{} elements are read of each partition, {} written",
        from.elements(),
        to.elements()
    )))
}

impl Kernel for Executed<'_> {
    fn operation(&self) -> Cow<'static, str> {
        match Opcode::of(self.slot.head.opcode) {
            Some(opcode) => opcode.name.into(),
            None => Opcode::name_of(self.slot.head.opcode).into(),
        }
    }

    fn details(&self) -> String {
        super::operands_text(self.slot)
    }

    fn waits_above(&self, wait: usize) -> bool {
        self.slot.waits_above(wait)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        match self.effect() {
            Ok(Effect::LoadWeights(effect)) => effect.accesses(visit),
            Ok(Effect::Matmul(effect)) => effect.accesses(visit),
            Ok(Effect::Copy { from, to }) => {
                visit(from.read_access());
                visit(to.write_access());
            }
            Ok(Effect::Fill { to, .. }) => visit(to.write_access()),
            Ok(Effect::Add { first, second, to }) => {
                visit(first.read_access());
                visit(second.read_access());
                visit(to.write_access());
            }
            Ok(Effect::None) => {}
            // What is not executed may have written anything on the chip: whoever reads that is not at fault.
            Err(_) => self.chip.unknown_writes(visit),
        }
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let effect = self.effect().map_err(|fault| Fault {
            message: format!("{}: {}", self.operation(), fault.message),
            ..fault
        })?;
        match effect {
            Effect::None => Ok(()),
            Effect::LoadWeights(effect) => effect.execute(storage),
            Effect::Matmul(effect) => effect.execute(storage),
            Effect::Copy { from, to } => elements::copy(storage, &from, &to),
            Effect::Fill { value, to } => elements::fill(storage, value, &to),
            Effect::Add { first, second, to } => elements::add(storage, &first, &second, &to),
        }
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        let instruction = self.slot.decode();
        match instruction {
            Instruction::LoadWeights(i) if (i.row_groups, i.column_groups) != (0xf, 0xf) => {
                return Some(GROUPS.into());
            }
            Instruction::Matmul(i) if (i.row_groups, i.column_groups) != (0xf, 0xf) => {
                return Some(GROUPS.into());
            }
            Instruction::Memset(i) if i.value.get() != 0 => {
                return Some("the value of a MEMSET that is not zero".into());
            }
            _ => {}
        }
        let codes = instruction.operands().into_iter().map(|o| o.code);
        super::unproven_codes(codes).or_else(|| unproven_events(&instruction))
    }
}

const GROUPS: &str = "groups of rows and columns of the matrix engine";

/// Names what the waits and signals of an instruction rest on besides proven rules.
fn unproven_events(instruction: &Instruction<'_>) -> Option<Cow<'static, str>> {
    instruction.events().find_map(|events| {
        match (events.wait().proven(), events.update().proven()) {
            (true, true) => None,
            (false, _) => Some(format!("wait mode {:#04x}", events.wait_mode).into()),
            (true, false) => Some(format!("update mode {:#04x}", events.update_mode).into()),
        }
    })
}
