//! Intel NPU blobs.

use super::{Consumer, Document, Lowering, Reader, Source};
use crate::failure::Failure;
use chipless_model::{Finding, Info, Node};
use chipless_npu::{Image, Machine, Options};

pub(super) fn read(source: Source<'_>, then: Reader<'_>) -> Result<(), Vec<Finding>> {
    then(&chipless_npu::Document::read(source.bytes)?);
    Ok(())
}

impl Document for chipless_npu::Document<'_> {
    fn info(&self) -> Info {
        self.info()
    }

    fn raw(&self) -> Node {
        self.raw()
    }

    fn findings(&self) -> &[Finding] {
        self.findings()
    }

    fn lower(
        &self,
        lowering: &Lowering,
        then: Consumer<'_>,
    ) -> Result<Result<(), Vec<Finding>>, Failure> {
        let machine = lowering.machine(Machine::from_toml)?.unwrap_or_default();
        let options = Options {
            machine,
            kernels: lowering.kernels.clone(),
            limits: lowering.limits.clone(),
        };
        Ok(program(self, &options, then))
    }
}

fn program(
    document: &chipless_npu::Document<'_>,
    options: &Options,
    then: Consumer<'_>,
) -> Result<(), Vec<Finding>> {
    document.supported().map_err(|finding| vec![*finding])?;
    let image = Image::load(document, &options.limits)?;
    then(&chipless_npu::lower(document, &image, options)?, Vec::new());
    Ok(())
}
