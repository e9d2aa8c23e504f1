//! Rules about places: every vertex has one, that can do what it asks, and nobody else is there.

use super::{Verdict, name};
use crate::{Location, Mapping};
use chipless_dsa::adg::{Adg, Element, ElementId, ElementKind, Form, MemoryKind};
use chipless_dsa::graph::{ArrayKind, Graph, Node, NodeId, NodeKind, Port, Source};
use chipless_dsa::operations;
use std::collections::BTreeMap;

pub(super) fn check(graph: &Graph, adg: &Adg, mapping: &Mapping, verdict: &mut Verdict) {
    // Who is where: for ports the element, for processing elements each slot.
    let mut tenants: BTreeMap<(ElementId, u32), Vec<NodeId>> = BTreeMap::new();
    let mut filled: BTreeMap<ElementId, u64> = BTreeMap::new();
    let mut held: BTreeMap<ElementId, usize> = BTreeMap::new();
    for (node, body) in graph.nodes.iter_enumerated() {
        let Some(location) = mapping.nodes[node] else {
            verdict
                .faults
                .push(format!("{} has no place", name(graph, node)));
            continue;
        };
        let Some(element) = adg.elements.get(location.element) else {
            verdict.faults.push(format!(
                "{} is on an element that is not there",
                name(graph, node)
            ));
            continue;
        };
        let wrong = |what: &str| Some(format!("{} is on {element}, {what}", name(graph, node)));
        let fault = match &body.kind {
            NodeKind::Array(array) => {
                *filled.entry(location.element).or_default() += array.size;
                let same = element
                    .memory()
                    .is_some_and(|memory| suits(memory.kind, array.kind));
                if same {
                    None
                } else {
                    wrong("which is not a memory of its kind")
                }
            }
            NodeKind::Input(port) | NodeKind::Output(port) => {
                tenants.entry((location.element, 0)).or_default().push(node);
                let incoming = matches!(body.kind, NodeKind::Input(_));
                port_fault(graph, adg, element, body, port, incoming).and_then(|what| wrong(&what))
            }
            NodeKind::Instruction(_) | NodeKind::Composite(_) => {
                *held.entry(location.element).or_default() += 1;
                let width = needed_width(body);
                let parts = width.div_ceil(element.granularity.max(1)).max(1);
                for slot in location.slot
                    ..location
                        .slot
                        .saturating_add(parts)
                        .min(location.slot.saturating_add(64))
                {
                    tenants
                        .entry((location.element, slot))
                        .or_default()
                        .push(node);
                }
                unit_fault(graph, adg, element, location, body, width, parts)
                    .and_then(|what| wrong(&what))
            }
        };
        verdict.faults.extend(fault);
    }
    for ((element, slot), nodes) in tenants {
        let element = &adg.elements[element];
        let room = element
            .processing()
            .map_or(1, |unit| unit.instruction_slots as usize);
        if nodes.len() > room {
            verdict.overprovision = verdict.overprovision.max((nodes.len() - room) as u32);
            let names: Vec<String> = nodes
                .iter()
                .take(4)
                .map(|node| name(graph, *node))
                .collect();
            verdict.faults.push(format!(
                "{} are on {element}, slot {slot}, which has room for {room}",
                names.join(", ")
            ));
        }
    }
    for (element, count) in held {
        let unit = adg.elements[element].processing();
        let room = unit.map_or(0, |unit| unit.instruction_slots as usize);
        if count > room && room > 1 {
            verdict.overprovision = verdict.overprovision.max((count - room) as u32);
            verdict.faults.push(format!(
                "{} has {count} instructions and slots for {room}",
                adg.elements[element]
            ));
        }
    }
    for (element, bytes) in filled {
        let capacity = adg.elements[element]
            .memory()
            .map_or(0, |memory| memory.capacity);
        if bytes > capacity {
            verdict.faults.push(format!(
                "the arrays on {} have {bytes} bytes, it holds {capacity}",
                adg.elements[element]
            ));
        }
    }
}

fn suits(memory: MemoryKind, array: ArrayKind) -> bool {
    matches!(
        (memory, array),
        (MemoryKind::DirectMemoryAccess, ArrayKind::Dma)
            | (MemoryKind::Scratchpad, ArrayKind::Scratchpad)
            | (MemoryKind::Recurrence, ArrayKind::Recurrence)
            | (MemoryKind::Generate, ArrayKind::Generate)
            | (MemoryKind::Register, ArrayKind::Register)
    )
}

fn needed_width(body: &Node) -> u32 {
    match &body.kind {
        NodeKind::Instruction(instruction) => {
            operations::lookup(&instruction.operation).map_or(64, |operation| operation.width)
        }
        _ => 64,
    }
}

/// What is wrong with a port on an element.
fn port_fault(
    graph: &Graph,
    adg: &Adg,
    element: &Element,
    body: &Node,
    port: &Port,
    incoming: bool,
) -> Option<String> {
    let (hardware, links) = match (&element.kind, incoming) {
        (ElementKind::InputPort(hardware), true) => (hardware, &element.outputs),
        (ElementKind::OutputPort(hardware), false) => (hardware, &element.inputs),
        _ => {
            return Some(if incoming {
                "which is no input port".to_owned()
            } else {
                "which is no output port".to_owned()
            });
        }
    };
    if port.stated && !hardware.stated {
        return Some("which takes no state, but the port is stated".to_owned());
    }
    let data = &links[usize::from(hardware.stated).min(links.len())..];
    let bits: u64 = data.iter().map(|link| u64::from(adg.width(*link))).sum();
    let temporal = graph
        .groups
        .get(body.group)
        .is_some_and(|group| group.temporal);
    let wanted = u64::from(port.width) * if temporal { 1 } else { u64::from(port.lanes) };
    (wanted > bits).then(|| {
        format!(
            "whose {} links for data have {bits} bits, but the port has {wanted}",
            data.len()
        )
    })
}

/// What is wrong with an instruction on an element.
fn unit_fault(
    graph: &Graph,
    adg: &Adg,
    element: &Element,
    location: Location,
    body: &Node,
    width: u32,
    parts: u32,
) -> Option<String> {
    let ElementKind::ProcessingElement(unit) = &element.kind else {
        return Some("which is no processing element".to_owned());
    };
    let (operations, control, self_control) = match &body.kind {
        NodeKind::Instruction(instruction) => (
            vec![instruction.operation.as_str()],
            instruction.control.is_some(),
            instruction.self_control.is_some(),
        ),
        NodeKind::Composite(composite) => (
            composite
                .units
                .iter()
                .map(|(operation, _)| operation.as_str())
                .collect(),
            false,
            false,
        ),
        _ => return None,
    };
    if let Some(missing) = operations
        .iter()
        .find(|operation| !unit.operations.iter().any(|known| known == **operation))
    {
        return Some(format!("which does not know {missing}"));
    }
    if !location.slot.is_multiple_of(parts) || location.slot + parts > element.slots() {
        return Some(format!(
            "at slot {}, but {width} bits take {parts} slots from an even one of its {}",
            location.slot,
            element.slots()
        ));
    }
    let temporal = graph
        .groups
        .get(body.group)
        .is_some_and(|group| group.temporal);
    if temporal && unit.instruction_slots < 2 {
        return Some(
            "which instructions cannot share in time, but its group is temporal".to_owned(),
        );
    }
    if body.values.len() > element.outputs.len() {
        return Some(format!(
            "which has {} output links, but it has {} results",
            element.outputs.len(),
            body.values.len()
        ));
    }
    if adg.form == Form::Generator {
        let read = body
            .operands
            .iter()
            .filter_map(|operand| match operand.source {
                Source::Register(register) => Some(register),
                _ => None,
            });
        let highest = read
            .chain(
                body.values
                    .iter()
                    .flat_map(|value| value.registers.iter().copied()),
            )
            .max();
        if highest.is_some_and(|register| u32::from(register) >= unit.registers) {
            return Some(format!(
                "which has {} registers, but it uses register {}",
                unit.registers,
                highest.unwrap_or(0)
            ));
        }
        if control && !unit.input_control || self_control && !unit.output_control {
            return Some("whose control table cannot be driven so".to_owned());
        }
    }
    None
}
