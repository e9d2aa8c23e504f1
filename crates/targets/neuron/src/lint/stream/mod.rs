//! What can be wrong with an instruction, seen from the slot and the declarations alone.

mod transfer;

use crate::def::Definition;
use crate::graph::Architecture;
use crate::kernels::Context;
use crate::kernels::curve::Functions;
use crate::kernels::instruction::refusal;
use crate::read::{EngineRoom, Neff, Subgraph};
use crate::rules::stream::{
    ELEMENT_CODE, ELEMENT_COUNT, EVENT_MODE, INSTRUCTION, KEPT_BYTES, NOT_EXECUTED, OPCODE,
    OPERAND_ALIGNMENT, PSUM_BANK, PSUM_GROUP, SLOT_LENGTH, START_PARTITION, STREAM_LENGTH,
    TILE_BOUNDS, TILE_SIZE,
};
use crate::sets;
use crate::stream::operand::{Operand, kept_bytes, kept_ranges, leaves_partitions};
use crate::stream::{
    Alike, DebugInfo, ElementCode, Events, Instruction, OnChip, Opcode, PARTITIONS,
    PSUM_BANK_BYTES, PSUM_PARTITION_BYTES, SLOT_BYTES, Setups, Slot, Space, Stream, Support, legal,
};
use crate::triggers;
use chipless_model::{Direction, Finding, Limits, Place, Rule};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

/// Findings of every instruction stream of a program. `sbuf_partition_bytes` are the usable bytes of a state buffer
/// partition. At most [`Limits::findings`] are kept.
pub(super) fn check(neff: &Neff<'_>, sbuf_partition_bytes: u32, limits: &Limits) -> Vec<Finding> {
    let most = usize::try_from(limits.findings).unwrap_or(usize::MAX);
    let mut findings = Vec::new();
    for subgraph in &neff.subgraphs {
        for room in &subgraph.engines {
            let mut check = Check::new(
                subgraph,
                room,
                (neff.architecture, sbuf_partition_bytes),
                most,
                &mut findings,
            );
            check.stream();
        }
    }
    findings
}

struct Check<'c, 'a> {
    /// The subgraph's name.
    subgraph: &'c str,
    definition: &'c Definition<'a>,
    room: &'c EngineRoom<'a>,
    architecture: Architecture,
    /// The engine as executed instructions see it.
    context: Context,
    /// Bytes of partitions that others keep.
    kept: Vec<(i64, i64)>,
    debug: Option<DebugInfo<'a>>,
    /// Whether its stream has functions.
    has_functions: bool,
    most: usize,
    findings: &'c mut Vec<Finding>,
}

impl<'c, 'a> Check<'c, 'a> {
    fn new(
        subgraph: &'c Subgraph<'a>,
        room: &'c EngineRoom<'a>,
        (architecture, sbuf_partition_bytes): (Architecture, u32),
        most: usize,
        findings: &'c mut Vec<Finding>,
    ) -> Check<'c, 'a> {
        Check {
            subgraph: &subgraph.name,
            definition: &subgraph.definition,
            room,
            architecture,
            context: Context::unplaced(room.engine, sbuf_partition_bytes, Functions::of(room)),
            kept: kept_ranges(&subgraph.definition),
            debug: None,
            has_functions: false,
            most,
            findings,
        }
    }

    fn stream(&mut self) {
        let Some(member) = self.room.instructions else {
            return;
        };
        let Stream { slots, rest } = Stream::new(member.bytes);
        let functions = sets::functions(self.room);
        self.has_functions = triggers::has_functions(slots);
        let mut listed: BTreeMap<u8, (usize, u64)> = BTreeMap::new();
        // What is right once is right again, elsewhere too if it lies well there: nothing else that is checked here depends on where in a
        // partition operands lie, and nothing on the numbers of semaphores.
        let (bodies, mut is_right) = (
            self.room.bodies(),
            Vec::with_capacity(self.room.bodies().distinct),
        );
        let (mut shapes, mut is_clean) = (Alike::by(Slot::shape, 0), Vec::new());
        let mut setups = Setups::default();
        for (index, slot) in slots.iter().enumerate() {
            let body = bodies.numbers[index];
            let is_first = body as usize == is_right.len();
            let setup = setups.next(slot);
            if !is_first && is_right[body as usize] && setup.is_none() {
                continue;
            }
            let (shape, is_new) = shapes.number(slot);
            let operands = slot.operands();
            let lies_well = !is_new
                && is_clean[shape as usize]
                && setup.is_none()
                && self.all_lie_well(slot, &operands);
            if is_first {
                is_right.push(lies_well);
            }
            if lies_well {
                continue;
            }
            let before = self.findings.len();
            if before >= self.most {
                return;
            }
            let support = slot.support();
            for (rule, message) in legal::check(
                slot,
                self.room.engine,
                self.architecture,
                functions.as_ref(),
                &operands,
            ) {
                self.report(rule, index, message);
            }
            match support {
                Support::Listed => {
                    listed.entry(slot.head.opcode).or_insert((index, 0)).1 += 1;
                }
                Support::Executed | Support::NoEffect => {
                    self.slot(index, (slot, setup), &operands);
                }
            }
            if is_new {
                is_clean.push(self.findings.len() == before && support != Support::Listed);
            }
        }
        self.groups(slots);
        for (opcode, (first, count)) in listed {
            let message = format!(
                "{} is not supported ({}, the first of them here)",
                Opcode::name_of(opcode),
                chipless_model::count(count as usize, "instruction")
            );
            let rule = match Opcode::of(opcode) {
                Some(_) => &NOT_EXECUTED,
                None => &OPCODE,
            };
            self.report(rule, first, message);
        }
        if !rest.is_empty() {
            let place = Place::bytes((slots.len() * SLOT_BYTES) as u64, rest.len() as u64)
                .in_part(member.path.to_owned());
            let message = format!(
                "{} bytes are {} slots of {SLOT_BYTES} and {} bytes",
                member.bytes.len(),
                slots.len(),
                rest.len()
            );
            self.findings.push(STREAM_LENGTH.at(place, message));
        }
    }

    /// Reports at a slot, with the line of the source that it comes from.
    fn report(&mut self, rule: &'static Rule, index: usize, message: String) {
        let debug = self.debug.get_or_insert_with(|| DebugInfo::of(self.room));
        let mut place = triggers::place(self.subgraph, self.room, index, self.has_functions);
        if let Some(line) = debug.slot(index) {
            place.item = format!("{} ({line})", place.item);
        }
        self.findings.push(rule.at(place, message));
    }

    /// The groups of sums of the matrix engine: each begins with a start, ends with a stop, and nothing is added behind it. Slots run
    /// in order; of each destination the first fault is reported.
    fn groups(&mut self, slots: &[Slot]) {
        /// The last `MATMUL` into a destination, and whether it said stop.
        #[derive(Clone, Copy)]
        struct Last {
            slot: usize,
            is_complete: bool,
            is_reported: bool,
        }
        let mut groups: FxHashMap<_, Last> = FxHashMap::default();
        for (index, slot) in slots.iter().enumerate() {
            let sums = match slot.decode() {
                Instruction::Matmul(i) if i.transpose() == 0 => i.sums(),
                Instruction::MatmulMx(i) => i.sums(),
                _ => continue,
            };
            let operands = slot.operands();
            let Some(destination) = operands.first() else {
                continue;
            };
            let (starts, is_complete) = (sums & 1 != 0, sums & 2 != 0);
            let entry = groups.entry((destination.address, destination.steps, destination.counts));
            let known = matches!(entry, Entry::Occupied(_));
            let last = entry.or_insert(Last {
                slot: index,
                is_complete,
                is_reported: false,
            });
            if known && !last.is_reported && starts != last.is_complete {
                last.is_reported = true;
                let before =
                    triggers::called(self.subgraph, self.room, last.slot, self.has_functions);
                let message = if starts {
                    format!("begins a group of sums at dst, that of {before} had no stop")
                } else {
                    format!("adds to the sums at dst, which {before} said are complete")
                };
                self.report(&PSUM_GROUP, index, message);
            }
            (last.slot, last.is_complete) = (index, is_complete);
        }
        let mut open: Vec<usize> = groups
            .values()
            .filter(|l| !l.is_complete && !l.is_reported)
            .map(|l| l.slot)
            .collect();
        open.sort_unstable();
        for slot in open
            .into_iter()
            .take(self.most.saturating_sub(self.findings.len()))
        {
            self.report(
                &PSUM_GROUP,
                slot,
                "is the last to add to the sums at dst, and does not say stop".to_owned(),
            );
        }
    }

    /// A slot that is executed. Whatever keeps it from that is said, if only at the end.
    fn slot(&mut self, index: usize, (slot, setup): (&Slot, Option<&Slot>), operands: &[Operand]) {
        let before = self.findings.len();
        self.fields(index, slot, operands);
        // Functions run in another order than they stand in: there, what sets this one up may be behind it.
        let is_set_up = setup.is_some() || !Setups::needed_by(slot) || !self.has_functions;
        if before == self.findings.len()
            && is_set_up
            && let Some(fault) = refusal(slot, setup, &self.context)
        {
            self.report(
                if fault.unsupported {
                    &NOT_EXECUTED
                } else {
                    &INSTRUCTION
                },
                index,
                fault.message,
            );
        }
    }

    fn fields(&mut self, index: usize, slot: &Slot, operands: &[Operand]) {
        if !slot.has_length() {
            self.report(
                &SLOT_LENGTH,
                index,
                format!(
                    "the slot says that it has {} words, expected 16",
                    slot.head.words
                ),
            );
        }
        for refusal in slot.events().filter_map(|e: Events| e.refusal()) {
            self.report(&EVENT_MODE, index, refusal);
        }
        if let Instruction::Dma(dma) = slot.decode() {
            let member = self.room.instructions;
            let slots = member.map_or(&[][..], |member| Stream::new(member.bytes).slots);
            return self.dma(index, dma, slots.get(index + 1));
        }
        for operand in operands {
            self.operand(index, operand);
        }
        match slot.decode() {
            Instruction::RegisterMemory(_) | Instruction::RegisterVariable(_) => {
                self.register_memory(index, slot);
            }
            Instruction::FunctionSet(i) => {
                let is_named = |set: &str| set.as_bytes() == i.name();
                if !self.room.tables.iter().any(|table| is_named(&table.set)) {
                    let name = String::from_utf8_lossy(i.name());
                    let message =
                        format!("loads set `{name}`, which activation_function_sets does not name");
                    self.report(&legal::FUNCTION, index, message);
                }
            }
            Instruction::LoadWeights(i) => {
                self.at_most(index, "rows", i.rows().into(), 128);
                self.at_most(index, "columns", i.columns().into(), 128);
                self.equal(
                    index,
                    "columns of the array",
                    i.columns().into(),
                    "of the source",
                    i.src().elements(),
                );
            }
            Instruction::Matmul(i) => {
                self.at_most(index, "rows", i.rows().into(), 128);
                self.at_most(index, "columns", i.columns().into(), 128);
                self.at_most(index, "columns of moving data", i.src().elements(), 512);
                self.equal(
                    index,
                    "elements of the destination",
                    i.dst().elements(),
                    "of the source",
                    i.src().elements(),
                );
                if let Some(destination) = operands.first() {
                    self.bank(index, destination);
                }
            }
            Instruction::Copy(_)
            | Instruction::TensorTensor(_)
            | Instruction::TensorScalar(_)
            | Instruction::ScalarTensorTensor(_)
            | Instruction::Activate(_)
            | Instruction::Select(_) => {
                if let [destination, sources @ ..] = operands {
                    for source in sources {
                        self.equal(
                            index,
                            "elements of the destination",
                            destination.elements(),
                            source.role,
                            source.elements(),
                        );
                    }
                }
            }
            // How many elements others make, their meaning says.
            _ => {}
        }
    }

    fn at_most(&mut self, index: usize, what: &str, found: u64, most: u64) {
        if found == 0 || found > most {
            self.report(
                &TILE_SIZE,
                index,
                format!("{found} {what}, possible are 1 to {most}"),
            );
        }
    }

    fn equal(&mut self, index: usize, left_name: &str, left: u64, right_name: &str, right: u64) {
        if left != right {
            self.report(
                &ELEMENT_COUNT,
                index,
                format!("{left} {left_name}, {right} {right_name}"),
            );
        }
    }

    fn operand(&mut self, index: usize, operand: &Operand) {
        let Some(code) = ElementCode::of(operand.code) else {
            let message = format!(
                "{}: element type code {:#x} is not supported: its meaning is not known",
                operand.role, operand.code
            );
            return self.report(&ELEMENT_CODE, index, message);
        };
        if self.is_inside(operand, code) {
            return self.start_partition(index, operand);
        }
        let Some((space, pattern)) = operand.pattern(code.element.bits() / 8) else {
            let message = format!(
                "{}: address {:#x} is behind the end of PSUM",
                operand.role, operand.address
            );
            return self.report(&TILE_BOUNDS, index, message);
        };
        let (name, bytes) = match space {
            Space::StateBuffer => ("the state buffer", self.context.chip.state_buffer_partition),
            Space::Psum => ("PSUM", PSUM_PARTITION_BYTES),
        };
        if let Some(why) = leaves_partitions(&pattern, space, bytes) {
            self.report(
                &TILE_BOUNDS,
                index,
                format!("{} reaches {why}, of {name}", operand.role),
            );
        }
        if operand.direction == Direction::Write
            && space == Space::StateBuffer
            && let Some(why) = kept_bytes(self.definition, &pattern)
        {
            self.report(
                &KEPT_BYTES,
                index,
                format!("{} reaches {why}", operand.role),
            );
        }
        if !u64::from(operand.address).is_multiple_of(code.element.bits() / 8) {
            let message = format!(
                "{}: elements of {} start at {:#x}",
                operand.role, code.element, operand.address
            );
            self.report(&OPERAND_ALIGNMENT, index, message);
        }
        self.start_partition(index, operand);
    }

    /// Whether all operands of a slot lie well, by their bounds alone: the sums of a product in one bank, too.
    fn all_lie_well(&self, slot: &Slot, operands: &[Operand]) -> bool {
        let is_product = matches!(slot.decode(), Instruction::Matmul(_));
        operands.iter().all(|operand| {
            let Some(code) = ElementCode::of(operand.code) else {
                return false;
            };
            let in_one_bank = || {
                let bounds = operand.bounds(code.element.bits() / 8);
                bounds.is_some_and(|(_, low, high)| {
                    let bank = i64::from(PSUM_BANK_BYTES);
                    low.div_euclid(bank) == (high - 1).div_euclid(bank)
                })
            };
            let sums = is_product && operand.direction == Direction::Write;
            self.is_inside(operand, code) && (!sums || in_one_bank())
        })
    }

    /// Whether an operand lies in its memory, aligned, and away from what others keep, by its bounds alone.
    fn is_inside(&self, operand: &Operand, code: &ElementCode) -> bool {
        let size = code.element.bits() / 8;
        let Some((start, low, high)) = operand.bounds(size) else {
            return false;
        };
        let OnChip {
            space,
            partition,
            offset,
        } = start;
        let bytes = match space {
            Space::StateBuffer => self.context.chip.state_buffer_partition,
            Space::Psum => PSUM_PARTITION_BYTES,
        };
        let is_kept = |(start, end): &(i64, i64)| low < *end && high > *start;
        let writes = operand.direction == Direction::Write && space == Space::StateBuffer;
        low >= 0
            && high <= i64::from(bytes)
            && partition + operand.partitions_across() <= PARTITIONS
            && u64::from(offset).is_multiple_of(size)
            && !(writes && self.kept.iter().any(is_kept))
    }

    fn start_partition(&mut self, index: usize, operand: &Operand) {
        let start = OnChip::at(operand.address).map_or(0, |a| a.partition);
        let legal = match operand.partitions {
            // Which partitions of a quadrant hold scales, their meaning says.
            _ if operand.role.ends_with("_scales") => true,
            0..=32 => start.is_multiple_of(32),
            33..=64 => start.is_multiple_of(64),
            65.. => start == 0,
        };
        if !legal {
            let message = format!(
                "{}: {} partitions start at partition {start}",
                operand.role, operand.partitions
            );
            self.report(&START_PARTITION, index, message);
        }
    }

    fn bank(&mut self, index: usize, operand: &Operand) {
        let Some(code) = ElementCode::of(operand.code) else {
            return;
        };
        let one = Operand {
            partitions: 1,
            ..*operand
        };
        let Some((space, pattern)) = one.pattern(code.element.bits() / 8) else {
            return;
        };
        let extent = pattern.extent();
        let bank = |byte: i128| byte.div_euclid(i128::from(PSUM_BANK_BYTES));
        if space != Space::Psum {
            self.report(
                &PSUM_BANK,
                index,
                format!("dst is {:#x} in the state buffer", operand.address),
            );
        } else if !extent.is_empty() && bank(extent.start) != bank(extent.end - 1) {
            let within = i128::from(space.stride());
            let (start, end) = (extent.start.rem_euclid(within), extent.end - extent.start);
            self.report(
                &PSUM_BANK,
                index,
                format!("dst takes {end} bytes from {start:#x} of each partition, beyond a bank of {PSUM_BANK_BYTES}"),
            );
        }
    }
}
