//! Which tensors live in L2 and in the weight buffers, from when, and where their bytes are.

use super::builder::Builder;
use super::region::{self, Layout, Region};
use crate::schedule::{
    Bounds, Dialect, Schedule, Source, Tensor, TensorKind, WeightSource, WeightTensor,
};
use chipless_model::{Buffer, BufferId, Memory, MemoryKind, Role};
use std::collections::HashMap;

/// A tensor in L2, from the first snapshot that has it to the last.
#[derive(Debug)]
pub(crate) struct Resident<'s> {
    /// Index of its core in the schedule.
    pub(crate) core: usize,
    pub(crate) tensor: &'s Tensor,
    /// Position of the first workload whose snapshot has it, and of the last.
    pub(crate) first: usize,
    pub(crate) last: usize,
    pub(crate) layout: Layout,
}

impl Resident<'_> {
    /// Bytes from the first to the last.
    pub(crate) fn extent(&self) -> (u64, u64) {
        (
            self.layout.base,
            self.layout.base.saturating_add(self.tensor.size),
        )
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

/// Weights in a weight buffer, from the first snapshot that has them.
#[derive(Debug)]
pub(crate) struct Held<'s> {
    pub(crate) core: usize,
    pub(crate) tensor: &'s WeightTensor,
    pub(crate) first: usize,
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
            found.core(index, &core.workloads, l2, memory, core.id, builder);
        }
        found
            .starts
            .push((found.at.len() as u32, found.held_at.len() as u32));
        found
    }

    fn core(
        &mut self,
        core: usize,
        workloads: &'s [crate::schedule::Workload],
        l2: Option<BufferId>,
        memory: chipless_model::MemoryId,
        id: u32,
        builder: &mut Builder<'_>,
    ) {
        let shared = l2.is_some();
        let (mut live, mut next): (HashMap<Key, u32>, HashMap<Key, u32>) = Default::default();
        let (mut live_held, mut next_held): (HashMap<HeldKey, u32>, HashMap<HeldKey, u32>) =
            Default::default();
        for (position, workload) in workloads.iter().enumerate() {
            self.starts
                .push((self.at.len() as u32, self.held_at.len() as u32));
            for tensor in &workload.buffer {
                let key = (
                    tensor.kind,
                    tensor.tensor_id,
                    tensor.address,
                    tensor.bounds,
                    tensor.transfers.first().copied(),
                );
                let resident = live
                    .get(&key)
                    .or_else(|| next.get(&key))
                    .copied()
                    .unwrap_or_else(|| {
                        let resident = Resident {
                            core,
                            tensor,
                            first: position,
                            last: position,
                            layout: Layout::of(tensor, BufferId::from_raw(0), 0, None),
                        };
                        self.all.push(resident);
                        let number = self.all.len() - 1;
                        let ring = workload.ring.iter().flatten().find(|[start, end]| {
                            (*start..*end).contains(&u64::from(tensor.address.unwrap_or(0)))
                        });
                        let (buffer, base) = if let (Some(l2), Some(address)) = (l2, tensor.address)
                        {
                            (l2, u64::from(address))
                        } else {
                            let bytes = match shared {
                                true if tensor.kind == TensorKind::Weight => tensor.size,
                                true => {
                                    region::bytes(&tensor.bounds, tensor.bitwidth, tensor.align)
                                }
                                false => tensor
                                    .sources
                                    .iter()
                                    .map(Resident::own_bytes)
                                    .fold(0, u64::saturating_add),
                            };
                            let name = format!("core{id}.{} {number}", tensor.kind.name());
                            (builder.buffer(name, memory, None, bytes, Role::Scratch), 0)
                        };
                        self.all[number].layout = Layout::of(
                            tensor,
                            buffer,
                            base,
                            ring.copied().filter(|_| l2.is_some()),
                        );
                        number as u32
                    });
                self.all[resident as usize].last = position;
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
                    self.held.push(Held {
                        core,
                        tensor,
                        first: position,
                    });
                    self.held.len() as u32 - 1
                });
                next_held.insert(key, number);
                self.held_at.push(number);
            }
            std::mem::swap(&mut live_held, &mut next_held);
            next_held.clear();
        }
    }

    /// Residents of a workload's snapshot, in its order. Workloads are counted over all cores.
    pub(crate) fn of(&self, workload: usize) -> &[u32] {
        &self.at[self.starts[workload].0 as usize..self.starts[workload + 1].0 as usize]
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
