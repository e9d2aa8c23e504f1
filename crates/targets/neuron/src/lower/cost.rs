//! How long instructions and transfers take.

use super::builder::Builder;
use super::core::Core;
use super::element_wise;
use crate::graph::Engine;
use crate::kernels::Elements;
use crate::machine::Machine;
use crate::stream::{ElementCode, Instruction, PARTITION_STRIDE, Slot, Support};
use chipless_model::{Demand, Time};
use smallvec::SmallVec;

/// Bytes that one hardware descriptor moves at most.
const DESCRIPTOR_BYTES: u64 = 1 << 16;

/// Rows of the array up to which products of binary32 take longer: measured with 64, and with 128 not so.
const SHORT_ROWS: u32 = 64;

/// Cycles of an instruction that is not executed: an assumption, about the overhead of any instruction.
pub(super) const ASSUMED_CYCLES: f64 = 64.0;

/// The time of an engine's instructions, one after the other.
pub(super) struct EngineCost<'m> {
    machine: &'m Machine,
    engine: Engine,
    /// Cycles of products since weights were last loaded: the next load hides behind them.
    products: f64,
    /// Times of slots that do the same on each row of their operands, by number of the [body](Slot::body).
    known: Vec<Option<Time>>,
}

impl<'m> EngineCost<'m> {
    pub(super) fn new(machine: &'m Machine, engine: Engine) -> EngineCost<'m> {
        EngineCost {
            machine,
            engine,
            products: 0.0,
            known: Vec::new(),
        }
    }

    /// How long the instruction keeps its engine from the next one. `body` is its number among the slots of the core.
    pub(super) fn of(&mut self, slot: &Slot, body: u32) -> Time {
        match slot.decode() {
            Instruction::LoadWeights(i) => {
                let cycles = i.src().elements() as f64 / self.machine.tensor.load_speedup;
                let hidden = std::mem::take(&mut self.products);
                self.cycles((cycles - hidden).max(0.0))
            }
            // Four elements at each place take no longer than one.
            Instruction::LoadWeightsMx(i) => {
                let cycles = f64::from(i.src().places()) / self.machine.tensor.load_speedup;
                let hidden = std::mem::take(&mut self.products);
                self.cycles((cycles - hidden).max(0.0))
            }
            Instruction::MatmulMx(i) => {
                let cycles = f64::from(i.src().places()).max(self.machine.tensor.interval_min);
                self.products += cycles;
                self.cycles(cycles)
            }
            Instruction::Matmul(i) => {
                let tensor = &self.machine.tensor;
                let binary32 =
                    ElementCode::of(slot.bytes()[0x20]).is_some_and(|c| c.name == "fp32");
                let factor = match (binary32, i.transpose()) {
                    (false, _) => 1.0,
                    (true, 0) if u32::from(i.rows()) <= SHORT_ROWS => {
                        tensor.fp32_factor * tensor.fp32_short_factor
                    }
                    (true, 0) => tensor.fp32_factor,
                    (true, _) => tensor.fp32_transpose_factor,
                };
                let cycles = (i.src().elements() as f64).max(tensor.interval_min) * factor;
                self.products += cycles;
                self.cycles(cycles)
            }
            Instruction::Dma(_) => Time::from_ns(match self.engine {
                Engine::Act | Engine::Sp => self.machine.dma.hardware_dge_ns,
                _ => self.machine.dma.software_dge_ns,
            }),
            _ => {
                if let Some(Some(time)) = self.known.get(body as usize) {
                    return *time;
                }
                let time = match (slot.support(), slot.decode()) {
                    // What they cost is not public.
                    (Support::Listed, _)
                    | (_, Instruction::RegisterMemory(_) | Instruction::RegisterVariable(_)) => {
                        self.cycles(ASSUMED_CYCLES)
                    }
                    (Support::Executed | Support::NoEffect, _) => {
                        let (start_ns, cycles) =
                            element_wise::cost(&self.machine.element_wise, self.engine, slot);
                        Time::from_ns(start_ns) + self.cycles(cycles)
                    }
                };
                if self.known.len() <= body as usize {
                    self.known.resize(body as usize + 1, None);
                }
                self.known[body as usize] = Some(time);
                time
            }
        }
    }

    fn cycles(&self, cycles: f64) -> Time {
        let clock = &self.machine.clock;
        let mhz = match self.engine {
            Engine::Pe => clock.tensor,
            Engine::Act => clock.scalar,
            Engine::Dve => clock.vector,
            _ => clock.gpsimd,
        };
        Time::from_cycles(cycles, mhz)
    }
}

/// What a transfer costs its queue set.
pub(super) struct TransferCost {
    pub(super) fixed: Time,
    pub(super) demands: SmallVec<[Demand; 5]>,
    /// The rings that its rows go to: the first, and how many.
    pub(super) rings: (u64, u64),
}

impl<'p> Core<'p, '_> {
    /// The cost of a transfer of a queue set, whose rows go to its rings from the next one on.
    pub(super) fn transfer_cost(
        &mut self,
        set: usize,
        sources: &[Elements],
        to: &Elements,
        transposes: bool,
        builder: &mut Builder<'p>,
    ) -> TransferCost {
        let read: u64 = sources
            .iter()
            .map(Elements::bytes)
            .fold(0, u64::saturating_add);
        let bytes = read.max(to.bytes());
        let rows = sources.iter().chain([to]).map(rows).max().unwrap_or(0);
        let dma = &self.machine.dma;
        let (available, engines) = (self.sets[set].rings, u64::from(dma.engines_per_core));
        let state_buffer = self.memory.chip.state_buffer;
        let on_chip = |e: &&Elements| e.buffer == state_buffer;
        let partitions = sources
            .iter()
            .chain([to])
            .filter(on_chip)
            .map(partitions)
            .max();
        // A DMA engine serves some partitions of the state buffer; in HBM, rows are dealt out.
        let spread = partitions.map_or(rows, |p| {
            p.div_ceil(u64::from(dma.partitions_per_engine)).min(rows)
        });
        let rings = spread.clamp(1, available);
        let lanes = rings.min(engines);
        let descriptors = Time(dma.descriptor().0.saturating_mul(rows.div_ceil(lanes)));
        let first = self.sets[set].next_ring;
        self.sets[set].next_ring = (first + rows % available) % available;
        let served = if transposes {
            (bytes as f64 / dma.transpose_efficiency) as u64
        } else {
            bytes
        };
        let mut demands = SmallVec::new();
        demands.push(Demand {
            resource: self.dma(),
            bytes: served,
        });
        demands.extend(self.lanes(lanes as u32, builder).map(|resource| Demand {
            resource,
            bytes: served,
        }));
        let path = self.sets[set].fabric;
        demands.push(Demand {
            resource: self.fabric(path, builder),
            bytes,
        });
        let hbm = self.hbm();
        let off_chip = sources.iter().chain([to]).filter(|e| !on_chip(e));
        demands.extend(off_chip.map(|e| Demand {
            resource: hbm,
            bytes: e.bytes(),
        }));
        TransferCost {
            fixed: descriptors,
            demands,
            rings: (first, rings),
        }
    }
}

/// Hardware descriptors of one side: its runs, cut to what one descriptor moves.
fn rows(side: &Elements) -> u64 {
    let runs = side.bytes().checked_div(side.pattern.run).unwrap_or(0);
    runs.saturating_mul(side.pattern.run.div_ceil(DESCRIPTOR_BYTES))
}

/// Partitions of the state buffer that one side touches.
fn partitions(side: &Elements) -> u64 {
    let across = side
        .pattern
        .loops
        .iter()
        .filter(|l| l.stride.unsigned_abs() >= u64::from(PARTITION_STRIDE));
    across.map(|l| l.count).fold(1, u64::saturating_mul)
}
