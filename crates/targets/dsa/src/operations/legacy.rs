//! The older generation: what each name computes.
//!
//! The names follow no rule that could be relied on; each is listed with its meaning. Sources: the note of the instruction table, the
//! operation's own definition in the public scheduler, or the name where it can only mean one thing.

use super::complex::{self, Complex};
use super::lane::{lane, lanes, map, pair, test, zip};
use super::meaning::{binary, ternary, unary};
use super::step::{self, holding, plain};
use super::{Meaning, fixed};

/// The meaning of a name when it is given so many operands; `None` where nothing says what it does, or where the newer generation has it.
pub(super) fn meaning(name: &str, operands: usize) -> Option<Meaning> {
    scalar(name, operands)
        .or_else(|| lanewise(name, operands))
        .or_else(|| reduction(name, operands))
        .or_else(|| float(name, operands))
        .or_else(|| fixed_point(name, operands))
        .or_else(|| state(name))
}

/// Whole words: arithmetic, logic, comparison, selection, conversion.
fn scalar(name: &str, operands: usize) -> Option<Meaning> {
    Some(match name {
        "Copy" | "Delay" | "DelayFU" => unary!(|a| a),
        "Add" | "Add8" | "Add16" | "Add32" | "Add64" => binary!(|a: u64, b: u64| a.wrapping_add(b)),
        "Sub" | "Sub64" => binary!(|a: u64, b: u64| a.wrapping_sub(b)),
        "Sub16" => binary!(|a: u64, b: u64| a.abs_diff(b)),
        "Mul" | "Mul16" | "Mul32" | "Mul64" | "SMul64" => {
            binary!(|a: u64, b: u64| a.wrapping_mul(b))
        }
        "Sqr64" => unary!(|a: u64| a.wrapping_mul(a)),
        "UDiv" | "Div16" | "Div32" | "Div64" => {
            binary!(|a: u64, b: u64| a.checked_div(b).unwrap_or(0))
        }
        "URem" | "Mod16" => binary!(|a: u64, b: u64| a.checked_rem(b).unwrap_or(0)),
        "SDiv" => binary!(|a, b| signed(a, b, |a, b| if b == 0 { 0 } else { a.wrapping_div(b) })),
        "SRem" => binary!(|a, b| signed(a, b, |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) })),
        "IMax" | "SMax" | "SMax64" => binary!(|a, b| signed(a, b, i64::max)),
        "IMin" | "SMin" | "SMin64" => binary!(|a, b| signed(a, b, i64::min)),
        "Max64" => binary!(|a: u64, b: u64| a.max(b)),
        "Min16" | "Min32" | "Min64" => binary!(|a: u64, b: u64| a.min(b)),
        "SAdd64" => binary!(|a, b| signed(a, b, i64::saturating_add)),
        "SSub64" => binary!(|a, b| signed(a, b, i64::saturating_sub)),
        "Abs64" => unary!(|a: u64| (a as i64).unsigned_abs()),
        "Negate64" => unary!(|a: u64| a.wrapping_neg()),
        "ReLU16" => unary!(|a| a),
        "And" | "And16" | "And32" => binary!(|a, b| a & b),
        "And3" => ternary!(|a, b, c| a & b & c),
        "Or" | "Or16" | "Or32" => binary!(|a, b| a | b),
        "Xor" | "Xor32" => binary!(|a, b| a ^ b),
        "Nor" => binary!(|a: u64, b: u64| !(a | b)),
        "Not" | "Not16" => unary!(|a: u64| u64::from(a == 0)),
        "RShf16" | "RShf64" | "LShr" => binary!(|a: u64, b: u64| a >> amount(b)),
        "LShf64" | "Shl" | "Shl_I16" | "Shl_I64" => {
            binary!(|a: u64, b: u64| a << amount(b))
        }
        "AShr" | "ARShf64" => binary!(|a: u64, b: u64| (a as i64 >> amount(b)) as u64),
        "ICmpEQ" | "ICmpEq16" | "CmpEQ64" => binary!(|a, b| u64::from(a == b)),
        "ICmpNE" | "ICmpNE32" => binary!(|a, b| u64::from(a != b)),
        "ICmpNE16" => binary!(|a, b| if a == 1 << 15 || b == 1 << 15 {
            2
        } else {
            u64::from(a != b)
        }),
        "ICmp32" | "ICmp" | "ICmpUGT" | "CmpGT64" => binary!(|a, b| u64::from(a > b)),
        "ICmpUGE" | "CmpGE64" => binary!(|a, b| u64::from(a >= b)),
        "ICmpULT" | "CmpLT64" => binary!(|a, b| u64::from(a < b)),
        "ICmpULE" | "CmpLE64" => binary!(|a, b| u64::from(a <= b)),
        "ICmpSGT" | "SCmpGT64" => binary!(|a: u64, b: u64| u64::from(a as i64 > b as i64)),
        "ICmpSGE" | "SCmpGE64" => binary!(|a: u64, b: u64| u64::from(a as i64 >= b as i64)),
        "ICmpSLT" | "SCmpLT64" => binary!(|a: u64, b: u64| u64::from((a as i64) < b as i64)),
        "ICmpSLE" | "SCmpLE64" => binary!(|a: u64, b: u64| u64::from(a as i64 <= b as i64)),
        "Compare16" => binary!(|a, b| three_way(a, b, 1 << 15)),
        "Compare64" | "Compare_I64" if operands > 2 => {
            ternary!(|a, b, c| three_way_masked(a, b, c))
        }
        "Compare64" | "Compare_I64" => binary!(|a, b| three_way(a, b, 1 << 63)),
        "Select" | "Select32" => ternary!(|a, b, c| if c == 0 { a } else { b }),
        "Select64" | "Ternary" => ternary!(|a, b, c| if a == 0 { c } else { b }),
        "Concat64" | "Concatenate32To64" => binary!(|a, b| a & 0xffff_ffff | b << 32),
        "ConcatLow32" => binary!(|a, b| b & 0xffff_ffff | a << 32),
        "Concatenate16To32" | "Concat_I32" => binary!(|a, b| a & 0xffff | (b & 0xffff) << 16),
        "DupLow32" => unary!(|a: u64| a & 0xffff_ffff | a << 32),
        "DupHigh32" => unary!(|a: u64| a >> 32 | a & 0xffff_ffff << 32),
        "HLAdd_I64" => unary!(|a: u64| (a & 0xffff_ffff) + (a >> 32)),
        "HLAdd_I32x2" => unary!(|a: u64| lanes::<u32>(|i| lane::<u16>(a, 2 * i)
            .wrapping_add(lane(a, 2 * i + 1))
            .into())),
        "Sig16" if operands > 1 => binary!(|a, b| if b == 0 { a } else { squash(a) }),
        "Sig16" => unary!(squash),
        "SignExt8to64" => unary!(|a: u64| a as i8 as u64),
        "SignExt16to64" => unary!(|a: u64| a as i16 as u64),
        "SignExt32to64" => unary!(|a: u64| a as i32 as u64),
        "SignExt16FanOut8x4" => unary!(|a: u64| lanes::<i16>(|i| lane::<i8>(a, i).into())),
        "SignExt32FanOut8x2" => unary!(|a: u64| lanes::<i32>(|i| lane::<i8>(a, i).into())),
        "SignExt32FanOut16x2" => unary!(|a: u64| lanes::<i32>(|i| lane::<i16>(a, i).into())),
        "ZeroExt16FanOut8x4" => unary!(|a: u64| lanes::<u16>(|i| lane::<u8>(a, i).into())),
        "ZeroExt32FanOut8x2" => unary!(|a: u64| lanes::<u32>(|i| lane::<u8>(a, i).into())),
        "ZeroExt32FanOut16x2" => unary!(|a: u64| lanes::<u32>(|i| lane::<u16>(a, i).into())),
        _ => return None,
    })
}

/// Integer lanes, each for itself.
fn lanewise(name: &str, operands: usize) -> Option<Meaning> {
    Some(match name {
        "Add8x8" => binary!(|a, b| zip(a, b, u8::wrapping_add)),
        "Add16x4" | "TAdd16x4" => binary!(|a, b| zip(a, b, u16::wrapping_add)),
        "Add32x2" => binary!(|a, b| zip(a, b, u32::wrapping_add)),
        "SAdd8x8" => binary!(|a, b| zip(a, b, i8::saturating_add)),
        "SAdd16x4" => binary!(|a, b| zip(a, b, i16::saturating_add)),
        "SAdd32x2" => binary!(|a, b| zip(a, b, i32::saturating_add)),
        "Sub8x8" => binary!(|a, b| zip(a, b, u8::wrapping_sub)),
        "Sub16x4" => binary!(|a, b| zip(a, b, u16::wrapping_sub)),
        "Sub32x2" => binary!(|a, b| zip(a, b, u32::wrapping_sub)),
        "SSub8x8" => binary!(|a, b| zip(a, b, i8::saturating_sub)),
        "SSub16x4" => binary!(|a, b| zip(a, b, i16::saturating_sub)),
        "SSub32x2" => binary!(|a, b| zip(a, b, i32::saturating_sub)),
        "Mul8x8" | "SMul8x8" => binary!(|a, b| zip(a, b, u8::wrapping_mul)),
        "Mul16x4" | "SMul16x4" => binary!(|a, b| zip(a, b, u16::wrapping_mul)),
        "Mul32x2" | "SMul32x2" => binary!(|a, b| zip(a, b, u32::wrapping_mul)),
        "Div16x4" => binary!(|a, b| zip(a, b, |a: u16, b: u16| a.checked_div(b).unwrap_or(a))),
        "Mod16x4" => binary!(|a, b| zip(a, b, |a: u16, b: u16| a.checked_rem(b).unwrap_or(0))),
        "Abs8x8" => unary!(|a| map(a, i8::wrapping_abs)),
        "Abs16x4" => unary!(|a| map(a, i16::wrapping_abs)),
        "Abs32x2" => unary!(|a| map(a, i32::wrapping_abs)),
        "Negate8x8" => unary!(|a| map(a, i8::wrapping_neg)),
        "Negate16x4" => unary!(|a| map(a, i16::wrapping_neg)),
        "Negate32x2" => unary!(|a| map(a, i32::wrapping_neg)),
        "Max8x8" => binary!(|a, b| zip(a, b, u8::max)),
        "Max16x4" => binary!(|a, b| zip(a, b, u16::max)),
        "Max32x2" => binary!(|a, b| zip(a, b, u32::max)),
        "SMax8x8" => binary!(|a, b| zip(a, b, i8::max)),
        "SMax16x4" => binary!(|a, b| zip(a, b, i16::max)),
        "SMax32x2" => binary!(|a, b| zip(a, b, i32::max)),
        "Min8x8" => binary!(|a, b| zip(a, b, u8::min)),
        "Min16x4" => binary!(|a, b| zip(a, b, u16::min)),
        "Min32x2" => binary!(|a, b| zip(a, b, u32::min)),
        "SMin8x8" => binary!(|a, b| zip(a, b, i8::min)),
        "SMin16x4" => binary!(|a, b| zip(a, b, i16::min)),
        "SMin32x2" => binary!(|a, b| zip(a, b, i32::min)),
        "LShf16x4" => {
            binary!(|a, b| zip(a, b, |a: u16, b: u16| a.checked_shl(b.into()).unwrap_or(0)))
        }
        "LShf32x2" => binary!(|a, b| zip(a, b, |a: u32, b: u32| a.checked_shl(b).unwrap_or(0))),
        "ARShf16x4" => binary!(|a, b| zip(a, b, |a: i16, b: i16| a >> (b as u16).min(15))),
        "ARShf32x2" => binary!(|a, b| zip(a, b, |a: i32, b: i32| a >> (b as u32).min(31))),
        "RShf2_16x4" if operands == 1 => unary!(|a| shift_lanes(a, 2)),
        "RShf4_16x4" if operands == 1 => unary!(|a| shift_lanes(a, 4)),
        "RShf2_16x4" | "RShf4_16x4" => binary!(shift_lanes),
        "RShf16x4" if operands == 1 => unary!(|a| shift_halves(a, 2)),
        "RShf16x4" => binary!(shift_halves),
        "RShf32x2" => {
            binary!(|a, b: u64| lanes::<u32>(|i| shifted_out(lane::<u32>(a, i).into(), b) as u32))
        }
        "HAdd16x4" => binary!(neighbours),
        "CmpEQ8x8" => binary!(|a, b| test(a, b, |a: u8, b| a == b)),
        "CmpEQ16x4" => binary!(|a, b| test(a, b, |a: u16, b| a == b)),
        "CmpEQ32x2" => binary!(|a, b| test(a, b, |a: u32, b| a == b)),
        "CmpGT8x8" => binary!(|a, b| test(a, b, |a: u8, b| a > b)),
        "CmpGT16x4" => binary!(|a, b| test(a, b, |a: u16, b| a > b)),
        "CmpGT32x2" => binary!(|a, b| test(a, b, |a: u32, b| a > b)),
        "CmpGE8x8" => binary!(|a, b| test(a, b, |a: u8, b| a >= b)),
        "CmpGE16x4" => binary!(|a, b| test(a, b, |a: u16, b| a >= b)),
        "CmpGE32x2" => binary!(|a, b| test(a, b, |a: u32, b| a >= b)),
        "CmpLT8x8" => binary!(|a, b| test(a, b, |a: u8, b| a < b)),
        "CmpLT16x4" => binary!(|a, b| test(a, b, |a: u16, b| a < b)),
        "CmpLT32x2" => binary!(|a, b| test(a, b, |a: u32, b| a < b)),
        "CmpLE8x8" => binary!(|a, b| test(a, b, |a: u8, b| a <= b)),
        "CmpLE16x4" => binary!(|a, b| test(a, b, |a: u16, b| a <= b)),
        "CmpLE32x2" => binary!(|a, b| test(a, b, |a: u32, b| a <= b)),
        "SCmpGT8x8" => binary!(|a, b| test(a, b, |a: i8, b| a > b)),
        "SCmpGT16x4" => binary!(|a, b| test(a, b, |a: i16, b| a > b)),
        "SCmpGT32x2" => binary!(|a, b| test(a, b, |a: i32, b| a > b)),
        "SCmpGE8x8" => binary!(|a, b| test(a, b, |a: i8, b| a >= b)),
        "SCmpGE16x4" => binary!(|a, b| test(a, b, |a: i16, b| a >= b)),
        "SCmpGE32x2" => binary!(|a, b| test(a, b, |a: i32, b| a >= b)),
        "SCmpLT8x8" => binary!(|a, b| test(a, b, |a: i8, b| a < b)),
        "SCmpLT16x4" => binary!(|a, b| test(a, b, |a: i16, b| a < b)),
        "SCmpLT32x2" => binary!(|a, b| test(a, b, |a: i32, b| a < b)),
        "SCmpLE8x8" => binary!(|a, b| test(a, b, |a: i8, b| a <= b)),
        "SCmpLE16x4" => binary!(|a, b| test(a, b, |a: i16, b| a <= b)),
        "SCmpLE32x2" => binary!(|a, b| test(a, b, |a: i32, b| a <= b)),
        "SpuAdd16x4" => ternary!(|a, b, c| broadcast(a, b, c, u16::wrapping_add)),
        "SpuMul16x4" => ternary!(|a, b, c| broadcast(a, b, c, u16::wrapping_mul)),
        "RLEDecoder16x4" => ternary!(|a, b, c| super::lane::zip3(a, b, c, run_length)),
        _ => return None,
    })
}

/// Lanes of one word put together, with a further number where there is a second operand.
fn reduction(name: &str, operands: usize) -> Option<Meaning> {
    Some(match name {
        "Red16x4" if operands == 1 => unary!(|a| sum(a)),
        "Red16x4" => binary!(|a, b| sum(a) + (b & 0xffff)),
        "Red32x2" if operands == 1 => {
            unary!(|a| u64::from(lane::<u32>(a, 0).wrapping_add(lane(a, 1))))
        }
        "Red32x2" => binary!(|a, b| u64::from(
            lane::<u32>(a, 0)
                .wrapping_add(lane(a, 1))
                .wrapping_add(lane(b, 0))
        )),
        "RedMax16x4" if operands == 1 => unary!(|a| fold(a, u16::max).into()),
        "RedMax16x4" => binary!(|a, b| fold(a, u16::max).max(b as u16).into()),
        "RedMin16x4" if operands == 1 => unary!(|a| fold(a, u16::min).into()),
        "RedMin16x4" => binary!(|a, b| fold(a, u16::min).min(b as u16).into()),
        "RedSMax16x4" if operands == 1 => unary!(|a| (fold(a, i16::max) as u16).into()),
        "RedSMax16x4" => binary!(|a, b| (fold(a, i16::max).max(b as i16) as u16).into()),
        "RedSMin16x4" if operands == 1 => unary!(|a| (fold(a, i16::min) as u16).into()),
        "RedSMin16x4" => binary!(|a, b| (fold(a, i16::min).min(b as i16) as u16).into()),
        "RedMax32x2" => unary!(|a| lane::<u32>(a, 0).max(lane(a, 1)).into()),
        "RedMin32x2" => unary!(|a| lane::<u32>(a, 0).min(lane(a, 1)).into()),
        "DotProd8x8" => binary!(|a, b| (0..8)
            .map(|i| u64::from(lane::<u8>(a, i)) * u64::from(lane::<u8>(b, i)))
            .sum()),
        "DotProd16x4" => binary!(|a, b| (0..4)
            .map(|i| u64::from(lane::<u16>(a, i)) * u64::from(lane::<u16>(b, i)))
            .sum()),
        "DotProd32x2" => binary!(|a, b| {
            let product = |i| u64::from(lane::<u32>(a, i)) * u64::from(lane::<u32>(b, i));
            product(0).wrapping_add(product(1))
        }),
        _ => return None,
    })
}

/// Single and double precision, real and complex.
fn float(name: &str, operands: usize) -> Option<Meaning> {
    Some(match name {
        "FAdd32" => binary!(|a, b| single(a, b, |a, b| a + b)),
        "FSub32" => binary!(|a, b| single(a, b, |a, b| a - b)),
        "FMul32" => binary!(|a, b| single(a, b, |a, b| a * b)),
        "FAdd32x2" => binary!(|a, b| zip::<f32>(a, b, |a, b| a + b)),
        "FSub32x2" => binary!(|a, b| zip::<f32>(a, b, |a, b| a - b)),
        "FMul32x2" => binary!(|a, b| zip::<f32>(a, b, |a, b| a * b)),
        "NegFMul32x2" => binary!(|a, b| zip::<f32>(a, b, |a, b| a * -b)),
        "FMulX32x2" => binary!(|a, b: u64| zip::<f32>(a, b.rotate_right(32), |a, b| a * b)),
        "FAddSub32x2" => binary!(|a, b| pair(
            lane::<f32>(a, 0) + lane::<f32>(a, 1),
            lane::<f32>(b, 0) - lane::<f32>(b, 1)
        )),
        "FSubAdd32x2" => binary!(|a, b| pair(
            lane::<f32>(a, 0) - lane::<f32>(a, 1),
            lane::<f32>(b, 0) + lane::<f32>(b, 1)
        )),
        "FRed32x2" if operands > 1 => {
            binary!(|a, b| single(a, b, |low, b| low + lane::<f32>(a, 1) + b))
        }
        "FRed32x2" | "FHLAdd_F32x2" => unary!(|a| single(a, a >> 32, |low, high| low + high)),
        "FAdd" | "FAdd64" => binary!(|a, b| double(a, b, |a, b| a + b)),
        "FSub" | "FSub64" => binary!(|a, b| double(a, b, |a, b| a - b)),
        "FMul" | "FMul64" => binary!(|a, b| double(a, b, |a, b| a * b)),
        "FDiv" | "FDiv64" => binary!(|a, b| double(a, b, |a, b| a / b)),
        "FRem" => binary!(|a, b| double(a, b, |a, b| a % b)),
        "FMax" => binary!(|a, b| double(a, b, |a, b| if b > a { b } else { a })),
        "FMin" => binary!(|a, b| double(a, b, |a, b| if b < a { b } else { a })),
        "Sqrt" | "Sqrt64" | "Sqrt_D64" => unary!(|a| double(a, a, |a, _| a.sqrt())),
        "FSin" => unary!(|a| double(a, a, |a, _| a.sin())),
        "FCos" => unary!(|a| double(a, a, |a, _| a.cos())),
        "FCmpOEQ" => binary!(|a, b| test(a, b, |a: f64, b| a == b)),
        "FCmpONE" => binary!(|a, b| test(a, b, |a: f64, b| a < b || a > b)),
        "FCmpOGT" => binary!(|a, b| test(a, b, |a: f64, b| a > b)),
        "FCmpOGE" => binary!(|a, b| test(a, b, |a: f64, b| a >= b)),
        "FCmpOLT" => binary!(|a, b| test(a, b, |a: f64, b| a < b)),
        "FCmpOLE" => binary!(|a, b| test(a, b, |a: f64, b| a <= b)),
        "FCompare64" => binary!(three_way_double),
        "CplxConj" => unary!(|a| Complex::of(a).conj().word()),
        "CplxMulCplx" => binary!(|a, b| Complex::of(a).mul(Complex::of(b)).word()),
        "CplxMulConj" => binary!(|a, b| Complex::of(a).mul(Complex::of(b).conj()).word()),
        "NegCplxMulConj" => binary!(|a, b| Complex::of(a).neg().mul(Complex::of(b).conj()).word()),
        "CplxRed32x2" => unary!(|a| Complex::real(lane::<f32>(a, 0) + lane::<f32>(a, 1)).word()),
        "CplxSqrt" => unary!(|a| Complex::of(a).sqrt().word()),
        "CplxInv" => unary!(|a| Complex::ONE.div(Complex::of(a)).word()),
        "CplxInvConj" => unary!(|a| Complex::ONE.div(Complex::of(a)).conj().word()),
        "CplxSqrtInv" => unary!(|a| Complex::ONE.div(Complex::of(a).sqrt()).word()),
        "CplxNmlz" => unary!(|a| {
            let a = Complex::of(a);
            a.unscale(a.mul(a.conj()).sqrt().re).word()
        }),
        "CplxMulCons" => binary!(|a, b| Complex::of(a).scale(lane(b, 0)).word()),
        "CplxDivCons" => binary!(|a, b| Complex::of(a).unscale(lane(b, 0)).word()),
        "NegCplxMulCons" => binary!(|a, b| Complex::of(a).scale(-lane::<f32>(b, 0)).word()),
        "NegCplxDivCons" => binary!(|a, b| Complex::of(a).unscale(-lane::<f32>(b, 0)).word()),
        "CplxGivensCos" => binary!(|a, b| Complex::of(a)
            .conj()
            .div(complex::givens(Complex::of(a), Complex::of(b)))
            .word()),
        "CplxGivensSin" => binary!(|a, b| Complex::of(b)
            .conj()
            .div(complex::givens(Complex::of(a), Complex::of(b)))
            .word()),
        "CplxGivensRes" => binary!(|a, b| complex::givens(Complex::of(a), Complex::of(b)).word()),
        "RealSqrt" => unary!(|a| Complex::real(lane::<f32>(a, 0).sqrt()).word()),
        "RealInv" => unary!(|a| pair(1.0 / lane::<f32>(a, 0), 1.0 / lane::<f32>(a, 0))),
        "RealSqrtInv" => unary!(|a| pair(
            1.0 / lane::<f32>(a, 0).sqrt(),
            1.0 / lane::<f32>(a, 0).sqrt()
        )),
        "HouseHolder" => ternary!(complex::householder),
        _ => return None,
    })
}

/// Fixed point.
fn fixed_point(name: &str, operands: usize) -> Option<Meaning> {
    Some(match name {
        "FxAdd16x4" => binary!(|a, b| zip(a, b, fixed::add)),
        "FxSub16x4" => binary!(|a, b| zip(a, b, fixed::sub_unsigned)),
        "FxMul16x4" => binary!(|a, b| zip(a, b, fixed::mul)),
        "FxMulX16x4" => binary!(fixed::mul_crossed),
        "FxAddSub16x4" => binary!(|a, b| fixed::butterfly(a, b, fixed::add, fixed::sub)),
        "FxSubAdd16x4" => binary!(|a, b| fixed::butterfly(a, b, fixed::sub, fixed::add)),
        "FxRedCom16x4" => binary!(fixed::reduce_complex),
        "FxRed16x4" if operands == 1 => unary!(|a| (fixed::reduce(a) as u16).into()),
        "FxRed16x4" => {
            binary!(|a, b: u64| (fixed::add_wide(fixed::reduce(a), b as i16) as u16).into())
        }
        "FxAdd32x2" => binary!(|a, b| zip(a, b, fixed::add_32)),
        "FxSub32x2" => binary!(|a, b| zip(a, b, fixed::sub_32)),
        "FxMul32x2" => binary!(|a, b| zip(a, b, fixed::mul_32)),
        "FxRed32x2" if operands == 1 => {
            unary!(|a| (fixed::add_32(lane(a, 0), lane(a, 1)) as u32).into())
        }
        "FxRed32x2" => binary!(|a, b| (fixed::add_32(
            fixed::add_32(lane(a, 0), lane(a, 1)),
            lane(b, 0)
        ) as u32)
            .into()),
        "FxRelu16x4" if operands > 1 => {
            binary!(|a, b| if b == 0 { a } else { map(a, |a: i16| a.max(0)) })
        }
        "FxRelu16x4" => unary!(|a| map(a, |a: i16| a.max(0))),
        "FxSig16x4" if operands > 1 => {
            binary!(|a, b| if b == 0 { a } else { fixed::map(a, logistic) })
        }
        "FxSig16x4" => unary!(|a| fixed::map(a, logistic)),
        "FxTanh16x4" if operands > 1 => {
            binary!(|a, b| if b == 0 { a } else { fixed::map(a, f64::tanh) })
        }
        "FxTanh16x4" => unary!(|a| fixed::map(a, f64::tanh)),
        "FxExp16x4" if operands > 1 => {
            binary!(|a, b| if b == 0 { a } else { fixed::map(a, f64::exp) })
        }
        "FxExp16x4" => unary!(|a| fixed::map(a, f64::exp)),
        "FxExp64" if operands > 1 => binary!(|a, b| if b == 0 { a } else { fixed::exp(a) }),
        "FxExp64" => unary!(fixed::exp),
        "FltCplxToFx" => unary!(|a| lanes(|i| (lane::<f32>(a, i % 2) * 2048.0) as i16)),
        _ => return None,
    })
}

/// Operations with registers, with results that may not count, with operands that may stay.
fn state(name: &str) -> Option<Meaning> {
    Some(Meaning::Step(match name {
        "Keep" | "Keep16" => plain(2, |f| {
            f.results[0] = f.a();
            f.discard |= f.b() == 0;
        }),
        "Discard" => plain(2, |f| {
            f.results[0] = f.a();
            f.discard |= f.b() != 0;
        }),
        "DivRem64" => plain(2, |f| {
            f.results = [
                f.a().checked_div(f.b()).unwrap_or(0),
                f.a().checked_rem(f.b()).unwrap_or(0),
            ];
        }),
        "Acc16" => plain(2, |f| f.accumulate(|sum, a| sum.wrapping_add(a) & 0xffff)),
        "Acc32" => plain(2, |f| {
            f.accumulate(|sum, a| sum.wrapping_add(a) & 0xffff_ffff);
        }),
        "Acc64" => plain(2, |f| f.accumulate(u64::wrapping_add)),
        "Acc16x4" => plain(2, step::accumulate_16x4),
        "Acc16to32x4" => plain(1, step::accumulate_16_to_32),
        "Accumulate64" => plain(1, |f| {
            f.registers[0] = f.registers[0].wrapping_add(f.a());
            f.results[0] = f.registers[0];
        }),
        "FAccumulate64" => plain(1, |f| {
            f.registers[0] = double(f.registers[0], f.a(), |sum, a| sum + a);
            f.results[0] = f.registers[0];
        }),
        "FAcc32x2" => plain(2, step::accumulate_complex),
        "FAcc64" => plain(2, |f| {
            f.accumulate_always(|sum, a| double(a, sum, |a, sum| a + sum));
        }),
        "FxAcc16x4" => plain(2, step::accumulate_fixed),
        "BackNormRed32x2" => plain(2, step::norm_accumulate),
        "MacRed16x2" => plain(1, step::multiply_accumulate),
        "BitsliceAcc64" => plain(2, step::slice_accumulate),
        "Extract16" => plain(1, step::extract),
        "ICmpG" => plain(1, step::greater_than_all),
        "Hold" => plain(2, step::hold),
        "Merge" => holding(2, step::merge),
        "MergeSentinal" => holding(2, step::merge_until),
        "IndexMatch16" => holding(2, step::join_16),
        "IndexMatch64" => holding(2, step::join_64),
        "Index_match" => holding(2, step::join_control),
        "IndexMatch32x2" => holding(2, step::join_pairs),
        "BackSub32x2" => holding(3, step::subtract_picked),
        "BackMul64" => holding(3, step::multiply_holding),
        "Control16" => holding(2, step::control_16),
        "Select16" => holding(3, step::select_16),
        "MatchIndex2" => holding(2, step::join_sparse),
        _ => return None,
    }))
}

#[inline]
fn signed(a: u64, b: u64, f: impl Fn(i64, i64) -> i64) -> u64 {
    f(a as i64, b as i64) as u64
}

#[inline]
fn single(a: u64, b: u64, f: impl Fn(f32, f32) -> f32) -> u64 {
    f(lane(a, 0), lane(b, 0)).to_bits().into()
}

#[inline]
fn double(a: u64, b: u64, f: impl Fn(f64, f64) -> f64) -> u64 {
    f(f64::from_bits(a), f64::from_bits(b)).to_bits()
}

/// By how much a word is shifted: the low six bits of the amount. Recorded streams of `LShf64` and `RShf64` have it so.
#[inline]
fn amount(by: u64) -> u32 {
    (by & 63) as u32
}

/// A shift of each lane; by 64 and more everything is shifted out.
#[inline]
fn shift_lanes(a: u64, by: u64) -> u64 {
    map(a, |a: u16| shifted_out(a.into(), by) as u16)
}

#[inline]
fn shifted_out(a: u64, by: u64) -> u64 {
    let by = u32::try_from(by).ok();
    by.and_then(|by| a.checked_shr(by)).unwrap_or(0)
}

/// The simulator's `RShf16x4`: the low 16 bits of each half, shifted; the others are zero. Recorded streams have it so.
#[inline]
fn shift_halves(a: u64, by: u64) -> u64 {
    shift_lanes(a & 0x0000_ffff_0000_ffff, by)
}

/// Sums of neighbours from the top lane down, the highest lane of `b` behind the lowest of `a`.
fn neighbours(a: u64, b: u64) -> u64 {
    lanes(|i| lane::<u16>(a, i).wrapping_add(if i == 0 { lane(b, 3) } else { lane(a, i - 1) }))
}

/// 0 for equal numbers (3 where both are the end of their stream), 1 for greater, 2 for less.
#[inline]
fn three_way(a: u64, b: u64, end: u64) -> u64 {
    match a.cmp(&b) {
        std::cmp::Ordering::Equal if a == end => 3,
        std::cmp::Ordering::Equal => 0,
        std::cmp::Ordering::Greater => 1,
        std::cmp::Ordering::Less => 2,
    }
}

/// Whether the order of two numbers is among those of a mask: bit 0 less, bit 1 equal, bit 2 greater.
#[inline]
fn three_way_masked(a: u64, b: u64, mask: u64) -> u64 {
    let order = match a.cmp(&b) {
        std::cmp::Ordering::Less => 1,
        std::cmp::Ordering::Equal => 2,
        std::cmp::Ordering::Greater => 4,
    };
    u64::from(mask & order != 0)
}

#[inline]
fn three_way_double(a: u64, b: u64) -> u64 {
    let (a, b) = (f64::from_bits(a), f64::from_bits(b));
    match a.partial_cmp(&b) {
        Some(std::cmp::Ordering::Equal) => {
            if a == 2f64.powi(63) {
                3
            } else {
                0
            }
        }
        Some(std::cmp::Ordering::Greater) => 1,
        _ => 2,
    }
}

/// A sigmoid of small means: `1024 x / (1024 + x)` of the low 16 bits.
#[inline]
fn squash(a: u64) -> u64 {
    let a = a & 0xffff;
    a * 1024 / (1024 + a)
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[inline]
fn sum(a: u64) -> u64 {
    (0..4).map(|i| u64::from(lane::<u16>(a, i))).sum()
}

#[inline]
fn fold<T: super::lane::Lane>(a: u64, f: impl Fn(T, T) -> T) -> T {
    f(f(lane(a, 0), lane(a, 1)), f(lane(a, 2), lane(a, 3)))
}

/// Every lane of `a` with the lane of `b` that `c` names.
#[inline]
fn broadcast(a: u64, b: u64, c: u64, f: impl Fn(u16, u16) -> u16) -> u64 {
    map(a, |a| f(a, lane(b, c.min(3) as u32)))
}

/// The place in a transposed run: row and column change.
fn run_length(a: u16, b: u16, c: u16) -> u16 {
    match (a.checked_div(c), a.checked_rem(c)) {
        (Some(row), Some(column)) => row.wrapping_add(b.wrapping_mul(column)),
        _ => 0,
    }
}
