//! The result as a page that needs nothing else.

use super::{energy, grounds, lanes, signed, time, worst_case};
use chipless_device::result::Report;
use chipless_device::{AgentReport, Record};
use chipless_model::escape;

/// Colours of the nine parts of a latency.
const COLOURS: [&str; 9] = [
    "#7f8c8d", "#b59f3b", "#c0392b", "#8e44ad", "#16a085", "#2980b9", "#27ae60", "#d35400",
    "#2c3e50",
];

/// Writes the page. The first jobs that left have lanes on it, at most [`JOBS`](super::JOBS).
pub fn page(report: &Report, jobs: &[Record]) -> String {
    let mut body = format!(
        "<h1>{}</h1><p>{} of simulated time on {}, seed {}. NN engine busy {:.1} %, {} preemptions, fairness {:.3}.</p>",
        escape(&report.workload),
        time(report.end_ns),
        escape(&report.machine),
        report.seed,
        report.device.utilization.nn * 100.0,
        report.device.preemptions,
        report.fairness
    );
    body.push_str(&streams(report));
    body.push_str(&bounds(report));
    body.push_str(&lanes::lanes(report, &jobs[..jobs.len().min(lanes::JOBS)]));
    body.push_str(&breakdowns(report));
    body.push_str("<h2>Contexts</h2><table><tr><th>context<th>process<th>band<th>jobs<th>share of the NN engine</tr>");
    for c in &report.contexts {
        body.push_str(&format!(
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{:.1} %</tr>",
            escape(&c.name),
            c.process,
            c.band,
            c.jobs,
            c.share * 100.0
        ));
    }
    body.push_str("</table>");
    body.push_str(&figures(report));
    body.push_str(&what_ifs(report));
    body.push_str("<h2>Resources</h2><table><tr><th>resource<th>bytes</tr>");
    for r in report.resources.iter().filter(|r| r.bytes > 0) {
        body.push_str(&format!("<tr><td>{}<td>{}</tr>", escape(&r.name), r.bytes));
    }
    body.push_str(&format!("</table><p>{}</p>", escape(&grounds(report))));
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{}</title><style>{STYLE}{}</style><body>{body}</body></html>\n",
        escape(&report.workload),
        lanes::STYLE
    )
}

/// A row for each stream.
fn streams(report: &Report) -> String {
    let mut body = "<h2>Streams</h2><table><tr><th>stream<th>context<th>program<th>done<th>missed<th>mean<th>p50<th>p90<th>p99<th>max<th>alone<th>slowdown<th>per second</tr>".to_owned();
    for s in &report.streams {
        let l = &s.latency_ns;
        body.push_str(&format!(
            "<tr><td>{}<td>{}<td>{}<td>{}/{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{:.1}</tr>",
            escape(&s.name),
            escape(&s.context),
            escape(&s.program),
            s.done,
            s.jobs,
            s.missed,
            time(l.mean),
            time(l.p50),
            time(l.p90),
            time(l.p99),
            time(l.max),
            s.alone_ns.map(time).unwrap_or_default(),
            s.slowdown.map(|x| format!("{x:.2}")).unwrap_or_default(),
            s.throughput_per_s
        ));
    }
    body.push_str("</table>");
    body
}

/// A bar for each stream, with the parts of its mean latency.
fn breakdowns(report: &Report) -> String {
    let mut body = "<h2>Where the time goes</h2>".to_owned();
    let longest = report
        .streams
        .iter()
        .map(|s| s.latency_ns.mean)
        .fold(0.0, f64::max);
    for s in &report.streams {
        body.push_str(&format!(
            "<p class=name>{}</p><div class=bar>",
            escape(&s.name)
        ));
        for ((name, ns), colour) in s.breakdown_ns.parts().into_iter().zip(COLOURS) {
            if ns > 0.0 && longest > 0.0 {
                let width = ns / longest * 100.0;
                body.push_str(&format!("<span style=\"width:{width:.3}%;background:{colour}\" title=\"{name} {}\"></span>", time(ns)));
            }
        }
        body.push_str("</div><p class=legend>");
        for ((name, ns), colour) in s.breakdown_ns.parts().into_iter().zip(COLOURS) {
            if ns.abs() >= 0.0005 {
                body.push_str(&format!(
                    "<i style=\"background:{colour}\"></i>{} {} ",
                    name.replace('_', " and "),
                    signed(ns)
                ));
            }
        }
        body.push_str("</p>");
    }
    body
}

/// Energy and the traffic of other agents, as given and with each change.
fn figures(report: &Report) -> String {
    let mut body = "<h2>Energy</h2><table><tr><th>figures<th>energy</tr>".to_owned();
    let base = std::iter::once(("as given", &report.device));
    let others = report.what_if.iter();
    for (figures, device) in base.chain(others.map(|w| (w.change.as_str(), &w.device))) {
        let joules = energy(&device.energy);
        body.push_str(&format!("<tr><td>{}<td>{joules}</tr>", escape(figures)));
    }
    body.push_str("</table>");
    if !report.agents.is_empty() {
        body.push_str("<h2>Other agents on the chip</h2><table><tr><th>figures<th>agent<th>wanted<th>moved</tr>");
        let base = std::iter::once(("as given", &report.agents));
        let others = report.what_if.iter();
        let others = others.map(|w| (w.change.as_str(), &w.agents));
        for (figures, agents) in base.chain(others) {
            for a in agents {
                body.push_str(&agent(figures, a));
            }
        }
        body.push_str("</table>");
    }
    body
}

/// What each change of the machine does to the streams.
fn what_ifs(report: &Report) -> String {
    if report.what_if.is_empty() {
        return String::new();
    }
    let mut body =
        "<h2>What if</h2><table><tr><th>change<th>stream<th>mean<th>against<th>p99</tr>".to_owned();
    for w in &report.what_if {
        for (other, s) in w.streams.iter().zip(&report.streams) {
            body.push_str(&format!(
                "<tr><td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
                escape(&w.change),
                escape(&other.name),
                time(other.latency_ns.mean),
                time(s.latency_ns.mean),
                time(other.latency_ns.p99)
            ));
        }
    }
    body.push_str("</table>");
    body
}

/// Turns of chains, and worst cases of the realtime band.
fn bounds(report: &Report) -> String {
    let mut body = String::new();
    let turns = report.streams.iter();
    for (name, turns) in turns.filter_map(|s| Some((&s.name, s.turns?))) {
        body.push_str(&format!(
            "<p>{}: first turn {}, from turn to turn {}</p>",
            escape(name),
            time(turns.first_ns.mean),
            time(turns.between_ns.mean)
        ));
    }
    for case in &report.worst_cases {
        body.push_str(&format!(
            "<p>worst case of {}</p>",
            escape(worst_case(case).trim())
        ));
    }
    body
}

/// A row of the table of agents; the bar is what the agent got of what it wanted.
fn agent(figures: &str, agent: &AgentReport) -> String {
    let wanted = agent.wanted_bytes_per_s;
    let part = wanted.map_or(1.0, |wanted| agent.bytes_per_s / wanted.max(1.0));
    format!(
        "<tr><td>{}<td>{}<td>{}<td><div class=bar title=\"{:.1} %\"><span style=\"width:{:.1}%;background:#2980b9\"></span></div>{:.1} GB/s</tr>",
        escape(figures),
        escape(&agent.name),
        wanted.map_or_else(|| "a trace".to_owned(), |w| format!("{:.1} GB/s", w * 1e-9)),
        part * 100.0,
        part.min(1.0) * 100.0,
        agent.bytes_per_s * 1e-9
    )
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
table{border-collapse:collapse;margin:.5rem 0 1.5rem}th,td{padding:.25rem .6rem;border-bottom:1px solid #ddd;text-align:left;font-variant-numeric:tabular-nums}\
.bar{display:flex;height:1.4rem;background:#eee}.bar span{display:block}.name{margin:.6rem 0 .2rem;font-weight:600}.legend{margin:.2rem 0;color:#555;font-size:13px}\
.legend i{display:inline-block;width:.7em;height:.7em;margin:0 .3em 0 .6em}\
@media(prefers-color-scheme:dark){body{background:#161616;color:#ddd}th,td{border-color:#333}.bar{background:#2a2a2a}.legend{color:#aaa}}";
