//! What the benchmarks share.

use cpu_time::{ProcessTime, ThreadTime};
use std::time::Duration;

/// The best processor time of many runs of `body` on this thread: what the machine can do when nobody else uses it.
pub fn best(mut body: impl FnMut()) -> Duration {
    let mut run = |repeats: u32| {
        let start = ThreadTime::now();
        (0..repeats).for_each(|_| body());
        start.elapsed() / repeats
    };
    let first = run(1).max(Duration::from_nanos(1));
    // Runs of at least a quarter of a millisecond, for a quarter of a second.
    let repeats = (Duration::from_micros(250).as_nanos() / first.as_nanos()) as u32 + 1;
    let runs = (Duration::from_millis(250).as_nanos() / (first * repeats).as_nanos()).max(5);
    (0..runs).map(|_| run(repeats)).min().unwrap_or(first)
}

/// The best processor time of a few runs of `body` on all threads: for work that is spread over them.
pub fn best_of_all_threads(mut body: impl FnMut()) -> Duration {
    let once = |_| {
        let start = ProcessTime::now();
        body();
        start.elapsed()
    };
    (0..5).map(once).min().unwrap_or_default()
}
