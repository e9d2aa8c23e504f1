//! Headers of `.npy` files, as numpy's format description (`numpy.lib.format`) has them: a magic number, a version, a length, and the text of
//! a Python dictionary with the keys `descr`, `fortran_order` and `shape`.
//!
//! They are read here and not by a crate: the types of `ml_dtypes` (`bfloat16`, the 8-bit floats) are part of what users bring, and the crates that
//! read headers refuse them, take time that doubles with each bracket, and bring a parser generator of seventeen crates with them, which was a
//! twelfth of the time to build a first answer.

use chipless_model::{ElementType, Kind};

/// What every file begins with.
pub const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Bytes of a header's text at most. Those of plain arrays have 118.
const TEXT_LIMIT: usize = 1 << 16;

/// Brackets within brackets of a structured type; one within another has six.
const DEPTH_LIMIT: usize = 8;

/// What the elements of an array are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumpyKind {
    /// `b`
    Bool,
    /// `i`
    Signed,
    /// `u`
    Unsigned,
    /// `f`
    Float,
    /// `V`, and what only array libraries know: bits.
    Raw,
    /// Complex numbers, times, texts, Python objects.
    Other,
}

/// The type of an array's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumpyType {
    /// What they are.
    pub kind: NumpyKind,
    /// Bytes of one; for texts and times, what stands behind the letter.
    pub size: u64,
    /// Whether the most significant byte comes first.
    pub is_big_endian: bool,
    /// As the header has it: `<f4`.
    pub text: String,
}

/// What is in front of an array's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type of the elements; `None` where each has several fields.
    pub element: Option<NumpyType>,
    /// Whether the first index is the fastest.
    pub is_by_columns: bool,
    /// Dimensions, outermost first.
    pub shape: Vec<u64>,
}

/// Why bytes are no `.npy` file, or no header of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// They begin otherwise, or end within the first ten.
    #[error("expected an .npy file (93 4e 55 4d 50 59 …)")]
    NotNpy,
    /// The header.
    #[error("{0}")]
    Wrong(String),
}

/// How numpy knows an element type: kind and bytes. Types of less than a byte travel as one.
pub fn numpy_type(element: ElementType) -> (NumpyKind, u64) {
    let bytes = (element.bits() / 8).max(1);
    let kind = match (element, element.kind()) {
        (ElementType::Bool, _) => NumpyKind::Bool,
        (ElementType::Float64 | ElementType::Float32 | ElementType::Float16, _) => NumpyKind::Float,
        (_, Kind::Float) => NumpyKind::Raw,
        (_, Kind::Signed) => NumpyKind::Signed,
        (_, Kind::Unsigned) => NumpyKind::Unsigned,
    };
    (kind, bytes)
}

impl NumpyType {
    /// From `<f4`, `|u1`, or the name of a type that only array libraries know.
    fn parse(text: &str) -> Option<NumpyType> {
        let known = |kind, size, is_big_endian| NumpyType {
            kind,
            size,
            is_big_endian,
            text: text.to_owned(),
        };
        let named = ElementType::ALL.iter().map(|e| (e, numpy_type(*e)));
        if let Some((_, (kind, size))) = named
            .filter(|(_, (kind, _))| *kind == NumpyKind::Raw)
            .find(|(element, _)| element.name() == text)
        {
            return Some(known(kind, size, false));
        }
        let (is_big_endian, rest) = match text.strip_prefix('>') {
            Some(rest) => (true, rest),
            None => (false, text.trim_start_matches(['<', '|', '='])),
        };
        let mut letters = rest.chars();
        let letter = letters.next()?;
        // The unit of a time stands behind its size.
        let size = letters.as_str().split('[').next()?;
        let size = match (letter, size) {
            ('O', "") => 8,
            _ => size.parse().ok()?,
        };
        let kind = match letter {
            'b' => NumpyKind::Bool,
            'i' => NumpyKind::Signed,
            'u' => NumpyKind::Unsigned,
            // ml_dtypes writes float8_e5m2 as a float of one byte.
            'f' if size == 1 => NumpyKind::Raw,
            'f' => NumpyKind::Float,
            'V' => NumpyKind::Raw,
            'c' | 'm' | 'M' | 'S' | 'U' | 'O' => NumpyKind::Other,
            _ => return None,
        };
        Some(known(kind, size, is_big_endian))
    }
}

/// The header of a file, and the bytes behind it.
///
/// # Errors
/// Bytes that are no `.npy` file; a header beyond 64 KiB, or one that is not as numpy's format says.
pub fn read(file: &[u8]) -> Result<(Header, &[u8]), HeaderError> {
    let wrong = |text: String| Err(HeaderError::Wrong(text));
    let rest = file.strip_prefix(MAGIC).ok_or(HeaderError::NotNpy)?;
    let (length, start) = match *rest {
        [1, _, a, b, ..] => (usize::from(u16::from_le_bytes([a, b])), 10),
        [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([a, b, c, d]) as usize, 12),
        [major, minor, ..] if major > 3 || major == 0 => {
            return wrong(format!(
                "expected version 1, 2 or 3 of the .npy format, found {major}.{minor}"
            ));
        }
        _ => return Err(HeaderError::NotNpy),
    };
    if length > TEXT_LIMIT {
        return wrong(format!(
            "expected a header of at most {TEXT_LIMIT} bytes, found {length}"
        ));
    }
    let Some((head, data)) = file.split_at_checked(start + length) else {
        return wrong(format!(
            "expected a header of {length} bytes, found the end of the file"
        ));
    };
    let text = String::from_utf8_lossy(&head[start..]);
    let mut parser = Parser {
        text: &text,
        at: 0,
        start,
    };
    let header = parser.header().map_err(|error| {
        HeaderError::Wrong(format!("its header is not one of an .npy file: {error}"))
    })?;
    Ok((header, data))
}

/// The header in front of elements of this type, least significant byte first and row by row. Its length is a multiple of 64 bytes.
pub fn write(kind: NumpyKind, size: u64, shape: &[u64]) -> Vec<u8> {
    let letter = match kind {
        NumpyKind::Bool => 'b',
        NumpyKind::Signed => 'i',
        NumpyKind::Unsigned => 'u',
        NumpyKind::Float => 'f',
        NumpyKind::Raw | NumpyKind::Other => 'V',
    };
    let order = if size == 1 { '|' } else { '<' };
    let dimensions: Vec<String> = shape.iter().map(u64::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let mut text = format!(
        "{{'descr': '{order}{letter}{size}', 'fortran_order': False, 'shape': ({}{comma}), }}",
        dimensions.join(", ")
    );
    let fits = |start: usize| (start + text.len() + 1).next_multiple_of(64) - start;
    let (version, start) = if fits(10) > usize::from(u16::MAX) {
        (2, 12)
    } else {
        (1, 10)
    };
    let length = fits(start);
    let bytes = (length as u32).to_le_bytes();
    text.push_str(&" ".repeat(length - text.len() - 1));
    text.push('\n');
    let mut header = [&MAGIC[..], &[version, 0], &bytes[..start - 8]].concat();
    header.extend_from_slice(text.as_bytes());
    header
}

/// Where a reader of a header's text is.
struct Parser<'t> {
    text: &'t str,
    at: usize,
    /// Where the text begins in the file.
    start: usize,
}

impl Parser<'_> {
    fn header(&mut self) -> Result<Header, String> {
        let (mut element, mut is_by_columns, mut shape) = (None, None, None);
        self.expect('{')?;
        while !self.takes('}') {
            let place = self.place();
            let is_new = match self.quoted()?.as_str() {
                "descr" => element.replace(self.value(Self::element)?).is_none(),
                "fortran_order" => is_by_columns.replace(self.value(Self::truth)?).is_none(),
                "shape" => shape.replace(self.value(Self::shape)?).is_none(),
                other => {
                    return Err(format!(
                        "expected descr, fortran_order or shape at offset {place}, found '{other}'"
                    ));
                }
            };
            if !is_new {
                return Err(format!(
                    "expected each key once, found one again at offset {place}"
                ));
            }
            if !self.takes(',') && self.peek() != Some('}') {
                return Err(self.expected("',' or '}'"));
            }
        }
        if self.peek().is_some() {
            return Err(self.expected("the end of the header"));
        }
        let lacking = |key: &str| format!("expected a key '{key}', found none");
        Ok(Header {
            element: element.ok_or_else(|| lacking("descr"))?,
            is_by_columns: is_by_columns.ok_or_else(|| lacking("fortran_order"))?,
            shape: shape.ok_or_else(|| lacking("shape"))?,
        })
    }

    fn value<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        self.expect(':')?;
        read(self)
    }

    /// A type; `None` for one of several fields.
    fn element(&mut self) -> Result<Option<NumpyType>, String> {
        if matches!(self.peek(), Some('[' | '(')) {
            return self.fields().map(|()| None);
        }
        let place = self.place();
        let text = self.quoted()?;
        let found = NumpyType::parse(&text);
        let found = found.ok_or_else(|| {
            format!("expected a type of numpy such as '<f4' at offset {place}, found '{text}'")
        })?;
        Ok(Some(found))
    }

    /// Passes over brackets and what is in them.
    fn fields(&mut self) -> Result<(), String> {
        let mut open = Vec::new();
        loop {
            match self.peek() {
                Some('\'' | '"') => {
                    self.quoted()?;
                    continue;
                }
                Some(bracket @ ('[' | '(')) => {
                    open.push(if bracket == '[' { ']' } else { ')' });
                    if open.len() > DEPTH_LIMIT {
                        return Err(format!(
                            "expected at most {DEPTH_LIMIT} brackets within brackets, found more at offset {}",
                            self.place()
                        ));
                    }
                }
                Some(bracket @ (']' | ')')) if open.last() == Some(&bracket) => {
                    open.pop();
                }
                Some('0'..='9' | ',') => {}
                _ => return Err(self.expected("a field of a structured type")),
            }
            self.at += 1;
            if open.is_empty() {
                return Ok(());
            }
        }
    }

    fn truth(&mut self) -> Result<bool, String> {
        self.peek();
        for (word, value) in [("True", true), ("False", false)] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.expected("True or False"))
    }

    fn shape(&mut self) -> Result<Vec<u64>, String> {
        let mut shape = Vec::new();
        self.expect('(')?;
        while !self.takes(')') {
            self.peek();
            let rest = &self.text[self.at..];
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let Ok(dimension) = rest[..digits].parse() else {
                return Err(self.expected("a dimension"));
            };
            shape.push(dimension);
            self.at += digits;
            // Python 2 wrote long integers so.
            self.takes('L');
            if !self.takes(',') && self.peek() != Some(')') {
                return Err(self.expected("',' or ')'"));
            }
        }
        Ok(shape)
    }

    /// A text in quotes; those of headers have no escapes.
    fn quoted(&mut self) -> Result<String, String> {
        let Some(quote @ ('\'' | '"')) = self.peek() else {
            return Err(self.expected("a text in quotes"));
        };
        let rest = &self.text[self.at + 1..];
        let Some(end) = rest.find(quote) else {
            return Err(format!(
                "expected the end of the text that begins at offset {}",
                self.place()
            ));
        };
        self.at += end + 2;
        Ok(rest[..end].to_owned())
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.takes(wanted) {
            return Ok(());
        }
        Err(self.expected(&format!("'{wanted}'")))
    }

    fn takes(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        if is_there {
            self.at += wanted.len_utf8();
        }
        is_there
    }

    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn place(&mut self) -> usize {
        self.peek();
        self.start + self.at
    }

    fn expected(&mut self, what: &str) -> String {
        let found = self.peek();
        let found = found.map_or_else(|| "its end".to_owned(), |c| format!("'{c}'"));
        format!("expected {what} at offset {}, found {found}", self.place())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(text: &str) -> Vec<u8> {
        let length = u16::try_from(text.len()).unwrap().to_le_bytes();
        [&MAGIC[..], &[1, 0], &length, text.as_bytes()].concat()
    }

    fn said(text: &str) -> String {
        let said = read(&file(text)).unwrap_err().to_string();
        said.replace("its header is not one of an .npy file: ", "")
    }

    #[test]
    fn what_numpy_writes_is_read() {
        // Of numpy 2.3: a scalar, a vector by Python 2, a structured type within another, a time.
        let header = |text: &str| read(&file(text)).unwrap().0;
        let scalar = header("{'descr': '<f8', 'fortran_order': False, 'shape': (), }   \n");
        assert!(scalar.shape.is_empty() && !scalar.is_by_columns);
        let old = header("{'descr': '>i4', 'fortran_order': True, 'shape': (3L,), }");
        assert_eq!((old.shape, old.is_by_columns), (vec![3], true));
        assert!(old.element.is_some_and(|element| element.is_big_endian));
        let fields = header(
            "{'descr': [('a', [('b', '<f2', (2, 3)), ('c]', '<i4')])], 'fortran_order': False, 'shape': (2,), }",
        );
        assert_eq!(fields.element, None);
        let time = header("{\"shape\": (1, 2,), \"fortran_order\": False, \"descr\": \"<M8[ns]\"}");
        assert!(
            time.element
                .is_some_and(|e| (e.kind, e.size) == (NumpyKind::Other, 8))
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        assert_eq!(said(""), "expected '{' at offset 10, found its end");
        assert_eq!(
            said("{'descr': '<f4', 'fortran_order': 0, 'shape': ()}"),
            "expected True or False at offset 44, found '0'"
        );
        assert_eq!(
            said("{'descr': '<q4', 'fortran_order': False, 'shape': ()}"),
            "expected a type of numpy such as '<f4' at offset 20, found '<q4'"
        );
        assert_eq!(
            said("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
            "expected a dimension at offset 61, found '-'"
        );
        assert_eq!(
            said("{'descr': '<f4', 'fortran_order': False}"),
            "expected a key 'shape', found none"
        );
        assert_eq!(
            said("{'shape': (), 'shape': ()}"),
            "expected each key once, found one again at offset 24"
        );
        assert_eq!(
            said("{'shape': (18446744073709551616,)}"),
            "expected a dimension at offset 21, found '1'"
        );
        assert_eq!(
            said(&format!("{{'descr': {}", "(0, [".repeat(30))),
            "expected at most 8 brackets within brackets, found more at offset 40"
        );
        assert_eq!(
            said("{'descr': '<f4"),
            "expected the end of the text that begins at offset 20"
        );
    }

    proptest! {
        #[test]
        fn headers_come_back(
            kind in prop::sample::select(vec![NumpyKind::Bool, NumpyKind::Signed, NumpyKind::Unsigned, NumpyKind::Float, NumpyKind::Raw]),
            size in prop::sample::select(vec![2u64, 4, 8]),
            shape in prop::collection::vec(0..=u64::MAX, 0..6),
        ) {
            let written = write(kind, size, &shape);
            prop_assert_eq!(written.len() % 64, 0);
            let (header, data) = read(&written).unwrap();
            prop_assert!(data.is_empty() && !header.is_by_columns);
            prop_assert_eq!(header.shape, shape);
            let element = header.element.unwrap();
            prop_assert_eq!((element.kind, element.size, element.is_big_endian), (kind, size, false));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[{}()\\[\\]':, TFruealsdchpo_nrt0-9<f\u{e9}\n]{0,60}") {
            let _ = read(&file(&text));
        }
    }
}
