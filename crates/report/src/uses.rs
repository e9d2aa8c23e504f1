//! Which use of a barrier each wait and signal met: a program counts its barriers' uses (the NPU's virtual barriers), but
//! its tasks name only the barrier.

use chipless_model::{
    Action, Barrier, ConfigurationId, IndexVec, Moment, Program, SyncId, SyncKind, TaskId,
};
use chipless_sim::Timeline;

/// The configurations that the tasks of a run met.
pub(crate) struct Uses {
    /// In parallel to the program's signals; `None` for signals that are not given to a barrier or were not given.
    of_signal: Vec<Option<ConfigurationId>>,
}

impl Uses {
    /// Goes through the signals of a run in their order. Without a run, barriers that have a single configuration are
    /// still known.
    pub(crate) fn of(program: &Program<'_>, timeline: Option<&Timeline>) -> Uses {
        let mut uses = Uses {
            of_signal: vec![None; program.signals.len()],
        };
        match timeline {
            Some(timeline) => uses.replay(program, timeline),
            None => uses.single(program),
        }
        uses
    }

    /// The use that a signal counted in.
    pub(crate) fn signal(&self, index: usize) -> Option<ConfigurationId> {
        self.of_signal[index]
    }

    /// The use that a task waited for: the one that it consumed.
    pub(crate) fn wait(
        &self,
        program: &Program<'_>,
        task: TaskId,
        sync: SyncId,
    ) -> Option<ConfigurationId> {
        let first = program.tasks[task].signals.start as usize;
        program
            .signals(task)
            .iter()
            .position(|s| s.action == Action::Consume(sync))
            .and_then(|i| self.of_signal[first + i])
    }

    fn replay(&mut self, program: &Program<'_>, timeline: &Timeline) {
        let mut barriers: IndexVec<SyncId, Option<Barrier>> = program
            .syncs
            .iter()
            .map(|sync| match &sync.kind {
                SyncKind::Barrier { preloaded, depth } => Some(Barrier::preloaded(
                    preloaded,
                    *depth,
                    &program.configurations,
                )),
                SyncKind::Counter(_) => None,
            })
            .collect();
        // A timeline has the order of completions only: nothing is known of barriers that are signalled at the read of a task.
        for signal in program.signals.iter().filter(|s| s.moment == Moment::Read) {
            if let Some(sync) = barrier_of(program, signal.action) {
                barriers[sync] = None;
            }
        }
        for &task in &timeline.order {
            let first = program.tasks[task].signals.start as usize;
            for (i, signal) in program.signals(task).iter().enumerate() {
                let Some(barrier) =
                    barrier_of(program, signal.action).and_then(|sync| barriers[sync].as_mut())
                else {
                    continue;
                };
                // The run itself has told of faults.
                if let Action::Configure(id) = signal.action {
                    let configuration = &program.configurations[id];
                    let (producers, consumers) = (configuration.producers, configuration.consumers);
                    barrier.push(id, producers, consumers).ok();
                } else {
                    self.of_signal[first + i] = barrier.active().copied();
                    match signal.action {
                        Action::Produce(_) => barrier.produce().ok(),
                        _ => barrier.consume().ok(),
                    };
                }
                while barrier.retire().is_some() {}
            }
        }
    }

    fn single(&mut self, program: &Program<'_>) {
        let mut only: IndexVec<SyncId, (u32, Option<ConfigurationId>)> =
            program.syncs.iter().map(|_| (0, None)).collect();
        for (id, configuration) in program.configurations.iter_enumerated() {
            let (count, first) = &mut only[configuration.barrier];
            *count += 1;
            *first = (*count == 1).then_some(id);
        }
        for (signal, found) in program.signals.iter().zip(&mut self.of_signal) {
            if let Action::Produce(sync) | Action::Consume(sync) = signal.action {
                *found = only[sync].1;
            }
        }
    }
}

fn barrier_of(program: &Program<'_>, action: Action) -> Option<SyncId> {
    match action {
        Action::Produce(sync) | Action::Consume(sync) => Some(sync),
        Action::Configure(configuration) => Some(program.configurations[configuration].barrier),
        Action::Add(..) | Action::Release(_) => None,
    }
}
