//! The mapping file: the layout of the scheduler's `sched_adg.json`, with what that leaves out beside it.
//!
//! Read are an object with `Vertices` and `Edges`, and whole ADG files with `Workloads[0].Schedules[0]`. Ports are named by the number
//! in the whole graph there (`OutputVectorPort.9`), links by the number among their kind (`OutputVectorPort`, 0); both are understood
//! in both places, the links deciding.

use crate::{Claim, Hop, Location, Mapping, Route, rules};
use chipless_dsa::adg::json::{Cursor, Error};
use chipless_dsa::adg::{Adg, ElementId, ElementKind, LinkId};
use chipless_dsa::graph::{ArrayKind, EdgeId, Graph, NodeId, NodeKind};
use chipless_model::{Limits, Place};
use serde_json::{Value, json};

/// Whether a file looks like a mapping.
pub fn looks_like_mapping(bytes: &[u8]) -> bool {
    let has = |word: &str| memchr::memmem::find(bytes, word.as_bytes()).is_some();
    has("\"Vertices\"") && has("\"MappedNodeId\"")
}

/// Reads a mapping of a graph onto a fabric.
///
/// # Errors
/// Text that is no JSON, a field that is missing or of another type, names of things that are not there.
pub fn read(bytes: &[u8], graph: &Graph, adg: &Adg, limits: &Limits) -> Result<Mapping, Error> {
    if bytes.len() as u64 > limits.json_bytes.min(MOST_BYTES) {
        let message = format!(
            "{} bytes of JSON exceed the limit json_bytes = {}",
            bytes.len(),
            limits.json_bytes.min(MOST_BYTES)
        );
        return Err(Box::new(rules::SYNTAX.at(Place::file(), message)));
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let place = Place::file().at(format!("line {}, column {}", error.line(), error.column()));
        Box::new(rules::SYNTAX.at(place, error.to_string()))
    })?;
    let root = Cursor::root(&value);
    if root.get("Vertices").is_none() && root.get("Workloads").is_some() {
        let workloads = root.need("Workloads")?;
        let Some(workload) = workloads.items()?.next() else {
            return Err(workloads.error(&rules::FIELD, "expected a workload, found none"));
        };
        let schedules = workload.need("Schedules")?;
        let Some(schedule) = schedules.items()?.next() else {
            return Err(schedules.error(&rules::FIELD, "expected a schedule, found none"));
        };
        return schedule_of(&schedule, graph, adg);
    }
    schedule_of(&root, graph, adg)
}

/// Bytes of a file: a parsed document takes many times that in memory.
const MOST_BYTES: u64 = 64 << 20;

fn schedule_of(root: &Cursor<'_>, graph: &Graph, adg: &Adg) -> Result<Mapping, Error> {
    let mut mapping = Mapping::empty(graph);
    root.get("Name")
        .and_then(|name| name.value.as_str())
        .unwrap_or_default()
        .clone_into(&mut mapping.name);
    let edges = root.need("Edges")?;
    let mut seen = vec![false; graph.edges.len()];
    for edge in edges.items()? {
        let number = edge.need("EdgeId")?;
        let id = EdgeId::new(number.number()? as usize);
        let Some(known) = graph.edges.get(id) else {
            return Err(number.error(
                &rules::UNKNOWN,
                format!(
                    "the graph has {} edges, found number {}",
                    graph.edges.len(),
                    id.index()
                ),
            ));
        };
        if std::mem::replace(&mut seen[id.index()], true) {
            return Err(number.error(
                &rules::TWICE,
                format!("edge {} is mapped twice", id.index()),
            ));
        }
        for (key, expected) in [("SourceId", known.source), ("SinkId", known.sink)] {
            if let Some(end) = edge.get(key)
                && end.number()? as usize != expected.index()
            {
                let message = format!(
                    "edge {} has the {key} {} in the graph, found {}",
                    id.index(),
                    expected.index(),
                    end.number()?
                );
                return Err(end.error(&rules::UNKNOWN, message));
            }
        }
        let mut route = Route::default();
        let links = edge.need("Links")?;
        for link in links.items()? {
            route.links.push(hop(&link, adg)?);
        }
        if let Some(delay) = edge.get("Delay") {
            route.delay = Some(delay.number()?);
        }
        mapping.edges[id] = route;
    }
    let vertices = root.need("Vertices")?;
    for vertex in vertices.items()? {
        let number = vertex.need("VertexId")?;
        let id = NodeId::new(number.number()? as usize);
        if graph.nodes.get(id).is_none() {
            return Err(number.error(
                &rules::UNKNOWN,
                format!(
                    "the graph has {} nodes, found number {}",
                    graph.nodes.len(),
                    id.index()
                ),
            ));
        }
        if mapping.nodes[id].is_some() {
            return Err(number.error(
                &rules::TWICE,
                format!("vertex {} is mapped twice", id.index()),
            ));
        }
        let slot = vertex.number_or("MappedNodeLane", 0)?;
        let name = vertex.need("MappedNodeId")?;
        let element = element(&name, id, &mapping, graph, adg)?;
        mapping.nodes[id] = Some(Location { element, slot });
        if let Some(start) = vertex.get("Start") {
            mapping.starts[id] = Some(start.number()?);
        }
    }
    if let Some(interval) = root.get("InitiationInterval") {
        mapping.interval = Some(interval.number()?);
    }
    if let (Some(latency), Some(mismatch)) = (root.get("Latency"), root.get("Mismatch")) {
        mapping.claim = Some(Claim {
            latency: latency.number()?,
            mismatch: mismatch.number()?,
        });
    }
    Ok(mapping)
}

fn hop(link: &Cursor<'_>, adg: &Adg) -> Result<Hop, Error> {
    let end = |kind: &'static str, number: &'static str| {
        let kind = link.need(kind)?.text()?;
        let number = link.need(number)?.number()?;
        adg.find(kind, number).ok_or_else(|| {
            link.error(
                &rules::UNKNOWN,
                format!("the fabric has no {kind}.{number}"),
            )
        })
    };
    let (source, sink) = (
        end("SourceNodeType", "SourceNodeId")?,
        end("SinkNodeType", "SinkNodeId")?,
    );
    let bit = link.number_or("StartBit", 0)?;
    let between: Vec<LinkId> = adg.elements[source]
        .outputs
        .iter()
        .copied()
        .filter(|id| adg.links[*id].sink == sink)
        .collect();
    // Where several links lead from one element to another, their index tells which.
    let chosen = match link.get("SourceIndex") {
        Some(index) => {
            let index = index.number()? as usize;
            adg.elements[source]
                .outputs
                .get(index)
                .copied()
                .filter(|id| between.contains(id))
        }
        None => between.first().copied(),
    };
    if let Some(link) = chosen {
        Ok(Hop { link, bit })
    } else {
        let (from, to) = (&adg.elements[source], &adg.elements[sink]);
        Err(link.error(
            &rules::UNKNOWN,
            format!("the fabric has no such link from {from} to {to}"),
        ))
    }
}

/// The element that a vertex is on. The number of a port counts all elements of the graph, or those of its kind.
fn element(
    name: &Cursor<'_>,
    id: NodeId,
    mapping: &Mapping,
    graph: &Graph,
    adg: &Adg,
) -> Result<ElementId, Error> {
    let text = name.text()?;
    let parts = text
        .rsplit_once('.')
        .and_then(|(kind, number)| Some((kind, number.parse::<u32>().ok()?)));
    let Some((kind, number)) = parts else {
        return Err(name.error(
            &rules::UNKNOWN,
            format!("expected a name like ProcessingElement.3, found \"{text}\""),
        ));
    };
    let local = adg.find(kind, number);
    let whole = Some(ElementId::new(number as usize)).filter(|id| {
        adg.elements
            .get(*id)
            .is_some_and(|element| element.kind.name() == kind)
    });
    let is_port = matches!(
        graph.nodes[id].kind,
        NodeKind::Input(_) | NodeKind::Output(_)
    );
    let chosen = match (local, whole) {
        (Some(local), Some(whole)) if is_port && local != whole => {
            let touches = |element: ElementId| {
                graph.edges.iter_enumerated().any(|(edge, body)| {
                    let links = &mapping.edges[edge].links;
                    body.source == id
                        && links
                            .first()
                            .is_some_and(|hop| adg.links[hop.link].source == element)
                        || body.sink == id
                            && links
                                .last()
                                .is_some_and(|hop| adg.links[hop.link].sink == element)
                })
            };
            Some(if touches(local) && !touches(whole) {
                local
            } else {
                whole
            })
        }
        (local, whole) => {
            if is_port {
                whole.or(local)
            } else {
                local
            }
        }
    };
    chosen.ok_or_else(|| name.error(&rules::UNKNOWN, format!("the fabric has no {text}")))
}

/// A mapping as a file. `operations` gives the scheduler's number of an operation, if it is known.
pub fn write(mapping: &Mapping, graph: &Graph, adg: &Adg, figures: &[(&str, f64)]) -> Value {
    let vertices: Vec<Value> = graph
        .nodes
        .iter_enumerated()
        .filter_map(|(id, node)| {
            let location = mapping.nodes[id]?;
            let element = &adg.elements[location.element];
            let is_port = matches!(
                element.kind,
                ElementKind::InputPort(_) | ElementKind::OutputPort(_)
            );
            // The scheduler's habit: ports by their number in the whole graph.
            let mapped = if is_port {
                format!("{}.{}", element.kind.name(), location.element.index())
            } else {
                element.to_string()
            };
            let mut vertex = json!({
                "VertexId": id.index(),
                "VertexType": vertex_type(&node.kind),
                "MappedNodeId": mapped,
                "MappedNodeLane": location.slot,
                "HardwareName": element.to_string(),
                "Name": node.name,
            });
            if let Some(start) = mapping.starts[id] {
                vertex["Start"] = json!(start);
            }
            if let NodeKind::Instruction(instruction) = &node.kind {
                vertex["Instruction Name"] = json!(instruction.operation);
            }
            Some(vertex)
        })
        .collect();
    let edges: Vec<Value> = graph
        .edges
        .iter_enumerated()
        .map(|(id, edge)| {
            let route = &mapping.edges[id];
            let links: Vec<Value> = route.links.iter().map(|hop| link(*hop, adg)).collect();
            let mut value = json!({
                "EdgeId": id.index(),
                "ValueNode": edge.source.index(),
                "ValueIndex": edge.value,
                "Bitwidth": edge.width(),
                "Startbit": edge.low,
                "SourceId": edge.source.index(),
                "SinkId": edge.sink.index(),
                "Links": links,
            });
            if let Some(delay) = route.delay {
                value["Delay"] = json!(delay);
            }
            value
        })
        .collect();
    let mut file = json!({ "Name": mapping.name, "Vertices": vertices, "Edges": edges });
    for (key, value) in figures {
        file[*key] = json!(value);
    }
    if let Some(claim) = mapping.claim {
        file["Latency"] = json!(claim.latency);
        file["Mismatch"] = json!(claim.mismatch);
    }
    if let Some(interval) = mapping.interval {
        file["InitiationInterval"] = json!(interval);
    }
    file
}

fn link(hop: Hop, adg: &Adg) -> Value {
    let (source, sink) = (adg.source(hop.link), adg.sink(hop.link));
    let index = source
        .outputs
        .iter()
        .position(|id| *id == hop.link)
        .unwrap_or(0);
    json!({
        "SourceNodeType": source.kind.name(), "SourceNodeId": source.number, "SourceIndex": index,
        "SinkNodeType": sink.kind.name(), "SinkNodeId": sink.number, "StartBit": hop.bit,
    })
}

fn vertex_type(kind: &NodeKind) -> &'static str {
    match kind {
        NodeKind::Input(_) => "InputPort",
        NodeKind::Output(_) => "OutputPort",
        NodeKind::Instruction(_) => "Instruction",
        NodeKind::Composite(_) => "Operation",
        NodeKind::Array(array) => match array.kind {
            ArrayKind::Dma => "DirectMemoryAccess",
            ArrayKind::Scratchpad => "ScratchpadMemory",
            ArrayKind::Recurrence => "RecurrenceEngine",
            ArrayKind::Generate => "GenerateEngine",
            ArrayKind::Register => "RegisterEngine",
        },
    }
}
