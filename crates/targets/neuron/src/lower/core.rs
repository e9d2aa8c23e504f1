//! One core while it is lowered: its queues, semaphores and resources.

use super::builder::Builder;
use super::memory::{CoreMemory, Layout};
use crate::def::FabricPath;
use crate::graph::Engine;
use crate::kernels::Elements;
use crate::kernels::control::Start;
use crate::machine::Machine;
use crate::read::Subgraph;
use chipless_model::{
    BufferId, Counter, Fault, KernelId, Program, QueueId, Resource, ResourceId, SyncId,
};
use std::collections::BTreeMap;

/// Transfers of a queue set that may be on their way from the trigger to the first byte at a time.
const STARTING: u32 = 64;
/// Rings of a transfer whose engine owns no queue set: what programs use.
const DEFAULT_RINGS: u64 = 16;

pub(super) struct Core<'p, 'm> {
    pub(super) subgraph: &'p Subgraph<'p>,
    pub(super) memory: CoreMemory,
    pub(super) machine: &'m Machine,
    /// By position in `def.json`; behind them those of engines that own none.
    pub(super) sets: Vec<Set>,
    /// Positions of the sets of engines that own none.
    implicit: BTreeMap<usize, usize>,
    semaphores: Vec<Option<SyncId>>,
    events: Vec<Option<SyncId>>,
    hbm: ResourceId,
    dma: ResourceId,
    /// By number of rings, where they are fewer than the DMA engines.
    lanes: BTreeMap<u32, ResourceId>,
    fabric: BTreeMap<&'static str, ResourceId>,
    start_kernel: Option<KernelId>,
    /// Where instructions note addresses for their transfers, and the bytes in use.
    pub(super) notes: Option<(BufferId, u64)>,
}

/// A queue set.
#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) name: String,
    /// Where its transfers run.
    pub(super) queue: Option<QueueId>,
    /// Where they start.
    pub(super) start: Option<QueueId>,
    pub(super) rings: u64,
    /// The ring that the next row goes to.
    pub(super) next_ring: u64,
    pub(super) fabric: FabricPath,
    pub(super) pinned: bool,
}

impl<'p, 'm> Core<'p, 'm> {
    pub(super) fn new(
        index: usize,
        subgraphs: &'p [Subgraph<'p>],
        layout: &Layout,
        machine: &'m Machine,
        hbm: ResourceId,
        builder: &mut Builder<'p>,
    ) -> Core<'p, 'm> {
        let subgraph = &subgraphs[index];
        let sets = subgraph.definition.queues.iter().map(|(name, set)| Set {
            name: name.to_string(),
            queue: None,
            start: None,
            rings: set.queues().max(1),
            next_ring: 0,
            fabric: set.fabric_path.unwrap_or(FabricPath::Main),
            pinned: set.pinned == Some(true),
        });
        let rate = machine.dma.engine_bytes_per_second * f64::from(machine.dma.engines_per_core);
        let name = format!("{}.dma", subgraph.name);
        Core {
            subgraph,
            memory: layout.cores[index].clone(),
            machine,
            sets: sets.collect(),
            implicit: BTreeMap::new(),
            semaphores: Vec::new(),
            events: Vec::new(),
            hbm,
            dma: builder.program.resources.push(Resource {
                name,
                capacity: rate,
                per_transfer: rate,
                off_chip: false,
            }),
            lanes: BTreeMap::new(),
            fabric: BTreeMap::new(),
            start_kernel: None,
            notes: None,
        }
    }

    /// The semaphore of a number.
    pub(super) fn semaphore(&mut self, number: u64, builder: &mut Builder<'p>) -> Option<SyncId> {
        let kind = Counter::up_to(i64::from(u32::MAX));
        numbered(
            &mut self.semaphores,
            number,
            self.machine.limits.semaphores,
            &self.subgraph.name,
            "S",
            kind,
            builder,
        )
    }

    /// The event of a number.
    pub(super) fn event(&mut self, number: u64, builder: &mut Builder<'p>) -> Option<SyncId> {
        numbered(
            &mut self.events,
            number,
            self.machine.limits.events,
            &self.subgraph.name,
            "E",
            Counter::FLAG,
            builder,
        )
    }

    /// Position of the queue set that an engine's instructions hand transfers to.
    pub(super) fn set_of(&mut self, engine: Engine, semaphore: u8) -> usize {
        if let Some(position) = self
            .subgraph
            .definition
            .dynamic_queue_set(engine, u64::from(semaphore))
        {
            return position;
        }
        let (sets, subgraph) = (&mut self.sets, self.subgraph);
        *self.implicit.entry(engine.index()).or_insert_with(|| {
            let name = format!("{}.transfers", engine.name());
            debug_assert!(
                sets.len() >= subgraph.definition.queues.len(),
                "implicit sets come last"
            );
            sets.push(Set {
                name,
                queue: None,
                start: None,
                rings: DEFAULT_RINGS,
                next_ring: 0,
                fabric: FabricPath::Main,
                pinned: false,
            });
            sets.len() - 1
        })
    }

    /// The queue in which transfers of a set run.
    pub(super) fn queue(&mut self, set: usize, builder: &mut Builder<'p>) -> QueueId {
        let Set {
            name, queue, rings, ..
        } = &mut self.sets[set];
        let rings = *rings;
        *queue.get_or_insert_with(|| {
            let name = format!("{}.{name}", self.subgraph.name);
            if rings > 1 {
                builder.lanes(name, 1, rings)
            } else {
                builder.queue(name, 1)
            }
        })
    }

    /// The queue in which transfers of a set start.
    pub(super) fn start(&mut self, set: usize, builder: &mut Builder<'p>) -> QueueId {
        let Set { name, start, .. } = &mut self.sets[set];
        *start.get_or_insert_with(|| {
            let name = format!("{}.{name}.start", self.subgraph.name);
            builder.lanes(name, STARTING, u64::from(STARTING))
        })
    }

    /// Both queues of a set that has transfers.
    pub(super) fn queues(&self, set: usize) -> Option<(QueueId, QueueId)> {
        let Set { queue, start, .. } = self.sets.get(set)?;
        (*queue).zip(*start)
    }

    /// What a start does: nothing, like all others.
    pub(super) fn start_kernel(&mut self, builder: &mut Builder<'p>) -> KernelId {
        *self
            .start_kernel
            .get_or_insert_with(|| builder.kernel(Start))
    }

    /// The memory's rate, shared by all cores.
    pub(super) fn hbm(&self) -> ResourceId {
        self.hbm
    }

    /// The DMA engines of the core, together.
    pub(super) fn dma(&self) -> ResourceId {
        self.dma
    }

    /// What bounds a transfer that reaches this many rings; `None` where it reaches every DMA engine.
    pub(super) fn lanes(&mut self, rings: u32, builder: &mut Builder<'p>) -> Option<ResourceId> {
        let dma = &self.machine.dma;
        if rings >= dma.engines_per_core {
            return None;
        }
        Some(*self.lanes.entry(rings).or_insert_with(|| {
            let name = format!("{}.dma×{rings}", self.subgraph.name);
            let (all, some) = (f64::from(dma.engines_per_core), f64::from(rings.max(1)));
            let capacity = dma.engine_bytes_per_second * all;
            builder.program.resources.push(Resource {
                name,
                capacity,
                per_transfer: dma.engine_bytes_per_second * some,
                off_chip: false,
            })
        }))
    }

    /// The links of a fabric path. Their rate is not public: they carry what the DMA engines can move.
    pub(super) fn fabric(&mut self, path: FabricPath, builder: &mut Builder<'p>) -> ResourceId {
        let rate =
            self.machine.dma.engine_bytes_per_second * f64::from(self.machine.dma.engines_per_core);
        *self.fabric.entry(path.name()).or_insert_with(|| {
            let name = format!("{}.fabric.{}", self.subgraph.name, path.name());
            builder.program.resources.push(Resource {
                name,
                capacity: rate,
                per_transfer: rate,
                off_chip: false,
            })
        })
    }
}

/// A transfer that writes more bytes than its buffer has writes some of them several times: nothing says which value stays.
pub(super) fn written_once(to: &Elements, program: &Program<'_>) -> Result<(), Fault> {
    let size = program.buffers[to.buffer].size;
    if to.bytes() > size {
        let message = format!(
            "{} bytes are written to a memory of {size}: some of them several times, which is not supported",
            to.bytes()
        );
        return Err(Fault::unsupported(message));
    }
    Ok(())
}

/// The sync of a number, made when it is first asked for; `None` beyond what a core has.
fn numbered(
    known: &mut Vec<Option<SyncId>>,
    number: u64,
    count: u32,
    subgraph: &str,
    letter: &str,
    kind: Counter,
    builder: &mut Builder<'_>,
) -> Option<SyncId> {
    if number >= u64::from(count) {
        return None;
    }
    let index = number as usize;
    if known.len() <= index {
        known.resize(index + 1, None);
    }
    Some(
        *known[index].get_or_insert_with(|| {
            builder.counter(format!("{subgraph} ${letter}[{number}]"), kind)
        }),
    )
}
