//! What a file is at a glance.

use crate::read::File;
use crate::{fqir, iospec};
use chipless_model::Info;

impl File<'_> {
    /// The file at a glance.
    pub fn info(&self) -> Info {
        match self {
            File::Contract(document) => iospec::info(document),
            File::Flat(..) => Info {
                target: "spu",
                format_version: "IOSpec, flat dialect (chipless convert rewrites it)".to_owned(),
                ..Info::default()
            },
            File::Container(femto) => femto.info(),
            File::Program(plan) => fqir::info(plan),
        }
    }
}
