//! Streams for the ports of a graph, and the program that it becomes with them.

use super::super::{Consumer, Lowering};
use crate::failure::Failure;
use crate::files::{self, Bytes};
use crate::{npy, random};
use chipless_dsa::adg::Adg;
use chipless_dsa::evaluate::{Evaluation, Settings, Stop};
use chipless_dsa::graph::Graph;
use chipless_dsa::{DEFAULT_ROWS, Document, Given, Input, Machine, Mapped, Origin, judge, mapping};
use chipless_model::Text;
use std::path::Path;

/// Lines about nodes that wait, at most.
const WAITING: usize = 3;

/// Makes the program of a graph: as long as the streams that the user gives, or of a length of our choice.
pub(super) fn lower(
    document: &Document<'_>,
    lowering: &Lowering,
    then: Consumer<'_>,
) -> Result<(), Failure> {
    let graph = &document.graph;
    let machine = lowering.machine(Machine::from_toml)?.unwrap_or_default();
    let (machine, mapped) = match &lowering.mapping {
        Some(path) => mapped(path, graph, machine, lowering)?,
        None => (machine, None),
    };
    let files = open(graph, lowering)?;
    let given: Vec<Given<'_>> = files
        .iter()
        .map(|(name, path, bytes)| give(name, path, bytes))
        .collect::<Result<_, _>>()?;
    let mut failed = None;
    let mut fill = |element, index, bytes: &mut [u8]| {
        if let Err(error) = random::fill(element, lowering.data.seed, index, 0, bytes) {
            failed = Some(error);
        }
    };
    let inputs = chipless_dsa::inputs(graph, &given, &mut fill, lowering.limits())
        .map_err(|error| Failure::unusable("--input", error))?;
    if let Some(error) = failed {
        return Err(Failure::unusable("--input", error));
    }
    let settings = Settings {
        slices_as_ranges: document.slices_by_width(),
        ..Settings::default()
    };
    let outcome = chipless_dsa::compute(graph, &inputs, settings, lowering.limits());
    let notes = notes(document, &inputs, &outcome, mapped);
    let mut program = chipless_dsa::lower(graph, &inputs, &outcome, &machine, mapped);
    program.text = std::str::from_utf8(document.bytes)
        .map(Text::new)
        .unwrap_or_default();
    then(&program, notes);
    Ok(())
}

/// The files that the user names for ports of the graph, with the names of both. Names of no port are for the run to complain about: it
/// knows them all.
fn open(graph: &Graph, lowering: &Lowering) -> Result<Vec<(String, String, Bytes)>, Failure> {
    let mut files: Vec<(String, String, Bytes)> = Vec::new();
    for option in &lowering.data.arrays {
        let Some((name, path)) = option
            .split_once('=')
            .filter(|(name, _)| graph.inputs().any(|(_, node, _)| node.name == **name))
        else {
            continue;
        };
        let bytes = files::open(Path::new(path)).map_err(|error| Failure::unusable(path, error))?;
        files.push((name.to_owned(), path.to_owned(), bytes));
    }
    Ok(files)
}

fn give<'b>(name: &str, path: &str, bytes: &'b [u8]) -> Result<Given<'b>, Failure> {
    let refused = |error| Failure::unusable(path, format_args!("input \"{name}\": {error}"));
    let (element, shape) = npy::describe(bytes).map_err(refused)?;
    let bytes = npy::read(bytes, element, &shape).map_err(refused)?;
    Ok(Given {
        name: name.to_owned(),
        element,
        shape,
        bytes,
    })
}

/// The machine and the time of a mapping. It must be legal.
fn mapped(
    path: &Path,
    graph: &Graph,
    machine: Machine,
    lowering: &Lowering,
) -> Result<(Machine, Option<Mapped>), Failure> {
    let shown = path.display();
    let bytes = files::open(path).map_err(|error| Failure::unusable(&shown, error))?;
    let refused = |finding: Box<chipless_model::Finding>| Failure::unusable(&shown, finding);
    let (adg, _) = Adg::read(&bytes, lowering.limits()).map_err(refused)?;
    let mapping = mapping::read(&bytes, graph, &adg, lowering.limits()).map_err(refused)?;
    let verdict = judge::judge(graph, &adg, &mapping);
    if let Some(reason) = verdict.reason() {
        return Err(Failure::wrong(
            &shown,
            format_args!("expected a legal mapping, found: {reason}"),
        ));
    }
    let depth = adg
        .elements
        .iter()
        .map(chipless_dsa::adg::Element::delay_depth)
        .max()
        .unwrap_or(1);
    let mapped = Mapped::of(&verdict, depth);
    Ok((machine.with_rates_of(&adg), Some(mapped)))
}

/// What should be known of the numbers.
fn notes(
    document: &Document<'_>,
    inputs: &[Input<'_>],
    outcome: &Result<Evaluation, Stop>,
    mapped: Option<Mapped>,
) -> Vec<String> {
    let graph = &document.graph;
    let mut notes = Vec::new();
    if inputs.iter().any(|input| {
        input.origin == Origin::Host && matches!(input.stream.bytes, std::borrow::Cow::Owned(_))
    }) {
        let rows = inputs
            .iter()
            .find(|input| input.origin == Origin::Host)
            .map_or(DEFAULT_ROWS, |input| input.stream.rows());
        notes.push(format!("inputs without an array have {rows} rows"));
    }
    for input in inputs {
        let (name, rows) = (input.name, input.stream.rows());
        match input.origin {
            Origin::Host => {}
            Origin::Generated => notes.push(format!(
                "input {name} is generated: 0, 1, 2 and so on, {rows} rows"
            )),
            Origin::Zeros => {
                notes.push(format!("input {name} begins its recurrence with {rows} rows of zeros; --input {name}=FILE.npy gives others"));
            }
        }
    }
    if document.slices_by_width() {
        notes.push("slices as width and index are executed as the real tool does, as ranges of bits; docs/dsa-operations.md".to_owned());
    }
    match mapped {
        Some(Mapped { latency, interval }) => notes.push(format!("mapped: {latency} cycles of latency, a row every {interval:.2} cycles")),
        None => notes.push("not mapped: operations take their own latency, ways through the fabric no time (--map FILE.json)".to_owned()),
    }
    if !graph.tasks.is_empty() {
        notes.push(format!(
            "{} statements about tasks are kept and not executed",
            graph.tasks.len()
        ));
    }
    if let Ok(evaluation) = outcome {
        for ((_, node, _), rows) in graph.outputs().zip(&evaluation.outputs) {
            if rows.dropped > 0 {
                notes.push(format!(
                    "output {}: {} rows without a lane that counts are left out",
                    node.name, rows.dropped
                ));
            }
        }
        notes.extend(
            evaluation
                .waiting
                .iter()
                .take(WAITING)
                .map(|waiting| format!("at the end {}", waiting.message(graph))),
        );
        if evaluation.waiting.len() > WAITING {
            notes.push(format!(
                "at the end {} more nodes wait",
                evaluation.waiting.len() - WAITING
            ));
        }
    }
    notes
}
