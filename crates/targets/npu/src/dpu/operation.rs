//! What a workload computes before its output stages.

/// What a workload computes before its output stages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operation {
    /// Every output channel sees every input channel.
    Convolution,
    /// Every output channel sees its own input channel.
    Depthwise,
    /// The largest value of the window. Integers keep their zero point; the integer stages behind it are the identity in
    /// every program seen.
    MaxPool,
    /// The sum of the window times a constant: its bits, in the format of the weights.
    AveragePool { weight: u16 },
    /// The sum of the window over all input channels times a constant, or of the squares (NPU5010: `REDUCESUM`, `REDUCEMEAN` and
    /// `REDUCESUMSQUARE` of `openvinotoolkit/npu_compiler`).
    Reduce { weight: u16, squares: bool },
    /// A function of `a · scale_a` and `b · scale_b`, with scales that are plain integers.
    Elementwise {
        function: Elementwise,
        scale_a: u16,
        scale_b: u16,
    },
}

impl Operation {
    /// Whether every output channel sees every input channel.
    pub(super) const fn sums_channels(self) -> bool {
        matches!(self, Operation::Convolution | Operation::Reduce { .. })
    }
}

/// What becomes of two operands: `elop_operation`, which is 0 up to NPU4000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elementwise {
    Add,
    Subtract,
    Multiply,
}
