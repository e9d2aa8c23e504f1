//! Vectors as 64-bit words, and the messages that carry them.
//!
//! Element `j` of a vector of `b`-bit elements lies at bits `b·j` of its word, `64 / b` elements to a word, low words
//! first, padded with zeros. A message to the accelerator is a header `pc << 32 | core` and the words; a reply is a header
//! `mailbox << 32 | status` and the words. On the bus each word goes as two of 32 bits, low half first.

use super::document::{Document, Side, Vector};
use super::violation::Violation;

/// The status of a reply that carries a result.
pub const SUCCESS: u32 = 0x1f;

/// Elements of a vector that are packed, at most; a file may say anything.
const MOST_ELEMENTS: i64 = 1 << 24;

/// A message of 64-bit words, header first.
pub type Message = Vec<u64>;

/// Packs elements, padded with zeros to `padded`.
///
/// # Errors
/// A precision other than 8 or 16, more elements than `padded`, an element out of range, or a padded length that fills no
/// whole number of words.
pub fn pack(values: &[i64], precision: i64, padded: i64) -> Result<Vec<u64>, Violation> {
    let bits = match precision {
        8 | 16 => precision as u32,
        _ => {
            return Err(Violation::value(format!(
                "expected a precision of 8 or 16 bits on the wire, found {precision}"
            )));
        }
    };
    if !(0..=MOST_ELEMENTS).contains(&padded) {
        return Err(Violation::value(format!(
            "expected a padded length of 0 to {MOST_ELEMENTS}, found {padded}"
        )));
    }
    let padded = padded as usize;
    if values.len() > padded {
        return Err(Violation::value(format!(
            "expected at most {padded} elements, found {}",
            values.len()
        )));
    }
    let per_word = 64 / bits as usize;
    if !padded.is_multiple_of(per_word) {
        return Err(Violation::value(format!(
            "expected a padded length of whole words ({per_word} elements), found {padded}"
        )));
    }
    let limit = 1i64 << (bits - 1);
    if let Some((at, value)) = values
        .iter()
        .enumerate()
        .find(|(_, v)| !(-limit..limit).contains(*v))
    {
        return Err(Violation::value(format!(
            "expected {bits}-bit integers, found {value} at element {at}"
        )));
    }
    let mut words = vec![0; padded / per_word];
    let mask = (1u64 << bits) - 1;
    for (word, elements) in words.iter_mut().zip(values.chunks(per_word)) {
        *word = elements
            .iter()
            .rev()
            .fold(0, |word, value| (word << bits) | (*value as u64 & mask));
    }
    Ok(words)
}

/// Takes the elements out of words.
///
/// # Errors
/// A precision other than 8 or 16.
pub fn unpack(words: &[u64], precision: i64) -> Result<Vec<i64>, Violation> {
    let bits = match precision {
        8 | 16 => precision as u32,
        _ => {
            return Err(Violation::value(format!(
                "expected a precision of 8 or 16 bits on the wire, found {precision}"
            )));
        }
    };
    let element =
        |word: u64, index: u32| ((word << (64 - bits - index * bits)) as i64) >> (64 - bits);
    Ok(words
        .iter()
        .flat_map(|word| (0..64 / bits).map(move |index| element(*word, index)))
        .collect())
}

/// The fields that a vector lacks for the wire.
fn missing(vector: &Vector) -> Vec<&'static str> {
    let address: &[_] = match vector.side {
        Side::Input => &[("core_id", vector.core_id), ("pc", vector.pc)],
        Side::Output => &[("mailbox_id", vector.mailbox_id)],
    };
    let size = [
        ("padded_length", vector.padded_length),
        ("length_64b_words", vector.words),
    ];
    let fields = address.iter().chain(&size);
    fields
        .filter(|(_, value)| value.is_none())
        .map(|(name, _)| *name)
        .collect()
}

fn field(vector: &Vector, name: &str, value: Option<i64>, bits: u32) -> Result<u64, Violation> {
    let Some(value) = value else {
        return Err(Violation::value(format!(
            "expected {} of `{}` for the wire, found none: give the IOSpec that the compiler wrote, which has them, write them into this one by hand, or drive without --wire",
            missing(vector).join(", "),
            vector.key
        )));
    };
    u64::try_from(value)
        .ok()
        .filter(|v| *v >> bits == 0)
        .ok_or_else(|| {
            Violation::value(format!(
                "expected {name} of `{}` in {bits} bits, found {value}",
                vector.key
            ))
        })
}

/// The words that a vector takes, by its own statement; they must be what its padded length takes.
fn payload_words(vector: &Vector) -> Result<(i64, u64), Violation> {
    let padded = field(vector, "padded_length", vector.padded_length, 31)? as i64;
    Ok((padded, field(vector, "length_64b_words", vector.words, 31)?))
}

/// The message that sends an input.
///
/// # Errors
/// Missing addresses, values that do not fit, or a number of words other than the document states.
pub fn send(vector: &Vector, values: &[i64]) -> Result<Message, Violation> {
    let (core, pc) = (
        field(vector, "core_id", vector.core_id, 32)?,
        field(vector, "pc", vector.pc, 32)?,
    );
    message(vector, pc << 32 | core, values)
}

/// The reply that carries an output.
///
/// # Errors
/// As [`send`].
pub fn reply(vector: &Vector, values: &[i64]) -> Result<Message, Violation> {
    let mailbox = field(vector, "mailbox_id", vector.mailbox_id, 32)?;
    message(vector, mailbox << 32 | u64::from(SUCCESS), values)
}

fn message(vector: &Vector, header: u64, values: &[i64]) -> Result<Message, Violation> {
    let (padded, stated) = payload_words(vector)?;
    let words = pack(values, vector.precision, padded).map_err(|v| v.of(&vector.key))?;
    if words.len() as u64 != stated {
        return Err(Violation::value(format!(
            "expected {stated} words of `{}` (length_64b_words), found {}",
            vector.key,
            words.len()
        )));
    }
    Ok(std::iter::once(header).chain(words).collect())
}

/// Takes the vectors out of the words of one side: inputs by core and pc, outputs by mailbox. Positions in the document's
/// list of that side, with the elements up to the model's length.
///
/// # Errors
/// An address that nobody has, a status other than success, or too few words.
pub fn decode(
    document: &Document,
    side: Side,
    mut words: &[u64],
) -> Result<Vec<(usize, Vec<i64>)>, Violation> {
    let vectors = if side == Side::Input {
        &document.inputs
    } else {
        &document.outputs
    };
    let mut found = Vec::new();
    while let Some((header, rest)) = words.split_first() {
        let (high, low) = (header >> 32, header & 0xffff_ffff);
        let of_address = |v: &Vector| match side {
            Side::Input => v.pc == Some(high as i64) && v.core_id == Some(low as i64),
            Side::Output => v.mailbox_id == Some(high as i64),
        };
        let Some(index) = vectors.iter().position(of_address) else {
            return Err(Violation::wire(match side {
                Side::Input => {
                    format!("expected the core and pc of an input, found core {low}, pc {high}")
                }
                Side::Output => format!("expected the mailbox of an output, found {high}"),
            }));
        };
        let vector = &vectors[index];
        if side == Side::Output && low != u64::from(SUCCESS) {
            return Err(Violation::wire(format!(
                "expected status {SUCCESS:#x} in the reply of `{}`, found {low:#x}",
                vector.key
            )));
        }
        let (_, stated) = payload_words(vector)?;
        let Some((payload, after)) = usize::try_from(stated)
            .ok()
            .and_then(|stated| rest.split_at_checked(stated))
        else {
            return Err(Violation::wire(format!(
                "expected {stated} words of `{}` behind the header, found {}",
                vector.key,
                rest.len()
            )));
        };
        let mut values = unpack(payload, vector.precision).map_err(|v| v.of(&vector.key))?;
        let length = usize::try_from(vector.length).unwrap_or_default();
        if values.len() < length {
            return Err(Violation::wire(format!(
                "expected {length} elements of `{}`, found {} in {stated} words",
                vector.key,
                values.len()
            )));
        }
        values.truncate(length);
        found.push((index, values));
        words = after;
    }
    Ok(found)
}

/// A message as the 32-bit words of the bus.
pub fn halves(message: &[u64]) -> Vec<u32> {
    message
        .iter()
        .flat_map(|word| [*word as u32, (*word >> 32) as u32])
        .collect()
}
