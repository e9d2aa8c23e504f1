//! `IOSpecs`, FQIR plans and `.femto` containers.

use crate::failure::Failure;
use crate::options::{OptionKind, OptionSpec, Options};
use crate::target::{Document, Lowered, Package, Source, Target};
use chipless_model::{Finding, Info, Node, Place, Rule, Text};
use chipless_spu::fqir::{self, MACHINE, Machine, Plan, Runner};
use chipless_spu::iospec::{self, Femto, RuleSet};

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
    help: "Whose rules an IOSpec is judged by; those of its text without",
    commands: &["check", "drive"],
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
            "an FQIR plan (JSON)",
            "a .femto container",
        ]
    }

    fn recognize(&self, bytes: &[u8]) -> bool {
        chipless_spu::recognize(bytes)
    }

    fn options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn rules(&self) -> Vec<&'static Rule> {
        chipless_spu::rules().collect()
    }

    fn machines(&self) -> &'static [(&'static str, &'static str)] {
        &[("spu001", MACHINE)]
    }

    fn open<'f>(&self, source: Source<'f>) -> Result<Box<dyn Package + 'f>, Failure> {
        Ok(Box::new(File(source)))
    }
}

/// A file of any kind.
struct File<'f>(Source<'f>);

impl Package for File<'_> {
    fn read(&self) -> Result<Box<dyn Document + '_>, Failure> {
        let Source { bytes, options, .. } = self.0;
        let one = |finding: Box<Finding>| Failure::reading(vec![*finding]);
        if Femto::recognize(bytes) {
            return Ok(Box::new(Container(Femto::read(bytes).map_err(one)?)));
        }
        if fqir::recognize(bytes) {
            let plan = Plan::read(bytes, &options.limits).map_err(one)?;
            return Ok(Box::new(Program { plan, options }));
        }
        let rules = rule_set(options);
        let text = text(bytes, rules)?;
        match iospec::Document::read(text, rules) {
            Ok(document) => {
                let findings = iospec::lint(&document, rules);
                Ok(Box::new(Contract { document, findings }))
            }
            Err(findings) if iospec::convert(text, rules).is_ok() => Ok(Box::new(Flat {
                text,
                rules,
                findings,
            })),
            Err(findings) => Err(Failure::reading(findings)),
        }
    }
}

/// The text of an `IOSpec`.
fn text(bytes: &[u8], rules: RuleSet) -> Result<&str, Failure> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let place = Place::bytes(error.valid_up_to() as u64, 1);
        let rule = iospec::rules::SYNTAX.under(rules);
        let finding = rule.at(place, "expected text in UTF-8, found other bytes");
        Failure::reading(vec![finding])
    })
}

/// What to say where somebody wants to run what is no program.
fn no_program() -> Failure {
    Failure::unsupported(
        "expected a program, found a file that holds none (chipless drive takes a contract)",
    )
}

/// An `IOSpec`.
struct Contract {
    document: iospec::Document,
    findings: Vec<Finding>,
}

impl Document for Contract {
    fn info(&self) -> Info {
        iospec::info(&self.document)
    }

    fn raw(&self) -> Node {
        iospec::raw(&self.document)
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn convert(&self) -> Result<String, Failure> {
        Ok(self.document.write())
    }

    fn is_program(&self) -> bool {
        false
    }

    fn lower(&self) -> Result<Lowered<'_>, Failure> {
        Err(no_program())
    }
}

/// An `IOSpec` of the older dialect: it can be converted, and nothing else.
struct Flat<'t> {
    text: &'t str,
    rules: RuleSet,
    findings: Vec<Finding>,
}

impl Document for Flat<'_> {
    fn info(&self) -> Info {
        Info {
            target: "spu",
            format_version: "IOSpec, flat dialect (chipless convert rewrites it)".to_owned(),
            ..Info::default()
        }
    }

    fn raw(&self) -> Node {
        iospec::convert(self.text, self.rules)
            .map_or_else(|_| Node::default(), |document| iospec::raw(&document))
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn convert(&self) -> Result<String, Failure> {
        iospec::convert(self.text, self.rules)
            .map(|document| document.write())
            .map_err(Failure::reading)
    }

    fn is_program(&self) -> bool {
        false
    }

    fn lower(&self) -> Result<Lowered<'_>, Failure> {
        Err(no_program())
    }
}

/// A `.femto` container. Its memories are encrypted: there is nothing to run.
struct Container(Femto);

impl Document for Container {
    fn info(&self) -> Info {
        self.0.info()
    }

    fn raw(&self) -> Node {
        self.0.raw()
    }

    fn findings(&self) -> &[Finding] {
        &[]
    }

    /// Its `IOSpec`.
    fn convert(&self) -> Result<String, Failure> {
        Ok(chipless_spu::yaml::write(&self.0.iospec()))
    }

    fn is_program(&self) -> bool {
        false
    }

    fn lower(&self) -> Result<Lowered<'_>, Failure> {
        Err(no_program())
    }
}

/// A plan.
struct Program<'p> {
    plan: Plan<'p>,
    options: &'p Options,
}

impl Document for Program<'_> {
    fn info(&self) -> Info {
        fqir::info(&self.plan)
    }

    fn raw(&self) -> Node {
        fqir::raw(&self.plan)
    }

    fn findings(&self) -> &[Finding] {
        &self.plan.findings
    }

    fn lower(&self) -> Result<Lowered<'_>, Failure> {
        let machine = machine(self.options)?;
        let mut lowered = fqir::lower(&self.plan, &machine, &self.options.limits)
            .map_err(|finding| Failure::program(vec![*finding]))?;
        lowered.program.text = Text::new(self.plan.text);
        let findings = lowered.findings.iter().map(ToString::to_string);
        lowered.notes.extend(findings);
        Ok(Lowered {
            program: lowered.program,
            notes: lowered.notes,
        })
    }
}

/// The machine that was asked for, or the one that comes along.
fn machine(options: &Options) -> Result<Machine, Failure> {
    options.machine(MACHINE, &[], Machine::parse)
}

/// Makes the program of a plan ready to run, step by step.
pub fn with_runner<T, E: From<Failure>>(
    name: &str,
    bytes: &[u8],
    options: &Options,
    then: impl FnOnce(Runner<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let refused = |finding: Box<Finding>| Failure::unreadable(name, finding);
    let plan = Plan::read(bytes, &options.limits).map_err(refused)?;
    let lowered = fqir::lower(&plan, &machine(options)?, &options.limits).map_err(refused)?;
    let runner = Runner::new(&lowered, &options.limits).map_err(|error| {
        Failure::new(
            crate::FailureKind::Limit,
            name,
            format_args!(
                "expected buffers of at most {} bytes, found {}",
                error.limit, error.bytes
            ),
        )
    })?;
    then(runner)
}
