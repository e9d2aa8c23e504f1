//! What happens when cores have met, in a queue of its own.

use super::builder::{Builder, NewTask};
use super::meetings::Met;
use crate::json::Error;
use chipless_model::{KernelId, Location, PieceId, QueueId, Signal, Time};
use smallvec::SmallVec;

/// What a task does, what it waits for, what it signals, how long it takes.
pub(super) type AfterTask = (KernelId, Met, SmallVec<[Signal; 3]>, Time);

/// What happens when cores have met.
pub(super) struct After {
    pub(super) piece: PieceId,
    pub(super) location: Location,
    /// One task after the other.
    pub(super) tasks: SmallVec<[AfterTask; 2]>,
}

impl After {
    pub(super) fn lower(self, queue: QueueId, builder: &mut Builder<'_>) -> Result<(), Error> {
        let count = self.tasks.len() as u32;
        let mut first = None;
        for (kernel, met, signals, fixed) in self.tasks {
            let task = builder.task(NewTask {
                queue,
                kernel,
                waits: &[met.wait()],
                signals: &signals,
                demands: &[],
                fixed,
                location: self.location,
                label: None,
            })?;
            first = first.or(Some(task));
        }
        if let Some(first) = first {
            builder.fill_piece(self.piece, first, count);
        }
        Ok(())
    }
}
