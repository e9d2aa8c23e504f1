//! Signals: counters move, barriers count down and retire, pieces are released.

use super::reports::relate;
use super::{Faulted, Replay};
use crate::clock::{Clock, covers, join};
use crate::rules;
use crate::semaphore::Spread;
use chipless_model::{Action, ConfigurationId, PieceId, PieceOrder, SyncId, SyncKind, TaskId};

impl Replay<'_, '_> {
    pub(super) fn signal(
        &mut self,
        task: TaskId,
        action: Action,
        clock: &Clock,
        spread: Spread,
    ) -> Result<(), Faulted> {
        match action {
            Action::Add(sync, n) => self.add(sync, n, task, spread),
            Action::Produce(sync) | Action::Consume(sync) => {
                self.count_down(sync, task, action, clock)
            }
            Action::Configure(configuration) => self.configure(configuration, task, clock),
            Action::Release(piece) => self.release(piece, clock, Some(task)),
        }
    }

    fn add(&mut self, sync: SyncId, n: i64, task: TaskId, spread: Spread) -> Result<(), Faulted> {
        let SyncKind::Counter(counter) = self.program.syncs[sync].kind else {
            return Err(self.barrier_fault(sync, task, "adds to {}, which is a barrier"));
        };
        let before = self.values[sync];
        let Some(value) = counter.after(before, n) else {
            return Err(self.leaves_range(sync, &counter, n, task));
        };
        self.values[sync] = value;
        let history = &mut self.order.histories[sync];
        let changes = if n < 0 {
            &mut history.falls
        } else {
            &mut history.rises
        };
        changes.push(task, spread, n);
        if n < 0 && self.usage.counters[sync].contended {
            self.unproven(sync, task, "lowers it");
        }
        self.wake(sync);
        Ok(())
    }

    fn count_down(
        &mut self,
        sync: SyncId,
        task: TaskId,
        action: Action,
        clock: &Clock,
    ) -> Result<(), Faulted> {
        let produces = matches!(action, Action::Produce(_));
        let Some(barrier) = &self.barriers[sync] else {
            return Err(self.barrier_fault(sync, task, "signals {}, which is no barrier"));
        };
        if !covers(clock, &barrier.activated) {
            let pushed = barrier.pushed.1;
            let culprits = self.unordered(sync, clock);
            let configurer = pushed.filter(|_| culprits.is_empty());
            let what = if produces {
                "may signal while the previous use is active"
            } else {
                "may consume while the previous use is active"
            };
            let culprits: Vec<TaskId> = culprits.into_iter().chain(configurer).collect();
            self.reuse(sync, task, &culprits, what);
        }
        let Some(barrier) = &mut self.barriers[sync] else {
            return Ok(());
        };
        let counted = if produces {
            barrier.produce(task, clock)
        } else {
            barrier.consume(task, clock)
        };
        if let Err(fault) = counted {
            let verb = if produces { "signals" } else { "consumes" };
            return Err(self.barrier_fault(sync, task, &format!("{verb} {{}} {fault}")));
        }
        self.settle(sync, task)
    }

    fn configure(
        &mut self,
        configuration: ConfigurationId,
        task: TaskId,
        clock: &Clock,
    ) -> Result<(), Faulted> {
        let program = self.program;
        let sync = program.configurations[configuration].barrier;
        if std::mem::replace(&mut self.configured[configuration.index()], true) {
            return Err(self.barrier_fault(sync, task, "gives {} the same configuration twice"));
        }
        let Some(barrier) = &mut self.barriers[sync] else {
            return Err(self.barrier_fault(sync, task, "configures {}, which is no barrier"));
        };
        let (ordered, other) = (covers(clock, &barrier.pushed.0), barrier.pushed.1);
        let fits = barrier
            .push(configuration, task, clock, &program.configurations)
            .is_ok();
        let has_room = barrier
            .makes_room()
            .is_none_or(|retired| covers(clock, retired));
        if !ordered {
            self.findings
                .add(&rules::CONFIGURATION_ORDER, (sync.raw(), 0, 0), || {
                    let message = format!(
                        "{} configures {}, and nothing orders that with the configuration before",
                        program.task_name(task),
                        program.syncs[sync].name
                    );
                    let finding = rules::CONFIGURATION_ORDER.at(program.place(task), message);
                    relate(program, finding, other, "the configuration before")
                });
        }
        if !fits || !has_room {
            let fault = self.barrier_fault(
                sync,
                task,
                "may give {} more configurations than its FIFO holds",
            );
            if !fits {
                return Err(fault);
            }
        }
        self.settle(sync, task)
    }

    /// What follows from a change of a barrier's counts: it is lit, it retires, the program is done.
    fn settle(&mut self, sync: SyncId, by: TaskId) -> Result<(), Faulted> {
        let program = self.program;
        self.light(sync);
        while let Some(retired) = self.barriers[sync].as_mut().and_then(|b| b.retire()) {
            for task in retired.late {
                self.reuse(
                    sync,
                    task,
                    &[by],
                    "waits for it without consuming it, and may come when its use is over",
                );
            }
            let releases = &program.configurations[retired.configuration].releases;
            if !releases.is_empty() {
                let clock = self.barriers[sync]
                    .as_ref()
                    .map(|b| b.retired.clone())
                    .unwrap_or_default();
                for piece in releases {
                    self.release(*piece, &clock, Some(by))?;
                }
            }
            self.light(sync);
        }
        Ok(())
    }

    /// Wakes who waits for a barrier if it is lit.
    pub(super) fn light(&mut self, sync: SyncId) {
        let Some(barrier) = self.barriers[sync].as_ref().filter(|b| b.is_lit()) else {
            return;
        };
        if self.order.completion.is_none()
            && self.program.completion.is_some()
            && barrier.active() == self.program.completion
        {
            self.order.completion = Some(barrier.lit.clone());
        }
        self.wake(sync);
    }

    fn wake(&mut self, sync: SyncId) {
        self.ready.extend(self.waiters[sync].drain(..));
    }

    pub(super) fn release(
        &mut self,
        piece: PieceId,
        clock: &Clock,
        by: Option<TaskId>,
    ) -> Result<(), Faulted> {
        let program = self.program;
        let queue = program.pieces[piece].queue;
        let is_numbered = program.queues[queue].order == PieceOrder::Number;
        if program.pieces[piece].count == 0 && (!is_numbered || self.released[piece].is_some()) {
            return Ok(());
        }
        let place = || program.place(by.unwrap_or(program.pieces[piece].first));
        if self.released[piece].is_some() {
            self.findings
                .add(&rules::RELEASED_TWICE, (queue.raw(), 0, 0), || {
                    let first = program.task_name(program.pieces[piece].first);
                    rules::RELEASED_TWICE.at(
                        place(),
                        format!(
                            "the piece of {} that starts with {first} is released twice",
                            program.queues[queue].name
                        ),
                    )
                });
            return Err(Faulted);
        }
        self.released[piece] = Some(clock.clone());
        if !is_numbered {
            self.enqueue(piece);
            return Ok(());
        }
        self.turns.release(piece.index());
        while let Some(piece) = self.turns.take(queue.index()) {
            let piece = PieceId::from_usize(piece);
            // It comes after the release of those before it as well.
            if let Some(last) = self.last_release[queue]
                && let (Some(before), Some(clock)) =
                    (self.released[last].clone(), self.released[piece].as_mut())
            {
                join(clock, &before);
            }
            self.enqueue(piece);
        }
        Ok(())
    }

    /// A piece has been released: a server of its queue may take it.
    fn enqueue(&mut self, piece: PieceId) {
        let program = self.program;
        let queue = program.pieces[piece].queue;
        if program.pieces[piece].count == 0 {
            return;
        }
        if let Some(last) = self.last_release[queue].replace(piece)
            && let (Some(before), Some(clock)) = (&self.released[last], &self.released[piece])
            && !covers(clock, before)
        {
            self.findings
                .add(&rules::RELEASE_ORDER, (queue.raw(), 0, 0), || {
                    let (first, second) = (program.pieces[last].first, program.pieces[piece].first);
                    let message = format!(
                        "nothing orders the releases of {} and {}",
                        program.task_name(first),
                        program.task_name(second)
                    );
                    rules::RELEASE_ORDER
                        .at(program.place(second), message)
                        .with(
                            program.place(first),
                            "released before it in one legal order",
                        )
                });
        }
        self.backlogs[queue].push_back(piece);
        if let Some(server) = self
            .servers
            .iter()
            .position(|s| s.queue == queue && s.is_idle)
        {
            self.servers[server].is_idle = false;
            self.ready.push_back(server as u32);
        }
    }
}
