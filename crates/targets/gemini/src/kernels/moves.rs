//! Transfers: from and to DRAM, between cores, from L2 into the weight buffer.

use crate::lower::region::{Region, fault};
use crate::schedule::Bounds;
use chipless_kernels::strided;
use chipless_model::{Access, BufferId, Fault, Kernel, Loop, Pattern, Storage};
use smallvec::SmallVec;
use std::borrow::Cow;

/// A box of a feature map in DRAM: N, C, H, W, densely packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DramBox {
    pub(crate) buffer: BufferId,
    /// Extents of the map in its buffer.
    pub(crate) shape: [u64; 4],
    /// The box.
    pub(crate) bounds: Bounds,
    /// Bytes of an element.
    pub(crate) element: u64,
}

impl DramBox {
    pub(crate) fn pattern(&self) -> Pattern {
        let [_, c, h, w] = self.shape;
        let strides = [c * h * w, h * w, w, 1].map(|s| s * self.element);
        let offset: u64 = self
            .bounds
            .lower
            .iter()
            .zip(strides)
            .map(|(index, stride)| u64::from(*index) * stride)
            .sum();
        let extents = self.bounds.shape();
        let loops = [2, 1, 0].map(|d: usize| Loop {
            count: extents[d],
            stride: strides[d] as i64,
        });
        Pattern::new(offset, extents[3] * self.element, loops)
    }
}

/// A feature map, or the part of one, from DRAM into the L2 of one or several cores.
#[derive(Debug)]
pub(crate) struct LoadMap {
    pub(crate) from: DramBox,
    pub(crate) to: SmallVec<[Region; 1]>,
}

impl Kernel for LoadMap {
    fn operation(&self) -> Cow<'static, str> {
        "load".into()
    }

    fn details(&self) -> String {
        format!("feature map {}", self.from.bounds)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        visit(Access::read(self.from.buffer, self.from.pattern()));
        self.to.iter().for_each(|to| to.write(visit));
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let mut planes = Vec::new();
        strided::gather(
            storage.bytes(self.from.buffer),
            &self.from.pattern(),
            &mut planes,
        )
        .map_err(|e| fault(&e))?;
        let pixels = interleave(
            &planes,
            self.from.bounds.shape(),
            self.from.element as usize,
            true,
        );
        let run = self.from.bounds.shape()[1] * self.from.element;
        self.to
            .iter()
            .try_for_each(|to| to.scatter_runs(&pixels, run, storage))
    }
}

/// A result from L2 to DRAM.
#[derive(Debug)]
pub(crate) struct StoreMap {
    pub(crate) from: Region,
    pub(crate) to: DramBox,
}

impl Kernel for StoreMap {
    fn operation(&self) -> Cow<'static, str> {
        "store".into()
    }

    fn details(&self) -> String {
        format!("feature map {}", self.to.bounds)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.from.read(visit);
        visit(Access::write(self.to.buffer, self.to.pattern()));
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let mut pixels = self.from.gather(storage)?;
        let run = self.to.bounds.shape()[1] * self.to.element;
        if run < self.from.run {
            let (run, padded) = (run as usize, self.from.run as usize);
            pixels = pixels
                .chunks_exact(padded)
                .flat_map(|pixel| &pixel[..run])
                .copied()
                .collect();
        }
        let planes = interleave(
            &pixels,
            self.to.bounds.shape(),
            self.to.element as usize,
            false,
        );
        strided::scatter(
            &planes,
            storage.bytes_mut(self.to.buffer),
            &self.to.pattern(),
        )
        .map_err(|e| fault(&e))
    }
}

/// Turns planes (N, C, H, W) into pixels (N, H, W, C), or back.
fn interleave(bytes: &[u8], [n, c, h, w]: [u64; 4], element: usize, to_pixels: bool) -> Vec<u8> {
    let (planes, places) = (c as usize, (h * w) as usize);
    let mut turned = vec![0; bytes.len()];
    let image = planes * places * element;
    if image == 0 || bytes.len() != image * n as usize {
        return turned;
    }
    for (from, to) in bytes
        .chunks_exact(image)
        .zip(turned.chunks_exact_mut(image))
    {
        let (rows, columns) = if to_pixels {
            (planes, places)
        } else {
            (places, planes)
        };
        for (row, line) in from.chunks_exact(columns * element).enumerate() {
            for (column, value) in line.chunks_exact(element).enumerate() {
                to[(column * rows + row) * element..][..element].copy_from_slice(value);
            }
        }
    }
    turned
}

/// Bytes as they are: between cores, weights from DRAM and from L2, and whatever the file does not say the layout of. Runs
/// whose length differs on the two sides end in padding.
#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) operation: &'static str,
    pub(crate) from: SmallVec<[Region; 1]>,
    pub(crate) to: SmallVec<[Region; 1]>,
    /// Whether the regions of both sides stand for the same elements.
    pub(crate) executable: bool,
}

impl Copy {
    /// What is moved, if that is known of every byte.
    pub(crate) fn source(&self) -> Option<&Region> {
        match &self.from[..] {
            [from] if self.executable => Some(from),
            _ => None,
        }
    }
}

impl Kernel for Copy {
    fn operation(&self) -> Cow<'static, str> {
        self.operation.into()
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.from.iter().for_each(|from| from.read(visit));
        self.to.iter().for_each(|to| to.write(visit));
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let Some(from) = self.source() else {
            return Err(Fault::unsupported(
                "the file does not say how this transfer lays out its bytes: only times are known",
            ));
        };
        let bytes = from.gather(storage)?;
        self.to
            .iter()
            .try_for_each(|to| to.scatter_runs(&bytes, from.run, storage))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_and_pixels_are_inverse() {
        let bytes: Vec<u8> = (0..2 * 3 * 4 * 5 * 2).map(|i| (i % 251) as u8).collect();
        let pixels = interleave(&bytes, [2, 3, 4, 5], 2, true);
        assert_eq!(
            &pixels[..6],
            &[
                bytes[0], bytes[1], bytes[40], bytes[41], bytes[80], bytes[81]
            ]
        );
        assert_eq!(interleave(&pixels, [2, 3, 4, 5], 2, false), bytes);
    }
}
