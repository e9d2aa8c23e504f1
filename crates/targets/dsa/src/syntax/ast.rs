//! The tree of a DFG: what the file says, statement by statement, nothing resolved.

use super::Span;
use smallvec::SmallVec;
use std::borrow::Cow;

/// A file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File<'a> {
    /// Statements in the order of the file; those that cannot be read are left out.
    pub statements: Vec<Statement<'a>>,
    /// Comments in the order of the file.
    pub comments: Vec<Comment<'a>>,
    /// How many statements could not be read.
    pub unreadable: usize,
}

/// `# …` to the end of the line, or `/* … */`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comment<'a> {
    /// Its bytes: comments need not be UTF-8.
    pub bytes: &'a [u8],
    /// Where.
    pub span: Span,
}

impl<'a> Comment<'a> {
    /// Its text without blanks at its end.
    pub fn text(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.bytes.trim_ascii_end())
    }
}

/// A name and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// The name.
    pub text: &'a str,
    /// Where.
    pub span: Span,
}

/// A statement and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement<'a> {
    /// What it says.
    pub kind: StatementKind<'a>,
    /// Where, without what ends it.
    pub span: Span,
}

/// What a statement says.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind<'a> {
    /// `Array: name size type`.
    Array(Array<'a>),
    /// `Input64: name[lanes] …`, `Output64: …`, `Indirect64: …`.
    Port(Port<'a>),
    /// `name, name = …`.
    Assignment(Assignment<'a>),
    /// `----`, with the text behind it.
    Separator(&'a str),
    /// `#pragma …`.
    Pragma(Pragma<'a>),
    /// `TaskDep[…]: (…)`, `TaskProp[…]: (…)`.
    Task(Task<'a>),
}

/// The declaration of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// Its bytes.
    pub size: Option<u64>,
    /// Its type.
    pub kind: Option<Name<'a>>,
}

/// Which way a port goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Into the graph.
    Input,
    /// Out of the graph.
    Output,
    /// Both, with an edge between them.
    Indirect,
}

impl Direction {
    /// As files write it.
    pub const fn keyword(self) -> &'static str {
        match self {
            Direction::Input => "Input",
            Direction::Output => "Output",
            Direction::Indirect => "Indirect",
        }
    }
}

/// The declaration of a port.
#[derive(Clone, Debug, PartialEq)]
pub struct Port<'a> {
    /// Which way.
    pub direction: Direction,
    /// Bits of a lane.
    pub width: u32,
    /// Its name.
    pub name: Name<'a>,
    /// Its lanes.
    pub lanes: Lanes,
    /// What stands behind: `stated`, `source=a`.
    pub options: Vec<PortOption<'a>>,
}

/// The lanes of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// No brackets, or `[0]`: one lane with the name of the port.
    Plain,
    /// `[n]`: lanes `name0`, `name1`, …
    Count(u32),
    /// `[0, 1, 2]`: as many lanes as the list has entries.
    List(u32),
}

/// An option of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortOption<'a> {
    /// `stated`, `source`, `destination`, `state`.
    pub key: Name<'a>,
    /// What stands behind `=`.
    pub value: Option<Name<'a>>,
}

/// `name, name = …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment<'a> {
    /// The names, at least one.
    pub names: Vec<Name<'a>>,
    /// What they get.
    pub value: Expression<'a>,
}

/// What can be an operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression<'a> {
    /// Values or constants side by side, the first least significant. At least one.
    Terms(SmallVec<[Term<'a>; 1]>),
    /// An operation on its arguments.
    Call(Box<Call<'a>>),
}

/// One of the values or constants of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Term<'a> {
    /// A value, or a register of the processing element.
    Name(Name<'a>),
    /// `name:low:high`, in older files `name:width:index`.
    Slice(Name<'a>, u64, u64, Span),
    /// A whole number.
    Integer(u64, Span),
    /// A number with a fraction or an exponent; the text as written.
    Float(f64, &'a str, Span),
}

impl Term<'_> {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Term::Name(name) => name.span,
            Term::Slice(_, _, _, span) | Term::Integer(_, span) | Term::Float(_, _, span) => *span,
        }
    }
}

/// An operation on its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Call<'a> {
    /// The operation.
    pub operation: Name<'a>,
    /// `<Operation:count, …>` behind the name.
    pub units: Vec<(Name<'a>, u32)>,
    /// The arguments.
    pub arguments: Vec<Argument<'a>>,
    /// Where it stands.
    pub span: Span,
}

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument<'a> {
    /// `ctrl`, `self`, `pred`, `inv_pred`; in older files `control`.
    pub qualifier: Option<Name<'a>>,
    /// The value; none for `self`.
    pub value: Option<Expression<'a>>,
    /// `& mask`.
    pub mask: Option<(u64, Span)>,
    /// `{key: action|action, …}`.
    pub table: Option<Vec<Entry<'a>>>,
    /// Where it stands.
    pub span: Span,
}

/// An entry of a control table.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'a> {
    /// The value of the control, under the mask.
    pub key: u64,
    /// What to do.
    pub actions: Vec<Name<'a>>,
    /// Where it stands.
    pub span: Span,
}

/// `#pragma …`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pragma<'a> {
    /// `group KEY` or `group KEY NUMBER`.
    Group(Name<'a>, Option<u64>),
    /// `KEY=VALUE` for the next port, the value as written.
    Port(Name<'a>, Name<'a>),
    /// `$RegK NAME`: the result of that name goes to the register as well.
    Register(Name<'a>, Name<'a>),
    /// Anything else, as written.
    Other(&'a str),
}

/// A statement of the task-flow extension, its parts as written but for blanks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task<'a> {
    /// `TaskDep` or `TaskProp`.
    pub keyword: Name<'a>,
    /// Between the brackets.
    pub head: String,
    /// Between the parentheses.
    pub body: String,
}
