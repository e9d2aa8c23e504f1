//! JSON members: typed, borrowed from the member's text, with errors that say member, JSON pointer, line and column.

use crate::rules::container as rules;
use chipless_model::{Finding, Limits, Place, Text, clip};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

/// Values of a wrong type in a file before it is given up.
pub(crate) const MOST_FAULTS: usize = 64;

/// What stops reading: a finding with the place, boxed because results of parsers are moved around a lot.
pub type Error = Box<Finding>;

/// Text of a JSON document, borrowed unless it had escapes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name<'a>(pub Cow<'a, str>);

impl Deref for Name<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Name<'_> {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl<'a> From<&'a str> for Name<'a> {
    fn from(text: &'a str) -> Name<'a> {
        Name(Cow::Borrowed(text))
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name<'a>, D::Error> {
        struct Borrow;
        impl<'de> Visitor<'de> for Borrow {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrow)
    }
}

/// A field that may hold a value of another type than the format has: the rest of its object is read all the same.
pub(crate) struct Soft<T>(Result<T, String>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Soft<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Soft<T>, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        Ok(Soft(serde_json::from_str(raw.get()).map_err(|error| {
            let text = error.to_string();
            let message = text
                .rsplit_once(" at line ")
                .map_or(&*text, |(message, _)| message);
            in_words(&clip(message, 300))
        })))
    }
}

/// Values of another type than the format has, by the key that they stand at.
pub(crate) type Mistyped = Vec<(&'static str, String)>;

impl<T> Soft<T> {
    /// The value; of one of another type nothing but a note.
    pub(crate) fn keep(
        soft: Option<Soft<T>>,
        key: &'static str,
        wrong: &mut Mistyped,
    ) -> Option<T> {
        match soft?.0 {
            Ok(value) => Some(value),
            Err(message) => {
                wrong.push((key, message));
                None
            }
        }
    }
}

/// A JSON member: its path in the tarball and its text.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    /// Path in the tarball.
    pub member: &'a str,
    /// The whole text.
    pub text: &'a str,
    /// The same, with lines and columns.
    lines: Text<'a>,
}

impl<'a> Source<'a> {
    /// A member whose text is known.
    pub(crate) fn of(member: &'a str, text: &'a str) -> Source<'a> {
        let lines = Text::new(text);
        Source {
            member,
            text,
            lines,
        }
    }

    /// The text of a member.
    ///
    /// # Errors
    /// Larger than the limit `json_bytes`, or not UTF-8.
    pub fn new(member: &'a str, bytes: &'a [u8], limits: &Limits) -> Result<Source<'a>, Error> {
        if bytes.len() as u64 > limits.json_bytes {
            let message = format!(
                "{} bytes of JSON exceed the limit json_bytes = {}",
                bytes.len(),
                limits.json_bytes
            );
            return Err(Box::new(
                rules::LIMIT.at(Place::file().in_part(member.to_owned()), message),
            ));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Source::of(member, text)),
            Err(e) => {
                let place = Place::bytes(e.valid_up_to() as u64, 1).in_part(member.to_owned());
                Err(Box::new(rules::JSON_SYNTAX.at(
                    place,
                    format!("the text is not UTF-8 from byte {} on", e.valid_up_to()),
                )))
            }
        }
    }

    /// The whole document as a `T`.
    ///
    /// # Errors
    /// Text that is no JSON, or a value of another type than `T` has.
    pub fn parse<T: Deserialize<'a>>(&self) -> Result<T, Error> {
        self.parse_at(self.text, String::new)
    }

    /// A part of the document, as [`RawValue`] cuts it out, as a `T`; `pointer` names the part in errors.
    ///
    /// # Errors
    /// As [`parse`](Source::parse).
    pub fn parse_at<T: Deserialize<'a>>(
        &self,
        part: &'a str,
        pointer: impl FnOnce() -> String,
    ) -> Result<T, Error> {
        serde_json::from_str(part)
            .map_err(|plain| Box::new(self.failure::<T>(part, pointer(), &plain)))
    }

    /// Parses again, this time with the path on record.
    fn failure<T: Deserialize<'a>>(
        &self,
        part: &'a str,
        mut pointer: String,
        plain: &serde_json::Error,
    ) -> Finding {
        let mut reader = serde_json::Deserializer::from_str(part);
        if let Err(traced) = serde_path_to_error::deserialize::<_, T>(&mut reader) {
            for segment in traced.path() {
                match segment {
                    serde_path_to_error::Segment::Seq { index } => {
                        push_key(&mut pointer, &index.to_string());
                    }
                    serde_path_to_error::Segment::Map { key } => push_key(&mut pointer, key),
                    _ => {}
                }
            }
        }
        let rule = if plain.is_data() {
            &rules::JSON_TYPE
        } else {
            &rules::JSON_SYNTAX
        };
        let text = plain.to_string();
        let message = clip(
            text.rsplit_once(" at line ")
                .map_or(text.as_str(), |(message, _)| message),
            300,
        );
        // The deserialiser counts columns in bytes, and from 1.
        let start = match plain.line() {
            0 | 1 => 0,
            line => memchr::memchr_iter(b'\n', part.as_bytes())
                .nth(line - 2)
                .map_or(part.len(), |at| at + 1),
        };
        let at = self.offset(part) + start + plain.column().saturating_sub(1);
        if part.is_empty() {
            return rule.at(
                Place::file().in_part(self.member.to_owned()),
                "the member is empty, expected a JSON object",
            );
        }
        let rule = if message.starts_with("duplicate field") || message.starts_with("the key ") {
            &rules::JSON_DUPLICATE_KEY
        } else {
            rule
        };
        rule.at(
            spot(self.member, &pointer, Some(self.lines.position(at))),
            in_words(&message),
        )
    }

    /// Byte offset of a part of the text; 0 for text from elsewhere.
    pub fn offset(&self, part: &str) -> usize {
        let offset = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        if offset <= self.text.len() { offset } else { 0 }
    }

    /// The place of `/pointer/key` where `part` is the text of the value at `/pointer`. Without the key, or where the
    /// part does not have it, the place of the part itself.
    pub fn place(&self, part: &str, pointer: &str, keys: &str) -> Place {
        if self.text.len() > PLACED_BYTES {
            return spot(self.member, &format!("{pointer}{keys}"), None);
        }
        let mut text = part;
        for key in keys.split('/').skip(1) {
            match child(text, key) {
                Some(found) => text = found,
                None => break,
            }
        }
        spot(
            self.member,
            &format!("{pointer}{keys}"),
            Some(self.lines.position(self.offset(text))),
        )
    }
}

/// A message of the deserialiser with types as the format has them, not as Rust does.
fn in_words(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once("expected ") else {
        return message.to_owned();
    };
    let expected = match expected {
        "u64" => "a whole number from 0 to 2^64 - 1",
        "u32" => "a whole number from 0 to 2^32 - 1",
        "i64" => "a whole number from -2^63 to 2^63 - 1",
        "f64" => "a number",
        "a sequence" => "an array",
        "a map" => "an object",
        "a boolean" => "true or false",
        other if other.starts_with("struct ") => "an object",
        other => other,
    };
    format!(
        "{}expected {expected}",
        found
            .replace("invalid type: map", "invalid type: object")
            .replace("sequence", "array")
    )
}

/// Members beyond this size are not searched for the line and column of a finding.
const PLACED_BYTES: usize = 64 << 20;

/// A place in a JSON member, as people and editors find it.
fn spot(member: &str, pointer: &str, position: Option<(usize, usize)>) -> Place {
    let pointer = if pointer.is_empty() {
        "/".into()
    } else {
        clip(pointer, 300)
    };
    let place = Place::file()
        .in_part(member.to_owned())
        .at(pointer.into_owned());
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Place {
        position: position.map(|(line, column)| (number(line), number(column))),
        ..place
    }
}

/// Appends a key to a JSON pointer (RFC 6901: `~` and `/` are escaped).
pub(crate) fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    for c in key.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// The text of a member of an object or array; `key` is a pointer segment.
pub(crate) fn child<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    if text.trim_start().starts_with('[') {
        let wanted: usize = key.parse().ok()?;
        let mut found = None;
        items(text, |index, item| {
            found = (index == wanted).then_some(item);
            found.is_none()
        });
        return found;
    }
    let key = key.replace("~1", "/").replace("~0", "~");
    entries(text)?
        .into_iter()
        .find(|(k, _)| **k == *key)
        .map(|(_, v)| v)
}

/// The members of an object in file order, values as text; `None` where the text is no object.
pub(crate) fn entries(text: &str) -> Option<Vec<(Name<'_>, &str)>> {
    struct Pairs;
    impl<'de> Visitor<'de> for Pairs {
        type Value = Vec<(Name<'de>, &'de str)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut pairs = Vec::new();
            while let Some((key, value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                pairs.push((key, value.get()));
            }
            Ok(pairs)
        }
    }
    serde_json::Deserializer::from_str(text)
        .deserialize_map(Pairs)
        .ok()
}

/// An array of at most `N` items: items may be much larger in memory than in the file.
pub(crate) fn capped<'de, D: Deserializer<'de>, T: Deserialize<'de>, const N: usize>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct Items<T, const N: usize>(std::marker::PhantomData<T>);
    impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Items<T, N> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "an array of at most {N} items")
        }
        fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = seq.next_element()? {
                if items.len() == N {
                    return Err(de::Error::invalid_length(N + 1, &self));
                }
                items.push(item);
            }
            Ok(items)
        }
    }
    deserializer.deserialize_seq(Items::<T, N>(std::marker::PhantomData))
}

/// Visits the items of an array as text until the visitor has seen enough; `false` where the text is no array.
pub(crate) fn items<'a>(text: &'a str, visit: impl FnMut(usize, &'a str) -> bool) -> bool {
    struct Walk<F>(F);
    impl<'de, F: FnMut(usize, &'de str) -> bool> Visitor<'de> for Walk<F> {
        type Value = bool;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }
        fn visit_seq<A: de::SeqAccess<'de>>(mut self, mut seq: A) -> Result<bool, A::Error> {
            let mut index = 0;
            while let Some(item) = seq.next_element::<&'de RawValue>()? {
                if !(self.0)(index, item.get()) {
                    // The rest is not looked at, which the parser takes for an error.
                    return Ok(true);
                }
                index += 1;
            }
            Ok(true)
        }
    }
    serde_json::Deserializer::from_str(text)
        .deserialize_seq(Walk(visit))
        .unwrap_or(false)
}

/// An object in file order, values as text. Keys must differ.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members<'a>(pub(crate) Vec<(Name<'a>, &'a str)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'a>, D::Error> {
        struct Distinct;
        impl<'de> Visitor<'de> for Distinct {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                let mut seen = std::collections::HashSet::new();
                while let Some((key, value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    if !seen.insert(key.clone()) {
                        return Err(de::Error::custom(format_args!(
                            "the key `{key}` stands twice"
                        )));
                    }
                    members.push((key, value.get()));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Distinct)
    }
}

/// An enumeration of names that a format fixes. Names of other writers become `Unknown`: the linter says what stands there.
macro_rules! names {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $type { $($(#[$variant_doc])* $variant,)* /// Another name than the format knows.
            Unknown }

        impl $type {
            /// Every known one.
            pub const ALL: &[$type] = &[$($type::$variant,)*];

            /// As files name it.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)* $type::Unknown => "unknown" }
            }

            /// The one of this name, or `Unknown`.
            pub fn from_name(name: &str) -> $type {
                match name { $($name => $type::$variant,)* _ => $type::Unknown }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                Ok($type::from_name(&$crate::json::Name::deserialize(deserializer)?))
            }
        }
    };
}
pub(crate) use names;
