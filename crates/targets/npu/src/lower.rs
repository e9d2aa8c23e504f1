//! From the loaded image to a program of the model.

use crate::address::{self, CMX_SIZE, Target};
use crate::bytes::Record;
use crate::dma::{Descriptor, Operation};
use crate::dpu;
use crate::image::Image;
use crate::inference::Inference;
use crate::info::{Edge, State, Tensor};
use crate::kernels::{
    self, Accumulators, Cmx, Constants, Descriptors, DpuTask, Invocation, Knowledge, Source,
    Transfer, Work,
};
use crate::lint::{self, Subject};
use crate::machine::Machine;
use crate::names::Trace;
use crate::profiling::{Labels, Profiling};
use crate::raw::TaskKind;
use crate::read::Document;
use crate::schedule::{self, Control, Description, Fetched, Schedule, Slice, Unit, barriers_of};
use crate::shave::{self, KernelTable};
use crate::tensors;
use chipless_model::{
    Action, Buffer, BufferId, Condition, Configuration, ConfigurationId, Demand, Direction,
    Finding, Interface, Kernel, Limits, Location, Memory, MemoryId, MemoryKind, PartId, Pattern,
    Piece, PieceId, Place, Port, Program, Queue, QueueId, Resource, ResourceId, Role, Signal, Span,
    Sync, SyncId, SyncKind, Task, TaskId, Time, Wait,
};
use std::borrow::Cow;
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
    let inference = Inference::read(document, image)?;
    let control = Control::read(image, &inference)?;
    let mut schedule = schedule::walk(image, &control, &options.limits);
    if schedule.findings.iter().any(Finding::is_error) {
        return Err(schedule.findings);
    }
    let findings = std::mem::take(&mut schedule.findings);
    let mut lowering = Lowering {
        image,
        options,
        program: Program {
            target: "npu",
            copies_halos: true,
            consumes_in_time: true,
            ..Program::default()
        },
        buffers: vec![None; image.sections().len()],
        cmx: Cmx::default(),
        parts: HashMap::new(),
        operations: HashMap::new(),
        accumulators: Default::default(),
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
        workloads: Vec::new(),
        ids: vec![None; schedule.tasks.len()],
        findings,
    };
    let edge = Edge::read(document);
    lowering.memories(&control, &edge);
    lowering.interface(document, edge);
    lowering.syncs(&schedule);
    lowering.tasks(&schedule);
    lowering.program.tensors = Some(tensors::of(
        &schedule,
        &lowering.ids,
        lowering.program.tasks.len(),
    ));
    // Nobody else sets it.
    _ = lowering
        .known
        .set(std::mem::take(&mut lowering.constants).finish());
    let found = lint::check(&Subject {
        image,
        inference: &inference,
        control: &control,
        schedule: &schedule,
        program: &lowering.program,
        cmx: lowering.cmx,
        tasks: &lowering.ids,
        workloads: &lowering.workloads,
    });
    lowering.findings.extend(found);
    if lowering.findings.iter().any(Finding::is_error) {
        return Err(lowering.findings);
    }
    Ok(Program {
        warnings: lowering.findings,
        ..lowering.program
    })
}

struct Lowering<'l, 'i> {
    image: &'i Image<'i>,
    options: &'l Options,
    program: Program<'i>,
    /// By section.
    buffers: Vec<Option<BufferId>>,
    cmx: Cmx,
    parts: HashMap<usize, PartId>,
    /// SHAVE kernels met so far, by the place of their code.
    operations: HashMap<(u64, u64), shave::Identity>,
    /// The DPU workloads, by their position in the walk.
    workloads: Vec<(usize, Arc<dpu::Workload>)>,
    /// Accumulators of the DPUs, by tile.
    accumulators: [Accumulators; address::TILES as usize],
    /// What arrives in CMX, while tasks are lowered.
    constants: Constants<'i>,
    /// The same, for the kernels, once all tasks are lowered.
    known: Arc<OnceLock<Constants<'i>>>,
    /// Names of tasks.
    labels: Labels,
    /// The compiler's release, where the file says so.
    release: Option<String>,
    /// Tasks by their position in the walk.
    ids: Vec<Option<TaskId>>,
    findings: Vec<Finding>,
}

impl<'i> Lowering<'_, 'i> {
    /// DDR with a buffer for each section that the loader places there, and CMX with one for each tile.
    fn memories(&mut self, control: &Control, edge: &Edge) {
        let states: Vec<&str> = edge.states.iter().flat_map(State::sections).collect();
        let ends = self
            .image
            .sections()
            .iter()
            .filter_map(|s| s.address?.checked_add(s.size));
        let ddr_end = ends.max().unwrap_or(0);
        let ddr = self.program.memories.push(Memory {
            name: "ddr".into(),
            size: ddr_end,
            kind: MemoryKind::Dram,
        });
        for (index, section) in self.image.sections().iter().enumerate() {
            if section.address.is_none() {
                continue;
            }
            let role = match section.name {
                name if name.starts_with("io.NetworkInput") => Role::Input,
                name if name.starts_with("io.") => Role::Output,
                name if name.starts_with("buffer.DDR") => Role::Scratch,
                _ if section.bytes.is_empty() => Role::Scratch,
                _ => Role::Constant,
            };
            let role = if states.contains(&section.name) {
                Role::State
            } else {
                role
            };
            self.buffers[index] = Some(self.program.buffers.push(Buffer {
                name: section.name.to_owned(),
                memory: ddr,
                address: section.address,
                alignment: 1,
                size: section.size,
                role,
                initial: match role {
                    Role::State => Cow::Owned(vec![0; section.size as usize]),
                    _ => Cow::Borrowed(&section.bytes),
                },
            }));
        }
        for tile in 0..control.tiles.min(address::TILES) {
            let name = format!("cmx{tile}");
            let memory: MemoryId = self.program.memories.push(Memory {
                name: name.clone(),
                size: CMX_SIZE,
                kind: MemoryKind::Scratchpad,
            });
            self.cmx.0[tile as usize] = Some(self.program.buffers.push(Buffer {
                name,
                memory,
                address: Some(0),
                alignment: 1,
                size: CMX_SIZE,
                role: Role::Scratch,
                initial: Cow::Borrowed(&[]),
            }));
        }
        let dma = &self.options.machine.dma;
        self.program.resources.push(Resource {
            name: "ddr".into(),
            capacity: dma.ddr_bytes_per_second,
            per_transfer: dma.bytes_per_cycle * self.options.machine.clock.dpu * 1e6,
        });
    }

    /// The network's inputs and outputs, whose sections [`Inference::read`] has found large enough.
    fn interface(&mut self, document: &Document<'_>, edge: Edge) {
        let mut ports = |tensors: Vec<Tensor>| -> Vec<Port> {
            let port = |tensor: Tensor| {
                let place = Place::file().in_part(tensor.section.clone());
                let Some(element) = tensor.element else {
                    let message = format!(
                        "tensor {} has elements of type {}, which is not supported",
                        tensor.name, tensor.dtype
                    );
                    self.findings.push(ELEMENT.at(place, message));
                    return None;
                };
                if tensor.layout.is_some() {
                    self.findings.push(LAYOUT.at(
                        place,
                        format!(
                            "tensor {} is not stored row by row, which is not supported",
                            tensor.name
                        ),
                    ));
                    return None;
                }
                let section = self.image.section(&tensor.section)?;
                let buffer = self.buffers[section]?;
                Some(Port {
                    name: tensor.name,
                    buffer,
                    element,
                    shape: tensor.shape,
                })
            };
            tensors.into_iter().filter_map(port).collect()
        };
        let interface = Interface {
            inputs: ports(edge.inputs),
            outputs: ports(edge.outputs),
        };
        self.program.interface = interface;
        document
            .metadata()
            .identification
            .network
            .text()
            .unwrap_or_default()
            .clone_into(&mut self.program.name);
    }

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
            self.program.syncs.push(Sync {
                name: format!("barrier {barrier}"),
                kind: SyncKind::Barrier { preloaded, depth },
            });
        }
        for configuration in &schedule.configurations {
            self.program.configurations.push(Configuration {
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
        self.program.completion = schedule.last.map(ConfigurationId::from_usize);
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
        self.program.pieces = schedule.pieces.iter().map(|_| nothing.clone()).collect();
        for (unit, index) in units {
            let queue = self.program.queues.push(Queue {
                name: unit.name(),
                servers: unit.servers(),
                in_order: true,
            });
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
                let first = self.program.tasks.next_idx();
                for task in &schedule.pieces[piece].tasks {
                    self.task(&schedule.tasks[*task], *task, queue, position);
                    position += 1;
                }
                let count = schedule.pieces[piece].tasks.len() as u32;
                self.program.pieces[PieceId::from_usize(piece)] = Piece {
                    queue,
                    first,
                    count,
                };
            }
        }
        self.program.initial = schedule
            .initial
            .iter()
            .map(|p| PieceId::from_usize(*p))
            .collect();
    }

    /// Lowers a task, the `walked`th that the walk ran.
    fn task(&mut self, task: &schedule::Task, walked: usize, queue: QueueId, index: u32) {
        let bytes = task.description.bytes();
        let name = format!("{}[{index}]", self.program.queues[queue].name);
        let place = self.place(bytes).at(name);
        let (kernel, fixed, moved): (Box<dyn Kernel + 'i>, Time, u64) = match &task.description {
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
        let waits = Span::push(
            &mut self.program.waits,
            barriers_of(task.waits).map(|b| Wait {
                sync: sync(b),
                condition: Condition::Lit,
            }),
        );
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
        let signals = Span::push(
            &mut self.program.signals,
            actions.map(Signal::on_completion),
        );
        let demand = Demand {
            resource: ResourceId::from_raw(0),
            bytes: moved,
        };
        let demands = Span::push(&mut self.program.demands, (moved > 0).then_some(demand));
        self.arrivals(&*kernel, &task.description, walked);
        let kernel = self.program.kernels.push(kernel);
        let location = Location {
            part: self.part(bytes.section),
            offset: place.offset.unwrap_or(0),
            size: bytes.size as u32,
        };
        let label = TaskKind::of_section(self.image.sections()[bytes.section].name)
            .map(|(kind, ..)| bytes.offset / kind.record_size() as u64)
            .and_then(|number| {
                let section = self.image.sections()[bytes.section].name;
                self.labels.get(section, number)
            })
            .map(Into::into);
        let id = self.program.tasks.push(Task {
            queue,
            index,
            kernel,
            waits,
            signals,
            demands,
            fixed,
            location,
            label,
        });
        self.ids[walked] = Some(id);
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
            }) if from.loops.is_empty() => match address::resolve(self.image, *source) {
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
            let extent = access.pattern.extent();
            if access.direction == Direction::Write {
                let bound = |at: i128| at.clamp(0, i128::from(CMX_SIZE)) as u64;
                let bytes = copied.filter(|_| access.pattern.loops.is_empty());
                constants.arrive(tile, walked, bound(extent.start), bound(extent.end), bytes);
            }
        });
    }

    fn transfer(
        &mut self,
        descriptor: &Descriptor,
        bytes: Slice,
        place: &Place,
    ) -> (Box<dyn Kernel + 'i>, Time, u64) {
        let machine = &self.options.machine;
        let mut name = "dma";
        let mut cycles = machine.dma.latency;
        let source = match &descriptor.operation {
            Operation::Synchronise => {
                (name, cycles) = ("sync", machine.dma.synchronise);
                Source::None
            }
            Operation::Unsupported { what, .. } => Source::Unsupported(what),
            Operation::Fill { value, .. } => {
                name = "fill";
                Source::Fill(*value)
            }
            Operation::Move {
                source,
                from,
                conversion,
                ..
            } => {
                if let Target::Section(section, _) = address::resolve(self.image, *source)
                    && self.image.sections()[section].name.starts_with("task.")
                {
                    (name, cycles) = ("fetch", machine.dma.fetch);
                }
                match self.one(*source, "source", place) {
                    Some((buffer, offset)) => {
                        Source::Walk(buffer, self.shifted(from, offset, place), *conversion)
                    }
                    None => Source::None,
                }
            }
            Operation::Gather {
                source,
                row,
                list,
                count,
                ..
            } => {
                name = "gather";
                match (
                    self.one(*source, "source", place),
                    self.one(*list, "list of indices", place),
                ) {
                    (Some((buffer, offset)), Some((list, start))) => {
                        let rows =
                            kernels::rows_from(offset, *row, self.program.buffers[buffer].size);
                        Source::Rows {
                            buffer,
                            offset,
                            row: *row,
                            rows,
                            list: (list, kernels::list(start, *count)),
                        }
                    }
                    _ => Source::None,
                }
            }
        };
        let destinations = match &descriptor.operation {
            Operation::Move {
                destination, to, ..
            }
            | Operation::Gather {
                destination, to, ..
            }
            | Operation::Fill {
                destination, to, ..
            } => {
                if let Target::Register(_) = address::resolve(self.image, *destination) {
                    name = "register write";
                    Vec::new()
                } else {
                    self.all(*destination, place)
                        .into_iter()
                        .map(|(buffer, offset)| (buffer, self.shifted(to, offset, place)))
                        .collect()
                }
            }
            Operation::Unsupported { destination, .. } => self.around(*destination),
            Operation::Synchronise => Vec::new(),
        };
        let transfer = Transfer {
            descriptors: self.in_ddr(bytes),
            source,
            destinations,
            name,
        };
        (
            Box::new(transfer),
            Time::from_cycles(cycles, machine.clock.dpu),
            descriptor.moved(),
        )
    }

    /// Adds where a register field of a workload stands, with its bits and value.
    fn with_register(
        &self,
        finding: Finding,
        field: &str,
        variant: &Fetched,
        invariant: &Fetched,
    ) -> Finding {
        let Some(register) = dpu::register(field) else {
            return finding;
        };
        let (name, slice) = if register.in_variant {
            ("variant", variant.from)
        } else {
            ("invariant", invariant.from)
        };
        let value = register.value(self.bytes(slice));
        let last = register.bit + register.width - 1;
        let bits = if register.width == 1 {
            format!("bit {last}")
        } else {
            format!("bits {last}:{}", register.bit)
        };
        let place = self.place(Slice {
            section: slice.section,
            offset: slice.offset + register.offset as u64,
            size: 4,
        });
        finding.with(
            place.at(field.to_owned()),
            format!(
                "{bits} of the word at {:#x} of the {name} = {value} ({value:#x})",
                register.offset
            ),
        )
    }

    fn workload(
        &mut self,
        tile: u8,
        variant: &Fetched,
        invariant: &Fetched,
        walked: usize,
        place: &Place,
    ) -> Option<(Box<dyn Kernel + 'i>, Time, u64)> {
        let (variant_bytes, invariant_bytes) =
            (self.bytes(variant.from), self.bytes(invariant.from));
        let workload = match dpu::Workload::decode(
            invariant_bytes.try_into().ok()?,
            variant_bytes.try_into().ok()?,
            tile,
        ) {
            Ok(workload) => workload,
            Err(error) => {
                let finding = DPU_WORKLOAD.at(place.clone(), error.to_string());
                self.findings
                    .push(self.with_register(finding, error.field, variant, invariant));
                return None;
            }
        };
        let workload = Arc::new(workload);
        self.workloads.push((walked, Arc::clone(&workload)));
        let machine = &self.options.machine;
        let fixed = Time::from_cycles(workload.cycles(&machine.dpu), machine.clock.dpu);
        let descriptors = self.in_cmx(tile, [variant, invariant]);
        let accumulators = self.accumulators.get(tile as usize)?.clone();
        let knowledge = Knowledge {
            constants: Arc::clone(&self.known),
            position: walked,
        };
        // NPU4 DPU invariant, hwp_en; variant, hwp_wload_id: the number of the record in the tile.
        let profile = (Record(invariant_bytes).u32(0xc0) & 1 != 0)
            .then(|| u64::from(Record(variant_bytes).u16(0x18)) * 32);
        let task = DpuTask {
            descriptors,
            cmx: self.cmx,
            workload,
            accumulators,
            tile,
            knowledge,
            profile,
        };
        Some((Box::new(task), fixed, 0))
    }

    fn invocation(
        &mut self,
        tile: u8,
        invocation: &Fetched,
        range: &Fetched,
        place: &Place,
    ) -> Option<(Box<dyn Kernel + 'i>, Time, u64)> {
        let descriptors = self.in_cmx(tile, [invocation, range]);
        let (record, kernel) = (
            Record(self.bytes(invocation.from)),
            Record(self.bytes(range.from)),
        );
        let work = match kernel.u8(0) {
            0 => self.kernel(
                kernel.u64(16),
                u64::from(kernel.u32(24)),
                record.u64(8),
                place,
            )?,
            kind => Work::Maintenance(match kind {
                4 => "debug",
                5 => "flush cache",
                6 => "invalidate cache",
                7 => "flush and invalidate cache",
                8 => "prefetch",
                _ => {
                    self.findings.push(SHAVE_ARGUMENTS.at(
                        place.clone(),
                        format!("kernel range of type {kind}; 0 and 4 to 8 are known"),
                    ));
                    return None;
                }
            }),
        };
        let fixed = self.shave_time(&work);
        Some((
            Box::new(Invocation {
                descriptors,
                cmx: self.cmx,
                work,
            }),
            fixed,
            0,
        ))
    }

    /// The work of a kernel whose code and arguments are at these addresses.
    fn kernel(&mut self, text: u64, size: u64, arguments: u64, place: &Place) -> Option<Work> {
        let identity = if let Some(identity) = self.operations.get(&(text, size)) {
            identity.clone()
        } else {
            let code = match address::resolve(self.image, text) {
                Target::Section(section, offset) => self
                    .image
                    .bytes(section)
                    .get(offset as usize..)
                    .and_then(|b| b.get(..size as usize)),
                _ => None,
            };
            let Some(code) = code else {
                self.findings.push(UNMAPPED.at(
                    place.clone(),
                    format!("kernel code of {size} bytes at {text:#x} is in no section"),
                ));
                return None;
            };
            let identity = self.options.kernels.identify(code);
            self.operations.insert((text, size), identity.clone());
            identity
        };
        let Target::Section(section, offset) = address::resolve(self.image, arguments) else {
            self.findings.push(UNMAPPED.at(
                place.clone(),
                format!("kernel arguments at {arguments:#x} are in no section"),
            ));
            return None;
        };
        let base = self.image.sections()[section].address.unwrap_or(0);
        let parameters = shave::Section::new(self.image.bytes(section), base);
        let Some(operation) = identity.operation else {
            let tensors = parameters.leading_tensors(offset);
            return Some(Work::Unknown {
                identity,
                release: self.release.clone(),
                tensors,
            });
        };
        match parameters.decode(operation, offset) {
            Ok(invocation) => Some(Work::Known(Box::new(invocation))),
            Err(error) => {
                self.findings
                    .push(SHAVE_ARGUMENTS.at(place.clone(), format!("{operation}: {error}")));
                None
            }
        }
    }

    fn shave_time(&self, work: &Work) -> Time {
        let machine = &self.options.machine;
        let (cost, bytes) = match work {
            Work::Known(invocation) => {
                let bytes: u64 = invocation
                    .outputs
                    .iter()
                    .filter_map(|t| t.pattern.bytes())
                    .fold(0, u64::saturating_add);
                (
                    machine
                        .shave
                        .operations
                        .get(invocation.operation.name())
                        .unwrap_or(&machine.shave.default),
                    bytes,
                )
            }
            Work::Unknown { tensors, .. } => {
                let bytes = tensors.last().and_then(|t| t.pattern.bytes()).unwrap_or(0);
                (&machine.shave.default, bytes)
            }
            Work::Maintenance(_) => return Time::ZERO,
        };
        let microseconds = cost.fixed + cost.per_byte * bytes as f64;
        Time::from_ns(microseconds * 1e3 * machine.shave.clock / machine.clock.shave)
    }

    /// The descriptor of a DMA, which the engine reads from DDR.
    fn in_ddr(&self, slice: Slice) -> Descriptors<'i> {
        Descriptors(
            self.buffers[slice.section]
                .map(|buffer| (buffer, slice.offset, self.bytes(slice)))
                .into_iter()
                .collect(),
        )
    }

    /// Descriptors that were fetched into the CMX of a tile.
    fn in_cmx(&self, tile: u8, fetched: [&Fetched; 2]) -> Descriptors<'i> {
        let buffer = self.cmx.buffer(tile);
        Descriptors(
            fetched
                .into_iter()
                .filter_map(|f| Some((buffer?, f.offset, self.bytes(f.from))))
                .collect(),
        )
    }

    /// The byte that an address names, if it names exactly one.
    fn one(&mut self, address: u64, role: &str, place: &Place) -> Option<(BufferId, u64)> {
        let found = match address::resolve(self.image, address) {
            Target::Section(section, offset) => self.buffers[section].map(|b| (b, offset)),
            Target::Cmx { .. } => self.cmx.locate(address),
            Target::Register(_) | Target::Unmapped => None,
        };
        if found.is_none() {
            self.findings.push(
                UNMAPPED.at(
                    place.clone(),
                    format!("its {role} {address:#x} is neither in a section nor in the CMX of one tile of the program"),
                ),
            );
        }
        found
    }

    /// Every byte that a destination names: several for a multicast.
    fn all(&mut self, address: u64, place: &Place) -> Vec<(BufferId, u64)> {
        let Some((mask, offset)) = address::cmx(address) else {
            return self
                .one(address, "destination", place)
                .into_iter()
                .collect();
        };
        let found: Vec<_> = address::tiles(mask)
            .map(|tile| (tile, self.cmx.buffer(tile)))
            .collect();
        if let Some((tile, _)) = found.iter().find(|(_, buffer)| buffer.is_none()) {
            self.findings.push(
                UNMAPPED.at(
                    place.clone(),
                    format!("its destination {address:#x} names the CMX of tile {tile}, which the program does not use"),
                ),
            );
        }
        found
            .into_iter()
            .filter_map(|(_, buffer)| Some((buffer?, offset)))
            .collect()
    }

    /// Every byte of the buffers that a destination names, whether it is legal or not.
    fn around(&self, address: u64) -> Vec<(BufferId, Pattern)> {
        let buffers: Vec<BufferId> =
            match (address::cmx(address), address::resolve(self.image, address)) {
                (Some((mask, _)), _) => address::tiles(mask)
                    .filter_map(|tile| self.cmx.buffer(tile))
                    .collect(),
                (None, Target::Section(section, _)) => self.buffers[section].into_iter().collect(),
                _ => Vec::new(),
            };
        buffers
            .into_iter()
            .map(|buffer| {
                (
                    buffer,
                    Pattern::contiguous(0, self.program.buffers[buffer].size),
                )
            })
            .collect()
    }

    fn shifted(&mut self, pattern: &Pattern, offset: u64, place: &Place) -> Pattern {
        // Offsets are below 2^48, so shifting cannot leave 64 bits.
        pattern.shifted(offset as i64).unwrap_or_else(|| {
            self.findings.push(UNMAPPED.at(
                place.clone(),
                format!("offset {offset:#x} is beyond every memory"),
            ));
            pattern.clone()
        })
    }

    fn bytes(&self, slice: Slice) -> &'i [u8] {
        &self.image.bytes(slice.section)[slice.offset as usize..][..slice.size as usize]
    }

    fn place(&self, slice: Slice) -> Place {
        self.image.place(slice.section, slice.offset, slice.size)
    }

    fn part(&mut self, section: usize) -> PartId {
        *self.parts.entry(section).or_insert_with(|| {
            self.program
                .parts
                .push(self.image.sections()[section].name.to_owned())
        })
    }
}
