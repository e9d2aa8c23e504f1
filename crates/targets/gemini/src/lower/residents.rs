//! Which tensors live in L2 and in the weight buffers, from when, and where their bytes are.

use super::builder::Builder;
use super::region::{self, Layout, Region};
use crate::schedule::{
    Bounds, Dialect, Ifmap, Schedule, Source, Tensor, TensorKind, WeightSource, WeightTensor,
};
use chipless_model::{Buffer, BufferId, Memory, MemoryId, MemoryKind, Role};
use smallvec::{SmallVec, smallvec};
use std::collections::{HashMap, HashSet};

/// A tensor in L2, from the first snapshot that has it to the last.
#[derive(Debug)]
pub(crate) struct Resident<'s> {
    /// Index of its core in the schedule.
    pub(crate) core: usize,
    pub(crate) tensor: &'s Tensor,
    /// Position of the first workload whose snapshot has it, and of the last.
    pub(crate) first: usize,
    pub(crate) last: usize,
    /// Position of the first workload in whose snapshot it may be sent (`start_send`).
    pub(crate) send_at: Option<usize>,
    /// Whether its transfers fill it. What they bring they bring once: a tensor that was gone and comes back, or that changes
    /// place, gets nothing.
    pub(crate) is_filled: bool,
    pub(crate) layout: Layout,
}

impl Resident<'_> {
    /// Bytes as [first, behind the last); two runs where it wraps around in its ring region.
    pub(crate) fn extents(&self) -> SmallVec<[(u64, u64); 2]> {
        let (first, end) = (
            self.layout.base,
            self.layout.base.saturating_add(self.tensor.size),
        );
        match self.layout.ring.as_deref() {
            Some(&[low, high]) if first < high && end > high => {
                let rest = (end - high).min(high - low);
                smallvec![(first, high), (low, low + rest)]
            }
            _ => smallvec![(first, end)],
        }
    }

    /// Whether both have bytes of one memory in common.
    pub(crate) fn overlaps(&self, other: &Resident<'_>) -> bool {
        let others = other.extents();
        self.core == other.core
            && self.layout.buffer == other.layout.buffer
            && self
                .extents()
                .iter()
                .any(|a| others.iter().any(|b| a.0 < b.1 && b.0 < a.1))
    }

    /// Where the part of a transfer lies in the tensor.
    pub(crate) fn part(&self, transfer: u32) -> Bounds {
        self.tensor
            .sources
            .iter()
            .find(|s| s.transfer == transfer)
            .map_or(self.tensor.bounds, |s| s.bounds)
    }

    /// Bytes that a transfer brings, where it has a part of the buffer to itself.
    fn own_bytes(source: &Source) -> u64 {
        source.size.unwrap_or_else(|| source.bounds.elements())
    }

    /// The part of the buffer that a transfer has to itself, in the ancestors. There the sources of one tensor may be several
    /// operands with the same boxes, and weights have boxes of one dimension.
    pub(crate) fn own_region(&self, transfer: u32) -> Option<Region> {
        let number = self
            .tensor
            .sources
            .iter()
            .position(|s| s.transfer == transfer)?;
        let offset = self.tensor.sources[..number]
            .iter()
            .map(Resident::own_bytes)
            .fold(0, u64::saturating_add);
        Some(Region::contiguous(
            self.layout.buffer,
            offset,
            Resident::own_bytes(&self.tensor.sources[number]),
        ))
    }
}

/// Weights in a weight buffer, from the first snapshot that has them to the last.
#[derive(Debug)]
pub(crate) struct Held<'s> {
    pub(crate) core: usize,
    pub(crate) tensor: &'s WeightTensor,
    pub(crate) first: usize,
    pub(crate) last: usize,
    /// Whether the load of its weights fills it: a load fills the places in which they first stand.
    pub(crate) is_filled: bool,
}

/// Everything that snapshots show.
#[derive(Debug)]
pub(crate) struct Residents<'s> {
    pub(crate) all: Vec<Resident<'s>>,
    pub(crate) held: Vec<Held<'s>>,
    /// Residents of the snapshots, one after another, tensor by tensor.
    at: Vec<u32>,
    held_at: Vec<u32>,
    /// First entries of each workload in both lists, and one past the last.
    starts: Vec<(u32, u32)>,
    /// The weight buffer of each core.
    pub(crate) weight_buffers: Vec<BufferId>,
}

type Key = (TensorKind, Option<u32>, Option<u32>, Bounds, Option<u32>);
type HeldKey = (WeightSource, u32, u64, Option<u32>);

/// Whether two entries of snapshots are one tensor that stays where it is: sources may be listed in any order.
fn is_same(a: &Tensor, b: &Tensor) -> bool {
    let part = |source: &Source| (source.transfer, source.bounds.lower, source.bounds.upper);
    let parts = |tensor: &Tensor| {
        let mut parts: Vec<_> = tensor.sources.iter().map(part).collect();
        parts.sort_unstable();
        parts
    };
    a.size == b.size
        && a.sources.len() == b.sources.len()
        && (a.sources.iter().map(part).eq(b.sources.iter().map(part)) || parts(a) == parts(b))
}

/// Where the tensors of a core are.
struct Home {
    core: usize,
    /// The core's number in the file.
    id: u32,
    memory: MemoryId,
    /// The buffer that all of them share.
    l2: Option<BufferId>,
}

impl<'s> Residents<'s> {
    /// Follows the snapshots of all cores. Tensors with an address in the spec's dialect lie in the L2 of their core; others,
    /// whose addresses are counted in blocks or not given, have buffers of their own.
    pub(crate) fn find(
        schedule: &'s Schedule,
        banks: u32,
        buffer_bytes: u64,
        bank_bytes: u64,
        builder: &mut Builder<'_>,
    ) -> Residents<'s> {
        let mut found = Residents {
            all: vec![],
            held: vec![],
            at: vec![],
            held_at: vec![],
            starts: vec![],
            weight_buffers: vec![],
        };
        let shared = schedule.dialect == Dialect::Spec;
        for (index, core) in schedule.cores.iter().enumerate() {
            let tensors = || core.workloads.iter().flat_map(|w| w.buffer.iter());
            let end = tensors()
                .map(|t| u64::from(t.address.unwrap_or(0)).saturating_add(t.size))
                .max()
                .unwrap_or(0);
            let size = if shared {
                buffer_bytes.max(end)
            } else {
                buffer_bytes
            };
            let memory = builder.memory(format!("core{}.l2", core.id), size);
            let l2 = shared.then(|| {
                builder.buffer(
                    format!("core{}.l2", core.id),
                    memory,
                    Some(0),
                    size,
                    Role::Scratch,
                )
            });
            let held = || {
                core.workloads
                    .iter()
                    .flat_map(|w| w.weight_buffer.iter().flatten())
            };
            let end = held()
                .map(|t| u64::from(t.address).saturating_add(t.size))
                .max()
                .unwrap_or(0);
            let bytes = bank_bytes.max(end).saturating_mul(u64::from(banks));
            let wl = builder.memory(format!("core{}.wl", core.id), bytes);
            found.weight_buffers.push(builder.buffer(
                format!("core{}.wl", core.id),
                wl,
                Some(0),
                bytes,
                Role::Scratch,
            ));
            let home = Home {
                core: index,
                id: core.id,
                memory,
                l2,
            };
            found.core(&home, &core.workloads, builder);
        }
        found
            .starts
            .push((found.at.len() as u32, found.held_at.len() as u32));
        found
    }

    fn core(
        &mut self,
        home: &Home,
        workloads: &'s [crate::schedule::Workload],
        builder: &mut Builder<'_>,
    ) {
        let shared = home.l2.is_some();
        let (mut live, mut next): (HashMap<Key, u32>, HashMap<Key, u32>) = Default::default();
        let (mut live_held, mut next_held): (HashMap<HeldKey, u32>, HashMap<HeldKey, u32>) =
            Default::default();
        let mut known: HashSet<u32> = HashSet::new();
        // First snapshots of what comes from DRAM, by transfer.
        let mut known_held: HashMap<u32, usize> = HashMap::new();
        for (position, workload) in workloads.iter().enumerate() {
            self.starts
                .push((self.at.len() as u32, self.held_at.len() as u32));
            for tensor in &workload.buffer {
                let key = (
                    tensor.kind,
                    tensor.tensor_id,
                    tensor.address,
                    tensor.bounds,
                    tensor.transfers.iter().min().copied(),
                );
                let resident = live
                    .get(&key)
                    .or_else(|| next.get(&key))
                    .copied()
                    .filter(|number| !shared || is_same(self.all[*number as usize].tensor, tensor))
                    .unwrap_or_else(|| {
                        let is_filled =
                            !shared || tensor.tensor_id.is_none_or(|id| known.insert(id));
                        self.add(home, position, workload, tensor, is_filled, builder)
                    });
                let found = &mut self.all[resident as usize];
                found.last = position;
                if tensor.start_send && found.send_at.is_none() {
                    found.send_at = Some(position);
                }
                next.insert(key, resident);
                self.at.push(resident);
            }
            std::mem::swap(&mut live, &mut next);
            next.clear();
            for tensor in workload.weight_buffer.iter().flatten() {
                let key = (
                    tensor.source,
                    tensor.address,
                    tensor.size,
                    tensor.transfers.first().copied(),
                );
                let number = live_held.get(&key).copied().unwrap_or_else(|| {
                    let from_dram = tensor.source == WeightSource::Dram;
                    let is_filled = !shared
                        || tensor
                            .transfers
                            .iter()
                            .filter(|_| from_dram)
                            .all(|t| *known_held.entry(*t).or_insert(position) == position);
                    self.held.push(Held {
                        core: home.core,
                        tensor,
                        first: position,
                        last: position,
                        is_filled,
                    });
                    self.held.len() as u32 - 1
                });
                self.held[number as usize].last = position;
                next_held.insert(key, number);
                self.held_at.push(number);
            }
            std::mem::swap(&mut live_held, &mut next_held);
            next_held.clear();
        }
    }

    /// Adds what a tensor of a snapshot begins; gives its number.
    fn add(
        &mut self,
        home: &Home,
        position: usize,
        workload: &crate::schedule::Workload,
        tensor: &'s Tensor,
        is_filled: bool,
        builder: &mut Builder<'_>,
    ) -> u32 {
        let resident = Resident {
            core: home.core,
            tensor,
            first: position,
            last: position,
            send_at: None,
            is_filled,
            layout: Layout::of(tensor, BufferId::from_raw(0), 0, None),
        };
        self.all.push(resident);
        let number = self.all.len() - 1;
        let ring =
            workload.ring.iter().flatten().find(|[start, end]| {
                (*start..*end).contains(&u64::from(tensor.address.unwrap_or(0)))
            });
        let (buffer, base) = if let (Some(l2), Some(address)) = (home.l2, tensor.address) {
            (l2, u64::from(address))
        } else {
            let bytes = match home.l2.is_some() {
                true if tensor.kind == TensorKind::Weight => tensor.size,
                true => region::bytes(&tensor.bounds, tensor.bitwidth, tensor.align),
                false => tensor
                    .sources
                    .iter()
                    .map(Resident::own_bytes)
                    .fold(0, u64::saturating_add),
            };
            let name = format!("core{}.{} {number}", home.id, tensor.kind.name());
            (
                builder.buffer(name, home.memory, None, bytes, Role::Scratch),
                0,
            )
        };
        self.all[number].layout = Layout::of(
            tensor,
            buffer,
            base,
            ring.copied().filter(|_| home.l2.is_some()),
        );
        number as u32
    }

    /// Residents of a workload's snapshot, in its order. Workloads are counted over all cores.
    pub(crate) fn of(&self, workload: usize) -> &[u32] {
        &self.at[self.starts[workload].0 as usize..self.starts[workload + 1].0 as usize]
    }

    /// The tensors of a workload's snapshot that may hold an ifmap, the likeliest first: those of its transfers, or else those
    /// that have more; of them those whose box contains that of the ifmap.
    pub(crate) fn holding(&self, workload: usize, ifmap: &Ifmap) -> SmallVec<[u32; 2]> {
        let inputs = || {
            self.of(workload)
                .iter()
                .copied()
                .filter(|r| self.all[*r as usize].tensor.kind == TensorKind::Ifmap)
        };
        let has_all = |r: &u32| {
            let transfers = &self.all[*r as usize].tensor.transfers;
            ifmap.transfers.iter().all(|t| transfers.contains(t))
        };
        let has_no_more = |r: &u32| {
            let transfers = &self.all[*r as usize].tensor.transfers;
            transfers.iter().all(|t| ifmap.transfers.contains(t))
        };
        let mut found: SmallVec<[u32; 2]> = inputs().filter(has_all).filter(has_no_more).collect();
        if found.is_empty() {
            found = inputs().filter(has_all).collect();
        }
        found.sort_by_key(|r| !self.all[*r as usize].tensor.bounds.contains(&ifmap.bounds));
        found
    }

    /// Weights of a workload's snapshot.
    pub(crate) fn held_of(&self, workload: usize) -> &[u32] {
        &self.held_at[self.starts[workload].1 as usize..self.starts[workload + 1].1 as usize]
    }
}

/// Bytes between the starts of two output channels in a weight buffer; its banks are written 32 bytes at a time.
pub(crate) fn channel_stride(channel: u64) -> u64 {
    channel.next_multiple_of(32)
}

impl Builder<'_> {
    /// An on-chip memory.
    fn memory(&mut self, name: String, size: u64) -> chipless_model::MemoryId {
        self.program.memories.push(Memory {
            name,
            size,
            kind: MemoryKind::Scratchpad,
        })
    }

    pub(crate) fn buffer(
        &mut self,
        name: String,
        memory: chipless_model::MemoryId,
        address: Option<u64>,
        size: u64,
        role: Role,
    ) -> BufferId {
        self.program.buffers.push(Buffer {
            address,
            ..Buffer::new(name, memory, size, role)
        })
    }
}
