//! One tensor reference of an argument block, and the tensor that it stands for.
//!
//! A tensor whose sizes the program computes has the static flag 0. Its dims pointer is then an address in CMX without the tile's
//! bit, where kernels write and read the sizes; its strides are those of the upper bounds, which stand in the section like those
//! of any other tensor: the dims of all inputs, the strides of all inputs, then dims and strides of the outputs.

use super::{ArgumentError, Layout, MAX_ELEMENTS, MAX_RANK, REFERENCE_SIZE, Reader, TensorField};
use crate::shave::invocation::TensorRef;
use crate::shave::tensor::Shape;
use chipless_model::{ElementType, Loop, Pattern, access};

/// A reference as it stands in the block.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    /// Which one of the block.
    index: usize,
    /// Offsets of its dims pointer and its strides pointer in the section.
    pointers_at: [u64; 2],
    address: u64,
    is_static: bool,
    rank: usize,
    dims: u32,
    /// Offset of the strides in the section.
    strides_at: u64,
    element: ElementType,
    order: u64,
    location: u32,
}

impl Reference {
    fn field(&self, name: &'static str) -> TensorField {
        TensorField {
            name,
            tensor: self.index,
        }
    }

    /// Where the strides end.
    fn strides_end(&self) -> u64 {
        self.strides_at + self.rank as u64 * 8
    }
}

impl Reader<'_> {
    /// The next tensor reference.
    pub(super) fn reference(&mut self, index: usize) -> Result<Reference, ArgumentError> {
        let start = self.at;
        let field = |name| TensorField {
            name,
            tensor: index,
        };
        let mut reference = [0; REFERENCE_SIZE];
        // A short reference is read as a long one whose address has no upper half.
        let missing = match self.layout {
            Layout::Short => {
                let bytes: [u8; REFERENCE_SIZE - 4] = self.next(field("reference"))?;
                let (address, rest) = bytes.split_at(4);
                reference[..4].copy_from_slice(address);
                reference[8..].copy_from_slice(rest);
                4
            }
            Layout::Long => {
                reference = self.next(field("reference"))?;
                0
            }
        };
        let word = |at: usize| number(&reference[at..at + 4]);
        let at = |offset: u64| start + offset - missing;

        let rank = word(12) as u32;
        if !(1..=MAX_RANK).contains(&rank) {
            return Err(self.error(at(12), field("rank"), format_args!("1 to {MAX_RANK}"), rank));
        }
        let code = word(24);
        let element = element_type(code)
            .ok_or_else(|| self.error(at(24), field("element type"), "a known code", code))?;
        let is_static = word(8) != 0;
        if is_static {
            self.pointed(at(16), word(16), u64::from(rank) * 4, field("dims pointer"))?;
        }
        let strides_size = u64::from(rank) * 8;
        let strides = self.pointed(at(20), word(20), strides_size, field("strides pointer"));
        let (strides_at, _) = strides.map_err(|error| error.dynamic_unless(is_static))?;
        Ok(Reference {
            index,
            pointers_at: [at(16), at(20)],
            address: number(&reference[..8]),
            is_static,
            rank: rank as usize,
            dims: word(16) as u32,
            strides_at,
            element,
            order: number(&reference[28..36]),
            location: word(36) as u32,
        })
    }

    /// The tensors of references, which must be all of the block where one has sizes that the program computes.
    pub(super) fn resolve(
        &mut self,
        references: &[Reference],
    ) -> Result<Vec<TensorRef>, ArgumentError> {
        let mut tensors = Vec::with_capacity(references.len());
        for reference in references {
            let found = self.tensor(reference, references);
            let (dims_at, tensor) =
                found.map_err(|error| error.dynamic_unless(reference.is_static))?;
            self.dims_at = self.dims_at.min(dims_at);
            tensors.push(tensor);
        }
        Ok(tensors)
    }

    /// The tensor of a reference, and where its dims stand.
    fn tensor(
        &self,
        reference: &Reference,
        all: &[Reference],
    ) -> Result<(u64, TensorRef), ArgumentError> {
        let (rank, element) = (reference.rank, reference.element);
        let pointer = if reference.is_static {
            reference.dims
        } else {
            let bounds = bounds_at(all, reference.index).unwrap_or(u64::MAX);
            (bounds as u32).wrapping_add(self.section.base as u32)
        };
        let (dims_at, dims) = self.pointed(
            reference.pointers_at[0],
            u64::from(pointer),
            rank as u64 * 4,
            reference.field("dims pointer"),
        )?;
        let dims: Vec<u32> = dims.chunks_exact(4).map(|dim| number(dim) as u32).collect();
        let strides = usize::try_from(reference.strides_at)
            .ok()
            .and_then(|at| self.section.bytes.get(at..at + rank * 8))
            .unwrap_or_default();
        let strides_bits: Vec<u64> = strides.chunks_exact(8).map(number).collect();

        let elements = dims
            .iter()
            .try_fold(1, |product: u64, dim| product.checked_mul(u64::from(*dim)));
        if elements.is_none_or(|elements| elements == 0 || elements > MAX_ELEMENTS) {
            let expected = format!("sizes from 1, {MAX_ELEMENTS} elements at most");
            return Err(self.error(
                dims_at,
                reference.field("dims"),
                expected,
                format_args!("{dims:?}"),
            ));
        }
        // The bounds are where they are expected only if the strides are theirs.
        if !reference.is_static && !is_dense(element, &dims, &strides_bits) {
            return Err(self.error(
                reference.pointers_at[1],
                reference.field("strides"),
                "those of a dense tensor of the upper bounds, as the shape is dynamic",
                format_args!("{strides_bits:?} bits for bounds {dims:?} of {element}"),
            ));
        }
        let pattern = pattern(element, &dims, &strides_bits).ok_or_else(|| {
            let expected = "whole bytes between strided parts, no overlap, and not too many loops";
            self.error(
                reference.strides_at,
                reference.field("strides in bits"),
                expected,
                format_args!("{strides_bits:?} for dims {dims:?} of {element}"),
            )
        })?;
        let tensor = TensorRef {
            address: reference.address,
            shape: Shape {
                element,
                dims,
                order: reference.order,
            },
            strides_bits,
            location: reference.location,
            pattern,
            sizes: (!reference.is_static).then_some(u64::from(reference.dims)),
        };
        Ok((dims_at, tensor))
    }

    /// The offset and the bytes at a pointer into the section.
    fn pointed(
        &self,
        at: u64,
        pointer: u64,
        size: u64,
        field: TensorField,
    ) -> Result<(u64, &[u8]), ArgumentError> {
        let section = self.section.bytes;
        let offset = u64::from((pointer as u32).wrapping_sub(self.section.base as u32));
        let range = usize::try_from(offset)
            .ok()
            .zip(usize::try_from(offset + size).ok());
        let bytes = range
            .and_then(|(start, end)| section.get(start..end))
            .ok_or_else(|| {
                let expected = format!(
                    "{size} bytes inside the section of {} bytes at {:#x}",
                    section.len(),
                    self.section.base
                );
                self.error(at, field, expected, format_args!("address {pointer:#x}"))
            })?;
        Ok((offset, bytes))
    }
}

/// Where the upper bounds of a reference stand: its group (inputs or outputs) has its strides in a row, and its dims in a row before.
fn bounds_at(all: &[Reference], index: usize) -> Option<u64> {
    let follows = |at: usize| {
        let (before, this) = (all.get(at.wrapping_sub(1)), all.get(at));
        before
            .zip(this)
            .is_some_and(|(before, this)| before.strides_end() == this.strides_at)
    };
    let first = (1..=index).rev().find(|at| !follows(*at)).unwrap_or(0);
    let end = (index + 1..all.len())
        .find(|at| !follows(*at))
        .unwrap_or(all.len());
    let bytes: u64 = all
        .get(index..end)?
        .iter()
        .map(|reference| reference.rank as u64 * 4)
        .sum();
    all.get(first)?.strides_at.checked_sub(bytes)
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn is_dense(element: ElementType, dims: &[u32], strides_bits: &[u64]) -> bool {
    let mut dense = element.bits();
    dims.iter().zip(strides_bits).all(|(dim, stride)| {
        let fits = *stride == dense;
        dense = dense.saturating_mul(u64::from(*dim));
        fits
    })
}

/// The element type of a code at offset 24 of a reference. Code 3 is an 8-bit float of a format that no source tells.
fn element_type(code: u64) -> Option<ElementType> {
    Some(match code {
        0 => ElementType::Float64,
        1 => ElementType::Float32,
        2 => ElementType::Float16,
        4 => ElementType::UInt64,
        5 => ElementType::UInt32,
        6 => ElementType::UInt16,
        7 => ElementType::UInt8,
        8 => ElementType::Int64,
        9 => ElementType::Int32,
        10 => ElementType::Int16,
        11 => ElementType::Int8,
        12 => ElementType::Int4,
        13 => ElementType::Int2,
        14 => ElementType::Binary,
        15 => ElementType::BFloat16,
        17 => ElementType::UInt4,
        _ => return None,
    })
}

/// The bytes of a tensor from its address on. `None` where elements overlap (so that a tensor never holds more elements
/// than its bytes), where a part that is not dense does not consist of whole bytes, or where it takes more loops than a
/// pattern has.
fn pattern(element: ElementType, dims: &[u32], strides_bits: &[u64]) -> Option<Pattern> {
    let mut run_bits = element.bits();
    let mut end_bits = run_bits;
    let mut loops = Vec::new();
    for (dim, stride) in dims.iter().zip(strides_bits).filter(|(dim, _)| **dim > 1) {
        if *stride < end_bits {
            return None;
        }
        if loops.is_empty() && *stride == run_bits {
            run_bits = run_bits.checked_mul(u64::from(*dim))?;
        } else {
            let bytes = stride
                .is_multiple_of(8)
                .then(|| i64::try_from(stride / 8).ok())??;
            loops.push(Loop {
                count: u64::from(*dim),
                stride: bytes,
            });
        }
        end_bits = end_bits.checked_add(stride.checked_mul(u64::from(*dim) - 1)?)?;
    }
    if !loops.is_empty() && !run_bits.is_multiple_of(8) {
        return None;
    }
    let pattern = Pattern::new(0, run_bits.div_ceil(8), loops);
    (pattern.loops.len() <= access::MAX_LOOPS).then_some(pattern)
}
