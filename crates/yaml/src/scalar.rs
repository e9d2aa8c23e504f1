//! Plain scalars by YAML 1.1, as PyYAML resolves them.

use super::Value;

/// Why a scalar has no value here.
pub(super) enum Unresolved {
    /// An integer beyond 128 bits.
    Huge,
    /// What the loader takes for a value of this kind, and then fails to make one of.
    Broken(&'static str),
}

impl Unresolved {
    /// What was expected instead.
    pub(super) const fn expected(&self) -> &'static str {
        match self {
            Unresolved::Huge => "an integer of at most 128 bits",
            Unresolved::Broken(expected) => expected,
        }
    }
}

/// The value of a plain scalar.
pub(super) fn resolve(text: &str) -> Result<Value, Unresolved> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Ok(Value::Bool(true));
        }
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Ok(Value::Bool(false));
        }
        // A plain `=` or `<<` has a tag of its own, which the safe loader makes no value of.
        "=" | "<<" => return Err(Unresolved::Broken("text in quotes")),
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Ok(Value::Text(text.to_owned()));
    }
    if let Some(value) = integer(text) {
        return value.map(Value::Integer);
    }
    if let Some(sound) = is_date(text) {
        return if sound {
            Ok(Value::Opaque("timestamp", text.to_owned()))
        } else {
            Err(Unresolved::Broken("a date that exists"))
        };
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
        let of_radix = body
            .bytes()
            .all(|b| b == b'_' || (b as char).is_digit(radix));
        (of_radix && !body.is_empty()).then(|| match body.replace('_', "") {
            // `0_` is nought, but `0x_` is nothing at all.
            digits if digits.is_empty() && radix == 8 => Ok(0),
            digits if digits.is_empty() => Err(Unresolved::Broken("digits")),
            digits => i128::from_str_radix(&digits, radix).map_err(|_| Unresolved::Huge),
        })
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
    let first = parts
        .next()
        .filter(|p| p.bytes().all(|b| b.is_ascii_digit() || b == b'_'))?;
    let mut value = first
        .replace('_', "")
        .parse::<i128>()
        .map_err(|_| Unresolved::Huge);
    for part in parts {
        let small = (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        let digit = part.parse::<i128>().ok().filter(|d| small && *d < 60)?;
        value = value.and_then(|v| {
            v.checked_mul(60)
                .and_then(|v| v.checked_add(digit))
                .ok_or(Unresolved::Huge)
        });
    }
    Some(value)
}

/// Whether a text has the form of a date or of a time of a date, and whether there is such a one.
fn is_date(text: &str) -> Option<bool> {
    let number = |part: &str, digits: std::ops::RangeInclusive<usize>| {
        (digits.contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit()))
            .then(|| part.parse::<u32>().ok())
            .flatten()
    };
    let end = text.find(['T', 't', ' ', '\t']).unwrap_or(text.len());
    let (date, time) = text.split_at(end);
    let mut parts = date.split('-');
    let digits = if time.is_empty() { 2..=2 } else { 1..=2 };
    let (year, month, day) = (
        number(parts.next()?, 4..=4)?,
        number(parts.next()?, digits.clone())?,
        number(parts.next()?, digits)?,
    );
    if parts.next().is_some() {
        return None;
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let mut sound = year > 0 && (1..=12).contains(&month) && (1..=days).contains(&day);
    if time.is_empty() {
        return Some(sound);
    }
    let time = time
        .strip_prefix(['T', 't'])
        .unwrap_or_else(|| time.trim_start_matches([' ', '\t']));
    let length = time
        .find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.')
        .unwrap_or(time.len());
    let (clock, zone) = time.split_at(length);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = clock.split(':');
    let (hour, minute, second) = (
        number(parts.next()?, 1..=2)?,
        number(parts.next()?, 2..=2)?,
        number(parts.next()?, 2..=2)?,
    );
    if parts.next().is_some() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    sound &= hour < 24 && minute < 60 && second < 60;
    let zone = zone.trim_start_matches([' ', '\t']);
    if let Some(offset) = zone.strip_prefix(['+', '-']) {
        let (hours, minutes) = offset.split_once(':').unwrap_or((offset, "00"));
        sound &= number(hours, 1..=2)? * 60 + number(minutes, 2..=2)? < 24 * 60;
    } else if !zone.is_empty() && zone != "Z" {
        return None;
    }
    Some(sound)
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
    if whole.contains(':') {
        // Base 60, the last part with a fraction of decimals.
        let fraction = rest
            .bytes()
            .all(|b| b.is_ascii_digit() || b == b'_')
            .then(|| format!("0.{}0", rest.replace('_', "")))?;
        let whole = base_60(whole)
            .filter(|_| whole.starts_with(|c: char| c.is_ascii_digit()))?
            .ok()?;
        return Some(sign * (whole as f64 + fraction.parse::<f64>().ok()?));
    }
    let numeric = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let (fraction, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let starts_with_digit = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    let sound = numeric(whole)
        && numeric(fraction)
        && (starts_with_digit(whole)
            || (whole.is_empty() && starts_with_digit(fraction) && text.len() == body.len()))
        && exponent.is_none_or(|e| {
            e.strip_prefix(['+', '-'])
                .is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
        });
    if !sound {
        return None;
    }
    let plain = format!(
        "0{}.{}0e{}",
        whole.replace('_', ""),
        fraction.replace('_', ""),
        exponent.unwrap_or("0")
    );
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
    let mantissa = if mantissa.contains('.') {
        mantissa
    } else {
        format!("{mantissa}.0")
    };
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
            ("1:30.5", Value::Float(90.5)),
            ("0_", Value::Integer(0)),
            ("0b", Value::Text("0b".into())),
            (
                "2020-02-29",
                Value::Opaque("timestamp", "2020-02-29".into()),
            ),
            (
                "2001-12-14t21:59:43.10-05:00",
                Value::Opaque("timestamp", "2001-12-14t21:59:43.10-05:00".into()),
            ),
            (
                "2001-1-2 3:04:05",
                Value::Opaque("timestamp", "2001-1-2 3:04:05".into()),
            ),
            ("2001-1-2", Value::Text("2001-1-2".into())),
            ("%x.4", Value::Text("%x.4".into())),
            ("-", Value::Text("-".into())),
            (".", Value::Text(".".into())),
            (
                "999999999999999999999999999999999999999999",
                Value::Text("huge".into()),
            ),
        ] {
            assert_eq!(value(text), want, "{text}");
        }
    }

    #[test]
    fn plain_scalars_that_the_loader_fails_on_have_no_value() {
        for text in [
            "=",
            "<<",
            "0x_",
            "0b__",
            "2021-02-29",
            "2020-13-01",
            "2020-01-01 24:00:00",
        ] {
            assert!(resolve(text).is_err(), "{text}");
        }
    }

    #[test]
    fn printed_floats_read_as_themselves() {
        for float in [
            0.0,
            -0.0,
            1.0,
            0.000_122_070_312_5,
            1e300,
            5e-324,
            1.5e16,
            f64::INFINITY,
        ] {
            assert_eq!(value(&print_float(float)), Value::Float(float));
        }
    }
}
