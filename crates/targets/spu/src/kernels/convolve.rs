//! `temporal_conv2d`: a convolution over the last frames and the bands of each.

use super::watch::Watch;
use crate::fqir::tensor::{Tensor, load_all, shift, store};
use chipless_model::{Access, Direction, Storage};

/// A frame has `bands` bands of `channels` elements. The buffer holds the frames before this one, oldest first; the new
/// frame takes the place of the oldest afterwards.
#[derive(Debug)]
pub(crate) struct Convolve {
    pub(crate) input: Tensor,
    pub(crate) buffer: Option<Tensor>,
    /// `outputs × channels (1 when depthwise) × kernel over bands × kernel over time`.
    pub(crate) weight: Tensor,
    pub(crate) bias: Option<(Tensor, i32)>,
    pub(crate) out: Tensor,
    pub(crate) bands: usize,
    pub(crate) channels: usize,
    pub(crate) outputs: usize,
    pub(crate) kernel: (usize, usize),
    pub(crate) dilation: (usize, usize),
    pub(crate) stride: usize,
    pub(crate) padding: usize,
    pub(crate) positions: usize,
    pub(crate) depthwise: bool,
    pub(crate) shift: i32,
    pub(crate) bits: u8,
}

impl Convolve {
    pub(super) fn execute<W: Watch>(&self, storage: &mut Storage<'_>, watch: &mut W) {
        let frame = self.bands * self.channels;
        let mut frames = self
            .buffer
            .as_ref()
            .map_or_else(Vec::new, |buffer| load_all(storage, buffer));
        frames.extend(load_all(storage, &self.input));
        let weight = load_all(storage, &self.weight);
        let bias = self.bias.as_ref().map(|(bias, by)| {
            load_all(storage, bias)
                .into_iter()
                .map(|b| shift(b, *by))
                .collect::<Vec<i64>>()
        });
        let (kernel_time, kernel_band) = self.kernel;
        let inputs = if self.depthwise { 1 } else { self.channels };
        let mut results = Vec::with_capacity(self.positions * self.outputs);
        for position in 0..self.positions {
            for output in 0..self.outputs {
                let mut sum = bias.as_ref().map_or(0, |bias| bias[output]);
                for time in 0..kernel_time {
                    for tap in 0..kernel_band {
                        let band = position * self.stride + tap * self.dilation.1;
                        if band < self.padding || band >= self.padding + self.bands {
                            continue;
                        }
                        let at =
                            time * self.dilation.0 * frame + (band - self.padding) * self.channels;
                        for input in 0..inputs {
                            let channel = if self.depthwise { output } else { input };
                            let w = weight[((output * inputs + input) * kernel_band + tap)
                                * kernel_time
                                + time];
                            sum = sum.wrapping_add(w.wrapping_mul(frames[at + channel]));
                        }
                    }
                }
                watch.sum(sum);
                results.push(watch.clip(shift(sum, self.shift), self.bits));
            }
        }
        store(
            storage.bytes_mut(self.out.buffer),
            self.out.element,
            0,
            &results,
        );
        if let Some(buffer) = &self.buffer {
            store(
                storage.bytes_mut(buffer.buffer),
                buffer.element,
                0,
                &frames[frame..],
            );
        }
    }

    pub(super) fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        let read = [
            Some(&self.input),
            self.buffer.as_ref(),
            Some(&self.weight),
            self.bias.as_ref().map(|(bias, _)| bias),
        ];
        read.into_iter()
            .flatten()
            .for_each(|tensor| visit(tensor.access(Direction::Read)));
        [Some(&self.out), self.buffer.as_ref()]
            .into_iter()
            .flatten()
            .for_each(|tensor| visit(tensor.access(Direction::Write)));
    }

    /// The weights once for each position.
    pub(super) fn words(&self) -> u64 {
        (self.weight.words().saturating_mul(self.positions as u64)).max(self.out.words())
    }
}
