//! Operations element by element.

use super::watch::Watch;
use crate::fqir::tensor::{BLOCK, Region, Tensor, load, rounded_shift, shift, store};
use chipless_model::{Access, Direction, Storage};

/// Element by element: `out[i] = function(x[i], y[i])`.
#[derive(Debug)]
pub(crate) struct Elementwise {
    pub(crate) function: Function,
    pub(crate) x: Operand,
    pub(crate) y: Operand,
    pub(crate) out: Tensor,
}

/// Where elements come from.
#[derive(Debug)]
pub(crate) enum Operand {
    /// In order.
    Linear(Tensor),
    /// Repeated along some dimensions: strides of zero.
    Broadcast(Region),
    /// One number.
    Immediate(i64),
}

/// What becomes of a pair.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Function {
    /// Both aligned by a shift, added or subtracted, shifted, clipped.
    Add {
        align_x: i32,
        align_y: i32,
        shift: i32,
        bits: u8,
        rounded: bool,
        subtract: bool,
    },
    /// Multiplied, shifted, clipped.
    Multiply {
        shift: i32,
        bits: u8,
        rounded: bool,
    },
    /// Multiplied and shifted, not clipped.
    MultiplyWide {
        shift: i32,
        rounded: bool,
    },
    /// Negated and clipped.
    Negate {
        bits: u8,
    },
    /// Shifted and clipped.
    Shift {
        shift: i32,
        bits: u8,
        rounded: bool,
    },
    /// The larger one.
    Maximum,
    /// The smaller one.
    Minimum,
    /// 1 where it holds.
    Compare(Relation),
    /// 1 where it holds; operands count as true unless zero.
    And,
    Or,
    Xor,
}

/// How two numbers compare.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Relation {
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    Equal,
}

impl Operand {
    pub(super) fn access(&self) -> Option<Access> {
        match self {
            Operand::Linear(tensor) => Some(tensor.access(Direction::Read)),
            Operand::Broadcast(region) => Some(region.access(Direction::Read)),
            Operand::Immediate(_) => None,
        }
    }

    pub(super) fn words(&self) -> u64 {
        match self {
            Operand::Linear(tensor) => tensor.words(),
            _ => 1,
        }
    }

    pub(super) fn take(&self, storage: &Storage<'_>, start: usize, out: &mut [i64]) {
        match self {
            Operand::Linear(tensor) => {
                load(storage.bytes(tensor.buffer), tensor.element, start, out);
            }
            Operand::Immediate(value) => out.fill(*value),
            Operand::Broadcast(region) => {
                let bytes = storage.bytes(region.buffer);
                if region.loops.iter().all(|(_, stride)| *stride == 0) {
                    let mut value = [0];
                    load(bytes, region.element, region.offset as usize, &mut value);
                    return out.fill(value[0]);
                }
                for (number, out) in out.iter_mut().enumerate() {
                    let mut rest = (start + number) as u64;
                    let mut offset = region.offset;
                    for (count, stride) in region.loops.iter().rev() {
                        offset += rest % count * stride;
                        rest /= count;
                    }
                    load(
                        bytes,
                        region.element,
                        offset as usize,
                        std::slice::from_mut(out),
                    );
                }
            }
        }
    }
}

impl Elementwise {
    pub(super) fn execute<W: Watch>(&self, storage: &mut Storage<'_>, watch: &mut W) {
        let (mut x, mut y) = ([0; BLOCK], [0; BLOCK]);
        let count = self.out.count() as usize;
        for start in (0..count).step_by(BLOCK) {
            let length = BLOCK.min(count - start);
            let (x, y) = (&mut x[..length], &mut y[..length]);
            self.x.take(storage, start, x);
            self.y.take(storage, start, y);
            self.function.apply(x, y, watch);
            store(
                storage.bytes_mut(self.out.buffer),
                self.out.element,
                start,
                x,
            );
        }
    }

    pub(super) fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.x
            .access()
            .into_iter()
            .chain(self.y.access())
            .for_each(&mut *visit);
        visit(self.out.access(Direction::Write));
    }

    pub(super) fn words(&self) -> u64 {
        self.x.words().max(self.y.words()).max(self.out.words())
    }
}

impl Function {
    /// Puts the results in place of `x`.
    fn apply<W: Watch>(self, x: &mut [i64], y: &[i64], watch: &mut W) {
        fn each(x: &mut [i64], y: &[i64], mut f: impl FnMut(i64, i64) -> i64) {
            x.iter_mut().zip(y).for_each(|(x, y)| *x = f(*x, *y));
        }
        let truth = |holds: bool| i64::from(holds);
        match self {
            Function::Add {
                align_x,
                align_y,
                shift: by,
                bits,
                rounded,
                subtract,
            } => {
                let mut finish = |sum| watch.clip(rounded_shift(sum, by, rounded), bits);
                if subtract {
                    each(x, y, |x, y| {
                        finish(shift(x, align_x).wrapping_sub(shift(y, align_y)))
                    });
                } else {
                    each(x, y, |x, y| {
                        finish(shift(x, align_x).wrapping_add(shift(y, align_y)))
                    });
                }
            }
            Function::Multiply {
                shift: by,
                bits,
                rounded,
            } => {
                each(x, y, |x, y| {
                    watch.clip(rounded_shift(x.wrapping_mul(y), by, rounded), bits)
                });
            }
            Function::MultiplyWide { shift: by, rounded } => {
                each(x, y, |x, y| rounded_shift(x.wrapping_mul(y), by, rounded));
            }
            Function::Negate { bits } => each(x, y, |x, _| watch.clip(x.wrapping_neg(), bits)),
            Function::Shift {
                shift: by,
                bits,
                rounded,
            } => each(x, y, |x, _| watch.clip(rounded_shift(x, by, rounded), bits)),
            Function::Maximum => each(x, y, i64::max),
            Function::Minimum => each(x, y, i64::min),
            Function::Compare(Relation::Greater) => each(x, y, |x, y| truth(x > y)),
            Function::Compare(Relation::GreaterEqual) => each(x, y, |x, y| truth(x >= y)),
            Function::Compare(Relation::Less) => each(x, y, |x, y| truth(x < y)),
            Function::Compare(Relation::LessEqual) => each(x, y, |x, y| truth(x <= y)),
            Function::Compare(Relation::Equal) => each(x, y, |x, y| truth(x == y)),
            Function::And => each(x, y, |x, y| truth(x != 0 && y != 0)),
            Function::Or => each(x, y, |x, y| truth(x != 0 || y != 0)),
            Function::Xor => each(x, y, |x, y| truth((x != 0) != (y != 0))),
        }
    }
}
