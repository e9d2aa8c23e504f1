//! A host's session with the accelerator: writes, reads and resets under a contract, with values and wire words.

use super::document::{Document, Side, Vector};
use super::sequence::Contract;
use super::violation::{Kind, Violation};
use super::{RuleSet, wire};
use std::collections::HashMap;
use std::fmt;

/// A vector of an act: a name, and its integers where the host gives them.
pub type Act = (String, Option<Vec<i64>>);

/// What a write led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Sequences that fired.
    pub fired: Vec<String>,
    /// Messages to the accelerator, for sessions with the wire.
    pub messages: Vec<wire::Message>,
}

impl Sent {
    fn extend(&mut self, more: Sent) {
        self.fired.extend(more.fired);
        self.messages.extend(more.messages);
    }
}

/// What a read gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Varnames of the outputs, in order.
    pub outputs: Vec<String>,
    /// Their integers, where a program or a reply gave them.
    pub values: Vec<(String, Vec<i64>)>,
    /// Messages from the accelerator, for sessions with the wire.
    pub messages: Vec<wire::Message>,
}

/// A program behind a contract. Values are integers; of elements that are none, their bits with the highest one as a sign.
pub trait Behind: fmt::Debug {
    /// Numbers inputs and outputs as a document does.
    ///
    /// # Errors
    /// A vector that the program has not, or has with another length or precision.
    fn match_document(&mut self, document: &Document) -> Result<(), String>;

    /// Gives an input its values; elements beyond them become zero.
    fn set_input(&mut self, input: usize, values: &[i64]);

    /// Runs what a sequence runs.
    ///
    /// # Errors
    /// What went wrong in the program.
    fn fire(&mut self, sequence: usize) -> Result<(), String>;

    /// The values of an output, in place of what `values` held.
    fn output(&self, output: usize, values: &mut Vec<i64>);

    /// Back to the start.
    fn reset(&mut self);
}

/// A session over a document.
#[derive(Debug)]
pub struct Session<'d> {
    document: &'d Document,
    rules: RuleSet,
    contract: Contract<'d>,
    program: Option<Box<dyn Behind + 'd>>,
    with_wire: bool,
    /// Outputs that have no words on the wire, where these are shown, and why.
    untold: Vec<(usize, Violation)>,
    /// What each input has been given and no firing has taken yet; latched inputs keep their last.
    given: Vec<Vec<Vec<i64>>>,
    latched: Vec<bool>,
    /// Which inputs are latched.
    kept: Vec<usize>,
    /// The last values of each output.
    produced: Vec<Option<Vec<i64>>>,
    /// Inputs by the names that a host may give them.
    names: HashMap<&'d str, usize>,
    /// Positions of the inputs and outputs of each sequence.
    members: Vec<(Vec<usize>, Vec<usize>)>,
}

impl<'d> Session<'d> {
    /// A session without a program: order only.
    pub fn new(document: &'d Document, rules: RuleSet) -> Session<'d> {
        let unlatched = document.unlatched();
        let latched: Vec<bool> = document
            .inputs
            .iter()
            .map(|v| !unlatched.contains(&*v.key))
            .collect();
        Session {
            document,
            rules,
            contract: Contract::new(document, rules),
            program: None,
            with_wire: false,
            untold: Vec::new(),
            given: vec![Vec::new(); document.inputs.len()],
            kept: (0..latched.len()).filter(|i| latched[*i]).collect(),
            latched,
            produced: vec![None; document.outputs.len()],
            names: names(document, rules),
            members: members(document),
        }
    }

    /// Shows the words on the wire; writes then need values and addresses.
    #[must_use]
    pub fn with_wire(mut self) -> Session<'d> {
        self.with_wire = true;
        let outputs = self.document.outputs.iter().enumerate();
        let untold =
            outputs.filter_map(|(output, vector)| Some((output, wire::reply(vector, &[]).err()?)));
        self.untold = untold.collect();
        self
    }

    /// Puts a program behind the document.
    ///
    /// # Errors
    /// A vector that the program does not have, or has with another length.
    pub fn with_program(self, program: impl Behind + 'd) -> Result<Session<'d>, Violation> {
        self.with_behind(Box::new(program))
    }

    /// Puts a program of any kind behind the document.
    ///
    /// # Errors
    /// As [`with_program`](Session::with_program).
    pub fn with_behind(
        mut self,
        mut program: Box<dyn Behind + 'd>,
    ) -> Result<Session<'d>, Violation> {
        program
            .match_document(self.document)
            .map_err(Violation::name)?;
        self.program = Some(program);
        Ok(self)
    }

    /// The document.
    pub fn document(&self) -> &'d Document {
        self.document
    }

    /// What may be done next: inputs that may be written, outputs that wait to be read.
    pub fn next(&self) -> (Vec<&'d Vector>, Vec<&'d Vector>) {
        let (inputs, outputs) = self.contract.next();
        (
            inputs
                .into_iter()
                .map(|i| &self.document.inputs[i])
                .collect(),
            outputs
                .into_iter()
                .map(|o| &self.document.outputs[o])
                .collect(),
        )
    }

    /// The input of a name: its key or varname; under `femtorun-4.1` the varname alone.
    ///
    /// # Errors
    /// No input has it.
    pub fn input(&self, name: &str) -> Result<usize, Violation> {
        let inputs = &self.document.inputs;
        let found = self.names.get(name).copied();
        found.ok_or_else(|| {
            let what = match inputs.iter().find(|v| v.key == name) {
                Some(vector) => format!(", which is a key; its varname is `{}`", vector.varname),
                None if self.document.outputs.iter().any(|v| v.varname == name) => {
                    ", which is an output".to_owned()
                }
                None if self.document.sequences.iter().any(|s| s.name == name) => {
                    ", which is a sequence".to_owned()
                }
                None => String::new(),
            };
            let names: Vec<&str> = inputs.iter().map(|v| &*v.varname).collect();
            Violation::name(format!(
                "expected the name of an input ({}), found `{name}`{what}",
                names.join(", ")
            ))
        })
    }

    /// One act of the host: vectors that are written together, latched ones first.
    ///
    /// # Errors
    /// An unknown name, values that do not fit, or a violation of the order. Under `spec` nothing has changed then.
    pub fn write(&mut self, act: &[Act]) -> Result<Sent, Violation> {
        let mut inputs = Vec::with_capacity(act.len());
        let mut sent = Sent::default();
        for (name, values) in act {
            match self.input(name) {
                Ok(input) => inputs.push((input, values.as_ref())),
                Err(violation) if self.rules == RuleSet::Femtorun41 => {
                    // What stands before has been sent by then.
                    sent.extend(self.act(std::mem::take(&mut inputs))?);
                    let output = self
                        .document
                        .outputs
                        .iter()
                        .position(|v| v.varname == *name)
                        .ok_or(violation)?;
                    let mut fired = Vec::new();
                    self.contract.write_output(output, &mut fired)?;
                    sent.fired.extend(
                        fired
                            .into_iter()
                            .map(|s| self.document.sequences[s].name.clone()),
                    );
                }
                Err(violation) => return Err(violation),
            }
        }
        sent.extend(self.act(inputs)?);
        Ok(sent)
    }

    /// One act by sequence id, as the firmware library takes it: vectors in the order of the sequence.
    ///
    /// # Errors
    /// As [`write`](Session::write); a number of vectors other than the sequence has.
    pub fn write_sequence(&mut self, id: usize, vectors: &[Vec<i64>]) -> Result<Sent, Violation> {
        let sequence = &self.document.sequences[self.sequence(id)?];
        if sequence.inputs.len() != vectors.len() {
            let names: Vec<&str> = sequence.inputs.iter().map(|m| &*m.key).collect();
            let (expected, found) = (names.len(), vectors.len());
            let message = format!(
                "expected {expected} vectors of sequence {id} ({}: {}), found {found}",
                sequence.name,
                names.join(", ")
            );
            return Err(Violation::value(message));
        }
        let (inputs, _) = &self.members[id];
        if inputs.len() < vectors.len() {
            let index = self.document.input_index();
            let unknown = sequence
                .inputs
                .iter()
                .find(|m| !index.contains_key(&*m.key));
            return Err(Violation::name(format!(
                "expected inputs in sequence {id}, found `{}`",
                unknown.map_or("", |m| &*m.key)
            )));
        }
        let act = inputs
            .iter()
            .zip(vectors)
            .map(|(input, values)| (*input, Some(values)));
        self.act(act.collect())
    }

    /// Messages as they go over the bus, each with its header.
    ///
    /// # Errors
    /// As [`write`](Session::write); an address that no input has.
    pub fn write_words(&mut self, words: &[u64]) -> Result<Sent, Violation> {
        let decoded = wire::decode(self.document, Side::Input, words)?;
        self.act(
            decoded
                .iter()
                .map(|(input, values)| (*input, Some(values)))
                .collect(),
        )
    }

    fn sequence(&self, id: usize) -> Result<usize, Violation> {
        let count = self.document.simple_sequences().count();
        // Simple sequences come first.
        match count {
            0 => Err(Violation::name(format!(
                "expected simple sequences, which have ids, found none in the document and the id {id}"
            ))),
            _ if id < count => Ok(id),
            _ => Err(Violation::name(format!(
                "expected a sequence id from 0 to {}, found {id}",
                count - 1
            ))),
        }
    }

    fn act(&mut self, mut inputs: Vec<(usize, Option<&Vec<i64>>)>) -> Result<Sent, Violation> {
        // Names alone are sent as they come by the package; a host that gives values gives latched ones first.
        if self.rules == RuleSet::Spec || inputs.iter().any(|(_, values)| values.is_some()) {
            inputs.sort_by_key(|(input, _)| !self.latched[*input]);
        }
        let mut sent = Sent::default();
        for (input, values) in &inputs {
            self.check_values(&self.document.inputs[*input], *values)?;
            if let (true, Some(values)) = (self.with_wire, values) {
                sent.messages.push(self.message(*input, values)?);
            }
        }
        let mut fired = Vec::new();
        let numbers: Vec<usize> = inputs.iter().map(|(input, _)| *input).collect();
        self.contract.write(&numbers, &mut fired)?;
        for (input, values) in inputs {
            let given = &mut self.given[input];
            if self.latched[input] {
                given.clear();
            }
            given.extend(values.cloned());
        }
        for sequence in &fired {
            self.run(*sequence)?;
        }
        sent.fired = fired
            .into_iter()
            .map(|s| self.document.sequences[s].name.clone())
            .collect();
        Ok(sent)
    }

    /// The message of an input. By the package's driver, a vector with two names cannot be sent.
    fn message(&self, input: usize, values: &[i64]) -> Result<wire::Message, Violation> {
        let vector = &self.document.inputs[input];
        if self.rules == RuleSet::Femtorun41 && vector.key != vector.varname {
            return Err(Violation::name(format!(
                "expected key and varname to be equal, found `{}` and `{}`",
                vector.key, vector.varname
            )));
        }
        wire::send(vector, values)
    }

    fn check_values(&self, vector: &Vector, values: Option<&Vec<i64>>) -> Result<(), Violation> {
        let Some(values) = values else {
            if self.with_wire || self.program.is_some() {
                return Err(Violation::value(format!(
                    "expected values of `{}`, found its name alone",
                    vector.key
                )));
            }
            return Ok(());
        };
        let most = vector
            .padded_length
            .unwrap_or(vector.length)
            .max(vector.length);
        let found = values.len() as i64;
        let fits = match self.rules {
            RuleSet::Spec => found == vector.length || Some(found) == vector.padded_length,
            RuleSet::Femtorun41 => found <= most,
        };
        if !fits {
            let padded = vector
                .padded_length
                .map_or(String::new(), |padded| format!(" (padded {padded})"));
            return Err(Violation::value(format!(
                "expected {}{padded} elements of `{}`, found {found}",
                vector.length, vector.key
            )));
        }
        let range = vector.range().unwrap_or(i64::MIN..=i64::MAX);
        match values.iter().enumerate().find(|(_, v)| !range.contains(*v)) {
            Some((at, value)) => Err(Violation::value(format!(
                "expected integers of {} bits for `{}` ({} to {}), found {value} at element {at}",
                vector.precision,
                vector.key,
                range.start(),
                range.end()
            ))),
            None => Ok(()),
        }
    }

    /// Runs the program for a sequence that has fired: one step for each round of its inputs.
    fn run(&mut self, sequence: usize) -> Result<(), Violation> {
        let Some(program) = &mut self.program else {
            return Ok(());
        };
        let document = self.document;
        let sequence_of = &document.sequences[sequence];
        if sequence_of.is_latched() {
            return Ok(());
        }
        let (inputs, outputs) = self.members[sequence].clone();
        let rounds = inputs
            .iter()
            .map(|i| self.given[*i].len())
            .max()
            .unwrap_or(0)
            .max(1);
        for input in &self.kept {
            if let Some(values) = self.given[*input].last() {
                program.set_input(*input, elements(values, &document.inputs[*input]));
            }
        }
        for round in 0..rounds {
            for input in &inputs {
                let given = &self.given[*input];
                if let Some(values) = given.get(round).or(given.last()) {
                    program.set_input(*input, elements(values, &document.inputs[*input]));
                }
            }
            program
                .fire(sequence)
                .map_err(|message| Violation::new(Kind::Program, message))?;
        }
        for input in inputs.into_iter().filter(|i| !self.latched[*i]) {
            self.given[input].clear();
        }
        for output in outputs {
            let values = self.produced[output].get_or_insert_default();
            program.output(output, values);
        }
        Ok(())
    }

    /// Reads what is ready.
    ///
    /// # Errors
    /// Under `femtorun-4.1`, where the document has an output in no sequence or in several.
    pub fn read(&mut self) -> Result<Reading, Violation> {
        // A read that fails takes nothing.
        for (output, violation) in &self.untold {
            if self.produced[*output].is_some() && self.contract.is_ready(*output) {
                return Err(violation.clone());
            }
        }
        let outputs = self.contract.read()?;
        self.reading(&outputs)
    }

    /// Reads what is ready of one sequence, as the firmware library does.
    ///
    /// # Errors
    /// As [`read`](Session::read); an unknown id.
    pub fn read_sequence(&mut self, id: usize) -> Result<Reading, Violation> {
        let outputs = self.contract.read_sequence(self.sequence(id)?)?;
        self.reading(&outputs)
    }

    /// Reads one mailbox.
    ///
    /// # Errors
    /// No output has it, or its output is not ready.
    pub fn read_mailbox(&mut self, mailbox: i64) -> Result<Reading, Violation> {
        let found = self
            .document
            .outputs
            .iter()
            .position(|v| v.mailbox_id == Some(mailbox));
        let output = found.ok_or_else(|| {
            Violation::name(format!(
                "expected the mailbox of an output, found {mailbox}"
            ))
        })?;
        if !self.contract.read_output(output) {
            return Err(Violation::sequence(format!(
                "expected a result in mailbox {mailbox} ({}), found none",
                self.document.outputs[output].key
            )));
        }
        self.reading(&[output])
    }

    /// Takes the reply of a device: it must carry exactly the outputs that are ready.
    ///
    /// # Errors
    /// As [`read`](Session::read); a reply that cannot be decoded, or carries other outputs.
    pub fn receive(&mut self, words: &[u64]) -> Result<Reading, Violation> {
        let expected = self.contract.read()?;
        let decoded = wire::decode(self.document, Side::Output, words)?;
        let names = |outputs: &[usize]| {
            outputs
                .iter()
                .map(|o| &*self.document.outputs[*o].varname)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let mut came: Vec<usize> = decoded.iter().map(|(output, _)| *output).collect();
        came.sort_unstable();
        let mut wanted = expected.clone();
        wanted.sort_unstable();
        if came != wanted {
            let message = format!(
                "expected a reply with the outputs ({}), found ({})",
                names(&expected),
                names(&came)
            );
            return Err(Violation::wire(message));
        }
        for (output, values) in decoded {
            self.produced[output] = Some(values);
        }
        self.reading(&expected)
    }

    fn reading(&self, outputs: &[usize]) -> Result<Reading, Violation> {
        let mut reading = Reading::default();
        for output in outputs {
            let vector = &self.document.outputs[*output];
            reading.outputs.push(vector.varname.clone());
            if let Some(values) = &self.produced[*output] {
                if self.with_wire {
                    reading.messages.push(wire::reply(vector, values)?);
                }
                reading
                    .values
                    .push((vector.varname.clone(), values.clone()));
            }
        }
        Ok(reading)
    }

    /// Back to the start: nothing written, nothing ready, latched values 0, the program's state as at the beginning.
    pub fn reset(&mut self) {
        self.contract.reset();
        self.given.iter_mut().for_each(Vec::clear);
        self.produced.fill(None);
        if let Some(program) = &mut self.program {
            program.reset();
        }
    }
}

/// Inputs by the names that a host may give them: under `spec` keys and varnames, in the package varnames alone.
fn names(document: &Document, rules: RuleSet) -> HashMap<&str, usize> {
    let outputs = document.output_index();
    let mut names = HashMap::new();
    let inputs = || document.inputs.iter().enumerate();
    if rules == RuleSet::Spec {
        inputs().for_each(|(input, vector)| {
            names.entry(&*vector.key).or_insert(input);
        });
    }
    // In the package an output takes the place of an input with its key.
    let hidden = |v: &Vector| rules == RuleSet::Femtorun41 && outputs.contains_key(&*v.key);
    for (input, vector) in inputs().filter(|(_, vector)| !hidden(vector)) {
        names.entry(&*vector.varname).or_insert(input);
    }
    names
}

/// Positions of the inputs and outputs of each sequence.
fn members(document: &Document) -> Vec<(Vec<usize>, Vec<usize>)> {
    let (inputs, outputs) = (document.input_index(), document.output_index());
    let of = |sequence: &super::Sequence| {
        let inputs = sequence.inputs.iter().filter_map(|m| inputs.get(&*m.key));
        let outputs = sequence.outputs.iter().filter_map(|m| outputs.get(&*m.key));
        (inputs.copied().collect(), outputs.copied().collect())
    };
    document.sequences.iter().map(of).collect()
}

/// The elements of the model's vector: padding beyond it is dropped.
fn elements<'v>(values: &'v [i64], vector: &Vector) -> &'v [i64] {
    if vector.varies() {
        return values;
    }
    &values[..values
        .len()
        .min(usize::try_from(vector.length).unwrap_or_default())]
}
