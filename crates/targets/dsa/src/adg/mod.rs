//! The architecture graph: which elements a fabric has, and which link leads from which to which.
//!
//! Four forms are read, told apart by content: the Chisel generator's JSON (`DSAGenNodes`, `DSAGenEdges`), the same with the older names
//! (`Switch_3`), the JSON of the 2020 tools (`nodes`, `links`), and the text of 2016 to 2020 (`.sbmodel`), whose links follow from its
//! dimensions. All become the same [`Adg`].
//!
//! The order of links matters: the position of a link among the outputs (inputs) of an element is the number of the hardware port, which
//! configuration words and vector ports go by.

mod builder;
pub mod edit;
pub mod json;
mod lint;
pub mod mesh;
mod older;
mod read;
pub mod rules;
mod text;
mod write;

pub use lint::lint;
pub use read::recognize;

use chipless_model::{Info, Node};
use index_vec::IndexVec;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

index_vec::define_index_type! {
    /// An [`Element`].
    pub struct ElementId = u32;
}
index_vec::define_index_type! {
    /// A [`Link`].
    pub struct LinkId = u32;
}

/// A fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct Adg {
    /// The form that it was written in.
    pub form: Form,
    /// Elements, in the order of their names as text (`Switch.10` before `Switch.2`): the position of an element is its number in the
    /// graph, as the real scheduler counts.
    pub elements: IndexVec<ElementId, Element>,
    /// Links, in the order of the file.
    pub links: IndexVec<LinkId, Link>,
    /// The system around the fabric, where the file tells it.
    pub system: Option<System>,
}

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `DSAGenNodes` with names like `Switch.3` (2021 and later).
    Generator,
    /// `DSAGenNodes` with names like `Switch_3` (2021).
    GeneratorUnderscore,
    /// `nodes` and `links` as arrays (2020 and 2021).
    Arrays,
    /// The text of 2016 to 2020 (`.sbmodel`).
    Text,
}

impl Form {
    /// As `info` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Generator => "DSAGenNodes",
            Form::GeneratorUnderscore => "DSAGenNodes (2021 names)",
            Form::Arrays => "nodes and links (2020)",
            Form::Text => "sbmodel (2016 to 2020)",
        }
    }
}

/// The system around the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct System {
    /// Cores, each with a fabric.
    pub cores: u32,
    /// Banks of the L2 cache.
    pub banks: u32,
    /// Width of the system bus, bytes.
    pub bus_width: u32,
}

/// A part of the fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// Its number among the elements of its kind.
    pub number: u32,
    /// What it is.
    pub kind: ElementKind,
    /// Width of its data path, bits; 0 for ports and memories.
    pub width: u32,
    /// The smallest part of the data path that is routed on its own, bits; 0 for ports and memories.
    pub granularity: u32,
    /// Row and column, where the file tells them.
    pub place: Option<(u32, u32)>,
    /// Links into it, in the order of their indices.
    pub inputs: Vec<LinkId>,
    /// Links out of it, in the order of their indices.
    pub outputs: Vec<LinkId>,
    /// The element as its file has it, with the fields that mean nothing here; empty where the file has another form.
    pub body: Arc<Map<String, Value>>,
}

/// What an element is.
#[derive(Clone, Debug, PartialEq)]
pub enum ElementKind {
    /// Executes instructions.
    ProcessingElement(ProcessingElement),
    /// Connects each of its outputs to one of its inputs.
    Switch(Switch),
    /// Where streams enter.
    InputPort(VectorPort),
    /// Where streams leave.
    OutputPort(VectorPort),
    /// Where streams begin and end.
    Memory(Memory),
}

/// What a processing element can do.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "the fields of the file, each a yes or no"
)]
pub struct ProcessingElement {
    /// Operations, in the order of their codes.
    pub operations: Vec<String>,
    /// Instructions that it holds; more than one means that they share it in time.
    pub instruction_slots: u32,
    /// Cycles that an operand can be delayed.
    pub delay_depth: u32,
    /// Whether instructions fire when their operands are there; otherwise at fixed cycles.
    pub dynamic: bool,
    /// Whether its output buffer is scheduled at fixed cycles.
    pub static_output_buffer: bool,
    /// Entries of the output buffer.
    pub output_buffer_depth: u32,
    /// Registers.
    pub registers: u32,
    /// Entries of the control table.
    pub control_entries: u32,
    /// Whether an operand can drive the control table.
    pub input_control: bool,
    /// Whether the result can drive the control table.
    pub output_control: bool,
}

impl ProcessingElement {
    /// Whether several instructions share it in time.
    pub fn is_shared(&self) -> bool {
        self.instruction_slots > 1
    }

    /// The code of an operation.
    pub fn code(&self, operation: &str) -> Option<usize> {
        self.operations.iter().position(|known| known == operation)
    }
}

/// What a switch has.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// Entries of the output buffer.
    pub output_buffer_depth: u32,
    /// Whether its output buffer is scheduled at fixed cycles.
    pub static_output_buffer: bool,
}

/// A port between streams and the fabric.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the fields of the file, each of which is there or not"
)]
pub struct VectorPort {
    /// How lanes meet links: 0 any lane on any link, 1 and 2 in order.
    pub implementation: u32,
    /// Whether its first link is for the state of the stream.
    pub stated: bool,
    /// Depth of its buffer, bytes.
    pub depth: u32,
    /// Of an input port: whether it can give what it holds again.
    pub repeated: bool,
    /// Of an input port: whether it can give one element to all lanes.
    pub broadcast: bool,
    /// Of an output port: whether it drops what is marked invalid.
    pub discard: bool,
}

impl VectorPort {
    /// Whether the lanes lie on the links in order.
    pub fn is_ordered(&self) -> bool {
        self.implementation == 2
    }
}

/// A memory engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Which one.
    pub kind: MemoryKind,
    /// Units that it reads in a cycle.
    pub read_width: u32,
    /// Units that it writes in a cycle.
    pub write_width: u32,
    /// Bits of a unit.
    pub unit_bits: u32,
    /// Bytes.
    pub capacity: u64,
    /// Whether it fills up what is missing at the end of a row.
    pub padding: bool,
    /// Whether streams can take their addresses, lengths or strides from other streams.
    pub indirect: bool,
}

/// Kinds of memory engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryKind {
    /// Direct memory access: L2 cache and DRAM.
    DirectMemoryAccess,
    /// Scratchpad.
    Scratchpad,
    /// Outputs that come back as inputs.
    Recurrence,
    /// Generated values.
    Generate,
    /// Registers of the host core.
    Register,
}

impl MemoryKind {
    /// Every kind.
    pub const ALL: [MemoryKind; 5] = [
        MemoryKind::DirectMemoryAccess,
        MemoryKind::Scratchpad,
        MemoryKind::Recurrence,
        MemoryKind::Generate,
        MemoryKind::Register,
    ];

    /// As files write it.
    pub const fn name(self) -> &'static str {
        match self {
            MemoryKind::DirectMemoryAccess => "DirectMemoryAccess",
            MemoryKind::Scratchpad => "ScratchpadMemory",
            MemoryKind::Recurrence => "RecurrenceEngine",
            MemoryKind::Generate => "GenerateEngine",
            MemoryKind::Register => "RegisterEngine",
        }
    }
}

/// A wire from one element to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it begins.
    pub source: ElementId,
    /// Where it ends.
    pub sink: ElementId,
    /// Values that share it in time; 1 for a link of its own.
    pub values: u32,
}

impl Link {
    /// Whether values share it in time.
    pub const fn is_shared(&self) -> bool {
        self.values > 1
    }
}

impl ElementKind {
    /// As files write it.
    pub const fn name(&self) -> &'static str {
        match self {
            ElementKind::ProcessingElement(_) => "ProcessingElement",
            ElementKind::Switch(_) => "Switch",
            ElementKind::InputPort(_) => "InputVectorPort",
            ElementKind::OutputPort(_) => "OutputVectorPort",
            ElementKind::Memory(memory) => memory.kind.name(),
        }
    }
}

impl Element {
    /// Parts of the data path that are routed on their own: 1 for ports and memories.
    pub fn slots(&self) -> u32 {
        self.width.checked_div(self.granularity).unwrap_or(1).max(1)
    }

    /// The processing element, if it is one.
    pub fn processing(&self) -> Option<&ProcessingElement> {
        match &self.kind {
            ElementKind::ProcessingElement(element) => Some(element),
            _ => None,
        }
    }

    /// The port, if it is one.
    pub fn port(&self) -> Option<&VectorPort> {
        match &self.kind {
            ElementKind::InputPort(port) | ElementKind::OutputPort(port) => Some(port),
            _ => None,
        }
    }

    /// Whether it is a switch.
    pub fn is_switch(&self) -> bool {
        matches!(self.kind, ElementKind::Switch(_))
    }

    /// The memory, if it is one.
    pub fn memory(&self) -> Option<&Memory> {
        match &self.kind {
            ElementKind::Memory(memory) => Some(memory),
            _ => None,
        }
    }

    /// Cycles that what arrives here can be made to wait: the delay buffers of a processing element, the buffer of a port.
    pub fn delay_depth(&self) -> u32 {
        match &self.kind {
            ElementKind::ProcessingElement(element) => element.delay_depth,
            ElementKind::InputPort(port) | ElementKind::OutputPort(port) => port.depth,
            ElementKind::Switch(_) | ElementKind::Memory(_) => 0,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kind.name(), self.number)
    }
}

impl Adg {
    /// The element of a kind, by its number.
    pub fn find(&self, kind: &str, number: u32) -> Option<ElementId> {
        self.elements
            .iter_enumerated()
            .find(|(_, e)| e.number == number && e.kind.name() == kind)
            .map(|(id, _)| id)
    }

    /// The element at an end of a link.
    pub fn source(&self, link: LinkId) -> &Element {
        &self.elements[self.links[link].source]
    }

    /// The element at the other end.
    pub fn sink(&self, link: LinkId) -> &Element {
        &self.elements[self.links[link].sink]
    }

    /// The smallest part of a link that is routed on its own, bits: the coarser of its two ends, as far as the link is that wide. Ports
    /// take what the other end has.
    pub fn granularity(&self, link: LinkId) -> u32 {
        match self
            .source(link)
            .granularity
            .max(self.sink(link).granularity)
        {
            0 => WORD,
            bits => bits.min(self.width(link)),
        }
    }

    /// Width of a link, bits: the narrower of its two ends.
    pub fn width(&self, link: LinkId) -> u32 {
        let widths = [self.source(link).width, self.sink(link).width];
        widths
            .into_iter()
            .filter(|bits| *bits > 0)
            .min()
            .unwrap_or(WORD)
    }

    /// Parts of a link that are routed on their own.
    pub fn slots(&self, link: LinkId) -> u32 {
        (self.width(link) / self.granularity(link)).max(1)
    }

    /// A link as people read it.
    pub fn describe(&self, link: LinkId) -> String {
        format!("{} → {}", self.source(link), self.sink(link))
    }

    /// How many elements of each kind: processing elements, switches, input ports, output ports, memories.
    pub fn counts(&self) -> [usize; 5] {
        let mut counts = [0; 5];
        for element in &self.elements {
            counts[match element.kind {
                ElementKind::ProcessingElement(_) => 0,
                ElementKind::Switch(_) => 1,
                ElementKind::InputPort(_) => 2,
                ElementKind::OutputPort(_) => 3,
                ElementKind::Memory(_) => 4,
            }] += 1;
        }
        counts
    }

    /// The elements and their links as a tree: the answer to `chipless info --raw`.
    pub fn raw(&self) -> Node {
        let leaf = |name: &str, value: Node| Node {
            name: name.to_owned(),
            ..value
        };
        let ends = |name: &str, ids: &[LinkId], other: &dyn Fn(LinkId) -> String| Node {
            name: name.to_owned(),
            children: ids
                .iter()
                .enumerate()
                .map(|(index, id)| leaf(&index.to_string(), other(*id).into()))
                .collect(),
            ..Node::default()
        };
        let element = |element: &Element| {
            let mut children = Vec::new();
            if element.width > 0 {
                children.push(leaf("width", u64::from(element.width).into()));
                children.push(leaf("granularity", u64::from(element.granularity).into()));
            }
            if let Some(unit) = element.processing() {
                children.push(leaf("operations", unit.operations.join(" ").into()));
                children.push(leaf(
                    "instruction_slots",
                    u64::from(unit.instruction_slots).into(),
                ));
                children.push(leaf("delay_depth", u64::from(unit.delay_depth).into()));
            }
            children.push(ends("inputs", &element.inputs, &|id| {
                self.source(id).to_string()
            }));
            children.push(ends("outputs", &element.outputs, &|id| {
                self.sink(id).to_string()
            }));
            Node {
                name: element.to_string(),
                children,
                ..Node::default()
            }
        };
        Node {
            name: "adg".to_owned(),
            children: self.elements.iter().map(element).collect(),
            ..Node::default()
        }
    }

    /// The answer to `chipless info`.
    pub fn info(&self) -> Info {
        let names = [
            "processing_elements",
            "switches",
            "input_ports",
            "output_ports",
            "memories",
        ];
        let mut counts: Vec<(String, u64)> = names
            .iter()
            .zip(self.counts())
            .map(|(name, n)| ((*name).to_owned(), n as u64))
            .collect();
        counts.push(("links".to_owned(), self.links.len() as u64));
        let elements = self.elements.iter().filter_map(Element::processing);
        let shared = elements.filter(|element| element.is_shared()).count();
        counts.push(("shared_elements".to_owned(), shared as u64));
        let shared = self.links.iter().filter(|link| link.is_shared()).count();
        counts.push(("shared_links".to_owned(), shared as u64));
        let mut operations: Vec<&str> = self
            .elements
            .iter()
            .filter_map(Element::processing)
            .flat_map(|pe| pe.operations.iter().map(String::as_str))
            .collect();
        operations.sort_unstable();
        operations.dedup();
        counts.push(("operations".to_owned(), operations.len() as u64));
        Info {
            target: "dsa",
            platform: "spatial accelerator".to_owned(),
            format_version: self.form.name().to_owned(),
            name: "architecture graph".to_owned(),
            counts,
            ..Info::default()
        }
    }
}

/// Fields of a memory that say that its streams take their addresses, lengths or strides from other streams.
const INDIRECT_STREAMS: [&str; 3] = [
    "IndirectIndexStream",
    "IndirectLength1DStream",
    "IndirectStride2DStream",
];

/// Bits of a link that neither end tells: the width of the machine's word.
const WORD: u32 = 64;
