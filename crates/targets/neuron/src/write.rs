//! From a program in document types to a file.
//!
//! A [`Draft`] has the parts that matter: tensors, variables, queue sets, descriptors, instructions, constants. The
//! rest of the file follows from them: the graph, the kelf file, the names, the feature bits.

use crate::def::{QueueSet, Variable};
use crate::engine::{AccessPattern, Descriptor, DmaEntry, Operation};
use crate::features::{self, Features};
use crate::graph::{Architecture, Engine, Tensor};
use crate::header::{Header, md5_of};
use crate::json::{Error, Name};
use crate::pack;
use crate::stream::{Instruction, Slot};
use crate::tables::DraftFunctions;
use chipless_model::Limits;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

/// A program to be written.
#[derive(Clone, Debug, Default)]
pub struct Draft<'a> {
    /// The program's name.
    pub name: String,
    /// The hardware that it is for.
    pub architecture: Architecture,
    /// Inputs; their `pointer` and `times` do not matter.
    pub inputs: Vec<Tensor<'a>>,
    /// Outputs.
    pub outputs: Vec<Tensor<'a>>,
    /// Subgraphs, one for each physical core of the logical core.
    pub subgraphs: Vec<DraftSubgraph<'a>>,
    /// Members as they are: they take the place of those that follow from the rest, and with a `neff.json` among them nothing else is
    /// written. One that is called [`HEADER_FILE`](pack::HEADER_FILE) holds the header's fields.
    pub members: IndexMap<String, Vec<u8>>,
}

/// A subgraph to be written.
#[derive(Clone, Debug, Default)]
pub struct DraftSubgraph<'a> {
    /// Its name, which is also its folder.
    pub name: String,
    /// Queue sets.
    pub queues: IndexMap<Name<'a>, QueueSet<'a>>,
    /// Variables.
    pub variables: IndexMap<Name<'a>, Variable<'a>>,
    /// Constants: file names and contents.
    pub files: Vec<(String, Vec<u8>)>,
    /// Engines, in the order of [`Engine::ALL`].
    pub engines: [DraftEngine<'a>; Engine::ALL.len()],
}

/// An engine's work.
#[derive(Clone, Debug, Default)]
pub struct DraftEngine<'a> {
    /// Descriptors in list order.
    pub dma: Vec<DmaEntry<'a>>,
    /// Instructions.
    pub slots: Vec<Slot>,
    /// The sets of functions that the scalar engine loads.
    pub functions: Vec<DraftFunctions>,
}

impl Draft<'_> {
    /// The file: the same bytes for the same program.
    ///
    /// # Errors
    /// Names that cannot be paths, and a program or tool name longer than the header's fields.
    pub fn write(&self, limits: &Limits) -> Result<Vec<u8>, Error> {
        if self.members.contains_key("neff.json") {
            let header = self.members.get(pack::HEADER_FILE);
            let header = header.map(|bytes| String::from_utf8_lossy(bytes));
            let members = self.members.iter();
            return pack::pack(
                members
                    .filter(|(path, _)| *path != pack::HEADER_FILE)
                    .map(|(path, bytes)| (path.as_str(), bytes.as_slice())),
                header.as_deref(),
                limits,
            );
        }
        let mut members: Vec<(String, Vec<u8>)> = vec![
            ("info.json".to_owned(), text(&self.info())),
            ("kelf-0.json".to_owned(), text(&self.kelf())),
            ("neff.json".to_owned(), text(&self.graph())),
        ];
        for subgraph in &self.subgraphs {
            let path = |file: &str| format!("{}/{file}", subgraph.name);
            members.push((path("def.json"), text(&subgraph.definition())));
            for (engine, work) in Engine::ALL.iter().zip(&subgraph.engines) {
                let file = engine.file_name();
                members.push((
                    path(&format!("{file}.json")),
                    work.json(*engine).to_string().into_bytes(),
                ));
                members.push((
                    path(&format!("{file}.bin")),
                    work.slots
                        .iter()
                        .flat_map(|slot| slot.bytes().to_vec())
                        .collect(),
                ));
            }
            let tables = subgraph.engines.iter();
            let tables = tables.flat_map(|work| DraftFunctions::files(&work.functions));
            members.extend(tables.map(|(name, bytes)| (path(&name), bytes)));
            members.extend(
                subgraph
                    .files
                    .iter()
                    .map(|(name, bytes)| (path(name), bytes.clone())),
            );
        }
        for (path, bytes) in &self.members {
            members.retain(|(known, _)| known != path);
            members.push((path.clone(), bytes.clone()));
        }
        let mut header = Header {
            lnc_size: self.subgraphs.len().max(1) as u32,
            feature_bits: self.features(),
            ..Header::default()
        };
        for (field, byte) in header.name.iter_mut().zip(self.name.bytes()) {
            *field = byte;
        }
        header.uuid = identity(&members);
        pack::write(
            members
                .iter()
                .map(|(path, bytes)| (path.as_str(), bytes.as_slice())),
            header,
            false,
            limits,
        )
    }

    fn info(&self) -> Value {
        let mut nodes = vec![0; 64];
        nodes[0] = 1;
        json!({
            "tool_version": concat!("chipless ", env!("CARGO_PKG_VERSION")),
            "kelp_version": "Dynamic",
            "name": self.name,
            "num_tpb": 1,
            "num_tpb_requested": 1,
            "num_tpb_per_node": nodes,
        })
    }

    fn kelf(&self) -> Value {
        let graphs = self
            .subgraphs
            .iter()
            .map(|s| json!({"definition": format!("{}/def.json", s.name), "name": s.name}));
        json!({"graphs": graphs.collect::<Vec<_>>(), "version": "0.5", "target": self.architecture.name()})
    }

    /// Inputs are nodes of their own, outputs those of the one program node, once for each subgraph that declares them.
    fn graph(&self) -> Value {
        let times = |tensor: &Tensor<'_>| {
            self.subgraphs
                .iter()
                .filter(|s| s.variables.contains_key(&*tensor.name))
                .count()
                .max(1)
        };
        let outputs: Vec<&Tensor<'_>> = self
            .outputs
            .iter()
            .flat_map(|t| std::iter::repeat_n(t, times(t)))
            .collect();
        let count = self.inputs.len();
        let mut nodes: Vec<Value> = self
            .inputs
            .iter()
            .map(|t| json!({"op": "null", "name": &*t.name, "inputs": [], "output_names": [&*t.name], "is_param": "0"}))
            .collect();
        nodes.push(json!({
            "op": "tvm_op",
            "name": "sg_coreV10",
            "attrs": {
                "func_name": "__kelf",
                "flatten_data": "0",
                "num_inputs": count.to_string(),
                "kelf": "kelf-0.json",
                "num_outputs": outputs.len().to_string(),
            },
            "inputs": (0..count).map(|n| json!([n, 0, 0])).collect::<Vec<_>>(),
            "output_names": outputs.iter().map(|t| &*t.name).collect::<Vec<_>>(),
        }));
        let all = || self.inputs.iter().chain(outputs.iter().copied());
        let mut first: Vec<usize> = (0..=count).collect();
        first.push(count + outputs.len());
        json!({
            "nodes": nodes,
            "arg_nodes": (0..count).collect::<Vec<_>>(),
            "heads": (0..outputs.len()).map(|n| json!([count, n, 0])).collect::<Vec<_>>(),
            "node_row_ptr": first,
            "attrs": {
                "shape": ["list_shape", all().map(|t| &t.shape).collect::<Vec<_>>()],
                "storage_id": ["list_int", (0..count + outputs.len()).collect::<Vec<_>>()],
                "dltype": ["list_str", all().map(|t| &*t.dtype).collect::<Vec<_>>()],
            },
        })
    }

    /// The bits of what the program uses.
    fn features(&self) -> Features {
        let queues = || self.subgraphs.iter().flat_map(|s| s.queues.values());
        let engines = || self.subgraphs.iter().flat_map(|s| &s.engines);
        let entries = || engines().flat_map(|e| &e.dma);
        let deep =
            |d: &Descriptor<'_>| d.to.sizes.len() > 2 || d.sources().any(|s| s.sizes.len() > 2);
        let dynamic = |cast: bool| {
            engines()
                .flat_map(|e| &e.slots)
                .any(|slot| match slot.decode() {
                    Instruction::Dma(dma) => !cast || dma.casts(),
                    _ => false,
                })
        };
        let used = [
            (
                features::QUEUE_SET_INSTANCES,
                queues().any(|q| !q.queue_instances.is_empty()),
            ),
            (
                features::HAS_FUNCTIONS,
                entries().any(|d| d.function_start.is_some()),
            ),
            (
                features::HIGHER_DIMENSIONS,
                entries().flat_map(|d| &d.descriptors).any(deep),
            ),
            (features::LOGICAL_CORES, self.subgraphs.len() > 1),
            (
                features::REMOTE_SEMAPHORES,
                entries().any(|d| !d.remote_semaphores.is_empty()),
            ),
            (features::DYNAMIC_DESCRIPTORS, dynamic(false)),
            (features::HARDWARE_DESCRIPTORS, dynamic(false)),
            (features::DYNAMIC_CAST, dynamic(true)),
        ];
        Features(
            used.into_iter()
                .filter(|(_, used)| *used)
                .fold(0, |mask, (bit, _)| mask | bit),
        )
    }
}

impl DraftSubgraph<'_> {
    fn definition(&self) -> Value {
        let mut object = Map::new();
        for engine in Engine::ALL {
            object.insert(
                engine.name().to_owned(),
                format!("{}.json", engine.file_name()).into(),
            );
            object.insert(
                format!("{}_instr", engine.name()),
                format!("{}.bin", engine.file_name()).into(),
            );
        }
        let queues = self
            .queues
            .iter()
            .map(|(name, queue)| (name.to_string(), queue_json(queue)));
        let variables = self
            .variables
            .iter()
            .map(|(name, variable)| (name.to_string(), variable_json(variable)));
        object.insert("dma_queue".to_owned(), Value::Object(queues.collect()));
        object.insert("var".to_owned(), Value::Object(variables.collect()));
        object.insert("name".to_owned(), "definition".into());
        object.insert("version".to_owned(), "0.6".into());
        Value::Object(object)
    }
}

impl DraftEngine<'_> {
    fn json(&self, engine: Engine) -> Value {
        let file = engine.file_name();
        let mut value = json!({"dma": self.dma.iter().map(entry_json).collect::<Vec<_>>(), "instr": format!("{file}.bin"), "name": format!("{file}.json")});
        if !self.functions.is_empty() {
            let names: Vec<&str> = self.functions.iter().map(|set| &*set.name).collect();
            value["act_info"] = "act_info.json".into();
            value["activation_function_sets"] = json!(names);
        }
        value
    }
}

fn text(value: &Value) -> Vec<u8> {
    // The alternate form of a value's text is the indented one.
    format!("{value:#}").into_bytes()
}

/// An identity that depends on the members alone (RFC 9562, version 8).
fn identity(members: &[(String, Vec<u8>)]) -> [u8; 16] {
    let mut all = Vec::new();
    for (path, bytes) in members {
        all.extend_from_slice(path.as_bytes());
        all.extend_from_slice(&md5_of(bytes));
    }
    let mut uuid = md5_of(&all);
    uuid[6] = uuid[6] & 0x0f | 0x80;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// An object of those fields that have a value.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    Value::Object(
        fields
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)))
            .collect(),
    )
}

fn some_list<T: Clone + Into<Value>>(list: &[T]) -> Option<Value> {
    (!list.is_empty()).then(|| Value::Array(list.iter().cloned().map(Into::into).collect()))
}

fn name(name: Option<&Name<'_>>) -> Option<Value> {
    name.map(|n| Value::from(&**n))
}

fn queue_json(queue: &QueueSet<'_>) -> Value {
    let instances: Vec<String> = queue
        .queue_instances
        .iter()
        .map(ToString::to_string)
        .collect();
    object([
        ("type", queue.kind.map(|k| k.name().into())),
        ("num_queues", queue.num_queues.map(Value::from)),
        ("owner", name(queue.owner.as_ref())),
        ("pinned", queue.pinned.map(Value::from)),
        ("queue_instances", some_list(&instances)),
        ("semaphore_set", some_list(&queue.semaphore_set)),
        ("semaphore", queue.semaphore.map(Value::from)),
        ("fabric_path", queue.fabric_path.map(|f| f.name().into())),
        (
            "dynamic_dma",
            queue
                .dynamic_dma
                .map(|d| json!({"SB_scratch_partition_offset": d.partition_offset, "SB_scratch_partition_size": d.partition_size})),
        ),
    ])
}

fn variable_json(variable: &Variable<'_>) -> Value {
    object([
        ("type", variable.kind.map(|k| k.name().into())),
        ("var_id", variable.var_id.map(Value::from)),
        ("size", variable.size.map(Value::from)),
        ("alignment", variable.alignment.map(Value::from)),
        ("fabric_path", variable.fabric_path.map(|f| f.name().into())),
        ("file_name", name(variable.file_name.as_ref())),
        (
            "backing_variable_off",
            variable.backing_variable_off.map(Value::from),
        ),
        (
            "referenced_var_id",
            variable.referenced_var_id.map(Value::from),
        ),
        ("list", some_list(&variable.list)),
    ])
}

fn entry_json(entry: &DmaEntry<'_>) -> Value {
    object([
        ("id", entry.id.map(Value::from)),
        ("queue", name(entry.queue.as_ref())),
        ("instance_name", name(entry.instance_name.as_ref())),
        ("function_start", name(entry.function_start.as_ref())),
        (
            "section_start_desc",
            entry.section_start_desc.then_some(Value::Bool(true)),
        ),
        ("event", entry.event.map(Value::from)),
        ("semaphore", entry.semaphore.map(Value::from)),
        ("remote_semaphores", some_list(&entry.remote_semaphores)),
        (
            "desc",
            Some(Value::Array(
                entry.descriptors.iter().map(descriptor_json).collect(),
            )),
        ),
    ])
}

fn descriptor_json(descriptor: &Descriptor<'_>) -> Value {
    let mut value = object([
        (
            "op",
            (descriptor.operation != Operation::Copy).then(|| descriptor.operation.name().into()),
        ),
        (
            "num_tiling_dimensions",
            descriptor.num_tiling_dimensions.map(Value::from),
        ),
        (
            "scale_dtype",
            descriptor.scale_dtype.map(|d| d.name().into()),
        ),
        ("scale", descriptor.scale.map(Value::from)),
        (
            "constant_dtype",
            descriptor.constant_dtype.map(|d| d.name().into()),
        ),
        ("constant", descriptor.constant.map(number)),
        (
            "transpose_shape",
            descriptor.transpose_shape.as_deref().and_then(some_list),
        ),
        (
            "transpose_element_size",
            descriptor.transpose_element_size.map(Value::from),
        ),
    ]);
    if let Value::Object(fields) = &mut value {
        side_json(&descriptor.to, "to", fields);
        if let Some(from) = &descriptor.from {
            side_json(from, "from", fields);
        }
        let sources = descriptor.from_arr.iter().map(|source| {
            let mut fields = Map::new();
            side_json(source, "from", &mut fields);
            Value::Object(fields)
        });
        let sources: Vec<Value> = sources.collect();
        if !sources.is_empty() {
            fields.insert("from_arr".to_owned(), sources.into());
        }
    }
    value
}

/// Whole numbers without a fraction, as constants of integer types are written.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        Value::from(value as i64)
    } else {
        Value::from(value)
    }
}

fn side_json(side: &AccessPattern<'_>, which: &str, fields: &mut Map<String, Value>) {
    let values = [
        ("", name(side.variable.as_ref())),
        ("_off", side.offset.map(Value::from)),
        ("_steps", Some(Value::from(side.steps.to_vec()))),
        ("_sizes", Some(Value::from(side.sizes.to_vec()))),
        ("_dtype", side.dtype.map(|d| d.name().into())),
    ];
    fields.extend(
        values
            .into_iter()
            .filter_map(|(field, value)| Some((format!("{which}{field}"), value?))),
    );
    if let Some(scale) = side.scale {
        fields.insert("scale".to_owned(), scale.into());
    }
}
