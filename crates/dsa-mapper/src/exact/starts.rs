//! When everything starts.

use super::ends::Job;
use super::{Horizon, Model};
use crate::kernel::Place;
use crate::place::Placer;
use batsat::Lit;
use std::collections::BTreeMap;

/// For each vertex the earliest start, and the cycles from its start to the end at least.
fn limits(placer: &Placer<'_>, jobs: &[Job], shortest: &[i32]) -> (Vec<i32>, Vec<i32>) {
    let kernel = placer.kernel;
    let flight = |job: usize| jobs[job].ready + (shortest[job] - 1).max(0);
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); kernel.vertices.len()];
    for (number, job) in jobs.iter().enumerate() {
        into[job.sink].push(number);
    }
    let mut first = vec![0; kernel.vertices.len()];
    let mut rest: Vec<i32> = kernel.vertices.iter().map(|body| body.latency).collect();
    for &vertex in &kernel.order {
        for &job in &into[vertex] {
            first[vertex] = first[vertex].max(first[jobs[job].source] + flight(job));
        }
    }
    for &vertex in kernel.order.iter().rev() {
        for &job in &into[vertex] {
            let source = jobs[job].source;
            rest[source] = rest[source].max(rest[vertex] + flight(job));
        }
    }
    (first, rest)
}

/// A latency that no mapping is below.
pub(super) fn bound(placer: &Placer<'_>, jobs: &[Job], shortest: &[i32]) -> i32 {
    let (first, rest) = limits(placer, jobs, shortest);
    first
        .iter()
        .zip(&rest)
        .map(|(first, rest)| first + rest)
        .max()
        .unwrap_or(0)
}

impl Model<'_> {
    /// Gives every vertex a start that its operands are there for, in time and no longer than their buffers hold them.
    pub(super) fn schedule(&mut self, horizon: Horizon, shortest: &[i32]) {
        let kernel = self.placer.kernel;
        let (first, rest) = limits(self.placer, self.jobs, shortest);
        for (vertex, body) in kernel.vertices.iter().enumerate() {
            let range = if body.place == Place::Input {
                0..=0
            } else {
                first[vertex]..=horizon.cycles - rest[vertex]
            };
            let start = self.formula.number(range);
            self.start.push(start);
        }
        for number in 0..self.jobs.len() {
            self.follow(number);
        }
        self.take_turns();
    }

    /// For each number of links that a job may have, whether it has that.
    fn lengths(&mut self, number: usize) -> Vec<(i32, Lit)> {
        let mut lengths: BTreeMap<i32, Lit> = BTreeMap::new();
        if let Some(inside) = self.inside[number] {
            lengths.insert(0, inside);
        }
        for (step, end) in &self.ends[number] {
            let step = &self.ways[self.jobs[number].net].steps[*step];
            for (depth, literal) in (step.least..).zip(&step.depth) {
                let formula = &mut self.formula;
                let length = *lengths.entry(depth).or_insert_with(|| formula.fresh());
                formula.imply(&[*end, *literal], [length]);
            }
        }
        lengths.into_iter().collect()
    }

    /// The difference between the starts of both ends of a job.
    fn follow(&mut self, number: usize) {
        let job = &self.jobs[number];
        let placer = self.placer;
        // Places of the sink by how long an operand waits there.
        let mut waits: BTreeMap<i32, Vec<Lit>> = BTreeMap::new();
        for ((element, _), there) in placer.candidates.of[job.sink]
            .iter()
            .zip(&self.place[job.sink])
        {
            waits
                .entry(placer.depth[*element as usize])
                .or_default()
                .push(*there);
        }
        let alone = waits.len() == 1;
        let waits: Vec<(i32, Option<Lit>)> = waits
            .into_iter()
            .map(|(wait, there)| {
                let at = (!alone).then(|| self.formula.fresh());
                if let Some(at) = at {
                    for there in there {
                        self.formula.imply(&[there], [at]);
                    }
                }
                (wait, at)
            })
            .collect();
        let (from, to) = (self.start[job.source].clone(), self.start[job.sink].clone());
        for (length, has) in self.lengths(number) {
            let flight = job.ready + (length - 1).max(0);
            for cycle in from.values() {
                let (here, later) = (
                    self.formula.at_least(&from, cycle),
                    self.formula.at_least(&from, cycle + 1),
                );
                let arrived = self.formula.at_least(&to, cycle + flight);
                self.formula.imply(&[has, here], [arrived]);
                for (wait, at) in &waits {
                    let over = self.formula.at_least(
                        &to,
                        (cycle + flight).saturating_add(*wait).saturating_add(1),
                    );
                    let when: Vec<Lit> = [has, !later].into_iter().chain(*at).collect();
                    self.formula.imply(&when, [!over]);
                }
            }
        }
    }

    /// What shares an element starts in cycles of its own modulo the interval.
    fn take_turns(&mut self) {
        let placer = self.placer;
        let interval = placer.interval;
        // For each element and cycle who starts then.
        let mut busy: BTreeMap<(u32, i32), Vec<Lit>> = BTreeMap::new();
        for (vertex, body) in placer.kernel.vertices.iter().enumerate() {
            let candidates = placer.candidates.of[vertex].iter().zip(&self.place[vertex]);
            let shared: Vec<(u32, Lit)> = candidates
                .filter(|((element, _), _)| body.place == Place::Unit && placer.is_shared(*element))
                .map(|((element, _), there)| (*element, *there))
                .collect();
            if shared.is_empty() {
                continue;
            }
            let start = self.start[vertex].clone();
            let cycles: Vec<Lit> = (0..interval).map(|_| self.formula.fresh()).collect();
            for value in start.values() {
                let (here, later) = (
                    self.formula.at_least(&start, value),
                    self.formula.at_least(&start, value + 1),
                );
                for cycle in value..value + body.throughput {
                    self.formula.imply(
                        &[here, !later],
                        [cycles[cycle.rem_euclid(interval) as usize]],
                    );
                }
            }
            for (element, there) in shared {
                for (cycle, literal) in (0..).zip(&cycles) {
                    let taken = self.formula.fresh();
                    self.formula.imply(&[there, *literal], [taken]);
                    busy.entry((element, cycle)).or_default().push(taken);
                }
            }
        }
        for taken in busy.into_values() {
            self.formula.at_most(1, &taken);
        }
    }
}
