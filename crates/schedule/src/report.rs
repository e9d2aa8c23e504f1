//! What a search found, for people.

use crate::SegmentCost;
use crate::compare::Comparison;
use crate::emit::{DramCycles, Floor, SegmentTime};
use crate::model::Cost;
use chipless_model::{Time, escape};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;

/// The answer to `schedule --json`.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Report {
    /// Version of the form.
    pub schema_version: u32,
    /// The network's file.
    pub file: String,
    /// The network's name in its file.
    pub network: String,
    /// The machine's name.
    pub machine: String,
    /// Cycles in a second of that machine.
    pub clock_hz: f64,
    /// Layers that are scheduled.
    pub layers: usize,
    /// Images that are computed at once.
    pub batch: i64,
    /// Whether layers are repeated for each image, and counted as often: then weights are loaded again for each.
    pub layers_repeated: bool,
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
    /// How many of them the replay tried; null without a search by the replay.
    pub replayed_trees: Option<u64>,
    /// How many a second.
    pub trees_per_second: f64,
    /// Why the search ended: `time`, `trees`, `interrupted` or `exhausted`; `evaluated` where a tree was given.
    pub stopped: &'static str,
    /// The schedule in SET's model.
    pub model: ModelFigures,
    /// What no schedule is below in that model; of another measure than `replay`.
    pub lower_bound: Figures,
    /// When the search found better schedules.
    pub history: Vec<Improvement>,
    /// The schedule as Chipless runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Figures>,
    /// One layer after another, as Chipless runs it: what the search has to beat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer_by_layer: Option<Figures>,
    /// What no schedule is faster than, as Chipless runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_floor: Option<ReplayFloor>,
    /// What the queue of DRAM does, as Chipless runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_dram: Option<ReplayDram>,
    /// The next best schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner_up: Option<RunnerUp>,
    /// The schedule's outputs beside those of the network in floating point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

impl Report {
    /// The file, and the name in it, which exporters give, where that says more.
    fn title(&self) -> String {
        let stem = self
            .file
            .rsplit_once('.')
            .map_or(&*self.file, |(stem, _)| stem);
        if self.network.is_empty() || self.network == stem {
            return self.file.clone();
        }
        format!("{} ({})", self.file, self.network)
    }
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

/// The least that a schedule moves and computes.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct ReplayFloor {
    /// Cycles that no schedule is below: the longer of both.
    pub delay_cycles: i64,
    /// Bytes that cross DRAM once: weights, inputs and outputs.
    pub dram_bytes: i64,
    /// How many of them the format adds: channels up to 64 bits, and 32 bytes of parameters for each output channel.
    pub padding_bytes: i64,
    /// How many of the latter are parameters.
    pub parameter_bytes: i64,
    /// How many of all are outputs.
    pub output_bytes: i64,
    /// Cycles that these take at the rate of DRAM.
    pub dram_cycles: i64,
    /// Cycles that all multiplications take on all multipliers.
    pub mac_cycles: i64,
}

impl From<Floor> for ReplayFloor {
    fn from(floor: Floor) -> ReplayFloor {
        ReplayFloor {
            delay_cycles: floor.cycles(),
            dram_bytes: floor.dram_bytes,
            padding_bytes: floor.padding_bytes,
            parameter_bytes: floor.parameter_bytes,
            output_bytes: floor.output_bytes,
            dram_cycles: floor.dram_cycles,
            mac_cycles: floor.mac_cycles,
        }
    }
}

impl ReplayFloor {
    fn meaning(&self) -> String {
        if self.dram_cycles >= self.mac_cycles {
            let (own, added) = (self.parameter_bytes, self.padding_bytes);
            let [all, padding, parameters] = [self.dram_bytes, added - own, own].map(size);
            return format!(
                "no schedule is faster: {all} of weights, inputs and outputs cross DRAM, {padding} of them padding, {parameters} scales and biases"
            );
        }
        "no schedule is faster: multiplications on all multipliers".to_owned()
    }
}

/// What the queue of DRAM does.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct ReplayDram {
    /// Bytes from and to DRAM.
    pub bytes: u64,
    /// How many of them are results that are read again on the chip.
    pub result_bytes: u64,
    /// How many of them are outputs, as the cores write them: in parts, each with padding of its own.
    pub output_bytes: u64,
    /// Cycles that the bytes take at the bandwidth of DRAM.
    pub bandwidth_cycles: i64,
    /// Cycles in which a transfer runs; more where links on its way are slower than DRAM.
    pub busy_cycles: i64,
}

impl From<DramCycles> for ReplayDram {
    fn from(dram: DramCycles) -> ReplayDram {
        ReplayDram {
            bytes: dram.bytes,
            result_bytes: dram.result_bytes,
            output_bytes: dram.output_bytes,
            bandwidth_cycles: dram.at_bandwidth,
            busy_cycles: dram.busy,
        }
    }
}

/// Bytes that are something in megabytes of two digits behind the point.
const SHOWN_BYTES: i64 = 5000;

impl ReplayDram {
    /// Why a schedule takes longer than the bytes of the floor.
    fn above(&self, floor: &ReplayFloor, cycles: i64, clock_hz: f64) -> String {
        let time = |cycles: i64| Time::from_ns(cycles.max(0) as f64 / clock_hz * 1e9);
        let besides = self.bytes as i64 - floor.dram_bytes;
        let results = self.result_bytes as i64;
        let padding = self.output_bytes as i64 - floor.output_bytes;
        let parts = [
            ("results", results),
            ("padding of outputs in parts", padding),
            ("loaded again", besides - results - padding),
        ];
        let parts: Vec<String> = (parts.iter())
            .filter(|(_, bytes)| *bytes >= SHOWN_BYTES)
            .map(|(what, bytes)| format!("{} {what}", size(*bytes)))
            .collect();
        let parts = if parts.is_empty() {
            String::new()
        } else {
            format!(" ({})", parts.join(", "))
        };
        format!(
            "{} for {} that cross DRAM besides{parts}, {} for transfers slower than DRAM, {} in which DRAM is idle",
            time(self.bandwidth_cycles - floor.dram_cycles),
            size(besides),
            time(self.busy_cycles - self.bandwidth_cycles),
            time(cycles - self.busy_cycles),
        )
    }
}

/// A number of bytes in megabytes; few are in kilobytes.
fn size(bytes: i64) -> String {
    match bytes.max(0) as f64 {
        bytes if bytes < 1e5 => format!("{:.2} kB", bytes / 1e3),
        bytes => format!("{:.2} MB", bytes / 1e6),
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

/// What was scheduled, on a line.
fn heading(report: &Report) -> String {
    let repeated = if report.layers_repeated {
        " (layers are repeated for each image)"
    } else {
        ""
    };
    format!(
        "{}: {}, batch {}{repeated}, on {}\n",
        report.title(),
        chipless_model::count(report.layers, "layer"),
        report.batch,
        report.machine
    )
}

/// The report as text.
pub fn text(report: &Report) -> String {
    let mut text = heading(report);
    let mut row = |title: &str, cycles: f64, energy_pj: Option<f64>, meaning: &str| {
        let time = Time::from_ns(cycles / report.clock_hz * 1e9).to_string();
        let energy = energy_pj.map_or_else(String::new, energy);
        let _ = writeln!(
            text,
            "  {title:15}  {time:>10}  {cycles:>10.0} cycles  {energy:>10}  {meaning}"
        );
    };
    if let Some(of) = report.replay {
        let meaning = "the result: as `run` times it, with waits and the queue of DRAM";
        row("replay", of.delay_cycles, Some(of.energy_pj), meaning);
        if report.batch > 1 {
            let images = report.batch as f64;
            let (cycles, energy) = (of.delay_cycles / images, of.energy_pj / images);
            row(
                "an image",
                cycles,
                Some(energy),
                "the result, divided by the batch",
            );
        }
        if let Some(alone) = report.layer_by_layer {
            let times = alone.delay_cycles / of.delay_cycles.max(1.0);
            let meaning = format!(
                "one layer at a time by the same replay: the result is {times:.1} times as fast"
            );
            row(
                "layer by layer",
                alone.delay_cycles,
                Some(alone.energy_pj),
                &meaning,
            );
        }
        if let Some(floor) = report.replay_floor {
            row("floor", floor.delay_cycles as f64, None, &floor.meaning());
            let cycles = of.delay_cycles as i64;
            if let Some(dram) = report
                .replay_dram
                .filter(|_| floor.dram_cycles >= floor.mac_cycles)
            {
                let meaning = dram.above(&floor, cycles, report.clock_hz);
                let above = (cycles - floor.delay_cycles) as f64;
                row("above the floor", above, None, &meaning);
            }
        }
    }
    let of_model = report.model.figures();
    let meaning = "to compare with SET: without waits, a byte for each element";
    row(
        "SET's model",
        of_model.delay_cycles,
        Some(of_model.energy_pj),
        meaning,
    );
    let bound = report.lower_bound;
    let meaning = "the lower bound of SET's model, which is none of the replay";
    row(
        "SET's bound",
        bound.delay_cycles,
        Some(bound.energy_pj),
        meaning,
    );
    // A tree that was given was not searched for.
    if report.stopped != "evaluated" {
        let trees = chipless_model::count(report.trees as usize, "tree");
        let (seconds, stopped) = (report.seconds, report.stopped);
        let replayed = report.replayed_trees;
        let replayed = replayed.map_or_else(String::new, |n| format!(", {n} of them replayed"));
        let _ = writeln!(
            text,
            "{trees} in {seconds:.1} s{replayed}; stopped: {stopped}"
        );
    }
    for output in report
        .comparison
        .iter()
        .flat_map(|compared| &compared.outputs)
    {
        let number = |value: Option<f64>, form: &dyn Fn(f64) -> String| {
            let why = if output.is_finite {
                "zeros"
            } else {
                "NaN or infinite numbers"
            };
            value.map_or_else(|| format!("undefined ({why})"), form)
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

/// `0.241 mJ`: an energy in the largest of pJ, nJ, µJ, mJ and J that leaves a whole digit.
pub fn energy(pj: f64) -> String {
    let units = [(1e12, "J"), (1e9, "mJ"), (1e6, "µJ"), (1e3, "nJ")];
    let fitting = units.iter().find(|(unit, _)| pj >= *unit);
    let (unit, name) = fitting.unwrap_or(&(1.0, "pJ"));
    format!("{:.3} {name}", pj / unit)
}

/// What the page says of each segment.
#[derive(Clone, Copy, Debug)]
pub enum Segments<'s> {
    /// As the replay has it.
    Replayed(&'s [SegmentTime]),
    /// As SET's model has it: nothing was replayed.
    Modelled(&'s [SegmentCost]),
}

/// The report as a page: figures, and what bounds each segment. `batch`: options of a larger batch, where its images share the weights.
pub fn page(report: &Report, segments: Segments<'_>, batch: Option<&str>) -> String {
    let mut page = format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>{0}</title>\n<style>body{{font:15px sans-serif;margin:2em;max-width:70em}}\
         table{{border-collapse:collapse}}td,th{{border:1px solid #ccc;padding:.2em .6em;text-align:right}}\
         td:first-child,th:first-child{{text-align:left}}pre{{background:#f6f6f6;padding:1em}}</style>\n<h1>{0} on {1}</h1>\n<pre>{2}</pre>\n",
        escape(&report.title()),
        escape(&report.machine),
        escape(&text(report))
    );
    match segments {
        Segments::Replayed(segments) => replayed(&mut page, segments),
        Segments::Modelled(segments) => modelled(&mut page, segments),
    }
    let batch = batch.map_or_else(String::new, |batch| {
        format!(
            " A larger batch (<code>{}</code>) loads weights once for more images.",
            escape(batch)
        )
    });
    let kept = report.replay_dram.filter(|dram| dram.result_bytes > 0);
    let kept = kept.map_or_else(String::new, |dram| {
        format!(
            " Of {} bytes, {} are results that are written to DRAM and read again: a longer search (<code>--seconds</code>) may find a schedule that \
             keeps more of them on the cores.",
            dram.bytes, dram.result_bytes
        )
    });
    let _ = writeln!(
        page,
        "<p>A segment that is bound by DRAM waits for its bytes: weights, inputs and outputs, at least.{batch} int8 has half the bytes of fp16 but those of padding and parameters, \
         where it supports the network, and a higher <code>dram.bytes_per_cycle</code> shortens the wait itself.{kept}</p>"
    );
    page
}

fn replayed(page: &mut String, segments: &[SegmentTime]) {
    page.push_str("<h2>Segments</h2>\n<p>Cycles and bytes are those of the replay, from the end of the segment before to the end of this one; transfers for later segments count where they happen. \
        A link and a unit are the busiest of theirs.</p>\n\
        <table><tr><th>layers<th>cycles<th>DRAM, bytes<th>DRAM busy<th>link busy<th>unit of a core busy<th>bound by</tr>\n");
    for segment in segments {
        let [dram, link, unit] = segment.busy.map(|part| part * 100.0);
        let _ = writeln!(
            page,
            "<tr><td>{}<td>{}<td>{}<td>{dram:.1} %<td>{link:.1} %<td>{unit:.1} %<td>{}</tr>",
            escape(&segment.layers),
            segment.cycles,
            segment.dram_bytes,
            segment.bound_by(),
        );
    }
    page.push_str("</table>\n");
}

fn modelled(page: &mut String, segments: &[SegmentCost]) {
    page.push_str("<h2>Segments in SET's model</h2>\n<p>The model counts a byte for each element, and no waits.</p>\n\
        <table><tr><th>layers<th>energy, pJ<th>cycles<th>DRAM, bytes<th>cycles of DRAM<th>cycles of the busiest link<th>bound by</tr>\n");
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
}
