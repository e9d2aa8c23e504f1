//! The format's rules, checked on a schedule.
//!
//! What needs an order of events on the bytes (races, use before write) is the verifier's, on the lowered program. Here is
//! what the schedule itself states and implies. Workloads are looked at in parallel, each with the one before it.

mod batch;
pub(crate) mod cover;
mod dram;
mod groups;
mod index;
mod network;
mod proof;
mod size;
mod snapshot;
mod structure;
mod tile;
mod transfer;
mod weights;

use crate::filename::NameFacts;
use crate::lower::Frames;
use crate::names::Name;
use crate::network::Network;
use crate::place;
use crate::rules::MORE_FINDINGS;
use crate::rules::schedule::PACKED;
use crate::schedule::{At, Core, Dialect, Schedule, Workload};
use chipless_model::{Finding, Limits, Rule};
use index::Index;
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

/// Workloads that one thread looks at, one after the other.
const RUN: usize = 64;

/// What the checks may know besides the schedule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given<'a> {
    /// The front-end file.
    pub network: Option<&'a Network>,
    /// The batch, where the user says it.
    pub batch: Option<u32>,
    /// What the name of the file says.
    pub name: NameFacts,
}

/// Checks a schedule, read from this text, against every rule; findings in the order of the rules' kinds and of the file, at
/// most `limits.findings` of them and a note about the rest.
pub fn lint(schedule: &Schedule, text: &str, given: Given<'_>, limits: &Limits) -> Vec<Finding> {
    let mut all = Findings(chipless_model::Findings::new(limits.findings));
    structure::check(schedule, &mut all);
    let index = Index::new(schedule);
    let groups = groups::of(schedule);
    let misnamed = OnceLock::new();
    let lint = Lint {
        schedule,
        misnamed: &misnamed,
        groups: &groups,
        index: &index,
        spec: schedule.dialect == Dialect::Spec,
        packed: schedule.is_packed(),
        frames: Frames::of(schedule),
    };
    if lint.packed {
        all.report(&PACKED, At(0), || {
            "expected channels aligned to 64 bits, found align 1 of every tensor".to_owned()
        });
    }
    batch::check(lint, given, &mut all);
    transfer::check(lint, &mut all);
    let runs: Vec<(usize, usize)> = (0..schedule.cores.len())
        .flat_map(|core| {
            (0..schedule.cores[core].workloads.len())
                .step_by(RUN)
                .map(move |first| (core, first))
        })
        .collect();
    let parts: Vec<Findings> = runs
        .par_iter()
        .map(|&(core, first)| {
            let mut findings = Findings(chipless_model::Findings::new(limits.findings));
            let core = &schedule.cores[core];
            for position in first..core.workloads.len().min(first + RUN) {
                workload(lint, core, position, &mut findings);
            }
            findings
        })
        .collect();
    for part in parts {
        all.0.append(part.0);
    }
    dram::check(lint, &mut all);
    let network = given
        .network
        .map(|network| network.at_batch(schedule.batch()));
    let network = network.as_deref();
    if let Some(network) = network {
        network::check(lint, network, &mut all);
    }
    if lint.spec && !lint.packed {
        proof::check(lint, network, &mut all);
    }
    all.done(text)
}

fn workload(lint: Lint<'_>, core: &Core, position: usize, findings: &mut Findings) {
    let Some(workload) = core.workloads.get(position) else {
        return;
    };
    let before = position
        .checked_sub(1)
        .and_then(|position| core.workloads.get(position));
    size::check(lint, workload, findings);
    structure::check_workload(lint, workload, findings);
    transfer::check_workload(lint, core, workload, findings);
    snapshot::check(lint, workload, before, findings);
    weights::check(lint, workload, findings);
    tile::check(lint, workload, findings);
}

/// What every check needs.
#[derive(Clone, Copy)]
struct Lint<'a> {
    schedule: &'a Schedule,
    /// Cores that sources name instead of those that make their transfers, once somebody asks.
    misnamed: &'a OnceLock<HashSet<[u32; 2]>>,
    /// DRAM groups that hold the data of each transfer, bit by bit (IR-tiling).
    groups: &'a HashMap<u32, u32>,
    index: &'a Index,
    spec: bool,
    /// No channel is aligned, and weights have no parameters: a schedule that was converted from an ancestor.
    packed: bool,
    /// From where boxes of ofmaps count.
    frames: Frames,
}

impl Lint<'_> {
    /// A workload as people call it.
    fn label(self, core: u32, workload: &Workload) -> String {
        format!(
            "workload {} of core {} ({})",
            workload.id,
            self.schedule.file_core(core),
            self.schedule.name(workload.layer)
        )
    }

    fn layer(self, name: Option<Name>) -> String {
        name.map_or_else(
            || "no layer".to_owned(),
            |name| self.schedule.name(name).to_owned(),
        )
    }
}

/// A finding whose places are still offsets.
struct Raw {
    rule: &'static Rule,
    at: At,
    message: String,
    related: Option<(At, &'static str)>,
}

/// Findings, their messages made only for those that are kept.
struct Findings(chipless_model::Findings<Raw>);

impl Findings {
    fn report(&mut self, rule: &'static Rule, at: At, message: impl FnOnce() -> String) {
        self.report_with(rule, at, message, None);
    }

    /// With another place and its role.
    fn report_with(
        &mut self,
        rule: &'static Rule,
        at: At,
        message: impl FnOnce() -> String,
        related: Option<(At, &'static str)>,
    ) {
        self.0.add(|| Raw {
            rule,
            at,
            message: message(),
            related,
        });
    }

    /// The findings, with the places of all of them found in one pass over the text.
    fn done(self, text: &str) -> Vec<Finding> {
        self.0.done_with(&MORE_FINDINGS, |kept| placed(kept, text))
    }
}

fn placed(kept: Vec<Raw>, text: &str) -> Vec<Finding> {
    let offsets: Vec<usize> = kept
        .iter()
        .flat_map(|raw| [Some(raw.at), raw.related.map(|(at, _)| at)])
        .flatten()
        .map(|at| at.0 as usize)
        .collect();
    let places = place::places(text, offsets);
    let place = |at: At| places.get(&(at.0 as usize)).cloned().unwrap_or_default();
    let finding = |raw: Raw| {
        let finding = raw.rule.at(place(raw.at), raw.message);
        match raw.related {
            Some((at, role)) => finding.with(place(at), role),
            None => finding,
        }
    };
    kept.into_iter().map(finding).collect()
}
