//! Reading the generator's JSON.

use super::builder::Builder;
use super::json::{Cursor, Error};
use super::{
    Adg, Element, ElementKind, Form, Memory, MemoryKind, ProcessingElement, Switch, System,
    VectorPort, lint, older, rules, text,
};
use chipless_model::{Finding, Limits, Place};
use serde_json::Value;
use std::sync::Arc;

/// Bytes of a file: a parsed document takes many times that in memory.
const MOST_BYTES: u64 = 64 << 20;

/// Whether a file looks like an architecture graph, by what stands near its beginning.
pub fn recognize(bytes: &[u8]) -> bool {
    if text::recognize(bytes) {
        return true;
    }
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return false;
    }
    let has = |word: &str| memchr::memmem::find(bytes, word.as_bytes()).is_some();
    has("\"DSAGenNodes\"") || (has("\"links\"") && has("\"nodes\"") && has("\"nodeType\""))
}

impl Adg {
    /// Reads a file, and says what is wrong with it besides.
    ///
    /// # Errors
    /// The first thing that keeps the file from being read.
    pub fn read(bytes: &[u8], limits: &Limits) -> Result<(Adg, Vec<Finding>), Box<Finding>> {
        if text::recognize(bytes) {
            return text::read(bytes, limits);
        }
        let most = limits.json_bytes.min(MOST_BYTES);
        if bytes.len() as u64 > most {
            let message = format!(
                "{} bytes of JSON exceed the limit json_bytes = {most}",
                bytes.len()
            );
            return Err(Box::new(rules::LIMIT.at(Place::file(), message)));
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|error| {
            let text = error.to_string();
            let message = text
                .rsplit_once(" at line ")
                .map_or(text.as_str(), |(message, _)| message);
            let place =
                Place::file().at(format!("line {}, column {}", error.line(), error.column()));
            Box::new(rules::SYNTAX.at(place, message.to_owned()))
        })?;
        let root = Cursor::root(&value);
        let mut findings = Vec::new();
        let adg = if root.get("DSAGenNodes").is_some() {
            generator(&root, &mut findings)?
        } else if root.get("nodes").is_some() && root.get("links").is_some() {
            older::read(&root, &mut findings)?
        } else {
            return Err(root.error(
                &rules::UNSUPPORTED,
                "expected DSAGenNodes and DSAGenEdges, or nodes and links, found neither",
            ));
        };
        lint(&adg, &mut findings);
        findings.truncate(usize::try_from(limits.findings).unwrap_or(usize::MAX));
        Ok((adg, findings))
    }
}

fn generator(root: &Cursor<'_>, findings: &mut Vec<Finding>) -> Result<Adg, Error> {
    let nodes = root.need("DSAGenNodes")?;
    let mut form = Form::Generator;
    let mut elements = Builder::default();
    for (key, node) in nodes.members()? {
        let dotted = key.rsplit_once('.');
        let Some((kind, number)) = dotted.or_else(|| key.rsplit_once('_')) else {
            return Err(node.error(
                &rules::ELEMENT,
                format!("expected a name like Switch.3, found \"{key}\""),
            ));
        };
        if dotted.is_none() {
            form = Form::GeneratorUnderscore;
        }
        let Ok(number) = number.parse::<u32>() else {
            return Err(node.error(
                &rules::ELEMENT,
                format!("expected a number behind the kind, found \"{key}\""),
            ));
        };
        let element = read_element(kind, number, &node)?;
        elements.add(key.to_owned(), kind, element, &node)?;
    }
    let edges = root.need("DSAGenEdges")?;
    for edge in edges.items()? {
        let end = |kind: &'static str, number: &'static str, index: &'static str| {
            let kind = edge.need(kind)?.text()?;
            let number = edge.need(number)?.number()?;
            Ok::<_, Error>((
                elements.named(kind, number),
                format!("{kind}.{number}"),
                edge.number_or(index, 0)?,
            ))
        };
        let (source, source_name, source_index) =
            end("SourceNodeType", "SourceNodeId", "SourceIndex")?;
        let (sink, sink_name, sink_index) = end("SinkNodeType", "SinkNodeId", "SinkIndex")?;
        match (source, sink) {
            (Some(source), Some(sink)) => {
                let values = edge.number_or("Values", 1)?.max(1);
                elements.link((source, source_index), (sink, sink_index), values, &edge)?;
            }
            (source, _) => {
                let missing = if source.is_none() {
                    source_name
                } else {
                    sink_name
                };
                return Err(edge.error(
                    &rules::DANGLING,
                    format!("the link names {missing}, which is not among the elements"),
                ));
            }
        }
    }
    let system = match root.get("SystemParameters") {
        None => None,
        Some(system) => Some(System {
            cores: system.number_or("NumberOfCores", 1)?.max(1),
            banks: system.number_or("NumberOfBanks", 1)?.max(1),
            bus_width: system.number_or("SystemBusWidth", 64)?,
        }),
    };
    Ok(elements.finish(form, system, findings))
}

/// The section of a node that the generator names like `dsagen2.comp.config.CompKeys$CompNode$`.
fn section<'a>(node: &'a Cursor<'a>, name: &str) -> Result<Cursor<'a>, Error> {
    let found = node
        .members()?
        .find(|(key, _)| key.split('$').nth(1).unwrap_or(key) == name);
    found.map(|(_, section)| section).ok_or_else(|| {
        node.error(
            &rules::MISSING,
            format!("expected a section {name}, found none"),
        )
    })
}

fn read_element(kind: &str, number: u32, node: &Cursor<'_>) -> Result<Element, Error> {
    let (mut width, mut granularity, mut place) = (0, 0, None);
    let kind = match kind {
        "ProcessingElement" | "Switch" => {
            let body = section(node, "CompNode")?;
            width = body.need("compBits")?.number()?;
            granularity = body.number_or("compUnitBits", width)?;
            place = body
                .get("comment")
                .and_then(|comment| row_and_column(comment.value.as_str()?));
            let buffer = section(node, "OutputBuffer")?;
            let depth = buffer.number_or("outputBufferDepth", 0)?;
            let fixed = buffer.flag_or("staticOutputBuffer", false)?;
            if kind == "Switch" {
                ElementKind::Switch(Switch {
                    output_buffer_depth: depth,
                    static_output_buffer: fixed,
                })
            } else {
                ElementKind::ProcessingElement(processing(node, depth, fixed)?)
            }
        }
        "InputVectorPort" | "OutputVectorPort" => {
            let body = section(
                node,
                if kind == "InputVectorPort" {
                    "IVPNode"
                } else {
                    "OVPNode"
                },
            )?;
            let port = VectorPort {
                implementation: body.number_or("vpImpl", 0)?,
                stated: body.flag_or("vpStated", false)?,
                depth: body.number_or("depthByte", 0)?,
                repeated: body.flag_or("repeatedIVP", false)?,
                broadcast: body.flag_or("broadcastIVP", false)?,
                discard: body.flag_or("discardOVP", false)?,
            };
            if kind == "InputVectorPort" {
                ElementKind::InputPort(port)
            } else {
                ElementKind::OutputPort(port)
            }
        }
        _ => {
            let Some(kind) = MemoryKind::ALL
                .into_iter()
                .find(|known| known.name() == kind)
            else {
                return Err(node.error(
                    &rules::ELEMENT,
                    format!("expected a kind of element, found \"{kind}\""),
                ));
            };
            let body = section(node, "MemNode")?;
            ElementKind::Memory(Memory {
                kind,
                read_width: body.number_or("readWidth", 0)?,
                write_width: body.number_or("writeWidth", 0)?,
                unit_bits: body.number_or("memUnitBits", 8)?,
                capacity: body.large_or("capacity", 0)?,
                padding: body.flag_or("LinearPadding", false)?,
                indirect: super::INDIRECT_STREAMS
                    .iter()
                    .try_fold(false, |any, flag| {
                        Ok::<_, Error>(any | body.flag_or(flag, false)?)
                    })?,
            })
        }
    };
    Ok(Element {
        number,
        kind,
        width,
        granularity,
        place,
        inputs: Vec::new(),
        outputs: Vec::new(),
        body: Arc::new(node.value.as_object().cloned().unwrap_or_default()),
    })
}

fn processing(
    node: &Cursor<'_>,
    output_buffer_depth: u32,
    static_output_buffer: bool,
) -> Result<ProcessingElement, Error> {
    let body = section(node, "DsaOperations")?;
    let control = section(node, "MetaControl").ok();
    let registers = section(node, "RegFile").ok();
    let of_control = |key: &str, missing: bool| {
        control
            .as_ref()
            .map_or(Ok(missing), |control| control.flag_or(key, missing))
    };
    let operations = body.need("OperationDataTypeSet")?;
    Ok(ProcessingElement {
        operations: operations
            .items()?
            .map(|name| name.text().map(str::to_owned))
            .collect::<Result<_, _>>()?,
        instruction_slots: body.number_or("instSlotSize", 1)?.max(1),
        delay_depth: body.number_or("maxFifoDepth", 0)?,
        dynamic: body.flag_or("isDynamic", true)?,
        static_output_buffer,
        output_buffer_depth,
        registers: registers
            .as_ref()
            .map_or(Ok(0), |registers| registers.number_or("numReg", 0))?,
        control_entries: control.as_ref().map_or(Ok(0), control_entries)?,
        input_control: of_control("inputLSBCtrl", false)?,
        output_control: of_control("outputLSBCtrl", false)?,
    })
}

/// Entries of a control table. The scheduler writes `true` for a full one.
fn control_entries(control: &Cursor<'_>) -> Result<u32, Error> {
    match control.get("sizeLUT").map(|size| size.value) {
        Some(Value::Bool(true)) => Ok(FULL_TABLE),
        _ => control.number_or("sizeLUT", 0),
    }
}

/// Entries of a full control table: three bits of control are looked at.
const FULL_TABLE: u32 = 8;

/// `row5_col3`, as the generator comments its meshes.
fn row_and_column(comment: &str) -> Option<(u32, u32)> {
    let (row, column) = comment.strip_prefix("row")?.split_once("_col")?;
    Some((row.parse().ok()?, column.parse().ok()?))
}
