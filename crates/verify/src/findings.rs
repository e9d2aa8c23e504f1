//! Findings as they come up, those of one cause folded.

use chipless_model::{Finding, Rule};
use std::collections::BTreeMap;

/// Findings of one rule that are kept when their causes differ; the rest is counted.
const KEPT: usize = 20;

/// Collects findings.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    /// By rule and cause: which finding stands for it, and how many more there are.
    causes: BTreeMap<(&'static str, Cause), (usize, usize)>,
    /// Causes that follow from another one of the same rule, and count for it.
    follows: BTreeMap<(&'static str, Cause), Cause>,
    kept: BTreeMap<&'static str, usize>,
    /// Errors so far.
    pub(crate) errors: usize,
}

/// What findings of one rule have in common when they have one cause: two queues and a buffer, a sync, …
pub(crate) type Cause = (u32, u32, u32);

impl Findings {
    /// Adds a finding, or counts it as one more of its cause.
    pub(crate) fn add(
        &mut self,
        rule: &'static Rule,
        cause: Cause,
        finding: impl FnOnce() -> Finding,
    ) {
        let cause = self
            .follows
            .get(&(rule.code, cause))
            .copied()
            .unwrap_or(cause);
        if let Some((_, more)) = self.causes.get_mut(&(rule.code, cause)) {
            *more += 1;
            return;
        }
        let kept = self.kept.entry(rule.code).or_insert(0);
        *kept += 1;
        if *kept > KEPT {
            // All further causes of the rule count for its first finding.
            if let Some((_, more)) = self
                .causes
                .range_mut((rule.code, (0, 0, 0))..)
                .next()
                .map(|(_, entry)| entry)
            {
                *more += 1;
            }
            return;
        }
        let finding = finding();
        self.errors += usize::from(finding.is_error());
        self.causes.insert((rule.code, cause), (self.list.len(), 0));
        self.list.push(finding);
    }

    /// Whether findings of a cause are only counted from now on.
    pub(crate) fn has(&self, rule: &'static Rule, cause: Cause) -> bool {
        let key = (rule.code, cause);
        self.causes.contains_key(&key) || self.follows.contains_key(&key)
    }

    /// Counts findings of a cause for the one that it follows from.
    pub(crate) fn follow(&mut self, rule: &'static Rule, cause: Cause, from: Cause) {
        if cause != from {
            self.follows.insert((rule.code, cause), from);
        }
    }

    /// Adds everything that another collection holds.
    pub(crate) fn append(&mut self, other: Findings) {
        let offset = self.list.len();
        self.errors += other.errors;
        self.list.extend(other.list);
        for (cause, (index, more)) in other.causes {
            self.causes.entry(cause).or_insert((index + offset, more));
        }
        self.follows.extend(other.follows);
        for (code, kept) in other.kept {
            *self.kept.entry(code).or_insert(0) += kept;
        }
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The findings, errors first, with the number of those that were folded.
    pub(crate) fn finish(mut self) -> Vec<Finding> {
        for (index, more) in self.causes.values().filter(|(_, more)| *more > 0) {
            let message = &mut self.list[*index].message;
            *message = format!("{message} (and {more} more like this)");
        }
        self.list.sort_by_key(|finding| finding.rule.severity);
        self.list
    }
}
