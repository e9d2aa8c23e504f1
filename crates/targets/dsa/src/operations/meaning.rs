//! How an operation is executed: for one token, and for blocks of them.

use super::convert::Conversion;
use std::fmt;

/// Registers of a processing element.
pub const REGISTERS: usize = 8;

/// Results of an operation, at most.
pub const RESULTS: usize = 2;

/// What an operation computes, on words of 64 bits. An operation that is narrower sees its operands cut to its width, and its results
/// are cut as well; one that is wider (`Add_I64x4`) is applied word by word.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// A function of one operand.
    Unary(Unary),
    /// A function of two operands.
    Binary(Binary),
    /// A function of three operands.
    Ternary(Ternary),
    /// A change of type, lane by lane.
    Conversion(Conversion),
    /// Anything else: several results, registers, operands that stay, results that do not count.
    Step(Step),
}

/// A function of one word.
#[derive(Clone, Copy, Debug)]
pub struct Unary {
    /// For one token.
    pub one: fn(u64) -> u64,
    /// For each token of equally long blocks.
    pub block: fn(&[u64], &mut [u64]),
}

/// A function of two words.
#[derive(Clone, Copy, Debug)]
pub struct Binary {
    /// For one token.
    pub one: fn(u64, u64) -> u64,
    /// For each token of equally long blocks.
    pub block: fn(&[u64], &[u64], &mut [u64]),
}

/// A function of three words.
#[derive(Clone, Copy, Debug)]
pub struct Ternary {
    /// For one token.
    pub one: fn(u64, u64, u64) -> u64,
    /// For each token of equally long blocks.
    pub block: fn(&[u64], &[u64], &[u64], &mut [u64]),
}

/// A step of a small machine.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// One firing.
    pub run: fn(&mut Firing<'_>),
    /// Operands that it looks at.
    pub operands: usize,
    /// Whether it may keep operands for the next firing.
    pub holds: bool,
    /// Whether it may mark its result invalid.
    pub discards: bool,
}

/// What a [`Step`] sees and does.
#[derive(Debug)]
pub struct Firing<'f> {
    /// The operands; there are at least as many as the step looks at.
    pub operands: &'f [u64],
    /// The registers of the processing element. Register 0 is the accumulator.
    pub registers: &'f mut [u64; REGISTERS],
    /// The results.
    pub results: [u64; RESULTS],
    /// Whether the first and the second operand stay for the next firing.
    pub hold: [bool; 2],
    /// Whether the results do not count.
    pub discard: bool,
}

/// Why an operation cannot be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoMeaning {
    /// Nothing public says what it computes, or there is no such name.
    Undefined,
    /// It takes more operands than there are.
    TooFewOperands {
        /// How many it takes at least.
        expected: usize,
    },
}

impl fmt::Display for NoMeaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoMeaning::Undefined => f.write_str("no public source defines what it computes"),
            NoMeaning::TooFewOperands { expected } => {
                write!(f, "it takes at least {expected} operands")
            }
        }
    }
}

impl Meaning {
    /// Operands that it looks at; more are ignored.
    pub const fn operands(&self) -> usize {
        match self {
            Meaning::Unary(_) | Meaning::Conversion(_) => 1,
            Meaning::Binary(_) => 2,
            Meaning::Ternary(_) => 3,
            Meaning::Step(step) => step.operands,
        }
    }
}

macro_rules! unary {
    ($f:expr) => {
        $crate::operations::Meaning::Unary($crate::operations::Unary {
            one: $f,
            block: |a, out| {
                for (out, a) in out.iter_mut().zip(a) {
                    *out = ($f)(*a);
                }
            },
        })
    };
}

macro_rules! binary {
    ($f:expr) => {
        $crate::operations::Meaning::Binary($crate::operations::Binary {
            one: $f,
            block: |a, b, out| {
                for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
                    *out = ($f)(*a, *b);
                }
            },
        })
    };
}

macro_rules! ternary {
    ($f:expr) => {
        $crate::operations::Meaning::Ternary($crate::operations::Ternary {
            one: $f,
            block: |a, b, c, out| {
                for (((out, a), b), c) in out.iter_mut().zip(a).zip(b).zip(c) {
                    *out = ($f)(*a, *b, *c);
                }
            },
        })
    };
}

pub(super) use {binary, ternary, unary};
