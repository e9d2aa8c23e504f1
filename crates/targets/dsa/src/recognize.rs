//! Which texts are DFGs, by their content.

use crate::syntax::ast::StatementKind;
use crate::syntax::{Lines, parse};
use chipless_model::Limits;

/// Bytes that are looked at.
const LOOKED_AT: usize = 64 << 10;

/// Options of ports.
const OPTIONS: [&str; 4] = ["stated", "state", "source", "destination"];

/// Whether a file looks like a DFG: it declares a port or an array, and not much more than half of its beginning is something else.
pub fn recognize(bytes: &[u8]) -> bool {
    let mut start = bytes.get(..LOOKED_AT).unwrap_or(bytes);
    if start.len() < bytes.len() {
        let whole = start.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        start = &start[..whole];
    }
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    // JSON, XML, ELF and scripts have no statement that could begin a DFG.
    if matches!(first, None | Some(b'{' | b'<' | 0x7F)) || start.starts_with(b"#!") {
        return false;
    }
    let limits = Limits {
        findings: 0,
        ..Limits::default()
    };
    let (file, _) = parse(start, &Lines::new(start), &limits);
    let (mut declared, mut good, mut bad) = (false, 0, file.unreadable);
    for statement in &file.statements {
        match &statement.kind {
            StatementKind::Port(port)
                if port
                    .options
                    .iter()
                    .all(|option| OPTIONS.contains(&option.key.text)) =>
            {
                (declared, good) = (true, good + 1);
            }
            StatementKind::Port(_) => bad += 1,
            StatementKind::Array(_) => (declared, good) = (true, good + 1),
            StatementKind::Assignment(_) | StatementKind::Task(_) => good += 1,
            StatementKind::Separator(_) | StatementKind::Pragma(_) => {}
        }
    }
    // Nothing else begins its lines with the keyword of a port and its width: such a line counts even where the rest of it is wrong.
    let wide = start
        .split(|byte| *byte == b'\n')
        .filter(|line| begins_with_port(line))
        .count();
    (declared || wide > 0) && (good + wide) * 3 >= bad
}

/// Whether a line begins with `Input64`, `OutputVec` or the like.
fn begins_with_port(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let keywords: [&[u8]; 3] = [b"Input", b"Output", b"Indirect"];
    let rest = keywords
        .into_iter()
        .find_map(|keyword| line.strip_prefix(keyword));
    rest.is_some_and(|rest| {
        rest.starts_with(b"Vec") || rest.first().is_some_and(u8::is_ascii_digit)
    })
}
