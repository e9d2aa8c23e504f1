//! A difference for people.

use super::{Changed, Difference};
use crate::statistics::number;
use crate::style::{Paint, bytes, clean, count, quantity};
use chipless_model::Time;
use std::fmt::Write;

/// Waits and signals that are shown of a task.
const SYNCS: usize = 3;
/// Lines of each list.
const LINES: usize = 8;

impl Difference {
    /// The difference in lines.
    pub fn text(&self, a: &str, b: &str, paint: Paint) -> String {
        let mut out = String::new();
        let figures = self.time.iter().map(|time| time.machine.len()).sum();
        let title = match (self.equal, figures) {
            (false, _) => "different",
            (true, 0) => "the same",
            (true, 1..) => "the same, timed by other figures",
        };
        let _ = writeln!(out, "{a} and {b}: {}", paint.strong(title));
        list(&mut out, paint, "interface", &self.interface, |line| {
            clean(line).into_owned()
        });
        self.tasks_text(&mut out, paint);
        list(&mut out, paint, "constants", &self.constants, |c| {
            let name = if c.a == c.b {
                c.a.clone()
            } else {
                format!("{} ({})", c.a, c.b)
            };
            format!("{}: {} differ", clean(&name), bytes(c.bytes_changed))
        });
        let peaks: Vec<_> = self
            .memory
            .iter()
            .filter(|m| m.peak_a != m.peak_b)
            .collect();
        list(&mut out, paint, "peak of live bytes", &peaks, |peak| {
            let said = |peak: Option<u64>| peak.map_or("no such memory".to_owned(), bytes);
            format!(
                "{}: {}, was {}",
                clean(&peak.memory),
                said(peak.peak_b),
                said(peak.peak_a)
            )
        });
        self.time_text(&mut out, paint);
        self.values_text(&mut out, paint);
        out
    }

    fn tasks_text(&self, out: &mut String, paint: Paint) {
        let tasks = &self.tasks;
        // Contracts and fabrics have none.
        if (tasks.matched, tasks.moved) == (0, 0)
            && tasks.added.is_empty()
            && tasks.removed.is_empty()
        {
            return;
        }
        let _ = writeln!(out, "\n{}", paint.strong("tasks"));
        let _ = writeln!(
            out,
            "  {} matched, {} moved, {} changed, {} added, {} removed",
            tasks.matched,
            tasks.moved,
            tasks.changed.len(),
            tasks.added.len(),
            tasks.removed.len()
        );
        list(out, paint, "changed", &tasks.changed, |c: &Changed| {
            let name = if c.a == c.b {
                c.a.clone()
            } else {
                format!("{} → {}", c.a, c.b)
            };
            // Other data than before: of another task, or for another.
            let said = |what: &&'static str| if *what == "access" { "data flow" } else { what };
            let what: Vec<&str> = c.what.iter().map(said).collect();
            let mut text = format!(
                "{name}  {}  {}",
                paint.operation(clean(&c.operation)),
                what.join(", ")
            );
            for how in c.flow.iter().chain(c.syncs.iter().take(SYNCS)) {
                let _ = write!(text, "\n      {}", clean(how));
            }
            if let Some(rest) = c.syncs.len().checked_sub(SYNCS + 1) {
                let _ = write!(text, "\n      and {} more", rest + 1);
            }
            text
        });
        list(out, paint, "added", &tasks.added, Clone::clone);
        list(out, paint, "removed", &tasks.removed, Clone::clone);
    }

    fn time_text(&self, out: &mut String, paint: Paint) {
        let Some(time) = &self.time else { return };
        let _ = writeln!(out, "\n{}", paint.strong("time (estimate)"));
        let difference = time.latency_b_ns - time.latency_a_ns;
        let _ = writeln!(
            out,
            "  {}, was {}: {}",
            Time::from_ns(time.latency_b_ns),
            Time::from_ns(time.latency_a_ns),
            signed(difference)
        );
        list(out, paint, "notes", &time.notes, |note| {
            clean(note).into_owned()
        });
        list(out, paint, "program", &time.program, |fact| {
            let said = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
            let (b, a) = (said(&fact.b), said(&fact.a));
            format!("{}: {}, was {}", clean(&fact.fact), clean(&b), clean(&a))
        });
        let changed: Vec<_> = time
            .layers
            .iter()
            .filter(|l| l.contribution_ns.abs() >= 5e-4)
            .collect();
        list(out, paint, "of which", &changed, |layer| {
            format!(
                "{:>10}  {}  {}",
                signed(layer.contribution_ns),
                clean(&layer.layer),
                paint.dim(layer.why)
            )
        });
        if let Some(others) = changed.get(LINES..).filter(|others| !others.is_empty()) {
            let sum = others.iter().map(|layer| layer.contribution_ns).sum();
            let text = format!("{:>10}  these others together", signed(sum));
            let _ = writeln!(out, "  {}", paint.dim(text));
        }
        list(out, paint, "machine", &time.machine, |figure| {
            let said = |value: &Option<String>| {
                let value = value.as_ref();
                value.map_or("none".to_owned(), |value| quantity(value, &figure.unit))
            };
            format!(
                "{}: {}, was {}",
                clean(&figure.figure),
                said(&figure.b),
                said(&figure.a)
            )
        });
    }

    fn values_text(&self, out: &mut String, paint: Paint) {
        let Some(values) = &self.values else { return };
        let _ = writeln!(out, "\n{}", paint.strong("values on the same inputs"));
        for output in &values.outputs {
            let _ = writeln!(out, "  {}  {}", clean(&output.output), output.line());
        }
        for note in &values.notes {
            let _ = writeln!(out, "  {}", clean(note));
        }
        let _ = match &values.first {
            None => writeln!(out, "  no matched task writes other numbers"),
            Some(first) => writeln!(
                out,
                "  {} is the first to write other numbers: to {}, by {} at most",
                if first.task_a == first.task_b {
                    first.task_a.clone()
                } else {
                    format!("{} ({})", first.task_a, first.task_b)
                },
                clean(&first.buffer),
                number(first.max_abs)
            ),
        };
    }
}

fn signed(ns: f64) -> String {
    let sign = if ns < 0.0 { "−" } else { "+" };
    format!("{sign}{}", Time::from_ns(ns.abs()))
}

/// A title and the first entries of a list; nothing for an empty one.
fn list<T>(
    out: &mut String,
    paint: Paint,
    title: &str,
    entries: &[T],
    line: impl Fn(&T) -> String,
) {
    if entries.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", paint.strong(title));
    for entry in entries.iter().take(LINES) {
        let _ = writeln!(out, "  {}", line(entry).trim_end());
    }
    if entries.len() > LINES {
        let rest = count(entries.len() - LINES, "other");
        let _ = writeln!(
            out,
            "  {}",
            paint.dim(format_args!("and {rest}: --json has all"))
        );
    }
}
