//! How fast a mapped graph runs: an estimate from bandwidths, recurrences and mismatch.
//!
//! Two models. [`Model::Peer`] is the scheduler's own, with its oddities, so that its numbers can be compared; [`Model::Chipless`] mends
//! what is plainly wrong with it. `docs/dsa-mapping.md` has both formulas and every difference.

use crate::adg::{Adg, ElementKind, MemoryKind};
use crate::graph::{Edge, Graph, Node, NodeId, NodeKind, Port};
use crate::judge::Verdict;
use crate::mapping::Mapping;
use crate::operations;

/// Which formulas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// The scheduler's own.
    Peer,
    /// With its oddities mended.
    #[default]
    Chipless,
}

/// An estimate. Factors are at most 1: the part of the full rate that a bound allows.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Operations a cycle, of all cores; lanes of ports count as operations.
    pub operations_per_cycle: f64,
    /// Scratchpad bandwidth.
    pub scratchpad: f64,
    /// L2 bandwidth.
    pub l2: f64,
    /// DRAM bandwidth.
    pub dram: f64,
    /// Each sub-graph by itself.
    pub groups: Vec<GroupEstimate>,
}

/// What bounds a sub-graph.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupEstimate {
    /// Recurrence: results that must come back before they are used again.
    pub recurrence: f64,
    /// Operands that miss each other.
    pub mismatch: f64,
    /// Operations that do not start every cycle.
    pub throughput: f64,
    /// Firings a cycle under all bounds.
    pub firings_per_cycle: f64,
}

/// DRAM bytes a cycle of the whole system.
const DRAM_BYTES: f64 = 160.0;
/// Bytes a cycle of the system bus where the fabric's file does not tell.
const BUS_BYTES: u32 = 64;

/// Estimates.
pub fn estimate(
    graph: &Graph,
    adg: &Adg,
    mapping: &Mapping,
    verdict: &Verdict,
    model: Model,
) -> Estimate {
    let (cores, banks, bus) = adg.system.map_or((1, 1, BUS_BYTES), |system| {
        (system.cores, system.banks, system.bus_width)
    });
    let (cores, banks) = (f64::from(cores), f64::from(banks));
    let count = graph.groups.len();
    let most = graph
        .groups
        .iter()
        .map(|group| group.frequency as f64)
        .fold(0.0, f64::max);
    let relative: Vec<f64> = graph
        .groups
        .iter()
        .map(|group| {
            if most > 0.0 {
                group.frequency as f64 / most
            } else {
                0.0
            }
        })
        .collect();

    let traffic = |memory: MemoryKind, incoming: Option<bool>, repeat: bool, reuse: bool| -> f64 {
        streams(graph, adg, mapping, memory)
            .filter(|(port, ..)| {
                incoming.is_none_or(|incoming| incoming == matches!(port.kind, NodeKind::Input(_)))
            })
            .map(|(node, port, recurrent)| {
                let lanes = if graph.groups[node.group].temporal {
                    1
                } else {
                    port.lanes
                };
                let mut bits = f64::from(port.width * lanes) * relative[node.group.index()];
                let divides = matches!(node.kind, NodeKind::Output(_)) || model == Model::Chipless;
                if repeat && divides && port.pragmas.repeat > 1.0 {
                    bits /= port.pragmas.repeat;
                }
                if reuse || recurrent && repeat {
                    bits *= 1.0 - port.pragmas.reuse.clamp(0.0, 1.0);
                }
                bits
            })
            .sum()
    };
    let bound = |supply: f64, demand: f64| {
        if demand > 0.0 {
            (supply / demand).min(1.0)
        } else {
            1.0
        }
    };

    let mut scratchpad: f64 = 1.0;
    for memory in adg
        .elements
        .iter()
        .filter_map(|element| element.memory())
        .filter(|memory| memory.kind == MemoryKind::Scratchpad)
    {
        let read = f64::from(memory.read_width) * f64::from(memory.unit_bits);
        let write = if model == Model::Peer {
            read
        } else {
            f64::from(memory.write_width) * f64::from(memory.unit_bits)
        };
        scratchpad = scratchpad.min(bound(
            read,
            traffic(MemoryKind::Scratchpad, Some(true), false, false),
        ));
        scratchpad = scratchpad.min(bound(
            write,
            traffic(MemoryKind::Scratchpad, Some(false), false, false),
        ));
    }
    let crowding = 1.4 - 0.4 * 1.03_f64.powf(cores - 1.0);
    let supply = f64::from(bus) * 8.0 * banks.min(cores) * crowding;
    let mut l2 = bound(
        supply,
        cores * traffic(MemoryKind::DirectMemoryAccess, None, true, false),
    );
    if model == Model::Chipless {
        // A core's own engine is no wider than it is.
        for memory in adg
            .elements
            .iter()
            .filter_map(|element| element.memory())
            .filter(|m| m.kind == MemoryKind::DirectMemoryAccess)
        {
            let unit = f64::from(memory.unit_bits);
            l2 = l2.min(bound(
                f64::from(memory.read_width) * unit,
                traffic(MemoryKind::DirectMemoryAccess, Some(true), true, false),
            ));
            l2 = l2.min(bound(
                f64::from(memory.write_width) * unit,
                traffic(MemoryKind::DirectMemoryAccess, Some(false), true, false),
            ));
        }
    }
    let supply = DRAM_BYTES * 8.0 * (1.4 - 0.4 * 1.01_f64.powf(cores));
    let dram = bound(
        supply,
        cores * traffic(MemoryKind::DirectMemoryAccess, None, true, true),
    );

    let depth = deepest(graph, adg, mapping, verdict);
    let (mut by_l2, mut by_dram, mut together) = (0.0, 0.0, 0.0);
    let mut groups = Vec::with_capacity(count);
    for (number, group) in graph.groups.iter_enumerated() {
        let members = || {
            graph
                .nodes
                .iter_enumerated()
                .filter(|(_, node)| node.group == number)
        };
        let misses = members()
            .map(|(id, _)| verdict.misses.get(id.index()).copied().unwrap_or(0))
            .max()
            .unwrap_or(0);
        let mismatch = if depth + misses == 0 {
            1.0
        } else {
            f64::from(depth) / f64::from(depth + misses)
        };
        let recurrence = recurrence(
            graph,
            verdict,
            number,
            group.unroll,
            relative[number.index()],
            model,
        );
        let slowest = members().filter_map(|(_, node)| match &node.kind {
            NodeKind::Instruction(instruction) => {
                operations::lookup(&instruction.operation).map(|known| known.throughput)
            }
            _ => None,
        });
        let throughput = if model == Model::Peer {
            1.0
        } else {
            1.0 / f64::from(slowest.max().unwrap_or(1).max(1))
        };
        let work: f64 = members()
            .map(|(_, node)| match &node.kind {
                NodeKind::Instruction(_) => 1.0,
                NodeKind::Input(port) | NodeKind::Output(port) => f64::from(port.lanes),
                _ => 0.0,
            })
            .sum();
        let near = scratchpad
            .min(l2)
            .min(recurrence)
            .min(mismatch)
            .min(throughput);
        let firings = near.min(dram);
        by_l2 += near * work * relative[number.index()];
        by_dram += firings * work * relative[number.index()];
        together += firings * work * relative[number.index()];
        groups.push(GroupEstimate {
            recurrence,
            mismatch,
            throughput,
            firings_per_cycle: firings,
        });
    }
    let operations_per_cycle = cores
        * match model {
            Model::Peer => (by_l2 * by_dram).sqrt(),
            Model::Chipless => together,
        };
    Estimate {
        operations_per_cycle,
        scratchpad,
        l2,
        dram,
        groups,
    }
}

/// Ports whose streams go to or come from a kind of memory, and whether their array is read and written by recurrence.
fn streams<'g>(
    graph: &'g Graph,
    adg: &'g Adg,
    mapping: &'g Mapping,
    kind: MemoryKind,
) -> impl Iterator<Item = (&'g Node, &'g Port, bool)> {
    graph.nodes.iter().filter_map(move |node| {
        let (NodeKind::Input(port) | NodeKind::Output(port)) = &node.kind else {
            return None;
        };
        let array = port.array?;
        let element = adg
            .elements
            .get(mapping.nodes.get(array).copied()??.element)?;
        let same = matches!(&element.kind, ElementKind::Memory(memory) if memory.kind == kind);
        same.then(|| (node, port, is_recurrent(graph, array)))
    })
}

/// Whether a port of an array says how much of it is in flight.
fn is_recurrent(graph: &Graph, array: NodeId) -> bool {
    graph.nodes.iter().any(|node| match &node.kind {
        NodeKind::Input(port) | NodeKind::Output(port) => {
            port.array == Some(array) && port.pragmas.conc > 0.0
        }
        _ => false,
    })
}

/// Results that go round: how long they take against how much is in flight.
fn recurrence(
    graph: &Graph,
    verdict: &Verdict,
    group: crate::graph::GroupId,
    unroll: u64,
    frequency: f64,
    model: Model,
) -> f64 {
    let mut factor: f64 = 1.0;
    let touches = |edge: &Edge| {
        let is_recurrence = |node: NodeId| matches!(&graph.nodes[node].kind, NodeKind::Array(array) if array.kind == crate::graph::ArrayKind::Recurrence);
        is_recurrence(edge.sink)
    };
    for edge in graph.edges.iter().filter(|edge| touches(edge)) {
        let node = &graph.nodes[edge.source];
        let NodeKind::Output(port) = &node.kind else {
            continue;
        };
        if node.group != group {
            continue;
        }
        let latency = f64::from(verdict.ready.get(edge.source.index()).copied().unwrap_or(0));
        let hidden = port.pragmas.conc / unroll.max(1) as f64;
        if latency > hidden && hidden > 0.0 {
            factor = match model {
                Model::Peer => latency / hidden * frequency,
                Model::Chipless => factor.min(hidden / latency),
            };
        }
    }
    factor
}

/// Depth of the delay buffers at the node that is ready last.
fn deepest(graph: &Graph, adg: &Adg, mapping: &Mapping, verdict: &Verdict) -> u32 {
    let last = graph.nodes.indices().max_by_key(|node| {
        (
            verdict.ready.get(node.index()).copied().unwrap_or(0),
            std::cmp::Reverse(node.index()),
        )
    });
    let element = last
        .and_then(|node| mapping.nodes[node])
        .and_then(|location| adg.elements.get(location.element));
    element.map_or(0, crate::adg::Element::delay_depth)
}
