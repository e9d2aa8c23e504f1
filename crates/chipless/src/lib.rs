//! Opens, checks, runs and times compiled AI-accelerator programs without the chip.
//!
//! ```text
//! bytes ──open──▶ File ──read──▶ Document ──lower──▶ Lowered ──verify──▶ Verified ──▶ run
//! ```
//!
//! [`open`] sees from the bytes whose file it is. Each value borrows from the one before it. What a target cannot do is a [`Failure`] that says
//! so. Nothing here touches the file system: files that [`Options`] name come through [`Files`].
//!
//! ```
//! # fn main() -> Result<(), chipless::Failure> {
//! # let bytes = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/dsa/kernels/dot.dfg")).unwrap();
//! let options = chipless::Options::default();
//! let file = chipless::open("dot.dfg", &bytes, &options)?;
//! let document = file.read()?;
//! let lowered = document.lower()?;
//! let verified = lowered.verify().expect("no errors");
//! assert!(!verified.program().tasks.is_empty());
//! # Ok(())
//! # }
//! ```

mod behind;
mod failure;
mod file;
mod machine;
pub mod npy;
mod options;
pub mod random;
mod rules;
pub mod suggest;
mod target;
mod targets;

pub use behind::{Behind, with_behind};
pub use chipless_dsa as dsa;
pub use chipless_gemini as gemini;
pub use chipless_neuron as neuron;
pub use chipless_npu as npu;
pub use chipless_spu as spu;
pub use failure::{Failure, FailureKind};
pub use file::{Checked, File, check, open, recognize};
pub use options::{Bytes, COMMON, Data, Files, Input, OptionKind, OptionSpec, Options};
pub use target::{Document, Lowered, Package, Parts, Picture, Source, Target};
pub use targets::spu::{rule_set, with_runner, with_watched_runner};
pub use targets::{TARGETS, options, rules, target};
