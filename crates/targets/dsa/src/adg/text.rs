//! The text models of 2016 to 2020 (`.sbmodel`): lines `key: value` in sections. Elements and links are not in the file; they follow from
//! the dimensions of the mesh, the layout of its ports, and the region whose elements are shared in time.
//!
//! ```text
//! switch (x, y)   ── element (x, y) ──   switch (x + 1, y)
//!                 takes values from all four,
//! switch (x, y+1) ── gives them to ↘ ──  switch (x + 1, y + 1)
//! ```

use super::json::Error;
use super::{
    Adg, Element, ElementId, ElementKind, Form, Link, LinkId, ProcessingElement, Switch,
    VectorPort, lint, rules,
};
use crate::operations;
use chipless_model::{Finding, Limits, Place};
use index_vec::IndexVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Columns and rows of a mesh, at most.
const MOST_COLUMNS: u32 = 128;
/// Links of a switch to ports, at most, each way.
const MOST_PER_SWITCH: u32 = 64;
/// Instructions of an element of the region.
const SLOTS: u32 = 64;
/// Values on a link of the region.
const VALUES: u32 = 128;
/// What the tool takes for an element's delay buffers, registers, and a port's buffer.
const DELAY_DEPTH: u32 = 8;
const REGISTERS: u32 = 8;
const PORT_DEPTH: u32 = 2;

/// Headings of its parts.
const SECTIONS: [&str; 4] = ["[fu-model]", "[switch-model]", "[sub-model]", "[io-model]"];

/// Whether a file is a text model.
pub(super) fn recognize(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(1 << 16)];
    let mut lines = start.split(|byte| *byte == b'\n');
    // The oldest models have no sections, and lists of types alone begin with one.
    lines.any(|line| {
        line.starts_with(b"FU_TYPE ")
            || SECTIONS
                .iter()
                .any(|section| line.starts_with(section.as_bytes()))
    })
}

fn error(line: usize, message: impl Into<String>) -> Error {
    let place = Place::file().at(format!("line {line}"));
    Box::new(rules::TEXT.at(place, message))
}

/// What the lines say.
struct Model<'t> {
    /// Operations of each type of element; `None` for all that there are.
    types: HashMap<&'t str, Option<Vec<String>>>,
    width: u32,
    height: u32,
    inputs: u32,
    outputs: u32,
    layout: &'t str,
    /// Column, row, width and height of the shared region.
    region: [u32; 4],
    /// Types of elements, row by row.
    rows: Vec<(usize, Vec<&'t str>)>,
    /// Lines of further rows.
    extra_rows: Vec<usize>,
    /// Numbers of the ports and of what they are linked to.
    input_ports: Vec<(u32, Vec<u32>)>,
    output_ports: Vec<(u32, Vec<u32>)>,
    /// What is odd and does not keep the model from being read.
    findings: Vec<Finding>,
}

/// Reads a text model.
///
/// # Errors
/// The first line that cannot be read, or what is missing.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<(Adg, Vec<Finding>), Error> {
    if bytes.len() as u64 > limits.text_bytes {
        let (size, most) = (bytes.len(), limits.text_bytes);
        let message = format!("{size} bytes of text exceed the limit text_bytes = {most}");
        return Err(Box::new(rules::LIMIT.at(Place::file(), message)));
    }
    let text = String::from_utf8_lossy(bytes);
    let model = parse(&text)?;
    let adg = model.fabric()?;
    let mut findings = model.findings;
    lint(&adg, &mut findings);
    findings.truncate(usize::try_from(limits.findings).unwrap_or(usize::MAX));
    Ok((adg, findings))
}

fn parse(text: &str) -> Result<Model<'_>, Error> {
    // What the tool takes where the file says nothing.
    let mut model = Model {
        types: HashMap::new(),
        width: 0,
        height: 0,
        inputs: 2,
        outputs: 2,
        layout: "open_splyser",
        region: [0; 4],
        rows: Vec::new(),
        extra_rows: Vec::new(),
        input_ports: Vec::new(),
        output_ports: Vec::new(),
        findings: Vec::new(),
    };
    let mut section = "";
    // Rows of the layout that are still to come.
    let mut rows = 0;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').trim();
            continue;
        }
        if rows > 0 && !line.contains(':') {
            model.rows.push((number, line.split_whitespace().collect()));
            rows -= 1;
            continue;
        }
        if !line.contains(':') && !model.rows.is_empty() && section != "io-model" {
            model.extra_rows.push(number);
            continue;
        }
        let word = line.split([' ', ':']).next().unwrap_or_default();
        match (section, word) {
            ("fu-model", _) | ("", "FU_TYPE") => model.kind(line, number)?,
            ("io-model", _) | ("", "PORT_IN" | "PORT_OUT" | "VPORT_IN" | "VPORT_OUT") => {
                model.port(line, number)?;
            }
            ("sub-model" | "", _) => rows = model.dimension(line, number)?.unwrap_or(rows),
            _ => {}
        }
    }
    model.note_extra();
    Ok(model)
}

fn whole(text: &str, most: u32, line: usize, what: &str) -> Result<u32, Error> {
    match text.trim().parse::<u32>() {
        Ok(value) if value <= most => Ok(value),
        _ => {
            let found: String = text.trim().chars().take(40).collect();
            let message = format!("expected {what}, a number from 0 to {most}, found \"{found}\"");
            Err(error(line, message))
        }
    }
}

impl<'t> Model<'t> {
    /// `FU_TYPE NAME: Operation:code, …`
    fn kind(&mut self, line: &'t str, number: usize) -> Result<(), Error> {
        let Some(rest) = line.strip_prefix("FU_TYPE") else {
            return Ok(());
        };
        let Some((name, list)) = rest.split_once(':') else {
            return Err(error(
                number,
                "expected `FU_TYPE NAME: OPERATION:CODE, …`, found no colon",
            ));
        };
        let names = list
            .split(',')
            .map(|entry| entry.split(':').next().unwrap_or_default().trim());
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        let known = if names.contains(&"ALL") {
            None
        } else {
            // The tool skips what it does not know; twice the same counts once.
            let mut known: Vec<String> = Vec::new();
            for name in names {
                if operations::lookup(name).is_some() && !known.iter().any(|other| other == name) {
                    known.push(name.to_owned());
                }
            }
            Some(known)
        };
        self.types.insert(name.trim(), known);
        Ok(())
    }

    /// A dimension of the mesh; for the layout the number of rows that follow.
    fn dimension(&mut self, line: &'t str, number: usize) -> Result<Option<u32>, Error> {
        let Some((key, value)) = line.split_once(':') else {
            return Err(error(number, "expected `KEY: VALUE`, found no colon"));
        };
        let value = value.trim();
        let count = |what: &str| whole(value, MOST_COLUMNS, number, what);
        match key.trim() {
            "width" => self.width = count("columns")?,
            "height" => self.height = count("rows")?,
            "ins_per_switch" => self.inputs = whole(value, MOST_PER_SWITCH, number, "links")?,
            "outs_per_switch" => self.outputs = whole(value, MOST_PER_SWITCH, number, "links")?,
            "io_layout" => self.layout = value,
            "temporal_x" => self.region[0] = count("a column")?,
            "temporal_y" => self.region[1] = count("a row")?,
            "temporal_width" => self.region[2] = count("columns")?,
            "temporal_height" => self.region[3] = count("rows")?,
            // Named after the tool of its time: Softbrain, DyRA, the stream-dataflow scheduler.
            "SS_LAYOUT" | "SB_LAYOUT" | "DY_LAYOUT" => {
                if value != "FULL" {
                    let message = format!("expected the layout FULL, found \"{value}\"");
                    return Err(error(number, message));
                }
                return Ok(Some(self.height));
            }
            _ => {}
        }
        Ok(None)
    }

    /// `PORT_IN n: a, b, c`, or as older files have it `VPORT_IN n: a:lanes, b:lanes`
    fn port(&mut self, line: &'t str, number: usize) -> Result<(), Error> {
        let Some((key, value)) = line.split_once(':') else {
            return Err(error(
                number,
                "expected `PORT_IN NUMBER: LINK, …`, found no colon",
            ));
        };
        let mut words = key.split_whitespace();
        let incoming = match words.next() {
            Some("PORT_IN" | "VPORT_IN") => true,
            Some("PORT_OUT" | "VPORT_OUT") => false,
            _ => return Ok(()),
        };
        let own = whole(words.next().unwrap_or_default(), 4095, number, "a port")?;
        // Commas or spaces are between them. Behind a colon stand the lanes of a vector on that link (`2:0 8`), which no tool since 2018 reads.
        let is_vector = key.starts_with('V');
        let links = value
            .split(|c: char| c == ',' || (!is_vector && c.is_whitespace()))
            .map(str::trim)
            .filter(|text| !text.is_empty());
        let links = links
            .map(|text| {
                whole(
                    text.split(':').next().unwrap_or_default(),
                    u32::from(u16::MAX),
                    number,
                    "an input or output of a switch",
                )
            })
            .collect::<Result<_, _>>()?;
        let ports = if incoming {
            &mut self.input_ports
        } else {
            &mut self.output_ports
        };
        match ports.iter_mut().find(|(other, _)| *other == own) {
            Some((_, earlier)) => {
                *earlier = links;
                let place = Place::file().at(format!("line {number}"));
                let message = format!("port {own} is written twice: the last line counts");
                self.findings.push(rules::PORT_TWICE.at(place, message));
            }
            None => ports.push((own, links)),
        }
        Ok(())
    }

    /// Types of a layout that is larger than the mesh.
    fn note_extra(&mut self) {
        let wide = self
            .rows
            .iter()
            .find(|(_, row)| row.len() > self.width as usize);
        let first = wide.map(|(line, _)| line).or(self.extra_rows.first());
        if let Some(line) = first {
            let (rows, columns) = (
                self.rows.len() + self.extra_rows.len(),
                self.rows.iter().map(|(_, row)| row.len()).max(),
            );
            let message = format!(
                "the layout has {rows} rows of up to {} types, the mesh has {} of {}: the rest is not used",
                columns.unwrap_or_default(),
                self.height,
                self.width
            );
            let place = Place::file().at(format!("line {line}"));
            self.findings.push(rules::EXTRA_TYPES.at(place, message));
        }
    }

    fn is_shared(&self, x: u32, y: u32) -> bool {
        let [left, top, width, height] = self.region;
        (left..left.saturating_add(width)).contains(&x)
            && (top..top.saturating_add(height)).contains(&y)
    }

    /// Switches in the order in which the inputs, or outputs, of the edge are numbered.
    fn edge(&self, incoming: bool) -> Result<Vec<(u32, u32)>, Error> {
        let (w, h) = (self.width, self.height);
        let down = |x: u32, from: u32, to: u32| (to..=from).rev().map(move |y| (x, y));
        let right = |y: u32, from: u32, to: u32| (from..=to).map(move |x| (x, y));
        Ok(match (self.layout, incoming) {
            ("three_sides_in" | "three_in_two_out", true) => down(0, h, 1)
                .chain(right(0, 0, w.saturating_sub(1)))
                .chain((0..h).map(|y| (w, y)))
                .chain(right(h, 1, w))
                .collect(),
            ("open_splyser", true) => down(0, h, 1)
                .chain(right(0, 0, w.saturating_sub(1)))
                .collect(),
            ("three_in_two_out" | "open_splyser", false) => right(h, 1, w)
                .chain(down(w, h.saturating_sub(1), 0))
                .collect(),
            // The tool walks along the wrong side here; its fabrics are what it makes.
            ("three_sides_in", false) => (0..w)
                .map(|index| {
                    let number = h + 1 + h + index;
                    (number / (h + 1), number % (h + 1))
                })
                .filter(|(x, _)| *x <= w)
                .collect(),
            ("every_switch", _) => (0..=w)
                .flat_map(|x| (0..=h).map(move |y| (x, h - y)))
                .collect(),
            (other, _) => {
                let message = format!(
                    "expected io_layout open_splyser, three_sides_in, three_in_two_out or every_switch, found \"{other}\""
                );
                return Err(Box::new(rules::UNSUPPORTED.at(Place::file(), message)));
            }
        })
    }

    /// The switch behind an input or output of the edge.
    fn behind(edge: &[(u32, u32)], per_switch: u32, number: u32) -> Result<(u32, u32), Error> {
        let found = edge.get(number.checked_div(per_switch).unwrap_or(u32::MAX) as usize);
        found.copied().ok_or_else(|| {
            let most = edge.len() as u32 * per_switch;
            let message = format!("a port names {number}, the edge of the mesh has {most} of them");
            Box::new(rules::DANGLING.at(Place::file(), message))
        })
    }

    fn fabric(&self) -> Result<Adg, Error> {
        let (w, h) = (self.width, self.height);
        if self.rows.is_empty() && w == 0 && !self.types.is_empty() {
            let count = self.types.len();
            let message = format!(
                "the file lists {count} types of elements and no mesh: it describes elements to a hardware generator, not a fabric"
            );
            return Err(Box::new(rules::UNSUPPORTED.at(Place::file(), message)));
        }
        if w == 0 || h == 0 {
            return Err(error(
                1,
                "expected width and height in [sub-model], found none",
            ));
        }
        if self.rows.len() != h as usize {
            let message = format!("expected {h} rows of types, found {}", self.rows.len());
            return Err(error(1, message));
        }
        let mut mesh = Mesh::default();
        for x in 0..w {
            for y in 0..h {
                let kind = self.element(x, y)?;
                mesh.add(kind, Some((y, x)));
            }
        }
        for x in 0..=w {
            for y in 0..=h {
                let switch = Switch {
                    output_buffer_depth: 0,
                    static_output_buffer: false,
                };
                mesh.add(ElementKind::Switch(switch), Some((y, x)));
            }
        }
        self.connect(&mut mesh);
        for (ports, incoming) in [(&self.input_ports, true), (&self.output_ports, false)] {
            let (edge, per_switch) = if incoming {
                (self.edge(true)?, self.inputs)
            } else {
                (self.edge(false)?, self.outputs)
            };
            for (number, links) in ports {
                let port = VectorPort {
                    implementation: 0,
                    stated: false,
                    depth: PORT_DEPTH,
                    repeated: true,
                    broadcast: false,
                    discard: !incoming,
                };
                let kind = if incoming {
                    ElementKind::InputPort(port)
                } else {
                    ElementKind::OutputPort(port)
                };
                let own = mesh.add(kind, None);
                mesh.elements[own].number = *number;
                for link in links {
                    let (x, y) = Model::behind(&edge, per_switch, *link)?;
                    let switch = self.switch(x, y);
                    if incoming {
                        mesh.link(own, switch, 1);
                    } else {
                        mesh.link(switch, own, 1);
                    }
                }
            }
        }
        Ok(mesh.finish())
    }

    fn element(&self, x: u32, y: u32) -> Result<ElementKind, Error> {
        let (line, row) = &self.rows[y as usize];
        let Some(name) = row.get(x as usize) else {
            let message = format!(
                "expected {} types in this row, found {}",
                self.width,
                row.len()
            );
            return Err(error(*line, message));
        };
        let Some(operations) = self.types.get(name) else {
            return Err(error(
                *line,
                format!("expected a type of [fu-model], found \"{name}\""),
            ));
        };
        Ok(ElementKind::ProcessingElement(ProcessingElement {
            operations: operations
                .clone()
                .unwrap_or_else(|| operations::names().collect()),
            instruction_slots: if self.is_shared(x, y) { SLOTS } else { 1 },
            delay_depth: DELAY_DEPTH,
            dynamic: true,
            static_output_buffer: false,
            output_buffer_depth: 0,
            registers: REGISTERS,
            control_entries: 0,
            input_control: true,
            output_control: true,
        }))
    }

    fn unit(&self, x: u32, y: u32) -> usize {
        (x * self.height + y) as usize
    }

    fn switch(&self, x: u32, y: u32) -> usize {
        (self.width * self.height + x * (self.height + 1) + y) as usize
    }

    /// Links between switches and elements, in the order that numbers the ports of both.
    fn connect(&self, mesh: &mut Mesh) {
        let (w, h) = (self.width, self.height);
        for x in 0..w {
            for y in 0..h {
                let unit = self.unit(x, y);
                for (dx, dy) in [(0, 0), (1, 0), (1, 1), (0, 1)] {
                    mesh.link(self.switch(x + dx, y + dy), unit, 1);
                }
                mesh.link(unit, self.switch(x + 1, y + 1), 1);
                if self.is_shared(x, y) {
                    for (dx, dy) in [(0, 0), (1, 0), (0, 1)] {
                        mesh.link(unit, self.switch(x + dx, y + dy), 1);
                    }
                }
            }
        }
        for x in 0..=w {
            for y in 0..=h {
                let from = self.switch(x, y);
                for (there, next) in [
                    (x > 0, (x.wrapping_sub(1), y)),
                    (y > 0, (x, y.wrapping_sub(1))),
                    (x < w, (x + 1, y)),
                    (y < h, (x, y + 1)),
                ] {
                    if there {
                        mesh.link(from, self.switch(next.0, next.1), 1);
                    }
                }
            }
        }
        let inside = |x: u32, y: u32| x < w && y < h && self.is_shared(x, y);
        for x in 0..w {
            for y in 0..h {
                for (nx, ny) in [
                    (x.wrapping_sub(1), y),
                    (x + 1, y),
                    (x, y + 1),
                    (x, y.wrapping_sub(1)),
                ] {
                    if inside(x, y) && inside(nx, ny) {
                        mesh.link(self.unit(x, y), self.unit(nx, ny), VALUES);
                    }
                }
            }
        }
    }
}

/// Elements in the order in which they are made, and their links.
#[derive(Default)]
struct Mesh {
    elements: Vec<Element>,
    counts: HashMap<&'static str, u32>,
    links: Vec<(usize, usize, u32)>,
}

impl Mesh {
    fn add(&mut self, kind: ElementKind, place: Option<(u32, u32)>) -> usize {
        let count = self.counts.entry(kind.name()).or_default();
        let number = *count;
        *count += 1;
        let has_path = place.is_some();
        self.elements.push(Element {
            number,
            kind,
            width: if has_path { 64 } else { 0 },
            granularity: if has_path { 64 } else { 0 },
            place,
            inputs: Vec::new(),
            outputs: Vec::new(),
            body: Arc::default(),
        });
        self.elements.len() - 1
    }

    fn link(&mut self, source: usize, sink: usize, values: u32) {
        self.links.push((source, sink, values));
    }

    /// The fabric, its elements in the order of their names like those of other forms.
    fn finish(self) -> Adg {
        let mut order: Vec<usize> = (0..self.elements.len()).collect();
        order.sort_by_key(|index| self.elements[*index].to_string());
        let mut rank = vec![0; order.len()];
        for (position, old) in order.iter().enumerate() {
            rank[*old] = position;
        }
        let mut sorted: Vec<(usize, Element)> = self
            .elements
            .into_iter()
            .enumerate()
            .map(|(index, element)| (rank[index], element))
            .collect();
        sorted.sort_by_key(|(rank, _)| *rank);
        let mut elements: IndexVec<ElementId, Element> =
            sorted.into_iter().map(|(_, element)| element).collect();
        let mut links: IndexVec<LinkId, Link> = IndexVec::new();
        for (source, sink, values) in self.links {
            let (source, sink) = (ElementId::new(rank[source]), ElementId::new(rank[sink]));
            let id = links.push(Link {
                source,
                sink,
                values,
            });
            elements[source].outputs.push(id);
            elements[sink].inputs.push(id);
        }
        Adg {
            form: Form::Text,
            elements,
            links,
            system: None,
        }
    }
}
