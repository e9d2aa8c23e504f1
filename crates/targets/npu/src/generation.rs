//! What differs between the generations of the NPU, as data.
//!
//! A program names its generation by the platform of `meta.PlatformInfo`; everything that Chipless reads, proves and computes is the same
//! for all of them but for what stands here. Evidence: docs/npu-3720.md, docs/npu-5010.md.

use crate::address::CMX_SIZE;
use crate::npu3720;
use crate::structures::Layout;
use std::fmt;

/// The chip that a program is for (`ArchKind` of meta.PlatformInfo).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Platform {
    /// VPUX37XX, `ArchKind` 3.
    Npu3720,
    /// VPUX40XX, `ArchKind` 4.
    Npu4000,
    /// VPUX501X, `ArchKind` 5.
    Npu5010,
    /// Any other number.
    Other(u64),
}

impl Platform {
    /// Those whose programs can be run.
    pub const KNOWN: [Platform; 3] = [Platform::Npu3720, Platform::Npu4000, Platform::Npu5010];

    /// By `ArchKind`.
    pub fn from_arch_kind(kind: u64) -> Platform {
        match kind {
            3 => Platform::Npu3720,
            4 => Platform::Npu4000,
            5 => Platform::Npu5010,
            other => Platform::Other(other),
        }
    }

    /// Frequency in MHz of the timer in which `PerformanceMetrics` count, and the DPU clock at which the compiler
    /// states its own estimate. Found by comparing both in compiled programs.
    pub const fn clocks(self) -> Option<(f64, f64)> {
        match self {
            Platform::Npu3720 => Some((38.4, 1300.0)),
            Platform::Npu4000 => Some((19.2, 1850.0)),
            Platform::Npu5010 => Some((19.2, 2100.0)),
            Platform::Other(_) => None,
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Platform::Npu3720 => f.write_str("NPU3720"),
            Platform::Npu4000 => f.write_str("NPU4000"),
            Platform::Npu5010 => f.write_str("NPU5010"),
            Platform::Other(kind) => write!(f, "ArchKind {kind}"),
        }
    }
}

/// How the post-processing engine of the DPU counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PostStages {
    /// Integer sums pass integer stages (multiplier and shift), float sums float ones; the slope of negative values takes the place of
    /// the scale, and the upper clamp is a bit pattern (NPU4000).
    Separate,
    /// All sums pass the float stages: scale and bias of the weight table are binary32, the slope of negative values multiplies the scaled
    /// value, and both clamps are binary32 (NPU5010: `ppe_fp_scale_hclamp` and `ppe_fp_scale_lclamp` of `NPUReg50XX`).
    Float,
}

/// How a generation writes times. Source: `FrequenciesSetup` and the records of the parser in `openvinotoolkit/npu_compiler`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Profile {
    /// MHz of the device's timer.
    pub(crate) timer: f64,
    /// MHz of the DPU clock for each unit of its multiplier.
    pub(crate) clock_unit: f64,
    /// Bytes of a DPU workload's record.
    pub(crate) dpu_record: u64,
    /// What DPU workloads' records count.
    pub(crate) durations: Durations,
    /// Bytes of a transfer's record; `None` where transfers have none.
    pub(crate) dma_record: Option<u64>,
}

/// Unit of the lengths of DPU workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durations {
    /// Cycles of the DPU, in fields of so many bits; whole words where that is not said.
    DpuCycles { bits: Option<u32> },
    /// Ticks of the device's timer.
    Ticks,
}

/// A generation whose programs can be run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Generation {
    /// Tiles of the chip: each has a DPU, SHAVEs and CMX.
    pub tiles: u8,
    /// Physical barriers that each tile brings.
    pub barriers_a_tile: u32,
    /// Bytes of CMX that programs may use in each tile, from its start on.
    pub cmx_size: u64,
    /// Major version of the loader's interface (note.LoaderABIVersion).
    pub loader_abi: u32,
    /// Major version of the root structure (note.MappedInferenceVersion).
    pub mapped_inference: u32,
    /// Whether addresses of on-chip memory are symbols of the runtime, inputs and outputs symbols without a section, and tasks listed in the
    /// order in which the firmware starts them.
    pub runtime_symbols: bool,
    /// How descriptors are laid out.
    pub layout: Layout,
    /// The post-processing engine.
    pub post: PostStages,
    /// Fields of its descriptors: `structure,register,name,byte,bit,width,used`, where byte is that of the register in its structure and bit
    /// the lowest in the register.
    pub(crate) registers: &'static [&'static str],
    /// How it writes times into the buffer of a profiled program.
    pub(crate) profile: Profile,
    /// Its machine file, among [`MACHINES`](crate::MACHINES).
    pub machine: usize,
}

/// Under the names of the public register tables (NPU4 types, 40XX).
const REGISTERS: &str = include_str!("registers.csv");

const PROFILE: Profile = Profile {
    timer: 19.2,
    clock_unit: 25.0,
    dpu_record: 32,
    durations: Durations::DpuCycles { bits: None },
    dma_record: None,
};

/// Meteor Lake and Arrow Lake.
pub const NPU3720: Generation = Generation {
    tiles: 2,
    barriers_a_tile: 32,
    cmx_size: npu3720::CMX_SIZE,
    loader_abi: 1,
    mapped_inference: 7,
    runtime_symbols: true,
    layout: Layout::Npu3720,
    post: PostStages::Separate,
    registers: &[include_str!("npu3720/registers.csv")],
    profile: Profile {
        timer: 38.4,
        clock_unit: 100.0 / 3.0,
        dpu_record: 16,
        durations: Durations::DpuCycles { bits: Some(28) },
        dma_record: Some(16),
    },
    machine: 2,
};

/// Lunar Lake.
pub const NPU4000: Generation = Generation {
    tiles: 6,
    barriers_a_tile: 16,
    cmx_size: CMX_SIZE,
    loader_abi: 1,
    mapped_inference: 11,
    runtime_symbols: false,
    layout: Layout::Npu4000,
    post: PostStages::Separate,
    registers: &[REGISTERS],
    profile: PROFILE,
    machine: 0,
};

/// Panther Lake.
pub const NPU5010: Generation = Generation {
    tiles: 3,
    barriers_a_tile: 16,
    cmx_size: CMX_SIZE,
    loader_abi: 2,
    mapped_inference: 11,
    runtime_symbols: false,
    layout: Layout::Npu4000,
    post: PostStages::Float,
    registers: &[REGISTERS, include_str!("registers-5010.csv")],
    profile: Profile {
        durations: Durations::Ticks,
        ..PROFILE
    },
    machine: 1,
};

impl Generation {
    /// The generation of a platform; `None` where its programs cannot be run.
    pub const fn of(platform: Platform) -> Option<Generation> {
        match platform {
            Platform::Npu4000 => Some(NPU4000),
            Platform::Npu5010 => Some(NPU5010),
            Platform::Npu3720 => Some(NPU3720),
            Platform::Other(_) => None,
        }
    }
}
