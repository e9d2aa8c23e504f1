//! Who must come before whom, and whether that goes round in a circle.
//!
//! A workload comes after the one before it on its core and after what makes its inputs. In the spec's dialect the accesses
//! of DRAM come one after the other in the order of `tensor_order`; a load comes after the workload before the first snapshot
//! that has it, since its space is free from then on, and after the stores that it is related to; a store comes after its
//! workload.

use super::dram::{Access, accesses};
use super::index::{Maker, Position, at, read_by};
use super::{Findings, Lint};
use crate::rules::schedule::DEADLOCK;
use crate::schedule::At;
use std::collections::HashMap;

/// Members of a circle that are named.
const NAMED: usize = 6;

pub(super) fn check(lint: Lint<'_>, findings: &mut Findings) {
    let graph = Graph::new(lint);
    let Some(circle) = graph.circle() else { return };
    let Some((&head, rest)) = circle.nodes.split_first() else {
        return;
    };
    let message = || {
        let mut names: Vec<String> = circle
            .nodes
            .iter()
            .take(NAMED)
            .map(|n| graph.label(lint, *n))
            .collect();
        if circle.nodes.len() > NAMED {
            names.push(format!("{} more", circle.nodes.len() - NAMED));
        }
        let stuck = circle.stuck;
        format!(
            "expected an order of all work, found that each of these must come before the next and the last before the first: {}; {stuck} workloads never start",
            names.join(", ")
        )
    };
    let place = |n: u32| graph.place(lint, n);
    findings.report_with(
        &DEADLOCK,
        place(head),
        message,
        rest.first().map(|n| (place(*n), "the next in the circle")),
    );
}

/// Workloads, then accesses of DRAM, and for each those that must come before it.
struct Graph {
    positions: Vec<Position>,
    accesses: Vec<(u32, Access, Vec<Position>)>,
    before: Vec<Vec<u32>>,
}

/// A circle, and how many workloads wait for it.
struct Circle {
    nodes: Vec<u32>,
    stuck: usize,
}

impl Graph {
    fn new(lint: Lint<'_>) -> Graph {
        let schedule = lint.schedule;
        let mut starts = Vec::with_capacity(schedule.cores.len());
        let mut positions: Vec<Position> = Vec::new();
        for (core, list) in schedule.cores.iter().enumerate() {
            starts.push(positions.len());
            positions.extend((0..list.workloads.len()).map(|index| (core as u32, index as u32)));
        }
        let node = |position: Position| (starts[position.0 as usize] + position.1 as usize) as u32;
        let accesses = if lint.spec {
            accesses(lint)
        } else {
            Vec::new()
        };
        let first_access = positions.len() as u32;
        let mut by_access: HashMap<Access, u32> = HashMap::with_capacity(accesses.len());
        for (i, access) in accesses.iter().enumerate() {
            // Data that come a second time are there the first time, too.
            by_access.entry(access.1).or_insert(first_access + i as u32);
        }

        let mut before: Vec<Vec<u32>> = vec![Vec::new(); positions.len() + accesses.len()];
        let makers = |transfer: u32| lint.index.makers(transfer).iter().map(|(_, maker)| *maker);
        // What must have happened before the bytes of a load are in DRAM.
        let stored = |transfer: u32, edges: &mut Vec<u32>| {
            let entries = lint
                .index
                .makers(transfer)
                .iter()
                .filter_map(|(_, maker)| match maker {
                    Maker::Dram(index) => schedule.dram_out.get(*index as usize),
                    Maker::Workload(..) => None,
                });
            for id in entries.flat_map(|entry| entry.related.iter().flatten()) {
                match by_access.get(&Access::Store(*id)) {
                    Some(store) => edges.push(*store),
                    None => edges.extend(makers(*id).filter_map(|maker| match maker {
                        Maker::Workload(position, _) => Some(node(position)),
                        Maker::Dram(_) => None,
                    })),
                }
            }
        };
        for (n, &position) in positions.iter().enumerate() {
            let edges = &mut before[n];
            if position.1 > 0 {
                edges.push(n as u32 - 1);
            }
            let Some((_, workload)) = at(schedule, position) else {
                continue;
            };
            for transfer in read_by(workload) {
                for maker in makers(transfer) {
                    match (maker, by_access.get(&Access::Load(transfer))) {
                        (Maker::Workload(other, _), _) => edges.push(node(other)),
                        (Maker::Dram(_), Some(load)) => edges.push(*load),
                        (Maker::Dram(_), None) => stored(transfer, edges),
                    }
                }
            }
        }
        for (i, (_, access, places)) in accesses.iter().enumerate() {
            let n = first_access + i as u32;
            let edges = &mut before[n as usize];
            if i > 0 {
                edges.push(n - 1);
            }
            match access {
                Access::Store(_) => edges.extend(places.iter().map(|position| node(*position))),
                Access::Load(transfer) => {
                    edges.extend(
                        places
                            .iter()
                            .filter(|position| position.1 > 0)
                            .map(|position| node(*position) - 1),
                    );
                    stored(*transfer, edges);
                }
            }
        }
        Graph {
            positions,
            accesses,
            before,
        }
    }

    /// Takes away what can happen until nothing is left, or only what goes round in circles.
    fn circle(&self) -> Option<Circle> {
        let mut after: Vec<Vec<u32>> = vec![Vec::new(); self.before.len()];
        let mut missing: Vec<u32> = self.before.iter().map(|edges| edges.len() as u32).collect();
        for (n, edges) in self.before.iter().enumerate() {
            for &m in edges {
                after[m as usize].push(n as u32);
            }
        }
        let mut ready: Vec<u32> = (0..missing.len() as u32)
            .filter(|n| missing[*n as usize] == 0)
            .collect();
        while let Some(n) = ready.pop() {
            for &m in &after[n as usize] {
                missing[m as usize] -= 1;
                if missing[m as usize] == 0 {
                    ready.push(m);
                }
            }
        }
        // Everything stuck has something stuck before it: going back leads into a circle.
        let mut current = missing.iter().position(|count| *count > 0)?;
        let mut visited = vec![false; missing.len()];
        let mut path = vec![current as u32];
        while !std::mem::replace(&mut visited[current], true) {
            let next = *self.before[current]
                .iter()
                .find(|n| missing[**n as usize] > 0)?;
            path.push(next);
            current = next as usize;
        }
        let start = path.iter().position(|n| *n as usize == current)?;
        let nodes = path
            .get(start..path.len() - 1)?
            .iter()
            .rev()
            .copied()
            .collect();
        let stuck = missing
            .iter()
            .take(self.positions.len())
            .filter(|count| **count > 0)
            .count();
        Some(Circle { nodes, stuck })
    }

    fn label(&self, lint: Lint<'_>, n: u32) -> String {
        if let Some(position) = self.positions.get(n as usize) {
            return at(lint.schedule, *position)
                .map_or_else(String::new, |(core, w)| lint.label(core, w));
        }
        match self.access(n) {
            Some((order, Access::Load(id), _)) => {
                format!("the load of transfer {id} (tensor_order {order})")
            }
            Some((order, Access::Store(id), _)) => {
                format!("the store of transfer {id} (tensor_order {order})")
            }
            None => String::new(),
        }
    }

    fn access(&self, n: u32) -> Option<&(u32, Access, Vec<Position>)> {
        self.accesses
            .get((n as usize).checked_sub(self.positions.len())?)
    }

    fn place(&self, lint: Lint<'_>, n: u32) -> At {
        let position = self
            .positions
            .get(n as usize)
            .or_else(|| self.access(n)?.2.first());
        position
            .and_then(|position| at(lint.schedule, *position))
            .map_or(At(0), |(_, w)| w.at)
    }
}
