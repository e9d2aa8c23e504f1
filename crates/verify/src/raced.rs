//! Reads that a race leaves in doubt.
//!
//! Whichever of two tasks comes first, one that writes and one that reads, the memory is the same behind both: what the order decides is the value
//! that was read. So a program whose outputs do not depend on such values is sound, though nothing orders the two.

use crate::access::Strided;
use crate::clock::reaches;
use crate::footprint::{Accesses, Use};
use crate::order::Order;
use crate::overlap::{Overlap, overlap};
use chipless_model::{BufferId, Direction};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ops::Range;

/// Pairs of a read and a write that are compared, at most: of programs with more of them, every race counts.
const PAIRS: usize = 1 << 24;

/// Runs of a pattern, at most, that are looked at one by one.
const RUNS: u64 = 1 << 16;

/// By use, bytes that it reads and that a task which nothing orders with it writes: those, and perhaps some between them.
pub(crate) type Raced = FxHashMap<u32, Vec<Range<u64>>>;

/// All such reads of some buffers; `None` where there are too many to compare.
pub(crate) fn reads(
    accesses: &Accesses,
    order: &Order,
    buffers: &BTreeSet<BufferId>,
) -> Option<Raced> {
    let mut raced = Raced::default();
    for buffer in buffers {
        let of = |direction| {
            let uses = (0u32..).zip(accesses.iter());
            uses.filter(move |(_, entry)| {
                entry.direction == direction && accesses.footprint_of(entry).buffer == *buffer
            })
        };
        let writes: Vec<&Use> = of(Direction::Write).map(|(_, entry)| entry).collect();
        if writes.len().saturating_mul(of(Direction::Read).count()) > PAIRS {
            return None;
        }
        // Where writes race, too, more than what is read depends on the order.
        for (number, one) in writes.iter().enumerate() {
            let of_one = (order.start(one.task), order.completion(one.task));
            for other in &writes[..number] {
                let is_ordered = one.task == other.task
                    || reaches(of_one.0, order.completion(other.task))
                    || reaches(order.start(other.task), of_one.1);
                if !is_ordered && !common(accesses, one, other).is_empty() {
                    return None;
                }
            }
        }
        for (index, read) in of(Direction::Read) {
            let (start, end) = (order.start(read.task), order.read(read.task));
            for write in &writes {
                let is_ordered = read.task == write.task
                    || reaches(start, order.completion(write.task))
                    || reaches(order.start(write.task), end);
                if !is_ordered {
                    let bytes = common(accesses, read, write);
                    if !bytes.is_empty() {
                        raced.entry(index).or_default().extend(bytes);
                    }
                }
            }
        }
    }
    Some(raced)
}

/// The bytes that both touch. Of patterns with too many runs, those from the first to the last.
fn common(accesses: &Accesses, read: &Use, write: &Use) -> Vec<Range<u64>> {
    let (ours, theirs) = (accesses.footprint_of(read), accesses.footprint_of(write));
    let mut found = Vec::new();
    if ours.span.0 >= theirs.span.1 || theirs.span.0 >= ours.span.1 {
        return found;
    }
    for one in accesses.fitting(ours) {
        for other in accesses.fitting(theirs) {
            match overlap(one, other) {
                Overlap::Disjoint => {}
                Overlap::Common(..)
                    if one.loops.iter().map(|l| l.count).product::<u64>() <= RUNS =>
                {
                    let mut open: Vec<(u64, u64)> = one.runs().collect();
                    while let Some((low, high)) = open.pop() {
                        if low < high
                            && let Overlap::Common(first, end) =
                                overlap(Strided::contiguous(low, high), other)
                        {
                            found.push(first..end);
                            open.extend([(low, first), (end, high)]);
                        }
                    }
                }
                Overlap::Common(..) | Overlap::TooHard => {
                    let (a, b) = (one.extent(), other.extent());
                    found.push(a.0.max(b.0).max(0) as u64..a.1.min(b.1).max(0) as u64);
                }
            }
        }
    }
    found
}
