//! Numbers that products and pools compute with. A number names the tiles and buffers of its products, which are made for that number: this
//! file and those of products, panels and tiles are one circle, so that nobody else can bring a number without a tile.

use crate::matrix::product::Scratch;
use crate::matrix::tile::{self, Instructions, Tile};
use crate::room;
use std::cell::RefCell;
use std::fmt::Debug;

/// Operands of products and pools: `f32`, `f64`, and the integers `i16` and `i32`, whose sums are twice as wide.
///
/// Nobody else can implement it: the types of its hidden function have no public name.
pub trait Number: room::Element + PartialOrd + Debug + Send + Sync {
    /// Type of the sums. Integer sums are exact modulo 2^32 and 2^64: they are the sums themselves where these fit, and
    /// wrap as accumulators of that width do where not.
    type Sum: room::Element + PartialEq + Debug + Send + Sync;

    /// Below or equal to every number: negative infinity, or the least integer.
    const LOWEST: Self;

    /// Consecutive elements of depth that a tile multiplies at a time.
    #[doc(hidden)]
    const UNIT: usize;

    #[doc(hidden)]
    fn tile(instructions: Instructions) -> Tile<Self>;

    /// Lends the buffers of this thread.
    #[doc(hidden)]
    fn with_scratch(act: impl FnOnce(&mut Scratch<Self>));

    /// Whether zero times this number leaves every sum as it is that began at zero and has only such factors. Infinities and NaN make a NaN of it.
    /// A product that is too small to be told from zero can leave a negative zero, to which zero adds a sign.
    #[doc(hidden)]
    fn is_moderate(self) -> bool;

    /// The sum of two sums.
    #[doc(hidden)]
    #[must_use]
    fn add(sum: Self::Sum, other: Self::Sum) -> Self::Sum;

    /// `sum + self`.
    #[must_use]
    fn add_to(self, sum: Self::Sum) -> Self::Sum;

    /// `sum + self · other`, fused where every CPU of the architecture can.
    #[must_use]
    fn multiply_add_to(self, other: Self, sum: Self::Sum) -> Self::Sum;
}

macro_rules! number {
    ($number:ident => $sum:ident, $lowest:expr, unit $unit:literal, tiles $avx2:ident $avx512:ident, $($operation:item)+) => {
        impl Number for $number {
            type Sum = $sum;
            const LOWEST: $number = $lowest;
            const UNIT: usize = $unit;

            fn tile(instructions: Instructions) -> Tile<$number> {
                match instructions {
                    Instructions::Portable => tile::portable(),
                    #[cfg(target_arch = "x86_64")]
                    Instructions::Avx2 => tile::x86::$avx2(),
                    #[cfg(target_arch = "x86_64")]
                    Instructions::Avx512 => tile::x86::$avx512(),
                }
            }

            fn with_scratch(act: impl FnOnce(&mut Scratch<$number>)) {
                thread_local! {
                    static SCRATCH: RefCell<Scratch<$number>> = RefCell::default();
                }
                SCRATCH.with_borrow_mut(act);
            }

            $(#[inline] $operation)+
        }
    };
}

macro_rules! float {
    ($float:ident, $avx2:ident $avx512:ident) => {
        number!($float => $float, $float::NEG_INFINITY, unit 1, tiles $avx2 $avx512,
            fn is_moderate(self) -> bool {
                // From here on, the last digits of products are numbers too: no sum of them is rounded to zero.
                const LEAST: $float = $float::EPSILON * $float::EPSILON;
                let size = self.abs();
                (size == 0.0) | (LEAST..=$float::MAX).contains(&size)
            }
            fn add(sum: $float, other: $float) -> $float {
                sum + other
            }
            fn add_to(self, sum: $float) -> $float {
                sum + self
            }
            fn multiply_add_to(self, other: $float, sum: $float) -> $float {
                // Where the architecture does not have it, `mul_add` is a call of a library.
                if cfg!(target_arch = "aarch64") { self.mul_add(other, sum) } else { sum + self * other }
            }
        );
    };
}

macro_rules! integer {
    ($integer:ident => $sum:ident, unit $unit:literal, $avx2:ident $avx512:ident) => {
        number!($integer => $sum, $integer::MIN, unit $unit, tiles $avx2 $avx512,
            fn is_moderate(self) -> bool {
                true
            }
            fn add(sum: $sum, other: $sum) -> $sum {
                sum.wrapping_add(other)
            }
            fn add_to(self, sum: $sum) -> $sum {
                sum.wrapping_add($sum::from(self))
            }
            fn multiply_add_to(self, other: $integer, sum: $sum) -> $sum {
                // The product of two least integers still fits.
                sum.wrapping_add($sum::from(self) * $sum::from(other))
            }
        );
    };
}

float!(f32, f32_avx2 f32_avx512);
float!(f64, f64_avx2 f64_avx512);
integer!(i16 => i32, unit 2, i16_avx2 i16_avx512);
integer!(i32 => i64, unit 1, i32_avx2 i32_avx512);

/// What a product or a sum does with the numbers that the output holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Replaces them.
    Set,
    /// Adds to them: they are the first term of the sum.
    Accumulate,
}
