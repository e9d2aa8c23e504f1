//! Findings as they come up, those of one cause folded.

use chipless_model::{Finding, Rule};
use std::collections::BTreeMap;

/// Findings of one rule that are kept when their causes differ; the rest is told in a sentence each.
const KEPT: usize = 20;
/// Findings that one finding stands for and tells of, at most; the rest is counted.
const ALIKE: usize = 1000;

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
    /// Adds a finding, or tells of it as one more of its cause.
    pub(crate) fn add(
        &mut self,
        rule: &'static Rule,
        cause: Cause,
        finding: impl FnOnce() -> Finding,
    ) {
        if let Some(finding) = self.fold(rule, cause, finding, |finding| named(&finding())) {
            self.keep(rule, cause, finding());
        }
    }

    /// The same for findings of which there may be many, and which say more than their message.
    pub(crate) fn add_with(
        &mut self,
        rule: &'static Rule,
        cause: Cause,
        message: impl FnOnce() -> String,
        finding: impl FnOnce(String) -> Finding,
    ) {
        if let Some(message) = self.fold(rule, cause, message, |message| message()) {
            self.keep(rule, cause, finding(message()));
        }
    }

    /// Gives back what makes a finding that stands for itself.
    fn fold<F>(
        &mut self,
        rule: &'static Rule,
        cause: Cause,
        make: F,
        message: impl FnOnce(F) -> String,
    ) -> Option<F> {
        let cause = self.follows.get(&(rule.code, cause)).unwrap_or(&cause);
        let own = self.causes.get_mut(&(rule.code, *cause));
        let is_full = || self.kept.get(rule.code).is_some_and(|kept| *kept >= KEPT);
        let standing = match own {
            None if is_full() => {
                // All further causes of the rule count for its first finding.
                let mut of_rule = self.causes.range_mut((rule.code, (0, 0, 0))..);
                of_rule.next().map(|(_, entry)| entry)
            }
            own => own,
        };
        let Some((index, more)) = standing else {
            return Some(make);
        };
        *more += 1;
        if *more <= ALIKE {
            self.list[*index].alike.push(message(make));
        }
        None
    }

    fn keep(&mut self, rule: &'static Rule, cause: Cause, finding: Finding) {
        let follows = self.follows.get(&(rule.code, cause));
        let cause = follows.copied().unwrap_or(cause);
        *self.kept.entry(rule.code).or_insert(0) += 1;
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

/// The message of a finding, with the task that it is about.
fn named(finding: &Finding) -> String {
    let (item, message) = (&finding.place.item, &finding.message);
    if item.is_empty() || message.contains(&**item) {
        message.clone()
    } else {
        format!("{item} {message}")
    }
}
