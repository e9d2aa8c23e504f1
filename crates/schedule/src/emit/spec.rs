//! The spec's dialect: addresses in L2, the order of DRAM, tiles; and what the replay says of it.

use super::build::build;
use super::jobs::{self, Job, Jobs};
use super::lowered::Reach;
use super::view::View;
use super::written::{Placement, Written};
use super::{Best, Unwritten};
use crate::front::Front;
use crate::machine::Machine;
use crate::model::{self, Block, Cost, Impossible, Objective, intervals};
use crate::tree::Tree;
use chipless_gemini::schedule::Schedule;
use chipless_gemini::{Data, MACHINES, Network};
use chipless_model::Limits;
use chipless_sim::{TimingOnly, Verified};
use std::collections::BTreeSet;

/// Bytes of parameters beside the weights of an output channel.
const PARAMETERS: i64 = chipless_gemini::bytes::CHANNEL_PARAMETERS as i64;
/// Trees of which the replay decides.
const TRIED: usize = 4;

/// The best schedule of some trees, by the replay.
///
/// # Errors
/// What does not fit, or what cannot be executed.
pub fn spec_dialect<'t>(
    written: &Written,
    front: &Front,
    machine: &Machine,
    objective: Objective,
    trees: impl Iterator<Item = (&'t Tree, Cost)>,
) -> Result<Best<'t>, Unwritten> {
    let network = Network::read(written.network_text().as_bytes(), &Limits::default()).map_err(
        |finding| Unwritten::Unsupported(format!("its front-end file cannot be read: {finding}")),
    )?;
    let mut best: Option<(f64, Best<'t>)> = None;
    let mut wrong = None;
    for (tree, cost) in trees.take(TRIED) {
        match schedule(written, front, machine, &network, tree) {
            Ok((schedule, replay)) => {
                let score = objective.of(replay.0, replay.1 as f64);
                if best.as_ref().is_none_or(|(least, _)| score < *least) {
                    best = Some((
                        score,
                        Best {
                            tree,
                            cost,
                            replay,
                            text: schedule.write(),
                        },
                    ));
                }
            }
            Err(error) => wrong = wrong.or(Some(error)),
        }
    }
    match (best, wrong) {
        (Some((_, best)), _) => Ok(best),
        (None, Some(wrong)) => Err(wrong),
        (None, None) => Err(Unwritten::Unsupported("there is no tree".to_owned())),
    }
}

/// The schedule of a tree with its energy and delay by the replay: results stay on the chip where the tree says so and they fit
/// there, else all of them go through DRAM, in pieces that fit.
fn schedule(
    written: &Written,
    front: &Front,
    machine: &Machine,
    network: &Network,
    tree: &Tree,
) -> Result<(Schedule, (f64, i64)), Unwritten> {
    let of_tree = model::with_evaluator(&front.network, machine, tree.batch(), |evaluator| {
        jobs::jobs(evaluator, tree)
    })
    .map_err(Unwritten::Impossible)?;
    let jobs = real_jobs(written, machine, &of_tree, tree.batch());
    let mut split = jobs.clone();
    split.direct.clear();
    let mut wrong = Unwritten::Unsupported("there is no schedule".to_owned());
    for jobs in [Some(jobs), split_jobs(written, machine, &split)?]
        .into_iter()
        .flatten()
    {
        let view = written.view();
        let mut schedule = build(machine, &view, &jobs).convert(Some(network));
        super::aligned::align(&mut schedule, machine)?;
        let needed = fullest(&schedule);
        let present = machine.l2.bytes as u64;
        if needed > present {
            wrong = Unwritten::Impossible(Impossible::Room {
                what: "the schedule".to_owned(),
                needed: needed as i64,
                present: present as i64,
            });
            continue;
        }
        finish(&mut schedule, written, present);
        // Where transfers wait for each other in a circle, all of them through DRAM do not.
        if let Some(replay) = replay(&schedule, network, machine)? {
            return Ok((schedule, replay));
        }
        wrong = Unwritten::Unsupported("its transfers wait for each other in a circle".to_owned());
    }
    Err(wrong)
}

/// Bytes up to which L2 is used.
fn fullest(schedule: &Schedule) -> u64 {
    let tensors = schedule
        .workloads()
        .flat_map(|(_, workload)| &workload.buffer);
    tensors
        .map(|tensor| u64::from(tensor.address.unwrap_or(0)) + tensor.size)
        .max()
        .unwrap_or(0)
}

/// What the conversion leaves plain: the size of L2, the ring, paddings.
fn finish(schedule: &mut Schedule, written: &Written, bytes: u64) {
    schedule.buffer_size = Some(bytes);
    let names: Vec<String> = schedule.names.iter().map(str::to_owned).collect();
    for workload in schedule
        .cores
        .iter_mut()
        .flat_map(|core| &mut core.workloads)
    {
        workload.ring = Some(Box::new([[0, bytes]]));
        let name = names
            .iter()
            .position(|name| schedule.names.find(name) == Some(workload.layer));
        let layer = name.and_then(|at| {
            written
                .layers
                .iter()
                .position(|layer| layer.name == names[at])
        });
        let padding = layer.map_or([0; 4], |layer| {
            let range = |d: usize| {
                [
                    i64::from(workload.bounds.lower[d]),
                    i64::from(workload.bounds.upper[d]) + 1,
                ]
            };
            padding(&written.reach[layer], range(2), range(3))
        });
        workload.padding = Some(padding);
        for tile in &mut workload.tiles {
            tile.padding = Some(padding);
        }
    }
}

/// Rows and columns of padding that a box of the result really uses: top, bottom, left, right.
fn padding(reach: &Reach, rows: [i64; 2], columns: [i64; 2]) -> [u32; 4] {
    let Reach::Window {
        kernel,
        stride,
        padding,
        extents,
        ..
    } = reach
    else {
        return [0; 4];
    };
    let side = |range: [i64; 2], d: usize| {
        let before = padding[d] - range[0] * stride[d];
        let after = (range[1] - 1) * stride[d] - padding[d] + kernel[d] - extents[d];
        [before.max(0) as u32, after.max(0) as u32]
    };
    let ([top, bottom], [left, right]) = (side(rows, 0), side(columns, 1));
    [top, bottom, left, right]
}

/// Jobs of the layers that are really computed, those among them that only move elements.
fn real_jobs(written: &Written, machine: &Machine, of_tree: &Jobs, batch: i64) -> Jobs {
    let mut jobs = Jobs {
        groups: of_tree.groups,
        ..Jobs::default()
    };
    let place = |layer: usize| {
        written
            .of
            .iter()
            .position(|of| *of == Placement::Layer(layer))
    };
    let moving = |of: Placement, images: [i64; 2], list: &mut Vec<Job>| {
        for at in (0..written.of.len()).filter(|at| written.of[*at] == of) {
            let [_, rows, columns] = written.layers[at].output;
            let cores = machine.cores() as i64;
            let parts = cores.min(rows).max(1);
            let across = (cores / parts).min(columns).max(1);
            let all: Vec<u16> = (0..parts * across)
                .map(|place| machine.core_at(place as usize))
                .collect();
            let elements: i64 = written.layers[at].output.iter().product();
            let time =
                elements * (images[1] - images[0]) / (machine.vector_lanes * parts * across) + 1;
            let part = [1, 1, parts as u16, across as u16];
            list.push(Job {
                layer: at,
                images,
                part,
                cores: all,
                time,
                within: None,
            });
        }
    };
    for job in &of_tree.list {
        moving(Placement::Before(job.layer), job.images, &mut jobs.list);
        let Some(layer) = place(job.layer) else {
            continue;
        };
        jobs.list.push(Job {
            layer,
            ..job.clone()
        });
    }
    moving(Placement::Last, [0, batch], &mut jobs.list);
    for (reader, producer) in &of_tree.direct {
        if let (Some(reader), Some(producer)) = (place(*reader), place(*producer)) {
            jobs.direct.insert((reader, producer));
        }
    }
    jobs
}

/// Jobs in pieces small enough that each fits into L2 by itself.
fn split_jobs(
    written: &Written,
    machine: &Machine,
    jobs: &Jobs,
) -> Result<Option<Jobs>, Unwritten> {
    let mut split = Jobs {
        list: Vec::new(),
        direct: BTreeSet::new(),
        groups: jobs.groups,
    };
    for job in &jobs.list {
        let mut pieces = vec![job.clone()];
        while let Some(piece) = pieces.pop() {
            let needed = needed(written, &piece);
            if needed <= machine.l2.bytes {
                split.list.push(piece);
                continue;
            }
            let Some([first, second]) = halves(written, &piece) else {
                let what = format!(
                    "the layer {} for one element",
                    written.layers[job.layer].name
                );
                return Err(Unwritten::Impossible(Impossible::Room {
                    what,
                    needed,
                    present: machine.l2.bytes,
                }));
            };
            // The first half is taken up first.
            pieces.extend([second, first]);
        }
    }
    Ok(Some(split))
}

/// Bytes that the fullest core needs for a job alone.
fn needed(written: &Written, job: &Job) -> i64 {
    let layer = &written.layers[job.layer];
    let reach = &written.reach[job.layer];
    // Channels are counted in multiples of 8, weights have parameters beside them.
    let volume = |block: &Block| {
        let [c, n, h, w] = block.map(|range| (range[1] - range[0]).max(0) as u64);
        (c.next_multiple_of(8) * n * h * w) as i64
    };
    let blocks = job.blocks(layer.output);
    let of = |block: &Block| {
        let read: i64 = (0..layer.operands.len())
            .map(|operand| volume(&reach.needs(operand, block)))
            .sum();
        let weights = layer.weights.map_or(0, |[channels, window]| {
            let each = (channels as u64).next_multiple_of(8) as i64 * window + PARAMETERS;
            (block[0][1] - block[0][0]) * each
        });
        read + weights + volume(block)
    };
    blocks
        .iter()
        .filter(|block| volume(block) > 0)
        .map(of)
        .max()
        .unwrap_or(0)
}

/// A job as two: along images, rows, output channels, columns, whichever needs least.
fn halves(written: &Written, job: &Job) -> Option<[Job; 2]> {
    let whole = job
        .within
        .unwrap_or_else(|| whole(written.layers[job.layer].output));
    let images = job.images[1] - job.images[0];
    if images > i64::from(job.part[1]) {
        let middle = job.images[0] + images / 2;
        let with = |images: [i64; 2]| Job {
            images,
            time: job.time / 2 + 1,
            ..job.clone()
        };
        return Some([with([job.images[0], middle]), with([middle, job.images[1]])]);
    }
    let candidates = [(0, 0), (1, 2), (2, 3)]
        .into_iter()
        .filter(|(d, parts)| whole[*d][1] - whole[*d][0] > i64::from(job.part[*parts]));
    let split = |d: usize| {
        let middle = i64::midpoint(whole[d][0], whole[d][1]);
        let with = |range: [i64; 2]| {
            let mut within = whole;
            within[d] = range;
            Job {
                within: Some(within),
                time: job.time / 2 + 1,
                ..job.clone()
            }
        };
        [with([whole[d][0], middle]), with([middle, whole[d][1]])]
    };
    candidates
        .map(|(d, _)| split(d))
        .min_by_key(|halves| halves.iter().map(|half| needed(written, half)).max())
}

/// Channels, rows and columns of a whole result.
pub(super) fn whole([c, h, w]: [i64; 3]) -> [[i64; 2]; 3] {
    [[0, c], [0, h], [0, w]]
}

impl Job {
    /// The box of each part, in the order of its cores: channels, images, rows, columns.
    pub(super) fn blocks(&self, output: [i64; 3]) -> Vec<Block> {
        let within = self.within.unwrap_or_else(|| whole(output));
        let ranges = [within[0], self.images, within[1], within[2]];
        let ends: Vec<Vec<i64>> = ranges
            .iter()
            .zip(self.part)
            .map(|(range, parts)| {
                intervals(range[1] - range[0], parts)
                    .into_iter()
                    .map(|end| end + range[0])
                    .collect()
            })
            .collect();
        let range = |d: usize, i: usize| [ends[d][i], ends[d][i + 1]];
        let [pk, pb, ph, pw] = self.part.map(usize::from);
        let mut blocks = Vec::with_capacity(self.cores.len());
        for k in 0..pk {
            for b in 0..pb {
                for h in 0..ph {
                    blocks.extend(
                        (0..pw).map(|w| [range(0, k), range(1, b), range(2, h), range(3, w)]),
                    );
                }
            }
        }
        blocks
    }
}

impl Written {
    fn view(&self) -> View<'_> {
        View::real(self.layers.clone(), self.inputs.clone(), self.reach.clone())
    }
}

/// Energy (pJ) and delay (cycles) of a schedule as Chipless replays it; nothing where it comes to no end.
fn replay(
    schedule: &Schedule,
    network: &Network,
    machine: &Machine,
) -> Result<Option<(f64, i64)>, Unwritten> {
    let own = MACHINES
        .iter()
        .find(|(name, _)| *name == "set")
        .map_or("", |(_, text)| text);
    let mut of = chipless_gemini::Machine::parse(own).map_err(Unwritten::Unsupported)?;
    of.clock_mhz = machine.clock / 1e6;
    of.core.buffer_bytes = machine.l2.bytes as u64;
    of.core.weight_banks = machine.weight_buffer[0] as u32;
    of.core.weight_bank_bytes = machine.weight_buffer[1] as u64;
    of.core.macs_per_cycle = machine.macs() as f64;
    of.dram.bytes_per_second = machine.dram.0 * machine.clock;
    of.dram.bytes_per_second_per_core = 0.0;
    of.noc.link_bytes_per_cycle = machine.link.0;
    of.energy.mac = machine.mac_energy;
    of.energy.vector = machine.vector_energy;
    of.energy.l2_read = machine.l2.read;
    of.energy.l2_write = machine.l2.write;
    of.energy.hop = machine.hop_energy;
    of.energy.dram = machine.dram_energy;
    let data = Data {
        network: Some(network),
        weights: None,
    };
    let lowered =
        chipless_gemini::lower(schedule, &data, &of, &Limits::default()).map_err(|finding| {
            Unwritten::Unsupported(format!("its schedule cannot be replayed: {finding}"))
        })?;
    let outcome = chipless_sim::run(&Verified::assume(&lowered.program), &mut TimingOnly);
    if outcome.end.is_err() {
        return Ok(None);
    }
    let timeline = outcome.timeline;
    let mesh = chipless_gemini::traffic::Mesh::of(schedule);
    let traffic = chipless_gemini::traffic::Traffic::of(schedule, &mesh);
    let energy = chipless_gemini::energy::Energy::of(schedule, &traffic, &of).total();
    Ok(Some((energy, of.cycles_of(timeline.end) as i64)))
}
