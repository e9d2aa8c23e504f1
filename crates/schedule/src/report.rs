//! What a search found, for people.

use crate::compare::Comparison;
use crate::machine::Machine;
use crate::model::Cost;
use crate::network::Network;
use crate::tree::Tree;
use chipless_model::{Time, escape};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;

/// The answer to `schedule --json`.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Report {
    /// Version of the form.
    pub schema_version: u32,
    /// The network's name.
    pub network: String,
    /// The machine's name.
    pub machine: String,
    /// Cycles in a second of that machine.
    pub clock_hz: f64,
    /// Layers that are scheduled.
    pub layers: usize,
    /// Images that are computed at once.
    pub batch: i64,
    /// Images that are computed: the batch, or as many as `--shape` gives. Layers are repeated for those, and counted as often.
    pub images: i64,
    /// What was minimised.
    pub objective: &'static str,
    /// Seed of the search.
    pub seed: u64,
    /// Threads that searched.
    pub threads: usize,
    /// How long it was searched.
    pub seconds: f64,
    /// Trees that were evaluated.
    pub trees: u64,
    /// How many a second.
    pub trees_per_second: f64,
    /// Why the search ended: `time`, `trees`, `interrupted` or `exhausted`; `evaluated` where a tree was given.
    pub stopped: &'static str,
    /// The schedule in SET's model.
    pub model: ModelFigures,
    /// What no schedule is below in that model.
    pub lower_bound: Figures,
    /// When the search found better schedules.
    pub history: Vec<Improvement>,
    /// The schedule as Chipless runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Figures>,
    /// The next best schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner_up: Option<RunnerUp>,
    /// The schedule's outputs beside those of the network in floating point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

/// What a schedule takes.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Figures {
    /// Energy in picojoules.
    pub energy_pj: f64,
    /// Delay in cycles.
    pub delay_cycles: f64,
    /// Their product.
    pub edp: f64,
}

impl Figures {
    /// Of an energy in picojoules and a delay in cycles.
    pub fn new(energy_pj: f64, delay_cycles: f64) -> Figures {
        Figures {
            energy_pj,
            delay_cycles,
            edp: energy_pj * delay_cycles,
        }
    }
}

/// What a schedule takes in SET's model.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct ModelFigures {
    /// Energy in picojoules.
    pub energy_pj: f64,
    /// Delay in cycles.
    pub delay_cycles: i64,
    /// Their product.
    pub edp: f64,
    /// Bytes times the links that they cross.
    pub byte_hops: i64,
    /// Bytes to and from DRAM.
    pub dram_bytes: i64,
    /// Bytes over the busiest link.
    pub max_link_bytes: i64,
}

impl From<&Cost> for ModelFigures {
    fn from(cost: &Cost) -> ModelFigures {
        ModelFigures {
            energy_pj: cost.energy,
            delay_cycles: cost.delay,
            edp: cost.edp(),
            byte_hops: cost.hops,
            dram_bytes: cost.dram,
            max_link_bytes: cost.busiest_link,
        }
    }
}

impl ModelFigures {
    fn figures(&self) -> Figures {
        Figures::new(self.energy_pj, self.delay_cycles as f64)
    }
}

/// A step of the search.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Improvement {
    /// When, from the start.
    pub seconds: f64,
    /// The best product of energy and delay from then on.
    pub edp: f64,
}

/// The next best schedule.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct RunnerUp {
    /// In SET's model.
    pub model: ModelFigures,
    /// As Chipless runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Figures>,
}

/// The report as text.
pub fn text(report: &Report) -> String {
    let batch = if report.images == report.batch {
        format!("batch {}", report.batch)
    } else {
        format!(
            "{} images (layers that take one at a time are repeated)",
            report.images
        )
    };
    let mut text = format!(
        "{}: {}, {batch}, on {}\n",
        report.network,
        chipless_model::count(report.layers, "layer"),
        report.machine
    );
    let of_model = report.model.figures();
    let rows = [
        (
            report.replay,
            "replay",
            "the result: as `run` times it, with waits and the queue of DRAM",
        ),
        (
            Some(of_model),
            "SET's model",
            "to compare with SET: without waits, a byte for each element",
        ),
        (
            Some(report.lower_bound),
            "lower bound",
            "of SET's model, not of the result",
        ),
    ];
    for (figures, title, meaning) in rows {
        if let Some(of) = figures {
            let _ = writeln!(
                text,
                "  {title:11}  {:>10}  {:>10.0} cycles  {:>10}  {meaning}",
                Time::from_ns(of.delay_cycles / report.clock_hz * 1e9).to_string(),
                of.delay_cycles,
                energy(of.energy_pj),
            );
        }
    }
    let _ = writeln!(
        text,
        "{} trees in {:.1} s; stopped: {}",
        report.trees, report.seconds, report.stopped,
    );
    for output in report
        .comparison
        .iter()
        .flat_map(|compared| &compared.outputs)
    {
        let number = |value: Option<f64>, form: &dyn Fn(f64) -> String| {
            value.map_or_else(|| "undefined (zeros)".to_owned(), form)
        };
        let _ = writeln!(
            text,
            "output {}: cosine {}, relative error {} against the floating-point network",
            output.name,
            number(output.cosine, &|v| format!("{v:.6}")),
            number(output.relative_error, &|v| format!("{v:.2e}")),
        );
    }
    text
}

/// `0.2410 mJ`: an energy in the largest of pJ, nJ, µJ, mJ and J that leaves a whole digit.
fn energy(pj: f64) -> String {
    let units = [(1e12, "J"), (1e9, "mJ"), (1e6, "µJ"), (1e3, "nJ")];
    let fitting = units.iter().find(|(unit, _)| pj >= *unit);
    let (unit, name) = fitting.unwrap_or(&(1.0, "pJ"));
    format!("{:.3} {name}", pj / unit)
}

/// The report as a page: figures, and what bounds each segment.
pub fn page(network: &Network, machine: &Machine, tree: &Tree, report: &Report) -> String {
    let mut page = format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>{0}</title>\n<style>body{{font:15px sans-serif;margin:2em;max-width:70em}}\
         table{{border-collapse:collapse}}td,th{{border:1px solid #ccc;padding:.2em .6em;text-align:right}}\
         td:first-child,th:first-child{{text-align:left}}pre{{background:#f6f6f6;padding:1em}}</style>\n<h1>{0} on {1}</h1>\n<pre>{2}</pre>\n",
        escape(&network.name),
        escape(&machine.name),
        escape(&text(report))
    );
    let Ok(segments) = crate::segments(network, machine, tree) else {
        return page;
    };
    page.push_str("<h2>Segments</h2>\n<table><tr><th>layers<th>energy, pJ<th>cycles<th>DRAM, bytes<th>cycles of DRAM<th>cycles of the busiest link<th>bound by</tr>\n");
    for segment in segments {
        let _ = writeln!(
            page,
            "<tr><td>{}<td>{:.4e}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
            escape(&segment.layers),
            segment.energy,
            segment.cycles,
            segment.dram,
            segment.dram_cycles,
            segment.link_cycles,
            segment.bound_by(),
        );
    }
    page.push_str("</table>\n");
    page.push_str(
        "<p>A segment that is bound by DRAM waits for its bytes. A larger <code>--batch</code> loads weights once for more images; \
         a larger <code>l2.bytes</code> of the machine lets more results stay on the cores; a longer search (<code>--seconds</code>) finds \
         trees that do; a higher <code>dram.bytes_per_cycle</code> shortens the wait itself.</p>\n",
    );
    page
}
