//! A slot of an engine as a task: what it touches and what it does is made out of its bytes when it is asked for.

use super::array::{LoadWeights, Matmul};
use super::compute::{Compute, make};
use super::decoded::{bounds, decoded};
use super::dependence::{Relation, follow};
use super::indexed::form::Form;
use super::microscaled::Microscaled;
use super::sequencer::{self, Alu};
use super::{Context, Elements, elements, tensor_of};
use crate::stream::formats::{Exchange, Kind, LoadMask};
use crate::stream::{Details, ElementCode, Instruction, Opcode, Operand, Slot, Support};
use chipless_model::access::traffic;
use chipless_model::{
    Access, BufferId, Dependence, Direction, Doubt, ElementType, Fault, Grade, Kernel, Pattern,
    Storage,
};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// A slot of an engine. It stands for every slot with the same [body](Slot::body).
#[derive(Debug)]
pub(crate) struct Executed<'a> {
    slot: &'a Slot,
    /// The instruction before it that says more of what it does.
    setup: Option<&'a Slot>,
    context: Arc<Context>,
    /// What it does, kept where it is executed: most programs are long, and many are never executed.
    effect: OnceLock<Box<Result<Effect, Fault>>>,
}

/// What a slot does.
#[derive(Debug)]
enum Effect {
    /// Nothing but its waits and signals.
    None,
    LoadWeights(LoadWeights),
    Matmul(Box<Matmul>),
    Copy {
        from: Elements,
        to: Elements,
    },
    Fill {
        value: u32,
        to: Elements,
    },
    Microscaled(Box<Microscaled>),
    Compute(Box<Compute>),
    Alu(Box<Alu>),
}

impl<'a> Executed<'a> {
    pub(crate) fn new(
        slot: &'a Slot,
        setup: Option<&'a Slot>,
        context: Arc<Context>,
    ) -> Executed<'a> {
        Executed {
            slot,
            setup,
            context,
            effect: OnceLock::new(),
        }
    }

    /// Looks at what it does.
    fn look<T>(&self, at: impl FnOnce(Result<&Effect, &Fault>) -> T) -> T {
        match self.effect.get() {
            Some(made) => at((**made).as_ref()),
            None => at(Effect::of(self.slot, self.setup, &self.context).as_ref()),
        }
    }
}

impl Effect {
    /// What a slot of an engine does; an error where it is not executed.
    fn of(slot: &Slot, setup: Option<&Slot>, context: &Context) -> Result<Effect, Fault> {
        let (instruction, chip) = (slot.decode(), &context.chip);
        match slot.support() {
            Support::Executed => {}
            Support::NoEffect => return decoded(slot).map(|()| Effect::None),
            Support::Listed => return Err(Fault::unsupported(unsupported(slot.head.opcode))),
        }
        decoded(slot)?;
        let operands = slot.operands();
        Ok(match (instruction, &operands[..]) {
            (Instruction::LoadWeights(i), [from]) => {
                Effect::LoadWeights(LoadWeights::new(chip, i, from)?)
            }
            (Instruction::Matmul(i), [to, from]) => {
                Effect::Matmul(Box::new(Matmul::new(chip, i, to, from)?))
            }
            (
                Instruction::LoadWeightsMx(_)
                | Instruction::MatmulMx(_)
                | Instruction::QuantizeMx(_),
                _,
            ) => Effect::Microscaled(Box::new(Microscaled::new(chip, instruction, &operands)?)),
            (Instruction::Copy(_), [to, from]) => {
                equal(from, to)?;
                Effect::Copy {
                    from: chip.elements(from)?,
                    to: chip.elements(to)?,
                }
            }
            (Instruction::Memset(i), [to]) => Effect::Fill {
                value: i.value(),
                to: chip.elements(to)?,
            },
            (
                Instruction::EventSemaphore(_)
                | Instruction::Trigger(_)
                | Instruction::Named(_)
                | Instruction::CoreBarrier(_)
                | Instruction::NoOperands(_),
                [],
            ) => Effect::None,
            // Its elements go to the other core: that is a task of its own.
            (Instruction::Exchange(i), [to, from]) => {
                exchanged(i, to, from)?;
                chip.elements(from)?;
                chip.elements(to)?;
                Effect::None
            }
            (Instruction::RegisterOperation(i), []) => {
                Effect::Alu(Box::new(Alu::new(context, slot, i)?))
            }
            (Instruction::RegisterMemory(_) | Instruction::RegisterVariable(_), []) => {
                sequencer::check(slot, context).map(|()| Effect::None)?
            }
            (Instruction::Dma(i), []) => bounds(i).map(|()| Effect::None)?,
            (Instruction::DmaExtension(_), []) => {
                extends(slot, setup, context).map(|()| Effect::None)?
            }
            (Instruction::LoadMask(i), []) => mask(i).map(|()| Effect::None)?,
            _ => match make(context, slot, setup)? {
                Some(compute) => Effect::Compute(Box::new(compute)),
                None => return Err(Fault::unsupported(unsupported(slot.head.opcode))),
            },
        })
    }
}

/// Why a slot is not executed, if it is not.
pub(crate) fn refusal(slot: &Slot, setup: Option<&Slot>, context: &Context) -> Option<Fault> {
    Effect::of(slot, setup, context).err()
}

/// Whether an extension belongs to a transfer that needs one, and says what it needs.
fn extends(slot: &Slot, transfer: Option<&Slot>, context: &Context) -> Result<(), Fault> {
    match transfer.map(Slot::decode) {
        Some(Instruction::Dma(i)) if i.has_indices() => {
            Form::of(i, Some(slot), context).map(|_| ())
        }
        Some(Instruction::Dma(i)) => Err(Fault::unsupported(format!(
            "of a transfer of kind {} is not supported, only of those with indices",
            i.kind()
        ))),
        _ => Err(Fault::unsupported(
            "what it extends is not supported: only transfers with indices are",
        )),
    }
}

/// Whether each partition of a mask may stand there.
fn mask(i: LoadMask<'_>) -> Result<(), Fault> {
    let partitions = i.partitions();
    let strange = partitions.iter().find(|p| (64..255).contains(*p));
    strange.map_or(Ok(()), |partition| {
        Err(Fault::program(format!(
            "partition {partition} in a mask, possible are 0 to 63, and 255 for none"
        )))
    })
}

/// Why an opcode is not executed.
fn unsupported(opcode: u8) -> String {
    match Opcode::of(opcode) {
        Some(opcode) => {
            let why = match opcode.remark {
                "" => String::new(),
                remark => format!(" ({remark})"),
            };
            format!("this instruction is not supported: it is listed, not executed{why}")
        }
        None => format!("opcode {opcode:#04x} is not supported: it has no known name"),
    }
}

/// Elements of each partition that cores exchange at most.
const MOST_EXCHANGED: u64 = 256;

/// Whether an exchange is one between two cores, of elements that keep their type.
fn exchanged(i: Exchange<'_>, to: &Operand, from: &Operand) -> Result<(), Fault> {
    equal(from, to)?;
    if from.code != to.code {
        return Err(Fault::program(
            "the elements change their type, which an exchange does not",
        ));
    }
    if from.elements() > MOST_EXCHANGED {
        return Err(Fault::program(format!(
            "{} elements of each partition, at most {MOST_EXCHANGED} are exchanged",
            from.elements()
        )));
    }
    if i.cores() != 1 {
        return Err(Fault::unsupported(format!(
            "byte 0x20 (cores) is {:#04x}: only exchanges between two cores (1) are supported",
            i.cores()
        )));
    }
    Ok(())
}

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

    fn arithmetic(&self) -> u64 {
        // What only moves bytes does none.
        if let Instruction::Copy(_) | Instruction::Memset(_) = self.slot.decode() {
            return 0;
        }
        self.look(|effect| match effect {
            Ok(Effect::Matmul(effect)) => effect.arithmetic(),
            Ok(Effect::Microscaled(effect)) => effect.arithmetic(),
            Ok(Effect::Compute(effect)) => effect.arithmetic(),
            _ => 0,
        })
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.look(|effect| match effect {
            Ok(Effect::LoadWeights(effect)) => effect.accesses(visit),
            Ok(Effect::Matmul(effect)) => effect.accesses(visit),
            Ok(Effect::Microscaled(effect)) => effect.accesses(visit),
            Ok(Effect::Copy { from, to }) => {
                visit(from.read_access());
                visit(to.write_access());
            }
            Ok(Effect::Fill { to, .. }) => visit(to.write_access()),
            Ok(Effect::Compute(effect)) => effect.accesses(visit),
            Ok(Effect::Alu(effect)) => effect.accesses(visit),
            Ok(Effect::None) => {}
            // What is not executed may have written anything on the chip: whoever reads that is not at fault.
            Err(_) => self.context.chip.unknown_writes(visit),
        });
    }

    fn traffic(&self) -> (u64, u64) {
        // Of what only moves bytes the operands say all.
        let (Instruction::Copy(_) | Instruction::Memset(_)) = self.slot.decode() else {
            return traffic(|visit| self.accesses(visit));
        };
        let (mut read, mut written) = (0, 0);
        for operand in self.slot.operands() {
            let bytes = ElementCode::of(operand.code).map_or(0, |c| c.element.bits() / 8);
            let all = operand
                .elements()
                .saturating_mul(bytes * u64::from(operand.partitions));
            match operand.direction {
                Direction::Read => read += all,
                Direction::Write => written += all,
            }
        }
        (read, written)
    }

    fn dependence(
        &self,
        doubtful: &dyn Doubt,
        visit: &mut dyn FnMut(BufferId, Pattern),
    ) -> Dependence {
        self.look(|effect| {
            match effect {
                Ok(Effect::LoadWeights(effect)) => effect.dependence(doubtful, visit),
                Ok(Effect::Matmul(effect)) => effect.dependence(doubtful, visit),
                Ok(Effect::Microscaled(effect)) => effect.dependence(doubtful, visit),
                Ok(Effect::Copy { from, to }) => follow(from, to, Relation::Each, doubtful, visit),
                Ok(Effect::Compute(effect)) => effect.dependence(doubtful, visit),
                Ok(Effect::Alu(effect)) => effect.dependence(doubtful, visit),
                Ok(Effect::None | Effect::Fill { .. }) => {}
                Err(_) => return Dependence::Everything,
            }
            Dependence::Bytes
        })
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let made = || Box::new(Effect::of(self.slot, self.setup, &self.context));
        let effect = self.effect.get_or_init(made).as_ref();
        let effect = effect.as_ref().map_err(|fault| Fault {
            message: format!("{}: {}", self.operation(), fault.message),
            unsupported: fault.unsupported,
        })?;
        match effect {
            Effect::None => Ok(()),
            Effect::LoadWeights(effect) => effect.execute(storage),
            Effect::Matmul(effect) => effect.execute(storage),
            Effect::Microscaled(effect) => effect.execute(storage),
            Effect::Copy { from, to } => elements::copy(storage, from, to),
            Effect::Fill { value, to } => elements::fill(storage, *value, to),
            Effect::Compute(effect) => effect.execute(storage),
            Effect::Alu(effect) => effect.execute(storage),
        }
    }

    fn results(&self, visit: &mut dyn FnMut(Access, ElementType)) {
        let mut result = |to: &Elements| visit(to.write_access(), to.element);
        self.look(|effect| match effect {
            Ok(Effect::Matmul(effect)) => result(effect.destination()),
            Ok(Effect::Microscaled(effect)) => effect.destinations().into_iter().for_each(result),
            Ok(Effect::Copy { to, .. } | Effect::Fill { to, .. }) => result(to),
            Ok(Effect::Compute(effect)) => effect.destinations().for_each(result),
            Ok(Effect::None | Effect::LoadWeights(_) | Effect::Alu(_)) | Err(_) => {}
        });
    }

    fn tensor(&self, access: &Access) -> Option<(ElementType, Vec<u64>)> {
        let chip = &self.context.chip;
        if access.buffer == chip.array {
            return Some((ElementType::Float32, Vec::new()));
        }
        let operands = self.slot.operands();
        // What is written in the place of what was read may have another type.
        let (same, other): (Vec<&Operand>, _) = operands
            .iter()
            .partition(|operand| operand.direction == access.direction);
        let of = |operands: &[&Operand]| {
            let elements = operands.iter().filter_map(|one| chip.elements(one).ok());
            tensor_of(access, &elements.collect::<Vec<_>>())
        };
        of(&same).or_else(|| of(&other))
    }

    fn source_of(&self, buffer: BufferId, byte: u64) -> Option<(BufferId, u64)> {
        self.look(|effect| match effect {
            Ok(Effect::Copy { from, to }) if from.element == to.element => {
                to.taken_from(from, buffer, byte)
            }
            Ok(Effect::Compute(effect)) => effect.source_of(buffer, byte),
            _ => None,
        })
    }

    fn grade(&self) -> Grade {
        self.weakest().map_or(Grade::Proven, |(grade, _)| grade)
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        let (grade, what) = self.weakest()?;
        Some(format!("{}: {what} {}", self.operation(), grade.phrase()).into())
    }
}

impl Executed<'_> {
    /// The weakest thing that its results rest on, and what that is; `None` where everything is proven.
    fn weakest(&self) -> Option<(Grade, String)> {
        let opcode = Opcode::of(self.slot.head.opcode)?;
        let bytes = self.slot.bytes();
        let own = self.look(|effect| match effect {
            Ok(Effect::Compute(compute)) => compute.evidence,
            _ => opcode.evidence,
        });
        let meaning = [(own, "its meaning is".to_owned())];
        // What a field says is known as well as the field, and as the code that stands there.
        let fields = self.slot.format().fields.iter().flat_map(|field| {
            let used = bytes[usize::from(field.at)..][..usize::from(field.kind.size())].iter();
            let is_used = field.kind.size() > 0 && used.clone().any(|byte| *byte != field.default);
            let place = is_used.then(|| (field.evidence, format!("{} is", field.name)));
            // Between equal codes transfers move bytes as they are, whatever they mean.
            let code = field
                .kind
                .element()
                .filter(|_| !matches!(field.kind, Kind::Side(_)));
            let code = code.and_then(|code| ElementCode::of(code.of(self.slot)));
            let element =
                code.map(|code| (code.evidence, format!("element type {} is", code.name)));
            place.into_iter().chain(element)
        });
        let events = self
            .slot
            .events()
            .filter(|e| !(e.wait().proven() && e.update().proven()));
        let events = events.map(|_| (Grade::Quoted, "its wait or signal is".to_owned()));
        let all = meaning.into_iter().chain(fields).chain(events);
        all.filter(|(grade, _)| *grade < Grade::Proven)
            .min_by_key(|(grade, _)| *grade)
    }
}
