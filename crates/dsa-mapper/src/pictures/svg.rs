//! A fabric as SVG, with the links that a mapping uses in the colour of the value that they carry.

use super::layout::layout;
use super::{Mapped, tenants};
use chipless_dsa::adg::{Adg, Element, ElementKind};
use chipless_dsa::graph::{Graph, NodeId};
use chipless_model::escape;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Pixels of a unit of the layout.
const UNIT: f64 = 62.0;
const MARGIN: f64 = 56.0;

/// Draws a fabric and, if given, what is mapped onto it.
pub fn svg(adg: &Adg, mapped: Option<Mapped<'_>>) -> String {
    let layout = layout(adg);
    let place = |(x, y): (f64, f64)| (MARGIN + x * UNIT, MARGIN + y * UNIT);
    let (width, height) = (
        layout.width * UNIT + 2.0 * MARGIN,
        layout.height * UNIT + 2.0 * MARGIN + 8.0,
    );
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"10\">"
    );
    out.push_str("<defs><marker id=\"tip\" viewBox=\"0 0 6 6\" refX=\"5\" refY=\"3\" markerWidth=\"5\" markerHeight=\"5\" orient=\"auto\"><path d=\"M0 0 6 3 0 6z\" fill=\"context-stroke\"/></marker></defs>\n");
    out.push_str("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    // Links: idle ones thin and grey, used ones on top.
    let mut used: BTreeMap<usize, Vec<(NodeId, u32)>> = BTreeMap::new();
    if let Some(mapped) = mapped {
        for (id, edge) in mapped.graph.edges.iter_enumerated() {
            for hop in &mapped.mapping.edges[id].links {
                let values = used.entry(hop.link.index()).or_default();
                if !values.contains(&(edge.source, edge.value)) {
                    values.push((edge.source, edge.value));
                }
            }
        }
    }
    for pass in [false, true] {
        for (id, link) in adg.links.iter_enumerated() {
            let values = used.get(&id.index());
            if values.is_some() != pass || (!pass && is_memory(adg, link.source, link.sink)) {
                continue;
            }
            let (from, to) = (place(layout.at[link.source]), place(layout.at[link.sink]));
            let (a, b) = shorten(from, to);
            match values {
                None => {
                    let _ = writeln!(
                        out,
                        "<path d=\"M{:.1} {:.1} {:.1} {:.1}\" stroke=\"#ddd\" fill=\"none\"/>",
                        a.0, a.1, b.0, b.1
                    );
                }
                Some(values) => {
                    for (lane, (node, value)) in values.iter().enumerate() {
                        let shift = lane as f64 * 3.0;
                        let colour = colour(node.index() * 7 + *value as usize * 3);
                        let title = mapped
                            .map(|mapped| value_name(mapped.graph, *node, *value))
                            .unwrap_or_default();
                        let _ = writeln!(
                            out,
                            "<path d=\"M{:.1} {:.1} {:.1} {:.1}\" stroke=\"{colour}\" stroke-width=\"2.2\" fill=\"none\" marker-end=\"url(#tip)\"><title>{}: {}</title></path>",
                            a.0 + shift,
                            a.1 + shift,
                            b.0 + shift,
                            b.1 + shift,
                            escape(&adg.describe(id)),
                            escape(&title)
                        );
                    }
                }
            }
        }
    }
    let tenants = tenants(adg, mapped);
    for (id, element) in adg.elements.iter_enumerated() {
        let (x, y) = place(layout.at[id]);
        draw(&mut out, element, (x, y), &tenants[id]);
    }
    out.push_str("</svg>\n");
    out
}

/// An element, with what is on it: what, and its name.
fn draw(out: &mut String, element: &Element, (x, y): (f64, f64), tenants: &[(String, String)]) {
    let busy = !tenants.is_empty();
    let label = escape(&element.to_string());
    #[expect(clippy::single_match_else, reason = "a shape for each kind")]
    match element.kind {
        ElementKind::Switch(_) => {
            let _ = writeln!(
                out,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"9\" fill=\"#f4f4f4\" stroke=\"#999\"><title>{label}</title></circle><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#777\" font-size=\"8\">{}</text>",
                y + 3.0,
                element.number
            );
        }
        _ => {
            let fill = match (&element.kind, busy) {
                (ElementKind::ProcessingElement(_), true) => "#cfe3ff",
                (ElementKind::ProcessingElement(_), false) => "#f7f9fc",
                (ElementKind::Memory(_), _) => "#efe7da",
                (_, true) => "#d6f0d6",
                (_, false) => "#f5faf5",
            };
            let _ = writeln!(
                out,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"64\" height=\"34\" rx=\"4\" fill=\"{fill}\" stroke=\"#667\"><title>{label}</title></rect>",
                x - 32.0,
                y - 17.0
            );
            let short = short(element.kind.name(), element.number);
            let first = tenants.first();
            let lines = match first {
                None => vec![short],
                Some((what, name)) => {
                    let more = if tenants.len() > 1 {
                        format!(" +{}", tenants.len() - 1)
                    } else {
                        String::new()
                    };
                    vec![format!("{short}{more}"), clip(what), clip(name)]
                }
            };
            let lines: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
            for (row, line) in lines.iter().enumerate() {
                let at = y + 3.0 + (row as f64 - (lines.len() as f64 - 1.0) / 2.0) * 10.0;
                let weight = if row == 1 {
                    " font-weight=\"bold\""
                } else {
                    ""
                };
                let _ = writeln!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{at:.1}\" text-anchor=\"middle\" font-size=\"8.5\"{weight}>{}</text>",
                    escape(line)
                );
            }
        }
    }
}

fn is_memory(
    adg: &Adg,
    source: chipless_dsa::adg::ElementId,
    sink: chipless_dsa::adg::ElementId,
) -> bool {
    adg.elements[source].memory().is_some() || adg.elements[sink].memory().is_some()
}

/// A line that ends at the rims of what it connects, to the right of its own direction so that two opposite ones do not hide each other.
fn shorten(from: (f64, f64), to: (f64, f64)) -> ((f64, f64), (f64, f64)) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1.0);
    let (ux, uy) = (dx / length, dy / length);
    let rim = 11.0_f64.min(length / 3.0);
    let (sx, sy) = (-uy * 3.5, ux * 3.5);
    (
        (from.0 + ux * rim + sx, from.1 + uy * rim + sy),
        (to.0 - ux * rim + sx, to.1 - uy * rim + sy),
    )
}

/// Colours that differ, by the golden angle.
fn colour(number: usize) -> String {
    let hue = (number as f64 * 137.508) % 360.0;
    format!("hsl({hue:.0} 70% {}%)", 34 + (number % 3) * 9)
}

fn value_name(graph: &Graph, node: NodeId, value: u32) -> String {
    let body = &graph.nodes[node];
    let name = body
        .values
        .get(value as usize)
        .map(|value| value.name.clone())
        .filter(|name| !name.is_empty());
    name.unwrap_or_else(|| {
        if body.name.is_empty() {
            format!("node {}", node.index())
        } else {
            body.name.clone()
        }
    })
}

fn short(kind: &str, number: u32) -> String {
    let letters: String = kind.chars().filter(char::is_ascii_uppercase).collect();
    format!("{letters}{number}")
}

fn clip(text: &str) -> String {
    if text.chars().count() > 12 {
        text.chars().take(11).chain(['…']).collect()
    } else {
        text.to_owned()
    }
}
