//! Scripts: the steps of a host, as YAML, JSON, or a step a line.

use super::elements::{Encoding, Number};
use crate::failure::Failure;
use crate::{files, terminal};
use chipless::npy;
use chipless::spu::iospec::{Document, Vector, dequantize};
use chipless::spu::yaml::{self, Budget, Node, Value};
use chipless_model::Kind;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// What the host does.
pub(super) enum Step {
    /// Vectors together, by name, with their values where the script gives them.
    Write(Vec<(String, Option<Vec<i64>>)>),
    /// Vectors of a sequence in its order.
    WriteSequence(usize, Vec<Vec<i64>>),
    /// Messages as they go over the bus.
    WriteWords(Vec<u64>),
    /// What is ready.
    Read,
    /// What is ready of a sequence.
    ReadSequence(usize),
    /// One mailbox.
    ReadMailbox(i64),
    /// The words that a device sent.
    Receive(Vec<u64>),
    /// Back to the start.
    Reset,
}

/// How steps are understood.
pub(super) struct Reader<'d> {
    /// The script as messages name it.
    pub(super) name: String,
    /// Where its .npy files are.
    pub(super) directory: PathBuf,
    pub(super) document: &'d Document,
    /// Inputs by the names that a host may give them.
    pub(super) inputs: HashMap<&'d str, &'d Vector>,
    /// How the elements of vectors are carried.
    pub(super) encoding: Encoding,
    /// Whether values are reals that scale and zero point turn into integers.
    pub(super) quantize: bool,
    /// Inputs of which it was said that their values are clipped.
    pub(super) clipped: RefCell<BTreeSet<String>>,
}

/// Inputs by varname and key; of several the first.
pub(super) fn by_name(document: &Document) -> HashMap<&str, &Vector> {
    let mut inputs = HashMap::new();
    for vector in &document.inputs {
        inputs.entry(&*vector.varname).or_insert(vector);
        inputs.entry(&*vector.key).or_insert(vector);
    }
    inputs
}

/// Nodes of a script that is read as a whole.
const SCRIPT_BUDGET: Budget = Budget {
    nodes: 50_000_000,
    depth: 16,
};

impl Reader<'_> {
    fn wrong(&self, node: &Node, expected: &str) -> Failure {
        let place = place(node.span);
        Failure::unreadable(
            &self.name,
            format_args!("{place}expected {expected}, found {}", node.describe()),
        )
    }

    /// The steps of a script, each given to `then`. A script whose first line is a step by itself, as an object or in words, is read
    /// line by line.
    pub(super) fn steps(
        &self,
        text: &str,
        then: &mut dyn FnMut(Step) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let lines = || {
            text.lines()
                .enumerate()
                .filter(|(_, line)| !line.trim().is_empty())
        };
        let first = lines().next().map(|(_, line)| line).unwrap_or_default();
        let alone = first.trim_start().starts_with('{')
            && yaml::read(first, SCRIPT_BUDGET).is_ok_and(|t| t.root.is_some_and(|r| is_step(&r)));
        if alone || is_words(first) {
            // A mistake in the last step is said before the first is taken.
            lines().try_for_each(|(number, line)| self.line(line, Some(number + 1)).map(drop))?;
            return lines().try_for_each(|(number, line)| then(self.line(line, Some(number + 1))?));
        }
        let tree = yaml::read(text, SCRIPT_BUDGET).map_err(|(span, message)| {
            Failure::unreadable(&self.name, format_args!("{span}: {message}"))
        })?;
        let root = tree.root.unwrap_or(Node {
            value: Value::Null,
            span: yaml::Span::default(),
        });
        let Value::List(steps) = root.get("steps").unwrap_or(&root).value.clone() else {
            // Text that is no list is words, of which the first is misspelt.
            return Err(if root.value.text().is_some() {
                let word = first.split_whitespace().next().unwrap_or_default();
                let text = format!("{}{}", place(root.span), not_a_step(word));
                Failure::unreadable(&self.name, text)
            } else {
                self.wrong(&root, "a list of steps, or {steps: [...]}")
            });
        };
        steps
            .iter()
            .try_for_each(|step| self.step(step).map(drop))?;
        steps.iter().try_for_each(|step| then(self.step(step)?))
    }

    /// A step that stands on a line of its own, as a script has it or in words: `write B=1,2,3 C`, `read`, `reset`. The number is that of
    /// the line where there are several.
    pub(super) fn line(&self, line: &str, number: Option<usize>) -> Result<Step, Failure> {
        let words = unquoted(line);
        match words
            .strip_prefix("write ")
            .map(str::trim_start)
            .filter(|rest| !rest.starts_with(['{', '[']))
        {
            // What the words stand for has columns of its own.
            Some(vectors) => {
                let vectors = joined(vectors);
                let Some(name) = twice(&vectors) else {
                    return self.object(&written(&vectors), number, false);
                };
                let line = number.unwrap_or(1);
                let text = format_args!(
                    "line {line}: expected values for `{name}` once, found them twice"
                );
                Err(Failure::unreadable(&self.name, text))
            }
            None if matches!(words, "read" | "reset")
                || words.starts_with('{')
                || words.contains(':') =>
            {
                self.object(line, number, true)
            }
            None => {
                let place = number.map_or_else(String::new, |n| format!("line {n}: "));
                let message = format!("{place}{}", not_a_step(words));
                Err(Failure::unreadable(&self.name, message))
            }
        }
    }

    fn object(
        &self,
        line: &str,
        number: Option<usize>,
        has_columns: bool,
    ) -> Result<Step, Failure> {
        let number = number.unwrap_or(1) as u32;
        let at = |span: yaml::Span| yaml::Span {
            line: number,
            column: if has_columns { span.column } else { 0 },
            ..span
        };
        let located = |span: yaml::Span, message: String| {
            Failure::unreadable(&self.name, format_args!("{}{message}", place(at(span))))
        };
        let tree =
            yaml::read(line, SCRIPT_BUDGET).map_err(|(span, message)| located(span, message))?;
        let mut root = tree.root.unwrap_or(Node {
            value: Value::Null,
            span: yaml::Span::default(),
        });
        relocate(&mut root, &at);
        self.step(&root)
    }

    fn step(&self, step: &Node) -> Result<Step, Failure> {
        if let Value::Text(word) = &step.value {
            match &**word {
                "read" => return Ok(Step::Read),
                "reset" => return Ok(Step::Reset),
                _ => {}
            }
        }
        let Value::Map(entries) = &step.value else {
            return Err(self.wrong(step, "a step: write, read or reset"));
        };
        if step.get("inputs").is_some() {
            let text = "a step of `run --calibrate` (inputs). Here, write one as {\"write\": {NAME: [values]}} and read its outputs with \"read\"";
            let place = step.span;
            return Err(Failure::unreadable(
                &self.name,
                format_args!(
                    "{place}: expected a step with one of write, read and reset, found {text}"
                ),
            ));
        }
        let [(verb, what)] = &entries[..] else {
            return Err(self.wrong(step, "a step with one of write, read and reset"));
        };
        match verb.value.text() {
            Some("write") => self.write(what),
            Some("read") => self.read(what),
            Some("reset") => Ok(Step::Reset),
            _ => Err(self.wrong(verb, "write, read or reset")),
        }
    }

    fn write(&self, what: &Node) -> Result<Step, Failure> {
        match &what.value {
            Value::Text(name) => Ok(Step::Write(vec![(name.clone(), None)])),
            Value::List(names) => {
                let name = |node: &Node| {
                    Ok((
                        node.value
                            .text()
                            .ok_or_else(|| self.wrong(node, "the name of an input"))?
                            .to_owned(),
                        None,
                    ))
                };
                Ok(Step::Write(
                    names.iter().map(name).collect::<Result<_, Failure>>()?,
                ))
            }
            Value::Map(entries) => {
                if let Some(words) = what.get("words64").filter(|_| entries.len() == 1) {
                    return Ok(Step::WriteWords(self.words(words)?));
                }
                if let (Some(id), Some(vectors), 2) =
                    (what.get("sequence_id"), what.get("vectors"), entries.len())
                {
                    return self.write_sequence(id, vectors);
                }
                let vector = |(key, values): &(Node, Node)| {
                    Ok((
                        key.label(),
                        Some(self.values(values, self.vector(&key.label()))?),
                    ))
                };
                Ok(Step::Write(
                    entries.iter().map(vector).collect::<Result<_, Failure>>()?,
                ))
            }
            _ => Err(self.wrong(what, "names of inputs, or names with values")),
        }
    }

    fn write_sequence(&self, id: &Node, vectors: &Node) -> Result<Step, Failure> {
        let id = self.number(id, "a sequence id")?;
        let Value::List(items) = &vectors.value else {
            return Err(self.wrong(vectors, "a list of vectors"));
        };
        let sequence = self.document.simple_sequences().nth(id);
        let member = |index: usize| {
            sequence
                .and_then(|s| s.inputs.get(index))
                .and_then(|m| self.vector(&m.key))
        };
        let values = items
            .iter()
            .enumerate()
            .map(|(index, node)| self.values(node, member(index)));
        Ok(Step::WriteSequence(id, values.collect::<Result<_, _>>()?))
    }

    fn read(&self, what: &Node) -> Result<Step, Failure> {
        if let Some(words) = what.get("words64") {
            return Ok(Step::Receive(self.words(words)?));
        }
        if let Some(id) = what.get("sequence_id") {
            return Ok(Step::ReadSequence(self.number(id, "a sequence id")?));
        }
        if let Some(mailbox) = what.get("mailbox") {
            return Ok(Step::ReadMailbox(self.number(mailbox, "a mailbox")? as i64));
        }
        match what.value {
            Value::Bool(true) | Value::Null => Ok(Step::Read),
            _ if self.encoding.is_plain => Err(self.wrong(what, "true or sequence_id")),
            _ => Err(self.wrong(what, "true, words64, sequence_id or mailbox")),
        }
    }

    fn number(&self, node: &Node, what: &str) -> Result<usize, Failure> {
        match node.value {
            Value::Integer(value) => usize::try_from(value).map_err(|_| self.wrong(node, what)),
            _ => Err(self.wrong(node, what)),
        }
    }

    fn vector(&self, name: &str) -> Option<&Vector> {
        self.inputs.get(name).copied()
    }

    fn words(&self, node: &Node) -> Result<Vec<u64>, Failure> {
        let Value::List(items) = &node.value else {
            return Err(self.wrong(node, "a list of words of 64 bits in hexadecimal"));
        };
        let word = |item: &Node| {
            let digits = item.label();
            let found = u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(&digits), 16);
            found.map_err(|_| self.wrong(item, "a word of 64 bits in hexadecimal"))
        };
        items.iter().map(word).collect()
    }

    /// Elements of a list, of a single number, or of an .npy file.
    fn values(&self, node: &Node, vector: Option<&Vector>) -> Result<Vec<i64>, Failure> {
        let numbers = std::slice::from_ref(node);
        let items = match &node.value {
            Value::List(items) => items,
            Value::Text(path) if real_word(path).is_none() => {
                return self.file(Path::new(path), vector);
            }
            _ => numbers,
        };
        let number = |item: &Node| match &item.value {
            Value::Integer(value) => Ok(Number::Integer(*value)),
            Value::Float(value) => Ok(Number::Real(*value)),
            Value::Text(word) => real_word(word)
                .or_else(|| json_exponent(item))
                .map(Number::Real)
                .ok_or_else(|| self.wrong(item, "a number")),
            _ => Err(self.wrong(item, "a number")),
        };
        let numbers = items.iter().map(number).collect::<Result<Vec<_>, _>>()?;
        self.encoded(&numbers, vector).map_err(|violation| {
            let place = items.first().map(|item| place(item.span));
            let place = place.unwrap_or_default();
            Failure::unreadable(&self.name, format_args!("{place}{violation}"))
        })
    }

    fn encoded(
        &self,
        numbers: &[Number],
        vector: Option<&Vector>,
    ) -> Result<Vec<i64>, chipless::spu::iospec::Violation> {
        let name = vector.map_or("", |vector| &*vector.varname);
        let quantised = vector.filter(|_| self.quantize);
        let encoded = self.encoding.encode(name, numbers, quantised)?;
        // Floats go as they are.
        let element = self.encoding.elements.get(name);
        let is_float = element.is_some_and(|element| element.kind() == Kind::Float);
        if let Some(vector) = quantised.filter(|_| !is_float) {
            self.tell_clipped(vector, numbers, &encoded);
        }
        Ok(encoded)
    }

    /// Says once for each input that its values do not fit its scale. That they are cut off at the ends of the range is what the chip's own package does.
    fn tell_clipped(&self, vector: &Vector, numbers: &[Number], encoded: &[i64]) {
        let step = vector.quantization.map_or(0.0, |q| q.scale.abs());
        let integers = encoded.iter().map(|v| i128::from(*v));
        let Ok(kept) = dequantize(vector, integers) else {
            return;
        };
        let pairs = numbers.iter().map(|number| number.real()).zip(kept);
        // NaN is another matter.
        let mut clipped = pairs.filter(|(real, kept)| (real - kept).abs() > step);
        let Some((real, kept)) = clipped.next() else {
            return;
        };
        let count = 1 + clipped.count();
        if self.clipped.borrow_mut().insert(vector.varname.clone()) {
            terminal::complain(&format!(
                "{}: note: {count} of {} values of `{}` are beyond the range of its scale and are clipped; the first is {real}, which becomes {kept} (said once for each input)\n",
                self.name,
                numbers.len(),
                vector.varname,
            ));
        }
    }

    fn file(&self, path: &Path, vector: Option<&Vector>) -> Result<Vec<i64>, Failure> {
        let path = self.directory.join(path);
        let said = |error: String| Failure::unreadable(path.display(), error);
        let bytes = files::open(&path).map_err(said)?;
        // What numpy has no type for travels as raw bits.
        let element = vector.and_then(|v| self.encoding.elements.get(&v.varname));
        if let Some(element) = element {
            let (_, shape) = npy::describe(&bytes).map_err(said)?;
            let data = npy::read(&bytes, *element, &shape).map_err(said)?;
            let count = shape.iter().product::<u64>() as usize;
            return Ok(unpacked(&data, element.bits(), count));
        }
        let numbers = npy::numbers(&bytes).map_err(said)?;
        let count = numbers.shape.iter().product::<u64>() as usize;
        let numbers: Vec<Number> = if numbers.is_integer() {
            let integers = numbers.integers(0, count);
            integers.map(|v| Number::Integer(v.into())).collect()
        } else {
            numbers.reals(0, count).map(Number::Real).collect()
        };
        self.encoded(&numbers, vector)
            .map_err(|violation| said(violation.to_string()))
    }
}

/// Elements of bytes, as a session carries them.
fn unpacked(bytes: &[u8], bits: u64, count: usize) -> Vec<i64> {
    let size = (bits / 8) as usize;
    let one = |index: usize| {
        let word = if size > 0 {
            let element = bytes.get(index * size..(index + 1) * size);
            let element = element.unwrap_or_default().iter().rev();
            element.fold(0u64, |word, byte| word << 8 | u64::from(*byte))
        } else {
            let at = index as u64 * bits;
            let byte = bytes.get((at / 8) as usize).copied().unwrap_or_default();
            u64::from(byte >> (at % 8))
        };
        (word << (64 - bits)) as i64 >> (64 - bits)
    };
    (0..count).map(one).collect()
}

/// Reals that JSON has no number for.
fn real_word(word: &str) -> Option<f64> {
    match word {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Words without spaces around their equals signs: `B = 1,2,3` is `B=1,2,3`.
fn joined(words: &str) -> String {
    words
        .split('=')
        .map(str::trim)
        .collect::<Vec<_>>()
        .join("=")
}

/// A vector that words give values twice, of which a script would keep the last.
fn twice(words: &str) -> Option<&str> {
    let mut names = words
        .split_whitespace()
        .filter_map(|word| word.split_once('='));
    let mut seen = BTreeSet::new();
    names.find_map(|(name, _)| (!seen.insert(name)).then_some(name))
}

/// Vectors in words, `B=1,2,3 C`, as a script writes them.
fn written(words: &str) -> String {
    let vectors: Vec<(&str, Option<&str>)> = words
        .split_whitespace()
        .map(|word| word.trim_end_matches(','))
        .filter(|word| !word.is_empty())
        .map(|word| {
            word.split_once('=')
                .map_or((word, None), |(name, values)| (name, Some(values)))
        })
        .collect();
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    if vectors.iter().all(|(_, values)| values.is_none()) {
        let names: Vec<String> = vectors.iter().map(|(name, _)| quoted(name)).collect();
        return format!("{{\"write\": [{}]}}", names.join(", "));
    }
    let numeric = |v: &str| {
        v.chars()
            .all(|c| c.is_ascii_digit() || "+-.,eE".contains(c))
    };
    let one = |(name, values): &(&str, Option<&str>)| {
        let values = values.unwrap_or_default();
        // A list has commas, whatever else stands in it; the name of a file has none.
        let item = |item: &str| {
            if numeric(item) {
                item.to_owned()
            } else {
                quoted(item)
            }
        };
        let values = if numeric(values) || values.contains(',') {
            let items: Vec<String> = values.split(',').map(item).collect();
            format!("[{}]", items.join(","))
        } else {
            quoted(values)
        };
        format!("{}: {values}", quoted(name))
    };
    format!(
        "{{\"write\": {{{}}}}}",
        vectors.iter().map(one).collect::<Vec<_>>().join(", ")
    )
}

/// What is wrong with words that are no step.
fn not_a_step(words: &str) -> String {
    let known = ["write", "read", "reset", "next", "help", "quit"];
    match words.split_once(' ') {
        Some(("read", _)) => format!(
            "expected `read` by itself, found \"{words}\": a read takes everything that is ready and needs no names"
        ),
        _ if words == "write" => {
            "expected names behind write, as in `write x=1,2,3`, found none".to_owned()
        }
        _ if known.contains(&words) => format!(
            "expected write, read or reset, found \"{words}\", which is for the text form alone: without --json, --lines and --script"
        ),
        _ => format!(
            "expected write, read, reset, next, help or quit, found \"{words}\"{}",
            chipless::suggest::hint(words, known)
        ),
    }
}

/// A line without spaces around it; of one that is a JSON string, what it says.
fn unquoted(line: &str) -> &str {
    let line = line.trim();
    let said = line
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    said.unwrap_or(line)
}

/// Whether a line is words, and so a step or meant as one.
fn is_words(line: &str) -> bool {
    let first = unquoted(line).split_whitespace().next();
    matches!(
        first.unwrap_or_default(),
        "read" | "reset" | "write" | "next" | "help" | "quit"
    )
}

fn is_step(node: &Node) -> bool {
    ["write", "read", "reset"]
        .iter()
        .any(|verb| node.get(verb).is_some())
}

/// JSON writes 1e-5, which YAML 1.1 takes for text.
fn json_exponent(node: &Node) -> Option<f64> {
    let text = node.value.text()?;
    text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        .then(|| text.parse().ok())
        .flatten()
}

/// Where something stands, in front of what is said of it; nothing for what has no place of its own.
fn place(span: yaml::Span) -> String {
    match (span.line, span.column) {
        (0, _) => String::new(),
        (line, 0) => format!("line {line}: "),
        _ => format!("{span}: "),
    }
}

/// Puts a node and what is in it at other places.
fn relocate(node: &mut Node, at: &impl Fn(yaml::Span) -> yaml::Span) {
    node.span = at(node.span);
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| relocate(item, at)),
        Value::Map(entries) => {
            for (key, value) in entries {
                relocate(key, at);
                relocate(value, at);
            }
        }
        _ => {}
    }
}
