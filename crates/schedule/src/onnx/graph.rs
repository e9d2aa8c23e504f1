//! The graph of an ONNX file: what each tensor is, node after node.

use super::attributes::Attributes;
use super::constant::{self, Beside, Constant, Data, Externals};
use super::proto::{Graph, Node, ValueInfo};
use super::value::{Known, Outcome, Scales, Stored, Value};
use super::{Refused, port_names};
use crate::front::{
    Action, Activation, Element, Front, Input, Layout, Numbers, Operand, Operation, Piece, Source,
    Table,
};
use crate::import;
use crate::network::{Kind, Layer, Network};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// The operations of ONNX that are read.
const SUPPORTED: [&str; 52] = [
    "Conv",
    "Gemm",
    "MatMul",
    "MaxPool",
    "AveragePool",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "ReduceMean",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Softmax",
    "LayerNormalization",
    "Gelu",
    "Sigmoid",
    "Tanh",
    "Erf",
    "HardSigmoid",
    "HardSwish",
    "Swish",
    "LeakyRelu",
    "Elu",
    "Softplus",
    "Mish",
    "BatchNormalization",
    "Relu",
    "Clip",
    "QuantizeLinear",
    "DequantizeLinear",
    "Concat",
    "Slice",
    "Split",
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Identity",
    "Dropout",
    "Transpose",
    "Constant",
    "Cast",
    "Shape",
    "Gather",
    "Sqrt",
    "ConstantOfShape",
    "Range",
    "Expand",
    "Equal",
    "Where",
    "Resize",
    "Upsample",
];

/// Reads a graph.
pub(super) struct Reader<'g> {
    pub(super) graph: &'g Graph,
    pub(super) batch: i64,
    /// Version of ONNX's own operations.
    pub(super) version: i64,
    pub(super) known: HashMap<String, Known>,
    /// How many nodes and outputs read each tensor.
    pub(super) uses: HashMap<&'g str, usize>,
    pub(super) layers: Vec<Layer>,
    pub(super) operations: Vec<Operation>,
    pub(super) inputs: Vec<Input>,
    pub(super) constants: Vec<Table>,
    pub(super) name: String,
}

/// Nodes of a graph, at most.
const MOST_NODES: usize = 60_000;

impl<'g> Reader<'g> {
    pub(super) fn new(
        graph: &'g Graph,
        version: i64,
        batch: i64,
        beside: Beside<'_>,
    ) -> Result<Reader<'g>, Refused> {
        let refuse = |text: String| Refused(vec![text]);
        if graph.node.len() > MOST_NODES {
            return Err(refuse(format!(
                "{} nodes, more than {MOST_NODES}",
                graph.node.len()
            )));
        }
        let mut reader = Reader {
            graph,
            batch,
            version,
            known: HashMap::new(),
            uses: HashMap::new(),
            layers: Vec::new(),
            operations: Vec::new(),
            inputs: Vec::new(),
            constants: Vec::new(),
            name: String::new(),
        };
        let mut externals = Externals::default();
        for tensor in &graph.initializer {
            let constant = constant::read(tensor, &mut externals, beside).map_err(refuse)?;
            reader
                .known
                .insert(constant.name.clone(), Known::Constant(constant, None));
        }
        // An input may look odd because of what reads it: the operator says more.
        let unsupported = reader.unsupported();
        if !unsupported.is_empty() {
            return Err(Refused(unsupported));
        }
        for input in &graph.input {
            let name = input.name.clone().unwrap_or_default();
            if !reader.known.contains_key(&name) {
                let value = reader.input(input).map_err(refuse)?;
                reader.known.insert(name, Known::Value(value));
            }
        }
        let read = graph
            .node
            .iter()
            .flat_map(|node| node.input.iter().map(String::as_str));
        for name in read.chain(graph.output.iter().filter_map(|o| o.name.as_deref())) {
            *reader.uses.entry(name).or_default() += 1;
        }
        Ok(reader)
    }

    /// Nodes whose operator is not supported, whatever their inputs.
    fn unsupported(&self) -> Vec<String> {
        let nodes = self.graph.node.iter().enumerate();
        nodes
            .filter_map(|(index, node)| {
                let kind = node.op_type.as_deref().unwrap_or_default();
                let domain = node.domain.as_deref().unwrap_or_default();
                let is_own = matches!(domain, "" | "ai.onnx");
                if is_own && SUPPORTED.contains(&kind) {
                    return None;
                }
                let name = node.name.clone().filter(|name| !name.is_empty());
                let name = name.unwrap_or_else(|| format!("{kind}_{index}"));
                let why = if is_own && import::SUPPORTED.contains(&kind) {
                    "int8 does not have the operation; fp16 has it, at least in some forms"
                        .to_owned()
                } else if is_own {
                    "the operation is not supported".to_owned()
                } else {
                    format!("operations of the domain `{domain}` are not supported")
                };
                Some(format!("the node `{name}` ({kind}): {why}"))
            })
            .collect()
    }

    fn input(&mut self, input: &ValueInfo) -> Result<Value, String> {
        let name = input.name.as_deref().unwrap_or_default();
        let shape = input
            .r#type
            .as_ref()
            .and_then(|t| t.tensor_type.as_ref()?.shape.as_ref());
        let shape = shape.ok_or_else(|| format!("the shape of the input `{name}` is not given"))?;
        let images = shape.dim.first().and_then(|dim| dim.dim_value);
        if let Some(images) = images.filter(|images| *images > 1 && *images != self.batch) {
            return Err(format!(
                "the input `{name}` has a first dimension of {images}, which int8 takes as the batch: pass --batch {images} if it counts images"
            ));
        }
        let mut dims = Vec::new();
        for (at, dim) in shape.dim.iter().enumerate().skip(1) {
            let extent = dim.dim_value.filter(|v| (1..1 << 31).contains(v));
            dims.push(extent.ok_or_else(|| {
                let open = dim.dim_param.clone().unwrap_or_else(|| format!("{at}"));
                format!(
                    "the input `{name}` has the open dimension `{open}`: give its shape with --precision int8 --shape {name}=1,…"
                )
            })?);
        }
        let (extents, layout) = match dims.as_slice() {
            [c, h, w] => ([*c, *h, *w], Layout::Map),
            [c, l] if self.is_line(name) => ([*c, *l, 1], Layout::Line),
            [l, d] => ([*d, *l, 1], Layout::Sequence),
            [k] => ([*k, 1, 1], Layout::Vector),
            _ => {
                return Err(format!(
                    "the input `{name}` has {} dimensions; expected batch and one, two or three more",
                    shape.dim.len()
                ));
            }
        };
        let index = self.inputs.len();
        self.inputs.push(Input {
            name: format!("input{}", index + 1),
            extents,
            layout,
            quantisation: None,
            element: Element::Int8,
            declared: None,
        });
        let pieces = vec![Piece {
            source: Source::Input(index),
            channels: [0, extents[0]],
            through: Vec::new(),
        }];
        let kind = input
            .r#type
            .as_ref()
            .and_then(|t| t.tensor_type.as_ref()?.elem_type);
        let stored_as = if kind == Some(Stored::Unsigned.kind()) {
            Stored::Unsigned
        } else {
            Stored::Signed
        };
        Ok(Value {
            pieces,
            extents,
            layout,
            quantisation: None,
            stored_as,
            name: None,
        })
    }

    /// Whether channels come first in a tensor of three dimensions: what reads it goes over the last one with windows.
    pub(super) fn is_line(&self, tensor: &str) -> bool {
        let mut open = vec![tensor];
        let mut seen = HashSet::new();
        while let Some(tensor) = open.pop() {
            if !seen.insert(tensor) {
                continue;
            }
            let reads = |node: &&Node| node.input.first().is_some_and(|input| input == tensor);
            for node in self.graph.node.iter().filter(reads) {
                match node.op_type.as_deref().unwrap_or_default() {
                    "Conv" | "MaxPool" | "AveragePool" | "GlobalAveragePool" | "GlobalMaxPool"
                    | "BatchNormalization" => return true,
                    "QuantizeLinear" | "DequantizeLinear" | "Identity" | "Dropout" | "Cast"
                    | "Relu" | "Clip" => open.extend(node.output.iter().map(String::as_str)),
                    _ => {}
                }
            }
        }
        false
    }

    pub(super) fn read(mut self) -> Result<Front, Refused> {
        let order = self.order()?;
        let mut refused = Vec::new();
        for index in order {
            let node = &self.graph.node[index];
            let kind = node.op_type.as_deref().unwrap_or_default();
            let plain = format!("{kind}_{index}");
            let name = node
                .name
                .clone()
                .filter(|name| !name.is_empty())
                .unwrap_or(plain);
            self.name.clone_from(&name);
            let known = match self
                .node(node, kind)
                .and_then(|known| self.alone(node, kind, known))
            {
                Ok(known) => known,
                Err(text) => {
                    refused.push(format!("the node `{name}` ({kind}): {text}"));
                    Known::Unknown
                }
            };
            // Parts of a Split are told apart there.
            let spread = kind == "Split" && !matches!(known, Known::Unknown);
            for output in node
                .output
                .iter()
                .filter(|output| !output.is_empty() && !spread)
            {
                self.known.insert(output.clone(), known.clone());
            }
        }
        if !refused.is_empty() {
            return Err(Refused(refused));
        }
        let mut outputs = Vec::new();
        for output in self.graph.output.iter().filter_map(|o| o.name.as_deref()) {
            match self.known.get(output) {
                Some(Known::Value(value)) => match value.pieces[..] {
                    [
                        Piece {
                            source: Source::Input(input),
                            channels,
                            ..
                        },
                    ] if channels == [0, self.inputs[input].extents[0]] => {
                        return Err(Refused(vec![format!(
                            "the output `{output}` is an input of the network, which no layer computes"
                        )]));
                    }
                    _ => outputs.push(self.operand(value)),
                },
                Some(Known::Constant(..)) => {
                    return Err(Refused(vec![format!(
                        "the output `{output}` is a constant"
                    )]));
                }
                _ => {
                    return Err(Refused(vec![format!(
                        "the output `{output}` is made by no node"
                    )]));
                }
            }
        }
        if self.layers.is_empty() {
            return Err(Refused(vec!["the graph has no layers".to_owned()]));
        }
        let title = self.graph.name.clone().unwrap_or_default();
        let network = Network::new(title, self.layers).map_err(|e| Refused(vec![e.to_string()]))?;
        Ok(Front {
            network,
            inputs: self.inputs,
            constants: self.constants,
            operations: self.operations,
            outputs,
            declared: Vec::new(),
            called: port_names(self.graph),
            is_calibrated: false,
            is_quantised: (self.graph.node.iter())
                .filter_map(|node| node.op_type.as_deref())
                .any(|kind| matches!(kind, "QuantizeLinear" | "DequantizeLinear")),
        })
    }

    /// Nodes in an order in which each comes after what it reads; that of the file where it is one.
    fn order(&self) -> Result<Vec<usize>, Refused> {
        let made: HashMap<&str, usize> = self
            .graph
            .node
            .iter()
            .enumerate()
            .flat_map(|(i, node)| node.output.iter().map(move |o| (o.as_str(), i)))
            .filter(|(name, _)| !name.is_empty())
            .collect();
        let mut waits: Vec<usize> = Vec::new();
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); self.graph.node.len()];
        for (index, node) in self.graph.node.iter().enumerate() {
            let mut producers = HashSet::new();
            for input in node.input.iter().filter(|i| !i.is_empty()) {
                match made.get(input.as_str()) {
                    Some(producer) => {
                        producers.insert(*producer);
                    }
                    None if self.known.contains_key(input) => {}
                    None => {
                        let name = node.name.as_deref().unwrap_or_default();
                        return Err(Refused(vec![format!(
                            "the node `{name}` reads `{input}`, which nothing makes"
                        )]));
                    }
                }
            }
            waits.push(producers.len());
            let mut producers: Vec<usize> = producers.into_iter().collect();
            producers.sort_unstable();
            for producer in producers {
                readers[producer].push(index);
            }
        }
        let mut ready: BTreeSet<usize> = (0..waits.len()).filter(|i| waits[*i] == 0).collect();
        let mut order = Vec::new();
        while let Some(index) = ready.pop_first() {
            order.push(index);
            for reader in &readers[index] {
                waits[*reader] -= 1;
                if waits[*reader] == 0 {
                    ready.insert(*reader);
                }
            }
        }
        if order.len() < waits.len() {
            let stuck = (0..waits.len()).filter(|i| waits[*i] > 0).take(5);
            let names: Vec<&str> = stuck
                .filter_map(|i| self.graph.node[i].name.as_deref())
                .collect();
            return Err(Refused(vec![format!(
                "the graph has a cycle: {} wait for each other",
                names.join(", ")
            )]));
        }
        Ok(order)
    }

    fn node(&mut self, node: &'g Node, kind: &str) -> Outcome {
        let inputs: Vec<Option<Known>> = node
            .input
            .iter()
            .map(|i| self.known.get(i).cloned())
            .collect();
        if inputs
            .iter()
            .flatten()
            .any(|known| matches!(known, Known::Unknown))
        {
            return Ok(Known::Unknown);
        }
        let attributes = Attributes(&node.attribute);
        match self.fold(kind, &attributes, &inputs) {
            Some(known) => known,
            None => self.compute(node, kind, &inputs),
        }
    }

    /// What a node gives, where nothing but its first output is read.
    fn alone(&self, node: &Node, kind: &str, known: Known) -> Outcome {
        let mut others = node.output.iter().skip(1);
        match others.find(|output| kind != "Split" && self.uses.contains_key(output.as_str())) {
            Some(output) => Err(format!("its output `{output}` is not supported")),
            None => Ok(known),
        }
    }

    /// The first input, which must be no constant.
    pub(super) fn value(inputs: &[Option<Known>], at: usize) -> Result<&Value, String> {
        match inputs.get(at) {
            Some(Some(Known::Value(value))) => Ok(value),
            Some(Some(_)) => Err(format!(
                "input {at} is a constant; expected a result of another layer"
            )),
            _ => Err(format!("input {at} is missing")),
        }
    }

    /// An input that must be a constant, if it is there.
    pub(super) fn constant(
        inputs: &[Option<Known>],
        at: usize,
    ) -> Result<Option<(&Constant, Option<&Scales>)>, String> {
        match inputs.get(at) {
            Some(Some(Known::Constant(constant, scales))) => Ok(Some((constant, scales.as_ref()))),
            Some(Some(_)) => Err(format!("input {at} is no constant")),
            _ => Ok(None),
        }
    }

    /// The numbers of a constant, as layers keep them.
    pub(super) fn numbers(constant: &Constant, scales: Option<&Scales>) -> Numbers {
        let finite = |values: Rc<Vec<f64>>| match values.iter().find(|value| !value.is_finite()) {
            Some(value) => Err(format!("the tensor `{}` contains {value}", constant.name)),
            None => Ok(values),
        };
        Numbers {
            values: constant.numbers().and_then(finite),
            shape: constant.shape.clone(),
            scales: scales.map(|(scales, axis)| (scales.clone().into(), *axis as usize)),
        }
    }

    /// The real numbers of a constant, stored or not.
    pub(super) fn reals(constant: &Constant, scales: Option<&Scales>) -> Numbers {
        let mut numbers = Self::numbers(constant, scales);
        let Some((scales, axis)) = numbers.scales.take() else {
            return numbers;
        };
        let extent = numbers.shape.get(axis).copied().unwrap_or(1).max(1);
        let inner = numbers.shape.iter().skip(axis + 1).product::<i64>().max(1);
        let real = |(at, value): (usize, &f64)| {
            let channel = (at as i64 / inner % extent) as usize;
            value
                * scales
                    .get(channel)
                    .or(scales.first())
                    .copied()
                    .unwrap_or(1.0)
        };
        let all = |values: Rc<Vec<f64>>| Rc::new(values.iter().enumerate().map(real).collect());
        numbers.values = numbers.values.map(all);
        numbers
    }

    /// Whole numbers of a constant.
    pub(super) fn whole(constant: &Constant) -> Result<Vec<i64>, String> {
        match &constant.data {
            Data::There(numbers) => Ok(numbers.iter().map(|v| *v as i64).collect()),
            Data::Absent(_) => constant.numbers().map(|_| Vec::new()),
        }
    }

    pub(super) fn operand(&self, value: &Value) -> Operand {
        let quantisation = value
            .quantisation
            .or_else(|| match value.pieces.as_slice() {
                [
                    Piece {
                        source: Source::Input(input),
                        ..
                    },
                ] => self.inputs[*input].quantisation,
                _ => None,
            });
        Operand {
            pieces: value.pieces.clone(),
            quantisation,
            extents: value.extents,
            name: value.name.clone(),
        }
    }

    /// Adds a layer that makes `output`; what it reads follows from its operands.
    pub(super) fn layer(
        &mut self,
        mut layer: Layer,
        operands: &[&Value],
        weights: Option<&Value>,
        action: Action,
        layout: Layout,
    ) -> Value {
        let sources = |value: &Value| {
            let layers = value.pieces.iter().filter_map(|piece| match piece.source {
                Source::Layer(layer) => Some(layer),
                Source::Input(_) | Source::Constant(_) => None,
            });
            let mut layers: Vec<usize> = layers.collect();
            layers.sort_unstable();
            layers.dedup();
            layers
        };
        layer.previous = operands.iter().flat_map(|value| sources(value)).collect();
        if layer.kind != Kind::Eltwise {
            layer.previous.dedup();
        }
        layer.previous.sort_unstable();
        layer.weights_from = weights.map(sources).unwrap_or_default();
        let external: i64 = operands
            .iter()
            .flat_map(|value| &value.pieces)
            .filter(|piece| matches!(piece.source, Source::Input(_)))
            .map(|piece| piece.channels[1] - piece.channels[0])
            .sum();
        if external > 0 {
            let [_, h, w] = match layer.kind {
                Kind::Eltwise => layer.output,
                _ => operands[0].extents,
            };
            layer.external = Some([external, h, w]);
        }
        if self.layers.iter().any(|other| other.name == layer.name) {
            layer.name = format!("{}_{}", layer.name, self.layers.len());
        }
        let extents = layer.output;
        let index = self.layers.len();
        let operands = operands
            .iter()
            .copied()
            .chain(weights)
            .map(|value| self.operand(value))
            .collect();
        self.layers.push(layer);
        self.operations.push(Operation {
            operands,
            action,
            activation: Activation::None,
            output: None,
            layout,
            element: Element::Int8,
        });
        Value {
            pieces: vec![Piece {
                source: Source::Layer(index),
                channels: [0, extents[0]],
                through: Vec::new(),
            }],
            extents,
            layout,
            quantisation: None,
            stored_as: Stored::Signed,
            name: None,
        }
    }

    /// A constant as an operand of the node that is read.
    pub(super) fn operand_of(&mut self, mut table: Table, layout: Layout) -> Value {
        let (base, mut number) = (format!("constant_{}", self.name), 2);
        table.name.clone_from(&base);
        while self.constants.iter().any(|other| other.name == table.name) {
            table.name = format!("{base}_{number}");
            number += 1;
        }
        let extents = table.extents;
        self.constants.push(table);
        Value {
            pieces: vec![Piece {
                source: Source::Constant(self.constants.len() - 1),
                channels: [0, extents[0]],
                through: Vec::new(),
            }],
            extents,
            layout,
            quantisation: None,
            stored_as: Stored::Signed,
            name: None,
        }
    }

    /// A layer that works on every element of a tensor by itself, or on every line of it.
    pub(super) fn pointwise(&mut self, x: &Value, action: Action) -> Known {
        let layer = self.plain(Kind::PointToPoint, x.extents);
        Known::Value(self.layer(layer, &[x], None, action, x.layout))
    }

    /// A layer with nothing but its name, kind and output.
    pub(super) fn plain(&self, kind: Kind, output: [i64; 3]) -> Layer {
        Layer {
            name: self.name.clone(),
            kind,
            output,
            channels: 0,
            kernel: [1, 1],
            stride: [1, 1],
            groups: 1,
            operands: 1,
            order: [0, 1, 2],
            previous: Vec::new(),
            weights_from: Vec::new(),
            external: None,
        }
    }
}
