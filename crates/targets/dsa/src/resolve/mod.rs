//! Names to nodes: the tree of statements becomes the graph.
//!
//! Nodes, edges and values come into being in the order of the real parser, so that they have its numbers: an instruction behind the
//! calls among its arguments, the edges of a node with the node, the edge from an array with its port, the edge into an array behind
//! those of the lanes.

mod era;
mod operands;
mod pragmas;
pub(crate) mod rules;
mod symbols;

use crate::graph::Edge;
use crate::graph::{
    Array, ArrayKind, EdgeId, Era, Graph, Group, GroupId, Node, NodeId, NodeKind, Operand, Port,
    Pragmas, Role, Source, Task, Value,
};
use crate::rules::{Findings, closest, syntax};
use crate::syntax::ast::{self, Direction, File, Lanes, Name, StatementKind};
use crate::syntax::{Lines, Span};
use chipless_model::{Finding, Limits, Rule};
use era::{any_slice, era, slices_by_width};
use index_vec::IndexVec;
use smallvec::{SmallVec, smallvec};
use std::collections::{HashMap, HashSet};
use symbols::{Bits, Meaning, Symbols};

/// Bytes of an array where the file is silent.
pub(crate) const ARRAY_BYTES: u64 = 64;
/// Bits of the state of a stated port.
pub(crate) const STATE_BITS: u32 = 8;
/// Bits of the widest operand: eight lanes of 64.
const MAX_OPERAND_BITS: u32 = 512;

/// Bytes that a value of a graph takes in memory with its node and what is made of it, and those of an edge, about.
const VALUE_BYTES: u64 = 512;
const EDGE_BYTES: u64 = 64;

/// How the text of a file differs from the canonical form in ways that only resolution shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spelling<'a> {
    /// Names that stand for others.
    pub(crate) names: HashMap<&'a str, String>,
    /// Whether slices are `v:width:index`.
    pub(crate) slices_by_width: bool,
    /// Whether one of them has no bits that could be written. It keeps the file in the older form, so that the others must keep it, too.
    pub(crate) slices_stay: bool,
}

impl Spelling<'_> {
    /// The bits of a slice as the file means it; `None` where there are none.
    pub(crate) fn slice(&self, first: u64, second: u64) -> Option<(u64, u64)> {
        // A file that has one slice whose bounds run backwards has slices of the older form; a width is never zero.
        if self.slices_by_width && first > 0 {
            let low = first.checked_mul(second)?;
            return Some((low, low.checked_add(first - 1)?));
        }
        (first <= second).then_some((first, second))
    }
}

/// Makes the graph of a file. It is complete where no finding is an error.
pub(crate) fn resolve<'a>(
    file: &File<'a>,
    lines: &Lines<'a>,
    limits: &Limits,
) -> (Graph, Spelling<'a>, Vec<Finding>) {
    let group = Group {
        frequency: 1,
        unroll: 1,
        temporal: false,
    };
    let graph = Graph {
        era: era(file),
        groups: IndexVec::from_vec(vec![group]),
        nodes: IndexVec::new(),
        edges: IndexVec::new(),
        tasks: Vec::new(),
    };
    let mut spelling = Spelling {
        names: HashMap::new(),
        slices_by_width: slices_by_width(file),
        slices_stay: false,
    };
    spelling.slices_stay = any_slice(file, |first, second| {
        spelling.slice(first, second).is_none()
    });
    let most_values = limits.declarations.min(limits.memory_bytes / VALUE_BYTES);
    let most_edges = limits.transfers.min(limits.memory_bytes / EDGE_BYTES);
    let mut resolver = Resolver {
        file,
        lines,
        most_values,
        graph,
        spelling,
        symbols: Symbols::default(),
        arrays: HashMap::new(),
        pragmas: Pragmas::default(),
        pending: Vec::new(),
        registers: HashMap::new(),
        results: HashMap::new(),
        aliases: Vec::new(),
        findings: Findings::new(limits.findings),
        values: 0,
        reported: HashSet::new(),
    };
    for statement in &file.statements {
        resolver.statement(statement);
        if resolver.values > most_values || resolver.graph.edges.len() as u64 > most_edges {
            let message = format!(
                "the graph has more than {most_values} values or {most_edges} edges, as many as the limits declarations, transfers and memory_bytes allow"
            );
            resolver.report(&syntax::LIMIT, statement.span, message);
            break;
        }
    }
    resolver.pragmas_lost();
    resolver.aliases_unused();
    (
        resolver.graph,
        resolver.spelling,
        resolver.findings.done(&crate::rules::syntax::MORE_FINDINGS),
    )
}

struct Resolver<'a, 'f> {
    file: &'f File<'a>,
    lines: &'f Lines<'a>,
    /// Values that there may be.
    most_values: u64,
    graph: Graph,
    spelling: Spelling<'a>,
    symbols: Symbols<'a>,
    arrays: HashMap<&'a str, (NodeId, Span)>,
    /// Pragmas for the next port.
    pragmas: Pragmas,
    /// Where they stand.
    pending: Vec<Name<'a>>,
    /// Registers for results to come, by name.
    registers: HashMap<&'a str, Vec<(u8, Span)>>,
    /// Names that assignments define.
    results: HashMap<&'a str, Name<'a>>,
    /// Names for values that no operation makes.
    aliases: Vec<Name<'a>>,
    findings: Findings,
    /// Values so far.
    values: u64,
    /// Names that were reported as undefined: once is enough.
    reported: HashSet<&'a str>,
}

impl<'a> Resolver<'a, '_> {
    fn report(&mut self, rule: &'static Rule, span: Span, message: impl AsRef<str>) {
        let lines = self.lines;
        self.findings
            .report(rule, || lines.place(span), message.as_ref());
    }

    fn group(&self) -> GroupId {
        GroupId::from(self.graph.groups.len() - 1)
    }

    fn statement(&mut self, statement: &ast::Statement<'a>) {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Separator(_) => {
                self.graph.groups.push(Group {
                    frequency: 1,
                    unroll: 1,
                    temporal: false,
                });
            }
            StatementKind::Pragma(pragma) => self.pragma(*pragma),
            StatementKind::Task(task) => {
                self.graph.tasks.push(Task {
                    keyword: task.keyword.text.to_owned(),
                    head: task.head.clone(),
                    body: task.body.clone(),
                    span,
                });
            }
            StatementKind::Array(array) => self.array(*array, span),
            StatementKind::Port(port) => self.port(port, span),
            StatementKind::Assignment(assignment) => self.assignment(assignment, span),
        }
    }

    fn add(&mut self, name: &str, kind: NodeKind, span: Span) -> NodeId {
        let group = self.group();
        self.graph.nodes.push(Node {
            name: name.to_owned(),
            group,
            kind,
            operands: Vec::new(),
            values: Vec::new(),
            span,
        })
    }

    fn add_value(&mut self, node: NodeId, name: String, width: u32) -> Bits {
        self.values += 1;
        let registers = match self.registers.remove(name.as_str()) {
            Some(registers) => registers
                .into_iter()
                .map(|(register, _)| register)
                .collect(),
            None => SmallVec::new(),
        };
        let values = &mut self.graph.nodes[node].values;
        values.push(Value {
            name,
            width,
            registers,
            uses: SmallVec::new(),
        });
        Bits {
            node,
            value: values.len() as u32 - 1,
            low: 0,
            high: width - 1,
        }
    }

    /// Defines the name of a lane or a state.
    fn define(&mut self, name: String, meaning: Meaning, span: Span) {
        if let Some(first) = self.symbols.place(&name) {
            return self.twice(&rules::DUPLICATE, &name, span, first);
        }
        self.symbols.define(name, meaning, span);
    }

    /// Defines the name of a result. The older tools let a later one take the name; newer ones refuse.
    fn define_result(&mut self, name: Name<'a>, meaning: Meaning) {
        let first = self.symbols.place(name.text);
        if let Some(first) = first.or_else(|| {
            self.spelling
                .names
                .contains_key(name.text)
                .then_some(name.span)
        }) {
            let rule = if self.graph.era == Era::Modern {
                &rules::DUPLICATE
            } else {
                &rules::REDEFINED
            };
            self.twice(rule, name.text, name.span, first);
        }
        if first.is_none() || self.graph.era != Era::Modern {
            self.results.insert(name.text, name);
            self.symbols
                .define(name.text.to_owned(), meaning, name.span);
        }
    }

    fn twice(&mut self, rule: &'static Rule, name: &str, span: Span, first: Span) {
        let lines = self.lines;
        if self.findings.full() {
            return self.report(rule, span, "");
        }
        let message = format!(
            "`{}` is defined a second time",
            crate::rules::clip(name, 60)
        );
        self.findings.push(
            rule.at(lines.place(span), message)
                .with(lines.place(first), "the first definition"),
        );
    }

    /// Adds the edges of an operand, and the operand.
    fn connect(&mut self, sink: NodeId, role: Role, bits: &[Bits]) {
        let operand = self.graph.nodes[sink].operands.len() as u32;
        let mut edges = SmallVec::with_capacity(bits.len());
        for &Bits {
            node,
            value,
            low,
            high,
        } in bits
        {
            let edge: EdgeId = self.graph.edges.push(Edge {
                source: node,
                value,
                sink,
                operand,
                low,
                high,
            });
            if let Some(value) = self.graph.nodes[node].values.get_mut(value as usize) {
                value.uses.push(edge);
            }
            edges.push(edge);
        }
        self.graph.nodes[sink].operands.push(Operand {
            role,
            source: Source::Edges(edges),
        });
    }

    fn array(&mut self, array: ast::Array<'a>, span: Span) {
        let kind = match array.kind {
            None => ArrayKind::Dma,
            Some(name) => ArrayKind::parse(name.text).unwrap_or_else(|| {
                let hint = suggestion(name.text, ["dma", "spm", "scratchpad", "rec", "gen", "reg"]);
                self.report(
                    &rules::ARRAY_TYPE,
                    name.span,
                    format!("`{}` is no type of array{hint}", name.text),
                );
                ArrayKind::Dma
            }),
        };
        let kind = NodeKind::Array(Array {
            kind,
            size: array.size.unwrap_or(ARRAY_BYTES),
        });
        let node = self.add(array.name.text, kind, span);
        self.add_value(node, String::new(), 64);
        if let Some((_, first)) = self.arrays.get(array.name.text) {
            let lines = self.lines;
            let finding = rules::DUPLICATE.at(
                lines.place(array.name.span),
                format!("array `{}` is declared a second time", array.name.text),
            );
            self.findings
                .push(finding.with(lines.place(*first), "the first declaration"));
            return;
        }
        self.arrays.insert(array.name.text, (node, array.name.span));
    }

    fn port(&mut self, port: &ast::Port<'a>, span: Span) {
        let options = self.options(port);
        let (vector, lanes) = match port.lanes {
            Lanes::Plain => (false, 1),
            Lanes::Count(lanes) | Lanes::List(lanes) => (true, lanes),
        };
        if u64::from(lanes) > self.most_values {
            self.values = self.most_values + 1;
            return;
        }
        if vector {
            self.symbols.port(port.name.text, lanes);
        }
        self.pending.clear();
        let pragmas = std::mem::take(&mut self.pragmas);
        let stated = options.stated || options.state.is_some();
        let indirect = port.direction == Direction::Indirect;
        let description = Port {
            width: port.width,
            lanes,
            stated,
            indirect,
            array: options.array,
            pragmas,
        };
        let lane = |index: u32| {
            if vector {
                format!("{}{index}", port.name.text)
            } else {
                port.name.text.to_owned()
            }
        };
        match port.direction {
            Direction::Input => {
                let node = self.input(port.name, description, &lane, span);
                if let Some(array) = options.array {
                    self.connect(
                        node,
                        Role::Data,
                        &[Bits {
                            node: array,
                            value: 0,
                            low: 0,
                            high: port.width - 1,
                        }],
                    );
                }
            }
            Direction::Output => {
                let node = self.add(port.name.text, NodeKind::Output(description), span);
                let operands = lanes as usize + usize::from(options.state.is_some());
                self.graph.nodes[node].values.reserve_exact(1);
                self.graph.nodes[node].operands.reserve_exact(operands);
                for index in 0..lanes {
                    self.output_lane(node, port, &lane(index), index);
                }
                if let Some(bits) = options.state {
                    self.connect(node, Role::State, &[bits]);
                }
                let bits = self.add_value(node, String::new(), port.width);
                if let Some(array) = options.array {
                    self.connect(array, Role::Data, &[bits]);
                }
            }
            Direction::Indirect => {
                let input = self.input(port.name, description.clone(), &lane, span);
                let output = self.add(port.name.text, NodeKind::Output(description), span);
                for value in 0..lanes {
                    self.connect(
                        output,
                        Role::Data,
                        &[Bits {
                            node: input,
                            value,
                            low: 0,
                            high: port.width - 1,
                        }],
                    );
                }
                self.add_value(output, String::new(), port.width);
            }
        }
    }

    fn input(
        &mut self,
        name: Name<'a>,
        port: Port,
        lane: &dyn Fn(u32) -> String,
        span: Span,
    ) -> NodeId {
        let (width, lanes, stated) = (port.width, port.lanes, port.stated);
        let node = self.add(name.text, NodeKind::Input(port), span);
        self.graph.nodes[node]
            .values
            .reserve_exact(lanes as usize + usize::from(stated));
        if stated {
            let state = format!("${}State", name.text);
            let bits = self.add_value(node, state.clone(), STATE_BITS);
            self.define(state, Meaning::Bits(smallvec![bits]), name.span);
        }
        for index in 0..lanes {
            let bits = self.add_value(node, lane(index), width);
            self.define(lane(index), Meaning::Bits(smallvec![bits]), name.span);
        }
        node
    }

    fn output_lane(&mut self, node: NodeId, port: &ast::Port<'a>, lane: &str, index: u32) {
        let mut meaning = self.symbols.take(lane);
        if meaning.is_none() {
            // The specification names lanes `name_0`; the definition was made under that name.
            let underscored = format!("{}_{index}", port.name.text);
            if let Some(name) = self.results.get(&*underscored).copied() {
                meaning = self.symbols.take(&underscored);
                self.spelled(name, lane.to_owned());
                if let Some(meaning) = &meaning {
                    self.rename(&underscored, lane, meaning);
                    self.symbols
                        .define(lane.to_owned(), meaning.clone(), name.span);
                }
            }
        }
        match meaning {
            Some(Meaning::Bits(bits)) => return self.connect(node, Role::Data, &bits),
            Some(Meaning::Integer(_) | Meaning::Float(_) | Meaning::Register(_)) => {
                self.report(
                    &rules::OUTPUT_CONSTANT,
                    port.name.span,
                    format!(
                        "`{lane}`, a lane of output `{}`, is a constant",
                        port.name.text
                    ),
                );
            }
            Some(Meaning::Unknown) => {}
            None => self.undefined(lane, port.name.span),
        }
        self.graph.nodes[node].operands.push(Operand {
            role: Role::Data,
            source: Source::Constant(0),
        });
    }

    /// Gives the value that an operation made under one name another one.
    fn rename(&mut self, from: &str, to: &str, meaning: &Meaning) {
        let Meaning::Bits(bits) = meaning else { return };
        for part in bits {
            let node = &mut self.graph.nodes[part.node];
            let names = std::iter::once(&mut node.name)
                .chain(node.values.iter_mut().map(|value| &mut value.name));
            names
                .filter(|name| *name == from)
                .for_each(|name| to.clone_into(name));
        }
    }

    fn assignments(&self) -> impl Iterator<Item = Name<'a>> {
        let names = self
            .file
            .statements
            .iter()
            .filter_map(|statement| match &statement.kind {
                StatementKind::Assignment(assignment) => Some(&assignment.names),
                _ => None,
            });
        names.flatten().copied()
    }

    /// Notes that a name of the specification stands for another one.
    fn spelled(&mut self, name: Name<'a>, real: String) {
        if !self.spelling.names.contains_key(name.text) {
            self.report(
                &syntax::SPELLING,
                name.span,
                format!("the real parser calls `{}` `{real}`", name.text),
            );
            self.spelling.names.insert(name.text, real);
        }
    }

    fn options(&mut self, port: &ast::Port<'a>) -> Options {
        let mut options = Options::default();
        for option in &port.options {
            let key = option.key;
            match (port.direction, key.text, option.value) {
                (Direction::Input, "stated", None) => options.stated = true,
                (Direction::Output, "stated", None) => {
                    self.report(
                        &rules::OUTPUT_STATED,
                        key.span,
                        format!(
                            "output `{}` is stated without a port whose state it passes on",
                            port.name.text
                        ),
                    );
                }
                (Direction::Output, "state" | "stated", Some(name)) => {
                    options.state = self.state_of(name);
                }
                (Direction::Input, "source", Some(name))
                | (Direction::Output, "destination", Some(name)) => {
                    options.array = self.arrays.get(name.text).map(|(node, _)| *node);
                    if options.array.is_none() {
                        let hint = suggestion(name.text, self.arrays.keys().copied().take(1000));
                        self.report(
                            &rules::ARRAY,
                            name.span,
                            format!("no array `{}` is declared above{hint}", name.text),
                        );
                    }
                }
                (_, "source" | "destination", Some(_)) => {
                    let side = port.direction.keyword().to_lowercase();
                    self.report(
                        &rules::ARRAY_SIDE,
                        key.span,
                        format!("`{}` on {side} `{}`", key.text, port.name.text),
                    );
                }
                _ => {
                    let hint = suggestion(key.text, ["stated", "source", "destination", "state"]);
                    self.report(
                        &rules::PORT_OPTION,
                        key.span,
                        format!("`{}` is no option of a port{hint}", key.text),
                    );
                }
            }
        }
        options
    }

    /// The state of a stated input port, given the port or the state itself.
    fn state_of(&mut self, name: Name<'a>) -> Option<Bits> {
        let state = format!("${}State", name.text);
        let state = if self.symbols.get(&state).is_some() {
            Some(state)
        } else {
            self.symbols.respell(name.text)
        };
        match state
            .as_deref()
            .or(Some(name.text))
            .and_then(|state| self.symbols.get(state))
        {
            Some(Meaning::Bits(bits)) if bits[0].width() == STATE_BITS && bits[0].value == 0 => {
                Some(bits[0])
            }
            _ => {
                self.report(
                    &rules::STATE_PORT,
                    name.span,
                    format!("`{}` is no stated input port", name.text),
                );
                None
            }
        }
    }
}

/// What the options of a port amount to.
#[derive(Default)]
struct Options {
    stated: bool,
    state: Option<Bits>,
    array: Option<NodeId>,
}

/// The number of a register of the processing element.
fn register_of(name: &str) -> Option<u8> {
    match name.strip_prefix("$Reg")?.as_bytes() {
        [digit @ b'0'..=b'7'] => Some(digit - b'0'),
        _ => None,
    }
}

/// `; did you mean …?`, or nothing.
fn suggestion<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> String {
    closest(name, candidates)
        .map(|found| format!("; did you mean `{found}`?"))
        .unwrap_or_default()
}
