//! Who is told of what happens to integers while they are computed: what is clipped, what leaves a table, what overflows an accumulator.

use crate::fqir::tensor::saturate;

/// Who is told of what happens to integers. Without anyone the compiler leaves the telling out.
pub(crate) trait Watch {
    /// Whether anyone listens.
    const WATCHES: bool;

    /// What follows belongs to a node.
    fn enter(&mut self, _node: usize) {}

    /// A value was clipped to a width, and whether that changed it.
    fn clipped(&mut self, _changed: bool) {}

    /// A table was addressed, and whether the address lay outside before it was clipped.
    fn address(&mut self, _outside: bool) {}

    /// A sum as an accumulator would hold it.
    fn sum(&mut self, _sum: i64) {}

    /// How far an element is from the exact result, in steps of its scale.
    fn distance(&mut self, _node: usize, _steps: f64) {}

    /// Clips to a signed number of bits.
    #[inline]
    fn clip(&mut self, value: i64, bits: u8) -> i64 {
        let clipped = saturate(value, bits);
        self.clipped(clipped != value);
        clipped
    }

    /// Clips a whole number between two limits.
    fn clip_real(&mut self, value: f64, (low, high): (f64, f64)) -> i64 {
        self.clipped(value < low || value > high);
        value.clamp(low, high) as i64
    }
}

/// Nobody.
pub(crate) struct Unwatched;

impl Watch for Unwatched {
    const WATCHES: bool = false;
}
