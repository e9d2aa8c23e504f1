//! A progress bar for work that takes long, on a terminal: how much is done, how fast, and how long it will take still.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// Things done of all things.
pub(crate) struct Bar {
    noun: &'static str,
    started: Instant,
    drawn: OnceLock<ProgressBar>,
    shown: bool,
}

impl Bar {
    /// Of things of this name.
    pub(crate) fn new(noun: &'static str) -> Bar {
        Bar {
            noun,
            started: Instant::now(),
            drawn: OnceLock::new(),
            shown: io::stderr().is_terminal(),
        }
    }

    /// So many are done.
    pub(crate) fn at(&self, done: u64, total: u64) {
        if !self.shown || (self.drawn.get().is_none() && self.started.elapsed() < PATIENCE) {
            return;
        }
        let bar = self.drawn.get_or_init(|| {
            let bar = ProgressBar::new(total).with_elapsed(self.started.elapsed());
            let noun = self.noun;
            // The rate of everything so far: at the start there is no other, and that of the last moment jumps.
            let template = format!("{{bar:40}} {{pos}} of {{len}} {noun}, {{rate}}, {{left}} left");
            if let Ok(style) = ProgressStyle::with_template(&template) {
                bar.set_style(
                    style
                        .with_key(
                            "rate",
                            |state: &indicatif::ProgressState, w: &mut dyn std::fmt::Write| {
                                let _ = write!(w, "{:.0}/s", rate(state.pos(), state.elapsed()));
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
