//! Other agents on the chip: CPU, GPU and media, as traffic that the NPU shares network, cache and memory with.
//!
//! An agent wants a rate. Steady traffic is a part of the resources that is claimed at all times; it costs no events. Bursts are transfers
//! that touch a working set in the memory-side cache, and so are those of a recorded trace.

use crate::device::Device;
use crate::figures::{AgentFigures, CACHE, DDR, Figures, RESOURCES};
use crate::network::{Claim, Leg};
use crate::read::{Fields, Read, list, rate, size, text, wrong};
use crate::rules;
use crate::tasks::Owner;
use chipless_model::Place;
use chipless_yaml::Node;
use schemars::JsonSchema;
use serde::Serialize;

/// An agent of a workload.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its name, which `cache.mask.NAME` and `agent.NAME.rate` use.
    pub name: String,
    /// Numbers of the resources that its traffic passes.
    pub path: Vec<u8>,
    /// What it moves, and when.
    pub traffic: Traffic,
    /// What it wants, before changes.
    pub figures: AgentFigures,
}

/// How the traffic of an agent comes.
#[derive(Clone, Debug)]
pub enum Traffic {
    /// Evenly.
    Steady,
    /// So many bytes at a time, from a working set of so many that it reads again and again.
    Bursts(u64, u64),
    /// At these times, in picoseconds: bytes, and where they begin.
    Recorded(Vec<(u64, u64, u64)>),
}

/// What an agent has moved.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct AgentReport {
    /// Its name.
    pub name: String,
    /// Bytes a second that it wanted; null for a recorded trace.
    pub wanted_bytes_per_s: Option<f64>,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Bytes a second, over the whole time.
    pub bytes_per_s: f64,
}

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

/// Reads the agents of a workload.
pub(crate) fn read(
    node: &Node,
    open: &mut impl FnMut(&str) -> Result<String, String>,
) -> Read<Vec<Agent>> {
    let all = Fields::any(node, "agents")?;
    let agents = all.entries.iter();
    agents
        .map(|(name, _, node)| agent(name, node, open))
        .collect()
}

fn agent(
    name: &str,
    node: &Node,
    open: &mut impl FnMut(&str) -> Result<String, String>,
) -> Read<Agent> {
    let known = ["rate", "at", "burst", "working_set", "path", "weight"];
    let fields = Fields::of(node, "an agent", &known)?;
    let (kind, value) = fields.one_of(&["rate", "at"], &rules::AGENT)?;
    let working_set = fields.get("working_set");
    let burst = match fields.get("burst") {
        Some(node) => Some((size(node, "burst")?, node.span)),
        None => working_set.map(|node| (BURST, node.span)),
    };
    let traffic = match (kind, burst) {
        ("at", Some((_, span))) => {
            let text = "expected `burst` and `working_set` beside `rate`, found them beside `at`";
            return wrong(&rules::AGENT, span, text);
        }
        ("at", None) => Traffic::Recorded(recorded(value, open)?),
        (_, None) => Traffic::Steady,
        (_, Some((0, span))) => {
            return wrong(
                &rules::AGENT,
                span,
                "expected a burst of a byte at least, found 0",
            );
        }
        (_, Some((burst, _))) => Traffic::Bursts(
            burst,
            match working_set {
                Some(node) => size(node, "working_set")?,
                None => 1 << 40,
            },
        ),
    };
    let is_steady = matches!(traffic, Traffic::Steady);
    let path = match fields.get("path") {
        Some(node) => path(node)?,
        None if is_steady => vec![DDR],
        None => vec![CACHE, DDR],
    };
    let weight = match fields
        .get("weight")
        .map(|node| (node, node.label().parse()))
    {
        None => 1.0,
        Some((_, Ok(weight))) if weight > 0.0 && f64::is_finite(weight) => weight,
        Some((node, _)) => {
            let text = format!("expected a weight above zero, found {}", node.describe());
            return wrong(&rules::AGENT, node.span, text);
        }
    };
    let rate = match kind {
        "rate" => Some(rate(value)?),
        _ => None,
    };
    Ok(Agent {
        name: name.to_owned(),
        path,
        traffic,
        figures: AgentFigures { rate, weight },
    })
}

/// Bytes of a burst where an agent does not say.
const BURST: u64 = 64 << 10;

/// The part of the memory path that agents outside of the NPU reach.
fn path(node: &Node) -> Read<Vec<u8>> {
    let number = |item: &Node| {
        let name = text(item, "the name of a resource")?;
        let known = RESOURCES.iter().position(|known| *known == name);
        match known {
            Some(number) if ["network", "cache", "ddr"].contains(&name) => Ok(number as u8),
            _ => wrong(
                &rules::AGENT,
                item.span,
                format!("expected network, cache or ddr, found \"{name}\""),
            ),
        }
    };
    let mut path: Vec<u8> = Vec::new();
    for item in list(node, "resources")? {
        let number = number(item)?;
        if path.contains(&number) {
            return wrong(
                &rules::AGENT,
                item.span,
                "expected each resource once, found one again",
            );
        }
        path.push(number);
    }
    if path.is_empty() {
        return wrong(
            &rules::AGENT,
            node.span,
            "expected a resource at least, found none",
        );
    }
    Ok(path)
}

/// A recorded trace: `time, bytes` or `time, bytes, address` on each line, in rising order of time.
fn recorded(
    node: &Node,
    open: &mut impl FnMut(&str) -> Result<String, String>,
) -> Read<Vec<(u64, u64, u64)>> {
    let name = text(node, "the name of a file")?;
    let content = match open(name) {
        Ok(content) => content,
        Err(error) => return wrong(&rules::AGENT, node.span, format!("{name} {error}")),
    };
    let mut bursts: Vec<(u64, u64, u64)> = Vec::new();
    for (number, line) in content.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let burst = burst(line);
        let in_order = |(at, ..): &(u64, u64, u64)| bursts.last().is_none_or(|last| last.0 <= *at);
        let Some(burst) = burst.filter(in_order) else {
            let text = format!(
                "expected a time not before the last one, bytes and perhaps an address on line {} of {name}, found \"{line}\"",
                number + 1
            );
            let place = Place::line(number as u32 + 1, 1).in_part(name.to_owned());
            let finding = rules::AGENT.at(node.span.place(), text);
            return Err(Box::new(finding.with(place, "the burst")));
        };
        bursts.push(burst);
    }
    Ok(bursts)
}

fn burst(line: &str) -> Option<(u64, u64, u64)> {
    let mut cells = line.split(',').map(str::trim);
    let at = crate::quantity::time(cells.next()?, Some(1e12))?;
    let bytes = crate::quantity::size(cells.next()?)?;
    let address = match cells.next() {
        None | Some("") => 0,
        Some(text) => match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => text.parse().ok()?,
        },
    };
    let fits = bytes <= 1 << 32 && address < 1 << 40 && cells.next().is_none();
    fits.then_some((at, bytes, address))
}
