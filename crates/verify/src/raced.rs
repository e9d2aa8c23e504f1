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

/// Of what both touch, the bytes from the first to the last of each pair of patterns.
fn common(accesses: &Accesses, read: &Use, write: &Use) -> Vec<Range<u64>> {
    let (ours, theirs) = (accesses.footprint_of(read), accesses.footprint_of(write));
    if ours.span.0 >= theirs.span.1 || theirs.span.0 >= ours.span.1 {
        return Vec::new();
    }
    let both = |a: Strided<'_>, b: Strided<'_>| {
        let (a, b) = (a.extent(), b.extent());
        a.0.max(b.0).max(0) as u64..a.1.min(b.1).max(0) as u64
    };
    let of_one = |a| {
        let theirs = accesses.fitting(theirs);
        theirs
            .filter(move |b| overlap(a, *b) != Overlap::Disjoint)
            .map(move |b| both(a, b))
    };
    accesses.fitting(ours).flat_map(of_one).collect()
}
