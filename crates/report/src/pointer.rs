//! JSON pointers: where a text has what they name.

use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;

/// The byte at which the value of a JSON pointer (RFC 6901) begins; that of the innermost value around it, where the text has no such value.
/// `None` for what is no pointer, and for texts that are no JSON.
pub(crate) fn locate(text: &str, pointer: &str) -> Option<usize> {
    let steps = pointer.strip_prefix('/')?;
    let mut here: &RawValue = serde_json::from_str(text).ok()?;
    for step in steps.split('/').filter(|_| !steps.is_empty()) {
        let step = step.replace("~1", "/").replace("~0", "~");
        let Some(inner) = member(here.get(), &step) else { break };
        here = inner;
    }
    Some((here.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize))
}

fn member<'t>(value: &'t str, step: &str) -> Option<&'t RawValue> {
    match value.as_bytes().first()? {
        b'{' => serde_json::from_str::<HashMap<Cow<'t, str>, &'t RawValue>>(value).ok()?.get(step).copied(),
        b'[' => serde_json::from_str::<Vec<&'t RawValue>>(value).ok()?.get(step.parse::<usize>().ok()?).copied(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::locate;

    #[test]
    fn pointers_lead_to_values() {
        let text = " {\"a\": [1, {\"b/c\": 2}],\n \"d\": {}}";
        let at = |pointer: &str| locate(text, pointer).map(|at| &text[at..]);
        assert_eq!(at("/"), Some(&text[1..]));
        assert_eq!(at("/a/1/b~1c"), Some("2}],\n \"d\": {}}"));
        assert_eq!(at("/a/9"), at("/a"), "what is not there lies in what is");
        assert_eq!(at("/d/x/y"), Some("{}}"));
        assert_eq!((at("dpu0[3]"), at(""), locate("{", "/a")), (None, None, None));
    }
}
