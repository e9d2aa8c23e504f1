use super::*;
use crate::matrix::{Decode, Half};
use proptest::prelude::*;

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

fn windows() -> impl Strategy<Value = Window> {
    let sides = (0_usize..9, 0_usize..6, 0_usize..5, 0_usize..5, 0_usize..9);
    // Few channels, or more than a block of a depthwise convolution and a part of one.
    let channels = prop_oneof![3 => 0_usize..7, 1 => 30_usize..75];
    (sides.clone(), sides, channels).prop_map(|(x, y, channels)| Window {
        size_x: x.0,
        size_y: y.0,
        channels,
        kernel_x: x.1,
        kernel_y: y.1,
        stride_x: x.2,
        stride_y: y.2,
        pad_left: x.3,
        pad_up: y.3,
        out_x: x.4,
        out_y: y.4,
    })
}

/// A kernel of one pixel over so many.
fn pixels(count: usize, channels: usize) -> Window {
    Window {
        size_x: count,
        size_y: 1,
        channels,
        kernel_x: 1,
        kernel_y: 1,
        stride_x: 1,
        stride_y: 1,
        pad_left: 0,
        pad_up: 0,
        out_x: count,
        out_y: 1,
    }
}

impl Window {
    /// Input pixel and tap, by the definition, for an output pixel.
    fn reads(&self, x: usize, y: usize) -> Vec<(usize, usize)> {
        let mut reads = Vec::new();
        for j in 0..self.kernel_y {
            for i in 0..self.kernel_x {
                let column = (x * self.stride_x + i) as i64 - self.pad_left as i64;
                let row = (y * self.stride_y + j) as i64 - self.pad_up as i64;
                if (0..self.size_x as i64).contains(&column)
                    && (0..self.size_y as i64).contains(&row)
                {
                    reads.push((
                        row as usize * self.size_x + column as usize,
                        j * self.kernel_x + i,
                    ));
                }
            }
        }
        reads
    }

    fn pixels(&self) -> impl Iterator<Item = (usize, usize)> {
        let out_x = self.out_x;
        (0..self.out_y).flat_map(move |y| (0..out_x).map(move |x| (x, y)))
    }
}

/// Weights `[k][j][i][c]` whose zeros are left out.
fn without_zeros<T: Number>(weights: &[T], out_channels: usize, depth: usize) -> Panels<T> {
    let panels = Panels::transposed(out_channels, depth, |range, rows| {
        rows.copy_from_slice(&weights[range.start * depth..range.end * depth]);
        Ok::<(), Error>(())
    });
    panels.unwrap().without_zeros()
}

/// Zero times infinity is a NaN, and zero added to a product that was too small to be told from zero gives that its sign.
#[test]
fn zeros_are_left_out_only_where_no_sum_shows_it() {
    const DEPTH: usize = 600;
    let window = pixels(1, DEPTH);
    let mut weights = vec![0.0f32; DEPTH];
    let mut input = vec![1.0f32; DEPTH];
    let bits = |input: &[f32], weights: &[f32], update| {
        let (mut all, mut some) = ([-0.0], [-0.0]);
        convolve(&window, input, weights, 1, &mut all, update).unwrap();
        let places = MatrixMut::new(&mut some, 1, 1).unwrap();
        let panels = without_zeros(weights, 1, DEPTH);
        convolve_packed(&window, input, &panels, places, update).unwrap();
        assert_eq!(all[0].to_bits(), some[0].to_bits(), "{all:?} {some:?}");
        all[0].to_bits()
    };
    for update in [Update::Set, Update::Accumulate] {
        assert_eq!(bits(&input, &weights, update), 0);
        for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            input[300] = special;
            assert!(f32::from_bits(bits(&input, &weights, update)).is_nan());
        }
        (input[300], input[301]) = (1e-30, -1.0);
        weights[300] = -1e-30;
        bits(&input, &weights, update);
        (input[300], weights[300]) = (-3.0, 0.5);
        assert_eq!(bits(&input, &weights, update), (-1.5f32).to_bits());
        (input[300], input[301], weights[300]) = (1.0, 1.0, 0.0);
    }
}

/// All four functions against their definitions. The numbers are small integers, so that sums are exact in any order.
fn check<T: Number>(
    window: &Window,
    out_channels: usize,
    from: impl Fn(u32) -> T,
    sum: impl Fn(i64) -> T::Sum,
    exact: impl Fn(T) -> i64,
) {
    let (w, channels) = (window, window.channels);
    let taps = w.kernel_x * w.kernel_y;
    let input = numbers(w.size_x * w.size_y * channels, 1, &from);
    let weights = numbers(out_channels * taps * channels, 2, &from);
    for (update, start) in [(Update::Set, 0_i64), (Update::Accumulate, 7)] {
        // What is there counts only when it is added to.
        let filled = |size| vec![sum(7); size];

        let mut got = filled(w.out_x * w.out_y * out_channels);
        convolve(w, &input, &weights, out_channels, &mut got, update).unwrap();
        let want: Vec<T::Sum> = w
            .pixels()
            .flat_map(|(x, y)| (0..out_channels).map(move |k| (x, y, k)))
            .map(|(x, y, k)| {
                let products = w
                    .reads(x, y)
                    .into_iter()
                    .flat_map(|(pixel, tap)| (0..channels).map(move |c| (pixel, tap, c)));
                let products = products.map(|(pixel, tap, c)| {
                    exact(input[pixel * channels + c])
                        * exact(weights[(k * taps + tap) * channels + c])
                });
                sum(start + products.sum::<i64>())
            })
            .collect();
        assert_eq!(got, want, "convolve {w:?}");

        let depth = taps * channels;
        let panels = Panels::transposed(out_channels, depth, |range, rows| {
            rows.copy_from_slice(&weights[range.start * depth..range.end * depth]);
            Ok::<(), Error>(())
        });
        let (positions, mut packed) = (w.out_x * w.out_y, filled(w.out_x * w.out_y * out_channels));
        let places = MatrixMut::new(&mut packed, positions, out_channels).unwrap();
        convolve_packed(w, &input, &panels.unwrap(), places, update).unwrap();
        assert_eq!(packed, want, "convolve packed {w:?}");

        // Groups of columns that depend on parts of the depth of their own.
        let is_zero = |k: usize, at: usize| !(k / 5 + at / 3).is_multiple_of(4);
        let places = (0..out_channels).flat_map(|k| (0..depth).map(move |at| (k, at)));
        let sparse: Vec<T> = places
            .zip(&weights)
            .map(|((k, at), weight)| {
                if is_zero(k, at) {
                    T::default()
                } else {
                    *weight
                }
            })
            .collect();
        let (mut got, mut packed) = (filled(packed.len()), filled(packed.len()));
        convolve(w, &input, &sparse, out_channels, &mut got, update).unwrap();
        let places = MatrixMut::new(&mut packed, positions, out_channels).unwrap();
        let panels = without_zeros(&sparse, out_channels, depth);
        convolve_packed(w, &input, &panels, places, update).unwrap();
        assert_eq!(packed, got, "convolve packed without zeros {w:?}");

        let per_channel = numbers(taps * channels, 3, &from);
        let mut got = filled(w.out_x * w.out_y * channels);
        depthwise(w, &input, &per_channel, &mut got, update).unwrap();
        let outputs = || {
            w.pixels()
                .flat_map(|(x, y)| (0..channels).map(move |c| (x, y, c)))
        };
        let want: Vec<T::Sum> = outputs()
            .map(|(x, y, c)| {
                let products = w.reads(x, y).into_iter().map(|(pixel, tap)| {
                    exact(input[pixel * channels + c]) * exact(per_channel[c * taps + tap])
                });
                sum(start + products.sum::<i64>())
            })
            .collect();
        assert_eq!(got, want, "depthwise {w:?}");

        let mut got = filled(want.len());
        pool_sum(w, &input, &mut got, update).unwrap();
        let read = |x, y, c| {
            w.reads(x, y)
                .into_iter()
                .map(move |(pixel, _)| pixel * channels + c)
        };
        let want: Vec<T::Sum> = outputs()
            .map(|(x, y, c)| sum(start + read(x, y, c).map(|at| exact(input[at])).sum::<i64>()))
            .collect();
        assert_eq!(got, want, "pool_sum {w:?}");

        let mut got = vec![T::default(); want.len()];
        pool_max(w, &input, &mut got).unwrap();
        let larger = |a: T, b: T| if b > a { b } else { a };
        let want: Vec<T> = outputs()
            .map(|(x, y, c)| read(x, y, c).map(|at| input[at]).fold(T::LOWEST, larger))
            .collect();
        assert_eq!(got, want, "pool_max {w:?}");
    }
}

fn check_types(window: &Window, out_channels: usize) {
    let small = |v: u32| v as i32 % 100;
    check::<f32>(
        window,
        out_channels,
        |v| small(v) as f32,
        |s| s as f32,
        |v| v as i64,
    );
    check::<f64>(
        window,
        out_channels,
        |v| small(v).into(),
        |s| s as f64,
        |v| v as i64,
    );
    check::<i16>(
        window,
        out_channels,
        |v| small(v) as i16,
        |s| s as i32,
        i64::from,
    );
    check::<i32>(window, out_channels, small, |s| s, i64::from);
}

proptest! {
    #![proptest_config(chipless_rounds::cases(300))]

    #[test]
    fn follow_their_definitions(window in windows(), out_channels in 0_usize..6) {
        check_types(&window, out_channels);
    }
}

proptest! {
    #![proptest_config(chipless_rounds::cases(40))]

    /// Panels of halves are those of the numbers that they decode to.
    #[test]
    fn halves_are_as_good_as_their_numbers(out_channels in 1_usize..40, depth in 1_usize..600, positions in 1_usize..20) {
        let window = pixels(positions, depth);
        // A third of them are zeros, some of which make whole units.
        let halves: Vec<Half> = numbers(out_channels * depth, 5, |n| {
            let half = half::f16::from_f32(f32::from(n as i16) / 512.0);
            if n % 3 == 0 { [0, 0x80] } else { half.to_le_bytes() }
        });
        let decode: Decode<f32> = |halves, numbers| {
            for (number, half) in numbers.iter_mut().zip(halves) {
                *number = half::f16::from_le_bytes(*half).to_f32();
            }
        };
        let mut weights = vec![0.0; halves.len()];
        decode(&halves, &mut weights);
        let packed = Panels::of_halves(out_channels, depth, decode, |range, rows| {
            rows.copy_from_slice(&halves[range.start * depth..range.end * depth]);
            Ok::<(), Error>(())
        });
        let packed = packed.unwrap().without_zeros();
        let input = numbers(positions * depth, 6, |n| f32::from(n as i8));
        let sums = |panels: &Panels<f32>| {
            let mut sums = vec![0.0f32; positions * out_channels];
            let places = MatrixMut::new(&mut sums, positions, out_channels).unwrap();
            convolve_packed(&window, &input, panels, places, Update::Set).unwrap();
            sums.iter().map(|sum| sum.to_bits()).collect::<Vec<_>>()
        };
        prop_assert_eq!(sums(&packed), sums(&without_zeros(&weights, out_channels, depth)));
        prop_assert_eq!(packed.bytes() * 2, without_zeros(&weights, out_channels, depth).bytes());
    }
}

/// Windows of any numbers at all are refused or computed, without a panic and at once.
#[test]
fn no_window_panics_or_hangs() {
    const SIZES: [usize; 3] = [0, 1, usize::MAX];
    let run = |sides: [usize; 11], length: usize, size: usize| {
        let [
            size_x,
            size_y,
            channels,
            kernel_x,
            kernel_y,
            stride_x,
            stride_y,
            pad_left,
            pad_up,
            out_x,
            out_y,
        ] = sides;
        let window = Window {
            size_x,
            size_y,
            channels,
            kernel_x,
            kernel_y,
            stride_x,
            stride_y,
            pad_left,
            pad_up,
            out_x,
            out_y,
        };
        let (input, mut output) = ([1.0_f32; 5], [0.0; 5]);
        let (input, output) = (&input[..length], &mut output[..size]);
        let mut done = 0;
        for weights in [&input[..0], input] {
            done += usize::from(
                convolve(&window, input, weights, 1, output, Update::Accumulate).is_ok(),
            );
            done += usize::from(depthwise(&window, input, weights, output, Update::Set).is_ok());
        }
        done += usize::from(
            convolve(&window, input, &[], usize::MAX, output, Update::Accumulate).is_ok(),
        );
        done += usize::from(pool_max(&window, input, output).is_ok());
        done + usize::from(pool_sum(&window, input, output, Update::Set).is_ok())
    };
    let mut done = 0;
    for mut number in 0..SIZES.len().pow(11) {
        let sides = std::array::from_fn(|_| {
            let size = SIZES[number % SIZES.len()];
            number /= SIZES.len();
            size
        });
        for (length, size) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            done += run(sides, length, size);
        }
    }
    assert!(done > 0);
    // A large kernel over several rows.
    assert_eq!(
        run([1, 5, 1, usize::MAX, usize::MAX, 1, 1, 0, 0, 1, 3], 5, 3),
        2
    );
}

const LAYER: Window = Window {
    size_x: 17,
    size_y: 23,
    channels: 150,
    kernel_x: 3,
    kernel_y: 3,
    stride_x: 1,
    stride_y: 1,
    pad_left: 1,
    pad_up: 1,
    out_x: 17,
    out_y: 23,
};

#[test]
fn large_layers_follow_their_definitions() {
    check_types(&LAYER, 35);
    check_types(
        &Window {
            kernel_x: 1,
            kernel_y: 1,
            pad_left: 0,
            pad_up: 0,
            ..LAYER
        },
        150,
    );
    check_types(
        &Window {
            stride_x: 2,
            stride_y: 3,
            kernel_x: 7,
            kernel_y: 5,
            channels: 3,
            out_x: 8,
            out_y: 7,
            ..LAYER
        },
        64,
    );
}

#[test]
fn threads_make_no_difference() {
    let single = |v: u32| v as i32 as f32 * 2_f32.powi((v % 41) as i32 - 20);
    let (w, out_channels) = (LAYER, 70);
    let input = numbers(w.size_x * w.size_y * w.channels, 1, single);
    let weights = numbers(out_channels * 9 * w.channels, 2, single);
    let run = |threads| {
        let mut dense = vec![0.0; w.out_x * w.out_y * out_channels];
        let mut each = vec![0.0; w.out_x * w.out_y * w.channels];
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap()
            .install(|| {
                convolve(&w, &input, &weights, out_channels, &mut dense, Update::Set).unwrap();
                depthwise(
                    &w,
                    &input,
                    &weights[..9 * w.channels],
                    &mut each,
                    Update::Set,
                )
                .unwrap();
            });
        (dense, each)
    };
    let one = run(1);
    assert!([2, 3, 7].into_iter().all(|threads| run(threads) == one));
}

#[test]
fn wrong_lengths_are_errors() {
    let mut output = vec![5.0_f32; LAYER.out_x * LAYER.out_y * LAYER.channels];
    let error = pool_max(&LAYER, &[0.0; 7], &mut output).unwrap_err();
    assert_eq!(
        error.to_string(),
        "input: expected a length of 58650, found 7"
    );
    let input = output.clone();
    assert!(depthwise(&LAYER, &input, &[0.0; 7], &mut output, Update::Set).is_err());
    assert!(pool_sum(&LAYER, &input, &mut output[1..], Update::Set).is_err());
    let error = convolve(&LAYER, &input, &[0.0; 7], 2, &mut output, Update::Set).unwrap_err();
    assert_eq!(
        error.to_string(),
        "weights: expected a length of 2700, found 7"
    );
    assert_eq!(output, input);
    // NaN is no larger than anything.
    let pair = Window {
        size_x: 2,
        size_y: 1,
        channels: 1,
        kernel_x: 2,
        kernel_y: 1,
        out_x: 1,
        out_y: 1,
        pad_left: 0,
        pad_up: 0,
        ..LAYER
    };
    let mut largest = [0.0];
    pool_max(&pair, &[f32::NAN, -3.0], &mut largest).unwrap();
    assert_eq!(largest, [-3.0]);
}
