//! What an accelerator program is.
//!
//! Every target lowers its files to one [`Program`]; verifier, engine and reports know nothing else. This page says what
//! a program *means*; the types come after.
//!
//! # Memory
//!
//! A program owns **buffers**: regions of bytes in the **memories** of a machine. No two buffers overlap; where a file
//! lets variables share bytes, the shared region is the buffer and the variables are offsets into it. A buffer may have
//! an address or none yet. Where it has one, it lies inside its memory and is aligned as its file asks. Inputs and constants hold bytes at the start; outputs and scratch bytes are undefined until
//! written (a run reads them as zero, the verifier reports it); state buffers keep their bytes from run to run.
//!
//! # Work
//!
//! A **queue** is an engine: an in-order list of **tasks**, released **piece** by piece. A piece is a run of consecutive
//! tasks of one queue. Pieces are released before the start ([`Program::initial`]), by a task, or by a barrier that
//! retires; a queue takes its pieces in the order of their release, or of their numbers ([`PieceOrder`]). A queue with `n` servers works on `n` pieces at a
//! time, each server taking the next piece when it has finished its own; tasks of a piece run one after the other.
//!
//! A task at the head of its server starts when all its waits hold at once. Its life:
//!
//! 1. **start**: the conditions are met; the sources are taken ([`Moment::Read`] signals are given);
//! 2. its fixed time passes; then its demands are served by the shared resources, all at the same time;
//! 3. **completion**: its kernel's effect on memory happens, then its signals are given in their order, then its
//!    server goes on.
//!
//! Nothing of a task's effect is visible before completion, except for tasks that signal at the read: their effect
//! happens at the start, since a later writer may overwrite their sources from then on. In a program without races
//! nobody can tell the difference.
//!
//! A task's description may itself be data: the descriptors that a program's own transfers bring into on-chip memory.
//! They are resolved when the program is lowered; the bytes of the descriptor are one of the task's reads, and executing
//! the task checks that they are still what was resolved.
//!
//! # Synchronisation
//!
//! | kind | state | wait | signal |
//! |---|---|---|---|
//! | counter | an integer in a range | equal, at least | add; leaving the range is a fault |
//! | barrier | producer and consumer counts of the active configuration, and a FIFO of further ones | lit | produce, consume, configure |
//!
//! A **counter** is what files call a semaphore (from 0 to the largest value that its hardware holds), an event (0 or 1; adding
//! 1 to a set event is a fault) or a token (0 until a transfer has made data available, then 1).
//!
//! A **barrier** is *lit* while it has an active configuration whose producer count is zero. Producing or consuming below
//! zero, or without an active configuration, is a fault. When both counts of the active configuration are zero it
//! *retires*: first the next configuration of the FIFO becomes active, then the retired one's pieces are released.
//! A configuration with no consumers stays active once lit: it is the end of the program.
//!
//! An element stream of bounded depth `d` between two engines is a pair of counters, *filled* (from 0) and *free*
//! (from `d`): the producer waits for `free ≥ n`, subtracts `n` at the read and adds `n` to *filled* at completion; the
//! consumer does the reverse. No further kind of object is needed for it.
//!
//! # Time
//!
//! Time is an integer number of picoseconds. Events of the same instant happen in task order. A resource divides its
//! capacity equally among the transfers in flight, none getting more than its own ceiling; a task with several demands
//! completes when the last of them is served. Nothing depends on the order in which a container is walked.
//!
//! # End
//!
//! A program is done when its [completion](Program::completion) is lit, or, where it has none, when every released
//! piece has run. When nothing can move and work is left, the run is a deadlock.
//!
//! # Accesses
//!
//! A [`Kernel`] names every byte it may touch as strided [`Pattern`]s ([`access`]). An access is exact, or a bound where
//! data decides (a gather); findings say on which they rest. Hardware that rotates rows of a memory under a tensor's addresses makes one pattern of
//! many pieces: for whoever can take it as it is, a kernel gives the pattern and its [`Swizzle`].

pub mod access;
mod barrier;
mod buffer;
mod build;
mod element;
mod finding;
mod findings;
mod form;
mod id;
mod info;
mod kernel;
mod limits;
mod program;
mod random;
mod series;
mod storage;
pub mod suggest;
mod swizzle;
mod sync;
mod text;
mod time;
mod turns;

pub use access::{Access, Certainty, Direction, Loop, Pattern};
pub use barrier::{Barrier, BarrierFault};
pub use buffer::{Buffer, Memory, MemoryKind, Role};
pub use build::{BuildError, Builder, NewTask};
pub use element::{ElementType, Kind};
pub use finding::{Class, Evidence, Finding, Place, Rule, Severity};
pub use findings::{Findings, clip};
pub use id::{
    BufferId, ConfigurationId, KernelId, MemoryId, PartId, PieceId, QueueId, ResourceId, SyncId,
    TaskId,
};
pub use index_vec::IndexVec;
pub use info::{Info, Node, TensorInfo, Value};
pub use kernel::{Dependence, Doubt, Fault, Grade, Halves, Kernel, Write, Zero};
pub use limits::Limits;
pub use program::{
    Demand, Interface, Lint, Location, Piece, PieceOrder, Port, Program, Queue, Resource, Scale,
    Span, Task, Tensors,
};
pub use random::SplitMix64;
pub use series::{Series, SeriesBuilder};
pub use storage::{NoRoom, Remark, Storage, zeroed};
pub use swizzle::Swizzle;
pub use sync::{Action, Condition, Configuration, Counter, Moment, Signal, Sync, SyncKind, Wait};
pub use text::{Text, count, escape};
pub use time::Time;
pub use turns::Turns;
