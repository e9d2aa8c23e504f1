//! The graph: inputs, nodes one after another, outputs.

use super::array::{elements, types};
use super::builder::{Builder, element_of};
use super::constants::array_of;
use super::node::{Node, name_of};
use super::supported::unknown;
use super::value::{Tensor, Value, usual};
use super::{Reader, Shapes};
use crate::front::{Declared, Front, Input, Layout, Source};
use crate::network::Network;
use crate::onnx::constant::{self, Beside, Externals};
use crate::onnx::{self, Letters, Refused, port_names, proto};
use std::collections::{HashMap, HashSet};

/// Nodes that are walked through, at most.
const MOST_NODES: usize = 200_000;

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

    pub(super) fn initialisers(
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
                                "the model fixes dimension {at} of the input `{name}` at {fixed}, --shape gives {told}. Only open dimensions can be given, and a batch of 1 in front of others: export the model with an open dimension there"
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
                    let first = dims[0].dim_param.as_deref().unwrap_or("0");
                    let has_first = dims.len() > 1
                        && dims[0].dim_value.is_none_or(|extent| extent < 1)
                        && !onnx::counts_images(first);
                    let mut letters = Letters::default();
                    let mut extents: Vec<String> = (shape.iter())
                        .map(|extent| match extent {
                            0 => letters.other(),
                            extent => extent.to_string(),
                        })
                        .collect();
                    if has_first {
                        extents[0] = letters.first();
                        open.insert(0, first.to_owned());
                    }
                    return Err(format!(
                        "the input `{name}` has open dimensions ({}); give its shape, as in --shape {name}={} with {}",
                        open.join(", "),
                        extents.join(","),
                        letters.told().unwrap_or_default()
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
    pub(super) fn walk(&mut self, graph: &'g proto::Graph) {
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
            called: port_names(graph),
            is_calibrated: false,
            is_quantised: false,
        })
    }
}
