//! Descriptors of the engine JSON files: a task for each item of `desc`.

use super::builder::{Builder, NewTask};
use super::core::{Core, written_once};
use super::phases::Phases;
use crate::engine::{AccessPattern, ConstantType, Descriptor, DmaEntry, Operation as Named};
use crate::json::Error;
use crate::kernels::Elements;
use crate::kernels::control::{Refused, Unknown};
use crate::kernels::transfer::{Compute, Operation, Text, Transfer};
use crate::read::EngineRoom;
use crate::triggers::{Plan, Started};
use chipless_model::{
    Action, Demand, ElementType, Fault, KernelId, Location, PartId, Program, QueueId, Signal,
    SyncId, Time,
};
use smallvec::SmallVec;

/// One move of a transfer that a ring holds.
pub(super) struct Move {
    pub(super) kernel: KernelId,
    pub(super) fixed: Time,
    pub(super) demands: SmallVec<[Demand; 5]>,
    pub(super) signals: SmallVec<[Signal; 2]>,
    pub(super) location: Location,
    pub(super) label: Option<Box<str>>,
}

/// Lowers the descriptors of the core at `index` that no instruction starts: each runs once, in list order. Says whether there are any.
/// The other cores lend their semaphores.
pub(super) fn lower<'p>(
    cores: &mut [Core<'p, '_>],
    index: usize,
    plans: &[Plan],
    phase: usize,
    builder: &mut Builder<'p>,
    phases: &mut Phases,
) -> Result<bool, Error> {
    let subgraph = cores[index].subgraph;
    let mut listed = false;
    // Entries of one queue set run in list order; a set that several engine files use takes them file by file.
    let mut by_set: Vec<Vec<(&'p EngineRoom<'p>, PartId, &'p DmaEntry<'p>)>> =
        vec![Vec::new(); cores[index].sets.len()];
    let mut lost = Vec::new();
    for (room, plan) in subgraph.engines.iter().zip(plans) {
        let Some(source) = &room.source else { continue };
        if room.file.dma.is_empty() || plan.has_triggers {
            continue;
        }
        let part = builder.part(source.member);
        for entry in &room.file.dma {
            let set = entry
                .queue_name()
                .and_then(|name| subgraph.definition.queue_set(name));
            // One without transfers would have had some.
            match set
                .filter(|_| !entry.descriptors.is_empty())
                .and_then(|set| by_set.get_mut(set))
            {
                Some(entries) => entries.push((room, part, entry)),
                None => lost.push((room, part, entry)),
            }
        }
    }
    // First of all: what they would have written is not missed in any other queue.
    if !lost.is_empty() {
        lower_lost(&lost, index, phase, cores, builder, phases)?;
    }
    for (set, entries) in by_set
        .iter()
        .enumerate()
        .filter(|(_, entries)| !entries.is_empty())
    {
        let queue = cores[index].queue(set, builder);
        phases.put(
            queue,
            if cores[index].sets[set].pinned {
                0
            } else {
                phase
            },
        );
        let mut first_task = None;
        for (room, part, entry) in entries {
            listed = true;
            if entry.section_start_desc {
                cores[index].sets[set].next_ring = 0;
            }
            let signals = signals(cores, index, set, entry, builder);
            let location = location(room, *part, entry);
            let last = entry.descriptors.len().saturating_sub(1);
            for (i, descriptor) in entry.descriptors.iter().enumerate() {
                let core = &mut cores[index];
                let (kernel, mut fixed, demands) = item(core, set, descriptor, builder);
                if first_task.is_none() {
                    fixed += Time::from_ns(core.machine.dma.start_ns);
                }
                let signals = if i == last { &signals[..] } else { &[] };
                let label = Some(label(entry));
                let task = NewTask {
                    queue,
                    kernel,
                    waits: &[],
                    signals,
                    demands: &demands,
                    fixed,
                    location,
                    label,
                };
                first_task = first_task.or(Some(builder.task(task)?));
            }
        }
        if let Some(first) = first_task {
            builder.release(queue, first);
        }
    }
    Ok(listed)
}

/// What a descriptor does, and how long.
fn item<'p>(
    core: &mut Core<'p, '_>,
    set: usize,
    descriptor: &'p Descriptor<'p>,
    builder: &mut Builder<'p>,
) -> (KernelId, Time, SmallVec<[Demand; 5]>) {
    match transfer(core, descriptor, &builder.program) {
        Ok((sources, to, operation)) => {
            let transposes = matches!(operation, Operation::Transpose { .. });
            let cost = core.transfer_cost(set, &sources, &to, transposes, builder);
            let (first, count) = cost.rings;
            let rings = format!(" rings={first}+{count} of {}", core.sets[set].rings);
            let kernel = builder.kernel(Transfer {
                text: Text::Descriptor(descriptor, rings),
                sources,
                to,
                operation,
            });
            (kernel, cost.fixed, cost.demands)
        }
        Err(why) => {
            let refused = Refused {
                slot: None,
                why,
                writes: writes(core, descriptor),
            };
            let kernel = builder.kernel(refused);
            (kernel, Time::ZERO, SmallVec::new())
        }
    }
}

/// The transfers of an entry that an instruction starts, and their queue set; `None` for an entry without either.
pub(super) fn start<'p>(
    cores: &mut [Core<'p, '_>],
    index: usize,
    room: &'p EngineRoom<'p>,
    started: Started,
    builder: &mut Builder<'p>,
) -> Option<(usize, SmallVec<[Move; 1]>)> {
    let entry = room.file.dma.get(started.entry)?;
    let definition = &cores[index].subgraph.definition;
    let set = definition.queue_set(entry.queue_name()?)?;
    let (first, end) = started.transfers;
    if first == 0 && entry.section_start_desc {
        cores[index].sets[set].next_ring = 0;
    }
    let location = location(room, builder.part_of(room.source.as_ref()?.member), entry);
    let mut moves = SmallVec::new();
    for (i, descriptor) in entry.descriptors.iter().enumerate().take(end).skip(first) {
        let is_last = i + 1 == entry.descriptors.len();
        let signals = is_last.then(|| signals(cores, index, set, entry, builder));
        let (kernel, fixed, demands) = item(&mut cores[index], set, descriptor, builder);
        moves.push(Move {
            kernel,
            fixed,
            demands,
            signals: signals.into_iter().flatten().collect(),
            location,
            label: Some(label(entry)),
        });
    }
    (!moves.is_empty()).then_some((set, moves))
}

/// Entries without a queue set or without transfers fault when they are reached.
fn lower_lost<'p>(
    lost: &[(&'p EngineRoom<'p>, PartId, &'p DmaEntry<'p>)],
    index: usize,
    phase: usize,
    cores: &[Core<'p, '_>],
    builder: &mut Builder<'p>,
    phases: &mut Phases,
) -> Result<(), Error> {
    let queue: QueueId = builder.queue(
        format!("{}.lost descriptors", cores[index].subgraph.name),
        1,
    );
    phases.put(queue, phase);
    let mut first_task = None;
    for (room, part, entry) in lost {
        let name = entry.queue_name().unwrap_or_default();
        let why = Fault::program(if entry.descriptors.is_empty() {
            "a descriptor without transfers".to_owned()
        } else {
            format!("the program has no queue set `{name}`")
        });
        let kernel = builder.kernel(Refused {
            slot: None,
            why,
            writes: cores[index].memory.writable.clone(),
        });
        let (location, label) = (location(room, *part, entry), Some(label(entry)));
        let task = NewTask {
            queue,
            kernel,
            waits: &[],
            signals: &[],
            demands: &[],
            fixed: Time::ZERO,
            location,
            label,
        };
        first_task = first_task.or(Some(builder.task(task)?));
    }
    if let Some(first) = first_task {
        builder.release(queue, first);
    }
    Ok(())
}

/// What an entry gives when its last item is done.
fn signals<'p>(
    cores: &mut [Core<'p, '_>],
    index: usize,
    set: usize,
    entry: &DmaEntry<'_>,
    builder: &mut Builder<'p>,
) -> SmallVec<[Signal; 4]> {
    let rings = cores[index].sets[set].rings.min(u64::from(u32::MAX)) as i64;
    let mut syncs: SmallVec<[(SyncId, i64); 4]> = SmallVec::new();
    syncs.extend(
        entry
            .semaphore
            .and_then(|number| cores[index].semaphore(number, builder))
            .map(|sync| (sync, rings)),
    );
    for (_, remote) in cores.iter_mut().enumerate().filter(|(i, _)| *i != index) {
        let numbers = entry.remote_semaphores.iter();
        syncs.extend(
            numbers
                .filter_map(|number| remote.semaphore(*number, builder))
                .map(|sync| (sync, rings)),
        );
    }
    syncs.extend(
        entry
            .event
            .and_then(|number| cores[index].event(number, builder))
            .map(|sync| (sync, 1)),
    );
    syncs
        .into_iter()
        .map(|(sync, by)| Signal::on_completion(Action::Add(sync, by)))
        .collect()
}

fn location(room: &EngineRoom<'_>, part: PartId, entry: &DmaEntry<'_>) -> Location {
    let offset = room
        .source
        .as_ref()
        .map_or(0, |source| source.offset(entry.text) as u64);
    Location {
        part,
        offset,
        size: u32::try_from(entry.text.len()).unwrap_or(u32::MAX),
    }
}

fn label(entry: &DmaEntry<'_>) -> Box<str> {
    let id = entry.id.map_or_else(String::new, |id| format!("id {id}"));
    match entry
        .function_start
        .as_deref()
        .filter(|name| !name.is_empty())
    {
        Some(function) => format!("{id}, start of {function}").into(),
        None => id.into(),
    }
}

/// What a descriptor that is not executed may have written: its destination, as far as that is known.
fn writes(core: &Core<'_, '_>, descriptor: &Descriptor<'_>) -> Unknown {
    let name = descriptor.to.variable.as_deref().unwrap_or_default();
    core.memory
        .writes(core.subgraph.definition.variables.get_index_of(name))
}

/// What a descriptor moves, and how.
fn transfer(
    core: &Core<'_, '_>,
    descriptor: &Descriptor<'_>,
    program: &Program<'_>,
) -> Result<(SmallVec<[Elements; 1]>, Elements, Operation), Fault> {
    let to = side(core, &descriptor.to, program)?;
    let sources = descriptor
        .sources()
        .map(|source| side(core, source, program))
        .collect::<Result<SmallVec<[Elements; 1]>, Fault>>()?;
    let written = to
        .pattern
        .bytes()
        .ok_or_else(|| Fault::program("more than 2^64 bytes are written"))?;
    written_once(&to, program)?;
    for source in &sources {
        let read = source
            .pattern
            .bytes()
            .ok_or_else(|| Fault::program("more than 2^64 bytes are read"))?;
        let (from, into) = match descriptor.operation {
            Named::Copy | Named::Transpose => (Some(read), Some(written)),
            _ => (
                read.checked_mul(to.element.bits()),
                written.checked_mul(source.element.bits()),
            ),
        };
        let is_whole = matches!(descriptor.operation, Named::Copy | Named::Transpose)
            || read.is_multiple_of(source.element.bits() / 8);
        if from != into || from.is_none() || !is_whole {
            return Err(Fault::program(format!(
                "{read} bytes of {} are read, {written} of {} written",
                source.element, to.element
            )));
        }
    }
    let one = || {
        if sources.len() == 1 {
            Ok(())
        } else {
            Err(Fault::program(format!(
                "{} sources, expected one",
                sources.len()
            )))
        }
    };
    let compute = |how: Compute| {
        let scales = descriptor
            .sources()
            .map(|source| descriptor.scale_of(source) as f32);
        let scales = if descriptor.operation == Named::Fma {
            scales.collect()
        } else {
            vec![1.0; sources.len()]
        };
        let constant = descriptor
            .constant
            .filter(|_| descriptor.constant_dtype.is_some() && how != Compute::Add);
        let constant = constant.map(|value| match descriptor.constant_dtype {
            Some(ConstantType::Int32) => value as i32 as f32,
            Some(ConstantType::UInt32) => value as u32 as f32,
            _ => value as f32,
        });
        Operation::Compute {
            how,
            scales,
            constant,
        }
    };
    let operation = match descriptor.operation {
        Named::Copy => one().map(|()| Operation::Copy)?,
        // Between equal types nothing changes, not even integers that binary32 does not hold.
        Named::Cast if sources.iter().all(|source| source.element == to.element) => {
            one().map(|()| Operation::Copy)?
        }
        Named::Cast => one().map(|()| Operation::Cast)?,
        Named::Add | Named::Fma => compute(Compute::Add),
        Named::Min => compute(Compute::Min),
        Named::Max => compute(Compute::Max),
        Named::Transpose => one().and_then(|()| transposition(descriptor, &to, written))?,
        Named::Unknown => {
            return Err(Fault::unsupported(
                "this operation of a descriptor is not supported: its name is not known",
            ));
        }
    };
    if sources.is_empty() {
        return Err(Fault::program("a descriptor without sources"));
    }
    Ok((sources, to, operation))
}

fn transposition(
    descriptor: &Descriptor<'_>,
    to: &Elements,
    bytes: u64,
) -> Result<Operation, Fault> {
    let shape = descriptor.transpose_shape.as_ref();
    let shape = shape.ok_or_else(|| {
        Fault::unsupported("a transposition without transpose_shape is not supported")
    })?;
    let size = descriptor
        .transpose_element_size
        .unwrap_or(to.element.bits() / 8);
    let elements = shape
        .iter()
        .try_fold(1u64, |n, d| n.checked_mul(*d))
        .and_then(|n| n.checked_mul(size));
    if elements != Some(bytes) || size == 0 {
        return Err(Fault::program(format!(
            "a transposition to {:?} elements of {size} bytes moves {bytes} bytes",
            &shape[..]
        )));
    }
    let mut shape: Vec<usize> = shape.iter().map(|d| *d as usize).collect();
    // Unit dimensions come last and have no part in it.
    while shape.last() == Some(&1) {
        shape.pop();
    }
    Ok(Operation::Transpose {
        shape,
        element_bytes: size as usize,
    })
}

fn side(
    core: &Core<'_, '_>,
    side: &AccessPattern<'_>,
    program: &Program<'_>,
) -> Result<Elements, Fault> {
    let name = side.variable.as_deref().unwrap_or_default();
    let position = core.subgraph.definition.variables.get_index_of(name);
    let spot = position.and_then(|at| core.memory.variables.get(at).copied().flatten());
    let spot = spot
        .ok_or_else(|| Fault::program(format!("the program has no variable `{name}` in memory")))?;
    let pattern = side
        .pattern()
        .ok_or_else(|| Fault::program(format!("{name}: steps and sizes do not fit together")))?;
    let pattern = i64::try_from(spot.offset)
        .ok()
        .and_then(|by| pattern.shifted(by));
    let pattern =
        pattern.ok_or_else(|| Fault::program(format!("{name}: the offset is beyond 2^63")))?;
    let (element, size) = (
        side.data_type().element().unwrap_or(ElementType::UInt8),
        program.buffers[spot.buffer].size,
    );
    if pattern.bytes() == Some(0) {
        return Err(Fault::program(format!("{name}: no bytes are moved")));
    }
    if !pattern.fits(size) {
        let extent = pattern.extent();
        return Err(Fault::program(format!(
            "{name}: bytes {} to {} of a memory of {size}",
            extent.start, extent.end
        )));
    }
    Ok(Elements {
        buffer: spot.buffer,
        pattern,
        element,
    })
}
