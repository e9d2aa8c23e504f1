//! What signals change: counters and barriers, and which servers look again for it; pieces that are released.

use super::{Backlog, Engine, NONE, Server, Stop};
use crate::effects::Effects;
use crate::outside::Outside;
use crate::stage::On;
use chipless_model::{
    Action, Barrier, BarrierFault, Condition, Configuration, ConfigurationId, Fault, Moment,
    PieceId, PieceOrder, SyncId, SyncKind, TaskId, Wait,
};

impl Engine<'_, '_> {
    /// Whether a wait holds; one that means a certain use of its barrier holds in no other.
    pub(crate) fn holds(&self, wait: &Wait, meant: Option<ConfigurationId>) -> bool {
        match wait.condition {
            Condition::Lit => self.barrier(wait.sync).is_some_and(|barrier| {
                barrier.is_lit() && (meant.is_none() || barrier.active() == meant.as_ref())
            }),
            condition => condition.is_met_by(self.values[wait.sync]),
        }
    }

    pub(crate) fn barrier(&self, sync: SyncId) -> Option<&Barrier> {
        self.barriers.get(self.barrier_of[sync] as usize)
    }

    pub(crate) fn value(&self, sync: SyncId) -> i64 {
        self.values[sync]
    }

    pub(crate) fn is_released(&self, piece: PieceId) -> bool {
        self.released[piece]
    }

    /// Gives the signals of a task that belong to this moment.
    pub(super) fn signal(
        &mut self,
        task: TaskId,
        moment: Moment,
        on: &mut On<'_, impl Effects, impl Outside>,
    ) -> Result<(), Stop> {
        let program = self.program;
        let stop = |fault: String| Stop::Fault {
            task,
            fault: Fault::program(fault),
        };
        for signal in program.signals(task).iter().filter(|s| s.moment == moment) {
            match signal.action {
                Action::Add(sync, n) => {
                    self.add(sync, n).map_err(stop)?;
                    self.wake(sync, task, on)?;
                }
                Action::Produce(sync) => {
                    self.on_barrier(sync, task, "is produced", Barrier::produce)?;
                    self.settle(sync, task, on)?;
                }
                Action::Consume(sync) => {
                    self.on_barrier(sync, task, "is consumed", Barrier::consume)?;
                    self.settle(sync, task, on)?;
                }
                Action::Configure(configuration) => {
                    let &Configuration {
                        barrier: sync,
                        producers,
                        consumers,
                        ..
                    } = &program.configurations[configuration];
                    if std::mem::replace(&mut self.configured[configuration], true) {
                        return Err(stop(format!(
                            "{} is given the same configuration twice",
                            program.syncs[sync].name
                        )));
                    }
                    self.on_barrier(sync, task, "is given", |barrier| {
                        barrier.push(configuration, producers, consumers)
                    })?;
                    self.settle(sync, task, on)?;
                }
                Action::Release(piece) => self.release(piece, Some(task), on)?,
            }
        }
        Ok(())
    }

    fn add(&mut self, sync: SyncId, n: i64) -> Result<(), String> {
        let (sync, value) = (&self.program.syncs[sync], &mut self.values[sync]);
        let SyncKind::Counter(counter) = sync.kind else {
            return Err(format!("{} is not a counter", sync.name));
        };
        let Some(after) = counter.after(*value, n) else {
            return Err(format!(
                "{} leaves its range {} to {}: its value is {value}, the signal adds {n}",
                sync.name, counter.low, counter.high
            ));
        };
        *value = after;
        Ok(())
    }

    fn on_barrier(
        &mut self,
        sync: SyncId,
        task: TaskId,
        what: &str,
        act: impl FnOnce(&mut Barrier) -> Result<(), BarrierFault>,
    ) -> Result<(), Stop> {
        let name = &self.program.syncs[sync].name;
        let stop = |fault: String| Stop::Fault {
            task,
            fault: Fault::program(fault),
        };
        let barrier = self
            .barriers
            .get_mut(self.barrier_of[sync] as usize)
            .ok_or_else(|| stop(format!("{name} {what} and is not a barrier")))?;
        act(barrier).map_err(|fault| stop(format!("{name} {what} {fault}")))
    }

    /// What follows from a change of a barrier's counts: it is lit, it retires, the program is done.
    fn settle(
        &mut self,
        sync: SyncId,
        by: TaskId,
        on: &mut On<'_, impl Effects, impl Outside>,
    ) -> Result<(), Stop> {
        let program = self.program;
        let index = self.barrier_of[sync] as usize;
        if self.barriers[index].is_lit() {
            if self.done.is_none()
                && program.completion.is_some()
                && self.barriers[index].active() == program.completion.as_ref()
            {
                self.done = Some(on.stage.now);
            }
            self.wake(sync, by, on)?;
        }
        while let Some(retired) = self.barriers[index].retire() {
            for piece in &program.configurations[retired].releases {
                self.release(*piece, Some(by), on)?;
            }
            if self.barriers[index].is_lit() {
                self.wake(sync, by, on)?;
            }
        }
        Ok(())
    }

    /// Lets every server that waits for this sync look again.
    fn wake(
        &mut self,
        sync: SyncId,
        by: TaskId,
        on: &mut On<'_, impl Effects, impl Outside>,
    ) -> Result<(), Stop> {
        let mut server = std::mem::replace(&mut self.waiters[sync], NONE);
        while server != NONE {
            let Server { task, next, .. } = self.servers[server as usize];
            self.look(server, TaskId::from_raw(task), Some(by), on)?;
            server = next;
        }
        Ok(())
    }

    pub(super) fn release(
        &mut self,
        piece: PieceId,
        by: Option<TaskId>,
        on: &mut On<'_, impl Effects, impl Outside>,
    ) -> Result<(), Stop> {
        if std::mem::replace(&mut self.released[piece], true) {
            let task = by.unwrap_or(self.program.pieces[piece].first);
            let queue = &self.program.queues[self.program.pieces[piece].queue].name;
            return Err(Stop::Fault {
                task,
                fault: Fault::program(format!("a piece of {queue} is released twice")),
            });
        }
        let queue = self.program.pieces[piece].queue;
        if self.program.queues[queue].order != PieceOrder::Number {
            return self.enqueue(piece, by, on);
        }
        self.turns.release(piece.index());
        while let Some(piece) = self.turns.take(queue.index()) {
            self.enqueue(PieceId::from_usize(piece), by, on)?;
        }
        Ok(())
    }

    fn enqueue(
        &mut self,
        piece: PieceId,
        by: Option<TaskId>,
        on: &mut On<'_, impl Effects, impl Outside>,
    ) -> Result<(), Stop> {
        let queue = self.program.pieces[piece].queue;
        let backlog = &mut self.backlogs[queue];
        match backlog.tail {
            NONE => backlog.head = piece.raw(),
            tail => self.next_piece[PieceId::from_raw(tail)] = piece.raw(),
        }
        backlog.tail = piece.raw();
        backlog.length += 1;
        let deepest = &mut self.timeline.deepest[queue];
        *deepest = backlog.length.max(*deepest);
        let Backlog { servers, count, .. } = *backlog;
        let idle = (servers..servers + count).find(|s| {
            let server = &self.servers[*s as usize];
            server.task == server.end
        });
        match idle {
            Some(server) => self.attend(server, by, on),
            None => Ok(()),
        }
    }
}
