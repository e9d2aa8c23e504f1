//! What the replay says of each segment of a tree.

use super::Unwritten;
use super::spec::Emitter;
use super::written::{Placement, Written};
use crate::machine::Machine;
use crate::model::node::Node;
use crate::model::{nodes_of, with_evaluator};
use crate::network::Network;
use crate::tree::Tree;
use chipless_gemini::Schedule;
use chipless_model::{Limits, QueueId, ResourceId, Time};
use chipless_sim::{TimingOnly, Verified};
use std::collections::HashMap;

/// From the end of the segment before to the end of this one.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentTime {
    /// Its first and last layer, or its only one.
    pub layers: String,
    /// Cycles; those of all segments are the schedule's.
    pub cycles: i64,
    /// Bytes from and to DRAM in that time, those for later segments among them.
    pub dram_bytes: i64,
    /// Parts of that time in which DRAM, the busiest link, and the busiest unit of a core work.
    pub busy: [f64; 3],
}

/// A part of the time below which nothing is said to bound a segment.
const HALF: f64 = 0.5;

impl SegmentTime {
    /// What its time is.
    pub fn bound_by(&self) -> &'static str {
        let [dram, link, unit] = self.busy;
        match dram.max(link).max(unit) {
            most if most < HALF => "waits of layers for each other",
            most if most <= dram => "DRAM",
            most if most <= link => "a link",
            _ => "computation",
        }
    }
}

/// The replayed time of a written schedule by the segments of its tree.
///
/// # Errors
/// What cannot be replayed.
pub fn segment_times(
    written: &Written,
    (network, machine): (&Network, &Machine),
    tree: &Tree,
    schedule: &str,
) -> Result<Vec<SegmentTime>, Unwritten> {
    let layers: Vec<Vec<u16>> = with_evaluator(network, machine, tree.batch(), |evaluator| {
        let root = nodes_of(evaluator, tree)?;
        Ok::<_, Unwritten>(root.children.iter().map(Node::layers).collect())
    })?;
    let emitter = Emitter::new(written, machine)?;
    let unsupported = |error: &dyn std::fmt::Display| Unwritten::Unsupported(error.to_string());
    let schedule = Schedule::read(schedule).map_err(|error| unsupported(&error))?;
    let limits = Limits::default();
    let lowered = chipless_gemini::lower(&schedule, &emitter.data(), &emitter.timed, &limits)
        .map_err(|error| unsupported(&error))?;
    let program = &lowered.program;
    let timeline = chipless_sim::run(&Verified::assume(program), &mut TimingOnly).timeline;
    // When each segment ends, and all before it.
    let segment_of = segments_of(written, &layers);
    let mut ends = vec![Time::ZERO; layers.len()];
    let workloads = schedule.cores.iter().flat_map(|core| &core.workloads);
    for (workload, [_, last]) in workloads.zip(&lowered.workloads) {
        let segment = segment_of.get(schedule.name(workload.layer));
        if let Some(end) = segment.and_then(|segment| ends.get_mut(*segment)) {
            *end = (*end).max(timeline.tasks[*last].end);
        }
    }
    if let Some(last) = ends.last_mut() {
        *last = timeline.end;
    }
    for at in 1..ends.len() {
        ends[at] = ends[at].max(ends[at - 1]);
    }
    let cycles_of = |time: Time| time.0 as f64 * emitter.timed.clock_mhz * 1e-6;
    let mut sums = vec![Sums::default(); ends.len()];
    for (task, record) in timeline.tasks.iter_enumerated() {
        let (start, end) = (cycles_of(record.start), cycles_of(record.end));
        let demands = program.demands(task);
        let mut before = 0.0;
        for (sums, until) in sums.iter_mut().zip(&ends) {
            let until = cycles_of(*until);
            let inside = end.min(until) - start.max(before);
            before = until;
            if inside <= 0.0 {
                continue;
            }
            if demands.is_empty() {
                *sums.units.entry(program.tasks[task].queue).or_default() += inside;
            }
            for demand in demands {
                let resource = &program.resources[demand.resource];
                let bytes = demand.bytes as f64 * inside / (end - start);
                let seconds = bytes / resource.capacity;
                let cycles = seconds * emitter.timed.clock_mhz * 1e6;
                if resource.off_chip {
                    sums.bytes += bytes;
                    sums.dram += cycles;
                } else {
                    *sums.links.entry(demand.resource).or_default() += cycles;
                }
            }
        }
    }
    let mut before = 0.0;
    let segments = layers
        .iter()
        .zip(sums)
        .zip(ends)
        .map(|((layers, sums), end)| {
            let (begin, end) = (before, cycles_of(end));
            before = end;
            let part = |cycles: f64| cycles / (end - begin).max(1.0);
            SegmentTime {
                layers: network.range(layers),
                cycles: end.round() as i64 - begin.round() as i64,
                dram_bytes: sums.bytes.round() as i64,
                busy: [sums.dram, most(&sums.links), most(&sums.units)].map(part),
            }
        });
    Ok(segments.collect())
}

/// What works in the time of a segment, in cycles.
#[derive(Clone, Debug, Default)]
struct Sums {
    bytes: f64,
    dram: f64,
    links: HashMap<ResourceId, f64>,
    units: HashMap<QueueId, f64>,
}

fn most<Key>(all: &HashMap<Key, f64>) -> f64 {
    all.values().copied().fold(0.0, f64::max)
}

/// The segment of each layer that is really computed, those among them that only move elements.
fn segments_of<'w>(written: &'w Written, layers: &[Vec<u16>]) -> HashMap<&'w str, usize> {
    let of_tree = |layer: usize| {
        layers
            .iter()
            .position(|segment| segment.iter().any(|of| usize::from(*of) == layer))
    };
    let placed = written.layers.iter().zip(&written.of);
    placed
        .filter_map(|(layer, placement)| {
            let segment = match placement {
                Placement::Layer(layer) | Placement::Before(layer) => of_tree(*layer)?,
                Placement::Last => layers.len().checked_sub(1)?,
            };
            Some((layer.name.as_str(), segment))
        })
        .collect()
}
