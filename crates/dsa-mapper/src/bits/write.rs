//! Mappings to words.

use super::{Encoding, Fields, SCHEDULER_FAULTS, Unit, bits_for, kind_of};
use crate::Mapping;
use chipless_dsa::adg::{Adg, Element, ElementId, ElementKind, LinkId, ProcessingElement};
use chipless_dsa::graph::{Actions, Graph, Instruction, Node, NodeId, NodeKind, Role, Source};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What each element is told.
#[derive(Default)]
struct Told {
    /// For each output of a switch its input + 1.
    switches: BTreeMap<ElementId, BTreeMap<usize, u64>>,
    /// For each field of a port its value.
    ports: BTreeMap<ElementId, BTreeMap<usize, u64>>,
    units: BTreeMap<ElementId, Unit>,
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
    let mut told = Told::default();
    ways(mapping, graph, adg, &mut told)?;
    for (node, body) in graph.nodes.iter_enumerated() {
        if let Some(location) = mapping.nodes[node]
            && let Some(words) = unit(mapping, graph, adg, node, encoding)
        {
            let words = words.map_err(|what| format!("{}: {what}", body.name))?;
            told.units.insert(location.element, words);
        }
    }
    let words = told.words(adg)?;
    Ok(header(mapping, graph, adg, name, encoding, &words))
}

/// What the element of an instruction is told; `None` where a node is none, or not on an element.
pub(super) fn unit(
    mapping: &Mapping,
    graph: &Graph,
    adg: &Adg,
    node: NodeId,
    encoding: Encoding,
) -> Option<Result<Unit, String>> {
    let body = &graph.nodes[node];
    let element = &adg.elements[mapping.nodes[node]?.element];
    let NodeKind::Instruction(instruction) = &body.kind else {
        return None;
    };
    let unit = element.processing()?;
    let told = operands(mapping, body, instruction, element, unit).and_then(|mut told| {
        told.output = result(mapping, graph, node, element, encoding);
        control(&mut told, instruction, unit, encoding)?;
        Ok(told)
    });
    Some(told)
}

fn position(links: &[LinkId], link: LinkId) -> usize {
    links.iter().position(|other| *other == link).unwrap_or(0)
}

/// What switches and ports are told.
fn ways(mapping: &Mapping, graph: &Graph, adg: &Adg, told: &mut Told) -> Result<(), String> {
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
            told.switches
                .entry(switch)
                .or_default()
                .insert(output, input as u64 + 1);
        }
        if let (ElementKind::InputPort(hardware), NodeKind::Input(port)) =
            (&adg.source(first.link).kind, &graph.nodes[edge.source].kind)
        {
            let stream = u64::from(edge.value) + u64::from(hardware.stated && !port.stated);
            let element = adg.links[first.link].source;
            told.ports.entry(element).or_default().insert(
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
            told.ports.entry(element).or_default().insert(
                stream,
                position(&adg.elements[element].inputs, last.link) as u64 + 1,
            );
        }
    }
    Ok(())
}

/// What an element is told of its operands.
fn operands(
    mapping: &Mapping,
    body: &Node,
    instruction: &Instruction,
    element: &Element,
    unit: &ProcessingElement,
) -> Result<Unit, String> {
    let mut told = Unit {
        operation: unit.code(&instruction.operation).unwrap_or(0) as u64,
        ..Unit::default()
    };
    let mut data = 0;
    for operand in &body.operands {
        let select = match &operand.source {
            Source::Edges(edges) => {
                let [edge] = edges.as_slice() else {
                    return Err("an operand of several parts has no place in the words".to_owned());
                };
                let route = &mapping.edges[*edge];
                let Some(hop) = route.links.last() else {
                    return Err("an operand has no way".to_owned());
                };
                let input = position(&element.inputs, hop.link) as u64 + 1;
                if operand.role == Role::Data && data < 2 {
                    told.delays[data] = u64::from(route.delay.unwrap_or(0));
                }
                input
            }
            Source::Register(register) => 1 + element.inputs.len() as u64 + u64::from(*register),
            Source::Constant(_) => {
                return Err("constants have no place in the words".to_owned());
            }
        };
        match operand.role {
            Role::Data if data < 2 => {
                told.operands[data] = select;
                data += 1;
            }
            Role::Data => return Err("the words have two operands".to_owned()),
            Role::Control | Role::Predicate | Role::InversePredicate => told.control = select,
            Role::State => {}
        }
    }
    if let Some(register) = body.values.iter().flat_map(|value| &value.registers).next() {
        told.register = u64::from(*register) + 1;
    }
    Ok(told)
}

/// The output that the result of a node leaves on.
fn result(
    mapping: &Mapping,
    graph: &Graph,
    node: NodeId,
    element: &Element,
    encoding: Encoding,
) -> u64 {
    let edge = graph
        .edges
        .iter_enumerated()
        .find(|(_, edge)| edge.source == node);
    let hop = edge.and_then(|(id, _)| mapping.edges[id].links.first());
    hop.map_or(0, |hop| {
        position(&element.outputs, hop.link) as u64 + u64::from(encoding == Encoding::Hardware)
    })
}

/// The control table.
fn control(
    told: &mut Unit,
    instruction: &Instruction,
    unit: &ProcessingElement,
    encoding: Encoding,
) -> Result<(), String> {
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
                return Err(format!(
                    "its control table needs entry {index}, the element has {}",
                    unit.control_entries
                ));
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
    Ok(())
}

impl Told {
    fn words(mut self, adg: &Adg) -> Result<Vec<(u64, String)>, String> {
        let mut words = Vec::new();
        for (id, element) in adg.elements.iter_enumerated() {
            let mut fields = Fields::default();
            fields.push(1, 1);
            match &element.kind {
                ElementKind::ProcessingElement(unit) => {
                    let Some(mut told) = self.units.remove(&id) else {
                        continue;
                    };
                    fields.push(1, 1);
                    told.walk(element, unit, |value, bits| fields.push(*value, bits));
                }
                ElementKind::Switch(_) => {
                    let Some(outputs) = self.switches.get(&id) else {
                        continue;
                    };
                    let bits = bits_for(element.inputs.len() + 1);
                    for output in 0..element.outputs.len() {
                        fields.push(outputs.get(&output).copied().unwrap_or(0), bits);
                    }
                }
                ElementKind::InputPort(_) | ElementKind::OutputPort(_) => {
                    let Some(lanes) = self.ports.get(&id) else {
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
        Ok(words)
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
