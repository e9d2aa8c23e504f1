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

/// Where a signal is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) point: Point,
    /// How many lanes give it together, see [`PieceOrder::Lanes`](chipless_model::PieceOrder::Lanes).
    pub(crate) lanes: i64,
    /// The last point of its thread that comes before all of it: with several lanes, not always the one before.
    pub(crate) own: u32,
}

/// A signal to a counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) task: TaskId,
    pub(crate) epoch: u32,
    /// The last point of its thread that comes before all of it, and before all that follow.
    own: u32,
    /// Sum of the amounts of this thread up to this one.
    pub(crate) sum: i64,
    /// The same without one lane.
    others: i64,
}

/// Changes in the order of their threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes(Vec<(u32, Vec<Change>)>);

impl Changes {
    pub(crate) fn push(&mut self, task: TaskId, spread: Spread, amount: i64) {
        let Spread { point, lanes, own } = spread;
        let index = self
            .0
            .iter()
            .position(|(thread, _)| *thread == point.thread)
            .unwrap_or_else(|| {
                self.0.push((point.thread, Vec::new()));
                self.0.len() - 1
            });
        let changes = &mut self.0[index].1;
        for earlier in changes.iter_mut().rev().take_while(|c| c.own > own) {
            earlier.own = own;
        }
        let (sum, others) = changes.last().map_or((0, 0), |c| (c.sum, c.others));
        // A lane's share is rounded up, so that no more than all lanes is needed.
        let share =
            amount.signum() * (amount.unsigned_abs().div_ceil(lanes.unsigned_abs())).cast_signed();
        changes.push(Change {
            task,
            epoch: point.epoch,
            own,
            sum: sum.saturating_add(amount),
            others: others.saturating_add(amount - share),
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

/// What is reached without one lane's part of a point of the thread itself: all changes before it, and what the other lanes do that
/// need not wait for it.
fn without(changes: &[Change], epoch: u32) -> i64 {
    let before = changes.partition_point(|c| c.epoch < epoch);
    let beside = changes.partition_point(|c| c.own < epoch).max(before);
    let others = |count: usize| count.checked_sub(1).map_or(0, |last| changes[last].others);
    sum_of(changes, before).saturating_add(others(beside) - others(before))
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
        let mut is_alone = false;
        if let [(_, changes)] = &mut allowed[..]
            && changes.last().is_none_or(|c| c.others == 0)
        {
            is_alone = true;
            // In a thread alone nothing after the signal that reaches the value is needed.
            let before = first_without(changes, |c| {
                base.saturating_add(c.sum.saturating_mul(sign)) < target
            });
            *changes = &changes[..changes.len().min(before + 1)];
        }
        if is_alone || most <= target {
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
            let row = |change: &Change, thread: u32| {
                let row = (known.row)(change.task);
                row.get(thread as usize).copied().unwrap_or(0)
            };
            for thread in 0..known.threads {
                let reached_without = |epoch: u32| {
                    allowed.iter().fold(base, |sum, (of, changes)| {
                        let some = if *of == thread {
                            without(changes, epoch).saturating_mul(sign)
                        } else {
                            let count = changes.partition_point(|c| row(c, thread) < epoch);
                            sum_of(changes, count)
                        };
                        sum.saturating_add(some)
                    })
                };
                let mut low = clock.get(thread as usize).copied().unwrap_or(0);
                let mut high = allowed
                    .iter()
                    .map(|(of, changes)| match &changes[changes.len() - 1] {
                        last if *of == thread => last.epoch,
                        last => row(last, thread),
                    })
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
