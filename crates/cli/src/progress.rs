//! A progress bar for work that takes long, on a terminal: how much is done, how fast, and how long it will take still.

use crate::terminal;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// Things done of all things.
pub(crate) struct Bar {
    noun: &'static str,
    started: Instant,
    drawn: OnceLock<ProgressBar>,
    /// The second of the last line.
    told: AtomicU64,
    shown: bool,
}

impl Bar {
    /// Of things of this name.
    pub(crate) fn new(noun: &'static str) -> Bar {
        Bar {
            noun,
            started: Instant::now(),
            drawn: OnceLock::new(),
            told: AtomicU64::new(0),
            shown: io::stderr().is_terminal(),
        }
    }

    /// So many are done; `said` stands behind them.
    pub(crate) fn at(&self, done: u64, total: u64, said: &str) {
        if !self.shown {
            return self.line(done, total, said);
        }
        if self.drawn.get().is_none() && self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.drawn.get_or_init(|| {
            let bar = ProgressBar::new(total).with_elapsed(self.started.elapsed());
            let noun = self.noun;
            // The rate of everything so far: at the start there is no other, and that of the last moment jumps.
            let template =
                format!("{{bar:40}} {{pos}} of {{len}} {noun}, {{rate}}, {{left}} left  {{msg}}");
            if let Ok(style) = ProgressStyle::with_template(&template) {
                bar.set_style(
                    style
                        .with_key(
                            "rate",
                            |state: &indicatif::ProgressState, w: &mut dyn std::fmt::Write| {
                                let rate = rate(state.pos(), state.elapsed());
                                let digits = usize::from(rate < 10.0);
                                let _ = write!(w, "{rate:.digits$}/s");
                            },
                        )
                        .with_key(
                            "left",
                            |state: &indicatif::ProgressState, w: &mut dyn std::fmt::Write| {
                                let left =
                                    state.len().unwrap_or_default().saturating_sub(state.pos());
                                let rate = rate(state.pos(), state.elapsed());
                                let _ = if rate > 0.0 {
                                    write!(
                                        w,
                                        "{}",
                                        indicatif::HumanDuration(Duration::from_secs_f64(
                                            left as f64 / rate
                                        ))
                                    )
                                } else {
                                    write!(w, "?")
                                };
                            },
                        ),
                );
            }
            bar
        });
        bar.set_position(done);
        bar.set_message(said.to_owned());
    }

    /// Where there is no terminal, what is said becomes a line, at most one a second.
    fn line(&self, done: u64, total: u64, said: &str) {
        let second = self.started.elapsed().as_secs();
        let is_due = self.told.swap(second, Ordering::Relaxed) != second || done == total;
        if is_due && !said.is_empty() {
            let noun = self.noun;
            terminal::complain(&format!("{done} of {total} {noun}, {said}\n"));
        }
    }

    /// The bar makes room.
    pub(crate) fn clear(self) {
        if let Some(bar) = self.drawn.into_inner() {
            bar.finish_and_clear();
        }
    }
}

fn rate(done: u64, elapsed: Duration) -> f64 {
    done as f64 / elapsed.as_secs_f64().max(1e-9)
}
