//! A mapping executed on its fabric, cycle by cycle.
//!
//! Rows are always there and results are always taken; what is in between has to keep up by itself. In every cycle
//!
//! - a link carries one value, to all that branch off there; a value crosses one link a cycle, behind the values before it;
//! - a buffer of an element holds as many rows of an operand as it is deep, and takes one more in the cycle in which one is used;
//! - a node starts a row when all operands are there, not before the cycle that the mapping configures, `start + row · interval`; when its
//!   element is free, its own last result is there if it reads it from a register, and its result has somewhere to go.
//!
//! Nothing of the mapping's figures enters but starts and interval: a buffer that is too shallow, or two values on a link in one cycle, hold
//! the rows back, and the run takes longer than was claimed.

use crate::Mapping;
use crate::judge::Verdict;
use chipless_dsa::adg::{Adg, ElementId, LinkId};
use chipless_dsa::graph::{EdgeId, Graph, NodeId, NodeKind, Source};
use chipless_dsa::operations;
use std::collections::{HashMap, VecDeque};

/// What a run shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycles {
    /// Rows that went through.
    pub rows: u64,
    /// Cycles until everything of the first row was ready.
    pub latency: u64,
    /// Cycles from one row to the next, once the fabric is full.
    pub interval: f64,
    /// Cycles until everything of the last row was ready.
    pub total: u64,
}

/// Results that can wait in front of their first link.
const OUTPUT_BUFFER: usize = 2;

/// A value on its way.
#[derive(Clone, Copy, Debug)]
struct Token {
    row: u64,
    /// Links crossed.
    position: usize,
    /// The first cycle in which it can go on.
    due: u64,
}

/// An edge of the graph on its way through the fabric.
struct Way {
    source: NodeId,
    sink: NodeId,
    value: u32,
    /// Cycles from the start of the source until the value is ready.
    ready: u64,
    links: Vec<(LinkId, u32)>,
    /// Rows that wait at the sink.
    depth: usize,
    flying: VecDeque<Token>,
    /// Rows that have come.
    waiting: VecDeque<u64>,
}

/// A node on its element.
struct Unit {
    latency: u64,
    throughput: u64,
    recurs: bool,
    start: u64,
    element: Option<ElementId>,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    /// Rows that it started, and when the last one.
    rows: u64,
    last: u64,
}

struct Machine {
    ways: Vec<Way>,
    units: Vec<Unit>,
    order: Vec<usize>,
    interval: u64,
    /// What crosses each part of a link in this cycle.
    crossed: HashMap<(LinkId, u32), (NodeId, u32, u64)>,
    /// Until when elements that are shared in time are taken.
    busy: HashMap<ElementId, u64>,
    /// For each row when the last of it was ready, and how many nodes have started it.
    done: Vec<(u64, usize)>,
}

/// Runs so many rows.
///
/// # Errors
/// Nothing moves any more: which node waits.
pub fn run(
    graph: &Graph,
    adg: &Adg,
    mapping: &Mapping,
    verdict: &Verdict,
    rows: u64,
) -> Result<Cycles, String> {
    let rows = rows.max(2);
    let mut machine = Machine::new(graph, adg, mapping, verdict, rows);
    let patience = u64::from(verdict.latency) + 8 * machine.interval + 1024;
    let (mut cycle, mut still) = (0, 0);
    let nodes = machine.order.len();
    while machine
        .done
        .last()
        .is_some_and(|(_, started)| *started < nodes)
    {
        if machine.step(cycle, rows) {
            still = 0;
        } else {
            still += 1;
        }
        if still > patience {
            let stuck = machine
                .order
                .iter()
                .min_by_key(|unit| machine.units[**unit].rows);
            let name = stuck.map_or_else(String::new, |unit| {
                graph
                    .nodes
                    .iter()
                    .nth(*unit)
                    .map_or_else(String::new, |node| node.name.clone())
            });
            return Err(format!(
                "nothing moves after cycle {}; {name} waits",
                cycle - still
            ));
        }
        cycle += 1;
    }
    let end = |row: u64| machine.done[row as usize].0;
    let (half, last) = (rows / 2, rows - 1);
    let steady = if last > half { half } else { 0 };
    Ok(Cycles {
        rows,
        latency: end(0),
        interval: (end(last) - end(steady)) as f64 / (last - steady) as f64,
        total: machine.done.iter().map(|(end, _)| *end).max().unwrap_or(0),
    })
}

impl Machine {
    fn new(graph: &Graph, adg: &Adg, mapping: &Mapping, verdict: &Verdict, rows: u64) -> Machine {
        let mut units: Vec<Unit> = Vec::with_capacity(graph.nodes.len());
        for (node, body) in graph.nodes.iter_enumerated() {
            let names: Vec<&str> = match &body.kind {
                NodeKind::Instruction(instruction) => vec![&instruction.operation],
                NodeKind::Composite(composite) => composite
                    .units
                    .iter()
                    .map(|(name, _)| name.as_str())
                    .collect(),
                _ => Vec::new(),
            };
            let known = || names.iter().filter_map(|name| operations::lookup(name));
            let own = |number: u8| body.values.iter().any(|v| v.registers.contains(&number));
            let shared = mapping.nodes[node].map(|at| at.element).filter(|element| {
                let unit = adg
                    .elements
                    .get(*element)
                    .and_then(|element| element.processing());
                unit.is_some_and(chipless_dsa::adg::ProcessingElement::is_shared)
            });
            units.push(Unit {
                latency: known()
                    .map(|known| u64::from(known.latency))
                    .max()
                    .unwrap_or(0),
                throughput: known()
                    .map(|known| u64::from(known.throughput))
                    .max()
                    .unwrap_or(1)
                    .max(1),
                recurs: body.operands.iter().any(
                    |operand| matches!(operand.source, Source::Register(number) if own(number)),
                ),
                start: verdict
                    .starts
                    .get(node.index())
                    .copied()
                    .unwrap_or(0)
                    .into(),
                element: shared,
                inputs: Vec::new(),
                outputs: Vec::new(),
                rows: 0,
                last: 0,
            });
        }
        let has_time = |node: NodeId| !matches!(graph.nodes[node].kind, NodeKind::Array(_));
        let mut ways: Vec<Way> = Vec::new();
        for (id, edge) in graph.edges.iter_enumerated() {
            if !has_time(edge.source) || !has_time(edge.sink) {
                continue;
            }
            units[edge.source.index()].outputs.push(ways.len());
            units[edge.sink.index()].inputs.push(ways.len());
            ways.push(way(
                graph,
                adg,
                mapping,
                id,
                units[edge.source.index()].latency,
            ));
        }
        // Sources before sinks: a value that needs no time is there in the same cycle.
        let mut waits: Vec<usize> = units.iter().map(|unit| unit.inputs.len()).collect();
        let ready = graph
            .nodes
            .indices()
            .filter(|node| has_time(*node) && waits[node.index()] == 0);
        let mut order: Vec<usize> = ready.map(chipless_dsa::graph::NodeId::index).collect();
        let mut next = 0;
        while let Some(&unit) = order.get(next) {
            next += 1;
            for way in &units[unit].outputs {
                let sink = ways[*way].sink.index();
                waits[sink] -= 1;
                if waits[sink] == 0 {
                    order.push(sink);
                }
            }
        }
        Machine {
            ways,
            units,
            order,
            interval: u64::from(verdict.initiation_interval.max(1)),
            crossed: HashMap::new(),
            busy: HashMap::new(),
            done: vec![(0, 0); rows as usize],
        }
    }

    /// One cycle; whether anything moved.
    fn step(&mut self, cycle: u64, rows: u64) -> bool {
        self.crossed.clear();
        let mut moved = false;
        for place in 0..self.order.len() {
            let unit = self.order[place];
            let fires = self.can_start(unit, cycle, rows);
            if fires {
                self.start(unit, cycle);
                moved = true;
            }
            for index in 0..self.units[unit].inputs.len() {
                let way = self.units[unit].inputs[index];
                moved |= self.advance(way, cycle);
            }
        }
        moved
    }

    /// Whether a token can cross its next link in this cycle.
    fn is_open(&self, way: usize, token: &Token, cycle: u64) -> bool {
        let way = &self.ways[way];
        let value = (way.source, way.value, token.row);
        token.due <= cycle
            && way.links.get(token.position).is_some_and(|link| {
                self.crossed
                    .get(link)
                    .is_none_or(|crossing| *crossing == value)
            })
    }

    /// Whether the next row of an operand is at its element, or arrives in this cycle.
    fn is_there(&self, way: usize, cycle: u64) -> bool {
        let body = &self.ways[way];
        if !body.waiting.is_empty() {
            return true;
        }
        body.flying.front().is_some_and(|token| {
            if body.links.is_empty() {
                token.due <= cycle
            } else {
                token.position + 1 == body.links.len() && self.is_open(way, token, cycle)
            }
        })
    }

    fn can_start(&self, unit: usize, cycle: u64, rows: u64) -> bool {
        let body = &self.units[unit];
        let row = body.rows;
        if row >= rows || cycle < body.start + row * self.interval {
            return false;
        }
        let gap = if body.recurs {
            body.throughput.max(body.latency)
        } else {
            body.throughput
        };
        let free = body
            .element
            .is_none_or(|element| self.busy.get(&element).is_none_or(|until| *until <= cycle));
        let room = body.outputs.iter().all(|way| {
            let way = &self.ways[*way];
            let before = way
                .flying
                .iter()
                .filter(|token| token.position == 0)
                .count();
            before < OUTPUT_BUFFER + (way.ready / self.interval) as usize + 1
        });
        (row == 0 || cycle >= body.last + gap)
            && free
            && room
            && body.inputs.iter().all(|way| self.is_there(*way, cycle))
    }

    fn start(&mut self, unit: usize, cycle: u64) {
        let (row, inputs, outputs) = {
            let body = &mut self.units[unit];
            body.rows += 1;
            body.last = cycle;
            if let Some(element) = body.element {
                self.busy.insert(element, cycle + body.throughput);
            }
            (body.rows - 1, body.inputs.clone(), body.outputs.clone())
        };
        for way in inputs {
            if self.ways[way].waiting.pop_front().is_none() {
                self.cross(way, 0);
                self.ways[way].flying.pop_front();
            }
        }
        for way in outputs {
            let body = &mut self.ways[way];
            body.flying.push_back(Token {
                row,
                position: 0,
                due: cycle + body.ready,
            });
        }
        let (ready, started) = &mut self.done[row as usize];
        *ready = (*ready).max(cycle + self.units[unit].latency);
        *started += 1;
    }

    /// A token takes its next link in this cycle.
    fn cross(&mut self, way: usize, token: usize) {
        let body = &self.ways[way];
        if let Some(token) = body.flying.get(token)
            && let Some(link) = body.links.get(token.position)
        {
            self.crossed
                .insert(*link, (body.source, body.value, token.row));
        }
    }

    /// Everything on a way that can goes on by a link.
    fn advance(&mut self, way: usize, cycle: u64) -> bool {
        let mut moved = false;
        let mut ahead = usize::MAX;
        let mut index = 0;
        while index < self.ways[way].flying.len() {
            let token = self.ways[way].flying[index];
            let body = &self.ways[way];
            let arrives = token.position + 1 >= body.links.len();
            let free = if arrives {
                body.waiting.len() < body.depth
            } else {
                // Behind the token before it.
                token.position + 1 < ahead
            };
            let open = if body.links.is_empty() {
                token.due <= cycle
            } else {
                self.is_open(way, &token, cycle)
            };
            if open && free {
                moved = true;
                self.cross(way, index);
                let body = &mut self.ways[way];
                if arrives {
                    body.flying.remove(index);
                    body.waiting.push_back(token.row);
                    continue;
                }
                body.flying[index] = Token {
                    position: token.position + 1,
                    due: cycle + 1,
                    ..token
                };
            }
            ahead = self.ways[way].flying[index].position;
            if ahead == 0 {
                ahead = usize::MAX;
                // What has not left yet stands in line.
                if !(open && free) {
                    break;
                }
            }
            index += 1;
        }
        moved
    }
}

fn way(graph: &Graph, adg: &Adg, mapping: &Mapping, id: EdgeId, latency: u64) -> Way {
    let edge = &graph.edges[id];
    let source = &graph.nodes[edge.source];
    let temporal = graph
        .groups
        .get(source.group)
        .is_some_and(|group| group.temporal);
    let ready = match &source.kind {
        NodeKind::Input(port) if temporal => {
            u64::from(edge.value).saturating_sub(u64::from(port.stated))
        }
        _ => latency,
    };
    let depth = mapping.nodes[edge.sink]
        .and_then(|at| adg.elements.get(at.element))
        .map_or(0, |element| element.delay_depth() as usize);
    Way {
        source: edge.source,
        sink: edge.sink,
        value: edge.value,
        ready,
        links: mapping.edges[id]
            .links
            .iter()
            .map(|hop| (hop.link, hop.bit))
            .collect(),
        depth,
        flying: VecDeque::new(),
        waiting: VecDeque::new(),
    }
}
