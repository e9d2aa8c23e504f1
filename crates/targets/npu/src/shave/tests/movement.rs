//! Gather, scatter, borders, blocks, products, sequences and boxes. Results are small enough to check by hand.

use super::*;

#[test]
fn gather_takes_slices_along_an_axis() {
    let block = block()
        .tensor(F16, &[2, 3, 2])
        .tensor(I32, &[2])
        .tensor(F16, &[2, 2, 2])
        .longs(&[1, 0, 1]);
    let x: Vec<f32> = (0..12).map(|at| at as f32).collect();
    let found = block.floats(Operation::Gather, &[float(&x), integer(&[2, -3])]);
    assert_eq!(found, [4.0, 5.0, 0.0, 1.0, 10.0, 11.0, 6.0, 7.0]);
    let outside = block.run(Operation::Gather, &[float(&x), integer(&[3, 0])]);
    assert_eq!(
        outside.expect_err("outside").message,
        "gather: index 3 is outside of a dim of 3"
    );
}

#[test]
fn gather_has_indices_for_each_batch() {
    let block = block()
        .tensor(F16, &[2, 3, 2])
        .tensor(I32, &[1, 2])
        .tensor(F16, &[2, 1, 2])
        .longs(&[1, 1, 2]);
    let x: Vec<f32> = (0..12).map(|at| at as f32).collect();
    let found = block.floats(Operation::Gather, &[float(&x), integer(&[1, 2])]);
    assert_eq!(found, [2.0, 3.0, 10.0, 11.0]);
}

#[test]
fn scatter_update_replaces_slices() {
    let block = block()
        .tensor(F16, &[2, 3])
        .tensor(I32, &[2])
        .tensor(F16, &[2, 2])
        .tensor(F16, &[2, 3])
        .long(1);
    let found = block.floats(
        Operation::ScatterUpdate,
        &[
            float(&[0.0; 6]),
            integer(&[2, 0]),
            float(&[1.0, 2.0, 3.0, 4.0]),
        ],
    );
    assert_eq!(found, [3.0, 4.0, 0.0, 0.0, 1.0, 2.0]);
}

#[test]
fn borders() {
    let pad = |mode: i64, marker: &[i64]| {
        block()
            .tensor(F16, &[4])
            .tensor(F16, &[9])
            .longs(marker)
            .longs(&[2, 3])
            .float(9.0)
            .long(mode)
            .floats(Operation::Pad, &[float(&[1.0, 2.0, 3.0, 4.0])])
    };
    let all = |numbers: [u8; 9]| numbers.map(f32::from);
    assert_eq!(pad(0, &[]), all([9, 9, 1, 2, 3, 4, 9, 9, 9]));
    assert_eq!(pad(0, &[i64::MIN, 17]), all([9, 9, 1, 2, 3, 4, 9, 9, 9]));
    assert_eq!(pad(1, &[]), all([1, 1, 1, 2, 3, 4, 4, 4, 4]));
    assert_eq!(pad(2, &[]), all([3, 2, 1, 2, 3, 4, 3, 2, 1]));
    assert_eq!(pad(3, &[]), all([2, 1, 1, 2, 3, 4, 4, 3, 2]));
}

#[test]
fn permute_reorders_memory_dims() {
    let block = block()
        .tensor(F16, &[2, 3])
        .tensor(F16, &[3, 2])
        .longs(&[1, 0]);
    let found = block.floats(
        Operation::Permute,
        &[float(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])],
    );
    assert_eq!(found, [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
}

#[test]
fn space_and_batch_are_inverse() {
    let x: Vec<f32> = (1..=16).map(|at| at as f32).collect();
    let pads = [0, 0, 1, 0, 77, 0, 0, 1, 2, 77];
    let to_batch = block()
        .tensor(F16, &[4, 4, 1, 1])
        .tensor(F16, &[3, 3, 1, 4])
        .longs(&[1, 1, 2, 2, 77])
        .longs(&pads);
    let batch = to_batch.floats(Operation::SpaceToBatch, &[float(&x)]);
    // Block (0, 0): rows −1, 1, 3 and columns 0, 2, 4.
    assert_eq!(batch[..9], [0.0, 0.0, 0.0, 5.0, 7.0, 0.0, 13.0, 15.0, 0.0]);
    // Block (1, 1): rows 0, 2, 4 and columns 1, 3, 5.
    assert_eq!(batch[27..], [2.0, 4.0, 0.0, 10.0, 12.0, 0.0, 0.0, 0.0, 0.0]);
    let back = block()
        .tensor(F16, &[3, 3, 1, 4])
        .tensor(F16, &[4, 4, 1, 1])
        .longs(&[1, 1, 2, 2, 77])
        .longs(&pads);
    assert_eq!(back.floats(Operation::BatchToSpace, &[float(&batch)]), x);
}

#[test]
fn patches_have_channels_innermost() {
    let block = block()
        .tensor(F16, &[3, 2, 2, 1])
        .tensor(F16, &[1, 1, 8, 1])
        .longs(&[2, 2, 1, 1, 1, 2, 2]);
    let x: Vec<f32> = (0..12).map(|at| at as f32).collect();
    let found = block.floats(Operation::ImagePatches, &[float(&x)]);
    assert_eq!(found, [0.0, 6.0, 2.0, 8.0, 3.0, 9.0, 5.0, 11.0]);
}

/// Patches of two at every place of three: one of them has a zero, at the end or at the beginning.
#[test]
fn patches_reach_over_the_border() {
    let patches = |padding: i64| {
        block()
            .tensor(F16, &[3, 1, 1, 1])
            .tensor(F16, &[3, 1, 2, 1])
            .longs(&[1, 2, 1, 1, 1, 1, padding])
            .floats(Operation::ImagePatches, &[float(&[1.0, 2.0, 3.0])])
    };
    assert_eq!(patches(0), [0.0, 1.0, 2.0, 1.0, 2.0, 3.0]);
    assert_eq!(patches(1), [1.0, 2.0, 3.0, 2.0, 3.0, 0.0]);
}

#[test]
fn adaptive_pools_cut_by_the_sizes() {
    let tensors = |elements: &[u32]| {
        let first = block().tensor(F16, &[5, 1, 1, 1]).tensor(I32, &[2]);
        elements.iter().fold(first, |block, element| {
            block.tensor(*element, &[3, 1, 1, 1])
        })
    };
    let inputs = [float(&[1.0, 2.0, 4.0, 8.0, 6.0]), integer(&[1, 3])];
    // Parts 0..2, 1..4, 3..5.
    let means = tensors(&[F16]).floats(Operation::AdaptiveAveragePool, &inputs);
    assert_close(&means, &[1.5, 14.0 / 3.0, 7.0]);
    let maxima = tensors(&[F16, I32]).run(Operation::AdaptiveMaxPool, &inputs);
    assert_eq!(
        maxima.expect("it runs"),
        [float(&[2.0, 8.0, 8.0]), integer(&[1, 3, 3])]
    );
    let other = [inputs[0].clone(), integer(&[1, 2])];
    assert!(
        tensors(&[F16])
            .run(Operation::AdaptiveAveragePool, &other)
            .is_err()
    );
}

#[test]
fn products() {
    let connected = block()
        .tensor(F16, &[2, 2])
        .tensor(F16, &[2, 3])
        .tensor(F16, &[3, 2])
        .long(i64::MAX);
    let found = connected.floats(
        Operation::FullyConnected,
        &[
            float(&[1.0, 2.0, 3.0, 4.0]),
            float(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]),
        ],
    );
    assert_eq!(found, [1.0, 2.0, 3.0, 3.0, 4.0, 7.0]);
    let with_bias = block()
        .tensor(F16, &[2, 1])
        .tensor(F16, &[2, 2])
        .tensor(F16, &[2])
        .tensor(F16, &[2, 1])
        .long(i64::MAX);
    let found = with_bias.floats(
        Operation::FullyConnected,
        &[
            float(&[1.0, 2.0]),
            float(&[1.0, 0.0, 0.0, 1.0]),
            float(&[10.0, 20.0]),
        ],
    );
    assert_eq!(found, [11.0, 22.0]);
    // Two groups, stride 2, a border of one at the left alone: taps at −1, 0 and 1, 2.
    let convolution = block()
        .tensor(F16, &[3, 1, 2, 1])
        .tensor(F16, &[2, 1, 1, 2])
        .tensor(F16, &[2, 1, 2, 1])
        .longs(&[1, 2, 0, 1, 0, 0, 1, 1, 2]);
    let found = convolution.floats(
        Operation::Convolution,
        &[
            float(&[1.0, 2.0, 3.0, 10.0, 20.0, 30.0]),
            float(&[1.0, 10.0, 2.0, 3.0]),
        ],
    );
    assert_eq!(found, [10.0, 32.0, 30.0, 130.0]);
}

#[test]
fn bags_and_buckets() {
    let bags = |default: i64| {
        block()
            .tensor(F16, &[2, 3])
            .tensor(I32, &[3])
            .tensor(I32, &[3])
            .tensor(F16, &[2, 3])
            .longs(&[i64::MAX, default])
            .floats(
                Operation::EmbeddingBagOffsets,
                &[
                    float(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                    integer(&[2, 0, 1]),
                    integer(&[0, 2, 2]),
                ],
            )
    };
    assert_eq!(bags(-1), [6.0, 8.0, 0.0, 0.0, 3.0, 4.0]);
    assert_eq!(bags(1), [6.0, 8.0, 3.0, 4.0, 3.0, 4.0]);
    let bucket = |right: i64| {
        block()
            .tensor(F16, &[4])
            .tensor(F16, &[3])
            .tensor(I32, &[4])
            .long(right)
            .integers(
                Operation::Bucketize,
                &[float(&[0.0, 1.0, 2.5, 9.0]), float(&[1.0, 2.0, 3.0])],
            )
    };
    assert_eq!(bucket(1), [0, 0, 2, 3]);
    assert_eq!(bucket(0), [0, 1, 2, 3]);
}

#[test]
fn fake_quantize_snaps_to_levels() {
    let block = (0..4)
        .fold(block().tensor(F32, &[4]), |block, _| {
            block.tensor(F32, &[1])
        })
        .tensor(F32, &[4])
        .longs(&[5, -1]);
    let one = |value: f32| float(&[value]);
    let x = float(&[-9.0, 0.3, 1.6, 9.0]);
    let found = block.floats(
        Operation::FakeQuantize,
        &[x, one(0.0), one(2.0), one(-1.0), one(1.0)],
    );
    assert_eq!(found, [-1.0, -0.5, 0.5, 1.0]);
}

/// Expected numbers: the definitions of ONNX, in double precision.
#[test]
fn recurrent_steps() {
    let gru = |reset_after: i64, bias: &[f32]| {
        block()
            .tensor(F32, &[1, 2])
            .tensor(F32, &[1])
            .tensor(F32, &[1, 3])
            .tensor(F32, &[1, 3])
            .tensor(F32, &[bias.len() as u32])
            .tensor(F32, &[1, 2])
            .tensor(F32, &[1])
            .longs(&[1, 0, 2, reset_after])
            .float(0.0)
            .run(
                Operation::GruSequence,
                &[
                    float(&[1.0, -0.5]),
                    float(&[0.25]),
                    float(&[0.5, -0.25, 1.0]),
                    float(&[0.75, 0.5, -0.5]),
                    float(bias),
                ],
            )
            .expect("it runs")
    };
    let step = |h: f64, x: f64, after: bool| {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let (z, r) = (
            sigmoid(0.5 * x + 0.75 * h + 0.1),
            sigmoid(-0.25 * x + 0.5 * h - 0.2),
        );
        let n = if after {
            (x + 0.3 + r * (-0.5 * h + 0.4)).tanh()
        } else {
            (x + 0.3 - 0.5 * r * h).tanh()
        };
        (1.0 - z) * n + z * h
    };
    for (after, bias) in [
        (false, &[0.1, -0.2, 0.3][..]),
        (true, &[0.1, -0.2, 0.3, 0.4]),
    ] {
        let first = step(0.25, 1.0, after);
        let second = step(first, -0.5, after);
        let found = gru(i64::from(after), bias);
        let [Values::Float(sequence), Values::Float(last)] = &found[..] else {
            panic!("{found:?}");
        };
        assert_close(sequence, &[first as f32, second as f32]);
        assert_close(last, &[second as f32]);
        let multiplied = block()
            .tensor(F32, &[3, 2])
            .tensor(F32, &[1])
            .tensor(F32, &[1, 3])
            .tensor(F32, &[bias.len() as u32])
            .tensor(F32, &[1, 2])
            .tensor(F32, &[1])
            .longs(&[1, 0, 2, i64::from(after)])
            .float(0.0)
            .run(
                Operation::GruSequenceLastPart,
                &[
                    float(&[0.5, -0.25, 1.0, -0.25, 0.125, -0.5]),
                    float(&[0.25]),
                    float(&[0.75, 0.5, -0.5]),
                    float(bias),
                ],
            )
            .expect("it runs");
        assert_eq!(multiplied, found, "the same with W·x given");
    }
    let lstm = block()
        .tensor(F32, &[4])
        .tensor(F32, &[1])
        .tensor(F32, &[1])
        .tensor(F32, &[1])
        .run(
            Operation::LstmGates,
            &[float(&[0.5, -1.0, 2.0, 0.25]), float(&[0.75])],
        )
        .expect("it runs");
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    let cell = sigmoid(0.5) * 0.75 + sigmoid(-1.0) * 2.0f32.tanh();
    let [Values::Float(hidden), Values::Float(next)] = &lstm[..] else {
        panic!("{lstm:?}");
    };
    assert_close(hidden, &[sigmoid(0.25) * cell.tanh()]);
    assert_close(next, &[cell]);
}

#[test]
fn integers_and_comparisons() {
    let binary = |operation, element, a: &[i64], b: &[i64]| {
        let count = a.len() as u32;
        block()
            .tensor(I32, &[count])
            .tensor(I32, &[count])
            .tensor(element, &[count])
            .integers(operation, &[integer(a), integer(b)])
    };
    assert_eq!(
        binary(Operation::ShiftLeft, I32, &[3, -3, 1], &[2, 1, 31]),
        [12, -6, i64::from(i32::MIN)]
    );
    assert_eq!(
        binary(Operation::ShiftRight, I32, &[12, -5, 7], &[2, 1, 99]),
        [3, -3, 0]
    );
    assert_eq!(
        binary(Operation::SquaredDifference, I32, &[3, -3], &[5, 4]),
        [4, 49]
    );
    assert_eq!(binary(Operation::NotEqual, I8, &[3, -3], &[3, 4]), [0, 1]);
    let relu = |operation, block: Block| block.floats(operation, &[float(&[-2.0, 0.0, 3.0])]);
    let unary = || block().tensor(F16, &[3]).tensor(F16, &[3]);
    assert_eq!(relu(Operation::Relu, unary()), [0.0, 0.0, 3.0]);
    assert_eq!(
        relu(Operation::LeakyRelu, unary().float(0.5)),
        [-1.0, 0.0, 3.0]
    );
}

/// Boxes 0 and 1 overlap by more than half, box 2 stands apart, box 3 has too low a score in both classes.
#[test]
fn suppression_of_overlapping_boxes() {
    let boxes = [
        [0.0, 0.0, 2.0, 2.0],
        [2.0, 2.0, 0.0, 0.5],
        [5.0, 5.0, 6.0, 6.0],
        [8.0, 8.0, 9.0, 9.0],
    ]
    .concat();
    let scores = [0.5, 0.75, 0.25, 0.1, 0.875, 0.0, 0.625, 0.1];
    let tensors = [
        (F16, vec![4, 4, 1]),
        (F16, vec![4, 2, 1]),
        (F16, vec![1]),
        (F16, vec![1]),
        (U8, vec![9]),
        (I32, vec![3, 5]),
        (F16, vec![3, 5]),
        (I32, vec![1]),
        (U8, vec![9]),
    ];
    let scalars = |block: Block, sorted: i64| block.float(0.0).longs(&[0, sorted]);
    let add = |block: Block, (element, dims): &(u32, Vec<u32>)| block.tensor(*element, dims);
    let long = |sorted| scalars(tensors.iter().fold(block(), add).long(2), sorted);
    let kept = |block: Block, inputs: &[Values]| {
        let outputs = block
            .run(Operation::NonMaxSuppression, inputs)
            .expect("it runs");
        let [
            Values::Integer(rows),
            Values::Float(scores),
            Values::Integer(count),
        ] = &outputs[..]
        else {
            panic!("{outputs:?}");
        };
        let scores: Vec<f32> = scores.chunks(3).map(|row| row[2]).collect();
        (rows.clone(), scores, count[0])
    };
    let four = [float(&boxes), float(&scores), float(&[0.5]), float(&[0.2])];
    let minus = [-1, -1, -1];
    let expected = (
        [[0, 1, 0], [0, 0, 1], [0, 1, 2], [0, 0, 2], minus].concat(),
        vec![0.875, 0.75, 0.625, 0.25, -1.0],
        4,
    );
    assert_eq!(kept(long(1), &four), expected);
    let by_class = kept(long(0), &four).0;
    assert_eq!(
        by_class,
        [[0, 0, 1], [0, 0, 2], [0, 1, 0], [0, 1, 2], minus].concat()
    );
    // Up to release 2026.2 the thresholds are scalars.
    let seven = [&tensors[..2], &tensors[4..]].concat();
    let short = seven
        .iter()
        .fold(block(), add)
        .long(2)
        .float(0.5)
        .float(0.2);
    assert_eq!(kept(scalars(short, 1).short(), &four[..2]), expected);
    // Release 2026.0 has no second scratch.
    let six = &seven[..6];
    let short = six.iter().fold(block(), add).long(2).float(0.5).float(0.2);
    assert_eq!(kept(scalars(short, 1).short(), &four[..2]), expected);
    // Releases 2026.3 have the thresholds twice.
    let both = tensors.iter().fold(block(), add).long(2);
    let both = both.float(0.5).float(0.2);
    assert_eq!(kept(scalars(both, 1), &four), expected);
}

#[test]
fn regions_are_pooled_by_their_maximum() {
    let block = block()
        .tensor(F16, &[4, 4, 1, 1])
        .tensor(F16, &[5, 2])
        .tensor(F16, &[2, 2, 1, 2])
        .longs(&[2, 2])
        .float(0.5)
        .long(0);
    let x: Vec<f32> = (0..16).map(|at| at as f32).collect();
    let regions = [0.0, 0.0, 0.0, 6.0, 6.0, 0.0, 2.0, 2.0, 4.0, 4.0];
    let found = block.floats(Operation::RoiPooling, &[float(&x), float(&regions)]);
    assert_eq!(found, [5.0, 7.0, 13.0, 15.0, 5.0, 6.0, 9.0, 10.0]);
}

/// As `numpy.roll`.
#[test]
fn elements_roll_around() {
    let roll = |shifts: &[i64], axes: &[i64]| {
        let block = block()
            .tensor(F16, &[3, 2])
            .tensor(I32, &[shifts.len() as u32])
            .tensor(I32, &[axes.len() as u32])
            .tensor(F16, &[3, 2]);
        let x = float(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        block.run(Operation::Roll, &[x, integer(shifts), integer(axes)])
    };
    let found = |values: [f32; 6]| Ok(vec![float(&values)]);
    assert_eq!(roll(&[1], &[1]), found([2.0, 0.0, 1.0, 5.0, 3.0, 4.0]));
    assert_eq!(roll(&[-1], &[-1]), found([1.0, 2.0, 0.0, 4.0, 5.0, 3.0]));
    assert_eq!(
        roll(&[1, 5], &[0, 1]),
        found([4.0, 5.0, 3.0, 1.0, 2.0, 0.0])
    );
    assert_eq!(roll(&[1], &[0, 1]), found([5.0, 3.0, 4.0, 2.0, 0.0, 1.0]));
    assert_eq!(
        roll(&[1, 1], &[1, 1]),
        found([1.0, 2.0, 0.0, 4.0, 5.0, 3.0])
    );
    for (shifts, axes) in [
        (&[1][..], &[2][..]),
        (&[1], &[-3]),
        (&[1], &[i64::from(i32::MIN)]),
        (&[1, 2, 3], &[0, 1]),
    ] {
        assert!(roll(shifts, axes).is_err(), "{shifts:?} {axes:?}");
    }
}
