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
    /// Of these, walked.
    pub misses: u64,
    /// Translations fetched before they were asked for.
    pub prefetches: u64,
}

/// An entry: the process, the page, and when it was last used; 0 is never.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    process: u32,
    page: u64,
    used: u64,
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

    /// Looks up the pages of a range in rising order. Returns when all are there.
    pub(crate) fn look_up(
        &mut self,
        now: u64,
        process: u32,
        start: u64,
        bytes: u64,
        maps: Option<&[(u64, u64)]>,
    ) -> Result<u64, Unmapped> {
        if !is_mapped(maps, start, bytes) {
            return Err(Unmapped);
        }
        let mut ready = now;
        if bytes == 0 {
            return Ok(ready);
        }
        for page in start / self.page..=(start + bytes - 1) / self.page {
            self.counts.lookups += 1;
            if self.touch(process, page) {
                self.counts.hits += 1;
            } else {
                self.counts.misses += 1;
                self.fill(process, page);
                // As many walks at once as there are walkers; the one that is free first takes the next.
                if let Some(walker) = self.walkers.iter_mut().min() {
                    *walker = (*walker).max(now) + self.walk;
                    ready = ready.max(*walker);
                }
            }
            let next = page + 1;
            if self.prefetch && !self.holds(process, next) && is_mapped(maps, next * self.page, 1) {
                self.fill(process, next);
                self.counts.prefetches += 1;
            }
        }
        Ok(ready)
    }

    fn set(&mut self, page: u64) -> &mut [Entry] {
        let start = (page % self.sets) as usize * self.ways;
        &mut self.entries[start..start + self.ways]
    }

    fn holds(&mut self, process: u32, page: u64) -> bool {
        let is_it = |e: &Entry| e.used > 0 && e.page == page && e.process == process;
        self.set(page).iter().any(is_it)
    }

    fn touch(&mut self, process: u32, page: u64) -> bool {
        self.clock += 1;
        let clock = self.clock;
        let is_it = |e: &&mut Entry| e.used > 0 && e.page == page && e.process == process;
        let found = self.set(page).iter_mut().find(is_it);
        found.map(|entry| entry.used = clock).is_some()
    }

    fn fill(&mut self, process: u32, page: u64) {
        self.clock += 1;
        let used = self.clock;
        if let Some(oldest) = self.set(page).iter_mut().min_by_key(|e| e.used) {
            *oldest = Entry {
                process,
                page,
                used,
            };
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
