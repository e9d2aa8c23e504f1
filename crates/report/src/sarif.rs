//! Findings as SARIF 2.1.0, for code-scanning services and editors.
//!
//! Places in texts are lines and columns, places in binaries are byte offsets; tasks and queues are logical locations. What a rule
//! means and how to mend it is its help. Where a file is packed, the place of a result is the file and the name of the member, so that
//! services which know nothing of archives can show it; a related location names lines or bytes of the member, as an artifact in the
//! file's.

use crate::findings::{Checked, Fingerprints};
use crate::text::Texts;
use chipless_model::{Finding, Place, Rule, Severity};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The page that explains each rule.
const RULES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/findings.md");

/// A SARIF log of one run over several files.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Tool,
    invocations: [Invocation; 1],
    artifacts: Vec<Artifact>,
    results: Vec<Outcome>,
    column_kind: &'static str,
}

#[derive(Debug, Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    semantic_version: &'static str,
    information_uri: &'static str,
    rules: Vec<Descriptor>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    id: &'static str,
    short_description: Message,
    full_description: Message,
    help: Message,
    help_uri: String,
    default_configuration: Configuration,
}

#[derive(Debug, Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    /// Whether every file could be checked.
    execution_successful: bool,
}

#[derive(Debug, Serialize)]
struct Message {
    text: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Artifact {
    location: ArtifactLocation,
    /// The file that it is packed into.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_index: Option<i64>,
    length: i64,
    roles: [&'static str; 1],
}

#[derive(Clone, Debug, Serialize)]
struct ArtifactLocation {
    uri: String,
    index: i64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    rule_id: &'static str,
    rule_index: usize,
    level: &'static str,
    message: Message,
    locations: [Location; 1],
    partial_fingerprints: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Location>,
    properties: Properties,
}

#[derive(Debug, Serialize)]
struct Properties {
    /// `fault`, `unsupported`, `limit` or `departure`.
    class: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_field_names, reason = "names of the standard")]
struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    physical_location: PhysicalLocation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_locations: Vec<LogicalLocation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Region {
    #[serde(rename_all = "camelCase")]
    Text {
        start_line: usize,
        start_column: usize,
        end_line: usize,
        end_column: usize,
    },
    #[serde(rename_all = "camelCase")]
    Binary { byte_offset: i64, byte_length: i64 },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    name: String,
    fully_qualified_name: String,
}

/// The log of checked files. `complete` says whether every file could be checked.
pub fn log<'a>(files: impl IntoIterator<Item = Checked<'a>>, complete: bool) -> Log {
    let (mut artifacts, mut results, mut rules) =
        (Vec::new(), Vec::new(), Vec::<&'static Rule>::new());
    for file in files {
        let parent = artifacts.len() as i64;
        let location = ArtifactLocation {
            uri: uri(file.path),
            index: parent,
        };
        artifacts.push(Artifact {
            location: location.clone(),
            parent_index: None,
            length: file.bytes.len() as i64,
            roles: ["analysisTarget"],
        });
        let texts = file.texts();
        let packed: Vec<(&str, ArtifactLocation)> = file
            .parts
            .iter()
            .map(|(name, bytes)| {
                let location = ArtifactLocation {
                    uri: uri(name),
                    index: artifacts.len() as i64,
                };
                let length = bytes.len() as i64;
                artifacts.push(Artifact {
                    location: location.clone(),
                    parent_index: Some(parent),
                    length,
                    roles: ["resultFile"],
                });
                (&**name, location)
            })
            .collect();
        let places = Places {
            size: file.bytes.len() as i64,
            file: &location,
            packed: &packed,
            texts: &texts,
        };
        let mut fingerprints = Fingerprints::default();
        for finding in file.findings {
            let rule_index = rules
                .iter()
                .position(|rule| rule.code == finding.rule.code)
                .unwrap_or_else(|| {
                    rules.push(finding.rule);
                    rules.len() - 1
                });
            let Place { part, item, .. } = &finding.place;
            let fingerprint = fingerprints.next(finding.rule.code, part, item);
            results.push(outcome(finding, rule_index, &places, fingerprint));
        }
    }
    let driver = Driver {
        name: "chipless",
        semantic_version: env!("CARGO_PKG_VERSION"),
        information_uri: env!("CARGO_PKG_REPOSITORY"),
        rules: rules.into_iter().map(descriptor).collect(),
    };
    let invocations = [Invocation {
        execution_successful: complete,
    }];
    let run = Run {
        tool: Tool { driver },
        invocations,
        artifacts,
        results,
        column_kind: "unicodeCodePoints",
    };
    Log {
        schema: "https://json.schemastore.org/sarif-2.1.0.json",
        version: "2.1.0",
        runs: [run],
    }
}

fn descriptor(rule: &'static Rule) -> Descriptor {
    let message = |text: &str| Message {
        text: text.to_owned(),
    };
    let explanation = if rule.explanation.is_empty() {
        rule.summary
    } else {
        rule.explanation
    };
    let mut help = explanation.to_owned();
    for (title, text) in [("How to fix it", rule.remedy), ("Source", rule.source)] {
        if !text.is_empty() {
            let _ = write!(help, "\n\n{title}: {text}");
        }
    }
    Descriptor {
        id: rule.code,
        short_description: message(rule.summary),
        full_description: message(explanation),
        help: Message { text: help },
        help_uri: format!("{RULES}#{}", rule.code),
        default_configuration: Configuration {
            level: level(rule.severity),
        },
    }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// Where places of one file are.
struct Places<'p> {
    file: &'p ArtifactLocation,
    /// Bytes of the file.
    size: i64,
    /// Members that findings name, of a file that is packed.
    packed: &'p [(&'p str, ArtifactLocation)],
    texts: &'p Texts<'p>,
}

fn outcome(
    finding: &Finding,
    rule_index: usize,
    places: &Places<'_>,
    fingerprint: String,
) -> Outcome {
    let mut message = finding.message.clone();
    if let Some(hint) = &finding.hint {
        let _ = write!(message, "\nHelp: {hint}");
    }
    let related = finding
        .related
        .iter()
        .map(|(place, role)| (places.location(place), role.as_str()));
    let first = std::iter::once((&finding.place, "here"));
    let all = first.chain(
        finding
            .related
            .iter()
            .map(|(place, role)| (place, role.as_str())),
    );
    let members = all.filter_map(|(place, role)| Some((places.member(place)?, role)));
    Outcome {
        rule_id: finding.rule.code,
        rule_index,
        level: level(finding.severity),
        message: Message { text: message },
        locations: [places.location(&finding.place)],
        partial_fingerprints: [("chipless/v1", fingerprint)].into(),
        properties: Properties {
            class: finding.rule.class.name(),
        },
        related_locations: related
            .chain(members)
            .enumerate()
            .map(|(index, (location, role))| Location {
                id: Some(index + 1),
                message: Some(Message {
                    text: role.to_owned(),
                }),
                ..location
            })
            .collect(),
    }
}

impl Places<'_> {
    fn packed(&self, place: &Place) -> Option<&ArtifactLocation> {
        self.packed
            .iter()
            .find(|(name, _)| *name == place.part)
            .map(|(_, location)| location)
    }

    /// The place in the file; all of it where there is none, or where what the place is in is packed.
    fn location(&self, place: &Place) -> Location {
        let known = self.region(place).filter(|_| self.packed(place).is_none());
        let region = known.unwrap_or(Region::Binary {
            byte_offset: 0,
            byte_length: self.size,
        });
        let name = if place.item.is_empty() {
            &*place.part
        } else {
            &*place.item
        };
        let logical = LogicalLocation {
            name: name.to_owned(),
            fully_qualified_name: [&*place.part, &*place.item]
                .into_iter()
                .filter(|s| !s.is_empty())
                .collect::<Vec<_>>()
                .join("/"),
        };
        Location {
            id: None,
            physical_location: PhysicalLocation {
                artifact_location: self.file.clone(),
                region: Some(region),
            },
            logical_locations: if name.is_empty() {
                Vec::new()
            } else {
                vec![logical]
            },
            message: None,
        }
    }

    /// The place in a packed member, if it has lines or bytes there.
    fn member(&self, place: &Place) -> Option<Location> {
        let physical_location = PhysicalLocation {
            artifact_location: self.packed(place)?.clone(),
            region: Some(self.region(place)?),
        };
        Some(Location {
            id: None,
            physical_location,
            logical_locations: Vec::new(),
            message: None,
        })
    }

    fn region(&self, place: &Place) -> Option<Region> {
        let text = self.texts.region(place).map(|region| Region::Text {
            start_line: region.start.0,
            start_column: region.start.1,
            end_line: region.end.0,
            end_column: region.end.1,
        });
        let binary = || {
            let (offset, size) = (
                i64::try_from(place.offset?).ok()?,
                i64::try_from(place.size).ok()?,
            );
            Some(Region::Binary {
                byte_offset: offset,
                byte_length: size,
            })
        };
        // The lines of a text that is packed as a whole.
        let known = || {
            let (start_line, start_column) = place
                .position
                .map(|(line, column)| (line as usize, column as usize))?;
            Some(Region::Text {
                start_line,
                start_column,
                end_line: start_line,
                end_column: start_column,
            })
        };
        text.or_else(known).or_else(binary)
    }
}

/// A path as a URI reference: relative ones stay relative, everything but unreserved characters is escaped.
fn uri(path: &str) -> String {
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.replace('\\', "/").bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}
