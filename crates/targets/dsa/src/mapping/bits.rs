//! Configuration words: the header (`.bits.h`) that a program includes and the hardware is loaded with.
//!
//! A word has 64 bits: kind of element (63..62: processing element, switch, input port, output port), its number (61..54), group
//! (53..52, always 0), index of the word (51..48), and 48 bits of payload. The payloads of an element in a row, least significant first,
//! hold its fields; the widths follow from the fabric:
//!
//! | element | fields, from the least significant bit |
//! |---|---|
//! | switch | enabled; for each output, for each part of it: input + 1, 0 for none |
//! | input port | enabled; for each link: place in the stream + 1 |
//! | output port | enabled; for each place in the stream: link + 1 |
//! | processing element | enabled; valid; two operands: input + 1, registers behind the inputs; mode of control (1 by an operand, 2 by the result); input of control + 1; delays, if static; operation; output + 1; register + 1; for each entry of the control table: valid, hold (2), discard, reset, abstain; bits of control that count (6) |
//!
//! The scheduler that defined the words writes two fields differently from what the hardware reads: holding the second operand sets the
//! bit of the first, and the output is written without the 1. [`Encoding`] chooses; reading understands both as far as they differ
//! from each other.

use super::fabric::Fabric;
use super::feasible::divisions;
use super::kernel::Kernel;
use super::{Hop, Location, Mapping, Route};
use crate::adg::{Adg, Element, ElementId, ElementKind, LinkId, ProcessingElement};
use crate::graph::{Actions, Edge, EdgeId, Graph, NodeId, NodeKind, Role, Source};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Whose reading of the two disputed fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// As the hardware reads them.
    #[default]
    Hardware,
    /// As the scheduler writes them.
    Scheduler,
}

/// The two faults of the scheduler's encoding, by name.
pub const SCHEDULER_FAULTS: [&str; 2] = [
    "hold-second-operand: the scheduler sets the hold bit of the first operand for b2 as well, so b1 and b2 cannot be told apart",
    "result-output: the scheduler writes the number of the output, the hardware expects it plus 1 and takes 0 for none",
];

/// Bits that numbers below `count` take.
fn bits_for(count: usize) -> u32 {
    usize::BITS - count.max(1).saturating_sub(1).leading_zeros()
}

/// Fields, the least significant first.
#[derive(Default)]
struct Fields(Vec<bool>);

impl Fields {
    fn push(&mut self, value: u64, bits: u32) {
        self.0.extend((0..bits).map(|bit| value >> bit & 1 == 1));
    }
}

/// Payload bits that are read one field after the other.
struct Payload<'a> {
    bits: &'a [bool],
    at: usize,
}

impl Payload<'_> {
    fn take(&mut self, bits: u32) -> u64 {
        let value = (0..bits as usize)
            .map(|bit| u64::from(self.bits.get(self.at + bit).copied().unwrap_or(false)) << bit)
            .sum();
        self.at += bits as usize;
        value
    }
}

/// What a processing element is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Unit {
    operands: [u64; 2],
    mode: u64,
    control: u64,
    delays: [u64; 2],
    operation: u64,
    output: u64,
    register: u64,
    /// Valid, hold (two bits), discard, reset, abstain.
    table: Vec<[u64; 5]>,
    mask: u64,
}

impl Unit {
    fn walk(
        &mut self,
        element: &Element,
        unit: &ProcessingElement,
        mut field: impl FnMut(&mut u64, u32),
    ) {
        let (inputs, outputs) = (element.inputs.len(), element.outputs.len());
        let registers = unit.registers as usize;
        for operand in &mut self.operands {
            field(operand, bits_for(inputs + registers + 1));
        }
        if unit.input_control || unit.output_control {
            field(&mut self.mode, 2);
        }
        if unit.input_control {
            field(&mut self.control, bits_for(inputs + 1));
        }
        if !unit.dynamic {
            for delay in &mut self.delays {
                field(delay, bits_for(unit.delay_depth as usize + 1));
            }
        }
        field(&mut self.operation, bits_for(unit.operations.len()));
        field(&mut self.output, bits_for(outputs + 1));
        if registers > 0 {
            field(&mut self.register, bits_for(registers + 1));
        }
        self.table
            .resize(unit.control_entries.min(64) as usize, [0; 5]);
        for [valid, hold, discard, reset, abstain] in &mut self.table {
            for (value, bits) in [
                (valid, 1),
                (hold, 2),
                (discard, 1),
                (reset, 1),
                (abstain, 1),
            ] {
                field(value, bits);
            }
        }
        field(&mut self.mask, 6);
    }
}

/// The bits of `value` under `mask`, next to each other.
fn extract(value: u64, mask: u64) -> usize {
    let under = (0..64).filter(|bit| mask >> bit & 1 == 1);
    under
        .enumerate()
        .map(|(index, bit)| ((value >> bit & 1) as usize) << index)
        .sum()
}

/// The configuration of a mapping as a header.
///
/// # Errors
/// What the words cannot say: parts of links, more than two operands, more control entries than there are.
pub fn write(
    mapping: &Mapping,
    graph: &Graph,
    adg: &Adg,
    name: &str,
    encoding: Encoding,
) -> Result<String, String> {
    let mut switches: BTreeMap<ElementId, BTreeMap<usize, u64>> = BTreeMap::new();
    let mut ports: BTreeMap<ElementId, BTreeMap<usize, u64>> = BTreeMap::new();
    let mut units: BTreeMap<ElementId, Unit> = BTreeMap::new();
    let position =
        |links: &[LinkId], link: LinkId| links.iter().position(|other| *other == link).unwrap_or(0);
    for (id, edge) in graph.edges.iter_enumerated() {
        let hops = &mapping.edges[id].links;
        let (Some(first), Some(last)) = (hops.first(), hops.last()) else {
            continue;
        };
        if adg.source(first.link).memory().is_some() || adg.sink(last.link).memory().is_some() {
            continue;
        }
        if hops
            .iter()
            .any(|hop| hop.bit != 0 || adg.slots(hop.link) > 1)
        {
            return Err(format!(
                "edge {} takes a part of a link; the scheduler's words route whole links only",
                id.index()
            ));
        }
        for pair in hops.windows(2) {
            let [before, after] = pair else { continue };
            let switch = adg.links[before.link].sink;
            let element = &adg.elements[switch];
            let (input, output) = (
                position(&element.inputs, before.link),
                position(&element.outputs, after.link),
            );
            switches
                .entry(switch)
                .or_default()
                .insert(output, input as u64 + 1);
        }
        if let (ElementKind::InputPort(hardware), NodeKind::Input(port)) =
            (&adg.source(first.link).kind, &graph.nodes[edge.source].kind)
        {
            let stream = u64::from(edge.value) + u64::from(hardware.stated && !port.stated);
            let element = adg.links[first.link].source;
            ports.entry(element).or_default().insert(
                position(&adg.elements[element].outputs, first.link),
                stream + 1,
            );
        }
        if let ElementKind::OutputPort(hardware) = &adg.sink(last.link).kind {
            let state = graph.nodes[edge.sink]
                .operands
                .get(edge.operand as usize)
                .is_some_and(|operand| operand.role == Role::State);
            let stream = if state {
                0
            } else {
                edge.operand as usize + usize::from(hardware.stated)
            };
            let element = adg.links[last.link].sink;
            ports.entry(element).or_default().insert(
                stream,
                position(&adg.elements[element].inputs, last.link) as u64 + 1,
            );
        }
    }
    for (node, body) in graph.nodes.iter_enumerated() {
        let (NodeKind::Instruction(instruction), Some(location)) =
            (&body.kind, mapping.nodes[node])
        else {
            continue;
        };
        let element = &adg.elements[location.element];
        let Some(unit) = element.processing() else {
            continue;
        };
        let say = |what: String| format!("{}: {what}", body.name);
        let mut told = Unit {
            operation: unit.code(&instruction.operation).unwrap_or(0) as u64,
            ..Unit::default()
        };
        let mut data = 0;
        for operand in &body.operands {
            let select = match &operand.source {
                Source::Edges(edges) => {
                    let [edge] = edges.as_slice() else {
                        return Err(say(
                            "an operand of several parts has no place in the words".to_owned()
                        ));
                    };
                    let route = &mapping.edges[*edge];
                    let Some(hop) = route.links.last() else {
                        return Err(say("an operand has no way".to_owned()));
                    };
                    let input = position(&element.inputs, hop.link) as u64 + 1;
                    if operand.role == Role::Data && data < 2 {
                        told.delays[data] = u64::from(route.delay.unwrap_or(0));
                    }
                    input
                }
                Source::Register(register) => {
                    1 + element.inputs.len() as u64 + u64::from(*register)
                }
                Source::Constant(_) => {
                    return Err(say("constants have no place in the words".to_owned()));
                }
            };
            match operand.role {
                Role::Data if data < 2 => {
                    told.operands[data] = select;
                    data += 1;
                }
                Role::Data => return Err(say("the words have two operands".to_owned())),
                Role::Control | Role::Predicate | Role::InversePredicate => told.control = select,
                Role::State => {}
            }
        }
        if let Some(edge) = graph
            .edges
            .iter_enumerated()
            .find(|(_, edge)| edge.source == node)
            .map(|(id, _)| id)
            && let Some(hop) = mapping.edges[edge].links.first()
        {
            let output = position(&element.outputs, hop.link) as u64;
            told.output = output + u64::from(encoding == Encoding::Hardware);
        }
        if let Some(register) = body.values.iter().flat_map(|value| &value.registers).next() {
            told.register = u64::from(*register) + 1;
        }
        told.table
            .resize(unit.control_entries.min(64) as usize, [0; 5]);
        let tables = [(&instruction.control, 1), (&instruction.self_control, 2)];
        if let Some((control, mode)) = tables
            .into_iter()
            .find_map(|(control, mode)| control.as_ref().map(|control| (control, mode)))
        {
            told.mode = mode;
            told.mask = control.mask & 63;
            for (key, actions) in &control.table {
                let index = extract(*key, control.mask);
                let Some(entry) = told.table.get_mut(index) else {
                    return Err(say(format!(
                        "its control table needs entry {index}, the element has {}",
                        unit.control_entries
                    )));
                };
                let second = u64::from(actions.has(Actions::HOLD_SECOND));
                let hold = u64::from(actions.has(Actions::HOLD_FIRST))
                    | if encoding == Encoding::Hardware {
                        second << 1
                    } else {
                        second
                    };
                let flag = |action| u64::from(actions.has(action));
                *entry = [
                    1,
                    hold,
                    flag(Actions::DISCARD),
                    flag(Actions::RESET),
                    flag(Actions::ABSTAIN),
                ];
            }
        }
        units.insert(location.element, told);
    }
    let mut words = Vec::new();
    for (id, element) in adg.elements.iter_enumerated() {
        let mut fields = Fields::default();
        fields.push(1, 1);
        match &element.kind {
            ElementKind::ProcessingElement(unit) => {
                let Some(mut told) = units.remove(&id) else {
                    continue;
                };
                fields.push(1, 1);
                told.walk(element, unit, |value, bits| fields.push(*value, bits));
            }
            ElementKind::Switch(_) => {
                let Some(outputs) = switches.get(&id) else {
                    continue;
                };
                let bits = bits_for(element.inputs.len() + 1);
                for output in 0..element.outputs.len() {
                    fields.push(outputs.get(&output).copied().unwrap_or(0), bits);
                }
            }
            ElementKind::InputPort(_) | ElementKind::OutputPort(_) => {
                let Some(lanes) = ports.get(&id) else {
                    continue;
                };
                let links = if matches!(element.kind, ElementKind::InputPort(_)) {
                    &element.outputs
                } else {
                    &element.inputs
                };
                for lane in 0..links.len() {
                    fields.push(
                        lanes.get(&lane).copied().unwrap_or(0),
                        bits_for(links.len() + 1),
                    );
                }
            }
            ElementKind::Memory(_) => continue,
        }
        words.extend(pack(element, &fields.0)?);
    }
    Ok(header(mapping, graph, adg, name, encoding, &words))
}

fn kind_of(element: &Element) -> Option<u64> {
    match element.kind {
        ElementKind::ProcessingElement(_) => Some(0),
        ElementKind::Switch(_) => Some(1),
        ElementKind::InputPort(_) => Some(2),
        ElementKind::OutputPort(_) => Some(3),
        ElementKind::Memory(_) => None,
    }
}

fn pack(element: &Element, fields: &[bool]) -> Result<Vec<(u64, String)>, String> {
    let kind = kind_of(element).unwrap_or(0);
    if element.number > 255 || fields.len() > 48 * 16 {
        return Err(format!(
            "{element} has no place in the words: numbers go to 255, fields to 768 bits"
        ));
    }
    let payloads = fields.chunks(48).map(|chunk| {
        chunk
            .iter()
            .enumerate()
            .map(|(bit, set)| u64::from(*set) << bit)
            .sum::<u64>()
    });
    let words = payloads.enumerate().map(|(index, payload)| {
        (
            kind << 62 | u64::from(element.number) << 54 | (index as u64) << 48 | payload,
            element.to_string(),
        )
    });
    let mut words: Vec<(u64, String)> = words.collect();
    // The scheduler ends with the last word that is not empty.
    while words.len() > 1
        && words
            .last()
            .is_some_and(|(word, _)| word & ((1 << 48) - 1) == 0)
    {
        words.pop();
    }
    Ok(words)
}

fn header(
    mapping: &Mapping,
    graph: &Graph,
    adg: &Adg,
    name: &str,
    encoding: Encoding,
    words: &[(u64, String)],
) -> String {
    let mut out = String::from("#pragma once\n#include <stdint.h>\n\n");
    for (what, incoming) in [("Input Vector Ports", true), ("Output Vector Ports", false)] {
        let _ = writeln!(out, "// {what}");
        for (node, body) in graph.nodes.iter_enumerated() {
            let wanted = if incoming {
                matches!(body.kind, NodeKind::Input(_))
            } else {
                matches!(body.kind, NodeKind::Output(_))
            };
            if let (true, Some(location)) = (wanted, mapping.nodes[node]) {
                let _ = writeln!(
                    out,
                    "#define P_{name}_{} {}",
                    body.name, adg.elements[location.element].number
                );
            }
        }
    }
    if encoding == Encoding::Scheduler {
        out.push_str("\n// Written as the scheduler does, with its two faults:\n");
        for fault in SCHEDULER_FAULTS {
            let _ = writeln!(out, "//  {fault}");
        }
    }
    let _ = writeln!(out, "\n#define {name}_size {}", words.len());
    out.push_str("//\tTyp|Node_ID|G|Idx|-------------- Configuration Bits --------------\n");
    let _ = writeln!(out, "uint64_t {name}_config[{name}_size] = {{");
    for (word, element) in words {
        let _ = writeln!(out, "\t0b{word:064b}, //{element}");
    }
    out.push_str("};\n");
    out
}

/// Words of one file; the largest fabrics have some hundreds.
const MOST_WORDS: usize = 1 << 16;

/// Reads a header back to a mapping of a graph. What it cannot say is not there: delays of dynamic elements, places in time. Words name no
/// memories either: an array is on the first memory of its kind that has room for it and a link to each of its ports.
///
/// # Errors
/// Words that name what is not there, values that come from nowhere, instructions that no element is told.
pub fn read(text: &str, graph: &Graph, adg: &Adg) -> Result<Mapping, String> {
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
    decoded.mapping(text, graph, adg)
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
struct Decoded {
    /// For each output of a switch its input.
    routes: BTreeMap<(ElementId, usize), usize>,
    /// For each link of an input port its place in the stream.
    inputs: BTreeMap<(ElementId, usize), usize>,
    /// For each place in the stream of an output port its link.
    outputs: BTreeMap<(ElementId, usize), usize>,
    units: BTreeMap<ElementId, Unit>,
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
    let (Ok(kernel), Ok(fabric)) = (Kernel::new(graph), Fabric::new(adg)) else {
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
