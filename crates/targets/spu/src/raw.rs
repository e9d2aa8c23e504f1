//! A file's own structures as a tree.

use crate::fqir;
use crate::iospec::{self, RuleSet};
use crate::read::File;
use chipless_model::Node;

impl File<'_> {
    /// Everything that the file says; the memories of a container are encrypted.
    pub fn raw(&self, rules: RuleSet) -> Node {
        match self {
            File::Contract(document) => iospec::raw(document),
            File::Flat(text, _) => iospec::convert(text, rules)
                .map_or_else(|_| Node::default(), |document| iospec::raw(&document)),
            File::Container(femto) => femto.raw(),
            File::Program(plan) => fqir::raw(plan),
        }
    }
}
