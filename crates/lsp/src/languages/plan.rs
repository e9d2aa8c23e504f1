//! Sweep plans: many runs of many programs.

use super::yaml::{self, Key};
use crate::analysis::Analysis;
use crate::language::{Language, Suggestion, checked};
use chipless::texts as rules;
use chipless::{Checked, Options};
use chipless_model::Place;
use chipless_sweep::Plan;
use std::ops::Range;
use std::path::PathBuf;

/// The language.
pub(super) struct PlanFile;

const KEYS: &[Key] = &[
    ("version", "The version of the form: 1."),
    (
        "programs",
        "The programs that run: files, patterns, or `{file, network, weights}`, relative to the plan.",
    ),
    ("programs.*.file", "The program."),
    (
        "programs.*.network",
        "The front-end network of a schedule (gemini).",
    ),
    (
        "programs.*.weights",
        "The folder with the weights of the network (gemini).",
    ),
    (
        "machine",
        "Machine parameters that vary: for each a value, a list, or a range `{from, to, steps, scale}`. Values may be factors (`2x`).",
    ),
    ("machine.*.from", "The first value of the range."),
    ("machine.*.to", "The last value of the range, included."),
    ("machine.*.steps", "Values of the range. A grid needs it."),
    (
        "machine.*.scale",
        "How values are spread: `linear` or `log`. Default: `linear`.",
    ),
    (
        "options",
        "Options of `chipless run` that name no file. A list is one more dimension.",
    ),
    (
        "options.timing_only",
        "Estimate timing only; skip computing values. Default: false.",
    ),
    ("options.seed", "Seed of random inputs. Default: 0."),
    (
        "options.verify",
        "Whether programs are verified before they run. Default: true.",
    ),
    ("sample", "Which points run. Default: `{method: grid}`."),
    (
        "sample.method",
        "`grid` (every combination), `random` or `latin_hypercube`. Default: `grid`.",
    ),
    ("sample.count", "Points of each program, unless on a grid."),
    ("sample.seed", "Seed of the points. Default: 0."),
    (
        "columns",
        "Numbers of `chipless run --json` by their paths: `queues.dpu0.busy_ns`. Default: `latency_ns`.",
    ),
];

impl Language for PlanFile {
    fn id(&self) -> &'static str {
        "chipless-plan"
    }

    fn name(&self) -> &'static str {
        "sweep plan"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["yaml", "yml"]
    }

    fn recognize(&self, text: &str) -> bool {
        let key = |name: &str| {
            text.lines().any(|line| {
                line.strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with(':'))
            })
        };
        key("programs") && (key("version") || key("machine") || key("columns"))
    }

    fn check(&self, name: &str, text: &str, _options: &Options) -> Option<Checked> {
        // Patterns are not looked up: a plan may be written where its programs are not.
        let any = |path: &std::path::Path| Ok(vec![PathBuf::from(path)]);
        let findings = match Plan::read(name, text, &any) {
            Ok(_) => Vec::new(),
            Err(failure) => {
                let line = failure
                    .subject
                    .strip_prefix(name)
                    .and_then(|rest| rest.strip_prefix(':'));
                let line = line.and_then(|line| line.parse::<u32>().ok());
                let column = |line: u32| {
                    let text = text.lines().nth(line as usize - 1).unwrap_or_default();
                    text.chars().take_while(|c| matches!(c, ' ' | '-')).count() as u32 + 1
                };
                let place = line
                    .filter(|line| *line > 0)
                    .map_or_else(Place::file, |line| Place::line(line, column(line)));
                vec![rules::PLAN.at(place, failure.message)]
            }
        };
        Some(checked(findings))
    }

    fn analyse(&self, text: &str) -> Analysis {
        let mut analysis = Analysis::default();
        if let Some(root) = yaml::tree(text) {
            yaml::outline(text, &root, &mut analysis, 2, &mut |_, _, _, _, _| {});
        }
        analysis.sort();
        analysis
    }

    fn explain(&self, text: &str, _: &Analysis, offset: usize) -> Option<(Range<usize>, String)> {
        let path = yaml::path_at(text, offset);
        if path.len() == 1 && path.first().is_some_and(|section| section == "machine") {
            return super::machine::figure(text, offset, "");
        }
        yaml::explain(KEYS, text, offset)
    }

    fn complete(&self, text: &str, _: &Analysis, offset: usize) -> Vec<Suggestion> {
        let path = yaml::path_at(text, offset);
        if path.len() == 1 && path.first().is_some_and(|section| section == "machine") {
            return super::machine::keys("");
        }
        yaml::complete(KEYS, text, offset)
    }
}
