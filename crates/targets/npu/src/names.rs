//! Names of tasks from beside the blob: the compiler's schedule trace, and the nodes of the model.

use crate::document::Document;
use crate::kernels::FETCH;
use crate::profiling::{Labels, sections};
use crate::structures::TaskKind;
use chipless_model::{Direction, Program, TaskId};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;

/// Bytes of a trace after it was unpacked, at most.
const MAX_TRACE: u64 = 1 << 30;

/// What the compiler planned: the events of each lane, named by process and thread, in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    lanes: Vec<Lane>,
    /// How long it takes, in microseconds, where the trace says so.
    total: Option<f64>,
}

/// The events of a thread. The two SHAVEs of a tile are two lanes of one name, or `Shave0` and `Shave1`.
#[derive(Clone, Debug, Default, PartialEq)]
struct Lane {
    process: String,
    thread: String,
    events: Vec<Planned>,
}

/// An event of a trace. Times are microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Planned {
    /// The task's name.
    pub name: String,
    /// When it starts.
    pub start: f64,
    /// How long it takes.
    pub duration: f64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum File {
    Object {
        #[serde(rename = "traceEvents")]
        events: Vec<Event>,
        #[serde(rename = "taskStatistics")]
        statistics: Option<Statistics>,
    },
    List(Vec<Event>),
}

#[derive(Deserialize)]
struct Statistics {
    #[serde(rename = "total duration")]
    total: Option<f64>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    ph: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    pid: i64,
    #[serde(default)]
    tid: i64,
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    dur: f64,
    args: Option<Arguments>,
}

#[derive(Deserialize)]
struct Arguments {
    name: Option<String>,
}

impl Trace {
    /// Reads a chrome trace, packed by gzip or not.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn read(bytes: &[u8]) -> Result<Trace, String> {
        let mut unpacked = Vec::new();
        let text = if bytes.starts_with(&[0x1f, 0x8b]) {
            let decoder = flate2::read::GzDecoder::new(bytes);
            let read = decoder.take(MAX_TRACE + 1).read_to_end(&mut unpacked);
            read.map_err(|error| format!("expected a file packed by gzip: {error}"))?;
            if unpacked.len() as u64 > MAX_TRACE {
                return Err(format!("a trace of more than {MAX_TRACE} bytes"));
            }
            &unpacked
        } else {
            bytes
        };
        let file = serde_json::from_slice(text);
        let file: File = file.map_err(|error: serde_json::Error| {
            if error.is_data() {
                return "expected a chrome trace in JSON: a list of events, or an object with `traceEvents`".to_owned();
            }
            format!("expected a chrome trace in JSON: {error}")
        })?;
        let (events, total) = match file {
            File::Object { events, statistics } => (events, statistics.and_then(|s| s.total)),
            File::List(events) => (events, None),
        };
        let (mut processes, mut threads) = (HashMap::new(), HashMap::new());
        let mut lanes: BTreeMap<(i64, i64), Vec<Planned>> = BTreeMap::new();
        for event in events {
            let named = event.args.and_then(|arguments| arguments.name);
            match (&*event.ph, &*event.name, named) {
                ("M", "process_name", Some(name)) => _ = processes.insert(event.pid, name),
                ("M", "thread_name", Some(name)) => {
                    _ = threads.insert((event.pid, event.tid), name);
                }
                ("X", ..) => {
                    let lane = lanes.entry((event.pid, event.tid)).or_default();
                    lane.push(Planned {
                        name: event.name,
                        start: event.ts,
                        duration: event.dur,
                    });
                }
                _ => {}
            }
        }
        let lane = |(lane, mut events): ((i64, i64), Vec<Planned>)| {
            events.sort_by(|a, b| a.start.total_cmp(&b.start));
            Lane {
                process: processes.get(&lane.0).cloned().unwrap_or_default(),
                thread: threads.get(&lane).cloned().unwrap_or_default(),
                events,
            }
        };
        Ok(Trace {
            lanes: lanes.into_iter().map(lane).collect(),
            total,
        })
    }

    /// How long it takes, in microseconds: what the trace says, or else when its last event ends.
    pub fn total(&self) -> f64 {
        let events = self.lanes.iter().flat_map(|lane| &lane.events);
        let ends = events.map(|event| event.start + event.duration);
        self.total.unwrap_or_else(|| ends.fold(0.0, f64::max))
    }

    /// The events by the names of our queues. Of DPUs those of the variants, which are our tasks.
    pub fn queues(&self) -> Vec<(String, Vec<Planned>)> {
        let mut queues: BTreeMap<String, Vec<Planned>> = BTreeMap::new();
        for lane in &self.lanes {
            if let Some(queue) = queue_of(&lane.process, &lane.thread) {
                let events = queues.entry(queue).or_default();
                events.extend_from_slice(&lane.events);
                events.sort_by(|a, b| a.start.total_cmp(&b.start));
            }
        }
        queues.into_iter().collect()
    }

    /// The lanes of a tile whose names begin so.
    fn lanes_of(&self, tile: usize, thread: &str) -> Vec<&[Planned]> {
        let process = format!("Cluster ({tile})");
        let lanes = self.lanes.iter();
        lanes
            .filter(|lane| lane.process == process && lane.thread.starts_with(thread))
            .map(|lane| &*lane.events)
            .collect()
    }

    /// Names of the program's tasks: of invariants in their order, of invocations where the trace has as many of the tile. What does
    /// not fit stays without.
    pub fn labels(&self, document: &Document<'_>) -> Labels {
        let mut labels = Labels::default();
        let bytes = |section: &str| {
            document
                .section(section)
                .map_or(&[][..], |(_, bytes)| bytes)
        };
        let mut tiles: BTreeMap<usize, Vec<List<'_>>> = BTreeMap::new();
        for (section, kind, unit, list) in sections(document) {
            let count = bytes(section).len() / kind.record_size();
            match kind {
                TaskKind::Variant => {
                    let lanes = self.lanes_of(unit, "DPU");
                    let events = lanes.first().copied().unwrap_or_default();
                    let invariants = bytes(&section.replace(".variant.", ".invariant."));
                    let records = invariants.chunks_exact(TaskKind::Invariant.record_size());
                    if records.len() != events.len() {
                        continue;
                    }
                    // NPU4 DPU invariant, variant_count.
                    let of = |record: &[u8]| crate::bytes::Record(record).u16(0x158);
                    let names = records.zip(events).flat_map(|(record, name)| {
                        let name = &name.name;
                        (0..of(record)).map(move |n| format!("{name}/variant_{n}"))
                    });
                    labels.put(section, names.take(count).enumerate());
                }
                TaskKind::Invocation => {
                    let list = (list, section, count);
                    tiles.entry(unit).or_default().push(list);
                }
                _ => {}
            }
        }
        for (tile, lists) in tiles {
            for (section, names) in shave_names(&self.lanes_of(tile, "Shave"), lists) {
                labels.put(section, names.into_iter().enumerate());
            }
        }
        labels
    }
}

/// A list of invocations: its number in the tile, its section, how many there are.
type List<'d> = (usize, &'d str, usize);

/// Names of the invocations of a tile by section, from the events of its lanes; none where their counts differ.
fn shave_names<'d>(lanes: &[&[Planned]], mut lists: Vec<List<'d>>) -> Vec<(&'d str, Vec<String>)> {
    // Sections need not stand in the order of the lists.
    lists.sort_unstable_by_key(|(number, ..)| *number);
    let counts = lists.iter().map(|(.., count)| *count);
    let mut events: Vec<&Planned> = lanes.iter().copied().flatten().collect();
    if events.len() != counts.clone().sum::<usize>() {
        return Vec::new();
    }
    // With two lists a lane is a list, where their counts say so; else the tile's tasks are known by time alone.
    if !counts.eq(lanes.iter().map(|events| events.len())) {
        events.sort_by(|a, b| a.start.total_cmp(&b.start));
    }
    let mut names = events.into_iter().map(|event| event.name.clone());
    let named = lists.into_iter();
    named
        .map(|(_, section, count)| (section, names.by_ref().take(count).collect()))
        .collect()
}

/// Names the tasks of a program that have no name yet after the events of their queue, in order, where there are as many. The compiler plans one
/// fetch for each pair of ours (none at all in the first releases), so fetches of descriptors are left out.
pub(crate) fn name_by_queue(trace: &Trace, program: &mut Program<'_>) {
    for (lane, events) in trace.queues() {
        let find = |name: &str| program.queues.position(|known| known.name == name);
        // An engine of NPU3720 has one list for both sources, which are two lanes.
        let part = lane.split_once('.');
        let found = find(&lane).map(|queue| (queue, None));
        let found = found.or_else(|| {
            let (engine, source) = part?;
            Some((find(engine)?, Some(source == "cmx")))
        });
        let Some((queue, from_cmx)) = found else {
            continue;
        };
        let tasks: Vec<TaskId> = (program.tasks.iter_enumerated())
            .filter(|(id, task)| {
                task.queue == queue
                    && program.kernel(*id).operation() != FETCH
                    && from_cmx.is_none_or(|from_cmx| from_cmx == reads_cmx(program, *id))
            })
            .map(|(id, _)| id)
            .collect();
        let events = events.iter().filter(|event| event.name != "fetch_dma");
        if tasks.iter().any(|id| program.tasks[*id].label.is_some())
            || events.clone().count() != tasks.len()
        {
            continue;
        }
        for (task, event) in tasks.into_iter().zip(events) {
            program.tasks[task].label = Some(event.name.as_str().into());
        }
    }
}

/// Whether a transfer of NPU3720 brings something out of CMX. Its descriptor comes from DDR and does not count.
fn reads_cmx(program: &Program<'_>, task: TaskId) -> bool {
    let mut found = false;
    program.kernel(task).accesses(&mut |access| {
        let buffer = &program.buffers[access.buffer];
        found |= access.direction == Direction::Read && buffer.name.starts_with("cmx");
    });
    found
}

/// The queue whose tasks a lane shows.
fn queue_of(process: &str, thread: &str) -> Option<String> {
    if process == "DMA" {
        if thread == "DMA" {
            return Some("dma0.ddr".to_owned());
        }
        let (engine, list) = thread.strip_prefix("DMA ")?.split_once(' ')?;
        return Some(format!("dma{engine}.{}", list.to_lowercase()));
    }
    let tile = process.strip_prefix("Cluster (")?.strip_suffix(')')?;
    match thread {
        "DPU Variants" => Some(format!("dpu{tile}")),
        "Shave" | "Shave0" => Some(format!("shave{tile}")),
        "Shave1" => Some(format!("shave{tile}s")),
        _ => None,
    }
}

/// The nodes of a model: what each does, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model(HashMap<String, String>);

impl Model {
    /// Reads an ONNX file or an `OpenVINO` IR (the XML file).
    ///
    /// # Errors
    /// What was expected.
    pub fn read(bytes: &[u8]) -> Result<Model, String> {
        let start = bytes.iter().position(|byte| !byte.is_ascii_whitespace());
        let nodes = if start.is_some_and(|at| bytes[at..].starts_with(b"<")) {
            let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
            layers(text)
        } else {
            onnx(bytes).ok_or("expected an ONNX model, or an OpenVINO IR in XML")?
        };
        Ok(Model(nodes))
    }

    /// The node of a layer, and its operation: the longest name that the layer's begins with, up to a slash. Compilers append what they made of a node
    /// (`conv_3/WithoutBiases`), and names of nodes may hold slashes.
    pub fn node(&self, layer: &str) -> Option<(&str, &str)> {
        let ends = layer.rmatch_indices('/').map(|(slash, _)| slash);
        let mut ends = std::iter::once(layer.len()).chain(ends);
        let (name, operation) = ends.find_map(|end| self.0.get_key_value(&layer[..end]))?;
        Some((name, operation))
    }
}

/// `<layer id="3" name="conv_3" type="Convolution" …>`.
fn layers(text: &str) -> HashMap<String, String> {
    let attribute = |tag: &str, name: &str| -> Option<String> {
        let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
        let end = start + tag.get(start..)?.find('"')?;
        let value = tag.get(start..end)?;
        let plain = [
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&quot;", "\""),
            ("&apos;", "'"),
            ("&amp;", "&"),
        ];
        Some(
            plain
                .iter()
                .fold(value.to_owned(), |text, (from, to)| text.replace(from, to)),
        )
    };
    text.split("<layer ")
        .skip(1)
        .filter_map(|rest| {
            let tag = format!(" {}", rest.split('>').next()?);
            Some((attribute(&tag, "name")?, attribute(&tag, "type")?))
        })
        .collect()
}

/// Fields of a protobuf message: number, and the content where it is of variable length.
fn fields(bytes: &[u8]) -> impl Iterator<Item = Option<(u64, &[u8])>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut field = || {
            let key = varint(&mut rest)?;
            let size = match key & 7 {
                0 => {
                    varint(&mut rest)?;
                    0
                }
                1 => 8,
                2 => usize::try_from(varint(&mut rest)?).ok()?,
                5 => 4,
                _ => return None,
            };
            let (content, after) = rest.split_at_checked(size)?;
            rest = after;
            Some((key >> 3, content))
        };
        let found = field();
        if found.is_none() {
            rest = &[];
        }
        Some(found)
    })
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// `ModelProto`: the graph is field 7, its nodes field 1; of a node the first output is field 2, the name 3, the operation 4.
fn onnx(bytes: &[u8]) -> Option<HashMap<String, String>> {
    let mut nodes = HashMap::new();
    let mut is_model = false;
    for field in fields(bytes) {
        let (7, graph) = field? else { continue };
        is_model = true;
        for field in fields(graph) {
            let (1, node) = field? else { continue };
            let (mut name, mut output, mut operation) = (String::new(), None, String::new());
            for field in fields(node) {
                let (number, content) = field?;
                let text = || String::from_utf8_lossy(content).into_owned();
                match number {
                    2 if output.is_none() => output = Some(text()),
                    3 => name = text(),
                    4 => operation = text(),
                    _ => {}
                }
            }
            if name.is_empty() {
                name = output.unwrap_or_default();
            }
            nodes.insert(name, operation);
        }
    }
    is_model.then_some(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_an_onnx_model() {
        let text = |number: u8, text: &str| {
            [&[number << 3 | 2, text.len() as u8], text.as_bytes()].concat()
        };
        let message = |number: u8, parts: &[Vec<u8>]| {
            let content = parts.concat();
            [&[number << 3 | 2, content.len() as u8][..], &content].concat()
        };
        let named = message(
            1,
            &[
                text(1, "x"),
                text(2, "y"),
                text(3, "conv_3"),
                text(4, "Conv"),
            ],
        );
        let unnamed = message(1, &[text(2, "z"), text(4, "Relu")]);
        let bytes = [vec![8, 9], message(7, &[named, unnamed])].concat();
        let model = Model::read(&bytes).expect("a model");
        assert_eq!(model.node("conv_3/WithoutBiases"), Some(("conv_3", "Conv")));
        assert_eq!(model.node("z"), Some(("z", "Relu")));
        assert_eq!(model.node("y"), None);
        let nested = message(1, &[text(3, "/m.1/conv/Conv"), text(4, "Conv")]);
        let bytes = [vec![8, 9], message(7, &[nested])].concat();
        let model = Model::read(&bytes).expect("a model");
        let node = Some(("/m.1/conv/Conv", "Conv"));
        assert_eq!(model.node("/m.1/conv/Conv/WithoutBiases/fused"), node);
        assert_eq!(model.node("/m.1/conv"), None);
        assert!(Model::read(&bytes[..bytes.len() - 1]).is_err());
        assert!(Model::read(b"").is_err());
    }

    #[test]
    fn nodes_of_an_ir() {
        let text = "<?xml version=\"1.0\"?>\n<net><layers>\n<layer id=\"0\" name=\"a&amp;b\" type=\"Add\" version=\"opset1\"><data/></layer></layers></net>";
        let model = Model::read(text.as_bytes()).expect("a model");
        assert_eq!(model.node("a&b/cluster"), Some(("a&b", "Add")));
    }

    #[test]
    fn invocations_are_named_by_their_list_wherever_its_section_stands() {
        let event = |name: &str, start| Planned {
            name: name.to_owned(),
            start,
            duration: 1.0,
        };
        let (first, second) = ([event("a", 1.0), event("b", 3.0)], [event("c", 2.0)]);
        let lists = vec![(1, "invocation.0.1", 1), (0, "invocation.0.0", 2)];
        let named = |lanes: &[&[Planned]], lists| -> Vec<(&str, String)> {
            let lists = shave_names(lanes, lists).into_iter();
            lists
                .map(|(section, names)| (section, names.join(" ")))
                .collect()
        };
        let expected = [("invocation.0.0", "a b"), ("invocation.0.1", "c")];
        let expected = expected.map(|(section, names)| (section, names.to_owned()));
        assert_eq!(named(&[&first, &second], lists.clone()), expected);
        assert_eq!(named(&[&first], lists), []);
        // One lane for both lists.
        let lane = [event("a", 1.0), event("c", 2.0), event("b", 3.0)];
        let lists = vec![(0, "one", 3)];
        assert_eq!(named(&[&lane], lists), [("one", "a c b".to_owned())]);
    }

    #[test]
    fn lanes_of_a_trace_are_in_order_of_time() {
        let text = r#"{"traceEvents": [
            {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "Cluster (0)"}},
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "Shave"}},
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": 3, "args": {"name": "Shave"}},
            {"ph": "X", "name": "late?t_A", "pid": 1, "tid": 2, "ts": 5.0, "dur": 1, "args": {"x": 1}},
            {"ph": "X", "name": "early?t_B", "pid": 1, "tid": 3, "ts": 1.5, "dur": 1}]}"#;
        let trace = Trace::read(text.as_bytes()).expect("a trace");
        let (queue, events) = &trace.queues()[0];
        let names: Vec<&str> = events.iter().map(|event| &*event.name).collect();
        assert_eq!(
            (&**queue, &names[..]),
            ("shave0", &["early?t_B", "late?t_A"][..])
        );
        assert!((trace.total() - 6.0).abs() < 1e-9);
        // Newer compilers number the SHAVEs of a tile that has two lists.
        let second = text.replace(
            "\"tid\": 3, \"args\": {\"name\": \"Shave\"",
            "\"tid\": 3, \"args\": {\"name\": \"Shave1\"",
        );
        let trace = Trace::read(second.as_bytes()).expect("a trace");
        let queues: Vec<String> = trace.queues().into_iter().map(|(queue, _)| queue).collect();
        assert_eq!(queues, ["shave0", "shave0s"]);
        assert!(Trace::read(b"[1]").is_err());
        assert!(Trace::read(&[0x1f, 0x8b, 0]).is_err());
    }
}
