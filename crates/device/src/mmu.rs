//! Translation of addresses: a set-associative TLB, page walks with few slots, prefetch of the page that follows.

use crate::figures::Figures;
use schemars::JsonSchema;

/// Pages looked up, found, missed, and fetched before they were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, serde::Serialize)]
pub struct TlbCounts {
    /// Pages looked up.
    pub lookups: u64,
    /// Of these, found.
    pub hits: u64,
    /// Of those found, the ones whose walk was still under way, so that the transfer waited for it.
    pub late_hits: u64,
    /// Of the pages looked up, walked.
    pub misses: u64,
    /// Translations fetched before they were asked for.
    pub prefetches: u64,
}

impl std::ops::AddAssign for TlbCounts {
    fn add_assign(&mut self, other: TlbCounts) {
        self.lookups += other.lookups;
        self.hits += other.hits;
        self.late_hits += other.late_hits;
        self.misses += other.misses;
        self.prefetches += other.prefetches;
    }
}

/// An entry: the process, the page, when it was last used, and when it is there; last used at 0 is never.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    process: u32,
    page: u64,
    used: u64,
    ready: u64,
}

#[derive(Debug)]
pub(crate) struct Mmu {
    page: u64,
    sets: u64,
    ways: usize,
    entries: Vec<Entry>,
    clock: u64,
    walk: u64,
    /// When each walker is free.
    walkers: Vec<u64>,
    prefetch: bool,
    pub(crate) counts: TlbCounts,
}

/// An address that is not mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unmapped;

/// An address space: of which process, and its mapped ranges, first address and size; `None`: every address is mapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space<'m> {
    pub(crate) process: u32,
    pub(crate) maps: Option<&'m [(u64, u64)]>,
}

/// The pages of a transfer, which are looked up at an instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookUp {
    now: u64,
    /// When all that have been looked up are there.
    pub(crate) ready: u64,
    /// Translations that were fetched on the way.
    pub(crate) prefetched: u64,
    last: Option<u64>,
}

impl LookUp {
    pub(crate) const fn at(now: u64) -> LookUp {
        LookUp {
            now,
            ready: now,
            prefetched: 0,
            last: None,
        }
    }
}

impl Mmu {
    pub(crate) fn new(figures: &Figures) -> Mmu {
        let sets = figures.tlb_entries / figures.tlb_ways;
        Mmu {
            page: figures.mmu_page,
            sets,
            ways: figures.tlb_ways as usize,
            entries: vec![Entry::default(); figures.tlb_entries as usize],
            clock: 0,
            walk: figures.walk_levels.saturating_mul(figures.walk_level),
            walkers: vec![0; figures.walk_slots.min(1 << 16) as usize],
            prefetch: figures.mmu_prefetch,
            counts: TlbCounts::default(),
        }
    }

    /// Looks up the pages of a range in rising order, but not again the one that was looked up last.
    pub(crate) fn look_up(
        &mut self,
        space: Space<'_>,
        start: u64,
        bytes: u64,
        look_up: &mut LookUp,
    ) -> Result<(), Unmapped> {
        if !is_mapped(space.maps, start, bytes) {
            return Err(Unmapped);
        }
        if bytes == 0 {
            return Ok(());
        }
        for page in start / self.page..=(start + bytes - 1) / self.page {
            if look_up.last.replace(page) == Some(page) {
                continue;
            }
            self.counts.lookups += 1;
            let ready = if let Some(ready) = self.touch(space.process, page) {
                self.counts.hits += 1;
                self.counts.late_hits += u64::from(ready > look_up.now);
                ready
            } else {
                self.counts.misses += 1;
                self.walk(space.process, page, look_up.now)
            };
            look_up.ready = look_up.ready.max(ready);
            let next = page + 1;
            if self.prefetch
                && !self.holds(space.process, next)
                && is_mapped(space.maps, next * self.page, 1)
            {
                self.walk(space.process, next, look_up.now);
                self.counts.prefetches += 1;
                look_up.prefetched += 1;
            }
        }
        Ok(())
    }

    /// Fetches a translation: as many walks at once as there are walkers, and the one that is free first takes the next. Returns when it is there.
    fn walk(&mut self, process: u32, page: u64, now: u64) -> u64 {
        let mut ready = now;
        if let Some(walker) = self.walkers.iter_mut().min() {
            *walker = (*walker).max(now).saturating_add(self.walk);
            ready = *walker;
        }
        self.clock += 1;
        let used = self.clock;
        if let Some(oldest) = self.set(page).iter_mut().min_by_key(|e| e.used) {
            *oldest = Entry {
                process,
                page,
                used,
                ready,
            };
        }
        ready
    }

    fn set(&mut self, page: u64) -> &mut [Entry] {
        let start = (page % self.sets) as usize * self.ways;
        &mut self.entries[start..start + self.ways]
    }

    fn holds(&mut self, process: u32, page: u64) -> bool {
        let is_it = |e: &Entry| e.used > 0 && e.page == page && e.process == process;
        self.set(page).iter().any(is_it)
    }

    /// When a translation that the TLB has is there.
    fn touch(&mut self, process: u32, page: u64) -> Option<u64> {
        self.clock += 1;
        let clock = self.clock;
        let is_it = |e: &&mut Entry| e.used > 0 && e.page == page && e.process == process;
        let entry = self.set(page).iter_mut().find(is_it)?;
        entry.used = clock;
        Some(entry.ready)
    }

    /// Walks in flight are done.
    pub(crate) fn settle(&mut self, now: u64) {
        if self.walkers.iter().any(|walker| *walker > now) {
            self.walkers.fill(now);
            for entry in &mut self.entries {
                entry.ready = entry.ready.min(now);
            }
        }
    }

    /// What the TLB holds: of each set pages with their processes, the last used first; nothing in flight counts.
    pub(crate) fn contents(&self, contents: &mut Vec<u64>) {
        let mut order: Vec<&Entry> = Vec::with_capacity(self.ways);
        for set in self.entries.chunks(self.ways) {
            order.clear();
            order.extend(set.iter().filter(|entry| entry.used > 0));
            order.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.used));
            contents.push(order.len() as u64);
            for entry in &order {
                contents.extend([u64::from(entry.process), entry.page]);
            }
        }
    }

    /// Holds what [`contents`](Mmu::contents) told.
    pub(crate) fn hold(&mut self, contents: &mut impl Iterator<Item = u64>) {
        self.entries.fill(Entry::default());
        self.walkers.fill(0);
        self.clock = self.ways as u64;
        for set in self.entries.chunks_mut(self.ways) {
            let count = contents.next().unwrap_or(0) as usize;
            for (way, entry) in set.iter_mut().take(count).enumerate() {
                let (process, page) = (contents.next(), contents.next());
                *entry = Entry {
                    process: process.unwrap_or(0) as u32,
                    page: page.unwrap_or(0),
                    used: (self.ways - way) as u64,
                    ready: 0,
                };
            }
        }
    }
}

fn is_mapped(maps: Option<&[(u64, u64)]>, start: u64, bytes: u64) -> bool {
    let Some(maps) = maps else { return true };
    // Ranges may touch each other, so the mapped part grows until it ends.
    let (mut at, end) = (start, start + bytes);
    while at < end {
        let holds = |(base, size): &&(u64, u64)| *base <= at && at - base < *size;
        match maps.iter().find(holds) {
            Some((base, size)) => at = base + size,
            None => return false,
        }
    }
    true
}
