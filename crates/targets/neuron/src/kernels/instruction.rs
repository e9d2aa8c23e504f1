//! A slot of an engine as a task: what it touches and what it does is made out of its bytes when it is asked for.

use super::array::{LoadWeights, Matmul};
use super::{Chip, Elements, elements};
use crate::stream::{Details, Instruction, Opcode, Operand, Slot, Support};
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
        match self.slot.support() {
            Support::Executed => {}
            Support::NoEffect => return decoded(self.slot).map(|()| Effect::None),
            Support::Listed => return Err(Fault::unsupported(unsupported(self.slot.head.opcode))),
        }
        decoded(self.slot)?;
        let operands = self.slot.operands();
        Ok(match (instruction, &operands[..]) {
            (Instruction::LoadWeights(i), [from]) => {
                Effect::LoadWeights(LoadWeights::new(&self.chip, i, from)?)
            }
            (Instruction::Matmul(i), [to, from]) => {
                Effect::Matmul(Matmul::new(&self.chip, i, to, from)?)
            }
            (Instruction::TensorTensor(i), [to, first, second]) => {
                if i.op() != ADD {
                    return Err(Fault::unsupported(format!(
                        "operation {:#04x} is not supported: only additions (0x04) are proven",
                        i.op()
                    )));
                }
                equal(first, to)?;
                equal(second, to)?;
                Effect::Add {
                    first: self.chip.elements(first)?,
                    second: self.chip.elements(second)?,
                    to: self.chip.elements(to)?,
                }
            }
            (Instruction::Copy(_), [to, from]) => {
                equal(from, to)?;
                Effect::Copy {
                    from: self.chip.elements(from)?,
                    to: self.chip.elements(to)?,
                }
            }
            (Instruction::Memset(i), [to]) => Effect::Fill {
                value: i.value(),
                to: self.chip.elements(to)?,
            },
            (Instruction::EventSemaphore(_) | Instruction::Dma(_), []) => Effect::None,
            _ => return Err(Fault::unsupported(unsupported(self.slot.head.opcode))),
        })
    }
}

/// The operation of `TENSOR_TENSOR` that adds.
const ADD: u8 = 4;

/// Whether everything that stands in a slot is known, and done.
fn decoded(slot: &Slot) -> Result<(), Fault> {
    if let Some(why) = slot.events().find_map(|events| events.refusal()) {
        return Err(Fault::unsupported(why));
    }
    if slot.is_decoded() {
        return Ok(());
    }
    slot.undecoded()
        .map_or(Ok(()), |byte| Err(Fault::unsupported(byte.to_string())))
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
    match Opcode::of(opcode) {
        Some(_) if Opcode::triggers(opcode) => TRIGGERS.to_owned(),
        Some(_) => "this instruction is not supported: it is listed, not executed".to_owned(),
        None => format!("opcode {opcode:#04x} is not supported: it has no known name"),
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
        Opcode::name_of(self.slot.head.opcode)
    }

    fn details(&self) -> String {
        Details(self.slot).to_string()
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
        let full = (0xf, 0xf);
        match self.slot.decode() {
            Instruction::LoadWeights(i) if (i.row_groups(), i.column_groups()) != full => {
                return Some(GROUPS.into());
            }
            Instruction::Matmul(i) if (i.row_groups(), i.column_groups()) != full => {
                return Some(GROUPS.into());
            }
            Instruction::Memset(i) if i.value() != 0 => {
                return Some("the value of a MEMSET that is not zero".into());
            }
            _ => {}
        }
        let codes = self.slot.operands().into_iter().map(|o| o.code);
        super::unproven_codes(codes).or_else(|| unproven_events(self.slot))
    }
}

const GROUPS: &str = "groups of rows and columns of the matrix engine";

/// Names what the waits and signals of an instruction rest on besides proven rules.
fn unproven_events(slot: &Slot) -> Option<Cow<'static, str>> {
    slot.events().find_map(
        |events| match (events.wait().proven(), events.update().proven()) {
            (true, true) => None,
            (false, _) => Some(format!("wait mode {:#04x}", events.wait_mode).into()),
            (true, false) => Some(format!("update mode {:#04x}", events.update_mode).into()),
        },
    )
}
