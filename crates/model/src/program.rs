//! The program: memories, buffers, queues, tasks, syncs and the interface to the host.

use crate::buffer::{Buffer, Memory};
use crate::element::ElementType;
use crate::finding::{Finding, Place};
use crate::id::{
    BufferId, ConfigurationId, KernelId, MemoryId, PartId, PieceId, QueueId, ResourceId, SyncId,
    TaskId,
};
use crate::kernel::Kernel;
use crate::sync::{Configuration, Signal, Sync, Wait};
use crate::text::Text;
use crate::time::Time;
use index_vec::IndexVec;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A compiled program. See the [crate docs](crate) for what it means, and [`Builder`](crate::Builder) for how to make one.
#[derive(Debug, Default)]
pub struct Program<'a> {
    /// Name of the target: `npu`, `neuron`, …
    pub target: &'static str,
    /// The program's own name for itself; empty where it has none.
    pub name: String,
    /// Where buffers live.
    pub memories: IndexVec<MemoryId, Memory>,
    /// Regions of bytes; no two overlap.
    pub buffers: IndexVec<BufferId, Buffer<'a>>,
    /// What transfers share.
    pub resources: IndexVec<ResourceId, Resource>,
    /// Counters and barriers.
    pub syncs: IndexVec<SyncId, Sync>,
    /// Uses of barriers.
    pub configurations: IndexVec<ConfigurationId, Configuration>,
    /// Engines.
    pub queues: IndexVec<QueueId, Queue>,
    /// Runs of tasks that are released together.
    pub pieces: IndexVec<PieceId, Piece>,
    /// Pieces released before the start, in this order.
    pub initial: Vec<PieceId>,
    /// Work, in the order that breaks ties.
    pub tasks: IndexVec<TaskId, Task>,
    /// Meanings of the tasks.
    pub kernels: IndexVec<KernelId, Box<dyn Kernel + 'a>>,
    /// Waits of all tasks; each has a [`Span`] of them.
    pub waits: Vec<Wait>,
    /// Signals of all tasks.
    pub signals: Vec<Signal>,
    /// Demands of all tasks.
    pub demands: Vec<Demand>,
    /// What each entry of `demands` counts as in time, for targets that count some bytes as more or fewer than they are. Empty for all
    /// other targets.
    pub counted: Vec<u64>,
    /// What the host gives and gets.
    pub interface: Interface,
    /// Whether transfers of one kind out of different memories that write the same bytes unordered are taken for one tensor cut
    /// with common rows (halos), both of which hold the same values. Only for targets whose compilers are known to do that;
    /// otherwise two such writes are a race like any other.
    pub copies_halos: bool,
    /// The use of its barrier that each entry of `waits` means, for targets whose compilers count on tasks that only consume a
    /// barrier, and signal nothing, to be done before others come that use it again, though nothing orders the two. A task
    /// then waits until this very use is lit. Empty for all other targets.
    pub meant: Vec<Option<ConfigurationId>>,
    /// Which tasks make one tensor together, where tensors are made whole before they are read; `None` where programs update
    /// tensors in place.
    pub tensors: Option<Tensors>,
    /// Keys of the figures of its machine that its times rest on, as the machine file names them; empty where the target does not say.
    pub figures: BTreeSet<String>,
    /// Tasks by the cost that they take, where the machine file has a table of costs by operation.
    pub costs: BTreeMap<String, Vec<TaskId>>,
    /// Which of them take a cost that nobody knows, as the machine file says.
    pub guessed: Vec<TaskId>,
    /// How much longer units would be busy if guessed costs that leave out bytes counted them at the rate that the machine file has beside them: for each
    /// such cost that of its busiest unit, added up.
    pub guess_lacks: Time,
    /// From when on tasks may start: what the machine takes before the first.
    pub start: Time,
    /// When the program reports that it is done; `None`: when all tasks are.
    pub completion: Option<ConfigurationId>,
    /// Names of the parts of the file that locations point into.
    pub parts: IndexVec<PartId, String>,
    /// The text that locations point into, where the file is one: their places then have lines and columns.
    pub text: Text<'a>,
    /// What the target knows to look for, besides what is proven of every program.
    pub lint: Option<Box<dyn Lint + 'a>>,
}

/// A target's own rules over a program that could be lowered: asked by who verifies it, so that others need not wait for them.
pub trait Lint: fmt::Debug + Send + std::marker::Sync {
    /// What there is to say of the program that holds the lint.
    fn check(&self, program: &Program<'_>) -> Vec<Finding>;
}

/// Which tasks belong together because they make, or take, one tensor. A byte that has been read and is then overwritten
/// belongs to another tensor from then on: a task that reads some bytes of the old and some of the new one reads remnants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tensors {
    /// Tasks that write parts of one tensor have one number.
    pub writers: IndexVec<TaskId, u32>,
    /// Tasks that read parts of one tensor have one number.
    pub readers: IndexVec<TaskId, u32>,
}

/// Something that transfers share: a link, a port, a memory's bandwidth.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// As the field names it.
    pub name: String,
    /// Bytes per second for all transfers together.
    pub capacity: f64,
    /// Bytes per second for one transfer at most.
    pub per_transfer: f64,
    /// Whether it is the bandwidth of a memory off the chip, which nothing passes that a cache in front of it holds.
    pub off_chip: bool,
}

/// A task's need of a shared resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Demand {
    /// Of what.
    pub resource: ResourceId,
    /// Bytes.
    pub bytes: u64,
}

/// An engine with its in-order list of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// As the field names it: `dma0.ddr`, `dpu2`, `Tensor`.
    pub name: String,
    /// How many pieces it works on at a time.
    pub servers: u32,
    /// In which order it takes its pieces.
    pub order: PieceOrder,
}

/// In which order a queue takes the pieces that are released to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PieceOrder {
    /// That of their release.
    #[default]
    Release,
    /// That of their numbers: a piece that is released before one with a lower number waits for it, see [`Turns`](crate::Turns).
    Number,
    /// That of their release, in each of so many lanes, as with a set of rings that as many DMA engines serve. A task is spread over all
    /// lanes: it is over when the last of them is done, and each lane raises a counter by its share. A lane takes the next piece
    /// when it is done with one, whatever the others do. One piece after the other is how the work is timed, but nothing may rely
    /// on it; only tasks that touch the same bytes in the same order have each of them in the same lane.
    Lanes(u32),
}

/// Tasks of one queue that are released together and run in order on one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which queue.
    pub queue: QueueId,
    /// First task.
    pub first: TaskId,
    /// How many tasks.
    pub count: u32,
}

impl Piece {
    /// Its tasks in order.
    pub fn tasks(&self) -> impl Iterator<Item = TaskId> + use<> {
        let first = self.first.index();
        (first..first + self.count as usize).map(TaskId::from_usize)
    }
}

/// A slice of one of the program's flat tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First entry.
    pub start: u32,
    /// Entries.
    pub len: u32,
}

impl Span {
    /// The entries of a table that this span names.
    #[inline]
    pub fn of<T>(self, table: &[T]) -> &[T] {
        &table[self.start as usize..][..self.len as usize]
    }

    /// Appends entries to a table and names them.
    pub fn push<T>(table: &mut Vec<T>, entries: impl IntoIterator<Item = T>) -> Span {
        let start = table.len() as u32;
        table.extend(entries);
        Span {
            start,
            len: table.len() as u32 - start,
        }
    }
}

/// A byte range of a part of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Location {
    /// Which part.
    pub part: PartId,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes.
    pub size: u32,
}

/// One unit of work: waits, a kernel, signals, and what it costs.
#[derive(Clone, Debug)]
pub struct Task {
    /// On which queue.
    pub queue: QueueId,
    /// Which one of the queue's tasks, counted from 0.
    pub index: u32,
    /// What it does.
    pub kernel: KernelId,
    /// Conditions, all of which must hold at its start.
    pub waits: Span,
    /// Signals, given in this order.
    pub signals: Span,
    /// Shared resources.
    pub demands: Span,
    /// Time that it takes before it competes for shared resources.
    pub fixed: Time,
    /// Where the file says so.
    pub location: Location,
    /// The compiler's name for it, where the file has one.
    pub label: Option<Box<str>>,
}

/// A tensor that the host gives or gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Another name that it goes by: a model's beside that of the program, or the other way round.
    pub alias: Option<String>,
    /// Whose bytes; row-major from the first.
    pub buffer: BufferId,
    /// Element type.
    pub element: ElementType,
    /// Dimensions, outermost first.
    pub shape: Vec<u64>,
    /// Element type that the host has it in, where that is another one: numbers of a model in binary32 that a program keeps in binary16.
    pub host_element: Option<ElementType>,
    /// The real numbers that its integers stand for, where the file says it.
    pub scale: Option<Scale>,
}

/// How integers stand for real numbers: real = (integer − zero) · step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// What one unit is worth.
    pub step: f64,
    /// The integer that stands for zero.
    pub zero: f64,
}

impl Scale {
    /// Of integers of which 0 stands for zero.
    pub const fn of(step: f64) -> Scale {
        Scale { step, zero: 0.0 }
    }

    /// The real number that an integer stands for.
    pub fn real(self, integer: f64) -> f64 {
        (integer - self.zero) * self.step
    }
}

impl Port {
    /// Bytes of the tensor; `None` beyond 2^64.
    pub fn bytes(&self) -> Option<u64> {
        self.element
            .bytes_for(self.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d))?)
    }

    /// The position of the port of this name; of this alias, where none has the name.
    pub fn position(ports: &[Port], name: &str) -> Option<usize> {
        let of_alias = || ports.iter().position(|p| p.alias.as_deref() == Some(name));
        ports.iter().position(|p| p.name == name).or_else(of_alias)
    }
}

/// The contract with the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface {
    /// What the host gives, in the program's order.
    pub inputs: Vec<Port>,
    /// What the host gets, in the program's order.
    pub outputs: Vec<Port>,
}

impl<'a> Program<'a> {
    /// The kernel of a task.
    #[inline]
    pub fn kernel(&self, task: TaskId) -> &(dyn Kernel + 'a) {
        &*self.kernels[self.tasks[task].kernel]
    }

    /// A task's conditions.
    #[inline]
    pub fn waits(&self, task: TaskId) -> &[Wait] {
        self.tasks[task].waits.of(&self.waits)
    }

    /// Its waits, each with the use of its barrier that it means where the program says so.
    #[inline]
    pub fn waits_and_uses(
        &self,
        task: TaskId,
    ) -> impl Iterator<Item = (&Wait, Option<ConfigurationId>)> {
        let first = self.tasks[task].waits.start as usize;
        let meant = move |n: usize| self.meant.get(first + n).copied().flatten();
        self.waits(task)
            .iter()
            .enumerate()
            .map(move |(n, wait)| (wait, meant(n)))
    }

    /// A task's signals.
    #[inline]
    pub fn signals(&self, task: TaskId) -> &[Signal] {
        self.tasks[task].signals.of(&self.signals)
    }

    /// A task's shared resources.
    #[inline]
    pub fn demands(&self, task: TaskId) -> &[Demand] {
        self.tasks[task].demands.of(&self.demands)
    }

    /// A task's shared resources with the bytes that count in time, where there are any.
    #[inline]
    pub fn counted_demands(&self, task: TaskId) -> impl Iterator<Item = Demand> {
        let first = self.tasks[task].demands.start as usize;
        let counted = move |(n, demand): (usize, &Demand)| Demand {
            bytes: self.counted.get(first + n).copied().unwrap_or(demand.bytes),
            ..*demand
        };
        let all = self.demands(task).iter().enumerate().map(counted);
        all.filter(|demand| demand.bytes > 0)
    }

    /// How many times its bytes a transfer counts as in time, rounded down: 1 where it counts as they are; `None` where it moves none.
    pub fn times_counted(&self, task: TaskId) -> Option<u64> {
        let moved = self.demands(task).iter().map(|demand| demand.bytes).max()?;
        let counted = self
            .counted_demands(task)
            .map(|demand| demand.bytes)
            .max()?;
        counted.checked_div(moved)
    }

    /// What people call a task: `dpu0[3]`.
    pub fn task_name(&self, task: TaskId) -> String {
        let t = &self.tasks[task];
        [&*self.queues[t.queue].name, "[", &t.index.to_string(), "]"].concat()
    }

    /// The layer of the network that a task is a part of, where its label says so.
    pub fn layer(&self, task: TaskId) -> Option<&str> {
        self.kernel(task).layer(self.tasks[task].label.as_deref()?)
    }

    /// The queue of this name. The parts of a name before a dot may be left out where that leaves one queue: `pe` for `sg00.pe`.
    pub fn queue_named(&self, name: &str) -> Option<QueueId> {
        if let Some(queue) = self.queues.position(|queue| queue.name == name) {
            return Some(queue);
        }
        let is_end = |whole: &str| {
            let rest = whole.strip_suffix(name);
            !name.is_empty() && rest.is_some_and(|rest| rest.ends_with('.'))
        };
        let mut meant = self.queues.iter_enumerated();
        let (queue, _) = meant.find(|(_, queue)| is_end(&queue.name))?;
        (!meant.any(|(_, queue)| is_end(&queue.name))).then_some(queue)
    }

    /// The task of this [name](Program::task_name), in which its queue may be named as in [`queue_named`](Program::queue_named).
    pub fn task_named(&self, name: &str) -> Option<TaskId> {
        let (queue, index) = name.strip_suffix(']')?.rsplit_once('[')?;
        let queue = self.queue_named(queue)?;
        let index: u32 = index.parse().ok()?;
        self.tasks
            .position(|t| t.queue == queue && t.index == index)
    }

    /// Where the file has a task.
    pub fn place(&self, task: TaskId) -> Place {
        let Location { part, offset, size } = self.tasks[task].location;
        let place = Place::bytes(offset, u64::from(size))
            .in_part(self.parts[part].clone())
            .at(self.task_name(task));
        match usize::try_from(offset) {
            Ok(offset) if !self.text.as_str().is_empty() => place.in_text(&self.text, offset),
            _ => place,
        }
    }
}
