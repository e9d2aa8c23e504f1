//! Whole programs: reading, lowering, verifying, timing and executing, in milliseconds, against the time that the program itself takes on
//! its machine. Programs: those given on the command line (`-- FILE…`), or the largest fixtures.

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

use chipless_model::{Limits, Storage};
use chipless_npu::{Document, Image, Options, lower};
use chipless_sim::{Functional, TimingOnly, Verified, run};
use std::time::Instant;

/// Milliseconds of the best of several runs.
fn best<T>(mut act: impl FnMut() -> T) -> f64 {
    let once = |_| {
        let start = Instant::now();
        std::hint::black_box(act());
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..7).map(once).fold(f64::INFINITY, f64::min)
}

fn main() {
    let fixture = |name| {
        format!(
            "{}/../fixtures/npu/{name}/program.blob",
            env!("CARGO_MANIFEST_DIR")
        )
    };
    let mut files: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    if files.is_empty() {
        files = ["net_cnn_dpu", "spill_ddr_t1", "resblock"]
            .map(fixture)
            .to_vec();
    }
    println!(
        "{:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>12}  program",
        "tasks", "read ms", "lower ms", "verify ms", "time ms", "run ms", "chip's time"
    );
    for file in files {
        let bytes = std::fs::read(&file).expect("a file");
        let (options, limits) = (Options::default(), Limits::default());
        let document = Document::read(&bytes).expect("a blob");
        let image = Image::load(&document, &limits).expect("an image");
        let program = lower(&document, &image, &options).expect("a program");
        let read = best(|| Image::load(&Document::read(&bytes).expect("a blob"), &limits).is_ok());
        let lowering = best(|| lower(&document, &image, &options).is_ok());
        let verify = best(|| chipless_verify::verify(&program).is_ok());
        let timing = best(|| {
            run(&Verified::assume(&program), &mut TimingOnly)
                .end
                .is_ok()
        });
        let functional = best(|| {
            let mut storage = Storage::new(&program.buffers, &limits).expect("memory");
            run(
                &Verified::assume(&program),
                &mut Functional::new(&mut storage),
            )
            .end
            .is_ok()
        });
        let chip = run(&Verified::assume(&program), &mut TimingOnly)
            .timeline
            .end;
        println!(
            "{:>8} {read:>9.3} {lowering:>9.3} {verify:>9.3} {timing:>9.3} {functional:>9.2} {:>9.3} ms  {file}",
            program.tasks.len(),
            chip.ns() / 1e6
        );
    }
}
