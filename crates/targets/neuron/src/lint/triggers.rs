//! Instructions that start descriptors, functions, and descriptors that nothing starts.

use super::Findings;
use crate::read::{Neff, Subgraph};
use crate::rules::triggers as rules;
use crate::triggers::{place, plan};
use chipless_model::Limits;

pub(super) fn check(neff: &Neff<'_>, limits: &Limits, findings: &mut Findings) {
    for subgraph in &neff.subgraphs {
        subgraph_check(subgraph, limits, findings);
    }
}

fn subgraph_check(subgraph: &Subgraph<'_>, limits: &Limits, findings: &mut Findings) {
    for room in &subgraph.engines {
        let plan = plan(&subgraph.definition, room, limits.tasks);
        for wrong in &plan.wrong {
            findings.report(wrong.rule, || place(room, wrong.slot), &wrong.message);
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
