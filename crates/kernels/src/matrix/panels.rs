//! Panels: the second operand of a product, as its tiles take it.

use super::Matrix;
use super::tile::Instructions;
use crate::Number;
use crate::room::{Element, Room};
use crate::transpose::transpose;
use std::ops::Range;

/// Units of depth at a time: a panel of B stays in the first-level cache while the rows of A pass.
pub(super) const BLOCK_UNITS: usize = 256;

/// Elements of a second operand that are made before they are packed: they stay in the second-level cache.
const MADE: usize = 1 << 16;

/// Units are left out where they are at least this part of a panel: to follow their numbers costs a little.
const WORTH: usize = 16;

/// Numbers that are looked through together.
const MODERATE_BLOCK: usize = 1024;

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
        decode: Decode<T>,
    },
}

/// A float of 16 bits, as it lies in memory.
pub type Half = [u8; 2];

/// What makes numbers of as many halves.
pub type Decode<T> = fn(&[Half], &mut [T]);

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
        decode: Decode<T>,
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
    pub(super) fn part<'s>(
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
pub(super) struct Part<'p, T> {
    pub(super) elements: &'p [T],
    /// Elements of one.
    pub(super) size: usize,
    /// For each, the units that count, where these are not all. Nothing for any where there are none.
    pub(super) numbers: &'p [Option<Vec<u32>>],
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

/// Whether there are `count` rows of `size` elements, `stride` elements apart.
fn holds<T>(rows: &[T], count: usize, stride: usize, size: usize) -> bool {
    let last = count.checked_sub(1).filter(|_| size > 0).map(|last| {
        last.checked_mul(stride)
            .and_then(|start| start.checked_add(size))
    });
    last.is_none_or(|end| end.is_some_and(|end| end <= rows.len()))
}

/// Room for a number of elements, whatever they are.
pub(super) fn of_size<T: Number>(room: &mut Vec<T>, size: usize) -> &mut [T] {
    if room.len() < size {
        room.resize(size, T::default());
    }
    &mut room[..size]
}

/// Packs a range of the rows of a matrix, which are columns of its transpose, over a range of depth, as `Columns::pack` says.
pub(super) fn pack_transposed<P: Element>(
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
pub(super) fn clear_edges<P: Element>(
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
