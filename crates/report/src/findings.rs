//! Findings: for people, with a picture of the place in the file, and as JSON.

use crate::SCHEMA_VERSION;
use crate::hexdump;
use crate::style::{Paint, clean, count};
use crate::text::Texts;
use chipless_model::{Finding, Place, Severity};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

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
    /// Names and bytes of parts that are packed into the file: places in them count from their own start.
    pub parts: &'a [(String, Vec<u8>)],
    /// What was found.
    pub findings: &'a [Finding],
}

/// The bytes of the places that take part in a finding.
pub type RelatedRanges = Vec<Option<Range<usize>>>;

impl<'a> Checked<'a> {
    /// The texts that places stand in.
    pub(crate) fn texts(&self) -> Texts<'a> {
        Texts::new(self.path, self.bytes, self.parts)
    }

    /// Findings of this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings
            .iter()
            .filter(|f| f.severity == severity)
            .count()
    }

    /// The findings as people read them: grouped by code, the most severe first, otherwise in the order in which they
    /// were found. `all` shows every one instead of five of each code, and those that one stands for; `verbose` the bytes of tasks too.
    pub fn text(&self, paint: Paint, all: bool, verbose: bool) -> String {
        let mut codes: Vec<(Severity, &str)> = Vec::new();
        for finding in self.findings {
            let code = (finding.severity, finding.rule.code);
            if !codes.contains(&code) {
                codes.push(code);
            }
        }
        codes.sort_by_key(|(severity, _)| *severity);
        let texts = self.texts();
        let mut out = String::new();
        for (severity, code) in codes {
            let of_code = || {
                self.findings
                    .iter()
                    .filter(|f| (f.severity, f.rule.code) == (severity, code))
            };
            let shown = if all { usize::MAX } else { SHOWN };
            for finding in of_code().take(shown) {
                let picture = texts.picture(finding, help(finding), paint);
                match picture {
                    Some(picture) => out.push_str(&picture),
                    None => self.one(&mut out, paint, finding, &texts, verbose),
                }
                if all {
                    for message in &finding.alike {
                        let _ = writeln!(out, "   {} {}", paint.frame("+"), clean(message));
                    }
                }
                out.push('\n');
            }
            let folded = of_code().count().saturating_sub(shown);
            if folded > 0 {
                let _ = writeln!(
                    out,
                    "{}: and {folded} more like this\n",
                    paint.code(severity, code)
                );
            }
        }
        out
    }

    /// One line: how many of each severity, and what was not checked where nothing was found.
    pub fn verdict(&self, paint: Paint, unchecked: Option<&str>) -> String {
        let said: Vec<String> = [Severity::Error, Severity::Warning, Severity::Note]
            .into_iter()
            .map(|severity| (severity, self.count(severity)))
            .filter(|(_, n)| *n > 0)
            .map(|(severity, n)| {
                paint
                    .severity(severity, count(n, severity.name()))
                    .to_string()
            })
            .collect();
        let said = if said.is_empty() {
            let unchecked = unchecked.map_or_else(String::new, |what| format!("; {what}"));
            format!("{}{unchecked}", paint.severity(Severity::Note, "clean"))
        } else {
            said.join(", ")
        };
        format!("{}: {said}\n", self.path)
    }

    /// The bytes of the file that each finding is about, and those of its related places; `None` for what stands in no text.
    pub fn ranges(&self) -> Vec<(Option<Range<usize>>, RelatedRanges)> {
        let texts = self.texts();
        let range = |place: &Place| texts.file_range(place);
        self.findings
            .iter()
            .map(|finding| {
                let related = finding.related.iter().map(|(place, _)| range(place));
                (range(&finding.place), related.collect())
            })
            .collect()
    }

    /// The bytes that a place counts in.
    fn source(&self, place: &Place) -> &[u8] {
        self.parts
            .iter()
            .find(|(name, _)| *name == place.part)
            .map_or(self.bytes, |(_, bytes)| bytes)
    }

    fn one(
        &self,
        out: &mut String,
        paint: Paint,
        finding: &Finding,
        texts: &Texts<'_>,
        verbose: bool,
    ) {
        let severity = finding.severity;
        let _ = writeln!(
            out,
            "{}{}",
            paint.code(severity, finding.rule.code),
            paint.strong(format_args!(": {}", clean(&finding.message)))
        );
        let located = |place: &Place| {
            let start = texts.region(place).and_then(|region| {
                Some((
                    region.start.0.try_into().ok()?,
                    region.start.1.try_into().ok()?,
                ))
            });
            Place {
                position: place.position.or(start),
                ..place.clone()
            }
        };
        let shown = Shown {
            paint,
            verbose,
            pictures: true,
        };
        self.place(out, shown, severity, "-->", &located(&finding.place), None);
        let mut pictured = vec![&finding.place];
        for (place, role) in &finding.related {
            // Bytes that have been shown say nothing new.
            let is_new = (pictured.iter())
                .all(|known| (&known.part, known.offset) != (&place.part, place.offset));
            pictured.push(place);
            self.place(
                out,
                Shown {
                    pictures: is_new,
                    ..shown
                },
                Severity::Note,
                ":::",
                &located(place),
                Some(role),
            );
        }
        if !help(finding).is_empty() {
            let _ = writeln!(
                out,
                "   {} {} {}",
                paint.frame("="),
                paint.strong("help:"),
                clean(help(finding))
            );
        }
    }

    fn place(
        &self,
        out: &mut String,
        Shown {
            paint,
            verbose,
            pictures,
        }: Shown,
        severity: Severity,
        arrow: &str,
        place: &Place,
        role: Option<&str>,
    ) {
        let bytes = verbose || place.about.is_empty();
        // The file is named once, but where a place is one to jump to.
        let named = role.is_none() || bytes || place.position.is_some();
        let _ = write!(
            out,
            "  {} {}",
            paint.frame(arrow),
            if named { self.path } else { "" }
        );
        // As compilers say it: editors and scripts find the place.
        let text = match place.position {
            Some((line, column)) => {
                let _ = write!(out, ":{line}:{column}");
                Place {
                    position: None,
                    offset: None,
                    ..place.clone()
                }
                .to_string()
            }
            // What a task does says more than where its descriptor stands.
            None if !bytes && !place.about.is_empty() => {
                let task = format!("{} ({})", place.item, place.about);
                let is_packed = self.parts.iter().any(|(name, _)| *name == place.part);
                match place.offset.filter(|_| is_packed) {
                    // Members of a container are small: there it can be found by hand.
                    Some(offset) => format!("{task} at {}+{offset:#x}", place.part),
                    None => task,
                }
            }
            None => place.to_string(),
        };
        if !text.is_empty() {
            let _ = write!(out, "{}{}", if named { ": " } else { "" }, clean(&text));
        }
        if let Some(role) = role {
            // The task stands before it already.
            let said = role
                .strip_prefix(&*place.item)
                .filter(|rest| !named && rest.starts_with(' '));
            let _ = match said {
                Some(rest) => write!(out, "{}", clean(rest)),
                None => write!(out, ": {}", clean(role)),
            };
        }
        out.push('\n');
        if let (Some(offset), None, true) = (place.offset, place.position, bytes && pictures) {
            let (mark, rows) = if role.is_some() { ('-', 1) } else { ('^', 2) };
            hexdump::picture(
                out,
                paint,
                severity,
                self.source(place),
                (offset, place.size),
                mark,
                rows,
            );
        }
    }
}

/// How places are shown.
#[derive(Clone, Copy)]
struct Shown {
    paint: Paint,
    /// With the bytes of tasks, whose operation and layer say more to most readers.
    verbose: bool,
    /// With a picture of these, where there are any.
    pictures: bool,
}

/// What to do: what the finding says, or else its rule.
fn help(finding: &Finding) -> &str {
    finding.hint.as_deref().unwrap_or(finding.rule.remedy)
}

/// Names of findings that last: what a finding is about, and which it is of those about the same. Offsets and lines move with every build.
#[derive(Debug, Default)]
pub struct Fingerprints {
    seen: BTreeMap<String, usize>,
}

impl Fingerprints {
    /// That of the next finding of a file: a code, in a part of the file, about an item.
    pub fn next(&mut self, code: &str, part: &str, item: &str) -> String {
        let about = format!("{code}/{part}/{item}");
        let again = self.seen.entry(about.clone()).or_default();
        *again += 1;
        format!("{about}:{again}")
    }
}

/// How often each code was found: the answer to `check --statistics --format json`.
#[derive(Debug, JsonSchema, Serialize)]
pub struct CodeCounts {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Errors first, of each severity the most frequent first.
    pub statistics: Vec<CodeCount>,
}

/// How often a code was found.
#[derive(Debug, JsonSchema, Serialize)]
pub struct CodeCount {
    /// The code of the rule.
    pub code: &'static str,
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// How often.
    pub count: usize,
    /// What the rule is about.
    pub summary: &'static str,
}

impl CodeCounts {
    /// Of these findings.
    pub fn of<'f>(findings: impl Iterator<Item = &'f Finding>) -> CodeCounts {
        let mut counts: Vec<(Severity, CodeCount)> = Vec::new();
        for finding in findings {
            let known = counts.iter_mut().find(|(severity, known)| {
                (*severity, known.code) == (finding.severity, finding.rule.code)
            });
            match known {
                Some((_, known)) => known.count += 1,
                None => counts.push((
                    finding.severity,
                    CodeCount {
                        code: finding.rule.code,
                        severity: finding.severity.name(),
                        count: 1,
                        summary: finding.rule.summary,
                    },
                )),
            }
        }
        counts.sort_by_key(|(severity, count)| {
            (*severity, std::cmp::Reverse(count.count), count.code)
        });
        CodeCounts {
            schema_version: SCHEMA_VERSION,
            statistics: counts.into_iter().map(|(_, count)| count).collect(),
        }
    }

    /// A line for each code.
    pub fn text(&self, paint: Paint) -> String {
        let mut out = String::new();
        for row in &self.statistics {
            let (code, summary) = (row.code, row.summary);
            let _ = writeln!(
                out,
                "{:>6}  {:7}  {}  {summary}",
                row.count,
                row.severity,
                paint.strong(code)
            );
        }
        if out.is_empty() {
            out.push_str("no findings\n");
        }
        out
    }
}

/// The answer to `check --format json`.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Report<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// One entry for each file, in the order of the command line.
    pub files: Vec<FileReport<'a>>,
}

impl<'a> Report<'a> {
    /// The answer about these files.
    pub fn new(files: Vec<FileReport<'a>>) -> Report<'a> {
        Report {
            schema_version: SCHEMA_VERSION,
            files,
        }
    }
}

/// A file with its findings.
#[derive(Debug, JsonSchema, Serialize)]
pub struct FileReport<'a> {
    /// The file as the user named it.
    pub path: &'a str,
    /// Its target; null where nothing recognised it.
    pub target: Option<&'a str>,
    /// What was found, in the order in which it was found.
    pub findings: Vec<FindingReport<'a>>,
    /// How many findings the user left out (`--allow`).
    pub left_out: usize,
    /// Whether a contract can be driven; absent for files that are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drivable: Option<Drivable>,
}

/// Whether a contract can be driven for good.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Drivable {
    /// Whether it can; null where that could not be decided.
    pub drivable: Option<bool>,
    /// What can never happen: `input`, `output` or `sequence`, and its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cannot: Option<BTreeMap<&'static str, String>>,
    /// A shortest list of legal calls after which that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<DrivenCall>>,
    /// Why it could not be decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A call of a host.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DrivenCall {
    /// A vector is written.
    Write([String; 1]),
    /// What is ready is read.
    Read(bool),
}

/// One finding.
#[derive(Debug, JsonSchema, Serialize)]
pub struct FindingReport<'a> {
    /// The stable code of its rule, for `chipless explain`.
    pub code: &'static str,
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// `fault`, `unsupported`, `limit` or `departure`.
    pub class: &'static str,
    /// The finding with its numbers.
    pub message: &'a str,
    /// Where.
    pub location: LocationReport<'a>,
    /// Other places that take part.
    pub related: Vec<RelatedReport<'a>>,
    /// What to do, where there is something better to say than the rule's own remedy; otherwise that.
    pub hint: &'a str,
    /// The findings of the same cause that this one stands for, each in a sentence: at most 1000 of them.
    pub alike: &'a [String],
}

/// A place in the file.
#[derive(Debug, JsonSchema, Serialize)]
pub struct LocationReport<'a> {
    /// The part of the file: a section, a member, a JSON pointer; empty for the file as a whole.
    pub part: &'a str,
    /// The thing at that place, as `chipless list` names it; empty where it has no name.
    pub item: &'a str,
    /// What the task there does, and its layer: `conv 3x3 of layer conv_3`; empty where it is no task of a program.
    pub about: &'a str,
    /// Byte offset in the file, in a part that is packed into it, or in the text that the whole file unpacks to; null where there is none.
    pub offset: Option<u64>,
    /// Bytes from there; 0 where unknown.
    pub size: u64,
    /// Line of a text, from 1; null in binaries.
    pub line: Option<usize>,
    /// Column of a text, from 1, in characters; null in binaries.
    pub column: Option<usize>,
}

/// Another place with the role that it plays.
#[derive(Debug, JsonSchema, Serialize)]
pub struct RelatedReport<'a> {
    /// Where.
    pub location: LocationReport<'a>,
    /// What it has to do with the finding.
    pub message: &'a str,
}

impl<'a> LocationReport<'a> {
    fn new(place: &'a Place, texts: &Texts<'_>) -> LocationReport<'a> {
        let counted = texts.region(place).map(|region| region.start);
        let known = place
            .position
            .map(|(line, column)| (line as usize, column as usize));
        let (line, column) = counted.or(known).unzip();
        let offset = place.offset.or_else(|| texts.offset(place));
        LocationReport {
            part: &place.part,
            item: &place.item,
            about: &place.about,
            offset,
            size: place.size,
            line,
            column,
        }
    }
}

impl<'a> FindingReport<'a> {
    fn new(finding: &'a Finding, texts: &Texts<'_>) -> FindingReport<'a> {
        let related = finding.related.iter();
        FindingReport {
            code: finding.rule.code,
            severity: finding.severity.name(),
            class: finding.rule.class.name(),
            message: &finding.message,
            location: LocationReport::new(&finding.place, texts),
            related: related
                .map(|(place, role)| RelatedReport {
                    location: LocationReport::new(place, texts),
                    message: role,
                })
                .collect(),
            hint: help(finding),
            alike: &finding.alike,
        }
    }
}

impl<'a> From<&Checked<'a>> for FileReport<'a> {
    fn from(checked: &Checked<'a>) -> FileReport<'a> {
        let texts = checked.texts();
        let findings = checked
            .findings
            .iter()
            .map(|finding| FindingReport::new(finding, &texts))
            .collect();
        FileReport {
            path: checked.path,
            target: checked.target,
            findings,
            left_out: 0,
            drivable: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::Rule;

    static BEYOND: Rule = Rule {
        code: "transfer-beyond-memory",
        class: chipless_model::Class::Fault,
        evidence: chipless_model::Evidence::Format,
        severity: Severity::Error,
        summary: "a transfer leaves its memory",
        explanation: "The destination of a transfer ends beyond the memory.",
        remedy: "check the destination address and the size",
        source: "descriptor layout",
    };
    static UNUSED: Rule = Rule {
        code: "section-unused",
        class: chipless_model::Class::Fault,
        evidence: chipless_model::Evidence::Format,
        severity: Severity::Warning,
        summary: "nothing refers to a section",
        explanation: "A section holds bytes that no task uses.",
        remedy: "",
        source: "file format",
    };

    fn findings() -> Vec<Finding> {
        vec![
            UNUSED.at(
                Place::file().in_part("buffer.Constant.3"),
                "nothing refers to buffer.Constant.3",
            ),
            BEYOND
                .at(
                    Place::bytes(0x12, 4)
                        .in_part("task.dma.0.0")
                        .at("dma0.ddr[9]"),
                    "writes 1536 bytes at 0x17fe00 of cmx0, which has 0x17fc00",
                )
                .with(
                    Place::bytes(0x24, 2).in_part("buffer.Constant.0"),
                    "the source",
                )
                .hint("the last 1024 bytes do not fit"),
        ]
    }

    fn checked<'a>(bytes: &'a [u8], findings: &'a [Finding]) -> Checked<'a> {
        Checked {
            path: "model.blob",
            target: Some("npu"),
            bytes,
            parts: &[],
            findings,
        }
    }

    #[test]
    fn errors_come_first_with_a_picture_of_their_bytes() {
        let bytes: Vec<u8> = (0..48).collect();
        let findings = findings();
        insta::assert_snapshot!(checked(&bytes, &findings).text(Paint::PLAIN, false, true));
        insta::assert_snapshot!(checked(&bytes, &findings).verdict(Paint::PLAIN, None), @"model.blob: 1 error, 1 warning");
        assert_eq!(
            checked(&bytes, &[]).verdict(Paint::PLAIN, None),
            "model.blob: clean\n"
        );
    }

    #[test]
    fn the_sixth_of_a_code_is_counted() {
        let findings: Vec<Finding> = (0..46)
            .map(|i| BEYOND.at(Place::file(), format!("number {i}")))
            .collect();
        let text = checked(&[], &findings).text(Paint::PLAIN, false, true);
        assert!(
            text.contains("number 4\n") && !text.contains("number 5\n"),
            "{text}"
        );
        assert!(
            text.contains("error[transfer-beyond-memory]: and 41 more like this"),
            "{text}"
        );
        let text = checked(&[], &findings).text(Paint::PLAIN, true, true);
        assert!(
            text.contains("number 45\n") && !text.contains("more like this"),
            "{text}"
        );
    }

    #[test]
    fn json_has_every_part_of_a_finding() {
        let findings = findings();
        let report = Report::new(vec![FileReport::from(&checked(&[], &findings))]);
        insta::assert_snapshot!(serde_json::to_string_pretty(&report).unwrap());
    }
}
