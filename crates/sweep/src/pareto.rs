//! The runs that no other beats in both of two numbers, and a picture of them.

use chipless::{Failure, suggest};
use chipless_report::tables::{Table, Values};
use chipless_report::widest;
use std::cmp::Ordering;
use std::fmt::Write;

/// Pixels of the picture.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 440.0;
const MARGIN: f64 = 64.0;
const COLOURS: [&str; 6] = [
    "#4c78a8", "#e45756", "#54a24b", "#b279a2", "#f58518", "#72b7b2",
];

/// Runs that no other beats.
#[derive(Clone, Debug, PartialEq)]
pub struct Front {
    names: Vec<String>,
    /// One for each value of the column by which runs are told apart.
    groups: Vec<Group>,
}

/// Runs that are compared with each other.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    name: String,
    /// Row and numbers of every run that came to its end.
    points: Vec<(usize, Vec<f64>)>,
    /// Those of the front, by their numbers.
    front: Vec<(usize, Vec<f64>)>,
}

/// Of columns of [results](crate::Results), of which less is better. With `by`, a column of text, runs are compared only with those that have the same there. Of
/// runs that are equal in all columns, those with the least of the column `tie` stay.
///
/// # Errors
/// A name that no column of numbers has.
pub fn pareto(
    table: &Table,
    names: &[&str],
    by: Option<&str>,
    tie: Option<&str>,
) -> Result<Front, Failure> {
    let columns: Vec<Vec<Option<f64>>> = names
        .iter()
        .map(|name| numbers(table, name))
        .collect::<Result<_, _>>()?;
    let by = by.and_then(|name| table.columns().find(|column| column.name == name));
    let group = |row: usize| match by.map(|column| &column.values) {
        Some(Values::Text(text)) => text[row].as_str(),
        _ => "",
    };
    let mut groups: Vec<Group> = Vec::new();
    for row in 0..table.rows() {
        let point: Option<Vec<f64>> = columns.iter().map(|column| column[row]).collect();
        let Some(point) = point.filter(|point| point.iter().all(|n| n.is_finite())) else {
            continue;
        };
        let at = groups.iter().rposition(|of| of.name == group(row));
        let at = at.unwrap_or_else(|| {
            groups.push(Group {
                name: group(row).to_owned(),
                points: Vec::new(),
                front: Vec::new(),
            });
            groups.len() - 1
        });
        groups[at].points.push((row, point));
    }
    let ties = tie.map(|name| numbers(table, name)).transpose()?;
    let tie = |row: usize| match &ties {
        Some(column) => column[row].unwrap_or(f64::INFINITY),
        None => 0.0,
    };
    for group in &mut groups {
        group.front = front(&group.points, &tie);
    }
    Ok(Front {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        groups,
    })
}

/// The numbers of a column.
fn numbers(table: &Table, name: &str) -> Result<Vec<Option<f64>>, Failure> {
    let found = table.columns().find(|column| column.name == name);
    match found.map(|column| &column.values) {
        Some(Values::OptionalNumber(v)) => Ok(v.clone()),
        Some(Values::Time(v)) => Ok(v.iter().copied().map(Some).collect()),
        Some(Values::Whole(v)) => Ok(v.iter().map(|n| Some(*n as f64)).collect()),
        _ => {
            let names: Vec<&str> = table.columns().map(|column| &*column.name).collect();
            let hint = suggest::hint(name, names.iter().copied());
            let text = format!("expected a column of numbers, found \"{name}\"{hint}");
            Err(Failure::misuse("--pareto", text))
        }
    }
}

/// The points that no other beats, in order. Of points that are equal, those stay whose row has the least `tie`.
fn front(points: &[(usize, Vec<f64>)], tie: &dyn Fn(usize) -> f64) -> Vec<(usize, Vec<f64>)> {
    let mut order: Vec<&(usize, Vec<f64>)> = points.iter().collect();
    let compare = |a: &[f64], b: &[f64]| {
        let each = a.iter().zip(b).map(|(x, y)| x.total_cmp(y));
        each.fold(Ordering::Equal, Ordering::then)
    };
    order.sort_by(|a, b| {
        let less = tie(a.0).total_cmp(&tie(b.0));
        compare(&a.1, &b.1).then(less).then(a.0.cmp(&b.0))
    });
    let mut front: Vec<(usize, Vec<f64>)> = Vec::new();
    for (row, point) in order {
        // Whatever beats it stands before it, and is on the front or beaten by one that is. The newest is the likeliest.
        let is_beaten = front.iter().rev().any(|(before, other)| {
            let is_no_worse = other.iter().zip(point).all(|(x, y)| x <= y);
            is_no_worse && (other != point || tie(*before) < tie(*row))
        });
        if !is_beaten {
            front.push((*row, point.clone()));
        }
    }
    front
}

impl Front {
    /// Rows of the front, group by group, by their numbers.
    pub fn rows(&self) -> impl Iterator<Item = usize> {
        self.groups
            .iter()
            .flat_map(|group| group.front.iter().map(|(row, _)| *row))
    }

    /// The rows of the front as a table for people.
    pub fn text(&self, table: &Table) -> String {
        let columns: Vec<_> = table
            .columns()
            .filter(|c| !["status", "message", "front"].contains(&&*c.name))
            .collect();
        let cell = |values: &Values, row: usize| match values {
            Values::Text(v) => v[row].clone(),
            Values::Size(v) => v[row].to_string(),
            Values::Whole(v) => v[row].to_string(),
            Values::Time(v) => shown(v[row]),
            Values::Flag(v) => v[row].to_string(),
            Values::OptionalNumber(v) => v[row].map_or_else(String::new, shown),
            _ => String::new(),
        };
        let mut lines: Vec<Vec<String>> =
            vec![columns.iter().map(|c| c.name.to_string()).collect()];
        lines.extend(
            self.rows()
                .map(|row| columns.iter().map(|c| cell(&c.values, row)).collect()),
        );
        let widths: Vec<usize> = (0..columns.len())
            .map(|c| widest(lines.iter().map(|line| &*line[c])))
            .collect();
        let mut text = String::new();
        for line in lines {
            let padded: Vec<String> = line
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:>width$}"))
                .collect();
            text.push_str(padded.join("  ").trim_end());
            text.push('\n');
        }
        text
    }

    /// A scatter of all runs by the first two numbers, with the front drawn through it, as SVG.
    pub fn svg(&self) -> String {
        let bounds = |of: usize| {
            let points = self.groups.iter().flat_map(|group| &group.points);
            let numbers = || points.clone().map(|(_, numbers)| numbers[of]);
            let low = numbers().fold(f64::INFINITY, f64::min);
            let high = numbers().fold(f64::NEG_INFINITY, f64::max);
            if low < high {
                (low, high)
            } else if low.is_finite() {
                (low - 0.5, low + 0.5)
            } else {
                (0.0, 1.0)
            }
        };
        let (x, y) = (bounds(0), bounds(1));
        let at = |numbers: &[f64]| {
            (
                MARGIN + (numbers[0] - x.0) / (x.1 - x.0) * (WIDTH - 2.0 * MARGIN),
                HEIGHT - MARGIN - (numbers[1] - y.0) / (y.1 - y.0) * (HEIGHT - 2.0 * MARGIN),
            )
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"system-ui,sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
        );
        let (left, bottom) = (MARGIN, HEIGHT - MARGIN);
        let _ = writeln!(
            svg,
            "<path d=\"M{left} {MARGIN}V{bottom}H{}\" fill=\"none\" stroke=\"#888\"/>",
            WIDTH - MARGIN
        );
        for (index, group) in self.groups.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            for (row, numbers) in &group.points {
                let (cx, cy) = at(numbers);
                let of: Vec<String> = numbers.iter().map(f64::to_string).collect();
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{cx:.2}\" cy=\"{cy:.2}\" r=\"2.5\" fill=\"{colour}\" fill-opacity=\".5\"><title>run {row}: {}</title></circle>",
                    of.join(", ")
                );
            }
            let front: Vec<String> = group
                .front
                .iter()
                .map(|(_, numbers)| at(numbers))
                .map(|(x, y)| format!("{x:.2},{y:.2}"))
                .collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                front.join(" ")
            );
            if !group.name.is_empty() {
                let _ = writeln!(
                    svg,
                    "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"{colour}\">{}</text>",
                    WIDTH - 8.0,
                    16.0 * (index + 1) as f64,
                    escaped(&group.name)
                );
            }
        }
        let middle = HEIGHT / 2.0;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(16 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n\
             <text x=\"{left}\" y=\"{}\">{:.6}</text>\n<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.6}</text>\n\
             <text x=\"{}\" y=\"{bottom}\" text-anchor=\"end\">{:.4}</text>\n<text x=\"{}\" y=\"{MARGIN}\" text-anchor=\"end\">{:.4}</text>\n</svg>",
            WIDTH / 2.0,
            HEIGHT - 16.0,
            escaped(&self.names[0]),
            escaped(&self.names[1]),
            bottom + 18.0,
            x.0,
            WIDTH - MARGIN,
            bottom + 18.0,
            x.1,
            left - 6.0,
            y.0,
            left - 6.0,
            y.1,
        );
        svg
    }

    /// The picture and the rows of the front as a page.
    pub fn page(&self, title: &str, table: &Table) -> String {
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{0}</title>\n\
             <style>body{{font:15px system-ui,sans-serif;margin:2em}}svg{{max-width:60em}}pre{{overflow-x:auto}}</style>\n\
             <h1>{0}</h1>\n<p>{1} runs. The line goes through those that no other beats in {2}; less is better.</p>\n{3}\n<pre>{4}</pre>\n</html>\n",
            escaped(title),
            table.rows(),
            escaped(&self.names.join(", ")),
            self.svg(),
            escaped(&self.text(table)),
        )
    }
}

/// A number for people: whole ones as they are, others with six digits.
fn shown(number: f64) -> String {
    let rounded = format!("{number:.5e}").parse().unwrap_or(number);
    if number.fract() == 0.0 || number.abs() >= 1e6 {
        format!("{number:.0}")
    } else {
        f64::to_string(&rounded)
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
