//! New fabrics: the mesh of the published ones.
//!
//! `columns × rows` processing elements stand between `(columns + 1) × (rows + 1)` switches; each takes values from the four around it and
//! gives its result to the one behind it, down and right. Switches are linked with their neighbours. Input ports stand along the upper and
//! left edge, output ports along the lower and right one.

use super::{
    Adg, Element, ElementId, ElementKind, Form, Link, LinkId, Memory, MemoryKind,
    ProcessingElement, Switch, VectorPort,
};
use index_vec::IndexVec;
use std::sync::Arc;

/// What a new mesh has.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Processing elements beside each other.
    pub columns: u32,
    /// Processing elements above each other.
    pub rows: u32,
    /// Operations that each of them knows.
    pub operations: Vec<String>,
    /// Cycles that an operand can be delayed.
    pub delay_depth: u32,
    /// Input ports.
    pub inputs: u32,
    /// Output ports.
    pub outputs: u32,
    /// Input ports, and output ports, that carry the state of their stream on a link of its own, before their lanes.
    pub stated: [u32; 2],
    /// Links of each port.
    pub lanes: u32,
    /// Instructions of each processing element.
    pub slots: u32,
}

/// Elements beside and above each other, at most.
pub const MOST_COLUMNS: u32 = 64;
/// Ports of each kind, and links of a port, at most.
pub const MOST_PORTS: u32 = 256;

/// Makes a mesh.
///
/// # Errors
/// The figure that is out of range.
pub fn mesh(shape: &Shape) -> Result<Adg, String> {
    for (what, figure, most) in [
        ("columns", shape.columns, MOST_COLUMNS),
        ("rows", shape.rows, MOST_COLUMNS),
        ("input ports", shape.inputs, MOST_PORTS),
        ("output ports", shape.outputs, MOST_PORTS),
        ("lanes", shape.lanes, MOST_PORTS),
        ("slots", shape.slots, MOST_PORTS),
    ] {
        if figure == 0 || figure > most {
            return Err(format!("expected 1 to {most} {what}, found {figure}"));
        }
    }
    let places = Places::new(shape);
    let mut links = Vec::new();
    places.mesh(&mut links);
    places.ports(shape.lanes as usize, &mut links);
    Ok(arrange(&places.elements, &links))
}

/// The elements of a mesh by kind, as numbers of `elements`.
struct Places {
    elements: Vec<Element>,
    columns: u32,
    rows: u32,
    units: Vec<usize>,
    switches: Vec<usize>,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    memory: usize,
}

impl Places {
    fn new(shape: &Shape) -> Places {
        let (columns, rows) = (shape.columns, shape.rows);
        let mut elements: Vec<Element> = Vec::new();
        let mut add = |kind: ElementKind, number: u32, place: Option<(u32, u32)>| {
            let bits = if place.is_some() { 64 } else { 0 };
            elements.push(Element {
                number,
                kind,
                width: bits,
                granularity: bits,
                place,
                inputs: Vec::new(),
                outputs: Vec::new(),
                body: Arc::default(),
            });
            elements.len() - 1
        };
        let unit = ProcessingElement {
            operations: shape.operations.clone(),
            instruction_slots: shape.slots,
            delay_depth: shape.delay_depth,
            dynamic: true,
            static_output_buffer: false,
            output_buffer_depth: 2,
            registers: 1,
            control_entries: 8,
            input_control: true,
            output_control: true,
        };
        let units = (0..columns * rows).map(|n| {
            let kind = ElementKind::ProcessingElement(unit.clone());
            add(kind, n, Some((n / columns, n % columns)))
        });
        let units = units.collect();
        let wide = columns + 1;
        let switches = (0..wide * (rows + 1)).map(|n| {
            let switch = Switch {
                output_buffer_depth: 2,
                static_output_buffer: false,
            };
            add(ElementKind::Switch(switch), n, Some((n / wide, n % wide)))
        });
        let switches = switches.collect();
        let port = |incoming: bool, stated: bool| VectorPort {
            implementation: 0,
            stated,
            depth: 2,
            repeated: incoming,
            broadcast: incoming,
            discard: !incoming,
        };
        let inputs = (0..shape.inputs).map(|n| {
            add(
                ElementKind::InputPort(port(true, n < shape.stated[0])),
                n,
                None,
            )
        });
        let inputs = inputs.collect();
        let outputs = (0..shape.outputs).map(|n| {
            add(
                ElementKind::OutputPort(port(false, n < shape.stated[1])),
                n,
                None,
            )
        });
        let outputs = outputs.collect();
        let memory = Memory {
            kind: MemoryKind::DirectMemoryAccess,
            read_width: 32,
            write_width: 32,
            unit_bits: 8,
            capacity: 1 << 40,
            padding: true,
            indirect: false,
        };
        let memory = add(ElementKind::Memory(memory), 0, None);
        Places {
            elements,
            columns,
            rows,
            units,
            switches,
            inputs,
            outputs,
            memory,
        }
    }

    fn switch(&self, x: u32, y: u32) -> usize {
        self.switches[(y * (self.columns + 1) + x) as usize]
    }

    /// Links between switches, and between them and processing elements.
    fn mesh(&self, links: &mut Vec<(usize, usize)>) {
        let (wide, high) = (self.columns + 1, self.rows + 1);
        for y in 0..high {
            for x in 0..wide {
                let next = [
                    (x + 1 < wide, x + 1, y),
                    (x > 0, x.wrapping_sub(1), y),
                    (y + 1 < high, x, y + 1),
                    (y > 0, x, y.wrapping_sub(1)),
                ];
                for (_, to_x, to_y) in next.into_iter().filter(|(there, ..)| *there) {
                    links.push((self.switch(x, y), self.switch(to_x, to_y)));
                }
            }
        }
        for (n, unit) in self.units.iter().enumerate() {
            let (x, y) = (n as u32 % self.columns, n as u32 / self.columns);
            for (dx, dy) in [(0, 0), (1, 0), (1, 1), (0, 1)] {
                links.push((self.switch(x + dx, y + dy), *unit));
            }
            links.push((*unit, self.switch(x + 1, y + 1)));
        }
    }

    /// Links of ports, along the edges, from the corner that is furthest from the other kind of ports.
    fn ports(&self, lanes: usize, links: &mut Vec<(usize, usize)>) {
        let (wide, high) = (self.columns + 1, self.rows + 1);
        let entries: Vec<usize> = (0..wide)
            .map(|x| self.switch(x, 0))
            .chain((1..high).map(|y| self.switch(0, y)))
            .collect();
        let exits: Vec<usize> = (0..wide)
            .map(|x| self.switch(wide - 1 - x, high - 1))
            .chain((1..high).map(|y| self.switch(wide - 1, high - 1 - y)))
            .collect();
        // Links between the same two elements are of no use.
        let spread = |edge: &[usize], element: usize, port: usize, ports: usize| -> Vec<usize> {
            let stated = self.elements[element]
                .port()
                .is_some_and(|port| port.stated);
            (0..(lanes + usize::from(stated)).min(edge.len()))
                .map(|lane| edge[(port * edge.len() / ports + lane) % edge.len()])
                .collect()
        };
        for (n, port) in self.inputs.iter().enumerate() {
            links.push((self.memory, *port));
            for switch in spread(&entries, *port, n, self.inputs.len()) {
                links.push((*port, switch));
            }
        }
        for (n, port) in self.outputs.iter().enumerate() {
            for switch in spread(&exits, *port, n, self.outputs.len()) {
                links.push((switch, *port));
            }
            links.push((*port, self.memory));
        }
    }
}

/// Elements in the order of their names, with their links.
fn arrange(elements: &[Element], links: &[(usize, usize)]) -> Adg {
    let mut order: Vec<usize> = (0..elements.len()).collect();
    order.sort_by_cached_key(|index| elements[*index].to_string());
    let mut rank = vec![ElementId::new(0); order.len()];
    for (position, old) in order.iter().enumerate() {
        rank[*old] = ElementId::new(position);
    }
    let mut elements: IndexVec<ElementId, Element> =
        order.iter().map(|old| elements[*old].clone()).collect();
    let mut all: IndexVec<LinkId, Link> = IndexVec::new();
    for (source, sink) in links {
        let (source, sink) = (rank[*source], rank[*sink]);
        let id = all.push(Link {
            source,
            sink,
            values: 1,
        });
        elements[source].outputs.push(id);
        elements[sink].inputs.push(id);
    }
    Adg {
        form: Form::Generator,
        elements,
        links: all,
        system: None,
    }
}
