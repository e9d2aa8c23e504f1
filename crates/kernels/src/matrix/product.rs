//! A product, block by block.

use super::tile::{Instructions, MAX_COLUMNS, MAX_ROWS, Then, Tile};
use super::{Matrix, MatrixMut};
use crate::Number;
use crate::prefetch::prefetch;
use crate::room::{Element, Room};
use crate::transpose::transpose;
use rayon::prelude::*;
use std::ops::Range;
use std::ptr;

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
    fn copy(&self, row: usize, mut range: Range<usize>, mut elements: &mut [T]) {
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

/// The second operand of products, as their tiles take it: packed once, where several products have it.
#[derive(Clone, Debug)]
pub struct Panels<T: Number> {
    elements: Packed<T>,
    columns: usize,
    depth: usize,
    /// Columns of a panel.
    width: usize,
    /// For each panel of each block of depth, the units that are not zero, where they are few enough to leave the others out. Nothing where no
    /// panel has them, or they were not looked for.
    numbers: Vec<Option<Vec<u32>>>,
}

/// The elements of panels.
#[derive(Clone, Debug)]
enum Packed<T: Number> {
    Numbers(Room<T>),
    /// Half as many bytes to write and to read: each product decodes what it needs at a time into a cache.
    Halves {
        elements: Room<Half>,
        decode: fn(&[Half], &mut [T]),
    },
}

/// A float of 16 bits, as it lies in memory.
pub type Half = [u8; 2];

impl<T: Number> Packed<T> {
    /// Some of them as numbers, in `room` where they have to be decoded.
    fn numbers<'s>(&'s self, range: Range<usize>, room: &'s mut Vec<T>) -> &'s [T] {
        match self {
            Packed::Numbers(elements) => &elements[range],
            Packed::Halves { elements, decode } => {
                let numbers = of_size(room, range.len());
                decode(&elements[range], numbers);
                numbers
            }
        }
    }
}

/// The rows that `make` gives, packed into panels of `width` columns and units of `unit` elements.
fn packed<P: Element, E>(
    columns: usize,
    depth: usize,
    (width, unit): (usize, usize),
    mut make: impl FnMut(Range<usize>, &mut [P]) -> Result<(), E>,
) -> Result<Room<P>, E> {
    let padded = columns.next_multiple_of(width);
    let mut elements = Room::take(padded * depth.next_multiple_of(unit));
    let group = (MADE / depth.max(1)).next_multiple_of(width).max(width);
    let mut made = Room::<P>::take(group.min(columns) * depth);
    for first in (0..columns).step_by(group) {
        let range = first..columns.min(first + group);
        let rows = &mut made[..range.len() * depth];
        make(range.clone(), rows)?;
        let rows = Matrix {
            elements: rows,
            rows: range.len(),
            columns: depth,
            stride: depth,
        };
        for start in (0..depth).step_by(BLOCK_UNITS * unit) {
            let block = start..depth.min(start + BLOCK_UNITS * unit);
            let size = block.len().next_multiple_of(unit);
            let room = &mut elements[padded * start + first * size..];
            let room = &mut room[..range.len().next_multiple_of(width) * size];
            pack_transposed(&rows, 0..range.len(), block, (width, unit), room);
        }
    }
    Ok(elements)
}

impl<T: Number> Panels<T> {
    /// Of the transpose of a matrix that is made some rows at a time, which are columns of the product: `make(range, rows)` writes the rows of
    /// a range one after the other, each `depth` long.
    ///
    /// # Errors
    /// That of `make`.
    pub fn transposed<E>(
        columns: usize,
        depth: usize,
        make: impl FnMut(Range<usize>, &mut [T]) -> Result<(), E>,
    ) -> Result<Panels<T>, E> {
        let width = T::tile(Instructions::best()).columns;
        Ok(Panels {
            elements: Packed::Numbers(packed(columns, depth, (width, T::UNIT), make)?),
            columns,
            depth,
            width,
            numbers: Vec::new(),
        })
    }

    /// The same of rows of floats of 16 bits, which `decode` makes numbers of. They are kept as they are.
    ///
    /// # Errors
    /// That of `make`.
    pub fn of_halves<E>(
        columns: usize,
        depth: usize,
        decode: fn(&[Half], &mut [T]),
        make: impl FnMut(Range<usize>, &mut [Half]) -> Result<(), E>,
    ) -> Result<Panels<T>, E> {
        let width = T::tile(Instructions::best()).columns;
        let elements = packed(columns, depth, (width, T::UNIT), make)?;
        Ok(Panels {
            elements: Packed::Halves { elements, decode },
            columns,
            depth,
            width,
            numbers: Vec::new(),
        })
    }

    /// Looks for units of depth that are zero in all columns of a panel, so that products can leave them out: they are many where weights were
    /// padded, or where some columns depend on a part of the depth only.
    #[must_use]
    pub fn without_zeros(mut self) -> Panels<T> {
        let unit = self.width * T::UNIT;
        let padded = self.columns.next_multiple_of(self.width);
        let (mut numbers, mut room) = (Vec::new(), Vec::new());
        for start in (0..self.depth).step_by(BLOCK_UNITS * T::UNIT) {
            let block = start..self.depth.min(start + BLOCK_UNITS * T::UNIT);
            let size = block.len().div_ceil(T::UNIT) * unit;
            for panel in 0..padded / self.width {
                let first = padded * start + panel * size;
                let panel = self.elements.numbers(first..first + size, &mut room);
                if !are_moderate(panel) {
                    return self;
                }
                let is_zero = |unit: &[T]| {
                    let others = unit.iter().map(|element| *element != T::default());
                    !others.fold(false, |any, other| any | other)
                };
                let units = panel.chunks_exact(unit);
                let all = units.len();
                let counted = (0..).zip(units).filter(|(_, unit)| !is_zero(unit));
                let counted: Vec<u32> = counted.map(|(number, _)| number).collect();
                numbers.push(
                    (counted.len() + all / WORTH <= all && counted.len() < all).then_some(counted),
                );
            }
        }
        if numbers.iter().any(Option::is_some) {
            self.numbers = numbers;
        }
        self
    }

    /// Whether there are zeros to leave out of the products with these numbers and sums that begin at zero.
    pub(crate) fn can_skip(&self, a: &[T]) -> bool {
        !self.numbers.is_empty() && are_moderate(a)
    }

    /// Columns of the product.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Depth of the product.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Bytes that it keeps.
    pub fn bytes(&self) -> usize {
        match &self.elements {
            Packed::Numbers(elements) => size_of_val(&**elements),
            Packed::Halves { elements, .. } => size_of_val(&**elements),
        }
    }

    /// The panels of some columns over a block of depth, in `room` where they have to be decoded.
    fn part<'s>(
        &'s self,
        columns: &Range<usize>,
        depth: &Range<usize>,
        room: &'s mut Vec<T>,
    ) -> Part<'s, T> {
        let size = depth.len().div_ceil(T::UNIT) * self.width * T::UNIT;
        let padded = self.columns.next_multiple_of(self.width);
        let first = columns.start / self.width;
        let start = padded * depth.start + first * size;
        let count = columns.len().div_ceil(self.width);
        let block = depth.start / (BLOCK_UNITS * T::UNIT);
        let numbers = self.numbers.get(block * (padded / self.width) + first..);
        Part {
            elements: self.elements.numbers(start..start + count * size, room),
            size,
            numbers: numbers.unwrap_or_default(),
        }
    }
}

/// Some panels.
struct Part<'p, T> {
    elements: &'p [T],
    /// Elements of one.
    size: usize,
    /// For each, the units that count, where these are not all. Nothing for any where there are none.
    numbers: &'p [Option<Vec<u32>>],
}

/// Whether zeros leave every sum of products with these as it is.
fn are_moderate<T: Number>(numbers: &[T]) -> bool {
    // Without a branch for each, they are compared several at a time.
    let are = |block: &[T]| {
        block
            .iter()
            .fold(true, |all, number| all & number.is_moderate())
    };
    numbers.chunks(MODERATE_BLOCK).all(are)
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

/// Units of depth at a time: a panel of B stays in the first-level cache while the rows of A pass.
const BLOCK_UNITS: usize = 256;

/// Elements of a second operand that are made before they are packed: they stay in the second-level cache.
const MADE: usize = 1 << 16;

/// Rows of A that are packed lie a cache line further apart than they are long, lest all of them compete for the same places
/// of the cache.
const ROW_GAP: usize = 64;

/// Pieces of rows of A that are shorter are packed: sums leave the registers after each.
const PIECE: usize = 64;

/// Units are left out where they are at least this part of a panel: to follow their numbers costs a little.
const WORTH: usize = 16;

/// Numbers that are looked through together.
const MODERATE_BLOCK: usize = 1024;

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

/// Rows of A over a block of depth, for the tiles.
enum Strip<'s, T> {
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
    fn run(&self, range: Range<usize>) -> Range<usize> {
        match self {
            Strip::Even { .. } => range,
            Strip::Pieces { pieces, depth, .. } => {
                let run = pieces.run(range.start + depth..range.end + depth);
                run.start - depth..run.end - depth
            }
        }
    }

    /// Such elements of a row.
    fn of_row(&self, row: usize, range: Range<usize>) -> &'s [T] {
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

impl<T: Number> Product<'_, T> {
    /// Computes C with the best instructions that the CPU has.
    pub(crate) fn run(&self, c: MatrixMut<'_, T::Sum>) {
        self.run_with(Instructions::best(), c);
    }

    pub(super) fn run_with(&self, instructions: Instructions, mut c: MatrixMut<'_, T::Sum>) {
        if c.rows == 0 || c.columns == 0 {
            return;
        }
        if self.then == Then::Add && self.depth > BLOCK_UNITS * T::UNIT {
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

/// Whether there are `count` rows of `size` elements, `stride` elements apart.
fn holds<T>(rows: &[T], count: usize, stride: usize, size: usize) -> bool {
    let last = count.checked_sub(1).filter(|_| size > 0).map(|last| {
        last.checked_mul(stride)
            .and_then(|start| start.checked_add(size))
    });
    last.is_none_or(|end| end.is_some_and(|end| end <= rows.len()))
}

/// Room for a number of elements, whatever they are.
fn of_size<T: Number>(room: &mut Vec<T>, size: usize) -> &mut [T] {
    if room.len() < size {
        room.resize(size, T::default());
    }
    &mut room[..size]
}

/// Packs a range of the rows of a matrix, which are columns of its transpose, over a range of depth, as [`Columns::pack`] says.
fn pack_transposed<P: Element>(
    b: &Matrix<'_, P>,
    columns: Range<usize>,
    depth: Range<usize>,
    (width, unit): (usize, usize),
    panels: &mut [P],
) {
    clear_edges(&columns, &depth, (width, unit), panels);
    let size = depth.len().div_ceil(unit) * width * unit;
    let whole = depth.len() / unit * unit;
    for (panel, first) in panels
        .chunks_mut(size.max(1))
        .zip(columns.clone().step_by(width))
    {
        let rows = first..columns.end.min(first + width);
        let of_units = depth.start..depth.start + whole;
        transpose_units(b, rows.clone(), of_units, (width, unit), panel);
        for (i, row) in rows.enumerate() {
            for (element, depth) in (depth.start + whole..depth.end).enumerate() {
                panel[whole * width + i * unit + element] = b.row(row)[depth];
            }
        }
    }
}

/// Zeros where columns do not fill the last panel, or the depth does not fill the last unit.
fn clear_edges<P: Element>(
    columns: &Range<usize>,
    depth: &Range<usize>,
    (width, unit): (usize, usize),
    panels: &mut [P],
) {
    if !columns.len().is_multiple_of(width) || !depth.len().is_multiple_of(unit) {
        panels.fill(P::default());
    }
}

/// Packs a range of the rows of B, which are columns of its transpose, over whole units of depth.
fn transpose_units<P: Element>(
    b: &Matrix<'_, P>,
    rows: Range<usize>,
    depth: Range<usize>,
    (width, unit): (usize, usize),
    packed: &mut [P],
) {
    let size = size_of::<P>();
    let (first, last) = (b.row(rows.start), b.row(rows.end - 1));
    let (units, stride) = (depth.len() / unit, width * unit);
    assert!(
        depth.end <= first.len().min(last.len())
            && holds(packed, units, stride, rows.len() * unit)
            && matches!(size * unit, 2 | 4 | 8)
    );
    let transpose = match size * unit {
        2 => transpose::<2>,
        4 => transpose::<4>,
        _ => transpose::<8>,
    };
    // SAFETY: the first row and the last, and so all between them, hold the range of depth, and `packed` holds its units
    // for all columns. The elements are numbers without padding, and units are of 2, 4 or 8 bytes.
    #[allow(unsafe_code)]
    unsafe {
        transpose(
            first.as_ptr().add(depth.start).cast(),
            (b.stride * size) as isize,
            packed.as_mut_ptr().cast(),
            (stride * size) as isize,
            rows.len(),
            units,
        );
    }
}

/// Cuts C into blocks of about the same size.
fn blocks<'c, S>(c: &'c mut MatrixMut<'_, S>, tile_columns: usize) -> Vec<Block<'c, S>> {
    let even = |size: usize, most: usize, multiple: usize| {
        size.div_ceil(size.div_ceil(most))
            .next_multiple_of(multiple)
    };
    let block_rows = even(c.rows, BLOCK_ROWS, 8);
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
