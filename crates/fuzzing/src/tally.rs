//! How many inputs a fuzzer tried, and how many of them a reader took: the others test the reader alone.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Executions between two lines of the tally, at its start and later on.
const INTERVALS: [u64; 2] = [1000, 100_000];

static TRIED: AtomicU64 = AtomicU64::new(0);
static PAST: AtomicU64 = AtomicU64::new(0);
static IS_PAST: AtomicBool = AtomicBool::new(false);

/// The reader took this input.
pub(crate) fn past_the_reader() {
    IS_PAST.store(true, Ordering::Relaxed);
}

/// Runs a body on an input of the fuzzer, and says on standard error now and then how many inputs got past the reader. Returns whether this
/// one did.
#[allow(clippy::print_stderr, reason = "a fuzzer talks to standard error")]
pub fn tallied(body: fn(&[u8]), bytes: &[u8]) -> bool {
    IS_PAST.store(false, Ordering::Relaxed);
    body(bytes);
    let is_past = IS_PAST.load(Ordering::Relaxed);
    let past = PAST.fetch_add(u64::from(is_past), Ordering::Relaxed) + u64::from(is_past);
    let tried = TRIED.fetch_add(1, Ordering::Relaxed) + 1;
    if tried.is_multiple_of(INTERVALS[usize::from(tried > INTERVALS[1])]) {
        eprintln!("tally: {tried} tried, {past} past the reader");
    }
    is_past
}
