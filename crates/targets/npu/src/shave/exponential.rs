//! e to the power of many numbers.

/// 2^(i/32), less i/32 in the bits of the exponent.
const POWERS: [u64; 32] = [
    0x3ff0000000000000,
    0x3fefd9b0d3158574,
    0x3fefb5586cf9890f,
    0x3fef9301d0125b51,
    0x3fef72b83c7d517b,
    0x3fef54873168b9aa,
    0x3fef387a6e756238,
    0x3fef1e9df51fdee1,
    0x3fef06fe0a31b715,
    0x3feef1a7373aa9cb,
    0x3feedea64c123422,
    0x3feece086061892d,
    0x3feebfdad5362a27,
    0x3feeb42b569d4f82,
    0x3feeab07dd485429,
    0x3feea47eb03a5585,
    0x3feea09e667f3bcd,
    0x3fee9f75e8ec5f74,
    0x3feea11473eb0187,
    0x3feea589994cce13,
    0x3feeace5422aa0db,
    0x3feeb737b0cdc5e5,
    0x3feec49182a3f090,
    0x3feed503b23e255d,
    0x3feee89f995ad3ad,
    0x3feeff76f2fb5e47,
    0x3fef199bdd85529c,
    0x3fef3720dcef9069,
    0x3fef5818dcfba487,
    0x3fef7c97337b9b5f,
    0x3fefa4afa2a490da,
    0x3fefd0765b6e4540,
];

/// The two floats for which it shows that the C library fuses products into sums: its result is the next larger float.
const FUSED: [u32; 2] = [0x4202_422f, 0xc27c_65d9];

/// The same float as `f32::exp` with glibc 2.28 and later on CPUs with fused multiply-add, whose algorithm it is: but without a call, so that a
/// loop of it becomes one of vectors, and alike on every CPU. Compared for all floats
/// between −200 and 200, and a sample of the others.
#[inline]
pub(super) fn exp(x: f32) -> f32 {
    const STEPS: f64 = 32.0;
    // Adding it leaves no bits for a fraction.
    const WHOLE: f64 = 6_755_399_441_055_744.0;
    // As in the library: 32 / ln 2, and a polynomial of 2^(r/32).
    let per_step = f64::from_bits(0x3ff7_1547_652b_82fe) * STEPS;
    let third = f64::from_bits(0x3fac_6af8_4b91_2394) / STEPS / STEPS / STEPS;
    let second = f64::from_bits(0x3fce_bfce_50fa_c4f3) / STEPS / STEPS;
    let first = f64::from_bits(0x3fe6_2e42_ff0c_52d6) / STEPS;
    let steps = per_step * f64::from(x);
    let shifted = steps + WHOLE;
    let number = shifted.to_bits();
    let rest = steps - (shifted - WHOLE);
    let power = POWERS[(number % 32) as usize].wrapping_add(number << 47);
    let square = rest * rest;
    let series = (third * rest + second) * square + (first * rest + 1.0);
    let value = (series * f64::from_bits(power)) as f32;
    let up = u32::from(x.to_bits() == FUSED[0]) + u32::from(x.to_bits() == FUSED[1]);
    let value = f32::from_bits(value.to_bits().wrapping_add(up));
    let value = if x > 89.0 { f32::INFINITY } else { value };
    let value = if x < -104.0 { 0.0 } else { value };
    if x.is_nan() { x + x } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        for (x, want) in [
            (0.0, 0x3f80_0000),
            (-0.0, 0x3f80_0000),
            (1.0, 0x402d_f854),
            (f32::from_bits(FUSED[0]), 0x56fc_9f1c),
            (f32::from_bits(FUSED[1]), 0x11fa_2993),
            (f32::INFINITY, 0x7f80_0000),
            (f32::NEG_INFINITY, 0),
            (88.8, 0x7f80_0000),
            (-103.5, 1),
            (-1e30, 0),
        ] {
            assert_eq!(exp(x).to_bits(), want, "{x}");
        }
        assert!(exp(f32::NAN).is_nan());
    }

    /// Of the numbers that a library gives, some are one place off those of another.
    #[test]
    fn agrees_with_the_library() {
        for bits in (0..=u32::MAX).step_by(99_991) {
            let x = f32::from_bits(bits);
            let (own, library) = (exp(x), x.exp());
            let is_near = own.to_bits().abs_diff(library.to_bits()) <= 1;
            assert!(
                is_near || (own.is_nan() && library.is_nan()),
                "{x}: {own} {library}"
            );
        }
    }
}
