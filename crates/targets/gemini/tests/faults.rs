//! One fault at a time in a good schedule, and what must be said about it.

use crate::generate::{Plan, said};
use chipless_gemini::Network;
use chipless_model::Limits;
use serde_json::{Value, json};

fn plan() -> Plan {
    Plan {
        columns: 2,
        rows: 1,
        ..Plan::default()
    }
}

/// A change of a good schedule, and the finding that it must bring.
type Fault = (&'static str, fn(&mut Value));

/// The first workload of core 0 that has the keys.
fn with(schedule: &mut Value, has: impl Fn(&Value) -> bool) -> &mut Value {
    let list = schedule["0"].as_array_mut().expect("a list");
    list.iter_mut()
        .find(|workload| has(workload))
        .expect("such a workload")
}

fn each(_: &Value) -> bool {
    true
}

fn holds_weights(workload: &Value) -> bool {
    workload["layer_type"] == "pe"
        && workload["wl0_buffer"]
            .as_array()
            .is_some_and(|list| !list.is_empty())
}

/// The first tensor of this type in the snapshots of core 0.
fn tensor<'s>(schedule: &'s mut Value, kind: &str) -> &'s mut Value {
    let workload = with(schedule, |w| {
        w["buffer"]
            .as_array()
            .is_some_and(|list| list.iter().any(|t| t["type"] == kind))
    });
    workload["buffer"]
        .as_array_mut()
        .expect("a list")
        .iter_mut()
        .find(|t| t["type"] == kind)
        .expect("one")
}

/// The tensor of core 0 in which the result of the network waits for its store.
fn stored(schedule: &mut Value) -> &mut Value {
    let list = schedule["0"].as_array_mut().expect("a list");
    let last = list.last_mut().expect("a workload");
    let mut tensors = last["buffer"].as_array_mut().expect("a list").iter_mut();
    tensors.find(|t| t["type"] == "ofmap").expect("one")
}

const FAULTS: &[Fault] = &[
    ("gemini-top-batch-cut", |s| s["top_batch_cut"] = json!(0)),
    ("gemini-mesh", |s| s["xlen"] = json!(0)),
    ("gemini-core", |s| s["xlen"] = json!(1)),
    ("gemini-core-idle", |s| s["ylen"] = json!(2)),
    ("gemini-buffersize", |s| s["buffersize"] = json!(0)),
    ("gemini-key-unknown", |s| s["surprise"] = json!({"a": [1]})),
    ("gemini-key-missing", |s| {
        drop(s.as_object_mut().and_then(|o| o.remove("ylen")));
    }),
    ("gemini-key-missing", |s| {
        drop(
            with(s, each)
                .as_object_mut()
                .and_then(|o| o.remove("workload")),
        );
    }),
    ("gemini-json-value", |s| {
        with(s, each)["layer_type"] = json!("gpu");
    }),
    ("gemini-json-value", |s| with(s, each)["time"] = json!(-1)),
    ("gemini-json-value", |s| {
        with(s, each)["ifmap"][0]["lower"][1] = json!(0.5);
    }),
    ("gemini-json-value", |s| {
        with(s, each)["ifmap"][0]["upper"] = json!([0, 1, 2]);
    }),
    ("gemini-dialect", |s| {
        s["-1"]["out"][0]["destination"][0]["id"] = json!(0);
    }),
    ("gemini-workload-order", |s| {
        s["0"].as_array_mut().expect("a list").swap(0, 1);
    }),
    ("gemini-box", |s| {
        with(s, each)["ifmap"][0]["lower"][2] = json!(1_000_000);
    }),
    ("gemini-transfer-without-source", |s| {
        drop(s["-1"]["out"].as_array_mut().map(|a| a.remove(0)));
    }),
    ("gemini-transfer-two-sources", |s| {
        let copy = s["-1"]["out"][0].clone();
        s["-1"]["out"].as_array_mut().expect("a list").push(copy);
    }),
    ("gemini-dram-in", |s| {
        s["-1"]["in"][0]["transfer_id"] = json!(999_999);
    }),
    ("gemini-related-unknown", |s| {
        s["-1"]["out"][0]["related_ifmap"] = json!([999_999]);
    }),
    ("gemini-size", |s| with(s, each)["ofmap_size"] = json!(7)),
    ("gemini-size-differs", |s| {
        let out = s["-1"]["out"].as_array_mut().expect("a list");
        let read = out
            .iter_mut()
            .find(|entry| entry["type"] == json!("fmap"))
            .expect("an input");
        read["size"] = json!(read["size"].as_u64().expect("a size") + 8);
    }),
    ("gemini-bitwidth", |s| {
        with(s, each)["ifmap"][0]["bitwidth"] = json!(7);
    }),
    ("gemini-ring-region", |s| {
        with(s, each)["ring_buffer_info"] = json!([]);
    }),
    ("gemini-ring-wrap", |s| {
        with(s, each)["ring_buffer_info"] = json!([[0, 1], [1, 2], [2, 65536]]);
    }),
    ("gemini-race", |s| {
        let workload = with(s, |w| w["buffer"].as_array().is_some_and(|b| b.len() > 1));
        workload["buffer"]
            .as_array_mut()
            .expect("a list")
            .iter_mut()
            .for_each(|tensor| tensor["address"] = json!(0));
    }),
    ("gemini-newly-added", |s| {
        let workload = with(s, |w| {
            w["buffer"]
                .as_array()
                .is_some_and(|b| b.iter().any(|t| t["newly_added"] == json!(true)))
        });
        let tensors = workload["buffer"].as_array_mut().expect("a list");
        tensors
            .iter_mut()
            .find(|t| t["newly_added"] == json!(true))
            .expect("a new one")["newly_added"] = json!(false);
    }),
    ("gemini-input", |s| with(s, each)["buffer"] = json!([])),
    ("gemini-tile-cover", |s| {
        with(s, each)["tile_info"] = json!({});
    }),
    ("gemini-tile", |s| {
        with(s, |w| {
            w["tile_info"]["tile_num_0"]["loop_order"].is_string()
        })["tile_info"]["tile_num_0"]["loop_order"] = json!("KNHZ");
    }),
    // What the checks of later passes look at.
    ("gemini-l2-align", |s| {
        tensor(s, "ifmap")["address"] = json!(60_004);
    }),
    ("gemini-newly-added", |s| {
        drop(
            tensor(s, "ifmap")
                .as_object_mut()
                .and_then(|t| t.remove("newly_added")),
        );
    }),
    ("gemini-output", |s| stored(s)["start_send"] = json!(false)),
    ("gemini-output", |s| {
        let staged = stored(s);
        staged["upper"][2] = json!(staged["upper"][2].as_u64().expect("a row") + 1);
    }),
    ("gemini-output", |s| {
        stored(s)["layer_name"] = json!("Elsewhere");
    }),
    ("gemini-layer-time", |s| {
        with(s, |w| w["layer_type"] == "pe")["time"] = json!(100_000_000);
    }),
    // All weights of a layer have the same input channels; a part of them lies inside, and cannot be computed with.
    ("gemini-layer-weight", |s| {
        with(s, |w| w["layer_type"] == "pe" && w["weight"].is_object())["weight"]["upper"][2] =
            json!(0);
    }),
    ("gemini-layer-unit", |s| {
        with(s, |w| w["layer_type"] == "vp")["layer_type"] = json!("pe");
    }),
    ("gemini-layer-cut", |s| {
        with(s, |w| w["layer_type"] == "pe")["tile_info"]["tile_num_0"]["ci_cut_num"] = json!(3);
    }),
    ("gemini-tensor-layer", |s| {
        with(s, holds_weights)["wl0_buffer"][0]["layer_name"] = json!("Elsewhere");
    }),
    ("gemini-source-exchanged", |s| {
        let workloads = s["0"].as_array_mut().expect("a list").iter_mut();
        let mut tensors = workloads.flat_map(|w| w["buffer"].as_array_mut().expect("a list"));
        let of_two = |t: &&mut Value| t["source"].as_array().is_some_and(|s| s.len() > 1);
        let sources = &mut tensors.find(of_two).expect("one of two cores")["source"];
        let cores = [0, 1].map(|n| sources[n]["core_id"].clone());
        let [first, second] = cores;
        sources[0]["core_id"] = second;
        sources[1]["core_id"] = first;
    }),
    ("gemini-source-layer", |s| {
        tensor(s, "ifmap")["source"][0]["layer_name"] = json!("Elsewhere");
    }),
    ("gemini-source-ids", |s| {
        tensor(s, "ifmap")["source"] = json!([]);
    }),
    ("gemini-input", |s| {
        let read = s["-1"]["out"]
            .as_array_mut()
            .expect("a list")
            .iter_mut()
            .find(|entry| entry["type"] == "fmap")
            .expect("an input");
        for corner in ["lower", "upper"] {
            read[corner][3] = json!(read[corner][3].as_u64().expect("a column") + 1);
        }
    }),
    ("gemini-dram-type", |s| {
        s["-1"]["out"][0]["type"] = json!("fmap");
    }),
    ("gemini-size", |s| {
        tensor(s, "ifmap")["source"][0]["size"] = json!(8);
    }),
    ("gemini-destination", |s| {
        let list = s["-1"]["out"][0]["destination"]
            .as_array_mut()
            .expect("a list");
        list.push(list[0].clone());
    }),
    ("gemini-input", |s| {
        let list = with(s, holds_weights)["ifmap"]
            .as_array_mut()
            .expect("a list");
        list.push(list[0].clone());
    }),
    ("gemini-time", |s| with(s, each)["time"] = json!(0)),
    ("gemini-time", |s| {
        with(s, |w| w["layer_type"] == "vp")["time"] = json!(1_000_000);
    }),
    ("gemini-weight-buffer-align", |s| {
        with(s, holds_weights)["wl0_buffer"][0]["address"] = json!(8);
    }),
    ("gemini-weights", |s| {
        with(s, holds_weights)["wl0_buffer"] = json!([]);
    }),
    ("gemini-tile-input", |s| {
        let tile = &mut with(s, each)["tile_info"]["tile_num_0"];
        tile["ifmap_upper"][2] = json!(tile["ifmap_upper"][2].as_u64().expect("a row") - 1);
    }),
    ("gemini-tile-input", |s| {
        let tile = &mut with(s, each)["tile_info"]["tile_num_0"];
        for corner in ["ifmap_lower", "ifmap_upper"] {
            tile[corner][0] = json!(tile[corner][0].as_u64().expect("an image") + 1);
        }
    }),
    // Too few images, too few channels.
    ("gemini-tile-input", |s| {
        let tile = &mut with(s, |w| w["layer_type"] == "vp")["tile_info"]["tile_num_0"];
        tile["ifmap_upper"][0] = json!(tile["ifmap_upper"][0].as_u64().expect("an image") - 1);
    }),
    ("gemini-tile-input", |s| {
        let tile = &mut with(s, each)["tile_info"]["tile_num_0"];
        tile["ifmap_upper"][1] = json!(tile["ifmap_upper"][1].as_u64().expect("a channel") - 1);
    }),
    ("gemini-input", |s| {
        let ifmap = &mut with(s, |w| w["layer_type"] == "vp")["ifmap"][0];
        ifmap["upper"][1] = json!(ifmap["upper"][1].as_u64().expect("a channel") - 1);
    }),
    ("gemini-input", |s| {
        let ifmap = &mut with(s, |w| w["layer_type"] == "vp")["ifmap"][0];
        ifmap["upper"][0] = json!(ifmap["upper"][0].as_u64().expect("an image") - 1);
    }),
    ("gemini-tile-input", |s| {
        let two = with(s, |w| {
            w["ifmap"].as_array().is_some_and(|list| list.len() == 2)
        });
        two["tile_info"]["tile_num_0"]
            .as_object_mut()
            .and_then(|tile| tile.remove("ifmap_lower2").and(tile.remove("ifmap_upper2")));
    }),
    ("gemini-padding-missing", |s| {
        drop(
            with(s, holds_weights)
                .as_object_mut()
                .and_then(|w| w.remove("tile_padding_tblr")),
        );
    }),
    ("gemini-padding-missing", |s| {
        drop(
            with(s, holds_weights)["tile_info"]["tile_num_0"]
                .as_object_mut()
                .and_then(|t| t.remove("tile_padding_tblr")),
        );
    }),
    ("gemini-transfer-twice", |s| {
        let ids = with(s, each)["ifmap"][0]["transfer_id"]
            .as_array_mut()
            .expect("a list");
        ids.push(ids[0].clone());
    }),
    ("gemini-align", |s| {
        with(s, holds_weights)["wl0_buffer"][0]["align"] = json!(3);
    }),
    ("gemini-bitwidth", |s| {
        with(s, holds_weights)["wl0_buffer"][0]["bitwidth"] = json!(7);
    }),
    ("gemini-layer-bitwidth", |s| {
        let workload = with(s, holds_weights);
        let own = workload["layer_name"].clone();
        let entries = workload["wl0_buffer"]
            .as_array_mut()
            .expect("a list")
            .iter_mut();
        entries
            .filter(|entry| entry["layer_name"] == own)
            .for_each(|entry| entry["bitwidth"] = json!(16));
    }),
    // Weights that are there for a workload before the one that uses them, and gone in between.
    ("gemini-weights", |s| {
        let list = s["0"].as_array_mut().expect("a list");
        let used = list
            .iter()
            .rposition(holds_weights)
            .expect("one with weights");
        let own = list[used]["layer_name"].clone();
        let mut entry = list[used]["wl0_buffer"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|e| e["layer_name"] == own)
            .expect("its own")
            .clone();
        entry["address"] = json!(32768);
        list[used - 2]["wl0_buffer"]
            .as_array_mut()
            .expect("a list")
            .push(entry);
        let before = list[used - 1]["wl0_buffer"].as_array_mut().expect("a list");
        before.retain(|entry| entry["layer_name"] != own);
    }),
    ("gemini-destination", |s| {
        let out = s["-1"]["out"].as_array_mut().expect("a list");
        let shared = out
            .iter_mut()
            .find(|entry| entry["type"] == json!("weight"))
            .expect("weights");
        shared["destination"][0]["workload_id"] = json!(3);
    }),
    ("gemini-padding", |s| {
        with(s, each)["tile_info"]["tile_num_0"]["tile_padding_tblr"] = json!([3, 3, 3, 3]);
    }),
    ("gemini-tensor-order-gap", |s| {
        let on_chip = |t: &&mut Value| t["type"] == "ifmap" && t["source"][0]["type"] == "core";
        let mut tensors = s["0"]
            .as_array_mut()
            .expect("a list")
            .iter_mut()
            .flat_map(|w| w["buffer"].as_array_mut().expect("a list"));
        tensors.find(on_chip).expect("one from a core")["tensor_order"] = Value::Null;
    }),
];

#[test]
fn good_schedules_are_clean_and_every_fault_is_found() {
    let network = Network::read(
        crate::generate::network(&plan()).to_string().as_bytes(),
        &Limits::default(),
    )
    .expect("a network");
    let good = crate::generate::schedule(&plan());
    let clean = said(&good.to_string(), Some(&network));
    for (code, change) in FAULTS {
        let mut broken = good.clone();
        change(&mut broken);
        let found = said(&broken.to_string(), Some(&network));
        assert!(
            found.contains(code) && !clean.contains(code),
            "expected {code}, found {found:?}; without the fault {clean:?}"
        );
    }
}
