//! DRAM: the maps, weights and inputs that lie there, and what the host gives and gets.
//!
//! In the spec's dialect a feature map in DRAM is one buffer per layer, N, C, H, W and densely packed, of which transfers move
//! boxes. The ancestors say neither how a map lies in DRAM nor, of concatenations, which part of it a box is: there each
//! transfer to DRAM has a buffer of its own, and a transfer from DRAM reads all those that it is related to.

use super::builder::Builder;
use super::frames::Frames;
use super::plan::{Plan, Sink};
use super::residents::Residents;
use crate::kernels::moves::DramBox;
use crate::names::Name;
use crate::network::Network;
use crate::network::is_constant;
use crate::outputs::Outputs;
use crate::schedule::{Bounds, Dialect, Schedule};
use chipless_model::{BufferId, ElementType, Kind, Memory, MemoryId, MemoryKind, Port, Role};
use std::collections::HashMap;

/// A feature map in DRAM.
#[derive(Debug)]
struct Map {
    /// Elements that boxes of transfers to DRAM have, and the box around all of them.
    written: u64,
    around: Bounds,
    /// Extents.
    shape: [u64; 4],
    /// Bytes of an element.
    element: u64,
    buffer: BufferId,
}

/// Where the bytes of a transfer are in DRAM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A box of a map.
    Box(DramBox),
    /// All of some buffers: buffer and bytes.
    Whole(Vec<(BufferId, u64)>),
}

/// What lies in DRAM.
#[derive(Debug)]
pub(crate) struct Dram {
    /// By index of [`Plan::loads`] and [`Plan::stores`].
    pub(crate) loads: Vec<Place>,
    pub(crate) stores: Vec<Place>,
    /// What the user should know, one sentence each.
    pub(crate) notes: Vec<String>,
}

/// The element type of a layer's output or of a network input.
fn element_type(network: Option<&Network>, name: &str, bytes: u64) -> ElementType {
    let output = network
        .and_then(|n| n.layers.get(name))
        .and_then(|l| l.output_dtype.first());
    let input = || {
        let layers = network.into_iter().flat_map(|n| n.layers.values());
        layers
            .flat_map(|l| l.previous_layer.iter().zip(&l.input_dtype))
            .find(|(previous, _)| *previous == name)
            .map(|(_, dtype)| dtype)
    };
    let named = output
        .or_else(input)
        .and_then(|dtype| ElementType::from_name(dtype));
    let fallback = if bytes == 1 {
        ElementType::Int8
    } else {
        ElementType::Float16
    };
    named.filter(|t| t.bits() == bytes * 8).unwrap_or(fallback)
}

/// Extents of a network input as the layers that read it have it: a schedule need not read its borders. `None` where the network
/// does not say them, or says less than is `read`.
fn input_shape(network: Option<&Network>, name: &str, read: [u64; 4]) -> Option<[u64; 4]> {
    let layers = network?.layers.values();
    let shapes = layers.flat_map(|layer| layer.previous_layer.iter().zip(&layer.input_shape));
    shapes
        .filter(|(previous, shape)| *previous == name && shape.len() <= 4)
        .find_map(|(_, shape)| {
            let mut extents = [1; 4];
            extents[..shape.len()].copy_from_slice(shape);
            // A schedule may be for another batch than the one that its network was written with.
            extents[0] = read[0];
            (0..4).all(|d| extents[d] >= read[d]).then_some(extents)
        })
}

impl Map {
    /// Bytes.
    fn size(&self) -> u64 {
        let shape = self.shape.iter();
        shape.fold(self.element, |n, extent| n.saturating_mul(*extent))
    }
}

/// Maps in the making.
struct Maps<'m> {
    by_layer: HashMap<Name, Map>,
    /// In the order of first use.
    order: Vec<Name>,
    network: Option<&'m Network>,
}

impl Maps<'_> {
    fn include(&mut self, name: Name, bounds: &Bounds, element: u64, writes: bool) {
        let map = self.by_layer.entry(name).or_insert_with(|| {
            self.order.push(name);
            Map {
                written: 0,
                around: *bounds,
                shape: [0; 4],
                element,
                buffer: BufferId::from_raw(0),
            }
        });
        map.element = map.element.max(element);
        for d in 0..4 {
            map.shape[d] = map.shape[d].max(u64::from(bounds.upper[d]) + 1);
        }
        if writes {
            if map.written == 0 {
                map.around = *bounds;
            }
            map.written = map.written.saturating_add(bounds.elements());
            map.around.lower = std::array::from_fn(|d| map.around.lower[d].min(bounds.lower[d]));
            map.around.upper = std::array::from_fn(|d| map.around.upper[d].max(bounds.upper[d]));
        }
    }

    /// Makes a buffer of each map, and a port where it is an input or an output. Also what there is to say about them.
    fn declare(
        &mut self,
        schedule: &Schedule,
        memory: MemoryId,
        constants: &mut ConstantBytes<'_>,
        builder: &mut Builder<'_>,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        let mut made: Vec<(u64, Port)> = Vec::new();
        let outputs = Outputs::of(schedule, self.network);
        for name in self.order.clone() {
            let text = schedule.name(name).to_owned();
            let Some(map) = self.by_layer.get_mut(&name) else {
                continue;
            };
            if map.written == 0
                && let Some(shape) = input_shape(self.network, &text, map.shape)
            {
                map.shape = shape;
            }
            let size = map.size();
            let whole = map.around.elements() == map.written && map.around.shape() == map.shape;
            let is_hosts = outputs.include(name, &text);
            let role = match map.written {
                0 => Role::Input,
                _ if whole && is_hosts => Role::Output,
                _ => Role::Scratch,
            };
            if role == Role::Scratch && is_hosts {
                notes.push(format!(
                    "`{text}` reaches DRAM in parts only, and is no output"
                ));
            }
            map.buffer = builder.buffer(text.clone(), memory, None, size, role);
            builder.program.buffers[map.buffer].has_weights = is_constant(&text);
            let element = element_type(self.network, &text, map.element);
            if role == Role::Input
                && is_constant(&text)
                && let Some(bytes) = constants(&text, map.shape, element)
            {
                builder.program.buffers[map.buffer].role = Role::Constant;
                builder.program.buffers[map.buffer].initial = bytes.into();
                continue;
            }
            let is_integer = role == Role::Output && element.kind() != Kind::Float;
            let scale = self
                .network
                .filter(|_| is_integer)
                .and_then(|network| network.scale(&text));
            let number = self
                .network
                .and_then(|network| network.output_number(&text));
            let mut port = Port {
                name: text,
                alias: None,
                buffer: map.buffer,
                element,
                shape: map.shape.to_vec(),
                host_element: None,
                scale,
            };
            if let Some(declared) = self.network.and_then(|n| n.declared(&port.name)) {
                declared.onto(&mut port);
            }
            match role {
                Role::Input => builder.program.interface.inputs.push(port),
                Role::Output => made.push((number.unwrap_or(0), port)),
                _ => {}
            }
        }
        // In the network's order, behind what is none of its outputs and comes in the order of first use.
        made.sort_by_key(|(number, _)| *number);
        let made = made.into_iter().map(|(_, port)| port);
        builder.program.interface.outputs.extend(made);
        notes.extend(self.between(builder));
        notes
    }

    /// Says which results are the network's own outputs, where others reach DRAM on the way to them and are listed too.
    fn between(&self, builder: &Builder<'_>) -> Option<String> {
        let network = self.network?;
        let outputs: Vec<&str> = network.outputs().collect();
        let ports = builder.program.interface.outputs.iter();
        let (own, between): (Vec<_>, Vec<_>) = ports
            .map(|port| &*port.name)
            .partition(|name| outputs.contains(name));
        let is_told = network.declares_output(own.first()?).is_none() && !between.is_empty();
        is_told.then(|| {
            let names: Vec<String> = own.iter().map(|name| format!("`{name}`")).collect();
            format!(
                "the network gives {}; the other outputs are results that reach DRAM on the way",
                names.join(", ")
            )
        })
    }

    /// Where a box lies; all of its map where it does not fit.
    fn place(&self, (name, bounds): (Name, Bounds)) -> Option<Place> {
        let map = self.by_layer.get(&name)?;
        let fits = (0..4).all(|d| {
            bounds.lower[d] <= bounds.upper[d] && u64::from(bounds.upper[d]) < map.shape[d]
        });
        let size = map.size();
        Some(if fits && size < u64::MAX {
            Place::Box(DramBox {
                buffer: map.buffer,
                shape: map.shape,
                bounds,
                element: map.element,
            })
        } else {
            Place::Whole(vec![(map.buffer, size)])
        })
    }
}

/// The bytes of a constant, by its name, extents and type, where they are known.
type ConstantBytes<'c> = dyn FnMut(&str, [u64; 4], ElementType) -> Option<Vec<u8>> + 'c;

impl Dram {
    pub(crate) fn new(
        plan: &Plan<'_>,
        residents: &Residents<'_>,
        frames: Frames,
        network: Option<&Network>,
        (weights, constants): (
            &mut dyn FnMut(usize) -> Option<Vec<u8>>,
            &mut ConstantBytes<'_>,
        ),
        builder: &mut Builder<'_>,
    ) -> Dram {
        let memory = builder.program.memories.push(Memory {
            name: "dram".into(),
            size: 0,
            kind: MemoryKind::Dram,
        });
        let mut dram = if plan.schedule.dialect == Dialect::Spec {
            by_layer(
                plan,
                residents,
                frames,
                network,
                memory,
                (constants, builder),
            )
        } else {
            by_transfer(plan, memory, builder)
        };
        dram.weights(plan, memory, weights, builder);
        let bytes = builder
            .program
            .buffers
            .iter()
            .filter(|b| b.memory == memory)
            .map(|b| b.size)
            .fold(0, u64::saturating_add);
        builder.program.memories[memory].size = bytes;
        dram
    }

    /// Weights are constants where their bytes are known; otherwise the host puts them there before the run.
    fn weights(
        &mut self,
        plan: &Plan<'_>,
        memory: MemoryId,
        weights: &mut dyn FnMut(usize) -> Option<Vec<u8>>,
        builder: &mut Builder<'_>,
    ) {
        let mut buffers: HashMap<u32, BufferId> = HashMap::new();
        for (load, place) in plan.loads.iter().zip(&mut self.loads) {
            let out = &plan.schedule.dram_out[load.out as usize];
            if !out.weight || out.related.as_ref().is_some_and(|r| !r.is_empty()) {
                continue;
            }
            let buffer = *buffers.entry(load.out).or_insert_with(|| {
                let buffer = builder.buffer(
                    format!("weights {}", out.transfer),
                    memory,
                    None,
                    out.size,
                    Role::Input,
                );
                builder.program.buffers[buffer].has_weights = true;
                if let Some(bytes) = weights(load.out as usize) {
                    builder.program.buffers[buffer].role = Role::Constant;
                    builder.program.buffers[buffer].initial = bytes.into();
                }
                buffer
            });
            *place = Place::Whole(vec![(buffer, out.size)]);
        }
    }
}

/// Maps by layer, with ports.
fn by_layer(
    plan: &Plan<'_>,
    residents: &Residents<'_>,
    frames: Frames,
    network: Option<&Network>,
    memory: MemoryId,
    (constants, builder): (&mut ConstantBytes<'_>, &mut Builder<'_>),
) -> Dram {
    let schedule = plan.schedule;
    let mut maps = Maps {
        by_layer: HashMap::new(),
        order: Vec::new(),
        network,
    };
    let stores = stored_boxes(plan, residents, frames, &mut maps);
    let loads = loaded_boxes(plan, residents, &mut maps);
    let notes = maps.declare(schedule, memory, constants, builder);
    let mut input = |index: usize| {
        let out = &schedule.dram_out[plan.loads[index].out as usize];
        let buffer = builder.buffer(
            format!("transfer {}", out.transfer),
            memory,
            None,
            out.size,
            Role::Input,
        );
        Place::Whole(vec![(buffer, out.size)])
    };
    let nowhere = || Place::Whole(Vec::new());
    Dram {
        loads: loads
            .into_iter()
            .enumerate()
            .map(|(index, found)| match found {
                Some(found) => maps.place(found).unwrap_or_else(nowhere),
                None if schedule.dram_out[plan.loads[index].out as usize].weight => nowhere(),
                None => input(index),
            })
            .collect(),
        stores: stores
            .into_iter()
            .map(|found| maps.place(found).unwrap_or_else(nowhere))
            .collect(),
        notes,
    }
}

/// The map and the box of each store.
fn stored_boxes(
    plan: &Plan<'_>,
    residents: &Residents<'_>,
    frames: Frames,
    maps: &mut Maps<'_>,
) -> Vec<(Name, Bounds)> {
    let schedule = plan.schedule;
    let mut stores = Vec::with_capacity(plan.stores.len());
    for store in &plan.stores {
        let workload = plan.workload(store.workload).2;
        let stored = store.sinks.first().map(|i| &schedule.dram_in[*i as usize]);
        let bounds = stored.map_or_else(
            || frames.piece(workload, &workload.ofmaps[store.ofmap as usize]),
            |s| s.bounds,
        );
        let name = stored.and_then(|s| s.layer).unwrap_or(workload.layer);
        let element = store
            .staged
            .map_or(1, |r| residents.all[r as usize].layout.element);
        maps.include(name, &bounds, element, true);
        stores.push((name, bounds));
    }
    stores
}

/// The map and the box of each load whose tensor is known.
fn loaded_boxes(
    plan: &Plan<'_>,
    residents: &Residents<'_>,
    maps: &mut Maps<'_>,
) -> Vec<Option<(Name, Bounds)>> {
    let schedule = plan.schedule;
    let written: HashMap<u32, Name> = schedule
        .dram_in
        .iter()
        .filter_map(|stored| Some((stored.transfer, stored.layer?)))
        .collect();
    let mut loads = Vec::with_capacity(plan.loads.len());
    for load in &plan.loads {
        let out = &schedule.dram_out[load.out as usize];
        let resident = load.sinks.iter().find_map(|s| {
            if let Sink::Resident(r) = s {
                Some(&residents.all[*r as usize])
            } else {
                None
            }
        });
        let related = out
            .related
            .iter()
            .flatten()
            .find_map(|t| written.get(t).copied());
        let source = resident.and_then(|r| {
            r.tensor
                .sources
                .iter()
                .find(|s| s.transfer == out.transfer)?
                .layer
        });
        let name = related
            .or(source)
            .filter(|_| !out.weight || related.is_some());
        if let Some(name) = name
            && related.is_none()
        {
            maps.include(
                name,
                &out.bounds,
                resident.map_or(1, |r| r.layout.element),
                false,
            );
        }
        loads.push(name.map(|name| (name, out.bounds)));
    }
    loads
}

/// A buffer for each transfer.
fn by_transfer(plan: &Plan<'_>, memory: MemoryId, builder: &mut Builder<'_>) -> Dram {
    let schedule = plan.schedule;
    let mut written: HashMap<u32, (BufferId, u64)> = HashMap::new();
    let mut stores = Vec::with_capacity(plan.stores.len());
    for store in &plan.stores {
        let ofmap = &plan.workload(store.workload).2.ofmaps[store.ofmap as usize];
        let bytes = ofmap.bounds.elements();
        let buffer = builder.buffer(
            format!("transfer {}", ofmap.transfer),
            memory,
            None,
            bytes,
            Role::Scratch,
        );
        written.entry(ofmap.transfer).or_insert((buffer, bytes));
        stores.push(Place::Whole(vec![(buffer, bytes)]));
    }
    let mut inputs: HashMap<u32, (BufferId, u64)> = HashMap::new();
    let mut loads = Vec::with_capacity(plan.loads.len());
    for load in &plan.loads {
        let out = &schedule.dram_out[load.out as usize];
        let related: Vec<(BufferId, u64)> = out
            .related
            .iter()
            .flatten()
            .filter_map(|t| written.get(t).copied())
            .collect();
        loads.push(Place::Whole(if !related.is_empty() {
            related
        } else if out.weight {
            Vec::new()
        } else {
            let make = || {
                (
                    builder.buffer(
                        format!("transfer {}", out.transfer),
                        memory,
                        None,
                        out.size,
                        Role::Input,
                    ),
                    out.size,
                )
            };
            vec![*inputs.entry(load.out).or_insert_with(make)]
        }));
    }
    Dram {
        loads,
        stores,
        notes: Vec::new(),
    }
}
