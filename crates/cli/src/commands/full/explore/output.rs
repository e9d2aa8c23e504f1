//! What an exploration writes.

use crate::failure::Failure;
use crate::files;
use chipless::dsa_explore::{Budget, Explorer, FIELDS, Kernel, Move, Point, Score, Usage};
use chipless::dsa_mapper::{self as mapper, pictures};
use chipless_model::escape;
use chipless_report::SCHEMA_VERSION;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What stays the same while exploring.
pub(super) struct Facts<'k> {
    pub(super) kernels: &'k [Kernel],
    pub(super) budget: &'k Budget,
    pub(super) seed: u64,
}

/// What an exploration found: `summary.json`, and the answer to `explore --json`.
#[derive(JsonSchema, Serialize)]
pub(in crate::commands) struct Summary {
    /// Version of the form.
    schema_version: u32,
    /// Operations a cycle: the weighted geometric mean over the kernels, of all cores.
    pub(super) objective: f64,
    /// The same of the fabric that it began with.
    pub(super) start_objective: f64,
    /// Cores that the budget holds.
    pub(super) cores: u32,
    /// Banks of the L2.
    pub(super) banks: u32,
    /// Bytes that the bus carries a cycle.
    pub(super) bus: u32,
    /// Seed of the random choices.
    seed: u64,
    /// Changes that were tried.
    pub(super) moves: u64,
    /// How long it took.
    pub(super) seconds: f64,
    /// Whether no fabric is better; never, of a search.
    proved: bool,
    /// Figures of the best design by name.
    resources: Figures,
    /// What was allowed.
    budget: Figures,
    /// How each kernel fares on it.
    pub(super) kernels: Vec<KernelReport>,
}

/// Figures by name.
type Figures = IndexMap<&'static str, f64>;

/// A kernel on the best design.
#[derive(JsonSchema, Serialize)]
pub(super) struct KernelReport {
    /// Its name.
    pub(super) name: String,
    /// Its weight.
    weight: f64,
    /// The variant that was chosen.
    pub(super) variant: String,
    /// Operations a cycle.
    pub(super) performance: f64,
    /// The file of its mapping.
    mapping: String,
}

fn figures(usage: &Usage) -> Figures {
    FIELDS.into_iter().zip(usage.0).collect()
}

impl Facts<'_> {
    /// What was found.
    pub(super) fn summary(&self, explorer: &Explorer<'_>, spent: Duration) -> Summary {
        let best = explorer.best();
        let silicon = |area: Option<f64>, power: Option<f64>| {
            let area = area.map(|most| ("area_mm2", most));
            area.into_iter().chain(power.map(|most| ("power_mw", most)))
        };
        let fields = self.budget.fields.iter();
        let mut budget: Figures = fields
            .map(|(field, most)| (FIELDS[*field], *most))
            .collect();
        budget.extend(silicon(self.budget.area, self.budget.power));
        let mut resources = figures(&best.usage);
        resources.extend(silicon(Some(best.area), Some(best.power)));
        let kernels = self.kernels.iter().zip(&best.kernels);
        Summary {
            schema_version: SCHEMA_VERSION,
            objective: best.objective,
            start_objective: explorer.start().objective,
            cores: best.system.cores,
            banks: best.system.banks,
            bus: best.system.bus_width,
            seed: self.seed,
            moves: explorer.moves(),
            seconds: spent.as_secs_f64(),
            proved: false,
            resources,
            budget,
            kernels: kernels
                .map(|(kernel, score)| KernelReport {
                    name: kernel.name.clone(),
                    weight: kernel.weight,
                    variant: kernel.variants[score.variant].name.clone(),
                    performance: score.performance,
                    mapping: format!("mappings/{}.json", kernel.name),
                })
                .collect(),
        }
    }
}

/// The directory of an exploration.
pub(super) struct Directory {
    path: PathBuf,
    log: File,
}

impl Directory {
    /// Opens or makes it, for this process alone; the log begins anew unless the exploration goes on.
    pub(super) fn open(path: &Path, resume: bool) -> Result<Directory, Failure> {
        files::make_directory(path)?;
        files::make_directory(&path.join("mappings"))?;
        let name = path.join("moves.jsonl");
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut log = options
            .open(&name)
            .map_err(|error| files::cannot_write(&name, &error))?;
        match log.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let text = "another exploration is writing it; give this one another directory";
                return Err(Failure::misuse(name.display(), text));
            }
            Err(TryLockError::Error(error)) => return Err(files::cannot_write(&name, &error)),
        }
        let mut whole = 0;
        if resume {
            // A run that was killed may have left a part of a line.
            let mut text = Vec::new();
            log.read_to_end(&mut text)
                .map_err(|error| Failure::unreadable(name.display(), error))?;
            let end = text.iter().rposition(|byte| *byte == b'\n');
            whole = end.map_or(0, |end| end as u64 + 1);
        }
        log.set_len(whole)
            .and_then(|()| log.seek(SeekFrom::Start(whole)))
            .map_err(|error| files::cannot_write(&name, &error))?;
        Ok(Directory {
            path: path.to_owned(),
            log,
        })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// What an earlier run kept, with the number of changes that its log has.
    pub(super) fn state(&self) -> Result<Option<Value>, Failure> {
        let path = self.path("state.json");
        if !path.exists() {
            return Ok(None);
        }
        let broken = |error: String| Failure::unreadable(path.display(), error);
        let text = files::read_text(&path)?;
        let mut state: Value =
            serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
        let log = files::read_text(&self.path("moves.jsonl"))?;
        let moves = log.lines().filter_map(|line| {
            let entry: Value = serde_json::from_str(line).ok()?;
            entry["iteration"].as_u64()
        });
        state["moves"] = json!(moves.max().unwrap_or(0));
        Ok(Some(state))
    }

    /// Keeps the best design, in one file, so that it is there as a whole or not at all.
    pub(super) fn keep(&self, facts: &Facts<'_>, explorer: &Explorer<'_>) -> Result<(), Failure> {
        let (adg, mappings) = explorer.result();
        let chosen = facts
            .kernels
            .iter()
            .zip(&explorer.best().kernels)
            .zip(&mappings);
        let kernels: Vec<Value> = chosen
            .map(|((kernel, score), mapping)| {
                let variant = &kernel.variants[score.variant];
                json!({
                    "name": kernel.name, "variant": variant.name,
                    "mapping": mapper::write(mapping, &variant.graph, &adg, &[]),
                })
            })
            .collect();
        let state = json!({ "adg": adg.to_json(), "kernels": kernels });
        files::rewrite(&self.path("state.json"), &[state.to_string().as_bytes()])
    }

    /// Adds changes to the log.
    pub(super) fn log(&mut self, moves: &[Move]) -> Result<(), Failure> {
        let mut text = String::new();
        for entry in moves {
            let line = json!({
                "iteration": entry.iteration, "move": entry.kind, "objective": entry.objective,
                "accepted": entry.accepted, "best": entry.best,
            });
            let _ = writeln!(text, "{line}");
        }
        self.log
            .write_all(text.as_bytes())
            .map_err(|error| files::cannot_write(&self.path("moves.jsonl"), &error))
    }

    /// Writes everything else; the summary.
    pub(super) fn finish(
        &self,
        facts: &Facts<'_>,
        explorer: &Explorer<'_>,
        spent: Duration,
    ) -> Result<Summary, Failure> {
        self.keep(facts, explorer)?;
        let (adg, mappings) = explorer.result();
        files::write(
            &self.path("best.json"),
            &[pretty(&adg.to_json()).as_bytes()],
        )?;
        let chosen = facts
            .kernels
            .iter()
            .zip(&explorer.best().kernels)
            .zip(&mappings);
        for ((kernel, score), mapping) in chosen {
            let graph = &kernel.variants[score.variant].graph;
            let mut file =
                mapper::write(mapping, graph, &adg, &[("Performance", score.performance)]);
            if let (Value::Object(file), Value::Object(fabric)) = (&mut file, adg.to_json()) {
                file.extend(fabric);
            }
            let path = self.path("mappings").join(format!("{}.json", kernel.name));
            files::write(&path, &[pretty(&file).as_bytes()])?;
        }
        let mut points: Vec<&Point> = explorer.pareto().iter().collect();
        points.sort_by(|a, b| b.score.objective.total_cmp(&a.score.objective));
        files::write(&self.path("pareto.csv"), &[table(&points).as_bytes()])?;
        let picture = picture(&points, explorer.start(), explorer.best());
        files::write(&self.path("pareto.svg"), &[picture.as_bytes()])?;
        let summary = facts.summary(explorer, spent);
        let page = page(&summary, &picture, &pictures::svg(&adg, None));
        files::write(&self.path("report.html"), &[page.as_bytes()])?;
        files::write(&self.path("summary.json"), &[pretty(&summary).as_bytes()])?;
        Ok(summary)
    }
}

fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

fn table(points: &[&Point]) -> String {
    let mut text = format!(
        "objective,{},area_mm2,power_mw,cores,banks,bus\n",
        FIELDS.join(",")
    );
    for Point { score } in points {
        let _ = write!(text, "{}", score.objective);
        for figure in score.usage.0 {
            let _ = write!(text, ",{figure}");
        }
        let system = score.system;
        let _ = writeln!(
            text,
            ",{},{},{},{},{}",
            score.area, score.power, system.cores, system.banks, system.bus_width
        );
    }
    text
}

/// Objective against the share of the budget that one core takes.
fn picture(points: &[&Point], start: &Score, best: &Score) -> String {
    let scores = || points.iter().map(|point| &point.score).chain([start, best]);
    let most = |of: fn(&Score) -> f64| scores().map(of).fold(f64::MIN_POSITIVE, f64::max);
    let (width, height) = (most(|score| score.share), most(|score| score.objective));
    let place = |score: &Score| {
        (
            60.0 + 560.0 * score.share / width,
            360.0 - 320.0 * score.objective / height,
        )
    };
    let mut out = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 660 410\" width=\"660\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<path d=\"M60 30V360H630\" fill=\"none\" stroke=\"#888\"/>\n",
    );
    for (score, colour, name) in points
        .iter()
        .map(|point| (&point.score, "#5b8def", ""))
        .chain([(start, "#999", "start"), (best, "#d33", "best")])
    {
        let (x, y) = place(score);
        let _ = writeln!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"><title>{:.4}, {} cores, {:.4} of the budget each</title></circle>",
            score.objective, score.system.cores, score.share
        );
        if !name.is_empty() {
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
                x + 7.0,
                y + 4.0
            );
        }
    }
    let _ = write!(
        out,
        "<text x=\"345\" y=\"395\" text-anchor=\"middle\">share of the budget that one core takes (to {width:.4})</text>\n\
         <text x=\"60\" y=\"20\">objective, operations a cycle (to {height:.3})</text>\n</svg>\n"
    );
    out
}

fn page(summary: &Summary, pareto: &str, fabric: &str) -> String {
    let mut rows = String::new();
    for kernel in &summary.kernels {
        let _ = writeln!(
            rows,
            "<tr><td>{}</td><td>{:.6}</td><td>{}</td><td>{:.6}</td></tr>",
            escape(&kernel.name),
            kernel.weight,
            escape(&kernel.variant),
            kernel.performance
        );
    }
    let mut resources = String::new();
    for (name, used) in &summary.resources {
        let most = summary.budget.get(name);
        let most = most.map_or_else(String::new, |most| format!("{most:.6}"));
        let _ = writeln!(
            resources,
            "<tr><td>{name}</td><td>{used:.6}</td><td>{most}</td></tr>"
        );
    }
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Exploration</title>\n\
         <style>body{{font:15px sans-serif;margin:2em;max-width:70em}}td,th{{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}}svg{{max-width:100%;height:auto}}</style></head>\n\
         <body><h1>Objective {:.6} (the start has {:.6})</h1>\n<p>{} cores, {} banks, a bus of {} bytes; {} changes in {:.6} s, seed {}.</p>\n\
         <h2>Kernels</h2><table><tr><th>kernel</th><th>weight</th><th>variant</th><th>operations a cycle</th></tr>\n{rows}</table>\n\
         <h2>Resources</h2><table><tr><th>figure</th><th>used</th><th>budget</th></tr>\n{resources}</table>\n\
         <p>Resources are estimates by models of their own error; docs/dsa-exploration.md states it.</p>\n\
         <h2>What no other design beats</h2>\n{pareto}\n<h2>The best fabric</h2>\n{fabric}\n</body></html>\n",
        summary.objective,
        summary.start_objective,
        summary.cores,
        summary.banks,
        summary.bus,
        summary.moves,
        summary.seconds,
        summary.seed,
    )
}
