//! Which descriptors of an engine's file its instructions start, and in which order an engine executes its instructions.
//!
//! `PSEUDO_DMA_TRIGGER` starts the entries of an id, or the next so many transfers, of a queue set or of an instance of it.
//! `PSEUDO_FUNCTION_BEGIN` begins a function, which ends where the next one begins: execution starts with the first, `..CALL` enters
//! another, `..RETURN` goes back, and ends the stream in the first. `PSEUDO_DMA_SWAP_QUEUE_SET` makes an instance current. The encoding
//! of triggers is quoted, that of functions and swaps assumed: docs/neuron-opcodes.md.

use crate::def::{Definition, Owner};
use crate::engine::DmaEntry;
use crate::read::{EngineRoom, Neff, Subgraph};
use crate::rules::triggers as rules;
use crate::stream::formats::Trigger;
use crate::stream::{Instruction, SLOT_BYTES, Slot, Stream};
use chipless_model::{Place, Rule};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Calls that may be open at a time.
const DEPTH: usize = 64;

const TRIGGER: u8 = 0xc1;
const FUNCTION_BEGIN: u8 = 0xd1;
const FUNCTION_RETURN: u8 = 0xd2;
const FUNCTION_CALL: u8 = 0xd3;
const SWAP: u8 = 0xcf;

/// Transfers of an entry that one trigger starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    /// Position in the engine's file.
    pub(crate) entry: usize,
    /// The first of its transfers, and the one behind the last.
    pub(crate) transfers: (usize, usize),
}

/// The execution of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) slot: u32,
    /// The slot that begins the function.
    function: u32,
}

/// What is wrong with an instruction.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) rule: &'static Rule,
    pub(crate) slot: usize,
    pub(crate) message: String,
    /// Whether the instruction cannot do what it says.
    pub(crate) stops: bool,
}

/// What an engine does with its file.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Slots as they are executed; `None` where that is the order of the file.
    pub(crate) order: Option<Vec<Step>>,
    /// What each execution of a trigger starts, by its place in that order.
    pub(crate) started: FxHashMap<usize, Vec<Started>>,
    /// What is wrong, in order of execution; each slot once.
    pub(crate) wrong: Vec<Wrong>,
    /// Entries that nothing starts.
    pub(crate) idle: Vec<usize>,
    /// Whether any instruction of the program starts descriptors.
    pub(crate) has_triggers: bool,
}

impl Plan {
    /// Why a slot cannot do what it says.
    pub(crate) fn fault(&self, slot: usize) -> Option<&Wrong> {
        self.wrong
            .iter()
            .find(|wrong| wrong.slot == slot && wrong.stops)
    }
}

/// Where an instruction stands.
pub(crate) fn place(
    subgraph: &str,
    room: &EngineRoom<'_>,
    slot: usize,
    has_functions: bool,
) -> Place {
    let part = room.instructions.map_or("", |member| member.path);
    Place::bytes((slot * SLOT_BYTES) as u64, SLOT_BYTES as u64)
        .in_part(part.to_owned())
        .at(called(subgraph, room, slot, has_functions))
}

/// What an instruction is called: as the task that it is, `sg00.sp[1]`. Functions are executed in another order than they stand in, so that
/// there it has its number in the stream.
pub(crate) fn called(
    subgraph: &str,
    room: &EngineRoom<'_>,
    slot: usize,
    has_functions: bool,
) -> String {
    let engine = room.engine.name();
    if has_functions {
        format!("instruction {slot} of {subgraph}.{engine}")
    } else {
        format!("{subgraph}.{engine}[{slot}]")
    }
}

/// Whether a stream has functions.
pub(crate) fn has_functions(slots: &[Slot]) -> bool {
    slots.iter().any(|slot| slot.head.opcode == FUNCTION_BEGIN)
}

/// What the instructions of all engines do with their files, by subgraph: at most so many instructions of each are executed.
pub(crate) fn plans(neff: &Neff<'_>, most: u64) -> Vec<Vec<Plan>> {
    let plans = |subgraph: &Subgraph<'_>| -> Vec<Plan> {
        let rooms = subgraph.engines.iter();
        rooms
            .map(|room| plan(&subgraph.definition, room, most))
            .collect()
    };
    let mut all: Vec<Vec<Plan>> = neff.subgraphs.iter().map(plans).collect();
    // A program that starts descriptors by instructions starts all of them so.
    if all.iter().flatten().any(|plan| plan.has_triggers) {
        for (subgraph, plans) in neff.subgraphs.iter().zip(&mut all) {
            for (room, plan) in subgraph.engines.iter().zip(plans) {
                if !std::mem::replace(&mut plan.has_triggers, true) {
                    plan.idle = (0..room.file.dma.len()).collect();
                }
            }
        }
    }
    all
}

fn plan(definition: &Definition<'_>, room: &EngineRoom<'_>, most: u64) -> Plan {
    let slots = Stream::new(room.instructions.map_or(&[][..], |m| m.bytes)).slots;
    let is_concerned = |slot: &Slot| {
        matches!(
            slot.head.opcode,
            TRIGGER | SWAP | FUNCTION_BEGIN | FUNCTION_RETURN | FUNCTION_CALL
        )
    };
    let mut plan = Plan::default();
    if !slots.iter().any(is_concerned) {
        return plan;
    }
    // Also where none of them is reached.
    plan.has_triggers = slots.iter().any(|slot| slot.head.opcode == TRIGGER);
    plan.order = order(slots, most, &mut plan.wrong);
    let mut walk = Walk::new(definition, room);
    let executed = plan.order.as_ref().map_or(slots.len(), Vec::len);
    for at in 0..executed {
        let step = plan.order.as_ref().map(|order| order[at]);
        let slot = step.map_or(at, |step| step.slot as usize);
        let result = match slots[slot].decode() {
            Instruction::Trigger(i) => {
                let function = step.map_or_else(String::new, |step| function_at(slots, step));
                walk.trigger(i, &function).map(|started| {
                    walk.started.extend(started.iter().map(|s| s.entry));
                    plan.started.insert(at, started);
                })
            }
            Instruction::Named(i) if slots[slot].head.opcode == SWAP => walk.swap(&text(i.name())),
            _ => Ok(()),
        };
        let errors = result.err().map(|wrong| (wrong, true));
        let warnings = walk.warning.take().map(|wrong| (wrong, false));
        for ((rule, message), stops) in errors.into_iter().chain(warnings) {
            if plan
                .wrong
                .iter()
                .all(|wrong| (wrong.slot, wrong.rule.code) != (slot, rule.code))
            {
                plan.wrong.push(Wrong {
                    rule,
                    slot,
                    message,
                    stops,
                });
            }
        }
    }
    if plan.has_triggers {
        let all = 0..room.file.dma.len();
        plan.idle = all.filter(|entry| !walk.started.contains(entry)).collect();
    }
    plan
}

/// Names as text; what is none is shown as it stands.
fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// The function that a slot is executed in.
fn function_at(slots: &[Slot], step: Step) -> String {
    match slots[step.function as usize].decode() {
        Instruction::Named(i) => text(i.name()),
        _ => String::new(),
    }
}

/// The function that each entry of an engine's file belongs to, empty where none is named: `function_start` holds for the entries of the
/// same queue set behind it, whichever instances they are on.
pub(crate) fn functions_of_entries<'r>(
    definition: &Definition<'_>,
    room: &'r EngineRoom<'_>,
) -> Vec<&'r str> {
    let mut current: FxHashMap<usize, &str> = FxHashMap::default();
    let function = |entry: &'r DmaEntry<'_>| {
        let Some(set) = entry.queue_name().and_then(|n| definition.queue_set(n)) else {
            return "";
        };
        if let Some(start) = entry.function_start.as_deref().filter(|f| !f.is_empty()) {
            current.insert(set, start);
        }
        current.get(&set).copied().unwrap_or_default()
    };
    room.file.dma.iter().map(function).collect()
}

/// The order in which slots are executed; `None` where there are no functions, or where they cannot be followed.
fn order(slots: &[Slot], most: u64, wrong: &mut Vec<Wrong>) -> Option<Vec<Step>> {
    let mut functions: FxHashMap<&[u8], usize> = FxHashMap::default();
    let mut first = None;
    for (index, slot) in slots.iter().enumerate() {
        if let (FUNCTION_BEGIN, Instruction::Named(i)) = (slot.head.opcode, slot.decode()) {
            first = first.or(Some(index));
            if functions.insert(i.name(), index).is_some() {
                wrong.push(Wrong {
                    rule: &rules::FUNCTION_TWICE,
                    slot: index,
                    message: format!("function `{}` begins a second time", text(i.name())),
                    stops: false,
                });
            }
        }
    }
    let mut at = first?;
    let mut begin = at;
    // Where a call goes back to, and the function that it stands in.
    let (mut order, mut calls) = (Vec::new(), Vec::new());
    loop {
        // A function ends where the next one begins.
        let here = slots
            .get(at)
            .filter(|slot| at == begin || slot.head.opcode != FUNCTION_BEGIN);
        let Some(slot) = here else {
            match calls.pop() {
                Some(back) => (at, begin) = back,
                None => break,
            }
            continue;
        };
        if order.len() as u64 >= most {
            return None;
        }
        order.push(Step {
            slot: u32::try_from(at).ok()?,
            function: u32::try_from(begin).ok()?,
        });
        let next = at + 1;
        (at, begin) = match slot.decode() {
            Instruction::NoOperands(_) if slot.head.opcode == FUNCTION_RETURN => {
                match calls.pop() {
                    Some(back) => back,
                    None => break,
                }
            }
            Instruction::Named(i) if slot.head.opcode == FUNCTION_CALL => {
                match functions.get(i.name()) {
                    Some(function) if calls.len() < DEPTH => {
                        calls.push((next, begin));
                        (*function, *function)
                    }
                    found => {
                        let name = text(i.name());
                        let message = match found {
                            None => format!("no function is called `{name}`"),
                            Some(_) => format!("`{name}` is called from {DEPTH} functions deep"),
                        };
                        if wrong.iter().all(|w| w.slot != at) {
                            wrong.push(Wrong {
                                rule: &rules::FUNCTION_CALLED,
                                slot: at,
                                message,
                                stops: true,
                            });
                        }
                        (next, begin)
                    }
                }
            }
            _ => (next, begin),
        };
    }
    Some(order)
}

/// The state of an engine's file while its instructions are followed.
struct Walk<'w, 'a> {
    definition: &'w Definition<'a>,
    room: &'w EngineRoom<'a>,
    /// The function of each entry: empty where none is named.
    functions: Vec<&'w str>,
    /// The current instance of queue sets, by position.
    instances: FxHashMap<usize, String>,
    /// How many transfers of a name have been counted off in a function.
    counted: FxHashMap<(String, String), usize>,
    started: BTreeSet<usize>,
    warning: Option<(&'static Rule, String)>,
}

type Outcome<T> = Result<T, (&'static Rule, String)>;

impl<'w, 'a> Walk<'w, 'a> {
    fn new(definition: &'w Definition<'a>, room: &'w EngineRoom<'a>) -> Walk<'w, 'a> {
        Walk {
            definition,
            room,
            functions: functions_of_entries(definition, room),
            instances: FxHashMap::default(),
            counted: FxHashMap::default(),
            started: BTreeSet::new(),
            warning: None,
        }
    }

    fn swap(&mut self, name: &str) -> Outcome<()> {
        let set = self.definition.queue_set(name);
        match set.filter(|_| !self.definition.queues.contains_key(name)) {
            Some(set) => {
                self.instances.insert(set, name.to_owned());
                Ok(())
            }
            None => Err((
                &rules::SWAP_INSTANCE,
                format!("no queue set has an instance `{name}`"),
            )),
        }
    }

    /// What a trigger in a function starts.
    fn trigger(&mut self, i: Trigger<'_>, function: &str) -> Outcome<Vec<Started>> {
        let name = text(i.queue());
        let set = self.definition.queue_set(&name);
        let Some((position, (_, set))) =
            set.and_then(|at| Some((at, self.definition.queues.get_index(at)?)))
        else {
            return Err((
                &rules::TRIGGER_QUEUE,
                format!("no queue set or instance is called `{name}`"),
            ));
        };
        if let Some(Owner::Engine(owner)) = set
            .owner()
            .filter(|owner| *owner != Owner::Engine(self.room.engine))
        {
            let message = format!(
                "starts transfers of `{name}`, which {owner} owns, from the stream of {}",
                self.room.engine
            );
            self.warning = Some((&rules::TRIGGER_OWNER, message));
        }
        let current = self.instances.get(&position);
        let is_instance = !self.definition.queues.contains_key(&*name);
        if let Some(current) = current.filter(|current| is_instance && **current != name) {
            let message =
                format!("starts transfers of instance `{name}`, but `{current}` is current");
            self.warning = Some((&rules::TRIGGER_INSTANCE, message));
        }
        let is_named = |entry: &DmaEntry<'_>| match (&entry.instance_name, &entry.queue) {
            (Some(instance), _) if **instance == *name => true,
            (Some(instance), Some(queue)) if !instance.is_empty() => {
                **queue == *name && current.is_none_or(|current| **instance == **current)
            }
            _ => entry.queue.as_deref() == Some(&*name),
        };
        let entries = self.room.file.dma.iter().enumerate();
        let named: Vec<usize> = entries
            .filter(|(_, entry)| is_named(entry))
            .map(|(at, _)| at)
            .collect();
        match i.by() {
            0 => self.by_id(&name, &named, function, i.number()),
            1 => self.by_count(&name, &named, function, i.number() as usize),
            other => Err((
                &rules::TRIGGER_FORM,
                format!("byte 0x2c (by) is {other:#x}: triggers of this form are not supported"),
            )),
        }
    }

    fn by_id(&self, name: &str, named: &[usize], function: &str, id: u32) -> Outcome<Vec<Started>> {
        let has_id = |at: &&usize| self.room.file.dma[**at].id == Some(u64::from(id));
        let of = |function: &str| -> Vec<usize> {
            let of_function = |at: &&usize| self.functions[**at] == function;
            named
                .iter()
                .filter(has_id)
                .filter(of_function)
                .copied()
                .collect()
        };
        let mut entries = of(function);
        if entries.is_empty() {
            entries = of("");
        }
        if entries.is_empty() {
            let message = match function {
                "" => format!("no descriptor of `{name}` has id {id}"),
                function => {
                    format!("no descriptor of `{name}` has id {id} in function `{function}`")
                }
            };
            return Err((&rules::TRIGGER_ID, message));
        }
        let started = entries.into_iter().map(|entry| Started {
            entry,
            transfers: (0, self.room.file.dma[entry].descriptors.len()),
        });
        Ok(started.collect())
    }

    fn by_count(
        &mut self,
        name: &str,
        named: &[usize],
        function: &str,
        count: usize,
    ) -> Outcome<Vec<Started>> {
        let of_function: Vec<usize> = named
            .iter()
            .copied()
            .filter(|at| self.functions[*at] == function || self.functions[*at].is_empty())
            .collect();
        let key = (function.to_owned(), name.to_owned());
        let done = self.counted.entry(key).or_insert(0);
        let (mut skip, mut left) = (*done, count);
        let mut started = Vec::new();
        for entry in of_function {
            let transfers = self.room.file.dma[entry].descriptors.len();
            let first = skip.min(transfers);
            let taken = left.min(transfers - first);
            skip -= first;
            left -= taken;
            if taken > 0 {
                started.push(Started {
                    entry,
                    transfers: (first, first + taken),
                });
            }
        }
        if left > 0 {
            let message = format!(
                "starts {count} transfers of `{name}`, only {} are left",
                count - left
            );
            return Err((&rules::TRIGGER_COUNT, message));
        }
        *done += count;
        Ok(started)
    }
}
