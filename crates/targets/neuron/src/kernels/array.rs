//! The matrix engine: an array of 128 × 128 weights, and the products of data that streams through it.
//!
//! The array is a buffer of its own: binary32 numbers, column by column. `LDWEIGHTS` fills rows (one for each partition)
//! and columns of it; the last column enters first. `MATMUL` multiplies: what comes out of column `c` for an element `n`
//! of the moving data is the sum over the rows `r` of weight `(r, c)` times element `n` of partition `r`, and goes to
//! partition `c` of PSUM.

use super::dependence::{Relation, follow};
use super::{Chip, Elements, fault};
use crate::stream::{ElementCode, Operand, formats};
use chipless_kernels::cast::{Rounding, decode_f32, encode_f32};
use chipless_kernels::matrix::{Encoded, Matrix, MatrixMut, multiply_encoded};
use chipless_kernels::strided;
use chipless_model::{Access, BufferId, Doubt, ElementType, Fault, Loop, Pattern, Storage};
use std::cell::Cell;
use zerocopy::FromBytes;

/// Rows, and columns, of the array.
const SIDE: usize = 128;
/// Bytes of a column of the array.
const COLUMN_BYTES: usize = SIDE * size_of::<f32>();
/// Bytes of a layer of the array: one number at each place.
const LAYER_BYTES: usize = SIDE * COLUMN_BYTES;
/// Layers: weights in groups are four at each place. Others use the first.
pub(super) const LAYERS: usize = 4;
/// Bytes of the array.
pub(crate) const ARRAY_BYTES: u64 = (LAYERS * LAYER_BYTES) as u64;

/// A part of the array.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) array: BufferId,
    first_row: usize,
    first_column: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Part {
    /// All groups of 32 rows and of 32 columns are set, or those that the instruction needs.
    pub(super) fn new(
        chip: &Chip,
        groups: (u8, u8),
        rows: u8,
        columns: u64,
    ) -> Result<Part, Fault> {
        let (rows, columns) = (
            usize::from(rows),
            usize::try_from(columns).unwrap_or(usize::MAX),
        );
        let (first_row, first_column) = (
            first_of(groups.0, rows, "rows")?,
            first_of(groups.1, columns, "columns")?,
        );
        Ok(Part {
            array: chip.array,
            first_row,
            first_column,
            rows,
            columns,
        })
    }

    fn pattern(&self) -> Pattern {
        let number = size_of::<f32>();
        let first = self.first_column * COLUMN_BYTES + self.first_row * number;
        let columns = Loop {
            count: self.columns as u64,
            stride: COLUMN_BYTES as i64,
        };
        Pattern::new(first as u64, (self.rows * number) as u64, [columns])
    }

    /// The part in every layer, one after the other.
    pub(super) fn layers(&self) -> Pattern {
        let Pattern { offset, run, loops } = self.pattern();
        let layers = Loop {
            count: LAYERS as u64,
            stride: LAYER_BYTES as i64,
        };
        Pattern::new(offset, run, loops.into_iter().chain([layers]))
    }

    fn numbers(&self) -> Elements {
        Elements {
            buffer: self.array,
            pattern: self.pattern(),
            element: ElementType::Float32,
        }
    }

    /// The weights of the first layer as a matrix of columns × rows: where they lie, or else in `room`.
    fn weights<'w>(
        &self,
        array: &'w [u8],
        room: &'w mut Vec<f32>,
    ) -> Result<Matrix<'w, f32>, Fault> {
        self.layer(0, array, room)
    }

    /// The weights of a layer.
    pub(super) fn layer<'w>(
        &self,
        layer: usize,
        array: &'w [u8],
        room: &'w mut Vec<f32>,
    ) -> Result<Matrix<'w, f32>, Fault> {
        let array = &array[layer * LAYER_BYTES..][..LAYER_BYTES];
        let in_place = if cfg!(target_endian = "little") {
            <[f32]>::ref_from_bytes(array).ok()
        } else {
            None
        };
        let all = if let Some(all) = in_place {
            all
        } else {
            room.resize(SIDE * SIDE, 0.0);
            decode_f32(ElementType::Float32, array, room).map_err(fault)?;
            room
        };
        let first = self.first_column * SIDE + self.first_row;
        let size = (self.columns - 1) * SIDE + self.rows;
        Matrix::with_stride(&all[first..first + size], self.columns, self.rows, SIDE).map_err(fault)
    }
}

/// The first row, or column, of a mask of groups.
fn first_of(mask: u8, size: usize, what: &str) -> Result<usize, Fault> {
    const GROUP: usize = SIDE / 4;
    let (first, needed) = if mask == 0xf {
        (0, 4)
    } else {
        (mask.trailing_zeros() as usize * GROUP, size.div_ceil(GROUP))
    };
    let groups_fit =
        mask != 0 && u32::from(mask >> mask.trailing_zeros()) == (1u32 << needed.min(4)) - 1;
    if size == 0 || first.saturating_add(size) > SIDE || !groups_fit {
        return Err(Fault::unsupported(format!(
            "{size} {what} in groups {mask:#x} are not supported"
        )));
    }
    Ok(first)
}

/// Which part of a binary32 enters the array: products of such numbers take several passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// All of it.
    Whole,
    /// What the high part leaves.
    Low,
    /// The number with its low 16 bits cut off.
    High,
}

impl Pass {
    /// Of the byte of an instruction.
    fn new(byte: u8, element: ElementType) -> Result<Pass, Fault> {
        match (byte, element) {
            (0, _) | (3, ElementType::Float32) => Ok(Pass::Whole),
            (1, ElementType::Float32) => Ok(Pass::Low),
            (2, ElementType::Float32) => Ok(Pass::High),
            _ => Err(Fault::unsupported(format!(
                "byte 0x21 (fp32_pass) is {byte:#04x} for {element}: that is not supported"
            ))),
        }
    }

    /// Leaves that part of each number.
    fn cut(self, values: &mut [f32]) {
        for value in values {
            let high = f32::from_bits(value.to_bits() & 0xffff_0000);
            match self {
                Pass::Whole => return,
                Pass::Low => *value -= high,
                Pass::High => *value = high,
            }
        }
    }
}

/// `LDWEIGHTS`, made out.
#[derive(Debug)]
pub(super) struct LoadWeights {
    /// Partition by partition, the columns in their order.
    from: Elements,
    pass: Pass,
    part: Part,
}

/// `MATMUL`, made out.
#[derive(Debug)]
pub(super) struct Matmul {
    part: Part,
    /// The moving data, partition by partition.
    from: Elements,
    /// Elements of the moving data in each partition.
    moving: usize,
    /// Sums, partition by partition.
    to: Elements,
    /// Whether the sums go on from what PSUM holds.
    accumulate: bool,
    pass: Pass,
    /// Whether the moving data selects weights, whose elements go to PSUM as they are.
    transpose: bool,
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
    static SCRATCH: Cell<Scratch> = Cell::default();
}

/// Lends the room of this thread. A thread that waits for others may begin another instruction, which finds none.
fn with_scratch<T>(act: impl FnOnce(&mut Scratch) -> T) -> T {
    let mut scratch = SCRATCH.take();
    let result = act(&mut scratch);
    SCRATCH.set(scratch);
    result
}

impl LoadWeights {
    /// What of the array depends on doubtful bytes.
    pub(super) fn dependence(
        &self,
        doubtful: &dyn Doubt,
        visit: &mut dyn FnMut(BufferId, Pattern),
    ) {
        let relation = Relation::Transposed(self.part.columns as u64);
        follow(&self.from, &self.part.numbers(), relation, doubtful, visit);
    }

    pub(super) fn new(
        chip: &Chip,
        layout: formats::LoadWeights<'_>,
        source: &Operand,
    ) -> Result<LoadWeights, Fault> {
        let part = Part::new(
            chip,
            (layout.row_groups(), layout.column_groups()),
            layout.rows(),
            source.elements(),
        )?;
        let backwards =
            backwards(source).ok_or_else(|| Fault::program("the columns leave the memory"))?;
        let from = chip.elements(&backwards)?;
        let pass = Pass::new(layout.fp32_pass(), from.element)?;
        Ok(LoadWeights { from, pass, part })
    }

    pub(super) fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        visit(self.from.read_access());
        visit(Access::write(self.part.array, self.part.pattern()));
    }

    pub(super) fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        with_scratch(|scratch| {
            let Scratch {
                packed,
                moving: weights,
                ..
            } = scratch;
            self.from.read(storage, packed, weights)?;
            self.pass.cut(weights);
            packed.resize(size_of_val(&weights[..]), 0);
            encode_f32(ElementType::Float32, weights, Rounding::NearestEven, packed)
                .map_err(fault)?;
            // Partition by partition there, column by column here.
            let number = size_of::<f32>();
            let columns = Loop {
                count: self.part.columns as u64,
                stride: number as i64,
            };
            let rows = Loop {
                count: self.part.rows as u64,
                stride: (self.part.columns * number) as i64,
            };
            let by_column = Pattern::new(0, number as u64, [rows, columns]);
            strided::copy(
                packed,
                &by_column,
                storage.bytes_mut(self.part.array),
                &self.part.pattern(),
            )
            .map_err(fault)
        })
    }
}

/// The same elements from the last to the first.
fn backwards(operand: &Operand) -> Option<Operand> {
    let bytes = (ElementCode::of(operand.code)?.element.bits() / 8) as i64;
    let mut address = i64::from(operand.address);
    for (step, count) in operand.steps.iter().zip(operand.counts) {
        address += i64::from(*step) * (i64::from(count) - 1) * bytes;
    }
    let steps = operand.steps.map(i16::checked_neg);
    let [Some(a), Some(b), Some(c), Some(d)] = steps else {
        return None;
    };
    Some(Operand {
        address: u32::try_from(address).ok()?,
        steps: [a, b, c, d],
        ..*operand
    })
}

impl Matmul {
    /// Which sums depend on doubtful bytes.
    pub(super) fn dependence(
        &self,
        doubtful: &dyn Doubt,
        visit: &mut dyn FnMut(BufferId, Pattern),
    ) {
        let mut from =
            |source: &Elements, relation| follow(source, &self.to, relation, doubtful, visit);
        from(
            &self.part.numbers(),
            Relation::Partition(self.part.columns as u64),
        );
        from(&self.from, Relation::Place(self.moving as u64));
        if self.accumulate {
            from(&self.to, Relation::Each);
        }
    }

    /// Multiplications and additions.
    pub(super) fn arithmetic(&self) -> u64 {
        let Part { rows, columns, .. } = self.part;
        2 * (rows * columns) as u64 * self.moving as u64
    }

    pub(super) fn new(
        chip: &Chip,
        layout: formats::Matmul<'_>,
        to: &Operand,
        from: &Operand,
    ) -> Result<Matmul, Fault> {
        let part = Part::new(
            chip,
            (layout.row_groups(), layout.column_groups()),
            layout.rows(),
            u64::from(layout.columns()),
        )?;
        if to.elements() != from.elements() {
            return Err(Fault::program(format!(
                "{} elements are read of each partition, {} written",
                from.elements(),
                to.elements()
            )));
        }
        let (moving, accumulate) = (from.elements() as usize, layout.sums() & 1 == 0);
        let (from, to) = (chip.elements(from)?, chip.elements(to)?);
        let (transpose, sums) = (layout.transpose(), layout.sums());
        // Bit 2 says again what a missing start says; both at once contradict each other.
        if transpose > 1 || sums > 7 || sums & 5 == 5 {
            return Err(Fault::unsupported(format!(
                "transpose {transpose:#04x} (byte 0x22) and sums {sums:#04x} (byte 0x2b) are not supported"
            )));
        }
        let (transpose, pass) = (transpose == 1, Pass::new(layout.fp32_pass(), from.element)?);
        if transpose && pass != Pass::Whole {
            return Err(Fault::unsupported(
                "transpositions of parts of fp32 are not supported",
            ));
        }
        if transpose && from.element.bits() < 16 {
            return Err(Fault::unsupported(
                "transpositions of elements of one byte are not supported",
            ));
        }
        Ok(Matmul {
            part,
            from,
            moving,
            to,
            accumulate,
            pass,
            transpose,
        })
    }

    /// Where the sums go.
    pub(super) fn destination(&self) -> &Elements {
        &self.to
    }

    pub(super) fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        visit(Access::read(self.part.array, self.part.pattern()));
        visit(self.from.read_access());
        if self.accumulate {
            visit(self.to.read_access());
        }
        visit(self.to.write_access());
    }

    pub(super) fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        with_scratch(|scratch| {
            if self.transpose {
                self.select(storage, scratch)
            } else {
                self.sum(storage, scratch)
            }
        })
    }

    /// The array adds up its rows from zero; PSUM adds the result to what it holds.
    fn sum(&self, storage: &mut Storage<'_>, scratch: &mut Scratch) -> Result<(), Fault> {
        let Scratch {
            packed,
            weights,
            sums,
            ..
        } = scratch;
        let in_place = self
            .from
            .runs(self.moving)
            .filter(|_| self.from.buffer != self.to.buffer && self.pass == Pass::Whole);
        if in_place.is_none() {
            self.from.gather(storage, packed)?;
            self.cut(packed)?;
        }
        let moving = if in_place.is_some() {
            self.from.buffer
        } else {
            self.part.array
        };
        let Some(([array, moving], psum)) =
            storage.split([self.part.array, moving], self.to.buffer)
        else {
            return Err(Fault::program("sums go into the array"));
        };
        let (moving, stride) = match in_place {
            Some((first, stride)) => (moving.get(first..).unwrap_or(&[]), stride),
            None => (&packed[..], packed.len() / self.part.rows),
        };
        let moving = Encoded::new(
            self.from.element,
            moving,
            self.part.rows,
            self.moving,
            stride,
        )
        .map_err(fault)?;
        let weights = self.part.weights(array, weights)?;
        if let Some((place, stride)) = self.in_place(psum) {
            let place = MatrixMut::with_stride(place, self.part.columns, self.moving, stride)
                .map_err(fault)?;
            return multiply_encoded(weights, moving, place, self.accumulate).map_err(fault);
        }
        sums.resize(self.part.columns * self.moving, 0.0);
        let place = MatrixMut::new(sums, self.part.columns, self.moving).map_err(fault)?;
        multiply_encoded(weights, moving, place, false).map_err(fault)?;
        if self.accumulate {
            let mut held = Vec::new();
            self.to.read(storage, packed, &mut held)?;
            for (sum, held) in sums.iter_mut().zip(&held) {
                *sum += held;
            }
        }
        self.to.write(storage, packed, sums)
    }

    /// Leaves of packed moving data what this pass takes.
    fn cut(&self, packed: &mut [u8]) -> Result<(), Fault> {
        if self.pass == Pass::Whole {
            return Ok(());
        }
        let mut values = vec![0.0; packed.len() / size_of::<f32>()];
        decode_f32(ElementType::Float32, packed, &mut values).map_err(fault)?;
        self.pass.cut(&mut values);
        encode_f32(ElementType::Float32, &values, Rounding::NearestEven, packed).map_err(fault)
    }

    /// The sums where they lie, and the numbers from one partition to the next: for contiguous sums of binary32, which
    /// is how programs have them.
    fn in_place<'s>(&self, psum: &'s mut [u8]) -> Option<(&'s mut [f32], usize)> {
        let number = size_of::<f32>();
        let (first, stride) = self.to.runs(self.moving).filter(|_| {
            self.to.element == ElementType::Float32 && cfg!(target_endian = "little")
        })?;
        let size = (self.part.columns.checked_sub(1)?)
            .checked_mul(stride)?
            .checked_add(self.moving * number)?;
        let bytes = psum.get_mut(first..first.checked_add(size)?)?;
        Some((<[f32]>::mut_from_bytes(bytes).ok()?, stride / number))
    }

    /// Each column of the moving data with a single one selects a row of weights, which passes as it is, infinities
    /// and NaN included. Other columns are multiplied.
    fn select(&self, storage: &mut Storage<'_>, scratch: &mut Scratch) -> Result<(), Fault> {
        let Scratch {
            packed,
            moving,
            weights,
            sums,
        } = scratch;
        self.from.read(storage, packed, moving)?;
        let weights = self.part.weights(storage.bytes(self.part.array), weights)?;
        sums.resize(self.part.columns * self.moving, 0.0);
        for n in 0..self.moving {
            let column = || moving.iter().skip(n).step_by(self.moving);
            let mut ones = column().enumerate().filter(|(_, value)| **value != 0.0);
            let selected = match (ones.next(), ones.next()) {
                (Some((row, value)), None) if value.to_bits() == 1f32.to_bits() => Some(row),
                _ => None,
            };
            for (sums, weights) in sums
                .chunks_mut(self.moving)
                .zip((0..self.part.columns).map(|c| weights.row(c)))
            {
                sums[n] = match selected {
                    Some(row) => weights[row],
                    None => weights
                        .iter()
                        .zip(column())
                        .fold(0.0, |sum, (weight, value)| weight.mul_add(*value, sum)),
                };
            }
        }
        self.to.write(storage, packed, sums)
    }
}
