//! SET's dialect as text.

use chipless_gemini::Schedule;
use chipless_gemini::schedule::{
    Bounds, Destination, DramIn, DramOut, LayerType, Ofmap, Peer, Tensor, TensorKind, Workload,
};
use serde_json::{Map, Value, json};

/// Bits of a byte, as SET counts.
const BITS: u64 = 8;
/// Bytes of a block.
const BLOCK: u64 = 1024;

/// Writes a schedule piece by piece.
pub(crate) fn write<E>(
    schedule: &Schedule,
    put: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    put("{\n\"-1\": {\n\"in\": [")?;
    list(&schedule.dram_in, put, |entry| stored(schedule, entry))?;
    put("],\n\"out\": [")?;
    list(&schedule.dram_out, put, |entry| loaded(schedule, entry))?;
    put("]\n}")?;
    for core in &schedule.cores {
        put(&format!(",\n\"{}\": [", schedule.file_core(core.id)))?;
        list(&core.workloads, put, |workload| work(schedule, workload))?;
        put("]")?;
    }
    let [columns, rows] = schedule.mesh;
    put(&format!(
        ",\n\"top_batch_cut\": {},\n\"xlen\": {columns},\n\"ylen\": {rows}\n}}\n",
        schedule.top_batch_cut
    ))
}

fn list<T, E>(
    items: &[T],
    put: &mut dyn FnMut(&str) -> Result<(), E>,
    value: impl Fn(&T) -> Value,
) -> Result<(), E> {
    for (index, item) in items.iter().enumerate() {
        put(if index == 0 { "\n" } else { ",\n" })?;
        put(&value(item).to_string())?;
    }
    Ok(())
}

fn stored(schedule: &Schedule, entry: &DramIn) -> Value {
    json!({
        "core_id": schedule.file_core(entry.core),
        "lower": entry.bounds.lower,
        "related_ofmap": entry.related.as_deref().unwrap_or_default(),
        "transfer_id": entry.transfer,
        "upper": entry.bounds.upper,
        "workload_id": entry.workload,
    })
}

fn loaded(schedule: &Schedule, entry: &DramOut) -> Value {
    let mut value = json!({
        "destination": entry.destinations.iter().map(|d| destination(schedule, d, false)).collect::<Vec<_>>(),
        "layer_name": entry.layer.map(|name| schedule.name(name)),
        "lower": entry.bounds.lower,
        "related_ifmap": entry.related.as_deref().unwrap_or_default(),
        "size": entry.size * BITS,
        "transfer_id": entry.transfer,
        "type": if entry.weight { "weight" } else { "fmap" },
        "upper": entry.bounds.upper,
    });
    if entry.weight {
        value["lower"] = json!(entry.bounds.lower[1]);
        value["upper"] = json!(entry.bounds.upper[1]);
    }
    value
}

fn destination(schedule: &Schedule, destination: &Destination, named: bool) -> Value {
    let mut value = match destination.peer {
        Peer::Dram(_) => json!({ "id": 0, "type": "DRAM" }),
        Peer::Core(core) => json!({ "id": schedule.file_core(core), "type": "core" }),
    };
    if let (true, Some(name)) = (named, destination.layer) {
        value["layer_name"] = json!(schedule.name(name));
    }
    if let Some(workload) = destination.workload {
        value["workload_id"] = json!(workload);
    }
    value
}

fn work(schedule: &Schedule, workload: &Workload) -> Value {
    let mut value = Map::new();
    let buffer: Vec<Value> = workload
        .buffer
        .iter()
        .map(|entry| tensor(schedule, entry))
        .collect();
    value.insert("buffer".to_owned(), json!(buffer));
    if let Some(ifmap) = workload.ifmaps.first() {
        let transfers = &ifmap.transfers;
        let last = ifmap.last_producer.unwrap_or(0);
        let ifmap = json!({
            "lower": ifmap.bounds.lower, "max_workload_id": last, "transfer_id": transfers.as_slice(), "upper": ifmap.bounds.upper
        });
        value.insert("ifmap".to_owned(), ifmap);
    }
    value.insert(
        "layer_name".to_owned(),
        json!(schedule.name(workload.layer)),
    );
    if workload.layer_type != LayerType::Missing {
        value.insert("layer_type".to_owned(), json!(workload.layer_type.name()));
    }
    let pieces: Vec<Value> = workload
        .ofmaps
        .iter()
        .map(|entry| piece(schedule, entry))
        .collect();
    value.insert("ofmap".to_owned(), json!(pieces));
    value.insert(
        "ofmap_size".to_owned(),
        json!(workload.ofmap_size.unwrap_or(0) * BITS),
    );
    value.insert("time".to_owned(), json!(workload.time));
    if let Some(weight) = &workload.weight {
        let transfers = weight.transfers.as_slice();
        let Bounds { lower, upper } = weight.bounds;
        let size = weight.size.unwrap_or(0) * BITS;
        let weight = if weight.from_ofmap {
            json!({
                "from_ofmap": true, "lower": lower[..3], "max_workload_id": weight.last_producer.unwrap_or(0), "size": size,
                "transfer_id": transfers, "upper": upper[..3]
            })
        } else {
            json!({ "lower": lower[1], "transfer_id": transfers, "upper": upper[1] })
        };
        value.insert("weight".to_owned(), weight);
    }
    value.insert(
        "workload".to_owned(),
        json!([workload.bounds.lower, workload.bounds.upper]),
    );
    value.insert("workload_id".to_owned(), json!(workload.id));
    Value::Object(value)
}

fn piece(schedule: &Schedule, entry: &Ofmap) -> Value {
    json!({
        "destination": entry.destinations.iter().map(|d| destination(schedule, d, true)).collect::<Vec<_>>(),
        "lower": entry.bounds.lower,
        "size": entry.size.unwrap_or(0) * BITS,
        "transfer_id": entry.transfer,
        "upper": entry.bounds.upper,
    })
}

fn tensor(schedule: &Schedule, entry: &Tensor) -> Value {
    let constant = entry.kind == TensorKind::Weight
        && entry
            .sources
            .iter()
            .all(|source| source.layer == entry.layer);
    let corner = |corner: [u32; 4]| {
        if constant {
            json!(corner[1])
        } else {
            json!(corner)
        }
    };
    let mut value = json!({
        "block": entry.size.div_ceil(BLOCK),
        "layer": entry.layer.map(|name| schedule.name(name)),
        "lower": corner(entry.bounds.lower),
        "type": entry.kind.name(),
        "upper": corner(entry.bounds.upper),
    });
    if entry.kind == TensorKind::Ofmap {
        value["size"] = json!(entry.size * BITS);
        return value;
    }
    let sources: Vec<Value> = entry
        .sources
        .iter()
        .map(|source| {
            let (id, kind) = match source.peer {
                Peer::Dram(_) => (0, "DRAM"),
                Peer::Core(core) => (schedule.file_core(core), "core"),
            };
            let mut value = json!({
                "id": id,
                "lower": corner(source.bounds.lower),
                "size": source.size.unwrap_or(0) * BITS,
                "transfer_id": source.transfer,
                "type": kind,
                "upper": corner(source.bounds.upper),
            });
            if !constant {
                value["channel"] = json!([source.bounds.lower[1], source.bounds.upper[1]]);
                value["layer_name"] = json!(source.layer.map(|name| schedule.name(name)));
            }
            value
        })
        .collect();
    value["source"] = json!(sources);
    value["transfer_id"] = if constant {
        json!(entry.transfers.iter().map(|id| [*id]).collect::<Vec<_>>())
    } else {
        json!(entry.transfers.as_slice())
    };
    if !constant {
        value["workload_id"] = json!(entry.workload);
    }
    value
}
