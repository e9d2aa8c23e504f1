//! Changes of a tree.

use super::menu::Searcher;
use super::state::{Piece, State};
use crate::model::node::{Branch, Leaf, Node, Region};
use crate::model::share;
use crate::tree::Cut;
use fastrand::Rng;

/// Levels of cuts, at most.
const DEEPEST: usize = 40;
/// Layers of a segment, at most: what a change costs grows with the segment that it is in.
const LONGEST: usize = 96;

/// A tree beside this one; nothing where the change is none, or what comes of it does not fit.
pub(super) fn neighbour(
    searcher: &mut Searcher<'_>,
    state: &State,
    rng: &mut Rng,
) -> Option<State> {
    // Measured: two in three changes to the cuts themselves find better trees than fewer do, most of all for attention.
    match rng.u32(..100) {
        0..35 => within(searcher, state, rng, replace),
        35..44 => within(searcher, state, rng, follow),
        44..51 => within(searcher, state, rng, exchange),
        51..60 => within(searcher, state, rng, wrap),
        60..67 => within(searcher, state, rng, dissolve),
        67..77 => within(searcher, state, rng, carry),
        77..80 => within(searcher, state, rng, regroup),
        80..83 => within(searcher, state, rng, turn),
        83..86 => within(searcher, state, rng, shift),
        86..90 => merge(searcher, state, rng),
        90..95 => divide(searcher, state, rng),
        _ => hand_over(searcher, state, rng),
    }
}

/// A change inside a segment; the longer ones more often.
fn within(
    searcher: &mut Searcher<'_>,
    state: &State,
    rng: &mut Rng,
    change: fn(&mut Searcher<'_>, &mut Node, &mut Rng) -> Option<()>,
) -> Option<State> {
    let layers = searcher.evaluator.costs.network.layers.len();
    let mut at = rng.usize(..layers);
    let position = state.pieces.iter().position(|piece| {
        let count = leaves(&piece.node);
        let here = at < count;
        at = at.wrapping_sub(if here { 0 } else { count });
        here
    })?;
    let mut node = (*state.pieces[position].node).clone();
    change(searcher, &mut node, rng)?;
    let node = tidy(node);
    if depth(&node) > DEEPEST || node == *state.pieces[position].node {
        return None;
    }
    let piece = searcher.piece(node).ok()?;
    let mut next = state.clone();
    next.pieces[position] = piece;
    Some(next)
}

fn leaves(node: &Node) -> usize {
    match node {
        Node::Leaf(_) => 1,
        Node::Cut(branch) => branch.children.iter().map(leaves).sum(),
    }
}

fn depth(node: &Node) -> usize {
    match node {
        Node::Leaf(_) => 0,
        Node::Cut(branch) => 1 + branch.children.iter().map(depth).max().unwrap_or(0),
    }
}

fn cuts(node: &Node) -> usize {
    match node {
        Node::Leaf(_) => 0,
        Node::Cut(branch) => 1 + branch.children.iter().map(cuts).sum::<usize>(),
    }
}

fn leaf_at<'n>(node: &'n mut Node, at: &mut usize) -> Option<&'n mut Leaf> {
    match node {
        Node::Leaf(leaf) if *at == 0 => Some(leaf),
        Node::Leaf(_) => {
            *at -= 1;
            None
        }
        Node::Cut(branch) => branch
            .children
            .iter_mut()
            .find_map(|child| leaf_at(child, at)),
    }
}

fn cut_at<'n>(node: &'n mut Node, at: &mut usize) -> Option<&'n mut Branch> {
    let Node::Cut(branch) = node else { return None };
    if *at == 0 {
        return Some(branch);
    }
    *at -= 1;
    branch
        .children
        .iter_mut()
        .find_map(|child| cut_at(child, at))
}

fn any_cut<'n>(node: &'n mut Node, rng: &mut Rng) -> Option<&'n mut Branch> {
    let count = cuts(node);
    if count == 0 {
        return None;
    }
    cut_at(node, &mut rng.usize(..count))
}

/// A cut with one child is that child.
fn tidy(node: Node) -> Node {
    match node {
        Node::Leaf(_) => node,
        Node::Cut(mut branch) => {
            branch.children = branch.children.into_iter().map(tidy).collect();
            match branch.children.len() {
                1 if branch.groups == 1 => branch.children.remove(0),
                _ => Node::Cut(branch),
            }
        }
    }
}

/// Another place for a layer.
fn replace(searcher: &mut Searcher<'_>, node: &mut Node, rng: &mut Rng) -> Option<()> {
    let count = leaves(node);
    let leaf = leaf_at(node, &mut rng.usize(..count))?;
    leaf.site = searcher.pick(leaf.layer, leaf.batch, leaf.region, rng)?;
    Some(())
}

/// The same cut for a layer and those that follow it, as far as it can be.
fn follow(searcher: &mut Searcher<'_>, node: &mut Node, rng: &mut Rng) -> Option<()> {
    let count = leaves(node);
    let first = rng.usize(..count);
    let length = rng.usize(2..5);
    let (site, region) = {
        let leaf = leaf_at(node, &mut first.clone())?;
        if rng.bool() {
            leaf.site = searcher.pick(leaf.layer, leaf.batch, leaf.region, rng)?;
        }
        (leaf.site, leaf.region)
    };
    for next in first + 1..(first + length).min(count) {
        let leaf = leaf_at(node, &mut next.clone())?;
        if leaf.region == region {
            leaf.site = site;
        }
    }
    Some(())
}

/// Whether nothing in the second reads anything in the first.
fn independent(searcher: &Searcher<'_>, first: &Node, second: &Node) -> bool {
    let (first, second) = (first.layers(), second.layers());
    !second.iter().any(|later| {
        first
            .iter()
            .any(|earlier| searcher.depends(*later, *earlier))
    })
}

/// Two neighbours exchanged.
fn exchange(searcher: &mut Searcher<'_>, node: &mut Node, rng: &mut Rng) -> Option<()> {
    let branch = any_cut(node, rng)?;
    if branch.children.len() < 2 {
        return None;
    }
    let at = rng.usize(..branch.children.len() - 1);
    if !independent(searcher, &branch.children[at], &branch.children[at + 1]) {
        return None;
    }
    let regions = [
        branch.children[at].region(),
        branch.children[at + 1].region(),
    ];
    branch.children.swap(at, at + 1);
    if branch.cut == Cut::Space {
        let second = Region {
            first: regions[0].first + regions[1].count,
            count: regions[0].count,
        };
        let first = Region {
            first: regions[0].first,
            count: regions[1].count,
        };
        let batch = branch.batch / branch.groups;
        settle(searcher, &mut branch.children[at], first, batch, rng)?;
        settle(searcher, &mut branch.children[at + 1], second, batch, rng)?;
    }
    Some(())
}

/// A new cut around some neighbours.
fn wrap(searcher: &mut Searcher<'_>, node: &mut Node, rng: &mut Rng) -> Option<()> {
    let space = rng.u8(..3) == 0;
    let branch = match node {
        Node::Leaf(_) => return None,
        Node::Cut(_) => any_cut(node, rng)?,
    };
    let count = branch.children.len();
    if count < 2 {
        return None;
    }
    let first = rng.usize(..count - 1);
    let length = 2 + rng.usize(..(count - first - 1)).min(rng.usize(..count));
    let end = (first + length).min(count);
    let whole = end - first == count;
    let batch = branch.batch / branch.groups;
    let mut groups = 1;
    if batch > 1 && rng.u8(..3) == 0 {
        groups = divisor(batch, rng);
    }
    if whole && branch.cut == Cut::Time && !space {
        return None;
    }
    let children: Vec<Node> = branch.children.drain(first..end).collect();
    let region = if branch.cut == Cut::Space {
        let start = children.first()?.region();
        Region {
            first: start.first,
            count: children.iter().map(|child| child.region().count).sum(),
        }
    } else {
        branch.region
    };
    let cut = if space { Cut::Space } else { Cut::Time };
    let mut wrapped = Node::Cut(Branch {
        cut,
        batch,
        groups,
        region,
        children,
    });
    settle(searcher, &mut wrapped, region, batch, rng)?;
    branch.children.insert(first, wrapped);
    Some(())
}

fn divisor(of: u32, rng: &mut Rng) -> u32 {
    let all: Vec<u32> = (2..=of).filter(|d| of.is_multiple_of(*d)).collect();
    if all.is_empty() {
        1
    } else {
        all[rng.usize(..all.len())]
    }
}

/// The position of a cut among the children of another.
fn any_inner(branch: &Branch, rng: &mut Rng) -> Option<usize> {
    let inner: Vec<usize> = (0..branch.children.len())
        .filter(|i| matches!(branch.children[*i], Node::Cut(_)))
        .collect();
    (!inner.is_empty()).then(|| inner[rng.usize(..inner.len())])
}

/// A cut's children in its place.
fn dissolve(searcher: &mut Searcher<'_>, node: &mut Node, rng: &mut Rng) -> Option<()> {
    let branch = any_cut(node, rng)?;
    let at = any_inner(branch, rng)?;
    let Node::Cut(child) = branch.children.remove(at) else {
        return None;
    };
    branch.children.splice(at..at, child.children);
    let (region, batch) = (branch.region, branch.batch);
    resettle(searcher, branch, region, batch, rng)
}

/// A child goes into the cut beside it, or out of its own.
fn carry(searcher: &mut Searcher<'_>, node: &mut Node, rng: &mut Rng) -> Option<()> {
    let branch = any_cut(node, rng)?;
    let at = any_inner(branch, rng)?;
    match rng.u8(..4) {
        0 if at > 0 => {
            let before = branch.children.remove(at - 1);
            let Node::Cut(cut) = &mut branch.children[at - 1] else {
                return None;
            };
            cut.children.insert(0, before);
        }
        1 if at + 1 < branch.children.len() => {
            let after = branch.children.remove(at + 1);
            let Node::Cut(cut) = &mut branch.children[at] else {
                return None;
            };
            cut.children.push(after);
        }
        2 => {
            let Node::Cut(cut) = &mut branch.children[at] else {
                return None;
            };
            if cut.children.len() < 2 {
                return None;
            }
            let first = cut.children.remove(0);
            branch.children.insert(at, first);
        }
        3 => {
            let Node::Cut(cut) = &mut branch.children[at] else {
                return None;
            };
            if cut.children.len() < 2 {
                return None;
            }
            let last = cut.children.pop()?;
            branch.children.insert(at + 1, last);
        }
        _ => return None,
    }
    let (region, batch) = (branch.region, branch.batch);
    resettle(searcher, branch, region, batch, rng)
}

/// Another number of sub-batches.
fn regroup(searcher: &mut Searcher<'_>, node: &mut Node, rng: &mut Rng) -> Option<()> {
    let branch = any_cut(node, rng)?;
    let all: Vec<u32> = (1..=branch.batch)
        .filter(|d| branch.batch.is_multiple_of(*d) && *d != branch.groups)
        .collect();
    if all.is_empty() {
        return None;
    }
    branch.groups = all[rng.usize(..all.len())];
    let (region, batch) = (branch.region, branch.batch);
    resettle(searcher, branch, region, batch, rng)
}

/// A cut in time becomes one in space, or the other way round.
fn turn(searcher: &mut Searcher<'_>, node: &mut Node, rng: &mut Rng) -> Option<()> {
    let branch = any_cut(node, rng)?;
    branch.cut = if branch.cut == Cut::Time {
        Cut::Space
    } else {
        Cut::Time
    };
    let (region, batch) = (branch.region, branch.batch);
    resettle(searcher, branch, region, batch, rng)
}

/// Cores from one side of a cut in space to the other.
fn shift(searcher: &mut Searcher<'_>, node: &mut Node, rng: &mut Rng) -> Option<()> {
    let branch = any_cut(node, rng)?;
    if branch.cut != Cut::Space || branch.children.len() < 2 {
        return None;
    }
    let (give, take) = (
        rng.usize(..branch.children.len()),
        rng.usize(..branch.children.len()),
    );
    let mut counts: Vec<u16> = branch
        .children
        .iter()
        .map(|child| child.region().count)
        .collect();
    let moved = 1 + rng.u16(..counts[give].max(1)).min(rng.u16(..3));
    if give == take || counts[give] <= moved {
        return None;
    }
    counts[give] -= moved;
    counts[take] += moved;
    let batch = branch.batch / branch.groups;
    let mut first = branch.region.first;
    for (child, count) in branch.children.iter_mut().zip(counts) {
        settle(searcher, child, Region { first, count }, batch, rng)?;
        first += count;
    }
    Some(())
}

/// Two segments become one.
fn merge(searcher: &mut Searcher<'_>, state: &State, rng: &mut Rng) -> Option<State> {
    if state.pieces.len() < 2 {
        return None;
    }
    let at = rng.usize(..state.pieces.len() - 1);
    let [first, second] = [0, 1].map(|i| (*state.pieces[at + i].node).clone());
    let open = |node: Node, open: bool| match node {
        Node::Cut(branch) if open && branch.cut == Cut::Time && branch.groups == 1 => {
            branch.children
        }
        node => vec![node],
    };
    let mut children = open(first, rng.bool());
    children.extend(open(second, rng.bool()));
    let node = Node::Cut(Branch {
        cut: Cut::Time,
        batch: state.inner_batch(),
        groups: 1,
        region: state.whole,
        children,
    });
    replaced(searcher, state, at, 2, vec![node])
}

/// A segment becomes two.
fn divide(searcher: &mut Searcher<'_>, state: &State, rng: &mut Rng) -> Option<State> {
    let at = rng.usize(..state.pieces.len());
    let Node::Cut(branch) = &*state.pieces[at].node else {
        return None;
    };
    if branch.cut != Cut::Time || branch.groups != 1 || branch.children.len() < 2 {
        return None;
    }
    let cut = rng.usize(1..branch.children.len());
    let half = |children: &[Node]| {
        tidy(Node::Cut(Branch {
            children: children.to_vec(),
            ..branch.clone()
        }))
    };
    let (first, second) = branch.children.split_at(cut);
    replaced(searcher, state, at, 1, vec![half(first), half(second)])
}

/// A child at the end of a segment goes to the next one, or the other way round.
fn hand_over(searcher: &mut Searcher<'_>, state: &State, rng: &mut Rng) -> Option<State> {
    if state.pieces.len() < 2 {
        return None;
    }
    let at = rng.usize(..state.pieces.len() - 1);
    let list = |node: &Node| match node {
        Node::Cut(branch) if branch.cut == Cut::Time && branch.groups == 1 => {
            branch.children.clone()
        }
        node => vec![node.clone()],
    };
    let [mut first, mut second] = [0, 1].map(|i| list(&state.pieces[at + i].node));
    if rng.bool() {
        second.insert(0, first.pop()?);
    } else {
        first.push(second.remove(0));
    }
    let whole = |children: Vec<Node>| {
        let branch = Branch {
            cut: Cut::Time,
            batch: state.inner_batch(),
            groups: 1,
            region: state.whole,
            children,
        };
        (!branch.children.is_empty()).then(|| tidy(Node::Cut(branch)))
    };
    let nodes = [whole(first), whole(second)]
        .into_iter()
        .flatten()
        .collect();
    replaced(searcher, state, at, 2, nodes)
}

/// Other segments in the place of some.
fn replaced(
    searcher: &mut Searcher<'_>,
    state: &State,
    at: usize,
    count: usize,
    nodes: Vec<Node>,
) -> Option<State> {
    if nodes
        .iter()
        .any(|node| depth(node) > DEEPEST || leaves(node) > LONGEST)
    {
        return None;
    }
    let pieces: Vec<Piece> = nodes
        .into_iter()
        .map(|node| searcher.piece(node).ok())
        .collect::<Option<_>>()?;
    let mut next = state.clone();
    next.pieces.splice(at..at + count, pieces);
    Some(next)
}

/// Work of a node, for sharing out cores.
fn units(searcher: &Searcher<'_>, node: &Node) -> f64 {
    match node {
        Node::Leaf(leaf) => searcher.evaluator.costs.unit_time(usize::from(leaf.layer)),
        Node::Cut(branch) => branch
            .children
            .iter()
            .map(|child| units(searcher, child))
            .sum(),
    }
}

/// Gives a node these cores and this batch.
pub(super) fn settle(
    searcher: &mut Searcher<'_>,
    node: &mut Node,
    region: Region,
    batch: u32,
    rng: &mut Rng,
) -> Option<()> {
    match node {
        Node::Cut(branch) => resettle(searcher, branch, region, batch, rng),
        Node::Leaf(leaf) => {
            if leaf.batch == batch && leaf.region.count == region.count {
                leaf.site = leaf.site.moved(region);
            } else {
                leaf.site = searcher.pick(leaf.layer, batch, region, rng)?;
            }
            (leaf.region, leaf.batch) = (region, batch);
            Some(())
        }
    }
}

fn resettle(
    searcher: &mut Searcher<'_>,
    branch: &mut Branch,
    region: Region,
    batch: u32,
    rng: &mut Rng,
) -> Option<()> {
    if !batch.is_multiple_of(branch.groups) {
        branch.groups = 1;
    }
    (branch.region, branch.batch) = (region, batch);
    let inner = batch / branch.groups;
    if branch.cut == Cut::Time {
        for child in &mut branch.children {
            settle(searcher, child, region, inner, rng)?;
        }
        return Some(());
    }
    let mut counts: Vec<u16> = branch
        .children
        .iter()
        .map(|child| child.region().count)
        .collect();
    if counts.iter().map(|count| u32::from(*count)).sum::<u32>() != u32::from(region.count) {
        let units: Vec<f64> = branch
            .children
            .iter()
            .map(|child| units(searcher, child))
            .collect();
        counts = share(i64::from(region.count), &units)
            .0
            .into_iter()
            .map(|count| count as u16)
            .collect();
    }
    if counts.contains(&0)
        || counts.iter().map(|count| u32::from(*count)).sum::<u32>() != u32::from(region.count)
    {
        return None;
    }
    let mut first = region.first;
    for (child, count) in branch.children.iter_mut().zip(counts) {
        settle(searcher, child, Region { first, count }, inner, rng)?;
        first += count;
    }
    Some(())
}
