//! Words to mappings.

use super::{Header, Payload, Unit, bits_for, kind_of};
use crate::fabric::Fabric;
use crate::feasible::divisions;
use crate::kernel::Kernel;
use crate::{Hop, Location, Mapping, Route};
use chipless_dsa::adg::{Adg, Element, ElementId, ElementKind, LinkId};
use chipless_dsa::graph::{Edge, EdgeId, Graph, NodeId, NodeKind, Role, Source};
use std::collections::BTreeMap;

/// Words of one file; the largest fabrics have some hundreds.
const MOST_WORDS: usize = 1 << 16;

/// Reads a header back to a mapping of a graph. What it cannot say is not there: delays of dynamic elements, places in time. Words name no
/// memories either: an array is on the first memory of its kind that has room for it and a link to each of its ports.
///
/// # Errors
/// Words that name what is not there, values that come from nowhere, instructions that no element is told.
pub fn read(text: &str, graph: &Graph, adg: &Adg) -> Result<Header, String> {
    let mut payloads: BTreeMap<ElementId, Vec<bool>> = BTreeMap::new();
    let mut numbers: BTreeMap<(u64, u32), ElementId> = BTreeMap::new();
    for (id, element) in adg.elements.iter_enumerated() {
        if let Some(kind) = kind_of(element) {
            numbers.insert((kind, element.number), id);
        }
    }
    for word in words(text)? {
        let (kind, number, index) = (
            word >> 62,
            (word >> 54 & 255) as u32,
            (word >> 48 & 15) as usize,
        );
        let Some(id) = numbers.get(&(kind, number)) else {
            let kinds = [
                "ProcessingElement",
                "Switch",
                "InputVectorPort",
                "OutputVectorPort",
            ];
            return Err(format!(
                "a word is for {}.{number}, which the fabric has not",
                kinds[kind as usize]
            ));
        };
        let bits = payloads.entry(*id).or_default();
        bits.resize(bits.len().max((index + 1) * 48), false);
        for bit in 0..48 {
            bits[index * 48 + bit] = word >> bit & 1 == 1;
        }
    }
    let mut decoded = Decoded::default();
    for (id, bits) in &payloads {
        decoded.element(*id, &adg.elements[*id], &mut Payload { bits, at: 0 });
    }
    let mapping = decoded.mapping(text, graph, adg)?;
    let faults = decoded.faults(graph, adg, &mapping);
    Ok(Header { mapping, faults })
}

fn words(text: &str) -> Result<Vec<u64>, String> {
    let body = text
        .split_once("_config[")
        .and_then(|(_, rest)| rest.split_once('{'))
        .map_or(text, |(_, rest)| rest);
    let mut words = Vec::new();
    for (number, line) in body.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        for token in code
            .split([',', ' ', '\t', '}', ';'])
            .filter(|token| !token.is_empty())
        {
            let word = match (token.strip_prefix("0b"), token.strip_prefix("0x")) {
                (Some(binary), _) => u64::from_str_radix(binary, 2),
                (_, Some(hex)) => u64::from_str_radix(hex, 16),
                _ => token.parse(),
            };
            words.push(word.map_err(|_| {
                format!(
                    "line {} of the words: expected a number of 64 bits, found \"{token}\"",
                    number + 1
                )
            })?);
            if words.len() > MOST_WORDS {
                return Err(format!("more than {MOST_WORDS} words"));
            }
        }
    }
    if words.is_empty() {
        Err("expected configuration words, found none".to_owned())
    } else {
        Ok(words)
    }
}

/// What all words together say.
#[derive(Default)]
pub(super) struct Decoded {
    /// For each output of a switch its input.
    pub(super) routes: BTreeMap<(ElementId, usize), usize>,
    /// For each link of an input port its place in the stream.
    pub(super) inputs: BTreeMap<(ElementId, usize), usize>,
    /// For each place in the stream of an output port its link.
    outputs: BTreeMap<(ElementId, usize), usize>,
    pub(super) units: BTreeMap<ElementId, Unit>,
}

impl Decoded {
    fn element(&mut self, id: ElementId, element: &Element, payload: &mut Payload<'_>) {
        if payload.take(1) == 0 {
            return;
        }
        let mut selects =
            |count: usize, of: usize, keep: &mut BTreeMap<(ElementId, usize), usize>| {
                for index in 0..count {
                    if let Some(select) = (payload.take(bits_for(of + 1)) as usize).checked_sub(1) {
                        keep.insert((id, index), select);
                    }
                }
            };
        match &element.kind {
            ElementKind::Switch(_) => selects(
                element.outputs.len(),
                element.inputs.len(),
                &mut self.routes,
            ),
            ElementKind::InputPort(_) => selects(
                element.outputs.len(),
                element.outputs.len(),
                &mut self.inputs,
            ),
            ElementKind::OutputPort(_) => selects(
                element.inputs.len(),
                element.inputs.len(),
                &mut self.outputs,
            ),
            ElementKind::ProcessingElement(unit) => {
                if payload.take(1) == 1 {
                    let mut told = Unit::default();
                    told.walk(element, unit, |value, bits| *value = payload.take(bits));
                    self.units.insert(id, told);
                }
            }
            ElementKind::Memory(_) => {}
        }
    }

    /// The way that ends with a link, back through switches.
    fn trace(&self, adg: &Adg, mut link: LinkId) -> Result<Vec<Hop>, String> {
        let mut hops = vec![Hop { link, bit: 0 }];
        while adg.source(link).is_switch() {
            let switch = adg.links[link].source;
            let element = &adg.elements[switch];
            let output = element
                .outputs
                .iter()
                .position(|other| *other == link)
                .unwrap_or(0);
            let input = self
                .routes
                .get(&(switch, output))
                .and_then(|input| element.inputs.get(*input));
            let Some(input) = input else {
                return Err(format!(
                    "output {output} of {element} is connected to nothing"
                ));
            };
            link = *input;
            hops.push(Hop { link, bit: 0 });
            if hops.len() > adg.links.len() {
                return Err(format!("a way goes in a circle at {element}"));
            }
        }
        hops.reverse();
        Ok(hops)
    }

    /// Which element, and for ports which place of the stream, a way comes from.
    fn origin(&self, adg: &Adg, hops: &[Hop]) -> Option<(ElementId, usize)> {
        let first = hops.first()?.link;
        let id = adg.links[first].source;
        match adg.elements[id].kind {
            ElementKind::InputPort(_) => {
                let index = adg.elements[id]
                    .outputs
                    .iter()
                    .position(|link| *link == first)?;
                Some((id, *self.inputs.get(&(id, index))?))
            }
            _ => Some((id, 0)),
        }
    }

    fn mapping(&self, text: &str, graph: &Graph, adg: &Adg) -> Result<Mapping, String> {
        let mut mapping = Mapping::empty(graph);
        for (node, body) in graph.nodes.iter_enumerated() {
            let kind = match body.kind {
                NodeKind::Input(_) => "InputVectorPort",
                NodeKind::Output(_) => "OutputVectorPort",
                _ => continue,
            };
            let number = defined(text, &body.name).ok_or_else(|| {
                format!(
                    "expected a line #define P_…_{} NUMBER, found none",
                    body.name
                )
            })?;
            let element = adg
                .find(kind, number)
                .ok_or_else(|| format!("the fabric has no {kind}.{number} for {}", body.name))?;
            mapping.nodes[node] = Some(Location { element, slot: 0 });
        }
        // Where each value comes out, found from sources to sinks.
        let mut taken: Vec<ElementId> = Vec::new();
        for (node, body) in graph.nodes.iter_enumerated() {
            let NodeKind::Instruction(instruction) = &body.kind else {
                continue;
            };
            let fits = self.units.iter().find(|(id, told)| {
                let Some(unit) = adg.elements[**id].processing() else {
                    return false;
                };
                !taken.contains(id)
                    && unit.operations.get(told.operation as usize) == Some(&instruction.operation)
                    && self
                        .ways_into(adg, **id, told, node, graph)
                        .is_some_and(|ways| {
                            ways.iter()
                                .all(|(edge, hops)| self.carries(adg, graph, &mapping, *edge, hops))
                        })
            });
            let Some((id, told)) = fits else {
                return Err(format!(
                    "no element is told to do {} = {} with these operands",
                    body.name, instruction.operation
                ));
            };
            taken.push(*id);
            mapping.nodes[node] = Some(Location {
                element: *id,
                slot: 0,
            });
            let dynamic = adg.elements[*id]
                .processing()
                .is_some_and(|unit| unit.dynamic);
            for (index, (edge, links)) in self
                .ways_into(adg, *id, told, node, graph)
                .unwrap_or_default()
                .into_iter()
                .enumerate()
            {
                let delay = (!dynamic).then(|| told.delays.get(index).copied().unwrap_or(0) as u32);
                mapping.edges[edge] = Route { links, delay };
            }
        }
        for (id, edge) in graph.edges.iter_enumerated() {
            let sink = &graph.nodes[edge.sink];
            let (NodeKind::Output(_), Some(location)) = (&sink.kind, mapping.nodes[edge.sink])
            else {
                continue;
            };
            let element = &adg.elements[location.element];
            let state = sink
                .operands
                .get(edge.operand as usize)
                .is_some_and(|operand| operand.role == Role::State);
            let stated = element.port().is_some_and(|port| port.stated);
            let stream = if state {
                0
            } else {
                edge.operand as usize + usize::from(stated)
            };
            let link = self
                .outputs
                .get(&(location.element, stream))
                .and_then(|link| element.inputs.get(*link));
            let Some(link) = link else {
                return Err(format!(
                    "lane {} of {} comes from nothing",
                    edge.operand, sink.name
                ));
            };
            mapping.edges[id] = Route {
                links: self.trace(adg, *link)?,
                delay: None,
            };
        }
        arrays(&mut mapping, graph, adg);
        Ok(mapping)
    }

    /// The ways of the operands of a node that would be on an element.
    fn ways_into(
        &self,
        adg: &Adg,
        id: ElementId,
        told: &Unit,
        node: NodeId,
        graph: &Graph,
    ) -> Option<Vec<(EdgeId, Vec<Hop>)>> {
        let element = &adg.elements[id];
        let mut ways = Vec::new();
        let mut data = 0;
        for operand in &graph.nodes[node].operands {
            let select = if operand.role == Role::Data {
                data += 1;
                *told.operands.get(data - 1)?
            } else {
                told.control
            };
            if let Source::Edges(edges) = &operand.source {
                let link = element.inputs.get((select as usize).checked_sub(1)?)?;
                ways.push((*edges.first()?, self.trace(adg, *link).ok()?));
            }
        }
        Some(ways)
    }

    /// Whether a way begins where the value of an edge is made.
    fn carries(
        &self,
        adg: &Adg,
        graph: &Graph,
        mapping: &Mapping,
        edge: EdgeId,
        hops: &[Hop],
    ) -> bool {
        let edge = &graph.edges[edge];
        let (Some((element, stream)), Some(location)) =
            (self.origin(adg, hops), mapping.nodes[edge.source])
        else {
            return false;
        };
        if element != location.element {
            return false;
        }
        match &graph.nodes[edge.source].kind {
            NodeKind::Input(port) => {
                let stated = adg.elements[element].port().is_some_and(|port| port.stated);
                stream == edge.value as usize + usize::from(stated && !port.stated)
            }
            _ => true,
        }
    }
}

/// Puts the arrays of a mapping on memories, where there are fitting ones.
fn arrays(mapping: &mut Mapping, graph: &Graph, adg: &Adg) {
    let (Ok(kernel), Ok(fabric)) = (Kernel::new(graph, true), Fabric::new(adg)) else {
        return;
    };
    let Ok((divisions, _)) = divisions(graph, &kernel, &fabric) else {
        return;
    };
    let is_array = |node: NodeId| matches!(graph.nodes[node].kind, NodeKind::Array(_));
    let streams = || {
        graph
            .edges
            .iter_enumerated()
            .filter(|(_, edge)| is_array(edge.source) || is_array(edge.sink))
    };
    for memories in divisions {
        for (array, memory) in kernel.arrays.iter().zip(memories) {
            mapping.nodes[array.node] = Some(Location {
                element: ElementId::new(memory as usize),
                slot: 0,
            });
        }
        let link = |edge: &Edge| {
            let (from, to) = (
                mapping.nodes[edge.source]?.element,
                mapping.nodes[edge.sink]?.element,
            );
            adg.elements[from]
                .outputs
                .iter()
                .copied()
                .find(|link| adg.links[*link].sink == to)
        };
        let links: Option<Vec<(EdgeId, LinkId)>> = streams()
            .map(|(id, edge)| Some((id, link(edge)?)))
            .collect();
        if let Some(links) = links {
            for (edge, link) in links {
                mapping.edges[edge] = Route {
                    links: vec![Hop { link, bit: 0 }],
                    delay: None,
                };
            }
            return;
        }
    }
    for array in &kernel.arrays {
        mapping.nodes[array.node] = None;
    }
}

/// The number that a header defines for a port.
fn defined(text: &str, port: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut words = line.strip_prefix("#define P_")?.split_whitespace();
        let (name, number) = (words.next()?, words.next()?);
        let rest = name.strip_suffix(port)?;
        rest.ends_with('_').then(|| number.parse().ok()).flatten()
    })
}
