//! Translation beyond the TLB itself: prefetches that help, pages of several sizes, page faults, walks through the cache.

use super::{US, ideal, with};
use chipless_device::{Figures, TlbCounts};

/// Walks of 400 ns, one at a time, on a memory of so many bytes a second.
fn mmu(rate: f64) -> Figures {
    Figures {
        mmu_enabled: true,
        tlb_entries: 64,
        tlb_ways: 64,
        walk_level: 100_000,
        bandwidth: [rate; 9],
        ..ideal()
    }
}

/// What is counted of one job, and when it is done.
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the method itself is of one lifetime only"
)]
fn one(maps: &str, tasks: &str, figures: &Figures) -> (TlbCounts, u64) {
    let text = format!(
        "machine: npu4\ncontexts: {{c: {{process: 1}}}}\nstreams:\n  - {{name: s, context: c, program: {{synthetic: {{{maps}tasks: [{tasks}]}}}}, arrivals: {{in_flight: 1, count: 1}}}}\n"
    );
    let mut done = 0;
    let counts = with(
        &text,
        figures,
        Some(&mut |record| done = record.done_ps),
        |simulated| simulated.tlb(),
    );
    (counts, done)
}

const PAGE: u64 = 4096;
const WALK: u64 = 400_000;

#[test]
fn a_prefetch_that_was_in_time_is_useful() {
    let figures = Figures {
        mmu_prefetch: true,
        ..mmu(1e9)
    };
    let read = "{transfer: 4KiB, path: [ddr], address: 0x80000000, repeat: 8, stride: 4KiB}";
    let (tlb, done) = one("", read, &figures);
    assert_eq!((tlb.misses, tlb.prefetches), (1, 8));
    assert_eq!((tlb.useful_prefetches, tlb.late_prefetches), (7, 0));
    assert_eq!(done, WALK + 8 * PAGE * 1000);
}

#[test]
fn a_prefetch_within_one_look_up_is_late() {
    let figures = Figures {
        mmu_prefetch: true,
        ..mmu(1e9)
    };
    let read = "{transfer: 32KiB, path: [ddr], address: 0x80000000}";
    let (tlb, done) = one("", read, &figures);
    assert_eq!((tlb.misses, tlb.late_hits), (1, 7));
    assert_eq!((tlb.useful_prefetches, tlb.late_prefetches), (0, 7));
    assert_eq!(done, 8 * WALK + 8 * PAGE * 1000);
}

#[test]
fn a_pipelined_transfer_hides_walks_behind_its_bytes() {
    let read = "{transfer: 32KiB, path: [ddr], address: 0x80000000}";
    let run = |rate: f64, prefetch: bool| {
        let figures = Figures {
            mmu_pipelined: true,
            mmu_prefetch: prefetch,
            ..mmu(rate)
        };
        one("", read, &figures)
    };
    // A page takes 4.096 µs, ten times a walk.
    let (tlb, done) = run(1e9, true);
    assert_eq!((tlb.useful_prefetches, tlb.late_prefetches), (7, 0));
    assert_eq!(done, WALK + 8 * PAGE * 1000);
    assert_eq!(run(1e9, false).1, 8 * WALK + 8 * PAGE * 1000);
    // A page takes 40.96 ns: the walker is the bound, and the last page passes when its walk is over.
    let (tlb, done) = run(100e9, true);
    assert_eq!(tlb.late_prefetches, 7);
    assert_eq!(done, 8 * WALK + PAGE * 10);
}

#[test]
fn prefetches_reach_as_many_pages_ahead_as_they_are_told() {
    let read = "{transfer: 4KiB, path: [ddr], address: 0x80000000, repeat: 8, stride: 8KiB}";
    let useful = |prefetch_pages| {
        let figures = Figures {
            mmu_prefetch: true,
            prefetch_pages,
            ..mmu(1e9)
        };
        one("", read, &figures).0.useful_prefetches
    };
    // Every second page is read.
    assert_eq!((useful(1), useful(2)), (0, 7));
}

#[test]
fn a_large_page_is_walked_in_fewer_levels() {
    let maps = "maps: [{base: 0x80000000, size: 2MiB, page: 2MiB}, {base: 0x80200000, size: 8KiB}, {base: 0x80202000, size: 64KiB, page: 4KiB}, \
                {base: 0xc0000000, size: 1GiB, page: 1GiB}], ";
    let walk = |address: u64, bytes: u64| {
        let task = format!("{{transfer: {bytes}, path: [ddr], address: {address}}}");
        let (tlb, done) = one(maps, &task, &mmu(1e12));
        (tlb.misses, done - bytes)
    };
    assert_eq!(walk(0x8000_0000, 1 << 21), (1, 3 * WALK / 4));
    assert_eq!(walk(0xc000_0000, 1 << 21), (1, 2 * WALK / 4));
    // From the huge page over the small ones: three levels, and twice four on the one walker.
    assert_eq!(walk(0x801f_f000, 3 * PAGE), (3, 3 * WALK / 4 + 2 * WALK));
}

#[test]
fn the_host_maps_a_page_on_demand_once() {
    let maps = "maps: [{base: 0x80000000, size: 64KiB, on_demand: true}], ";
    let figures = Figures {
        mmu_fault: 10 * US,
        mmu_prefetch: true,
        tlb_entries: 1,
        tlb_ways: 1,
        ..mmu(1e12)
    };
    let read = "{transfer: 8KiB, path: [ddr], address: 0x80000000, repeat: 2, stride: 0}";
    let (tlb, done) = one(maps, read, &figures);
    // Two faults one after another and a walk behind the second. Then the one entry holds the second page: the first is walked again, and
    // prefetches the second, which is late.
    assert_eq!((tlb.page_faults, tlb.late_prefetches), (2, 1));
    assert_eq!(done, 20 * US + WALK + 2 * PAGE + 2 * WALK + 2 * PAGE);
}

#[test]
fn walks_through_the_cache_are_faster_behind_the_first() {
    let figures = Figures {
        walk_cached: true,
        walk_hit: 10_000,
        cache_enabled: true,
        cache_size: 1 << 20,
        cache_ways: 16,
        ..mmu(1e12)
    };
    let read = "{transfer: 4KiB, path: [network], address: 0x80000000, repeat: 9, stride: 4KiB}";
    let (tlb, done) = one("", read, &figures);
    assert_eq!(tlb.misses, 9);
    // Entries of 8 bytes in lines of 64: the ninth page misses the last level, and finds the three above it.
    assert_eq!(done, (4 * 100_000 + 7 * 40_000 + 130_000) + 9 * PAGE);
}

#[test]
fn a_range_is_made_of_whole_pages() {
    let text = "machine: npu4\ncontexts: {c: {process: 1}}\nstreams:\n  - {name: s, context: c, program: {synthetic: {maps: [{base: 0x80000000, size: 1MiB, page: 2MiB}], tasks: [{compute: 1us}]}}, arrivals: {in_flight: 1, count: 1}}\n";
    let finding = chipless_device::read(text, |_| Err(String::new())).expect_err("half a page");
    assert!(
        finding.message.contains("multiples of the page"),
        "{finding}"
    );
}
