//! From the loaded image to a program of the model.

mod caches;
mod compute;
mod counted;
mod memories;
mod places;
mod rests;
mod transfer;

use crate::address::{self, Target};
use crate::dma::Operation;
use crate::document::Document;
use crate::dpu;
use crate::generation::{Generation, NPU4000};
use crate::image::Image;
use crate::inference::Inference;
use crate::info::Edge;
use crate::kernels::{Cmx, Constants};
use crate::lint::Lint;
use crate::machine::Machine;
use crate::names::{Trace, name_by_queue};
use crate::npu3720;
use crate::profiling::{Labels, Profiling};
use crate::schedule::{self, Control, Description, Schedule, Unit, barriers_of};
use crate::shave::{self, KernelTable};
use crate::structures::{Layout, TaskKind};
use crate::tensors;
use chipless_model::{
    Action, BufferId, Builder, Certainty, Condition, Configuration, ConfigurationId, Demand,
    Direction, Finding, Kernel, Limits, Location, NewTask, PartId, Piece, PieceId, PieceOrder,
    Place, Program, QueueId, ResourceId, Signal, Sync, SyncId, SyncKind, TaskId, Time, Wait,
};
use rests::Rests;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// How a blob is lowered.
#[derive(Debug, Default)]
pub struct Options {
    /// The machine that it runs on.
    pub machine: Machine,
    /// Names of SHAVE kernels.
    pub kernels: KernelTable,
    /// Bounds.
    pub limits: Limits,
    /// The compiler's schedule trace, which names the tasks; without it the section `.profiling` does, where there is one.
    pub names: Option<Trace>,
}

chipless_model::rules! {
    UNMAPPED Fault Error Hardware "npu-address-unmapped" "a task names an address where nothing is"
        "Addresses of tasks name a byte of a section that the loader places in DDR, of the CMX of a tile that the program uses, or a register of the barrier and work FIFOs. The memory management unit would stop the inference."
        "Check the relocation of the address, and the number of tiles that the program was compiled for."
        "NPU4 address map";
    ELEMENT Unsupported Error Chipless "npu-unsupported-element" "an input or output of a type that Chipless does not handle"
        "The metadata names an element type for each tensor of the network's interface; files for the host can be made for floating point of 16, 32 and 64 bits, bfloat16 and integers of 8 to 64 bits."
        "Compile the model with another precision of its inputs and outputs."
        "NPU4 metadata, TensorRef offset 368";
    LAYOUT Unsupported Error Chipless "npu-unsupported-layout" "an input or output that is not stored row by row"
        "Programs of the compiler releases at hand take and give plain row-major tensors. Strides and orders of dimensions of the metadata are shown, not applied."
        "Compile the model with plain layouts of its inputs and outputs."
        "NPU4 metadata, TensorRef offset 0 and 360";
    DYNAMIC_SHAPE Unsupported Error Chipless "npu-unsupported-dynamic-shape" "a SHAVE kernel works on a tensor of computed shape whose upper bounds are not known"
        "A tensor reference says whether its sizes stand in the file. In programs with bounded shapes some do not: another kernel writes them while the program runs. Chipless runs such programs at the upper bounds, which it takes from the argument block where the strides agree with them."
        "Compile the model with static shapes: the upper bounds, for example."
        "NPU4 SHAVE tensor reference, static flag";
    DPU_WORKLOAD Fault Error Hardware "npu-dpu-workload" "the registers of a DPU workload contradict each other"
        "A workload names a box of the output, a window of the input, a kernel and formats; they must fit each other and the tensors."
        "Compare the fields with those of the neighbouring workloads in `chipless list`."
        "NPU4 DPU invariant and variant registers";
    SHAVE_ARGUMENTS Fault Error Hardware "npu-shave-arguments" "the arguments of a SHAVE kernel cannot be read"
        "The argument block of an invocation holds tensor references of 40 bytes (36 up to release 2026.2.1), then scalars, as the operation wants them."
        "If the kernel was named with --kernel, it may be another operation; otherwise the block is damaged."
        "NPU4 SHAVE invocation, offset 8";
}

/// Lowers an image. Findings say why that is not possible.
pub fn lower<'i>(
    document: &Document<'_>,
    image: &'i Image<'_>,
    options: &Options,
) -> Result<Program<'i>, Vec<Finding>> {
    let generation = document.generation().unwrap_or(NPU4000);
    let (inference, control) = if generation.runtime_symbols {
        (None, npu3720::control(document, image)?)
    } else {
        let inference = Inference::read(document, image)?;
        let control = Control::read(document, image, &inference)?;
        (Some(inference), control)
    };
    let mut schedule = schedule::walk(image, &control, &options.limits);
    if schedule.findings.iter().any(Finding::is_error) {
        return Err(schedule.findings);
    }
    let findings = std::mem::take(&mut schedule.findings);
    let mut build = Builder::new("npu", &options.limits);
    build.program.copies_halos = true;
    let mut lowering = Lowering {
        image,
        options,
        build,
        buffers: vec![None; image.sections().len()],
        cmx: Cmx::default(),
        parts: HashMap::new(),
        operations: HashMap::new(),
        rests: Rests::default(),
        narrower: Narrower::default(),
        accumulators: Default::default(),
        continued: Default::default(),
        generation,
        constants: Constants::default(),
        known: Arc::default(),
        labels: match &options.names {
            Some(trace) => trace.labels(document),
            None => Profiling::read(document)
                .map(|profiling| profiling.labels(document))
                .unwrap_or_default(),
        },
        release: document.trailer().map(|trailer| {
            let [major, minor, patch] = trailer.openvino;
            format!("{major}.{minor}.{patch}")
        }),
        ids: vec![None; schedule.tasks.len()],
        findings,
    };
    let edge = Edge::read(document);
    lowering.memories(&control, &edge);
    lowering.interface(document, edge);
    lowering.syncs(&schedule);
    lowering.tasks(&schedule);
    lowering.caches(&schedule);
    lowering.constants.settle();
    lowering.counted();
    lowering.sparse();
    lowering.meant(&schedule);
    lowering.build.program.figures = lowering.figures();
    lowering.build.program.costs = lowering.rests.take_costs();
    lowering.build.program.tensors = Some(tensors::of(
        &schedule,
        &lowering.ids,
        lowering.build.program.tasks.len(),
    ));
    match (&options.names, Profiling::read(document)) {
        (Some(trace), _) => name_by_queue(trace, &mut lowering.build.program),
        (None, Some(profiling)) if generation.layout == Layout::Npu3720 => {
            profiling.name_by_queue(&mut lowering.build.program);
        }
        _ => {}
    }
    // Nobody else sets it.
    _ = lowering.known.set(std::mem::take(&mut lowering.constants));
    let is_wrong = lowering.findings.iter().any(Finding::is_error);
    let lint = Lint {
        image,
        inference,
        control,
        schedule,
        cmx: lowering.cmx,
        tasks: lowering.ids,
        constants: lowering.known,
        findings: lowering.findings,
    };
    if is_wrong {
        return Err(chipless_model::Lint::check(&lint, &lowering.build.program));
    }
    lowering.build.program.lint = Some(Box::new(lint));
    lowering
        .build
        .finish()
        .map_err(|error| vec![schedule::rules::LIMIT.at(Place::file(), error.to_string())])
}

/// What a task costs.
struct Cost {
    /// Whatever else runs.
    fixed: Time,
    /// Bytes that a transfer moves.
    moved: u64,
    /// What they count as in time.
    counted: u64,
    /// What they pass besides DDR.
    narrower: Option<ResourceId>,
}

/// Bounds of some transfers beside that of DDR, where the machine has them.
#[derive(Clone, Copy, Debug, Default)]
struct Narrower {
    /// Of constants.
    constants: Option<ResourceId>,
    /// Of the network's inputs and outputs.
    host: Option<ResourceId>,
}

impl Cost {
    /// Of a task that is no transfer.
    fn of(fixed: Time) -> Cost {
        Cost {
            fixed,
            moved: 0,
            counted: 0,
            narrower: None,
        }
    }
}

struct Lowering<'l, 'i> {
    image: &'i Image<'i>,
    options: &'l Options,
    build: Builder<'i>,
    /// By section.
    buffers: Vec<Option<BufferId>>,
    cmx: Cmx,
    parts: HashMap<usize, PartId>,
    /// SHAVE kernels met so far, by the place of their code.
    operations: HashMap<(u64, u64), shave::Identity>,
    /// What some transfers pass besides DDR.
    narrower: Narrower,
    /// Buffers of the DPUs' accumulators, by tile, where workloads are continued.
    accumulators: [Option<BufferId>; address::TILES as usize],
    /// The last workload of each DPU, if it is continued.
    continued: [Option<Arc<dpu::Workload>>; address::TILES as usize],
    /// The chip that the program is for.
    generation: Generation,
    /// What arrives in CMX, while tasks are lowered.
    constants: Constants<'i>,
    /// The same, for the kernels, once all tasks are lowered.
    known: Arc<OnceLock<Constants<'i>>>,
    /// Names of tasks.
    labels: Labels,
    /// Figures of the machine that took part.
    rests: Rests,
    /// The compiler's release, where the file says so.
    release: Option<String>,
    /// Tasks by their position in the walk.
    ids: Vec<Option<TaskId>>,
    findings: Vec<Finding>,
}

impl<'i> Lowering<'_, 'i> {
    fn syncs(&mut self, schedule: &Schedule) {
        let depth = schedule
            .managed_by_program
            .then_some(schedule::BARRIER_DEPTH);
        let named = schedule
            .tasks
            .iter()
            .fold(0, |mask, task| mask | task.waits | task.posts);
        let configured = schedule
            .configurations
            .iter()
            .fold(0, |mask, c| mask | 1u128 << (c.barrier & 127));
        let count = 128 - (named | configured).leading_zeros();
        for barrier in 0..count as usize {
            let preloaded = schedule
                .preloaded
                .get(barrier)
                .into_iter()
                .flatten()
                .map(|c| ConfigurationId::from_usize(*c))
                .collect();
            self.build.program.syncs.push(Sync {
                name: format!("barrier {barrier}"),
                kind: SyncKind::Barrier { preloaded, depth },
            });
        }
        for configuration in &schedule.configurations {
            self.build.program.configurations.push(Configuration {
                barrier: SyncId::from_raw(u32::from(configuration.barrier)),
                number: configuration.number,
                producers: configuration.producers,
                consumers: configuration.consumers,
                releases: configuration
                    .releases
                    .clone()
                    .map(PieceId::from_usize)
                    .collect(),
                place: configuration.place.clone(),
            });
        }
        self.build.program.completion = schedule.last.map(ConfigurationId::from_usize);
    }

    /// Queues in the order of their names, pieces in the order of their release, tasks in the order of their queue.
    fn tasks(&mut self, schedule: &Schedule) {
        let mut units: Vec<(Unit, usize)> = schedule
            .queues
            .iter()
            .copied()
            .enumerate()
            .map(|(i, u)| (u, i))
            .collect();
        units.sort_unstable();
        let nothing = Piece {
            queue: QueueId::from_raw(0),
            first: TaskId::from_raw(0),
            count: 0,
        };
        self.build.program.pieces = schedule.pieces.iter().map(|_| nothing.clone()).collect();
        for (unit, index) in units {
            let queue = self.build.queue(unit.name(), unit.servers());
            if !schedule.managed_by_program {
                // A barrier that retires marks its work items ready; the firmware enqueues those that are ready in the order of
                // their numbers.
                self.build.program.queues[queue].order = PieceOrder::Number;
            }
            let mut pieces: Vec<usize> = (0..schedule.pieces.len())
                .filter(|p| schedule.pieces[*p].queue == index)
                .collect();
            pieces.sort_by_key(|p| {
                schedule.pieces[*p]
                    .tasks
                    .first()
                    .copied()
                    .unwrap_or(usize::MAX)
            });
            let mut position = 0;
            for piece in pieces {
                let first = self.build.program.tasks.next_idx();
                for task in &schedule.pieces[piece].tasks {
                    self.task(&schedule.tasks[*task], *task, queue, position);
                    position += 1;
                }
                let count = schedule.pieces[piece].tasks.len() as u32;
                self.build.program.pieces[PieceId::from_usize(piece)] = Piece {
                    queue,
                    first,
                    count,
                };
            }
        }
        self.build.program.initial = schedule
            .initial
            .iter()
            .map(|p| PieceId::from_usize(*p))
            .collect();
    }

    /// Notes the use of its barrier that each wait means.
    fn meant(&mut self, schedule: &Schedule) {
        let program = &mut self.build.program;
        let mut meant = vec![None; program.waits.len()];
        for (task, id) in schedule.tasks.iter().zip(&self.ids) {
            let Some(id) = id else { continue };
            let first = program.tasks[*id].waits.start as usize;
            for (slot, used) in meant[first..].iter_mut().zip(&task.meets) {
                *slot = used.map(ConfigurationId::from_usize);
            }
        }
        program.meant = meant;
    }

    /// Lowers a task, the `walked`th that the walk ran.
    fn task(&mut self, task: &schedule::Task, walked: usize, queue: QueueId, index: u32) {
        let bytes = task.description.bytes();
        let name = format!("{}[{index}]", self.build.program.queues[queue].name);
        let place = self.place(bytes).at(name);
        let (kernel, cost): (Box<dyn Kernel + 'i>, Cost) = match &task.description {
            Description::Dma { descriptor, bytes } => self.transfer(descriptor, *bytes, &place),
            Description::Dpu {
                tile,
                variant,
                invariant,
            } => match self.workload(*tile, variant, invariant, walked, &place) {
                Some(workload) => workload,
                None => return,
            },
            Description::Shave {
                tile,
                invocation,
                range,
            } => match self.invocation(*tile, invocation, range, &place) {
                Some(invocation) => invocation,
                None => return,
            },
        };
        let sync = |barrier: u8| SyncId::from_raw(u32::from(barrier));
        let waits: Vec<Wait> = barriers_of(task.waits)
            .map(|b| Wait {
                sync: sync(b),
                condition: Condition::Lit,
            })
            .collect();
        let configures = task
            .configures
            .iter()
            .map(|c| Action::Configure(ConfigurationId::from_usize(*c)));
        let releases = task
            .releases
            .iter()
            .map(|p| Action::Release(PieceId::from_usize(*p)));
        let consumes = barriers_of(task.waits).map(|b| Action::Consume(sync(b)));
        let produces = barriers_of(task.posts).map(|b| Action::Produce(sync(b)));
        let actions = configures.chain(releases).chain(consumes).chain(produces);
        let signals: Vec<Signal> = actions.map(Signal::on_completion).collect();
        let ddr = ResourceId::from_raw(0);
        let demands = [ddr, cost.narrower.unwrap_or(ddr)].map(|resource| Demand {
            resource,
            bytes: cost.moved,
        });
        let passed = 1 + usize::from(cost.narrower.is_some());
        let demands = &demands[..if cost.moved > 0 { passed } else { 0 }];
        if !matches!(task.description, Description::Dpu { .. }) {
            self.arrivals(&*kernel, &task.description, walked);
        }
        let kernel = self.build.program.kernels.push(kernel);
        let location = Location {
            part: self.part(bytes.section),
            offset: place.offset.unwrap_or(0),
            size: bytes.size as u32,
        };
        let label = TaskKind::of_section(&self.image.sections()[bytes.section].name)
            .map(|list| bytes.offset / list.record_size() as u64)
            .and_then(|number| {
                let section = &self.image.sections()[bytes.section].name;
                self.labels.get(section, number)
            })
            .map(Into::into);
        let added = self.build.task(NewTask {
            queue,
            kernel,
            waits: &waits,
            signals: &signals,
            demands,
            fixed: cost.fixed,
            location,
            label,
        });
        match added {
            Ok(id) => {
                self.ids[walked] = Some(id);
                // What is narrower than DDR is known from silicon, where bytes are bytes.
                let counted = [cost.counted, cost.moved];
                let counted = &counted[..demands.len()];
                self.build.program.counted.extend_from_slice(counted);
            }
            Err(error) => {
                let finding = schedule::rules::LIMIT.at(place, error.to_string());
                self.findings.push(finding);
            }
        }
    }

    /// Notes what a task brings into CMX: bytes of the file, where it is a plain copy of a run, or unknown ones.
    fn arrivals(&mut self, kernel: &(dyn Kernel + 'i), description: &Description, walked: usize) {
        let operation = if let Description::Dma { descriptor, .. } = description {
            Some(&descriptor.operation)
        } else {
            None
        };
        let copied = match operation {
            Some(Operation::Move {
                source,
                from,
                conversion: None,
                ..
            }) if from.loops.is_empty() => match self.image.resolve(*source) {
                Target::Section(section, offset) => {
                    let start = offset.saturating_add(from.offset);
                    self.image
                        .bytes(section)
                        .get(start as usize..)
                        .and_then(|bytes| bytes.get(..from.run as usize))
                }
                _ => None,
            },
            _ => None,
        };
        let (cmx, constants) = (&self.cmx, &mut self.constants);
        kernel.accesses(&mut |access| {
            let Some(tile) =
                (0..address::TILES).find(|tile| cmx.buffer(*tile) == Some(access.buffer))
            else {
                return;
            };
            if access.direction == Direction::Write {
                let is_exact = access.certainty == Certainty::Exact;
                constants.arrive(tile, walked, &access.pattern, is_exact, copied);
            }
        });
    }
}
