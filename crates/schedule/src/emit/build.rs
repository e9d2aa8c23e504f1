//! Workloads and transfers from jobs: what each core computes, where it gets what it reads, where its results go.

use super::jobs::Jobs;
use super::view::{Producer, View};
use crate::machine::Machine;
use crate::model::Block;
use chipless_gemini::schedule::{
    At, Bounds, Core, Destination, Dialect, DramIn, DramOut, Ifmap, LayerType, Ofmap, Peer,
    Schedule, Source, Tensor, TensorKind, TopPlaces, Weight, Workload,
};
use chipless_gemini::{Name, Names};
use smallvec::{SmallVec, smallvec};
use std::collections::HashMap;

/// A box with both corners inside.
pub(crate) fn bounds([c, n, h, w]: &Block) -> Bounds {
    let axes = [n, c, h, w];
    Bounds {
        lower: axes.map(|range| range[0] as u32),
        upper: axes.map(|range| (range[1] - 1).max(range[0]) as u32),
    }
}

/// What two boxes have in common.
fn common(a: &Block, b: &Block) -> Option<Block> {
    let block = [0, 1, 2, 3].map(|d| [a[d][0].max(b[d][0]), a[d][1].min(b[d][1])]);
    block
        .iter()
        .all(|range| range[0] < range[1])
        .then_some(block)
}

fn elements(block: &Block) -> u64 {
    block
        .iter()
        .map(|range| (range[1] - range[0]).max(0) as u64)
        .product()
}

/// A workload that was made.
struct Made {
    core: u16,
    block: Block,
    /// Place in the schedule: core's list, position.
    at: [usize; 2],
    /// The transfer that stores it, once somebody needs that.
    stored: Option<usize>,
    /// Pieces by box and by the box that they become a part of.
    pieces: HashMap<(usize, usize, Block, Block), usize>,
}

/// A schedule in the form of SET's dialect.
pub(crate) struct Built {
    /// Sizes are bytes, ids of workloads count over all cores.
    pub(crate) schedule: Schedule,
    /// The job of each workload, core by core.
    pub(crate) steps: Vec<Vec<u32>>,
}

/// Makes a schedule from jobs.
pub(crate) fn build(machine: &Machine, view: &View<'_>, jobs: &Jobs) -> Built {
    let mut names = Names::default();
    let layer_names: Vec<Name> = view
        .layers
        .iter()
        .map(|layer| names.intern(&layer.name))
        .collect();
    let mut interned =
        |list: &[String]| -> Vec<Name> { list.iter().map(|name| names.intern(name)).collect() };
    let input_names = interned(&view.inputs);
    let constant_names = interned(&view.constants);
    let cores = (0..machine.cores() as u32)
        .map(|id| Core {
            id,
            workloads: Vec::new(),
            at: At::default(),
        })
        .collect();
    let schedule = Schedule {
        dialect: Dialect::Set,
        mesh: machine.mesh.map(|extent| extent as u32),
        top_batch_cut: jobs.groups as u32,
        places: TopPlaces::default(),
        buffer_size: None,
        weight_key: None,
        cores,
        dram_in: Vec::new(),
        dram_out: Vec::new(),
        dram_ports: Vec::new(),
        names,
        unnamed: Vec::new(),
        unknown: Vec::new(),
    };
    let mut builder = Builder {
        view,
        jobs,
        schedule,
        layer_names,
        input_names,
        constant_names,
        made: Vec::new(),
        of_layer: HashMap::new(),
        loads: HashMap::new(),
        kept: HashMap::new(),
        transfers: 0,
    };
    let mut steps = vec![Vec::new(); machine.cores()];
    let mut next = 0;
    let images = jobs.list.iter().map(|job| job.images[1]).max().unwrap_or(1);
    let mut pass = 0;
    for (step, job) in jobs.list.iter().enumerate() {
        builder.loads.clear();
        // What is kept is kept for a sub-batch of the root.
        let now = job.images[0] * jobs.groups.max(1) / images.max(1);
        if now != pass {
            (pass, builder.kept) = (now, HashMap::new());
        }
        for (block, core) in job
            .blocks(view.layers[job.layer].output)
            .into_iter()
            .zip(&job.cores)
        {
            if elements(&block) > 0 {
                builder.workload(job.layer, *core, block, next, job.time);
                steps[usize::from(*core)].push(step as u32);
                next += 1;
            }
        }
    }
    Built {
        schedule: builder.finish(),
        steps,
    }
}

struct Builder<'b> {
    view: &'b View<'b>,
    jobs: &'b Jobs,
    schedule: Schedule,
    layer_names: Vec<Name>,
    input_names: Vec<Name>,
    constant_names: Vec<Name>,
    made: Vec<Made>,
    of_layer: HashMap<usize, Vec<usize>>,
    /// Loads of the job: by operand, part and box (weights: operand beyond all).
    loads: HashMap<(usize, usize, Block), usize>,
    /// Weights that stay on their cores: by layer and box.
    kept: HashMap<(usize, Block), usize>,
    transfers: u32,
}

const WEIGHTS: usize = usize::MAX;

/// What a workload reads of its operands.
struct Operands {
    ifmaps: Vec<Ifmap>,
    /// An activation in the place of weights.
    weight: Option<Weight>,
    buffer: Vec<Tensor>,
}

impl Builder<'_> {
    fn transfer(&mut self) -> u32 {
        self.transfers += 1;
        self.transfers - 1
    }

    fn workload(&mut self, layer: usize, core: u16, block: Block, id: u32, time: i64) {
        let viewed = &self.view.layers[layer];
        let name = self.layer_names[layer];
        let Operands {
            ifmaps,
            mut weight,
            mut buffer,
        } = self.operands(layer, core, &block, id);
        if viewed.weights.is_some() {
            let (constant, tensor) = self.weights(layer, core, &block, id);
            weight = Some(constant);
            buffer.push(tensor);
        }
        let result = tensor(
            TensorKind::Ofmap,
            Some(name),
            bounds(&block),
            elements(&block),
            id,
            SmallVec::new(),
        );
        buffer.push(result);
        let list = &mut self.schedule.cores[usize::from(core)].workloads;
        let at = [usize::from(core), list.len()];
        list.push(Workload {
            id,
            layer: name,
            layer_type: viewed.kind,
            time: time.max(1) as u64,
            bounds: bounds(&block),
            ofmap_size: Some(elements(&block)),
            padding: None,
            ifmaps: ifmaps.into(),
            weight,
            ofmaps: Box::default(),
            buffer: buffer.into(),
            weight_buffer: None,
            ring: None,
            tiles: Box::default(),
            at: At::default(),
        });
        let made = self.made.len();
        self.made.push(Made {
            core,
            block,
            at,
            stored: None,
            pieces: HashMap::new(),
        });
        self.of_layer.entry(layer).or_default().push(made);
        if viewed.is_output {
            self.store(made);
        }
    }

    /// What a workload reads: its objects, and their tensors in the core's buffer.
    fn operands(&mut self, layer: usize, core: u16, block: &Block, id: u32) -> Operands {
        let viewed = &self.view.layers[layer];
        let name = self.layer_names[layer];
        let mut buffer = Vec::new();
        let mut ifmaps: Vec<Ifmap> = Vec::new();
        let mut weight = None;
        let mut combined: Option<Tensor> = None;
        for (operand, of) in viewed.operands.iter().enumerate() {
            let need = self.view.needs(layer, operand, block);
            // Of what is joined, this box may need nothing.
            if need.iter().any(|[low, high]| low >= high) {
                continue;
            }
            let sources = self.sources(layer, operand, core, &need, id);
            let transfers = sources.iter().map(|source| source.transfer).collect();
            let last = sources.iter().map(|source| source.transfer).max();
            let kind = if of.is_weight {
                TensorKind::Weight
            } else {
                TensorKind::Ifmap
            };
            let tensor = tensor(
                kind,
                Some(name),
                bounds(&need),
                elements(&need),
                id,
                sources,
            );
            if of.is_weight {
                // Images, output channels, input channels of a group.
                weight = Some(Weight {
                    bounds: bounds(&[need[0], need[1], need[2], [0, 1]]),
                    size: Some(elements(&need)),
                    transfers,
                    from_ofmap: true,
                    last_producer: last.map(|_| id.saturating_sub(1)),
                    at: At::default(),
                });
                buffer.push(tensor);
                continue;
            }
            // SET has one object and one tensor for all operands of an element-wise layer.
            if let (Some(first), LayerType::ElementWise) = (&mut combined, viewed.kind) {
                first.transfers.extend(tensor.transfers);
                first.sources.extend(tensor.sources);
                if let Some(ifmap) = ifmaps.first_mut() {
                    ifmap.transfers.extend(transfers);
                }
            } else {
                ifmaps.push(Ifmap {
                    bounds: bounds(&need),
                    transfers,
                    last_producer: Some(id.saturating_sub(1)),
                    ..Ifmap::default()
                });
                if let Some(before) = combined.replace(tensor) {
                    buffer.push(before);
                }
            }
        }
        buffer.extend(combined);
        Operands {
            ifmaps,
            weight,
            buffer,
        }
    }

    /// Where a box of an operand comes from.
    fn sources(
        &mut self,
        layer: usize,
        operand: usize,
        core: u16,
        need: &Block,
        id: u32,
    ) -> SmallVec<[Source; 1]> {
        let mut sources = SmallVec::new();
        let parts = self.view.layers[layer].operands[operand].parts.clone();
        for (number, part) in parts.iter().enumerate() {
            let channels = [
                need[0][0].max(part.channels[0]),
                need[0][1].min(part.channels[1]),
            ];
            if channels[0] >= channels[1] {
                continue;
            }
            let here = [channels, need[1], need[2], need[3]];
            match part.producer {
                Producer::Layer(producer) if self.jobs.direct.contains(&(layer, producer)) => {
                    self.take_from_cores(
                        &mut sources,
                        [layer, operand],
                        core,
                        &here,
                        producer,
                        part.offset,
                        id,
                    );
                }
                producer => {
                    let source = self.take_from_dram(
                        [layer, operand, number],
                        core,
                        &here,
                        producer,
                        part.offset,
                        id,
                    );
                    sources.push(source);
                }
            }
        }
        sources
    }

    /// Pieces of a producer's results, from core to core.
    #[expect(
        clippy::too_many_arguments,
        reason = "what is wanted, of whom, and where it goes"
    )]
    fn take_from_cores(
        &mut self,
        sources: &mut SmallVec<[Source; 1]>,
        [layer, operand]: [usize; 2],
        core: u16,
        here: &Block,
        producer: usize,
        offset: i64,
        id: u32,
    ) {
        let wanted = [here[0].map(|c| c - offset), here[1], here[2], here[3]];
        let makers = self.of_layer.get(&producer).cloned().unwrap_or_default();
        for maker in makers {
            let Some(piece) = common(&self.made[maker].block, &wanted) else {
                continue;
            };
            let key = (layer, operand, piece, *here);
            let destination = Destination {
                peer: Peer::Core(u32::from(core)),
                layer: Some(self.layer_names[layer]),
                workload: Some(id),
            };
            let [list, position] = self.made[maker].at;
            let transfer = if let Some(at) = self.made[maker].pieces.get(&key) {
                let piece = &mut self.schedule.cores[list].workloads[position].ofmaps[*at];
                piece.destinations.push(destination);
                piece.transfer
            } else {
                let transfer = self.transfer();
                let size = Some(elements(&piece));
                let entry = Ofmap {
                    bounds: bounds(&piece),
                    size,
                    transfer,
                    destinations: smallvec![destination],
                    at: At::default(),
                };
                let at = self.piece(maker, entry);
                self.made[maker].pieces.insert(key, at);
                transfer
            };
            let there = [piece[0].map(|c| c + offset), piece[1], piece[2], piece[3]];
            sources.push(Source {
                peer: Peer::Core(u32::from(self.made[maker].core)),
                layer: Some(self.layer_names[producer]),
                bounds: bounds(&there),
                size: Some(elements(&piece)),
                transfer,
            });
        }
    }

    fn piece(&mut self, maker: usize, entry: Ofmap) -> usize {
        let [list, position] = self.made[maker].at;
        let workload = &mut self.schedule.cores[list].workloads[position];
        let mut pieces = std::mem::take(&mut workload.ofmaps).into_vec();
        pieces.push(entry);
        workload.ofmaps = pieces.into();
        workload.ofmaps.len() - 1
    }

    /// A box from DRAM; cores that need the same get it by one transfer.
    fn take_from_dram(
        &mut self,
        [layer, operand, number]: [usize; 3],
        core: u16,
        here: &Block,
        producer: Producer,
        offset: i64,
        id: u32,
    ) -> Source {
        let destination = Destination {
            peer: Peer::Core(u32::from(core)),
            layer: Some(self.layer_names[layer]),
            workload: Some(id),
        };
        let key = (operand, number, *here);
        let entry = if let Some(entry) = self.loads.get(&key) {
            *entry
        } else {
            let transfer = self.transfer();
            let mut related = SmallVec::new();
            if let Producer::Layer(producer) = producer {
                let wanted = [here[0].map(|c| c - offset), here[1], here[2], here[3]];
                let makers = self.of_layer.get(&producer).cloned().unwrap_or_default();
                for maker in makers {
                    if common(&self.made[maker].block, &wanted).is_some() {
                        let store = self.store(maker);
                        let store = &mut self.schedule.dram_in[store];
                        related.push(store.transfer);
                        store.related.get_or_insert_default().push(transfer);
                    }
                }
            }
            self.schedule.dram_out.push(DramOut {
                transfer,
                weight: false,
                constant: matches!(producer, Producer::Constant(_)),
                layer: Some(self.layer_names[layer]),
                destinations: SmallVec::new(),
                bounds: bounds(here),
                size: elements(here),
                related: Some(related),
                priority: None,
                groups: 0,
                at: At::default(),
            });
            let entry = self.schedule.dram_out.len() - 1;
            self.loads.insert(key, entry);
            entry
        };
        let out = &mut self.schedule.dram_out[entry];
        out.destinations.push(destination);
        let layer = match producer {
            Producer::Input(input) => self.input_names[input],
            Producer::Constant(constant) => self.constant_names[constant],
            Producer::Layer(producer) => self.layer_names[producer],
        };
        Source {
            peer: Peer::Dram(0),
            layer: Some(layer),
            bounds: bounds(here),
            size: Some(out.size),
            transfer: out.transfer,
        }
    }

    /// The transfer that stores what a workload makes.
    fn store(&mut self, maker: usize) -> usize {
        if let Some(store) = self.made[maker].stored {
            return store;
        }
        let transfer = self.transfer();
        let block = self.made[maker].block;
        let destinations = smallvec![Destination {
            peer: Peer::Dram(0),
            layer: None,
            workload: None
        }];
        let entry = Ofmap {
            bounds: bounds(&block),
            size: Some(elements(&block)),
            transfer,
            destinations,
            at: At::default(),
        };
        self.piece(maker, entry);
        let [list, position] = self.made[maker].at;
        let workload = &self.schedule.cores[list].workloads[position];
        self.schedule.dram_in.push(DramIn {
            transfer,
            core: list as u32,
            workload: workload.id,
            layer: Some(workload.layer),
            bounds: bounds(&block),
            related: Some(SmallVec::new()),
            groups: 0,
            at: At::default(),
        });
        let store = self.schedule.dram_in.len() - 1;
        self.made[maker].stored = Some(store);
        store
    }

    fn weights(&mut self, layer: usize, core: u16, block: &Block, id: u32) -> (Weight, Tensor) {
        let name = self.layer_names[layer];
        let [channels, window] = self.view.layers[layer].weights.unwrap_or([1, 1]);
        let tile = [block[0], [0, 1], [0, 1], [0, 1]];
        let size = (block[0][1] - block[0][0]) as u64 * (channels * window) as u64;
        let key = (WEIGHTS, 0, tile);
        let there = |entry: &usize| {
            let mut destinations = self.schedule.dram_out[*entry].destinations.iter();
            destinations.any(|to| to.peer == Peer::Core(u32::from(core)))
        };
        let kept = self.kept.get(&(layer, tile)).copied().filter(there);
        let entry = if let Some(entry) = kept.or(self.loads.get(&key).copied()) {
            entry
        } else {
            let transfer = self.transfer();
            self.schedule.dram_out.push(DramOut {
                transfer,
                weight: true,
                constant: false,
                layer: Some(name),
                destinations: SmallVec::new(),
                bounds: bounds(&tile),
                size,
                related: Some(SmallVec::new()),
                priority: None,
                groups: 0,
                at: At::default(),
            });
            let entry = self.schedule.dram_out.len() - 1;
            self.loads.insert(key, entry);
            if self.jobs.kept.contains(&layer) {
                self.kept.insert((layer, tile), entry);
            }
            entry
        };
        let out = &mut self.schedule.dram_out[entry];
        if kept.is_none() {
            out.destinations.push(Destination {
                peer: Peer::Core(u32::from(core)),
                layer: Some(name),
                workload: Some(id),
            });
        }
        let (transfer, box_) = (out.transfer, bounds(&tile));
        let source = Source {
            peer: Peer::Dram(0),
            layer: Some(name),
            bounds: box_,
            size: Some(size),
            transfer,
        };
        let weight = Weight {
            bounds: box_,
            size: Some(size),
            transfers: smallvec![transfer],
            ..Weight::default()
        };
        (
            weight,
            tensor(
                TensorKind::Weight,
                Some(name),
                box_,
                size,
                id,
                smallvec![source],
            ),
        )
    }

    /// What goes nowhere is stored: nobody may drop a result.
    fn finish(mut self) -> Schedule {
        for maker in 0..self.made.len() {
            let [list, position] = self.made[maker].at;
            if self.schedule.cores[list].workloads[position]
                .ofmaps
                .is_empty()
            {
                self.store(maker);
            }
        }
        self.schedule
    }
}

fn tensor(
    kind: TensorKind,
    layer: Option<Name>,
    bounds: Bounds,
    size: u64,
    workload: u32,
    sources: SmallVec<[Source; 1]>,
) -> Tensor {
    Tensor {
        workload: Some(workload),
        transfers: sources.iter().map(|source| source.transfer).collect(),
        sources,
        ..Tensor::new(kind, layer, bounds, size)
    }
}
