//! Runs the programs of a plan.

use crate::plan::{Plan, Program};
use crate::results::{Origin, Results, cells};
use crate::row::Row;
use crate::runs::{Request, Runs, fingerprint};
use crate::sample::{Value, Values};
use crate::source::{AnyFiles, Recorded, Shared};
use chipless::{Failure, FailureKind, Files, KeptDocument, KeptProgram, Options, suggest};
use chipless_model::{Finding, Program as Model};
use chipless_report::tables::Values as Cells;
use chipless_sim::Order;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A program of the plan: its bytes, and the proof over it.
struct Ready {
    name: String,
    bytes: Shared,
    /// Of the program without other figures, where there is one.
    proven: Option<KeptProgram>,
}

/// Does the runs of a shard that its journal does not have, and gives the results of all. Programs are read and proven once; the proof holds
/// for every machine that changes nothing but times.
///
/// # Errors
/// Programs that are not there, figures that a target does not have, a journal that cannot be written. What goes wrong in a run is a row.
pub fn run(
    plan: &Plan,
    files: impl Files + 'static,
    request: &Request<'_>,
) -> Result<Results, Failure> {
    let files = AnyFiles(Arc::new(files));
    let opened = open(plan, &files)?;
    let fingerprint = dependences(plan, &opened);
    let values = resolve(plan, &files, &opened);
    columns_exist(plan, &files, &opened)?;
    let count = plan.runs().unwrap_or_default();
    let runs = Runs::open("sweep", &fingerprint, count, request)?;
    let left = runs.left.iter();
    let needed: BTreeSet<usize> = left.map(|run| plan.point(&values, *run).0).collect();
    let each = opened.into_iter().enumerate();
    let ready: Vec<Ready> = each
        .map(|(index, (name, bytes))| Ready {
            proven: needed
                .contains(&index)
                .then(|| prove(plan, &files, index, &name, &bytes))
                .flatten(),
            name,
            bytes,
        })
        .collect();
    let work = Work {
        plan,
        values: &values,
        files: &files,
        ready: &ready,
    };
    let rows = runs.finish(request, &|run| work.row(run), &|_| String::new())?;
    let points: Vec<(usize, Vec<Value>)> = rows
        .iter()
        .map(|row| plan.point(&values, row.run))
        .collect();
    let shown = points.iter();
    let programs = shown.map(|(program, _)| plan.programs[*program].shown.clone());
    let mut axes = vec![("program".to_owned(), Cells::Text(programs.collect()))];
    for (index, dimension) in plan.dimensions().into_iter().enumerate() {
        let each: Vec<_> = points.iter().map(|(_, point)| &point[index]).collect();
        axes.push((dimension.name.clone(), cells(&values[index], &each)));
    }
    let of = Origin {
        fingerprint,
        shard: request.shard,
        runs: count,
    };
    Ok(Results::new(axes, &plan.columns, &rows, of))
}

/// Everything that the runs of a plan read, by name, so that they can be made where those files are not.
///
/// # Errors
/// As of [`run`].
pub fn carry(
    plan: &Plan,
    files: impl Files + 'static,
) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
    let recorded = Recorded::new(files);
    let files = AnyFiles(Arc::new(recorded.clone()));
    let opened = open(plan, &files)?;
    resolve(plan, &files, &opened);
    for (index, (name, bytes)) in opened.iter().enumerate() {
        // With data, as the runs may be. What is wrong with a program is the rows' business.
        let options = options(plan, &files, &plan.programs[index], &[], true, 0)?;
        let kept = KeptDocument::open(name.clone(), Box::new(bytes.clone()), None, options);
        let _ = kept.and_then(|kept| kept.lower());
    }
    Ok(recorded.contents())
}

/// Opens every program, and refuses figures that its target does not have.
fn open(plan: &Plan, files: &AnyFiles) -> Result<Vec<(String, Shared)>, Failure> {
    let mut opened: Vec<(String, Shared)> = Vec::new();
    for program in &plan.programs {
        let name = program.path.to_string_lossy().into_owned();
        if let Some((_, bytes)) = opened.iter().find(|(known, _)| *known == name) {
            let bytes = bytes.clone();
            opened.push((name, bytes));
            continue;
        }
        let bytes = files.open(&name).map_err(|why| {
            Failure::unreadable(
                plan.at(program.line),
                format_args!("{}: {why}", program.shown),
            )
        })?;
        if let Some(target) = chipless::recognize(&name, &bytes) {
            let machines = target.machines().iter();
            let known: Vec<_> = machines
                .flat_map(|(_, text)| chipless::figures(text))
                .collect();
            plan.fit(target.name(), &known)?;
        }
        opened.push((name, Shared::new(bytes)));
    }
    Ok(opened)
}

/// Refuses columns that no program of the plan has: each program is timed once for that, with the figures of its own machine. What keeps a
/// program from being timed is the rows' business.
fn columns_exist(
    plan: &Plan,
    files: &AnyFiles,
    opened: &[(String, Shared)],
) -> Result<(), Failure> {
    // Outputs, whose values a timing run does not have, are left to the runs.
    let asked = plan.columns.iter();
    let mut missing: Vec<&String> = asked.filter(|path| !path.starts_with("outputs")).collect();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for ((name, bytes), program) in opened.iter().zip(&plan.programs) {
        if missing.is_empty() {
            return Ok(());
        }
        let timed = || {
            let options = options(plan, files, program, &[], false, 0)?;
            let kept = KeptDocument::open(name.clone(), Box::new(bytes.clone()), None, options)?;
            let ran = kept.lower()?.time()?;
            Ok::<_, Failure>(serde_json::to_value(ran.report().report()).unwrap_or_default())
        };
        let Ok(report) = timed() else {
            return Ok(());
        };
        missing.retain(|path| number(&report, path).is_err());
        let keys = report.as_object().into_iter().flat_map(|keys| keys.keys());
        known.extend(keys.cloned());
    }
    let Some(path) = missing.first() else {
        return Ok(());
    };
    let hint = suggest::hint(path, known.iter().map(String::as_str));
    let text =
        format!("`columns`: no program of the plan has a number `{path}` in `run --json`{hint}");
    Err(Failure::misuse(&plan.name, text))
}

/// What the results depend on.
fn dependences(plan: &Plan, opened: &[(String, Shared)]) -> String {
    let programs = plan.programs.iter().zip(opened);
    let parts = programs.flat_map(|(program, (_, bytes))| [program.shown.as_bytes(), bytes]);
    fingerprint(std::iter::once(plan.text.as_bytes()).chain(parts))
}

/// The values of everything that varies: ranges of figures that take whole numbers only are rounded.
fn resolve(plan: &Plan, files: &AnyFiles, opened: &[(String, Shared)]) -> Vec<Values> {
    let mut values = Vec::new();
    for dimension in plan.dimensions() {
        let mut resolved = dimension.values.clone();
        if let Values::Range(range) = &mut resolved {
            let halves = (range.from.min(range.to)).floor() + 0.5;
            let mut asked: BTreeSet<&str> = BTreeSet::new();
            for (program, (name, bytes)) in plan.programs.iter().zip(opened) {
                let target = chipless::recognize(name, bytes).map_or("", |target| target.name());
                if !asked.insert(target) {
                    continue;
                }
                let with = |value: String| {
                    let set = vec![("set".to_owned(), format!("{}={value}", dimension.name))];
                    let options = options(plan, files, program, &set, false, 0)?;
                    let kept =
                        KeptDocument::open(name.clone(), Box::new(bytes.clone()), None, options)?;
                    kept.lower().map(drop)
                };
                let is_misuse = |failure: &Failure| failure.kind == FailureKind::Misuse;
                let fails = with(halves.to_string())
                    .err()
                    .is_some_and(|f| is_misuse(&f));
                range.is_whole |= fails && with(halves.ceil().to_string()).is_ok();
            }
        }
        values.push(resolved);
    }
    values
}

/// The options of a run.
fn options(
    plan: &Plan,
    files: &AnyFiles,
    program: &Program,
    more: &[(String, String)],
    computes: bool,
    seed: u64,
) -> Result<Options, Failure> {
    let mut options = Options::with_files(files.clone());
    for (name, value) in &program.options {
        options.set(name, value.as_str())?;
    }
    let own = ["timing_only", "seed", "verify"];
    for (name, value) in plan
        .fixed
        .iter()
        .filter(|(name, _)| !own.contains(&name.as_str()))
    {
        options.set(name, value.text())?;
    }
    for (name, value) in more {
        options.set(name, value.as_str())?;
    }
    (options.data.computes, options.data.seed) = (computes, seed);
    Ok(options)
}

/// Proves a program as it is without other figures.
fn prove(
    plan: &Plan,
    files: &AnyFiles,
    index: usize,
    name: &str,
    bytes: &Shared,
) -> Option<KeptProgram> {
    let options = options(plan, files, &plan.programs[index], &[], false, 0).ok()?;
    let kept = KeptDocument::open(name.to_owned(), Box::new(bytes.clone()), None, options).ok()?;
    let program = kept.lower().ok()?;
    program.findings();
    Some(program)
}

struct Work<'w> {
    plan: &'w Plan,
    values: &'w [Values],
    files: &'w AnyFiles,
    ready: &'w [Ready],
}

impl Work<'_> {
    fn row(&self, run: u64) -> Row {
        let (program, point) = self.plan.point(self.values, run);
        match self.numbers(program, &point) {
            Ok(values) => Row {
                run,
                status: "ok".into(),
                message: String::new(),
                values,
            },
            Err(failure) => Row {
                run,
                status: failure.kind.name().into(),
                // Paths of this machine are none of the results' business.
                message: failure.message.clone() + &first(&failure.findings),
                values: vec![None; self.plan.columns.len()],
            },
        }
    }

    /// Runs a program once, and reads the numbers that were asked for.
    fn numbers(&self, program: usize, point: &[Value]) -> Result<Vec<Option<f64>>, Failure> {
        let Ready {
            name,
            bytes,
            proven,
        } = &self.ready[program];
        let figures = self.plan.figures.len();
        let mut more: Vec<(String, String)> = Vec::new();
        let (mut timing_only, mut verify, mut seed) = (false, true, 0);
        let varied = self
            .plan
            .options
            .iter()
            .map(|d| &d.name)
            .zip(&point[figures..]);
        let fixed = self.plan.fixed.iter().map(|(name, value)| (name, value));
        for (figure, value) in self.plan.figures.iter().zip(point) {
            more.push((
                "set".to_owned(),
                format!("{}={}", figure.name, value.text()),
            ));
        }
        for (name, value) in fixed.chain(varied.clone()) {
            match (name.as_str(), value) {
                ("timing_only", Value::Flag(flag)) => timing_only = *flag,
                ("verify", Value::Flag(flag)) => verify = *flag,
                ("seed", Value::Whole(number)) => seed = number.cast_unsigned(),
                _ => {}
            }
        }
        let own = ["timing_only", "seed", "verify"];
        let others = varied.filter(|(name, _)| !own.contains(&name.as_str()));
        more.extend(others.map(|(name, value)| (name.clone(), value.text())));
        let program = &self.plan.programs[program];
        let options = options(self.plan, self.files, program, &more, !timing_only, seed)?;
        let kept = KeptDocument::open(name.clone(), Box::new(bytes.clone()), None, options)?;
        let made = kept.lower()?;
        if verify {
            match proven {
                Some(base) if same(base.program(), made.program()) => {
                    refuse(kept.document().findings().iter().chain(base.findings()))?;
                }
                _ => made.proven()?,
            }
        }
        let ran = if timing_only {
            made.time()?
        } else {
            made.run(|_, _, _| Ok(None), seed, Order::Timed)?
        };
        let report = serde_json::to_value(ran.report().report()).unwrap_or_default();
        self.plan
            .columns
            .iter()
            .map(|path| number(&report, path))
            .collect()
    }
}

fn refuse<'f>(findings: impl Iterator<Item = &'f Finding>) -> Result<(), Failure> {
    let errors: Vec<Finding> = findings.filter(|f| f.is_error()).cloned().collect();
    if errors.is_empty() {
        return Ok(());
    }
    Err(Failure::program(errors))
}

/// Whether two programs of one file differ in nothing but times, so that a proof over one holds for the other.
fn same(a: &Model<'_>, b: &Model<'_>) -> bool {
    let queues = a
        .queues
        .iter()
        .map(|q| q.servers)
        .eq(b.queues.iter().map(|q| q.servers));
    let memories = a
        .memories
        .iter()
        .map(|m| m.size)
        .eq(b.memories.iter().map(|m| m.size));
    let buffers = || {
        let (a, b) = (a.buffers.iter(), b.buffers.iter());
        a.map(|x| (x.memory, x.address, x.size))
            .eq(b.map(|x| (x.memory, x.address, x.size)))
    };
    let tasks = || {
        let key = |m: &Model<'_>| -> Vec<_> {
            m.tasks
                .iter()
                .map(|t| (t.queue, t.index, t.kernel, t.waits, t.signals))
                .collect()
        };
        key(a) == key(b)
    };
    queues
        && memories
        && a.syncs.len() == b.syncs.len()
        && a.kernels.len() == b.kernels.len()
        && buffers()
        && tasks()
}

/// The first of some findings, for a message.
fn first(findings: &[Finding]) -> String {
    let error = findings.iter().find(|finding| finding.is_error());
    error.map_or_else(String::new, |finding| format!(": {finding}"))
}

/// A number of a report by its path: keys of objects, indices of lists, or the `name` of an object in a list.
fn number(report: &Json, path: &str) -> Result<Option<f64>, Failure> {
    let lacking = || {
        let text = format!("expected a number of `run --json`, found none at {path}");
        Failure::misuse("columns", text)
    };
    // Names may have dots of their own: the longest that fits is taken.
    fn at<'j>(json: &'j Json, path: &str) -> Option<&'j Json> {
        if path.is_empty() {
            return Some(json);
        }
        let ends = path
            .match_indices('.')
            .map(|(at, _)| at)
            .chain([path.len()]);
        ends.rev().find_map(|end| {
            let (key, rest) = (&path[..end], path.get(end + 1..).unwrap_or_default());
            let next = match json {
                Json::Object(map) => map.get(key),
                Json::Array(items) => {
                    let named = |item: &&Json| {
                        ["name", "layer", "queue", "memory"]
                            .iter()
                            .any(|n| item.get(n).and_then(Json::as_str) == Some(key))
                    };
                    items
                        .iter()
                        .find(named)
                        .or_else(|| items.get(key.parse::<usize>().ok()?))
                }
                _ => None,
            }?;
            at(next, rest)
        })
    }
    match at(report, path) {
        Some(Json::Number(number)) => Ok(number.as_f64()),
        Some(Json::Bool(flag)) => Ok(Some(f64::from(u8::from(*flag)))),
        Some(Json::Null) => Ok(None),
        _ => Err(lacking()),
    }
}
