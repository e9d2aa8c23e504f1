//! FIFOs that work is pushed into: those of link agents, which take lists of transfers, and the work FIFOs of the NCE subsystem, from which
//! DPUs and SHAVEs take pointers.
//!
//! A FIFO belongs to the tiles that a job holds, or is shared by all jobs of the device. Its entries are worked on one after another. A push
//! to a full one waits for room, and holds up what stands behind it in its queue.

use crate::figures::Figures;
use crate::owner::JobId;
use crate::quantity::ns;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::VecDeque;

/// A kind of FIFO: of the DMA engine, or a block of the NCE subsystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Block {
    /// Of link agents.
    LinkAgent,
    /// Block 0: pointers to DPU descriptors.
    Dpu,
    /// Block 1: unused.
    Spare,
    /// Block 2: messages between SHAVEs.
    Ipc,
    /// Block 3: pointers to SHAVE workloads.
    Shave,
}

/// Blocks of the NCE subsystem, by their numbers.
pub(crate) const BLOCKS: [&str; 4] = ["dpu", "spare", "ipc", "shave"];

impl Block {
    /// All of them.
    pub(crate) const ALL: [Block; 5] = [
        Block::LinkAgent,
        Block::Dpu,
        Block::Spare,
        Block::Ipc,
        Block::Shave,
    ];

    /// As workloads and results name it.
    pub const fn name(self) -> &'static str {
        match self.number() {
            None => "link_agent",
            Some(number) => BLOCKS[number],
        }
    }

    /// Its number in the NCE subsystem.
    const fn number(self) -> Option<usize> {
        match self {
            Block::LinkAgent => None,
            Block::Dpu => Some(0),
            Block::Spare => Some(1),
            Block::Ipc => Some(2),
            Block::Shave => Some(3),
        }
    }

    /// Entries that one of its FIFOs has room for.
    pub(crate) fn depth(self, figures: &Figures) -> u64 {
        match self.number() {
            None => figures.agent_entries,
            Some(block) if figures.fifo_divided => {
                (figures.fifo_entries[block] / figures.fifo_count[block]).max(1)
            }
            Some(block) => figures.fifo_entries[block],
        }
    }

    /// FIFOs on the device.
    pub fn on_device(self, figures: &Figures) -> u64 {
        match self.number() {
            None => figures.agents_per_tile.saturating_mul(figures.tiles),
            Some(block) => figures.fifo_count[block],
        }
    }

    /// FIFOs of the tiles of a program. One on the copy engine has no tiles, and the link agents of one.
    pub fn of_tiles(self, figures: &Figures, tiles: u64) -> u64 {
        match self {
            Block::LinkAgent => tiles.max(1).saturating_mul(figures.agents_per_tile),
            _ => tiles.saturating_mul(self.on_device(figures) / figures.tiles),
        }
    }
}

/// A FIFO as a program names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FifoName {
    /// Its kind.
    pub block: Block,
    /// Which one: of the program's own tiles, or, of shared ones, of the device.
    pub number: u32,
    /// Whether jobs of other contexts push into it, too.
    pub is_shared: bool,
}

/// Who writes entries into a FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The scheduler CPU, one entry after another for all jobs.
    Cpu,
    /// A DMA of the job.
    Dma,
}

/// What the FIFOs of a kind did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FifoCounts {
    /// Entries that were written.
    pub writes: u64,
    /// Of these, those that found the FIFO full.
    pub waits: u64,
    /// Picoseconds that these waited.
    pub waited: u64,
    /// Entries that stood in one at a time, at most.
    pub deepest: u64,
}

/// What the FIFOs of a kind did, as the result has it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct FifoReport {
    /// `link_agent`, `dpu`, `spare`, `ipc` or `shave`.
    pub name: &'static str,
    /// Entries that each has room for.
    pub depth: u64,
    /// Entries that were written.
    pub writes: u64,
    /// Of these, those that found the FIFO full.
    pub waits: u64,
    /// How long these waited, all together.
    pub waited_ns: f64,
    /// Entries that stood in one at a time, at most.
    pub deepest: u64,
}

/// By kind, of those that anything was written to.
pub(crate) fn reports(counts: &[FifoCounts; 5], figures: &Figures) -> Vec<FifoReport> {
    let used = Block::ALL
        .into_iter()
        .zip(counts)
        .filter(|(_, c)| c.writes > 0);
    let report = |(block, counts): (Block, &FifoCounts)| FifoReport {
        name: block.name(),
        depth: block.depth(figures),
        writes: counts.writes,
        waits: counts.waits,
        waited_ns: ns(counts.waited as f64),
        deepest: counts.deepest,
    };
    used.map(report).collect()
}

/// An entry: whose, by which of the FIFOs that its program names, and the task and repetition that pushed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pushed {
    pub(crate) job: JobId,
    pub(crate) fifo: u32,
    pub(crate) task: u32,
    pub(crate) repetition: u64,
}

/// A push that waits for room: on which queue, since when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Push {
    pub(crate) job: JobId,
    pub(crate) fifo: u32,
    pub(crate) queue: u32,
    pub(crate) since: u64,
}

/// A FIFO under way.
#[derive(Debug, Default)]
pub(crate) struct Fifo {
    pub(crate) entries: VecDeque<Pushed>,
    pub(crate) waiting: VecDeque<Push>,
    pub(crate) is_busy: bool,
}
