use super::*;
use proptest::prelude::*;

fn unary(operation: Operation, block: impl Fn(Block) -> Block, x: &[f32]) -> Vec<f32> {
    let shape = [x.len() as u32];
    block(block_of(&shape)).floats(operation, &[float(x)])
}

fn block_of(dims: &[u32]) -> Block {
    block().tensor(F16, dims).tensor(F16, dims)
}

/// Arguments that most functions take.
const ARGUMENTS: [f32; 7] = [-2.5, -1.0, -0.25, 0.0, 0.5, 1.0, 3.0];

/// Values of these functions at `ARGUMENTS`, in binary64 and rounded.
const VALUES: [(Operation, [f32; 7]); 20] = [
    (Operation::Abs, [2.5, 1.0, 0.25, 0.0, 0.5, 1.0, 3.0]),
    (
        Operation::Asinh,
        [
            -1.6472311,
            -0.88137359,
            -0.24746646,
            0.0,
            0.48121183,
            0.88137359,
            1.8184465,
        ],
    ),
    (
        Operation::Atan,
        [
            -1.1902899,
            -0.78539816,
            -0.24497866,
            0.0,
            0.46364761,
            0.78539816,
            1.2490458,
        ],
    ),
    (Operation::Ceil, [-2.0, -1.0, 0.0, 0.0, 1.0, 1.0, 3.0]),
    (
        Operation::Cos,
        [
            -0.80114362,
            0.54030231,
            0.96891242,
            1.0,
            0.87758256,
            0.54030231,
            -0.9899925,
        ],
    ),
    (
        Operation::Cosh,
        [
            6.1322895, 1.5430806, 1.0314131, 1.0, 1.127626, 1.5430806, 10.067662,
        ],
    ),
    (
        Operation::Erf,
        [
            -0.99959305,
            -0.84270079,
            -0.27632639,
            0.0,
            0.52049988,
            0.84270079,
            0.99997791,
        ],
    ),
    (
        Operation::Exp,
        [
            0.082084999,
            0.36787944,
            0.77880078,
            1.0,
            1.6487213,
            2.7182818,
            20.085537,
        ],
    ),
    (Operation::Floor, [-3.0, -1.0, -1.0, 0.0, 0.0, 1.0, 3.0]),
    (
        Operation::Gelu,
        [
            -0.015524163,
            -0.15865525,
            -0.10032342,
            0.0,
            0.34573123,
            0.84134475,
            2.9959503,
        ],
    ),
    (
        Operation::HardSwish,
        [
            -0.20833333,
            -0.33333333,
            -0.11458333,
            0.0,
            0.29166667,
            0.66666667,
            3.0,
        ],
    ),
    (
        Operation::Mish,
        [
            -0.1968162,
            -0.30340146,
            -0.12992696,
            0.0,
            0.37524521,
            0.86509839,
            2.986535,
        ],
    ),
    (Operation::Negative, [2.5, 1.0, 0.25, 0.0, -0.5, -1.0, -3.0]),
    (
        Operation::Sigmoid,
        [
            0.07585818, 0.26894142, 0.4378235, 0.5, 0.62245933, 0.73105858, 0.95257413,
        ],
    ),
    (Operation::Sign, [-1.0, -1.0, -1.0, 0.0, 1.0, 1.0, 1.0]),
    (
        Operation::Sin,
        [
            -0.59847214,
            -0.84147098,
            -0.24740396,
            0.0,
            0.47942554,
            0.84147098,
            0.14112001,
        ],
    ),
    (
        Operation::Sinh,
        [
            -6.0502045,
            -1.1752012,
            -0.25261232,
            0.0,
            0.52109531,
            1.1752012,
            10.017875,
        ],
    ),
    (
        Operation::Softplus,
        [
            0.078889734,
            0.31326169,
            0.57593942,
            0.69314718,
            0.97407698,
            1.3132617,
            3.0485874,
        ],
    ),
    (
        Operation::Softsign,
        [-0.71428571, -0.5, -0.2, 0.0, 0.33333333, 0.5, 0.75],
    ),
    (
        Operation::Tanh,
        [
            -0.9866143,
            -0.76159416,
            -0.24491866,
            0.0,
            0.46211716,
            0.76159416,
            0.99505475,
        ],
    ),
];

/// Values in binary64 of formulas and of the tables of functions, rounded.
#[test]
fn unary_operations() {
    for (operation, expected) in VALUES {
        assert_close(&unary(operation, |block| block, &ARGUMENTS), &expected);
    }
    assert_close(
        &unary(Operation::Acos, |block| block, &[-1.0, 0.25, 1.0]),
        &[3.1415927, 1.3181161, 0.0],
    );
    assert_close(
        &unary(Operation::Asin, |block| block, &[-1.0, 0.25, 1.0]),
        &[-1.5707963, 0.25268026, 1.5707963],
    );
    assert_close(
        &unary(Operation::Acosh, |block| block, &[1.0, 1.5, 40.0]),
        &[0.0, 0.96242365, 4.3818703],
    );
    assert_close(
        &unary(Operation::Atanh, |block| block, &[-0.5, 0.0, 0.75]),
        &[-0.54930614, 0.0, 0.97295507],
    );
    assert_close(
        &unary(Operation::Log, |block| block, &[0.25, 1.0, 10.0]),
        &[-1.3862944, 0.0, 2.3025851],
    );
    assert_close(
        &unary(Operation::Sqrt, |block| block, &[0.25, 2.0, 0.0]),
        &[0.5, 1.4142136, 0.0],
    );
    assert_eq!(
        unary(Operation::LogicalNot, |block| block, &[0.0, 1.0, -2.0]),
        [1.0, 0.0, 0.0]
    );
}

#[test]
fn nothing_overflows_that_has_a_value() {
    let x = [-60000.0, -100.0, 100.0, 60000.0];
    assert_eq!(
        unary(Operation::Softplus, |block| block, &x),
        [0.0, 3.783506e-44, 100.0, 60000.0]
    );
    assert_eq!(
        unary(Operation::Mish, |block| block, &x)[2..],
        [100.0, 60000.0]
    );
    assert_eq!(unary(Operation::Sigmoid, |block| block, &x)[3], 1.0);
    assert_eq!(
        unary(Operation::Swish, |block| block.float(1.0), &x)[2..],
        [100.0, 60000.0]
    );
}

#[test]
fn operations_with_scalars() {
    let x = [-3.0, -0.5, 0.0, 0.5, 2.5];
    assert_eq!(
        unary(Operation::Clamp, |block| block.float(-0.75).float(1.5), &x),
        [-0.75, -0.5, 0.0, 0.5, 1.5]
    );
    assert_close(
        &unary(Operation::Elu, |block| block.float(2.0), &x),
        &[-1.9004259, -0.78693868, 0.0, 0.5, 2.5],
    );
    assert_close(
        &unary(
            Operation::HardSigmoid,
            |block| block.float(0.25).float(0.5),
            &x,
        ),
        &[0.0, 0.375, 0.5, 0.625, 1.0],
    );
    assert_close(
        &unary(
            Operation::Selu,
            |block| block.float(1.6732632).float(1.0507010),
            &x,
        ),
        &[-1.6705687, -0.69175818, 0.0, 0.5253505, 2.6267525],
    );
    assert_close(
        &unary(Operation::Swish, |block| block.float(1.7), &x),
        &[-0.018179404, -0.14971643, 0.0, 0.35028357, 2.4648409],
    );
    assert_eq!(
        unary(
            Operation::Round,
            |block| block.long(0),
            &[-2.5, -0.5, 0.5, 1.5, 2.6]
        ),
        [-2.0, 0.0, 0.0, 2.0, 3.0]
    );
    assert_eq!(
        unary(
            Operation::Round,
            |block| block.long(1),
            &[-2.5, -0.5, 0.5, 1.5, 2.6]
        ),
        [-3.0, -1.0, 1.0, 2.0, 3.0]
    );
    // Bounds that contradict each other, and NaN.
    assert!(
        unary(
            Operation::Clamp,
            |block| block.float(1.0).float(-1.0),
            &[f32::NAN]
        )[0]
        .is_nan()
    );
    let integers = block()
        .tensor(I32, &[4])
        .tensor(I32, &[4])
        .float(-2.5)
        .float(1.5);
    assert_eq!(
        integers.integers(Operation::Clamp, &[integer(&[-9, -2, 1, 9])]),
        [-2, -2, 1, 1]
    );
}

#[test]
fn binary_operations_on_floats() {
    let (a, b) = ([-7.5, 7.5, 2.0, -2.0], [2.0, -2.0, 0.5, 3.0]);
    let binary = |operation| {
        block()
            .tensor(F16, &[4])
            .tensor(F16, &[4])
            .tensor(F16, &[4])
            .floats(operation, &[float(&a), float(&b)])
    };
    assert_eq!(binary(Operation::Add), [-5.5, 5.5, 2.5, 1.0]);
    assert_eq!(binary(Operation::Subtract), [-9.5, 9.5, 1.5, -5.0]);
    assert_eq!(binary(Operation::Multiply), [-15.0, -15.0, 1.0, -6.0]);
    assert_close(&binary(Operation::Divide), &[-3.75, -3.75, 4.0, -0.6666667]);
    assert_close(
        &binary(Operation::Power),
        &[56.25, 0.017777778, 1.4142136, -8.0],
    );
    assert_eq!(binary(Operation::Maximum), [2.0, 7.5, 2.0, 3.0]);
    assert_eq!(binary(Operation::Minimum), [-7.5, -2.0, 0.5, -2.0]);
    assert_eq!(binary(Operation::TruncatedMod), [-1.5, 1.5, 0.0, -2.0]);
    assert_eq!(binary(Operation::FloorMod), [0.5, -0.5, 0.0, 1.0]);
    assert_eq!(binary(Operation::Prelu), [-15.0, 7.5, 2.0, -6.0]);
    assert_eq!(binary(Operation::LogicalAnd), [1.0; 4]);
}

#[test]
fn binary_operations_on_integers() {
    let binary = |operation, a: &[i64], b: &[i64]| {
        let dims = [a.len() as u32];
        block()
            .tensor(I32, &dims)
            .tensor(I32, &dims)
            .tensor(I32, &dims)
            .run(operation, &[integer(a), integer(b)])
    };
    let values = |operation, a: &[i64], b: &[i64]| {
        binary(operation, a, b).map(|mut outputs| outputs.remove(0))
    };
    assert_eq!(
        values(Operation::Divide, &[-7, 7, -7], &[2, -2, -2]),
        Ok(integer(&[-3, -3, 3]))
    );
    assert_eq!(
        values(Operation::TruncatedMod, &[-7, 7, -7], &[2, -2, -2]),
        Ok(integer(&[-1, 1, -1]))
    );
    assert_eq!(
        values(Operation::FloorMod, &[-7, 7, -7, 6], &[2, -2, -2, -3]),
        Ok(integer(&[1, -1, -1, 0]))
    );
    assert_eq!(
        values(Operation::Power, &[-3, 2, 2, -1, 0], &[3, 31, -1, -3, 0]),
        Ok(integer(&[-27, i64::from(i32::MIN), 0, -1, 1]))
    );
    assert_eq!(
        values(Operation::BitwiseAnd, &[12, -1], &[10, 7]),
        Ok(integer(&[8, 7]))
    );
    assert_eq!(
        values(Operation::BitwiseOr, &[12, -8], &[10, 7]),
        Ok(integer(&[14, -1]))
    );
    assert_eq!(
        values(Operation::BitwiseXor, &[12, -1], &[10, 7]),
        Ok(integer(&[6, -8]))
    );
    assert_eq!(
        values(Operation::Maximum, &[-3, 5], &[2, -8]),
        Ok(integer(&[2, 5]))
    );
    // A result too large for the type wraps.
    assert_eq!(
        values(Operation::Add, &[i64::from(i32::MAX)], &[1]),
        Ok(integer(&[i64::from(i32::MIN)]))
    );
    assert_eq!(
        values(Operation::Multiply, &[1 << 20], &[(1 << 12) + 1]),
        Ok(integer(&[1 << 20]))
    );
    for operation in [
        Operation::Divide,
        Operation::FloorMod,
        Operation::TruncatedMod,
    ] {
        let fault = binary(operation, &[1, 1], &[1, 0]).expect_err("division by zero");
        assert_eq!(
            fault.message,
            format!("{operation}: division by zero in element 1 of int32[2]")
        );
    }
    let not = block()
        .tensor(U8, &[3])
        .tensor(U8, &[3])
        .integers(Operation::BitwiseNot, &[integer(&[0, 255, 0x5a])]);
    assert_eq!(not, [255, 0, 0xa5]);
    let unary = |operation| {
        block()
            .tensor(I32, &[3])
            .tensor(I32, &[3])
            .integers(operation, &[integer(&[-4, 0, 9])])
    };
    assert_eq!(unary(Operation::Abs), [4, 0, 9]);
    assert_eq!(unary(Operation::Negative), [4, 0, -9]);
    assert_eq!(unary(Operation::Sign), [-1, 0, 1]);
    assert_eq!(unary(Operation::BitwiseNot), [3, -1, -10]);
    assert_eq!(unary(Operation::LogicalNot), [0, 1, 0]);
}

#[test]
fn comparisons() {
    let cases = [
        (Operation::Equal, [0, 1, 0, 0]),
        (Operation::Less, [1, 0, 0, 0]),
        (Operation::LessOrEqual, [1, 1, 0, 0]),
        (Operation::Greater, [0, 0, 1, 0]),
        (Operation::GreaterOrEqual, [0, 1, 1, 0]),
    ];
    for (operation, expected) in cases {
        let floats = block().tensor(F16, &[4]).tensor(F16, &[4]).tensor(I8, &[4]);
        let found = floats.integers(
            operation,
            &[float(&[1.0, 2.0, 3.0, f32::NAN]), float(&[2.0; 4])],
        );
        assert_eq!(found, expected, "{operation}");
        let integers = block().tensor(I32, &[3]).tensor(I32, &[1]).tensor(I8, &[3]);
        assert_eq!(
            integers.integers(operation, &[integer(&[1, 2, 3]), integer(&[2])]),
            expected[..3],
            "{operation}"
        );
    }
}

#[test]
fn logic_on_zeros_and_ones() {
    let (a, b) = (float(&[0.0, 0.0, 1.0, 1.0]), float(&[0.0, 1.0, 0.0, 1.0]));
    let logic = |operation| {
        block()
            .tensor(F16, &[4])
            .tensor(F16, &[4])
            .tensor(F16, &[4])
            .floats(operation, &[a.clone(), b.clone()])
    };
    assert_eq!(logic(Operation::LogicalAnd), [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(logic(Operation::LogicalOr), [0.0, 1.0, 1.0, 1.0]);
    assert_eq!(logic(Operation::LogicalXor), [0.0, 1.0, 1.0, 0.0]);
}

#[test]
fn select_broadcasts() {
    let floats = block()
        .tensor(F16, &[3, 1])
        .tensor(F16, &[1, 2])
        .tensor(F16, &[1, 1])
        .tensor(F16, &[3, 2]);
    let found = floats.floats(
        Operation::Select,
        &[float(&[1.0, 0.0, -1.0]), float(&[5.0, 6.0]), float(&[9.0])],
    );
    assert_eq!(found, [5.0, 9.0, 5.0, 6.0, 9.0, 6.0]);
    let integers = block()
        .tensor(I32, &[3])
        .tensor(I32, &[3])
        .tensor(I32, &[3])
        .tensor(I32, &[3]);
    let found = integers.integers(
        Operation::Select,
        &[
            integer(&[1, 0, 2]),
            integer(&[1, 2, 3]),
            integer(&[4, 5, 6]),
        ],
    );
    assert_eq!(found, [1, 5, 3]);
}

#[test]
fn shapes_and_types_that_do_not_fit_are_faults() {
    let fault =
        |block: Block, inputs: &[Values]| block.run(Operation::Add, inputs).expect_err("no fit");
    let dims = block()
        .tensor(F16, &[3])
        .tensor(F16, &[2])
        .tensor(F16, &[3]);
    assert_eq!(
        fault(dims, &[float(&[0.0; 3]), float(&[0.0; 2])]).message,
        "add: dims [2] do not repeat to the output's [3]"
    );
    let kinds = block()
        .tensor(F16, &[1])
        .tensor(I32, &[1])
        .tensor(F16, &[1]);
    assert_eq!(
        fault(kinds, &[float(&[0.0]), integer(&[0])]).message,
        "add: input 1: expected floating point, found int32[1]"
    );
    let output = block()
        .tensor(F16, &[3])
        .tensor(F16, &[3])
        .tensor(I32, &[3]);
    assert_eq!(
        fault(output, &[float(&[0.0; 3]), float(&[0.0; 3])]).message,
        "add: values of the wrong kind for a tensor int32[3]"
    );
    let bits = block().tensor(F16, &[1]).tensor(F16, &[1]);
    let fault = bits
        .run(Operation::BitwiseNot, &[float(&[0.0])])
        .expect_err("no bits");
    assert_eq!(
        (fault.unsupported, fault.message.as_str()),
        (true, "bitwise-not: on float16[1]")
    );
}

fn dims_and_repeats() -> impl Strategy<Value = (Vec<u32>, Vec<bool>, Vec<bool>)> {
    (1usize..6).prop_flat_map(|rank| {
        let flags = || prop::collection::vec(any::<bool>(), rank);
        (prop::collection::vec(1u32..5, rank), flags(), flags())
    })
}

proptest! {
    /// Coordinates, one element at a time, against the folded walk.
    #[test]
    fn broadcasting_is_by_coordinates((dims, repeat_a, repeat_b) in dims_and_repeats()) {
        let input = |repeat: &[bool]| -> Vec<u32> { dims.iter().zip(repeat).map(|(dim, repeat)| if *repeat { 1 } else { *dim }).collect() };
        let (a_dims, b_dims) = (input(&repeat_a), input(&repeat_b));
        let count = |dims: &[u32]| dims.iter().product::<u32>() as usize;
        let (a, b) = (data(count(&a_dims)), data(count(&b_dims) + 1)[1..].to_vec());
        let at = |dims: &[u32], mut number: usize, full: &[u32]| {
            let (mut at, mut stride) = (0, 1);
            for (dim, size) in dims.iter().zip(full) {
                let coordinate = number % *size as usize;
                number /= *size as usize;
                at += if *dim == 1 { 0 } else { coordinate * stride };
                stride *= *dim as usize;
            }
            at
        };
        let expected: Vec<f32> = (0..count(&dims)).map(|number| a[at(&a_dims, number, &dims)] - b[at(&b_dims, number, &dims)]).collect();
        let block = block().tensor(F32, &a_dims).tensor(F32, &b_dims).tensor(F32, &dims);
        prop_assert_eq!(block.floats(Operation::Subtract, &[Values::Float(a), Values::Float(b)]), expected);
    }
}

#[test]
fn numbers_that_are_not_finite() {
    let x = [0.0, -1.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let found = |operation: Operation, element: u32| {
        let block = block().tensor(F16, &[5]).tensor(element, &[5]);
        block
            .run(operation, &[float(&x)])
            .expect("it runs")
            .swap_remove(0)
    };
    assert_eq!(found(Operation::IsFinite, I8), integer(&[1, 1, 0, 0, 0]));
    assert_eq!(found(Operation::IsInfinite, I8), integer(&[0, 0, 1, 1, 0]));
    assert_eq!(
        found(Operation::IsInfinite, F16),
        float(&[0.0, 0.0, 1.0, 1.0, 0.0])
    );
}
