//! Tables as CSV (RFC 4180). Lists are JSON texts, what is not there is empty.

use super::{Table, json};
use serde_json::Value;

pub(super) fn write(table: &Table) -> Vec<u8> {
    let mut out = String::new();
    for (n, column) in table.columns.iter().enumerate() {
        out.push_str(if n > 0 { "," } else { "" });
        field(&mut out, &column.name);
    }
    out.push('\n');
    for row in 0..table.rows() {
        for (n, column) in table.columns.iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            match json::value(&column.values, row) {
                Value::Null => {}
                Value::String(text) => field(&mut out, &text),
                other => field(&mut out, &other.to_string()),
            }
        }
        out.push('\n');
    }
    out.into_bytes()
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
