//! The newer generation: families over element types.

use super::element::{Element, ElementKind};
use super::lane::{Lane, map, test, zip, zip3};
use super::meaning::{binary, ternary, unary};
use super::newer_table::FAMILIES;
use super::{Conversion, Cost, Figures, Meaning};
use half::f16;

/// The figures of an operation, and what it costs.
pub(super) fn figures(name: &str) -> Option<(Figures, Option<Cost>)> {
    let (family, element) = split(name);
    let (_, operands, types) =
        FAMILIES[FAMILIES.binary_search_by_key(&family, |row| row.0).ok()?];
    let cost = entries(types).find_map(|(entry, cost)| (entry == element).then_some(cost))?;
    let width = if element.is_empty() {
        u64::BITS
    } else {
        Element::parse(element)?.width()
    };
    Some((
        Figures {
            width: width as u16,
            operands,
            results: 1,
            latency: 1,
            throughput: 1,
        },
        parse_cost(cost),
    ))
}

/// All names.
pub(super) fn names() -> impl Iterator<Item = String> {
    FAMILIES.iter().flat_map(|(family, _, types)| {
        entries(types).map(move |(element, _)| {
            if element.is_empty() {
                (*family).to_owned()
            } else {
                format!("{family}_{element}")
            }
        })
    })
}

/// Family and element type of a name.
fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('_')
        .filter(|(_, element)| Element::parse(element).is_some())
        .unwrap_or((name, ""))
}

/// Element types of a row with their costs.
fn entries(types: &str) -> impl Iterator<Item = (&str, &str)> {
    types
        .split(", ")
        .map(|entry| entry.split_once(' ').unwrap_or(("", entry)))
}

fn parse_cost(text: &str) -> Option<Cost> {
    let mut parts = text.split('/').map(str::parse);
    let tables = parts.next()?.ok()?;
    let slices = parts.next().and_then(Result::ok).unwrap_or(0);
    Some(Cost {
        tables,
        slices,
        flip_flops: parts.next().and_then(Result::ok).unwrap_or(0),
    })
}

/// One meaning for each integer type.
macro_rules! integers {
    ($element:expr, $helper:ident, $f:expr) => {
        match ($element.kind, $element.bits) {
            (ElementKind::Signed, 8) => binary!(|a, b| $helper::<i8>(a, b, $f)),
            (ElementKind::Signed, 16) => binary!(|a, b| $helper::<i16>(a, b, $f)),
            (ElementKind::Signed, 32) => binary!(|a, b| $helper::<i32>(a, b, $f)),
            (ElementKind::Signed, _) => binary!(|a, b| $helper::<i64>(a, b, $f)),
            (_, 8) => binary!(|a, b| $helper::<u8>(a, b, $f)),
            (_, 16) => binary!(|a, b| $helper::<u16>(a, b, $f)),
            (_, 32) => binary!(|a, b| $helper::<u32>(a, b, $f)),
            (_, _) => binary!(|a, b| $helper::<u64>(a, b, $f)),
        }
    };
}

/// One meaning for each width, where the sign makes no difference.
macro_rules! words {
    ($element:expr, $meaning:ident, |$($x:ident),+| $helper:ident, $f:expr) => {
        match $element.bits {
            8 => $meaning!(|$($x),+| $helper::<u8>($($x),+, $f)),
            16 => $meaning!(|$($x),+| $helper::<u16>($($x),+, $f)),
            32 => $meaning!(|$($x),+| $helper::<u32>($($x),+, $f)),
            _ => $meaning!(|$($x),+| $helper::<u64>($($x),+, $f)),
        }
    };
}

/// One meaning for each float type. Half precision is computed in single and rounded once, which is exact for one operation.
macro_rules! floats {
    ($element:expr, $meaning:ident, |$($x:ident),+| $helper:ident, $f:expr, half $half:expr) => {
        match $element.bits {
            16 => $meaning!(|$($x),+| $helper::<f16>($($x),+, $half)),
            32 => $meaning!(|$($x),+| $helper::<f32>($($x),+, $f)),
            _ => $meaning!(|$($x),+| $helper::<f64>($($x),+, $f)),
        }
    };
}

/// One meaning for each width and for floats, on truth: a lane holds where it is not zero (minus zero is zero as well).
macro_rules! logical {
    ($element:expr, $meaning:ident, |$($x:ident),+| $first:ident, $last:ident, $f:expr) => {
        match ($element.kind, $element.bits) {
            (ElementKind::Float, 16) => $meaning!(|$($x),+| truth::<f16>($first, $last, f16::ZERO, $f)),
            (ElementKind::Float, 32) => $meaning!(|$($x),+| truth::<f32>($first, $last, 0.0, $f)),
            (ElementKind::Float, _) => $meaning!(|$($x),+| truth::<f64>($first, $last, 0.0, $f)),
            (_, 8) => $meaning!(|$($x),+| truth::<u8>($first, $last, 0, $f)),
            (_, 16) => $meaning!(|$($x),+| truth::<u16>($first, $last, 0, $f)),
            (_, 32) => $meaning!(|$($x),+| truth::<u32>($first, $last, 0, $f)),
            _ => $meaning!(|$($x),+| truth::<u64>($first, $last, 0, $f)),
        }
    };
}

/// Lane by lane: what is not `zero` is true.
#[inline]
fn truth<T: Lane + PartialEq>(a: u64, b: u64, zero: T, f: impl Fn(bool, bool) -> bool) -> u64 {
    test::<T>(a, b, |a, b| f(a != zero, b != zero))
}

/// Shifts right, the sign of signed types comes in from the left. By the width of a lane and more it shifts everything out.
fn right_shift(element: Element) -> Meaning {
    // A shift by the width of the lane is one by a bit less, and then by one more.
    macro_rules! shift {
        ($t:ty) => {
            binary!(|a, b| zip::<$t>(a, b, |a, b| {
                let by = u32::try_from(b).unwrap_or(u32::MAX);
                a >> by.min(<$t>::BITS - 1) >> u32::from(by >= <$t>::BITS)
            }))
        };
    }
    match (element.kind, element.bits) {
        (ElementKind::Signed, 8) => shift!(i8),
        (ElementKind::Signed, 16) => shift!(i16),
        (ElementKind::Signed, 32) => shift!(i32),
        (ElementKind::Signed, _) => shift!(i64),
        (_, 8) => shift!(u8),
        (_, 16) => shift!(u16),
        (_, 32) => shift!(u32),
        (_, _) => shift!(u64),
    }
}

/// The meaning of an operation of the newer generation.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    let (family, element) = split(name);
    if element.is_empty() {
        return Some(match family {
            "NONE" | "Copy" => unary!(|a| a),
            "BNot" => unary!(|a: u64| !a),
            "BAnd" => binary!(|a, b| a & b),
            "BOr" => binary!(|a, b| a | b),
            "BXor" => binary!(|a, b| a ^ b),
            _ => return None,
        });
    }
    let e = Element::parse(element)?;
    let row = FAMILIES.binary_search_by_key(&family, |row| row.0).ok()?;
    entries(FAMILIES[row].2).find(|(entry, _)| *entry == element)?;
    Some(match family {
        "Add" => words!(e, binary, |a, b| zip, |a, b| a.wrapping_add(b)),
        "Sub" => words!(e, binary, |a, b| zip, |a, b| a.wrapping_sub(b)),
        "Mul" => words!(e, binary, |a, b| zip, |a, b| a.wrapping_mul(b)),
        "Div" => integers!(e, zip, |a, b| if b == 0 { 0 } else { a.wrapping_div(b) }),
        "Mod" => integers!(e, zip, |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) }),
        "Max" => integers!(e, zip, |a, b| a.max(b)),
        "Min" => integers!(e, zip, |a, b| a.min(b)),
        "LShf" => words!(e, binary, |a, b| zip, |a, b| a
            .checked_shl(u32::try_from(b).unwrap_or(u32::MAX))
            .unwrap_or(0)),
        "RShf" => right_shift(e),
        "LT" => integers!(e, test, |a, b| a < b),
        "LE" => integers!(e, test, |a, b| a <= b),
        "GT" => integers!(e, test, |a, b| a > b),
        "GE" => integers!(e, test, |a, b| a >= b),
        "EQ" => integers!(e, test, |a, b| a == b),
        "NE" => integers!(e, test, |a, b| a != b),
        "Select" => words!(e, ternary, |a, b, c| zip3, |a, b, c| if a == 0 {
            c
        } else {
            b
        }),
        "ppMulAdd" => words!(e, ternary, |a, b, c| zip3, |a, b, c| a
            .wrapping_mul(b)
            .wrapping_add(c)),
        "pnMulAdd" => words!(e, ternary, |a, b, c| zip3, |a, b, c| a
            .wrapping_mul(b)
            .wrapping_sub(c)),
        "npMulAdd" => words!(e, ternary, |a, b, c| zip3, |a, b, c| c
            .wrapping_sub(a.wrapping_mul(b))),
        "nnMulAdd" => words!(e, ternary, |a, b, c| zip3, |a, b, c| a
            .wrapping_mul(b)
            .wrapping_add(c)
            .wrapping_neg()),
        "Concat" | "Cat" => match e.bits {
            8 => binary!(|a, b| zip::<u8>(a, b, |a, b| a & 0xf | b << 4)),
            16 => binary!(|a, b| zip::<u16>(a, b, |a, b| a & 0xff | b << 8)),
            32 => binary!(|a, b| zip::<u32>(a, b, |a, b| a & 0xffff | b << 16)),
            _ => binary!(|a, b| a & 0xffff_ffff | b << 32),
        },
        "LNot" => logical!(e, unary, |a| a, a, |a: bool, _: bool| !a),
        "LAnd" => logical!(e, binary, |a, b| a, b, |a, b| a && b),
        "LOr" => logical!(e, binary, |a, b| a, b, |a, b| a || b),
        "LXor" => logical!(e, binary, |a, b| a, b, |a, b| a != b),
        _ => {
            return floating(family, e)
                .or_else(|| Some(Meaning::Conversion(Conversion::parse(family, e.bits)?)));
        }
    })
}

/// What a family of operations on floating point does.
fn floating(family: &str, e: Element) -> Option<Meaning> {
    Some(match family {
        "FAdd" => floats!(e, binary, |a, b| zip, |a, b| a + b, half | a, b | a + b),
        "FSub" => floats!(e, binary, |a, b| zip, |a, b| a - b, half | a, b | a - b),
        "FMul" => floats!(e, binary, |a, b| zip, |a, b| a * b, half | a, b | a * b),
        "FDiv" => floats!(e, binary, |a, b| zip, |a, b| a / b, half | a, b | a / b),
        "FMax" => floats!(
            e,
            binary,
            |a, b| zip,
            |a, b| if b > a { b } else { a },
            half | a,
            b | if b > a { b } else { a }
        ),
        "FSqrt" => floats!(
            e,
            unary,
            |a| map,
            |a| a.sqrt(),
            half | a | f16::from_f32(a.to_f32().sqrt())
        ),
        "FLT" => floats!(e, binary, |a, b| test, |a, b| a < b, half | a, b | a < b),
        "FLE" => floats!(e, binary, |a, b| test, |a, b| a <= b, half | a, b | a <= b),
        "FGT" => floats!(e, binary, |a, b| test, |a, b| a > b, half | a, b | a > b),
        "FGE" => floats!(e, binary, |a, b| test, |a, b| a >= b, half | a, b | a >= b),
        "FEQ" => floats!(e, binary, |a, b| test, |a, b| a == b, half | a, b | a == b),
        "FNE" => floats!(e, binary, |a, b| test, |a, b| a != b, half | a, b | a != b),
        "FppMulAdd" => floats!(
            e,
            ternary,
            |a, b, c| zip3,
            |a, b, c| a * b + c,
            half | a,
            b,
            c | a * b + c
        ),
        "FpnMulAdd" => floats!(
            e,
            ternary,
            |a, b, c| zip3,
            |a, b, c| a * b - c,
            half | a,
            b,
            c | a * b - c
        ),
        "FnpMulAdd" => floats!(
            e,
            ternary,
            |a, b, c| zip3,
            |a, b, c| -(a * b) + c,
            half | a,
            b,
            c | -(a * b) + c
        ),
        "FnnMulAdd" => floats!(
            e,
            ternary,
            |a, b, c| zip3,
            |a, b, c| -(a * b) - c,
            half | a,
            b,
            c | -(a * b) - c
        ),
        _ => return None,
    })
}
