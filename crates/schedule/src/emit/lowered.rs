//! What a layer of the real network reaches for.

use crate::model::{Block, Range};

/// How a box of an operand follows from a box of a result.
#[derive(Clone, Debug)]
pub(crate) enum Reach {
    /// A window over rows and columns: all channels of the group of so many inputs and outputs, clipped to the operand.
    Window {
        /// Input and output channels of a group; the same channel where `None`.
        group: Option<[i64; 2]>,
        kernel: [i64; 2],
        stride: [i64; 2],
        /// Rows above, columns left.
        padding: [i64; 2],
        /// Rows and columns of the operand.
        extents: [i64; 2],
    },
    /// The same box.
    Same,
    /// The same box of operands of these extents (channels, images, rows, columns); what has one for all is repeated.
    Broadcast(Vec<[i64; 4]>),
    /// All channels of the same places.
    AllChannels(i64),
    /// A product of two activations: inputs and outputs of each group.
    Product { inner: i64, outputs: i64 },
    /// Channels and rows exchanged.
    Transpose,
    /// Everything of the image.
    Whole([i64; 3]),
    /// Channels from here on.
    Slice(i64),
    /// Operands that follow each other along the channels: where each begins and ends.
    Concat(Vec<Range>),
}

impl Reach {
    /// The box of an operand that a box of the result needs. Boxes are channels, images, rows, columns.
    pub(crate) fn needs(&self, operand: usize, block: &Block) -> Block {
        let [c, n, h, w] = *block;
        match self {
            Reach::Window {
                group,
                kernel,
                stride,
                padding,
                extents,
            } => {
                let channels = match group {
                    None => c,
                    Some([inputs, outputs]) => {
                        [c[0] / outputs * inputs, ((c[1] - 1) / outputs + 1) * inputs]
                    }
                };
                let side = |range: Range, d: usize| {
                    let low = range[0] * stride[d] - padding[d];
                    let high = (range[1] - 1) * stride[d] - padding[d] + kernel[d];
                    [low.max(0), high.min(extents[d])]
                };
                [channels, n, side(h, 0), side(w, 1)]
            }
            Reach::Same => *block,
            Reach::Broadcast(extents) => [0, 1, 2, 3].map(|d| match extents[operand][d] {
                1 => [0, 1],
                _ => block[d],
            }),
            Reach::AllChannels(channels) => [[0, *channels], n, h, w],
            Reach::Product { inner, outputs } => {
                if operand == 0 {
                    [
                        [c[0] / outputs * inner, ((c[1] - 1) / outputs + 1) * inner],
                        n,
                        h,
                        w,
                    ]
                } else {
                    [c, n, [0, *inner], [0, 1]]
                }
            }
            Reach::Transpose => [h, n, c, w],
            Reach::Whole([channels, rows, columns]) => {
                [[0, *channels], n, [0, *rows], [0, *columns]]
            }
            Reach::Slice(first) => [c.map(|channel| channel + first), n, h, w],
            Reach::Concat(ranges) => {
                let [first, end] = ranges[operand];
                [[c[0].max(first) - first, c[1].min(end) - first], n, h, w]
            }
        }
    }
}
