//! Tensors of a lowered plan: a buffer, a shape, and integers of one to eight bytes (or reals, at the edge to the host).

use chipless_model::{Access, BufferId, Direction, ElementType, Loop, Pattern, Storage};
use smallvec::SmallVec;

/// Elements that a kernel works on at a time: small enough for the stack, large enough for vector units.
pub(crate) const BLOCK: usize = 64;

/// Dimensions of a tensor.
pub(crate) type Shape = SmallVec<[u64; 4]>;

/// How elements are stored: the smallest type that holds the precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    I8,
    I16,
    I32,
    I64,
    F64,
}

impl Element {
    /// For integers of so many bits.
    pub(crate) const fn of_bits(bits: u8) -> Element {
        match bits {
            ..=8 => Element::I8,
            9..=16 => Element::I16,
            17..=32 => Element::I32,
            _ => Element::I64,
        }
    }

    pub(crate) const fn bytes(self) -> u64 {
        match self {
            Element::I8 => 1,
            Element::I16 => 2,
            Element::I32 => 4,
            Element::I64 | Element::F64 => 8,
        }
    }

    pub(crate) const fn model(self) -> ElementType {
        match self {
            Element::I8 => ElementType::Int8,
            Element::I16 => ElementType::Int16,
            Element::I32 => ElementType::Int32,
            Element::I64 => ElementType::Int64,
            Element::F64 => ElementType::Float64,
        }
    }
}

/// A tensor in its buffer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) buffer: BufferId,
    pub(crate) shape: Shape,
    /// Precision in bits; what decides how `gmac_v2` shifts.
    pub(crate) bits: u8,
    pub(crate) element: Element,
}

impl Tensor {
    /// Elements; lowering made sure that they can be counted.
    pub(crate) fn count(&self) -> u64 {
        self.shape.iter().product()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.count() * self.element.bytes()
    }

    /// 64-bit words of memory.
    pub(crate) fn words(&self) -> u64 {
        self.bytes().div_ceil(8)
    }

    pub(crate) fn access(&self, direction: Direction) -> Access {
        let pattern = Pattern::contiguous(0, self.bytes());
        match direction {
            Direction::Read => Access::read(self.buffer, pattern),
            Direction::Write => Access::write(self.buffer, pattern),
        }
    }

    /// The elements in order.
    pub(crate) fn region(&self) -> Region {
        Region {
            buffer: self.buffer,
            element: self.element,
            offset: 0,
            loops: [(self.count(), 1)].into_iter().collect(),
        }
    }

    /// The elements `from..from + length` of a dimension.
    pub(crate) fn slice(&self, dimension: usize, from: u64, length: u64) -> Region {
        let mut region = self.strided();
        region.offset = from * self.stride(dimension);
        region.loops[dimension].0 = length;
        region
    }

    /// The elements in order, a loop for each dimension.
    pub(crate) fn strided(&self) -> Region {
        let loops = (0..self.shape.len())
            .map(|d| (self.shape[d], self.stride(d)))
            .collect();
        Region {
            buffer: self.buffer,
            element: self.element,
            offset: 0,
            loops,
        }
    }

    /// Elements from one index of a dimension to the next.
    pub(crate) fn stride(&self, dimension: usize) -> u64 {
        self.shape[dimension + 1..].iter().product()
    }
}

/// Elements of a buffer in an order: counts and strides in elements, outermost loop first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Region {
    pub(crate) buffer: BufferId,
    pub(crate) element: Element,
    pub(crate) offset: u64,
    pub(crate) loops: SmallVec<[(u64, u64); 4]>,
}

impl Region {
    pub(crate) fn count(&self) -> u64 {
        self.loops.iter().map(|(count, _)| count).product()
    }

    /// The same elements, `by` further on.
    pub(crate) fn shifted(&self, by: u64) -> Region {
        Region {
            offset: self.offset + by,
            ..self.clone()
        }
    }

    pub(crate) fn access(&self, direction: Direction) -> Access {
        let size = self.element.bytes();
        let loops = self.loops.iter().rev().map(|(count, stride)| Loop {
            count: *count,
            stride: (stride * size) as i64,
        });
        let pattern = Pattern::new(self.offset * size, size, loops);
        match direction {
            Direction::Read => Access::read(self.buffer, pattern),
            Direction::Write => Access::write(self.buffer, pattern),
        }
    }

    /// Length of the contiguous runs, and the loops around them.
    fn runs(&self) -> (u64, SmallVec<[(u64, u64); 4]>) {
        let mut run = 1;
        let mut loops = self.loops.clone();
        while let Some((count, stride)) = loops.last().copied() {
            if count != 1 && stride != run {
                break;
            }
            run *= count;
            loops.pop();
        }
        (run, loops)
    }

    /// Visits the offsets of runs of `run` elements, which divide the contiguous ones.
    fn offsets(&self, run: u64, mut visit: impl FnMut(u64)) {
        let (whole, loops) = self.runs();
        if run == 0 || self.count() == 0 {
            return;
        }
        let mut index: SmallVec<[u64; 4]> = loops.iter().map(|_| 0).collect();
        loop {
            let start = self.offset
                + index
                    .iter()
                    .zip(&loops)
                    .map(|(i, (_, stride))| i * stride)
                    .sum::<u64>();
            (0..whole / run).for_each(|piece| visit(start + piece * run));
            let Some(turn) = (0..loops.len()).rev().find(|d| index[*d] + 1 < loops[*d].0) else {
                return;
            };
            index[turn] += 1;
            index[turn + 1..].fill(0);
        }
    }
}

/// Copies elements in order from one region to another of as many elements, converting between types of integers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Move {
    pub(crate) from: Region,
    pub(crate) to: Region,
}

impl Move {
    pub(crate) fn execute(&self, storage: &mut Storage<'_>) {
        let (run_from, run_to) = (self.from.runs().0, self.to.runs().0);
        if let (true, true) = (run_from == self.from.count(), run_to == self.to.count()) {
            return move_run(
                storage,
                &self.from,
                self.from.offset,
                &self.to,
                self.to.offset,
                run_from,
            );
        }
        let run = greatest_common_divisor(run_from, run_to);
        let mut sources: Vec<u64> = Vec::new();
        self.from.offsets(run, |offset| sources.push(offset));
        let mut sources = sources.into_iter();
        let mut pairs: Vec<(u64, u64)> = Vec::new();
        self.to.offsets(run, |offset| {
            pairs.extend(sources.next().map(|source| (source, offset)));
        });
        for (source, offset) in pairs {
            move_run(storage, &self.from, source, &self.to, offset, run);
        }
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Moves a contiguous run. Within one buffer it must not move up.
fn move_run(
    storage: &mut Storage<'_>,
    from: &Region,
    source: u64,
    to: &Region,
    target: u64,
    count: u64,
) {
    let (source, target, count) = (source as usize, target as usize, count as usize);
    if from.element == to.element {
        let size = from.element.bytes() as usize;
        let (read, write) = (source * size..(source + count) * size, target * size);
        match storage.split([from.buffer], to.buffer) {
            Some(([bytes], out)) => out[write..write + read.len()].copy_from_slice(&bytes[read]),
            None => storage.bytes_mut(to.buffer).copy_within(read, write),
        }
        return;
    }
    let mut block = [0; BLOCK];
    for start in (0..count).step_by(BLOCK) {
        let block = &mut block[..BLOCK.min(count - start)];
        load(
            storage.bytes(from.buffer),
            from.element,
            source + start,
            block,
        );
        store(
            storage.bytes_mut(to.buffer),
            to.element,
            target + start,
            block,
        );
    }
}

/// Takes consecutive elements, from element `start` on.
#[inline]
pub(crate) fn load(bytes: &[u8], element: Element, start: usize, out: &mut [i64]) {
    let size = element.bytes() as usize;
    let bytes = &bytes[start * size..(start + out.len()) * size];
    match element {
        Element::I8 => out
            .iter_mut()
            .zip(bytes)
            .for_each(|(o, b)| *o = i64::from(*b as i8)),
        Element::I16 => out
            .iter_mut()
            .zip(bytes.as_chunks::<2>().0)
            .for_each(|(o, b)| *o = i64::from(i16::from_le_bytes(*b))),
        Element::I32 => out
            .iter_mut()
            .zip(bytes.as_chunks::<4>().0)
            .for_each(|(o, b)| *o = i64::from(i32::from_le_bytes(*b))),
        Element::I64 => out
            .iter_mut()
            .zip(bytes.as_chunks::<8>().0)
            .for_each(|(o, b)| *o = i64::from_le_bytes(*b)),
        Element::F64 => out
            .iter_mut()
            .zip(bytes.as_chunks::<8>().0)
            .for_each(|(o, b)| *o = f64::from_le_bytes(*b) as i64),
    }
}

/// One element.
#[inline]
pub(crate) fn at(bytes: &[u8], element: Element, index: usize) -> i64 {
    match element {
        Element::I8 => i64::from(bytes[index] as i8),
        Element::I16 => i64::from(i16::from_le_bytes(bytes.as_chunks::<2>().0[index])),
        Element::I32 => i64::from(i32::from_le_bytes(bytes.as_chunks::<4>().0[index])),
        Element::I64 => i64::from_le_bytes(bytes.as_chunks::<8>().0[index]),
        Element::F64 => f64::from_le_bytes(bytes.as_chunks::<8>().0[index]) as i64,
    }
}

/// Puts consecutive elements.
#[inline]
pub(crate) fn store(bytes: &mut [u8], element: Element, start: usize, values: &[i64]) {
    let size = element.bytes() as usize;
    let bytes = &mut bytes[start * size..(start + values.len()) * size];
    match element {
        Element::I8 => bytes
            .iter_mut()
            .zip(values)
            .for_each(|(b, v)| *b = *v as u8),
        Element::I16 => bytes
            .as_chunks_mut::<2>()
            .0
            .iter_mut()
            .zip(values)
            .for_each(|(b, v)| *b = (*v as i16).to_le_bytes()),
        Element::I32 => bytes
            .as_chunks_mut::<4>()
            .0
            .iter_mut()
            .zip(values)
            .for_each(|(b, v)| *b = (*v as i32).to_le_bytes()),
        Element::I64 => bytes
            .as_chunks_mut::<8>()
            .0
            .iter_mut()
            .zip(values)
            .for_each(|(b, v)| *b = v.to_le_bytes()),
        Element::F64 => bytes
            .as_chunks_mut::<8>()
            .0
            .iter_mut()
            .zip(values)
            .for_each(|(b, v)| *b = (*v as f64).to_le_bytes()),
    }
}

/// Takes every element.
pub(crate) fn load_all(storage: &Storage<'_>, tensor: &Tensor) -> Vec<i64> {
    let mut values = vec![0; tensor.count() as usize];
    load(storage.bytes(tensor.buffer), tensor.element, 0, &mut values);
    values
}

/// `x` shifted left, or right with the sign where `by` is negative, as numpy does it for any distance.
#[inline]
pub(crate) fn shift(x: i64, by: i32) -> i64 {
    match by {
        0..64 => x.wrapping_shl(by as u32),
        64.. => 0,
        -63..0 => x.wrapping_shr(by.unsigned_abs()),
        _ => x >> 63,
    }
}

/// [`shift`], rounding half up where bits are dropped and `rounded` asks for it.
#[inline]
pub(crate) fn rounded_shift(x: i64, by: i32, rounded: bool) -> i64 {
    let half = if rounded && (-63..0).contains(&by) {
        1i64.wrapping_shl(by.unsigned_abs() - 1)
    } else {
        0
    };
    shift(x.wrapping_add(half), by)
}

/// Clips to a signed number of bits.
#[inline]
pub(crate) fn saturate(x: i64, bits: u8) -> i64 {
    if bits >= 64 {
        return x;
    }
    let limit = 1i64 << (bits - 1);
    x.clamp(-limit, limit - 1)
}
