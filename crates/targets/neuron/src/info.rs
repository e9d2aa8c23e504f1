//! What a NEFF is at a glance.

use crate::container::{Container, Packing};
use crate::def::VariableType;
use crate::graph::Tensor;
use crate::json::Name;
use crate::read::Neff;
use crate::stream::SLOT_BYTES;
use chipless_model::{ElementType, Info, TensorInfo, Value};
use serde::Deserialize;

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
        labels: Vec::new(),
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
