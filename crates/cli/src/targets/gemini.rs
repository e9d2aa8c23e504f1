//! Schedules of the Gemini family.

use super::Weights;
use super::{Consumer, Document, Lowering, Picture, Reader, Source};
use crate::failure::{Exit, Failure};
use crate::files;
use crate::npy;
use chipless_gemini::{
    Array, Arrays, Assembly, Data, Dialect, FileKind, Machine, Network, WeightData, replay,
};
use chipless_model::{Finding, Info, Limits, Node, Program, TaskId, Text};
use chipless_sim::{Timeline, TimingOnly};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A schedule that was read, and the options under which it is looked at.
struct Opened<'f, 'o> {
    document: chipless_gemini::Document<'f>,
    path: PathBuf,
    lowering: &'o Lowering,
    findings: OnceLock<Vec<Finding>>,
    /// First and last tile of each workload, once it was lowered.
    tiles: OnceLock<Vec<[TaskId; 2]>>,
}

pub(super) fn read(
    source: Source<'_>,
    lowering: &Lowering,
    then: Reader<'_>,
) -> Result<(), Vec<Finding>> {
    if FileKind::of(source.bytes) == Some(FileKind::Assembly) {
        let bytes = chipless_gemini::unzip(source.bytes, &lowering.limits)
            .map_err(|finding| vec![*finding])?;
        let assembly =
            Assembly::read(&bytes, &lowering.limits).map_err(|finding| vec![*finding])?;
        let findings = assembly.findings();
        then(&OpenedAssembly {
            assembly,
            findings,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        });
        return Ok(());
    }
    let document = chipless_gemini::Document::read(source.bytes, source.path, &lowering.limits)
        .map_err(|finding| vec![*finding])?;
    then(&Opened {
        document,
        path: source.path.into(),
        lowering,
        findings: OnceLock::new(),
        tiles: OnceLock::new(),
    });
    Ok(())
}

/// Reads the front-end file that an option names.
pub(super) fn network(path: &Path, limits: &Limits) -> Result<Network, Failure> {
    let bytes = files::open(path).map_err(|error| Failure::unusable(path.display(), error))?;
    let unpacked = chipless_gemini::unzip(&bytes, limits);
    let network = unpacked.and_then(|bytes| Network::read(&bytes, limits));
    network
        .map_err(|finding| Failure::Said(Exit::Unusable, format!("{}: {finding}", path.display())))
}

impl Document for Opened<'_, '_> {
    fn info(&self) -> Info {
        self.document.info()
    }

    fn raw(&self) -> Node {
        self.document.raw()
    }

    fn findings(&self) -> &[Finding] {
        let Lowering {
            network,
            batch,
            limits,
            ..
        } = self.lowering;
        self.findings
            .get_or_init(|| self.document.findings(network.as_ref(), *batch, limits))
    }

    fn convert(&self) -> Result<String, Vec<Finding>> {
        Ok(self
            .document
            .schedule
            .clone()
            .convert(self.lowering.network.as_ref())
            .write())
    }

    fn beside(&self, lowering: &Lowering) -> Result<HashMap<TaskId, Vec<String>>, Failure> {
        let (Some(tiles), Some(assembly)) = (self.tiles.get(), self.assembly(lowering)?) else {
            return Ok(HashMap::new());
        };
        Ok(assembly.by_task(&self.document.schedule, tiles))
    }

    fn facts(
        &self,
        lowering: &Lowering,
        program: &Program<'_>,
        timeline: &Timeline,
    ) -> Result<Vec<Node>, Failure> {
        let (Some(tiles), machine) = (self.tiles.get(), self.machine(lowering)?) else {
            return Ok(Vec::new());
        };
        let schedule = &self.document.schedule;
        let mut facts = replay::facts(schedule, program, tiles, timeline, &machine);
        if let Some((_, trace)) = &lowering.trace {
            facts.push(replay::compare(
                schedule,
                tiles,
                timeline,
                &machine,
                Some(trace),
            ));
        }
        Ok(facts)
    }

    fn pictures(&self, lowering: &Lowering) -> Result<Result<Vec<Picture>, Vec<Finding>>, Failure> {
        let machine = self.machine(lowering)?;
        let mut timeline = None;
        let lowered = self.lower(lowering, &mut |program, _| {
            timeline = Some(chipless_sim::run(program, &mut TimingOnly).timeline)
        })?;
        Ok(lowered.map(|()| {
            let (Some(tiles), Some(timeline)) = (self.tiles.get(), timeline) else {
                return Vec::new();
            };
            let drawn = chipless_gemini::pictures::pictures(
                &self.document.schedule,
                tiles,
                &timeline,
                &machine,
            );
            drawn
                .into_iter()
                .map(|p| Picture {
                    name: p.name,
                    title: p.title,
                    svg: p.svg,
                    text: p.text,
                })
                .collect()
        }))
    }

    fn lower(
        &self,
        lowering: &Lowering,
        then: Consumer<'_>,
    ) -> Result<Result<(), Vec<Finding>>, Failure> {
        let machine = self.machine(lowering)?;
        let weights = match &lowering.weights {
            Weights::None => None,
            Weights::Seeded(seed) => Some(WeightData::Seeded(*seed)),
            Weights::Given(arrays) => Some(WeightData::Given(arrays)),
        };
        let data = Data {
            network: lowering.network.as_ref(),
            weights,
        };
        let lowered =
            chipless_gemini::lower(&self.document.schedule, &data, &machine, &lowering.limits);
        Ok(match lowered {
            Ok(mut lowered) => {
                if let (Weights::Seeded(seed), Some(_)) = (&lowering.weights, &lowering.network) {
                    lowered.notes.push(format!(
                        "weights are random (seed {seed}); --weights DIR gives real ones"
                    ));
                }
                lowered.program.text = Text::new(self.document.text());
                // A document is lowered once for each run.
                let _ = self.tiles.set(lowered.workloads);
                then(&lowered.program, lowered.notes);
                Ok(())
            }
            Err(finding) => Err(vec![*finding]),
        })
    }
}

impl Opened<'_, '_> {
    /// The machine that was given, or that of the dialect with the bandwidth that the file's name says.
    fn machine(&self, lowering: &Lowering) -> Result<Machine, Failure> {
        let is_spec = self.document.schedule.dialect == Dialect::Spec;
        let bandwidth = self
            .document
            .name
            .dram_bandwidth
            .filter(|bandwidth| is_spec && *bandwidth > 0);
        let named = bandwidth
            .map(|gibibytes| format!("dram.bytes_per_second={}", u64::from(gibibytes) << 30));
        lowering.machine_or(
            own_machine(if is_spec { "spec" } else { "set" }),
            named.as_slice(),
            Machine::parse,
        )
    }

    /// The assembly that was named, or lies beside the schedule.
    fn assembly(&self, lowering: &Lowering) -> Result<Option<Assembly>, Failure> {
        let beside = || {
            ["asm.txt", "asm.txt.gz"]
                .map(|name| self.path.with_file_name(name))
                .into_iter()
                .find(|path| path.is_file())
        };
        let Some(path) = lowering.assembly.clone().or_else(beside) else {
            return Ok(None);
        };
        assembly(&path, &lowering.limits).map(Some)
    }
}

/// Text of a machine that comes with Chipless.
fn own_machine(name: &str) -> &'static str {
    chipless_gemini::MACHINES
        .iter()
        .find(|(known, _)| *known == name)
        .map_or("", |(_, text)| text)
}

/// Reads the arrays of a network: for each layer with weights the files that the front-end file names, or `LAYER_weight.npy`,
/// `LAYER_k.npy` and `LAYER_b.npy`.
pub(super) fn weights(
    directory: &Path,
    network: &Network,
) -> Result<HashMap<String, Arrays>, Failure> {
    let mut all = HashMap::new();
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
            candidates.into_iter().flatten().find(|path| path.is_file())
        };
        let array = |path: Option<PathBuf>| match path {
            Some(path) => {
                let bytes =
                    files::open(&path).map_err(|error| Failure::unusable(path.display(), error))?;
                let (shape, values) =
                    npy::reals(&bytes).map_err(|error| Failure::unusable(path.display(), error))?;
                Ok(Array { shape, values })
            }
            None => Ok(Array::default()),
        };
        let Some(weight) = file(&["weight", "input_activation2"], "weight") else {
            return Err(Failure::unusable(
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
    Ok(all)
}

/// Reads a trace.
pub(super) fn trace(path: &Path) -> Result<replay::Trace, Failure> {
    assembly(path, &Limits::default())?.trace().ok_or_else(|| {
        Failure::unusable(
            path.display(),
            "expected a trace, found assembly without times",
        )
    })
}

/// Reads assembly or a trace.
fn assembly(path: &Path, limits: &Limits) -> Result<Assembly, Failure> {
    let bytes = files::open(path).map_err(|error| Failure::unusable(path.display(), error))?;
    let assembly =
        chipless_gemini::unzip(&bytes, limits).and_then(|bytes| Assembly::read(&bytes, limits));
    assembly.map_err(|finding| Failure::unusable(path.display(), finding))
}

/// Assembly of a core, or a trace.
struct OpenedAssembly {
    assembly: Assembly,
    findings: Vec<Finding>,
    text: String,
}

impl Document for OpenedAssembly {
    fn info(&self) -> Info {
        self.assembly.info()
    }

    fn raw(&self) -> Node {
        self.assembly.raw()
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn lower(
        &self,
        lowering: &Lowering,
        then: Consumer<'_>,
    ) -> Result<Result<(), Vec<Finding>>, Failure> {
        let machine = lowering.machine_or(own_machine("spec"), &[], Machine::parse)?;
        let mut notes = Vec::new();
        if !self.assembly.is_trace() {
            notes.push(
                "assembly has no times: compute instructions are estimated from their tiles"
                    .to_owned(),
            );
        }
        let mut program = self.assembly.lower(&machine);
        program.text = Text::new(&self.text);
        then(&program, notes);
        Ok(Ok(()))
    }
}
