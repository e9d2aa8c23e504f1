//! Names of layers and modes, each kept once.

use indexmap::IndexSet;
use std::num::NonZeroU32;

/// A name of a [`Names`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(NonZeroU32);

impl Name {
    fn at(index: usize) -> Name {
        // Names are fewer than bytes of a text, of which there are fewer than 2^32.
        Name(NonZeroU32::MIN.saturating_add(index as u32))
    }

    /// Position in its table.
    pub(crate) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Every name of a schedule, in the order of first use.
#[derive(Clone, Debug, Default)]
pub struct Names(IndexSet<Box<str>>);

impl Names {
    /// The name of this text, made if it is not there.
    pub fn intern(&mut self, text: &str) -> Name {
        let index = self
            .0
            .get_index_of(text)
            .unwrap_or_else(|| self.0.insert_full(text.into()).0);
        Name::at(index)
    }

    /// The name of this text, if there is one.
    pub fn find(&self, text: &str) -> Option<Name> {
        self.0.get_index_of(text).map(Name::at)
    }

    /// Text of a name of this table; empty for one of another.
    pub fn get(&self, name: Name) -> &str {
        self.0.get_index(name.index()).map_or("", |text| text)
    }

    /// Takes all names of another table; where each of them went, or `None` where every one kept its number.
    pub(crate) fn absorb(&mut self, other: &Names) -> Option<Vec<Name>> {
        let map: Vec<Name> = other.iter().map(|text| self.intern(text)).collect();
        let moved = map
            .iter()
            .enumerate()
            .any(|(index, name)| name.index() != index);
        moved.then_some(map)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|text| &**text)
    }
}

impl PartialEq for Names {
    fn eq(&self, other: &Names) -> bool {
        self.iter().eq(other.iter())
    }
}
