//! Workloads and everything inside them.

use super::section::{PeerKeys, Section};
use super::values::{byte, corners, layer_type_of, nullable, regions, short, tensor_kind};
use crate::json::{FaultKind, Reader, Result};
use crate::names::Name;
use crate::schedule::{
    At, Bounds, Core, Destination, Ifmap, LayerType, Ofmap, PeTile, Peer, Phase, Schedule, Source,
    Tensor, TensorKind, Tile, Weight, WeightSource, WeightTensor, Workload,
};
use indexmap::IndexMap;
use indexmap::map::Entry;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// Bytes of the unit that the ancestors count blocks and addresses in.
const BLOCK_BYTES: u32 = 1024;

impl Section<'_> {
    /// Workloads one after the other, up to an offset.
    pub(super) fn workloads(&mut self, end: usize) -> Result<Vec<Workload>> {
        let mut workloads = Vec::new();
        loop {
            workloads.push(self.workload()?);
            match self.reader.offset().cmp(&end) {
                Ordering::Less => self.reader.comma()?,
                Ordering::Equal => return Ok(workloads),
                Ordering::Greater => return self.reader.syntax("the end of the list's piece"),
            }
        }
    }

    fn workload(&mut self) -> Result<Workload> {
        let spec = self.context.spec();
        let (mut id, mut layer, mut layer_type, mut time, mut bounds) =
            (None, None, None, None, None);
        let (mut ofmap_size, mut padding, mut ifmaps, mut weight) = (None, None, None, None);
        let (mut ofmaps, mut buffer, mut weight_buffer, mut ring, mut tiles) =
            (None, None, None, None, None);
        let mut object = self.reader.object()?;
        while let Some(key) = self.reader.key(&mut object)? {
            match &*key {
                "buffer" => {
                    self.once(buffer.is_some())?;
                    buffer = Some(self.entries(Self::tensor)?);
                }
                "ifmap" => {
                    self.once(ifmaps.is_some())?;
                    ifmaps = Some(match (self.reader.peek(), spec) {
                        (Some(b'{'), false) => vec![self.ifmap()?],
                        (Some(b'{'), true) => {
                            return self.foreign("ifmap as one object", "a list of ifmaps");
                        }
                        _ => self.entries(Self::ifmap)?,
                    });
                }
                "layer_name" => self.put_name(&mut layer)?,
                "layer_type" => self
                    .reader
                    .put(&mut layer_type, |reader| layer_type_of(reader, spec))?,
                "ofmap" => {
                    self.once(ofmaps.is_some())?;
                    ofmaps = Some(self.entries(Self::ofmap)?);
                }
                "ofmap_size" => self.put_size(&mut ofmap_size)?,
                "ring_buffer_info" => self.reader.put(&mut ring, regions)?,
                "tile_info" => {
                    self.once(tiles.is_some())?;
                    tiles = Some(self.tiles()?);
                }
                "tile_padding_tblr" => self
                    .reader
                    .put(&mut padding, |reader| reader.array(Reader::u32))?,
                "time" => self.reader.put(&mut time, Reader::size)?,
                "weight" => {
                    self.once(weight.is_some())?;
                    weight = Some(if self.reader.null()? {
                        None
                    } else {
                        Some(self.weight()?)
                    });
                }
                key @ ("wl0_buffer" | "wl1_buffer") => {
                    self.once(weight_buffer.is_some())?;
                    self.names.intern(key);
                    weight_buffer = Some(if self.reader.null()? {
                        None
                    } else {
                        Some(self.entries(Self::weight_tensor)?.into_boxed_slice())
                    });
                }
                "workload" => self.reader.put(&mut bounds, corners)?,
                "workload_id" => self.reader.put(&mut id, Reader::u32)?,
                key => self.keep(object.at, key)?,
            }
        }
        let at = object.at;
        let ofmaps = match ofmaps {
            // IR-tiling says in the snapshots where output goes: see `attribute`.
            None if self.context.dialect.is_tiling() => Vec::new(),
            ofmaps => self.need(ofmaps, "ofmap", at)?,
        };
        Ok(Workload {
            id: self.need(id, "workload_id", at)?,
            layer: self.need(layer, "layer_name", at)?,
            layer_type: match layer_type {
                None if !spec => LayerType::Missing,
                kind => self.need(kind, "layer_type", at)?,
            },
            time: self.need(time, "time", at)?,
            bounds: self.need(bounds, "workload", at)?,
            ofmap_size,
            padding,
            ifmaps: self.need(ifmaps, "ifmap", at)?.into(),
            weight: weight.flatten(),
            ofmaps: ofmaps.into(),
            buffer: self.need(buffer, "buffer", at)?.into(),
            weight_buffer: weight_buffer.flatten(),
            ring,
            tiles: tiles.unwrap_or_default().into(),
            at: At(at as u32),
        })
    }

    fn ifmap(&mut self) -> Result<Ifmap> {
        let (mut lower, mut upper, mut size, mut align) = (None, None, None, None);
        let (mut bitwidth, mut transfers, mut last_producer) = (None, None, None);
        let mut object = self.reader.object()?;
        while let Some(key) = self.reader.key(&mut object)? {
            match &*key {
                "lower" => self.put_corner(&mut lower)?,
                "upper" => self.put_corner(&mut upper)?,
                "size" => self.put_size(&mut size)?,
                "align" => self.reader.put(&mut align, short)?,
                "bitwidth" => self.reader.put(&mut bitwidth, byte)?,
                "transfer_id" => self.put_transfers(&mut transfers)?,
                "max_workload_id" => self.reader.put(&mut last_producer, Reader::u32)?,
                key => self.keep(object.at, key)?,
            }
        }
        let at = object.at;
        let transfers = self.need(transfers, "transfer_id", at)?;
        let bounds = self.bounds(lower, upper, at)?;
        Ok(Ifmap {
            bounds,
            size,
            align,
            bitwidth,
            transfers,
            last_producer,
            at: At(at as u32),
        })
    }

    fn weight(&mut self) -> Result<Weight> {
        let (mut lower, mut upper, mut size, mut transfers) = (None, None, None, None);
        let (mut from_ofmap, mut last_producer) = (None, None);
        let mut object = self.reader.object()?;
        while let Some(key) = self.reader.key(&mut object)? {
            match &*key {
                "lower" => self.put_corner(&mut lower)?,
                "upper" => self.put_corner(&mut upper)?,
                "size" => self.put_size(&mut size)?,
                "transfer_id" => self.put_transfers(&mut transfers)?,
                "from_ofmap" => self.reader.put(&mut from_ofmap, Reader::bool)?,
                "max_workload_id" => self.reader.put(&mut last_producer, Reader::u32)?,
                key => self.keep(object.at, key)?,
            }
        }
        let at = object.at;
        let transfers = if self.context.spec() {
            self.need(transfers, "transfer_id", at)?
        } else {
            transfers.unwrap_or_default()
        };
        let bounds = self.bounds(lower, upper, at)?;
        Ok(Weight {
            bounds,
            size,
            transfers,
            from_ofmap: from_ofmap.unwrap_or(false),
            last_producer,
            at: At(at as u32),
        })
    }

    fn ofmap(&mut self) -> Result<Ofmap> {
        let (mut lower, mut upper, mut size, mut transfer, mut destinations) =
            (None, None, None, None, None);
        let mut object = self.reader.object()?;
        while let Some(key) = self.reader.key(&mut object)? {
            match &*key {
                "lower" => self.put_corner(&mut lower)?,
                "upper" => self.put_corner(&mut upper)?,
                "size" => self.put_size(&mut size)?,
                "transfer_id" => self.reader.put(&mut transfer, Reader::u32)?,
                "destination" => {
                    self.once(destinations.is_some())?;
                    destinations = Some(self.destinations(object.at)?);
                }
                key => self.keep(object.at, key)?,
            }
        }
        let at = object.at;
        Ok(Ofmap {
            bounds: self.bounds(lower, upper, at)?,
            size,
            transfer: self.need(transfer, "transfer_id", at)?,
            destinations: self.need(destinations, "destination", at)?,
            at: At(at as u32),
        })
    }

    /// A tensor of a snapshot. The pieces that IR-tiling lists with it are collected.
    fn tensor(&mut self) -> Result<Tensor> {
        let spec = self.context.spec();
        let (mut kind, mut align, mut bitwidth, mut newly_added, mut current, mut start_send) =
            (None, None, None, None, None, None);
        let (mut layer, mut lower, mut upper, mut size, mut block, mut address) =
            (None, None, None, None, None, None);
        let (mut tensor_id, mut tensor_order, mut priority, mut workload) =
            (None, None, None, None);
        let (mut transfers, mut sources, mut pieces) = (None, None, None);
        let mut phase = Phase::default();
        let mut object = self.reader.object()?;
        while let Some(key) = self.reader.key(&mut object)? {
            match &*key {
                "type" => self.reader.put(&mut kind, tensor_kind)?,
                "lower" => self.put_corner(&mut lower)?,
                "upper" => self.put_corner(&mut upper)?,
                "size" => self.put_size(&mut size)?,
                "transfer_id" => self.put_transfers(&mut transfers)?,
                "source" => {
                    self.once(sources.is_some())?;
                    sources = Some(self.sources(object.at)?);
                }
                "address" => self.reader.put(&mut address, |reader| {
                    let unit = if spec { 1 } else { BLOCK_BYTES };
                    Ok(reader.integer(u64::from(u32::MAX / unit))? as u32 * unit)
                })?,
                "newly_added" => self.reader.put(&mut newly_added, Reader::bool)?,
                "layer_name" if spec => self.put_name(&mut layer)?,
                "layer" if !spec => self.put_name(&mut layer)?,
                "layer" => return self.foreign("layer", "layer_name"),
                "block" if !spec => self.reader.put(&mut block, |reader| {
                    Ok(u64::from(reader.u32()?) * u64::from(BLOCK_BYTES))
                })?,
                "block" => return self.foreign("block", "size"),
                "align" => self.reader.put(&mut align, short)?,
                "bitwidth" => self.reader.put(&mut bitwidth, byte)?,
                "tensor_id" => self.reader.put(&mut tensor_id, Reader::u32)?,
                "tensor_order" => self.reader.put(&mut tensor_order, nullable)?,
                "cur_wl_ifmap" => self.reader.put(&mut current, Reader::bool)?,
                "start_send" => self.reader.put(&mut start_send, Reader::bool)?,
                "workload_id" => self.reader.put(&mut workload, Reader::u32)?,
                "priority" => self.reader.put(&mut priority, Reader::u32)?,
                "start_loading" => self.reader.put(&mut phase.start_loading, Reader::bool)?,
                "end_loading" => self.reader.put(&mut phase.end_loading, Reader::bool)?,
                "end_sending" => self.reader.put(&mut phase.end_sending, Reader::bool)?,
                "start_sending" => self.reader.put(&mut phase.start_sending, Reader::bool)?,
                // A slip of the writer beside `start_sending`.
                "start_ending" | "ofmap_range" if self.context.dialect.is_tiling() => {
                    self.reader.skip()?;
                }
                "destinations" if self.context.dialect.is_tiling() => {
                    self.once(pieces.is_some())?;
                    pieces = Some(self.entries(Self::ofmap)?);
                }
                key => self.keep(object.at, key)?,
            }
        }
        let at = object.at;
        let size = if spec {
            self.need(size, "size", at)?
        } else {
            self.need(block, "block", at)?
        };
        let kind = self.need(kind, "type", at)?;
        if spec {
            self.need(address, "address", at)?;
            if kind != TensorKind::Ofmap {
                self.need(sources.as_ref(), "source", at)?;
                self.need(transfers.as_ref(), "transfer_id", at)?;
            }
        }
        self.pieces.extend(
            pieces
                .unwrap_or_default()
                .into_iter()
                .map(|piece: Ofmap| (layer, piece)),
        );
        Ok(Tensor {
            kind,
            align,
            bitwidth,
            newly_added,
            current: current.unwrap_or(false),
            start_send: start_send.unwrap_or(false),
            phase,
            layer,
            bounds: self.bounds(lower, upper, at)?,
            size,
            address,
            tensor_id,
            tensor_order: tensor_order.flatten(),
            priority,
            workload,
            transfers: transfers.unwrap_or_default(),
            sources: sources.unwrap_or_default(),
            at: At(at as u32),
        })
    }

    fn sources(&mut self, owner: usize) -> Result<SmallVec<[Source; 1]>> {
        let mut sources: SmallVec<[Source; 1]> = SmallVec::new();
        if self.reader.null()? {
            return Ok(sources);
        }
        let mut list = self.reader.list()?;
        while self.reader.item(&mut list)? {
            let (mut keys, mut layer, mut lower, mut upper) =
                (PeerKeys::default(), None, None, None);
            let (mut size, mut transfer, mut channel) = (None, None, None);
            let mut object = self.reader.object()?;
            while let Some(key) = self.reader.key(&mut object)? {
                match &*key {
                    "core_id" if self.context.spec() => self.put_core(&mut keys)?,
                    "id" if !self.context.spec() => self.put_core(&mut keys)?,
                    "id" => return self.foreign("id", "core_id"),
                    "core_id" => return self.foreign("core_id", "id"),
                    "type" => self.put_peer_type(&mut keys)?,
                    "layer_name" => self.put_name(&mut layer)?,
                    "lower" => self.put_corner(&mut lower)?,
                    "upper" => self.put_corner(&mut upper)?,
                    "size" => self.put_size(&mut size)?,
                    "transfer_id" => self.reader.put(&mut transfer, Reader::u32)?,
                    "channel" if !self.context.spec() => self
                        .reader
                        .put(&mut channel, |reader| reader.array::<u32, 2>(Reader::u32))?,
                    key => self.keep_nested(owner, Some(sources.len()), key)?,
                }
            }
            let at = object.at;
            let mut bounds = self.bounds(lower, upper, at)?;
            if let Some([first, last]) = channel {
                // The ancestors count lower and upper in the layer that made it, and say here where that lies in the tensor.
                (bounds.lower[1], bounds.upper[1]) = (first, last);
            }
            sources.push(Source {
                peer: self.peer(&keys, at)?,
                layer,
                bounds,
                size,
                transfer: self.need(transfer, "transfer_id", at)?,
            });
        }
        Ok(sources)
    }

    fn weight_tensor(&mut self) -> Result<WeightTensor> {
        let (mut source, mut align, mut bitwidth, mut layer, mut lower, mut upper) =
            (None, None, None, None, None, None);
        let (mut size, mut address, mut tensor_order, mut transfers) = (None, None, None, None);
        let mut object = self.reader.object()?;
        while let Some(key) = self.reader.key(&mut object)? {
            match &*key {
                "source" => {
                    self.reader
                        .put(&mut source, |reader| match reader.clone().string() {
                            // The specification says DRAM, the published files DDR.
                            Ok(text) if text == "DDR" || text == "DRAM" => {
                                reader.string().map(|_| WeightSource::Dram)
                            }
                            Ok(text) if text == "CORE" => reader.string().map(|_| WeightSource::L2),
                            _ => reader.expected("the source \"DDR\", \"DRAM\" or \"CORE\""),
                        })?;
                }
                "align" => self.reader.put(&mut align, short)?,
                "bitwidth" => self.reader.put(&mut bitwidth, byte)?,
                "layer_name" => self.put_name(&mut layer)?,
                "lower" => self.put_corner(&mut lower)?,
                "upper" => self.put_corner(&mut upper)?,
                "size" => self.put_size(&mut size)?,
                "address" => self.reader.put(&mut address, Reader::u32)?,
                "tensor_order" => self.reader.put(&mut tensor_order, nullable)?,
                "transfer_id" => self.put_transfers(&mut transfers)?,
                key => self.keep(object.at, key)?,
            }
        }
        let at = object.at;
        let bounds = if lower.is_some() || upper.is_some() {
            Some(self.bounds(lower, upper, at)?)
        } else {
            None
        };
        Ok(WeightTensor {
            source: self.need(source, "source", at)?,
            align,
            bitwidth,
            layer,
            bounds,
            size: self.need(size, "size", at)?,
            address: self.need(address, "address", at)?,
            tensor_order: tensor_order.flatten(),
            transfers: self.need(transfers, "transfer_id", at)?,
            at: At(at as u32),
        })
    }

    /// `tile_info`: `tile_num_0`, `tile_num_1`, …
    fn tiles(&mut self) -> Result<Vec<Tile>> {
        let mut tiles: Vec<Tile> = Vec::new();
        let mut object = self.reader.object()?;
        while let Some(key) = self.reader.key(&mut object)? {
            let Some(number) = key
                .strip_prefix("tile_num_")
                .and_then(|digits| digits.parse().ok())
            else {
                self.keep(object.at, &key)?;
                continue;
            };
            tiles.push(self.tile(number)?);
        }
        // Writers sort keys as text: 0, 1, 10, 2.
        tiles.sort_by_key(|tile| tile.number);
        for pair in tiles.windows(2) {
            if let [first, second] = pair
                && first.number == second.number
            {
                let message = format!(
                    "expected each tile once, found tile_num_{} a second time",
                    second.number
                );
                return self
                    .reader
                    .fault_at(second.at.0 as usize, FaultKind::Duplicate, message);
            }
        }
        Ok(tiles)
    }

    fn tile(&mut self, number: u32) -> Result<Tile> {
        let (mut ofmap_lower, mut ofmap_upper, mut ifmap_lower, mut ifmap_upper) =
            (None, None, None, None);
        let (mut ifmap_lower2, mut ifmap_upper2, mut padding, mut time) = (None, None, None, None);
        let (mut layer, mut loop_order, mut cut_mode, mut input_channel_cuts) =
            (None, None, None, None);
        let (mut activation_mini_tile, mut output_mini_tile, mut mtc0_mtk0) = (None, None, None);
        let mut object = self.reader.object()?;
        while let Some(key) = self.reader.key(&mut object)? {
            match &*key {
                "ofmap_lower" => self.put_corner(&mut ofmap_lower)?,
                "ofmap_upper" => self.put_corner(&mut ofmap_upper)?,
                "ifmap_lower" => self.put_corner(&mut ifmap_lower)?,
                "ifmap_upper" => self.put_corner(&mut ifmap_upper)?,
                "ifmap_lower2" => self.put_corner(&mut ifmap_lower2)?,
                "ifmap_upper2" => self.put_corner(&mut ifmap_upper2)?,
                "tile_padding_tblr" => self
                    .reader
                    .put(&mut padding, |reader| reader.array(Reader::u32))?,
                "single_tile_time_pred" => self.reader.put(&mut time, Reader::f64)?,
                "layer_name" => self.put_name(&mut layer)?,
                "loop_order" => self.put_name(&mut loop_order)?,
                "cut_mode" => self.put_name(&mut cut_mode)?,
                "ci_cut_num" => self.reader.put(&mut input_channel_cuts, Reader::u32)?,
                "act_mini_tile" => self.reader.put(&mut activation_mini_tile, |reader| {
                    reader.array(Reader::u32)
                })?,
                "out_mini_tile" => self
                    .reader
                    .put(&mut output_mini_tile, |reader| reader.array(Reader::u32))?,
                "mtc0_mtk0" => self
                    .reader
                    .put(&mut mtc0_mtk0, |reader| reader.array(Reader::u32))?,
                key => self.keep(object.at, key)?,
            }
        }
        let at = object.at;
        let optional = |lower: Option<_>, upper: Option<_>| match (lower, upper) {
            (None, None) => Ok(None),
            (lower, upper) => self.bounds(lower, upper, at).map(Some),
        };
        let ofmap = Bounds {
            lower: self.need(ofmap_lower, "ofmap_lower", at)?,
            upper: self.need(ofmap_upper, "ofmap_upper", at)?,
        };
        let ifmap = optional(ifmap_lower, ifmap_upper)?;
        let ifmap2 = optional(ifmap_lower2, ifmap_upper2)?.map(Box::new);
        let pe = PeTile {
            layer,
            loop_order,
            cut_mode,
            input_channel_cuts,
            activation_mini_tile,
            output_mini_tile,
            mtc0_mtk0,
        };
        let pe = (pe != PeTile::default()).then(|| Box::new(pe));
        Ok(Tile {
            number,
            ofmap,
            ifmap,
            ifmap2,
            padding,
            time,
            pe,
            at: At(at as u32),
        })
    }
}

/// Gives the pieces that IR-tiling lists in the snapshots of a core to the workloads that make them. A snapshot lists what is
/// being sent, whoever made it: the layer and the box of a piece say which workload that was.
pub(super) fn attribute(core: &mut Core, pieces: Vec<(Option<Name>, Ofmap)>) {
    let mut by_transfer: IndexMap<u32, (Option<Name>, Ofmap)> = IndexMap::new();
    for (layer, piece) in pieces {
        match by_transfer.entry(piece.transfer) {
            Entry::Vacant(entry) => drop(entry.insert((layer, piece))),
            Entry::Occupied(mut entry) => {
                // The same piece in a later snapshot.
                let known = &mut entry.get_mut().1.destinations;
                for destination in piece.destinations {
                    if !known.contains(&destination) {
                        known.push(destination);
                    }
                }
            }
        }
    }
    let mut by_layer: HashMap<Name, Vec<usize>> = HashMap::new();
    for (index, workload) in core.workloads.iter().enumerate() {
        by_layer.entry(workload.layer).or_default().push(index);
    }
    let mut made: Vec<Vec<Ofmap>> = vec![Vec::new(); core.workloads.len()];
    for (layer, piece) in by_transfer.into_values() {
        let candidates = layer
            .and_then(|layer| by_layer.get(&layer))
            .map(Vec::as_slice)
            .unwrap_or_default();
        let maker = candidates
            .iter()
            .copied()
            .find(|&index| core.workloads[index].bounds.contains(&piece.bounds));
        if let Some(list) = maker
            .or(candidates.first().copied())
            .and_then(|index| made.get_mut(index))
        {
            list.push(piece);
        }
    }
    for (workload, ofmaps) in core.workloads.iter_mut().zip(made) {
        if workload.ofmaps.is_empty() {
            workload.ofmaps = ofmaps.into();
        }
    }
}

/// Finds the workloads that make what tensors take from cores and no list of destinations names: by core, layer and box.
pub(super) fn resolve(schedule: &mut Schedule) {
    let made: HashSet<u32> = schedule
        .workloads()
        .flat_map(|(_, workload)| &workload.ofmaps)
        .map(|piece| piece.transfer)
        .collect();
    let mut wanted: IndexMap<u32, (u32, Option<Name>, Ofmap)> = IndexMap::new();
    for (core, workload) in schedule.workloads() {
        for tensor in &workload.buffer {
            for source in &tensor.sources {
                let Peer::Core(from) = source.peer else {
                    continue;
                };
                if made.contains(&source.transfer) {
                    continue;
                }
                let destination = Destination {
                    peer: Peer::Core(core.id),
                    layer: tensor.layer,
                    workload: tensor.workload,
                };
                let piece = || Ofmap {
                    bounds: source.bounds,
                    size: source.size,
                    transfer: source.transfer,
                    destinations: SmallVec::new(),
                    at: tensor.at,
                };
                let entry = wanted.entry(source.transfer);
                let (_, _, piece) = entry.or_insert_with(|| (from, source.layer, piece()));
                if !piece.destinations.contains(&destination) {
                    piece.destinations.push(destination);
                }
            }
        }
    }
    for (transfer, (from, layer, piece)) in wanted {
        let core = schedule.cores.iter_mut().find(|core| core.id == from);
        let mut workloads = core.into_iter().flat_map(|core| &mut core.workloads);
        let maker = workloads.find(|workload| {
            Some(workload.layer) == layer && workload.bounds.contains(&piece.bounds)
        });
        if let Some(workload) = maker {
            let mut ofmaps = std::mem::take(&mut workload.ofmaps).into_vec();
            ofmaps.push(piece);
            workload.ofmaps = ofmaps.into();
            schedule.unnamed.push(transfer);
        }
    }
}
