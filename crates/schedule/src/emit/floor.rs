//! What no schedule of a network is faster than by the replay.

use super::build::bounds;
use super::lowered::Reach;
use super::spec::{Emitter, PARAMETERS, whole};
use super::view::Producer;
use super::written::plain;
use crate::model::Block;
use chipless_gemini::bytes::{feature_map, usual_align, weights};
use chipless_gemini::schedule::Bounds;
use std::collections::{HashMap, HashSet};

/// The least that a schedule moves and computes, and the cycles that both take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// Bytes that cross DRAM once: weights, what is read of the inputs, the outputs.
    pub dram_bytes: i64,
    /// How many of them the format adds to the numbers of the network: channels up to 64 bits, and the parameters of output channels.
    pub padding_bytes: i64,
    /// How many of the latter are parameters.
    pub parameter_bytes: i64,
    /// How many of all are outputs.
    pub output_bytes: i64,
    /// Cycles that the bytes take.
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

/// Bytes as the format has them, and those of the numbers alone.
type Bytes = [i64; 2];

fn sum(one: Bytes, other: Bytes) -> Bytes {
    [one[0] + other[0], one[1] + other[1]]
}

impl Emitter<'_> {
    /// The floor for so many images.
    pub(super) fn floor(&self, batch: i64) -> Floor {
        let (written, machine) = (self.written, self.machine);
        let size =
            |block: &Block, align: u16| feature_map(&bounds(block), align, written.bits) as i64;
        let of_map = |block: &Block| [size(block, usual_align(written.bits)), size(block, 1)];
        // Layers that are repeated for each image have the same weights.
        let arrays = written.arrays.iter().flatten();
        let arrays: HashMap<&str, &[u8]> = arrays
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
            .collect();
        let mut loaded = HashSet::new();
        // Of an input, what the layer reads that reads most of it.
        let mut inputs = vec![Bytes::default(); written.inputs.len()];
        let (mut moved, mut work) = (Bytes::default(), 0);
        let (mut parameter_bytes, mut output_bytes) = (0, 0);
        for (layer, reach) in written.layers.iter().zip(&written.reach) {
            let [c, h, w] = whole(layer.output);
            let block = [c, [0, batch], h, w];
            let elements = layer.output.iter().product::<i64>() * batch;
            for (operand, of) in layer.operands.iter().enumerate() {
                for part in &of.parts {
                    if let Producer::Input(input) = part.producer {
                        let read = of_map(&reach.needs(operand, &block));
                        inputs[input] = read.max(inputs[input]);
                    }
                }
            }
            if layer.is_output {
                let of_output = of_map(&block);
                output_bytes += of_output[0];
                moved = sum(moved, of_output);
            }
            if let Some([channels, window]) = layer.weights {
                work += elements * channels * window;
                let file = format!("{}_weight.npy", plain(&layer.name));
                if arrays.get(&*file).is_none_or(|bytes| loaded.insert(*bytes)) {
                    let outputs = layer.output[0];
                    let stored = weights(&of_weights(outputs, channels, window), written.bits);
                    let numbers = i64::from(written.bits / 8) * outputs * channels * window;
                    parameter_bytes += outputs * PARAMETERS;
                    moved = sum(moved, [stored as i64, numbers]);
                }
            } else if let Reach::Product { inner, .. } = reach {
                work += elements * inner;
            }
        }
        let [dram_bytes, numbers] = inputs.into_iter().fold(moved, sum);
        let multipliers = machine.macs() * machine.cores() as i64;
        Floor {
            dram_bytes,
            padding_bytes: dram_bytes - numbers,
            parameter_bytes,
            output_bytes,
            dram_cycles: machine.dram.cycles(dram_bytes),
            mac_cycles: work / multipliers.max(1),
        }
    }
}

/// The box of weights: 0, K, C, R · S.
fn of_weights(outputs: i64, channels: i64, window: i64) -> Bounds {
    let last = |extent: i64| (extent - 1).max(0) as u32;
    Bounds {
        lower: [0; 4],
        upper: [0, last(outputs), last(channels), last(window)],
    }
}
