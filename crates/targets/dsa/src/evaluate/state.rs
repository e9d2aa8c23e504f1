//! The state byte of stated ports.

/// The state byte of a row: where it stands in the loops (outermost first) of its stream. See the [module docs](super).
pub fn state_byte(loops: &[u64], row: u64) -> u8 {
    let rows: u64 = loops.iter().product();
    let inner = loops.last().copied().unwrap_or(1).max(1);
    let outer = loops.iter().rev().take(2).product::<u64>().max(1);
    let ends = |length: u64| {
        u8::from(row.is_multiple_of(length)) | u8::from(row % length == length - 1) << 1
    };
    ends(rows.max(1)) | ends(inner) << 2 | ends(outer) << 4
}
