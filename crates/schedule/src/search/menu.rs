//! What the search chooses from: partitions that are good for a layer on so many cores.

use super::state::Piece;
use crate::model::node::{Leaf, Line, Node, ORDERS, Region, Site};
use crate::model::segment::Evaluator;
use crate::model::{Impossible, Objective, placed_estimate};
use crate::tree::Partition;
use fastrand::Rng;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Partitions that are kept for a layer on so many cores.
const KEPT: usize = 14;

/// Evaluates and chooses.
pub(super) struct Searcher<'a> {
    pub(super) evaluator: Evaluator<'a>,
    pub(super) objective: Objective,
    menus: FxHashMap<(u16, u32, u16), Rc<Vec<Choice>>>,
}

/// A partition, by the position among the factorisations of the number of cores that it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) cores: u16,
    pub(super) position: usize,
    pub(super) part: Partition,
}

impl<'a> Searcher<'a> {
    pub(super) fn new(mut evaluator: Evaluator<'a>, objective: Objective) -> Searcher<'a> {
        evaluator.terse = true;
        Searcher {
            evaluator,
            objective,
            menus: FxHashMap::default(),
        }
    }

    /// Good partitions of a layer over at most so many cores, best first.
    pub(super) fn menu(&mut self, layer: u16, batch: u32, cores: u16) -> Rc<Vec<Choice>> {
        if let Some(menu) = self.menus.get(&(layer, batch, cores)) {
            return Rc::clone(menu);
        }
        let network = self.evaluator.costs.network;
        let [k, h, w] = network.layers[usize::from(layer)].output;
        let extents = [k, i64::from(batch), h, w];
        let mut scored = Vec::new();
        let most = extents
            .iter()
            .fold(1_i64, |product, extent| product.saturating_mul(*extent));
        let full = i64::from(cores).min(most) as u16;
        // All the cores, and where their number divides badly, some fewer.
        let mut counts = vec![full];
        counts.extend(
            (1..full)
                .rev()
                .filter(|n| usize::from(*n) * 4 >= usize::from(full) * 3)
                .take(2),
        );
        counts.extend(
            [full / 2, full / 4]
                .into_iter()
                .filter(|n| *n > 0 && *n < full),
        );
        counts.dedup();
        for count in counts {
            let factors = self.evaluator.factors.of(count);
            for (position, part) in factors.iter().enumerate() {
                let fits = part
                    .iter()
                    .zip(extents)
                    .all(|(parts, extent)| i64::from(*parts) <= extent);
                if fits
                    && let Some(score) = placed_estimate(
                        &mut self.evaluator.costs,
                        usize::from(layer),
                        *part,
                        i64::from(batch),
                    )
                {
                    scored.push((
                        score,
                        Choice {
                            cores: count,
                            position,
                            part: *part,
                        },
                    ));
                }
            }
        }
        scored.sort_by(|a, b| a.0.total_cmp(&b.0));
        scored.truncate(KEPT);
        let menu = Rc::new(
            scored
                .into_iter()
                .map(|(_, choice)| choice)
                .collect::<Vec<_>>(),
        );
        self.menus.insert((layer, batch, cores), Rc::clone(&menu));
        menu
    }

    /// A site for a layer over all cores of a region, or as many as it has elements for.
    pub(super) fn widest(&mut self, layer: u16, batch: u32, region: Region) -> Option<Site> {
        let menu = self.menu(layer, batch, region.count);
        let most = menu.iter().map(|choice| choice.cores).max()?;
        let choice = menu.iter().find(|choice| choice.cores == most)?;
        let order = *orders(choice.part).first()?;
        Some(Site::new(region, most, Line::Bands, choice.position, order))
    }

    /// A site for a layer: one of the menu, the better ones more often, in some order.
    pub(super) fn pick(
        &mut self,
        layer: u16,
        batch: u32,
        region: Region,
        rng: &mut Rng,
    ) -> Option<Site> {
        let menu = self.menu(layer, batch, region.count);
        if menu.is_empty() {
            return None;
        }
        let at = rng.usize(..menu.len()).min(rng.usize(..menu.len()));
        Some(Self::arrange(&menu[at], region, rng))
    }

    /// A partition in a random order of its dimensions.
    pub(super) fn arrange(choice: &Choice, region: Region, rng: &mut Rng) -> Site {
        let orders = orders(choice.part);
        let order = orders[rng.usize(..orders.len())];
        let line = if rng.u8(..4) == 0 {
            Line::Rows
        } else {
            Line::Bands
        };
        Site::new(region, choice.cores, line, choice.position, order)
    }

    /// All sites of the best partitions of the menu.
    pub(super) fn sites(
        &mut self,
        layer: u16,
        batch: u32,
        region: Region,
        partitions: usize,
    ) -> Vec<Site> {
        let menu = self.menu(layer, batch, region.count);
        let mut sites = Vec::new();
        for choice in menu.iter().take(partitions) {
            for order in orders(choice.part) {
                sites.push(Site::new(
                    region,
                    choice.cores,
                    Line::Bands,
                    choice.position,
                    order,
                ));
            }
        }
        sites
    }

    /// A segment with its cost.
    pub(super) fn piece(&mut self, node: Node) -> Result<Piece, Impossible> {
        let segment = self.evaluator.segment(&node)?;
        Ok(Piece {
            node: Arc::new(node),
            energy: segment.energy,
            time: segment.time,
        })
    }

    /// Whether a layer reads another one, or is read by it.
    pub(super) fn depends(&self, later: u16, earlier: u16) -> bool {
        let network = self.evaluator.costs.network;
        network.facts[usize::from(later)]
            .reads
            .binary_search(&usize::from(earlier))
            .is_ok()
    }

    /// A leaf at its best place in the menu when all it reads lies where it says.
    pub(super) fn best_leaf(
        &mut self,
        layer: u16,
        batch: u32,
        region: Region,
        sources: &[Option<(Site, u16, u32)>],
        to_dram: bool,
        weight: f64,
    ) -> Option<Leaf> {
        let room = self.evaluator.costs.machine.l2.bytes;
        let mut best: Option<(f64, Leaf)> = None;
        for site in self.sites(layer, batch, region, 6) {
            let leaf = Leaf {
                layer,
                batch,
                region,
                site,
            };
            let Some(cost) = self.evaluator.leaf_cost(&leaf, sources, to_dram) else {
                continue;
            };
            if cost.placed.fullest() > room {
                continue;
            }
            let score = cost.energy + weight * cost.time as f64;
            if best.as_ref().is_none_or(|(least, _)| score < *least) {
                best = Some((score, leaf));
            }
        }
        best.map(|(_, leaf)| leaf)
    }
}

/// Positions of the orders of the dimensions that differ for a partition.
fn orders(part: Partition) -> Vec<usize> {
    let cut: Vec<usize> = (0..4).filter(|d| part[*d] > 1).collect();
    let whole: Vec<usize> = (0..4).rev().filter(|d| part[*d] == 1).collect();
    (0..ORDERS.len())
        .filter(|at| ORDERS[*at][cut.len()..] == whole[..])
        .collect()
}
