//! The calls that a host program must make, in their order: C with comments.

use super::document::{Document, Sequence};
use std::fmt::Write;

/// Prints calls of the firmware library for one round of every sequence: latched values first, then each sequence with its
/// reads. Where the format names nothing public (types, buffers), the code says so in comments.
pub fn host_code(document: &Document) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "/* Calls of the SPU library in the order that this IOSpec asks for."
    );
    let _ = writeln!(
        out,
        " * Sequence ids count the simple sequences in the order of the file. Vectors of one call stand in the"
    );
    let _ = writeln!(
        out,
        " * order of the sequence. A call that breaks the order fails with kSpuSequenceError."
    );
    let _ = writeln!(
        out,
        " * The library's header is not public: argument types are a sketch. */\n"
    );
    for vector in document.vectors() {
        let identifier = identifier(&vector.varname);
        let padded = vector.padded_length.unwrap_or(vector.length);
        let scale = vector.quantization.map_or(String::new(), |q| {
            format!(", value = (integer - {}) * {:e}", q.zero_point, q.scale)
        });
        let element = match vector.precision {
            8 => "int8_t",
            16 => "int16_t",
            _ => "int32_t",
        };
        let role = vector.side.name();
        let _ = writeln!(
            out,
            "{element} {identifier}[{padded}]; /* {role} {}: {} elements{scale} */",
            text_as_comment(&vector.varname),
            vector.length
        );
    }
    let numbered = || document.simple_sequences().enumerate();
    out.push('\n');
    for (id, sequence) in numbered().filter(|(_, s)| s.is_latched()) {
        let _ = writeln!(
            out,
            "/* {}: latched. 0 until written; before the start or whenever it changes: */",
            text_as_comment(&sequence.name)
        );
        write_call(&mut out, document, id, sequence, "");
    }
    let _ = writeln!(out, "\nfor (;;) {{");
    for (id, sequence) in numbered().filter(|(_, s)| !s.is_latched()) {
        let _ = writeln!(out, "    /* {} */", text_as_comment(&sequence.name));
        if !sequence.inputs.is_empty() {
            write_call(&mut out, document, id, sequence, "    ");
        }
        let outputs = pointers(document, sequence.outputs.iter().map(|m| &*m.key));
        let _ = writeln!(
            out,
            "    SpuReadData({id}, (void *[]){{{outputs}}}); /* {} */",
            names(sequence.outputs.iter().map(|m| &*m.key))
        );
    }
    for sequence in document
        .sequences
        .iter()
        .filter(|s| s.kind == super::SequenceKind::Complex)
    {
        let _ = writeln!(
            out,
            "    /* {}: complex sequences have no id, and no call yet */",
            text_as_comment(&sequence.name)
        );
    }
    out.push_str("}\n");
    out
}

fn write_call(out: &mut String, document: &Document, id: usize, sequence: &Sequence, indent: &str) {
    let keys = || sequence.inputs.iter().map(|m| &*m.key);
    let _ = writeln!(
        out,
        "{indent}SpuWriteData({id}, (const void *[]){{{}}}); /* {} */",
        pointers(document, keys()),
        names(keys())
    );
}

fn names<'k>(keys: impl Iterator<Item = &'k str>) -> String {
    keys.map(text_as_comment).collect::<Vec<_>>().join(", ")
}

fn pointers<'k>(document: &Document, keys: impl Iterator<Item = &'k str>) -> String {
    let varname = |key: &str| {
        document
            .vectors()
            .find(|v| v.key == key)
            .map_or(key.to_owned(), |v| v.varname.clone())
    };
    keys.map(|key| identifier(&varname(key)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A name as C takes it.
fn identifier(name: &str) -> String {
    let body: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if body.starts_with(|c: char| c.is_ascii_digit()) || body.is_empty() {
        format!("v{body}")
    } else {
        body
    }
}

/// Text that cannot end a comment.
pub fn text_as_comment(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect::<String>()
        .replace("*/", "* /")
}
