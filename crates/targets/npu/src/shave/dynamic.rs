//! Kernels of programs whose shapes have upper bounds: shapes as tensors, and what moves elements from one shape to another.
//!
//! Chipless runs these programs at the upper bounds. Where the program computes other sizes than the shapes of the references say,
//! the run stops: what is read and written then is not known.

use super::index::pick;
use super::movement::places;
use super::tensor::{Call, Values};
use chipless_model::Fault;

/// Sizes as a program keeps them, innermost first, in the order of the model.
pub(super) fn shape_of(call: Call<'_>) -> Result<Values, Fault> {
    let sizes = call.integers(0)?.iter().rev().copied();
    Ok(Values::Integer(sizes.collect()))
}

/// From computed sizes to upper bounds, which here are the same.
pub(super) fn expand(call: Call<'_>) -> Result<Values, Fault> {
    let (x, output) = (call.input(0)?, call.output(0)?);
    if x.shape.dims != output.dims {
        return Err(call.fault(format_args!("{} does not give {output}", x.shape)));
    }
    Ok(x.values.clone())
}

/// The elements of x in the order of memory. In the shape −1 is what the others leave, and 0 the size of x.
pub(super) fn reshape(call: Call<'_>) -> Result<Values, Fault> {
    let (x, shape, output) = (call.input(0)?, call.integers(1)?, call.output(0)?);
    call.expect_elements("x", &x.shape, output.elements() as usize)?;
    if shape.len() != output.dims.len() {
        return Err(call.fault(format_args!("{} sizes for {output}", shape.len())));
    }
    let inferred = shape.iter().filter(|size| **size == -1).count();
    for (logical, size) in shape.iter().enumerate() {
        let bound = output.dims[call.memory_axis(output, logical)?];
        let of_x = || {
            let axis = x.shape.memory_axis(logical);
            axis.and_then(|axis| x.shape.dims.get(axis)) == Some(&bound)
        };
        let fits = match size {
            0 => of_x(),
            -1 => inferred == 1,
            _ => *size == i64::from(bound),
        };
        if !fits {
            return Err(below(call, &format!("the shape {shape:?}")));
        }
    }
    Ok(x.values.clone())
}

/// A part of each dim with steps. Arrays are dims of the model, outermost first; what is not given is a tensor, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StridedSlice {
    /// First places; negative ones count from the end.
    pub begin: Option<[i64; 4]>,
    /// Places behind the last; negative ones count from the end, and zero is the end.
    pub end: Option<[i64; 4]>,
    /// Steps; zero for a dim that is taken whole.
    pub step: Option<[i64; 4]>,
}

impl StridedSlice {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (x, output) = (call.input(0)?, call.output(0)?);
        let rank = output.dims.len();
        if x.shape.dims.len() != rank || rank > 4 || x.shape.order != output.order {
            return Err(call.fault(format_args!("{} does not give {output}", x.shape)));
        }
        let mut tensor = 0;
        let mut figures = |given: Option<[i64; 4]>| -> Result<Vec<i64>, Fault> {
            if let Some(given) = given {
                return Ok(given.to_vec());
            }
            tensor += 1;
            let values = call.integers(tensor)?;
            if values.len() > rank {
                return Err(call.fault(format_args!("{} figures for {rank} dims", values.len())));
            }
            Ok(values.to_vec())
        };
        let (begins, ends, steps) = (
            figures(self.begin)?,
            figures(self.end)?,
            figures(self.step)?,
        );
        let mut parts = vec![(0, 1); rank];
        for logical in 0..rank {
            let axis = call.memory_axis(output, logical)?;
            let size = i64::from(x.shape.dims[axis]);
            let figure = |figures: &[i64]| figures.get(logical).copied().unwrap_or(0);
            let (begin, end, step) = (figure(&begins), figure(&ends), figure(&steps));
            let (begin, end, step) = match step {
                0 => (0, size, 1),
                _ if step < 0 => return Err(call.unsupported("a negative step")),
                _ => (begin, if end == 0 { size } else { end }, step),
            };
            let inside = |place: i64| {
                let place = if place < 0 {
                    place.saturating_add(size)
                } else {
                    place
                };
                place.clamp(0, size)
            };
            let (begin, end) = (inside(begin), inside(end));
            let count = (end - begin).max(0) as u64;
            if count.div_ceil(step as u64) != u64::from(output.dims[axis]) {
                return Err(below(
                    call,
                    &format!("places {begin} to {end} of {size} by {step}"),
                ));
            }
            parts[axis] = (begin as usize, step as usize);
        }
        let picked = places(output, |coordinates| {
            let from = coordinates.iter().zip(&parts);
            x.shape
                .number_at(from.map(|(at, (begin, step))| begin + at * step))
        });
        Ok(pick(&x.values, &picked))
    }
}

/// The run is not at the upper bounds.
fn below(call: Call<'_>, what: &str) -> Fault {
    let bounds = call.outputs.first().map(ToString::to_string);
    call.unsupported(format_args!(
        "{what}, where its upper bounds are {}: a run below the upper bounds",
        bounds.unwrap_or_default()
    ))
}
