//! Whether a schedule computes its network: translation validation.
//!
//! Every element is followed by its name, as boxes and not as bytes: a load brings a box of a layer, an input or a constant
//! into a tensor of L2, a workload makes a box of its layer if it reads exactly the elements that its operation needs, a store
//! puts a piece into DRAM. In every order that the schedule allows, what a workload reads must have been brought before it and
//! be overwritten by nothing; in the end every output of the network must lie in DRAM.
//!
//! What waits for what is the same plan by which schedules are lowered ([`crate::lower::plan`]). Without a network a workload
//! needs what its schedule says, and every result that it reads must be there.

mod clock;
mod content;
mod flow;
mod place;
mod race;
mod weights;

use super::{Findings, Lint};
use crate::lower::Frames;
use crate::lower::builder::Builder;
use crate::lower::pack::Operations;
use crate::lower::plan::{Node, Plan, Predecessors};
use crate::lower::residents::Residents;
use crate::names::Name;
use crate::network::Network;
use crate::rules::meaning as rules;
use crate::schedule::At;
use clock::Clocks;
use place::Places;
use std::collections::HashSet;

/// Members of a circle that are named.
const NAMED: usize = 6;

/// What the parts of the proof share.
struct Proof<'p> {
    lint: Lint<'p>,
    network: Option<&'p Network>,
    frames: Frames,
    residents: &'p Residents<'p>,
    plan: &'p Plan<'p>,
    predecessors: &'p Predecessors,
    /// Nodes, what comes before first.
    sorted: &'p [u32],
    clocks: Clocks,
    places: Places,
    /// Layers that workloads make, or would have to make.
    made: HashSet<Name>,
}

pub(super) fn check(lint: Lint<'_>, network: Option<&Network>, findings: &mut Findings) {
    let schedule = lint.schedule;
    let frames = lint.frames;
    let residents = Residents::find(
        schedule,
        1,
        0,
        0,
        &mut Builder::new(&chipless_model::Limits::default()),
    );
    let (plan, predecessors) = Plan::new(schedule, &residents, frames).into_order();
    let (sorted, reached) = predecessors.sort();
    if reached < sorted.len() {
        let circle = predecessors.circle(&sorted[reached..]);
        deadlock(lint, &plan, &circle, sorted.len() - reached, findings);
        return;
    }
    let proof = Proof {
        lint,
        network,
        frames,
        residents: &residents,
        plan: &plan,
        predecessors: &predecessors,
        sorted: &sorted,
        clocks: Clocks::new(&plan, &predecessors, &sorted),
        places: Places::new(lint, &residents),
        made: made(lint, network),
    };
    let mut operations = Operations::default();
    let reads = flow::check(&proof, &mut operations, findings);
    race::check(&proof, &reads, findings);
}

/// Layers whose results are nowhere before workloads make them.
fn made(lint: Lint<'_>, network: Option<&Network>) -> HashSet<Name> {
    let schedule = lint.schedule;
    let scheduled = network.into_iter().flat_map(Network::scheduled);
    let scheduled = scheduled.filter_map(|(name, _)| schedule.names.find(name));
    let workloads = schedule.workloads().map(|(_, w)| w.layer);
    workloads.chain(scheduled).collect()
}

/// A read of a tensor: who reads, which tensor, and the nodes that brought what is read.
struct Read {
    node: u32,
    resident: u32,
    fed: smallvec::SmallVec<[u32; 2]>,
    at: At,
}

impl Proof<'_> {
    fn is_before(&self, a: u32, b: u32) -> bool {
        self.clocks.is_before(a, b, self.predecessors)
    }

    fn label(&self, node: u32) -> String {
        label(self.lint, self.plan, node)
    }
}

/// A node as people call it.
fn label(lint: Lint<'_>, plan: &Plan<'_>, node: u32) -> String {
    let transfer = |departure: &crate::lower::plan::Departure| {
        let workload = plan.workload(departure.workload).2;
        workload.ofmaps[departure.ofmap as usize].transfer
    };
    let place = |order: Option<u32>| {
        order.map_or_else(String::new, |order| format!(" (tensor_order {order})"))
    };
    match plan.node(node) {
        Node::Begin(core) => format!("the start of core {core}"),
        Node::End(core) => format!("the end of core {core}"),
        Node::Workload(index) => {
            let (core, _, workload) = plan.workload(index);
            lint.label(lint.schedule.cores[core].id, workload)
        }
        Node::Load(index) => {
            let load = &plan.loads[index as usize];
            let out = &lint.schedule.dram_out[load.out as usize];
            format!("the load of transfer {}{}", out.transfer, place(load.order))
        }
        Node::Store(index) => {
            let store = &plan.stores[index as usize];
            format!(
                "the store of transfer {}{}",
                transfer(store),
                place(store.order)
            )
        }
        Node::Send(index) => {
            format!(
                "the sending of transfer {}",
                transfer(&plan.sends[index as usize])
            )
        }
    }
}

/// Where a node stands in the file.
fn place(lint: Lint<'_>, plan: &Plan<'_>, node: u32) -> At {
    let piece = |departure: &crate::lower::plan::Departure| {
        plan.workload(departure.workload).2.ofmaps[departure.ofmap as usize].at
    };
    match plan.node(node) {
        Node::Begin(core) | Node::End(core) => lint.schedule.cores[core as usize].at,
        Node::Workload(index) => plan.workload(index).2.at,
        Node::Load(index) => lint.schedule.dram_out[plan.loads[index as usize].out as usize].at,
        Node::Store(index) => piece(&plan.stores[index as usize]),
        Node::Send(index) => piece(&plan.sends[index as usize]),
    }
}

fn deadlock(
    lint: Lint<'_>,
    plan: &Plan<'_>,
    circle: &[u32],
    stuck: usize,
    findings: &mut Findings,
) {
    let Some((&head, rest)) = circle.split_first() else {
        return;
    };
    let message = || {
        let mut names: Vec<String> = circle
            .iter()
            .take(NAMED)
            .map(|node| label(lint, plan, *node))
            .collect();
        if circle.len() > NAMED {
            names.push(format!("{} more", circle.len() - NAMED));
        }
        format!(
            "expected an order of all work, found that each of these must come before the next and the last before the first: {}; {stuck} workloads and transfers never start",
            names.join(", ")
        )
    };
    let related = rest
        .first()
        .map(|node| (place(lint, plan, *node), "the next in the circle"));
    findings.report_with(&rules::DEADLOCK, place(lint, plan, head), message, related);
}
