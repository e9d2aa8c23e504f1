//! The typed document: vectors and sequences, over the tree that they were read from.

use super::rules::{self, Law};
use super::{RuleSet, flat};
use crate::yaml::{self, Budget, Node, Span, Value};
use chipless_model::{ElementType, Finding};
use std::collections::{HashMap, HashSet};

/// Sections of a document.
pub(super) const SECTIONS: [&str; 4] = ["inputs", "outputs", "simple_sequences", "complex_sequences"];

/// An IOSpec.
#[derive(Clone, Debug)]
pub struct Document {
    /// The tree, with everything that the types below do not know. `Null` for an empty text.
    pub root: Node,
    /// What the host sends, in the order of the section.
    pub inputs: Vec<Vector>,
    /// What the host receives.
    pub outputs: Vec<Vector>,
    /// Simple sequences in the order of their section, then complex ones.
    pub sequences: Vec<Sequence>,
    /// What was found while reading: nothing that is an error under the rule set.
    pub findings: Vec<Finding>,
}

/// From or to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// To the accelerator.
    Input,
    /// To the host.
    Output,
}

impl Side {
    /// As the `type` field names it.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Input => "input",
            Side::Output => "output",
        }
    }
}

/// An input or output: a vector of integers.
#[derive(Clone, Debug)]
pub struct Vector {
    /// Its key in the section, by which sequences name it.
    pub key: String,
    /// Its variable in the program, by which hosts name it.
    pub varname: String,
    /// Which section it is in.
    pub side: Side,
    /// Elements of the model's vector.
    pub length: i64,
    /// Bits of an element.
    pub precision: i64,
    /// Elements of the vector on the wire; `None` before compilation.
    pub padded_length: Option<i64>,
    /// 64-bit words on the wire.
    pub words: Option<i64>,
    /// Which core takes an input.
    pub core_id: Option<i64>,
    /// Which program counter an input starts.
    pub pc: Option<i64>,
    /// Which mailbox an output comes from.
    pub mailbox_id: Option<i64>,
    /// How integers stand for reals.
    pub quantization: Option<Quantization>,
    /// The hint `comments.latched` or `comments.latch`: which key, and what it says.
    pub hint: Option<(&'static str, bool)>,
    /// Where its key stands.
    pub span: Span,
    /// Everything that the file says about it.
    pub fields: Node,
}

/// Real value = (integer − zero point) × scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantization {
    /// Of one step.
    pub scale: f64,
    /// The integer that stands for zero.
    pub zero_point: f64,
}

/// How a sequence counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SequenceKind {
    /// Everything once.
    Simple,
    /// Each input as often as its number says for one firing; each output after as many firings.
    Complex,
}

/// Which inputs come before which outputs.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Its name.
    pub name: String,
    /// In which section it stands.
    pub kind: SequenceKind,
    /// What it takes, in order.
    pub inputs: Vec<Member>,
    /// What it produces, in order.
    pub outputs: Vec<Member>,
    /// Where its name stands.
    pub span: Span,
}

/// A vector in a sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The vector's key.
    pub key: String,
    /// How often; 1 in simple sequences.
    pub count: f64,
    /// Where it stands.
    pub span: Span,
}

impl Sequence {
    /// Whether it has no output: its inputs keep their values until they are written again.
    pub fn is_latched(&self) -> bool {
        self.outputs.is_empty()
    }
}

/// Before or after compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// As the user's model has it: no padding, no addresses.
    User,
    /// With the addresses that a driver needs.
    Compiled,
    /// With some of them.
    Mixed,
}

impl Stage {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::User => "before compilation",
            Stage::Compiled => "compiled",
            Stage::Mixed => "partly compiled",
        }
    }
}

impl Vector {
    /// Where a field stands, or the vector where it has none.
    pub fn span_of(&self, field: &str) -> Span {
        self.fields.get(field).map_or(self.span, |node| node.span)
    }

    /// The type of a host's array: the smallest that holds every value.
    pub fn element(&self) -> ElementType {
        match self.precision {
            ..=8 => ElementType::Int8,
            9..=16 => ElementType::Int16,
            17..=32 => ElementType::Int32,
            _ => ElementType::Int64,
        }
    }

    /// The integers that it holds, where its precision makes sense.
    pub fn range(&self) -> Option<std::ops::RangeInclusive<i64>> {
        let bits = u32::try_from(self.precision).ok().filter(|bits| (1..=63).contains(bits))?;
        Some(-(1 << (bits - 1))..=(1 << (bits - 1)) - 1)
    }

    /// Fields that the driver needs and that are missing.
    pub fn missing_address(&self) -> Vec<&'static str> {
        let fields: &[(&'static str, Option<i64>)] = match self.side {
            Side::Input => {
                &[("core_id", self.core_id), ("pc", self.pc), ("length_64b_words", self.words), ("padded_length", self.padded_length)]
            }
            Side::Output => &[("mailbox_id", self.mailbox_id), ("length_64b_words", self.words), ("padded_length", self.padded_length)],
        };
        fields.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| *name).collect()
    }
}

impl Document {
    /// Reads a document under a rule set.
    ///
    /// # Errors
    /// Everything found, at least one of it an error: what cannot be read, or what the rule set refuses on reading.
    pub fn read(text: &str, rules: RuleSet) -> Result<Document, Vec<Finding>> {
        let tree =
            yaml::read(text, Budget::default()).map_err(|(span, message)| vec![rules::SYNTAX.under(rules).at(span.place(), message)])?;
        let root = tree.root.unwrap_or(Node { value: Value::Null, span: Span::default() });
        let mut reader = Reader { rules, counted: false, findings: Vec::new() };
        for (key, first, again) in tree.duplicates {
            let finding = rules::DUPLICATE_KEY.under(rules).at(again.place(), format!("expected each key once, found `{key}` again"));
            reader.findings.push(finding.with(first.place(), "first here"));
        }
        if flat::looks_flat(&root) {
            let first = root.span.place();
            reader.say(
                &rules::FLAT,
                first,
                "expected the sections inputs, outputs and sequences, found objects of the flat dialect side by side",
            );
            return Err(reader.findings);
        }
        let mut document = Document { root, inputs: Vec::new(), outputs: Vec::new(), sequences: Vec::new(), findings: Vec::new() };
        reader.sections(&mut document);
        if reader.findings.iter().any(Finding::is_error) {
            return Err(reader.findings);
        }
        document.findings = reader.findings;
        Ok(document)
    }

    /// The document as text that reads the same: every field, anchors expanded.
    pub fn write(&self) -> String {
        if self.root.value == Value::Null { String::new() } else { yaml::write(&self.root) }
    }

    /// Inputs and outputs.
    pub fn vectors(&self) -> impl Iterator<Item = &Vector> {
        self.inputs.iter().chain(&self.outputs)
    }

    /// The sequences that the firmware library knows, in the order of their ids.
    pub fn simple_sequences(&self) -> impl Iterator<Item = &Sequence> {
        self.sequences.iter().filter(|s| s.kind == SequenceKind::Simple)
    }

    /// Whether an input is in no sequence that has outputs: it keeps its value.
    pub fn is_latched(&self, key: &str) -> bool {
        !self.sequences.iter().any(|s| !s.is_latched() && s.inputs.iter().any(|m| m.key == key))
    }

    /// Keys of the inputs that are not latched.
    pub(super) fn unlatched(&self) -> HashSet<&str> {
        self.sequences.iter().filter(|s| !s.is_latched()).flat_map(|s| &s.inputs).map(|m| &*m.key).collect()
    }

    /// Keys to positions of inputs.
    pub(super) fn input_index(&self) -> HashMap<&str, usize> {
        self.inputs.iter().enumerate().map(|(i, v)| (&*v.key, i)).collect()
    }

    /// Keys to positions of outputs.
    pub(super) fn output_index(&self) -> HashMap<&str, usize> {
        self.outputs.iter().enumerate().map(|(i, v)| (&*v.key, i)).collect()
    }

    /// Before or after compilation.
    pub fn stage(&self) -> Stage {
        let missing = |v: &Vector| v.missing_address();
        if self.vectors().all(|v| missing(v).is_empty()) {
            Stage::Compiled
        } else if self.vectors().all(|v| [v.core_id, v.pc, v.mailbox_id, v.words].iter().all(Option::is_none)) {
            Stage::User
        } else {
            Stage::Mixed
        }
    }
}

/// The text of a key. Other scalars are other names than the text that they print as: they bear their tag.
fn name_of(node: &Node) -> String {
    let tag = match node.value {
        Value::Integer(_) => "!!int ",
        Value::Float(_) => "!!float ",
        Value::Bool(_) => "!!bool ",
        Value::Null => "!!null ",
        Value::Opaque("timestamp", _) => "!!timestamp ",
        Value::Opaque(..) => "!!binary ",
        _ => "",
    };
    format!("{tag}{}", node.label())
}

struct Reader {
    rules: RuleSet,
    /// Whether a count above 1 was seen: the package looks at no further one on reading.
    counted: bool,
    findings: Vec<Finding>,
}

impl Reader {
    fn say(&mut self, law: &'static Law, place: chipless_model::Place, message: impl Into<String>) {
        self.findings.push(law.under(self.rules).at(place, message));
    }

    fn at(&mut self, law: &'static Law, span: Span, message: impl Into<String>) {
        self.say(law, span.place(), message);
    }

    fn sections(&mut self, document: &mut Document) {
        let entries = match document.root.value.clone() {
            Value::Null if document.root.span.line == 0 => return,
            Value::Map(entries) => entries,
            other => {
                let message = format!("expected a mapping with the sections {}, found {}", SECTIONS.join(", "), other.kind());
                return self.at(&rules::SECTION, document.root.span, message);
            }
        };
        let mut complex = Vec::new();
        for (key, section) in &entries {
            let name = key.value.text().unwrap_or_default();
            if !SECTIONS.contains(&name) {
                let message = format!("expected one of the sections {}, found `{}`", SECTIONS.join(", "), yaml::shortened(&key.label()));
                self.at(&rules::SECTION, key.span, message);
                continue;
            }
            let Value::Map(objects) = &section.value else {
                let message = format!("expected a mapping in the section {name}, found {}", section.describe());
                self.at(&rules::SECTION, section.span, message);
                continue;
            };
            for (key, object) in objects {
                if key.value == Value::Null {
                    self.at(&rules::FIELD_TYPE, key.span, format!("expected a name in the section {name}, found {}", key.value.kind()));
                }
                match name {
                    "inputs" => document.inputs.extend(self.vector(key, object, Side::Input)),
                    "outputs" => document.outputs.extend(self.vector(key, object, Side::Output)),
                    "simple_sequences" => document.sequences.extend(self.sequence(key, object, SequenceKind::Simple)),
                    _ => complex.extend(self.sequence(key, object, SequenceKind::Complex)),
                }
            }
        }
        document.sequences.extend(complex);
        self.duplicate_names(document);
        self.circles(document);
    }

    /// The field of an object that must have it.
    fn required<'n>(&mut self, object: &'n Node, key: &Node, what: &str, field: &str) -> Option<&'n Node> {
        let found = object.get(field);
        if found.is_none() {
            let message = format!("expected the field {field} of the {what} `{}`, found none", yaml::shortened(&key.label()));
            self.at(&rules::FIELD_MISSING, key.span, message);
        }
        found
    }

    fn wrong_type(&mut self, node: &Node, key: &Node, field: &str, wanted: &str) {
        let message = format!("expected {wanted} as {field} of `{}`, found {}", yaml::shortened(&key.label()), node.describe());
        self.at(&rules::FIELD_TYPE, node.span, message);
    }

    /// A value that the femtorun package does not look at.
    fn unchecked(&mut self, node: &Node, key: &Node, field: &str, wanted: &str) {
        let message = format!("expected {wanted} as {field} of `{}`, found {}", yaml::shortened(&key.label()), node.describe());
        self.at(&rules::FIELD_TYPE_UNCHECKED, node.span, message);
    }

    fn is_object(&mut self, key: &Node, object: &Node, what: &str) -> bool {
        let is_map = matches!(object.value, Value::Map(_));
        if !is_map {
            let message = format!("expected the fields of the {what} `{}`, found {}", yaml::shortened(&key.label()), object.describe());
            self.at(&rules::FIELD_TYPE, object.span, message);
        }
        is_map
    }

    /// An integer that Python takes for one: booleans are integers there.
    fn integer(&mut self, object: &Node, key: &Node, field: &str) -> Option<i64> {
        let node = self.required(object, key, "vector", field)?;
        match node.value {
            Value::Integer(value) => {
                let small = i64::try_from(value).ok();
                match small {
                    None => self.wrong_type(node, key, field, "an integer of 64 bits"),
                    Some(small) if small < 0 || (field == "precision" && small == 0) => {
                        self.unchecked(node, key, field, "a positive integer");
                    }
                    Some(_) => {}
                }
                small
            }
            Value::Bool(value) => {
                self.unchecked(node, key, field, "an integer");
                Some(i64::from(value))
            }
            _ => {
                self.wrong_type(node, key, field, "an integer");
                None
            }
        }
    }

    /// An integer that may be missing or null; other values are not looked at by femtorun.
    fn optional(&mut self, object: &Node, key: &Node, field: &str) -> Option<i64> {
        let node = object.get(field)?;
        match node.value {
            Value::Null => None,
            Value::Integer(value) if i64::try_from(value).is_ok() => {
                if value < 0 {
                    self.unchecked(node, key, field, "an integer from 0 on");
                }
                i64::try_from(value).ok()
            }
            _ => {
                self.unchecked(node, key, field, "an integer");
                None
            }
        }
    }

    fn vector(&mut self, key: &Node, object: &Node, side: Side) -> Option<Vector> {
        if !self.is_object(key, object, "vector") {
            return None;
        }
        let kind = self.required(object, key, "vector", "type");
        if let Some(kind) = kind.filter(|node| node.value.text() != Some(side.name())) {
            self.unchecked(kind, key, "type", side.name());
        }
        let varname = self.required(object, key, "vector", "varname").and_then(|node| {
            let text = node.value.text().map(str::to_owned);
            if text.is_none() {
                self.wrong_type(node, key, "varname", "text");
            }
            text
        });
        let length = self.integer(object, key, "length");
        let precision = self.integer(object, key, "precision");
        self.required(object, key, "vector", "padded_length");
        let quantization = self.quantization(object, key);
        let comments = object.get("comments");
        let hint = ["latched", "latch"].into_iter().find_map(|name| match comments?.get(name)?.value {
            Value::Bool(value) => Some((name, value)),
            _ => None,
        });
        Some(Vector {
            key: name_of(key),
            varname: varname?,
            side,
            length: length?,
            precision: precision?,
            padded_length: self.optional(object, key, "padded_length"),
            words: self.optional(object, key, "length_64b_words"),
            core_id: self.optional(object, key, "core_id"),
            pc: self.optional(object, key, "pc"),
            mailbox_id: self.optional(object, key, "mailbox_id"),
            quantization,
            hint,
            span: key.span,
            fields: object.clone(),
        })
    }

    fn quantization(&mut self, object: &Node, key: &Node) -> Option<Quantization> {
        let node = object.get("quantization").filter(|node| node.value != Value::Null)?;
        if !matches!(node.value, Value::Map(_)) {
            self.unchecked(node, key, "quantization", "scale and zero_pt");
            return None;
        }
        let mut number = |field: &str| {
            let node = node.get(field)?;
            match node.value {
                Value::Integer(value) => Some(value as f64),
                Value::Float(value) if value.is_finite() => Some(value),
                Value::Null => None,
                _ => {
                    self.unchecked(node, key, field, "a number");
                    None
                }
            }
        };
        let (scale, zero_point) = (number("scale"), number("zero_pt"));
        Some(Quantization { scale: scale?, zero_point: zero_point.unwrap_or(0.0) })
    }

    fn sequence(&mut self, key: &Node, object: &Node, kind: SequenceKind) -> Option<Sequence> {
        if !self.is_object(key, object, "sequence") {
            return None;
        }
        let wanted = if kind == SequenceKind::Simple { "simple_sequence" } else { "complex_sequence" };
        let stated = self.required(object, key, "sequence", "type");
        if let Some(stated) = stated.filter(|node| node.value.text() != Some(wanted)) {
            self.unchecked(stated, key, "type", wanted);
        }
        let inputs = self.required(object, key, "sequence", "inputs");
        let outputs = self.required(object, key, "sequence", "outputs");
        let inputs = self.members(inputs?, key, "inputs", kind);
        let outputs = self.members(outputs?, key, "outputs", kind);
        Some(Sequence { name: name_of(key), kind, inputs: inputs?, outputs: outputs?, span: key.span })
    }

    fn members(&mut self, node: &Node, key: &Node, field: &str, kind: SequenceKind) -> Option<Vec<Member>> {
        match (kind, &node.value) {
            (SequenceKind::Simple, Value::List(items)) => items.iter().map(|item| self.member(item, key, field)).collect(),
            // Python walks through the characters of a text and the keys of a mapping.
            (SequenceKind::Simple, Value::Text(text)) => {
                self.unchecked(node, key, field, "a list of names");
                Some(text.chars().map(|c| Member { key: c.to_string(), count: 1.0, span: node.span }).collect())
            }
            (SequenceKind::Simple, Value::Map(entries)) => {
                self.unchecked(node, key, field, "a list of names");
                entries.iter().map(|(item, _)| self.member(item, key, field)).collect()
            }
            (SequenceKind::Simple, _) => {
                self.wrong_type(node, key, field, "a list of names");
                None
            }
            (SequenceKind::Complex, Value::Map(entries)) => {
                entries.iter().map(|(item, count)| self.counted(item, count, key, field)).collect()
            }
            (SequenceKind::Complex, _) => {
                self.wrong_type(node, key, field, "a mapping from names to counts");
                None
            }
        }
    }

    fn member(&mut self, item: &Node, key: &Node, field: &str) -> Option<Member> {
        let text = item.value.text().map(str::to_owned);
        if text.is_none() {
            self.wrong_type(item, key, field, "names");
        }
        Some(Member { key: text?, count: 1.0, span: item.span })
    }

    fn counted(&mut self, item: &Node, count: &Node, key: &Node, field: &str) -> Option<Member> {
        if item.value == Value::Null {
            self.wrong_type(item, key, field, "names");
        }
        let number = match count.value {
            Value::Integer(value) => Some(value as f64),
            Value::Float(value) => Some(value),
            Value::Bool(value) => Some(f64::from(u8::from(value))),
            _ => None,
        };
        let Some(number) = number else {
            if self.counted && self.rules == RuleSet::Femtorun41 {
                // It fails as soon as something is counted against it, so it is below every count.
                self.unchecked(count, key, field, "a count");
                return Some(Member { key: name_of(item), count: f64::NEG_INFINITY, span: item.span });
            }
            self.wrong_type(count, key, field, "a count");
            return None;
        };
        self.counted |= number > 1.0;
        let sound = matches!(count.value, Value::Integer(1..=0xffff_ffff));
        if !sound {
            self.unchecked(count, key, field, "a count from 1 on");
        }
        Some(Member { key: name_of(item), count: number, span: item.span })
    }

    fn duplicate_names(&mut self, document: &Document) {
        let outputs = document.output_index();
        let mut seen: HashMap<&str, &Vector> = HashMap::new();
        // An output takes the place of an input with the same key, so that one's name is free again.
        for vector in document.inputs.iter().filter(|v| !outputs.contains_key(&*v.key)).chain(&document.outputs) {
            match seen.get(&*vector.varname) {
                Some(first) => {
                    let message =
                        format!("expected each varname once, found `{}` for `{}` and `{}`", vector.varname, first.key, vector.key);
                    let place = vector.span_of("varname").place();
                    let finding = rules::DUPLICATE_NAME.under(self.rules).at(place, message);
                    self.findings.push(finding.with(first.span_of("varname").place(), "first here"));
                }
                None => {
                    seen.insert(&vector.varname, vector);
                }
            }
        }
    }

    /// Takes nodes without predecessors away until none is left; what stays lies on a circle or behind one.
    fn circles(&mut self, document: &Document) {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut edges: Vec<(usize, usize)> = Vec::new();
        let mut number = |name| {
            let next = numbers.len();
            *numbers.entry(name).or_insert(next)
        };
        for sequence in &document.sequences {
            let own = number(&*sequence.name);
            edges.extend(sequence.outputs.iter().map(|m| (own, number(&*m.key))).collect::<Vec<_>>());
            edges.extend(sequence.inputs.iter().map(|m| (number(&*m.key), own)).collect::<Vec<_>>());
        }
        let count = numbers.len();
        let mut incoming = vec![0usize; count];
        let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (from, to) in edges {
            incoming[to] += 1;
            outgoing[from].push(to);
        }
        let mut free: Vec<usize> = (0..count).filter(|n| incoming[*n] == 0).collect();
        while let Some(node) = free.pop() {
            for to in &outgoing[node] {
                incoming[*to] -= 1;
                if incoming[*to] == 0 {
                    free.push(*to);
                }
            }
        }
        let stuck = document.sequences.iter().find(|s| numbers.get(&*s.name).is_some_and(|n| incoming[*n] > 0));
        if let Some(sequence) = stuck {
            let message = format!("expected sequences without a circle, found one through the sequence `{}`", sequence.name);
            self.at(&rules::CYCLE, sequence.span, message);
        }
    }
}
