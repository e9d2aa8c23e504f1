//! How the integers of a program fare: what is clipped, what leaves a table, what would overflow an accumulator, and how
//! far results are from exact ones.

use super::watch::Watch;

/// A node, and what happened to its integers over all steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeHealth {
    /// The graph that it is in: `ARITH`, `ARITH/3/true`.
    pub graph: String,
    /// Its position in that graph's list of nodes.
    pub index: usize,
    /// Its operation.
    pub operation: String,
    /// Its name in the file.
    pub name: String,
    /// Elements that it computed.
    pub values: u64,
    /// Of these, those that the clip to the output's width changed.
    pub saturated: u64,
    /// Addresses outside the table, before they were clipped.
    pub out_of_table: u64,
    /// Sums that do not fit the 32 bits of an accumulator.
    pub overflowed: u64,
    /// Distances from the exact results, where the scales of operands and output are known.
    pub error: Option<Distances>,
    /// Elements of one execution.
    pub(crate) each: u64,
    /// How often it was executed.
    pub executions: u64,
}

/// Distances from exact results, in steps of the output's scale.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Distances {
    /// The largest.
    pub max: f64,
    sum: f64,
    count: u64,
}

impl Distances {
    /// The mean over all elements.
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum / self.count as f64
        }
    }
}

/// The nodes of a program and what happened to their integers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    /// Nodes in the order of execution; bodies before the nodes that call them.
    pub nodes: Vec<NodeHealth>,
    current: usize,
}

impl Health {
    /// Another node; its number.
    pub(crate) fn add(&mut self, node: NodeHealth) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// The nodes that were executed, in the order of the graphs.
    pub fn executed(&self) -> impl Iterator<Item = &NodeHealth> {
        self.nodes.iter().filter(|node| node.executions > 0)
    }
}

impl Watch for Health {
    const WATCHES: bool = true;

    fn enter(&mut self, node: usize) {
        self.current = node;
        if let Some(node) = self.nodes.get_mut(node) {
            node.executions += 1;
            node.values += node.each;
        }
    }

    fn clipped(&mut self, changed: bool) {
        if let Some(node) = self.nodes.get_mut(self.current).filter(|_| changed) {
            node.saturated += 1;
        }
    }

    fn address(&mut self, outside: bool) {
        if let Some(node) = self.nodes.get_mut(self.current).filter(|_| outside) {
            node.out_of_table += 1;
        }
    }

    fn sum(&mut self, sum: i64) {
        if i32::try_from(sum).is_err()
            && let Some(node) = self.nodes.get_mut(self.current)
        {
            node.overflowed += 1;
        }
    }

    fn distance(&mut self, node: usize, steps: f64) {
        let Some(node) = self.nodes.get_mut(node) else {
            return;
        };
        let distances = node.error.get_or_insert_default();
        distances.max = distances.max.max(steps);
        distances.sum += steps;
        distances.count += 1;
    }
}
