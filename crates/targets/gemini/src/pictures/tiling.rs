//! How each layer is cut over the cores: images, channels, rows and columns of the parts that they compute.

use super::{Picture, head};
use crate::names::Name;
use crate::schedule::{Bounds, Schedule};
use chipless_model::escape;
use indexmap::IndexMap;
use std::fmt::Write;

/// Layers and parts of a layer that are drawn.
const MOST_LAYERS: usize = 400;
const MOST_PARTS: usize = 64;
/// Sizes in pixels: a line, the bar of a dimension, and what stands between bars.
const LINE: f64 = 18.0;
const BAR: f64 = 150.0;
const GAP: f64 = 16.0;
const NAMES: f64 = 220.0;

const DIMENSIONS: [&str; 4] = ["images", "channels", "rows", "columns"];

pub(super) fn picture(schedule: &Schedule) -> Picture {
    let mut layers: IndexMap<Name, Vec<(u32, Bounds)>> = IndexMap::new();
    for (core, workload) in schedule.workloads() {
        let parts = layers.entry(workload.layer).or_default();
        parts.push((core.id, workload.bounds));
    }
    let title = format!("How {} layers are cut over the cores", layers.len());
    let shown = layers.len().min(MOST_LAYERS);
    let lines: usize = layers
        .values()
        .take(shown)
        .map(|parts| parts.len().min(MOST_PARTS))
        .sum();
    let width = NAMES + 4.0 * (BAR + GAP) + 20.0;
    let mut svg = head(width, LINE * (lines + 3) as f64 + 40.0, &title);
    let mut text = String::new();
    let left = |d: usize| NAMES + d as f64 * (BAR + GAP);
    for (d, name) in DIMENSIONS.iter().enumerate() {
        let _ = writeln!(svg, r#"<text x="{:.1}" y="44">{name}</text>"#, left(d));
    }
    let mut y = 50.0;
    for (name, parts) in layers.iter().take(shown) {
        let whole = parts.iter().fold([0u32; 4], |whole, (_, bounds)| {
            std::array::from_fn(|d| whole[d].max(bounds.upper[d]))
        });
        let layer = schedule.name(*name);
        let _ = writeln!(text, "{layer}");
        for (core, bounds) in parts.iter().take(MOST_PARTS) {
            let _ = writeln!(
                svg,
                r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{} on core {core}</text>"#,
                NAMES - 8.0,
                y + 12.0,
                escape(layer)
            );
            let mut ranges = Vec::new();
            for d in 0..4 {
                let extent = f64::from(whole[d]) + 1.0;
                let from = BAR * f64::from(bounds.lower[d]) / extent;
                let to = BAR * (f64::from(bounds.upper[d]) + 1.0) / extent;
                let _ = writeln!(
                    svg,
                    r##"<rect x="{:.1}" y="{:.1}" width="{BAR}" height="{:.1}" fill="#f4f4f4" stroke="#ccc" stroke-width="0.5"/><rect x="{:.2}" y="{:.1}" width="{:.2}" height="{:.1}" fill="hsl({},45%,65%)"><title>{} {} to {}</title></rect>"##,
                    left(d),
                    y + 2.0,
                    LINE - 4.0,
                    left(d) + from,
                    y + 2.0,
                    (to - from).max(0.5),
                    LINE - 4.0,
                    core.wrapping_mul(137) % 360,
                    DIMENSIONS[d],
                    bounds.lower[d],
                    bounds.upper[d]
                );
                ranges.push(format!(
                    "{} {}-{}",
                    DIMENSIONS[d], bounds.lower[d], bounds.upper[d]
                ));
            }
            let _ = writeln!(text, "  core {core:<4} {}", ranges.join(", "));
            y += LINE;
        }
        if parts.len() > MOST_PARTS {
            let _ = writeln!(text, "  and {} more", parts.len() - MOST_PARTS);
        }
    }
    if layers.len() > shown {
        let _ = writeln!(text, "and {} more layers", layers.len() - shown);
    }
    svg.push_str("</svg>\n");
    Picture {
        name: "tiling".into(),
        title,
        svg,
        text,
    }
}
