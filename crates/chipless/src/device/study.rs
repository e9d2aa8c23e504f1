//! A workload, its simulations, and the result of all of them.

use super::alone::{alone_of_file, go, one_job};
use super::load::with_programs;
use super::{Described, machine, mistake};
use crate::failure::{Failure, FailureKind};
use crate::options::Options;
use crate::run::{fill, no_room};
use chipless_device::result::{Parts, WhatIf, ratios, what_if};
use chipless_device::{
    ArrivalKind, Change, Engine, FileProgram, Governor, Mistake, Program, Record, Report, Resolved,
    Setup, Simulated, Source, Stream, StreamSetup, Workload, quantity, read, rules,
};
use chipless_model::{Finding, Place, Storage};
use rayon::prelude::*;

/// What to simulate, and how.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The workload file, as the user named it.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The folder of the workload, with a separator at its end; empty for the working directory.
    pub folder: String,
    /// `KEY=VALUE` behind those of the file.
    pub set: Vec<String>,
    /// `KEY=VALUE` behind those of the file.
    pub what_if: Vec<String>,
    /// A machine file in place of the file's machine.
    pub machine: Option<String>,
    /// In place of the file's.
    pub seed: Option<u64>,
    /// In place of the file's, such as `10s`.
    pub duration: Option<String>,
    /// Whether jobs are told with their tasks.
    pub with_tasks: bool,
    /// Whether the report keeps what passes the memory path over time, for a page.
    pub with_traffic: bool,
}

/// Is given the outputs of the first job of a stream of a file: the stream, the program, its bytes after the run.
pub type Output<'o> =
    &'o mut dyn FnMut(&str, &chipless_model::Program<'_>, &Storage<'_>) -> Result<(), Failure>;

/// One simulation: its figures, and what it is for.
struct Variant {
    resolved: Resolved,
    purpose: Purpose,
}

enum Purpose {
    Halved,
    Doubled,
    WhatIf(String),
}

/// What a simulation beside the first gives.
enum Beside {
    Halved(std::collections::BTreeMap<String, Option<f64>>),
    Doubled(std::collections::BTreeMap<String, Option<f64>>),
    WhatIf(Box<WhatIf>),
}

struct Study<'r> {
    request: &'r Request,
    options: &'r Options,
    workload: Workload,
    described: Described,
    changes: Vec<Change>,
}

/// Simulates a workload. `observe` is told of each job that leaves; with `output` the programs of files compute.
///
/// # Errors
/// A mistake in the workload: a finding with its place. A program that is refused.
pub fn run(
    request: &Request,
    options: &Options,
    observe: Option<&mut dyn FnMut(&Record)>,
    output: Option<Output<'_>>,
) -> Result<Report, Failure> {
    let study = Study::open(request, options)?;
    let base = study.resolve(&[], 1.0, None)?;
    study.check(&base)?;
    let mut variants = Vec::new();
    for (text, change, span) in &study.workload.what_if {
        variants.push(Variant {
            resolved: study.resolve(std::slice::from_ref(change), 1.0, Some(*span))?,
            purpose: Purpose::WhatIf(text.clone()),
        });
    }
    for text in &request.what_if {
        for (text, change) in changes("--what-if", text)? {
            variants.push(Variant {
                resolved: study.resolve(&[change], 1.0, None)?,
                purpose: Purpose::WhatIf(text),
            });
        }
    }
    for variant in &variants {
        study.check(&variant.resolved)?;
    }
    study.with_setup(&base, output.is_some(), |programs| {
        study.simulate(&base, programs, variants, observe, output)
    })?
}

/// What is wrong with a workload, as far as it can be said without opening its programs: the first mistake of its text, or programs that are
/// not there. Empty for one that can be simulated if its programs can.
pub fn check(request: &Request, options: &Options) -> Vec<Finding> {
    let checked = Study::open(request, options).and_then(|study| {
        let base = study.resolve(&[], 1.0, None)?;
        study.check(&base)?;
        for (_, change, span) in &study.workload.what_if {
            let changed = study.resolve(std::slice::from_ref(change), 1.0, Some(*span))?;
            study.check(&changed)?;
        }
        Ok(study)
    });
    match checked {
        Ok(study) => {
            let missing = study.workload.streams.iter().filter_map(|stream| {
                let Source::File(path) = &stream.program else {
                    return None;
                };
                let text = format!("expected a program, found no file {path}");
                let there = options.exists(&join(&request.folder, path));
                (!there).then(|| rules::PROGRAM.at(stream.span.place(), text))
            });
            missing.collect()
        }
        Err(failure) if failure.findings.is_empty() => {
            vec![rules::FIGURE.at(Place::file(), failure.message)]
        }
        Err(failure) => failure.findings,
    }
}

/// The changes of `KEY=VALUE`, or of `KEY=VALUE,VALUE`, each as it would be written alone.
fn changes(option: &str, text: &str) -> Result<Vec<(String, Change)>, Failure> {
    Change::all(text).ok_or_else(|| {
        Failure::misuse(option, format_args!("expected KEY=VALUE, found \"{text}\""))
    })
}

impl<'r> Study<'r> {
    fn open(request: &'r Request, options: &'r Options) -> Result<Study<'r>, Failure> {
        let beside = |path: &str| join(&request.folder, path);
        let open = |path: &str| {
            let input = options
                .open(&beside(path))
                .map_err(|failure| failure.message)?;
            input
                .text()
                .map(str::to_owned)
                .map_err(|failure| failure.message)
        };
        let mut workload =
            read(&request.text, open).map_err(|finding| mistake(&request.name, *finding))?;
        if let Some(seed) = request.seed {
            workload.seed = seed;
        }
        if let Some(duration) = &request.duration {
            let time = quantity::time(duration, None).ok_or_else(|| {
                Failure::misuse(
                    "--duration",
                    format_args!("expected a time (10s), found \"{duration}\""),
                )
            })?;
            workload.duration = Some(time);
        }
        let (named, span) = &workload.machine;
        let mut described = match &request.machine {
            Some(path) => {
                machine(path, path, options).map_err(|error| Failure::misuse("--machine", error))?
            }
            None => machine(named, &beside(named), options)
                .map_err(|error| mistake(&request.name, rules::MACHINE.at(span.place(), error)))?,
        };
        let wants = workload.agents.iter();
        described.machine.agents = wants.map(|a| (a.name.clone(), a.figures)).collect();
        let mut changes: Vec<Change> = workload
            .set
            .iter()
            .map(|(change, _)| change.clone())
            .collect();
        for text in &request.set {
            // A value with a comma is none of the figures' values, which says so itself.
            let (key, value) = text.split_once('=').ok_or_else(|| {
                Failure::misuse(
                    "--set",
                    format_args!("expected KEY=VALUE, found \"{text}\""),
                )
            })?;
            changes.push(Change {
                key: key.trim().to_owned(),
                value: value.trim().to_owned(),
            });
        }
        Ok(Study {
            request,
            options,
            workload,
            described,
            changes,
        })
    }

    fn mistake(&self, finding: Finding) -> Failure {
        mistake(&self.request.name, finding)
    }

    /// The figures with some more changes, which stand at a place of the workload or on the command line.
    fn resolve(
        &self,
        more: &[Change],
        scaled: f64,
        span: Option<chipless_spu::yaml::Span>,
    ) -> Result<Resolved, Failure> {
        let all: Vec<Change> = self.changes.iter().chain(more).cloned().collect();
        let resolved = self.described.machine.resolve(&all, scaled);
        let asked = self
            .workload
            .contexts
            .iter()
            .filter_map(|context| context.percentage);
        let asked = asked.reduce(f64::max);
        let with_percentage = |mut resolved: Resolved| {
            if let Some(percentage) = asked {
                resolved.figures.normal_percentage = percentage;
            }
            resolved
        };
        resolved
            .map(with_percentage)
            .map_err(|Mistake { change, message }| {
                let own = self.workload.set.len();
                if let Some((_, span)) = self.workload.set.get(change) {
                    return self.mistake(rules::FIGURE.at(span.place(), message));
                }
                match (change < self.changes.len(), span) {
                    (false, Some(span)) => self.mistake(rules::FIGURE.at(span.place(), message)),
                    (true, _) if change >= own => Failure::misuse("--set", message),
                    (_, None) if change < all.len() => Failure::misuse("--what-if", message),
                    _ => Failure::misuse(&self.described.machine.name, message),
                }
            })
    }

    /// Whether the workload fits the device.
    fn check(&self, resolved: &Resolved) -> Result<(), Failure> {
        let (f, workload) = (&resolved.figures, &self.workload);
        let start = workload.machine.1;
        let contexts = workload.contexts.len() as u64;
        if contexts > f.contexts {
            let text = format!("expected at most {} contexts, found {contexts}", f.contexts);
            return Err(self.mistake(rules::CONTEXTS.at(start.place(), text)));
        }
        let used: std::collections::BTreeSet<usize> =
            workload.streams.iter().map(|s| s.context).collect();
        if used.len() as u64 > f.doorbells {
            let text = format!(
                "expected at most {} contexts with streams, found {}",
                f.doorbells,
                used.len()
            );
            return Err(self.mistake(rules::DOORBELLS.at(start.place(), text)));
        }
        for stream in &workload.streams {
            let Source::Synthetic(program) = &stream.program else {
                continue;
            };
            if program.tiles > f.tiles {
                let text = format!(
                    "expected at most {} tiles, found {}",
                    f.tiles, program.tiles
                );
                return Err(self.mistake(rules::TILES.at(program.span.place(), text)));
            }
            for fifo in &program.fifos {
                let (whose, count) = if fifo.is_shared {
                    ("the device", fifo.block.on_device(f))
                } else {
                    ("the program's tiles", fifo.block.of_tiles(f, program.tiles))
                };
                if u64::from(fifo.number) >= count {
                    let kind = fifo.block.name().replace('_', " ");
                    let range = match count.checked_sub(1) {
                        Some(last) => format!("0 to {last}"),
                        None => "there are none".to_owned(),
                    };
                    let text = format!(
                        "expected a {kind} FIFO of {whose} ({range}), found {}",
                        fifo.number
                    );
                    return Err(self.mistake(rules::SYNTHETIC.at(program.span.place(), text)));
                }
            }
        }
        Ok(())
    }

    /// Opens the programs of files as these figures have them.
    fn with_setup<T>(
        &self,
        resolved: &Resolved,
        computes: bool,
        then: impl FnOnce(&[FileProgram<'_, '_>]) -> T,
    ) -> Result<T, Failure> {
        let mut options = self.options.clone();
        options.data.computes = computes;
        options.data.seed = self.workload.seed;
        let mut npu = options.clone();
        if let Some(file) = &self.described.file {
            npu.set("machine", file.clone())?;
        }
        for figure in &resolved.program {
            npu.set("set", figure.clone())?;
        }
        let clocks = clocks(resolved).into_iter().map(|scale| {
            let mut npu = npu.clone();
            if let Some(scale) = scale {
                npu.set("set", format!("{SCALE}={scale}"))?;
            }
            Ok(npu)
        });
        let npu: Vec<Options> = clocks.collect::<Result<_, Failure>>()?;
        let streams: Vec<(&Stream, &str)> = self.file_streams().collect();
        let paths: Vec<String> = streams
            .iter()
            .map(|(_, path)| join(&self.request.folder, path))
            .collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        with_programs(&paths, &options, &npu, then).map_err(|(number, failure)| {
            if failure.kind.is_the_programs() || failure.kind == FailureKind::Misuse {
                return failure;
            }
            let message = failure.to_string();
            let message = message.lines().next().unwrap_or_default().to_owned();
            self.mistake(rules::PROGRAM.at(streams[number].0.span.place(), message))
        })
    }

    fn file_streams(&self) -> impl Iterator<Item = (&Stream, &str)> {
        self.workload
            .streams
            .iter()
            .filter_map(|stream| match &stream.program {
                Source::File(path) => Some((stream, path.as_str())),
                Source::Synthetic(_) => None,
            })
    }

    /// The setup of one simulation.
    fn setup<'s, 'p, 'a>(
        &'s self,
        resolved: &Resolved,
        programs: &'s [FileProgram<'p, 'a>],
    ) -> Result<Setup<'s, 'p, 'a>, Failure> {
        let count = self.file_streams().count().max(1);
        let mut files = programs.chunks(programs.len().div_ceil(count).max(1));
        let mut streams = Vec::with_capacity(self.workload.streams.len());
        for stream in &self.workload.streams {
            let (program, engine, slower) = match &stream.program {
                Source::Synthetic(program) => {
                    (Program::Synthetic(program), program.engine, &[][..])
                }
                Source::File(_) => {
                    let Some((program, slower)) = files.next().and_then(<[_]>::split_first) else {
                        continue;
                    };
                    if program
                        .tiles
                        .is_some_and(|tiles| tiles > resolved.figures.tiles)
                    {
                        let text = format!(
                            "expected a program on at most {} tiles, found one on {}",
                            resolved.figures.tiles,
                            program.tiles.unwrap_or(0)
                        );
                        return Err(self.mistake(rules::TILES.at(stream.span.place(), text)));
                    }
                    if let Some((block, depth, deepest)) = program.overflows(&resolved.figures) {
                        let text = format!(
                            "expected a program that has at most {depth} entries in a {} FIFO at a time, found one with {deepest}: its wait for room is not modelled",
                            block.name()
                        );
                        return Err(self.mistake(rules::PROGRAM.at(stream.span.place(), text)));
                    }
                    (
                        Program::File(program),
                        stream.engine.unwrap_or(Engine::Nn),
                        slower,
                    )
                }
            };
            streams.push(StreamSetup {
                stream,
                program,
                engine,
                slower,
                alone: alone_of_file(program, slower),
            });
        }
        let mut setup = Setup {
            contexts: &self.workload.contexts,
            agents: &self.workload.agents,
            streams,
            duration: self.workload.duration,
            seed: self.workload.seed,
            with_tasks: self.request.with_tasks,
            with_traffic: self.request.with_traffic,
        };
        let mut ideal = resolved.figures.clone();
        ideal.make_ideal();
        for number in 0..setup.streams.len() {
            if let Program::Synthetic(_) = setup.streams[number].program {
                let mut alone = None;
                for clock in (0..resolved.figures.power.clocks()).rev() {
                    ideal.power.governor = Governor::fixed(clock);
                    alone = one_job(&setup, number, &ideal, None)?;
                    setup.streams[number].alone[clock] = alone.unwrap_or(0);
                }
                let stream = &setup.streams[number];
                let endless = matches!(
                    stream.stream.arrivals.kind,
                    ArrivalKind::InFlight(_) | ArrivalKind::After { turns: None, .. }
                ) && stream.stream.arrivals.count.is_none();
                if alone == Some(0) && endless {
                    let text = "expected a program that takes time, or a `count`: jobs without time follow each other for ever";
                    return Err(self.mistake(rules::ARRIVALS.at(stream.stream.span.place(), text)));
                }
            }
        }
        Ok(setup)
    }

    fn simulate(
        &self,
        base: &Resolved,
        programs: &[FileProgram<'_, '_>],
        mut variants: Vec<Variant>,
        observe: Option<&mut dyn FnMut(&Record)>,
        output: Option<Output<'_>>,
    ) -> Result<Report, Failure> {
        let setup = self.setup(base, programs)?;
        let (mut alone, mut layers) = (Vec::new(), Vec::new());
        for (number, stream) in setup.streams.iter().enumerate() {
            let mut of_stream = Vec::new();
            alone.push(match stream.program {
                Program::Synthetic(program) if !program.layers.is_empty() => {
                    let mut keep = |record: &Record| {
                        of_stream = program.profile(record.tasks.as_deref().unwrap_or_default());
                    };
                    one_job(&setup, number, &base.figures, Some(&mut keep))?
                }
                _ => one_job(&setup, number, &base.figures, None)?,
            });
            if let Program::File(program) = stream.program {
                of_stream.clone_from(&program.layers);
            }
            layers.push(of_stream);
        }
        let mut refused = None;
        let mut give = |stream: usize| {
            let stored = self.storage(&setup, stream);
            stored
                .map_err(|failure| refused = Some(failure))
                .ok()
                .flatten()
        };
        // For no longer than this simulation.
        let mut observe = observe;
        let observe = observe
            .as_mut()
            .map(|observe| &mut **observe as &mut dyn FnMut(&Record));
        let mut simulated = match output {
            Some(_) => go(&setup, base, Some(&mut give), observe)?,
            None => go(&setup, base, None, observe)?,
        };
        if let Some(failure) = refused {
            return Err(failure);
        }
        if let Some(output) = output {
            simulated.outputs.sort_by_key(|(stream, _)| *stream);
            for (stream, storage) in &simulated.outputs {
                let stream = &setup.streams[*stream];
                if let Program::File(program) = stream.program {
                    output(&stream.stream.name, program.verified.program(), storage)?;
                }
            }
        }
        let parts = Parts {
            workload: &self.request.name,
            machine: &self.described.machine,
            resolved: base,
            setup: &setup,
            alone: &alone,
            layers: &layers,
        };
        let assumed = parts.assumed(&simulated);
        if !assumed.is_empty() {
            for (factor, purpose) in [(0.5, Purpose::Halved), (2.0, Purpose::Doubled)] {
                let mut resolved = self.resolve(&[], factor, None)?;
                let programs = self.described.machine.scaled(&assumed, factor);
                resolved.program.extend(programs);
                variants.push(Variant { resolved, purpose });
            }
        }
        let beside: Vec<Result<Beside, Failure>> = variants
            .par_iter()
            .map(|variant| self.beside(variant, base, programs, &setup, &simulated))
            .collect();
        let mut report = parts.report(&mut simulated);
        let same = || {
            setup
                .streams
                .iter()
                .map(|s| (s.stream.name.clone(), Some(1.0)))
                .collect()
        };
        (report.sensitivity.halved, report.sensitivity.doubled) = (same(), same());
        for beside in beside {
            match beside? {
                Beside::Halved(ratios) => report.sensitivity.halved = ratios,
                Beside::Doubled(ratios) => report.sensitivity.doubled = ratios,
                Beside::WhatIf(what_if) => report.what_if.push(*what_if),
            }
        }
        Ok(report)
    }

    /// A simulation beside the first.
    fn beside(
        &self,
        variant: &Variant,
        base: &Resolved,
        programs: &[FileProgram<'_, '_>],
        first: &Setup<'_, '_, '_>,
        simulated: &Simulated<'_>,
    ) -> Result<Beside, Failure> {
        let resolved = &variant.resolved;
        let with = |programs: &[FileProgram<'_, '_>]| {
            let setup = self.setup(resolved, programs)?;
            let mut other = go(&setup, resolved, None, None)?;
            Ok(match &variant.purpose {
                Purpose::Halved => Beside::Halved(ratios(first, &other, simulated)),
                Purpose::Doubled => Beside::Doubled(ratios(first, &other, simulated)),
                Purpose::WhatIf(text) => Beside::WhatIf(Box::new(what_if(
                    text,
                    &setup,
                    &variant.resolved.figures,
                    &mut other,
                ))),
            })
        };
        if resolved.program == base.program && clocks(resolved) == clocks(base) {
            with(programs)
        } else {
            self.with_setup(resolved, false, with)?
        }
    }

    /// The bytes of a program at its start, with random inputs; `None` for a synthetic one.
    fn storage<'a>(
        &self,
        setup: &Setup<'_, '_, 'a>,
        stream: usize,
    ) -> Result<Option<Storage<'a>>, Failure> {
        let Program::File(program) = setup.streams[stream].program else {
            return Ok(None);
        };
        let program = program.verified.program();
        let mut storage = Storage::new(&program.buffers, &self.options.limits).map_err(no_room)?;
        fill(
            program,
            |_, _, _| Ok(None),
            self.workload.seed,
            &mut storage,
        )?;
        Ok(Some(storage))
    }
}

/// A path of a workload, from the folder of the file.
pub(super) fn join(folder: &str, path: &str) -> String {
    if std::path::Path::new(path).is_absolute() {
        path.to_owned()
    } else {
        format!("{folder}{path}")
    }
}

/// The factor on all clocks of an NPU program.
const SCALE: &str = "clock.scale";

/// What the factor is at each clock that jobs may have; at the full one it stays as it is.
fn clocks(resolved: &Resolved) -> Vec<Option<f64>> {
    let set = resolved
        .program
        .iter()
        .filter_map(|figure| figure.split_once('='));
    let scale = set.rev().find(|(key, _)| *key == SCALE);
    let scale = scale
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(1.0f64);
    let power = &resolved.figures.power;
    (0..power.clocks())
        .map(|clock| (clock > 0).then(|| scale * power.speed(clock)))
        .collect()
}
