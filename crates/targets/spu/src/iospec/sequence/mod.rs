//! What may be written and read when: the two state machines.
//!
//! # `spec`
//! Each sequence has a *turn*: the input that it takes next. Writing any other of its inputs is a violation, and so is
//! writing an input of a sequence whose outputs wait to be read. When the last input is in, the sequence fires. A
//! complex sequence takes an input as often as its number says before the turn passes on, and an output becomes ready
//! after as many firings as its number says. A vector in several sequences must have its turn in all of them. An act that
//! violates changes nothing. Outputs are read in the order of sequences, and of the outputs within a sequence.
//!
//! # `femtorun-4.1`
//! A graph of vectors and sequences with a counter on each edge. Sending a vector counts its edges up; a sequence whose
//! counters have all reached their numbers fires, its input counters are cleared, its outputs' edges counted up; those are
//! cleared when the outputs are received. A counter above its number is an error, and stays above it until a reset:
//! whatever touches that sequence fails from then on. Order within a sequence does not count. Outputs are received in the
//! order of the section `outputs`, and receiving fails where an output belongs to no sequence or to several.

mod counters;
mod turns;

use super::document::Document;
use super::{RuleSet, violation::Violation};
use counters::Counters;
use turns::{Turn, Turns};

/// The state of a contract: what has been written and not yet led to outputs, what is ready.
#[derive(Clone, Debug)]
pub struct Contract<'d> {
    document: &'d Document,
    machine: Machine,
}

#[derive(Clone, Debug)]
enum Machine {
    Spec(Turns),
    Femtorun(Box<Counters>),
}

impl<'d> Contract<'d> {
    /// The contract of a document at its start.
    pub fn new(document: &'d Document, rules: RuleSet) -> Contract<'d> {
        let machine = match rules {
            RuleSet::Spec => Machine::Spec(Turns::new(document)),
            RuleSet::Femtorun41 => Machine::Femtorun(Box::new(Counters::new(document))),
        };
        Contract { document, machine }
    }

    /// Writes inputs, given by their positions in [`Document::inputs`], one after the other. Appends the sequences that fired, by their positions.
    ///
    /// # Errors
    /// Whose turn it is instead, or which outputs must be read first. Under `spec` nothing has changed then.
    pub fn write(&mut self, inputs: &[usize], fired: &mut Vec<usize>) -> Result<(), Violation> {
        match &mut self.machine {
            Machine::Spec(turns) => turns.write(self.document, inputs, fired),
            Machine::Femtorun(counters) => inputs
                .iter()
                .try_for_each(|input| counters.send(self.document, *input, fired)),
        }
    }

    /// Writes an output, given by its position in [`Document::outputs`]: under `femtorun-4.1` one that nothing produces is
    /// a node like any other.
    ///
    /// # Errors
    /// A sequence produces it; what [`write`](Contract::write) says of inputs.
    pub fn write_output(&mut self, output: usize, fired: &mut Vec<usize>) -> Result<(), Violation> {
        let vector = &self.document.outputs[output];
        match &mut self.machine {
            Machine::Spec(_) => Err(Violation::name(format!(
                "expected an input, found the output `{}`",
                vector.key
            ))),
            Machine::Femtorun(counters) => {
                let node = counters.outputs[output];
                counters.send_node(self.document, node, &vector.key, fired)
            }
        }
    }

    /// Takes the outputs that are ready: positions in [`Document::outputs`].
    ///
    /// # Errors
    /// Under `femtorun-4.1`, where an output belongs to no sequence, or to several.
    pub fn read(&mut self) -> Result<Vec<usize>, Violation> {
        match &mut self.machine {
            Machine::Spec(turns) => Ok(turns.read(None)),
            Machine::Femtorun(counters) => counters.receive(),
        }
    }

    /// Takes the outputs of one sequence that are ready.
    ///
    /// # Errors
    /// As [`read`](Contract::read).
    pub fn read_sequence(&mut self, sequence: usize) -> Result<Vec<usize>, Violation> {
        match &mut self.machine {
            Machine::Spec(turns) => Ok(turns.read(Some(sequence))),
            Machine::Femtorun(counters) => counters.receive(),
        }
    }

    /// Whether an output waits to be read.
    pub fn is_ready(&self, output: usize) -> bool {
        match &self.machine {
            Machine::Spec(turns) => turns
                .state
                .iter()
                .any(|s| s.outputs.iter().any(|o| o.output == output && o.ready())),
            Machine::Femtorun(counters) => counters.ready(output),
        }
    }

    /// Takes one output if it is ready.
    pub fn read_output(&mut self, output: usize) -> bool {
        let ready = self.is_ready(output);
        if ready {
            match &mut self.machine {
                Machine::Spec(turns) => turns.read_output(output),
                Machine::Femtorun(counters) => counters.clear(output),
            }
        }
        ready
    }

    /// Back to the start.
    pub fn reset(&mut self) {
        match &mut self.machine {
            Machine::Spec(turns) => turns.reset(),
            Machine::Femtorun(counters) => counters.reset(),
        }
    }

    /// What tells this state from others, as numbers.
    pub(super) fn state(&self) -> Vec<u64> {
        match &self.machine {
            Machine::Spec(turns) => {
                let turn = |turn: &Turn| {
                    let own = [turn.next as u64, turn.came, turn.triggered.min(turn.needs)];
                    // Counts that are high enough are equal.
                    let waiting = turn.outputs.iter().map(|o| o.pending.min(o.after));
                    own.into_iter().chain(waiting).collect::<Vec<u64>>()
                };
                turns.state.iter().flat_map(turn).collect()
            }
            Machine::Femtorun(counters) => counters.counts.iter().map(|c| c.to_bits()).collect(),
        }
    }

    /// What may be done next: the inputs that may be written, the outputs that wait to be read; positions of both.
    pub fn next(&self) -> (Vec<usize>, Vec<usize>) {
        let may = |input: &usize| self.clone().write(&[*input], &mut Vec::new()).is_ok();
        let inputs = (0..self.document.inputs.len()).filter(may).collect();
        (
            inputs,
            (0..self.document.outputs.len())
                .filter(|o| self.is_ready(*o))
                .collect(),
        )
    }
}
