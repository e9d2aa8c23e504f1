//! The engines of the NPU.

use crate::fields::{Read, wrong};
use crate::rules;
use chipless_yaml::Node;

/// An engine with places for jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    /// DPUs and SHAVEs, tile by tile.
    #[default]
    Nn,
    /// Copies.
    Copy,
}

impl Engine {
    /// As workloads name it.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Nn => "nn",
            Engine::Copy => "copy",
        }
    }
}

/// Reads the name of one.
pub(crate) fn engine(node: &Node) -> Read<Engine> {
    match node.value.text() {
        Some("nn") => Ok(Engine::Nn),
        Some("copy") => Ok(Engine::Copy),
        _ => wrong(
            &rules::TYPE,
            node.span,
            format!("expected the engine nn or copy, found {}", node.describe()),
        ),
    }
}
