//! The links that a value takes, as a tree: every link behind a switch has one before it, with one less from the source.

use super::formula::Formula;
use super::{Horizon, MOST_DEPTHS, Model, ends};
use crate::fabric::{FAR, Fabric};
use crate::place::Placer;
use batsat::Lit;
use std::collections::BTreeMap;

/// A slot of a link that a value may be on.
pub(super) struct Step {
    pub(super) link: u32,
    pub(super) slot: u32,
    /// Whether the value is there.
    pub(super) used: Lit,
    /// The least links from the source, this one included, and for each number of them whether it is that.
    pub(super) least: i32,
    pub(super) depth: Vec<Lit>,
}

impl Step {
    /// Whether so many links lead here; `None` where that cannot be.
    fn at(&self, depth: i32) -> Option<Lit> {
        let index = usize::try_from(depth - self.least).ok()?;
        self.depth.get(index).copied()
    }
}

/// The steps of a net.
pub(super) struct Ways {
    pub(super) steps: Vec<Step>,
    into: BTreeMap<u32, Vec<usize>>,
}

impl Ways {
    /// Steps into an element.
    pub(super) fn entering(&self, element: u32) -> &[usize] {
        self.into.get(&element).map_or(&[], Vec::as_slice)
    }

    /// The way to a step in the solution.
    pub(super) fn back(
        &self,
        formula: &Formula,
        fabric: &Fabric<'_>,
        mut step: usize,
    ) -> Vec<(u32, u32)> {
        let mut way = Vec::new();
        loop {
            let body = &self.steps[step];
            way.push((body.link, body.slot));
            let index = body.depth.iter().position(|depth| formula.holds(*depth));
            let depth = body.least + index.unwrap_or(0) as i32;
            let from = fabric.links[body.link as usize].source;
            let before = self.entering(from).iter().copied().find(|before| {
                let at = self.steps[*before].at(depth - 1);
                at.is_some_and(|literal| formula.holds(literal))
            });
            match before.filter(|_| depth > 1) {
                Some(before) => step = before,
                None => break,
            }
        }
        way.reverse();
        way
    }
}

/// A step that is not in the formula yet.
struct Draft {
    link: u32,
    slot: u32,
    least: i32,
    most: i32,
    /// Candidates of the source from which it is the first, by their numbers.
    begins: Vec<usize>,
}

/// The steps that a net may take within so many links.
fn drafts(placer: &Placer<'_>, net: usize, most: i32) -> Vec<Draft> {
    let (kernel, fabric) = (placer.kernel, placer.fabric);
    let body = &kernel.nets[net];
    let wire = body.wires[0];
    let width = kernel.wires[wire].width;
    let sources = &placer.candidates.of[body.source];
    let mut sinks: Vec<u32> = Vec::new();
    for wire in &body.wires {
        let sink = kernel.wires[*wire].sink;
        sinks.extend(
            placer.candidates.of[sink]
                .iter()
                .map(|(element, _)| *element),
        );
    }
    sinks.sort_unstable();
    sinks.dedup();
    // Links from the source to each switch, and from each switch to a sink.
    let mut behind = vec![i32::from(FAR); fabric.size()];
    let mut queue = Vec::new();
    for (element, _) in sources {
        for link in &fabric.outputs[*element as usize] {
            let next = fabric.links[*link as usize].sink;
            if fabric.is_switch[next as usize] && behind[next as usize] > 1 {
                behind[next as usize] = 1;
                queue.push(next);
            }
        }
    }
    let mut next = 0;
    while let Some(&at) = queue.get(next) {
        next += 1;
        for link in &fabric.outputs[at as usize] {
            let to = fabric.links[*link as usize].sink as usize;
            if fabric.is_switch[to] && behind[to] > behind[at as usize] + 1 {
                behind[to] = behind[at as usize] + 1;
                queue.push(to as u32);
            }
        }
    }
    let before = |element: u32| {
        let hops = sinks.iter().map(|sink| fabric.hops(element, *sink));
        i32::from(hops.min().unwrap_or(FAR))
    };
    let mut drafts = Vec::new();
    for (number, link) in fabric.links.iter().enumerate() {
        let number = number as u32;
        let (from_switch, to_switch) = (
            fabric.is_switch[link.source as usize],
            fabric.is_switch[link.sink as usize],
        );
        let ends = !to_switch && sinks.binary_search(&link.sink).is_ok();
        let parts = fabric.slots_for(number, width);
        if !to_switch && !ends || parts > link.slots {
            continue;
        }
        let rest = if ends { 0 } else { before(link.sink) };
        for slot in 0..link.slots {
            let inside = slot.is_multiple_of(parts) && slot + parts <= link.slots;
            if !(from_switch && to_switch || inside) {
                continue;
            }
            let begins = sources.iter().enumerate().filter(|(_, at)| {
                at.0 == link.source && ends::may_leave(placer, wire, **at, (number, slot))
            });
            let begins: Vec<usize> = begins.map(|(index, _)| index).collect();
            let (least, most) = if from_switch {
                (behind[link.source as usize] + 1, most - rest)
            } else if begins.is_empty() || 1 + rest > most {
                continue;
            } else {
                (1, 1)
            };
            if least <= most {
                drafts.push(Draft {
                    link: number,
                    slot,
                    least,
                    most,
                    begins,
                });
            }
        }
    }
    drafts
}

impl Model<'_> {
    /// Gives every net its steps; `None` where they are too many.
    pub(super) fn route(&mut self, horizon: Horizon) -> Option<()> {
        let (kernel, fabric) = (self.placer.kernel, self.placer.fabric);
        let mut size = 0;
        let mut on: Vec<Vec<Lit>> = vec![Vec::new(); fabric.slots];
        for net in 0..kernel.nets.len() {
            let drafts = drafts(self.placer, net, horizon.links);
            size += drafts
                .iter()
                .map(|d| (d.most - d.least + 1) as usize)
                .sum::<usize>();
            if size > MOST_DEPTHS {
                return None;
            }
            let ways = self.steps(net, &drafts);
            for step in &ways.steps {
                let link = fabric.links[step.link as usize];
                let parts =
                    fabric.slots_for(step.link, kernel.wires[kernel.nets[net].wires[0]].width);
                for part in step.slot..step.slot + parts {
                    on[(link.first + part % link.slots) as usize].push(step.used);
                }
            }
            self.ways.push(ways);
        }
        // One value on each slot.
        for values in on {
            self.formula.at_most(1, &values);
        }
        Some(())
    }

    fn steps(&mut self, net: usize, drafts: &[Draft]) -> Ways {
        let (kernel, fabric) = (self.placer.kernel, self.placer.fabric);
        let source = kernel.nets[net].source;
        let mut ways = Ways {
            steps: Vec::new(),
            into: BTreeMap::new(),
        };
        for draft in drafts {
            let used = self.formula.fresh();
            let depth: Vec<Lit> = (draft.least..=draft.most)
                .map(|_| self.formula.fresh())
                .collect();
            self.formula.imply(&[used], depth.iter().copied());
            for literal in &depth {
                self.formula.imply(&[*literal], [used]);
            }
            self.formula.at_most(1, &depth);
            let element = fabric.links[draft.link as usize].sink;
            ways.into.entry(element).or_default().push(ways.steps.len());
            ways.steps.push(Step {
                link: draft.link,
                slot: draft.slot,
                used,
                least: draft.least,
                depth,
            });
        }
        let mut first = Vec::new();
        for (draft, step) in drafts.iter().zip(&ways.steps) {
            if !draft.begins.is_empty() {
                let there: Vec<Lit> = draft
                    .begins
                    .iter()
                    .map(|at| self.place[source][*at])
                    .collect();
                self.formula.imply(&[step.used], there);
                first.push(step.used);
                continue;
            }
            let from = fabric.links[step.link as usize].source;
            for depth in draft.least..=draft.most {
                let before = ways
                    .entering(from)
                    .iter()
                    .filter_map(|before| ways.steps[*before].at(depth - 1));
                let before: Vec<Lit> = before.collect();
                if let Some(literal) = step.at(depth) {
                    self.formula.imply(&[literal], before);
                }
            }
        }
        // A result leaves its element on one link.
        if kernel.vertices[source].place == crate::kernel::Place::Unit {
            self.formula.at_most(1, &first);
        }
        ways
    }
}
