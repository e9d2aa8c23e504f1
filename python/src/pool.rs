//! Threads that compute. Work runs on threads of our own: their stacks are known to be large enough, whatever thread of Python calls.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Pools by process and number of threads: a process that was forked has none of its parent's threads.
static POOLS: Mutex<BTreeMap<(u32, usize), Arc<ThreadPool>>> = Mutex::new(BTreeMap::new());

/// The pool of so many threads; as many as there are processors for 0.
fn pool(threads: usize) -> PyResult<Arc<ThreadPool>> {
    let process = std::process::id();
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = pools.get(&(process, threads)) {
        return Ok(Arc::clone(pool));
    }
    // Dropping a parent's pool would wait for threads that are not there.
    for ((owner, _), pool) in std::mem::take(&mut *pools) {
        if owner == process {
            pools.insert((owner, pool.current_num_threads()), pool);
        } else {
            std::mem::forget(pool);
        }
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .stack_size(8 << 20)
        .build()
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let pool = Arc::new(pool);
    pools.insert((process, threads), Arc::clone(&pool));
    Ok(pool)
}

/// Does work on the pool, without the lock of the interpreter.
pub(crate) fn on_pool<T: Send>(
    py: Python<'_>,
    threads: usize,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let pool = pool(threads)?;
    Ok(py.detach(|| pool.install(work)))
}
