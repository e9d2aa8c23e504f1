//! What a workload asks for: contexts, streams of jobs, figures.

use crate::agents::Agent;
use crate::engine::Engine;
use crate::figures::Change;
use crate::synthetic::Synthetic;
use chipless_yaml::Span;

/// A workload file.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Name of a machine, or of a machine file, and where it stands.
    pub machine: (String, Span),
    /// Arrivals happen before it, in picoseconds; `None` where counts bound every stream.
    pub duration: Option<u64>,
    /// Of arrivals, jitter and inputs.
    pub seed: u64,
    /// Address spaces with a ring each.
    pub contexts: Vec<Context>,
    /// Where jobs come from.
    pub streams: Vec<Stream>,
    /// Other agents on the chip.
    pub agents: Vec<Agent>,
    /// Figures that replace the machine's, each with its place.
    pub set: Vec<(Change, Span)>,
    /// One simulation more for each: as it was written, what it means, and where it stands.
    pub what_if: Vec<(String, Change, Span)>,
}

/// A context: a ring and a doorbell in the address space of a process.
#[derive(Clone, Debug)]
pub struct Context {
    /// Its name.
    pub name: String,
    /// Whose address space.
    pub process: u32,
    /// Its band, from 0 (idle) to 3 (realtime).
    pub band: u8,
    /// Among the contexts of its process, from -7 to 7.
    pub priority: i8,
    /// Of a context of the normal band: of a hundred, the time that the band has while focus work would keep it from the device.
    pub percentage: Option<f64>,
    /// When it asks for its doorbell, in picoseconds; `None`: it has it from the start.
    pub granted: Option<u64>,
    /// When its doorbell is taken back; `None`: never.
    pub revoked: Option<u64>,
}

/// Where jobs come from.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its name.
    pub name: String,
    /// The index of its context.
    pub context: usize,
    /// What each job runs.
    pub program: Source,
    /// Where the program stands.
    pub span: Span,
    /// When jobs come.
    pub arrivals: Arrivals,
    /// A job that takes longer has missed it, in picoseconds.
    pub deadline: Option<u64>,
    /// The engine that the stream names.
    pub engine: Option<Engine>,
}

/// What a stream's jobs run.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file of any target, as the workload names it.
    File(String),
    /// A program that stands in the workload.
    Synthetic(Box<Synthetic>),
}

/// When jobs come. Times are in picoseconds.
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// How they come.
    pub kind: ArrivalKind,
    /// The first instant.
    pub offset: u64,
    /// At most so many jobs.
    pub count: Option<u64>,
}

/// How jobs come.
#[derive(Clone, Debug)]
pub enum ArrivalKind {
    /// At multiples of a period, each later by up to the jitter.
    Every {
        /// Between two jobs.
        period: u64,
        /// Uniform delay below this.
        jitter: u64,
    },
    /// So many a second, independently.
    Poisson(f64),
    /// So many at the start, and another one for each that is done.
    InFlight(u64),
    /// One for each done job of these streams, at its end.
    After {
        /// Their indices.
        streams: Vec<usize>,
        /// Jobs of this stream in a chain that began with a job that follows nothing; `None`: as many as the others bring.
        turns: Option<u64>,
    },
    /// At these instants, in rising order.
    At(Vec<u64>),
}
