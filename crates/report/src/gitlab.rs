//! Findings for GitLab's Code Quality widget.
//!
//! Source: GitLab's documentation of code quality reports (an array of issues with description, `check_name`, fingerprint, severity and location).

use crate::findings::{FileReport, Fingerprints};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// One finding, as GitLab has it.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Issue {
    /// What was found.
    pub description: String,
    /// The code of the rule.
    pub check_name: &'static str,
    /// SHA-256 of the file's name and of what the finding is about, so that GitLab tells new ones from old ones.
    pub fingerprint: String,
    /// `critical` for errors, `minor` for warnings, `info` for notes.
    pub severity: &'static str,
    /// Where.
    pub location: Location,
}

/// Where a finding is.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Location {
    /// The file as the user named it.
    pub path: String,
    /// Its lines; 1 in files without lines.
    pub lines: Lines,
}

/// Lines of a finding.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Lines {
    /// The first.
    pub begin: usize,
}

/// The findings of these files.
pub fn issues(files: &[FileReport<'_>]) -> Vec<Issue> {
    let mut issues = Vec::new();
    for file in files {
        let mut fingerprints = Fingerprints::default();
        for finding in &file.findings {
            let item = finding.location.item;
            let place = if item.is_empty() {
                String::new()
            } else {
                format!(" ({item})")
            };
            let description = format!("{}{place}", finding.message);
            let fingerprint = fingerprints.next(finding.code, finding.location.part, item);
            let hash = Sha256::digest(format!("{}:{fingerprint}", file.path));
            issues.push(Issue {
                description,
                check_name: finding.code,
                fingerprint: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
                severity: match finding.severity {
                    "error" => "critical",
                    "warning" => "minor",
                    _ => "info",
                },
                location: Location {
                    path: file.path.to_owned(),
                    lines: Lines {
                        begin: finding.location.line.unwrap_or(1),
                    },
                },
            });
        }
    }
    issues
}
