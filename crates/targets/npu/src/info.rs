//! What a blob is, for people and for lowering: the network's edge, counts, memory, the compiler's own estimate.

use crate::metadata::{ModelNode, TensorRef, data_type_name, element_type};
use crate::raw::{Barrier, TaskKind, WorkItem};
use crate::read::{Document, Platform, Version};
use crate::section::{Section, section_flag, section_type};
use chipless_model::ElementType;
use std::collections::HashSet;
use zerocopy::FromBytes;

/// An input or output of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// As the model calls it; unique among the inputs and outputs of a program.
    pub name: String,
    /// Element type; `None` for the few that no program here can hold.
    pub element: Option<ElementType>,
    /// The element type's name in any case.
    pub dtype: &'static str,
    /// Outermost dimension first.
    pub shape: Vec<u64>,
    /// Bytes that the tensor takes in memory (`st_size` of its symbol); the section may be larger.
    pub bytes: u64,
    /// Where it is not plain row-major: strides in bits, outermost first, and the order of dimensions in memory, one
    /// hexadecimal digit for each.
    pub layout: Option<(Vec<u64>, u64)>,
}

/// The compiler's own estimate of the latency, from its schedule simulation; not a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Microseconds at `frequency_mhz`.
    pub latency_us: f64,
    /// DPU clock for which it holds.
    pub frequency_mhz: f64,
    /// Share of the time that the DPUs work.
    pub activity_factor: f32,
}

/// Memory that a program takes, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Constants (`buffer.Constant.*`).
    pub constants: u64,
    /// Scratch in DDR (`buffer.DDR.*`).
    pub scratch: u64,
    /// Tensors of inputs, outputs and profiling outputs.
    pub io: u64,
    /// On-chip memory up to the last byte in use, by tile (`buffer.CMX_NN.*`).
    pub cmx: Vec<u64>,
}

/// Everything that `info` shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// The chip.
    pub platform: Platform,
    /// Version of the loader's ABI.
    pub loader_abi: Option<Version>,
    /// Version of the mapped inference.
    pub mapped_inference: Option<Version>,
    /// The compiler's version, from the plugin's metadata or the compatibility string.
    pub compiler: Option<String>,
    /// The compiler's commit; empty where the file does not say.
    pub compiler_hash: String,
    /// The `OpenVINO` release that exported the file; `None` for an ELF alone.
    pub openvino: Option<[u16; 3]>,
    /// The network's name.
    pub network: String,
    /// Inputs in the order of the model.
    pub inputs: Vec<Tensor>,
    /// Outputs in the order of the model.
    pub outputs: Vec<Tensor>,
    /// What a profiled program writes besides.
    pub profiling_outputs: Vec<Tensor>,
    /// Tiles that the program needs.
    pub tiles: u8,
    /// Named counts, in the order in which they should be shown. Empty for programs whose sections are not those of
    /// NPU4000. See [`counts`].
    pub counts: Vec<(&'static str, u64)>,
    /// Memory; `None` where `counts` is empty.
    pub footprint: Option<Footprint>,
    /// The compiler's estimate; `None` where the file has none, or the chip's clocks are not known.
    pub estimate: Option<Estimate>,
    /// Whether the file holds code for the SHAVE processors.
    pub shave_code: bool,
}

impl Info {
    /// Gathers everything. Constants are not touched.
    pub fn read(document: &Document<'_>) -> Info {
        let metadata = document.metadata();
        let inputs = tensors(document, metadata.inputs, metadata.parameters, section_flag::USER_INPUT, "NetworkInput");
        let outputs = tensors(document, metadata.outputs, metadata.results, section_flag::USER_OUTPUT, "NetworkOutput");
        let profiling_outputs = tensors(document, metadata.profiling_outputs, &[], section_flag::PROFILING_OUTPUT, "ProfilingOutput");
        let io = [&inputs, &outputs, &profiling_outputs].into_iter().flatten().fold(0, |sum: u64, tensor| sum.saturating_add(tensor.bytes));
        let known = document.section("program.mapped_inference").is_some();
        let trailer = document.trailer();
        let compiler = trailer.and_then(|trailer| trailer.compiler).map(|version| version.to_string());
        Info {
            platform: document.platform(),
            loader_abi: document.loader_abi(),
            mapped_inference: document.mapped_inference(),
            compiler: compiler.or_else(|| requirement(document.compatibility(), "compiler").map(str::to_owned)),
            compiler_hash: document.compiler_hash().to_owned(),
            openvino: trailer.map(|trailer| trailer.openvino),
            network: metadata.identification.network.text().unwrap_or_default().to_owned(),
            inputs,
            outputs,
            profiling_outputs,
            tiles: metadata.resources.tiles,
            counts: if known { counts(document) } else { Vec::new() },
            footprint: known.then(|| footprint(document, io)),
            estimate: estimate(document),
            shave_code: document.sections().iter().any(|section| section.flags & section_flag::SHAVE != 0 && section.size != 0),
        }
    }
}

/// A value of the compatibility string, `compiler=8.4;npu=4000;…`.
fn requirement<'a>(compatibility: &'a str, key: &str) -> Option<&'a str> {
    compatibility.split(';').find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == key)).map(|(_, value)| value)
}

fn estimate(document: &Document<'_>) -> Option<Estimate> {
    let metrics = document.performance()?;
    let (timer_mhz, frequency_mhz) = document.platform().clocks()?;
    let latency_us = metrics.cycles(timer_mhz) / frequency_mhz;
    Some(Estimate { latency_us, frequency_mhz, activity_factor: metrics.activity_factor.get() })
}

/// The tensors of one side of the network. A tensor has the first name that the model gives it; one without a name, or
/// with a name that came before, is called after its section.
fn tensors(document: &Document<'_>, tensors: &[TensorRef], nodes: &[ModelNode], flag: u64, kind: &str) -> Vec<Tensor> {
    let elf = document.elf();
    let tables =
        document.sections().iter().enumerate().filter(|(_, section)| section.kind == section_type::SYMTAB && section.flags & flag != 0);
    let mut sizes = tables.flat_map(|(index, _)| elf.symbols(index).skip(1)).map(|symbol| symbol.size);
    let mut names = HashSet::new();
    let nodes = if nodes.len() == tensors.len() { nodes } else { &[] };
    let tensor = |(index, tensor): (usize, &TensorRef)| {
        let node = nodes.get(index);
        let model_name = node.filter(|node| node.tensor_name_count.get() != 0).and_then(|node| node.tensor_names[0].text());
        let name = model_name.filter(|name| !name.is_empty()).or_else(|| tensor.name.text()).unwrap_or_default();
        let name = if name.is_empty() { format!("{kind}.{index}") } else { name.to_owned() };
        let name = if names.contains(&name) { format!("{kind}.{index}") } else { name };
        names.insert(name.clone());
        let code = tensor.data_type.get();
        // A model's booleans are bytes on the device.
        let is_bool = node.is_some_and(|node| node.element.get() == 2) && matches!(code, 8 | 12);
        let element = if is_bool { Some(ElementType::Bool) } else { element_type(code) };
        Tensor {
            name,
            element,
            dtype: element.map_or_else(|| data_type_name(code), ElementType::name),
            shape: tensor.shape().collect(),
            bytes: sizes.next().or_else(|| tensor.bytes()).unwrap_or_default(),
            layout: (!tensor.is_row_major()).then(|| (tensor.strides().collect(), tensor.order.get())),
        }
    };
    tensors.iter().enumerate().map(tensor).collect()
}

/// Counts of what a program consists of:
///
/// | name | what is counted |
/// |---|---|
/// | `barriers` | virtual barriers: entries of program.managedBarrier |
/// | `physical_barriers` | different physical barriers among them |
/// | `dma` | DMA descriptors of all task.dma.* sections: with those that fetch descriptors, that only synchronise, and that write registers of barriers and FIFOs (fully managed programs) |
/// | `dma_nonempty` | those of them that move bytes |
/// | `dma_gather` | those whose source is a list of indices |
/// | `dma_converting` | those that convert elements |
/// | `dpu_invariants`, `dpu_variants` | DPU tasks and their workloads |
/// | `shave_ranges`, `shave_invocations` | SHAVE kernels and their calls |
/// | `work_items` | entries of program.workItem |
pub fn counts(document: &Document<'_>) -> Vec<(&'static str, u64)> {
    let mut tasks = [0; TaskKind::ALL.len()];
    let (mut nonempty, mut gather, mut converting) = (0, 0, 0);
    for (index, section) in document.sections().iter().enumerate() {
        let Some((kind, _)) = TaskKind::of_section(section.name) else { continue };
        let records = document.elf().section_bytes(index).chunks_exact(kind.record_size());
        if let Some(count) = tasks.get_mut(kind as usize) {
            *count += records.len() as u64;
        }
        if matches!(kind, TaskKind::DmaDdr | TaskKind::DmaCmx) {
            for descriptor in records {
                // Descriptor offset 16: configuration; 24: bytes of the innermost run of the source.
                let configuration = word(descriptor, 16) | word(descriptor, 20) << 32;
                nonempty += u64::from(word(descriptor, 24) != 0);
                gather += u64::from(configuration >> 35 & 3 != 0);
                converting += u64::from(configuration >> 39 & 7 != 0);
            }
        }
    }
    let barriers = section_records::<Barrier>(document, "program.managedBarrier");
    let mut physical = [false; 256];
    for barrier in barriers {
        if let Some(used) = physical.get_mut(usize::from(barrier.real_id)) {
            *used = true;
        }
    }
    let [dma_ddr, dma_cmx, invariants, variants, ranges, invocations] = tasks;
    vec![
        ("barriers", barriers.len() as u64),
        ("physical_barriers", physical.iter().filter(|used| **used).count() as u64),
        ("dma", dma_ddr + dma_cmx),
        ("dma_nonempty", nonempty),
        ("dma_gather", gather),
        ("dma_converting", converting),
        ("dpu_invariants", invariants),
        ("dpu_variants", variants),
        ("shave_ranges", ranges),
        ("shave_invocations", invocations),
        ("work_items", section_records::<WorkItem>(document, "program.workItem").len() as u64),
    ]
}

fn word(bytes: &[u8], offset: usize) -> u64 {
    bytes.get(offset..offset + 4).and_then(|word| word.try_into().ok()).map_or(0, |word| u64::from(u32::from_le_bytes(word)))
}

/// The whole records at the start of a section.
pub(crate) fn section_records<'f, T: FromBytes + zerocopy::Immutable + zerocopy::KnownLayout + zerocopy::Unaligned>(
    document: &Document<'f>,
    name: &str,
) -> &'f [T] {
    let bytes = document.section(name).map_or(&[][..], |(_, bytes)| bytes);
    let whole = bytes.len() / size_of::<T>();
    <[T]>::ref_from_prefix_with_elems(bytes, whole).map_or(&[], |(records, _)| records)
}

fn footprint(document: &Document<'_>, io: u64) -> Footprint {
    let sum = |prefix: &str| {
        let sections = document.sections().iter().filter(|section: &&Section<'_>| section.name.starts_with(prefix));
        sections.fold(0, |sum: u64, section| sum.saturating_add(section.size))
    };
    let cmx =
        document.sections().iter().filter(|section| section.kind == section_type::CMX_WORKSPACE).map(|section| section.size).collect();
    Footprint { constants: sum("buffer.Constant."), scratch: sum("buffer.DDR."), io, cmx }
}
