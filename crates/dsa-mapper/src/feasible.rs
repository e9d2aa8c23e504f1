//! Conditions that every mapping needs, checked before any search: what cannot be mapped is refused at once, with the reason.

mod matching;
mod memories;

pub(crate) use memories::divisions;

use crate::fabric::Fabric;
use crate::kernel::{Kernel, Net, Place, Vertex, label};
use chipless_dsa::adg::{Element, ElementId, Form};
use chipless_dsa::graph::Graph;
use matching::matching;
use std::collections::{BTreeMap, BTreeSet};

/// Where each vertex can be, and where the arrays are.
pub(crate) struct Candidates {
    /// For each vertex: elements and slots.
    pub(crate) of: Vec<Vec<(u32, u32)>>,
    /// For each array its memory.
    pub(crate) memories: Vec<u32>,
}

/// Arrays that are divided, at most.
const MOST_ARRAYS: usize = 512;
impl Candidates {
    /// Places that all vertices of a cluster can have together; `None` where there is none.
    pub(crate) fn for_clusters(&self, kernel: &Kernel) -> Option<Candidates> {
        let mut of = self.of.clone();
        for members in kernel.together().iter().filter(|members| members.len() > 1) {
            let all = |spot: &(u32, u32)| members.iter().all(|m| self.of[*m].contains(spot));
            let common: Vec<(u32, u32)> = self.of[members[0]].iter().copied().filter(all).collect();
            if common.is_empty() {
                return None;
            }
            for member in members {
                of[*member].clone_from(&common);
            }
        }
        Some(Candidates {
            of,
            memories: self.memories.clone(),
        })
    }
}

/// Of these, how many that seem possible are searched.
const SEARCHED: usize = 4;

/// Why there is no mapping.
pub(crate) struct Refusal {
    pub(crate) reason: String,
    /// Whether that is certain.
    pub(crate) proved: bool,
}

/// Finds the candidates, for each division of the arrays among the memories that seems possible; there is at least one. And whether
/// these are all divisions that can be.
///
/// # Errors
/// Why there is no mapping.
pub(crate) fn candidates(
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
    one_element(kernel, fabric, &of)?;
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

/// Instructions that one shared element must hold all together need its slots, and a link for each value that enters or leaves them.
fn one_element(kernel: &Kernel, fabric: &Fabric<'_>, of: &[Vec<(u32, u32)>]) -> Result<(), String> {
    let temporal = |vertex: usize| {
        kernel.vertices[vertex].temporal && kernel.vertices[vertex].place == Place::Unit
    };
    let mut members: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for vertex in (0..kernel.vertices.len()).filter(|vertex| temporal(*vertex)) {
        if let [(element, _)] = of[vertex][..] {
            members.entry(element).or_default().push(vertex);
        }
    }
    for (id, members) in members {
        let nets = |wires: fn(&Vertex) -> &Vec<usize>, other: fn(&Kernel, usize) -> usize| {
            let all = members
                .iter()
                .flat_map(|member| wires(&kernel.vertices[*member]));
            let outside = all.filter(|wire| !members.contains(&other(kernel, **wire)));
            let nets = outside
                .map(|wire| kernel.wires[*wire].net)
                .collect::<BTreeSet<usize>>();
            // Links that are shared in time, and values that come in turns, take no link of their own.
            let own = nets.into_iter().filter(|net| {
                let net = &kernel.nets[*net];
                !net.in_turns && !net.wires.iter().all(|wire| kernel.wires[*wire].may_share)
            });
            own.count()
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
            let own = links
                .iter()
                .filter(|link| fabric.values[**link as usize] == 1);
            own.map(|link| fabric.links[*link as usize].slots as usize)
                .sum::<usize>()
        };
        let element = &fabric.adg.elements[ElementId::new(id as usize)];
        let slots = element
            .processing()
            .map_or(1, |unit| unit.instruction_slots as usize);
        let (ways_in, ways_out) = (
            room(&fabric.inputs[id as usize]),
            room(&fabric.outputs[id as usize]),
        );
        if members.len() > slots || entering > ways_in || leaving > ways_out {
            return Err(format!(
                "only {element} can hold {} of the temporal instructions, which take {entering} values in and {leaving} out; \
                 it has {slots} slots, {ways_in} links in and {ways_out} out",
                members.len()
            ));
        }
    }
    Ok(())
}

/// A latency that no mapping can beat: each operand on the best way by itself.
pub(crate) fn latency_bound(kernel: &Kernel, fabric: &Fabric<'_>, candidates: &Candidates) -> i32 {
    let mut best = 0;
    // For each vertex the earliest start on each of its candidates.
    let mut start: Vec<Vec<(u32, i32)>> = vec![Vec::new(); kernel.vertices.len()];
    for &vertex in &kernel.order {
        let body = &kernel.vertices[vertex];
        let mut elements: Vec<u32> = candidates.of[vertex]
            .iter()
            .map(|(element, _)| *element)
            .collect();
        elements.sort_unstable();
        elements.dedup();
        let mut times: Vec<(u32, i32)> = elements.into_iter().map(|element| (element, 0)).collect();
        for wire in &body.inputs {
            let wire = &kernel.wires[*wire];
            let arrival = arrivals(fabric, &start[wire.source], wire.ready);
            for (element, time) in &mut times {
                *time = (*time).max(arrival[*element as usize]);
            }
        }
        times.retain(|(_, time)| *time < NEVER);
        let first = times.iter().map(|(_, time)| *time).min().unwrap_or(0);
        best = best.max(first + body.latency);
        start[vertex] = times;
    }
    best
}

/// Where nothing arrives.
const NEVER: i32 = i32::MAX / 2;

/// The earliest cycle in which a value arrives at each element, if its source starts at the earliest on each of its candidates.
fn arrivals(fabric: &Fabric<'_>, sources: &[(u32, i32)], ready: i32) -> Vec<i32> {
    let mut arrival = vec![NEVER; fabric.size()];
    let first = sources.iter().map(|(_, time)| *time).min().unwrap_or(0);
    // What is reached in each cycle from the first on.
    let mut layers: Vec<Vec<u32>> = Vec::new();
    let mut reach = |layers: &mut Vec<Vec<u32>>, element: u32, time: i32| {
        let known = &mut arrival[element as usize];
        if time < *known {
            *known = time;
            let layer = (time - first - ready) as usize;
            if layers.len() <= layer {
                layers.resize(layer + 1, Vec::new());
            }
            if fabric.is_switch[element as usize] {
                layers[layer].push(element);
            }
        }
    };
    let mut inside = Vec::new();
    for &(from, time) in sources {
        for link in &fabric.outputs[from as usize] {
            reach(&mut layers, fabric.links[*link as usize].sink, time + ready);
        }
        // Instructions of one shared element need no link between them.
        let unit = fabric.adg.elements[ElementId::new(from as usize)].processing();
        if unit.is_some_and(chipless_dsa::adg::ProcessingElement::is_shared) {
            inside.push((from, time + ready));
        }
    }
    let mut layer = 0;
    while layer < layers.len() {
        // What was reached earlier since it stood here changes nothing any more.
        for at in std::mem::take(&mut layers[layer]) {
            for link in &fabric.outputs[at as usize] {
                let next = fabric.links[*link as usize].sink;
                reach(&mut layers, next, first + ready + layer as i32 + 1);
            }
        }
        layer += 1;
    }
    for (element, time) in inside {
        arrival[element as usize] = arrival[element as usize].min(time);
    }
    arrival
}

/// Nets in groups by the port that they leave.
pub(crate) fn nets_of(kernel: &Kernel, vertex: usize) -> impl Iterator<Item = (usize, &Net)> {
    kernel
        .nets
        .iter()
        .enumerate()
        .filter(move |(_, net)| net.source == vertex)
}
