//! DPU workloads.

use super::layer_of;
use super::{Cmx, Descriptors, Knowledge};
use crate::address::CMX_REACH;
use crate::dpu::{Made, Region, TileMemory, Workload, physical};
use chipless_model::{
    Access, BufferId, Certainty, Dependence, Direction, Doubt, ElementType, Fault, Halves, Kernel,
    Pattern, Series, Storage, Swizzle, Write, Zero,
};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of the record that a DPU leaves of a workload that is profiled.
pub(crate) const PROFILE_BYTES: u64 = 32;

/// The accumulators of a tile's DPU, for workloads that a continued one hands its sums to, and for continued ones.
#[derive(Clone, Debug)]
pub(crate) struct Accumulators {
    /// Where they stand.
    pub(crate) buffer: BufferId,
    /// The workload before on this DPU, if it left its sums there.
    pub(crate) earlier: Option<Arc<Workload>>,
}

/// A DPU workload in the CMX of its tile.
#[derive(Debug)]
pub(crate) struct DpuTask<'i> {
    pub(crate) descriptors: Descriptors<'i>,
    pub(crate) cmx: Cmx,
    pub(crate) workload: Arc<Workload>,
    pub(crate) accumulators: Option<Accumulators>,
    pub(crate) tile: u8,
    pub(crate) knowledge: Knowledge<'i>,
    /// Where the DPU leaves its profiling record, which is not executed.
    pub(crate) profile: Option<u64>,
}

impl Kernel for DpuTask<'_> {
    fn operation(&self) -> Cow<'static, str> {
        self.workload.operation()
    }

    fn layer<'l>(&self, label: &'l str) -> Option<&'l str> {
        layer_of(label)
    }

    fn details(&self) -> String {
        self.workload.details()
    }

    fn arithmetic(&self) -> u64 {
        self.workload.arithmetic()
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.roles(&mut |access, _| visit(access));
    }

    fn roles(&self, visit: &mut dyn FnMut(Access, &'static str)) {
        self.tensors(&mut |access, swizzle, role| {
            physical(access.pattern, swizzle, |pattern| {
                visit(Access { pattern, ..access }, role);
            });
        });
    }

    fn swizzled_accesses(&self, visit: &mut dyn FnMut(Access, Swizzle)) {
        self.tensors(&mut |access, swizzle, _| {
            // The rows in the middle of long runs are the same bytes however they are turned.
            let Pattern { run, loops, .. } = &access.pattern;
            let is_long = *run >= 2 * Swizzle::ROW || loops.is_empty();
            if swizzle.is_off() || (!is_long && access.pattern.fits(CMX_REACH)) {
                return visit(access, swizzle);
            }
            physical(access.pattern, swizzle, |pattern| {
                visit(Access { pattern, ..access }, Swizzle::OFF);
            });
        });
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
        let accumulators = self.accumulators.as_ref();
        let earlier = accumulators.filter(|accumulators| accumulators.earlier.is_some());
        let zero = doubtful.zero().map(|zero| {
            move |bytes: Range<u64>, visit: &mut dyn FnMut(Series)| {
                zero.each_other(own, bytes, visit);
            }
        });
        let mut written: Vec<(BufferId, Pattern)> = Vec::new();
        let mut left: Vec<(BufferId, Pattern)> = Vec::new();
        let dependence = self.workload.dependence(
            &known,
            &|bytes, visit| doubtful.each(own, bytes, visit),
            &|bytes, visit| {
                if let Some(earlier) = earlier {
                    doubtful.each(earlier.buffer, bytes, visit);
                }
            },
            zero.as_ref().map(|zero| zero as _),
            &mut |tile, start, size| {
                if let Some(buffer) = self.cmx.buffer(tile) {
                    written.push((buffer, Pattern::contiguous(start, size)));
                }
            },
            &mut |start, size| {
                if let Some(accumulators) = accumulators {
                    left.push((accumulators.buffer, Pattern::contiguous(start, size)));
                }
            },
        );
        for (buffer, pattern) in written.into_iter().chain(left) {
            visit(buffer, pattern);
        }
        dependence
    }

    fn zeros(&self, zero: &dyn Zero, visit: &mut dyn FnMut(BufferId, Pattern)) {
        let accumulators = self.accumulators.as_ref();
        let adds = accumulators.is_some_and(|accumulators| accumulators.earlier.is_some());
        let Some(own) = self.cmx.buffer(self.tile).filter(|_| !adds) else {
            return;
        };
        self.workload.zeros(
            &|offset, size| self.knowledge.bytes(self.tile, offset, size),
            &|bytes, visit| zero.each_other(own, bytes, visit),
            &mut |tile, start, size| {
                if let Some(buffer) = self.cmx.buffer(tile) {
                    visit(buffer, Pattern::contiguous(start, size));
                }
            },
        );
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let made = self.made(storage)?;
        self.write(made, storage)
    }

    fn halves(&self) -> Option<&dyn Halves> {
        Some(self)
    }

    fn tensor(&self, access: &Access) -> Option<(ElementType, Vec<u64>)> {
        let is_sums = self
            .accumulators
            .as_ref()
            .is_some_and(|accumulators| accumulators.buffer == access.buffer);
        if access.tensor == Access::DESCRIPTION || is_sums {
            return None;
        }
        let is_write = access.direction == Direction::Write;
        self.workload
            .tensor(access.tensor, is_write, access.pattern.offset)
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        self.workload
            .unproven()
            .map(|what| what.into_owned().into())
    }
}

impl Halves for DpuTask<'_> {
    fn compute(&self, storage: &Storage<'_>) -> Result<Write<'_>, Fault> {
        let made = self.made(storage)?;
        Ok(Box::new(|storage| self.write(made, storage)))
    }
}

impl DpuTask<'_> {
    fn made(&self, storage: &Storage<'_>) -> Result<Made, Fault> {
        self.descriptors.check(storage)?;
        let earlier = |Accumulators { buffer, earlier }: &Accumulators| {
            let earlier = earlier.as_ref()?;
            let sums = storage
                .bytes(*buffer)
                .get(..earlier.accumulator_bytes() as usize)?;
            Some(earlier.partial(sums))
        };
        let earlier = self.accumulators.as_ref().and_then(earlier);
        let tile = |tile| Some(storage.bytes(self.cmx.buffer(tile)?));
        self.workload.compute(&tile, earlier)
    }

    fn write(&self, made: Made, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let cmx = self.cmx;
        let partial = self.workload.write(made, &mut Tiles { storage, cmx })?;
        if let (Some(accumulators), Some(partial)) = (&self.accumulators, partial) {
            partial.write(storage.bytes_mut(accumulators.buffer));
        }
        Ok(())
    }

    /// What the task touches, tensors as they are addressed.
    fn tensors(&self, visit: &mut dyn FnMut(Access, Swizzle, &'static str)) {
        self.descriptors
            .accesses(&mut |access| visit(access, Swizzle::OFF, "descriptor"));
        if let (Some(offset), Some(buffer)) = (self.profile, self.cmx.buffer(self.tile)) {
            let record = Pattern::contiguous(offset, PROFILE_BYTES);
            let access = Access::write(buffer, record).may();
            visit(access, Swizzle::OFF, "profiling record");
        }
        if let Some(Accumulators { buffer, earlier }) = &self.accumulators {
            if let Some(earlier) = earlier {
                let sums = Pattern::contiguous(0, earlier.accumulator_bytes());
                visit(Access::read(*buffer, sums), Swizzle::OFF, "partial sums");
            }
            if self.workload.is_continued() {
                let sums = Pattern::contiguous(0, self.workload.accumulator_bytes());
                visit(Access::write(*buffer, sums), Swizzle::OFF, "partial sums");
            }
        }
        let known = |offset, size| self.knowledge.bytes(self.tile, offset, size);
        self.workload.accesses_with(
            &known,
            &mut |Region {
                      tile,
                      pattern,
                      swizzle,
                      write,
                      may,
                      tensor,
                      role,
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
                    let access = Access {
                        buffer,
                        pattern,
                        direction,
                        certainty,
                        tensor: tensor as u8,
                    };
                    visit(access, swizzle, role);
                }
            },
        );
    }
}

struct Tiles<'s, 'b> {
    storage: &'s mut Storage<'b>,
    cmx: Cmx,
}

impl TileMemory for Tiles<'_, '_> {
    fn tile_mut(&mut self, tile: u8) -> Option<&mut [u8]> {
        Some(self.storage.bytes_mut(self.cmx.buffer(tile)?))
    }
}
