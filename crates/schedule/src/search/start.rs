//! Where the search begins: layers one by one, and segments found by a dynamic program over the order of layers.

use super::Rank;
use super::menu::Searcher;
use super::state::{Piece, State};
use crate::model::node::{Branch, Leaf, Node, Region};
use crate::model::{Bounds, Impossible, Objective};
use crate::tree::Cut;

/// Layers of a segment that the dynamic program tries, at most.
const LONGEST: usize = 80;
/// The same where it is late, some ten times as fast, and for further trees: from short segments annealing finds what it does not from
/// long ones, and the other way round.
const SHORT: usize = 8;
/// Segments in a row that do not fit, or cost more than their parts, after which longer ones are not tried.
const PATIENCE: usize = 6;

/// Trees that cost so many times as much as the best are not ranked.
const WORTH: f64 = 2.0;

/// Some trees to begin with, best first by what ranks them. Where it is late, that is the first one.
pub(super) fn ranked(
    searcher: &mut Searcher<'_>,
    starts: &[State],
    rank: &Rank<'_>,
    is_late: &dyn Fn() -> bool,
) -> Vec<State> {
    let objective = searcher.objective;
    let most = starts[0].score(objective) * WORTH;
    let worth = starts.iter().filter(|state| state.score(objective) <= most);
    let mut ranked: Vec<(f64, &State)> = Vec::new();
    for state in worth {
        if is_late() || ranked.iter().any(|(_, other)| *other == state) {
            continue;
        }
        let score = rank(&mut searcher.evaluator, &state.root());
        ranked.extend(score.map(|score| (score, state)));
    }
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut best: Vec<State> = ranked.into_iter().map(|(_, state)| state.clone()).collect();
    if best.is_empty() {
        best.push(starts[0].clone());
    }
    best
}

/// Trees to begin with, best first; there is at least one.
pub(super) fn starts(
    searcher: &mut Searcher<'_>,
    limits: &Bounds,
    is_late: &dyn Fn() -> bool,
) -> Result<Vec<State>, Impossible> {
    let objective = searcher.objective;
    let weight = weight(searcher, limits);
    let mut states = Vec::new();
    let mut short = None;
    for groups in sub_batches(searcher) {
        if is_late() && !states.is_empty() {
            break;
        }
        match alone(searcher, groups, weight) {
            Ok(state) => {
                states.extend(segments(searcher, &state, weight, LONGEST, is_late));
                if !is_late() {
                    states.extend(segments(searcher, &state, weight, SHORT, is_late));
                }
                states.push(state);
            }
            Err(impossible) => short = short.or(Some(impossible)),
        }
    }
    states.sort_by(|a, b| a.score(objective).total_cmp(&b.score(objective)));
    match (states.is_empty(), short) {
        (true, Some(short)) => Err(short),
        (true, None) => Err(no_layers()),
        _ => Ok(states),
    }
}

/// Energy that a cycle is worth.
fn weight(searcher: &Searcher<'_>, limits: &Bounds) -> f64 {
    let even = (limits.energy / limits.delay.max(1.0)).max(1e-9);
    match searcher.objective {
        Objective::Edp => even,
        Objective::Delay => even * 1e6,
        Objective::Energy => even * 1e-6,
    }
}

/// Numbers of sub-batches that are tried.
fn sub_batches(searcher: &Searcher<'_>) -> impl Iterator<Item = u32> + use<> {
    let batch = searcher.evaluator.costs.batch as u32;
    let divisors = (1..=batch).rev();
    divisors
        .filter(move |groups| batch.is_multiple_of(*groups))
        .take(6)
}

/// One layer after another, each over the cores that suit it: what a search has to beat. The whole batch passes once.
pub(super) fn layer_by_layer(
    searcher: &mut Searcher<'_>,
    limits: &Bounds,
) -> Result<State, Impossible> {
    let weight = weight(searcher, limits);
    let (mut states, mut short) = (Vec::new(), None);
    for groups in sub_batches(searcher) {
        match alone(searcher, groups, weight) {
            Ok(state) => states.push(state),
            Err(impossible) => short = short.or(Some(impossible)),
        }
    }
    let mut states = in_one_pass(searcher, states);
    if states.is_empty() {
        return Err(short.unwrap_or_else(no_layers));
    }
    Ok(states.swap_remove(0))
}

fn no_layers() -> Impossible {
    Impossible::Rule("the network has no layers".to_owned())
}

/// The same trees with their sub-batches inside the segments. Those that do not fit so are left out, unless none does.
pub(super) fn in_one_pass(searcher: &mut Searcher<'_>, states: Vec<State>) -> Vec<State> {
    let objective = searcher.objective;
    let mut whole: Vec<State> = states
        .iter()
        .filter_map(|state| {
            let mut pieces = Vec::new();
            for piece in &state.pieces {
                if let Ok(piece) = searcher.piece(wrapped(state, &piece.node)) {
                    pieces.push(piece);
                    continue;
                }
                // What does not fit together may fit layer by layer.
                let mut leaves = Vec::new();
                piece.node.for_each(&mut |leaf| leaves.push(leaf.clone()));
                for leaf in leaves {
                    let leaf = any_leaf(searcher, leaf.layer, leaf.batch, state.whole).ok()?;
                    pieces.push(searcher.piece(wrapped(state, &Node::Leaf(leaf))).ok()?);
                }
            }
            Some(State {
                groups: 1,
                pieces,
                ..state.clone()
            })
        })
        .collect();
    if whole.is_empty() {
        return states;
    }
    whole.sort_by(|a, b| a.score(objective).total_cmp(&b.score(objective)));
    whole
}

/// A segment that makes the sub-batches of the root itself.
fn wrapped(state: &State, node: &Node) -> Node {
    let children = match node {
        _ if state.groups == 1 => return node.clone(),
        Node::Cut(branch) if branch.cut == Cut::Time && branch.groups == 1 => {
            branch.children.clone()
        }
        node => vec![node.clone()],
    };
    Node::Cut(Branch {
        cut: Cut::Time,
        batch: state.batch,
        groups: state.groups,
        region: state.whole,
        children,
    })
}

/// The same tree with every layer over all the cores that its cut has, as far as that fits.
pub(super) fn spread(searcher: &mut Searcher<'_>, state: &State) -> State {
    fn widen(searcher: &mut Searcher<'_>, node: &mut Node) {
        match node {
            Node::Cut(branch) => {
                for child in &mut branch.children {
                    widen(searcher, child);
                }
            }
            Node::Leaf(leaf) => {
                let (_, cores) = searcher.evaluator.resolve(leaf.site);
                if cores.len() < usize::from(leaf.region.count)
                    && let Some(site) = searcher.widest(leaf.layer, leaf.batch, leaf.region)
                {
                    leaf.site = site;
                }
            }
        }
    }
    let mut pieces = Vec::new();
    for piece in &state.pieces {
        let mut node = (*piece.node).clone();
        widen(searcher, &mut node);
        pieces.push(searcher.piece(node).unwrap_or_else(|_| piece.clone()));
    }
    State {
        pieces,
        ..state.clone()
    }
}

/// All layers one by one.
fn alone(searcher: &mut Searcher<'_>, groups: u32, weight: f64) -> Result<State, Impossible> {
    let costs = &searcher.evaluator.costs;
    let (machine, network) = (costs.machine, costs.network);
    let batch = costs.batch as u32;
    let whole = Region {
        first: 0,
        count: machine.cores() as u16,
    };
    let inner = batch / groups;
    let mut pieces = Vec::with_capacity(network.layers.len());
    for layer in 0..network.layers.len() as u16 {
        let sources = vec![None; network.facts[usize::from(layer)].reads.len()];
        let leaf = match searcher.best_leaf(layer, inner, whole, &sources, true, weight) {
            Some(leaf) => leaf,
            None => any_leaf(searcher, layer, inner, whole)?,
        };
        pieces.push(searcher.piece(Node::Leaf(leaf))?);
    }
    Ok(State {
        batch,
        groups,
        whole,
        pieces,
    })
}

/// The place that needs the least room, where the menu has none that fits. Where L2 has too little even so, the layer is written in pieces.
fn any_leaf(
    searcher: &mut Searcher<'_>,
    layer: u16,
    batch: u32,
    whole: Region,
) -> Result<Leaf, Impossible> {
    let least = searcher.evaluator.least_room(layer, batch, whole);
    least.map(|(_, leaf)| leaf).ok_or_else(|| {
        let network = searcher.evaluator.costs.network;
        Impossible::Mapping(network.layers[usize::from(layer)].name.clone())
    })
}

/// The best segments of consecutive layers, each with cuts in time such that all it can stays on the chip. Where it is
/// late, the rest gets short ones: layers alone make a schedule that takes many times as long.
fn segments(
    searcher: &mut Searcher<'_>,
    state: &State,
    weight: f64,
    longest: usize,
    is_late: &dyn Fn() -> bool,
) -> Option<State> {
    let leaves = chained(searcher, state, weight);
    // Least cost of the first so many layers, and where their last segment begins.
    let mut best: Vec<(f64, usize, Option<Piece>)> = vec![(0.0, 0, None)];
    for end in 1..=leaves.len() {
        let longest = if is_late() { SHORT } else { longest };
        let mut least: Option<(f64, usize, Piece)> = None;
        let mut misses = 0;
        for start in (end.saturating_sub(longest)..end).rev() {
            if end - start > SHORT && is_late() {
                break;
            }
            let piece = segment(searcher, state, &leaves, start, end, weight);
            let cost = piece
                .as_ref()
                .map(|piece| best[start].0 + piece.energy + weight * piece.time as f64);
            match (cost, piece) {
                (Some(cost), Some(piece))
                    if least.as_ref().is_none_or(|(other, _, _)| cost < *other) =>
                {
                    least = Some((cost, start, piece));
                    misses = 0;
                }
                _ => misses += 1,
            }
            if misses > PATIENCE {
                break;
            }
        }
        let (cost, start, piece) = least?;
        best.push((cost, start, Some(piece)));
    }
    let mut pieces = Vec::new();
    let mut end = leaves.len();
    while end > 0 {
        let (_, start, piece) = &best[end];
        pieces.push(piece.clone()?);
        end = *start;
    }
    pieces.reverse();
    Some(State {
        pieces,
        ..state.clone()
    })
}

/// Each layer where it is cheapest when it gets all it reads straight from the cores chosen before.
fn chained(searcher: &mut Searcher<'_>, state: &State, weight: f64) -> Vec<Leaf> {
    let network = searcher.evaluator.costs.network;
    let mut leaves: Vec<Leaf> = Vec::with_capacity(network.layers.len());
    for piece in &state.pieces {
        let Node::Leaf(alone) = &*piece.node else {
            continue;
        };
        let facts = &network.facts[usize::from(alone.layer)];
        let sources: Vec<_> = facts
            .reads
            .iter()
            .map(|read| {
                let source = &leaves[*read];
                Some((source.site, source.layer, source.batch))
            })
            .collect();
        let last = facts.readers.is_empty();
        let chosen = searcher.best_leaf(
            alone.layer,
            alone.batch,
            alone.region,
            &sources,
            last,
            weight,
        );
        leaves.push(chosen.unwrap_or_else(|| alone.clone()));
    }
    leaves
}

/// A segment of consecutive layers: flat, or nested so that what is read never skips a child.
fn segment(
    searcher: &mut Searcher<'_>,
    state: &State,
    leaves: &[Leaf],
    start: usize,
    end: usize,
    weight: f64,
) -> Option<Piece> {
    if end - start == 1 {
        let single = searcher.piece(Node::Leaf(leaves[start].clone())).ok();
        return single.or_else(|| Some(state.pieces[start].clone()));
    }
    let flat = Node::Cut(Branch {
        cut: Cut::Time,
        batch: state.inner_batch(),
        groups: 1,
        region: state.whole,
        children: leaves[start..end].iter().cloned().map(Node::Leaf).collect(),
    });
    let nested = nest(searcher, state, leaves, start, end);
    let beside = abreast(
        searcher,
        leaves,
        &(start..end).collect::<Vec<_>>(),
        state.whole,
        weight,
        0,
    );
    let mut variants = vec![nested];
    for variant in [Some(flat), beside].into_iter().flatten() {
        if !variants.contains(&variant) {
            variants.push(variant);
        }
    }
    let cost = |piece: &Piece| piece.energy + weight * piece.time as f64;
    let pieces = variants
        .into_iter()
        .filter_map(|node| searcher.piece(node).ok());
    pieces.min_by(|a, b| cost(a).total_cmp(&cost(b)))
}

/// Levels of cuts that layers side by side are put into, at most.
const DEEPEST: usize = 12;

/// What does not depend on each other side by side, the rest one after another; nothing where all depends.
fn abreast(
    searcher: &mut Searcher<'_>,
    leaves: &[Leaf],
    layers: &[usize],
    region: Region,
    weight: f64,
    depth: usize,
) -> Option<Node> {
    let batch = leaves[layers[0]].batch;
    if layers.len() == 1 {
        let leaf = &leaves[layers[0]];
        if leaf.region == region {
            return Some(Node::Leaf(leaf.clone()));
        }
        let sources = vec![
            None;
            searcher.evaluator.costs.network.facts[layers[0]]
                .reads
                .len()
        ];
        return searcher
            .best_leaf(leaf.layer, batch, region, &sources, false, weight)
            .map(Node::Leaf);
    }
    if depth > DEEPEST {
        return None;
    }
    let cut = |cut: Cut, children: Vec<Node>| {
        Some(Node::Cut(Branch {
            cut,
            batch,
            groups: 1,
            region,
            children,
        }))
    };
    let groups = components(searcher, layers);
    if groups.len() > 1 {
        let units: Vec<f64> = groups
            .iter()
            .map(|group| {
                group
                    .iter()
                    .map(|layer| searcher.evaluator.costs.unit_time(*layer))
                    .sum()
            })
            .collect();
        if groups.len() > usize::from(region.count) {
            return None;
        }
        let (counts, busy) = crate::model::share(i64::from(region.count), &units);
        if busy < 0.5 || counts.contains(&0) {
            return None;
        }
        let mut first = region.first;
        let mut children = Vec::new();
        for (group, count) in groups.iter().zip(counts) {
            let region = Region {
                first,
                count: count as u16,
            };
            let child = abreast(searcher, leaves, group, region, weight, depth + 1);
            children.push(match child {
                Some(child) => child,
                None => in_turn(searcher, leaves, group, region, weight)?,
            });
            first += count as u16;
        }
        return cut(Cut::Space, children);
    }
    // The first or the last layers hold the rest together.
    for held in 1..layers.len().min(5) {
        let (rest, last) = layers.split_at(layers.len() - held);
        if components(searcher, rest).len() > 1 {
            let mut children = vec![abreast(searcher, leaves, rest, region, weight, depth + 1)?];
            children.push(in_turn(searcher, leaves, last, region, weight)?);
            return cut(Cut::Time, children);
        }
        let (first, rest) = layers.split_at(held);
        if components(searcher, rest).len() > 1 {
            let mut children = vec![in_turn(searcher, leaves, first, region, weight)?];
            children.push(abreast(searcher, leaves, rest, region, weight, depth + 1)?);
            return cut(Cut::Time, children);
        }
    }
    // Held at both ends.
    let (first, rest) = layers.split_at(1);
    if layers.len() > 3 && components(searcher, &rest[..rest.len() - 1]).len() > 1 {
        let children = vec![
            in_turn(searcher, leaves, first, region, weight)?,
            abreast(searcher, leaves, rest, region, weight, depth + 1)?,
        ];
        return cut(Cut::Time, children);
    }
    None
}

/// Layers one after another on a region.
fn in_turn(
    searcher: &mut Searcher<'_>,
    leaves: &[Leaf],
    layers: &[usize],
    region: Region,
    weight: f64,
) -> Option<Node> {
    let mut children = Vec::new();
    for layer in layers {
        children.push(abreast(
            searcher,
            leaves,
            std::slice::from_ref(layer),
            region,
            weight,
            DEEPEST,
        )?);
    }
    if children.len() == 1 {
        return children.pop();
    }
    let batch = leaves[layers[0]].batch;
    Some(Node::Cut(Branch {
        cut: Cut::Time,
        batch,
        groups: 1,
        region,
        children,
    }))
}

/// Layers by what depends on each other, each part in order.
fn components(searcher: &Searcher<'_>, layers: &[usize]) -> Vec<Vec<usize>> {
    let network = searcher.evaluator.costs.network;
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for layer in layers {
        let reads = &network.facts[*layer].reads;
        let (mut joined, apart): (Vec<Vec<usize>>, Vec<Vec<usize>>) = parts
            .into_iter()
            .partition(|part| part.iter().any(|other| reads.contains(other)));
        parts = apart;
        let mut all: Vec<usize> = joined.drain(..).flatten().collect();
        all.sort_unstable();
        all.push(*layer);
        parts.push(all);
    }
    parts.sort_unstable();
    parts
}

/// Cuts in time inside each other: boundaries as early as they can be, no layer's reader behind more than one of them.
fn nest(searcher: &Searcher<'_>, state: &State, leaves: &[Leaf], start: usize, end: usize) -> Node {
    if end - start == 1 {
        return Node::Leaf(leaves[start].clone());
    }
    let network = searcher.evaluator.costs.network;
    let mut bounds = vec![start, start + 1];
    while bounds[bounds.len() - 1] < end {
        let (before, last) = (bounds[bounds.len() - 2], bounds[bounds.len() - 1]);
        // What the child before the last boundary makes must be read in the next one; what came earlier was.
        let reach = (before..last)
            .flat_map(|layer| &network.facts[layer].readers)
            .copied()
            .filter(|reader| (last..end).contains(reader))
            .max();
        bounds.push(reach.map_or(last + 1, |reader| reader + 1));
    }
    let children = bounds
        .windows(2)
        .map(|pair| nest(searcher, state, leaves, pair[0], pair[1]))
        .collect();
    Node::Cut(Branch {
        cut: Cut::Time,
        batch: state.inner_batch(),
        groups: 1,
        region: state.whole,
        children,
    })
}
