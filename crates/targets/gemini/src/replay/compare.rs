//! A replay beside the schedule's own estimates and beside a trace.

use super::{Tiles, Trace, count, group, leaf, span};
use crate::machine::Machine;
use crate::schedule::Schedule;
use chipless_model::{Node, Value};
use chipless_sim::Timeline;

/// Workloads that are shown, those that differ most.
const SHOWN: usize = 10;

/// Compares a replay with the `time` fields of the schedule, and with a trace of its first core. The answer is one group, `comparison`.
pub fn compare(
    schedule: &Schedule,
    tiles: Tiles<'_>,
    timeline: &Timeline,
    machine: &Machine,
    trace: Option<&Trace>,
) -> Node {
    let cycles = |time| machine.cycles_of(time);
    let total = cycles(timeline.end);
    let mut children = Vec::new();
    let (mut estimated, mut replayed) = (0u64, 0u64);
    let mut own = Vec::new();
    for ((core, workload), tiles) in schedule.workloads().zip(tiles) {
        let (start, end) = span(timeline, *tiles);
        estimated = estimated.saturating_add(workload.time);
        replayed = replayed.saturating_add(cycles(end.saturating_sub(start)));
        own.push((core.id, workload, cycles(start), cycles(end)));
    }
    children.push(count("estimated_compute_cycles", estimated));
    children.push(count("replayed_compute_cycles", replayed));
    if let Some(Trace { end, spans }) = trace {
        let end = *end;
        children.push(count("trace_cycles", end));
        children.push(count("replay_cycles", total));
        children.push(leaf(
            "error",
            Value::Number(total as f64 / end.max(1) as f64 - 1.0),
        ));
        let first = schedule.cores.first().map(|core| core.id);
        let mut differences = Vec::new();
        for (_, workload, start, end) in own.iter().filter(|(core, ..)| Some(*core) == first) {
            let Some(traced) = spans.get(&workload.id) else {
                continue;
            };
            let difference = |ours: u64, theirs: u64| ours as i128 - i128::from(theirs);
            differences.push((
                workload,
                difference(*start, traced.start),
                difference(*end, traced.end),
            ));
        }
        children.push(count("compared_workloads", differences.len() as u64));
        let largest = differences
            .iter()
            .map(|(_, start, end)| start.unsigned_abs().max(end.unsigned_abs()))
            .max()
            .unwrap_or(0);
        children.push(leaf(
            "largest_difference_cycles",
            Value::Integer(largest as i128),
        ));
        differences.sort_by_key(|(workload, start, end)| {
            (
                std::cmp::Reverse(start.unsigned_abs().max(end.unsigned_abs())),
                workload.id,
            )
        });
        differences.truncate(SHOWN);
        let rows = differences.into_iter().map(|(workload, start, end)| {
            let parts = vec![
                count("workload", u64::from(workload.id)),
                leaf(
                    "layer",
                    Value::Text(schedule.name(workload.layer).to_owned()),
                ),
                leaf("start", Value::Integer(start)),
                leaf("end", Value::Integer(end)),
            ];
            group("", parts)
        });
        children.push(group("largest_differences", rows.collect()));
    }
    group("comparison", children)
}
