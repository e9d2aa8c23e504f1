//! Dataflow graphs: operations a second of plain vector kernels, in blocks of rows, against the moving of the same bytes.

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

use chipless_benches::best_of_all_threads as best;
use chipless_dsa::Document;
use chipless_dsa::evaluate::{Settings, Strategy, Stream, evaluate};
use chipless_model::Limits;
use std::fmt::Write;

const ROWS: usize = 1 << 20;
const LANES: usize = 4;

fn main() {
    println!(
        "{:<36} {:>12} {:>14} {:>16}",
        "kernel", "ms", "million ops/s", "time of copying"
    );
    for (name, operation, depth) in [
        ("a + b", "Add_I64", 1),
        ("a + b + b + … (8 deep)", "Add_I64", 8),
        ("16-bit lanes, multiplied (8 deep)", "Mul16x4", 8),
        ("f32 pairs, multiplied (8 deep)", "FMul32x2", 8),
    ] {
        kernel(name, operation, depth, Strategy::Automatic);
    }
    kernel(
        "a + b + b + … token by token",
        "Add_I64",
        8,
        Strategy::TokenByToken,
    );
}

fn kernel(name: &str, operation: &str, depth: usize, strategy: Strategy) {
    let mut text = format!("Input: a[{LANES}]\nInput: b[{LANES}]\n");
    for lane in 0..LANES {
        for level in 0..depth {
            let before = if level == 0 {
                format!("a{lane}")
            } else {
                format!("t{lane}_{}", level - 1)
            };
            let result = if level + 1 == depth {
                format!("o{lane}")
            } else {
                format!("t{lane}_{level}")
            };
            writeln!(text, "{result} = {operation}({before}, b{lane})").expect("text");
        }
    }
    writeln!(text, "Output: o[{LANES}]").expect("text");
    let limits = Limits::default();
    let document = Document::read(text.as_bytes(), &limits);
    assert!(document.is_complete());
    let bytes: Vec<u8> = (0..ROWS * LANES * 8).map(|i| (i % 251) as u8).collect();
    let stream = || Stream {
        loops: vec![ROWS as u64],
        bytes: (&*bytes).into(),
    };
    let inputs = [stream(), stream()];
    let time = best(|| {
        let found = evaluate(
            &document.graph,
            &inputs,
            Settings {
                strategy,
                ..Settings::default()
            },
            &limits,
        )
        .expect("an evaluation");
        assert_eq!(found.outputs[0].count, ROWS as u64);
    });
    // Both inputs are read and the output is written.
    let copying = best(|| {
        let mut copy = Vec::with_capacity(bytes.len());
        copy.extend_from_slice(&bytes);
        assert_eq!(std::hint::black_box(&copy).len(), bytes.len());
    });
    let operations = (ROWS * LANES * depth) as f64 / time.as_secs_f64() / 1e6;
    println!(
        "{name:<36} {:>12.2} {operations:>14.0} {:>16.2}",
        time.as_secs_f64() * 1e3,
        time.as_secs_f64() / copying.as_secs_f64()
    );
}
