//! Whether a runtime would take a file: the check that it makes on the header before anything else.

use crate::features::Features;
use crate::header::Header;
use crate::memory::{MemoryPlan, SCRATCHPAD_PAGE};
use crate::read::Neff;
use crate::rules::container as rules;
use chipless_model::{Finding, Place};

/// A version of the runtime, as far as its messages tell what it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Name for `--runtime`.
    pub name: String,
    /// Feature bits that it takes.
    pub features: u64,
    /// Highest major version of the format that it takes.
    pub major: u64,
    /// Where this is known from.
    pub source: String,
}

/// Known runtimes: name, feature bits, major version, source.
const KNOWN: &[(&str, u64, u64, &str)] = &[
    (
        "sdk-2.17-tensorflow",
        0x8000_0000_0000_001f,
        2,
        "load error quoted in aws-neuron-sdk #1061 (the TensorFlow container of SDK 2.17.0)",
    ),
    (
        "late-2023",
        0x8000_0000_0000_00ff,
        2,
        "load errors quoted in aws-neuron-sdk #820 and #823",
    ),
    (
        "2.31",
        0x8000_0000_07ff_ffff,
        2,
        "third-party analysis of runtime 2.31, which refuses bits 27 to 62; not confirmed by the vendor",
    ),
    (
        "neff-1",
        u64::MAX,
        1,
        "\"NEFF version mismatch supported: 1.1 received: 2.0\" in the vendor's troubleshooting guide; its feature bits are not known",
    ),
];

impl Runtime {
    /// Names of the known runtimes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|(name, ..)| *name)
    }

    /// A known runtime, or a mask of feature bits as a runtime's own error message prints it (`0x80000000000000ff`).
    pub fn named(name: &str) -> Option<Runtime> {
        if let Some(digits) = name.strip_prefix("0x") {
            let features = u64::from_str_radix(digits, 16).ok()?;
            return Some(Runtime {
                name: name.to_owned(),
                features,
                major: 2,
                source: "given by the user".to_owned(),
            });
        }
        let (name, features, major, source) = KNOWN.iter().find(|(known, ..)| *known == name)?;
        Some(Runtime {
            name: (*name).to_owned(),
            features: *features,
            major: *major,
            source: (*source).to_owned(),
        })
    }

    /// What this runtime would refuse of a program.
    pub fn check_program(&self, neff: &Neff<'_>) -> Vec<Finding> {
        let mut findings = self.check(&neff.container.header);
        for (subgraph, core) in neff
            .subgraphs
            .iter()
            .zip(MemoryPlan::new(neff, SCRATCHPAD_PAGE).cores)
        {
            if let Some(message) = core.rings_missing() {
                let source = &subgraph.source;
                let place = source.place(source.text, "", "/dma_queue");
                findings.push(rules::RUNTIME_RINGS.at(place, message));
            }
        }
        findings
    }

    /// What this runtime would refuse of a header.
    pub fn check(&self, header: &Header) -> Vec<Finding> {
        let mut findings = Vec::new();
        let refused = header.feature_bits.0 & !self.features;
        if refused != 0 {
            let place = Place::bytes(544, 8).in_part("header").at("feature_bits");
            let message = format!(
                "runtime {} refuses the features {refused:#x}: {}; it takes {:#x}",
                self.name,
                Features(refused),
                self.features
            );
            findings.push(
                rules::RUNTIME_FEATURES
                    .at(place, message)
                    .hint(format!("Known from: {}", self.source)),
            );
        }
        if header.neff_version_major > self.major {
            let place = Place::bytes(24, 8)
                .in_part("header")
                .at("neff_version_major");
            let message = format!(
                "runtime {} refuses version {}: it takes versions up to {}",
                self.name,
                header.version(),
                self.major
            );
            findings.push(
                rules::RUNTIME_VERSION
                    .at(place, message)
                    .hint(format!("Known from: {}", self.source)),
            );
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_quoted_load_error_is_foreseen() {
        let header = Header {
            feature_bits: Features(0x100),
            ..Header::default()
        };
        let codes = |name: &str| {
            Runtime::named(name)
                .unwrap()
                .check(&header)
                .iter()
                .map(|f| f.rule.code)
                .collect::<Vec<_>>()
        };
        assert_eq!(codes("late-2023"), ["neff-runtime-features"]);
        assert_eq!(codes("0x80000000000000ff"), ["neff-runtime-features"]);
        assert_eq!(codes("2.31"), [""; 0]);
        assert_eq!(codes("neff-1"), ["neff-runtime-version"]);
        assert_eq!(Runtime::named("0xnonsense"), None);
        assert!(Runtime::names().all(|name| Runtime::named(name).is_some()));
    }
}
