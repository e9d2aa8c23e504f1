use super::*;
use proptest::prelude::*;

const SMALL_FLOATS: [ElementType; 6] = [
    ElementType::Float16,
    ElementType::BFloat16,
    ElementType::Float8E4M3Fn,
    ElementType::Float8E4M3,
    ElementType::Float8E5M2,
    ElementType::Float8E3M4,
];

/// Exponent bits, mantissa bits, whether the type has infinities.
fn layout(element: ElementType) -> (i32, i32, bool) {
    match element {
        ElementType::Float16 => (5, 10, true),
        ElementType::BFloat16 => (8, 7, true),
        ElementType::Float8E4M3Fn => (4, 3, false),
        ElementType::Float8E4M3 => (4, 3, true),
        ElementType::Float8E5M2 => (5, 2, true),
        ElementType::Float8E3M4 => (3, 4, true),
        _ => panic!("{element} is not a small float"),
    }
}

/// The value of a pattern of bits, by the definition of the formats.
fn value(element: ElementType, bits: u32) -> f64 {
    let (exponent_bits, mantissa_bits, infinite) = layout(element);
    let bias = (1 << (exponent_bits - 1)) - 1;
    let last = (1 << exponent_bits) - 1;
    let sign = if bits >> (exponent_bits + mantissa_bits) == 1 {
        -1.0
    } else {
        1.0
    };
    let exponent = (bits >> mantissa_bits) as i32 & last;
    let mantissa = bits & ((1 << mantissa_bits) - 1);
    let fraction = f64::from(mantissa) / f64::from(1 << mantissa_bits);
    if exponent == last && infinite {
        return if mantissa == 0 {
            sign * f64::INFINITY
        } else {
            f64::NAN
        };
    }
    if exponent == last && fraction + 2_f64.powi(-mantissa_bits) == 1.0 {
        return f64::NAN;
    }
    sign * if exponent == 0 {
        fraction * 2_f64.powi(1 - bias)
    } else {
        (1.0 + fraction) * 2_f64.powi(exponent - bias)
    }
}

fn bits_of(element: ElementType, bytes: &[u8]) -> u32 {
    if element.bits() == 8 {
        bytes[0].into()
    } else {
        u16::from_le_bytes([bytes[0], bytes[1]]).into()
    }
}

fn encode<T>(
    element: ElementType,
    value: T,
    how: impl Fn(ElementType, &[T], &mut [u8]) -> Result<(), Error>,
) -> u32 {
    let mut bytes = [0; 2];
    let size = element.bits() as usize / 8;
    how(element, &[value], &mut bytes[..size]).unwrap();
    bits_of(element, &bytes)
}

fn nearest_f32(element: ElementType, values: &[f32], bytes: &mut [u8]) -> Result<(), Error> {
    encode_f32(element, values, Rounding::NearestEven, bytes)
}

fn nearest_f64(element: ElementType, values: &[f64], bytes: &mut [u8]) -> Result<(), Error> {
    encode_f64(element, values, Rounding::NearestEven, bytes)
}

#[test]
fn small_floats_decode_by_their_definition() {
    for element in SMALL_FLOATS {
        let size = element.bits() as usize / 8;
        let bytes: Vec<u8> = (0..1_u32 << element.bits())
            .flat_map(|bits| bits.to_le_bytes().into_iter().take(size))
            .collect();
        let mut narrow = vec![0_f32; 1 << element.bits()];
        let mut wide = vec![0_f64; narrow.len()];
        decode_f32(element, &bytes, &mut narrow).unwrap();
        decode_f64(element, &bytes, &mut wide).unwrap();
        for (bits, (narrow, wide)) in narrow.into_iter().zip(wide).enumerate() {
            let want = value(element, bits as u32);
            assert!(
                want.is_nan() && wide.is_nan() && narrow.is_nan()
                    || want.to_bits() == wide.to_bits(),
                "{element} {bits:#x}"
            );
            assert!(
                want.is_nan() || (want as f32).to_bits() == narrow.to_bits(),
                "{element} {bits:#x}"
            );
        }
    }
}

/// Rounding is monotonic, so that its values at, just below and just above every representable value and every midpoint
/// between two of them fix it everywhere.
#[test]
fn small_floats_round_to_nearest_even() {
    for element in SMALL_FLOATS {
        let (exponent_bits, mantissa_bits, infinite) = layout(element);
        let sign = 1_u32 << (exponent_bits + mantissa_bits);
        // One past the largest finite value: the code of infinity, or the one where it would be.
        let overflow = if infinite {
            ((1 << exponent_bits) - 1) << mantissa_bits
        } else {
            sign - 1
        };
        let check = |input: f64, want: u32| {
            for (input, want) in [(input, want), (-input, want | sign)] {
                assert_eq!(
                    encode(element, input, nearest_f64),
                    want,
                    "{element} from f64 {input:e}"
                );
                let single = input as f32;
                if f64::from(single) == input {
                    assert_eq!(
                        encode(element, single, nearest_f32),
                        want,
                        "{element} from f32 {input:e}"
                    );
                }
            }
        };
        for code in 0..overflow {
            let here = value(element, code);
            let next = if code + 1 == overflow {
                2.0 * here - value(element, code - 1)
            } else {
                value(element, code + 1)
            };
            let middle = here.midpoint(next);
            check(here, code);
            check(here.next_up(), code);
            check(middle.next_down(), code);
            check(middle, code + (code & 1));
            check(middle.next_up(), code + 1);
            check(next.next_down(), code + 1);
            // The neighbours in f32, which f64 neighbours do not reach.
            for (near, want) in [
                ((middle as f32).next_down(), code),
                ((middle as f32).next_up(), code + 1),
            ] {
                assert_eq!(
                    encode(element, near, nearest_f32),
                    want,
                    "{element} from f32 {near:e}"
                );
            }
        }
        check(f64::from(f32::MAX), overflow);
        check(f64::INFINITY, overflow);
        assert!(value(element, encode(element, f32::NAN, nearest_f32)).is_nan());
        assert!(value(element, encode(element, f64::NAN, nearest_f64)).is_nan());
        assert!(
            value(
                element,
                encode(element, f32::from_bits(0x7f80_0001), nearest_f32)
            )
            .is_nan()
        );
    }
}

#[test]
fn integers_become_small_floats_with_one_rounding() {
    for element in SMALL_FLOATS {
        let mut inputs: Vec<i64> = (-70_000..70_000).collect();
        for shift in 17..63 {
            // At, around and far below the midpoints of steps of 8 significant bits, those of bfloat16.
            for odd in [129_i64, 131, 253, 255] {
                let middle = odd << shift >> 8;
                inputs.extend([
                    middle - 1,
                    middle,
                    middle + 1,
                    -middle,
                    1 - middle,
                    -1 - middle,
                ]);
            }
        }
        inputs.extend([i64::MIN, i64::MAX]);
        for input in inputs {
            let got = value(element, encode(element, input, encode_i64));
            if i128::from(input as f64 as i64) == i128::from(input) {
                let want = value(element, encode(element, input as f64, nearest_f64));
                assert!(
                    want == got || want.is_nan() && got.is_nan(),
                    "{element} {input}: {got} instead of {want}"
                );
            } else {
                let exact = i128::from(input);
                let error = (exact - got as i128).abs();
                let step = 1_i128 << input.unsigned_abs().ilog2() >> 7;
                assert!(
                    got.is_infinite() || got.is_nan() || error * 2 <= step,
                    "{element} {input}: {got}"
                );
            }
        }
    }
}

fn integer_types() -> impl Iterator<Item = ElementType> {
    ElementType::ALL
        .iter()
        .copied()
        .filter(|e| e.kind() != Kind::Float)
}

/// Smallest and largest value of an integer type.
fn range(element: ElementType) -> (i128, i128) {
    let bits = element.bits();
    match element.kind() {
        Kind::Signed => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        _ => (0, (1 << bits) - 1),
    }
}

/// Elements as the definition of packing has them.
fn pack(element: ElementType, values: &[i128]) -> Vec<u8> {
    let mut bytes = vec![0; element.bytes_for(values.len() as u64).unwrap() as usize];
    for (i, value) in values.iter().enumerate() {
        for bit in 0..element.bits() as usize {
            let at = i * element.bits() as usize + bit;
            bytes[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
        }
    }
    bytes
}

proptest! {
    #[test]
    fn integers_decode_and_encode_exactly(seeds in prop::collection::vec(any::<i64>(), 0..40)) {
        for element in integer_types() {
            let (low, high) = if element == ElementType::Bool { (0, 1) } else { range(element) };
            let values: Vec<i128> = seeds.iter().map(|s| low + i128::from(*s as u64) % (high - low + 1)).collect();
            let bytes = pack(element, &values);
            let mut integers = vec![0; values.len()];
            decode_i64(element, &bytes, &mut integers).unwrap();
            let want: Vec<i64> = values.iter().map(|v| *v as i64).collect();
            prop_assert_eq!(&integers, &want);
            let mut encoded = vec![0xff; bytes.len()];
            encode_i64(element, &integers, &mut encoded).unwrap();
            prop_assert_eq!(&encoded, &bytes);

            let (mut narrow, mut wide) = (vec![0_f32; values.len()], vec![0_f64; values.len()]);
            decode_f32(element, &bytes, &mut narrow).unwrap();
            decode_f64(element, &bytes, &mut wide).unwrap();
            prop_assert_eq!(narrow, values.iter().map(|v| *v as f32).collect::<Vec<_>>());
            prop_assert_eq!(wide, values.iter().map(|v| *v as f64).collect::<Vec<_>>());

            let mut short = vec![0; values.len()];
            let fits = low >= i16::MIN.into() && high <= i16::MAX.into() ;
            prop_assert_eq!(decode_i16(element, &bytes, &mut short).is_ok(), fits, "{}", element);
            if fits {
                prop_assert_eq!(short, values.iter().map(|v| *v as i16).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn floats_become_integers_by_their_rounding(values in prop::collection::vec(
        prop_oneof![any::<f32>(), -300_f32..300.0, (-600_i16..600).prop_map(|v| f32::from(v) / 2.0)], 0..40)) {
        for element in integer_types() {
            let (low, high) = range(element);
            for rounding in [Rounding::NearestEven, Rounding::TowardZero] {
                let want: Vec<i128> = values.iter().map(|v| match (element, rounding) {
                    (ElementType::Bool, _) => i128::from(*v != 0.0),
                    (_, Rounding::NearestEven) => (v.round_ties_even() as i128).clamp(low, high),
                    (_, Rounding::TowardZero) => (v.trunc() as i128).clamp(low, high),
                }).collect();
                let want = pack(element, &want);
                let mut bytes = vec![0; want.len()];
                encode_f32(element, &values, rounding, &mut bytes).unwrap();
                prop_assert_eq!(&bytes, &want, "{} from f32", element);
                let wide: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
                encode_f64(element, &wide, rounding, &mut bytes).unwrap();
                prop_assert_eq!(&bytes, &want, "{} from f64", element);
            }
        }
    }

    #[test]
    fn integers_saturate(values in prop::collection::vec(any::<i64>(), 0..40)) {
        for element in integer_types().filter(|e| e.bits() < 64 && *e != ElementType::Bool) {
            let (low, high) = range(element);
            let want = pack(element, &values.iter().map(|v| i128::from(*v).clamp(low, high)).collect::<Vec<_>>());
            let mut bytes = vec![0; want.len()];
            encode_i64(element, &values, &mut bytes).unwrap();
            prop_assert_eq!(bytes, want, "{}", element);
        }
    }

    /// Long enough for the block conversions and their ends.
    #[test]
    fn long_slices_convert_as_single_elements(length in 0_usize..1500, seed in any::<u32>()) {
        let values: Vec<f32> = (0..length as u32).map(|i| (i.wrapping_mul(seed) as i32 as f32) / 1e5).collect();
        for element in SMALL_FLOATS {
            let size = element.bits() as usize / 8;
            let mut bytes = vec![0; length * size];
            nearest_f32(element, &values, &mut bytes).unwrap();
            let single: Vec<u32> = values.iter().map(|v| encode(element, *v, nearest_f32)).collect();
            prop_assert_eq!(&bytes.chunks(size).map(|b| bits_of(element, b)).collect::<Vec<_>>(), &single);
            let wide: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
            nearest_f64(element, &wide, &mut bytes).unwrap();
            prop_assert_eq!(&bytes.chunks(size).map(|b| bits_of(element, b)).collect::<Vec<_>>(), &single);
            let mut decoded = vec![0.0; length];
            decode_f64(element, &bytes, &mut decoded).unwrap();
            for (got, bits) in decoded.into_iter().zip(single) {
                let want = value(element, bits);
                prop_assert!(got == want || got.is_nan() && want.is_nan());
            }
        }
    }
}

#[test]
fn floats_of_64_bits_round_once() {
    // Just above a midpoint of f16: by way of the nearest f32 it would be a tie and fall to the even side.
    let input = 1.0 + 2_f64.powi(-11) + 2_f64.powi(-40);
    assert_eq!(encode(ElementType::Float16, input, nearest_f64), 0x3c01);
    assert_eq!(encode(ElementType::Float16, -input, nearest_f64), 0xbc01);
    assert_eq!(
        encode(ElementType::Float16, 65520_f32.next_down(), nearest_f32),
        0x7bff
    );
    assert_eq!(encode(ElementType::Float16, 65520_f32, nearest_f32), 0x7c00);
}

#[test]
fn wrong_lengths_and_types_are_errors() {
    let mut bytes = [7; 3];
    let error = encode_f32(
        ElementType::Float16,
        &[1.0],
        Rounding::NearestEven,
        &mut bytes,
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "bytes to encode into: expected a length of 2, found 3"
    );
    assert_eq!(bytes, [7; 3]);
    assert!(decode_f32(ElementType::Int4, &[0; 2], &mut [0.0; 5]).is_err());
    assert!(decode_f32(ElementType::Int4, &[0; 3], &mut [0.0; 5]).is_ok());
    let error = decode_i64(ElementType::BFloat16, &[0; 2], &mut [0]).unwrap_err();
    assert_eq!(error.to_string(), "bfloat16 elements do not fit into i64");
}

#[test]
fn f16_may_stand_anywhere() {
    let values: Vec<f32> = (0..700).map(|i| i as f32 / 8.0 - 40.0).collect();
    let mut bytes = vec![0; 1402];
    for start in [0, 1, 2] {
        let place = &mut bytes[start..start + 1400];
        encode_f32(ElementType::Float16, &values, Rounding::NearestEven, place).unwrap();
        let mut decoded = vec![0.0; 700];
        decode_f32(ElementType::Float16, place, &mut decoded).unwrap();
        assert_eq!(decoded, values);
    }
}
