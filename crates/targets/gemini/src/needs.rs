//! Which box of an operand a box of a layer's result needs.

use crate::operation::{Kind, Move, Operation};
use crate::schedule::Bounds;

impl Operation {
    /// The padding that is really used at the edges of a box of the result: top, bottom, left, right.
    pub(crate) fn edges(&self, bounds: &Bounds) -> [u32; 4] {
        let side = |d: usize| {
            let [stride, pad, kernel] =
                [self.stride, self.padding, self.span()].map(|values| i64::from(values[d - 2]));
            let size = i64::try_from(self.operands[0].shape[d]).unwrap_or(i64::MAX);
            let before = pad - i64::from(bounds.lower[d]) * stride;
            let after = (i64::from(bounds.upper[d]) * stride - pad + kernel).saturating_sub(size);
            [before, after].map(|rows| u32::try_from(rows.max(0)).unwrap_or(u32::MAX))
        };
        let ([top, bottom], [left, right]) = (side(2), side(3));
        [top, bottom, left, right]
    }

    /// The box of an operand that a box of the result needs; `None` where it needs none of it.
    pub(crate) fn needs(&self, operand: usize, result: &Bounds) -> Option<Bounds> {
        let of = self.operands.get(operand)?;
        let last = of
            .shape
            .map(|extent| u32::try_from(extent.saturating_sub(1)).unwrap_or(u32::MAX));
        let (mut lower, mut upper) = (result.lower, result.upper);
        let mut all = |d: usize| (lower[d], upper[d]) = (0, last[d]);
        match &self.kind {
            Kind::Convolution { groups, .. } => {
                let groups = (*groups).max(1);
                let (inputs, outputs) = (
                    (last[1].saturating_add(1) / groups).max(1),
                    (self.channels / groups).max(1),
                );
                if groups == 1 {
                    all(1);
                } else {
                    lower[1] = (lower[1] / outputs).saturating_mul(inputs);
                    upper[1] = (upper[1] / outputs + 1).saturating_mul(inputs) - 1;
                }
                self.window(last, &mut lower, &mut upper)?;
            }
            Kind::Vector(vector) if vector.window.is_some() => {
                self.window(last, &mut lower, &mut upper)?;
            }
            Kind::Vector(vector) => {
                if vector.across.is_some() {
                    all(1);
                }
                // What has one image, channel, row or column for all is broadcast.
                (0..4).filter(|d| last[*d] == 0).for_each(all);
            }
            Kind::Product {
                transposed, groups, ..
            } => match (operand, transposed) {
                (0, _) => {
                    let inputs = (last[1].saturating_add(1) / groups).max(1);
                    let outputs = (self.channels / groups).max(1);
                    lower[1] = (lower[1] / outputs).saturating_mul(inputs);
                    upper[1] = (upper[1] / outputs + 1).saturating_mul(inputs) - 1;
                }
                (_, true) => {
                    (lower[2], upper[2]) = (result.lower[1], result.upper[1]);
                    (lower[1], upper[1]) = (0, last[1]);
                    (lower[3], upper[3]) = (0, 0);
                }
                (_, false) => {
                    all(2);
                    (lower[3], upper[3]) = (0, 0);
                }
            },
            Kind::Move(Move::Permute(axes)) => {
                for (d, from) in axes.iter().enumerate() {
                    (lower[*from], upper[*from]) = (result.lower[d], result.upper[d]);
                }
            }
            Kind::Move(Move::Slice(from)) => {
                for d in 0..4 {
                    lower[d] = lower[d].checked_add(from[d])?;
                    upper[d] = upper[d].checked_add(from[d])?;
                }
            }
            Kind::Move(Move::Concat(axis)) => {
                let before = self.operands[..operand]
                    .iter()
                    .map(|o| o.shape[*axis])
                    .sum();
                let (first, end): (u64, u64) = (before, before + of.shape[*axis]);
                let low = u64::from(lower[*axis]).max(first);
                let high = (u64::from(upper[*axis]) + 1).min(end);
                if low >= high {
                    return None;
                }
                lower[*axis] = (low - first) as u32;
                upper[*axis] = (high - 1 - first) as u32;
                // A constant is the same for all images.
                if last[0] == 0 {
                    (lower[0], upper[0]) = (0, 0);
                }
            }
            Kind::Move(Move::Repeat(times)) => {
                for (d, times) in [2, 3].into_iter().zip(times) {
                    (lower[d], upper[d]) = (lower[d] / times, upper[d] / times);
                }
            }
            Kind::Move(Move::Reshape) => (1..4).for_each(all),
            Kind::Move(Move::Strided(strided)) => {
                let block = [1, 2, 3].map(|d| [lower[d], upper[d]].map(u64::from));
                for (d, [low, high]) in (1..).zip(strided.needs(block)) {
                    (lower[d], upper[d]) = (low as u32, high as u32);
                }
            }
            Kind::Move(Move::Take(axis, places)) => {
                let range = lower[*axis] as usize..=upper[*axis] as usize;
                let taken = places.get(range)?.iter();
                (lower[*axis], upper[*axis]) = (*taken.clone().min()?, *taken.max()?);
            }
        }
        let needed = Bounds { lower, upper };
        (!needed.is_empty()).then_some(needed)
    }

    /// Rows and columns of the input from the first element of the kernel to the last.
    fn span(&self) -> [u32; 2] {
        [0, 1].map(|d| (self.kernel[d] - 1) * self.dilation[d] + 1)
    }

    /// Rows and columns under the windows of a box of the result.
    fn window(&self, last: [u32; 4], lower: &mut [u32; 4], upper: &mut [u32; 4]) -> Option<()> {
        for d in 2..4 {
            let [stride, pad, kernel] =
                [self.stride, self.padding, self.span()].map(|values| i64::from(values[d - 2]));
            let first = i64::from(lower[d]) * stride - pad;
            let end = i64::from(upper[d]) * stride - pad + kernel - 1;
            (lower[d], upper[d]) = (
                u32::try_from(first.max(0)).ok()?,
                u32::try_from(end.min(i64::from(last[d]))).ok()?,
            );
        }
        (lower[2] <= upper[2] && lower[3] <= upper[3]).then_some(())
    }

    /// The box of the whole result.
    pub(crate) fn whole(&self) -> Bounds {
        Bounds {
            lower: [0; 4],
            upper: self
                .shape
                .map(|extent| u32::try_from(extent.saturating_sub(1)).unwrap_or(u32::MAX)),
        }
    }
}
