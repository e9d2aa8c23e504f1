//! Intel NPU blobs.

use crate::capability::{
    Capabilities, Capability, NamesNodes, Planned, Profiles, Recompiles, SharesDevice,
    ShowsRegisters,
};
use crate::failure::Failure;
use crate::foreign;
use crate::machine::{self, Leniency};
use crate::options::{CALIBRATION, CALIBRATIONS, Input, OptionKind, OptionSpec, Options};
use crate::target::{Document, Lowered, Package, Source, Target};
use chipless_device::{Block, Route};
use chipless_model::{
    Direction, Finding, Info, Kernel, Node, Program, Rule, Task, TaskId, Time, Value, count,
};
use chipless_npu::generation::{Generation, Platform};
use chipless_npu::names::{Model, Trace};
use chipless_npu::profiling::Profiling;
use chipless_npu::registers::{self, Structure};
use chipless_npu::{Image, KernelTable, Machine};
use chipless_report::registers::{Descriptor, Field};
use chipless_report::schedule_trace::{Origin, Schedule, Slice};
use chipless_sim::{Timeline, TimingOnly, Verified};
use std::sync::OnceLock;

/// The target.
pub(super) struct Npu;

const COMMANDS: &[&str] = &[
    "run", "debug", "check", "list", "report", "view", "diff", "iospec",
];

const NAMED: &[&str] = &["run", "debug", "check", "list", "report", "view", "diff"];

static OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "kernel",
        kind: OptionKind::Text,
        value: "HASH=OPERATION",
        help: "Name the operation of a vendor kernel by its code's hash. Repeatable",
        commands: COMMANDS,
        is_repeated: true,
    },
    OptionSpec {
        name: "kernel-table",
        kind: OptionKind::File,
        value: "FILE.toml",
        help: "Table of vendor kernels, from `chipless kernels import`",
        commands: COMMANDS,
        is_repeated: false,
    },
    OptionSpec {
        name: "names",
        kind: OptionKind::File,
        value: "TRACE.json[.gz]",
        help: "Name tasks after the compiler's schedule trace",
        commands: NAMED,
        is_repeated: false,
    },
    OptionSpec {
        name: "model",
        kind: OptionKind::File,
        value: "MODEL.onnx|.xml",
        help: "Model whose nodes to show beside its layers. `run` shows them in its list of layers, `list` beside each task. The blob must name its layers (compiled with PERF_COUNT=YES), or pass --names",
        commands: &["run", "list"],
        is_repeated: false,
    },
    CALIBRATION,
];

impl Target for Npu {
    fn name(&self) -> &'static str {
        "npu"
    }

    fn files(&self) -> &'static [&'static str] {
        &["an Intel NPU blob (ELF)"]
    }

    fn recognize(&self, bytes: &[u8]) -> bool {
        chipless_npu::recognize(bytes)
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["blob"]
    }

    fn options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn rules(&self) -> Vec<&'static Rule> {
        chipless_npu::rules().collect()
    }

    fn machines(&self) -> &'static [(&'static str, &'static str)] {
        chipless_npu::MACHINES
    }

    fn leniency(&self) -> Option<Leniency> {
        Some(Leniency {
            // Kernels without costs of their own take the default; a file without a calibration refuses that.
            open: &["shave.operations", "silicon"],
            renamed: &[("shave.reference_clock", "shave.clock")],
        })
    }

    fn capabilities(&self) -> &'static [Capability] {
        &[
            Capability::ShowsRegisters,
            Capability::Planned,
            Capability::Profiles,
            Capability::SharesDevice,
            Capability::NamesNodes,
            Capability::Recompiles,
        ]
    }

    fn open<'f>(&self, source: Source<'f>) -> Result<Box<dyn Package + 'f>, Failure> {
        Ok(Box::new(Blob(source)))
    }
}

/// A blob.
struct Blob<'f>(Source<'f>);

impl Package for Blob<'_> {
    fn read(&self) -> Result<Box<dyn Document + '_>, Failure> {
        let document = chipless_npu::Document::read(self.0.bytes).map_err(Failure::reading)?;
        Ok(Box::new(Opened {
            document,
            image: OnceLock::new(),
            model: OnceLock::new(),
            options: self.0.options,
        }))
    }
}

/// A blob that was read, and its image once it was loaded.
struct Opened<'f> {
    document: chipless_npu::Document<'f>,
    image: OnceLock<Image<'f>>,
    model: OnceLock<Model>,
    options: &'f Options,
}

impl<'f> Opened<'f> {
    fn image(&self) -> Result<&Image<'f>, Failure> {
        if let Some(image) = self.image.get() {
            return Ok(image);
        }
        let image = Image::load(&self.document, &self.options.limits).map_err(Failure::program)?;
        Ok(self.image.get_or_init(|| image))
    }

    fn options(&self) -> Result<chipless_npu::Options, Failure> {
        self.options_of(self.options)
    }

    fn options_of(&self, options: &Options) -> Result<chipless_npu::Options, Failure> {
        let mut kernels = KernelTable::default();
        if let Some(table) = options.file("kernel-table")? {
            kernels
                .extend_from_toml(table.text()?)
                .map_err(|error| Failure::unreadable(&table.name, error))?;
        }
        for entry in options.values("kernel") {
            kernels
                .insert_entry(entry)
                .map_err(|error| Failure::misuse("--kernel", error))?;
        }
        Ok(chipless_npu::Options {
            machine: options.machine(self.machine_of_generation(), &[], Machine::from_toml)?,
            kernels,
            limits: options.limits.clone(),
            names: options
                .file("names")?
                .map(|file| trace(&file))
                .transpose()?,
        })
    }

    /// The machine file of the program's generation.
    fn machine_of_generation(&self) -> &'static str {
        let generation = self.document.generation();
        let (_, text) =
            chipless_npu::MACHINES[generation.map_or(0, |generation| generation.machine)];
        text
    }

    /// What the program takes by another calibration; `None` where its machine has no such figures.
    fn latency_by(&self, calibration: &str) -> Result<Option<Time>, Failure> {
        let mut options = self.options.clone();
        options.set(CALIBRATION.name, calibration)?;
        // All else in them was read for the calibration that was asked for.
        let Ok(options) = self.options_of(&options) else {
            return Ok(None);
        };
        let program = chipless_npu::lower(&self.document, self.image()?, &options)
            .map_err(Failure::program)?;
        let run = chipless_sim::run(&Verified::assume(&program), &mut TimingOnly);
        Ok(run.end.is_ok().then_some(run.timeline.end))
    }

    /// What to say where names that the user gave reach few tasks or none.
    fn names_note(&self, program: &Program<'_>) -> Option<String> {
        let named = program.tasks.iter().filter(|task| task.label.is_some());
        let (named, all) = (named.count(), program.tasks.len());
        if self.model.get().is_some() && named == 0 {
            return Some(format!(
                "--model: no task of {all} carries a layer name, so no node can be shown. Compile with PERF_COUNT=YES, or pass \
                 the compiler's schedule trace (--names)"
            ));
        }
        if let Some(model) = self.model.get() {
            let layers = || {
                program
                    .tasks
                    .indices()
                    .filter_map(|task| program.layer(task))
            };
            if layers().next().is_some() && !layers().any(|layer| model.node(layer).is_some()) {
                return Some(
                    "--model: none of the program's layers is a node of it. Pass the model that the program was compiled from"
                        .to_owned(),
                );
            }
        }
        (named == 0 && all > 0).then(|| {
            "no time by layer: the blob does not say which task belongs to which layer. Compile it with PERF_COUNT=YES, or pass \
             the compiler's schedule trace with --names"
                .to_owned()
        })
    }

    /// Tiles of the machine that the program is timed on; those of the chip that it is for where the machine has a name of its own.
    fn most_tiles(&self) -> u32 {
        let machine = self.machine_name().and_then(|name| generation_of(&name));
        let known = machine.map(|(_, known)| known);
        known
            .or_else(|| self.document.generation())
            .map_or(6, |known| known.tiles.into())
    }

    /// What the machine that the program is timed by calls itself.
    fn machine_name(&self) -> Option<String> {
        let by = self.options.timed_by(self.machine_of_generation());
        by.ok().map(|by| by.name)
    }

    /// What to say where the program was compiled for another chip than the machine that it is timed by.
    fn machine_note(&self) -> Option<String> {
        let name = self.machine_name()?;
        let (platform, machine) = generation_of(&name)?;
        if self.document.generation()?.machine == machine.machine {
            return None;
        }
        let own = self.document.platform();
        let (used, there) = (self.document.tiles(), machine.tiles);
        let tiles = if used > there {
            format!(
                " The program uses {used} tiles, {name} has {there}: it could not run there (--what-if tiles={there} times it as if compiled for {there})."
            )
        } else {
            String::new()
        };
        let chip = if name == platform.to_string() {
            name
        } else {
            format!("{name} ({platform})")
        };
        let functions = if platform == Platform::Npu5010 {
            " There, the DPU has tables for most activation functions, which are tasks of the SHAVEs here."
        } else {
            ""
        };
        Some(format!(
            "compiled for {own}, timed on {chip}: tasks and their tiles stay as compiled.{tiles}{functions} Compile the program for {platform} to time what \
             would run there"
        ))
    }

    /// The model that the user gave.
    fn model(&self) -> Result<Option<Model>, Failure> {
        let file = self.options.file("model")?;
        let model = file.map(|file| {
            Model::read(&file.bytes).map_err(|error| Failure::unreadable(&file.name, error))
        });
        model.transpose()
    }
}

impl Document for Opened<'_> {
    fn info(&self) -> Info {
        self.document.info()
    }

    fn own_machine(&self) -> Option<(&'static str, Option<String>)> {
        Some((self.machine_of_generation(), None))
    }

    fn raw(&self) -> Node {
        self.document.raw()
    }

    fn findings(&self) -> &[Finding] {
        self.document.findings()
    }

    fn lower(&self) -> Result<Lowered<'_>, Failure> {
        let mut options = self.options()?;
        if let Some(model) = self.model()? {
            // Nobody else sets it.
            _ = self.model.set(model);
        }
        self.document
            .supported()
            .map_err(|finding| Failure::program(vec![*finding]))?;
        let lower = |options: &_| {
            chipless_npu::lower(&self.document, self.image()?, options).map_err(Failure::program)
        };
        let mut program = lower(&options)?;
        let foreign = options.names.as_ref().and_then(|_| foreign_names(&program));
        if foreign.is_some() {
            options.names = None;
            program = lower(&options)?;
        }
        let names = foreign.or_else(|| self.names_note(&program));
        let notes = self.machine_note().into_iter().chain(names);
        let notes = notes.chain(odd_elements_note(&program));
        Ok(Lowered {
            program,
            notes: notes.collect(),
        })
    }

    /// The latency by each calibration, where one was asked for.
    fn facts(&self, _program: &Program<'_>, timeline: &Timeline) -> Result<Vec<Node>, Failure> {
        let Some(asked) = self.options.value(CALIBRATION.name) else {
            return Ok(Vec::new());
        };
        let mut latencies = Vec::new();
        for (name, _) in CALIBRATIONS {
            let latency = if *name == asked {
                Some(timeline.end)
            } else {
                self.latency_by(name)?
            };
            latencies.extend(latency.map(|latency| Node {
                name: format!("{name}_ns"),
                value: Some(Value::Number(latency.ns())),
                ..Node::default()
            }));
        }
        Ok(vec![Node {
            name: "calibration".to_owned(),
            children: latencies,
            ..Node::default()
        }])
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            shows_registers: Some(self),
            planned: Some(self),
            profiles: Some(self),
            shares_device: Some(self),
            names_nodes: Some(self),
            recompiles: Some(self),
            ..Capabilities::default()
        }
    }
}

/// The chip that a machine of this name is, among those that come with Chipless.
fn generation_of(machine: &str) -> Option<(Platform, Generation)> {
    Platform::KNOWN.into_iter().find_map(|platform| {
        let generation = Generation::of(platform)?;
        let (_, text) = chipless_npu::MACHINES[generation.machine];
        (machine::name(text) == machine).then_some((platform, generation))
    })
}

/// Published times of the same networks in both precisions, which docs/npu-timing.md has, are alike.
const INT8: &str = "by the cost model, and as if the functions of the SHAVEs took 8-bit numbers, too; on chips, int8 was measured no faster (docs/npu-timing.md)";

/// Of so many tasks of DPUs and SHAVEs, one may be without a name in the trace of its own compilation. In all 223 traces of programs for NPU4000 that were looked at, none is.
const MOST_NAMELESS: usize = 20;

/// The parameter by which elements of neither 8 nor 16 bits count; 0 counts their bytes.
const BY_BYTES: &str = "dma.odd_element";

/// What to say of transfers whose elements count as numbers of 16 bits, which they are not: those of less than a byte take much longer than their
/// bytes, those of 32 bits half as long. Nothing where that is less than a hundredth of what all transfers count.
fn odd_elements_note(program: &Program<'_>) -> Option<String> {
    let (mut all, mut off, mut longer, mut shorter) = (0u64, 0u64, Vec::new(), 0);
    for task in program.tasks.indices() {
        let moved = program.demands(task).iter().map(|demand| demand.bytes);
        let counted = program.counted_demands(task).map(|demand| demand.bytes);
        let (moved, counted) = (moved.max().unwrap_or(0), counted.max().unwrap_or(0));
        all = all.saturating_add(counted);
        // A transfer that converts counts by its narrower side.
        let converts = || !program.kernel(task).details().is_empty();
        if counted / 2 >= moved && moved > 0 {
            longer.push(counted / moved);
        } else if counted == moved / 2 && counted > 0 && !converts() {
            shorter += 1;
        } else {
            continue;
        }
        off = off.saturating_add(counted.abs_diff(moved));
    }
    if off <= all / 100 {
        return None;
    }
    let narrow = longer.iter().max().map(|most| {
        format!(
            "{} of elements of less than a byte (sparsity maps, 4-bit weights) are timed as up to {most} times their bytes",
            count(longer.len(), "transfer")
        )
    });
    let wide = (shorter > 0).then(|| {
        let transfers = count(shorter, "transfer");
        format!("{transfers} of 32-bit numbers are timed as half their bytes")
    });
    let both: Vec<String> = narrow.into_iter().chain(wide).collect();
    Some(format!(
        "{}, as in the compiler's estimates: {BY_BYTES} sets the bytes of such an element. --what-if {BY_BYTES}=0 times them by their bytes",
        both.join(", and ")
    ))
}

/// What to say of names of another program: a trace of another compilation names a few tasks by chance, and those of all others would follow from them.
fn foreign_names(program: &Program<'_>) -> Option<String> {
    let queue = |task: &Task| &*program.queues[task.queue].name;
    let computes =
        |task: &&Task| queue(task).starts_with("dpu") || queue(task).starts_with("shave");
    let all = program.tasks.iter().filter(computes);
    let nameless = all.clone().filter(|task| task.label.is_none());
    let first = nameless.clone().next()?;
    if nameless.count() <= all.count() / MOST_NAMELESS {
        return None;
    }
    let name = queue(first);
    let tasks = program
        .tasks
        .iter()
        .filter(|task| task.queue == first.queue);
    Some(format!(
        "no names are used. The schedule trace is of another compilation: it has other tasks for {name} than the {} of the blob. Pass the trace that the compiler wrote with this \
         blob; `diff` takes that of its second file as --other names=FILE",
        tasks.count()
    ))
}

impl Recompiles for Opened<'_> {
    /// The same tasks on fewer or more tiles take longer or shorter; those on 8-bit numbers have half the bytes, and half the taps at a time.
    fn recompiled(&self, quantity: &str, value: &str) -> Result<Vec<String>, Failure> {
        let refused = |expected: String| {
            let text = format!("expected {quantity}={expected}, found \"{quantity}={value}\"");
            Failure::misuse("--what-if", text)
        };
        if quantity == "precision" {
            if value != "int8" {
                return Err(refused("int8".to_owned()));
            }
            let narrow = 1.0 / self.options()?.machine.dpu.narrow;
            let bytes = [
                "clock.shave",
                "dma.bytes_per_cycle",
                "dma.ddr_bytes_per_second",
                "dma.ddr_to_ddr_bytes_per_second",
                "dma.constant_bytes_per_second",
            ];
            let halved = bytes.iter().map(|figure| format!("{figure}=2x"));
            let dpu = [format!("clock.dpu={narrow}x")];
            return Ok(dpu.into_iter().chain(halved).collect());
        }
        let most = self.most_tiles();
        let tiles = value
            .parse()
            .ok()
            .filter(|tiles| (1..=most).contains(tiles))
            .ok_or_else(|| refused(format!("1 to {most}")))?;
        let factor = f64::from(tiles) / f64::from(self.document.tiles().max(1));
        let engines = ["clock.dpu", "clock.shave"];
        Ok(engines.iter().map(|e| format!("{e}={factor}x")).collect())
    }

    fn how(&self, change: &str) -> Option<String> {
        match change.split_once('=')? {
            ("tiles", number) => Some(format!("compile with the property NPU_TILES={number}")),
            ("precision", _) => Some(format!("compile a quantised model (nncf.quantize); {INT8}")),
            (BY_BYTES, "0") => Some("if transfers of elements of less than a byte, or of 32 bits, took as long as their bytes: a rule of the compiler's estimates, which no measurement confirms".to_owned()),
            _ => None,
        }
    }

    fn gains_nothing(&self, change: &str) -> bool {
        change.starts_with("precision=")
    }

    fn compilations(&self, program: &Program<'_>) -> Vec<String> {
        let most = self.most_tiles();
        let more = (u32::from(self.document.tiles()) < most).then(|| format!("tiles={most}"));
        let computes_wide = |kernel: &dyn Kernel| {
            let mut is_wide = false;
            if kernel.arithmetic() > 0 {
                kernel.accesses(&mut |access| {
                    let is_read = access.direction == Direction::Read;
                    let tensor = is_read.then(|| kernel.tensor(&access)).flatten();
                    is_wide |= tensor.is_some_and(|(element, _)| element.bits() > 8);
                });
            }
            is_wide
        };
        let is_wide = program
            .kernels
            .iter()
            .any(|kernel| computes_wide(&**kernel));
        let narrow = is_wide.then(|| "precision=int8".to_owned());
        let by_bytes = odd_elements_note(program).map(|_| format!("{BY_BYTES}=0"));
        more.into_iter().chain(narrow).chain(by_bytes).collect()
    }
}

impl SharesDevice for Opened<'_> {
    fn tiles(&self) -> u32 {
        self.document.tiles().into()
    }

    /// Each DMA engine has a channel group with a port for each of its lists, so that ports 0 and 3 are in different groups.
    fn route(&self, queue: &str) -> Option<Route> {
        let (engine, list) = queue.strip_prefix("dma")?.split_once('.')?;
        let group: u8 = engine.parse().ok().filter(|engine| *engine < 2)?;
        let machine = &self.options().ok()?.machine;
        Some(Route {
            port: 2 * group + u8::from(list == "cmx"),
            group,
            load: machine.dma.path_clock / machine.clock.cmx(),
        })
    }

    /// Each DPU, and the SHAVEs of each tile or each of them, take pointers from a FIFO of their own. The chip before the NPU4 has none.
    fn fifo(&self, queue: &str) -> Option<Block> {
        self.document.generation().filter(|g| !g.runtime_symbols)?;
        let blocks = [("dpu", Block::Dpu), ("shave", Block::Shave)];
        let found = blocks.into_iter().find(|(name, _)| queue.starts_with(name));
        found.map(|(_, block)| block)
    }
}

impl ShowsRegisters for Opened<'_> {
    fn registers(&self, program: &Program<'_>, task: TaskId) -> Result<Vec<Descriptor>, Failure> {
        let location = &program.tasks[task].location;
        let part = &program.parts[location.part];
        let generation = self
            .document
            .generation()
            .unwrap_or(chipless_npu::generation::NPU4000);
        let found = registers::of_task(self.image()?, generation, part, location.offset);
        Ok(found.into_iter().map(descriptor).collect())
    }
}

impl NamesNodes for Opened<'_> {
    fn node(&self, layer: &str) -> Option<(&str, &str)> {
        self.model.get()?.node(layer)
    }
}

impl Planned for Opened<'_> {
    fn estimate_ns(&self) -> Option<f64> {
        chipless_npu::info::estimate_us(&self.document).map(|microseconds| microseconds * 1e3)
    }

    fn schedule(&self, trace: &Input) -> Result<Schedule, Failure> {
        let planned = self::trace(trace)?;
        // One fetch is planned for each pair of ours: invariants with variants, ranges with invocations.
        let slice = |event: &chipless_npu::names::Planned| Slice {
            name: event.name.clone(),
            start_ns: event.start * 1e3,
            duration_ns: event.duration * 1e3,
            at: None,
            source: String::new(),
            tasks: if event.name == "fetch_dma" { 2 } else { 1 },
        };
        let queues = planned.queues().into_iter();
        Ok(Schedule {
            origin: Origin::Planned,
            latency_ns: planned.total() * 1e3,
            queues: queues
                .map(|(queue, events)| (queue, events.iter().map(slice).collect()))
                .collect(),
        })
    }
}

impl Profiles for Opened<'_> {
    fn profile(
        &self,
        program: &Program<'_>,
        timeline: &Timeline,
    ) -> Result<(Vec<u8>, usize), Failure> {
        let Some(profiling) = Profiling::read(&self.document) else {
            return Err(Failure::unsupported(
                "the blob has no section .profiling: only programs that were compiled with PERF_COUNT leave a profiling buffer (--profile)",
            ));
        };
        profiling
            .buffer(&self.document, program, timeline, &self.options()?.machine)
            .map_err(Failure::unsupported)
    }
}

/// The compiler's schedule trace.
fn trace(file: &Input) -> Result<Trace, Failure> {
    Trace::read(&file.bytes).map_err(|error| {
        let text = match foreign::kind(&file.bytes) {
            // A packed trace is read, so its own error says more.
            Some((kind, advice)) if advice != foreign::UNPACK => {
                format!("expected the compiler's schedule trace (JSON), found {kind}")
            }
            _ => error,
        };
        Failure::unreadable(&file.name, text)
    })
}

/// A descriptor as reports have it.
fn descriptor(structure: Structure) -> Descriptor {
    let fields = structure.fields.into_iter().map(|field| Field {
        register: field.register,
        name: field.name,
        byte: field.byte,
        bit: field.bit,
        width: field.width,
        value: field.value,
        meaning: field.meaning,
        used: field.used,
    });
    Descriptor {
        structure: structure.structure,
        section: structure.section,
        index: structure.index,
        offset: structure.offset,
        size: structure.size,
        fields: fields.collect(),
    }
}
