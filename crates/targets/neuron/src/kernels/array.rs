//! The matrix engine: an array of 128 × 128 weights, and the products of data that streams through it.
//!
//! The array is a buffer of its own: binary32 numbers, column by column. `LDWEIGHTS` fills rows (one for each partition)
//! and columns of it; the last column enters first. `MATMUL` multiplies: what comes out of column `c` for an element `n`
//! of the moving data is the sum over the rows `r` of weight `(r, c)` times element `n` of partition `r`, and goes to
//! partition `c` of PSUM.

use super::{Elements, fault, operands_text, unproven_codes, unproven_events};
use crate::stream::{Instruction, Slot};
use chipless_kernels::Update;
use chipless_kernels::cast::{Rounding, decode_f32, encode_f32};
use chipless_kernels::matrix::{Matrix, MatrixMut, multiply};
use chipless_kernels::strided;
use chipless_model::{Access, BufferId, ElementType, Fault, Kernel, Loop, Pattern, Storage};
use std::borrow::Cow;
use std::cell::RefCell;
use zerocopy::FromBytes;

/// Rows, and columns, of the array.
pub(crate) const SIDE: usize = 128;
/// Bytes of the array.
pub(crate) const ARRAY_BYTES: u64 = (SIDE * SIDE * size_of::<f32>()) as u64;

/// A part of the array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) array: BufferId,
    pub(crate) first_row: usize,
    pub(crate) first_column: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl Part {
    fn pattern(&self) -> Pattern {
        let number = size_of::<f32>();
        let first = (self.first_column * SIDE + self.first_row) * number;
        let columns = Loop { count: self.columns as u64, stride: (SIDE * number) as i64 };
        Pattern::new(first as u64, (self.rows * number) as u64, [columns])
    }
}

/// `LDWEIGHTS`.
#[derive(Debug)]
pub(crate) struct LoadWeights<'a> {
    pub(crate) slot: &'a Slot,
    /// Partition by partition, the columns in their order.
    pub(crate) from: Elements,
    pub(crate) part: Part,
}

/// `MATMUL`.
#[derive(Debug)]
pub(crate) struct Matmul<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) part: Part,
    /// The moving data, partition by partition.
    pub(crate) from: Elements,
    /// Elements of the moving data in each partition.
    pub(crate) moving: usize,
    /// Sums, partition by partition.
    pub(crate) to: Elements,
    /// Whether the sums go on from what PSUM holds.
    pub(crate) accumulate: bool,
    /// Whether the moving data selects weights, whose elements go to PSUM as they are.
    pub(crate) transpose: bool,
}

/// Room to work, kept from one instruction to the next.
#[derive(Default)]
struct Scratch {
    packed: Vec<u8>,
    moving: Vec<f32>,
    weights: Vec<f32>,
    sums: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Kernel for LoadWeights<'_> {
    fn operation(&self) -> Cow<'static, str> {
        "LDWEIGHTS".into()
    }

    fn details(&self) -> String {
        operands_text(self.slot)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        visit(Access::read(self.from.buffer, self.from.pattern.clone()));
        visit(Access::write(self.part.array, self.part.pattern()));
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        SCRATCH.with_borrow_mut(|scratch| {
            let Scratch { packed, moving: rows, weights, .. } = scratch;
            self.from.read(storage, packed, rows)?;
            weights.clear();
            weights.resize(rows.len(), 0.0);
            transpose(rows, self.part.columns, weights);
            packed.resize(weights.len() * size_of::<f32>(), 0);
            encode_f32(ElementType::Float32, weights, Rounding::NearestEven, packed).map_err(fault)?;
            strided::scatter(packed, storage.bytes_mut(self.part.array), &self.part.pattern()).map_err(fault)
        })
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        unproven(self.slot)
    }
}

impl Matmul<'_> {
    /// The weights as a matrix of columns × rows.
    fn weights(&self, storage: &Storage<'_>, packed: &mut Vec<u8>, weights: &mut Vec<f32>) -> Result<(), Fault> {
        packed.clear();
        strided::gather(storage.bytes(self.part.array), &self.part.pattern(), packed).map_err(fault)?;
        weights.resize(packed.len() / size_of::<f32>(), 0.0);
        decode_f32(ElementType::Float32, packed, weights).map_err(fault)
    }

    fn sum(&self, storage: &mut Storage<'_>, scratch: &mut Scratch) -> Result<(), Fault> {
        let Scratch { packed, moving, weights, sums } = scratch;
        let (columns, rows) = (self.part.columns, self.part.rows);
        let update = if self.accumulate { Update::Accumulate } else { Update::Set };
        let weights = Matrix::new(weights, columns, rows).map_err(fault)?;
        let moving = Matrix::new(moving, rows, self.moving).map_err(fault)?;
        if let Some((place, stride)) = self.in_place(storage.bytes_mut(self.to.buffer)) {
            let sums = MatrixMut::with_stride(place, columns, self.moving, stride).map_err(fault)?;
            return multiply(weights, moving, sums, update).map_err(fault);
        }
        if self.accumulate {
            self.to.read(storage, packed, sums)?;
        } else {
            sums.clear();
            sums.resize(columns * self.moving, 0.0);
        }
        multiply(weights, moving, MatrixMut::new(sums, columns, self.moving).map_err(fault)?, update).map_err(fault)?;
        self.to.write(storage, packed, sums)
    }

    /// The sums where they lie, and the numbers from one partition to the next: for contiguous sums of binary32, which
    /// is how programs have them.
    fn in_place<'s>(&self, psum: &'s mut [u8]) -> Option<(&'s mut [f32], usize)> {
        let number = size_of::<f32>();
        let row = self.moving * number;
        let stride = match self.to.pattern.loops[..] {
            [] => row,
            [partitions] => usize::try_from(partitions.stride).ok()?,
            _ => return None,
        };
        let contiguous = self.to.pattern.run == row as u64 || self.to.pattern.loops.is_empty();
        if cfg!(target_endian = "big") || !contiguous || self.to.element != ElementType::Float32 {
            return None;
        }
        let first = usize::try_from(self.to.pattern.offset).ok()?;
        let size = (self.part.columns.checked_sub(1)?).checked_mul(stride)?.checked_add(row)?;
        let bytes = psum.get_mut(first..first.checked_add(size)?)?;
        Some((<[f32]>::mut_from_bytes(bytes).ok()?, stride / number))
    }

    /// Each column of the moving data with a single one selects a row of weights, which passes as it is, infinities
    /// and NaN included. Other columns are multiplied.
    fn select(&self, scratch: &mut Scratch) {
        let Scratch { moving, weights, sums, .. } = scratch;
        let (columns, rows) = (self.part.columns, self.part.rows);
        sums.clear();
        sums.resize(columns * self.moving, 0.0);
        for n in 0..self.moving {
            let column = || moving.iter().skip(n).step_by(self.moving);
            let mut ones = column().enumerate().filter(|(_, value)| **value != 0.0);
            let selected = match (ones.next(), ones.next()) {
                (Some((row, value)), None) if *value == 1.0 => Some(row),
                _ => None,
            };
            for (sums, weights) in sums.chunks_mut(self.moving).zip(weights.chunks(rows)) {
                sums[n] = match selected {
                    Some(row) => weights[row],
                    None => weights.iter().zip(column()).fold(0.0, |sum, (weight, value)| weight.mul_add(*value, sum)),
                };
            }
        }
    }
}

impl Kernel for Matmul<'_> {
    fn operation(&self) -> Cow<'static, str> {
        "MATMUL".into()
    }

    fn details(&self) -> String {
        operands_text(self.slot)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        visit(Access::read(self.part.array, self.part.pattern()));
        visit(Access::read(self.from.buffer, self.from.pattern.clone()));
        if self.accumulate {
            visit(Access::read(self.to.buffer, self.to.pattern.clone()));
        }
        visit(Access::write(self.to.buffer, self.to.pattern.clone()));
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        SCRATCH.with_borrow_mut(|scratch| {
            self.weights(storage, &mut scratch.packed, &mut scratch.weights)?;
            self.from.read(storage, &mut scratch.packed, &mut scratch.moving)?;
            if self.transpose {
                self.select(scratch);
                self.to.write(storage, &mut scratch.packed, &scratch.sums)
            } else {
                self.sum(storage, scratch)
            }
        })
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        unproven(self.slot)
    }
}

fn unproven(slot: &Slot) -> Option<Cow<'static, str>> {
    let instruction = slot.decode();
    let groups = match instruction {
        Instruction::LoadWeights(i) => (i.row_groups, i.column_groups),
        Instruction::Matmul(i) => (i.row_groups, i.column_groups),
        _ => return None,
    };
    if groups != (0xf, 0xf) {
        return Some("groups of rows and columns of the matrix engine".into());
    }
    let codes = instruction.operands().into_iter().map(|o| o.code);
    unproven_codes(codes).or_else(|| unproven_events(&instruction))
}

/// Rows of `columns` numbers each, in blocks that stay in the first-level cache.
fn transpose(rows: &[f32], columns: usize, turned: &mut [f32]) {
    const BLOCK: usize = 16;
    let count = rows.len().checked_div(columns).unwrap_or(0);
    for first_row in (0..count).step_by(BLOCK) {
        for first_column in (0..columns).step_by(BLOCK) {
            for column in first_column..columns.min(first_column + BLOCK) {
                for row in first_row..count.min(first_row + BLOCK) {
                    turned[column * count + row] = rows[row * columns + column];
                }
            }
        }
    }
}
