//! Processor time of a hundred thousand jobs on a device with every mechanism on, against the same jobs without; and of a device that is
//! offered twice what it can do, so that its rings refuse most pushes.

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

use chipless::Options;
use chipless::device::{Report, Request, run};
use chipless_benches::best_of_all_threads;
use std::time::Duration;

const JOBS: u64 = 100_000;

/// Jobs come in three contexts, and a chain follows those of one of them.
fn workload(more: &str, contexts: &str) -> String {
    let third = JOBS / 4;
    format!(
        "machine: npu4
contexts:
  camera: {{process: 1, band: realtime}}
  chat: {{process: 2, band: focus{contexts}}}
  batch: {{process: 3}}
streams:
  - name: camera
    context: camera
    deadline: 2ms
    arrivals: {{every: 1ms, jitter: 200us, count: {third}}}
    program: {{synthetic: {{tiles: 2, tasks: [{{compute: 100us}}, {{transfer: 1MB, path: [group0, network, ddr]}}]}}}}
  - name: prefill
    context: chat
    deadline: 4ms
    arrivals: {{poisson: 1000/s, count: {third}}}
    program: {{synthetic: {{tiles: 2, tasks: [{{transfer: 2MB, path: [group1, network, ddr]}}, {{compute: 100us}}]}}}}
  - name: decode
    context: chat
    arrivals: {{after: prefill}}
    program: {{synthetic: {{tiles: 2, tasks: [{{queue: p, push: 64KiB, link_agent: 0, path: [group1]}}, {{compute: 50us}}]}}}}
  - name: batch
    context: batch
    arrivals: {{poisson: 1000/s, count: {third}}}
    program: {{synthetic: {{tiles: 2, tasks: [{{compute: 200us}}, {{transfer: 1MB, path: [group0, network, ddr]}}]}}}}
{more}"
    )
}

const EVERYTHING: &str =
    "agents: {gpu: {rate: 20GB/s}, media: {rate: 2GB/s, path: [network, cache, ddr], weight: 2}}
set:
  power.governor: deadline
  power.thermal.period: 10ms
  power.thermal.duty: 50
  context_map.load: 1us
  preempt.timeout: 10ms
  mmu.walk.cached: true
  mmu.pipelined: true
";

/// Less than what the batch stream offers.
const THROTTLED: &str = "set: {power.thermal.period: 10ms, power.thermal.duty: 1}\n";

fn overload(more: &str) -> String {
    format!(
        "machine: npu4\ncontexts: {{c: {{process: 1}}}}\nstreams:\n  - {{name: s, context: c, arrivals: {{poisson: 1000/s, count: {JOBS}}}, \
         program: {{synthetic: {{tasks: [{{compute: 900us}}]}}}}}}\n{more}"
    )
}

fn simulated(text: &str) -> Report {
    let request = Request {
        name: "bench.yaml".to_owned(),
        text: text.to_owned(),
        ..Request::default()
    };
    let report = run(&request, &Options::default(), None, None);
    report.unwrap_or_else(|failure| panic!("{failure}"))
}

fn time(text: &str) -> Duration {
    best_of_all_threads(|| drop(simulated(text)))
}

fn main() {
    let plain = time(&workload("", ""));
    let everything = time(&workload(EVERYTHING, ", granted: 1ms"));
    let rate = JOBS as f64 / plain.as_secs_f64();
    println!(
        "device: {:.2} million jobs/s with what-ifs of the assumed figures; with every mechanism on {:.2} times as long (goal: 2)",
        rate / 1e6,
        everything.as_secs_f64() / plain.as_secs_f64()
    );
    let kept = time(&overload(""));
    let throttled = time(&overload(THROTTLED));
    println!(
        "device: a throttled stream that is refused half of its pushes takes {:.2} times as long as the same at the full clock (goal: 2)",
        throttled.as_secs_f64() / kept.as_secs_f64()
    );
}
