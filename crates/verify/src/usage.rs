//! How the tasks of a program use its syncs: what can be said before anything runs.

use chipless_model::{
    Action, Condition, Counter, IndexVec, PieceOrder, Program, QueueId, SyncId, SyncKind,
};

/// What tasks do to one counter.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that do not depend on each other"
)]
pub(crate) struct Uses {
    pub(crate) falls: bool,
    /// Whether more than one thread may wait for it or lower it.
    pub(crate) contended: bool,
    waiter: Option<QueueId>,
    riser: Option<QueueId>,
    several_rise: bool,
    /// The smallest value that somebody waits for.
    least_target: Option<i64>,
    exact: bool,
    /// Sum of all rises.
    pub(crate) rises: i64,
}

/// The uses of all syncs.
#[derive(Debug)]
pub(crate) struct Usage {
    pub(crate) counters: IndexVec<SyncId, Uses>,
    /// Whether the order of some counter depends on signals that come later.
    pub(crate) needs_rounds: bool,
}

impl Usage {
    pub(crate) fn new(program: &Program<'_>) -> Usage {
        let mut counters: IndexVec<SyncId, Uses> =
            IndexVec::from_vec(vec![Uses::default(); program.syncs.len()]);
        for (id, task) in program.tasks.iter_enumerated() {
            let queue = task.queue;
            let several = program.queues[queue].servers > 1;
            let spread = matches!(program.queues[queue].order, PieceOrder::Lanes(_));
            for wait in program.waits(id) {
                let counter = &mut counters[wait.sync];
                counter.use_by(queue, several);
                let SyncKind::Counter(Counter { high, .. }) = program.syncs[wait.sync].kind else {
                    continue;
                };
                // Nothing is above the largest value.
                counter.exact |= matches!(wait.condition, Condition::Equal(n) if n < high);
                let target = match wait.condition {
                    Condition::Equal(n) | Condition::AtLeast(n) => n,
                    Condition::Lit => continue,
                };
                counter.least_target = Some(
                    counter
                        .least_target
                        .map_or(target, |least| least.min(target)),
                );
            }
            for signal in program.signals(id) {
                match signal.action {
                    Action::Add(sync, n) if n < 0 => {
                        counters[sync].falls = true;
                        counters[sync].use_by(queue, several);
                    }
                    Action::Add(sync, n) => counters[sync].rise(queue, several || spread, n),
                    Action::Consume(_)
                    | Action::Produce(_)
                    | Action::Configure(_)
                    | Action::Release(_) => {}
                }
            }
        }
        // Who waits for the sum of all signals needs all of them, whatever their order.
        let initial = |sync: SyncId| match program.syncs[sync].kind {
            SyncKind::Counter(Counter { initial, .. }) => initial,
            SyncKind::Barrier { .. } => 0,
        };
        let needs_rounds = counters.iter_enumerated().any(|(sync, c)| {
            let needs_all = !c.falls
                && c.least_target
                    .is_none_or(|n| n >= initial(sync).saturating_add(c.rises));
            c.exact || (c.several_rise && !needs_all)
        });
        Usage {
            counters,
            needs_rounds,
        }
    }
}

impl Uses {
    fn use_by(&mut self, queue: QueueId, several: bool) {
        self.contended |= several || self.waiter.is_some_and(|other| other != queue);
        self.waiter = Some(queue);
    }

    fn rise(&mut self, queue: QueueId, several: bool, amount: i64) {
        self.several_rise |= several || self.riser.is_some_and(|other| other != queue);
        self.riser = Some(queue);
        self.rises = self.rises.saturating_add(amount);
    }
}
