use super::*;
use proptest::prelude::*;

#[test]
fn gather_elements() {
    let gather = |axis, index: &[i64], dims: &[u32]| {
        let block = block()
            .tensor(F32, &[3, 2])
            .tensor(I32, dims)
            .tensor(F32, dims)
            .long(axis);
        block.run(
            Operation::GatherElements,
            &[float(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), integer(index)],
        )
    };
    assert_eq!(
        gather(0, &[2, 0, -1, 1], &[2, 2]),
        Ok(vec![float(&[3.0, 1.0, 6.0, 5.0])])
    );
    assert_eq!(
        gather(1, &[1, 0, 1], &[3, 1]),
        Ok(vec![float(&[4.0, 2.0, 6.0])])
    );
    assert_eq!(
        gather(0, &[3, 0], &[1, 2]).expect_err("outside").message,
        "gather-elements: index 3 is outside of a dim of 3"
    );
    assert_eq!(
        gather(1, &[0, -3], &[2, 1]).expect_err("outside").message,
        "gather-elements: index -3 is outside of a dim of 2"
    );
    assert!(gather(0, &[0; 3], &[1, 3]).is_err(), "more rows than x has");
}

/// The examples of the ONNX operator, with leading dims of one in front.
#[test]
fn gather_nd() {
    let gather = |batch: i64,
                  dims: &[i32],
                  index: &[i64],
                  index_dims: &[u32],
                  output: &[u32],
                  count: u32| {
        let mut five = dims.to_vec();
        five.resize(5, 0);
        let block = block()
            .tensor(I32, &[count])
            .tensor(I32, index_dims)
            .tensor(I32, output)
            .long(batch)
            .word(dims.len() as i32)
            .words(&five);
        let x: Vec<i64> = (0..i64::from(count)).collect();
        block.run(Operation::GatherNd, &[integer(&x), integer(index)])
    };
    assert_eq!(
        gather(0, &[2, 2], &[0, 0, 1, 1], &[2, 2], &[2], 4),
        Ok(vec![integer(&[0, 3])])
    );
    assert_eq!(
        gather(0, &[2, 2], &[1, 0], &[1, 2], &[2, 2], 4),
        Ok(vec![integer(&[2, 3, 0, 1])])
    );
    assert_eq!(
        gather(0, &[2, 2, 2], &[0, 1, 1, 0], &[2, 2], &[2, 2], 8),
        Ok(vec![integer(&[2, 3, 4, 5])])
    );
    assert_eq!(
        gather(1, &[2, 2, 2], &[1, 0], &[1, 2], &[2, 2], 8),
        Ok(vec![integer(&[2, 3, 4, 5])])
    );
    assert_eq!(
        gather(2, &[2, 2, 2, 1], &[1, 0], &[1, 2], &[2, 2], 8),
        Ok(vec![integer(&[2, 3, 4, 5])])
    );
    assert_eq!(
        gather(0, &[2, 2], &[0, 2], &[2, 1], &[1], 4)
            .expect_err("outside")
            .message,
        "gather-nd: index 2 is outside of a dim of 2"
    );
    assert!(
        gather(0, &[2, 2], &[0, 0, 0], &[3, 1], &[1], 4).is_err(),
        "three indices for two dims"
    );
    assert!(
        gather(0, &[2, 3], &[0, 0], &[2, 1], &[1], 4).is_err(),
        "x is not of these dims"
    );
}

#[test]
fn scatter_nd() {
    let scatter = |dims: &[u32], index: &[i64], index_dims: &[u32], updates: &[f32]| {
        let count = dims.iter().product::<u32>();
        let block = block()
            .tensor(F32, dims)
            .tensor(I32, index_dims)
            .tensor(F32, &[updates.len() as u32])
            .tensor(F32, dims);
        block.run(
            Operation::ScatterNd,
            &[
                Values::Float(vec![0.0; count as usize]),
                integer(index),
                float(updates),
            ],
        )
    };
    assert_eq!(
        scatter(&[8], &[4, 3, 1, 7], &[1, 4], &[9.0, 10.0, 11.0, 12.0]),
        Ok(vec![float(&[0.0, 11.0, 0.0, 10.0, 9.0, 0.0, 0.0, 12.0])])
    );
    assert_eq!(
        scatter(&[2, 3], &[2, 0], &[1, 2], &[1.0, 2.0, 3.0, 4.0]),
        Ok(vec![float(&[3.0, 4.0, 0.0, 0.0, 1.0, 2.0])])
    );
    assert_eq!(
        scatter(&[2, 3], &[2, 1], &[2, 1], &[7.0]),
        Ok(vec![float(&[0.0, 0.0, 0.0, 0.0, 0.0, 7.0])])
    );
    assert_eq!(
        scatter(&[2, 3], &[3, 1], &[2, 1], &[7.0])
            .expect_err("outside")
            .message,
        "scatter-nd: index 3 is outside of a dim of 3"
    );
    assert!(
        scatter(&[2, 3], &[2, 0], &[1, 2], &[1.0]).is_err(),
        "too few updates"
    );
}

#[test]
fn scatter_elements() {
    // Two updates for place 1, one for place 2.
    let scatter = |reduction: i64, initial: i64| {
        let block = block()
            .tensor(F32, &[4])
            .tensor(I32, &[3])
            .tensor(F32, &[3])
            .tensor(F32, &[4])
            .longs(&[0, reduction, initial]);
        block.floats(
            Operation::ScatterElements,
            &[
                float(&[1.0, 2.0, 3.0, 4.0]),
                integer(&[1, 2, 1]),
                float(&[10.0, -6.0, 21.0]),
            ],
        )
    };
    assert_eq!(scatter(0, -1), [1.0, 21.0, -6.0, 4.0]);
    assert_eq!(scatter(1, -1), [1.0, 33.0, -3.0, 4.0]);
    assert_eq!(scatter(2, -1), [1.0, 420.0, -18.0, 4.0]);
    assert_eq!(scatter(3, -1), [1.0, 2.0, -6.0, 4.0]);
    assert_eq!(scatter(4, -1), [1.0, 21.0, 3.0, 4.0]);
    assert_eq!(scatter(5, -1), [1.0, 11.0, -1.5, 4.0]);
    assert_eq!(scatter(1, 0), [1.0, 31.0, -6.0, 4.0]);
    assert_eq!(scatter(2, 0), [1.0, 210.0, -6.0, 4.0]);
    assert_eq!(scatter(3, 0), [1.0, 10.0, -6.0, 4.0]);
    assert_eq!(scatter(5, 0), [1.0, 15.5, -6.0, 4.0]);

    let integers = |reduction: i64| {
        let block = block()
            .tensor(I32, &[2])
            .tensor(I32, &[2])
            .tensor(I32, &[2])
            .tensor(I32, &[2])
            .longs(&[0, reduction, -1]);
        block.integers(
            Operation::ScatterElements,
            &[integer(&[4, -5]), integer(&[1, -1]), integer(&[3, -9])],
        )
    };
    assert_eq!(
        [0, 1, 2, 3, 4, 5].map(|reduction| integers(reduction)[1]),
        [-9, -11, 135, -9, 3, -3]
    );

    // Along the outer dim.
    let outer = block()
        .tensor(F32, &[2, 3])
        .tensor(I32, &[2, 1])
        .tensor(F32, &[2, 1])
        .tensor(F32, &[2, 3])
        .longs(&[1, 0, -1]);
    let found = outer.floats(
        Operation::ScatterElements,
        &[float(&[0.0; 6]), integer(&[2, 0]), float(&[1.0, 2.0])],
    );
    assert_eq!(found, [0.0, 2.0, 0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn one_hot() {
    let one_hot = |axis: i64, flag: i64, output: &[u32]| {
        let block = block()
            .tensor(I32, &[4])
            .tensor(F16, output)
            .longs(&[axis, 3])
            .float(5.0)
            .float(-1.0)
            .long(flag);
        block.run(Operation::OneHot, &[integer(&[2, 0, -1, 3])])
    };
    let rows = [
        [-1.0, -1.0, 5.0],
        [5.0, -1.0, -1.0],
        [-1.0, -1.0, 5.0],
        [-1.0; 3],
    ]
    .concat();
    assert_eq!(one_hot(1, 1, &[3, 4]), Ok(vec![float(&rows)]));
    let without_negative = [&rows[..6], &[-1.0; 6]].concat();
    assert_eq!(one_hot(1, 0, &[3, 4]), Ok(vec![float(&without_negative)]));
    let columns: Vec<f32> = (0..12).map(|at| rows[at % 4 * 3 + at / 4]).collect();
    assert_eq!(one_hot(2, 1, &[4, 3]), Ok(vec![float(&columns)]));
    assert_eq!(
        one_hot(1, 1, &[4, 3]).expect_err("depth is 3").message,
        "one-hot: depth 3 along axis 0 of float16[4, 3]"
    );
    let integers = block()
        .tensor(I32, &[1])
        .tensor(I32, &[2, 1])
        .longs(&[1, 2])
        .float(1.0)
        .float(0.0)
        .long(0);
    assert_eq!(
        integers.integers(Operation::OneHot, &[integer(&[1])]),
        [0, 1]
    );
}

/// Example 1 of the ONNX operator: time is the outer dim, batch the inner one.
#[test]
fn reverse_sequence() {
    let reverse = |batch: i64, sequence: i64, lengths: &[i64]| {
        let block = block()
            .tensor(F32, &[4, 4])
            .tensor(I32, &[4])
            .tensor(F32, &[4, 4])
            .longs(&[batch, sequence]);
        let x: Vec<f32> = (0..16).map(|at| (at % 4 * 4 + at / 4) as f32).collect();
        block.run(
            Operation::ReverseSequence,
            &[Values::Float(x), integer(lengths)],
        )
    };
    let expected = [
        3.0, 6.0, 9.0, 12.0, 2.0, 5.0, 8.0, 13.0, 1.0, 4.0, 10.0, 14.0, 0.0, 7.0, 11.0, 15.0,
    ];
    assert_eq!(reverse(0, 1, &[4, 3, 2, 1]), Ok(vec![float(&expected)]));
    assert!(reverse(0, 1, &[5, 3, 2, 1]).is_err());
    assert!(reverse(0, 1, &[-1, 3, 2, 1]).is_err());
}

#[test]
fn top_k() {
    let x = [3.0, -1.0, 7.0, 3.0, 7.0, 0.0];
    let top = |mode: i64, sort: i64, k: u32| {
        let block = block()
            .tensor(F16, &[6])
            .tensor(U8, &[256])
            .tensor(F16, &[k])
            .tensor(I32, &[k])
            .tensor(U8, &[256]);
        let found = block
            .longs(&[0, mode, sort, i64::from(k)])
            .run(Operation::TopK, &[float(&x)])
            .expect("a top-k");
        let Values::Integer(indices) = &found[1] else {
            panic!()
        };
        let picked: Vec<f32> = indices.iter().map(|index| x[*index as usize]).collect();
        assert_eq!(found[0], float(&picked), "values are those of the indices");
        indices.clone()
    };
    assert_eq!(top(0, 1, 3), [2, 4, 0]);
    assert_eq!(top(1, 1, 4), [1, 5, 0, 3]);
    assert_eq!(top(0, 2, 3), [0, 2, 4]);
    assert_eq!(top(0, 0, 1), [2]);
    let zeros = block()
        .tensor(F16, &[2])
        .tensor(U8, &[1])
        .tensor(F16, &[1])
        .tensor(I32, &[1])
        .tensor(U8, &[1])
        .longs(&[0, 0, 1, 1]);
    let found = zeros
        .run(Operation::TopK, &[float(&[-0.0, 0.0])])
        .expect("a top-k");
    assert_eq!(found[1], integer(&[0]), "zeros are equal");
    let many = block()
        .tensor(F16, &[2])
        .tensor(U8, &[1])
        .tensor(F16, &[3])
        .tensor(I32, &[3])
        .tensor(U8, &[1])
        .longs(&[0, 0, 1, 3]);
    assert_eq!(
        many.run(Operation::TopK, &[float(&[1.0, 2.0])])
            .expect_err("too many")
            .message,
        "top-k: 3 of a dim of 2"
    );
}

fn tensor_and_axis() -> impl Strategy<Value = (Vec<u32>, usize, Vec<f32>)> {
    prop::collection::vec(1u32..6, 1..5).prop_flat_map(|dims| {
        let (rank, count) = (dims.len(), dims.iter().product::<u32>() as usize);
        // Whole numbers, so that equal values occur.
        (
            Just(dims),
            0..rank,
            prop::collection::vec((-4i32..4).prop_map(|value| value as f32), count),
        )
    })
}

/// Elements along an axis, line by line.
fn lines(dims: &[u32], axis: usize, values: &[f32]) -> Vec<Vec<f32>> {
    let inner = dims[..axis].iter().product::<u32>() as usize;
    let size = dims[axis] as usize;
    let start = |line: usize| line / inner * inner * size + line % inner;
    (0..values.len() / size)
        .map(|line| {
            (0..size)
                .map(|place| values[start(line) + place * inner])
                .collect()
        })
        .collect()
}

proptest! {
    #[test]
    fn all_of_top_k_is_sorting((dims, axis, x) in tensor_and_axis()) {
        let block = block().tensor(F32, &dims).tensor(U8, &[1]).tensor(F32, &dims).tensor(I32, &dims).tensor(U8, &[1]);
        let block = block.longs(&[axis as i64, 0, 1, i64::from(dims[axis])]);
        let found = block.run(Operation::TopK, &[float(&x)]).expect("a top-k");
        let [Values::Float(values), Values::Integer(indices)] = &found[..] else { panic!() };
        for (given, sorted) in lines(&dims, axis, &x).iter().zip(lines(&dims, axis, values)) {
            let mut expected = given.clone();
            expected.sort_by(|a, b| b.total_cmp(a));
            prop_assert_eq!(sorted, expected);
        }
        // Gathering the indices gives the values; scattering the values back gives the tensor.
        let gather = block_of(&[F32, I32, F32], &dims).long(axis as i64);
        prop_assert_eq!(&gather.floats(Operation::GatherElements, &[float(&x), integer(indices)]), values);
        let scatter = block_of(&[F32, I32, F32, F32], &dims).longs(&[axis as i64, 0, -1]);
        let zeros = vec![0.0; x.len()];
        prop_assert_eq!(scatter.floats(Operation::ScatterElements, &[float(&zeros), integer(indices), float(values)]), x);
    }

    #[test]
    fn gather_nd_undoes_scatter_nd((dims, _, x) in tensor_and_axis(), width in 1usize..5) {
        // Every tuple of the outermost dims once, the last first.
        let width = width.min(dims.len());
        let outermost: Vec<i64> = dims.iter().rev().take(width).map(|dim| i64::from(*dim)).collect();
        let count: i64 = outermost.iter().product();
        let mut index = Vec::new();
        for number in (0..count).rev() {
            let mut rest = number;
            let mut tuple: Vec<i64> = outermost.iter().rev().map(|size| { let place = rest % size; rest /= size; place }).collect();
            tuple.reverse();
            index.extend(tuple);
        }
        let index_dims = [width as u32, count as u32];
        let scatter = block().tensor(F32, &dims).tensor(I32, &index_dims).tensor(F32, &[x.len() as u32]).tensor(F32, &dims);
        let zeros = vec![0.0; x.len()];
        let scattered = scatter.floats(Operation::ScatterNd, &[float(&zeros), integer(&index), float(&x)]);
        let mut five: Vec<i32> = dims.iter().map(|dim| *dim as i32).collect();
        five.resize(5, 0);
        let gather = block().tensor(F32, &[x.len() as u32]).tensor(I32, &index_dims).tensor(F32, &[x.len() as u32]);
        let gather = gather.long(0).word(dims.len() as i32).words(&five);
        prop_assert_eq!(gather.floats(Operation::GatherNd, &[float(&scattered), integer(&index)]), x);
    }

    #[test]
    fn reversing_twice_changes_nothing((dims, axis, x) in tensor_and_axis(), lengths in prop::collection::vec(0i64..6, 6)) {
        prop_assume!(dims.len() > 1);
        let batch = (axis + 1) % dims.len();
        let lengths: Vec<i64> = lengths.iter().take(dims[batch] as usize).map(|length| *length.min(&i64::from(dims[axis]))).collect();
        let block = block().tensor(F32, &dims).tensor(I32, &[lengths.len() as u32]).tensor(F32, &dims).longs(&[batch as i64, axis as i64]);
        let reverse = |x: &[f32]| block.floats(Operation::ReverseSequence, &[float(x), integer(&lengths)]);
        prop_assert_eq!(reverse(&reverse(&x)), x);
    }
}

/// A block of tensors of the same dims.
fn block_of(elements: &[u32], dims: &[u32]) -> Block {
    elements
        .iter()
        .fold(block(), |block, element| block.tensor(*element, dims))
}
