//! Who gets a place, and who must give one up.

mod hardware;
mod turns;

use crate::figures::{Figures, PolicyName};
use hardware::Hardware;

/// The first waiting job of a context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) context: usize,
    pub(crate) process: u32,
    pub(crate) band: u8,
    pub(crate) priority: i8,
    pub(crate) need: Place,
    /// Numbers jobs in the order in which they came to the scheduler.
    pub(crate) number: u64,
}

/// A job that holds a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder {
    pub(crate) context: usize,
    pub(crate) process: u32,
    pub(crate) band: u8,
    pub(crate) priority: i8,
    pub(crate) holds: Place,
    /// Numbers placements.
    pub(crate) placed: u64,
    /// Whether it is giving up its place.
    pub(crate) is_leaving: bool,
}

/// Room on an engine: places and tiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) slots: u64,
    pub(crate) tiles: u64,
}

impl Place {
    fn fits(self, room: Place) -> bool {
        self.slots <= room.slots && self.tiles <= room.tiles
    }

    pub(crate) fn plus(self, other: Place) -> Place {
        Place {
            slots: self.slots.saturating_add(other.slots),
            tiles: self.tiles.saturating_add(other.tiles),
        }
    }

    pub(crate) fn minus(self, other: Place) -> Place {
        Place {
            slots: self.slots.saturating_sub(other.slots),
            tiles: self.tiles.saturating_sub(other.tiles),
        }
    }
}

/// What is to happen now, all by context.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Whose first jobs are placed, in this order.
    pub(crate) place: Vec<usize>,
    /// Who must leave, and for whom.
    pub(crate) preempt: Vec<(usize, usize)>,
    /// When to look again, if nothing happens before.
    pub(crate) wake: Option<u64>,
}

impl Plan {
    fn wake_at(&mut self, at: u64) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }
}

/// How an engine's places are given out.
pub(crate) trait Policy {
    /// Decides over the waiting jobs, which it may put in another order.
    fn plan(
        &mut self,
        now: u64,
        waiting: &mut [Candidate],
        holding: &[Holder],
        room: Place,
    ) -> Plan;
}

/// The policy that the figures name, for one engine.
pub(crate) fn of(figures: &Figures) -> Box<dyn Policy> {
    match figures.policy {
        PolicyName::Hardware => Box::new(Hardware::new(figures)),
        PolicyName::Fifo => Box::new(Fifo),
        PolicyName::RoundRobin => Box::new(RoundRobin::default()),
    }
}

/// In the order in which jobs came. Who does not fit keeps those behind from being placed.
struct Fifo;

impl Policy for Fifo {
    fn plan(&mut self, _: u64, waiting: &mut [Candidate], _: &[Holder], mut room: Place) -> Plan {
        waiting.sort_unstable_by_key(|c| c.number);
        let mut plan = Plan::default();
        for c in waiting.iter().take_while(|c| {
            let fits = c.need.fits(room);
            room = room.minus(c.need);
            fits
        }) {
            plan.place.push(c.context);
        }
        plan
    }
}

/// The context whose last job was placed longest ago comes first.
#[derive(Default)]
struct RoundRobin {
    turn: u64,
    last: Vec<u64>,
}

impl Policy for RoundRobin {
    fn plan(&mut self, _: u64, waiting: &mut [Candidate], _: &[Holder], mut room: Place) -> Plan {
        let contexts = waiting.iter().map(|c| c.context + 1).max().unwrap_or(0);
        if self.last.len() < contexts {
            self.last.resize(contexts, 0);
        }
        waiting.sort_unstable_by_key(|c| (self.last[c.context], c.context));
        let mut plan = Plan::default();
        for c in waiting.iter() {
            if c.need.fits(room) {
                room = room.minus(c.need);
                self.turn += 1;
                self.last[c.context] = self.turn;
                plan.place.push(c.context);
            }
        }
        plan
    }
}
