//! Where an instruction comes from: the debug files of the compiler's back end, where they are present.
//!
//! They are protocol buffers. The assembler's file lists the slots of a stream in order (repeated field 3), each with
//! the numbers of the back end's instructions that it was made from (packed field 3). The back end's file lists these
//! (repeated field 3) with number (field 1), name (field 2) and pairs of key and value (field 7), of which
//! `kernel_file` is an index into its table of paths (repeated field 5) and `kernel_line` a line.
//!
//! All of it is optional, and nothing depends on it: what does not parse is skipped.

use crate::read::EngineRoom;

/// Where each slot of a stream comes from.
#[derive(Clone, Debug, Default)]
pub struct DebugInfo<'a> {
    /// By number.
    instructions: Vec<(u64, SourceLine<'a>)>,
    /// The number of each slot's instruction.
    slots: Vec<Option<u64>>,
}

/// Where an instruction comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceLine<'a> {
    /// The back end's name for the instruction.
    pub name: &'a str,
    /// Path of the source; empty where there is none.
    pub file: &'a str,
    /// Line in it; 0 where there is none.
    pub line: u64,
}

impl<'a> DebugInfo<'a> {
    /// Reads the debug files of an engine.
    pub(crate) fn of(room: &EngineRoom<'a>) -> DebugInfo<'a> {
        DebugInfo::read(
            room.assembler_debug.iter().map(|m| m.bytes),
            room.debug.iter().map(|m| m.bytes),
        )
    }

    /// Reads the assembler's files and the back end's files of one engine.
    pub fn read(
        assembler: impl IntoIterator<Item = &'a [u8]>,
        back_end: impl IntoIterator<Item = &'a [u8]>,
    ) -> DebugInfo<'a> {
        let mut info = DebugInfo::default();
        for file in assembler {
            for entry in
                Fields(file).filter_map(|(field, value)| value.bytes().filter(|_| field == 3))
            {
                let ids =
                    Fields(entry).find_map(|(field, value)| value.bytes().filter(|_| field == 3));
                info.slots.push(ids.and_then(|mut ids| varint(&mut ids)));
            }
        }
        for file in back_end {
            let paths: Vec<&str> = Fields(file)
                .filter_map(|(field, value)| value.text().filter(|_| field == 5))
                .collect();
            for entry in
                Fields(file).filter_map(|(field, value)| value.bytes().filter(|_| field == 3))
            {
                info.instructions.push(instruction(entry, &paths));
            }
        }
        info.instructions.sort_by_key(|(id, _)| *id);
        info
    }

    /// Where a slot comes from.
    pub fn slot(&self, index: usize) -> Option<&SourceLine<'a>> {
        let id = (*self.slots.get(index)?)?;
        let position = self
            .instructions
            .binary_search_by_key(&id, |(id, _)| *id)
            .ok()?;
        self.instructions.get(position).map(|(_, line)| line)
    }
}

impl std::fmt::Display for SourceLine<'_> {
    /// `I-72-0 at test.py:58`, as much as there is of it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = self.file.rsplit('/').next().unwrap_or_default();
        match (self.name, file) {
            (name, "") => f.write_str(name),
            ("", file) => write!(f, "{file}:{}", self.line),
            (name, file) => write!(f, "{name} at {file}:{}", self.line),
        }
    }
}

fn instruction<'a>(entry: &'a [u8], paths: &[&'a str]) -> (u64, SourceLine<'a>) {
    let (mut id, mut source) = (0, SourceLine::default());
    for (field, value) in Fields(entry) {
        match (field, value) {
            (1, Value::Integer(n)) => id = n,
            (2, value) => source.name = value.text().unwrap_or_default(),
            (7, Value::Bytes(pair)) => {
                let text = |number| {
                    Fields(pair)
                        .find_map(|(field, value)| value.text().filter(|_| field == number))
                        .unwrap_or_default()
                };
                match text(1) {
                    "kernel_line" => source.line = text(2).parse().unwrap_or_default(),
                    "kernel_file" => {
                        source.file = text(2)
                            .parse()
                            .ok()
                            .and_then(|n: usize| paths.get(n).copied())
                            .unwrap_or_default();
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    (id, source)
}

/// The value of a field of a protocol buffer message.
#[derive(Clone, Copy)]
enum Value<'a> {
    Integer(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn bytes(self) -> Option<&'a [u8]> {
        if let Value::Bytes(bytes) = self {
            Some(bytes)
        } else {
            None
        }
    }

    fn text(self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

/// The fields of a message: number and value. Ends at the first byte that makes no sense.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<(u64, Value<'a>)> {
        let key = varint(&mut self.0)?;
        let value = match key & 7 {
            0 => Value::Integer(varint(&mut self.0)?),
            1 => Value::Bytes(self.0.split_off(..8)?),
            2 => {
                let length = usize::try_from(varint(&mut self.0)?).ok()?;
                Value::Bytes(self.0.split_off(..length)?)
            }
            5 => Value::Bytes(self.0.split_off(..4)?),
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A field with bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    fn files() -> (Vec<u8>, Vec<u8>) {
        let slot = |ids: &[u8]| field(3, &field(3, ids));
        let assembler = [
            field(1, b"about"),
            field(3, b""),
            slot(&[0x9a, 1]),
            slot(&[7]),
            slot(&[9]),
        ]
        .concat();
        let pair = |key: &[u8], value: &[u8]| field(7, &[field(1, key), field(2, value)].concat());
        let first = [
            vec![8, 0x9a, 1],
            field(2, b"I-72-0"),
            pair(b"kernel_file", b"1"),
            pair(b"kernel_line", b"58"),
        ]
        .concat();
        let second = [vec![8, 7], field(2, b"I-87-0")].concat();
        let back_end = [
            field(3, &first),
            field(3, &second),
            field(5, b"/home/a.py"),
            field(5, b"/home/b.py"),
        ]
        .concat();
        (assembler, back_end)
    }

    #[test]
    fn slots_know_their_source() {
        let (assembler, back_end) = files();
        let info = DebugInfo::read([&assembler[..]], [&back_end[..]]);
        assert_eq!(info.slot(0), None);
        assert_eq!(
            info.slot(1).map(ToString::to_string).as_deref(),
            Some("I-72-0 at b.py:58")
        );
        assert_eq!(
            info.slot(2).map(ToString::to_string).as_deref(),
            Some("I-87-0")
        );
        assert_eq!(info.slot(3), None, "the back end has no instruction 9");
        assert_eq!(info.slot(4), None);
    }

    proptest! {
        #[test]
        fn damaged_files_do_no_harm(cut in 0usize..80, at in 0usize..80, byte in any::<u8>()) {
            let (mut assembler, mut back_end) = files();
            back_end.truncate(cut);
            if let Some(b) = assembler.get_mut(at) { *b = byte; }
            if let Some(b) = back_end.get_mut(at) { *b = byte; }
            let info = DebugInfo::read([&assembler[..]], [&back_end[..]]);
            for slot in 0..8 {
                let _ = info.slot(slot).map(ToString::to_string);
            }
        }
    }
}
