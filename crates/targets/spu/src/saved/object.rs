//! What a pickle makes: objects by number.

use super::array::{Array, Type};

/// A value on the stack, in a container or in a field. Text stays in the pickle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'p> {
    None,
    Bool(bool),
    Integer(i64),
    Real(f64),
    Text(&'p str),
    /// An object by its number.
    Object(usize),
}

/// What a class or function is to the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// `GraphProto`.
    Graph,
    /// `NodeProto`.
    Node,
    /// `TensorProto`.
    Tensor,
    /// A class of operations.
    Operation,
    /// The table of a `lut`.
    Table,
    /// For printing and counting: its objects are skipped.
    Skipped,
    /// `set`: skipped as well.
    Set,
    /// `numpy.ndarray`, an argument of `Reconstruct` alone.
    Array,
    /// `numpy.dtype`.
    Type,
    /// `numpy`'s `_reconstruct`.
    Reconstruct,
    /// `numpy`'s `scalar`.
    Scalar,
    /// `_codecs.encode`.
    Encode,
}

/// An object.
#[derive(Debug)]
pub(crate) enum Object<'p> {
    List(Vec<Value<'p>>),
    Tuple(Vec<Value<'p>>),
    Dict(Vec<(Value<'p>, Value<'p>)>),
    Class(Class),
    /// Of a class, with the dictionary of its fields, and where the pickle makes it.
    Instance(Class, Option<usize>, usize),
    /// Bytes as text: each character is one.
    Bytes(&'p str),
    Type(Type),
    Array(Array<'p>),
    /// Made by a class that is skipped.
    Skipped,
}

/// All objects of a pickle, and the one that it is about.
#[derive(Debug)]
pub(crate) struct Objects<'p> {
    pub(crate) all: Vec<Object<'p>>,
    pub(crate) root: Value<'p>,
}

impl<'p> Objects<'p> {
    /// The object that a value refers to.
    pub(crate) fn object(&self, value: Value<'p>) -> Option<&Object<'p>> {
        match value {
            Value::Object(number) => self.all.get(number),
            _ => None,
        }
    }

    /// The elements of a list or tuple.
    pub(crate) fn items(&self, value: Value<'p>) -> Option<&[Value<'p>]> {
        match self.object(value)? {
            Object::List(items) | Object::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// The entries of a dictionary.
    pub(crate) fn entries(&self, value: Value<'p>) -> Option<&[(Value<'p>, Value<'p>)]> {
        match self.object(value)? {
            Object::Dict(entries) => Some(entries),
            _ => None,
        }
    }

    /// The fields of an object of a class.
    pub(crate) fn instance(&self, value: Value<'p>, class: Class) -> Option<Fields<'_, 'p>> {
        match self.object(value)? {
            Object::Instance(of, fields, offset) if *of == class => {
                let entries = fields.and_then(|fields| self.entries(Value::Object(fields)));
                Some(Fields {
                    entries: entries.unwrap_or_default(),
                    offset: *offset,
                })
            }
            _ => None,
        }
    }

    /// What a value is, for messages.
    pub(crate) fn kind(&self, value: Value<'p>) -> &'static str {
        match value {
            Value::None => "None",
            Value::Bool(_) => "a boolean",
            Value::Integer(_) => "an integer",
            Value::Real(_) => "a real number",
            Value::Text(_) => "text",
            Value::Object(_) => match self.object(value) {
                Some(Object::List(_)) => "a list",
                Some(Object::Tuple(_)) => "a tuple",
                Some(Object::Dict(_)) => "a dictionary",
                Some(Object::Class(_)) => "a class",
                Some(Object::Instance(class, ..)) => class.title(),
                Some(Object::Bytes(_)) => "bytes",
                Some(Object::Type(_)) => "a type of elements",
                Some(Object::Array(_)) => "an array",
                Some(Object::Skipped) | None => "an object",
            },
        }
    }
}

impl Class {
    const fn title(self) -> &'static str {
        match self {
            Class::Graph => "a graph",
            Class::Node => "a node",
            Class::Tensor => "a tensor",
            Class::Operation => "an operation",
            Class::Table => "a table",
            _ => "an object",
        }
    }
}

/// The fields of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'o, 'p> {
    entries: &'o [(Value<'p>, Value<'p>)],
    /// Where the pickle makes the object.
    pub(crate) offset: usize,
}

impl<'p> Fields<'_, 'p> {
    /// A field; the last one of that name counts. One that is not there is None, as older releases have fewer.
    pub(crate) fn get(&self, name: &str) -> Value<'p> {
        let found = self
            .entries
            .iter()
            .rev()
            .find(|(key, _)| *key == Value::Text(name));
        found.map_or(Value::None, |(_, value)| *value)
    }
}
