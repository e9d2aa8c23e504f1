//! How a command ends.

use chipless_model::Finding;
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
}

impl Exit {
    /// What findings about a program that was read mean.
    pub(crate) fn of(findings: &[Finding]) -> Exit {
        let unsupported =
            |f: &&Finding| f.rule.code.contains("unsupported") || f.rule.code.ends_with("-limit");
        findings
            .iter()
            .filter(|f| f.is_error())
            .map(|f| {
                if unsupported(&f) {
                    Exit::Unusable
                } else {
                    Exit::Wrong
                }
            })
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
    pub(crate) fn unusable(file: impl Display, text: impl Display) -> Failure {
        Failure::Said(Exit::Unusable, line(file, text))
    }

    /// Something is wrong with the program: `file: text`.
    pub(crate) fn wrong(file: impl Display, text: impl Display) -> Failure {
        Failure::Said(Exit::Wrong, line(file, text))
    }

    /// Standard output cannot be written.
    pub(crate) fn output(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::unusable("standard output", error),
        }
    }
}

/// `file: text`. Names that come from files stand in it; what a terminal would obey is shown instead.
fn line(file: impl Display, text: impl Display) -> String {
    let mut line = String::new();
    for c in format!("{file}: {text}").chars() {
        if c.is_control() && c != '\n' {
            line.extend(c.escape_default())
        } else {
            line.push(c)
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
        let Failure::Said(exit, text) = Failure::wrong("a.blob", "expected x,\nfound \u{1b}[2J")
        else {
            panic!()
        };
        assert_eq!(
            (exit, text.as_str()),
            (Exit::Wrong, "a.blob: expected x,\nfound \\u{1b}[2J\n")
        );
    }
}
