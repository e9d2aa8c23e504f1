//! Matrix products and convolutions by SHAVE, which compilers leave to the DPU where they can. Sums are kept in binary64, but for those of attention.

use super::tensor::{Call, Values};
use super::volume::Volume;
use chipless_model::Fault;

/// x [rows, inner] times weights [columns, inner], the last one innermost, plus a bias [columns] where there is one.
pub(super) fn fully_connected(call: Call<'_>) -> Result<Values, Fault> {
    let (x, weights) = (call.floats(0)?, call.floats(1)?);
    let inner = call.around(&call.input(0)?.shape, 0)?.size;
    if call.around(&call.input(1)?.shape, 0)?.size != inner {
        return Err(call.fault(format_args!(
            "rows of {} and {} differ in length",
            call.input(0)?.shape,
            call.input(1)?.shape
        )));
    }
    let columns = weights.len() / inner;
    call.expect_elements("output", call.output(0)?, x.len() / inner * columns)?;
    let none = vec![0.0; columns];
    let biases = if call.inputs.len() > 2 {
        call.floats(2)?
    } else {
        &none
    };
    if biases.len() != columns {
        return Err(call.fault(format_args!(
            "{} biases for {columns} columns",
            biases.len()
        )));
    }
    let product = |row: &[f32], column: &[f32], bias: f32| {
        let terms = row.iter().zip(column);
        let sum: f64 = terms.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        (sum + f64::from(bias)) as f32
    };
    let columns = || weights.chunks_exact(inner).zip(biases);
    let results = x
        .chunks_exact(inner)
        .flat_map(|row| columns().map(move |(column, bias)| product(row, column, *bias)));
    Ok(Values::Float(results.collect()))
}

/// A convolution over height and width; arrays are in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// Steps of the window.
    pub stride: [u32; 2],
    /// Places before the tensor, of zeros.
    pub pad_begin: [u32; 2],
    /// Places after.
    pub pad_end: [u32; 2],
    /// Distance of the window's places.
    pub dilation: [u32; 2],
    /// Groups of channels that have nothing to do with each other.
    pub groups: u32,
}

impl Convolution {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (values, weights) = (call.floats(0)?, call.floats(1)?);
        let output = call.output(0)?;
        let x = Volume::new(call, &call.input(0)?.shape)?;
        let w = Volume::new(call, &call.input(1)?.shape)?;
        let y = Volume::new(call, output)?;
        let groups = self.groups as usize;
        let fits = |axis: usize| {
            let padded =
                x.sizes[3 + axis] + self.pad_begin[axis] as usize + self.pad_end[axis] as usize;
            let window = (w.sizes[3 + axis] - 1) * self.dilation[axis] as usize + 1;
            (y.sizes[3 + axis] - 1) * self.stride[axis] as usize + window <= padded
        };
        if y.sizes[0] != x.sizes[0]
            || y.sizes[1] != w.sizes[0]
            || !y.sizes[1].is_multiple_of(groups)
            || x.sizes[1] != w.sizes[1] * groups
            || [x, w, y].iter().any(|volume| volume.sizes[2] != 1)
            || !(fits(0) && fits(1))
        {
            return Err(call.fault(format_args!(
                "{} with weights {} in {groups} groups does not give {output}",
                call.input(0)?.shape,
                call.input(1)?.shape
            )));
        }
        let place = |axis: usize, step: usize, tap: usize| {
            (step * self.stride[axis] as usize + tap * self.dilation[axis] as usize)
                .checked_sub(self.pad_begin[axis] as usize)
                .filter(|place| *place < x.sizes[3 + axis])
        };
        let each = y.sizes[1] / groups;
        let mut results = vec![0.0; output.elements() as usize];
        for batch in 0..y.sizes[0] {
            for channel in 0..y.sizes[1] {
                for row in 0..y.sizes[3] {
                    for column in 0..y.sizes[4] {
                        let mut sum = 0.0;
                        for ky in 0..w.sizes[3] {
                            let Some(down) = place(0, row, ky) else {
                                continue;
                            };
                            for kx in 0..w.sizes[4] {
                                let Some(across) = place(1, column, kx) else {
                                    continue;
                                };
                                for from in 0..w.sizes[1] {
                                    let input = channel / each * w.sizes[1] + from;
                                    sum += f64::from(values[x.at([batch, input, 0, down, across])])
                                        * f64::from(weights[w.at([channel, from, 0, ky, kx])]);
                                }
                            }
                        }
                        results[y.at([batch, channel, 0, row, column])] = sum as f32;
                    }
                }
            }
        }
        Ok(Values::Float(results))
    }
}

/// Which tensors come after q, k and v.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attention {
    /// Added to the products.
    pub mask: bool,
    /// The factor of the products; one over the root of q's width without.
    pub scale: bool,
}

impl Attention {
    /// softmax(q · kᵀ · scale + mask) · v for each head: q [n, e], k [m, e], v [m, width]. All in binary32.
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (q, k, v) = (call.floats(0)?, call.floats(1)?, call.floats(2)?);
        let dims = |index: usize| -> Result<[usize; 3], Fault> {
            let shape = &call.input(index)?.shape;
            match shape.dims.as_slice() {
                [width, rows, heads @ ..] => Ok([
                    *width as usize,
                    *rows as usize,
                    heads.iter().map(|dim| *dim as usize).product(),
                ]),
                _ => Err(call.fault(format_args!("expected two dims, found {shape}"))),
            }
        };
        let ([e, n, heads], [k_width, m, k_heads], [width, v_rows, v_heads]) =
            (dims(0)?, dims(1)?, dims(2)?);
        if k_width != e || v_rows != m || [k_heads, v_heads] != [heads; 2] {
            return Err(call.fault(format_args!(
                "q {}, k {} and v {} do not fit",
                call.input(0)?.shape,
                call.input(1)?.shape,
                call.input(2)?.shape
            )));
        }
        call.expect_elements("output", call.output(0)?, heads * n * width)?;
        let scale = self.scale(call, e)?;
        let mut results = Vec::with_capacity(heads * n * width);
        self.each_row(call, heads * n, m, |row, weights| {
            let (q, head) = (&q[row * e..][..e], row / n);
            let keys = k[head * m * e..][..m * e].chunks_exact(e);
            for (weight, key) in weights.iter_mut().zip(keys) {
                *weight += scale * q.iter().zip(key).map(|(q, k)| q * k).sum::<f32>();
            }
            let highest = weights.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            for weight in &mut *weights {
                *weight = (*weight - highest).exp();
            }
            let sum: f32 = weights.iter().sum();
            let values = &v[head * m * width..][..m * width];
            results.extend((0..width).map(|at| {
                let column = values.iter().skip(at).step_by(width);
                column.zip(&*weights).map(|(v, w)| v * w).sum::<f32>() / sum
            }));
        })?;
        Ok(Values::Float(results))
    }

    fn scale(&self, call: Call<'_>, width: usize) -> Result<f32, Fault> {
        if !self.scale {
            return Ok(1.0 / (width as f32).sqrt());
        }
        let index = 3 + usize::from(self.mask);
        call.expect_elements("scale", &call.input(index)?.shape, 1)?;
        Ok(call.floats(index)?[0])
    }

    /// Visits each query with its mask: zeros without.
    fn each_row(
        &self,
        call: Call<'_>,
        queries: usize,
        keys: usize,
        mut visit: impl FnMut(usize, &mut [f32]),
    ) -> Result<(), Fault> {
        let (mut row, mut weights) = (0, Vec::with_capacity(keys));
        if !self.mask {
            for row in 0..queries {
                weights.clear();
                weights.resize(keys, 0.0);
                visit(row, &mut weights);
            }
            return Ok(());
        }
        let mask = call.floats(3)?;
        let mut products = call.input(0)?.shape.dims.clone();
        products[0] = keys as u32;
        call.broadcast(&products, [3])?.for_each(|[at]| {
            weights.push(mask[at]);
            if weights.len() == keys {
                visit(row, &mut weights);
                weights.clear();
                row += 1;
            }
        });
        Ok(())
    }
}
