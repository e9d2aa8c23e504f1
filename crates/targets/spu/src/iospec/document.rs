//! The typed document: vectors and sequences, over the tree that they were read from.

use crate::yaml::{self, Node, Span};
use chipless_model::{ElementType, Finding, Port};
use std::collections::{HashMap, HashSet};

/// Sections of a document.
pub(super) const SECTIONS: [&str; 4] =
    ["inputs", "outputs", "simple_sequences", "complex_sequences"];

/// An IOSpec.
#[derive(Clone, Debug)]
pub struct Document {
    /// The tree, with everything that the types below do not know. `Null` for an empty text.
    pub root: Node,
    /// Remarks of the text.
    pub comments: yaml::Comments,
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

/// The comment of an output of which the data decide how many elements come.
pub(super) const VARIES: &str = "length_depends_on_data";

impl Vector {
    /// Its shape: that of its comments where it has as many elements, or else its length; `None` where that is no length.
    pub fn shape(&self) -> Option<Vec<u64>> {
        let length = u64::try_from(self.length).ok()?;
        let said = self.fields.get("comments").and_then(|comments| {
            let yaml::Value::List(extents) = &comments.get("shape")?.value else {
                return None;
            };
            let extents = extents.iter().map(|extent| match extent.value {
                yaml::Value::Integer(n) => u64::try_from(n).ok(),
                _ => None,
            });
            extents.collect::<Option<Vec<u64>>>()
        });
        let count = |shape: &Vec<u64>| shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
        let fitting = said.filter(|shape| count(shape) == Some(length));
        Some(fitting.unwrap_or_else(|| vec![length]))
    }

    /// Whether its length is that of one run, and the data decide it.
    pub fn varies(&self) -> bool {
        let comments = self.fields.get("comments");
        let said = comments.and_then(|comments| comments.get(VARIES));
        said.is_some_and(|said| matches!(said.value, yaml::Value::Bool(true)))
    }

    /// Which of a program's inputs or outputs it is, by its variable or else its key.
    ///
    /// # Errors
    /// None of them has either name.
    pub fn among(&self, ports: &[Port]) -> Result<usize, String> {
        let by = |name: &str| ports.iter().position(|p| p.name == name);
        by(&self.varname).or_else(|| by(&self.key)).ok_or_else(|| {
            let names: Vec<&str> = ports.iter().map(|p| &*p.name).collect();
            format!(
                "expected an {} of the program ({}), found `{}`",
                self.side.name(),
                names.join(", "),
                self.varname
            )
        })
    }
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
        let bits = u32::try_from(self.precision)
            .ok()
            .filter(|bits| (1..=63).contains(bits))?;
        Some(-(1 << (bits - 1))..=(1 << (bits - 1)) - 1)
    }

    /// Fields that the driver needs and that are missing.
    pub fn missing_address(&self) -> Vec<&'static str> {
        let fields: &[(&'static str, Option<i64>)] = match self.side {
            Side::Input => &[
                ("core_id", self.core_id),
                ("pc", self.pc),
                ("length_64b_words", self.words),
                ("padded_length", self.padded_length),
            ],
            Side::Output => &[
                ("mailbox_id", self.mailbox_id),
                ("length_64b_words", self.words),
                ("padded_length", self.padded_length),
            ],
        };
        fields
            .iter()
            .filter(|(_, value)| value.is_none())
            .map(|(name, _)| *name)
            .collect()
    }
}

impl Document {
    /// The document as text that reads the same: every field, anchors expanded, remarks where they stood.
    pub fn write(&self) -> String {
        yaml::write_with(&self.root, self.comments.clone())
    }

    /// Inputs and outputs.
    pub fn vectors(&self) -> impl Iterator<Item = &Vector> {
        self.inputs.iter().chain(&self.outputs)
    }

    /// The sequences that the firmware library knows, in the order of their ids.
    pub fn simple_sequences(&self) -> impl Iterator<Item = &Sequence> {
        self.sequences
            .iter()
            .filter(|s| s.kind == SequenceKind::Simple)
    }

    /// Whether an input is in no sequence that has outputs: it keeps its value.
    pub fn is_latched(&self, key: &str) -> bool {
        !self
            .sequences
            .iter()
            .any(|s| !s.is_latched() && s.inputs.iter().any(|m| m.key == key))
    }

    /// Keys of the inputs that are not latched.
    pub(super) fn unlatched(&self) -> HashSet<&str> {
        self.sequences
            .iter()
            .filter(|s| !s.is_latched())
            .flat_map(|s| &s.inputs)
            .map(|m| &*m.key)
            .collect()
    }

    /// Keys to positions of inputs.
    pub(super) fn input_index(&self) -> HashMap<&str, usize> {
        self.inputs
            .iter()
            .enumerate()
            .map(|(i, v)| (&*v.key, i))
            .collect()
    }

    /// Keys to positions of outputs.
    pub(super) fn output_index(&self) -> HashMap<&str, usize> {
        self.outputs
            .iter()
            .enumerate()
            .map(|(i, v)| (&*v.key, i))
            .collect()
    }

    /// Before or after compilation.
    pub fn stage(&self) -> Stage {
        let missing = |v: &Vector| v.missing_address();
        if self.vectors().all(|v| missing(v).is_empty()) {
            Stage::Compiled
        } else if self.vectors().all(|v| {
            [v.core_id, v.pc, v.mailbox_id, v.words]
                .iter()
                .all(Option::is_none)
        }) {
            Stage::User
        } else {
            Stage::Mixed
        }
    }
}
