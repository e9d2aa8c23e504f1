//! Opens, checks, runs and times compiled AI-accelerator programs without the chip.
//!
//! ```text
//! bytes ──open──▶ File ──read──▶ Document ──lower──▶ Lowered ──verify──▶ Verified ──▶ run
//! ```
//!
//! [`open`] sees from the bytes whose file it is. Each value borrows from the one before it. What a target cannot do is a [`Failure`] that says
//! so. Files that [`Options`] name come through [`Files`]: [`disk`] has those of this machine, and is
//! all that touches the file system.
//!
//! ```
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/dsa/kernels/dot.dfg");
//! let bytes = std::fs::read(path).expect("a file");
//! let options = chipless::Options::default();
//! let file = chipless::open("dot.dfg", &bytes, &options)?;
//! let document = file.read()?;
//! println!("a program of target {}", document.info().target);
//! let lowered = document.lower()?;
//! let verified = lowered.verify().map_err(chipless::Failure::program)?;
//! let finished = chipless::run(&document, &lowered, &verified, 0)?;
//! finished.report("dot.dfg", |run| println!("{} tasks in {} ns", run.report().tasks, run.report().latency_ns));
//! # assert!(finished.output("acc").is_none());
//! # Ok::<(), chipless::Failure>(())
//! ```
//!
//! # To add a target
//!
//! `tests/sixth_target.rs` adds one, from its bytes to its numbers, in one file: a [`Target`] that recognises its files, a [`Package`] that
//! reads them, a [`Document`] that says what is in them and makes a program. With a line in `targets/mod.rs` the command line has it too.

mod behind;
mod budget;
mod capability;
pub mod device;
pub mod diff;
pub mod disk;
mod failure;
mod file;
mod foreign;
mod kept;
mod machine;
pub mod npy;
mod options;
mod policy;
pub mod random;
mod rules;
mod run;
mod target;
mod targets;
pub mod texts;
mod values;

pub use behind::{Behind, with_behind};
pub use budget::Budget;
pub use capability::{
    Capabilities, Capability, Contracts, Converts, Disassembles, Draws, ListsAssembly, NamesNodes,
    Planned, PlansMemory, Profiles, Recompiles, SharesDevice, ShowsRegisters,
};
pub use chipless_device::figures::Grade as FigureGrade;
#[cfg(feature = "full")]
pub use chipless_dsa as dsa;
#[cfg(feature = "full")]
pub use chipless_dsa_explore as dsa_explore;
#[cfg(feature = "full")]
pub use chipless_dsa_mapper as dsa_mapper;
#[cfg(feature = "full")]
pub use chipless_gemini as gemini;
pub use chipless_model::suggest;
#[cfg(feature = "full")]
pub use chipless_neuron as neuron;
pub use chipless_npu as npu;
pub use chipless_sim::Verified;
pub use chipless_spu as spu;
pub use failure::{Failure, FailureKind};
pub use file::{
    Checked, File, OpenDocument, check, check_as, is_onnx, kind_of, open, open_as, recognize,
};
pub use kept::{KeptDocument, KeptProgram, KeptSession, Ran};
pub use machine::{
    Better, BuiltIn, Completed, Figure, Leniency, OF_MESHES, built_in, built_in_machines,
    completed, figures, nearest, unknown,
};
pub use options::{Bytes, COMMON, Data, Files, Input, OptionKind, OptionSpec, Options};
pub use policy::{Policy, rule};
pub use run::{
    Finished, Give, fill, fill_watched, findings_note, input_named, no_room, order_note, output,
    random_note, remarked, run, stopped, unproven, unproven_note,
};
pub use target::{Document, Lowered, Package, Parts, Picture, Source, Target};
pub use targets::spu::{rule_set, with_runner, with_watched_runner};
pub use targets::{TARGETS, known, options, rules, rules_of_targets, target};
