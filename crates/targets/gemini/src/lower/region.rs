//! Boxes of tensors as bytes of a buffer.

use crate::schedule::{Bounds, Tensor};
use chipless_kernels::strided;
use chipless_model::{Access, BufferId, Fault, Loop, Pattern, Storage};

/// Runs that a region which wraps around in a ring buffer is cut into, at most. Beyond, it is bounded by the whole ring.
const MOST_RUNS: usize = 1 << 14;

/// A box of a tensor in a buffer: N × H × W runs of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) buffer: BufferId,
    /// First byte.
    pub(crate) offset: u64,
    /// Runs along N, H, W.
    pub(crate) count: [u32; 3],
    /// Bytes from one to the next.
    pub(crate) stride: [u64; 3],
    /// Bytes of a run.
    pub(crate) run: u64,
    /// First byte and byte after the last of the ring region that the tensor wraps around in, if it does.
    pub(crate) ring: Option<Box<[u64; 2]>>,
}

/// Where a tensor lies and in what order its elements do: N, H, W, and channels innermost, rounded up to the alignment.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) buffer: BufferId,
    /// First byte of the tensor.
    pub(crate) base: u64,
    /// Its box.
    pub(crate) bounds: Bounds,
    /// Bytes of an element.
    pub(crate) element: u64,
    /// Bytes of all channels at one place.
    pub(crate) pixel: u64,
    pub(crate) ring: Option<Box<[u64; 2]>>,
}

/// A box moved; `None` where it leaves the numbers that indices have.
pub(crate) fn moved(bounds: &Bounds, by: [i64; 4]) -> Option<Bounds> {
    let corner = |of: [u32; 4]| -> Option<[u32; 4]> {
        let mut moved = [0; 4];
        for d in 0..4 {
            moved[d] = u32::try_from(i64::from(of[d]) + by[d]).ok()?;
        }
        Some(moved)
    };
    Some(Bounds {
        lower: corner(bounds.lower)?,
        upper: corner(bounds.upper)?,
    })
}

/// Bytes of an element and of all channels at one place.
pub(crate) fn pixel(bounds: &Bounds, bitwidth: Option<u8>, align: Option<u16>) -> (u64, u64) {
    let element = u64::from(bitwidth.unwrap_or(8)).div_ceil(8).max(1);
    let align = u64::from(align.unwrap_or(1)).max(1);
    (
        element,
        bounds.shape()[1]
            .next_multiple_of(align)
            .saturating_mul(element),
    )
}

/// Bytes of a tensor by its shape.
pub(crate) fn bytes(bounds: &Bounds, bitwidth: Option<u8>, align: Option<u16>) -> u64 {
    let [n, _, h, w] = bounds.shape();
    [n, h, w]
        .into_iter()
        .fold(pixel(bounds, bitwidth, align).1, u64::saturating_mul)
}

impl Layout {
    /// The layout of a tensor of a snapshot at `base`.
    pub(crate) fn of(
        tensor: &Tensor,
        buffer: BufferId,
        base: u64,
        ring: Option<[u64; 2]>,
    ) -> Layout {
        let (element, pixel) = pixel(&tensor.bounds, tensor.bitwidth, tensor.align);
        let end = base.saturating_add(tensor.size);
        let ring = ring.filter(|[_, last]| end > *last).map(Box::new);
        Layout {
            buffer,
            base,
            bounds: tensor.bounds,
            element,
            pixel,
            ring,
        }
    }

    /// The bytes of a box, as far as it lies inside the tensor. Channels up to the last one take the padding behind them
    /// along. `None` where nothing does, or where a number leaves 64 bits.
    pub(crate) fn region(&self, bounds: &Bounds) -> Option<Region> {
        let inside = self.bounds.intersection(bounds)?;
        let [_, c, h, w] = self.bounds.shape();
        let from: [u64; 4] =
            std::array::from_fn(|d| u64::from(inside.lower[d] - self.bounds.lower[d]));
        let [n_count, channels, h_count, w_count] = inside.shape();
        let row = w.checked_mul(self.pixel)?;
        let image = h.checked_mul(row)?;
        let offset = [
            (from[0], image),
            (from[2], row),
            (from[3], self.pixel),
            (from[1], self.element),
        ]
        .into_iter()
        .try_fold(self.base, |sum, (index, stride)| {
            sum.checked_add(index.checked_mul(stride)?)
        })?;
        let run = if from[1] + channels == c {
            self.pixel - from[1] * self.element
        } else {
            channels * self.element
        };
        let count = [n_count, h_count, w_count].map(|n| n.min(u64::from(u32::MAX)) as u32);
        Some(Region {
            buffer: self.buffer,
            offset,
            count,
            stride: [image, row, self.pixel],
            run,
            ring: self.ring.clone(),
        })
    }
}

impl Region {
    /// A run of bytes.
    pub(crate) fn contiguous(buffer: BufferId, offset: u64, bytes: u64) -> Region {
        Region {
            buffer,
            offset,
            count: [1; 3],
            stride: [bytes; 3],
            run: bytes,
            ring: None,
        }
    }

    /// Bytes; as many as 64 bits hold where there are more.
    pub(crate) fn bytes(&self) -> u64 {
        self.count
            .iter()
            .fold(self.run, |n, count| n.saturating_mul(u64::from(*count)))
    }

    /// Whether the bytes from the first to the last of both have some in common, in memories without a ring.
    pub(crate) fn meets(&self, other: &Region) -> bool {
        let end = |region: &Region| {
            let steps = region.count.iter().zip(region.stride);
            steps.fold(region.offset + region.run, |end, (count, stride)| {
                end.saturating_add(u64::from(count.saturating_sub(1)).saturating_mul(stride))
            })
        };
        self.buffer == other.buffer && self.offset < end(other) && other.offset < end(self)
    }

    fn pattern(&self) -> Pattern {
        let loops = (0..3).rev().map(|d| Loop {
            count: u64::from(self.count[d]),
            stride: self.stride[d] as i64,
        });
        Pattern::new(self.offset, self.run, loops)
    }

    /// The pieces that a region in a ring falls into; one piece elsewhere.
    fn pieces(&self, mut piece: impl FnMut(Pattern)) -> bool {
        let Some(ring) = &self.ring else {
            piece(self.pattern());
            return true;
        };
        let [start, end] = **ring;
        let pattern = self.pattern();
        let runs = pattern.bytes().unwrap_or(u64::MAX) / pattern.run.max(1);
        let size = end.saturating_sub(start);
        if size == 0 || pattern.run > size || runs > MOST_RUNS as u64 {
            return false;
        }
        for at in pattern.runs() {
            let at = start + at.saturating_sub(start) % size;
            let first = pattern.run.min(end - at);
            piece(Pattern::contiguous(at, first));
            if first < pattern.run {
                piece(Pattern::contiguous(start, pattern.run - first));
            }
        }
        true
    }

    fn accesses(&self, access: fn(BufferId, Pattern) -> Access, visit: &mut dyn FnMut(Access)) {
        if !self.pieces(|pattern| visit(access(self.buffer, pattern))) {
            let [start, end] = self.ring.as_deref().copied().unwrap_or_default();
            visit(
                access(
                    self.buffer,
                    Pattern::contiguous(start, end.saturating_sub(start)),
                )
                .may(),
            );
        }
    }

    /// Visits what a task that reads the region touches.
    pub(crate) fn read(&self, visit: &mut dyn FnMut(Access)) {
        self.accesses(Access::read, visit);
    }

    /// Visits what a task that writes the region touches.
    pub(crate) fn write(&self, visit: &mut dyn FnMut(Access)) {
        self.accesses(Access::write, visit);
    }

    /// How many runs it has.
    pub(crate) fn runs(&self) -> u64 {
        let counts = self.count.iter().map(|count| u64::from(*count));
        counts.fold(1, u64::saturating_mul)
    }

    /// The bytes, run by run: N, H, W, channels.
    pub(crate) fn gather(&self, storage: &Storage<'_>) -> Result<Vec<u8>, Fault> {
        let (mut bytes, mut failed) = (Vec::new(), None);
        let source = storage.bytes(self.buffer);
        let whole = self.pieces(|pattern| {
            if let Err(error) = strided::gather(source, &pattern, &mut bytes) {
                failed = Some(fault(&error));
            }
        });
        if !whole {
            return Err(Fault::unsupported(
                "a tensor that wraps around in its ring buffer in too many pieces is not executed",
            ));
        }
        failed.map_or(Ok(bytes), Err)
    }

    /// Puts bytes in the order of [`gather`](Region::gather).
    pub(crate) fn scatter(&self, bytes: &[u8], storage: &mut Storage<'_>) -> Result<(), Fault> {
        let (mut rest, mut failed) = (bytes, None);
        let target = storage.bytes_mut(self.buffer);
        let whole = self.pieces(|pattern| {
            let length = usize::try_from(pattern.bytes().unwrap_or(u64::MAX))
                .unwrap_or(usize::MAX)
                .min(rest.len());
            let (now, later) = rest.split_at(length);
            rest = later;
            if let Err(error) = strided::scatter(now, target, &pattern) {
                failed = Some(fault(&error));
            }
        });
        if !whole {
            return Err(Fault::unsupported(
                "a tensor that wraps around in its ring buffer in too many pieces is not executed",
            ));
        }
        failed.map_or(Ok(()), Err)
    }

    /// Puts bytes whose runs have another length: what is missing is zero, what is too much is padding and left out.
    pub(crate) fn scatter_runs(
        &self,
        bytes: &[u8],
        run: u64,
        storage: &mut Storage<'_>,
    ) -> Result<(), Fault> {
        if run == self.run {
            return self.scatter(bytes, storage);
        }
        let (from, to) = (run.max(1) as usize, self.run as usize);
        let mut fitted = vec![0; bytes.len() / from * to];
        for (to, from) in fitted
            .chunks_exact_mut(to.max(1))
            .zip(bytes.chunks_exact(from))
        {
            let length = to.len().min(from.len());
            to[..length].copy_from_slice(&from[..length]);
        }
        self.scatter(&fitted, storage)
    }
}

pub(crate) fn fault(error: &chipless_kernels::Error) -> Fault {
    Fault {
        unsupported: matches!(error, chipless_kernels::Error::Memory { .. }),
        message: error.to_string(),
    }
}
