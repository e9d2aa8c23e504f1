//! What must be over before something else may start, where the file says it without semaphores: pinned data is moved
//! before anything runs, and the subgraphs of Inferentia 1 run one after the other.

use super::builder::Builder;
use chipless_model::{Action, Condition, Counter, IndexVec, QueueId, Signal, TaskId, Wait};

/// The phase of each queue: 0 for pinned data, then 1 and, for serial subgraphs, one more for each.
#[derive(Default)]
pub(super) struct Phases(Vec<(QueueId, usize)>);

impl Phases {
    /// Everything in this queue belongs to this phase.
    pub(super) fn put(&mut self, queue: QueueId, phase: usize) {
        if !self.0.contains(&(queue, phase)) {
            self.0.push((queue, phase));
        }
    }

    /// Lets every phase wait for the one before it: the last task of each queue signals, the first one waits.
    pub(super) fn order(mut self, builder: &mut Builder<'_>) {
        self.0.sort_by_key(|(_, phase)| *phase);
        let mut ends: IndexVec<QueueId, Option<(TaskId, TaskId)>> =
            builder.program.queues.iter().map(|_| None).collect();
        for (task, t) in builder.program.tasks.iter_enumerated() {
            ends[t.queue].get_or_insert((task, task)).1 = task;
        }
        let mut before = None;
        for queues in self.0.chunk_by(|a, b| a.1 == b.1) {
            let tasks: Vec<(TaskId, TaskId)> = queues
                .iter()
                .filter_map(|(queue, _)| ends[*queue])
                .collect();
            if tasks.is_empty() {
                continue;
            }
            if let Some((sync, count)) = before {
                for (first, _) in &tasks {
                    builder.add_wait(
                        *first,
                        Wait {
                            sync,
                            condition: Condition::AtLeast(count),
                        },
                    );
                }
            }
            let is_last = queues.last() == self.0.last();
            if !is_last {
                let kind = Counter::up_to(tasks.len() as i64);
                let sync = builder.counter(format!("end of phase {}", queues[0].1), kind);
                for (_, last) in &tasks {
                    builder.add_signal(*last, Signal::on_completion(Action::Add(sync, 1)));
                }
                before = Some((sync, tasks.len() as i64));
            }
        }
    }
}
