//! What names stand for.

use crate::graph::NodeId;
use crate::syntax::Span;
use smallvec::SmallVec;
use std::collections::HashMap;

/// Bits `low` to `high` of a value, before it is known who consumes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    pub(super) node: NodeId,
    pub(super) value: u32,
    pub(super) low: u32,
    pub(super) high: u32,
}

impl Bits {
    pub(super) fn width(self) -> u32 {
        self.high - self.low + 1
    }
}

/// What a name stands for, or an operand.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Meaning {
    /// Bits of values, the first least significant.
    Bits(SmallVec<[Bits; 1]>),
    /// A constant.
    Integer(u64),
    /// A constant whose bits depend on who consumes it.
    Float(f64),
    /// A register of the processing element.
    Register(u8),
    /// A name that could not be resolved; a finding says so.
    Unknown,
}

struct Symbol {
    meaning: Meaning,
    span: Span,
    used: bool,
}

/// Names of values.
#[derive(Default)]
pub(super) struct Symbols<'a> {
    names: HashMap<String, Symbol>,
    /// Lanes of every port with several, by the name of the port.
    ports: HashMap<&'a str, u32>,
}

impl<'a> Symbols<'a> {
    /// Defines a name, in place of what it stood for.
    pub(super) fn define(&mut self, name: String, meaning: Meaning, span: Span) {
        self.names.insert(
            name,
            Symbol {
                meaning,
                span,
                used: false,
            },
        );
    }

    /// Where a name is defined.
    pub(super) fn place(&self, name: &str) -> Option<Span> {
        self.names.get(name).map(|symbol| symbol.span)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Meaning> {
        self.names.get(name).map(|symbol| &symbol.meaning)
    }

    /// What a name stands for, for somebody who uses it.
    pub(super) fn take(&mut self, name: &str) -> Option<Meaning> {
        let symbol = self.names.get_mut(name)?;
        symbol.used = true;
        Some(symbol.meaning.clone())
    }

    /// Whether the definition of a name at this place is still the one that counts, and unused.
    pub(super) fn is_unused(&self, name: &str, span: Span) -> bool {
        self.names
            .get(name)
            .is_some_and(|symbol| symbol.span == span && !symbol.used)
    }

    /// Remembers a port with several lanes.
    pub(super) fn port(&mut self, name: &'a str, lanes: u32) {
        self.ports.insert(name, lanes);
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The name that the real parser would have for one that only the specification has: `a0` for `a_0`, `$aState` for `a_State` and
    /// `$a_State`.
    pub(super) fn respell(&self, name: &str) -> Option<String> {
        if let Some(port) = name.strip_suffix("State") {
            let port = port.trim_start_matches('$');
            let candidates = [
                format!("${port}State"),
                format!("${}State", port.strip_suffix('_').unwrap_or(port)),
            ];
            return candidates
                .into_iter()
                .find(|candidate| candidate != name && self.names.contains_key(candidate));
        }
        let (port, lane) = name.rsplit_once('_')?;
        let lanes = self.ports.get(port)?;
        let index: u32 = lane.parse().ok()?;
        (index < *lanes && lane == index.to_string()).then(|| format!("{port}{lane}"))
    }
}
