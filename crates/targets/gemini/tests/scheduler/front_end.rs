//! Networks as their front end writes them.

use super::network::{From, Kind, Layer, Window};
use serde_json::{Map, Value, json};

/// The network as its front end writes it.
pub(crate) fn front_end(layers: &[Layer]) -> Value {
    let mut network = Map::new();
    for (index, layer) in layers.iter().enumerate() {
        network.insert(layer.name.clone(), front_end_layer(layers, index));
    }
    Value::Object(network)
}

pub(super) fn name<'l>(layers: &'l [Layer], from: &'l From) -> &'l str {
    match from {
        From::Port(name) => name,
        From::Layer(layer) => &layers[*layer].name,
    }
}

fn front_end_layer(layers: &[Layer], index: usize) -> Value {
    let layer = &layers[index];
    let mut previous: Vec<String> = layer
        .reads
        .iter()
        .map(|from| name(layers, from).to_owned())
        .collect();
    let mut shapes = layer.inputs.clone();
    let mut batches = vec![0; shapes.len()];
    let readers = layers
        .iter()
        .filter(|l| l.reads.contains(&From::Layer(index)));
    let mut next: Vec<String> = readers.map(|l| l.name.clone()).collect();
    if next.is_empty() {
        next.push("output1".into());
    }
    if layer.has_weights() {
        previous.push(format!("constant_{}_weight", layer.name));
        shapes.push(layer.weights());
        batches.push(-1);
    }
    let mut value = json!({
        "layer_index": index, "name": layer.name, "operation": operation(layer), "device": "npu",
        "input_dtype": vec!["int8"; shapes.len()], "output_dtype": ["int8"],
        "input_shape": shapes, "output_shape": [layer.shape], "input_batchdim": batches, "output_batchdim": [0],
        "previous_layer": previous, "next_layer": next, "file_list": {},
    });
    let mut set = |more: Value| {
        let (Value::Object(to), Value::Object(more)) = (&mut value, more) else {
            return;
        };
        to.extend(more);
    };
    let scales = |mul_k: f64, sum_b: f64| {
        json!({"pre_cal": {"requan_scale_a": 0.03125, "requan_zp_a": 0.25, "requan_scale_b": 0.03125, "requan_zp_b": 0.5},
            "post_cal": {"mul_k": mul_k, "sum_b": sum_b}})
    };
    let slides = |window: &Window| json!({"stride": [window.stride, window.stride], "padding": [window.pad, window.pad, window.pad, window.pad]});
    match &layer.kind {
        Kind::Convolution { window, groups } => {
            set(slides(window));
            set(
                json!({"kernel_size": window.kernel, "activation_type": if index.is_multiple_of(3) { Some("relu") } else { None },
                "quant_info": {"input_scale1": 0.015625, "input_zero_point1": 3.0 + index as f64, "output_scale": 32.0, "output_zero_point": -5.0}}),
            );
            if *groups > 1 {
                set(json!({"group": groups}));
            }
        }
        Kind::Dense => set(json!({"activation_type": null,
            "quant_info": {"input_scale1": 0.015625, "input_zero_point1": 2.0, "output_scale": 32.0, "output_zero_point": 1.0}})),
        Kind::Pool { window, is_max } => {
            set(slides(window));
            set(json!({"pool_size": window.kernel, "module_list": scales(32.0, -4.0)}));
            if !is_max {
                value["module_list"]["fp32_mul_group"] =
                    json!({"mul_group_k_mux": "scalar", "mul_group_k_scalar": 0.25});
            }
        }
        Kind::Binary(name) => {
            set(json!({"module_list": scales(24.0, 1.0)}));
            let is_sum = *name != "mult";
            let (key, mode) = if is_sum {
                ("fp32_sum_sub_group0", "sumsub_group_mode")
            } else {
                ("fp32_mul_group", "mul_group_k_mux")
            };
            value["module_list"][key] = json!({ mode: if is_sum { *name } else { "vector" } });
        }
        Kind::Softmax => set(json!({"axis": 1, "module_list": scales(256.0, -128.0)})),
        Kind::LayerNorm => set(json!({"epsilon": 0.0009765625, "module_list": scales(32.0, 0.0)})),
        Kind::Exp => set(json!({"module_list": scales(2.0, -100.0)})),
        Kind::Matmul { is_transposed } => set(json!({"transpose_b": is_transposed,
            "quant_info": {"input_scale1": 0.015625, "input_zero_point1": -4.0, "input_scale2": 0.015625, "input_zero_point2": -7.0,
                "output_scale": 8.0, "output_zero_point": 1.0}})),
        Kind::Permute(axes) => set(json!({"perm": axes})),
        Kind::Slice { axis, start } => {
            let end = start + layer.shape[*axis];
            set(json!({"starts": [start], "ends": [end], "axes": [axis], "steps": [1]}));
        }
        Kind::Concat { axis } => set(json!({"axis": axis})),
        Kind::Reshape => {}
    }
    value
}

fn operation(layer: &Layer) -> &'static str {
    match &layer.kind {
        Kind::Convolution { groups: 1, .. } => "conv2d",
        Kind::Convolution { .. } => "conv2d_group",
        Kind::Dense => "dense",
        Kind::Pool { is_max: true, .. } => "max_pool2d",
        Kind::Pool { .. } => "avg_pool2d",
        Kind::Binary("add") => "element_wise_add",
        Kind::Binary("sub") => "element_wise_sub",
        Kind::Binary(_) => "element_wise_mult",
        Kind::Softmax => "softmax",
        Kind::LayerNorm => "layer_norm",
        Kind::Exp => "exp",
        Kind::Matmul { .. } => "matmul",
        Kind::Permute(_) => "permute",
        Kind::Slice { .. } => "slice",
        Kind::Concat { .. } => "concat",
        Kind::Reshape => "reshape",
    }
}
