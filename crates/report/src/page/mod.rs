//! A run as one self-contained page: what `page/` makes of it in a browser.
//!
//! The page is built from the sources in `page/` and embedded here; a run goes into it as JSON, with the columns of its tasks packed.
//! `page/src/report.ts` is the other end; the two change together.

mod columns;
mod network;

use crate::attribution::{Attribution, Lives};
use crate::diff::Difference;
use crate::info::value_text;
use crate::list::Lister;
use crate::style::Paint;
use crate::timed_by::TimedBy;
use crate::why::{self, Ranked};
use chipless_model::{
    Buffer, BufferId, Finding, IndexVec, MemoryId, Node, Program, QueueId, TaskId,
};
use chipless_sim::Timeline;
use columns::{Columns, pack};
use network::Edge;
use serde::Serialize;
use std::collections::BTreeMap;

const SCHEMA_VERSION: u32 = 1;
const BUNDLE: &str = include_str!("bundle.html");
/// Where the built page has room for the data.
const SLOT: &str = "<script type=\"application/json\" id=\"report\">{}</script>";
/// A program with more tasks has no disassembly in its page.
const DETAILED: usize = 50_000;
/// Blocks of a memory that are drawn, the largest ones.
const BLOCKS: usize = 4_000;
/// Steps of a memory's live bytes that are drawn.
const LEVELS: usize = 20_000;

/// A run, and what is known of it besides.
#[derive(Debug)]
pub struct Run<'r, 'a> {
    /// The file as the user named it.
    pub file: &'r str,
    /// What ran.
    pub program: &'r Program<'a>,
    /// How it ran.
    pub timeline: &'r Timeline,
    /// The run taken apart.
    pub attribution: &'r Attribution,
    /// What lay where.
    pub lives: &'r Lives,
    /// The machine that it was timed by, where its target has one.
    pub timed_by: Option<&'r TimedBy>,
    /// The compiler's own estimate, in nanoseconds, where the file carries one.
    pub estimate_ns: Option<f64>,
    /// What `check` found.
    pub findings: &'r [Finding],
    /// What the target knows of the run besides.
    pub facts: &'r [Node],
    /// Whatever the user should know before trusting the numbers.
    pub notes: &'r [String],
    /// Pictures.
    pub pictures: &'r [Picture],
    /// The run with each figure of the machine made twice as good, best first.
    pub ranking: &'r [Ranked],
}

/// A picture of what a target draws.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Picture {
    /// Short, fit for a file name.
    pub name: String,
    /// One line.
    pub title: String,
    /// As SVG.
    pub svg: String,
    /// As lines of text.
    pub text: String,
}

/// Who shows a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// A file: nobody answers it.
    No,
    /// A server, which the page asks when it should load itself again, but for no bytes: the run keeps time alone.
    TimesAlone,
    /// A server, which the page asks for bytes as well.
    Whole,
}

/// The run of another program, and how it compares.
#[derive(Clone, Copy, Debug)]
pub struct Against<'r, 'a> {
    /// The other run.
    pub run: &'r Run<'r, 'a>,
    /// What changed.
    pub difference: &'r Difference,
    /// Tasks of the first program with those of this one that they were matched with.
    pub pairs: &'r [(TaskId, TaskId)],
}

/// The page of a run.
pub fn page(run: &Run<'_, '_>, against: Option<Against<'_, '_>>, served: Served) -> String {
    let columns = Columns::of(run.program, run.timeline, run.attribution);
    let beside = against.map(|against| {
        let Run {
            program,
            timeline,
            attribution,
            ..
        } = *against.run;
        (against, Columns::of(program, timeline, attribution))
    });
    let report = Report {
        schema_version: SCHEMA_VERSION,
        chipless: env!("CARGO_PKG_VERSION"),
        difference: against.map(|against| against.difference),
        matched: beside
            .as_ref()
            .map(|(against, others)| columns.matched(others, against.pairs)),
        run: Packed::of(run, columns),
        against: beside.map(|(against, columns)| Packed::of(against.run, columns)),
        live: served != Served::No,
        no_bytes: match served {
            Served::No => Some(
                "A page in a file has no bytes in it: chipless view shows those of an instant.",
            ),
            Served::TimesAlone => Some(
                "This run is timing-only (--timing-only): no bytes were computed. View the file without it to see them.",
            ),
            Served::Whole => None,
        },
    };
    let json = serde_json::to_string(&report).unwrap_or_default();
    // `</script` in a name must not end the element; JSON may write the slash either way.
    let data = SLOT.replace("{}", &json.replace("</", "<\\/"));
    BUNDLE.replacen(SLOT, &data, 1)
}

#[derive(Serialize)]
struct Report<'r> {
    schema_version: u32,
    chipless: &'static str,
    run: Packed<'r>,
    against: Option<Packed<'r>>,
    difference: Option<&'r Difference>,
    /// A column for the tasks of the run: the place in the other one of the task that it was matched with, from 1; 0 without one.
    matched: Option<String>,
    live: bool,
    /// Why the page cannot show bytes; null where it asks the server for them.
    no_bytes: Option<&'static str>,
}

#[derive(Serialize)]
struct Packed<'r> {
    file: &'r str,
    target: &'r str,
    name: &'r str,
    latency_ps: u64,
    /// The machine that the times rest on; null where there is none.
    timed_by: Option<String>,
    estimate_ps: Option<u64>,
    notes: &'r [String],
    facts: Vec<Fact>,
    queues: Vec<QueueRow<'r>>,
    lanes: Vec<LaneRow>,
    operations: Vec<String>,
    layers: Vec<&'r str>,
    syncs: Vec<&'r str>,
    columns: BTreeMap<&'static str, String>,
    layer_rows: Vec<why::Layer<'r>>,
    /// Which layer reads what another one wrote.
    edges: Vec<Edge>,
    critical_by_queue: Vec<why::QueueTime<'r>>,
    critical_by_engine: Vec<why::EngineTime>,
    roofline: Vec<why::Roof>,
    ranking: &'r [Ranked],
    resources: Vec<ResourceRow<'r>>,
    memories: Vec<MemoryRow<'r>>,
    findings: Vec<FindingRow<'r>>,
    pictures: &'r [Picture],
    /// A JSON array of the tasks' listings, packed like a column; null where there are too many tasks.
    details: Option<String>,
}

#[derive(Serialize)]
struct Fact {
    name: String,
    value: String,
    children: Vec<Fact>,
}

#[derive(Serialize)]
struct QueueRow<'r> {
    name: &'r str,
    servers: u32,
    tasks: usize,
    busy_ns: f64,
}

#[derive(Serialize)]
struct LaneRow {
    queue: u32,
    server: u32,
    count: usize,
}

#[derive(Serialize)]
struct ResourceRow<'r> {
    name: &'r str,
    bytes: u64,
    utilization: f64,
}

#[derive(Serialize)]
struct MemoryRow<'r> {
    /// Its number in the program, by which the server knows it.
    id: usize,
    name: &'r str,
    kind: &'static str,
    size: Option<u64>,
    live: Levels,
    blocks: Vec<Block>,
    more_blocks: usize,
}

#[derive(Serialize)]
struct Levels {
    ps: Vec<u64>,
    bytes: Vec<u64>,
}

#[derive(Serialize)]
struct Block {
    name: String,
    role: &'static str,
    address: u64,
    size: u64,
    start_ps: u64,
    end_ps: u64,
}

#[derive(Serialize)]
struct FindingRow<'r> {
    code: &'static str,
    class: &'static str,
    severity: &'static str,
    message: &'r str,
    place: String,
}

impl<'r> Packed<'r> {
    fn of(run: &Run<'r, '_>, columns: Columns<'r>) -> Packed<'r> {
        let Run {
            program,
            timeline,
            attribution,
            ..
        } = *run;
        let critical = why::critical(program, attribution, timeline.end);
        Packed {
            file: run.file,
            target: program.target,
            name: &program.name,
            latency_ps: timeline.end.0,
            timed_by: run.timed_by.map(ToString::to_string),
            estimate_ps: run.estimate_ns.map(|ns| (ns * 1e3).round() as u64),
            notes: run.notes,
            facts: run.facts.iter().map(fact).collect(),
            queues: queues(program, timeline, attribution),
            lanes: columns
                .lanes
                .iter()
                .map(|lane| LaneRow {
                    queue: lane.queue.raw(),
                    server: lane.server,
                    count: lane.tasks.len(),
                })
                .collect(),
            details: details(program, timeline, &columns),
            columns: columns.packed,
            operations: columns.operations,
            syncs: program.syncs.iter().map(|sync| &*sync.name).collect(),
            layer_rows: why::layers(program, attribution),
            edges: network::edges(program, attribution, &columns.layers),
            critical_by_queue: critical.by_queue,
            critical_by_engine: critical.by_engine,
            layers: columns.layers,
            roofline: why::roofline(program, attribution),
            ranking: run.ranking,
            resources: resources(program, timeline),
            memories: memories(program, run.lives),
            findings: run.findings.iter().map(finding).collect(),
            pictures: run.pictures,
        }
    }
}

fn fact(node: &Node) -> Fact {
    Fact {
        name: node.name.clone(),
        value: node.value.as_ref().map_or_else(String::new, value_text),
        children: node.children.iter().map(fact).collect(),
    }
}

fn queues<'r>(
    program: &'r Program<'_>,
    timeline: &Timeline,
    attribution: &Attribution,
) -> Vec<QueueRow<'r>> {
    let busy = timeline.busy(program);
    let mut tasks: IndexVec<QueueId, usize> = program.queues.iter().map(|_| 0).collect();
    for row in &attribution.rows {
        tasks[program.tasks[row.task].queue] += 1;
    }
    let queues = program.queues.iter_enumerated();
    queues
        .map(|(id, queue)| QueueRow {
            name: &queue.name,
            servers: queue.servers,
            tasks: tasks[id],
            busy_ns: busy[id].ns(),
        })
        .collect()
}

/// What `list` says of each task, in the order of the columns.
fn details(program: &Program<'_>, timeline: &Timeline, columns: &Columns<'_>) -> Option<String> {
    let tasks: Vec<TaskId> = columns
        .lanes
        .iter()
        .flat_map(|lane| &lane.tasks)
        .copied()
        .collect();
    if tasks.len() > DETAILED {
        return None;
    }
    let lister = Lister::new(program, Some(timeline), Paint::PLAIN);
    let texts: Vec<String> = tasks
        .into_iter()
        .map(|task| {
            let mut text = String::new();
            lister.text(&mut text, task);
            text
        })
        .collect();
    Some(pack(&serde_json::to_vec(&texts).unwrap_or_default()))
}

fn resources<'r>(program: &'r Program<'_>, timeline: &Timeline) -> Vec<ResourceRow<'r>> {
    let carried = timeline.carried(program);
    let seconds = timeline.end.ns() * 1e-9;
    let used = program
        .resources
        .iter_enumerated()
        .filter(|(id, _)| carried[*id] > 0);
    used.map(|(id, resource)| ResourceRow {
        name: &resource.name,
        bytes: carried[id],
        utilization: if seconds > 0.0 {
            carried[id] as f64 / (seconds * resource.capacity)
        } else {
            0.0
        },
    })
    .collect()
}

fn memories<'r>(program: &'r Program<'_>, lives: &Lives) -> Vec<MemoryRow<'r>> {
    let levels: IndexVec<MemoryId, _> = lives.levels();
    let used = program
        .memories
        .iter_enumerated()
        .filter(|(id, _)| !lives.of[*id].is_empty());
    let places = places(program);
    used.map(|(id, memory)| {
        let mut found: Vec<_> = lives.of[id].iter().collect();
        found.sort_by_key(|live| std::cmp::Reverse(live.bytes.end - live.bytes.start));
        let more_blocks = found.len().saturating_sub(BLOCKS);
        found.truncate(BLOCKS);
        found.sort_by_key(|live| (live.start, live.buffer, live.bytes.start));
        let blocks = found.into_iter().map(|live| {
            let buffer = &program.buffers[live.buffer];
            let written = live.writer.map(|task| {
                format!(
                    ", written by {}",
                    program
                        .layer(task)
                        .map_or_else(|| program.task_name(task), str::to_owned)
                )
            });
            Block {
                name: format!("{}{}", buffer.name, written.unwrap_or_default()),
                role: buffer.role.name(),
                address: places[live.buffer].saturating_add(live.bytes.start),
                size: live.bytes.end - live.bytes.start,
                start_ps: live.start.0,
                end_ps: live.end.0,
            }
        });
        let step = levels[id].len().div_ceil(LEVELS).max(1);
        let shown = || {
            levels[id]
                .chunks(step)
                .filter_map(|chunk| chunk.iter().max_by_key(|(_, bytes)| *bytes))
        };
        MemoryRow {
            id: id.index(),
            name: &memory.name,
            kind: memory.kind.name(),
            size: (memory.size < u64::MAX / 2).then_some(memory.size),
            live: Levels {
                ps: shown().map(|(at, _)| at.0).collect(),
                bytes: shown().map(|(_, bytes)| *bytes).collect(),
            },
            blocks: blocks.collect(),
            more_blocks,
        }
    })
    .collect()
}

/// Where each buffer is drawn: at its address, or behind all others of its memory before it has one.
pub(crate) fn places(program: &Program<'_>) -> IndexVec<BufferId, u64> {
    let mut free: IndexVec<MemoryId, u64> = program.memories.iter().map(|_| 0).collect();
    for buffer in &program.buffers {
        let end = buffer
            .address
            .map_or(0, |at| at.saturating_add(buffer.size));
        free[buffer.memory] = free[buffer.memory].max(end);
    }
    let place = |buffer: &Buffer<'_>| {
        buffer.address.unwrap_or_else(|| {
            let at = free[buffer.memory];
            free[buffer.memory] = at.saturating_add(buffer.size);
            at
        })
    };
    program.buffers.iter().map(place).collect()
}

fn finding(finding: &Finding) -> FindingRow<'_> {
    FindingRow {
        code: finding.rule.code,
        class: finding.rule.class.name(),
        severity: finding.severity.name(),
        message: &finding.message,
        place: finding.place.to_string(),
    }
}
