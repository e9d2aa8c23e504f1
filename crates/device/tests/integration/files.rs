//! Programs of files on the memory path: what they touch, what they share, what they cost.

use super::{ideal, workload};
use crate::memory::misses;
use chipless_device::{
    Engine, Figures, FileProgram, Program, Route, Setup, Simulated, StreamSetup, Touches, simulate,
};
use chipless_model::{
    Access, Buffer, Builder, Demand, Direction, Fault, Kernel, KernelId, Limits, Loop, MemoryKind,
    NewTask, Pattern, QueueId, Role, Storage, Time,
};
use chipless_sim::{TimingOnly, Verified, run};
use proptest::prelude::*;
use std::borrow::Cow;

/// Reads and writes patterns of the first buffer.
#[derive(Debug)]
struct Moves(Vec<(Direction, Pattern)>);

impl Kernel for Moves {
    fn operation(&self) -> Cow<'static, str> {
        "move".into()
    }
    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        for (direction, pattern) in &self.0 {
            let access = match direction {
                Direction::Read => Access::read(0usize.into(), pattern.clone()),
                Direction::Write => Access::write(0usize.into(), pattern.clone()),
            };
            visit(access);
        }
    }
    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

/// Transfers of one list, one after the other, each of so many bytes at 10 GB/s after 100 ns.
fn program(transfers: &[(u64, Vec<Pattern>)], size: u64) -> chipless_model::Program<'static> {
    let mut build = Builder::new("test", &Limits::default());
    build.part("test");
    let memory = build.memory("ddr", size, MemoryKind::Dram);
    build.buffer(Buffer::new("weights", memory, size, Role::Scratch));
    let ddr = build.resource("ddr", 20e9, 10e9);
    let queue = build.queue("dma0", 1);
    let mut first = None;
    for (bytes, patterns) in transfers {
        let reads = patterns.iter().map(|p| (Direction::Read, p.clone()));
        let kernel: KernelId = build.kernel(Moves(reads.collect()));
        let demand = Demand {
            resource: ddr,
            bytes: *bytes,
        };
        let task = NewTask {
            demands: &[demand],
            fixed: Time(100_000),
            ..NewTask::new(queue, kernel)
        };
        let id = build.task(task).expect("few tasks");
        first.get_or_insert(id);
    }
    if let Some(first) = first {
        build.release(QueueId::from_raw(0), first);
    }
    build.finish().expect("a program")
}

fn contiguous(transfers: &[(u64, u64)]) -> Vec<(u64, Vec<Pattern>)> {
    let one = |(at, size): &(u64, u64)| (*size, vec![Pattern::contiguous(*at, *size)]);
    transfers.iter().map(one).collect()
}

/// Runs programs at once, each so often one after the other, in processes of their own.
fn together<T>(
    programs: &[&chipless_model::Program<'static>],
    count: u64,
    figures: &Figures,
    then: impl FnOnce(&Simulated<'_>) -> T,
) -> T {
    let files: Vec<FileProgram<'_, '_>> = programs
        .iter()
        .map(|program| {
            let verified = Verified::assume(program);
            FileProgram {
                layers: Vec::new(),
                latency: run(&verified, &mut TimingOnly).timeline.end.0,
                longest: 0,
                tiles: Some(1),
                levels: Vec::new(),
                carried: Vec::new(),
                touches: Touches::of(program),
                fifos: Vec::new(),
                deepest: Vec::new(),
                routes: vec![Some(Route {
                    port: 0,
                    group: 0,
                    load: 1.0,
                })],
                verified,
            }
        })
        .collect();
    let mut text = "machine: npu4\ncontexts:\n".to_owned();
    for n in 0..files.len() {
        text.push_str(&format!("  c{n}: {{process: {n}}}\n"));
    }
    text.push_str("streams:\n");
    for n in 0..files.len() {
        text.push_str(&format!(
            "  - {{name: s{n}, context: c{n}, program: it, arrivals: {{in_flight: 1, count: {count}}}}}\n"
        ));
    }
    let workload = workload(&text);
    let streams = workload.streams.iter().zip(&files);
    let streams = streams.map(|(stream, file)| StreamSetup {
        stream,
        program: Program::File(file),
        engine: Engine::Nn,
        slower: &[],
        alone: [file.latency; 3],
    });
    let setup = Setup {
        contexts: &workload.contexts,
        agents: &[],
        streams: streams.collect(),
        duration: None,
        seed: 0,
        with_tasks: false,
        with_traffic: false,
    };
    then(&simulate(&setup, figures, None, None).expect("no task fails"))
}

const KB: u64 = 1000;

#[test]
fn two_programs_share_the_memory_and_one_does_not_share_with_itself() {
    let one = program(&contiguous(&[(0, 100 * KB)]), 1 << 20);
    let mean = |programs: &[&_], ddr: f64| {
        let mut figures = ideal();
        figures.bandwidth[8] = ddr;
        together(programs, 1, &figures, |found| found.mean(0).round() as u64)
    };
    // 100 ns and 10 µs alone, at 10 GB/s of its own; two need 20 GB/s.
    assert_eq!(mean(&[&one], 10e9), 10_100_000);
    assert_eq!(mean(&[&one, &one], 20e9), 10_100_000);
    assert_eq!(mean(&[&one, &one], 10e9), 20_100_000);
    assert_eq!(mean(&[&one], 5e9), 20_100_000);
}

#[test]
fn what_the_cache_holds_does_not_pass_the_memory() {
    let one = program(&contiguous(&[(0, 64 * KB)]), 1 << 20);
    let mut figures = Figures {
        cache_enabled: true,
        cache_size: 1 << 17,
        cache_ways: 16,
        cache_line: 64,
        ..ideal()
    };
    figures.bandwidth[8] = 1e9;
    // The first of three jobs takes 64 µs at 1 GB/s, the others 6.4 at their own rate.
    let mean = together(&[&one], 3, &figures, |found| found.mean(0).round() as u64);
    assert_eq!(mean, (64_100_000 + 2 * 6_500_000) / 3);
}

#[test]
fn walks_come_before_a_task_and_prefetch_takes_their_slots() {
    let pages = contiguous(&[(0, 64), (4096, 64), (8192, 64)]);
    let one = program(&pages, 3 * 4096);
    let with = |mmu_prefetch, walk_slots| Figures {
        mmu_enabled: true,
        mmu_prefetch,
        tlb_entries: 16,
        tlb_ways: 16,
        walk_level: 100_000,
        walk_slots,
        ..ideal()
    };
    let time =
        |figures: &Figures| together(&[&one], 1, figures, |found| found.mean(0).round() as u64);
    let plain = 3 * 106_400;
    assert_eq!(time(&with(false, 1)), plain + 3 * 400_000);
    // The page behind is on its way from the same instant on, in a slot of its own or behind the first walk.
    assert_eq!(time(&with(true, 2)), 2 * 400_000 + plain - 106_400);
    assert_eq!(time(&with(true, 1)), 3 * 400_000 + 106_400);
    // With a slot of its own, the first of two hits comes in time, and the second one, whose walk began with the first, too late.
    let hits = |figures: &Figures| {
        together(&[&one], 1, figures, |found| {
            (found.tlb().hits, found.tlb().late_hits)
        })
    };
    assert_eq!(hits(&with(true, 2)), (2, 1));
    assert_eq!(hits(&with(true, 1)), (2, 2));
}

proptest! {
    #![proptest_config(chipless_rounds::cases(24))]

    #[test]
    fn pages_and_lines_of_patterns_are_those_of_their_bytes(
        patterns in prop::collection::vec((0u64..1 << 17, 1u64..300, prop::collection::vec((1u64..6, 0i64..9000), 0..3)), 1..12),
        ways in prop::sample::select(vec![1u64, 4]),
    ) {
        let patterns: Vec<Pattern> = patterns
            .into_iter()
            .map(|(at, run, loops)| Pattern::new(at, run, loops.into_iter().map(|(count, stride)| Loop { count, stride })))
            .collect();
        let transfers: Vec<_> = patterns.iter().map(|p| (64, vec![p.clone()])).collect();
        let one = program(&transfers, 1 << 20);
        let figures = Figures {
            mmu_enabled: true,
            tlb_entries: 16,
            tlb_ways: ways,
            cache_enabled: true,
            cache_size: 1 << 14,
            cache_ways: ways,
            cache_line: 64,
            ..ideal()
        };
        // Byte by byte, but not the same page or line again at once.
        let units = |unit: u64| -> Vec<u64> {
            let of = |p: &Pattern| {
                let mut found: Vec<u64> = p.runs().flat_map(|at| at..at + p.run).map(|at| (0x8000_0000 + at) / unit).collect();
                found.dedup();
                found
            };
            patterns.iter().flat_map(of).collect()
        };
        for count in [1, 2] {
            let (pages, lines) = (units(4096).repeat(count), units(64).repeat(count));
            let (tlb, cache) = together(&[&one], count as u64, &figures, |found| (found.tlb(), found.cache()));
            prop_assert_eq!((tlb.lookups, tlb.misses), (pages.len() as u64, misses(&pages, 16 / ways, ways as usize)));
            let sets = (1 << 14) / 64 / ways;
            prop_assert_eq!((cache.accesses, cache.misses), (lines.len() as u64, misses(&lines, sets, ways as usize)));
        }
    }
}
