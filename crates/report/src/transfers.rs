//! What transfers carry: weights, activations that leave the chip and come back, inputs and outputs.

use crate::attribution::{Attribution, lives};
use chipless_model::{Access, Direction, MemoryKind, Program, Role, TaskId};
use chipless_sim::Timeline;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;

/// What a transfer carries, by the buffers that it reads and writes off the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carries {
    /// Results for the host.
    Output,
    /// What the program measures of itself, for the host.
    Profiling,
    /// What the host gives.
    Input,
    /// What is kept from run to run.
    State,
    /// Constants: weights and tables.
    Weights,
    /// Descriptions of tasks.
    Descriptors,
    /// Activations from one place off the chip to another.
    OffChipCopy,
    /// Activations that leave the chip and that the program reads again.
    Spill,
    /// Activations that come back.
    Reload,
    /// Bytes from one place on the chip to another.
    OnChipCopy,
}

impl Carries {
    /// As printed, and as `--what-if without=` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Carries::Output => "output",
            Carries::Profiling => "profiling",
            Carries::Input => "input",
            Carries::State => "state",
            Carries::Weights => "weights",
            Carries::Descriptors => "descriptors",
            Carries::OffChipCopy => "off-chip-copy",
            Carries::Spill => "spill",
            Carries::Reload => "reload",
            Carries::OnChipCopy => "on-chip-copy",
        }
    }

    /// What that is, where the name does not say it.
    pub const fn meaning(self) -> &'static str {
        match self {
            Carries::Output => "to the host",
            Carries::Profiling => "the program's own measurements, to the host",
            Carries::Input => "from the host",
            Carries::State => "kept from run to run",
            Carries::Weights => "and tables, constants of any kind",
            Carries::Descriptors => "of tasks, and writes of registers",
            Carries::OffChipCopy => "activations, within off-chip memory",
            Carries::Spill => "activations, to off-chip memory",
            Carries::Reload => "activations, from off-chip memory",
            Carries::OnChipCopy => "between on-chip memories",
        }
    }

    /// What a task carries; `None` where it is no transfer.
    pub fn of(program: &Program<'_>, task: TaskId) -> Option<Carries> {
        if program.demands(task).is_empty() {
            return None;
        }
        let kernel = program.kernel(task);
        if kernel.brings_tasks() {
            return Some(Carries::Descriptors);
        }
        let (mut read, mut written) = (None, None);
        kernel.accesses(&mut |access| {
            let buffer = &program.buffers[access.buffer];
            let kind = program.memories[buffer.memory].kind;
            let is_off_chip = matches!(kind, MemoryKind::Dram | MemoryKind::Hbm);
            if is_off_chip && access.tensor != Access::DESCRIPTION {
                let role = match access.direction {
                    Direction::Read => &mut read,
                    Direction::Write => &mut written,
                };
                role.get_or_insert(if buffer.has_weights {
                    Role::Constant
                } else {
                    buffer.role
                });
            }
        });
        Some(match (read, written) {
            (_, Some(Role::Output)) => Carries::Output,
            (_, Some(Role::Profile)) => Carries::Profiling,
            (Some(Role::Input), _) => Carries::Input,
            (Some(Role::State), _) | (_, Some(Role::State)) => Carries::State,
            (Some(Role::Constant), _) => Carries::Weights,
            (Some(_), Some(_)) => Carries::OffChipCopy,
            (None, Some(_)) => Carries::Spill,
            (Some(_), None) => Carries::Reload,
            (None, None) => Carries::OnChipCopy,
        })
    }
}

/// The transfers that carry one thing.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Transfers {
    /// What they carry.
    pub carries: Carries,
    /// How many ran.
    pub transfers: usize,
    /// Bytes that they moved, each counted once.
    pub bytes: u64,
    /// Time that they took, added up.
    pub busy_ns: f64,
    /// Of that, on the critical path.
    pub critical_ns: f64,
    /// How many of them bring constants to a memory to which one before them brought the same.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeated: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What `--what-if without=` calls transfers that bring constants again.
pub const REPEATED: &str = "repeated";

/// Of transfers in the order in which they ran, those that bring constants to a memory to which one before them brought the same bytes.
pub fn repeated(program: &Program<'_>, tasks: impl Iterator<Item = TaskId>) -> FxHashSet<TaskId> {
    let mut known = FxHashSet::default();
    let mut found = FxHashSet::default();
    for task in tasks {
        if Carries::of(program, task) != Some(Carries::Weights) {
            continue;
        }
        let mut touched = Vec::new();
        program.kernel(task).accesses(&mut |access| {
            let memory = program.buffers[access.buffer].memory;
            match access.direction {
                Direction::Read if access.tensor != Access::DESCRIPTION => {
                    touched.push((memory, Some((access.buffer, access.pattern))));
                }
                Direction::Read => {}
                // Where in that memory it comes to stand does not matter.
                Direction::Write => touched.push((memory, None)),
            }
        });
        if !known.insert(touched) {
            found.insert(task);
        }
    }
    found
}

/// Activations that leave the chip are a matter of its room where memories there are fuller than this.
const NEARLY_FULL: f64 = 0.75;

/// A part of a run that is worth a look at what memories hold.
const NOTABLE: f64 = 0.1;

/// An on-chip memory with room to spare, though a tenth of a run goes into activations that leave the chip and come back: the fullest
/// of them, with the most bytes that are live in it at a time, and its size.
pub(crate) fn roomy<'p>(
    program: &'p Program<'_>,
    timeline: &Timeline,
    transfers: &[Transfers],
) -> Option<(&'p str, u64, u64)> {
    let carried = |row: &&Transfers| matches!(row.carries, Carries::Spill | Carries::Reload);
    let round_trips = transfers.iter().filter(carried);
    let took: f64 = round_trips.map(|row| row.critical_ns).sum();
    if took < NOTABLE * timeline.end.ns() {
        return None;
    }
    let peaks = lives(program, timeline).peaks();
    let memories = program.memories.iter_enumerated();
    let held = memories
        .filter(|(_, memory)| memory.kind == MemoryKind::Scratchpad && memory.size > 0)
        .map(|(id, memory)| (&*memory.name, peaks[id], memory.size));
    let part = |(_, peak, size): &(&str, u64, u64)| *peak as f64 / *size as f64;
    let fullest = held.max_by(|a, b| part(a).total_cmp(&part(b)));
    fullest.filter(|memory| part(memory) < NEARLY_FULL)
}

/// The transfers of a run by what they carry, those with the most time on the critical path first; empty where there are none.
pub fn transfers(program: &Program<'_>, attribution: &Attribution) -> Vec<Transfers> {
    let mut of: FxHashMap<Carries, Transfers> = FxHashMap::default();
    let repeated = repeated(program, attribution.rows.iter().map(|row| row.task));
    for row in &attribution.rows {
        let Some(carries) = Carries::of(program, row.task) else {
            continue;
        };
        let sum = of.entry(carries).or_insert(Transfers {
            carries,
            transfers: 0,
            bytes: 0,
            busy_ns: 0.0,
            critical_ns: 0.0,
            repeated: 0,
        });
        let took = (row.end - row.start).ns();
        let demands = program.demands(row.task).iter();
        sum.transfers += 1;
        sum.repeated += usize::from(repeated.contains(&row.task));
        sum.bytes =
            (sum.bytes).saturating_add(demands.map(|demand| demand.bytes).max().unwrap_or(0));
        sum.busy_ns += took;
        sum.critical_ns += if row.critical { took } else { 0.0 };
    }
    let mut found: Vec<Transfers> = of.into_values().collect();
    found.sort_by(|a, b| {
        let longer = b.critical_ns.total_cmp(&a.critical_ns);
        longer.then_with(|| (Reverse(a.bytes), a.carries).cmp(&(Reverse(b.bytes), b.carries)))
    });
    found
}
