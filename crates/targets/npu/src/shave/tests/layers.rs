use super::*;
use proptest::prelude::*;

fn same(dims: &[u32]) -> Block {
    block().tensor(F32, dims).tensor(F32, dims)
}

/// Axis, pad, and the fourteen words that repeat the shape.
fn softmax(dims: &[u32], axis: i32, pad: i32) -> Block {
    same(dims).words(&[axis, pad]).words(&[7; 14])
}

#[test]
fn softmax_and_its_logarithm() {
    let x = Values::Float(data(6));
    let along_innermost =
        softmax(&[3, 2], 0, 0).floats(Operation::Softmax, std::slice::from_ref(&x));
    assert_close(
        &along_innermost,
        &[
            0.00884154, 0.0892964, 0.901862, 0.00884154, 0.0892964, 0.901862,
        ],
    );
    let along_rows = softmax(&[3, 2], 1, 0).floats(Operation::LogSoftmax, &[x]);
    assert_close(
        &along_rows,
        &[-1.0537, -1.0537, -1.0537, -0.428701, -0.428701, -0.428701],
    );
    // Padding takes no part: the last place is zero and the first two share everything.
    let padded = softmax(&[3, 1], 0, 1).floats(Operation::Softmax, &[float(&[2.0, 2.0, 50.0])]);
    assert_eq!(padded, [0.5, 0.5, 0.0]);
    // Numerators are one at the maximum, and zero in the padding.
    let numerators =
        softmax(&[4, 1], 0, 1).floats(Operation::ExpStabilized, &[float(&[2.0, 3.0, 3.0, 50.0])]);
    assert_close(&numerators, &[0.36788, 1.0, 1.0, 0.0]);
    // Exponents far beyond the range of binary32.
    let large = softmax(&[2], 0, 0).floats(Operation::Softmax, &[float(&[-65504.0, 65504.0])]);
    assert_eq!(large, [0.0, 1.0]);
}

#[test]
fn mean_and_variance() {
    let x = Values::Float(data(12));
    let mvn1 = |across: i64, variance: i64| {
        same(&[3, 2, 2, 1])
            .longs(&[across, variance])
            .float(0.25)
            .floats(Operation::Mvn1, std::slice::from_ref(&x))
    };
    assert_close(
        &mvn1(0, -1),
        &[
            -1.32705, -0.157982, 1.01109, -1.01109, 0.157982, 1.32705, -0.298914, 1.02826, -1.2674,
            0.0597828, 1.38696, -0.908698,
        ],
    );
    assert_close(
        &mvn1(1, -1),
        &[
            -1.14937, 0.0599199, 1.26921, -0.822537, 0.386756, 1.59605, -0.495701, 0.713592,
            -1.37816, -0.168865, 1.04043, -1.05132,
        ],
    );
    let centred = mvn1(0, 0);
    assert_eq!(centred[0], -2.3125 - 0.3125);

    // Over channels (memory dim 2), epsilon outside, scale by channel and bias by column.
    let mvn6 = same(&[3, 2, 2, 1]).tensors;
    let mvn6 = Block {
        tensors: vec![mvn6[0].clone()],
        ..Block::default()
    }
    .tensor(F32, &[1, 1, 2, 1])
    .tensor(F32, &[3, 1, 1, 1])
    .tensor(F32, &[3, 2, 2, 1])
    .longs(&[i64::MIN, 0xf, 1, 1])
    .float(0.25)
    .longs(&[1, 2]);
    let found = mvn6.floats(
        Operation::Mvn6,
        &[x, float(&[2.0, -1.0]), float(&[0.5, 1.0, -1.5])],
    );
    assert_close(
        &found,
        &[
            -0.928571, -0.428571, 0.320225, -0.928571, -0.428571, 0.320225, -0.214286, 0.285714,
            -0.589888, -0.214286, 0.285714, -0.589888,
        ],
    );
}

#[test]
fn mvn1_follows_the_dim_order() {
    // Two channels of three places, NCHW and NHWC.
    let nchw = same(&[3, 1, 2, 1]).longs(&[0, -1]).float(0.0).floats(
        Operation::Mvn1,
        &[float(&[1.0, 2.0, 3.0, 10.0, 30.0, 20.0])],
    );
    let nhwc = block()
        .ordered(F32, &[2, 3, 1, 1], 0x2431)
        .ordered(F32, &[2, 3, 1, 1], 0x2431)
        .longs(&[0, -1])
        .float(0.0);
    let nhwc = nhwc.floats(
        Operation::Mvn1,
        &[float(&[1.0, 10.0, 2.0, 30.0, 3.0, 20.0])],
    );
    assert_close(
        &nchw,
        &[-1.2247449, 0.0, 1.2247449, -1.2247449, 1.2247449, 0.0],
    );
    assert_close(
        &nhwc,
        &[-1.2247449, -1.2247449, 0.0, 1.2247449, 1.2247449, 0.0],
    );
}

#[test]
fn euclidean_norm_over_logical_axes() {
    let expected = [
        -0.900033, 0.0, 0.640507, -0.948683, 0.311286, 0.806399, -0.413529, 0.96225, -0.761684,
        -0.245955, 0.933859, -0.583353,
    ];
    let nchw = same(&[3, 2, 2, 1]).float(0.125).longs(&[0, 1, 1]);
    assert_close(
        &nchw.floats(Operation::NormalizeL2, &[Values::Float(data(12))]),
        &expected,
    );

    let permuted =
        |values: &[f32]| -> Vec<f32> { (0..12).map(|at| values[at % 2 * 6 + at / 2]).collect() };
    let nhwc = block()
        .ordered(F32, &[2, 3, 2, 1], 0x2431)
        .ordered(F32, &[2, 3, 2, 1], 0x2431)
        .float(0.125)
        .longs(&[0, 1, 1]);
    assert_close(
        &nhwc.floats(
            Operation::NormalizeL2,
            &[Values::Float(permuted(&data(12)))],
        ),
        &permuted(&expected),
    );

    let least = same(&[3, 2, 2, 1])
        .float(20.0)
        .longs(&[1, 2, 2, 3])
        .floats(Operation::NormalizeL2, &[Values::Float(data(12))]);
    assert_close(
        &least,
        &[
            -0.486842, 0.0, 0.486842, -0.355263, 0.131579, 0.618421, -0.237582, 0.279509,
            -0.614919, -0.097828, 0.419263, -0.475164,
        ],
    );
}

#[test]
fn root_mean_square() {
    let norm = block()
        .tensor(F32, &[4, 2])
        .tensor(F32, &[4, 1])
        .tensor(F32, &[4, 2])
        .float(0.5)
        .long(0);
    let found = norm.floats(
        Operation::RmsNorm,
        &[Values::Float(data(8)), float(&[1.0, 2.0, -1.0, 0.5])],
    );
    assert_close(
        &found,
        &[
            -1.17313, 0.0, -1.17313, -0.428033, 0.33758, 3.17325, 0.573886, 0.33758,
        ],
    );
}

#[test]
fn local_response() {
    let lrn = |size| {
        same(&[2, 1, 6, 1])
            .float(0.5)
            .float(0.75)
            .float(1.5)
            .longs(&[size, 1, 2])
            .floats(Operation::Lrn, &[Values::Float(data(12))])
    };
    let three = [
        -0.94825, 0.0, 0.934385, -0.67207, 0.301383, 1.10712, -0.464523, 0.518753, -1.06681,
        -0.217131, 0.757831, -1.14358,
    ];
    let five = [
        -1.12662, 0.0, 1.09138, -0.778791, 0.245419, 1.34877, -0.434494, 0.5135, -1.28434,
        -0.192416, 0.885096, -1.20654,
    ];
    assert_close(&lrn(3), &three);
    assert_close(&lrn(5), &five);
}

#[test]
fn rotary() {
    let table = |function: fn(f32) -> f32| {
        Values::Float((0..4).map(|at| function(at as f32 * 0.5)).collect())
    };
    let rotary = block()
        .tensor(F32, &[4, 2])
        .tensor(F32, &[4, 1])
        .tensor(F32, &[4, 1])
        .tensor(F32, &[4, 2])
        .long(1);
    let found = rotary.floats(
        Operation::RotaryEmbedding,
        &[Values::Float(data(8)), table(f32::cos), table(f32::sin)],
    );
    assert_close(
        &found,
        &[
            -2.3125, 0.809031, -0.696453, -0.119369, 0.625, 1.97862, -0.0481518, 3.01856,
        ],
    );
}

#[test]
fn reductions() {
    let x = Values::Float(data(12));
    let reduce = |operation| {
        block()
            .tensor(F32, &[3, 2, 2])
            .tensor(F32, &[1, 2, 1])
            .longs(&[1, 2, 0, 2])
            .floats(operation, std::slice::from_ref(&x))
    };
    assert_close(&reduce(Operation::ReduceSum), &[-2.5625, 1.1875]);
    assert_close(&reduce(Operation::ReduceMean), &[-0.427083, 0.197917]);
    assert_close(&reduce(Operation::ReduceMax), &[2.3125, 2.9375]);
    assert_close(&reduce(Operation::ReduceMin), &[-2.75, -2.125]);
    assert_close(&reduce(Operation::ReduceProd), &[0.0, -5.40057]);
    assert_close(&reduce(Operation::ReduceL1), &[9.6875, 9.6875]);
    assert_close(&reduce(Operation::ReduceL2), &[4.57703, 4.48217]);

    let x = integer(&[3, -4, 5, 6, -7, 9]);
    let reduce = |operation| {
        block()
            .tensor(I32, &[3, 2])
            .tensor(I32, &[3, 1])
            .longs(&[0, 1, 1])
            .integers(operation, std::slice::from_ref(&x))
    };
    assert_eq!(reduce(Operation::ReduceSum), [9, -11, 14]);
    assert_eq!(reduce(Operation::ReduceMean), [4, -5, 7]);
    assert_eq!(reduce(Operation::ReduceMax), [6, -4, 9]);
    assert_eq!(reduce(Operation::ReduceMin), [3, -7, 5]);
    assert_eq!(reduce(Operation::ReduceProd), [18, 28, 45]);
    assert_eq!(reduce(Operation::ReduceL1), [9, 11, 14]);
    assert_eq!(reduce(Operation::ReduceL2), [6, 8, 10]);

    let wrong = block()
        .tensor(I32, &[3, 2])
        .tensor(I32, &[2, 1])
        .longs(&[0, 1, 1])
        .run(Operation::ReduceSum, &[x]);
    assert_eq!(
        wrong.expect_err("a wrong output").message,
        "reduce-sum: output: expected 3 elements, found int32[2, 1]"
    );
}

#[test]
fn running_sums() {
    let x = float(&[1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
    let sum = |axis, exclusive, reverse| {
        same(&[3, 2])
            .longs(&[axis, exclusive, reverse])
            .floats(Operation::CumulativeSum, std::slice::from_ref(&x))
    };
    assert_eq!(sum(0, 0, 0), [1.0, 3.0, 6.0, 10.0, 30.0, 60.0]);
    assert_eq!(sum(0, 1, 0), [0.0, 1.0, 3.0, 0.0, 10.0, 30.0]);
    assert_eq!(sum(0, 0, 1), [6.0, 5.0, 3.0, 60.0, 50.0, 30.0]);
    assert_eq!(sum(0, 1, 1), [5.0, 3.0, 0.0, 50.0, 30.0, 0.0]);
    assert_eq!(sum(1, 0, 0), [1.0, 2.0, 3.0, 11.0, 22.0, 33.0]);
}

#[test]
fn conversions() {
    let convert = |from, to, x: Values, count| {
        block()
            .tensor(from, &[count])
            .tensor(to, &[count])
            .run(Operation::Convert, &[x])
            .expect("a conversion")
            .remove(0)
    };
    let x = float(&[-1.9, 1.9, 300.0, -300.0, f32::NAN, f32::INFINITY]);
    assert_eq!(
        convert(F16, I8, x.clone(), 6),
        integer(&[-1, 1, 127, -128, 0, 127])
    );
    assert_eq!(
        convert(F16, U8, x.clone(), 6),
        integer(&[0, 1, 255, 0, 0, 255])
    );
    assert_eq!(
        convert(F16, I32, x.clone(), 6),
        integer(&[-1, 1, 300, -300, 0, i64::from(i32::MAX)])
    );
    assert_eq!(
        convert(I64, I32, integer(&[1 << 40, -3]), 2),
        integer(&[i64::from(i32::MAX), -3])
    );
    assert_eq!(convert(I32, F16, integer(&[-3, 7]), 2), float(&[-3.0, 7.0]));
    assert_eq!(convert(F16, F32, float(&[0.5]), 1), float(&[0.5]));
    assert_eq!(convert(U8, I32, integer(&[255]), 1), integer(&[255]));
}

#[test]
fn dequantize_by_channel() {
    let channels = block()
        .tensor(I8, &[2, 3])
        .tensor(F16, &[2, 3])
        .longs(&[1, 3])
        .halves(&[0.5, 2.0, 1.0])
        .halves(&[0.0, -1.0, 3.0]);
    let found = channels.floats(Operation::Dequantize, &[integer(&[1, -2, 3, 4, -128, 127])]);
    assert_eq!(found, [0.5, -1.0, 8.0, 10.0, -131.0, 124.0]);
    // Five halves fill two words.
    let five = block()
        .tensor(I8, &[5])
        .tensor(F16, &[5])
        .longs(&[0, 5])
        .halves(&[1.0, 2.0, 3.0, 4.0, 5.0])
        .halves(&[1.0; 5]);
    assert_eq!(
        five.floats(Operation::Dequantize, &[integer(&[2; 5])]),
        [1.0, 2.0, 3.0, 4.0, 5.0]
    );
    let wide = block()
        .tensor(I8, &[1])
        .tensor(F32, &[1])
        .longs(&[0, 1])
        .float(0.1)
        .float(0.0)
        .float(7.0)
        .float(0.0);
    assert_close(
        &wide.floats(Operation::Dequantize, &[integer(&[12])]),
        &[0.5],
    );
    let two = block()
        .tensor(I8, &[5])
        .tensor(F16, &[5])
        .longs(&[0, 2])
        .halves(&[1.0; 2])
        .halves(&[1.0; 2]);
    let fault = two
        .run(Operation::Dequantize, &[integer(&[2; 5])])
        .expect_err("two scales for five channels");
    assert_eq!(fault.message, "dequantize: expected 1 or 5 scales, found 2");
}

#[test]
fn quantize_with_a_range_from_the_data() {
    let quantize = |x: &[f32], low: f32, high: f32| {
        let shape = [x.len() as u32];
        let block = block()
            .tensor(F32, &shape)
            .tensor(F32, &[1])
            .tensor(F32, &[1])
            .tensor(U8, &shape)
            .tensor(F32, &[1])
            .tensor(U8, &[1]);
        let run = |block: &Block| {
            let inputs = [float(x), float(&[low]), float(&[high])];
            let outputs = block.run(Operation::DynamicQuantize, &inputs);
            outputs.expect("a range")
        };
        // The first releases have neither marker nor mask.
        let found = run(&block.clone().short());
        assert_eq!(run(&block.longs(&[i64::MIN, 63])), found);
        found
    };
    // Steps of 1/51: from −1 to 4.
    let found = quantize(&[-1.0, 0.0, 0.01, 4.0, 9.0], -1.0, 4.0);
    assert_eq!(
        found,
        [
            integer(&[0, 51, 52, 255, 255]),
            float(&[5.0 / 255.0]),
            integer(&[51])
        ]
    );
    // The range always holds 0.
    assert_eq!(quantize(&[5.0, 10.0], 5.0, 10.0)[2], integer(&[0]));
    assert_eq!(quantize(&[-5.0], -5.0, -5.0)[2], integer(&[255]));
    assert_eq!(quantize(&[0.0], 0.0, 0.0)[0], integer(&[0]));
}

const LSTM_PRODUCTS: [f32; 24] = [
    0.397461, -0.270996, 0.334229, -0.334229, -0.0270996, 0.216797, -0.090332, 0.153564, -0.351318,
    0.495117, -0.334229, 0.512207, -0.236572, -0.30249, -0.219482, -0.2854, -0.187744, -0.316895,
    -0.090332, -0.219482, 0.466309, 0.0905762, 0.563721, 0.187988,
];
const LSTM_RECURRENCE: [f32; 16] = [
    0.3125, 0.203125, -0.421875, -0.53125, 0.734375, 0.625, 0.0, -0.109375, -0.265625, -0.375,
    0.578125, 0.46875, 0.15625, 0.046875, -0.578125, -0.6875,
];
const LSTM_BIAS: [f32; 8] = [
    0.078125, -0.289062, -0.132812, 0.289062, 0.367188, 0.0, 0.15625, -0.210938,
];

/// Three steps of two places: Y, h and c.
fn lstm(operation: Operation, recurrence: &[f32], bias: &[f32], direction: i64) -> Vec<Vec<f32>> {
    let block = block()
        .tensor(F16, &[8, 3])
        .tensor(F16, &[2])
        .tensor(F16, &[2])
        .ordered(F16, &[4, 2, 2, 1], 0x2341);
    let block = block
        .tensor(F16, &[4, 2])
        .tensor(I32, &[2])
        .tensor(F16, &[2, 3])
        .tensor(F16, &[2])
        .tensor(F16, &[2]);
    let block = block.longs(&[i64::MIN, 0x3f7, direction, -1, -1]);
    let inputs = [
        &LSTM_PRODUCTS[..],
        &[0.5, -0.25],
        &[-0.5, 1.0],
        recurrence,
        bias,
    ]
    .map(float);
    let outputs = block.run(operation, &inputs).expect("a sequence");
    outputs
        .into_iter()
        .map(|output| {
            if let Values::Float(values) = output {
                values
            } else {
                panic!()
            }
        })
        .collect()
}

#[test]
fn lstm_in_both_directions() {
    let lstm = |direction| {
        lstm(
            Operation::LstmSequence,
            &LSTM_RECURRENCE,
            &LSTM_BIAS,
            direction,
        )
    };
    let forward = lstm(0);
    assert_close(
        &forward[0],
        &[
            -0.243663, 0.352734, -0.146568, 0.115866, 0.0384482, 0.119747,
        ],
    );
    assert_close(&forward[1], &[0.0384482, 0.119747]);
    assert_close(&forward[2], &[0.052856, 0.255758]);
    let reverse = lstm(1);
    assert_close(
        &reverse[0],
        &[
            -0.0662847, 0.135715, -0.0808048, 0.108071, -0.164569, 0.34391,
        ],
    );
    assert_close(&reverse[2], &[-0.11629, 0.297657]);
}

#[test]
fn lstm_whose_weights_the_dpu_reads() {
    // From [in][out][gate] and [out][gate] to [gate][out][in] and [gate][out].
    let recurrence: Vec<f32> = (0..16)
        .map(|at| LSTM_RECURRENCE[at % 2 * 8 + at / 2 % 2 * 4 + at / 4])
        .collect();
    let bias: Vec<f32> = (0..8).map(|at| LSTM_BIAS[at % 2 * 4 + at / 2]).collect();
    for direction in [0, 1] {
        let by_gate = lstm(Operation::LstmSequenceDpu, &recurrence, &bias, direction);
        let by_place = lstm(
            Operation::LstmSequence,
            &LSTM_RECURRENCE,
            &LSTM_BIAS,
            direction,
        );
        for (a, b) in by_gate.iter().zip(&by_place) {
            assert_close(a, b);
        }
    }
}

#[test]
fn gru_step() {
    let gru = block()
        .tensor(F16, &[6])
        .tensor(F16, &[2])
        .tensor(F16, &[6])
        .tensor(F16, &[8])
        .tensor(F16, &[2]);
    let inputs = [
        &[1.33691, -1.33691, -0.361328, 0.614258, 1.58984, -1.08398][..],
        &[0.5, -0.25],
        &[-0.382812, 0.117188, 0.222656, 0.328125, -0.355469, 0.144531],
        &[
            -0.421875, 0.15625, -0.0546875, -0.265625, 0.078125, 0.367188, 0.234375, -0.265625,
        ],
    ];
    assert_close(
        &gru.floats(Operation::GruGates, &inputs.map(float)),
        &[0.656746, -0.556562],
    );
    let short = block()
        .tensor(F16, &[5])
        .tensor(F16, &[2])
        .tensor(F16, &[6])
        .tensor(F16, &[8])
        .tensor(F16, &[2]);
    let fault = short.run(
        Operation::GruGates,
        &[
            float(&[0.0; 5]),
            float(&[0.0; 2]),
            float(&[0.0; 6]),
            float(&[0.0; 8]),
        ],
    );
    assert_eq!(
        fault.expect_err("too few").message,
        "gru-gates: input products: expected 6 elements, found float16[5]"
    );
}

fn tensor_and_axis() -> impl Strategy<Value = (Vec<u32>, usize, Vec<f32>)> {
    prop::collection::vec(1u32..6, 1..5).prop_flat_map(|dims| {
        let (rank, count) = (dims.len(), dims.iter().product::<u32>() as usize);
        (
            Just(dims),
            0..rank,
            prop::collection::vec(-8.0f32..8.0, count),
        )
    })
}

proptest! {
    #[test]
    fn softmax_sums_to_one((dims, axis, x) in tensor_and_axis()) {
        // The axis counts the dims that are not one.
        prop_assume!(dims[axis] != 1);
        let counted = dims[..axis].iter().filter(|dim| **dim != 1).count() as i32;
        let y = softmax(&dims, counted, 0).floats(Operation::Softmax, &[Values::Float(x.clone())]);
        let mut reduced = dims.clone();
        reduced[axis] = 1;
        let sum = block().tensor(F32, &dims).tensor(F32, &reduced).longs(&[1, 1, axis as i64]).floats(Operation::ReduceSum, &[Values::Float(y.clone())]);
        prop_assert!(sum.iter().all(|sum| (sum - 1.0).abs() < 1e-5), "{sum:?}");
        let log = softmax(&dims, counted, 0).floats(Operation::LogSoftmax, &[Values::Float(x)]);
        prop_assert!(log.iter().zip(&y).all(|(log, y)| (log.exp() - y).abs() < 1e-5));
    }

    #[test]
    fn the_last_running_sum_is_the_sum((dims, axis, x) in tensor_and_axis()) {
        let x: Vec<f32> = x.iter().map(|x| x.round()).collect();
        let sums = |exclusive, reverse| same(&dims).longs(&[axis as i64, exclusive, reverse]).floats(Operation::CumulativeSum, &[float(&x)]);
        let mut reduced = dims.clone();
        reduced[axis] = 1;
        let total = block().tensor(F32, &dims).tensor(F32, &reduced).longs(&[1, 1, axis as i64]).floats(Operation::ReduceSum, &[float(&x)]);
        let spread = block().tensor(F32, &dims).tensor(F32, &reduced).tensor(F32, &dims);
        let zeros = vec![0.0; x.len()];
        let totals = spread.floats(Operation::Add, &[float(&zeros), float(&total)]);
        // Before, itself and after make the whole.
        for (at, total) in totals.iter().enumerate() {
            prop_assert_eq!(sums(0, 0)[at] + sums(1, 1)[at], *total);
            prop_assert_eq!(sums(1, 0)[at] + sums(0, 1)[at], *total);
        }
    }

    #[test]
    fn mean_and_variance_are_zero_and_one((dims, axis, x) in tensor_and_axis()) {
        prop_assume!(dims[axis] > 1);
        let mut reduced = dims.clone();
        reduced[axis] = 1;
        // Where all values are nearly equal their differences are lost in rounding.
        let of = |operation| block().tensor(F32, &dims).tensor(F32, &reduced).longs(&[1, 1, axis as i64]).floats(operation, &[float(&x)]);
        let ranges = of(Operation::ReduceMax).into_iter().zip(of(Operation::ReduceMin));
        prop_assume!(ranges.into_iter().all(|(most, least)| most - least > 0.1));
        let y = same(&dims).longs(&[i64::MIN, 9, 1, 0]).float(0.0).longs(&[1, axis as i64]).floats(Operation::Mvn6, &[Values::Float(x.clone())]);
        let reduce = |operation| block().tensor(F32, &dims).tensor(F32, &reduced).longs(&[1, 1, axis as i64]).floats(operation, &[float(&y)]);
        prop_assert!(reduce(Operation::ReduceMean).iter().all(|mean| mean.abs() < 1e-3));
        let size = dims[axis] as f32;
        prop_assert!(reduce(Operation::ReduceL2).iter().all(|norm| (norm * norm / size - 1.0).abs() < 1e-2));
    }
}
