//! A file that was read: its text, its graph, and what was found on the way.

use crate::graph::Graph;
use crate::resolve::{Spelling, resolve};
use crate::syntax::ast::File;
use crate::syntax::{Lines, parse, print};
use chipless_model::{Finding, Limits};

/// A file that was read.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// The file as it is.
    pub bytes: &'a [u8],
    /// Where its lines begin.
    pub lines: Lines<'a>,
    /// What its statements mean. Complete where no finding is an error.
    pub graph: Graph,
    /// What was found while reading.
    pub findings: Vec<Finding>,
    spelling: Spelling<'a>,
    limits: Limits,
    /// Whether every statement is in the tree.
    readable: bool,
}

impl<'a> Document<'a> {
    /// Reads a file. Where a finding is an error, the graph lacks what the error is about.
    pub fn read(bytes: &'a [u8], limits: &Limits) -> Document<'a> {
        let lines = Lines::new(bytes);
        let (file, mut findings) = parse(bytes, &lines, limits);
        let readable = file.unreadable == 0 && !findings.iter().any(Finding::is_error);
        let (graph, spelling, more) = resolve(&file, &lines, limits);
        findings.extend(more);
        Document {
            bytes,
            lines,
            graph,
            findings,
            spelling,
            limits: limits.clone(),
            readable,
        }
    }

    /// Its statements. A graph is much smaller than they are, so they are read again for those who want them.
    pub fn tree(&self) -> File<'a> {
        parse(self.bytes, &self.lines, &self.limits).0
    }

    /// The text in its canonical form; `None` where statements could not be read, which would be lost.
    pub fn format(&self) -> Option<String> {
        self.readable
            .then(|| print(&self.tree(), self.bytes, &self.spelling))
    }

    /// Whether its slices are of the older form, `v:width:index`.
    pub fn slices_by_width(&self) -> bool {
        self.spelling.slices_by_width
    }

    /// Whether the graph is all that the file says.
    pub fn is_complete(&self) -> bool {
        !self.findings.iter().any(Finding::is_error)
    }
}
