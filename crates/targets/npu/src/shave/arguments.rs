//! Argument blocks: what a SHAVE kernel invocation works on.
//!
//! A block is a row of tensor references of 40 bytes, then packed scalars. A reference (NPU4, `shave.params`): u64 address
//! at 0, u32 static flag at 8, u32 rank at 12, u32 pointer to u32 dims at 16, u32 pointer to u64 strides in bits at 20, u32
//! element type at 24, u64 order at 28, u32 location at 36. Compilers up to release 2026.2.1 write an address of 32 bits and
//! have everything after it four bytes earlier. Dims and strides are in memory order, innermost first, and lie in the same
//! section.

mod reference;

use super::invocation::TensorRef;
use super::operation::Operation;
use std::fmt;

/// Bytes of a tensor reference at most.
const REFERENCE_SIZE: usize = 40;
/// The least number that is a pointer rather than a rank or a flag.
const LEAST_POINTER: u64 = 4096;
/// Dims that the order code has room for.
const MAX_RANK: u32 = 15;
/// Elements of one tensor, at most: far beyond any on-chip memory, and small enough for products with strides.
const MAX_ELEMENTS: u64 = 1 << 40;
/// Tensors of one invocation, at most; the longest known block has nine.
const MAX_TENSORS: usize = 16;
/// Ends a row of references of variable length.
const VARIADIC_MARKER: i64 = i64::MAX;
/// Ends a row of references of which some are left out; a bit mask of those present follows.
const OPTIONAL_MARKER: i64 = i64::MIN;

/// Why an argument block was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "argument block at {block:#x} of shave.params: {field} at {at:#x}: expected {expected}, found {found}"
)]
pub struct ArgumentError {
    /// Offset of the block in its section.
    pub block: u64,
    /// Offset of the field in the section.
    pub at: u64,
    /// What the field is.
    pub field: String,
    /// What would have been right.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// Whether nothing is wrong, but a tensor has a shape that the program computes.
    pub is_dynamic: bool,
}

impl ArgumentError {
    /// The error about a tensor whose shape the program computes, unless it does not.
    fn dynamic_unless(self, is_static: bool) -> ArgumentError {
        ArgumentError {
            is_dynamic: !is_static,
            ..self
        }
    }
}

/// Bytes of the address that a tensor reference starts with, which tells the compilers' two layouts apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// 4: references of 36 bytes, up to release 2026.2.1.
    Short,
    /// 8: references of 40 bytes, from release 2026.3.0 on.
    Long,
}

/// The section of argument blocks, relocated.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    bytes: &'a [u8],
    base: u64,
}

impl<'a> Section<'a> {
    /// A section's bytes and the address for which its pointers were relocated. Pointers have 32 bits: they count modulo 2^32.
    pub fn new(bytes: &'a [u8], base: u64) -> Section<'a> {
        Section { bytes, base }
    }

    /// The tensors at the start of the block of an unknown kernel, as far as they look like tensors: a guess for a
    /// listing, since scalars may follow that look like one more.
    pub fn leading_tensors(&self, offset: u64) -> Vec<TensorRef> {
        let mut reader = self.reader(offset);
        let (mut references, mut tensors) = (Vec::new(), Vec::new());
        while references.len() < MAX_TENSORS {
            let Ok(reference) = reader.reference(references.len()) else {
                break;
            };
            references.push(reference);
            match reader.resolve(&references) {
                Ok(found) => tensors = found,
                Err(_) => break,
            }
        }
        tensors
    }

    pub(super) fn reader(&self, block: u64) -> Reader<'a> {
        // The rank of a long reference stands where a short one has a pointer.
        let fourth: Option<[u8; 4]> = block.checked_add(12).and_then(|at| self.get(at));
        let layout = match fourth.map(u32::from_le_bytes) {
            Some(word) if u64::from(word) >= LEAST_POINTER => Layout::Short,
            _ => Layout::Long,
        };
        Reader {
            section: *self,
            block,
            at: block,
            layout,
            dims_at: u64::MAX,
        }
    }

    fn get<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let at = usize::try_from(at).ok()?;
        self.bytes.get(at..at.checked_add(N)?)?.try_into().ok()
    }
}

/// A field of a reference, named only when it is wrong.
#[derive(Clone, Copy)]
struct TensorField {
    name: &'static str,
    tensor: usize,
}

impl fmt::Display for TensorField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of tensor {}", self.name, self.tensor)
    }
}

/// Reads one block, field by field.
pub(super) struct Reader<'a> {
    section: Section<'a>,
    block: u64,
    at: u64,
    layout: Layout,
    /// Where the dims of its tensors begin.
    dims_at: u64,
}

impl Reader<'_> {
    /// Bytes up to the dims of the block's tensors, which follow its scalars.
    pub(super) fn left(&self) -> u64 {
        self.dims_at.saturating_sub(self.at)
    }

    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    pub(super) fn error(
        &self,
        at: u64,
        field: impl fmt::Display,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> ArgumentError {
        ArgumentError {
            block: self.block,
            at,
            field: field.to_string(),
            expected: expected.to_string(),
            found: found.to_string(),
            is_dynamic: false,
        }
    }

    fn bytes<const N: usize>(
        &self,
        at: u64,
        field: impl fmt::Display,
    ) -> Result<[u8; N], ArgumentError> {
        let size = self.section.bytes.len();
        self.section.get(at).ok_or_else(|| {
            self.error(
                at,
                field,
                format_args!("{N} bytes inside the section"),
                format_args!("a section of {size} bytes"),
            )
        })
    }

    /// The next bytes of the block.
    fn next<const N: usize>(&mut self, field: impl fmt::Display) -> Result<[u8; N], ArgumentError> {
        let bytes = self.bytes(self.at, field)?;
        self.at += N as u64;
        Ok(bytes)
    }

    /// The next scalar, 64 bits.
    pub(super) fn i64(&mut self, field: &str) -> Result<i64, ArgumentError> {
        self.next(field).map(i64::from_le_bytes)
    }

    /// The next 32 bits, within a range.
    pub(super) fn word(&mut self, field: &str, low: i32, high: i32) -> Result<i32, ArgumentError> {
        let value = self.next(field).map(i32::from_le_bytes)?;
        if (low..=high).contains(&value) {
            Ok(value)
        } else {
            Err(self.error(self.at - 4, field, format_args!("{low} to {high}"), value))
        }
    }

    /// The next scalar, binary32.
    pub(super) fn f32(&mut self, field: &str) -> Result<f32, ArgumentError> {
        self.next(field).map(f32::from_le_bytes)
    }

    /// The next scalar, binary16.
    pub(super) fn f16(&mut self, field: &str) -> Result<f32, ArgumentError> {
        self.next(field)
            .map(|bytes| half::f16::from_le_bytes(bytes).to_f32())
    }

    /// The next 64 bits, within a range.
    pub(super) fn between(
        &mut self,
        field: &str,
        low: i64,
        high: i64,
    ) -> Result<i64, ArgumentError> {
        let value = self.i64(field)?;
        if (low..=high).contains(&value) {
            Ok(value)
        } else {
            Err(self.error(self.at - 8, field, format_args!("{low} to {high}"), value))
        }
    }

    /// The next 64 bits, as one of several choices.
    pub(super) fn choice<T: Copy>(
        &mut self,
        field: &str,
        choices: &[T],
    ) -> Result<T, ArgumentError> {
        let value = self.between(field, 0, choices.len() as i64 - 1)?;
        choices
            .get(value as usize)
            .copied()
            .ok_or_else(|| self.error(self.at - 8, field, "a known choice", value))
    }

    /// The next 64 bits: zero is false, all else is true.
    pub(super) fn flag(&mut self, field: &str) -> Result<bool, ArgumentError> {
        Ok(self.i64(field)? != 0)
    }

    /// The next 64 bits, as a dim of a tensor of this rank.
    pub(super) fn axis(&mut self, field: &str, rank: usize) -> Result<usize, ArgumentError> {
        self.between(field, 0, rank as i64 - 1)
            .map(|axis| axis as usize)
    }

    /// A count of 64 bits and as many dims of a tensor of this rank.
    pub(super) fn axes(&mut self, rank: usize) -> Result<Vec<usize>, ArgumentError> {
        let count = self.between("number of axes", 1, rank as i64)?;
        (0..count).map(|_| self.axis("axis", rank)).collect()
    }

    /// The next `N` 64-bit numbers, each within a range.
    pub(super) fn array<const N: usize>(
        &mut self,
        field: &str,
        low: i64,
        high: i64,
    ) -> Result<[u32; N], ArgumentError> {
        let mut values = [0; N];
        for value in &mut values {
            *value = self.between(field, low, high)? as u32;
        }
        Ok(values)
    }

    /// Where the next byte is in the section.
    pub(super) fn place(&self) -> u64 {
        self.at
    }

    /// Passes over bytes that are not used.
    pub(super) fn skip(&mut self, bytes: u64) {
        self.at = self.at.saturating_add(bytes);
    }

    /// Passes the marker of optional tensors and its mask, which some releases write and others do not.
    pub(super) fn skip_optional_marker(&mut self) {
        if self.at_optional_marker() {
            self.skip(16);
        }
    }

    fn at_optional_marker(&self) -> bool {
        let bytes = self.section.get(self.at);
        bytes.is_some_and(|bytes| i64::from_le_bytes(bytes) == OPTIONAL_MARKER)
    }

    /// Whether another reference comes, rather than scalars: its pointers lead into the section.
    fn at_reference(&self) -> bool {
        let first = match self.layout {
            Layout::Short => 12,
            Layout::Long => 16,
        };
        let word = |field: u64| {
            let at = self.at.checked_add(field)?;
            self.section.get(at).map(u32::from_le_bytes)
        };
        let inside = |field: u64| {
            word(field).is_some_and(|pointer| {
                let offset = pointer.wrapping_sub(self.section.base as u32);
                (offset as usize) < self.section.bytes.len()
            })
        };
        let is_static = word(first - 8) != Some(0);
        (inside(first) || !is_static) && inside(first + 4)
    }

    fn at_marker(&self) -> bool {
        self.section.get(self.at).is_some_and(|bytes| {
            matches!(i64::from_le_bytes(bytes), VARIADIC_MARKER | OPTIONAL_MARKER)
        })
    }

    /// The tensors of the block, and the mask of those present where the block has one.
    pub(super) fn tensors(
        &mut self,
        operation: Operation,
    ) -> Result<(Vec<TensorRef>, u64), ArgumentError> {
        let fixed = operation.roles().len();
        let mut references = Vec::with_capacity(fixed);
        loop {
            let count = references.len();
            let complete = match operation {
                Operation::EmbeddingBagPacked
                | Operation::FullyConnected
                | Operation::Interpolate
                | Operation::Mvn6
                | Operation::ScaledDotProductAttention
                | Operation::StridedSlice => self.at_marker() || count == MAX_TENSORS,
                // The second scratch came with release 2026.1.0.
                Operation::TopK => count == fixed || (count + 1 == fixed && !self.at_reference()),
                // Lengths of the sequences may be given.
                Operation::LstmSequence | Operation::LstmSequenceDpu => {
                    count == fixed + 1 || (count == fixed && !self.at_reference())
                }
                Operation::NonMaxSuppression => {
                    count == fixed + 2 || (count + 1 >= fixed && !self.at_reference())
                }
                _ => count == fixed,
            };
            if complete {
                break;
            }
            references.push(self.reference(count)?);
        }
        let tensors = self.resolve(&references)?;
        let present = match operation {
            Operation::Interpolate => self.variadic(&tensors, &[2, 4])?,
            Operation::EmbeddingBagPacked | Operation::FullyConnected => {
                self.variadic(&tensors, &[3, 4])?
            }
            Operation::StridedSlice => self.variadic(&tensors, &[2, 3, 4, 5])?,
            Operation::Mvn6 => self.optional_mask(tensors.len(), 0b1001, 0b1111)?,
            // One bit for the scratch, which stands there twice.
            Operation::ScaledDotProductAttention => {
                self.optional_mask(tensors.len().saturating_sub(1), 0xc7, 0xdf)?
            }
            // The first releases have no marker.
            Operation::DynamicQuantize if self.at_optional_marker() => {
                self.optional_mask(tensors.len(), 0x3f, 0x3f)?
            }
            Operation::LstmSequence | Operation::LstmSequenceDpu if self.at_optional_marker() => {
                self.optional_mask(tensors.len(), 0x3f7, 0x3ff)?
            }
            Operation::EmbeddingBagOffsets => {
                self.between("end of the tensors", VARIADIC_MARKER, VARIADIC_MARKER)? as u64
            }
            _ => 0,
        };
        Ok((tensors, present))
    }

    /// The end of tensors of which there may be several counts; no mask follows.
    fn variadic(&mut self, tensors: &[TensorRef], counts: &[usize]) -> Result<u64, ArgumentError> {
        self.between("end of the tensors", VARIADIC_MARKER, VARIADIC_MARKER)?;
        if counts.contains(&tensors.len()) {
            return Ok(0);
        }
        let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
        let expected = counts.join(" or ");
        Err(self.error(self.block, "row of tensors", expected, tensors.len()))
    }

    /// The mask after the tensors, with as many bits as there were: all of `required` and nothing but `allowed`.
    fn optional_mask(
        &mut self,
        tensors: usize,
        required: u64,
        allowed: u64,
    ) -> Result<u64, ArgumentError> {
        self.between("end of the tensors", OPTIONAL_MARKER, OPTIONAL_MARKER)?;
        let mask = self.i64("mask of the tensors")? as u64;
        if mask & required != required
            || mask & !allowed != 0
            || mask.count_ones() as usize != tensors
        {
            let expected = format!(
                "{tensors} bits, those of {required:#x} and none but those of {allowed:#x}"
            );
            return Err(self.error(
                self.at - 8,
                "mask of the tensors",
                expected,
                format_args!("{mask:#x}"),
            ));
        }
        Ok(mask)
    }
}
