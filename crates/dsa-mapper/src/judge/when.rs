//! When everything happens.
//!
//! Streams enter at cycle 0; the lanes of a port that is used in turns one after the other. An edge of `n` links arrives `n - 1` cycles after
//! its value is ready: the first link takes none. An operand can wait in the buffer of its element, which holds as many rows as it is deep;
//! all operands of a node must arrive together. What shares an element or a link in time has cycles of its own, modulo the initiation
//! interval.

use super::{Verdict, name};
use crate::Mapping;
use chipless_dsa::adg::{Adg, ElementId, LinkId, ProcessingElement};
use chipless_dsa::graph::{EdgeId, Graph, NodeId, NodeKind, Source};
use chipless_dsa::operations;
use std::collections::{BTreeMap, BTreeSet};

/// A bound: `time[to] - time[from] >= least`, unless `from` is fixed.
struct Bound {
    from: NodeId,
    to: NodeId,
    least: i64,
}

/// An edge between nodes that have a time.
struct Timed {
    edge: EdgeId,
    source: NodeId,
    sink: NodeId,
    /// Cycles from the operands of the source until its value is ready.
    ready: i64,
    /// Cycles from the operands of the source to the sink.
    flight: i64,
    /// Rows that the buffer at the sink holds.
    depth: i64,
}

/// Latency and cycles from one start to the next.
fn figures(graph: &Graph, node: NodeId) -> (i64, i64) {
    let of = |operation: &str| {
        operations::lookup(operation).map_or((1, 1), |known| {
            (i64::from(known.latency), i64::from(known.throughput.max(1)))
        })
    };
    match &graph.nodes[node].kind {
        NodeKind::Instruction(instruction) => of(&instruction.operation),
        NodeKind::Composite(composite) => {
            let all = composite.units.iter().map(|(operation, _)| of(operation));
            all.fold((1, 1), |(a, b), (c, d)| (a.max(c), b.max(d)))
        }
        _ => (0, 1),
    }
}

fn is_temporal(graph: &Graph, node: NodeId) -> bool {
    let group = graph.groups.get(graph.nodes[node].group);
    group.is_some_and(|group| group.temporal)
}

fn has_time(graph: &Graph, node: NodeId) -> bool {
    !matches!(graph.nodes[node].kind, NodeKind::Array(_))
}

pub(super) fn check(graph: &Graph, adg: &Adg, mapping: &Mapping, verdict: &mut Verdict) {
    verdict.delays = vec![0; graph.edges.len()];
    verdict.ready = vec![0; graph.nodes.len()];
    verdict.misses = vec![0; graph.nodes.len()];
    verdict.starts = vec![0; graph.nodes.len()];
    let timed = timed(graph, adg, mapping);
    let Some(order) = order(graph, &timed) else {
        verdict
            .faults
            .push("the graph has a cycle that no array breaks".to_owned());
        return;
    };
    let crossings = crossings(graph, adg, mapping, &timed);
    let least = least_interval(graph, adg, mapping, &crossings);
    let stated = graph
        .nodes
        .indices()
        .all(|node| !has_time(graph, node) || mapping.starts[node].is_some());
    let is_shared = graph.nodes.indices().any(|node| is_temporal(graph, node));
    if let (true, Some(interval)) = (stated, mapping.interval) {
        let interval = i64::from(interval.max(1));
        verdict.initiation_interval = interval as u32;
        if interval < least {
            verdict.faults.push(format!(
                "the mapping states an initiation interval of {interval}, but a row takes {least} cycles of some element, link or register"
            ));
        }
        // What misses what without the time that a longer interval gives.
        if !is_shared && interval > least {
            let start = meet(graph, &timed, least);
            delays(graph, &timed, &order, &start, least, &mut verdict.delays);
            arrivals(graph, &timed, &order, verdict);
        }
        follow(graph, adg, mapping, &timed, interval, verdict);
        collisions(graph, mapping, &crossings, interval, verdict);
        claim(mapping, verdict);
        return;
    }
    verdict.initiation_interval = least as u32;
    let has_delays = !timed.is_empty()
        && timed
            .iter()
            .all(|edge| mapping.edges[edge.edge].delay.is_some());
    if has_delays {
        for edge in &timed {
            let delay = mapping.edges[edge.edge].delay.unwrap_or(0);
            verdict.delays[edge.edge.index()] = delay;
            if i64::from(delay) > edge.depth * least {
                let sink = name(graph, edge.sink);
                verdict.faults.push(format!(
                    "edge {} waits {delay} cycles for {sink}, whose buffers hold {}",
                    edge.edge.index(),
                    edge.depth * least
                ));
            }
        }
    } else {
        let start = meet(graph, &timed, least);
        delays(graph, &timed, &order, &start, least, &mut verdict.delays);
    }
    arrivals(graph, &timed, &order, verdict);
    if verdict.mismatch > 0 {
        verdict.initiation_interval = stretched(graph, &timed, least, verdict.mismatch);
    }
    if has_delays {
        claim(mapping, verdict);
    }
}

fn claim(mapping: &Mapping, verdict: &mut Verdict) {
    if let Some(claim) = mapping.claim
        && (claim.latency, claim.mismatch) != (verdict.latency, verdict.mismatch)
    {
        let (a, b, c, d) = (
            claim.latency,
            claim.mismatch,
            verdict.latency,
            verdict.mismatch,
        );
        verdict.faults.push(format!(
            "the mapping claims latency {a} and mismatch {b}, but has {c} and {d}"
        ));
    }
}

fn timed(graph: &Graph, adg: &Adg, mapping: &Mapping) -> Vec<Timed> {
    let mut timed = Vec::new();
    for (edge, body) in graph.edges.iter_enumerated() {
        if !has_time(graph, body.source) || !has_time(graph, body.sink) {
            continue;
        }
        let depth = mapping.nodes[body.sink]
            .and_then(|at| adg.elements.get(at.element))
            .map_or(0, |e| i64::from(e.delay_depth()));
        let links = mapping.edges[edge].links.len() as i64;
        let ready = match &graph.nodes[body.source].kind {
            NodeKind::Input(port) if is_temporal(graph, body.source) => {
                (i64::from(body.value) - i64::from(port.stated)).max(0)
            }
            _ => figures(graph, body.source).0,
        };
        timed.push(Timed {
            edge,
            source: body.source,
            sink: body.sink,
            ready,
            flight: ready + (links - 1).max(0),
            depth,
        });
    }
    timed
}

/// For each part of a link that is shared in time: which value of which node crosses it how many cycles after that node's start.
type Crossings = BTreeMap<(LinkId, u32), BTreeSet<(NodeId, u32, i64)>>;

fn crossings(graph: &Graph, adg: &Adg, mapping: &Mapping, timed: &[Timed]) -> Crossings {
    let mut all = Crossings::new();
    for edge in timed {
        let body = &graph.edges[edge.edge];
        for (position, hop) in mapping.edges[edge.edge].links.iter().enumerate() {
            if adg.links.get(hop.link).is_some() {
                let crossing = (body.source, body.value, edge.ready + position as i64);
                all.entry((hop.link, hop.bit)).or_default().insert(crossing);
            }
        }
    }
    let value = |(node, value, _): &(NodeId, u32, i64)| (*node, *value);
    all.retain(|(link, _), crossings| {
        let values: BTreeSet<(NodeId, u32)> = crossings.iter().map(value).collect();
        // Parts of values side by side on a link of its own are no sharing in time.
        let turns = crossings.iter().any(|(node, ..)| is_temporal(graph, *node));
        values.len() > 1 && (turns || adg.links[*link].is_shared())
    });
    all
}

/// Elements whose instructions share them in time.
fn shared<'a>(
    adg: &'a Adg,
    mapping: &Mapping,
    node: NodeId,
) -> Option<(ElementId, &'a ProcessingElement)> {
    let id = mapping.nodes[node]?.element;
    let unit = adg.elements.get(id)?.processing()?;
    unit.is_shared().then_some((id, unit))
}

/// Cycles that a row takes of what is used most: an operation, a register, an element, a link.
fn least_interval(graph: &Graph, adg: &Adg, mapping: &Mapping, crossings: &Crossings) -> i64 {
    let mut least = 1;
    let mut busy: BTreeMap<ElementId, i64> = BTreeMap::new();
    for (node, body) in graph.nodes.iter_enumerated() {
        if !matches!(body.kind, NodeKind::Instruction(_) | NodeKind::Composite(_)) {
            continue;
        }
        let (latency, throughput) = figures(graph, node);
        least = least.max(throughput);
        let own = |register: u8| body.values.iter().any(|v| v.registers.contains(&register));
        let recurs = body
            .operands
            .iter()
            .any(|operand| matches!(operand.source, Source::Register(number) if own(number)));
        if recurs {
            least = least.max(latency);
        }
        if let Some((element, _)) = shared(adg, mapping, node) {
            *busy.entry(element).or_default() += throughput;
        }
    }
    let values = crossings.values().map(|crossings| {
        let values: BTreeSet<(NodeId, u32)> = crossings
            .iter()
            .map(|(node, value, _)| (*node, *value))
            .collect();
        values.len() as i64
    });
    busy.into_values().chain(values).fold(least, i64::max)
}

/// Whether the mapping keeps to the cycles that it states.
fn follow(
    graph: &Graph,
    adg: &Adg,
    mapping: &Mapping,
    timed: &[Timed],
    interval: i64,
    verdict: &mut Verdict,
) {
    let start = |node: NodeId| i64::from(mapping.starts[node].unwrap_or(0));
    verdict.latency = 0;
    for (node, body) in graph.nodes.iter_enumerated() {
        if !has_time(graph, node) {
            continue;
        }
        if matches!(body.kind, NodeKind::Input(_)) && start(node) != 0 {
            let fault = format!("input {} starts at {}, expected 0", body.name, start(node));
            verdict.faults.push(fault);
        }
        verdict.starts[node.index()] = start(node) as u32;
        let ready = (start(node) + figures(graph, node).0) as u32;
        verdict.ready[node.index()] = ready;
        verdict.latency = verdict.latency.max(ready);
    }
    for edge in timed {
        let wait = start(edge.sink) - start(edge.source) - edge.flight;
        let (number, sink) = (edge.edge.index(), name(graph, edge.sink));
        if wait < 0 {
            verdict.faults.push(format!(
                "edge {number} arrives {} cycles after {sink} starts",
                -wait
            ));
        } else if wait > edge.depth * interval {
            verdict.faults.push(format!(
                "edge {number} waits {wait} cycles for {sink}, whose buffers hold {} rows, {} cycles",
                edge.depth,
                edge.depth * interval
            ));
        }
        // A buffer is set to no more than it is deep; with a longer interval each row stands longer in it.
        let stated = mapping.edges[edge.edge].delay.map(i64::from);
        let fits = |stated: &i64| *stated == wait || *stated == wait.min(edge.depth);
        if let Some(stated) = stated.filter(|stated| !fits(stated)) {
            verdict.faults.push(format!(
                "edge {number} states a delay of {stated} cycles, but its ends start so that it waits {wait}"
            ));
        }
        verdict.delays[number] = wait.max(0) as u32;
    }
    // One start a cycle on an element.
    let mut taken: BTreeMap<(ElementId, i64), NodeId> = BTreeMap::new();
    for node in graph.nodes.indices() {
        let Some((element, _)) = shared(adg, mapping, node) else {
            continue;
        };
        for cycle in 0..figures(graph, node).1.min(interval) {
            let key = (element, (start(node) + cycle).rem_euclid(interval));
            if let Some(other) = taken.insert(key, node) {
                verdict.faults.push(format!(
                    "{} and {} start on {} in one cycle, {} of the interval of {interval}",
                    name(graph, other),
                    name(graph, node),
                    adg.elements[element],
                    key.1
                ));
            }
        }
    }
}

/// Whether values that share a link cross it in cycles of their own.
fn collisions(
    graph: &Graph,
    mapping: &Mapping,
    crossings: &Crossings,
    interval: i64,
    verdict: &mut Verdict,
) {
    for ((link, _), crossings) in crossings {
        let mut taken: BTreeMap<i64, (NodeId, u32)> = BTreeMap::new();
        for (node, value, after) in crossings {
            let start = i64::from(mapping.starts[*node].unwrap_or(0));
            let cycle = (start + after).rem_euclid(interval);
            let before = taken.insert(cycle, (*node, *value));
            if let Some((other, _)) = before.filter(|before| *before != (*node, *value)) {
                verdict.faults.push(format!(
                    "values of {} and {} cross link {} in one cycle, {cycle} of the interval of {interval}",
                    name(graph, other),
                    name(graph, *node),
                    link.index()
                ));
            }
        }
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

/// The earliest cycles in which the operands of each node can meet with an interval, and buffers that hold operands longer by so many
/// cycles; `None` where they cannot.
fn earliest(graph: &Graph, timed: &[Timed], interval: i64, extra: i64) -> Option<Vec<i64>> {
    let fixed = |node: NodeId| matches!(graph.nodes[node].kind, NodeKind::Input(_));
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
            least: -edge.flight - edge.depth * interval - extra,
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
}

/// The earliest cycles in which the operands of each node can meet, with buffers deeper by as little as makes it possible.
fn meet(graph: &Graph, timed: &[Timed], interval: i64) -> Vec<i64> {
    if let Some(time) = earliest(graph, timed, interval, 0) {
        return time;
    }
    // With buffers as deep as everything takes together there is always a solution.
    let (mut low, mut high) = (0, timed.iter().map(|edge| edge.flight.max(0)).sum::<i64>());
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if earliest(graph, timed, interval, middle).is_some() {
            high = middle;
        } else {
            low = middle;
        }
    }
    earliest(graph, timed, interval, high).unwrap_or_else(|| vec![0; graph.nodes.len()])
}

/// The smallest interval with which no operand comes too late for its buffer; where there is none, the time in which one buffer drains.
fn stretched(graph: &Graph, timed: &[Timed], least: i64, mismatch: u32) -> u32 {
    let most = least + timed.iter().map(|edge| edge.flight.max(0)).sum::<i64>();
    let (mut low, mut high) = (least - 1, most + 1);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if earliest(graph, timed, middle, 0).is_some() {
            high = middle;
        } else {
            low = middle;
        }
    }
    if high > most {
        mismatch + 1
    } else {
        high as u32
    }
}

/// What each operand waits so that it arrives at the cycle of its node, as far as the buffers allow.
fn delays(
    graph: &Graph,
    timed: &[Timed],
    order: &[NodeId],
    start: &[i64],
    interval: i64,
    delays: &mut [u32],
) {
    let into = incoming(graph, timed);
    let mut begin = vec![0; graph.nodes.len()];
    for node in order {
        for &number in &into[node.index()] {
            let edge = &timed[number];
            let arrival = begin[edge.source.index()] + edge.flight;
            let delay = (start[node.index()] - arrival).clamp(0, edge.depth * interval);
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

/// When operands arrive with the delays that are known, and by how much they miss each other.
fn arrivals(graph: &Graph, timed: &[Timed], order: &[NodeId], verdict: &mut Verdict) {
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
        if has_time(graph, *node) {
            verdict.starts[node.index()] = last.max(0) as u32;
            let ready = last + figures(graph, *node).0;
            verdict.ready[node.index()] = ready.max(0) as u32;
            verdict.latency = verdict.latency.max(verdict.ready[node.index()]);
        }
    }
}
