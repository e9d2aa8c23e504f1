//! Sizes and places as the spec's dialect has them: channels in multiples of 8, parameters beside the weights, weights through the
//! weight buffer, addresses.

use super::Unwritten;
use crate::machine::Machine;
use crate::model::Impossible;
use chipless_gemini::bytes::{feature_map, weights, weights_per_bank};
use chipless_gemini::schedule::{
    At, Bounds, Core, LayerType, Schedule, Tensor, TensorKind, WeightSource, WeightTensor,
};
use std::collections::BTreeMap;

/// Channels are counted in multiples of this.
const ALIGN: u16 = 8;
/// Bits of an element.
const BITS: u8 = 8;
/// Parts of the input channels that may be held at a time.
const PARTS: [u64; 4] = [1, 2, 4, 8];

/// Bytes of a feature map.
fn map(bounds: &Bounds) -> u64 {
    feature_map(bounds, ALIGN, BITS)
}

/// Gives a converted schedule the sizes of the spec's dialect, and places.
///
/// # Errors
/// What the weight buffer is too small for.
pub(super) fn align(schedule: &mut Schedule, machine: &Machine) -> Result<(), Unwritten> {
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
            (ifmap.align, ifmap.size) = (Some(ALIGN), Some(map(&ifmap.bounds)));
        }
        for piece in &mut workload.ofmaps {
            piece.size = Some(map(&piece.bounds));
        }
        workload.ofmap_size = Some(map(&workload.bounds));
        for tensor in &mut workload.buffer {
            let size = if tensor.kind == TensorKind::Weight {
                weights
            } else {
                map
            };
            (tensor.align, tensor.size) = (Some(ALIGN), size(&tensor.bounds));
            for source in &mut tensor.sources {
                source.size = Some(size(&source.bounds));
            }
        }
        if let Some(weight) = &mut workload.weight {
            weight.size = Some(weights(&weight.bounds));
            let whole = weights_per_bank(&weight.bounds);
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
                align: Some(ALIGN),
                bitwidth: Some(BITS),
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
    schedule.cores.iter_mut().for_each(place);
    // Who waits for whose space follows from the places.
    schedule.queue();
    Ok(())
}

/// Places the tensors of a core: each at the lowest free bytes when it comes.
fn place(core: &mut Core) {
    let mut resident: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for workload in &mut core.workloads {
        let here = |id: &u32| workload.buffer.iter().any(|t| t.tensor_id == Some(*id));
        resident.retain(|id, _| here(id));
        // The large ones first, so that the small ones fill what is left between.
        let mut come: Vec<&mut Tensor> = workload.buffer.iter_mut().collect();
        come.sort_by_key(|tensor| (std::cmp::Reverse(tensor.size), tensor.tensor_id));
        for tensor in come {
            let id = tensor.tensor_id.unwrap_or(u32::MAX);
            let span = *resident
                .get(&id)
                .unwrap_or(&first_fit(&resident, tensor.size));
            resident.insert(id, span);
            tensor.address = Some(u32::try_from(span.0).unwrap_or(u32::MAX));
        }
    }
}

/// The lowest free bytes.
fn first_fit(resident: &BTreeMap<u32, (u64, u64)>, size: u64) -> (u64, u64) {
    let mut taken: Vec<(u64, u64)> = resident.values().copied().collect();
    taken.sort_unstable();
    let mut at = 0;
    for (first, last) in taken {
        if at + size <= first {
            break;
        }
        at = at.max(last);
    }
    (at, at + size)
}
