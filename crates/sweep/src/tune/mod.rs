//! Machines explored: a network is scheduled on each machine of a space.
//!
//! A [`Space`] names a machine file, what of it varies, and how schedules are searched for. Runs are numbered: networks outermost, then the
//! machines. The same space over the same files gives the same bytes, however many threads and shards there are: each search ends after a
//! number of trees.
//!
//! docs/tuning.md is the contract.

mod base;
mod space;

pub use space::Space;

use crate::results::{Origin, Results, cells};
use crate::row::Row;
use crate::runs::{Request, Runs, fingerprint};
use crate::sample::Value;
use crate::source::{AnyFiles, Recorded};
use base::Base;
use chipless::{Failure, FailureKind, Files};
use chipless_report::tables::Values as Cells;
use chipless_schedule::emit::{self, Unwritten, Written};
use chipless_schedule::machine::Machine;
use chipless_schedule::model::Objective;
use chipless_schedule::network::Network;
use chipless_schedule::onnx;
use chipless_schedule::price::{Price, RETICLE};
use chipless_schedule::tree::Tree;
use chipless_schedule::{reading, search};
use space::COLUMNS;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A network that is scheduled again and again.
struct Ready {
    name: String,
    network: Network,
    written: Written,
    batch: i64,
    /// The tree that a search finds for the base machine, once a point has asked for it.
    of_base: OnceLock<Option<Tree>>,
}

/// Schedules networks on every machine of a space.
///
/// # Errors
/// Files that are not there, networks that cannot be scheduled at all, figures that a machine does not have, a journal that cannot be
/// written. That a network does not fit a machine is a row.
pub fn run(
    space: &Space,
    networks: &[String],
    files: impl Files + 'static,
    request: &Request<'_>,
) -> Result<Results, Failure> {
    let files = AnyFiles(Arc::new(files));
    let base = Base::open(space, &files)?;
    let mut parts = vec![space.text.clone().into_bytes(), base.text().into_bytes()];
    let mut ready = Vec::new();
    for name in networks {
        let (network, bytes) = open(space, name, &files)?;
        parts.extend([name.clone().into_bytes(), bytes]);
        ready.push(network);
    }
    if ready.is_empty() {
        let text = "expected a network, found none";
        return Err(Failure::misuse("networks", text));
    }
    let values = base.resolve(&space.figures);
    let each = space.machines().unwrap_or(1).max(1);
    let count = each * ready.len() as u64;
    let point = |run: u64| {
        let machine = space.sample.point(&values, run % each);
        (&ready[(run / each) as usize], machine)
    };
    let fingerprint = fingerprint(parts.iter().map(Vec::as_slice));
    let runs = Runs::open("tune", &fingerprint, count, request)?;
    let best = Best::new(space.objective, &ready, each);
    let rows = runs.finish(
        request,
        &|run| {
            let (ready, figures) = point(run);
            row(run, &scheduled(space, &base, ready, &figures))
        },
        &|row| best.told(row),
    )?;
    let points: Vec<_> = rows.iter().map(|row| point(row.run)).collect();
    let names = points.iter().map(|(ready, _)| ready.name.clone());
    let mut axes = vec![("network".to_owned(), Cells::Text(names.collect()))];
    for (index, figure) in space.figures.iter().enumerate() {
        let each: Vec<&Value> = points.iter().map(|(_, point)| &point[index]).collect();
        axes.push((figure.name.clone(), cells(&values[index], &each)));
    }
    let origin = Origin {
        fingerprint,
        shard: request.shard,
        runs: count,
    };
    let columns = COLUMNS.map(str::to_owned);
    let results = Results::new(axes, &columns, &rows, origin);
    results.with_front(space.front.clone())
}

/// Everything that a space and its networks read, by name, so that schedules can be made where those files are not.
///
/// # Errors
/// As of [`run`].
pub fn carry(
    space: &Space,
    networks: &[String],
    files: impl Files + 'static,
) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
    let recorded = Recorded::new(files);
    let files = AnyFiles(Arc::new(recorded.clone()));
    Base::open(space, &files)?;
    for name in networks {
        open(space, name, &files)?;
    }
    Ok(recorded.contents())
}

/// A network, and the bytes of its file.
fn open(space: &Space, name: &str, files: &AnyFiles) -> Result<(Ready, Vec<u8>), Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::unreadable(name, error);
    let bytes = files.open(name).map_err(|error| wrong(&error))?;
    let beside = |file: &str| {
        let path = reading::beside(Path::new(name), file)?;
        let found = files.open(&path.to_string_lossy()).ok();
        Some(found?.to_vec())
    };
    let fixed = onnx::with_constants(&bytes, &space.constants);
    let fixed = fixed.map_err(|refused| wrong(&refused))?;
    let read = space.reading.read(&fixed, &beside).map_err(|error| {
        if let Some(found) = chipless::kind_of(name, &bytes) {
            return wrong(&format_args!("expected an ONNX model, found {found}"));
        }
        let text = error.to_string();
        // The importer speaks of the options of `chipless schedule`.
        let keys = [
            ("--shape ", "shapes: {NAME: [1, 3, 224, 224]}"),
            ("--constant ", "constants: {NAME: 1}"),
        ];
        if let Some((_, key)) = keys.iter().find(|(option, _)| text.contains(option)) {
            let of_a_space = format!("A space says it so: `schedule: {{{key}}}`");
            return wrong(&format_args!("{text}. {of_a_space}"));
        }
        wrong(&text)
    })?;
    let written = Written::of(&read.front, read.batch, false).map_err(|e| wrong(&e))?;
    let ready = Ready {
        name: name.to_owned(),
        network: read.front.network,
        written,
        batch: read.batch,
        of_base: OnceLock::new(),
    };
    Ok((ready, bytes.to_vec()))
}

/// What a machine gives for a network.
struct Point {
    latency: f64,
    energy: f64,
    price: Price,
}

/// Schedules a network on a machine.
fn scheduled(
    space: &Space,
    base: &Base,
    ready: &Ready,
    figures: &[Value],
) -> Result<Point, Failure> {
    let machine = base.machine(&space.figures, figures)?;
    let options = search::Options {
        batch: ready.batch,
        objective: space.objective,
        seconds: None,
        trees: Some(space.trees),
        seed: space.seed,
        // Points are searched side by side.
        threads: 1,
        latest: None,
        one_pass: false,
    };
    let searched = |machine: &Machine| {
        let given = (&ready.network, machine);
        let never = AtomicBool::new(false);
        let found = emit::searched(&ready.written, given, &options, &never, &mut |_| {});
        found.map(|(_, best)| best)
    };
    let mut best = searched(&machine)
        .map_err(|unwritten| impossible(&ready.name, &machine, &unwritten))?
        .replay;
    // Two searches differ by more than many machines do. What was found for the base machine is good for its variants, too: none of them looks
    // worse than it is for want of luck.
    let of_base = ready.of_base.get_or_init(|| {
        let base = base.machine(&[], &[]).ok()?;
        Some(searched(&base).ok()?.tree)
    });
    let on_this = of_base.as_ref().and_then(|tree| {
        let given = (&ready.network, &machine);
        emit::spec_dialect(&ready.written, given, tree).ok()
    });
    let cost = |(energy, cycles): (f64, i64)| space.objective.of(energy, cycles as f64);
    if let Some(other) = on_this.filter(|other| cost(other.replay) < cost(best)) {
        best = other.replay;
    }
    let (energy, cycles) = best;
    Ok(Point {
        latency: cycles as f64 * 1e9 / machine.clock,
        energy,
        price: Price::of(&machine, space.process, space.memory),
    })
}

fn impossible(network: &str, machine: &Machine, unwritten: &Unwritten) -> Failure {
    let kind = match unwritten {
        Unwritten::Impossible(_) => FailureKind::Fault,
        Unwritten::Unsupported(_) | Unwritten::Refused(_) => FailureKind::Unsupported,
    };
    Failure::new(
        kind,
        format_args!("{network} on {}", machine.name),
        unwritten,
    )
}

fn row(run: u64, point: &Result<Point, Failure>) -> Row {
    match point {
        Ok(point) => {
            let (area, dollars) = (point.price.area(), point.price.dollars());
            let message = match dollars {
                Some(_) => String::new(),
                None => format!(
                    "no price: the die would have {area:.0} mm², and a reticle takes {RETICLE:.0} mm²"
                ),
            };
            Row {
                run,
                status: "ok".into(),
                message,
                values: vec![
                    Some(point.latency),
                    Some(point.energy),
                    Some(point.latency * point.energy),
                    Some(area),
                    dollars,
                ],
            }
        }
        Err(failure) => Row {
            run,
            status: failure.kind.name().into(),
            message: failure.message.clone(),
            values: vec![None; COLUMNS.len()],
        },
    }
}

/// The best of what is minimised so far, for each network.
struct Best<'r> {
    column: usize,
    networks: &'r [Ready],
    /// Machines of a network.
    each: u64,
    found: Mutex<Vec<Option<f64>>>,
}

impl<'r> Best<'r> {
    fn new(objective: Objective, networks: &'r [Ready], each: u64) -> Best<'r> {
        let column = match objective {
            Objective::Delay => 0,
            Objective::Energy => 1,
            Objective::Edp => 2,
        };
        Best {
            column,
            networks,
            each,
            found: Mutex::new(vec![None; networks.len()]),
        }
    }

    /// The best with this row, as text.
    fn told(&self, row: &Row) -> String {
        let mut best = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let of = &mut best[(row.run / self.each) as usize];
        let found = row.values.get(self.column).copied().flatten();
        *of = [*of, found].into_iter().flatten().reduce(f64::min);
        let each = self.networks.iter().zip(&*best);
        let said = each.filter_map(|(ready, best)| {
            let stem = Path::new(&ready.name).file_stem()?.to_string_lossy();
            Some(format!("{stem} {:.4e}", (*best)?))
        });
        let said = said.collect::<Vec<_>>().join(", ");
        if said.is_empty() {
            return said;
        }
        format!("best {}: {said}", COLUMNS[self.column])
    }
}
