//! The graph: inputs, nodes one after another, outputs.

use super::array::{Array, axis_of, elements, types};
use super::builder::{Builder, element_of};
use super::node::Node;
use super::value::{Tensor, Value, usual};
use super::{Reader, Shapes};
use crate::front::{Declared, Front, Input, Layout, Source};
use crate::network::Network;
use crate::onnx::constant::{self, Beside, Constant, Externals};
use crate::onnx::{Refused, proto};
use std::collections::{HashMap, HashSet};

/// Nodes that are walked through, at most.
const MOST_NODES: usize = 200_000;

/// The operations of ONNX that are read.
pub const SUPPORTED: &[&str] = &[
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "And",
    "ArgMax",
    "ArgMin",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "AveragePool",
    "BatchNormalization",
    "Cast",
    "CastLike",
    "Ceil",
    "Celu",
    "Clip",
    "Concat",
    "Constant",
    "ConstantOfShape",
    "Conv",
    "ConvInteger",
    "ConvTranspose",
    "Cos",
    "Cosh",
    "CumSum",
    "DepthToSpace",
    "DequantizeLinear",
    "Div",
    "Dropout",
    "DynamicQuantizeLinear",
    "Einsum",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Expand",
    "EyeLike",
    "Flatten",
    "Floor",
    "GRU",
    "Gather",
    "GatherElements",
    "GatherND",
    "Gelu",
    "Gemm",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "Greater",
    "GreaterOrEqual",
    "GroupNormalization",
    "HardSigmoid",
    "HardSwish",
    "Hardmax",
    "Identity",
    "If",
    "InstanceNormalization",
    "IsInf",
    "IsNaN",
    "LRN",
    "LSTM",
    "LayerNormalization",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "LogSoftmax",
    "Loop",
    "LpNormalization",
    "LpPool",
    "MatMul",
    "MatMulInteger",
    "Max",
    "MaxPool",
    "Mean",
    "MeanVarianceNormalization",
    "Min",
    "Mish",
    "Mod",
    "Mul",
    "Neg",
    "Not",
    "OneHot",
    "Or",
    "PRelu",
    "Pad",
    "Pow",
    "QLinearConv",
    "QLinearMatMul",
    "QuantizeLinear",
    "RMSNormalization",
    "RNN",
    "Range",
    "Reciprocal",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "Relu",
    "Reshape",
    "Resize",
    "ReverseSequence",
    "Round",
    "Scatter",
    "ScatterElements",
    "ScatterND",
    "Selu",
    "Shape",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Size",
    "Slice",
    "Softmax",
    "Softplus",
    "Softsign",
    "SpaceToDepth",
    "Split",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Sum",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Tile",
    "Transpose",
    "Trilu",
    "Unsqueeze",
    "Upsample",
    "Where",
    "Xor",
];

/// Operations of ONNX Runtime's own that are read.
pub const EXTENDED: &[&str] = &[
    "BiasGelu",
    "DynamicQuantizeLSTM",
    "DynamicQuantizeMatMul",
    "FastGelu",
    "FusedMatMul",
    "MatMulIntegerToFloat",
    "QuickGelu",
    "SkipLayerNormalization",
];

/// How `numpy` names an element type.
const fn numpy(kind: i32) -> &'static str {
    match kind {
        types::UINT8 => "uint8",
        types::INT8 => "int8",
        4 => "uint16",
        5 => "int16",
        types::INT32 => "int32",
        types::INT64 => "int64",
        types::BOOL => "bool",
        types::FLOAT16 => "float16",
        types::DOUBLE => "float64",
        12 => "uint32",
        13 => "uint64",
        _ => "float32",
    }
}

impl<'g> Reader<'g> {
    pub(super) fn new(version: i64) -> Reader<'g> {
        Reader {
            builder: Builder::default(),
            version,
            known: HashMap::new(),
            uses: HashMap::new(),
            readers: HashMap::new(),
            shared: HashSet::new(),
            refused: Vec::new(),
            batch: None,
            nodes: 0,
        }
    }

    pub(super) fn read(
        &mut self,
        graph: &'g proto::Graph,
        shapes: &Shapes,
        beside: Beside<'_>,
    ) -> Result<Front, Refused> {
        let unknown = unknown(graph);
        if !unknown.is_empty() {
            return Err(Refused(unknown));
        }
        self.count(graph, 1);
        let mut externals = Externals::default();
        self.initialisers(graph, &mut externals, beside)
            .map_err(|text| Refused(vec![text]))?;
        let mut open = Vec::new();
        for input in &graph.input {
            let name = input.name.as_deref().unwrap_or_default();
            if !self.known.contains_key(name)
                && let Err(text) = self.input(input, shapes)
            {
                open.push(text);
            }
        }
        if let Some(name) = shapes
            .keys()
            .find(|name| !graph.input.iter().any(|i| i.name.as_ref() == Some(name)))
        {
            let names = graph.input.iter().filter_map(|i| i.name.as_deref());
            let names: Vec<&str> = names
                .filter(|name| !matches!(self.known.get(name), Some(Some(Value::Array(_)))))
                .collect();
            open.push(format!(
                "expected the name of an input ({}) as --shape, found `{name}`",
                names.join(", ")
            ));
        }
        if !open.is_empty() {
            return Err(Refused(open));
        }
        self.walk(graph);
        if let (Some(batch), false) = (self.batch, self.refused.is_empty()) {
            self.refused.push(format!(
                "the model was exported for a batch of 1, and --shape gives {batch}: export it with an open batch (torch.onnx.export, dynamic_axes)"
            ));
        }
        if !self.refused.is_empty() {
            return Err(Refused(std::mem::take(&mut self.refused)));
        }
        self.front(graph)
    }

    /// How often each name is read. What a branch or a loop reads is read several times.
    fn count(&mut self, graph: &'g proto::Graph, times: usize) {
        for node in &graph.node {
            for name in &node.input {
                *self.uses.entry(name).or_default() += times;
                let kind = node.op_type.as_deref().unwrap_or_default();
                self.readers.entry(name).or_default().push(kind);
            }
            for inner in node.attribute.iter().filter_map(|a| a.g.as_deref()) {
                self.count(inner, 2);
            }
        }
        for name in graph.output.iter().filter_map(|o| o.name.as_deref()) {
            *self.uses.entry(name).or_default() += times;
            self.readers.entry(name).or_default().push("output");
        }
    }

    fn initialisers(
        &mut self,
        graph: &'g proto::Graph,
        externals: &mut Externals,
        beside: Beside<'_>,
    ) -> Result<(), String> {
        for tensor in &graph.initializer {
            let constant = constant::read(tensor, externals, beside)?;
            let array = array_of(&constant)?;
            let name = tensor.name.as_deref().unwrap_or_default();
            self.known.insert(name, Some(Value::Array(array)));
        }
        Ok(())
    }

    fn input(&mut self, input: &'g proto::ValueInfo, shapes: &Shapes) -> Result<(), String> {
        let name = input.name.as_deref().unwrap_or_default();
        let tensor = input.r#type.as_ref().and_then(|t| t.tensor_type.as_ref());
        let kind = tensor.and_then(|t| t.elem_type).unwrap_or(types::FLOAT);
        let dims = tensor
            .and_then(|t| t.shape.as_ref())
            .map(|s| s.dim.as_slice());
        let given = shapes.get(name);
        let mut shape = Vec::new();
        match (dims, given) {
            (None, Some(given)) => shape.clone_from(given),
            (None, None) => {
                return Err(format!(
                    "the shape of the input `{name}` is not in the file; give it with --shape {name}=1,…"
                ));
            }
            (Some(dims), given) => {
                if given.is_some_and(|given| given.len() != dims.len()) {
                    return Err(format!(
                        "the input `{name}` has {} dimensions, --shape gives {}",
                        dims.len(),
                        given.map_or(0, Vec::len)
                    ));
                }
                let mut open = Vec::new();
                for (at, dim) in dims.iter().enumerate() {
                    let fixed = dim.dim_value.filter(|v| (1..1 << 31).contains(v));
                    let told = given.map(|given| given[at]);
                    match (fixed, told) {
                        // A batch of one is what an exporter writes that was not told another.
                        (Some(1), Some(told)) if at == 0 && dims.len() > 1 => {
                            self.batch = Some(told).filter(|told| *told > 1).or(self.batch);
                            shape.push(told);
                        }
                        (Some(fixed), Some(told)) if fixed != told => {
                            return Err(format!(
                                "the model fixes dimension {at} of the input `{name}` at {fixed}, --shape gives {told}. Only open dimensions and a batch of 1 can be given: export the model with an open dimension there"
                            ));
                        }
                        (Some(extent), _) | (None, Some(extent)) => shape.push(extent),
                        // An open first dimension is the batch.
                        (None, None) if at == 0 && dims.len() > 1 => shape.push(1),
                        (None, None) => {
                            open.push(dim.dim_param.clone().unwrap_or_else(|| at.to_string()));
                            shape.push(0);
                        }
                    }
                }
                if !open.is_empty() {
                    let example: Vec<String> = shape
                        .iter()
                        .map(|extent| {
                            if *extent == 0 {
                                "N".to_owned()
                            } else {
                                extent.to_string()
                            }
                        })
                        .collect();
                    return Err(format!(
                        "the input `{name}` has open dimensions ({}); give its shape, as in --shape {name}={}",
                        open.join(", "),
                        example.join(",")
                    ));
                }
            }
        }
        if shape.iter().any(|extent| !(1..1 << 31).contains(extent)) || elements(&shape) >= 1 << 31
        {
            return Err(format!("the input `{name}` has the shape {shape:?}"));
        }
        let groups = usual(&shape);
        let extents = [0, 1, 2].map(|g: usize| groups[g].iter().map(|d| shape[*d]).product());
        let index = self.builder.inputs.len();
        self.builder.inputs.push(Input {
            name: format!("input{}", index + 1),
            extents,
            layout: Layout::Map,
            quantisation: None,
            element: element_of(kind),
            declared: Some(Declared {
                name: name.to_owned(),
                element: numpy(kind),
                shape: shape.clone(),
            }),
        });
        let tensor = Tensor::whole(Source::Input(index), &shape, kind);
        self.known.insert(name, Some(Value::Tensor(tensor)));
        Ok(())
    }

    /// The nodes of a graph, each after what it reads.
    fn walk(&mut self, graph: &'g proto::Graph) {
        let mut left: Vec<usize> = (0..graph.node.len()).collect();
        while !left.is_empty() {
            let before = left.len();
            let mut waiting = Vec::new();
            for index in left {
                let node = &graph.node[index];
                let ready =
                    |name: &String| name.is_empty() || self.known.contains_key(name.as_str());
                if node.input.iter().all(ready) {
                    self.step(node, index);
                } else {
                    waiting.push(index);
                }
            }
            if waiting.len() == before {
                let stuck: Vec<String> = waiting
                    .iter()
                    .take(5)
                    .map(|index| name_of(&graph.node[*index], *index))
                    .collect();
                self.refused.push(format!(
                    "the nodes {} read what nothing makes, or wait for each other",
                    stuck.join(", ")
                ));
                return;
            }
            left = waiting;
        }
    }

    fn step(&mut self, node: &'g proto::Node, index: usize) {
        let kind = node.op_type.as_deref().unwrap_or_default();
        self.nodes += 1;
        let inputs: Option<Vec<Option<Value>>> = node
            .input
            .iter()
            .map(|name| match self.known.get(name.as_str()) {
                None => Some(None),
                // What could not be made says so at its own node.
                Some(known) => known.clone().map(Some),
            })
            .collect();
        let results = match inputs {
            None => Ok(Vec::new()),
            Some(_) if self.nodes > MOST_NODES => {
                Err(format!("more than {MOST_NODES} nodes are walked through"))
            }
            Some(inputs) => {
                self.builder.node = name_of(node, index);
                let outputs = node.output.iter().map(String::as_str);
                let of = Node {
                    kind,
                    attributes: &node.attribute,
                    inputs,
                    outputs: outputs.collect(),
                };
                self.results(&of)
            }
        };
        let results = match results {
            Ok(results) => results,
            Err(text) => {
                self.refused.push(format!(
                    "the node `{}` ({kind}): {text}",
                    name_of(node, index)
                ));
                Vec::new()
            }
        };
        let mut results = results.into_iter();
        for output in &node.output {
            let value = results.next();
            if output.is_empty() {
                continue;
            }
            let uses = self.uses.get(output.as_str()).copied().unwrap_or(0);
            if value.is_none() && uses > 0 && self.refused.is_empty() {
                self.refused.push(format!(
                    "the node `{}` ({kind}): its output `{output}` is not supported",
                    name_of(node, index)
                ));
            }
            if let (Some(Value::Tensor(tensor)), 2..) = (&value, uses) {
                self.shared.insert(tensor.source);
            }
            self.known.insert(output, value);
        }
    }

    /// What a node gives.
    fn results(&mut self, node: &Node<'g>) -> Result<Vec<Value>, String> {
        match node.kind {
            "Split" => Self::split(node),
            "LSTM" | "GRU" | "RNN" => self.recurrent(node),
            "DynamicQuantizeLSTM" => self.quantised_lstm(node),
            "DynamicQuantizeLinear" => self.quantise_by_range(node),
            "Dropout" if node.outputs.len() > 1 => {
                let x = node.input(0)?.clone();
                let all = vec![1.0; usize::try_from(elements(&x.shape())).unwrap_or(0)];
                let kept = Array::new(x.shape(), types::BOOL, all);
                Ok(vec![x, Value::Array(kept)])
            }
            "LayerNormalization" if node.outputs.len() > 1 => self.layer_norm_with_statistics(node),
            "If" => self.branch(node),
            "Loop" => self.unrolled(node),
            _ => self.result(node).map(|value| vec![value]),
        }
    }

    fn result(&mut self, node: &Node<'g>) -> Result<Value, String> {
        let kind = node.kind;
        match kind {
            "Constant" => constant_of(node),
            "Shape" | "Size" | "Range" | "ConstantOfShape" | "EyeLike" => Self::counted(node),
            "Identity" | "Dropout" => node.input(0).cloned(),
            "Cast" => {
                let x = node.input(0)?.clone();
                self.cast(&x, node.int("to", 1) as i32)
            }
            "CastLike" => {
                let (x, like) = (node.input(0)?.clone(), node.input(1)?.kind());
                self.cast(&x, like)
            }
            "Reshape" => self.reshape(node),
            "Flatten" => self.flatten(node),
            "Squeeze" => Self::squeeze(node),
            "Unsqueeze" => Self::unsqueeze(node),
            "Transpose" => Self::transpose(node),
            "Expand" => Self::expand(node),
            "Tile" => self.tile(node),
            "Slice" => Self::slice(node),
            "Concat" => self.concat(node),
            "Pad" => self.pad(node),
            "Gather" => self.gather(node),
            "GatherElements" => self.gather_elements(node),
            "GatherND" => self.gather_nd(node),
            "ScatterND" | "ScatterElements" | "Scatter" => self.scatter(node),
            "DepthToSpace" | "SpaceToDepth" => self.depth_to_space(node),
            "Trilu" => self.trilu(node),
            "OneHot" => self.hot(node),
            "ReverseSequence" => self.reverse_sequence(node),
            "Conv" => self.convolution(node),
            "ConvTranspose" => self.transposed_convolution(node),
            "MaxPool" | "AveragePool" | "LpPool" => self.pool(node),
            "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => self.global_pool(node),
            "LRN" => self.local_response(node),
            "MatMul" => self.matmul(node),
            "Gemm" => self.gemm(node),
            "Einsum" => self.einsum(node),
            "Softmax" | "LogSoftmax" | "Hardmax" => self.softmax(node),
            "LayerNormalization" | "RMSNormalization" => self.layer_norm(node),
            "InstanceNormalization" | "GroupNormalization" | "MeanVarianceNormalization" => {
                self.map_norm(node)
            }
            "BatchNormalization" => self.batch_norm(node),
            "LpNormalization" => self.lp_norm(node),
            "ArgMax" | "ArgMin" => self.arg(node),
            "Resize" | "Upsample" => self.resize(node),
            "CumSum" => self.running_sum(node),
            "QuantizeLinear" => self.quantise(node),
            "DequantizeLinear" => self.dequantise(node),
            "MatMulInteger" | "ConvInteger" => self.integer_product(node),
            "QLinearMatMul" | "QLinearConv" => self.quantised_product(node),
            "DynamicQuantizeMatMul" | "MatMulIntegerToFloat" => self.product_of_stored(node),
            "FusedMatMul" => self.fused_product(node),
            "SkipLayerNormalization" => self.skip_layer_norm(node),
            _ if kind.starts_with("Reduce") => self.reduce(node),
            _ => self.of_elements(node),
        }
    }

    /// Operations element by element.
    fn of_elements(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let number = |name: &str, otherwise: f64| node.float(name, otherwise);
        match node.kind {
            "Relu" => self.bounded(&x, 0.0, f64::INFINITY),
            "Clip" => self.clip(node),
            "Where" => {
                let (a, b) = (node.input(1)?.clone(), node.input(2)?.clone());
                self.chosen(&x, &a, &b)
            }
            "Mod" if node.int("fmod", 0) != 0 => self.binary("FMod", &x, &node.input(1)?.clone()),
            "Div" if types::is_integer(x.kind()) => {
                self.binary("DivTrunc", &x, &node.input(1)?.clone())
            }
            "Sum" | "Mean" | "Max" | "Min" => {
                let of = match node.kind {
                    "Sum" | "Mean" => "Add",
                    other => other,
                };
                let mut all = x;
                for at in 1..node.inputs.len() {
                    all = self.binary(of, &all, &node.input(at)?.clone())?;
                }
                if node.kind == "Mean" {
                    let count = Array::scalar(types::FLOAT, node.inputs.len() as f64);
                    return self.binary("Div", &all, &Value::Array(count));
                }
                Ok(all)
            }
            "LeakyRelu" => {
                let alpha = number("alpha", 0.01);
                self.function("leaky_relu", [("alpha", alpha)], &x, |v| {
                    if v < 0.0 { alpha * v } else { v }
                })
            }
            "Elu" => {
                let alpha = number("alpha", 1.0);
                self.function("elu", [("alpha", alpha)], &x, |v| {
                    if v < 0.0 { alpha * v.exp_m1() } else { v }
                })
            }
            "Celu" => {
                let alpha = number("alpha", 1.0);
                self.function("celu", [("alpha", alpha)], &x, |v| {
                    v.max(0.0) + (alpha * (v / alpha).exp_m1()).min(0.0)
                })
            }
            "Selu" => {
                let (alpha, gamma) = (
                    number("alpha", 1.673_263_192_176_818_8),
                    number("gamma", 1.050_701_022_148_132_3),
                );
                let of = |v: f64| {
                    if v <= 0.0 {
                        gamma * alpha * v.exp_m1()
                    } else {
                        gamma * v
                    }
                };
                self.function("selu", [("alpha", alpha), ("gamma", gamma)], &x, of)
            }
            "ThresholdedRelu" => {
                let alpha = number("alpha", 1.0);
                self.function("thresholded_relu", [("alpha", alpha)], &x, |v| {
                    if v > alpha { v } else { 0.0 }
                })
            }
            "HardSigmoid" => {
                let (alpha, beta) = (number("alpha", 0.2), number("beta", 0.5));
                let of = |v: f64| (alpha * v + beta).clamp(0.0, 1.0);
                self.function("hard_sigmoid", [("alpha", alpha), ("beta", beta)], &x, of)
            }
            "Shrink" => {
                let (bias, lambd) = (number("bias", 0.0), number("lambd", 0.5));
                let of = |v: f64| {
                    if v < -lambd {
                        v + bias
                    } else if v > lambd {
                        v - bias
                    } else {
                        0.0
                    }
                };
                self.function("shrink", [("bias", bias), ("lambd", lambd)], &x, of)
            }
            "Swish" => {
                let alpha = number("alpha", 1.0);
                self.function("swish", [("alpha", alpha)], &x, |v| {
                    v / (1.0 + (-alpha * v).exp())
                })
            }
            "IsInf" => {
                let (below, above) = (
                    node.int("detect_negative", 1),
                    node.int("detect_positive", 1),
                );
                let parameters = [
                    ("detect_negative", below as f64),
                    ("detect_positive", above as f64),
                ];
                let of = |v: f64| {
                    super::elements::truth(
                        below != 0 && v == f64::NEG_INFINITY || above != 0 && v == f64::INFINITY,
                    )
                };
                let found = self.function("is_inf", parameters, &x, of)?;
                Ok(Self::called(found, types::BOOL))
            }
            "Gelu" => self.gelu(node.text("approximate"), &x),
            "BiasGelu" | "FastGelu" => {
                let sum = match node.optional(1).cloned() {
                    Some(bias) => self.binary("Add", &x, &bias)?,
                    None => x,
                };
                self.gelu((node.kind == "FastGelu").then_some("tanh"), &sum)
            }
            "QuickGelu" => {
                let alpha = number("alpha", 1.702);
                self.function("swish", [("alpha", alpha)], &x, |v| {
                    v / (1.0 + (-alpha * v).exp())
                })
            }
            kind if super::elements::OF_TWO.iter().any(|(of, _)| *of == kind) => {
                self.binary(kind, &x, &node.input(1)?.clone())
            }
            kind => self.unary(kind, &x),
        }
    }

    fn gelu(&mut self, approximate: Option<&str>, x: &Value) -> Result<Value, String> {
        let mut attributes = serde_json::Map::new();
        match approximate {
            None | Some("none") => {}
            Some("tanh") => {
                attributes.insert("approximate".to_owned(), "tanh".into());
            }
            Some(other) => return Err(format!("the approximation `{other}` is not supported")),
        }
        Self::made(x)?;
        let named = super::elements::named("gelu", attributes);
        self.elementwise(named, &[x], &x.shape(), x.kind())
    }

    fn clip(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let known = |at: usize, name: &str, otherwise: f64| match node.optional(at) {
            None => Some(node.float(name, otherwise)),
            Some(Value::Array(array)) => array.single(),
            Some(Value::Tensor(_)) => None,
        };
        let bounds = (
            known(1, "min", f64::NEG_INFINITY),
            known(2, "max", f64::INFINITY),
        );
        if let (Some(least), Some(most)) = bounds {
            return self.bounded(&x, least, most);
        }
        let mut value = x;
        if let Some(least) = node.optional(1).cloned() {
            value = self.binary("Max", &value, &least)?;
        }
        if let Some(most) = node.optional(2).cloned() {
            value = self.binary("Min", &value, &most)?;
        }
        Ok(value)
    }

    /// What follows from shapes and counts.
    fn counted(node: &Node<'_>) -> Result<Value, String> {
        Ok(Value::Array(match node.kind {
            "Shape" => {
                let shape = node.input(0)?.shape();
                let rank = shape.len() as i64;
                let bound = |at: i64| (if at < 0 { at + rank } else { at }).clamp(0, rank) as usize;
                let start = bound(node.int("start", 0));
                let end = bound(node.int("end", rank)).max(start);
                Array::list(&shape[start..end])
            }
            "Size" => Array::scalar(types::INT64, elements(&node.input(0)?.shape()) as f64),
            "Range" => {
                let number = |at: usize| {
                    let array = node.constant(at)?;
                    array
                        .and_then(Array::single)
                        .ok_or_else(|| format!("input {at} is missing"))
                };
                let (start, limit, step) = (number(0)?, number(1)?, number(2)?);
                let count = ((limit - start) / step).ceil().max(0.0);
                if count.is_nan() || count >= f64::from(1 << 26) {
                    return Err(format!("from {start} to {limit} by {step}"));
                }
                let values = (0..count as i64)
                    .map(|at| start + at as f64 * step)
                    .collect();
                Array::new(vec![count as i64], node.input(0)?.kind(), values)
            }
            "ConstantOfShape" => {
                let shape = node.constant(0)?.ok_or("its shape is missing")?.whole();
                let value = match node.attribute("value").and_then(|a| a.t.as_ref()) {
                    Some(tensor) => {
                        let constant =
                            constant::read(tensor, &mut Externals::default(), &|_| None)?;
                        array_of(&constant)?
                    }
                    None => Array::scalar(types::FLOAT, 0.0),
                };
                let count = elements(&shape);
                if !(0..1 << 26).contains(&count) {
                    return Err(format!("a constant of the shape {shape:?}"));
                }
                let number = value.single().unwrap_or(0.0);
                Array::new(shape, value.kind, vec![number; count as usize])
            }
            _ => {
                let x = node.input(0)?;
                let [rows, columns] = x.shape()[..] else {
                    return Err(format!("like {:?}", x.shape()));
                };
                let k = node.int("k", 0);
                let kind = node.int("dtype", i64::from(x.kind())) as i32;
                let of = |at: i64| super::elements::truth(at % columns == at / columns + k);
                Array::new(
                    vec![rows, columns],
                    kind,
                    (0..rows * columns).map(of).collect(),
                )
            }
        }))
    }

    fn hot(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let indices = node.input(0)?.clone();
        let depth = node
            .constant(1)?
            .and_then(Array::single)
            .ok_or("its depth is missing")?;
        let values = node.input(2)?.clone();
        let (off, on) = (values.at(0, 0)?, values.at(0, 1)?);
        let hot = self.one_hot(&indices, depth as i64)?;
        let hot = self.chosen(&hot, &on, &off)?;
        let rank = hot.shape().len();
        let axis = axis_of(node.int("axis", -1), rank)?;
        let mut order: Vec<usize> = (0..rank - 1).collect();
        order.insert(axis, rank - 1);
        hot.transposed(&order)
    }

    fn reverse_sequence(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let lengths = node.constant(1)?.ok_or("its lengths are missing")?.whole();
        let (time, batch) = (
            node.int("time_axis", 0) as usize,
            node.int("batch_axis", 1) as usize,
        );
        let steps = *x.shape().get(time).ok_or("its time axis is missing")?;
        let mut parts = Vec::new();
        for (image, length) in lengths.iter().enumerate() {
            let one = x.sliced(batch, image as i64, 1, 1)?;
            let place = |at: i64| if at < *length { length - 1 - at } else { at };
            let places: Vec<i64> = (0..steps).map(place).collect();
            parts.push(self.taken(&one, time, &places)?);
        }
        self.joined(&parts, batch)
    }

    /// The branch that a known condition takes.
    fn branch(&mut self, node: &Node<'g>) -> Result<Vec<Value>, String> {
        let condition = node.constant(0)?.and_then(Array::single);
        let condition = condition.ok_or("its condition is missing")?;
        let name = if condition == 0.0 {
            "else_branch"
        } else {
            "then_branch"
        };
        self.inlined(node.graph(name)?)
    }

    /// The results of a graph inside of another.
    fn inlined(&mut self, graph: &'g proto::Graph) -> Result<Vec<Value>, String> {
        let outer = self.builder.node.clone();
        self.initialisers(graph, &mut Externals::default(), &|_| None)?;
        self.walk(graph);
        self.builder.node = outer;
        let output = |output: &'g proto::ValueInfo| {
            let name = output.name.as_deref().unwrap_or_default();
            let value = self.known.get(name).cloned().flatten();
            value.ok_or_else(|| format!("its output `{name}` cannot be made"))
        };
        graph.output.iter().map(output).collect()
    }

    /// A loop whose number of rounds is known.
    fn unrolled(&mut self, node: &Node<'g>) -> Result<Vec<Value>, String> {
        let body = node.graph("body")?;
        let rounds = node.constant(0)?.and_then(Array::single);
        let mut goes_on = node
            .constant(1)?
            .and_then(Array::single)
            .is_none_or(|on| on != 0.0);
        let mut carried: Vec<Value> = (2..node.inputs.len())
            .map(|at| node.input(at).cloned())
            .collect::<Result<_, _>>()?;
        let count = carried.len();
        let scanned = body.output.len().saturating_sub(count + 1);
        let mut scans: Vec<Vec<Value>> = vec![Vec::new(); scanned];
        let mut round = 0;
        while goes_on && rounds.is_none_or(|rounds| f64::from(round) < rounds) {
            if round >= 4096 {
                return Err("more than 4096 rounds".to_owned());
            }
            let first = [
                Value::Array(Array::scalar(types::INT64, f64::from(round))),
                Value::Array(Array::scalar(types::BOOL, 1.0)),
            ];
            for (input, value) in body.input.iter().zip(first.into_iter().chain(carried)) {
                let name = input.name.as_deref().unwrap_or_default();
                if let Value::Tensor(tensor) = &value {
                    self.shared.insert(tensor.source);
                }
                self.known.insert(name, Some(value));
            }
            let names = body.node.iter().flat_map(|node| &node.output);
            names.for_each(|name| {
                self.known.remove(name.as_str());
            });
            let mut results = self.inlined(body)?.into_iter();
            goes_on = match results.next() {
                Some(Value::Array(on)) => on.single().is_some_and(|on| on != 0.0),
                _ => return Err("its condition depends on what goes into the network".to_owned()),
            };
            carried = results.by_ref().take(count).collect();
            for (all, value) in scans.iter_mut().zip(results) {
                all.push(value.unsqueezed(0)?);
            }
            round += 1;
        }
        for scan in scans {
            carried.push(self.joined(&scan, 0)?);
        }
        Ok(carried)
    }

    fn front(&mut self, graph: &'g proto::Graph) -> Result<Front, Refused> {
        let refuse = |text: String| Refused(vec![text]);
        let (mut outputs, mut declared, mut given) = (Vec::new(), Vec::new(), HashSet::new());
        for output in &graph.output {
            let name = output.name.as_deref().unwrap_or_default();
            let tensor = match self.known.get(name).cloned().flatten() {
                Some(Value::Tensor(tensor)) => tensor,
                Some(Value::Array(_)) => {
                    return Err(refuse(format!(
                        "the output `{name}` is a constant: nothing that goes into the network changes it"
                    )));
                }
                None => return Err(refuse(format!("the output `{name}` is made by no node"))),
            };
            let shape = tensor.shape();
            name.clone_into(&mut self.builder.node);
            let mut source = self.builder.by_rows(&tensor).map_err(refuse)?;
            let is_stored = self.builder.stored(source).is_some();
            if !matches!(source, Source::Layer(_)) || is_stored || !given.insert(source) {
                let whole = Tensor::whole(source, &shape, tensor.kind);
                source = self.identity(&whole).map_err(refuse)?.source;
                given.insert(source);
            }
            outputs.push(self.builder.operand(source));
            let said = output
                .r#type
                .as_ref()
                .and_then(|t| t.tensor_type.as_ref()?.elem_type);
            declared.push(Declared {
                name: name.to_owned(),
                element: numpy(said.filter(|kind| *kind != 0).unwrap_or(tensor.kind)),
                shape,
            });
        }
        let builder = std::mem::take(&mut self.builder);
        let title = graph.name.clone().unwrap_or_default();
        let network =
            Network::new(title, builder.layers).map_err(|error| refuse(error.to_string()))?;
        Ok(Front {
            network,
            inputs: builder.inputs,
            constants: builder.constants,
            operations: builder.operations,
            outputs,
            declared,
            is_calibrated: false,
            is_quantised: false,
        })
    }
}

/// What a node is called.
fn name_of(node: &proto::Node, index: usize) -> String {
    let kind = node.op_type.as_deref().unwrap_or_default();
    let name = node.name.clone().filter(|name| !name.is_empty());
    name.unwrap_or_else(|| format!("{kind}_{index}"))
}

/// Nodes whose operation is not supported, whatever their inputs.
fn unknown(graph: &proto::Graph) -> Vec<String> {
    let mut found = Vec::new();
    for (index, node) in graph.node.iter().enumerate() {
        let kind = node.op_type.as_deref().unwrap_or_default();
        let domain = node.domain.as_deref().unwrap_or_default();
        if domain == "com.microsoft" && EXTENDED.contains(&kind) {
            continue;
        }
        if !matches!(domain, "" | "ai.onnx") {
            found.push(format!(
                "the node `{}` ({kind}): operations of the domain `{domain}` are not supported",
                name_of(node, index)
            ));
        } else if !SUPPORTED.contains(&kind) {
            found.push(format!(
                "the node `{}` ({kind}): the operation is not supported",
                name_of(node, index)
            ));
        }
        let inner = node.attribute.iter().filter_map(|a| a.g.as_deref());
        found.extend(inner.flat_map(unknown));
    }
    found
}

fn array_of(constant: &Constant) -> Result<Array, String> {
    let values = constant.numbers()?;
    Ok(Array {
        shape: constant.shape.clone(),
        kind: constant.kind,
        values,
    })
}

/// The numbers of a `Constant`, however they are written.
fn constant_of(node: &Node<'_>) -> Result<Value, String> {
    if let Some(tensor) = node.attribute("value").and_then(|a| a.t.as_ref()) {
        let constant = constant::read(tensor, &mut Externals::default(), &|_| None)?;
        return Ok(Value::Array(array_of(&constant)?));
    }
    let array = |kind: i32, values: Vec<f64>, is_list: bool| {
        let shape = is_list.then_some(values.len() as i64).into_iter().collect();
        Ok(Value::Array(Array::new(shape, kind, values)))
    };
    if let Some(value) = node.attribute("value_float").and_then(|a| a.f) {
        return array(types::FLOAT, vec![f64::from(value)], false);
    }
    if let Some(value) = node.attribute("value_int").and_then(|a| a.i) {
        return array(types::INT64, vec![value as f64], false);
    }
    if let Some(values) = node.floats("value_floats") {
        return array(
            types::FLOAT,
            values.iter().map(|v| f64::from(*v)).collect(),
            true,
        );
    }
    if let Some(values) = node.ints("value_ints") {
        return array(
            types::INT64,
            values.iter().map(|v| *v as f64).collect(),
            true,
        );
    }
    Err("its value is of a form that is not supported".to_owned())
}
