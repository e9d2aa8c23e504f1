//! Words of 64 bits as lanes of a number type.

use half::f16;

/// A number type that a word holds one or more of.
pub(super) trait Lane: Copy {
    /// Bits of one.
    const BITS: u32;
    /// The one in the lowest bits.
    fn of(word: u64) -> Self;
    /// Its bits, lowest; the others zero.
    fn word(self) -> u64;
}

macro_rules! integers {
    ($($t:ty as $unsigned:ty),*) => {$(
        impl Lane for $t {
            const BITS: u32 = <$t>::BITS;
            #[inline]
            fn of(word: u64) -> $t {
                word as $t
            }
            #[inline]
            fn word(self) -> u64 {
                u64::from(self as $unsigned)
            }
        }
    )*};
}

integers!(
    u8 as u8, u16 as u16, u32 as u32, u64 as u64, i8 as u8, i16 as u16, i32 as u32, i64 as u64
);

macro_rules! floats {
    ($($t:ty as $bits:ty),*) => {$(
        impl Lane for $t {
            const BITS: u32 = <$bits>::BITS;
            #[inline]
            fn of(word: u64) -> $t {
                <$t>::from_bits(word as $bits)
            }
            #[inline]
            fn word(self) -> u64 {
                u64::from(self.to_bits())
            }
        }
    )*};
}

floats!(f16 as u16, f32 as u32, f64 as u64);

/// Lane `index` of a word.
#[inline]
pub(super) fn lane<T: Lane>(word: u64, index: u32) -> T {
    T::of(word >> (index * T::BITS))
}

/// A word of lanes of type `R`, each made from its index.
#[inline]
pub(super) fn lanes<R: Lane>(make: impl Fn(u32) -> R) -> u64 {
    (0..u64::BITS / R::BITS).fold(0, |word, index| {
        word | make(index).word() << (index * R::BITS)
    })
}

/// Lane by lane.
#[inline]
pub(super) fn map<T: Lane>(a: u64, f: impl Fn(T) -> T) -> u64 {
    lanes(|i| f(lane(a, i)))
}

/// Lane by lane, two words.
#[inline]
pub(super) fn zip<T: Lane>(a: u64, b: u64, f: impl Fn(T, T) -> T) -> u64 {
    lanes(|i| f(lane(a, i), lane(b, i)))
}

/// Lane by lane, three words.
#[inline]
pub(super) fn zip3<T: Lane>(a: u64, b: u64, c: u64, f: impl Fn(T, T, T) -> T) -> u64 {
    lanes(|i| f(lane(a, i), lane(b, i), lane(c, i)))
}

/// Lane by lane, 1 where it holds and 0 where it does not.
#[inline]
pub(super) fn test<T: Lane>(a: u64, b: u64, f: impl Fn(T, T) -> bool) -> u64 {
    (0..u64::BITS / T::BITS).fold(0, |word, i| {
        word | u64::from(f(lane(a, i), lane(b, i))) << (i * T::BITS)
    })
}

/// A word of two lanes of 32 bits, low and high.
#[inline]
pub(super) fn pair<T: Lane>(low: T, high: T) -> u64 {
    low.word() | high.word() << 32
}
