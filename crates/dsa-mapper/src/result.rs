//! From the best trial to the outcome: the schedule of the mapping, and why there may be none.

use crate::feasible::Candidates;
use crate::kernel::{Kernel, label};
use crate::outcome::Outcome;
use crate::place::Placer;
use crate::search::Trial;
use crate::timing;
use crate::{Claim, Hop, Location, Mapping, Route};
use chipless_dsa::adg::{ElementId, LinkId};
use chipless_dsa::graph::Graph;

/// Intervals at which late operands are given the time that they need, at most.
const LONGEST: i32 = 1 << 16;

/// When everything happens with the smallest interval with which no operand comes too late for its buffer.
pub(crate) fn schedule(placer: &Placer<'_>, best: &Trial) -> Option<(i32, Vec<i32>)> {
    if best.timing.slack == 0 && best.timing.mismatch == 0 {
        return Some((placer.interval, best.timing.start.clone()));
    }
    let kernel = placer.kernel;
    let lengths: Vec<i32> = best.ways.iter().map(|way| way.len() as i32).collect();
    let with = |interval: i32| {
        let waits: Vec<i32> = (0..kernel.vertices.len())
            .map(|vertex| {
                let (element, _) = placer.at(&best.placement, vertex);
                placer.fabric.delay_depth(element).saturating_mul(interval)
            })
            .collect();
        timing::earliest(kernel, &lengths, &waits, 0)
    };
    let (mut low, mut high) = (placer.interval, placer.interval + 1);
    while with(high).is_none() {
        low = high;
        high *= 2;
        if high > LONGEST {
            return None;
        }
    }
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if with(middle).is_some() {
            high = middle;
        } else {
            low = middle;
        }
    }
    with(high).map(|start| (high, start))
}

/// The outcome of a search that came to this trial; `ended`: trials, and how it ended.
pub(crate) fn finish(
    graph: &Graph,
    placer: &Placer<'_>,
    candidates: &Candidates,
    best: &Trial,
    bound: i32,
    (trials, ended): (u32, &str),
) -> Outcome {
    let refused = |reason: String| Outcome {
        trials,
        ..Outcome::refused(reason, false)
    };
    let adg = placer.fabric.adg;
    if best.faults > 0 {
        let nearest = match best.obstacle {
            Some((link, values)) => format!(
                "in the closest, {} links carry more values than they can, {} one of them ({values} values too many)",
                best.faults,
                adg.describe(LinkId::new(link as usize)),
            ),
            None => format!(
                "in the closest, {} edges have no way, or two instructions one place",
                best.faults
            ),
        };
        return refused(format!(
            "no legal mapping was found {ended} ({trials}); {nearest}"
        ));
    }
    let kernel = placer.kernel;
    let shares = kernel.vertices.iter().any(|vertex| vertex.temporal);
    let schedule = if shares && best.timing.slack > 0 {
        None
    } else {
        schedule(placer, best)
    };
    let Some((interval, start)) = schedule else {
        return refused(format!(
            "no schedule was found {ended} ({trials}) in which a row can start every {} cycles",
            placer.interval
        ));
    };
    let mut mapping = mapping(graph, placer, candidates, best);
    for (vertex, body) in kernel.vertices.iter().enumerate() {
        mapping.starts[body.node] = Some(start[vertex].max(0) as u32);
    }
    for (wire, body) in kernel.wires.iter().enumerate() {
        let arrival = start[body.source] + body.flight(best.ways[wire].len() as i32);
        // A buffer is never set to more than it is deep; with a longer interval each row stands longer in it.
        let deepest = placer
            .fabric
            .delay_depth(placer.at(&best.placement, body.sink).0);
        let delay = (start[body.sink] - arrival).clamp(0, deepest);
        mapping.edges[body.edge].delay = Some(delay as u32);
    }
    let ends = kernel
        .vertices
        .iter()
        .zip(&start)
        .map(|(body, start)| start + body.latency);
    let latency = ends.max().unwrap_or(0).max(0) as u32;
    mapping.interval = Some(interval as u32);
    mapping.claim = Some(Claim {
        latency,
        mismatch: best.timing.mismatch as u32,
    });
    let links = mapping.links_used(adg) as u32;
    let reason = (best.timing.mismatch > 0).then(|| {
        format!(
            "no mapping without mismatch was found {ended} ({trials}); operands miss each other by {} cycles, near {}, so that a row starts every {interval} cycles",
            best.timing.mismatch,
            latest(graph, kernel, &best.timing.delay),
        )
    });
    Outcome {
        mapping: Some(mapping),
        latency,
        mismatch: best.timing.mismatch as u32,
        initiation_interval: interval as u32,
        interval_bound: 1,
        links,
        latency_bound: bound.max(0) as u32,
        trials,
        reason,
        proved: false,
    }
}

/// The node with the operand that waits longest.
fn latest(graph: &Graph, kernel: &Kernel, delay: &[i32]) -> String {
    let worst = kernel
        .vertices
        .iter()
        .max_by_key(|vertex| vertex.inputs.iter().map(|wire| delay[*wire]).max());
    worst.map_or_else(String::new, |vertex| label(graph, vertex.node))
}

/// Places and ways.
fn mapping(graph: &Graph, placer: &Placer<'_>, candidates: &Candidates, best: &Trial) -> Mapping {
    let (kernel, adg) = (placer.kernel, placer.fabric.adg);
    let mut mapping = Mapping::empty(graph);
    for (vertex, body) in kernel.vertices.iter().enumerate() {
        let (element, slot) = placer.at(&best.placement, vertex);
        mapping.nodes[body.node] = Some(Location {
            element: ElementId::new(element as usize),
            slot,
        });
    }
    for (array, memory) in kernel.arrays.iter().zip(&candidates.memories) {
        mapping.nodes[array.node] = Some(Location {
            element: ElementId::new(*memory as usize),
            slot: 0,
        });
    }
    for (wire, body) in kernel.wires.iter().enumerate() {
        let links = best.ways[wire].iter().map(|(link, slot)| {
            let id = LinkId::new(*link as usize);
            Hop {
                link: id,
                bit: slot * adg.granularity(id),
            }
        });
        mapping.edges[body.edge].links = links.collect();
    }
    // Edges between memories and ports go straight.
    for (edge, body) in graph.edges.iter_enumerated() {
        let (Some(from), Some(to)) = (mapping.nodes[body.source], mapping.nodes[body.sink]) else {
            continue;
        };
        let is_memory = |at: Location| adg.elements[at.element].memory().is_some();
        if is_memory(from) || is_memory(to) {
            let mut outputs = adg.elements[from.element].outputs.iter();
            let link = outputs.find(|link| adg.links[**link].sink == to.element);
            let links = link.map(|link| Hop {
                link: *link,
                bit: 0,
            });
            mapping.edges[edge] = Route {
                links: links.into_iter().collect(),
                delay: None,
            };
        }
    }
    mapping
}
