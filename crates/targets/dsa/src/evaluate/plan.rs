//! A graph made ready to be executed: operations resolved, operands as slices of numbered values, nodes in connected parts.

use super::{Stream, stuck};
use crate::graph::{Actions, ArrayKind, Control, EdgeId, Graph, NodeId, NodeKind, Role, Source};
use crate::operations::{self, Firing, Meaning, NoMeaning, REGISTERS, RESULTS};
use std::ops::Range;

/// Why a node cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The node.
    pub node: NodeId,
    /// Why.
    pub reason: String,
}

impl Refusal {
    /// In words, with the name of the node.
    pub fn message(&self, graph: &Graph) -> String {
        format!("{}: {}", stuck::name(graph, self.node), self.reason)
    }
}

/// Bits `low` to `low + width - 1` of a value, by way of an edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) edge: usize,
    pub(super) value: usize,
    pub(super) low: u32,
    pub(super) width: u32,
}

/// Where an operand comes from.
#[derive(Clone, Debug)]
pub(super) enum Feed {
    /// Slices of values, the first least significant.
    Parts(Vec<Part>),
    Constant(u64),
    Register(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub(super) feed: Feed,
    /// Whether its token is looked up in the control table.
    pub(super) qualified: bool,
}

impl Operand {
    pub(super) fn parts(&self) -> &[Part] {
        match &self.feed {
            Feed::Parts(parts) => parts,
            _ => &[],
        }
    }

    fn parts_mut(&mut self) -> &mut [Part] {
        match &mut self.feed {
            Feed::Parts(parts) => parts,
            _ => &mut [],
        }
    }
}

/// An operation with its operands.
#[derive(Clone, Debug)]
pub(super) struct Instruction<'g> {
    pub(super) meaning: Meaning,
    /// Bits of operands and results.
    pub(super) width: u32,
    /// Words that they take.
    pub(super) words: usize,
    pub(super) operands: Vec<Operand>,
    pub(super) control: Option<&'g Control>,
    pub(super) self_control: Option<&'g Control>,
    /// For each result the registers that take it.
    pub(super) registers: Vec<&'g [u8]>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind<'g> {
    Input {
        /// Which input port.
        index: usize,
        width: u32,
        lanes: usize,
        stated: bool,
        temporal: bool,
        /// The output port whose rows come back in this one, by its index.
        feedback: Option<usize>,
    },
    Instruction(Instruction<'g>),
    Output {
        /// Which output port.
        index: usize,
        width: u32,
        /// Lanes, and the state behind them.
        operands: Vec<Operand>,
        lanes: usize,
    },
}

/// A node that is executed.
#[derive(Clone, Debug)]
pub(super) struct Unit<'g> {
    pub(super) node: NodeId,
    pub(super) kind: Kind<'g>,
    /// Its values have the numbers from here on.
    pub(super) first_value: usize,
    pub(super) values: usize,
}

impl Unit<'_> {
    pub(super) fn operands(&self) -> &[Operand] {
        match &self.kind {
            Kind::Input { .. } => &[],
            Kind::Instruction(instruction) => &instruction.operands,
            Kind::Output { operands, .. } => operands,
        }
    }

    fn operands_mut(&mut self) -> &mut [Operand] {
        match &mut self.kind {
            Kind::Input { .. } => &mut [],
            Kind::Instruction(instruction) => &mut instruction.operands,
            Kind::Output { operands, .. } => operands,
        }
    }
}

/// A value.
#[derive(Clone, Debug)]
pub(super) struct Value<'g> {
    /// Words of a token.
    pub(super) words: usize,
    pub(super) width: u32,
    /// Edges that carry it, those into arrays included.
    pub(super) uses: &'g [EdgeId],
}

/// A graph made ready to be executed.
#[derive(Debug)]
pub(super) struct Plan<'g> {
    pub(super) graph: &'g Graph,
    /// Part by part, in each in the order of the graph: a node stands behind all that it consumes.
    pub(super) units: Vec<Unit<'g>>,
    /// In the order of the units that make them.
    pub(super) values: Vec<Value<'g>>,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// The units of each connected part, and their values.
    parts: Vec<(Range<usize>, Range<usize>)>,
}

/// A connected part of a graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Component<'p, 'g> {
    pub(super) units: &'p [Unit<'g>],
    /// The number of its first value.
    pub(super) first_value: usize,
    pub(super) values: &'p [Value<'g>],
}

/// What a firing did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fired {
    pub(super) executed: bool,
    pub(super) discard: bool,
    pub(super) hold: [bool; 2],
}

/// Where the operands of a node come from; `first_values` has the number of the first value of each node before it.
fn operands(
    graph: &Graph,
    node: &crate::graph::Node,
    first_values: &[usize],
    slices_as_ranges: bool,
) -> Vec<Operand> {
    let part = |id: &crate::graph::EdgeId| {
        let edge = &graph.edges[*id];
        let value = first_values[edge.source.index()] + edge.value as usize;
        let whole = graph.nodes[edge.source]
            .values
            .get(edge.value as usize)
            .map_or(0, |value| value.width);
        let (low, width) = match (edge.low, edge.width()) {
            (low, width) if slices_as_ranges && width != whole => as_range(low, width),
            bits => bits,
        };
        Part {
            edge: id.index(),
            value,
            low,
            width,
        }
    };
    let of = |operand: &crate::graph::Operand| Operand {
        feed: match &operand.source {
            Source::Constant(value) => Feed::Constant(*value),
            Source::Register(register) => Feed::Register(usize::from(*register) % REGISTERS),
            Source::Edges(edges) => Feed::Parts(edges.iter().map(part).collect()),
        },
        qualified: !matches!(operand.role, Role::Data | Role::State),
    };
    node.operands.iter().map(of).collect()
}

impl<'g> Plan<'g> {
    pub(super) fn new(graph: &'g Graph, slices_as_ranges: bool) -> Result<Plan<'g>, Vec<Refusal>> {
        let mut plan = Plan {
            graph,
            units: Vec::new(),
            values: Vec::new(),
            inputs: 0,
            outputs: 0,
            parts: Vec::new(),
        };
        let mut first_values: Vec<usize> = Vec::with_capacity(graph.nodes.len());
        let mut refusals = Vec::new();
        for (id, node) in graph.nodes.iter_enumerated() {
            let first_value = plan.values.len();
            first_values.push(first_value);
            let operands = || operands(graph, node, &first_values, slices_as_ranges);
            let kind = match &node.kind {
                NodeKind::Array(_) => continue,
                NodeKind::Input(port) => {
                    plan.inputs += 1;
                    Ok(Kind::Input {
                        index: plan.inputs - 1,
                        width: port.width,
                        lanes: port.lanes as usize,
                        stated: port.stated && node.values.len() > port.lanes as usize,
                        temporal: graph.groups[node.group].temporal,
                        feedback: None,
                    })
                }
                NodeKind::Output(port) => {
                    plan.outputs += 1;
                    Ok(Kind::Output {
                        index: plan.outputs - 1,
                        width: port.width,
                        operands: operands(),
                        lanes: port.lanes as usize,
                    })
                }
                NodeKind::Instruction(instruction) => {
                    ready(instruction, node, operands()).map(Kind::Instruction)
                }
                NodeKind::Composite(composite) => Err(format!(
                    "`{}` stands for several units; what they compute is not defined",
                    composite.name
                )),
            };
            match kind {
                Ok(kind) => {
                    let unit = Unit {
                        node: id,
                        kind,
                        first_value,
                        values: node.values.len(),
                    };
                    if !matches!(unit.kind, Kind::Input { .. })
                        && unit
                            .operands()
                            .iter()
                            .all(|operand| operand.parts().is_empty())
                    {
                        refusals.push(Refusal {
                            node: id,
                            reason: "it has no operand from a port or an operation, and would fire for ever".to_owned(),
                        });
                    }
                    plan.units.push(unit);
                }
                Err(reason) => refusals.push(Refusal { node: id, reason }),
            }
            plan.values.extend(node.values.iter().map(|value| Value {
                words: value.width.div_ceil(u64::BITS).max(1) as usize,
                width: value.width,
                uses: &value.uses,
            }));
        }
        plan.feed_back(&mut refusals);
        if !refusals.is_empty() {
            return Err(refusals);
        }
        plan.connect();
        Ok(plan)
    }

    /// Finds the output port behind each input port that reads a recurrence.
    fn feed_back(&mut self, refusals: &mut Vec<Refusal>) {
        let graph = self.graph;
        for (array, node) in graph.nodes.iter_enumerated() {
            if !matches!(&node.kind, NodeKind::Array(found) if found.kind == ArrayKind::Recurrence)
            {
                continue;
            }
            let readers: Vec<_> = graph
                .inputs()
                .enumerate()
                .filter(|(_, (.., port))| port.array == Some(array))
                .collect();
            let writers: Vec<_> = graph
                .outputs()
                .enumerate()
                .filter(|(_, (.., port))| port.array == Some(array))
                .collect();
            if readers.len() != writers.len() {
                let reason = format!(
                    "it has {} readers and {} writers; which feeds which is not defined",
                    readers.len(),
                    writers.len()
                );
                refusals.push(Refusal {
                    node: array,
                    reason,
                });
                continue;
            }
            // Several pairs are in the order of the file.
            for ((input, (id, _, reader)), (output, (_, _, writer))) in
                readers.into_iter().zip(writers)
            {
                if reader.width != writer.width {
                    let reason = format!("{} bits come back as {}", writer.width, reader.width);
                    refusals.push(Refusal { node: id, reason });
                }
                for unit in &mut self.units {
                    match &mut unit.kind {
                        Kind::Input {
                            index, feedback, ..
                        } if *index == input => *feedback = Some(output),
                        _ => {}
                    }
                }
            }
        }
    }

    /// Finds the connected parts, and puts units and values in their order.
    fn connect(&mut self) {
        let mut sets = Sets {
            parent: (0..self.units.len()).collect(),
        };
        let mut maker = vec![usize::MAX; self.values.len()];
        let mut outputs = vec![usize::MAX; self.outputs];
        for (at, unit) in self.units.iter().enumerate() {
            maker[unit.first_value..unit.first_value + unit.values].fill(at);
            if let Kind::Output { index, .. } = unit.kind {
                outputs[index] = at;
            }
        }
        for (at, unit) in self.units.iter().enumerate() {
            for part in unit.operands().iter().flat_map(Operand::parts) {
                sets.join(at, maker[part.value]);
            }
            if let Kind::Input {
                feedback: Some(output),
                ..
            } = unit.kind
            {
                sets.join(at, outputs[output]);
            }
        }
        // A part has the number of its first unit, which is the root of its set.
        let mut order: Vec<(usize, usize)> = (0..self.units.len())
            .map(|at| (sets.root(at), at))
            .collect();
        order.sort_unstable();
        self.sort(&order);
    }

    /// Puts units in an order, each with the part that it belongs to, and values in the order of the units.
    fn sort(&mut self, order: &[(usize, usize)]) {
        let mut units: Vec<Option<Unit<'g>>> = self.units.drain(..).map(Some).collect();
        let old = std::mem::take(&mut self.values);
        let mut numbers = vec![usize::MAX; old.len()];
        let mut part = None;
        for (root, at) in order {
            let Some(mut unit) = units[*at].take() else {
                continue;
            };
            let (first, own) = (
                self.values.len(),
                unit.first_value..unit.first_value + unit.values,
            );
            for (number, value) in (first..).zip(own) {
                numbers[value] = number;
                self.values.push(old[value].clone());
            }
            unit.first_value = first;
            if part.replace(*root) != Some(*root) {
                let start = self.units.len();
                self.parts.push((start..start, first..first));
            }
            self.units.push(unit);
            if let Some((units, values)) = self.parts.last_mut() {
                (units.end, values.end) = (self.units.len(), self.values.len());
            }
        }
        for unit in &mut self.units {
            for part in unit.operands_mut().iter_mut().flat_map(Operand::parts_mut) {
                part.value = numbers[part.value];
            }
        }
    }

    /// How many connected parts there are.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// A connected part, by its number in the order of their first nodes.
    pub(super) fn part(&self, number: usize) -> Component<'_, 'g> {
        let (units, values) = self.parts[number].clone();
        Component {
            units: &self.units[units],
            first_value: values.start,
            values: &self.values[values],
        }
    }
}

/// Sets that are joined, with short paths to their roots.
struct Sets {
    parent: Vec<usize>,
}

impl Sets {
    fn root(&mut self, mut at: usize) -> usize {
        while self.parent[at] != at {
            self.parent[at] = self.parent[self.parent[at]];
            at = self.parent[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a.max(b)] = a.min(b);
    }
}

/// What the real tool makes of `v:width:index`, a slice of the older form: it takes the two numbers for the lowest and the highest bit.
/// Where they run backwards its shifts wrap at 64. Given and returned are the lowest bit and the number of bits.
fn as_range(low: u32, width: u32) -> (u32, u32) {
    let (first, last) = (width, low / width);
    (
        first,
        match (last + 1).wrapping_sub(first) % u64::BITS {
            0 => u64::BITS,
            bits => bits,
        },
    )
}

/// Finds the meaning of an instruction.
fn ready<'g>(
    instruction: &'g crate::graph::Instruction,
    node: &'g crate::graph::Node,
    operands: Vec<Operand>,
) -> Result<Instruction<'g>, String> {
    let name = &instruction.operation;
    let operation =
        operations::lookup(name).ok_or_else(|| format!("no operation `{name}` is known"))?;
    let meaning = operations::meaning(name, operands.len()).map_err(|reason| match reason {
        NoMeaning::Undefined => format!("`{name}` is placed and timed but not executed: {reason}"),
        NoMeaning::TooFewOperands { .. } => {
            format!("`{name}` has {} operands: {reason}", operands.len())
        }
    })?;
    if node.values.len() > operation.results.max(1) as usize {
        return Err(format!(
            "`{name}` has {} results, {} are named",
            operation.results,
            node.values.len()
        ));
    }
    // The pass-through of the older tools is as wide as its operand.
    let width = if name == "NONE" {
        node.values
            .first()
            .map_or(operation.width, |value| value.width)
    } else {
        operation.width
    };
    Ok(Instruction {
        meaning,
        width,
        words: width.div_ceil(u64::BITS).max(1) as usize,
        operands,
        control: instruction.control.as_deref(),
        self_control: instruction.self_control.as_deref(),
        registers: node.values.iter().map(|value| &*value.registers).collect(),
    })
}

impl Instruction<'_> {
    /// Whether it is a function of its operands alone, and fires once for each token of each.
    pub(super) fn is_pure(&self) -> bool {
        let registers = self.registers.iter().any(|registers| !registers.is_empty());
        let reads = self
            .operands
            .iter()
            .any(|operand| matches!(operand.feed, Feed::Register(_)));
        !registers
            && !reads
            && self.control.is_none()
            && self.self_control.is_none()
            && !matches!(self.meaning, Meaning::Step(_))
    }

    /// Whether it remembers something from one firing to the next.
    pub(super) fn remembers(&self) -> bool {
        matches!(self.meaning, Meaning::Step(_))
            || self.registers.iter().any(|registers| !registers.is_empty())
    }

    /// Whether it may hold an operand or abstain.
    pub(super) fn is_irregular(&self) -> bool {
        let holds = matches!(self.meaning, Meaning::Step(step) if step.holds);
        holds
            || [Actions::HOLD_FIRST, Actions::HOLD_SECOND, Actions::ABSTAIN]
                .iter()
                .any(|action| self.may(*action))
    }

    /// Whether it may mark results as not counting.
    pub(super) fn discards(&self) -> bool {
        matches!(self.meaning, Meaning::Step(step) if step.discards) || self.may(Actions::DISCARD)
    }

    fn may(&self, action: Actions) -> bool {
        [self.control, self.self_control]
            .into_iter()
            .flatten()
            .any(|control| control.table.iter().any(|(_, actions)| actions.has(action)))
    }

    /// Bits of the operands and results in word `word`.
    pub(super) fn mask(&self, word: usize) -> u64 {
        low_bits(self.width - word as u32 * u64::BITS)
    }

    /// Fires once. `operands` are words, operand after operand, uncut; `valid` says which of them count; results are written word
    /// after word, result after result.
    pub(super) fn fire(
        &self,
        operands: &mut [u64],
        valid: &[bool],
        registers: &mut [u64; REGISTERS],
        results: &mut [u64],
    ) -> Fired {
        let (mut discard, mut actions) = (false, Actions::NONE);
        for (index, operand) in self.operands.iter().enumerate() {
            let words = &mut operands[index * self.words..][..self.words];
            if let Feed::Register(register) = operand.feed {
                words[0] = registers[register];
            } else if !valid[index] {
                discard = true;
            } else if let (true, Some(control)) = (operand.qualified, self.control) {
                actions = actions.with(control.actions(words[0]));
            }
            for (word, bits) in words.iter_mut().enumerate() {
                *bits &= self.mask(word);
            }
        }
        let executed = !actions.has(Actions::ABSTAIN);
        let mut hold = [
            actions.has(Actions::HOLD_FIRST),
            actions.has(Actions::HOLD_SECOND),
        ];
        discard |= actions.has(Actions::DISCARD);
        if executed {
            if let Meaning::Step(step) = self.meaning {
                let mut firing = Firing {
                    operands,
                    registers,
                    results: [0; RESULTS],
                    hold,
                    discard,
                };
                (step.run)(&mut firing);
                (hold, discard) = (firing.hold, firing.discard);
                let made = firing.results;
                for (result, made) in results.chunks_exact_mut(self.words).zip(made) {
                    result[0] = made & self.mask(0);
                }
            } else {
                for (word, result) in results.iter_mut().take(self.words).enumerate() {
                    let operand = |index: usize| operands[index * self.words + word];
                    *result = self.mask(word)
                        & match self.meaning {
                            Meaning::Unary(f) => (f.one)(operand(0)),
                            Meaning::Binary(f) => (f.one)(operand(0), operand(1)),
                            Meaning::Ternary(f) => (f.one)(operand(0), operand(1), operand(2)),
                            Meaning::Conversion(conversion) => conversion.apply(operand(0)),
                            Meaning::Step(_) => 0,
                        };
                }
            }
            if let Some(control) = self.self_control {
                let own = control.actions(results[0]);
                hold = [
                    hold[0] || own.has(Actions::HOLD_FIRST),
                    hold[1] || own.has(Actions::HOLD_SECOND),
                ];
                discard |= own.has(Actions::DISCARD);
                actions = actions.with(Actions(own.0 & Actions::RESET.0));
            }
            for (result, written) in results.chunks_exact(self.words).zip(&self.registers) {
                for register in *written {
                    registers[usize::from(*register) % REGISTERS] = result[0];
                }
            }
        }
        if actions.has(Actions::RESET) {
            *registers = [0; REGISTERS];
        }
        Fired {
            executed,
            discard,
            hold,
        }
    }
}

impl<'p, 'g> Component<'p, 'g> {
    /// Its instructions that remember something, in order.
    pub(super) fn memories(self) -> impl Iterator<Item = &'p Instruction<'g>> {
        self.units.iter().filter_map(|unit| match &unit.kind {
            Kind::Instruction(instruction) if instruction.remembers() => Some(instruction),
            _ => None,
        })
    }

    /// Rows of its first input; 0 where it has none.
    pub(super) fn rows(self, inputs: &[Stream<'_>]) -> u64 {
        let input = self.units.iter().find_map(|unit| match unit.kind {
            Kind::Input { index, .. } => Some(index),
            _ => None,
        });
        input.map_or(0, |index| inputs[index].rows())
    }

    /// Whether every node fires once for each row of the inputs.
    pub(super) fn is_regular(self, inputs: &[Stream<'_>]) -> bool {
        let mut rows = None;
        self.units.iter().all(|unit| match &unit.kind {
            Kind::Input {
                index, feedback, ..
            } => {
                let these = inputs[*index].rows();
                feedback.is_none() && *rows.get_or_insert(these) == these
            }
            Kind::Instruction(instruction) => !instruction.is_irregular(),
            Kind::Output { .. } => true,
        })
    }
}

/// The lowest so many bits; all of a word for 64 and more.
pub(super) const fn low_bits(bits: u32) -> u64 {
    if bits >= u64::BITS {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}
