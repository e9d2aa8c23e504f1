//! Rules about ways: each leads from its source to its sink, through switches only, and no link carries two values at once.

use super::{Verdict, name};
use crate::{Hop, Mapping};
use chipless_dsa::adg::{Adg, ElementId, ElementKind, LinkId};
use chipless_dsa::graph::{Edge, EdgeId, Graph, NodeId, NodeKind, Role, Source};
use std::collections::{BTreeMap, BTreeSet};

/// What travels: edges with the same may share a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cargo {
    /// A value, from this of its bits on.
    Value(NodeId, u32, u32),
    /// Whatever a port of a temporal group takes in or gives out in turn.
    Turns(NodeId),
}

/// What is on a slot of a link, and which links it comes from.
type Load = BTreeMap<Cargo, BTreeSet<Option<(LinkId, u32)>>>;

pub(super) fn check(graph: &Graph, adg: &Adg, mapping: &Mapping, verdict: &mut Verdict) {
    // For each slot of each link: what is on it, and which links that comes from.
    let mut loads: BTreeMap<(LinkId, u32), Load> = BTreeMap::new();
    let mut first_links: BTreeMap<(NodeId, u32), BTreeSet<LinkId>> = BTreeMap::new();
    for (id, edge) in graph.edges.iter_enumerated() {
        let hops = &mapping.edges[id].links;
        let in_memory = is_array(graph, edge.source) || is_array(graph, edge.sink);
        let fault = if in_memory {
            memory_fault(adg, mapping, edge, hops)
        } else {
            way_fault(graph, adg, mapping, id, edge, hops)
        };
        if let Some(fault) = fault {
            verdict.faults.push(format!(
                "edge {} from {} to {}: {fault}",
                id.index(),
                name(graph, edge.source),
                name(graph, edge.sink)
            ));
        }
        if in_memory {
            continue;
        }
        let mut before = None;
        for hop in hops {
            if adg.links.get(hop.link).is_none() {
                break;
            }
            let granularity = adg.granularity(hop.link);
            for (part, slot) in (0..).zip(slots(adg, *hop, edge.width())) {
                // Parts of a value share the wires of the whole: what counts is which of its bits are on the slot, and whence.
                let cargo = cargo(graph, edge, part * granularity);
                let within = part * granularity + edge.low;
                let whence =
                    before.map(|hop: Hop| (hop.link, adg.granularity(hop.link), hop.bit, edge.low));
                let whence = whence.map(|(link, size, bit, low)| {
                    (link, (bit / size + (within - low) / size) % adg.slots(link))
                });
                loads
                    .entry((hop.link, slot))
                    .or_default()
                    .entry(cargo)
                    .or_default()
                    .insert(whence);
            }
            before = Some(*hop);
        }
        if let (Some(first), NodeKind::Instruction(_)) =
            (hops.first(), &graph.nodes[edge.source].kind)
            && !adg
                .links
                .get(first.link)
                .is_some_and(chipless_dsa::adg::Link::is_shared)
        {
            first_links
                .entry((edge.source, edge.value))
                .or_default()
                .insert(first.link);
        }
    }
    for ((link, slot), cargo) in &loads {
        let room = adg.links[*link].values as usize;
        if cargo.len() > room {
            verdict.overprovision = verdict.overprovision.max((cargo.len() - room) as u32);
            verdict.faults.push(format!(
                "{}, slot {slot}, carries {} values",
                adg.describe(*link),
                cargo.len()
            ));
        }
        if cargo.values().any(|origins| origins.len() > 1) {
            verdict.faults.push(format!(
                "{}, slot {slot}, gets one value from two sides",
                adg.describe(*link)
            ));
        }
    }
    for ((node, value), links) in first_links {
        if links.len() > 1 {
            verdict.overprovision = verdict.overprovision.max(links.len() as u32 - 1);
            verdict.faults.push(format!(
                "result {value} of {} leaves its element on {} links",
                name(graph, node),
                links.len()
            ));
        }
    }
}

fn is_array(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.nodes[node].kind, NodeKind::Array(_))
}

fn is_temporal(graph: &Graph, node: NodeId) -> bool {
    graph
        .groups
        .get(graph.nodes[node].group)
        .is_some_and(|group| group.temporal)
}

/// What an edge has on the slot that begins so many bits behind its first.
fn cargo(graph: &Graph, edge: &Edge, behind: u32) -> Cargo {
    let (source, sink) = (&graph.nodes[edge.source].kind, &graph.nodes[edge.sink].kind);
    if is_temporal(graph, edge.source) && matches!(source, NodeKind::Input(_)) {
        Cargo::Turns(edge.source)
    } else if is_temporal(graph, edge.source)
        && is_temporal(graph, edge.sink)
        && matches!(sink, NodeKind::Output(_))
    {
        Cargo::Turns(edge.sink)
    } else {
        Cargo::Value(edge.source, edge.value, edge.low + behind)
    }
}

/// Slots of a link that so many bits take from a bit on; behind the last comes the first again.
fn slots(adg: &Adg, hop: Hop, width: u32) -> impl Iterator<Item = u32> {
    let (granularity, count) = (adg.granularity(hop.link), adg.slots(hop.link));
    let taken = width.div_ceil(granularity).max(1).min(count);
    (0..taken).map(move |part| (hop.bit / granularity + part) % count)
}

fn memory_fault(adg: &Adg, mapping: &Mapping, edge: &Edge, hops: &[Hop]) -> Option<String> {
    let (from, to) = (mapping.nodes[edge.source]?, mapping.nodes[edge.sink]?);
    let straight = matches!(hops, [hop] if adg.links.get(hop.link).is_some_and(|link| link.source == from.element && link.sink == to.element));
    (!straight).then(|| {
        format!(
            "streams go on one link, expected one from {} to {}",
            adg.elements[from.element], adg.elements[to.element]
        )
    })
}

fn way_fault(
    graph: &Graph,
    adg: &Adg,
    mapping: &Mapping,
    id: EdgeId,
    edge: &Edge,
    hops: &[Hop],
) -> Option<String> {
    let (from, to) = (mapping.nodes[edge.source]?, mapping.nodes[edge.sink]?);
    let (start, end) = (
        adg.elements.get(from.element)?,
        adg.elements.get(to.element)?,
    );
    let is_unit = |node: NodeId| {
        matches!(
            graph.nodes[node].kind,
            NodeKind::Instruction(_) | NodeKind::Composite(_)
        )
    };
    let units = is_unit(edge.source) && is_unit(edge.sink);
    if hops.is_empty() {
        let is_shared = start
            .processing()
            .is_some_and(chipless_dsa::adg::ProcessingElement::is_shared);
        return if units && is_shared && from.element == to.element {
            None
        } else {
            Some("it has no way".to_owned())
        };
    }
    let at = match end_of_way(adg, from.element, hops) {
        Ok(at) => at,
        Err(fault) => return Some(fault),
    };
    let inside = units && is_temporal(graph, edge.source) && is_temporal(graph, edge.sink);
    if let Some(hop) = hops.iter().find(|hop| adg.links[hop.link].is_shared())
        && !inside
    {
        return Some(format!(
            "it takes {}, which only values between instructions of temporal sub-graphs share",
            adg.describe(hop.link)
        ));
    }
    if at != to.element {
        return Some(format!("it ends at {}, expected {end}", adg.elements[at]));
    }
    let distinct: BTreeSet<(LinkId, u32)> = hops.iter().map(|hop| (hop.link, hop.bit)).collect();
    if distinct.len() < hops.len() {
        return Some("it takes the same link twice".to_owned());
    }
    if let Some(fault) = hops.iter().find_map(|hop| slot_fault(adg, edge, *hop)) {
        return Some(fault);
    }
    let (first, last) = (hops.first()?, hops.last()?);
    // At a processing element the slot is where the instruction is, and where its part of the value or operand lies.
    let expected = |slot: u32, own: u32, within: u32, link: LinkId| {
        let bit = slot * own + within;
        bit - bit % adg.granularity(link)
    };
    if let ElementKind::ProcessingElement(_) = start.kind {
        let bit = expected(from.slot, start.granularity, edge.low, first.link);
        if first.bit != bit {
            return Some(format!(
                "it leaves {start} at bit {}, expected {bit}",
                first.bit
            ));
        }
    }
    if let ElementKind::ProcessingElement(_) = end.kind {
        let offset = offset(graph, id, edge);
        if !offset.is_multiple_of(adg.granularity(last.link)) {
            return Some(format!(
                "its part of the operand begins at bit {offset}, which {end} cannot take alone"
            ));
        }
        let bit = expected(to.slot, end.granularity, offset, last.link);
        if last.bit != bit {
            return Some(format!(
                "it enters {end} at bit {}, expected {bit}",
                last.bit
            ));
        }
    }
    port_rules(graph, adg, edge, *first, *last)
}

/// Whether a value fits a link and begins at one of its slots.
fn slot_fault(adg: &Adg, edge: &Edge, hop: Hop) -> Option<String> {
    let (granularity, width) = (adg.granularity(hop.link), adg.width(hop.link));
    let taken = edge.width().div_ceil(granularity).max(1) * granularity;
    if taken > width {
        return Some(format!(
            "{} bits do not fit the {width} of {}",
            edge.width(),
            adg.describe(hop.link)
        ));
    }
    let wraps = adg.source(hop.link).is_switch() && adg.sink(hop.link).is_switch();
    let even = hop.bit.is_multiple_of(taken) && hop.bit + taken <= width;
    if !hop.bit.is_multiple_of(granularity) || hop.bit >= width || !wraps && !even {
        return Some(format!(
            "it begins at bit {} of {}, which is no slot for {} bits",
            hop.bit,
            adg.describe(hop.link),
            edge.width()
        ));
    }
    None
}

/// Where hops from an element lead, if each begins where the one before ended and switches are between them.
fn end_of_way(adg: &Adg, start: ElementId, hops: &[Hop]) -> Result<ElementId, String> {
    let mut at = start;
    for (position, hop) in hops.iter().enumerate() {
        let Some(link) = adg.links.get(hop.link) else {
            return Err("it takes a link that is not there".to_owned());
        };
        if link.source != at {
            return Err(format!(
                "link {position} begins at {}, expected {}",
                adg.elements[link.source], adg.elements[at]
            ));
        }
        at = link.sink;
        if position + 1 < hops.len() && !adg.elements[at].is_switch() {
            return Err(format!(
                "it goes through {}, which is no switch",
                adg.elements[at]
            ));
        }
    }
    Ok(at)
}

/// Bit of the operand at which an edge begins.
fn offset(graph: &Graph, id: EdgeId, edge: &Edge) -> u32 {
    let Some(operand) = graph.nodes[edge.sink].operands.get(edge.operand as usize) else {
        return 0;
    };
    let Source::Edges(edges) = &operand.source else {
        return 0;
    };
    edges
        .iter()
        .take_while(|other| **other != id)
        .map(|other| graph.edges[*other].width())
        .sum()
}

/// State is on the first link of a stated port, data on the others, in order where the port keeps order.
fn port_rules(graph: &Graph, adg: &Adg, edge: &Edge, first: Hop, last: Hop) -> Option<String> {
    let (source, sink) = (&graph.nodes[edge.source], &graph.nodes[edge.sink]);
    if let (NodeKind::Input(port), ElementKind::InputPort(hardware)) =
        (&source.kind, &adg.source(first.link).kind)
    {
        let state = port.stated && edge.value == 0;
        // Lanes that come in turn are where the first one is.
        let lane = if is_temporal(graph, edge.source) {
            0
        } else {
            edge.value - u32::from(port.stated && !state)
        };
        let position = adg
            .source(first.link)
            .outputs
            .iter()
            .position(|link| *link == first.link)?;
        let fault = lane_fault(
            position,
            first.bit,
            state,
            lane,
            hardware.stated,
            hardware.is_ordered(),
        );
        if fault.is_some() {
            return fault;
        }
    }
    if let (NodeKind::Output(_), ElementKind::OutputPort(hardware)) =
        (&sink.kind, &adg.sink(last.link).kind)
    {
        let state = sink
            .operands
            .get(edge.operand as usize)
            .is_some_and(|operand| operand.role == Role::State);
        let position = adg
            .sink(last.link)
            .inputs
            .iter()
            .position(|link| *link == last.link)?;
        let lane = if is_temporal(graph, edge.sink) {
            0
        } else {
            edge.operand
        };
        return lane_fault(
            position,
            last.bit,
            state,
            lane,
            hardware.stated,
            hardware.is_ordered(),
        );
    }
    None
}

fn lane_fault(
    position: usize,
    bit: u32,
    state: bool,
    lane: u32,
    stated: bool,
    ordered: bool,
) -> Option<String> {
    if state {
        return (position != 0 || bit != 0).then(|| {
            format!("state is on link {position} of its port, expected bits 0 to 7 of link 0")
        });
    }
    if stated && position == 0 {
        return Some("data is on the link of its port that is kept for state".to_owned());
    }
    let expected = lane as usize + usize::from(stated);
    (ordered && position != expected).then(|| {
        format!("lane {lane} is on link {position} of a port that keeps order, expected {expected}")
    })
}
