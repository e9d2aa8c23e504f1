//! Kernels of detectors and decoders. Numbers of YOLO layers and region pooling come from `OpenVINO`.

use super::*;

fn float(values: &[f32]) -> Values {
    Values::Float(values.to_vec())
}

fn count(from: usize, to: usize) -> Vec<f32> {
    (from..to).map(|at| at as f32).collect()
}

#[test]
fn regions_of_yolo() {
    let x = [
        -2.0, 0.5, 3.0, -0.5, 2.0, -1.5, 1.0, 3.5, 0.0, 2.5, -1.0, 1.5,
    ];
    // Three coordinates, two classes; two regions, of which the mask uses two.
    let region = |softmax: i64| {
        block()
            .tensor(F32, &[1, 1, 12, 1])
            .tensor(F32, &[1, 1, 12, 1])
            .longs(&[3, 2, 2, softmax, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 3])
            .floats(Operation::RegionYolo, &[float(&x)])
    };
    assert_close(
        &region(0),
        &[
            0.119203, 0.622459, 3.0, 0.377541, 0.880797, 0.182426, 0.731059, 0.970688, 0.0,
            0.924142, 0.268941, 0.817574,
        ],
    );
    assert_close(
        &region(-1),
        &[
            0.119203, 0.622459, 3.0, 0.377541, 0.970688, 0.029312, 0.731059, 0.970688, 0.0,
            0.924142, 0.075858, 0.924142,
        ],
    );
}

#[test]
fn blocks_of_yolo() {
    let found = block()
        .tensor(F32, &[4, 2, 4, 1])
        .tensor(F32, &[2, 1, 16, 1])
        .long(2)
        .floats(Operation::ReorgYolo, &[float(&count(0, 32))]);
    let expected: [f32; 32] = [
        0.0, 2.0, 4.0, 6.0, 16.0, 18.0, 20.0, 22.0, 1.0, 3.0, 5.0, 7.0, 17.0, 19.0, 21.0, 23.0,
        8.0, 10.0, 12.0, 14.0, 24.0, 26.0, 28.0, 30.0, 9.0, 11.0, 13.0, 15.0, 25.0, 27.0, 29.0,
        31.0,
    ];
    assert_eq!(found, expected);
}

#[test]
fn parts_of_regions_have_channels_of_their_own() {
    let found = block()
        .tensor(F32, &[3, 3, 4, 1])
        .tensor(F32, &[5, 2])
        .tensor(F32, &[2, 2, 1, 2])
        .long(1)
        .float(1.0)
        .longs(&[2, 1, 1, 1])
        .floats(
            Operation::PositionSensitiveRoiPooling,
            &[
                float(&count(0, 36)),
                float(&[0.0, 0.0, 0.0, 2.0, 2.0, 0.0, 1.0, 1.0, 1.0, 2.0]),
            ],
        );
    assert_eq!(found, [2.0, 12.0, 23.0, 33.0, 4.0, 13.0, 25.0, 34.0]);
}

/// Classes 1, 1, blank, 0, 1 and a step that the mask cuts off.
#[test]
fn greedy_decoding_of_a_sequence() {
    let best = [1, 1, 2, 0, 1, 0];
    let scores: Vec<f32> = best
        .iter()
        .flat_map(|best| (0..3).map(move |class| f32::from(u8::from(class == *best))))
        .collect();
    let decode = |merge: i64| {
        block()
            .tensor(F16, &[3, 1, 6])
            .tensor(F16, &[1, 6])
            .tensor(F16, &[1, 1, 6, 1])
            .long(merge)
            .floats(
                Operation::CtcGreedyDecoder,
                &[float(&scores), float(&[1.0, 1.0, 1.0, 1.0, 1.0, 0.0])],
            )
    };
    assert_eq!(decode(1), [1.0, 0.0, 1.0, -1.0, -1.0, -1.0]);
    assert_eq!(decode(0), [1.0, 1.0, 0.0, 1.0, -1.0, -1.0]);
}

#[test]
fn bags_of_one_size() {
    let table = float(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let indices = Values::Integer(vec![0, 2, 1, 1]);
    let plain = block()
        .tensor(F16, &[2, 3])
        .tensor(I32, &[2, 2])
        .tensor(F16, &[2, 2])
        .long(i64::MAX);
    let inputs = [table, indices];
    assert_eq!(
        plain.floats(Operation::EmbeddingBagPacked, &inputs),
        [6.0, 8.0, 6.0, 8.0]
    );
    let weighted = block()
        .tensor(F16, &[2, 3])
        .tensor(I32, &[2, 2])
        .tensor(F16, &[2, 2])
        .tensor(F16, &[2, 2])
        .long(i64::MAX);
    let [table, indices] = inputs;
    let weights = float(&[2.0, 0.5, 0.0, 1.0]);
    assert_eq!(
        weighted.floats(Operation::EmbeddingBagPacked, &[table, indices, weights]),
        [4.5, 7.0, 3.0, 4.0]
    );
}

#[test]
fn repeats_along_dims() {
    let tile = || {
        block()
            .tensor(F16, &[2, 1, 2])
            .tensor(F16, &[4, 3, 2])
            .longs(&[3, 1, 3, 2])
    };
    let found = tile().floats(Operation::Tile, &[float(&[1.0, 2.0, 3.0, 4.0])]);
    let (one, two) = ([1.0, 2.0, 1.0, 2.0], [3.0, 4.0, 3.0, 4.0]);
    assert_eq!(found, [one, one, one, two, two, two].concat());
}

#[test]
fn all_and_any() {
    let x = float(&[1.0, 2.0, 0.0, 3.0, 0.0, 0.0]);
    let reduce = |operation| {
        block()
            .tensor(F16, &[2, 3])
            .tensor(F16, &[1, 3])
            .longs(&[1, 1, 0])
            .floats(operation, std::slice::from_ref(&x))
    };
    assert_eq!(reduce(Operation::ReduceAnd), [1.0, 0.0, 0.0]);
    assert_eq!(reduce(Operation::ReduceOr), [1.0, 1.0, 0.0]);
}

/// Pairs (a, b) turn to (−b, a); with cosine 0 and sine 1 only that is left.
#[test]
fn pairs_of_rotations() {
    let x = float(&[1.0, 2.0, 3.0, 4.0]);
    let rotate = |operation, table: usize| {
        let dims = [table as u32];
        block()
            .tensor(F16, &[4])
            .tensor(F16, &dims)
            .tensor(F16, &dims)
            .tensor(F16, &[4])
            .long(3)
            .floats(
                operation,
                &[
                    x.clone(),
                    float(&vec![0.0; table]),
                    float(&count(1, 1 + table)),
                ],
            )
    };
    let halves = rotate(Operation::RotaryEmbedding, 4);
    assert_eq!(halves, [-3.0, -8.0, 3.0, 8.0]);
    let neighbours = rotate(Operation::RotaryEmbeddingInterleaved, 4);
    assert_eq!(neighbours, [-2.0, 2.0, -12.0, 12.0]);
    let halves = rotate(Operation::RotaryEmbeddingHalf, 2);
    assert_eq!(halves, [-3.0, -8.0, 1.0, 4.0]);
    let neighbours = rotate(Operation::RotaryEmbeddingHalfInterleaved, 2);
    assert_eq!(neighbours, [-2.0, 1.0, -8.0, 6.0]);
}

/// Two keys, of which the mask leaves one or both; one query along the first key.
#[test]
fn attention() {
    let tensors = block()
        .tensor(F32, &[4, 1])
        .tensor(F32, &[4, 2])
        .tensor(F32, &[3, 2]);
    let scratch = |block: Block| block.tensor(U8, &[9]).tensor(F32, &[3, 1]).tensor(U8, &[9]);
    let inputs = [
        float(&[2.0, 0.0, 0.0, 0.0]),
        float(&[1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]),
        float(&[1.0, 2.0, 3.0, 5.0, 6.0, 7.0]),
    ];
    // Without a scale the products are divided by the root of 4: weights e and 1.
    let plain = scratch(tensors.clone()).longs(&[i64::MIN, 0xc7, 0]);
    let second = 1.0 / (1.0 + 1f32.exp());
    let expected = [1.0, 2.0, 3.0].map(|first| first + 4.0 * second);
    assert_close(
        &plain.floats(Operation::ScaledDotProductAttention, &inputs),
        &expected,
    );
    let masked = scratch(tensors.tensor(F32, &[2, 1]).tensor(F32, &[1]));
    let masked = masked.longs(&[i64::MIN, 0xdf, 1]);
    let [q, k, v] = inputs;
    let attend = |mask: [f32; 2]| {
        let inputs = [q.clone(), k.clone(), v.clone(), float(&mask), float(&[0.0])];
        masked.floats(Operation::ScaledDotProductAttention, &inputs)
    };
    assert_close(&attend([0.0, 0.0]), &[3.0, 4.0, 5.0]);
    assert_close(&attend([-1000.0, 0.0]), &[5.0, 6.0, 7.0]);
}
