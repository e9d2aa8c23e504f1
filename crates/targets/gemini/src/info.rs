//! What a schedule is at a glance.

use crate::document::Document;
use crate::names::Name;
use crate::network::is_constant;
use crate::outputs::Outputs;
use crate::schedule::{Bounds, Dialect, Peer, Schedule, TensorKind};
use chipless_model::{ElementType, Info, TensorInfo, Value};
use indexmap::IndexMap;
use std::collections::{HashMap, HashSet};

impl Document<'_> {
    /// The file at a glance.
    pub fn info(&self) -> Info {
        let schedule = &self.schedule;
        let mut facts: Vec<(String, Value)> = Vec::new();
        let mut fact = |name: &str, value: Value| facts.push((name.to_owned(), value));
        let integer = |value: u64| Value::Integer(value.into());
        fact("dialect", Value::Text(schedule.dialect.name().to_owned()));
        fact(
            "mesh",
            Value::Text(format!("{} x {}", schedule.mesh[0], schedule.mesh[1])),
        );
        fact("top_batch_cut", integer(schedule.top_batch_cut.into()));
        if let Some(bytes) = schedule.buffer_size {
            fact("L2 buffer of a core, bytes", integer(bytes));
        }
        if let Some(key) = schedule.weight_key {
            fact("weight buffer", Value::Text(schedule.name(key).to_owned()));
        }
        fact(
            "compute time of all workloads, cycles",
            integer(
                schedule
                    .workloads()
                    .map(|(_, w)| w.time)
                    .fold(0, u64::saturating_add),
            ),
        );
        let by_name = [
            ("batch", self.name.batch),
            ("cores", self.name.cores),
            ("DRAM bandwidth, GB/s", self.name.dram_bandwidth),
        ];
        for (what, value) in by_name {
            if let Some(value) = value {
                fact(&format!("{what} (file name)"), integer(value.into()));
            }
        }
        let (inputs, outputs) = interface(schedule);
        Info {
            target: "gemini",
            platform: "Gemini accelerators".to_owned(),
            format_version: schedule.dialect.name().to_owned(),
            name: String::new(),
            inputs,
            outputs,
            counts: counts(schedule),
            labels: vec![
                ("dram_in", "stores to DRAM"),
                ("dram_out", "loads from DRAM"),
            ],
            facts,
        }
    }
}

fn counts(schedule: &Schedule) -> Vec<(String, u64)> {
    let spec = schedule.dialect == Dialect::Spec;
    let layers: HashSet<Name> = schedule.workloads().map(|(_, w)| w.layer).collect();
    let dram = schedule
        .dram_in
        .iter()
        .map(|entry| entry.transfer)
        .chain(schedule.dram_out.iter().map(|entry| entry.transfer));
    let made = schedule
        .workloads()
        .flat_map(|(_, w)| w.ofmaps.iter().map(|piece| piece.transfer));
    let transfers: HashSet<u32> = dram.chain(made).collect();
    let peak = schedule
        .workloads()
        .map(|(_, w)| w.buffer.iter().map(|t| t.size).fold(0, u64::saturating_add))
        .max();
    let mut counts = vec![
        ("cores", schedule.cores.len() as u64),
        ("workloads", schedule.workloads().count() as u64),
        ("layers", layers.len() as u64),
        ("dram_in", schedule.dram_in.len() as u64),
        ("dram_out", schedule.dram_out.len() as u64),
        ("transfers", transfers.len() as u64),
    ];
    if spec {
        counts.insert(
            3,
            (
                "tiles",
                schedule
                    .workloads()
                    .map(|(_, w)| w.tiles.len() as u64)
                    .sum(),
            ),
        );
    }
    if spec || schedule.dialect.has_addresses() {
        counts.push(("peak_l2_bytes", peak.unwrap_or(0)));
    }
    counts
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count))
        .collect()
}

/// What the host gives and gets, as far as the schedule alone says: data that no layer makes, and layers that are stored and
/// not read again.
fn interface(schedule: &Schedule) -> (Vec<TensorInfo>, Vec<TensorInfo>) {
    let computed: HashSet<Name> = schedule.workloads().map(|(_, w)| w.layer).collect();
    let reads: HashSet<u32> = schedule
        .dram_out
        .iter()
        .filter(|entry| !entry.weight && !entry.constant)
        .map(|entry| entry.transfer)
        .collect();
    let mut inputs: IndexMap<Name, (Bounds, u8)> = IndexMap::new();
    for tensor in schedule
        .workloads()
        .flat_map(|(_, w)| &w.buffer)
        .filter(|tensor| tensor.kind == TensorKind::Ifmap)
    {
        for source in &tensor.sources {
            let Some(layer) = source.layer.filter(|layer| !computed.contains(layer)) else {
                continue;
            };
            if is_constant(schedule.name(layer)) {
                continue;
            }
            if matches!(source.peer, Peer::Dram(_)) && reads.contains(&source.transfer) {
                let (bounds, _) = inputs
                    .entry(layer)
                    .or_insert((source.bounds, tensor.bitwidth.unwrap_or(8)));
                bounds.upper = std::array::from_fn(|d| bounds.upper[d].max(source.bounds.upper[d]));
            }
        }
    }
    let stored: HashSet<u32> = schedule
        .dram_in
        .iter()
        .map(|entry| entry.transfer)
        .collect();
    let outgoing: HashMap<Name, u8> = schedule
        .workloads()
        .flat_map(|(_, w)| &w.buffer)
        .filter(|tensor| tensor.kind == TensorKind::Ofmap)
        .filter_map(|tensor| Some((tensor.layer?, tensor.bitwidth?)))
        .collect();
    let hosts = Outputs::of(schedule, None);
    let mut outputs: IndexMap<Name, (Bounds, u8)> = IndexMap::new();
    for (_, workload) in schedule.workloads() {
        let (layer, mut pieces) = (workload.layer, workload.ofmaps.iter());
        if pieces.any(|piece| stored.contains(&piece.transfer))
            && hosts.include(layer, schedule.name(layer))
        {
            let bits = outgoing.get(&layer).copied().unwrap_or(8);
            let (bounds, _) = outputs.entry(layer).or_insert((workload.bounds, bits));
            bounds.upper = std::array::from_fn(|d| bounds.upper[d].max(workload.bounds.upper[d]));
        }
    }
    let list = |map: IndexMap<Name, (Bounds, u8)>| {
        let tensor = |(name, (bounds, bits)): (Name, (Bounds, u8))| {
            // 16 bits are int16 or float16: only the front-end file says which. Networks of this family use float16.
            let element = if bits == 16 {
                ElementType::Float16
            } else {
                ElementType::Int8
            };
            let shape = bounds
                .upper
                .iter()
                .map(|last| u64::from(*last) + 1)
                .collect();
            TensorInfo {
                name: schedule.name(name).to_owned(),
                element,
                dtype: element.name().to_owned(),
                shape,
                facts: Vec::new(),
            }
        };
        map.into_iter().map(tensor).collect()
    };
    (list(inputs), list(outputs))
}
