//! What raises the semaphores of a core, and by how much.

use crate::read::{EngineRoom, Subgraph};
use crate::stream::{Instruction, Stream, UpdateMode};

/// What raises a semaphore.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Raised {
    /// By how much each transfer does; 0 where there is none.
    pub(crate) step: u64,
    /// By how much all transfers do.
    pub(crate) total: u64,
    /// Anything besides transfers of one step.
    pub(crate) otherwise: bool,
}

impl Raised {
    fn transfer(&mut self, by: u64) {
        self.otherwise |= self.step != 0 && self.step != by;
        self.step = by;
        self.total = self.total.saturating_add(by);
    }

    /// The value that whole transfers alone have reached when the semaphore has this one. A transfer raises it by one for each of its
    /// rings, whenever that one is done: what lies between two whole transfers says that all before the last one are over, no more.
    pub(crate) fn whole(&self, value: u64) -> u64 {
        match self.step {
            2.. if !self.otherwise => value - value % self.step,
            _ => value,
        }
    }
}

/// What raises each semaphore of a core.
pub(crate) fn raised(subgraphs: &[Subgraph<'_>], core: usize) -> [Raised; 256] {
    let mut raised = [Raised::default(); 256];
    for (index, subgraph) in subgraphs.iter().enumerate() {
        for room in &subgraph.engines {
            if index == core {
                stored(subgraph, room, &mut raised);
                streamed(room, &mut raised);
                continue;
            }
            let remote = room.file.dma.iter().flat_map(|e| &e.remote_semaphores);
            for semaphore in remote {
                if let Some(raised) = raised.get_mut(*semaphore as usize) {
                    raised.otherwise = true;
                }
            }
        }
    }
    raised
}

/// What the descriptors of an engine file raise.
fn stored(subgraph: &Subgraph<'_>, room: &EngineRoom<'_>, raised: &mut [Raised; 256]) {
    for entry in &room.file.dma {
        let set = entry
            .queue_name()
            .and_then(|name| subgraph.definition.queue_set(name));
        let rings = set
            .and_then(|set| subgraph.definition.queues.get_index(set))
            .map_or(1, |(_, queue)| queue.queues());
        if let Some(raised) = entry
            .semaphore
            .and_then(|semaphore| raised.get_mut(usize::try_from(semaphore).ok()?))
        {
            raised.transfer(rings);
        }
    }
}

/// What the instructions of an engine raise.
fn streamed(room: &EngineRoom<'_>, raised: &mut [Raised; 256]) {
    let Some(member) = room.instructions else {
        return;
    };
    for slot in Stream::new(member.bytes).slots {
        for events in slot.events() {
            if let UpdateMode::Semaphore(..) = events.update() {
                raised[usize::from(events.update_index)].otherwise = true;
            }
        }
        if let Instruction::Dma(dma) = slot.decode() {
            let (semaphore, increment) = dma.completion();
            raised[usize::from(semaphore)].transfer(u64::from(increment));
        }
    }
}
