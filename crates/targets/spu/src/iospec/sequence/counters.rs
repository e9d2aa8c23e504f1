//! The counting machine of the femtorun package, `femtorun-4.1`.

use super::super::document::{Document, Member};
use super::super::violation::Violation;
use std::collections::{BTreeSet, HashMap};

/// Sequences that fire sequences: further ones than Python's stack would bear are an error.
const DEEPEST: usize = 300;

/// The counting machine of the femtorun package.
#[derive(Clone, Debug)]
pub(super) struct Counters {
    /// For each node, where its edges lead, in the order in which they were made.
    successors: Vec<Vec<(usize, usize)>>,
    /// For each node, where its edges come from.
    predecessors: Vec<Vec<usize>>,
    numbers: Vec<f64>,
    pub(super) counts: Vec<f64>,
    /// Node of each input and output; an input whose key an output bears has none.
    inputs: Vec<Option<usize>>,
    pub(super) outputs: Vec<usize>,
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
    pub(super) fn new(document: &Document) -> Counters {
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

    pub(super) fn reset(&mut self) {
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

    pub(super) fn send(
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

    pub(super) fn send_node(
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

    pub(super) fn receive(&mut self) -> Result<Vec<usize>, Violation> {
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

    pub(super) fn ready(&self, output: usize) -> bool {
        let edges = &self.predecessors[self.outputs[output]];
        edges.len() == 1
            && edges
                .iter()
                .all(|edge| self.counts[*edge].total_cmp(&self.numbers[*edge]).is_eq())
    }

    pub(super) fn clear(&mut self, output: usize) {
        let node = self.outputs[output];
        self.predecessors[node]
            .iter()
            .for_each(|edge| self.counts[*edge] = 0.0);
        self.note(node);
    }
}
