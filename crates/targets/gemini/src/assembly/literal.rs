//! Literals as assembler and simulator print them: those of Python, with `<Enum.NAME: 3>` for members of enumerations.

/// Levels of nesting.
const MAX_DEPTH: u32 = 16;

/// A literal.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A whole number.
    Integer(i64),
    /// Another number.
    Number(f64),
    /// Text in quotes, a bare word such as `True`, or the name of an enumeration's member.
    Text(String),
    /// A list.
    List(Vec<Literal>),
    /// A map with text keys.
    Map(Vec<(String, Literal)>),
}

impl Literal {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Literal> {
        let Literal::Map(entries) = self else {
            return None;
        };
        entries
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// A whole number.
    pub fn integer(&self) -> Option<i64> {
        if let Literal::Integer(value) = self {
            Some(*value)
        } else {
            None
        }
    }

    /// The items of a list; none of anything else.
    pub fn items(&self) -> &[Literal] {
        if let Literal::List(items) = self {
            items
        } else {
            &[]
        }
    }

    /// Text.
    pub fn text(&self) -> Option<&str> {
        if let Literal::Text(text) = self {
            Some(text)
        } else {
            None
        }
    }
}

/// Reads the literal that a line consists of. The error is the column, counted from 1, and what was expected.
pub(super) fn parse(line: &str) -> Result<Literal, (usize, &'static str)> {
    let mut reader = Reader { text: line, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    if reader.at < line.len() {
        reader.wrong("the end of the line")
    } else {
        Ok(value)
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

type Result1<T> = Result<T, (usize, &'static str)>;

impl Reader<'_> {
    fn wrong<T>(&self, what: &'static str) -> Result1<T> {
        Err((self.at + 1, what))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Passes a byte if it is next.
    fn pass(&mut self, byte: u8) -> bool {
        self.space();
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// The text up to a byte, and the byte passed.
    fn until(&mut self, end: u8, what: &'static str) -> Result1<String> {
        let rest = &self.text.as_bytes()[self.at..];
        let Some(length) = rest.iter().position(|b| *b == end) else {
            return self.wrong(what);
        };
        let text = String::from_utf8_lossy(&rest[..length]).into_owned();
        self.at += length + 1;
        Ok(text)
    }

    fn value(&mut self, depth: u32) -> Result1<Literal> {
        if depth > MAX_DEPTH {
            return self.wrong("fewer levels of nesting");
        }
        self.space();
        match self.peek() {
            Some(b'[') => {
                self.at += 1;
                let mut items = Vec::new();
                while !self.pass(b']') {
                    if !items.is_empty() && !self.pass(b',') {
                        return self.wrong("`,` or `]`");
                    }
                    items.push(self.value(depth + 1)?);
                }
                Ok(Literal::List(items))
            }
            Some(b'{') => {
                self.at += 1;
                let mut entries = Vec::new();
                while !self.pass(b'}') {
                    if !entries.is_empty() && !self.pass(b',') {
                        return self.wrong("`,` or `}`");
                    }
                    if !self.pass(b'\'') {
                        return self.wrong("a key in quotes");
                    }
                    let key = self.until(b'\'', "the end of the key")?;
                    if !self.pass(b':') {
                        return self.wrong("`:`");
                    }
                    entries.push((key, self.value(depth + 1)?));
                }
                Ok(Literal::Map(entries))
            }
            Some(b'\'') => {
                self.at += 1;
                self.until(b'\'', "the end of the text").map(Literal::Text)
            }
            Some(b'<') => {
                self.at += 1;
                let member = self.until(b'>', "`>` behind the member of an enumeration")?;
                let name = member.split(':').next().unwrap_or(&member);
                Ok(Literal::Text(
                    name.rsplit('.').next().unwrap_or(name).to_owned(),
                ))
            }
            Some(_) => self.word(),
            None => self.wrong("a value"),
        }
    }

    fn word(&mut self) -> Result1<Literal> {
        let rest = &self.text[self.at..];
        let length = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || "_+-.".contains(c)))
            .unwrap_or(rest.len());
        let word = &rest[..length];
        if word.is_empty() {
            return self.wrong("a value");
        }
        let value = if let Ok(integer) = word.parse() {
            Literal::Integer(integer)
        } else if let Some(number) = word
            .parse::<f64>()
            .ok()
            .filter(|_| word.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
        {
            Literal::Number(number)
        } else if word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            Literal::Text(word.to_owned())
        } else {
            return self.wrong("a value");
        };
        self.at += length;
        Ok(value)
    }
}
