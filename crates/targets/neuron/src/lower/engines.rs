//! Instruction streams: a task for each slot, and for each transfer that a slot hands over.

use super::builder::{Builder, NewTask};
use super::core::{Core, written_once};
use super::cost::EngineCost;
use super::phases::Phases;
use crate::def::VariableType;
use crate::graph::Engine;
use crate::json::Error;
use crate::kernels::Elements;
use crate::kernels::control::{Refused, Skipped};
use crate::kernels::curve::Functions;
use crate::kernels::transfer::{Operation, Text, Transfer};
use crate::read::Subgraph;
use crate::stream::formats::Dma;
use crate::stream::operand::{Unresolved, leaves_partitions, variable};
use crate::stream::{DmaSide, ElementCode, Instruction, SLOT_BYTES, Slot, Space, Stream};
use chipless_model::{
    Action, Condition, Counter, Demand, ElementType, Fault, KernelId, Location, PieceId, Program,
    Signal, Time, Wait,
};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// A transfer that an engine handed over.
struct Handed {
    set: usize,
    start: PieceId,
    transfer: PieceId,
    kernel: KernelId,
    fixed: Time,
    demands: SmallVec<[Demand; 5]>,
    signal: Option<Signal>,
    location: Location,
}

/// Lowers the streams of a core.
pub(super) fn lower<'p>(
    core: &mut Core<'p, '_>,
    phase: usize,
    builder: &mut Builder<'p>,
    phases: &mut Phases,
) -> Result<(), Error> {
    let subgraph = core.subgraph;
    let functions = functions(subgraph);
    for room in &subgraph.engines {
        let Some(member) = room.instructions else {
            continue;
        };
        let slots = Stream::new(member.bytes).slots;
        if slots.is_empty() {
            continue;
        }
        builder.leave_engine();
        let transfers = slots
            .iter()
            .filter(|slot| matches!(slot.decode(), Instruction::Dma(_)))
            .count();
        builder.reserve(slots.len() + 2 * transfers);
        let queue = builder.queue(format!("{}.{}", subgraph.name, room.engine.name()), 1);
        phases.put(queue, phase);
        let part = builder.part(member.path);
        let mut cost = EngineCost::new(core.machine, room.engine);
        let mut handed = Vec::with_capacity(transfers);
        let mut first = None;
        for (index, slot) in slots.iter().enumerate() {
            let instruction = slot.decode();
            let (executed, body) = builder.slot(slot, core.memory.chip, room.engine, &functions);
            let location = Location {
                part,
                offset: (index * SLOT_BYTES) as u64,
                size: SLOT_BYTES as u32,
            };
            let mut waits: SmallVec<[Wait; 2]> = SmallVec::new();
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
            let kernel = match instruction {
                Instruction::Dma(dma) => {
                    let (transfer, kernel) =
                        hand_over(core, room.engine, (slot, executed), dma, location, builder);
                    signals.extend(
                        [transfer.start, transfer.transfer]
                            .map(|piece| Signal::on_completion(Action::Release(piece))),
                    );
                    handed.push(transfer);
                    kernel
                }
                _ => executed,
            };
            let fixed = cost.of(slot, body);
            let task = NewTask {
                queue,
                kernel,
                waits: &waits,
                signals: &signals,
                demands: &[],
                fixed,
                location,
                label: None,
            };
            first = first.or(Some(builder.task(task)?));
        }
        if let Some(first) = first {
            builder.release(queue, first);
        }
        for transfer in &handed {
            lower_transfer(core, transfer, phase, builder, phases)?;
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

/// What a slot hands over, and what the slot itself does: it stops a functional run if its transfer cannot be executed.
fn hand_over<'p>(
    core: &mut Core<'p, '_>,
    engine: Engine,
    (slot, executed): (&'p Slot, KernelId),
    dma: Dma<'_>,
    location: Location,
    builder: &mut Builder<'p>,
) -> (Handed, KernelId) {
    let (semaphore, increment) = dma.completion();
    let set = core.set_of(engine, semaphore);
    let (start, transfer) = (core.start(set, builder), core.queue(set, builder));
    let (start, transfer) = (
        builder.reserve_piece(start),
        builder.reserve_piece(transfer),
    );
    let semaphore = core.semaphore(u64::from(semaphore), builder);
    let signal =
        semaphore.map(|sync| Signal::on_completion(Action::Add(sync, i64::from(increment))));
    match sides(core, dma, &builder.program) {
        Ok((from, to)) => {
            let cost = core.transfer_cost(set, std::slice::from_ref(&from), &to, false, builder);
            let operation = if from.element == to.element {
                Operation::Copy
            } else {
                Operation::Cast
            };
            let kernel = builder.kernel(Transfer {
                text: Text::Slot(slot),
                sources: smallvec![from],
                to,
                operation,
            });
            let handed = Handed {
                set,
                start,
                transfer,
                kernel,
                fixed: cost.fixed,
                demands: cost.demands,
                signal,
                location,
            };
            (handed, executed)
        }
        Err(why) => {
            let destination = variable(&core.subgraph.definition, dma.dst().address)
                .ok()
                .map(|(position, _, _)| position);
            let writes = core.memory.writes(destination);
            let kernel = builder.kernel(Skipped {
                writes: writes.clone(),
            });
            let demands = SmallVec::new();
            let handed = Handed {
                set,
                start,
                transfer,
                kernel,
                fixed: Time::ZERO,
                demands,
                signal,
                location,
            };
            (
                handed,
                builder.kernel(Refused {
                    slot: Some(slot),
                    why,
                    writes,
                }),
            )
        }
    }
}

/// The two tasks of a transfer: its start, and the transfer itself.
fn lower_transfer<'p>(
    core: &mut Core<'p, '_>,
    handed: &Handed,
    phase: usize,
    builder: &mut Builder<'p>,
    phases: &mut Phases,
) -> Result<(), Error> {
    let Handed {
        set,
        start,
        transfer,
        kernel,
        fixed,
        ref demands,
        signal,
        location,
    } = *handed;
    let Some((queue, start_queue)) = core.queues(set) else {
        return Ok(());
    };
    phases.put(queue, phase);
    // Both are released at the hand-over, so that transfers run in the order of their instructions; the start makes the first byte available.
    let name = format!("{} started", builder.program.queues[queue].name);
    let started = builder.counter(name, Counter::FLAG);
    let signals = [Signal::on_completion(Action::Add(started, 1))];
    let waits = [Wait {
        sync: started,
        condition: Condition::AtLeast(1),
    }];
    let task = NewTask {
        queue: start_queue,
        kernel: core.start_kernel(builder),
        waits: &[],
        signals: &signals,
        demands: &[],
        fixed: Time::from_ns(core.machine.dma.start_ns),
        location,
        label: None,
    };
    let task = builder.task(task)?;
    builder.fill_piece(start, task);
    let task = NewTask {
        queue,
        kernel,
        waits: &waits,
        signals: signal.as_slice(),
        demands,
        fixed,
        location,
        label: None,
    };
    let task = builder.task(task)?;
    builder.fill_piece(transfer, task);
    Ok(())
}

/// Both sides of a transfer, as large as each other and inside their memories.
fn sides(
    core: &Core<'_, '_>,
    dma: Dma<'_>,
    program: &Program<'_>,
) -> Result<(Elements, Elements), Fault> {
    if dma.kind() != 0 {
        return Err(Fault::unsupported(format!(
            "transfers of kind {} are not supported: only direct ones (0) are proven",
            dma.kind()
        )));
    }
    let side = |side: &DmaSide, code: u8| {
        let (position, name, declared) = variable(&core.subgraph.definition, side.address)
            .map_err(|why| match why {
                Unresolved::Unsupported(why) => Fault::unsupported(why),
                Unresolved::Missing(what) => Fault::program(format!("the program has no {what}")),
            })?;
        let spot = core.memory.variables.get(position).copied().flatten();
        let spot = spot.ok_or_else(|| Fault::program(format!("{name} has no place in memory")))?;
        let pattern = side.pattern();
        if declared.kind == Some(VariableType::StateBuffer)
            && let Some(why) = leaves_partitions(
                &pattern,
                Space::StateBuffer,
                core.memory.chip.state_buffer_partition,
            )
        {
            return Err(Fault::program(format!("{name}: {why}")));
        }
        let pattern = i64::try_from(spot.offset)
            .ok()
            .and_then(|by| pattern.shifted(by));
        let pattern =
            pattern.ok_or_else(|| Fault::program(format!("{name}: the offset is beyond 2^63")))?;
        // Between equal codes bytes move as they are, whatever they mean.
        let element = match ElementCode::of(code) {
            Some(code) => code.element,
            None if !dma.casts() => ElementType::UInt8,
            None => {
                return Err(Fault::unsupported(format!(
                    "element type code {code:#x} is not supported: its meaning is not known"
                )));
            }
        };
        Ok(Elements {
            buffer: spot.buffer,
            pattern,
            element,
        })
    };
    let (from, to) = (
        side(&dma.src(), dma.codes().0)?,
        side(&dma.dst(), dma.codes().1)?,
    );
    written_once(&to, program)?;
    let (read, written) = (
        from.bytes().saturating_mul(to.element.bits()),
        to.bytes().saturating_mul(from.element.bits()),
    );
    if read != written {
        return Err(Fault::program(format!(
            "{} bytes are read, {} written",
            from.bytes(),
            to.bytes()
        )));
    }
    Ok((from, to))
}
