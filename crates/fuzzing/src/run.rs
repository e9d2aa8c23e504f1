//! Programs of files that compute: whatever the file, it is read, lowered, verified and run within small limits, as `chipless run` does it. A
//! program that is proven gives the same outputs in another order.

use crate::tally::past_the_reader;
use crate::targets::limits;
use chipless::{KeptDocument, KeptProgram, Options};
use chipless_model::Limits;
use chipless_sim::Order;

/// Runs a file as an NPU blob.
pub fn npu_run(bytes: &[u8]) {
    run("npu", bytes);
}

/// Runs a file as a NEFF.
pub fn neuron_run(bytes: &[u8]) {
    run("neuron", bytes);
}

/// Runs a file as a dataflow graph.
pub fn dsa_run(bytes: &[u8]) {
    run("dsa", bytes);
}

/// Runs a file as a plan of the SPU.
pub fn spu_run(bytes: &[u8]) {
    run("spu", bytes);
}

fn run(target: &str, bytes: &[u8]) {
    let mut options = Options::default();
    options.limits = Limits {
        tasks: 1024,
        text_bytes: 1 << 20,
        declarations: 20_000,
        ..limits()
    };
    options.data.computes = true;
    let bytes = Box::new(bytes.to_vec());
    let program = KeptDocument::open("file".to_owned(), bytes, Some(target), options)
        .and_then(|document| document.lower());
    let program = match program {
        Ok(program) => program,
        Err(failure) => return assert!(!failure.to_string().is_empty(), "it says nothing"),
    };
    past_the_reader();
    if program.proven().is_err() {
        return;
    }
    let doubts = ["semaphore-order-unproven", "order-not-exact"];
    let is_certain = program
        .findings()
        .iter()
        .all(|finding| !doubts.contains(&finding.rule.code));
    let timed = outputs(&program, Order::Timed);
    if is_certain {
        let other = outputs(&program, Order::Random(5));
        // Where several tasks fault, the first to say so is another.
        assert_eq!(timed.ok(), other.ok(), "another order gives other outputs");
    }
}

/// The outputs, or what the run says.
fn outputs(program: &KeptProgram, order: Order) -> Result<Vec<Vec<u8>>, String> {
    let mut ran = program
        .run(|_, _, _| Ok(None), 1, order)
        .map_err(|failure| failure.to_string())?;
    Ok(ran.take_outputs())
}
