//! What was found in the tables, which are slow to search: graphs name few operations, and many times.

use std::cell::RefCell;
use std::collections::HashMap;
use std::thread::LocalKey;

/// Names that are remembered, at most: a hostile file has any number of them.
const NAMES: usize = 4096;

/// What is known of names, each with a count of operands.
pub(super) type Memory<T> = RefCell<HashMap<String, Vec<(usize, T)>>>;

/// What is known of a name with so many operands, or is found now.
pub(super) fn remembered<T: Copy>(
    memory: &'static LocalKey<Memory<T>>,
    name: &str,
    operands: usize,
    find: impl FnOnce() -> T,
) -> T {
    let known = memory.with_borrow(|memory| {
        let all = memory.get(name)?.iter();
        all.copied().find(|(count, _)| *count == operands)
    });
    if let Some((_, known)) = known {
        return known;
    }
    let found = find();
    memory.with_borrow_mut(|memory| {
        if memory.len() >= NAMES {
            memory.clear();
        }
        memory
            .entry(name.to_owned())
            .or_default()
            .push((operands, found));
    });
    found
}
