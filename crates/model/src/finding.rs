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

/// Whom a finding accuses, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The program is wrong.
    Fault,
    /// Chipless lacks something; the program may be right.
    Unsupported,
    /// The program is larger than a limit that the user may raise.
    Limit,
    /// Compilers are not known to write this. It proves nothing against the program.
    Departure,
}

impl Class {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Fault => "fault",
            Class::Unsupported => "unsupported",
            Class::Limit => "limit",
            Class::Departure => "departure",
        }
    }

    /// In a sentence about a rule.
    pub const fn phrase(self) -> &'static str {
        match self {
            Class::Fault => "about the program itself (class fault)",
            Class::Unsupported => "about what Chipless lacks (class unsupported)",
            Class::Limit => "about a limit that you may raise (class limit)",
            Class::Departure => "about what compilers are not known to write (class departure)",
        }
    }
}

/// What a rule rests on. The rule's `source` names the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// A document or an implementation of the file format states it.
    Format,
    /// A document of the hardware, or its firmware, states it.
    Hardware,
    /// It is proven over the program at hand.
    Proof,
    /// Known compilers write nothing else. Good for a [departure](Class::Departure) only.
    Writers,
    /// Chipless' own bounds and gaps.
    Chipless,
}

impl Evidence {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Evidence::Format => "the format's document",
            Evidence::Hardware => "the hardware's document",
            Evidence::Proof => "a proof over the program",
            Evidence::Writers => "what known compilers write",
            Evidence::Chipless => "what Chipless can do",
        }
    }
}

/// A kind of finding: its stable code and what `explain` prints about it. Declared with [`rules!`](crate::rules).
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable, kebab-case.
    pub code: &'static str,
    /// Whom a finding of this kind accuses.
    pub class: Class,
    /// Severity of every finding of this kind.
    pub severity: Severity,
    /// What the rule rests on.
    pub evidence: Evidence,
    /// One line.
    pub summary: &'static str,
    /// What it means, and how it comes about.
    pub explanation: &'static str,
    /// How to fix it.
    pub remedy: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
}

impl Rule {
    /// Whether class, severity and evidence go together: only a fault that a document states or a proof shows, and what Chipless cannot
    /// do, may be an error; what was merely observed is a departure. [`rules!`](crate::rules) asks at compile time.
    pub const fn is_just(&self) -> bool {
        !matches!(
            (self.class, self.severity, self.evidence),
            (Class::Departure, Severity::Error, _)
                | (Class::Fault, _, Evidence::Writers | Evidence::Chipless)
        )
    }
}

/// Declares rules, and `ALL`, the list of them. Each is its name, class, severity, evidence, code, summary, explanation, remedy and source.
///
/// ```
/// chipless_model::rules! {
///     ZERO Fault Error Format "x-zero" "a count is zero"
///         "The format wants one element at least."
///         "Write the number of elements."
///         "X specification, section 2";
/// }
/// assert_eq!(ALL[0].code, "x-zero");
/// ```
///
/// A rule that accuses on the ground of what was observed does not compile:
///
/// ```compile_fail
/// chipless_model::rules! {
///     ODD Departure Error Writers "x-odd" "an odd count" "Compilers write even counts." "None." "programs at hand";
/// }
/// ```
#[macro_export]
macro_rules! rules {
    ($($name:ident $class:ident $severity:ident $evidence:ident $code:literal $summary:literal
        $explanation:literal $remedy:literal $source:literal;)*) => {
        $(
            #[doc = $summary]
            #[allow(unreachable_pub, reason = "rules of private modules are reached through `ALL`")]
            pub static $name: $crate::Rule = {
                const RULE: $crate::Rule = $crate::Rule {
                    code: $code,
                    class: $crate::Class::$class,
                    severity: $crate::Severity::$severity,
                    evidence: $crate::Evidence::$evidence,
                    summary: $summary,
                    explanation: $explanation,
                    remedy: $remedy,
                    source: $source,
                };
                const { assert!(RULE.is_just(), "class, severity and evidence of a rule contradict each other") };
                RULE
            };
        )*

        /// The rules declared here.
        #[allow(unreachable_pub, reason = "as above")]
        pub static ALL: &[&$crate::Rule] = &[$(&$name,)*];
    };
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
    /// What that thing does, where it is a task: its operation and its layer. Whoever has the program fills it in.
    pub about: String,
}

impl Place {
    /// The file as a whole.
    pub fn file() -> Place {
        Place::default()
    }

    /// A byte range of the file.
    pub fn bytes(offset: u64, size: u64) -> Place {
        Place {
            offset: Some(offset),
            size,
            ..Place::default()
        }
    }

    /// A line and column of a text, both counted from 1.
    pub fn line(line: u32, column: u32) -> Place {
        Place {
            position: Some((line, column)),
            ..Place::default()
        }
    }

    /// At the line and column of this byte of a text.
    #[must_use]
    pub fn in_text(mut self, text: &Text<'_>, offset: usize) -> Place {
        let (line, column) = text.position(offset);
        self.position = Some((
            u32::try_from(line).unwrap_or(u32::MAX),
            u32::try_from(column).unwrap_or(u32::MAX),
        ));
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
    /// The findings of the same cause that this one stands for, each in a sentence.
    pub alike: Vec<String>,
}

impl Rule {
    /// A finding of this rule.
    pub fn at(&'static self, place: Place, message: impl Into<String>) -> Finding {
        Finding {
            rule: self,
            severity: self.severity,
            message: message.into(),
            place,
            related: Vec::new(),
            hint: None,
            alike: Vec::new(),
        }
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
