//! When a search ends at the latest.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// When a search ends at the latest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) at: Option<Instant>,
    pub(crate) stop: &'static AtomicBool,
}

impl Deadline {
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.at.is_some_and(|at| Instant::now() >= at)
    }
}
