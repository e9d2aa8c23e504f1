//! From a plan to the program model: nodes are tasks in the order of the plan, tensors are buffers.
//!
//! The plan has the shapes of inputs, outputs and parameters only; those between follow from the operations. Precisions
//! too: of state, a tensor gets the largest that any node assigns to it, found by lowering until nothing grows.

mod operations;
mod tensors;
mod watched;

pub use operations::OPERATIONS;
pub(crate) use tensors::{declared_bits, precision_of};

use crate::fqir::plan;
use crate::fqir::plan::{Declared, Error, Graph, Node, Plan, at_node};
use crate::fqir::rules;
use crate::fqir::tensor::Tensor;
use crate::kernels::Health;
use crate::kernels::{Action, NodeKernel, Unwatched, total};
use crate::machine::Machine;
use chipless_model::{
    Builder, Finding, Limits, Location, MemoryId, MemoryKind, NewTask, Place, Port, Program,
    QueueId, Role, Rule, Scale, Storage, TaskId,
};
use indexmap::IndexMap;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tensors::is_real;

/// A program of one time step, and what people should know before they trust its numbers.
#[derive(Debug)]
pub struct Lowered<'p> {
    /// The program. A run of it is one step; its state buffers carry from step to step.
    pub program: Program<'p>,
    /// How the file was understood where it does not say, one sentence each.
    pub notes: Vec<String>,
    /// Findings that are no errors.
    pub findings: Vec<Finding>,
    /// Precisions of inputs and outputs in bits, in the order of the interface.
    pub(crate) bits: (Vec<u8>, Vec<u8>),
    /// Scales of inputs and outputs as logarithms, where the plan states them.
    pub(crate) quanta: (Vec<Option<f64>>, Vec<Option<f64>>),
}

/// What becomes of the integers of a program that [`lower_watched`] made, as far as it has run.
pub type Watching = Arc<Mutex<Health>>;

/// Lowers a plan for a machine.
///
/// # Errors
/// Operations that cannot be executed, by name; names that nothing defines; shapes and constants that do not fit.
pub fn lower<'p>(
    plan: &'p Plan<'p>,
    machine: &Machine,
    limits: &Limits,
) -> Result<Lowered<'p>, Error> {
    lowered(plan, machine, limits, None)
}

/// Lowers a plan to a program that counts, while it runs, what happens to its integers.
///
/// # Errors
/// As [`lower`].
pub fn lower_watched<'p>(
    plan: &'p Plan<'p>,
    machine: &Machine,
    limits: &Limits,
) -> Result<(Lowered<'p>, Watching), Error> {
    let watching = Watching::default();
    lowered(plan, machine, limits, Some(&watching)).map(|lowered| (lowered, watching))
}

fn lowered<'p>(
    plan: &'p Plan<'p>,
    machine: &Machine,
    limits: &Limits,
    watching: Option<&Watching>,
) -> Result<Lowered<'p>, Error> {
    let mut known = HashMap::new();
    loop {
        let mut trial = Lowering::new(machine, limits, known.clone(), true);
        trial.plan(plan)?;
        if trial.precisions == known {
            break;
        }
        known = trial.precisions;
    }
    let mut lowering = Lowering::new(machine, limits, known, false);
    lowering.watching = watching.cloned();
    let bits = lowering.plan(plan)?;
    lowering.finish(plan, bits)
}

/// Where tensors of each kind go.
struct Room {
    memory: MemoryId,
    left: u64,
}

pub(crate) struct Lowering<'p, 'l> {
    machine: &'l Machine,
    limits: &'l Limits,
    pub(crate) build: Builder<'p>,
    /// The one queue: nodes run one after the other.
    queue: QueueId,
    /// What each name holds now.
    names: HashMap<&'p str, Tensor>,
    /// Precisions from the last pass, and those of this one; those of stored elements with them.
    known: HashMap<&'p str, (u8, u8)>,
    precisions: HashMap<&'p str, (u8, u8)>,
    /// Whether this pass only finds precisions.
    trial: bool,
    /// What new tensors are for.
    role: Role,
    data: Vec<Room>,
    tables: Room,
    created: u64,
    does_not_fit: u64,
    /// Loops and strided subgraphs around the node at hand.
    pub(crate) nested: usize,
    /// Actions that one step executes, iterations counted.
    pub(crate) work: u64,
    /// Iterations of the loops around the node at hand.
    pub(crate) iterations: u64,
    /// What the graph at hand says of its tensors.
    declared: Option<&'p IndexMap<String, Declared>>,
    /// The graph at hand and the node in it, as reports name them.
    path: String,
    index: usize,
    watching: Option<Watching>,
}

impl<'p, 'l> Lowering<'p, 'l> {
    fn new(
        machine: &'l Machine,
        limits: &'l Limits,
        known: HashMap<&'p str, (u8, u8)>,
        trial: bool,
    ) -> Lowering<'p, 'l> {
        let mut build = Builder::new("spu", limits);
        let mut data: Vec<Room> = (0..machine.core.count.min(64))
            .map(|core| Room {
                memory: build.memory(
                    format!("core{core}.data"),
                    machine.data_bytes(),
                    MemoryKind::Scratchpad,
                ),
                left: machine.data_bytes(),
            })
            .collect();
        let tables = Room {
            memory: build.memory(
                "core0.tables",
                machine.table_bytes(),
                MemoryKind::Scratchpad,
            ),
            left: machine.table_bytes(),
        };
        data.push(Room {
            memory: build.memory("beyond", u64::MAX, MemoryKind::Dram),
            left: u64::MAX,
        });
        let precisions = known.clone();
        Lowering {
            machine,
            limits,
            queue: build.queue("core0", 1),
            build,
            names: HashMap::new(),
            known,
            precisions,
            trial,
            role: Role::Scratch,
            data,
            tables,
            created: 0,
            does_not_fit: 0,
            nested: 0,
            work: 0,
            iterations: 1,
            declared: None,
            path: "ARITH".to_owned(),
            index: 0,
            watching: None,
        }
    }

    fn plan(&mut self, plan: &'p Plan<'p>) -> Result<(Vec<u8>, Vec<u8>), Error> {
        let (step, init) = plan.step();
        if let Some(init) = init {
            self.init(init)?;
        }
        let state: HashMap<&'p str, Tensor> = self.names.clone();
        let mut inputs = Vec::new();
        self.role = Role::Input;
        for (index, declared) in step.inputs.iter().enumerate() {
            let pointer = || format!("{}/inputs/{index}", step.pointer);
            let bits = declared_bits(&declared.dtype).unwrap_or(16);
            let shape = self
                .shape(&declared.shape)
                .map_err(|(rule, m)| Box::new(rule.at(Place::file().in_part(pointer()), m)))?;
            let tensor = self
                .create(
                    &declared.name,
                    shape,
                    (bits, bits),
                    is_real(&declared.dtype),
                )
                .map_err(|m| error_at(&rules::LIMIT, pointer(), m))?;
            self.names.insert(&declared.name, tensor.clone());
            inputs.push(tensor.bits);
            let port = Port {
                name: declared.name.clone(),
                alias: None,
                buffer: tensor.buffer,
                element: tensor.element.model(),
                shape: tensor.shape.to_vec(),
                host_element: None,
                scale: declared.quanta.map(|quanta| Scale::of(quanta.exp2())),
            };
            self.build.program.interface.inputs.push(port);
        }
        self.role = Role::Scratch;
        self.graph_nodes(step, None)?;
        let mut outputs = Vec::new();
        for (index, declared) in step.outputs.iter().enumerate() {
            let pointer = format!("{}/outputs/{index}", step.pointer);
            let Some(tensor) = self.names.get(&*declared.name).cloned() else {
                return Err(error_at(
                    &rules::NAME,
                    pointer,
                    format!(
                        "expected a node that gives the output `{}`, found none",
                        declared.name
                    ),
                ));
            };
            if tensor.shape[..] != declared.shape[..] {
                let message = format!(
                    "expected `{}` of shape {:?}, found {:?}",
                    declared.name,
                    declared.shape,
                    &tensor.shape[..]
                );
                return Err(error_at(&rules::SHAPE, pointer, message));
            }
            let buffer = &mut self.build.program.buffers[tensor.buffer];
            if buffer.role == Role::Scratch {
                buffer.role = Role::Output;
            }
            outputs.push(declared_bits(&declared.dtype).unwrap_or(tensor.bits));
            let port = Port {
                name: declared.name.clone(),
                alias: None,
                buffer: tensor.buffer,
                element: tensor.element.model(),
                shape: tensor.shape.to_vec(),
                host_element: None,
                scale: declared.quanta.map(|quanta| Scale::of(quanta.exp2())),
            };
            self.build.program.interface.outputs.push(port);
        }
        // What each step sets anew is no state, whatever was there at the start.
        let anew = |name: &str| {
            let mut set = step.inputs.iter().chain(&step.parameters);
            set.any(|tensor| tensor.name == name)
        };
        let changed = state.iter().filter(|(name, tensor)| {
            let now = self.names.get(*name);
            !anew(name) && now.is_some_and(|now| now.buffer != tensor.buffer)
        });
        if let Some((name, tensor)) = changed.min_by_key(|(name, _)| **name) {
            let message = format!(
                "expected the state `{name}` to keep its shape {:?}, found a step that changes it",
                &tensor.shape[..]
            );
            return Err(error_at(&rules::SHAPE, step.pointer.clone(), message));
        }
        Ok((inputs, outputs))
    }

    /// Makes the state: the nodes are executed here and now.
    fn init(&mut self, init: &'p Graph) -> Result<(), Error> {
        self.role = Role::State;
        // A parameter of INIT is a start value: steps go on from what they made of it.
        self.parameters(init, Role::State)?;
        self.declared = Some(&init.tensors);
        let mut kernels = Vec::new();
        for node in &init.nodes {
            kernels.extend(self.node(init, node)?);
        }
        if self.trial {
            return Ok(());
        }
        let mut storage =
            Storage::new(&self.build.program.buffers, self.limits).map_err(|no_room| {
                error_at(&rules::LIMIT, init.pointer.clone(), no_room.to_string())
            })?;
        for action in &kernels {
            action
                .execute(&mut storage, &mut Unwatched)
                .map_err(|fault| error_at(&rules::CONSTANT, init.pointer.clone(), fault.message))?;
        }
        for (id, buffer) in self.build.program.buffers.iter_mut_enumerated() {
            if buffer.role == Role::State {
                buffer.initial = Cow::Owned(storage.bytes(id).to_vec());
            }
        }
        Ok(())
    }

    /// The nodes of a graph, as tasks or, inside another node, as actions.
    fn graph_nodes(
        &mut self,
        graph: &'p Graph,
        mut into: Option<&mut Vec<Action>>,
    ) -> Result<(), Error> {
        self.parameters(graph, Role::Constant)?;
        let outer = self.declared.replace(&graph.tensors);
        for (index, node) in graph.nodes.iter().enumerate() {
            self.index = index;
            if node.op_name.is_none() && into.is_none() {
                // A call: its nodes are tasks of their own.
                let callee = self.callee(graph, node)?;
                let moves = operations::call_inputs(self, node, callee)?;
                self.task(node, moves)?;
                self.inside("body", |lowering| lowering.graph_nodes(callee, None))?;
                let moves = operations::call_outputs(self, node, callee)?;
                self.task(node, moves)?;
                continue;
            }
            let actions = self.node(graph, node)?;
            match &mut into {
                Some(into) => into.extend(actions),
                None => self.task(node, actions)?,
            }
        }
        self.declared = outer;
        Ok(())
    }

    /// Lowers a graph that the node at hand calls.
    fn inside<T>(&mut self, key: &str, lower: impl FnOnce(&mut Self) -> T) -> T {
        let index = self.index;
        let inner = format!("{}/{index}/{key}", self.path);
        let outer = std::mem::replace(&mut self.path, inner);
        let lowered = lower(self);
        (self.path, self.index) = (outer, index);
        lowered
    }

    /// The actions of a graph inside a node, which knows it by a key.
    pub(crate) fn body(&mut self, graph: &'p Graph, key: &str) -> Result<Vec<Action>, Error> {
        let mut actions = Vec::new();
        self.inside(key, |lowering| {
            lowering.graph_nodes(graph, Some(&mut actions))
        })?;
        Ok(actions)
    }

    fn node(&mut self, graph: &'p Graph, node: &'p Node) -> Result<Vec<Action>, Error> {
        let actions = operations::build(self, graph, node)?;
        let actions = self.watched(node, actions);
        self.work = self
            .work
            .saturating_add(self.iterations.saturating_mul(actions.len().max(1) as u64));
        if self.work > self.limits.tasks {
            return Err(at_node(
                &rules::LIMIT,
                node,
                format!(
                    "one step has more operations than the limit tasks = {}",
                    self.limits.tasks
                ),
            ));
        }
        Ok(actions)
    }

    /// The graph that a node calls.
    pub(crate) fn callee(&self, graph: &'p Graph, node: &'p Node) -> Result<&'p Graph, Error> {
        let only = node
            .subgraph
            .as_ref()
            .or_else(|| node.subgraphs.get("body"));
        self.callee_named(graph, node, only)
    }

    /// The graph of a name that a node states.
    pub(crate) fn callee_named(
        &self,
        graph: &'p Graph,
        node: &'p Node,
        name: Option<&'p String>,
    ) -> Result<&'p Graph, Error> {
        let Some(name) = name else {
            return Err(at_node(
                &rules::OPERATION,
                node,
                "expected an operation (op_name) or a subgraph, found neither",
            ));
        };
        let Some(callee) = graph.subgraphs.get(name) else {
            return Err(at_node(
                &rules::NAME,
                node,
                format!("expected a subgraph `{name}` of the graph, found none"),
            ));
        };
        if callee.subgraphs.contains_key("INIT") {
            return Err(at_node(
                &rules::OPERATION,
                node,
                "subgraphs with a state of their own (INIT) are not supported",
            ));
        }
        if self.nested > 16 {
            return Err(at_node(
                &rules::LIMIT,
                node,
                "expected loops at most 16 deep, found deeper ones",
            ));
        }
        Ok(callee)
    }

    fn task(&mut self, node: &'p Node, actions: Vec<Action>) -> Result<(), Error> {
        if actions.is_empty() || self.trial {
            return Ok(());
        }
        let operation = node
            .op_name
            .clone()
            .map_or(Cow::Borrowed("call"), Cow::Owned);
        let fixed = self.machine.time(total(&actions));
        let details = self.details(node);
        let kernel = self.build.kernel(NodeKernel {
            operation,
            details,
            actions,
            health: self.watching.clone(),
        });
        let part = self.build.part(node.pointer.clone());
        let (offset, size) = node.at;
        let task = NewTask {
            fixed,
            location: Location { part, offset, size },
            label: (!node.name.is_empty()).then(|| node.name.clone().into()),
            ..NewTask::new(self.queue, kernel)
        };
        let added = self.build.task(task);
        added.map_err(|error| at_node(&rules::LIMIT, node, error.to_string()))?;
        Ok(())
    }

    /// Ports with their shapes: `x=%x.3[12] y=%p.5[12×36] → %x.13[36]`.
    fn details(&self, node: &Node) -> String {
        let shaped = |name: &str| match self.names.get(name) {
            Some(tensor) => format!(
                "{name}[{}]",
                tensor
                    .shape
                    .iter()
                    .map(u64::to_string)
                    .collect::<Vec<_>>()
                    .join("×")
            ),
            None => name.to_owned(),
        };
        let inputs: Vec<String> = node
            .inputs
            .iter()
            .map(|(port, name)| format!("{port}={}", shaped(name)))
            .collect();
        let outputs: Vec<String> = node.outputs.iter().map(|name| shaped(name)).collect();
        if outputs.is_empty() {
            inputs.join(" ")
        } else {
            format!("{} → {}", inputs.join(" "), outputs.join(" "))
        }
    }

    fn finish(
        mut self,
        plan: &'p Plan<'p>,
        bits: (Vec<u8>, Vec<u8>),
    ) -> Result<Lowered<'p>, Error> {
        self.build.program.name.clone_from(&plan.main.name);
        self.build.release(self.queue, TaskId::from_usize(0));
        let mut findings = Vec::new();
        if self.does_not_fit > 0 {
            let room = self.machine.data_bytes() * u64::from(self.machine.core.count);
            let message = format!(
                "expected tensors of at most {room} bytes for the data memories, found {} more",
                self.does_not_fit
            );
            findings.push(rules::MEMORY.at(Place::file(), message));
        } else {
            // Nothing lies there.
            self.build.program.memories.pop();
        }
        let notes = vec![
            "Times are estimates: no cycle data of this chip is public. A node takes issue_cycles and a cycle for each 64-bit word of its longest operand (`chipless machine spu` shows both); nodes run one after the other on one core.".to_owned(),
        ];
        let step = plan.step().0;
        let quanta = |tensors: &[plan::Tensor]| tensors.iter().map(|t| t.quanta).collect();
        let program = self.build.finish();
        Ok(Lowered {
            program: program
                .map_err(|e| Box::new(rules::LIMIT.at(Place::file(), e.to_string())))?,
            notes,
            findings,
            bits,
            quanta: (quanta(&step.inputs), quanta(&step.outputs)),
        })
    }
}

/// An error at a JSON pointer.
pub(crate) fn error_at(rule: &'static Rule, pointer: String, message: impl Into<String>) -> Error {
    Box::new(rule.at(Place::file().in_part(pointer), message))
}
