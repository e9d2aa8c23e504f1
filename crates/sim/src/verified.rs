//! What may be run.

use chipless_model::{Finding, Program};

/// A program that may be run: the verifier has proven it safe, or somebody takes it for good.
#[derive(Debug)]
pub struct Verified<'p, 'a> {
    program: &'p Program<'a>,
    warnings: Vec<Finding>,
    is_proven: bool,
}

impl<'p, 'a> Verified<'p, 'a> {
    /// Takes a program for good without a proof. What is wrong with it shows as a deadlock, a fault, or wrong numbers; ids that the
    /// program does not have ([`Program::well_formed`]) end with a panic.
    pub const fn assume(program: &'p Program<'a>) -> Verified<'p, 'a> {
        Verified {
            program,
            warnings: Vec::new(),
            is_proven: false,
        }
    }

    /// A program that a verifier has proven safe: among others, that every exact access lies in its buffer.
    pub const fn proven(program: &'p Program<'a>, warnings: Vec<Finding>) -> Verified<'p, 'a> {
        Verified {
            program,
            warnings,
            is_proven: true,
        }
    }

    /// Whether it was proven safe, rather than taken for good.
    pub const fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// The same, with what somebody should look at all the same.
    #[must_use]
    pub fn with_warnings(self, warnings: Vec<Finding>) -> Verified<'p, 'a> {
        Verified { warnings, ..self }
    }

    /// The program.
    pub const fn program(&self) -> &'p Program<'a> {
        self.program
    }

    /// What somebody should look at all the same.
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }
}
