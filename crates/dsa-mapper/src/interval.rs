//! How often a row can start: bounds that hold for every mapping.

use crate::fabric::Fabric;
use crate::feasible::Candidates;
use crate::kernel::{Kernel, Place};
use chipless_dsa::adg::ElementId;
use std::collections::HashMap;

/// A bound on the initiation interval, and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) interval: i32,
    pub(crate) reason: &'static str,
}

/// No mapping onto these candidates has a smaller initiation interval: operations that do not start every cycle, results that come back
/// through a register, lanes that take their link in turns, instructions that share elements.
pub(crate) fn bound(kernel: &Kernel, fabric: &Fabric<'_>, candidates: &Candidates) -> Bound {
    let mut bound = Bound {
        interval: 1,
        reason: "nothing holds back a row",
    };
    let mut raise = |interval: i32, reason| {
        if interval > bound.interval {
            bound = Bound { interval, reason };
        }
    };
    for (vertex, body) in kernel.vertices.iter().enumerate() {
        raise(body.throughput, "an operation does not start every cycle");
        if body.recurs {
            raise(body.latency, "a result comes back through a register");
        }
        if body.takes_turns() {
            let used = match body.place {
                Place::Input => used_lanes(kernel, vertex),
                _ => body.inputs.len(),
            };
            let links = candidates.of[vertex]
                .iter()
                .map(|(port, _)| fabric.data_links(*port, body.place == Place::Input).len())
                .max();
            let turns = used.div_ceil(links.unwrap_or(1).max(1));
            raise(turns as i32, "lanes of a port take their links in turns");
        }
    }
    // Where nothing is shared every instruction has an element of its own, or there is no mapping.
    let is_shared = |unit: &u32| {
        let unit = fabric.adg.elements[ElementId::new(*unit as usize)].processing();
        unit.is_some_and(chipless_dsa::adg::ProcessingElement::is_shared)
    };
    if !fabric.units.iter().any(is_shared) {
        return bound;
    }
    let least = bound.interval;
    let most = kernel
        .vertices
        .iter()
        .map(|body| body.throughput)
        .sum::<i32>()
        .max(1);
    // The smallest interval with which the instructions find room, each on an element of its own candidates.
    let (mut low, mut high) = (least, most.max(least));
    while low < high {
        let middle = low + (high - low) / 2;
        if has_room(kernel, fabric, candidates, middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if low > least {
        bound = Bound {
            interval: low,
            reason: "instructions share the elements that know them",
        };
    }
    bound
}

fn used_lanes(kernel: &Kernel, vertex: usize) -> usize {
    let mut lanes: Vec<i32> = kernel.vertices[vertex]
        .outputs
        .iter()
        .map(|wire| kernel.wires[*wire].ready)
        .collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes.len()
}

/// Starts that an element has room for in an interval.
pub(crate) fn room(fabric: &Fabric<'_>, element: u32, interval: i32) -> i32 {
    let unit = fabric.adg.elements[ElementId::new(element as usize)].processing();
    match unit {
        Some(unit) if unit.is_shared() => interval.min(unit.instruction_slots.min(1 << 16) as i32),
        _ => 1,
    }
}

/// Whether every instruction has a place of its own in this interval: a matching that takes each for one start, which is the least that
/// it needs; and whether the sum of what they need is there.
fn has_room(kernel: &Kernel, fabric: &Fabric<'_>, candidates: &Candidates, interval: i32) -> bool {
    let units = || {
        (0..kernel.vertices.len()).filter(|vertex| kernel.vertices[*vertex].place == Place::Unit)
    };
    // What only shared elements can hold must fit them together.
    let mut shared: Vec<u32> = Vec::new();
    let mut needed = 0;
    for vertex in units() {
        let only_shared = candidates.of[vertex].iter().all(|(element, _)| {
            let unit = fabric.adg.elements[ElementId::new(*element as usize)].processing();
            unit.is_some_and(chipless_dsa::adg::ProcessingElement::is_shared)
        });
        if only_shared {
            needed += kernel.vertices[vertex].throughput;
            shared.extend(candidates.of[vertex].iter().map(|(element, _)| *element));
        }
    }
    shared.sort_unstable();
    shared.dedup();
    if needed > interval.saturating_mul(shared.len() as i32) {
        return false;
    }
    let mut held: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
    for vertex in units() {
        // Breadth first over alternating paths.
        let mut from: HashMap<(u32, u32), usize> = HashMap::new();
        let mut queue = vec![vertex];
        let mut next = 0;
        let mut end = None;
        'search: while let Some(&at) = queue.get(next) {
            next += 1;
            for &spot in &candidates.of[at] {
                if from.contains_key(&spot) {
                    continue;
                }
                from.insert(spot, at);
                let there = held.entry(spot).or_default();
                if (there.len() as i32) < room(fabric, spot.0, interval) {
                    end = Some(spot);
                    break 'search;
                }
                queue.extend(there.iter().copied());
            }
        }
        let Some(mut spot) = end else {
            return false;
        };
        while let Some(&taker) = from.get(&spot) {
            let previous = candidates.of[taker]
                .iter()
                .copied()
                .find(|other| held.get(other).is_some_and(|there| there.contains(&taker)));
            if let Some(there) = previous.and_then(|previous| held.get_mut(&previous)) {
                there.retain(|other| *other != taker);
            }
            held.entry(spot).or_default().push(taker);
            match previous {
                Some(previous) => spot = previous,
                None => break,
            }
        }
    }
    true
}
