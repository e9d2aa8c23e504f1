//! Assembly against the schedule that it was made from: what each instruction moves or makes, and where to.

use super::{Assembly, Instruction};
use crate::rules::assembly as rules;
use crate::schedule::{
    Bounds, Core, Peer, Schedule, Tensor, TensorKind, WeightSource, WeightTensor, Workload,
};
use chipless_model::{Finding, Place};

/// Findings that are kept.
const MOST: usize = 1000;

impl Assembly {
    /// Checks addresses and sizes of all instructions that move or make data against a schedule. Assembly is of one core, the
    /// first of the schedule.
    pub fn against(&self, schedule: &Schedule) -> Vec<Finding> {
        let Some(core) = schedule.cores.first() else {
            return Vec::new();
        };
        let mut findings = Vec::new();
        for instruction in &self.instructions {
            let Some(found) = wrong(schedule, core, instruction) else {
                continue;
            };
            let line = u32::try_from(instruction.line).unwrap_or(u32::MAX);
            findings.push(rules::BESIDE.at(Place::line(line, 1), found));
            if findings.len() >= MOST {
                break;
            }
        }
        findings
    }
}

/// What an instruction does that its schedule does not say.
fn wrong(schedule: &Schedule, core: &Core, instruction: &Instruction) -> Option<String> {
    let op = instruction.op.as_str();
    if !matches!(
        op,
        "lda_mov" | "ldw_mov" | "lw_mov" | "sta_mov" | "pe_conv" | "vp_self" | "vp_pool"
    ) {
        return None;
    }
    let id = u32::try_from(instruction.workload?).ok();
    let Some(position) = id.and_then(|id| core.position(id)) else {
        return Some(format!(
            "expected a workload of the schedule, found {}",
            instruction.workload.unwrap_or(-1)
        ));
    };
    let workload = &core.workloads[position];
    let to = instruction.integer("DTaddr");
    match op {
        "lda_mov" | "ldw_mov" => load(workload, instruction, op == "ldw_mov", to?),
        "lw_mov" => weights(schedule, workload, instruction, to?),
        "sta_mov" => store(core, position, instruction),
        _ => result(schedule, workload, instruction, to?),
    }
}

impl Instruction {
    fn integer(&self, key: &str) -> Option<i64> {
        self.parameters.get(key)?.integer()
    }
}

/// K, C and R · S, or N, C, H, W, as instructions list them.
fn shape_of(instruction: &Instruction, weights: bool) -> Vec<u64> {
    let key = if weights { "Wsize" } else { "Tile" };
    let mut shape = instruction.numbers(key);
    if weights && shape.len() == 4 {
        let columns = shape.pop().unwrap_or(1);
        shape[2] = shape[2].saturating_mul(columns);
    }
    shape
}

fn is_from_dram(tensor: &Tensor) -> bool {
    tensor
        .sources
        .iter()
        .any(|source| matches!(source.peer, Peer::Dram(_)))
}

/// A load into L2 fills a tensor of the snapshot of its workload.
fn load(workload: &Workload, instruction: &Instruction, weights: bool, to: i64) -> Option<String> {
    let found = shape_of(instruction, weights);
    let wanted = |tensor: &&Tensor| {
        let kind = (tensor.kind == TensorKind::Weight) == weights;
        kind && tensor.kind != TensorKind::Ofmap && is_from_dram(tensor)
    };
    let shape = |tensor: &Tensor| {
        let shape = tensor.bounds.shape();
        shape[usize::from(weights)..].to_vec()
    };
    let fits =
        |tensor: &Tensor| tensor.address.map(i64::from) == Some(to) && shape(tensor) == found;
    let mut tensors = workload.buffer.iter().filter(wanted);
    if tensors.clone().any(fits) {
        return None;
    }
    let near = tensors
        .clone()
        .find(|tensor| tensor.address.map(i64::from) == Some(to))
        .or_else(|| tensors.clone().find(|tensor| shape(tensor) == found))
        .or_else(|| tensors.next());
    Some(near.map_or_else(
        || format!("expected no load for workload {}, found one", workload.id),
        |tensor| {
            format!(
                "expected a load of {:?} to {}, as the snapshot of workload {} has it, found {found:?} to {to}",
                shape(tensor),
                tensor.address.unwrap_or(0),
                workload.id
            )
        },
    ))
}

/// A load into the weight buffer fills an entry of the snapshot of its workload.
fn weights(
    schedule: &Schedule,
    workload: &Workload,
    instruction: &Instruction,
    to: i64,
) -> Option<String> {
    let from_dram = instruction.integer("SS") == Some(1);
    let found = shape_of(instruction, true);
    let fits = |entry: &&WeightTensor| {
        let (first, end) = (
            i64::from(entry.address),
            i64::from(entry.address).saturating_add_unsigned(entry.size),
        );
        if !from_dram {
            return entry.source == WeightSource::L2 && (first..end).contains(&to);
        }
        let out = schedule
            .dram_out
            .iter()
            .find(|out| entry.transfers.contains(&out.transfer));
        entry.source == WeightSource::Dram
            && first == to
            && out.is_none_or(|out| out.bounds.shape()[1..] == found[..])
    };
    let entries = workload.weight_buffer.iter().flatten();
    if entries.clone().any(|entry| fits(&entry)) {
        return None;
    }
    let places: Vec<String> = entries
        .filter(|entry| (entry.source == WeightSource::Dram) == from_dram)
        .map(|entry| {
            format!(
                "[{}, {})",
                entry.address,
                u64::from(entry.address) + entry.size
            )
        })
        .collect();
    Some(format!(
        "expected weights of an entry of the weight buffer of workload {}, at {}, found {found:?} to {to}",
        workload.id,
        if places.is_empty() {
            "none".to_owned()
        } else {
            places.join(" or ")
        }
    ))
}

/// A store takes a result that the snapshots have.
fn store(core: &Core, position: usize, instruction: &Instruction) -> Option<String> {
    let found = shape_of(instruction, false);
    let from = instruction.integer("STaddr");
    let results = core.workloads[..=position]
        .iter()
        .rev()
        .flat_map(|workload| &workload.buffer)
        .filter(|tensor| tensor.kind == TensorKind::Ofmap);
    let fits = |tensor: &Tensor| {
        tensor.bounds.shape()[..] == found[..]
            && from.is_none_or(|from| tensor.address.map(i64::from) == Some(from))
    };
    let mut first = results.clone();
    if results.clone().any(fits) {
        return None;
    }
    Some(first.next().map_or_else(
        || "expected a result on its way in the snapshots, found none".to_owned(),
        |tensor| {
            format!(
                "expected a store of {:?} from {}, as the snapshots have it, found {found:?} from {}",
                tensor.bounds.shape(),
                tensor.address.unwrap_or(0),
                from.unwrap_or(0)
            )
        },
    ))
}

/// A tile writes to its place in a tensor that holds the result of its workload.
fn result(
    schedule: &Schedule,
    workload: &Workload,
    instruction: &Instruction,
    to: i64,
) -> Option<String> {
    let number = u32::try_from(instruction.tile.unwrap_or(0)).unwrap_or(0);
    let tile = workload.tiles.iter().find(|tile| tile.number == number);
    let bounds = tile.map_or(workload.bounds, |tile| tile.ofmap);
    let made = |transfer: u32| workload.ofmaps.iter().find(|o| o.transfer == transfer);
    let frames = crate::lower::Frames::of(schedule);
    let mut places = Vec::new();
    for tensor in &workload.buffer {
        let lower = match tensor.kind {
            TensorKind::Ifmap => tensor.sources.iter().find_map(|source| {
                let piece = frames.piece(workload, made(source.transfer)?);
                corner(&bounds, &piece, &source.bounds)
            }),
            TensorKind::Ofmap if tensor.layer == Some(workload.layer) => workload
                .ofmaps
                .iter()
                .find(|o| o.bounds == tensor.bounds || frames.piece(workload, o) == tensor.bounds)
                .and_then(|o| corner(&bounds, &frames.piece(workload, o), &tensor.bounds)),
            _ => None,
        };
        if let Some(lower) = lower {
            // Instructions of the vector processor count no images.
            for image in [lower[0], 0] {
                places.extend(address(tensor, [image, lower[1], lower[2], lower[3]]));
            }
        }
    }
    if places.contains(&to) {
        return None;
    }
    let first = places.first();
    Some(first.map_or_else(
        || {
            format!(
                "expected space for the result of workload {}, found none",
                workload.id
            )
        },
        |first| {
            format!(
                "expected the result of tile {number} of workload {} at {first}, found {to}",
                workload.id
            )
        },
    ))
}

/// The corner of a tile in the frame of a tensor, given the piece that it is a part of and that piece's box in the tensor.
fn corner(tile: &Bounds, piece: &Bounds, landed: &Bounds) -> Option<[u32; 4]> {
    let mut corner = [0; 4];
    for (d, at) in corner.iter_mut().enumerate() {
        let inside = tile.lower[d]
            .max(piece.lower[d])
            .checked_sub(piece.lower[d])?;
        *at = inside.checked_add(landed.lower[d])?;
    }
    Some(corner)
}

/// The address of an element of a tensor: N, H, W, C with channels rounded up.
fn address(tensor: &Tensor, at: [u32; 4]) -> Option<i64> {
    let mut from = [0; 4];
    for d in 0..4 {
        from[d] = u64::from(at[d].checked_sub(tensor.bounds.lower[d])?);
    }
    let (element, pixel) =
        crate::lower::region::pixel(&tensor.bounds, tensor.bitwidth, tensor.align);
    let [_, _, h, w] = tensor.bounds.shape();
    let place = from[0].checked_mul(h)?.checked_add(from[2])?;
    let place = place.checked_mul(w)?.checked_add(from[3])?;
    let offset = place
        .checked_mul(pixel)?
        .checked_add(from[1].checked_mul(element)?)?;
    i64::from(tensor.address?).checked_add(i64::try_from(offset).ok()?)
}
