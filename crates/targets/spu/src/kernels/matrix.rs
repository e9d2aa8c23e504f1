//! `matmul` and `addmm`: integer matrix products, exact in 64 bits.
//!
//! The common case is a vector of 16-bit activations by a matrix of 8-bit weights. Products are then summed in 32 bits
//! for as many rows as cannot overflow, and those sums in 64 bits: the result is the same, and vector units like it. The
//! additions are wrapping ones, since checks for an overflow that cannot happen would keep them off vector units.

use super::watch::Watch;
use crate::fqir::tensor::{BLOCK, Element, Tensor, load, load_all, rounded_shift, saturate, store};
use chipless_model::{Access, Direction, Storage};

/// `out[r, c] = clip(shift(Σ_k x[r, k] · y[k, c] + bias))`.
#[derive(Debug)]
pub(crate) struct Matrix {
    /// `rows × inner`, row-major.
    pub(crate) x: Tensor,
    /// `inner × columns`, row-major.
    pub(crate) y: Tensor,
    pub(crate) rows: usize,
    pub(crate) inner: usize,
    pub(crate) columns: usize,
    /// Added to the sums, and its strides along rows and columns.
    pub(crate) bias: Option<Bias>,
    pub(crate) out: Tensor,
    pub(crate) shift: i32,
    pub(crate) bits: u8,
    pub(crate) rounded: bool,
}

/// A bias, shifted and clipped to the 32 bits of an accumulator before it is added.
#[derive(Debug)]
pub(crate) struct Bias {
    pub(crate) tensor: Tensor,
    pub(crate) shift: i32,
    /// Elements from a row to the next, from a column to the next.
    pub(crate) strides: (usize, usize),
}

/// Bits of an entry of an accumulator.
const ACCUMULATOR_BITS: u8 = 32;

impl Matrix {
    pub(super) fn execute<W: Watch>(&self, storage: &mut Storage<'_>, watch: &mut W) {
        let bias = self
            .bias
            .as_ref()
            .map(|b| (b, load_all(storage, &b.tensor)));
        let mut row = vec![0; self.inner];
        for r in 0..self.rows {
            load(
                storage.bytes(self.x.buffer),
                self.x.element,
                r * self.inner,
                &mut row,
            );
            for start in (0..self.columns).step_by(BLOCK) {
                let mut sums = [0i64; BLOCK];
                let sums = &mut sums[..BLOCK.min(self.columns - start)];
                self.product(storage.bytes(self.y.buffer), &row, start, sums);
                for (c, sum) in sums.iter_mut().enumerate() {
                    if let Some((b, values)) = &bias {
                        let value = values[r * b.strides.0 + (start + c) * b.strides.1];
                        *sum = sum.wrapping_add(saturate(
                            rounded_shift(value, b.shift, self.rounded),
                            ACCUMULATOR_BITS,
                        ));
                    }
                    watch.sum(*sum);
                    *sum = watch.clip(rounded_shift(*sum, self.shift, self.rounded), self.bits);
                }
                store(
                    storage.bytes_mut(self.out.buffer),
                    self.out.element,
                    r * self.columns + start,
                    sums,
                );
            }
        }
    }

    /// Adds a row of `x` by the columns from `start` on.
    fn product(&self, bytes: &[u8], row: &[i64], start: usize, sums: &mut [i64]) {
        let narrow = matches!(self.x.element, Element::I8 | Element::I16);
        match (self.y.element, narrow) {
            // 2^15 · 2^7 · 2^8 = 2^30 fits 31 bits.
            (Element::I8, true) => {
                for (number, rows) in row.chunks(256).enumerate() {
                    let mut part = [0i32; BLOCK];
                    let part = &mut part[..sums.len()];
                    for (k, x) in rows.iter().enumerate().filter(|(_, x)| **x != 0) {
                        let x = *x as i16;
                        let at = (number * 256 + k) * self.columns + start;
                        let weights = &bytes[at..at + part.len()];
                        part.iter_mut().zip(weights).for_each(|(s, w)| {
                            *s = s.wrapping_add(i32::from(x).wrapping_mul(i32::from(*w as i8)));
                        });
                    }
                    sums.iter_mut()
                        .zip(part)
                        .for_each(|(s, p)| *s = s.wrapping_add(i64::from(*p)));
                }
            }
            (Element::I16, true) => {
                for (k, x) in row.iter().enumerate().filter(|(_, x)| **x != 0) {
                    let x = *x as i16;
                    let at = (k * self.columns + start) * 2;
                    let weights = bytes[at..at + sums.len() * 2].as_chunks::<2>().0;
                    sums.iter_mut().zip(weights).for_each(|(s, w)| {
                        *s = s.wrapping_add(i64::from(
                            i32::from(x).wrapping_mul(i32::from(i16::from_le_bytes(*w))),
                        ));
                    });
                }
            }
            _ => {
                let mut weights = [0; BLOCK];
                let weights = &mut weights[..sums.len()];
                for (k, x) in row.iter().enumerate() {
                    load(bytes, self.y.element, k * self.columns + start, weights);
                    sums.iter_mut()
                        .zip(&*weights)
                        .for_each(|(s, w)| *s = s.wrapping_add(x.wrapping_mul(*w)));
                }
            }
        }
    }

    pub(super) fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        visit(self.x.access(Direction::Read));
        visit(self.y.access(Direction::Read));
        if let Some(bias) = &self.bias {
            visit(bias.tensor.access(Direction::Read));
        }
        visit(self.out.access(Direction::Write));
    }

    /// Each product needs its weight: the larger operand is read once for each row or column of the other.
    pub(super) fn words(&self) -> u64 {
        let macs = (self.rows as u64)
            .saturating_mul(self.inner as u64)
            .saturating_mul(self.columns as u64);
        let weight = if self.x.count() > self.y.count() {
            self.x.element
        } else {
            self.y.element
        };
        macs.saturating_mul(weight.bytes())
            .div_ceil(8)
            .max(self.out.words())
    }
}
