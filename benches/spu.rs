//! A recurrent step of an FQIR plan (32 inputs, 64 states), in microseconds of processor time, against the 540 that the vendor's C++ runtime
//! takes for a step of this size. `-- STEPS` runs so many steps and prints how much memory the process holds at the end.

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

use chipless_model::Limits;
use chipless_spu::fqir::{MACHINE, Machine, Plan, Runner, lower};
use cpu_time::ProcessTime;

/// A step of a gated recurrent unit 32 → 64 by the vendor's native runtime, on two virtual processors of a server.
const VENDOR_MICROSECONDS: f64 = 540.0;

/// Kilobytes of memory that the process holds.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?
        .trim()
        .strip_suffix(" kB")?
        .parse()
        .ok()
}

fn main() {
    let steps: u64 = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(100_000);
    let bytes = std::fs::read(format!(
        "{}/../fixtures/spu/recurrent/plan.json",
        env!("CARGO_MANIFEST_DIR")
    ))
    .expect("a fixture");
    let limits = Limits::default();
    let plan = Plan::read(&bytes, &limits).expect("a plan");
    let lowered =
        lower(&plan, &Machine::parse(MACHINE).expect("sound"), &limits).expect("executable");
    let mut runner = Runner::new(&lowered, &limits).expect("fits");
    let mut values = Vec::new();
    let mut run = |count: u64| {
        for step in 0..count {
            let input: [i64; 32] =
                std::array::from_fn(|i| ((step * 37 + i as u64 * 211) % 8192) as i64 - 4096);
            runner.set_input(0, &input);
            runner.step().expect("runs");
            runner.output(0, &mut values);
            std::hint::black_box(&values);
        }
    };
    run(steps / 10 + 1);
    let before = resident();
    let start = ProcessTime::now();
    run(steps);
    let each = start.elapsed().as_secs_f64() * 1e6 / steps as f64;
    println!(
        "{steps} steps, {each:.2} µs each: {:.0} times as fast as the vendor's runtime",
        VENDOR_MICROSECONDS / each
    );
    if let (Some(before), Some(after)) = (before, resident()) {
        println!("{before} kB of memory before, {after} kB after");
    }
}
