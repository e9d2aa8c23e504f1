//! Findings as workflow commands of GitHub Actions, which shows them beside the files of a pull request.
//!
//! Source: GitHub's documentation of workflow commands (`::error file={name},line={line},title={title}::{message}`).

use crate::findings::FileReport;
use std::fmt::Write;

/// A line for each finding of a file.
pub fn annotations(file: &FileReport<'_>) -> String {
    let mut text = String::new();
    for finding in &file.findings {
        let command = match finding.severity {
            "error" => "error",
            "warning" => "warning",
            _ => "notice",
        };
        let _ = write!(text, "::{command} file={}", property(file.path));
        if let Some(line) = finding.location.line {
            let _ = write!(text, ",line={line}");
        }
        if let Some(column) = finding.location.column {
            let _ = write!(text, ",col={column}");
        }
        let item = if finding.location.item.is_empty() {
            finding.location.part
        } else {
            finding.location.item
        };
        let place = if item.is_empty() {
            String::new()
        } else {
            format!(" ({item})")
        };
        let message = format!("{}{place}\n{}", finding.message, finding.hint);
        let message = escaped(message.trim_end());
        let _ = writeln!(text, ",title={}::{message}", property(finding.code));
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A value among others, which are apart by commas and end with colons.
fn property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Checked;
    use chipless_model::{Class, Evidence, Place, Rule, Severity};

    static ODD: Rule = Rule {
        code: "odd",
        class: Class::Fault,
        evidence: Evidence::Format,
        severity: Severity::Warning,
        summary: "odd",
        explanation: "odd",
        remedy: "Make it even.",
        source: "test",
    };

    #[test]
    fn what_github_would_take_for_its_own_is_escaped() {
        let findings = [ODD.at(Place::line(3, 7).at("a,b"), "50 % of\nit")];
        let checked = Checked {
            path: "a:b.yaml",
            target: None,
            bytes: b"",
            parts: &[],
            findings: &findings,
        };
        assert_eq!(
            annotations(&FileReport::from(&checked)),
            "::warning file=a%3Ab.yaml,line=3,col=7,title=odd::50 %25 of%0Ait (a,b)%0AMake it even.\n"
        );
    }
}
