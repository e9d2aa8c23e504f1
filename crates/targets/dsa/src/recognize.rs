//! Which texts are DFGs, by their content.

use crate::syntax::ast::StatementKind;
use crate::syntax::{Lines, parse};
use chipless_model::Limits;

/// Bytes that are looked at.
const LOOKED_AT: usize = 64 << 10;

/// Whether a file looks like a DFG: it declares a port or an array, and at least half of its first statements can be read.
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
    let limits = Limits { findings: 0, ..Limits::default() };
    let (file, _) = parse(start, &Lines::new(start), &limits);
    let declared = file.statements.iter().any(|s| matches!(s.kind, StatementKind::Port(_) | StatementKind::Array(_)));
    let pragmas = file.statements.iter().filter(|s| matches!(s.kind, StatementKind::Pragma(_) | StatementKind::Separator(_))).count();
    declared && file.statements.len() - pragmas >= file.unreadable
}
