//! Translation of addresses: a set-associative TLB, page walks with few slots, prefetch of the pages that follow, pages of several
//! sizes, and pages that the host maps on demand.

use crate::cache::Cache;
use crate::figures::Figures;
use schemars::JsonSchema;
use std::collections::BTreeSet;

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
    /// Of these, the ones that were there when they were asked for first.
    pub useful_prefetches: u64,
    /// Of these, the ones that were still under way when they were asked for first. All others were never used.
    pub late_prefetches: u64,
    /// Of the pages missed, the ones that the host had to put into the tables first.
    pub page_faults: u64,
}

impl std::ops::AddAssign for TlbCounts {
    fn add_assign(&mut self, other: TlbCounts) {
        self.lookups += other.lookups;
        self.hits += other.hits;
        self.late_hits += other.late_hits;
        self.misses += other.misses;
        self.prefetches += other.prefetches;
        self.useful_prefetches += other.useful_prefetches;
        self.late_prefetches += other.late_prefetches;
        self.page_faults += other.page_faults;
    }
}

/// A mapped range of an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    /// The first address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// Bytes of a page, a power of two; `None`: those of `mmu.page`.
    pub page: Option<u64>,
    /// Whether the host puts a page into the tables only when it is touched first.
    pub on_demand: bool,
}

impl Map {
    /// A range of pages of `mmu.page`, all in the tables.
    pub const fn new(base: u64, size: u64) -> Map {
        Map {
            base,
            size,
            page: None,
            on_demand: false,
        }
    }

    const fn holds(&self, address: u64) -> bool {
        self.base <= address && address - self.base < self.size
    }
}

/// A page: its number among those of its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Page {
    number: u64,
    /// The logarithm of its bytes.
    bits: u32,
}

impl Page {
    const fn start(self) -> u64 {
        self.number << self.bits
    }

    const fn end(self) -> u64 {
        (self.number + 1) << self.bits
    }

    /// As one number: numbers of pages have 36 bits, their sizes 6.
    const fn key(self) -> u64 {
        self.number << 6 | self.bits as u64
    }
}

/// An entry: the process, the [key](Page::key) of the page, when it was last used, when it is there, and whether it was fetched before
/// it was asked for and has not been asked for since; last used at 0 is never.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    process: u32,
    is_ahead: bool,
    page: u64,
    used: u64,
    ready: u64,
}

impl Entry {
    const fn is(&self, process: u32, page: Page) -> bool {
        self.used > 0 && self.page == page.key() && self.process == process
    }
}

#[derive(Debug)]
pub(crate) struct Mmu {
    page_bits: u32,
    sets: u64,
    ways: usize,
    entries: Vec<Entry>,
    clock: u64,
    levels: u64,
    /// Time of a level, and of one whose entry the cache holds.
    level: u64,
    level_hit: u64,
    /// Whether walks read their entries through the cache, and the ways that they may fill.
    is_cached: bool,
    mask: u64,
    /// When each walker is free.
    walkers: Vec<u64>,
    /// How many pages ahead are fetched.
    prefetch: u64,
    prefetch_bytes: u64,
    is_pipelined: bool,
    fault: u64,
    /// When the host is done with the page faults of before.
    host: u64,
    /// Pages of ranges on demand that the host has put into the tables.
    populated: BTreeSet<(u32, Page)>,
    pub(crate) counts: TlbCounts,
}

/// An address that is not mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unmapped;

/// An address space: of which process, and its mapped ranges; `None`: every address is mapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space<'m> {
    pub(crate) process: u32,
    pub(crate) maps: Option<&'m [Map]>,
}

/// The pages of a transfer, which are looked up from an instant on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookUp {
    now: u64,
    /// When all that have been looked up are there; of a pipelined transfer, when it would have begun to wait for none on its way.
    pub(crate) ready: u64,
    /// Bytes that walks read from memory.
    pub(crate) read: u64,
    /// Bytes a picosecond at which a pipelined transfer goes from page to page, and the time of those that have passed.
    rate: f64,
    passed: u64,
    last: Option<Page>,
}

impl LookUp {
    pub(crate) const fn at(now: u64, bytes_per_second: f64) -> LookUp {
        LookUp {
            now,
            ready: now,
            read: 0,
            rate: bytes_per_second * 1e-12,
            passed: 0,
            last: None,
        }
    }
}

/// Bit of the physical addresses of page tables: no process has it.
const TABLES: u64 = 1 << 63;
/// Bytes of an entry of a page table.
const ENTRY: u64 = 8;
/// Bits of an address that a level of the tables resolves.
const LEVEL_BITS: u32 = 9;
/// Bits of an address within the smallest page.
const SMALLEST_BITS: u32 = 12;

impl Mmu {
    pub(crate) fn new(figures: &Figures) -> Mmu {
        let sets = figures.tlb_entries / figures.tlb_ways;
        Mmu {
            page_bits: figures.mmu_page.trailing_zeros(),
            sets,
            ways: figures.tlb_ways as usize,
            entries: vec![Entry::default(); figures.tlb_entries as usize],
            clock: 0,
            levels: figures.walk_levels,
            level: figures.walk_level,
            level_hit: figures.walk_hit,
            is_cached: figures.walk_cached,
            mask: figures.cache_masks.get("mmu").copied().unwrap_or(u64::MAX),
            walkers: vec![0; figures.walk_slots.min(1 << 16) as usize],
            prefetch: if figures.mmu_prefetch {
                figures.prefetch_pages
            } else {
                0
            },
            prefetch_bytes: figures.prefetch_bytes,
            is_pipelined: figures.mmu_pipelined,
            fault: figures.mmu_fault,
            host: 0,
            populated: BTreeSet::new(),
            counts: TlbCounts::default(),
        }
    }

    /// Looks up the pages of a range in rising order, but not again the one that was looked up last: all at once, or, pipelined, each when
    /// the bytes of those before it have passed.
    pub(crate) fn look_up(
        &mut self,
        space: Space<'_>,
        start: u64,
        bytes: u64,
        cache: &mut Option<Cache>,
        look_up: &mut LookUp,
    ) -> Result<(), Unmapped> {
        if !is_mapped(space.maps, start, bytes) {
            return Err(Unmapped);
        }
        let (mut at, end) = (start, start + bytes);
        while at < end {
            let (page, map) = self.page(space, at);
            let passing = end.min(page.end()) - at;
            at = page.end();
            if look_up.last.replace(page) != Some(page) {
                let now = if self.is_pipelined {
                    look_up.ready.saturating_add(look_up.passed)
                } else {
                    look_up.now
                };
                let ready = self.translate(space.process, page, map, now, cache, look_up);
                if self.is_pipelined {
                    look_up.ready += ready.saturating_sub(now);
                } else {
                    look_up.ready = look_up.ready.max(ready);
                }
                self.prefetch(space, page, now, cache, look_up);
            }
            look_up.passed += (passing as f64 / look_up.rate) as u64;
        }
        Ok(())
    }

    /// Looks a page up at an instant. Returns when its translation is there.
    fn translate(
        &mut self,
        process: u32,
        page: Page,
        map: Option<&Map>,
        now: u64,
        cache: &mut Option<Cache>,
        look_up: &mut LookUp,
    ) -> u64 {
        self.counts.lookups += 1;
        if let Some((ready, was_ahead)) = self.touch(process, page) {
            let is_late = u64::from(ready > now);
            self.counts.hits += 1;
            self.counts.late_hits += is_late;
            self.counts.late_prefetches += u64::from(was_ahead) * is_late;
            self.counts.useful_prefetches += u64::from(was_ahead) * (1 - is_late);
            return ready;
        }
        self.counts.misses += 1;
        let mut from = now;
        if map.is_some_and(|map| map.on_demand) && self.populated.insert((process, page)) {
            // The host takes one fault after another.
            self.host = self.host.max(now).saturating_add(self.fault);
            self.counts.page_faults += 1;
            from = self.host;
        }
        self.walk(process, page, false, from, cache, look_up)
    }

    /// Fetches translations of the pages that follow, as far as they are in the tables.
    fn prefetch(
        &mut self,
        space: Space<'_>,
        mut page: Page,
        now: u64,
        cache: &mut Option<Cache>,
        look_up: &mut LookUp,
    ) {
        for _ in 0..self.prefetch {
            if !is_mapped(space.maps, page.end(), 1) {
                return;
            }
            let map;
            (page, map) = self.page(space, page.end());
            let is_there = !map.is_some_and(|map| map.on_demand)
                || self.populated.contains(&(space.process, page));
            if is_there && !self.holds(space.process, page) {
                self.walk(space.process, page, true, now, cache, look_up);
                self.counts.prefetches += 1;
            }
        }
    }

    /// The page at a mapped address, and the range that it is of.
    fn page<'m>(&self, space: Space<'m>, address: u64) -> (Page, Option<&'m Map>) {
        let maps = space.maps.unwrap_or_default();
        let map = maps.iter().find(|map| map.holds(address));
        let own = map.and_then(|map| map.page);
        let bits = own.map_or(self.page_bits, u64::trailing_zeros);
        let number = address >> bits;
        (Page { number, bits }, map)
    }

    /// Fetches a translation: as many walks at once as there are walkers, and the one that is free first takes the next. Returns when it is there.
    fn walk(
        &mut self,
        process: u32,
        page: Page,
        is_ahead: bool,
        now: u64,
        cache: &mut Option<Cache>,
        look_up: &mut LookUp,
    ) -> u64 {
        let (time, read) = self.read_tables(process, page, is_ahead, cache);
        look_up.read = look_up.read.saturating_add(read);
        let mut ready = now;
        if let Some(walker) = self.walkers.iter_mut().min() {
            *walker = (*walker).max(now).saturating_add(time);
            ready = *walker;
        }
        self.clock += 1;
        let used = self.clock;
        if let Some(oldest) = self.set(page).iter_mut().min_by_key(|e| e.used) {
            *oldest = Entry {
                process,
                is_ahead,
                page: page.key(),
                used,
                ready,
            };
        }
        ready
    }

    /// The time of a walk, and the bytes that it reads from memory besides what that time stands for. A page of 2 MiB ends it a level
    /// earlier, one of 1 GiB two.
    fn read_tables(
        &mut self,
        process: u32,
        page: Page,
        is_ahead: bool,
        cache: &mut Option<Cache>,
    ) -> (u64, u64) {
        let above = u64::from(page.bits.saturating_sub(SMALLEST_BITS) / LEVEL_BITS);
        let levels = self.levels.saturating_sub(above).max(1);
        let Some(cache) = cache.as_mut().filter(|_| self.is_cached) else {
            let read = if is_ahead { self.prefetch_bytes } else { 0 };
            return (levels.saturating_mul(self.level), read);
        };
        let (mut time, mut read) = (0u64, 0);
        for level in 0..levels {
            let resolves = LEVEL_BITS as u64 * (self.levels - 1 - level) + u64::from(SMALLEST_BITS);
            let index = page.start().checked_shr(resolves as u32).unwrap_or(0);
            let table = TABLES | u64::from(process) << 43 | (level & 7) << 40;
            let missed = cache.read_line(table | (index * ENTRY), self.mask);
            read += missed;
            let level = if missed > 0 {
                self.level
            } else {
                self.level_hit
            };
            time = time.saturating_add(level);
        }
        (time, read)
    }

    fn set(&mut self, page: Page) -> &mut [Entry] {
        let start = (page.number % self.sets) as usize * self.ways;
        &mut self.entries[start..start + self.ways]
    }

    fn holds(&mut self, process: u32, page: Page) -> bool {
        self.set(page).iter().any(|e| e.is(process, page))
    }

    /// When a translation that the TLB has is there, and whether it was fetched before anybody asked for it, who does now.
    fn touch(&mut self, process: u32, page: Page) -> Option<(u64, bool)> {
        self.clock += 1;
        let clock = self.clock;
        let entry = self.set(page).iter_mut().find(|e| e.is(process, page))?;
        entry.used = clock;
        Some((entry.ready, std::mem::take(&mut entry.is_ahead)))
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
                let process = u64::from(entry.process) << 1 | u64::from(entry.is_ahead);
                contents.extend([process, entry.page]);
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
                let process = process.unwrap_or(0);
                *entry = Entry {
                    process: (process >> 1) as u32,
                    is_ahead: process & 1 == 1,
                    page: page.unwrap_or(0),
                    used: (self.ways - way) as u64,
                    ready: 0,
                };
            }
        }
    }
}

fn is_mapped(maps: Option<&[Map]>, start: u64, bytes: u64) -> bool {
    let Some(maps) = maps else { return true };
    // Ranges may touch each other, so the mapped part grows until it ends.
    let (mut at, end) = (start, start + bytes);
    while at < end {
        match maps.iter().find(|map| map.holds(at)) {
            Some(map) => at = map.base + map.size,
            None => return false,
        }
    }
    true
}
