//! The stack machine of pickles, with the opcodes that graphs are made of.

use super::array::{Array, Elements, State, Type, decoded, elements};
use super::object::{Class, Object, Objects, Value};
use super::{Error, at};
use crate::fqir::rules;
use crate::yaml::shortened;
use chipless_model::Limits;

/// Executes a pickle.
///
/// # Errors
/// An opcode, class, function or call that is not on the list; a stack, memo or size that does not hold what the pickle
/// says; more objects than the limit `declarations`.
pub(crate) fn read<'p>(pickle: &'p [u8], limits: &Limits) -> Result<Objects<'p>, Error> {
    let mut machine = Machine {
        pickle,
        at: 0,
        opcode: 0,
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Vec::new(),
        objects: Vec::new(),
        most: limits.declarations,
    };
    loop {
        if let Some(root) = machine.step()? {
            return Ok(Objects {
                all: machine.objects,
                root,
            });
        }
    }
}

struct Machine<'p> {
    pickle: &'p [u8],
    at: usize,
    /// Where the opcode at hand stands.
    opcode: usize,
    stack: Vec<Value<'p>>,
    /// Heights of the stack at its marks.
    marks: Vec<usize>,
    memo: Vec<Option<Value<'p>>>,
    objects: Vec<Object<'p>>,
    most: u64,
}

impl<'p> Machine<'p> {
    fn wrong<T>(&self, message: impl Into<String>) -> Result<T, Error> {
        Err(at(&rules::PICKLE, self.opcode, message))
    }

    fn refused<T>(&self, message: impl Into<String>) -> Result<T, Error> {
        Err(at(&rules::PICKLE_CALL, self.opcode, message))
    }

    fn take(&mut self, size: usize) -> Result<&'p [u8], Error> {
        let found = self
            .at
            .checked_add(size)
            .and_then(|end| self.pickle.get(self.at..end));
        let Some(bytes) = found else {
            let left = self.pickle.len() - self.at;
            return self.wrong(format!("expected {size} bytes more, found {left}: the pickle is cut, or claims what it does not have"));
        };
        self.at += size;
        Ok(bytes)
    }

    fn number(&mut self, size: usize) -> Result<u32, Error> {
        Ok(self
            .take(size)?
            .iter()
            .rev()
            .fold(0, |n, b| n << 8 | u32::from(*b)))
    }

    /// Text up to the end of the line.
    fn line(&mut self) -> Result<&'p str, Error> {
        let rest = &self.pickle[self.at..];
        let Some(length) = rest.iter().position(|b| *b == b'\n') else {
            return self.wrong("expected a line of text, found the end of the pickle");
        };
        let text = self.take(length + 1)?;
        match std::str::from_utf8(&text[..length]) {
            Ok(text) => Ok(text),
            Err(_) => self.wrong("expected text in UTF-8, found other bytes"),
        }
    }

    fn pop(&mut self) -> Result<Value<'p>, Error> {
        // What stands below a mark is out of reach.
        if self.stack.len() <= self.marks.last().copied().unwrap_or(0) {
            return self.wrong("expected a value on the stack, found none");
        }
        match self.stack.pop() {
            Some(value) => Ok(value),
            None => self.wrong("expected a value on the stack, found none"),
        }
    }

    /// Everything above the last mark.
    fn popped(&mut self) -> Result<Vec<Value<'p>>, Error> {
        match self.marks.pop() {
            Some(mark) => Ok(self.stack.split_off(mark)),
            None => self.wrong("expected a mark on the stack, found none"),
        }
    }

    fn top(&mut self) -> Result<&mut Object<'p>, Error> {
        let value = self
            .stack
            .last()
            .copied()
            .filter(|_| self.stack.len() > self.marks.last().copied().unwrap_or(0));
        match value {
            Some(Value::Object(number)) => Ok(&mut self.objects[number]),
            _ => self.wrong("expected an object on the stack, found none"),
        }
    }

    fn make(&mut self, object: Object<'p>) -> Result<(), Error> {
        if self.objects.len() as u64 >= self.most {
            let message = format!("more objects than the limit declarations = {}", self.most);
            return Err(at(&rules::LIMIT, self.opcode, message));
        }
        self.stack.push(Value::Object(self.objects.len()));
        self.objects.push(object);
        Ok(())
    }

    fn object(&self, value: Value<'p>) -> Option<&Object<'p>> {
        match value {
            Value::Object(number) => self.objects.get(number),
            _ => None,
        }
    }

    fn tuple(&self, value: Value<'p>) -> Option<&[Value<'p>]> {
        match self.object(value)? {
            Object::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// One opcode; the result of the pickle at its end.
    fn step(&mut self) -> Result<Option<Value<'p>>, Error> {
        self.opcode = self.at;
        let opcode = self.take(1)?[0];
        match opcode {
            b'.' => {
                let root = self.pop()?;
                return Ok(Some(root));
            }
            0x80 => self.protocol()?,
            b'(' => self.marks.push(self.stack.len()),
            b'N' => self.stack.push(Value::None),
            0x88 => self.stack.push(Value::Bool(true)),
            0x89 => self.stack.push(Value::Bool(false)),
            b'K' => {
                let value = self.number(1)?;
                self.stack.push(Value::Integer(value.into()));
            }
            b'M' => {
                let value = self.number(2)?;
                self.stack.push(Value::Integer(value.into()));
            }
            b'J' => {
                let value = self.number(4)? as i32;
                self.stack.push(Value::Integer(value.into()));
            }
            0x8a => {
                let size = self.number(1)? as usize;
                self.long(size)?;
            }
            0x8b => {
                let size = self.number(4)? as usize;
                self.long(size)?;
            }
            b'G' => self.real()?,
            b'X' => self.text()?,
            b'}' => self.make(Object::Dict(Vec::new()))?,
            b']' => self.make(Object::List(Vec::new()))?,
            b')' => self.make(Object::Tuple(Vec::new()))?,
            b't' => {
                let items = self.popped()?;
                self.make(Object::Tuple(items))?;
            }
            0x85..=0x87 => {
                let mut items = (0x85..=opcode)
                    .map(|_| self.pop())
                    .collect::<Result<Vec<_>, _>>()?;
                items.reverse();
                self.make(Object::Tuple(items))?;
            }
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            b'e' => {
                let items = self.popped()?;
                self.append(items)?;
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.set(&[key, value])?;
            }
            b'u' => {
                let items = self.popped()?;
                self.set(&items)?;
            }
            b'q' | b'r' => {
                let slot = self.number(if opcode == b'q' { 1 } else { 4 })? as usize;
                self.put(slot)?;
            }
            b'h' | b'j' => {
                let slot = self.number(if opcode == b'h' { 1 } else { 4 })? as usize;
                self.recall(slot)?;
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                let class = self.class(module, name)?;
                self.make(Object::Class(class))?;
            }
            0x81 => self.new_object()?,
            b'R' => self.call()?,
            b'b' => self.build()?,
            other => return self.refuse(other),
        }
        Ok(None)
    }

    /// Text in UTF-8.
    fn text(&mut self) -> Result<(), Error> {
        let size = self.number(4)? as usize;
        let bytes = self.take(size)?;
        // Weights are text in a pickle, megabytes of it.
        match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => self.stack.push(Value::Text(text)),
            Err(_) => return self.wrong("expected text in UTF-8, found other bytes"),
        }
        Ok(())
    }

    /// What was put into a slot of the memo.
    fn recall(&mut self, slot: usize) -> Result<(), Error> {
        match self.memo.get(slot).copied().flatten() {
            Some(value) => self.stack.push(value),
            None => {
                return self.wrong(format!(
                    "expected something in slot {slot} of the memo, found nothing"
                ));
            }
        }
        Ok(())
    }

    /// A number in binary64, big-endian.
    fn real(&mut self) -> Result<(), Error> {
        let bytes = self.take(8)?;
        let value = bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|word| f64::from_be_bytes(*word))
            .next();
        self.stack.push(Value::Real(value.unwrap_or_default()));
        Ok(())
    }

    /// The version, which must be one that `torch.save` writes.
    fn protocol(&mut self) -> Result<(), Error> {
        let version = self.take(1)?[0];
        if version > 2 {
            return Err(at(
                &rules::PICKLE_PROTOCOL,
                self.opcode,
                format!(
                    "expected a pickle of protocol 2 as torch.save writes it, found protocol {version}"
                ),
            ));
        }
        Ok(())
    }

    /// An opcode that graphs do not have, by its name.
    fn refuse(&mut self, opcode: u8) -> Result<Option<Value<'p>>, Error> {
        let called = match opcode {
            b'i' => {
                let (module, name) = (self.line()?, self.line()?);
                return self.refused(format!(
                    "expected plain data, found a call of `{}` (INST)",
                    full_name(module, name)
                ));
            }
            b'o' => "a call (OBJ)",
            0x92 => "a call (NEWOBJ_EX)",
            0x93 => {
                let name = self.pop()?;
                let module = self.pop()?;
                let (Value::Text(module), Value::Text(name)) = (module, name) else {
                    return self.refused("expected plain data, found a name made of something else than text (STACK_GLOBAL)");
                };
                return self.refused(format!(
                    "expected plain data, found the name `{}` (STACK_GLOBAL)",
                    full_name(module, name)
                ));
            }
            0x82..=0x84 => "an extension code (EXT)",
            b'P' | b'Q' => "a persistent id (PERSID): data outside the pickle",
            _ => {
                return self.wrong(format!(
                    "expected an opcode that graphs are made of, found {opcode:#04x} (`{}`)",
                    char::from(opcode).escape_default()
                ));
            }
        };
        self.refused(format!("expected plain data, found {called}"))
    }

    /// What a name stands for. Nothing is imported: names are compared with those that graphs have.
    fn class(&self, module: &str, name: &str) -> Result<Class, Error> {
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let class = match (module, name) {
            ("fmot.fqir.graph_proto.graph_proto", "GraphProto") => Class::Graph,
            ("fmot.fqir.nodes.node_proto", "NodeProto") => Class::Node,
            ("fmot.fqir.variables.tensor_proto", "TensorProto") => Class::Tensor,
            ("fmot.fqir.nodes.optypes", _) if plain => Class::Operation,
            ("fmot.qat.nn.atomics", "Table") => Class::Table,
            ("fmot.fqir.nodes.opcounters" | "fmot.fqir.runtime_plan", _) if plain => Class::Skipped,
            ("fmot.fqir.nodes.node_base", "NodeReprSettings") => Class::Skipped,
            ("__builtin__" | "builtins", "set") => Class::Set,
            ("numpy", "ndarray") => Class::Array,
            ("numpy", "dtype") => Class::Type,
            ("numpy._core.multiarray" | "numpy.core.multiarray", "_reconstruct") => {
                Class::Reconstruct
            }
            ("numpy._core.multiarray" | "numpy.core.multiarray", "scalar") => Class::Scalar,
            ("_codecs", "encode") => Class::Encode,
            _ => {
                return self.refused(format!(
                    "expected classes that graphs are made of, found `{}`: it is not loaded",
                    full_name(module, name)
                ));
            }
        };
        Ok(class)
    }

    /// An integer of so many bytes, with sign.
    fn long(&mut self, size: usize) -> Result<(), Error> {
        let bytes = self.take(size)?;
        if size > 8 {
            return self.wrong(format!(
                "expected integers of at most 64 bits, found one of {size} bytes"
            ));
        }
        let negative = bytes.last().is_some_and(|b| *b >= 0x80);
        let mut word = [if negative { 0xff } else { 0 }; 8];
        word[..size].copy_from_slice(bytes);
        self.stack.push(Value::Integer(i64::from_le_bytes(word)));
        Ok(())
    }

    fn put(&mut self, slot: usize) -> Result<(), Error> {
        // A pickle fills its slots in order, so that no slot is further than the pickle is long.
        if slot >= self.pickle.len() {
            return self.wrong(format!(
                "expected a slot of the memo below {}, found {slot}",
                self.pickle.len()
            ));
        }
        let Some(value) = self.stack.last().copied() else {
            return self.wrong("expected a value on the stack, found none");
        };
        if slot >= self.memo.len() {
            self.memo.resize(slot + 1, None);
        }
        self.memo[slot] = Some(value);
        Ok(())
    }

    fn append(&mut self, items: Vec<Value<'p>>) -> Result<(), Error> {
        match self.top()? {
            Object::List(list) => list.extend(items),
            _ => return self.wrong("expected a list to append to, found something else"),
        }
        Ok(())
    }

    fn set(&mut self, items: &[Value<'p>]) -> Result<(), Error> {
        let (pairs, rest) = items.as_chunks::<2>();
        if !rest.is_empty() {
            return self.wrong("expected keys and values in pairs, found a key without its value");
        }
        match self.top()? {
            Object::Dict(entries) => {
                entries.extend(pairs.iter().map(|[key, value]| (*key, *value)));
            }
            _ => {
                return self
                    .wrong("expected a dictionary to put entries into, found something else");
            }
        }
        Ok(())
    }

    /// `NEWOBJ`: an object of a class, without arguments.
    fn new_object(&mut self) -> Result<(), Error> {
        let (arguments, class) = (self.pop()?, self.pop()?);
        let empty = self.tuple(arguments).is_some_and(<[_]>::is_empty);
        match self.object(class) {
            Some(Object::Class(class @ (Class::Graph | Class::Node | Class::Tensor | Class::Operation | Class::Table | Class::Skipped))) if empty => {
                let class = *class;
                self.make(Object::Instance(class, None, self.opcode))
            }
            Some(Object::Class(_)) => self.refused("expected an object of a class of graphs, made without arguments, found another call (NEWOBJ)"),
            _ => self.refused("expected a class to make an object of, found something else (NEWOBJ)"),
        }
    }

    /// `REDUCE`: a call of one of a few functions, each of which makes plain data.
    fn call(&mut self) -> Result<(), Error> {
        let (arguments, function) = (self.pop()?, self.pop()?);
        let Some(Object::Class(function)) = self.object(function) else {
            return self.refused("expected a function to call, found something else (REDUCE)");
        };
        let function = *function;
        let Some(arguments) = self.tuple(arguments) else {
            return self.refused("expected a tuple of arguments, found something else (REDUCE)");
        };
        let made = match (function, arguments) {
            (Class::Set, [list]) if matches!(self.object(*list), Some(Object::List(_))) => {
                Object::Skipped
            }
            (Class::Skipped, _) => Object::Skipped,
            (Class::Encode, [Value::Text(text), Value::Text("latin1" | "latin-1")]) => {
                Object::Bytes(text)
            }
            (Class::Reconstruct, [class, shape, _])
                if matches!(self.object(*class), Some(Object::Class(Class::Array)))
                    && self.tuple(*shape) == Some(&[Value::Integer(0)]) =>
            {
                Object::Array(Array::default())
            }
            (Class::Type, [Value::Text(text), ..]) => match Type::parse(text) {
                Ok(of) => Object::Type(of),
                Err(message) => return self.wrong(message),
            },
            (Class::Scalar, [of, bytes]) => {
                let value = self.scalar(*of, *bytes)?;
                self.stack.push(value);
                return Ok(());
            }
            _ => return self.refused(
                "expected a call as numpy and the graphs make it, found other arguments (REDUCE)",
            ),
        };
        self.make(made)
    }

    fn scalar(&self, of: Value<'p>, bytes: Value<'p>) -> Result<Value<'p>, Error> {
        let (Some(Object::Type(of)), Some(Object::Bytes(text))) =
            (self.object(of), self.object(bytes))
        else {
            return self
                .refused("expected a type and bytes for a scalar, found other arguments (REDUCE)");
        };
        let found = decoded(text).and_then(|bytes| {
            if bytes.len() == of.size {
                elements(&bytes, *of)
            } else {
                Err(format!(
                    "expected {} bytes for a scalar, found {}",
                    of.size,
                    bytes.len()
                ))
            }
        });
        match found {
            Ok(Elements::Integers(all)) if all.len() == 1 => Ok(Value::Integer(all[0])),
            Ok(Elements::Reals(all)) if all.len() == 1 => Ok(Value::Real(all[0])),
            Ok(_) => self.wrong("expected one element for a scalar, found another number"),
            Err(message) => self.wrong(message),
        }
    }

    /// `BUILD`: the state of an object.
    fn build(&mut self) -> Result<(), Error> {
        let state = self.pop()?;
        let fields = matches!(self.object(state), Some(Object::Dict(_)));
        let array = self.array_state(state)?;
        let order = match self.tuple(state) {
            Some([Value::Integer(_), Value::Text(order), ..]) => Some(*order),
            _ => None,
        };
        let Value::Object(number) = state else {
            return self.wrong("expected a state of an object, found something else (BUILD)");
        };
        match (self.top()?, array, order) {
            (Object::Skipped | Object::Instance(Class::Skipped, ..), ..) => {}
            (Object::Instance(_, known @ None, _), ..) if fields => *known = Some(number),
            (
                Object::Array(Array {
                    state: known @ None,
                }),
                Some(state),
                _,
            ) => *known = Some(state),
            (Object::Type(of), _, Some(order)) => of.big_endian = order == ">",
            _ => {
                return self.refused(
                    "expected a state of an object as the graphs have it, found another (BUILD)",
                );
            }
        }
        Ok(())
    }

    /// The state of an array: version, shape, type, order, bytes.
    fn array_state(&self, state: Value<'p>) -> Result<Option<State<'p>>, Error> {
        let Some(
            [
                Value::Integer(_),
                shape,
                of,
                Value::Bool(column_order),
                bytes,
            ],
        ) = self.tuple(state)
        else {
            return Ok(None);
        };
        let (Some(shape), Some(Object::Type(of)), Some(Object::Bytes(bytes))) =
            (self.tuple(*shape), self.object(*of), self.object(*bytes))
        else {
            return self.wrong("expected shape, type and bytes of an array, found something else");
        };
        let lengths: Option<Vec<u64>> = shape
            .iter()
            .map(|length| match length {
                Value::Integer(length) => u64::try_from(*length).ok(),
                _ => None,
            })
            .collect();
        let Some(shape) = lengths else {
            return self.wrong("expected lengths from 0 on in the shape of an array, found others");
        };
        match (State {
            shape,
            element: *of,
            column_order: *column_order,
            bytes,
        })
        .checked()
        {
            Ok(state) => Ok(Some(state)),
            Err(message) => self.wrong(message),
        }
    }
}

fn full_name(module: &str, name: &str) -> String {
    format!("{}.{}", shortened(module), shortened(name))
}
