//! From the schedule to the program model.
//!
//! Memories are the L2 and the weight buffer of each core, and DRAM. Queues are the units of each core (`pe`, `vp`, `dt`), its
//! control instructions, the loader of its weight buffer, its transfers to other cores, and DRAM: one queue for the whole chip
//! where every transfer has its place in it (`tensor_order`), otherwise loads and stores of each core in the order in which an
//! infinitely fast machine would come to them. What waits for what is the subject of `plan`; a wait is a token that the task
//! before gives once.

pub(crate) mod builder;
mod dram;
pub(crate) mod frames;
mod lack;
mod paced;
pub(crate) mod pack;
pub(crate) mod plan;
pub(crate) mod region;
pub(crate) mod residents;
mod tasks;
mod weights;
mod whole;

pub use frames::Frames;
pub use paced::Pace;
pub(crate) use paced::paced;
pub use pack::{Array, Arrays, WeightData};
pub use whole::{Precision, whole};

use crate::machine::Machine;
use crate::network::Network;
use crate::read::Error;
use crate::rules::lowering::DATA;
use crate::rules::reading::LIMIT;
use crate::schedule::{Dialect, DramOut, Schedule};
use crate::traffic::Mesh;
use builder::Builder;
use chipless_model::{Limits, Place, Program, TaskId};
use plan::{Node, Plan, Sink};
use residents::Residents;
use std::collections::HashMap;

/// A program that can be run, and what belongs to what.
#[derive(Debug)]
pub struct Lowered<'p> {
    /// The program.
    pub program: Program<'p>,
    /// How the file was understood where it does not say, one sentence each.
    pub notes: Vec<String>,
    /// First and last tile of each workload, core by core.
    pub workloads: Vec<[TaskId; 2]>,
}

/// What a functional run computes with.
#[derive(Debug, Default)]
pub struct Data<'d> {
    /// The network; without it a program can be timed and verified only.
    pub network: Option<&'d Network>,
    /// Weights; without them the run has none, and can only keep time.
    pub weights: Option<WeightData<'d>>,
}

/// What the layers of a network compute, and the weights and parameters that a run brings them.
#[derive(Default)]
struct Packing {
    operations: pack::Operations,
    /// Weights drawn from a seed, of each layer.
    seeded: HashMap<String, Arrays>,
    /// Of the layers of a packed schedule.
    parameters: HashMap<String, pack::Parameters>,
}

impl Packing {
    /// The bytes that a transfer of weights brings; none where there are no weights or the network lacks the layer.
    ///
    /// # Errors
    /// Weights that do not fit the transfer.
    fn weights(
        &mut self,
        schedule: &Schedule,
        network: &Network,
        given: Option<WeightData<'_>>,
        out: &DramOut,
    ) -> Result<Option<Vec<u8>>, Error> {
        let is_packed = schedule.is_packed();
        let destination = out.destinations.first().and_then(|d| d.layer);
        let Some(layer) = destination.or(out.layer) else {
            return Ok(None);
        };
        let layer = schedule.name(layer);
        let operation = self.operations.of(network, layer);
        // Where there is no operation, the tiles of the layer will say why.
        let Ok(operation) = operation.as_ref() else {
            return Ok(None);
        };
        let refuse =
            |why: String| Box::new(DATA.at(Place::file().at(format!("layer {layer}")), why));
        let Some(given) = given else {
            // What fits no weights of the layer needs none to be found.
            let misfit = (schedule.dialect == Dialect::Spec)
                .then(|| pack::misfit(out, layer, operation, is_packed));
            return misfit.flatten().map_or(Ok(None), |why| Err(refuse(why)));
        };
        let arrays = match given {
            WeightData::Given(arrays) => arrays
                .get(layer)
                .ok_or_else(|| format!("layer `{layer}` has no weights among those given")),
            WeightData::Seeded(seed) => Ok(&*self
                .seeded
                .entry(layer.to_owned())
                .or_insert_with(|| pack::seeded(operation, layer, seed).unwrap_or_default())),
        };
        let arrays = arrays.map_err(refuse)?;
        if is_packed {
            let of = || pack::parameters(operation, arrays);
            self.parameters.entry(layer.to_owned()).or_insert_with(of);
        }
        let packed = pack::pack(out, layer, operation, arrays, is_packed).map_err(refuse)?;
        Ok(Some(packed))
    }
}

/// Lowers a schedule for a machine.
///
/// # Errors
/// More tasks or bytes than the limits.
pub fn lower<'p>(
    schedule: &Schedule,
    data: &Data<'_>,
    machine: &Machine,
    limits: &Limits,
) -> Result<Lowered<'p>, Error> {
    let network = data
        .network
        .map(|network| network.at_batch(schedule.batch()));
    let network = network.as_deref();
    let mut builder = Builder::new(limits);
    let frames = Frames::of(schedule);
    let core = &machine.core;
    let bytes = schedule.buffer_size.unwrap_or(core.buffer_bytes);
    let residents = Residents::find(
        schedule,
        core.weight_banks,
        bytes,
        core.weight_bank_bytes,
        &mut builder,
    );
    let (plan, predecessors) = Plan::new(schedule, &residents, frames).into_order();
    let is_packed = schedule.is_packed();
    let mut packing = Packing::default();
    let wrong = std::cell::RefCell::new(Vec::new());
    let mut constants = |name: &str, shape: [u64; 4], element| {
        let Some(WeightData::Given(arrays)) = data.weights else {
            return None;
        };
        let packed = pack::constant(name, shape, element, &arrays.get(name)?.weight);
        packed
            .map_err(|why| {
                let finding = DATA.at(Place::file().at(format!("constant {name}")), why);
                wrong.borrow_mut().push(Box::new(finding));
            })
            .ok()
    };
    let mut weights = |out: usize| {
        let packed = packing.weights(schedule, network?, data.weights, &schedule.dram_out[out]);
        let noted = packed.map_err(|finding| wrong.borrow_mut().push(finding));
        noted.ok().flatten()
    };
    let dram = dram::Dram::new(
        &plan,
        &residents,
        frames,
        network,
        (&mut weights, &mut constants),
        &mut builder,
    );
    if let Some(finding) = wrong.into_inner().into_iter().next() {
        return Err(finding);
    }
    let mesh = Mesh::of(schedule);
    let mut notes = dram.notes.clone();
    if frames == Frames::Workload {
        notes.push("boxes of ofmaps are counted from the corner of their workload".into());
    }
    if is_packed && data.weights.is_some() {
        notes.push(
            "data are packed, as `convert` leaves them: channels are taken to lie without gaps, \
             and each unit to know the multipliers and offsets of its layer, which no transfer brings"
                .into(),
        );
    }
    let emit = tasks::Emit::new(
        &plan,
        &predecessors,
        &residents,
        &dram,
        frames,
        machine,
        &mesh,
        network,
        (packing.operations, packing.parameters),
        builder,
    );
    let (program, workloads) = emit
        .run()
        .map_err(|error| Box::new(LIMIT.at(Place::file(), error.to_string())))?;
    Ok(Lowered {
        program,
        notes,
        workloads,
    })
}

/// The place of each tensor of each snapshot among the transfers of DRAM, in the order in which an infinitely fast machine would
/// come to them, and how many of those there are; `None` for what stays on the chip. A tensor of several transfers has the
/// place of the last.
pub(crate) fn transfers(schedule: &Schedule) -> (Vec<Option<u32>>, u32) {
    let mut builder = Builder::new(&Limits::default());
    let residents = Residents::find(schedule, 1, 0, 0, &mut builder);
    let (plan, predecessors) = Plan::new(schedule, &residents, Frames::of(schedule)).into_order();
    let [loads, stores, sends] =
        [Node::Load(0), Node::Store(0), Node::Send(0)].map(|node| plan.number(node));
    let mut places = vec![None; residents.all.len()];
    let mut next = 0;
    for node in predecessors.sorted() {
        if (loads..stores).contains(&node) {
            for sink in &plan.loads[(node - loads) as usize].sinks {
                if let Sink::Resident(resident) = sink {
                    places[*resident as usize] = Some(next);
                }
            }
        } else if (stores..sends).contains(&node) {
            if let Some(resident) = plan.stores[(node - stores) as usize].staged {
                places[resident as usize] = Some(next);
            }
        } else {
            continue;
        }
        next += 1;
    }
    let snapshots = (0..plan.workloads()).flat_map(|workload| residents.of(workload as usize));
    (
        snapshots
            .map(|resident| places[*resident as usize])
            .collect(),
        next,
    )
}
