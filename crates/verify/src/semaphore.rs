//! What comes before a wait for a counter, because the value cannot be reached without it.
//!
//! A wait of task `w` for `value ≥ n` needs a point `x` when all signals that can come before `w` and do not come after `x` do not
//! reach `n`:
//!
//! ```text
//! x before w  ⇔  initial + Σ { amount(y) : y a rise, not x ≤ y, not w < y } − Σ { amount(z) : z a fall, z < w }  <  n
//! ```
//!
//! where `x ≤ y` says that `y` is `x` or comes after it. `x` need not be a signal to this counter: where either of two signals would
//! do, what comes before both of them comes before the wait. In each thread the points that are needed are its first few: up to the
//! smallest one that leaves signals enough, which bisection finds, because the clocks of a thread's signals only grow.

use crate::clock::{Clock, Point, join, raise};
use chipless_model::TaskId;
use smallvec::SmallVec;

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
        let index = self
            .0
            .iter()
            .position(|(thread, _)| *thread == point.thread)
            .unwrap_or_else(|| {
                self.0.push((point.thread, Vec::new()));
                self.0.len() - 1
            });
        let changes = &mut self.0[index].1;
        let sum = changes.last().map_or(0, |c| c.sum).saturating_add(amount);
        changes.push(Change {
            task,
            epoch: point.epoch,
            sum,
        });
    }

    /// Sum of the changes before a clock.
    pub(crate) fn before(&self, clock: &Clock) -> i64 {
        self.0.iter().fold(0, |sum, (thread, changes)| {
            let epoch = clock.get(*thread as usize).copied().unwrap_or(0);
            sum_of(changes, first_without(changes, |c| c.epoch <= epoch)).saturating_add(sum)
        })
    }
}

/// Every signal to a counter.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Its first value.
    pub(crate) initial: i64,
    pub(crate) rises: Changes,
    pub(crate) falls: Changes,
}

/// The same as `partition_point`, quick where the answer is near the end, as it is while signals come in.
fn first_without(changes: &[Change], holds: impl Fn(&Change) -> bool) -> usize {
    let (mut high, mut step) = (changes.len(), 1);
    while high > 0 {
        let low = high.saturating_sub(step);
        if holds(&changes[low]) {
            return low + 1 + changes[low + 1..high].partition_point(&holds);
        }
        (high, step) = (low, step * 2);
    }
    0
}

fn sum_of(changes: &[Change], count: usize) -> i64 {
    count.checked_sub(1).map_or(0, |last| changes[last].sum)
}

/// What is known of the order while a wait is looked at.
pub(crate) struct Known<'k> {
    /// What comes before the start of a task.
    pub(crate) row: &'k dyn Fn(TaskId) -> &'k [u32],
    /// Whether a task comes after the waiter has started.
    pub(crate) excluded: &'k dyn Fn(TaskId) -> bool,
    /// Number of threads.
    pub(crate) threads: u32,
}

/// Adds to `clock` what a wait for `sign · value ≥ sign · target` cannot do without, where `base` is the value with everything that
/// goes the other way for certain. With `sign` −1, rises and falls change their roles. The answer is the largest value (with
/// `sign` −1 the smallest) that the counter can have before the waiter starts.
pub(crate) fn need(
    changes: &Changes,
    sign: i64,
    base: i64,
    target: i64,
    known: &Known<'_>,
    clock: &mut Clock,
) -> i64 {
    let (base, target) = (base.saturating_mul(sign), target.saturating_mul(sign));
    let sum_of = |changes: &[Change], count: usize| sum_of(changes, count).saturating_mul(sign);
    let mut allowed: SmallVec<[(u32, &[Change]); 4]> = changes
        .0
        .iter()
        .map(|(thread, changes)| {
            (
                *thread,
                &changes[..first_without(changes, |c| !(known.excluded)(c.task))],
            )
        })
        .filter(|(_, changes)| !changes.is_empty())
        .collect();
    let most = allowed.iter().fold(base, |sum, (_, changes)| {
        sum.saturating_add(sum_of(changes, changes.len()))
    });
    if target > base {
        if let [(_, changes)] = &mut allowed[..] {
            // In a thread alone nothing after the signal that reaches the value is needed.
            let before = first_without(changes, |c| {
                base.saturating_add(c.sum.saturating_mul(sign)) < target
            });
            *changes = &changes[..changes.len().min(before + 1)];
        }
        if allowed.len() == 1 || most <= target {
            for (thread, changes) in &allowed {
                let last = changes[changes.len() - 1];
                join(clock, (known.row)(last.task));
                raise(
                    clock,
                    Point {
                        thread: *thread,
                        epoch: last.epoch,
                    },
                );
            }
        } else {
            for thread in 0..known.threads {
                let before = |of: u32, change: &Change| {
                    if of == thread {
                        change.epoch
                    } else {
                        (known.row)(change.task)
                            .get(thread as usize)
                            .copied()
                            .unwrap_or(0)
                    }
                };
                let reached_without = |epoch: u32| {
                    allowed.iter().fold(base, |sum, (of, changes)| {
                        sum.saturating_add(sum_of(
                            changes,
                            changes.partition_point(|c| before(*of, c) < epoch),
                        ))
                    })
                };
                let mut low = clock.get(thread as usize).copied().unwrap_or(0);
                let mut high = allowed
                    .iter()
                    .map(|(of, changes)| before(*of, &changes[changes.len() - 1]))
                    .max()
                    .unwrap_or(0);
                while low < high {
                    let middle = high - (high - low) / 2;
                    if reached_without(middle) < target {
                        low = middle;
                    } else {
                        high = middle - 1;
                    }
                }
                raise(clock, Point { thread, epoch: low });
            }
        }
    }
    most.saturating_mul(sign)
}
