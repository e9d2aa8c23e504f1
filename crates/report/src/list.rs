//! Disassembly: the tasks of a program with what they wait for, touch and signal.

use crate::attribution::{Attribution, LayerSource};
use crate::style::{Paint, clean, count, wait as wait_text};
use crate::uses::Uses;
use chipless_model::{
    Access, Action, Certainty, Condition, ConfigurationId, Direction, Moment, Pattern, PieceId,
    Program, QueueId, Signal, SyncId, TaskId,
};
use chipless_sim::Timeline;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;

/// Writes the tasks of one program, as text or as JSON.
pub struct Lister<'p, 'a> {
    program: &'p Program<'a>,
    uses: Uses,
    /// The run taken apart, where layers are known.
    run: Option<Attribution>,
    paint: Paint,
}

impl<'p, 'a> Lister<'p, 'a> {
    /// For this program. With the timeline of a run, waits and signals on a barrier also tell which of its uses they met.
    pub fn new(
        program: &'p Program<'a>,
        timeline: Option<&Timeline>,
        paint: Paint,
    ) -> Lister<'p, 'a> {
        Lister {
            program,
            uses: Uses::of(program, timeline),
            run: timeline
                .filter(|_| program.tasks.iter().any(|task| task.label.is_some()))
                .map(|timeline| Attribution::of(program, timeline)),
            paint,
        }
    }

    /// The layer of a task, and how it is known.
    pub fn layer(&self, task: TaskId) -> Option<(&'p str, LayerSource)> {
        match &self.run {
            Some(run) => run.layer_and_source(self.program, task),
            None => Some((self.program.layer(task)?, LayerSource::Label)),
        }
    }

    /// The heading above the tasks of a queue.
    pub fn queue(&self, queue: QueueId) -> String {
        let tasks = self
            .program
            .tasks
            .iter()
            .filter(|t| t.queue == queue)
            .count();
        let q = &self.program.queues[queue];
        let units = if q.servers > 1 {
            format!(", {} units", q.servers)
        } else {
            String::new()
        };
        format!(
            "{}: {}{units}\n",
            self.paint.strong(&q.name),
            count(tasks, "task")
        )
    }

    /// A task: one line that says what it is, then one for each wait, access and signal.
    pub fn text(&self, out: &mut String, task: TaskId) {
        let (program, paint) = (self.program, self.paint);
        let t = &program.tasks[task];
        let kernel = program.kernel(task);
        let _ = write!(
            out,
            "  {}  {}",
            paint.strong(program.task_name(task)),
            paint.operation(clean(&kernel.operation()))
        );
        let details = kernel.details();
        if !details.is_empty() {
            let _ = write!(out, "  {}", clean(&details));
        }
        if let Some(label) = &t.label {
            let _ = write!(out, "  \"{}\"", clean(label));
        }
        let place = match program.place(task).position {
            Some((line, column)) => format!("{}:{line}:{column}", program.parts[t.location.part]),
            None => format!(
                "{} @{:#x}",
                program.parts[t.location.part], t.location.offset
            ),
        };
        let _ = writeln!(out, "  {}", paint.dim(clean(&place)));
        for (i, wait) in program.waits(task).iter().enumerate() {
            let number = self
                .uses
                .wait(program, task, wait.sync)
                .map(|c| program.configurations[c].number);
            let _ = writeln!(
                out,
                "      wait {}{}",
                match wait.condition {
                    Condition::AtLeast(n) if kernel.waits_above(i) =>
                        format!("{} > {}", program.syncs[wait.sync].name, n - 1),
                    _ => wait_text(program, wait),
                },
                use_text(number)
            );
        }
        kernel.roles(&mut |access, role| {
            let _ = writeln!(out, "      {}", self.access(&access, role));
        });
        for (i, signal) in program.signals(task).iter().enumerate() {
            let _ = writeln!(
                out,
                "      {}",
                self.signal(signal, t.signals.start as usize + i)
            );
        }
    }

    fn access(&self, access: &Access, role: &str) -> String {
        let direction = match access.direction {
            Direction::Read => "r",
            Direction::Write => "w",
        };
        let may = match access.certainty {
            Certainty::Exact => "",
            Certainty::May => "  at most, data decides",
        };
        let space = if role.is_empty() { "" } else { "  " };
        format!(
            "{direction} {}{}{may}{space}{role}",
            clean(&self.program.buffers[access.buffer].name),
            pattern(&access.pattern)
        )
    }

    fn signal(&self, signal: &Signal, index: usize) -> String {
        let program = self.program;
        let name = |sync: SyncId| &program.syncs[sync].name;
        let used = || {
            use_text(
                self.uses
                    .signal(index)
                    .map(|c| program.configurations[c].number),
            )
        };
        let said = match signal.action {
            Action::Add(sync, n) => format!("add {n:+} to {}", name(sync)),
            Action::Consume(sync) => format!("consume {}{}", name(sync), used()),
            Action::Produce(sync) => format!("produce {}{}", name(sync), used()),
            Action::Configure(configuration) => {
                let c = &program.configurations[configuration];
                let counts = format!(
                    "{} and {}",
                    count(c.producers as usize, "producer"),
                    count(c.consumers as usize, "consumer")
                );
                format!(
                    "configure {}{}: {counts}",
                    name(c.barrier),
                    use_text(Some(c.number))
                )
            }
            Action::Release(piece) => format!("release {}", self.piece(piece)),
        };
        match signal.moment {
            Moment::Completion => said,
            Moment::Read => format!("{said} at the read"),
        }
    }

    /// `dpu0[4..7]`, the last one included as in the names of the tasks.
    fn piece(&self, piece: PieceId) -> String {
        let piece = &self.program.pieces[piece];
        let first = self.program.task_name(piece.first);
        match (first.strip_suffix(']'), self.program.tasks.get(piece.first)) {
            (Some(start), Some(task)) if piece.count > 1 => {
                format!("{start}..{}]", task.index + piece.count - 1)
            }
            _ => first,
        }
    }

    /// A task as JSON.
    pub fn report(&self, task: TaskId) -> TaskReport<'_> {
        let program = self.program;
        let t = &program.tasks[task];
        let kernel = program.kernel(task);
        let mut accesses = Vec::new();
        kernel.roles(&mut |access, role| accesses.push(self.access_report(&access, role)));
        let position = program.place(task).position;
        let layer = self.layer(task);
        TaskReport {
            name: program.task_name(task),
            queue: &program.queues[t.queue].name,
            index: t.index,
            operation: kernel.operation().into_owned(),
            details: kernel.details(),
            label: t.label.as_deref(),
            layer: layer.map(|(layer, _)| layer),
            layer_source: layer.map(|(_, source)| source),
            location: Location {
                part: &program.parts[t.location.part],
                offset: t.location.offset,
                size: t.location.size,
                line: position.map(|(line, _)| line),
                column: position.map(|(_, column)| column),
            },
            waits: (0..program.waits(task).len())
                .map(|index| self.wait_report(task, index))
                .collect(),
            accesses,
            signals: (0..program.signals(task).len())
                .map(|index| self.signal_report(task, index))
                .collect(),
            demands: program
                .demands(task)
                .iter()
                .map(|d| DemandReport {
                    resource: &program.resources[d.resource].name,
                    bytes: d.bytes,
                })
                .collect(),
            fixed_ns: t.fixed.ns(),
        }
    }

    fn access_report(&self, access: &Access, role: &'static str) -> AccessReport<'_> {
        let loops = access.pattern.loops.iter();
        AccessReport {
            direction: match access.direction {
                Direction::Read => "read",
                Direction::Write => "write",
            },
            buffer: &self.program.buffers[access.buffer].name,
            offset: access.pattern.offset,
            run: access.pattern.run,
            loops: loops
                .map(|l| LoopReport {
                    count: l.count,
                    stride: l.stride,
                })
                .collect(),
            exact: access.certainty == Certainty::Exact,
            role,
        }
    }

    fn wait_report(&self, task: TaskId, index: usize) -> WaitReport<'_> {
        let program = self.program;
        let wait = &program.waits(task)[index];
        let (condition, value) = match wait.condition {
            Condition::Equal(n) => ("equal", Some(n)),
            Condition::AtLeast(n) if program.kernel(task).waits_above(index) => {
                ("above", Some(n - 1))
            }
            Condition::AtLeast(n) => ("at-least", Some(n)),
            Condition::Lit => ("lit", None),
        };
        let used = self.uses.wait(program, task, wait.sync);
        WaitReport {
            sync: &program.syncs[wait.sync].name,
            condition,
            value,
            r#use: used.map(|used| program.configurations[used].number),
        }
    }

    fn signal_report(&self, task: TaskId, index: usize) -> SignalReport<'_> {
        let program = self.program;
        let signal = &program.signals(task)[index];
        let number = |c: ConfigurationId| program.configurations[c].number;
        let used = || {
            let place = program.tasks[task].signals.start as usize + index;
            self.uses.signal(place).map(number)
        };
        let name = |sync: SyncId| Some(&*program.syncs[sync].name);
        let (action, sync, value, used, piece) = match signal.action {
            Action::Add(sync, n) => ("add", name(sync), Some(n), None, None),
            Action::Consume(sync) => ("consume", name(sync), None, used(), None),
            Action::Produce(sync) => ("produce", name(sync), None, used(), None),
            Action::Configure(c) => {
                let barrier = name(program.configurations[c].barrier);
                ("configure", barrier, None, Some(number(c)), None)
            }
            Action::Release(piece) => ("release", None, None, None, Some(self.piece(piece))),
        };
        SignalReport {
            moment: match signal.moment {
                Moment::Read => "read",
                Moment::Completion => "completion",
            },
            action,
            sync,
            value,
            r#use: used,
            tasks: piece,
        }
    }
}

fn use_text(number: Option<u32>) -> String {
    number.map(|n| format!(" (use {n})")).unwrap_or_default()
}

/// `+0x18000  4×64 B stride 512`: offset, counts of the loops from the outermost in, the run, and the strides in the same order.
fn pattern(pattern: &Pattern) -> String {
    let mut text = format!("+{:#x}  ", pattern.offset);
    for l in pattern.loops.iter().rev() {
        let _ = write!(text, "{}×", l.count);
    }
    let _ = write!(text, "{} B", pattern.run);
    let strides: Vec<String> = pattern
        .loops
        .iter()
        .rev()
        .map(|l| l.stride.to_string())
        .collect();
    if !strides.is_empty() {
        let _ = write!(text, " stride {}", strides.join(", "));
    }
    text
}

/// A task in `list --format json`, which is an array of them.
#[derive(Debug, JsonSchema, Serialize)]
pub struct TaskReport<'a> {
    /// What people call it: `dpu0[3]`.
    pub name: String,
    /// Its queue.
    pub queue: &'a str,
    /// Which one of the queue's tasks, counted from 0.
    pub index: u32,
    /// What it does.
    pub operation: String,
    /// Shapes, types, options; in words.
    pub details: String,
    /// The compiler's name for it; null where the file has none.
    pub label: Option<&'a str>,
    /// The layer of the network that it is a part of; null where neither its label nor data flow says.
    pub layer: Option<&'a str>,
    /// How the layer is known; null without one.
    pub layer_source: Option<LayerSource>,
    /// Where the file has it.
    pub location: Location<'a>,
    /// Conditions, all of which must hold at its start.
    pub waits: Vec<WaitReport<'a>>,
    /// Bytes that it reads and writes.
    pub accesses: Vec<AccessReport<'a>>,
    /// What it signals, in this order.
    pub signals: Vec<SignalReport<'a>>,
    /// What it asks of shared resources.
    pub demands: Vec<DemandReport<'a>>,
    /// Time before it competes for shared resources, in nanoseconds.
    pub fixed_ns: f64,
}

/// A byte range of a part of the file.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Location<'a> {
    /// Which part.
    pub part: &'a str,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes.
    pub size: u32,
    /// Line of a text, from 1; null in binaries.
    pub line: Option<u32>,
    /// Column of a text, from 1, in characters; null in binaries.
    pub column: Option<u32>,
}

/// A condition.
#[derive(Debug, JsonSchema, Serialize)]
pub struct WaitReport<'a> {
    /// On what.
    pub sync: &'a str,
    /// `equal`, `above`, `at-least` or `lit`.
    pub condition: &'static str,
    /// What it compares with; null for `lit`.
    pub value: Option<i64>,
    /// Which use of a barrier a run met; null where no run came so far.
    pub r#use: Option<u32>,
}

/// The bytes from `offset + Σ i · stride`, `run` of them for every choice of `i < count` of each loop.
#[derive(Debug, JsonSchema, Serialize)]
pub struct AccessReport<'a> {
    /// `read` or `write`.
    pub direction: &'static str,
    /// In which buffer.
    pub buffer: &'a str,
    /// First byte.
    pub offset: u64,
    /// Contiguous bytes at each step.
    pub run: u64,
    /// Loops around the run, innermost first.
    pub loops: Vec<LoopReport>,
    /// Exactly these bytes; otherwise a subset that data decides.
    pub exact: bool,
    /// What they are to the operation, where that is known: `weights`, `weight table`; otherwise empty.
    pub role: &'static str,
}

/// A loop of an access.
#[derive(Debug, JsonSchema, Serialize)]
pub struct LoopReport {
    /// Iterations.
    pub count: u64,
    /// Bytes from one to the next.
    pub stride: i64,
}

/// A signal.
#[derive(Debug, JsonSchema, Serialize)]
pub struct SignalReport<'a> {
    /// `read` or `completion`.
    pub moment: &'static str,
    /// `add`, `set`, `consume`, `produce`, `configure` or `release`.
    pub action: &'static str,
    /// On what; null for `release`.
    pub sync: Option<&'a str>,
    /// What is added or set.
    pub value: Option<i64>,
    /// Which use of a barrier.
    pub r#use: Option<u32>,
    /// The tasks that a `release` lets go.
    pub tasks: Option<String>,
}

/// A need of a shared resource.
#[derive(Debug, JsonSchema, Serialize)]
pub struct DemandReport<'a> {
    /// Of what.
    pub resource: &'a str,
    /// Bytes.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use chipless_model::Loop;
    use chipless_sim::TimingOnly;

    fn listing(timeline: Option<&Timeline>, program: &Program<'_>) -> String {
        let lister = Lister::new(program, timeline, Paint::PLAIN);
        let mut out = String::new();
        for queue in program.queues.indices() {
            out.push_str(&lister.queue(queue));
            program
                .tasks
                .indices()
                .filter(|t| program.tasks[*t].queue == queue)
                .for_each(|t| lister.text(&mut out, t));
        }
        out
    }

    #[test]
    fn a_run_tells_the_uses_of_reused_barriers() {
        let program = example::pipeline();
        let outcome = chipless_sim::run(&chipless_sim::Verified::assume(&program), &mut TimingOnly);
        assert_eq!(outcome.end, Ok(()));
        insta::assert_snapshot!(listing(Some(&outcome.timeline), &program));
        let without = listing(None, &program);
        assert!(
            without.contains("wait barrier 0\n") && without.contains("produce barrier 2 (use 4)\n"),
            "{without}"
        );
    }

    #[test]
    fn json_of_a_task() {
        let program = example::pipeline();
        let outcome = chipless_sim::run(&chipless_sim::Verified::assume(&program), &mut TimingOnly);
        let lister = Lister::new(&program, Some(&outcome.timeline), Paint::PLAIN);
        let compute = program.task_named("dpu0[0]").unwrap();
        insta::assert_snapshot!(serde_json::to_string_pretty(&lister.report(compute)).unwrap());
    }

    #[test]
    fn patterns_read_from_the_outermost_loop() {
        let p = Pattern::new(
            0x18000,
            64,
            [
                Loop {
                    count: 4,
                    stride: 512,
                },
                Loop {
                    count: 3,
                    stride: -4096,
                },
            ],
        );
        assert_eq!(pattern(&p), "+0x18000  3×4×64 B stride -4096, 512");
        assert_eq!(pattern(&Pattern::contiguous(0, 7)), "+0x0  7 B");
    }
}
