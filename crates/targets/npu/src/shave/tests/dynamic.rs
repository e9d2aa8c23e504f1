use super::*;
use crate::kernels::{self, Cmx, Descriptors, Work};
use chipless_model::{Buffer, Builder, Direction, Kernel, Limits, MemoryKind, Role, Storage};

/// Where a program keeps sizes: an address without the bit of the tile.
const SIZES: u32 = 0x4001_8040;

/// Inputs and outputs have their upper bounds where the dims of others are.
#[test]
fn upper_bounds_stand_in_the_block() {
    let whole = block()
        .bounded(F16, &[4, 3, 2], SIZES)
        .tensor(I32, &[3])
        .bounded(F16, &[12, 2], SIZES + 64)
        .long(0)
        .inputs(2);
    for block in [whole.clone(), whole.short()] {
        let decoded = block.decode(Operation::DynamicReshape).expect("a block");
        let (x, y) = (&decoded.inputs[0], &decoded.outputs[0]);
        assert_eq!(
            (&x.shape.dims[..], x.sizes),
            (&[4, 3, 2][..], Some(SIZES.into()))
        );
        assert_eq!(
            (&y.shape.dims[..], y.sizes),
            (&[12, 2][..], Some(u64::from(SIZES) + 64))
        );
        assert_eq!(y.strides_bits, [16, 192]);
        assert_eq!(decoded.inputs[1].sizes, None);
    }
}

/// Where they are not known, nothing is wrong: the program is not supported.
#[test]
fn a_dynamic_shape_is_no_fault() {
    let bytes = block()
        .tensor(F16, &[4])
        .bounded(F16, &[4, 2], SIZES)
        .bytes();
    let decode = |bytes: &[u8]| Section::new(bytes, BASE).decode(Operation::Abs, 0);
    assert!(decode(&bytes).is_ok());
    let strides = 80 + 4 + 8 + 8;
    let damaged = |at: usize, value: u32| {
        let mut bytes = bytes.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        decode(&bytes).expect_err("a block without bounds")
    };
    let error = damaged(strides + 8, 48);
    assert!(error.is_dynamic, "{error}");
    assert!(
        error.to_string().ends_with(
            "strides of tensor 1 at 0x3c: expected those of a dense tensor of the upper bounds, as the shape is dynamic, found [16, 48] bits for bounds [4, 2] of float16"
        ),
        "{error}"
    );
    // Strides that the program computes too.
    assert!(damaged(40 + 20, SIZES).is_dynamic);
    // Bounds before the section.
    assert!(damaged(40 + 20, BASE as u32).is_dynamic);
    // Static, but not in the section.
    assert!(!damaged(16, SIZES).is_dynamic);
}

/// A kernel reads the sizes of its inputs, writes those of its outputs, and runs at the upper bounds alone.
#[test]
fn a_kernel_keeps_to_the_upper_bounds() {
    const BYTES: u64 = 0x2_0000;
    let (x, y) = (0, 0x1_0000);
    let sizes = [0x1_8040, 0x1_8080];
    let mut build = Builder::new("npu", &Limits::default());
    let cmx = build.memory("cmx0", BYTES, MemoryKind::Scratchpad);
    let cmx = build.buffer(Buffer::new("cmx0", cmx, BYTES, Role::Scratch));
    let program = build.finish().expect("a program");
    let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
    let block = block()
        .bounded(I32, &[2, 3], SIZES)
        .bounded(F16, &[2, 3], SIZES + 0x40);
    let task = kernels::Invocation {
        descriptors: Descriptors(Vec::new()),
        cmx: Cmx {
            buffers: [Some(cmx), None, None, None, None, None],
            size: 0x18_0000,
        },
        work: Work::Known(Box::new(block.decode(Operation::Convert).expect("a block"))),
    };
    let mut touched = Vec::new();
    task.accesses(&mut |access| {
        touched.push((access.direction, access.pattern.offset, access.pattern.run));
    });
    assert_eq!(
        touched,
        [
            (Direction::Read, sizes[0], 8),
            (Direction::Write, sizes[1], 8),
            (Direction::Read, x, 24),
            (Direction::Write, y, 12),
        ]
    );

    let words = |words: &[u32]| {
        words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let run = |storage: &mut Storage<'_>, found: &[u32]| {
        let mut bytes = vec![0; BYTES as usize];
        bytes[..24].copy_from_slice(&words(&[1, 2, 3, 4, 5, 6]));
        bytes[sizes[0] as usize..][..8].copy_from_slice(&words(found));
        storage.set(cmx, bytes.into());
        task.execute(storage)
    };
    assert_eq!(run(&mut storage, &[2, 3]), Ok(()));
    let bytes = storage.bytes(cmx);
    assert_eq!(bytes[sizes[1] as usize..][..8], words(&[2, 3]));
    assert_eq!(
        bytes[y as usize + 10..][..2],
        half::f16::from_f32(6.0).to_le_bytes()
    );
    let fault = run(&mut storage, &[2, 1]).expect_err("one row of three");
    assert!(fault.unsupported);
    assert_eq!(
        fault.message,
        "a tensor with the upper bounds int32[2, 3] has the sizes [2, 1], innermost first: a run below the upper bounds"
    );
    assert_eq!(storage.bytes(cmx)[y as usize..][..12], [0; 12]);
}

#[test]
fn sizes_are_read_and_set() {
    let shape = block().tensor(I32, &[4]).tensor(I64, &[4]);
    assert_eq!(
        shape.integers(Operation::ShapeOf, &[integer(&[5, 4, 3, 2])]),
        [2, 3, 4, 5]
    );
    let x = float(&data(24));
    let expand = block()
        .bounded(F16, &[4, 3, 2], SIZES)
        .tensor(F16, &[4, 3, 2]);
    assert_eq!(
        expand.floats(Operation::DynamicExpand, std::slice::from_ref(&x)),
        data(24)
    );
    let other = block().bounded(F16, &[4, 3, 2], SIZES).tensor(F16, &[24]);
    assert!(other.run(Operation::DynamicExpand, &[x]).is_err());
}

#[test]
fn a_reshape_takes_the_shape_of_the_upper_bounds() {
    let reshape = |shape: &[i64], only_shape: i64| {
        let block = block()
            .bounded(F16, &[4, 3, 2], SIZES)
            .tensor(I32, &[2])
            .bounded(F16, &[12, 2], SIZES + 64)
            .long(only_shape)
            .inputs(2);
        block.run(
            Operation::DynamicReshape,
            &[float(&data(24)), integer(shape)],
        )
    };
    for shape in [[2, 12], [2, -1], [-1, 12], [0, 12]] {
        for only_shape in [0, 1] {
            assert_eq!(reshape(&shape, only_shape), Ok(vec![float(&data(24))]));
        }
    }
    for shape in [[2, 6], [-1, -1], [2, 0], [-2, 12]] {
        let fault = reshape(&shape, 0).expect_err("a shape below the bounds");
        assert!(
            fault.message.ends_with("a run below the upper bounds"),
            "{fault:?}"
        );
    }
    assert!(reshape(&[24], 0).is_err());
}

/// Figures in the block or in tensors, as Python's `x[begin:end:step]`.
#[test]
fn slices_with_steps() {
    let x: Vec<f32> = (0..20u8).map(f32::from).collect();
    let given = |begin: i64, end: i64, step: i64, dims: &[u32]| {
        block()
            .tensor(F16, &[5, 4])
            .tensor(F16, dims)
            .long(i64::MAX)
            .longs(&[1, begin, 0, 0, 3, end, 0, 0, 1, step, 0, 0, 1, 1, 1])
            .run(Operation::StridedSlice, &[float(&x)])
    };
    let rows = |picked: &[f32]| {
        let rows = [5.0f32, 10.0].map(|row| picked.iter().map(move |place| row + place));
        Ok(vec![Values::Float(rows.into_iter().flatten().collect())])
    };
    assert_eq!(given(1, 4, 1, &[3, 2]), rows(&[1.0, 2.0, 3.0]));
    assert_eq!(given(0, 5, 2, &[3, 2]), rows(&[0.0, 2.0, 4.0]));
    assert_eq!(
        given(-2, i64::from(i32::MAX), 1, &[2, 2]),
        rows(&[3.0, 4.0])
    );
    assert_eq!(given(1, -1, 3, &[1, 2]), rows(&[1.0]));
    // A dim that is taken whole.
    assert_eq!(given(3, 4, 0, &[5, 2]), rows(&[0.0, 1.0, 2.0, 3.0, 4.0]));
    let fault = given(1, 3, 1, &[3, 2]).expect_err("two places of three");
    assert!(
        fault.message.contains("places 1 to 3 of 5 by 1"),
        "{fault:?}"
    );

    let tensors = block()
        .tensor(F16, &[5, 4])
        .tensor(I32, &[2])
        .tensor(I32, &[2])
        .tensor(F16, &[3, 2])
        .long(i64::MAX)
        .longs(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1]);
    let found = tensors.run(
        Operation::StridedSlice,
        &[float(&x), integer(&[1, 1]), integer(&[3, 4])],
    );
    assert_eq!(found, rows(&[1.0, 2.0, 3.0]));
    let error = tensors.tensor(I32, &[2]).decode(Operation::StridedSlice);
    assert!(error.is_err(), "one tensor too many");
}

/// The kernel runs as many steps as the length says; Y is zero beyond.
#[test]
fn lstm_of_a_given_length() {
    let lstm = |steps: u32, length: Option<i64>, direction: i64| {
        let mut block = block()
            .tensor(F16, &[4, steps])
            .tensor(F16, &[1])
            .tensor(F16, &[1]);
        if length.is_some() {
            block = block.tensor(I32, &[1]);
        }
        let mask = if length.is_some() { 0x3ff } else { 0x3f7 };
        let block = block
            .ordered(F16, &[4, 1, 1, 1], 0x2341)
            .tensor(F16, &[4, 1])
            .tensor(I32, &[2])
            .tensor(F16, &[1, steps])
            .tensor(F16, &[1])
            .tensor(F16, &[1])
            .longs(&[i64::MIN, mask, direction, -1, -1]);
        let mut inputs = vec![
            float(&data(12)[..4 * steps as usize]),
            float(&[0.5]),
            float(&[-0.25]),
        ];
        inputs.extend(length.map(|length| integer(&[length])));
        inputs.extend([float(&[0.5, 0.25, -0.5, 1.0]), float(&[0.1, 0.2, 0.3, 0.4])]);
        block.run(Operation::LstmSequence, &inputs)
    };
    for direction in [0, 1] {
        let short = lstm(2, None, direction).expect("two steps");
        let long = lstm(3, Some(2), direction).expect("two of three steps");
        let (Values::Float(short_y), Values::Float(long_y)) = (&short[0], &long[0]) else {
            panic!("{short:?}");
        };
        assert_eq!((&long_y[..2], long_y[2]), (&short_y[..], 0.0));
        assert_eq!(long[1..], short[1..]);
        assert_eq!(lstm(3, Some(3), direction), lstm(3, None, direction));
    }
    assert!(lstm(3, Some(4), 0).is_err());
    assert!(lstm(3, Some(-1), 0).is_err());
}
