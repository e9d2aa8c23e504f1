//! A bounded list of findings: a hostile file has any number of faults.

use crate::finding::{Finding, Place, Rule};
use std::borrow::Cow;

/// Characters of a message that are kept: it may quote the file.
const MESSAGE: usize = 1000;

/// Findings up to a limit; the rest is counted, and nothing costly is done for it. `F` is what stands for a finding until its places
/// are looked up.
#[derive(Debug)]
pub struct Findings<F = Finding> {
    kept: Vec<F>,
    limit: u64,
    dropped: u64,
}

impl<F> Findings<F> {
    /// At most so many, as [`Limits::findings`](crate::Limits::findings) says.
    pub const fn new(limit: u64) -> Findings<F> {
        Findings {
            kept: Vec::new(),
            limit,
            dropped: 0,
        }
    }

    /// Whether further findings are only counted.
    pub const fn full(&self) -> bool {
        self.kept.len() as u64 >= self.limit
    }

    /// Adds a finding, which is made only if it is kept.
    pub fn add(&mut self, finding: impl FnOnce() -> F) {
        if self.full() {
            self.dropped += 1;
        } else {
            self.kept.push(finding());
        }
    }

    /// Adds a finding.
    pub fn push(&mut self, finding: F) {
        self.add(|| finding);
    }

    /// Adds those of another list.
    pub fn append(&mut self, other: Findings<F>) {
        self.dropped += other.dropped;
        other
            .kept
            .into_iter()
            .for_each(|finding| self.push(finding));
    }

    /// What has been kept, as findings; behind them one of the rule `more` that says how many were not, if any.
    pub fn done_with(
        self,
        more: &'static Rule,
        findings: impl FnOnce(Vec<F>) -> Vec<Finding>,
    ) -> Vec<Finding> {
        let mut findings = findings(self.kept);
        if self.dropped > 0 {
            let message = format!(
                "{} more findings beyond the limit findings = {}",
                self.dropped, self.limit
            );
            findings.push(more.at(Place::file(), message));
        }
        findings
    }
}

impl Findings {
    /// Adds a finding of a rule.
    pub fn report(
        &mut self,
        rule: &'static Rule,
        place: impl FnOnce() -> Place,
        message: impl AsRef<str>,
    ) {
        self.add(|| rule.at(place(), clip(message.as_ref(), MESSAGE)));
    }

    /// Whether the program cannot be trusted to run.
    pub fn has_errors(&self) -> bool {
        self.kept.iter().any(Finding::is_error)
    }

    /// All that have been kept; behind them one of the rule `more` that says how many were not, if any.
    pub fn done(self, more: &'static Rule) -> Vec<Finding> {
        self.done_with(more, |kept| kept)
    }
}

/// The first characters of a text, with `…` where more follow.
pub fn clip(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::rules! {
        ODD Fault Error Format "x-odd" "an odd count" "It is odd." "Write an even one." "X specification";
        MORE Limit Note Chipless "x-more" "more findings" "The rest is counted." "None." "Chipless";
    }

    #[test]
    fn what_is_beyond_the_limit_is_counted_and_not_made() {
        let mut findings = Findings::new(2);
        findings.report(&ODD, Place::file, "é".repeat(2 * MESSAGE));
        let mut other = Findings::new(9);
        other.report(&ODD, Place::file, "second");
        other.report(&ODD, Place::file, "third");
        findings.append(other);
        assert!(findings.full() && findings.has_errors());
        findings.report(&ODD, || unreachable!("it is not kept"), "fourth");
        let done = findings.done(&MORE);
        assert_eq!(done[0].message.chars().count(), MESSAGE + 1);
        assert_eq!(
            done[2].message,
            "2 more findings beyond the limit findings = 2"
        );
        assert_eq!(done[2].rule, ALL[1]);
        assert_eq!(Findings::<Finding>::new(0).done(&MORE), []);
    }
}
