//! JSON pointers: where a text has what they name.

use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

/// A text, and what has been looked up in it: every value is taken apart once, however many pointers lead through it.
#[derive(Clone, Debug)]
pub(crate) struct Pointers<'t> {
    text: &'t str,
    /// The whole; `None` where the text is not JSON.
    root: OnceCell<Option<&'t RawValue>>,
    /// By the address of a value.
    members: RefCell<HashMap<*const u8, Members<'t>>>,
}

/// The values in a value.
#[derive(Clone, Debug)]
enum Members<'t> {
    Object(HashMap<Cow<'t, str>, &'t RawValue>),
    Array(Vec<&'t RawValue>),
    None,
}

impl<'t> Pointers<'t> {
    pub(crate) fn new(text: &'t str) -> Pointers<'t> {
        Pointers {
            text,
            root: OnceCell::new(),
            members: RefCell::default(),
        }
    }

    /// The byte at which the value of a JSON pointer (RFC 6901) begins; that of the innermost value around it, where the text has no
    /// such value. `None` for what is no pointer, and for texts that are not JSON.
    pub(crate) fn locate(&self, pointer: &str) -> Option<usize> {
        let steps = pointer.strip_prefix('/')?;
        let mut here: &RawValue = (*self
            .root
            .get_or_init(|| serde_json::from_str(self.text).ok()))?;
        for step in steps.split('/').filter(|_| !steps.is_empty()) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let Some(inner) = self.member(here, &step) else {
                break;
            };
            here = inner;
        }
        Some((here.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize))
    }

    fn member(&self, value: &'t RawValue, step: &str) -> Option<&'t RawValue> {
        let mut known = self.members.borrow_mut();
        match known
            .entry(value.get().as_ptr())
            .or_insert_with(|| Members::of(value.get()))
        {
            Members::Object(members) => members.get(step).copied(),
            Members::Array(members) => members.get(step.parse::<usize>().ok()?).copied(),
            Members::None => None,
        }
    }
}

impl<'t> Members<'t> {
    fn of(value: &'t str) -> Members<'t> {
        match value.as_bytes().first() {
            Some(b'{') => serde_json::from_str(value).map_or(Members::None, Members::Object),
            Some(b'[') => serde_json::from_str(value).map_or(Members::None, Members::Array),
            _ => Members::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pointers;

    #[test]
    fn pointers_lead_to_values() {
        let text = " {\"a\": [1, {\"b/c\": 2}],\n \"d\": {}}";
        let pointers = Pointers::new(text);
        let at = |pointer: &str| pointers.locate(pointer).map(|at| &text[at..]);
        assert_eq!(at("/"), Some(&text[1..]));
        assert_eq!(at("/a/1/b~1c"), Some("2}],\n \"d\": {}}"));
        assert_eq!(at("/a/9"), at("/a"), "what is not there lies in what is");
        assert_eq!(at("/d/x/y"), Some("{}}"));
        assert_eq!(
            (at("dpu0[3]"), at(""), Pointers::new("{").locate("/a")),
            (None, None, None)
        );
    }
}
