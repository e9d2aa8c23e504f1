//! Assembly as a program: a queue for each unit, a counter for each ordered pair of units.
//!
//! The n-th token that a unit takes from another is the n-th that the other gave, since both work in order: taking it is a wait
//! for n given ones, and nothing is ever subtracted. Instructions move no bytes here, since assembly does not say where
//! weights and activations lie in DRAM; a run keeps time.

use super::{Assembly, Instruction, Unit};
use crate::bytes;
use crate::machine::Machine;
use crate::schedule::{Bounds, Core, Schedule};
use chipless_model::{
    Access, Action, BuildError, Builder, Condition, Counter, Demand, Fault, Kernel, Limits,
    Location, NewTask, Program, Signal, Storage, SyncId, Time, Wait,
};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Elements that the vector processor takes in a cycle. Measured on traces.
const VECTOR_ELEMENTS: u64 = 16;

/// An instruction as a kernel: it has a name.
#[derive(Debug)]
struct Named(String);

impl Kernel for Named {
    fn operation(&self) -> Cow<'static, str> {
        self.0.clone().into()
    }

    fn accesses(&self, _: &mut dyn FnMut(Access)) {}

    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Err(Fault::unsupported(
            "assembly is replayed in time; to compute, run the schedule it was made from",
        ))
    }
}

/// What the configuration instructions have set so far.
#[derive(Default)]
struct State<'s> {
    /// The core of the schedule.
    core: Option<&'s Core>,
    /// Kernel and N, K, C, H, W of the next `pe_conv`.
    kernel: Vec<u64>,
    tile: Vec<u64>,
    /// C, H, W of the next vector instruction.
    vector: Vec<u64>,
}

impl Assembly {
    /// The program of a core. Times are those of the trace; without one they are those of the workloads of the schedule, if it is
    /// given, or estimated from tiles and bytes.
    ///
    /// # Errors
    /// It has more tasks than the limit.
    pub fn lower(
        &self,
        machine: &Machine,
        schedule: Option<&Schedule>,
        limits: &Limits,
    ) -> Result<Program<'static>, BuildError> {
        let mut build = Builder::new("gemini", limits);
        build
            .program
            .name
            .push_str(if self.is_trace() { "trace" } else { "assembly" });
        let part = build.part("assembly");
        let rate = machine.dram_rate(1);
        let dram = build.resource("DRAM", rate, rate);
        build.program.resources[dram].off_chip = true;
        let mut pairs: BTreeMap<(Unit, Unit), (SyncId, i64)> = BTreeMap::new();
        for instruction in &self.instructions {
            let given = instruction.next.iter().map(|to| (instruction.unit, *to));
            for pair in given.chain(
                instruction
                    .previous
                    .iter()
                    .map(|from| (*from, instruction.unit)),
            ) {
                pairs.entry(pair).or_insert_with(|| {
                    let name = format!("{} to {}", pair.0.name(), pair.1.name());
                    (build.counter(name, Counter::up_to(i64::MAX)), 0)
                });
            }
        }
        let core = schedule.and_then(|schedule| schedule.cores.first());
        let mut state = State {
            core,
            ..State::default()
        };
        let costs: Vec<(Time, u64)> = self
            .instructions
            .iter()
            .map(|instruction| state.cost(instruction, machine))
            .collect();
        for unit in Unit::ALL {
            let all = self.instructions.iter().zip(&costs);
            let mut own = all
                .filter(|(instruction, _)| instruction.unit == unit)
                .peekable();
            if own.peek().is_none() {
                continue;
            }
            let queue = build.queue(unit.name(), 1);
            let first = build.program.tasks.next_idx();
            for (instruction, (fixed, bytes)) in own {
                let mut waits = Vec::new();
                for from in &instruction.previous {
                    if let Some((sync, taken)) = pairs.get_mut(&(*from, unit)) {
                        *taken += 1;
                        waits.push(Wait {
                            sync: *sync,
                            condition: Condition::AtLeast(*taken),
                        });
                    }
                }
                let signals = instruction
                    .next
                    .iter()
                    .filter_map(|to| pairs.get(&(unit, *to)));
                let signals: Vec<Signal> = signals
                    .map(|(sync, _)| Signal::on_completion(Action::Add(*sync, 1)))
                    .collect();
                let demand = (*bytes > 0).then_some(Demand {
                    resource: dram,
                    bytes: *bytes,
                });
                let kernel = build.kernel(Named(instruction.op.clone()));
                let (offset, size) = instruction.place;
                build.task(NewTask {
                    waits: &waits,
                    signals: &signals,
                    demands: demand.as_slice(),
                    fixed: *fixed,
                    location: Location { part, offset, size },
                    label: label(instruction),
                    ..NewTask::new(queue, kernel)
                })?;
            }
            build.release(queue, first);
        }
        build.finish()
    }
}

/// The workload that the instruction came from.
fn label(instruction: &Instruction) -> Option<Box<str>> {
    let workload = instruction.workload?;
    let layer = instruction
        .layer
        .map_or_else(String::new, |layer| format!(", layer {layer}"));
    let tile = instruction
        .tile
        .filter(|tile| *tile >= 0)
        .map_or_else(String::new, |tile| format!(" tile {tile}"));
    Some(format!("workload {workload}{tile}{layer}").into())
}

impl State<'_> {
    /// Fixed time and bytes over the edge to DRAM.
    fn cost(&mut self, instruction: &Instruction, machine: &Machine) -> (Time, u64) {
        self.configure(instruction);
        let moved = dram_bytes(instruction);
        let cycles = |count: f64| Time::from_cycles(count, machine.clock_mhz);
        let Some([start, end]) = instruction.time else {
            let overhead = &machine.overhead;
            let said = self.said(instruction);
            let estimate = match (instruction.unit, said) {
                _ if instruction.is_configuration() => overhead.configure,
                (Unit::Pe | Unit::Vp, Some(said)) => overhead.tile + said,
                (Unit::Pe, None) => {
                    overhead.tile
                        + product(&self.tile).saturating_mul(product(&self.kernel)) as f64
                            / machine.core.macs_per_cycle
                }
                (Unit::Vp, None) => overhead.tile + (padded(&self.vector) / VECTOR_ELEMENTS) as f64,
                _ => 0.0,
            };
            return (cycles(estimate), moved);
        };
        let whole = cycles((end - start) as f64);
        // Rounded up, as the engine serves a transfer.
        let transfer = Time((moved as f64 / machine.dram_rate(1) * 1e12).ceil() as u64);
        // What the trace needs beyond the bytes themselves: the latency of the access.
        if moved > 0 {
            (whole.saturating_sub(transfer), moved)
        } else {
            (whole, 0)
        }
    }

    /// Cycles of one tile of the workload, as its schedule says them.
    fn said(&self, instruction: &Instruction) -> Option<f64> {
        let id = u32::try_from(instruction.workload?).ok()?;
        let core = self.core?;
        let workload = core.workloads.get(core.position(id)?)?;
        let tiles = workload.tiles.len().max(1);
        Some((workload.time as f64 / tiles as f64 + 0.5).floor())
    }

    fn configure(&mut self, instruction: &Instruction) {
        match instruction.op.as_str() {
            "pe_cfg_tp" => {
                (self.kernel, self.tile) =
                    (instruction.numbers("KERNEL"), instruction.numbers("Tile"));
            }
            "vp_cfg_tp" => self.vector = instruction.numbers("Tile"),
            _ => {}
        }
    }
}

fn product(numbers: &[u64]) -> u64 {
    numbers.iter().copied().fold(1, u64::saturating_mul)
}

/// C, H, W with the channels in whole vectors.
fn padded(shape: &[u64]) -> u64 {
    shape.split_first().map_or(0, |(c, rest)| {
        c.div_ceil(VECTOR_ELEMENTS)
            .saturating_mul(VECTOR_ELEMENTS)
            .saturating_mul(product(rest))
    })
}

/// Bytes that cross the edge to DRAM.
fn dram_bytes(instruction: &Instruction) -> u64 {
    let bounds = |shape: &[u64; 4]| {
        let upper = shape.map(|n| u32::try_from(n.saturating_sub(1)).unwrap_or(u32::MAX));
        Bounds {
            lower: [0; 4],
            upper,
        }
    };
    let shape = |key: &str| <[u64; 4]>::try_from(instruction.numbers(key).as_slice()).ok();
    match instruction.op.as_str() {
        // The width of activations is set by lda_cfg; 8 bits are the least.
        "lda_mov" | "sta_mov" => {
            shape("Tile").map_or(0, |tile| bytes::feature_map(&bounds(&tile), 8, 8))
        }
        "ldw_mov" => shape("Wsize").map_or(0, weights),
        "lw_mov"
            if instruction
                .parameters
                .get("SS")
                .and_then(super::Literal::integer)
                == Some(1) =>
        {
            shape("Wsize").map_or(0, weights)
        }
        _ => 0,
    }
}

/// Bytes of weights of K, C, R, S.
fn weights([k, c, r, s]: [u64; 4]) -> u64 {
    let per_channel = c
        .div_ceil(8)
        .saturating_mul(8)
        .saturating_mul(r)
        .saturating_mul(s)
        .saturating_add(bytes::CHANNEL_PARAMETERS);
    k.saturating_mul(per_channel)
}
