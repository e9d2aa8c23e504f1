//! Transfers: what they share, pages, the cache, link agents.

use super::{US, ideal, job, jobs, with};
use chipless_device::{Figures, Status};
use proptest::prelude::*;

fn one(tasks: &str) -> String {
    format!(
        "machine: npu4\ncontexts: {{c: {{process: 1}}}}\nstreams:\n  - {{name: s, context: c, program: {{synthetic: {{tasks: [{tasks}]}}}}, arrivals: {{in_flight: 1, count: 1}}}}\n"
    )
}

/// A device whose resources carry so many bytes a second.
fn with_rates(rate: f64) -> Figures {
    Figures {
        bandwidth: [rate; 9],
        ..ideal()
    }
}

#[test]
fn a_list_waits_for_room_in_the_fifo() {
    let push = "{queue: p, push: 1MB, link_agent: 0, path: [group0], repeat: 11}";
    let found = jobs(&one(push), &with_rates(10e9));
    let job = job(&found, "s", 0);
    let ends: Vec<u64> = job
        .tasks
        .iter()
        .flatten()
        .map(|(_, end)| *end / US)
        .collect();
    assert_eq!(ends, [0, 0, 0, 0, 0, 0, 0, 0, 100, 200, 300]);
    assert_eq!(job.done_ps, 1100 * US);
}

#[test]
fn link_agents_are_those_of_a_jobs_tiles() {
    let push = |name: &str, group: u32| {
        format!(
            "  - {{name: {name}, context: {name}, program: {{synthetic: {{tasks: [{{push: 1MB, link_agent: 0, path: [group{group}], repeat: 9}}]}}}}, \
             arrivals: {{in_flight: 1, count: 1}}}}\n"
        )
    };
    let text = format!(
        "machine: npu4\ncontexts: {{a: {{process: 1}}, b: {{process: 2}}}}\nstreams:\n{}{}",
        push("a", 0),
        push("b", 1)
    );
    let found = jobs(&text, &with_rates(10e9));
    assert_eq!(
        ["a", "b"].map(|name| job(&found, name, 0).done_ps),
        [900 * US; 2]
    );
}

#[test]
fn the_prefetch_agent_reads_from_memory() {
    let reads = "{transfer: 4KiB, path: [ddr], address: 0x80000000}";
    let figures = Figures {
        mmu_enabled: true,
        mmu_prefetch: true,
        prefetch_bytes: 256,
        tlb_entries: 16,
        tlb_ways: 16,
        ..with_rates(1e9)
    };
    let found = jobs(&one(reads), &figures);
    // Two transfers of 256 bytes, and then one of what is left.
    assert_eq!(job(&found, "s", 0).done_ps, (4096 + 256) * 1000);
}

#[test]
fn walks_take_turns_on_their_slots() {
    let tasks = "{transfer: 40KiB, path: [ddr], address: 0x80000000}";
    let figures = Figures {
        mmu_enabled: true,
        tlb_entries: 64,
        tlb_ways: 64,
        walk_level: 100_000,
        walk_slots: 4,
        ..with_rates(1e9)
    };
    let found = jobs(&one(tasks), &figures);
    // Ten pages on four walkers of 400 ns.
    assert_eq!(job(&found, "s", 0).breakdown_ps.translation, 1_200_000);
    assert_eq!(job(&found, "s", 0).done_ps, 1_200_000 + 40960 * 1000);
}

#[test]
fn what_is_not_mapped_is_a_fault() {
    let text = "machine: npu4\ncontexts: {c: {process: 1}}\nstreams:\n  - {name: s, context: c, program: {synthetic: {maps: [{base: 0x80000000, size: 1MiB}], \
                tasks: [{compute: 5us}, {transfer: 128, path: [ddr], address: 0x800fffc0}]}}, arrivals: {in_flight: 2, count: 2}}\n";
    let figures = Figures {
        mmu_enabled: true,
        ..with_rates(1e9)
    };
    let found = jobs(text, &figures);
    let (first, second) = (job(&found, "s", 0), job(&found, "s", 1));
    assert_eq!((first.status, first.end_ps), (Status::Fault, Some(5 * US)));
    assert_eq!(second.status, Status::Aborted);
}

/// Sets of ways, the least recently used out first, as plain as can be.
pub(crate) fn misses(numbers: &[u64], sets: u64, ways: usize) -> u64 {
    let mut all: Vec<Vec<u64>> = vec![Vec::new(); sets as usize];
    let mut misses = 0;
    for number in numbers {
        let set = &mut all[(number % sets) as usize];
        match set.iter().position(|known| known == number) {
            Some(at) => drop(set.remove(at)),
            None => misses += 1,
        }
        set.push(*number);
        if set.len() > ways {
            set.remove(0);
        }
    }
    misses
}

proptest! {
    #![proptest_config(chipless_rounds::cases(24))]

    #[test]
    fn pages_and_lines_are_missed_as_in_a_plain_lru(
        reads in prop::collection::vec((0u64..1 << 18, 1u64..9000), 1..200),
        ways in prop::sample::select(vec![1u64, 2, 4, 16]),
    ) {
        let tasks: Vec<String> = reads
            .iter()
            .map(|(at, size)| format!("{{transfer: {size}, path: [ddr], address: {}}}", 0x8000_0000 + at))
            .collect();
        let figures = Figures {
            mmu_enabled: true,
            tlb_entries: 16,
            tlb_ways: ways,
            cache_enabled: true,
            cache_size: 1 << 15,
            cache_ways: ways,
            cache_line: 64,
            ..with_rates(1e9)
        };
        let units = |unit: u64| -> Vec<u64> {
            let range = |(at, size): &(u64, u64)| {
                let at = 0x8000_0000 + at;
                at / unit..=(at + size - 1) / unit
            };
            reads.iter().flat_map(range).collect()
        };
        let (pages, lines) = (units(4096), units(64));
        let (tlb, cache) = with(&one(&tasks.join(", ")), &figures, None, |found| (found.tlb(), found.cache()));
        prop_assert_eq!((tlb.lookups, tlb.misses), (pages.len() as u64, misses(&pages, 16 / ways, ways as usize)));
        let sets = (1 << 15) / 64 / ways;
        prop_assert_eq!((cache.accesses, cache.misses), (lines.len() as u64, misses(&lines, sets, ways as usize)));
    }
}
