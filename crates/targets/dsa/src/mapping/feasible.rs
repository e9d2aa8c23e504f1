//! Conditions that every mapping needs, checked before any search: what cannot be mapped is refused at once, with the reason.

use super::fabric::{FAR, Fabric};
use super::kernel::{Kernel, Net, Place, Vertex, label};
use crate::adg::{Element, ElementId, Form, MemoryKind};
use crate::graph::{ArrayKind, Graph};
use std::collections::{BTreeMap, BTreeSet};

/// Where each vertex can be, and where the arrays are.
pub(super) struct Candidates {
    /// For each vertex: elements and slots.
    pub(super) of: Vec<Vec<(u32, u32)>>,
    /// For each array its memory.
    pub(super) memories: Vec<u32>,
}

/// Divisions of arrays among memories that are tried, at most.
const MOST_DIVISIONS: usize = 4096;
/// Arrays that are divided, at most.
const MOST_ARRAYS: usize = 512;
/// Steps of the search for divisions.
const STEPS: usize = 1 << 18;
/// Of these, how many that seem possible are searched.
const SEARCHED: usize = 4;

/// Why there is no mapping.
pub(super) struct Refusal {
    pub(super) reason: String,
    /// Whether that is certain.
    pub(super) proved: bool,
}

/// Finds the candidates, for each division of the arrays among the memories that seems possible; there is at least one. And whether
/// these are all divisions that can be.
///
/// # Errors
/// Why there is no mapping.
pub(super) fn candidates(
    graph: &Graph,
    kernel: &Kernel,
    fabric: &Fabric<'_>,
) -> Result<(Vec<Candidates>, bool), Refusal> {
    let proved = |reason| Refusal {
        reason,
        proved: true,
    };
    let of = places(graph, kernel, fabric).map_err(proved)?;
    let arrays = kernel.arrays.len();
    if arrays > MOST_ARRAYS {
        let reason = format!(
            "the graph has {arrays} arrays, more than the {MOST_ARRAYS} that are divided among memories"
        );
        return Err(Refusal {
            reason,
            proved: false,
        });
    }
    let (divisions, complete) = divisions(graph, kernel, fabric).map_err(proved)?;
    if divisions.is_empty() {
        let reason = format!(
            "no division of the {arrays} arrays among the memories of their kinds was found in which each has room"
        );
        return Err(Refusal {
            reason,
            proved: complete,
        });
    }
    let mut found = Vec::new();
    let mut refusal = None;
    let every = divisions.len();
    for (number, memories) in divisions.into_iter().enumerate() {
        match ports(graph, kernel, fabric, of.clone(), &memories) {
            Ok(of) => found.push(Candidates { of, memories }),
            Err(reason) => refusal = refusal.or(Some(reason)),
        }
        if found.len() == SEARCHED {
            return Ok((found, complete && number + 1 == every));
        }
    }
    match refusal {
        Some(reason) if found.is_empty() => Err(Refusal {
            reason,
            proved: complete,
        }),
        _ => Ok((found, complete)),
    }
}

/// Candidates of the instructions; those of ports depend on where the arrays are.
fn places(
    graph: &Graph,
    kernel: &Kernel,
    fabric: &Fabric<'_>,
) -> Result<Vec<Vec<(u32, u32)>>, String> {
    let room: usize = fabric
        .units
        .iter()
        .map(|id| {
            let element = &fabric.adg.elements[ElementId::new(*id as usize)];
            element
                .processing()
                .map_or(0, |unit| unit.instruction_slots as usize)
                .max(1)
                * element.slots() as usize
        })
        .sum();
    for (place, what, there) in [
        (Place::Input, "input ports", fabric.input_ports.len()),
        (Place::Output, "output ports", fabric.output_ports.len()),
        (Place::Unit, "instructions", room),
    ] {
        let wanted = kernel
            .vertices
            .iter()
            .filter(|vertex| vertex.place == place)
            .count();
        if wanted > there {
            let has = if place == Place::Unit {
                "room for "
            } else {
                ""
            };
            return Err(format!(
                "the graph has {wanted} {what}, the fabric {has}{there}"
            ));
        }
    }
    let mut of = Vec::with_capacity(kernel.vertices.len());
    for vertex in &kernel.vertices {
        of.push(if vertex.place == Place::Unit {
            unit_candidates(graph, kernel, fabric, vertex)?
        } else {
            Vec::new()
        });
    }
    narrow_slices(graph, kernel, fabric)?;
    temporal_groups(kernel, fabric, &of)?;
    matching(graph, kernel, fabric, &of, Place::Unit, "instructions")?;
    Ok(of)
}

/// The candidates of the ports beside those of the instructions.
fn ports(
    graph: &Graph,
    kernel: &Kernel,
    fabric: &Fabric<'_>,
    mut of: Vec<Vec<(u32, u32)>>,
    memories: &[u32],
) -> Result<Vec<Vec<(u32, u32)>>, String> {
    for (vertex, candidates) in kernel.vertices.iter().zip(&mut of) {
        if vertex.place != Place::Unit {
            *candidates = port_candidates(graph, kernel, fabric, vertex, memories)?;
        }
    }
    matching(graph, kernel, fabric, &of, Place::Input, "input ports")?;
    matching(graph, kernel, fabric, &of, Place::Output, "output ports")?;
    Ok(of)
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

/// Ways to divide the arrays among the memories of their kinds, the most even first: for each array its memory.
pub(super) fn divisions(
    graph: &Graph,
    kernel: &Kernel,
    fabric: &Fabric<'_>,
) -> Result<(Vec<Vec<u32>>, bool), String> {
    let memories: Vec<(u32, ArrayRoom)> = fabric
        .adg
        .elements
        .iter_enumerated()
        .filter_map(|(id, element)| {
            let memory = element.memory()?;
            Some((
                id.index() as u32,
                ArrayRoom {
                    kind: memory.kind,
                    left: memory.capacity,
                },
            ))
        })
        .collect();
    let mut order: Vec<usize> = (0..kernel.arrays.len()).collect();
    order.sort_by_key(|array| std::cmp::Reverse(kernel.arrays[*array].size));
    for array in &kernel.arrays {
        let kind = memory_kind(array.kind);
        let most = memories
            .iter()
            .filter(|(_, room)| room.kind == kind)
            .map(|(_, room)| room.left)
            .max();
        let (name, size) = (label(graph, array.node), array.size);
        match most {
            None => {
                return Err(format!(
                    "the array {name} needs a {}; the fabric has none",
                    kind.name()
                ));
            }
            Some(most) if most < size => {
                return Err(format!(
                    "the array {name} needs {size} bytes of a {}; the largest has {most}",
                    kind.name()
                ));
            }
            Some(_) => {}
        }
    }
    Ok(divide(kernel, &order, memories))
}

#[derive(Clone, Copy)]
struct ArrayRoom {
    kind: MemoryKind,
    left: u64,
}

/// Every array on a memory with room for it, in every way, until there are enough; and whether these are all.
fn divide(
    kernel: &Kernel,
    order: &[usize],
    mut memories: Vec<(u32, ArrayRoom)>,
) -> (Vec<Vec<u32>>, bool) {
    let mut chosen = vec![0; order.len()];
    if order.is_empty() {
        return (vec![chosen], true);
    }
    // The memory with the most room first.
    let options = |memories: &[(u32, ArrayRoom)], array: usize| -> Vec<usize> {
        let (kind, size) = (
            memory_kind(kernel.arrays[array].kind),
            kernel.arrays[array].size,
        );
        let mut fitting: Vec<usize> = (0..memories.len())
            .filter(|memory| memories[*memory].1.kind == kind && memories[*memory].1.left >= size)
            .collect();
        fitting.sort_by_key(|memory| std::cmp::Reverse(memories[*memory].1.left));
        fitting
    };
    let mut found = Vec::new();
    let mut stack: Vec<(Vec<usize>, usize)> = vec![(options(&memories, order[0]), 0)];
    for _ in 0..STEPS {
        let depth = stack.len();
        let Some((fitting, next)) = stack.last_mut() else {
            return (found, true);
        };
        let array = order[depth - 1];
        let size = kernel.arrays[array].size;
        if let Some(&before) = next.checked_sub(1).and_then(|before| fitting.get(before)) {
            memories[before].1.left += size;
        }
        let Some(&memory) = fitting.get(*next) else {
            stack.pop();
            continue;
        };
        *next += 1;
        memories[memory].1.left -= size;
        chosen[array] = memories[memory].0;
        match order.get(depth) {
            Some(array) => stack.push((options(&memories, *array), 0)),
            None => found.push(chosen.clone()),
        }
        if found.len() >= MOST_DIVISIONS {
            break;
        }
    }
    (found, false)
}

/// What keeps an instruction off an element, in the order of the questions asked.
fn obstacle(
    kernel: &Kernel,
    fabric: &Fabric<'_>,
    vertex: &Vertex,
    id: u32,
    element: &Element,
) -> Option<String> {
    let unit = element.processing()?;
    if let Some(missing) = vertex
        .operations
        .iter()
        .find(|operation| unit.code(operation).is_none())
    {
        return Some(format!("an element that knows {missing}; no element does"));
    }
    if element.width < vertex.width {
        return Some(format!(
            "a data path of {} bits; no element that knows the operation has one",
            vertex.width
        ));
    }
    if vertex.temporal && !unit.is_shared() {
        return Some("an element that instructions share in time; no element is shared".to_owned());
    }
    let outputs = fabric.outputs[id as usize].len();
    if outputs < vertex.results {
        return Some(format!(
            "{} output links on one element; no element has them",
            vertex.results
        ));
    }
    let mut operands: Vec<usize> = vertex
        .inputs
        .iter()
        .map(|wire| kernel.wires[*wire].net)
        .collect();
    operands.sort_unstable();
    operands.dedup();
    let entries: u32 = fabric.inputs[id as usize]
        .iter()
        .map(|link| fabric.links[*link as usize].slots)
        .sum();
    if !vertex.temporal && (entries as usize) < operands.len() {
        return Some(format!(
            "{} input links on one element; no element has them",
            operands.len()
        ));
    }
    if fabric.adg.form == Form::Generator {
        if unit.registers < vertex.registers {
            return Some(format!(
                "{} registers in one element; no element has them",
                vertex.registers
            ));
        }
        if vertex.control && !unit.input_control || vertex.self_control && !unit.output_control {
            return Some(
                "an element whose control table can be driven so; no element has one".to_owned(),
            );
        }
    }
    None
}

/// Whether an element whose part begins at a bit has a link for each operand and each result, with slots where they lie.
fn has_ways(kernel: &Kernel, fabric: &Fabric<'_>, vertex: &Vertex, id: u32, bit: u32) -> bool {
    let fits = |link: u32, from: u32, width: u32| {
        let way = fabric.links[link as usize];
        let (first, parts) = (from / way.granularity, fabric.slots_for(link, width));
        first.is_multiple_of(parts) && first + parts <= way.slots
    };
    let entry = |wire: &usize| {
        let wire = &kernel.wires[*wire];
        let together = vertex.temporal && kernel.vertices[wire.source].temporal;
        let fine = |link: &u32| {
            wire.offset
                .is_multiple_of(fabric.links[*link as usize].granularity)
        };
        together
            || fabric.inputs[id as usize]
                .iter()
                .any(|link| fine(link) && fits(*link, bit + wire.offset, wire.width))
    };
    let exit = |wire: &usize| {
        let wire = &kernel.wires[*wire];
        let together = vertex.temporal && kernel.vertices[wire.sink].temporal;
        together
            || fabric.outputs[id as usize]
                .iter()
                .any(|link| fits(*link, bit + wire.low, wire.width))
    };
    vertex.inputs.iter().all(entry) && vertex.outputs.iter().all(exit)
}

fn unit_candidates(
    graph: &Graph,
    kernel: &Kernel,
    fabric: &Fabric<'_>,
    vertex: &Vertex,
) -> Result<Vec<(u32, u32)>, String> {
    let mut found = Vec::new();
    let mut last: Option<(usize, String)> = None;
    for &id in &fabric.units {
        let element = &fabric.adg.elements[ElementId::new(id as usize)];
        match obstacle(kernel, fabric, vertex, id, element) {
            None => {
                let slots = if vertex.temporal { 1 } else { element.slots() };
                let taken = vertex.width.div_ceil(element.granularity.max(1)).max(1);
                let before = found.len();
                let fits = |slot: &u32| {
                    slot + taken <= element.slots()
                        && has_ways(kernel, fabric, vertex, id, slot * element.granularity)
                };
                found.extend(
                    (0..slots)
                        .step_by(taken as usize)
                        .filter(fits)
                        .map(|slot| (id, slot)),
                );
                if found.len() == before && last.as_ref().is_none_or(|(best, _)| *best < usize::MAX)
                {
                    let reason = "links that take all its operands and results apart as it does; no element has them";
                    last = Some((usize::MAX, reason.to_owned()));
                }
            }
            // The obstacle of the element that comes nearest is the one to tell.
            Some(reason) => {
                let near = [
                    "knows",
                    "data path",
                    "share",
                    "output links",
                    "input links",
                    "registers",
                    "control table",
                ];
                let rank = near
                    .iter()
                    .position(|word| reason.contains(word))
                    .unwrap_or(0);
                if last.as_ref().is_none_or(|(best, _)| rank > *best) {
                    last = Some((rank, reason));
                }
            }
        }
    }
    if found.is_empty() {
        let reason = last.map_or_else(
            || "a processing element; the fabric has none".to_owned(),
            |(_, reason)| reason,
        );
        return Err(format!("{} needs {reason}", label(graph, vertex.node)));
    }
    Ok(found)
}

/// Lanes that the data links of a port have room for; of a port that keeps order those in front.
fn lanes_of(fabric: &Fabric<'_>, port: u32, links: &[u32], vertex: &Vertex) -> u32 {
    let on =
        |link: &u32| fabric.links[*link as usize].slots / fabric.slots_for(*link, vertex.width);
    if fabric.is_ordered(port) {
        links.iter().take_while(|link| on(link) > 0).count() as u32
    } else {
        links.iter().map(on).sum()
    }
}

fn port_candidates(
    graph: &Graph,
    kernel: &Kernel,
    fabric: &Fabric<'_>,
    vertex: &Vertex,
    memories: &[u32],
) -> Result<Vec<(u32, u32)>, String> {
    let outgoing = vertex.place == Place::Input;
    let ports = if outgoing {
        &fabric.input_ports
    } else {
        &fabric.output_ports
    };
    let name = label(graph, vertex.node);
    let what = if outgoing {
        "input port"
    } else {
        "output port"
    };
    let array = vertex
        .array
        .and_then(|array| kernel.arrays.iter().position(|known| known.node == array));
    let mut found = Vec::new();
    let needed = if vertex.temporal { 1 } else { vertex.lanes };
    let (mut widest, mut stateless, mut apart) = (0, 0, 0);
    for &id in ports {
        let element = &fabric.adg.elements[ElementId::new(id as usize)];
        if vertex.stated && !element.port().is_some_and(|port| port.stated) {
            stateless += 1;
            continue;
        }
        if let Some(memory) = array.map(|array| memories[array]) {
            let memory_id = ElementId::new(memory as usize);
            let reached = if outgoing {
                element
                    .inputs
                    .iter()
                    .any(|link| fabric.adg.links[*link].source == memory_id)
            } else {
                element
                    .outputs
                    .iter()
                    .any(|link| fabric.adg.links[*link].sink == memory_id)
            };
            if !reached {
                apart += 1;
                continue;
            }
        }
        let links = fabric.data_links(id, outgoing);
        let lanes = lanes_of(fabric, id, links, vertex);
        widest = widest.max(lanes);
        if needed <= lanes {
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
        let reserved = if ports.iter().any(|id| {
            fabric.adg.elements[ElementId::new(*id as usize)]
                .port()
                .is_some_and(|port| port.stated)
        }) {
            " (the first link of a stated port is kept for the state)"
        } else {
            ""
        };
        format!(
            "the {what} {name} has {} lanes of {} bits; the widest {what} has links for {widest} such lanes{reserved}",
            vertex.lanes, vertex.width
        )
    })
}

/// Parts of a value that no switch can take apart, operands that no element can put together.
fn narrow_slices(graph: &Graph, kernel: &Kernel, fabric: &Fabric<'_>) -> Result<(), String> {
    let finest = fabric
        .links
        .iter()
        .filter(|link| fabric.is_switch[link.source as usize])
        .map(|link| link.granularity)
        .min();
    let Some(finest) = finest else { return Ok(()) };
    for wire in &kernel.wires {
        if wire.low % finest != 0 || wire.offset % finest != 0 {
            let (from, to) = (
                label(graph, kernel.vertices[wire.source].node),
                label(graph, kernel.vertices[wire.sink].node),
            );
            let (low, high) = (wire.low, wire.low + wire.width - 1);
            return Err(if wire.low % finest == 0 {
                format!(
                    "{to} puts an operand together at bit {}; the fabric routes {finest} bits at once",
                    wire.offset
                )
            } else {
                format!(
                    "{to} takes bits {low} to {high} of {from}; the fabric routes {finest} bits at once"
                )
            });
        }
    }
    Ok(())
}

/// The instructions of a temporal group share an element: it must have room for them, and links for what they exchange with others.
fn temporal_groups(
    kernel: &Kernel,
    fabric: &Fabric<'_>,
    of: &[Vec<(u32, u32)>],
) -> Result<(), String> {
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, vertex) in kernel.vertices.iter().enumerate() {
        if vertex.temporal && vertex.place == Place::Unit {
            groups.entry(vertex.group).or_default().push(number);
        }
    }
    for (group, members) in groups {
        let nets = |wires: fn(&Vertex) -> &Vec<usize>, other: fn(&Kernel, usize) -> usize| {
            let outside = members
                .iter()
                .flat_map(|member| wires(&kernel.vertices[*member]));
            let outside = outside.filter(|wire| !members.contains(&other(kernel, **wire)));
            outside
                .map(|wire| kernel.wires[*wire].net)
                .collect::<BTreeSet<usize>>()
                .len()
        };
        let entering = nets(
            |vertex| &vertex.inputs,
            |kernel, wire| kernel.wires[wire].source,
        );
        let leaving = nets(
            |vertex| &vertex.outputs,
            |kernel, wire| kernel.wires[wire].sink,
        );
        let room = |links: &[u32]| {
            links
                .iter()
                .map(|link| fabric.links[*link as usize].slots as usize)
                .sum::<usize>()
        };
        let suits = |(element, _): &(u32, u32)| {
            let unit = fabric.adg.elements[ElementId::new(*element as usize)].processing();
            unit.is_some_and(|unit| unit.instruction_slots as usize >= members.len())
                && members
                    .iter()
                    .all(|member| of[*member].iter().any(|(other, _)| other == element))
                && room(&fabric.inputs[*element as usize]) >= entering
                && room(&fabric.outputs[*element as usize]) >= leaving
        };
        if !of[members[0]].iter().any(suits) {
            return Err(format!(
                "the {} instructions of temporal sub-graph {group} share one element, which takes {entering} values in and {leaving} out; \
                 no element knows them all and has the links",
                members.len()
            ));
        }
    }
    Ok(())
}

/// Whether every vertex can have a place of its own: a bipartite matching. Where there is none, the vertices and places that prove it.
fn matching(
    graph: &Graph,
    kernel: &Kernel,
    fabric: &Fabric<'_>,
    of: &[Vec<(u32, u32)>],
    place: Place,
    what: &str,
) -> Result<(), String> {
    let mut holders: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    let room = |spot: (u32, u32)| match &fabric.adg.elements[ElementId::new(spot.0 as usize)]
        .processing()
    {
        Some(unit) if unit.is_shared() => unit.instruction_slots as usize,
        _ => 1,
    };
    for (vertex, _) in kernel
        .vertices
        .iter()
        .enumerate()
        .filter(|(_, vertex)| vertex.place == place)
    {
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
                queue.extend(
                    held.iter()
                        .copied()
                        .filter(|other| !queue.contains(other))
                        .collect::<Vec<_>>(),
                );
            }
        }
        let Some(mut spot) = end else {
            let names: Vec<String> = queue
                .iter()
                .take(6)
                .map(|v| label(graph, kernel.vertices[*v].node))
                .collect();
            let more = if queue.len() > names.len() {
                ", …"
            } else {
                ""
            };
            let places: usize = from.keys().map(|spot| room(*spot)).sum();
            return Err(format!(
                "{} {what} ({}{more}) have {places} places between them",
                queue.len(),
                names.join(", ")
            ));
        };
        while let Some(&taker) = from.get(&spot) {
            let previous = holders
                .iter()
                .find(|(_, held)| held.contains(&taker))
                .map(|(spot, _)| *spot);
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
        let mut elements: Vec<u32> = candidates.of[vertex]
            .iter()
            .map(|(element, _)| *element)
            .collect();
        elements.dedup();
        let mut times = Vec::with_capacity(elements.len());
        for element in elements {
            let mut start = 0;
            for wire in body
                .inputs
                .iter()
                .map(|wire| &kernel.wires[*wire])
                .filter(|wire| wire.timed)
            {
                let ways = ready[wire.source].iter().map(|(from, time)| {
                    let hops = if *from == element {
                        2
                    } else {
                        fabric.hops_out(*from, element)
                    };
                    if hops >= FAR {
                        i32::MAX
                    } else {
                        time + i32::from(hops) - 1
                    }
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
    kernel
        .nets
        .iter()
        .enumerate()
        .filter(move |(_, net)| net.source == vertex)
}
