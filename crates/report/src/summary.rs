//! A run on one page: what came out, how long it took, what was busy, and where it waited.

mod report;

use crate::attribution::Attribution;
use crate::bars::{bar, cut, widest};
use crate::compare::{self, Comparison, NanSearch};
use crate::facts;
use crate::schedule_trace::Compared;
use crate::statistics::Statistics;
use crate::style::{Paint, bytes, clean, count, rate, shape, share};
use crate::why::{self, Ranked, WhatIf};
use chipless_model::{Node, Port, Program, QueueId, SyncId, TaskId, Time};
use chipless_sim::{State, Timeline};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

pub use report::{OutputReport, QueueReport, ResourceReport, RunReport};

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
    /// The run taken apart.
    pub attribution: Cow<'r, Attribution>,
    /// The run with other figures of the machine, where somebody asked.
    pub what_if: Option<Vec<WhatIf>>,
    /// The run with each figure twice as good, best first, where somebody asked.
    pub ranking: Option<Vec<Ranked>>,
    /// The run beside a vendor's schedule trace, where one was given.
    pub against: Option<Compared>,
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
        self.critical_text(&mut out, paint);
        self.changes_text(&mut out, paint);
        if let Some(against) = &self.against {
            against.text(&mut out, paint);
        }
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

    fn layers_text(&self, out: &mut String, paint: Paint) {
        let layers = why::layers(self.program, &self.attribution);
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

    /// Where the critical path lies.
    fn critical_text(&self, out: &mut String, paint: Paint) {
        let critical = why::critical(self.program, &self.attribution);
        if critical.by_queue.is_empty() {
            return;
        }
        let (title, tasks) = (
            paint.strong("critical path"),
            count(critical.tasks.count(), "task"),
        );
        let _ = writeln!(out, "\n{title}  {}", paint.dim(tasks));
        let names = widest(critical.by_queue.iter().map(|row| row.queue));
        for row in critical.by_queue.iter().take(LONGEST) {
            let time = Time::from_ns(row.ns);
            let part = share(time, self.timeline.end);
            let _ = writeln!(out, "  {:names$}  {time:>9}  {part:>7}", row.queue);
        }
    }

    /// The run with other figures of the machine.
    fn changes_text(&self, out: &mut String, paint: Paint) {
        if let Some(changes) = &self.what_if {
            let _ = writeln!(out, "\n{}", paint.strong("what if"));
            let names = widest(changes.iter().map(|change| &*change.change));
            for WhatIf {
                change,
                latency_ns,
                speedup,
            } in changes
            {
                let time = Time::from_ns(*latency_ns);
                let _ = writeln!(
                    out,
                    "  {change:names$}  {time:>9}  {speedup:.3} times as fast"
                );
            }
        }
        let Some(ranking) = &self.ranking else { return };
        let title = paint.strong("if this were twice as good");
        let _ = writeln!(
            out,
            "\n{title}  {}",
            paint.dim("the run again, with one figure changed")
        );
        let won = |row: &&Ranked| row.gain > 1.0005;
        let rows: Vec<&Ranked> = ranking.iter().filter(won).take(LONGEST).collect();
        let names = widest(rows.iter().map(|row| &*row.figure));
        for Ranked {
            figure,
            change,
            latency_ns,
            gain,
        } in &rows
        {
            let time = Time::from_ns(*latency_ns);
            let _ = writeln!(
                out,
                "  {figure:names$}  {change:>4}  {time:>9}  {gain:.3} times as fast"
            );
        }
        let rest = ranking.iter().filter(|row| !won(row)).count();
        if rest > 0 {
            let _ = writeln!(
                out,
                "  {}",
                paint.dim(format_args!(
                    "{} would win less than 0.05 %",
                    count(rest, "other figure")
                ))
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
            attribution: Cow::Owned(Attribution::of(&program, &outcome.timeline)),
            what_if: None,
            ranking: None,
            against: None,
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
            attribution: Cow::Owned(Attribution::of(&program, &timeline)),
            what_if: None,
            ranking: None,
            against: None,
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
