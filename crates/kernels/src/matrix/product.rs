//! A product, block by block.

use super::panels::{BLOCK_UNITS, Panels, Part, clear_edges, of_size, pack_transposed};
use super::rows::{Rows, Strip};
use super::tile::{Instructions, MAX_COLUMNS, MAX_ROWS, Then, Tile};
use super::{Matrix, MatrixMut};
use crate::Number;
use crate::prefetch::prefetch;
use rayon::prelude::*;
use std::ops::Range;
use std::ptr;

/// The second operand of a product.
#[derive(Clone, Copy)]
pub(crate) enum Columns<'a, T: Number> {
    /// depth × columns.
    Rows(Rows<'a, T>),
    /// columns × depth.
    Transposed(Matrix<'a, T>),
    /// As the tiles take them.
    Packed {
        panels: &'a Panels<T>,
        /// Leaves out units that are zero, which must show in no sum.
        skips: bool,
    },
}

/// A product.
pub(crate) struct Product<'a, T: Number> {
    pub(crate) a: Rows<'a, T>,
    pub(crate) b: Columns<'a, T>,
    pub(crate) depth: usize,
    pub(crate) then: Then,
}

/// A block of the output is at most this large. Its share of both operands, over a block of depth, stays in the
/// second-level cache.
const BLOCK_ROWS: usize = 256;
const BLOCK_COLUMNS: usize = 128;

/// Rows of A that are packed lie a cache line further apart than they are long, lest all of them compete for the same places
/// of the cache.
const ROW_GAP: usize = 64;

/// Pieces of rows of A that are shorter are packed: sums leave the registers after each.
const PIECE: usize = 64;

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
        Scratch {
            a: Vec::new(),
            b: Vec::new(),
            edges: [[T::Sum::default(); MAX_COLUMNS]; MAX_ROWS],
        }
    }
}

impl<T: Number> Product<'_, T> {
    /// Computes C with the best instructions that the CPU has.
    pub(crate) fn run(&self, c: MatrixMut<'_, T::Sum>) {
        self.run_with(Instructions::best(), c);
    }

    pub(super) fn run_with(&self, instructions: Instructions, mut c: MatrixMut<'_, T::Sum>) {
        if c.rows == 0 || c.columns == 0 {
            return;
        }
        let is_cut = self.depth > BLOCK_UNITS * T::UNIT || matches!(self.a, Rows::Pieces(_));
        if self.then == Then::Add && is_cut {
            return self.add_whole(instructions, &mut c);
        }
        let work = c.rows.saturating_mul(c.columns).saturating_mul(self.depth);
        let tile = T::tile(instructions);
        let blocks = blocks(&mut c, tile.columns);
        if work < PARALLEL || blocks.len() == 1 {
            for block in blocks {
                T::with_scratch(|scratch| self.block(&tile, block, scratch));
            }
        } else {
            blocks
                .into_par_iter()
                .for_each(|block| T::with_scratch(|scratch| self.block(&tile, block, scratch)));
        }
    }

    /// Sums that are added when they are whole, of more depth than a tile sees at a time.
    fn add_whole(&self, instructions: Instructions, c: &mut MatrixMut<'_, T::Sum>) {
        let mut sums = vec![T::Sum::default(); c.rows * c.columns];
        let whole = MatrixMut {
            elements: &mut sums,
            rows: c.rows,
            columns: c.columns,
            stride: c.columns,
        };
        Product {
            then: Then::Set,
            ..*self
        }
        .run_with(instructions, whole);
        for (row, sums) in c.elements.chunks_mut(c.stride).zip(sums.chunks(c.columns)) {
            for (place, sum) in row.iter_mut().zip(sums) {
                *place = T::add(*place, *sum);
            }
        }
    }

    fn block(&self, tile: &Tile<T>, mut block: Block<'_, T::Sum>, scratch: &mut Scratch<T>) {
        // Without depth, sums are what they begin with.
        for start in (0..self.depth.max(1)).step_by(BLOCK_UNITS * T::UNIT) {
            let depth = start..self.depth.min(start + BLOCK_UNITS * T::UNIT);
            let then = if start == 0 {
                self.then
            } else {
                Then::Continue
            };
            self.add(tile, &mut block, depth, then, scratch);
        }
    }

    /// Adds what a range of depth contributes to a block.
    fn add(
        &self,
        tile: &Tile<T>,
        block: &mut Block<'_, T::Sum>,
        depth: Range<usize>,
        then: Then,
        scratch: &mut Scratch<T>,
    ) {
        let Scratch { a, b, edges } = scratch;
        let columns = block.rows[0].len();
        let units = depth.len().div_ceil(T::UNIT);
        let a = self.pack_a(
            block.first_row..block.first_row + block.rows.len(),
            depth.clone(),
            a,
        );
        let panels = self.panels(
            block.first_column..block.first_column + columns,
            depth,
            tile.columns,
            b,
        );
        for first in (0..columns).step_by(tile.columns) {
            let width = tile.columns.min(columns - first);
            let in_place = width == tile.columns;
            let number = first / tile.columns;
            let panel = &panels.elements[number * panels.size..][..panels.size];
            let numbers = panels.numbers.get(number).and_then(Option::as_deref);
            let runs = match numbers {
                Some(_) => tile.run_some,
                None => tile.run,
            };
            let mut first_row = 0;
            while first_row < block.rows.len() {
                let step = (block.rows.len() - first_row)
                    .ilog2()
                    .min(tile.run.len() as u32 - 1);
                let (rows, next) = block.rows[first_row..].split_at_mut(1 << step);
                next.iter()
                    .take(MAX_ROWS)
                    .for_each(|row| prefetch(&row[first..first + width]));
                let mut sums = [ptr::null_mut(); MAX_ROWS];
                for ((sums, row), edge) in sums.iter_mut().zip(&mut *rows).zip(edges.iter_mut()) {
                    let row = &mut row[first..first + width];
                    *sums = if in_place {
                        row.as_mut_ptr()
                    } else {
                        edge[..width].copy_from_slice(row);
                        edge.as_mut_ptr()
                    };
                }
                let (mut rest, mut then) = (0..units * T::UNIT, then);
                loop {
                    // Numbers are of units of the whole block, which is one run then.
                    let run = a.run(rest.clone());
                    let mut a_rows = [ptr::null(); MAX_ROWS];
                    for (number, pointer) in a_rows[..rows.len()].iter_mut().enumerate() {
                        *pointer = a.of_row(first_row + number, run.clone()).as_ptr();
                    }
                    let panel = &panel[run.start * tile.columns..][..run.len() * tile.columns];
                    assert!(run.len().is_multiple_of(T::UNIT));
                    let counted = match numbers {
                        Some(numbers) => {
                            assert!(run.len() == units * T::UNIT);
                            numbers.len()
                        }
                        None => run.len() / T::UNIT,
                    };
                    // SAFETY: the rows of A, the panel and each row of sums are as long as the tile needs, and the CPU has the
                    // instructions: `Instructions::available` found them. Numbers are those of units of the panel: `Panels::without_zeros` counted
                    // them in this block of depth, and nobody else makes any.
                    #[allow(unsafe_code)]
                    unsafe {
                        runs[step as usize](
                            counted,
                            numbers.unwrap_or_default().as_ptr(),
                            &a_rows,
                            panel.as_ptr(),
                            then,
                            &sums,
                        );
                    }
                    (rest.start, then) = (run.end, Then::Continue);
                    if rest.is_empty() {
                        break;
                    }
                }
                if !in_place {
                    for (row, edge) in rows.iter_mut().zip(&*edges) {
                        row[first..].copy_from_slice(&edge[..width]);
                    }
                }
                first_row += 1 << step;
            }
        }
    }

    /// Whether units of depth may be left out.
    fn skips(&self) -> bool {
        matches!(self.b, Columns::Packed { skips: true, .. })
    }

    /// Some rows of A over a range of depth: where they are stored, or else packed, what the depth does not fill of the last
    /// unit being zero.
    fn pack_a<'s>(
        &'s self,
        rows: Range<usize>,
        depth: Range<usize>,
        room: &'s mut Vec<T>,
    ) -> Strip<'s, T> {
        if let Rows::Stored(matrix) = self.a
            && depth.len().is_multiple_of(T::UNIT)
        {
            return Strip::Even {
                rows: matrix
                    .elements
                    .get(rows.start * matrix.stride + depth.start..)
                    .unwrap_or(&[]),
                stride: matrix.stride,
            };
        }
        if let Rows::Pieces(pieces) = self.a
            && pieces.length.is_multiple_of(T::UNIT)
            && pieces.length >= PIECE
            && !self.skips()
        {
            let (row, depth) = (rows.start, depth.start);
            return Strip::Pieces { pieces, row, depth };
        }
        let size = depth.len().next_multiple_of(T::UNIT);
        let stride = size + ROW_GAP / size_of::<T>();
        let packed = of_size(room, rows.len() * stride);
        for (row, elements) in rows.zip(packed.chunks_mut(stride)) {
            self.a
                .copy(row, depth.clone(), &mut elements[..depth.len()]);
            elements[depth.len()..size].fill(T::default());
        }
        Strip::Even {
            rows: packed,
            stride,
        }
    }

    /// The panels of some columns of B over a range of depth: packed into `room`, if they are not yet.
    fn panels<'s>(
        &'s self,
        columns: Range<usize>,
        depth: Range<usize>,
        width: usize,
        room: &'s mut Vec<T>,
    ) -> Part<'s, T> {
        if let Columns::Packed { panels, skips } = self.b {
            let mut part = panels.part(&columns, &depth, room);
            if !skips {
                part.numbers = &[];
            }
            return part;
        }
        let size = depth.len().div_ceil(T::UNIT) * width * T::UNIT;
        let panels = of_size(room, columns.len().div_ceil(width) * size);
        self.b.pack(columns, depth, width, panels);
        Part {
            elements: panels,
            size,
            numbers: &[],
        }
    }
}

impl<T: Number> Columns<'_, T> {
    /// Packs some columns over a range of depth into panels of `width` columns: unit by unit, the elements of its columns side by
    /// side. What the depth does not fill of the last unit, and the columns of the last panel, are zero.
    fn pack(&self, columns: Range<usize>, depth: Range<usize>, width: usize, panels: &mut [T]) {
        match self {
            Columns::Rows(rows) => {
                let size = depth.len().div_ceil(T::UNIT) * width * T::UNIT;
                clear_edges(&columns, &depth, (width, T::UNIT), panels);
                let mut made = [T::default(); BLOCK_COLUMNS];
                for (i, depth) in depth.enumerate() {
                    let row = match rows {
                        Rows::Stored(matrix) => &matrix.row(depth)[columns.clone()],
                        made_or_pieces => {
                            let made = &mut made[..columns.len()];
                            made_or_pieces.copy(depth, columns.clone(), made);
                            made
                        }
                    };
                    for (panel, elements) in panels.chunks_mut(size).zip(row.chunks(width)) {
                        let unit = &mut panel[i / T::UNIT * width * T::UNIT..][..width * T::UNIT];
                        if T::UNIT == 1 {
                            copy_in_eights(elements, unit);
                        } else {
                            for (place, element) in unit.chunks_exact_mut(T::UNIT).zip(elements) {
                                place[i % T::UNIT] = *element;
                            }
                        }
                    }
                }
            }
            Columns::Transposed(b) => {
                pack_transposed(b, columns, depth, (width, T::UNIT), panels);
            }
            // They are there.
            Columns::Packed { .. } => {}
        }
    }
}

/// Copies elements, most of them in eights: a call for as few as they are takes longer than the copy.
fn copy_in_eights<T: Number>(from: &[T], to: &mut [T]) {
    let ((eights, rest), (places, rest_places)) =
        (from.as_chunks::<8>(), to[..from.len()].as_chunks_mut());
    for (place, eight) in places.iter_mut().zip(eights) {
        *place = *eight;
    }
    for (place, element) in rest_places.iter_mut().zip(rest) {
        *place = *element;
    }
}

/// Cuts C into blocks of about the same size.
fn blocks<'c, S>(c: &'c mut MatrixMut<'_, S>, tile_columns: usize) -> Vec<Block<'c, S>> {
    let even = |size: usize, most: usize, multiple: usize| {
        size.div_ceil(size.div_ceil(most))
            .next_multiple_of(multiple)
    };
    // Halves are decoded once for each block: taller ones decode less, smaller ones share the work out.
    let most = if rayon::current_num_threads() > 1 {
        BLOCK_ROWS / 2
    } else {
        BLOCK_ROWS
    };
    let block_rows = even(c.rows, most, 8);
    let block_columns = even(c.columns, BLOCK_COLUMNS, tile_columns);
    let mut blocks = Vec::new();
    let mut rows = c.elements.chunks_mut(c.stride).take(c.rows);
    for first_row in (0..c.rows).step_by(block_rows) {
        let across = blocks.len();
        blocks.extend(
            (0..c.columns)
                .step_by(block_columns)
                .map(|first_column| Block {
                    first_row,
                    first_column,
                    rows: Vec::new(),
                }),
        );
        for row in rows.by_ref().take(block_rows) {
            for (block, piece) in blocks[across..]
                .iter_mut()
                .zip(row[..c.columns].chunks_mut(block_columns))
            {
                block.rows.push(piece);
            }
        }
    }
    blocks
}
