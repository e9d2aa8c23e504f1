//! A graph as the mapper sees it: vertices to be placed, wires between them, nets that wires of one value share.

use chipless_dsa::graph::{ArrayKind, EdgeId, Graph, Node, NodeId, NodeKind, Role, Source};
use chipless_dsa::operations;
use std::collections::HashMap;

/// What a vertex is placed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// An input port.
    Input,
    /// An output port.
    Output,
    /// A processing element.
    Unit,
}

/// A node that takes part in the fabric.
#[derive(Clone, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent properties of a node"
)]
pub(crate) struct Vertex {
    pub(crate) node: NodeId,
    pub(crate) place: Place,
    /// Bits of a lane, or of the operation.
    pub(crate) width: u32,
    /// Cycles from operands to result.
    pub(crate) latency: i32,
    /// Cycles from one start to the next.
    pub(crate) throughput: i32,
    /// Whether it reads a register that its own result is written to.
    pub(crate) recurs: bool,
    /// Whether it shares its element in time.
    pub(crate) temporal: bool,
    /// Operations that its element must know.
    pub(crate) operations: Vec<String>,
    /// Highest register that it reads or writes, plus one.
    pub(crate) registers: u32,
    /// Whether an operand drives its control table.
    pub(crate) control: bool,
    /// Whether its own result drives its control table.
    pub(crate) self_control: bool,
    /// Values that it makes.
    pub(crate) results: usize,
    /// Lanes of a port.
    pub(crate) lanes: u32,
    /// Whether the port brings or takes state.
    pub(crate) stated: bool,
    pub(crate) array: Option<NodeId>,
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
}

impl Vertex {
    /// With the registers and results of a node; what its kind says is not known yet.
    fn new(graph: &Graph, node: NodeId, body: &Node) -> Vertex {
        let read = body
            .operands
            .iter()
            .filter_map(|operand| match operand.source {
                Source::Register(register) => Some(u32::from(register) + 1),
                _ => None,
            });
        let written = body.values.iter().flat_map(|value| {
            value
                .registers
                .iter()
                .map(|register| u32::from(*register) + 1)
        });
        let recurs = read
            .clone()
            .any(|register| written.clone().any(|own| own == register));
        Vertex {
            node,
            place: Place::Unit,
            width: 64,
            latency: 0,
            throughput: 1,
            recurs,
            temporal: graph
                .groups
                .get(body.group)
                .is_some_and(|group| group.temporal),
            operations: Vec::new(),
            registers: read.chain(written).max().unwrap_or(0),
            control: false,
            self_control: false,
            results: body.values.len(),
            lanes: 0,
            stated: false,
            array: None,
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }

    /// Whether it is a port with several lanes that its group takes in turns.
    pub(crate) fn takes_turns(&self) -> bool {
        self.temporal && self.place != Place::Unit && self.lanes > 1
    }
}

/// An edge between two vertices.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) edge: EdgeId,
    pub(crate) source: usize,
    pub(crate) sink: usize,
    pub(crate) net: usize,
    pub(crate) width: u32,
    /// Lowest bit of the value that it carries.
    pub(crate) low: u32,
    /// Bit of the operand that it begins at.
    pub(crate) offset: u32,
    /// Operand of the sink.
    pub(crate) operand: u32,
    /// Which value of the source.
    pub(crate) value: u32,
    /// Cycles from the operands of the source until the value is ready: its latency, and for a lane of a port that is taken in turns
    /// those of the lanes before it.
    pub(crate) ready: i32,
    /// Whether both ends are instructions of temporal groups: only then it may take links that are shared in time.
    pub(crate) may_share: bool,
}

impl Wire {
    /// Cycles from the operands of the source to the sink on a way of so many links; the first takes none.
    pub(crate) fn flight(&self, links: i32) -> i32 {
        self.ready + (links - 1).max(0)
    }
}

/// Wires that may share links.
#[derive(Clone, Debug)]
pub(crate) struct Net {
    pub(crate) source: usize,
    /// Value of the source; of a temporal port the first.
    pub(crate) value: u32,
    /// Bits from the lowest of the value to the highest that a wire carries.
    pub(crate) width: u32,
    /// Whether it is the state of a stream, from the first link of its port.
    pub(crate) state: bool,
    /// Whether its values take their links in turns.
    pub(crate) in_turns: bool,
    pub(crate) wires: Vec<usize>,
}

/// An array and the ports on it.
#[derive(Clone, Debug)]
pub(crate) struct ArrayUse {
    pub(crate) node: NodeId,
    pub(crate) kind: ArrayKind,
    pub(crate) size: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) vertices: Vec<Vertex>,
    pub(crate) wires: Vec<Wire>,
    pub(crate) nets: Vec<Net>,
    pub(crate) arrays: Vec<ArrayUse>,
    /// Vertices, sources before sinks.
    pub(crate) order: Vec<usize>,
}

/// What keeps wires apart on a link.
#[derive(PartialEq, Eq, Hash)]
enum NetKey {
    /// A value, or parts of it.
    Value(NodeId, u32),
    /// Everything from or to a port that its group uses in turns.
    Port(NodeId, bool),
}

impl Kernel {
    /// `gathers`: the values of a temporal output port come on one link in turns, from one element; otherwise each on its own.
    pub(crate) fn new(graph: &Graph, gathers: bool) -> Result<Kernel, String> {
        let mut kernel = Kernel {
            vertices: Vec::new(),
            wires: Vec::new(),
            nets: Vec::new(),
            arrays: Vec::new(),
            order: Vec::new(),
        };
        let mut vertex_of: HashMap<NodeId, usize> = HashMap::new();
        for (node, body) in graph.nodes.iter_enumerated() {
            let mut vertex = Vertex::new(graph, node, body);
            match &body.kind {
                NodeKind::Array(array) => {
                    kernel.arrays.push(ArrayUse {
                        node,
                        kind: array.kind,
                        size: array.size,
                    });
                    continue;
                }
                NodeKind::Input(port) | NodeKind::Output(port) => {
                    vertex.place = if matches!(body.kind, NodeKind::Input(_)) {
                        Place::Input
                    } else {
                        Place::Output
                    };
                    vertex.width = port.width;
                    vertex.lanes = port.lanes;
                    vertex.stated = port.stated;
                    vertex.array = port.array;
                }
                NodeKind::Instruction(instruction) => {
                    let Some(known) = operations::lookup(&instruction.operation) else {
                        return Err(format!(
                            "the operation {} of {} is unknown",
                            instruction.operation,
                            label(graph, node)
                        ));
                    };
                    vertex.width = known.width;
                    vertex.latency = known.latency as i32;
                    vertex.throughput = known.throughput.max(1) as i32;
                    vertex.operations = vec![instruction.operation.clone()];
                    vertex.control = instruction.control.is_some();
                    vertex.self_control = instruction.self_control.is_some();
                }
                NodeKind::Composite(composite) => {
                    for (operation, _) in &composite.units {
                        let Some(known) = operations::lookup(operation) else {
                            return Err(format!(
                                "the operation {operation} of {} is unknown",
                                label(graph, node)
                            ));
                        };
                        vertex.latency = vertex.latency.max(known.latency as i32);
                        vertex.throughput = vertex.throughput.max(known.throughput as i32);
                        vertex.operations.push(operation.clone());
                    }
                }
            }
            vertex_of.insert(node, kernel.vertices.len());
            kernel.vertices.push(vertex);
        }
        kernel.connect(graph, &vertex_of, gathers);
        kernel.sort()?;
        Ok(kernel)
    }

    fn connect(&mut self, graph: &Graph, vertex_of: &HashMap<NodeId, usize>, gathers: bool) {
        let mut net_of: HashMap<NetKey, usize> = HashMap::new();
        for (edge, body) in graph.edges.iter_enumerated() {
            let (Some(&source), Some(&sink)) =
                (vertex_of.get(&body.source), vertex_of.get(&body.sink))
            else {
                continue;
            };
            let (from, to) = (&self.vertices[source], &self.vertices[sink]);
            let operand = graph.nodes[body.sink].operands.get(body.operand as usize);
            let offset = match operand.map(|operand| &operand.source) {
                Some(Source::Edges(edges)) => edges
                    .iter()
                    .take_while(|other| **other != edge)
                    .filter_map(|other| graph.edges.get(*other))
                    .map(chipless_dsa::graph::Edge::width)
                    .sum(),
                _ => 0,
            };
            let state = from.place == Place::Input && from.stated && body.value == 0
                || operand.is_some_and(|operand| operand.role == Role::State);
            let key = if state {
                NetKey::Value(body.source, body.value)
            } else if from.temporal && from.place == Place::Input {
                NetKey::Port(from.node, false)
            } else if gathers && to.takes_turns() && from.temporal && from.place == Place::Unit {
                NetKey::Port(to.node, true)
            } else {
                NetKey::Value(body.source, body.value)
            };
            let in_turns = matches!(key, NetKey::Port(..));
            let ready = if from.place == Place::Input && from.temporal && !state {
                (body.value - u32::from(from.stated)) as i32
            } else {
                from.latency
            };
            let may_share = [from, to]
                .iter()
                .all(|end| end.temporal && end.place == Place::Unit);
            let net = *net_of.entry(key).or_insert_with(|| {
                self.nets.push(Net {
                    source,
                    value: body.value,
                    width: 0,
                    state,
                    in_turns,
                    wires: Vec::new(),
                });
                self.nets.len() - 1
            });
            self.nets[net].width = self.nets[net].width.max(body.high + 1);
            let wire = self.wires.len();
            self.nets[net].wires.push(wire);
            self.vertices[source].outputs.push(wire);
            self.vertices[sink].inputs.push(wire);
            let width = body.width();
            self.wires.push(Wire {
                edge,
                source,
                sink,
                net,
                width,
                low: body.low,
                offset,
                operand: body.operand,
                value: body.value,
                ready,
                may_share,
            });
        }
    }

    /// Vertices that one element must hold together: what comes to a port in turns comes from one place.
    pub(crate) fn together(&self) -> Vec<Vec<usize>> {
        let mut of: Vec<usize> = (0..self.vertices.len()).collect();
        for net in &self.nets {
            let sources = net.wires.iter().map(|wire| self.wires[*wire].source);
            let mut sources = sources.filter(|source| self.vertices[*source].place == Place::Unit);
            if let Some(first) = sources.next().filter(|_| net.in_turns) {
                for other in sources {
                    let (one, two) = (of[first], of[other]);
                    of.iter_mut()
                        .filter(|of| **of == two)
                        .for_each(|of| *of = one);
                }
            }
        }
        let mut clusters: Vec<Vec<usize>> = Vec::new();
        let mut number = vec![usize::MAX; of.len()];
        for (vertex, first) in of.into_iter().enumerate() {
            if number[first] == usize::MAX {
                number[first] = clusters.len();
                clusters.push(Vec::new());
            }
            clusters[number[first]].push(vertex);
        }
        clusters
    }

    /// The parts of the graph that no wire connects, in each sources before sinks; and the part of each vertex.
    pub(crate) fn parts(&self) -> (Vec<Vec<usize>>, Vec<usize>) {
        let mut part_of = vec![usize::MAX; self.vertices.len()];
        let mut count = 0;
        for first in 0..self.vertices.len() {
            if part_of[first] != usize::MAX {
                continue;
            }
            let mut queue = vec![first];
            part_of[first] = count;
            while let Some(at) = queue.pop() {
                let body = &self.vertices[at];
                let before = body.inputs.iter().map(|wire| self.wires[*wire].source);
                let behind = body.outputs.iter().map(|wire| self.wires[*wire].sink);
                for other in before.chain(behind) {
                    if part_of[other] == usize::MAX {
                        part_of[other] = count;
                        queue.push(other);
                    }
                }
            }
            count += 1;
        }
        let mut parts = vec![Vec::new(); count];
        for &vertex in &self.order {
            parts[part_of[vertex]].push(vertex);
        }
        (parts, part_of)
    }

    /// Whether some port is used in turns.
    pub(crate) fn gathers(&self) -> bool {
        let takes = |vertex: &Vertex| vertex.takes_turns() && vertex.place == Place::Output;
        self.vertices.iter().any(takes)
    }

    fn sort(&mut self) -> Result<(), String> {
        let mut waiting: Vec<usize> = self
            .vertices
            .iter()
            .map(|vertex| vertex.inputs.len())
            .collect();
        let mut ready: Vec<usize> = (0..self.vertices.len())
            .filter(|v| waiting[*v] == 0)
            .collect();
        let mut next = 0;
        while let Some(&vertex) = ready.get(next) {
            next += 1;
            for wire in &self.vertices[vertex].outputs {
                let sink = self.wires[*wire].sink;
                waiting[sink] -= 1;
                if waiting[sink] == 0 {
                    ready.push(sink);
                }
            }
        }
        if ready.len() < self.vertices.len() {
            return Err("the graph has a cycle that no array breaks".to_owned());
        }
        self.order = ready;
        Ok(())
    }
}

/// A node as people call it.
pub(crate) fn label(graph: &Graph, node: NodeId) -> String {
    let body = &graph.nodes[node];
    match &body.kind {
        NodeKind::Instruction(instruction) if body.name.is_empty() => {
            format!("{} (node {})", instruction.operation, node.index())
        }
        NodeKind::Instruction(instruction) => format!("{} = {}", body.name, instruction.operation),
        NodeKind::Composite(composite) if body.name.is_empty() => {
            format!("{} (node {})", composite.name, node.index())
        }
        _ => body.name.clone(),
    }
}
