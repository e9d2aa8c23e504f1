//! What names stand for: buffers, tensors of the interface, accesses of tasks.

use crate::expression::KEYWORDS;
use crate::session::Session;
use crate::tensor::Tensor;
use crate::touches::{Bytes, Kind, Left, Touches, left_at};
use chipless::suggest;
use chipless_kernels::strided;
use chipless_model::{Access, BufferId, Direction, ElementType, Pattern, Port, Program, TaskId};
use std::collections::HashMap;
use std::fmt::Write;

/// Moves between two places that are followed to learn the type of a byte.
const MOVES: usize = 64;
/// Bytes of a tensor that is read, at most: a pattern may repeat bytes as often as its file says.
const LARGEST: u64 = 4 << 30;

/// A named piece of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The tensor of an input or output of the interface.
    Port {
        /// Whether it is an output.
        output: bool,
        /// Which one.
        index: usize,
    },
    /// Bytes of a buffer.
    Range {
        /// The buffer.
        buffer: BufferId,
        /// The first byte.
        low: u64,
        /// One past the last.
        high: u64,
    },
    /// An access of a task.
    Access {
        /// The task.
        task: TaskId,
        /// What it reads or what it writes.
        direction: Direction,
        /// Which of its reads or writes, in the order of the listing.
        index: usize,
    },
}

/// Where a place is, and how it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The buffer.
    pub buffer: BufferId,
    /// Its bytes, in order.
    pub pattern: Pattern,
    /// Their type; bytes where nobody says it.
    pub element: ElementType,
    /// Dimensions, outermost first.
    pub shape: Vec<u64>,
}

impl Selection {
    fn port(port: &Port) -> Selection {
        Selection {
            buffer: port.buffer,
            pattern: Pattern::contiguous(0, port.bytes().unwrap_or(0)),
            element: port.element,
            shape: port.shape.clone(),
        }
    }

    /// A pattern whose elements have this type: a dimension for each loop, and one for the run.
    fn pattern(buffer: BufferId, pattern: Pattern, element: ElementType) -> Selection {
        let bits = element.bits();
        let element = if (pattern.run * 8).is_multiple_of(bits) {
            element
        } else {
            ElementType::UInt8
        };
        let inner = pattern.run * 8 / element.bits();
        let loops = pattern.loops.iter().rev().map(|l| l.count);
        let inner = (inner > 1 || pattern.loops.is_empty()).then_some(inner);
        let shape = loops.chain(inner).collect();
        Selection {
            buffer,
            pattern,
            element,
            shape,
        }
    }

    /// A tensor of this shape, or a part of it, which has the dimensions of its pattern.
    fn tensor(
        buffer: BufferId,
        pattern: Pattern,
        element: ElementType,
        shape: Vec<u64>,
    ) -> Selection {
        let count = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
        let bytes = count.and_then(|n| element.bytes_for(n));
        let selection = Selection::pattern(buffer, pattern, element);
        let is_whole = bytes.is_some() && bytes == selection.pattern.bytes();
        if is_whole && !shape.is_empty() {
            Selection { shape, ..selection }
        } else {
            selection
        }
    }

    /// The bytes that it names.
    pub fn bytes(&self) -> Bytes {
        Bytes::of(self.buffer, &self.pattern)
    }
}

/// The names of a program.
pub(crate) struct Names {
    tasks: HashMap<String, TaskId>,
    /// Inputs, outputs and buffers, the longest name first.
    memory: Vec<(String, Named)>,
}

#[derive(Clone, Copy)]
enum Named {
    Port { output: bool, index: usize },
    Buffer(BufferId),
}

impl Names {
    pub(crate) fn of(program: &Program<'_>) -> Names {
        let tasks = program.tasks.indices();
        let mut memory: Vec<(String, Named)> = Vec::new();
        let ports = [
            (true, &program.interface.outputs),
            (false, &program.interface.inputs),
        ];
        for (output, ports) in ports {
            for (index, port) in ports.iter().enumerate() {
                memory.push((port.name.clone(), Named::Port { output, index }));
            }
        }
        for (id, buffer) in program.buffers.iter_enumerated() {
            memory.push((buffer.name.clone(), Named::Buffer(id)));
        }
        // Stable: of equal names, outputs come before inputs, and these before buffers.
        memory.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Names {
            tasks: tasks.map(|task| (program.task_name(task), task)).collect(),
            memory,
        }
    }

    /// The task of a name, as [`Program::task_named`] has it.
    pub(crate) fn task(&self, program: &Program<'_>, name: &str) -> Option<TaskId> {
        let known = self.tasks.get(name).copied();
        known.or_else(|| program.task_named(name))
    }

    /// What is in memory, at the start of a text. The parts of a name before a dot may be left out where that leaves one.
    fn short<'t>(&self, program: &Program<'_>, text: &'t str) -> Option<(Place, &'t str)> {
        let fits = |(name, named): &(String, Named)| {
            let rest = ends(name)
                .find_map(|end| text.strip_prefix(end).filter(|rest| !continues(rest)))?;
            let found = range(program, *named, rest)?;
            Some((name.clone(), found))
        };
        let mut fitting = self.memory.iter().filter_map(fits);
        let (name, found) = fitting.next()?;
        // An output and its buffer may have one name.
        fitting.all(|(other, _)| other == name).then_some(found)
    }

    /// What to say to somebody whose text is no place.
    pub(crate) fn unknown(&self, program: &Program<'_>, text: &str) -> String {
        let word = text.split_whitespace().next().unwrap_or_default();
        let (name, behind) = word.split_at(word.find(['+', '[']).unwrap_or(word.len()));
        let hint = if behind.starts_with('[') && behind.contains("].") {
            let queues = program.queues.iter().map(|queue| &*queue.name);
            hint(name, queues, behind)
        } else {
            let memory = self.memory.iter().map(|(name, _)| &**name);
            hint(name, memory, behind)
        };
        format!(
            "expected a tensor, TASK.in[K], TASK.out[K] or BUFFER+OFFSET..END within its buffer, found \"{text}\"{hint}; `info buffers` shows the names"
        )
    }

    /// A place at the start of a text, and the text behind it. `Ok(None)`: the text starts with none.
    pub(crate) fn place<'t>(
        &self,
        program: &Program<'_>,
        text: &'t str,
    ) -> Result<Option<(Place, &'t str)>, String> {
        if let Some(found) = self.access(program, text)? {
            return Ok(Some(found));
        }
        if let Some(quoted) = text.strip_prefix('"') {
            let Some((name, rest)) = quoted.split_once('"') else {
                return Err("expected a second \" behind the name".to_owned());
            };
            let mut known = self.memory.iter().filter(|(known, _)| known == name);
            return Ok(known.find_map(|(_, named)| range(program, *named, rest)));
        }
        let found = self.memory.iter().find_map(|(name, named)| {
            let rest = text.strip_prefix(name.as_str())?;
            if name.is_empty() || continues(rest) {
                return None;
            }
            range(program, *named, rest)
        });
        Ok(found.or_else(|| self.short(program, text)))
    }

    /// `TASK.in[K]` or `TASK.out[K]`.
    fn access<'t>(
        &self,
        program: &Program<'_>,
        text: &'t str,
    ) -> Result<Option<(Place, &'t str)>, String> {
        let ends = text.match_indices("].").map(|(at, _)| at + 1);
        for end in ends {
            let Some(task) = self.task(program, &text[..end]) else {
                continue;
            };
            let rest = &text[end + 1..];
            let (direction, rest) = match (rest.strip_prefix("in["), rest.strip_prefix("out[")) {
                (Some(rest), _) => (Direction::Read, rest),
                (_, Some(rest)) => (Direction::Write, rest),
                _ => {
                    let name = &text[..end];
                    return Err(format!(
                        "expected {name}.in[K] or {name}.out[K], found {text}"
                    ));
                }
            };
            let number = rest.split_once(']');
            let Some((index, rest)) =
                number.and_then(|(n, rest)| Some((n.trim().parse::<usize>().ok()?, rest)))
            else {
                return Err(format!(
                    "expected the number of an access in brackets, found {rest}"
                ));
            };
            let (count, word) = (accesses(program, task, direction).len(), words(direction));
            if index >= count {
                let name = &text[..end];
                return Err(format!(
                    "expected an access of {name}, which {word} {count}, found number {index}"
                ));
            }
            let place = Place::Access {
                task,
                direction,
                index,
            };
            return Ok(Some((place, rest)));
        }
        Ok(None)
    }
}

const fn words(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
    }
}

/// What is left of a name without its parts before a dot, the longest first: `psum` of `sg00.psum`. Words that mean something else are no names.
fn ends(name: &str) -> impl Iterator<Item = &str> {
    let ends = name.match_indices('.').map(|(at, _)| &name[at + 1..]);
    ends.filter(|end| {
        end.starts_with(|c: char| c.is_alphabetic() || c == '_') && !KEYWORDS.contains(end)
    })
}

/// `; did you mean "sg00.act[3]"?` for a mistyped name or the last part of one, with what stands behind it.
pub(crate) fn hint<'n>(
    typed: &str,
    names: impl Iterator<Item = &'n str> + Clone,
    behind: &str,
) -> String {
    let all = names.clone().chain(names.clone().flat_map(ends));
    let meant = suggest::closest(typed, all).unwrap_or(typed);
    suggest::hint_with(meant, names, behind)
}

/// Whether a text goes on with the word before it.
fn continues(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// What follows the name of a tensor or buffer: `+OFFSET..END`, or nothing.
fn range<'t>(program: &Program<'_>, named: Named, rest: &'t str) -> Option<(Place, &'t str)> {
    let buffer = match named {
        Named::Port { output, index } => {
            let ports = if output {
                &program.interface.outputs
            } else {
                &program.interface.inputs
            };
            if !rest.starts_with('+') {
                return Some((Place::Port { output, index }, rest));
            }
            // A tensor's bytes are those of its buffer, whatever that is called.
            ports[index].buffer
        }
        Named::Buffer(buffer) => buffer,
    };
    let size = program.buffers[buffer].size;
    let Some(offsets) = rest.strip_prefix('+') else {
        let place = Place::Range {
            buffer,
            low: 0,
            high: size,
        };
        return Some((place, rest));
    };
    let (low, rest) = number(offsets)?;
    let (high, rest) = match rest.strip_prefix("..") {
        Some(end) => number(end)?,
        None => (size, rest),
    };
    (low < high && high <= size).then_some((Place::Range { buffer, low, high }, rest))
}

/// Whether a place of a buffer is written as `BUFFER+OFFSET`, without an end.
pub(crate) fn is_open(place: &Place, text: &str) -> bool {
    let offset = text
        .trim()
        .rsplit_once('+')
        .and_then(|(_, text)| number(text));
    matches!((place, offset), (Place::Range { low, .. }, Some((offset, ""))) if *low == offset)
}

/// A whole number in decimal or, behind `0x`, hexadecimal digits.
fn number(text: &str) -> Option<(u64, &str)> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let end = digits
        .find(|c: char| !c.is_digit(radix))
        .unwrap_or(digits.len());
    let value = u64::from_str_radix(&digits[..end], radix).ok()?;
    Some((value, &digits[end..]))
}

/// The reads or the writes of a task, in the order of the listing.
pub(crate) fn accesses(program: &Program<'_>, task: TaskId, direction: Direction) -> Vec<Access> {
    let mut found = Vec::new();
    program.kernel(task).accesses(&mut |access| {
        if access.direction == direction {
            found.push(access);
        }
    });
    found
}

/// How a place is written.
pub(crate) fn text(program: &Program<'_>, place: &Place) -> String {
    match place {
        Place::Port { output, index } => port(program, *output, *index).name.clone(),
        Place::Range { buffer, low, high } => {
            format!("{}+{low:#x}..{high:#x}", program.buffers[*buffer].name)
        }
        Place::Access {
            task,
            direction,
            index,
        } => {
            let side = match direction {
                Direction::Read => "in",
                Direction::Write => "out",
            };
            format!("{}.{side}[{index}]", program.task_name(*task))
        }
    }
}

pub(crate) fn port<'p>(program: &'p Program<'_>, output: bool, index: usize) -> &'p Port {
    if output {
        &program.interface.outputs[index]
    } else {
        &program.interface.inputs[index]
    }
}

/// What an access of a task is to its operation, where the task knows it, and whether it is the task's own description, which stands in memory.
pub(crate) fn role(program: &Program<'_>, place: &Place) -> Option<(&'static str, bool)> {
    let Place::Access {
        task,
        direction,
        index,
    } = place
    else {
        return None;
    };
    let mut found = Vec::new();
    program.kernel(*task).roles(&mut |access, role| {
        if access.direction == *direction {
            found.push((role, access.tensor == Access::DESCRIPTION));
        }
    });
    found.get(*index).copied()
}

/// Where a place is at present, and how it is read.
pub(crate) fn select(session: &Session<'_, '_>, touches: &Touches, place: &Place) -> Selection {
    let program = session.program();
    match place {
        Place::Port { output, index } => Selection::port(port(program, *output, *index)),
        Place::Range { buffer, low, high } => {
            let pattern = Pattern::contiguous(*low, high - low);
            if let Some((element, shape)) = program.buffers[*buffer].tensor.clone() {
                return Selection::tensor(*buffer, pattern, element, shape);
            }
            let element = element_at(session, touches, *buffer, *low, session.at());
            Selection::pattern(*buffer, pattern, element)
        }
        Place::Access {
            task,
            direction,
            index,
        } => {
            let all = accesses(program, *task, *direction);
            let Some(access) = all.into_iter().nth(*index) else {
                return Selection::pattern(
                    BufferId::from_raw(0),
                    Pattern::contiguous(0, 0),
                    ElementType::UInt8,
                );
            };
            let mut ports = program
                .interface
                .inputs
                .iter()
                .chain(&program.interface.outputs);
            // What the task says of its operand comes first: whoever wrote the bytes may have been wrong, or nobody may have written them.
            let own = program.kernel(*task).tensor(&access);
            let is_whole = |port: &&Port| {
                port.buffer == access.buffer
                    && access.pattern == Pattern::contiguous(0, port.bytes().unwrap_or(0))
                    && own.as_ref().is_none_or(|own| own.0 == port.element)
            };
            if let Some(port) = ports.find(is_whole) {
                return Selection::port(port);
            }
            if access.tensor == Access::DESCRIPTION {
                return Selection::pattern(access.buffer, access.pattern, ElementType::UInt8);
            }
            let held = || program.buffers[access.buffer].tensor.clone();
            if let Some((element, shape)) = own.or_else(held) {
                return Selection::tensor(access.buffer, access.pattern, element, shape);
            }
            let effect = session.effect_of(*task).unwrap_or(session.effects());
            // What a task writes has the type that it leaves.
            let before = effect + usize::from(*direction == Direction::Write);
            let byte = access.pattern.offset;
            let element = element_at(session, touches, access.buffer, byte, before);
            Selection::pattern(access.buffer, access.pattern, element)
        }
    }
}

/// The type of the element at a byte as the effects before this one left it: that which its writer names, or the one at the place that
/// it was moved from.
fn element_at(
    session: &Session<'_, '_>,
    touches: &Touches,
    buffer: BufferId,
    byte: u64,
    before: usize,
) -> ElementType {
    let (program, order) = (session.program(), &session.timeline().order);
    let (mut buffer, mut byte, mut before) = (buffer, byte, before);
    for _ in 0..MOVES {
        let one = Bytes::of(buffer, &Pattern::contiguous(byte, 1));
        let mut writers = touches.find(program, order, &one, Kind::Write, 0..before);
        let Some(effect) = writers.next_back() else {
            break;
        };
        match left_at(program, order[effect], buffer, byte) {
            Some(Left::Elements(element)) => return element,
            Some(Left::Moved(from, at)) => (buffer, byte, before) = (from, at, effect),
            None => break,
        }
    }
    if let Some((element, _)) = &program.buffers[buffer].tensor {
        return *element;
    }
    let mut ports = program
        .interface
        .inputs
        .iter()
        .chain(&program.interface.outputs);
    ports
        .find(|port| port.buffer == buffer)
        .map_or(ElementType::UInt8, |port| port.element)
}

/// The tensor of a selection at present.
///
/// # Errors
/// Bytes beyond the buffer; more of them than can be shown.
pub(crate) fn read(session: &Session<'_, '_>, selection: &Selection) -> Result<Tensor, String> {
    let size = selection.pattern.bytes().unwrap_or(u64::MAX);
    if size > LARGEST {
        return Err(format!(
            "expected a tensor of at most {LARGEST} bytes, found {size}; give a BUFFER+OFFSET..END of it"
        ));
    }
    let mut bytes = Vec::new();
    let held = session.storage().bytes(selection.buffer);
    strided::gather(held, &selection.pattern, &mut bytes).map_err(|error| {
        let name = &session.program().buffers[selection.buffer].name;
        format!("{name}: {error}")
    })?;
    Ok(Tensor {
        element: selection.element,
        shape: selection.shape.clone(),
        bytes,
    })
}

/// A selection as the listing writes accesses: buffer, offset, runs.
pub(crate) fn where_text(program: &Program<'_>, selection: &Selection) -> String {
    let (name, pattern) = (&program.buffers[selection.buffer].name, &selection.pattern);
    let mut text = format!("{name}+{:#x}", pattern.offset);
    if pattern.loops.is_empty() {
        let _ = write!(text, "..{:#x}", pattern.offset + pattern.run);
        return text;
    }
    text.push(' ');
    for l in pattern.loops.iter().rev() {
        let _ = write!(text, "{}×", l.count);
    }
    let _ = write!(text, "{} B", pattern.run);
    text
}
