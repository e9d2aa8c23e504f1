//! A graph with its streams as a program of the common model.
//!
//! ```text
//! array ──read X──▶ port X ──┐              ┌──▶ port Y ──write Y──▶ array
//!                            ├── compute ───┤
//! array ──read W──▶ port W ──┘              └──▶ port Z ──write Z──▶ array
//! ```
//!
//! Every stream is a queue, cut into chunks of rows; every connected part of the graph is a queue as well, a pipelined unit: the first
//! chunk takes its latency, and each row its interval. A chunk is computed when its rows have come to all ports, and leaves when it is
//! computed. Streams of one memory engine share its bytes in a cycle. A part in which data decide how far each stream is taken is computed
//! in one piece, when all of its streams have come.

use crate::evaluate::{Count, Course, Fabric, Part, Settings, Stop, parts, row_bytes};
use crate::graph::{ArrayKind, Graph, NodeId, NodeKind, Port as GraphPort};
use crate::inputs::{Input, Origin, given_by};
use crate::kernels::{Compute, Leg, Move, Piece, Registers};
use crate::machine::Machine;
use crate::operations::REGISTERS;
use crate::timing::{Mapped, time};
use chipless_model::{
    Action, Buffer, BufferId, BuildError, Builder, Condition, Counter, Demand, ElementType, Fault,
    Kernel, Limits, Location, MemoryId, MemoryKind, NewTask, PartId, Port, Program, QueueId,
    ResourceId, Role, Signal, SyncId, Time, Wait,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Chunks of a stream, at most: enough to see a pipeline fill and drain.
const CHUNKS: u64 = 64;

/// Streams of a part, at most, that have queues of their own; of a wider part those of one memory engine come one after the other.
const OWN_QUEUES: usize = 64;

/// Chunks of all streams of a part, about: a very wide part is cut into fewer.
const STREAM_CHUNKS: u64 = 1 << 16;

/// Kinds of operations of a part that its tasks name, at most.
const OPERATIONS: usize = 12;

/// Bytes of memory behind direct memory access and in a scratchpad, and of all ports together: as much as the arrays of the graph need.
const MEMORY_BYTES: u64 = 1 << 40;

/// Makes the program of a graph whose inputs are known, and on which it is known how far they go (or could not be found out: then a run says
/// why).
///
/// # Errors
/// The program is larger than a limit.
pub fn lower<'a>(
    graph: &'a Graph,
    inputs: &'a [Input<'a>],
    settings: Settings,
    outcome: &'a Result<Course, Stop>,
    machine: &Machine,
    mapped: Option<Mapped>,
    limits: &Limits,
) -> Result<Program<'a>, BuildError> {
    let mut build = Builder::new("dsa", limits);
    let part = build.part("file");
    let mut lowering = Lowering {
        graph,
        inputs,
        outcome,
        machine,
        fabric: Arc::new(Fabric::new(graph, settings, limits)),
        build,
        part,
        memories: BTreeMap::new(),
        resources: BTreeMap::new(),
        ports: BTreeMap::new(),
    };
    lowering.buffers();
    for (number, section) in sections(graph, inputs, outcome).iter().enumerate() {
        lowering.section(number, section, mapped)?;
    }
    lowering.build.finish()
}

/// What is computed by one unit: a connected part, or several.
struct Section<'a> {
    parts: Range<usize>,
    part: Cow<'a, Part>,
}

/// Each part as it is, or, where there are very many and none of them hangs, all as one: what runs side by side takes the same time so.
fn sections<'a>(
    graph: &Graph,
    inputs: &[Input<'_>],
    outcome: &'a Result<Course, Stop>,
) -> Vec<Section<'a>> {
    let streams: Vec<u64> = inputs.iter().map(|input| input.stream.rows()).collect();
    let parts: Vec<Cow<'a, Part>> = match outcome {
        Ok(course) => course.parts.iter().map(Cow::Borrowed).collect(),
        Err(_) => parts(graph, &streams).into_iter().map(Cow::Owned).collect(),
    };
    let hangs = outcome
        .as_ref()
        .is_ok_and(|course| !course.waiting.is_empty());
    if parts.len() <= OWN_QUEUES || hangs {
        let section = |(number, part)| Section {
            parts: number..number + 1,
            part,
        };
        return (0..).zip(parts).map(section).collect();
    }
    let even = streams.windows(2).all(|pair| pair[0] == pair[1]);
    let mut nodes: Vec<NodeId> = parts.iter().flat_map(|part| &part.nodes).copied().collect();
    nodes.sort_unstable();
    let all = Part {
        nodes,
        regular: even && parts.iter().all(|part| part.regular),
        memories: parts.iter().map(|part| part.memories).sum(),
    };
    vec![Section {
        parts: 0..parts.len(),
        part: Cow::Owned(all),
    }]
}

/// A stream of a port.
struct Channel<'a> {
    node: NodeId,
    /// Which of the graph's input or output ports.
    port: u32,
    name: &'a str,
    /// Whether it says which lanes count. Flags are how the run knows; no hardware moves them.
    flags: bool,
    array: ArrayKind,
    /// In its memory, and at the port.
    buffers: (BufferId, BufferId),
    rows: u64,
    row_bytes: u64,
    /// Of an output that leaves rows out: the rows of the inputs that its own belong to.
    counting: Option<&'a [u64]>,
}

impl Channel<'_> {
    /// Offset and bytes of what belongs to a piece of all rows.
    fn share(&self, chunk: u64, chunks: u64, rows: u64) -> (u64, u64) {
        let (first, count) = match self.counting {
            None => portion(self.rows, chunk, chunks),
            Some(counting) => {
                let (first, count) = portion(rows, chunk, chunks);
                let at = |row| counting.partition_point(|of| *of < row) as u64;
                (at(first), at(first + count) - at(first))
            }
        };
        (first * self.row_bytes, count * self.row_bytes)
    }
}

/// What people call a stream.
fn title(name: &str, flags: bool) -> String {
    format!("{name}{}", if flags { ".valid" } else { "" })
}

struct Lowering<'a, 'm> {
    graph: &'a Graph,
    inputs: &'a [Input<'a>],
    outcome: &'a Result<Course, Stop>,
    machine: &'m Machine,
    fabric: Arc<Fabric<'a>>,
    build: Builder<'a>,
    part: PartId,
    memories: BTreeMap<&'static str, MemoryId>,
    /// By kind of array, reading and writing.
    resources: BTreeMap<(ArrayKind, bool), ResourceId>,
    /// The streams of each port: its rows, and for an output port its flags where there are any.
    ports: BTreeMap<NodeId, Vec<Channel<'a>>>,
}

impl<'a> Lowering<'a, '_> {
    fn memory(&mut self, name: &'static str, kind: MemoryKind) -> MemoryId {
        let build = &mut self.build;
        *self
            .memories
            .entry(name)
            .or_insert_with(|| build.memory(name, MEMORY_BYTES, kind))
    }

    /// The kind of array at the other end of a port; direct memory access where the file names none.
    fn array(&self, port: &GraphPort) -> ArrayKind {
        match port.array.map(|array| &self.graph.nodes[array].kind) {
            Some(NodeKind::Array(array)) => array.kind,
            _ => ArrayKind::Dma,
        }
    }

    /// The two buffers of a stream: in its memory, and at the port.
    fn add_buffers(
        &mut self,
        name: String,
        array: ArrayKind,
        size: u64,
        role: Role,
        initial: &'a [u8],
    ) -> (BufferId, BufferId) {
        let (memory, kind) = match array {
            ArrayKind::Scratchpad => ("scratchpad", MemoryKind::Scratchpad),
            ArrayKind::Register => ("registers", MemoryKind::Registers),
            _ => ("memory", MemoryKind::Dram),
        };
        let (memory, ports) = (
            self.memory(memory, kind),
            self.memory("ports", MemoryKind::Scratchpad),
        );
        let port = Buffer::new(format!("{name}.port"), ports, size, Role::Scratch);
        let memory = Buffer {
            initial: Cow::Borrowed(initial),
            ..Buffer::new(name, memory, size, role)
        };
        (self.build.buffer(memory), self.build.buffer(port))
    }

    /// What is in the buffers of a stream.
    fn hold(&mut self, buffers: (BufferId, BufferId), element: ElementType, shape: &[u64]) {
        for buffer in [buffers.0, buffers.1] {
            self.build.program.buffers[buffer].tensor = Some((element, shape.to_vec()));
        }
    }

    fn buffers(&mut self) {
        let graph = self.graph;
        for ((index, input), (node, body, port)) in (0..).zip(self.inputs).zip(graph.inputs()) {
            let (array, rows) = (self.array(port), input.stream.rows());
            let row_bytes = row_bytes(port) as u64;
            let is_given = input.origin == Origin::Host;
            let (role, initial): (Role, &'a [u8]) = if is_given {
                (Role::Input, &[])
            } else {
                (Role::Constant, &input.stream.bytes)
            };
            let name = body.name.clone();
            let buffers = self.add_buffers(name, array, rows * row_bytes, role, initial);
            self.hold(buffers, input.element, &input.shape);
            if is_given {
                self.build.program.interface.inputs.push(Port {
                    name: body.name.clone(),
                    alias: None,
                    buffer: buffers.0,
                    element: input.element,
                    shape: input.shape.clone(),
                    host_element: None,
                    scale: None,
                });
            }
            let channel = Channel {
                node,
                port: index,
                name: &body.name,
                flags: false,
                array,
                buffers,
                rows,
                row_bytes,
                counting: None,
            };
            self.ports.insert(node, vec![channel]);
        }
        let outcome = self.outcome.as_ref().ok();
        for (index, (node, body, port)) in (0..).zip(graph.outputs()) {
            let count = outcome.and_then(|course| course.counts.get(index as usize));
            let count: &'a Count = match count {
                Some(count) => count,
                None => &NOTHING,
            };
            let mut channels = Vec::with_capacity(1);
            for flags in [false, true]
                .into_iter()
                .filter(|flags| !flags || count.partial)
            {
                let (row_bytes, element) = if flags {
                    (port.lanes.into(), ElementType::UInt8)
                } else {
                    (row_bytes(port) as u64, given_by(graph, body, port))
                };
                let (name, array) = (title(&body.name, flags), self.array(port));
                let (size, role) = (count.rows * row_bytes, Role::Output);
                let buffers = self.add_buffers(name, array, size, role, &[]);
                let shape = vec![count.rows, port.lanes.into()];
                self.hold(buffers, element, &shape);
                self.build.program.interface.outputs.push(Port {
                    name: title(&body.name, flags),
                    alias: None,
                    buffer: buffers.0,
                    element,
                    shape,
                    host_element: None,
                    scale: None,
                });
                channels.push(Channel {
                    node,
                    port: index,
                    name: &body.name,
                    flags,
                    array,
                    buffers,
                    rows: count.rows,
                    row_bytes,
                    counting: count.counting.as_deref(),
                });
            }
            self.ports.insert(node, channels);
        }
    }

    fn resource(&mut self, array: ArrayKind, reads: bool) -> ResourceId {
        let rates = self.machine.rates(array);
        let rate = if reads { rates.read } else { rates.write };
        let capacity = rate * self.machine.clock * 1e6;
        let name = format!("{} {}", array.name(), if reads { "read" } else { "write" });
        let build = &mut self.build;
        *self.resources.entry((array, reads)).or_insert_with(|| {
            let resource = build.resource(name, capacity, capacity);
            build.program.resources[resource].off_chip =
                !matches!(array, ArrayKind::Scratchpad | ArrayKind::Register);
            resource
        })
    }

    /// Adds a task of a node.
    fn task(
        &mut self,
        queue: QueueId,
        node: NodeId,
        kernel: impl Kernel + 'a,
        step: &Step<'_>,
    ) -> Result<(), BuildError> {
        let span = self.graph.nodes[node].span;
        let kernel = self.build.kernel(kernel);
        self.build.task(NewTask {
            waits: step.waits,
            signals: step.signals,
            demands: step.demand.as_slice(),
            fixed: Time::from_cycles(step.cycles, self.machine.clock),
            location: Location {
                part: self.part,
                offset: span.start.into(),
                size: span.end.saturating_sub(span.start),
            },
            ..NewTask::new(queue, kernel)
        })?;
        Ok(())
    }

    fn section(
        &mut self,
        number: usize,
        section: &Section<'_>,
        mapped: Option<Mapped>,
    ) -> Result<(), BuildError> {
        let (graph, inputs) = (self.graph, self.inputs);
        let part = &*section.part;
        let of_part = |id: &NodeId| part.nodes.binary_search(id).is_ok();
        let mut rows = 0;
        let mut in_flight = None;
        for input in inputs.iter().filter(|input| of_part(&input.node)) {
            rows = rows.max(input.stream.rows());
            if let NodeKind::Input(port) = &graph.nodes[input.node].kind
                && self.array(port) == ArrayKind::Recurrence
            {
                in_flight = Some(input.stream.rows());
            }
        }
        let course = self.outcome.as_ref().ok();
        let time = time(graph, part, course, rows, in_flight, mapped);
        let channels = part
            .nodes
            .iter()
            .flat_map(|id| self.ports.remove(id).into_iter().flatten());
        let is_input =
            |channel: &Channel<'_>| matches!(graph.nodes[channel.node].kind, NodeKind::Input(_));
        let (mut reads, mut writes): (Vec<_>, Vec<_>) = channels.partition(is_input);
        if reads.len().max(writes.len()) > OWN_QUEUES {
            reads.sort_by_key(|channel| channel.array);
            writes.sort_by_key(|channel| channel.array);
        }
        let streams = reads.len() + writes.len();
        let most = (STREAM_CHUNKS / streams.max(1) as u64).clamp(1, CHUNKS);
        let pieces = Pieces {
            rows,
            steps: time.steps,
            count: if part.regular { rows.clamp(1, most) } else { 1 },
        };
        let mut arrived = Vec::new();
        for group in together(&reads) {
            let name = group_name(group, number);
            let arrives = Counter::up_to(pieces.count as i64);
            let sync = self.build.counter(format!("arrived {name}"), arrives);
            self.streams(group, &name, pieces, Side::Before(sync))?;
            arrived.push(sync);
        }
        let computes = Counter::up_to(pieces.count as i64);
        let computed = self.build.counter(format!("computed {number}"), computes);
        let queue = self.build.queue(format!("fabric.{number}"), 1);
        let first = self.build.program.tasks.next_idx();
        let node = self.culprit(part).unwrap_or(part.nodes[0]);
        let kernels = self.computations(number, section, pieces, &reads, &writes);
        for (chunk, kernel) in (0..).zip(kernels) {
            let latency = if chunk == 0 { time.latency } else { 0.0 };
            let waits: Vec<Wait> = arrived
                .iter()
                .map(|sync| at_least(*sync, chunk + 1))
                .collect();
            let step = Step {
                waits: &waits,
                signals: &[Signal::on_completion(Action::Add(computed, 1))],
                demand: None,
                cycles: kernel.rows as f64 * time.interval + latency,
            };
            self.task(queue, node, kernel, &step)?;
        }
        self.build.release(queue, first);
        for group in together(&writes) {
            let name = group_name(group, number);
            self.streams(group, &name, pieces, Side::Behind(computed))?;
        }
        Ok(())
    }

    /// What the fabric does with each piece of the rows.
    fn computations(
        &mut self,
        number: usize,
        section: &Section<'_>,
        pieces: Pieces,
        reads: &[Channel<'a>],
        writes: &[Channel<'a>],
    ) -> Vec<Compute<'a>> {
        let part = &*section.part;
        let operations: Arc<str> = operations(self.graph, part).into();
        let fault = self.fault(part);
        let size = (part.memories * REGISTERS * size_of::<u64>()) as u64;
        let registers = (size > 0 && pieces.count > 1).then(|| {
            let memory = self.memory("fabric", MemoryKind::Registers);
            let name = format!("fabric.{number}.registers");
            let words = size / size_of::<u64>() as u64;
            self.build.buffer(Buffer {
                tensor: Some((ElementType::UInt64, vec![words])),
                ..Buffer::new(name, memory, size, Role::Scratch)
            })
        });
        let at_port = |channels: &[Channel<'a>], chunk: u64| {
            let pieces = channels.iter().map(|channel| {
                let (offset, size) = channel.share(chunk, pieces.count, pieces.rows);
                Piece {
                    port: channel.port,
                    flags: channel.flags,
                    buffer: channel.buffers.1,
                    offset,
                    size,
                }
            });
            pieces.collect()
        };
        let compute = |chunk: u64| {
            let (first, count) = portion(pieces.rows, chunk, pieces.count);
            let rows = first as usize..(first + count) as usize;
            let (_, steps) = portion(pieces.steps, chunk, pieces.count);
            Compute {
                fabric: self.fabric.clone(),
                inputs: self.inputs,
                parts: section.parts.clone(),
                span: (pieces.count > 1).then_some(rows),
                rows: steps,
                nodes: part.nodes.len(),
                memories: part.memories,
                operations: operations.clone(),
                takes: at_port(reads, chunk),
                gives: at_port(writes, chunk),
                registers: registers.map(|buffer| Registers {
                    buffer,
                    size,
                    takes: chunk > 0,
                    gives: chunk + 1 < pieces.count,
                }),
                fault: fault.clone(),
            }
        };
        (0..pieces.count).map(compute).collect()
    }

    /// The tasks of streams that come one after the other, one for each piece of the rows.
    fn streams(
        &mut self,
        channels: &[Channel<'a>],
        name: &str,
        pieces: Pieces,
        side: Side,
    ) -> Result<(), BuildError> {
        let reads = matches!(side, Side::Before(_));
        let verb = if reads { "read" } else { "write" };
        let queue = self.build.queue(format!("{verb} {name}"), 1);
        let first = self.build.program.tasks.next_idx();
        let Some((node, array)) = channels.first().map(|first| (first.node, first.array)) else {
            return Ok(());
        };
        let resource = self.resource(array, reads);
        let streams: Arc<str> = name.into();
        for chunk in 0..pieces.count {
            let legs = channels.iter().map(|channel| {
                let (memory, port) = channel.buffers;
                let (from, to) = if reads {
                    (memory, port)
                } else {
                    (port, memory)
                };
                let (offset, size) = channel.share(chunk, pieces.count, pieces.rows);
                Leg {
                    from,
                    to,
                    offset,
                    size,
                }
            });
            let kernel = Move {
                operation: verb,
                streams: streams.clone(),
                legs: legs.collect(),
            };
            let moved = kernel.legs.iter().zip(channels);
            let bytes = moved.filter(|(_, channel)| !channel.flags);
            let bytes = bytes.map(|(leg, _)| leg.size).sum();
            let (waits, signals) = match side {
                Side::Before(arrived) => {
                    (None, Some(Signal::on_completion(Action::Add(arrived, 1))))
                }
                Side::Behind(computed) => (Some(at_least(computed, chunk + 1)), None),
            };
            let step = Step {
                waits: waits.as_slice(),
                signals: signals.as_slice(),
                demand: channels
                    .iter()
                    .any(|channel| !channel.flags)
                    .then_some(Demand { resource, bytes }),
                cycles: 0.0,
            };
            self.task(queue, node, kernel, &step)?;
        }
        self.build.release(queue, first);
        Ok(())
    }

    /// The node on account of which a part cannot be computed.
    fn culprit(&self, part: &Part) -> Option<NodeId> {
        let of_part = |id: &NodeId| part.nodes.binary_search(id).is_ok();
        let waits = |course: &'a Course| {
            let operations = course.waiting.iter().map(|found| found.node);
            operations
                .filter(of_part)
                .find(|id| matches!(self.graph.nodes[*id].kind, NodeKind::Instruction(_)))
        };
        match self.outcome {
            Err(stop) => stop.node().filter(of_part),
            Ok(course) => waits(course).filter(|_| self.fault(part).is_some()),
        }
    }

    /// Why a part cannot be computed.
    fn fault(&self, part: &Part) -> Option<Fault> {
        match self.outcome {
            Err(stop) => {
                let message = stop.message(self.graph);
                Some(if matches!(stop, Stop::Refused(_)) {
                    Fault::unsupported(message)
                } else {
                    Fault::program(message)
                })
            }
            Ok(course) => {
                let of_part = |id: NodeId| part.nodes.binary_search(&id).is_ok();
                let outputs = self
                    .graph
                    .outputs()
                    .zip(&course.counts)
                    .filter(|((id, ..), _)| of_part(*id));
                let nothing = outputs
                    .map(|(_, count)| count)
                    .all(|count| count.rows == 0 && count.dropped == 0);
                let waiting = || course.waiting.iter().filter(|found| of_part(found.node));
                // A part that runs dry has given what there was, nothing perhaps; one that gives nothing while its streams go on hangs.
                let hangs =
                    nothing && waiting().next().is_some() && !waiting().any(|found| found.ended);
                let waiting: Vec<String> =
                    waiting().map(|found| found.message(self.graph)).collect();
                hangs.then(|| Fault::program(format!("nothing comes out: {}", waiting.join("; "))))
            }
        }
    }
}

/// An output port of which nothing is known.
static NOTHING: Count = Count {
    rows: 0,
    dropped: 0,
    partial: false,
    counting: None,
};

/// The rows of a part, the steps that they take, and into how many pieces they are cut.
#[derive(Clone, Copy)]
struct Pieces {
    rows: u64,
    steps: u64,
    count: u64,
}

/// On which side of the fabric a stream is, and what counts its pieces.
#[derive(Clone, Copy)]
enum Side {
    /// It brings rows to a port and counts them.
    Before(SyncId),
    /// It takes rows that were computed and counted.
    Behind(SyncId),
}

/// Streams that have a queue together: each by itself, or in a wide part those of one memory engine.
fn together<'c, 'a>(channels: &'c [Channel<'a>]) -> Vec<&'c [Channel<'a>]> {
    if channels.len() <= OWN_QUEUES {
        return channels.chunks(1).collect();
    }
    channels
        .chunk_by(|one, other| one.array == other.array)
        .collect()
}

/// What people call streams that have a queue together.
fn group_name(channels: &[Channel<'_>], part: usize) -> String {
    match channels {
        [only] => title(only.name, only.flags),
        _ => format!("{} streams of part {part}", channels.len()),
    }
}

fn at_least(sync: SyncId, count: u64) -> Wait {
    Wait {
        sync,
        condition: Condition::AtLeast(count as i64),
    }
}

/// What a task waits for, signals and takes.
struct Step<'s> {
    waits: &'s [Wait],
    signals: &'s [Signal],
    demand: Option<Demand>,
    cycles: f64,
}

/// The operations of a part: `2 Add_I64, Select_I64`.
fn operations(graph: &Graph, part: &Part) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for node in &part.nodes {
        match &graph.nodes[*node].kind {
            NodeKind::Instruction(instruction) => {
                *counts.entry(&instruction.operation).or_insert(0) += 1;
            }
            NodeKind::Composite(composite) => *counts.entry(&composite.name).or_insert(0) += 1,
            _ => {}
        }
    }
    let mut said: Vec<String> = counts
        .iter()
        .take(OPERATIONS)
        .map(|(name, count)| {
            if *count > 1 {
                format!("{count} {name}")
            } else {
                (*name).to_owned()
            }
        })
        .collect();
    if counts.len() > OPERATIONS {
        said.push(format!("{} more kinds", counts.len() - OPERATIONS));
    }
    if said.is_empty() {
        "no operation".to_owned()
    } else {
        said.join(", ")
    }
}

/// First and number of `count` things that belong to a piece.
fn portion(count: u64, piece: u64, pieces: u64) -> (u64, u64) {
    let at = |piece: u64| (count as u128 * piece as u128 / pieces as u128) as u64;
    (at(piece), at(piece + 1) - at(piece))
}
