//! Makes schedules of one small network: any mesh, any cut of its layers over the cores, any tiles, on the chip or through DRAM.
//!
//! The network is `Conv_0` (3 x 3), `MaxPool_1` (3 x 3), `Conv_2` (1 x 1), `Add_3` (of `Conv_2` and `MaxPool_1`), and so on: blocks of
//! pool, convolution and addition, then `Conv_last` (3 x 3, stride 2). All of it int8.
#![allow(dead_code, reason = "each user takes a part")]
#![allow(
    clippy::needless_pass_by_value,
    clippy::needless_range_loop,
    reason = "parts are used up where they are printed, core by core"
)]

use chipless_gemini::{Given, Network, Schedule, lint};
use chipless_model::Limits;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What varies.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) columns: u32,
    pub(crate) rows: u32,
    /// Along which dimension layers are cut over the cores: 0 images, 1 channels, 2 rows, 3 columns.
    pub(crate) cut: usize,
    /// Along which dimension a workload is cut into tiles, and how many there are.
    pub(crate) tile_cut: usize,
    pub(crate) tiles: u32,
    /// Every result goes through DRAM instead of staying on the chip.
    pub(crate) through_dram: bool,
    /// Weights come through L2.
    pub weights_through_l2: bool,
    /// Boxes of ofmaps are counted from the workload.
    pub(crate) relative: bool,
    pub(crate) batch: u32,
    pub(crate) channels: u32,
    pub(crate) size: u32,
    pub(crate) blocks: u32,
    /// Rows and columns of the kernel of `Conv_0`.
    pub(crate) kernel: u32,
    /// Columns of the network's input that nobody reads; the kernel is 1 then.
    pub(crate) unread: u32,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            columns: 1,
            rows: 1,
            cut: 2,
            tile_cut: 2,
            tiles: 1,
            through_dram: false,
            weights_through_l2: false,
            relative: false,
            batch: 2,
            channels: 16,
            size: 9,
            blocks: 1,
            kernel: 3,
            unread: 0,
        }
    }
}

type Box4 = ([u32; 4], [u32; 4]);

#[derive(Clone, Debug)]
struct Layer {
    name: String,
    operation: &'static str,
    kernel: u32,
    stride: u32,
    pad: u32,
    /// Indices of the layers that it reads; `None` for the network's input.
    reads: Vec<Option<usize>>,
    shape: [u32; 4],
    input: [u32; 4],
}

impl Layer {
    fn has_weights(&self) -> bool {
        self.operation == "conv2d"
    }

    /// What a box of the output needs of the input.
    fn needs(&self, (low, high): Box4) -> Box4 {
        let mut needed = (low, high);
        if self.has_weights() {
            (needed.0[1], needed.1[1]) = (0, self.input[1] - 1);
        }
        for d in 2..4 {
            needed.0[d] = (low[d] * self.stride).saturating_sub(self.pad);
            needed.1[d] = (high[d] * self.stride + self.kernel - 1)
                .saturating_sub(self.pad)
                .min(self.input[d] - 1);
        }
        needed
    }
}

fn layers(plan: &Plan) -> Vec<Layer> {
    let full = [plan.batch, plan.channels, plan.size, plan.size];
    let layer = |name: String, operation, kernel: u32, stride, reads, input, shape| Layer {
        name,
        operation,
        kernel,
        stride,
        pad: kernel / 2,
        reads,
        shape,
        input,
    };
    let input = [plan.batch, 3, plan.size, plan.size + plan.unread];
    let mut all = vec![layer(
        "Conv_0".into(),
        "conv2d",
        plan.kernel,
        1,
        vec![None],
        input,
        full,
    )];
    for _ in 0..plan.blocks {
        let n = all.len();
        all.push(layer(
            format!("MaxPool_{n}"),
            "max_pool2d",
            3,
            1,
            vec![Some(n - 1)],
            full,
            full,
        ));
        all.push(layer(
            format!("Conv_{}", n + 1),
            "conv2d",
            1,
            1,
            vec![Some(n)],
            full,
            full,
        ));
        all.push(layer(
            format!("Add_{}", n + 2),
            "element_wise_add",
            1,
            1,
            vec![Some(n + 1), Some(n)],
            full,
            full,
        ));
    }
    let n = all.len();
    let half = plan.size.div_ceil(2);
    all.push(layer(
        "Conv_last".into(),
        "conv2d",
        3,
        2,
        vec![Some(n - 1)],
        full,
        [plan.batch, plan.channels + 8, half, half],
    ));
    all
}

/// Cuts a box along a dimension into `parts`, as even as possible; parts may be missing where it is too short.
fn cut((low, high): Box4, dimension: usize, parts: u32) -> Vec<Box4> {
    let extent = high[dimension] - low[dimension] + 1;
    let parts = parts.min(extent);
    let at = |i: u32| low[dimension] + extent * i / parts;
    (0..parts)
        .map(|i| {
            let (mut l, mut h) = (low, high);
            (l[dimension], h[dimension]) = (at(i), at(i + 1) - 1);
            (l, h)
        })
        .collect()
}

fn common(a: Box4, b: Box4) -> Option<Box4> {
    let low: [u32; 4] = std::array::from_fn(|d| a.0[d].max(b.0[d]));
    let high: [u32; 4] = std::array::from_fn(|d| a.1[d].min(b.1[d]));
    (0..4).all(|d| low[d] <= high[d]).then_some((low, high))
}

fn bytes((low, high): Box4) -> u64 {
    let extent = |d: usize| u64::from(high[d] - low[d] + 1);
    extent(0) * extent(1).next_multiple_of(8) * extent(2) * extent(3)
}

fn weight_channel(layer: &Layer) -> u64 {
    u64::from(layer.input[1]).next_multiple_of(8) * u64::from(layer.kernel * layer.kernel) + 32
}

/// The network as its front end writes it.
pub(crate) fn network(plan: &Plan) -> Value {
    let all = layers(plan);
    let mut network = Map::new();
    for (index, layer) in all.iter().enumerate() {
        let name = |read: &Option<usize>| read.map_or("input1".to_owned(), |l| all[l].name.clone());
        let mut previous: Vec<String> = layer.reads.iter().map(name).collect();
        let mut shapes = vec![layer.input; layer.reads.len()];
        let next: Vec<String> = all
            .iter()
            .filter(|l| l.reads.contains(&Some(index)))
            .map(|l| l.name.clone())
            .collect();
        let mut value = json!({
            "layer_index": index, "name": layer.name, "operation": layer.operation, "device": "npu",
            "output_dtype": ["int8"], "output_shape": [layer.shape], "output_batchdim": [0],
            "next_layer": if next.is_empty() { vec!["output1".to_owned()] } else { next },
            "padding": [layer.pad, layer.pad, layer.pad, layer.pad], "stride": [layer.stride, layer.stride],
        });
        let object = value.as_object_mut().expect("an object");
        match layer.operation {
            "conv2d" => {
                previous.push(format!("constant_{}_weight", layer.name));
                shapes.push([layer.shape[1], layer.input[1], layer.kernel, layer.kernel]);
                object.insert("kernel_size".into(), json!([layer.kernel, layer.kernel]));
                object.insert(
                    "activation_type".into(),
                    json!(if index == 0 { Some("relu") } else { None }),
                );
                object.insert(
                    "quant_info".into(),
                    json!({"input_scale1": 1.0, "input_zero_point1": 3.0 + index as f64, "output_scale": 0.003, "output_zero_point": -5.0}),
                );
            }
            "max_pool2d" => {
                object.insert("pool_size".into(), json!([layer.kernel, layer.kernel]));
                object.insert(
                    "module_list".into(),
                    json!({"pre_cal": {"requan_scale_a": 1, "requan_zp_a": 0}, "compare_group": {}, "post_cal": {"mul_k": 1, "sum_b": 0}}),
                );
            }
            _ => {
                object.insert(
                    "module_list".into(),
                    json!({"pre_cal": {"requan_scale_a": 1, "requan_zp_a": 2, "requan_scale_b": 0.5, "requan_zp_b": -1},
                        "fp32_sum_sub_group0": {"sumsub_group_mode": "add"}, "relu_group": {}, "post_cal": {"mul_k": 0.75, "sum_b": -20}}),
                );
            }
        }
        object.insert("input_dtype".into(), json!(vec!["int8"; previous.len()]));
        object.insert("input_shape".into(), json!(shapes));
        object.insert(
            "input_batchdim".into(),
            json!(
                shapes
                    .iter()
                    .enumerate()
                    .map(|(i, _)| if i < layer.reads.len() { 0 } else { -1 })
                    .collect::<Vec<i32>>()
            ),
        );
        object.insert("previous_layer".into(), json!(previous));
        network.insert(layer.name.clone(), value);
    }
    Value::Object(network)
}

/// A tensor of a core's snapshots.
struct Tensor {
    core: usize,
    first: usize,
    last: usize,
    size: u64,
    /// Everything but address, `newly_added` and `cur_wl_ifmap`.
    entry: Map<String, Value>,
    address: u64,
}

#[derive(Default)]
struct Work {
    tensors: Vec<Tensor>,
    dram_in: Vec<Value>,
    dram_out: Vec<Value>,
    /// Pieces of each core and layer.
    ofmaps: BTreeMap<(usize, usize), Vec<Value>>,
    /// Transfers of each core, layer and operand.
    inputs: BTreeMap<(usize, usize, usize), Vec<u32>>,
    weights: BTreeMap<(usize, usize), Value>,
    /// Weight buffers: core, first, last, entry.
    held: Vec<(usize, usize, usize, Value)>,
    transfers: u32,
    orders: u32,
}

impl Work {
    fn transfer(&mut self) -> u32 {
        self.transfers += 1;
        self.transfers - 1
    }

    fn order(&mut self) -> u32 {
        self.orders += 1;
        self.orders - 1
    }

    fn tensor(&mut self, core: usize, first: usize, last: usize, size: u64, entry: Value) {
        let Value::Object(mut entry) = entry else {
            return;
        };
        entry.insert("tensor_id".into(), json!(self.tensors.len()));
        entry.insert("align".into(), json!(8));
        entry.insert("bitwidth".into(), json!(8));
        entry.insert("size".into(), json!(size));
        self.tensors.push(Tensor {
            core,
            first,
            last,
            size,
            entry,
            address: 0,
        });
    }
}

const BUFFER: u64 = 8 << 20;

/// The schedule of a plan.
pub(crate) fn schedule(plan: &Plan) -> Value {
    let all = layers(plan);
    let cores = (plan.columns * plan.rows) as usize;
    let whole = |shape: [u32; 4]| ([0; 4], shape.map(|extent| extent - 1));
    let parts: Vec<Vec<Option<Box4>>> = all
        .iter()
        .map(|layer| {
            let mut parts: Vec<Option<Box4>> = cut(whole(layer.shape), plan.cut, cores as u32)
                .into_iter()
                .map(Some)
                .collect();
            parts.resize(cores, None);
            parts
        })
        .collect();
    // Positions of the layers on each core: a core without a part of a layer leaves it out.
    let position =
        |layer: usize, core: usize| (0..layer).filter(|l| parts[*l][core].is_some()).count();
    let name = |read: Option<usize>| read.map_or("input1", |l| all[l].name.as_str());
    let mut work = Work::default();

    for (index, layer) in all.iter().enumerate() {
        if layer.has_weights() {
            weights(plan, &mut work, index, layer, &parts[index], &position);
        }
        for (operand, read) in layer.reads.iter().enumerate() {
            let from_dram = read.is_none() || plan.through_dram;
            for (core, part) in parts[index].iter().enumerate() {
                let Some(part) = part else { continue };
                let needed = layer.needs(*part);
                let here = position(index, core);
                let producer = read.and_then(|r| parts[r][core].map(|_| position(r, core)));
                let first = producer.unwrap_or_else(|| here.saturating_sub(1)).min(here);
                let mut sources = Vec::new();
                let mut ids = Vec::new();
                let mut order = None;
                if from_dram {
                    let id = work.transfer();
                    order = Some(work.order());
                    let related =
                        related_stores(&mut work, read.map(|r| all[r].name.as_str()), needed, id);
                    work.dram_out.push(json!({"destination": [{"core_id": core, "layer_name": layer.name, "type": "core", "workload_id": here}],
                        "lower": needed.0, "upper": needed.1, "related_ifmap": related, "size": bytes(needed), "transfer_id": id, "type": "fmap"}));
                    sources.push(json!({"core_id": -1, "layer_name": name(*read), "lower": needed.0, "upper": needed.1, "size": bytes(needed), "transfer_id": id, "type": "DRAM"}));
                    ids.push(id);
                } else if let Some(r) = read {
                    for (maker, made) in parts[*r].iter().enumerate() {
                        let Some(piece) = made.and_then(|made| common(made, needed)) else {
                            continue;
                        };
                        let id = send(
                            plan,
                            &mut work,
                            (*r, all[*r].name.as_str()),
                            (maker, position(*r, maker)),
                            made.expect("made"),
                            piece,
                            (core, here),
                        );
                        sources.push(json!({"core_id": maker, "layer_name": name(*read), "lower": piece.0, "upper": piece.1, "size": bytes(piece), "transfer_id": id, "type": "core"}));
                        ids.push(id);
                    }
                }
                let entry = json!({"type": "ifmap", "lower": needed.0, "upper": needed.1, "source": sources, "transfer_id": ids, "tensor_order": order});
                work.tensor(core, first, here, bytes(needed), entry);
                work.inputs.insert((core, index, operand), ids);
            }
        }
        let leaves = plan.through_dram || index + 1 == all.len();
        for (core, part) in parts[index].iter().enumerate().filter(|_| leaves) {
            let Some(part) = part else { continue };
            let (id, order, here) = (work.transfer(), work.order(), position(index, core));
            work.dram_in.push(json!({"core_id": core, "layer_name": layer.name, "lower": part.0, "upper": part.1, "related_ofmap": [], "transfer_id": id, "workload_id": here}));
            piece(
                plan,
                &mut work,
                (core, index),
                *part,
                *part,
                id,
                json!([{"core_id": -1, "type": "DRAM"}]),
            );
            let entry = json!({"type": "ofmap", "layer_name": layer.name, "lower": part.0, "upper": part.1, "start_send": true, "tensor_order": order});
            work.tensor(core, here, here, bytes(*part), entry);
        }
    }
    allocate(&mut work.tensors, cores);
    print(plan, &all, &parts, work)
}

/// The stores of a layer that a load needs, which name it from now on.
fn related_stores(work: &mut Work, layer: Option<&str>, needed: Box4, id: u32) -> Vec<u32> {
    let related: Vec<u32> = layer.map_or(vec![], |layer| {
        let stored = work.dram_in.iter().filter(|i| i["layer_name"] == layer);
        stored
            .filter(|i| common(box_of(i), needed).is_some())
            .filter_map(|i| Some(i["transfer_id"].as_u64()? as u32))
            .collect()
    });
    for stored in &mut work.dram_in {
        if related.iter().any(|r| stored["transfer_id"] == *r) {
            stored["related_ofmap"]
                .as_array_mut()
                .expect("a list")
                .push(json!(id));
        }
    }
    related
}

fn box_of(value: &Value) -> Box4 {
    let corner = |key: &str| std::array::from_fn(|d| value[key][d].as_u64().unwrap_or(0) as u32);
    (corner("lower"), corner("upper"))
}

fn weights(
    plan: &Plan,
    work: &mut Work,
    index: usize,
    layer: &Layer,
    parts: &[Option<Box4>],
    position: &dyn Fn(usize, usize) -> usize,
) {
    // One transfer for each range of output channels, to all cores that need it.
    let mut ranges: BTreeMap<[u32; 2], Vec<usize>> = BTreeMap::new();
    for (core, part) in parts.iter().enumerate() {
        if let Some((low, high)) = part {
            ranges.entry([low[1], high[1]]).or_default().push(core);
        }
    }
    let channel = weight_channel(layer);
    for ([low, high], cores) in ranges {
        let (id, order) = (work.transfer(), work.order());
        let lower = [0, low, 0, 0];
        let upper = [0, high, layer.input[1] - 1, layer.kernel * layer.kernel - 1];
        let count = u64::from(high - low + 1);
        let size = channel * count;
        let destination: Vec<Value> = cores
            .iter()
            .map(|c| json!({"core_id": c, "layer_name": layer.name, "type": "core", "workload_id": position(index, *c)}))
            .collect();
        work.dram_out.push(json!({"destination": destination, "lower": lower, "upper": upper, "related_ifmap": [], "size": size, "transfer_id": id, "type": "weight"}));
        for core in cores {
            let here = position(index, core);
            let first = here.saturating_sub(1);
            let held = count.div_ceil(64) * channel.next_multiple_of(32);
            let address = if index.is_multiple_of(2) { 0 } else { 8192 };
            let mut entry = json!({"address": address, "align": 8, "bitwidth": 8, "layer_name": layer.name, "size": held, "transfer_id": [id]});
            if plan.weights_through_l2 {
                entry["source"] = json!("CORE");
                entry["tensor_order"] = Value::Null;
                work.held.push((core, here, here, entry));
                let source = json!([{"core_id": -1, "lower": lower, "upper": upper, "size": size, "transfer_id": id, "type": "DRAM"}]);
                let tensor = json!({"type": "weight", "layer_name": layer.name, "lower": lower, "upper": upper, "source": source, "transfer_id": [id], "tensor_order": order});
                work.tensor(core, first, here, size, tensor);
            } else {
                entry["source"] = json!("DDR");
                entry["tensor_order"] = json!(order);
                entry["lower"] = json!(lower);
                entry["upper"] = json!(upper);
                work.held.push((core, first, here, entry));
            }
            let weight = json!({"lower": lower, "upper": upper, "size": size, "transfer_id": [id]});
            work.weights.insert((core, index), weight);
        }
    }
}

/// A piece of a result for a core; gives its transfer.
fn send(
    plan: &Plan,
    work: &mut Work,
    (layer, layer_name): (usize, &str),
    (maker, made_at): (usize, usize),
    made: Box4,
    part: Box4,
    (core, reader): (usize, usize),
) -> u32 {
    let destination = json!({"core_id": core, "type": "core", "workload_id": reader});
    let id = work.transfer();
    piece(
        plan,
        work,
        (maker, layer),
        made,
        part,
        id,
        json!([destination]),
    );
    if core != maker {
        let entry = json!({"type": "ofmap", "layer_name": layer_name, "lower": part.0, "upper": part.1, "start_send": true, "tensor_order": null});
        work.tensor(maker, made_at, made_at, bytes(part), entry);
    }
    id
}

fn piece(
    plan: &Plan,
    work: &mut Work,
    key: (usize, usize),
    made: Box4,
    part: Box4,
    id: u32,
    destination: Value,
) {
    let shift = |corner: [u32; 4]| -> [u32; 4] {
        std::array::from_fn(|d| corner[d] - if plan.relative { made.0[d] } else { 0 })
    };
    let value = json!({"destination": destination, "lower": shift(part.0), "upper": shift(part.1), "size": bytes(part), "transfer_id": id});
    work.ofmaps.entry(key).or_default().push(value);
}

/// First fit by lifetime.
fn allocate(tensors: &mut [Tensor], cores: usize) {
    for core in 0..cores {
        let mut placed: Vec<usize> = Vec::new();
        let own: Vec<usize> = (0..tensors.len())
            .filter(|t| tensors[*t].core == core)
            .collect();
        for index in own {
            let overlaps = |other: &Tensor| {
                other.first <= tensors[index].last && tensors[index].first <= other.last
            };
            let mut taken: Vec<(u64, u64)> = placed
                .iter()
                .filter(|o| overlaps(&tensors[**o]))
                .map(|o| (tensors[*o].address, tensors[*o].address + tensors[*o].size))
                .collect();
            taken.sort_unstable();
            let mut address = 0;
            for (start, end) in taken {
                if start < address + tensors[index].size && end > address {
                    address = end.next_multiple_of(64);
                }
            }
            assert!(
                address + tensors[index].size <= BUFFER,
                "the plan does not fit L2"
            );
            tensors[index].address = address;
            placed.push(index);
            let last = tensors[index].first;
            placed.retain(|o| tensors[*o].last >= last.saturating_sub(1));
        }
    }
}

fn print(plan: &Plan, all: &[Layer], parts: &[Vec<Option<Box4>>], work: Work) -> Value {
    let cores = (plan.columns * plan.rows) as usize;
    let orders = work.orders;
    let mut schedule = Map::new();
    schedule.insert(
        "-1".into(),
        json!({"in": work.dram_in, "out": work.dram_out}),
    );
    for core in 0..cores {
        let mut workloads = Vec::new();
        let own: Vec<&Tensor> = work.tensors.iter().filter(|t| t.core == core).collect();
        let held: Vec<_> = work.held.iter().filter(|h| h.0 == core).collect();
        for (index, layer) in all.iter().enumerate() {
            let Some(part) = parts[index][core] else {
                continue;
            };
            let here = workloads.len();
            let inputs: Vec<&Vec<u32>> = (0..layer.reads.len())
                .map(|operand| &work.inputs[&(core, index, operand)])
                .collect();
            let needed = layer.needs(part);
            let buffer: Vec<Value> = own
                .iter()
                .filter(|t| (t.first..=t.last).contains(&here))
                .map(|t| {
                    let mut entry = t.entry.clone();
                    entry.insert("address".into(), json!(t.address));
                    if entry["tensor_order"].is_null() {
                        entry.insert("tensor_order".into(), json!(orders));
                    }
                    if entry["type"] != "ofmap" {
                        entry.insert("newly_added".into(), json!(t.first == here));
                        if inputs.iter().any(|ids| entry["transfer_id"] == json!(ids)) {
                            entry.insert("cur_wl_ifmap".into(), json!(true));
                        }
                    }
                    Value::Object(entry)
                })
                .collect();
            let ifmap: Vec<Value> = inputs
                .iter()
                .map(|ids| json!({"align": 8, "bitwidth": 8, "lower": needed.0, "upper": needed.1, "size": bytes(needed), "transfer_id": ids}))
                .collect();
            let work_cycles = bytes(part) / 16 + 10;
            let tiles: Vec<(String, Value)> = cut(part, plan.tile_cut, plan.tiles)
                .into_iter()
                .enumerate()
                .map(|(number, tile)| {
                    (
                        format!("tile_num_{number}"),
                        tile_value(layer, tile, work_cycles),
                    )
                })
                .collect();
            let mut value = json!({
                "buffer": buffer, "ifmap": ifmap, "layer_name": layer.name,
                "layer_type": if layer.has_weights() { "pe" } else { "vp" },
                "ofmap": work.ofmaps.get(&(core, index)).cloned().unwrap_or_default(), "ofmap_size": bytes(part),
                "ring_buffer_info": [[0, BUFFER]], "tile_info": tiles.into_iter().collect::<Map<String, Value>>(),
                "tile_padding_tblr": padding(layer, part), "time": work_cycles, "workload": [part.0, part.1], "workload_id": here,
                "wl0_buffer": held.iter().filter(|h| (h.1..=h.2).contains(&here)).map(|h| h.3.clone()).collect::<Vec<Value>>(),
            });
            if let Some(weight) = work.weights.get(&(core, index)) {
                value["weight"] = weight.clone();
            }
            workloads.push(value);
        }
        schedule.insert(core.to_string(), json!(workloads));
    }
    schedule.insert("buffersize".into(), json!(BUFFER));
    schedule.insert("top_batch_cut".into(), json!(1));
    schedule.insert("xlen".into(), json!(plan.columns));
    schedule.insert("ylen".into(), json!(plan.rows));
    Value::Object(schedule)
}

fn padding(layer: &Layer, (low, high): Box4) -> [u32; 4] {
    let before = |d: usize| layer.pad.saturating_sub(low[d] * layer.stride);
    let after = |d: usize| {
        (high[d] * layer.stride + layer.kernel - 1).saturating_sub(layer.pad + layer.input[d] - 1)
    };
    [before(2), after(2), before(3), after(3)]
}

fn tile_value(layer: &Layer, tile: Box4, cycles: u64) -> Value {
    let needed = layer.needs(tile);
    let mut value = json!({
        "ifmap_lower": needed.0, "ifmap_upper": needed.1, "ofmap_lower": tile.0, "ofmap_upper": tile.1,
        "single_tile_time_pred": cycles as f64, "tile_padding_tblr": padding(layer, tile),
    });
    if layer.has_weights() {
        for (key, entry) in [
            ("act_mini_tile", json!([1, 1, 1, 1])),
            ("out_mini_tile", json!([1, 1, 1, 1])),
            ("mtc0_mtk0", json!([1, 1])),
            ("ci_cut_num", json!(1)),
            ("cut_mode", json!("KH")),
            ("loop_order", json!("KNHW")),
            ("layer_name", json!(layer.name)),
        ] {
            value[key] = entry;
        }
    } else if layer.reads.len() == 2 {
        value["ifmap_lower2"] = json!(needed.0);
        value["ifmap_upper2"] = json!(needed.1);
    }
    value
}

/// Codes of everything that is said about a text.
pub(crate) fn said(text: &str, network: Option<&Network>) -> Vec<&'static str> {
    match Schedule::read(text) {
        Err(finding) => vec![finding.rule.code],
        Ok(schedule) => {
            let findings = lint(
                &schedule,
                text,
                Given {
                    network,
                    ..Given::default()
                },
                &Limits::default(),
            );
            findings
                .into_iter()
                .map(|finding| finding.rule.code)
                .collect()
        }
    }
}
