//! What a graph computes: streams in, streams out.
//!
//! # Tokens
//!
//! Every value is a stream of *tokens*: bits, and whether they count. A node fires when every operand has a token:
//!
//! 1. A token of an operand that does not count makes the result not count. Otherwise a token of a control operand is looked up in the table
//!    of the instruction: hold the first or the second operand, discard the result, reset the registers, abstain.
//! 2. Unless it abstains the operation is executed, results that go to registers are written there, and the first result is looked up in the
//!    table of the instruction's self control.
//! 3. The registers are reset, if an action said so.
//! 4. Operands that are not held are taken off their streams.
//! 5. Unless it abstained the results go to all their consumers; discarded ones as tokens that do not count.
//!
//! `pred=` and `inv_pred=` operands are waited for and taken like all others. They have no table and so do nothing: recorded streams have
//! it so.
//!
//! Between a value and each of its consumers lies a queue of [`QUEUE`] tokens. A node with a result that one of the consumers has no room
//! for waits, and so do those before it. That bounds what runs ahead where operands are held, as it does in hardware.
//!
//! # Ports
//!
//! A row of an input stream enters its port when all lanes have room (in a temporal group, lane by lane). The state byte of a stated port
//! says where the row stands in the loops of its stream: bit 0 the first of all, 1 the last of all, 2 and 3 the first and the last of the
//! innermost loop, 4 and 5 the first and the last of the two innermost loops together.
//!
//! An output port takes a row when every lane has a token. What goes to a recurrence array comes back in the input port that reads the
//! array, behind the rows that were given for that port.
//!
//! # Two ways to the same result
//!
//! Where nothing is held or left out, and all inputs of a connected part are equally long, every node fires once for each row: whole blocks
//! of rows are computed node by node ([`Strategy::Automatic`]). Elsewhere tokens move one by one. Both ways give the same.

mod block;
mod fabric;
mod plan;
mod state;
mod stuck;
mod token;

pub(crate) use fabric::Fabric;
pub use plan::Refusal;
pub use state::state_byte;
pub use stuck::Waiting;

use crate::graph::{Graph, NodeId, NodeKind, Port};
use chipless_model::Limits;
use index_vec::IndexVec;
use plan::{Component, Kind, Plan};
use std::borrow::Cow;

/// Tokens that wait for a consumer, at most: the depth of the real simulator's queues.
pub const QUEUE: usize = 8;

/// Firings of a node in a row that take no token, at most: a node that holds all its operands for so long does it for ever.
pub const MAX_HELD: u32 = 1 << 20;
/// Rows that come back to input ports while no stream gives one, after which a recurrence is taken for one that nothing ends.
pub const MAX_BACK: u32 = 1 << 22;

/// Rows for an input port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream<'a> {
    /// The loops that the rows form, outermost first; their product is the number of rows.
    pub loops: Vec<u64>,
    /// Row after row, lane after lane, each as many bytes as the port is wide, little end first.
    pub bytes: Cow<'a, [u8]>,
}

impl Stream<'_> {
    /// How many rows it has.
    pub fn rows(&self) -> u64 {
        self.loops
            .iter()
            .fold(1, |rows, count| rows.saturating_mul(*count))
    }
}

/// How to evaluate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Blocks of rows where that gives the same, tokens elsewhere.
    #[default]
    Automatic,
    /// Tokens everywhere.
    TokenByToken,
}

/// What an evaluation is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// In which way.
    pub strategy: Strategy,
    /// Whether slices are taken as the real tool takes those of the older form, `v:width:index`: as `v:low:high`. For files that have
    /// them ([`Document::slices_by_width`](crate::Document::slices_by_width)) recorded streams have it so.
    pub slices_as_ranges: bool,
}

/// What came out of an output port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Rows with at least one lane that counts.
    pub count: u64,
    /// Their lanes as in a [`Stream`].
    pub bytes: Vec<u8>,
    /// For each lane 1 where it counts and 0 where it does not; `None` where all of them do.
    pub valid: Option<Vec<u8>>,
    /// Rows in which no lane counts; they are left out.
    pub dropped: u64,
}

/// How many rows come out of an output port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Rows with at least one lane that counts.
    pub rows: u64,
    /// Rows in which no lane counts; they are left out.
    pub dropped: u64,
    /// Whether some lanes of the rows that come out do not count.
    pub partial: bool,
    /// Where rows of a regular part are left out: the rows of the inputs that those which come out belong to.
    pub counting: Option<Vec<u64>>,
}

/// How far streams go in a graph: what data decide about its time and the length of its outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// For each output port, in the order of [`Graph::outputs`].
    pub counts: Vec<Count>,
    /// For each input port, in the order of [`Graph::inputs`], how many of its rows entered.
    pub taken: Vec<u64>,
    /// How often each node fired: rows for ports, executions for instructions, those that abstain included.
    pub firings: IndexVec<NodeId, u64>,
    /// What still waits for what at the end, for each connected part that did not run dry.
    pub waiting: Vec<Waiting>,
    /// The connected parts, in the order of their first nodes.
    pub parts: Vec<Part>,
}

/// What a graph computed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// For each output port, in the order of [`Graph::outputs`].
    pub outputs: Vec<Rows>,
    /// How far streams went.
    pub course: Course,
}

/// A connected part of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Its nodes, arrays left out, in the order of the graph.
    pub nodes: Vec<NodeId>,
    /// Whether every node fires once for each row of every input.
    pub regular: bool,
    /// How many of its instructions remember something from one row to the next.
    pub memories: usize,
}

/// The sub-graphs of a graph as parts, for a graph that cannot be executed: regular where its inputs have equally many rows.
pub(crate) fn parts(graph: &Graph, rows: &[u64]) -> Vec<Part> {
    let of_group = |group| {
        let nodes = graph
            .nodes
            .iter_enumerated()
            .filter(|(_, node)| node.group == group && !matches!(node.kind, NodeKind::Array(_)));
        let nodes: Vec<NodeId> = nodes.map(|(id, _)| id).collect();
        let mut own = graph
            .inputs()
            .zip(rows)
            .filter(|((_, node, _), _)| node.group == group)
            .map(|(_, rows)| rows);
        let first = own.next();
        Part {
            nodes,
            regular: own.all(|rows| Some(rows) == first),
            memories: 0,
        }
    };
    graph
        .groups
        .indices()
        .map(of_group)
        .filter(|part| !part.nodes.is_empty())
        .collect()
}

/// Why a graph was not evaluated to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It cannot be executed at all.
    Refused(Vec<Refusal>),
    /// A node holds all its operands for ever.
    Spinning(NodeId),
    /// An input port takes what comes back for ever, while no stream gives anything.
    Endless(NodeId),
    /// More came out than the limit `memory_bytes` allows.
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// The streams that were given are not those of the graph's input ports.
    Streams(String),
}

impl Stop {
    /// The same with the limit that was exceeded.
    fn at(self, limits: &Limits) -> Stop {
        match self {
            Stop::TooLarge { .. } => Stop::TooLarge {
                limit: limits.memory_bytes,
            },
            other => other,
        }
    }

    /// The node that it is about, where it is about one.
    pub fn node(&self) -> Option<NodeId> {
        match self {
            Stop::Refused(refusals) => refusals.first().map(|refusal| refusal.node),
            Stop::Spinning(node) | Stop::Endless(node) => Some(*node),
            Stop::TooLarge { .. } | Stop::Streams(_) => None,
        }
    }

    /// In words.
    pub fn message(&self, graph: &Graph) -> String {
        match self {
            Stop::Refused(refusals) => refusals
                .first()
                .map(|refusal| refusal.message(graph))
                .unwrap_or_default(),
            Stop::Spinning(node) => {
                let name = stuck::name(graph, *node);
                format!(
                    "{name} has fired {MAX_HELD} times without taking a token: it holds all its operands for ever"
                )
            }
            Stop::Endless(node) => {
                let name = stuck::name(graph, *node);
                format!(
                    "{name} has taken {MAX_BACK} rows that came back while no stream gave one: nothing ends this recurrence"
                )
            }
            Stop::TooLarge { limit } => format!(
                "streams of more than {limit} bytes together come out (--limit memory_bytes)"
            ),
            Stop::Streams(text) => text.clone(),
        }
    }
}

/// Evaluates a graph on a stream for each of its input ports, in the order of [`Graph::inputs`].
///
/// # Errors
/// The graph cannot be executed, or not on these streams.
pub fn evaluate(
    graph: &Graph,
    inputs: &[Stream<'_>],
    settings: Settings,
    limits: &Limits,
) -> Result<Evaluation, Stop> {
    go(graph, inputs, settings, limits, true)
}

/// Finds how far streams go, and keeps no rows. Parts in which data decide nothing of that are not executed.
///
/// # Errors
/// As of [`evaluate`].
pub fn course(
    graph: &Graph,
    inputs: &[Stream<'_>],
    settings: Settings,
    limits: &Limits,
) -> Result<Course, Stop> {
    go(graph, inputs, settings, limits, false).map(|evaluation| evaluation.course)
}

fn go(
    graph: &Graph,
    inputs: &[Stream<'_>],
    settings: Settings,
    limits: &Limits,
    keep: bool,
) -> Result<Evaluation, Stop> {
    let plan = Plan::new(graph, settings.slices_as_ranges).map_err(Stop::Refused)?;
    check(graph, inputs)?;
    let mut outputs = vec![Rows::default(); if keep { plan.outputs } else { 0 }];
    let mut course = Course {
        counts: vec![Count::default(); plan.outputs],
        taken: vec![0; inputs.len()],
        firings: graph.nodes.iter().map(|_| 0).collect(),
        waiting: Vec::new(),
        parts: Vec::new(),
    };
    let mut budget = limits.memory_bytes;
    let mut columns = block::Columns::default();
    let mut channels = token::Channels::new(&plan);
    for part in (0..plan.parts()).map(|number| plan.part(number)) {
        let regular = part.is_regular(inputs);
        course.parts.push(Part {
            nodes: part.units.iter().map(|unit| unit.node).collect(),
            regular,
            memories: part.memories().count(),
        });
        let collected = if settings.strategy == Strategy::Automatic && regular {
            course.regular(part, inputs);
            if !keep && !block::drops(part) {
                continue;
            }
            let mut memory = vec![block::Memory::default(); part.memories().count()];
            let rows = 0..part.rows(inputs) as usize;
            let columns = &mut columns;
            block::run(part, inputs, rows, &mut memory, columns, keep, &mut budget)
        } else {
            let room = (limits.findings as usize).saturating_sub(course.waiting.len());
            let channels = &mut channels;
            token::run(&plan, part, inputs, channels, keep, &mut budget, room)
                .map(|ran| course.irregular(part, ran))
        }
        .map_err(|stop| stop.at(limits))?;
        for found in collected {
            course.counts[found.index] = Count {
                rows: found.rows.count,
                dropped: found.rows.dropped,
                partial: found.rows.valid.is_some(),
                counting: found.counting.filter(|_| regular),
            };
            if keep {
                outputs[found.index] = found.rows;
            }
        }
    }
    Ok(Evaluation { outputs, course })
}

impl Course {
    /// Every node of a part fires once for each row.
    fn regular(&mut self, part: Component<'_, '_>, inputs: &[Stream<'_>]) {
        let rows = part.rows(inputs);
        for unit in part.units {
            self.firings[unit.node] = rows;
            match unit.kind {
                Kind::Input { index, .. } => self.taken[index] = rows,
                Kind::Output { index, .. } => self.counts[index].rows = rows,
                Kind::Instruction(_) => {}
            }
        }
    }

    /// Takes in what became of a part; what came out of it.
    fn irregular(&mut self, part: Component<'_, '_>, ran: token::Ran) -> Vec<block::Collected> {
        for (unit, count) in part.units.iter().zip(ran.counts) {
            self.firings[unit.node] = count;
            if let Kind::Input { index, .. } = unit.kind {
                self.taken[index] = count;
            }
        }
        self.waiting.extend(ran.waiting);
        ran.outputs
    }
}

/// Why a graph cannot be evaluated, whatever its streams; empty where it can.
pub fn refusals(graph: &Graph) -> Vec<Refusal> {
    Plan::new(graph, false).err().unwrap_or_default()
}

/// Bytes of a row of a port.
pub(crate) fn row_bytes(port: &Port) -> usize {
    port.lanes as usize * port.width as usize / 8
}

fn check(graph: &Graph, inputs: &[Stream<'_>]) -> Result<(), Stop> {
    let ports = graph
        .nodes
        .iter()
        .filter(|node| matches!(node.kind, NodeKind::Input(_)))
        .count();
    if ports != inputs.len() {
        return Err(Stop::Streams(format!(
            "expected {ports} streams, found {}",
            inputs.len()
        )));
    }
    for ((_, node, port), stream) in graph.inputs().zip(inputs) {
        let expected = u128::from(stream.rows()) * row_bytes(port) as u128;
        if expected != stream.bytes.len() as u128 {
            let (name, found) = (&node.name, stream.bytes.len());
            return Err(Stop::Streams(format!(
                "expected {expected} bytes for input {name}, found {found}"
            )));
        }
    }
    Ok(())
}
