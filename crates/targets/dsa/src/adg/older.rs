//! Reading the JSON of the 2020 tools: `nodes` and `links` as arrays.
//!
//! A node is named by a list of its own fields (`[7, "processing element"]`, `[9, 0, "function unit", 0]`, `["sw", 0]`), in whatever
//! order the writer had; kind and number are what is told apart by type: the text is the kind, the number is the field `id`, whose place
//! in the list the document's `identifier` tells.

use super::builder::Builder;
use super::json::{Cursor, Error};
use super::{Adg, Element, ElementKind, Form, ProcessingElement, Switch, VectorPort, rules};
use chipless_model::Finding;
use std::collections::HashMap;
use std::sync::Arc;

pub(super) fn read(root: &Cursor<'_>, findings: &mut Vec<Finding>) -> Result<Adg, Error> {
    let identifier: Vec<String> = match root.get("identifier") {
        Some(list) => list
            .items()?
            .map(|item| item.text().map(str::to_owned))
            .collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    let width = root.number_or(
        "default_data_width",
        root.number_or("datawidth", root.number_or("data_width", 64)?)?,
    )?;
    let granularity = root.number_or("default_granularity", width)?;
    let mut builder = Builder::default();
    let mut named: HashMap<(String, u32), usize> = HashMap::new();
    let mut of_kind: HashMap<&'static str, u32> = HashMap::new();
    for node in root.need("nodes")?.items()? {
        let written = node.need("nodeType")?.text()?;
        let id = node.need("id")?.number()?;
        let kind = kind(&node, written, width)?;
        let number = of_kind.entry(kind.name()).or_default();
        let (mut bits, mut parts) = (0, 0);
        if !matches!(kind, ElementKind::InputPort(_) | ElementKind::OutputPort(_)) {
            bits = node.number_or("data_width", width)?;
            let decomposed = node.number_or("decomposer", 0)?;
            parts = node.number_or(
                "granularity",
                bits.checked_div(decomposed).unwrap_or(granularity),
            )?;
        }
        let place = match (node.get("row_idx"), node.get("col_idx")) {
            (Some(row), Some(column)) => row.number().ok().zip(column.number().ok()),
            _ => None,
        };
        let name = kind.name();
        let element = Element {
            number: *number,
            kind,
            width: bits,
            granularity: parts,
            place,
            inputs: Vec::new(),
            outputs: Vec::new(),
            body: Arc::default(),
        };
        // Numbers with leading zeros sort as text like numbers.
        let index = builder.add(format!("{name}.{number:08}"), name, element, &node)?;
        *number += 1;
        if named.insert((written.to_owned(), id), index).is_some() {
            return Err(node.error(
                &rules::ELEMENT,
                format!("the {written} {id} is there twice"),
            ));
        }
    }
    // Links without indices are numbered in the order of the file.
    let mut next: HashMap<(usize, bool), u32> = HashMap::new();
    for link in root.need("links")?.items()? {
        let mut end = |key: &'static str, index: &'static str, outgoing: bool| {
            let list = link.need(key)?;
            let (kind, id) = reference(&list, &identifier)?;
            let Some(found) = named.get(&(kind.clone(), id)).copied() else {
                return Err(list.error(
                    &rules::DANGLING,
                    format!("the link names the {kind} {id}, which is not among the nodes"),
                ));
            };
            let counted = next.entry((found, outgoing)).or_default();
            let index = link.number_or(index, *counted)?;
            *counted += 1;
            Ok::<_, Error>((found, index))
        };
        let (source, source_index) = end("source", "source_out_idx", true)?;
        let (sink, sink_index) = end("sink", "sink_in_idx", false)?;
        builder.link((source, source_index), (sink, sink_index), 1, &link)?;
    }
    Ok(builder.finish(Form::Arrays, None, findings))
}

/// Kind and id of a node that a list names.
fn reference(list: &Cursor<'_>, identifier: &[String]) -> Result<(String, u32), Error> {
    let (mut kind, mut first, mut marked) = (None, None, None);
    for (position, item) in list.items()?.enumerate() {
        match item.value {
            serde_json::Value::String(text) if text != "N/A" && kind.is_none() => {
                kind = Some(text.clone());
            }
            serde_json::Value::Number(_) => {
                let number = item.number()?;
                first = first.or(Some(number));
                if identifier.get(position).is_some_and(|field| field == "id") {
                    marked = Some(number);
                }
            }
            _ => {}
        }
    }
    match (kind, marked.or(first)) {
        (Some(kind), Some(id)) => Ok((kind, id)),
        _ => Err(list.error(
            &rules::MISSING,
            "expected the kind and the id of a node, found neither or one",
        )),
    }
}

fn kind(node: &Cursor<'_>, written: &str, width: u32) -> Result<ElementKind, Error> {
    let dynamic = node.flag_or("flow_control", true)?;
    Ok(match written {
        "switch" | "sw" => ElementKind::Switch(Switch {
            output_buffer_depth: 0,
            static_output_buffer: !dynamic,
        }),
        "processing element" | "function unit" | "fu" => {
            let operations = match node.get("instructions") {
                Some(list) => list
                    .items()?
                    .map(|item| item.text().map(str::to_owned))
                    .collect::<Result<_, _>>()?,
                None => Vec::new(),
            };
            ElementKind::ProcessingElement(ProcessingElement {
                operations,
                instruction_slots: node.number_or("max_util", 1)?.max(1),
                delay_depth: node.number_or("max_delay_fifo_depth", DELAY_DEPTH)?,
                dynamic,
                static_output_buffer: !dynamic,
                output_buffer_depth: 0,
                registers: node.number_or("num_register", 0)?,
                control_entries: 0,
                input_control: false,
                output_control: false,
            })
        }
        "vector port" | "vp" => {
            let port = VectorPort {
                implementation: 0,
                stated: false,
                depth: width / 32,
                repeated: false,
                broadcast: false,
                discard: false,
            };
            let (inputs, outputs) = (
                node.number_or("num_input", 0)?,
                node.number_or("num_output", 0)?,
            );
            match (inputs, outputs) {
                (0, _) => ElementKind::InputPort(port),
                (_, 0) => ElementKind::OutputPort(port),
                _ => {
                    return Err(node.error(
                        &rules::DIRECTION,
                        format!("a vector port with {inputs} inputs and {outputs} outputs, expected one side only"),
                    ));
                }
            }
        }
        _ => {
            return Err(node.error(
                &rules::ELEMENT,
                format!("expected switch, processing element, function unit or vector port, found \"{written}\""),
            ));
        }
    })
}

/// Cycles that an operand can be delayed where the file is silent: what the fabrics of that time had.
const DELAY_DEPTH: u32 = 8;
