//! The debugger through the public door: real programs in, states and answers out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod adapter;
mod commands;
mod moments;
mod operands;

use chipless::{FailureKind, Options, fill};
use chipless_debug::{BUDGET, Console, Debugger, Session};
use chipless_model::Storage;
use chipless_sim::{Order, Verified};

pub(crate) const NPU: &str = "npu/resblock/program.blob";
pub(crate) const NEURON: &str = "neuron/matmul_five_engines/program.neff";
pub(crate) const DSA: &str = "dsa/kernels/dot.dfg";
pub(crate) const SPU: &str = "spu/recurrent/plan.json";
pub(crate) const GEMINI: &str = "gemini/four_cores/schedule.json";

pub(crate) fn fixture(name: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/");
    format!("{root}{name}")
}

/// How a program is opened.
pub(crate) struct How {
    pub(crate) order: Order,
    /// Bytes that the way back keeps.
    pub(crate) budget: usize,
    /// Whether its first float16 input has a NaN.
    pub(crate) nan: bool,
}

pub(crate) const PLAIN: How = How {
    order: Order::Timed,
    budget: BUDGET,
    nan: false,
};

/// Opens a fixture on random inputs and does something with a debugger at its start.
pub(crate) fn with<T>(name: &str, how: &How, then: impl FnOnce(&mut Console<'_, '_>) -> T) -> T {
    opened(&fixture(name), how, |mut console| then(&mut console)).unwrap()
}

/// The same for any path; a file that cannot be debugged says why.
pub(crate) fn opened<T>(
    path: &str,
    how: &How,
    then: impl FnOnce(Console<'_, '_>) -> T,
) -> Result<T, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let mut options = Options::with_files(chipless::disk::Disk);
    if path.ends_with("schedule.json") {
        // What its layers compute stands in the network beside it.
        let network = path.replace("schedule.json", "network.json");
        options
            .set("network", network)
            .map_err(|failure| failure.to_string())?;
    }
    let text = |failure: chipless::Failure| failure.to_string();
    let file = chipless::open(path, &bytes, &options).map_err(text)?;
    let document = file.read().map_err(text)?;
    let lowered = document.lower().map_err(text)?;
    let program = &lowered.program;
    let mut storage = Storage::new(&program.buffers, &options.limits)
        .map_err(|error| chipless::Failure::new(FailureKind::Limit, "", error).to_string())?;
    fill(program, |_, _, _| Ok(None), 0, &mut storage).map_err(text)?;
    if how.nan {
        // The eighth element of a float16 input.
        let input = program.interface.inputs[0].buffer;
        storage.bytes_mut(input)[14..16].copy_from_slice(&0x7e00u16.to_le_bytes());
    }
    let verified = Verified::assume(program);
    let session = Session::with_budget(&verified, how.order, storage, how.budget);
    Ok(then(Console::new(Debugger::new(session))))
}

/// What a command says that must succeed.
pub(crate) fn say(console: &mut Console<'_, '_>, line: &str) -> String {
    console
        .execute(line)
        .unwrap_or_else(|error| panic!("{line}: {error}"))
        .text
}

/// A field of what a command answers.
pub(crate) fn field(console: &mut Console<'_, '_>, line: &str, name: &str) -> serde_json::Value {
    let answer = console
        .execute(line)
        .unwrap_or_else(|error| panic!("{line}: {error}"));
    answer.fields[name].clone()
}
