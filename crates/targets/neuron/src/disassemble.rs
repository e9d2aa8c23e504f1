//! A whole program as assembler text: every member, the instruction streams as instructions.
//!
//! What the assembler and [`Draft::write`](crate::Draft::write) make of the text has the same members, byte for byte; the
//! container around them (compression, order, hash) is written anew.

use crate::pack::{HEADER_FILE, header_json};
use crate::read::Neff;
use crate::stream::Stream;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// Bytes of a line of a member that is no text.
const LINE_BYTES: usize = 64;

/// Writes a program as assembler text.
///
/// # Errors
/// Those of the writer.
pub fn disassemble(neff: &Neff<'_>, out: &mut dyn Write) -> fmt::Result {
    let rooms = neff.subgraphs.iter().flat_map(|s| {
        let rooms = s.engines.iter();
        rooms.filter_map(move |room| Some((room.instructions?.path, (&s.name, room.engine))))
    });
    let streams: BTreeMap<&str, _> = rooms.collect();
    writeln!(out, "; {}", neff.container.header.name().escape_debug())?;
    text(HEADER_FILE, &header_json(neff.container), out)?;
    for member in neff.container.members() {
        match (streams.get(member.path), std::str::from_utf8(member.bytes)) {
            (Some((subgraph, engine)), _) => {
                writeln!(out, "\nstream {} ; {subgraph}, {engine}", member.path)?;
                stream(member.bytes, out)?;
            }
            (None, Ok(content)) if is_printable(content) => text(member.path, content, out)?,
            (None, _) => {
                writeln!(out, "\nmember {} hex", member.path)?;
                hex(member.bytes, out)?;
            }
        }
    }
    Ok(())
}

fn stream(bytes: &[u8], out: &mut dyn Write) -> fmt::Result {
    let Stream { slots, rest } = Stream::new(bytes);
    for slot in slots {
        writeln!(out, "{slot}")?;
    }
    hex(rest, out)
}

/// Whether content can stand in lines as it is.
fn is_printable(content: &str) -> bool {
    content
        .chars()
        .all(|c| c == '\n' || c == '\t' || !c.is_control())
}

fn text(path: &str, content: &str, out: &mut dyn Write) -> fmt::Result {
    writeln!(out, "\nmember {path} text")?;
    for line in content.split('\n') {
        writeln!(out, "|{line}")?;
    }
    Ok(())
}

fn hex(bytes: &[u8], out: &mut dyn Write) -> fmt::Result {
    for line in bytes.chunks(LINE_BYTES) {
        writeln!(out, "|{}", crate::header::hex(line))?;
    }
    Ok(())
}
