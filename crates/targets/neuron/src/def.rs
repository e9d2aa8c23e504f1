//! `def.json`: queue sets, variables and the names of a subgraph's files.

use crate::graph::Engine;
use crate::json::{Error, MOST_FAULTS, Members, Mistyped, Name, Soft, Source, names};
use crate::rules::container as rules;
use chipless_model::Finding;
use indexmap::IndexMap;
use serde::Deserialize;
use std::collections::HashMap;

names! {
    /// What a queue set is for (`type`).
    QueueType {
        /// Inputs.
        In "in",
        /// Outputs.
        Out "out",
        /// Data between memories.
        Data "data",
        /// Rows of embedding tables.
        EmbeddingUpdate "embedding_update",
        /// Descriptors made at run time.
        Dynamic "dynamic",
    }
}

names! {
    /// Way through the chip's fabric (`fabric_path`).
    FabricPath {
        /// The usual one.
        Main "main",
        /// The other one.
        Alt "alt",
    }
}

names! {
    /// What a variable holds and where it lives (`type`).
    VariableType {
        /// The core's partitioned on-chip memory.
        StateBuffer "state-buffer",
        /// The host writes it.
        Input "input",
        /// The host reads it.
        Output "output",
        /// Data of a member, in HBM.
        File "file",
        /// Scratch of this program alone, in HBM.
        TmpBuf "tmp-buf",
        /// Scratch shared with other programs, in HBM.
        Virtual "virtual",
        /// Address of another variable, in HBM.
        Pointer "pointer",
        /// Table of variables that instructions address by index.
        DgeTable "dge-table",
    }
}

/// Who triggers a queue set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner<'a> {
    /// One of the five engines.
    Engine(Engine),
    /// Another name.
    Other(Name<'a>),
}

/// An object of `dma_queue`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueSet<'a> {
    /// The object's own text: unknown keys are in it.
    pub text: &'a str,
    /// What it is for; `None` where the file does not say.
    pub kind: Option<QueueType>,
    /// Hardware queues to reserve; 1 by default.
    pub num_queues: Option<u64>,
    /// The engine that triggers it.
    pub owner: Option<Name<'a>>,
    /// Whether it fills the state buffer once, at model start.
    pub pinned: Option<bool>,
    /// Rings that can be swapped for each other.
    pub queue_instances: Vec<Name<'a>>,
    /// Semaphores that its transfers signal.
    pub semaphore_set: Vec<u64>,
    /// The one semaphore that its transfers signal.
    pub semaphore: Option<u64>,
    /// Way through the fabric; main by default.
    pub fabric_path: Option<FabricPath>,
    /// Scratch for descriptors made at run time (not in the specification, in real files).
    pub dynamic_dma: Option<DynamicDma>,
}

impl<'a> QueueSet<'a> {
    /// Rings: `num_queues`, 1 by default.
    pub fn queues(&self) -> u64 {
        self.num_queues.unwrap_or(1)
    }

    /// The owner as an engine where it names one.
    pub fn owner(&self) -> Option<Owner<'a>> {
        let name = self.owner.as_ref()?;
        Some(match Engine::from_name(&name.to_ascii_lowercase()) {
            Engine::Unknown => Owner::Other(name.clone()),
            engine => Owner::Engine(engine),
        })
    }
}

/// State buffer bytes in which the `GpSimd` engine builds descriptors, in every partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct DynamicDma {
    /// First byte of the partition.
    #[serde(rename = "SB_scratch_partition_offset")]
    pub partition_offset: u64,
    /// Bytes of the partition.
    #[serde(rename = "SB_scratch_partition_size")]
    pub partition_size: u64,
}

/// An object of `var`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variable<'a> {
    /// The object's own text: unknown keys are in it.
    pub text: &'a str,
    /// What it holds; `None` where the file does not say.
    pub kind: Option<VariableType>,
    /// Its number.
    pub var_id: Option<u64>,
    /// Bytes; state buffers and tables may have none.
    pub size: Option<u64>,
    /// Alignment of the physical address; 0 for none.
    pub alignment: Option<u64>,
    /// Fabric path; main by default.
    pub fabric_path: Option<FabricPath>,
    /// Member with the data, in the subgraph's folder.
    pub file_name: Option<Name<'a>>,
    /// Offset in the shared scratchpad.
    pub backing_variable_off: Option<u64>,
    /// Number of the variable whose address this one holds.
    pub referenced_var_id: Option<u64>,
    /// Numbers of the variables in the table.
    pub list: Vec<u64>,
}

/// State buffer bytes that the runtime keeps for itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StateBufferReservation<'a> {
    /// What for.
    #[serde(rename = "type", borrow, default)]
    pub kind: Name<'a>,
    /// First partition.
    pub base_partition: u64,
    /// How many partitions.
    pub partitions: u64,
    /// First byte of each partition.
    pub offset: u64,
    /// Bytes of each partition.
    pub size: u64,
}

/// The members that belong to an engine, relative to the folder of `def.json`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineNames<'a> {
    /// Engine JSON file (`pe`).
    pub file: Option<Name<'a>>,
    /// Instructions (`pe_instr`).
    pub instructions: Option<Name<'a>>,
    /// Debug files of the compiler's back end (`pe_dbg`).
    pub debug: Vec<Name<'a>>,
    /// Debug files of the assembler, slot for slot (`pe_asm_dbg`).
    pub assembler_debug: Vec<Name<'a>>,
}

/// `def.json`.
#[derive(Clone, Debug, Default)]
pub struct Definition<'a> {
    /// The name that the file gives itself.
    pub name: Option<Name<'a>>,
    /// Version of the form.
    pub version: Option<Name<'a>>,
    /// Queue sets by name, in file order.
    pub queues: IndexMap<Name<'a>, QueueSet<'a>>,
    /// Variables by name, in file order.
    pub variables: IndexMap<Name<'a>, Variable<'a>>,
    /// Files of each engine, in the order of [`Engine::ALL`].
    pub engines: [EngineNames<'a>; Engine::ALL.len()],
    /// Debug files of the DMA queues (`dma_dbg`).
    pub dma_debug: Vec<Name<'a>>,
    /// Features that the compiler names; the header's bits are the authority.
    pub features: Vec<Name<'a>>,
    /// Semaphores, from 0, that the runtime keeps for itself.
    pub runtime_semaphores: u64,
    /// Events, from 0, that the runtime keeps for itself.
    pub runtime_events: u64,
    /// State buffer bytes that the runtime keeps for itself.
    pub reservations: Vec<StateBufferReservation<'a>>,
    /// Values of another type than the format has: what they say is missing above.
    pub faults: Vec<Finding>,
    ids: HashMap<u64, usize>,
    instances: HashMap<Name<'a>, usize>,
}

impl<'a> Definition<'a> {
    /// Reads a `def.json` of at most so many variables and queue sets.
    ///
    /// # Errors
    /// What [`Source::parse`] says; more declarations.
    pub fn read(source: &Source<'a>, declarations: u64) -> Result<Definition<'a>, Error> {
        let members: Members<'a> = source.parse()?;
        let mut definition = Definition::default();
        for (key, text) in members.0 {
            let at = || {
                let mut pointer = String::new();
                crate::json::push_key(&mut pointer, &key);
                pointer
            };
            match &*key {
                "name" => definition.name = source.parse_at(text, at)?,
                "version" => definition.version = source.parse_at(text, at)?,
                "dma_queue" => {
                    let keep = RawQueueSet::keep;
                    let faults = &mut definition.faults;
                    definition.queues = objects(source, text, &at(), declarations, keep, faults)?;
                }
                "var" => {
                    let keep = RawVariable::keep;
                    let faults = &mut definition.faults;
                    definition.variables =
                        objects(source, text, &at(), declarations, keep, faults)?;
                }
                "dma_dbg" => definition.dma_debug = source.parse_at(text, at)?,
                "neff_features" => definition.features = source.parse_at(text, at)?,
                "runtime_semaphore_count" => {
                    definition.runtime_semaphores = source.parse_at(text, at)?;
                }
                "runtime_event_count" => definition.runtime_events = source.parse_at(text, at)?,
                "runtime_statebuffer_reservation" => {
                    definition.reservations = source.parse_at(text, at)?;
                }
                key => {
                    let (engine, role) = key.split_once('_').unwrap_or((key, ""));
                    let Some(names) = definition
                        .engines
                        .get_mut(Engine::from_name(engine).index())
                    else {
                        continue;
                    };
                    match role {
                        "" => names.file = source.parse_at(text, at)?,
                        "instr" => names.instructions = source.parse_at(text, at)?,
                        "dbg" => names.debug = source.parse_at(text, at)?,
                        "asm_dbg" => names.assembler_debug = source.parse_at(text, at)?,
                        _ => {}
                    }
                }
            }
        }
        for (index, variable) in definition.variables.values().enumerate() {
            if let Some(id) = variable.var_id {
                definition.ids.entry(id).or_insert(index);
            }
        }
        for (index, queue) in definition.queues.values().enumerate() {
            for instance in &queue.queue_instances {
                definition
                    .instances
                    .entry(instance.clone())
                    .or_insert(index);
            }
        }
        Ok(definition)
    }

    /// Files of an engine.
    pub fn engine(&self, engine: Engine) -> Option<&EngineNames<'a>> {
        self.engines.get(engine.index())
    }

    /// Position, name and declaration of the variable with this number; the first one where several claim it.
    pub fn variable_by_id(&self, id: u64) -> Option<(usize, &Name<'a>, &Variable<'a>)> {
        let index = *self.ids.get(&id)?;
        self.variables
            .get_index(index)
            .map(|(name, variable)| (index, name, variable))
    }

    /// Position of the queue set of this name, or of the one that has an instance of this name.
    pub fn queue_set(&self, name: &str) -> Option<usize> {
        self.queues
            .get_index_of(name)
            .or_else(|| self.instances.get(name).copied())
    }

    /// The dynamic queue set of an engine: where it owns several, the one whose set has the semaphore.
    pub(crate) fn dynamic_queue_set(&self, engine: Engine, semaphore: u64) -> Option<usize> {
        let own = |set: &QueueSet<'_>| {
            set.kind == Some(QueueType::Dynamic) && set.owner() == Some(Owner::Engine(engine))
        };
        let mut sets = self.queues.values().enumerate().filter(|(_, set)| own(set));
        let with_semaphore = sets
            .clone()
            .find(|(_, set)| set.semaphore_set.contains(&semaphore));
        with_semaphore
            .or_else(|| sets.next())
            .map(|(position, _)| position)
    }
}

/// Reads each value of an object with its own text. Values of another type than the format has are noted in `faults`; a file of
/// nothing but such values is given up.
fn objects<'a, Raw: Deserialize<'a>, T>(
    source: &Source<'a>,
    text: &'a str,
    pointer: &str,
    most: u64,
    keep: fn(Raw, &'a str, &mut Mistyped) -> T,
    faults: &mut Vec<Finding>,
) -> Result<IndexMap<Name<'a>, T>, Error> {
    let members: Members<'a> = source.parse_at(text, || pointer.to_owned())?;
    let count = members.0.len() as u64;
    if count > most {
        let message = format!(
            "{count} declarations are more than the limit declarations allows; {most} were left for this object"
        );
        return Err(Box::new(
            rules::LIMIT.at(source.place(text, pointer, ""), message),
        ));
    }
    let mut objects = IndexMap::with_capacity(members.0.len());
    let mut wrong = Mistyped::new();
    for (name, text) in members.0 {
        let pointer = || {
            let mut pointer = pointer.to_owned();
            crate::json::push_key(&mut pointer, &name);
            pointer
        };
        let raw = match source.parse_at(text, pointer) {
            Ok(raw) => raw,
            Err(fault)
                if fault.rule.code == rules::JSON_TYPE.code && faults.len() < MOST_FAULTS =>
            {
                faults.push(*fault);
                continue;
            }
            Err(fault) => return Err(fault),
        };
        let kept = keep(raw, text, &mut wrong);
        for (key, message) in wrong.drain(..) {
            let place = source.place(text, &pointer(), &format!("/{key}"));
            let fault = rules::JSON_TYPE.at(place, message);
            if faults.len() >= MOST_FAULTS {
                return Err(Box::new(fault));
            }
            faults.push(fault);
        }
        objects.insert(name, kept);
    }
    Ok(objects)
}

#[derive(Deserialize)]
struct RawQueueSet<'a> {
    #[serde(rename = "type")]
    kind: Option<Soft<QueueType>>,
    num_queues: Option<Soft<u64>>,
    #[serde(borrow)]
    owner: Option<Soft<Name<'a>>>,
    pinned: Option<Soft<bool>>,
    #[serde(borrow)]
    queue_instances: Option<Soft<Vec<Name<'a>>>>,
    semaphore_set: Option<Soft<Vec<u64>>>,
    semaphore: Option<Soft<u64>>,
    fabric_path: Option<Soft<FabricPath>>,
    dynamic_dma: Option<Soft<DynamicDma>>,
}

impl<'a> RawQueueSet<'a> {
    fn keep(self, text: &'a str, wrong: &mut Mistyped) -> QueueSet<'a> {
        QueueSet {
            text,
            kind: Soft::keep(self.kind, "type", wrong),
            num_queues: Soft::keep(self.num_queues, "num_queues", wrong),
            owner: Soft::keep(self.owner, "owner", wrong),
            pinned: Soft::keep(self.pinned, "pinned", wrong),
            queue_instances: Soft::keep(self.queue_instances, "queue_instances", wrong)
                .unwrap_or_default(),
            semaphore_set: Soft::keep(self.semaphore_set, "semaphore_set", wrong)
                .unwrap_or_default(),
            semaphore: Soft::keep(self.semaphore, "semaphore", wrong),
            fabric_path: Soft::keep(self.fabric_path, "fabric_path", wrong),
            dynamic_dma: Soft::keep(self.dynamic_dma, "dynamic_dma", wrong),
        }
    }
}

#[derive(Deserialize)]
struct RawVariable<'a> {
    #[serde(rename = "type")]
    kind: Option<Soft<VariableType>>,
    var_id: Option<Soft<u64>>,
    size: Option<Soft<u64>>,
    alignment: Option<Soft<u64>>,
    fabric_path: Option<Soft<FabricPath>>,
    #[serde(borrow)]
    file_name: Option<Soft<Name<'a>>>,
    backing_variable_off: Option<Soft<u64>>,
    referenced_var_id: Option<Soft<u64>>,
    list: Option<Soft<Vec<u64>>>,
}

impl<'a> RawVariable<'a> {
    fn keep(self, text: &'a str, wrong: &mut Mistyped) -> Variable<'a> {
        Variable {
            text,
            kind: Soft::keep(self.kind, "type", wrong),
            var_id: Soft::keep(self.var_id, "var_id", wrong),
            size: Soft::keep(self.size, "size", wrong),
            alignment: Soft::keep(self.alignment, "alignment", wrong),
            fabric_path: Soft::keep(self.fabric_path, "fabric_path", wrong),
            file_name: Soft::keep(self.file_name, "file_name", wrong),
            backing_variable_off: Soft::keep(
                self.backing_variable_off,
                "backing_variable_off",
                wrong,
            ),
            referenced_var_id: Soft::keep(self.referenced_var_id, "referenced_var_id", wrong),
            list: Soft::keep(self.list, "list", wrong).unwrap_or_default(),
        }
    }
}
