//! Nodes in an order, or the circle that leaves none.

use std::collections::HashSet;

/// For each node, those that come before it.
#[derive(Debug)]
pub(crate) struct Predecessors {
    starts: Vec<u32>,
    nodes: Vec<u32>,
}

impl Predecessors {
    pub(super) fn new(count: usize, edges: &[(u32, u32)]) -> Predecessors {
        let mut starts = vec![0u32; count + 1];
        for (_, to) in edges {
            starts[*to as usize + 1] += 1;
        }
        for i in 0..count {
            starts[i + 1] += starts[i];
        }
        Predecessors {
            starts,
            nodes: edges.iter().map(|(from, _)| *from).collect(),
        }
    }

    pub(crate) fn of(&self, node: u32) -> &[u32] {
        &self.nodes[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }

    /// Nodes in an order that respects all of this: the order in which an infinitely fast machine would come to them. Nodes
    /// of a cycle and behind come last.
    pub(crate) fn sorted(&self) -> Vec<u32> {
        self.sort().0
    }

    /// Nodes in an order that respects all of this, and how many of them can be reached; the others are of a cycle or behind.
    pub(crate) fn sort(&self) -> (Vec<u32>, usize) {
        let count = self.starts.len() - 1;
        let mut missing: Vec<u32> = (0..count).map(|n| self.of(n as u32).len() as u32).collect();
        let mut starts = vec![0u32; count + 1];
        for from in &self.nodes {
            starts[*from as usize + 1] += 1;
        }
        for i in 0..count {
            starts[i + 1] += starts[i];
        }
        let mut fill = starts.clone();
        let mut followers = vec![0u32; self.nodes.len()];
        for to in 0..count as u32 {
            for from in self.of(to) {
                followers[fill[*from as usize] as usize] = to;
                fill[*from as usize] += 1;
            }
        }
        let mut sorted: Vec<u32> = (0..count as u32)
            .filter(|n| missing[*n as usize] == 0)
            .collect();
        let mut at = 0;
        while let Some(&node) = sorted.get(at) {
            at += 1;
            for to in &followers[starts[node as usize] as usize..starts[node as usize + 1] as usize]
            {
                missing[*to as usize] -= 1;
                if missing[*to as usize] == 0 {
                    sorted.push(*to);
                }
            }
        }
        let reached = sorted.len();
        sorted.extend((0..count as u32).filter(|n| missing[*n as usize] > 0));
        (sorted, reached)
    }

    /// A circle of nodes that wait for each other, given those that are never reached.
    pub(crate) fn circle(&self, stuck: &[u32]) -> Vec<u32> {
        let stuck: HashSet<u32> = stuck.iter().copied().collect();
        let (mut path, mut seen) = (Vec::new(), HashSet::new());
        let mut next = stuck.iter().min().copied();
        // Everything stuck has something stuck before it: going back leads into a circle.
        while let Some(node) = next {
            if !seen.insert(node) {
                let start = path.iter().position(|n| *n == node).unwrap_or(0);
                path.drain(..start);
                break;
            }
            path.push(node);
            next = self.of(node).iter().copied().find(|n| stuck.contains(n));
        }
        path.reverse();
        path
    }
}
