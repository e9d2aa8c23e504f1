//! Why cores stood still: the time from the end of a workload to the start of the next one on the same core, and between the
//! tiles of a workload, by what the next one waited for last.

use super::{Tiles, span};
use crate::names::Name;
use crate::schedule::Schedule;
use chipless_model::{Program, TaskId, Time};
use chipless_sim::Timeline;
use indexmap::IndexMap;

/// Time that cores stood still, all of them together, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// Data from DRAM had not arrived.
    pub dram: Time,
    /// Data from another core had not arrived.
    pub other_cores: Time,
    /// Weights were not in the weight buffer.
    pub weight_buffer: Time,
    /// A result on its way out was in the way.
    pub space: Time,
    /// The unit was being configured, or the core began.
    pub control: Time,
    /// Nothing was left to do while other cores worked.
    pub finished: Time,
}

impl Stalls {
    /// Reasons as JSON names them.
    pub fn by_reason(&self) -> [(&'static str, Time); 6] {
        [
            ("dram", self.dram),
            ("other_cores", self.other_cores),
            ("weight_buffer", self.weight_buffer),
            ("space", self.space),
            ("control", self.control),
            ("finished", self.finished),
        ]
    }
}

impl std::ops::AddAssign for Stalls {
    fn add_assign(&mut self, other: Stalls) {
        self.dram += other.dram;
        self.other_cores += other.other_cores;
        self.weight_buffer += other.weight_buffer;
        self.space += other.space;
        self.control += other.control;
        self.finished += other.finished;
    }
}

/// Why the cores of a run stood still.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StallTable {
    /// All cores together.
    pub all: Stalls,
    /// Core by core, in the schedule's order.
    pub by_core: Vec<Stalls>,
    /// Before and between the tiles of each layer, in the order in which the cores' lists come to them.
    pub by_layer: IndexMap<Name, Stalls>,
}

/// Sums up why the cores of a run stood still.
pub fn stalls(
    schedule: &Schedule,
    program: &Program<'_>,
    tiles: Tiles<'_>,
    timeline: &Timeline,
) -> StallTable {
    let mut table = StallTable::default();
    let mut tiles = tiles.iter();
    for core in &schedule.cores {
        let mut free = Time::ZERO;
        let mut of_core = Stalls::default();
        for (workload, tiles) in core.workloads.iter().zip(&mut tiles) {
            let (start, end) = span(timeline, *tiles);
            let mut stalls = Stalls::default();
            *reason(&mut stalls, program, timeline, tiles[0]) += start.saturating_sub(free);
            let between = |task: usize| {
                let (before, this) = (TaskId::from_usize(task - 1), TaskId::from_usize(task));
                (
                    this,
                    timeline.tasks[this]
                        .start
                        .saturating_sub(timeline.tasks[before].end),
                )
            };
            for (task, time) in (tiles[0].index() + 1..=tiles[1].index()).map(between) {
                *reason(&mut stalls, program, timeline, task) += time;
            }
            *table.by_layer.entry(workload.layer).or_default() += stalls;
            of_core += stalls;
            free = end.max(free);
        }
        of_core.finished += timeline.end.saturating_sub(free);
        table.all += of_core;
        table.by_core.push(of_core);
    }
    table
}

/// The reason for which a task started late.
fn reason<'s>(
    stalls: &'s mut Stalls,
    program: &Program<'_>,
    timeline: &Timeline,
    task: TaskId,
) -> &'s mut Time {
    let Some(by) = timeline.tasks[task].stall.and_then(|stall| stall.by) else {
        return &mut stalls.control;
    };
    match &*program.kernel(by).operation() {
        "load" => &mut stalls.dram,
        "send" if program.tasks[by].queue == program.tasks[task].queue => &mut stalls.control,
        "send" => &mut stalls.other_cores,
        "load weights" => &mut stalls.weight_buffer,
        "store" => &mut stalls.space,
        _ => &mut stalls.control,
    }
}
