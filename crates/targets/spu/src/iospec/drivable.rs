//! Whether a contract can be driven: a proof over every state that legal calls reach, or a shortest way to one from which
//! something can never happen again.
//!
//! The calls are writes of one vector and reads; a read that returns nothing is none. Parts of a contract that share no
//! vector and no sequence are looked at one by one: what is done in one changes nothing for the others.

use super::document::Document;
use super::rules;
use super::sequence::Contract;
use super::{RuleSet, Side};
use chipless_model::Finding;
use std::collections::HashMap;

/// States of one part that are looked at.
const MOST_STATES: usize = 200_000;
/// States times what is asked of each, over all parts.
const MOST_WORK: usize = 40_000_000;

/// A legal call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// One vector is written, by its varname.
    Write(String),
    /// What is ready is read.
    Read,
}

/// What should always be able to happen again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// An input is written.
    Input(String),
    /// An output is read.
    Output(String),
    /// A sequence fires.
    Sequence(String),
}

impl Event {
    /// What it is about: `input`, `output` or `sequence`, and the name.
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            Event::Input(name) => ("input", name),
            Event::Output(name) => ("output", name),
            Event::Sequence(name) => ("sequence", name),
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// From every state that legal calls reach, everything can still happen.
    Drivable,
    /// After these calls, something can never happen.
    Stuck {
        /// A shortest list of them.
        calls: Vec<Call>,
        /// What cannot happen.
        cannot: Event,
    },
    /// Too large to decide; why.
    Unknown(String),
}

/// Judges a contract under a rule set.
pub fn drivable(document: &Document, rules: RuleSet) -> Verdict {
    let mut shortest: Option<(Vec<Call>, Event)> = None;
    let mut too_large = None;
    let mut work = 0;
    // The package reads all outputs or none, so one that it cannot read keeps all of them.
    if Contract::new(document, rules).read().is_err()
        && let Some(output) = document.outputs.first()
    {
        let cannot = Event::Output(output.varname.clone());
        return Verdict::Stuck {
            calls: Vec::new(),
            cannot,
        };
    }
    for part in parts(document) {
        match search(&part, rules, &mut work) {
            Ok(None) => {}
            Ok(Some(found)) => {
                if shortest
                    .as_ref()
                    .is_none_or(|(calls, _)| found.0.len() < calls.len())
                {
                    shortest = Some(found);
                }
            }
            Err(reason) => too_large = Some(reason),
        }
        if shortest.as_ref().is_some_and(|(calls, _)| calls.is_empty()) {
            break;
        }
    }
    match (shortest, too_large) {
        // A part that was too large may have a shorter way.
        (Some((calls, cannot)), None) => Verdict::Stuck { calls, cannot },
        (Some((calls, cannot)), Some(_)) if calls.is_empty() => Verdict::Stuck { calls, cannot },
        (_, Some(reason)) => Verdict::Unknown(reason),
        (None, None) => Verdict::Drivable,
    }
}

impl Verdict {
    /// The finding that says the same, for a contract that gets stuck.
    pub fn finding(&self, document: &Document, rules: RuleSet) -> Option<Finding> {
        let Verdict::Stuck { calls, cannot } = self else {
            return None;
        };
        let (kind, name) = cannot.parts();
        let verb = match cannot {
            Event::Input(_) => "be written",
            Event::Output(_) => "be read",
            Event::Sequence(_) => "fire",
        };
        let after = if calls.is_empty() {
            "never can".to_owned()
        } else {
            let said: Vec<String> = calls
                .iter()
                .map(|call| match call {
                    Call::Write(name) => format!("write {name}"),
                    Call::Read => "read".to_owned(),
                })
                .collect();
            format!("never can again after {}", said.join(", "))
        };
        let span = match cannot {
            Event::Sequence(_) => document
                .sequences
                .iter()
                .find(|s| s.name == name)
                .map(|s| s.span),
            _ => document
                .vectors()
                .find(|v| v.varname == name)
                .map(|v| v.span),
        };
        let place = span.map_or_else(chipless_model::Place::file, super::super::yaml::Span::place);
        let message = format!(
            "expected the {kind} `{name}` to {verb} from every state that legal calls reach, found that it {after}"
        );
        let finding = rules::UNDRIVABLE.under(rules).at(place, message);
        // Without calls there is nothing to follow.
        if !calls.is_empty() {
            return Some(finding);
        }
        let vector = document.vectors().find(|vector| vector.varname == name);
        let key = vector.map_or(name, |vector| &*vector.key);
        let takers: Vec<String> = document
            .sequences
            .iter()
            .filter(|sequence| sequence.inputs.iter().any(|member| member.key == key))
            .map(|sequence| format!("`{}`", sequence.name))
            .collect();
        let advice = match cannot {
            Event::Input(_) if takers.len() > 1 => format!(
                "The sequences {} take it, and each waits for what another must take first: let them list the inputs that they share in the same order, or let one sequence take each input.",
                takers.join(", ")
            ),
            Event::Input(_) => "Let a sequence take this input, or remove it.".to_owned(),
            Event::Output(_) => {
                "Let a sequence that can fire give this output, or remove it: each input of that sequence must stand in the section inputs.".to_owned()
            }
            Event::Sequence(_) => {
                "Compare the inputs of the sequence with the section inputs: a host must be able to write each of them.".to_owned()
            }
        };
        Some(finding.hint(advice))
    }
}

/// The parts of a document that have nothing to do with each other.
fn parts(document: &Document) -> Vec<Document> {
    let mut names: HashMap<&str, usize> = HashMap::new();
    let mut parent: Vec<usize> = Vec::new();
    let mut of = |name, parent: &mut Vec<usize>| {
        *names.entry(name).or_insert_with(|| {
            parent.push(parent.len());
            parent.len() - 1
        })
    };
    fn top(parent: &mut [usize], mut of: usize) -> usize {
        while parent[of] != of {
            parent[of] = parent[parent[of]];
            of = parent[of];
        }
        of
    }
    for vector in document.vectors() {
        of(&vector.key, &mut parent);
    }
    for sequence in &document.sequences {
        let own = of(&sequence.name, &mut parent);
        for member in sequence.inputs.iter().chain(&sequence.outputs) {
            let other = of(&member.key, &mut parent);
            let (a, b) = (top(&mut parent, own), top(&mut parent, other));
            parent[a] = b;
        }
    }
    let empty = || Document {
        root: crate::yaml::Value::Null.into(),
        comments: crate::yaml::Comments::default(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        sequences: Vec::new(),
        findings: Vec::new(),
    };
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    let mut all: Vec<Document> = Vec::new();
    let mut part_of = |name: &str, all: &mut Vec<Document>| {
        let root = names
            .get(name)
            .map_or(usize::MAX, |number| top(&mut parent, *number));
        *numbers.entry(root).or_insert_with(|| {
            all.push(empty());
            all.len() - 1
        })
    };
    for vector in document.vectors() {
        let part = part_of(&vector.key, &mut all);
        match vector.side {
            Side::Input => all[part].inputs.push(vector.clone()),
            Side::Output => all[part].outputs.push(vector.clone()),
        }
    }
    for sequence in &document.sequences {
        let part = part_of(&sequence.name, &mut all);
        all[part].sequences.push(sequence.clone());
    }
    all
}

/// A state that was reached: from which one, by which call.
struct Reached<'d> {
    contract: Option<Contract<'d>>,
    from: Option<(usize, Call)>,
    /// Where calls lead, and what they make happen.
    next: Vec<(usize, Vec<usize>)>,
}

/// Looks at every state of a part; what gets stuck first.
fn search(
    document: &Document,
    rules: RuleSet,
    work: &mut usize,
) -> Result<Option<(Vec<Call>, Event)>, String> {
    let (inputs, outputs) = (document.inputs.len(), document.outputs.len());
    let events = inputs + outputs + document.sequences.len();
    let start = Contract::new(document, rules);
    let mut known: HashMap<Vec<u64>, usize> = HashMap::from([(start.state(), 0)]);
    let mut states = vec![Reached {
        contract: Some(start),
        from: None,
        next: Vec::new(),
    }];
    let mut at = 0;
    while at < states.len() {
        let Some(contract) = states[at].contract.take() else {
            break;
        };
        let mut calls: Vec<(Call, Contract<'_>, Vec<usize>)> = Vec::new();
        for (input, vector) in document.inputs.iter().enumerate() {
            let (mut after, mut fired) = (contract.clone(), Vec::new());
            if after.write(&[input], &mut fired).is_ok() {
                let happened =
                    std::iter::once(input).chain(fired.into_iter().map(|s| inputs + outputs + s));
                calls.push((
                    Call::Write(vector.varname.clone()),
                    after,
                    happened.collect(),
                ));
            }
        }
        let mut after = contract.clone();
        if let Ok(read) = after.read()
            && !read.is_empty()
        {
            calls.push((
                Call::Read,
                after,
                read.into_iter().map(|o| inputs + o).collect(),
            ));
        }
        for (call, after, happened) in calls {
            let count = states.len();
            let to = *known.entry(after.state()).or_insert(count);
            if to == count {
                *work += events;
                if count >= MOST_STATES || *work > MOST_WORK {
                    return Err(format!("more than {} states", count.min(MOST_STATES)));
                }
                states.push(Reached {
                    contract: Some(after),
                    from: Some((at, call)),
                    next: Vec::new(),
                });
            }
            states[at].next.push((to, happened));
        }
        at += 1;
    }
    let can = reachable(&states, events);
    let stuck = (0..states.len())
        .find_map(|state| Some((state, (0..events).find(|event| !can[*event][state])?)));
    Ok(stuck.map(|(state, event)| {
        let cannot = match event {
            input if input < inputs => Event::Input(document.inputs[input].varname.clone()),
            output if output < inputs + outputs => {
                Event::Output(document.outputs[output - inputs].varname.clone())
            }
            sequence => {
                Event::Sequence(document.sequences[sequence - inputs - outputs].name.clone())
            }
        };
        (way(&states, state), cannot)
    }))
}

/// For each event, the states from which it can still happen.
fn reachable(states: &[Reached<'_>], events: usize) -> Vec<Vec<bool>> {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); states.len()];
    let mut can = vec![vec![false; states.len()]; events];
    let mut open: Vec<Vec<usize>> = vec![Vec::new(); events];
    for (state, reached) in states.iter().enumerate() {
        for (to, happened) in &reached.next {
            before[*to].push(state);
            for event in happened {
                if !std::mem::replace(&mut can[*event][state], true) {
                    open[*event].push(state);
                }
            }
        }
    }
    for (can, open) in can.iter_mut().zip(&mut open) {
        while let Some(state) = open.pop() {
            for earlier in &before[state] {
                if !std::mem::replace(&mut can[*earlier], true) {
                    open.push(*earlier);
                }
            }
        }
    }
    can
}

/// The calls that lead to a state.
fn way(states: &[Reached<'_>], mut state: usize) -> Vec<Call> {
    let mut calls = Vec::new();
    while let Some((from, call)) = &states[state].from {
        calls.push(call.clone());
        state = *from;
    }
    calls.reverse();
    calls
}
