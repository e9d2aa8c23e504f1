//! Boxes, windows and strides, in the DPU's own axes: x is width, y height, z channels, whatever the network calls them.

/// A position or an extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Axes {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) z: usize,
}

impl Axes {
    /// `XxYxZ`, as the listings write extents.
    pub(super) fn describe(self) -> String {
        format!("{}x{}x{}", self.x, self.y, self.z)
    }

    pub(super) fn volume(self) -> usize {
        self.x * self.y * self.z
    }
}

/// How the window slides along one axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slide {
    /// Taps.
    pub(super) kernel: usize,
    /// Input positions from one output to the next.
    pub(super) stride: usize,
    /// Positions of padding before the first input position.
    pub(super) pad: usize,
    /// Input positions that exist; what lies beyond is padding.
    pub(super) size: usize,
    /// Outputs.
    pub(super) outputs: usize,
}

impl Slide {
    /// The input positions that the outputs look at, as disjoint ranges in ascending order.
    pub(super) fn taps(self) -> impl Iterator<Item = std::ops::Range<usize>> {
        // Windows that touch or overlap are one range.
        let (step, length, count) = if self.kernel >= self.stride {
            (0, (self.outputs - 1) * self.stride + self.kernel, 1)
        } else {
            (self.stride, self.kernel, self.outputs)
        };
        (0..count).filter_map(move |i| {
            let start = (i * step).saturating_sub(self.pad);
            let end = (i * step + length).saturating_sub(self.pad).min(self.size);
            (start < end).then_some(start..end)
        })
    }
}

/// What part of the input gives what part of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) x: Slide,
    pub(super) y: Slide,
    /// First position of the window in the input tensor.
    pub(super) start: Axes,
    /// Input channels.
    pub(super) channels: usize,
    /// Output channels.
    pub(super) outputs: usize,
}

impl Geometry {
    /// Extent of the window in the input tensor.
    pub(super) fn window(&self) -> Axes {
        Axes {
            x: self.x.size,
            y: self.y.size,
            z: self.channels,
        }
    }

    /// Extent of the box of the output.
    pub(super) fn extent(&self) -> Axes {
        Axes {
            x: self.x.outputs,
            y: self.y.outputs,
            z: self.outputs,
        }
    }

    /// Positions of the kernel.
    pub(super) fn taps(&self) -> usize {
        self.x.kernel * self.y.kernel
    }
}
