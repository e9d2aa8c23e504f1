use super::*;
use std::f64::consts::TAU;

/// The factors of a transform, as the compiler writes them: `sign` is −1, or 1 for inverses.
fn factors(sizes: &[usize], sign: f64) -> Values {
    let mut table = Vec::new();
    for size in sizes {
        for number in 0..size * size {
            let turn = TAU * ((number / size) * (number % size)) as f64 / *size as f64;
            table.extend([turn.cos() as f32, (sign * turn.sin()) as f32]);
        }
    }
    Values::Float(table)
}

fn run(
    operation: Operation,
    x: (&[u32], &[f32]),
    sizes: &[usize],
    y: &[u32],
    axes: &[i64],
) -> Result<Values, Fault> {
    let inverse = matches!(
        operation,
        Operation::InverseFourier | Operation::InverseRealFourier
    );
    let table = factors(sizes, if inverse { 1.0 } else { -1.0 });
    let count = 2 * sizes.iter().map(|size| (size * size) as u32).sum::<u32>();
    let block = block()
        .tensor(F16, x.0)
        .tensor(F16, &[count])
        .tensor(F16, y);
    let block = block.long(axes.len() as i64).longs(axes).longs(&[0; 4]);
    let found = block.run(operation, &[float(x.1), table])?;
    Ok(found[0].clone())
}

#[track_caller]
fn expect(found: Result<Values, Fault>, expected: &[f32]) {
    match found {
        Ok(Values::Float(found)) => assert_close(&found, expected),
        other => panic!("{other:?}"),
    }
}

/// Against `numpy.fft`.
#[test]
fn transforms_of_complex_numbers() {
    let x = [1.0, 0.0, 2.0, -1.0, 0.0, -1.0, -1.0, 2.0];
    let forth = [2.0, 0.0, -2.0, -2.0, 0.0, -2.0, 4.0, 4.0];
    expect(
        run(Operation::Fourier, (&[2, 4], &x), &[4], &[2, 4], &[1]),
        &forth,
    );
    expect(
        run(
            Operation::InverseFourier,
            (&[2, 4], &forth),
            &[4],
            &[2, 4],
            &[1],
        ),
        &x,
    );
    // The first two places alone, and two behind them.
    expect(
        run(Operation::Fourier, (&[2, 4], &x), &[2], &[2, 2], &[1]),
        &[3.0, -1.0, -1.0, 1.0],
    );
    expect(
        run(Operation::Fourier, (&[2, 2], &x[..4]), &[4], &[2, 4], &[1]),
        &[3.0, -1.0, 0.0, -2.0, -1.0, 1.0, 2.0, 2.0],
    );
    // Columns of two rows, then rows too.
    let columns = [1.0, -1.0, 1.0, 1.0, 1.0, 1.0, 3.0, -3.0];
    expect(
        run(Operation::Fourier, (&[2, 2, 2], &x), &[2], &[2, 2, 2], &[2]),
        &columns,
    );
    expect(
        run(
            Operation::Fourier,
            (&[2, 2, 2], &x),
            &[2, 2],
            &[2, 2, 2],
            &[2, 1],
        ),
        &[2.0, 0.0, 0.0, -2.0, 4.0, -2.0, -2.0, 4.0],
    );
}

#[test]
fn transforms_of_real_numbers() {
    let x = [1.0, 2.0, 3.0, 4.0, 0.0];
    let four = [10.0, 0.0, -2.0, 2.0, -2.0, 0.0];
    expect(
        run(Operation::RealFourier, (&[5], &x), &[4], &[2, 3], &[0]),
        &four,
    );
    expect(
        run(
            Operation::InverseRealFourier,
            (&[2, 3], &four),
            &[4],
            &[4],
            &[1],
        ),
        &x[..4],
    );
    // Five places have three that are no conjugates as well: the table tells.
    let five = [10.0, 0.0, -4.045_085, -1.314_328, 1.545_085, -2.126_627];
    expect(
        run(Operation::RealFourier, (&[5], &x), &[5], &[2, 3], &[0]),
        &five,
    );
    expect(
        run(
            Operation::InverseRealFourier,
            (&[2, 3], &five),
            &[5],
            &[5],
            &[1],
        ),
        &x,
    );
    // Rows of two, and the columns.
    let square = [10.0, 0.0, -2.0, 0.0, -4.0, 0.0, 0.0, 0.0];
    expect(
        run(
            Operation::RealFourier,
            (&[2, 2], &x[..4]),
            &[2, 2],
            &[2, 2, 2],
            &[1, 0],
        ),
        &square,
    );
    expect(
        run(
            Operation::InverseRealFourier,
            (&[2, 2, 2], &square),
            &[2, 2],
            &[2, 2],
            &[2, 1],
        ),
        &x[..4],
    );
}

#[test]
fn what_is_no_transform_is_refused() {
    let refused = |x: &[u32], sizes: &[usize], y: &[u32], axes: &[i64]| {
        let values = data(x.iter().product::<u32>() as usize);
        let found = run(Operation::Fourier, (x, &values), sizes, y, axes);
        found.expect_err("no transform").message
    };
    assert!(
        refused(&[2, 4], &[4], &[2, 4], &[0]).ends_with("real and imaginary parts are no axis")
    );
    assert!(refused(&[3, 4], &[4], &[3, 4], &[1]).ends_with("dims [3, 4] do not begin with 2"));
    assert!(
        refused(&[2, 4], &[3], &[2, 4], &[1])
            .ends_with("9 factors are left for 4 places along memory dim 0")
    );
    assert!(
        refused(&[2, 4, 3], &[4], &[2, 4], &[1])
            .ends_with("float16[2, 4, 3] does not give float16[2, 4]")
    );
    assert!(refused(&[2, 4, 3], &[4], &[2, 4, 1], &[1]).contains("does not give"));
}
