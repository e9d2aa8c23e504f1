//! What a search found, for people.

use crate::machine::Machine;
use crate::network::Network;
use crate::tree::Tree;
use chipless_model::escape;
use serde_json::Value;
use std::fmt::Write;

/// A figure of the report.
fn figure(report: &Value, section: &str, key: &str) -> f64 {
    report[section][key].as_f64().unwrap_or(f64::NAN)
}

/// The report as text.
pub fn text(report: &Value) -> String {
    let mut text = format!(
        "{}: {} layers, batch {}\n",
        report["network"].as_str().unwrap_or_default(),
        report["layers"],
        report["batch"]
    );
    for (section, title) in [
        ("model", "SET's model"),
        ("replay", "replay"),
        ("lower_bound", "lower bound of SET's model"),
    ] {
        if report[section].is_object() {
            let [energy, delay, edp] =
                ["energy_pj", "delay_cycles", "edp"].map(|key| figure(report, section, key));
            let _ = writeln!(
                text,
                "{title}: {energy:.4e} pJ, {delay:.0} cycles, {edp:.4e} pJ cycles"
            );
        }
    }
    if let Some(lost) = lost_by(report) {
        let _ = writeln!(text, "{lost}");
    }
    let above = figure(report, "model", "edp") / figure(report, "lower_bound", "edp");
    let _ = writeln!(
        text,
        "{above:.2} times the bound; {} trees in {:.1} s, {:.0} trees/s; stopped: {}",
        report["trees"],
        report["seconds"].as_f64().unwrap_or(0.0),
        report["trees_per_second"].as_f64().unwrap_or(0.0),
        report["stopped"].as_str().unwrap_or_default(),
    );
    text
}

/// What the next best tree lost by, in the figures that decided.
fn lost_by(report: &Value) -> Option<String> {
    let next = report.get("runner_up")?;
    let (section, of) = if report["replay"].is_object() {
        ("replay", "by the replay")
    } else {
        ("model", "in SET's model")
    };
    let more = |key: &str| {
        let (own, other) = (report[section][key].as_f64()?, next[section][key].as_f64()?);
        Some((other / own - 1.0) * 100.0)
    };
    let [energy, delay] = [more("energy_pj")?, more("delay_cycles")?];
    let [energy, delay] = [(energy, "energy"), (delay, "delay")].map(|(percent, what)| {
        if percent.abs() < 0.005 {
            format!("the same {what}")
        } else {
            let word = if percent > 0.0 { "more" } else { "less" };
            format!("{:.2} % {word} {what}", percent.abs())
        }
    });
    Some(format!("runner-up: {energy} and {delay} {of}"))
}

/// The report as a page: figures, and what bounds each segment.
pub fn page(network: &Network, machine: &Machine, tree: &Tree, report: &Value) -> String {
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
    page
}
