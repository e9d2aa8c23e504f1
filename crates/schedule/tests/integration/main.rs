//! The scheduler from files to results.

mod bounds;
mod determinism;
mod emission;
mod front;

use chipless_schedule::front::Front;
use chipless_schedule::machine::Machine;

fn fixture(name: &str) -> Vec<u8> {
    let path = format!(
        "{}/../../fixtures/schedule/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn machine() -> Machine {
    Machine::read(&String::from_utf8(fixture("mesh2x2.json")).unwrap())
        .unwrap()
        .0
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
    }
}
