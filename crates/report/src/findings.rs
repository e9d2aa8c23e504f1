//! Findings: for people, with a picture of the place in the file, and as JSON.

use crate::hexdump;
use crate::style::{Paint, clean, count};
use chipless_model::{Finding, Place, Rule, Severity};
use serde::Serialize;
use std::fmt::Write;

/// Findings of one code that are shown in full; the rest is counted.
const SHOWN: usize = 5;

/// A file and what was found in it.
#[derive(Clone, Copy, Debug)]
pub struct Checked<'a> {
    /// The file as the user named it.
    pub path: &'a str,
    /// Its target; `None` where nothing recognised it.
    pub target: Option<&'a str>,
    /// Its bytes, for the pictures; empty where there are none to show.
    pub bytes: &'a [u8],
    /// What was found.
    pub findings: &'a [Finding],
}

impl Checked<'_> {
    /// Findings of this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|f| f.rule.severity == severity).count()
    }

    /// The findings as people read them: grouped by code, the most severe first, otherwise in the order in which they
    /// were found. `all` shows every one instead of five of each code.
    pub fn text(&self, paint: Paint, all: bool) -> String {
        let mut codes: Vec<&'static Rule> = Vec::new();
        for finding in self.findings {
            if !codes.iter().any(|r| r.code == finding.rule.code) {
                codes.push(finding.rule);
            }
        }
        codes.sort_by_key(|rule| rule.severity);
        let mut out = String::new();
        for rule in &codes {
            let of_code = || self.findings.iter().filter(|f| f.rule.code == rule.code);
            let shown = if all { usize::MAX } else { SHOWN };
            for finding in of_code().take(shown) {
                self.one(&mut out, paint, finding);
                out.push('\n');
            }
            let folded = of_code().count().saturating_sub(shown);
            if folded > 0 {
                let _ = writeln!(out, "{}: and {folded} more like this\n", paint.code(rule));
            }
        }
        out
    }

    /// One line: how many of each severity.
    pub fn verdict(&self, paint: Paint) -> String {
        let said: Vec<String> = [Severity::Error, Severity::Warning, Severity::Note]
            .into_iter()
            .map(|severity| (severity, self.count(severity)))
            .filter(|(_, n)| *n > 0)
            .map(|(severity, n)| paint.severity(severity, count(n, severity.name())).to_string())
            .collect();
        let said = if said.is_empty() { paint.severity(Severity::Note, "clean").to_string() } else { said.join(", ") };
        format!("{}: {said}\n", self.path)
    }

    fn one(&self, out: &mut String, paint: Paint, finding: &Finding) {
        let severity = finding.rule.severity;
        let _ = writeln!(out, "{}{}", paint.code(finding.rule), paint.strong(format_args!(": {}", clean(&finding.message))));
        self.place(out, paint, severity, "-->", &finding.place, None);
        for (place, role) in &finding.related {
            self.place(out, paint, Severity::Note, ":::", place, Some(role));
        }
        let bar = paint.frame("=");
        if let Some(hint) = &finding.hint {
            let _ = writeln!(out, "   {bar} {} {}", paint.strong("help:"), clean(hint));
        } else if !finding.rule.remedy.is_empty() {
            let _ = writeln!(out, "   {bar} {} {}", paint.strong("help:"), finding.rule.remedy);
        }
    }

    fn place(&self, out: &mut String, paint: Paint, severity: Severity, arrow: &str, place: &Place, role: Option<&str>) {
        let _ = write!(out, "  {} {}", paint.frame(arrow), self.path);
        // As compilers say it: editors and scripts find the place.
        let text = match place.position {
            Some((line, column)) => {
                let _ = write!(out, ":{line}:{column}");
                Place { position: None, offset: None, ..place.clone() }.to_string()
            }
            None => place.to_string(),
        };
        if !text.is_empty() {
            let _ = write!(out, ": {}", clean(&text));
        }
        if let Some(role) = role {
            let _ = write!(out, ": {}", clean(role));
        }
        out.push('\n');
        if let Some(offset) = place.offset {
            let (mark, rows) = if role.is_some() { ('-', 1) } else { ('^', 2) };
            hexdump::picture(out, paint, severity, self.bytes, (offset, place.size), mark, rows);
        }
    }
}

/// The answer to `check --format json`.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// One entry for each file, in the order of the command line.
    pub files: Vec<FileReport<'a>>,
}

/// A file with its findings.
#[derive(Debug, Serialize)]
pub struct FileReport<'a> {
    /// The file as the user named it.
    pub path: &'a str,
    /// Its target; null where nothing recognised it.
    pub target: Option<&'a str>,
    /// What was found, in the order in which it was found.
    pub findings: Vec<FindingReport<'a>>,
}

/// One finding.
#[derive(Debug, Serialize)]
pub struct FindingReport<'a> {
    /// The stable code of its rule, for `chipless explain`.
    pub code: &'static str,
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// The finding with its numbers.
    pub message: &'a str,
    /// Where.
    pub location: LocationReport<'a>,
    /// Other places that take part.
    pub related: Vec<RelatedReport<'a>>,
    /// What to do, where there is something better to say than the rule's own remedy; otherwise that.
    pub hint: &'a str,
}

/// A place in the file.
#[derive(Debug, Serialize)]
pub struct LocationReport<'a> {
    /// The part of the file: a section, a member, a JSON pointer; empty for the file as a whole.
    pub part: &'a str,
    /// The thing at that place, as `chipless list` names it; empty where it has no name.
    pub item: &'a str,
    /// Byte offset in the file; null where there is none.
    pub offset: Option<u64>,
    /// Bytes from there; 0 where unknown.
    pub size: u64,
}

/// Another place with the role that it plays.
#[derive(Debug, Serialize)]
pub struct RelatedReport<'a> {
    /// Where.
    pub location: LocationReport<'a>,
    /// What it has to do with the finding.
    pub message: &'a str,
}

impl<'a> From<&'a Place> for LocationReport<'a> {
    fn from(place: &'a Place) -> LocationReport<'a> {
        LocationReport { part: &place.part, item: &place.item, offset: place.offset, size: place.size }
    }
}

impl<'a> From<&'a Finding> for FindingReport<'a> {
    fn from(finding: &'a Finding) -> FindingReport<'a> {
        FindingReport {
            code: finding.rule.code,
            severity: finding.rule.severity.name(),
            message: &finding.message,
            location: (&finding.place).into(),
            related: finding.related.iter().map(|(place, role)| RelatedReport { location: place.into(), message: role }).collect(),
            hint: finding.hint.as_deref().unwrap_or(finding.rule.remedy),
        }
    }
}

impl<'a> From<&Checked<'a>> for FileReport<'a> {
    fn from(checked: &Checked<'a>) -> FileReport<'a> {
        FileReport { path: checked.path, target: checked.target, findings: checked.findings.iter().map(FindingReport::from).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static BEYOND: Rule = Rule {
        code: "transfer-beyond-memory",
        severity: Severity::Error,
        summary: "a transfer leaves its memory",
        explanation: "The destination of a transfer ends beyond the memory.",
        remedy: "check the destination address and the size",
        source: "descriptor layout",
    };
    static UNUSED: Rule = Rule {
        code: "section-unused",
        severity: Severity::Warning,
        summary: "nothing refers to a section",
        explanation: "A section holds bytes that no task uses.",
        remedy: "",
        source: "file format",
    };

    fn findings() -> Vec<Finding> {
        vec![
            UNUSED.at(Place::file().in_part("buffer.Constant.3"), "nothing refers to buffer.Constant.3"),
            BEYOND
                .at(
                    Place::bytes(0x12, 4).in_part("task.dma.0.0").at("dma0.ddr[9]"),
                    "writes 1536 bytes at 0x17fe00 of cmx0, which has 0x17fc00",
                )
                .with(Place::bytes(0x24, 2).in_part("buffer.Constant.0"), "the source")
                .hint("the last 1024 bytes do not fit"),
        ]
    }

    fn checked<'a>(bytes: &'a [u8], findings: &'a [Finding]) -> Checked<'a> {
        Checked { path: "model.blob", target: Some("npu"), bytes, findings }
    }

    #[test]
    fn errors_come_first_with_a_picture_of_their_bytes() {
        let bytes: Vec<u8> = (0..48).collect();
        let findings = findings();
        insta::assert_snapshot!(checked(&bytes, &findings).text(Paint::PLAIN, false));
        insta::assert_snapshot!(checked(&bytes, &findings).verdict(Paint::PLAIN), @"model.blob: 1 error, 1 warning");
        assert_eq!(checked(&bytes, &[]).verdict(Paint::PLAIN), "model.blob: clean\n");
    }

    #[test]
    fn the_sixth_of_a_code_is_counted() {
        let findings: Vec<Finding> = (0..46).map(|i| BEYOND.at(Place::file(), format!("number {i}"))).collect();
        let text = checked(&[], &findings).text(Paint::PLAIN, false);
        assert!(text.contains("number 4\n") && !text.contains("number 5\n"), "{text}");
        assert!(text.contains("error[transfer-beyond-memory]: and 41 more like this"), "{text}");
        let text = checked(&[], &findings).text(Paint::PLAIN, true);
        assert!(text.contains("number 45\n") && !text.contains("more like this"), "{text}");
    }

    #[test]
    fn json_has_every_part_of_a_finding() {
        let findings = findings();
        let report = Report { files: vec![FileReport::from(&checked(&[], &findings))] };
        insta::assert_snapshot!(serde_json::to_string_pretty(&report).unwrap());
    }
}
