//! A run, or a program, as a small piece of HTML for notebooks: facts and a timeline. It needs no script, no style sheet and no network, so that
//! it shows wherever HTML shows.

use crate::attribution::Attribution;
use crate::lanes::lanes;
use crate::style::{bytes, shape};
use crate::summary::Run;
use chipless_model::{Info, TensorInfo, Time, escape};
use chipless_sim::State;
use std::collections::HashMap;
use std::fmt::Write;

/// Pixels of the timeline: width, height of a lane, and what stands before it.
const WIDTH: f64 = 720.0;
const LANE: f64 = 16.0;
const NAMES: f64 = 150.0;
/// Lanes and tasks that are drawn at most; the page shows all.
const LANES: usize = 64;
const TASKS: usize = 4_000;
/// Colours of operations, in the order in which they first start.
const COLOURS: [&str; 8] = [
    "#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#eeca3b", "#9d755d",
];

/// A run.
pub fn run(run: &Run<'_, '_>) -> String {
    let mut html = opened();
    headline(&mut html, run);
    html.push_str(ROWS);
    for output in &run.outputs {
        let Some(port) = run.program.interface.outputs.get(output.port) else {
            continue;
        };
        let text = format!("{} {}", port.element, shape(&port.shape));
        row(&mut html, &port.name, &text);
    }
    html.push_str("</table>");
    timeline(&mut html, run);
    for note in &run.notes {
        let _ = write!(html, "<div style=\"opacity:.7\">{}</div>", escape(note));
    }
    html.push_str("</div>");
    html
}

/// A program, with a timing run of it where there is one.
pub fn program(info: &Info, timed: Option<&Run<'_, '_>>) -> String {
    let mut html = opened();
    let name = if info.name.is_empty() {
        info.target
    } else {
        &info.name
    };
    let _ = write!(html, "<b>{}</b> {}", escape(name), escape(&info.platform));
    html.push_str(ROWS);
    let mut side = |word: &str, tensors: &[TensorInfo]| {
        for tensor in tensors {
            let text = format!("{} {}", tensor.dtype, shape(&tensor.shape));
            row(&mut html, &format!("{word} {}", tensor.name), &text);
        }
    };
    side("input", &info.inputs);
    side("output", &info.outputs);
    for (what, count) in &info.counts {
        row(&mut html, what, &count.to_string());
    }
    html.push_str("</table>");
    if let Some(run) = timed {
        headline(&mut html, run);
        timeline(&mut html, run);
    }
    html.push_str("</div>");
    html
}

const ROWS: &str = "<table style=\"border-collapse:collapse;margin:.4em 0\">";

fn opened() -> String {
    "<div style=\"font:13px system-ui,sans-serif;max-width:900px\">".to_owned()
}

fn headline(html: &mut String, run: &Run<'_, '_>) {
    let _ = write!(
        html,
        "<div><b>{}</b>: {} tasks in <b>{}</b>, {} moved</div>",
        escape(run.file),
        run.timeline.completed(),
        run.timeline.end,
        bytes(run.moved_bytes()),
    );
}

fn row(html: &mut String, name: &str, value: &str) {
    let (name, value) = (escape(name), escape(value));
    let _ = write!(
        html,
        "<tr><td style=\"text-align:left;padding:0 1em 0 0\">{name}</td><td style=\"text-align:left\">{value}</td></tr>"
    );
}

/// One lane for each server of each queue that ran something.
fn timeline(html: &mut String, run: &Run<'_, '_>) {
    let (program, timeline) = (run.program, run.timeline);
    let end = timeline.tasks.iter().map(|r| r.end).max();
    let end = end.unwrap_or(Time::ZERO).max(timeline.end).ns();
    let all = lanes(program, &Attribution::of(program, timeline));
    if end <= 0.0 || all.is_empty() {
        return;
    }
    let shown = &all[..all.len().min(LANES)];
    let height = LANE * shown.len() as f64;
    let width = NAMES + WIDTH;
    let _ = write!(
        html,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"timeline\" viewBox=\"0 0 {width} {height}\" \
         width=\"100%\" style=\"max-width:{width}px;background:#8881\" font-family=\"system-ui,sans-serif\" font-size=\"11\">"
    );
    let mut colours: HashMap<String, usize> = HashMap::new();
    let mut legend: Vec<String> = Vec::new();
    let mut left = TASKS;
    for (number, lane) in shown.iter().enumerate() {
        let top = LANE * number as f64;
        let (name, base) = (escape(&lane.name(program)), top + 12.0);
        let _ = write!(
            html,
            "<text x=\"0\" y=\"{base}\" fill=\"currentColor\">{name}</text>"
        );
        for task in lane.tasks.iter().take(left) {
            let record = timeline.tasks[*task];
            if record.state != State::Done {
                continue;
            }
            let operation = program.kernel(*task).operation().into_owned();
            let next = legend.len();
            let colour = *colours.entry(operation.clone()).or_insert_with(|| {
                legend.push(operation.clone());
                next
            });
            let at = |time: Time| NAMES + WIDTH * time.ns() / end;
            let (from, to) = (at(record.start), at(record.end));
            let _ = write!(
                html,
                "<rect x=\"{from:.2}\" y=\"{:.0}\" width=\"{:.2}\" height=\"{:.0}\" fill=\"{}\"><title>{} {}\n{} to {}</title></rect>",
                top + 1.0,
                (to - from).max(0.5),
                LANE - 2.0,
                COLOURS[colour % COLOURS.len()],
                escape(&program.task_name(*task)),
                escape(&operation),
                record.start,
                record.end,
            );
        }
        left = left.saturating_sub(lane.tasks.len());
    }
    html.push_str("</svg><div>");
    for (operation, colour) in legend.iter().zip(COLOURS) {
        let operation = escape(operation);
        let _ = write!(
            html,
            "<span style=\"color:{colour}\">■</span> {operation} &nbsp; "
        );
    }
    html.push_str("</div>");
    if all.len() > LANES || left == 0 {
        html.push_str(
            "<div style=\"opacity:.7\">Not everything is drawn; the page (.html) shows all.</div>",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use chipless_sim::{TimingOnly, Verified};

    #[test]
    fn a_run_is_drawn_with_every_task_and_nothing_from_outside() {
        let program = example::pipeline();
        let timeline = chipless_sim::run(&Verified::assume(&program), &mut TimingOnly).timeline;
        let html = run(&Run {
            file: "<model>.blob",
            notes: vec!["a & b".to_owned()],
            ..example::run(&program, &timeline)
        });
        assert_eq!(html.matches("<rect").count(), timeline.completed());
        assert!(html.contains("&lt;model&gt;.blob") && html.contains("a &amp; b"));
        let outside = html.replace("http://www.w3.org/2000/svg", "");
        assert!(
            !outside.contains("http") && !outside.contains("<script"),
            "{html}"
        );
    }
}
