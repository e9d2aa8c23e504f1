//! Changes of a design: what is proposed, and how its mappings are repaired.

use super::{Design, Explorer, MAPPING, OfKind, evaluate};
use crate::design::{Draft, Placed, Used};
use crate::moves;
use chipless_dsa::adg::{Element, ElementKind, MemoryKind};
use chipless_dsa_mapper::{self as mapper, Mapping, Objective};
use fastrand::Rng;

impl Explorer<'_> {
    /// A design without what nothing uses of it.
    pub(super) fn pruned(
        &self,
        mut draft: Draft,
        placed: Vec<Vec<Option<Placed>>>,
    ) -> Option<Design> {
        let built = draft.build();
        let mut used = Used::default();
        for (kernel, placed) in self.kernels.iter().zip(&placed) {
            for (variant, placed) in kernel.variants.iter().zip(placed) {
                if let Some(placed) = placed {
                    let (_, verdict) = placed.judged(&variant.graph, &built)?;
                    used.add(&variant.graph, placed, &verdict);
                }
            }
        }
        moves::prune(&mut draft, &used, &self.options.freeze);
        evaluate(
            self.kernels,
            &self.options.budget,
            self.system,
            draft,
            placed,
        )
    }

    /// A change at random.
    pub(super) fn propose(&self, base: &Design, rng: &mut Rng) -> (&'static str, Option<Design>) {
        let freeze = &self.options.freeze;
        let mut draft = base.draft.clone();
        let mut placed = base.placed.clone();
        match rng.u32(..100) {
            0..30 => {
                let merged = self.merge(&mut draft, &mut placed, rng);
                (
                    "merge",
                    merged.then(|| self.pruned(draft, placed)).flatten(),
                )
            }
            30..60 if !freeze.switches && !freeze.links => {
                let switches = moves::of_kind(&draft, Element::is_switch);
                let mut all: Vec<Option<Placed>> = placed.iter().flatten().cloned().collect();
                let done = moves::pick(rng, &switches)
                    .is_some_and(|switch| moves::bypass(&mut draft, &mut all, switch));
                give_back(&mut placed, all);
                (
                    "bypass a switch",
                    done.then(|| self.pruned(draft, placed)).flatten(),
                )
            }
            60..70 if !freeze.links => {
                let removed = self.remove(&mut draft, rng);
                let repaired = removed && self.repair(&draft, &mut placed, rng);
                (
                    "remove",
                    repaired.then(|| self.pruned(draft, placed)).flatten(),
                )
            }
            70..76 if !freeze.links => {
                let added = add_link(&mut draft, rng);
                let mapped = added && self.remap(&draft, &mut placed, rng, false);
                (
                    "add a link",
                    mapped.then(|| self.pruned(draft, placed)).flatten(),
                )
            }
            76..80 if !freeze.widths => {
                let narrowed = narrow(&mut draft, rng);
                (
                    "narrow a memory",
                    narrowed.then(|| self.pruned(draft, placed)).flatten(),
                )
            }
            80..85 => {
                let mapped = self.remap(&draft, &mut placed, rng, true);
                (
                    "another variant",
                    mapped.then(|| self.pruned(draft, placed)).flatten(),
                )
            }
            _ => {
                let mapped = self.remap(&draft, &mut placed, rng, false);
                (
                    "map again",
                    mapped.then(|| self.pruned(draft, placed)).flatten(),
                )
            }
        }
    }

    /// Makes one element of two that no kernel uses both of.
    fn merge(&self, draft: &mut Draft, placed: &mut [Vec<Option<Placed>>], rng: &mut Rng) -> bool {
        let freeze = &self.options.freeze;
        let kinds: [(bool, OfKind); 4] = [
            (freeze.elements, |e| e.processing().is_some()),
            (freeze.switches, Element::is_switch),
            (freeze.ports, |e| {
                matches!(e.kind, ElementKind::InputPort(_))
            }),
            (freeze.ports, |e| {
                matches!(e.kind, ElementKind::OutputPort(_))
            }),
        ];
        let (frozen, kind) = kinds[rng.usize(..kinds.len())];
        let all = moves::of_kind(draft, kind);
        if frozen || freeze.links || all.len() < 2 {
            return false;
        }
        // A pair that is at odds in some kernel is drawn again, a few times.
        for _ in 0..16 {
            let (one, two) = (all[rng.usize(..all.len())], all[rng.usize(..all.len())]);
            let both = placed.iter().flatten().flatten().any(|placed| {
                let holds = |element| placed.nodes.iter().flatten().any(|(at, _)| *at == element);
                holds(one) && holds(two)
            });
            if one != two && !both {
                let mut flat: Vec<Option<Placed>> = placed.iter().flatten().cloned().collect();
                let done = moves::merge(draft, &mut flat, one.min(two), one.max(two));
                give_back(placed, flat);
                return done;
            }
        }
        false
    }

    /// Takes out an element or a link.
    fn remove(&self, draft: &mut Draft, rng: &mut Rng) -> bool {
        let freeze = &self.options.freeze;
        if rng.bool() {
            let links: Vec<usize> = draft.links().map(|(id, ..)| id).collect();
            let link = moves::pick(rng, &links);
            if let Some(link) = link {
                draft.links[link] = None;
            }
            return link.is_some();
        }
        let kinds: [(bool, OfKind); 2] = [
            (freeze.elements, |e| e.processing().is_some()),
            (freeze.switches, Element::is_switch),
        ];
        let (frozen, kind) = kinds[rng.usize(..kinds.len())];
        let found = moves::pick(rng, &moves::of_kind(draft, kind)).filter(|_| !frozen);
        if let Some(element) = found {
            draft.remove(element);
        }
        found.is_some()
    }

    /// Maps what lost its place again; whether everything has one.
    fn repair(&self, draft: &Draft, placed: &mut [Vec<Option<Placed>>], rng: &mut Rng) -> bool {
        let built = draft.build();
        for (kernel, placed) in self.kernels.iter().zip(placed) {
            for (variant, placed) in kernel.variants.iter().zip(placed) {
                let Some(old) = placed else { continue };
                if old.judged(&variant.graph, &built).is_some() {
                    continue;
                }
                let begin = old.mapping(&variant.graph, &built);
                let options = self.mapping(rng, Objective::Interval, Some(begin));
                let outcome = mapper::map(&variant.graph, &built.adg, &options, &mut |_| {});
                match outcome.mapping.filter(|_| outcome.mismatch == 0) {
                    Some(mapping) => *placed = Some(Placed::of(&mapping, &built)),
                    None => return false,
                }
            }
        }
        true
    }

    pub(super) fn mapping(
        &self,
        rng: &mut Rng,
        objective: Objective,
        begin: Option<Mapping>,
    ) -> mapper::Options {
        mapper::Options {
            seed: rng.u64(..),
            jobs: 1,
            time_limit: MAPPING,
            objective,
            rounds: Some(2),
            begin,
            stop: self.options.stop,
            effort: 1,
        }
    }

    /// Maps a kernel in another way, or another of its variants.
    fn remap(
        &self,
        draft: &Draft,
        placed: &mut [Vec<Option<Placed>>],
        rng: &mut Rng,
        other: bool,
    ) -> bool {
        let number = rng.usize(..self.kernels.len().max(1));
        let kernel = &self.kernels[number];
        let now = placed[number].iter().position(Option::is_some).unwrap_or(0);
        let variant = if other {
            rng.usize(..kernel.variants.len())
        } else {
            now
        };
        if other && variant == now {
            return false;
        }
        let graph = &kernel.variants[variant].graph;
        let built = draft.build();
        let objective = if rng.bool() {
            Objective::Links
        } else {
            Objective::Interval
        };
        let options = self.mapping(rng, objective, None);
        let outcome = mapper::map(graph, &built.adg, &options, &mut |_| {});
        let Some(mapping) = outcome.mapping.filter(|_| outcome.mismatch == 0) else {
            return false;
        };
        placed[number].fill(None);
        placed[number][variant] = Some(Placed::of(&mapping, &built));
        true
    }
}

/// Puts a flat list back into kernels and variants.
fn give_back(placed: &mut [Vec<Option<Placed>>], flat: Vec<Option<Placed>>) {
    for (own, new) in placed.iter_mut().flatten().zip(flat) {
        *own = new;
    }
}

/// Links two elements that were not.
fn add_link(draft: &mut Draft, rng: &mut Rng) -> bool {
    let sources = moves::of_kind(draft, |e| {
        e.memory().is_none() && !matches!(e.kind, ElementKind::OutputPort(_))
    });
    let sinks = moves::of_kind(draft, |e| {
        e.memory().is_none() && !matches!(e.kind, ElementKind::InputPort(_))
    });
    let (Some(source), Some(sink)) = (moves::pick(rng, &sources), moves::pick(rng, &sinks)) else {
        return false;
    };
    let is_port = |id: usize| {
        draft.elements[id]
            .as_ref()
            .is_some_and(|e| e.port().is_some())
    };
    let known = draft
        .links()
        .any(|(_, from, to)| (from, to) == (source, sink));
    if source == sink || known || is_port(source) && is_port(sink) {
        return false;
    }
    draft.links.push(Some((source, sink)));
    true
}

/// Halves the width of a scratchpad.
fn narrow(draft: &mut Draft, rng: &mut Rng) -> bool {
    let all = moves::of_kind(draft, |e| {
        e.memory()
            .is_some_and(|memory| memory.kind == MemoryKind::Scratchpad)
    });
    let Some(id) = moves::pick(rng, &all) else {
        return false;
    };
    if let Some(Element {
        kind: ElementKind::Memory(memory),
        ..
    }) = &mut draft.elements[id]
        && memory.read_width > 8
    {
        memory.read_width /= 2;
        memory.write_width = memory.write_width.min(memory.read_width);
        return true;
    }
    false
}
