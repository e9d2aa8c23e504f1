use super::tile::Instructions;
use super::*;
use proptest::prelude::*;

/// Numbers that show order and rounding.
fn numbers<T>(count: usize, seed: u32, from: impl Fn(u32) -> T) -> Vec<T> {
    (0..count as u32)
        .map(|i| {
            from(
                (i ^ seed)
                    .wrapping_mul(2_654_435_761)
                    .rotate_left(15)
                    .wrapping_mul(0x9e37_79b9),
            )
        })
        .collect()
}

struct Case<'a, T: Number> {
    a: &'a [T],
    b: &'a [T],
    c: &'a [T::Sum],
    shape: (usize, usize, usize),
    gaps: [usize; 3],
}

impl<T: Number> Case<'_, T> {
    /// The product by `instructions`, with B as stored or transposed.
    fn run(&self, instructions: Instructions, transposed: bool, then: Then) -> Vec<T::Sum> {
        let ((rows, columns, depth), [a_gap, b_gap, c_gap]) = (self.shape, self.gaps);
        let a = Matrix::with_stride(self.a, rows, depth, depth + a_gap).unwrap();
        let b = if transposed {
            Columns::Transposed(Matrix::with_stride(self.b, columns, depth, depth + b_gap).unwrap())
        } else {
            Columns::Rows(Rows::Stored(
                Matrix::with_stride(self.b, depth, columns, columns + b_gap).unwrap(),
            ))
        };
        let mut c = self.c.to_vec();
        let product = Product {
            a: Rows::Stored(a),
            b,
            depth,
            then,
        };
        product.run_with(
            instructions,
            MatrixMut::with_stride(&mut c, rows, columns, columns + c_gap).unwrap(),
        );
        c
    }

    /// The definition: one chain of `multiply_add`s for each number of C.
    fn want(
        &self,
        transposed: bool,
        then: Then,
        multiply_add: impl Fn(T, T, T::Sum) -> T::Sum,
    ) -> Vec<T::Sum> {
        let ((rows, columns, depth), [a_gap, b_gap, c_gap]) = (self.shape, self.gaps);
        let mut c = self.c.to_vec();
        for i in 0..rows {
            for j in 0..columns {
                let place = &mut c[i * (columns + c_gap) + j];
                let start = if then == Then::Continue {
                    *place
                } else {
                    T::Sum::default()
                };
                let sum = (0..depth).fold(start, |sum, k| {
                    let b = if transposed {
                        self.b[j * (depth + b_gap) + k]
                    } else {
                        self.b[k * (columns + b_gap) + j]
                    };
                    multiply_add(self.a[i * (depth + a_gap) + k], b, sum)
                });
                *place = if then == Then::Add {
                    T::add(*place, sum)
                } else {
                    sum
                };
            }
        }
        c
    }

    fn check(&self, multiply_add: impl Fn(Instructions, T, T, T::Sum) -> T::Sum) {
        for instructions in Instructions::available() {
            for transposed in [false, true] {
                for then in [Then::Set, Then::Continue, Then::Add] {
                    let want = self.want(transposed, then, |a, b, sum| {
                        multiply_add(instructions, a, b, sum)
                    });
                    let got = self.run(instructions, transposed, then);
                    assert!(
                        got == want,
                        "{:?} {instructions:?} transposed: {transposed} {then:?}",
                        self.shape
                    );
                }
            }
        }
    }
}

fn check_all(shape: (usize, usize, usize), gaps: [usize; 3], seed: u32) {
    let (rows, columns, depth) = shape;
    let a = (rows + 1) * (depth + gaps[0]);
    let b = (depth + 1) * (columns + gaps[1]) + (columns + 1) * (depth + gaps[1]);
    let c = (rows + 1) * (columns + gaps[2]);
    let single = |v: u32| v as i32 as f32 * 2_f32.powi((v % 41) as i32 - 20);
    let double = |v: u32| f64::from(single(v)) * 1.000_000_1;
    let fused = |instructions| instructions != Instructions::Portable;
    Case::<f32> {
        a: &numbers(a, seed, single),
        b: &numbers(b, !seed, single),
        c: &numbers(c, seed ^ 0x55, single),
        shape,
        gaps,
    }
    .check(|instructions, a, b, sum| {
        if fused(instructions) {
            a.mul_add(b, sum)
        } else {
            a.multiply_add_to(b, sum)
        }
    });
    Case::<f64> {
        a: &numbers(a, seed, double),
        b: &numbers(b, !seed, double),
        c: &numbers(c, seed ^ 0x55, double),
        shape,
        gaps,
    }
    .check(|instructions, a, b, sum| {
        if fused(instructions) {
            a.mul_add(b, sum)
        } else {
            a.multiply_add_to(b, sum)
        }
    });
    // Every third number is the least one, so that sums of products overflow.
    let short = |v: u32| {
        if v.is_multiple_of(3) {
            i16::MIN
        } else {
            v as i16
        }
    };
    Case::<i16> {
        a: &numbers(a, seed, short),
        b: &numbers(b, !seed, short),
        c: &numbers(c, seed ^ 0x55, |v| v as i32),
        shape,
        gaps,
    }
    .check(|_, a, b, sum| (i64::from(a) * i64::from(b) + i64::from(sum)) as i32);
    let word = |v: u32| {
        if v.is_multiple_of(3) {
            i32::MIN
        } else {
            v as i32
        }
    };
    Case::<i32> {
        a: &numbers(a, seed, word),
        b: &numbers(b, !seed, word),
        c: &numbers(c, seed ^ 0x55, |v| i64::from(v) << 30),
        shape,
        gaps,
    }
    .check(|_, a, b, sum| (i128::from(a) * i128::from(b) + i128::from(sum)) as i64);
}

proptest! {
    #![proptest_config(chipless_rounds::cases(150))]

    /// Bit by bit, for all types, instruction sets, layouts and updates.
    #[test]
    fn is_the_chain_of_its_definition(rows in 1_usize..40, columns in 1_usize..80, depth in 0_usize..70,
                                      gaps in [0_usize..9, 0_usize..9, 0_usize..9], seed in any::<u32>()) {
        check_all((rows, columns, depth), gaps, seed);
    }
}

proptest! {
    #![proptest_config(chipless_rounds::cases(60))]

    /// As if all elements were decoded first: any type, any part of a byte, any gap.
    #[test]
    fn encoded_operands_are_decoded_on_the_way(element in prop::sample::select(ElementType::ALL), rows in 1_usize..140, columns in 0_usize..300,
                                               depth in prop_oneof![0_usize..40, 250_usize..260], gap in 0_usize..9, adds in any::<bool>(),
                                               seed in any::<u32>()) {
        let row = (columns as u64 * element.bits()).div_ceil(8) as usize;
        let bytes = numbers(depth * (row + gap), seed, |v| v as u8);
        let encoded = Encoded::new(element, &bytes, depth, columns, row + gap).unwrap();
        let mut decoded = vec![0.0; depth * columns];
        encoded.decode(&mut decoded).unwrap();
        for (row, bytes) in decoded.chunks(columns.max(1)).zip(bytes.chunks((row + gap).max(1))) {
            let mut want = vec![0.0; columns];
            decode_f32(element, &bytes[..(columns as u64 * element.bits()).div_ceil(8) as usize], &mut want).unwrap();
            prop_assert!(row.iter().zip(&want).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
        let single = |v: u32| v as i32 as f32 * 2_f32.powi((v % 9) as i32 - 36);
        let (a, held) = (numbers(rows * depth, !seed, single), numbers(rows * columns, seed ^ 0x55, single));
        let (mut want, mut got) = (held.clone(), held);
        let then = if adds { Then::Add } else { Then::Set };
        let (a, b) = (Matrix::new(&a, rows, depth).unwrap(), Matrix::new(&decoded, depth, columns).unwrap());
        Product { a: Rows::Stored(a), b: Columns::Rows(Rows::Stored(b)), depth, then }.run(MatrixMut::new(&mut want, rows, columns).unwrap());
        multiply_encoded(a, encoded, MatrixMut::new(&mut got, rows, columns).unwrap(), adds).unwrap();
        prop_assert!(got.iter().zip(&want).all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()));
    }
}

#[test]
fn strides_that_nobody_walks_may_be_any() {
    let one = Matrix::with_stride(&[2_f32], 1, 1, usize::MAX).unwrap();
    let (none, mut c) = (
        Matrix::<f32>::with_stride(&[], 300, 0, usize::MAX).unwrap(),
        [1.0; 300],
    );
    multiply(
        none,
        Matrix::new(&[], 0, 1).unwrap(),
        MatrixMut::new(&mut c, 300, 1).unwrap(),
        Update::Set,
    )
    .unwrap();
    assert_eq!(c, [0.0; 300]);
    multiply_transposed(
        one,
        one,
        MatrixMut::with_stride(&mut c, 1, 1, usize::MAX / 2).unwrap(),
        Update::Set,
    )
    .unwrap();
    assert_eq!(c[0], 4.0);
    let encoded =
        Encoded::new(ElementType::Float32, &[0, 0, 128, 63], 1, 1, usize::MAX / 2).unwrap();
    multiply_encoded(
        one,
        encoded,
        MatrixMut::new(&mut c[..1], 1, 1).unwrap(),
        true,
    )
    .unwrap();
    assert_eq!(c[0], 6.0);
    assert!(
        encoded.decode(&mut [0.0; 2]).is_err()
            && Encoded::new(ElementType::Int4, &[0; 3], 2, 3, 1).is_err()
    );
}

#[test]
fn blocks_of_every_dimension_are_joined() {
    check_all((270, 20, 40), [0, 1, 0], 1);
    check_all((20, 300, 40), [1, 0, 2], 2);
    check_all((9, 35, 1100), [0, 0, 0], 3);
    check_all((131, 141, 139), [3, 0, 5], 4);
}

#[test]
fn threads_make_no_difference() {
    let (rows, columns, depth) = (300, 200, 333);
    let single = |v: u32| v as i32 as f32 * 2_f32.powi((v % 41) as i32 - 20);
    let (a, b) = (
        numbers(rows * depth, 5, single),
        numbers(depth * columns, 6, single),
    );
    let run = |threads| {
        let mut c = vec![0.0; rows * columns];
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap()
            .install(|| {
                let (a, b) = (
                    Matrix::new(&a, rows, depth).unwrap(),
                    Matrix::new(&b, depth, columns).unwrap(),
                );
                multiply(
                    a,
                    b,
                    MatrixMut::new(&mut c, rows, columns).unwrap(),
                    Update::Set,
                )
                .unwrap();
            });
        c
    };
    let one = run(1);
    assert!([2, 3, 7].into_iter().all(|threads| run(threads) == one));
}

#[test]
fn shapes_are_checked() {
    let (a, b) = ([0.0_f32; 6], [0.0_f32; 6]);
    let mut c = [1.0; 4];
    let two_by_three = Matrix::new(&a, 2, 3).unwrap();
    let three_by_two = Matrix::new(&b, 3, 2).unwrap();
    let error = multiply(
        two_by_three,
        two_by_three,
        MatrixMut::new(&mut c, 2, 2).unwrap(),
        Update::Set,
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "rows of B: expected a length of 3, found 2"
    );
    assert!(
        multiply_transposed(
            two_by_three,
            three_by_two,
            MatrixMut::new(&mut c, 2, 2).unwrap(),
            Update::Set
        )
        .is_err()
    );
    assert!(
        multiply(
            two_by_three,
            three_by_two,
            MatrixMut::new(&mut c, 4, 1).unwrap(),
            Update::Set
        )
        .is_err()
    );
    assert_eq!(c, [1.0; 4]);
    assert!(Matrix::new(&a, 4, 2).is_err());
    assert!(Matrix::new(&a, usize::MAX, usize::MAX).is_err());
    assert!(Matrix::with_stride(&a, 2, 3, 2).is_err());
    assert!(Matrix::with_stride(&a, 2, 2, 4).is_ok());
    assert!(Matrix::with_stride(&a, 2, 3, 4).is_err());
    // Nothing to sum up is zero.
    let none = Matrix::<f32>::new(&[], 2, 0).unwrap();
    multiply(
        none,
        Matrix::new(&[], 0, 2).unwrap(),
        MatrixMut::new(&mut c, 2, 2).unwrap(),
        Update::Set,
    )
    .unwrap();
    assert_eq!(c, [0.0; 4]);
    // No output, however long its sides.
    let endless = Matrix::<f32>::new(&[], usize::MAX, 0).unwrap();
    multiply(
        endless,
        Matrix::new(&[], 0, 0).unwrap(),
        MatrixMut::new(&mut [], usize::MAX, 0).unwrap(),
        Update::Set,
    )
    .unwrap();
}
