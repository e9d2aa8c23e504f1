//! Which use of a barrier each wait and signal met: a program counts its barriers' uses (the NPU's virtual barriers), but
//! its tasks name only the barrier.

use chipless_model::{
    Action, ConfigurationId, IndexVec, Moment, Program, SyncId, SyncKind, TaskId,
};
use chipless_sim::Timeline;
use std::collections::VecDeque;

/// The configurations that the tasks of a run met.
pub(crate) struct Uses {
    /// In parallel to the program's signals; `None` for signals that are not given to a barrier or were not given.
    of_signal: Vec<Option<ConfigurationId>>,
}

/// A barrier while its signals are gone through.
#[derive(Default)]
struct Barrier {
    /// Some of its signals are given at the read of a task, and a timeline has the order of completions only.
    unknown: bool,
    fifo: VecDeque<ConfigurationId>,
    /// Counts that are left of the first configuration of the FIFO.
    producers: u32,
    consumers: u32,
}

impl Barrier {
    fn activate(&mut self, program: &Program<'_>) {
        if let Some(active) = self.fifo.front() {
            (self.producers, self.consumers) = (
                program.configurations[*active].producers,
                program.configurations[*active].consumers,
            );
        }
    }

    /// A signal that counts down came; a configuration that is used up makes room for the next, unless it ends the program.
    fn settle(&mut self, program: &Program<'_>) {
        let ends = self
            .fifo
            .front()
            .is_none_or(|active| program.configurations[*active].consumers == 0);
        if self.producers == 0 && self.consumers == 0 && !ends {
            self.fifo.pop_front();
            self.activate(program);
        }
    }
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
        let mut barriers: IndexVec<SyncId, Barrier> = program
            .syncs
            .iter()
            .map(|sync| match &sync.kind {
                SyncKind::Barrier { preloaded, .. } => {
                    let mut barrier = Barrier {
                        fifo: preloaded.iter().copied().collect(),
                        ..Barrier::default()
                    };
                    barrier.activate(program);
                    barrier
                }
                SyncKind::Counter(_) => Barrier::default(),
            })
            .collect();
        for signal in program.signals.iter().filter(|s| s.moment == Moment::Read) {
            if let Some(sync) = barrier_of(program, signal.action) {
                barriers[sync] = Barrier {
                    unknown: true,
                    ..Barrier::default()
                };
            }
        }
        for &task in &timeline.order {
            let first = program.tasks[task].signals.start as usize;
            for (i, signal) in program.signals(task).iter().enumerate() {
                let Some(sync) = barrier_of(program, signal.action) else {
                    continue;
                };
                let barrier = &mut barriers[sync];
                if barrier.unknown {
                    continue;
                }
                if let Action::Configure(configuration) = signal.action {
                    barrier.fifo.push_back(configuration);
                    if barrier.fifo.len() == 1 {
                        barrier.activate(program);
                    }
                    continue;
                }
                self.of_signal[first + i] = barrier.fifo.front().copied();
                if let Action::Produce(_) = signal.action {
                    barrier.producers = barrier.producers.saturating_sub(1);
                } else {
                    barrier.consumers = barrier.consumers.saturating_sub(1);
                }
                barrier.settle(program);
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
