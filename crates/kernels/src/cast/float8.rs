//! 8-bit floats of `EXPONENT` and `MANTISSA` bits below the sign, biased by `2^(EXPONENT-1) - 1`.
//!
//! With `INFINITE`, the largest exponent holds infinity and NaN, as in IEEE 754; without, it holds numbers, and only the
//! largest code is NaN. Free of branches, so that loops over them become vector code.

/// The value of a code; exact.
#[inline]
pub(super) fn decode<const EXPONENT: u32, const MANTISSA: u32, const INFINITE: bool>(
    code: u8,
) -> f32 {
    let magnitude = u32::from(code & 0x7f);
    // Read as the upper bits of an f32, the code is too small by the difference of the biases, subnormals included.
    let value = f32::from_bits(magnitude << (23 - MANTISSA))
        * f32::from_bits((127 + 127 - bias(EXPONENT)) << 23);
    let special = first_special(EXPONENT, MANTISSA, INFINITE);
    let beyond = if INFINITE && magnitude == special {
        f32::INFINITY
    } else {
        f32::NAN
    };
    let value = if magnitude < special { value } else { beyond };
    f32::from_bits(value.to_bits() | u32::from(code >> 7) << 31)
}

/// The code of a value, rounded to nearest even; overflow gives infinity where there is one, else NaN.
#[inline]
pub(super) fn encode<const EXPONENT: u32, const MANTISSA: u32, const INFINITE: bool>(
    value: f32,
) -> u8 {
    let magnitude = value.to_bits() & 0x7fff_ffff;
    let smallest_normal = (127 + 1 - bias(EXPONENT)) << 23;
    let code = if magnitude < smallest_normal {
        // A float whose last place is the step of the subnormals: adding it rounds to that step.
        let step = (127 + 1 - bias(EXPONENT) + 23 - MANTISSA) << 23;
        (f32::from_bits(magnitude) + f32::from_bits(step)).to_bits() - step
    } else {
        let rebiased = magnitude - smallest_normal + (1 << 23);
        let odd = rebiased >> (23 - MANTISSA) & 1;
        (rebiased + (1 << (22 - MANTISSA)) - 1 + odd) >> (23 - MANTISSA)
    };
    let special = first_special(EXPONENT, MANTISSA, INFINITE);
    let nan = special | 1 << (MANTISSA - 1);
    let code = if magnitude > f32::INFINITY.to_bits() {
        nan
    } else {
        code.min(special)
    };
    (code | value.to_bits() >> 31 << 7) as u8
}

const fn bias(exponent_bits: u32) -> u32 {
    (1 << (exponent_bits - 1)) - 1
}

/// The smallest code that is not finite.
const fn first_special(exponent_bits: u32, mantissa_bits: u32, infinite: bool) -> u32 {
    if infinite {
        ((1 << exponent_bits) - 1) << mantissa_bits
    } else {
        0x7f
    }
}
