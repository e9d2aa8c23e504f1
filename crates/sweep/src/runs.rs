//! Does numbered runs on several threads, and keeps a journal of them.

use crate::journal::Journal;
use crate::row::Row;
use crate::shard::Shard;
use chipless::Failure;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Told after each run: how many are done, of how many, and the best so far where there is a best.
pub type Progress<'p> = &'p (dyn Fn(u64, u64, &str) + Sync);

/// What to do with a plan.
pub struct Request<'r> {
    /// Which runs.
    pub shard: Shard,
    /// Threads; as many as there are processors for 0.
    pub jobs: usize,
    /// Where the results will be: the journal stands beside. Without, there is none.
    pub journal: Option<&'r Path>,
    /// Forget what was done before.
    pub restart: bool,
    /// Told after each run.
    pub progress: Option<Progress<'r>>,
}

type Rows = BTreeMap<u64, Row>;

/// The runs of a shard, some of them done by an earlier process.
pub(crate) struct Runs {
    rows: Rows,
    journal: Option<Journal>,
    /// Those that are left.
    pub(crate) left: Vec<u64>,
}

impl Runs {
    /// Of so many runs, those of the request's shard; `command` and `fingerprint` say whose journal it is.
    ///
    /// # Errors
    /// A journal that cannot be written, or one of other runs.
    pub(crate) fn open(
        command: &str,
        fingerprint: &str,
        count: u64,
        request: &Request<'_>,
    ) -> Result<Runs, Failure> {
        let shard = request.shard;
        let (journal, rows) = match request.journal {
            Some(path) => {
                let head = format!("chipless {command} {fingerprint} {shard}\n");
                let (journal, rows) = Journal::open(path, &head, request.restart)?;
                (Some(journal), rows)
            }
            None => (None, Rows::new()),
        };
        let left = (0..count)
            .filter(|run| shard.has(*run) && !rows.contains_key(run))
            .collect();
        Ok(Runs {
            rows,
            journal,
            left,
        })
    }

    /// Does those that are left, `row` one of them; `best` is told every row and says what the best is so far.
    ///
    /// # Errors
    /// A journal that cannot be written, threads that cannot be started.
    pub(crate) fn finish(
        self,
        request: &Request<'_>,
        row: &(dyn Fn(u64) -> Row + Sync),
        best: &(dyn Fn(&Row) -> String + Sync),
    ) -> Result<Vec<Row>, Failure> {
        let Runs {
            rows,
            journal,
            left,
        } = self;
        for row in rows.values() {
            best(row);
        }
        let total = (rows.len() + left.len()) as u64;
        let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let state = Mutex::new((rows, journal, Ok(())));
        let worker = || {
            while !stop.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(run) = left.get(index as usize) else {
                    return;
                };
                let row = row(*run);
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                let (rows, journal, error) = &mut *state;
                if let Some(Err(failure)) = journal.as_mut().map(|journal| journal.add(&row)) {
                    *error = Err(failure);
                    stop.store(true, Ordering::Relaxed);
                }
                let best = best(&row);
                rows.insert(row.run, row);
                // Told in order: what is done never becomes less.
                if let Some(progress) = request.progress {
                    progress(rows.len() as u64, total, &best);
                }
            }
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = if request.jobs == 0 {
            processors
        } else {
            request.jobs
        };
        std::thread::scope(|scope| {
            for _ in 0..jobs.min(left.len().max(1)) {
                // Readers go as deep as a file does; the stack is that of a main thread.
                let _ = std::thread::Builder::new()
                    .stack_size(8 << 20)
                    .spawn_scoped(scope, worker);
            }
        });
        let (rows, journal, error) = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        error?;
        if (rows.len() as u64) < total {
            let text = "expected threads for the runs, found that none can be started";
            return Err(Failure::misuse("--jobs", text));
        }
        // It stays until the results are written.
        journal.map_or(Ok(()), Journal::close)?;
        Ok(rows.into_values().collect())
    }
}

/// What the rows of a plan depend on: its parts, and this version of Chipless.
pub(crate) fn fingerprint<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> String {
    let mut hash = Sha256::new();
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    for part in std::iter::once(version).chain(parts) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let digest = hash.finalize();
    let hexadecimal = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
    hexadecimal.collect()
}
