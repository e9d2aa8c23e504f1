//! What a DMA queue moves: transfers of instructions, and descriptors of the engine JSON files.

use super::dependence::{Relation, follow};
use super::{Elements, fault, integers, move_bytes, tensor_of};
use crate::stream::{Instruction, Slot};
use chipless_kernels::cast::{Rounding, decode_f32, encode_f32};
use chipless_kernels::strided;
use chipless_model::{
    Access, BufferId, Dependence, Doubt, ElementType, Fault, Grade, Kernel, Pattern, Storage,
};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt::Debug;

/// Why numbers that rest on an address in a register are not proven.
pub(super) const UNPROVEN: &str = "that an offset in a register counts bytes";

/// A transfer.
#[derive(Debug)]
pub(crate) struct Transfer<'a> {
    /// As the program has it, for lists.
    pub(crate) text: Text<'a>,
    pub(crate) sources: SmallVec<[Elements; 1]>,
    pub(crate) to: Elements,
    pub(crate) operation: Operation,
}

/// Where a transfer stands in the program.
#[derive(Debug)]
pub(crate) enum Text<'a> {
    /// An instruction.
    Slot(&'a Slot),
    /// A descriptor; the rings that its rows go to.
    Descriptor(&'a crate::engine::Descriptor<'a>, String),
}

/// What happens to the bytes on the way.
#[derive(Debug)]
pub(crate) enum Operation {
    /// Nothing.
    Copy,
    /// They become elements of another type.
    Cast,
    /// Elements at the same position of all sources are put together, in the order of the sources.
    Compute {
        how: Compute,
        /// The factor of each source.
        scales: Vec<f32>,
        /// One more operand, before the sources.
        constant: Option<f32>,
    },
    /// The dimensions change places: the source has them in the reverse order of this shape.
    Transpose {
        /// Shape of the result in elements, innermost first.
        shape: Vec<usize>,
        element_bytes: usize,
    },
}

/// How elements are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compute {
    /// Their sum. With factors, the sum of the products.
    Add,
    /// The least.
    Min,
    /// The largest.
    Max,
}

/// Elements converted at a time; few enough to stay in the first-level cache.
const BLOCK: usize = 1024;

impl Kernel for Transfer<'_> {
    fn operation(&self) -> Cow<'static, str> {
        match (&self.text, &self.operation) {
            (Text::Slot(_), Operation::Copy) => "dma copy".into(),
            (Text::Slot(_), _) => "dma cast".into(),
            (Text::Descriptor(descriptor, _), _) => {
                format!("dma {}", descriptor.operation.name()).into()
            }
        }
    }

    fn details(&self) -> String {
        match &self.text {
            Text::Slot(slot) => crate::stream::Details(slot).to_string(),
            Text::Descriptor(descriptor, rings) => {
                let sources: Vec<String> = descriptor
                    .sources()
                    .map(|source| format!(" src={}", side(source)))
                    .collect();
                let tiling = descriptor
                    .num_tiling_dimensions
                    .map_or_else(String::new, |n| format!(" tiling={n}"));
                format!(
                    "dst={}{}{tiling}{rings}",
                    side(&descriptor.to),
                    sources.concat()
                )
            }
        }
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        for source in &self.sources {
            visit(source.read_access());
        }
        visit(self.to.write_access());
    }

    fn dependence(
        &self,
        doubtful: &dyn Doubt,
        visit: &mut dyn FnMut(BufferId, Pattern),
    ) -> Dependence {
        let relation = match &self.operation {
            Operation::Copy | Operation::Cast | Operation::Compute { .. } => Relation::Each,
            Operation::Transpose { .. } => Relation::All,
        };
        // What is copied goes byte by byte, whatever the types.
        let bytes = |elements: &Elements| match self.operation {
            Operation::Copy => elements.as_bytes(),
            _ => elements.clone(),
        };
        let to = bytes(&self.to);
        for source in &self.sources {
            follow(&bytes(source), &to, relation, doubtful, visit);
        }
        Dependence::Bytes
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        match (&self.operation, &self.sources[..]) {
            (Operation::Copy, [from]) => move_bytes(storage, from, &self.to),
            (Operation::Cast, [_]) => self.compute(storage, Compute::Add, &[1.0], None),
            (
                Operation::Transpose {
                    shape,
                    element_bytes,
                },
                [from],
            ) => self.transpose(storage, from, shape, *element_bytes),
            (
                Operation::Compute {
                    how,
                    scales,
                    constant,
                },
                _,
            ) => self.compute(storage, *how, scales, *constant),
            _ => Err(Fault::program(format!(
                "{} sources, expected one",
                self.sources.len()
            ))),
        }
    }

    fn results(&self, visit: &mut dyn FnMut(Access, ElementType)) {
        if self.to.element.nonfinite_bits().is_some() {
            visit(self.to.write_access(), self.to.element);
        }
    }

    fn tensor(&self, access: &Access) -> Option<(ElementType, Vec<u64>)> {
        let found = tensor_of(access, self.sources.iter().chain([&self.to]))?;
        // What is copied as bytes may be anything.
        let says_nothing =
            matches!(self.operation, Operation::Copy) && found.0 == ElementType::UInt8;
        (!says_nothing).then_some(found)
    }

    fn source_of(&self, buffer: BufferId, byte: u64) -> Option<(BufferId, u64)> {
        match (&self.operation, &self.sources[..]) {
            (Operation::Copy, [from]) => self.to.taken_from(from, buffer, byte),
            _ => None,
        }
    }

    fn grade(&self) -> Grade {
        match (self.unproven(), &self.text) {
            (None, _) => Grade::Proven,
            (Some(_), Text::Slot(slot)) if is_addressed(slot) => Grade::Assumed,
            (Some(_), Text::Slot(_)) => Grade::Quoted,
            (Some(_), Text::Descriptor(..)) => Grade::Assumed,
        }
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        match (&self.text, &self.operation) {
            (Text::Slot(slot), _) => {
                let Instruction::Dma(dma) = slot.decode() else {
                    return None;
                };
                if is_addressed(slot) {
                    return Some(UNPROVEN.into());
                }
                let (source, destination) = dma.codes();
                super::unproven_codes([source, destination].into_iter().filter(|_| dma.casts()))
            }
            (
                Text::Descriptor(..),
                Operation::Compute {
                    how: Compute::Add, ..
                },
            ) => Some("the order of a descriptor's additions".into()),
            (Text::Descriptor(..), Operation::Transpose { shape, .. }) if shape.len() > 1 => {
                Some("the order of a descriptor's transpose_shape".into())
            }
            (Text::Descriptor(..), Operation::Cast) if self.rounds() => {
                Some("the rounding of conversions from and to integers".into())
            }
            (Text::Descriptor(..), _) => {
                Some("descriptors run once, in the order of the list".into())
            }
        }
    }
}

/// Whether registers say where a transfer of an instruction goes.
fn is_addressed(slot: &Slot) -> bool {
    let Instruction::Dma(dma) = slot.decode() else {
        return false;
    };
    let sides = [dma.src(), dma.dst()];
    sides
        .iter()
        .any(|side| side.address.target().is_in_registers())
}

/// One side of a descriptor: `x+0x10[1,256][256,128]` are variable, offset, steps and sizes.
fn side(side: &crate::engine::AccessPattern<'_>) -> String {
    let list = |numbers: &[String]| format!("[{}]", numbers.join(","));
    let steps: Vec<String> = side.steps.iter().map(ToString::to_string).collect();
    let sizes: Vec<String> = side.sizes.iter().map(ToString::to_string).collect();
    let (variable, offset) = (
        side.variable.as_deref().unwrap_or("?"),
        side.offset.unwrap_or(0),
    );
    let dtype = side
        .dtype
        .map_or(String::new(), |dtype| format!("{}@", dtype.name()));
    format!(
        "{dtype}{variable}+{offset:#x}{}{}",
        list(&steps),
        list(&sizes)
    )
}

impl Transfer<'_> {
    /// Decodes the sources to binary32, puts their elements together and rounds the result, block by block.
    fn compute(
        &self,
        storage: &mut Storage<'_>,
        how: Compute,
        scales: &[f32],
        constant: Option<f32>,
    ) -> Result<(), Fault> {
        let mut sources = Vec::with_capacity(self.sources.len());
        for from in &self.sources {
            // What the transfer itself overwrites is taken before it writes.
            let taken = if from.buffer == self.to.buffer {
                Some(take(storage, from)?)
            } else {
                None
            };
            sources.push((from, Cursor::new(&from.pattern), taken));
        }
        let size = (self.to.element.bits() / 8) as usize;
        let total = usize::try_from(self.to.bytes())
            .map_err(|_| Fault::program("more than 2^64 bytes"))?
            / size;
        let mut left = total;
        let keeps_digits = integers::is_integer(self.to.element);
        let sums_integers = how == Compute::Add
            && integers::is_wide(self.to.element)
            && self.sources.iter().all(|s| integers::is_integer(s.element));
        let mut to = Cursor::new(&self.to.pattern);
        let (mut packed, mut values, mut results) = ([0; BLOCK * 8], [0.0; BLOCK], [0.0; BLOCK]);
        let mut exact = [0.0; BLOCK];
        while left > 0 {
            let count = left.min(BLOCK);
            let results = &mut results[..count];
            let mut first = constant.is_none();
            if let Some(constant) = constant {
                results.fill(constant);
            }
            exact.fill(f64::from(constant.unwrap_or(0.0)));
            for ((from, cursor, taken), scale) in sources.iter_mut().zip(scales) {
                let packed = &mut packed[..count * (from.element.bits() / 8) as usize];
                match taken {
                    Some(bytes) => cursor.packed(bytes, packed),
                    None => cursor.read(storage.bytes(from.buffer), packed),
                }
                let values = &mut values[..count];
                decode_f32(from.element, packed, values).map_err(fault)?;
                if keeps_digits {
                    integers::remark_packed(storage, from.element, packed, total - left)?;
                }
                if sums_integers {
                    for (sum, value) in exact.iter_mut().zip(&*values) {
                        *sum += f64::from(*value) * f64::from(*scale);
                    }
                }
                put(how, results, values, *scale, first);
                first = false;
            }
            if sums_integers {
                integers::remark_results(storage, self.to.element, results, &exact, total - left);
            }
            let packed = &mut packed[..count * size];
            encode_f32(self.to.element, results, Rounding::NearestEven, packed).map_err(fault)?;
            to.write(storage.bytes_mut(self.to.buffer), packed);
            left -= count;
        }
        Ok(())
    }

    /// Whether a conversion may round in a way that nothing tells: to integers, and from those that binary32 does not hold.
    fn rounds(&self) -> bool {
        integers::is_integer(self.to.element)
            || self
                .sources
                .iter()
                .any(|source| integers::is_wide(source.element))
    }

    fn transpose(
        &self,
        storage: &mut Storage<'_>,
        from: &Elements,
        shape: &[usize],
        size: usize,
    ) -> Result<(), Fault> {
        let packed = take(storage, from)?;
        let mut turned = vec![0; packed.len()];
        // The source has the dimensions in reverse order: the result's outermost is its innermost.
        let mut strides = vec![size; shape.len()];
        for d in (1..shape.len()).rev() {
            strides[d - 1] = strides[d] * shape[d];
        }
        let mut index = vec![0; shape.len()];
        let mut at = 0;
        for element in turned.chunks_exact_mut(size) {
            element.copy_from_slice(&packed[at..at + size]);
            for ((index, count), stride) in index.iter_mut().zip(shape).zip(&strides) {
                *index += 1;
                at += stride;
                if *index < *count {
                    break;
                }
                at -= stride * count;
                *index = 0;
            }
        }
        strided::scatter(&turned, storage.bytes_mut(self.to.buffer), &self.to.pattern)
            .map_err(fault)
    }
}

/// The bytes of a source, packed.
fn take(storage: &Storage<'_>, from: &Elements) -> Result<Vec<u8>, Fault> {
    let mut packed = Vec::new();
    strided::gather(storage.bytes(from.buffer), &from.pattern, &mut packed).map_err(fault)?;
    Ok(packed)
}

/// Puts a source's elements to the results.
pub(super) fn put(how: Compute, results: &mut [f32], values: &[f32], scale: f32, first: bool) {
    for (result, value) in results.iter_mut().zip(values) {
        let value = value * scale;
        *result = match how {
            _ if first => value,
            Compute::Add => *result + value,
            // NaN stays NaN, whichever side has it.
            Compute::Min if value < *result || value.is_nan() => value,
            Compute::Max if value > *result || value.is_nan() => value,
            Compute::Min | Compute::Max => *result,
        };
    }
}

/// A place in the bytes of a pattern that fits its buffer, from which they are read or written in order.
struct Cursor<'p> {
    runs: chipless_model::access::Runs<'p>,
    run: usize,
    at: usize,
    left: usize,
}

impl<'p> Cursor<'p> {
    fn new(pattern: &'p Pattern) -> Cursor<'p> {
        Cursor {
            runs: pattern.runs(),
            run: pattern.run as usize,
            at: 0,
            left: 0,
        }
    }

    /// The next bytes of the run that the cursor is in, at most `wanted`: where they start, how many.
    fn piece(&mut self, wanted: usize) -> Option<(usize, usize)> {
        if self.left == 0 {
            self.at = self.runs.next()? as usize;
            self.left = self.run;
        }
        let (start, size) = (self.at, self.left.min(wanted));
        self.at += size;
        self.left -= size;
        Some((start, size))
    }

    fn read(&mut self, bytes: &[u8], mut packed: &mut [u8]) {
        while let Some((start, size)) = (!packed.is_empty())
            .then(|| self.piece(packed.len()))
            .flatten()
        {
            let (now, later) = packed.split_at_mut(size);
            now.copy_from_slice(&bytes[start..start + size]);
            packed = later;
        }
    }

    fn write(&mut self, bytes: &mut [u8], mut packed: &[u8]) {
        while let Some((start, size)) = (!packed.is_empty())
            .then(|| self.piece(packed.len()))
            .flatten()
        {
            let (now, later) = packed.split_at(size);
            bytes[start..start + size].copy_from_slice(now);
            packed = later;
        }
    }

    /// Reads on in bytes that are packed already.
    fn packed(&mut self, bytes: &[u8], packed: &mut [u8]) {
        packed.copy_from_slice(&bytes[self.at..self.at + packed.len()]);
        self.at += packed.len();
    }
}
