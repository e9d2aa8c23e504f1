//! How fast a mapped graph runs: an estimate from bandwidths, recurrences and mismatch.
//!
//! Two models. [`Model::Peer`] is the scheduler's own, with its oddities, so that its numbers can be compared; [`Model::Chipless`] mends
//! what is plainly wrong with it. `docs/dsa-mapping.md` has both formulas and every difference.

use crate::Mapping;
use crate::judge::Verdict;
use chipless_dsa::adg::{Adg, ElementKind, MemoryKind, System};
use chipless_dsa::graph::{Edge, Graph, Node, NodeId, NodeKind, Port};
use chipless_dsa::operations;
use schemars::JsonSchema;
use serde::Serialize;

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
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
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
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
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

/// Estimates for the system that the fabric's file tells.
pub fn estimate(
    graph: &Graph,
    adg: &Adg,
    mapping: &Mapping,
    verdict: &Verdict,
    model: Model,
) -> Estimate {
    let system = adg.system.unwrap_or(System {
        cores: 1,
        banks: 1,
        bus_width: BUS_BYTES,
    });
    Demand::of(graph, adg, mapping, verdict, model).on(system)
}

/// What a mapped graph asks of the system around its fabric, and what bounds it inside.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    model: Model,
    /// The part of the full rate that scratchpads, and the fabric's own memory engine, allow.
    scratchpad: f64,
    engine: f64,
    /// Bits a firing from and to L2, and of these from and to DRAM.
    l2: f64,
    dram: f64,
    groups: Vec<GroupDemand>,
}

#[derive(Clone, Debug, PartialEq)]
struct GroupDemand {
    recurrence: f64,
    mismatch: f64,
    throughput: f64,
    /// Operations and lanes of a firing, times how often it fires.
    work: f64,
}

/// The part of the full rate that a supply allows.
fn bound(supply: f64, demand: f64) -> f64 {
    if demand > 0.0 {
        (supply / demand).min(1.0)
    } else {
        1.0
    }
}

/// Which streams of a memory, and what they are spared.
#[derive(Clone, Copy)]
struct Traffic {
    memory: MemoryKind,
    incoming: Option<bool>,
    repeat: bool,
    reuse: bool,
}

impl Demand {
    /// Takes the demand of a mapped graph.
    pub fn of(
        graph: &Graph,
        adg: &Adg,
        mapping: &Mapping,
        verdict: &Verdict,
        model: Model,
    ) -> Demand {
        let relative = frequencies(graph);
        let traffic = |wanted: Traffic| -> f64 {
            streams(graph, adg, mapping, wanted.memory)
                .filter(|(port, ..)| {
                    let is_input = matches!(port.kind, NodeKind::Input(_));
                    wanted.incoming.is_none_or(|incoming| incoming == is_input)
                })
                .map(|(node, port, recurrent)| {
                    let temporal = graph.groups[node.group].temporal;
                    let lanes = if temporal { 1 } else { port.lanes };
                    let mut bits = f64::from(port.width * lanes) * relative[node.group.index()];
                    let divides =
                        matches!(node.kind, NodeKind::Output(_)) || model == Model::Chipless;
                    if wanted.repeat && divides && port.pragmas.repeat > 1.0 {
                        bits /= port.pragmas.repeat;
                    }
                    if wanted.reuse || recurrent && wanted.repeat {
                        bits *= 1.0 - port.pragmas.reuse.clamp(0.0, 1.0);
                    }
                    bits
                })
                .sum()
        };
        let of_dma = |incoming, reuse| {
            traffic(Traffic {
                memory: MemoryKind::DirectMemoryAccess,
                incoming,
                repeat: true,
                reuse,
            })
        };
        let of_scratchpad = |incoming| {
            traffic(Traffic {
                memory: MemoryKind::Scratchpad,
                incoming: Some(incoming),
                repeat: false,
                reuse: false,
            })
        };
        let scratchpad = engine_bound(
            adg,
            model,
            MemoryKind::Scratchpad,
            of_scratchpad(true),
            of_scratchpad(false),
        );
        let engine = if model == Model::Chipless {
            let (reads, writes) = (of_dma(Some(true), false), of_dma(Some(false), false));
            engine_bound(adg, model, MemoryKind::DirectMemoryAccess, reads, writes)
        } else {
            1.0
        };
        let depth = deepest(graph, adg, mapping, verdict);
        let groups = graph.groups.iter_enumerated().map(|(number, group)| {
            let recurrence = recurrence(
                graph,
                verdict,
                number,
                group.unroll,
                relative[number.index()],
                model,
            );
            GroupDemand {
                recurrence,
                ..group_demand(
                    graph,
                    verdict,
                    number,
                    depth,
                    relative[number.index()],
                    model,
                )
            }
        });
        Demand {
            model,
            scratchpad,
            engine,
            l2: of_dma(None, false),
            dram: of_dma(None, true),
            groups: groups.collect(),
        }
    }

    /// The estimate with a system of cores, banks of L2, and a bus around the fabric.
    pub fn on(&self, system: System) -> Estimate {
        let (cores, banks) = (f64::from(system.cores), f64::from(system.banks));
        let crowding = 1.4 - 0.4 * 1.03_f64.powf(cores - 1.0);
        let supply = f64::from(system.bus_width) * 8.0 * banks.min(cores) * crowding;
        let l2 = bound(supply, cores * self.l2).min(self.engine);
        let supply = DRAM_BYTES * 8.0 * (1.4 - 0.4 * 1.01_f64.powf(cores));
        let dram = bound(supply, cores * self.dram);
        let (mut by_l2, mut by_dram) = (0.0, 0.0);
        let mut groups = Vec::with_capacity(self.groups.len());
        for group in &self.groups {
            let near = self
                .scratchpad
                .min(l2)
                .min(group.recurrence)
                .min(group.mismatch)
                .min(group.throughput);
            let firings = near.min(dram);
            by_l2 += near * group.work;
            by_dram += firings * group.work;
            groups.push(GroupEstimate {
                recurrence: group.recurrence,
                mismatch: group.mismatch,
                throughput: group.throughput,
                firings_per_cycle: firings,
            });
        }
        let operations_per_cycle = cores
            * match self.model {
                Model::Peer => (by_l2 * by_dram).sqrt(),
                Model::Chipless => by_dram,
            };
        Estimate {
            operations_per_cycle,
            scratchpad: self.scratchpad,
            l2,
            dram,
            groups,
        }
    }

    /// The same with as many of the cores as are worth it: fewer as long as that is better, as the scheduler counts.
    pub fn best_on(&self, system: System) -> f64 {
        let with = |cores: u32| self.on(System { cores, ..system }).operations_per_cycle;
        let (mut best, mut cores) = (with(system.cores), system.cores);
        while best > 1.0 && cores > 1 {
            cores -= 1;
            let fewer = with(cores);
            if fewer <= best {
                break;
            }
            best = fewer;
        }
        best
    }
}

/// What the engines of one kind of memory allow, in and out.
fn engine_bound(adg: &Adg, model: Model, kind: MemoryKind, reads: f64, writes: f64) -> f64 {
    let memories = adg.elements.iter().filter_map(|element| element.memory());
    memories
        .filter(|memory| memory.kind == kind)
        .fold(1.0, |least: f64, memory| {
            let unit = f64::from(memory.unit_bits);
            let read = f64::from(memory.read_width) * unit;
            // The scheduler takes the width of reading for writing, too.
            let write = if model == Model::Peer {
                read
            } else {
                f64::from(memory.write_width) * unit
            };
            least.min(bound(read, reads)).min(bound(write, writes))
        })
}

/// How often each group runs, against the one that runs most often.
fn frequencies(graph: &Graph) -> Vec<f64> {
    let most = graph
        .groups
        .iter()
        .map(|group| group.frequency as f64)
        .fold(0.0, f64::max);
    let share = |group: &chipless_dsa::graph::Group| {
        if most > 0.0 {
            group.frequency as f64 / most
        } else {
            0.0
        }
    };
    graph.groups.iter().map(share).collect()
}

/// What bounds a sub-graph beside its recurrence.
fn group_demand(
    graph: &Graph,
    verdict: &Verdict,
    group: chipless_dsa::graph::GroupId,
    depth: u32,
    frequency: f64,
    model: Model,
) -> GroupDemand {
    let members = || {
        graph
            .nodes
            .iter_enumerated()
            .filter(|(_, node)| node.group == group)
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
    let throughput = if model == Model::Peer {
        1.0
    } else if misses > 0 {
        // The interval holds what late operands cost as well.
        let slowest = members().filter_map(|(_, node)| match &node.kind {
            NodeKind::Instruction(instruction) => {
                operations::lookup(&instruction.operation).map(|known| known.throughput)
            }
            _ => None,
        });
        1.0 / f64::from(slowest.max().unwrap_or(1).max(1))
    } else {
        1.0 / f64::from(verdict.initiation_interval.max(1))
    };
    let work: f64 = members()
        .map(|(_, node)| match &node.kind {
            NodeKind::Instruction(_) => 1.0,
            NodeKind::Input(port) | NodeKind::Output(port) => f64::from(port.lanes),
            _ => 0.0,
        })
        .sum();
    GroupDemand {
        recurrence: 1.0,
        mismatch,
        throughput,
        work: work * frequency,
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
    group: chipless_dsa::graph::GroupId,
    unroll: u64,
    frequency: f64,
    model: Model,
) -> f64 {
    let mut factor: f64 = 1.0;
    let touches = |edge: &Edge| {
        let is_recurrence = |node: NodeId| matches!(&graph.nodes[node].kind, NodeKind::Array(array) if array.kind == chipless_dsa::graph::ArrayKind::Recurrence);
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
    element.map_or(0, chipless_dsa::adg::Element::delay_depth)
}
