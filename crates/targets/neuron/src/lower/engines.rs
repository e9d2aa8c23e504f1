//! Instruction streams: a task for each slot, and for each transfer that a slot hands over.

use super::builder::{Builder, NewTask};
use super::core::{Core, written_once};
use super::cost::EngineCost;
use super::phases::Phases;
use crate::json::Error;
use crate::kernels::Elements;
use crate::kernels::array::{LoadWeights, Matmul, Part, SIDE};
use crate::kernels::control::{Control, Refused, Start};
use crate::kernels::elements::{Add, Copy, Fill, adds};
use crate::kernels::transfer::{Operation, Text, Transfer};
use crate::stream::operand::{Unresolved, variable};
use crate::stream::rules::debug_info;
use crate::stream::{Dma, DmaSide, ElementCode, Instruction, Opcode, Operand, SLOT_BYTES, Slot, Space, Stream, Support};
use chipless_model::{Action, KernelId, Location, PieceId, Program, Signal, SyncId, Time, Wait};
use smallvec::SmallVec;

/// Elements of a partition that an instruction walks, at most.
const MOST_ELEMENTS: u64 = 1 << 16;

/// A transfer that an engine handed over.
struct Handed<'p> {
    dma: &'p Dma,
    slot: &'p Slot,
    set: usize,
    start: PieceId,
    transfer: PieceId,
    semaphore: Option<SyncId>,
    location: Location,
    label: Option<Box<str>>,
}

/// Lowers the streams of a core.
pub(super) fn lower<'p>(core: &mut Core<'p, '_>, phase: usize, builder: &mut Builder<'p>, phases: &mut Phases) -> Result<(), Error> {
    let subgraph = core.subgraph;
    for room in &subgraph.engines {
        let Some(member) = room.instructions else { continue };
        let slots = Stream::new(member.bytes).slots;
        if slots.is_empty() {
            continue;
        }
        let queue = builder.queue(format!("{}.{}", subgraph.name, room.engine.name()), 1);
        phases.put(queue, phase);
        let part = builder.part(member.path);
        let debug = debug_info(room);
        let mut cost = EngineCost::new(core.machine, room.engine);
        let mut handed: Vec<Handed<'p>> = Vec::new();
        let mut first = None;
        for (index, slot) in slots.iter().enumerate() {
            let instruction = slot.decode();
            let location = Location { part, offset: (index * SLOT_BYTES) as u64, size: SLOT_BYTES as u32 };
            let label: Option<Box<str>> = debug.slot(index).map(|line| line.to_string().into());
            let mut waits: SmallVec<[Wait; 2]> = SmallVec::new();
            let mut signals: SmallVec<[Signal; 3]> = SmallVec::new();
            for events in instruction.events() {
                if let Some((number, condition)) = events.condition()
                    && let Some(sync) = core.semaphore(u64::from(number), builder)
                {
                    waits.push(Wait { sync, condition });
                }
                if let Some((number, by, moment)) = events.change()
                    && let Some(sync) = core.semaphore(u64::from(number), builder)
                {
                    signals.push(Signal { moment, action: Action::Add(sync, by) });
                }
            }
            if let Instruction::Dma(dma) = instruction {
                let set = core.set_of(room.engine, dma.semaphore);
                let start = core.start(set, builder);
                let start = builder.reserve_piece(start);
                let transfer = core.queue(set, builder);
                let transfer = builder.reserve_piece(transfer);
                signals.push(Signal::on_completion(Action::Release(start)));
                let semaphore = core.semaphore(u64::from(dma.semaphore), builder);
                handed.push(Handed { dma, slot, set, start, transfer, semaphore, location, label: label.clone() });
            }
            let fixed = cost.of(&instruction);
            let kernel = kernel(core, slot, &instruction, builder);
            let task = NewTask { queue, kernel, waits: &waits, signals: &signals, demands: &[], fixed, location, label };
            first = first.or(Some(builder.task(task)?));
        }
        if let Some(first) = first {
            builder.release(queue, first);
        }
        for transfer in handed {
            lower_transfer(core, transfer, phase, builder, phases)?;
        }
    }
    Ok(())
}

/// The two tasks of a transfer: its start, and the transfer itself.
fn lower_transfer<'p>(
    core: &mut Core<'p, '_>,
    handed: Handed<'p>,
    phase: usize,
    builder: &mut Builder<'p>,
    phases: &mut Phases,
) -> Result<(), Error> {
    let Handed { dma, slot, set, start, transfer, semaphore, location, label } = handed;
    let fixed = Time::from_ns(core.machine.dma.start_ns);
    let (queue, kernel) = (core.start(set, builder), builder.kernel(Start));
    let signals = [Signal::on_completion(Action::Release(transfer))];
    let task = NewTask { queue, kernel, waits: &[], signals: &signals, demands: &[], fixed, location, label: None };
    let task = builder.task(task)?;
    builder.fill_piece(start, task);
    let queue = core.queue(set, builder);
    phases.put(queue, phase);
    let signal = semaphore.map(|sync| Signal::on_completion(Action::Add(sync, i64::from(dma.increment))));
    // What cannot be resolved stopped a functional run at its instruction; for the timing, its bytes count.
    let (kernel, cost) = match sides(core, dma, &builder.program) {
        Ok((from, to)) => {
            let cost = core.transfer_cost(set, std::slice::from_ref(&from), &to, false, builder);
            let operation = if from.element == to.element { Operation::Copy } else { Operation::Cast };
            let text = Text::Slot(slot);
            (builder.kernel(Transfer { text, sources: vec![from], to, operation }), Some(cost))
        }
        Err(_) => (builder.kernel(Control(slot)), None),
    };
    let fixed = cost.as_ref().map_or(Time::ZERO, |c| c.fixed);
    let demands = cost.map(|c| c.demands).unwrap_or_default();
    let task = NewTask { queue, kernel, waits: &[], signals: signal.as_slice(), demands: &demands, fixed, location, label };
    let task = builder.task(task)?;
    builder.fill_piece(transfer, task);
    Ok(())
}

/// What a slot does; a slot that cannot be executed says why when it is reached.
fn kernel<'p>(core: &Core<'p, '_>, slot: &'p Slot, instruction: &Instruction<'p>, builder: &mut Builder<'p>) -> KernelId {
    let executed = match instruction.events().find_map(|e| e.refusal()) {
        Some(why) => Err(why),
        None => execute(core, slot, instruction, builder),
    };
    match executed {
        Ok(kernel) => kernel,
        Err(why) => builder.kernel(Refused { slot, why }),
    }
}

fn execute<'p>(core: &Core<'p, '_>, slot: &'p Slot, instruction: &Instruction<'p>, builder: &mut Builder<'p>) -> Result<KernelId, String> {
    let operands = instruction.operands();
    let elements = |i: usize| -> Result<Elements, String> { operands.get(i).map_or(Err("no such operand".into()), |o| on_chip(core, o)) };
    let same_size = |a: &Elements, b: &Elements| {
        let (a, b) = (a.bytes() / a.element.bits().max(1), b.bytes() / b.element.bits().max(1));
        if a == b { Ok(()) } else { Err("source and destination differ in elements".to_owned()) }
    };
    Ok(match instruction {
        Instruction::LoadWeights(i) => {
            let columns = i.source.elements();
            let part = part(core, (i.row_groups, i.column_groups), i.rows, columns)?;
            let backwards = operands.first().and_then(|o| backwards(o)).ok_or("the columns leave the memory")?;
            builder.kernel(LoadWeights { slot, from: on_chip(core, &backwards)?, part })
        }
        Instruction::Matmul(i) => {
            let part = part(core, (i.row_groups, i.column_groups), i.rows, u64::from(i.columns))?;
            let (to, from) = (elements(0)?, elements(1)?);
            if i.destination.elements() != i.source.elements() {
                return Err("source and destination differ in elements".into());
            }
            if i.transpose > 1 || i.accumulate > 3 {
                return Err(format!("flags {:#04x} and {:#04x} are not supported: their meaning is not known", i.transpose, i.accumulate));
            }
            let transpose = i.transpose == 1;
            if transpose && from.element.bits() < 16 {
                return Err("transpositions of elements of one byte are not supported".into());
            }
            let (moving, accumulate) = (i.source.elements() as usize, i.accumulate & 1 == 0);
            builder.kernel(Matmul { slot, part, from, moving, to, accumulate, transpose })
        }
        Instruction::TensorTensor(i) => {
            if !adds(instruction) {
                return Err(format!("operation {:#04x} is not supported: only additions (0x04) are proven", i.operation));
            }
            let (to, first, second) = (elements(0)?, elements(1)?, elements(2)?);
            if first.element != second.element {
                return Err("operands of different types are not supported: which code is whose is not known".into());
            }
            same_size(&first, &to)?;
            same_size(&second, &to)?;
            builder.kernel(Add { slot, first, second, to })
        }
        Instruction::Copy(_) | Instruction::Cast(_) => {
            let (to, from) = (elements(0)?, elements(1)?);
            same_size(&from, &to)?;
            builder.kernel(Copy { slot, from, to })
        }
        Instruction::Memset(i) => builder.kernel(Fill { slot, value: i.value.get().to_le_bytes(), to: elements(0)? }),
        Instruction::EventSemaphore(_) | Instruction::NoEffect(_) => builder.kernel(Control(slot)),
        Instruction::Dma(dma) => {
            sides(core, dma, &builder.program)?;
            builder.kernel(Control(slot))
        }
        Instruction::Other(slot) => {
            let opcode = slot.head.opcode;
            return Err(match Opcode::of(opcode).map(|o| o.support) {
                Some(Support::Listed) => "this instruction is not supported: what it does is not proven".to_owned(),
                _ => format!("opcode {opcode:#04x} is not supported: it has no known name"),
            });
        }
    })
}

/// The elements of an operand.
fn on_chip(core: &Core<'_, '_>, operand: &Operand) -> Result<Elements, String> {
    let code = ElementCode::of(operand.code).ok_or_else(|| format!("element type code {:#x} is not supported", operand.code))?;
    if operand.elements() > MOST_ELEMENTS {
        return Err(format!("{}: {} elements of a partition, at most {MOST_ELEMENTS} are possible", operand.role, operand.elements()));
    }
    let (space, pattern) = operand.pattern(code.element.bits() / 8).ok_or_else(|| format!("{}: no such address", operand.role))?;
    let buffer = match space {
        Space::StateBuffer => core.memory.state_buffer,
        Space::Psum => core.memory.psum,
    };
    Ok(Elements { buffer, pattern, element: code.element })
}

/// The same elements from the last to the first.
fn backwards(operand: &Operand) -> Option<Operand> {
    let bytes = (ElementCode::of(operand.code)?.element.bits() / 8) as i64;
    let mut address = i64::from(operand.address);
    for (step, count) in operand.steps.iter().zip(operand.counts) {
        address += i64::from(*step) * (i64::from(count) - 1) * bytes;
    }
    let steps = operand.steps.map(i16::checked_neg);
    let [Some(a), Some(b), Some(c), Some(d)] = steps else { return None };
    Some(Operand { address: u32::try_from(address).ok()?, steps: [a, b, c, d], ..*operand })
}

/// The part of the array that an instruction works on: all groups are set, or those that its rows and columns need.
fn part(core: &Core<'_, '_>, groups: (u8, u8), rows: u8, columns: u64) -> Result<Part, String> {
    const GROUP: usize = SIDE / 4;
    let (rows, columns) = (usize::from(rows), usize::try_from(columns).unwrap_or(usize::MAX));
    let first = |mask: u8, size: usize, what: &str| {
        let first = if mask == 0xf { 0 } else { mask.trailing_zeros() as usize * GROUP };
        let needed = if mask == 0xf { 4 } else { size.div_ceil(GROUP) };
        let contiguous = mask != 0 && mask >> mask.trailing_zeros() == (1u16 << needed.min(4)).wrapping_sub(1) as u8;
        if size == 0 || first.saturating_add(size) > SIDE || !contiguous {
            return Err(format!("{size} {what} in groups {mask:#x} are not supported"));
        }
        Ok(first)
    };
    let (first_row, first_column) = (first(groups.0, rows, "rows")?, first(groups.1, columns, "columns")?);
    Ok(Part { array: core.memory.array, first_row, first_column, rows, columns })
}

/// Both sides of a transfer, as large as each other.
fn sides(core: &Core<'_, '_>, dma: &Dma, program: &Program<'_>) -> Result<(Elements, Elements), String> {
    if dma.kind != 0 {
        return Err(format!("transfers of kind {} are not supported: only direct ones (0) are proven", dma.kind));
    }
    let side = |side: &DmaSide, code: u8| {
        let (position, name, _) = variable(&core.subgraph.definition, &side.address).map_err(|why| match why {
            Unresolved::Unsupported(why) => why,
            Unresolved::Missing(what) => format!("the program has no {what}"),
        })?;
        let spot = core.memory.variables.get(position).copied().flatten().ok_or_else(|| format!("{name} has no place in memory"))?;
        let pattern = i64::try_from(spot.offset).ok().and_then(|by| side.pattern().shifted(by)).ok_or("the offset is beyond 2^63")?;
        // Between equal codes bytes move as they are, whatever they mean.
        let element = match ElementCode::of(code) {
            Some(code) => code.element,
            None if dma.source_element == dma.destination_element => chipless_model::ElementType::UInt8,
            None => return Err(format!("element type code {code:#x} is not supported: its meaning is not known")),
        };
        Ok(Elements { buffer: spot.buffer, pattern, element })
    };
    let (from, to) = (side(&dma.source, dma.source_element)?, side(&dma.destination, dma.destination_element)?);
    written_once(&to, program)?;
    let (read, written) = (from.bytes().saturating_mul(to.element.bits()), to.bytes().saturating_mul(from.element.bits()));
    if read != written {
        return Err(format!("{} bytes are read, {} written", from.bytes(), to.bytes()));
    }
    Ok((from, to))
}
