//! Speed of the kernels. Tables give ratios to a bound of the machine itself; the casts, which have none, are timed.
//!
//! `cargo bench -p chipless-benches --bench kernels`
#![allow(missing_docs, clippy::print_stdout)]

use chipless_benches::best;
use chipless_kernels::cast::{Rounding, decode_f32, encode_f32};
use chipless_kernels::matrix::{Matrix, MatrixMut, multiply, multiply_transposed};
use chipless_kernels::strided;
use chipless_kernels::window::{Window, convolve, depthwise, pool_max};
use chipless_kernels::{Number, Update};
use chipless_model::{ElementType, Loop, Pattern};
use divan::counter::BytesCount;
use pulp::{Arch, Simd, WithSimd};
use std::hint::black_box;

fn main() {
    moves();
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("a pool of one thread")
        .install(products);
    divan::main();
}

/// Rows gathered from every other place, scattered to it, and transposes, against `memcpy` of as many bytes as are in the
/// cache lines touched.
fn moves() {
    println!(
        "{:<34}{:>10}{:>12}{:>12}{:>8}",
        "move", "buffer", "payload", "lines", "ratio"
    );
    for (place, size) in [("L2", 256 << 10), ("memory", 64 << 20)] {
        for run in [2_u64, 4, 8, 16, 32, 64, 128, 512, 1024, 4096] {
            let rows = Loop {
                count: size / (2 * run),
                stride: 2 * run as i64,
            };
            let (strided, packed) = (
                Pattern::new(0, run, [rows]),
                Pattern::contiguous(0, run * rows.count),
            );
            // A copy reads and writes as many bytes as it moves: here, the mean of the lines of both sides.
            let touched = (if run < 64 { 2 * run } else { run } + run) * rows.count / 2;
            report(
                &format!("gather rows of {run} B"),
                place,
                &strided,
                &packed,
                size,
                touched,
            );
            report(
                &format!("scatter rows of {run} B"),
                place,
                &packed,
                &strided,
                size,
                touched,
            );
        }
        for unit in [1_u64, 2, 4, 8, 16] {
            let side = (size / unit).isqrt() / 64 * 64 + 16;
            let row = (side * unit) as i64;
            let across = Pattern::new(
                0,
                unit,
                [
                    Loop {
                        count: side,
                        stride: row,
                    },
                    Loop {
                        count: side,
                        stride: unit as i64,
                    },
                ],
            );
            let total = side * side * unit;
            report(
                &format!("transpose of {unit} B"),
                place,
                &across,
                &Pattern::contiguous(0, total),
                total,
                total,
            );
        }
    }
    println!();
}

fn report(name: &str, place: &str, from: &Pattern, to: &Pattern, size: u64, touched: u64) {
    let source = vec![1_u8; size as usize];
    let mut destination = vec![2_u8; size as usize];
    let moved = best(|| {
        strided::copy(black_box(&source), from, black_box(&mut destination), to)
            .expect("patterns that fit");
    });
    let touched = touched as usize;
    let copied = best(|| {
        black_box(&mut destination)[..touched].copy_from_slice(&black_box(&source)[..touched]);
    });
    let rate = |bytes: usize, time: std::time::Duration| bytes as f64 / time.as_secs_f64() / 1e9;
    let payload = from.bytes().unwrap_or(0) as usize;
    println!(
        "{name:<34}{place:>10}{:>7.1} GB/s{:>7.1} GB/s{:>7.0}%",
        rate(payload, moved),
        rate(touched, moved),
        100.0 * copied.as_secs_f64() / moved.as_secs_f64()
    );
}

/// Products and convolutions on one core, against the multiply-adds that it can do.
fn products() {
    let peak = peak();
    println!(
        "peak of one core: {:.1} G multiply-adds/s in f32",
        peak / 1e9
    );
    println!(
        "{:<34}{:>18}{:>18}{:>18}",
        "G multiply-adds/s (share of peak)", "f32", "i16", "f64"
    );
    let line = |name: String, f32: f64, i16: f64, f64: f64| {
        let cell =
            |rate: f64, peak: f64| format!("{:.1} ({:.0}%)", rate / 1e9, 100.0 * rate / peak);
        println!(
            "{name:<34}{:>18}{:>18}{:>18}",
            cell(f32, peak),
            cell(i16, 2.0 * peak),
            cell(f64, peak / 2.0)
        );
    };
    for (m, n, k) in [
        (512, 512, 512),
        (3136, 64, 576),
        (49, 512, 4608),
        (1, 1000, 2048),
    ] {
        for transposed in [false, true] {
            let name = format!(
                "matrix {m}x{k} · {k}x{n}{}",
                if transposed { "ᵀ" } else { "" }
            );
            line(
                name,
                product::<f32>(m, n, k, transposed),
                product::<i16>(m, n, k, transposed),
                product::<f64>(m, n, k, transposed),
            );
        }
    }
    for (size, channels, kernel, out_channels) in [
        (56, 64, 3, 64),
        (14, 1024, 1, 256),
        (7, 512, 3, 512),
        (224, 3, 7, 64),
    ] {
        let name = format!("conv {size}x{size}x{channels} {kernel}x{kernel}x{out_channels}");
        let w = same(size, channels, kernel);
        line(
            name,
            convolution::<f32>(&w, out_channels),
            convolution::<i16>(&w, out_channels),
            convolution::<f64>(&w, out_channels),
        );
    }
    for (size, channels) in [(56, 128), (14, 512), (112, 32)] {
        let w = same(size, channels, 3);
        line(
            format!("depthwise {size}x{size}x{channels} 3x3"),
            each::<f32>(&w),
            each::<i16>(&w),
            each::<f64>(&w),
        );
        line(
            format!("pool_max {size}x{size}x{channels} 3x3"),
            largest::<f32>(&w),
            largest::<i16>(&w),
            largest::<f64>(&w),
        );
    }
    println!();
}

/// A layer whose output is as large as its input.
fn same(size: usize, channels: usize, kernel: usize) -> Window {
    let (size_x, size_y, kernel_x, kernel_y, out_x, out_y) =
        (size, size, kernel, kernel, size, size);
    Window {
        size_x,
        size_y,
        channels,
        kernel_x,
        kernel_y,
        stride_x: 1,
        stride_y: 1,
        pad_left: kernel / 2,
        pad_up: kernel / 2,
        out_x,
        out_y,
    }
}

fn product<T: Number>(m: usize, n: usize, k: usize, transposed: bool) -> f64 {
    let (a, b, mut c) = (
        vec![T::default(); m * k],
        vec![T::default(); k * n],
        vec![T::Sum::default(); m * n],
    );
    let time = best(|| {
        let a = Matrix::new(black_box(&a), m, k).expect("m×k");
        let b = if transposed {
            Matrix::new(black_box(&b), n, k)
        } else {
            Matrix::new(black_box(&b), k, n)
        }
        .expect("k×n");
        let c = MatrixMut::new(black_box(&mut c), m, n).expect("m×n");
        if transposed {
            multiply_transposed(a, b, c, Update::Set)
        } else {
            multiply(a, b, c, Update::Set)
        }
        .expect("shapes that agree");
    });
    (m * n * k) as f64 / time.as_secs_f64()
}

fn convolution<T: Number>(w: &Window, out_channels: usize) -> f64 {
    let taps = w.kernel_x * w.kernel_y * w.channels;
    let input = vec![T::default(); w.size_x * w.size_y * w.channels];
    let weights = vec![T::default(); out_channels * taps];
    let mut output = vec![T::Sum::default(); w.out_x * w.out_y * out_channels];
    let time = best(|| {
        convolve(
            w,
            black_box(&input),
            black_box(&weights),
            out_channels,
            black_box(&mut output),
            Update::Set,
        )
        .expect("shapes that agree");
    });
    (output.len() * taps) as f64 / time.as_secs_f64()
}

fn each<T: Number>(w: &Window) -> f64 {
    let taps = w.kernel_x * w.kernel_y;
    let input = vec![T::default(); w.size_x * w.size_y * w.channels];
    let weights = vec![T::default(); taps * w.channels];
    let mut output = vec![T::Sum::default(); w.out_x * w.out_y * w.channels];
    let time = best(|| {
        depthwise(
            w,
            black_box(&input),
            black_box(&weights),
            black_box(&mut output),
            Update::Set,
        )
        .expect("shapes that agree");
    });
    (output.len() * taps) as f64 / time.as_secs_f64()
}

fn largest<T: Number>(w: &Window) -> f64 {
    let input = vec![T::default(); w.size_x * w.size_y * w.channels];
    let mut output = vec![T::default(); w.out_x * w.out_y * w.channels];
    let time =
        best(|| pool_max(w, black_box(&input), black_box(&mut output)).expect("shapes that agree"));
    (output.len() * w.kernel_x * w.kernel_y) as f64 / time.as_secs_f64()
}

/// Multiply-adds a second of a loop that never leaves the registers.
fn peak() -> f64 {
    const CHAINS: usize = 16;
    const ROUNDS: usize = 1 << 12;
    struct Loop;
    impl WithSimd for Loop {
        type Output = usize;

        #[inline(always)]
        #[allow(clippy::inline_always)] // What is not inlined is not compiled for the vectors.
        fn with_simd<S: Simd>(self, simd: S) -> usize {
            let x = simd.splat_f32s(black_box(0.5));
            let mut sums = [x; CHAINS];
            for _ in 0..ROUNDS {
                for sum in &mut sums {
                    *sum = simd.mul_add_f32s(*sum, x, x);
                }
            }
            for sum in sums {
                black_box(simd.reduce_sum_f32s(sum));
            }
            S::F32_LANES * CHAINS * ROUNDS
        }
    }
    let arch = Arch::new();
    let mut count = 0;
    let time = best(|| count = arch.dispatch(Loop));
    count as f64 / time.as_secs_f64()
}

const COUNT: usize = 1 << 16;

#[divan::bench(args = ElementType::ALL.iter().copied())]
fn decode(bencher: divan::Bencher<'_, '_>, element: ElementType) {
    let bytes = vec![1; COUNT * element.bits() as usize / 8];
    let mut values = vec![0.0; COUNT];
    bencher
        .counter(BytesCount::of_slice(&values))
        .bench_local(|| decode_f32(element, black_box(&bytes), black_box(&mut values)));
}

#[divan::bench(args = ElementType::ALL.iter().copied())]
fn encode(bencher: divan::Bencher<'_, '_>, element: ElementType) {
    let values = vec![1.5; COUNT];
    let mut bytes = vec![0; COUNT * element.bits() as usize / 8];
    bencher
        .counter(BytesCount::of_slice(&values))
        .bench_local(|| {
            encode_f32(
                element,
                black_box(&values),
                Rounding::NearestEven,
                black_box(&mut bytes),
            )
        });
}
