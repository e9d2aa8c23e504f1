//! Whether everything that a program names is there.

use crate::id::{ConfigurationId, PieceId, SyncId};
use crate::program::{Program, Span};
use crate::sync::{Action, Condition, SyncKind, Wait};

impl Program<'_> {
    /// Whether every id and span of the program is one of its own and names what it should; otherwise which is not. Verifier and
    /// engine rely on that. Kernels answer for the buffers of their accesses themselves.
    pub fn well_formed(&self) -> Result<(), String> {
        for buffer in &self.buffers {
            within(buffer.memory.index(), self.memories.len(), || {
                format!("the memory of buffer {}", buffer.name)
            })?;
        }
        for queue in &self.queues {
            if queue.servers == 0 {
                return Err(format!("queue {} has no server", queue.name));
            }
        }
        self.syncs_are_formed()?;
        self.tasks_are_formed()?;
        self.pieces_are_formed()?;
        let ports = self.interface.inputs.iter().chain(&self.interface.outputs);
        for port in ports {
            within(port.buffer.index(), self.buffers.len(), || {
                format!("the buffer of {}", port.name)
            })?;
        }
        let completion = self.completion.map_or(0, |c| c.index() + 1);
        within(completion, self.configurations.len() + 1, || {
            "the configuration that ends the program".to_owned()
        })
    }

    fn syncs_are_formed(&self) -> Result<(), String> {
        for (id, sync) in self.syncs.iter_enumerated() {
            match &sync.kind {
                SyncKind::Counter(counter) => {
                    if !(counter.low..=counter.high).contains(&counter.initial) {
                        return Err(format!("{} starts outside of its range", sync.name));
                    }
                }
                SyncKind::Barrier { preloaded, .. } => {
                    for used in preloaded {
                        if self.configurations.get(*used).map(|c| c.barrier) != Some(id) {
                            return Err(format!(
                                "{} holds the use of another barrier at the start",
                                sync.name
                            ));
                        }
                    }
                }
            }
        }
        for configuration in &self.configurations {
            let barrier = self.syncs.get(configuration.barrier);
            if !barrier.is_some_and(|sync| matches!(sync.kind, SyncKind::Barrier { .. })) {
                return Err(format!("use {} is of no barrier", configuration.number));
            }
            self.are_pieces(&configuration.releases)?;
        }
        Ok(())
    }

    fn are_pieces(&self, pieces: &[PieceId]) -> Result<(), String> {
        pieces.iter().try_for_each(|piece| {
            within(piece.index(), self.pieces.len(), || {
                "a piece that is released".to_owned()
            })
        })
    }

    fn tasks_are_formed(&self) -> Result<(), String> {
        let kind = |sync: SyncId| self.syncs.get(sync).map(|sync| &sync.kind);
        let is_counter = |sync| matches!(kind(sync), Some(SyncKind::Counter(_)));
        let is_barrier = |sync| matches!(kind(sync), Some(SyncKind::Barrier { .. }));
        let fits = |span: Span, table: usize| span.start as usize + span.len as usize <= table;
        for task in &self.tasks {
            let is_known = task.queue.index() < self.queues.len()
                && task.kernel.index() < self.kernels.len()
                && task.location.part.index() < self.parts.len()
                && fits(task.waits, self.waits.len())
                && fits(task.signals, self.signals.len())
                && fits(task.demands, self.demands.len());
            if !is_known {
                return Err(format!(
                    "task {} of queue {} names a queue, kernel, part, wait, signal or demand that the program does not have",
                    task.index,
                    task.queue.index()
                ));
            }
        }
        for wait in &self.waits {
            let is_right = match wait.condition {
                Condition::Lit => is_barrier(wait.sync),
                Condition::Equal(_) | Condition::AtLeast(_) => is_counter(wait.sync),
            };
            if !is_right {
                return Err(format!("{wait:?} is for a sync of another kind, or none"));
            }
        }
        let barrier_of = |used: ConfigurationId| self.configurations.get(used).map(|c| c.barrier);
        let is_meant = |(wait, meant): (&Wait, &Option<ConfigurationId>)| {
            meant.is_none_or(|used| barrier_of(used) == Some(wait.sync))
        };
        if !self.meant.is_empty()
            && (self.meant.len() != self.waits.len()
                || !self.waits.iter().zip(&self.meant).all(is_meant))
        {
            return Err("the uses that waits mean are not those of their barriers".to_owned());
        }
        if !self.counted.is_empty() && self.counted.len() != self.demands.len() {
            return Err("not every demand says what it counts as, or more do".to_owned());
        }
        for signal in &self.signals {
            let is_right = match signal.action {
                Action::Add(sync, _) => is_counter(sync),
                Action::Produce(sync) | Action::Consume(sync) => is_barrier(sync),
                Action::Configure(used) => used.index() < self.configurations.len(),
                Action::Release(piece) => piece.index() < self.pieces.len(),
            };
            if !is_right {
                return Err(format!(
                    "{:?} is for something of another kind, or nothing",
                    signal.action
                ));
            }
        }
        for demand in &self.demands {
            within(demand.resource.index(), self.resources.len(), || {
                "the resource of a demand".to_owned()
            })?;
        }
        Ok(())
    }

    fn pieces_are_formed(&self) -> Result<(), String> {
        let mut is_taken = vec![false; self.tasks.len()];
        for piece in &self.pieces {
            within(piece.queue.index(), self.queues.len(), || {
                "the queue of a piece".to_owned()
            })?;
            for task in piece.tasks() {
                let queue = self.tasks.get(task).map(|t| t.queue);
                if queue != Some(piece.queue) {
                    let name = &self.queues[piece.queue].name;
                    return Err(format!(
                        "a piece of {name} holds tasks of another queue, or none"
                    ));
                }
                if std::mem::replace(&mut is_taken[task.index()], true) {
                    return Err(format!("{} stands in two pieces", self.task_name(task)));
                }
            }
        }
        self.are_pieces(&self.initial)
    }
}

fn within(index: usize, count: usize, what: impl FnOnce() -> String) -> Result<(), String> {
    if index < count {
        Ok(())
    } else {
        Err(format!("{} does not exist", what()))
    }
}
