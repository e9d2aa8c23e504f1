//! IOSpecs, FQIR plans and `.femto` containers.

use super::{Consumer, Document, Lowering, Reader, Source};
use crate::failure::Failure;
use chipless_model::{Finding, Info, Limits, Node, Place, Text};
use chipless_spu::fqir::{self, MACHINE, Machine, Plan, Runner};
use chipless_spu::iospec::{self, Femto, RuleSet};

pub(super) fn read(
    source: Source<'_>,
    limits: &Limits,
    then: Reader<'_>,
) -> Result<(), Vec<Finding>> {
    if Femto::recognize(source.bytes) {
        then(&Container(
            Femto::read(source.bytes).map_err(|finding| vec![*finding])?,
        ));
        return Ok(());
    }
    if fqir::recognize(source.bytes) {
        let plan = Plan::read(source.bytes, limits).map_err(|finding| vec![*finding])?;
        then(&Program { plan, limits });
        return Ok(());
    }
    let rules = source.rules.unwrap_or_default();
    let text = text(source.bytes, rules)?;
    match iospec::Document::read(text, rules) {
        Ok(document) => {
            let findings = iospec::lint(&document, rules);
            then(&Contract { document, findings });
        }
        Err(findings) if iospec::convert(text, rules).is_ok() => then(&Flat {
            text,
            rules,
            findings,
        }),
        Err(findings) => return Err(findings),
    }
    Ok(())
}

/// The text of an IOSpec.
fn text(bytes: &[u8], rules: RuleSet) -> Result<&str, Vec<Finding>> {
    std::str::from_utf8(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).map_err(|error| {
        let place = Place::bytes(error.valid_up_to() as u64, 1);
        vec![
            iospec::rules::SYNTAX
                .under(rules)
                .at(place, "expected text in UTF-8, found other bytes"),
        ]
    })
}

/// An IOSpec.
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

    fn convert(&self) -> Result<String, Vec<Finding>> {
        Ok(self.document.write())
    }

    /// A contract is no program.
    fn lower(&self, _: &Lowering, _: Consumer<'_>) -> Result<Result<(), Vec<Finding>>, Failure> {
        Ok(Err(Vec::new()))
    }
}

/// An IOSpec of the older dialect: it can be converted, and nothing else.
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

    fn convert(&self) -> Result<String, Vec<Finding>> {
        iospec::convert(self.text, self.rules).map(|document| document.write())
    }

    fn lower(&self, _: &Lowering, _: Consumer<'_>) -> Result<Result<(), Vec<Finding>>, Failure> {
        Ok(Err(Vec::new()))
    }
}

/// A `.femto` container.
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

    /// Its IOSpec.
    fn convert(&self) -> Result<String, Vec<Finding>> {
        Ok(chipless_spu::yaml::write(&self.0.iospec()))
    }

    /// The memories of a container are encrypted.
    fn lower(&self, _: &Lowering, _: Consumer<'_>) -> Result<Result<(), Vec<Finding>>, Failure> {
        Ok(Err(Vec::new()))
    }
}

/// A plan.
struct Program<'p> {
    plan: Plan<'p>,
    limits: &'p Limits,
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

    fn lower(
        &self,
        lowering: &Lowering,
        then: Consumer<'_>,
    ) -> Result<Result<(), Vec<Finding>>, Failure> {
        let machine = machine(lowering)?;
        Ok(match fqir::lower(&self.plan, &machine, self.limits) {
            Ok(mut lowered) => {
                lowered.program.text = Text::new(self.plan.text);
                let notes = lowered
                    .notes
                    .iter()
                    .cloned()
                    .chain(lowered.findings.iter().map(ToString::to_string))
                    .collect();
                then(&lowered.program, notes);
                Ok(())
            }
            Err(finding) => Err(vec![*finding]),
        })
    }
}

/// The machine of the command line, or the one that comes along.
pub(crate) fn machine(lowering: &Lowering) -> Result<Machine, Failure> {
    match lowering.machine(Machine::parse)? {
        Some(machine) => Ok(machine),
        None => Machine::parse(MACHINE).map_err(|error| Failure::unusable("machine.toml", error)),
    }
}

/// Makes the program of a plan ready to run, step by step.
pub(crate) fn with_runner<T>(
    name: &str,
    bytes: &[u8],
    lowering: &Lowering,
    then: impl FnOnce(Runner<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let refused = |finding: Box<Finding>| Failure::unusable(name, finding);
    let plan = Plan::read(bytes, lowering.limits()).map_err(refused)?;
    let lowered = fqir::lower(&plan, &machine(lowering)?, lowering.limits()).map_err(refused)?;
    let runner = Runner::new(&lowered, lowering.limits()).map_err(|e| {
        Failure::unusable(
            name,
            format_args!(
                "expected buffers of at most {} bytes, found {}",
                e.limit, e.bytes
            ),
        )
    })?;
    then(runner)
}
