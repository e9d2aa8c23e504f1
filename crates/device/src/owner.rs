//! Whose a transfer on the memory path is.

use chipless_model::TaskId;
use chipless_sim::InstanceId;

/// The place of a live job among those of the device.
pub(crate) type JobId = u32;

/// Whose transfer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// A task of a job, on this queue.
    Task(JobId, u32),
    /// The first entry of a job's in a FIFO that its program names, by its number.
    List(JobId, u32),
    /// A task of a program of a file.
    File(InstanceId, TaskId),
    /// The prefetch agent.
    Prefetch,
    /// Another agent on the chip.
    Agent(usize),
}
