//! `IOSpecs`, FQIR graphs (`.pt`) and plans, `.femto` containers.

use crate::FailureKind;
use crate::capability::{Capabilities, Capability, Contracts, Converts, Draws};
use crate::failure::Failure;
use crate::options::{OptionKind, OptionSpec, Options};
use crate::target::{Document, Lowered, Package, Picture, Source, Target};
use chipless_model::{Finding, Info, Node, Rule, Text};
use chipless_report::findings::{Drivable, DrivenCall};
use chipless_spu::File;
use chipless_spu::fqir::{self, MACHINE, Machine, Plan, Runner, Watching};
use chipless_spu::iospec::{self, Call, RuleSet, Verdict};
use chipless_spu::machine::MACHINES;

/// The target.
pub(super) struct Spu;

/// Rule sets by the names of the option.
const RULE_SETS: &[(&str, &str)] = &[
    (
        "spec",
        "The text of the format: strict order, nothing twice, outputs in sequence order",
    ),
    (
        "femtorun-4.1",
        "What version 4.1 of the Python package femtorun does, its peculiarities included",
    ),
];

static OPTIONS: &[OptionSpec] = &[OptionSpec {
    name: "rules",
    kind: OptionKind::Choice(RULE_SETS),
    value: "RULES",
    help: "Rules to judge an IOSpec by. Default: those of its text",
    commands: &["check", "drive", "host", "convert", "diff"],
    is_repeated: false,
}];

/// The rules by which an `IOSpec` is judged.
pub fn rule_set(options: &Options) -> RuleSet {
    match options.value("rules") {
        Some("femtorun-4.1") => RuleSet::Femtorun41,
        _ => RuleSet::Spec,
    }
}

impl Target for Spu {
    fn name(&self) -> &'static str {
        "spu"
    }

    fn files(&self) -> &'static [&'static str] {
        &[
            "an IOSpec (YAML)",
            "an FQIR graph (.pt) or plan (JSON)",
            "a .femto container",
        ]
    }

    fn recognize(&self, bytes: &[u8]) -> bool {
        chipless_spu::recognize(bytes)
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["femto", "pt", "pth", "yaml", "yml"]
    }

    fn options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn rules(&self) -> Vec<&'static Rule> {
        chipless_spu::rules().collect()
    }

    fn machines(&self) -> &'static [(&'static str, &'static str)] {
        MACHINES
    }

    fn capabilities(&self) -> &'static [Capability] {
        &[
            Capability::Converts,
            Capability::Contracts,
            Capability::Draws,
        ]
    }

    fn open<'f>(&self, source: Source<'f>) -> Result<Box<dyn Package + 'f>, Failure> {
        Ok(Box::new(Unread(source)))
    }
}

/// A file of any kind.
struct Unread<'f>(Source<'f>);

impl Package for Unread<'_> {
    fn read(&self) -> Result<Box<dyn Document + '_>, Failure> {
        let Source { bytes, options, .. } = self.0;
        let rules = rule_set(options);
        let file = File::read(bytes, rules, &options.limits).map_err(Failure::reading)?;
        let (findings, drivable) = match &file {
            File::Contract(document) => {
                let verdict = iospec::drivable(document, rules);
                let mut findings = iospec::lint(document, rules);
                findings.extend(verdict.finding(document, rules));
                (findings, Some(verdict))
            }
            _ => (file.findings(rules), None),
        };
        Ok(Box::new(Read {
            file,
            options,
            rules,
            findings,
            drivable,
        }))
    }
}

/// A file that was read.
struct Read<'f> {
    file: File<'f>,
    options: &'f Options,
    rules: RuleSet,
    findings: Vec<Finding>,
    drivable: Option<Verdict>,
}

impl Converts for Read<'_> {
    /// A contract in the present dialect, the contract of a container, the plan of a graph.
    fn convert(&self) -> Result<String, Failure> {
        match &self.file {
            File::Contract(document) => Ok(document.write()),
            File::Flat(text, _) => iospec::convert(text, self.rules)
                .map(|document| document.write())
                .map_err(Failure::reading),
            File::Container(femto) => Ok(chipless_spu::yaml::write(&femto.iospec())),
            File::Program(plan) => plan
                .write()
                .map_err(|error| Failure::unsupported(format_args!("cannot be written: {error}"))),
        }
    }
}

impl Contracts for Read<'_> {
    fn contract(&self) -> Result<String, Failure> {
        match &self.file {
            File::Program(plan) => Ok(chipless_spu::yaml::write(&plan.iospec())),
            _ => self.convert(),
        }
    }

    fn drivable(&self) -> Option<Drivable> {
        self.drivable.as_ref().map(drivable)
    }
}

impl Draws for Read<'_> {
    /// The transactions of the contract, or of that which the program would have.
    fn pictures(&self) -> Result<Vec<Picture>, Failure> {
        let made = match &self.file {
            File::Contract(_) => None,
            _ => Some(
                iospec::Document::read(&self.contract()?, self.rules).map_err(Failure::reading)?,
            ),
        };
        let ((Some(document), _) | (None, File::Contract(document))) = (&made, &self.file) else {
            return Ok(Vec::new());
        };
        let title = "Transactions between the host and the program, in order";
        Ok(vec![Picture {
            name: "sequence".to_owned(),
            title: title.to_owned(),
            svg: iospec::diagram::svg(document, title),
            text: iospec::diagram::text(document),
        }])
    }
}

impl Document for Read<'_> {
    fn info(&self) -> Info {
        self.file.info()
    }

    fn own_machine(&self) -> Option<(&'static str, Option<String>)> {
        Some((MACHINE, None))
    }

    fn raw(&self) -> Node {
        self.file.raw(self.rules)
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            converts: Some(self),
            contracts: Some(self),
            draws: Some(self),
            ..Capabilities::default()
        }
    }

    fn is_program(&self) -> bool {
        matches!(self.file, File::Program(_))
    }

    /// Contracts are no programs, and the memories of a container are encrypted.
    fn lower(&self) -> Result<Lowered<'_>, Failure> {
        let File::Program(plan) = &self.file else {
            let text = "expected a program, found a file that holds none (chipless drive takes a contract)";
            return Err(Failure::unsupported(text));
        };
        let machine = machine(self.options)?;
        let mut lowered = fqir::lower(plan, &machine, &self.options.limits)
            .map_err(|finding| Failure::program(vec![*finding]))?;
        lowered.program.text = Text::new(plan.text);
        let findings = lowered.findings.iter().map(ToString::to_string);
        lowered.notes.extend(findings);
        Ok(Lowered {
            program: lowered.program,
            notes: lowered.notes,
        })
    }
}

/// A verdict as reports have it.
fn drivable(verdict: &Verdict) -> Drivable {
    let call = |call: &Call| match call {
        Call::Write(name) => DrivenCall::Write([name.clone()]),
        Call::Read => DrivenCall::Read(true),
    };
    match verdict {
        Verdict::Drivable => Drivable {
            drivable: Some(true),
            ..Drivable::default()
        },
        Verdict::Stuck { calls, cannot } => {
            let (kind, name) = cannot.parts();
            Drivable {
                drivable: Some(false),
                cannot: Some([(kind, name.to_owned())].into()),
                calls: Some(calls.iter().map(call).collect()),
                reason: None,
            }
        }
        Verdict::Unknown(reason) => Drivable {
            reason: Some(reason.clone()),
            ..Drivable::default()
        },
    }
}

/// The machine that was asked for, or the one that comes along.
fn machine(options: &Options) -> Result<Machine, Failure> {
    options.machine(MACHINE, &[], Machine::parse)
}

/// The plan of a file that holds one.
fn plan<'f>(name: &str, bytes: &'f [u8], options: &Options) -> Result<Plan<'f>, Failure> {
    let refused = |findings: Vec<Finding>| Failure::reading(findings).about(name);
    match File::read(bytes, rule_set(options), &options.limits).map_err(refused)? {
        File::Program(plan) => Ok(plan),
        _ => Err(Failure::unreadable(
            name,
            "expected a program (a graph, .pt, or its plan), found a contract",
        )),
    }
}

fn runner<'p>(
    name: &str,
    lowered: &'p fqir::Lowered<'p>,
    options: &Options,
) -> Result<Runner<'p>, Failure> {
    Runner::new(lowered, &options.limits)
        .map_err(|no_room| Failure::new(FailureKind::Limit, name, no_room))
}

/// Makes the program of a plan ready to run, step by step.
pub fn with_runner<T, E: From<Failure>>(
    name: &str,
    bytes: &[u8],
    options: &Options,
    then: impl FnOnce(Runner<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let plan = plan(name, bytes, options)?;
    let lowered = fqir::lower(&plan, &machine(options)?, &options.limits)
        .map_err(|finding| Failure::program(vec![*finding]).about(name))?;
    then(runner(name, &lowered, options)?)
}

/// The same, with a count of what happens to the integers.
pub fn with_watched_runner<T, E: From<Failure>>(
    name: &str,
    bytes: &[u8],
    options: &Options,
    then: impl FnOnce(Runner<'_>, &Watching) -> Result<T, E>,
) -> Result<T, E> {
    let plan = plan(name, bytes, options)?;
    let (lowered, watching) = fqir::lower_watched(&plan, &machine(options)?, &options.limits)
        .map_err(|finding| Failure::program(vec![*finding]).about(name))?;
    then(runner(name, &lowered, options)?, &watching)
}
