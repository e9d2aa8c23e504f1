//! Tables as CSV (RFC 4180). Lists are JSON texts, what is not there is empty. A text that a spreadsheet would take for a formula has an
//! apostrophe in front: names come from files that nobody need trust.

use super::{Table, json};
use serde_json::Value;
use std::borrow::Cow;

pub(super) fn write(table: &Table) -> Vec<u8> {
    let mut out = String::new();
    for (n, column) in table.columns.iter().enumerate() {
        out.push_str(if n > 0 { "," } else { "" });
        field(&mut out, &inert(&column.name));
    }
    out.push('\n');
    for row in 0..table.rows() {
        for (n, column) in table.columns.iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            match json::value(&column.values, row) {
                Value::Null => {}
                Value::String(text) => field(&mut out, &inert(&text)),
                other => field(&mut out, &other.to_string()),
            }
        }
        out.push('\n');
    }
    out.into_bytes()
}

/// A text that no spreadsheet evaluates.
fn inert(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

fn field(out: &mut String, text: &str) {
    if text.contains([',', '"', '\n', '\r']) {
        out.push('"');
        out.push_str(&text.replace('"', "\"\""));
        out.push('"');
    } else {
        out.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_formula() {
        for (text, expected) in [
            ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
            ("+1", "'+1"),
            ("-x", "'-x"),
            ("@a", "'@a"),
            ("conv-1", "conv-1"),
        ] {
            assert_eq!(inert(text), expected);
        }
    }
}
