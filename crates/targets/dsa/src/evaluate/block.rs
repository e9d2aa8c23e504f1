//! Whole blocks of rows, node by node: for parts in which every node fires once for each row.

use super::plan::{Component, Feed, Instruction, Kind, Operand, Unit};
use super::{Rows, Stop, Stream, state_byte};
use crate::operations::{Meaning, REGISTERS, RESULTS};
use std::ops::Range;

/// Rows of a block, at most: few enough that the streams of a small graph stay in the first-level cache.
const BLOCK: usize = 512;

/// Bytes of the columns of a part, about; of a very large part fewer rows are computed at a time.
const COLUMN_BYTES: usize = 64 << 20;

/// What instructions remember from one row to the next: the registers of each that does.
pub(super) type Memory = [u64; REGISTERS];

/// Columns of the values of a part: each word of a value has as many places as a block has rows, each value that may not count a flag for
/// each row.
#[derive(Default)]
pub(super) struct Columns {
    /// Rows of a block.
    block: usize,
    words: Vec<u64>,
    /// The number of the part's first value.
    first: usize,
    /// For each value of the part, where its first column begins.
    at: Vec<usize>,
    /// For each value of the part, how many columns it has.
    counts: Vec<usize>,
    valid: Vec<u8>,
    /// For each value where its flags begin, if it needs any.
    flags: Vec<Option<usize>>,
}

/// An operand as a column for each word.
enum Source {
    /// It is a value as it stands.
    Value(usize),
    /// It has columns of its own, at the end of all values: a constant, or put together from slices.
    Own(usize),
}

struct Step<'p, 'g> {
    instruction: &'p Instruction<'g>,
    sources: Vec<Source>,
    registers: Memory,
}

/// Computes some rows of a part. `memory` is what its instructions remember, in their order, before the first row and behind the last one.
/// Without `keep`, rows are counted and not kept.
pub(super) fn run(
    part: Component<'_, '_>,
    inputs: &[Stream<'_>],
    rows: Range<usize>,
    memory: &mut [Memory],
    columns: &mut Columns,
    keep: bool,
    budget: &mut u64,
) -> Result<Vec<Collected>, Stop> {
    columns.begin(part, rows.len());
    let mut remembered = memory.iter();
    let mut steps: Vec<Option<Step<'_, '_>>> = part
        .units
        .iter()
        .map(|unit| columns.step(part, unit, &mut remembered))
        .collect();
    let mut outputs: Vec<Collector> = Vec::new();
    for unit in part.units {
        if let Kind::Output {
            index,
            width,
            operands,
            lanes,
        } = &unit.kind
        {
            let may_drop = columns.may_drop(operands);
            let collector = Collector::new(*index, *width, *lanes, may_drop, keep);
            outputs.push(collector.with_room(rows.len(), budget)?);
        }
    }
    for start in rows.clone().step_by(columns.block) {
        let count = columns.block.min(rows.end - start);
        let mut collectors = outputs.iter_mut();
        for (unit, step) in part.units.iter().zip(&mut steps) {
            match (&unit.kind, step) {
                (
                    Kind::Input {
                        index,
                        width,
                        lanes,
                        stated,
                        ..
                    },
                    _,
                ) => {
                    columns.load(unit, &inputs[*index], *width, *lanes, *stated, start, count);
                }
                (Kind::Instruction(_), Some(step)) => columns.execute(unit, step, count),
                (Kind::Output { operands, .. }, _) => {
                    if let Some(collector) = collectors.next() {
                        columns.collect(operands, collector, count);
                    }
                }
                (Kind::Instruction(_), None) => {}
            }
        }
    }
    let remembering = steps
        .into_iter()
        .flatten()
        .filter(|step| step.instruction.remembers());
    for (memory, step) in memory.iter_mut().zip(remembering) {
        *memory = step.registers;
    }
    Ok(outputs.into_iter().map(Collector::finish).collect())
}

/// Whether an output of a part may leave rows out, or lanes of them.
pub(super) fn drops(part: Component<'_, '_>) -> bool {
    part.units
        .iter()
        .any(|unit| matches!(&unit.kind, Kind::Instruction(instruction) if instruction.discards()))
}

impl Columns {
    /// Makes room for the values of a part, in place of those of the one before.
    fn begin(&mut self, part: Component<'_, '_>, rows: usize) {
        let words = |unit: &Unit<'_>| match &unit.kind {
            Kind::Instruction(instruction) => instruction.words * instruction.operands.len(),
            _ => 0,
        };
        let all = part.values.iter().map(|value| value.words).sum::<usize>()
            + part.units.iter().map(words).sum::<usize>();
        let most = COLUMN_BYTES / size_of::<u64>() / all.max(1);
        self.block = most.min(rows).clamp(1, BLOCK);
        self.first = part.first_value;
        self.words.clear();
        self.valid.clear();
        self.at.clear();
        self.counts.clear();
        self.flags.clear();
        let mut length = 0;
        for unit in part.units {
            let uncertain = match &unit.kind {
                Kind::Instruction(instruction) => {
                    instruction.discards() || self.may_drop(unit.operands())
                }
                _ => false,
            };
            for value in &part.values[unit.first_value - self.first..][..unit.values] {
                self.at.push(length);
                self.counts.push(value.words);
                length += value.words * self.block;
                let flags = uncertain.then_some(self.valid.len());
                if uncertain {
                    self.valid.resize(self.valid.len() + self.block, 1);
                }
                self.flags.push(flags);
            }
        }
        self.words.resize(length, 0);
    }

    /// Where the first column of a value begins.
    fn at(&self, value: usize) -> usize {
        self.at[value - self.first]
    }

    /// Where the flags of a value begin, if it needs any.
    fn flags(&self, value: usize) -> Option<usize> {
        self.flags[value - self.first]
    }

    /// Whether the tokens of some operands may not count.
    fn may_drop(&self, operands: &[Operand]) -> bool {
        operands
            .iter()
            .flat_map(Operand::parts)
            .any(|part| self.flags(part.value).is_some())
    }

    /// Prepares an instruction: operands that are not a whole value get columns of their own.
    fn step<'p, 'g>(
        &mut self,
        component: Component<'p, 'g>,
        unit: &'p Unit<'g>,
        memory: &mut std::slice::Iter<'_, Memory>,
    ) -> Option<Step<'p, 'g>> {
        let Kind::Instruction(instruction) = &unit.kind else {
            return None;
        };
        let sources = instruction.operands.iter().map(|operand| {
            if let [part] = operand.parts() {
                let value = &component.values[part.value - self.first];
                if part.low == 0
                    && part.width == value.width
                    && part.width <= instruction.width
                    && value.words == instruction.words
                {
                    return Source::Value(part.value);
                }
            }
            let own = self.words.len();
            self.words.resize(own + instruction.words * self.block, 0);
            if let Feed::Constant(constant) = operand.feed {
                // What decides is all of a constant, what is computed with is cut.
                let cut = if operand.qualified {
                    constant
                } else {
                    constant & instruction.mask(0)
                };
                self.words[own..own + self.block].fill(cut);
            }
            Source::Own(own)
        });
        let sources = sources.collect();
        let remembered = instruction.remembers().then(|| memory.next().copied());
        Some(Step {
            instruction,
            sources,
            registers: remembered.flatten().unwrap_or_default(),
        })
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what a port says of itself, taken apart by its caller"
    )]
    fn load(
        &mut self,
        unit: &Unit<'_>,
        stream: &Stream<'_>,
        width: u32,
        lanes: usize,
        stated: bool,
        start: usize,
        count: usize,
    ) {
        let mut value = unit.first_value;
        if stated {
            let at = self.at(value);
            for (row, state) in self.words[at..at + count].iter_mut().enumerate() {
                *state = state_byte(&stream.loops, (start + row) as u64).into();
            }
            value += 1;
        }
        let bytes = width as usize / 8;
        let rows = &stream.bytes[start * lanes * bytes..][..count * lanes * bytes];
        for lane in 0..lanes {
            let at = self.at(value + lane);
            let column = &mut self.words[at..at + count];
            let elements = rows.chunks_exact(lanes * bytes);
            match bytes {
                1 => gather(column, elements, |row| row[lane].into()),
                2 => gather(column, elements, |row| {
                    u16::from_le_bytes(element(row, lane)).into()
                }),
                4 => gather(column, elements, |row| {
                    u32::from_le_bytes(element(row, lane)).into()
                }),
                _ => gather(column, elements, |row| {
                    u64::from_le_bytes(element(row, lane))
                }),
            }
        }
    }

    fn execute(&mut self, unit: &Unit<'_>, step: &mut Step<'_, '_>, count: usize) {
        let instruction = step.instruction;
        for (operand, source) in instruction.operands.iter().zip(&step.sources) {
            if let (Source::Own(own), Feed::Parts(_)) = (source, &operand.feed) {
                self.assemble(operand, *own, instruction, count);
            }
        }
        if instruction.is_pure() {
            self.apply(unit, step, count);
        } else {
            self.fire(unit, step, count);
        }
    }

    /// Puts slices of values together. What is cut off is what the operation does not look at; a control is looked at whole.
    fn assemble(
        &mut self,
        operand: &Operand,
        own: usize,
        instruction: &Instruction<'_>,
        count: usize,
    ) {
        let block = self.block;
        let (values, columns) = self.words.split_at_mut(own);
        let columns = &mut columns[..instruction.words * block];
        columns.fill(0);
        let mut low = 0;
        for part in operand.parts() {
            let (mut from, end) = (part.low, part.low + part.width);
            while from < end && (low / u64::BITS) < instruction.words as u32 {
                // As many bits as neither crosses a word of the value nor one of the operand.
                let bits = (end - from)
                    .min(u64::BITS - from % u64::BITS)
                    .min(u64::BITS - low % u64::BITS);
                let word = (from / u64::BITS) as usize;
                if word >= self.counts[part.value - self.first] {
                    // Bits above the value are zero; they take their place all the same.
                    low += end - from;
                    break;
                }
                let source = &values[self.at[part.value - self.first] + word * block..][..count];
                let column = &mut columns[(low / u64::BITS) as usize * block..][..count];
                let (down, up, mask) = (
                    from % u64::BITS,
                    low % u64::BITS,
                    super::plan::low_bits(bits),
                );
                for (out, word) in column.iter_mut().zip(source) {
                    *out |= (word >> down & mask) << up;
                }
                from += bits;
                low += bits;
            }
        }
        if !operand.qualified {
            for word in 0..instruction.words {
                let mask = instruction.mask(word);
                columns[word * block..][..count]
                    .iter_mut()
                    .for_each(|bits| *bits &= mask);
            }
        }
    }

    /// A function of the operands: column by column.
    fn apply(&mut self, unit: &Unit<'_>, step: &Step<'_, '_>, count: usize) {
        let instruction = step.instruction;
        let block = self.block;
        let Some(&result) = self.at.get(unit.first_value - self.first) else {
            return;
        };
        let columns: Vec<usize> = step
            .sources
            .iter()
            .map(|source| self.column(source))
            .collect();
        for word in 0..instruction.words {
            let (before, rest) = self.words.split_at_mut(result + word * block);
            let (out, after) = rest.split_at_mut(block);
            let out = &mut out[..count];
            let first_after = result + (word + 1) * block;
            let column = |index: usize| {
                let at = columns[index] + word * block;
                if at < first_after {
                    &before[at..at + count]
                } else {
                    &after[at - first_after..][..count]
                }
            };
            match instruction.meaning {
                Meaning::Unary(f) => (f.block)(column(0), out),
                Meaning::Binary(f) => (f.block)(column(0), column(1), out),
                Meaning::Ternary(f) => (f.block)(column(0), column(1), column(2), out),
                Meaning::Conversion(conversion) => {
                    for (out, a) in out.iter_mut().zip(column(0)) {
                        *out = conversion.apply(*a);
                    }
                }
                Meaning::Step(_) => {}
            }
            let mask = instruction.mask(word);
            if mask != u64::MAX {
                for bits in out {
                    *bits &= mask;
                }
            }
        }
        for value in unit.first_value..unit.first_value + unit.values {
            let Some(flags) = self.flags(value) else {
                continue;
            };
            let (before, own) = self.valid.split_at_mut(flags);
            let own = &mut own[..count];
            own.fill(1);
            for part in instruction.operands.iter().flat_map(Operand::parts) {
                if let Some(flags) = self.flags[part.value - self.first] {
                    own.iter_mut()
                        .zip(&before[flags..])
                        .for_each(|(own, other)| *own &= other);
                }
            }
        }
    }

    /// A small machine: row by row.
    fn fire(&mut self, unit: &Unit<'_>, step: &mut Step<'_, '_>, count: usize) {
        let instruction = step.instruction;
        let (words, block) = (instruction.words, self.block);
        let columns: Vec<usize> = step
            .sources
            .iter()
            .map(|source| self.column(source))
            .collect();
        let mut operands = vec![0; columns.len() * words];
        let mut valid = vec![true; columns.len()];
        let mut results = vec![0; RESULTS * words];
        for row in 0..count {
            for (index, at) in columns.iter().enumerate() {
                for word in 0..words {
                    operands[index * words + word] = self.words[at + word * block + row];
                }
                let counts = |part: &super::plan::Part| {
                    self.flags(part.value)
                        .is_none_or(|flags| self.valid[flags + row] != 0)
                };
                valid[index] = instruction.operands[index].parts().iter().all(counts);
            }
            let fired = instruction.fire(&mut operands, &valid, &mut step.registers, &mut results);
            for (value, result) in
                (unit.first_value..unit.first_value + unit.values).zip(results.chunks_exact(words))
            {
                let at = self.at(value);
                for (word, bits) in result.iter().enumerate() {
                    self.words[at + word * block + row] = *bits;
                }
                if let Some(flags) = self.flags(value) {
                    self.valid[flags + row] = (!fired.discard).into();
                }
            }
        }
    }

    fn column(&self, source: &Source) -> usize {
        match source {
            Source::Value(value) => self.at(*value),
            Source::Own(own) => *own,
        }
    }

    fn collect(&self, operands: &[Operand], collector: &mut Collector, count: usize) {
        let (bytes, lanes) = (collector.bytes, collector.lanes);
        collector.taken += count as u64;
        if let Some(data) = &mut collector.data {
            let start = data.len();
            data.resize(start + count * lanes * bytes, 0);
            for (lane, operand) in operands.iter().take(lanes).enumerate() {
                let column = self.lane(operand, count);
                scatter(&mut data[start..], &column, lane, lanes, bytes);
            }
        }
        let Some(valid) = &mut collector.valid else {
            return;
        };
        let start = valid.len();
        valid.resize(start + count * lanes, 1);
        for (lane, operand) in operands.iter().take(lanes).enumerate() {
            for flags in operand
                .parts()
                .iter()
                .filter_map(|part| self.flags(part.value))
            {
                for (row, flag) in valid[start..]
                    .chunks_exact_mut(lanes)
                    .zip(&self.valid[flags..])
                {
                    row[lane] &= flag;
                }
            }
        }
    }

    /// A lane of an output port: at most 64 bits.
    fn lane(&self, operand: &Operand, count: usize) -> std::borrow::Cow<'_, [u64]> {
        if let [part] = operand.parts()
            && part.low == 0
        {
            return (&self.words[self.at(part.value)..][..count]).into();
        }
        let mut column = vec![
            if let Feed::Constant(constant) = operand.feed {
                constant
            } else {
                0
            };
            count
        ];
        let mut up = 0;
        for part in operand.parts() {
            for bit in (part.low..part.low + part.width).step_by(u64::BITS as usize) {
                // A slice of at most 64 bits lies in two words at most.
                let bits = (part.low + part.width - bit).min(u64::BITS);
                for (row, out) in column.iter_mut().enumerate() {
                    let word = |bit: u32| {
                        self.words
                            [self.at(part.value) + (bit / u64::BITS) as usize * self.block + row]
                    };
                    let down = bit % u64::BITS;
                    let low = word(bit) >> down;
                    let high = if down + bits > u64::BITS {
                        word(bit + bits - 1) << (u64::BITS - down)
                    } else {
                        0
                    };
                    if up < u64::BITS {
                        *out |= ((low | high) & super::plan::low_bits(bits)) << up;
                    }
                }
                up += bits;
            }
        }
        column.into()
    }
}

/// Puts a lane of so many bytes into its rows.
fn scatter(rows: &mut [u8], column: &[u64], lane: usize, lanes: usize, bytes: usize) {
    let elements = rows.chunks_exact_mut(lanes * bytes).zip(column);
    match bytes {
        1 => elements.for_each(|(row, word)| row[lane] = *word as u8),
        2 => elements.for_each(|(row, word)| {
            row[lane * 2..][..2].copy_from_slice(&(*word as u16).to_le_bytes());
        }),
        4 => elements.for_each(|(row, word)| {
            row[lane * 4..][..4].copy_from_slice(&(*word as u32).to_le_bytes());
        }),
        _ => elements.for_each(|(row, word)| {
            row[lane * 8..][..8].copy_from_slice(&word.to_le_bytes());
        }),
    }
}

fn gather<'b>(column: &mut [u64], rows: impl Iterator<Item = &'b [u8]>, of: impl Fn(&[u8]) -> u64) {
    for (out, row) in column.iter_mut().zip(rows) {
        *out = of(row);
    }
}

fn element<const N: usize>(row: &[u8], lane: usize) -> [u8; N] {
    row.as_chunks().0[lane]
}

/// Rows of an output port as they come.
pub(super) struct Collector {
    index: usize,
    bytes: usize,
    lanes: usize,
    /// Rows so far.
    taken: u64,
    /// Their bytes, where they are kept.
    data: Option<Vec<u8>>,
    /// For each lane whether it counts, where it may not.
    valid: Option<Vec<u8>>,
}

/// What has come out of an output port.
pub(super) struct Collected {
    /// Which one.
    pub(super) index: usize,
    /// The rows, without bytes where they were not kept.
    pub(super) rows: Rows,
    /// The rows among all that came which have a lane that counts, where others were left out.
    pub(super) counting: Option<Vec<u64>>,
}

impl Collector {
    pub(super) fn new(
        index: usize,
        width: u32,
        lanes: usize,
        may_drop: bool,
        keep: bool,
    ) -> Collector {
        Collector {
            index,
            bytes: width as usize / 8,
            lanes,
            taken: 0,
            data: keep.then(Vec::new),
            valid: may_drop.then(Vec::new),
        }
    }

    /// Makes room for rows to come.
    fn with_room(mut self, rows: usize, budget: &mut u64) -> Result<Collector, Stop> {
        let flags = u128::from(self.valid.is_some());
        let size = rows as u128 * self.lanes as u128 * (self.bytes as u128 + flags);
        *budget = u64::try_from(size)
            .ok()
            .and_then(|size| budget.checked_sub(size))
            .ok_or(Stop::TooLarge { limit: 0 })?;
        if let Some(data) = &mut self.data {
            data.reserve_exact(rows * self.lanes * self.bytes);
        }
        Ok(self)
    }

    /// Adds a row.
    pub(super) fn push(
        &mut self,
        row: impl Iterator<Item = (u64, bool)>,
        budget: &mut u64,
    ) -> Result<(), Stop> {
        let size = (self.lanes * (self.bytes + 1)) as u64;
        *budget = budget
            .checked_sub(size)
            .ok_or(Stop::TooLarge { limit: 0 })?;
        self.taken += 1;
        for (word, counts) in row {
            if let Some(data) = &mut self.data {
                data.extend_from_slice(&word.to_le_bytes()[..self.bytes]);
            }
            if let Some(valid) = &mut self.valid {
                valid.push(counts.into());
            }
        }
        Ok(())
    }

    /// Leaves out rows in which nothing counts.
    pub(super) fn finish(self) -> Collected {
        let Collector {
            index,
            bytes,
            lanes,
            taken,
            data,
            valid,
        } = self;
        let mut rows = Rows {
            count: taken,
            bytes: data.unwrap_or_default(),
            valid: None,
            dropped: 0,
        };
        let mut counting = None;
        if let Some(mut valid) = valid {
            let counts = |row: &u64| valid[*row as usize * lanes..][..lanes].contains(&1);
            let kept: Vec<u64> = (0..taken).filter(counts).collect();
            for (to, from) in kept.iter().map(|row| *row as usize).enumerate() {
                valid.copy_within(from * lanes..(from + 1) * lanes, to * lanes);
                if !rows.bytes.is_empty() {
                    let row = lanes * bytes;
                    rows.bytes
                        .copy_within(from * row..(from + 1) * row, to * row);
                }
            }
            rows.count = kept.len() as u64;
            rows.dropped = taken - rows.count;
            rows.bytes.truncate(kept.len() * lanes * bytes);
            valid.truncate(kept.len() * lanes);
            rows.valid = valid.contains(&0).then_some(valid);
            counting = (rows.dropped > 0).then_some(kept);
        }
        Collected {
            index,
            rows,
            counting,
        }
    }
}
