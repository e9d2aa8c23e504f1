//! When everything happens, as a system of difference constraints.
//!
//! `start(v)` is the cycle in which the operands of `v` meet. Input ports start at 0. A wire of `n` links from `u` arrives at
//! `start(u) + latency(u) + n - 1` and can be delayed up to the depth of the buffers at `v`:
//!
//! ```text
//! start(v) - start(u) >= latency(u) + n - 1
//! start(v) - start(u) <= latency(u) + n - 1 + depth(v)
//! ```
//!
//! The least solution is the earliest schedule. Where there is none, the depths are taken as larger by as little as makes one:
//! that is the mismatch of the mapping.

use super::kernel::{Kernel, Place};

/// What wires and elements give to the system.
pub(super) struct Timing {
    pub(super) start: Vec<i32>,
    /// Delay of each wire.
    pub(super) delay: Vec<i32>,
    pub(super) latency: i32,
    pub(super) mismatch: i32,
    /// Extra depth without which there is no solution.
    pub(super) slack: i32,
}

/// The least solution of the system with depths larger by `slack`; `None` where there is none.
pub(super) fn earliest(
    kernel: &Kernel,
    lengths: &[i32],
    depths: &[i32],
    slack: i32,
) -> Option<Vec<i32>> {
    let mut start = vec![0; kernel.vertices.len()];
    // Each round fixes at least one vertex for good unless a cycle of constraints is positive.
    for _ in 0..=kernel.vertices.len() + 1 {
        let mut changed = false;
        for &vertex in &kernel.order {
            for &wire in &kernel.vertices[vertex].inputs {
                let wire_ = &kernel.wires[wire];
                if wire_.timed {
                    let arrival =
                        start[wire_.source] + kernel.vertices[wire_.source].latency + lengths[wire]
                            - 1;
                    if arrival > start[vertex] {
                        start[vertex] = arrival;
                        changed = true;
                    }
                }
            }
        }
        for &vertex in kernel.order.iter().rev() {
            for &wire in &kernel.vertices[vertex].outputs {
                let wire_ = &kernel.wires[wire];
                if wire_.timed {
                    let arrival = kernel.vertices[vertex].latency + lengths[wire] - 1;
                    let least = start[wire_.sink] - arrival - depths[wire_.sink] - slack;
                    if least > start[vertex] {
                        if kernel.vertices[vertex].place == Place::Input {
                            return None;
                        }
                        start[vertex] = least;
                        changed = true;
                    }
                }
            }
        }
        if !changed {
            return Some(start);
        }
    }
    None
}

/// Solves the system; `lengths` in links for each wire, `depths` for each vertex.
pub(super) fn solve(kernel: &Kernel, lengths: &[i32], depths: &[i32]) -> Timing {
    let mut slack = 0;
    // The sum of all latencies and lengths is slack enough.
    let start = loop {
        if let Some(start) = earliest(kernel, lengths, depths, slack) {
            break start;
        }
        slack += 1;
    };
    // As the hardware runs it: a delay never exceeds its buffer, and a late operand makes its node late.
    let mut delay = vec![0; kernel.wires.len()];
    let mut ready = vec![0; kernel.vertices.len()];
    let (mut latency, mut mismatch) = (0, 0);
    for &vertex in &kernel.order {
        let (mut first, mut last) = (i32::MAX, 0);
        for &wire in &kernel.vertices[vertex].inputs {
            let wire_ = &kernel.wires[wire];
            if !wire_.timed {
                continue;
            }
            let arrival = ready[wire_.source] + lengths[wire] - 1;
            delay[wire] = (start[vertex] - arrival).clamp(0, depths[vertex]);
            first = first.min(arrival + delay[wire]);
            last = last.max(arrival + delay[wire]);
        }
        if first < last {
            mismatch = mismatch.max(last - first);
        }
        ready[vertex] = last + kernel.vertices[vertex].latency;
        if !kernel.vertices[vertex].temporal {
            latency = latency.max(ready[vertex]);
        }
    }
    Timing {
        start,
        delay,
        latency,
        mismatch,
        slack,
    }
}
