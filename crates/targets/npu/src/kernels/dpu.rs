//! DPU workloads.

use super::{Cmx, Descriptors, Knowledge};
use crate::dpu::{Partial, Region, TileMemory, Workload};
use chipless_model::{
    Access, BufferId, Certainty, Dependence, Direction, Doubt, Fault, Kernel, Pattern, Storage,
};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

/// The accumulators of a tile's DPU, which a continued workload leaves to the next one.
pub(crate) type Accumulators = Arc<Mutex<Option<Partial>>>;

/// A DPU workload in the CMX of its tile.
#[derive(Debug)]
pub(crate) struct DpuTask<'i> {
    pub(crate) descriptors: Descriptors<'i>,
    pub(crate) cmx: Cmx,
    pub(crate) workload: Arc<Workload>,
    pub(crate) accumulators: Accumulators,
    pub(crate) tile: u8,
    pub(crate) knowledge: Knowledge<'i>,
    /// Where the DPU leaves its 32-byte profiling record, which is not executed.
    pub(crate) profile: Option<u64>,
}

impl Kernel for DpuTask<'_> {
    fn operation(&self) -> Cow<'static, str> {
        self.workload.operation()
    }

    fn details(&self) -> String {
        self.workload.details()
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.descriptors.accesses(visit);
        if let (Some(offset), Some(buffer)) = (self.profile, self.cmx.buffer(self.tile)) {
            visit(Access::write(buffer, Pattern::contiguous(offset, 32)).may());
        }
        let known = |offset, size| self.knowledge.bytes(self.tile, offset, size);
        self.workload.accesses_with(
            &known,
            &mut |Region {
                      tile,
                      pattern,
                      write,
                      may,
                      tensor,
                  }| {
                if let Some(buffer) = self.cmx.buffer(tile) {
                    let direction = if write {
                        Direction::Write
                    } else {
                        Direction::Read
                    };
                    let certainty = if may {
                        Certainty::May
                    } else {
                        Certainty::Exact
                    };
                    visit(Access {
                        buffer,
                        pattern,
                        direction,
                        certainty,
                        tensor: tensor as u8,
                    });
                }
            },
        );
    }

    fn dependence(
        &self,
        doubtful: &dyn Doubt,
        visit: &mut dyn FnMut(BufferId, Pattern),
    ) -> Dependence {
        let Some(own) = self.cmx.buffer(self.tile) else {
            return Dependence::Everything;
        };
        if self.descriptors.are_doubtful(doubtful) {
            return Dependence::Control;
        }
        let known = |offset, size| self.knowledge.bytes(self.tile, offset, size);
        self.workload.dependence(
            &known,
            &|low, high| doubtful.any(own, low..high),
            &mut |tile, start, size| {
                if let Some(buffer) = self.cmx.buffer(tile) {
                    visit(buffer, Pattern::contiguous(start, size));
                }
            },
        )
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        self.descriptors.check(storage)?;
        let mut accumulators = self
            .accumulators
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.workload.execute(
            &mut Tiles {
                storage,
                cmx: self.cmx,
            },
            &mut accumulators,
        )
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        self.workload
            .unproven()
            .map(|what| what.into_owned().into())
    }
}

struct Tiles<'s, 'b> {
    storage: &'s mut Storage<'b>,
    cmx: Cmx,
}

impl TileMemory for Tiles<'_, '_> {
    fn tile(&self, tile: u8) -> Option<&[u8]> {
        Some(self.storage.bytes(self.cmx.buffer(tile)?))
    }

    fn tile_mut(&mut self, tile: u8) -> Option<&mut [u8]> {
        Some(self.storage.bytes_mut(self.cmx.buffer(tile)?))
    }
}
