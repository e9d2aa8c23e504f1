//! What no schedule of a network is faster than by the replay.

use super::build::bounds;
use super::lowered::Reach;
use super::spec::{Emitter, whole};
use super::view::Producer;
use crate::model::Block;
use chipless_gemini::bytes::{feature_map, usual_align};

/// Bytes of parameters beside the weights of an output channel.
const PARAMETERS: i64 = chipless_gemini::bytes::CHANNEL_PARAMETERS as i64;

/// The least that a schedule moves and computes, and the cycles that both take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// Bytes that cross DRAM once: weights, what is read of the inputs, the outputs.
    pub dram_bytes: i64,
    /// Cycles that these take.
    pub dram_cycles: i64,
    /// Cycles that the multiplications take on all multipliers.
    pub mac_cycles: i64,
}

impl Floor {
    /// The longer of both.
    pub fn cycles(&self) -> i64 {
        self.dram_cycles.max(self.mac_cycles)
    }
}

impl Emitter<'_> {
    /// The floor for so many images.
    pub(super) fn floor(&self, batch: i64) -> Floor {
        let (written, machine) = (self.written, self.machine);
        let aligned = usual_align(written.bits);
        let size = |block: &Block| feature_map(&bounds(block), aligned, written.bits) as i64;
        // Of an input, what the layer reads that reads most of it.
        let mut inputs = vec![0; written.inputs.len()];
        let (mut moved, mut work) = (0, 0);
        for (layer, reach) in written.layers.iter().zip(&written.reach) {
            let [c, h, w] = whole(layer.output);
            let block = [c, [0, batch], h, w];
            let elements = layer.output.iter().product::<i64>() * batch;
            for (operand, of) in layer.operands.iter().enumerate() {
                for part in &of.parts {
                    if let Producer::Input(input) = part.producer {
                        let read = size(&reach.needs(operand, &block));
                        inputs[input] = read.max(inputs[input]);
                    }
                }
            }
            if layer.is_output {
                moved += size(&block);
            }
            if let Some([channels, window]) = layer.weights {
                let bytes = i64::from(written.bits / 8) * channels * window;
                moved += layer.output[0] * (bytes + PARAMETERS);
                work += elements * channels * window;
            } else if let Reach::Product { inner, .. } = reach {
                work += elements * inner;
            }
        }
        let dram_bytes = moved + inputs.iter().sum::<i64>();
        let multipliers = machine.macs() * machine.cores() as i64;
        Floor {
            dram_bytes,
            dram_cycles: machine.dram.cycles(dram_bytes),
            mac_cycles: work / multipliers.max(1),
        }
    }
}
