//! When everything happens.
//!
//! A link takes a cycle, an operation its latency. Streams enter at cycle 0. An operand can wait in the buffer of its element, up to
//! its depth; all operands of a node must arrive together.

use super::{Verdict, name};
use crate::adg::Adg;
use crate::graph::{EdgeId, Graph, NodeId, NodeKind};
use crate::mapping::Mapping;
use crate::operations;

/// A bound: `time[to] - time[from] >= least`, unless `from` is fixed.
struct Bound {
    from: NodeId,
    to: NodeId,
    least: i64,
}

/// An edge that takes part in timing.
struct Timed {
    edge: EdgeId,
    source: NodeId,
    sink: NodeId,
    /// Cycles from the operands of the source to the sink.
    flight: i64,
    depth: i64,
}

pub(super) fn check(graph: &Graph, adg: &Adg, mapping: &Mapping, verdict: &mut Verdict) {
    verdict.delays = vec![0; graph.edges.len()];
    verdict.ready = vec![0; graph.nodes.len()];
    verdict.misses = vec![0; graph.nodes.len()];
    let latency = |node: NodeId| match &graph.nodes[node].kind {
        NodeKind::Instruction(instruction) => operations::lookup(&instruction.operation)
            .map_or(1, |operation| i64::from(operation.latency)),
        NodeKind::Composite(composite) => {
            let known = composite
                .units
                .iter()
                .filter_map(|(operation, _)| operations::lookup(operation));
            known
                .map(|operation| i64::from(operation.latency))
                .max()
                .unwrap_or(1)
        }
        _ => 0,
    };
    let takes_part = |node: NodeId| {
        let body = &graph.nodes[node];
        !matches!(body.kind, NodeKind::Array(_))
            && !graph
                .groups
                .get(body.group)
                .is_some_and(|group| group.temporal)
    };
    let mut timed = Vec::new();
    for (edge, body) in graph.edges.iter_enumerated() {
        if takes_part(body.source) && takes_part(body.sink) {
            let depth = mapping.nodes[body.sink]
                .and_then(|at| adg.elements.get(at.element))
                .map_or(0, |e| i64::from(e.delay_depth()));
            let links = mapping.edges[edge].links.len() as i64;
            timed.push(Timed {
                edge,
                source: body.source,
                sink: body.sink,
                flight: latency(body.source) + links - 1,
                depth,
            });
        }
    }
    let Some(order) = order(graph, &timed) else {
        verdict
            .faults
            .push("the graph has a cycle that no array breaks".to_owned());
        return;
    };
    let stated = !timed.is_empty()
        && timed
            .iter()
            .all(|edge| mapping.edges[edge.edge].delay.is_some());
    if stated {
        for edge in &timed {
            let delay = mapping.edges[edge.edge].delay.unwrap_or(0);
            verdict.delays[edge.edge.index()] = delay;
            if i64::from(delay) > edge.depth {
                let sink = name(graph, edge.sink);
                verdict.faults.push(format!(
                    "edge {} waits {delay} cycles for {sink}, whose buffers hold {}",
                    edge.edge.index(),
                    edge.depth
                ));
            }
        }
    } else {
        let start = meet(graph, &timed);
        delays(graph, &timed, &order, &start, &mut verdict.delays);
    }
    arrivals(graph, &timed, &order, &latency, &takes_part, verdict);
    if let Some(claim) = mapping.claim.filter(|_| stated)
        && (claim.latency, claim.mismatch) != (verdict.latency, verdict.mismatch)
    {
        let (a, b, c, d) = (
            claim.latency,
            claim.mismatch,
            verdict.latency,
            verdict.mismatch,
        );
        verdict.faults.push(format!(
            "with its delays the mapping claims latency {a} and mismatch {b}, but has {c} and {d}"
        ));
    }
}

/// Nodes, sources before sinks; `None` where a cycle forbids it.
fn order(graph: &Graph, timed: &[Timed]) -> Option<Vec<NodeId>> {
    let mut waits = vec![0usize; graph.nodes.len()];
    let mut feeds: Vec<Vec<NodeId>> = vec![Vec::new(); graph.nodes.len()];
    for edge in timed {
        waits[edge.sink.index()] += 1;
        feeds[edge.source.index()].push(edge.sink);
    }
    let mut order: Vec<NodeId> = graph
        .nodes
        .indices()
        .filter(|node| waits[node.index()] == 0)
        .collect();
    let mut done = 0;
    while let Some(&node) = order.get(done) {
        done += 1;
        for sink in &feeds[node.index()] {
            waits[sink.index()] -= 1;
            if waits[sink.index()] == 0 {
                order.push(*sink);
            }
        }
    }
    (order.len() == graph.nodes.len()).then_some(order)
}

/// The earliest cycles in which the operands of each node can meet, with buffers deeper by as little as makes it possible.
fn meet(graph: &Graph, timed: &[Timed]) -> Vec<i64> {
    let fixed = |node: NodeId| matches!(graph.nodes[node].kind, NodeKind::Input(_));
    // With buffers as deep as everything takes together there is always a solution.
    let most = timed.iter().map(|edge| edge.flight.max(0)).sum::<i64>();
    let (mut low, mut high) = (0, most);
    let try_with = |extra: i64| -> Option<Vec<i64>> {
        let mut bounds = Vec::with_capacity(timed.len() * 2);
        for edge in timed {
            bounds.push(Bound {
                from: edge.source,
                to: edge.sink,
                least: edge.flight,
            });
            bounds.push(Bound {
                from: edge.sink,
                to: edge.source,
                least: -edge.flight - edge.depth - extra,
            });
        }
        let mut time = vec![0; graph.nodes.len()];
        for _ in 0..=graph.nodes.len() {
            let mut still = true;
            for bound in &bounds {
                let least = time[bound.from.index()] + bound.least;
                if least > time[bound.to.index()] {
                    if fixed(bound.to) {
                        return None;
                    }
                    time[bound.to.index()] = least;
                    still = false;
                }
            }
            if still {
                return Some(time);
            }
        }
        None
    };
    if let Some(time) = try_with(0) {
        return time;
    }
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if try_with(middle).is_some() {
            high = middle;
        } else {
            low = middle;
        }
    }
    try_with(high).unwrap_or_else(|| vec![0; graph.nodes.len()])
}

/// What each operand waits so that it arrives at the cycle of its node, as far as the buffers allow.
fn delays(graph: &Graph, timed: &[Timed], order: &[NodeId], start: &[i64], delays: &mut [u32]) {
    let into = incoming(graph, timed);
    let mut begin = vec![0; graph.nodes.len()];
    for node in order {
        for &number in &into[node.index()] {
            let edge = &timed[number];
            let arrival = begin[edge.source.index()] + edge.flight;
            let delay = (start[node.index()] - arrival).clamp(0, edge.depth);
            delays[edge.edge.index()] = delay as u32;
            begin[node.index()] = begin[node.index()].max(arrival + delay);
        }
    }
}

fn incoming(graph: &Graph, timed: &[Timed]) -> Vec<Vec<usize>> {
    let mut into = vec![Vec::new(); graph.nodes.len()];
    for (number, edge) in timed.iter().enumerate() {
        into[edge.sink.index()].push(number);
    }
    into
}

fn arrivals(
    graph: &Graph,
    timed: &[Timed],
    order: &[NodeId],
    latency: &dyn Fn(NodeId) -> i64,
    takes_part: &dyn Fn(NodeId) -> bool,
    verdict: &mut Verdict,
) {
    let into = incoming(graph, timed);
    let mut begin = vec![0; graph.nodes.len()];
    for node in order {
        let times = into[node.index()].iter().map(|number| {
            let edge = &timed[*number];
            begin[edge.source.index()] + edge.flight + i64::from(verdict.delays[edge.edge.index()])
        });
        let times: Vec<i64> = times.collect();
        let (first, last) = (
            times.iter().min().copied().unwrap_or(0),
            times.iter().max().copied().unwrap_or(0),
        );
        verdict.misses[node.index()] = (last - first) as u32;
        verdict.mismatch = verdict.mismatch.max((last - first) as u32);
        begin[node.index()] = last;
        if takes_part(*node) {
            verdict.ready[node.index()] = (last + latency(*node)).max(0) as u32;
            verdict.latency = verdict.latency.max(verdict.ready[node.index()]);
        }
    }
}
