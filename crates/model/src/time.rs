//! Simulated time: integer picoseconds, so that no result depends on the order of additions.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in simulated time, or a span of it, in picoseconds. 2^64 ps are 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(pub u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);

    /// Nanoseconds, rounded to the nearest picosecond.
    pub fn from_ns(ns: f64) -> Time {
        Time((ns * 1e3).round().max(0.0) as u64)
    }

    /// Cycles of a clock, rounded to the nearest picosecond.
    pub fn from_cycles(cycles: f64, mhz: f64) -> Time {
        Time((cycles * 1e6 / mhz).round().max(0.0) as u64)
    }

    /// In nanoseconds.
    pub fn ns(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// The difference, or zero where `earlier` is later.
    #[must_use]
    pub fn saturating_sub(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        *self = *self + other;
    }
}

impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

/// In the unit that people would choose, with three or four significant digits.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.ns();
        let (value, unit) = match ns {
            n if n >= 1e9 => (n / 1e9, "s"),
            n if n >= 1e6 => (n / 1e6, "ms"),
            n if n >= 1e3 => (n / 1e3, "µs"),
            n => (n, "ns"),
        };
        let digits = if value >= 100.0 {
            1
        } else if value >= 10.0 {
            2
        } else {
            3
        };
        f.pad(&format!("{value:.digits$} {unit}"))
    }
}
