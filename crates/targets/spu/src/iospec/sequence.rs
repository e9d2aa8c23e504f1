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

use super::document::{Document, Member};
use super::{RuleSet, session::Violation};
use std::collections::{BTreeSet, HashMap};

/// The state of a contract: what has been written and not yet led to outputs, what is ready.
#[derive(Clone, Debug)]
pub struct Contract<'d> {
    document: &'d Document,
    machine: Machine,
}

#[derive(Clone, Debug)]
enum Machine {
    Spec(Turns),
    Femtorun(Counters),
}

impl<'d> Contract<'d> {
    /// The contract of a document at its start.
    pub fn new(document: &'d Document, rules: RuleSet) -> Contract<'d> {
        let machine = match rules {
            RuleSet::Spec => Machine::Spec(Turns::new(document)),
            RuleSet::Femtorun41 => Machine::Femtorun(Counters::new(document)),
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

/// The strict machine.
#[derive(Clone, Debug)]
struct Turns {
    start: Vec<Turn>,
    state: Vec<Turn>,
    /// Turns that an act changes as they were before, for the way back.
    before: Vec<(usize, Turn)>,
    /// Sequences with outputs that wait to be read.
    ready: BTreeSet<usize>,
    /// Sequences that take each input.
    takers: Vec<Vec<usize>>,
    /// Sequences that each sequence's firing counts for.
    next: Vec<Vec<usize>>,
}

#[derive(Clone, Debug)]
struct Turn {
    /// What it takes: input and how often.
    takes: Vec<(usize, u64)>,
    /// Which of them comes next.
    next: usize,
    /// How often that came.
    came: u64,
    /// Firings of other sequences that it waits for, and those that came.
    needs: u64,
    triggered: u64,
    outputs: Vec<Waiting>,
}

#[derive(Clone, Debug)]
struct Waiting {
    output: usize,
    after: u64,
    pending: u64,
}

impl Waiting {
    fn ready(&self) -> bool {
        self.pending >= self.after
    }
}

impl Turn {
    fn complete(&self) -> bool {
        self.next == self.takes.len() && self.triggered >= self.needs
    }
}

impl Turns {
    fn new(document: &Document) -> Turns {
        let (inputs, outputs) = (document.input_index(), document.output_index());
        let numbers: HashMap<&str, usize> = document
            .sequences
            .iter()
            .enumerate()
            .map(|(n, s)| (&*s.name, n))
            .collect();
        let mut takers = vec![Vec::new(); document.inputs.len()];
        let mut next = vec![Vec::new(); document.sequences.len()];
        let mut start: Vec<Turn> = Vec::with_capacity(document.sequences.len());
        let count = |member: &Member| (member.count.max(1.0) as u64).min(u64::from(u32::MAX));
        for (number, sequence) in document.sequences.iter().enumerate() {
            let mut turn = Turn {
                takes: Vec::new(),
                next: 0,
                came: 0,
                needs: 0,
                triggered: 0,
                outputs: Vec::new(),
            };
            for member in &sequence.inputs {
                if let Some(input) = inputs.get(&*member.key) {
                    if takers[*input].last() != Some(&number) {
                        takers[*input].push(number);
                        turn.takes.push((*input, count(member)));
                    }
                } else if let Some(other) = numbers.get(&*member.key) {
                    next[*other].push(number);
                    turn.needs += count(member);
                } else {
                    // Nothing ever brings what the document does not define.
                    turn.needs += 1;
                }
            }
            let known = sequence
                .outputs
                .iter()
                .filter_map(|m| Some((*outputs.get(&*m.key)?, count(m))));
            turn.outputs.extend(known.map(|(output, after)| Waiting {
                output,
                after,
                pending: 0,
            }));
            start.push(turn);
        }
        for (number, sequence) in document.sequences.iter().enumerate() {
            for member in &sequence.outputs {
                if let Some(other) = numbers
                    .get(&*member.key)
                    .filter(|_| !outputs.contains_key(&*member.key))
                {
                    next[number].push(*other);
                    start[*other].needs += count(member);
                }
            }
        }
        Turns {
            state: start.clone(),
            before: Vec::new(),
            ready: BTreeSet::new(),
            start,
            takers,
            next,
        }
    }

    fn write(
        &mut self,
        document: &Document,
        inputs: &[usize],
        fired: &mut Vec<usize>,
    ) -> Result<(), Violation> {
        self.before.clear();
        let already = fired.len();
        for input in inputs {
            if let Err(violation) = self.write_one(document, *input, fired) {
                for (number, turn) in std::mem::take(&mut self.before).into_iter().rev() {
                    self.state[number] = turn;
                    self.note(number);
                }
                fired.truncate(already);
                return Err(violation);
            }
        }
        Ok(())
    }

    /// Keeps a turn as it is, before it changes.
    fn keep(&mut self, number: usize) {
        self.before.push((number, self.state[number].clone()));
    }

    /// Notes whether a sequence has outputs that wait.
    fn note(&mut self, number: usize) {
        if self.state[number].outputs.iter().any(Waiting::ready) {
            self.ready.insert(number);
        } else {
            self.ready.remove(&number);
        }
    }

    fn write_one(
        &mut self,
        document: &Document,
        input: usize,
        fired: &mut Vec<usize>,
    ) -> Result<(), Violation> {
        for number in &self.takers[input] {
            let (turn, name) = (&self.state[*number], &document.sequences[*number].name);
            let came = &document.inputs[input].key;
            let unread: Vec<&str> = turn
                .outputs
                .iter()
                .filter(|o| o.ready())
                .map(|o| &*document.outputs[o.output].key)
                .collect();
            if !unread.is_empty() {
                let message = format!(
                    "expected {} of {name} to be read first, came {came}",
                    unread.join(", ")
                );
                return Err(Violation::sequence(message)
                    .expecting(unread.iter().map(|o| format!("read {o}"))));
            }
            match turn.takes.get(turn.next) {
                Some((expected, _)) if *expected == input => {}
                Some((expected, _)) => {
                    let expected = &document.inputs[*expected].key;
                    let message = format!(
                        "it is the turn of {expected} in {name}: expected {expected}, came {came}"
                    );
                    return Err(
                        Violation::sequence(message).expecting([format!("write {expected}")])
                    );
                }
                None => {
                    let message =
                        format!("{name} has its inputs and waits for other sequences, came {came}");
                    return Err(Violation::sequence(message));
                }
            }
        }
        for index in 0..self.takers[input].len() {
            let number = self.takers[input][index];
            self.keep(number);
            let turn = &mut self.state[number];
            turn.came += 1;
            if turn
                .takes
                .get(turn.next)
                .is_some_and(|(_, often)| turn.came >= *often)
            {
                turn.next += 1;
                turn.came = 0;
            }
            self.fire(document, number, fired)?;
        }
        Ok(())
    }

    /// Fires a sequence that has everything, and those that only waited for it.
    fn fire(
        &mut self,
        document: &Document,
        first: usize,
        fired: &mut Vec<usize>,
    ) -> Result<(), Violation> {
        let mut pending = vec![first];
        while let Some(number) = pending.pop() {
            if !self.state[number].complete() {
                continue;
            }
            self.keep(number);
            let turn = &mut self.state[number];
            if let Some(unread) = turn.outputs.iter().find(|o| o.ready()) {
                let output = &document.outputs[unread.output].key;
                let message = format!(
                    "expected {output} of {} to be read before the sequence fires again",
                    document.sequences[number].name
                );
                return Err(Violation::sequence(message).expecting([format!("read {output}")]));
            }
            (turn.next, turn.triggered) = (0, 0);
            turn.outputs.iter_mut().for_each(|o| o.pending += 1);
            fired.push(number);
            self.note(number);
            for index in 0..self.next[number].len() {
                let other = self.next[number][index];
                self.keep(other);
                self.state[other].triggered += 1;
                pending.push(other);
            }
        }
        Ok(())
    }

    fn read(&mut self, only: Option<usize>) -> Vec<usize> {
        let numbers: Vec<usize> = match only {
            Some(only) => self
                .ready
                .contains(&only)
                .then_some(only)
                .into_iter()
                .collect(),
            None => self.ready.iter().copied().collect(),
        };
        let mut read = Vec::new();
        for number in numbers {
            let outputs = &mut self.state[number].outputs;
            for waiting in outputs.iter_mut().filter(|o| o.ready()) {
                waiting.pending = 0;
                read.push(waiting.output);
            }
            self.note(number);
        }
        read
    }

    /// Takes one output wherever it waits.
    fn read_output(&mut self, output: usize) {
        for number in 0..self.state.len() {
            let outputs = &mut self.state[number].outputs;
            for waiting in outputs.iter_mut().filter(|o| o.output == output) {
                waiting.pending = 0;
            }
            self.note(number);
        }
    }

    fn reset(&mut self) {
        self.state.clone_from(&self.start);
        self.ready.clear();
    }
}

/// Sequences that fire sequences: further ones than Python's stack would bear are an error.
const DEEPEST: usize = 300;

/// The counting machine of the femtorun package.
#[derive(Clone, Debug)]
struct Counters {
    /// For each node, where its edges lead, in the order in which they were made.
    successors: Vec<Vec<(usize, usize)>>,
    /// For each node, where its edges come from.
    predecessors: Vec<Vec<usize>>,
    numbers: Vec<f64>,
    counts: Vec<f64>,
    /// Node of each input and output; an input whose key an output bears has none.
    inputs: Vec<Option<usize>>,
    outputs: Vec<usize>,
    /// Whether a node is an output, and which sequence it is.
    is_output: Vec<bool>,
    sequence: Vec<Option<usize>>,
    /// Outputs in the order in which they are received, and the place of each output's node in it.
    order: Vec<usize>,
    place: HashMap<usize, usize>,
    /// Places of the outputs that are ready.
    ready: BTreeSet<usize>,
    /// The first place whose output cannot be received, and why: those before it are.
    broken: Option<(usize, Violation)>,
}

impl Counters {
    fn new(document: &Document) -> Counters {
        let mut names: HashMap<&str, usize> = HashMap::new();
        let mut node = |name| {
            let next = names.len();
            *names.entry(name).or_insert(next)
        };
        let inputs: Vec<usize> = document.inputs.iter().map(|v| node(&*v.key)).collect();
        let outputs: Vec<usize> = document.outputs.iter().map(|v| node(&*v.key)).collect();
        let (mut edges, mut numbers): (indexmap::IndexMap<(usize, usize), usize>, Vec<f64>) =
            Default::default();
        let mut edge = |from, to, number| {
            let index = *edges.entry((from, to)).or_insert(numbers.len());
            numbers.resize(numbers.len().max(index + 1), number);
            numbers[index] = number;
        };
        let mut sequences = Vec::new();
        for (number, sequence) in document.sequences.iter().enumerate() {
            let own = node(&*sequence.name);
            sequences.push((own, number));
            for member in &sequence.outputs {
                edge(own, node(&*member.key), member.count);
            }
            for member in &sequence.inputs {
                edge(node(&*member.key), own, member.count);
            }
        }
        let count = names.len();
        let mut is_output = vec![false; count];
        for node in &outputs {
            is_output[*node] = true;
        }
        let mut of_node = vec![None; count];
        for (node, number) in sequences {
            of_node[node] = Some(number);
        }
        let (mut successors, mut predecessors) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for ((from, to), index) in edges {
            successors[from].push((to, index));
            predecessors[to].push(index);
        }
        let inputs = inputs
            .into_iter()
            .map(|node| (!is_output[node]).then_some(node))
            .collect();
        let mut order: Vec<usize> = (0..outputs.len()).collect();
        order.sort_by_key(|output| outputs[*output]);
        let place = order
            .iter()
            .enumerate()
            .map(|(place, output)| (outputs[*output], place))
            .collect();
        let broken = order.iter().enumerate().find_map(|(place, output)| {
            let (node, key) = (outputs[*output], &document.outputs[*output].key);
            let (to, from): (usize, usize) = (successors[node].len(), predecessors[node].len());
            let message = match (to, from) {
                (0, 1) => return None,
                (0, from) => {
                    format!("expected each output in one sequence, found `{key}` in {from}")
                }
                _ => format!(
                    "expected outputs to go to the host, found `{key}` as input of a sequence"
                ),
            };
            Some((place, Violation::name(message)))
        });
        Counters {
            counts: vec![0.0; numbers.len()],
            successors,
            predecessors,
            numbers,
            inputs,
            outputs,
            is_output,
            sequence: of_node,
            order,
            place,
            ready: BTreeSet::new(),
            broken,
        }
    }

    fn reset(&mut self) {
        self.counts.fill(0.0);
        self.ready.clear();
    }

    /// Notes whether the output of a node is ready.
    fn note(&mut self, node: usize) {
        let Some(place) = self.place.get(&node).copied() else {
            return;
        };
        if self.ready(self.order[place]) {
            self.ready.insert(place);
        } else {
            self.ready.remove(&place);
        }
    }

    fn send(
        &mut self,
        document: &Document,
        input: usize,
        fired: &mut Vec<usize>,
    ) -> Result<(), Violation> {
        let key = &document.inputs[input].key;
        let Some(node) = self.inputs[input] else {
            return Err(Violation::name(format!(
                "an output has the key `{key}` too and takes the place of the input"
            )));
        };
        self.send_node(document, node, key, fired)
    }

    fn send_node(
        &mut self,
        document: &Document,
        node: usize,
        key: &str,
        fired: &mut Vec<usize>,
    ) -> Result<(), Violation> {
        if !self.predecessors[node].is_empty() {
            return Err(Violation::name(format!(
                "expected an input, found `{key}`, which a sequence produces"
            )));
        }
        self.count(document, node, key, 0, fired)
    }

    fn count(
        &mut self,
        document: &Document,
        node: usize,
        came: &str,
        depth: usize,
        fired: &mut Vec<usize>,
    ) -> Result<(), Violation> {
        if depth > DEEPEST {
            return Err(Violation::sequence(format!(
                "expected at most {DEEPEST} sequences that fire each other, found more"
            )));
        }
        for index in 0..self.successors[node].len() {
            let (next, edge) = self.successors[node][index];
            self.counts[edge] += 1.0;
            if self.is_output[next] {
                self.note(next);
            }
            let mut satisfied = true;
            for edge in &self.predecessors[next] {
                if self.counts[*edge] > self.numbers[*edge] {
                    return Err(self.too_many(document, next, came));
                }
                satisfied &= self.counts[*edge] >= self.numbers[*edge];
            }
            if satisfied {
                fired.extend(self.sequence[next]);
                self.count(document, next, came, depth + 1, fired)?;
                if !self.is_output[next] {
                    self.predecessors[next]
                        .iter()
                        .for_each(|edge| self.counts[*edge] = 0.0);
                }
            }
        }
        Ok(())
    }

    fn too_many(&self, document: &Document, node: usize, came: &str) -> Violation {
        if self.is_output[node] {
            let output = self
                .outputs
                .iter()
                .position(|o| *o == node)
                .map_or("an output", |o| &document.outputs[o].key);
            let message = format!(
                "expected {output} to be received first, came {came}: too many inputs before outputs were received"
            );
            return Violation::sequence(message).expecting([format!("read {output}")]);
        }
        let Some(sequence) = self.sequence[node].map(|s| &document.sequences[s]) else {
            return Violation::sequence(format!(
                "too many inputs before outputs were received: came {came}"
            ));
        };
        let index = document.input_index();
        let short = |edge: &usize| {
            self.predecessors[node].contains(edge) && self.counts[*edge] < self.numbers[*edge]
        };
        let lacking = |member: &&Member| {
            let from = index.get(&*member.key).and_then(|i| self.inputs[*i]);
            from.is_some_and(|n| self.successors[n].iter().any(|(_, edge)| short(edge)))
        };
        let lacking: Vec<&str> = sequence
            .inputs
            .iter()
            .filter(lacking)
            .map(|m| &*m.key)
            .collect();
        let wanted = if lacking.is_empty() {
            "a reset".to_owned()
        } else {
            lacking.join(", ")
        };
        let message = format!(
            "too many inputs for {} before it fired: expected {wanted}, came {came}",
            sequence.name
        );
        Violation::sequence(message).expecting(lacking.iter().map(|name| format!("write {name}")))
    }

    fn receive(&mut self) -> Result<Vec<usize>, Violation> {
        let broken = self.broken.as_ref().map_or(usize::MAX, |(place, _)| *place);
        let places: Vec<usize> = self.ready.range(..broken).copied().collect();
        let received: Vec<usize> = places.into_iter().map(|place| self.order[place]).collect();
        for output in &received {
            self.clear(*output);
        }
        match &self.broken {
            Some((_, violation)) => Err(violation.clone()),
            None => Ok(received),
        }
    }

    fn ready(&self, output: usize) -> bool {
        let edges = &self.predecessors[self.outputs[output]];
        edges.len() == 1
            && edges
                .iter()
                .all(|edge| self.counts[*edge].total_cmp(&self.numbers[*edge]).is_eq())
    }

    fn clear(&mut self, output: usize) {
        let node = self.outputs[output];
        self.predecessors[node]
            .iter()
            .for_each(|edge| self.counts[*edge] = 0.0);
        self.note(node);
    }
}
