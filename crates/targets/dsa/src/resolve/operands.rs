//! Assignments: operations, their operands, and names for values.

use super::symbols::{Bits, Meaning};
use super::{MAX_OPERAND_BITS, Resolver, register_of, rules, suggestion};
use crate::graph::{
    Actions, Composite, Control, Instruction, NodeId, NodeKind, Operand, Role, Source,
};
use crate::operations::{self, Generation};
use crate::rules::syntax;
use crate::syntax::Span;
use crate::syntax::ast::{Argument, Assignment, Call, Entry, Expression, Name, Term};
use chipless_model::Finding;
use smallvec::{SmallVec, smallvec};

/// Bits of a control value that count where the file is silent.
const CONTROL_MASK: u64 = 7;
/// Entries of a control table, at most: the state of a stream has eight bits.
const MAX_ENTRIES: usize = 256;

impl<'a> Resolver<'a, '_> {
    pub(super) fn assignment(&mut self, assignment: &Assignment<'a>, span: Span) {
        let names = &assignment.names;
        match &assignment.value {
            Expression::Call(call) => {
                let texts: Vec<&str> = names.iter().map(|name| name.text).collect();
                let node = self.call(call, &texts, span);
                for (value, name) in names.iter().enumerate() {
                    let high = self.graph.nodes[node].values[value].width - 1;
                    self.define_result(
                        *name,
                        Meaning::Bits(smallvec![Bits {
                            node,
                            value: value as u32,
                            low: 0,
                            high
                        }]),
                    );
                }
            }
            Expression::Terms(terms) => {
                let meaning = self.terms(terms);
                if let [_, second, ..] = names[..] {
                    self.report(
                        &rules::RESULTS,
                        second.span,
                        format!("{} names for one value", names.len()),
                    );
                }
                match (&meaning, terms.first()) {
                    (Meaning::Integer(_) | Meaning::Float(_), Some(term)) => {
                        self.report(
                            &rules::CONSTANT_NAME,
                            term.span(),
                            format!("`{}` is a name for a constant", names[0].text),
                        );
                    }
                    (Meaning::Register(register), Some(term)) => {
                        self.report(
                            &rules::CONCATENATION,
                            term.span(),
                            format!("`$Reg{register}` can only be read by an operation"),
                        );
                    }
                    _ => {}
                }
                self.define_result(names[0], meaning);
                self.aliases.push(names[0]);
            }
        }
    }

    /// An operation with as many results as names, at least one.
    fn call(&mut self, call: &Call<'a>, names: &[&str], span: Span) -> NodeId {
        let operation = call.operation.text;
        let mut instruction = Instruction {
            operation: operation.to_owned(),
            control: None,
            self_control: None,
        };
        let mut operands = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            if let Some(operand) = self.argument(argument, &mut instruction) {
                operands.push(operand);
            }
        }
        if operands.iter().all(|(_, meaning)| {
            matches!(
                meaning,
                Meaning::Integer(_) | Meaning::Float(_) | Meaning::Register(_)
            )
        }) {
            self.report(
                &rules::CONSTANT_ONLY,
                call.span,
                format!("`{operation}` has no operand from a port or another operation"),
            );
        }
        let width = result_bits(operation);
        let kind = if call.units.is_empty() {
            NodeKind::Instruction(instruction)
        } else {
            if let Some((unit, _)) = call.units.iter().find(|(_, count)| *count == 0) {
                self.report(
                    &rules::UNITS,
                    unit.span,
                    format!("0 units of `{}`", unit.text),
                );
            }
            NodeKind::Composite(Composite {
                name: operation.to_owned(),
                units: call
                    .units
                    .iter()
                    .map(|(name, count)| (name.text.to_owned(), *count))
                    .collect(),
            })
        };
        let node = self.add(names.first().unwrap_or(&""), kind, span);
        self.graph.nodes[node]
            .values
            .reserve_exact(names.len().max(1));
        self.graph.nodes[node]
            .operands
            .reserve_exact(operands.len());
        for (role, meaning) in operands {
            let source = match meaning {
                Meaning::Bits(bits) => {
                    self.connect(node, role, &bits);
                    continue;
                }
                Meaning::Integer(value) => Source::Constant(value),
                Meaning::Float(value) => {
                    if element(operation).is_some_and(|(_, _, lanes)| lanes > 1) {
                        self.report(
                            &rules::FLOAT_CONSTANT,
                            call.span,
                            format!("`{operation}` takes {value:?} as one number of 64 bits"),
                        );
                    }
                    Source::Constant(float_bits(operation, value))
                }
                Meaning::Register(register) => Source::Register(register),
                Meaning::Unknown => Source::Constant(0),
            };
            self.graph.nodes[node]
                .operands
                .push(Operand { role, source });
        }
        if names.is_empty() {
            self.add_value(node, String::new(), width);
        }
        for name in names {
            self.add_value(node, (*name).to_owned(), width);
        }
        node
    }

    fn argument(
        &mut self,
        argument: &Argument<'a>,
        instruction: &mut Instruction,
    ) -> Option<(Role, Meaning)> {
        let Some(qualifier) = argument.qualifier else {
            if argument.table.is_some() || argument.mask.is_some() {
                self.report(
                    &rules::QUALIFIER,
                    argument.span,
                    "a table or a mask without `ctrl=` or `self=`",
                );
            }
            let Some(value) = &argument.value else {
                return Some((Role::Data, Meaning::Unknown));
            };
            return Some((Role::Data, self.expression(value)));
        };
        let role = match qualifier.text {
            "ctrl" => Role::Control,
            "control" => {
                self.report(
                    &syntax::OLDER_FORM,
                    qualifier.span,
                    "`control=`; today's form is `ctrl=`",
                );
                Role::Control
            }
            "pred" => Role::Predicate,
            "inv_pred" => Role::InversePredicate,
            "self" => {
                if let Some(value) = &argument.value {
                    self.report(
                        &rules::QUALIFIER,
                        qualifier.span,
                        "`self` is the instruction's own result and takes no value",
                    );
                    self.expression(value);
                }
                self.control(argument, qualifier, &mut instruction.self_control);
                return None;
            }
            other => {
                let hint = suggestion(other, ["ctrl", "self", "pred", "inv_pred"]);
                self.report(
                    &rules::QUALIFIER,
                    qualifier.span,
                    format!("`{other}` qualifies no argument{hint}"),
                );
                Role::Control
            }
        };
        if role == Role::Control {
            self.control(argument, qualifier, &mut instruction.control);
        } else if argument.table.is_some() || argument.mask.is_some() {
            self.report(
                &rules::QUALIFIER,
                argument.span,
                format!("`{}` takes no table and no mask", qualifier.text),
            );
        }
        let Some(value) = &argument.value else {
            self.report(
                &rules::QUALIFIER,
                qualifier.span,
                format!("`{}` takes a value", qualifier.text),
            );
            return None;
        };
        Some((role, self.expression(value)))
    }

    fn control(
        &mut self,
        argument: &Argument<'a>,
        qualifier: Name<'a>,
        control: &mut Option<Box<Control>>,
    ) {
        if control.is_some() {
            self.report(
                &rules::QUALIFIER,
                qualifier.span,
                format!("a second `{}`", qualifier.text),
            );
        }
        let mut table: Vec<(u64, Actions)> = Vec::new();
        for entry in argument.table.iter().flatten() {
            let actions = self.actions(entry);
            match table.iter().position(|(key, _)| *key == entry.key) {
                Some(former) => {
                    self.report(
                        &rules::DUPLICATE,
                        entry.span,
                        format!("the table has a second entry for {}", entry.key),
                    );
                    table[former].1 = actions;
                }
                None if table.len() < MAX_ENTRIES => table.push((entry.key, actions)),
                None => {
                    self.report(
                        &rules::ACTION,
                        entry.span,
                        format!("the table has more than {MAX_ENTRIES} entries"),
                    );
                    break;
                }
            }
        }
        *control = Some(Box::new(Control {
            mask: argument.mask.map_or(CONTROL_MASK, |(mask, _)| mask),
            table,
        }));
    }

    fn actions(&mut self, entry: &Entry<'a>) -> Actions {
        let mut actions = Actions::NONE;
        for letter in &entry.actions {
            match Actions::LETTERS
                .iter()
                .find(|(_, name)| *name == letter.text)
            {
                Some((action, _)) => actions = actions.with(*action),
                None => self.report(
                    &rules::ACTION,
                    letter.span,
                    format!(
                        "`{}` is no action; there are b1, b2, d, r and a",
                        letter.text
                    ),
                ),
            }
        }
        actions
    }

    fn expression(&mut self, expression: &Expression<'a>) -> Meaning {
        match expression {
            Expression::Terms(terms) => self.terms(terms),
            Expression::Call(call) => {
                let node = self.call(call, &[], call.span);
                let high = self.graph.nodes[node].values[0].width - 1;
                Meaning::Bits(smallvec![Bits {
                    node,
                    value: 0,
                    low: 0,
                    high
                }])
            }
        }
    }

    fn terms(&mut self, terms: &[Term<'a>]) -> Meaning {
        if let [term] = terms {
            return self.term(term);
        }
        if terms
            .iter()
            .all(|term| matches!(term, Term::Integer(..) | Term::Float(..)))
        {
            return self.constants(terms);
        }
        let mut all: SmallVec<[Bits; 1]> = SmallVec::new();
        let (mut width, mut known) = (0, true);
        for term in terms {
            match self.term(term) {
                Meaning::Bits(bits) => {
                    width += bits.iter().map(|bits| bits.width()).sum::<u32>();
                    if width > MAX_OPERAND_BITS {
                        self.report(
                            &rules::CONCATENATION,
                            term.span(),
                            format!("more than {MAX_OPERAND_BITS} bits side by side"),
                        );
                        return Meaning::Unknown;
                    }
                    all.extend(bits);
                }
                Meaning::Unknown => known = false,
                Meaning::Integer(_) | Meaning::Float(_) | Meaning::Register(_) => {
                    self.report(
                        &rules::CONCATENATION,
                        term.span(),
                        "a constant or a register beside a value",
                    );
                    known = false;
                }
            }
        }
        if known {
            Meaning::Bits(all)
        } else {
            Meaning::Unknown
        }
    }

    /// Constants side by side, the first least significant.
    fn constants(&mut self, terms: &[Term<'a>]) -> Meaning {
        match *terms {
            [Term::Integer(a, _), Term::Integer(b, _)] => {
                Meaning::Integer(b << 32 | a & 0xFFFF_FFFF)
            }
            [
                Term::Integer(a, _),
                Term::Integer(b, _),
                Term::Integer(c, _),
                Term::Integer(d, _),
            ] => Meaning::Integer(
                [d, c, b, a]
                    .into_iter()
                    .fold(0, |bits, part| bits << 16 | part & 0xFFFF),
            ),
            [Term::Float(a, ..), Term::Float(b, ..)] => Meaning::Integer(
                u64::from((b as f32).to_bits()) << 32 | u64::from((a as f32).to_bits()),
            ),
            _ => {
                let span = terms.first().map(Term::span).unwrap_or_default();
                self.report(
                    &rules::CONSTANT,
                    span,
                    format!("{} constants side by side; possible are 1, 2 and 4 whole numbers, or 1 and 2 others", terms.len()),
                );
                Meaning::Unknown
            }
        }
    }

    fn term(&mut self, term: &Term<'a>) -> Meaning {
        match *term {
            Term::Integer(value, _) => Meaning::Integer(value),
            Term::Float(value, ..) => Meaning::Float(value),
            Term::Name(name) => self.lookup(name),
            Term::Slice(name, first, second, span) => {
                let bits = match self.lookup(name) {
                    Meaning::Bits(bits) => bits,
                    Meaning::Unknown => return Meaning::Unknown,
                    _ => {
                        self.report(
                            &rules::SLICE,
                            span,
                            format!("`{}` is no value; only values have slices", name.text),
                        );
                        return Meaning::Unknown;
                    }
                };
                let width = bits.iter().map(|bits| bits.width()).sum::<u32>();
                let range = self
                    .spelling
                    .slice(first, second)
                    .filter(|(_, high)| *high < u64::from(width));
                let Some((low, high)) = range else {
                    self.report(
                        &rules::SLICE,
                        span,
                        format!(
                            "`{}:{first}:{second}`: `{}` has {width} bits",
                            name.text, name.text
                        ),
                    );
                    return Meaning::Unknown;
                };
                if self.spelling.slices_by_width {
                    self.report(
                        &syntax::OLDER_FORM,
                        span,
                        format!(
                            "a slice as width and index; today's form is `{}:{low}:{high}`",
                            name.text
                        ),
                    );
                }
                Meaning::Bits(cut(&bits, low as u32, high as u32))
            }
        }
    }

    fn lookup(&mut self, name: Name<'a>) -> Meaning {
        if let Some(meaning) = self.symbols.take(name.text) {
            return meaning;
        }
        if let Some(register) = register_of(name.text) {
            return Meaning::Register(register);
        }
        if let Some(real) = self.symbols.respell(name.text)
            && let Some(meaning) = self.symbols.take(&real)
        {
            self.spelled(name, real);
            return meaning;
        }
        if self.reported.insert(name.text) {
            self.undefined(name.text, name.span);
        }
        Meaning::Unknown
    }

    /// Reports a name that is not defined here.
    pub(super) fn undefined(&mut self, name: &str, span: Span) {
        if self.findings.full() {
            return self.report(&rules::UNDEFINED, span, "");
        }
        let later = self
            .assignments()
            .find(|found| found.text == name && found.span.start > span.start);
        let lines = self.lines;
        if let Some(later) = later {
            let finding = rules::BEFORE_DEFINITION.at(
                lines.place(span),
                format!("`{name}` is used above its definition"),
            );
            let finding: Finding = finding.with(lines.place(later.span), "the definition");
            return self.findings.push(finding);
        }
        let state = name
            .strip_prefix('$')
            .is_some_and(|rest| rest.ends_with("State"));
        if state {
            return self.report(
                &rules::STATE_PORT,
                span,
                format!("`{name}`: no stated input port has this state"),
            );
        }
        // Enough names for any file that people write.
        let hint = if self.symbols.len() <= 10_000 {
            let mut names: Vec<&str> = self.symbols.names().collect();
            names.sort_unstable();
            suggestion(name, names)
        } else {
            String::new()
        };
        self.report(
            &rules::UNDEFINED,
            span,
            format!("`{name}` is not defined above{hint}"),
        );
    }
}

/// Bits `low` to `high` of values side by side.
fn cut(parts: &[Bits], low: u32, high: u32) -> SmallVec<[Bits; 1]> {
    let mut all = SmallVec::new();
    let mut start = 0;
    for part in parts {
        let end = start + part.width() - 1;
        if start <= high && end >= low {
            let (first, last) = (low.max(start) - start, high.min(end) - start);
            all.push(Bits {
                low: part.low + first,
                high: part.low + last,
                ..*part
            });
        }
        start = end + 1;
    }
    all
}

/// The element type of an operation of the newer generation: `I64`, `F32x2`.
fn element(operation: &str) -> Option<(u8, u32, u32)> {
    let (_, suffix) = operation.rsplit_once('_')?;
    let kind = *suffix
        .as_bytes()
        .first()
        .filter(|kind| b"IUFDH".contains(kind))?;
    let (bits, lanes) = suffix[1..].split_once('x').unwrap_or((&suffix[1..], "1"));
    let (bits, lanes) = (bits.parse().ok()?, lanes.parse().ok()?);
    (matches!(bits, 8 | 16 | 32 | 64) && (1..=8).contains(&lanes)).then_some((kind, bits, lanes))
}

/// Whether an operation has a name of the newer generation.
pub(super) fn is_modern(operation: &str) -> bool {
    operations::lookup(operation).map_or_else(
        || element(operation).is_some(),
        |found| found.generation != Generation::Older,
    )
}

/// Bits of the result of an operation: those of the table, and for a name that is not there what the name says.
fn result_bits(operation: &str) -> u32 {
    if let Some(known) = operations::lookup(operation) {
        return known.width.clamp(1, MAX_OPERAND_BITS);
    }
    if let Some((_, bits, lanes)) = element(operation) {
        return bits * lanes;
    }
    // Older names end in their width (`Add16x4`, `Mul32`); what has none works on 64 bits.
    let (head, lanes) = match operation.rsplit_once('x') {
        Some((head, lanes)) if head.ends_with(|c: char| c.is_ascii_digit()) => {
            (head, lanes.parse().unwrap_or(1))
        }
        _ => (operation, 1u32),
    };
    let digits = head.len() - head.bytes().rev().take_while(u8::is_ascii_digit).count();
    match head[digits..].parse() {
        Ok(bits @ (8 | 16 | 32 | 64)) => lanes.saturating_mul(bits).clamp(8, 64),
        _ => 64,
    }
}

/// A floating-point constant in the element type of the operation that consumes it; 64 bits where that does not say.
fn float_bits(operation: &str, value: f64) -> u64 {
    let single = || u64::from((value as f32).to_bits());
    match element(operation) {
        Some((_, 32, 1)) => single(),
        Some((_, 16, 1)) => u64::from(half::f16::from_f64(value).to_bits()),
        None if operation.starts_with('F') && result_bits(operation) == 32 => single(),
        _ => value.to_bits(),
    }
}
