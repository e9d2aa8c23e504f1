//! A run for programs: the answer to `run --json`.

use super::{Run, tasks_of_queues, utilization};
use crate::SCHEMA_VERSION;
use crate::compare::{Clipped, Comparison, NanSearch};
use crate::facts::Facts;
use crate::findings::{FileReport, FindingReport};
use crate::schedule_trace::Compared;
use crate::statistics::Statistics;
use crate::style::{bytes, clean};
use crate::timed_by::TimedBy;
use crate::transfers::{Transfers, transfers};
use crate::why::{self, Ranked, WhatIf};
use chipless_model::{Port, Time};
use schemars::JsonSchema;
use serde::Serialize;

impl Run<'_, '_> {
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
            timed_by: self.timed_by.as_ref(),
            guessed_tasks: program.guessed.len(),
            guessed_ns: self.guessed().ns(),
            guess_lacks_ns: program.guess_lacks.ns(),
            estimate_ns: self.estimate_ns,
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
                        statistics: OutputNumbers::of(&output.statistics),
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
            first_nan: self.searched.as_ref().map(|searched| &searched.first_nan),
            clipped: self.searched.as_ref().map(|searched| &searched.clipped),
            layers: self.layers(),
            outside_layers: why::outside(program, &self.attribution),
            critical: why::critical(program, &self.attribution, self.timeline.end),
            transfers: transfers(program, &self.attribution),
            roofline: why::roofline(program, &self.attribution),
            what_if: self.what_if.as_deref(),
            ranking: self.ranking.as_deref(),
            budgets: self.budgets.as_deref(),
            compared: self.against.as_ref(),
            findings: FileReport::from(&self.checked()).findings,
            facts: Facts(&self.facts),
            notes: &self.notes,
            seed: self.seed,
            wall_ms: self.wall_ms,
        }
    }
}

/// What a run takes, beside what it may.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Budgeted {
    /// As it was asked for: `peak.cmx=95%`.
    pub budget: String,
    /// The memory that a peak is of, the fullest one of those that the budget names; absent for other budgets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Unit of both: `ns` or `bytes`.
    pub unit: &'static str,
    /// What the run takes.
    pub found: f64,
    /// What it may take at most.
    pub limit: f64,
    /// Whether it does.
    pub within: bool,
}

impl Budgeted {
    /// One line: `latency=2ms: 2.100 ms, 5.0 % over the budget`.
    pub fn text(&self) -> String {
        let shown = |value: f64| match self.unit {
            "ns" => Time::from_ns(value).to_string(),
            _ => bytes(value.round() as u64),
        };
        let (mut found, limit) = (shown(self.found), shown(self.limit));
        // `peak.cmx` is that of one tile.
        if let Some(memory) = self
            .memory
            .as_ref()
            .filter(|name| !self.budget.contains(&format!("peak.{name}=")))
        {
            found += &format!(" in {}", clean(memory));
        }
        if self.within {
            format!("{}: {found} of {limit}", self.budget)
        } else {
            // Nothing has a share of a limit of 0.
            let share = (self.limit > 0.0).then(|| (self.found / self.limit - 1.0) * 100.0);
            let over = share.map_or_else(String::new, |share| format!("{share:.1} % "));
            format!("{}: {found} of {limit}, {over}over the budget", self.budget)
        }
    }
}

/// What ran and how long it took.
#[derive(Debug, JsonSchema, Serialize)]
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
    /// The machine whose parameters the times rest on; absent where the target has none. The host is not part of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_by: Option<&'a TimedBy>,
    /// Tasks whose costs nobody knows; `notes` say which, and what holds their place.
    pub guessed_tasks: usize,
    /// Their time on the critical path.
    pub guessed_ns: f64,
    /// How much longer units would be busy if the guessed costs that leave out bytes counted them at the rate that `notes` name: for each such cost that of
    /// its busiest unit, added up.
    pub guess_lacks_ns: f64,
    /// The compiler's own estimate of the latency, where the file carries one for the machine that the run was timed by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate_ns: Option<f64>,
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
    /// Computed elements that are the largest float16, as what is beyond it is stored; absent where nobody asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clipped: Option<&'a Clipped>,
    /// What each layer of the network took, in the order in which they started; absent where no task names its layer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<why::Layer<'a>>,
    /// Tasks that belong to no layer; absent where no layers are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outside_layers: Vec<why::Outside>,
    /// The chain of tasks and waits that the latency is the sum of.
    pub critical: why::Critical<'a>,
    /// What the transfers carry, what the critical path spends the most time on first; empty where there are none.
    pub transfers: Vec<Transfers>,
    /// What bounds each operation, that with the most time first.
    pub roofline: Vec<why::Roof>,
    /// The run with other figures, each by itself, the fastest first; absent where nobody asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what_if: Option<&'a [WhatIf]>,
    /// What the run takes beside what it may (`--budget`); absent where nobody asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budgets: Option<&'a [Budgeted]>,
    /// The run with each figure of the machine twice as good, best first; absent where nobody asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranking: Option<&'a [Ranked]>,
    /// The run beside a vendor's schedule trace; absent where none was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<&'a Compared>,
    /// What the values of the run showed, as `check` reports its findings; absent where they showed nothing, and where only times were
    /// asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FindingReport<'a>>,
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
#[derive(Debug, JsonSchema, Serialize)]
pub struct OutputReport<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its element type.
    pub dtype: &'static str,
    /// Dimensions, outermost first.
    pub shape: &'a [u64],
    /// The file that it was written to, from the working directory; null where none was asked for.
    pub path: Option<&'a str>,
    /// Its numbers.
    pub statistics: OutputNumbers,
}

/// The numbers of an output, of its finite elements; null where it has none.
#[derive(Debug, JsonSchema, Serialize)]
pub struct OutputNumbers {
    /// Smallest.
    pub min: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Average.
    pub mean: Option<f64>,
    /// Elements that are infinite or not a number.
    pub not_finite: u64,
}

impl OutputNumbers {
    fn of(statistics: &Statistics) -> OutputNumbers {
        let is_any = statistics.elements > statistics.not_finite;
        let known = |value: f64| is_any.then_some(value);
        OutputNumbers {
            min: known(statistics.min),
            max: known(statistics.max),
            mean: known(statistics.mean),
            not_finite: statistics.not_finite,
        }
    }
}

/// An engine.
#[derive(Debug, JsonSchema, Serialize)]
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

/// A shared resource.
#[derive(Debug, JsonSchema, Serialize)]
pub struct ResourceReport<'a> {
    /// Its name.
    pub name: &'a str,
    /// Bytes that it carried.
    pub bytes: u64,
}
