//! `gmac_v2`: products of vectors and immediates, shifted, summed, and split into parts.

use super::{Operand, Watch};
use crate::fqir::tensor::{BLOCK, Tensor, shift, store};
use chipless_model::{Access, Direction, Storage};

/// Products in ascending order of their shifts. The sum is shifted down (floor) between groups of equal shift, and by the
/// last shift at the end; then bits below `cleared` become zero; then it is clipped and split.
#[derive(Debug)]
pub(crate) struct Gmac {
    /// Factors and shift, ascending by shift.
    pub(crate) products: Vec<(Operand, Operand, i32)>,
    /// Bits that the hardware drops whatever they are.
    pub(crate) cleared: i32,
    /// Parts from the least significant on: each of `bits − 1` bits without sign, the last with its sign.
    pub(crate) out: Vec<(Tensor, u8)>,
}

impl Gmac {
    pub(super) fn execute<W: Watch>(&self, storage: &mut Storage<'_>, watch: &mut W) {
        let count = self.out.first().map_or(0, |(out, _)| out.count() as usize);
        let total_bits = self
            .out
            .iter()
            .map(|(_, bits)| u32::from(*bits) - 1)
            .sum::<u32>()
            + 1;
        let total_bits = u8::try_from(total_bits).unwrap_or(64);
        let (mut x, mut y, mut sum) = ([0i64; BLOCK], [0i64; BLOCK], [0i64; BLOCK]);
        for start in (0..count).step_by(BLOCK) {
            let length = BLOCK.min(count - start);
            let (x, y, sum) = (&mut x[..length], &mut y[..length], &mut sum[..length]);
            sum.fill(0);
            let mut before = None;
            for (left, right, by) in &self.products {
                if let Some(before) = before.filter(|before| before != by) {
                    for s in &mut *sum {
                        *s = shift(*s, i32::saturating_sub(before, *by));
                    }
                }
                before = Some(*by);
                left.take(storage, start, x);
                right.take(storage, start, y);
                sum.iter_mut()
                    .zip(x.iter().zip(&*y))
                    .for_each(|(s, (x, y))| *s = s.wrapping_add(x.wrapping_mul(*y)));
            }
            let last = before.unwrap_or(0);
            for s in &mut *sum {
                *s = watch.clip(
                    shift(shift(shift(*s, last), -self.cleared), self.cleared),
                    total_bits,
                );
            }
            let mut low = 0;
            for (index, (out, bits)) in self.out.iter().enumerate() {
                let is_last = index + 1 == self.out.len();
                for (part, sum) in x.iter_mut().zip(&*sum) {
                    *part = if is_last {
                        shift(*sum, -low)
                    } else {
                        shift(*sum, -low) & ((1 << (bits - 1)) - 1)
                    };
                }
                low += i32::from(*bits) - 1;
                store(storage.bytes_mut(out.buffer), out.element, start, x);
            }
        }
    }

    pub(super) fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        for (left, right, _) in &self.products {
            left.access()
                .into_iter()
                .chain(right.access())
                .for_each(&mut *visit);
        }
        self.out
            .iter()
            .for_each(|(out, _)| visit(out.access(Direction::Write)));
    }

    /// A pass over the operands for each product.
    pub(super) fn words(&self) -> u64 {
        let out = self.out.iter().map(|(out, _)| out.words()).sum::<u64>();
        self.products
            .iter()
            .map(|(left, right, _)| left.words().max(right.words()))
            .sum::<u64>()
            .max(out)
    }
}
