//! What differs between the generations of the NPU, as data.
//!
//! A program names its generation by the platform of `meta.PlatformInfo`; everything that Chipless reads, proves and computes is the same
//! for all of them but for what stands here. Evidence: docs/npu-5010.md.

use crate::read::Platform;

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

/// A generation whose programs can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Generation {
    /// Tiles of the chip: each has a DPU, SHAVEs and 1.5 MiB of CMX.
    pub tiles: u8,
    /// Major version of the loader's interface (note.LoaderABIVersion).
    pub loader_abi: u32,
    /// The post-processing engine.
    pub post: PostStages,
    /// Its machine file, among [`MACHINES`](crate::MACHINES).
    pub machine: usize,
}

/// Lunar Lake.
pub const NPU4000: Generation = Generation {
    tiles: 6,
    loader_abi: 1,
    post: PostStages::Separate,
    machine: 0,
};

/// Panther Lake.
pub const NPU5010: Generation = Generation {
    tiles: 3,
    loader_abi: 2,
    post: PostStages::Float,
    machine: 1,
};

impl Generation {
    /// The generation of a platform; `None` where its programs cannot be run.
    pub const fn of(platform: Platform) -> Option<Generation> {
        match platform {
            Platform::Npu4000 => Some(NPU4000),
            Platform::Npu5010 => Some(NPU5010),
            Platform::Npu3720 | Platform::Other(_) => None,
        }
    }
}
