//! Instructions that start descriptors, functions, and descriptors that nothing starts.

use super::Findings;
use crate::read::{Neff, Subgraph};
use crate::rules::triggers as rules;
use crate::triggers::{Plan, place, plans};
use chipless_model::Limits;

pub(super) fn check(neff: &Neff<'_>, limits: &Limits, findings: &mut Findings) {
    let plans = plans(neff, limits.tasks);
    for (subgraph, plans) in neff.subgraphs.iter().zip(&plans) {
        subgraph_check(subgraph, plans, findings);
    }
}

fn subgraph_check(subgraph: &Subgraph<'_>, plans: &[Plan], findings: &mut Findings) {
    for (room, plan) in subgraph.engines.iter().zip(plans) {
        for wrong in &plan.wrong {
            let at = || place(&subgraph.name, room, wrong.slot, plan.order.is_some());
            findings.report(wrong.rule, at, &wrong.message);
        }
        let Some(source) = &room.source else { continue };
        for entry in &plan.idle {
            let Some(item) = room.file.dma.get(*entry) else {
                continue;
            };
            let id = item.id.map_or("none".to_owned(), |id| id.to_string());
            let message = format!(
                "no instruction of {} starts id {id} of `{}`",
                room.engine,
                item.queue_name().unwrap_or_default()
            );
            let at = || source.place(item.text, &format!("/dma/{entry}"), "/id");
            findings.report(&rules::NOT_TRIGGERED, at, message);
        }
    }
}
