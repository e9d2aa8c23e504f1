//! Token by token: for parts in which operands are held, results left out, or streams come back.

use super::block::Collected;
use super::block::Collector;
use super::plan::{Component, Feed, Instruction, Kind, Operand, Part, Plan, Unit, low_bits};
use super::stuck::{Waiting, name};
use super::{MAX_BACK, MAX_HELD, QUEUE, Stop, Stream, state_byte};
use crate::graph::{EdgeId, NodeId};
use crate::operations::{REGISTERS, RESULTS};
use std::collections::VecDeque;

/// Tokens on their way to an operand.
struct Queue {
    words: usize,
    /// `QUEUE` tokens of so many words.
    data: Vec<u64>,
    valid: [bool; QUEUE],
    head: usize,
    len: usize,
}

impl Queue {
    fn front(&self) -> (&[u64], bool) {
        (
            &self.data[self.head * self.words..][..self.words],
            self.valid[self.head],
        )
    }

    fn push(&mut self, words: &[u64], valid: bool) {
        let at = (self.head + self.len) % QUEUE;
        self.data[at * self.words..][..self.words].copy_from_slice(words);
        self.valid[at] = valid;
        self.len += 1;
    }

    fn pop(&mut self) {
        self.head = (self.head + 1) % QUEUE;
        self.len -= 1;
    }
}

/// What a unit has made and not yet passed on, and what it remembers.
struct Slot {
    /// Words of all its values.
    words: Vec<u64>,
    valid: bool,
    /// Values that wait to be passed on: all of them, or, in temporal groups, those from `passed` on.
    full: bool,
    passed: usize,
    registers: [u64; REGISTERS],
    /// Rows taken, or firings.
    count: u64,
    /// Firings in a row that took nothing.
    held: u32,
}

struct Machine<'r, 'p, 'g> {
    plan: &'r Plan<'g>,
    part: Component<'p, 'g>,
    inputs: &'r [Stream<'r>],
    channels: &'r mut Channels,
    slots: Vec<Slot>,
    /// Words of the operands of one firing.
    operands: Vec<u64>,
    valid: Vec<bool>,
    /// Rows that came back since a stream gave one.
    back: u32,
}

/// What stands between the units of all parts; each entry belongs to one of them.
pub(super) struct Channels {
    /// By the number of the edge.
    queues: Vec<Option<Queue>>,
    /// By the index of the output port.
    collectors: Vec<Option<Collector>>,
    /// Elements on their way back, by the index of the output port; `None` where nothing comes back.
    feedback: Vec<Option<VecDeque<u64>>>,
}

impl Channels {
    pub(super) fn new(plan: &Plan<'_>) -> Channels {
        Channels {
            queues: plan.graph.edges.iter().map(|_| None).collect(),
            collectors: (0..plan.outputs).map(|_| None).collect(),
            feedback: vec![None; plan.outputs],
        }
    }
}

/// What became of a part.
pub(super) struct Ran {
    pub(super) outputs: Vec<Collected>,
    /// For each unit how many rows it took, or how often it fired.
    pub(super) counts: Vec<u64>,
    pub(super) waiting: Vec<Waiting>,
}

/// Moves tokens until nothing moves. Without `keep`, rows that come out are counted and not kept; of what waits, `room` units are named at most.
pub(super) fn run(
    plan: &Plan<'_>,
    part: Component<'_, '_>,
    inputs: &[Stream<'_>],
    channels: &mut Channels,
    keep: bool,
    budget: &mut u64,
    room: usize,
) -> Result<Ran, Stop> {
    let mut machine = Machine::new(plan, part, inputs, channels, keep);
    let mut moved = true;
    while moved {
        moved = false;
        for at in 0..part.units.len() {
            while machine.step(at, budget)? {
                moved = true;
            }
        }
    }
    let mut ran = Ran {
        outputs: Vec::new(),
        counts: machine.slots.iter().map(|slot| slot.count).collect(),
        waiting: machine.waiting().take(room).collect(),
    };
    // What is over makes room.
    for unit in part.units {
        for part in unit.operands().iter().flat_map(Operand::parts) {
            machine.channels.queues[part.edge] = None;
        }
        if let Kind::Output { index, .. } = unit.kind {
            machine.channels.feedback[index] = None;
            let collector = machine.channels.collectors[index].take();
            ran.outputs.extend(collector.map(Collector::finish));
        }
    }
    Ok(ran)
}

impl<'r, 'p, 'g> Machine<'r, 'p, 'g> {
    fn new(
        plan: &'r Plan<'g>,
        part: Component<'p, 'g>,
        inputs: &'r [Stream<'r>],
        channels: &'r mut Channels,
        keep: bool,
    ) -> Machine<'r, 'p, 'g> {
        let mut slots = Vec::with_capacity(part.units.len());
        for unit in part.units {
            for part in unit.operands().iter().flat_map(Operand::parts) {
                let words = plan.values[part.value].words;
                channels.queues[part.edge] = Some(Queue {
                    words,
                    data: vec![0; QUEUE * words],
                    valid: [false; QUEUE],
                    head: 0,
                    len: 0,
                });
            }
            match &unit.kind {
                Kind::Output {
                    index,
                    width,
                    lanes,
                    ..
                } => {
                    let collector = Collector::new(*index, *width, *lanes, true, keep);
                    channels.collectors[*index] = Some(collector);
                }
                Kind::Input {
                    feedback: Some(output),
                    ..
                } => channels.feedback[*output] = Some(VecDeque::new()),
                _ => {}
            }
            let words = values(unit)
                .map(|value| plan.values[value].words)
                .sum::<usize>();
            // A step may make more results than have a name.
            let room = if let Kind::Instruction(instruction) = &unit.kind {
                words.max(RESULTS * instruction.words)
            } else {
                words
            };
            let slot = Slot {
                words: vec![0; room],
                valid: true,
                full: false,
                passed: 0,
                registers: [0; REGISTERS],
                count: 0,
                held: 0,
            };
            slots.push(slot);
        }
        Machine {
            plan,
            part,
            inputs,
            channels,
            slots,
            operands: Vec::new(),
            valid: Vec::new(),
            back: 0,
        }
    }

    /// Moves one unit one step on; `false` where it cannot move.
    fn step(&mut self, at: usize, budget: &mut u64) -> Result<bool, Stop> {
        let unit = &self.part.units[at];
        match &unit.kind {
            Kind::Input {
                index,
                width,
                lanes,
                stated,
                temporal,
                feedback,
            } => {
                if self.slots[at].full {
                    return Ok(self.pass_on(at, *temporal));
                }
                let words = &mut self.slots[at];
                let stream = &self.inputs[*index];
                let first = usize::from(*stated);
                if words.count < stream.rows() {
                    let row = words.count;
                    self.back = 0;
                    let bytes = *width as usize / 8;
                    let elements = stream.bytes[row as usize * lanes * bytes..].chunks_exact(bytes);
                    for (out, element) in words.words[first..first + lanes].iter_mut().zip(elements)
                    {
                        *out = element
                            .iter()
                            .rev()
                            .fold(0, |word, byte| word << 8 | u64::from(*byte));
                    }
                    if *stated {
                        words.words[0] = state_byte(&stream.loops, row).into();
                    }
                } else {
                    let Some(back) =
                        feedback.and_then(|output| self.channels.feedback[output].as_mut())
                    else {
                        return Ok(false);
                    };
                    if back.len() < *lanes {
                        return Ok(false);
                    }
                    for (out, element) in words.words[first..].iter_mut().zip(back.drain(..lanes)) {
                        *out = element;
                    }
                    words.words[..first].fill(0);
                    self.back += 1;
                    if self.back > MAX_BACK {
                        return Err(Stop::Endless(unit.node));
                    }
                }
                let slot = &mut self.slots[at];
                (slot.full, slot.passed, slot.valid) = (true, 0, true);
                slot.count += 1;
                self.pass_on(at, *temporal);
                Ok(true)
            }
            Kind::Instruction(instruction) => {
                if self.slots[at].full {
                    return Ok(self.pass_on(at, false));
                }
                if !self.is_ready(&instruction.operands) {
                    return Ok(false);
                }
                self.fire(at, unit, instruction)?;
                Ok(true)
            }
            Kind::Output {
                index,
                operands,
                lanes,
                ..
            } => {
                if !self.is_ready(operands) {
                    return Ok(false);
                }
                let row: Vec<(u64, bool)> = operands[..*lanes]
                    .iter()
                    .map(|operand| self.lane(operand))
                    .collect();
                if let Some(back) = &mut self.channels.feedback[*index] {
                    back.extend(
                        row.iter()
                            .filter(|(_, counts)| *counts)
                            .map(|(word, _)| *word),
                    );
                    *budget = budget
                        .checked_sub(row.len() as u64 * 8)
                        .ok_or(Stop::TooLarge { limit: 0 })?;
                }
                if let Some(collector) = &mut self.channels.collectors[*index] {
                    collector.push(row.into_iter(), budget)?;
                }
                for part in operands.iter().flat_map(Operand::parts) {
                    self.pop(part);
                }
                self.slots[at].count += 1;
                Ok(true)
            }
        }
    }

    fn is_ready(&self, operands: &[Operand]) -> bool {
        operands.iter().flat_map(Operand::parts).all(|part| {
            self.channels.queues[part.edge]
                .as_ref()
                .is_some_and(|queue| queue.len > 0)
        })
    }

    fn pop(&mut self, part: &Part) {
        if let Some(queue) = &mut self.channels.queues[part.edge] {
            queue.pop();
        }
    }

    fn fire(
        &mut self,
        at: usize,
        unit: &Unit<'_>,
        instruction: &Instruction<'_>,
    ) -> Result<(), Stop> {
        let words = instruction.words;
        self.operands.clear();
        self.operands.resize(instruction.operands.len() * words, 0);
        self.valid.clear();
        for (index, operand) in instruction.operands.iter().enumerate() {
            let out = &mut self.operands[index * words..][..words];
            self.valid.push(take(&self.channels.queues, operand, out));
        }
        let slot = &mut self.slots[at];
        let results = &mut slot.words;
        let fired = instruction.fire(
            &mut self.operands,
            &self.valid,
            &mut slot.registers,
            results,
        );
        slot.count += 1;
        slot.valid = !fired.discard;
        slot.full = fired.executed;
        let mut took = false;
        for (index, operand) in instruction.operands.iter().enumerate() {
            if fired.hold.get(index).is_none_or(|held| !held) {
                took |= !operand.parts().is_empty();
                for part in operand.parts() {
                    self.pop(part);
                }
            }
        }
        let slot = &mut self.slots[at];
        slot.held = if took { 0 } else { slot.held + 1 };
        if slot.held > MAX_HELD {
            return Err(Stop::Spinning(unit.node));
        }
        if slot.full {
            self.pass_on(at, false);
        }
        Ok(())
    }

    /// Passes the values of a unit on to all consumers, if all of them have room; in a temporal group those that come next in turn.
    fn pass_on(&mut self, at: usize, temporal: bool) -> bool {
        let unit = &self.part.units[at];
        let room = |machine: &Self, value: usize| {
            machine.plan.values[value].uses.iter().all(|edge| {
                machine.channels.queues[edge.index()]
                    .as_ref()
                    .is_none_or(|queue| queue.len < QUEUE)
            })
        };
        if !temporal && !values(unit).all(|value| room(self, value)) {
            return false;
        }
        let (mut offset, before) = (0, self.slots[at].passed);
        for (index, value) in values(unit).enumerate() {
            let words = self.plan.values[value].words;
            if index >= self.slots[at].passed {
                if !room(self, value) {
                    return self.slots[at].passed > before;
                }
                let slot = &self.slots[at];
                for edge in self.plan.values[value].uses {
                    if let Some(queue) = &mut self.channels.queues[edge.index()] {
                        queue.push(&slot.words[offset..offset + words], slot.valid);
                    }
                }
                self.slots[at].passed = index + 1;
            }
            offset += words;
        }
        (self.slots[at].full, self.slots[at].passed) = (false, 0);
        true
    }

    /// The token of a lane of an output port.
    fn lane(&self, operand: &Operand) -> (u64, bool) {
        let mut word = [0];
        let counts = take(&self.channels.queues, operand, &mut word);
        (word[0], counts)
    }

    /// What had something to do and could not.
    fn waiting(&self) -> impl Iterator<Item = Waiting> {
        let graph = self.plan.graph;
        self.part
            .units
            .iter()
            .zip(&self.slots)
            .filter_map(move |(unit, slot)| {
                if slot.full {
                    let full = |edge: &&EdgeId| {
                        self.channels.queues[edge.index()]
                            .as_ref()
                            .is_some_and(|queue| queue.len == QUEUE)
                    };
                    let blocked = values(unit)
                        .flat_map(|value| self.plan.values[value].uses)
                        .find(full)?;
                    let consumer = name(graph, graph.edges[*blocked].sink);
                    return Some(Waiting {
                        node: unit.node,
                        reason: format!("has a result that {consumer} has no room for"),
                        ended: false,
                    });
                }
                if let Kind::Input { index, .. } = unit.kind {
                    let left = self.inputs[index].rows().saturating_sub(slot.count);
                    return (left > 0).then(|| Waiting {
                        node: unit.node,
                        reason: format!("has {left} rows left"),
                        ended: false,
                    });
                }
                let parts = || unit.operands().iter().flat_map(Operand::parts);
                let length = |part: &Part| {
                    self.channels.queues[part.edge]
                        .as_ref()
                        .map_or(0, |queue| queue.len)
                };
                let missing = parts().find(|part| length(part) == 0)?;
                let held = parts()
                    .max_by_key(|part| length(part))
                    .filter(|part| length(part) > 0)?;
                let of = |part: &Part| name(graph, graph.edges[part.edge].source);
                let reason = format!(
                    "waits for {} with {} tokens of {} at hand",
                    of(missing),
                    length(held),
                    of(held)
                );
                Some(Waiting {
                    node: unit.node,
                    reason,
                    ended: self.has_ended(graph.edges[missing.edge].source),
                })
            })
    }
}

impl Machine<'_, '_, '_> {
    /// Whether a node is an input port that has no more rows, and none that could come back to it.
    fn has_ended(&self, node: NodeId) -> bool {
        self.part
            .units
            .iter()
            .zip(&self.slots)
            .any(|(unit, slot)| match unit.kind {
                Kind::Input {
                    index,
                    feedback: None,
                    ..
                } => unit.node == node && slot.count >= self.inputs[index].rows() && !slot.full,
                _ => false,
            })
    }
}

fn values(unit: &Unit<'_>) -> std::ops::Range<usize> {
    unit.first_value..unit.first_value + unit.values
}

/// Reads the front tokens of an operand and puts their slices together; whether all of them count.
fn take(queues: &[Option<Queue>], operand: &Operand, out: &mut [u64]) -> bool {
    if let Feed::Constant(constant) = operand.feed {
        out[0] = constant;
        return true;
    }
    let (mut at, mut counts) = (0, true);
    for part in operand.parts() {
        let Some(queue) = &queues[part.edge] else {
            continue;
        };
        let (words, valid) = queue.front();
        counts &= valid;
        let (mut from, end) = (part.low, part.low + part.width);
        while from < end && at / u64::BITS < out.len() as u32 {
            let bits = (end - from)
                .min(u64::BITS - from % u64::BITS)
                .min(u64::BITS - at % u64::BITS);
            let word = words.get((from / u64::BITS) as usize).copied().unwrap_or(0);
            out[(at / u64::BITS) as usize] |=
                (word >> (from % u64::BITS) & low_bits(bits)) << (at % u64::BITS);
            from += bits;
            at += bits;
        }
    }
    counts
}
