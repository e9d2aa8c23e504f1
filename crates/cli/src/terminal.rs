//! Standard output and standard error: colours where they are wanted, and no panic where nobody listens.

use crate::failure::Failure;
use anstream::{AutoStream, ColorChoice};
use chipless_report::Paint;
use clap::ValueEnum;
use serde::Serialize;
use std::io::{self, Write};

/// When to colour.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Colour {
    /// Makes it the choice for everything that is written from now on.
    pub(crate) fn apply(self) {
        match self {
            Colour::Auto => ColorChoice::Auto,
            Colour::Always => ColorChoice::Always,
            Colour::Never => ColorChoice::Never,
        }
        .write_global();
    }
}

fn paint(choice: ColorChoice) -> Paint {
    Paint {
        colour: choice != ColorChoice::Never,
    }
}

/// Colours for standard output.
pub(crate) fn out() -> Paint {
    paint(AutoStream::choice(&io::stdout()))
}

/// Colours for standard error.
pub(crate) fn err() -> Paint {
    paint(AutoStream::choice(&io::stderr()))
}

/// Characters of a line: as many as the terminal has, or any number where standard output is none.
pub(crate) fn width() -> usize {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or(usize::MAX, |(width, _)| usize::from(width.0))
}

/// Writes a text to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::output(&error))
}

/// Writes a value to standard output as indented JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::misuse("standard output", error))?;
    text.push('\n');
    print(&text)
}

/// Lets a file that grows beyond what the system allows (`ulimit -f`) be an error of the write, which names the file, and not the end of the process.
pub(crate) fn survive_file_limits() {
    #[cfg(unix)]
    {
        let unread = std::sync::Arc::<std::sync::atomic::AtomicBool>::default();
        let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, unread);
    }
}

/// Writes a text to standard error; if nobody listens, nobody misses it.
pub(crate) fn complain(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
