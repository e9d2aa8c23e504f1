//! The runtime's structures as they stand in a program's sections: little endian, any alignment, borrowed.
//!
//! Only what the runtime itself reads is here; descriptors of DMA, DPU and SHAVE are decoded where they are used.
//!
//! Sources: NPU firmware headers `vpu_nnrt_api_40xx.h`, `vpu_nnrt_wlm.h`, `vpu_nnrt_common.h` (API 11).

use std::mem::offset_of;
use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// Tiles that the structures have room for.
pub const TILES: usize = 6;
/// Bytes of a DMA descriptor (`VpuDMATask`).
pub const DMA_SIZE: usize = 224;
/// Bytes of a DPU invariant.
pub const INVARIANT_SIZE: usize = 352;
/// Bytes of a DPU variant.
pub const VARIANT_SIZE: usize = 224;
/// Bytes of a SHAVE kernel range.
pub const RANGE_SIZE: usize = 40;
/// Bytes of a SHAVE kernel invocation.
pub const INVOCATION_SIZE: usize = 96;
/// Offset of [`ManagedInference`] behind [`MappedInference`] in the files seen.
pub const MANAGED_OFFSET: usize = 1728;
/// `next_same_id` of the last use of a physical barrier.
pub const NO_BARRIER: u32 = u32::MAX;

/// An array somewhere in memory (`VpuTaskReference`), 40 bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Reference {
    _reserved: [U64; 3],
    /// Address of the first element, relocated.
    pub address: U64,
    /// Elements.
    pub count: U64,
}

/// Slots for descriptors in the CMX of a tile (`VpuTaskCounts`), 36 bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct TaskStorage {
    _reserved: [U32; 2],
    /// DMA descriptors from DDR.
    pub dma_ddr: U32,
    /// DMA descriptors from CMX.
    pub dma_cmx: U32,
    /// DPU invariants.
    pub invariants: U32,
    /// DPU variants.
    pub variants: U32,
    /// SHAVE kernel ranges.
    pub ranges: U32,
    /// SHAVE kernel invocations.
    pub invocations: U32,
    /// Media tasks.
    pub media: U32,
}

/// How the SHAVE runtime is started (`VpuNNShaveRuntimeConfigs`), 96 bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ShaveRuntime {
    _reserved: U64,
    /// Entry as the SHAVE sees it.
    pub entry: U64,
    /// Address of the runtime's code, relocated.
    pub code_address: U64,
    _middle: [U64; 7],
    /// Version of the runtime, major in the upper half of the high word.
    pub version: U64,
    _end: U64,
}

/// The root of a program (`VpuMappedInference`), 1728 bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct MappedInference {
    /// API version, major in the upper 16 bits.
    pub api_version: U32,
    _padding: U32,
    _reserved: U64,
    /// CMX address of the DMA's hardware profiling log.
    pub dma_log: U64,
    /// Slots for descriptors in each tile.
    pub task_storage: TaskStorage,
    /// Bytes of those slots, where used.
    pub task_storage_size: U32,
    /// DMA descriptors whose source is in DDR, by engine.
    pub dma_ddr: [Reference; TILES],
    /// DMA descriptors whose source is in CMX, by engine.
    pub dma_cmx: [Reference; TILES],
    /// DPU invariants by tile.
    pub invariants: [Reference; TILES],
    /// DPU variants by tile.
    pub variants: [Reference; TILES],
    /// SHAVE kernel ranges by tile.
    pub ranges: [Reference; TILES],
    /// SHAVE kernel invocations by tile.
    pub invocations: [Reference; TILES],
    /// Media tasks.
    pub media: Reference,
    /// Barriers.
    pub barriers: Reference,
    /// The SHAVE runtime.
    pub shave_runtime: ShaveRuntime,
    /// Address of the profiled clock configuration, relocated.
    pub workpoint: U64,
    /// [`ManagedInference`].
    pub managed: Reference,
}

/// What a program with workload management adds (`VpuManagedMappedInference`), 704 bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ManagedInference {
    /// API version, as in [`MappedInference`].
    pub api_version: U32,
    /// The virtual barrier whose producers end the inference.
    pub final_barrier: U32,
    /// [`WorkItem`]s.
    pub work_items: Reference,
    /// [`Barrier`]s by virtual number.
    pub barriers: Reference,
    _reserved: [Reference; 4],
    /// Words for the barriers' configuration FIFOs.
    pub barrier_configurations: Reference,
    /// Number of configurations of each physical barrier.
    pub reprogrammings: Reference,
    /// Virtual barriers to configure before the start.
    pub bootstrap: Reference,
    /// [`RuntimeConfiguration`].
    pub runtime: Reference,
    /// Tiles whose SHAVEs are used, a bit each.
    pub shave_used: u8,
    /// Tiles whose DPU is used, a bit each.
    pub dpu_used: u8,
    /// Media engines used, a bit each.
    pub media_used: u8,
    /// DMA engines used from DDR, a bit each.
    pub dma_ddr_used: u8,
    /// DMA engines used from CMX, a bit each.
    pub dma_cmx_used: u8,
    _padding: [u8; 2],
    /// Who configures barriers: 0 the runtime, 1 the runtime by DMA, 2 the schedule at first, 3 and 4 the schedule.
    pub programming_mode: u8,
    /// A description for tools; empty in production.
    pub information: Reference,
    /// Bytes from one barrier's configurations to the next one's.
    pub configuration_stride: U32,
    /// Bit 0: no software FIFO for DMA.
    pub features: u8,
    _padding2: [u8; 3],
    /// The compiler's number for the model.
    pub model: U32,
    _padding3: [u8; 228],
    /// Work items to enqueue at the start: the first ones.
    pub bootstrap_work_items: U32,
    _padding4: [u8; 4],
}

/// What the runtime is told before a program runs (`VpuNNRTConfig`), 112 bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RuntimeConfiguration {
    /// The SHAVE runtime.
    pub shave_runtime: ShaveRuntime,
    /// CMX address of the DMA's hardware profiling log.
    pub dma_log: U64,
    /// Address of the profiled clock configuration, relocated.
    pub workpoint: U64,
}

/// One use of a physical barrier (`VpuTaskBarrierMap`), 24 bytes; its index is the virtual barrier.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Barrier {
    /// The next use of the same physical barrier, or [`NO_BARRIER`].
    pub next_same_id: U32,
    /// Tasks that must post it.
    pub producers: U16,
    /// Tasks that wait for it.
    pub consumers: U16,
    /// The physical barrier.
    pub real_id: u8,
    _padding: [u8; 3],
    /// First work item to enqueue when it has been consumed.
    pub work_item: U32,
    /// Work items to enqueue then.
    pub enqueue_count: U32,
    _reserved: U32,
}

/// A list of descriptors for one engine's FIFO (`VpuWorkItem`), 64 bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct WorkItem {
    /// First descriptor: in DDR for DMA (relocated), in CMX otherwise.
    pub descriptor: U64,
    /// Engine: 0 DPU, 1 DMA, 2 SHAVE, 3 media, 4 DPU auto.
    pub kind: u8,
    /// Tile, or DMA engine.
    pub unit: u8,
    /// DMA: 0 from DDR, 1 from CMX. SHAVE: 0 any, n the n-th of the tile.
    pub sub_unit: u8,
    _padding: u8,
    /// Next of a linked list of work items (API 11.6), 0 none.
    pub next: U32,
    _padding2: [u8; 48],
}

const _: () = {
    assert!(size_of::<Reference>() == 40);
    assert!(size_of::<ShaveRuntime>() == 96);
    assert!(size_of::<MappedInference>() == 1728);
    assert!(offset_of!(MappedInference, task_storage) == 24);
    assert!(offset_of!(MappedInference, dma_ddr) == 64);
    assert!(offset_of!(MappedInference, barriers) == 1544);
    assert!(offset_of!(MappedInference, managed) == 1688);
    assert!(size_of::<ManagedInference>() == 704);
    assert!(offset_of!(ManagedInference, bootstrap) == 328);
    assert!(offset_of!(ManagedInference, shave_used) == 408);
    assert!(offset_of!(ManagedInference, programming_mode) == 415);
    assert!(offset_of!(ManagedInference, bootstrap_work_items) == 696);
    assert!(size_of::<RuntimeConfiguration>() == 112);
    assert!(size_of::<Barrier>() == 24);
    assert!(size_of::<WorkItem>() == 64);
};

/// How descriptors are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// NPU3720.
    Npu3720,
    /// NPU4000 and NPU5010.
    Npu4000,
}

/// A section of descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSection {
    /// What it holds.
    pub kind: TaskKind,
    /// Of which DMA engine or tile; 0 where one section holds those of all tiles.
    pub unit: usize,
    /// Which list of the unit.
    pub list: usize,
    /// How its descriptors are laid out.
    pub layout: Layout,
}

impl TaskSection {
    /// Bytes of one record.
    pub const fn record_size(self) -> usize {
        match self.layout {
            Layout::Npu3720 => record_size_3720(self.kind),
            Layout::Npu4000 => self.kind.record_size(),
        }
    }

    /// Where an invariant counts its variants.
    pub(crate) const fn variant_count(self) -> usize {
        match self.layout {
            Layout::Npu3720 => VARIANT_COUNT_3720,
            // NPU4 DPU invariant, variant_count.
            Layout::Npu4000 => 0x158,
        }
    }
}

/// What a task section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskKind {
    /// DMA descriptors whose source is in DDR.
    DmaDdr,
    /// DMA descriptors whose source is in CMX.
    DmaCmx,
    /// DPU invariants.
    Invariant,
    /// DPU variants.
    Variant,
    /// SHAVE kernel ranges.
    Range,
    /// SHAVE kernel invocations.
    Invocation,
}

impl TaskKind {
    /// Every kind, in the order of the mapped inference.
    pub const ALL: [TaskKind; 6] = [
        TaskKind::DmaDdr,
        TaskKind::DmaCmx,
        TaskKind::Invariant,
        TaskKind::Variant,
        TaskKind::Range,
        TaskKind::Invocation,
    ];

    /// Bytes of one record of NPU4000.
    pub const fn record_size(self) -> usize {
        match self {
            TaskKind::DmaDdr | TaskKind::DmaCmx => DMA_SIZE,
            TaskKind::Invariant => INVARIANT_SIZE,
            TaskKind::Variant => VARIANT_SIZE,
            TaskKind::Range => RANGE_SIZE,
            TaskKind::Invocation => INVOCATION_SIZE,
        }
    }

    /// A record as people call it.
    pub const fn record_name(self) -> &'static str {
        match self {
            TaskKind::DmaDdr | TaskKind::DmaCmx => "descriptor",
            TaskKind::Invariant => "invariant",
            TaskKind::Variant => "variant",
            TaskKind::Range => "range",
            TaskKind::Invocation => "invocation",
        }
    }

    /// What a section of descriptors holds, by its name: `task.dma.ENGINE.0` (from DDR) and `.1` (from CMX), `task.dpu.invariant.TILE.0`,
    /// `task.dpu.variant.TILE.0`, `task.shave.range.TILE.LIST`, `task.shave.invocation.TILE.LIST`; in programs for NPU3720 `.text.dmaTasksENGINE`,
    /// and one section for all tiles of each other kind. Programs compiled with `NPU_TURBO` have two lists for the SHAVEs of a tile, all others
    /// list 0 alone.
    pub fn of_section(name: &str) -> Option<TaskSection> {
        let Some(rest) = name.strip_prefix("task.") else {
            return task_section_3720(name);
        };
        let (rest, last) = rest.rsplit_once('.')?;
        let (what, unit) = rest.rsplit_once('.')?;
        let list = match last {
            "0" => 0,
            "1" => 1,
            _ => return None,
        };
        let kind = match (what, last) {
            ("dma", "0") => TaskKind::DmaDdr,
            ("dma", "1") => TaskKind::DmaCmx,
            ("dpu.invariant", "0") => TaskKind::Invariant,
            ("dpu.variant", "0") => TaskKind::Variant,
            ("shave.range", _) => TaskKind::Range,
            ("shave.invocation", _) => TaskKind::Invocation,
            _ => return None,
        };
        let unit = unit.parse().ok().filter(|unit| *unit < TILES)?;
        Some(TaskSection {
            kind,
            unit,
            list,
            layout: Layout::Npu4000,
        })
    }

    /// Whether sections of this kind come in two lists, of which the mapped inference references the first.
    pub const fn has_second_list(self) -> bool {
        matches!(self, TaskKind::Range | TaskKind::Invocation)
    }

    /// Offset of the lists' references in the mapped inference.
    pub const fn field(self) -> usize {
        match self {
            TaskKind::DmaDdr => offset_of!(MappedInference, dma_ddr),
            TaskKind::DmaCmx => offset_of!(MappedInference, dma_cmx),
            TaskKind::Invariant => offset_of!(MappedInference, invariants),
            TaskKind::Variant => offset_of!(MappedInference, variants),
            TaskKind::Range => offset_of!(MappedInference, ranges),
            TaskKind::Invocation => offset_of!(MappedInference, invocations),
        }
    }

    /// The lists' references in the mapped inference, and the name of the field.
    pub fn references(self, mapped: &MappedInference) -> (&[Reference; TILES], &'static str) {
        match self {
            TaskKind::DmaDdr => (&mapped.dma_ddr, "dma_tasks_ddr"),
            TaskKind::DmaCmx => (&mapped.dma_cmx, "dma_tasks_cmx"),
            TaskKind::Invariant => (&mapped.invariants, "invariants"),
            TaskKind::Variant => (&mapped.variants, "variants"),
            TaskKind::Range => (&mapped.ranges, "act_kernel_ranges"),
            TaskKind::Invocation => (&mapped.invocations, "act_kernel_invocations"),
        }
    }
}

/// Where an invariant for NPU3720 counts its variants.
const VARIANT_COUNT_3720: usize = 0x128;

/// Bytes of one record in programs for NPU3720.
const fn record_size_3720(kind: TaskKind) -> usize {
    match kind {
        TaskKind::DmaDdr | TaskKind::DmaCmx => 128,
        TaskKind::Invariant => 304,
        TaskKind::Variant | TaskKind::Invocation => 64,
        TaskKind::Range => 24,
    }
}

/// What a section of this name holds in programs for NPU3720.
fn task_section_3720(name: &str) -> Option<TaskSection> {
    let (kind, unit) = match name.strip_prefix(".text.")? {
        "dmaTasks0" => (TaskKind::DmaDdr, 0),
        "dmaTasks1" => (TaskKind::DmaDdr, 1),
        "DPUInvariants" => (TaskKind::Invariant, 0),
        "DPUVariants" => (TaskKind::Variant, 0),
        "ActKernelRanges" => (TaskKind::Range, 0),
        "ActKernelInvocations" => (TaskKind::Invocation, 0),
        _ => return None,
    };
    Some(TaskSection {
        kind,
        unit,
        list: 0,
        layout: Layout::Npu3720,
    })
}
