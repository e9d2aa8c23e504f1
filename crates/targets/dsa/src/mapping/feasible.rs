//! Conditions that every mapping needs, checked before any search: what cannot be mapped is refused at once, with the reason.

use super::fabric::{FAR, Fabric};
use super::kernel::{Kernel, Net, Place, Vertex, label};
use crate::adg::{Element, ElementId, Form, MemoryKind};
use crate::graph::{ArrayKind, Graph};
use std::collections::BTreeMap;

/// Where each vertex can be, and where the arrays are.
pub(super) struct Candidates {
    /// For each vertex: elements and slots.
    pub(super) of: Vec<Vec<(u32, u32)>>,
    /// For each array its memory.
    pub(super) memories: Vec<u32>,
}

/// Finds the candidates.
///
/// # Errors
/// Why there is no mapping.
pub(super) fn candidates(graph: &Graph, kernel: &Kernel, fabric: &Fabric<'_>) -> Result<Candidates, String> {
    let memories = place_arrays(graph, kernel, fabric)?;
    let room: usize = fabric
        .units
        .iter()
        .map(|id| {
            let element = &fabric.adg.elements[ElementId::new(*id as usize)];
            element.processing().map_or(0, |unit| unit.instruction_slots as usize).max(element.slots() as usize)
        })
        .sum();
    for (place, what, there) in [
        (Place::Input, "input ports", fabric.input_ports.len()),
        (Place::Output, "output ports", fabric.output_ports.len()),
        (Place::Unit, "instructions", room),
    ] {
        let wanted = kernel.vertices.iter().filter(|vertex| vertex.place == place).count();
        if wanted > there {
            let has = if place == Place::Unit { "room for " } else { "" };
            return Err(format!("the graph has {wanted} {what}, the fabric {has}{there}"));
        }
    }
    let mut of = Vec::with_capacity(kernel.vertices.len());
    for vertex in &kernel.vertices {
        let found = match vertex.place {
            Place::Unit => unit_candidates(graph, kernel, fabric, vertex)?,
            Place::Input | Place::Output => port_candidates(graph, kernel, fabric, vertex, &memories)?,
        };
        of.push(found);
    }
    narrow_slices(graph, kernel, fabric)?;
    for (place, what) in [(Place::Input, "input ports"), (Place::Output, "output ports"), (Place::Unit, "instructions")] {
        matching(graph, kernel, fabric, &of, place, what)?;
    }
    Ok(Candidates { of, memories })
}

fn memory_kind(kind: ArrayKind) -> MemoryKind {
    match kind {
        ArrayKind::Dma => MemoryKind::DirectMemoryAccess,
        ArrayKind::Scratchpad => MemoryKind::Scratchpad,
        ArrayKind::Recurrence => MemoryKind::Recurrence,
        ArrayKind::Generate => MemoryKind::Generate,
        ArrayKind::Register => MemoryKind::Register,
    }
}

/// Arrays into memories of their kind, the largest first, each into the memory with the most room.
fn place_arrays(graph: &Graph, kernel: &Kernel, fabric: &Fabric<'_>) -> Result<Vec<u32>, String> {
    let mut room: BTreeMap<u32, u64> = BTreeMap::new();
    for (id, element) in fabric.adg.elements.iter_enumerated() {
        if let Some(memory) = element.memory() {
            room.insert(id.index() as u32, memory.capacity);
        }
    }
    let mut order: Vec<usize> = (0..kernel.arrays.len()).collect();
    order.sort_by_key(|array| std::cmp::Reverse(kernel.arrays[*array].size));
    let mut memories = vec![0; kernel.arrays.len()];
    for array in order {
        let wanted = &kernel.arrays[array];
        let kind = memory_kind(wanted.kind);
        let of_kind = |id: &u32| fabric.adg.elements[ElementId::new(*id as usize)].memory().is_some_and(|memory| memory.kind == kind);
        let best = room.iter().filter(|(id, _)| of_kind(id)).max_by_key(|(id, room)| (**room, std::cmp::Reverse(**id)));
        let name = label(graph, wanted.node);
        let Some((&id, &left)) = best else {
            return Err(format!("the array {name} needs a {}; the fabric has none", kind.name()));
        };
        if left < wanted.size {
            return Err(format!(
                "the array {name} needs {} bytes of a {}; the most that is left in one is {left}",
                wanted.size,
                kind.name()
            ));
        }
        room.insert(id, left - wanted.size);
        memories[array] = id;
    }
    Ok(memories)
}

/// What keeps an instruction off an element, in the order of the questions asked.
fn obstacle(kernel: &Kernel, fabric: &Fabric<'_>, vertex: &Vertex, id: u32, element: &Element) -> Option<String> {
    let unit = element.processing()?;
    if let Some(missing) = vertex.operations.iter().find(|operation| unit.code(operation).is_none()) {
        return Some(format!("an element that knows {missing}; no element does"));
    }
    if element.width < vertex.width {
        return Some(format!("a data path of {} bits; no element that knows the operation has one", vertex.width));
    }
    if vertex.temporal && !unit.is_shared() {
        return Some("an element that instructions share in time; no element is shared".to_owned());
    }
    let outputs = fabric.outputs[id as usize].len();
    if outputs < vertex.results {
        return Some(format!("{} output links on one element; no element has them", vertex.results));
    }
    let mut operands: Vec<usize> = vertex.inputs.iter().map(|wire| kernel.wires[*wire].net).collect();
    operands.sort_unstable();
    operands.dedup();
    let entries: u32 = fabric.inputs[id as usize].iter().map(|link| fabric.links[*link as usize].slots).sum();
    if !vertex.temporal && (entries as usize) < operands.len() {
        return Some(format!("{} input links on one element; no element has them", operands.len()));
    }
    if fabric.adg.form == Form::Generator {
        if unit.registers < vertex.registers {
            return Some(format!("{} registers in one element; no element has them", vertex.registers));
        }
        if vertex.control && !unit.input_control || vertex.self_control && !unit.output_control {
            return Some("an element whose control table can be driven so; no element has one".to_owned());
        }
    }
    None
}

fn unit_candidates(graph: &Graph, kernel: &Kernel, fabric: &Fabric<'_>, vertex: &Vertex) -> Result<Vec<(u32, u32)>, String> {
    let mut found = Vec::new();
    let mut last: Option<(usize, String)> = None;
    for &id in &fabric.units {
        let element = &fabric.adg.elements[ElementId::new(id as usize)];
        match obstacle(kernel, fabric, vertex, id, element) {
            None => {
                let slots = if vertex.temporal { 1 } else { element.slots() };
                let taken = vertex.width.div_ceil(element.granularity.max(1)).max(1);
                found.extend((0..slots).step_by(taken as usize).filter(|slot| slot + taken <= element.slots()).map(|slot| (id, slot)));
            }
            // The obstacle of the element that comes nearest is the one to tell.
            Some(reason) => {
                let near = ["knows", "data path", "share", "output links", "input links", "registers", "control table"];
                let rank = near.iter().position(|word| reason.contains(word)).unwrap_or(0);
                if last.as_ref().is_none_or(|(best, _)| rank > *best) {
                    last = Some((rank, reason));
                }
            }
        }
    }
    if found.is_empty() {
        let reason = last.map_or_else(|| "a processing element; the fabric has none".to_owned(), |(_, reason)| reason);
        return Err(format!("{} needs {reason}", label(graph, vertex.node)));
    }
    Ok(found)
}

/// Links for data that a port needs: one for each lane, or less where lanes share a link.
fn links_needed(vertex: &Vertex, granularity: u32, width: u32) -> u32 {
    if vertex.temporal {
        return 1;
    }
    let on_one = (width / vertex.width.max(granularity).max(1)).max(1);
    vertex.lanes.div_ceil(on_one)
}

fn port_candidates(
    graph: &Graph,
    kernel: &Kernel,
    fabric: &Fabric<'_>,
    vertex: &Vertex,
    memories: &[u32],
) -> Result<Vec<(u32, u32)>, String> {
    let outgoing = vertex.place == Place::Input;
    let ports = if outgoing { &fabric.input_ports } else { &fabric.output_ports };
    let name = label(graph, vertex.node);
    let what = if outgoing { "input port" } else { "output port" };
    let array = vertex.array.and_then(|array| kernel.arrays.iter().position(|known| known.node == array));
    let mut found = Vec::new();
    let (mut widest, mut needed, mut stateless, mut apart) = (0, vertex.lanes, 0, 0);
    for &id in ports {
        let element = &fabric.adg.elements[ElementId::new(id as usize)];
        if vertex.stated && !element.port().is_some_and(|port| port.stated) {
            stateless += 1;
            continue;
        }
        if let Some(memory) = array.map(|array| memories[array]) {
            let memory_id = ElementId::new(memory as usize);
            let reached = if outgoing {
                element.inputs.iter().any(|link| fabric.adg.links[*link].source == memory_id)
            } else {
                element.outputs.iter().any(|link| fabric.adg.links[*link].sink == memory_id)
            };
            if !reached {
                apart += 1;
                continue;
            }
        }
        let links = fabric.data_links(id, outgoing);
        let granularity = links.iter().map(|link| fabric.links[*link as usize].granularity).max().unwrap_or(64);
        let width = links.iter().map(|link| fabric.links[*link as usize].slots * granularity).min().unwrap_or(64);
        needed = links_needed(vertex, granularity, width);
        widest = widest.max(links.len());
        if needed as usize <= links.len() {
            found.push((id, 0));
        }
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let every = ports.len();
    Err(if stateless == every {
        format!("the stated port {name} needs a stated {what}; the fabric has none")
    } else if apart + stateless == every {
        format!("the {what} {name} needs a link to the memory of its array; no {what} has one")
    } else {
        let reserved = if ports.iter().any(|id| fabric.adg.elements[ElementId::new(*id as usize)].port().is_some_and(|port| port.stated)) {
            " (the first link of a stated port is kept for the state)"
        } else {
            ""
        };
        format!(
            "the {what} {name} has {} lanes of {} bits and needs {needed} links; the widest {what} has {widest} for data{reserved}",
            vertex.lanes, vertex.width
        )
    })
}

/// Parts of a value that no switch can take apart, operands that no element can put together.
fn narrow_slices(graph: &Graph, kernel: &Kernel, fabric: &Fabric<'_>) -> Result<(), String> {
    let finest = fabric.links.iter().filter(|link| fabric.is_switch[link.source as usize]).map(|link| link.granularity).min();
    let Some(finest) = finest else { return Ok(()) };
    for wire in &kernel.wires {
        if wire.low % finest != 0 || wire.offset % finest != 0 {
            let (from, to) = (label(graph, kernel.vertices[wire.source].node), label(graph, kernel.vertices[wire.sink].node));
            let (low, high) = (wire.low, wire.low + wire.width - 1);
            return Err(if wire.low % finest == 0 {
                format!("{to} puts an operand together at bit {}; the fabric routes {finest} bits at once", wire.offset)
            } else {
                format!("{to} takes bits {low} to {high} of {from}; the fabric routes {finest} bits at once")
            });
        }
    }
    Ok(())
}

/// Whether every vertex can have a place of its own: a bipartite matching. Where there is none, the vertices and places that prove it.
fn matching(graph: &Graph, kernel: &Kernel, fabric: &Fabric<'_>, of: &[Vec<(u32, u32)>], place: Place, what: &str) -> Result<(), String> {
    let mut holders: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    let room = |spot: (u32, u32)| match &fabric.adg.elements[ElementId::new(spot.0 as usize)].processing() {
        Some(unit) if unit.is_shared() => unit.instruction_slots as usize,
        _ => 1,
    };
    for (vertex, _) in kernel.vertices.iter().enumerate().filter(|(_, vertex)| vertex.place == place) {
        // Breadth first over alternating paths.
        let mut from: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        let mut queue = vec![vertex];
        let mut next = 0;
        let mut end = None;
        'search: while let Some(&at) = queue.get(next) {
            next += 1;
            for &spot in &of[at] {
                if from.contains_key(&spot) {
                    continue;
                }
                from.insert(spot, at);
                let held = holders.entry(spot).or_default();
                if held.len() < room(spot) {
                    end = Some(spot);
                    break 'search;
                }
                queue.extend(held.iter().copied().filter(|other| !queue.contains(other)).collect::<Vec<_>>());
            }
        }
        let Some(mut spot) = end else {
            let names: Vec<String> = queue.iter().take(6).map(|v| label(graph, kernel.vertices[*v].node)).collect();
            let more = if queue.len() > names.len() { ", …" } else { "" };
            let places: usize = from.keys().map(|spot| room(*spot)).sum();
            return Err(format!("{} {what} ({}{more}) have {places} places between them", queue.len(), names.join(", ")));
        };
        while let Some(&taker) = from.get(&spot) {
            let previous = holders.iter().find(|(_, held)| held.contains(&taker)).map(|(spot, _)| *spot);
            if let Some(previous) = previous
                && let Some(held) = holders.get_mut(&previous)
            {
                held.retain(|other| *other != taker);
            }
            holders.entry(spot).or_default().push(taker);
            match previous {
                Some(previous) if taker != vertex => spot = previous,
                _ => break,
            }
        }
    }
    Ok(())
}

/// A latency that no mapping can beat: each operand on the best way by itself.
pub(super) fn latency_bound(kernel: &Kernel, fabric: &Fabric<'_>, candidates: &Candidates) -> i32 {
    let mut best = 0;
    // Earliest result of each vertex at each of its candidate elements.
    let mut ready: Vec<Vec<(u32, i32)>> = vec![Vec::new(); kernel.vertices.len()];
    for &vertex in &kernel.order {
        let body = &kernel.vertices[vertex];
        let mut elements: Vec<u32> = candidates.of[vertex].iter().map(|(element, _)| *element).collect();
        elements.dedup();
        let mut times = Vec::with_capacity(elements.len());
        for element in elements {
            let mut start = 0;
            for wire in body.inputs.iter().map(|wire| &kernel.wires[*wire]).filter(|wire| wire.timed) {
                let ways = ready[wire.source].iter().map(|(from, time)| {
                    let hops = if *from == element { 2 } else { fabric.hops_out(*from, element) };
                    if hops >= FAR { i32::MAX } else { time + i32::from(hops) - 1 }
                });
                start = start.max(ways.min().unwrap_or(0));
            }
            if start < i32::MAX {
                times.push((element, start.saturating_add(body.latency)));
            }
        }
        if !body.temporal {
            best = best.max(times.iter().map(|(_, time)| *time).min().unwrap_or(0));
        }
        ready[vertex] = times;
    }
    best
}

/// Nets in groups by the port that they leave.
pub(super) fn nets_of(kernel: &Kernel, vertex: usize) -> impl Iterator<Item = (usize, &Net)> {
    kernel.nets.iter().enumerate().filter(move |(_, net)| net.source == vertex)
}
