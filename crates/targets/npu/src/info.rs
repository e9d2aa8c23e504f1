//! What a blob is, for people and for lowering: the network's edge, counts, memory, the compiler's own estimate.

use crate::document::Document;
use crate::metadata::{ModelNode, TensorRef, data_type_name, element_type};
use crate::section::{section_flag, section_type};
use crate::structures::{Barrier, Layout, TaskKind, WorkItem};
use chipless_model::{ElementType, Info, TensorInfo, Value};
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
    /// The section that the host reads or writes.
    pub section: String,
    /// Bytes that the tensor takes in memory (`st_size` of its symbol); the section may be larger.
    pub bytes: u64,
    /// Where it is not plain row-major: strides in bits, outermost first, and the order of dimensions in memory, one
    /// hexadecimal digit for each.
    pub layout: Option<(Vec<u64>, u64)>,
}

/// A value that the network keeps from one inference to the next. The compiler makes an input of its reading and an output of its
/// assignment; it starts at zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// As the model calls it.
    pub name: String,
    /// What the program reads.
    pub before: Option<Tensor>,
    /// What the program writes.
    pub after: Option<Tensor>,
}

impl State {
    /// The sections that hold it.
    pub fn sections(&self) -> impl Iterator<Item = &str> {
        let tensors = [&self.before, &self.after];
        tensors.into_iter().flatten().map(|tensor| &*tensor.section)
    }
}

/// The sizes of an input or output whose shape has upper bounds, as the compiler has them: 32-bit integers, innermost first. Programs are
/// run at the upper bounds, which are the shape of the tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The tensor that has them.
    pub name: String,
    /// Its upper bounds, outermost first.
    pub shape: Vec<u64>,
    /// The section that holds the sizes.
    pub section: String,
    /// Whether the program reads them.
    pub is_input: bool,
}

impl Bounds {
    /// As the program reads them.
    pub fn bytes(&self) -> Vec<u8> {
        let sizes = self.shape.iter().rev().map(|size| *size as u32);
        sizes.flat_map(u32::to_le_bytes).collect()
    }
}

/// What the compiler calls the sizes of a tensor, before its name.
const SHAPE: &str = "vpux_ie_shape_";
/// What the compiler calls the input that reads a state, before the state's name.
const READ_VALUE: &str = "vpux_ie_read_value_";
/// What it calls the output that assigns a state.
const ASSIGN: &str = "vpux_ie_assign_";

/// The network's inputs and outputs in the order of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    /// What the host gives.
    pub inputs: Vec<Tensor>,
    /// What the host gets.
    pub outputs: Vec<Tensor>,
    /// What a profiled program writes besides.
    pub profiling_outputs: Vec<Tensor>,
    /// What is kept from one inference to the next.
    pub states: Vec<State>,
    /// Sizes of inputs and outputs whose shapes have upper bounds.
    pub bounds: Vec<Bounds>,
}

impl Edge {
    /// Reads the metadata.
    pub fn read(document: &Document<'_>) -> Edge {
        let metadata = document.metadata();
        let mut edge = Edge {
            inputs: tensors(
                document,
                metadata.inputs,
                metadata.parameters,
                section_flag::USER_INPUT,
                "NetworkInput",
            ),
            outputs: tensors(
                document,
                metadata.outputs,
                metadata.results,
                section_flag::USER_OUTPUT,
                "NetworkOutput",
            ),
            profiling_outputs: tensors(
                document,
                metadata.profiling_outputs,
                &[],
                section_flag::PROFILING_OUTPUT,
                "ProfilingOutput",
            ),
            states: Vec::new(),
            bounds: Vec::new(),
        };
        edge.bounds = part_bounds(&mut edge.inputs, metadata.inputs, true);
        let outputs = part_bounds(&mut edge.outputs, metadata.outputs, false);
        edge.bounds.extend(outputs);
        edge.part_states();
        edge
    }

    /// Takes the states out of the inputs and outputs.
    fn part_states(&mut self) {
        let mut take = |tensors: &mut Vec<Tensor>, prefix: &str, put: fn(&mut State, Tensor)| {
            for tensor in std::mem::take(tensors) {
                let Some(name) = tensor.name.strip_prefix(prefix) else {
                    tensors.push(tensor);
                    continue;
                };
                let at = self.states.iter().position(|state| state.name == name);
                let at = at.unwrap_or_else(|| {
                    self.states.push(State {
                        name: name.to_owned(),
                        before: None,
                        after: None,
                    });
                    self.states.len() - 1
                });
                put(&mut self.states[at], tensor);
            }
        };
        take(&mut self.inputs, READ_VALUE, |state, tensor| {
            state.before = Some(tensor);
        });
        take(&mut self.outputs, ASSIGN, |state, tensor| {
            state.after = Some(tensor);
        });
    }
}

/// Takes the sizes of the other tensors out of inputs or outputs, all of which the metadata names as the compiler does.
fn part_bounds(tensors: &mut Vec<Tensor>, metadata: &[TensorRef], is_input: bool) -> Vec<Bounds> {
    let bounds_of = |(sizes, named): (&Tensor, &TensorRef)| {
        let name = named.name.text()?.strip_prefix(SHAPE)?;
        let of = metadata
            .iter()
            .position(|tensor| tensor.name.text() == Some(name))?;
        let of = tensors.get(of)?;
        let fits =
            sizes.element == Some(ElementType::Int32) && sizes.bytes == 4 * of.shape.len() as u64;
        fits.then(|| Bounds {
            name: of.name.clone(),
            shape: of.shape.clone(),
            section: sizes.section.clone(),
            is_input,
        })
    };
    let bounds: Vec<Bounds> = tensors.iter().zip(metadata).filter_map(bounds_of).collect();
    tensors.retain(|tensor| !bounds.iter().any(|bounds| bounds.section == tensor.section));
    bounds
}

/// Everything that `info` shows. Constants are not touched.
pub fn info(document: &Document<'_>) -> Info {
    let metadata = document.metadata();
    let edge = Edge::read(document);
    let known = document.section("program.mapped_inference").is_some();
    let mut info = Info {
        labels: Vec::new(),
        target: "npu",
        platform: document.platform().to_string(),
        format_version: document
            .loader_abi()
            .map_or_else(String::new, |version| version.to_string()),
        name: metadata
            .identification
            .network
            .text()
            .unwrap_or_default()
            .to_owned(),
        inputs: edge.inputs.iter().filter_map(Tensor::info).collect(),
        outputs: edge.outputs.iter().filter_map(Tensor::info).collect(),
        counts: Vec::new(),
        facts: Vec::new(),
    };
    if known {
        info.counts = counts(document)
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count))
            .collect();
    }
    let mut fact = |name: &str, value: Value| info.facts.push((name.to_owned(), value));
    if let Some(version) = document.mapped_inference() {
        fact("mapped_inference", Value::Text(version.to_string()));
    }
    let trailer = document.trailer();
    let compiler = trailer
        .and_then(|trailer| trailer.compiler)
        .map(|version| version.to_string());
    if let Some(compiler) =
        compiler.or_else(|| requirement(document.compatibility(), "compiler").map(str::to_owned))
    {
        fact("compiler", Value::Text(compiler));
    }
    if !document.compiler_hash().is_empty() {
        fact(
            "compiler_hash",
            Value::Text(document.compiler_hash().to_owned()),
        );
    }
    if let Some([major, minor, patch]) = trailer.map(|trailer| trailer.openvino) {
        fact("openvino", Value::Text(format!("{major}.{minor}.{patch}")));
    }
    fact("tiles", Value::Integer(metadata.resources.tiles.into()));
    for state in &edge.states {
        let tensor = state.before.as_ref().or(state.after.as_ref());
        let what = tensor.map_or_else(String::new, |tensor| {
            format!("{} {:?}, starts at zero", tensor.dtype, tensor.shape)
        });
        fact(&format!("state_{}", state.name), Value::Text(what));
    }
    for bounds in edge.bounds.iter().filter(|bounds| bounds.is_input) {
        let shape = bounds.shape.iter().map(u64::to_string);
        let shape = shape.collect::<Vec<_>>().join("×");
        fact(&format!("upper_bounds_{}", bounds.name), Value::Text(shape));
    }
    if known {
        for (name, bytes) in sizes(document, &edge) {
            fact(&name, Value::Integer(bytes.into()));
        }
    }
    let shave = document
        .sections()
        .iter()
        .any(|section| section.flags & section_flag::SHAVE != 0 && section.size != 0);
    fact(
        "embeds_shave_code",
        Value::Text(if shave { "yes" } else { "no" }.to_owned()),
    );
    if let (Some(estimate), Some(metrics), Some((_, frequency_mhz))) = (
        estimate_us(document),
        document.performance(),
        document.platform().clocks(),
    ) {
        fact("compiler_estimate_us", Value::Number(estimate));
        fact("compiler_estimate_mhz", Value::Number(frequency_mhz));
        fact(
            "compiler_activity_factor",
            Value::Number(metrics.activity_factor.get().into()),
        );
    }
    info
}

/// The compiler's own estimate of the latency in microseconds, where the blob has one: ticks of its simulation of its own schedule on its cost model, no
/// measurement.
pub fn estimate_us(document: &Document<'_>) -> Option<f64> {
    let (timer_mhz, frequency_mhz) = document.platform().clocks()?;
    Some(document.performance()?.cycles(timer_mhz) / frequency_mhz)
}

/// Bytes of what the program holds and touches, by name of the fact.
fn sizes(document: &Document<'_>, edge: &Edge) -> Vec<(String, u64)> {
    let sum = |prefix: &str| {
        let sections = document
            .sections()
            .iter()
            .filter(|section| section.name.starts_with(prefix));
        sections.fold(0, |sum: u64, section| sum.saturating_add(section.size))
    };
    let sides = [&edge.inputs, &edge.outputs, &edge.profiling_outputs];
    let io = sides
        .into_iter()
        .flatten()
        .fold(0, |sum: u64, tensor| sum.saturating_add(tensor.bytes));
    let mut sizes = vec![
        ("constant_bytes".to_owned(), sum("buffer.Constant.")),
        ("ddr_scratch_bytes".to_owned(), sum("buffer.DDR.")),
        ("io_bytes".to_owned(), io),
    ];
    let cmx = document
        .sections()
        .iter()
        .filter(|section| section.kind == section_type::CMX_WORKSPACE);
    let tiles = cmx.enumerate();
    sizes.extend(tiles.map(|(tile, section)| (format!("cmx{tile}_bytes"), section.size)));
    sizes
}

impl Tensor {
    /// For `info`; `None` where the element type has no name in the model.
    fn info(&self) -> Option<TensorInfo> {
        let element = self.element?;
        Some(TensorInfo {
            name: self.name.clone(),
            element,
            dtype: element.name().to_owned(),
            shape: self.shape.clone(),
            facts: Vec::new(),
        })
    }
}

/// A value of the compatibility string, `compiler=8.4;npu=4000;…`.
fn requirement<'a>(compatibility: &'a str, key: &str) -> Option<&'a str> {
    compatibility
        .split(';')
        .find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == key))
        .map(|(_, value)| value)
}

/// The tensors of one side of the network. A tensor has the first name that the model gives it; one without a name, or
/// with a name that came before, is called after its section.
fn tensors(
    document: &Document<'_>,
    tensors: &[TensorRef],
    nodes: &[ModelNode],
    flag: u64,
    kind: &str,
) -> Vec<Tensor> {
    let elf = document.elf();
    let tables = document
        .sections()
        .iter()
        .enumerate()
        .filter(|(_, section)| section.kind == section_type::SYMTAB && section.flags & flag != 0);
    let mut sizes = tables
        .flat_map(|(index, _)| elf.symbols(index).skip(1))
        .map(|symbol| symbol.size);
    let mut names = HashSet::new();
    // Neither sizes nor states are parameters or results of the model.
    let is_added = |tensor: &TensorRef| {
        let name = tensor.name.text().unwrap_or_default();
        [SHAPE, READ_VALUE, ASSIGN]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    let own = tensors.iter().filter(|tensor| !is_added(tensor)).count();
    let nodes = if nodes.len() == own { nodes } else { &[] };
    let mut nodes = nodes.iter();
    let tensor = |(index, tensor): (usize, &TensorRef)| {
        let node = if is_added(tensor) { None } else { nodes.next() };
        let model_name = node
            .filter(|node| node.tensor_name_count.get() != 0)
            .and_then(|node| node.tensor_names[0].text());
        let name = model_name
            .filter(|name| !name.is_empty())
            .or_else(|| tensor.name.text())
            .unwrap_or_default();
        let name = if name.is_empty() {
            format!("{kind}.{index}")
        } else {
            name.to_owned()
        };
        let name = if names.contains(&name) {
            format!("{kind}.{index}")
        } else {
            name
        };
        names.insert(name.clone());
        let code = tensor.data_type.get();
        // A model's booleans are bytes on the device.
        let is_bool = node.is_some_and(|node| node.element.get() == 2) && matches!(code, 8 | 12);
        let element = if is_bool {
            Some(ElementType::Bool)
        } else {
            element_type(code)
        };
        Tensor {
            name,
            element,
            dtype: element.map_or_else(|| data_type_name(code), ElementType::name),
            shape: tensor.shape().collect(),
            section: format!("io.{kind}.{index}"),
            bytes: sizes.next().or_else(|| tensor.bytes()).unwrap_or_default(),
            layout: (!tensor.is_row_major())
                .then(|| (tensor.strides().collect(), tensor.order.get())),
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
        let Some(list) = TaskKind::of_section(section.name) else {
            continue;
        };
        let kind = list.kind;
        let records = document
            .elf()
            .section_bytes(index)
            .chunks_exact(list.record_size());
        if let Some(count) = tasks.get_mut(kind as usize) {
            *count += records.len() as u64;
        }
        if matches!(kind, TaskKind::DmaDdr | TaskKind::DmaCmx) {
            if list.layout == Layout::Npu3720 {
                // DMA descriptor offset 32: bytes of a plane. Lists of indices and conversions came later.
                nonempty += records.filter(|record| word(record, 32) != 0).count() as u64;
                continue;
            }
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
        (
            "physical_barriers",
            physical.iter().filter(|used| **used).count() as u64,
        ),
        ("dma", dma_ddr + dma_cmx),
        ("dma_nonempty", nonempty),
        ("dma_gather", gather),
        ("dma_converting", converting),
        ("dpu_invariants", invariants),
        ("dpu_variants", variants),
        ("shave_ranges", ranges),
        ("shave_invocations", invocations),
        (
            "work_items",
            section_records::<WorkItem>(document, "program.workItem").len() as u64,
        ),
    ]
}

fn word(bytes: &[u8], offset: usize) -> u64 {
    bytes
        .get(offset..offset + 4)
        .and_then(|word| word.try_into().ok())
        .map_or(0, |word| u64::from(u32::from_le_bytes(word)))
}

/// The whole records at the start of a section.
pub(crate) fn section_records<
    'f,
    T: FromBytes + zerocopy::Immutable + zerocopy::KnownLayout + zerocopy::Unaligned,
>(
    document: &Document<'f>,
    name: &str,
) -> &'f [T] {
    let bytes = document.section(name).map_or(&[][..], |(_, bytes)| bytes);
    let whole = bytes.len() / size_of::<T>();
    <[T]>::ref_from_prefix_with_elems(bytes, whole).map_or(&[], |(records, _)| records)
}
