//! Why something could not be done: one value for whoever prints, exits or raises.

use crate::rules;
use chipless_model::{BuildError, Class, Finding, Place};
use std::fmt::{self, Display};

/// What kept the work from being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// A file cannot be read, or is not what it should be.
    Unreadable,
    /// Something is wrong with the program: it must not run.
    Refused,
    /// Chipless lacks something that this needs.
    Unsupported,
    /// A bound of [`Limits`](chipless_model::Limits), or of the machine's memory, stands in the way.
    Limit,
    /// The program hangs.
    Deadlock,
    /// The program did something wrong while it ran.
    Fault,
    /// The request makes no sense: an option that does not fit, data of another shape.
    Misuse,
}

impl FailureKind {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            FailureKind::Unreadable => "unreadable",
            FailureKind::Refused => "refused",
            FailureKind::Unsupported => "unsupported",
            FailureKind::Limit => "limit",
            FailureKind::Deadlock => "deadlock",
            FailureKind::Fault => "fault",
            FailureKind::Misuse => "misuse",
        }
    }

    /// Whether it accuses the program, and nobody and nothing else.
    pub const fn is_the_programs(self) -> bool {
        matches!(
            self,
            FailureKind::Refused | FailureKind::Deadlock | FailureKind::Fault
        )
    }

    /// What findings about a program that was read amount to; `None` where no error is among them.
    pub fn of(findings: &[Finding]) -> Option<FailureKind> {
        let errors = || findings.iter().filter(|finding| finding.is_error());
        let has = |class| errors().any(|finding| finding.rule.class == class);
        errors().next()?;
        // What the user has declared an error is one.
        Some(if has(Class::Fault) || has(Class::Departure) {
            FailureKind::Refused
        } else if has(Class::Unsupported) {
            FailureKind::Unsupported
        } else {
            FailureKind::Limit
        })
    }
}

/// Why something could not be done.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What kept it from being done.
    pub kind: FailureKind,
    /// The file or the option that it is about; empty for the file at hand.
    pub subject: String,
    /// What was expected, and what was found.
    pub message: String,
    /// Findings that say more.
    pub findings: Vec<Finding>,
}

impl Failure {
    /// A failure of this kind: `subject: message`.
    pub fn new(kind: FailureKind, subject: impl Display, message: impl Display) -> Failure {
        Failure {
            kind,
            subject: subject.to_string(),
            message: message.to_string(),
            findings: Vec::new(),
        }
    }

    /// A file that cannot be read, or is not what it should be.
    pub fn unreadable(file: impl Display, message: impl Display) -> Failure {
        Failure::new(FailureKind::Unreadable, file, message)
    }

    /// A request that makes no sense.
    pub fn misuse(option: impl Display, message: impl Display) -> Failure {
        Failure::new(FailureKind::Misuse, option, message)
    }

    /// Something that the target of the file at hand cannot do.
    pub fn unsupported(message: impl Display) -> Failure {
        Failure::new(FailureKind::Unsupported, "", message)
    }

    /// Findings that keep the file at hand from being read.
    pub fn reading(findings: Vec<Finding>) -> Failure {
        match FailureKind::of(&findings) {
            Some(kind @ (FailureKind::Unsupported | FailureKind::Limit)) => {
                Failure::of(kind, findings)
            }
            _ => Failure::of(FailureKind::Unreadable, findings),
        }
    }

    /// Findings that keep the program of the file at hand from being made or run.
    pub fn program(findings: Vec<Finding>) -> Failure {
        let kind = FailureKind::of(&findings).unwrap_or(FailureKind::Refused);
        Failure::of(kind, findings)
    }

    fn of(kind: FailureKind, findings: Vec<Finding>) -> Failure {
        let message = match kind {
            FailureKind::Unreadable => "cannot be read",
            FailureKind::Limit => "is beyond a limit",
            FailureKind::Unsupported => "is not supported",
            _ => "cannot run: errors were found",
        };
        Failure {
            findings,
            ..Failure::new(kind, "", message)
        }
    }

    /// A program that cannot be put together.
    pub fn building(error: &BuildError) -> Failure {
        let rule = match error {
            BuildError::Limit { name: "tasks", .. } => &rules::TASKS,
            BuildError::Limit { .. } => &rules::MEMORY,
            BuildError::Malformed(_) => return Failure::new(FailureKind::Refused, "", error),
        };
        Failure::program(vec![rule.at(Place::file(), error.to_string())])
    }

    /// The same, about this file where it was about none.
    #[must_use]
    pub fn about(mut self, file: &str) -> Failure {
        if self.subject.is_empty() {
            file.clone_into(&mut self.subject);
        }
        self
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.subject.is_empty() {
            write!(f, "{}: ", self.subject)?;
        }
        f.write_str(&self.message)?;
        self.findings
            .iter()
            .try_for_each(|finding| write!(f, "\n{finding}"))
    }
}

impl std::error::Error for Failure {}
