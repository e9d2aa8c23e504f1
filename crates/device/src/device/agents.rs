//! Bursts of other agents on the chip.

use super::Device;
use crate::agents::{Agent, AgentReport, Traffic};
use crate::figures::{CACHE, DDR, Figures};
use crate::network::{Claim, Leg};
use crate::owner::Owner;

/// Where an agent with bursts is.
#[derive(Debug)]
pub(crate) struct Bursting {
    agent: usize,
    /// When it starts its next burst; `None` while one is under way, or behind the last.
    next: Option<u64>,
    /// When the burst under way, or the last, was due.
    due: u64,
    /// Bursts that have started.
    started: u64,
    /// Bytes of those that have ended.
    moved: u64,
    /// Bytes of the one under way.
    moving: u64,
}

/// Numbers of processes end below this: address spaces of agents lie above.
const SPACES: u32 = 1 << 20;

impl Bursting {
    /// Those of the agents that have bursts.
    pub(crate) fn of(agents: &[Agent], figures: &Figures) -> Vec<Bursting> {
        let is_bursting = |(_, agent): &(usize, &Agent)| match agent.traffic {
            Traffic::Steady => false,
            Traffic::Bursts(..) => figures.agent_rate(agent).is_some_and(|rate| rate > 0.0),
            Traffic::Recorded(_) => true,
        };
        let agents = agents.iter().enumerate().filter(is_bursting);
        let start = |(number, agent): (usize, &Agent)| Bursting {
            agent: number,
            next: match &agent.traffic {
                Traffic::Recorded(bursts) => bursts.first().map(|(at, ..)| *at),
                _ => Some(0),
            },
            due: 0,
            started: 0,
            moved: 0,
            moving: 0,
        };
        agents.map(start).collect()
    }
}

impl Device<'_, '_, '_> {
    /// When the next burst starts.
    pub(crate) fn next_burst(&self) -> Option<u64> {
        self.bursting.iter().filter_map(|agent| agent.next).min()
    }

    /// A burst that is due sets out.
    pub(crate) fn burst(&mut self) {
        let now = self.now;
        let Some(place) = self.bursting.iter().position(|a| a.next == Some(now)) else {
            return;
        };
        let of = &mut self.bursting[place];
        let agent = &self.setup.agents[of.agent];
        let (bytes, address) = match &agent.traffic {
            Traffic::Steady => return,
            Traffic::Bursts(burst, working_set) => {
                let read = u128::from(of.started) * u128::from(*burst);
                (*burst, (read % u128::from((*working_set).max(1))) as u64)
            }
            Traffic::Recorded(bursts) => {
                let (_, bytes, address) = bursts[of.started as usize];
                (bytes, address)
            }
        };
        (of.next, of.due, of.moving) = (None, now, bytes);
        of.started += 1;
        let number = of.agent;
        let path = agent.path.iter();
        let mut legs: Vec<Leg> = path.map(|resource| Leg::of(*resource, bytes)).collect();
        if self.memory.cache.is_some() && agent.path.contains(&CACHE) {
            self.states.live(&mut self.memory);
            let mask = self.figures.cache_masks.get(&agent.name);
            let mask = mask.copied().unwrap_or(u64::MAX);
            let touched = |visit: &mut dyn FnMut(u64, u64)| visit(address, bytes);
            let (missed, _) = self.memory.touch(SPACES + number as u32, mask, touched);
            let ddr = legs.iter_mut().filter(|leg| leg.resource == DDR);
            ddr.for_each(|leg| leg.bytes = missed);
        }
        let claim = Claim::Weight(self.figures.agent_weight(agent));
        let owner = Owner::Agent(number);
        self.memory.network.start(now, owner, bytes, legs, claim);
    }

    /// A burst has ended; the next comes when it is due, at once if that has passed.
    pub(crate) fn burst_ends(&mut self, number: usize) {
        let now = self.now;
        let Some(of) = self.bursting.iter_mut().find(|a| a.agent == number) else {
            return;
        };
        of.moved += std::mem::take(&mut of.moving);
        let agent = &self.setup.agents[number];
        let due = match (&agent.traffic, self.figures.agent_rate(agent)) {
            (Traffic::Bursts(burst, _), Some(rate)) => {
                let period = (*burst as f64 / rate * 1e12).max(1.0) as u64;
                Some(of.due.saturating_add(period))
            }
            (Traffic::Recorded(bursts), _) => bursts.get(of.started as usize).map(|(at, ..)| *at),
            _ => None,
        };
        of.next = due.map(|due| due.max(now));
    }

    /// What all agents have moved until an instant.
    pub(crate) fn agents_moved(&self, until: u64) -> Vec<AgentReport> {
        let mut steady = self.memory.network.moved(until).into_iter();
        let agents = self.setup.agents.iter().enumerate();
        let report = |(number, agent): (usize, &Agent)| {
            let bytes = if matches!(agent.traffic, Traffic::Steady) {
                steady.next().unwrap_or(0)
            } else {
                let of = self.bursting.iter().find(|a| a.agent == number);
                of.map_or(0, |of| of.moved)
            };
            AgentReport {
                name: agent.name.clone(),
                wanted_bytes_per_s: self.figures.agent_rate(agent),
                bytes,
                bytes_per_s: bytes as f64 / (until.max(1) as f64 * 1e-12),
            }
        };
        agents.map(report).collect()
    }
}
