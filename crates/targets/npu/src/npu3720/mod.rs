//! Programs for NPU3720 (NPU37XX, "VPU2.7", Meteor and Arrow Lake): what differs in the file, and the control structures.
//!
//! Every task is listed in its section, and the firmware brings the descriptors to the engines: programs have neither work items nor transfers
//! that fetch descriptors. A barrier count names the next use of the same physical barrier, as in mode 0 of NPU4000. Addresses of on-chip memory
//! are symbols of the runtime.
//!
//! Sources: NPU firmware headers `vpu_nnrt_api_37xx.h`, `vpu_dma_hw_37xx.h`, `vpu_nce_hw_37xx.h`, `vpu_cmx_info_37xx.h` (API 7.0.4);
//! `hpi_3720.cpp` of `npu_compiler_elf`; what programs prove stands in docs/npu-3720.md.

mod control;
mod dma;
mod map;
mod structures;

pub(crate) use control::read as control;
pub(crate) use map::{CMX_SIZE, WORKSPACE, cmx, multicast, runtime_symbol};

/// The section of barrier counts.
pub(crate) const BARRIERS: &str = ".text.BarrierConfigs";
