//! Header and payload.

use super::Findings;
use crate::container::Packing;
use crate::features::{self, Features};
use crate::header::{HEADER_BYTES, HashState};
use crate::read::Neff;
use crate::rules::container as rules;
use crate::stream::formats::Dma;
use crate::stream::{Instruction, Slot, Stream};
use crate::triggers;
use chipless_model::Place;

pub(super) fn check(neff: &Neff<'_>, findings: &mut Findings) {
    let container = neff.container;
    let header = &container.header;
    let field = |offset: u64, size: u64, name: &'static str| {
        move || Place::bytes(offset, size).in_part("header").at(name)
    };
    if container.trailing > 0 {
        let end = (HEADER_BYTES + container.data.len()) as u64;
        let message = format!(
            "{} bytes stand behind the data, which ends at {end}",
            container.trailing
        );
        findings.report(
            &rules::TRAILING,
            || Place::bytes(end, container.trailing),
            message,
        );
    }
    let state = header.hash_state(container.data);
    let is_sha = matches!(state, HashState::Sha256 | HashState::Sha256Swapped);
    if !matches!(state, HashState::Absent | HashState::Mismatch)
        && is_sha != (header.pkg_version == 1)
    {
        let kind = if is_sha { "SHA-256" } else { "MD5" };
        let message = format!(
            "the hash is {kind}, the package version {}",
            header.pkg_version
        );
        findings.report(&rules::HASH_KIND, field(172, 32, "hash"), message);
    }
    if state == HashState::Mismatch {
        let message = "the hash is neither MD5 nor SHA-256 of the data, in either word order";
        findings.report(&rules::HASH, field(172, 32, "hash"), message);
    }
    let unknown = header.feature_bits.unknown();
    if unknown != 0 {
        let bits: Vec<String> = (0..64)
            .filter(|bit| unknown >> bit & 1 == 1)
            .map(|bit: u32| bit.to_string())
            .collect();
        findings.report(
            &rules::FEATURE_UNKNOWN,
            field(544, 8, "feature_bits"),
            format!("feature bits {} are not known", bits.join(", ")),
        );
    }
    for (mask, used) in used_features(neff) {
        if let Some(used) = used.filter(|_| !header.feature_bits.has(mask)) {
            let message = format!(
                "{used}, but feature bit {} ({}) is not set",
                mask.trailing_zeros(),
                Features(mask)
            );
            findings.report(
                &rules::FEATURE_MISSING,
                field(544, 8, "feature_bits"),
                message,
            );
        }
    }
    if header.lnc_size > 1 && !neff.architecture.has_logical_cores() {
        let message = format!(
            "lnc_size is {}, {} has logical cores of one",
            header.lnc_size,
            neff.architecture.families()
        );
        findings.report(&rules::LNC_ARCHITECTURE, field(552, 4, "lnc_size"), message);
    }
    if container.dirty_padding {
        let at = match container.packing {
            Packing::Gzip { compressed } => HEADER_BYTES as u64 + compressed,
            Packing::Plain => HEADER_BYTES as u64,
        };
        findings.report(
            &rules::PADDING,
            || Place::bytes(at, 0).in_part("payload"),
            "the padding behind the gzip member is not zero",
        );
    }
    if !container.clean_end {
        findings.report(
            &rules::PADDING,
            || Place::file().in_part("tarball"),
            "the tarball does not end with two blocks of zeros and nothing else",
        );
    }
    if header.pad.iter().any(|b| *b != 0) {
        findings.report(
            &rules::HEADER_PAD,
            field(556, 468, "pad"),
            "bytes behind the last field are not zero",
        );
    }
    let sum: u64 = header.tpb_per_node.iter().map(|n| u64::from(*n)).sum();
    if sum != u64::from(header.num_tpb) {
        let message = format!(
            "num_tpb is {}, tpb_per_node adds up to {sum}",
            header.num_tpb
        );
        findings.report(&rules::CORE_COUNT, field(168, 4, "num_tpb"), message);
    }
}

/// What the static tables of the program need, and the first place that needs it.
fn used_features(neff: &Neff<'_>) -> [(u64, Option<String>); 7] {
    let entries = || {
        neff.subgraphs
            .iter()
            .flat_map(|s| &s.engines)
            .flat_map(|e| e.file.dma.iter().map(move |d| (e, d)))
    };
    let instances = neff
        .subgraphs
        .iter()
        .flat_map(|s| &s.definition.queues)
        .find(|(_, q)| !q.queue_instances.is_empty());
    let function = entries().find_map(|(_, d)| d.function_start.as_ref().filter(|f| !f.is_empty()));
    let dimensions = entries().find(|(_, d)| {
        d.descriptors
            .iter()
            .any(|d| d.to.sizes.len() > 2 || d.sources().any(|s| s.sizes.len() > 2))
    });
    let remote = entries().find(|(_, d)| !d.remote_semaphores.is_empty());
    let casts = |dma: Dma<'_>| dma.casts();
    let id = |id: Option<u64>| id.map_or("without id".to_owned(), |id| id.to_string());
    [
        (
            features::QUEUE_SET_INSTANCES,
            instances.map(|(name, _)| format!("queue set `{name}` has instances")),
        ),
        (
            features::HAS_FUNCTIONS,
            function.map(|name| format!("descriptors belong to function `{name}`")),
        ),
        (
            features::HIGHER_DIMENSIONS,
            dimensions.map(|(e, d)| {
                format!(
                    "descriptor {} of {} has more than two dimensions",
                    id(d.id),
                    e.engine
                )
            }),
        ),
        (
            features::LOGICAL_CORES,
            (neff.container.header.lnc_size > 1)
                .then(|| format!("lnc_size is {}", neff.container.header.lnc_size)),
        ),
        (features::DYNAMIC_DESCRIPTORS, handed_over(neff, |_| true)),
        (
            features::DYNAMIC_CAST,
            handed_over(neff, casts).map(|what| format!("{what} with a cast")),
        ),
        (
            features::REMOTE_SEMAPHORES,
            remote.map(|(e, d)| {
                format!(
                    "descriptor {} of {} signals remote semaphores",
                    id(d.id),
                    e.engine
                )
            }),
        ),
    ]
}

/// The first such transfer that an instruction hands over.
fn handed_over(neff: &Neff<'_>, is_such: impl Fn(Dma<'_>) -> bool) -> Option<String> {
    let rooms = neff
        .subgraphs
        .iter()
        .flat_map(|subgraph| subgraph.engines.iter().map(move |room| (subgraph, room)));
    rooms
        .filter_map(|(subgraph, room)| Some((subgraph, room, room.instructions?)))
        .find_map(|(subgraph, room, member)| {
            let slots = Stream::new(member.bytes).slots;
            let is_handed =
                |slot: &Slot| matches!(slot.decode(), Instruction::Dma(dma) if is_such(dma));
            let first = slots.iter().position(is_handed)?;
            let has_functions = triggers::has_functions(slots);
            let task = triggers::called(&subgraph.name, room, first, has_functions);
            Some(format!("{task} hands over a transfer"))
        })
}
