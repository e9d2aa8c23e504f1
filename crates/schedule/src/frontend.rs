//! Reads the front end's own file: layers whose arrays lie beside it and are not needed here.

use crate::front::{
    Action, Activation, Arithmetic, Element, Front, Function, Input, Layout, Move, Numbers,
    Operand, Operation, Piece, Quantisation, Source, Window,
};
use crate::network::{Kind, Layer, Network};
use crate::onnx::{Beside, Refused};
use chipless_gemini::Layer as IrLayer;
use chipless_model::Limits;
use std::collections::{HashMap, HashSet};

/// Reads a front-end file for a batch.
///
/// # Errors
/// What cannot be read or is not supported, by layer.
pub fn read(bytes: &[u8], batch: i64, _: Beside<'_>) -> Result<Front, Refused> {
    let alone = |text: String| Refused(vec![text]);
    let network = chipless_gemini::Network::read(bytes, &Limits::default())
        .map_err(|finding| alone(finding.to_string()))?;
    let is_half = |(_, layer): (_, &IrLayer)| {
        let types = &layer.output_dtype;
        !types.is_empty() && types.iter().all(|of| of == "float16")
    };
    if network.scheduled().next().is_some() && network.scheduled().all(is_half) {
        let text = "all its layers are float16: schedule the ONNX model, with --precision fp16";
        return Err(alone(text.to_owned()));
    }
    let network = network.at_batch(batch as u64);
    let mut reader = Reader::default();
    let mut refused = Vec::new();
    for (name, layer) in in_order(&network).map_err(alone)? {
        if let Err(text) = reader.layer(name, layer) {
            refused.push(format!("the layer `{name}` ({}): {text}", layer.operation));
        }
    }
    if !refused.is_empty() {
        return Err(Refused(refused));
    }
    let outputs = network
        .outputs()
        .filter_map(|name| {
            let Source::Layer(layer) = *reader.sources.get(name)? else {
                return None;
            };
            let extents = reader.layers[layer].output;
            let pieces = vec![Piece {
                source: Source::Layer(layer),
                channels: [0, extents[0]],
                through: Vec::new(),
            }];
            Some(Operand {
                pieces,
                quantisation: Some(STORED),
                extents,
                name: None,
            })
        })
        .collect();
    let network = Network::new("network".to_owned(), reader.layers)
        .map_err(|error| alone(error.to_string()))?;
    if network.layers.is_empty() {
        return Err(alone("it has no layers for the cores".to_owned()));
    }
    Ok(Front {
        network,
        inputs: reader.inputs,
        constants: Vec::new(),
        operations: reader.operations,
        outputs,
        declared: Vec::new(),
        called: Default::default(),
        is_calibrated: false,
        is_quantised: true,
    })
}

/// The layers, each behind those that it reads: a file may have them in any order.
fn in_order(network: &chipless_gemini::Network) -> Result<Vec<(&str, &IrLayer)>, String> {
    let mut left: Vec<(&str, &IrLayer)> = network.scheduled().collect();
    let mut waiting: HashSet<&str> = left.iter().map(|(name, _)| *name).collect();
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let before = order.len();
        left.retain(|(name, layer)| {
            let is_ready = !(layer.previous_layer.iter()).any(|of| waiting.contains(&**of));
            if is_ready {
                waiting.remove(name);
                order.push((*name, *layer));
            }
            !is_ready
        });
        if order.len() == before {
            return Err(format!(
                "the layer `{}` reads what depends on its own result",
                left[0].0
            ));
        }
    }
    Ok(order)
}

/// How everything is stored: the file's own numbers stay in the file.
const STORED: Quantisation = Quantisation {
    scale: 1.0,
    zero: 0.0,
};

#[derive(Default)]
struct Reader {
    sources: HashMap<String, Source>,
    inputs: Vec<Input>,
    layers: Vec<Layer>,
    operations: Vec<Operation>,
}

/// Channels, rows, columns.
fn extents(shapes: &[Vec<u64>], at: usize) -> Result<[i64; 3], String> {
    let shape = shapes
        .get(at)
        .or(shapes.first())
        .ok_or("a shape is missing")?;
    let extent = |d: usize| i64::try_from(shape.get(d).copied().unwrap_or(1)).unwrap_or(i64::MAX);
    Ok([extent(1), extent(2), extent(3)])
}

/// What a layer computes; its numbers stay in the file.
fn action(
    layer: &IrLayer,
    first: [i64; 3],
    window: Window,
    groups: i64,
) -> Result<(Kind, Action), String> {
    let weight = Numbers {
        values: Err("its array lies in a file which is not there".to_owned()),
        shape: Vec::new(),
        scales: None,
    };
    Ok(match layer.operation.as_str() {
        "conv2d" | "conv2d_group" => {
            let kind = if groups > 1 {
                Kind::GroupConv
            } else {
                Kind::Conv
            };
            (
                kind,
                Action::Weighted {
                    window,
                    weight,
                    columns: false,
                    bias: None,
                },
            )
        }
        "dense" => {
            let window = Window {
                kernel: [first[1], first[2]],
                ..Window::POINT
            };
            (
                Kind::Fc,
                Action::Weighted {
                    window,
                    weight,
                    columns: false,
                    bias: None,
                },
            )
        }
        "max_pool2d" => (Kind::Pool, Action::MaxPool(window)),
        "avg_pool2d" => (Kind::Pool, Action::AveragePool(window, true)),
        "element_wise_add" => (Kind::Eltwise, Action::Combine(Arithmetic::Add)),
        "element_wise_sub" => (Kind::Eltwise, Action::Combine(Arithmetic::Subtract)),
        "element_wise_mult" => (Kind::Eltwise, Action::Combine(Arithmetic::Multiply)),
        "quantize" | "dequantize" | "relu" | "exp" | "gelu" | "sigmoid" | "tanh" | "erf"
        | "hard_sigmoid" | "hard_swish" | "swish" | "leaky_relu" | "elu" | "softplus" | "mish"
        | "clip" => (Kind::PointToPoint, Action::Function(Function::Identity)),
        "softmax" => (Kind::PointToPoint, Action::Softmax(groups)),
        "layer_norm" => (
            Kind::PointToPoint,
            Action::LayerNorm(weight.clone(), None, 1e-5),
        ),
        "matmul" => (Kind::GroupConv, Action::Product),
        "permute" | "slice" | "concat" | "reshape" | "resize" => {
            (Kind::Transpose, Action::Move(moved(layer, first)?))
        }
        _ => return Err("the operation is not supported".to_owned()),
    })
}

/// How a layer moves elements of an input of these channels, rows and columns.
fn moved(layer: &IrLayer, first: [i64; 3]) -> Result<Move, String> {
    let list = |key: &str| -> Result<Vec<i64>, String> {
        let given = layer.other.get(key).and_then(|value| value.as_array());
        let all = given.and_then(|all| all.iter().map(serde_json::Value::as_i64).collect());
        all.ok_or_else(|| format!("its `{key}` is missing or no list of whole numbers"))
    };
    // Images are the axis before channels, rows and columns.
    let side = |axis: i64| {
        let from_front = if axis < 0 { axis + 4 } else { axis };
        let side = usize::try_from(from_front - 1)
            .ok()
            .filter(|side| *side < 3);
        side.ok_or_else(|| format!("along the axis {axis} it is not supported"))
    };
    Ok(match layer.operation.as_str() {
        "permute" => match list("perm")?[..] {
            [0, 2, 1, 3] => Move::Exchange,
            ref perm => return Err(format!("the order {perm:?} of axes is not supported")),
        },
        "slice" => {
            let whole = extents(&layer.output_shape, 0)?;
            let mut cuts = Vec::new();
            for (axis, start) in list("axes")?.into_iter().zip(list("starts")?) {
                let side = side(axis)?;
                let start = if start < 0 {
                    start + first[side]
                } else {
                    start
                };
                if whole[side] != first[side] {
                    cuts.push((side, start));
                }
            }
            match cuts[..] {
                [] => Move::Slice(0, 0),
                [(side, start)] => Move::Slice(side, start),
                _ => return Err("along several axes it is not supported".to_owned()),
            }
        }
        "concat" => {
            let axis = layer.other.get("axis").and_then(serde_json::Value::as_i64);
            if layer.previous_layer.iter().any(|name| is_constant(name)) {
                return Err("of a constant it is not supported".to_owned());
            }
            Move::Concat(side(axis.ok_or("its `axis` is missing")?)?)
        }
        "resize" => match list("scales")?[..] {
            [rows, columns] if rows > 0 && columns > 0 => Move::Repeat([rows, columns]),
            ref scales => return Err(format!("scales of {scales:?} are not supported")),
        },
        _ => Move::Reshape,
    })
}

/// Whether elements that move in such a way make a result of this shape.
fn fits(how: Move, operands: &[Operand], output: [i64; 3]) -> bool {
    let (shapes, first) = (|| operands.iter().map(|o| o.extents), operands[0].extents);
    let beside = |axis: usize| (0..3).all(|d| d == axis || shapes().all(|of| of[d] == output[d]));
    let elements = |of: [i64; 3]| {
        of.iter()
            .fold(1_i64, |all, extent| all.saturating_mul(*extent))
    };
    let alone = operands.len() == 1;
    match how {
        Move::Exchange => alone && output == [first[1], first[0], first[2]],
        Move::Slice(axis, start) => {
            let end = start.saturating_add(output[axis]);
            alone && beside(axis) && start >= 0 && end <= first[axis]
        }
        Move::Concat(axis) => {
            let joined = shapes().fold(0_i64, |sum, of| sum.saturating_add(of[axis]));
            beside(axis) && joined == output[axis]
        }
        Move::Reshape => alone && elements(first) == elements(output),
        Move::Repeat([rows, columns]) => {
            let repeated = [
                first[0],
                first[1].saturating_mul(rows),
                first[2].saturating_mul(columns),
            ];
            alone && output == repeated
        }
    }
}

/// Whether a name is that of a constant.
fn is_constant(name: &str) -> bool {
    name.starts_with("constant") || name.ends_with("_constant1")
}

/// How far the elements of a kernel lie apart.
fn dilation(layer: &IrLayer) -> Result<[i64; 2], String> {
    let Some(value) = layer.other.get("dilation").filter(|value| !value.is_null()) else {
        return Ok([1, 1]);
    };
    let pair = match value.as_array().map(Vec::as_slice) {
        Some([rows, columns]) => rows.as_i64().zip(columns.as_i64()),
        Some(_) => None,
        None => value.as_i64().map(|all| (all, all)),
    };
    match pair {
        Some((rows, columns))
            if (1..1 << 12).contains(&rows) && (1..1 << 12).contains(&columns) =>
        {
            Ok([rows, columns])
        }
        _ => Err(format!("the dilation {value} is not supported")),
    }
}

impl Reader {
    fn operand(&mut self, name: &str, extents: [i64; 3]) -> Operand {
        let inputs = &mut self.inputs;
        let source = *self.sources.entry(name.to_owned()).or_insert_with(|| {
            inputs.push(Input {
                name: name.to_owned(),
                extents,
                layout: Layout::Map,
                quantisation: Some(STORED),
                element: Element::Int8,
                declared: None,
            });
            Source::Input(inputs.len() - 1)
        });
        Operand {
            pieces: vec![Piece {
                source,
                channels: [0, extents[0]],
                through: Vec::new(),
            }],
            quantisation: Some(STORED),
            extents,
            name: None,
        }
    }

    fn layer(&mut self, name: &str, layer: &IrLayer) -> Result<(), String> {
        let output = extents(&layer.output_shape, 0)?;
        let mut operands = Vec::new();
        for (at, previous) in layer
            .previous_layer
            .iter()
            .filter(|name| !is_constant(name))
            .enumerate()
        {
            let of = extents(&layer.input_shape, at)?;
            let mut operand = self.operand(previous, of);
            if let Source::Layer(producer) = operand.pieces[0].source {
                operand.extents = self.layers[producer].output;
                operand.pieces[0].channels = [0, operand.extents[0]];
            }
            operands.push(operand);
        }
        let first = operands.first().ok_or("it reads nothing")?.extents;
        let pair = |value: Option<[u32; 2]>| value.unwrap_or([1, 1]).map(i64::from);
        let kernel = pair(layer.kernel_size.or(layer.pool_size));
        let window = Window {
            kernel,
            stride: pair(layer.stride),
            padding: layer.padding.unwrap_or_default().map(i64::from),
            dilation: dilation(layer)?,
        };
        let groups = i64::from(layer.group.unwrap_or(1).max(1));
        let (kind, action) = action(layer, first, window, groups)?;
        if let Action::Move(how) = action
            && !fits(how, &operands, output)
        {
            let shapes: Vec<[i64; 3]> = operands.iter().map(|operand| operand.extents).collect();
            return Err(format!(
                "expected what its inputs {shapes:?} give, found an output of {output:?}"
            ));
        }
        if kind == Kind::Eltwise && operands.len() != 2 {
            return Err("it does not read two layers".to_owned());
        }
        let of_layers = |operands: &[Operand]| -> Vec<usize> {
            let sources = operands.iter().flat_map(|operand| &operand.pieces);
            let layers = sources.filter_map(|piece| match piece.source {
                Source::Layer(layer) => Some(layer),
                Source::Input(_) | Source::Constant(_) => None,
            });
            let mut layers: Vec<usize> = layers.collect();
            layers.sort_unstable();
            layers
        };
        let product = matches!(action, Action::Product);
        let (read, weights) = operands.split_at(if product { 1 } else { operands.len() });
        let external: i64 = read
            .iter()
            .filter(|o| matches!(o.pieces[0].source, Source::Input(_)))
            .map(|o| o.extents[0])
            .sum();
        let window = match &action {
            Action::Weighted { window, .. }
            | Action::MaxPool(window)
            | Action::AveragePool(window, _) => *window,
            _ => Window::POINT,
        };
        let index = self.layers.len();
        self.layers.push(Layer {
            name: name.to_owned(),
            kind,
            output,
            channels: if kind.multiplies() { first[0] } else { 0 },
            kernel: window.kernel,
            stride: window.stride,
            groups,
            operands: if kind == Kind::Eltwise { 2 } else { 1 },
            order: match action {
                Action::Move(Move::Exchange) => [1, 0, 2],
                _ => [0, 1, 2],
            },
            previous: of_layers(read),
            weights_from: of_layers(weights),
            external: (external > 0).then_some([external, first[1], first[2]]),
        });
        let output = Some(STORED);
        self.operations.push(Operation {
            operands,
            action,
            activation: Activation::None,
            output,
            layout: Layout::Map,
            element: Element::Int8,
        });
        self.sources.insert(name.to_owned(), Source::Layer(index));
        Ok(())
    }
}
