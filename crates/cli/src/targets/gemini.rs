//! Schedules of the Gemini family.

use super::{Consumer, Document, Lowering, Reader, Source};
use crate::failure::{Exit, Failure};
use crate::files;
use chipless_gemini::lower::Data;
use chipless_gemini::{Dialect, Machine, Network, WeightData};
use chipless_model::{Finding, Info, Limits, Node};
use std::cell::OnceCell;
use std::path::Path;

/// A schedule that was read, and the options under which it is looked at.
struct Opened<'f, 'o> {
    document: chipless_gemini::Document<'f>,
    lowering: &'o Lowering,
    findings: OnceCell<Vec<Finding>>,
}

pub(super) fn read(source: Source<'_>, lowering: &Lowering, then: Reader<'_>) -> Result<(), Vec<Finding>> {
    let document = chipless_gemini::Document::read(source.bytes, source.path, &lowering.limits).map_err(|finding| vec![*finding])?;
    then(&Opened { document, lowering, findings: OnceCell::new() });
    Ok(())
}

/// Reads the front-end file that an option names.
pub(super) fn network(path: &Path, limits: &Limits) -> Result<Network, Failure> {
    let bytes = files::open(path).map_err(|error| Failure::unusable(path.display(), error))?;
    let unpacked = chipless_gemini::unzip(&bytes, limits);
    let network = unpacked.and_then(|bytes| Network::read(&bytes, limits));
    network.map_err(|finding| Failure::Said(Exit::Unusable, format!("{}: {finding}", path.display())))
}

impl Document for Opened<'_, '_> {
    fn info(&self) -> Info {
        self.document.info()
    }

    fn raw(&self) -> Node {
        self.document.raw()
    }

    fn findings(&self) -> &[Finding] {
        let Lowering { network, batch, limits, .. } = self.lowering;
        self.findings.get_or_init(|| self.document.findings(network.as_ref(), *batch, limits))
    }

    fn convert(&self) -> Result<String, Vec<Finding>> {
        Ok(self.document.schedule.clone().convert(self.lowering.network.as_ref()).write())
    }

    fn lower(&self, lowering: &Lowering, then: Consumer<'_>) -> Result<Result<(), Vec<Finding>>, Failure> {
        let given = lowering.machine(Machine::parse)?;
        let preset = if self.document.schedule.dialect == Dialect::Spec { "spec" } else { "set" };
        let Some(machine) = given.or_else(|| Machine::named(preset)) else { return Ok(Err(Vec::new())) };
        let network = lowering.network.as_ref();
        let data = Data { network, weights: network.map(|_| WeightData::Seeded(0)) };
        let lowered = chipless_gemini::lower(&self.document.schedule, &data, &machine, &lowering.limits);
        Ok(match lowered {
            Ok(lowered) => {
                then(&lowered.program, lowered.notes);
                Ok(())
            }
            Err(finding) => Err(vec![*finding]),
        })
    }
}
