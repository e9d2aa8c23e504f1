//! Which findings count: `--allow` and `--deny`.

use crate::failure::Failure;
use chipless::suggest;
use chipless_model::{Finding, Rule, Severity};
use clap::Args;

/// Which findings count.
#[derive(Args, Debug)]
#[command(next_help_heading = "Findings")]
pub(crate) struct PolicyOptions {
    /// Neither show nor count findings of this code. May be given several times.
    #[arg(long, value_name = "CODE")]
    allow: Vec<String>,
    /// Take findings of this code for errors. May be given several times.
    #[arg(long, value_name = "CODE")]
    deny: Vec<String>,
}

/// The rules that the options name.
#[derive(Debug)]
pub(crate) struct Policy {
    allowed: Vec<&'static str>,
    denied: Vec<&'static str>,
}

impl PolicyOptions {
    pub(crate) fn load(&self) -> Result<Policy, Failure> {
        let codes = |option, codes: &[String]| {
            codes
                .iter()
                .map(|code| Ok(find(option, code)?.code))
                .collect::<Result<Vec<_>, Failure>>()
        };
        let policy = Policy {
            allowed: codes("--allow", &self.allow)?,
            denied: codes("--deny", &self.deny)?,
        };
        match policy
            .allowed
            .iter()
            .find(|code| policy.denied.contains(code))
        {
            Some(code) => Err(Failure::misuse(
                "--allow",
                format_args!("{code} is denied as well"),
            )),
            None => Ok(policy),
        }
    }
}

impl Policy {
    /// The findings that count, with the severity that they have here.
    pub(crate) fn apply(&self, findings: &mut Vec<Finding>) {
        findings.retain(|finding| !self.allowed.contains(&finding.rule.code));
        for finding in findings
            .iter_mut()
            .filter(|finding| self.denied.contains(&finding.rule.code))
        {
            finding.severity = Severity::Error;
        }
    }
}

/// The rule of a code that a user typed.
pub(crate) fn find(option: &str, code: &str) -> Result<&'static Rule, Failure> {
    chipless::rules().find(|rule| rule.code == code).ok_or_else(|| {
        let hint = suggest::hint(code, chipless::rules().map(|rule| rule.code));
        Failure::unreadable(option, format_args!("expected the code of a finding, found \"{code}\"{hint} (`chipless explain` lists them)"))
    })
}
