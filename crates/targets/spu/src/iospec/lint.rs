//! What is doubtful in a document that could be read.

use super::document::{Document, SECTIONS, Sequence, SequenceKind, Side, Vector};
use super::rules::{self, Law};
use super::{RuleSet, document::Stage};
use crate::machine::Machine;
use crate::yaml::{self, Node, Span, Value};
use chipless_model::{Finding, suggest};
use std::collections::{HashMap, HashSet};

/// Fields of inputs and outputs, and of what quantises them; those that must be there come first.
pub(super) const VECTOR_FIELDS: [&str; 11] = [
    "type",
    "varname",
    "length",
    "precision",
    "padded_length",
    "comments",
    "quantization",
    "mailbox_id",
    "length_64b_words",
    "core_id",
    "pc",
];
const VECTOR_REQUIRED: usize = 5;
const QUANTIZATION_FIELDS: [&str; 2] = ["scale", "zero_pt"];
/// Fields of sequences, likewise.
pub(super) const SEQUENCE_FIELDS: [&str; 4] = ["type", "inputs", "outputs", "comments"];
const SEQUENCE_REQUIRED: usize = 3;
/// Elements of the compiler's unit of padding.
const PENCIL: i64 = 8;

/// Everything that was found in a document: on reading, and by the rules about names, sequences and addresses.
pub fn lint(document: &Document, rules: RuleSet) -> Vec<Finding> {
    let mut linter = Linter {
        document,
        rules,
        findings: document.findings.clone(),
        stage: document.stage(),
        unlatched: document.unlatched(),
    };
    linter.names();
    linter.sequences();
    for vector in document.vectors() {
        linter.lengths(vector);
        linter.address(vector);
        linter.hint(vector);
    }
    linter.fields();
    linter.clashes();
    linter.firmware();
    linter.findings.sort_by_key(|f| f.place.offset);
    linter.findings
}

struct Linter<'d> {
    document: &'d Document,
    rules: RuleSet,
    findings: Vec<Finding>,
    stage: Stage,
    unlatched: HashSet<&'d str>,
}

impl Linter<'_> {
    fn say(&mut self, law: &'static Law, span: Span, message: impl Into<String>) {
        self.findings
            .push(law.under(self.rules).at(span.place(), message));
    }

    fn say_two(&mut self, law: &'static Law, span: Span, first: Span, message: impl Into<String>) {
        self.findings.push(
            law.under(self.rules)
                .at(span.place(), message)
                .with(first.place(), "first here"),
        );
    }

    fn names(&mut self) {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        let vectors = self.document.vectors().map(|v| (&*v.key, v.span));
        for (name, span) in
            vectors.chain(self.document.sequences.iter().map(|s| (&*s.name, s.span)))
        {
            match seen.get(name) {
                Some(first) => self.say_two(
                    &rules::SAME_KEY,
                    span,
                    *first,
                    format!("expected each key once, found `{name}` again"),
                ),
                None => {
                    seen.insert(name, span);
                }
            }
        }
        for vector in self.document.vectors().filter(|v| v.key != v.varname) {
            let message = format!(
                "expected equal key and varname, found `{}` and `{}`",
                vector.key, vector.varname
            );
            self.say(&rules::KEY_VARNAME, vector.span_of("varname"), message);
        }
    }

    fn sequences(&mut self) {
        let document = self.document;
        let (inputs, outputs) = (document.input_index(), document.output_index());
        let names: HashMap<&str, &Sequence> =
            document.sequences.iter().map(|s| (&*s.name, s)).collect();
        let fed: HashSet<&str> = document
            .sequences
            .iter()
            .flat_map(|s| &s.outputs)
            .map(|m| &*m.key)
            .collect();
        let mut used: HashMap<&str, Span> = HashMap::new();
        let mut produced: HashMap<&str, Span> = HashMap::new();
        for sequence in &document.sequences {
            let mut own: HashMap<&str, Span> = HashMap::new();
            for member in &sequence.inputs {
                used.insert(&member.key, member.span);
                if outputs.contains_key(&*member.key) {
                    let message = format!(
                        "expected an input in `{}`, found the output `{}`",
                        sequence.name, member.key
                    );
                    self.say(&rules::OUTPUT_AS_INPUT, member.span, message);
                } else if !inputs.contains_key(&*member.key) && !names.contains_key(&*member.key) {
                    let is_listed =
                        |key: &str| sequence.inputs.iter().any(|other| other.key == key);
                    let names = document.inputs.iter().map(|input| &*input.key);
                    let names = names.filter(|name| !is_listed(name));
                    let message = format!(
                        "expected a defined input in `{}`, found `{}`; the sequence never fires{}",
                        sequence.name,
                        member.key,
                        suggest::hint(&member.key, names)
                    );
                    self.say(&rules::UNDEFINED_NAME, member.span, message);
                }
                if let Some(first) = own.insert(&member.key, member.span) {
                    let message = format!(
                        "expected each input of `{}` once, found `{}` again",
                        sequence.name, member.key
                    );
                    self.say_two(&rules::REPEATED_INPUT, member.span, first, message);
                }
            }
            for member in &sequence.outputs {
                if !outputs.contains_key(&*member.key) && !names.contains_key(&*member.key) {
                    let is_listed =
                        |key: &str| sequence.outputs.iter().any(|other| other.key == key);
                    let names = document.outputs.iter().map(|output| &*output.key);
                    let names = names.filter(|name| !is_listed(name));
                    let message = format!(
                        "expected a defined output in `{}`, found `{}`; it is never reported{}",
                        sequence.name,
                        member.key,
                        suggest::hint(&member.key, names)
                    );
                    self.say(&rules::UNDEFINED_NAME, member.span, message);
                }
                if let Some(first) = produced.insert(&member.key, member.span) {
                    let message = format!(
                        "expected each output in one sequence, found `{}` again in `{}`",
                        member.key, sequence.name
                    );
                    self.say_two(&rules::PRODUCED_TWICE, member.span, first, message);
                }
            }
            self.firing(sequence, fed.contains(&*sequence.name));
            self.order(sequence, &outputs);
        }
        for vector in document.vectors() {
            let known = if vector.side == Side::Input {
                &used
            } else {
                &produced
            };
            if !known.contains_key(&*vector.key) {
                self.say(
                    &rules::UNUSED,
                    vector.span,
                    format!(
                        "expected the {} `{}` in a sequence, found it in none",
                        vector.side.name(),
                        vector.key
                    ),
                );
            }
        }
    }

    /// Whether a sequence can fire, and on whole vectors; `fed`: another one gives to it.
    fn firing(&mut self, sequence: &Sequence, fed: bool) {
        if sequence.inputs.is_empty() && !fed {
            self.say(
                &rules::NEVER_FIRES,
                sequence.span,
                format!(
                    "expected inputs of `{}`, found none: it never fires",
                    sequence.name
                ),
            );
        }
        if let Some(odd) = sequence
            .inputs
            .iter()
            .find(|m| m.count < 1.0 || m.count.fract() != 0.0)
        {
            let message = format!(
                "expected a whole number of `{}` for a firing of `{}`, found {}",
                odd.key, sequence.name, odd.count
            );
            self.say(&rules::NEVER_FIRES, odd.span, message);
        }
    }

    /// Whether a sequence gives its outputs in the order of their section.
    fn order(&mut self, sequence: &Sequence, outputs: &HashMap<&str, usize>) {
        let order: Vec<usize> = sequence
            .outputs
            .iter()
            .filter_map(|m| outputs.get(&*m.key).copied())
            .collect();
        if order.windows(2).any(|pair| pair[0] > pair[1]) {
            let wanted: Vec<&str> = self
                .document
                .outputs
                .iter()
                .map(|v| &*v.key)
                .filter(|k| sequence.outputs.iter().any(|m| m.key == *k))
                .collect();
            let found: Vec<&str> = sequence.outputs.iter().map(|m| &*m.key).collect();
            let span = sequence.outputs.first().map_or(sequence.span, |m| m.span);
            let message = format!(
                "expected outputs of `{}` in the order of the section ({}), found {}",
                sequence.name,
                wanted.join(", "),
                found.join(", ")
            );
            self.say(&rules::OUTPUT_ORDER, span, message);
        }
    }

    /// Fields that the format does not know.
    fn fields(&mut self) {
        for section in SECTIONS {
            let of_vectors = !section.ends_with("sequences");
            let (known, required): (&[&str], usize) = if of_vectors {
                (&VECTOR_FIELDS, VECTOR_REQUIRED)
            } else {
                (&SEQUENCE_FIELDS, SEQUENCE_REQUIRED)
            };
            let Some(Value::Map(objects)) = self.document.root.get(section).map(|node| &node.value)
            else {
                continue;
            };
            for (name, object) in objects {
                self.unknown(name, object, known, required);
                if let Some(quantization) = object.get("quantization").filter(|_| of_vectors) {
                    self.unknown(name, quantization, &QUANTIZATION_FIELDS, 0);
                }
            }
        }
    }

    fn unknown(&mut self, name: &Node, object: &Node, known: &[&str], required: usize) {
        let Value::Map(fields) = &object.value else {
            return;
        };
        for (key, _) in fields
            .iter()
            .filter(|(key, _)| !key.value.text().is_some_and(|text| known.contains(&text)))
        {
            let (found, owner) = (key.label(), name.label());
            let message = format!(
                "expected fields that the format knows, found `{}` in `{}`",
                yaml::shortened(&found),
                yaml::shortened(&owner)
            );
            // One that must be there is missed where it is looked for.
            let optional = known.iter().skip(required).copied();
            let lacking = optional.filter(|known| object.get(known).is_none());
            match suggest::closest(&found, lacking) {
                Some(meant) => {
                    let message = format!("{message}; did you mean \"{meant}\"?");
                    self.say(&rules::FIELD_MISSPELT, key.span, message);
                }
                None => self.say(&rules::FIELD_UNKNOWN, key.span, message),
            }
        }
    }

    fn lengths(&mut self, vector: &Vector) {
        let name = &vector.key;
        if vector.length == 0 {
            self.say(
                &rules::EMPTY,
                vector.span_of("length"),
                format!("expected a length of at least 1 for `{name}`, found 0"),
            );
        }
        if !(matches!(vector.precision, 8 | 16)
            || vector.precision == 24 && self.stage == Stage::User)
        {
            let message = format!(
                "expected a precision of 8 or 16 bits for `{name}`, found {}",
                vector.precision
            );
            self.say(&rules::PRECISION, vector.span_of("precision"), message);
        }
        let Some(padded) = vector.padded_length else {
            return;
        };
        if padded < vector.length {
            let message = format!(
                "expected a padded length of at least {} for `{name}`, found {padded}",
                vector.length
            );
            self.say(&rules::PADDING, vector.span_of("padded_length"), message);
        } else if padded % PENCIL != 0 {
            let message = format!(
                "expected a padded length in multiples of {PENCIL} for `{name}`, found {padded}"
            );
            self.say(&rules::PADDING, vector.span_of("padded_length"), message);
        }
        let bits = padded
            .checked_mul(vector.precision)
            .filter(|bits| *bits >= 0);
        let words = bits.map(|bits| bits / 64 + i64::from(bits % 64 != 0));
        if let (Some(stated), Some(words)) = (vector.words, words)
            && stated != words
        {
            let message = format!(
                "expected {words} words of 64 bits for {padded} elements of {} bits in `{name}`, found {stated}",
                vector.precision
            );
            self.say(&rules::WORDS, vector.span_of("length_64b_words"), message);
        }
    }

    fn address(&mut self, vector: &Vector) {
        let name = &vector.key;
        let cores = i64::from(Machine::largest(|machine| machine.core.count));
        if let Some(core) = vector.core_id.filter(|core| !(0..cores).contains(core)) {
            self.say(
                &rules::CORE_RANGE,
                vector.span_of("core_id"),
                format!(
                    "expected core 0 to {} for `{name}`, found {core}",
                    cores - 1
                ),
            );
        }
        let words = i64::from(Machine::largest(|machine| machine.core.program_words));
        if let Some(pc) = vector.pc.filter(|pc| !(0..words).contains(pc)) {
            self.say(
                &rules::PC_RANGE,
                vector.span_of("pc"),
                format!(
                    "expected a counter of 0 to {} for `{name}`, found {pc}",
                    words - 1
                ),
            );
        }
        let (wrong, right) = match vector.side {
            Side::Input => (vector.mailbox_id.map(|_| "mailbox_id"), "core_id and pc"),
            Side::Output => (vector.pc.map(|_| "pc"), "mailbox_id"),
        };
        if let Some(field) = wrong {
            self.say(
                &rules::WRONG_SIDE,
                vector.span_of(field),
                format!(
                    "expected {right} for the {} `{name}`, found {field}",
                    vector.side.name()
                ),
            );
        }
        if self.stage == Stage::Mixed {
            let missing = vector.missing_address();
            if !missing.is_empty() {
                let message = format!(
                    "expected {} for the {} `{name}`, found none",
                    missing.join(", "),
                    vector.side.name()
                );
                self.say(&rules::ADDRESS_MISSING, vector.span, message);
            }
        }
        if let Some(q) = vector.quantization {
            let power_of_two =
                q.scale > 0.0 && q.scale.is_normal() && q.scale.to_bits().trailing_zeros() >= 52;
            if !power_of_two {
                let message = format!(
                    "expected a power of two as scale of `{name}`, found {}",
                    q.scale
                );
                self.say(&rules::SCALE, vector.span_of("quantization"), message);
            } else if q.zero_point != 0.0 {
                let message = format!(
                    "expected the zero point 0 for `{name}`, found {}",
                    q.zero_point
                );
                self.say(&rules::SCALE, vector.span_of("quantization"), message);
            }
        }
    }

    /// Whether nothing has a name that a sequence takes.
    fn is_unknown(&self, name: &str) -> bool {
        let sequences = self.document.sequences.iter();
        let names = self.document.vectors().map(|vector| &*vector.key);
        let mut names = names.chain(sequences.map(|sequence| &*sequence.name));
        names.all(|known| known != name)
    }

    fn hint(&mut self, vector: &Vector) {
        let comments = vector.fields.get("comments");
        for key in ["latched", "latch"] {
            if let Some(odd) = comments
                .and_then(|c| c.get(key))
                .filter(|node| !matches!(node.value, Value::Bool(_)))
            {
                let message = format!(
                    "expected true or false as the hint {key} of `{}`, found {}",
                    vector.key,
                    odd.describe()
                );
                self.say(&rules::HINT, odd.span, message);
            }
        }
        let Some((key, hinted)) = vector.hint else {
            return;
        };
        let span = vector
            .fields
            .get("comments")
            .and_then(|c| c.get(key))
            .map_or(vector.span, |node| node.span);
        let name = &*vector.key;
        let latched = vector.side == Side::Input && !self.unlatched.contains(name);
        let members = self.document.sequences.iter();
        let mut members = members.flat_map(|sequence| &sequence.inputs);
        let is_taken = members.clone().any(|member| member.key == name);
        // Where a sequence names what there is not, it may mean this one.
        let is_meant = !is_taken && members.any(|member| self.is_unknown(&member.key));
        if hinted != latched && !is_meant {
            let (says, help) = if latched {
                ("no sequence with outputs takes it", None)
            } else {
                let help = format!(
                    "To latch `{name}`, take it out of that sequence, and let another with `outputs: []` take it. Otherwise write latch: false."
                );
                (
                    "a sequence with outputs takes it",
                    Some(help).filter(|_| vector.side == Side::Input),
                )
            };
            let message =
                format!("expected latch: {latched} for `{name}` ({says}), found {key}: {hinted}");
            let mut finding = rules::HINT.under(self.rules).at(span.place(), message);
            if let Some(help) = help {
                finding = finding.hint(help);
            }
            self.findings.push(finding);
        }
        if key == "latched" && hinted {
            self.say(
                &rules::HINT_KEY,
                span,
                format!(
                    "expected the hint latch, as tools read it, found latched on `{}`",
                    vector.key
                ),
            );
        }
    }

    fn clashes(&mut self) {
        let mut starts: HashMap<(i64, i64), &Vector> = HashMap::new();
        for vector in &self.document.inputs {
            let Some(address) = vector.core_id.zip(vector.pc) else {
                continue;
            };
            if let Some(first) = starts.insert(address, vector) {
                let (core, pc) = address;
                let message = format!(
                    "expected different addresses, found core {core}, pc {pc} for `{}` and `{}`",
                    first.key, vector.key
                );
                self.say_two(
                    &rules::PC_CLASH,
                    vector.span_of("pc"),
                    first.span_of("pc"),
                    message,
                );
            }
        }
        let mut boxes: HashMap<i64, &Vector> = HashMap::new();
        for vector in &self.document.outputs {
            let Some(mailbox) = vector.mailbox_id else {
                continue;
            };
            if let Some(first) = boxes.insert(mailbox, vector) {
                let message = format!(
                    "expected different mailboxes, found {mailbox} for `{}` and `{}`",
                    first.key, vector.key
                );
                self.say_two(
                    &rules::MAILBOX_CLASH,
                    vector.span_of("mailbox_id"),
                    first.span_of("mailbox_id"),
                    message,
                );
            }
        }
    }

    /// What the firmware of today does not do.
    fn firmware(&mut self) {
        let document = self.document;
        let with_outputs: Vec<&Sequence> = document
            .sequences
            .iter()
            .filter(|s| !s.is_latched())
            .collect();
        if let [first, second, ..] = with_outputs[..] {
            let message = format!(
                "expected one sequence with outputs for the firmware, found {} (`{}`, `{}`)",
                with_outputs.len(),
                first.name,
                second.name
            );
            self.say_two(&rules::FIRMWARE_MULTIPLE, second.span, first.span, message);
        }
        for sequence in document
            .sequences
            .iter()
            .filter(|s| s.kind == SequenceKind::Complex)
        {
            self.say(
                &rules::FIRMWARE_COMPLEX,
                sequence.span,
                format!(
                    "expected simple sequences for the firmware, found the complex `{}`",
                    sequence.name
                ),
            );
        }
        let references: usize = document
            .simple_sequences()
            .map(|s| s.inputs.len() + s.outputs.len())
            .sum();
        if references > 255 {
            self.say(
                &rules::FEMTOFILE,
                document.root.span,
                format!("expected at most 255 vectors in a .femto file, found {references}"),
            );
        }
        if let Some(vector) = document
            .vectors()
            .find(|v| v.length.max(v.padded_length.unwrap_or(0)) > 65_535)
        {
            let message = format!(
                "expected at most 65535 elements in a .femto file, found {} in `{}`",
                vector.length, vector.key
            );
            self.say(&rules::FEMTOFILE, vector.span_of("length"), message);
        }
    }
}
