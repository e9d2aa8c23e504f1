//! Why a call of a host is refused.

use std::fmt;

/// What kind of call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The order of the contract was broken.
    Sequence,
    /// A name, id or address that the document does not have.
    Name,
    /// A vector of the wrong length, values out of range, a missing field.
    Value,
    /// A reply that cannot be decoded.
    Wire,
    /// The program behind the document failed.
    Program,
}

/// Why a call is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What kind.
    pub kind: Kind,
    /// Whose turn it is, what was expected, what came.
    pub message: String,
    /// What would have been legal, for sequence violations: `write C`, `read A`.
    pub expected: Vec<String>,
}

impl Violation {
    pub(super) fn new(kind: Kind, message: impl Into<String>) -> Violation {
        Violation {
            kind,
            message: message.into(),
            expected: Vec::new(),
        }
    }

    pub(super) fn sequence(message: impl Into<String>) -> Violation {
        Violation::new(Kind::Sequence, message)
    }

    pub(super) fn name(message: impl Into<String>) -> Violation {
        Violation::new(Kind::Name, message)
    }

    /// A value that does not fit.
    pub fn value(message: impl Into<String>) -> Violation {
        Violation::new(Kind::Value, message)
    }

    pub(super) fn wire(message: impl Into<String>) -> Violation {
        Violation::new(Kind::Wire, message)
    }

    pub(super) fn expecting(mut self, expected: impl IntoIterator<Item = String>) -> Violation {
        self.expected = expected.into_iter().collect();
        self
    }

    /// Says of which vector.
    #[must_use]
    pub fn of(mut self, vector: &str) -> Violation {
        self.message = format!("`{vector}`: {}", self.message);
        self
    }

    /// The firmware's code for it, where one is public.
    pub const fn code(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Sequence => Some("kSpuSequenceError"),
            _ => None,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code() {
            Some(code) => write!(f, "{code}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Violation {}
