//! The runtime's structures as they stand in a program for NPU3720.

use crate::structures::{Reference, TaskKind};
use std::mem::offset_of;
use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The root of a program (`VpuMappedInference`), 448 bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct MappedInference {
    /// API version, major in the upper 16 bits.
    pub(crate) api_version: U32,
    _padding: U32,
    _reserved: U64,
    /// Slots for descriptors, by kind, and their size.
    _storage: [U32; 8],
    /// DMA descriptors by engine.
    pub(crate) dma: [Reference; 2],
    /// DPU invariants.
    pub(crate) invariants: Reference,
    /// DPU variants.
    pub(crate) variants: Reference,
    /// SHAVE kernel ranges.
    pub(crate) ranges: Reference,
    /// SHAVE kernel invocations.
    pub(crate) invocations: Reference,
    /// Barrier counts.
    pub(crate) barriers: Reference,
    /// The SHAVE runtime.
    _shave_runtime: [U32; 14],
    _managed: Reference,
    _end: [U64; 3],
}

impl MappedInference {
    /// The reference to a list of descriptors, its name, and its offset.
    pub(crate) fn reference(
        &self,
        kind: TaskKind,
        unit: usize,
    ) -> (&Reference, &'static str, usize) {
        let [first, second] = &self.dma;
        match (kind, unit) {
            (TaskKind::DmaDdr | TaskKind::DmaCmx, 0) => {
                (first, "dma_tasks[0]", offset_of!(MappedInference, dma))
            }
            (TaskKind::DmaDdr | TaskKind::DmaCmx, _) => (
                second,
                "dma_tasks[1]",
                offset_of!(MappedInference, dma) + size_of::<Reference>(),
            ),
            (TaskKind::Invariant, _) => (
                &self.invariants,
                "invariants",
                offset_of!(MappedInference, invariants),
            ),
            (TaskKind::Variant, _) => (
                &self.variants,
                "variants",
                offset_of!(MappedInference, variants),
            ),
            (TaskKind::Range, _) => (
                &self.ranges,
                "act_kernel_ranges",
                offset_of!(MappedInference, ranges),
            ),
            (TaskKind::Invocation, _) => (
                &self.invocations,
                "act_kernel_invocations",
                offset_of!(MappedInference, invocations),
            ),
        }
    }
}

/// One use of a physical barrier (`VpuBarrierCountConfig`), 12 bytes; its index is the virtual barrier.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Barrier {
    /// The next use of the same physical barrier, or [`NO_BARRIER`](crate::structures::NO_BARRIER).
    pub(crate) next_same_id: U32,
    /// Tasks that must post it.
    pub(crate) producers: U16,
    /// Tasks that wait for it.
    pub(crate) consumers: U16,
    /// The physical barrier.
    pub(crate) real_id: u8,
    _padding: [u8; 3],
}

const _: () = {
    assert!(size_of::<MappedInference>() == 448);
    assert!(offset_of!(MappedInference, dma) == 48);
    assert!(offset_of!(MappedInference, barriers) == 288);
    assert!(size_of::<Barrier>() == 12);
};
