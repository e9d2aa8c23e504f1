//! Who works when: a line for each core, for what it sends, and for DRAM.

use super::{COLUMNS, Picture, WIDTH, axis, head};
use crate::machine::Machine;
use chipless_model::{Program, TaskId, Time, escape};
use chipless_sim::Timeline;
use indexmap::IndexMap;
use std::fmt::Write;

/// Bars that are drawn; more are merged with their neighbours.
const MOST_BARS: usize = 20_000;
/// Height of a line in pixels.
const LINE: f64 = 22.0;

/// A piece of work.
struct Bar {
    start: Time,
    end: Time,
    name: String,
}

/// The line of a queue: those of the units of a core are one.
fn line(queue: &str) -> Option<String> {
    let (core, unit) = queue.split_once('.').unwrap_or(("", queue));
    match unit {
        "pe" | "vp" | "dt" => Some(core.to_owned()),
        "send" => Some(format!("{core} sends")),
        "load" | "store" | "dram" => Some("DRAM".to_owned()),
        _ => None,
    }
}

pub(super) fn picture(program: &Program<'_>, timeline: &Timeline, machine: &Machine) -> Picture {
    let mut lines: IndexMap<String, Vec<Bar>> = IndexMap::new();
    for (id, task) in program.tasks.iter().enumerate() {
        let times = &timeline.tasks[TaskId::from_usize(id)];
        let named = line(&program.queues[task.queue].name);
        let Some(named) = named.filter(|_| times.end > times.start) else {
            continue;
        };
        lines.entry(named).or_default().push(Bar {
            start: times.start,
            end: times.end,
            name: task.label.as_deref().unwrap_or_default().to_owned(),
        });
    }
    lines.sort_by(|a, _, b, _| {
        let key = |name: &str| {
            let digits = name.trim_start_matches("core");
            let number = digits.split(' ').next().and_then(|n| n.parse::<u32>().ok());
            (number.unwrap_or(u32::MAX), name.len())
        };
        key(a).cmp(&key(b))
    });
    let most = (MOST_BARS / lines.len().max(1)).max(1);
    for bars in lines.values_mut() {
        bars.sort_by_key(|bar| (bar.start, bar.end));
        merge(bars, timeline.end, most);
    }
    let cycles = machine.cycles_of(timeline.end);
    let title = format!("Cores, transfers between them, and DRAM over {cycles} cycles");
    Picture {
        name: "gantt".into(),
        svg: svg(&lines, timeline.end, cycles, &title),
        text: text(&lines, timeline.end, cycles),
        title,
    }
}

/// Joins neighbours that are closer than a pixel until few enough are left.
fn merge(bars: &mut Vec<Bar>, end: Time, most: usize) {
    if bars.len() <= most {
        return;
    }
    let gap = (end.0 as f64 / WIDTH) as u64;
    let mut merged: Vec<Bar> = Vec::new();
    for bar in bars.drain(..) {
        match merged.last_mut() {
            Some(last) if bar.start.0 <= last.end.0.saturating_add(gap) => {
                last.end = last.end.max(bar.end);
                if last.name != bar.name {
                    last.name = "several".into();
                }
            }
            _ => merged.push(bar),
        }
    }
    *bars = merged;
}

fn svg(lines: &IndexMap<String, Vec<Bar>>, end: Time, cycles: u64, title: &str) -> String {
    let (left, above) = (110.0, 40.0);
    let height = LINE * lines.len() as f64;
    let mut svg = head(WIDTH + left + 20.0, height + above + 40.0, title);
    let x = |time: Time| left + WIDTH * time.0 as f64 / end.0.max(1) as f64;
    for (number, (name, bars)) in lines.iter().enumerate() {
        let y = above + LINE * number as f64;
        let _ = writeln!(
            svg,
            r#"<text x="{}" y="{:.1}" text-anchor="end">{}</text>"#,
            left - 6.0,
            y + 14.0,
            escape(name)
        );
        let colour = match name.as_str() {
            "DRAM" => "#7fa6d6",
            name if name.ends_with("sends") => "#e5a660",
            _ => "#8fc58f",
        };
        for bar in bars {
            let (from, to) = (x(bar.start), x(bar.end));
            let _ = writeln!(
                svg,
                r##"<rect x="{from:.2}" y="{:.1}" width="{:.2}" height="{:.1}" fill="{colour}" stroke="#333" stroke-width="0.2"><title>{}</title></rect>"##,
                y + 3.0,
                (to - from).max(0.2),
                LINE - 6.0,
                escape(&bar.name)
            );
        }
    }
    for part in 0..=4u64 {
        let _ = writeln!(
            svg,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            x(Time(end.0 / 4 * part)),
            above + height + 18.0,
            cycles / 4 * part
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn text(lines: &IndexMap<String, Vec<Bar>>, end: Time, cycles: u64) -> String {
    let mut text = String::new();
    for (name, bars) in lines {
        let mut busy = [0u128; COLUMNS];
        let whole = u128::from(end.0.max(1));
        for bar in bars {
            let first = (u128::from(bar.start.0) * COLUMNS as u128 / whole) as usize;
            let last = (u128::from(bar.end.0) * COLUMNS as u128 / whole) as usize;
            for (column, busy) in busy.iter_mut().enumerate().take(last + 1).skip(first) {
                let from = (whole * column as u128 / COLUMNS as u128).max(bar.start.0.into());
                let to = (whole * (column + 1) as u128 / COLUMNS as u128).min(bar.end.0.into());
                *busy += to.saturating_sub(from);
            }
        }
        let cells: String = busy
            .iter()
            .map(|busy| match busy * COLUMNS as u128 * 4 / whole {
                0 if *busy == 0 => ' ',
                0 => '░',
                1 => '▒',
                2 => '▓',
                _ => '█',
            })
            .collect();
        let _ = writeln!(text, "{name:>14} │{}", cells.trim_end());
    }
    axis(&mut text, cycles);
    text
}
