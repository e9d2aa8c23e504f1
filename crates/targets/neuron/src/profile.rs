//! Profiles of runs on hardware: the JSON of the vendor's profilers, and which slots of a program its instructions are.
//!
//! `neuron-profile view --output-format json` and `neuron-explorer view --output-format json` write an object whose `instruction` is a list.
//! Of its entries these count:
//!
//! | field | meaning |
//! |---|---|
//! | `label` or `engine` | engine: `Tensor`, `Scalar`, `Vector`, `GpSimd`, `Sync`, in any case |
//! | `subgraph` | `sg00`; needed where the program has several |
//! | `compiler_pc` | index of the instruction in the engine's stream of the NEFF |
//! | `compiler_opcode`, `opcode` | name at compile time, and at run time |
//! | `timestamp`, `duration` | nanoseconds, in later versions picoseconds: `summary[0].total_time`, in seconds, tells which |
//! | `start_ts`, `duration_ns` | the same under the names of the Parquet tables, always nanoseconds |
//! | `bir_debug_info_source_location`, `nki_source_location` | `file.py:42` |
//!
//! Sources: "Profile Parquet Schema Reference" of the Neuron Explorer documentation (table `Instruction`); for the JSON's own names and units,
//! public scripts that read it. No sample file is public.

use crate::graph::Engine;
use crate::read::{EngineRoom, Neff};
use crate::stream::{Opcode, Slot, Stream};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a slot.
const SLOT_BYTES: u64 = crate::stream::SLOT_BYTES as u64;

/// A profile.
#[derive(Debug, Deserialize)]
pub struct Profile {
    instruction: Vec<Record>,
    #[serde(default)]
    summary: Vec<Summary>,
}

#[derive(Debug, Deserialize)]
struct Summary {
    /// Seconds.
    total_time: Option<f64>,
}

/// An instruction as the profiler saw it.
#[derive(Debug, Deserialize)]
struct Record {
    label: Option<String>,
    engine: Option<String>,
    subgraph: Option<String>,
    compiler_pc: Option<u64>,
    compiler_opcode: Option<String>,
    opcode: String,
    timestamp: Option<f64>,
    duration: Option<f64>,
    start_ts: Option<f64>,
    duration_ns: Option<f64>,
    bir_debug_info_source_location: Option<String>,
    nki_source_location: Option<String>,
}

/// An instruction of a profile and the slot that it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The engine as the program's queues are called: `sg00.dve`.
    pub queue: String,
    /// Its name at compile time.
    pub opcode: String,
    /// First byte of its slot in the engine's stream; `None` for what the runtime added.
    pub at: Option<u64>,
    /// Nanoseconds from the first instruction of the profile.
    pub start_ns: f64,
    /// Nanoseconds that it took.
    pub duration_ns: f64,
    /// Its line of the source; empty where none is known.
    pub source: String,
}

impl Record {
    /// Its name in the NEFF.
    fn name(&self) -> &str {
        let compiled = self.compiler_opcode.as_deref();
        compiled
            .filter(|name| !name.is_empty())
            .unwrap_or(&self.opcode)
    }

    /// Start and duration, and whether they are nanoseconds for sure.
    fn times(&self) -> Option<(f64, f64, bool)> {
        match (self.start_ts, self.duration_ns) {
            (Some(start), Some(duration)) => Some((start, duration, true)),
            _ => Some((self.timestamp?, self.duration?, false)),
        }
    }

    fn engine(&self) -> Option<Engine> {
        let label = self.label.as_ref().or(self.engine.as_ref())?;
        let label = label.to_ascii_lowercase();
        let known = [
            ("tensor", Engine::Pe),
            ("scalar", Engine::Act),
            ("vector", Engine::Dve),
            ("gpsimd", Engine::Pool),
            ("sync", Engine::Sp),
        ];
        // Later versions have tracks of an engine: `TensorMatrix`.
        let named = known.into_iter().find(|(name, _)| label.starts_with(name));
        named.map(|(_, engine)| engine)
    }
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// What is no such JSON, with line and column.
    pub fn read(bytes: &[u8]) -> Result<Profile, String> {
        let profile: Profile = serde_json::from_slice(bytes).map_err(|error| {
            format!("expected the JSON of neuron-profile or neuron-explorer with a list `instruction`: {error}")
        })?;
        if profile.instruction.is_empty() {
            return Err("expected instructions in the list `instruction`, found none".to_owned());
        }
        Ok(profile)
    }

    /// Its instructions in order of time, each with its slot of the program. Instructions of what is no compute engine (DMA queues) are left
    /// out. Without `compiler_pc`, instructions are taken in order, and so need the names of the program's slots in the program's order.
    ///
    /// # Errors
    /// A profile of another program, and instructions without the fields that are needed, by their index in the list.
    pub fn beside(&self, neff: &Neff<'_>) -> Result<Vec<Measured>, String> {
        let per_ns = self.units()?;
        let mut found = Vec::new();
        let mut rooms: BTreeMap<String, (&EngineRoom<'_>, Vec<usize>)> = BTreeMap::new();
        for (index, record) in self.instruction.iter().enumerate() {
            let Some(engine) = record.engine() else {
                continue;
            };
            let subgraph = subgraph(neff, record, index)?;
            let room = subgraph.engines.iter().find(|room| room.engine == engine);
            let room = room.ok_or_else(|| {
                format!("instruction {index}: {} has no {engine}", &*subgraph.name)
            })?;
            let (start, duration, in_ns) = record.times().ok_or_else(|| {
                format!("instruction {index}: expected `timestamp` and `duration`, or `start_ts` and `duration_ns`")
            })?;
            if !(start.is_finite() && duration.is_finite() && duration >= 0.0) {
                return Err(format!(
                    "instruction {index}: expected times that are numbers, found {start} and {duration}"
                ));
            }
            let scale = if in_ns { 1.0 } else { per_ns };
            let source = [
                &record.bir_debug_info_source_location,
                &record.nki_source_location,
            ];
            let queue = format!("{}.{}", subgraph.name, engine.name());
            rooms
                .entry(queue.clone())
                .or_insert_with(|| (room, Vec::new()))
                .1
                .push(found.len());
            found.push(Measured {
                queue,
                opcode: record.name().to_owned(),
                at: record.compiler_pc.map(|pc| pc.saturating_mul(SLOT_BYTES)),
                start_ns: start / scale,
                duration_ns: duration / scale,
                source: source
                    .into_iter()
                    .flatten()
                    .find(|s| !s.is_empty())
                    .cloned()
                    .unwrap_or_default(),
            });
        }
        for (queue, (room, mut records)) in rooms {
            records.sort_by(|a, b| found[*a].start_ns.total_cmp(&found[*b].start_ns));
            place(&queue, room, &records, &mut found)?;
        }
        let first = found
            .iter()
            .map(|m| m.start_ns)
            .fold(f64::INFINITY, f64::min);
        for measured in &mut found {
            measured.start_ns -= first;
        }
        found.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
        Ok(found)
    }

    /// Units of `timestamp` in a nanosecond.
    fn units(&self) -> Result<f64, String> {
        let times = self
            .instruction
            .iter()
            .filter_map(|record| Some((record.timestamp?, record.duration?)));
        let (mut first, mut last) = (f64::INFINITY, f64::NEG_INFINITY);
        for (start, duration) in times {
            first = first.min(start);
            last = last.max(start + duration);
        }
        let total = self.summary.first().and_then(|summary| summary.total_time);
        let Some(total) = total.filter(|total| *total > 0.0 && last > first) else {
            return Ok(1.0);
        };
        // The instructions take a part of the whole, seldom less than a thirtieth.
        let units = (last - first) / total;
        match units {
            _ if (3e7..3e10).contains(&units) => Ok(1.0),
            _ if (3e10..3e13).contains(&units) => Ok(1e3),
            _ => Err(format!(
                "expected times in nanoseconds or picoseconds, found {} units for a total_time of {total} s",
                last - first
            )),
        }
    }
}

/// The subgraph that an instruction belongs to.
fn subgraph<'n, 'a>(
    neff: &'n Neff<'a>,
    record: &Record,
    index: usize,
) -> Result<&'n crate::read::Subgraph<'a>, String> {
    let names = || {
        neff.subgraphs
            .iter()
            .map(|s| s.name.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    match (&record.subgraph, &neff.subgraphs[..]) {
        (Some(name), all) if !name.is_empty() => all
            .iter()
            .find(|s| *s.name == **name)
            .ok_or_else(|| format!("instruction {index}: expected a subgraph of the program ({}), found \"{name}\"", names())),
        (_, [only]) => Ok(only),
        _ => Err(format!("instruction {index}: expected `subgraph`, one of {}, found none", names())),
    }
}

/// Finds the slots of an engine's instructions, which are in order of time, or sees that they are as the profile says.
fn place(
    queue: &str,
    room: &EngineRoom<'_>,
    records: &[usize],
    found: &mut [Measured],
) -> Result<(), String> {
    let slots = Stream::new(room.instructions.map_or(&[][..], |m| m.bytes)).slots;
    if records.iter().any(|record| found[*record].at.is_some()) {
        return agrees(queue, slots, records, found);
    }
    let name = |slot: &Slot| Opcode::name_of(slot.head.opcode);
    let in_file: BTreeSet<_> = slots.iter().map(name).collect();
    let in_profile: BTreeSet<String> = records.iter().map(|r| found[*r].opcode.clone()).collect();
    let mut mine = slots
        .iter()
        .enumerate()
        .filter(|(_, slot)| in_profile.contains(&*name(slot)));
    let theirs: Vec<usize> = records
        .iter()
        .copied()
        .filter(|r| in_file.contains(&*found[*r].opcode))
        .collect();
    for (number, record) in theirs.iter().enumerate() {
        let record = &mut found[*record];
        match mine.next() {
            Some((index, slot)) if name(slot) == *record.opcode => {
                record.at = Some(index as u64 * SLOT_BYTES);
            }
            other => {
                let other = other.map_or("none left".into(), |(index, slot)| {
                    format!("{queue}[{index}] ({})", name(slot))
                });
                return Err(format!(
                    "instructions of {queue} have no `compiler_pc`, and their order is not the program's: expected {other}, found {} as number {number}",
                    record.opcode
                ));
            }
        }
    }
    Ok(())
}

/// Whether the slots that a profile names hold the instructions that it names.
fn agrees(
    queue: &str,
    slots: &[Slot],
    records: &[usize],
    found: &[Measured],
) -> Result<(), String> {
    let (mut others, mut first) = (0, None);
    let mut placed = 0;
    for record in records.iter().map(|record| &found[*record]) {
        let Some(at) = record.at else { continue };
        placed += 1;
        let index = at / SLOT_BYTES;
        let slot = usize::try_from(index)
            .ok()
            .and_then(|index| slots.get(index));
        let held = slot.map(|slot| Opcode::name_of(slot.head.opcode));
        if held.as_deref() != Some(&*record.opcode) {
            others += 1;
            first.get_or_insert_with(|| {
                format!(
                    "{queue}[{index}] is {} in the program and {} in the profile",
                    held.as_deref().unwrap_or("beyond its end"),
                    record.opcode
                )
            });
        }
    }
    match first {
        // Names of a few instructions differ between versions.
        Some(first) if 2 * others > placed => Err(format!(
            "the profile is of another program: {first}, and {others} of {placed} instructions differ so"
        )),
        _ => Ok(()),
    }
}
