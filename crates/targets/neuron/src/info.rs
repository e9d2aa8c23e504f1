//! What a NEFF is at a glance, and its own structures as a tree.

use crate::container::{Container, Packing};
use crate::def::VariableType;
use crate::graph::Tensor;
use crate::header::hex;
use crate::json::{Name, entries, items};
use crate::read::Neff;
use crate::stream::SLOT_BYTES;
use chipless_model::{ElementType, Info, Node, TensorInfo, Value};
use serde::Deserialize;

/// JSON members beyond this size are shown by size only.
const SHOWN_JSON_BYTES: usize = 4 << 20;
/// Levels of JSON shown.
const SHOWN_JSON_DEPTH: usize = 64;
/// Values of JSON shown of all members together.
const SHOWN_JSON_VALUES: usize = 200_000;

/// What `info.json` says of the compiler.
#[derive(Deserialize, Default)]
struct CompilerInfo<'a> {
    #[serde(borrow)]
    tool_version: Option<Name<'a>>,
}

/// What the compiler says of the model.
#[derive(Deserialize, Default)]
struct ModelStatistics {
    #[serde(rename = "HloMacCount")]
    multiply_accumulates: Option<i64>,
}

/// The file at a glance.
pub fn info(neff: &Neff<'_>) -> Info {
    let header = &neff.container.header;
    let compiler: CompilerInfo<'_> = member_json(neff.container, "info.json").unwrap_or_default();
    let statistics: ModelStatistics =
        member_json(neff.container, "hlo_stats.json").unwrap_or_default();
    let text = |name: &str, value: String| (name.to_owned(), Value::Text(value));
    let number = |name: &str, value: u64| (name.to_owned(), Value::Integer(i128::from(value)));
    let mut facts = vec![
        text("architecture", neff.architecture.to_string()),
        text("package_version", header.pkg_version.to_string()),
        text("features", header.feature_bits.to_string()),
        (
            "feature_bits".to_owned(),
            Value::Bits(header.feature_bits.0),
        ),
        number("logical_core_size", u64::from(header.lnc_size.max(1))),
        number("cores", u64::from(header.num_tpb)),
        text(
            "hash",
            header.hash_state(neff.container.data).name().to_owned(),
        ),
        text("uuid", header.uuid()),
        text(
            "packing",
            if neff.container.packing == Packing::Plain {
                "tar"
            } else {
                "tar, gzip"
            }
            .to_owned(),
        ),
        number("data_bytes", header.data_size),
        number("tarball_bytes", neff.container.tarball().len() as u64),
    ];
    if let Some(version) = compiler.tool_version {
        facts.push(text("compiler", version.to_string()));
    }
    if !header.build_version().is_empty() {
        facts.push(text("packager", header.build_version()));
    }
    if let Some(macs) = statistics.multiply_accumulates {
        facts.push((
            "multiply_accumulates".to_owned(),
            Value::Integer(i128::from(macs)),
        ));
    }
    Info {
        target: "neuron",
        platform: neff.architecture.families().to_owned(),
        format_version: header.version(),
        name: header.name(),
        inputs: neff.interface.inputs.iter().map(tensor).collect(),
        outputs: neff.interface.outputs.iter().map(tensor).collect(),
        counts: counts(neff),
        facts,
    }
}

fn member_json<'a, T: Deserialize<'a>>(container: &'a Container<'_>, path: &str) -> Option<T> {
    serde_json::from_slice(container.member(path)?.bytes).ok()
}

/// An unknown element type is shown under its own name, as bytes.
fn tensor(tensor: &Tensor<'_>) -> TensorInfo {
    TensorInfo {
        name: tensor.name.to_string(),
        element: tensor.element.unwrap_or(ElementType::UInt8),
        dtype: tensor.dtype.to_string(),
        shape: tensor.shape.clone(),
        facts: Vec::new(),
    }
}

fn counts(neff: &Neff<'_>) -> Vec<(String, u64)> {
    let rooms = || neff.subgraphs.iter().flat_map(|s| &s.engines);
    let dma = || rooms().flat_map(|e| &e.file.dma);
    let variables = |wanted: Option<VariableType>| {
        let all = neff
            .subgraphs
            .iter()
            .flat_map(|s| s.definition.variables.values());
        all.filter(|v| wanted.is_none() || v.kind == wanted).count() as u64
    };
    let mut counts = vec![
        ("members".to_owned(), neff.container.members().len() as u64),
        ("subgraphs".to_owned(), neff.subgraphs.len() as u64),
        ("variables".to_owned(), variables(None)),
        ("constants".to_owned(), variables(Some(VariableType::File))),
        (
            "queue_sets".to_owned(),
            neff.subgraphs
                .iter()
                .map(|s| s.definition.queues.len() as u64)
                .sum(),
        ),
        (
            "tables".to_owned(),
            rooms().map(|e| e.tables.len() as u64).sum(),
        ),
        ("dma_entries".to_owned(), dma().count() as u64),
        (
            "dma_descriptors".to_owned(),
            dma().map(|d| d.descriptors.len() as u64).sum(),
        ),
    ];
    for subgraph in &neff.subgraphs {
        for room in &subgraph.engines {
            let slots = room.instructions.map_or(0, |m| m.bytes.len() / SLOT_BYTES) as u64;
            let name = format!("slots.{}.{}", subgraph.name, room.engine);
            match counts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += slots,
                None => counts.push((name, slots)),
            }
        }
    }
    counts
}

/// The container's structures: header fields, members, and the JSON members' content.
pub fn raw(container: &Container<'_>) -> Node {
    let mut budget = SHOWN_JSON_VALUES;
    let members = container.members().map(|member| {
        let size = Node {
            name: "size".to_owned(),
            value: Some(Value::Integer(member.bytes.len() as i128)),
            ..Node::default()
        };
        let mut children = vec![size];
        if member.has_extension("json")
            && member.bytes.len() <= SHOWN_JSON_BYTES
            && let Ok(text) = std::str::from_utf8(member.bytes)
        {
            children.push(tree("content", text.trim(), SHOWN_JSON_DEPTH, &mut budget));
        }
        Node {
            name: member.path.to_owned(),
            children,
            ..Node::default()
        }
    });
    let members = Node {
        name: "members".to_owned(),
        children: members.collect(),
        ..Node::default()
    };
    Node {
        name: "neff".to_owned(),
        children: vec![header(container), members],
        ..Node::default()
    }
}

fn header(container: &Container<'_>) -> Node {
    let header = &container.header;
    let field = |offset: u64, name: &str, value: Value| Node {
        name: name.to_owned(),
        value: Some(value),
        offset: Some(offset),
        children: Vec::new(),
    };
    let integer = |value: u64| Value::Integer(i128::from(value));
    let nodes: Vec<String> = header.tpb_per_node.iter().map(u8::to_string).collect();
    let last = header
        .tpb_per_node
        .iter()
        .rposition(|n| *n != 0)
        .map_or(1, |last| last + 1);
    let children = vec![
        field(0, "pkg_version", integer(header.pkg_version)),
        field(8, "header_size", integer(header.header_size)),
        field(16, "data_size", integer(header.data_size)),
        field(24, "neff_version_major", integer(header.neff_version_major)),
        field(32, "neff_version_minor", integer(header.neff_version_minor)),
        field(
            40,
            "neff_build_version",
            Value::Text(header.build_version()),
        ),
        field(168, "num_tpb", integer(u64::from(header.num_tpb))),
        field(172, "hash", Value::Text(hex(&header.hash))),
        field(204, "uuid", Value::Text(header.uuid())),
        field(220, "name", Value::Text(header.name())),
        field(
            476,
            "requested_tpb_count",
            integer(u64::from(header.requested_tpb_count)),
        ),
        field(
            480,
            "tpb_per_node",
            Value::Text(nodes.get(..last).unwrap_or(&nodes).join(" ")),
        ),
        field(544, "feature_bits", Value::Bits(header.feature_bits.0)),
        field(552, "lnc_size", integer(u64::from(header.lnc_size))),
        field(
            556,
            "pad",
            Value::Text(if header.pad.iter().all(|b| *b == 0) {
                "zero".to_owned()
            } else {
                hex(&header.pad)
            }),
        ),
    ];
    Node {
        name: "header".to_owned(),
        value: None,
        offset: Some(0),
        children,
    }
}

/// JSON text as a tree, unknown keys and all.
fn tree(name: &str, text: &str, depth: usize, budget: &mut usize) -> Node {
    let mut node = Node {
        name: name.to_owned(),
        ..Node::default()
    };
    let shorten = |text: &str| Value::Text(text.chars().take(200).collect());
    *budget = budget.saturating_sub(1);
    if depth == 0 || *budget == 0 {
        node.value = Some(shorten(text));
    } else if text.starts_with('{') {
        for (key, value) in entries(text).unwrap_or_default() {
            if *budget == 0 {
                break;
            }
            node.children.push(tree(&key, value, depth - 1, budget));
        }
    } else if text.starts_with('[') {
        items(text, |index, item| {
            node.children
                .push(tree(&index.to_string(), item, depth - 1, budget));
            *budget > 0
        });
    } else if text.starts_with('"') {
        node.value =
            Some(serde_json::from_str::<String>(text).map_or_else(|_| shorten(text), Value::Text));
    } else {
        let integer = text.parse::<i128>().ok().map(Value::Integer);
        let number = || text.parse::<f64>().ok().map(Value::Number);
        node.value = integer.or_else(number).or_else(|| Some(shorten(text)));
    }
    node
}
