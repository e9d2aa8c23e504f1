//! A graph as the mapper sees it: vertices to be placed, wires between them, nets that wires of one value share.

use crate::graph::{ArrayKind, EdgeId, Graph, NodeId, NodeKind, Role, Source};
use crate::operations;
use std::collections::HashMap;

/// What a vertex is placed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
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
pub(super) struct Vertex {
    pub(super) node: NodeId,
    pub(super) place: Place,
    /// Bits of a lane, or of the operation.
    pub(super) width: u32,
    /// Cycles from operands to result.
    pub(super) latency: i32,
    /// Whether it shares its element in time.
    pub(super) temporal: bool,
    pub(super) group: usize,
    /// Operations that its element must know.
    pub(super) operations: Vec<String>,
    /// Highest register that it reads or writes, plus one.
    pub(super) registers: u32,
    /// Whether an operand drives its control table.
    pub(super) control: bool,
    /// Whether its own result drives its control table.
    pub(super) self_control: bool,
    /// Values that it makes.
    pub(super) results: usize,
    /// Lanes of a port.
    pub(super) lanes: u32,
    /// Whether the port brings or takes state.
    pub(super) stated: bool,
    pub(super) array: Option<NodeId>,
    pub(super) inputs: Vec<usize>,
    pub(super) outputs: Vec<usize>,
}

/// An edge between two vertices.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    pub(super) edge: EdgeId,
    pub(super) source: usize,
    pub(super) sink: usize,
    pub(super) net: usize,
    pub(super) width: u32,
    /// Lowest bit of the value that it carries.
    pub(super) low: u32,
    /// Bit of the operand that it begins at.
    pub(super) offset: u32,
    /// Operand of the sink.
    pub(super) operand: u32,
    /// Whether it takes part in timing: neither end shares its element in time.
    pub(super) timed: bool,
}

/// Wires that may share links.
#[derive(Clone, Debug)]
pub(super) struct Net {
    pub(super) source: usize,
    /// Value of the source; of a temporal port the first.
    pub(super) value: u32,
    /// Bits from the lowest of the value to the highest that a wire carries.
    pub(super) width: u32,
    /// Whether it is the state of a stream, from the first link of its port.
    pub(super) state: bool,
    pub(super) wires: Vec<usize>,
}

/// An array and the ports on it.
#[derive(Clone, Debug)]
pub(super) struct ArrayUse {
    pub(super) node: NodeId,
    pub(super) kind: ArrayKind,
    pub(super) size: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) vertices: Vec<Vertex>,
    pub(super) wires: Vec<Wire>,
    pub(super) nets: Vec<Net>,
    pub(super) arrays: Vec<ArrayUse>,
    /// Vertices, sources before sinks.
    pub(super) order: Vec<usize>,
}

/// What keeps wires apart on a link.
#[derive(PartialEq, Eq, Hash)]
enum NetKey {
    /// A value, or parts of it.
    Value(NodeId, u32),
    /// Everything from or to a port that its group uses in turn.
    Port(NodeId, bool),
}

impl Kernel {
    pub(super) fn new(graph: &Graph) -> Result<Kernel, String> {
        let mut kernel = Kernel {
            vertices: Vec::new(),
            wires: Vec::new(),
            nets: Vec::new(),
            arrays: Vec::new(),
            order: Vec::new(),
        };
        let mut vertex_of: HashMap<NodeId, usize> = HashMap::new();
        for (node, body) in graph.nodes.iter_enumerated() {
            let mut vertex = Vertex {
                node,
                place: Place::Unit,
                width: 64,
                latency: 0,
                temporal: graph
                    .groups
                    .get(body.group)
                    .is_some_and(|group| group.temporal),
                group: body.group.index(),
                operations: Vec::new(),
                registers: 0,
                control: false,
                self_control: false,
                results: body.values.len(),
                lanes: 0,
                stated: false,
                array: None,
                inputs: Vec::new(),
                outputs: Vec::new(),
            };
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
                        vertex.operations.push(operation.clone());
                    }
                }
            }
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
            vertex.registers = read.chain(written).max().unwrap_or(0);
            vertex_of.insert(node, kernel.vertices.len());
            kernel.vertices.push(vertex);
        }
        kernel.connect(graph, &vertex_of);
        kernel.sort()?;
        Ok(kernel)
    }

    fn connect(&mut self, graph: &Graph, vertex_of: &HashMap<NodeId, usize>) {
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
                    .map(super::super::graph::Edge::width)
                    .sum(),
                _ => 0,
            };
            let state = from.place == Place::Input && from.stated && body.value == 0
                || operand.is_some_and(|operand| operand.role == Role::State);
            let key = if state {
                NetKey::Value(body.source, body.value)
            } else if from.temporal && from.place == Place::Input {
                NetKey::Port(from.node, false)
            } else if to.temporal && to.place == Place::Output && from.temporal {
                NetKey::Port(to.node, true)
            } else {
                NetKey::Value(body.source, body.value)
            };
            let net = *net_of.entry(key).or_insert_with(|| {
                self.nets.push(Net {
                    source,
                    value: body.value,
                    width: 0,
                    state,
                    wires: Vec::new(),
                });
                self.nets.len() - 1
            });
            self.nets[net].width = self.nets[net].width.max(body.high + 1);
            let timed = !from.temporal && !to.temporal;
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
                timed,
            });
        }
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
pub(super) fn label(graph: &Graph, node: NodeId) -> String {
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
