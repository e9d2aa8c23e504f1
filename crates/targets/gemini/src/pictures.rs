//! Pictures of a replay: who works when, the L2 of each core as a map of addresses over time, the mesh with the bytes of each
//! link as a whole and over time, and how layers are cut over the cores.

mod gantt;
mod mesh;
mod tiling;

use crate::machine::Machine;
use crate::replay::{Tiles, occupancy, span};
use crate::schedule::{Core, Schedule, TensorKind};
use crate::traffic::{Mesh, Traffic};
use chipless_model::{Program, Time, escape};
use chipless_sim::Timeline;
use std::collections::HashMap;
use std::fmt::Write;

/// A picture as SVG and as plain text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Short, fit for a file name: `l2-core0`.
    pub name: String,
    /// One line.
    pub title: String,
    /// The picture.
    pub svg: String,
    /// The same for a terminal.
    pub text: String,
}

/// Tensors in one map, cores with a map, at most.
const MOST_TENSORS: usize = 20_000;
const MOST_CORES: usize = 64;

/// Size of a map in pixels, and of the text in characters.
const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 400.0;
const COLUMNS: usize = 72;
const LINES: usize = 20;
/// Width of a letter in pixels, generously.
const LETTER: f64 = 7.0;

/// All pictures of a replay.
pub fn pictures(
    schedule: &Schedule,
    program: &Program<'_>,
    tiles: Tiles<'_>,
    timeline: &Timeline,
    machine: &Machine,
) -> Vec<Picture> {
    let mut pictures = vec![gantt::picture(program, timeline, machine)];
    let levels = occupancy(schedule, tiles, timeline);
    let mut first = 0;
    for (core, levels) in schedule.cores.iter().zip(&levels).take(MOST_CORES) {
        let tiles = &tiles[first..first + core.workloads.len()];
        first += core.workloads.len();
        let ends: Vec<Time> = tiles.iter().map(|tiles| span(timeline, *tiles).1).collect();
        let peak = levels.iter().map(|l| l.bytes).max().unwrap_or(0);
        let map = Map::of(schedule, core, &ends, timeline.end, machine);
        let title = format!(
            "L2 of core {}: {} tensors, at most {peak} bytes at a time",
            core.id,
            map.tensors.len()
        );
        pictures.push(Picture {
            name: format!("l2-core{}", core.id),
            svg: map.svg(&title),
            text: map.text(),
            title,
        });
    }
    let mesh = Mesh::of(schedule);
    let traffic = Traffic::of(schedule, &mesh);
    pictures.push(mesh::picture(&mesh, &traffic));
    pictures.push(mesh::over_time(program, timeline, machine));
    pictures.push(tiling::picture(schedule));
    pictures
}

/// A tensor in L2.
struct Block {
    kind: TensorKind,
    address: u64,
    size: u64,
    start: Time,
    end: Time,
    name: String,
}

struct Map {
    tensors: Vec<Block>,
    /// Bytes of L2 that are shown.
    height: u64,
    end: Time,
    cycles: u64,
}

/// What tells one resident from another: kind, tensor, address, box and transfer.
type Resident = (TensorKind, Option<u32>, Option<u32>, [u32; 4], Option<u32>);

impl Map {
    /// Tensors without addresses lie one upon another, in the order of their coming.
    fn of(schedule: &Schedule, core: &Core, ends: &[Time], end: Time, machine: &Machine) -> Map {
        let mut tensors: Vec<Block> = Vec::new();
        let mut live: HashMap<Resident, usize> = HashMap::new();
        let mut start = Time::ZERO;
        for (workload, end) in core.workloads.iter().zip(ends) {
            let mut next = HashMap::with_capacity(live.len());
            let mut stacked = 0;
            for tensor in &workload.buffer {
                let key = (
                    tensor.kind,
                    tensor.tensor_id,
                    tensor.address,
                    tensor.bounds.lower,
                    tensor.transfers.first().copied(),
                );
                let address = tensor.address.map_or(stacked, u64::from);
                stacked += tensor.size;
                let index = live
                    .get(&key)
                    .copied()
                    .filter(|i| tensors[*i].address == address)
                    .unwrap_or(tensors.len());
                if index == tensors.len() {
                    if tensors.len() == MOST_TENSORS {
                        continue;
                    }
                    let layer = tensor
                        .layer
                        .or_else(|| tensor.sources.first().and_then(|s| s.layer));
                    let name = format!(
                        "{} {}",
                        tensor.kind.name(),
                        layer.map_or("", |name| schedule.name(name))
                    );
                    tensors.push(Block {
                        kind: tensor.kind,
                        address,
                        size: tensor.size,
                        start,
                        end: *end,
                        name,
                    });
                }
                tensors[index].end = (*end).max(start);
                next.insert(key, index);
            }
            live = next;
            start = (*end).max(start);
        }
        let top = tensors
            .iter()
            .map(|t| t.address.saturating_add(t.size))
            .max()
            .unwrap_or(0);
        Map {
            tensors,
            height: top.max(1),
            end,
            cycles: machine.cycles_of(end),
        }
    }

    fn svg(&self, title: &str) -> String {
        let (left, above) = (90.0, 40.0);
        let mut svg = head(WIDTH + left + 20.0, HEIGHT + above + 50.0, title);
        let x = |time: Time| left + WIDTH * time.0 as f64 / self.end.0.max(1) as f64;
        let y = |address: u64| above + HEIGHT * (1.0 - address as f64 / self.height as f64);
        for tensor in &self.tensors {
            let (top, bottom) = (
                y(tensor.address.saturating_add(tensor.size)),
                y(tensor.address),
            );
            let (from, to) = (x(tensor.start), x(tensor.end));
            let _ = writeln!(
                svg,
                r##"<rect x="{from:.2}" y="{top:.2}" width="{:.2}" height="{:.2}" fill="{}" stroke="#333" stroke-width="0.3"><title>{}: {} bytes at {:#x}</title></rect>"##,
                (to - from).max(0.2),
                (bottom - top).max(0.2),
                colour(tensor.kind),
                escape(&tensor.name),
                tensor.size,
                tensor.address
            );
            if to - from > LETTER * tensor.name.len() as f64 && bottom - top > 14.0 {
                let (middle, line) = (f64::midpoint(from, to), f64::midpoint(top, bottom) + 4.0);
                let _ = writeln!(
                    svg,
                    r#"<text x="{middle:.1}" y="{line:.1}" text-anchor="middle">{}</text>"#,
                    escape(&tensor.name)
                );
            }
        }
        let _ = writeln!(
            svg,
            r#"<text x="{}" y="{:.1}" text-anchor="end">address in L2</text>"#,
            left - 6.0,
            above - 6.0
        );
        for part in 0..=4u64 {
            let address = self.height / 4 * part;
            let _ = writeln!(
                svg,
                r#"<text x="{}" y="{:.1}" text-anchor="end">{address:#x}</text>"#,
                left - 6.0,
                y(address) + 4.0
            );
            let at = Time(self.end.0 / 4 * part);
            let _ = writeln!(
                svg,
                r#"<text x="{:.1}" y="{}" text-anchor="middle">{}</text>"#,
                x(at),
                above + HEIGHT + 16.0,
                self.cycles / 4 * part
            );
        }
        let _ = writeln!(
            svg,
            r#"<text x="{left}" y="{}">cycles; weights blue, inputs green, results on their way out orange</text>"#,
            above + HEIGHT + 36.0
        );
        svg.push_str("</svg>\n");
        svg
    }

    fn text(&self) -> String {
        let mut cells = vec![[' '; COLUMNS]; LINES];
        let scale = |value: u64, whole: u64, count: usize| {
            (u128::from(value) * count as u128 / u128::from(whole.max(1))).min(count as u128)
                as usize
        };
        for tensor in &self.tensors {
            let from = scale(tensor.start.0, self.end.0, COLUMNS).min(COLUMNS - 1);
            let to = scale(tensor.end.0, self.end.0, COLUMNS).clamp(from + 1, COLUMNS);
            let low = scale(tensor.address, self.height, LINES).min(LINES - 1);
            let high = scale(
                tensor.address.saturating_add(tensor.size),
                self.height,
                LINES,
            )
            .clamp(low + 1, LINES);
            let mark = tensor.kind.name().chars().next().unwrap_or('?');
            for line in &mut cells[low..high] {
                line[from..to].fill(mark);
            }
        }
        let mut text = "address in L2\n".to_owned();
        for (line, cells) in cells.iter().enumerate().rev() {
            let address = (u128::from(self.height) * line as u128 / LINES as u128) as u64;
            let _ = writeln!(
                text,
                "{address:>#10x} │{}",
                cells.iter().collect::<String>().trim_end()
            );
        }
        let _ = writeln!(text, "{:>10} └{}", "", "─".repeat(COLUMNS));
        let _ = writeln!(
            text,
            "{:>10}  0{:>width$} cycles; w weights, i inputs, o results on their way out",
            "",
            self.cycles,
            width = COLUMNS - 1
        );
        text
    }
}

fn colour(kind: TensorKind) -> &'static str {
    match kind {
        TensorKind::Weight => "#7fa6d6",
        TensorKind::Ifmap => "#8fc58f",
        TensorKind::Ofmap => "#e5a660",
    }
}

/// The axis below rows of [`COLUMNS`] letters.
fn axis(text: &mut String, cycles: u64) {
    let _ = writeln!(text, "{:>14} └{}", "", "─".repeat(COLUMNS));
    let _ = writeln!(
        text,
        "{:>14}  0{cycles:>width$} cycles",
        "",
        width = COLUMNS - 1
    );
}

fn head(width: f64, height: f64, title: &str) -> String {
    let title = escape(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n<title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"20\" y=\"22\" font-size=\"14\">{title}</text>\n"
    )
}
