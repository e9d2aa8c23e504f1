//! Step after step of a lowered plan: the engine's [session](chipless_sim::Session) with the numbers of a contract.

use super::tensor::{Element, load, store};
use crate::iospec::{Behind, Document, Vector};
use crate::lower::Lowered;
use chipless_model::{BufferId, Direction, Fault, Limits, NoRoom, Port, Role, Storage};
use chipless_sim::{Order, Part, Stop, Verified};
use std::collections::{BTreeSet, HashMap};

/// A program with its state.
///
/// Values of a vector are those of the model, without padding. Inputs that are never set are zero.
#[derive(Debug)]
pub struct Runner<'p> {
    lowered: &'p Lowered<'p>,
    session: chipless_sim::Session<'p, 'p>,
    /// Ports of the document's inputs and outputs; the program's own order without a document.
    inputs: Vec<usize>,
    outputs: Vec<Option<usize>>,
    /// What each sequence runs; empty where every sequence runs all.
    parts: Vec<Part>,
}

impl<'p> Runner<'p> {
    /// At the start: state as the plan initialises it.
    ///
    /// # Errors
    /// Buffers beyond the limit, or beyond what the system gives.
    pub fn new(lowered: &'p Lowered<'p>, limits: &Limits) -> Result<Runner<'p>, NoRoom> {
        let storage = Storage::new(&lowered.program.buffers, limits)?;
        let interface = &lowered.program.interface;
        let (inputs, outputs) = (
            (0..interface.inputs.len()).collect(),
            (0..interface.outputs.len()).map(Some).collect(),
        );
        Ok(Runner {
            lowered,
            session: chipless_sim::Session::new(&Verified::assume(&lowered.program), storage),
            inputs,
            outputs,
            parts: Vec::new(),
        })
    }

    /// Time steps are in this order from now on.
    pub fn set_order(&mut self, order: Order) {
        self.session.set_order(order);
    }

    /// The program.
    pub fn lowered(&self) -> &'p Lowered<'p> {
        self.lowered
    }

    /// Numbers inputs and outputs as a document does, and finds which tasks each of its sequences runs.
    ///
    /// # Errors
    /// A vector that the program has not, or has with another length or precision; a node that needs inputs of two
    /// sequences.
    pub(crate) fn match_document(&mut self, document: &Document) -> Result<(), String> {
        let interface = &self.lowered.program.interface;
        let find = |ports: &[Port], bits: &[u8], vector: &Vector| {
            let index = vector.among(ports)?;
            let (elements, precision) = (ports[index].shape.iter().product::<u64>(), bits[index]);
            if u64::try_from(vector.length) != Ok(elements) {
                return Err(format!(
                    "expected {elements} elements of `{}` as the program has them, found {}",
                    vector.varname, vector.length
                ));
            }
            if vector.precision != i64::from(precision) {
                return Err(format!(
                    "expected {precision} bits of `{}` as the program has them, found {}",
                    vector.varname, vector.precision
                ));
            }
            Ok(index)
        };
        let (input_bits, output_bits) = &self.lowered.bits;
        self.inputs = document
            .inputs
            .iter()
            .map(|v| find(&interface.inputs, input_bits, v))
            .collect::<Result<_, _>>()?;
        // An output in no sequence is never read.
        let used = |v: &&Vector| {
            document
                .sequences
                .iter()
                .any(|s| s.outputs.iter().any(|m| m.key == v.key))
        };
        let outputs = document.outputs.iter().map(|v| {
            if used(&v) {
                find(&interface.outputs, output_bits, v).map(Some)
            } else {
                Ok(None)
            }
        });
        self.outputs = outputs.collect::<Result<_, _>>()?;
        if let Some(lacking) = (0..interface.inputs.len()).find(|port| !self.inputs.contains(port))
        {
            return Err(format!(
                "expected the program's input `{}` in the document, found none",
                interface.inputs[lacking].name
            ));
        }
        self.divide(document)
    }

    /// With several sequences that have outputs, each runs the nodes that its own inputs and latched ones decide.
    fn divide(&mut self, document: &Document) -> Result<(), String> {
        self.parts.clear();
        let with_outputs = document
            .sequences
            .iter()
            .filter(|s| !s.is_latched())
            .count();
        if with_outputs < 2 {
            return Ok(());
        }
        let program = &self.lowered.program;
        // Unlatched inputs that each buffer depends on.
        let mut depends: HashMap<BufferId, BTreeSet<usize>> = HashMap::new();
        for (input, port) in self.inputs.iter().enumerate() {
            let own = if document.is_latched(&document.inputs[input].key) {
                BTreeSet::new()
            } else {
                [input].into()
            };
            depends.insert(program.interface.inputs[*port].buffer, own);
        }
        let index: HashMap<&str, usize> = document
            .inputs
            .iter()
            .enumerate()
            .map(|(i, v)| (&*v.key, i))
            .collect();
        let sequences: Vec<BTreeSet<usize>> = document
            .sequences
            .iter()
            .map(|s| {
                s.inputs
                    .iter()
                    .filter_map(|m| index.get(&*m.key).copied())
                    .collect()
            })
            .collect();
        let first = document
            .sequences
            .iter()
            .position(|s| !s.is_latched())
            .unwrap_or_default();
        let mut parts = vec![Vec::new(); sequences.len()];
        for task in program.tasks.indices() {
            let (mut needs, mut writes) = (BTreeSet::new(), Vec::new());
            program
                .kernel(task)
                .accesses(&mut |access| match access.direction {
                    Direction::Read => {
                        needs.extend(depends.get(&access.buffer).into_iter().flatten().copied());
                    }
                    Direction::Write => writes.push(access.buffer),
                });
            let keeps_state = writes
                .iter()
                .any(|b| program.buffers[*b].role == Role::State);
            for buffer in writes {
                // State carries to later steps of any sequence.
                let of_state = program.buffers[buffer].role == Role::State;
                depends.insert(
                    buffer,
                    if of_state {
                        BTreeSet::new()
                    } else {
                        needs.clone()
                    },
                );
            }
            let takers: Vec<usize> = (0..sequences.len())
                .filter(|s| !document.sequences[*s].is_latched() && needs.is_subset(&sequences[*s]))
                .filter(|s| !(needs.is_empty() && keeps_state) || *s == first)
                .collect();
            if takers.is_empty() {
                return Err(format!(
                    "expected each node to depend on the inputs of one sequence, found {}, which needs several",
                    program.task_name(task)
                ));
            }
            for sequence in takers {
                parts[sequence].push(task);
            }
        }
        let parts = parts.into_iter().map(|tasks| Part::new(program, tasks));
        self.parts = parts.collect();
        Ok(())
    }

    fn input(&self, input: usize) -> Option<&'p Port> {
        self.lowered
            .program
            .interface
            .inputs
            .get(*self.inputs.get(input)?)
    }

    /// Gives an input its values; elements beyond them become zero.
    pub fn set_input(&mut self, input: usize, values: &[i64]) {
        let Some(port) = self.input(input) else {
            return;
        };
        let element = element_of(port);
        let bytes = self.session.storage_mut().bytes_mut(port.buffer);
        let count = values.len().min(bytes.len() / element.bytes() as usize);
        store(bytes, element, 0, &values[..count]);
        bytes[count * element.bytes() as usize..].fill(0);
    }

    /// Gives an input bytes of its element type.
    pub fn set_input_bytes(&mut self, input: usize, bytes: &[u8]) {
        let Some(port) = self.input(input) else {
            return;
        };
        let buffer = self.session.storage_mut().bytes_mut(port.buffer);
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
    }

    /// One time step.
    ///
    /// # Errors
    /// A node that cannot be executed with these values.
    pub fn step(&mut self) -> Result<(), Fault> {
        self.session.run().map_err(fault)
    }

    /// The part of a time step that a sequence of the document runs.
    pub(crate) fn step_of(&mut self, sequence: usize) -> Result<(), Fault> {
        match self.parts.get(sequence) {
            Some(part) => self.session.run_part(part).map_err(fault),
            None => self.step(),
        }
    }

    /// The values of an output, in place of what `values` held.
    pub fn output(&self, output: usize, values: &mut Vec<i64>) {
        values.clear();
        let port = self
            .outputs
            .get(output)
            .copied()
            .flatten()
            .and_then(|port| self.lowered.program.interface.outputs.get(port));
        let Some(port) = port else { return };
        values.resize(port.shape.iter().product::<u64>() as usize, 0);
        load(
            self.session.storage().bytes(port.buffer),
            element_of(port),
            0,
            values,
        );
    }

    /// The bytes of an output, in its element type.
    pub fn output_bytes(&self, output: usize) -> &[u8] {
        let port = self
            .outputs
            .get(output)
            .copied()
            .flatten()
            .and_then(|port| self.lowered.program.interface.outputs.get(port));
        port.map_or(&[], |port| {
            &self.session.storage().bytes(port.buffer)[..port.bytes().unwrap_or_default() as usize]
        })
    }

    /// Back to the start: state as initialised, everything else zero.
    pub fn reset(&mut self) {
        self.session.reset();
    }
}

fn fault(stop: Stop) -> Fault {
    match stop {
        Stop::Fault { fault, .. } => fault,
        Stop::Deadlock(_) => Fault::program("the nodes wait for each other"),
    }
}

impl Behind for Runner<'_> {
    fn match_document(&mut self, document: &Document) -> Result<(), String> {
        Runner::match_document(self, document)
    }

    fn set_input(&mut self, input: usize, values: &[i64]) {
        Runner::set_input(self, input, values);
    }

    fn fire(&mut self, sequence: usize) -> Result<(), String> {
        self.step_of(sequence).map_err(|fault| fault.message)
    }

    fn output(&self, output: usize, values: &mut Vec<i64>) {
        Runner::output(self, output, values);
    }

    fn reset(&mut self) {
        Runner::reset(self);
    }
}

fn element_of(port: &Port) -> Element {
    match port.element {
        chipless_model::ElementType::Int8 => Element::I8,
        chipless_model::ElementType::Int16 => Element::I16,
        chipless_model::ElementType::Int32 => Element::I32,
        chipless_model::ElementType::Int64 => Element::I64,
        _ => Element::F64,
    }
}
