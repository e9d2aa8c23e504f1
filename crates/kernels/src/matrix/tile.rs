//! The innermost loops of a matrix product: a few rows of A times a panel of columns of B, the sums in registers.

use crate::Number;

/// Instruction sets that there are tiles for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// What the compiler makes of plain code.
    Portable,
    /// AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F and BW.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Instructions {
    /// Those of this CPU, the best first.
    pub(crate) fn available() -> impl Iterator<Item = Instructions> {
        #[cfg(target_arch = "x86_64")]
        let vectors = [
            (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")).then_some(Instructions::Avx512),
            (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Instructions::Avx2),
        ];
        #[cfg(not(target_arch = "x86_64"))]
        let vectors: [Option<Instructions>; 0] = [];
        vectors.into_iter().flatten().chain([Instructions::Portable])
    }

    /// The best of this CPU.
    pub(crate) fn best() -> Instructions {
        Instructions::available().next().unwrap_or(Instructions::Portable)
    }
}

/// The innermost loops for one type of numbers and one instruction set.
pub struct Tile<T: Number> {
    /// Columns of a panel.
    pub(crate) columns: usize,
    /// For 1, 2, 4, … rows, as far as the registers go.
    pub(crate) run: &'static [Run<T>],
}

/// Adds the product of some rows of A and a panel of B to their sums, unit by unit of depth, in that order.
///
/// The arguments are: the units; A, and the elements from one of its rows to the next; the panel, in which the columns'
/// elements of a unit lie side by side, unit after unit; the sums, row by row, as many to a row as the panel has columns.
///
/// # Safety
///
/// A, the panel and the sums must be as long as that, and the CPU must have the instructions of the tile.
#[allow(unsafe_code)]
pub(crate) type Run<T> = unsafe fn(usize, *const T, usize, *const T, *mut <T as Number>::Sum);

/// Most sums of a tile: 8 rows of 32 columns.
pub(crate) const MAX_SUMS: usize = 256;

const PORTABLE_COLUMNS: usize = 8;

/// The tile in plain code.
pub(crate) fn portable<T: Number>() -> Tile<T> {
    Tile { columns: PORTABLE_COLUMNS, run: &[portable_run::<T, 1>, portable_run::<T, 2>, portable_run::<T, 4>] }
}

/// See [`Run`].
#[allow(unsafe_code)]
unsafe fn portable_run<T: Number, const ROWS: usize>(units: usize, a: *const T, a_row: usize, b: *const T, sums: *mut T::Sum) {
    // SAFETY: the caller's sums are `ROWS` rows of `PORTABLE_COLUMNS`.
    let sums = unsafe { &mut *sums.cast::<[[T::Sum; PORTABLE_COLUMNS]; ROWS]>() };
    for unit in 0..units {
        for (row, sums) in sums.iter_mut().enumerate() {
            for element in unit * T::UNIT..(unit + 1) * T::UNIT {
                // SAFETY: the element of A and the columns' elements of B belong to the unit.
                let (x, b) = unsafe { (*a.add(row * a_row + element), b.add(unit * PORTABLE_COLUMNS * T::UNIT + element % T::UNIT)) };
                for (column, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: as above.
                    *sum = x.multiply_add_to(unsafe { *b.add(column * T::UNIT) }, *sum);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    use super::Tile;
    use crate::Number;
    use std::arch::x86_64::*;

    /// A tile whose panels are two vectors of sums wide. `load` reads a vector's columns of a unit of B, `spread` a unit
    /// of A into all columns, and `multiply_add` adds their product to a vector of sums.
    macro_rules! vector_tile {
        (
            $name:ident, $features:literal, $number:ident, $vector:ident, rows $($rows:literal)+,
            load |$b:ident| $load:expr, spread |$a:ident| $spread:expr,
            multiply_add |$x:ident, $y:ident, $sum:ident| $multiply_add:expr
        ) => {
            pub(crate) fn $name() -> Tile<$number> {
                type Sum = <$number as Number>::Sum;
                const LANES: usize = size_of::<$vector>() / size_of::<Sum>();

                /// See [`Run`](super::Run).
                #[allow(unsafe_code)]
                #[target_feature(enable = $features)]
                unsafe fn run<const ROWS: usize>(units: usize, a: *const $number, a_row: usize, b: *const $number, sums: *mut Sum) {
                    let sums = sums.cast::<[[$vector; 2]; ROWS]>();
                    // SAFETY: everything read and written belongs to the units, rows and columns of the caller.
                    unsafe {
                        let mut totals = sums.read_unaligned();
                        for unit in 0..units {
                            let $b = b.add(unit * 2 * LANES * $number::UNIT);
                            let left = $load;
                            let $b = $b.add(LANES * $number::UNIT);
                            let right = $load;
                            for row in 0..ROWS {
                                let $a = a.add(row * a_row + unit * $number::UNIT);
                                let $x = $spread;
                                let ($y, $sum) = (left, totals[row][0]);
                                totals[row][0] = $multiply_add;
                                let ($y, $sum) = (right, totals[row][1]);
                                totals[row][1] = $multiply_add;
                            }
                        }
                        sums.write_unaligned(totals);
                    }
                }

                Tile { columns: 2 * LANES, run: &[$(run::<$rows>),+] }
            }
        };
    }

    vector_tile!(f32_avx512, "avx512f", f32, __m512, rows 1 2 4 8,
        load |b| _mm512_loadu_ps(b), spread |a| _mm512_set1_ps(*a), multiply_add |x, y, sum| _mm512_fmadd_ps(x, y, sum));
    vector_tile!(f64_avx512, "avx512f", f64, __m512d, rows 1 2 4 8,
        load |b| _mm512_loadu_pd(b), spread |a| _mm512_set1_pd(*a), multiply_add |x, y, sum| _mm512_fmadd_pd(x, y, sum));
    vector_tile!(i16_avx512, "avx512f,avx512bw", i16, __m512i, rows 1 2 4 8,
        load |b| _mm512_loadu_epi16(b), spread |a| _mm512_set1_epi32(a.cast::<i32>().read_unaligned()),
        multiply_add |x, y, sum| _mm512_add_epi32(sum, _mm512_madd_epi16(x, y)));
    vector_tile!(i32_avx512, "avx512f", i32, __m512i, rows 1 2 4 8,
        load |b| _mm512_cvtepi32_epi64(_mm256_loadu_si256(b.cast())), spread |a| _mm512_set1_epi64(i64::from(*a)),
        multiply_add |x, y, sum| _mm512_add_epi64(sum, _mm512_mul_epi32(x, y)));

    vector_tile!(f32_avx2, "avx2,fma", f32, __m256, rows 1 2 4,
        load |b| _mm256_loadu_ps(b), spread |a| _mm256_set1_ps(*a), multiply_add |x, y, sum| _mm256_fmadd_ps(x, y, sum));
    vector_tile!(f64_avx2, "avx2,fma", f64, __m256d, rows 1 2 4,
        load |b| _mm256_loadu_pd(b), spread |a| _mm256_set1_pd(*a), multiply_add |x, y, sum| _mm256_fmadd_pd(x, y, sum));
    vector_tile!(i16_avx2, "avx2", i16, __m256i, rows 1 2 4,
        load |b| _mm256_loadu_si256(b.cast()), spread |a| _mm256_set1_epi32(a.cast::<i32>().read_unaligned()),
        multiply_add |x, y, sum| _mm256_add_epi32(sum, _mm256_madd_epi16(x, y)));
    vector_tile!(i32_avx2, "avx2", i32, __m256i, rows 1 2 4,
        load |b| _mm256_cvtepi32_epi64(_mm_loadu_si128(b.cast())), spread |a| _mm256_set1_epi64x(i64::from(*a)),
        multiply_add |x, y, sum| _mm256_add_epi64(sum, _mm256_mul_epi32(x, y)));
}
