//! `chipless explain`

use crate::failure::{Exit, Failure};
use crate::{policy, terminal};
use chipless_model::Rule;
use chipless_report::explain;
use clap::Args;

/// What a finding means and how to mend it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The code of the finding, as it stands in brackets behind `error` or `warning`. Without it, all codes are listed.
    code: Option<String>,
    /// All codes with everything there is to say about them, as one page of Markdown.
    #[arg(long, conflicts_with = "code")]
    markdown: bool,
}

const EXAMPLES: &str = "\
Examples:
  chipless explain                                  all codes, one line each
  chipless explain deadlock

Exit status: 0 done, 2 there is no such code.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let paint = terminal::out();
    if let Some(code) = &arguments.code {
        terminal::print(&explain::rule(policy::find("explain", code)?, paint))?;
        return Ok(Exit::Done);
    }
    let rules: Vec<&'static Rule> = chipless::rules().collect();
    let text = if arguments.markdown {
        explain::page(&rules)
    } else {
        explain::index(&rules, paint)
    };
    terminal::print(&text)?;
    Ok(Exit::Done)
}
