//! The result of a simulated device: as text, as a trace with a process for each context, as a page.

use crate::style::Paint;
use chipless_device::result::{DeviceReport, Latency, Report, StreamReport, WhatIf};
use chipless_device::{AgentReport, Energy, FifoReport, Layer, Record, WorstCase};
use chipless_model::{Finding, Time};

mod lanes;
mod page;
mod trace;

pub use lanes::JOBS;
pub use page::page;
pub use trace::trace;

/// A phase of a job.
struct Phase {
    /// `submit`, `wait`, `run`, `drain`, `save`, `preempted` or `complete`.
    kind: &'static str,
    /// The same, with the context that a preemption was for.
    name: String,
    from: u64,
    to: u64,
}

/// The phases of a job one after the other, in picoseconds.
fn phases(job: &Record) -> Vec<Phase> {
    let mut phases = Vec::new();
    let mut at = job.arrival_ps;
    let mut part = |kind: &'static str, by: Option<&str>, until: u64| {
        if until > at {
            phases.push(Phase {
                kind,
                name: by.map_or_else(|| kind.to_owned(), |by| format!("{kind} by {by}")),
                from: at,
                to: until,
            });
            at = until;
        }
    };
    if let Some(push) = job.push_ps {
        part("submit", None, push);
    }
    if let Some(start) = job.start_ps {
        part("wait", None, start);
        for p in &job.preemptions {
            part("run", None, p.request_ps.max(start));
            part("drain", None, p.request_ps + p.drain_ps);
            part("save", None, p.request_ps + p.drain_ps + p.save_ps);
            if let Some(resume) = p.resume_ps {
                part("preempted", Some(&p.by), resume);
            }
        }
        part("run", None, job.end_ps.unwrap_or(job.done_ps));
    }
    part("complete", None, job.done_ps);
    phases
}

fn time(ns: f64) -> String {
    Time::from_ns(ns).to_string()
}

/// Times of less than nothing have a sign.
fn signed(ns: f64) -> String {
    if ns < 0.0 {
        format!("-{}", time(-ns))
    } else {
        time(ns)
    }
}

fn latency(latency: &Latency) -> String {
    format!(
        "mean {}, p50 {}, p90 {}, p99 {}, max {}",
        time(latency.mean),
        time(latency.p50),
        time(latency.p90),
        time(latency.p99),
        time(latency.max)
    )
}

/// What another agent on the chip moved, as a line.
fn agent(agent: &AgentReport) -> String {
    let wanted = agent.wanted_bytes_per_s.map_or_else(String::new, |wanted| {
        format!(" of the {:.1} GB/s it wanted", wanted * 1e-9)
    });
    let moved = agent.bytes_per_s * 1e-9;
    format!("  {}: moved {moved:.1} GB/s{wanted}\n", agent.name)
}

/// Energy by what took it.
fn energy(energy: &Energy) -> String {
    let parts = [
        ("tiles", energy.tiles_j),
        ("leakage", energy.leakage_j),
        ("asleep", energy.asleep_j),
        ("network", energy.network_j),
        ("cache", energy.cache_j),
        ("memory", energy.ddr_j),
    ];
    let parts = parts.iter().filter(|(_, joules)| *joules >= 5e-7);
    let parts: Vec<String> = parts
        .map(|(name, joules)| format!("{name} {:.3}", joules * 1e3))
        .collect();
    format!(
        "{:.3} mJ ({}), {:.3} W; energy-delay {:.3e} J s",
        energy.total_j * 1e3,
        parts.join(", "),
        energy.mean_w,
        energy.energy_delay_js
    )
}

/// Layers that a text shows of a stream.
const SHOWN: usize = 5;

/// The layers of a program that run longest, as a line.
fn layers(layers: &[Layer]) -> String {
    let end = layers.iter().map(|layer| layer.end_ns).fold(0.0, f64::max);
    if end == 0.0 {
        return String::new();
    }
    let mut longest: Vec<&Layer> = layers.iter().collect();
    longest.sort_by(|a, b| b.busy_ns.total_cmp(&a.busy_ns));
    let shown = longest.iter().take(SHOWN).map(|layer| {
        let part = layer.busy_ns / end * 100.0;
        format!("{} {} ({part:.0} %)", layer.name, time(layer.busy_ns))
    });
    let shown: Vec<String> = shown.collect();
    let more = match layers.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(", {more} more"),
    };
    format!(
        "  layers alone, of {}: {}{more}\n",
        time(end),
        shown.join(", ")
    )
}

/// What the FIFOs of a kind did, as a line.
fn fifo(fifo: &FifoReport) -> String {
    let waits = match fifo.waits {
        0 => "none waited".to_owned(),
        waits => format!("{waits} waited for room, {} in all", time(fifo.waited_ns)),
    };
    format!(
        "  {} FIFOs: {} entries, {waits}; at most {} of {} in one\n",
        fifo.name.replace('_', " "),
        fifo.writes,
        fifo.deepest,
        fifo.depth
    )
}

/// What a job takes at worst, as a line.
fn worst_case(case: &WorstCase) -> String {
    let name = &case.stream;
    let (Some(worst), None) = (case.worst_ns, &case.unbounded) else {
        let why = case.unbounded.as_deref().unwrap_or_default();
        return format!("  {name}: no bound, {why}\n");
    };
    let deadline = case.deadline_ns.map_or_else(String::new, |deadline| {
        let is_kept = if worst <= deadline {
            "kept"
        } else {
            "can be missed"
        };
        format!("; the deadline of {} {is_kept}", time(deadline))
    });
    format!(
        "  {name}: {} (alone {}, until others leave {}, jobs of its band {}){deadline}\n",
        time(worst),
        time(case.alone_ns),
        time(case.blocking_ns.unwrap_or(0.0)),
        time(case.interference_ns.unwrap_or(0.0))
    )
}

/// For people.
pub fn text(report: &Report, paint: Paint) -> String {
    let mut text = format!(
        "{}: {} on {}, seed {}\n",
        paint.strong(&report.workload),
        time(report.end_ns),
        report.machine,
        report.seed
    );
    for s in &report.streams {
        text.push_str(&stream(s, paint));
    }
    text.push_str(&format!("\n{}\n", paint.strong("contexts")));
    for c in &report.contexts {
        text.push_str(&format!(
            "  {}: process {}, band {}, {} jobs, {:.1} % of the NN engine's time\n",
            c.name,
            c.process,
            c.band,
            c.jobs,
            c.share * 100.0
        ));
    }
    text.push_str(&device(&report.device, report.fairness, paint));
    if !report.agents.is_empty() {
        text.push_str(&format!("\n{}\n", paint.strong("other agents")));
        for a in &report.agents {
            text.push_str(&agent(a));
        }
    }
    if !report.worst_cases.is_empty() {
        let title = paint.strong("worst cases of the realtime band");
        text.push_str(&format!("\n{title}\n"));
    }
    for w in &report.worst_cases {
        text.push_str(&worst_case(w));
    }
    for w in &report.what_if {
        text.push_str(&what_if(w, report, paint));
    }
    text.push_str(&format!("\n{}\n", grounds(report)));
    text
}

/// The jobs of a stream: how many ended how, their latency and where it goes.
fn stream(s: &StreamReport, paint: Paint) -> String {
    let mut text = format!(
        "\n{} ({}, {}): {} jobs, {} done",
        paint.strong(&s.name),
        s.context,
        s.program,
        s.jobs,
        s.done
    );
    let others = [
        ("missed their deadline", s.missed),
        ("rejected", s.rejected),
        ("aborted", s.aborted),
        ("faulted", s.faults),
        ("hung", s.hangs),
        ("did not drain in time", s.timeouts),
    ];
    for (what, count) in others.iter().filter(|(_, count)| *count > 0) {
        text.push_str(&format!(", {count} {what}"));
    }
    text.push_str(&format!(
        ", {:.1} per second\n  latency: {}\n",
        s.throughput_per_s,
        latency(&s.latency_ns)
    ));
    if let Some(turns) = &s.turns {
        text.push_str(&format!("  first turn: {}\n", latency(&turns.first_ns)));
        if turns.between_ns.mean > 0.0 {
            text.push_str(&format!(
                "  from turn to turn: {}; {:.1} per second\n",
                latency(&turns.between_ns),
                1e9 / turns.between_ns.mean
            ));
        }
    }
    if let (Some(alone), Some(slowdown)) = (s.alone_ns, s.slowdown) {
        text.push_str(&format!(
            "  alone: {}; {slowdown:.2} times as long here\n",
            time(alone)
        ));
    }
    text.push_str(&layers(&s.layers));
    let parts = s.breakdown_ns.parts();
    let parts = parts.iter().filter(|(_, ns)| ns.abs() >= 0.0005);
    let parts: Vec<String> = parts
        .map(|(name, ns)| format!("{} {}", name.replace('_', " and "), signed(*ns)))
        .collect();
    text.push_str(&format!("  mean time: {}\n", parts.join(", ")));
    text
}

/// The engines, the look-ups and caches, the FIFOs and the energy.
fn device(d: &DeviceReport, fairness: f64, paint: Paint) -> String {
    let mut text = format!(
        "\n{}\n  NN engine busy {:.1} %, copy engine {:.1} %; {} preemptions, {} resets; fairness {:.3}\n",
        paint.strong("device"),
        d.utilization.nn * 100.0,
        d.utilization.copy * 100.0,
        d.preemptions,
        d.resets,
        fairness
    );
    if d.tlb.lookups > 0 {
        let faults = match d.tlb.page_faults {
            0 => String::new(),
            faults => format!(", {faults} page faults"),
        };
        text.push_str(&format!(
            "  TLB: {} look-ups, {} misses{faults}, {} hits that waited for their walk; {} prefetched, {} of them in time, {} late\n",
            d.tlb.lookups,
            d.tlb.misses,
            d.tlb.late_hits,
            d.tlb.prefetches,
            d.tlb.useful_prefetches,
            d.tlb.late_prefetches
        ));
    }
    if d.cache.accesses > 0 {
        let part = d.cache.hits as f64 / d.cache.accesses as f64 * 100.0;
        text.push_str(&format!(
            "  cache: {} lines touched, {part:.1} % of them there\n",
            d.cache.accesses
        ));
    }
    for f in &d.fifos {
        text.push_str(&fifo(f));
    }
    text.push_str(&format!("  energy: {}\n", energy(&d.energy)));
    text
}

/// What a change of the machine does to each stream.
fn what_if(w: &WhatIf, report: &Report, paint: Paint) -> String {
    let mut text = format!("\n{}\n", paint.strong(format!("what if {}", w.change)));
    for (other, s) in w.streams.iter().zip(&report.streams) {
        let ratio = other.latency_ns.mean / s.latency_ns.mean;
        let ratio = if ratio.is_finite() {
            format!(" ({:+.2} %)", (ratio - 1.0) * 100.0)
        } else {
            String::new()
        };
        text.push_str(&format!(
            "  {}: mean {}{ratio}, p99 {}\n",
            other.name,
            time(other.latency_ns.mean),
            time(other.latency_ns.p99)
        ));
    }
    for a in &w.agents {
        text.push_str(&agent(a));
    }
    let (joules, before) = (w.device.energy.total_j, report.device.energy.total_j);
    if (joules - before).abs() > before * 0.01 {
        text.push_str(&format!("  energy: {}\n", energy(&w.device.energy)));
    }
    text
}

/// A mistake in a workload file: `FILE:LINE:COLUMN: error[CODE]: …`.
pub fn mistake(file: &str, finding: &Finding, paint: Paint) -> String {
    let (line, column) = finding.place.position.unwrap_or((1, 1));
    let code = paint.code(finding.severity, finding.rule.code);
    let mut text = format!("{file}:{line}:{column}: {code}: {}\n", finding.message);
    for (place, role) in &finding.related {
        text.push_str(&format!("   = {role}: {place}\n"));
    }
    text.push_str(&format!(
        "   = help: chipless explain {}\n",
        finding.rule.code
    ));
    text
}

/// On what the result rests, in a line.
pub(crate) fn grounds(report: &Report) -> String {
    let counts = ["silicon", "driver", "cost_model", "seed", "assumed"];
    let counts: Vec<String> = counts
        .iter()
        .map(|grade| (grade, report.grades.get(grade).copied().unwrap_or(0)))
        .filter(|(_, count)| *count > 0)
        .map(|(grade, count)| format!("{count} {}", grade.replace('_', " ")))
        .collect();
    let range = |name: &str| {
        let of = |ratios: &std::collections::BTreeMap<String, Option<f64>>| {
            ratios
                .get(name)
                .copied()
                .flatten()
                .map_or_else(|| "?".to_owned(), |r| format!("{r:.3}"))
        };
        format!(
            "{name} {} / {}",
            of(&report.sensitivity.halved),
            of(&report.sensitivity.doubled)
        )
    };
    let moves: Vec<String> = report.streams.iter().map(|s| range(&s.name)).collect();
    let lacking = match report.defaulted.len() {
        0 => String::new(),
        1 => format!(
            "\nthe machine file lacks {}: its value is the built-in one",
            report.defaulted[0]
        ),
        many => format!(
            "\nthe machine file lacks {many} figures, whose values are the built-in ones (`chipless machine FILE` marks them)"
        ),
    };
    format!(
        "an estimate: it rests on {} figures; mean latency with every assumed one halved / doubled: {}{lacking}",
        counts.join(", "),
        moves.join(", ")
    )
}
