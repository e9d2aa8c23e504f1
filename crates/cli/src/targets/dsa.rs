//! Dataflow graphs for spatial accelerators.

mod streams;

use super::{Consumer, Document, Lowering, Reader, Source};
use crate::failure::Failure;
use chipless_model::{Finding, Info, Limits, Node};

/// A DFG with everything that was found in it.
struct Opened<'f> {
    document: chipless_dsa::Document<'f>,
    findings: Vec<Finding>,
}

pub(super) fn read(source: Source<'_>, limits: &Limits, then: Reader<'_>) {
    let document = chipless_dsa::Document::read(source.bytes, limits);
    let findings = chipless_dsa::lint(&document, limits);
    then(&Opened { document, findings });
}

impl Document for Opened<'_> {
    fn info(&self) -> Info {
        chipless_dsa::info(&self.document)
    }

    fn raw(&self) -> Node {
        chipless_dsa::raw(&self.document)
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn is_complete(&self) -> bool {
        self.document.is_complete()
    }

    fn lower(&self, lowering: &Lowering, then: Consumer<'_>) -> Result<Result<(), Vec<Finding>>, Failure> {
        streams::lower(&self.document, lowering, then).map(Ok)
    }
}
