//! Elements of vectors as people write them, and as a session carries them: integers with a sign, or the bits of any other type.

use chipless::spu::iospec::{Vector, Violation, dequantize, quantize, quantize_to};
use chipless_kernels::cast;
use chipless_model::{ElementType, Kind};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::HashMap;
use std::fmt;

/// How the elements of a program's vectors are carried.
#[derive(Clone, Debug, Default)]
pub(super) struct Encoding {
    /// Types of vectors by name, where they are not integers with a sign and the precision of the vector.
    pub(super) elements: HashMap<String, ElementType>,
    /// Whether it is a program of another target: then the words of an SPU are out of place.
    pub(super) is_plain: bool,
}

/// Elements as they are shown.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub(super) enum Values {
    /// With a sign.
    Integers(Vec<i64>),
    /// Of 64 bits without a sign.
    Large(Vec<u64>),
    /// Numbers; `NaN`, `Infinity` and `-Infinity` are texts.
    #[serde(serialize_with = "reals")]
    #[schemars(with = "Vec<Real>")]
    Reals(Vec<f64>),
}

/// A number, or a text where JSON has no number for it.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
enum Real {
    Number(f64),
    Text(&'static str),
}

fn reals<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    let real = |value: &f64| match value {
        value if value.is_nan() => Real::Text("NaN"),
        value if value.is_infinite() && *value > 0.0 => Real::Text("Infinity"),
        value if value.is_infinite() => Real::Text("-Infinity"),
        value => Real::Number(*value),
    };
    serializer.collect_seq(values.iter().map(real))
}

/// A number of a script: an integer as such, since not every one of 64 bits is a real.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Integer(i128),
    Real(f64),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Integer(value) => value.fmt(f),
            Number::Real(value) => value.fmt(f),
        }
    }
}

impl Number {
    pub(super) fn real(self) -> f64 {
        match self {
            Number::Integer(value) => value as f64,
            Number::Real(value) => value,
        }
    }

    fn integer(self) -> Option<i128> {
        match self {
            Number::Integer(value) => Some(value),
            Number::Real(value) => Some(value)
                .filter(|v| v.fract() == 0.0 && v.abs() < 9e15)
                .map(|v| v as i128),
        }
    }
}

/// The integers of a type without a sign.
fn unsigned(element: ElementType) -> bool {
    element.kind() == Kind::Unsigned
}

/// Bits with the highest one as a sign.
fn extended(word: i128, bits: u64) -> i64 {
    ((word as u64) << (64 - bits)) as i64 >> (64 - bits)
}

impl Encoding {
    /// Elements as a session carries them.
    ///
    /// # Errors
    /// A number that the type of the vector does not hold.
    pub(super) fn encode(
        &self,
        name: &str,
        numbers: &[Number],
        quantised: Option<&Vector>,
    ) -> Result<Vec<i64>, Violation> {
        let element = self.elements.get(name).copied();
        let wanted = |at: usize, what: &str| {
            Err(Violation::value(format!(
                "expected {what} for `{name}`, found {} at element {at}",
                numbers[at]
            )))
        };
        match element {
            Some(element) if element.kind() == Kind::Float => {
                let mut bytes = vec![0; (element.bits() / 8) as usize];
                let mut one = |number: &Number| {
                    cast::encode_f64(
                        element,
                        &[number.real()],
                        cast::Rounding::NearestEven,
                        &mut bytes,
                    )
                    .map_err(|error| Violation::value(error.to_string()))?;
                    let word = bytes
                        .iter()
                        .rev()
                        .fold(0i128, |word, byte| word << 8 | i128::from(*byte));
                    Ok(extended(word, element.bits()))
                };
                numbers.iter().map(&mut one).collect()
            }
            element => {
                let bits = element.map_or(64, ElementType::bits);
                let (low, high) = match element {
                    Some(ElementType::Bool) => (0, 1),
                    Some(element) if unsigned(element) => (0, (1i128 << bits) - 1),
                    _ => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
                };
                if let Some(vector) = quantised {
                    let reals: Vec<f64> = numbers.iter().map(|n| n.real()).collect();
                    let integers = match element {
                        Some(_) => quantize_to(vector, low..=high, &reals)?,
                        None => return quantize(vector, &reals),
                    };
                    return Ok(integers.into_iter().map(|v| extended(v, bits)).collect());
                }
                let one = |(at, number): (usize, &Number)| match number.integer() {
                    None => wanted(at, "integers (--quantize takes reals)"),
                    Some(value) if !(low..=high).contains(&value) => {
                        wanted(at, &format!("integers of {low} to {high}"))
                    }
                    Some(value) => Ok(extended(value, bits)),
                };
                numbers.iter().enumerate().map(one).collect()
            }
        }
    }

    /// Elements as they are shown.
    ///
    /// # Errors
    /// No scale to dequantise with.
    pub(super) fn decode(
        &self,
        name: &str,
        carried: Vec<i64>,
        quantised: Option<&Vector>,
    ) -> Result<Values, Violation> {
        let element = self.elements.get(name).copied();
        let integers = match element {
            Some(element) if element.kind() == Kind::Float => {
                let size = (element.bits() / 8) as usize;
                let bytes: Vec<u8> = carried
                    .iter()
                    .flat_map(|word| word.to_le_bytes().into_iter().take(size))
                    .collect();
                let mut reals = vec![0.0; carried.len()];
                cast::decode_f64(element, &bytes, &mut reals)
                    .map_err(|error| Violation::value(error.to_string()))?;
                return Ok(Values::Reals(reals));
            }
            Some(ElementType::UInt64) => {
                let large: Vec<u64> = carried.into_iter().map(|v| v as u64).collect();
                return match quantised {
                    Some(vector) => {
                        dequantize(vector, large.into_iter().map(i128::from)).map(Values::Reals)
                    }
                    None => Ok(Values::Large(large)),
                };
            }
            Some(element) if unsigned(element) && element.bits() < 64 => {
                let mask = (1i64 << element.bits()) - 1;
                carried.into_iter().map(|v| v & mask).collect()
            }
            _ => carried,
        };
        match quantised {
            Some(vector) => {
                dequantize(vector, integers.into_iter().map(i128::from)).map(Values::Reals)
            }
            None => Ok(Values::Integers(integers)),
        }
    }
}
