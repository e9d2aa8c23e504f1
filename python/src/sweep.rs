//! Sweeps: whole ones, and shards for engines of others.

use crate::failure::raise;
use crate::pool::on_pool;
use chipless::{Failure, disk};
use chipless_report::tables::Form;
use chipless_sweep::{Carried, Plan, Request, Results, Shard, forget};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::path::Path;

/// The plan's name and text, its runs, and the files that it needs.
type Carry = (String, String, u64, BTreeMap<String, Vec<u8>>);

/// Does the runs of a plan and writes the results.
#[pyfunction]
pub(crate) fn sweep(
    py: Python<'_>,
    plan: String,
    output: String,
    shard: (u64, u64),
    jobs: usize,
    restart: bool,
) -> PyResult<()> {
    let done = on_pool(py, 0, || {
        let (output, form) = (Path::new(&output), form(&output)?);
        let plan = read(&plan)?;
        let request = request(shard, jobs, Some((output, restart)));
        let results = chipless_sweep::run(&plan, disk::Disk, &request)?;
        write(output, &results, form)?;
        forget(output);
        Ok(())
    })?;
    done.map_err(|failure: Failure| raise(py, &failure))
}

/// Reads a plan and everything that it needs, so that its shards can be made elsewhere.
#[pyfunction]
pub(crate) fn sweep_carry(py: Python<'_>, plan: String) -> PyResult<Carry> {
    let carried = on_pool(py, 0, || {
        let text = text(&plan)?;
        let read = read(&plan)?;
        let files = chipless_sweep::carry(&read, disk::Disk)?;
        Ok((plan, text, read.runs().unwrap_or_default(), files))
    })?;
    carried.map_err(|failure: Failure| raise(py, &failure))
}

/// Makes a shard of what was carried here. Returns its file.
#[pyfunction]
pub(crate) fn sweep_shard(
    py: Python<'_>,
    carried: Carry,
    shard: (u64, u64),
    jobs: usize,
) -> PyResult<Bound<'_, PyBytes>> {
    let made = on_pool(py, 0, || {
        let (name, text, _, files) = carried;
        let files = Carried::new(files);
        let plan = Plan::read(&name, &text, &|pattern| files.matching(pattern))?;
        let request = request(shard, jobs, None);
        let results = chipless_sweep::run(&plan, files, &request)?;
        Ok(results.write(Form::Parquet))
    })?;
    let made = made.map_err(|failure: Failure| raise(py, &failure))?;
    Ok(PyBytes::new(py, &made))
}

/// Makes one file of those of all shards, and writes it.
#[pyfunction]
pub(crate) fn sweep_merge(py: Python<'_>, shards: Vec<Vec<u8>>, output: String) -> PyResult<()> {
    let done = on_pool(py, 0, || {
        let each = shards.iter().enumerate().map(|(index, bytes)| {
            let name = format!("shard {}", index + 1);
            let results = Results::read(&name, bytes)?;
            Ok((name, results))
        });
        let shards = each.collect::<Result<Vec<_>, Failure>>()?;
        write(Path::new(&output), &Results::merge(shards)?, form(&output)?)
    })?;
    done.map_err(|failure| raise(py, &failure))
}

/// A shard, with a journal beside its output, which may begin anew.
pub(crate) fn request(
    shard: (u64, u64),
    jobs: usize,
    journal: Option<(&Path, bool)>,
) -> Request<'_> {
    Request {
        shard: Shard {
            index: shard.0,
            count: shard.1,
        },
        jobs,
        journal: journal.map(|(output, _)| output),
        restart: journal.is_some_and(|(_, restart)| restart),
        progress: None,
    }
}

pub(crate) fn text(name: &str) -> Result<String, Failure> {
    let bytes = disk::open(Path::new(name)).map_err(|why| Failure::unreadable(name, why))?;
    String::from_utf8(bytes.to_vec())
        .map_err(|_| Failure::unreadable(name, "expected text in UTF-8, found other bytes"))
}

fn read(name: &str) -> Result<Plan, Failure> {
    Plan::read(name, &text(name)?, &disk::matching)
}

pub(crate) fn form(output: &str) -> Result<Form, Failure> {
    if let Some(form @ (Form::Csv | Form::Parquet)) = Form::of(output) {
        Ok(form)
    } else {
        let text = "expected a name that ends in .parquet or .csv";
        Err(Failure::misuse(output, text))
    }
}

pub(crate) fn write(output: &Path, results: &Results, form: Form) -> Result<(), Failure> {
    disk::write(output, &[&results.write(form)]).map_err(|error| {
        Failure::misuse(output.display(), format_args!("cannot be written: {error}"))
    })
}
