//! The first operand of a product: rows that are stored, made or put together when they are needed.

use super::Matrix;
use std::ops::Range;

/// A matrix, row by row.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a, T> {
    Stored(Matrix<'a, T>),
    Made(&'a Make<'a, T>),
    Pieces(Pieces<'a, T>),
}

/// Rows of pieces that stand in one slice, where they may overlap: what a kernel sees of an image.
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'a, T> {
    pub(crate) elements: &'a [T],
    /// For each row, where its first piece begins.
    pub(crate) starts: &'a [usize],
    /// Elements of a piece: whole units.
    pub(crate) length: usize,
    /// Elements from one piece of a row to the next.
    pub(crate) pitch: usize,
}

impl<'a, T> Pieces<'a, T> {
    /// The first of some elements of a row that stand side by side.
    fn run(&self, depth: Range<usize>) -> Range<usize> {
        let end = depth.start / self.length * self.length + self.length;
        depth.start..depth.end.min(end)
    }

    /// Elements of a row that stand side by side.
    fn of_row(&self, row: usize, depth: Range<usize>) -> &'a [T] {
        let (piece, element) = (depth.start / self.length, depth.start % self.length);
        let first = self.starts[row] + piece * self.pitch + element;
        &self.elements[first..][..depth.len()]
    }
}

/// Gives some elements of a row whenever they are needed; the range begins at a multiple of 8.
type Make<'a, T> = dyn Fn(usize, Range<usize>, &mut [T]) + Sync + 'a;

impl<T: Copy> Rows<'_, T> {
    pub(super) fn copy(&self, row: usize, mut range: Range<usize>, mut elements: &mut [T]) {
        match self {
            Rows::Stored(matrix) => elements.copy_from_slice(&matrix.row(row)[range]),
            Rows::Made(make) => make(row, range, elements),
            Rows::Pieces(pieces) => {
                while !range.is_empty() {
                    let run = pieces.run(range.clone());
                    range.start = run.end;
                    let (piece, rest) = elements.split_at_mut(run.len());
                    piece.copy_from_slice(pieces.of_row(row, run));
                    elements = rest;
                }
            }
        }
    }
}

/// Rows of A over a block of depth, for the tiles.
pub(super) enum Strip<'s, T> {
    /// The elements of a row stand side by side, and there are so many from one row to the next.
    Even { rows: &'s [T], stride: usize },
    /// From one of all rows on, and one of all elements.
    Pieces {
        pieces: Pieces<'s, T>,
        row: usize,
        depth: usize,
    },
}

impl<'s, T> Strip<'s, T> {
    /// The first of some elements of the block that stand side by side in each row.
    pub(super) fn run(&self, range: Range<usize>) -> Range<usize> {
        match self {
            Strip::Even { .. } => range,
            Strip::Pieces { pieces, depth, .. } => {
                let run = pieces.run(range.start + depth..range.end + depth);
                run.start - depth..run.end - depth
            }
        }
    }

    /// Such elements of a row.
    pub(super) fn of_row(&self, row: usize, range: Range<usize>) -> &'s [T] {
        match self {
            Strip::Even { rows, stride } => &rows[row * stride + range.start..][..range.len()],
            Strip::Pieces {
                pieces,
                row: first,
                depth,
            } => pieces.of_row(first + row, range.start + depth..range.end + depth),
        }
    }
}
