//! What is wrong, where, and what to do about it: one value for readers, linters and the verifier, many renderers.

use crate::text::Text;
use std::borrow::Cow;
use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The program cannot be trusted to run.
    Error,
    /// The program runs, but somebody should look.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// A kind of finding: its stable code and what `explain` prints about it.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable, kebab-case.
    pub code: &'static str,
    /// Severity of every finding of this kind.
    pub severity: Severity,
    /// One line.
    pub summary: &'static str,
    /// What it means, and how it comes about.
    pub explanation: &'static str,
    /// How to mend it.
    pub remedy: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
}

/// A place in the file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Place {
    /// The part of the file: a section, a member, a JSON pointer. Empty for the file as a whole.
    pub part: Cow<'static, str>,
    /// Byte offset in the file, where there is one; in the part, where that is packed into the file (a member of an archive), and in the
    /// text, where the whole file is packed.
    pub offset: Option<u64>,
    /// Bytes from there; 0 where unknown.
    pub size: u64,
    /// Line and column of a text, both counted from 1, columns in characters, where the reader knows them. A text file's byte offset is enough:
    /// renderers that have its bytes count the lines themselves.
    pub position: Option<(u32, u32)>,
    /// The thing at that place as people call it: `descriptor 7`, `dpu0[3]`.
    pub item: String,
}

impl Place {
    /// The file as a whole.
    pub fn file() -> Place {
        Place::default()
    }

    /// A byte range of the file.
    pub fn bytes(offset: u64, size: u64) -> Place {
        Place { offset: Some(offset), size, ..Place::default() }
    }

    /// A line and column of a text, both counted from 1.
    pub fn line(line: u32, column: u32) -> Place {
        Place { position: Some((line, column)), ..Place::default() }
    }

    /// At the line and column of this byte of a text.
    #[must_use]
    pub fn in_text(mut self, text: &Text<'_>, offset: usize) -> Place {
        let (line, column) = text.position(offset);
        self.position = Some((u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX)));
        self
    }

    /// In this part of the file.
    #[must_use]
    pub fn in_part(mut self, part: impl Into<Cow<'static, str>>) -> Place {
        self.part = part.into();
        self
    }

    /// At this item.
    #[must_use]
    pub fn at(mut self, item: impl Into<String>) -> Place {
        self.item = item.into();
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if !self.part.is_empty() {
            write!(f, "{}", self.part)?;
            separator = ", ";
        }
        if !self.item.is_empty() {
            write!(f, "{separator}{}", self.item)?;
            separator = ", ";
        }
        match (self.position, self.offset) {
            (Some((line, column)), _) => write!(f, "{separator}line {line}, column {column}"),
            (None, Some(offset)) => write!(f, "{separator}offset {offset:#x}"),
            (None, None) => Ok(()),
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which rule.
    pub rule: &'static Rule,
    /// How bad it is: as the rule says, unless the user has asked for another verdict.
    pub severity: Severity,
    /// The finding in the field's words, with the actual numbers.
    pub message: String,
    /// Where.
    pub place: Place,
    /// Other places that take part, each with its role.
    pub related: Vec<(Place, String)>,
    /// What to do, where it can be said better than the rule's remedy.
    pub hint: Option<String>,
}

impl Rule {
    /// A finding of this rule.
    pub fn at(&'static self, place: Place, message: impl Into<String>) -> Finding {
        Finding { rule: self, severity: self.severity, message: message.into(), place, related: Vec::new(), hint: None }
    }
}

impl Finding {
    /// Adds another place that takes part.
    #[must_use]
    pub fn with(mut self, place: Place, role: impl Into<String>) -> Finding {
        self.related.push((place, role.into()));
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Finding {
        self.hint = Some(hint.into());
        self
    }

    /// Whether the program cannot be trusted to run.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.to_string();
        if !place.is_empty() {
            write!(f, "{place}: ")?;
        }
        write!(f, "{} [{}]", self.message, self.rule.code)
    }
}

impl std::error::Error for Finding {}
