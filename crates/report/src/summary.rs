//! A run on one page: what came out, how long it took, what was busy, and where it waited.

mod carried;
mod longest;
mod report;
mod used;

use crate::attribution::Attribution;
use crate::bars::{cut, widest};
use crate::compare::{self, Comparison, Searched};
use crate::facts;
use crate::findings::Checked;
use crate::schedule_trace::Compared;
use crate::statistics::Statistics;
use crate::style::{Paint, bytes, clean, count, quantity, shape, share};
use crate::timed_by::TimedBy;
use crate::why::{self, ModelNode, Ranked, WhatIf};
use chipless_model::{Finding, Node, Port, Program, Time};
use chipless_sim::{State, Timeline};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

pub use report::{Budgeted, OutputReport, QueueReport, ResourceReport, RunReport};

/// Characters of a layer's name up to which the column beside it stands in line.
const LAYER: usize = 64;
/// Layers that are shown.
const LAYERS: usize = 16;
/// Operations of a queue that are named where its part of the critical path stands.
const OPERATION_COUNT: usize = 3;
/// Characters for them at least.
const OPERATIONS: usize = 24;

/// A run that came to its end.
#[derive(Debug)]
pub struct Run<'r, 'a> {
    /// The file as the user named it.
    pub file: &'r str,
    /// What ran.
    pub program: &'r Program<'a>,
    /// How it ran.
    pub timeline: &'r Timeline,
    /// The machine that it was timed by, where its target has one.
    pub timed_by: Option<TimedBy>,
    /// The compiler's own estimate in nanoseconds, where the file carries one for this machine.
    pub estimate_ns: Option<f64>,
    /// Whether the times mean something: in a random order they do not, and the text leaves them out.
    pub is_timed: bool,
    /// What came out; empty when only times were asked for.
    pub outputs: Vec<Output>,
    /// The run taken apart.
    pub attribution: Cow<'r, Attribution>,
    /// Nodes of the model by the layers that come from them, where the model was given.
    pub nodes: BTreeMap<&'r str, ModelNode<'r>>,
    /// The run with other figures of the machine, the fastest first, where somebody asked.
    pub what_if: Option<Vec<WhatIf>>,
    /// The run with each figure twice as good, best first, where somebody asked.
    pub ranking: Option<Vec<Ranked>>,
    /// What makes the program faster on the machine as it is, where the target knows and somebody asked for the ranking.
    pub faster: Option<String>,
    /// What the run takes beside what it may, where somebody asked.
    pub budgets: Option<Vec<Budgeted>>,
    /// The run beside a vendor's schedule trace, where one was given.
    pub against: Option<Compared>,
    /// Outputs beside what they should be, where somebody asked.
    pub compared: Option<Vec<Comparison>>,
    /// Where numbers went wrong, where somebody asked.
    pub searched: Option<Searched>,
    /// What the values of the run showed.
    pub findings: Vec<Finding>,
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

/// As printed, a part of the critical path that no task covers; `None` for engines.
fn no_task(part: &str) -> Option<&'static str> {
    match part {
        why::START => Some(why::START),
        why::BETWEEN => Some("no task"),
        _ => None,
    }
}

impl Run<'_, '_> {
    /// Bytes that all transfers moved: each completed task counts its largest demand, since a transfer that crosses
    /// several links moves its bytes once.
    pub fn moved_bytes(&self) -> u64 {
        moved_bytes(self.program, self.timeline)
    }

    /// Time of the critical path that rests on costs which nobody knows.
    fn guessed(&self) -> Time {
        let tasks = self.program.guessed.iter();
        let rows = tasks.filter_map(|task| self.attribution.row(*task));
        let critical = rows.filter(|row| row.critical);
        critical.fold(Time::ZERO, |sum, row| sum + (row.end - row.start))
    }

    /// What the values of the run showed, as `check` shows its findings.
    fn checked(&self) -> Checked<'_> {
        Checked {
            path: self.file,
            target: Some(self.program.target),
            bytes: &[],
            parts: &[],
            findings: &self.findings,
        }
    }

    fn port(&self, output: &Output) -> Option<&Port> {
        self.program.interface.outputs.get(output.port)
    }

    /// The page, with bars that fit into lines of so many characters.
    pub fn text(&self, paint: Paint, width: usize) -> String {
        let mut out = String::new();
        let Run {
            program, timeline, ..
        } = *self;
        let took = if self.is_timed {
            format!("in {} (estimated)", paint.strong(timeline.end))
        } else {
            "in another order, without times".to_owned()
        };
        let _ = writeln!(
            out,
            "{}: {} {took}, {} moved",
            paint.strong(self.file),
            count(timeline.completed(), "task"),
            bytes(self.moved_bytes())
        );
        if let Some(by) = self.timed_by.as_ref().filter(|_| self.is_timed) {
            let estimate = self.estimate_ns.map(Time::from_ns);
            let estimate = estimate.map(|time| format!("; the compiler's own estimate: {time}"));
            let host = match program.start {
                Time::ZERO => "host not included".to_owned(),
                start => format!("{start} of the host included (inference.start)"),
            };
            let guessed = if program.guessed.is_empty() {
                String::new()
            } else {
                let part = share(self.guessed(), timeline.end);
                let lacks = match program.guess_lacks {
                    Time::ZERO => String::new(),
                    more => format!(
                        ": with costs for their bytes, the busiest unit works {more} longer"
                    ),
                };
                format!(
                    "; {} of the critical path is a guess{lacks} (see notes)",
                    part.trim()
                )
            };
            let rests = format!("{host}{}{guessed}", estimate.unwrap_or_default());
            for line in [format!("timed by {by}"), rests] {
                let _ = writeln!(out, "  {}", paint.dim(clean(&line)));
            }
        }
        self.outputs_text(&mut out, paint);
        let compared = self.compared.as_deref();
        let is_finite = |output: &Output| output.statistics.not_finite == 0;
        let are_finite = !self.outputs.is_empty() && self.outputs.iter().all(is_finite);
        compare::text(
            &mut out,
            paint,
            compared,
            self.searched.as_ref(),
            are_finite,
        );
        if self.is_timed {
            self.times_text(&mut out, paint, width);
        }
        if !self.findings.is_empty() {
            let _ = writeln!(out, "\n{}", paint.strong("findings"));
            out.push_str(self.checked().text(paint, true, false).trim_end());
            out.push('\n');
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

    /// Where the time goes.
    fn times_text(&self, out: &mut String, paint: Paint, width: usize) {
        self.busy_text(out, paint, width);
        self.carried_text(out, paint, width);
        self.transfers_text(out, paint);
        self.layers_text(out, paint);
        self.critical_text(out, paint, width);
        self.changes_text(out, paint);
        if let Some(against) = &self.against {
            against.text(out, paint);
        }
        self.longest_text(out, paint, width);
        self.waited_text(out, paint);
        if !self.facts.is_empty() {
            let note = paint.dim("times, cycles and energies are estimated");
            let _ = writeln!(out, "\n{}  {note}", paint.strong("facts"));
            out.push_str(&facts::text(&self.facts, paint));
        }
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
                let host = port.host_element.filter(|host| *host != port.element);
                let host = host.map_or_else(String::new, |host| format!(" as {host}"));
                let _ = write!(out, "  {}", paint.dim(format_args!("→ {path}{host}")));
            }
            out.push('\n');
        }
    }

    /// The layers in the order in which they started, each with its node of the model.
    fn layers(&self) -> Vec<why::Layer<'_>> {
        let mut layers = why::layers(self.program, &self.attribution);
        for layer in &mut layers {
            layer.node = self.nodes.get(layer.layer).copied();
        }
        layers
    }

    /// Where time goes by layer: those that the end of the run waits for first.
    fn layers_text(&self, out: &mut String, paint: Paint) {
        let mut layers = self.layers();
        if layers.is_empty() {
            return;
        }
        layers.sort_by(|a, b| {
            let longer = b.critical_ns.total_cmp(&a.critical_ns);
            longer.then(b.busy_ns.total_cmp(&a.busy_ns))
        });
        let (title, note) = (
            paint.strong("layers"),
            paint.dim("estimated, by their time on the critical path"),
        );
        let _ = writeln!(out, "\n{title}  {note}");
        let rest = layers.len().saturating_sub(LAYERS);
        layers.truncate(LAYERS);
        let outside = why::outside(self.program, &self.attribution);
        let parts: Vec<String> = outside
            .iter()
            .map(|part| format!("({})", part.part))
            .collect();
        let names = layers.iter().map(|layer| layer.layer);
        let names = widest(names.chain(parts.iter().map(String::as_str))).min(LAYER);
        let mut line = |name: &str, critical_ns: f64, busy_ns: f64, tasks: usize, node: &str| {
            let critical = Time::from_ns(critical_ns);
            let _ = writeln!(
                out,
                "  {name:names$}  {critical:>9}  {:>7}  {}",
                share(critical, self.timeline.end),
                paint.dim(format_args!(
                    "{} of {} in all{node}",
                    count(tasks, "task"),
                    Time::from_ns(busy_ns)
                ))
            );
        };
        for layer in &layers {
            let name = clean(layer.layer);
            let node = layer.node.map(|node| format!("  {node}"));
            let node = node.unwrap_or_default();
            let node = clean(&node);
            line(&name, layer.critical_ns, layer.busy_ns, layer.tasks, &node);
        }
        for (part, name) in outside.iter().zip(&parts) {
            line(name, part.critical_ns, part.busy_ns, part.tasks, "");
        }
        if rest > 0 {
            let text = format!("{} not shown: --json has all", count(rest, "other layer"));
            let _ = writeln!(out, "  {}", paint.dim(text));
        }
    }

    /// Where the critical path lies, and what its tasks do.
    fn critical_text(&self, out: &mut String, paint: Paint, width: usize) {
        let critical = why::critical(self.program, &self.attribution, self.timeline.end);
        if critical.by_queue.is_empty() {
            return;
        }
        let (title, tasks) = (
            paint.strong("critical path"),
            format!("{}, estimated", count(critical.tasks.count(), "task")),
        );
        let _ = writeln!(out, "\n{title}  {}", paint.dim(tasks));
        let least = self.least();
        self.engines_text(out, &critical);
        let parts = critical.by_engine.iter().filter(|part| part.ns >= least);
        let no_task: Vec<(String, Time)> = parts
            .filter_map(|part| {
                Some((
                    format!("({})", no_task(&part.engine)?),
                    Time::from_ns(part.ns),
                ))
            })
            .collect();
        let queues = critical.by_queue.iter().map(|row| row.queue);
        let names = widest(queues.chain(no_task.iter().map(|(name, _)| &**name)));
        let room = width.saturating_sub(names + 26).max(OPERATIONS);
        for row in critical.by_queue.iter().take(longest::LONGEST) {
            let time = Time::from_ns(row.ns);
            let part = share(time, self.timeline.end);
            let operations = cut(&self.operations(row), room);
            let line = format!(
                "  {:names$}  {time:>9}  {part:>7}  {}",
                row.queue,
                paint.operation(operations)
            );
            let _ = writeln!(out, "{}", line.trim_end());
        }
        for (name, time) in no_task {
            let part = share(time, self.timeline.end);
            let _ = writeln!(out, "  {name:names$}  {time:>9}  {part:>7}");
        }
        let rest = critical.by_queue.iter().skip(longest::LONGEST);
        let further = rest.clone().count();
        if further > 0 {
            let time = Time::from_ns(rest.map(|row| row.ns).sum());
            let text = format!(
                "{} together {}: --json has all",
                count(further, "further queue"),
                share(time, self.timeline.end)
            );
            let _ = writeln!(out, "  {}", paint.dim(text));
        }
    }

    /// The sums of each kind of engine and of each operation, where several queues are of one: the path changes between them.
    fn engines_text(&self, out: &mut String, critical: &why::Critical<'_>) {
        let is_engine = |part: &&why::EngineTime| no_task(&part.engine).is_none();
        let engines = critical.by_engine.iter();
        if engines.clone().filter(is_engine).count() >= critical.by_queue.len() {
            return;
        }
        let least = self.least();
        let parts = engines.filter(|part| part.ns >= least).map(|part| {
            let part_of_run = share(Time::from_ns(part.ns), self.timeline.end);
            let engine = no_task(&part.engine).unwrap_or(&part.engine);
            format!("{engine} {part_of_run}")
        });
        let parts: Vec<String> = parts.take(longest::LONGEST).collect();
        let _ = writeln!(out, "  by engine: {}", parts.join(", "));
        let parts = self.parts(&critical.by_operation, longest::LONGEST);
        let _ = writeln!(out, "  by operation: {parts}");
    }

    /// The operations of a queue's part of the critical path, with their shares of the run where there are several. Nothing where the queue's
    /// name says it.
    fn operations(&self, row: &why::QueueTime<'_>) -> String {
        if let [only] = &row.operations[..] {
            let says_it = row.queue.starts_with(only.name());
            return if says_it {
                String::new()
            } else {
                clean(only.name()).into_owned()
            };
        }
        self.parts(&row.operations, OPERATION_COUNT)
    }

    /// Operations with their shares of the run, at most so many.
    fn parts(&self, operations: &[why::OperationTime], most: usize) -> String {
        let least = self.least();
        let known = operations.iter().filter(|of| of.ns >= least);
        let shown = known.clone().take(most).map(|of| {
            let part = share(Time::from_ns(of.ns), self.timeline.end);
            format!("{} {part}", clean(of.name()))
        });
        let mut text = shown.collect::<Vec<_>>().join(", ");
        if known.count() > most {
            text.push_str(", …");
        }
        text
    }

    /// The least time in nanoseconds that is not 0.0 % of the run.
    fn least(&self) -> f64 {
        self.timeline.end.ns() / 2000.0
    }

    /// The run with other figures of the machine.
    fn changes_text(&self, out: &mut String, paint: Paint) {
        if let Some(changes) = &self.what_if {
            let mut note = "estimated; tasks and their order stay as compiled: compiling again may gain more or less".to_owned();
            let others = self
                .timed_by
                .as_ref()
                .map(|by| by.other_calibrations.join(", "));
            if let Some(others) = others.filter(|others| !others.is_empty()) {
                let _ = write!(note, "; --calibration {others} may rank otherwise");
            }
            note.push_str(&gained_nothing(changes));
            let (title, note) = (paint.strong("what if"), paint.dim(note));
            let _ = writeln!(out, "\n{title}  {note}");
            let names = widest(changes.iter().map(|change| &*change.change));
            for what_if in changes {
                let WhatIf {
                    change,
                    was,
                    how,
                    latency_ns,
                    speedup,
                } = what_if;
                let time = Time::from_ns(*latency_ns);
                let was = was.as_ref().map(|was| {
                    let number = was.split(' ').next().and_then(|n| n.parse().ok());
                    let is_factor = change.ends_with('x') && number == Some(0.0);
                    let in_vain = if is_factor {
                        ", which no factor changes"
                    } else {
                        ""
                    };
                    format!("was {}{in_vain}", self::was(change, was))
                });
                let bound = what_if.bound().map(str::to_owned);
                let said = [was, how.clone(), bound];
                let said: Vec<String> = said.into_iter().flatten().collect();
                let said = if said.is_empty() {
                    String::new()
                } else {
                    format!("  {}", paint.dim(said.join("; ")))
                };
                let _ = writeln!(
                    out,
                    "  {change:names$}  {time:>9}  {}{said}",
                    why::speed(*speedup)
                );
            }
        }
        let Some(ranking) = &self.ranking else { return };
        let title = paint.strong("if this were twice as good");
        let _ = writeln!(
            out,
            "\n{title}  {}",
            paint.dim("estimated: the run again, with one parameter changed")
        );
        let won: Vec<&Ranked> = ranking.iter().filter(|row| row.gain > 1.0005).collect();
        let (rows, further) = won.split_at(won.len().min(longest::LONGEST));
        let names = widest(rows.iter().map(|row| &*row.figure));
        for Ranked {
            figure,
            change,
            latency_ns,
            gain,
        } in rows
        {
            let time = Time::from_ns(*latency_ns);
            let _ = writeln!(
                out,
                "  {figure:names$}  {change:>4}  {time:>9}  {}",
                why::speed(*gain)
            );
        }
        if let Some(best) = further.first() {
            let each = if further.len() == 1 { "" } else { "each " };
            let text = format!(
                "{}, {each}at most {}: --json has them",
                count(further.len(), "further parameter"),
                why::speed(best.gain)
            );
            let _ = writeln!(out, "  {}", paint.dim(text));
        }
        let least = ranking.len() - won.len();
        if least > 0 {
            let text = format!(
                "{} would save less than 0.05 %",
                count(least, "other parameter")
            );
            let _ = writeln!(out, "  {}", paint.dim(text));
        }
        // Of a machine that was given, its own file or name; the target's otherwise.
        let by = self.timed_by.as_ref();
        let machine = by.map(|by| by.file.as_deref().unwrap_or(&by.name));
        let explained = format!(
            "chipless machine {} explains each parameter",
            machine.unwrap_or(self.program.target)
        );
        let _ = writeln!(out, "  {}", paint.dim(explained));
        if let Some(faster) = &self.faster {
            let _ = writeln!(out, "\n{}", paint.strong("faster without another machine"));
            let _ = writeln!(out, "  {}", clean(faster));
        }
    }
}

/// What a change changes, with its unit. Machines that a mesh became have no units beside their values.
fn was(change: &str, value: &str) -> String {
    let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
    let key = change.split('=').next().unwrap_or_default();
    let number = number.strip_suffix(".0").unwrap_or(number);
    match unit {
        "" if key.ends_with("bytes_per_second") => quantity(number, "bytes/s"),
        unit => quantity(number, unit),
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

/// What stands behind slower changes, because it gained nothing where it was measured.
fn gained_nothing(changes: &[WhatIf]) -> String {
    let time = |change: &WhatIf| Time::from_ns(change.latency_ns);
    let is_slower_first = |pair: &[WhatIf]| time(&pair[0]) > time(&pair[1]);
    let Some(at) = changes.windows(2).position(is_slower_first) else {
        return String::new();
    };
    let last = changes[at + 1..].iter().map(|change| &*change.change);
    let last = last.collect::<Vec<_>>().join(", ");
    format!("; the last, {last}, gained nothing on measured chips")
}

/// Bytes that all transfers of a run moved, each counted once.
pub fn moved_bytes(program: &Program<'_>, timeline: &Timeline) -> u64 {
    let done = timeline
        .tasks
        .iter_enumerated()
        .filter(|(_, record)| record.state == State::Done);
    done.map(|(task, _)| {
        program
            .demands(task)
            .iter()
            .map(|d| d.bytes)
            .max()
            .unwrap_or(0)
    })
    .fold(0, u64::saturating_add)
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
            outputs: vec![Output {
                port: 0,
                path: Some("out/y.npy".into()),
                statistics,
            }],
            seed: Some(7),
            notes: vec!["x is random (seed 7)".into()],
            wall_ms: 1.25,
            ..example::run(&program, &outcome.timeline)
        });
    }

    #[test]
    fn the_page() {
        with_run(|run| insta::assert_snapshot!(run.text(Paint::PLAIN, usize::MAX)));
    }

    /// What is said of cores that work on so many tasks each.
    fn cores(tasks: &[usize], width: usize) -> String {
        let program = example::cores(tasks);
        let outcome = chipless_sim::run(&chipless_sim::Verified::assume(&program), &mut TimingOnly);
        assert_eq!(outcome.end, Ok(()));
        example::run(&program, &outcome.timeline).text(Paint::PLAIN, width)
    }

    #[test]
    fn what_is_alike_is_one_line() {
        let text = cores(&[1; 16], usize::MAX);
        let line = |name: &str| text.lines().filter(|line| line.contains(name)).count();
        assert!(text.contains("  core0–15.pe  "), "{text}");
        assert!(text.contains("1 task, each of 16"), "{text}");
        assert!(text.contains("* core0.pe[0] and 15 like it  "), "{text}");
        assert_eq!(line("like it"), 1, "{text}");
    }

    #[test]
    fn many_of_a_kind_are_one_line_with_their_spread() {
        let many: Vec<usize> = (1..=16).collect();
        let text = cores(&many, usize::MAX);
        let spread = "53.1 %   12.75 µs  1 to 16 tasks, mean of 16: 6.2 to 100.0 %";
        assert!(text.contains(spread), "{text}");
        // A few that differ have a line each.
        let text = cores(&[1, 2, 3], usize::MAX);
        assert!(
            ["core0.pe  ", "core1.pe  ", "core2.pe  "]
                .iter()
                .all(|name| text.contains(name)),
            "{text}"
        );
    }

    #[test]
    fn bars_fit_the_width() {
        for width in [60, 80, 100, 200] {
            let text = cores(&[1, 2, 3], width);
            let long = text
                .lines()
                .find(|line| line.contains('█') && line.chars().count() > width);
            assert_eq!(long, None, "{width}");
        }
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
        let run = example::run(&program, &timeline);
        insta::assert_snapshot!(run.text(Paint::PLAIN, usize::MAX));
    }
}
