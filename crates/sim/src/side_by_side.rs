//! Tasks that are computed on several threads.

use chipless_model::{Fault, Program, Storage, TaskId};
use rayon::{Yield, prelude::*};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Threads that are kept awake, at most: a chip has few engines that compute at once.
const MOST_AWAKE: usize = 7;

/// How long a thread without work stays awake. Tasks take tens of microseconds, and to wake a thread takes as long.
const PATIENCE: Duration = Duration::from_millis(1);

/// Tasks that have started and not completed, of a program that was proven: none of them touches what another writes, so that their results
/// are the same whichever comes first.
#[derive(Debug, Default)]
pub(crate) struct SideBySide {
    started: Vec<TaskId>,
    /// Tasks whose effect has happened, before they complete.
    done: FxHashMap<TaskId, Result<(), Fault>>,
    threads: Awake,
}

impl SideBySide {
    /// A task has started.
    pub(crate) fn started(&mut self, program: &Program<'_>, task: TaskId) {
        if program.kernel(task).halves().is_some() {
            self.started.push(task);
        }
    }

    /// Whether the effect of a task has happened, and how that went. If not, it may happen now together with those of others.
    pub(crate) fn effect(
        &mut self,
        program: &Program<'_>,
        task: TaskId,
        storage: &mut Storage<'_>,
    ) -> Option<Result<(), Fault>> {
        if let Some(done) = self.done.remove(&task) {
            return Some(done);
        }
        let started = std::mem::take(&mut self.started);
        if started.len() < 2 {
            return None;
        }
        self.threads.stay();
        let bytes = &*storage;
        let halves = |task: &TaskId| program.kernel(*task).halves();
        let compute = |task: &TaskId| halves(task).map(|halves| halves.compute(bytes));
        let computed: Vec<_> = (started.par_iter().with_max_len(1)).map(compute).collect();
        for (task, computed) in started.into_iter().zip(computed) {
            if let Some(computed) = computed {
                storage.enter(task);
                let done = computed.and_then(|write| write(storage));
                self.done.insert(task, done);
            }
        }
        self.done.remove(&task)
    }
}

/// Threads of the pool that look for work all the time, until the run ends.
#[derive(Debug, Default)]
struct Awake {
    /// By thread, whether it does.
    looks: Arc<[AtomicBool]>,
    is_over: Arc<AtomicBool>,
    asked: Option<Instant>,
}

impl Awake {
    /// Wakes those that have gone to sleep.
    fn stay(&mut self) {
        if self.asked.is_some_and(|at| at.elapsed() < PATIENCE) {
            return;
        }
        self.asked = Some(Instant::now());
        let threads = rayon::current_num_threads();
        if self.looks.len() != threads {
            self.looks = (0..threads).map(|_| AtomicBool::new(false)).collect();
        }
        let own = rayon::current_thread_index();
        let (looks, is_over) = (Arc::clone(&self.looks), Arc::clone(&self.is_over));
        rayon::spawn_broadcast(move |thread| {
            let index = thread.index();
            if Some(index) == own
                || index > MOST_AWAKE
                || looks[index].swap(true, Ordering::Relaxed)
            {
                return;
            }
            look_for_work(&is_over);
            looks[index].store(false, Ordering::Relaxed);
        });
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn look_for_work(is_over: &AtomicBool) {
    let mut idle_since = Instant::now();
    while !is_over.load(Ordering::Relaxed) && idle_since.elapsed() < PATIENCE {
        if rayon::yield_now() == Some(Yield::Executed) {
            idle_since = Instant::now();
        } else {
            std::hint::spin_loop();
        }
    }
}
