//! Dense matrix products.
//!
//! Every sum is one chain of additions in the order of depth, whatever the blocks, the instruction set
//! and the number of threads; with floats, each product is fused into its addition where the CPU can (x86-64 with AVX2 and
//! FMA, every `AArch64`). Threads share the blocks of the output, never the depth.

use crate::cast::decode_f32;
use crate::prefetch::prefetch;
use crate::{Error, Number, Update};
use chipless_model::ElementType;
pub use panels::{Decode, Half, Panels};
use product::{Columns, Product};
use rows::Rows;
use std::ops::Range;
use tile::Then;

pub(crate) mod panels;
pub(crate) mod product;
pub(crate) mod rows;
pub(crate) mod tile;

#[cfg(test)]
mod tests;

/// A matrix stored row by row.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, T> {
    elements: &'a [T],
    rows: usize,
    columns: usize,
    stride: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// Rows side by side, which must be all of `elements`.
    pub fn new(elements: &'a [T], rows: usize, columns: usize) -> Result<Matrix<'a, T>, Error> {
        let expected = rows as u128 * columns as u128;
        if expected != elements.len() as u128 {
            return Err(Error::Length {
                operand: "matrix",
                expected,
                found: elements.len(),
            });
        }
        Ok(Matrix {
            elements,
            rows,
            columns,
            stride: columns,
        })
    }

    /// Rows `stride` elements apart. The last one need not be followed by a gap.
    pub fn with_stride(
        elements: &'a [T],
        rows: usize,
        columns: usize,
        stride: usize,
    ) -> Result<Matrix<'a, T>, Error> {
        let stride = check_strided(elements.len(), rows, columns, stride)?;
        Ok(Matrix {
            elements,
            rows,
            columns,
            stride,
        })
    }

    /// The elements of a row, which must be one of the matrix.
    pub fn row(&self, row: usize) -> &'a [T] {
        &self.elements[row * self.stride..][..self.columns]
    }
}

/// A matrix stored row by row, to be written.
#[derive(Debug)]
pub struct MatrixMut<'a, T> {
    elements: &'a mut [T],
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    stride: usize,
}

impl<'a, T> MatrixMut<'a, T> {
    /// Rows side by side, which must be all of `elements`.
    pub fn new(
        elements: &'a mut [T],
        rows: usize,
        columns: usize,
    ) -> Result<MatrixMut<'a, T>, Error> {
        Matrix::new(elements, rows, columns)?;
        Ok(MatrixMut {
            elements,
            rows,
            columns,
            stride: columns,
        })
    }

    /// Rows `stride` elements apart, between which nothing is written. The last one need not be followed by a gap.
    pub fn with_stride(
        elements: &'a mut [T],
        rows: usize,
        columns: usize,
        stride: usize,
    ) -> Result<MatrixMut<'a, T>, Error> {
        let stride = check_strided(elements.len(), rows, columns, stride)?;
        Ok(MatrixMut {
            elements,
            rows,
            columns,
            stride,
        })
    }
}

/// A matrix of elements of any type, as they lie in memory: row by row.
#[derive(Clone, Copy, Debug)]
pub struct Encoded<'a> {
    element: ElementType,
    bytes: &'a [u8],
    rows: usize,
    columns: usize,
    stride: usize,
}

impl<'a> Encoded<'a> {
    /// Rows that begin `stride` bytes apart. The last one need not be followed by a gap.
    pub fn new(
        element: ElementType,
        bytes: &'a [u8],
        rows: usize,
        columns: usize,
        stride: usize,
    ) -> Result<Encoded<'a>, Error> {
        let row = (columns as u128 * u128::from(element.bits())).div_ceil(8);
        let stride = check_strided(
            bytes.len(),
            rows,
            usize::try_from(row).unwrap_or(usize::MAX),
            stride,
        )?;
        Ok(Encoded {
            element,
            bytes,
            rows,
            columns,
            stride,
        })
    }

    /// Decodes all elements, row by row.
    pub fn decode(&self, elements: &mut [f32]) -> Result<(), Error> {
        let expected = self.rows as u128 * self.columns as u128;
        if expected != elements.len() as u128 {
            return Err(Error::Length {
                operand: "decoded matrix",
                expected,
                found: elements.len(),
            });
        }
        for (row, elements) in elements.chunks_exact_mut(self.columns.max(1)).enumerate() {
            self.decode_row(row, 0..self.columns, elements);
        }
        Ok(())
    }

    /// Decodes some elements of a row, from a whole byte on.
    fn decode_row(&self, row: usize, columns: Range<usize>, elements: &mut [f32]) {
        // Rows of a memory in partitions lie on pages of their own.
        const AHEAD: usize = 8;
        let bits = self.element.bits() as usize;
        let range = columns.start * bits / 8..(columns.end * bits).div_ceil(8);
        let bytes = |row: usize| self.bytes.get(row * self.stride..)?.get(range.clone());
        if row + AHEAD < self.rows {
            prefetch(bytes(row + AHEAD).unwrap_or(&[]));
        }
        let decoded = decode_f32(self.element, bytes(row).unwrap_or(&[]), elements);
        debug_assert!(
            decoded.is_ok(),
            "every type can be decoded, and the bytes are those of the columns"
        );
    }
}

/// The stride that counts: that of a single row, or of rows without elements, may be any.
fn check_strided(found: usize, rows: usize, columns: usize, stride: usize) -> Result<usize, Error> {
    if stride < columns {
        return Err(Error::Length {
            operand: "stride of a matrix, at least its columns",
            expected: columns as u128,
            found: stride,
        });
    }
    let least = if rows == 0 || columns == 0 {
        0
    } else {
        (rows as u128 - 1) * stride as u128 + columns as u128
    };
    if (found as u128) < least {
        return Err(Error::Length {
            operand: "matrix, at least",
            expected: least,
            found,
        });
    }
    Ok(if rows <= 1 || columns == 0 {
        columns
    } else {
        stride
    })
}

/// `C = A·B`, or `C += A·B`: A is m×k, B is k×n, C is m×n.
pub fn multiply<T: Number>(
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: MatrixMut<'_, T::Sum>,
    update: Update,
) -> Result<(), Error> {
    check_shapes(&a, b.rows, b.columns, &c)?;
    Product {
        a: Rows::Stored(a),
        b: Columns::Rows(Rows::Stored(b)),
        depth: a.columns,
        then: update.into(),
    }
    .run(c);
    Ok(())
}

/// `C = A·Bᵀ`, or `C += A·Bᵀ`: A is m×k, B is n×k, C is m×n.
pub fn multiply_transposed<T: Number>(
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: MatrixMut<'_, T::Sum>,
    update: Update,
) -> Result<(), Error> {
    check_shapes(&a, b.columns, b.rows, &c)?;
    Product {
        a: Rows::Stored(a),
        b: Columns::Transposed(b),
        depth: a.columns,
        then: update.into(),
    }
    .run(c);
    Ok(())
}

/// What an array of multipliers does whose sums go to an accumulator behind it: `C = A·B`, or where `adds` is set, `C += A·B`, in which
/// each number of C is added to a sum that began at zero. A is m×k, B is k×n and its elements are decoded, C is m×n.
pub fn multiply_encoded(
    a: Matrix<'_, f32>,
    b: Encoded<'_>,
    c: MatrixMut<'_, f32>,
    adds: bool,
) -> Result<(), Error> {
    check_shapes(&a, b.rows, b.columns, &c)?;
    let decoded = |row: usize, columns: Range<usize>, elements: &mut [f32]| {
        b.decode_row(row, columns, elements);
    };
    let then = if adds { Then::Add } else { Then::Set };
    Product {
        a: Rows::Stored(a),
        b: Columns::Rows(Rows::Made(&decoded)),
        depth: a.columns,
        then,
    }
    .run(c);
    Ok(())
}

fn check_shapes<T, S>(
    a: &Matrix<'_, T>,
    depth: usize,
    columns: usize,
    c: &MatrixMut<'_, S>,
) -> Result<(), Error> {
    for (operand, expected, found) in [
        ("rows of B", a.columns, depth),
        ("rows of C", a.rows, c.rows),
        ("columns of C", columns, c.columns),
    ] {
        if expected != found {
            return Err(Error::Length {
                operand,
                expected: expected as u128,
                found,
            });
        }
    }
    Ok(())
}
