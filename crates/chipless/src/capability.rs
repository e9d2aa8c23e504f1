//! What can be done with the files of some targets, beyond what [`Document`](crate::Document) promises of all.
//!
//! Each ability is a trait of its own. The list at the end of this file is the only one: the command line's refusals, `chipless targets` and the
//! documentation come from it.

use crate::failure::Failure;
use crate::options::Input;
use crate::targets::TARGETS;
use chipless_device::{Block, Route};
use chipless_model::{Node, Program, TaskId};
use chipless_report::findings::Drivable;
use chipless_report::page::Picture;
use chipless_report::registers::Descriptor;
use chipless_report::schedule_trace::Schedule;
use chipless_sim::Timeline;
use std::collections::HashMap;

/// A program that can be written as assembler text.
pub trait Disassembles {
    /// The whole program as text, which `chipless pack` turns back.
    fn assembler(&self) -> Result<String, Failure>;
}

/// A file whose load takes memory that can be planned.
pub trait PlansMemory {
    /// The memory that a load takes, in bytes, by region.
    fn memory(&self) -> Result<Node, Failure>;
}

/// A format that has several forms.
pub trait Converts {
    /// The file in the present form of its format.
    fn convert(&self) -> Result<String, Failure>;
}

/// A file that states or implies a contract (an `IOSpec`) of its own.
pub trait Contracts {
    /// The contract as YAML.
    fn contract(&self) -> Result<String, Failure>;

    /// Whether a host can drive the contract for good; `None` for files that are programs.
    fn drivable(&self) -> Option<Drivable>;
}

/// A file that can be drawn.
pub trait Draws {
    /// Pictures of the file, or of a replay of its program.
    fn pictures(&self) -> Result<Vec<Picture>, Failure>;
}

/// A program whose tasks stand in descriptors with a public register layout.
pub trait ShowsRegisters {
    /// The descriptors of a task of the program that [`lower`](crate::Document::lower) made, field by field.
    fn registers(&self, program: &Program<'_>, task: TaskId) -> Result<Vec<Descriptor>, Failure>;
}

/// A program whose compiler plans its times.
pub trait Planned {
    /// What the compiler planned for the program, from its schedule trace.
    fn schedule(&self, trace: &Input) -> Result<Schedule, Failure>;

    /// The compiler's own estimate of the latency in nanoseconds, where the file carries one.
    fn estimate_ns(&self) -> Option<f64>;
}

/// A program that leaves a profiling buffer.
pub trait Profiles {
    /// The buffer as the device leaves it after a run, and the number of its records.
    fn profile(
        &self,
        program: &Program<'_>,
        timeline: &Timeline,
    ) -> Result<(Vec<u8>, usize), Failure>;
}

/// A program that can share a device with others.
pub trait SharesDevice {
    /// Tiles that the program holds while it runs.
    fn tiles(&self) -> u32;

    /// The way of a queue's transfers to the memory of a device that describes one. `None`: they have a memory of their own.
    fn route(&self, queue: &str) -> Option<Route>;

    /// The kind of work FIFO that the tasks of a queue are taken from, where there is one.
    fn fifo(&self, queue: &str) -> Option<Block>;
}

/// A program whose time, had it been compiled otherwise, follows roughly from its figures.
pub trait Recompiles {
    /// The changes of the machine, as `--set` takes them, that stand for another compilation: `tiles` for so many tiles, `precision` for
    /// numbers of another type.
    fn recompiled(&self, quantity: &str, value: &str) -> Result<Vec<String>, Failure>;

    /// Compilations that could make the program faster: `tiles=6`, `precision=int8`. Those that it is compiled with already are not among them. And
    /// rules of the cost model that matter here and that nobody has confirmed, left out: `dma.odd_element=0`.
    fn compilations(&self, program: &Program<'_>) -> Vec<String>;

    /// What to ask of the compiler to get one, in the words of its options.
    fn how(&self, change: &str) -> Option<String>;

    /// Whether chips were measured to be no faster for a change of which the figures promise it: it is told last.
    fn gains_nothing(&self, change: &str) -> bool;
}

/// A program whose layers can be looked up in the model that it was compiled from.
pub trait NamesNodes {
    /// Name and operation of the node that a layer comes from, where the user gave the model.
    fn node(&self, layer: &str) -> Option<(&str, &str)>;
}

/// A program that another compiler output describes too, instruction by instruction.
pub trait ListsAssembly {
    /// Instructions of that file that belong to tasks of the program that [`lower`](crate::Document::lower) made, a line each.
    fn beside(&self) -> Result<HashMap<TaskId, Vec<String>>, Failure>;
}

macro_rules! capabilities {
    ($($field:ident: $trait:ident, $what:literal, $with:literal;)*) => {
        /// One ability of the list.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Capability {
            $(#[doc = concat!("[`", stringify!($trait), "`](trait@", stringify!($trait), "): ", $what, ".")] $trait,)*
        }

        impl Capability {
            /// All of them.
            pub const ALL: &'static [Capability] = &[$(Capability::$trait),*];

            /// In words: `assembler text`.
            pub const fn what(self) -> &'static str {
                match self { $(Capability::$trait => $what,)* }
            }

            /// The command or option that uses it: `list --asm`.
            pub const fn with(self) -> &'static str {
                match self { $(Capability::$trait => $with,)* }
            }
        }

        /// What can be done with one file; `None` is what its target does not offer for it.
        #[derive(Clone, Copy, Default)]
        pub struct Capabilities<'d> {
            $(#[doc = concat!("With `", $with, "`: ", $what, ".")] pub $field: Option<&'d dyn $trait>,)*
        }

        impl<'d> Capabilities<'d> {
            $(
                #[doc = concat!("The ability behind `", $with, "`.")]
                ///
                /// # Errors
                /// The target does not offer it for this file; the message names those that do.
                pub fn $field(&self) -> Result<&'d dyn $trait, Failure> {
                    self.$field.ok_or_else(|| Capability::$trait.missing())
                }
            )*

            /// Those that the file has.
            pub fn offered(&self) -> Vec<Capability> {
                let all = [$(self.$field.map(|_| Capability::$trait)),*];
                all.into_iter().flatten().collect()
            }
        }
    };
}

capabilities! {
    disassembles: Disassembles, "assembler text", "list --asm";
    plans_memory: PlansMemory, "a memory plan", "info --memory";
    converts: Converts, "conversion to the present form of the format", "convert";
    contracts: Contracts, "a contract of its own", "convert --iospec";
    draws: Draws, "pictures", "report -o DIR";
    shows_registers: ShowsRegisters, "descriptors field by field", "list --registers";
    planned: Planned, "comparison with a compiler's schedule trace or a measured profile", "run --compare TRACE.json";
    profiles: Profiles, "a profiling buffer", "run --profile";
    shares_device: SharesDevice, "a share of a device with tiles", "device";
    names_nodes: NamesNodes, "nodes of the model beside their tasks", "run --model, list --model";
    recompiles: Recompiles, "timing as if compiled for other tiles or another precision", "run --what-if tiles=N|precision=int8";
    lists_assembly: ListsAssembly, "instructions of the compiler's assembly beside their tasks", "list --assembly";
}

impl Capability {
    /// The refusal for a file that does not have it.
    fn missing(self) -> Failure {
        let with = TARGETS
            .iter()
            .filter(|target| target.capabilities().contains(&self))
            .map(|target| target.name())
            .collect::<Vec<_>>()
            .join(", ");
        let with = if with.is_empty() {
            "none of this build".to_owned()
        } else {
            with
        };
        Failure::unsupported(format_args!(
            "{} (`{}`) is supported for some files of these targets only: {with}",
            self.what(),
            self.with()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::Capability;
    use crate::{Options, TARGETS, open};
    use std::collections::BTreeMap;

    #[test]
    fn targets_list_what_their_files_offer() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let options = Options::default();
        let mut offered: BTreeMap<&str, Vec<Capability>> = BTreeMap::new();
        let list = std::fs::read(format!("{root}/fixtures/programs.json")).expect("a list");
        let examples: Vec<serde_json::Value> = serde_json::from_slice(&list).expect("a list");
        for file in examples
            .iter()
            .filter_map(|example| example["file"].as_str())
        {
            let bytes = std::fs::read(format!("{root}/{file}")).expect("a fixture");
            let opened = open(file, &bytes, &options).expect("a file");
            let document = opened.read().expect("a document");
            let known = offered.entry(document.info().target).or_default();
            for capability in document.capabilities().offered() {
                if !known.contains(&capability) {
                    known.push(capability);
                }
            }
        }
        for target in TARGETS {
            let mut listed = target.capabilities().to_vec();
            listed.sort_by_key(|capability| capability.what());
            let mut found = offered.remove(target.name()).unwrap_or_default();
            found.sort_by_key(|capability| capability.what());
            assert_eq!(listed, found, "{}", target.name());
        }
    }

    #[test]
    fn what_a_file_lacks_is_refused_with_the_targets_that_have_it() {
        let path = format!(
            "{}/../../fixtures/dsa/kernels/dot.dfg",
            env!("CARGO_MANIFEST_DIR")
        );
        let bytes = std::fs::read(path).expect("a fixture");
        let options = Options::default();
        let opened = open("dot.dfg", &bytes, &options).expect("a file");
        let document = opened.read().expect("a document");
        let refused = document.capabilities().disassembles().err().expect("none");
        assert_eq!(
            refused.message,
            "assembler text (`list --asm`) is supported for some files of these targets only: neuron"
        );
    }
}
