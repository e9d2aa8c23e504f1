//! What a finding means: the text of one rule, and the index of all.

use crate::SCHEMA_VERSION;
use crate::bars::widest;
use crate::style::Paint;
use chipless_model::Rule;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;

/// Characters in a line of running text.
const WIDTH: usize = 100;

/// Everything there is to say about a rule.
pub fn rule(rule: &Rule, paint: Paint) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}{}",
        paint.code(rule.severity, rule.code),
        paint.strong(format_args!(": {}", rule.summary))
    );
    let _ = writeln!(
        out,
        "{}; it rests on {}",
        rule.class.phrase(),
        rule.evidence.name()
    );
    for (title, text) in [
        ("", rule.explanation),
        ("How to fix it", rule.remedy),
        ("Source", rule.source),
    ] {
        if text.is_empty() {
            continue;
        }
        out.push('\n');
        if !title.is_empty() {
            let _ = writeln!(out, "{}", paint.strong(title));
        }
        for paragraph in text.trim_end().lines() {
            fill(&mut out, paragraph);
        }
    }
    out
}

/// One line for each rule, by code.
pub fn index(rules: &[&Rule], paint: Paint) -> String {
    let mut rules = rules.to_vec();
    rules.sort_by_key(|rule| rule.code);
    let width = widest(rules.iter().map(|r| r.code));
    let mut out = String::new();
    for rule in rules {
        let severity = paint.severity(rule.severity, format!("{:<7}", rule.severity.name()));
        let class = rule.class.name();
        let _ = writeln!(
            out,
            "{:width$}  {severity}  {class:11}  {}",
            rule.code, rule.summary
        );
    }
    out
}

/// The answer to `explain --format json`.
#[derive(Debug, JsonSchema, Serialize)]
pub struct RulesReport {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The rules that were asked for.
    pub rules: Vec<RuleReport>,
}

impl RulesReport {
    /// The answer with these rules.
    pub fn new(rules: Vec<RuleReport>) -> RulesReport {
        RulesReport {
            schema_version: SCHEMA_VERSION,
            rules,
        }
    }
}

/// A rule in the answer to `explain --format json`.
#[derive(Debug, JsonSchema, Serialize)]
pub struct RuleReport {
    /// Its stable code.
    pub code: &'static str,
    /// `fault`, `unsupported`, `limit` or `departure`.
    pub class: &'static str,
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// Targets whose files it is about; all of them for rules of files and of programs.
    pub targets: Vec<&'static str>,
    /// One line.
    pub summary: &'static str,
    /// What it rests on.
    pub evidence: &'static str,
    /// What it means, and how it comes about.
    pub explanation: &'static str,
    /// How to fix it.
    pub remedy: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
}

impl RuleReport {
    /// The report about a rule of these targets.
    pub fn new(rule: &'static Rule, targets: Vec<&'static str>) -> RuleReport {
        RuleReport {
            code: rule.code,
            class: rule.class.name(),
            severity: rule.severity.name(),
            targets,
            summary: rule.summary,
            evidence: rule.evidence.name(),
            explanation: rule.explanation,
            remedy: rule.remedy,
            source: rule.source,
        }
    }
}

/// All rules as one page of Markdown, by code.
pub fn page(rules: &[&Rule]) -> String {
    let mut rules = rules.to_vec();
    rules.sort_by_key(|rule| rule.code);
    let mut out = String::from(
        "# Findings\n\n\
         What `chipless check` can find, by code; `chipless explain CODE` prints the same. `--allow CODE` leaves findings of a code out, \
         `--deny CODE` takes them for errors.\n\n\
         This page is generated: `cargo xtask reference`.\n\n\
         A *fault* is the program's. *Unsupported* is what Chipless lacks, a *limit* one that the user may raise. A *departure* is \
         something that compilers are not known to write: it proves nothing against the program and keeps nothing from running.\n\n\
         | code | severity | class | |\n|---|---|---|---|\n",
    );
    for rule in &rules {
        let _ = writeln!(
            out,
            "| [`{0}`](#{0}) | {1} | {2} | {3} |",
            rule.code,
            rule.severity.name(),
            rule.class.name(),
            cell(rule.summary)
        );
    }
    for rule in &rules {
        let _ = write!(
            out,
            "\n## {}\n\n*{}*, {}, rests on {}: {}.\n",
            rule.code,
            rule.severity.name(),
            rule.class.name(),
            rule.evidence.name(),
            rule.summary.trim_end_matches('.')
        );
        for (title, text) in [
            ("", rule.explanation),
            ("**How to fix it.** ", rule.remedy),
            ("**Source:** ", rule.source),
        ] {
            if !text.is_empty() {
                out.push('\n');
                out.push_str(title);
                markdown(&mut out, text);
            }
        }
    }
    out
}

/// A text in a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

/// Paragraphs; lines that are indented are examples.
fn markdown(out: &mut String, text: &str) {
    let mut in_example = false;
    for line in text.trim_end().lines() {
        let example = line.starts_with(' ');
        if example != in_example {
            out.push_str(if example { "\n```text\n" } else { "```\n\n" });
        }
        in_example = example;
        if example {
            out.push_str(line);
        } else {
            out.push_str(&line.replace('<', "&lt;"));
        }
        out.push('\n');
    }
    if in_example {
        out.push_str("```\n");
    }
}

/// Breaks a paragraph between words; lines that are indented are examples and stay as they are.
fn fill(out: &mut String, paragraph: &str) {
    if paragraph.starts_with(' ') {
        out.push_str(paragraph);
        out.push('\n');
        return;
    }
    let mut column = 0;
    for word in paragraph.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::Severity;

    static LOST: Rule = Rule {
        code: "signal-lost",
        class: chipless_model::Class::Fault,
        evidence: chipless_model::Evidence::Format,
        severity: Severity::Warning,
        summary: "nobody waits for a signal",
        explanation: "A task signals a barrier that no task waits for. The signal has no effect, and the order that it was meant to make does not exist; what the compiler had in mind cannot be told from the file.\nAn example:\n  dma0[3]   produce barrier 7\n",
        remedy: "Let the reader wait for the barrier.",
        source: "",
    };
    static ABSENT: Rule = Rule {
        code: "file-absent",
        class: chipless_model::Class::Fault,
        evidence: chipless_model::Evidence::Format,
        severity: Severity::Error,
        summary: "there is no file",
        explanation: "",
        remedy: "",
        source: "",
    };

    #[test]
    fn a_rule_is_told_in_lines_that_fit() {
        insta::assert_snapshot!(rule(&LOST, Paint::PLAIN));
    }

    #[test]
    fn the_index_is_sorted_by_code() {
        insta::assert_snapshot!(index(&[&LOST, &ABSENT], Paint::PLAIN), @r"
        file-absent  error    fault        there is no file
        signal-lost  warning  fault        nobody waits for a signal
        ");
    }
}
