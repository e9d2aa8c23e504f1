//! A slot of an engine as a task: what it touches and what it does is made out of its bytes when it is asked for.

use super::array::{LoadWeights, Matmul};
use super::compute::{Compute, make};
use super::curve::Functions;
use super::{Chip, Context, Elements, elements};
use crate::graph::Engine;
use crate::stream::formats::Kind;
use crate::stream::{Details, ElementCode, Instruction, Opcode, Operand, Slot, Support};
use chipless_model::{Access, BufferId, ElementType, Fault, Grade, Kernel, Storage};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// A slot, and the memories of its core. It stands for every slot with the same [body](crate::stream::Bodies).
#[derive(Debug)]
pub(crate) struct Executed<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) chip: Chip,
    pub(crate) engine: Engine,
    pub(crate) functions: Arc<Functions>,
    /// What it does, once somebody has asked.
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
    Compute(Box<Compute>),
}

impl<'a> Executed<'a> {
    pub(crate) fn new(
        slot: &'a Slot,
        chip: Chip,
        engine: Engine,
        functions: Arc<Functions>,
    ) -> Executed<'a> {
        Executed {
            slot,
            chip,
            engine,
            functions,
            effect: OnceLock::new(),
        }
    }

    fn context(&self) -> Context<'_> {
        Context {
            chip: &self.chip,
            engine: self.engine,
            functions: &self.functions,
        }
    }

    fn effect(&self) -> Result<&Effect, &Fault> {
        let made = self.effect.get_or_init(|| Box::new(self.make()));
        (**made).as_ref()
    }

    fn make(&self) -> Result<Effect, Fault> {
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
                Effect::Matmul(Box::new(Matmul::new(&self.chip, i, to, from)?))
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
            (
                Instruction::EventSemaphore(_)
                | Instruction::Dma(_)
                | Instruction::Trigger(_)
                | Instruction::Named(_)
                | Instruction::NoOperands(_),
                [],
            ) => Effect::None,
            _ => match make(&self.context(), self.slot)? {
                Some(compute) => Effect::Compute(Box::new(compute)),
                None => return Err(Fault::unsupported(unsupported(self.slot.head.opcode))),
            },
        })
    }
}

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
pub(crate) fn refusal(
    slot: &Slot,
    engine: Engine,
    functions: &Arc<Functions>,
    state_buffer_partition: u32,
) -> Option<Fault> {
    let [state_buffer, psum, array, registers] = [0, 1, 2, 3].map(BufferId::from_raw);
    let chip = Chip {
        state_buffer,
        psum,
        array,
        registers,
        state_buffer_partition,
    };
    let functions = Arc::clone(functions);
    Executed::new(slot, chip, engine, functions).make().err()
}

/// Why an opcode is not executed.
fn unsupported(opcode: u8) -> String {
    match Opcode::of(opcode) {
        Some(_) => "this instruction is not supported: it is listed, not executed".to_owned(),
        None => format!("opcode {opcode:#04x} is not supported: it has no known name"),
    }
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
        match self.effect() {
            Ok(Effect::Matmul(effect)) => effect.arithmetic(),
            Ok(Effect::Compute(effect)) => effect.arithmetic(),
            _ => 0,
        }
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
            Ok(Effect::Compute(effect)) => effect.accesses(visit),
            Ok(Effect::None) => {}
            // What is not executed may have written anything on the chip: whoever reads that is not at fault.
            Err(_) => self.chip.unknown_writes(visit),
        }
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let effect = self.effect().map_err(|fault| Fault {
            message: format!("{}: {}", self.operation(), fault.message),
            unsupported: fault.unsupported,
        })?;
        match effect {
            Effect::None => Ok(()),
            Effect::LoadWeights(effect) => effect.execute(storage),
            Effect::Matmul(effect) => effect.execute(storage),
            Effect::Copy { from, to } => elements::copy(storage, from, to),
            Effect::Fill { value, to } => elements::fill(storage, *value, to),
            Effect::Compute(effect) => effect.execute(storage),
        }
    }

    fn results(&self, visit: &mut dyn FnMut(Access, ElementType)) {
        let mut result = |to: &Elements| visit(to.write_access(), to.element);
        match self.effect() {
            Ok(Effect::Matmul(effect)) => result(effect.destination()),
            Ok(Effect::Copy { to, .. } | Effect::Fill { to, .. }) => result(to),
            Ok(Effect::Compute(effect)) => effect.destinations().for_each(result),
            Ok(Effect::None | Effect::LoadWeights(_)) | Err(_) => {}
        }
    }

    fn source_of(&self, buffer: BufferId, byte: u64) -> Option<(BufferId, u64)> {
        match self.effect() {
            Ok(Effect::Copy { from, to }) if from.element == to.element => {
                to.taken_from(from, buffer, byte)
            }
            _ => None,
        }
    }

    fn grade(&self) -> Grade {
        self.weakest().map_or(Grade::Proven, |(grade, _)| grade)
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        let (grade, what) = self.weakest()?;
        Some(format!("{}: {what} {grade}", self.operation()).into())
    }
}

impl Executed<'_> {
    /// The weakest thing that its results rest on, and what that is; `None` where everything is proven.
    fn weakest(&self) -> Option<(Grade, String)> {
        let opcode = Opcode::of(self.slot.head.opcode)?;
        let bytes = self.slot.bytes();
        let own = match self.effect() {
            Ok(Effect::Compute(compute)) => compute.evidence,
            _ => opcode.evidence,
        };
        let meaning = [(own, "what it does is".to_owned())];
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
