//! What is wrong or doubtful in a file that could be read.

use crate::iospec::{self, RuleSet};
use crate::read::File;
use chipless_model::Finding;

impl File<'_> {
    /// Everything that was found. What is wrong with a program beyond its structure shows when it is lowered.
    pub fn findings(&self, rules: RuleSet) -> Vec<Finding> {
        match self {
            File::Contract(document) => {
                let mut findings = iospec::lint(document, rules);
                findings.extend(iospec::drivable(document, rules).finding(document, rules));
                findings
            }
            File::Flat(_, findings) => findings.clone(),
            File::Container(femto) => femto.verify(),
            File::Program(plan) => plan.findings.clone(),
        }
    }
}
