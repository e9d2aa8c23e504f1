//! Dense matrix products.
//!
//! Every number of the output is one chain of additions in the order of depth, whatever the blocks, the instruction set
//! and the number of threads; with floats, each product is fused into its addition where the CPU can (x86-64 with AVX2 and
//! FMA, every `AArch64`). Threads share the blocks of the output, never the depth.

use crate::transpose::transpose;
use crate::{Error, Number, Update};
use rayon::prelude::*;
use std::ops::Range;
use std::ptr;
use tile::{Instructions, MAX_COLUMNS, MAX_ROWS, Tile};

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
            return Err(Error::Length { operand: "matrix", expected, found: elements.len() });
        }
        Ok(Matrix { elements, rows, columns, stride: columns })
    }

    /// Rows `stride` elements apart. The last one need not be followed by a gap.
    pub fn with_stride(elements: &'a [T], rows: usize, columns: usize, stride: usize) -> Result<Matrix<'a, T>, Error> {
        check_strided(elements.len(), rows, columns, stride)?;
        Ok(Matrix { elements, rows, columns, stride })
    }

    /// The elements of a row.
    pub fn row(&self, row: usize) -> &'a [T] {
        &self.elements[row * self.stride..][..self.columns]
    }
}

/// A matrix stored row by row, to be written.
#[derive(Debug)]
pub struct MatrixMut<'a, T> {
    elements: &'a mut [T],
    rows: usize,
    columns: usize,
    stride: usize,
}

impl<'a, T> MatrixMut<'a, T> {
    /// Rows side by side, which must be all of `elements`.
    pub fn new(elements: &'a mut [T], rows: usize, columns: usize) -> Result<MatrixMut<'a, T>, Error> {
        Matrix::new(elements, rows, columns)?;
        Ok(MatrixMut { elements, rows, columns, stride: columns })
    }

    /// Rows `stride` elements apart, between which nothing is written. The last one need not be followed by a gap.
    pub fn with_stride(elements: &'a mut [T], rows: usize, columns: usize, stride: usize) -> Result<MatrixMut<'a, T>, Error> {
        check_strided(elements.len(), rows, columns, stride)?;
        Ok(MatrixMut { elements, rows, columns, stride })
    }
}

fn check_strided(found: usize, rows: usize, columns: usize, stride: usize) -> Result<(), Error> {
    if stride < columns {
        return Err(Error::Length { operand: "stride of a matrix, at least its columns", expected: columns as u128, found: stride });
    }
    let least = if rows == 0 || columns == 0 { 0 } else { (rows as u128 - 1) * stride as u128 + columns as u128 };
    if found as u128 >= least { Ok(()) } else { Err(Error::Length { operand: "matrix, at least", expected: least, found }) }
}

/// `C = A·B`, or `C += A·B`: A is m×k, B is k×n, C is m×n.
pub fn multiply<T: Number>(a: Matrix<'_, T>, b: Matrix<'_, T>, c: MatrixMut<'_, T::Sum>, update: Update) -> Result<(), Error> {
    check_shapes(&a, b.rows, b.columns, &c)?;
    Product { b: Operand::Plain(b), depth: a.columns, update, instructions: Instructions::best() }.run(&rows_of(a), c);
    Ok(())
}

/// `C = A·Bᵀ`, or `C += A·Bᵀ`: A is m×k, B is n×k, C is m×n.
pub fn multiply_transposed<T: Number>(a: Matrix<'_, T>, b: Matrix<'_, T>, c: MatrixMut<'_, T::Sum>, update: Update) -> Result<(), Error> {
    check_shapes(&a, b.columns, b.rows, &c)?;
    Product { b: Operand::Transposed(b), depth: a.columns, update, instructions: Instructions::best() }.run(&rows_of(a), c);
    Ok(())
}

fn check_shapes<T, S>(a: &Matrix<'_, T>, depth: usize, columns: usize, c: &MatrixMut<'_, S>) -> Result<(), Error> {
    for (operand, expected, found) in [("rows of B", a.columns, depth), ("rows of C", a.rows, c.rows), ("columns of C", columns, c.columns)]
    {
        if expected != found {
            return Err(Error::Length { operand, expected: expected as u128, found });
        }
    }
    Ok(())
}

/// Gives the elements of a range of depth of a row of A.
fn rows_of<T: Number>(a: Matrix<'_, T>) -> impl Fn(usize, Range<usize>, &mut [T]) + Sync {
    move |row, depth, elements| elements.copy_from_slice(&a.row(row)[depth])
}

/// The second operand of a product.
#[derive(Clone, Copy)]
pub(crate) enum Operand<'a, T> {
    /// depth × columns.
    Plain(Matrix<'a, T>),
    /// columns × depth.
    Transposed(Matrix<'a, T>),
}

/// A product whose first operand is given row by row.
pub(crate) struct Product<'a, T> {
    pub(crate) b: Operand<'a, T>,
    pub(crate) depth: usize,
    pub(crate) update: Update,
    pub(crate) instructions: Instructions,
}

/// A block of the output is at most this large. Its share of both operands, over a block of depth, stays in the
/// second-level cache.
const BLOCK_ROWS: usize = 128;
const BLOCK_COLUMNS: usize = 128;

/// Units of depth at a time: a tile's rows of A stay in the first-level cache.
const BLOCK_UNITS: usize = 256;

/// Rows of a block of A lie a cache line further apart than they are long, lest all of them compete for the same places of
/// the cache.
const ROW_GAP: usize = 64;

/// Multiplications from which on threads are worth it.
const PARALLEL: usize = 1 << 20;

/// A block of the output.
struct Block<'c, S> {
    first_row: usize,
    first_column: usize,
    rows: Vec<&'c mut [S]>,
}

/// Buffers of a thread: packed operands, which keep their room from one product to the next.
#[derive(Debug)]
pub struct Scratch<T: Number> {
    a: Vec<T>,
    b: Vec<T>,
    /// Sums of columns that do not fill a tile.
    edges: [[T::Sum; MAX_COLUMNS]; MAX_ROWS],
}

impl<T: Number> Default for Scratch<T> {
    fn default() -> Scratch<T> {
        Scratch { a: Vec::new(), b: Vec::new(), edges: [[T::Sum::default(); MAX_COLUMNS]; MAX_ROWS] }
    }
}

impl<T: Number> Product<'_, T> {
    /// Computes C. `row(i, depth, elements)` gives the elements of a range of depth of row `i` of A.
    pub(crate) fn run(&self, row: &(impl Fn(usize, Range<usize>, &mut [T]) + Sync), mut c: MatrixMut<'_, T::Sum>) {
        if c.rows == 0 || c.columns == 0 {
            return;
        }
        let work = c.rows.saturating_mul(c.columns).saturating_mul(self.depth);
        let tile = T::tile(self.instructions);
        let blocks = blocks(&mut c, tile.columns);
        if work < PARALLEL || blocks.len() == 1 {
            for block in blocks {
                T::with_scratch(|scratch| self.block(&tile, row, block, scratch));
            }
        } else {
            blocks.into_par_iter().for_each(|block| T::with_scratch(|scratch| self.block(&tile, row, block, scratch)));
        }
    }

    fn block(&self, tile: &Tile<T>, row: &impl Fn(usize, Range<usize>, &mut [T]), mut block: Block<'_, T::Sum>, scratch: &mut Scratch<T>) {
        let Scratch { a, b, edges } = scratch;
        let columns = block.rows[0].len();
        let panels = columns.div_ceil(tile.columns);
        let block_depth = BLOCK_UNITS * T::UNIT;
        let a_row = block_depth + ROW_GAP / size_of::<T>();
        let a = room(a, block.rows.len() * a_row);
        let b = room(b, panels * tile.columns * block_depth);
        if self.update == Update::Set {
            for row in &mut block.rows {
                row.fill(T::Sum::default());
            }
        }
        for start in (0..self.depth).step_by(block_depth) {
            let depth = start..self.depth.min(start + block_depth);
            let units = depth.len().div_ceil(T::UNIT);
            for (i, elements) in a.chunks_mut(a_row).enumerate() {
                row(block.first_row + i, depth.clone(), &mut elements[..depth.len()]);
                elements[depth.len()..units * T::UNIT].fill(T::default());
            }
            let panel_size = tile.columns * units * T::UNIT;
            let all = block.first_column..block.first_column + columns;
            self.pack(all, depth, tile.columns, &mut b[..panels * panel_size]);
            let mut first_row = 0;
            while first_row < block.rows.len() {
                let step = (block.rows.len() - first_row).ilog2().min(tile.run.len() as u32 - 1);
                let rows = &mut block.rows[first_row..first_row + (1 << step)];
                let a = &a[first_row * a_row..][..a_row << step];
                for (i, panel) in b[..panels * panel_size].chunks(panel_size).enumerate() {
                    let first = i * tile.columns;
                    let width = tile.columns.min(columns - first);
                    let whole = width == tile.columns;
                    let mut sums = [ptr::null_mut(); MAX_ROWS];
                    for ((sums, row), edge) in sums.iter_mut().zip(&mut *rows).zip(edges.iter_mut()) {
                        let row = &mut row[first..first + width];
                        *sums = if whole {
                            row.as_mut_ptr()
                        } else {
                            edge[..width].copy_from_slice(row);
                            edge.as_mut_ptr()
                        };
                    }
                    assert!(units * T::UNIT <= a_row && a.len() == a_row << step && panel.len() == panel_size);
                    // SAFETY: the rows of A, the panel and each row of sums are as long as the tile needs, and the CPU has
                    // the instructions: `Instructions::available` found them.
                    #[allow(unsafe_code)]
                    unsafe {
                        tile.run[step as usize](units, a.as_ptr(), a_row, panel.as_ptr(), &sums);
                    }
                    if !whole {
                        for (row, edge) in rows.iter_mut().zip(edges.iter()) {
                            row[first..].copy_from_slice(&edge[..width]);
                        }
                    }
                }
                first_row += 1 << step;
            }
        }
    }

    /// Packs some columns of B over a range of depth into panels of `width` columns: unit by unit, the elements of all
    /// columns side by side. What the depth does not fill of the last unit, and the columns of the last panel, are zero.
    fn pack(&self, columns: Range<usize>, depth: Range<usize>, width: usize, panels: &mut [T]) {
        let units = depth.len().div_ceil(T::UNIT);
        let panel_size = units * width * T::UNIT;
        if !columns.len().is_multiple_of(width) || !depth.len().is_multiple_of(T::UNIT) {
            panels.fill(T::default());
        }
        match self.b {
            Operand::Plain(b) => {
                for (i, depth) in depth.enumerate() {
                    let row = &b.row(depth)[columns.clone()];
                    for (panel, elements) in panels.chunks_mut(panel_size).zip(row.chunks(width)) {
                        let unit = &mut panel[i / T::UNIT * width * T::UNIT..][..elements.len() * T::UNIT];
                        for (place, element) in unit.chunks_exact_mut(T::UNIT).zip(elements) {
                            place[i % T::UNIT] = *element;
                        }
                    }
                }
            }
            Operand::Transposed(b) => {
                let whole = depth.len() / T::UNIT * T::UNIT;
                for (panel, first) in panels.chunks_mut(panel_size).zip(columns.clone().step_by(width)) {
                    let rows = first..columns.end.min(first + width);
                    transpose_units(&b, rows.clone(), depth.start..depth.start + whole, width, panel);
                    for (i, row) in rows.enumerate() {
                        for (element, depth) in (depth.start + whole..depth.end).enumerate() {
                            panel[whole * width + i * T::UNIT + element] = b.row(row)[depth];
                        }
                    }
                }
            }
        }
    }
}

/// Room for a number of elements, whatever they are.
fn room<T: Number>(elements: &mut Vec<T>, size: usize) -> &mut [T] {
    if elements.len() < size {
        elements.resize(size, T::default());
    }
    &mut elements[..size]
}

/// Packs a range of the rows of B, which are columns of its transpose, over whole units of depth.
fn transpose_units<T: Number>(b: &Matrix<'_, T>, rows: Range<usize>, depth: Range<usize>, width: usize, panel: &mut [T]) {
    let size = size_of::<T>();
    let (first, last) = (b.row(rows.start), b.row(rows.end - 1));
    assert!(rows.len() <= width && depth.end <= first.len().min(last.len()) && depth.len() * width <= panel.len());
    let transpose = if size * T::UNIT == 8 { transpose::<8> } else { transpose::<4> };
    // SAFETY: the first row and the last, and so all between them, hold the range of depth, and the panel holds its units
    // for all columns. The elements are numbers without padding, and units are of 4 or 8 bytes.
    #[allow(unsafe_code)]
    unsafe {
        transpose(
            first.as_ptr().add(depth.start).cast(),
            (b.stride * size) as isize,
            panel.as_mut_ptr().cast(),
            (width * T::UNIT * size) as isize,
            rows.len(),
            depth.len() / T::UNIT,
        );
    }
}

/// Cuts C into blocks of about the same size.
fn blocks<'c, S>(c: &'c mut MatrixMut<'_, S>, tile_columns: usize) -> Vec<Block<'c, S>> {
    let even = |size: usize, most: usize, multiple: usize| size.div_ceil(size.div_ceil(most)).next_multiple_of(multiple);
    let block_rows = even(c.rows, BLOCK_ROWS, 8);
    let block_columns = even(c.columns, BLOCK_COLUMNS, tile_columns);
    let mut blocks = Vec::new();
    let mut rows = c.elements.chunks_mut(c.stride).take(c.rows);
    for first_row in (0..c.rows).step_by(block_rows) {
        let across = blocks.len();
        blocks.extend((0..c.columns).step_by(block_columns).map(|first_column| Block { first_row, first_column, rows: Vec::new() }));
        for row in rows.by_ref().take(block_rows) {
            for (block, piece) in blocks[across..].iter_mut().zip(row[..c.columns].chunks_mut(block_columns)) {
                block.rows.push(piece);
            }
        }
    }
    blocks
}
