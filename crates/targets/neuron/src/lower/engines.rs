//! Instruction streams: a task for each slot, and for each transfer that a slot hands over.

use super::addresses::{self, Sides, sides};
use super::after::After;
use super::builder::{Builder, NewTask};
use super::core::Core;
use super::cost::EngineCost;
use super::descriptors::{self, Move};
use super::indexed::{ByIndices, indexed};
use super::meetings::{Met, Place};
use super::phases::Phases;
use crate::graph::Engine;
use crate::json::Error;
use crate::kernels::Context;
use crate::kernels::addressed::{Addressed, Latch, Side};
use crate::kernels::control::{Refused, Skipped};
use crate::kernels::curve::Functions;
use crate::kernels::exchange::{Exchange, Passed};
use crate::kernels::instruction::refusal;
use crate::kernels::sequencer::Known;
use crate::kernels::transfer::{Operation, Text, Transfer};
use crate::read::{EngineRoom, Subgraph};
use crate::stream::formats::Dma;
use crate::stream::operand::variable;
use crate::stream::{Instruction, SLOT_BYTES, Setups, Slot, Stream};
use crate::triggers::{Plan, Step};
use chipless_model::{
    Action, Class, Condition, Counter, Fault, KernelId, Location, PartId, PieceId, QueueId, Signal,
    TaskId, Time, Wait,
};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// Transfers that an engine handed over with one instruction.
struct Handed {
    set: usize,
    start: PieceId,
    /// One for each move.
    transfers: SmallVec<[PieceId; 1]>,
    moves: SmallVec<[Move; 1]>,
}

/// Lowers the streams of the core at `index`, by what its engines do with their files; the other cores lend their semaphores.
pub(super) fn lower<'p>(
    cores: &mut [Core<'p, '_>],
    index: usize,
    plans: &[Plan],
    phase: usize,
    builder: &mut Builder<'p>,
    phases: &mut Phases,
) -> Result<(), Error> {
    let subgraph = cores[index].subgraph;
    let functions = functions(subgraph);
    for (room, plan) in subgraph.engines.iter().zip(plans) {
        let Some(member) = room.instructions else {
            continue;
        };
        let slots = Stream::new(member.bytes).slots;
        if slots.is_empty() {
            continue;
        }
        builder.begin_engine(room.bodies().distinct);
        let transfers = slots
            .iter()
            .filter(|slot| matches!(slot.decode(), Instruction::Dma(_)))
            .count();
        builder.reserve(slots.len() + 2 * transfers);
        let queue = builder.queue(format!("{}.{}", subgraph.name, room.engine.name()), 1);
        phases.put(queue, phase);
        let part = builder.part(member.path);
        let mut engine = EngineLowering {
            room,
            plan,
            queue,
            part,
            context: Arc::new(Context {
                chip: cores[index].memory.chip,
                engine: room.engine,
                functions: Arc::clone(&functions),
            }),
            cost: EngineCost::new(cores[index].machine, room.engine),
            handed: Vec::with_capacity(transfers),
            setups: Setups::default(),
            known: Known::default(),
            after: Vec::new(),
            meeting_queue: None,
            blocked: None,
        };
        let order = plan.order.as_deref().filter(|_| builder.follows);
        let mut first = None;
        for at in 0..order.map_or(slots.len(), <[Step]>::len) {
            let slot = order.map_or(at, |order| order[at].slot as usize);
            let task = engine.slot(cores, index, (at, slot), &slots[slot..], builder)?;
            first = first.or(Some(task));
        }
        if let Some(first) = first {
            builder.release(queue, first);
        }
        if let Some(queue) = engine.meeting_queue {
            phases.put(queue, phase);
            for after in engine.after {
                after.lower(queue, builder)?;
            }
        }
        for transfer in engine.handed {
            lower_transfer(&mut cores[index], transfer, phase, builder, phases)?;
        }
    }
    Ok(())
}

/// The functions of the scalar engine, where its stream asks for any.
fn functions(subgraph: &Subgraph<'_>) -> Arc<Functions> {
    let room = subgraph
        .engines
        .iter()
        .find(|room| room.engine == Engine::Act);
    Arc::new(room.map_or_else(Functions::default, Functions::of))
}

/// An engine while it is lowered.
struct EngineLowering<'l, 'p> {
    room: &'p EngineRoom<'p>,
    plan: &'l Plan,
    queue: QueueId,
    part: PartId,
    context: Arc<Context>,
    cost: EngineCost<'l>,
    handed: Vec<Handed>,
    setups: Setups<'p>,
    known: Known,
    /// What happens when cores have met, and the queue of it.
    after: Vec<After>,
    meeting_queue: Option<QueueId>,
    /// What the next slot waits for, besides its own waits.
    blocked: Option<Met>,
}

impl<'p> EngineLowering<'_, 'p> {
    /// The task of a slot, at a place in the order of execution; those behind it in the file may say more of it.
    fn slot(
        &mut self,
        cores: &mut [Core<'p, '_>],
        index: usize,
        (at, number): (usize, usize),
        slots: &'p [Slot],
        builder: &mut Builder<'p>,
    ) -> Result<TaskId, Error> {
        let (slot, core) = (&slots[0], &mut cores[index]);
        let setup = self.setups.next(slot);
        let body = self.room.bodies().numbers[number];
        let executed = builder.slot(slot, body, setup, &self.context);
        let location = Location {
            part: self.part,
            offset: (number * SLOT_BYTES) as u64,
            size: SLOT_BYTES as u32,
        };
        let mut waits: SmallVec<[Wait; 2]> =
            self.blocked.take().map(Met::wait).into_iter().collect();
        let mut signals: SmallVec<[Signal; 3]> = SmallVec::new();
        for events in slot.events() {
            if let Some((number, condition)) = events.condition()
                && let Some(sync) = core.semaphore(u64::from(number), builder)
            {
                waits.push(Wait { sync, condition });
            }
            if let Some((number, by, moment)) = events.change()
                && let Some(sync) = core.semaphore(u64::from(number), builder)
            {
                signals.push(Signal {
                    moment,
                    action: Action::Add(sync, by),
                });
            }
        }
        let mut fixed = self.cost.of(slot, body);
        let kernel = match slot.decode() {
            Instruction::Dma(dma) => {
                let (transfer, kernel) = hand_over(
                    core,
                    (&self.context, &self.known),
                    (slot, executed),
                    (dma, slots.get(1)),
                    location,
                    builder,
                );
                self.hand_over(transfer, &mut signals);
                kernel
            }
            Instruction::Trigger(_) | Instruction::Named(_) if builder.follows => {
                if let Some(wrong) = self.plan.fault(number) {
                    let message = wrong.message.clone();
                    let why = match wrong.rule.class {
                        Class::Unsupported => Fault::unsupported(message),
                        _ => Fault::program(message),
                    };
                    builder.kernel(Refused {
                        slot: Some(slot),
                        why,
                        writes: core.memory.writable.clone(),
                    })
                } else {
                    for started in self.plan.started.get(&at).into_iter().flatten() {
                        let handed = descriptors::start(cores, index, self.room, *started, builder);
                        if let Some((set, moves)) = handed {
                            let core = &mut cores[index];
                            let transfer = Handed::new(core, set, moves, builder);
                            self.hand_over(transfer, &mut signals);
                        }
                    }
                    executed
                }
            }
            Instruction::CoreBarrier(_) | Instruction::Exchange(_)
                if builder.follows && refusal(slot, setup, &self.context).is_none() =>
            {
                let time = std::mem::replace(&mut fixed, Time::ZERO);
                match self.meet(cores, index, (slot, time), location, &mut signals, builder) {
                    Ok(()) => executed,
                    Err(why) => builder.kernel(Refused {
                        slot: Some(slot),
                        why,
                        writes: cores[index].memory.writable.clone(),
                    }),
                }
            }
            Instruction::RegisterMemory(_) | Instruction::RegisterVariable(_) => {
                let registers = (&*self.context, &self.known);
                register_memory(core, slot, executed, registers, builder)
            }
            _ => executed,
        };
        self.known.step(slot, &self.context);
        builder.task(NewTask {
            queue: self.queue,
            kernel,
            waits: &waits,
            signals: &signals,
            demands: &[],
            fixed,
            location,
            label: None,
        })
    }

    /// The cores meet at this slot, which signals that its own is there. Its own signals follow when all are.
    fn meet(
        &mut self,
        cores: &[Core<'p, '_>],
        index: usize,
        (slot, time): (&'p Slot, Time),
        location: Location,
        signals: &mut SmallVec<[Signal; 3]>,
        builder: &mut Builder<'p>,
    ) -> Result<(), Fault> {
        let (who, engine) = ((index, cores.len()), self.room.engine);
        let met = |place, builder: &mut Builder<'p>| builder.meet(place, who, engine);
        let mut tasks = SmallVec::new();
        let (start, end) = if let Instruction::CoreBarrier(i) = slot.decode() {
            let all = met(Place::Barrier(i.id()), builder)?;
            (all, all)
        } else {
            let [own, other] = cores else {
                return Err(Fault::program(format!(
                    "elements go to another core, but the program has {}",
                    cores.len()
                )));
            };
            let (own, other) = if index == 0 {
                (own, other)
            } else {
                (other, own)
            };
            let operands = slot.operands();
            let exchange = Exchange {
                slot,
                from: own.memory.chip.elements(&operands[1])?,
                to: other.memory.chip.elements(&operands[0])?,
            };
            let start = met(Place::ExchangeStart, builder)?;
            let end = met(Place::ExchangeEnd, builder)?;
            let kernel = builder.kernel(exchange);
            tasks.push((kernel, start, smallvec![end.arrival()], time));
            (start, end)
        };
        let own = std::mem::replace(signals, smallvec![start.arrival()]);
        if !own.is_empty() {
            tasks.push((builder.kernel(Passed), end, own, Time::ZERO));
        }
        self.blocked = Some(end);
        if !tasks.is_empty() {
            let name = format!("{}.{}.meetings", cores[index].subgraph.name, engine.name());
            let queue = *self
                .meeting_queue
                .get_or_insert_with(|| builder.queue(name, 1));
            let piece = builder.reserve_piece(queue);
            signals.push(Signal::on_completion(Action::Release(piece)));
            self.after.push(After {
                piece,
                location,
                tasks,
            });
        }
        Ok(())
    }

    fn hand_over(&mut self, transfer: Handed, signals: &mut SmallVec<[Signal; 3]>) {
        let pieces = std::iter::once(&transfer.start).chain(&transfer.transfers);
        signals.extend(pieces.map(|piece| Signal::on_completion(Action::Release(*piece))));
        self.handed.push(transfer);
    }
}

impl Handed {
    fn new<'p>(
        core: &mut Core<'p, '_>,
        set: usize,
        moves: SmallVec<[Move; 1]>,
        builder: &mut Builder<'p>,
    ) -> Handed {
        let (start, transfer) = (core.start(set, builder), core.queue(set, builder));
        Handed {
            set,
            start: builder.reserve_piece(start),
            transfers: moves
                .iter()
                .map(|_| builder.reserve_piece(transfer))
                .collect(),
            moves,
        }
    }
}

/// A transfer, before it is a task.
enum Parts<'p> {
    Sides(Sides),
    Indexed(ByIndices<'p>),
}

/// What a slot hands over, and what the slot itself does: it stops a functional run if its transfer cannot be executed.
fn hand_over<'p>(
    core: &mut Core<'p, '_>,
    (context, known): (&Context, &Known),
    (slot, executed): (&'p Slot, KernelId),
    (dma, extension): (Dma<'_>, Option<&Slot>),
    location: Location,
    builder: &mut Builder<'p>,
) -> (Handed, KernelId) {
    let (semaphore, increment) = dma.completion();
    let set = core.set_of(context.engine, semaphore);
    let semaphore = core.semaphore(u64::from(semaphore), builder);
    let signal =
        semaphore.map(|sync| Signal::on_completion(Action::Add(sync, i64::from(increment))));
    let mut moved = Move {
        kernel: executed,
        fixed: Time::ZERO,
        demands: SmallVec::new(),
        signals: signal.into_iter().collect(),
        location,
        label: None,
    };
    let mut own = executed;
    let registers = (context, known);
    let parts = if dma.has_indices() {
        indexed(core, (slot, dma), extension, registers, builder).map(Parts::Indexed)
    } else {
        sides(core, dma, registers, builder).map(Parts::Sides)
    };
    match parts {
        Ok(Parts::Indexed(ByIndices { transfer, noted })) => {
            let (source, destination) = (transfer.from.elements(), transfer.to.elements());
            let sources = std::slice::from_ref(source);
            let cost = core.transfer_cost(set, sources, destination, transfer.transposes, builder);
            (moved.fixed, moved.demands) = (cost.fixed, cost.demands);
            moved.kernel = builder.kernel(transfer);
            if !noted.is_empty() && refusal(slot, None, context).is_none() {
                own = builder.kernel(Latch { slot, words: noted });
            }
        }
        Ok(Parts::Sides(Sides { from, to, noted })) => {
            let (source, destination) = (from.elements(), to.elements());
            let sources = std::slice::from_ref(source);
            let cost = core.transfer_cost(set, sources, destination, false, builder);
            let casts = source.element != destination.element;
            (moved.fixed, moved.demands) = (cost.fixed, cost.demands);
            moved.kernel = match (from, to) {
                (Side::Fixed(from), Side::Fixed(to)) => builder.kernel(Transfer {
                    text: Text::Slot(slot),
                    sources: smallvec![from],
                    to,
                    operation: if casts {
                        Operation::Cast
                    } else {
                        Operation::Copy
                    },
                }),
                (from, to) => {
                    if refusal(slot, None, context).is_none() {
                        own = builder.kernel(Latch { slot, words: noted });
                    }
                    builder.kernel(Addressed {
                        slot,
                        from,
                        to,
                        casts,
                    })
                }
            };
        }
        Err(why) => {
            let destination = variable(&core.subgraph.definition, dma.dst().address.target())
                .ok()
                .map(|(position, _, _)| position);
            let writes = core.memory.writes(destination);
            moved.kernel = builder.kernel(Skipped {
                writes: writes.clone(),
            });
            own = builder.kernel(Refused {
                slot: Some(slot),
                why,
                writes,
            });
        }
    }
    let handed = Handed::new(core, set, smallvec![moved], builder);
    (handed, own)
}

/// What an instruction does that moves elements of memory into registers, or back: it stops a functional run if it cannot be executed.
fn register_memory<'p>(
    core: &Core<'p, '_>,
    slot: &'p Slot,
    executed: KernelId,
    (context, known): (&Context, &Known),
    builder: &mut Builder<'p>,
) -> KernelId {
    if refusal(slot, None, context).is_some() {
        return executed;
    }
    match addresses::register_memory(core, slot, (context, known), &builder.program) {
        Ok(kernel) => builder.kernel(kernel),
        Err(why) => builder.kernel(Refused {
            slot: Some(slot),
            why,
            writes: core.memory.writable.clone(),
        }),
    }
}

/// The tasks of what an instruction handed over: the start, and the transfers themselves.
fn lower_transfer<'p>(
    core: &mut Core<'p, '_>,
    handed: Handed,
    phase: usize,
    builder: &mut Builder<'p>,
    phases: &mut Phases,
) -> Result<(), Error> {
    let Some((queue, start_queue)) = core.queues(handed.set) else {
        return Ok(());
    };
    let Some(location) = handed.moves.first().map(|first| first.location) else {
        return Ok(());
    };
    phases.put(queue, phase);
    // Both are released at the hand-over, so that transfers run in the order of their instructions; the start makes the first byte available.
    let name = &builder.program.queues[queue].name;
    let name = format!("{name}[{}] started", builder.next_index(queue));
    let started = builder.counter(name, Counter::FLAG);
    let task = NewTask {
        queue: start_queue,
        kernel: core.start_kernel(builder),
        waits: &[],
        signals: &[Signal::on_completion(Action::Add(started, 1))],
        demands: &[],
        fixed: Time::from_ns(core.machine.dma.start_ns),
        location,
        label: None,
    };
    let task = builder.task(task)?;
    builder.fill_piece(handed.start, task, 1);
    for (i, (moved, piece)) in handed.moves.into_iter().zip(handed.transfers).enumerate() {
        let wait = Wait {
            sync: started,
            condition: Condition::AtLeast(1),
        };
        let task = builder.task(NewTask {
            queue,
            kernel: moved.kernel,
            waits: if i == 0 {
                std::slice::from_ref(&wait)
            } else {
                &[]
            },
            signals: &moved.signals,
            demands: &moved.demands,
            fixed: moved.fixed,
            location: moved.location,
            label: moved.label,
        })?;
        builder.fill_piece(piece, task, 1);
    }
    Ok(())
}
