//! From a tree to text that reads as the same tree.

use super::{Comments, Node, Value, scalar};
use std::collections::HashMap;
use std::fmt::Write;

/// Prints a tree in block style, lists and empty mappings on one line.
pub fn write(root: &Node) -> String {
    write_with(root, Comments::default())
}

/// Prints a tree with the remarks of the text that it was read from.
pub fn write_with(root: &Node, mut comments: Comments) -> String {
    let mut out = String::new();
    match &root.value {
        Value::Map(entries) if !entries.is_empty() => {
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 && is_block(value) {
                    out.push('\n');
                }
                entry(&mut out, key, value, 0, &mut comments);
            }
        }
        Value::Null => {}
        _ => {
            inline(&mut out, root);
            out.push('\n');
        }
    }
    for remark in comments.last {
        let _ = writeln!(out, "{remark}");
    }
    out
}

fn is_block(node: &Node) -> bool {
    matches!(&node.value, Value::Map(entries) if !entries.is_empty())
}

fn entry(out: &mut String, key: &Node, value: &Node, indent: usize, comments: &mut Comments) {
    let stands = key.span.line > 0;
    let of = |all: &mut HashMap<u64, Vec<String>>| {
        let found = stands.then(|| all.remove(&key.span.offset)).flatten();
        found.unwrap_or_default()
    };
    for remark in of(&mut comments.before) {
        let _ = writeln!(out, "{:indent$}{remark}", "");
    }
    let behind = of(&mut comments.behind).join(" ");
    let behind = if behind.is_empty() {
        String::new()
    } else {
        format!("  {behind}")
    };
    let _ = write!(out, "{:indent$}", "");
    inline(out, key);
    out.push(':');
    match &value.value {
        Value::Map(entries) if !entries.is_empty() => {
            let _ = writeln!(out, "{behind}");
            for (key, value) in entries {
                entry(out, key, value, indent + 2, comments);
            }
        }
        _ => {
            out.push(' ');
            inline(out, value);
            let _ = writeln!(out, "{behind}");
        }
    }
}

/// On one line: scalars, and collections in flow style.
fn inline(out: &mut String, node: &Node) {
    match &node.value {
        Value::Text(text) => quoted(out, text),
        Value::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                inline(out, item);
            }
            out.push(']');
        }
        Value::Map(entries) => {
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                inline(out, key);
                out.push_str(": ");
                inline(out, value);
            }
            out.push('}');
        }
        Value::Opaque(tag, text) => {
            let _ = write!(out, "!!{tag} ");
            double_quoted(out, text);
        }
        Value::Float(value) => out.push_str(&scalar::print_float(*value)),
        _ => out.push_str(&node.label()),
    }
}

/// Text, in quotes where it would read as something else.
fn quoted(out: &mut String, text: &str) {
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | '%');
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(letters)
        && matches!(scalar::resolve(text), Ok(Value::Text(_)));
    if plain {
        out.push_str(text);
    } else {
        double_quoted(out, text);
    }
}

fn double_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20
                || (0x7f..0xa0).contains(&(c as u32))
                || matches!(c as u32, 0x2028 | 0x2029 | 0xfeff | 0xfffe | 0xffff) =>
            {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
