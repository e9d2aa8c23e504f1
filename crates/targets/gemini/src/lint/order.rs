//! Who must come before whom, and whether that goes round in a circle.

use super::index::{Maker, Position, at, read_by};
use super::{Findings, Lint};
use crate::rules::schedule::DEADLOCK;

/// Workloads of a circle that are named.
const NAMED: usize = 6;

pub(super) fn check(lint: Lint<'_>, findings: &mut Findings) {
    let schedule = lint.schedule;
    let mut starts = Vec::with_capacity(schedule.cores.len());
    let mut positions: Vec<Position> = Vec::new();
    for (core, list) in schedule.cores.iter().enumerate() {
        starts.push(positions.len());
        positions.extend((0..list.workloads.len()).map(|index| (core as u32, index as u32)));
    }
    let node = |position: Position| starts[position.0 as usize] + position.1 as usize;
    // Edges from each workload to those that must come before it.
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); positions.len()];
    for (n, &position) in positions.iter().enumerate() {
        if position.1 > 0 {
            before[n].push(n as u32 - 1);
        }
        let Some((_, workload)) = at(schedule, position) else { continue };
        for transfer in read_by(workload) {
            for &(_, maker) in lint.index.makers(transfer) {
                match maker {
                    Maker::Workload(other, _) => before[n].push(node(other) as u32),
                    Maker::Dram(index) => {
                        let related = schedule.dram_out.get(index as usize).and_then(|out| out.related.as_ref());
                        for id in related.into_iter().flatten() {
                            for &(_, maker) in lint.index.makers(*id) {
                                if let Maker::Workload(other, _) = maker {
                                    before[n].push(node(other) as u32);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    let mut after: Vec<Vec<u32>> = vec![Vec::new(); positions.len()];
    let mut missing: Vec<u32> = vec![0; positions.len()];
    for (n, edges) in before.iter().enumerate() {
        missing[n] = edges.len() as u32;
        for &m in edges {
            after[m as usize].push(n as u32);
        }
    }
    let mut ready: Vec<u32> = (0..positions.len() as u32).filter(|n| missing[*n as usize] == 0).collect();
    while let Some(n) = ready.pop() {
        for &m in &after[n as usize] {
            missing[m as usize] -= 1;
            if missing[m as usize] == 0 {
                ready.push(m);
            }
        }
    }
    // Every stuck workload has a stuck one before it: going back leads into a circle.
    let Some(first) = missing.iter().position(|count| *count > 0) else { return };
    let mut visited = vec![false; positions.len()];
    let mut path = vec![first as u32];
    let mut current = first;
    while !std::mem::replace(&mut visited[current], true) {
        let Some(&next) = before[current].iter().find(|n| missing[**n as usize] > 0) else { return };
        path.push(next);
        current = next as usize;
    }
    let Some(start) = path.iter().position(|n| *n as usize == current) else { return };
    let circle: Vec<u32> = path.get(start..path.len() - 1).unwrap_or_default().iter().rev().copied().collect();
    let label = |n: u32| at(schedule, positions[n as usize]).map_or_else(String::new, |(core, w)| lint.label(core, w));
    let place = |n: u32| at(schedule, positions[n as usize]).map(|(_, w)| w.at).unwrap_or_default();
    let Some((&head, rest)) = circle.split_first() else { return };
    let message = || {
        let mut names: Vec<String> = circle.iter().take(NAMED).map(|n| label(*n)).collect();
        if circle.len() > NAMED {
            names.push(format!("{} more", circle.len() - NAMED));
        }
        let stuck = missing.iter().filter(|count| **count > 0).count();
        format!("expected an order of all workloads, found that each of these must come before the next and the last before the first: {}; {stuck} workloads never start", names.join(", "))
    };
    findings.report_with(&DEADLOCK, place(head), message, rest.first().map(|n| (place(*n), "the next in the circle")));
}
