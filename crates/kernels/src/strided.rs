//! Moves of bytes between strided patterns.
//!
//! A move enumerates the bytes of both patterns in their order and writes each byte of the source to the place that the
//! destination names at the same position; where the destination names a place twice, the later byte stays. The two
//! sides may cut their bytes into runs of any lengths. Every move takes time in proportion to the bytes enumerated,
//! repeats of the same source and destination excepted, and nothing is written when it returns an error.

use crate::Error;
use chipless_model::{Loop, Pattern};
use plan::Plan;

mod cursor;
mod plan;
mod rows;

#[cfg(test)]
mod tests;

/// Copies the bytes of `from` in `source` to the places of `to` in `destination`.
pub fn copy(
    source: &[u8],
    from: &Pattern,
    destination: &mut [u8],
    to: &Pattern,
) -> Result<(), Error> {
    check_bounds("source", from, source.len())?;
    check_bounds("destination", to, destination.len())?;
    if check_length(from, to)? == 0 {
        return Ok(());
    }
    match Plan::new(from, to) {
        Some(plan) => plan.execute(source, destination),
        None => cursor::copy(source, from, destination, to),
    }
    Ok(())
}

/// Copies within one buffer, as if every byte were read before any is written.
pub fn copy_within(bytes: &mut [u8], from: &Pattern, to: &Pattern) -> Result<(), Error> {
    check_bounds("source", from, bytes.len())?;
    check_bounds("destination", to, bytes.len())?;
    let length = check_length(from, to)?;
    if length == 0 || from == to {
        return Ok(());
    }
    let (source, destination) = (range(from), range(to));
    if source.end <= destination.start {
        let (low, high) = bytes.split_at_mut(destination.start);
        return copy(low, from, high, &rebased(to, destination.start));
    }
    if destination.end <= source.start {
        let (low, high) = bytes.split_at_mut(source.start);
        return copy(high, &rebased(from, source.start), low, to);
    }
    // The sources go to a temporary: packed, or, where they repeat themselves, as they lie.
    if length <= source.len() as u64 {
        let mut packed = Vec::new();
        gather(bytes, from, &mut packed)?;
        scatter(&packed, bytes, to)
    } else {
        let snapshot = bytes[source.clone()].to_vec();
        copy(&snapshot, &rebased(from, source.start), bytes, to)
    }
}

/// Appends the bytes of `from` in `source` to `packed`.
pub fn gather(source: &[u8], from: &Pattern, packed: &mut Vec<u8>) -> Result<(), Error> {
    check_bounds("source", from, source.len())?;
    let length = from.bytes().ok_or(Error::Unequal {
        source_bytes: None,
        destination_bytes: Some(u64::MAX),
    })?;
    let no_memory = Error::Memory { bytes: length };
    let Ok(size) = usize::try_from(length) else {
        return Err(no_memory);
    };
    packed.try_reserve(size).map_err(|_| no_memory)?;
    let start = packed.len();
    packed.resize(start + size, 0);
    copy(
        source,
        from,
        &mut packed[start..],
        &Pattern::contiguous(0, length),
    )
}

/// Writes all of `packed` to the places of `to` in `destination`.
pub fn scatter(packed: &[u8], destination: &mut [u8], to: &Pattern) -> Result<(), Error> {
    copy(
        packed,
        &Pattern::contiguous(0, packed.len() as u64),
        destination,
        to,
    )
}

/// Repeats `element` over the places of `to` in `destination`, whose number of bytes must be a multiple of the element's.
pub fn fill(element: &[u8], destination: &mut [u8], to: &Pattern) -> Result<(), Error> {
    let size = element.len() as u64;
    let count = to
        .bytes()
        .and_then(|bytes| bytes.checked_div(size))
        .unwrap_or(0);
    copy(
        element,
        &Pattern::new(0, size, [Loop { count, stride: 0 }]),
        destination,
        to,
    )
}

fn check_bounds(operand: &'static str, pattern: &Pattern, size: usize) -> Result<(), Error> {
    if pattern.fits(size as u64) {
        return Ok(());
    }
    let extent = pattern.extent();
    Err(Error::Bounds {
        operand,
        start: extent.start,
        end: extent.end,
        size,
    })
}

/// The number of bytes that both enumerate.
fn check_length(from: &Pattern, to: &Pattern) -> Result<u64, Error> {
    match (from.bytes(), to.bytes()) {
        (Some(source), Some(destination)) if source == destination => Ok(source),
        (source_bytes, destination_bytes) => Err(Error::Unequal {
            source_bytes,
            destination_bytes,
        }),
    }
}

/// The bytes of a buffer between the first and the last touched, of a pattern that fits it.
fn range(pattern: &Pattern) -> std::ops::Range<usize> {
    let extent = pattern.extent();
    extent.start as usize..extent.end as usize
}

/// The pattern in the part of its buffer from `start`, which is not above any byte touched.
fn rebased(pattern: &Pattern, start: usize) -> Pattern {
    Pattern {
        offset: pattern.offset - start as u64,
        ..pattern.clone()
    }
}
