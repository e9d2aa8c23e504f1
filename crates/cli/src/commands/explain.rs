//! `chipless explain`

use super::check;
use crate::failure::{Exit, Failure};
use crate::targets::Target;
use crate::{suggest, terminal};
use chipless_model::Rule;
use chipless_report::explain;
use clap::Args;

/// What a finding means and how to mend it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The code of the finding, as it stands in brackets behind `error` or `warning`. Without it, all codes are listed.
    code: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  chipless explain                                  all codes, one line each
  chipless explain deadlock

Exit status: 0 done, 2 there is no such code.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let rules: Vec<&'static Rule> = check::RULES.iter().chain(chipless_verify::RULES).copied().chain(Target::rules()).collect();
    let paint = terminal::out();
    let Some(code) = &arguments.code else {
        terminal::print(&explain::index(&rules, paint))?;
        return Ok(Exit::Done);
    };
    if let Some(rule) = rules.iter().find(|rule| rule.code == code) {
        terminal::print(&explain::rule(rule, paint))?;
        return Ok(Exit::Done);
    }
    let hint = suggest::hint(code, rules.iter().map(|rule| rule.code));
    let text = format_args!("expected the code of a finding, found \"{code}\"{hint} (`chipless explain` lists them)");
    Err(Failure::unusable("explain", text))
}
