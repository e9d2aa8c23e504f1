//! Operations that work element by element, with broadcasting of any dim of one.
//!
//! Floating-point types are computed in binary32, integers in 64 bits and then cut to the width of the output's type.
//! Dims of all tensors are in the same order; the order code does not matter.

use super::activation::{clip, sigmoid};
use super::operation::Operation;
use super::parameters::Parameters;
use super::tensor::{Broadcast, Call, Values};
use chipless_kernels::wide;
use chipless_model::{ElementType, Fault, Kind};
use std::cmp::Ordering;

/// What an operation makes of each element by itself, where its input is floating point and it is nothing but that.
pub(super) fn function_of(
    operation: Operation,
    parameters: &Parameters,
) -> Option<Box<dyn Fn(f32) -> f32>> {
    match parameters {
        Parameters::Activation(activation) => Some(activation.function()),
        Parameters::None => Some(Box::new(unary(operation)?)),
        _ => None,
    }
}

/// ln(1 + eˣ) without overflow.
fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn unary(operation: Operation) -> Option<fn(f32) -> f32> {
    Some(match operation {
        Operation::Abs => f32::abs,
        Operation::Acos => f32::acos,
        Operation::Acosh => f32::acosh,
        Operation::Asin => f32::asin,
        Operation::Asinh => f32::asinh,
        Operation::Atan => f32::atan,
        Operation::Atanh => f32::atanh,
        Operation::Ceil => f32::ceil,
        Operation::Cos => f32::cos,
        Operation::Cosh => f32::cosh,
        Operation::Erf => libm::erff,
        Operation::Exp => f32::exp,
        Operation::Floor => f32::floor,
        Operation::Gelu => |x| 0.5 * x * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2)),
        Operation::HardSigmoidSixth => |x| clip(x + 3.0, 0.0, 6.0) / 6.0,
        Operation::HardSwish => |x| x * clip(x + 3.0, 0.0, 6.0) / 6.0,
        Operation::Log => f32::ln,
        Operation::LogicalNot => |x| f32::from(x == 0.0),
        Operation::Mish => |x| x * softplus(x).tanh(),
        Operation::Negative => |x| -x,
        Operation::Relu => |x| if x < 0.0 { 0.0 } else { x },
        Operation::Sigmoid => sigmoid,
        Operation::Sign => |x| {
            if x == 0.0 || x.is_nan() {
                x
            } else {
                x.signum()
            }
        },
        Operation::Sin => f32::sin,
        Operation::Sinh => f32::sinh,
        Operation::Softplus => softplus,
        Operation::Softsign => |x| x / (1.0 + x.abs()),
        Operation::Sqrt => f32::sqrt,
        Operation::Tan => f32::tan,
        Operation::Tanh => f32::tanh,
        _ => return None,
    })
}

fn unary_integer(operation: Operation) -> Option<fn(i64) -> i64> {
    Some(match operation {
        Operation::Abs => i64::wrapping_abs,
        Operation::BitwiseNot => |x| !x,
        Operation::LogicalNot => |x| i64::from(x == 0),
        Operation::Negative => i64::wrapping_neg,
        Operation::Relu => |x| x.max(0),
        Operation::Sign => i64::signum,
        _ => return None,
    })
}

fn binary(operation: Operation) -> Option<fn(f32, f32) -> f32> {
    Some(match operation {
        Operation::Add => |a, b| a + b,
        Operation::Divide => |a, b| a / b,
        Operation::FloorMod => |a, b| {
            let rest = a % b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
                rest + b
            } else {
                rest
            }
        },
        Operation::Maximum => f32::max,
        Operation::Minimum => f32::min,
        Operation::Multiply => |a, b| a * b,
        Operation::Power => f32::powf,
        Operation::Prelu => |x, slope| if x < 0.0 { x * slope } else { x },
        Operation::SquaredDifference => |a, b| (a - b) * (a - b),
        Operation::Subtract => |a, b| a - b,
        Operation::TruncatedMod => |a, b| a % b,
        _ => return None,
    })
}

/// `None` from the function is a division by zero.
fn binary_integer(operation: Operation) -> Option<fn(i64, i64) -> Option<i64>> {
    Some(match operation {
        Operation::Add => |a, b| Some(a.wrapping_add(b)),
        Operation::BitwiseAnd => |a, b| Some(a & b),
        Operation::BitwiseOr => |a, b| Some(a | b),
        Operation::BitwiseXor => |a, b| Some(a ^ b),
        Operation::Divide => |a, b| (b != 0).then(|| a.wrapping_div(b)),
        Operation::FloorMod => |a, b| {
            let rest = (b != 0).then(|| a.wrapping_rem(b))?;
            Some(if rest != 0 && (rest < 0) != (b < 0) {
                rest + b
            } else {
                rest
            })
        },
        Operation::Maximum => |a, b| Some(a.max(b)),
        Operation::Minimum => |a, b| Some(a.min(b)),
        Operation::Multiply => |a, b| Some(a.wrapping_mul(b)),
        Operation::Power => integer_power,
        Operation::Prelu => |x, slope| Some(if x < 0 { x.wrapping_mul(slope) } else { x }),
        // A shift by more than the width leaves nothing.
        Operation::ShiftLeft => |a, b| Some(shift(a, b, i64::wrapping_shl)),
        Operation::ShiftRight => |a, b| Some(shift(a, b, i64::wrapping_shr)),
        Operation::SquaredDifference => |a, b| {
            let difference = a.wrapping_sub(b);
            Some(difference.wrapping_mul(difference))
        },
        Operation::Subtract => |a, b| Some(a.wrapping_sub(b)),
        Operation::TruncatedMod => |a, b| (b != 0).then(|| a.wrapping_rem(b)),
        _ => return None,
    })
}

fn shift(value: i64, places: i64, by: fn(i64, u32) -> i64) -> i64 {
    match u32::try_from(places) {
        Ok(places @ 0..64) => by(value, places),
        _ => 0,
    }
}

/// Wraps like a product. Negative exponents give the quotient towards zero; `None` for those of zero.
fn integer_power(base: i64, exponent: i64) -> Option<i64> {
    match (base, exponent) {
        (0, ..0) => None,
        (1, ..0) => Some(1),
        (-1, ..0) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        (_, ..0) => Some(0),
        _ => {
            // `wrapping_pow` takes exponents of 32 bits.
            let (mut square, mut rest, mut product) = (base, exponent, 1i64);
            while rest > 0 {
                if rest & 1 == 1 {
                    product = product.wrapping_mul(square);
                }
                square = square.wrapping_mul(square);
                rest >>= 1;
            }
            Some(product)
        }
    }
}

/// Comparisons by the order of the operands, `None` where one is NaN.
fn comparison(operation: Operation) -> Option<fn(Option<Ordering>) -> bool> {
    Some(match operation {
        Operation::Equal => |order| order == Some(Ordering::Equal),
        Operation::Greater => |order| order == Some(Ordering::Greater),
        Operation::GreaterOrEqual => |order| order.is_some_and(Ordering::is_ge),
        Operation::Less => |order| order == Some(Ordering::Less),
        Operation::LessOrEqual => |order| order.is_some_and(Ordering::is_le),
        Operation::NotEqual => |order| order != Some(Ordering::Equal),
        _ => return None,
    })
}

fn predicate(operation: Operation) -> Option<fn(f32) -> bool> {
    Some(match operation {
        Operation::IsFinite => f32::is_finite,
        Operation::IsInfinite => f32::is_infinite,
        _ => return None,
    })
}

fn logical(operation: Operation) -> Option<fn(bool, bool) -> bool> {
    Some(match operation {
        Operation::LogicalAnd => |a, b| a && b,
        Operation::LogicalOr => |a, b| a || b,
        Operation::LogicalXor => |a, b| a != b,
        _ => return None,
    })
}

/// Activations whose kernels take figures beside their tensor.
pub(super) fn has_figures(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::Clamp
            | Operation::Elu
            | Operation::HardSigmoid
            | Operation::LeakyRelu
            | Operation::Round
            | Operation::Selu
            | Operation::Swish
    )
}

/// Whether the kernel goes through as many elements as its tensors have, one behind the other. It does not look at their strides:
/// releases that cut channels among tiles leave those of the whole tensor there (one of 2026.1.0 with `NPU_TURBO` does).
pub(super) fn is_linear(operation: Operation) -> bool {
    has_figures(operation) || unary(operation).is_some() && operation != Operation::LogicalNot
}

/// Operations without scalars of one or two inputs: whether this one works element by element, by what is computed here.
pub(super) fn covers(operation: Operation) -> bool {
    comparison(operation).is_some()
        || logical(operation).is_some()
        || predicate(operation).is_some()
        || unary(operation).is_some()
        || unary_integer(operation).is_some()
        || binary(operation).is_some()
        || binary_integer(operation).is_some()
}

pub(super) fn evaluate(call: Call<'_>) -> Result<Values, Fault> {
    let operation = call.operation;
    let output = call.output(0)?;
    if let Some(decide) = comparison(operation) {
        return compare(call, decide);
    }
    if let Some(decide) = predicate(operation) {
        let values = call.floats(0)?.iter().map(|x| decide(*x));
        return Ok(decisions(output.element, &values.collect::<Vec<_>>()));
    }
    if let Some(decide) = logical(operation) {
        let (a, b) = (truths(call, 0)?, truths(call, 1)?);
        let mut values = Vec::with_capacity(output.elements() as usize);
        call.broadcast(&output.dims, [0, 1])?
            .for_each(|[i, j]| values.push(decide(a[i], b[j])));
        return Ok(decisions(output.element, &values));
    }
    let unknown = || {
        call.unsupported(format_args!(
            "on {}",
            call.inputs
                .first()
                .map_or_else(String::new, |input| input.shape.to_string())
        ))
    };
    match (&call.input(0)?.values, call.inputs.len()) {
        (Values::Float(x), 1) => unary(operation)
            .map(|function| Values::Float(x.iter().map(|x| function(*x)).collect()))
            .ok_or_else(unknown),
        (Values::Integer(x), 1) => unary_integer(operation)
            .map(|function| Values::Integer(x.iter().map(|x| function(*x)).collect()))
            .ok_or_else(unknown),
        (Values::Float(a), _) => {
            let (function, b) = (binary(operation).ok_or_else(unknown)?, call.floats(1)?);
            let walk = call.broadcast(&output.dims, [0, 1])?;
            Ok(Values::Float(match operation {
                Operation::Add => pairs(&walk, a, b, |a, b| a + b),
                Operation::Divide => pairs(&walk, a, b, |a, b| a / b),
                Operation::Multiply => pairs(&walk, a, b, |a, b| a * b),
                Operation::Subtract => pairs(&walk, a, b, |a, b| a - b),
                _ => pairs(&walk, a, b, function),
            }))
        }
        (Values::Integer(a), _) => {
            let (function, b) = (
                binary_integer(operation).ok_or_else(unknown)?,
                call.integers(1)?,
            );
            let mut values = Vec::with_capacity(output.elements() as usize);
            let mut by_zero = None;
            call.broadcast(&output.dims, [0, 1])?.for_each(|[i, j]| {
                let value = function(a[i], b[j]);
                if value.is_none() && by_zero.is_none() {
                    by_zero = Some(values.len());
                }
                values.push(value.unwrap_or(0));
            });
            match by_zero {
                Some(element) => Err(call.fault(format_args!(
                    "division by zero in element {element} of {output}"
                ))),
                None => Ok(Values::Integer(values)),
            }
        }
    }
}

/// A function of each pair of a walk. What is compiled with its function becomes loops of vectors.
fn pairs(
    walk: &Broadcast<2>,
    a: &[f32],
    b: &[f32],
    function: impl Fn(f32, f32) -> f32,
) -> Vec<f32> {
    let mut values = vec![0.0; walk.count()];
    let mut rest = &mut values[..];
    walk.each_line(|size, [i, j], strides| {
        let (line, after) = std::mem::take(&mut rest).split_at_mut(size);
        rest = after;
        let function = &function;
        match strides {
            [1, 1] => {
                let pairs = a[i..i + size].iter().zip(&b[j..j + size]);
                wide(move || {
                    for (value, (a, b)) in line.iter_mut().zip(pairs) {
                        *value = function(*a, *b);
                    }
                });
            }
            [1, 0] => {
                let (a, b) = (&a[i..i + size], b[j]);
                wide(move || {
                    for (value, a) in line.iter_mut().zip(a) {
                        *value = function(*a, b);
                    }
                });
            }
            [0, 1] => {
                let (a, b) = (a[i], &b[j..j + size]);
                wide(move || {
                    for (value, b) in line.iter_mut().zip(b) {
                        *value = function(a, *b);
                    }
                });
            }
            [of_a, of_b] => {
                for (number, value) in line.iter_mut().enumerate() {
                    *value = function(a[i + number * of_a], b[j + number * of_b]);
                }
            }
        }
    });
    values
}

fn compare(call: Call<'_>, decide: fn(Option<Ordering>) -> bool) -> Result<Values, Fault> {
    let output = call.output(0)?;
    let walk = call.broadcast(&output.dims, [0, 1])?;
    let mut values = Vec::with_capacity(output.elements() as usize);
    match &call.input(0)?.values {
        Values::Float(a) => {
            let b = call.floats(1)?;
            walk.for_each(|[i, j]| values.push(decide(a[i].partial_cmp(&b[j]))));
        }
        Values::Integer(a) => {
            let b = call.integers(1)?;
            walk.for_each(|[i, j]| values.push(decide(Some(a[i].cmp(&b[j])))));
        }
    }
    Ok(decisions(output.element, &values))
}

/// condition ≠ 0 ? a : b.
pub(super) fn select(call: Call<'_>) -> Result<Values, Fault> {
    let output = call.output(0)?;
    let condition = truths(call, 0)?;
    let walk = call.broadcast(&output.dims, [0, 1, 2])?;
    Ok(match &call.input(1)?.values {
        Values::Float(a) => {
            let (b, mut values) = (
                call.floats(2)?,
                Vec::with_capacity(output.elements() as usize),
            );
            walk.for_each(|[c, i, j]| values.push(if condition[c] { a[i] } else { b[j] }));
            Values::Float(values)
        }
        Values::Integer(a) => {
            let (b, mut values) = (
                call.integers(2)?,
                Vec::with_capacity(output.elements() as usize),
            );
            walk.for_each(|[c, i, j]| values.push(if condition[c] { a[i] } else { b[j] }));
            Values::Integer(values)
        }
    })
}

fn truths(call: Call<'_>, index: usize) -> Result<Vec<bool>, Fault> {
    Ok(match &call.input(index)?.values {
        Values::Float(values) => values.iter().map(|value| *value != 0.0).collect(),
        Values::Integer(values) => values.iter().map(|value| *value != 0).collect(),
    })
}

/// Booleans as 0 and 1 of an element type.
fn decisions(element: ElementType, values: &[bool]) -> Values {
    match element.kind() {
        Kind::Float => Values::Float(values.iter().map(|value| f32::from(*value)).collect()),
        Kind::Signed | Kind::Unsigned => {
            Values::Integer(values.iter().map(|value| i64::from(*value)).collect())
        }
    }
}
