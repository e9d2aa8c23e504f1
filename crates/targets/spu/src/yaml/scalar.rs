//! Plain scalars by YAML 1.1, as PyYAML resolves them.

use super::Value;

/// Why a scalar has no value here.
pub(super) enum Unresolved {
    /// An integer beyond 128 bits.
    Huge,
}

/// The value of a plain scalar.
pub(super) fn resolve(text: &str) -> Result<Value, Unresolved> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Ok(Value::Bool(true)),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => return Ok(Value::Bool(false)),
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Ok(Value::Text(text.to_owned()));
    }
    if let Some(value) = integer(text) {
        return value.map(Value::Integer);
    }
    Ok(float(text).map_or_else(|| Value::Text(text.to_owned()), Value::Float))
}

/// An integer, or that it is too large a one; `None` where the text is none.
pub(super) fn integer(text: &str) -> Option<Result<i128, Unresolved>> {
    let (negative, body) = match text.strip_prefix('-') {
        Some(body) => (true, body),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = |body: &str, radix: u32| {
        let of_radix = body.bytes().all(|b| b == b'_' || (b as char).is_digit(radix));
        (of_radix && body.bytes().any(|b| b != b'_'))
            .then(|| i128::from_str_radix(&body.replace('_', ""), radix).map_err(|_| Unresolved::Huge))
    };
    let value = if body == "0" {
        Ok(0)
    } else if let Some(binary) = body.strip_prefix("0b") {
        digits(binary, 2)?
    } else if let Some(hexadecimal) = body.strip_prefix("0x") {
        digits(hexadecimal, 16)?
    } else if let Some(octal) = body.strip_prefix('0') {
        digits(octal, 8)?
    } else if !body.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    } else if body.contains(':') {
        base_60(body)?
    } else {
        digits(body, 10)?
    };
    // From digits alone, so its negative fits.
    Some(value.map(|v| if negative { -v } else { v }))
}

fn base_60(body: &str) -> Option<Result<i128, Unresolved>> {
    let mut parts = body.split(':');
    let first = parts.next().filter(|p| p.bytes().all(|b| b.is_ascii_digit() || b == b'_'))?;
    let mut value = first.replace('_', "").parse::<i128>().map_err(|_| Unresolved::Huge);
    for part in parts {
        let small = (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        let digit = part.parse::<i128>().ok().filter(|d| small && *d < 60)?;
        value = value.and_then(|v| v.checked_mul(60).and_then(|v| v.checked_add(digit)).ok_or(Unresolved::Huge));
    }
    Some(value)
}

/// A float needs a point, and a sign in its exponent.
pub(super) fn float(text: &str) -> Option<f64> {
    let (sign, body) = match text.strip_prefix('-') {
        Some(body) => (-1.0, body),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    match body {
        ".inf" | ".Inf" | ".INF" => return Some(sign * f64::INFINITY),
        ".nan" | ".NaN" | ".NAN" if body.len() == text.len() => return Some(f64::NAN),
        _ => {}
    }
    let (whole, rest) = body.split_once('.')?;
    let numeric = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let (fraction, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let starts_with_digit = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    let sound = numeric(whole)
        && numeric(fraction)
        && (starts_with_digit(whole) || (whole.is_empty() && starts_with_digit(fraction) && text.len() == body.len()))
        && exponent.is_none_or(|e| e.strip_prefix(['+', '-']).is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit())));
    if !sound {
        return None;
    }
    let plain = format!("0{}.{}0e{}", whole.replace('_', ""), fraction.replace('_', ""), exponent.unwrap_or("0"));
    plain.parse::<f64>().ok().map(|v| sign * v)
}

/// A float so that it reads as the same float again.
pub(super) fn print_float(value: f64) -> String {
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let text = format!("{value:?}");
    let (mantissa, exponent) = match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa.to_owned(), Some(exponent)),
        None => (text.clone(), None),
    };
    let mantissa = if mantissa.contains('.') { mantissa } else { format!("{mantissa}.0") };
    match exponent {
        Some(exponent) if exponent.starts_with('-') => format!("{mantissa}e{exponent}"),
        Some(exponent) => format!("{mantissa}e+{exponent}"),
        None => mantissa,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        resolve(text).unwrap_or(Value::Text("huge".into()))
    }

    #[test]
    fn plain_scalars_are_those_of_yaml_1_1() {
        for (text, want) in [
            ("on", Value::Bool(true)),
            ("Off", Value::Bool(false)),
            ("y", Value::Text("y".into())),
            ("010", Value::Integer(8)),
            ("0x10", Value::Integer(16)),
            ("0b101", Value::Integer(5)),
            ("1_000", Value::Integer(1000)),
            ("-12", Value::Integer(-12)),
            ("1:30", Value::Integer(90)),
            ("089", Value::Text("089".into())),
            ("1e-5", Value::Text("1e-5".into())),
            ("1.0e-5", Value::Float(1e-5)),
            ("1.", Value::Float(1.0)),
            (".5", Value::Float(0.5)),
            ("-.inf", Value::Float(f64::NEG_INFINITY)),
            ("~", Value::Null),
            ("%x.4", Value::Text("%x.4".into())),
            ("-", Value::Text("-".into())),
            (".", Value::Text(".".into())),
            ("999999999999999999999999999999999999999999", Value::Text("huge".into())),
        ] {
            assert_eq!(value(text), want, "{text}");
        }
    }

    #[test]
    fn printed_floats_read_as_themselves() {
        for float in [0.0, -0.0, 1.0, 0.000_122_070_312_5, 1e300, 5e-324, 1.5e16, f64::INFINITY] {
            assert_eq!(value(&print_float(float)), Value::Float(float));
        }
    }
}
