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

use crate::evaluate::{Evaluation, Part, Stop, parts, row_bytes};
use crate::graph::{ArrayKind, Graph, NodeId, NodeKind, Port as GraphPort};
use crate::inputs::{Input, Origin, given_by};
use crate::kernels::{Compute, Move, Piece};
use crate::machine::Machine;
use crate::timing::{Mapped, time};
use chipless_model::{
    Action, Buffer, BufferId, Condition, Counter, Demand, ElementType, Fault, Interface, Kernel,
    Location, Memory, MemoryId, MemoryKind, PartId, Piece as Release, PieceOrder, Port, Program,
    Queue, QueueId, Resource, ResourceId, Role, Signal, Span, Sync, SyncId, SyncKind, Task, TaskId,
    Time, Wait,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Chunks of a stream, at most: enough to see a pipeline fill and drain.
const CHUNKS: u64 = 64;

/// Streams of a part, at most, that have queues of their own; of a wider part those of one memory engine come one after the other.
const OWN_QUEUES: usize = 64;

/// Tasks of the streams of a part, about: a very wide part is cut into fewer chunks.
const STREAM_TASKS: u64 = 1 << 16;

/// Kinds of operations of a part that its tasks name, at most.
const OPERATIONS: usize = 12;

/// Bytes of memory behind direct memory access and in a scratchpad, and of all ports together: as much as the arrays of the graph need.
const MEMORY_BYTES: u64 = 1 << 40;

/// Makes the program of a graph whose inputs are known and which was evaluated on them (or could not be: then a run says why).
pub fn lower<'a>(
    graph: &'a Graph,
    inputs: &'a [Input<'a>],
    outcome: &'a Result<Evaluation, Stop>,
    machine: &Machine,
    mapped: Option<Mapped>,
) -> Program<'a> {
    let mut lowering = Lowering {
        graph,
        outcome,
        machine,
        program: Program {
            target: "dsa",
            ..Program::default()
        },
        part: PartId::from_raw(0),
        memories: BTreeMap::new(),
        resources: BTreeMap::new(),
        ports: BTreeMap::new(),
    };
    lowering.part = lowering.program.parts.push("file".to_owned());
    lowering.buffers(inputs);
    let streams: Vec<u64> = inputs.iter().map(|input| input.stream.rows()).collect();
    let parts = outcome.as_ref().map_or_else(
        |_| parts(graph, &streams),
        |evaluation| evaluation.parts.clone(),
    );
    let parts = few(parts, &streams, outcome);
    for (number, part) in parts.iter().enumerate() {
        lowering.part(number, part, inputs, mapped);
    }
    lowering.program
}

/// Parts as they are, or, where there are very many and none of them hangs, all as one: what runs side by side takes the same time so.
fn few(parts: Vec<Part>, streams: &[u64], outcome: &Result<Evaluation, Stop>) -> Vec<Part> {
    let hangs = outcome
        .as_ref()
        .is_ok_and(|evaluation| !evaluation.waiting.is_empty());
    if parts.len() <= OWN_QUEUES || hangs {
        return parts;
    }
    let even = streams.windows(2).all(|pair| pair[0] == pair[1]);
    let regular = even && parts.iter().all(|part| part.regular);
    let mut nodes: Vec<NodeId> = parts.into_iter().flat_map(|part| part.nodes).collect();
    nodes.sort_unstable();
    vec![Part { nodes, regular }]
}

/// A stream of a port.
struct Channel<'a> {
    name: &'a str,
    /// `.valid` for flags.
    suffix: &'static str,
    array: ArrayKind,
    memory: BufferId,
    port: BufferId,
    /// What flows, in the order of the rows: the stream, or for each lane whether it counts.
    bytes: &'a [u8],
    row_bytes: u64,
}

struct Lowering<'a, 'm> {
    graph: &'a Graph,
    outcome: &'a Result<Evaluation, Stop>,
    machine: &'m Machine,
    program: Program<'a>,
    part: PartId,
    memories: BTreeMap<&'static str, MemoryId>,
    /// By kind of array, reading and writing.
    resources: BTreeMap<(ArrayKind, bool), ResourceId>,
    /// The streams of each port: its rows, and for an output port its flags where there are any.
    ports: BTreeMap<NodeId, Vec<Channel<'a>>>,
}

impl<'a> Lowering<'a, '_> {
    fn memory(&mut self, name: &'static str, kind: MemoryKind) -> MemoryId {
        let memories = &mut self.program.memories;
        *self.memories.entry(name).or_insert_with(|| {
            memories.push(Memory {
                name: name.to_owned(),
                size: MEMORY_BYTES,
                kind,
            })
        })
    }

    fn buffer(
        &mut self,
        name: String,
        memory: MemoryId,
        size: u64,
        role: Role,
        initial: Cow<'a, [u8]>,
    ) -> BufferId {
        self.program.buffers.push(Buffer {
            initial,
            ..Buffer::new(name, memory, size, role)
        })
    }

    /// The kind of array at the other end of a port; direct memory access where the file names none.
    fn array(&self, port: &GraphPort) -> ArrayKind {
        match port.array.map(|array| &self.graph.nodes[array].kind) {
            Some(NodeKind::Array(array)) => array.kind,
            _ => ArrayKind::Dma,
        }
    }

    /// The two buffers of a stream: in its memory, and at the port.
    fn channel(
        &mut self,
        name: &'a str,
        suffix: &'static str,
        array: ArrayKind,
        role: Role,
        bytes: &'a [u8],
        row_bytes: u64,
    ) -> Channel<'a> {
        let (memory, kind) = match array {
            ArrayKind::Scratchpad => ("scratchpad", MemoryKind::Scratchpad),
            ArrayKind::Register => ("registers", MemoryKind::Registers),
            _ => ("memory", MemoryKind::Dram),
        };
        let (memory, ports) = (
            self.memory(memory, kind),
            self.memory("ports", MemoryKind::Scratchpad),
        );
        let size = bytes.len() as u64;
        let initial = if role == Role::Constant {
            Cow::Borrowed(bytes)
        } else {
            Cow::Borrowed(&[][..])
        };
        let memory = self.buffer(format!("{name}{suffix}"), memory, size, role, initial);
        let port = self.buffer(
            format!("{name}{suffix}.port"),
            ports,
            size,
            Role::Scratch,
            Cow::Borrowed(&[]),
        );
        Channel {
            name,
            suffix,
            array,
            memory,
            port,
            bytes,
            row_bytes,
        }
    }

    fn buffers(&mut self, inputs: &'a [Input<'a>]) {
        let mut interface = Interface::default();
        let graph = self.graph;
        for (input, (id, node, port)) in inputs.iter().zip(graph.inputs()) {
            let role = if input.origin == Origin::Host {
                Role::Input
            } else {
                Role::Constant
            };
            let channel = self.channel(
                &node.name,
                "",
                self.array(port),
                role,
                &input.stream.bytes,
                row_bytes(port) as u64,
            );
            if role == Role::Input {
                let (element, shape) = (input.element, input.shape.clone());
                interface.inputs.push(Port {
                    name: node.name.clone(),
                    buffer: channel.memory,
                    element,
                    shape,
                });
            }
            self.ports.insert(id, vec![channel]);
        }
        for (index, (id, node, port)) in graph.outputs().enumerate() {
            let (array, lanes) = (self.array(port), u64::from(port.lanes));
            let rows = self
                .outcome
                .as_ref()
                .ok()
                .and_then(|evaluation| evaluation.outputs.get(index));
            let count = rows.map_or(0, |rows| rows.count);
            let data = self.channel(
                &node.name,
                "",
                array,
                Role::Output,
                rows.map_or(&[], |rows| &rows.bytes),
                row_bytes(port) as u64,
            );
            let shape = vec![count, lanes];
            let output = |name: String, channel: &Channel<'_>, element| Port {
                name,
                buffer: channel.memory,
                element,
                shape: shape.clone(),
            };
            interface.outputs.push(output(
                node.name.clone(),
                &data,
                given_by(graph, node, port),
            ));
            let mut channels = vec![data];
            if let Some(valid) = rows.and_then(|rows| rows.valid.as_deref()) {
                let flags = self.channel(&node.name, ".valid", array, Role::Output, valid, lanes);
                interface.outputs.push(output(
                    format!("{}.valid", node.name),
                    &flags,
                    ElementType::UInt8,
                ));
                channels.push(flags);
            }
            self.ports.insert(id, channels);
        }
        self.program.interface = interface;
    }

    fn queue(&mut self, name: String) -> QueueId {
        self.program.queues.push(Queue {
            name,
            servers: 1,
            order: PieceOrder::Release,
        })
    }

    fn sync(&mut self, name: String, most: u64) -> SyncId {
        let kind = SyncKind::Counter(Counter::up_to(most as i64));
        self.program.syncs.push(Sync { name, kind })
    }

    fn resource(&mut self, array: ArrayKind, reads: bool) -> ResourceId {
        let rates = self.machine.rates(array);
        let rate = if reads { rates.read } else { rates.write };
        let capacity = rate * self.machine.clock * 1e6;
        let name = format!("{} {}", array.name(), if reads { "read" } else { "write" });
        let resources = &mut self.program.resources;
        *self.resources.entry((array, reads)).or_insert_with(|| {
            resources.push(Resource {
                name,
                capacity,
                per_transfer: capacity,
                off_chip: !matches!(array, ArrayKind::Scratchpad | ArrayKind::Register),
            })
        })
    }

    fn task(
        &mut self,
        queue: QueueId,
        index: u64,
        node: NodeId,
        kernel: Box<dyn Kernel + 'a>,
        step: Step<'_>,
    ) {
        let span = self.graph.nodes[node].span;
        let program = &mut self.program;
        let kernel = program.kernels.push(kernel);
        let waits = Span::push(
            &mut program.waits,
            step.waits.iter().map(|(sync, count)| Wait {
                sync: *sync,
                condition: Condition::AtLeast(*count as i64),
            }),
        );
        let signals = Span::push(
            &mut program.signals,
            step.signals
                .iter()
                .map(|sync| Signal::on_completion(Action::Add(*sync, 1))),
        );
        let demands = Span::push(&mut program.demands, step.demand);
        let location = Location {
            part: self.part,
            offset: span.start.into(),
            size: span.end.saturating_sub(span.start),
        };
        let fixed = Time::from_cycles(step.cycles, self.machine.clock);
        program.tasks.push(Task {
            queue,
            index: index as u32,
            kernel,
            waits,
            signals,
            demands,
            fixed,
            location,
            label: None,
        });
    }

    /// Releases the tasks of a queue from `first` on.
    fn release(&mut self, queue: QueueId, first: TaskId) {
        let count = (self.program.tasks.len() - first.index()) as u32;
        let piece = self.program.pieces.push(Release {
            queue,
            first,
            count,
        });
        self.program.initial.push(piece);
    }

    fn part(
        &mut self,
        number: usize,
        part: &Part,
        inputs: &'a [Input<'a>],
        mapped: Option<Mapped>,
    ) {
        let graph = self.graph;
        let evaluation = self.outcome.as_ref().ok();
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
        let time = time(graph, part, evaluation, rows, in_flight, mapped);
        let channels: Vec<(NodeId, Channel<'a>)> = part
            .nodes
            .iter()
            .flat_map(|id| {
                self.ports
                    .remove(id)
                    .into_iter()
                    .flatten()
                    .map(|channel| (*id, channel))
            })
            .collect();
        let is_input = |id: &NodeId| matches!(graph.nodes[*id].kind, NodeKind::Input(_));
        let (mut reads, mut writes): (Vec<_>, Vec<_>) =
            channels.into_iter().partition(|(id, _)| is_input(id));
        if reads.len().max(writes.len()) > OWN_QUEUES {
            reads.sort_by_key(|(_, channel)| channel.array);
            writes.sort_by_key(|(_, channel)| channel.array);
        }
        let streams = reads.len() + writes.len();
        let most = (STREAM_TASKS / streams.max(1) as u64).clamp(1, CHUNKS);
        let chunks = if part.regular { rows.clamp(1, most) } else { 1 };
        let mut arrived = Vec::new();
        for group in together(&reads) {
            let count = group.len() as u64;
            let name = match group {
                [(_, only)] => only.name.to_owned(),
                _ => format!("{count} streams of part {number}"),
            };
            let sync = self.sync(format!("arrived {name}"), chunks * count);
            self.streams(group, &name, chunks, Side::Before(sync));
            arrived.push((sync, count));
        }
        let computed = self.sync(format!("computed {number}"), chunks);
        let operations: Arc<str> = operations(graph, part).into();
        let queue = self.queue(format!("fabric.{number}"));
        let first = self.program.tasks.next_idx();
        let (fault, culprit) = (self.fault(part), self.culprit(part));
        for chunk in 0..chunks {
            let pieces = |channels: &[(NodeId, Channel<'a>)]| -> Vec<Piece<'a>> {
                let pieces = channels.iter().map(|(_, channel)| {
                    let (offset, size) = share(channel, chunk, chunks);
                    let bytes = &channel.bytes[offset as usize..(offset + size) as usize];
                    Piece {
                        buffer: channel.port,
                        offset,
                        bytes,
                        name: channel.name,
                    }
                });
                pieces.filter(|piece| !piece.bytes.is_empty()).collect()
            };
            let steps = portion(time.steps, chunk, chunks);
            let cycles =
                steps.1 as f64 * time.interval + if chunk == 0 { time.latency } else { 0.0 };
            let kernel = Compute {
                rows: steps.1,
                nodes: part.nodes.len(),
                operations: operations.clone(),
                takes: pieces(&reads),
                gives: pieces(&writes),
                fault: fault.clone(),
            };
            let waits: Vec<(SyncId, u64)> = arrived
                .iter()
                .map(|(sync, count)| (*sync, (chunk + 1) * count))
                .collect();
            let step = Step {
                waits: &waits,
                signals: &[computed],
                demand: None,
                cycles,
            };
            self.task(
                queue,
                chunk,
                culprit.unwrap_or(part.nodes[0]),
                Box::new(kernel),
                step,
            );
        }
        self.release(queue, first);
        for group in together(&writes) {
            let name = match group {
                [(_, only)] => format!("{}{}", only.name, only.suffix),
                _ => format!("{} streams of part {number}", group.len()),
            };
            self.streams(group, &name, chunks, Side::Behind(computed));
        }
    }

    /// The tasks of streams that come one after the other, each with one for each chunk.
    fn streams(&mut self, channels: &[(NodeId, Channel<'a>)], name: &str, chunks: u64, side: Side) {
        let reads = matches!(side, Side::Before(_));
        let verb = if reads { "read" } else { "write" };
        let queue = self.queue(format!("{verb} {name}"));
        let first = self.program.tasks.next_idx();
        for chunk in 0..chunks {
            for (index, (node, channel)) in (0..).zip(channels) {
                let (from, to) = if reads {
                    (channel.memory, channel.port)
                } else {
                    (channel.port, channel.memory)
                };
                let (offset, size) = share(channel, chunk, chunks);
                let kernel = Move {
                    operation: verb,
                    port: channel.name,
                    from,
                    to,
                    offset,
                    size,
                };
                // Flags are how the run knows what counts; no hardware moves them.
                let resource = self.resource(channel.array, reads);
                let demand = channel.suffix.is_empty().then_some(Demand {
                    resource,
                    bytes: size,
                });
                let (waits, signals) = match side {
                    Side::Before(arrived) => (None, Some(arrived)),
                    Side::Behind(computed) => (Some((computed, chunk + 1)), None),
                };
                let step = Step {
                    waits: waits.as_slice(),
                    signals: signals.as_slice(),
                    demand,
                    cycles: 0.0,
                };
                let number = chunk * channels.len() as u64 + index;
                self.task(queue, number, *node, Box::new(kernel), step);
            }
        }
        self.release(queue, first);
    }

    /// The node on account of which a part cannot be computed.
    fn culprit(&self, part: &Part) -> Option<NodeId> {
        let of_part = |id: &NodeId| part.nodes.binary_search(id).is_ok();
        let waits = |evaluation: &'a Evaluation| {
            let operations = evaluation.waiting.iter().map(|found| found.node);
            operations
                .filter(of_part)
                .find(|id| matches!(self.graph.nodes[*id].kind, NodeKind::Instruction(_)))
        };
        match self.outcome {
            Err(stop) => stop.node().filter(of_part),
            Ok(evaluation) => waits(evaluation).filter(|_| self.fault(part).is_some()),
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
            Ok(evaluation) => {
                let of_part = |id: NodeId| part.nodes.binary_search(&id).is_ok();
                let outputs = self
                    .graph
                    .outputs()
                    .zip(&evaluation.outputs)
                    .filter(|((id, ..), _)| of_part(*id));
                let nothing = outputs
                    .map(|(_, rows)| rows)
                    .all(|rows| rows.count == 0 && rows.dropped == 0);
                let waiting = || {
                    evaluation
                        .waiting
                        .iter()
                        .filter(|found| of_part(found.node))
                };
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

/// On which side of the fabric a stream is, and what counts its chunks.
#[derive(Clone, Copy)]
enum Side {
    /// It brings rows to a port and counts them.
    Before(SyncId),
    /// It takes rows that were computed and counted.
    Behind(SyncId),
}

/// Streams that have a queue together: each by itself, or in a wide part those of one memory engine.
fn together<'c, 'a>(channels: &'c [(NodeId, Channel<'a>)]) -> Vec<&'c [(NodeId, Channel<'a>)]> {
    if channels.len() <= OWN_QUEUES {
        return channels.chunks(1).collect();
    }
    channels
        .chunk_by(|(_, one), (_, other)| one.array == other.array)
        .collect()
}

/// What a task waits for, signals and takes.
#[derive(Clone, Copy)]
struct Step<'s> {
    /// Counters, and what they must have counted.
    waits: &'s [(SyncId, u64)],
    signals: &'s [SyncId],
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

/// First and number of `count` things that belong to a chunk.
fn portion(count: u64, chunk: u64, chunks: u64) -> (u64, u64) {
    let at = |chunk: u64| (count as u128 * chunk as u128 / chunks as u128) as u64;
    (at(chunk), at(chunk + 1) - at(chunk))
}

/// Offset and bytes of a chunk of a stream.
fn share(channel: &Channel<'_>, chunk: u64, chunks: u64) -> (u64, u64) {
    let rows = channel.bytes.len() as u64 / channel.row_bytes;
    let (first, count) = portion(rows, chunk, chunks);
    (first * channel.row_bytes, count * channel.row_bytes)
}
