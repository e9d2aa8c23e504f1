//! Snapshots as the spec's dialect has them: operands apart, results with space of their own, every tensor with a number, its
//! marks and an address.

use super::BITS;
use crate::lint::cover;
use crate::names::Name;
use crate::schedule::{
    At, Bounds, Core, Ifmap, Peer, Phase, Schedule, Source, Tensor, TensorKind, Tile, TransferIds,
    Workload,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What makes two entries of snapshots of one core the same tensor.
type Identity = (TensorKind, Option<Name>, Bounds, TransferIds);

fn identity(tensor: &Tensor) -> Identity {
    (
        tensor.kind,
        tensor.layer,
        tensor.bounds,
        tensor.transfers.clone(),
    )
}

impl Schedule {
    /// Makes the snapshots of all cores; the end of the last tensor.
    pub(super) fn snapshots(&mut self) -> u64 {
        let addressed = self.dialect.has_addresses();
        let mut end = 0;
        for core in &mut self.cores {
            let taken = core
                .workloads
                .iter()
                .flat_map(|w| &w.buffer)
                .filter(|t| addressed && t.kind != TensorKind::Ofmap);
            // What the file gave no place comes behind everything that has one.
            let base = taken
                .filter_map(|t| Some(u64::from(t.address?) + t.size))
                .max()
                .unwrap_or(0);
            for workload in &mut core.workloads {
                weights_there(workload);
                operands(workload);
                staging(workload, core.id);
                for tensor in workload
                    .buffer
                    .iter_mut()
                    .filter(|tensor| tensor.kind == TensorKind::Ifmap)
                {
                    let block = std::mem::replace(&mut tensor.size, tensor.bounds.elements());
                    tensor.layer = None;
                    fit(tensor, block);
                }
            }
            early(core);
            kept(core);
            end = end.max(place(core, addressed, base));
        }
        end
    }
}

/// IR-tiling has a transfer of the weights for each tile of a layer, and takes them once: what is there already is used.
fn weights_there(workload: &mut Workload) {
    let layer = workload.layer;
    let Some(weight) = workload.weight.as_mut().filter(|weight| !weight.from_ofmap) else {
        return;
    };
    if workload.buffer.iter().any(|tensor| {
        tensor
            .transfers
            .iter()
            .any(|id| weight.transfers.contains(id))
    }) {
        return;
    }
    let [first, last] = [weight.bounds.lower[1], weight.bounds.upper[1]];
    let same = |tensor: &&Tensor| {
        tensor.layer == Some(layer)
            && tensor.bounds.lower[1] <= first
            && last <= tensor.bounds.upper[1]
    };
    if let Some(tensor) = workload
        .buffer
        .iter()
        .filter(|tensor| tensor.kind == TensorKind::Weight)
        .find(same)
    {
        weight.transfers.clone_from(&tensor.transfers);
    }
}

/// Several layers together are the weights of attention, and each counts channels from its own first one. Where their boxes lie
/// on each other, they stand one behind the other, in the order in which the tensor lists them.
pub(super) fn behind_each_other(tensor: &mut Tensor) {
    let overlaps =
        |a: &Source, b: &Source| a.layer != b.layer && a.bounds.intersection(&b.bounds).is_some();
    let sources = &tensor.sources;
    let apart = (1..sources.len()).all(|n| !sources[..n].iter().any(|a| overlaps(a, &sources[n])));
    if apart {
        return;
    }
    let mut ends: HashMap<Option<Name>, u32> = HashMap::new();
    let mut layers: Vec<Option<Name>> = Vec::new();
    for source in sources {
        let end = ends.entry(source.layer).or_insert_with(|| {
            layers.push(source.layer);
            0
        });
        *end = (*end).max(source.bounds.upper[1].saturating_add(1));
    }
    let mut first = 0u32;
    let mut firsts: HashMap<Option<Name>, u32> = HashMap::new();
    for layer in layers {
        firsts.insert(layer, first);
        first = first.saturating_add(ends[&layer]);
    }
    for source in &mut tensor.sources {
        source.bounds = source.bounds.moved_by([0, firsts[&source.layer], 0, 0]);
    }
    tensor.bounds = around(
        &tensor.bounds,
        tensor.sources.iter().map(|source| source.bounds),
    );
}

/// The box around a box and others.
fn around(first: &Bounds, others: impl Iterator<Item = Bounds>) -> Bounds {
    others.fold(*first, |around, part| Bounds {
        lower: std::array::from_fn(|d| around.lower[d].min(part.lower[d])),
        upper: std::array::from_fn(|d| around.upper[d].max(part.upper[d])),
    })
}

/// What is larger than the block that it had needs another place.
pub(super) fn fit(tensor: &mut Tensor, block: u64) {
    if tensor.size > block {
        tensor.address = None;
    }
}

/// The ancestors show all operands of an element-wise layer as one tensor whose sources lie on each other. Here each operand
/// is a tensor and an ifmap of its own.
fn operands(workload: &mut Workload) {
    let mut second: HashMap<u32, usize> = HashMap::new();
    let mut buffer: Vec<Tensor> = Vec::with_capacity(workload.buffer.len() + 1);
    let mut seen: HashSet<Identity> = HashSet::new();
    for mut tensor in std::mem::take(&mut workload.buffer) {
        // IR-tiling shows what has several readers once for each.
        if tensor.kind != TensorKind::Ofmap && !seen.insert(identity(&tensor)) {
            continue;
        }
        if tensor.kind == TensorKind::Ifmap {
            shrink(&mut tensor, &mut workload.ifmaps);
        }
        let groups = if tensor.kind == TensorKind::Ifmap {
            groups(&tensor)
        } else {
            vec![]
        };
        if groups.len() < 2 {
            buffer.push(tensor);
            continue;
        }
        for (number, group) in groups.into_iter().enumerate() {
            let mut operand = tensor.clone();
            operand.sources = group
                .into_iter()
                .filter_map(|source| tensor.sources.get(source).copied())
                .collect();
            operand.transfers = operand
                .sources
                .iter()
                .map(|source| source.transfer)
                .collect();
            if number > 0 {
                operand.address = None;
                second.extend(operand.transfers.iter().map(|transfer| (*transfer, number)));
            }
            buffer.push(operand);
        }
    }
    workload.buffer = buffer.into();
    let mut ifmaps: Vec<Ifmap> = Vec::new();
    for ifmap in std::mem::take(&mut workload.ifmaps) {
        let mut by_operand: BTreeMap<usize, TransferIds> = BTreeMap::new();
        for transfer in &ifmap.transfers {
            by_operand
                .entry(second.get(transfer).copied().unwrap_or(0))
                .or_default()
                .push(*transfer);
        }
        if by_operand.len() < 2 {
            ifmaps.push(ifmap);
        } else {
            ifmaps.extend(by_operand.into_values().map(|transfers| Ifmap {
                transfers,
                ..ifmap.clone()
            }));
        }
    }
    workload.ifmaps = ifmaps.into();
}

/// What has no source is nowhere, such as the state of a recurrent network before its first step: where the sources fill a
/// smaller box, that is the tensor, and what is read of it.
fn shrink(tensor: &mut Tensor, ifmaps: &mut [Ifmap]) {
    let parts: Vec<Bounds> = tensor
        .sources
        .iter()
        .filter_map(|source| source.bounds.intersection(&tensor.bounds))
        .collect();
    let Some(first) = parts.first() else { return };
    let around = around(first, parts.iter().copied());
    if around == tensor.bounds || cover::hole(&around, &parts).is_some() {
        return;
    }
    tensor.bounds = around;
    for ifmap in ifmaps.iter_mut().filter(|ifmap| {
        ifmap
            .transfers
            .iter()
            .all(|id| tensor.transfers.contains(id))
    }) {
        ifmap.bounds = ifmap.bounds.intersection(&around).unwrap_or(around);
    }
}

/// Sources by operand: those of one layer are of one operand, and no two of an operand overlap.
fn groups(tensor: &Tensor) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (number, source) in tensor.sources.iter().enumerate() {
        let fits = |group: &&mut Vec<usize>| {
            let mut others = group.iter().filter_map(|other| tensor.sources.get(*other));
            others.clone().any(|other| other.layer == source.layer)
                || others.all(|other| other.bounds.intersection(&source.bounds).is_none())
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(number),
            None => groups.push(vec![number]),
        }
    }
    groups
}

/// Each piece that leaves its core waits for it in a tensor of its own. The ancestors stream results through a small block.
fn staging(workload: &mut Workload, core: u32) {
    let mut buffer: Vec<Tensor> = std::mem::take(&mut workload.buffer).into_vec();
    buffer.retain(|tensor| tensor.kind != TensorKind::Ofmap);
    for piece in &workload.ofmaps {
        if piece
            .destinations
            .iter()
            .all(|destination| destination.peer == Peer::Core(core))
        {
            continue;
        }
        let mut tensor = staged(workload.layer, piece.bounds, piece.at);
        tensor.start_send = true;
        buffer.push(tensor);
    }
    workload.buffer = buffer.into();
}

/// A result on its way out.
fn staged(layer: Name, bounds: Bounds, at: At) -> Tensor {
    let size = bounds.elements();
    Tensor {
        at,
        ..Tensor::new(TensorKind::Ofmap, Some(layer), bounds, size)
    }
}

/// A result that stays on its core has its space from the workload on that makes it.
fn early(core: &mut Core) {
    let mut makers: HashMap<u32, usize> = HashMap::new();
    for (index, workload) in core.workloads.iter().enumerate() {
        makers.extend(workload.ofmaps.iter().map(|piece| (piece.transfer, index)));
    }
    let mut known: HashSet<Identity> = HashSet::new();
    let mut moved: HashSet<Identity> = HashSet::new();
    let mut wanted: Vec<Vec<Tensor>> = vec![Vec::new(); core.workloads.len()];
    for (index, workload) in core.workloads.iter().enumerate() {
        for tensor in workload
            .buffer
            .iter()
            .filter(|tensor| tensor.kind != TensorKind::Ofmap)
        {
            if !known.insert(identity(tensor)) {
                continue;
            }
            let first = tensor
                .sources
                .iter()
                .filter_map(|source| makers.get(&source.transfer))
                .min();
            for list in first
                .and_then(|first| wanted.get_mut(*first..index))
                .into_iter()
                .flatten()
            {
                list.push(tensor.clone());
                moved.insert(identity(tensor));
            }
        }
    }
    more(core, wanted, &moved);
}

/// What is read later on stays until then; IR-tiling shows some tensors only while they are loaded.
fn kept(core: &mut Core) {
    let mut last: HashMap<u32, (usize, Tensor)> = HashMap::new();
    let mut wanted: Vec<Vec<Tensor>> = vec![Vec::new(); core.workloads.len()];
    let mut moved: HashSet<Identity> = HashSet::new();
    for (index, workload) in core.workloads.iter().enumerate() {
        for tensor in workload
            .buffer
            .iter()
            .filter(|tensor| tensor.kind != TensorKind::Ofmap)
        {
            for transfer in &tensor.transfers {
                last.insert(*transfer, (index, tensor.clone()));
            }
        }
        let weights = workload.weight.iter().flat_map(|weight| &weight.transfers);
        for transfer in workload
            .ifmaps
            .iter()
            .flat_map(|ifmap| &ifmap.transfers)
            .chain(weights)
        {
            let Some((seen, tensor)) = last
                .get(transfer)
                .filter(|(seen, _)| *seen < index)
                .cloned()
            else {
                continue;
            };
            for list in wanted.get_mut(seen + 1..=index).into_iter().flatten() {
                list.push(tensor.clone());
            }
            for transfer in &tensor.transfers {
                last.insert(*transfer, (index, tensor.clone()));
            }
            moved.insert(identity(&tensor));
        }
    }
    more(core, wanted, &moved);
}

/// Adds tensors to snapshots; wherever these are, they need another place.
fn more(core: &mut Core, wanted: Vec<Vec<Tensor>>, moved: &HashSet<Identity>) {
    for (workload, more) in core.workloads.iter_mut().zip(wanted) {
        let mut buffer: Vec<Tensor> = std::mem::take(&mut workload.buffer).into_vec();
        buffer.extend(more);
        for tensor in buffer
            .iter_mut()
            .filter(|tensor| moved.contains(&identity(tensor)))
        {
            tensor.address = None;
        }
        workload.buffer = buffer.into();
    }
}

/// What a workload of the spec's dialect has besides.
pub(super) fn fill(workload: &mut Workload, padding: Option<[u32; 4]>) {
    workload.layer_type = workload.layer_type.unit();
    workload.padding = padding;
    workload.weight_buffer = None;
    for ifmap in &mut workload.ifmaps {
        ifmap.align = Some(1);
        ifmap.bitwidth = Some(BITS);
        ifmap.size = Some(ifmap.bounds.elements());
        ifmap.last_producer = None;
    }
    if let Some(weight) = &mut workload.weight {
        weight.last_producer = None;
        weight.size = weight.size.or(Some(weight.bounds.elements()));
    }
    let mut read = workload.ifmaps.iter().map(|ifmap| ifmap.bounds);
    let (ifmap, ifmap2) = (read.next(), read.next().map(Box::new));
    let time = Some(workload.time as f64);
    let at = workload.at;
    workload.tiles = Box::new([Tile {
        number: 0,
        ofmap: workload.bounds,
        ifmap,
        ifmap2,
        padding,
        time,
        pe: None,
        at,
    }]);
    let read: Vec<u32> = workload
        .ifmaps
        .iter()
        .flat_map(|ifmap| ifmap.transfers.iter().copied())
        .collect();
    for tensor in &mut workload.buffer {
        tensor.align = Some(1);
        tensor.bitwidth = Some(BITS);
        tensor.priority = None;
        tensor.workload = None;
        tensor.phase = Phase::default();
        tensor.current =
            tensor.kind == TensorKind::Ifmap && tensor.transfers.iter().any(|id| read.contains(id));
    }
}

/// Gives the tensors of a core their numbers, marks and, where they have none, addresses from `base` on; the end of the last one.
fn place(core: &mut Core, addressed: bool, base: u64) -> u64 {
    let (mut numbers, mut count): (HashMap<Identity, u32>, u32) = (HashMap::new(), 0);
    let mut resident: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let mut end = 0;
    for workload in &mut core.workloads {
        // Two tensors of one snapshot are two, however alike.
        let mut repeats: HashMap<Identity, u32> = HashMap::new();
        let ids: Vec<u32> = workload
            .buffer
            .iter()
            .map(|tensor| {
                let mut key = identity(tensor);
                let repeat = repeats
                    .entry(key.clone())
                    .and_modify(|n| *n += 1)
                    .or_insert(0);
                key.3
                    .extend(std::iter::repeat_n(u32::MAX, *repeat as usize));
                // What was gone is another tensor when it comes back.
                if let Some(number) = numbers
                    .get(&key)
                    .filter(|number| resident.contains_key(number))
                {
                    return *number;
                }
                count += 1;
                numbers.insert(key, count - 1);
                count - 1
            })
            .collect();
        let mut spans: BTreeMap<u32, (u64, u64)> = resident
            .iter()
            .filter(|(id, _)| ids.contains(id))
            .map(|(id, span)| (*id, *span))
            .collect();
        for (tensor, id) in workload.buffer.iter_mut().zip(ids) {
            tensor.tensor_id = Some(id);
            tensor.newly_added =
                (tensor.kind != TensorKind::Ofmap).then(|| !resident.contains_key(&id));
            let own = tensor
                .address
                .filter(|_| addressed)
                .map(|address| (u64::from(address), u64::from(address) + tensor.size));
            let span = match (spans.get(&id), own) {
                (Some(span), _) => *span,
                // Some allocators let what comes share space with what leaves.
                (None, Some(own))
                    if spans
                        .values()
                        .all(|other| own.1 <= other.0 || other.1 <= own.0) =>
                {
                    own
                }
                (None, _) => first_fit(&spans, base, tensor.size),
            };
            spans.insert(id, span);
            tensor.address = Some(u32::try_from(span.0).unwrap_or(u32::MAX));
            end = end.max(span.1);
        }
        resident = spans;
    }
    end
}

/// The lowest free bytes from `base` on.
fn first_fit(spans: &BTreeMap<u32, (u64, u64)>, base: u64, size: u64) -> (u64, u64) {
    let mut taken: Vec<(u64, u64)> = spans.values().copied().collect();
    taken.sort_unstable();
    let mut at = base;
    for (first, last) in taken {
        if at.saturating_add(size) <= first {
            break;
        }
        at = at.max(last);
    }
    (at, at.saturating_add(size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Names;

    /// Two heads of attention, of which one is made in two pieces, in one tensor.
    #[test]
    fn layers_that_lie_on_each_other_come_one_behind_the_other() {
        let mut names = Names::default();
        let [one, two] = ["head0", "head1"].map(|name| names.intern(name));
        let channels = |first: u32, last: u32| Bounds {
            lower: [0, first, 0, 0],
            upper: [0, last, 3, 0],
        };
        let source = |layer, bounds, transfer| Source {
            peer: Peer::Core(0),
            layer: Some(layer),
            bounds,
            size: None,
            transfer,
        };
        let mut tensor = staged(one, channels(0, 9), At(0));
        tensor.kind = TensorKind::Weight;
        tensor.sources = smallvec::smallvec![
            source(one, channels(0, 7), 1),
            source(two, channels(0, 3), 2),
            source(two, channels(4, 7), 3),
        ];
        behind_each_other(&mut tensor);
        let boxes: Vec<Bounds> = tensor.sources.iter().map(|s| s.bounds).collect();
        assert_eq!(boxes, [channels(0, 7), channels(8, 11), channels(12, 15)]);
        assert_eq!(tensor.bounds, channels(0, 15));
        // What lies apart stays where it is.
        behind_each_other(&mut tensor);
        assert_eq!(tensor.bounds, channels(0, 15));
    }
}
