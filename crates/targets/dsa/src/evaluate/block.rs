//! Whole blocks of rows, node by node: for parts in which every node fires once for each row.

use super::plan::{Component, Feed, Instruction, Kind, Operand, Plan, Unit};
use super::{Evaluation, Rows, Stop, Stream, state_byte};
use crate::operations::{Meaning, REGISTERS, RESULTS};

/// Rows of a block: few enough that the streams of a small graph stay in the first-level cache.
const BLOCK: usize = 512;

/// Columns of the values of a part: each word of a value has [`BLOCK`] places, each value that may not count a flag for each row.
pub(super) struct Columns {
    words: Vec<u64>,
    /// For each value of the plan, where its first column begins.
    at: Vec<usize>,
    /// For each value of the plan, how many columns it has.
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
    registers: [u64; REGISTERS],
}

pub(super) fn run(
    plan: &Plan<'_>,
    part: &Component<'_, '_>,
    inputs: &[Stream<'_>],
    columns: &mut Columns,
    evaluation: &mut Evaluation,
    budget: &mut u64,
) -> Result<(), Stop> {
    let rows = part
        .units
        .iter()
        .find_map(|unit| match unit.kind {
            Kind::Input { index, .. } => Some(inputs[index].rows() as usize),
            _ => None,
        })
        .unwrap_or(0);
    columns.begin(plan, part);
    let mut steps: Vec<Option<Step<'_, '_>>> = part
        .units
        .iter()
        .map(|unit| columns.step(plan, unit))
        .collect();
    let mut outputs: Vec<Collector> = Vec::new();
    for unit in &part.units {
        evaluation.firings[unit.node] = rows as u64;
        match &unit.kind {
            Kind::Input { index, .. } => evaluation.taken[*index] = rows as u64,
            Kind::Output {
                index,
                width,
                operands,
                lanes,
            } => {
                let may_drop = operands
                    .iter()
                    .flat_map(Operand::parts)
                    .any(|part| columns.flags[part.value].is_some());
                outputs.push(Collector::new(
                    *index, *width, *lanes, may_drop, rows, budget,
                )?);
            }
            Kind::Instruction(_) => {}
        }
    }
    for start in (0..rows).step_by(BLOCK) {
        let count = BLOCK.min(rows - start);
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
    for collector in outputs {
        let (index, rows) = collector.finish();
        evaluation.outputs[index] = rows;
    }
    Ok(())
}

impl Columns {
    /// For the values of all parts, each of which belongs to one of them.
    pub(super) fn new(plan: &Plan<'_>) -> Columns {
        Columns {
            words: Vec::new(),
            at: vec![0; plan.values.len()],
            counts: plan.values.iter().map(|value| value.words).collect(),
            valid: Vec::new(),
            flags: vec![None; plan.values.len()],
        }
    }

    /// Makes room for the values of a part, in place of those of the one before.
    fn begin(&mut self, plan: &Plan<'_>, part: &Component<'_, '_>) {
        let columns = self;
        columns.words.clear();
        columns.valid.clear();
        let mut length = 0;
        for unit in &part.units {
            let uncertain = match &unit.kind {
                Kind::Instruction(instruction) => {
                    instruction.discards()
                        || unit
                            .operands()
                            .iter()
                            .flat_map(Operand::parts)
                            .any(|part| columns.flags[part.value].is_some())
                }
                _ => false,
            };
            for value in unit.first_value..unit.first_value + unit.values {
                columns.at[value] = length;
                length += plan.values[value].words * BLOCK;
                if uncertain {
                    columns.flags[value] = Some(columns.valid.len());
                    columns.valid.resize(columns.valid.len() + BLOCK, 1);
                }
            }
        }
        columns.words.resize(length, 0);
    }

    /// Prepares an instruction: operands that are not a whole value get columns of their own.
    fn step<'p, 'g>(&mut self, plan: &Plan<'g>, unit: &'p Unit<'g>) -> Option<Step<'p, 'g>> {
        let Kind::Instruction(instruction) = &unit.kind else {
            return None;
        };
        let sources = instruction.operands.iter().map(|operand| {
            if let [part] = operand.parts() {
                let value = &plan.values[part.value];
                if part.low == 0
                    && part.width == value.width
                    && part.width <= instruction.width
                    && value.words == instruction.words
                {
                    return Source::Value(part.value);
                }
            }
            let own = self.words.len();
            self.words.resize(own + instruction.words * BLOCK, 0);
            if let Feed::Constant(constant) = operand.feed {
                // What decides is all of a constant, what is computed with is cut.
                let cut = if operand.qualified {
                    constant
                } else {
                    constant & instruction.mask(0)
                };
                self.words[own..own + BLOCK].fill(cut);
            }
            Source::Own(own)
        });
        let sources = sources.collect();
        Some(Step {
            instruction,
            sources,
            registers: [0; REGISTERS],
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
            let at = self.at[value];
            for (row, state) in self.words[at..at + count].iter_mut().enumerate() {
                *state = state_byte(&stream.loops, (start + row) as u64).into();
            }
            value += 1;
        }
        let bytes = width as usize / 8;
        let rows = &stream.bytes[start * lanes * bytes..][..count * lanes * bytes];
        for lane in 0..lanes {
            let at = self.at[value + lane];
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
        let (values, columns) = self.words.split_at_mut(own);
        let columns = &mut columns[..instruction.words * BLOCK];
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
                if word >= self.counts[part.value] {
                    // Bits above the value are zero; they take their place all the same.
                    low += end - from;
                    break;
                }
                let source = &values[self.at[part.value] + word * BLOCK..][..count];
                let column = &mut columns[(low / u64::BITS) as usize * BLOCK..][..count];
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
                columns[word * BLOCK..][..count]
                    .iter_mut()
                    .for_each(|bits| *bits &= mask);
            }
        }
    }

    /// A function of the operands: column by column.
    fn apply(&mut self, unit: &Unit<'_>, step: &Step<'_, '_>, count: usize) {
        let instruction = step.instruction;
        let Some(&result) = self.at.get(unit.first_value) else {
            return;
        };
        let columns: Vec<usize> = step
            .sources
            .iter()
            .map(|source| self.column(source))
            .collect();
        for word in 0..instruction.words {
            let (before, rest) = self.words.split_at_mut(result + word * BLOCK);
            let (out, after) = rest.split_at_mut(BLOCK);
            let out = &mut out[..count];
            let first_after = result + (word + 1) * BLOCK;
            let column = |index: usize| {
                let at = columns[index] + word * BLOCK;
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
            let Some(flags) = self.flags[value] else {
                continue;
            };
            let (before, own) = self.valid.split_at_mut(flags);
            let own = &mut own[..count];
            own.fill(1);
            for part in instruction.operands.iter().flat_map(Operand::parts) {
                if let Some(flags) = self.flags[part.value] {
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
        let words = instruction.words;
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
                    operands[index * words + word] = self.words[at + word * BLOCK + row];
                }
                let counts = |part: &super::plan::Part| {
                    self.flags[part.value].is_none_or(|flags| self.valid[flags + row] != 0)
                };
                valid[index] = instruction.operands[index].parts().iter().all(counts);
            }
            let fired = instruction.fire(&mut operands, &valid, &mut step.registers, &mut results);
            for (value, result) in
                (unit.first_value..unit.first_value + unit.values).zip(results.chunks_exact(words))
            {
                for (word, bits) in result.iter().enumerate() {
                    self.words[self.at[value] + word * BLOCK + row] = *bits;
                }
                if let Some(flags) = self.flags[value] {
                    self.valid[flags + row] = (!fired.discard).into();
                }
            }
        }
    }

    fn column(&self, source: &Source) -> usize {
        match source {
            Source::Value(value) => self.at[*value],
            Source::Own(own) => *own,
        }
    }

    fn collect(&self, operands: &[Operand], collector: &mut Collector, count: usize) {
        let (bytes, lanes) = (collector.bytes, collector.lanes);
        let start = collector.data.len();
        collector.data.resize(start + count * lanes * bytes, 0);
        let rows = &mut collector.data[start..];
        for (lane, operand) in operands.iter().take(lanes).enumerate() {
            let column = self.lane(operand, count);
            let elements = rows.chunks_exact_mut(lanes * bytes).zip(&*column);
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
        let Some(valid) = &mut collector.valid else {
            return;
        };
        let start = valid.len();
        valid.resize(start + count * lanes, 1);
        for (lane, operand) in operands.iter().take(lanes).enumerate() {
            for flags in operand
                .parts()
                .iter()
                .filter_map(|part| self.flags[part.value])
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
            return (&self.words[self.at[part.value]..][..count]).into();
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
                        self.words[self.at[part.value] + (bit / u64::BITS) as usize * BLOCK + row]
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
    data: Vec<u8>,
    valid: Option<Vec<u8>>,
}

impl Collector {
    fn new(
        index: usize,
        width: u32,
        lanes: usize,
        may_drop: bool,
        rows: usize,
        budget: &mut u64,
    ) -> Result<Collector, Stop> {
        let bytes = width as usize / 8;
        let size = rows as u128 * lanes as u128 * (bytes as u128 + u128::from(may_drop));
        *budget = u64::try_from(size)
            .ok()
            .and_then(|size| budget.checked_sub(size))
            .ok_or(Stop::TooLarge { limit: 0 })?;
        Ok(Collector {
            index,
            bytes,
            lanes,
            data: Vec::with_capacity(rows * lanes * bytes),
            valid: may_drop.then(Vec::new),
        })
    }

    /// For rows that come one by one.
    pub(super) fn growing(index: usize, width: u32, lanes: usize) -> Collector {
        Collector {
            index,
            bytes: width as usize / 8,
            lanes,
            data: Vec::new(),
            valid: Some(Vec::new()),
        }
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
        for (word, counts) in row {
            self.data
                .extend_from_slice(&word.to_le_bytes()[..self.bytes]);
            if let Some(valid) = &mut self.valid {
                valid.push(counts.into());
            }
        }
        Ok(())
    }

    /// Leaves out rows in which nothing counts.
    pub(super) fn finish(self) -> (usize, Rows) {
        let Collector {
            index,
            bytes,
            lanes,
            mut data,
            valid,
        } = self;
        let row_bytes = lanes * bytes;
        let rows = data.len() / row_bytes.max(1);
        let Some(mut valid) = valid else {
            return (
                index,
                Rows {
                    count: rows as u64,
                    bytes: data,
                    valid: None,
                    dropped: 0,
                },
            );
        };
        let mut kept = 0;
        for row in 0..rows {
            if valid[row * lanes..][..lanes].contains(&1) {
                data.copy_within(row * row_bytes..(row + 1) * row_bytes, kept * row_bytes);
                valid.copy_within(row * lanes..(row + 1) * lanes, kept * lanes);
                kept += 1;
            }
        }
        data.truncate(kept * row_bytes);
        valid.truncate(kept * lanes);
        let valid = valid.contains(&0).then_some(valid);
        (
            index,
            Rows {
                count: kept as u64,
                bytes: data,
                valid,
                dropped: (rows - kept) as u64,
            },
        )
    }
}
