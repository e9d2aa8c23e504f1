//! What the operations of a graph are: their figures, and what they compute.
//!
//! Two generations of names exist. The *older* one (2016 to 2021) writes the width into the name: `Add64`, `FxMul16x4`,
//! `CplxInv`. The *newer* one (2022) is a family with an element type behind it: `Add_I64`, `FMul_F32x2`, `SI8ToUI64_U64x2`.
//! 29 names are in both tables; they mean the same. Their figures are those of the older table, which measured latencies (the
//! newer one says 1 for everything); what they cost in hardware only the newer table says.
//!
//! [`lookup`] gives the figures of a name, [`meaning`] what it computes. Not every name has a meaning: coarse-grained
//! placeholders, and operations of which nothing public says what they do, are placed and timed but not executed.

#![allow(
    clippy::redundant_closure,
    clippy::redundant_closure_for_method_calls,
    clippy::unnecessary_fallible_conversions,
    clippy::useless_conversion,
    clippy::type_complexity,
    reason = "one text is read for every element type, and the functions of operations are functions of words"
)]
#![allow(
    clippy::float_cmp,
    clippy::double_comparisons,
    reason = "operations compare exactly, NaN included"
)]

mod complex;
mod convert;
mod element;
mod fixed;
mod lane;
mod legacy;
mod legacy_table;
mod meaning;
mod memory;
mod newer;
mod newer_table;
mod step;

pub use convert::{Conversion, Scalar};
pub use element::{Element, ElementKind};
pub use meaning::{Binary, Firing, Meaning, NoMeaning, REGISTERS, RESULTS, Step, Ternary, Unary};

use memory::Memory;
use std::ops::RangeInclusive;

/// Which instruction table knows a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Generation {
    /// The table of 2016 to 2021.
    Older,
    /// The table of 2022.
    Newer,
    /// Both.
    Both,
}

/// What the tables say of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Figures {
    width: u16,
    operands: u8,
    results: u8,
    latency: u8,
    throughput: u8,
}

/// What an operation takes of a Xilinx VU9P, measured by its authors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Look-up tables.
    pub tables: u32,
    /// Flip-flops.
    pub flip_flops: u32,
    /// DSP slices.
    pub slices: u32,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Which table knows it.
    pub generation: Generation,
    /// Bits of operands and results. A 64-bit operation on four 16-bit elements has 64.
    pub width: u32,
    /// Operands as its table has it. The older table is wrong for some: see [`Operation::arity`].
    pub operands: u32,
    /// Fewest operands, the control operand counted.
    fewest: u32,
    /// Most operands that it looks at.
    most: u32,
    /// Results.
    pub results: u32,
    /// Cycles from operands to result.
    pub latency: u32,
    /// Cycles from one firing to the next on the same unit.
    pub throughput: u32,
    /// What it costs in hardware, where it was measured.
    pub cost: Option<Cost>,
    /// Whether it has a [`meaning`].
    pub executable: bool,
}

impl Operation {
    /// How many operands it may be given. Operations with a meaning know it: some operands may be left out, and some figures of
    /// the older table are wrong (`Select32` takes three, not two).
    pub fn arity(&self) -> RangeInclusive<usize> {
        self.fewest as usize..=self.most.max(self.operands).max(self.fewest) as usize
    }
}

thread_local! {
    static OPERATIONS: Memory<Option<Operation>> = Memory::default();
}

/// The operation of a name, in either generation.
pub fn lookup(name: &str) -> Option<Operation> {
    memory::remembered(&OPERATIONS, name, 0, || find(name))
}

/// The same, from the tables.
fn find(name: &str) -> Option<Operation> {
    let older = legacy_table::OPERATIONS
        .binary_search_by_key(&name, |row| row.0)
        .ok()
        .map(|index| legacy_table::OPERATIONS[index].1);
    let newer = newer::figures(name);
    let (generation, figures) = match (older, newer) {
        (None, None) => return None,
        (Some(figures), None) => (Generation::Older, figures),
        (None, Some((figures, _))) => (Generation::Newer, figures),
        (Some(figures), Some(_)) => (Generation::Both, figures),
    };
    // Meanings with fewer operands than the table says are those with operands that may be left out.
    let known: Vec<usize> = (1..=4)
        .filter(|count| meaning(name, *count).is_ok())
        .collect();
    let looks_at = known
        .last()
        .and_then(|count| meaning(name, *count).ok())
        .map(|meaning| meaning.operands());
    let fewest = known
        .first()
        .map_or(u32::from(figures.operands), |count| *count as u32);
    Some(Operation {
        generation,
        width: figures.width.into(),
        operands: figures.operands.into(),
        fewest,
        most: looks_at.unwrap_or(usize::from(figures.operands)) as u32,
        results: figures.results.into(),
        latency: figures.latency.into(),
        throughput: figures.throughput.into(),
        cost: newer.and_then(|(_, cost)| cost),
        executable: looks_at.is_some(),
    })
}

thread_local! {
    static MEANINGS: Memory<Result<Meaning, NoMeaning>> = Memory::default();
}

/// What an operation computes when it is given so many operands. Control operands count: the real simulator hands them to the
/// operation as well, and programs rely on it.
pub fn meaning(name: &str, operands: usize) -> Result<Meaning, NoMeaning> {
    memory::remembered(&MEANINGS, name, operands, || find_meaning(name, operands))
}

/// The same, from the tables.
fn find_meaning(name: &str, operands: usize) -> Result<Meaning, NoMeaning> {
    let with = |count| legacy::meaning(name, count).or_else(|| newer::meaning(name));
    let meaning = with(operands).ok_or(NoMeaning::Undefined)?;
    if meaning.operands() > operands {
        return Err(NoMeaning::TooFewOperands {
            expected: meaning.operands(),
        });
    }
    Ok(meaning)
}

/// The names of all operations, the older generation first; names of both come once.
pub fn names() -> impl Iterator<Item = String> {
    let older = |name: &str| {
        legacy_table::OPERATIONS
            .binary_search_by_key(&name, |row| row.0)
            .is_ok()
    };
    let newer = newer::names().filter(move |name| !older(name));
    legacy_table::OPERATIONS
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .chain(newer)
}
