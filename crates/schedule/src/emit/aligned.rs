//! Sizes as the spec's dialect has them: channels in multiples of 8, parameters beside the weights, weights through the
//! weight buffer.

use super::Unwritten;
use crate::machine::Machine;
use crate::model::Impossible;
use chipless_gemini::bytes::{feature_map, usual_align, weights, weights_per_bank};
use chipless_gemini::schedule::{
    At, Bounds, LayerType, Schedule, TensorKind, WeightSource, WeightTensor,
};

/// Parts of the input channels that may be held at a time.
const PARTS: [u64; 4] = [1, 2, 4, 8];

/// The least bytes of a bank that the weights of a box need.
pub(super) fn least_bank(bounds: &Bounds, bits: u8) -> u64 {
    weights_per_bank(bounds, bits) / PARTS[3]
}

/// Gives a converted schedule the sizes of the spec's dialect.
///
/// # Errors
/// What the weight buffer is too small for.
pub(super) fn align(schedule: &mut Schedule, machine: &Machine, bits: u8) -> Result<(), Unwritten> {
    let aligned = usual_align(bits);
    let map = |bounds: &Bounds| feature_map(bounds, aligned, bits);
    let weights = |bounds: &Bounds| weights(bounds, bits);
    for entry in &mut schedule.dram_out {
        entry.size = if entry.weight {
            weights(&entry.bounds)
        } else {
            map(&entry.bounds)
        };
    }
    schedule.weight_key = Some(schedule.names.intern("wl0_buffer"));
    for workload in schedule
        .cores
        .iter_mut()
        .flat_map(|core| &mut core.workloads)
    {
        for ifmap in &mut workload.ifmaps {
            (ifmap.align, ifmap.size) = (Some(aligned), Some(map(&ifmap.bounds)));
            ifmap.bitwidth = Some(bits);
        }
        for piece in &mut workload.ofmaps {
            piece.size = Some(map(&piece.bounds));
        }
        workload.ofmap_size = Some(map(&workload.bounds));
        for tensor in &mut workload.buffer {
            let is_weight = tensor.kind == TensorKind::Weight;
            let size = |bounds: &Bounds| {
                if is_weight {
                    weights(bounds)
                } else {
                    map(bounds)
                }
            };
            (tensor.align, tensor.size) = (Some(aligned), size(&tensor.bounds));
            tensor.bitwidth = Some(bits);
            for source in &mut tensor.sources {
                source.size = Some(size(&source.bounds));
            }
        }
        if let Some(weight) = &mut workload.weight {
            weight.size = Some(weights(&weight.bounds));
            let whole = weights_per_bank(&weight.bounds, bits);
            let present = machine.weight_buffer[1] as u64;
            let fitting = PARTS
                .iter()
                .map(|part| whole / part)
                .find(|size| *size <= present);
            let Some(size) = fitting else {
                return Err(Unwritten::Impossible(Impossible::WeightBuffer {
                    layer: schedule.names.get(workload.layer).to_owned(),
                    needed: (whole / PARTS[3]) as i64,
                    present: present as i64,
                }));
            };
            workload.weight_buffer = Some(Box::new([WeightTensor {
                source: WeightSource::L2,
                align: Some(aligned),
                bitwidth: Some(bits),
                layer: Some(workload.layer),
                bounds: None,
                size,
                address: 0,
                tensor_order: None,
                transfers: weight.transfers.clone(),
                at: At::default(),
            }]));
        } else if workload.layer_type == LayerType::Pe {
            workload.weight_buffer = Some(Box::default());
        }
    }
    Ok(())
}
