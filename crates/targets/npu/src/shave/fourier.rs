//! Discrete Fourier transforms along some dims, with the factors that a table gives.
//!
//! A complex tensor has its real and imaginary parts as the innermost dim. The table has for each axis, in the order of the axes, the
//! n × n factors of a transform of n places: complex, those of one output together. The n places are the first of the input, or the
//! input and zeros behind it.

use super::operation::Operation;
use super::tensor::{Around, Call, Values};
use chipless_model::Fault;

/// The axes of a transform: memory dims of the input, innermost 0. Where one side is real, the last of them has only the first n / 2 + 1
/// places of the complex side, since the others are their conjugates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fourier {
    /// Each one once, and none that holds real and imaginary parts.
    pub axes: Vec<usize>,
}

type Complex = [f32; 2];

impl Fourier {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (x, table, output) = (call.floats(0)?, call.floats(1)?, call.output(0)?);
        let input = &call.input(0)?.shape;
        let (table, _) = table.as_chunks::<2>();
        let (from_real, to_real) = (
            call.operation == Operation::RealFourier,
            call.operation == Operation::InverseRealFourier,
        );
        let mut dims = places(call, &input.dims, from_real)?;
        let outputs = places(call, &output.dims, to_real)?;
        let mut values: Vec<Complex> = if from_real {
            x.iter().map(|x| [*x, 0.0]).collect()
        } else {
            x.as_chunks::<2>().0.to_vec()
        };
        let lines = self.lines(call, &outputs, table)?;
        // What is not used goes first, so that nothing between is larger than the result.
        for (axis, line) in &lines {
            let Some(size) = dims.get(*axis).filter(|_| dims.len() == outputs.len()) else {
                return Err(call.fault(format_args!("{input} does not give {output}")));
            };
            let (around, used) = (around(&dims, *axis), line.length.min(*size));
            values = values
                .chunks_exact((around.size * around.inner).max(1))
                .flat_map(|lines| &lines[..used * around.inner])
                .copied()
                .collect();
            dims[*axis] = used;
        }
        for (axis, line) in &lines {
            values = line.along(&values, around(&dims, *axis));
            dims[*axis] = line.outputs;
        }
        if dims != outputs {
            return Err(call.fault(format_args!("{input} does not give {output}")));
        }
        Ok(Values::Float(if to_real {
            values.iter().map(|[real, _]| *real).collect()
        } else {
            values.into_flattened()
        }))
    }

    /// By axis, counted without the dim of real and imaginary parts, the transform along it.
    fn lines<'t>(
        &self,
        call: Call<'_>,
        outputs: &[usize],
        table: &'t [Complex],
    ) -> Result<Vec<(usize, Line<'t>)>, Fault> {
        let from_real = call.operation == Operation::RealFourier;
        let to_real = call.operation == Operation::InverseRealFourier;
        let mut rest = table;
        let mut lines = Vec::with_capacity(self.axes.len());
        for (number, axis) in self.axes.iter().enumerate() {
            let axis = axis.checked_sub(usize::from(!from_real));
            let size = axis.and_then(|axis| outputs.get(axis));
            let (Some(axis), Some(size)) = (axis, size) else {
                return Err(call.fault("real and imaginary parts are no axis"));
            };
            let is_last = number + 1 == self.axes.len();
            // Only the table tells 2k places from 2k + 1.
            let length = if from_real && is_last {
                rest.len().isqrt()
            } else {
                *size
            };
            let factors = length.saturating_mul(length);
            if *size > length || factors > rest.len() {
                return Err(call.fault(format_args!(
                    "{} factors are left for {size} places along memory dim {axis}",
                    rest.len()
                )));
            }
            let (factors, others) = rest.split_at(factors);
            rest = others;
            let line = Line {
                factors,
                length,
                half: to_real && is_last,
                outputs: *size,
                is_inverse: to_real || call.operation == Operation::InverseFourier,
            };
            lines.push((axis, line));
        }
        Ok(lines)
    }
}

/// The dims of a tensor but that of real and imaginary parts.
fn places(call: Call<'_>, dims: &[u32], is_real: bool) -> Result<Vec<usize>, Fault> {
    let dims = match dims {
        dims if is_real => dims,
        [2, dims @ ..] => dims,
        _ => return Err(call.fault(format_args!("dims {dims:?} do not begin with 2"))),
    };
    Ok(dims.iter().map(|dim| *dim as usize).collect())
}

fn around(dims: &[usize], axis: usize) -> Around {
    Around {
        inner: dims[..axis].iter().product(),
        size: dims[axis],
        outer: dims[axis + 1..].iter().product(),
    }
}

/// The transform of one line.
struct Line<'a> {
    /// `length` of them for each output.
    factors: &'a [Complex],
    length: usize,
    /// The line has the first half of the places, and the result is real.
    half: bool,
    outputs: usize,
    is_inverse: bool,
}

impl Line<'_> {
    fn along(&self, values: &[Complex], around: Around) -> Vec<Complex> {
        let mut results = vec![[0.0; 2]; around.outer * self.outputs * around.inner];
        let mut line = vec![[0.0; 2]; self.length];
        let scale = if self.is_inverse {
            1.0 / self.length as f32
        } else {
            1.0
        };
        for outer in 0..around.outer {
            for inner in 0..around.inner {
                for (place, value) in line.iter_mut().enumerate() {
                    *value = self.value(place, around.size, |place| {
                        values[(outer * around.size + place) * around.inner + inner]
                    });
                }
                let rows = self.factors.chunks_exact(self.length).take(self.outputs);
                for (number, row) in rows.enumerate() {
                    let sum = line.iter().zip(row).fold([0.0; 2], |sum: Complex, (x, f)| {
                        [
                            sum[0] + x[0] * f[0] - x[1] * f[1],
                            sum[1] + x[0] * f[1] + x[1] * f[0],
                        ]
                    });
                    results[(outer * self.outputs + number) * around.inner + inner] =
                        sum.map(|part| part * scale);
                }
            }
        }
        results
    }

    /// What stands at a place of the transform, given the first `size` places of a line.
    fn value(&self, place: usize, size: usize, at: impl Fn(usize) -> Complex) -> Complex {
        let known = |place: usize| if place < size { at(place) } else { [0.0; 2] };
        if self.half && place > self.length / 2 {
            let [real, imaginary] = known(self.length - place);
            [real, -imaginary]
        } else {
            known(place)
        }
    }
}
