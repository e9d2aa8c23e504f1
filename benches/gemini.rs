//! Gemini schedules: read, lower, verify and replay, in processor time of all threads, of a made-up schedule of 100 MB and of
//! the files that are given (`cargo bench --bench gemini -- FILE…`).

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

#[path = "../crates/targets/gemini/tests/generate/mod.rs"]
mod generate;

use chipless_benches::best_of_all_threads as best;
use chipless_gemini::{Data, Dialect, Machine, Schedule, lower, unzip};
use chipless_model::Limits;
use chipless_sim::{TimingOnly, Verified, run};
use std::time::Duration;

fn main() {
    println!(
        "{:<40} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "schedule", "MB", "read ms", "lower ms", "verify ms", "replay ms", "sum ms"
    );
    // The tool runner passes options of its own.
    for path in std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
    {
        let bytes = std::fs::read(&path).expect("a file");
        let text = unzip(&bytes, &Limits::default()).expect("a gzip file");
        measure(
            path.rsplit('/').nth(1).unwrap_or(&path),
            std::str::from_utf8(&text).expect("text"),
        );
    }
    let plan = generate::Plan {
        columns: 4,
        rows: 4,
        blocks: 800,
        size: 32,
        channels: 32,
        tiles: 2,
        ..generate::Plan::default()
    };
    measure(
        "made up, 4 x 4 cores",
        &generate::schedule(&plan).to_string(),
    );
}

fn measure(name: &str, text: &str) {
    let limits = Limits::default();
    let read = best(|| assert!(Schedule::read(text).is_ok()));
    let schedule = Schedule::read(text).expect("a schedule");
    let machine = Machine::named(if schedule.dialect == Dialect::Spec {
        "spec"
    } else {
        "set"
    })
    .expect("a machine");
    let lowering = best(|| assert!(lower(&schedule, &Data::default(), &machine, &limits).is_ok()));
    let lowered = lower(&schedule, &Data::default(), &machine, &limits).expect("a program");
    let verify = best(|| assert!(chipless_verify::verify(&lowered.program).is_ok()));
    let replay = best(|| {
        assert!(
            run(&Verified::assume(&lowered.program), &mut TimingOnly)
                .end
                .is_ok()
        );
    });
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{name:<40} {:>8.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
        text.len() as f64 / 1e6,
        ms(read),
        ms(lowering),
        ms(verify),
        ms(replay),
        ms(read + lowering + verify + replay)
    );
}
