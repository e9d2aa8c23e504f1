//! Colours, and the few ways of writing a quantity that all texts share.

use anstyle::{AnsiColor, Style};
pub(crate) use chipless_model::count;
use chipless_model::{Condition, Program, Severity, Time, Wait};
use std::borrow::Cow;
use std::fmt::{self, Display};

/// Whether a text may hold ANSI colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint {
    /// Colours are wanted.
    pub colour: bool,
}

/// A text in a style.
pub(crate) struct Painted<T> {
    text: T,
    style: Style,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.style.render())?;
        // The text takes the width and alignment; escapes take no room.
        self.text.fmt(f)?;
        write!(f, "{}", self.style.render_reset())
    }
}

impl Paint {
    /// No colours.
    pub const PLAIN: Paint = Paint { colour: false };
    /// ANSI colours.
    pub const ANSI: Paint = Paint { colour: true };

    fn with<T>(self, text: T, style: Style) -> Painted<T> {
        Painted {
            text,
            style: if self.colour { style } else { Style::new() },
        }
    }

    /// Headings and names that the eye looks for.
    pub(crate) fn strong<T>(self, text: T) -> Painted<T> {
        self.with(text, Style::new().bold())
    }

    /// What can be skipped.
    pub(crate) fn dim<T>(self, text: T) -> Painted<T> {
        self.with(text, Style::new().dimmed())
    }

    /// The frame around a picture: arrows, rules.
    pub(crate) fn frame<T>(self, text: T) -> Painted<T> {
        self.with(text, AnsiColor::BrightBlue.on_default().bold())
    }

    /// Names of operations.
    pub(crate) fn operation<T>(self, text: T) -> Painted<T> {
        self.with(text, AnsiColor::Cyan.on_default())
    }

    /// `error[code]` in the colour of its severity.
    pub(crate) fn code(self, severity: Severity, code: &str) -> Painted<String> {
        self.severity(severity, format!("{}[{code}]", severity.name()))
    }

    /// What belongs to a finding of this severity.
    pub(crate) fn severity<T>(self, severity: Severity, text: T) -> Painted<T> {
        let colour = match severity {
            Severity::Error => AnsiColor::BrightRed,
            Severity::Warning => AnsiColor::BrightYellow,
            Severity::Note => AnsiColor::BrightGreen,
        };
        self.with(text, colour.on_default().bold())
    }
}

/// A text that may come from the file: what a terminal would obey is shown instead.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.into()
}

/// A number of bytes: exact below 10 kB, then three digits and a decimal unit.
pub(crate) fn bytes(n: u64) -> String {
    let value = n as f64;
    match n {
        0..10_000 => format!("{n} B"),
        10_000..1_000_000 => format!("{} kB", three_digits(value / 1e3)),
        1_000_000..1_000_000_000 => format!("{} MB", three_digits(value / 1e6)),
        _ => format!("{} GB", three_digits(value / 1e9)),
    }
}

/// Bytes a second.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    let (value, unit) = match bytes_per_second {
        r if r >= 1e12 => (r / 1e12, "TB/s"),
        r if r >= 1e9 => (r / 1e9, "GB/s"),
        r => (r / 1e6, "MB/s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// The value of a machine parameter with its unit: rates in a unit that leaves three digits, as all texts show them. A unit of `1` is none.
pub fn quantity(value: &str, unit: &str) -> String {
    match (value.parse(), unit) {
        (Ok(number), "bytes/s") if number >= 1e6 => rate(number),
        (_, "1" | "") => value.to_owned(),
        _ => format!("{value} {unit}"),
    }
}

fn three_digits(value: f64) -> String {
    let digits = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$}")
}

/// A share of the whole in percent; `–` where there is no whole.
pub(crate) fn share(part: Time, whole: Time) -> String {
    if whole == Time::ZERO {
        "–".to_owned()
    } else {
        format!("{:.1} %", part.0 as f64 * 100.0 / whole.0 as f64)
    }
}

/// Dimensions: `1×3×224×224`; a tensor without dimensions is a `scalar`.
pub(crate) fn shape(dimensions: &[u64]) -> String {
    if dimensions.is_empty() {
        return "scalar".to_owned();
    }
    dimensions
        .iter()
        .map(u64::to_string)
        .collect::<Vec<_>>()
        .join("×")
}

/// A condition with its sync: `barrier 3`, `S[7] ≥ 2`.
pub fn wait(program: &Program<'_>, wait: &Wait) -> String {
    let name = &program.syncs[wait.sync].name;
    match wait.condition {
        Condition::Equal(n) => format!("{name} = {n}"),
        Condition::AtLeast(n) => format!("{name} ≥ {n}"),
        Condition::Lit => name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_keep_three_digits() {
        let said: Vec<String> = [0, 9_999, 10_000, 99_951, 1_234_567, 12_345_678_901]
            .into_iter()
            .map(bytes)
            .collect();
        assert_eq!(
            said,
            ["0 B", "9999 B", "10.0 kB", "100 kB", "1.23 MB", "12.3 GB"]
        );
        assert_eq!(
            [rate(4.56e10), rate(5e8), rate(1.3e12)],
            ["45.6 GB/s", "500 MB/s", "1.30 TB/s"]
        );
        assert_eq!(
            [share(Time(1), Time(3)), share(Time(1), Time::ZERO)],
            ["33.3 %", "–"]
        );
        assert_eq!([shape(&[]), shape(&[1, 3])], ["scalar", "1×3"]);
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(clean("conv_1 µ"), "conv_1 µ");
        assert_eq!(clean("a\u{1b}[2J\n"), "a\\u{1b}[2J\\n");
    }

    #[test]
    fn colours_do_not_change_widths() {
        assert_eq!(format!("{:>6}|", Paint::PLAIN.strong("ab")), "    ab|");
        assert_eq!(
            format!("{:>6}|", Paint::ANSI.strong("ab")),
            "\u{1b}[1m    ab\u{1b}[0m|"
        );
    }
}
