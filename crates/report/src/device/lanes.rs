//! Lanes of a device's run for its page: engines, contexts, and what passes the memory path.

use super::{phases, time};
use chipless_device::{Passed, Record, Report};
use chipless_model::escape;

/// Jobs that a page shows at most.
pub const JOBS: usize = 1000;

/// Rows of a context, or of an engine, at most: jobs that overlap lie side by side.
const ROWS: usize = 6;
/// Pixels from one row to the next, and of a row.
const STEP: u32 = 18;
const HEIGHT: u32 = 14;
/// Pieces of a row of traffic.
const PIECES: usize = 240;

/// Colours of contexts on the lanes of engines.
const CONTEXTS: [&str; 8] = [
    "#2980b9", "#27ae60", "#d35400", "#8e44ad", "#16a085", "#c0392b", "#b59f3b", "#2c3e50",
];

/// Colours of the phases of a job.
const PHASES: [(&str, &str); 7] = [
    ("submit", "#7f8c8d"),
    ("wait", "#c0392b"),
    ("run", "#27ae60"),
    ("drain", "#b59f3b"),
    ("save", "#2c3e50"),
    ("preempted", "#d35400"),
    ("complete", "#8e44ad"),
];

/// A bar of a lane.
struct Bar {
    from: u64,
    to: u64,
    colour: &'static str,
    /// What it says when it is pointed at.
    title: String,
}

/// Bars of one thing that is whole or not at all: of a job.
struct Group {
    from: u64,
    to: u64,
    bars: Vec<Bar>,
}

/// The lanes of these jobs, the first that left; nothing without any.
pub(super) fn lanes(report: &Report, jobs: &[Record]) -> String {
    let Some(until) = jobs.iter().map(|job| job.done_ps).max().filter(|t| *t > 0) else {
        return String::new();
    };
    let all: u64 = report.streams.iter().map(|stream| stream.jobs).sum();
    let shown = if (jobs.len() as u64) < all {
        format!("The first {} of {all} jobs", jobs.len())
    } else {
        format!("All {all} jobs")
    };
    let width = (jobs.len() as u32 * 6).clamp(900, 12_000);
    let mut picture = Picture {
        until,
        width,
        labels: String::new(),
        strip: String::new(),
        top: 0,
    };
    picture.axis();
    picture.title("Engines");
    engines(report, jobs, &mut picture);
    picture.title("Contexts");
    contexts(report, jobs, &mut picture);
    if report.traffic.len() > 1 {
        picture.title("Memory path and other agents");
        traffic(report, &mut picture);
    }
    let legend = PHASES
        .map(|(name, colour)| format!("<i style=\"background:{colour}\"></i>{name} "))
        .concat();
    let Picture {
        labels, strip, top, ..
    } = picture;
    format!(
        "<h2>Lanes</h2><p>{shown}, until {}. On engines, jobs have the colour of their context, which stands before its name. In contexts, they have the colours of their phases.</p>\
<p class=legend>{legend}</p><div class=lanes><div class=labels>{labels}</div><div class=strip><svg width={width} height={top}>{strip}</svg></div></div>",
        time(until as f64 / 1e3)
    )
}

/// A job's part on its engine: from its first task to its last, but for the time in which it had no place.
fn engines(report: &Report, jobs: &[Record], picture: &mut Picture) {
    for (engine, name) in [("nn", "NN engine"), ("copy", "copy engine")] {
        let here = |job: &&Record| {
            let mut streams = report.streams.iter();
            streams.any(|s| s.name == job.stream && s.engine == engine)
        };
        let groups = jobs.iter().filter(here).flat_map(|job| {
            let context = report.contexts.iter().position(|c| c.name == job.context);
            let colour = CONTEXTS[context.unwrap_or(0) % CONTEXTS.len()];
            let held = phases(job).into_iter().filter(|phase| {
                phase.to > phase.from && ["run", "drain", "save"].contains(&phase.kind)
            });
            let group = move |phase: super::Phase| Group {
                from: phase.from,
                to: phase.to,
                bars: vec![Bar {
                    from: phase.from,
                    to: phase.to,
                    colour,
                    title: format!(
                        "{} {}: {} {}",
                        job.stream, job.index, job.context, phase.name
                    ),
                }],
            };
            held.map(group).collect::<Vec<_>>()
        });
        picture.rows(name, None, groups.collect());
    }
}

fn contexts(report: &Report, jobs: &[Record], picture: &mut Picture) {
    for (number, context) in report.contexts.iter().enumerate() {
        let own = jobs.iter().filter(|job| job.context == context.name);
        let groups = own.map(|job| Group {
            from: job.arrival_ps,
            to: job.done_ps,
            bars: phases(job)
                .into_iter()
                .map(|phase| Bar {
                    from: phase.from,
                    to: phase.to,
                    colour: colour_of(phase.kind),
                    title: format!("{} {}: {}", job.stream, job.index, phase.name),
                })
                .collect(),
        });
        let colour = CONTEXTS[number % CONTEXTS.len()];
        picture.rows(&context.name, Some(colour), groups.collect());
    }
}

fn colour_of(kind: &str) -> &'static str {
    let known = PHASES.iter().find(|(name, _)| *name == kind);
    known.map_or("#7f8c8d", |(_, colour)| colour)
}

fn traffic(report: &Report, picture: &mut Picture) {
    for (number, name) in ["network", "cache", "ddr"].into_iter().enumerate() {
        picture.rates(name, &report.traffic, |passed| passed.bytes[number]);
    }
    for (number, agent) in report.agents.iter().enumerate() {
        picture.rates(&agent.name, &report.traffic, |passed| {
            passed.agents.get(number).copied().unwrap_or(0)
        });
    }
}

/// Rows of labels beside a strip that scrolls.
struct Picture {
    until: u64,
    width: u32,
    labels: String,
    strip: String,
    top: u32,
}

impl Picture {
    fn x(&self, at: u64) -> f64 {
        at as f64 / self.until as f64 * f64::from(self.width)
    }

    fn axis(&mut self) {
        self.label("", None);
        let marks = self.width / 150;
        for mark in 0..marks {
            let at = self.until as f64 * f64::from(mark) / f64::from(marks);
            let x = self.x(at as u64);
            let name = match mark {
                0 => "0".to_owned(),
                _ => time(at / 1e3),
            };
            self.strip
                .push_str(&format!("<text x={x:.0} y=12>{name}</text>"));
        }
        self.top += STEP;
    }

    fn label(&mut self, text: &str, colour: Option<&str>) {
        let text = escape(text);
        let mark = colour.map_or_else(String::new, |colour| {
            format!("<i style=\"background:{colour}\"></i>")
        });
        self.labels
            .push_str(&format!("<div title=\"{text}\">{mark}{text}</div>"));
    }

    fn title(&mut self, text: &str) {
        self.labels.push_str(&format!("<div><b>{text}</b></div>"));
        self.top += STEP;
    }

    fn bar(&mut self, bar: &Bar) {
        let (x, end) = (self.x(bar.from), self.x(bar.to.min(self.until)));
        let width = (end - x).max(0.3);
        let took = time((bar.to - bar.from) as f64 / 1e3);
        let (title, colour, y) = (escape(&bar.title), bar.colour, self.top);
        self.strip.push_str(&format!(
            "<rect x={x:.2} y={y} width={width:.2} height={HEIGHT} fill={colour}><title>{title}, {took}</title></rect>"
        ));
    }

    /// As many rows as groups overlap; those that find no row are counted.
    fn rows(&mut self, name: &str, colour: Option<&str>, mut groups: Vec<Group>) {
        if groups.is_empty() {
            return;
        }
        groups.sort_by_key(|group| (group.from, group.to));
        let mut rows: Vec<(u64, Vec<Group>)> = Vec::new();
        let mut left = 0;
        for group in groups {
            let free = rows.iter().position(|(until, _)| *until <= group.from);
            match free {
                Some(row) => {
                    rows[row].0 = group.to;
                    rows[row].1.push(group);
                }
                None if rows.len() < ROWS => rows.push((group.to, vec![group])),
                None => left += 1,
            }
        }
        for (number, (_, row)) in rows.iter().enumerate() {
            let label = match (number, left) {
                (0, 0) => name.to_owned(),
                (0, left) => format!("{name} ({left} more)"),
                _ => String::new(),
            };
            self.label(&label, colour.filter(|_| number == 0));
            row.iter()
                .flat_map(|group| &group.bars)
                .for_each(|bar| self.bar(bar));
            self.top += STEP;
        }
    }

    /// A row of rates, from what had passed until each of some instants.
    fn rates(&mut self, name: &str, passed: &[Passed], bytes: impl Fn(&Passed) -> u64) {
        let mut pieces = vec![0.0; PIECES];
        let piece = self.until as f64 / PIECES as f64;
        let start = passed.first().map(|first| (0, 0, first));
        let pairs = passed
            .windows(2)
            .map(|pair| (pair[0].at_ps, bytes(&pair[0]), &pair[1]));
        for (from, before, next) in start.into_iter().chain(pairs) {
            let (moved, span) = (bytes(next).saturating_sub(before), next.at_ps - from);
            if moved == 0 || span == 0 || from >= self.until {
                continue;
            }
            let rate = moved as f64 / span as f64;
            let last = (next.at_ps as f64 / piece) as usize;
            for (number, sum) in pieces.iter_mut().enumerate().take(last + 1) {
                let (left, right) = (number as f64 * piece, (number + 1) as f64 * piece);
                let common = right.min(next.at_ps as f64) - left.max(from as f64);
                *sum += rate * common.max(0.0);
            }
        }
        // Bytes a picosecond are terabytes a second.
        let rates: Vec<f64> = pieces.iter().map(|bytes| bytes / piece * 1e3).collect();
        let most = rates.iter().copied().fold(0.0, f64::max);
        if most == 0.0 {
            return;
        }
        self.label(&format!("{name}, at most {most:.1} GB/s"), None);
        let bottom = f64::from(self.top + HEIGHT);
        let width = f64::from(self.width) / PIECES as f64;
        let mut points = format!("0,{bottom:.1}");
        for (number, rate) in rates.iter().enumerate() {
            let y = bottom - rate / most * f64::from(HEIGHT);
            let (left, right) = (number as f64 * width, (number + 1) as f64 * width);
            points.push_str(&format!(" {left:.1},{y:.1} {right:.1},{y:.1}"));
        }
        points.push_str(&format!(" {},{bottom:.1}", self.width));
        self.strip.push_str(&format!(
            "<polygon points=\"{points}\" fill=#2980b9><title>{}: at most {most:.1} GB/s</title></polygon>",
            escape(name)
        ));
        self.top += STEP;
    }
}

/// Style of the lanes.
pub(super) const STYLE: &str = ".lanes{display:grid;grid-template-columns:14rem 1fr;border:1px solid #ddd;font-size:12px}\
.labels i{display:inline-block;width:.7em;height:.7em;margin-right:.4em}.labels div{height:18px;line-height:18px;padding:0 .4rem;overflow:hidden;white-space:nowrap;text-overflow:ellipsis}\
.strip{overflow-x:auto}.strip svg{display:block;font:11px system-ui,sans-serif}.strip text{fill:currentColor}";
