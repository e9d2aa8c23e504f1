//! AWS NEFFs.

use crate::capability::{Capabilities, Capability, Disassembles, Planned, PlansMemory};
use crate::failure::Failure;
use crate::options::{Input, OptionKind, OptionSpec, Options};
use crate::target::{Document, Lowered, Package, Parts, Source, Target};
use chipless_model::suggest;
use chipless_model::{Finding, Info, Limits, Node, Rule};
use chipless_neuron::machine::{MACHINES, Machine};
use chipless_neuron::memory::SCRATCHPAD_PAGE;
use chipless_neuron::profile::Profile;
use chipless_neuron::{Container, MemoryPlan, Neff, Runtime};
use chipless_report::schedule_trace::{Origin, Schedule, Slice};
use std::collections::{BTreeMap, BTreeSet};

/// The target.
pub(super) struct Neuron;

/// The machine of files whose architecture has no machine file.
const STAND_IN: &str = "trn2";

static OPTIONS: &[OptionSpec] = &[OptionSpec {
    name: "runtime",
    kind: OptionKind::Text,
    value: "NAME",
    help: "Check whether this runtime accepts the file. A known name, or a mask of feature bits",
    commands: &["check"],
    is_repeated: false,
}];

impl Target for Neuron {
    fn name(&self) -> &'static str {
        "neuron"
    }

    fn files(&self) -> &'static [&'static str] {
        &["an AWS NEFF (a header of 1024 bytes and a tarball)"]
    }

    fn recognize(&self, bytes: &[u8]) -> bool {
        chipless_neuron::recognize(bytes)
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["neff"]
    }

    fn options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn rules(&self) -> Vec<&'static Rule> {
        chipless_neuron::rules::all().collect()
    }

    fn machines(&self) -> &'static [(&'static str, &'static str)] {
        MACHINES
    }

    fn capabilities(&self) -> &'static [Capability] {
        &[
            Capability::Disassembles,
            Capability::PlansMemory,
            Capability::Planned,
        ]
    }

    fn open<'f>(&self, source: Source<'f>) -> Result<Box<dyn Package + 'f>, Failure> {
        let container = Container::open(source.bytes, &source.options.limits)
            .map_err(|finding| Failure::reading(vec![*finding]))?;
        Ok(Box::new(Archive {
            container,
            options: source.options,
        }))
    }
}

/// A NEFF whose tarball is inflated.
struct Archive<'f> {
    container: Container<'f>,
    options: &'f Options,
}

impl Package for Archive<'_> {
    fn read(&self) -> Result<Box<dyn Document + '_>, Failure> {
        let limits = &self.options.limits;
        let neff = Neff::read(&self.container, limits)
            .map_err(|finding| Failure::reading(vec![*finding]))?;
        let mut findings = chipless_neuron::lint(&neff, limits);
        if let Some(name) = self.options.value("runtime") {
            findings.extend(refused_by(&neff, name)?);
        }
        Ok(Box::new(Opened {
            neff,
            findings,
            options: self.options,
        }))
    }

    fn parts(&self, names: &BTreeSet<&str>) -> Parts {
        let member = |name: &str| match self.container.member(name) {
            Some(member) => member.bytes.to_vec(),
            None if name == "tarball" => self.container.tarball().to_vec(),
            None => Vec::new(),
        };
        names
            .iter()
            .filter(|name| !matches!(**name, "" | "header" | "payload"))
            .map(|name| ((*name).to_owned(), member(name)))
            .collect()
    }
}

/// Why a runtime would refuse the file.
fn refused_by(neff: &Neff<'_>, name: &str) -> Result<Vec<Finding>, Failure> {
    let Some(runtime) = Runtime::named(name) else {
        let known: Vec<&str> = Runtime::names().collect();
        let hint = suggest::hint(name, Runtime::names());
        let text = format!(
            "expected one of {} or a mask such as 0xff, found \"{name}\"{hint}",
            known.join(", ")
        );
        return Err(Failure::misuse("--runtime", text));
    };
    Ok(runtime.check_program(neff))
}

/// A NEFF that was read.
struct Opened<'c> {
    neff: Neff<'c>,
    findings: Vec<Finding>,
    options: &'c Options,
}

impl Document for Opened<'_> {
    fn info(&self) -> Info {
        chipless_neuron::info(&self.neff)
    }

    fn own_machine(&self) -> Option<(&'static str, Option<String>)> {
        Some((self.machine_of_architecture(), None))
    }

    fn raw(&self) -> Node {
        chipless_neuron::raw(self.neff.container)
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            disassembles: Some(self),
            plans_memory: Some(self),
            planned: Some(self),
            ..Capabilities::default()
        }
    }

    fn lower(&self) -> Result<Lowered<'_>, Failure> {
        self.lowered(chipless_neuron::lower)
    }

    fn listed(&self) -> Result<Lowered<'_>, Failure> {
        self.lowered(chipless_neuron::lower_for_listing)
    }
}

impl PlansMemory for Opened<'_> {
    fn memory(&self) -> Result<Node, Failure> {
        Ok(MemoryPlan::new(&self.neff, SCRATCHPAD_PAGE).node())
    }
}

impl Planned for Opened<'_> {
    /// A NEFF carries none.
    fn estimate_ns(&self) -> Option<f64> {
        None
    }

    fn schedule(&self, trace: &Input) -> Result<Schedule, Failure> {
        let unreadable = |error| Failure::unreadable(&trace.name, error);
        let profile = Profile::read(&trace.bytes).map_err(unreadable)?;
        let measured = profile.beside(&self.neff).map_err(unreadable)?;
        let latency_ns = measured
            .iter()
            .map(|m| m.start_ns + m.duration_ns)
            .fold(0.0, f64::max);
        let mut queues: BTreeMap<String, Vec<Slice>> = BTreeMap::new();
        for instruction in measured {
            let slices = queues.entry(instruction.queue).or_default();
            slices.push(Slice {
                name: instruction.opcode,
                at: instruction.at,
                source: instruction.source,
                start_ns: instruction.start_ns,
                duration_ns: instruction.duration_ns,
                tasks: 1,
            });
        }
        Ok(Schedule {
            origin: Origin::Measured,
            latency_ns,
            queues: queues.into_iter().collect(),
        })
    }
}

impl Disassembles for Opened<'_> {
    fn assembler(&self) -> Result<String, Failure> {
        let mut text = String::new();
        chipless_neuron::disassemble(&self.neff, &mut text)
            .map_err(|error| Failure::unsupported(error.to_string()))?;
        Ok(text)
    }
}

/// How a NEFF becomes a program.
type Lower<'p> =
    fn(&'p Neff<'p>, &Machine, &Limits) -> Result<chipless_neuron::Lowered<'p>, Box<Finding>>;

impl Opened<'_> {
    /// The machine file of the program's architecture, or the one that stands in for it.
    fn machine_of_architecture(&self) -> &'static str {
        let own = self.neff.architecture.machine();
        let name = own.map_or_else(|| STAND_IN.to_owned(), |machine| machine.name);
        let mut machines = MACHINES.iter();
        machines
            .find(|(known, _)| *known == name)
            .map_or("", |(_, text)| *text)
    }

    fn lowered<'p>(&'p self, lower: Lower<'p>) -> Result<Lowered<'p>, Failure> {
        let mut notes = Vec::new();
        if self.neff.architecture.machine().is_none() && self.options.value("machine").is_none() {
            notes.push(format!(
                "there is no machine file for this architecture: timed with the figures of {STAND_IN}"
            ));
        }
        let machine = self
            .options
            .machine(self.machine_of_architecture(), &[], Machine::parse)?;
        let mut lowered = lower(&self.neff, &machine, &self.options.limits)
            .map_err(|finding| Failure::program(vec![*finding]))?;
        chipless_neuron::attach_labels(&self.neff, &mut lowered.program);
        notes.append(&mut lowered.notes);
        Ok(Lowered {
            program: lowered.program,
            notes,
        })
    }
}
