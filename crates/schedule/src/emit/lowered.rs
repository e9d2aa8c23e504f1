//! What a layer of the real network reaches for.

use crate::model::{Block, Range};
use chipless_gemini::strided::Strided;
use std::sync::Arc;

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
    /// All channels, of so many in each operand, of the same places.
    AllChannels(Vec<i64>),
    /// A product of two activations: inputs and outputs of each group.
    Product { inner: i64, outputs: i64 },
    /// Channels and rows exchanged.
    Transpose,
    /// Everything of the image.
    Whole([i64; 3]),
    /// From here on along an axis of boxes.
    Slice(usize, i64),
    /// Operands that follow each other along an axis of boxes: where each begins and ends, and whether it has one image for all.
    Concat(usize, Vec<(Range, bool)>),
    /// Rows and columns so many times.
    Repeat([i64; 2]),
    /// As strides say it.
    Strided(Arc<Strided>),
    /// These places along an axis of boxes.
    Take(usize, Arc<[i64]>),
}

/// The axis of boxes (channels, images, rows, columns) of channels, rows or columns.
pub(crate) const fn axis_of_boxes(axis: usize) -> usize {
    if axis == 0 { 0 } else { axis + 1 }
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
            Reach::AllChannels(channels) => [[0, channels[operand]], n, h, w],
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
            Reach::Slice(axis, first) => {
                let mut needs = *block;
                needs[*axis] = needs[*axis].map(|at| at + first);
                needs
            }
            Reach::Concat(axis, operands) => {
                let ([first, end], one_image) = operands[operand];
                let mut needs = *block;
                let [low, high] = block[*axis];
                needs[*axis] = [low.max(first) - first, high.min(end) - first];
                if one_image {
                    needs[1] = [0, 1];
                }
                needs
            }
            Reach::Repeat([rows, columns]) => {
                let side =
                    |range: Range, times: i64| [range[0] / times, (range[1] - 1) / times + 1];
                [c, n, side(h, *rows), side(w, *columns)]
            }
            Reach::Strided(strided) => {
                let inside = |range: Range| [range[0] as u64, (range[1] - 1).max(range[0]) as u64];
                let needs = strided.needs([c, h, w].map(inside));
                let [c, h, w] = needs.map(|[low, high]| [low as i64, high as i64 + 1]);
                [c, n, h, w]
            }
            Reach::Take(axis, places) => {
                let mut needs = *block;
                let [low, high] = block[*axis].map(|at| at as usize);
                let taken = places.get(low..high).unwrap_or_default().iter();
                let least = taken.clone().min().copied().unwrap_or(0);
                needs[*axis] = [least, taken.max().copied().unwrap_or(least) + 1];
                needs
            }
        }
    }
}
