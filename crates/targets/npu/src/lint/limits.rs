//! What the hardware holds at most: sizes of transfers, counts of barriers, shapes and boxes of DPU workloads.

use crate::address::Target;
use crate::dma::{Descriptor, Operation};
use crate::dpu::{OutputBox, Workload};
use crate::image::Image;
use crate::lint::Subject;
use crate::schedule::Slice;
use chipless_model::{Finding, Place};
use std::collections::HashMap;
use std::ops::Range;

chipless_model::rules! {
    DMA_SIZE Fault Error Hardware "npu-dma-size" "a DMA moves more than one descriptor can"
        "The engine counts the bytes of a transfer in 24 bits: 16 MiB less one byte is the most that a descriptor moves."
        "Split the transfer."
        "NPU4 DMA engine: total length of a transfer";
    DMA_MODE Unsupported Error Chipless "npu-unsupported-dma-mode" "a DMA of a mode that Chipless does not know"
        "Bits of the descriptor make its addresses relative to bases that are public nowhere (lra, sra, dra), or couple its reads and writes (rwf, rws). No compiled program was seen to set them. What such a transfer touches is not known, so that the program cannot be judged."
        "Clear the bits, if the program does not need them."
        "NPU4 DMA descriptor, offsets 0, 16, 40 and 48";
    GATHER_LIST Fault Error Hardware "npu-dma-gather" "a gather beyond what the DMA engine does"
        "The list of a gather stands in CMX, has at most 65536 indices, and each picks a row of at most 4096 bytes."
        "Split the gather, or bring the list into CMX first."
        "NPU4 DMA engine: gather mode";
    BARRIERS_OFF Fault Error Hardware "npu-dma-barriers-off" "a DMA names barriers, and its use of barriers is switched off"
        "Bit 29 of the configuration word (barrier_en) lets the engine wait for and signal the barriers of the descriptor's masks. Without it the masks mean nothing: the transfer does not wait, and barriers that count on it never light."
        "Set the bit, or clear the masks."
        "NPU4 DMA descriptor, offset 16, bit 29; set in every program seen";
    BARRIER_COUNT Fault Error Hardware "npu-barrier-count" "a barrier counts more than its register holds"
        "Producer and consumer counts of a physical barrier are 8-bit registers. A count of 256 or more wraps, and the barrier lights or retires too early."
        "Let fewer tasks (DPU variants count one by one) share the barrier, or chain two barriers."
        "NPU4 barrier configuration word: two counts of 8 bits";
    CHANNELS Fault Error Hardware "npu-dpu-channels" "an input has a number of channels that the DPU cannot walk"
        "Dense activations are read in units of 16 bytes and at least 16 channels; the channels of an input tensor are a multiple of that. Only a first convolution with compressed channels has fewer."
        "Pad the channels."
        "NPU4 DPU invariant, tensor_size_z; channel alignment of the NPU compiler";
    DEPTHWISE Fault Error Hardware "npu-dpu-depthwise-channels" "a depthwise or pooling workload of a number of channels that the DPU does not do at once"
        "Where each output channel sees only its own input channel, the DPU works on 16, 32 or 64 channels of a workload."
        "Cut the layer into workloads of 64, 32 and 16 channels."
        "NPU4 DPU; workload channels of depthwise convolution and pooling in the NPU compiler";
    FORMATS Unsupported Error Chipless "npu-unsupported-dpu-formats" "a DPU workload whose operands have formats that Chipless does not know together"
        "Both operands of an elementwise workload, and constant and elements of a pool, have one format; a convolution of floats multiplies floats of one format, or floats with integers. In all compiled programs it is so, and what the multipliers make of other pairs is public nowhere."
        "Give both operands one format (amode, wmode)."
        "NPU4 DPU invariant, offset 0x34; compiled programs";
    WEIGHT_TABLE Fault Error Hardware "npu-dpu-weight-table" "a weight table does not start at a multiple of 16 bytes"
        "The table has entries of 16 bytes, one for each output channel, which the DPU reads whole."
        "Check weight_start, and the buffer that the table is copied to."
        "NPU4 DPU variant, weight_start; alignment of weight tables in the NPU compiler";
    SWIZZLE Departure Warning Writers "npu-dpu-swizzle-alignment" "a swizzled tensor does not start where the compiler would put it"
        "Swizzling rotates 32-byte units inside rows of 1 KiB by an amount that depends on the row of the memory. The compiler starts swizzled tensors at a multiple of 16 KiB, where the rotation begins; the rotation itself goes by the address, so that producer and consumer agree wherever the tensor is."
        "Align the buffer to 16 KiB, or do not swizzle it."
        "NPU4 CMX swizzling: alignment of swizzled buffers in compiled programs";
    OVERLAP Fault Error Hardware "npu-workload-overlap" "two workloads of a layer compute the same outputs"
        "The variants of an invariant cut its output tensor into boxes, and every element is computed once. Where boxes overlap, one variant overwrites the other's results, and some other part of the tensor is likely to be missing."
        "Compare te_beg and te_end of the two variants."
        "NPU4 DPU variant, te_beg_x to te_end_z";
}

/// Bytes of one transfer, at most.
const TRANSFER_BYTES: u64 = (1 << 24) - 1;
/// Entries of the list of a gather, at most, and bytes of each row.
const GATHER: (u64, u64) = (65_536, 4096);
/// The largest count of a barrier.
const COUNT: u32 = 255;
/// Where swizzled tensors may start.
const SWIZZLE_BYTES: u64 = 1 << 14;
/// Channels of a workload whose output channels see one input channel each.
const CHANNELWISE: [usize; 3] = [16, 32, 64];
/// Workloads of one invariant that are compared with each other.
const COMPARED: usize = 1024;

/// What is wrong with a DMA, if it can be said so.
pub(crate) fn transfer(
    descriptor: &Descriptor,
    image: &Image<'_>,
    place: &Place,
) -> Option<Finding> {
    if !descriptor.uses_barriers && descriptor.waits | descriptor.posts != 0 {
        let message = "names barriers in its masks, but bit 29 (barrier_en) of the configuration word is clear";
        return Some(BARRIERS_OFF.at(place.clone(), message));
    }
    if let Some(mode) = descriptor.mode {
        return Some(DMA_MODE.at(
            place.clone(),
            format!("uses {mode}, which is not supported"),
        ));
    }
    let (read, written) = descriptor.lengths()?;
    let bytes = read.max(written);
    if let Operation::Gather {
        row, count, list, ..
    } = descriptor.operation
    {
        let message = if count > GATHER.0 {
            format!("gathers {count} rows; a list holds at most {}", GATHER.0)
        } else if row > GATHER.1 {
            format!(
                "gathers rows of {row} bytes; a row has at most {}",
                GATHER.1
            )
        } else if !matches!(image.resolve(list), Target::Cmx { .. }) {
            format!("the list of its indices, at {list:#x}, is not in CMX")
        } else {
            return None;
        };
        return Some(GATHER_LIST.at(place.clone(), message));
    }
    (bytes > TRANSFER_BYTES).then(|| {
        let message = format!(
            "moves {bytes} bytes ({bytes:#x}); a descriptor moves at most {TRANSFER_BYTES:#x}"
        );
        DMA_SIZE.at(place.clone(), message)
    })
}

/// What is wrong with the counts of a barrier.
pub(crate) fn barrier(producers: u32, consumers: u32, place: &Place) -> Option<Finding> {
    let (what, count) = [("producers", producers), ("consumers", consumers)]
        .into_iter()
        .find(|(_, count)| *count > COUNT)?;
    Some(BARRIER_COUNT.at(
        place.clone(),
        format!("expects {count} {what}; the register holds at most {COUNT}"),
    ))
}

/// What is wrong with the shapes of a workload, though its registers decode.
pub(crate) fn workload(workload: &Workload, place: &dyn Fn() -> Place) -> Option<Finding> {
    if let Some((channels, multiple)) = workload.odd_channels() {
        let message = format!("tensor_size_z: expected a multiple of {multiple}, found {channels}");
        return Some(CHANNELS.at(place(), message));
    }
    if let Some(channels) = workload
        .channelwise()
        .filter(|channels| !CHANNELWISE.contains(channels))
    {
        let message = format!(
            "{}: expected an output box of 16, 32 or 64 channels, found {channels}",
            workload.operation()
        );
        return Some(DEPTHWISE.at(place(), message));
    }
    if let Some((first, second)) = workload.mixed_formats() {
        let message = format!(
            "{} of {first} and {second} is not supported",
            workload.operation()
        );
        return Some(FORMATS.at(place(), message));
    }
    if let Some(table) = workload
        .weight_table()
        .filter(|table| !table.is_multiple_of(16))
    {
        return Some(WEIGHT_TABLE.at(
            place(),
            format!("weight_start: expected a multiple of 16, found {table:#x}"),
        ));
    }
    let (what, base) = workload
        .swizzled_inputs()
        .find(|(_, base)| !base.is_multiple_of(SWIZZLE_BYTES))?;
    Some(SWIZZLE.at(
        place(),
        format!("the {what} start at {base:#x} of the tile and are swizzled; expected a multiple of {SWIZZLE_BYTES:#x}"),
    ))
}

/// The output boxes of each invariant.
#[derive(Debug, Default)]
pub(crate) struct Layers(HashMap<Slice, Vec<Computed>>);

/// What a workload computes.
#[derive(Debug)]
struct Computed {
    outputs: OutputBox,
    /// Whether other tiles get a part of it.
    has_halo: bool,
    /// Position of the workload in the walk.
    walked: usize,
}

impl Layers {
    /// Adds the box of a workload; the finding says which one of its invariant it overlaps.
    pub(crate) fn add(
        &mut self,
        invariant: Slice,
        workload: &Workload,
        walked: usize,
        subject: &Subject<'_, '_, '_>,
    ) -> Option<Finding> {
        let new = Computed {
            outputs: workload.output_box()?,
            has_halo: workload.has_halo(),
            walked,
        };
        let computed = self.0.entry(invariant).or_default();
        let found = computed.iter().find(|other| {
            other
                .outputs
                .iter()
                .zip(&new.outputs)
                .all(|(a, b)| a.start < b.end && b.start < a.end)
                && !(workload.has_lookup() && is_position_of(other, &new))
                && !is_delay(other, &new)
        });
        let finding = found.map(|other| {
            let show = |b: &OutputBox| {
                format!(
                    "x {}..{}, y {}..{}, z {}..{}",
                    b[0].start, b[0].end, b[1].start, b[1].end, b[2].start, b[2].end
                )
            };
            let message = format!(
                "computes outputs {}, of which another workload of the layer computes a part ({})",
                show(&new.outputs),
                show(&other.outputs)
            );
            OVERLAP
                .at(subject.place(walked), message)
                .with(subject.place(other.walked), "the other workload")
        });
        if computed.len() < COMPARED {
            computed.push(new);
        }
        finding
    }
}

/// Whether the first of two workloads computes one position of what the second computes as well. The compiler puts such a workload before
/// those of a layer that has a lookup table (NPU5010), so that the table is there. Both make the same of the same inputs.
fn is_position_of(first: &Computed, second: &Computed) -> bool {
    let is_inside = |(a, b): (&Range<usize>, &Range<usize>)| b.start <= a.start && a.end <= b.end;
    let is_single = |a: &Range<usize>| a.end == a.start + 1;
    first.outputs[..2].iter().all(is_single)
        && first.outputs.iter().zip(&second.outputs).all(is_inside)
}

/// Whether a workload only delays those who wait for its layer: where other tiles get a part of a layer whose channels are no multiple of 16,
/// the compiler computes a position of it once more, for the own tile alone, until what was sent has arrived (NPU5010).
fn is_delay(earlier: &Computed, later: &Computed) -> bool {
    let channels = earlier.outputs[2].end - earlier.outputs[2].start;
    earlier.has_halo
        && !later.has_halo
        && !channels.is_multiple_of(16)
        && is_position_of(later, earlier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_fit_their_registers() {
        let place = Place::file();
        assert_eq!(barrier(255, 255, &place), None);
        let finding = barrier(3, 256, &place).expect("a finding");
        assert_eq!(
            (finding.rule.code, finding.message.as_str()),
            (
                "npu-barrier-count",
                "expects 256 consumers; the register holds at most 255"
            )
        );
    }
}
