//! The lookup table of the post-processing engine (NPU5010, "sprLUT"): a function of one half, by lines.
//!
//! Layout, from the generator of tables in `openvinotoolkit/npu_compiler` (`sprlut_generator`), in words of 16 bits: eight ranges that have a value
//! of their own (value, low, high), a word of modes, seven that are reserved, a word for each sign and exponent (low 10 bits: the first line of
//! these halves; high 6 bits: how many bits of the mantissa choose among them), then the lines (slope, value where the line begins).
//! A line begins where the bits of the mantissa that do not choose are zero.
//!
//! The compiler puts a workload of a single position before the others of such a layer: the DPU loads the table for it.

use chipless_model::{Fault, Pattern};
use half::f16;

/// Ranges, modes, reserved words, and one word for each sign and exponent.
const HEAD: usize = 8 * 3 + 1 + 7 + 64;
const MODES: usize = 8 * 3;
const EXPONENTS: usize = HEAD - 64;
const LINE_BYTES: u64 = 4;
/// A range with this value leaves halves as they are.
const AS_IT_IS: u16 = 0xffff;
/// The function of a negative number is the negative one of the number without its sign.
const SYMMETRIC: u16 = 1;
/// Most lines that a table has.
const LINES: u64 = 256;

/// Where a table stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lookup {
    address: u64,
}

/// A table, as it was read.
pub(super) struct Table {
    ranges: Vec<(f16, f16, u16)>,
    is_symmetric: bool,
    exponents: Vec<u16>,
    lines: Vec<(f32, f32)>,
}

impl Lookup {
    /// NPU5010 DPU invariant, offset 0xd8: bits 17:0 the address in units of 32 bytes, bit 18 on where there is a table. `None` without.
    pub(super) fn decode(invariant: &[u8]) -> Option<Lookup> {
        let word = invariant.get(0xd8..0xdc)?.try_into().ok()?;
        let word = u32::from_le_bytes(word);
        (word >> 18 & 1 == 1).then_some(Lookup {
            address: u64::from(word & 0x3_ffff) * 32,
        })
    }

    /// The bytes of the table: without its lines where nobody knows how many there are.
    pub(super) fn pattern(self, known: &dyn Fn(u64, u64) -> Option<Vec<u8>>) -> Pattern {
        let head = 2 * HEAD as u64;
        let lines = known(self.address, head).map_or(0, |head| lines(&words(&head)));
        Pattern::contiguous(self.address, head + lines * LINE_BYTES)
    }

    /// Reads the table out of a tile.
    ///
    /// # Errors
    /// A table that leaves the tile, or has a mode that no program at hand has shown (reciprocal, square root, sine).
    pub(super) fn read(self, tile: &[u8]) -> Result<Table, Fault> {
        let outside = || {
            Fault::program(format!(
                "the lookup table at {:#x} leaves the tile",
                self.address
            ))
        };
        let rest = tile.get(self.address as usize..).ok_or_else(outside)?;
        let head = words(rest.get(..2 * HEAD).ok_or_else(outside)?);
        let size = (lines(&head) * LINE_BYTES) as usize;
        let found = rest.get(2 * HEAD..).and_then(|rest| rest.get(..size));
        let half = |word: u16| f16::from_bits(word);
        if head[MODES] & !SYMMETRIC != 0 {
            return Err(Fault::unsupported(format!(
                "mode {:#x} of a lookup table",
                head[MODES]
            )));
        }
        let lines = words(found.ok_or_else(outside)?);
        let lines = lines.as_chunks::<2>().0.iter();
        // Releases differ in the order of the limits of negative ranges.
        let ranges = head[..MODES].as_chunks::<3>().0.iter();
        let ranges = ranges.map(|[value, one, other]| {
            let (one, other) = (half(*one), half(*other));
            (one.min(other), one.max(other), *value)
        });
        Ok(Table {
            ranges: ranges.filter(|(low, high, _)| low <= high).collect(),
            is_symmetric: head[MODES] & SYMMETRIC != 0,
            exponents: head[EXPONENTS..].to_vec(),
            lines: lines
                .map(|[slope, begin]| (half(*slope).to_f32(), half(*begin).to_f32()))
                .collect(),
        })
    }
}

impl Table {
    /// Replaces each value, rounded to a half, by what the table makes of it.
    pub(super) fn apply(&self, values: &mut [f32]) {
        for value in values {
            *value = self.of(f16::from_f32(*value));
        }
    }

    fn of(&self, x: f16) -> f32 {
        if x.is_nan() {
            return f32::NAN;
        }
        let is_negated = self.is_symmetric && x.is_sign_negative();
        let x = if is_negated { -x } else { x };
        let y = self.of_side(x);
        if is_negated { -y } else { y }
    }

    fn of_side(&self, x: f16) -> f32 {
        let range = (self.ranges.iter()).find(|(low, high, _)| (*low..=*high).contains(&x));
        if let Some((_, _, value)) = range {
            return match *value {
                AS_IT_IS => x.to_f32(),
                value => f16::from_bits(value).to_f32(),
            };
        }
        let bits = x.to_bits();
        let exponent = self.exponents[usize::from(bits >> 10)];
        let (first, chosen) = (exponent & 0x3ff, chosen(exponent));
        let rest = 10 - chosen;
        let number = usize::from(first + ((bits & 0x3ff) >> rest));
        // No line: the exponent is that of ranges only, and of infinity.
        let Some((slope, begin)) = self.lines.get(number) else {
            return x.to_f32();
        };
        let start = f16::from_bits(bits >> rest << rest);
        slope * (x.to_f32() - start.to_f32()) + begin
    }
}

/// How many bits of the mantissa choose a line.
fn chosen(exponent: u16) -> u16 {
    (exponent >> 10).min(10)
}

/// Lines that the words for signs and exponents need.
fn lines(head: &[u16]) -> u64 {
    let each = head[EXPONENTS..HEAD].iter();
    let each = each.map(|word| u64::from(word & 0x3ff) + (1 << chosen(*word)));
    each.max().unwrap_or(0).min(LINES)
}

fn words(bytes: &[u8]) -> Vec<u16> {
    let words = bytes.as_chunks::<2>().0.iter();
    words.map(|word| u16::from_le_bytes(*word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of |x| from lines, but 1 from 8 to 16 and x itself from 16 on: two lines for each exponent of either sign.
    fn absolute() -> Vec<u8> {
        let half = |x: f32| f16::from_f32(x).to_bits();
        let mut words = vec![half(1.0), half(8.0), half(15.99)];
        words.extend([AS_IT_IS, half(16.0), half(f32::INFINITY)]);
        words.extend([f16::NAN.to_bits(); 18]);
        words.extend([0; 8]);
        words.extend((0..64).map(|exponent: u16| 1 << 10 | (2 * exponent)));
        for exponent in 0..64u16 {
            for piece in 0..2u16 {
                let start = f16::from_bits(exponent << 10 | piece << 9).to_f32();
                let start = if start.is_finite() { start } else { 0.0 };
                words.extend([half(start.signum()), half(start.abs())]);
            }
        }
        words.into_iter().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn lines_and_ranges() {
        let mut tile = vec![0; 96];
        tile.extend(absolute());
        let table = Lookup { address: 96 }.read(&tile).expect("a table");
        let mut values = [0.0, 0.75, -0.3, -7.5, 9.0, 15.9, 16.0, 1e9, f32::NAN];
        table.apply(&mut values);
        let rounded = f16::from_f32(0.3).to_f32();
        assert_eq!(
            values[..8],
            [0.0, 0.75, rounded, 7.5, 1.0, 1.0, 16.0, f32::INFINITY]
        );
        assert!(values[8].is_nan());
    }

    #[test]
    fn what_a_table_takes() {
        let bytes = absolute();
        let known = |start: u64, size: u64| {
            let start = start as usize;
            Some(bytes[start..start + size as usize].to_vec())
        };
        let at = Lookup { address: 0 };
        assert_eq!(at.pattern(&known).run, bytes.len() as u64);
        assert_eq!(at.pattern(&|_, _| None).run, 192);
        assert!(at.read(&bytes[..bytes.len() - 1]).is_err());
        let mut sine = bytes.clone();
        sine[2 * MODES] = 8;
        assert!(at.read(&sine).is_err());
    }

    #[test]
    fn a_table_is_named_by_one_register() {
        let mut invariant = [0; 352];
        assert_eq!(Lookup::decode(&invariant), None);
        invariant[0xd8..0xdc].copy_from_slice(&0x4_4064u32.to_le_bytes());
        assert_eq!(
            Lookup::decode(&invariant),
            Some(Lookup { address: 0x80c80 })
        );
    }
}
