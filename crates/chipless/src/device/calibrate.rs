//! Figures from published latencies: what is fixed, and the clock, through two networks; the others say how good that is.

use super::alone::one_job_of_file;
use super::load::with_programs;
use super::{Described, machine};
use crate::failure::Failure;
use crate::options::Options;
use chipless_device::{Change, FileProgram};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The parameters that a pair of networks gives: what is fixed, as part of the host's time, and the speed of the chip: its clocks, and the latency of its DRAM.
const FIGURES: [&str; 3] = ["host.submit", "clock.scale", "dma.latency"];

/// The table of networks.
#[derive(Debug, Deserialize)]
struct Table {
    networks: Vec<Network>,
}

#[derive(Debug, Deserialize)]
struct Network {
    name: String,
    program: String,
    latency_ms: Option<f64>,
    throughput_per_s: Option<f64>,
}

/// What calibration by each pair of networks gives.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Calibration {
    /// Version of this form.
    pub schema_version: u32,
    /// Keys of the figures.
    pub figures: [&'static str; 3],
    /// The pair whose estimates lie farthest apart: what is fixed shows in the one, the clock in the other.
    pub chosen: [String; 2],
    /// All pairs.
    pub pairs: Vec<Pair>,
}

/// What calibration by a pair of networks gives.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Pair {
    /// Which.
    pub networks: [String; 2],
    /// The figures, as `set` takes them.
    pub values: BTreeMap<&'static str, Value>,
    /// Latency of each network with them, in ms.
    pub predicted_ms: BTreeMap<String, f64>,
    /// Of the other networks, relative to what was published.
    pub errors: BTreeMap<String, f64>,
    /// The median of these.
    pub median_error: f64,
}

/// A value of a figure.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// With its unit.
    Text(String),
    /// A number in the unit of the machine file.
    Number(f64),
}

/// A network of the table.
struct Measured {
    name: String,
    path: String,
    ms: f64,
    /// Alone, as the machine file has it, in ms: what scales with the clock, and what does not.
    estimate: f64,
    rest: f64,
}

/// Calibrates the device of NPU4 on each pair of networks of a table, whose programs are found from a folder.
///
/// # Errors
/// A table that cannot be read, fewer than two networks, programs that cannot be run.
pub fn calibrate(
    name: &str,
    text: &str,
    folder: &str,
    machine_file: Option<&str>,
    options: &Options,
) -> Result<Calibration, Failure> {
    let table: Table =
        serde_json::from_str(text).map_err(|error| Failure::unreadable(name, error))?;
    if table.networks.len() < 2 {
        let text = format!(
            "expected two networks at least, found {}",
            table.networks.len()
        );
        return Err(Failure::unreadable(name, text));
    }
    let path = machine_file.unwrap_or("npu4");
    let described =
        machine(path, path, options).map_err(|error| Failure::misuse("--machine", error))?;
    let mut networks = Vec::with_capacity(table.networks.len());
    for network in table.networks {
        let per_job = network.throughput_per_s.map(|rate| 1e3 / rate);
        let Some(ms) = network
            .latency_ms
            .or(per_job)
            .filter(|ms| ms.is_finite() && *ms > 0.0)
        else {
            let text = format!(
                "expected latency_ms or throughput_per_s above zero for {}, found neither",
                network.name
            );
            return Err(Failure::unreadable(name, text));
        };
        networks.push(Measured {
            name: network.name,
            path: super::study::join(folder, &network.program),
            ms,
            estimate: 0.0,
            rest: 0.0,
        });
    }
    let number = |key: &str| {
        let known = described
            .machine
            .program
            .iter()
            .find(|(known, _)| known == key);
        let value = known.and_then(|(_, value)| value.parse::<f64>().ok());
        value.ok_or_else(|| {
            Failure::misuse(path, format_args!("expected a figure {key}, found none"))
        })
    };
    let (clocks, latency) = (number("clock.scale")?, number("dma.latency")?);
    let nothing = [Change {
        key: "host.submit".to_owned(),
        value: "0us".to_owned(),
    }];
    let latencies = latencies(&networks, &described, &nothing, options)?;
    for (network, (alone, whole)) in networks.iter_mut().zip(latencies) {
        (network.estimate, network.rest) = (alone, whole - alone);
    }
    let count = networks.len();
    let pairs: Vec<(usize, usize)> = (0..count)
        .flat_map(|a| (a + 1..count).map(move |b| (a, b)))
        .collect();
    let found: Vec<Result<Pair, Failure>> = pairs
        .par_iter()
        .map(|(a, b)| pair(&networks, &described, (*a, *b), (clocks, latency), options))
        .collect();
    let found: Vec<Pair> = found.into_iter().collect::<Result<_, _>>()?;
    let ratio = |(a, b): &(usize, usize)| {
        let (a, b) = (networks[*a].estimate, networks[*b].estimate);
        (a / b).max(b / a)
    };
    let widest = pairs
        .iter()
        .zip(&found)
        .max_by(|(a, _), (b, _)| ratio(a).total_cmp(&ratio(b)));
    let chosen = widest
        .map(|(_, pair)| pair.networks.clone())
        .unwrap_or_default();
    Ok(Calibration {
        schema_version: 1,
        figures: FIGURES,
        chosen,
        pairs: found,
    })
}

/// Latencies of all networks, one job alone, in ms: of the program, and of the job.
fn latencies(
    networks: &[Measured],
    described: &Described,
    changes: &[Change],
    options: &Options,
) -> Result<Vec<(f64, f64)>, Failure> {
    let resolved = described
        .machine
        .resolve(changes, 1.0)
        .map_err(|mistake| Failure::misuse("--calibrate", mistake.message))?;
    let mut npu = options.clone();
    if let Some(file) = &described.file {
        npu.set("machine", file.clone())?;
    }
    for figure in &resolved.program {
        npu.set("set", figure.clone())?;
    }
    let paths: Vec<&str> = networks
        .iter()
        .map(|network| network.path.as_str())
        .collect();
    let ms = |ps: u64| ps as f64 / 1e9;
    let all = |programs: &[FileProgram<'_, '_>]| {
        let one = |program: &FileProgram<'_, '_>| {
            Ok((
                ms(program.latency),
                ms(one_job_of_file(program, &resolved.figures)?),
            ))
        };
        programs
            .iter()
            .map(one)
            .collect::<Result<Vec<_>, Failure>>()
    };
    with_programs(&paths, options, &[npu], all).map_err(|(_, failure)| failure)?
}

/// What two networks say of the figures, and these of the others.
fn pair(
    networks: &[Measured],
    described: &Described,
    (a, b): (usize, usize),
    (clocks, latency): (f64, f64),
    options: &Options,
) -> Result<Pair, Failure> {
    let (one, two) = (&networks[a], &networks[b]);
    // Measured = submit + rest + scale × estimate.
    let (m1, m2) = (one.ms - one.rest, two.ms - two.rest);
    let mut scale = (m2 - m1) / (two.estimate - one.estimate);
    let mut submit = m1 - scale * one.estimate;
    if !(scale.is_finite() && scale > 0.0) || submit < 0.0 {
        // A line through both would have a clock or a cost below zero: the clock alone then, in between.
        scale = (m1.max(0.0) / one.estimate * (m2.max(0.0) / two.estimate)).sqrt();
        submit = 0.0;
    }
    if !(scale.is_finite() && scale > 0.0) {
        let text = format!(
            "expected latencies above the costs of the device, found less for {} and {}",
            one.name, two.name
        );
        return Err(Failure::unreadable("--calibrate", text));
    }
    let submit = format!("{}ps", (submit * 1e9).round() as u64);
    let values = BTreeMap::from([
        (FIGURES[0], Value::Text(submit.clone())),
        (FIGURES[1], Value::Number(clocks / scale)),
        (FIGURES[2], Value::Number(latency * scale)),
    ]);
    let changes: Vec<Change> = values
        .iter()
        .map(|(key, value)| Change {
            key: (*key).to_owned(),
            value: match value {
                Value::Text(text) => text.clone(),
                Value::Number(number) => number.to_string(),
            },
        })
        .collect();
    let predicted = latencies(networks, described, &changes, options)?;
    let predicted_ms: BTreeMap<String, f64> = networks
        .iter()
        .zip(predicted)
        .map(|(network, (_, ms))| (network.name.clone(), ms))
        .collect();
    let others = networks
        .iter()
        .enumerate()
        .filter(|(number, _)| *number != a && *number != b);
    let errors: BTreeMap<String, f64> = others
        .map(|(_, network)| {
            (
                network.name.clone(),
                (predicted_ms[&network.name] / network.ms - 1.0).abs(),
            )
        })
        .collect();
    let mut sorted: Vec<f64> = errors.values().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median_error = match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    };
    Ok(Pair {
        networks: [one.name.clone(), two.name.clone()],
        values,
        predicted_ms,
        errors,
        median_error,
    })
}
