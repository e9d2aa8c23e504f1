//! The innermost loops of a matrix product: a few rows of A times a panel of columns of B, the sums in registers.

use crate::{Number, Update};

/// What becomes of the numbers that C holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The sums replace them.
    Set,
    /// They are the first term of the sums.
    Continue,
    /// The sums begin at zero and are added to them.
    Add,
}

impl From<Update> for Then {
    fn from(update: Update) -> Then {
        match update {
            Update::Set => Then::Set,
            Update::Accumulate => Then::Continue,
        }
    }
}

/// Instruction sets that there are tiles for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// What the compiler makes of plain code.
    Portable,
    /// AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F and VNNI.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Instructions {
    /// Those of this CPU, the best first.
    pub(crate) fn available() -> impl Iterator<Item = Instructions> {
        #[cfg(target_arch = "x86_64")]
        let vectors = [
            (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni"))
                .then_some(Instructions::Avx512),
            (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"))
                .then_some(Instructions::Avx2),
        ];
        #[cfg(not(target_arch = "x86_64"))]
        let vectors: [Option<Instructions>; 0] = [];
        vectors
            .into_iter()
            .flatten()
            .chain([Instructions::Portable])
    }

    /// The best of this CPU.
    pub(crate) fn best() -> Instructions {
        Instructions::available()
            .next()
            .unwrap_or(Instructions::Portable)
    }
}

/// The innermost loops for one type of numbers and one instruction set.
pub struct Tile<T: Number> {
    /// Columns of a panel.
    pub(crate) columns: usize,
    /// For 1, 2, 4, … rows, as far as the registers go.
    pub(crate) run: &'static [Run<T>],
    /// The same for units that are told.
    pub(crate) run_some: &'static [Run<T>],
}

/// Sums up the product of some rows of A and a panel of B, unit by unit of depth, in that order.
///
/// The arguments are: how many units; their numbers, where not all of them are summed up from the first on; the rows of A; a panel of B, in which the columns'
/// elements of a unit lie side by side, unit after unit; what becomes of the sums that there are; for each row of A, its
/// sums, as many as the panel has columns.
///
/// # Safety
///
/// A, the panel and the sums must be as long as that, the numbers as many as the units where the tile takes them, rows of sums must not
/// overlap, and the CPU must have the instructions of the tile.
#[allow(unsafe_code)]
pub(crate) type Run<T> = unsafe fn(
    usize,
    *const u32,
    &[*const T; MAX_ROWS],
    *const T,
    Then,
    &[*mut <T as Number>::Sum; MAX_ROWS],
);

/// Most rows of a tile.
pub(crate) const MAX_ROWS: usize = 8;

/// Most columns of a tile: two vectors of 64 bytes.
pub(crate) const MAX_COLUMNS: usize = 32;

const PORTABLE_COLUMNS: usize = 8;

/// The tile in plain code.
pub(crate) fn portable<T: Number>() -> Tile<T> {
    Tile {
        columns: PORTABLE_COLUMNS,
        run: &[
            portable_run::<T, 1, false>,
            portable_run::<T, 2, false>,
            portable_run::<T, 4, false>,
        ],
        run_some: &[
            portable_run::<T, 1, true>,
            portable_run::<T, 2, true>,
            portable_run::<T, 4, true>,
        ],
    }
}

/// See [`Run`].
#[allow(unsafe_code)]
unsafe fn portable_run<T: Number, const ROWS: usize, const SOME: bool>(
    units: usize,
    numbers: *const u32,
    a: &[*const T; MAX_ROWS],
    b: *const T,
    then: Then,
    sums: &[*mut T::Sum; MAX_ROWS],
) {
    let mut totals = [[T::Sum::default(); PORTABLE_COLUMNS]; ROWS];
    if then == Then::Continue {
        for (totals, sums) in totals.iter_mut().zip(sums) {
            // SAFETY: each row has that many sums.
            *totals = unsafe { (*sums).cast::<[T::Sum; PORTABLE_COLUMNS]>().read() };
        }
    }
    for unit in 0..units {
        let unit = if SOME {
            // SAFETY: there are as many numbers as units.
            unsafe { *numbers.add(unit) as usize }
        } else {
            unit
        };
        for (row, totals) in totals.iter_mut().enumerate() {
            for element in unit * T::UNIT..(unit + 1) * T::UNIT {
                // SAFETY: the element of A and the columns' elements of B belong to the unit.
                let (x, b) = unsafe {
                    (
                        *a[row].add(element),
                        b.add(unit * PORTABLE_COLUMNS * T::UNIT + element % T::UNIT),
                    )
                };
                for (column, total) in totals.iter_mut().enumerate() {
                    // SAFETY: as above.
                    *total = x.multiply_add_to(unsafe { *b.add(column * T::UNIT) }, *total);
                }
            }
        }
    }
    for (mut totals, sums) in totals.into_iter().zip(sums) {
        let sums = (*sums).cast::<[T::Sum; PORTABLE_COLUMNS]>();
        // SAFETY: as above.
        unsafe {
            if then == Then::Add {
                totals = std::array::from_fn(|column| T::add((*sums)[column], totals[column]));
            }
            sums.write(totals);
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    use super::{MAX_ROWS, Then, Tile};
    use crate::Number;
    #[allow(clippy::wildcard_imports)]
    use std::arch::x86_64::*;

    /// A tile whose panels are two vectors of sums wide. `load` reads a vector's columns of a unit of B, `spread` a unit
    /// of A into all columns, and `multiply_add` adds their product to a vector of sums.
    macro_rules! vector_tile {
        (
            $name:ident, $features:literal, $number:ident, $vector:ident, rows $($rows:literal)+,
            load |$b:ident| $load:expr, spread |$a:ident| $spread:expr,
            multiply_add |$x:ident, $y:ident, $sum:ident| $multiply_add:expr, add $add:ident
        ) => {
            pub(crate) fn $name() -> Tile<$number> {
                type Sum = <$number as Number>::Sum;
                const LANES: usize = size_of::<$vector>() / size_of::<Sum>();

                /// See [`Run`](super::Run).
                #[allow(unsafe_code)]
                #[target_feature(enable = $features)]
                unsafe fn run<const ROWS: usize, const SOME: bool>(
                    units: usize,
                    numbers: *const u32,
                    a: &[*const $number; MAX_ROWS],
                    b: *const $number,
                    then: Then,
                    sums: &[*mut Sum; MAX_ROWS],
                ) {
                    // SAFETY: everything read and written belongs to the units, rows and columns of the caller. All bits zero are
                    // vectors of zeros.
                    unsafe {
                        let mut totals: [[$vector; 2]; ROWS] = std::mem::zeroed();
                        if then == Then::Continue {
                            for row in 0..ROWS {
                                totals[row] = sums[row].cast::<[$vector; 2]>().read_unaligned();
                            }
                        }
                        for unit in 0..units {
                            let unit = if SOME { *numbers.add(unit) as usize } else { unit };
                            let $b = b.add(unit * 2 * LANES * $number::UNIT);
                            let left = $load;
                            let $b = $b.add(LANES * $number::UNIT);
                            let right = $load;
                            for row in 0..ROWS {
                                let $a = a[row].add(unit * $number::UNIT);
                                let $x = $spread;
                                let ($y, $sum) = (left, totals[row][0]);
                                totals[row][0] = $multiply_add;
                                let ($y, $sum) = (right, totals[row][1]);
                                totals[row][1] = $multiply_add;
                            }
                        }
                        for row in 0..ROWS {
                            if then == Then::Add {
                                let held = sums[row].cast::<[$vector; 2]>().read_unaligned();
                                totals[row] = [$add(held[0], totals[row][0]), $add(held[1], totals[row][1])];
                            }
                            sums[row].cast::<[$vector; 2]>().write_unaligned(totals[row]);
                        }
                    }
                }

                Tile { columns: 2 * LANES, run: &[$(run::<$rows, false>),+], run_some: &[$(run::<$rows, true>),+] }
            }
        };
    }

    vector_tile!(f32_avx512, "avx512f", f32, __m512, rows 1 2 4 8,
        load |b| _mm512_loadu_ps(b), spread |a| _mm512_set1_ps(*a), multiply_add |x, y, sum| _mm512_fmadd_ps(x, y, sum), add _mm512_add_ps);
    vector_tile!(f64_avx512, "avx512f", f64, __m512d, rows 1 2 4 8,
        load |b| _mm512_loadu_pd(b), spread |a| _mm512_set1_pd(*a), multiply_add |x, y, sum| _mm512_fmadd_pd(x, y, sum), add _mm512_add_pd);
    vector_tile!(i16_avx512, "avx512f,avx512vnni", i16, __m512i, rows 1 2 4 8,
        load |b| _mm512_loadu_si512(b.cast()), spread |a| _mm512_set1_epi32(a.cast::<i32>().read_unaligned()),
        multiply_add |x, y, sum| _mm512_dpwssd_epi32(sum, x, y), add _mm512_add_epi32);
    vector_tile!(i32_avx512, "avx512f", i32, __m512i, rows 1 2 4 8,
        load |b| _mm512_cvtepi32_epi64(_mm256_loadu_si256(b.cast())), spread |a| _mm512_set1_epi64(i64::from(*a)),
        multiply_add |x, y, sum| _mm512_add_epi64(sum, _mm512_mul_epi32(x, y)), add _mm512_add_epi64);

    vector_tile!(f32_avx2, "avx2,fma", f32, __m256, rows 1 2 4,
        load |b| _mm256_loadu_ps(b), spread |a| _mm256_set1_ps(*a), multiply_add |x, y, sum| _mm256_fmadd_ps(x, y, sum), add _mm256_add_ps);
    vector_tile!(f64_avx2, "avx2,fma", f64, __m256d, rows 1 2 4,
        load |b| _mm256_loadu_pd(b), spread |a| _mm256_set1_pd(*a), multiply_add |x, y, sum| _mm256_fmadd_pd(x, y, sum), add _mm256_add_pd);
    vector_tile!(i16_avx2, "avx2", i16, __m256i, rows 1 2 4,
        load |b| _mm256_loadu_si256(b.cast()), spread |a| _mm256_set1_epi32(a.cast::<i32>().read_unaligned()),
        multiply_add |x, y, sum| _mm256_add_epi32(sum, _mm256_madd_epi16(x, y)), add _mm256_add_epi32);
    vector_tile!(i32_avx2, "avx2", i32, __m256i, rows 1 2 4,
        load |b| _mm256_cvtepi32_epi64(_mm_loadu_si128(b.cast())), spread |a| _mm256_set1_epi64x(i64::from(*a)),
        multiply_add |x, y, sum| _mm256_add_epi64(sum, _mm256_mul_epi32(x, y)), add _mm256_add_epi64);
}
