//! How long a connected part of a graph takes: unit latencies without a mapping, those of the fabric with one.

use crate::evaluate::{Course, Part};
use crate::graph::{Graph, NodeId, NodeKind, Source};
use crate::operations;
use index_vec::IndexVec;

/// What a mapping says of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mapped {
    /// Cycles from the first input to the last output.
    pub latency: u64,
    /// Cycles from one row to the next.
    pub interval: f64,
}

/// The time of one connected part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PartTime {
    /// Cycles before the first row comes out.
    pub(crate) latency: f64,
    /// Cycles from one row to the next.
    pub(crate) interval: f64,
    /// Rows, or firings of the busiest node where they are more.
    pub(crate) steps: u64,
}

/// The time of a connected part.
///
/// Without a mapping an operation takes its own latency and a value no time on its way; the next row enters when the slowest unit is free
/// again, or, in a temporal group, when all of them were served by one element. A recurrence brings the next row back after the
/// latency: with `n` rows in flight, `latency / n` cycles pass from one to the next at least.
pub(crate) fn time(
    graph: &Graph,
    part: &Part,
    course: Option<&Course>,
    rows: u64,
    in_flight: Option<u64>,
    mapped: Option<Mapped>,
) -> PartTime {
    let mut ready: IndexVec<NodeId, u64> = graph.nodes.iter().map(|_| 0).collect();
    let (mut slowest, mut shared) = (1u32, 0u32);
    let mut steps = rows;
    for &id in &part.nodes {
        let node = &graph.nodes[id];
        let start = node
            .operands
            .iter()
            .filter_map(|operand| match &operand.source {
                Source::Edges(edges) => edges
                    .iter()
                    .map(|edge| ready[graph.edges[*edge].source])
                    .max(),
                _ => None,
            });
        let mut end = start.max().unwrap_or(0);
        if let NodeKind::Instruction(instruction) = &node.kind {
            let operation = operations::lookup(&instruction.operation);
            let (latency, throughput) = operation.map_or((1, 1), |operation| {
                (operation.latency, operation.throughput)
            });
            end += u64::from(latency);
            slowest = slowest.max(throughput);
            shared += throughput;
        }
        ready[id] = end;
        if let Some(course) = course {
            steps = steps.max(course.firings[id]);
        }
    }
    let temporal = part
        .nodes
        .first()
        .is_some_and(|node| graph.groups[graph.nodes[*node].group].temporal);
    let path = part
        .nodes
        .iter()
        .map(|node| ready[*node])
        .max()
        .unwrap_or(0);
    let latency = mapped.map_or(path, |mapped| mapped.latency) as f64;
    let own = f64::from(if temporal { shared.max(1) } else { slowest });
    let interval = mapped.map_or(own, |mapped| mapped.interval.max(own));
    let back = in_flight.map_or(0.0, |rows| latency / rows.max(1) as f64);
    PartTime {
        latency,
        interval: interval.max(back),
        steps,
    }
}
