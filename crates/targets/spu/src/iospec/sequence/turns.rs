//! The strict machine, `spec`: whose turn it is.

use super::super::document::{Document, Member};
use super::super::violation::Violation;
use std::collections::{BTreeSet, HashMap};

/// The strict machine.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    start: Vec<Turn>,
    pub(super) state: Vec<Turn>,
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
pub(super) struct Turn {
    /// What it takes: input and how often.
    takes: Vec<(usize, u64)>,
    /// Which of them comes next.
    pub(super) next: usize,
    /// How often that came.
    pub(super) came: u64,
    /// Firings of other sequences that it waits for, and those that came.
    pub(super) needs: u64,
    pub(super) triggered: u64,
    pub(super) outputs: Vec<Waiting>,
}

#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) output: usize,
    pub(super) after: u64,
    pub(super) pending: u64,
}

impl Waiting {
    pub(super) fn ready(&self) -> bool {
        self.pending >= self.after
    }
}

impl Turn {
    fn complete(&self) -> bool {
        self.next == self.takes.len() && self.triggered >= self.needs
    }
}

impl Turns {
    pub(super) fn new(document: &Document) -> Turns {
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

    pub(super) fn write(
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

    pub(super) fn read(&mut self, only: Option<usize>) -> Vec<usize> {
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
    pub(super) fn read_output(&mut self, output: usize) {
        for number in 0..self.state.len() {
            let outputs = &mut self.state[number].outputs;
            for waiting in outputs.iter_mut().filter(|o| o.output == output) {
                waiting.pending = 0;
            }
            self.note(number);
        }
    }

    pub(super) fn reset(&mut self) {
        self.state.clone_from(&self.start);
        self.ready.clear();
    }
}
