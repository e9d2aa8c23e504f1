//! The plan format: typed, with JSON pointers in every error.

use super::rules;
use chipless_model::{Finding, Limits, Place, Rule};
use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// What stops reading or lowering, boxed because results are moved around a lot.
pub(crate) type Error = Box<Finding>;

/// A plan and the text that it was read from.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The whole text; empty for a `.pt` file.
    pub text: &'a str,
    /// What kind of file it was.
    pub origin: Origin,
    /// The outermost graph.
    pub main: Graph,
    /// What is doubtful: no error.
    pub findings: Vec<Finding>,
}

/// Kinds of file that a plan comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The runtime plan, JSON.
    Json,
    /// A graph saved by torch, `.pt`.
    Saved,
}

/// A graph: nodes in the order of execution.
#[derive(Debug, Default)]
pub struct Graph {
    /// Its name.
    pub name: String,
    /// What it takes.
    pub inputs: Vec<Tensor>,
    /// What it gives.
    pub outputs: Vec<Tensor>,
    /// Constants with their values.
    pub parameters: Vec<Tensor>,
    /// What it does.
    pub nodes: Vec<Node>,
    /// Graphs that nodes call.
    pub subgraphs: IndexMap<String, Graph>,
    /// What the file says of the tensors at its nodes. A plan as the vendor writes it says nothing of those in between.
    pub tensors: IndexMap<String, Declared>,
    /// JSON pointer of it.
    pub pointer: String,
}

/// What a graph says of a tensor.
#[derive(Clone, Debug, Deserialize)]
pub struct Declared {
    /// As of [`Tensor::dtype`].
    #[serde(default, deserialize_with = "type_name")]
    pub dtype: String,
    /// As of [`Tensor::shape`].
    #[serde(default)]
    pub shape: Vec<u64>,
    /// As of [`Tensor::quanta`].
    #[serde(default)]
    pub quanta: Option<f64>,
}

/// A tensor as a graph declares it.
#[derive(Debug, Deserialize)]
pub struct Tensor {
    /// Its name, unique over all graphs.
    pub name: String,
    /// `fqint8`, `int16`, `float`, …
    #[serde(default, deserialize_with = "type_name")]
    pub dtype: String,
    /// Dimensions, outermost first.
    pub shape: Vec<u64>,
    /// Scale = 2^quanta.
    #[serde(default)]
    pub quanta: Option<f64>,
    /// Its value, for parameters.
    #[serde(default, deserialize_with = "shared")]
    pub value: Option<Arc<Array>>,
}

/// An array of numbers.
#[derive(Debug)]
pub struct Array {
    /// Dimensions of the nested lists.
    pub shape: Vec<u64>,
    /// Elements, row-major.
    pub numbers: Numbers,
}

/// Elements of an array.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// Integers.
    Integers(Vec<i64>),
    /// With at least one that is none.
    Reals(Vec<f64>),
}

/// A node.
#[derive(Debug, Default, Deserialize)]
pub struct Node {
    /// Its name; several may have one.
    #[serde(default)]
    pub name: String,
    /// Operation; `None` for a call of a subgraph.
    #[serde(default)]
    pub op_name: Option<String>,
    /// Ports and the tensors at them.
    #[serde(default, deserialize_with = "distinct")]
    pub inputs: IndexMap<String, String>,
    /// Tensors that it defines.
    #[serde(default)]
    pub outputs: Vec<String>,
    /// What it is configured by.
    #[serde(default, deserialize_with = "distinct")]
    pub constants: IndexMap<String, serde_json::Value>,
    /// The graph that it calls.
    #[serde(default)]
    pub subgraph: Option<String>,
    /// The graphs that it chooses from: `true` and `false` of a `conditional`.
    #[serde(default, deserialize_with = "distinct")]
    pub subgraphs: IndexMap<String, String>,
    /// JSON pointer of it.
    #[serde(skip)]
    pub pointer: String,
    /// Where it stands: offset and bytes.
    #[serde(skip)]
    pub at: (u64, u32),
}

impl Node {
    /// Its place.
    pub fn place(&self) -> Place {
        Place::bytes(self.at.0, self.at.1.into())
            .in_part(self.pointer.clone())
            .at(self.name.clone())
    }
}

/// A graph whose nodes and subgraphs are still text.
#[derive(Deserialize)]
struct RawGraph<'a> {
    #[serde(default)]
    name: String,
    #[serde(default)]
    inputs: Vec<Tensor>,
    #[serde(default)]
    outputs: Vec<Tensor>,
    #[serde(default)]
    parameters: Vec<Tensor>,
    #[serde(borrow)]
    nodes: Vec<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "distinct")]
    subgraphs: IndexMap<String, &'a RawValue>,
    #[serde(default, deserialize_with = "distinct")]
    tensors: IndexMap<String, Declared>,
    #[serde(default)]
    version: Option<u64>,
}

/// An object in the order of the file. Keys must differ.
fn distinct<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    deserializer: D,
) -> Result<IndexMap<String, V>, D::Error> {
    struct Distinct<V>(std::marker::PhantomData<V>);
    impl<'de, V: Deserialize<'de>> Visitor<'de> for Distinct<V> {
        type Value = IndexMap<String, V>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> Result<IndexMap<String, V>, A::Error> {
            let mut members = IndexMap::new();
            while let Some((key, value)) = map.next_entry::<String, V>()? {
                if members.contains_key(&key) {
                    return Err(de::Error::custom(format_args!(
                        "the key `{key}` stands twice"
                    )));
                }
                members.insert(key, value);
            }
            Ok(members)
        }
    }
    deserializer.deserialize_map(Distinct(std::marker::PhantomData))
}

/// Subgraphs within subgraphs, at most.
pub(crate) const DEEPEST: usize = 32;

impl<'a> Plan<'a> {
    /// Reads a plan.
    ///
    /// # Errors
    /// What is wrong and where, as JSON pointer, with line and column for what is wrong with the JSON itself.
    pub fn read(bytes: &'a [u8], limits: &Limits) -> Result<Plan<'a>, Error> {
        if bytes.len() as u64 > limits.json_bytes {
            let message = format!(
                "{} bytes of JSON exceed the limit json_bytes = {}",
                bytes.len(),
                limits.json_bytes
            );
            return Err(Box::new(rules::LIMIT.at(Place::file(), message)));
        }
        let text = std::str::from_utf8(bytes).map_err(|e| {
            Box::new(rules::JSON.at(
                Place::bytes(e.valid_up_to() as u64, 1),
                "expected UTF-8 text, found other bytes",
            ))
        })?;
        let mut reader = Reader {
            text,
            findings: Vec::new(),
        };
        let main = reader.graph(text, String::new(), 0)?;
        let mut plan = Plan {
            text,
            origin: Origin::Json,
            main,
            findings: reader.findings,
        };
        plan.look();
        Ok(plan)
    }

    /// Says what is doubtful in the graphs.
    pub(crate) fn look(&mut self) {
        let mut findings = Vec::new();
        produced_twice(&self.main, &mut findings);
        let step = self.step().0;
        if step.outputs.is_empty() {
            let message = "expected outputs of a step, found none: nothing comes out";
            let place = Place::file().in_part(format!("{}/outputs", step.pointer));
            findings.push(rules::NO_OUTPUTS.at(place, message));
        }
        self.findings.extend(findings);
    }

    /// The graph of one time step, and the one that makes the state: `ARITH` and `INIT`, or the plan itself.
    pub fn step(&self) -> (&Graph, Option<&Graph>) {
        match self.main.subgraphs.get("ARITH") {
            Some(step) => (step, self.main.subgraphs.get("INIT")),
            None => (&self.main, None),
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    findings: Vec<Finding>,
}

impl<'a> Reader<'a> {
    fn offset(&self, part: &str) -> u64 {
        (part.as_ptr() as u64).saturating_sub(self.text.as_ptr() as u64)
    }

    fn parse<T: Deserialize<'a>>(&self, part: &'a str, pointer: &str) -> Result<T, Error> {
        let mut deserializer = serde_json::Deserializer::from_str(part);
        let quick =
            T::deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
        quick.map_err(|error| {
            // Slower, and knows where: only after a failure.
            let mut again = serde_json::Deserializer::from_str(part);
            let found = serde_path_to_error::deserialize::<_, T>(&mut again);
            let (inner, error) = match found {
                Err(located) => (pointer_of(located.path()), located.into_inner()),
                Ok(_) => (String::new(), error),
            };
            self.error(part, &format!("{pointer}{inner}"), &error)
        })
    }

    /// The message of an error, with line and column in the whole text.
    fn error(&self, part: &str, pointer: &str, error: &serde_json::Error) -> Error {
        let start = self.offset(part);
        let within = offset_of(part, error.line(), error.column());
        let offset = start + within as u64;
        let before = &self.text.as_bytes()[..(offset as usize).min(self.text.len())];
        let line = before.split(|b| *b == b'\n').count();
        let column = before.len()
            - before
                .iter()
                .rposition(|b| *b == b'\n')
                .map_or(0, |at| at + 1)
            + 1;
        let said = error.to_string();
        let said = said
            .rsplit_once(" at line ")
            .map_or(&*said, |(said, _)| said);
        let place = Place::bytes(offset.saturating_sub(u64::from(offset > 0)), 1)
            .in_part(pointer.to_owned());
        let place = Place {
            position: Some((line as u32, column as u32)),
            ..place
        };
        Box::new(rules::JSON.at(place, format!("expected a plan: {said}")))
    }

    fn graph(&mut self, part: &'a str, pointer: String, depth: usize) -> Result<Graph, Error> {
        if depth > DEEPEST {
            let message = format!("expected subgraphs at most {DEEPEST} deep, found deeper ones");
            return Err(Box::new(
                rules::LIMIT.at(Place::bytes(self.offset(part), 1).in_part(pointer), message),
            ));
        }
        let raw: RawGraph<'a> = self.parse(part, &pointer)?;
        match raw.version {
            Some(1) => {}
            Some(other) => {
                let place = Place::file().in_part(format!("{pointer}/version"));
                return Err(Box::new(
                    rules::VERSION.at(place, format!("expected version 1, found {other}")),
                ));
            }
            None if depth == 0 => {
                let place = Place::bytes(self.offset(part), 1);
                self.findings.push(rules::NO_VERSION.at(
                    place,
                    "expected the version of the plan, 1, found none: it is taken for 1",
                ));
            }
            None => {}
        }
        let mut graph = Graph {
            name: raw.name,
            inputs: raw.inputs,
            outputs: raw.outputs,
            parameters: raw.parameters,
            tensors: raw.tensors,
            ..Graph::default()
        };
        for (index, node) in raw.nodes.into_iter().enumerate() {
            let pointer = format!("{pointer}/nodes/{index}");
            let mut parsed: Node = self.parse(node.get(), &pointer)?;
            parsed.pointer = pointer;
            parsed.at = (
                self.offset(node.get()),
                u32::try_from(node.get().len()).unwrap_or(u32::MAX),
            );
            graph.nodes.push(parsed);
        }
        for (name, part) in raw.subgraphs {
            let inner = self.graph(
                part.get(),
                format!("{pointer}/subgraphs/{}", escaped(&name)),
                depth + 1,
            )?;
            graph.subgraphs.insert(name, inner);
        }
        graph.pointer = pointer;
        Ok(graph)
    }
}

/// Tensors that two nodes of one graph give.
fn produced_twice(graph: &Graph, findings: &mut Vec<Finding>) {
    let mut made: HashMap<&str, &Node> = HashMap::new();
    for node in &graph.nodes {
        for name in &node.outputs {
            if let Some(first) = made.insert(name, node) {
                let message = format!("expected one node that gives `{name}`, found another");
                let finding = rules::TWICE.at(node.place(), message);
                findings.push(finding.with(first.place(), "the first one"));
            }
        }
    }
    graph
        .subgraphs
        .values()
        .for_each(|inner| produced_twice(inner, findings));
}

/// Byte offset of a line and column that the parser counts from 1 and in bytes.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    (start + column).min(text.len())
}

pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn pointer_of(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .fold(String::new(), |pointer, segment| match segment {
            Segment::Seq { index } => format!("{pointer}/{index}"),
            Segment::Map { key } => format!("{pointer}/{}", escaped(key)),
            Segment::Enum { variant } => format!("{pointer}/{}", escaped(variant)),
            Segment::Unknown => pointer,
        })
}

/// An error at a node.
pub(crate) fn at_node(rule: &'static Rule, node: &Node, message: impl Into<String>) -> Error {
    let mut place = node.place();
    place.item = match &node.op_name {
        Some(operation) => format!("{operation} `{}`", crate::yaml::shortened(&node.name)),
        None => node.name.clone(),
    };
    Box::new(rule.at(place, message))
}

/// A type as text, or as `{"kind": "dtype", "name": …}`.
fn type_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Type {
        Name(String),
        Object { name: String },
        Other(de::IgnoredAny),
    }
    Ok(match Type::deserialize(deserializer)? {
        Type::Name(name) | Type::Object { name } => name,
        Type::Other(_) => String::new(),
    })
}

fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<Array>>, D::Error> {
    Option::<Array>::deserialize(deserializer).map(|array| array.map(Arc::new))
}

impl<'de> Deserialize<'de> for Array {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Array, D::Error> {
        #[derive(Deserialize)]
        struct Stored {
            shape: Vec<u64>,
            data: Nested,
        }
        let stored = Stored::deserialize(deserializer)?;
        let nested = stored.data;
        // Of empty arrays the lists do not tell the inner dimensions.
        let empty = stored.shape.contains(&0) && nested.is_empty();
        if nested.shape != stored.shape && !empty {
            return Err(de::Error::custom(format_args!(
                "expected data of shape {:?}, found lists of shape {:?}",
                stored.shape, nested.shape
            )));
        }
        Ok(Array {
            shape: stored.shape,
            numbers: nested.numbers,
        })
    }
}

/// Nested lists of numbers.
struct Nested {
    shape: Vec<u64>,
    numbers: Numbers,
}

impl Nested {
    fn is_empty(&self) -> bool {
        matches!(&self.numbers, Numbers::Integers(numbers) if numbers.is_empty())
    }
}

impl<'de> Deserialize<'de> for Nested {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Nested, D::Error> {
        let mut collected = Collected {
            shape: Vec::new(),
            leaf: None,
            numbers: Numbers::Integers(Vec::new()),
        };
        Level {
            collected: &mut collected,
            depth: 0,
        }
        .deserialize(deserializer)?;
        Ok(Nested {
            shape: collected.shape,
            numbers: collected.numbers,
        })
    }
}

struct Collected {
    shape: Vec<u64>,
    /// Lists around the numbers.
    leaf: Option<usize>,
    numbers: Numbers,
}

struct Level<'c> {
    collected: &'c mut Collected,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Level<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Level<'_> {
    fn leaf<E: de::Error>(self, number: Result<i64, f64>) -> Result<(), E> {
        if *self.collected.leaf.get_or_insert(self.depth) != self.depth
            || self.collected.shape.len() > self.depth
        {
            return Err(E::custom("expected lists of equal depth"));
        }
        match (&mut self.collected.numbers, number) {
            (Numbers::Integers(all), Ok(number)) => all.push(number),
            (Numbers::Integers(all), Err(number)) => {
                let reals = all.iter().map(|n| *n as f64).chain([number]).collect();
                self.collected.numbers = Numbers::Reals(reals);
            }
            (Numbers::Reals(all), number) => {
                all.push(number.map_or_else(|real| real, |n| n as f64));
            }
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("numbers in nested lists")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.leaf(Ok(value.into()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.leaf(Ok(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        let value = i64::try_from(value)
            .map_err(|_| E::custom(format_args!("expected integers of 64 bits, found {value}")))?;
        self.leaf(Ok(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        self.leaf(Err(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Level { collected, depth } = self;
        if collected.leaf.is_some_and(|leaf| leaf <= depth) {
            return Err(de::Error::custom("expected lists of equal depth"));
        }
        let mut count = 0;
        let slot = collected.shape.len();
        let first = slot <= depth;
        if first {
            // Kept for the length of this level, which is known at its end.
            collected.shape.push(u64::MAX);
        }
        while seq
            .next_element_seed(Level {
                collected,
                depth: depth + 1,
            })?
            .is_some()
        {
            count += 1;
        }
        match collected.shape.get_mut(depth) {
            Some(known) if *known == u64::MAX => *known = count,
            Some(known) if *known != count => {
                return Err(de::Error::custom(format_args!(
                    "expected lists of equal length, found {count} elements after {known}"
                )));
            }
            _ => {}
        }
        Ok(())
    }
}
