//! What instructions and transfers do to memory.
//!
//! | module | what |
//! |---|---|
//! | [`instruction`] | a slot of an engine |
//! | [`decoded`] | what must be known of a slot before it is executed |
//! | [`array`] | `LDWEIGHTS`, `MATMUL` |
//! | [`elements`] | `COPY`, `CAST`, `MEMSET` |
//! | [`compute`] | everything else that the vector, scalar and `GpSimd` engines do |
//! | [`alu`], [`curve`] | the operations of the element-wise units, and functions that tables describe |
//! | [`integers`] | integers that lose digits on their way through binary32 |
//! | [`dependence`] | which written bytes depend on which that are read |
//! | [`registers`] | what engines keep from one instruction to the next |
//! | [`sequencer`] | operations on registers of the sequencers; elements of memory in registers |
//! | [`transfer`] | what a DMA queue moves: instructions' transfers and descriptors |
//! | [`microscaled`] | numbers in groups that share a scale: `LDWEIGHTS_MX`, `MATMUL_MX`, `QUANTIZE_MX` |
//! | [`indexed`] | transfers whose rows indices find |
//! | [`addressed`] | transfers whose addresses are in registers |
//! | [`exchange`] | elements that go to another core |
//! | [`control`] | tasks without an effect, and those that are not executed |
//!
//! All arithmetic is done in binary32: operands are widened, the result is rounded once to its type, to nearest even.

pub(crate) mod addressed;
mod alu;
pub(crate) mod array;
mod compute;
pub(crate) mod control;
pub(crate) mod curve;
pub(crate) mod decoded;
mod dependence;
mod elements;
pub(crate) mod exchange;
pub(crate) mod indexed;
pub(crate) mod instruction;
pub(crate) mod integers;
mod microscaled;
pub(crate) mod registers;
pub(crate) mod sequencer;
pub(crate) mod transfer;

use crate::graph::Engine;
use crate::stream::operand::leaves_partitions;
use crate::stream::{
    ElementCode, Evidence, OnChip, Operand, PARTITIONS, PSUM_PARTITION_BYTES, Space,
};
use chipless_kernels::cast::{Rounding, decode_f32, encode_f32};
use chipless_kernels::matrix::Encoded;
use chipless_kernels::{Error, strided};
use chipless_model::{Access, BufferId, ElementType, Fault, Pattern, Storage};
use curve::Functions;
use std::sync::Arc;

/// The memories of a core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chip {
    pub(crate) state_buffer: BufferId,
    pub(crate) psum: BufferId,
    pub(crate) array: BufferId,
    pub(crate) registers: BufferId,
    /// Usable bytes of a partition of the state buffer.
    pub(crate) state_buffer_partition: u32,
}

/// What an instruction needs to know of its engine and its core.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) chip: Chip,
    pub(crate) engine: Engine,
    pub(crate) functions: Arc<Functions>,
}

impl Context {
    /// An engine whose core has no buffers yet, to see what it would execute.
    pub(crate) fn unplaced(
        engine: Engine,
        state_buffer_partition: u32,
        functions: Functions,
    ) -> Context {
        let [state_buffer, psum, array, registers] = [0, 1, 2, 3].map(BufferId::from_raw);
        let chip = Chip {
            state_buffer,
            psum,
            array,
            registers,
            state_buffer_partition,
        };
        Context {
            chip,
            engine,
            functions: Arc::new(functions),
        }
    }
}

/// Elements of a partition that an instruction walks, at most: the bound of the state buffer.
const MOST_ELEMENTS: u64 = 1 << 16;

impl Chip {
    /// All that an engine may write, as bounds.
    fn unknown_writes(&self, visit: &mut dyn FnMut(Access)) {
        for (buffer, size) in [
            (self.state_buffer, Space::StateBuffer.bytes()),
            (self.psum, Space::Psum.bytes()),
            (self.array, array::ARRAY_BYTES),
            (self.registers, registers::REGISTER_BYTES),
        ] {
            visit(Access::write(buffer, Pattern::contiguous(0, size)).may());
        }
    }

    /// The elements of an operand, if they lie in its memory.
    pub(crate) fn elements(&self, operand: &Operand) -> Result<Elements, Fault> {
        let role = operand.role;
        let code = ElementCode::of(operand.code).ok_or_else(|| {
            Fault::unsupported(format!(
                "{role}: element type code {:#x} is not supported",
                operand.code
            ))
        })?;
        if operand.elements() > MOST_ELEMENTS {
            let message = format!(
                "{role}: {} elements of a partition, at most {MOST_ELEMENTS} are possible",
                operand.elements()
            );
            return Err(Fault::program(message));
        }
        let place = operand.pattern(code.element.bits() / 8);
        let (space, pattern) = place.ok_or_else(|| {
            Fault::program(format!(
                "{role}: address {:#x} is behind PSUM",
                operand.address
            ))
        })?;
        let (buffer, bytes) = match space {
            Space::StateBuffer => (self.state_buffer, self.state_buffer_partition),
            Space::Psum => (self.psum, PSUM_PARTITION_BYTES),
        };
        // Most operands lie inside by their bounds alone.
        let is_inside = operand.bounds(code.element.bits() / 8).is_some_and(
            |(OnChip { partition, .. }, low, high)| {
                let end = partition + u32::from(operand.partitions);
                low >= 0 && high <= i64::from(bytes) && end <= PARTITIONS
            },
        );
        if !is_inside && let Some(why) = leaves_partitions(&pattern, space, bytes) {
            return Err(Fault::program(format!("{role} reaches {why}")));
        }
        Ok(Elements {
            buffer,
            pattern,
            element: code.element,
        })
    }
}

/// Elements of a buffer, in an order.
#[derive(Clone, Debug)]
pub(crate) struct Elements {
    pub(crate) buffer: BufferId,
    pub(crate) pattern: Pattern,
    pub(crate) element: ElementType,
}

/// Bytes from which on a run is worth a call of its own.
const LONG_RUN: usize = 64;

impl Elements {
    /// Bytes; lowering made sure that they can be counted.
    pub(crate) fn bytes(&self) -> u64 {
        self.pattern.bytes().unwrap_or(u64::MAX)
    }

    /// Elements.
    fn count(&self) -> u64 {
        self.bytes() / (self.element.bits() / 8).max(1)
    }

    /// The same as bytes.
    fn as_bytes(&self) -> Elements {
        Elements {
            element: ElementType::UInt8,
            ..self.clone()
        }
    }

    /// Whether an access touches them, in their order.
    fn is_touched_by(&self, access: &Access) -> bool {
        self.buffer == access.buffer && self.pattern == access.pattern
    }

    /// Whether an access stays among them.
    fn surrounds(&self, access: &Access) -> bool {
        let (whole, part) = (self.pattern.extent(), access.pattern.extent());
        self.buffer == access.buffer && whole.start <= part.start && part.end <= whole.end
    }

    fn read_access(&self) -> Access {
        Access::read(self.buffer, self.pattern.clone())
    }

    fn write_access(&self) -> Access {
        Access::write(self.buffer, self.pattern.clone())
    }

    /// Where a byte comes from if these elements are a copy of others.
    fn taken_from(&self, from: &Elements, buffer: BufferId, byte: u64) -> Option<(BufferId, u64)> {
        if buffer != self.buffer {
            return None;
        }
        Some((from.buffer, self.pattern.counterpart(byte, &from.pattern)?))
    }

    /// Where runs of so many elements each need not be brought together, as a single run in each partition: the first byte, and
    /// the bytes from one run to the next.
    fn runs(&self, elements: usize) -> Option<(usize, usize)> {
        let Pattern {
            offset,
            run,
            ref loops,
        } = self.pattern;
        let stride = match loops[..] {
            [] => run,
            [partitions] => u64::try_from(partitions.stride).ok()?,
            _ => return None,
        };
        let apart = stride >= run && run * 8 == elements as u64 * self.element.bits();
        apart.then_some((usize::try_from(offset).ok()?, usize::try_from(stride).ok()?))
    }

    /// The bytes alone, in place of what `packed` held.
    fn gather(&self, storage: &Storage<'_>, packed: &mut Vec<u8>) -> Result<(), Fault> {
        packed.clear();
        strided::gather(storage.bytes(self.buffer), &self.pattern, packed).map_err(fault)
    }

    /// The numbers, in place of what `values` held; `packed` is room to work.
    fn read(
        &self,
        storage: &Storage<'_>,
        packed: &mut Vec<u8>,
        values: &mut Vec<f32>,
    ) -> Result<(), Fault> {
        let (bits, run) = (self.element.bits() as usize, self.pattern.run as usize);
        let bytes = storage.bytes(self.buffer);
        if let (Some((first, stride)), true) = (
            self.runs(run * 8 / bits),
            run >= LONG_RUN && self.pattern.fits(bytes.len() as u64),
        ) {
            let (rows, columns) = (self.bytes() as usize / run, run * 8 / bits);
            values.resize(rows * columns, 0.0);
            return Encoded::new(self.element, &bytes[first..], rows, columns, stride)
                .and_then(|m| m.decode(values))
                .map_err(fault);
        }
        self.gather(storage, packed)?;
        values.resize(packed.len() * 8 / bits, 0.0);
        decode_f32(self.element, packed, values).map_err(fault)
    }

    /// Rounds numbers and puts them; `packed` is room to work.
    fn write(
        &self,
        storage: &mut Storage<'_>,
        packed: &mut Vec<u8>,
        values: &[f32],
    ) -> Result<(), Fault> {
        packed.resize(values.len() * self.element.bits() as usize / 8, 0);
        encode_f32(self.element, values, Rounding::NearestEven, packed).map_err(fault)?;
        strided::scatter(packed, storage.bytes_mut(self.buffer), &self.pattern).map_err(fault)
    }
}

/// The type of what an access touches, given all elements that an instruction touches.
fn tensor_of<'e>(
    access: &Access,
    elements: impl IntoIterator<Item = &'e Elements>,
) -> Option<(ElementType, Vec<u64>)> {
    let elements: Vec<&Elements> = elements.into_iter().collect();
    let same = elements.iter().find(|one| one.is_touched_by(access));
    // Weights are read in another order than their instruction counts them in.
    let found = same.or_else(|| elements.iter().find(|one| one.surrounds(access)))?;
    Some((found.element, Vec::new()))
}

/// Moves bytes as they are.
fn move_bytes(storage: &mut Storage<'_>, from: &Elements, to: &Elements) -> Result<(), Fault> {
    match storage.split([from.buffer], to.buffer) {
        Some(([source], destination)) => {
            strided::copy(source, &from.pattern, destination, &to.pattern)
        }
        None => strided::copy_within(storage.bytes_mut(to.buffer), &from.pattern, &to.pattern),
    }
    .map_err(fault)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn fault(error: Error) -> Fault {
    Fault {
        unsupported: matches!(error, Error::Memory { .. }),
        message: error.to_string(),
    }
}

/// Names a type code that no program at hand has proven.
fn unproven_codes(codes: impl IntoIterator<Item = u8>) -> Option<std::borrow::Cow<'static, str>> {
    let unproven = codes
        .into_iter()
        .filter_map(crate::stream::ElementCode::of)
        .find(|code| code.evidence != Evidence::Proven)?;
    Some(format!("element type {} of an instruction", unproven.name).into())
}
