//! The spec's dialect: addresses in L2, the order of DRAM, tiles; and what the replay says of it.

use super::Unwritten;
use super::build::{Built, bounds, build};
use super::jobs::{self, Job, Jobs};
use super::lives::Relief;
use super::lowered::Reach;
use super::view::{Producer, View};
use super::written::{Placement, Written};
use crate::machine::Machine;
use crate::model::node::Branch;
use crate::model::segment::Evaluator;
use crate::model::{Block, Impossible, intervals};
use crate::search::refine::Figures;
use chipless_gemini::bytes::{feature_map, usual_align, weights};
use chipless_gemini::lower::Pace;
use chipless_gemini::replay::DramQueue;
use chipless_gemini::schedule::Schedule;
use chipless_gemini::{Data, Document, MACHINES, Name, Network};
use chipless_model::Limits;
use chipless_sim::{TimingOnly, Verified};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of parameters beside the weights of an output channel.
pub(super) const PARAMETERS: i64 = chipless_gemini::bytes::CHANNEL_PARAMETERS as i64;

/// What the queue of DRAM does in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramCycles {
    /// Bytes from and to DRAM.
    pub bytes: u64,
    /// How many of them are results that are read again on the chip.
    pub result_bytes: u64,
    /// How many of them are outputs.
    pub output_bytes: u64,
    /// Cycles of the bytes at the bandwidth of DRAM.
    pub at_bandwidth: i64,
    /// Cycles in which a transfer runs.
    pub busy: i64,
    /// Cycles of the whole replay, by the times that the file states.
    pub all: i64,
}

/// Everything that trees are made schedules with.
pub(super) struct Emitter<'e> {
    pub(super) written: &'e Written,
    pub(super) machine: &'e Machine,
    /// The network as it is executed.
    network: Network,
    /// The machine as the replay has it.
    pub(super) timed: chipless_gemini::Machine,
}

/// Bytes of text for each source of a tensor: certainly more than the first, and hardly more than the second (usually some 400). Between them, the text
/// itself is measured.
const TEXT_OF_SOURCE: [u64; 2] = [100, 2000];

/// Refuses a schedule of more text than `run` and `check` read.
fn refuse_huge(schedule: &Schedule) -> Result<(), Unwritten> {
    let most = Limits::default().json_bytes;
    let workloads = schedule.cores.iter().flat_map(|core| &core.workloads);
    let tensors = workloads.flat_map(|workload| &workload.buffer);
    let sources: u64 = tensors.map(|tensor| tensor.sources.len() as u64).sum();
    let [least, many] = TEXT_OF_SOURCE;
    if sources * many <= most || sources * least <= most && schedule.write().len() as u64 <= most {
        return Ok(());
    }
    Err(Unwritten::Unsupported(format!(
        "its schedules have more than {most} bytes of text, the most that `run` reads: schedule fewer images, or on fewer cores"
    )))
}

impl<'e> Emitter<'e> {
    pub(super) fn new(
        written: &'e Written,
        machine: &'e Machine,
    ) -> Result<Emitter<'e>, Unwritten> {
        let network = Network::read(written.network_text().as_bytes(), &Limits::default());
        Ok(Emitter {
            written,
            machine,
            network: network.map_err(|finding| {
                let text = format!("its front-end file cannot be read: {finding}");
                Unwritten::Unsupported(text)
            })?,
            timed: timed(machine).map_err(Unwritten::Unsupported)?,
        })
    }

    /// The schedule of a tree with its energy and delay by the replay. Results go from core to core where the tree says so, and
    /// weights stay for all sub-batches; where a core is too full for that, some of them go through DRAM or are loaded again.
    pub(super) fn schedule(
        &self,
        evaluator: &mut Evaluator<'_>,
        root: &Branch,
    ) -> Result<(Schedule, Figures), Unwritten> {
        let (written, machine) = (self.written, self.machine);
        let of_tree = jobs::jobs(evaluator, root);
        let jobs = real_jobs(written, machine, &of_tree, i64::from(root.batch));
        let mut jobs = split_jobs(written, machine, jobs)?;
        jobs.kept = (0..written.layers.len()).collect();
        let bytes = machine.l2.bytes as u64;
        loop {
            let Built { schedule, steps } = build(machine, &written.view(), &jobs);
            let mut schedule = schedule.convert(Some(&self.network));
            super::aligned::align(&mut schedule, machine, written.bits)?;
            match super::lives::place(&mut schedule, &steps, bytes) {
                Ok(()) => {
                    finish(&mut schedule, written, bytes);
                    schedule.queue_at(Pace {
                        dram: machine.dram.0,
                        link: machine.link.0,
                    });
                    refuse_huge(&schedule)?;
                    let replay = self.replay(&schedule)?;
                    schedule.fit_times(&self.network);
                    return Ok((schedule, replay));
                }
                Err(crowded) => {
                    if relieve(&mut jobs, written, &schedule, &crowded.reliefs) {
                        continue;
                    }
                    // Everything through DRAM, each piece of work by itself.
                    if jobs.direct.is_empty() && jobs.kept.is_empty() {
                        return Err(Unwritten::Impossible(Impossible::Room {
                            what: format!("the layer {}", schedule.name(crowded.layer)),
                            needed: crowded.needed as i64,
                            stream: 0,
                            present: machine.l2.bytes,
                        }));
                    }
                    jobs.direct.clear();
                    jobs.kept.clear();
                }
            }
        }
    }

    /// Why a schedule is refused by what `check` finds in the file. A proof of its program takes as long again.
    pub(super) fn faults_of_file(&self, text: &str) -> Option<String> {
        let limits = Limits::default();
        let document = match Document::read(text.as_bytes(), "schedule.json", &limits) {
            Ok(document) => document,
            Err(finding) => return Some(finding.to_string()),
        };
        let findings = document.findings(Some(&self.network), None, &limits);
        let mut faults = findings.iter().filter(|finding| finding.is_error());
        faults.next().map(ToString::to_string)
    }

    /// Why a schedule is refused.
    pub(super) fn faults(&self, text: &str) -> Option<String> {
        if let Some(fault) = self.faults_of_file(text) {
            return Some(fault);
        }
        let limits = Limits::default();
        let document = match Document::read(text.as_bytes(), "schedule.json", &limits) {
            Ok(document) => document,
            Err(finding) => return Some(finding.to_string()),
        };
        let data = self.data();
        let lowered = chipless_gemini::lower(&document.schedule, &data, &self.timed, &limits);
        match lowered {
            Err(finding) => Some(finding.to_string()),
            Ok(lowered) => chipless_verify::verify(&lowered.program)
                .err()
                .and_then(|findings| Some(findings.first()?.to_string())),
        }
    }

    pub(super) fn data(&self) -> Data<'_> {
        Data {
            network: Some(&self.network),
            weights: None,
        }
    }

    /// What the queue of DRAM does in the replay of a schedule.
    pub(super) fn dram_cycles(&self, schedule: &Schedule) -> Result<DramCycles, Unwritten> {
        let limits = Limits::default();
        let lowered = chipless_gemini::lower(schedule, &self.data(), &self.timed, &limits);
        let program = lowered
            .map_err(|finding| Unwritten::Unsupported(finding.to_string()))?
            .program;
        let timeline = chipless_sim::run(&Verified::assume(&program), &mut TimingOnly).timeline;
        let queue = DramQueue::of(&program, &timeline);
        let cycles = |time| self.timed.cycles_of(time) as i64;
        Ok(DramCycles {
            bytes: queue.bytes,
            result_bytes: queue.result_bytes,
            output_bytes: queue.output_bytes,
            at_bandwidth: cycles(queue.at_bandwidth),
            busy: cycles(queue.busy),
            all: cycles(timeline.end),
        })
    }

    /// What Chipless' replay says of a schedule.
    fn replay(&self, schedule: &Schedule) -> Result<Figures, Unwritten> {
        let unsupported = |text: String| {
            Unwritten::Unsupported(format!("its schedule cannot be replayed: {text}"))
        };
        let limits = Limits::default();
        let lowered = chipless_gemini::lower(schedule, &self.data(), &self.timed, &limits)
            .map_err(|finding| unsupported(finding.to_string()))?;
        let outcome = chipless_sim::run(&Verified::assume(&lowered.program), &mut TimingOnly);
        if outcome.end.is_err() {
            let text = schedule.write();
            let fault = self.faults(&text);
            return Err(unsupported(
                fault.unwrap_or_else(|| "it does not come to its end".to_owned()),
            ));
        }
        let mesh = chipless_gemini::traffic::Mesh::of(schedule);
        let traffic = chipless_gemini::traffic::Traffic::of(schedule, &mesh);
        let energy = chipless_gemini::energy::Energy::of(schedule, &traffic, &self.timed).total();
        let delay = self.timed.cycles_of(outcome.timeline.end);
        let working = schedule
            .cores
            .iter()
            .filter(|core| !core.workloads.is_empty());
        Ok(Figures {
            energy,
            delay: delay as i64,
            cores: working.count(),
        })
    }
}

/// Takes what is too much off the cores; false where nothing is left to take.
fn relieve(jobs: &mut Jobs, written: &Written, schedule: &Schedule, reliefs: &[Relief]) -> bool {
    let layer = |name: Name| {
        let name = schedule.name(name);
        written.layers.iter().position(|layer| layer.name == name)
    };
    let mut helped = false;
    for relief in reliefs {
        helped |= match *relief {
            Relief::ThroughDram { reader, producer } => match (layer(reader), layer(producer)) {
                (Some(reader), Some(producer)) => jobs.direct.remove(&(reader, producer)),
                _ => false,
            },
            Relief::LoadAgain { layer: name } => {
                layer(name).is_some_and(|layer| jobs.kept.remove(&layer))
            }
        };
    }
    helped
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
    let mut made = vec![vec![false; batch.max(0) as usize]; written.of.len()];
    // The segment in which each layer runs; one that moves elements, in that of its first reader.
    let mut segments: BTreeMap<usize, usize> = BTreeMap::new();
    let mut bring = |layers: BTreeSet<usize>, images: [i64; 2], list: &mut Vec<Job>| {
        for layer in layers {
            for image in images[0]..images[1] {
                if std::mem::replace(&mut made[layer][image as usize], true) {
                    continue;
                }
                match list.last_mut() {
                    Some(job) if job.layer == layer && job.images[1] == image => {
                        *job = moving(written, machine, layer, [job.images[0], image + 1]);
                    }
                    _ => list.push(moving(written, machine, layer, [image, image + 1])),
                }
            }
        }
    };
    for job in &of_tree.list {
        let Some(layer) = place(job.layer) else {
            continue;
        };
        // Elements are moved before whichever reader a tree has first.
        let moved = moved_for(written, layer);
        if let Some(segment) = of_tree.segments.get(&job.layer) {
            segments.insert(layer, *segment);
            for moved in &moved {
                segments.entry(*moved).or_insert(*segment);
            }
        }
        bring(moved, job.images, &mut jobs.list);
        jobs.list.push(Job {
            layer,
            ..job.clone()
        });
    }
    let rest = (0..written.of.len()).filter(|at| moves(written, *at));
    bring(rest.collect(), [0, batch], &mut jobs.list);
    for (reader, producer) in &of_tree.direct {
        if let (Some(reader), Some(producer)) = (place(*reader), place(*producer)) {
            jobs.direct.insert((reader, producer));
        }
    }
    // What moves elements within a segment takes and gives them from core to core, too.
    for (reader, segment) in &segments {
        for producer in layers_read(written, *reader) {
            let is_moved = moves(written, *reader) || moves(written, producer);
            if is_moved && segments.get(&producer) == Some(segment) {
                jobs.direct.insert((*reader, producer));
            }
        }
    }
    jobs
}

/// Whether a layer only moves elements.
fn moves(written: &Written, layer: usize) -> bool {
    !matches!(written.of[layer], Placement::Layer(_))
}

/// The layers that move elements for a layer, one after another; each stands behind those that it reads.
fn moved_for(written: &Written, layer: usize) -> BTreeSet<usize> {
    let (mut found, mut open) = (BTreeSet::new(), vec![layer]);
    while let Some(reader) = open.pop() {
        for producer in layers_read(written, reader) {
            if moves(written, producer) && found.insert(producer) {
                open.push(producer);
            }
        }
    }
    found
}

/// The layers whose results a layer reads.
fn layers_read(written: &Written, reader: usize) -> impl Iterator<Item = usize> {
    let operands = written.layers[reader].operands.iter();
    let parts = operands.flat_map(|operand| &operand.parts);
    parts.filter_map(|part| match part.producer {
        Producer::Layer(producer) => Some(producer),
        _ => None,
    })
}

/// A layer that moves elements of some images, over the cores row by row.
fn moving(written: &Written, machine: &Machine, layer: usize, images: [i64; 2]) -> Job {
    let [_, rows, columns] = written.layers[layer].output;
    let cores = machine.cores() as i64;
    let parts = cores.min(rows).max(1);
    let across = (cores / parts).min(columns).max(1);
    let elements: i64 = written.layers[layer].output.iter().product();
    Job {
        layer,
        images,
        part: [1, 1, parts as u16, across as u16],
        cores: (0..parts * across)
            .map(|place| machine.core_at(place as usize))
            .collect(),
        time: elements * (images[1] - images[0]) / (machine.vector_lanes * parts * across) + 1,
        within: None,
    }
}

/// Jobs in pieces small enough that each fits into L2 by itself.
fn split_jobs(written: &Written, machine: &Machine, jobs: Jobs) -> Result<Jobs, Unwritten> {
    let mut split = Vec::new();
    for job in jobs.list {
        let layer = job.layer;
        let mut pieces = vec![job];
        while let Some(piece) = pieces.pop() {
            let needed = needed(written, &piece);
            let bank = bank_needed(written, &piece);
            if needed <= machine.l2.bytes && bank <= machine.weight_buffer[1] {
                split.push(piece);
                continue;
            }
            let too_full = bank > machine.weight_buffer[1];
            let Some([first, second]) = halves(written, &piece, too_full) else {
                let name = &written.layers[layer].name;
                return Err(Unwritten::Impossible(Impossible::Room {
                    what: format!("the layer {name} for one element"),
                    needed,
                    stream: 0,
                    present: machine.l2.bytes,
                }));
            };
            // The first half is taken up first.
            pieces.extend([second, first]);
        }
    }
    Ok(Jobs {
        list: split,
        ..jobs
    })
}

/// Bytes that the fullest core needs for a job alone.
fn needed(written: &Written, job: &Job) -> i64 {
    let layer = &written.layers[job.layer];
    let reach = &written.reach[job.layer];
    // Channels are counted in multiples of 64 bits, weights have parameters beside them.
    let (bits, aligned) = (written.bits, u64::from(usual_align(written.bits)));
    let size = i64::from(bits / 8);
    let volume = |block: &Block| {
        let [c, n, h, w] = block.map(|range| (range[1] - range[0]).max(0) as u64);
        (c.next_multiple_of(aligned) * n * h * w) as i64 * size
    };
    let blocks = job.blocks(layer.output);
    let of = |block: &Block| {
        let read: i64 = (0..layer.operands.len())
            .map(|operand| {
                let needs = bounds(&reach.needs(operand, block));
                let size = if layer.operands[operand].is_weight {
                    weights(&needs, bits)
                } else {
                    feature_map(&needs, usual_align(bits), bits)
                };
                size as i64
            })
            .sum();
        let weights = layer.weights.map_or(0, |[channels, window]| {
            let padded = (channels as u64).next_multiple_of(aligned) as i64;
            let each = padded * window * size + PARAMETERS;
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

/// Bytes that the fullest core needs at least in a bank of its weight buffer.
fn bank_needed(written: &Written, job: &Job) -> i64 {
    let layer = &written.layers[job.layer];
    let Some([channels, window]) = layer.weights else {
        return 0;
    };
    let of = |block: &Block| {
        let weights = [block[0], [0, 1], [0, channels], [0, window]];
        super::aligned::least_bank(&bounds(&weights), written.bits) as i64
    };
    job.blocks(layer.output).iter().map(of).max().unwrap_or(0)
}

/// A job as two: along images, rows, output channels, columns, whichever needs least; along output channels alone where a bank of the
/// weight buffer is too small.
fn halves(written: &Written, job: &Job, too_full: bool) -> Option<[Job; 2]> {
    let whole = job
        .within
        .unwrap_or_else(|| whole(written.layers[job.layer].output));
    let images = job.images[1] - job.images[0];
    if images > i64::from(job.part[1]) && !too_full {
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
        .take(if too_full { 1 } else { 3 })
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
        let constants = self.constants.iter().map(|(name, _)| name.clone());
        View::real(
            self.layers.clone(),
            [self.inputs.clone(), constants.collect()],
            self.reach.clone(),
        )
    }
}

/// A machine as the replay has it.
fn timed(machine: &Machine) -> Result<chipless_gemini::Machine, String> {
    let (own, figures) = replay_machine(machine);
    let mut table: toml::Table = own.parse().map_err(|e: toml::de::Error| e.to_string())?;
    for figure in figures {
        // As a table of its own: `dram.bytes_per_second = 4e9` has one in it.
        let change: toml::Table = figure.parse().map_err(|e: toml::de::Error| e.to_string())?;
        for (name, value) in change {
            match (table.get_mut(&name), value) {
                (Some(toml::Value::Table(section)), toml::Value::Table(value)) => {
                    section.extend(value);
                }
                (_, value) => _ = table.insert(name, value),
            }
        }
    }
    chipless_gemini::Machine::parse(&table.to_string())
}

/// The machine by which `run` times the schedules of a machine as `schedule` replays them: SET's, and the figures of it that differ, as
/// `--set` takes them.
pub fn replay_machine(machine: &Machine) -> (&'static str, Vec<String>) {
    let figures = [
        ("clock_mhz", machine.clock / 1e6),
        ("core.count", machine.cores() as f64),
        ("core.columns", machine.mesh[0] as f64),
        ("core.buffer_bytes", machine.l2.bytes as f64),
        (
            "core.weight_banks",
            f64::from(machine.weight_buffer[0] as u32),
        ),
        ("core.weight_bank_bytes", machine.weight_buffer[1] as f64),
        ("core.macs_per_cycle", machine.macs() as f64),
        ("dram.bytes_per_second", machine.dram.0 * machine.clock),
        ("dram.bytes_per_second_per_core", 0.0),
        ("noc.link_bytes_per_cycle", machine.link.0),
        ("noc.hop_cycles", machine.hop_cycles),
        ("energy.mac", machine.mac_energy),
        ("energy.vector", machine.vector_energy),
        ("energy.l2_read", machine.l2.read),
        ("energy.l2_write", machine.l2.write),
        ("energy.hop", machine.hop_energy),
        ("energy.dram", machine.dram_energy),
    ];
    let own = MACHINES.iter().find(|(name, _)| *name == "set");
    let changes = figures.iter().map(|(key, value)| format!("{key}={value}"));
    (own.map_or("", |(_, text)| text), changes.collect())
}
