//! Which tensors share bytes while both are there.

use super::Lint;
use crate::lower::residents::Residents;
use crate::schedule::WeightSource;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// Pairs that are kept; a schedule with more is no schedule.
const MOST_PAIRS: usize = 1 << 18;

pub(super) struct Places {
    /// For each tensor of L2 that shares bytes with others while both stand in a snapshot: the others.
    pub(super) shared: HashMap<u32, SmallVec<[u32; 2]>>,
    /// For each entry of a weight buffer that shares bytes with others: the first snapshot from which it holds nothing.
    pub(super) lost: HashMap<u32, usize>,
}

impl Places {
    pub(super) fn new(lint: Lint<'_>, residents: &Residents<'_>) -> Places {
        let mut places = Places {
            shared: HashMap::new(),
            lost: HashMap::new(),
        };
        let (mut known, mut known_held) = (HashSet::new(), HashSet::new());
        let mut index = 0;
        for core in &lint.schedule.cores {
            for _ in &core.workloads {
                places.snapshot(residents, index, &mut known);
                places.weights(residents, index, &mut known_held);
                index += 1;
            }
        }
        places
    }

    fn snapshot(&mut self, residents: &Residents<'_>, index: u32, known: &mut HashSet<(u32, u32)>) {
        let numbers = residents.of(index as usize);
        let mut spans: Vec<(u64, u64, u32)> = Vec::with_capacity(numbers.len());
        for &number in numbers {
            // Tensors without an address have bytes of their own.
            if residents.all[number as usize].tensor.address.is_some() {
                let extents = residents.all[number as usize].extents();
                spans.extend(extents.iter().map(|(first, end)| (*first, *end, number)));
            }
        }
        pairs(&mut spans, |a, b| {
            let pair = (a.min(b), a.max(b));
            if a != b && known.len() < MOST_PAIRS && known.insert(pair) {
                self.shared.entry(a).or_default().push(b);
                self.shared.entry(b).or_default().push(a);
            }
            known.len() < MOST_PAIRS
        });
    }

    /// Two loads that share bytes destroy each other; a refill from L2 destroys what was loaded before it, and two refills
    /// for the same workload each other.
    fn weights(&mut self, residents: &Residents<'_>, index: u32, known: &mut HashSet<(u32, u32)>) {
        let numbers = residents.held_of(index as usize);
        let mut spans: Vec<(u64, u64, u32)> = numbers
            .iter()
            .map(|number| {
                let tensor = residents.held[*number as usize].tensor;
                let first = u64::from(tensor.address);
                (first, first.saturating_add(tensor.size), *number)
            })
            .collect();
        pairs(&mut spans, |a, b| {
            if a == b || !known.insert((a.min(b), a.max(b))) {
                return true;
            }
            let (one, two) = (&residents.held[a as usize], &residents.held[b as usize]);
            let from_dram = [one, two].map(|held| held.tensor.source == WeightSource::Dram);
            // What comes from L2 comes for its workload; what comes from DRAM may come at any time.
            let from = match from_dram {
                [true, true] => [0, 0],
                [true, false] => [two.first, two.first],
                [false, true] => [one.first, one.first],
                [false, false] => [one.first.max(two.first); 2],
            };
            for (number, from) in [(a, from[0]), (b, from[1])] {
                let lost = self.lost.entry(number).or_insert(from);
                *lost = from.min(*lost);
            }
            known.len() < MOST_PAIRS
        });
    }
}

/// Visits pairs of spans that have bytes in common, until told to stop.
fn pairs(spans: &mut Vec<(u64, u64, u32)>, mut visit: impl FnMut(u32, u32) -> bool) {
    spans.retain(|(first, end, _)| first < end);
    spans.sort_unstable();
    for (n, a) in spans.iter().enumerate() {
        for b in &spans[n + 1..] {
            if b.0 >= a.1 {
                break;
            }
            if !visit(a.2, b.2) {
                return;
            }
        }
    }
}
