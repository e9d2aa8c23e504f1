//! The runs that no other beats in both of two numbers, and a picture of them.

use crate::results::Results;
use chipless::{Failure, suggest};
use chipless_report::tables::Values;
use chipless_report::widest;
use std::fmt::Write;

/// Pixels of the picture.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 440.0;
const MARGIN: f64 = 64.0;

/// Runs that no other beats.
#[derive(Clone, Debug, PartialEq)]
pub struct Front {
    names: [String; 2],
    /// Row, and the two numbers, of every run that came to its end.
    points: Vec<(usize, f64, f64)>,
    /// Rows of the front, by the first number.
    pub rows: Vec<usize>,
}

/// Of two columns, of which less is better.
///
/// # Errors
/// A name that no column of numbers has.
pub fn pareto(results: &Results, a: &str, b: &str) -> Result<Front, Failure> {
    let numbers = |name: &str| {
        let found = results.columns().find(|column| column.name == name);
        match found.map(|column| &column.values) {
            Some(Values::OptionalNumber(v)) => Ok(v.clone()),
            Some(Values::Time(v)) => Ok(v.iter().copied().map(Some).collect()),
            Some(Values::Whole(v)) => Ok(v.iter().map(|n| Some(*n as f64)).collect()),
            _ => {
                let names: Vec<&str> = results.columns().map(|column| &*column.name).collect();
                let hint = suggest::hint(name, names.iter().copied());
                let text = format!("expected a column of numbers, found \"{name}\"{hint}");
                Err(Failure::misuse("--pareto", text))
            }
        }
    };
    let (first, second): (Vec<Option<f64>>, Vec<Option<f64>>) = (numbers(a)?, numbers(b)?);
    let points: Vec<(usize, f64, f64)> = first
        .iter()
        .zip(&second)
        .enumerate()
        .filter_map(|(row, (a, b))| Some((row, (*a)?, (*b)?)))
        .filter(|(_, a, b)| a.is_finite() && b.is_finite())
        .collect();
    let mut order: Vec<&(usize, f64, f64)> = points.iter().collect();
    order.sort_by(|x, y| {
        x.1.total_cmp(&y.1)
            .then(x.2.total_cmp(&y.2))
            .then(x.0.cmp(&y.0))
    });
    let mut rows = Vec::new();
    let mut best: Option<(f64, f64)> = None;
    for (row, a, b) in order {
        // Of runs that are equal in both, all stay: none beats the other.
        let is_equal = |x: f64, y: f64| a.total_cmp(&x).is_eq() && b.total_cmp(&y).is_eq();
        if best.is_none_or(|(x, y)| *b < y || is_equal(x, y)) {
            rows.push(*row);
            best = Some((*a, *b));
        }
    }
    Ok(Front {
        names: [a.to_owned(), b.to_owned()],
        points,
        rows,
    })
}

impl Front {
    /// The rows of the front as a table for people.
    pub fn text(&self, results: &Results) -> String {
        let columns: Vec<_> = results
            .columns()
            .filter(|c| c.name != "status" && c.name != "message")
            .collect();
        let cell = |values: &Values, row: usize| match values {
            Values::Text(v) => v[row].clone(),
            Values::Size(v) => v[row].to_string(),
            Values::Whole(v) => v[row].to_string(),
            Values::Time(v) => v[row].to_string(),
            Values::Flag(v) => v[row].to_string(),
            Values::OptionalNumber(v) => v[row].map_or_else(String::new, |n| n.to_string()),
            _ => String::new(),
        };
        let mut lines: Vec<Vec<String>> =
            vec![columns.iter().map(|c| c.name.to_string()).collect()];
        lines.extend(
            self.rows
                .iter()
                .map(|row| columns.iter().map(|c| cell(&c.values, *row)).collect()),
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

    /// A scatter of all runs with the front drawn through it, as SVG.
    pub fn svg(&self) -> String {
        let bounds = |of: fn(&(usize, f64, f64)) -> f64| {
            let low = self.points.iter().map(of).fold(f64::INFINITY, f64::min);
            let high = self.points.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
            if low < high {
                (low, high)
            } else {
                (low - 0.5, low + 0.5)
            }
        };
        let (x, y) = (bounds(|p| p.1), bounds(|p| p.2));
        let at = |a: f64, b: f64| {
            (
                MARGIN + (a - x.0) / (x.1 - x.0) * (WIDTH - 2.0 * MARGIN),
                HEIGHT - MARGIN - (b - y.0) / (y.1 - y.0) * (HEIGHT - 2.0 * MARGIN),
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
        for (row, a, b) in &self.points {
            let (cx, cy) = at(*a, *b);
            let _ = writeln!(
                svg,
                "<circle cx=\"{cx:.2}\" cy=\"{cy:.2}\" r=\"2.5\" fill=\"#4c78a8\" fill-opacity=\".5\"><title>run {row}: {a}, {b}</title></circle>"
            );
        }
        let front: Vec<String> = self
            .rows
            .iter()
            .filter_map(|row| self.points.iter().find(|point| point.0 == *row))
            .map(|(_, a, b)| at(*a, *b))
            .map(|(x, y)| format!("{x:.2},{y:.2}"))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"#e45756\" stroke-width=\"2\"/>",
            front.join(" ")
        );
        let [a, b] = self
            .names
            .each_ref()
            .map(|name| name.replace('&', "&amp;").replace('<', "&lt;"));
        let middle = HEIGHT / 2.0;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{a}</text>\n\
             <text transform=\"translate(16 {middle}) rotate(-90)\" text-anchor=\"middle\">{b}</text>\n\
             <text x=\"{left}\" y=\"{}\">{:.6}</text>\n<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.6}</text>\n\
             <text x=\"{}\" y=\"{bottom}\" text-anchor=\"end\">{:.4}</text>\n<text x=\"{}\" y=\"{MARGIN}\" text-anchor=\"end\">{:.4}</text>\n</svg>",
            WIDTH / 2.0,
            HEIGHT - 16.0,
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
}
