//! The mesh: the bytes of each link, as a whole and over time.

use super::{COLUMNS, LETTER, Picture, WIDTH, axis, head};
use crate::machine::Machine;
use crate::traffic::{Mesh, Traffic};
use chipless_model::{Program, ResourceId, TaskId, escape};
use chipless_sim::Timeline;
use std::collections::HashMap;
use std::fmt::Write;

/// Links that are drawn over time: the busiest.
const MOST_LINKS: usize = 64;
/// Height of a link in pixels.
const LINE: f64 = 16.0;
/// Shares of what a link can carry, from nothing to all of it.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

pub(super) fn picture(mesh: &Mesh, traffic: &Traffic) -> Picture {
    let title = format!(
        "Mesh of {} x {} cores: {} byte-hops, busiest link {} bytes",
        mesh.columns,
        mesh.rows,
        traffic.byte_hops(),
        traffic.busiest()
    );
    // Wide enough for the labels of the links of two neighbouring columns.
    let pitch = 200.0;
    let width = (f64::from(mesh.columns) * pitch).max(LETTER * title.len() as f64);
    let mut svg = head(width + 40.0, f64::from(mesh.rows) * pitch + 60.0, &title);
    let centre = |(x, y): (u32, u32)| {
        (
            20.0 + (f64::from(x) + 0.5) * pitch,
            50.0 + (f64::from(y) + 0.5) * pitch,
        )
    };
    let mut text = String::new();
    let most = traffic.busiest().max(1) as f64;
    for (link, bytes) in traffic
        .links
        .iter()
        .enumerate()
        .filter(|(_, bytes)| **bytes > 0)
    {
        let Some((from, to)) = mesh.ends(link) else {
            continue;
        };
        let ((x0, y0), (x1, y1)) = (centre(from), centre(to));
        // The two directions side by side.
        let (dx, dy) = ((x1 - x0) / pitch * 8.0, (y1 - y0) / pitch * 8.0);
        let share = *bytes as f64 / most;
        let _ = writeln!(
            svg,
            r##"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" stroke="#c0392b" stroke-opacity="{:.2}" stroke-width="{:.1}"><title>{}: {bytes} bytes</title></line>"##,
            x0 - dy,
            y0 + dx,
            x1 - dy,
            y1 + dx,
            0.25 + 0.75 * share,
            1.0 + 7.0 * share,
            mesh.name(link)
        );
        // Beside its line: above or below, or to the left or right.
        let (anchor, arrow) = match () {
            () if dy > 0.0 => ("end", '↓'),
            () if dy < 0.0 => ("start", '↑'),
            () if dx > 0.0 => ("middle", '→'),
            () => ("middle", '←'),
        };
        let (x, y) = (
            f64::midpoint(x0, x1) - 1.8 * dy,
            f64::midpoint(y0, y1) + 2.2 * dx + 4.0,
        );
        let _ = writeln!(
            svg,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{arrow} {bytes}</text>"#
        );
        let bar = "█".repeat(((share * 40.0).round() as usize).max(1));
        let _ = writeln!(text, "  {:<12} {bytes:>14}  {bar}", mesh.name(link));
    }
    for y in 0..mesh.rows {
        for x in 0..mesh.columns {
            let (cx, cy) = centre((x, y));
            let number = y * mesh.columns + x;
            let _ = writeln!(
                svg,
                r##"<rect x="{:.1}" y="{:.1}" width="44" height="44" rx="5" fill="#f4f4f4" stroke="#333"/><text x="{cx:.1}" y="{:.1}" text-anchor="middle">{number}</text>"##,
                cx - 22.0,
                cy - 22.0,
                cy + 4.0
            );
        }
    }
    svg.push_str("</svg>\n");
    Picture {
        name: "mesh".into(),
        title,
        svg,
        text,
    }
}

/// How much of what it can carry each link carries, slice of time by slice. The bytes of a transfer count evenly from its start to
/// its end.
pub(super) fn over_time(program: &Program<'_>, timeline: &Timeline, machine: &Machine) -> Picture {
    let mut slices: HashMap<ResourceId, (u64, [f64; COLUMNS])> = HashMap::new();
    let end = timeline.end.0.max(1) as f64;
    for task in (0..program.tasks.len()).map(TaskId::from_usize) {
        let times = &timeline.tasks[task];
        let [start, stop] = [times.start, times.end].map(|t| t.0 as f64 / end * COLUMNS as f64);
        for demand in program.demands(task) {
            if !program.resources[demand.resource].name.starts_with("link ") {
                continue;
            }
            let (bytes, slices) = slices.entry(demand.resource).or_insert((0, [0.0; COLUMNS]));
            *bytes = bytes.saturating_add(demand.bytes);
            let last = (stop as usize).min(COLUMNS - 1);
            for (n, slice) in slices
                .iter_mut()
                .enumerate()
                .take(last + 1)
                .skip(start as usize)
            {
                let inside = stop.min(n as f64 + 1.0) - start.max(n as f64);
                let part = if stop > start {
                    inside / (stop - start)
                } else {
                    1.0
                };
                *slice += demand.bytes as f64 * part;
            }
        }
    }
    let mut links: Vec<_> = slices.into_iter().collect();
    links.sort_by_key(|(link, (bytes, _))| (std::cmp::Reverse(*bytes), *link));
    let used = links.len();
    links.truncate(MOST_LINKS);
    let cycles = machine.cycles_of(timeline.end);
    let title = format!(
        "{used} links of the mesh over {cycles} cycles, the {} busiest from the top",
        links.len()
    );
    let (left, cell) = (150.0, (WIDTH - 150.0) / COLUMNS as f64);
    let mut svg = head(WIDTH + 40.0, LINE * links.len() as f64 + 80.0, &title);
    let mut text = String::new();
    let seconds = timeline.end.0 as f64 * 1e-12 / COLUMNS as f64;
    for (line, (link, (bytes, slices))) in links.iter().enumerate() {
        let resource = &program.resources[*link];
        let y = 36.0 + LINE * line as f64;
        let name = resource.name.trim_start_matches("link ");
        let _ = writeln!(
            svg,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{}<title>{bytes} bytes</title></text>"#,
            left - 8.0,
            y + 12.0,
            escape(name)
        );
        let mut cells = String::with_capacity(COLUMNS);
        for (n, slice) in slices.iter().enumerate() {
            let share = (slice / (resource.capacity * seconds).max(1.0)).min(1.0);
            // What is carried at all is seen.
            let shade = (share * (SHADES.len() - 1) as f64).ceil() as usize;
            cells.push(SHADES[shade]);
            if *slice > 0.0 {
                let _ = writeln!(
                    svg,
                    r##"<rect x="{:.1}" y="{y:.1}" width="{cell:.1}" height="{:.1}" fill="#c0392b" fill-opacity="{:.2}"><title>{}: {:.0} bytes, {:.0} % of what it can carry</title></rect>"##,
                    left + cell * n as f64,
                    LINE - 2.0,
                    0.15 + 0.85 * share,
                    escape(name),
                    slice,
                    share * 100.0
                );
            }
        }
        let _ = writeln!(text, "{name:>14} │{}", cells.trim_end());
    }
    let _ = writeln!(
        svg,
        r#"<text x="{left}" y="{:.1}">from 0 to {cycles} cycles; the darker, the nearer to what the link can carry</text>"#,
        LINE * links.len() as f64 + 56.0
    );
    svg.push_str("</svg>\n");
    axis(&mut text, cycles);
    Picture {
        name: "mesh-over-time".into(),
        title,
        svg,
        text,
    }
}
