//! The cache on the memory's side: sets of ways, the least recently used out first, ways by agent.
//!
//! Exact, or sampled: then one set in so many is simulated. Few lines are used very often and lie in single sets, so what the sampled
//! sets see of the accesses says little, and what they miss says nothing of the others. A small table that every access passes takes
//! the frequent ones out: of what is left, the sampled sets have their share, and so have their misses.
//!
//! Transfers touch long ranges, so neighbouring sets mostly see the same. Sets lie in groups. As long as every range covers a group or leaves it
//! alone, its sets hold lines that follow each other, in one order: the first set stands for all of them. A range that ends inside a group tells
//! its sets apart.

use crate::figures::Figures;
use schemars::JsonSchema;

/// Lines touched, found and missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, serde::Serialize)]
pub struct CacheCounts {
    /// Lines touched.
    pub accesses: u64,
    /// Of these, found.
    pub hits: u64,
    /// Of these, fetched from memory.
    pub misses: u64,
}

/// What is counted of accesses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    accesses: u64,
    /// Of simulated sets.
    misses: u64,
    /// Lines that passed the filter: of all sets, and of simulated ones.
    rare: (u64, u64),
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.accesses += other.accesses;
        self.misses += other.misses;
        self.rare.0 += other.rare.0;
        self.rare.1 += other.rare.1;
    }
}

/// No line.
const EMPTY: u64 = u64::MAX;
/// Sets of a group.
const GROUP: u64 = 16;

#[derive(Debug)]
pub(crate) struct Cache {
    line: u64,
    sets: u64,
    ways: usize,
    sample: u64,
    /// Of each set the lines that it holds, the last used first. That is how every access finds them, and a set is two lines of the host's cache.
    lines: Vec<u64>,
    /// In which way each of them is, where agents may fill some ways only.
    places: Vec<u8>,
    /// Sets of a group; 1 where they are not grouped.
    group: u64,
    /// By group, whether its first set stands for all.
    is_one: Vec<bool>,
    pub(crate) tally: Tally,
    filter: Vec<u64>,
    /// What the last transfer that touched simulated sets missed of them.
    share: f64,
}

/// The line that is so many sets beside a line.
const fn beside(line: u64, sets: u64) -> u64 {
    match line {
        EMPTY => EMPTY,
        line => line + sets,
    }
}

impl Cache {
    pub(crate) fn new(figures: &Figures) -> Cache {
        let (ways, line) = (figures.cache_ways, figures.cache_line);
        let sets = figures.cache_size / ways / line;
        let sample = figures.cache_sample.min(sets);
        let count = (sets.div_ceil(sample) * ways) as usize;
        let group = if sample == 1 && sets.is_multiple_of(GROUP) {
            GROUP
        } else {
            1
        };
        // The first way is filled first: it is the last one used, as long as none is.
        let places = (0..ways as u8).rev().cycle();
        Cache {
            line,
            sets,
            ways: ways as usize,
            sample,
            lines: vec![EMPTY; count],
            group,
            is_one: vec![group > 1; sets.div_ceil(group) as usize],
            places: if figures.cache_masks.is_empty() {
                Vec::new()
            } else {
                places.take(count).collect()
            },
            tally: Tally::default(),
            share: 1.0,
            filter: if sample > 1 {
                vec![u64::MAX; (sets * ways) as usize]
            } else {
                Vec::new()
            },
        }
    }

    /// Touches the lines of a range in rising order, but for the one that the transfer touched last; those that are missed may fill the ways
    /// of the mask. Returns how many of its bytes the memory must give.
    pub(crate) fn access(
        &mut self,
        start: u64,
        bytes: u64,
        mask: u64,
        touched_last: &mut Option<u64>,
    ) -> u64 {
        if bytes == 0 {
            return 0;
        }
        let (mut first, last) = (start / self.line, (start + bytes - 1) / self.line);
        let mut from = start;
        if touched_last.replace(last) == Some(first) {
            first += 1;
            from = (first * self.line).min(start + bytes);
        }
        if first > last {
            return 0;
        }
        if self.sample > 1 {
            return self.access_sampled(first, last, start + bytes - from, mask);
        }
        let (mut line, mut set) = (first, first % self.sets);
        let (mut missed, mut misses) = (0, 0);
        while line <= last {
            let number = (set / self.group) as usize;
            let is_whole = set.is_multiple_of(self.group) && last - line >= self.group - 1;
            let lines = if self.is_one[number] && is_whole {
                self.group
            } else {
                self.tell_apart(number);
                1
            };
            if !self.touch(line, set, mask) {
                misses += lines;
                let from = from.max(line * self.line);
                let to = (start + bytes).min((line + lines) * self.line);
                missed += to - from;
            }
            line += lines;
            set += lines;
            if self.group > 1 && lines == 1 && set.is_multiple_of(self.group) {
                self.put_together(number);
            }
            if set == self.sets {
                set = 0;
            }
        }
        self.tally.accesses += last - first + 1;
        self.tally.misses += misses;
        missed
    }

    /// The sets of a group hold what its first one stood for.
    fn tell_apart(&mut self, number: usize) {
        if !std::mem::take(&mut self.is_one[number]) {
            return;
        }
        let (ways, sets) = (self.ways, self.group as usize);
        let start = number * sets * ways;
        let (first, others) = self.lines[start..start + sets * ways].split_at_mut(ways);
        for (set, lines) in (1..).zip(others.chunks_mut(ways)) {
            for (line, first) in lines.iter_mut().zip(&*first) {
                *line = beside(*first, set);
            }
        }
        if let Some(places) = self.places.get_mut(start..start + sets * ways) {
            let (first, others) = places.split_at_mut(ways);
            others
                .chunks_mut(ways)
                .for_each(|set| set.copy_from_slice(first));
        }
    }

    /// The first set of a group stands for all again, where they hold lines that follow each other.
    fn put_together(&mut self, number: usize) {
        let (ways, sets) = (self.ways, self.group as usize);
        let start = number * sets * ways;
        let (first, others) = self.lines[start..start + sets * ways].split_at(ways);
        let is_one = (1..).zip(others.chunks(ways)).all(|(set, lines)| {
            let mut pairs = lines.iter().zip(first);
            pairs.all(|(line, first)| *line == beside(*first, set))
        });
        let have_places = self.places.get(start..start + sets * ways);
        let in_order = have_places.is_none_or(|places| {
            let (first, others) = places.split_at(ways);
            others.chunks(ways).all(|set| set == first)
        });
        self.is_one[number] = is_one && in_order;
    }

    /// Touches the line at an address. Returns how many bytes the memory must give: all of the line, or none.
    pub(crate) fn read_line(&mut self, address: u64, mask: u64) -> u64 {
        self.access(address / self.line * self.line, self.line, mask, &mut None)
    }

    fn access_sampled(&mut self, first: u64, last: u64, bytes: u64, mask: u64) -> u64 {
        let (touched, before) = (last - first + 1, self.tally);
        for line in first..=last {
            let place =
                (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize % self.filter.len();
            let is_rare = std::mem::replace(&mut self.filter[place], line) != line;
            self.tally.rare.0 += u64::from(is_rare);
            let set = line % self.sets;
            if set.is_multiple_of(self.sample) {
                self.tally.rare.1 += u64::from(is_rare);
                self.tally.misses += u64::from(!self.touch(line, set / self.sample, mask));
            }
        }
        self.tally.accesses += touched;
        let rare = self.tally.rare.0 - before.rare.0;
        let sampled = self.tally.rare.1 - before.rare.1;
        // Short transfers may touch no simulated set: they are taken for one like the last that did.
        if sampled > 0 {
            self.share = (self.tally.misses - before.misses) as f64 / sampled as f64;
        }
        let missed = (self.share * rare as f64 / touched as f64).min(1.0) * bytes as f64;
        (missed.round() as u64).min(bytes)
    }

    /// Whether a line is there; afterwards it is, in one of the ways of the mask.
    fn touch(&mut self, line: u64, set: u64, mask: u64) -> bool {
        let start = set as usize * self.ways;
        let lines = &mut self.lines[start..start + self.ways];
        let found = lines.iter().position(|held| *held == line);
        let at = match found {
            Some(at) => at,
            None if self.places.is_empty() => lines.len() - 1,
            None => {
                let places = &self.places[start..start + self.ways];
                let allowed = |place: &u8| mask >> place & 1 == 1;
                match places.iter().rposition(allowed) {
                    Some(at) => at,
                    None => return false,
                }
            }
        };
        lines.copy_within(..at, 1);
        lines[0] = line;
        if let Some(places) = self.places.get_mut(start..=start + at) {
            places.rotate_right(1);
        }
        found.is_some()
    }

    /// What was touched, found and missed: counted, or estimated from the simulated sets.
    pub(crate) fn counts(&self) -> CacheCounts {
        let Tally {
            accesses,
            misses,
            rare,
        } = self.tally;
        let misses = if self.sample > 1 && rare.1 > 0 {
            let share = misses as f64 / rare.1 as f64;
            ((share * rare.0 as f64).round() as u64).min(accesses)
        } else {
            misses
        };
        CacheCounts {
            accesses,
            hits: accesses - misses,
            misses,
        }
    }

    /// What the cache holds: of each set the lines, the last used first, and what sampling keeps. Where agents may fill some ways only, the
    /// order does not say all.
    pub(crate) fn contents(&self, contents: &mut Vec<u64>) {
        let sets = self.group as usize;
        let groups = self.lines.chunks(sets * self.ways).zip(&self.is_one);
        for (lines, is_one) in groups {
            for (number, own) in (0..).zip(lines.chunks(self.ways)) {
                let (lines, beside_first) = if *is_one {
                    (&lines[..self.ways], number)
                } else {
                    (own, 0)
                };
                let held = lines.iter().filter(|line| **line != EMPTY);
                contents.push(held.clone().count() as u64);
                contents.extend(held.map(|line| line + beside_first));
            }
        }
        contents.extend(&self.filter);
        contents.push(self.share.to_bits());
    }

    /// Holds what [`contents`](Cache::contents) told.
    pub(crate) fn hold(&mut self, contents: &mut impl Iterator<Item = u64>) {
        self.lines.fill(EMPTY);
        for set in self.lines.chunks_mut(self.ways) {
            let count = contents.next().unwrap_or(0) as usize;
            for line in set.iter_mut().take(count) {
                *line = contents.next().unwrap_or(EMPTY);
            }
        }
        self.is_one.fill(false);
        if self.group > 1 {
            (0..self.is_one.len()).for_each(|number| self.put_together(number));
        }
        for (line, kept) in self.filter.iter_mut().zip(&mut *contents) {
            *line = kept;
        }
        self.share = contents.next().map_or(1.0, f64::from_bits);
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, CacheCounts};
    use crate::figures::Figures;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// The definition: of each set the ways, with the line and when it was last used.
    struct Naive {
        ways: Vec<Vec<Option<(u64, u64)>>>,
        clock: u64,
        counts: CacheCounts,
    }

    impl Naive {
        fn access(&mut self, start: u64, bytes: u64, line_bytes: u64, mask: u64) -> u64 {
            let mut missed = 0;
            for line in start / line_bytes..=(start + bytes - 1) / line_bytes {
                self.clock += 1;
                self.counts.accesses += 1;
                let sets = self.ways.len() as u64;
                let set = &mut self.ways[(line % sets) as usize];
                if let Some(way) = set.iter_mut().flatten().find(|way| way.0 == line) {
                    way.1 = self.clock;
                    self.counts.hits += 1;
                    continue;
                }
                self.counts.misses += 1;
                let (low, high) = (line * line_bytes, (line + 1) * line_bytes);
                missed += high.min(start + bytes) - low.max(start);
                let allowed = (0..set.len()).filter(|way| mask >> way & 1 == 1);
                let oldest = allowed.min_by_key(|way| set[*way].map_or(0, |way| way.1));
                if let Some(way) = oldest {
                    set[way] = Some((line, self.clock));
                }
            }
            missed
        }
    }

    fn figures(sets: u64, ways: u64, masked: bool) -> Figures {
        let masks = [("a".to_owned(), 1)].into_iter().filter(|_| masked);
        Figures {
            cache_enabled: true,
            cache_ways: ways,
            cache_line: 64,
            cache_size: sets * ways * 64,
            cache_masks: masks.collect::<BTreeMap<_, _>>(),
            ..Figures::default()
        }
    }

    proptest! {
        #[test]
        fn grouped_sets_do_what_single_ones_do(
            sets in prop_oneof![Just(16u64), Just(64), Just(48), Just(24)],
            ways in 1u64..6,
            masked: bool,
            accesses in prop::collection::vec((0u64..200, 0u64..64, 1u64..9000, 0u64..4, any::<bool>()), 1..60),
        ) {
            let figures = figures(sets, ways, masked);
            let mut cache = Cache::new(&figures);
            let mut naive = Naive {
                ways: vec![vec![None; ways as usize]; sets as usize],
                clock: 0,
                counts: CacheCounts::default(),
            };
            for (group, within, bytes, mask, is_aligned) in accesses {
                let (start, bytes) = if is_aligned {
                    (group * 1024, bytes.div_ceil(1024) * 1024)
                } else {
                    (group * 1024 + within * 16, bytes)
                };
                let mask = if masked { 0b11_0101 >> mask } else { u64::MAX };
                let missed = cache.access(start, bytes, mask, &mut None);
                prop_assert_eq!(missed, naive.access(start, bytes, 64, mask));
                prop_assert_eq!(cache.counts(), naive.counts);
                if !masked {
                    // A state that is kept and held again changes nothing, and is one and the same however it came about.
                    let (mut kept, mut again) = (Vec::new(), Vec::new());
                    cache.contents(&mut kept);
                    cache.hold(&mut kept.iter().copied());
                    cache.contents(&mut again);
                    prop_assert_eq!(kept, again);
                }
            }
        }
    }
}
