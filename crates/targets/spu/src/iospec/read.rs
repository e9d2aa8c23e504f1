//! From the tree of a text to the typed document.

use super::document::{
    Document, Member, Quantization, SECTIONS, Sequence, SequenceKind, Side, Vector,
};
use super::flat;
use super::rules::{self, Law};
use super::{RuleSet, lint};
use crate::yaml::{self, Budget, Node, Span, Value};
use chipless_model::{Finding, suggest};
use std::collections::HashMap;

impl Document {
    /// Reads a document under a rule set.
    ///
    /// # Errors
    /// Everything found, at least one of it an error: what cannot be read, or what the rule set refuses on reading.
    pub fn read(text: &str, rules: RuleSet) -> Result<Document, Vec<Finding>> {
        let tree = yaml::read(text, Budget::default()).map_err(|(span, message)| {
            vec![rules::SYNTAX.under(rules).at(span.place(), message)]
        })?;
        let comments = yaml::Comments::of(text, tree.root.as_ref());
        let root = tree.root.unwrap_or(Node {
            value: Value::Null,
            span: Span::default(),
        });
        let mut reader = Reader {
            rules,
            counted: false,
            findings: Vec::new(),
        };
        for (key, first, again) in tree.duplicates {
            let finding = rules::DUPLICATE_KEY.under(rules).at(
                again.place(),
                format!("expected each key once, found `{key}` again"),
            );
            reader
                .findings
                .push(finding.with(first.place(), "first here"));
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
        let mut document = Document {
            root,
            comments,
            inputs: Vec::new(),
            outputs: Vec::new(),
            sequences: Vec::new(),
            findings: Vec::new(),
        };
        reader.sections(&mut document);
        if reader.findings.iter().any(Finding::is_error) {
            return Err(reader.findings);
        }
        document.findings = reader.findings;
        Ok(document)
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

/// The key of an object that was meant to be this field: a slip of at most two letters, which is no other field.
fn misspelt(object: &Node, field: &str) -> Option<(Span, String)> {
    let Value::Map(entries) = &object.value else {
        return None;
    };
    let near = |name: &str| {
        let distance = strsim::osa_distance(&name.to_lowercase(), field);
        distance <= field.len().max(3) / 3 && distance < name.chars().count()
    };
    let is_field =
        |name: &str| lint::VECTOR_FIELDS.contains(&name) || lint::SEQUENCE_FIELDS.contains(&name);
    let mut names = entries.iter().map(|(key, _)| (key.span, key.label()));
    names.find(|(_, name)| near(name) && !is_field(name))
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
            // Nothing is asked and nothing promised; the package fails on it.
            Value::Null if document.root.span.line == 0 && self.rules == RuleSet::Spec => {
                return;
            }
            Value::Map(entries) => entries,
            other => {
                let message = format!(
                    "expected a mapping with the sections {}, found {}",
                    SECTIONS.join(", "),
                    other.kind()
                );
                return self.at(&rules::SECTION, document.root.span, message);
            }
        };
        let mut complex = Vec::new();
        for (key, section) in &entries {
            let name = key.value.text().unwrap_or_default();
            if !SECTIONS.contains(&name) {
                let label = key.label();
                let message = format!(
                    "expected one of the sections {}, found `{}`{}",
                    SECTIONS.join(", "),
                    yaml::shortened(&label),
                    suggest::hint(&label, SECTIONS)
                );
                self.at(&rules::SECTION, key.span, message);
                continue;
            }
            let Value::Map(objects) = &section.value else {
                let message = format!(
                    "expected a mapping in the section {name}, found {}",
                    section.describe()
                );
                self.at(&rules::SECTION, section.span, message);
                continue;
            };
            for (key, object) in objects {
                if key.value == Value::Null {
                    self.at(
                        &rules::FIELD_TYPE,
                        key.span,
                        format!(
                            "expected a name in the section {name}, found {}",
                            key.value.kind()
                        ),
                    );
                }
                match name {
                    "inputs" => document
                        .inputs
                        .extend(self.vector(key, object, Side::Input)),
                    "outputs" => document
                        .outputs
                        .extend(self.vector(key, object, Side::Output)),
                    "simple_sequences" => {
                        document
                            .sequences
                            .extend(self.sequence(key, object, SequenceKind::Simple));
                    }
                    _ => complex.extend(self.sequence(key, object, SequenceKind::Complex)),
                }
            }
        }
        document.sequences.extend(complex);
        self.duplicate_names(document);
        self.circles(document);
    }

    /// The field of an object that must have it.
    fn required<'n>(
        &mut self,
        object: &'n Node,
        key: &Node,
        what: &str,
        field: &str,
    ) -> Option<&'n Node> {
        let found = object.get(field);
        if found.is_none() {
            let mut message = format!(
                "expected the field {field} of the {what} `{}`, found none",
                yaml::shortened(&key.label())
            );
            let misspelt = misspelt(object, field);
            if let Some((_, name)) = &misspelt {
                message += &format!(" but `{name}`");
            }
            let law = rules::FIELD_MISSING.under(self.rules);
            let mut finding = law.at(key.span.place(), message);
            if let Some((span, name)) = misspelt {
                finding = finding
                    .with(span.place(), format!("`{name}` is no field"))
                    .hint(format!(
                        "Write `{field}` in the place of `{name}`; `chipless check --fix` does it."
                    ));
            }
            self.findings.push(finding);
        }
        found
    }

    fn wrong_type(&mut self, node: &Node, key: &Node, field: &str, wanted: &str) {
        let message = format!(
            "expected {wanted} as {field} of `{}`, found {}",
            yaml::shortened(&key.label()),
            node.describe()
        );
        self.at(&rules::FIELD_TYPE, node.span, message);
    }

    /// A value that the femtorun package does not look at.
    fn unchecked(&mut self, node: &Node, key: &Node, field: &str, wanted: &str) {
        let message = format!(
            "expected {wanted} as {field} of `{}`, found {}",
            yaml::shortened(&key.label()),
            node.describe()
        );
        self.at(&rules::FIELD_TYPE_UNCHECKED, node.span, message);
    }

    fn is_object(&mut self, key: &Node, object: &Node, what: &str) -> bool {
        let is_map = matches!(object.value, Value::Map(_));
        if !is_map {
            let message = format!(
                "expected the fields of the {what} `{}`, found {}",
                yaml::shortened(&key.label()),
                object.describe()
            );
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
                        let wanted = if field == "precision" {
                            "an integer from 1 on"
                        } else {
                            "an integer from 0 on"
                        };
                        self.unchecked(node, key, field, wanted);
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
        let varname = self
            .required(object, key, "vector", "varname")
            .and_then(|node| {
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
        let hint =
            ["latched", "latch"]
                .into_iter()
                .find_map(|name| match comments?.get(name)?.value {
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
        let node = object
            .get("quantization")
            .filter(|node| node.value != Value::Null)?;
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
        Some(Quantization {
            scale: scale?,
            zero_point: zero_point.unwrap_or(0.0),
        })
    }

    fn sequence(&mut self, key: &Node, object: &Node, kind: SequenceKind) -> Option<Sequence> {
        if !self.is_object(key, object, "sequence") {
            return None;
        }
        let wanted = if kind == SequenceKind::Simple {
            "simple_sequence"
        } else {
            "complex_sequence"
        };
        let stated = self.required(object, key, "sequence", "type");
        if let Some(stated) = stated.filter(|node| node.value.text() != Some(wanted)) {
            self.unchecked(stated, key, "type", wanted);
        }
        let inputs = self.required(object, key, "sequence", "inputs");
        let outputs = self.required(object, key, "sequence", "outputs");
        let inputs = self.members(inputs?, key, "inputs", kind);
        let outputs = self.members(outputs?, key, "outputs", kind);
        Some(Sequence {
            name: name_of(key),
            kind,
            inputs: inputs?,
            outputs: outputs?,
            span: key.span,
        })
    }

    fn members(
        &mut self,
        node: &Node,
        key: &Node,
        field: &str,
        kind: SequenceKind,
    ) -> Option<Vec<Member>> {
        match (kind, &node.value) {
            (SequenceKind::Simple, Value::List(items)) => items
                .iter()
                .map(|item| self.member(item, key, field))
                .collect(),
            // Python walks through the characters of a text and the keys of a mapping.
            (SequenceKind::Simple, Value::Text(text)) => {
                self.unchecked(node, key, field, "a list of names");
                Some(
                    text.chars()
                        .map(|c| Member {
                            key: c.to_string(),
                            count: 1.0,
                            span: node.span,
                        })
                        .collect(),
                )
            }
            (SequenceKind::Simple, Value::Map(entries)) => {
                self.unchecked(node, key, field, "a list of names");
                entries
                    .iter()
                    .map(|(item, _)| self.member(item, key, field))
                    .collect()
            }
            (SequenceKind::Simple, _) => {
                self.wrong_type(node, key, field, "a list of names");
                None
            }
            (SequenceKind::Complex, Value::Map(entries)) => entries
                .iter()
                .map(|(item, count)| self.counted(item, count, key, field))
                .collect(),
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
        Some(Member {
            key: text?,
            count: 1.0,
            span: item.span,
        })
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
                return Some(Member {
                    key: name_of(item),
                    count: f64::NEG_INFINITY,
                    span: item.span,
                });
            }
            self.wrong_type(count, key, field, "a count");
            return None;
        };
        self.counted |= number > 1.0;
        let sound = matches!(count.value, Value::Integer(1..=0xffff_ffff));
        if !sound {
            self.unchecked(count, key, field, "a count from 1 on");
        }
        Some(Member {
            key: name_of(item),
            count: number,
            span: item.span,
        })
    }

    fn duplicate_names(&mut self, document: &Document) {
        let outputs = document.output_index();
        let mut seen: HashMap<&str, &Vector> = HashMap::new();
        // An output takes the place of an input with the same key, so that one's name is free again.
        for vector in document
            .inputs
            .iter()
            .filter(|v| !outputs.contains_key(&*v.key))
            .chain(&document.outputs)
        {
            match seen.get(&*vector.varname) {
                Some(first) => {
                    let message = format!(
                        "expected each varname once, found `{}` for `{}` and `{}`",
                        vector.varname, first.key, vector.key
                    );
                    let place = vector.span_of("varname").place();
                    let finding = rules::DUPLICATE_NAME.under(self.rules).at(place, message);
                    self.findings
                        .push(finding.with(first.span_of("varname").place(), "first here"));
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
            edges.extend(
                sequence
                    .outputs
                    .iter()
                    .map(|m| (own, number(&*m.key)))
                    .collect::<Vec<_>>(),
            );
            edges.extend(
                sequence
                    .inputs
                    .iter()
                    .map(|m| (number(&*m.key), own))
                    .collect::<Vec<_>>(),
            );
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
        let stuck = || {
            document
                .sequences
                .iter()
                .filter(|s| numbers.get(&*s.name).is_some_and(|n| incoming[*n] > 0))
        };
        let vectors: HashMap<&str, &Vector> = document.vectors().map(|v| (&*v.key, v)).collect();
        // A name that means two things makes circles that nobody drew.
        if let Some((sequence, vector)) = stuck().find_map(|s| Some((s, *vectors.get(&*s.name)?))) {
            let side = vector.side.name();
            let message = format!(
                "expected a name of its own for the sequence, found `{}`, the {side}: the two form a circle",
                sequence.name
            );
            let finding = rules::CYCLE
                .under(self.rules)
                .at(sequence.span.place(), message);
            self.findings
                .push(finding.with(vector.span.place(), format!("the {side}")));
        } else if let Some(sequence) = stuck().next() {
            let message = format!(
                "expected sequences without a circle, found one through the sequence `{}`",
                sequence.name
            );
            self.at(&rules::CYCLE, sequence.span, message);
        }
    }
}
