//! Which findings count: those that are left out, and those that are taken for errors.

use crate::failure::Failure;
use crate::targets;
use chipless_model::suggest;
use chipless_model::{Finding, Rule, Severity};
use glob::{MatchOptions, Pattern};
use std::collections::BTreeSet;

/// Which findings count.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    allowed: Vec<Allowed>,
    denied: BTreeSet<&'static str>,
}

/// Findings that are left out.
#[derive(Clone, Debug)]
struct Allowed {
    codes: BTreeSet<&'static str>,
    /// In these files; in all without.
    paths: Option<Pattern>,
}

impl Policy {
    /// Leaves out findings of this code, or of codes that a pattern fits (`neff-*`). `option` is what to call it in messages.
    ///
    /// # Errors
    /// A code that no rule has, or that is denied as well.
    pub fn allow(&mut self, option: &str, code: &str) -> Result<(), Failure> {
        let codes = codes(option, code)?;
        if let Some(code) = codes.intersection(&self.denied).next() {
            return Err(Failure::misuse(
                option,
                format_args!("{code} is denied as well"),
            ));
        }
        self.allowed.push(Allowed { codes, paths: None });
        Ok(())
    }

    /// Takes findings of this code, or of codes that a pattern fits, for errors.
    ///
    /// # Errors
    /// A code that no rule has.
    pub fn deny(&mut self, option: &str, code: &str) -> Result<(), Failure> {
        self.denied.extend(codes(option, code)?);
        Ok(())
    }

    /// Leaves out what a file names: lines of `CODE [GLOB of paths]  # reason`. Empty lines and lines that are all comment say nothing.
    ///
    /// # Errors
    /// The first line that is wrong, by its number.
    pub fn allow_file(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        for (index, line) in text.lines().enumerate() {
            let place = format!("{name}:{}", index + 1);
            let (said, reason) = line.split_once('#').unwrap_or((line, ""));
            let mut words = said.split_whitespace();
            let Some(code) = words.next() else { continue };
            if reason.trim().is_empty() {
                let text = "expected a reason behind `#`, found none";
                return Err(Failure::misuse(place, text));
            }
            let paths = match words.next() {
                Some(glob) => Some(pattern(&place, glob)?),
                None => None,
            };
            if let Some(more) = words.next() {
                let text = format!("expected `CODE [GLOB]  # reason`, found \"{more}\" beside it");
                return Err(Failure::misuse(place, text));
            }
            let codes = codes(&place, code)?;
            self.allowed.push(Allowed { codes, paths });
        }
        Ok(())
    }

    /// Leaves out what is allowed in a file of this name, and gives the rest the severity that it has here. Returns how many were left out.
    pub fn apply(&self, path: &str, findings: &mut Vec<Finding>) -> usize {
        let before = findings.len();
        findings.retain(|finding| !self.is_allowed(path, finding.rule.code));
        for finding in &mut *findings {
            if self.denied.contains(finding.rule.code) {
                finding.severity = Severity::Error;
            }
        }
        before - findings.len()
    }

    /// Whether findings of this code are left out in a file of this name.
    pub fn allows(&self, path: &str, code: &str) -> bool {
        self.is_allowed(path, code)
    }

    fn is_allowed(&self, path: &str, code: &str) -> bool {
        // `*` stops at slashes; `**/` goes through.
        let options = MatchOptions {
            require_literal_separator: true,
            ..MatchOptions::default()
        };
        // A relative pattern fits the end of a path, as in ignore files.
        let ends = std::iter::once(0).chain(path.match_indices('/').map(|(at, _)| at + 1));
        let fits = |glob: &Pattern| {
            ends.clone()
                .any(|at| glob.matches_with(&path[at..], options))
        };
        self.allowed
            .iter()
            .any(|allowed| allowed.codes.contains(code) && allowed.paths.as_ref().is_none_or(&fits))
    }
}

fn pattern(option: &str, text: &str) -> Result<Pattern, Failure> {
    Pattern::new(text).map_err(|error| {
        let text = format!("expected a pattern, found \"{text}\": {}", error.msg);
        Failure::misuse(option, text)
    })
}

/// The codes that a pattern fits.
fn codes(option: &str, text: &str) -> Result<BTreeSet<&'static str>, Failure> {
    if !text.contains(['*', '?', '[']) {
        return Ok([rule(option, text)?.code].into());
    }
    let pattern = pattern(option, text)?;
    let codes: BTreeSet<&'static str> = targets::rules()
        .map(|rule| rule.code)
        .filter(|code| pattern.matches(code))
        .collect();
    if codes.is_empty() {
        let text = format!(
            "expected a pattern that fits the code of a finding, found \"{text}\" (`chipless explain` lists them)"
        );
        return Err(Failure::misuse(option, text));
    }
    Ok(codes)
}

/// The rule of a code that a user typed.
///
/// # Errors
/// A code that no rule has.
pub fn rule(option: &str, code: &str) -> Result<&'static Rule, Failure> {
    targets::rules().find(|rule| rule.code == code).ok_or_else(|| {
        let codes = || targets::rules().map(|rule| rule.code);
        let family: Vec<&str> = codes().filter(|known| known.starts_with(code)).collect();
        let hint = match &family[..] {
            [_, _, ..] if !code.is_empty() => format!("; did you mean one of {}?", family.join(", ")),
            _ => suggest::hint(code, codes()),
        };
        Failure::unreadable(option, format_args!("expected the code of a finding, found \"{code}\"{hint} (`chipless explain` lists them)"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::Place;

    fn deadlock() -> Finding {
        rule("test", "deadlock")
            .unwrap()
            .at(Place::file(), "a ring")
    }

    fn left(policy: &Policy, path: &str) -> usize {
        let mut findings = vec![deadlock()];
        policy.apply(path, &mut findings)
    }

    #[test]
    fn patterns_fit_codes() {
        let mut policy = Policy::default();
        policy.allow("--allow", "dead*").unwrap();
        assert_eq!(left(&policy, "a.neff"), 1);
        let mut policy = Policy::default();
        policy.allow("--allow", "neff-*").unwrap();
        assert_eq!(left(&policy, "a.neff"), 0);
        assert!(policy.allow("--allow", "nobody-*").is_err());
        assert!(
            policy
                .allow("--allow", "deadlok")
                .unwrap_err()
                .message
                .contains("deadlock")
        );
    }

    #[test]
    fn a_file_allows_with_reasons_and_in_some_files_only() {
        let mut policy = Policy::default();
        let text = "# known\n\ndeadlock */ring.neff  # waits for a fix\n";
        policy.allow_file("allow", text).unwrap();
        assert_eq!(left(&policy, "fixtures/broken/ring.neff"), 1);
        assert_eq!(left(&policy, "fixtures/broken/other.neff"), 0);
        let error = policy.allow_file("allow", "\ndeadlock\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "allow:2: expected a reason behind `#`, found none"
        );
        assert!(policy.allow_file("allow", "deadlock a b # why").is_err());
    }
}
