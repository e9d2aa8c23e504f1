//! What a plan is at a glance, and its structures as a tree.

use super::plan::{Graph, Origin, Plan, Tensor};
use super::tensor::Element;
use crate::lower::declared_bits;
use chipless_model::{ElementType, Info, Node, TensorInfo, Value};

/// The file at a glance.
pub fn info(plan: &Plan<'_>) -> Info {
    let (step, init) = plan.step();
    let mut operations = std::collections::BTreeMap::new();
    count_operations(step, &mut operations);
    let parameters: u64 = parameters(step);
    let text = |name: &str, value: String| (name.to_owned(), Value::Text(value));
    Info {
        labels: Vec::new(),
        target: "spu",
        platform: "Femtosense SPU-001".to_owned(),
        format_version: match plan.origin {
            Origin::Json => "FQIR plan 1",
            Origin::Saved => "FQIR graph (.pt)",
        }
        .to_owned(),
        name: plan.main.name.clone(),
        inputs: step.inputs.iter().map(tensor).collect(),
        outputs: step.outputs.iter().map(tensor).collect(),
        counts: vec![
            ("nodes".to_owned(), operations.values().sum()),
            ("parameters".to_owned(), step.parameters.len() as u64),
            ("parameter_elements".to_owned(), parameters),
            (
                "states".to_owned(),
                init.map_or(0, |init| {
                    let made: u64 = init.nodes.iter().map(|n| n.outputs.len() as u64).sum();
                    made + init.parameters.len() as u64
                }),
            ),
        ],
        facts: vec![text(
            "operations",
            operations
                .iter()
                .map(|(name, count)| format!("{name} {count}"))
                .collect::<Vec<_>>()
                .join(", "),
        )],
    }
}

fn tensor(tensor: &Tensor) -> TensorInfo {
    let element = declared_bits(&tensor.dtype)
        .map_or(ElementType::Float64, |bits| Element::of_bits(bits).model());
    TensorInfo {
        name: tensor.name.clone(),
        element,
        dtype: element.name().to_owned(),
        shape: tensor.shape.clone(),
        facts: Vec::new(),
    }
}

fn count_operations<'p>(graph: &'p Graph, counts: &mut std::collections::BTreeMap<&'p str, u64>) {
    for node in &graph.nodes {
        *counts
            .entry(node.op_name.as_deref().unwrap_or("call"))
            .or_insert(0) += 1;
    }
    graph
        .subgraphs
        .values()
        .for_each(|inner| count_operations(inner, counts));
}

fn parameters(graph: &Graph) -> u64 {
    let own: u64 = graph
        .parameters
        .iter()
        .filter_map(|p| p.value.as_ref())
        .map(|v| v.shape.iter().product::<u64>())
        .sum();
    own + graph.subgraphs.values().map(parameters).sum::<u64>()
}

/// The plan as a tree: names, types, shapes and constants; values of parameters by their shape.
pub fn raw(plan: &Plan<'_>) -> Node {
    graph("plan", &plan.main)
}

fn leaf(name: &str, value: impl Into<String>) -> Node {
    Node {
        name: name.to_owned(),
        value: Some(Value::Text(value.into())),
        ..Node::default()
    }
}

fn tree(name: &str, children: Vec<Node>) -> Node {
    Node {
        name: name.to_owned(),
        children,
        ..Node::default()
    }
}

fn graph(name: &str, of: &Graph) -> Node {
    let tensors = |name: &str, all: &[Tensor]| {
        let one = |t: &Tensor| {
            let quanta = t.quanta.map_or(String::new(), |q| format!(", quanta {q}"));
            leaf(&t.name, format!("{} {:?}{quanta}", t.dtype, t.shape))
        };
        tree(name, all.iter().map(one).collect())
    };
    let nodes = of.nodes.iter().map(|node| {
        let mut children: Vec<Node> = node
            .inputs
            .iter()
            .map(|(port, tensor)| leaf(port, tensor.clone()))
            .collect();
        children.extend(
            node.constants
                .iter()
                .map(|(name, value)| leaf(name, crate::yaml::shortened(&value.to_string()))),
        );
        children.push(leaf("outputs", node.outputs.join(", ")));
        children.extend(
            node.subgraph
                .as_ref()
                .map(|name| leaf("subgraph", name.clone())),
        );
        children.extend(
            node.subgraphs
                .iter()
                .map(|(key, name)| leaf(key, name.clone())),
        );
        Node {
            name: node.op_name.clone().unwrap_or_else(|| "call".to_owned()),
            value: Some(Value::Text(node.name.clone())),
            offset: Some(node.at.0),
            children,
        }
    });
    let subgraphs = of
        .subgraphs
        .iter()
        .map(|(name, inner)| graph(name, inner))
        .collect();
    let children = vec![
        tensors("inputs", &of.inputs),
        tensors("outputs", &of.outputs),
        tensors("parameters", &of.parameters),
        tree("nodes", nodes.collect()),
        tree("subgraphs", subgraphs),
    ];
    tree(name, children)
}
