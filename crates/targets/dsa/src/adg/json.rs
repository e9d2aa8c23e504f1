//! A JSON value with its pointer: every access says where it failed, what was expected and what was found.

use super::rules;
use chipless_model::{Finding, Place, Rule};
use serde_json::Value;

/// What stops reading.
pub type Error = Box<Finding>;

/// A value and the way to it.
#[derive(Clone, Copy)]
pub struct Cursor<'a> {
    /// The value.
    pub value: &'a Value,
    parent: Option<(&'a Cursor<'a>, Step<'a>)>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'a> Cursor<'a> {
    /// The whole document.
    pub fn root(value: &'a Value) -> Cursor<'a> {
        Cursor {
            value,
            parent: None,
        }
    }

    /// The JSON pointer (RFC 6901).
    pub fn pointer(&self) -> String {
        match self.parent {
            None => String::new(),
            Some((parent, Step::Index(index))) => format!("{}/{index}", parent.pointer()),
            Some((parent, Step::Key(key))) => format!(
                "{}/{}",
                parent.pointer(),
                key.replace('~', "~0").replace('/', "~1")
            ),
        }
    }

    /// Where it stands.
    pub fn place(&self) -> Place {
        let pointer = self.pointer();
        Place::file().at(if pointer.is_empty() {
            "/".to_owned()
        } else {
            pointer
        })
    }

    /// A finding about it.
    pub fn error(&self, rule: &'static Rule, message: impl Into<String>) -> Error {
        Box::new(rule.at(self.place(), message))
    }

    fn mismatch(&self, expected: &str) -> Error {
        let found = match self.value {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Number(value) => value.to_string(),
            Value::String(text) => format!("\"{}\"", text.chars().take(60).collect::<String>()),
            Value::Array(items) => format!("an array of {}", items.len()),
            Value::Object(members) => format!("an object of {}", members.len()),
        };
        self.error(
            &rules::MISSING,
            format!("expected {expected}, found {found}"),
        )
    }

    /// A member, if it is there and not null.
    pub fn get(&'a self, key: &'a str) -> Option<Cursor<'a>> {
        let value = self
            .value
            .as_object()?
            .get(key)
            .filter(|value| !value.is_null())?;
        Some(Cursor {
            value,
            parent: Some((self, Step::Key(key))),
        })
    }

    /// A member that must be there.
    pub fn need(&'a self, key: &'a str) -> Result<Cursor<'a>, Error> {
        if !self.value.is_object() {
            return Err(self.mismatch("an object"));
        }
        self.get(key).ok_or_else(|| {
            self.error(
                &rules::MISSING,
                format!("expected the field \"{key}\", found none"),
            )
        })
    }

    /// All members.
    pub fn members(&'a self) -> Result<impl Iterator<Item = (&'a str, Cursor<'a>)>, Error> {
        let members = self
            .value
            .as_object()
            .ok_or_else(|| self.mismatch("an object"))?;
        Ok(members.iter().map(|(key, value)| {
            (
                key.as_str(),
                Cursor {
                    value,
                    parent: Some((self, Step::Key(key))),
                },
            )
        }))
    }

    /// All items.
    pub fn items(&'a self) -> Result<impl Iterator<Item = Cursor<'a>>, Error> {
        let items = self
            .value
            .as_array()
            .ok_or_else(|| self.mismatch("an array"))?;
        Ok(items.iter().enumerate().map(|(index, value)| Cursor {
            value,
            parent: Some((self, Step::Index(index))),
        }))
    }

    /// A text.
    pub fn text(&self) -> Result<&'a str, Error> {
        self.value.as_str().ok_or_else(|| self.mismatch("a string"))
    }

    /// A whole number of 32 bits.
    pub fn number(&self) -> Result<u32, Error> {
        self.value
            .as_u64()
            .and_then(|n| u32::try_from(n).ok())
            .ok_or_else(|| self.mismatch("a whole number below 2^32"))
    }

    /// A whole number, for which tools write a truth as well.
    fn loose(&self) -> Result<u32, Error> {
        match self.value {
            Value::Bool(value) => Ok(u32::from(*value)),
            _ => self.number(),
        }
    }

    /// A number member, or what stands for it where it is missing.
    pub fn number_or(&self, key: &str, missing: u32) -> Result<u32, Error> {
        self.get(key).map_or(Ok(missing), |member| member.loose())
    }

    /// A number member of 64 bits.
    pub fn large_or(&self, key: &str, missing: u64) -> Result<u64, Error> {
        let Some(member) = self.get(key) else {
            return Ok(missing);
        };
        member
            .value
            .as_u64()
            .ok_or_else(|| member.mismatch("a whole number"))
    }

    /// A truth member, or what stands for it where it is missing.
    pub fn flag_or(&self, key: &str, missing: bool) -> Result<bool, Error> {
        let Some(member) = self.get(key) else {
            return Ok(missing);
        };
        // Tools write any number for a truth.
        match member.value {
            Value::Bool(value) => Ok(*value),
            Value::Number(value) => Ok(value.as_f64() != Some(0.0)),
            _ => Err(member.mismatch("true or false")),
        }
    }
}
