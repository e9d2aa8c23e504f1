//! The cache on the memory's side: sets of ways, the least recently used out first, ways by agent.
//!
//! Exact, or sampled: then one set in so many is simulated. Few lines are used very often and lie in single sets, so what the sampled
//! sets see of the accesses says little, and what they miss says nothing of the others. A small table that every access passes takes
//! the frequent ones out: of what is left, the sampled sets have their share, and so have their misses.

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

/// A line and when it was last used; 0 is never.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    line: u64,
    used: u64,
}

#[derive(Debug)]
pub(crate) struct Cache {
    line: u64,
    sets: u64,
    ways: usize,
    sample: u64,
    lines: Vec<Way>,
    clock: u64,
    pub(crate) tally: Tally,
    filter: Vec<u64>,
    /// What the last transfer that touched simulated sets missed of them.
    share: f64,
}

impl Cache {
    pub(crate) fn new(figures: &Figures) -> Cache {
        let (ways, line) = (figures.cache_ways, figures.cache_line);
        let sets = figures.cache_size / ways / line;
        let sample = figures.cache_sample.min(sets);
        Cache {
            line,
            sets,
            ways: ways as usize,
            sample,
            lines: vec![Way::default(); (sets.div_ceil(sample) * ways) as usize],
            clock: 0,
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
        let mut missed = 0;
        for line in first..=last {
            self.tally.accesses += 1;
            if !self.touch(line, line % self.sets, mask) {
                self.tally.misses += 1;
                let from = from.max(line * self.line);
                let to = (start + bytes).min((line + 1) * self.line);
                missed += to - from;
            }
        }
        missed
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
        self.clock += 1;
        let start = set as usize * self.ways;
        let ways = &mut self.lines[start..start + self.ways];
        if let Some(way) = ways.iter_mut().find(|way| way.used > 0 && way.line == line) {
            way.used = self.clock;
            return true;
        }
        let allowed = |(index, _): &(usize, &mut Way)| mask >> index & 1 == 1;
        let oldest = ways
            .iter_mut()
            .enumerate()
            .filter(allowed)
            .min_by_key(|(_, way)| way.used);
        if let Some((_, way)) = oldest {
            *way = Way {
                line,
                used: self.clock,
            };
        }
        false
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
        let mut order: Vec<&Way> = Vec::with_capacity(self.ways);
        for set in self.lines.chunks(self.ways) {
            order.clear();
            order.extend(set.iter().filter(|way| way.used > 0));
            order.sort_unstable_by_key(|way| std::cmp::Reverse(way.used));
            contents.push(order.len() as u64);
            contents.extend(order.iter().map(|way| way.line));
        }
        contents.extend(&self.filter);
        contents.push(self.share.to_bits());
    }

    /// Holds what [`contents`](Cache::contents) told.
    pub(crate) fn hold(&mut self, contents: &mut impl Iterator<Item = u64>) {
        self.lines.fill(Way::default());
        self.clock = self.ways as u64;
        for set in self.lines.chunks_mut(self.ways) {
            let count = contents.next().unwrap_or(0) as usize;
            for (place, way) in set.iter_mut().take(count).enumerate() {
                *way = Way {
                    line: contents.next().unwrap_or(0),
                    used: (self.ways - place) as u64,
                };
            }
        }
        for (line, kept) in self.filter.iter_mut().zip(&mut *contents) {
            *line = kept;
        }
        self.share = contents.next().map_or(1.0, f64::from_bits);
    }
}
