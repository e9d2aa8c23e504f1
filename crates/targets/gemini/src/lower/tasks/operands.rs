//! What the tiles of a workload read, and where their results go.

use super::super::plan::Sink;
use super::super::region::{Layout, Region, moved};
use super::super::residents::Resident;
use super::{Emit, stream};
use crate::kernels::tile::{Input, Meaning, Output};
use crate::schedule::{Bounds, Peer, TensorKind, Workload};
use smallvec::SmallVec;

impl Emit<'_, '_, '_> {
    /// The tensors that a workload reads, each with the operand that it holds.
    pub(super) fn operands(
        &self,
        index: u32,
        workload: &Workload,
        meaning: &Meaning,
    ) -> SmallVec<[Operand; 2]> {
        let mut operands: SmallVec<[Operand; 2]> = SmallVec::new();
        if !self.is_exact {
            return operands;
        }
        let operation = meaning.as_deref().and_then(|m| m.as_ref().ok());
        let needed: SmallVec<[(usize, Bounds); 2]> = operation
            .into_iter()
            .flat_map(|operation| {
                (0..operation.operands.len()).filter_map(|operand| {
                    Some((operand, operation.needs(operand, &workload.bounds)?))
                })
            })
            .collect();
        let mut taken: SmallVec<[usize; 2]> = SmallVec::new();
        for (place, ifmap) in workload.ifmaps.iter().enumerate() {
            let holders = self.residents.holding(index as usize, ifmap);
            let contents = |r: u32| {
                self.plan
                    .contents(self.frames, &self.residents.all[r as usize])
            };
            // Operands are listed in any order: what a tensor holds says which it is.
            let is_it = |r: u32, operand: usize, bounds: &Bounds| {
                let (Some((name, shift)), Some(operation)) = (contents(r), operation) else {
                    return false;
                };
                self.plan.schedule.name(name) == operation.previous[operand]
                    && ifmap.bounds.shape() == bounds.shape()
                    && (0..4).all(|d| {
                        i64::from(ifmap.bounds.lower[d]) + shift[d] == i64::from(bounds.lower[d])
                    })
            };
            let found = holders.iter().find_map(|r| {
                let mut free = needed
                    .iter()
                    .filter(|(operand, _)| !taken.contains(operand));
                free.find(|(operand, bounds)| is_it(*r, *operand, bounds))
                    .map(|(operand, _)| (*r, *operand))
            });
            let listed = needed.get(place).map_or(place, |(operand, _)| *operand);
            let first = holders.first().map(|r| (*r, listed));
            if let Some((resident, operand)) = found.or(first) {
                taken.push(operand);
                operands.push(Operand {
                    index: operand,
                    resident,
                    bounds: ifmap.bounds,
                    shift: contents(resident).map_or([0; 4], |(_, shift)| shift),
                });
            }
        }
        operands
    }

    /// What a tile reads in L2.
    pub(super) fn inputs(
        &self,
        index: u32,
        core: usize,
        workload: &Workload,
        (tile, bounds): (Option<&crate::schedule::Tile>, &Bounds),
        operands: &[Operand],
        meaning: &Meaning,
    ) -> SmallVec<[Input; 1]> {
        let mut inputs = SmallVec::new();
        let operation = meaning.as_deref().and_then(|m| m.as_ref().ok());
        for (place, operand) in operands.iter().enumerate() {
            let resident = &self.residents.all[operand.resident as usize];
            let wanted = match (operation, tile, place) {
                (Some(operation), ..) => operation.needs(operand.index, bounds),
                (None, Some(tile), 0) => tile.ifmap,
                (None, Some(tile), _) => tile.ifmap2.as_deref().copied(),
                (None, None, _) => None,
            };
            let Some(whole) = moved(&operand.bounds, operand.shift) else {
                continue;
            };
            let inside = match wanted.and_then(|wanted| whole.intersection(&wanted)) {
                Some(inside) => inside,
                // Operands that the tile needs nothing of.
                None if operation.is_some() => continue,
                None => whole,
            };
            let back = operand.shift.map(|by| -by);
            let region = moved(&inside, back).and_then(|bounds| resident.layout.region(&bounds));
            inputs.extend(region.map(|region| Input {
                operand: operand.index.min(255) as u8,
                bounds: inside,
                region,
            }));
        }
        if !inputs.is_empty() {
            return inputs;
        }
        // The ancestors, and what was converted from them, name tensors by single transfers.
        for ifmap in &workload.ifmaps {
            for number in self.residents.of(index as usize) {
                let resident = &self.residents.all[*number as usize];
                let is_input = resident.tensor.kind != TensorKind::Ofmap && resident.core == core;
                let mut parts = resident
                    .tensor
                    .transfers
                    .iter()
                    .filter(|t| is_input && ifmap.transfers.contains(t))
                    .peekable();
                if parts.peek().is_none() {
                    continue;
                }
                let bounds = resident.tensor.bounds;
                let whole = resident.layout.region(&bounds).filter(|_| self.is_exact);
                let own = parts.filter_map(|t| resident.own_region(*t));
                let regions = whole.map_or_else(|| own.collect(), |whole| vec![whole]);
                inputs.extend(regions.into_iter().map(|region| Input {
                    operand: 0,
                    bounds,
                    region,
                }));
            }
        }
        inputs
    }

    /// Where a piece of a workload's output goes.
    pub(super) fn targets(
        &mut self,
        index: u32,
        core: usize,
        workload: &Workload,
        number: usize,
    ) -> Targets {
        let ofmap = &workload.ofmaps[number];
        let piece = self.frames.piece(workload, ofmap);
        let own = self.plan.schedule.cores[core].id;
        let mut targets = Targets {
            piece,
            to: SmallVec::new(),
        };
        if ofmap.destinations.iter().any(|d| d.peer == Peer::Core(own)) {
            let sinks = self.plan.sinks.get(&ofmap.transfer).into_iter().flatten();
            let here = sinks.filter_map(|sink| match sink {
                Sink::Resident(r) => Some(&self.residents.all[*r as usize]),
                Sink::Held(_) => None,
            });
            let mut here = here.filter(|r| r.core == core);
            if self.is_exact {
                // A shortcut may have a tensor of its own under the same transfer.
                let makes = |r: &&Resident<'_>| {
                    let made = (ofmap.transfer, index);
                    self.plan.own_makers(r).contains(&made)
                };
                targets.to.extend(here.filter(makes).map(|resident| {
                    let lower = resident.part(ofmap.transfer).lower;
                    Target::Box(resident.layout.clone(), lower)
                }));
            } else {
                let region = here.next().and_then(|r| r.own_region(ofmap.transfer));
                targets.to.extend(region.map(Target::Whole));
            }
        }
        let leaves = ofmap.destinations.iter().any(|d| d.peer != Peer::Core(own));
        if leaves {
            let (layout, lower) = self.departure(index, number as u32, ofmap, piece);
            targets.to.push(if self.is_exact {
                Target::Box(layout, lower)
            } else {
                Target::Whole(stream(&layout))
            });
        }
        targets
    }
}

/// An operand of a workload, and where it lies.
pub(super) struct Operand {
    /// Which of the workload's operands.
    index: usize,
    resident: u32,
    /// The box of the ifmap, in the frame of its tensor.
    bounds: Bounds,
    /// From that frame to the operand's.
    shift: [i64; 4],
}

/// Where a piece goes.
pub(super) struct Targets {
    piece: Bounds,
    to: SmallVec<[Target; 2]>,
}

pub(super) enum Target {
    /// A box of a tensor; the lower corner of the piece in the tensor's frame.
    Box(Layout, [u32; 4]),
    /// A buffer that is for this piece alone, however its elements lie there.
    Whole(Region),
}

/// What a tile writes.
pub(super) fn outputs(tile: &Bounds, targets: &[Targets]) -> SmallVec<[Output; 1]> {
    let mut outputs = SmallVec::new();
    for target in targets {
        let common = tile.intersection(&target.piece);
        for to in &target.to {
            let output = match (to, common) {
                (Target::Whole(region), _) => Some(Output {
                    bounds: target.piece,
                    region: region.clone(),
                }),
                (Target::Box(layout, lower), Some(common)) => {
                    let moved = |corner: [u32; 4]| {
                        std::array::from_fn(|d| {
                            (corner[d] - target.piece.lower[d]).saturating_add(lower[d])
                        })
                    };
                    let landed = Bounds {
                        lower: moved(common.lower),
                        upper: moved(common.upper),
                    };
                    layout.region(&landed).map(|region| Output {
                        bounds: common,
                        region,
                    })
                }
                (Target::Box(..), None) => None,
            };
            outputs.extend(output);
        }
    }
    outputs
}
