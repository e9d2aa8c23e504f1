//! A run on one page: what came out, how long it took, what was busy, and where it waited.

use crate::SCHEMA_VERSION;
use crate::bars::{bar, cut, widest};
use crate::compare::{self, Comparison, NanSearch};
use crate::facts::{self, Facts};
use crate::statistics::Statistics;
use crate::style::{Paint, bytes, clean, count, rate, shape, share};
use chipless_model::{Node, Port, Program, QueueId, SyncId, TaskId, Time};
use chipless_sim::{State, Timeline};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// Lines of the longest tasks, of the longest waits.
const LONGEST: usize = 8;
/// Characters of a bar, and of a label at most.
const BAR: usize = 40;
const LABEL: usize = 48;
/// Characters of a layer's name up to which the column beside it stands in line.
const LAYER: usize = 64;

/// A run that came to its end.
#[derive(Debug)]
pub struct Run<'r, 'a> {
    /// The file as the user named it.
    pub file: &'r str,
    /// What ran.
    pub program: &'r Program<'a>,
    /// How it ran.
    pub timeline: &'r Timeline,
    /// What came out; empty when only times were asked for.
    pub outputs: Vec<Output>,
    /// Outputs beside what they should be, where somebody asked.
    pub compared: Option<Vec<Comparison>>,
    /// Where the first NaN or infinity was written, if anywhere, where somebody asked.
    pub first_nan: Option<NanSearch>,
    /// What the target knows besides: traffic, energy.
    pub facts: Vec<Node>,
    /// The seed of the random inputs, where there were any.
    pub seed: Option<u64>,
    /// Whatever the user should know before trusting the numbers, one sentence each.
    pub notes: Vec<String>,
    /// Time that the whole command took so far, in milliseconds.
    pub wall_ms: f64,
}

/// An output of a run.
#[derive(Debug)]
pub struct Output {
    /// Which one of the interface's outputs.
    pub port: usize,
    /// The file that it was written to.
    pub path: Option<String>,
    /// Its numbers.
    pub statistics: Statistics,
}

/// Time that queues spent waiting for one sync; queues that waited alike stand together.
struct Waited {
    queues: Vec<QueueId>,
    sync: SyncId,
    total: Time,
    times: usize,
    /// The longest of these waits, and who ended it.
    longest: Time,
    by: Option<TaskId>,
}

impl Run<'_, '_> {
    /// Bytes that all transfers moved: each completed task counts its largest demand, since a transfer that crosses
    /// several links moves its bytes once.
    pub fn moved_bytes(&self) -> u64 {
        let done = self
            .timeline
            .tasks
            .iter_enumerated()
            .filter(|(_, record)| record.state == State::Done);
        done.map(|(task, _)| {
            self.program
                .demands(task)
                .iter()
                .map(|d| d.bytes)
                .max()
                .unwrap_or(0)
        })
        .fold(0, u64::saturating_add)
    }

    fn port(&self, output: &Output) -> Option<&Port> {
        self.program.interface.outputs.get(output.port)
    }

    /// The page.
    pub fn text(&self, paint: Paint) -> String {
        let mut out = String::new();
        let Run {
            program, timeline, ..
        } = *self;
        let _ = writeln!(
            out,
            "{}: {} in {}, {} moved",
            paint.strong(self.file),
            count(timeline.completed(), "task"),
            paint.strong(timeline.end),
            bytes(self.moved_bytes())
        );
        self.outputs_text(&mut out, paint);
        let (compared, ports) = (self.compared.as_deref(), &program.interface.outputs);
        compare::text(&mut out, paint, compared, self.first_nan.as_ref(), ports);
        self.queues_text(&mut out, paint);
        self.resources_text(&mut out, paint);
        self.layers_text(&mut out, paint);
        self.longest_text(&mut out, paint);
        self.waited_text(&mut out, paint);
        if !self.facts.is_empty() {
            let _ = writeln!(out, "\n{}", paint.strong("facts"));
            out.push_str(&facts::text(&self.facts, paint));
        }
        if !self.notes.is_empty() {
            let _ = writeln!(out, "\n{}", paint.strong("notes"));
            for note in &self.notes {
                let _ = writeln!(out, "  {}", clean(note));
            }
        }
        if program.tasks.is_empty() {
            let _ = writeln!(out, "  the program has no tasks");
        }
        out
    }

    fn outputs_text(&self, out: &mut String, paint: Paint) {
        if self.outputs.is_empty() {
            return;
        }
        let _ = writeln!(out, "\n{}", paint.strong("outputs"));
        let ports: Vec<(&Output, &Port)> = self
            .outputs
            .iter()
            .filter_map(|o| Some((o, self.port(o)?)))
            .collect();
        let names = widest(ports.iter().map(|(_, p)| &*p.name));
        let types = widest(ports.iter().map(|(_, p)| p.element.name()));
        let shapes: Vec<String> = ports.iter().map(|(_, p)| shape(&p.shape)).collect();
        let shape_width = widest(shapes.iter().map(String::as_str));
        for ((output, port), shape) in ports.iter().zip(&shapes) {
            let (name, element) = (clean(&port.name), port.element.name());
            let _ = write!(
                out,
                "  {name:names$}  {element:types$}  {shape:shape_width$}  {}",
                output.statistics
            );
            if let Some(path) = &output.path {
                let _ = write!(out, "  {}", paint.dim(format_args!("→ {path}")));
            }
            out.push('\n');
        }
    }

    fn queues_text(&self, out: &mut String, paint: Paint) {
        let Run {
            program, timeline, ..
        } = *self;
        let (busy, tasks) = (timeline.busy(program), tasks_of_queues(program));
        let _ = writeln!(out, "\n{}", paint.strong("busy"));
        let names = widest(program.queues.iter().map(|q| &*q.name));
        for (id, queue) in program
            .queues
            .iter_enumerated()
            .filter(|(id, _)| tasks[id.index()] > 0)
        {
            let fraction = utilization(timeline, queue.servers, busy[id]);
            let servers = match queue.servers {
                0 | 1 => String::new(),
                servers => format!("  of {servers}"),
            };
            let _ = writeln!(
                out,
                "  {:names$}  {}  {:>5.1} %{servers}  {:>9}  {}",
                queue.name,
                paint.operation(bar(fraction, BAR)),
                fraction * 100.0,
                busy[id],
                paint.dim(count(tasks[id.index()], "task"))
            );
        }
    }

    fn resources_text(&self, out: &mut String, paint: Paint) {
        let Run {
            program, timeline, ..
        } = *self;
        if program.resources.is_empty() || timeline.end == Time::ZERO {
            return;
        }
        let _ = writeln!(out, "\n{}", paint.strong("carried"));
        let names = widest(program.resources.iter().map(|r| &*r.name));
        let seconds = timeline.end.0 as f64 * 1e-12;
        for (resource, carried) in program.resources.iter().zip(timeline.carried(program)) {
            let used = carried as f64 / seconds;
            let _ = writeln!(
                out,
                "  {:names$}  {}  {:>5.1} %  {:>9}  {} of {}",
                resource.name,
                paint.operation(bar(used / resource.capacity, BAR)),
                used / resource.capacity * 100.0,
                bytes(carried),
                rate(used),
                rate(resource.capacity)
            );
        }
    }

    /// What each layer took, in the order in which they started. Empty where no task names one.
    fn layers(&self) -> Vec<LayerReport<'_>> {
        let mut found: HashMap<&str, usize> = HashMap::new();
        let mut layers: Vec<(Time, LayerReport<'_>)> = Vec::new();
        for (id, task) in self.program.tasks.iter_enumerated() {
            let record = self.timeline.tasks[id];
            let Some(layer) = task.layer().filter(|_| record.state == State::Done) else {
                continue;
            };
            let at = *found.entry(layer).or_insert_with(|| {
                let report = LayerReport {
                    layer,
                    tasks: 0,
                    busy_ns: 0.0,
                };
                layers.push((record.start, report));
                layers.len() - 1
            });
            let (start, report) = &mut layers[at];
            *start = (*start).min(record.start);
            report.tasks += 1;
            report.busy_ns += (record.end - record.start).ns();
        }
        layers.sort_by_key(|(start, _)| *start);
        layers.into_iter().map(|(_, layer)| layer).collect()
    }

    fn layers_text(&self, out: &mut String, paint: Paint) {
        let layers = self.layers();
        if layers.is_empty() {
            return;
        }
        let _ = writeln!(out, "\n{}", paint.strong("layers"));
        let names = widest(layers.iter().map(|layer| layer.layer)).min(LAYER);
        let whole: f64 = layers.iter().map(|layer| layer.busy_ns).sum();
        for layer in &layers {
            let name = clean(layer.layer);
            let _ = writeln!(
                out,
                "  {name:names$}  {:>9}  {:>5.1} %  {}",
                Time::from_ns(layer.busy_ns),
                layer.busy_ns / whole.max(f64::MIN_POSITIVE) * 100.0,
                paint.dim(count(layer.tasks, "task"))
            );
        }
    }

    fn longest_text(&self, out: &mut String, paint: Paint) {
        let Run {
            program, timeline, ..
        } = *self;
        // The longest first; of equal ones the first task.
        let order = |(time, task): &(Time, TaskId)| (std::cmp::Reverse(*time), *task);
        let mut longest: Vec<(Time, TaskId)> = Vec::with_capacity(LONGEST + 1);
        for (task, record) in timeline
            .tasks
            .iter_enumerated()
            .filter(|(_, record)| record.state == State::Done)
        {
            let next = (record.end - record.start, task);
            if longest.len() < LONGEST
                || longest
                    .last()
                    .is_some_and(|last| order(&next) < order(last))
            {
                longest.insert(
                    longest.partition_point(|other| order(other) < order(&next)),
                    next,
                );
                longest.truncate(LONGEST);
            }
        }
        if longest.is_empty() {
            return;
        }
        let _ = writeln!(out, "\n{}", paint.strong("longest tasks"));
        let rows: Vec<(String, String, String)> = longest
            .iter()
            .map(|(_, task)| {
                let label = program.tasks[*task].label.as_deref().unwrap_or("");
                let operation = program.kernel(*task).operation();
                (
                    program.task_name(*task),
                    cut(&clean(&operation), LABEL),
                    cut(&clean(label), LABEL),
                )
            })
            .collect();
        let names = widest(rows.iter().map(|r| &*r.0));
        let operations = widest(rows.iter().map(|r| &*r.1));
        for ((time, _), (name, operation, label)) in longest.iter().zip(&rows) {
            let operation = paint.operation(format!("{operation:operations$}"));
            let line = format!(
                "  {name:names$}  {time:>9}  {:>7}  {operation}  {label}",
                share(*time, timeline.end)
            );
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }

    fn waited(&self) -> Vec<Waited> {
        let Run {
            program, timeline, ..
        } = *self;
        let mut waits: BTreeMap<(QueueId, SyncId), Waited> = BTreeMap::new();
        for (task, record) in timeline
            .tasks
            .iter_enumerated()
            .filter(|(_, record)| record.state != State::Waiting)
        {
            let time = record.start.saturating_sub(record.ready);
            let Some(stall) = record.stall.filter(|_| time > Time::ZERO) else {
                continue;
            };
            let queue = program.tasks[task].queue;
            let none = || Waited {
                queues: vec![queue],
                sync: stall.sync,
                total: Time::ZERO,
                times: 0,
                longest: Time::ZERO,
                by: None,
            };
            let waited = waits.entry((queue, stall.sync)).or_insert_with(none);
            waited.total += time;
            waited.times += 1;
            // Of equal ones the last.
            if time >= waited.longest {
                (waited.longest, waited.by) = (time, stall.by);
            }
        }
        let mut waited: Vec<Waited> = waits.into_values().collect();
        let alike = |w: &Waited| (std::cmp::Reverse(w.total), w.sync, w.by, w.times, w.longest);
        waited.sort_by_key(alike);
        waited.dedup_by(|next, kept| {
            let same = alike(next) == alike(kept);
            if same {
                kept.queues.append(&mut next.queues);
            }
            same
        });
        waited.truncate(LONGEST);
        waited
    }

    fn waited_text(&self, out: &mut String, paint: Paint) {
        let Run {
            program, timeline, ..
        } = *self;
        let waited = self.waited();
        if waited.is_empty() {
            return;
        }
        let _ = writeln!(out, "\n{}", paint.strong("longest waits"));
        let queues: Vec<String> = waited
            .iter()
            .map(|w| {
                cut(
                    &w.queues
                        .iter()
                        .map(|q| &*program.queues[*q].name)
                        .collect::<Vec<_>>()
                        .join(", "),
                    LABEL,
                )
            })
            .collect();
        let names = widest(queues.iter().map(String::as_str));
        let syncs = widest(waited.iter().map(|w| &*program.syncs[w.sync].name));
        for (w, queues) in waited.iter().zip(&queues) {
            let sync = &program.syncs[w.sync].name;
            let _ = write!(
                out,
                "  {queues:names$}  {:>9}  {:>7}  for {sync:syncs$}",
                w.total,
                share(w.total, timeline.end)
            );
            if w.times > 1 {
                let _ = write!(out, "  {} times, at most {}", w.times, w.longest);
            }
            if let Some(by) = w.by {
                let _ = write!(out, "  signalled by {}", program.task_name(by));
            }
            out.push('\n');
        }
    }

    /// The answer to `run --json`.
    pub fn report(&self) -> RunReport<'_> {
        let Run {
            program, timeline, ..
        } = *self;
        let (busy, tasks) = (timeline.busy(program), tasks_of_queues(program));
        RunReport {
            schema_version: SCHEMA_VERSION,
            program: self.file,
            name: &program.name,
            target: program.target,
            latency_ns: timeline.end.ns(),
            tasks: timeline.completed(),
            moved_bytes: self.moved_bytes(),
            outputs: self
                .outputs
                .iter()
                .filter_map(|output| {
                    let Port {
                        name,
                        element,
                        shape,
                        ..
                    } = self.port(output)?;
                    Some(OutputReport {
                        name,
                        dtype: element.name(),
                        shape,
                        path: output.path.as_deref(),
                    })
                })
                .collect(),
            queues: program
                .queues
                .iter_enumerated()
                .map(|(id, queue)| QueueReport {
                    name: &queue.name,
                    tasks: tasks[id.index()],
                    servers: queue.servers.max(1),
                    busy_ns: busy[id].ns(),
                    utilization: utilization(timeline, queue.servers, busy[id]),
                })
                .collect(),
            resources: program
                .resources
                .iter()
                .zip(timeline.carried(program))
                .map(|(resource, bytes)| ResourceReport {
                    name: &resource.name,
                    bytes,
                })
                .collect(),
            compare: self.compared.as_deref(),
            first_nan: self.first_nan.as_ref(),
            layers: self.layers(),
            facts: Facts(&self.facts),
            notes: &self.notes,
            seed: self.seed,
            wall_ms: self.wall_ms,
        }
    }
}

/// Share of its servers' time that a queue was busy.
fn utilization(timeline: &Timeline, servers: u32, busy: Time) -> f64 {
    let whole = timeline.end.ns() * f64::from(servers.max(1));
    if whole > 0.0 { busy.ns() / whole } else { 0.0 }
}

fn tasks_of_queues(program: &Program<'_>) -> Vec<usize> {
    let mut tasks = vec![0; program.queues.len()];
    program
        .tasks
        .iter()
        .for_each(|t| tasks[t.queue.index()] += 1);
    tasks
}

/// What ran and how long it took.
#[derive(Debug, Serialize)]
pub struct RunReport<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The file as the user named it.
    pub program: &'a str,
    /// The program's own name for itself; empty where it has none.
    pub name: &'a str,
    /// Name of the target.
    pub target: &'a str,
    /// From the start to the instant at which the program reports that it is done.
    pub latency_ns: f64,
    /// Tasks that ran.
    pub tasks: usize,
    /// Bytes that all transfers moved, each counted once.
    pub moved_bytes: u64,
    /// What came out, in the program's order; empty when only times were asked for.
    pub outputs: Vec<OutputReport<'a>>,
    /// Engines, in the program's order.
    pub queues: Vec<QueueReport<'a>>,
    /// What transfers shared.
    pub resources: Vec<ResourceReport<'a>>,
    /// Outputs beside what they should be; absent where nobody asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare: Option<&'a [Comparison]>,
    /// Where the first NaN or infinity was written, null where none was; absent where nobody asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_nan: Option<&'a NanSearch>,
    /// What each layer of the network took, in the order in which they started; absent where no task names its layer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerReport<'a>>,
    /// What the target knows besides, entry by entry beside the others; the target's documentation says which there are.
    #[serde(flatten)]
    pub facts: Facts<'a>,
    /// Whatever the user should know before trusting the numbers.
    pub notes: &'a [String],
    /// The seed of the random inputs; absent when every input was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Time that the command took, in milliseconds of the clock on the wall.
    pub wall_ms: f64,
}

/// An output.
#[derive(Debug, Serialize)]
pub struct OutputReport<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its element type.
    pub dtype: &'static str,
    /// Dimensions, outermost first.
    pub shape: &'a [u64],
    /// The file that it was written to, from the working directory; null where none was asked for.
    pub path: Option<&'a str>,
}

/// An engine.
#[derive(Debug, Serialize)]
pub struct QueueReport<'a> {
    /// Its name.
    pub name: &'a str,
    /// Tasks that it has.
    pub tasks: usize,
    /// How many tasks it works on at a time.
    pub servers: u32,
    /// Time that it spent on them; of several servers, the sum.
    pub busy_ns: f64,
    /// Share of its servers' time that it was busy: `busy_ns` / (`latency_ns` · `servers`), from 0 to 1; 0 of no time.
    pub utilization: f64,
}

/// A layer of the network.
#[derive(Debug, Serialize)]
pub struct LayerReport<'a> {
    /// As the compiler calls it.
    pub layer: &'a str,
    /// Its tasks that ran.
    pub tasks: usize,
    /// Time that they took together.
    pub busy_ns: f64,
}

/// A shared resource.
#[derive(Debug, Serialize)]
pub struct ResourceReport<'a> {
    /// Its name.
    pub name: &'a str,
    /// Bytes that it carried.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use chipless_model::ElementType;
    use chipless_sim::TimingOnly;

    fn with_run(check: impl FnOnce(&Run<'_, '_>)) {
        let program = example::pipeline();
        let outcome = chipless_sim::run(&chipless_sim::Verified::assume(&program), &mut TimingOnly);
        assert_eq!(outcome.end, Ok(()));
        let statistics = Statistics::of(ElementType::Float32, 2, &[0, 0, 128, 63, 0, 0, 0, 192]);
        check(&Run {
            file: "model.blob",
            program: &program,
            timeline: &outcome.timeline,
            outputs: vec![Output {
                port: 0,
                path: Some("out/y.npy".into()),
                statistics,
            }],
            compared: None,
            first_nan: None,
            facts: vec![],
            seed: Some(7),
            notes: vec!["x is random (seed 7)".into()],
            wall_ms: 1.25,
        });
    }

    #[test]
    fn the_page() {
        with_run(|run| insta::assert_snapshot!(run.text(Paint::PLAIN)));
    }

    #[test]
    fn json_has_the_contract() {
        with_run(|run| {
            insta::assert_snapshot!(serde_json::to_string_pretty(&run.report()).unwrap());
        });
    }

    #[test]
    fn a_transfer_over_two_links_moves_its_bytes_once() {
        with_run(|run| assert_eq!(run.moved_bytes(), 3 * 4096));
    }

    #[test]
    fn a_program_without_tasks_divides_by_nothing() {
        let (program, timeline) = (Program::default(), Timeline::default());
        let run = Run {
            file: "empty",
            program: &program,
            timeline: &timeline,
            outputs: vec![],
            compared: None,
            first_nan: None,
            facts: vec![],
            seed: None,
            notes: vec![],
            wall_ms: 0.0,
        };
        insta::assert_snapshot!(run.text(Paint::PLAIN));
    }
}
