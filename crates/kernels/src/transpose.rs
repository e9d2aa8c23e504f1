//! Transposition of small units through vector registers.

/// Rows and columns of a block: enough for whole cache lines, few enough that those of both sides stay in the first-level
/// cache and their pages in the first-level TLB.
const fn block_side(unit: usize) -> usize {
    match unit {
        ..=4 => 64,
        5..=8 => 32,
        _ => 16,
    }
}

/// Writes unit `(row, column)` of the source as unit `(column, row)` of the destination.
///
/// A unit is `UNIT` bytes: 1, 2, 4 or 8 go through registers, others one by one. Units of a source row lie side by side,
/// rows `source_row` bytes apart; units of a destination row, one for each source row, lie side by side, and those rows
/// `destination_row` bytes apart.
///
/// # Safety
///
/// All `rows × columns` units must be readable at the source and writable at the destination, and the two sets of bytes
/// must not overlap.
#[allow(unsafe_code)]
pub(crate) unsafe fn transpose<const UNIT: usize>(
    source: *const u8,
    source_row: isize,
    destination: *mut u8,
    destination_row: isize,
    rows: usize,
    columns: usize,
) {
    let side = const { block_side(UNIT) };
    for row in (0..rows).step_by(side) {
        for column in (0..columns).step_by(side) {
            // SAFETY: the block's units are among those that the caller vouches for.
            unsafe {
                block::<UNIT>(
                    source.offset(row as isize * source_row).add(column * UNIT),
                    source_row,
                    destination
                        .offset(column as isize * destination_row)
                        .add(row * UNIT),
                    destination_row,
                    side.min(rows - row),
                    side.min(columns - column),
                );
            }
        }
    }
}

/// See [`transpose`].
#[allow(unsafe_code)]
unsafe fn block<const UNIT: usize>(
    source: *const u8,
    source_row: isize,
    destination: *mut u8,
    destination_row: isize,
    rows: usize,
    columns: usize,
) {
    let side = if UNIT.is_power_of_two() && UNIT <= 8 {
        16 / UNIT
    } else {
        1
    };
    let step = side as isize;
    // In units of tiles: how many, and the bytes from one to the next on both sides.
    let down = (rows / side, step * source_row, step * UNIT as isize);
    let across = (columns / side, step * UNIT as isize, step * destination_row);
    // Rows at distances of large powers of two share places in the cache: the side whose rows lie further apart has its
    // lines finished before they have to make room for each other.
    let by_source = source_row.unsigned_abs() > destination_row.unsigned_abs();
    let (outer, inner) = if by_source {
        (down, across)
    } else {
        (across, down)
    };
    for i in 0..outer.0 as isize {
        for j in 0..inner.0 as isize {
            // SAFETY: the tile lies inside the rows and columns.
            unsafe {
                let source = source.offset(i * outer.1 + j * inner.1);
                let destination = destination.offset(i * outer.2 + j * inner.2);
                if side == 1 {
                    source.copy_to_nonoverlapping(destination, UNIT);
                } else {
                    tile::<UNIT>(source, source_row, destination, destination_row);
                }
            }
        }
    }
    let (whole_rows, whole_columns) = (rows / side * side, columns / side * side);
    let edge = |row: usize, column: usize| {
        // SAFETY: so does the unit.
        unsafe {
            let unit = source.offset(row as isize * source_row).add(column * UNIT);
            unit.copy_to_nonoverlapping(
                destination
                    .offset(column as isize * destination_row)
                    .add(row * UNIT),
                UNIT,
            );
        }
    };
    for column in 0..columns {
        let first = if column < whole_columns {
            whole_rows
        } else {
            0
        };
        (first..rows).for_each(|row| edge(row, column));
    }
}

/// Transposes `16 / UNIT` rows of 16 bytes.
///
/// Interleaving row `i` with row `i + n/2`, for all `i`, rotates the bits of an element's index (row bits above column
/// bits) by one; `log2 n` times over, rows and columns have changed places.
///
/// # Safety
///
/// As for [`transpose`], with `16 / UNIT` rows and columns.
#[allow(unsafe_code)]
#[inline(always)]
#[allow(clippy::inline_always)] // The loops are to be unrolled for each UNIT.
unsafe fn tile<const UNIT: usize>(
    source: *const u8,
    source_row: isize,
    destination: *mut u8,
    destination_row: isize,
) {
    let side = 16 / UNIT;
    // SAFETY: each row has `side` units, 16 bytes.
    let row = |i: usize| unsafe {
        source
            .offset(i as isize * source_row)
            .cast::<Lane>()
            .read_unaligned()
    };
    let mut lanes = [row(0); 16];
    for (i, lane) in lanes.iter_mut().enumerate().take(side).skip(1) {
        *lane = row(i);
    }
    for _ in 0..side.ilog2() {
        let before = lanes;
        for i in 0..side / 2 {
            (lanes[2 * i], lanes[2 * i + 1]) = interleave::<UNIT>(before[i], before[i + side / 2]);
        }
    }
    for (j, lane) in lanes.iter().enumerate().take(side) {
        // SAFETY: each column becomes a row of `side` units.
        unsafe {
            destination
                .offset(j as isize * destination_row)
                .cast::<Lane>()
                .write_unaligned(*lane);
        };
    }
}

/// 16 bytes in a register.
#[cfg(target_arch = "x86_64")]
type Lane = std::arch::x86_64::__m128i;
#[cfg(not(target_arch = "x86_64"))]
type Lane = [u8; 16];

/// Units of both by turns: those of the first halves, then those of the second halves.
#[cfg(target_arch = "x86_64")]
#[inline]
fn interleave<const UNIT: usize>(a: Lane, b: Lane) -> (Lane, Lane) {
    use std::arch::x86_64 as x86;
    // SAFETY: SSE2 is part of x86-64.
    #[allow(unsafe_code)]
    unsafe {
        match UNIT {
            1 => (x86::_mm_unpacklo_epi8(a, b), x86::_mm_unpackhi_epi8(a, b)),
            2 => (x86::_mm_unpacklo_epi16(a, b), x86::_mm_unpackhi_epi16(a, b)),
            4 => (x86::_mm_unpacklo_epi32(a, b), x86::_mm_unpackhi_epi32(a, b)),
            _ => (x86::_mm_unpacklo_epi64(a, b), x86::_mm_unpackhi_epi64(a, b)),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn interleave<const UNIT: usize>(a: Lane, b: Lane) -> (Lane, Lane) {
    let byte = |half: usize, i: usize| {
        let at = half * 8 + i / (2 * UNIT) * UNIT + i % UNIT;
        if i / UNIT % 2 == 0 { a[at] } else { b[at] }
    };
    (
        std::array::from_fn(|i| byte(0, i)),
        std::array::from_fn(|i| byte(1, i)),
    )
}
