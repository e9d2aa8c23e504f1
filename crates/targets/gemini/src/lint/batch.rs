//! The batch and its groups, and what the name of the file says.

use super::{Findings, Given, Lint};
use crate::rules::schedule as rules;
use crate::schedule::At;

pub(super) fn check(lint: Lint<'_>, given: Given<'_>, findings: &mut Findings) {
    let (cut, places) = (lint.schedule.top_batch_cut, lint.schedule.places);
    if cut == 0 {
        return;
    }
    let made = lint
        .schedule
        .workloads()
        .map(|(_, w)| u64::from(w.bounds.upper[0]) + 1)
        .max();
    name(lint, given, made, findings);
    let (batch, source) = match (given.batch, made) {
        (Some(batch), _) => (u64::from(batch), "--batch"),
        // A front-end file may say another batch than the schedule was made for.
        (None, Some(batch)) => (batch, "the boxes of the workloads"),
        (None, None) => return,
    };
    if u64::from(cut) > batch {
        findings.report(&rules::BATCH_CUT, places.top_batch_cut, || {
            format!("expected top_batch_cut of at most {batch}, the batch of {source}, found {cut}")
        });
    } else if batch % u64::from(cut) != 0 {
        findings.report(&rules::BATCH_UNEVEN, places.top_batch_cut, || {
            format!("expected top_batch_cut to divide {batch}, the batch of {source}, found {cut}")
        });
    }
    let Some(made) = made else { return };
    if made > batch {
        let at = lint
            .schedule
            .workloads()
            .find(|(_, w)| u64::from(w.bounds.upper[0]) + 1 > batch)
            .map_or(At(0), |(_, w)| w.at);
        findings.report(&rules::BATCH, at, || {
            format!(
                "expected images 0 to {}, those of {source}, found image {}",
                batch - 1,
                made - 1
            )
        });
    } else if made < batch && given.batch.is_some() {
        findings.report(&rules::BATCH_UNMADE, At(0), || {
            format!("expected workloads for {batch} images, as {source} says, found {made}")
        });
    }
}

/// A name that a scheduler gave says what is in the file.
fn name(lint: Lint<'_>, given: Given<'_>, made: Option<u64>, findings: &mut Findings) {
    let Some([batch, cores, bandwidth]) = given.name.scheduled() else {
        return;
    };
    let mut wrong = |message: String| findings.report(&rules::FILE_NAME, At(0), || message);
    if let Some(made) = made.filter(|made| *made != u64::from(batch)) {
        wrong(format!(
            "expected the batch of {batch} that the file name says, found workloads for {made} images"
        ));
    }
    let [columns, rows] = lint.schedule.mesh;
    if u64::from(columns) * u64::from(rows) != u64::from(cores) {
        wrong(format!(
            "expected the {cores} cores that the file name says, found a mesh of {columns} x {rows}"
        ));
    }
    if bandwidth == 0 {
        wrong("expected a bandwidth above 0 in the file name, found bw0".to_owned());
    }
}
