//! Names of layers and modes, each kept once.

use indexmap::IndexSet;

/// A name of a [`Names`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(pub(crate) u32);

/// Every name of a schedule, in the order of first use.
#[derive(Clone, Debug, Default)]
pub struct Names(IndexSet<Box<str>>);

impl Names {
    /// The name of this text, made if it is not there.
    pub fn intern(&mut self, text: &str) -> Name {
        let index = self.0.get_index_of(text).unwrap_or_else(|| self.0.insert_full(text.into()).0);
        Name(index as u32)
    }

    /// The name of this text, if there is one.
    pub fn find(&self, text: &str) -> Option<Name> {
        self.0.get_index_of(text).map(|index| Name(index as u32))
    }

    /// Text of a name of this table; empty for one of another.
    pub fn get(&self, name: Name) -> &str {
        self.0.get_index(name.0 as usize).map_or("", |text| text)
    }

    /// Takes all names of another table; where each of them went, or `None` where every one kept its number.
    pub(crate) fn absorb(&mut self, other: &Names) -> Option<Vec<Name>> {
        let map: Vec<Name> = other.iter().map(|text| self.intern(text)).collect();
        let moved = map.iter().enumerate().any(|(index, name)| name.0 as usize != index);
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
