//! Programs of files, as a device takes them.

use crate::fifos::Block;
use crate::figures::Figures;
use crate::layers::Layer;
use crate::touches::Touches;
use chipless_model::{Fault, Storage, TaskId};
use chipless_sim::{Effects, Functional, Verified};

/// A program of a file.
#[derive(Debug)]
pub struct FileProgram<'p, 'a> {
    /// The program.
    pub verified: Verified<'p, 'a>,
    /// How long it takes alone, in picoseconds.
    pub latency: u64,
    /// How long its longest task takes alone, in picoseconds.
    pub longest: u64,
    /// What its layers take alone, where it names them.
    pub layers: Vec<Layer>,
    /// Tiles that it holds; `None`: the whole device.
    pub tiles: Option<u64>,
    /// Bytes on the chip that are still needed, from each instant of its run on, in picoseconds.
    pub levels: Vec<(u64, u64)>,
    /// Bytes that it moves over each resource of its own.
    pub carried: Vec<(String, u64)>,
    /// What its tasks touch off the chip.
    pub touches: Touches,
    /// By queue, the work FIFO that its tasks are taken from, and the entries that are written to it.
    pub fifos: Vec<Option<(Block, u64)>>,
    /// The most entries that stood in each of these at a time while it ran alone.
    pub deepest: Vec<u32>,
    /// By queue, the way of its transfers to the device's memory. Where there is none, they have a memory of their own.
    pub routes: Vec<Option<Route>>,
}

/// The way of transfers to the device's memory: port → channel group → network → cache → memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Route {
    /// The number of the port.
    pub port: u8,
    /// The number of the channel group.
    pub group: u8,
    /// What a byte takes of port, group and network.
    pub load: f64,
}

impl FileProgram<'_, '_> {
    /// Bytes that are still needed when its tasks have run so long.
    pub(crate) fn state(&self, ran: u64) -> u64 {
        let after = self.levels.partition_point(|(at, _)| *at <= ran);
        self.levels[..after].last().map_or(0, |(_, bytes)| *bytes)
    }

    /// The work FIFO that would be full while it runs alone, its depth and the entries that it would have to hold.
    pub fn overflows(&self, figures: &Figures) -> Option<(Block, u64, u64)> {
        let fifos = self.fifos.iter().zip(&self.deepest);
        let mut fifos = fifos.filter_map(|(fifo, deepest)| Some((fifo.as_ref()?.0, *deepest)));
        fifos.find_map(|(block, deepest)| {
            let depth = block.depth(figures);
            (u64::from(deepest) > depth).then_some((block, depth, deepest.into()))
        })
    }

    /// The way of a task's transfer.
    pub(crate) fn route(&self, task: TaskId) -> Option<Route> {
        let queue = self.verified.program().tasks[task].queue;
        self.routes.get(queue.index()).copied().flatten()
    }
}

/// What tasks do besides taking time.
#[derive(Debug)]
pub enum Work<'a> {
    /// Nothing.
    Timing,
    /// They compute on these bytes.
    Computing(Storage<'a>),
}

impl Effects for Work<'_> {
    fn apply(&mut self, program: &chipless_model::Program<'_>, task: TaskId) -> Result<(), Fault> {
        match self {
            Work::Timing => Ok(()),
            Work::Computing(storage) => Functional::new(storage).apply(program, task),
        }
    }
}
