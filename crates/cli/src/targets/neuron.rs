//! AWS NEFFs.

use super::{Consumer, Document, Lowering, Parts, Reader, Source};
use crate::failure::Failure;
use crate::suggest;
use chipless_model::{Finding, Info, Limits, Node};
use chipless_neuron::machine::Machine;
use chipless_neuron::memory::SCRATCHPAD_PAGE;
use chipless_neuron::{Container, MemoryPlan, Neff, Runtime};
use std::collections::BTreeSet;

/// A NEFF, its container opened.
struct Opened<'c> {
    container: &'c Container<'c>,
    neff: Neff<'c>,
    findings: Vec<Finding>,
    limits: &'c Limits,
}

pub(super) fn read(
    source: Source<'_>,
    limits: &Limits,
    then: Reader<'_>,
) -> Result<(), Vec<Finding>> {
    let container = Container::open(source.bytes, limits).map_err(|finding| vec![*finding])?;
    let neff = Neff::read(&container, limits).map_err(|finding| vec![*finding])?;
    let findings = chipless_neuron::lint(&neff, limits);
    then(&Opened {
        container: &container,
        neff,
        findings,
        limits,
    });
    Ok(())
}

/// The members among the parts of a NEFF; empty where the container cannot be opened.
pub(super) fn parts(source: Source<'_>, limits: &Limits, names: &BTreeSet<&str>) -> Parts {
    let packed: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| !matches!(*name, "" | "header" | "payload"))
        .collect();
    let container = if packed.is_empty() {
        None
    } else {
        Container::open(source.bytes, limits).ok()
    };
    let bytes = |name: &str| match (&container, name) {
        (Some(container), "tarball") => container.tarball().to_vec(),
        (Some(container), name) => container
            .member(name)
            .map(|member| member.bytes.to_vec())
            .unwrap_or_default(),
        (None, _) => Vec::new(),
    };
    packed
        .into_iter()
        .map(|name| (name.to_owned(), bytes(name)))
        .collect()
}

impl Document for Opened<'_> {
    fn info(&self) -> Info {
        chipless_neuron::info(&self.neff)
    }

    fn raw(&self) -> Node {
        chipless_neuron::raw(self.container)
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn memory(&self) -> Option<Node> {
        Some(MemoryPlan::new(&self.neff, SCRATCHPAD_PAGE).node())
    }

    fn refused_by(&self, name: &str) -> Result<Vec<Finding>, Failure> {
        let Some(runtime) = Runtime::named(name) else {
            let known: Vec<&str> = Runtime::names().collect();
            let hint = suggest::hint(name, Runtime::names());
            let text = format!(
                "expected one of {} or a mask such as 0xff, found \"{name}\"{hint}",
                known.join(", ")
            );
            return Err(Failure::unusable("--runtime", text));
        };
        Ok(runtime.check(&self.container.header))
    }

    fn lower(
        &self,
        lowering: &Lowering,
        then: Consumer<'_>,
    ) -> Result<Result<(), Vec<Finding>>, Failure> {
        let given = lowering.machine(Machine::parse)?;
        Ok(program(&self.neff, given, self.limits, then))
    }
}

fn program(
    neff: &Neff<'_>,
    given: Option<Machine>,
    limits: &Limits,
    then: Consumer<'_>,
) -> Result<(), Vec<Finding>> {
    let own = neff.architecture.machine();
    let mut notes = Vec::new();
    if given.is_none() && own.is_none() {
        notes.push(
            "there is no machine file for this architecture: timed with the figures of trn2"
                .to_owned(),
        );
    }
    let Some(machine) = given.or(own).or_else(|| Machine::named("trn2")) else {
        return Err(Vec::new());
    };
    let mut lowered =
        chipless_neuron::lower(neff, &machine, limits).map_err(|finding| vec![*finding])?;
    chipless_neuron::attach_labels(neff, &mut lowered.program);
    notes.append(&mut lowered.notes);
    then(&lowered.program, notes);
    Ok(())
}
