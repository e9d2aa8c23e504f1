use super::*;
use proptest::prelude::*;

/// The lists of a pool for a kernel of 2 x 3, stride 1 x 2, one row before and one column after.
const KERNEL_AND_STRIDE: [i64; 6] = [1, 2, 3, 1, 1, 2];
const PADS: [i64; 6] = [0, 1, 0, 0, 0, 1];

#[test]
fn average_pools() {
    let pool = |exclude: i64| {
        let block = block()
            .tensor(F32, &[4, 3, 2, 1])
            .tensor(F32, &[2, 3, 2, 1])
            .longs(&KERNEL_AND_STRIDE)
            .longs(&PADS)
            .long(exclude);
        block.floats(Operation::AveragePool, &[Values::Float(data(24))])
    };
    let inside = [
        0.0, 0.3125, 0.416667, 0.203125, 0.197917, -0.015625, 0.395833, -0.34375, 0.8125,
        -0.453125, 0.59375, -0.671875,
    ];
    let padded = [
        0.0, 0.104167, 0.416667, 0.135417, 0.197917, -0.0104167, 0.197917, -0.114583, 0.8125,
        -0.302083, 0.59375, -0.447917,
    ];
    assert_close(&pool(1), &inside);
    assert_close(&pool(0), &padded);
}

#[test]
fn dilated_average_pool_with_rounded_up_size() {
    let pool = |exclude: i64| {
        let block = block()
            .tensor(F32, &[4, 3, 2, 1])
            .tensor(F32, &[3, 2, 2, 1]);
        let block = block
            .longs(&[1, 2, 2, 1, 2, 2, 1, 1, 2])
            .longs(&[0, 0, 1, 0, 0, 1])
            .long(exclude);
        block.floats(Operation::AveragePoolDilated, &[Values::Float(data(24))])
    };
    assert_close(
        &pool(1),
        &[
            1.46875, 0.625, -0.21875, -0.4375, -1.28125, -2.125, 0.8125, -0.03125, -0.875, 2.0625,
            1.21875, 0.375,
        ],
    );
    assert_close(
        &pool(0),
        &[
            0.734375, 0.625, -0.21875, -0.21875, -1.28125, -2.125, 0.40625, -0.03125, -0.875,
            1.03125, 1.21875, 0.375,
        ],
    );
}

#[test]
fn pools_with_depth() {
    let average = block()
        .tensor(F32, &[4, 3, 2, 1, 1])
        .tensor(F32, &[2, 2, 1, 1, 1])
        .longs(&[2, 2, 3, 1, 1, 1])
        .longs(&[0; 7]);
    assert_close(
        &average.floats(Operation::AveragePool, &[Values::Float(data(24))]),
        &[0.614583, 0.296875, 0.395833, 0.078125],
    );
    // Width dilated by two, two channels; indices go on from one channel to the next.
    let dims = [2, 2, 1, 2, 1];
    let maximum = block()
        .tensor(F32, &[4, 3, 2, 2, 1])
        .tensor(F32, &dims)
        .tensor(I32, &dims);
    let maximum = maximum
        .longs(&[2, 2, 2, 1, 1, 1, 1, 1, 2])
        .longs(&[0; 7])
        .longs(&[1, 2, 2, 3, 4])
        .longs(&[1, 2, 1, 2, 2])
        .longs(&[0; 10]);
    let found = maximum
        .run(Operation::MaxPoolIndices, &[Values::Float(data(48))])
        .expect("a pool");
    let maxima = [3.125, 2.9375, 3.125, 2.9375, 2.6875, 2.4375, 3.0625, 2.875];
    assert_eq!(
        found,
        [float(&maxima), integer(&[16, 5, 16, 5, 24, 43, 46, 35])]
    );
}

const MAXIMA: [f32; 12] = [
    2.3125, 2.3125, 2.9375, 2.3125, 2.9375, 1.875, 2.5, 0.8125, 3.125, 1.4375, 3.125, 1.4375,
];

#[test]
fn max_pool_in_both_orders() {
    let scalars = |block: Block| block.longs(&KERNEL_AND_STRIDE).longs(&PADS);
    let nchw = scalars(
        block()
            .tensor(F32, &[4, 3, 2, 1])
            .tensor(F32, &[2, 3, 2, 1]),
    );
    assert_eq!(
        nchw.floats(Operation::MaxPool, &[Values::Float(data(24))]),
        MAXIMA
    );
    let nhwc = |values: &[f32]| -> Vec<f32> {
        (0..values.len())
            .map(|at| values[at % 2 * values.len() / 2 + at / 2])
            .collect()
    };
    let block = scalars(block().ordered(F32, &[2, 4, 3, 1], 0x2431).ordered(
        F32,
        &[2, 2, 3, 1],
        0x2431,
    ));
    assert_eq!(
        block.floats(Operation::MaxPool, &[Values::Float(nhwc(&data(24)))]),
        nhwc(&MAXIMA)
    );
    let integers = block_of_integers().integers(Operation::MaxPool, &[integer(&[-5, -7, -6, -9])]);
    assert_eq!(integers, [-5, -6]);
}

fn block_of_integers() -> Block {
    block()
        .tensor(I32, &[4, 1])
        .tensor(I32, &[2, 1])
        .longs(&[1, 1, 2, 1, 1, 2])
        .longs(&[0; 6])
}

#[test]
fn max_pool_with_indices_of_the_whole_tensor() {
    let indices = [2, 2, 5, 2, 5, 10, 13, 15, 16, 18, 16, 18];
    let scalars = |block: Block| {
        block
            .longs(&KERNEL_AND_STRIDE)
            .longs(&[1, 1, 1])
            .longs(&PADS)
            .long(0)
    };
    let whole = scalars(
        block()
            .tensor(F32, &[4, 3, 2, 1])
            .tensor(F32, &[2, 3, 2, 1])
            .tensor(I32, &[2, 3, 2, 1]),
    );
    let whole = whole
        .longs(&[1, 1, 2, 3, 4])
        .longs(&[1, 1, 2, 3, 2])
        .longs(&[0; 10]);
    let found = whole
        .run(Operation::MaxPoolIndices, &[Values::Float(data(24))])
        .expect("a pool");
    assert_eq!(found, [float(&MAXIMA), integer(&indices)]);

    // The last two output rows of channel 1, from all of its input rows.
    let tile = scalars(
        block()
            .tensor(F32, &[4, 3, 1, 1])
            .tensor(F32, &[2, 2, 1, 1])
            .tensor(I32, &[2, 2, 1, 1]),
    );
    let tile = tile
        .longs(&[1, 1, 2, 3, 4])
        .longs(&[1, 1, 2, 3, 2])
        .longs(&[0, 0, 1, 0, 0])
        .longs(&[0, 0, 1, 1, 0]);
    let found = tile
        .run(Operation::MaxPoolIndices, &[float(&data(24)[12..])])
        .expect("a pool");
    assert_eq!(found, [float(&MAXIMA[8..]), integer(&indices[8..])]);
}

/// The 220 bytes of scalars.
struct Resize {
    mode: i64,
    coordinates: i64,
    nearest: i64,
    input: [i64; 2],
    output: [i64; 2],
    scales: Option<[f32; 2]>,
    offsets: [i64; 2],
}

impl Resize {
    /// From 3 x 2 to the given width and height.
    fn to(width: i64, height: i64) -> Resize {
        Resize {
            mode: 1,
            coordinates: 0,
            nearest: 0,
            input: [3, 2],
            output: [width, height],
            scales: None,
            offsets: [0; 2],
        }
    }

    fn scalars(&self, block: Block) -> Block {
        let block = block.longs(&[i64::MAX, self.mode, self.coordinates, self.nearest, 0]);
        let block = (0..4).fold(block, |block, _| block.float(0.0));
        let block = block
            .longs(&[
                self.input[0],
                self.input[1],
                1,
                1,
                self.output[0],
                self.output[1],
                1,
                1,
                2,
                3,
            ])
            .float(-0.75);
        let block = block
            .longs(&[0, self.offsets[0], 0, 0, 0, self.offsets[1], 0, 0])
            .long(i64::from(self.scales.is_some()));
        let scales = self.scales.unwrap_or([1.0; 2]);
        block.float(scales[0]).float(scales[1])
    }

    fn run(&self) -> Vec<f32> {
        let dims = |size: [i64; 2]| [size[0] as u32, size[1] as u32, 1, 1];
        let block = self.scalars(
            block()
                .tensor(F32, &dims(self.input))
                .tensor(F32, &dims(self.output)),
        );
        block.floats(
            Operation::Interpolate,
            &[Values::Float(data(
                (self.input[0] * self.input[1]) as usize,
            ))],
        )
    }
}

#[test]
fn linear_interpolation() {
    let linear = |coordinates| {
        Resize {
            coordinates,
            ..Resize::to(5, 3)
        }
        .run()
    };
    let half_pixel = [
        -2.3125, -1.3875, 0.0, 1.3875, 2.3125, -2.0, -1.075, 0.3125, 1.7, 2.625, -1.6875, -0.7625,
        0.625, 2.0125, 2.9375,
    ];
    assert_close(&linear(0), &half_pixel);
    assert_close(&linear(1), &half_pixel);
    assert_close(
        &linear(2),
        &[
            -2.3125, -0.925, 0.4625, 1.85, 2.3125, -1.89583, -0.508333, 0.879167, 2.26667, 2.72917,
            -1.6875, -0.3, 1.0875, 2.475, 2.9375,
        ],
    );
    assert_close(
        &linear(4),
        &[
            -2.3125, -1.15625, 0.0, 1.15625, 2.3125, -2.0, -0.84375, 0.3125, 1.46875, 2.625,
            -1.6875, -0.53125, 0.625, 1.78125, 2.9375,
        ],
    );
    assert_close(
        &Resize {
            mode: 2,
            coordinates: 1,
            ..Resize::to(1, 1)
        }
        .run(),
        &[-2.3125],
    );
    // The scales of the model differ from the quotient of sizes.
    let scaled = Resize {
        input: [4, 2],
        scales: Some([1.5, 1.3]),
        ..Resize::to(5, 3)
    }
    .run();
    assert_close(
        &scaled,
        &[
            -2.3125, -0.800481, 0.978366, 1.54327, -1.53365, -0.84375, 0.668269, 1.11178, 0.46274,
            -0.186298, 0.625, 2.13702, 1.24519, -0.617788, 1.16106,
        ],
    );
}

#[test]
fn cubic_interpolation() {
    let cubic = |coordinates| {
        Resize {
            mode: 3,
            coordinates,
            ..Resize::to(5, 3)
        }
        .run()
    };
    assert_close(
        &cubic(0),
        &[
            -2.58876, -1.636, -0.0542535, 1.5275, 2.48025, -2.222, -1.26925, 0.3125, 1.89425,
            2.847, -1.85525, -0.902496, 0.679254, 2.261, 3.21376,
        ],
    );
    assert_close(
        &cubic(2),
        &[
            -2.3125, -1.147, 0.629001, 1.961, 2.56225, -1.88426, -0.718759, 1.05724, 2.38924,
            2.99049, -1.61805, -0.452555, 1.32345, 2.65544, 3.25669,
        ],
    );
    assert_close(
        &cubic(4),
        &[
            -2.3125, -1.37305, 0.0, 1.37305, 2.3125, -2.0, -1.06055, 0.3125, 1.68555, 2.625,
            -1.6875, -0.748047, 0.625, 1.99805, 2.9375,
        ],
    );
}

#[test]
fn nearest_interpolation() {
    let nearest = |nearest| {
        Resize {
            mode: 0,
            nearest,
            ..Resize::to(6, 3)
        }
        .run()
    };
    let [a, b, c, d, e, f] = [-2.3125, 0.0, 2.3125, -1.6875, 0.625, 2.9375];
    assert_eq!(
        nearest(0),
        [a, a, b, b, c, c, a, a, b, b, c, c, d, d, e, e, f, f]
    );
    assert_eq!(
        nearest(1),
        [a, a, b, b, c, c, d, d, e, e, f, f, d, d, e, e, f, f]
    );
    assert_eq!(
        nearest(2),
        [a, a, a, b, b, c, a, a, a, b, b, c, d, d, d, e, e, f]
    );
    assert_eq!(
        nearest(3),
        [a, b, b, c, c, c, d, e, e, f, f, f, d, e, e, f, f, f]
    );
    // Simple is floor when growing and ceil when shrinking.
    assert_eq!(nearest(4), nearest(2));
    assert_eq!(
        Resize {
            mode: 0,
            coordinates: 2,
            nearest: 4,
            ..Resize::to(2, 1)
        }
        .run(),
        [a, c]
    );
    assert_eq!(
        Resize {
            mode: 0,
            coordinates: 3,
            nearest: 2,
            ..Resize::to(3, 1)
        }
        .run(),
        [d, e, f]
    );
}

/// A tile has rows of the input and of the output; its coordinates are global.
#[test]
fn interpolation_of_a_tile() {
    let whole = Resize {
        coordinates: 4,
        input: [2, 5],
        ..Resize::to(3, 9)
    };
    let expected = whole.run();
    let tile = Resize {
        offsets: [2, 5],
        ..whole
    };
    let run = |rows: usize, outputs: usize| {
        let block = block()
            .tensor(F32, &[2, rows as u32, 1, 1])
            .tensor(I32, &[3])
            .tensor(F16, &[6])
            .tensor(F32, &[3, outputs as u32, 1, 1]);
        let input = float(&data(10)[2 * 2..][..2 * rows]);
        tile.scalars(block).run(
            Operation::Interpolate,
            &[input, integer(&[0; 3]), float(&[0.0; 6])],
        )
    };
    assert_eq!(run(3, 4), Ok(vec![float(&expected[3 * 5..])]));
    let fault = run(1, 4).expect_err("rows are missing");
    assert_eq!(
        fault.message,
        "interpolate: output place 5 needs input place 3, the tile has 2 to 2"
    );
}

#[test]
fn interpolation_in_nhwc() {
    let resize = Resize {
        coordinates: 4,
        ..Resize::to(5, 3)
    };
    let invocation = |block: Block| {
        let mut bytes = block.longs(&[i64::MAX, 1, 4, 0, 0]);
        bytes = (0..4).fold(bytes, |block, _| block.float(0.0));
        bytes = bytes
            .longs(&[2, 3, 2, 1, 2, 5, 3, 1, 2, 3])
            .float(-0.75)
            .longs(&[0; 9]);
        bytes.float(0.0).float(0.0)
    };
    let nhwc = invocation(block().ordered(F32, &[2, 3, 2, 1], 0x2431).ordered(
        F32,
        &[2, 5, 3, 1],
        0x2431,
    ));
    // Channel 0 is the image, channel 1 is zero.
    let image: Vec<f32> = data(6).into_iter().flat_map(|value| [value, 0.0]).collect();
    let found = nhwc.floats(Operation::Interpolate, &[Values::Float(image)]);
    let channel: Vec<f32> = found.iter().step_by(2).copied().collect();
    assert_close(&channel, &resize.run());
    assert!(found.iter().skip(1).step_by(2).all(|value| *value == 0.0));
}

const GRID: [f32; 12] = [
    -0.9, -0.8, 0.1, 0.3, 1.4, 0.9, -1.6, 2.3, 0.5, -0.5, 1.0, 1.0,
];

#[test]
fn grid_samples() {
    // Mode, padding, align corners.
    let cases: [([i64; 3], [f32; 6]); 18] = [
        ([0, 0, 0], [-1.295, 0.607187, 0.0, 0.0, 0.257812, -0.53125]),
        (
            [0, 0, 1],
            [-1.37812, 0.555937, -0.715, 0.0, 0.414062, -2.125],
        ),
        (
            [0, 1, 0],
            [-2.3125, 0.607187, -2.125, -2.75, 0.257812, -2.125],
        ),
        (
            [0, 1, 1],
            [-1.37812, 0.555937, -1.7875, -2.75, 0.414062, -2.125],
        ),
        (
            [0, 2, 0],
            [-2.3125, 0.607187, -0.924999, 0.921876, 0.257812, -2.125],
        ),
        (
            [0, 2, 1],
            [-1.37812, 0.555937, 0.23375, 1.825, 0.414062, -2.125],
        ),
        (
            [1, 0, 0],
            [-1.78727, 0.651626, 0.197548, 0.0, 0.286995, -0.932434],
        ),
        (
            [1, 0, 1],
            [-1.78852, 0.441534, -1.02467, 0.0265822, 0.293694, -2.125],
        ),
        (
            [1, 1, 0],
            [-2.84945, 0.502935, -2.49931, -2.75, 0.332542, -2.87189],
        ),
        (
            [1, 1, 1],
            [-1.43428, 0.361832, -2.07608, -2.76561, 0.141121, -2.125],
        ),
        (
            [1, 2, 0],
            [-3.02922, 0.502935, -1.1242, 1.53636, 0.332542, -3.72974],
        ),
        (
            [1, 2, 1],
            [-1.91294, 0.434405, 0.261764, 2.30617, 0.356201, -2.125],
        ),
        ([2, 0, 0], [-2.3125, -1.0625, 0.0, 0.0, 2.3125, 0.0]),
        ([2, 0, 1], [-2.3125, -1.0625, 0.0, 0.0, 2.3125, -2.125]),
        ([2, 1, 0], [-2.3125, -1.0625, -2.125, -2.75, 2.3125, -2.125]),
        ([2, 1, 1], [-2.3125, -1.0625, -2.125, -2.75, 2.3125, -2.125]),
        (
            [2, 2, 0],
            [-2.3125, -1.0625, -2.125, 2.9375, 2.3125, -2.125],
        ),
        ([2, 2, 1], [-2.3125, -1.0625, 1.875, 2.9375, 2.3125, -2.125]),
    ];
    for ([mode, padding, align], expected) in cases {
        let block = block()
            .tensor(F32, &[4, 3, 1, 1])
            .tensor(F32, &[2, 3, 2, 1])
            .tensor(F32, &[3, 2, 1, 1]);
        let block = block.longs(&[align, mode, padding]);
        let found = block.floats(
            Operation::GridSample,
            &[Values::Float(data(12)), float(&GRID)],
        );
        let close = found
            .iter()
            .zip(&expected)
            .all(|(found, expected)| (found - expected).abs() < 2e-5);
        assert!(
            close,
            "mode {mode}, padding {padding}, align {align}: found {found:?}, expected {expected:?}"
        );
    }
}

#[test]
fn regions() {
    let regions = float(&[0.5, 0.25, 3.5, 4.0, 1.0, 1.0, 1.25, 6.5]);
    let align = |ratio: i64, maximum: i64, alignment: i64| {
        let block = block()
            .tensor(F32, &[5, 5, 2, 1])
            .tensor(F32, &[4, 2])
            .tensor(I32, &[2])
            .tensor(F32, &[2, 2, 2, 2]);
        let block = block
            .longs(&[2, 2, ratio])
            .float(0.75)
            .longs(&[maximum, alignment]);
        block.floats(
            Operation::RoiAlign,
            &[Values::Float(data(50)), regions.clone(), integer(&[0, 0])],
        )
    };
    let first = [
        -0.328796, 0.885742, 0.545792, -0.403427, -0.71582, -0.278015, 0.356033, 0.391602,
    ];
    let adaptive = [
        0.850128, 0.555267, 0.930125, 1.07911, -0.137939, -0.167725, 1.11024, 1.00032,
    ];
    let fixed = [
        0.931038, 0.625389, 0.97274, 1.13868, -0.218849, -0.237846, 1.06501, 0.944298,
    ];
    assert_close(&align(0, 0, 1), &[first, adaptive].concat());
    assert_close(&align(2, 0, 1), &[first, fixed].concat());
    assert_close(
        &align(2, 0, 0),
        &[
            -0.255909, 0.557163, -0.0289841, 0.210785, -0.118561, 0.380119, -0.529667, 0.283405,
            -0.678162, -0.267822, 2.0249, 0.419434, -0.642914, 0.263672, 1.16937, 0.359131,
        ],
    );
    assert_close(
        &align(2, 0, 2),
        &[
            -0.201023, 0.704517, -0.0742722, 0.0822754, -0.24707, 0.334831, -0.394642, 0.35062,
            -0.0827866, -0.406929, 1.72705, 1.94385, -0.337273, -0.457985, 1.03719, 1.0182,
        ],
    );
    assert_close(
        &align(2, 1, 1),
        &[
            1.21327, 1.90967, 1.83936, 0.415527, 0.308105, 0.789444, 2.09229, 1.41553, 1.01783,
            0.781532, 1.38831, 1.5034, 1.06545, 0.810661, 1.3558, 1.48937,
        ],
    );
}

#[test]
fn regions_that_do_not_exist_are_faults() {
    let block = block()
        .tensor(F32, &[5, 5, 1, 1])
        .tensor(F32, &[4, 1])
        .tensor(I32, &[1])
        .tensor(F32, &[1, 1, 1, 1]);
    let block = block.longs(&[1, 1, 0]).float(1.0).longs(&[0, 0]);
    let fault = |region: [f32; 4], batch| {
        block
            .run(
                Operation::RoiAlign,
                &[Values::Float(data(25)), float(&region), integer(&[batch])],
            )
            .expect_err("no region")
            .message
    };
    assert_eq!(
        fault([0.0; 4], 1),
        "roi-align: batch index 1 of region 0 is not below 1"
    );
    assert!(fault([0.0, 0.0, 70000.0, 1.0], 0).contains("takes 70000 samples in each of 1 bins"));
}

proptest! {
    /// The definition of a max pool, place by place.
    #[test]
    fn max_pool_by_definition(
        size in prop::array::uniform3(1i64..5),
        kernel in prop::array::uniform3(1i64..4),
        stride in prop::array::uniform3(1i64..3),
        pad in prop::array::uniform3(0i64..2),
    ) {
        let output: Vec<i64> = (0..3).map(|dim| (size[dim] + 2 * pad[dim] - kernel[dim]) / stride[dim] + 1).collect();
        prop_assume!((0..3).all(|dim| size[dim] + 2 * pad[dim] >= kernel[dim] && pad[dim] < kernel[dim]));
        let x = data(size.iter().product::<i64>() as usize);
        let at = |d: i64, h: i64, w: i64| x[((d * size[1] + h) * size[2] + w) as usize];
        let window = |dim: usize, place: i64| {
            let start = place * stride[dim] - pad[dim];
            (start.max(0)..(start + kernel[dim]).min(size[dim])).collect::<Vec<_>>()
        };
        let mut expected = Vec::new();
        for (d, h, w) in (0..output[0]).flat_map(|d| (0..output[1]).map(move |h| (d, h))).flat_map(|(d, h)| (0..output[2]).map(move |w| (d, h, w))) {
            let mut best = f32::NEG_INFINITY;
            for z in window(0, d) { for y in window(1, h) { for v in window(2, w) { best = best.max(at(z, y, v)); } } }
            expected.push(best);
        }
        let dims = |size: &[i64]| [size[2] as u32, size[1] as u32, size[0] as u32, 1, 1];
        let block = block().tensor(F32, &dims(&size)).tensor(F32, &dims(&output)).longs(&kernel).longs(&stride).longs(&pad).longs(&pad);
        prop_assert_eq!(block.floats(Operation::MaxPool, &[Values::Float(x)]), expected);
    }
}

/// Against the formulas of BT.601 for grey, red, the ends of the range and beyond them; chroma is that of each two by two pixels.
#[test]
fn colors_of_video() {
    let run = |operation: Operation, element: u32, planes: &[(&[u32], &[i64])], order: i64| {
        let block = planes
            .iter()
            .fold(block(), |block, (dims, _)| block.tensor(U8, dims));
        let block = block.tensor(element, &[3, 4, 2, 1]).long(order);
        let inputs: Vec<Values> = planes.iter().map(|(_, values)| integer(values)).collect();
        block.run(operation, &inputs).map(|found| found[0].clone())
    };
    let luma: (&[u32], &[i64]) = (&[1, 4, 2, 1], &[126, 81, 16, 235, 0, 255, 81, 81]);
    let both: (&[u32], &[i64]) = (&[2, 2, 1, 1], &[128, 128, 90, 240]);
    let expected = [
        [128, 128, 128],
        [76, 76, 76],
        [179, 0, 0],
        [255, 179, 178],
        [0, 0, 0],
        [255, 255, 255],
        [254, 0, 0],
        [254, 0, 0],
    ];
    let expected: Vec<i64> = expected.into_iter().flatten().collect();
    let nv12 = run(Operation::Nv12ToRgb, U8, &[luma, both], 0);
    assert_eq!(nv12, Ok(integer(&expected)));
    let blue_first: Vec<i64> = expected
        .chunks(3)
        .flat_map(|color| color.iter().rev().copied())
        .collect();
    assert_eq!(
        run(Operation::Nv12ToRgb, U8, &[luma, both], 1),
        Ok(integer(&blue_first))
    );
    let (u, v): ((&[u32], &[i64]), _) = (
        (&[1, 2, 1, 1], &[128, 90]),
        (&[1, 2, 1, 1][..], &[128, 240][..]),
    );
    assert_eq!(run(Operation::I420ToRgb, U8, &[luma, u, v], 0), nv12);
    let Ok(Values::Float(floats)) = run(Operation::Nv12ToRgb, F16, &[luma, both], 0) else {
        panic!("floats");
    };
    assert_close(&floats[..3], &[128.04; 3]);
    let fault = run(Operation::I420ToRgb, U8, &[luma, u, luma], 0).expect_err("a plane too large");
    assert_eq!(
        fault.message,
        "i420-to-rgb: uint8[1, 4, 2, 1] of a picture uint8[3, 4, 2, 1]"
    );
}
