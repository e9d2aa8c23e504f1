//! The scheduler from files to results.

mod batches;
mod bounds;
mod busy;
mod calibrated;
mod compared;
mod computed;
mod determinism;
mod emission;
mod fixed;
mod front;
mod imported;
mod meaning;
mod mesh;
mod moves;
mod onnx;
mod pictured;
mod price;
mod random;

use chipless_gemini::{Document, Network};
use chipless_model::{Limits, Severity};
use chipless_schedule::front::Front;
use chipless_schedule::machine::Machine;

fn fixture(name: &str) -> Vec<u8> {
    let path = format!(
        "{}/../../fixtures/schedule/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn machine_text() -> String {
    String::from_utf8(fixture("mesh2x2.json")).unwrap()
}

fn machine() -> Machine {
    Machine::read(&machine_text()).unwrap().0
}

/// Errors that `check` finds.
fn errors(text: &str, network: Option<&Network>) -> Vec<String> {
    let limits = Limits::default();
    let document = Document::read(text.as_bytes(), "schedule.json", &limits).unwrap();
    let findings = document.findings(network, None, &limits);
    findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| format!("{}: {}", finding.rule.code, finding.message))
        .collect()
}

fn small(batch: i64) -> Front {
    chipless_schedule::onnx::read(&fixture("small.onnx"), batch, &|_| None).unwrap()
}

fn options(
    trees: u64,
    threads: usize,
    seed: u64,
    batch: i64,
) -> chipless_schedule::search::Options {
    chipless_schedule::search::Options {
        batch,
        objective: chipless_schedule::model::Objective::Edp,
        seconds: None,
        trees: Some(trees),
        seed,
        threads,
        latest: None,
        one_pass: false,
    }
}
