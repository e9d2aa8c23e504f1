//! Findings as the protocol has them.

use super::document::Document;
use crate::text::Encoding;
use chipless::Options;
use chipless_model::{Place, Severity};
use chipless_report::findings::{Checked, RelatedRanges};
use lsp_types::{
    CodeDescription, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location,
    NumberOrString,
};
use std::ops::Range;

/// Where the page with all findings is.
const PAGE: &str = "https://github.com/chipless/chipless/blob/main/docs/findings.md";

/// The bytes of each finding and of its related places.
pub(super) fn ranges(document: &Document, options: &Options) -> Vec<(Range<usize>, RelatedRanges)> {
    let checked = document.checked(options);
    let shown = Checked {
        path: &document.name,
        target: checked.target,
        bytes: document.text.as_str().as_bytes(),
        parts: &checked.parts,
        findings: &checked.findings,
    };
    let known = |place: &Place, range: Option<Range<usize>>| {
        range.or_else(|| {
            let (line, column) = place.position?;
            let line = document.text.line((line as usize).checked_sub(1)?);
            let text = document.text.as_str().get(line.clone())?;
            let column = (column as usize).saturating_sub(1);
            let at = text
                .char_indices()
                .nth(column)
                .map_or(line.end, |(at, _)| line.start + at);
            Some(at..at)
        })
    };
    let ranges = shown.ranges().into_iter().zip(&checked.findings);
    ranges
        .map(|((range, related), finding)| {
            let related = related.into_iter().zip(&finding.related);
            let related = related
                .map(|(range, (place, _))| known(place, range))
                .collect();
            (known(&finding.place, range).unwrap_or(0..0), related)
        })
        .collect()
}

/// What is wrong with a document.
pub(super) fn diagnostics(
    document: &Document,
    encoding: Encoding,
    options: &Options,
) -> Vec<Diagnostic> {
    let findings = &document.checked(options).findings;
    let ranges = ranges(document, options);
    let all = findings.iter().zip(ranges);
    all.map(|(finding, (range, related))| {
        let related = finding.related.iter().zip(related);
        let related: Vec<DiagnosticRelatedInformation> = related
            .filter_map(|((_, role), range)| {
                let range = document.range(&range?, encoding);
                let location = Location::new(document.uri.clone(), range);
                Some(DiagnosticRelatedInformation {
                    location,
                    message: role.clone(),
                })
            })
            .collect();
        let remedy = finding.hint.as_deref().unwrap_or(finding.rule.remedy);
        let message = if remedy.is_empty() {
            finding.message.clone()
        } else {
            format!("{}\nhelp: {remedy}", finding.message)
        };
        let href = format!("{PAGE}#{}", finding.rule.code);
        Diagnostic {
            range: document.range(&range, encoding),
            severity: Some(match finding.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
                Severity::Note => DiagnosticSeverity::INFORMATION,
            }),
            code: Some(NumberOrString::String(finding.rule.code.to_owned())),
            code_description: href.parse().ok().map(|href| CodeDescription { href }),
            source: Some("chipless".to_owned()),
            message,
            related_information: (!related.is_empty()).then_some(related),
            tags: None,
            data: None,
        }
    })
    .collect()
}
