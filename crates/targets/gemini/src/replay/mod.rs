//! What a replay tells besides times of tasks: why cores stood still, what L2 held, what moved, what it cost.

mod compare;
mod dram;
mod occupancy;
mod stalls;
mod trace;

pub use compare::compare;
pub use dram::DramQueue;
pub use occupancy::{Level, occupancy};
pub use stalls::{StallTable, Stalls, stalls};
pub use trace::{Span, Trace};

use crate::energy::Energy;
use crate::machine::Machine;
use crate::schedule::Schedule;
use crate::traffic::{Mesh, Traffic};
use chipless_model::{Node, Program, TaskId, Time, Value};
use chipless_sim::Timeline;

/// First and last tile of each workload, core by core: `workloads` of [`Lowered`](crate::Lowered).
pub type Tiles<'t> = &'t [[TaskId; 2]];

/// When a workload ran: from the start of its first tile to the end of its last.
pub(crate) fn span(timeline: &Timeline, [first, last]: [TaskId; 2]) -> (Time, Time) {
    (timeline.tasks[first].start, timeline.tasks[last].end)
}

pub(crate) fn leaf(name: &str, value: Value) -> Node {
    Node {
        name: name.to_owned(),
        value: Some(value),
        ..Node::default()
    }
}

pub(crate) fn count(name: &str, n: u64) -> Node {
    leaf(name, Value::Integer(i128::from(n)))
}

pub(crate) fn group(name: &str, children: Vec<Node>) -> Node {
    Node {
        name: name.to_owned(),
        children,
        ..Node::default()
    }
}

/// Bytes that DRAM carries: those of the transfers, weights in the rows of their banks.
fn carried(program: &Program<'_>) -> u64 {
    let dram = program
        .resources
        .position(|resource| resource.name == "dram");
    let demands = program
        .demands
        .iter()
        .filter(|demand| Some(demand.resource) == dram);
    demands.fold(0, |sum, demand| sum.saturating_add(demand.bytes))
}

/// Facts of a run: `latency_cycles`, `stalls` (cycles of all cores together, by reason; and by core
/// and by layer), `traffic`, `l2` by core, `energy_pj`.
pub fn facts(
    schedule: &Schedule,
    program: &Program<'_>,
    tiles: Tiles<'_>,
    timeline: &Timeline,
    machine: &Machine,
) -> Vec<Node> {
    let mesh = Mesh::of(schedule);
    let traffic = Traffic::of(schedule, &mesh);
    let energy = Energy::of(schedule, &traffic, machine);
    let stalls = stalls(schedule, program, tiles, timeline);
    let cycles = |time: Time| machine.cycles_of(time);
    let levels = occupancy(schedule, tiles, timeline);
    // Rows are whole cycles that add up to those of all.
    let reasons = |so_far: &mut Stalls, stalls: &Stalls| -> Vec<Node> {
        let before = so_far.by_reason();
        *so_far += *stalls;
        let after = so_far.by_reason().into_iter().zip(before);
        after
            .map(|((reason, after), (_, before))| count(reason, cycles(after) - cycles(before)))
            .collect()
    };
    let (mut of_cores, mut of_layers) = (Stalls::default(), Stalls::default());
    let pj = |name: &str, value: f64| leaf(name, Value::Number(value));
    vec![
        count("latency_cycles", cycles(timeline.end)),
        group("stalls", reasons(&mut Stalls::default(), &stalls.all)),
        group(
            "stalls_by_core",
            stalls
                .by_core
                .iter()
                .zip(&schedule.cores)
                .map(|(stalls, core)| {
                    let mut children = vec![count("core", u64::from(core.id))];
                    children.extend(reasons(&mut of_cores, stalls));
                    group("", children)
                })
                .collect(),
        ),
        group(
            "stalls_by_layer",
            stalls
                .by_layer
                .iter()
                .map(|(layer, stalls)| {
                    let name = schedule.name(*layer).to_owned();
                    let mut children = vec![leaf("layer", Value::Text(name))];
                    children.extend(reasons(&mut of_layers, stalls));
                    group("", children)
                })
                .collect(),
        ),
        group(
            "traffic",
            vec![
                count("dram_bytes", traffic.dram()),
                count("dram_read_bytes", traffic.dram_read),
                count("dram_written_bytes", traffic.dram_written),
                count("core_to_core_bytes", traffic.between_cores),
                count("byte_hops", traffic.byte_hops()),
                count("max_link_bytes", traffic.busiest()),
                count("dram_carried_bytes", carried(program)),
            ],
        ),
        group(
            "l2",
            levels
                .iter()
                .zip(&schedule.cores)
                .map(|(levels, core)| {
                    let peak = levels.iter().map(|level| level.bytes).max().unwrap_or(0);
                    let mean = occupancy::mean(levels);
                    group(
                        "",
                        vec![
                            count("core", u64::from(core.id)),
                            count("peak_bytes", peak),
                            count("mean_bytes", mean),
                        ],
                    )
                })
                .collect(),
        ),
        group(
            "energy_pj",
            vec![
                pj("mac", energy.mac),
                pj("vector", energy.vector),
                pj("l2", energy.l2),
                pj("weight_buffer", energy.weight_buffer),
                pj("noc", energy.noc),
                pj("dram", energy.dram),
                pj("total", energy.total()),
            ],
        ),
    ]
}
