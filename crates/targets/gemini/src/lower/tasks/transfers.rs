//! Transfers: from DRAM, to DRAM and from core to core, and where pieces of results wait for them.

use super::super::builder::NewTask;
use super::super::dram::Place;
use super::super::plan::{Departure, Load, Node, Sink};
use super::super::region::{Layout, Region};
use super::super::residents::Resident;
use super::super::weights;
use super::{Emit, stream};
use crate::kernels::moves::{Copy, LoadMap, StoreMap};
use crate::rules::lowering::NOT_LOWERED;
use crate::schedule::{Bounds, DramOut, Ofmap, Peer, TensorKind};
use crate::traffic::{Position, position};
use chipless_model::{BuildError, Demand, Role, Time};
use smallvec::SmallVec;

impl Emit<'_, '_, '_> {
    /// Where a piece that leaves its core waits: its tensor in the snapshot, or a buffer of its own.
    pub(super) fn departure(
        &mut self,
        index: u32,
        number: u32,
        ofmap: &Ofmap,
        piece: Bounds,
    ) -> (Layout, [u32; 4]) {
        let staged = self.staged(index, number);
        if let Some(r) = staged {
            let resident = &self.residents.all[r as usize];
            let lower = if resident.tensor.bounds.shape() == piece.shape() {
                resident.tensor.bounds.lower
            } else {
                piece.lower
            };
            return (resident.layout.clone(), lower);
        }
        if let Some(layout) = self.streams.get(&(index, number)) {
            return (layout.clone(), piece.lower);
        }
        let element = ofmap
            .size
            .and_then(|size| size.checked_div(piece.elements()))
            .map_or(1, |bytes| bytes.clamp(1, 2));
        let pixel = piece.shape()[1].saturating_mul(element);
        let [n, _, h, w] = piece.shape();
        let bytes = [n, h, w].into_iter().fold(pixel, u64::saturating_mul);
        let memory = self.builder.program.buffers
            [self.residents.weight_buffers[self.plan.workload(index).0]]
            .memory;
        let name = format!("transfer {} on its way", ofmap.transfer);
        let buffer = self
            .builder
            .buffer(name, memory, None, bytes, Role::Scratch);
        let layout = Layout {
            buffer,
            base: 0,
            bounds: piece,
            element,
            pixel,
            ring: None,
        };
        self.streams.insert((index, number), layout.clone());
        (layout, piece.lower)
    }

    fn staged(&self, index: u32, number: u32) -> Option<u32> {
        let find = |all: &[Departure]| {
            let first = all.partition_point(|d| (d.workload, d.ofmap) < (index, number));
            all.get(first)
                .filter(|d| (d.workload, d.ofmap) == (index, number))
                .and_then(|d| d.staged)
        };
        find(&self.plan.stores).or_else(|| find(&self.plan.sends))
    }

    /// The region that a piece leaves from.
    fn leaving(&mut self, index: u32, number: u32) -> (Bounds, Option<Region>) {
        let (_, _, workload) = self.plan.workload(index);
        let ofmap = &workload.ofmaps[number as usize];
        let piece = self.frames.piece(workload, ofmap);
        let (layout, lower) = self.departure(index, number, ofmap, piece);
        if !self.is_exact {
            return (piece, Some(stream(&layout)));
        }
        let bounds = Bounds {
            lower,
            upper: std::array::from_fn(|d| {
                lower[d].saturating_add(piece.upper[d] - piece.lower[d].min(piece.upper[d]))
            }),
        };
        (piece, layout.region(&bounds))
    }

    fn position(&self, core: usize) -> Position {
        position(
            self.plan.schedule,
            self.mesh,
            self.plan.schedule.cores[core].id,
        )
    }

    fn demands(&self, dram: u64, carry: impl FnOnce(&mut dyn FnMut(usize, u64))) -> Vec<Demand> {
        let mut demands: Vec<Demand> = Vec::new();
        if dram > 0 {
            demands.push(Demand {
                resource: self.memory_rate,
                bytes: dram,
            });
        }
        let first = demands.len();
        carry(&mut |link, bytes| {
            if let Some(resource) = self.links.get(&link)
                && bytes > 0
            {
                demands.push(Demand {
                    resource: *resource,
                    bytes,
                });
            }
        });
        demands[first..].sort_unstable_by_key(|d| d.resource);
        let mut merged: Vec<Demand> = Vec::with_capacity(demands.len());
        for demand in demands {
            match merged.last_mut() {
                Some(last) if last.resource == demand.resource => {
                    last.bytes = last.bytes.saturating_add(demand.bytes);
                }
                _ => merged.push(demand),
            }
        }
        merged
    }

    /// What a transfer takes before its first byte is there.
    fn fixed(&self, overhead: f64, hops: impl FnOnce() -> u32) -> Time {
        let hop = self.machine.noc.hop_cycles;
        let way = if hop > 0.0 {
            hop * f64::from(hops())
        } else {
            0.0
        };
        self.machine.cycles(overhead + way)
    }

    pub(super) fn load(&mut self, index: u32) -> Result<(), BuildError> {
        let plan = self.plan;
        let load = &plan.loads[index as usize];
        let out = &plan.schedule.dram_out[load.out as usize];
        let queue = self.queue_of[plan.number(Node::Load(index)) as usize];
        let count = out.bounds.shape()[1].max(1);
        let channel = out.size / count;
        let (to, exact, mut cores, bytes) = self.landed(load, out);
        cores.sort_unstable();
        cores.dedup();
        let demands = self.demands(
            bytes.max(if load.sinks.is_empty() { out.size } else { 0 }),
            |add| self.mesh.load(&cores, out.size, out.groups, add),
        );
        let mut waits = self.waits(Node::Load(index), queue);
        waits.extend(self.after_tile.get(&index).copied());
        let gives = self.name(Node::Load(index), || {
            format!("transfer {} arrived", out.transfer)
        });
        let hops = || self.mesh.hops_of_dram(&cores, out.groups);
        let fixed = self.fixed(self.machine.overhead.load, hops);
        let task = NewTask {
            queue,
            waits: &waits,
            gives,
            demands: &demands,
            fixed,
            at: out.at.0,
            label: Some(self.label_of_load(load, out)),
        };
        let executable = out.weight && exact && self.is_exact;
        let copy = |from, to, executable| Copy {
            operation: "load",
            from,
            to,
            executable,
        };
        match &self.dram.loads[index as usize] {
            Place::Box(from) => {
                let elements = from.bounds.elements() * from.element;
                let fits = exact
                    && to.iter().all(|r| {
                        r.count.iter().map(|c| u64::from(*c)).product::<u64>()
                            * out.bounds.shape()[1]
                            * from.element
                            == elements
                    });
                if fits {
                    let from = from.clone();
                    self.builder.task(task, LoadMap { from, to })?;
                } else {
                    let bytes = from.shape.iter().product::<u64>() * from.element;
                    let from = Region::contiguous(from.buffer, 0, bytes);
                    self.copy(task, copy(SmallVec::from_elem(from, 1), to, false))?;
                }
            }
            Place::Whole(buffers) => {
                let from = buffers.iter().map(|(buffer, bytes)| {
                    if executable && channel * count == *bytes {
                        Region {
                            count: [1, 1, count as u32],
                            stride: [0, 0, channel],
                            run: channel,
                            ..Region::contiguous(*buffer, 0, 0)
                        }
                    } else {
                        Region::contiguous(*buffer, 0, *bytes)
                    }
                });
                self.copy(task, copy(from.collect(), to, executable))?;
            }
        }
        Ok(())
    }

    /// The transfer with the layer whose weights or tensor it brings, where the file says it.
    fn label_of_load(&self, load: &Load, out: &DramOut) -> Box<str> {
        let reader = || out.destinations.first()?.layer.or(out.layer);
        let source = || {
            let of_sink = |sink: &Sink| match sink {
                Sink::Resident(r) => {
                    let mut sources = self.residents.all[*r as usize].tensor.sources.iter();
                    sources
                        .find(|source| source.transfer == out.transfer)?
                        .layer
                }
                Sink::Held(_) => None,
            };
            load.sinks.iter().find_map(of_sink)
        };
        let layer = if out.weight { reader() } else { source() };
        let name = |layer| self.plan.schedule.name(layer);
        let number = out.transfer;
        match (layer.map(name), out.weight) {
            (Some(layer), true) => format!("transfer {number}, weights of {layer}"),
            (Some(layer), false) => format!("transfer {number}, {layer}"),
            (None, _) => format!("transfer {number}"),
        }
        .into()
    }

    /// Where a load arrives, whether that is known of every sink, the cores, and the most bytes that one takes.
    fn landed(
        &self,
        load: &Load,
        out: &DramOut,
    ) -> (SmallVec<[Region; 1]>, bool, Vec<Position>, u64) {
        let count = out.bounds.shape()[1].max(1);
        let channel = out.size / count;
        let (mut to, mut exact): (SmallVec<[Region; 1]>, bool) = (SmallVec::new(), true);
        let (mut cores, mut bytes): (Vec<Position>, u64) = (Vec::new(), 0);
        for sink in &load.sinks {
            let (core, region) = match sink {
                Sink::Resident(r) => {
                    let resident = &self.residents.all[*r as usize];
                    bytes = bytes.max(out.size);
                    let region = if self.is_exact {
                        arrival(resident, out, count, channel)
                    } else {
                        resident.own_region(out.transfer)
                    };
                    (resident.core, region)
                }
                Sink::Held(h) => {
                    let held = &self.residents.held[*h as usize];
                    let region = weights::entry(
                        self.residents.weight_buffers[held.core],
                        self.machine.core.weight_banks,
                        held.tensor,
                        count,
                        channel,
                    );
                    bytes = bytes.max(region.as_ref().map_or(out.size, Region::bytes));
                    (held.core, region)
                }
            };
            exact &= region.is_some();
            to.extend(region);
            cores.push(self.position(core));
        }
        (to, exact, cores, bytes)
    }

    pub(super) fn store(&mut self, index: u32) -> Result<(), BuildError> {
        let plan = self.plan;
        let store = &plan.stores[index as usize];
        let (core, _, workload) = plan.workload(store.workload);
        let ofmap = &workload.ofmaps[store.ofmap as usize];
        let queue = self.queue_of[plan.number(Node::Store(index)) as usize];
        let bytes = ofmap.size.unwrap_or(0);
        let groups = ofmap
            .destinations
            .iter()
            .find_map(|d| {
                if let Peer::Dram(groups) = d.peer {
                    Some(groups)
                } else {
                    None
                }
            })
            .unwrap_or(0);
        let from = self.position(core);
        let demands = self.demands(bytes, |add| self.mesh.store(from, bytes, groups, add));
        let (piece, region) = self.leaving(store.workload, store.ofmap);
        let waits = self.waits(Node::Store(index), queue);
        let gives = self.name(Node::Store(index), || {
            format!("transfer {} stored", ofmap.transfer)
        });
        let hops = || self.mesh.hops_of_dram(&[from], groups);
        let fixed = self.fixed(self.machine.overhead.store, hops);
        let layer = plan.schedule.name(workload.layer);
        let label = Some(format!("transfer {}, {layer}", ofmap.transfer).into());
        let task = NewTask {
            queue,
            waits: &waits,
            gives,
            demands: &demands,
            fixed,
            at: ofmap.at.0,
            label,
        };
        match (&self.dram.stores[index as usize], region) {
            (Place::Box(to), Some(from)) if to.bounds.shape() == piece.shape() => {
                self.builder.task(
                    task,
                    StoreMap {
                        from,
                        to: to.clone(),
                    },
                )?;
            }
            (place, from) => {
                let to = match place {
                    Place::Box(to) => SmallVec::from_elem(
                        Region::contiguous(
                            to.buffer,
                            0,
                            to.shape.iter().product::<u64>() * to.element,
                        ),
                        1,
                    ),
                    Place::Whole(buffers) => buffers
                        .iter()
                        .map(|(buffer, bytes)| Region::contiguous(*buffer, 0, *bytes))
                        .collect(),
                };
                self.copy(
                    task,
                    Copy {
                        operation: "store",
                        from: from.into_iter().collect(),
                        to,
                        executable: false,
                    },
                )?;
            }
        }
        Ok(())
    }

    pub(super) fn send(&mut self, index: u32) -> Result<(), BuildError> {
        let plan = self.plan;
        let send = &plan.sends[index as usize];
        let (core, _, workload) = plan.workload(send.workload);
        let ofmap = &workload.ofmaps[send.ofmap as usize];
        let queue = self.queue_of[plan.number(Node::Send(index)) as usize];
        let mut cores = Vec::new();
        let mut to: SmallVec<[Region; 1]> = SmallVec::new();
        for r in &send.sinks {
            let resident = &self.residents.all[*r as usize];
            cores.push(self.position(resident.core));
            let part = resident.part(ofmap.transfer);
            to.extend(if self.is_exact {
                resident.layout.region(&part)
            } else {
                resident.own_region(ofmap.transfer)
            });
        }
        cores.sort_unstable();
        cores.dedup();
        let from = self.position(core);
        let bytes = ofmap.size.unwrap_or(0);
        let demands = self.demands(0, |add| self.mesh.between(from, &cores, bytes, add));
        let (piece, region) = self.leaving(send.workload, send.ofmap);
        let [n, _, h, w] = piece.shape();
        let executable = region.is_some()
            && to.len() == send.sinks.len()
            && to.iter().all(|r| r.runs() == n * h * w);
        let waits = self.waits(Node::Send(index), queue);
        let gives = self.name(Node::Send(index), || {
            format!("transfer {} sent", ofmap.transfer)
        });
        let layer = plan.schedule.name(workload.layer);
        let label = Some(format!("transfer {}, {layer}", ofmap.transfer).into());
        let task = NewTask {
            queue,
            waits: &waits,
            gives,
            demands: &demands,
            fixed: self.fixed(0.0, || self.mesh.hops_between(from, &cores)),
            at: ofmap.at.0,
            label,
        };
        self.copy(
            task,
            Copy {
                operation: "send",
                from: region.into_iter().collect(),
                to,
                executable,
            },
        )
    }

    /// A transfer of bytes as they are. Where values are computed, it must be known how they lie.
    fn copy(&mut self, task: NewTask<'_>, kernel: Copy) -> Result<(), BuildError> {
        let is_unknown = kernel.source().is_none() && self.is_exact && self.network.is_some();
        let message = is_unknown.then(|| {
            let transfer = task.label.as_deref().and_then(|label| label.split(',').next());
            let (operation, transfer) = (kernel.operation, transfer.unwrap_or("bytes"));
            format!(
                "expected the {operation} of {transfer} to name its layer and to have the same box on both sides, found that the file does not say how its bytes lie"
            )
        });
        let id = self.builder.task(task, kernel)?;
        if let Some(message) = message {
            self.lacks.add(id, &NOT_LOWERED, message);
        }
        Ok(())
    }
}

/// The region of L2 that a transfer from DRAM fills, in the spec's dialect: `count` output channels of `channel` bytes if it
/// brings weights. Activations that an ancestor uses as weights are boxes like any other.
fn arrival(resident: &Resident<'_>, out: &DramOut, count: u64, channel: u64) -> Option<Region> {
    match resident.tensor.kind {
        TensorKind::Weight if out.weight => weights::in_l2(&resident.layout, 0, count, channel),
        _ => resident.layout.region(&resident.part(out.transfer)),
    }
}
