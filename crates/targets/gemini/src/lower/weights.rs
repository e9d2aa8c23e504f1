//! Where a workload's tiles read their weights, and what is loaded into the weight buffer for them.
//!
//! The weight buffer has banks; output channel `k` of an entry lies in bank `k mod banks`. Here a buffer's bytes are counted
//! row by row over its banks, so that output channels lie one after another. An entry that is filled from L2 may hold a part
//! of the channels only. Then the channels of one tile are a chunk, the entry has as many slots as it has room for chunks, and
//! chunk `j` goes to slot `j mod slots` when the tiles of chunk `j - slots` are through.

use super::region::{Layout, Region};
use super::residents::{Resident, Residents, channel_stride};
use crate::schedule::{TensorKind, WeightSource, WeightTensor, Workload};
use chipless_model::BufferId;

/// Weights of a workload.
#[derive(Debug)]
pub(crate) struct Weights {
    /// Where each tile reads; `None` where its weights are nowhere.
    pub(crate) tiles: Vec<Option<Region>>,
    /// What is loaded from L2, in order.
    pub(crate) moves: Vec<Move>,
    /// Position of the workload from whose snapshot on the entry is in the weight buffer, where moves go there.
    pub(crate) first: usize,
    pub(crate) slots: usize,
    /// The entry of the weight buffer: an index of [`Residents::held`].
    pub(crate) held: Option<u32>,
}

/// A chunk of output channels from L2 into the weight buffer.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) from: Region,
    pub(crate) to: Region,
    /// First and last tile that read it.
    pub(crate) tiles: [usize; 2],
}

/// Output channels one after another.
fn channels(buffer: BufferId, offset: u64, count: u64, bytes: u64) -> Option<Region> {
    let count = u32::try_from(count).ok()?;
    Some(Region {
        buffer,
        offset,
        count: [1, 1, count],
        stride: [0, 0, bytes],
        run: bytes,
        ring: None,
    })
}

/// The region of a whole entry: all of a transfer's channels.
pub(crate) fn entry(
    buffer: BufferId,
    banks: u32,
    tensor: &WeightTensor,
    count: u64,
    channel: u64,
) -> Option<Region> {
    let offset = u64::from(tensor.address) * u64::from(banks);
    let stride = channel_stride(channel);
    let room = tensor.size.saturating_mul(u64::from(banks)) / stride.max(1);
    channels(buffer, offset, count.min(room), stride)
}

/// Weights in L2: channels one after another.
pub(crate) fn in_l2(layout: &Layout, first: u64, count: u64, channel: u64) -> Option<Region> {
    let offset = layout.base.checked_add(first.checked_mul(channel)?)?;
    Some(Region {
        ring: layout.ring.clone(),
        ..channels(layout.buffer, offset, count, channel)?
    })
}

impl Weights {
    /// The weights of a workload, given the first and last output channel of each tile.
    pub(crate) fn of(
        workload: &Workload,
        index: u32,
        tiles: &[[u32; 2]],
        residents: &Residents<'_>,
        core: usize,
        banks: u32,
    ) -> Option<Weights> {
        let weight = workload.weight.as_ref()?;
        let brings = |transfers: &[u32]| transfers.iter().any(|t| weight.transfers.contains(t));
        let snapshot = residents
            .of(index as usize)
            .iter()
            .map(|r| &residents.all[*r as usize]);
        let mut in_snapshot = snapshot.filter(|r| r.tensor.kind == TensorKind::Weight);
        let source: Option<&Resident<'_>> = in_snapshot.find(|r| brings(&r.tensor.transfers));
        let held = residents
            .held_of(index as usize)
            .iter()
            .copied()
            .find(|h| brings(&residents.held[*h as usize].tensor.transfers));
        let (first_channel, count) = (weight.bounds.lower[1], weight.bounds.shape()[1]);
        let nowhere = Weights {
            tiles: vec![None; tiles.len()],
            moves: Vec::new(),
            first: 0,
            slots: 1,
            held,
        };
        let Some(channel) = weight
            .size
            .and_then(|size| size.checked_div(count))
            .filter(|c| *c > 0)
        else {
            // The ancestors do not say how many bytes a channel has: every tile reads everything.
            let whole = source.and_then(|r| whole(r, &weight.transfers));
            return Some(Weights {
                tiles: vec![whole; tiles.len()],
                ..nowhere
            });
        };
        let within = |[low, high]: [u32; 2]| {
            let low = u64::from(low.saturating_sub(first_channel)).min(count);
            (
                low,
                (u64::from(high) + 1)
                    .saturating_sub(u64::from(first_channel))
                    .min(count)
                    .saturating_sub(low),
            )
        };
        let from_l2 = |(low, n): (u64, u64)| in_l2(&source?.layout, low, n, channel);
        let Some(held) = held.map(|h| &residents.held[h as usize]) else {
            return Some(Weights {
                tiles: tiles.iter().map(|t| from_l2(within(*t))).collect(),
                ..nowhere
            });
        };
        let buffer = residents.weight_buffers[core];
        let stride = channel_stride(channel);
        let (banks, base) = (
            u64::from(banks),
            u64::from(held.tensor.address) * u64::from(banks),
        );
        let at = |slot: u64, n: u64| channels(buffer, base + slot * stride, n, stride);
        let room = held.tensor.size.saturating_mul(banks) / stride;
        let all_fit = room >= count;
        if held.tensor.source == WeightSource::Dram || all_fit {
            let tiles = tiles
                .iter()
                .map(|t| within(*t))
                .map(|(low, n)| if low + n <= room { at(low, n) } else { None })
                .collect::<Vec<_>>();
            let last = tiles.len().saturating_sub(1);
            let whole = || {
                Some(Move {
                    from: from_l2((0, count))?,
                    to: at(0, count)?,
                    tiles: [0, last],
                })
            };
            let moves = if held.tensor.source == WeightSource::Dram {
                None
            } else {
                whole()
            };
            return Some(Weights {
                tiles,
                moves: moves.into_iter().collect(),
                first: held.first,
                ..nowhere
            });
        }
        let room = Room {
            banks,
            channels: room,
            first: held.first,
        };
        let tiles = tiles.iter().map(|t| within(*t));
        Some(in_chunks(tiles, room, nowhere, at, from_l2))
    }
}

/// Room of an entry of the weight buffer.
#[derive(Clone, Copy)]
struct Room {
    banks: u64,
    /// Output channels.
    channels: u64,
    /// Position of the workload from whose snapshot on the entry is there.
    first: usize,
}

/// All that a tensor in L2 holds of these transfers.
fn whole(resident: &Resident<'_>, transfers: &[u32]) -> Option<Region> {
    let tensor = resident.tensor.transfers.iter();
    let parts = tensor
        .filter(|t| transfers.contains(t))
        .filter_map(|t| resident.own_region(*t));
    parts.reduce(|all, part| {
        let (start, end) = (
            all.offset.min(part.offset),
            (all.offset + all.run).max(part.offset + part.run),
        );
        Region::contiguous(all.buffer, start, end - start)
    })
}

/// Chunks, runs of tiles with the same channels, take turns in the slots of an entry that has not room for all channels.
fn in_chunks(
    tiles: impl Iterator<Item = (u64, u64)> + Clone,
    room: Room,
    nowhere: Weights,
    at: impl Fn(u64, u64) -> Option<Region>,
    from_l2: impl Fn((u64, u64)) -> Option<Region>,
) -> Weights {
    let mut chunks: Vec<((u64, u64), [usize; 2])> = Vec::new();
    for (tile, range) in tiles.clone().enumerate() {
        match chunks.last_mut() {
            Some((last, tiles)) if *last == range => tiles[1] = tile,
            _ => chunks.push((range, [tile; 2])),
        }
    }
    // A chunk takes whole rows over the banks.
    let slot = chunks
        .iter()
        .map(|((_, n), _)| n.next_multiple_of(room.banks))
        .max()
        .unwrap_or(1)
        .max(1);
    let slots = room.channels / slot;
    if slots == 0 {
        return Weights {
            tiles: tiles.map(from_l2).collect(),
            ..nowhere
        };
    }
    let mut placed = Weights {
        tiles: Vec::with_capacity(nowhere.tiles.len()),
        moves: Vec::with_capacity(chunks.len()),
        first: room.first,
        slots: slots as usize,
        ..nowhere
    };
    for (j, (range, span)) in chunks.into_iter().enumerate() {
        let to = at(j as u64 % slots * slot, range.1);
        placed.tiles.extend((span[0]..=span[1]).map(|_| to.clone()));
        if let (Some(from), Some(to)) = (from_l2(range), to) {
            placed.moves.push(Move {
                from,
                to,
                tiles: span,
            });
        }
    }
    placed
}
