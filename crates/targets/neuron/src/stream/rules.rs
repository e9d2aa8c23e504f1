//! What can be wrong with an instruction, seen from the slot and the declarations alone.

use super::formats::Dma;
use super::operand::{
    Operand, Unresolved, kept_bytes, kept_ranges, leaves_partitions, overlaps, variable,
};
use super::{
    Bodies, DmaSide, ElementCode, Events, Instruction, OnChip, Opcode, PARTITIONS, PSUM_BANK_BYTES,
    PSUM_PARTITION_BYTES, SLOT_BYTES, Slot, Space, Stream, Support, legal,
};
use crate::def::{Definition, QueueType, VariableType};
use crate::graph::{Architecture, Engine};
use crate::kernels::curve::Functions;
use crate::kernels::instruction::refusal;
use crate::read::{EngineRoom, Neff, Subgraph};
use crate::sets;
use crate::stream::DebugInfo;
use chipless_model::{Direction, Finding, Limits, Place, Rule};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

chipless_model::rules! {
    STREAM_LENGTH Fault Error Format "neff-stream-length" "an instruction stream is no whole number of slots"
        "Instructions are slots of 64 bytes; the member has bytes behind the last whole one."
        "The member is cut off: take the file from its origin again."
        "compiled programs";
    SLOT_LENGTH Departure Warning Writers "neff-slot-length" "a slot says that it has another length than 16 words"
        "Byte 1 of a slot counts its 32-bit words, and is 16 in every known program. The slot is read as 64 bytes."
        "Compile again."
        "compiled programs";
    OPCODE Unsupported Warning Chipless "neff-opcode" "an opcode is not supported: it has no known name"
        "Chipless knows the opcodes that compiled programs and public sources name; this byte is none of them. A functional run stops there; a timing run goes on."
        "If the compiler is newer than Chipless, report the opcode; else the file is damaged."
        "table of opcodes in the documentation";
    NOT_EXECUTED Unsupported Note Chipless "neff-not-executed" "an instruction or a transfer is listed, not executed"
        "It has a name, but what it does is not proven by any program at hand. A functional run stops there; a timing run goes on. What it would have written counts as written."
        "Use --timing-only for the timing."
        "table of opcodes in the documentation";
    EVENT_MODE Unsupported Error Chipless "neff-event-mode" "a wait or update mode is not supported"
        "The byte that says how an instruction waits or signals has a value whose meaning is not known, or one that needs registers."
        "If the compiler is newer than Chipless, report the mode; else the file is damaged."
        "compiled programs; profiler schema";
    ELEMENT_CODE Unsupported Error Chipless "neff-element-code" "an element type code is not supported: it has no known meaning"
        "Instructions name element types by a code of four bits; not every code is known."
        "If the compiler is newer than Chipless, report the code; else the file is damaged."
        "compiled programs";
    TILE_BOUNDS Fault Error Hardware "neff-tile-bounds" "an instruction reaches beyond its memory"
        "Elements of the state buffer and of PSUM must lie inside the bytes of a partition, in one of 128 partitions."
        "Check the allocation of on-chip memory."
        "NKI architecture guides";
    START_PARTITION Fault Error Hardware "neff-start-partition" "an instruction starts at a partition where it must not"
        "More than 64 partitions start at 0, more than 32 at 0 or 64, up to 32 at 0, 32, 64 or 96."
        "Move the tile to a legal partition."
        "NKI architecture guides";
    TILE_SIZE Fault Error Hardware "neff-tile-size" "a tile is larger than the engine takes, or empty"
        "The matrix engine has 128 rows and 128 columns, and takes 512 columns of moving data at a time."
        "Split the instruction; leave out an empty one."
        "NKI architecture guides";
    PSUM_BANK Fault Error Hardware "neff-psum-bank" "a matrix product does not stay in one PSUM bank"
        "The sums of one instruction must lie in one bank of 2 KiB in each partition, of PSUM."
        "Move the sums to a bank boundary, or split the instruction."
        "NKI architecture guides";
    ELEMENT_COUNT Fault Error Hardware "neff-element-count" "source and destination of an instruction differ in elements"
        "Element-wise instructions write as many elements as they read."
        "Check the shapes."
        "NKI architecture guides";
    INSTRUCTION Fault Error Hardware "neff-instruction" "an instruction cannot be executed by any engine"
        "Its operands contradict each other or what the engine has: another number of elements than it makes, types that it does not take, a register or a function that does not exist."
        "Check shapes and types; compile again."
        "NKI API reference; table of opcodes in the documentation";
    DMA_TARGET Unsupported Error Chipless "neff-dma-target" "the address of a transfer is not supported"
        "An address counts from a variable or from an entry of a table of variables; others are not known."
        "If the compiler is newer than Chipless, report the tag; else the file is damaged."
        "compiled programs";
    DMA_VARIABLE Fault Error Format "neff-dma-variable" "the address of a transfer leads to no variable"
        "The number of a variable or the index into the table that an instruction names does not exist in def.json."
        "Compile again: instructions and def.json do not belong together."
        "NEFF specification, Variables";
    DMA_BOUNDS Fault Error Format "neff-dma-bounds" "a transfer leaves its variable"
        "Rows of a transfer start or end outside the variable that they are counted from."
        "Check offset, steps and counts against the size of the variable."
        "NEFF specification, Variables";
    DMA_COUNT Fault Error Format "neff-dma-count" "source and destination of a transfer differ in size"
        "A transfer writes as many bytes as it reads, or, where it casts, as many elements."
        "Check rows and row sizes of both sides."
        "compiled programs";
    DMA_WRITES_INPUT Fault Warning Format "neff-dma-writes-input" "a transfer writes to an input or a constant"
        "The host expects inputs and constants to be as they were; the next run would see other values."
        "Check which variable the destination names."
        "NEFF specification, Variables";
    KEPT_BYTES Fault Warning Format "neff-kept-bytes" "state buffer bytes that somebody else keeps are written"
        "runtime_statebuffer_reservation names bytes that the runtime uses while the program runs, dynamic_dma those in which descriptors are built. Written over, other work of the core goes wrong."
        "Move the tile."
        "Measured on compiler output";
    OPERAND_ALIGNMENT Fault Warning Format "neff-operand-alignment" "elements do not start at a multiple of their size"
        "Compilers place elements of two and four bytes at even addresses and multiples of four. Chipless reads them where they are; that hardware does so too is not proven."
        "Align the tile."
        "Measured on compiler output";
    PSUM_GROUP Fault Warning Format "neff-psum-group" "a group of sums does not end with stop, or goes on behind it"
        "The first MATMUL of a group of sums says start and overwrites what PSUM holds, the last one says stop; only then are the sums complete, and other engines may read them. Chipless adds by start alone."
        "Check the accumulation flags of the MATMULs into this bank."
        "Measured on compiler output";
    DMA_OVERLAP Fault Warning Hardware "neff-dma-overlap" "a transfer writes bytes twice"
        "Rows of a transfer go to several rings, which nothing orders: where rows of the destination overlap, either may be written last."
        "Give each row bytes of its own."
        "NKI DMA overview";
    DMA_QUEUE Departure Warning Writers "neff-dma-queue" "a transfer has no queue set of its own"
        "Instructions hand transfers to the dynamic queue set that their engine owns, and signal a semaphore of its set."
        "Declare a queue set of type dynamic for the engine, and use its semaphores."
        "NEFF specification, Queue Sets; compiled programs";
}

/// Findings of every instruction stream of a program. `sbuf_partition_bytes` are the usable bytes of a state buffer
/// partition. At most [`Limits::findings`] are kept.
pub fn check(neff: &Neff<'_>, sbuf_partition_bytes: u32, limits: &Limits) -> Vec<Finding> {
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
    definition: &'c Definition<'a>,
    room: &'c EngineRoom<'a>,
    architecture: Architecture,
    sbuf_partition_bytes: u32,
    functions: Arc<Functions>,
    /// Bytes of partitions that others keep.
    kept: Vec<(i64, i64)>,
    debug: Option<DebugInfo<'a>>,
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
            definition: &subgraph.definition,
            room,
            architecture,
            sbuf_partition_bytes,
            functions: Arc::new(Functions::of(room)),
            kept: kept_ranges(&subgraph.definition),
            debug: None,
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
        let mut listed: BTreeMap<u8, (usize, u64)> = BTreeMap::new();
        // What is right once is right again: nothing that is checked here depends on the numbers of semaphores.
        let (mut bodies, mut is_clean) = (Bodies::default(), Vec::new());
        for (index, slot) in slots.iter().enumerate() {
            let (body, is_new) = bodies.number(slot);
            if !is_new && is_clean[body as usize] {
                continue;
            }
            let before = self.findings.len();
            if before >= self.most {
                return;
            }
            let support = slot.opcode().map(|o| o.support);
            let operands = slot.operands();
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
                None | Some(Support::Listed) => {
                    listed.entry(slot.head.opcode).or_insert((index, 0)).1 += 1;
                }
                Some(Support::Executed | Support::NoEffect) => self.slot(index, slot, &operands),
            }
            if is_new {
                is_clean.push(
                    self.findings.len() == before
                        && !matches!(support, None | Some(Support::Listed)),
                );
            }
        }
        self.groups(slots);
        for (opcode, (first, count)) in listed {
            let message = format!(
                "{} is not supported ({count} instructions, the first of them here)",
                Opcode::name_of(opcode)
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
        let Some(member) = self.room.instructions else {
            return;
        };
        let debug = self.debug.get_or_insert_with(|| debug_info(self.room));
        let item = match debug.slot(index) {
            Some(line) => format!("slot {index} ({line})"),
            None => format!("slot {index}"),
        };
        let place = Place::bytes((index * SLOT_BYTES) as u64, SLOT_BYTES as u64)
            .in_part(member.path.to_owned())
            .at(item);
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
            let Instruction::Matmul(i) = slot.decode() else {
                continue;
            };
            let operands = slot.operands();
            let Some(destination) = operands.first().filter(|_| i.transpose() == 0) else {
                continue;
            };
            let (starts, is_complete) = (i.sums() & 1 != 0, i.sums() & 2 != 0);
            let entry = groups.entry((destination.address, destination.steps, destination.counts));
            let known = matches!(entry, Entry::Occupied(_));
            let last = entry.or_insert(Last {
                slot: index,
                is_complete,
                is_reported: false,
            });
            if known && !last.is_reported && starts != last.is_complete {
                let before = last.slot;
                last.is_reported = true;
                let message = if starts {
                    format!("begins a group of sums at dst, that of slot {before} had no stop")
                } else {
                    format!("adds to the sums at dst, which slot {before} said are complete")
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
    fn slot(&mut self, index: usize, slot: &Slot, operands: &[Operand]) {
        let before = self.findings.len();
        self.fields(index, slot, operands);
        if before == self.findings.len()
            && let Some(fault) = refusal(
                slot,
                self.room.engine,
                &self.functions,
                self.sbuf_partition_bytes,
            )
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
        if slot.head.words != 16 {
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
            return self.dma(index, dma);
        }
        for operand in operands {
            self.operand(index, operand);
        }
        match slot.decode() {
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
            Space::StateBuffer => ("the state buffer", self.sbuf_partition_bytes),
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

    /// Whether an operand lies in its memory, aligned, and away from what others keep, by its bounds alone.
    fn is_inside(&self, operand: &Operand, code: &ElementCode) -> bool {
        let Some(OnChip {
            space,
            partition,
            offset,
        }) = OnChip::at(operand.address)
        else {
            return false;
        };
        let size = code.element.bits() as i64 / 8;
        let (mut low, mut high) = (i64::from(offset), i64::from(offset) + size);
        for (step, count) in operand.steps.iter().zip(operand.counts) {
            if count == 0 {
                return false;
            }
            let reach = i64::from(*step) * (i64::from(count) - 1) * size;
            low += reach.min(0);
            high += reach.max(0);
        }
        let bytes = match space {
            Space::StateBuffer => self.sbuf_partition_bytes,
            Space::Psum => PSUM_PARTITION_BYTES,
        };
        let is_kept = |(start, end): &(i64, i64)| low < *end && high > *start;
        let writes = operand.direction == Direction::Write && space == Space::StateBuffer;
        low >= 0
            && high <= i64::from(bytes)
            && partition + u32::from(operand.partitions) <= PARTITIONS
            && i64::from(offset) % size == 0
            && !(writes && self.kept.iter().any(is_kept))
    }

    fn start_partition(&mut self, index: usize, operand: &Operand) {
        let start = OnChip::at(operand.address).map_or(0, |a| a.partition);
        let legal = match operand.partitions {
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

    fn dma(&mut self, index: usize, dma: Dma<'_>) {
        if dma.kind() != 0 {
            let kind = dma.kind();
            self.report(
                &NOT_EXECUTED,
                index,
                format!("a transfer of kind {kind}: only direct ones (0) are executed"),
            );
            return;
        }
        let codes = dma.codes();
        let sides = [("src", dma.src(), codes.0), ("dst", dma.dst(), codes.1)];
        for (role, side, _) in sides {
            self.side(index, role, &side);
        }
        let [source, destination] =
            sides.map(|(_, side, code)| (side.bytes(), ElementCode::of(code)));
        match (source.1, destination.1) {
            _ if !dma.casts() => {
                if source.0 != destination.0 {
                    let (from, to) = (dma.src(), dma.dst());
                    let message = format!(
                        "{} bytes ({} rows of {}) from the source, {} ({} rows of {}) to the destination",
                        source.0,
                        from.rows(),
                        from.row(),
                        destination.0,
                        to.rows(),
                        to.row()
                    );
                    self.report(&DMA_COUNT, index, message);
                }
            }
            (Some(from), Some(to)) => {
                let (read, written) = (
                    source.0 * 8 / from.element.bits(),
                    destination.0 * 8 / to.element.bits(),
                );
                if read != written {
                    self.report(
                        &DMA_COUNT,
                        index,
                        format!(
                            "{read} elements of {} are read, {written} of {} written",
                            from.name, to.name
                        ),
                    );
                }
            }
            _ => {
                self.report(
                    &ELEMENT_CODE,
                    index,
                    format!(
                        "a cast from code {:#x} to {:#x} is not supported: not both are known",
                        codes.0, codes.1
                    ),
                );
            }
        }
        if let Some((_, _, variable)) = variable(self.definition, dma.dst().address).ok()
            && matches!(
                variable.kind,
                Some(VariableType::Input | VariableType::File)
            )
        {
            let kind = variable.kind.map_or("", VariableType::name);
            self.report(
                &DMA_WRITES_INPUT,
                index,
                format!("dst is {}, a variable of type {kind}", dma.dst().address),
            );
        }
        for (role, side, _) in sides {
            if role == "dst" && dma.completion().1 > 1 && overlaps(&side.pattern()) {
                let message = "rows of dst overlap: which of them is written last is not known";
                self.report(&DMA_OVERLAP, index, message.to_owned());
            }
        }
        self.queue(index, dma);
    }

    fn side(&mut self, index: usize, role: &'static str, side: &DmaSide) {
        let (name, variable) = match variable(self.definition, side.address) {
            Ok((_, name, variable)) => (name.to_string(), variable),
            Err(Unresolved::Unsupported(why)) => {
                return self.report(&DMA_TARGET, index, format!("{role}: {why}"));
            }
            Err(Unresolved::Missing(what)) => {
                return self.report(&DMA_VARIABLE, index, format!("{role} needs {what}"));
            }
        };
        let pattern = side.pattern();
        if variable.kind == Some(VariableType::StateBuffer) {
            if let Some(why) =
                leaves_partitions(&pattern, Space::StateBuffer, self.sbuf_partition_bytes)
            {
                self.report(
                    &DMA_BOUNDS,
                    index,
                    format!("{role} reaches {why}, of {name}"),
                );
            }
            if role == "dst"
                && let Some(why) = kept_bytes(self.definition, &pattern)
            {
                self.report(&KEPT_BYTES, index, format!("dst reaches {why}"));
            }
        } else if let Some(size) = variable.size
            && !pattern.fits(size)
        {
            let extent = pattern.extent();
            let message = format!(
                "{role} reaches bytes {:#x} to {:#x} of {name}, which has {size:#x}",
                extent.start, extent.end
            );
            self.report(&DMA_BOUNDS, index, message);
        }
    }

    fn queue(&mut self, index: usize, dma: Dma<'_>) {
        let (semaphore, increment) = dma.completion();
        let semaphore = u64::from(semaphore);
        match queue_set(self.definition, self.room.engine, semaphore) {
            None => self.report(
                &DMA_QUEUE,
                index,
                format!(
                    "{} owns no queue set of type dynamic",
                    self.room.engine.name()
                ),
            ),
            Some(position) => {
                let Some((name, set)) = self.definition.queues.get_index(position) else {
                    return;
                };
                if !set.semaphore_set.is_empty() && !set.semaphore_set.contains(&semaphore) {
                    self.report(
                        &DMA_QUEUE,
                        index,
                        format!("$S[{semaphore}] is not in the semaphore_set of {name}"),
                    );
                }
                if u64::from(increment) != set.queues() {
                    let message = format!(
                        "$S[{semaphore}] rises by {}, {name} has {} queues",
                        increment,
                        set.queues()
                    );
                    self.report(&DMA_QUEUE, index, message);
                }
            }
        }
    }
}

/// The dynamic queue set of an engine: where it owns several, the one whose set has the semaphore.
pub(crate) fn queue_set(
    definition: &Definition<'_>,
    engine: Engine,
    semaphore: u64,
) -> Option<usize> {
    let own = |set: &crate::def::QueueSet<'_>| {
        set.kind == Some(QueueType::Dynamic)
            && set.owner() == Some(crate::def::Owner::Engine(engine))
    };
    let mut sets = definition
        .queues
        .values()
        .enumerate()
        .filter(|(_, set)| own(set));
    let with_semaphore = sets
        .clone()
        .find(|(_, set)| set.semaphore_set.contains(&semaphore));
    with_semaphore
        .or_else(|| sets.next())
        .map(|(position, _)| position)
}

/// The debug files of an engine.
pub(crate) fn debug_info<'a>(room: &EngineRoom<'a>) -> DebugInfo<'a> {
    DebugInfo::read(
        room.assembler_debug.iter().map(|m| m.bytes),
        room.debug.iter().map(|m| m.bytes),
    )
}
