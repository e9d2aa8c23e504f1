//! Tasks: tiles, transfers and what they wait for, on the queues of their units.

mod operands;
mod refills;
mod transfers;

use super::builder::{Builder, NewTask};
use super::dram::Dram;
use super::frames::Frames;
use super::lack::Lacks;
use super::pack::{Operations, Parameters};
use super::plan::{Load, Node, Plan, Predecessors, Sink};
use super::region::{Layout, Region};
use super::residents::Residents;
use super::weights::Weights;
use crate::energy;
use crate::kernels::control::Control;
use crate::kernels::tile::{Meaning, Tile};
use crate::machine::Machine;
use crate::network::Network;
use crate::operation::{Kind, Operation};
use crate::rules::meaning::WEIGHTS;
use crate::schedule::{Bounds, Dialect, LayerType, Peer, Workload};
use crate::traffic::Mesh;
use chipless_model::{
    BuildError, Program, QueueId, Resource, ResourceId, Rule, SyncId, TaskId, Time,
};
use operands::outputs;
use smallvec::SmallVec;
use std::collections::HashMap;

/// Queues of a core.
#[derive(Clone, Copy, Debug)]
struct Queues {
    control: QueueId,
    units: [QueueId; 3],
    weights: QueueId,
    send: QueueId,
    load: QueueId,
    store: QueueId,
}

/// Emission of a program.
pub(crate) struct Emit<'e, 's, 'p> {
    plan: &'e Plan<'s>,
    predecessors: &'e Predecessors,
    residents: &'e Residents<'s>,
    dram: &'e Dram,
    frames: Frames,
    /// Whether the file says how elements lie in memory: the ancestors do not.
    is_exact: bool,
    is_packed: bool,
    machine: &'e Machine,
    mesh: &'e Mesh,
    network: Option<&'e Network>,
    operations: Operations,
    /// By layer, in packed schedules.
    parameters: HashMap<String, Parameters>,
    builder: Builder<'p>,
    queues: Vec<Queues>,
    /// Queue of each node.
    queue_of: Vec<QueueId>,
    /// What each node gives at its end, where somebody on another queue waits for it.
    tokens: Vec<Option<SyncId>>,
    memory_rate: ResourceId,
    links: HashMap<usize, ResourceId>,
    /// Buffers of pieces on their way that have no place in a snapshot, by workload and ofmap.
    streams: HashMap<(u32, u32), Layout>,
    /// Further waits of loads into a weight buffer: the loader is in order.
    after_tile: HashMap<u32, SyncId>,
    /// Parts of entries of weight buffers that a later workload fills again, and the tile that reads them last.
    refilled: HashMap<u32, Vec<(Region, SyncId)>>,
    /// Tile shape of the `pe` workload before, by core.
    shapes: Vec<Option<Shape>>,
    lacks: Lacks,
}

/// What a `pe` unit is configured for, besides formats and requantisation.
type Shape = (
    Option<[u32; 4]>,
    Option<[u32; 4]>,
    Option<[u32; 2]>,
    [u64; 4],
    [u64; 2],
    u64,
);

const UNITS: [&str; 3] = ["pe", "vp", "dt"];

fn unit(workload: &Workload) -> usize {
    match workload.layer_type.unit() {
        LayerType::Pe => 0,
        LayerType::Vp => 1,
        _ => 2,
    }
}

impl<'e, 's, 'p> Emit<'e, 's, 'p> {
    #[allow(
        clippy::too_many_arguments,
        reason = "everything that lowering has found"
    )]
    pub(crate) fn new(
        plan: &'e Plan<'s>,
        predecessors: &'e Predecessors,
        residents: &'e Residents<'s>,
        dram: &'e Dram,
        frames: Frames,
        machine: &'e Machine,
        mesh: &'e Mesh,
        network: Option<&'e Network>,
        (operations, parameters): (Operations, HashMap<String, Parameters>),
        mut builder: Builder<'p>,
    ) -> Emit<'e, 's, 'p> {
        let schedule = plan.schedule;
        let rate = machine.dram_rate(schedule.cores.len());
        let memory_rate = builder.program.resources.push(Resource {
            name: "dram".into(),
            capacity: rate,
            per_transfer: rate,
            off_chip: true,
        });
        let mut links = HashMap::new();
        let rate = machine.noc.link_bytes_per_cycle * machine.clock_mhz * 1e6;
        for link in (0..mesh.links()).filter(|link| mesh.ends(*link).is_some()) {
            let name = format!("link {}", mesh.name(link));
            links.insert(
                link,
                builder.program.resources.push(Resource {
                    name,
                    capacity: rate,
                    per_transfer: rate,
                    off_chip: false,
                }),
            );
        }
        let shared = plan.is_ordered.then(|| builder.queue("dram".into()));
        let queues: Vec<Queues> = schedule
            .cores
            .iter()
            .map(|core| {
                let mut queue = |name: &str| builder.queue(format!("core{}.{name}", core.id));
                Queues {
                    control: queue("ct"),
                    units: UNITS.map(&mut queue),
                    weights: queue("lw"),
                    send: queue("send"),
                    load: shared.unwrap_or_else(|| queue("load")),
                    store: shared.unwrap_or_else(|| queue("store")),
                }
            })
            .collect();
        let mut emit = Emit {
            plan,
            predecessors,
            residents,
            dram,
            frames,
            is_exact: schedule.dialect == Dialect::Spec,
            is_packed: schedule.is_packed(),
            machine,
            mesh,
            network,
            operations,
            parameters,
            builder,
            queue_of: Vec::with_capacity(plan.nodes()),
            queues,
            tokens: Vec::new(),
            memory_rate,
            links,
            streams: HashMap::new(),
            after_tile: HashMap::new(),
            refilled: HashMap::new(),
            shapes: vec![None; schedule.cores.len()],
            lacks: Lacks::default(),
        };
        emit.assign();
        emit
    }

    fn core_of_load(&self, load: &Load) -> usize {
        let first = load.sinks.first().map(|sink| match sink {
            Sink::Resident(r) => self.residents.all[*r as usize].core,
            Sink::Held(h) => self.residents.held[*h as usize].core,
        });
        let named = || {
            let out = &self.plan.schedule.dram_out[load.out as usize];
            let Peer::Core(id) = out.destinations.first()?.peer else {
                return None;
            };
            self.plan
                .schedule
                .cores
                .iter()
                .position(|core| core.id == id)
        };
        first.or_else(named).unwrap_or(0)
    }

    /// Gives each node its queue, and a token if somebody waits on another one.
    fn assign(&mut self) {
        let plan = self.plan;
        let mut of = Vec::with_capacity(plan.nodes());
        of.extend(self.queues.iter().map(|q| q.control));
        of.extend((0..plan.workloads()).map(|index| {
            let (core, _, workload) = plan.workload(index);
            self.queues[core].units[unit(workload)]
        }));
        of.extend(plan.loads.iter().map(|load| {
            self.queues
                .get(self.core_of_load(load))
                .map_or(QueueId::from_raw(0), |q| q.load)
        }));
        of.extend(
            plan.stores
                .iter()
                .map(|store| self.queues[plan.workload(store.workload).0].store),
        );
        of.extend(
            plan.sends
                .iter()
                .map(|send| self.queues[plan.workload(send.workload).0].send),
        );
        of.extend(self.queues.iter().map(|q| q.control));
        let mut awaited = vec![false; of.len()];
        for node in 0..of.len() as u32 {
            for before in self.predecessors.of(node) {
                awaited[*before as usize] |= of[*before as usize] != of[node as usize];
            }
        }
        // Loads of the weight buffer wait for the workload before the first snapshot with the entry.
        for core in 0..plan.schedule.cores.len() {
            for index in plan.first_of_core[core]..plan.first_of_core[core + 1] {
                awaited[plan.number(Node::Workload(index)) as usize] |=
                    self.machine.core.weight_banks > 0 && unit(plan.workload(index).2) != 2;
            }
        }
        let cores = self.queues.len();
        let has_begin = self.machine.overhead.begin > 0.0;
        let last = of.len() - cores;
        self.tokens = (0..of.len())
            .map(|node| {
                let exists = awaited[node] && node < last && (has_begin || node >= cores);
                exists.then(|| self.builder.token(String::new()))
            })
            .collect();
        self.queue_of = of;
    }

    /// Emits everything: the program, and first and last tile of each workload.
    pub(crate) fn run(mut self) -> Result<(Program<'p>, Vec<[TaskId; 2]>), BuildError> {
        let plan = self.plan;
        let overhead = &self.machine.overhead;
        let mut tiles = Vec::with_capacity(plan.workloads() as usize);
        for core in 0..self.queues.len() {
            let at = plan.schedule.cores[core].at.0;
            if overhead.begin > 0.0 {
                let gives = self.name(Node::Begin(core as u32), || {
                    format!("core{} begun", plan.schedule.cores[core].id)
                });
                let task = NewTask {
                    queue: self.queues[core].control,
                    waits: &[],
                    gives,
                    demands: &[],
                    fixed: self.machine.cycles(overhead.begin),
                    at,
                    label: None,
                };
                self.builder.task(task, Control("begin"))?;
            }
            for index in plan.first_of_core[core]..plan.first_of_core[core + 1] {
                tiles.push(self.workload(index)?);
            }
        }
        let sorted = self.predecessors.sorted();
        let first_load = plan.number(Node::Load(0));
        let first_store = plan.number(Node::Store(0));
        let first_send = plan.number(Node::Send(0));
        let first_end = plan.number(Node::End(0));
        for node in &plan.dram_queue {
            match node {
                Node::Load(index) => self.load(*index)?,
                Node::Store(index) => self.store(*index)?,
                _ => {}
            }
        }
        for node in sorted {
            if !plan.is_ordered && (first_load..first_store).contains(&node) {
                self.load(node - first_load)?;
            } else if !plan.is_ordered && (first_store..first_send).contains(&node) {
                self.store(node - first_store)?;
            } else if (first_send..first_end).contains(&node) {
                self.send(node - first_send)?;
            }
        }
        if overhead.end > 0.0 {
            for core in 0..self.queues.len() as u32 {
                let queue = self.queues[core as usize].control;
                let waits = self.waits(Node::End(core), queue);
                let at = plan.schedule.cores[core as usize].at.0;
                let task = NewTask {
                    queue,
                    waits: &waits,
                    gives: None,
                    demands: &[],
                    fixed: self.machine.cycles(overhead.end),
                    at,
                    label: None,
                };
                self.builder.task(task, Control("end"))?;
            }
        }
        if !self.lacks.is_empty() {
            self.builder.program.lint = Some(Box::new(self.lacks));
        }
        Ok((self.builder.finish()?, tiles))
    }

    /// Names the token of a node, if it has one.
    fn name(&mut self, node: Node, name: impl FnOnce() -> String) -> Option<SyncId> {
        let token = self.tokens[self.plan.number(node) as usize]?;
        self.builder.program.syncs[token].name = name();
        Some(token)
    }

    /// What a node on a queue waits for: whatever comes before it on another queue.
    fn waits(&self, node: Node, queue: QueueId) -> SmallVec<[SyncId; 8]> {
        let before = self.predecessors.of(self.plan.number(node)).iter();
        before
            .filter(|b| self.queue_of[**b as usize] != queue)
            .filter_map(|b| self.tokens[*b as usize])
            .collect()
    }

    fn label(&self, workload: &Workload) -> Box<str> {
        self.plan.schedule.name(workload.layer).into()
    }

    /// What each of so many tiles of a workload takes.
    fn time_of_tile(&self, workload: &Workload, tiles: usize) -> Time {
        let each = (workload.time as f64 / tiles as f64 + 0.5).floor();
        self.machine.cycles(each + self.machine.overhead.tile)
    }

    /// Configuration and tiles of a workload, and what brings its weights from L2.
    fn workload(&mut self, index: u32) -> Result<[TaskId; 2], BuildError> {
        let plan = self.plan;
        let (core, position, workload) = plan.workload(index);
        let unit = unit(workload);
        let queue = self.queues[core].units[unit];
        let configurations = self.configurations(core, workload, unit);
        let at = workload.at.0;
        if let Some(configurations) = configurations {
            self.configure(configurations, queue, workload)?;
        }
        let boxes = boxes(workload);
        let ranges: Vec<[u32; 2]> = boxes.iter().map(|b| [b.lower[1], b.upper[1]]).collect();
        let weights = Weights::of(
            workload,
            index,
            &ranges,
            self.residents,
            core,
            self.machine.core.weight_banks,
        );

        // What waits where: weights in L2 keep the loads of the weight buffer waiting, everything else the first tile.
        let node = plan.number(Node::Workload(index));
        let through: &[u32] = plan.weight_loads.get(&index).map_or(&[], Vec::as_slice);
        let moves = weights.as_ref().map_or(&[][..], |w| &w.moves);
        let (mut waits, weight_waits) = self.waits_of(node, queue, |before| {
            !moves.is_empty() && through.contains(&before)
        });
        let (move_tokens, tile_tokens) =
            self.weight_moves(index, core, position, weights.as_ref(), &weight_waits)?;

        let ofmaps = 0..workload.ofmaps.len();
        let streams: Vec<_> = ofmaps
            .map(|number| self.targets(index, core, workload, number))
            .collect();
        let name = plan.schedule.name(workload.layer);
        let meaning: Meaning = self
            .network
            .map(|network| self.operations.of(network, name));
        let parameters = self.parameters.get(name).cloned();
        let operands = self.operands(index, workload, &meaning);
        let fixed = self.time_of_tile(workload, boxes.len());
        let mut ends = [TaskId::from_raw(0); 2];
        let last = boxes.len() - 1;
        let mut is_lacking = false;
        for (tile, bounds) in boxes.iter().enumerate() {
            if tile > 0 {
                waits.clear();
            }
            if let Some(chunk) = moves.iter().position(|m| m.tiles[0] == tile) {
                waits.push(move_tokens[chunk]);
            }
            let mut gives: SmallVec<[SyncId; 2]> = SmallVec::new();
            gives.extend(tile_tokens.get(&tile).copied());
            if tile == last {
                gives.extend(self.done(index, core, workload));
            }
            let kernel = Tile {
                unit: UNITS[unit],
                bounds: *bounds,
                inputs: self.inputs(
                    index,
                    core,
                    workload,
                    (workload.tiles.get(tile), bounds),
                    &operands,
                    &meaning,
                ),
                weights: weights.as_ref().and_then(|w| w.tiles[tile].clone()),
                products: energy::products(workload).unwrap_or(0),
                outputs: outputs(bounds, &streams),
                parameters: parameters.clone(),
                meaning: meaning.clone(),
            };
            let lack = if is_lacking {
                None
            } else {
                self.lack(&kernel, workload, tile == 0)
            };
            let at = workload.tiles.get(tile).map_or(at, |t| t.at.0);
            let task = NewTask {
                queue,
                waits: &waits,
                gives: gives.first().copied(),
                demands: &[],
                fixed,
                at,
                label: Some(self.label(workload)),
            };
            let id = self.builder.task(task, kernel)?;
            // The first of its tiles that lacks something stands for the others.
            if let Some((rule, lack)) = lack {
                is_lacking = true;
                let message = self.lacking(core, workload, &lack);
                self.lacks.add(id, rule, message);
            }
            if let [_, second] = gives[..] {
                self.builder.also_gives(id, second);
            }
            if tile == 0 {
                ends[0] = id;
            }
            ends[1] = id;
        }
        Ok(ends)
    }

    /// The token of a finished workload, if anything waits for it.
    fn done(&mut self, index: u32, core: usize, workload: &Workload) -> Option<SyncId> {
        let schedule = self.plan.schedule;
        self.name(Node::Workload(index), || {
            format!(
                "core{} workload {} done",
                schedule.cores[core].id, workload.id
            )
        })
    }

    /// What an exact run would lack to compute a tile.
    fn lack(
        &self,
        tile: &Tile,
        workload: &Workload,
        is_first: bool,
    ) -> Option<(&'static Rule, String)> {
        let Some(Ok(operation)) = tile.meaning.as_deref() else {
            return None;
        };
        if !self.is_exact {
            return None;
        }
        let lack = tile.lack(operation, self.is_packed);
        lack.or_else(|| {
            self.foreign_weights(workload, operation)
                .filter(|_| is_first)
        })
    }

    /// Says what a workload lacks, by its names in the file.
    fn lacking(&self, core: usize, workload: &Workload, lack: &str) -> String {
        let schedule = self.plan.schedule;
        let core = schedule.file_core(schedule.cores[core].id);
        let (number, layer) = (workload.id, schedule.name(workload.layer));
        format!("expected workload {number} of core {core} ({layer}) {lack}")
    }

    /// Weights that a workload names and that are not those of its layer, as the findings of a tile have it. The parameters of packed data are those
    /// of the layer whose weights are loaded.
    fn foreign_weights(
        &self,
        workload: &Workload,
        operation: &Operation,
    ) -> Option<(&'static Rule, String)> {
        if !matches!(operation.kind, Kind::Convolution { .. }) {
            return None;
        }
        let schedule = self.plan.schedule;
        let found = workload
            .weight
            .iter()
            .flat_map(|weight| &weight.transfers)
            .find_map(|transfer| {
                let Some(out) = self.plan.outs.get(transfer) else {
                    return Some(format!("no load of transfer {transfer}"));
                };
                let out = &schedule.dram_out[*out];
                let named = out.destinations.first().and_then(|to| to.layer);
                match named.or(out.layer) {
                    _ if !out.weight => Some(format!("the feature map of transfer {transfer}")),
                    Some(layer) if layer == workload.layer => None,
                    Some(layer) => Some(format!("those of {}", schedule.name(layer))),
                    None => Some(format!("transfer {transfer}, which names no layer")),
                }
            })?;
        Some((
            &WEIGHTS,
            format!("to compute with its weights, found {found}"),
        ))
    }

    /// The task that configures a unit for a workload.
    fn configure(
        &mut self,
        configurations: u32,
        queue: QueueId,
        workload: &Workload,
    ) -> Result<(), BuildError> {
        let cycles = f64::from(configurations) * self.machine.overhead.configure;
        let task = NewTask {
            queue,
            waits: &[],
            gives: None,
            demands: &[],
            fixed: self.machine.cycles(cycles),
            at: workload.at.0,
            label: Some(self.label(workload)),
        };
        self.builder.task(task, Control("configure"))?;
        Ok(())
    }

    /// What comes before a node on other queues: for its first tile, and for the loads of its weight buffer.
    fn waits_of(
        &self,
        node: u32,
        queue: QueueId,
        of_weights: impl Fn(u32) -> bool,
    ) -> (SmallVec<[SyncId; 8]>, SmallVec<[SyncId; 4]>) {
        let mut waits: SmallVec<[SyncId; 8]> = SmallVec::new();
        let mut weight_waits: SmallVec<[SyncId; 4]> = SmallVec::new();
        for before in self.predecessors.of(node) {
            let Some(token) = self.tokens[*before as usize] else {
                continue;
            };
            if self.queue_of[*before as usize] == queue {
                continue;
            }
            if of_weights(*before) {
                weight_waits.push(token);
            } else {
                waits.push(token);
            }
        }
        (waits, weight_waits)
    }

    /// Configuration instructions of a workload; `None` for a unit that has none. A unit has its task on every machine, also on one where
    /// it takes no time: tasks are named by their place in the queue, and a name means the same task whatever the machine.
    fn configurations(&mut self, core: usize, workload: &Workload, unit: usize) -> Option<u32> {
        let overhead = &self.machine.overhead;
        if unit != 0 {
            return (unit == 1).then_some(overhead.vp_configurations);
        }
        let shape = workload.tiles.first().map(|tile| {
            let pe = tile.pe.as_deref();
            let input = tile.ifmap.unwrap_or_default().shape();
            (
                pe.and_then(|p| p.activation_mini_tile),
                pe.and_then(|p| p.output_mini_tile),
                pe.and_then(|p| p.mtc0_mtk0),
                tile.ofmap.shape(),
                [input[0], input[1]],
                workload.weight.as_ref().map_or(0, |w| w.bounds.shape()[3]),
            )
        });
        let changed = self.shapes[core] != shape;
        self.shapes[core] = shape;
        let more = if changed {
            overhead.pe_shape_configurations
        } else {
            0
        };
        Some(overhead.pe_configurations + more)
    }
}

/// All bytes of a buffer for one piece.
fn stream(layout: &Layout) -> Region {
    let [n, _, h, w] = layout.bounds.shape();
    Region::contiguous(
        layout.buffer,
        0,
        [n, h, w]
            .into_iter()
            .fold(layout.pixel, u64::saturating_mul),
    )
}

/// The boxes of a workload's tiles: one where the file has none.
fn boxes(workload: &Workload) -> Vec<Bounds> {
    if workload.tiles.is_empty() {
        vec![workload.bounds]
    } else {
        workload.tiles.iter().map(|t| t.ofmap).collect()
    }
}
