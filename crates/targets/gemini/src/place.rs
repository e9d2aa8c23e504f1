//! JSON pointer, line and column of offsets in a text: worked out only for what is shown.

use crate::json::{MAX_DEPTH, Reader};
use chipless_model::{Place, Text};
use std::collections::HashMap;
use std::fmt::Write;

/// The place of an offset, as people and editors find it: the JSON pointer, line and column.
pub(crate) fn place(text: &str, offset: usize) -> Place {
    at(&Text::new(text), offset, &pointer(text, offset))
}

fn at(text: &Text<'_>, offset: usize, pointer: &str) -> Place {
    Place::bytes(offset as u64, 0)
        .in_text(text, offset)
        .at(if pointer.is_empty() { "/" } else { pointer })
}

/// The places of values, by the offsets at which they begin: one walk over the text for all of them.
pub(crate) fn places(text: &str, mut offsets: Vec<usize>) -> HashMap<usize, Place> {
    offsets.sort_unstable();
    offsets.dedup();
    let mut walk = Walk {
        reader: Reader::new(text, 0),
        path: String::new(),
        left: offsets.into_iter().peekable(),
        text: Text::new(text),
        found: HashMap::new(),
    };
    // Stops at the last offset, which is no fault.
    let _ = walk.value(0);
    walk.found
}

/// A walk that stops at each wanted offset.
struct Walk<'a> {
    reader: Reader<'a>,
    path: String,
    left: std::iter::Peekable<std::vec::IntoIter<usize>>,
    text: Text<'a>,
    found: HashMap<usize, Place>,
}

impl Walk<'_> {
    fn value(&mut self, depth: u32) -> Result<(), ()> {
        let first = self.reader.peek();
        let here = self.reader.offset();
        while let Some(&wanted) = self.left.peek() {
            if wanted > here {
                break;
            }
            self.left.next();
            self.found.insert(wanted, at(&self.text, here, &self.path));
        }
        if self.left.peek().is_none() || depth >= MAX_DEPTH {
            return Err(());
        }
        let length = self.path.len();
        match first {
            Some(b'{') => {
                let mut object = self.reader.object().map_err(drop)?;
                while let Some(key) = self.reader.key(&mut object).map_err(drop)? {
                    push_key(&mut self.path, &key);
                    self.value(depth + 1)?;
                    self.path.truncate(length);
                }
            }
            Some(b'[') => {
                let mut list = self.reader.list().map_err(drop)?;
                let mut index = 0;
                while self.reader.item(&mut list).map_err(drop)? {
                    let _ = write!(self.path, "/{index}");
                    self.value(depth + 1)?;
                    self.path.truncate(length);
                    index += 1;
                }
            }
            _ => self.reader.skip().map_err(drop)?,
        }
        Ok(())
    }
}

/// The JSON pointer of the innermost value that an offset lies in or at the start of. The text up to the offset may end
/// anywhere.
pub(crate) fn pointer(text: &str, offset: usize) -> String {
    let mut reader = Reader::new(text, 0);
    let mut path = String::new();
    // A fault ends the walk at the place that it is about.
    let _ = descend(&mut reader, offset, &mut path, 0);
    path
}

/// Walks the value at the reader; `Err` once the offset is reached, with the path complete.
fn descend(
    reader: &mut Reader<'_>,
    offset: usize,
    path: &mut String,
    depth: u32,
) -> Result<(), ()> {
    let first = reader.peek();
    if reader.offset() >= offset || depth >= MAX_DEPTH {
        return Err(());
    }
    let length = path.len();
    match first {
        Some(b'{') => {
            let mut object = reader.object().map_err(drop)?;
            while let Some(key) = reader.key(&mut object).map_err(drop)? {
                push_key(path, &key);
                descend(reader, offset, path, depth + 1)?;
                if reader.offset() > offset {
                    return Err(());
                }
                path.truncate(length);
            }
        }
        Some(b'[') => {
            let mut list = reader.list().map_err(drop)?;
            let mut index = 0;
            while reader.item(&mut list).map_err(drop)? {
                let _ = write!(path, "/{index}");
                descend(reader, offset, path, depth + 1)?;
                if reader.offset() > offset {
                    return Err(());
                }
                path.truncate(length);
                index += 1;
            }
        }
        _ => reader.skip().map_err(drop)?,
    }
    Ok(())
}

/// Keys of the top-level object with the first byte of their values, as far as the text goes.
pub(crate) fn top_keys(text: &str) -> Vec<(String, u8)> {
    let mut keys = Vec::new();
    let mut reader = Reader::new(text, 0);
    let mut walk = || -> crate::json::Result<()> {
        let mut top = reader.object()?;
        while let Some(key) = reader.key(&mut top)? {
            keys.push((key.into_owned(), reader.peek().unwrap_or(0)));
            reader.skip()?;
        }
        Ok(())
    };
    // The text may end anywhere.
    let _ = walk();
    keys
}

/// Keys of the objects in the top-level object, as far as the text goes.
pub(crate) fn second_level_keys(text: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let mut reader = Reader::new(text, 0);
    let mut walk = || -> crate::json::Result<()> {
        let mut top = reader.object()?;
        while reader.key(&mut top)?.is_some() {
            let mut inner = reader.object()?;
            while let Some(key) = reader.key(&mut inner)? {
                keys.push(key.into_owned());
                reader.skip()?;
            }
        }
        Ok(())
    };
    // The text may end anywhere.
    let _ = walk();
    keys
}

/// Appends a key to a JSON pointer (RFC 6901: `~` and `/` are escaped).
fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    for c in key.chars().take(100) {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_have_pointers() {
        let text = "{\"a\": [1, {\"b/c\": 2}],\n \"d\": tru";
        let at = |what: &str| place(text, text.find(what).unwrap()).to_string();
        assert_eq!(at("{"), "/, line 1, column 1");
        assert_eq!(at("[1"), "/a, line 1, column 7");
        assert_eq!(at("{\"b"), "/a/1, line 1, column 11");
        assert_eq!(at("2}"), "/a/1/b~1c, line 1, column 19");
        assert_eq!(at("tru"), "/d, line 2, column 7");
        assert_eq!(place(text, text.len()).to_string(), "/d, line 2, column 10");
    }
}
