//! Which signals a wait for a counter cannot do without.
//!
//! A wait of task `w` for `value ≥ n` needs signal `x` when all other signals that can come before `w` do not reach `n`:
//!
//! ```text
//! x before w  ⇔  initial + Σ { amount(y) : y a rise, not x ≤ y, not w < y } − Σ { amount(z) : z a fall, z < w }  <  n
//! ```
//!
//! where `x ≤ y` says that `y` is `x` or comes after it. Of each thread, the signals that are needed are its first few,
//! so that the last of them is found by bisection.

use crate::clock::{Clock, Point};
use chipless_model::TaskId;

/// A signal to a counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) task: TaskId,
    pub(crate) epoch: u32,
    /// Sum of the amounts of this thread up to this one.
    pub(crate) sum: i64,
}

/// Changes in the order of their threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes(Vec<(u32, Vec<Change>)>);

impl Changes {
    pub(crate) fn push(&mut self, task: TaskId, point: Point, amount: i64) {
        let index = self.0.iter().position(|(thread, _)| *thread == point.thread).unwrap_or_else(|| {
            self.0.push((point.thread, Vec::new()));
            self.0.len() - 1
        });
        let changes = &mut self.0[index].1;
        let sum = changes.last().map_or(0, |c| c.sum).saturating_add(amount);
        changes.push(Change { task, epoch: point.epoch, sum });
    }

    /// Sum of the changes before a clock.
    pub(crate) fn before(&self, clock: &Clock) -> i64 {
        self.0.iter().fold(0, |sum, (thread, changes)| {
            let epoch = clock.get(*thread as usize).copied().unwrap_or(0);
            sum_of(changes, changes.partition_point(|c| c.epoch <= epoch)).saturating_add(sum)
        })
    }
}

/// A counter from one value that it is set to (or starts with) to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Its first value.
    pub(crate) initial: i64,
    /// What comes before the signal that set it.
    pub(crate) set: Clock,
    /// Every use of it so far, where it is set again later.
    pub(crate) uses: Clock,
    pub(crate) rises: Changes,
    pub(crate) falls: Changes,
}

fn sum_of(changes: &[Change], count: usize) -> i64 {
    count.checked_sub(1).map_or(0, |last| changes[last].sum)
}

/// What a wait finds.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    /// Of each thread, the last signal that the wait cannot do without.
    pub(crate) signals: Vec<(TaskId, Point)>,
    /// The largest value that the counter can have before the waiter starts.
    pub(crate) most: i64,
}

/// What is known of the order while a wait is looked at.
pub(crate) struct Known<'k> {
    /// Whether a task starts after a point.
    pub(crate) after: &'k dyn Fn(TaskId, Point) -> bool,
    /// Whether a task comes after the waiter has started.
    pub(crate) excluded: &'k dyn Fn(TaskId) -> bool,
}

/// The changes that a wait for `sign · value ≥ sign · target` cannot do without, where `base` is the value with
/// everything that goes the other way for certain. With `sign` −1, rises and falls change their roles.
pub(crate) fn needed(changes: &Changes, sign: i64, base: i64, target: i64, known: &Known<'_>) -> Needed {
    let (base, target) = (base.saturating_mul(sign), target.saturating_mul(sign));
    let sum_of = |changes: &[Change], count: usize| sum_of(changes, count).saturating_mul(sign);
    let allowed: Vec<(u32, &[Change])> = changes
        .0
        .iter()
        .map(|(thread, changes)| (*thread, &changes[..changes.partition_point(|c| !(known.excluded)(c.task))]))
        .filter(|(_, changes)| !changes.is_empty())
        .collect();
    let most = allowed.iter().fold(base, |sum, (_, changes)| sum.saturating_add(sum_of(changes, changes.len())));
    let mut signals = Vec::new();
    if target > base {
        for (thread, changes) in &allowed {
            let is_needed = |index: usize| {
                let x = Point { thread: *thread, epoch: changes[index].epoch };
                let others = allowed.iter().filter(|(other, _)| other != thread).fold(0i64, |sum, (_, changes)| {
                    sum.saturating_add(sum_of(changes, changes.partition_point(|y| !(known.after)(y.task, x))))
                });
                base.saturating_add(others).saturating_add(sum_of(changes, index)) < target
            };
            let (mut low, mut high) = (0, changes.len());
            while low < high {
                let middle = usize::midpoint(low, high);
                if is_needed(middle) { low = middle + 1 } else { high = middle }
            }
            if let Some(last) = low.checked_sub(1) {
                signals.push((changes[last].task, Point { thread: *thread, epoch: changes[last].epoch }));
            }
        }
    }
    Needed { signals, most: most.saturating_mul(sign) }
}
