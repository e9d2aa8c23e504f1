//! A layer cut into parts on its cores: what each computes, reads and keeps.

use super::mesh::Fan;
use crate::machine::Machine;
use crate::network::{Facts, Kind, Layer, Network};
use crate::tree::Partition;

/// A half-open range.
pub(crate) type Range = [i64; 2];

/// A box: channels, images, rows, columns.
pub(crate) type Block = [Range; 4];

/// Ends of so many parts of an extent, small parts first.
pub(crate) fn intervals(extent: i64, parts: u16) -> Vec<i64> {
    let parts = i64::from(parts);
    (0..=parts)
        .map(|i| extent - extent * (parts - i) / parts)
        .collect()
}

fn volume(block: &Block) -> i64 {
    block
        .iter()
        .map(|[low, high]| (high - low).max(0))
        .product()
}

/// Bytes that several cores need alike.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// Which; `None` for those of empty parts.
    pub(crate) block: Option<Block>,
    /// Its elements.
    pub(crate) bytes: i64,
    /// The cores.
    pub(crate) fan: Fan,
}

/// A layer on its cores.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) batch: i64,
    /// Ends of the parts along K, B, H, W.
    pub(crate) ends: [Vec<i64>; 4],
    /// Column and row of each part's core, in the order of parts.
    pub(crate) places: Vec<[u16; 2]>,
    /// Bytes of each part of the result.
    pub(crate) results: Vec<i64>,
    pub(crate) ifmaps: Vec<Shared>,
    pub(crate) weights: Vec<Shared>,
    /// Over all cores, copies counted.
    pub(crate) ifmap_total: i64,
    pub(crate) weight_total: i64,
    pub(crate) ifmap_largest: i64,
    pub(crate) weight_largest: i64,
    /// Bytes in the L2 of each core of the mesh; an activation in the place of weights counts as ifmap.
    pub(crate) ifmap_kept: Vec<i64>,
    pub(crate) weight_kept: Vec<i64>,
    /// The ifmap and the stream of results, where there is an ifmap.
    pub(crate) room: Vec<i64>,
}

/// Boxes that parts need, each with the cores that need it alike.
#[derive(Default)]
struct Needs {
    /// Bytes of each part of the result.
    results: Vec<i64>,
    ifmaps: Vec<(Option<Block>, Vec<u16>)>,
    weights: Vec<(Option<Block>, Vec<u16>)>,
}

impl Needs {
    /// Part by part, in the order of [`Placed::new`].
    fn of(layer: &Layer, facts: &Facts, ends: &[Vec<i64>; 4], cores: &[u16]) -> Needs {
        let [pk, pb, ph, pw] = [0, 1, 2, 3].map(|d: usize| ends[d].len() - 1);
        let at = |k: usize, b: usize, h: usize, w: usize| ((k * pb + b) * ph + h) * pw + w;
        let by_channel = !matches!(layer.kind, Kind::Conv | Kind::Fc);
        let weights_by_image = !layer.weights_from.is_empty();
        let range = |d: usize, i: usize| [ends[d][i], ends[d][i + 1]];
        let mut needs = Needs::default();
        for k in 0..pk {
            for b in 0..pb {
                for h in 0..ph {
                    for w in 0..pw {
                        let block = [range(0, k), range(1, b), range(2, h), range(3, w)];
                        let size = volume(&block);
                        needs.results.push(size);
                        if by_channel || k == 0 {
                            let who: Vec<u16> = if by_channel {
                                vec![cores[at(k, b, h, w)]]
                            } else {
                                (0..pk).map(|k| cores[at(k, b, h, w)]).collect()
                            };
                            needs
                                .ifmaps
                                .push(((size > 0).then(|| window(layer, facts, &block)), who));
                        }
                        if facts.weights > 0 && (weights_by_image || b == 0) && h == 0 && w == 0 {
                            let images = if weights_by_image { b..b + 1 } else { 0..pb };
                            let who: Vec<u16> = images
                                .flat_map(|b| {
                                    (0..ph).flat_map(move |h| (0..pw).map(move |w| (b, h, w)))
                                })
                                .map(|(b, h, w)| cores[at(k, b, h, w)])
                                .collect();
                            let images = if weights_by_image { block[1] } else { [0, 1] };
                            let window = layer.kernel[0] * layer.kernel[1];
                            let tile = [block[0], images, [0, facts.group[0]], [0, window]];
                            needs.weights.push(((size > 0).then_some(tile), who));
                        }
                    }
                }
            }
        }
        needs
    }
}

impl Placed {
    /// The layer's parts on these cores (row · columns + column), in the order ((k · B + b) · H + h) · W + w.
    pub(crate) fn new(
        machine: &Machine,
        network: &Network,
        index: usize,
        part: Partition,
        cores: &[u16],
        batch: i64,
    ) -> Placed {
        let (layer, facts) = (&network.layers[index], &network.facts[index]);
        let [k, h, w] = layer.output;
        let ends = [
            intervals(k, part[0]),
            intervals(batch, part[1]),
            intervals(h, part[2]),
            intervals(w, part[3]),
        ];
        let weights_by_image = !layer.weights_from.is_empty();
        let Needs {
            results,
            ifmaps,
            weights,
        } = Needs::of(layer, facts, &ends, cores);
        let copies = if layer.kind == Kind::Eltwise {
            layer.operands
        } else {
            1
        };
        let columns = machine.mesh[0] as u16;
        let mut placed = Placed {
            batch,
            places: cores
                .iter()
                .map(|core| [core % columns, core / columns])
                .collect(),
            results,
            ifmaps: Vec::new(),
            weights: Vec::new(),
            ifmap_total: 0,
            weight_total: 0,
            ifmap_largest: 0,
            weight_largest: 0,
            ifmap_kept: vec![0; machine.cores()],
            weight_kept: vec![0; machine.cores()],
            room: Vec::new(),
            ends,
        };
        let shared = |block: Option<Block>, who: &[u16]| Shared {
            bytes: block.as_ref().map_or(0, volume),
            block,
            fan: Fan::new(machine.mesh, who.iter().copied()),
        };
        for (block, who) in ifmaps {
            let entry = shared(block, &who);
            for core in &who {
                placed.ifmap_kept[usize::from(*core)] += entry.bytes * copies;
            }
            placed.ifmap_total += entry.bytes * who.len() as i64 * copies;
            placed.ifmap_largest = placed.ifmap_largest.max(entry.bytes * copies);
            placed.ifmaps.push(entry);
        }
        for (block, who) in weights {
            let entry = shared(block, &who);
            let kept = if weights_by_image {
                &mut placed.ifmap_kept
            } else {
                &mut placed.weight_kept
            };
            for core in &who {
                kept[usize::from(*core)] += entry.bytes;
            }
            placed.weight_total += entry.bytes * who.len() as i64;
            placed.weight_largest = placed.weight_largest.max(entry.bytes);
            placed.weights.push(entry);
        }
        let stream = |kept: &i64| if *kept > 0 { kept + machine.stream } else { 0 };
        placed.room = placed.ifmap_kept.iter().map(stream).collect();
        placed
    }
}

impl Placed {
    /// Bytes that it needs in the fullest L2.
    pub(crate) fn fullest(&self) -> i64 {
        self.room
            .iter()
            .zip(&self.weight_kept)
            .map(|(room, weight)| room + weight)
            .max()
            .unwrap_or(0)
    }
}

/// The box of the input that a box of the result needs, as SET has it.
pub(crate) fn window(layer: &Layer, facts: &Facts, [c, b, h, w]: &Block) -> Block {
    let side = |range: &Range, d: usize| {
        let low = range[0] * layer.stride[d] - facts.padding[d];
        let high = (range[1] - 1) * layer.stride[d] + layer.kernel[d] - facts.padding[d];
        [low.max(0), high.min(facts.input[d + 1])]
    };
    match layer.kind {
        Kind::Transpose => {
            let mut axes = [[0, 0]; 3];
            for (from, to) in layer.order.iter().enumerate() {
                axes[*to] = [*c, *h, *w][from];
            }
            [axes[0], *b, axes[1], axes[2]]
        }
        Kind::Eltwise | Kind::PointToPoint => [*c, *b, *h, *w],
        Kind::Fc => [
            [0, layer.channels],
            *b,
            [0, layer.kernel[0] - facts.padding[0]],
            [0, layer.kernel[1] - facts.padding[1]],
        ],
        Kind::Conv => [[0, layer.channels], *b, side(h, 0), side(w, 1)],
        Kind::Pool => [*c, *b, side(h, 0), side(w, 1)],
        Kind::GroupConv => {
            let [inputs, outputs] = facts.group;
            let low = c[0] / outputs * inputs;
            let high = if c[1] == 0 {
                0
            } else {
                ((c[1] - 1) / outputs + 1) * inputs
            };
            [[low, high], *b, side(h, 0), side(w, 1)]
        }
    }
}
