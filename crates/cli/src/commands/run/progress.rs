//! A progress bar for work that takes long, on a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// Runs shorter than this show nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// Tasks done of all tasks.
pub(super) struct Progress {
    total: usize,
    done: usize,
    started: Instant,
    bar: Option<ProgressBar>,
    shown: bool,
}

impl Progress {
    pub(super) fn new(total: usize) -> Progress {
        Progress {
            total,
            done: 0,
            started: Instant::now(),
            bar: None,
            shown: io::stderr().is_terminal(),
        }
    }

    /// A task is done.
    pub(super) fn tick(&mut self) {
        self.done += 1;
        if self.shown && self.bar.is_none() && self.started.elapsed() > PATIENCE {
            let bar = ProgressBar::new(self.total as u64).with_elapsed(self.started.elapsed());
            if let Ok(style) =
                ProgressStyle::with_template("{bar:40} {pos} of {len} tasks, {eta} left")
            {
                bar.set_style(style);
            }
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done as u64);
        }
    }

    /// The bar makes room for the summary.
    pub(super) fn clear(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
