//! Streams for the ports of a graph, and the program that it becomes with them.

use crate::failure::{Failure, FailureKind};
use crate::options::{Input as File, Options};
use crate::target::{Lowered, Picture};
use crate::{npy, random};
use chipless_dsa::adg::Adg;
use chipless_dsa::evaluate::{Course, Settings, Stop};
use chipless_dsa::graph::{Graph, Node as Vertex, Port};
use chipless_dsa::{
    DEFAULT_ROWS, Document, Given, Input, MACHINES, Machine, Mapped, Origin, unsigned,
};
use chipless_dsa_mapper::judge::{self, Verdict};
use chipless_dsa_mapper::{self as mapper, Mapping, pictures};
use chipless_model::{Node, Text, Value};

/// Lines about nodes that wait, at most.
const WAITING: usize = 3;

/// What enters a graph, and what comes of it.
pub(super) struct Streams {
    inputs: Vec<Input<'static>>,
    /// Whether some of the inputs that the host gives are made up.
    made_up: bool,
    settings: Settings,
    /// How far they go.
    outcome: Result<Course, Stop>,
}

impl Streams {
    /// Takes the streams that the user gives, or makes some of a length of our choice.
    pub(super) fn make(document: &Document<'_>, options: &Options) -> Result<Streams, Failure> {
        let graph = &document.graph;
        let files = open(graph, options)?;
        let mut given: Vec<Given<'_>> = files
            .iter()
            .map(|(name, file)| give(name, file))
            .collect::<Result<_, _>>()?;
        let named = |array: &Given<'_>| files.iter().any(|(name, _)| *name == array.name);
        let shaped = of_shape(graph, options).into_iter();
        given.extend(shaped.filter(|array| !named(array)));
        let mut failed = None;
        let mut fill = |element, index, bytes: &mut [u8]| {
            if let Err(error) = random::fill(element, options.data.seed, index, 0, bytes) {
                failed = Some(error);
            }
        };
        let inputs = chipless_dsa::inputs(graph, &given, &mut fill, &options.limits)
            .map_err(|error| Failure::misuse("--input", error))?;
        if let Some(error) = failed {
            return Err(Failure::misuse("--input", error));
        }
        let made_up = inputs.iter().any(|input| {
            let name = &graph.nodes[input.node].name;
            input.origin == Origin::Host && !given.iter().any(|array| array.name == *name)
        });
        let settings = Settings {
            slices_as_ranges: document.slices_by_width(),
            ..Settings::default()
        };
        let outcome = chipless_dsa::course(graph, &inputs, settings, &options.limits);
        Ok(Streams {
            inputs: inputs.into_iter().map(Input::into_owned).collect(),
            made_up,
            settings,
            outcome,
        })
    }
}

/// Makes the program of a graph with these streams.
pub(super) fn lower<'d>(
    document: &'d Document<'_>,
    streams: &'d Streams,
    options: &Options,
) -> Result<Lowered<'d>, Failure> {
    let graph = &document.graph;
    let (_, own) = MACHINES[0];
    let machine = options.machine(own, &[], Machine::from_toml)?;
    let (machine, mapped) = match options.file("map")? {
        Some(file) => mapped(&file, graph, machine, options)?,
        None => (machine, None),
    };
    let Streams {
        inputs,
        settings,
        outcome,
        ..
    } = streams;
    let limits = &options.limits;
    let program = chipless_dsa::lower(graph, inputs, *settings, outcome, &machine, mapped, limits);
    let mut program = program.map_err(|error| Failure::building(&error))?;
    program.text = std::str::from_utf8(document.bytes)
        .map(Text::new)
        .unwrap_or_default();
    Ok(Lowered {
        program,
        notes: notes(document, streams, mapped),
    })
}

/// The files that the user names for ports of the graph, with the names of both. Names of no port are for the run to complain about: it
/// knows them all.
fn open(graph: &Graph, options: &Options) -> Result<Vec<(String, File)>, Failure> {
    let mut files = Vec::new();
    for option in &options.data.arrays {
        let Some((name, path)) = option
            .split_once('=')
            .filter(|(name, _)| graph.inputs().any(|(_, node, _)| node.name == **name))
        else {
            continue;
        };
        files.push((name.to_owned(), options.open(path)?));
    }
    Ok(files)
}

/// Zeros for inputs of which only the shape is known. A shape of one number is rows of all lanes in one loop.
fn of_shape(graph: &Graph, options: &Options) -> Vec<Given<'static>> {
    let zeros = |(_, node, port): (_, &Vertex, &Port)| {
        let (shape, lanes) = (options.data.shapes.get(&*node.name)?, u64::from(port.lanes));
        let shape = match shape.as_slice() {
            [length] if length.is_multiple_of(lanes) => vec![length / lanes, lanes],
            [_] => return None,
            loops => loops.to_vec(),
        };
        let elements = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d))?;
        let bytes = elements.checked_mul(u64::from(port.width / 8))?;
        let fits = (1..=options.limits.memory_bytes).contains(&bytes);
        fits.then(|| Given {
            name: node.name.clone(),
            element: unsigned(port.width),
            shape,
            bytes: vec![0; bytes as usize].into(),
        })
    };
    graph.inputs().filter_map(zeros).collect()
}

fn give<'b>(name: &str, file: &'b File) -> Result<Given<'b>, Failure> {
    let refused = |error| Failure::misuse(&file.name, format_args!("input \"{name}\": {error}"));
    let (element, shape) = npy::describe(&file.bytes).map_err(refused)?;
    let bytes = npy::read(&file.bytes, element, &shape).map_err(refused)?;
    Ok(Given {
        name: name.to_owned(),
        element,
        shape,
        bytes,
    })
}

/// A mapping on its fabric. It must be legal.
struct OnFabric {
    adg: Adg,
    mapping: Mapping,
    verdict: Verdict,
}

impl OnFabric {
    fn read(file: &File, graph: &Graph, options: &Options) -> Result<OnFabric, Failure> {
        let refused = |file: &File, finding: Box<chipless_model::Finding>| {
            Failure::unreadable(&file.name, finding)
        };
        let fabric = options.file("adg")?;
        let fabric = fabric.as_ref().unwrap_or(file);
        let (adg, _) = Adg::read(&fabric.bytes, &options.limits)
            .map_err(|finding| refused(fabric, finding))?;
        let mapping = mapper::read(&file.bytes, graph, &adg, &options.limits)
            .map_err(|finding| refused(file, finding))?;
        let verdict = judge::judge(graph, &adg, &mapping);
        if let Some(reason) = verdict.reason() {
            return Err(Failure::new(
                FailureKind::Refused,
                &file.name,
                format_args!("expected a legal mapping, found: {reason}"),
            ));
        }
        Ok(OnFabric {
            adg,
            mapping,
            verdict,
        })
    }
}

/// The machine and the time of a mapping.
fn mapped(
    file: &File,
    graph: &Graph,
    machine: Machine,
    options: &Options,
) -> Result<(Machine, Option<Mapped>), Failure> {
    let OnFabric { adg, verdict, .. } = OnFabric::read(file, graph, options)?;
    let mapped = Mapped {
        latency: verdict.latency.into(),
        interval: verdict.initiation_interval.into(),
    };
    Ok((machine.with_rates_of(&adg), Some(mapped)))
}

/// Rows that are executed cycle by cycle.
const ROWS: u64 = 64;

/// How long rows take on the fabric, where the user asks.
pub(super) fn cycles(graph: &Graph, options: &Options) -> Result<Vec<Node>, Failure> {
    if options.value("cycles").is_none() {
        return Ok(Vec::new());
    }
    let Some(file) = options.file("map")? else {
        let text = "expected a mapping to execute (--map FILE.json), found none";
        return Err(Failure::misuse("--cycles", text));
    };
    let OnFabric {
        adg,
        mapping,
        verdict,
    } = OnFabric::read(&file, graph, options)?;
    let shown = mapper::cycles::run(graph, &adg, &mapping, &verdict, ROWS)
        .map_err(|reason| Failure::new(FailureKind::Deadlock, &file.name, reason))?;
    let part = |name: &str, value: Value| Node {
        name: name.to_owned(),
        value: Some(value),
        ..Node::default()
    };
    Ok(vec![Node {
        name: "cycles".to_owned(),
        children: vec![
            part("rows", Value::Integer(shown.rows.into())),
            part("latency", Value::Integer(shown.latency.into())),
            part("interval", Value::Number(shown.interval)),
            part("total", Value::Integer(shown.total.into())),
        ],
        ..Node::default()
    }])
}

/// A picture of the fabric with the graph on it, where a mapping was given.
pub(super) fn fabric(graph: &Graph, options: &Options) -> Result<Option<Picture>, Failure> {
    let Some(file) = options.file("map")? else {
        return Ok(None);
    };
    let OnFabric { adg, mapping, .. } = OnFabric::read(&file, graph, options)?;
    let mapped = Some(pictures::Mapped {
        graph,
        mapping: &mapping,
    });
    Ok(Some(Picture {
        name: "fabric".to_owned(),
        title: format!("The graph on its fabric, {}", file.name),
        svg: pictures::svg(&adg, mapped),
        text: pictures::text(&adg, mapped),
    }))
}

/// What should be known of the numbers.
fn notes(document: &Document<'_>, streams: &Streams, mapped: Option<Mapped>) -> Vec<String> {
    let graph = &document.graph;
    let Streams {
        inputs,
        made_up,
        outcome,
        ..
    } = streams;
    let mut notes = Vec::new();
    if *made_up {
        let rows = inputs
            .iter()
            .find(|input| input.origin == Origin::Host)
            .map_or(DEFAULT_ROWS, |input| input.stream.rows());
        notes.push(format!("inputs without an array have {rows} rows"));
    }
    for input in inputs {
        let (name, rows) = (&graph.nodes[input.node].name, input.stream.rows());
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
    if let Ok(course) = outcome {
        for ((_, node, _), count) in graph.outputs().zip(&course.counts) {
            if count.dropped > 0 {
                notes.push(format!(
                    "output {}: {} rows without a lane that counts are left out",
                    node.name, count.dropped
                ));
            }
        }
        notes.extend(
            course
                .waiting
                .iter()
                .take(WAITING)
                .map(|waiting| format!("at the end {}", waiting.message(graph))),
        );
        if course.waiting.len() > WAITING {
            notes.push(format!(
                "at the end {} more nodes wait",
                course.waiting.len() - WAITING
            ));
        }
    }
    notes
}
