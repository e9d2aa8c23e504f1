//! Dataflow graphs for spatial accelerators, and the accelerators' architecture graphs.

mod streams;

use super::{Consumer, Document, Lowering, Picture, Reader, Source};
use crate::failure::Failure;
use chipless_dsa::adg::{self, Adg};
use chipless_dsa::pictures;
use chipless_model::{Finding, Info, Limits, Node};

/// A DFG with everything that was found in it.
struct Opened<'f> {
    document: chipless_dsa::Document<'f>,
    findings: Vec<Finding>,
}

/// An architecture graph with everything that was found in it.
struct Fabric {
    adg: Adg,
    findings: Vec<Finding>,
}

pub(super) fn read(
    source: Source<'_>,
    limits: &Limits,
    then: Reader<'_>,
) -> Result<(), Vec<Finding>> {
    if adg::recognize(source.bytes) {
        let (adg, findings) = Adg::read(source.bytes, limits).map_err(|finding| vec![*finding])?;
        then(&Fabric { adg, findings });
        return Ok(());
    }
    let document = chipless_dsa::Document::read(source.bytes, limits);
    let findings = chipless_dsa::lint(&document, limits);
    then(&Opened { document, findings });
    Ok(())
}

impl Document for Fabric {
    fn info(&self) -> Info {
        self.adg.info()
    }

    fn raw(&self) -> Node {
        self.adg.raw()
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn pictures(
        &self,
        _lowering: &Lowering,
    ) -> Result<Result<Vec<Picture>, Vec<Finding>>, Failure> {
        let title = format!(
            "{} elements, {} links",
            self.adg.elements.len(),
            self.adg.links.len()
        );
        let (svg, text) = (
            pictures::svg(&self.adg, None),
            pictures::text(&self.adg, None),
        );
        Ok(Ok(vec![Picture {
            name: "fabric".to_owned(),
            title,
            svg,
            text,
        }]))
    }

    /// A fabric is no program.
    fn lower(
        &self,
        _lowering: &Lowering,
        _then: Consumer<'_>,
    ) -> Result<Result<(), Vec<Finding>>, Failure> {
        Ok(Err(Vec::new()))
    }
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

    fn lower(
        &self,
        lowering: &Lowering,
        then: Consumer<'_>,
    ) -> Result<Result<(), Vec<Finding>>, Failure> {
        streams::lower(&self.document, lowering, then).map(Ok)
    }
}
