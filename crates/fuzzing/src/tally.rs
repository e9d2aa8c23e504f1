//! How many inputs a fuzzer tried, and how many of them a reader took: the others test the reader alone.

use std::sync::atomic::{AtomicU64, Ordering};

/// Executions between two lines of the tally.
const INTERVAL: u64 = 1000;

static TRIED: AtomicU64 = AtomicU64::new(0);
static PAST: AtomicU64 = AtomicU64::new(0);

/// The reader took this input.
pub(crate) fn past_the_reader() {
    PAST.fetch_add(1, Ordering::Relaxed);
}

/// Runs a body on an input of the fuzzer, and says on standard error now and then how many inputs got past the reader (a body that reads a
/// file in several ways counts each).
#[allow(clippy::print_stderr, reason = "a fuzzer talks to standard error")]
pub fn tallied(body: fn(&[u8]), bytes: &[u8]) {
    body(bytes);
    let tried = TRIED.fetch_add(1, Ordering::Relaxed) + 1;
    if tried.is_multiple_of(INTERVAL) {
        eprintln!(
            "tally: {tried} tried, {} past the reader",
            PAST.load(Ordering::Relaxed)
        );
    }
}
