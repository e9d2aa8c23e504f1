//! When everything happens, as a system of difference constraints.
//!
//! `start(v)` is the cycle in which the operands of `v` meet for the first row; every row comes `interval` cycles later. Input ports start
//! at 0. A wire of `n` links from `u` arrives at `start(u) + ready + n - 1`, where its value is ready `ready` cycles after `u` starts, and
//! waits in the buffers at `v`, which hold `depth(v)` rows:
//!
//! ```text
//! start(v) - start(u) >= ready + n - 1
//! start(v) - start(u) <= ready + n - 1 + depth(v) · interval
//! ```
//!
//! The least solution is the earliest schedule. Where there is none, the depths are taken as larger by as little as makes one:
//! that is the mismatch of the mapping. Where instructions share elements or links in time, their cycles differ modulo the interval besides
//! (modulo scheduling).

use crate::kernel::{Kernel, Place};
use std::collections::HashMap;

/// What wires and elements give to the system.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    pub(crate) start: Vec<i32>,
    /// Delay of each wire.
    pub(crate) delay: Vec<i32>,
    pub(crate) latency: i32,
    pub(crate) mismatch: i32,
    /// Extra depth without which there is no solution.
    pub(crate) slack: i32,
}

/// What happens in which cycle only once.
pub(crate) struct Sharing {
    /// For each vertex on a shared element that element.
    pub(crate) element: Vec<Option<u32>>,
    /// What crosses each link that is shared in time.
    pub(crate) crossings: Vec<Vec<Crossing>>,
}

/// A value on a link that is shared in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    /// What the value is: crossings of the same value are one.
    pub(crate) value: (usize, u32),
    pub(crate) source: usize,
    /// Cycles from the start of the source to the crossing.
    pub(crate) after: i32,
}

impl Sharing {
    /// Whether anything is shared.
    pub(crate) fn is_used(&self) -> bool {
        self.element.iter().any(Option::is_some) || !self.crossings.is_empty()
    }
}

/// The cycles, modulo the interval, in which something happens already.
struct Tables<'s> {
    sharing: &'s Sharing,
    interval: i32,
    /// Who starts on an element in a cycle.
    starts: HashMap<(u32, i32), usize>,
    /// Which value crosses a link in a cycle.
    links: HashMap<(usize, i32), (usize, u32)>,
    /// For each vertex the links that its values cross.
    crosses: Vec<Vec<(usize, Crossing)>>,
}

impl<'s> Tables<'s> {
    fn new(sharing: &'s Sharing, vertices: usize, interval: i32) -> Tables<'s> {
        let mut crosses = vec![Vec::new(); vertices];
        for (link, crossings) in sharing.crossings.iter().enumerate() {
            for crossing in crossings {
                crosses[crossing.source].push((link, *crossing));
            }
        }
        Tables {
            sharing,
            interval,
            starts: HashMap::new(),
            links: HashMap::new(),
            crosses,
        }
    }

    fn is_free(&self, vertex: usize, start: i32, throughput: i32) -> bool {
        let free = self.sharing.element[vertex].is_none_or(|element| {
            throughput <= self.interval
                && (0..throughput).all(|cycle| {
                    let key = (element, (start + cycle).rem_euclid(self.interval));
                    !self.starts.contains_key(&key)
                })
        });
        // Values of one vertex may meet on a link as well.
        let mut own: HashMap<(usize, i32), (usize, u32)> = HashMap::new();
        free && self.crosses[vertex].iter().all(|(link, crossing)| {
            let key = (*link, (start + crossing.after).rem_euclid(self.interval));
            let before = *own.entry(key).or_insert(crossing.value);
            before == crossing.value
                && self
                    .links
                    .get(&key)
                    .is_none_or(|value| *value == crossing.value)
        })
    }

    fn take(&mut self, vertex: usize, start: i32, throughput: i32) {
        if let Some(element) = self.sharing.element[vertex] {
            for cycle in 0..throughput {
                let key = (element, (start + cycle).rem_euclid(self.interval));
                self.starts.insert(key, vertex);
            }
        }
        for (link, crossing) in &self.crosses[vertex] {
            let key = (*link, (start + crossing.after).rem_euclid(self.interval));
            self.links.insert(key, crossing.value);
        }
    }
}

/// Passes in which a schedule moves sources that are too early for their buffers.
const PASSES: usize = 24;

/// A schedule of what shares elements and links, for ways of these lengths and buffers of these cycles; `None` where none was found.
pub(crate) fn modulo(
    kernel: &Kernel,
    lengths: &[i32],
    waits: &[i32],
    interval: i32,
    sharing: &Sharing,
) -> Option<Timing> {
    // Cycles from each vertex to the end: what is longest goes first.
    let mut height = vec![0; kernel.vertices.len()];
    for &vertex in kernel.order.iter().rev() {
        let body = &kernel.vertices[vertex];
        let onward = body.outputs.iter().map(|wire| {
            let wire_ = &kernel.wires[*wire];
            wire_.flight(lengths[*wire]) + height[wire_.sink]
        });
        height[vertex] = onward.max().unwrap_or(0).max(body.latency);
    }
    let mut least = vec![0; kernel.vertices.len()];
    'pass: for _ in 0..PASSES {
        let mut tables = Tables::new(sharing, kernel.vertices.len(), interval);
        let mut start = vec![0; kernel.vertices.len()];
        let mut waiting: Vec<usize> = kernel.vertices.iter().map(|v| v.inputs.len()).collect();
        let mut ready: Vec<usize> = (0..waiting.len()).filter(|v| waiting[*v] == 0).collect();
        while !ready.is_empty() {
            let earliest = |vertex: usize| {
                let arrivals = kernel.vertices[vertex].inputs.iter().map(|wire| {
                    let wire_ = &kernel.wires[*wire];
                    start[wire_.source] + wire_.flight(lengths[*wire])
                });
                arrivals.max().unwrap_or(0).max(least[vertex])
            };
            let first = ready
                .iter()
                .enumerate()
                .min_by_key(|(_, vertex)| (earliest(**vertex), -height[**vertex], **vertex));
            let place = first.map_or(0, |(place, _)| place);
            let vertex = ready.swap_remove(place);
            let body = &kernel.vertices[vertex];
            let from = earliest(vertex);
            let fixed = body.place == Place::Input;
            let found = (from..from + if fixed { 1 } else { interval })
                .find(|cycle| tables.is_free(vertex, *cycle, body.throughput))?;
            tables.take(vertex, found, body.throughput);
            start[vertex] = found;
            for wire in &body.outputs {
                let sink = kernel.wires[*wire].sink;
                waiting[sink] -= 1;
                if waiting[sink] == 0 {
                    ready.push(sink);
                }
            }
        }
        // Values that wait longer than the buffers hold them must be made later.
        let mut late = false;
        for (wire, body) in kernel.wires.iter().enumerate() {
            let arrival = start[body.source] + body.flight(lengths[wire]);
            let over = start[body.sink] - arrival - waits[body.sink];
            if over > 0 {
                if kernel.vertices[body.source].place == Place::Input {
                    return None;
                }
                least[body.source] = least[body.source].max(start[body.source] + over);
                late = true;
            }
        }
        if late {
            continue 'pass;
        }
        let delay =
            kernel.wires.iter().enumerate().map(|(wire, body)| {
                start[body.sink] - start[body.source] - body.flight(lengths[wire])
            });
        let ends = kernel
            .vertices
            .iter()
            .zip(&start)
            .map(|(body, start)| start + body.latency);
        return Some(Timing {
            delay: delay.collect(),
            latency: ends.max().unwrap_or(0),
            mismatch: 0,
            slack: 0,
            start,
        });
    }
    None
}

/// The least solution of the system with buffers of so many cycles, each larger by `slack`; `None` where there is none.
pub(crate) fn earliest(
    kernel: &Kernel,
    lengths: &[i32],
    waits: &[i32],
    slack: i32,
) -> Option<Vec<i32>> {
    let mut start = vec![0; kernel.vertices.len()];
    // Each round fixes at least one vertex for good unless a cycle of constraints is positive.
    for _ in 0..=kernel.vertices.len() + 1 {
        let mut changed = false;
        for &vertex in &kernel.order {
            for &wire in &kernel.vertices[vertex].inputs {
                let wire_ = &kernel.wires[wire];
                let arrival = start[wire_.source] + wire_.flight(lengths[wire]);
                if arrival > start[vertex] {
                    start[vertex] = arrival;
                    changed = true;
                }
            }
        }
        for &vertex in kernel.order.iter().rev() {
            for &wire in &kernel.vertices[vertex].outputs {
                let wire_ = &kernel.wires[wire];
                let flight = wire_.flight(lengths[wire]);
                let least = start[wire_.sink] - flight - waits[wire_.sink] - slack;
                if least > start[vertex] {
                    if kernel.vertices[vertex].place == Place::Input {
                        return None;
                    }
                    start[vertex] = least;
                    changed = true;
                }
            }
        }
        if !changed {
            return Some(start);
        }
    }
    None
}

/// Solves the system; `lengths` in links for each wire, `waits` in cycles for each vertex.
pub(crate) fn solve(kernel: &Kernel, lengths: &[i32], waits: &[i32]) -> Timing {
    // The sum of all latencies and lengths is slack enough.
    let (mut low, mut slack) = (0, 0);
    let mut start = earliest(kernel, lengths, waits, 0);
    if start.is_none() {
        slack = 1;
        start = earliest(kernel, lengths, waits, slack);
        while start.is_none() {
            low = slack;
            slack *= 2;
            start = earliest(kernel, lengths, waits, slack);
        }
        while low + 1 < slack {
            let middle = low + (slack - low) / 2;
            match earliest(kernel, lengths, waits, middle) {
                Some(found) => {
                    slack = middle;
                    start = Some(found);
                }
                None => low = middle,
            }
        }
    }
    let start = start.unwrap_or_default();
    // As the hardware runs it: a delay never exceeds its buffer, and a late operand makes its node late.
    let mut delay = vec![0; kernel.wires.len()];
    let mut begin = vec![0; kernel.vertices.len()];
    let (mut latency, mut mismatch) = (0, 0);
    for &vertex in &kernel.order {
        let (mut first, mut last) = (i32::MAX, 0);
        for &wire in &kernel.vertices[vertex].inputs {
            let wire_ = &kernel.wires[wire];
            let arrival = begin[wire_.source] + wire_.flight(lengths[wire]);
            delay[wire] = (start[vertex] - arrival).clamp(0, waits[vertex]);
            first = first.min(arrival + delay[wire]);
            last = last.max(arrival + delay[wire]);
        }
        if first < last {
            mismatch = mismatch.max(last - first);
        }
        begin[vertex] = last;
        latency = latency.max(last + kernel.vertices[vertex].latency);
    }
    Timing {
        start,
        delay,
        latency,
        mismatch,
        slack,
    }
}
