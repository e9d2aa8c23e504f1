//! `chipless explain`

use crate::failure::{Exit, Failure};
use crate::output::OutputOptions;
use crate::terminal;
use chipless_model::Rule;
use chipless_report::explain::{self, RuleReport, RulesReport};
use clap::Args;

/// Explain a finding and how to fix it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Code of the finding. Default: list all codes.
    ///
    /// It stands in brackets behind `error`, `warning` or `note`.
    code: Option<String>,
    /// Print all codes as one Markdown page.
    #[arg(long, conflicts_with_all = ["code", "format", "json"])]
    markdown: bool,
    #[command(flatten)]
    answer: OutputOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless explain                                  all codes, one line each
  chipless explain deadlock

Classes: `fault`: the program is wrong; `unsupported`: Chipless cannot do this yet; `limit`: a bound that --limit raises; `departure`: unlike what compilers are known to write, which proves nothing. JSON is `{schema_version, rules: [{code, class, severity, targets, summary, evidence, \
explanation, remedy, source}]}`.

Exit status: 0 done, 2 there is no such code.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let paint = terminal::out();
    if arguments.answer.is_json() {
        let asked = match &arguments.code {
            Some(code) => Some(chipless::rule("explain", code)?),
            None => None,
        };
        let rules: Vec<RuleReport> = chipless::rules_of_targets()
            .into_iter()
            .filter(|(rule, _)| asked.is_none_or(|asked| asked.code == rule.code))
            .map(|(rule, targets)| RuleReport::new(rule, targets))
            .collect();
        terminal::print_json(&RulesReport::new(rules))?;
        return Ok(Exit::Done);
    }
    if let Some(code) = &arguments.code {
        terminal::print(&explain::rule(chipless::rule("explain", code)?, paint))?;
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
