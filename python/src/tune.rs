//! Machines explored: whole spaces, and shards for engines of others.

use crate::failure::raise;
use crate::pool::on_pool;
use crate::sweep::{form, request, text, write};
use chipless::{Failure, disk};
use chipless_report::tables::Form;
use chipless_sweep::tune::{Space, carry, run};
use chipless_sweep::{Carried, forget};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::path::Path;

/// The space's name and text, the networks, the points, and the files that they need.
type Carry = (String, String, Vec<String>, u64, BTreeMap<String, Vec<u8>>);

/// Schedules networks on the machines of a space and writes the results.
#[pyfunction]
pub(crate) fn tune(
    py: Python<'_>,
    networks: Vec<String>,
    space: String,
    output: String,
    shard: (u64, u64),
    jobs: usize,
    restart: bool,
) -> PyResult<()> {
    let done = on_pool(py, 0, || {
        let (output, form) = (Path::new(&output), form(&output)?);
        let space = Space::read(&space, &text(&space)?)?;
        let request = request(shard, jobs, Some((output, restart)));
        let results = run(&space, &networks, disk::Disk, &request)?;
        write(output, &results, form)?;
        forget(output);
        Ok(())
    })?;
    done.map_err(|failure: Failure| raise(py, &failure))
}

/// Reads a space, networks, and everything that they need, so that shards can be made elsewhere.
#[pyfunction]
pub(crate) fn tune_carry(py: Python<'_>, networks: Vec<String>, space: String) -> PyResult<Carry> {
    let carried = on_pool(py, 0, || {
        let text = text(&space)?;
        let read = Space::read(&space, &text)?;
        let files = carry(&read, &networks, disk::Disk)?;
        let points = read.machines().unwrap_or_default() * networks.len() as u64;
        Ok((space, text, networks, points, files))
    })?;
    carried.map_err(|failure: Failure| raise(py, &failure))
}

/// Makes a shard of what was carried here. Returns its file.
#[pyfunction]
pub(crate) fn tune_shard(
    py: Python<'_>,
    carried: Carry,
    shard: (u64, u64),
    jobs: usize,
) -> PyResult<Bound<'_, PyBytes>> {
    let made = on_pool(py, 0, || {
        let (name, text, networks, _, files) = carried;
        let space = Space::read(&name, &text)?;
        let request = request(shard, jobs, None);
        let results = run(&space, &networks, Carried::new(files), &request)?;
        Ok(results.write(Form::Parquet))
    })?;
    let made = made.map_err(|failure: Failure| raise(py, &failure))?;
    Ok(PyBytes::new(py, &made))
}
