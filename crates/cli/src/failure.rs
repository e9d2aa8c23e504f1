//! How a command ends.

use chipless_model::Finding;
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
}

impl Exit {
    /// What findings about a program that was read mean.
    pub(crate) fn of(findings: &[Finding]) -> Exit {
        let unsupported = |f: &&Finding| f.rule.code.contains("unsupported");
        findings
            .iter()
            .filter(|f| f.is_error())
            .map(|f| if unsupported(&f) { Exit::Unusable } else { Exit::Wrong })
            .max()
            .unwrap_or_default()
    }
}

/// Why a command ended before its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A text for stderr, which begins with the name of the file that it is about.
    Said(Exit, String),
    /// Whoever read the output has seen enough.
    BrokenPipe,
}

impl Failure {
    /// The command cannot do its work: `file: text`.
    pub(crate) fn unusable(file: impl std::fmt::Display, text: impl std::fmt::Display) -> Failure {
        Failure::Said(Exit::Unusable, format!("{file}: {text}\n"))
    }

    /// Standard output cannot be written.
    pub(crate) fn output(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::unusable("standard output", error),
        }
    }
}
