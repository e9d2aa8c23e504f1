//! What a program takes of a device's memory, class by class and core by core, before anything is loaded.
//!
//! The classes are those of the runtime's own report. Figures for rings are an upper estimate: the runtime merges
//! transfers that the file lists apart.

use crate::def::VariableType;
use crate::engine::AccessPattern;
use crate::read::{Neff, Subgraph};
use chipless_model::{Node, Value};

/// Bytes of a hardware descriptor: length and control, metadata, address (driver, UDMA).
const DESCRIPTOR_BYTES: u64 = 16;
/// Bytes that one hardware descriptor moves, at most (driver, UDMA).
const DESCRIPTOR_REACH: u64 = 64 << 10;
/// Descriptors that each side of a transfer takes besides its rows: the semaphore writes of up to 16 queues.
const COMPLETION_DESCRIPTORS: u64 = 16;
/// Alignment of a ring's start and end (driver, UDMA).
const RING_ALIGNMENT: u64 = 256;
/// Page of the scratchpad where it is one contiguous area (runtime guide, device memory).
pub const CONTIGUOUS_PAGE: u64 = 64 << 20;
/// Page of the scratchpad otherwise, unless the user sets another (runtime guide, device memory).
pub const SCRATCHPAD_PAGE: u64 = 512 << 20;
/// Microcode and other overhead of the runtime on each physical core (runtime guide, device memory); not in the file.
pub const RUNTIME_BYTES: u64 = 96 << 20;

/// Memory of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Each core's own memory.
    pub cores: Vec<CoreMemory>,
    /// Inputs and outputs: shared by all cores by name.
    pub tensors: u64,
    /// Scratchpad that all cores of all loaded programs share, rounded up to pages.
    pub scratchpad: u64,
    /// The page that was assumed.
    pub page: u64,
}

/// Memory of one core, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreMemory {
    /// Name of the subgraph.
    pub name: String,
    /// Instructions.
    pub code: u64,
    /// Tables of the Activation and DVE engines.
    pub tables: u64,
    /// Variables of type `file` and `pointer`.
    pub constants: u64,
    /// Variables of type `tmp-buf`.
    pub private_scratch: u64,
    /// Variables of type `virtual` that cross a page of the scratchpad, which makes them private.
    pub unshared_scratch: u64,
    /// End of the highest variable that stays in the shared scratchpad.
    pub shared_scratch: u64,
    /// Rings of each queue set.
    pub rings: Vec<Rings>,
    /// Hardware rings of each queue set, in the order of `def.json`: ring `k` is on DMA engine `k`, instances of a set take turns on
    /// the set's own.
    pub hardware: Vec<(String, u64)>,
}

/// Rings of a queue set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rings {
    /// The queue set.
    pub name: String,
    /// How many rings.
    pub queues: u64,
    /// Hardware descriptors in all of them.
    pub descriptors: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// Rings of the DMA engines of a core: 16 engines of 16 rings each (vendor documentation, DMA overview).
pub const HARDWARE_RINGS: u64 = ENGINES * ENGINE_RINGS;
/// DMA engines of a core.
const ENGINES: u64 = 16;
/// Rings of a DMA engine.
const ENGINE_RINGS: u64 = 16;

impl CoreMemory {
    /// Hardware rings that all queue sets take together.
    pub fn hardware_rings(&self) -> u64 {
        self.hardware
            .iter()
            .fold(0, |sum, (_, rings)| sum.saturating_add(*rings))
    }

    /// Why the queue sets do not fit the hardware rings, if they do not.
    pub fn rings_missing(&self) -> Option<String> {
        let needed = self.hardware_rings();
        (needed > HARDWARE_RINGS).then(|| {
            format!(
                "{} queue sets need {needed} hardware rings, a core has {HARDWARE_RINGS}: {ENGINES} DMA engines of {ENGINE_RINGS}",
                self.hardware.len()
            )
        })
    }

    fn hardware_node(&self) -> Node {
        let sets = self
            .hardware
            .iter()
            .enumerate()
            .map(|(ring, (name, rings))| {
                let engines = match rings {
                    0 | 1 => "0".to_owned(),
                    rings => format!("0..{}", rings - 1),
                };
                let parts = vec![
                    Node {
                        name: "engines".to_owned(),
                        value: Some(Value::Text(engines)),
                        ..Node::default()
                    },
                    leaf("ring", ring as u64),
                    leaf("rings", *rings),
                ];
                Node {
                    name: name.clone(),
                    children: parts,
                    ..Node::default()
                }
            });
        let map = Node {
            name: "map".to_owned(),
            children: sets.collect(),
            ..Node::default()
        };
        Node {
            name: "hardware_rings".to_owned(),
            children: vec![
                leaf("available", HARDWARE_RINGS),
                leaf("needed", self.hardware_rings()),
                map,
            ],
            ..Node::default()
        }
    }

    /// Bytes that this core needs for itself.
    pub fn total(&self) -> u64 {
        let parts = [
            self.code,
            self.tables,
            self.constants,
            self.private_scratch,
            self.unshared_scratch,
        ];
        self.rings
            .iter()
            .map(|r| r.bytes)
            .chain(parts)
            .fold(0, u64::saturating_add)
    }
}

impl MemoryPlan {
    /// The plan of a program for a scratchpad page of this size.
    pub fn new(neff: &Neff<'_>, page: u64) -> MemoryPlan {
        let page = page.max(1);
        let cores: Vec<CoreMemory> = neff.subgraphs.iter().map(|s| core(s, page)).collect();
        let mut tensors = indexmap::IndexMap::new();
        for (name, variable) in neff.subgraphs.iter().flat_map(|s| &s.definition.variables) {
            if matches!(
                variable.kind,
                Some(VariableType::Input | VariableType::Output)
            ) {
                tensors
                    .entry(&**name)
                    .or_insert_with(|| placed(variable.size, variable.alignment));
            }
        }
        let end = cores.iter().map(|c| c.shared_scratch).max().unwrap_or(0);
        MemoryPlan {
            cores,
            tensors: tensors.into_values().fold(0, u64::saturating_add),
            scratchpad: end.div_ceil(page).saturating_mul(page),
            page,
        }
    }

    /// Bytes of device memory that the program needs, without what the runtime takes for itself.
    pub fn total(&self) -> u64 {
        self.cores.iter().map(CoreMemory::total).fold(
            self.tensors.saturating_add(self.scratchpad),
            u64::saturating_add,
        )
    }

    /// The plan as a tree.
    pub fn node(&self) -> Node {
        let mut children = vec![
            leaf("total", self.total()),
            leaf("tensors", self.tensors),
            leaf("scratchpad", self.scratchpad),
        ];
        children.push(leaf("scratchpad_page", self.page));
        children.push(leaf(
            "runtime_overhead",
            RUNTIME_BYTES.saturating_mul(self.cores.len() as u64),
        ));
        for core in &self.cores {
            let rings = core.rings.iter().map(|r| {
                let parts = vec![
                    leaf("queues", r.queues),
                    leaf("descriptors", r.descriptors),
                    leaf("bytes", r.bytes),
                ];
                Node {
                    name: r.name.clone(),
                    children: parts,
                    ..Node::default()
                }
            });
            let parts = vec![
                leaf("total", core.total()),
                leaf("code", core.code),
                leaf("tables", core.tables),
                leaf("constants", core.constants),
                leaf("private_scratch", core.private_scratch),
                leaf("unshared_scratch", core.unshared_scratch),
                leaf("shared_scratch_end", core.shared_scratch),
                Node {
                    name: "rings".to_owned(),
                    children: rings.collect(),
                    ..Node::default()
                },
                core.hardware_node(),
            ];
            children.push(Node {
                name: core.name.clone(),
                children: parts,
                ..Node::default()
            });
        }
        Node {
            name: "memory".to_owned(),
            children,
            ..Node::default()
        }
    }
}

fn leaf(name: &str, bytes: u64) -> Node {
    Node {
        name: name.to_owned(),
        value: Some(Value::Integer(i128::from(bytes))),
        ..Node::default()
    }
}

/// Bytes of a variable, rounded up to its alignment.
fn placed(size: Option<u64>, alignment: Option<u64>) -> u64 {
    let size = size.unwrap_or(0);
    size.checked_next_multiple_of(alignment.unwrap_or(1).max(1))
        .unwrap_or(size)
}

fn core(subgraph: &Subgraph<'_>, page: u64) -> CoreMemory {
    let mut memory = CoreMemory {
        name: subgraph.name.to_string(),
        ..CoreMemory::default()
    };
    for room in &subgraph.engines {
        memory.code += room.instructions.map_or(0, |m| m.bytes.len() as u64);
        memory.tables += room
            .tables
            .iter()
            .map(|t| t.member.bytes.len() as u64)
            .sum::<u64>();
    }
    for variable in subgraph.definition.variables.values() {
        let bytes = placed(variable.size, variable.alignment);
        let class = match variable.kind {
            Some(VariableType::File | VariableType::Pointer) => &mut memory.constants,
            Some(VariableType::TmpBuf) => &mut memory.private_scratch,
            Some(VariableType::Virtual) => {
                let offset = variable.backing_variable_off.unwrap_or(0);
                let size = variable.size.unwrap_or(0);
                if (offset % page)
                    .checked_add(size)
                    .is_some_and(|end| end <= page)
                {
                    memory.shared_scratch = memory.shared_scratch.max(offset.saturating_add(size));
                    continue;
                }
                &mut memory.unshared_scratch
            }
            _ => continue,
        };
        *class = class.saturating_add(bytes);
    }
    for ((name, queue), descriptors) in subgraph
        .definition
        .queues
        .iter()
        .zip(ring_descriptors(subgraph))
    {
        memory
            .hardware
            .push((name.to_string(), queue.queues().max(1)));
        if descriptors == 0 {
            continue;
        }
        let queues = queue.queues().max(1);
        let each = descriptors
            .div_ceil(queues)
            .saturating_mul(DESCRIPTOR_BYTES);
        let bytes = each
            .checked_next_multiple_of(RING_ALIGNMENT)
            .unwrap_or(each)
            .saturating_mul(queues);
        memory.rings.push(Rings {
            name: name.to_string(),
            queues,
            descriptors,
            bytes,
        });
    }
    memory
}

/// Hardware descriptors of each queue set, in the order of `def.json`: reads and writes, each with its completion.
pub fn ring_descriptors(subgraph: &Subgraph<'_>) -> Vec<u64> {
    let mut counts = vec![0u64; subgraph.definition.queues.len()];
    for entry in subgraph.engines.iter().flat_map(|e| &e.file.dma) {
        let set = entry
            .queue_name()
            .and_then(|name| subgraph.definition.queue_set(name));
        let Some(count) = set.and_then(|set| counts.get_mut(set)) else {
            continue;
        };
        for descriptor in &entry.descriptors {
            let sides = descriptor.sources().chain([&descriptor.to]);
            let each =
                sides.map(|side| hardware_descriptors(side).saturating_add(COMPLETION_DESCRIPTORS));
            *count = each.fold(*count, u64::saturating_add);
        }
    }
    counts
}

/// Hardware descriptors of one side: one for each row of up to 64 KiB, one for each byte where the innermost step skips.
pub(crate) fn hardware_descriptors(side: &AccessPattern<'_>) -> u64 {
    let row = side.sizes.first().copied().unwrap_or(0);
    let pieces = if side.steps.first().is_none_or(|step| *step == 1) {
        row.div_ceil(DESCRIPTOR_REACH)
    } else {
        row
    };
    side.rows().unwrap_or(u64::MAX).saturating_mul(pieces)
}
