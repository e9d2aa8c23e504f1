//! What a layer costs where it stands: transfers, energy, time, room.

use super::core::{Tile, Workload, best, ceil};
use super::mesh::Traffic;
use super::placed::{Placed, Range, Shared};
use crate::machine::{Array, Machine};
use crate::network::{Kind, Network};
use crate::tree::Partition;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// A layer's cost on its cores.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) energy: f64,
    /// Without that of links.
    pub(crate) time: i64,
    pub(crate) traffic: Traffic,
    pub(crate) placed: Rc<Placed>,
}

/// How a layer's result and its operands travel.
pub(crate) struct Surroundings<'p> {
    /// For each of the layers that it reads ([`Facts::reads`](crate::network::Facts::reads)): where it lies, if its result
    /// comes straight from its cores.
    pub(crate) direct: &'p [Option<Rc<Placed>>],
    /// Whether the result goes to DRAM.
    pub(crate) to_dram: bool,
}

/// Costs of layers on one machine, for a batch. Mappings onto the array are kept.
pub(crate) struct Costs<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) network: &'a Network,
    pub(crate) batch: i64,
    tiles: FxHashMap<Workload, Option<Tile>>,
}

impl<'a> Costs<'a> {
    pub(crate) fn new(machine: &'a Machine, network: &'a Network, batch: i64) -> Costs<'a> {
        Costs {
            machine,
            network,
            batch,
            tiles: FxHashMap::default(),
        }
    }

    /// What the largest part of a layer costs its core.
    pub(crate) fn tile(&mut self, index: usize, part: Partition, batch: i64) -> Option<Tile> {
        let (layer, facts) = (&self.network.layers[index], &self.network.facts[index]);
        let [pk, pb, ph, pw] = part.map(i64::from);
        let [k, h, w] = layer.output;
        let (mut k, mut b, h, w) = (ceil(k, pk), ceil(batch, pb), ceil(h, ph), ceil(w, pw));
        if !layer.kind.multiplies() {
            let operations = k * h * w * layer.operands * layer.kernel[0] * layer.kernel[1] * b;
            let energy = operations as f64 * self.machine.vector_energy;
            return Some(Tile {
                energy,
                time: ceil(operations, self.machine.vector_lanes),
            });
        }
        let (mut groups, mut c) = (1, layer.channels);
        if layer.kind == Kind::GroupConv {
            groups = ceil(k, facts.group[1]);
            c = facts.group[0];
            if groups > 1 {
                k = facts.group[1];
            }
        }
        if !layer.weights_from.is_empty() {
            (groups, b) = (groups * b, 1);
        }
        let work = Workload {
            k,
            c,
            b,
            h,
            w,
            kernel: layer.kernel,
            stride: layer.stride,
            groups,
        };
        let machine = self.machine;
        *self
            .tiles
            .entry(work)
            .or_insert_with(|| best(machine, &work))
    }

    /// Time of a layer's image on one core without any loss but that of the array's shape.
    pub(crate) fn unit_time(&self, index: usize) -> f64 {
        let (layer, facts) = (&self.network.layers[index], &self.network.facts[index]);
        if !layer.kind.multiplies() {
            return facts.operations as f64 / self.machine.vector_lanes as f64;
        }
        let Array::Polar { vector, lanes, .. } = self.machine.array else {
            return facts.macs as f64 / self.machine.macs() as f64;
        };
        let [c, k] = facts.group;
        let [_, h, w] = layer.output;
        let work = ceil(c, vector)
            * vector
            * ceil(k, lanes)
            * lanes
            * layer.kernel[0]
            * layer.kernel[1]
            * h
            * w;
        let mut time = work as f64;
        if layer.kind == Kind::GroupConv {
            time = (work * layer.groups) as f64;
            if c < vector && k < lanes {
                time /= (vector / c).min(lanes / k) as f64;
            }
        }
        time / self.machine.macs() as f64
    }

    /// The cost of a layer; links are counted where asked for.
    pub(crate) fn leaf(
        &mut self,
        index: usize,
        part: Partition,
        placed: &Rc<Placed>,
        around: &Surroundings<'_>,
        links: bool,
    ) -> Option<Leaf> {
        let tile = self.tile(index, part, placed.batch)?;
        let traffic = self.transfers(index, placed, around, links);
        let (layer, machine) = (&self.network.layers[index], self.machine);
        let [k, h, w] = layer.output;
        let mut weights = placed.weight_total as f64 * machine.l2.write;
        if layer.weights_from.is_empty() {
            weights /= (self.batch / placed.batch) as f64;
        }
        let mut outer = weights + (k * h * w * placed.batch) as f64 * machine.l2.read;
        outer += placed.ifmap_total as f64 * machine.l2.write;
        let mut energy = tile.energy * placed.places.len() as f64;
        energy += outer;
        energy +=
            traffic.hops as f64 * machine.hop_energy + traffic.dram as f64 * machine.dram_energy;
        let time = tile.time.max(machine.dram.cycles(traffic.dram));
        Some(Leaf {
            energy,
            time,
            traffic,
            placed: Rc::clone(placed),
        })
    }

    fn transfers(
        &self,
        index: usize,
        placed: &Placed,
        around: &Surroundings<'_>,
        links: bool,
    ) -> Traffic {
        let (layer, facts, machine) = (
            &self.network.layers[index],
            &self.network.facts[index],
            self.machine,
        );
        let mut traffic = if links {
            Traffic::new(machine)
        } else {
            Traffic::default()
        };
        let direct = |producer: usize| {
            let at = facts.reads.binary_search(&producer).ok()?;
            around.direct[at].as_deref()
        };
        if layer.weights_from.is_empty() {
            for entry in placed.weights.iter().filter(|entry| entry.bytes > 0) {
                traffic.load(machine, &entry.fan, entry.bytes);
            }
            traffic.divide(self.batch / placed.batch);
        } else {
            let mut channel = 0;
            for producer in &layer.weights_from {
                let more = self.network.layers[*producer].output[0];
                match direct(*producer) {
                    Some(source) => {
                        self.between(&mut traffic, source, placed, &placed.weights, channel);
                    }
                    None => self.remote(&mut traffic, &placed.weights, [channel, channel + more]),
                }
                channel += more;
            }
        }
        // Operands of an element-wise layer lie over each other, those of the others follow each other.
        let operand = if layer.kind == Kind::Eltwise {
            layer.output[0]
        } else {
            0
        };
        let mut channel = facts.external_channels;
        self.remote(&mut traffic, &placed.ifmaps, [0, channel]);
        if operand > 0 && channel == operand {
            channel = 0;
        }
        for producer in &layer.previous {
            let more = self.network.layers[*producer].output[0];
            match direct(*producer) {
                Some(source) => self.between(&mut traffic, source, placed, &placed.ifmaps, channel),
                None => self.remote(&mut traffic, &placed.ifmaps, [channel, channel + more]),
            }
            channel += more;
            if operand > 0 && channel == operand {
                channel = 0;
            }
        }
        if around.to_dram {
            for (place, bytes) in placed
                .places
                .iter()
                .zip(&placed.results)
                .filter(|(_, bytes)| **bytes > 0)
            {
                traffic.store(machine, *place, *bytes);
            }
        }
        traffic
    }

    /// From DRAM: the channels of a range, each tile once.
    fn remote(&self, traffic: &mut Traffic, entries: &[Shared], [low, high]: Range) {
        if high <= low {
            return;
        }
        for entry in entries {
            let Some(block) = &entry.block else { continue };
            let channels = (block[0][1].min(high) - block[0][0].max(low)).max(0);
            let all = (block[0][1] - block[0][0]).max(0);
            if channels > 0 {
                traffic.load(self.machine, &entry.fan, entry.bytes / all * channels);
            }
        }
    }

    /// From the cores of a producer, whose channels begin at `offset` of what is read.
    fn between(
        &self,
        traffic: &mut Traffic,
        source: &Placed,
        placed: &Placed,
        entries: &[Shared],
        offset: i64,
    ) {
        let mesh = self.machine.mesh;
        let [_, pb, ph, pw] = [0, 1, 2, 3].map(|d| source.ends[d].len() - 1);
        let shrink = if source.batch > placed.batch {
            source.batch / placed.batch
        } else {
            1
        };
        for entry in entries {
            let Some(block) = &entry.block else { continue };
            // What begins before the producer's channels counts nothing: SET's difference wraps in 32 bits.
            if block[0][1] <= offset || block[0][0] < offset {
                continue;
            }
            let channels = [block[0][0] - offset, block[0][1] - offset];
            let [oc, oh, ow] = [(0, channels), (2, block[2]), (3, block[3])]
                .map(|(d, range)| overlaps(&source.ends[d], range));
            if oc.is_empty() || oh.is_empty() || ow.is_empty() {
                continue;
            }
            for b in 0..pb {
                let images = common(
                    [source.ends[1][b], source.ends[1][b + 1]],
                    block[1],
                    source.batch,
                    placed.batch,
                );
                if images == 0 {
                    continue;
                }
                for (k, channels) in &oc {
                    for (h, rows) in &oh {
                        for (w, columns) in &ow {
                            let bytes = channels * images * rows * columns / shrink;
                            if bytes > 0 {
                                let part = ((k * pb + b) * ph + h) * pw + w;
                                traffic.send(mesh, source.places[part], &entry.fan, bytes);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Parts that have something of a range, with how much.
fn overlaps(ends: &[i64], range: Range) -> smallvec::SmallVec<[(usize, i64); 8]> {
    let first = ends
        .partition_point(|end| *end <= range[0])
        .saturating_sub(1);
    ends.windows(2)
        .enumerate()
        .skip(first)
        .take_while(|(_, part)| part[0] < range[1])
        .filter_map(|(i, part)| {
            let common = part[1].min(range[1]) - part[0].max(range[0]);
            (common > 0).then_some((i, common))
        })
        .collect()
}

/// Images that a producer's part and a reader's part have in common; where their sub-batches differ the smaller one's range
/// is repeated over the larger one.
fn common(part: Range, read: Range, produced: i64, consumed: i64) -> i64 {
    if produced == consumed {
        return (part[1].min(read[1]) - part[0].max(read[0])).max(0);
    }
    let (mut small, large, step) = if produced > consumed {
        (read, part, consumed)
    } else {
        (part, read, produced)
    };
    let mut images = 0;
    while small[0] < large[1] {
        if small[1] > large[0] {
            images += small[1].min(large[1]) - small[0].max(large[0]);
        }
        small = [small[0] + step, small[1] + step];
    }
    images
}
