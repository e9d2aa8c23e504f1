//! Schedules of the Gemini family, assembly of their cores, and traces.

mod advice;

use crate::capability::{Capabilities, Capability, Converts, Draws, ListsAssembly};
use crate::failure::Failure;
use crate::foreign;
use crate::npy;
use crate::options::{Input, OptionKind, OptionSpec, Options};
use crate::target::{Document, Lowered, Package, Picture, Source, Target};
use chipless_gemini::{
    Array, Arrays, Assembly, Dialect, FileKind, MACHINES, Machine, Network, Schedule, WeightData,
    replay,
};
use chipless_model::{ElementType, Finding, Info, Node, Program, Rule, TaskId, Text, Value};
use chipless_sim::{Timeline, TimingOnly};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The target.
pub(super) struct Gemini;

static OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "network",
        kind: OptionKind::File,
        value: "FILE.json",
        help: "Network of the schedule (front-end file)",
        commands: &[
            "run", "debug", "check", "list", "report", "view", "diff", "convert", "iospec",
        ],
        is_repeated: false,
    },
    OptionSpec {
        name: "weights",
        kind: OptionKind::Directory,
        value: "DIR",
        help: "Directory with the network's arrays (.npy). Needs --network. Default: seeded random weights",
        commands: &[
            "run", "debug", "check", "list", "report", "view", "diff", "iospec",
        ],
        is_repeated: false,
    },
    OptionSpec {
        name: "compare",
        kind: OptionKind::File,
        value: "TRACE.txt",
        help: "Trace of the program to compare times with",
        // The command line's own --compare gives it.
        commands: &[],
        is_repeated: false,
    },
    OptionSpec {
        name: "assembly",
        kind: OptionKind::File,
        value: "ASM.txt",
        help: "Assembly of the schedule. Default: asm.txt beside it, if there",
        commands: &["list"],
        is_repeated: false,
    },
    OptionSpec {
        name: "batch",
        kind: OptionKind::Count,
        value: "N",
        help: "Batch that the schedule must be for",
        commands: &["run", "debug", "check", "list", "report", "view", "diff"],
        is_repeated: false,
    },
];

impl Target for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn files(&self) -> &'static [&'static str] {
        &["a schedule (JSON) of Gemini, SET or IR-tiling"]
    }

    fn recognize(&self, bytes: &[u8]) -> bool {
        FileKind::of(bytes).is_some()
    }

    fn options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn rules(&self) -> Vec<&'static Rule> {
        chipless_gemini::rules::all().collect()
    }

    fn machines(&self) -> &'static [(&'static str, &'static str)] {
        MACHINES
    }

    fn capabilities(&self) -> &'static [Capability] {
        &[
            Capability::Converts,
            Capability::Draws,
            Capability::ListsAssembly,
        ]
    }

    fn open<'f>(&self, source: Source<'f>) -> Result<Box<dyn Package + 'f>, Failure> {
        Ok(Box::new(File(source)))
    }
}

/// A file of any kind.
struct File<'f>(Source<'f>);

impl Package for File<'_> {
    fn read(&self) -> Result<Box<dyn Document + '_>, Failure> {
        let Source {
            name,
            bytes,
            options,
        } = self.0;
        let one = |finding: Box<Finding>| Failure::reading(vec![*finding]);
        if FileKind::of(bytes) == Some(FileKind::Assembly) {
            let bytes = chipless_gemini::unzip(bytes, &options.limits).map_err(one)?;
            let assembly = Assembly::read(&bytes, &options.limits).map_err(one)?;
            let schedule = schedule_beside(name, options)?;
            let mut findings = assembly.findings();
            findings.extend(schedule.iter().flat_map(|s| assembly.against(s)));
            return Ok(Box::new(OpenedAssembly {
                findings,
                assembly,
                schedule,
                text: String::from_utf8_lossy(&bytes).into_owned(),
                options,
            }));
        }
        let document =
            chipless_gemini::Document::read(bytes, name, &options.limits).map_err(one)?;
        let network = options
            .file("network")?
            .map(|file| network(&file, options))
            .transpose()?;
        let batch = options.value("batch").and_then(|batch| batch.parse().ok());
        Ok(Box::new(Opened {
            findings: document.findings(network.as_ref(), batch, &options.limits),
            weights: weights(name, options, &document.schedule, network.as_ref())?,
            document,
            network,
            path: name.into(),
            options,
            tiles: OnceLock::new(),
        }))
    }
}

/// The schedule that assembly was made from, where it lies beside it.
fn schedule_beside(name: &str, options: &Options) -> Result<Option<Schedule>, Failure> {
    let beside = ["schedule.json", "schedule.json.gz"]
        .map(|file| Path::new(name).with_file_name(file).display().to_string());
    let Some(path) = beside.into_iter().find(|path| options.exists(path)) else {
        return Ok(None);
    };
    let file = options.open(&path)?;
    chipless_gemini::Document::read(&file.bytes, &path, &options.limits)
        .map(|document| Some(document.schedule))
        .map_err(|finding| Failure::unreadable(&path, finding))
}

/// Reads a front-end file.
fn network(file: &Input, options: &Options) -> Result<Network, Failure> {
    chipless_gemini::unzip(&file.bytes, &options.limits)
        .and_then(|bytes| Network::read(&bytes, &options.limits))
        .map_err(|finding| match foreign::kind(&file.bytes) {
            Some((kind, _)) if kind == foreign::ONNX => Failure::unreadable(
                &file.name,
                "expected a front-end file (JSON), found an ONNX model. Pass the file that `chipless schedule --network-out` wrote",
            ),
            _ => Failure::unreadable(&file.name, finding),
        })
}

/// Reads assembly or a trace.
fn assembly(file: &Input, options: &Options) -> Result<Assembly, Failure> {
    chipless_gemini::unzip(&file.bytes, &options.limits)
        .and_then(|bytes| Assembly::read(&bytes, &options.limits))
        .map_err(|finding| Failure::unreadable(&file.name, finding))
}

/// The weights that a program is made with.
enum Weights {
    /// None: nobody will compute with them.
    None,
    /// Random ones.
    Seeded(u64),
    /// Arrays of the layers by name.
    Given(HashMap<String, Arrays>),
}

/// Why no values are computed from an ancestor's dialect, and what to do for them.
fn without_values(name: &str, network: Option<&Network>, otherwise: &str) -> String {
    let is_byte = |network: &Network| {
        let mut types = network
            .scheduled()
            .flat_map(|(_, layer)| &layer.output_dtype);
        types.all(|of| ElementType::from_name(of).is_none_or(|of| of.bits() == 8))
    };
    if network.is_some_and(|network| !is_byte(network)) {
        return format!(
            "values cannot be computed: this dialect counts a byte for each element, and the network has larger ones. Schedule it without `--dialect set` for values, or {otherwise}"
        );
    }
    format!(
        "values cannot be computed: this dialect does not say how elements lie in memory. For those of an int8 network, write the schedule in the spec's dialect with `chipless convert {name} --network net.json -o spec.json`, and run spec.json; or {otherwise}"
    )
}

/// The weights that the user gives, or random ones where somebody will compute with them.
fn weights(
    name: &str,
    options: &Options,
    schedule: &Schedule,
    network: Option<&Network>,
) -> Result<Weights, Failure> {
    let is_executed = schedule.dialect == Dialect::Spec;
    match (options.value("weights"), network) {
        (Some(_), None) => Err(Failure::misuse(
            "--weights",
            "expected --network FILE.json beside it, found none",
        )),
        (Some(_), Some(_)) if !is_executed => Err(Failure::misuse(
            "--weights",
            without_values(name, network, "leave --weights out"),
        )),
        (Some(directory), Some(network)) => {
            arrays(Path::new(directory), network, options).map(Weights::Given)
        }
        (None, _) if options.data.computes && is_executed => Ok(Weights::Seeded(options.data.seed)),
        (None, _) => Ok(Weights::None),
    }
}

/// Reads the arrays of a network: for each layer with weights the files that the front-end file names, or `LAYER_weight.npy`,
/// `LAYER_k.npy` and `LAYER_b.npy`.
fn arrays(
    directory: &Path,
    network: &Network,
    options: &Options,
) -> Result<HashMap<String, Arrays>, Failure> {
    let mut all = HashMap::new();
    let array = |path: Option<String>| match path {
        Some(path) => {
            let file = options.open(&path)?;
            let (shape, values) =
                npy::reals(&file.bytes).map_err(|error| Failure::unreadable(&path, error))?;
            Ok(Array { shape, values })
        }
        None => Ok(Array::default()),
    };
    for (name, layer) in network
        .scheduled()
        .filter(|(_, l)| matches!(l.operation.as_str(), "conv2d" | "conv2d_group" | "dense"))
    {
        let file = |roles: &[&str], role: &str| {
            let named = roles.iter().find_map(|role| layer.file_list.get(*role));
            let candidates = [
                named.map(|n| directory.join(n)),
                Some(directory.join(format!("{name}_{role}.npy"))),
            ];
            candidates
                .into_iter()
                .flatten()
                .map(|path| path.display().to_string())
                .find(|path| options.exists(path))
        };
        let Some(weight) = file(&["weight", "input_activation2"], "weight") else {
            if !directory.exists() {
                let text = "expected the directory that --weights-out of `chipless schedule` wrote, found no such directory";
                return Err(Failure::unreadable(directory.display(), text));
            }
            return Err(Failure::unreadable(
                directory.display(),
                format_args!(
                    "expected the weights of layer \"{name}\", {name}_weight.npy, found none"
                ),
            ));
        };
        all.insert(
            name.to_owned(),
            Arrays {
                weight: array(Some(weight))?,
                k: array(file(&["k"], "k"))?,
                b: array(file(&["b"], "b"))?,
            },
        );
    }
    for (name, named) in network.constants() {
        let own = format!("{name}.npy");
        let candidates = [named, Some(own.as_str())].into_iter().flatten();
        let mut paths = candidates.map(|file| directory.join(file).display().to_string());
        if let Some(path) = paths.find(|path| options.exists(path)) {
            let arrays = Arrays {
                weight: array(Some(path))?,
                ..Arrays::default()
            };
            all.insert(name.to_owned(), arrays);
        }
    }
    Ok(all)
}

/// A schedule that was read, and the options under which it is looked at.
struct Opened<'f> {
    document: chipless_gemini::Document<'f>,
    findings: Vec<Finding>,
    network: Option<Network>,
    weights: Weights,
    path: PathBuf,
    options: &'f Options,
    /// First and last tile of each workload, once it was lowered.
    tiles: OnceLock<Vec<[TaskId; 2]>>,
}

impl Converts for Opened<'_> {
    fn convert(&self) -> Result<String, Failure> {
        let schedule = self.document.schedule.clone();
        Ok(schedule.convert(self.network.as_ref()).write())
    }
}

impl ListsAssembly for Opened<'_> {
    fn beside(&self) -> Result<HashMap<TaskId, Vec<String>>, Failure> {
        let (Some(tiles), Some(assembly)) = (self.tiles.get(), self.assembly()?) else {
            return Ok(HashMap::new());
        };
        Ok(assembly.by_task(&self.document.schedule, tiles))
    }
}

impl Draws for Opened<'_> {
    fn pictures(&self) -> Result<Vec<Picture>, Failure> {
        let (machine, lowered) = (self.machine()?, self.lower()?);
        let timeline = chipless_sim::run(
            &chipless_sim::Verified::assume(&lowered.program),
            &mut TimingOnly,
        )
        .timeline;
        let Some(tiles) = self.tiles.get() else {
            return Ok(Vec::new());
        };
        let schedule = &self.document.schedule;
        let drawn = chipless_gemini::pictures::pictures(
            schedule,
            &lowered.program,
            tiles,
            &timeline,
            &machine,
        );
        Ok(drawn
            .into_iter()
            .map(|p| Picture {
                name: p.name,
                title: p.title,
                svg: p.svg,
                text: p.text,
            })
            .collect())
    }
}

impl Document for Opened<'_> {
    fn info(&self) -> Info {
        self.document.info()
    }

    fn own_machine(&self) -> Option<(&'static str, Option<String>)> {
        Some(self.machine_of_dialect())
    }

    fn times_only(&self) -> Option<&'static str> {
        let is_spec = self.document.schedule.dialect == Dialect::Spec;
        (is_spec && self.network.is_none()).then_some(
            "a schedule does not say what its layers compute. Pass `--network net.json` (the front-end file) to compute values",
        )
    }

    fn unchecked(&self) -> Option<&'static str> {
        let is_spec = self.document.schedule.dialect == Dialect::Spec;
        (is_spec && self.network.is_none()).then_some(
            "without --network, layers, weights and types are not checked against the network",
        )
    }

    fn no_values(&self) -> Option<String> {
        let is_spec = self.document.schedule.dialect == Dialect::Spec;
        let name = self.path.display().to_string();
        (!is_spec).then(|| without_values(&name, self.network.as_ref(), "pass `--timing-only`"))
    }

    fn raw(&self) -> Node {
        self.document.raw()
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn is_proven(&self) -> bool {
        let schedule = &self.document.schedule;
        schedule.dialect == Dialect::Spec && !schedule.is_packed()
    }

    fn facts(&self, program: &Program<'_>, timeline: &Timeline) -> Result<Vec<Node>, Failure> {
        let (Some(tiles), machine) = (self.tiles.get(), self.machine()?) else {
            return Ok(Vec::new());
        };
        let schedule = &self.document.schedule;
        let mut facts = replay::facts(schedule, program, tiles, timeline, &machine);
        if let Some(file) = self.options.file("compare")? {
            let trace = assembly(&file, self.options)?.trace().ok_or_else(|| {
                let text = "expected a trace, found assembly without times";
                Failure::unreadable(&file.name, text)
            })?;
            let trace = Some(&trace);
            facts.push(replay::compare(schedule, tiles, timeline, &machine, trace));
        }
        Ok(facts)
    }

    fn remarks(&self, facts: &[Node]) -> Vec<String> {
        let stalls = facts.iter().find(|fact| fact.name == "stalls");
        let mut reasons = stalls.iter().flat_map(|stalls| &stalls.children);
        let is_late = reasons.any(|reason| {
            reason.name == "weight_buffer" && reason.value != Some(Value::Integer(0))
        });
        let cores = facts.iter().find(|fact| fact.name == "stalls_by_core");
        let cores = cores.map_or(0, |cores| cores.children.len());
        let sum = (cores > 1).then(|| {
            format!(
                "stalls: cycles of {cores} cores added up; `stalls_by_core` in the JSON has each"
            )
        });
        let late = is_late.then(|| {
            "stalls: `weight_buffer` counts the wait for weights, also where they are late because DRAM brings them late; the critical path follows them to DRAM"
                .to_owned()
        });
        sum.into_iter().chain(late).collect()
    }

    fn faster(&self, limit: Option<(&str, f64)>) -> Option<String> {
        let by = self.options.timed_by(self.machine_of_dialect().0).ok();
        let machine = by.and_then(|by| by.file);
        Some(advice::faster(
            &self.document.schedule,
            limit,
            machine.as_deref().unwrap_or("mesh.json"),
            || self.slow_links(),
        ))
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            converts: Some(self),
            draws: Some(self),
            lists_assembly: Some(self),
            ..Capabilities::default()
        }
    }

    fn makes_weights(&self) -> bool {
        matches!(self.weights, Weights::Seeded(_))
    }

    fn lower(&self) -> Result<Lowered<'_>, Failure> {
        let machine = self.machine()?;
        let weights = match &self.weights {
            Weights::None => None,
            Weights::Seeded(seed) => Some(WeightData::Seeded(*seed)),
            Weights::Given(arrays) => Some(WeightData::Given(arrays)),
        };
        let data = chipless_gemini::Data {
            network: self.network.as_ref(),
            weights,
        };
        let schedule = &self.document.schedule;
        let by = self.options.timed_by(self.machine_of_dialect().0)?;
        let (used, present) = (schedule.cores.len(), machine.core.count);
        if present > 0 && used > present as usize {
            let name = by.file.unwrap_or(by.name);
            let message = format!(
                "the schedule uses {used} cores, this machine has {present}. Schedule the network for it: `chipless schedule NET.onnx --machine {name} …`"
            );
            return Err(Failure::misuse(name, message));
        }
        let mut lowered = chipless_gemini::lower(schedule, &data, &machine, &self.options.limits)
            .map_err(|finding| Failure::program(vec![*finding]))?;
        let notes = &mut lowered.notes;
        if let (Weights::Seeded(seed), Some(_)) = (&self.weights, &self.network) {
            notes.push(format!(
                "weights are random (seed {seed}); --weights DIR gives real ones"
            ));
        }
        if by.file.is_none() {
            notes.push(format!(
                "a schedule does not name its machine: its times are by \"{}\", which is built in. For those of another, pass `--machine mesh.json`, the mesh that `chipless schedule` took",
                by.name
            ));
        }
        let lack = by.file.as_ref().and_then(|_| machine.lack_of_l2(schedule));
        notes.extend(lack);
        notes.extend(self.mesh_note(&machine, by.file.as_deref()));
        // A name such as mesh4x4 has the usual units.
        if let Some(file) = by.file.as_ref().filter(|file| self.options.exists(file)) {
            notes.push(format!(
                "the units take as long as the schedule says, whatever units {file} has: `chipless schedule` computes that for a mesh"
            ));
        }
        lowered.program.text = Text::new(self.document.text());
        // The tiles of a schedule are the same however often it is lowered.
        let _ = self.tiles.set(lowered.workloads);
        Ok(Lowered {
            program: lowered.program,
            notes: lowered.notes,
        })
    }
}

impl Opened<'_> {
    /// What to say of transfers of DRAM that a link on their way slows down.
    fn slow_links(&self) -> Option<String> {
        let lowered = self.lower().ok()?;
        let program = &lowered.program;
        let timeline =
            chipless_sim::run(&chipless_sim::Verified::assume(program), &mut TimingOnly).timeline;
        let queue = replay::DramQueue::of(program, &timeline);
        let share = |part: f64, of: f64| 100.0 * part / of.max(1.0);
        (queue.slowed_bytes > 0).then(|| {
            format!(
                "DRAM moves one transfer at a time, in {:.0} % of the run. {:.0} % of its bytes cross links that are slower, and move at {:.1} instead of {:.1} GB/s: wider links, or more ports of DRAM in the machine, help these. ",
                share(queue.busy.ns(), timeline.end.ns()),
                share(queue.slowed_bytes as f64, queue.bytes as f64),
                queue.slowed_bytes as f64 / queue.slowed.ns().max(1.0),
                queue.bytes as f64 / queue.at_bandwidth.ns().max(1.0),
            )
        })
    }

    /// What to say where the schedule was made for another mesh than the machine has: the file says its mesh, and is timed on that.
    fn mesh_note(&self, machine: &Machine, file: Option<&str>) -> Option<String> {
        let (file, there) = (file?, machine.mesh());
        let schedule = &self.document.schedule;
        let (own, used) = (schedule.mesh, schedule.cores.len());
        if there == Some(own) || own.contains(&0) {
            return None;
        }
        let ([columns, rows], present) = (own, u64::from(machine.core.count));
        let what = if present > u64::from(columns) * u64::from(rows) {
            format!("uses {used} of the {present} cores of {file}, and its DRAM. For all, schedule")
        } else {
            let [columns, rows] = there?;
            format!(
                "is timed on that mesh: of {file} ({columns} columns, {rows} rows) only the other parameters are used. For its times on {file}, schedule"
            )
        };
        Some(format!(
            "the schedule was made for a mesh of {columns} columns and {rows} rows, and {what} the network for {file}: `chipless schedule NET.onnx --machine {file} …`"
        ))
    }

    /// The machine of the dialect, and the bandwidth that the file's name says.
    fn machine_of_dialect(&self) -> (&'static str, Option<String>) {
        let is_spec = self.document.schedule.dialect == Dialect::Spec;
        let bandwidth = self
            .document
            .name
            .dram_bandwidth
            .filter(|bandwidth| is_spec && *bandwidth > 0);
        let named = bandwidth
            .map(|gibibytes| format!("dram.bytes_per_second={}", u64::from(gibibytes) << 30));
        (own_machine(if is_spec { "spec" } else { "set" }), named)
    }

    /// The machine that was given, or the file's own.
    fn machine(&self) -> Result<Machine, Failure> {
        let (own, named) = self.machine_of_dialect();
        self.options.machine(own, named.as_slice(), Machine::parse)
    }

    /// The assembly that was named, or lies beside the schedule.
    fn assembly(&self) -> Result<Option<Assembly>, Failure> {
        let beside = || {
            ["asm.txt", "asm.txt.gz"]
                .map(|name| self.path.with_file_name(name).display().to_string())
                .into_iter()
                .find(|path| self.options.exists(path))
        };
        let named = self.options.value("assembly").map(str::to_owned);
        let Some(path) = named.or_else(beside) else {
            return Ok(None);
        };
        assembly(&self.options.open(&path)?, self.options).map(Some)
    }
}

/// Text of a machine that comes with Chipless.
fn own_machine(name: &str) -> &'static str {
    MACHINES
        .iter()
        .find(|(known, _)| *known == name)
        .map_or("", |(_, text)| text)
}

/// Assembly of a core, or a trace.
struct OpenedAssembly<'f> {
    assembly: Assembly,
    /// The schedule that it was made from, if it lies beside it.
    schedule: Option<Schedule>,
    findings: Vec<Finding>,
    text: String,
    options: &'f Options,
}

impl Document for OpenedAssembly<'_> {
    fn info(&self) -> Info {
        self.assembly.info()
    }

    fn own_machine(&self) -> Option<(&'static str, Option<String>)> {
        Some((own_machine("spec"), None))
    }

    fn raw(&self) -> Node {
        self.assembly.raw()
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn lower(&self) -> Result<Lowered<'_>, Failure> {
        let machine = self
            .options
            .machine(own_machine("spec"), &[], Machine::parse)?;
        let mut notes = Vec::new();
        if !self.assembly.is_trace() {
            let from = if self.schedule.is_some() {
                "are those of the schedule beside it"
            } else {
                "are estimated from their tiles"
            };
            notes.push(format!(
                "assembly has no times: compute instructions {from}"
            ));
        }
        let limits = &self.options.limits;
        let program = self
            .assembly
            .lower(&machine, self.schedule.as_ref(), limits);
        let mut program = program.map_err(|error| Failure::building(&error))?;
        program.text = Text::new(&self.text);
        Ok(Lowered { program, notes })
    }
}
