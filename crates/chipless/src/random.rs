//! Random inputs: the same seed gives the same bytes on every machine and in every version.
//!
//! The generator is [`SplitMix64`]. Each input
//! has a generator of its own, seeded by the output of number `index + 1` of the generator that has the user's seed, so that an
//! input's data do not depend on the others.

use chipless_kernels::cast::{Rounding, encode_f32, encode_i64};
use chipless_model::{ElementType, Kind, SplitMix64};
use rayon::prelude::*;

/// Elements made at a time; a multiple of eight, so that packed elements begin at a byte.
const BLOCK: usize = 512;
/// Bytes that a thread draws at a time: whole blocks of every type.
const PART: usize = 1 << 18;

/// Random elements of a tensor in `bytes`, from the element at byte `start` of the tensor on; both must hold whole elements.
///
/// Floats are the sum of four uniform numbers in ±1, a bell in ±4, rounded to their type. Signed integers lie in −8..=7, unsigned
/// ones in 0..=15, both within their type; signed ones of more than 16 bits are mostly indices and lie in 0..=7.
pub fn fill(
    element: ElementType,
    seed: u64,
    index: usize,
    start: u64,
    bytes: &mut [u8],
) -> Result<(), chipless_kernels::Error> {
    let mut seeds = SplitMix64(seed);
    seeds.skip(index as u64);
    let seed = seeds.number();
    // The generator is a counter: any part can be drawn alone.
    bytes
        .par_chunks_mut(PART)
        .enumerate()
        .try_for_each(|(number, part)| {
            let mut random = SplitMix64(seed);
            random.skip((start + (number * PART) as u64) * 8 / element.bits());
            draw(element, random, part)
        })
}

fn draw(
    element: ElementType,
    mut random: SplitMix64,
    bytes: &mut [u8],
) -> Result<(), chipless_kernels::Error> {
    let elements = |bytes: &[u8]| bytes.len() * 8 / element.bits() as usize;
    for block in bytes.chunks_mut(BLOCK * element.bits() as usize / 8) {
        if element.kind() == Kind::Float {
            let mut values = [0.0; BLOCK];
            let values = &mut values[..elements(block)];
            values.fill_with(|| bell(random.number()));
            encode_f32(element, values, Rounding::NearestEven, block)?;
        } else {
            let (low, count) = range(element);
            let mut values = [0; BLOCK];
            let values = &mut values[..elements(block)];
            values.fill_with(|| low + (random.number() % count) as i64);
            encode_i64(element, values, block)?;
        }
    }
    Ok(())
}

/// The sum of four uniform numbers in ±1, made of the four 16-bit parts of a random word. Exact in `f32`.
fn bell(word: u64) -> f32 {
    let sum: i32 = (0..4)
        .map(|part| i32::from((word >> (16 * part)) as u16))
        .sum();
    (sum - 2 * 65535) as f32 / 32768.0
}

/// Smallest value and number of values.
fn range(element: ElementType) -> (i64, u64) {
    match (element.kind(), element.bits()) {
        (Kind::Signed, 32..) => (0, 8),
        (Kind::Signed, bits) => {
            let bits = bits.min(4);
            (-(1 << (bits - 1)), 1 << bits)
        }
        _ if element == ElementType::Bool => (0, 2),
        (_, bits) => (0, 1 << bits.min(4)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_kernels::cast::decode_f64;

    fn values(element: ElementType, seed: u64, index: usize) -> Vec<f64> {
        let mut bytes = vec![0; element.bytes_for(2000).unwrap() as usize];
        fill(element, seed, index, 0, &mut bytes).unwrap();
        let mut values = vec![0.0; 2000];
        decode_f64(element, &bytes, &mut values).unwrap();
        values
    }

    #[test]
    fn the_generator_is_the_published_one() {
        let mut random = SplitMix64(1234567);
        assert_eq!(
            [random.number(), random.number()],
            [6457827717110365317, 3203168211198807973]
        );
    }

    #[test]
    fn every_type_has_values_in_its_range() {
        for element in ElementType::ALL {
            let v = values(*element, 1, 0);
            let (min, max) = v.iter().fold((f64::MAX, f64::MIN), |(low, high), x| {
                (low.min(*x), high.max(*x))
            });
            let want = match (element.kind(), element.bits()) {
                (Kind::Float, _) => {
                    assert!(
                        (-4.0..-2.5).contains(&min) && (2.5..=4.0).contains(&max),
                        "{element}: {min} to {max}"
                    );
                    let mean = v.iter().sum::<f64>() / v.len() as f64;
                    assert!(mean.abs() < 0.1, "{element}: {mean}");
                    continue;
                }
                (Kind::Signed, 32..) => (0.0, 7.0),
                (Kind::Signed, 2) => (-2.0, 1.0),
                (Kind::Signed, _) => (-8.0, 7.0),
                (Kind::Unsigned, 1) => (0.0, 1.0),
                (Kind::Unsigned, _) if *element == ElementType::Bool => (0.0, 1.0),
                (Kind::Unsigned, _) => (0.0, 15.0),
            };
            assert_eq!((min, max), want, "{element}");
        }
    }

    #[test]
    fn a_part_is_as_in_the_whole() {
        for element in ElementType::ALL {
            let mut whole = vec![0; element.bytes_for(2048).unwrap() as usize];
            fill(*element, 5, 1, 0, &mut whole).unwrap();
            let start = whole.len() / 4;
            let mut part = vec![0; whole.len() / 2];
            fill(*element, 5, 1, start as u64, &mut part).unwrap();
            assert_eq!(part, whole[start..][..part.len()], "{element}");
        }
    }

    #[test]
    fn seed_and_index_decide() {
        let one = values(ElementType::Float16, 7, 0);
        assert_eq!(one, values(ElementType::Float16, 7, 0));
        assert_ne!(one, values(ElementType::Float16, 8, 0));
        assert_ne!(one, values(ElementType::Float16, 7, 1));
        // What users have written down must not change.
        assert_eq!(
            values(ElementType::Float32, 0, 0)[..3],
            [0.623016357421875, 1.204345703125, 1.80621337890625]
        );
    }
}
