//! What is read is there, and nothing may have taken its place.
//!
//! Most of it follows from the plan: a tensor that is new after the last snapshot of another comes after everybody who reads
//! the other there, and whoever takes the place of a result on its way waits for that. What is left are tensors that stand in
//! one snapshot on the same bytes, and transfers that nobody waits for, which may still arrive when their place is another's.

use super::{Findings, Proof, Read, place};
use crate::lower::residents::Resident;
use crate::rules::meaning as rules;
use std::collections::HashMap;

/// Pairs of a transfer that nobody waits for and a read that are looked at.
const MOST_WORK: u64 = 20_000_000;

pub(super) fn check(proof: &Proof<'_>, reads: &[Read], findings: &mut Findings) {
    for read in reads {
        waits(proof, read, findings);
        for other in proof
            .places
            .shared
            .get(&read.resident)
            .into_iter()
            .flatten()
        {
            overwritten(proof, read, *other, findings);
        }
    }
    stray(proof, reads, findings);
}

/// Who reads waits for what it reads.
fn waits(proof: &Proof<'_>, read: &Read, findings: &mut Findings) {
    let Some(early) = read
        .fed
        .iter()
        .find(|fed| !proof.is_before(**fed, read.node))
    else {
        return;
    };
    let message = || {
        format!(
            "expected {} to come after {}, which brings what it reads, found nothing that makes it wait",
            proof.label(read.node),
            proof.label(*early)
        )
    };
    let related = Some((place(proof.lint, proof.plan, *early), "what brings it"));
    findings.report_with(&rules::RACE, read.at, message, related);
}

/// Nothing that is written into another tensor may destroy what is read.
fn overwritten(proof: &Proof<'_>, read: &Read, other: u32, findings: &mut Findings) {
    let writers = proof
        .plan
        .writers(proof.residents, &proof.plan.arrivals, other);
    for writer in writers {
        if destroys(proof, read, proof.plan.number(writer)) {
            report(proof, read, proof.plan.number(writer), other, findings);
            return;
        }
    }
}

fn destroys(proof: &Proof<'_>, read: &Read, writer: u32) -> bool {
    if proof.is_before(read.node, writer) {
        return false;
    }
    let is_earlier = |fed: &u32| proof.is_before(writer, *fed);
    read.fed.is_empty() || !read.fed.iter().all(is_earlier)
}

fn report(proof: &Proof<'_>, read: &Read, writer: u32, other: u32, findings: &mut Findings) {
    let bytes = |resident: &Resident<'_>| {
        let spans = resident.extents();
        let spans: Vec<String> = spans
            .iter()
            .map(|(first, end)| format!("[{first}, {end})"))
            .collect();
        spans.join(" and ")
    };
    let message = || {
        let [read_from, written] =
            [read.resident, other].map(|number| bytes(&proof.residents.all[number as usize]));
        format!(
            "expected the bytes {read_from} to stay until {} has read them, found that {} may write {written} before",
            proof.label(read.node),
            proof.label(writer)
        )
    };
    let at = proof.residents.all[other as usize].tensor.at;
    findings.report_with(
        &rules::RACE,
        read.at,
        message,
        Some((at, "the tensor that is written")),
    );
}

/// Transfers that may arrive after the last snapshot of their tensor.
fn stray(proof: &Proof<'_>, reads: &[Read], findings: &mut Findings) {
    let mut by_core: HashMap<usize, Vec<(u32, u32, usize)>> = HashMap::new();
    for (number, arrivals) in proof.plan.arrivals.residents.iter().enumerate() {
        let resident = &proof.residents.all[number];
        for (_, node) in arrivals {
            let node = proof.plan.number(*node);
            let done = proof.clocks.first_after(node, resident.core);
            let done = done.map_or(usize::MAX, |place| place as usize);
            if done > resident.last {
                let stray = by_core.entry(resident.core).or_default();
                stray.push((number as u32, node, done));
            }
        }
    }
    if by_core.is_empty() {
        return;
    }
    let mut work = 0u64;
    for read in reads {
        let resident = &proof.residents.all[read.resident as usize];
        for (other, node, done) in by_core.get(&resident.core).into_iter().flatten() {
            work += 1;
            if work > MOST_WORK {
                findings.report(&rules::WORK, read.at, || {
                    format!("expected at most {MOST_WORK} pairs of a stray transfer and a read, found more")
                });
                return;
            }
            let earlier = &proof.residents.all[*other as usize];
            if resident.first > earlier.last
                && resident.first <= *done
                && resident.overlaps(earlier)
                && destroys(proof, read, *node)
            {
                report(proof, read, *node, *other, findings);
                return;
            }
        }
    }
}
