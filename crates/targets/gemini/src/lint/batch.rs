//! The batch and its groups.

use super::{Findings, Given, Lint};
use crate::rules::schedule as rules;
use crate::schedule::At;

pub(super) fn check(lint: Lint<'_>, given: Given<'_>, findings: &mut Findings) {
    let cut = lint.schedule.top_batch_cut;
    if cut == 0 {
        return;
    }
    let made = lint.schedule.workloads().map(|(_, w)| u64::from(w.bounds.upper[0]) + 1).max();
    let shapes = given.network.into_iter().flat_map(super::super::network::Network::scheduled);
    let whole = shapes.filter_map(|(_, layer)| layer.output_shape.first()?.first().copied()).max();
    let (batch, source) = match (given.batch, whole, made) {
        (Some(batch), _, _) => (u64::from(batch), "the file name or --batch"),
        (None, Some(batch), _) => (batch, "the front-end file"),
        (None, None, Some(batch)) => (batch, "the boxes of the workloads"),
        (None, None, None) => return,
    };
    if u64::from(cut) > batch {
        findings
            .report(&rules::BATCH_CUT, At(0), || format!("expected top_batch_cut of at most {batch}, the batch of {source}, found {cut}"));
    } else if batch % u64::from(cut) != 0 {
        findings.report(&rules::BATCH_UNEVEN, At(0), || {
            format!("expected top_batch_cut to divide {batch}, the batch of {source}, found {cut}")
        });
    }
    if let Some(made) = made
        && made > batch
    {
        let at = lint.schedule.workloads().find(|(_, w)| u64::from(w.bounds.upper[0]) + 1 > batch).map_or(At(0), |(_, w)| w.at);
        findings.report(&rules::BATCH_CUT, at, || {
            format!("expected workloads within the batch of {batch}, that of {source}, found image {}", made - 1)
        });
    }
}
