//! What enters the input ports of a run: what the host gives, and what is made where it gives nothing.

use crate::evaluate::{self, Course, Settings, Stop, Stream, row_bytes};
use crate::graph::{ArrayKind, Graph, Node, NodeId, NodeKind, Operand, Port, Role, Source};
use crate::operations;
use chipless_model::{ElementType, Limits};
use std::borrow::Cow;

/// Rows of a stream where no stream was given.
pub const DEFAULT_ROWS: u64 = 256;
/// Bytes of all streams together where none was given, at most; every port has one row at least.
const DEFAULT_BYTES: u64 = 16 << 20;
/// The part of the limit `memory_bytes` that these may take: a run has them in memory and at the ports, and as much of what comes out.
const SHARE: u64 = 8;

/// Where the rows of a port come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The host gives them, or random ones in their place.
    Host,
    /// A generate engine: 0, 1, 2 and so on, element by element.
    Generated,
    /// Zeros, to begin a recurrence with.
    Zeros,
}

/// The stream of an input port.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// The port.
    pub node: NodeId,
    /// Type of its elements: that of the array that was given, unsigned integers otherwise.
    pub element: ElementType,
    /// Shape of the array: loops, then lanes.
    pub shape: Vec<u64>,
    /// Where it comes from.
    pub origin: Origin,
    /// Its rows.
    pub stream: Stream<'a>,
}

impl Input<'_> {
    /// The same with bytes of its own.
    pub fn into_owned(self) -> Input<'static> {
        Input {
            node: self.node,
            element: self.element,
            shape: self.shape,
            origin: self.origin,
            stream: Stream {
                loops: self.stream.loops,
                bytes: Cow::Owned(self.stream.bytes.into_owned()),
            },
        }
    }
}

/// An array that the host gives for an input port.
#[derive(Clone, Debug)]
pub struct Given<'a> {
    /// Name of the port.
    pub name: String,
    /// Type of its elements; as wide as the port.
    pub element: ElementType,
    /// Its shape: (rows, lanes) or (outer, inner, lanes); without lanes where there is one.
    pub shape: Vec<u64>,
    /// Its elements, row by row.
    pub bytes: Cow<'a, [u8]>,
}

/// Makes the streams of all input ports, in the order of [`Graph::inputs`]. Where the host gives none, `random` fills an array of unsigned
/// integers; its second argument counts the arrays of the host.
///
/// # Errors
/// An array that does not fit its port, or for which there is no port: what was expected and what was found.
pub fn inputs<'a>(
    graph: &Graph,
    given: &'a [Given<'a>],
    random: &mut dyn FnMut(ElementType, usize, &mut [u8]),
    limits: &Limits,
) -> Result<Vec<Input<'a>>, String> {
    for array in given {
        if !graph.inputs().any(|(_, node, _)| node.name == array.name) {
            let names: Vec<&str> = graph.inputs().map(|(_, node, _)| &*node.name).collect();
            return Err(format!(
                "expected the name of an input ({}), found \"{}\"",
                names.join(", "),
                array.name
            ));
        }
    }
    // Streams without an array have the loops of the first one that has.
    let mut loops_of_given = None;
    let mut found = Vec::new();
    for (node, body, port) in graph.inputs() {
        let array = given.iter().find(|array| array.name == body.name);
        let loops = match array {
            Some(array) => Some(loops(array, port.width, u64::from(port.lanes))?),
            None => None,
        };
        if loops_of_given.is_none() {
            loops_of_given.clone_from(&loops);
        }
        found.push((node, body, port, array, loops));
    }
    let default = loops_of_given.unwrap_or_else(|| default_loops(graph, limits));
    let mut budget = limits.memory_bytes;
    let mut hosts = 0;
    let mut streams = Vec::new();
    for (node, body, port, array, loops) in found {
        let kind = port.array.and_then(|array| match &graph.nodes[array].kind {
            NodeKind::Array(array) => Some(array.kind),
            _ => None,
        });
        let origin = match (array, kind) {
            (None, Some(ArrayKind::Generate)) => Origin::Generated,
            (None, Some(ArrayKind::Recurrence)) => Origin::Zeros,
            _ => Origin::Host,
        };
        let bytes_of_row = row_bytes(port);
        let loops = loops.unwrap_or_else(|| match origin {
            // A recurrence begins with as many rows as are in flight, as the compiler says; one at least.
            Origin::Zeros => {
                vec![((port.pragmas.conc / bytes_of_row as f64) as u64).clamp(1, DEFAULT_ROWS)]
            }
            _ => default.clone(),
        });
        let element = array.map_or(unsigned(port.width), |array| array.element);
        let bytes = if let Some(array) = array {
            Cow::Borrowed(&*array.bytes)
        } else {
            let size = loops.iter().fold(bytes_of_row as u64, |size, count| {
                size.saturating_mul(*count)
            });
            budget = budget.checked_sub(size).ok_or_else(|| {
                format!(
                    "input {} takes {size} bytes (--limit memory_bytes)",
                    body.name
                )
            })?;
            let mut bytes = vec![0; size as usize];
            match origin {
                Origin::Host => random(element, hosts, &mut bytes),
                Origin::Generated => {
                    let size = port.width as usize / 8;
                    for (index, element) in (0u64..).zip(bytes.chunks_exact_mut(size)) {
                        element.copy_from_slice(&index.to_le_bytes()[..size]);
                    }
                }
                Origin::Zeros => {}
            }
            Cow::Owned(bytes)
        };
        hosts += usize::from(origin == Origin::Host);
        let shape = array.map_or_else(
            || {
                loops
                    .iter()
                    .copied()
                    .chain([u64::from(port.lanes)])
                    .collect()
            },
            |array| array.shape.clone(),
        );
        streams.push(Input {
            node,
            element,
            shape,
            origin,
            stream: Stream { loops, bytes },
        });
    }
    Ok(streams)
}

/// The loops of streams where no array has any.
fn default_loops(graph: &Graph, limits: &Limits) -> Vec<u64> {
    let stated = graph.inputs().any(|(.., port)| port.stated);
    // Very wide graphs get fewer rows: what nobody asked for should not take long.
    let wide = graph
        .inputs()
        .map(|(.., port)| row_bytes(port) as u64)
        .fold(1, u64::saturating_add);
    let most = DEFAULT_BYTES.min(limits.memory_bytes / SHARE);
    let rows = (most / wide).clamp(1, DEFAULT_ROWS);
    let inner = (rows / 16).max(1);
    if stated {
        vec![rows.min(16), inner]
    } else {
        vec![rows]
    }
}

/// The loops that the rows of an array form.
fn loops(array: &Given<'_>, width: u32, lanes: u64) -> Result<Vec<u64>, String> {
    let Given {
        name,
        element,
        shape,
        ..
    } = array;
    let wrong = || {
        let form = if lanes == 1 {
            "(rows), (rows, 1) or (outer, inner, 1)".to_owned()
        } else {
            format!("(rows, {lanes}) or (outer, inner, {lanes})")
        };
        format!(
            "input {name}: expected elements of {width} bits in the shape {form}, found {element} {shape:?}"
        )
    };
    if element.bits() != u64::from(width) {
        return Err(wrong());
    }
    match &**shape {
        [rows] if lanes == 1 => Ok(vec![*rows]),
        [loops @ .., last] if *last == lanes && !loops.is_empty() => Ok(loops.to_vec()),
        _ => Err(wrong()),
    }
}

/// Unsigned integers of the width of a port.
pub const fn unsigned(width: u32) -> ElementType {
    match width {
        8 => ElementType::UInt8,
        16 => ElementType::UInt16,
        32 => ElementType::UInt32,
        _ => ElementType::UInt64,
    }
}

/// Families of the older operations whose result is one number in floating point.
const FLOATING: [&str; 7] = ["FAdd", "FSub", "FMul", "FDiv", "FMin", "FMax", "FSqrt"];

/// The type of what an output port gives: floating point where every lane is the result of such an operation, of the port's width; otherwise
/// unsigned integers, which say nothing but the width.
pub(crate) fn given_by(graph: &Graph, node: &Node, port: &Port) -> ElementType {
    let is_floating = |operand: &Operand| {
        let Source::Edges(edges) = &operand.source else {
            return false;
        };
        let [edge] = edges.as_slice() else {
            return false;
        };
        let edge = &graph.edges[*edge];
        let NodeKind::Instruction(instruction) = &graph.nodes[edge.source].kind else {
            return false;
        };
        let name = instruction.operation.as_str();
        let newer = name
            .rsplit_once('_')
            .and_then(|(_, kind)| operations::Element::parse(kind))
            .is_some_and(|element| {
                element.kind == operations::ElementKind::Float
                    && (element.bits, element.lanes) == (port.width, 1)
                    && name.starts_with('F')
            });
        let older = FLOATING
            .iter()
            .any(|family| name.strip_prefix(family) == Some(&port.width.to_string()));
        edge.width() == port.width && (newer || older)
    };
    let mut lanes = node
        .operands
        .iter()
        .filter(|o| o.role == Role::Data)
        .peekable();
    match port.width {
        32 if lanes.peek().is_some() && lanes.all(is_floating) => ElementType::Float32,
        64 if lanes.peek().is_some() && lanes.all(is_floating) => ElementType::Float64,
        width => unsigned(width),
    }
}

/// Finds how far these inputs go in a graph.
///
/// # Errors
/// See [`evaluate::course`].
pub fn course(
    graph: &Graph,
    inputs: &[Input<'_>],
    settings: Settings,
    limits: &Limits,
) -> Result<Course, Stop> {
    let streams: Vec<Stream<'_>> = inputs
        .iter()
        .map(|input| Stream {
            loops: input.stream.loops.clone(),
            bytes: Cow::Borrowed(&*input.stream.bytes),
        })
        .collect();
    evaluate::course(graph, &streams, settings, limits)
}
