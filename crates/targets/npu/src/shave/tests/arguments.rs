use super::*;
use chipless_model::Pattern;

#[test]
fn decodes_references() {
    let block = block()
        .ordered(F16, &[32, 20, 3, 1], 0x2431)
        .tensor(I8, &[7]);
    let invocation = block.decode(Operation::Convert).expect("a block");
    let [input, output] = [&invocation.inputs[0], &invocation.outputs[0]];
    assert_eq!((input.address, input.location), (0x4020_0000, 2));
    assert_eq!(
        input.shape,
        Shape {
            element: ElementType::Float16,
            dims: vec![32, 20, 3, 1],
            order: 0x2431
        }
    );
    assert_eq!(input.strides_bits, [16, 512, 10240, 30720]);
    assert_eq!(input.pattern, Pattern::contiguous(0, 32 * 20 * 3 * 2));
    assert_eq!(
        [0, 1, 2, 3, 4].map(|logical| input.shape.memory_axis(logical)),
        [Some(3), Some(0), Some(2), Some(1), None]
    );
    assert_eq!(output.shape.element, ElementType::Int8);
    assert_eq!(output.pattern, Pattern::contiguous(0, 7));
    assert_eq!(invocation.elements(), 32 * 20 * 3);
}

#[test]
fn strided_views_are_patterns() {
    let of = |element, dims: &[u32], strides: &[u64]| {
        let block = block().strided(element, dims, strides).tensor(F16, &[1]);
        block
            .decode(Operation::Convert)
            .map(|invocation| invocation.inputs[0].pattern.clone())
    };
    // Rows of 4 halves in a pitch of 16 bytes; dims of one carry any stride.
    let rows = of(F16, &[4, 1, 3, 1], &[16, 7, 128, 3]).expect("a view");
    assert_eq!(
        (rows.run, rows.runs().collect::<Vec<_>>()),
        (8, vec![0, 16, 32])
    );
    // Every second element.
    let every_second = of(F16, &[4], &[32]).expect("a view");
    assert_eq!(
        (every_second.run, every_second.runs().collect::<Vec<_>>()),
        (2, vec![0, 4, 8, 12])
    );
    // Seven dense int4 take four bytes; in rows they would have to fill whole bytes.
    assert_eq!(
        of(12, &[7], &[4]).expect("dense"),
        Pattern::contiguous(0, 4)
    );
    assert!(of(12, &[7, 2], &[4, 32]).is_err());
    assert!(of(12, &[4, 2], &[4, 32]).is_ok());
    // Overlap, by a stride of zero and by rows that are too close.
    assert!(of(F16, &[4], &[0]).is_err());
    assert!(of(F16, &[4, 2], &[16, 48]).is_err());
    assert!(of(F16, &[4, 2], &[16, u64::MAX - 7]).is_err());
}

#[test]
fn errors_name_block_place_and_values() {
    let good = block().tensor(F16, &[4, 2]).tensor(F16, &[4, 2]).bytes();
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = vec![0; 8];
        bytes.extend(&good);
        change(&mut bytes);
        Section::new(&bytes, BASE - 8)
            .decode(Operation::Abs, 8)
            .expect_err("a broken block")
            .to_string()
    };
    let put = |at: usize, value: u32| {
        move |bytes: &mut Vec<u8>| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes())
    };
    assert_eq!(
        refused(&put(8 + 40 + 12, 16)),
        "argument block at 0x8 of shave.params: rank of tensor 1 at 0x3c: expected 1 to 15, found 16"
    );
    assert_eq!(
        refused(&put(8 + 24, 3)),
        "argument block at 0x8 of shave.params: element type of tensor 0 at 0x20: expected a known code, found 3"
    );
    assert!(refused(&put(8 + 16, BASE as u32 - 9)).ends_with(
        "dims pointer of tensor 0 at 0x18: expected 8 bytes inside the section of 136 bytes at 0x1bfffff8, found address 0x1bfffff7"
    ));
    assert!(
        refused(&put(8 + 20, BASE as u32 + 113)).contains("strides pointer of tensor 0 at 0x1c")
    );
    assert!(
        refused(&put(8 + 80, 0))
            .ends_with("expected sizes from 1, 1099511627776 elements at most, found [0, 2]")
    );
    assert!(
        refused(&|bytes| bytes.truncate(47))
            .contains("reference of tensor 0 at 0x8: expected 40 bytes inside the section")
    );
    let missing = block().tensor(F16, &[4]).tensor(F16, &[4]).bytes();
    let error = Section::new(&missing[..80], BASE)
        .decode(Operation::Clamp, u64::MAX - 3)
        .expect_err("far outside")
        .to_string();
    assert!(
        error.starts_with("argument block at 0xfffffffffffffffc"),
        "{error}"
    );
}

#[test]
fn huge_sizes_are_refused() {
    let tensor = |dims: &[u32]| {
        block()
            .tensor(F16, &[1])
            .strided(F16, dims, &[16, 1 << 36, 1 << 56])
            .decode(Operation::Abs)
    };
    assert!(tensor(&[1 << 20, 1 << 19]).is_ok());
    assert!(tensor(&[u32::MAX, u32::MAX, u32::MAX]).is_err());
}

#[test]
fn scalars_are_checked() {
    let unary = || block().tensor(F16, &[4, 2]).tensor(F16, &[4, 2]);
    let error = |operation, block: Block| {
        block
            .decode(operation)
            .expect_err("a bad scalar")
            .to_string()
    };
    assert!(
        error(Operation::Softmax, unary().words(&[2, 0]))
            .ends_with("axis at 0x50: expected 0 to 1, found 2")
    );
    assert!(
        error(Operation::Softmax, unary().words(&[0, 4]))
            .ends_with("pad at 0x54: expected 0 to 3, found 4")
    );
    assert!(
        error(Operation::ReduceSum, unary().longs(&[1, 3, 0, 0, 0]))
            .ends_with("number of axes at 0x58: expected 1 to 2, found 3")
    );
    assert!(
        error(Operation::Round, unary().long(2))
            .ends_with("rounding mode at 0x50: expected 0 to 1, found 2")
    );
    assert!(
        error(Operation::MaxPool, unary().longs(&[1, 1, 1, 1, 0, 1]))
            .contains("stride at 0x70: expected 1 to 65536, found 0")
    );
    let rotary = block()
        .tensor(F16, &[4])
        .tensor(F16, &[4])
        .tensor(F16, &[4])
        .tensor(F16, &[4])
        .long(4);
    assert!(error(Operation::RotaryEmbedding, rotary).contains("expected 0 to 3, found 4"));
}

#[test]
fn optional_tensors_follow_the_mask() {
    let mvn = |tensors: usize, mask: i64| {
        let block = (0..tensors).fold(block(), |block, _| block.tensor(F16, &[4]));
        block
            .longs(&[i64::MIN, mask, 1, 1])
            .float(0.5)
            .longs(&[1, 0])
            .decode(Operation::Mvn6)
    };
    let plain = mvn(2, 0b1001).expect("x and y");
    assert_eq!((plain.inputs.len(), plain.outputs.len()), (1, 1));
    let Parameters::Mvn6(parameters) = &mvn(3, 0b1101).expect("x, bias, y").parameters else {
        panic!()
    };
    assert!(
        !parameters.scale
            && parameters.bias
            && parameters.epsilon_place == EpsilonPlace::OutsideRoot
    );
    assert!(mvn(2, 0b1101).is_err(), "one bit too many");
    assert!(mvn(2, 0b0011).is_err(), "no output");
    assert!(mvn(3, 0b11001).is_err(), "no such tensor");
}

#[test]
fn tensors_of_unknown_kernels_are_guessed() {
    let bytes = block()
        .tensor(F16, &[4, 2])
        .tensor(I32, &[4])
        .tensor(U8, &[2])
        .longs(&[1, 2, 3, 4, 5, 6])
        .bytes();
    let tensors = Section::new(&bytes, BASE).leading_tensors(0);
    assert_eq!(
        tensors
            .iter()
            .map(|tensor| tensor.shape.to_string())
            .collect::<Vec<_>>(),
        ["float16[4, 2]", "int32[4]", "uint8[2]"]
    );
}

/// Compilers up to release 2026.2.1 write short references, and some blocks otherwise.
#[test]
fn short_references_tell_older_layouts() {
    let long = block().tensor(F16, &[4, 2]).tensor(F16, &[4, 2]);
    let x = [float(&data(8))];
    assert_eq!(
        long.clone().short().run(Operation::Abs, &x),
        long.run(Operation::Abs, &x)
    );
    let short = long
        .clone()
        .short()
        .decode(Operation::Abs)
        .expect("a block");
    let long = long.decode(Operation::Abs).expect("a block");
    assert_eq!(
        (&short.inputs, &short.outputs),
        (&long.inputs, &long.outputs)
    );

    // One-hot: the axis counts from 0, not from 1.
    let rows = block()
        .tensor(I32, &[2])
        .tensor(F16, &[3, 2])
        .longs(&[0, 3])
        .float(1.0)
        .float(0.0)
        .long(1)
        .short();
    let found = rows.floats(Operation::OneHot, &[integer(&[2, 0])]);
    assert_eq!(found, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);

    // Top-k of release 2026.0.0: one scratch tensor.
    let best = block()
        .tensor(F16, &[3])
        .tensor(U8, &[9])
        .tensor(F16, &[2])
        .tensor(I32, &[2])
        .longs(&[0, 0, 1, 2])
        .short();
    assert_eq!(
        best.floats(Operation::TopK, &[float(&[1.0, 3.0, 2.0])]),
        [3.0, 2.0]
    );

    // Interpolate: no scales at the end.
    let resize = block()
        .tensor(F16, &[2, 1, 1, 1])
        .tensor(F16, &[4, 1, 1, 1])
        .longs(&[i64::MAX, 0, 2, 2, 0, 0, 0])
        .longs(&[2, 1, 1, 1, 4, 1, 1, 1, 2, 3])
        .float(-0.75)
        .longs(&[0; 8])
        .short();
    let found = resize.floats(Operation::Interpolate, &[float(&[5.0, 7.0])]);
    assert_eq!(found, [5.0, 5.0, 7.0, 7.0]);
}

#[test]
fn a_damaged_rank_is_named_in_either_layout() {
    let whole = block().tensor(F16, &[4]).tensor(F16, &[4]);
    for (block, at) in [(whole.clone(), 12), (whole.short(), 8)] {
        let mut bytes = block.bytes();
        bytes[at] = 99;
        let error = Section::new(&bytes, BASE).decode(Operation::Abs, 0);
        let error = error.expect_err("a rank of 99").to_string();
        let expected = format!("rank of tensor 0 at {at:#x}: expected 1 to 15, found 99");
        assert!(error.ends_with(&expected), "{error}");
    }
}

#[test]
fn inputs_have_to_be_those_of_the_invocation() {
    let block = block().tensor(F16, &[4]).tensor(F16, &[4]);
    let fault = |inputs: &[Values]| {
        block
            .run(Operation::Abs, inputs)
            .expect_err("wrong inputs")
            .message
    };
    assert_eq!(fault(&[]), "abs: expected 1 inputs, found 0");
    assert_eq!(fault(&[float(&[1.0])]), "1 values for a tensor float16[4]");
    assert_eq!(
        fault(&[integer(&[1, 2, 3, 4])]),
        "values of the wrong kind for a tensor float16[4]"
    );
}
