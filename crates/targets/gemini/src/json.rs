//! A pull reader for JSON: typed, borrowed, with the offset of everything.
//!
//! General JSON libraries give values without their places, or cost a second pass for them; schedules of hundreds of
//! megabytes are read by this one in a single pass, and every entry and every error knows its offset. JSON pointer, line
//! and column are worked out from the text when somebody asks (see [`place`](crate::place)).

use std::borrow::Cow;

/// Levels of nesting that a document may have.
pub(crate) const MAX_DEPTH: u32 = 64;
/// Characters of a value that an error quotes.
const QUOTED: usize = 40;

/// What kind of fault stops reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// No JSON.
    Syntax,
    /// A value of another type or outside its range.
    Value,
    /// A key that must be there is not.
    Missing,
    /// A key stands twice.
    Duplicate,
    /// A key of another dialect.
    Dialect,
    /// More than the limits allow.
    Limit,
}

/// What stops reading, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    pub(crate) at: usize,
    pub(crate) message: String,
}

pub(crate) type Result<T> = std::result::Result<T, Box<Fault>>;

/// A position in a document.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

/// Where a reader is in an object or array.
#[derive(Debug)]
pub(crate) struct Cursor {
    first: bool,
    /// Offset of the opening bracket.
    pub(crate) at: usize,
}

impl<'a> Reader<'a> {
    /// A reader at an offset of a text.
    pub(crate) fn new(text: &'a str, at: usize) -> Reader<'a> {
        Reader { text, at, depth: 0 }
    }

    /// Offset of the next byte.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// The text between two offsets.
    pub(crate) fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Goes to the next byte that is no white space, and shows it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let found = self.byte();
        if found.is_some_and(|byte| byte <= b' ') {
            self.space()
        } else {
            found
        }
    }

    /// Passes white space; indentation is most of what pretty printers write.
    fn space(&mut self) -> Option<u8> {
        const SPACES: u64 = u64::from_le_bytes([b' '; 8]);
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                found => return found.copied(),
            }
            while let Some(next) = bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
                let other = u64::from_le_bytes(*next) ^ SPACES;
                self.at += other.trailing_zeros() as usize / 8;
                if other != 0 {
                    break;
                }
            }
        }
    }

    /// A fault at an offset.
    #[cold]
    #[expect(
        clippy::unused_self,
        reason = "a fault is something that a reader finds"
    )]
    pub(crate) fn fault_at<T>(
        &self,
        at: usize,
        kind: FaultKind,
        message: impl Into<String>,
    ) -> Result<T> {
        Err(Box::new(Fault {
            kind,
            at,
            message: message.into(),
        }))
    }

    /// A fault here: what was expected, and what stands there. Text that ends or is no value at all is a fault of syntax.
    #[cold]
    pub(crate) fn expected<T>(&mut self, what: &str) -> Result<T> {
        let kind = match self.peek() {
            Some(b'"' | b'{' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => FaultKind::Value,
            _ => FaultKind::Syntax,
        };
        let message = format!("expected {what}, found {}", self.found());
        self.fault_at(self.at, kind, message)
    }

    /// What stands here, for people.
    fn found(&mut self) -> String {
        match self.peek() {
            None => "the end of the file".to_owned(),
            Some(b'{') => "an object".to_owned(),
            Some(b'[') => "a list".to_owned(),
            Some(b'"') => match self.clone().string() {
                Ok(text) => format!("\"{}\"", text.chars().take(QUOTED).collect::<String>()),
                Err(_) => "a string that does not end".to_owned(),
            },
            Some(_) => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                let end = rest
                    .find(|c: char| c.is_whitespace() || ",]}".contains(c))
                    .unwrap_or(rest.len());
                let word: String = rest[..end].chars().take(QUOTED).collect();
                // Space to Unicode, but not to JSON.
                if word.is_empty() {
                    format!(
                        "`{}`",
                        rest.chars().take(1).collect::<String>().escape_debug()
                    )
                } else {
                    word
                }
            }
        }
    }

    fn enter(&mut self, open: u8, what: &str) -> Result<Cursor> {
        if self.peek() != Some(open) {
            return self.expected(what);
        }
        let at = self.at;
        self.at += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fault_at(
                at,
                FaultKind::Limit,
                format!("the document is nested deeper than {MAX_DEPTH} levels"),
            );
        }
        Ok(Cursor { first: true, at })
    }

    /// Goes to the next item; `false` at the end, which it passes.
    #[inline]
    fn advance(&mut self, cursor: &mut Cursor, close: u8, what: &str) -> Result<bool> {
        let found = self.peek();
        if found == Some(close) {
            self.at += 1;
            self.depth -= 1;
            return Ok(false);
        }
        if !std::mem::take(&mut cursor.first) {
            if found != Some(b',') {
                return self.syntax(what);
            }
            self.at += 1;
            if self.peek() == Some(close) {
                return self.syntax("a value after the comma");
            }
        }
        Ok(true)
    }

    /// A fault of syntax here.
    #[cold]
    pub(crate) fn syntax<T>(&mut self, what: &str) -> Result<T> {
        self.peek();
        let message = format!("expected {what}, found {}", self.found());
        self.fault_at(self.at, FaultKind::Syntax, message)
    }

    /// Enters an object.
    pub(crate) fn object(&mut self) -> Result<Cursor> {
        self.enter(b'{', "an object")
    }

    /// The next key of an object; `None` at its end.
    #[inline]
    pub(crate) fn key(&mut self, object: &mut Cursor) -> Result<Option<Cow<'a, str>>> {
        if !self.advance(object, b'}', "`,` or `}`")? {
            return Ok(None);
        }
        if self.peek() != Some(b'"') {
            return self.syntax("a key in quotes");
        }
        let key = self.string()?;
        if self.peek() != Some(b':') {
            return self.syntax("`:`");
        }
        self.at += 1;
        Ok(Some(key))
    }

    /// Enters a list.
    pub(crate) fn list(&mut self) -> Result<Cursor> {
        self.enter(b'[', "a list")
    }

    /// Whether a list has another item.
    #[inline]
    pub(crate) fn item(&mut self, list: &mut Cursor) -> Result<bool> {
        self.advance(list, b']', "`,` or `]`")
    }

    /// Reads a list item by item.
    pub(crate) fn each(&mut self, mut read: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let mut list = self.list()?;
        while self.item(&mut list)? {
            read(self)?;
        }
        Ok(())
    }

    /// Passes a comma.
    pub(crate) fn comma(&mut self) -> Result<()> {
        if self.peek() != Some(b',') {
            return self.syntax("`,`");
        }
        self.at += 1;
        Ok(())
    }

    /// A list of exactly `N` items.
    pub(crate) fn array<T: Copy + Default, const N: usize>(
        &mut self,
        read: impl Fn(&mut Self) -> Result<T>,
    ) -> Result<[T; N]> {
        let mut items = [T::default(); N];
        let mut list = self.list()?;
        let mut count = 0;
        while self.item(&mut list)? {
            let value = read(self)?;
            if let Some(slot) = items.get_mut(count) {
                *slot = value;
            }
            count += 1;
        }
        if count != N {
            return self.fault_at(
                list.at,
                FaultKind::Value,
                format!("expected a list of {N} numbers, found {count}"),
            );
        }
        Ok(items)
    }

    /// A value that a slot gets once.
    #[inline]
    pub(crate) fn put<T>(
        &mut self,
        slot: &mut Option<T>,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<()> {
        if slot.is_some() {
            self.peek();
            return self.fault_at(
                self.at,
                FaultKind::Duplicate,
                "expected each key once, found it a second time",
            );
        }
        *slot = Some(read(self)?);
        Ok(())
    }

    /// Passes `null`; `false` if something else stands here.
    pub(crate) fn null(&mut self) -> Result<bool> {
        if self.peek() != Some(b'n') {
            return Ok(false);
        }
        self.word("null")?;
        Ok(true)
    }

    fn word(&mut self, word: &str) -> Result<()> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return self.syntax(&format!("`{word}`"));
        }
        self.at += word.len();
        Ok(())
    }

    /// `true` or `false`.
    pub(crate) fn bool(&mut self) -> Result<bool> {
        match self.peek() {
            Some(b't') => self.word("true").map(|()| true),
            Some(b'f') => self.word("false").map(|()| false),
            _ => self.expected("true or false"),
        }
    }

    /// A string.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return self.expected("a string");
        }
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut end = start;
        while let Some(next) = bytes.get(end..).and_then(<[u8]>::first_chunk) {
            let special = special(u64::from_le_bytes(*next));
            end += special.trailing_zeros() as usize / 8;
            if special != 0 {
                break;
            }
        }
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => return self.escaped(start, end),
                Some(0..0x20) => {
                    return self.fault_at(
                        end,
                        FaultKind::Syntax,
                        "expected a string, found a control character in it",
                    );
                }
                Some(_) => end += 1,
                None => {
                    return self.fault_at(
                        end,
                        FaultKind::Syntax,
                        "expected the end of a string, found the end of the file",
                    );
                }
            }
        }
        self.at = end + 1;
        Ok(Cow::Borrowed(&self.text[start..end]))
    }

    /// The rest of a string that has escapes; `serde_json` knows them all.
    #[cold]
    fn escaped(&mut self, start: usize, mut end: usize) -> Result<Cow<'a, str>> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
                None => {
                    return self.fault_at(
                        bytes.len(),
                        FaultKind::Syntax,
                        "expected the end of a string, found the end of the file",
                    );
                }
            }
        }
        match self
            .text
            .get(start - 1..=end)
            .and_then(|quoted| serde_json::from_str::<String>(quoted).ok())
        {
            Some(text) => {
                self.at = end + 1;
                Ok(Cow::Owned(text))
            }
            None => self.fault_at(
                start - 1,
                FaultKind::Syntax,
                "expected a string, found an escape that JSON does not have",
            ),
        }
    }

    /// The text of a number, and whether it is a plain whole one.
    #[inline]
    fn number(&mut self) -> Result<(&'a str, bool)> {
        let start = match self.peek() {
            Some(b'-' | b'0'..=b'9') => self.at,
            _ => return self.expected("a number"),
        };
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        let first = self.at;
        self.digits();
        let mut legal =
            self.at > first && (self.at == first + 1 || self.text.as_bytes()[first] != b'0');
        let mut whole = true;
        if self.byte() == Some(b'.') {
            whole = false;
            self.at += 1;
            let from = self.at;
            self.digits();
            legal &= self.at > from;
        }
        if let Some(b'e' | b'E') = self.byte() {
            whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            let from = self.at;
            self.digits();
            legal &= self.at > from;
        }
        if !legal {
            self.at = start;
            return self.syntax("a number");
        }
        Ok((&self.text[start..self.at], whole))
    }

    #[inline]
    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.byte() {
            self.at += 1;
        }
    }

    /// A whole number of at most `most`.
    #[inline]
    pub(crate) fn integer(&mut self, most: u64) -> Result<u64> {
        // The common case: a few plain digits.
        if let Some(first @ b'0'..=b'9') = self.peek() {
            let bytes = self.text.as_bytes();
            let mut value = u64::from(first - b'0');
            let mut at = self.at + 1;
            while let Some(digit @ b'0'..=b'9') = bytes.get(at)
                && at - self.at < 19
            {
                value = value * 10 + u64::from(digit - b'0');
                at += 1;
            }
            let leading_zero = first == b'0' && at > self.at + 1;
            if !matches!(bytes.get(at), Some(b'0'..=b'9' | b'.' | b'e' | b'E'))
                && value <= most
                && !leading_zero
            {
                self.at = at;
                return Ok(value);
            }
        }
        self.odd_integer(most)
    }

    #[cold]
    fn odd_integer(&mut self, most: u64) -> Result<u64> {
        let what = format!("a whole number from 0 to {most}");
        if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return self.expected(&what);
        }
        let start = self.at;
        let (text, whole) = self.number()?;
        let value = if whole {
            text.parse().ok().or((text == "-0").then_some(0))
        } else {
            // Writers in languages without integers give 3.0.
            text.parse::<f64>()
                .ok()
                .filter(|v| v.fract() == 0.0 && (0.0..=9e15).contains(v))
                .map(|v| v as u64)
        };
        if let Some(value) = value.filter(|v| *v <= most) {
            Ok(value)
        } else {
            let found: String = text.chars().take(QUOTED).collect();
            self.fault_at(
                start,
                FaultKind::Value,
                format!("expected {what}, found {found}"),
            )
        }
    }

    /// A whole number of 32 bits.
    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(self.integer(u64::from(u32::MAX))? as u32)
    }

    /// A count or a size: below 2^53, which every JSON reader keeps exactly.
    #[inline]
    pub(crate) fn size(&mut self) -> Result<u64> {
        self.integer(1 << 53)
    }

    /// A number.
    pub(crate) fn f64(&mut self) -> Result<f64> {
        let start = self.at;
        let (text, _) = self.number()?;
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            _ => self.fault_at(
                start,
                FaultKind::Value,
                format!("expected a number that fits 64 bits, found {text}"),
            ),
        }
    }

    /// Passes an object by counting braces, those in strings too: quick, and right for nearly every file.
    pub(crate) fn pass_braces(&mut self) -> Result<()> {
        let mut depth = 0u32;
        for at in memchr::memchr2_iter(b'{', b'}', &self.text.as_bytes()[self.at..]) {
            let at = self.at + at;
            if self.text.as_bytes()[at] == b'{' {
                depth += 1;
            } else {
                depth = depth.saturating_sub(1);
            }
            if depth == 0 {
                self.at = at + 1;
                return Ok(());
            }
        }
        self.fault_at(
            self.text.len(),
            FaultKind::Syntax,
            "expected `}`, found the end of the file",
        )
    }

    /// Passes any value.
    pub(crate) fn skip(&mut self) -> Result<()> {
        match self.peek() {
            Some(b'{') => {
                let mut object = self.object()?;
                while self.key(&mut object)?.is_some() {
                    self.skip()?;
                }
                Ok(())
            }
            Some(b'[') => self.each(Self::skip),
            Some(b'"') => self.string().map(drop),
            Some(b't' | b'f') => self.bool().map(drop),
            Some(b'n') => self.word("null"),
            Some(b'-' | b'0'..=b'9') => self.number().map(drop),
            _ => self.syntax("a value"),
        }
    }
}

/// Marks the first of eight bytes, from the lowest on, that is a quote, a backslash or a control character; marks behind it
/// mean nothing.
fn special(bytes: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    let below = |bytes: u64, limit: u64| bytes.wrapping_sub(ONES * limit) & !bytes & HIGH;
    let is = |byte: u8| below(bytes ^ (ONES * u64::from(byte)), 1);
    is(b'"') | is(b'\\') | below(bytes, 0x20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn skip(text: &str) -> Result<usize> {
        let mut reader = Reader::new(text, 0);
        reader.skip()?;
        reader.peek();
        Ok(reader.offset())
    }

    #[test]
    fn numbers_are_exact_or_refused() {
        let read = |text: &str| Reader::new(text, 0).u32().map_err(|f| (f.kind, f.message));
        assert_eq!(read("0"), Ok(0));
        assert_eq!(read(" 4294967295,"), Ok(u32::MAX));
        assert_eq!(read("3.0"), Ok(3));
        assert_eq!(read("1e3"), Ok(1000));
        for wrong in [
            "0.5",
            "-1",
            "4294967296",
            "99999999999999999999999999",
            "1e30",
            "\"1\"",
            "null",
            "[1]",
        ] {
            assert_eq!(read(wrong).unwrap_err().0, FaultKind::Value, "{wrong}");
        }
        for wrong in ["01", "1.", "-", "1e", "", "}"] {
            assert_eq!(read(wrong).unwrap_err().0, FaultKind::Syntax, "{wrong}");
        }
        assert_eq!(
            read("-5").unwrap_err().1,
            "expected a whole number from 0 to 4294967295, found -5"
        );
    }

    proptest! {
        /// What is JSON and what is not agrees with `serde_json`, but for the depth of nesting.
        #[test]
        fn same_language_as_serde_json(text in r#"[\[\]{},:"0-9eE.\-+ \\ntruefalsau\n]{0,24}"#) {
            let reference = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            let own = skip(&text).is_ok_and(|end| end == text.len());
            prop_assert_eq!(own, reference, "{}", text);
        }
    }
}
