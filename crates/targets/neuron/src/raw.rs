//! A NEFF's own structures as a tree.

use crate::container::Container;
use crate::header::hex;
use crate::json::{entries, items};
use chipless_model::{Node, Value};

/// JSON members beyond this size are shown by size only.
const SHOWN_JSON_BYTES: usize = 4 << 20;
/// Levels of JSON shown.
const SHOWN_JSON_DEPTH: usize = 64;
/// Values of JSON shown of all members together.
const SHOWN_JSON_VALUES: usize = 200_000;

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
