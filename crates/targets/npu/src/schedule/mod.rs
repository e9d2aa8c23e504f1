//! Which tasks a blob runs, on which queue, in which order.
//!
//! A blob does not list its tasks: work items point to descriptors, descriptors to descriptors, most of them in CMX,
//! where the program's own DMAs put them while it runs, slots being reused; and in fully managed programs the DMAs also
//! write the barrier and FIFO registers. So the schedule is found by walking the program once without time and without
//! data: tasks run as soon as their barriers let them, and only fetches of descriptors and writes to registers are
//! followed. In a program that is free of races every legal order leads to the same schedule.
//!
//! A program that gets stuck is forced on, so that its schedule is complete and the engine can say where it hangs.

mod control;
mod fetches;
mod registers;
pub(crate) mod rules;
mod sections;
mod walk;

pub(crate) use control::{Control, Listed, VirtualBarrier, WorkItem};
pub(crate) use registers::BARRIER_DEPTH;
pub(crate) use walk::walk;

use crate::dma::Descriptor;
use chipless_model::{Finding, Place};

/// The schedule of a blob.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// Queues that have work.
    pub(crate) queues: Vec<Unit>,
    /// Work items and FIFO entries, in the order in which the program numbers or makes them.
    pub(crate) pieces: Vec<Piece>,
    /// Pieces that the firmware enqueues before the start.
    pub(crate) initial: Vec<usize>,
    /// Every task, in the order in which the walk ran them.
    pub(crate) tasks: Vec<Task>,
    /// Uses of barriers.
    pub(crate) configurations: Vec<Configuration>,
    /// Configurations that each physical barrier holds at the start.
    pub(crate) preloaded: Vec<Vec<usize>>,
    /// The configuration whose producers end the inference.
    pub(crate) last: Option<usize>,
    /// Whether the configurations of barriers are written by the program (at most four at a time) rather than by firmware.
    pub(crate) managed_by_program: bool,
    /// What is wrong.
    pub(crate) findings: Vec<Finding>,
}

/// An engine that takes work in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Unit {
    /// A DMA engine's list of transfers whose source is DDR (0) or CMX (1).
    Dma {
        /// Which engine.
        engine: u8,
        /// Which list, where there are two.
        list: Option<u8>,
    },
    /// The DPU of a tile.
    Dpu(u8),
    /// The SHAVEs of a tile: both on one list, or one of them on a list of its own.
    Shave {
        /// Tile.
        tile: u8,
        /// Which list, where there are two.
        list: Option<u8>,
    },
    /// The firmware, where it loads barriers in the order of their numbers (NPU3720).
    Firmware,
}

impl Unit {
    /// As printed; the second list of a tile's SHAVEs has an `s` at its end.
    pub(crate) fn name(self) -> String {
        match self {
            Unit::Dma { engine, list } => {
                let of = list.map(|list| if list == 0 { ".ddr" } else { ".cmx" });
                format!("dma{engine}{}", of.unwrap_or_default())
            }
            Unit::Dpu(tile) => format!("dpu{tile}"),
            Unit::Firmware => "firmware".to_owned(),
            Unit::Shave { tile, list } => {
                format!("shave{tile}{}", if list == Some(1) { "s" } else { "" })
            }
        }
    }

    /// Work items that it runs at a time: each tile has two SHAVEs, on one FIFO unless there are two lists.
    pub(crate) fn servers(self) -> u32 {
        match self {
            Unit::Shave { list: None, .. } => 2,
            _ => 1,
        }
    }
}

/// A run of tasks enqueued together.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// On which queue.
    pub(crate) queue: usize,
    /// Address of its first descriptor.
    pub(crate) start: u64,
    /// Its tasks in order, as indices into [`Schedule::tasks`].
    pub(crate) tasks: Vec<usize>,
    /// What enqueues it.
    pub(crate) place: Place,
}

/// One use of a physical barrier.
#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    /// Which physical barrier.
    pub(crate) barrier: u8,
    /// Number of the virtual barrier.
    pub(crate) number: u32,
    /// Producers.
    pub(crate) producers: u32,
    /// Consumers.
    pub(crate) consumers: u32,
    /// Pieces enqueued when it retires.
    pub(crate) releases: std::ops::Range<usize>,
    /// Where the file has it.
    pub(crate) place: Place,
}

/// Bytes of a descriptor in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slice {
    /// Section.
    pub(crate) section: usize,
    /// First byte in the section.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) size: u64,
}

/// A descriptor that a DMA brought into CMX, or that the firmware takes from its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fetched {
    /// Where it came from.
    pub(crate) from: Slice,
    /// First byte in the tile's CMX, where a DMA of the program brings it there.
    pub(crate) offset: Option<u64>,
}

/// What a task is.
#[derive(Clone, Debug)]
pub(crate) enum Description {
    /// A DMA; its descriptor stays in DDR.
    Dma {
        /// The descriptor.
        descriptor: Box<Descriptor>,
        /// Its bytes.
        bytes: Slice,
    },
    /// A DPU workload.
    Dpu {
        /// Tile.
        tile: u8,
        /// The variant's bytes.
        variant: Fetched,
        /// The invariant's bytes.
        invariant: Fetched,
    },
    /// A SHAVE invocation.
    Shave {
        /// Tile.
        tile: u8,
        /// The invocation's bytes.
        invocation: Fetched,
        /// The range's bytes.
        range: Fetched,
    },
}

/// A task of the schedule.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// What it is.
    pub(crate) description: Description,
    /// Physical barriers waited for and consumed.
    pub(crate) waits: u128,
    /// Physical barriers produced.
    pub(crate) posts: u128,
    /// Configurations that it pushes, in order.
    pub(crate) configures: Vec<usize>,
    /// Pieces that it enqueues, in order, after the configurations.
    pub(crate) releases: Vec<usize>,
    /// The configurations that it waits for, in the order of their barriers. None where the program had to be forced on.
    pub(crate) meets: Vec<Option<usize>>,
    /// The configuration of the first barrier that it posts, where there was one.
    pub(crate) produces: Option<usize>,
}

impl Task {
    /// A task that changes nothing but its barriers.
    pub(crate) fn new(description: Description, waits: u128, posts: u128) -> Task {
        Task {
            description,
            waits,
            posts,
            configures: Vec::new(),
            releases: Vec::new(),
            meets: Vec::new(),
            produces: None,
        }
    }
}

impl Description {
    /// The bytes that name the task in the file.
    pub(crate) fn bytes(&self) -> Slice {
        match self {
            Description::Dma { bytes, .. } => *bytes,
            Description::Dpu { variant, .. } => variant.from,
            Description::Shave { invocation, .. } => invocation.from,
        }
    }
}

/// Physical barriers of a mask.
pub(crate) fn barriers_of(mask: u128) -> impl Iterator<Item = u8> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let bit = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (bit < 128).then_some(bit as u8)
    })
}
