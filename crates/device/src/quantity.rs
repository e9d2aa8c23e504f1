//! Times, sizes and rates as people write them: a number and a unit.

/// Units of time, in picoseconds.
pub(crate) const TIMES: &[(&str, f64)] = &[
    ("ps", 1.0),
    ("ns", 1e3),
    ("us", 1e6),
    ("µs", 1e6),
    ("ms", 1e9),
    ("s", 1e12),
];
/// Units of size, in bytes.
pub(crate) const SIZES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("bytes", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1048576.0),
    ("GiB", 1073741824.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
];
/// Units of bandwidth, in bytes a second.
pub(crate) const BANDWIDTHS: &[(&str, f64)] = &[
    ("B/s", 1.0),
    ("bytes/s", 1.0),
    ("kB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
];
/// Units of a clock, in hertz.
const CLOCKS: &[(&str, f64)] = &[("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)];
/// Units of a rate, in events a second.
pub(crate) const RATES: &[(&str, f64)] = &[("/s", 1.0)];

/// The largest time of a workload: half of what simulated time can hold, so that sums of two fit.
const LONGEST: u64 = u64::MAX >> 1;

/// A number and what stands behind it.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|(at, c)| {
            let exponent = matches!(c, 'e' | 'E')
                && text[at + 1..]
                    .starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-'));
            let sign = matches!(c, '+' | '-') && (*at == 0 || text[..*at].ends_with(['e', 'E']));
            !(c.is_ascii_digit() || *c == '.' || exponent || sign)
        })
        .map_or(text.len(), |(at, _)| at);
    let (number, unit) = text.split_at(end);
    (!number.is_empty()).then_some((number, unit.trim_start()))
}

/// A number with one of these units; `plain` is the unit of a number without one.
fn with_unit(text: &str, units: &[(&str, f64)], plain: Option<f64>) -> Option<(String, f64)> {
    let (number, unit) = split(text)?;
    let factor = if unit.is_empty() {
        plain?
    } else {
        units.iter().find(|(name, _)| *name == unit)?.1
    };
    Some((number.to_owned(), factor))
}

/// A whole amount: exact where the number is whole.
fn whole(text: &str, units: &[(&str, f64)], plain: Option<f64>) -> Option<u64> {
    let (number, factor) = with_unit(text, units, plain)?;
    if let Ok(number) = number.parse::<u64>() {
        return u64::try_from(u128::from(number) * factor as u128).ok();
    }
    let value = number.parse::<f64>().ok()? * factor;
    (value.is_finite() && value >= 0.0 && value < u64::MAX as f64).then(|| value.round() as u64)
}

/// A time in picoseconds. `plain` is the unit of a number without one, in picoseconds.
pub fn time(text: &str, plain: Option<f64>) -> Option<u64> {
    whole(text, TIMES, plain).filter(|time| *time <= LONGEST * 2)
}

/// A size in bytes.
pub fn size(text: &str) -> Option<u64> {
    whole(text, SIZES, Some(1.0))
}

/// A rate, a bandwidth or a plain number; `inf` is one.
pub(crate) fn real(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    if text == "inf" {
        return Some(f64::INFINITY);
    }
    let (number, factor) = with_unit(text, units, Some(1.0))?;
    let value = number.parse::<f64>().ok()? * factor;
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// A rate in events a second, which must have its unit.
pub(crate) fn rate(text: &str) -> Option<f64> {
    let (number, factor) = with_unit(text, RATES, None)?;
    let value = number.parse::<f64>().ok()? * factor;
    value.is_finite().then_some(value)
}

/// A number with a unit, in another unit of the same kind: `1.2GHz` in `MHz`, `510cycles` in `cycles`. `None` where the text has no unit, or
/// one of another kind.
pub fn in_unit(text: &str, unit: &str) -> Option<f64> {
    let (number, given) = split(text)?;
    let number: f64 = number.parse().ok()?;
    let value = if given == unit {
        number
    } else {
        let factor = |units: &[(&str, f64)], name: &str| {
            let known = units.iter().find(|(known, _)| *known == name);
            known.map(|(_, factor)| *factor)
        };
        [TIMES, SIZES, BANDWIDTHS, CLOCKS]
            .iter()
            .find_map(|units| Some(number * factor(units, given)? / factor(units, unit)?))?
    };
    (value.is_finite() && !given.is_empty()).then_some(value)
}

/// Picoseconds as nanoseconds.
pub(crate) fn ns(ps: f64) -> f64 {
    ps / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact_where_they_are_whole() {
        assert_eq!(time("33.3ms", None), Some(33_300_000_000));
        assert_eq!(
            time("1234567890123456789ps", None),
            Some(1234567890123456789)
        );
        assert_eq!(time("10000000s", None), Some(10_000_000_000_000_000_000));
        assert_eq!(time("17", None), None);
        assert_eq!(time("17", Some(1e12)), Some(17_000_000_000_000));
        assert_eq!(time("1e-3s", None), Some(1_000_000_000));
        assert_eq!(time("10MiB", None), None);
        assert_eq!(time("-1s", None), None);
        assert_eq!(size("64KiB"), Some(65536));
        assert_eq!(size("1.5 MB"), Some(1_500_000));
        assert_eq!(size("4096"), Some(4096));
        assert_eq!(real("62.4GB/s", BANDWIDTHS), Some(62.4e9));
        assert_eq!(in_unit("510cycles", "cycles"), Some(510.0));
        assert_eq!(in_unit("1.25 GHz", "MHz"), Some(1250.0));
        assert_eq!(in_unit("2ms", "µs"), Some(2000.0));
        assert_eq!(in_unit("2ms", "bytes"), None);
        assert_eq!(in_unit("510", "cycles"), None);
        assert_eq!(rate("40/s"), Some(40.0));
        assert_eq!(rate("40"), None);
    }
}
