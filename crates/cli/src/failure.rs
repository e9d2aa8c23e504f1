//! How a command ends.

use chipless::FailureKind;
use chipless_model::Finding;
use serde_json::Value;
use std::fmt::Display;
use std::io;

/// The exit status, as scripts see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Done, and nothing is wrong with the program.
    #[default]
    Done = 0,
    /// Something is wrong with the program: errors were found, it faulted, it hangs.
    Wrong = 1,
    /// The command could not do its work: the file cannot be read, Chipless does not support it, or the command was misused.
    Unusable = 2,
    /// The user ended it before there was an answer.
    #[cfg(feature = "full")]
    Interrupted = 130,
}

impl Exit {
    /// What findings about a program that was read mean.
    pub(crate) fn of(findings: &[Finding]) -> Exit {
        FailureKind::of(findings).map_or(Exit::Done, Exit::from)
    }
}

impl From<FailureKind> for Exit {
    fn from(kind: FailureKind) -> Exit {
        if kind.is_the_programs() {
            Exit::Wrong
        } else {
            Exit::Unusable
        }
    }
}

/// Why a command ended before its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What it was.
    Plain(Box<chipless::Failure>),
    /// What it was, and the whole story.
    Told(Box<Told>),
    /// Whoever read the output has seen enough.
    BrokenPipe,
}

/// A failure with everything that there is to say about it.
#[derive(Debug)]
pub(crate) struct Told {
    /// What it was.
    pub(crate) failure: chipless::Failure,
    /// For stderr; it begins with the name of the file that it is about.
    pub(crate) text: String,
    /// For programs, besides kind and message: `findings`, `deadlock`.
    pub(crate) details: Vec<(&'static str, Value)>,
}

impl From<Told> for Failure {
    fn from(told: Told) -> Failure {
        Failure::Told(Box::new(told))
    }
}

impl From<chipless::Failure> for Failure {
    fn from(failure: chipless::Failure) -> Failure {
        Failure::Plain(Box::new(failure))
    }
}

impl Failure {
    /// Of this kind.
    pub(crate) fn new(kind: FailureKind, file: impl Display, text: impl Display) -> Failure {
        chipless::Failure::new(kind, file, text).into()
    }

    /// A file cannot be read, or is not what the command needs.
    pub(crate) fn unreadable(file: impl Display, text: impl Display) -> Failure {
        Failure::new(FailureKind::Unreadable, file, text)
    }

    /// The command makes no sense.
    pub(crate) fn misuse(option: impl Display, text: impl Display) -> Failure {
        Failure::new(FailureKind::Misuse, option, text)
    }

    /// Something is wrong with the program.
    pub(crate) fn wrong(file: impl Display, text: impl Display) -> Failure {
        Failure::new(FailureKind::Fault, file, text)
    }

    /// Standard output cannot be written.
    pub(crate) fn output(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::misuse("standard output", error),
        }
    }

    /// What it was; nothing where nobody listens any more.
    pub(crate) fn what(&self) -> Option<&chipless::Failure> {
        match self {
            Failure::Plain(failure) => Some(failure),
            Failure::Told(told) => Some(&told.failure),
            Failure::BrokenPipe => None,
        }
    }

    /// The exit status.
    pub(crate) fn exit(&self) -> Exit {
        self.what()
            .map_or(Exit::Done, |failure| Exit::from(failure.kind))
    }

    /// What to say on stderr.
    pub(crate) fn text(&self) -> String {
        match self {
            Failure::Plain(failure) => line(failure),
            Failure::Told(told) => told.text.clone(),
            Failure::BrokenPipe => String::new(),
        }
    }

    /// What to say to programs besides kind and message.
    pub(crate) fn details(&self) -> Vec<(&'static str, Value)> {
        match self {
            Failure::Told(told) => told.details.clone(),
            Failure::Plain(_) | Failure::BrokenPipe => Vec::new(),
        }
    }
}

/// `file: text`. Names that come from files stand in it; what a terminal would obey is shown instead.
fn line(failure: &chipless::Failure) -> String {
    let mut line = String::new();
    for c in failure.to_string().chars() {
        if c.is_control() && c != '\n' {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        let failure = Failure::wrong("a.blob", "expected x,\nfound \u{1b}[2J");
        assert_eq!(
            (failure.exit(), failure.text().as_str()),
            (Exit::Wrong, "a.blob: expected x,\nfound \\u{1b}[2J\n")
        );
    }
}
