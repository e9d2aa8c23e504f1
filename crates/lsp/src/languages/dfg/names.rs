//! The names of a DFG: what they stand for, where, with what width and in which cycle.
//!
//! Names resolve as the target's resolver does it: from top to bottom, lanes of ports by their number, arrays in a space of their own. The
//! resolver keeps bits; this keeps places.

use crate::analysis::{Analysis, Symbol, SymbolKind, TokenKind};
use chipless::dsa::Document;
use chipless::dsa::graph::{Graph, NodeId, NodeKind, Source};
use chipless::dsa::operations;
use chipless::dsa::syntax::Span;
use chipless::dsa::syntax::ast::{
    Array, Assignment, Call, Direction, Expression, File, Lanes, Name, Port, Pragma, Statement,
    StatementKind, Term,
};
use chipless_model::Limits;
use std::collections::HashMap;
use std::ops::Range;

/// Lanes of an output that are looked for among the results.
const LANES: u32 = 1 << 16;

/// What a text says, and the names that it uses and does not define.
pub(super) fn analyse(text: &str) -> (Analysis, Vec<(String, Range<usize>)>) {
    let document = Document::read(text.as_bytes(), &Limits::default());
    let tree = document.tree();
    let mut reader = Reader {
        text,
        analysis: Analysis::default(),
        values: HashMap::new(),
        arrays: HashMap::new(),
        ports: HashMap::new(),
        registers: HashMap::new(),
        undefined: Vec::new(),
        section: None,
    };
    reader.file(&tree);
    let Reader {
        mut analysis,
        undefined,
        ..
    } = reader;
    figures(&document.graph, &mut analysis);
    analysis.sort();
    (analysis, undefined)
}

fn range(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

struct Reader<'t> {
    text: &'t str,
    analysis: Analysis,
    values: HashMap<String, usize>,
    arrays: HashMap<&'t str, usize>,
    /// Input ports with the number of their lanes, 0 for one without brackets, and whether they have a state.
    ports: HashMap<&'t str, (usize, u32, bool)>,
    /// `#pragma $RegK NAME` of results to come.
    registers: HashMap<&'t str, Vec<Range<usize>>>,
    undefined: Vec<(String, Range<usize>)>,
    /// The sub-graph, once there is more than one.
    section: Option<usize>,
}

impl<'t> Reader<'t> {
    fn word(&self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    fn file(&mut self, tree: &File<'t>) {
        for comment in &tree.comments {
            self.analysis.token(range(comment.span), TokenKind::Comment);
        }
        self.fold_comments(tree);
        let parts: Vec<usize> = tree
            .statements
            .iter()
            .filter(|s| matches!(s.kind, StatementKind::Separator(_)))
            .map(|s| s.span.start as usize)
            .collect();
        if let Some(first) = parts.first() {
            let starts = std::iter::once(0).chain(parts.iter().copied());
            for (start, next) in starts.zip(parts.iter().copied().chain([self.text.len()])) {
                let end = start + self.word(start..next).trim_end().len();
                self.analysis.folds.push(start..end);
            }
            self.section(0..0, *first, 0);
        }
        for statement in &tree.statements {
            if let StatementKind::Separator(_) = statement.kind {
                let start = statement.span.start as usize;
                let index = parts.partition_point(|part| *part <= start);
                let end = parts.get(index).copied().unwrap_or(self.text.len());
                self.section(range(statement.span), end, index);
            }
            self.statement(statement);
        }
    }

    /// Runs of lines that are all comment.
    fn fold_comments(&mut self, tree: &File<'t>) {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for comment in &tree.comments {
            let span = range(comment.span);
            let head = self.word(0..span.start).rsplit('\n').next();
            if head.is_some_and(|head| !head.trim().is_empty()) {
                continue;
            }
            match runs.last_mut() {
                Some(run)
                    if self.text.get(run.end..span.start).is_some_and(|gap| {
                        gap.trim().is_empty() && gap.matches('\n').count() == 1
                    }) =>
                {
                    run.end = span.end;
                }
                _ => runs.push(span),
            }
        }
        let text = self.text;
        let several = |run: &Range<usize>| {
            text.get(run.clone())
                .is_some_and(|text| text.contains('\n'))
        };
        self.analysis.folds.extend(runs.into_iter().filter(several));
    }

    /// A sub-graph that begins with this separator.
    fn section(&mut self, word: Range<usize>, end: usize, index: usize) {
        let start = word.start;
        self.section = Some(self.analysis.add(Symbol {
            name: format!("sub-graph {index}"),
            kind: SymbolKind::Section,
            detail: String::new(),
            about: String::new(),
            word: word.clone(),
            range: start..end.max(word.end),
            part_of: None,
            below: None,
            listed: true,
            renamable: false,
        }));
    }

    fn symbol(
        &mut self,
        name: &str,
        kind: SymbolKind,
        word: Range<usize>,
        statement: Span,
        detail: String,
    ) -> usize {
        let symbol = self.analysis.add(Symbol {
            name: name.to_owned(),
            kind,
            detail,
            about: String::new(),
            word: word.clone(),
            range: range(statement),
            part_of: None,
            below: self.section,
            listed: true,
            renamable: true,
        });
        self.analysis.occurs(symbol, word, true);
        symbol
    }

    /// A lane or the state of an input port.
    fn part(&mut self, name: &str, port: usize, detail: String) -> usize {
        let owner = &self.analysis.symbols[port];
        let (word, range) = (owner.word.clone(), owner.range.clone());
        let symbol = self.analysis.add(Symbol {
            name: name.to_owned(),
            kind: SymbolKind::Port,
            detail,
            about: String::new(),
            word,
            range,
            part_of: Some(port),
            below: None,
            listed: false,
            renamable: true,
        });
        self.analysis.unite(port, symbol);
        self.values.insert(name.to_owned(), symbol);
        symbol
    }

    fn statement(&mut self, statement: &Statement<'t>) {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Array(array) => self.array(*array, span),
            StatementKind::Port(port) => self.port(port, span),
            StatementKind::Assignment(assignment) => self.assignment(assignment, span),
            StatementKind::Separator(_) => {
                let start = span.start as usize;
                let dashes = self.word(range(span));
                let end = dashes
                    .find(|c: char| !"-—–".contains(c))
                    .unwrap_or(dashes.len());
                self.analysis.token(start..start + end, TokenKind::Keyword);
            }
            StatementKind::Pragma(pragma) => self.pragma(*pragma, span),
            StatementKind::Task(task) => self
                .analysis
                .token(range(task.keyword.span), TokenKind::Keyword),
        }
    }

    /// The keyword that a statement begins with.
    fn keyword(&mut self, span: Span) -> Range<usize> {
        let start = span.start as usize;
        let rest = self.word(range(span));
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        self.analysis.token(start..start + end, TokenKind::Keyword);
        start..start + end
    }

    fn array(&mut self, array: Array<'t>, span: Span) {
        let keyword = self.keyword(span);
        let size = array.size.unwrap_or(64);
        let kind = match self.word(keyword) {
            "Array" => array.kind.map_or("dma", |kind| kind.text),
            word => word,
        };
        let word = range(array.name.span);
        self.analysis.token(word.clone(), TokenKind::Variable);
        if let Some(kind) = array
            .kind
            .filter(|kind| kind.span.start > array.name.span.start)
        {
            self.analysis.token(range(kind.span), TokenKind::Type);
        }
        let detail = format!("array, {kind}, {size} bytes");
        let symbol = self.symbol(array.name.text, SymbolKind::Array, word, span, detail);
        self.arrays.entry(array.name.text).or_insert(symbol);
    }

    fn use_array(&mut self, name: Name<'t>) {
        self.analysis.token(range(name.span), TokenKind::Variable);
        match self.arrays.get(name.text).copied() {
            Some(symbol) => self.analysis.occurs(symbol, range(name.span), false),
            None => self
                .undefined
                .push((name.text.to_owned(), range(name.span))),
        }
    }

    fn port(&mut self, port: &Port<'t>, span: Span) {
        self.keyword(span);
        let name = port.name.text;
        let lanes = match port.lanes {
            Lanes::Plain => 0,
            Lanes::Count(lanes) | Lanes::List(lanes) => lanes,
        };
        let stated = port
            .options
            .iter()
            .any(|o| matches!(o.key.text, "stated" | "state"));
        let shape = match lanes {
            0 | 1 => "1 lane".to_owned(),
            n => format!("{n} lanes"),
        };
        let direction = port.direction.keyword().to_lowercase();
        let mut detail = format!("{direction} port, {shape} of {} bits", port.width);
        if stated && port.direction == Direction::Input {
            detail.push_str(", stated");
        }
        let word = range(port.name.span);
        self.analysis.token(word.clone(), TokenKind::Parameter);
        for option in &port.options {
            self.analysis
                .token(range(option.key.span), TokenKind::Property);
            match (option.key.text, option.value) {
                ("source" | "destination", Some(array)) => self.use_array(array),
                ("state" | "stated", Some(state)) => match self.ports.get(state.text).copied() {
                    Some((symbol, ..)) => {
                        self.analysis.token(range(state.span), TokenKind::Parameter);
                        self.analysis.occurs(symbol, range(state.span), false);
                    }
                    None => self.use_value(state),
                },
                _ => {}
            }
        }
        let symbol = self.symbol(name, SymbolKind::Port, word.clone(), span, detail);
        if port.direction == Direction::Output {
            return self.output(name, lanes, symbol, &word);
        }
        self.ports.insert(name, (symbol, lanes, stated));
        if lanes == 0 {
            self.values.insert(name.to_owned(), symbol);
        }
    }

    /// The lanes of an output are values of its name.
    fn output(&mut self, name: &'t str, lanes: u32, port: usize, word: &Range<usize>) {
        if lanes == 0 {
            let Some(value) = self.value(name) else {
                return self.undefined.push((name.to_owned(), word.clone()));
            };
            self.analysis.unite(port, value);
            // The name in the declaration is the value's: the port has no other.
            if let Some(own) = self
                .analysis
                .occurrences
                .iter_mut()
                .rev()
                .find(|o| o.word == *word)
            {
                own.symbol = value;
                own.defines = false;
            }
            self.analysis.symbols[port].about = format!("Takes the value `{name}`.\n\n");
            return;
        }
        for index in 0..lanes.min(LANES) {
            let plain = self.value(&format!("{name}{index}"));
            if let Some(value) = plain.or_else(|| self.value(&format!("{name}_{index}"))) {
                self.analysis.unite(port, value);
                let about = &mut self.analysis.symbols[value].about;
                about.push_str(&format!("Lane {index} of output `{name}`.\n\n"));
            }
        }
    }

    /// What a name stands for here. Lanes and states come into being when they are used.
    fn value(&mut self, name: &str) -> Option<usize> {
        if let Some(value) = self.values.get(name) {
            return Some(*value);
        }
        if let Some(stem) = name.strip_suffix("State") {
            let stem = stem.trim_start_matches('$');
            let candidates = [stem, stem.strip_suffix('_').unwrap_or(stem)];
            let mut known = candidates
                .into_iter()
                .filter_map(|stem| self.ports.get(stem).copied());
            let (port, ..) = known.find(|(_, _, stated)| *stated)?;
            return Some(self.part(name, port, "state of the stream, 8 bits".to_owned()));
        }
        let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (port, lane) = (digits..name.len()).find_map(|cut| {
            let (stem, lane) = name.split_at_checked(cut)?;
            let index: u32 = lane.parse().ok()?;
            let known = |stem: &str| self.ports.get(stem).filter(|(_, lanes, _)| index < *lanes);
            let found = known(stem).or_else(|| known(stem.strip_suffix('_')?))?;
            (index.to_string() == lane).then_some((found.0, index))
        })?;
        Some(self.part(name, port, format!("lane {lane}")))
    }

    fn use_value(&mut self, name: Name<'t>) {
        let word = range(name.span);
        if let Some(symbol) = self.value(name.text) {
            let port = self.analysis.symbols[symbol].kind == SymbolKind::Port;
            let kind = if port {
                TokenKind::Parameter
            } else {
                TokenKind::Variable
            };
            self.analysis.token(word.clone(), kind);
            return self.analysis.occurs(symbol, word, false);
        }
        self.analysis.token(word.clone(), TokenKind::Variable);
        if !super::register(name.text) {
            self.undefined.push((name.text.to_owned(), word));
        }
    }

    fn assignment(&mut self, assignment: &Assignment<'t>, span: Span) {
        self.expression(&assignment.value);
        let detail = match &assignment.value {
            Expression::Call(call) => format!("result of {}", call.operation.text),
            Expression::Terms(terms) if terms.len() == 1 => "another name for a value".to_owned(),
            Expression::Terms(_) => "values side by side".to_owned(),
        };
        for name in &assignment.names {
            let word = range(name.span);
            self.analysis.token(word.clone(), TokenKind::Variable);
            let symbol = self.symbol(name.text, SymbolKind::Variable, word, span, detail.clone());
            for place in self.registers.remove(name.text).unwrap_or_default() {
                self.analysis.occurs(symbol, place, true);
            }
            // A result that takes the name of an earlier one is the same variable with another value.
            if let Some(earlier) = self.values.insert(name.text.to_owned(), symbol) {
                self.analysis.unite(earlier, symbol);
            }
        }
    }

    fn expression(&mut self, expression: &Expression<'t>) {
        match expression {
            Expression::Terms(terms) => terms.iter().for_each(|term| self.term(term)),
            Expression::Call(call) => self.call(call),
        }
    }

    fn term(&mut self, term: &Term<'t>) {
        match *term {
            Term::Name(name) => self.use_value(name),
            Term::Slice(name, _, _, span) => {
                self.use_value(name);
                let rest = name.span.end as usize..span.end as usize;
                self.analysis.token(rest, TokenKind::Number);
            }
            Term::Integer(_, span) | Term::Float(_, _, span) => {
                self.analysis.token(range(span), TokenKind::Number);
            }
        }
    }

    fn call(&mut self, call: &Call<'t>) {
        self.analysis
            .token(range(call.operation.span), TokenKind::Function);
        for (unit, _) in &call.units {
            self.analysis.token(range(unit.span), TokenKind::Function);
        }
        for argument in &call.arguments {
            if let Some(qualifier) = argument.qualifier {
                self.analysis
                    .token(range(qualifier.span), TokenKind::Keyword);
            }
            if let Some(value) = &argument.value {
                self.expression(value);
            }
            if let Some((_, span)) = argument.mask {
                self.analysis.token(range(span), TokenKind::Number);
            }
            for entry in argument.table.iter().flatten() {
                for action in &entry.actions {
                    self.analysis
                        .token(range(action.span), TokenKind::EnumMember);
                }
            }
        }
    }

    fn pragma(&mut self, pragma: Pragma<'t>, span: Span) {
        let start = span.start as usize;
        let behind = start + "#pragma".len();
        self.analysis.token(start..behind, TokenKind::Macro);
        match pragma {
            Pragma::Group(key, _) => {
                let gap = self.word(behind..key.span.start as usize);
                if let Some(at) = gap.find("group") {
                    self.analysis
                        .token(behind + at..behind + at + "group".len(), TokenKind::Keyword);
                }
                self.analysis.token(range(key.span), TokenKind::Property);
            }
            Pragma::Port(key, value) => {
                self.analysis.token(range(key.span), TokenKind::Property);
                self.analysis.token(range(value.span), TokenKind::Number);
            }
            Pragma::Register(register, name) => {
                self.analysis
                    .token(range(register.span), TokenKind::Variable);
                self.analysis.token(range(name.span), TokenKind::Variable);
                self.registers
                    .entry(name.text)
                    .or_default()
                    .push(range(name.span));
            }
            Pragma::Other(_) => {}
        }
    }
}

/// Widths of names, and hints with width and cycle behind the results.
fn figures(graph: &Graph, analysis: &mut Analysis) {
    let cycles = cycles(graph);
    let mut values: HashMap<(usize, &str), (NodeId, usize)> = HashMap::new();
    for (id, node) in graph.nodes.iter_enumerated() {
        for (index, value) in node.values.iter().enumerate() {
            if !value.name.is_empty() {
                values
                    .entry((node.span.start as usize, &*value.name))
                    .or_insert((id, index));
            }
        }
    }
    let mut hints = Vec::new();
    for symbol in &mut analysis.symbols {
        let Some((id, index)) = values.get(&(symbol.range.start, &*symbol.name)).copied() else {
            continue;
        };
        let Some(value) = graph.nodes[id].values.get(index) else {
            continue;
        };
        let readers = match value.uses.len() {
            0 => "no reader".to_owned(),
            1 => "1 reader".to_owned(),
            n => format!("{n} readers"),
        };
        symbol
            .about
            .push_str(&format!("{} bits, {readers}", value.width));
        if symbol.kind == SymbolKind::Variable
            && let Some(cycle) = cycles.get(id.index())
        {
            symbol.about.push_str(&format!(", there in cycle {cycle}"));
            hints.push((
                symbol.word.end,
                format!(": {} bits, cycle {cycle}", value.width),
            ));
        }
    }
    analysis.hints = hints;
}

/// The cycle in which the result of each node is there, when inputs come in cycle 0 and values take no time on their way.
fn cycles(graph: &Graph) -> Vec<u64> {
    let mut latencies: HashMap<&str, u64> = HashMap::new();
    let mut cycles: Vec<u64> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let latency = match &node.kind {
            NodeKind::Instruction(instruction) => {
                *latencies.entry(&instruction.operation).or_insert_with(|| {
                    operations::lookup(&instruction.operation).map_or(1, |o| o.latency.into())
                })
            }
            NodeKind::Composite(_) => 1,
            _ => 0,
        };
        let edges = node
            .operands
            .iter()
            .filter_map(|operand| match &operand.source {
                Source::Edges(edges) => Some(edges),
                _ => None,
            });
        // An edge from below closes a circle through an array: it is of another time.
        let ready = edges
            .flatten()
            .filter_map(|edge| cycles.get(graph.edges[*edge].source.index()))
            .max();
        cycles.push(ready.copied().unwrap_or(0) + latency);
    }
    cycles
}
