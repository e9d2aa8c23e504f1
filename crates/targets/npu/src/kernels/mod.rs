//! What NPU4 tasks do to memory: DMA transfers, DPU workloads, SHAVE invocations.

mod constants;
mod dma;
mod dpu;
mod pieces;
mod shave;

pub(crate) use constants::{Constants, Knowledge};
pub(crate) use dma::{FETCH, FILL, REGISTER_WRITE, Source, Transfer, list, rows_from};
pub(crate) use dpu::{Accumulators, DpuTask, PROFILE_BYTES};
pub(crate) use shave::{Invocation, Work};

use crate::address;
use chipless_model::{Access, BufferId, Doubt, Fault, Pattern, Storage};

/// The layer that a label names: the compiler writes `layer?t_Operation/part`.
fn layer_of(label: &str) -> Option<&str> {
    label.rsplit_once('?').map(|(layer, _)| layer)
}

/// The bytes of a task's descriptors, where the hardware reads them: what was resolved when the program was lowered
/// must still stand there when the task runs.
#[derive(Debug)]
pub(crate) struct Descriptors<'i>(pub(crate) Vec<(BufferId, u64, &'i [u8])>);

impl Descriptors<'_> {
    pub(crate) fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        for (buffer, offset, bytes) in &self.0 {
            let pattern = Pattern::contiguous(*offset, bytes.len() as u64);
            visit(Access::read(*buffer, pattern).of(Access::DESCRIPTION));
        }
    }

    /// Whether any of the bytes is in doubt.
    pub(crate) fn are_doubtful(&self, doubtful: &dyn Doubt) -> bool {
        self.0.iter().any(|(buffer, offset, bytes)| {
            doubtful.any(*buffer, *offset..*offset + bytes.len() as u64)
        })
    }

    pub(crate) fn check(&self, storage: &Storage<'_>) -> Result<(), Fault> {
        for (buffer, offset, bytes) in &self.0 {
            let now = storage
                .bytes(*buffer)
                .get(*offset as usize..)
                .and_then(|b| b.get(..bytes.len()));
            if now != Some(*bytes) {
                let at = now
                    .and_then(|now| now.iter().zip(*bytes).position(|(a, b)| a != b))
                    .unwrap_or(0);
                return Err(Fault::program(format!(
                    "its descriptor at {offset:#x} was overwritten before it was executed: byte {at} differs from what the program fetched"
                )));
            }
        }
        Ok(())
    }
}

/// The CMX of all tiles, as one address space of buffers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cmx {
    /// By tile.
    pub(crate) buffers: [Option<BufferId>; address::TILES as usize],
    /// Bytes of each.
    pub(crate) size: u64,
}

impl Cmx {
    pub(crate) fn buffer(&self, tile: u8) -> Option<BufferId> {
        self.buffers.get(tile as usize).copied().flatten()
    }

    /// The buffer and offset of an address that names one tile.
    pub(crate) fn locate(&self, address: u64) -> Option<(BufferId, u64)> {
        let (tiles, offset) = address::cmx(address)?;
        let mut tiles = address::tiles(tiles);
        match (tiles.next(), tiles.next()) {
            (Some(tile), None) if offset < self.size => Some((self.buffer(tile)?, offset)),
            _ => None,
        }
    }
}
