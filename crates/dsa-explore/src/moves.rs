//! What can be changed of a fabric.

use crate::design::{Draft, Placed, Used, is_outside};
use crate::search::Freeze;
use chipless_dsa::adg::{Element, ElementKind};
use fastrand::Rng;

/// Takes off what no mapping uses: operations, elements, switches, ports, links, memories; and what is deeper, wider or larger than it need be.
pub(crate) fn prune(draft: &mut Draft, used: &Used, freeze: &Freeze) {
    // A port keeps a way to the memory outside, through which the host reaches it.
    let outside: Vec<usize> = draft
        .elements()
        .filter(|(_, element)| is_outside(element))
        .map(|(id, _)| id)
        .collect();
    let mut host: Vec<usize> = Vec::new();
    for (id, element) in draft.elements() {
        if element.port().is_some() && used.elements.contains(&id) {
            let own: Vec<(usize, usize, usize)> = draft
                .links()
                .filter(|(_, source, sink)| {
                    (*source == id && is_memory(draft, *sink))
                        || (*sink == id && is_memory(draft, *source))
                })
                .collect();
            let streams = own.iter().any(|(link, ..)| used.links.contains(link));
            let first = own
                .iter()
                .find(|(_, source, sink)| outside.contains(source) || outside.contains(sink));
            if let Some((link, ..)) = first.filter(|_| !streams) {
                host.push(*link);
            }
        }
    }
    for id in 0..draft.elements.len() {
        let Some(element) = &draft.elements[id] else {
            continue;
        };
        let unused = !used.elements.contains(&id)
            && !draft.links().any(|(link, source, sink)| {
                (source == id || sink == id) && (used.links.contains(&link) || host.contains(&link))
            });
        let frozen = match element.kind {
            ElementKind::ProcessingElement(_) => freeze.elements,
            ElementKind::Switch(_) => freeze.switches,
            ElementKind::InputPort(_) | ElementKind::OutputPort(_) => freeze.ports,
            ElementKind::Memory(_) => freeze.memories,
        };
        if unused && !frozen {
            draft.remove(id);
        }
    }
    if !freeze.links {
        // A port that stays stated keeps its first link for the state.
        for (id, element) in draft.elements() {
            if element.port().is_some_and(|port| port.stated)
                && (freeze.ports || used.stated.contains(&id))
            {
                let incoming = matches!(element.kind, ElementKind::InputPort(_));
                let first = draft.links().find(|(_, source, sink)| {
                    (if incoming { *source == id } else { *sink == id })
                        && !is_memory(draft, if incoming { *sink } else { *source })
                });
                host.extend(first.map(|(link, ..)| link));
            }
        }
        for id in 0..draft.links.len() {
            if !used.links.contains(&id) && !host.contains(&id) {
                draft.links[id] = None;
            }
        }
    }
    for (id, element) in draft.elements.iter_mut().enumerate() {
        if let Some(element) = element {
            shrink(id, element, used, freeze);
        }
    }
}

fn is_memory(draft: &Draft, element: usize) -> bool {
    draft.elements[element]
        .as_ref()
        .is_some_and(|element| element.memory().is_some())
}

fn shrink(id: usize, element: &mut Element, used: &Used, freeze: &Freeze) {
    let waits = used.waits.get(&id).copied().unwrap_or(0);
    match &mut element.kind {
        ElementKind::ProcessingElement(unit) => {
            if !freeze.operations {
                let known = used.operations.get(&id);
                unit.operations
                    .retain(|name| known.is_some_and(|known| known.contains(name)));
            }
            if !freeze.depths {
                unit.delay_depth = unit.delay_depth.min(waits.max(1));
            }
            if !freeze.elements {
                let registers = used.registers.get(&id).copied().unwrap_or(0);
                unit.registers = unit.registers.min(registers.max(1));
            }
        }
        ElementKind::InputPort(port) | ElementKind::OutputPort(port) => {
            if !freeze.ports && !used.stated.contains(&id) {
                port.stated = false;
            }
        }
        ElementKind::Memory(memory) => {
            let bytes = used.bytes.get(&id).copied().unwrap_or(0);
            if !freeze.memories && memory.capacity < 1 << 32 && bytes > 0 {
                let least = bytes.next_power_of_two().max(1024);
                memory.capacity = memory.capacity.min(least);
            }
            if !freeze.memories && !used.indirect {
                memory.indirect = false;
            }
        }
        ElementKind::Switch(_) => {}
    }
}

/// Makes one element of two of a kind. What the second had the first has beside its own; links between the two are gone.
pub(crate) fn merge(
    draft: &mut Draft,
    placed: &mut [Option<Placed>],
    one: usize,
    two: usize,
) -> bool {
    let Some(other) = draft.elements[two].clone() else {
        return false;
    };
    let Some(own) = &mut draft.elements[one] else {
        return false;
    };
    match (&mut own.kind, other.kind) {
        (ElementKind::ProcessingElement(own), ElementKind::ProcessingElement(other)) => {
            for name in other.operations {
                if !own.operations.contains(&name) {
                    own.operations.push(name);
                }
            }
            own.delay_depth = own.delay_depth.max(other.delay_depth);
            own.registers = own.registers.max(other.registers);
        }
        (ElementKind::Switch(_), ElementKind::Switch(_)) => {}
        (ElementKind::InputPort(own), ElementKind::InputPort(other))
        | (ElementKind::OutputPort(own), ElementKind::OutputPort(other)) => {
            if own.stated != other.stated || own.implementation != other.implementation {
                return false;
            }
            own.depth = own.depth.max(other.depth);
        }
        _ => return false,
    }
    // Links move over; those that the first has already are one with them.
    let mut instead: Vec<(usize, Option<usize>)> = Vec::new();
    for id in 0..draft.links.len() {
        let Some((source, sink)) = draft.links[id] else {
            continue;
        };
        if source != two && sink != two {
            continue;
        }
        let (from, to) = (
            if source == two { one } else { source },
            if sink == two { one } else { sink },
        );
        if from == to {
            draft.links[id] = None;
            instead.push((id, None));
            continue;
        }
        let known = draft
            .links()
            .find(|(other, source, sink)| *other != id && (*source, *sink) == (from, to));
        match known {
            Some((known, ..)) => {
                draft.links[id] = None;
                instead.push((id, Some(known)));
            }
            None => draft.links[id] = Some((from, to)),
        }
    }
    draft.elements[two] = None;
    for placed in placed.iter_mut().flatten() {
        for (element, _) in placed.nodes.iter_mut().flatten() {
            if *element == two {
                *element = one;
            }
        }
        for way in &mut placed.ways {
            way.retain_mut(|(link, _)| {
                match instead.iter().find(|(old, _)| old == link) {
                    Some((_, None)) => return false,
                    Some((_, Some(new))) => *link = *new,
                    None => {}
                }
                true
            });
            cut_loops(draft, way);
        }
    }
    true
}

/// A way that comes back to an element goes on from there at once.
fn cut_loops(draft: &Draft, way: &mut Vec<(usize, u32)>) {
    let mut place = 0;
    while place < way.len() {
        let Some((source, _)) = draft.links[way[place].0] else {
            return;
        };
        let last = (place..way.len())
            .rev()
            .find(|later| draft.links[way[*later].0].is_some_and(|(_, sink)| sink == source));
        if let Some(last) = last {
            way.drain(place..=last);
        } else {
            place += 1;
        }
    }
}

/// Takes out a switch and links what it connected directly, pair by pair as the mappings use it.
pub(crate) fn bypass(draft: &mut Draft, placed: &mut [Option<Placed>], switch: usize) -> bool {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for placed in placed.iter().flatten() {
        for way in &placed.ways {
            for hops in way.windows(2) {
                let (before, after) = (hops[0].0, hops[1].0);
                let through = draft.links[before].is_some_and(|(_, sink)| sink == switch);
                if through && !pairs.contains(&(before, after)) {
                    pairs.push((before, after));
                }
            }
        }
    }
    let mut direct: Vec<((usize, usize), usize)> = Vec::new();
    for (before, after) in pairs {
        let (Some((source, _)), Some((_, sink))) = (draft.links[before], draft.links[after]) else {
            return false;
        };
        if source == sink {
            return false;
        }
        let known = draft
            .links()
            .find(|(_, from, to)| (*from, *to) == (source, sink));
        let link = known.map_or_else(
            || {
                draft.links.push(Some((source, sink)));
                draft.links.len() - 1
            },
            |(link, ..)| link,
        );
        direct.push(((before, after), link));
    }
    for placed in placed.iter_mut().flatten() {
        for way in &mut placed.ways {
            let mut place = 0;
            while place + 1 < way.len() {
                let pair = (way[place].0, way[place + 1].0);
                if let Some((_, link)) = direct.iter().find(|(known, _)| *known == pair) {
                    way[place].0 = *link;
                    way.remove(place + 1);
                } else {
                    place += 1;
                }
            }
        }
    }
    draft.remove(switch);
    true
}

/// Elements of one kind, by number.
pub(crate) fn of_kind(draft: &Draft, kind: fn(&Element) -> bool) -> Vec<usize> {
    let found = draft.elements().filter(|(_, element)| kind(element));
    found.map(|(id, _)| id).collect()
}

/// One of these at random.
pub(crate) fn pick(rng: &mut Rng, all: &[usize]) -> Option<usize> {
    if all.is_empty() {
        None
    } else {
        Some(all[rng.usize(..all.len())])
    }
}
