//! Weights: those of the layer and of the workload's channels, in the weight buffer when the workload computes with them.

use super::{Proof, Read};
use crate::lower::plan::Node;
use crate::operation::{Kind, Operation};
use crate::rules::meaning as rules;
use crate::schedule::{At, LayerType, TensorKind, Weight, WeightSource, Workload};
use chipless_model::Rule;

type Wrong = (&'static Rule, At, String, Option<(At, &'static str)>);

/// Why a workload does not compute with the weights that it needs.
pub(super) fn check(
    proof: &Proof<'_>,
    index: u32,
    workload: &Workload,
    operation: Option<&Operation>,
    reads: &mut Vec<Read>,
) -> Option<Wrong> {
    let from_l2 = in_l2(proof, index, workload, reads);
    let needs = match operation {
        Some(operation) => matches!(operation.kind, Kind::Convolution { .. }),
        None => workload.layer_type.unit() == LayerType::Pe && workload.weight.is_some(),
    };
    if !needs {
        return None;
    }
    let (core, position, _) = proof.plan.workload(index);
    let who = proof
        .lint
        .label(proof.lint.schedule.cores[core].id, workload);
    let wrong = |at: At, found: String| {
        let message = format!("expected {who} to compute with its weights, found {found}");
        Some((&rules::WEIGHTS, at, message, None))
    };
    let Some(weight) = &workload.weight else {
        return wrong(workload.at, "that it names none".to_owned());
    };
    if let Some(found) = other(proof, workload, weight) {
        return wrong(weight.at, found);
    }
    let held = proof.residents.held_of(index as usize);
    let mut named = held
        .iter()
        .filter(|h| proof.residents.held[**h as usize].tensor.transfers == weight.transfers)
        .peekable();
    if named.peek().is_none() {
        let found = format!("transfer {} not in its weight buffer", weight.transfers[0]);
        return wrong(weight.at, found);
    }
    let is_good = |h: u32| {
        let entry = &proof.residents.held[h as usize];
        let is_kept = proof
            .places
            .lost
            .get(&h)
            .is_none_or(|from| position < *from);
        is_kept
            && match entry.tensor.source {
                WeightSource::Dram => proof.plan.arrivals.held[h as usize].is_some(),
                WeightSource::L2 => from_l2,
            }
    };
    if named.clone().any(|h| is_good(*h)) {
        return None;
    }
    let first = &proof.residents.held[**named.peek()? as usize];
    let found = match first.tensor.source {
        WeightSource::L2 if !from_l2 => "that they come from L2, where they are not".to_owned(),
        WeightSource::Dram if !first.is_filled => {
            "that their entry of the weight buffer was elsewhere when they were loaded".to_owned()
        }
        WeightSource::Dram if proof.plan.arrivals.held[**named.peek()? as usize].is_none() => {
            format!(
                "that transfer {} does not go to this core",
                weight.transfers[0]
            )
        }
        _ => "that other weights take their place in the weight buffer".to_owned(),
    };
    wrong(first.tensor.at, found)
}

/// What makes the named weights others than those of the workload.
fn other(proof: &Proof<'_>, workload: &Workload, weight: &Weight) -> Option<String> {
    let schedule = proof.lint.schedule;
    let Some(&transfer) = weight.transfers.first() else {
        return Some("that it names no transfer".into());
    };
    let Some(out) = proof
        .plan
        .outs
        .get(&transfer)
        .map(|index| &schedule.dram_out[*index])
    else {
        return Some(format!("no load of transfer {transfer}"));
    };
    let layer = out.destinations.first().and_then(|d| d.layer);
    if let Some(layer) = layer.filter(|layer| *layer != workload.layer) {
        return Some(format!("those of {}", schedule.name(layer)));
    }
    if layer.is_none() {
        return Some(format!("transfer {transfer}, which names no layer"));
    }
    if out.bounds != weight.bounds {
        let (of, loaded) = (weight.bounds, out.bounds);
        return Some(format!(
            "the box {of}, where transfer {transfer} loads {loaded}"
        ));
    }
    let (first, last) = (workload.bounds.lower[1], workload.bounds.upper[1]);
    let (lower, upper) = (out.bounds.lower[1], out.bounds.upper[1]);
    (first != lower || last > upper).then(|| {
        format!("those of the output channels {lower} to {upper}, where it makes {first} to {last}")
    })
}

/// Whether the weights are in L2, which counts as a read of them.
fn in_l2(proof: &Proof<'_>, index: u32, workload: &Workload, reads: &mut Vec<Read>) -> bool {
    let Some(weight) = &workload.weight else {
        return false;
    };
    let mut found = false;
    for &r in proof.residents.of(index as usize) {
        let tensor = proof.residents.all[r as usize].tensor;
        let named = |t: &u32| weight.transfers.contains(t);
        if tensor.kind != TensorKind::Weight || !tensor.transfers.iter().any(named) {
            continue;
        }
        let arrivals = &proof.plan.arrivals.residents[r as usize];
        found |= tensor.transfers == weight.transfers && !arrivals.is_empty();
        let fed = arrivals.iter().map(|(_, node)| proof.plan.number(*node));
        reads.push(Read {
            node: proof.plan.number(Node::Workload(index)),
            resident: r,
            fed: fed.collect(),
            at: weight.at,
        });
    }
    found
}
