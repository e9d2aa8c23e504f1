//! The threads that a command computes with.

use crate::failure::Failure;
use rayon::ThreadPoolBuilder;

/// As many threads as `--threads` says, or as there are processors. Stacks are as large as that of a main thread.
fn of(threads: Option<u16>) -> ThreadPoolBuilder {
    ThreadPoolBuilder::new()
        .num_threads(threads.map_or(0, usize::from))
        .stack_size(8 << 20)
}

fn started(pool: ThreadPoolBuilder) -> Result<(), Failure> {
    let built = pool.build_global();
    built.map_err(|error| Failure::misuse("--threads", error))
}

/// Starts the threads of a command that waits for others, an editor or several runs.
#[cfg(feature = "full")]
pub(super) fn start(threads: Option<u16>) -> Result<(), Failure> {
    started(of(threads))
}

/// Starts the threads of a command that computes itself and is one of them: work forks from it and need not wake the others each time, and
/// memory that it has used is there again.
pub(super) fn start_with_caller(threads: Option<u16>) -> Result<(), Failure> {
    started(of(threads).use_current_thread())
}
