//! What a file is, as every target tells it: the answer to `chipless info`.

use crate::element::ElementType;

/// A file at a glance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Info {
    /// Name of the target: `npu`, `neuron`, …
    pub target: &'static str,
    /// The hardware that the program is for, as its vendor names it.
    pub platform: String,
    /// Version of the file format.
    pub format_version: String,
    /// The program's own name for itself; empty where it has none.
    pub name: String,
    /// What the host gives.
    pub inputs: Vec<TensorInfo>,
    /// What the host gets.
    pub outputs: Vec<TensorInfo>,
    /// How many of what, in the order in which people read them.
    pub counts: Vec<(String, u64)>,
    /// What people read in place of the name of a count.
    pub labels: Vec<(&'static str, &'static str)>,
    /// Everything else worth a line: versions, sizes, the compiler's own estimates.
    pub facts: Vec<(String, Value)>,
}

/// A tensor of the interface.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorInfo {
    /// Name, as `--input NAME=FILE` takes it.
    pub name: String,
    /// Element type.
    pub element: ElementType,
    /// Element type as the target's files name it (`float8e3` of a NEFF), which is not always the array libraries' name.
    pub dtype: String,
    /// Dimensions, outermost first.
    pub shape: Vec<u64>,
    /// What else the file says of it: address, padding, scale.
    pub facts: Vec<(String, Value)>,
}

/// A value of a fact or of a raw structure.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A count, an index, a size.
    Integer(i128),
    /// Bits, an address: printed in hexadecimal.
    Bits(u64),
    /// A quantity.
    Number(f64),
}

/// The file's own structures as a tree: the answer to `chipless info --raw`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Name of the structure or field.
    pub name: String,
    /// Its value, for a leaf.
    pub value: Option<Value>,
    /// Byte offset in the file, where it has one.
    pub offset: Option<u64>,
    /// Parts.
    pub children: Vec<Node>,
}

impl From<u64> for Node {
    fn from(value: u64) -> Node {
        Node {
            value: Some(Value::Integer(value.into())),
            ..Node::default()
        }
    }
}

impl From<String> for Node {
    fn from(value: String) -> Node {
        Node {
            value: Some(Value::Text(value)),
            ..Node::default()
        }
    }
}

impl From<&str> for Node {
    fn from(value: &str) -> Node {
        Node::from(value.to_owned())
    }
}
