//! Other agents on the chip: what they take from the NPU, and what they get.

use super::{MS, US, ideal, job, with, workload};
use chipless_device::{AgentReport, Figures, read};
use std::collections::BTreeMap;

fn text(agent: &str, tasks: &str) -> String {
    format!(
        "machine: npu4\ncontexts: {{c: {{process: 1}}}}\nagents: {{gpu: {{{agent}}}}}\nstreams:\n  - {{name: s, context: c, program: {{synthetic: {{tasks: [{tasks}]}}}}, arrivals: {{in_flight: 1, count: 1}}}}\n"
    )
}

/// When the job is done, and what the agent moved, on a memory of 10 GB/s.
fn run(agent: &str, tasks: &str, figures: Figures) -> (u64, AgentReport) {
    let text = text(agent, tasks);
    let agents = workload(&text).agents;
    let agents = agents.iter();
    let figures = Figures {
        agents: agents.map(|a| (a.name.clone(), a.figures)).collect(),
        ..figures
    };
    let mut records = Vec::new();
    let mut keep = |record: &chipless_device::Record| records.push(record.clone());
    let agent = with(&text, &figures, Some(&mut keep), |s| s.agents[0].clone());
    (job(&records, "s", 0).done_ps, agent)
}

pub(crate) const TRACE: &str = "# GPU, two reads\n0us, 100kB\n100us, 100kB, 0x100000\n";

fn memory() -> Figures {
    let mut bandwidth = [f64::INFINITY; 9];
    bandwidth[8] = 10e9;
    Figures {
        bandwidth,
        ..ideal()
    }
}

const READ: &str = "{transfer: 1MB, path: [ddr]}";

#[test]
fn steady_traffic_takes_its_weighted_share() {
    // It wants 8 of 10 GB/s: against one transfer it gets half, with weight 3 three quarters.
    for (weight, done, moved) in [(1, 200 * US, 1_000_000), (3, 400 * US, 3_000_000)] {
        let (at, gpu) = run(&format!("rate: 8GB/s, weight: {weight}"), READ, memory());
        assert_eq!((at, gpu.bytes), (done, moved));
        assert_eq!(gpu.wanted_bytes_per_s, Some(8e9));
    }
    // What it does not want, it leaves.
    assert_eq!(run("rate: 2GB/s", READ, memory()).0, 125 * US);
    assert_eq!(run("rate: 0GB/s", READ, memory()).0, 100 * US);
}

#[test]
fn bursts_share_only_while_they_last() {
    // For 20 µs of each 100 µs the transfer has half: 100 kB, then 800 kB at full rate, then 100 kB beside the second burst.
    let (done, gpu) = run("rate: 1GB/s, burst: 100kB", READ, memory());
    assert_eq!((done, gpu.bytes), (120 * US, 200_000));
}

#[test]
fn a_recorded_trace_is_played() {
    let (done, gpu) = run("at: gpu.csv", READ, memory());
    assert_eq!((done, gpu.bytes), (120 * US, 200_000));
    assert_eq!(gpu.wanted_bytes_per_s, None);
}

#[test]
fn a_working_set_evicts_what_its_ways_do_not_keep() {
    let tasks = "{transfer: 64KiB, path: [cache, ddr], address: 0x80000000}, {compute: 1ms}, {transfer: 64KiB, path: [cache, ddr], address: 0x80000000}";
    let with_mask = |mask: u64| {
        let figures = Figures {
            cache_enabled: true,
            cache_size: 128 << 10,
            cache_ways: 16,
            cache_masks: BTreeMap::from([("gpu".to_owned(), mask)]),
            ..memory()
        };
        run(
            "rate: 2GB/s, burst: 64KiB, working_set: 1MiB",
            tasks,
            figures,
        )
        .0
    };
    // The GPU reads two megabytes in the pause. In one way of its own it leaves the 64 KiB alone: they are read from memory once.
    let (alone, evicted) = (with_mask(1 << 15), with_mask(u64::MAX));
    assert!(alone > MS && alone < MS + 14 * US, "{alone}");
    assert!(evicted > alone + 6 * US, "{evicted}");
}

#[test]
fn what_makes_no_sense_is_refused_at_its_place() {
    let refusals = [
        ("rate: 1GB/s, at: x", "rate"),
        ("at: gpu.csv, burst: 64KiB", "beside `rate`"),
        ("rate: 1GB/s, weight: 0", "a weight above zero"),
        ("rate: fast", "a bandwidth"),
        ("rate: 1GB/s, path: [port0]", "network, cache or ddr"),
        ("rate: 1GB/s, path: [ddr, ddr]", "each resource once"),
        ("rate: 1GB/s, burst: 0", "a byte at least"),
        ("at: gpu.csv", "is not there"),
    ];
    for (agent, expected) in refusals {
        let missing = |_: &str| Err("is not there".to_owned());
        let finding = read(&text(agent, READ), missing).expect_err(agent);
        assert!(finding.message.contains(expected), "{agent}: {finding}");
        assert_eq!(finding.place.position.map(|(line, _)| line), Some(3));
    }
    let backwards = |_: &str| Ok("5us, 1kB\n1us, 1kB\n".to_owned());
    let finding = read(&text("at: gpu.csv", READ), backwards).expect_err("backwards");
    assert!(finding.message.contains("line 2 of gpu.csv"), "{finding}");
}

#[test]
fn what_passes_is_kept_over_time() {
    // 8 GB/s for 100 µs, then 5 of 10 GB/s beside a megabyte, which takes 200 µs.
    let tasks = "{compute: 100us}, {transfer: 1MB, path: [ddr]}, {compute: 100us}";
    let text = text("rate: 8GB/s", tasks);
    let agents = workload(&text).agents;
    let figures = Figures {
        agents: agents.iter().map(|a| (a.name.clone(), a.figures)).collect(),
        ..memory()
    };
    let traffic = with(&text, &figures, None, |s| s.traffic.clone());
    let seen: Vec<_> = traffic
        .iter()
        .map(|p| (p.at_ps, p.bytes[2], p.agents[0]))
        .collect();
    let whole = [
        (0, 0, 0),
        (100 * US, 0, 800_000),
        (300 * US, 1_000_000, 1_800_000),
    ];
    assert_eq!(seen, whole);
}
