//! Writes a schedule in the spec's dialect.

use crate::schedule::{
    At, Bounds, Destination, DramIn, DramOut, PeTile, Peer, Schedule, Tensor, TensorKind, Tile,
    Unknown, WeightSource, WeightTensor, Workload,
};
use std::collections::HashMap;
use std::fmt::{Display, Write};

impl Schedule {
    /// The schedule as a file of the spec's dialect, keys in alphabetical order as its scheduler writes them. What was read from
    /// a file of that dialect reads the same again; [`convert`](Schedule::convert) the others first.
    pub fn write(&self) -> String {
        let mut unknown: HashMap<Owner, Vec<&Unknown>> = HashMap::new();
        for entry in &self.unknown {
            unknown
                .entry((entry.owner, entry.nested))
                .or_default()
                .push(entry);
        }
        let mut writer = Writer {
            schedule: self,
            unknown,
            out: String::new(),
            depth: 0,
        };
        writer.schedule();
        writer.out.push('\n');
        writer.out
    }
}

/// An entry, or an object in one of its lists.
type Owner = (At, Option<u32>);

struct Writer<'s> {
    schedule: &'s Schedule,
    unknown: HashMap<Owner, Vec<&'s Unknown>>,
    out: String,
    depth: usize,
}

impl Writer<'_> {
    fn open(&mut self, bracket: char) {
        self.out.push(bracket);
        self.depth += 1;
    }

    fn close(&mut self, bracket: char) {
        self.depth -= 1;
        if !self.out.ends_with(['{', '[']) {
            self.line();
        }
        self.out.push(bracket);
    }

    fn line(&mut self) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n("  ", self.depth));
    }

    /// Begins an item of a list or object.
    fn item(&mut self) {
        if !self.out.ends_with(['{', '[']) {
            self.out.push(',');
        }
        self.line();
    }

    fn key(&mut self, key: &str) {
        self.item();
        self.quoted(key);
        self.out.push_str(": ");
    }

    fn quoted(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.out.extend(['\\', c]),
                c if c < ' ' => self.value(format_args!("\\u{:04x}", u32::from(c))),
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }

    fn value(&mut self, value: impl Display) {
        // Writing to a string does not fail.
        let _ = write!(self.out, "{value}");
    }

    fn field(&mut self, key: &str, value: impl Display) {
        self.key(key);
        self.value(value);
    }

    fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        self.quoted(value);
    }

    fn numbers(&mut self, key: &str, values: impl IntoIterator<Item = impl Display>) {
        self.key(key);
        self.row(values);
    }

    /// A list of numbers on one line.
    fn row(&mut self, values: impl IntoIterator<Item = impl Display>) {
        self.out.push('[');
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.value(value);
        }
        self.out.push(']');
    }

    fn object(&mut self, owner: Option<Owner>, fields: impl FnOnce(&mut Self)) {
        self.open('{');
        fields(self);
        let unknown = owner
            .and_then(|owner| self.unknown.remove(&owner))
            .unwrap_or_default();
        for entry in unknown {
            self.key(&entry.key);
            self.out.push_str(&entry.value);
        }
        self.close('}');
    }

    fn list<T>(&mut self, key: &str, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.key(key);
        self.open('[');
        for item in items {
            self.item();
            write(self, item);
        }
        self.close(']');
    }

    /// A list of objects in an entry.
    fn nested<T>(
        &mut self,
        key: &str,
        at: At,
        items: &[T],
        mut write: impl FnMut(&mut Self, Owner, &T),
    ) {
        let mut index = 0;
        self.list(key, items, |w, item| {
            write(w, (at, Some(index)), item);
            index += 1;
        });
    }

    fn corners(&mut self, bounds: &Bounds) {
        self.numbers("lower", bounds.lower);
        self.numbers("upper", bounds.upper);
    }

    fn name(&mut self, key: &str, name: Option<crate::names::Name>) {
        if let Some(name) = name {
            let schedule = self.schedule;
            self.text(key, schedule.name(name));
        }
    }

    fn optional(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.field(key, value);
        }
    }

    fn peer(&mut self, peer: Peer) {
        match peer {
            Peer::Dram(_) => self.field("core_id", -1),
            Peer::Core(core) => self.field("core_id", core),
        }
    }

    fn peer_type(&mut self, peer: Peer) {
        self.text(
            "type",
            if matches!(peer, Peer::Dram(_)) {
                "DRAM"
            } else {
                "core"
            },
        );
    }

    fn schedule(&mut self) {
        let schedule = self.schedule;
        self.object(Some((At(0), None)), |w| {
            w.key("-1");
            w.object(None, |w| {
                w.list("in", &schedule.dram_in, Self::dram_in);
                w.list("out", &schedule.dram_out, Self::dram_out);
            });
            for core in &schedule.cores {
                w.list(&core.id.to_string(), &core.workloads, Self::workload);
            }
            w.optional("buffersize", schedule.buffer_size);
            w.field("top_batch_cut", schedule.top_batch_cut);
            w.field("xlen", schedule.mesh[0]);
            w.field("ylen", schedule.mesh[1]);
        });
    }

    fn dram_in(&mut self, entry: &DramIn) {
        self.object(Some((entry.at, None)), |w| {
            w.field("core_id", entry.core);
            w.name("layer_name", entry.layer);
            w.corners(&entry.bounds);
            if let Some(related) = &entry.related {
                w.numbers("related_ofmap", related);
            }
            w.field("transfer_id", entry.transfer);
            w.field("workload_id", entry.workload);
        });
    }

    fn dram_out(&mut self, entry: &DramOut) {
        self.object(Some((entry.at, None)), |w| {
            w.nested(
                "destination",
                entry.at,
                &entry.destinations,
                Self::destination,
            );
            w.name("layer_name", entry.layer);
            w.corners(&entry.bounds);
            w.optional("priority", entry.priority);
            if let Some(related) = &entry.related {
                w.numbers("related_ifmap", related);
            }
            w.field("size", entry.size);
            w.field("transfer_id", entry.transfer);
            let kind = match (entry.weight, entry.constant) {
                (true, _) => "weight",
                (_, true) => "constant",
                _ => "fmap",
            };
            w.text("type", kind);
        });
    }

    fn destination(&mut self, owner: Owner, destination: &Destination) {
        self.object(Some(owner), |w| {
            w.peer(destination.peer);
            w.name("layer_name", destination.layer);
            w.peer_type(destination.peer);
            w.optional("workload_id", destination.workload);
        });
    }

    fn workload(&mut self, workload: &Workload) {
        self.object(Some((workload.at, None)), |w| {
            w.list("buffer", &workload.buffer, Self::tensor);
            w.list("ifmap", &workload.ifmaps, |w, ifmap| {
                w.object(Some((ifmap.at, None)), |w| {
                    w.optional("align", ifmap.align);
                    w.optional("bitwidth", ifmap.bitwidth);
                    w.corners(&ifmap.bounds);
                    w.optional("max_workload_id", ifmap.last_producer);
                    w.optional("size", ifmap.size);
                    w.numbers("transfer_id", &ifmap.transfers);
                });
            });
            w.name("layer_name", Some(workload.layer));
            w.text("layer_type", workload.layer_type.name());
            w.list("ofmap", &workload.ofmaps, |w, piece| {
                w.object(Some((piece.at, None)), |w| {
                    w.nested(
                        "destination",
                        piece.at,
                        &piece.destinations,
                        Self::destination,
                    );
                    w.corners(&piece.bounds);
                    w.optional("size", piece.size);
                    w.field("transfer_id", piece.transfer);
                });
            });
            w.optional("ofmap_size", workload.ofmap_size);
            if let Some(ring) = &workload.ring {
                w.list("ring_buffer_info", ring, |w, region| w.row(region));
            }
            if !workload.tiles.is_empty() {
                w.key("tile_info");
                w.object(None, |w| {
                    workload.tiles.iter().for_each(|tile| w.tile(tile));
                });
            }
            if let Some(padding) = workload.padding {
                w.numbers("tile_padding_tblr", padding);
            }
            w.field("time", workload.time);
            if let Some(weight) = &workload.weight {
                w.key("weight");
                w.object(Some((weight.at, None)), |w| {
                    if weight.from_ofmap {
                        w.field("from_ofmap", true);
                    }
                    w.corners(&weight.bounds);
                    w.optional("max_workload_id", weight.last_producer);
                    w.optional("size", weight.size);
                    w.numbers("transfer_id", &weight.transfers);
                });
            }
            let key = w
                .schedule
                .weight_key
                .map_or("wl0_buffer", |key| w.schedule.name(key));
            match &workload.weight_buffer {
                Some(entries) => w.list(key, entries, Self::weight_tensor),
                None => w.field(key, "null"),
            }
            w.list(
                "workload",
                &[workload.bounds.lower, workload.bounds.upper],
                |w, corner| w.row(corner),
            );
            w.field("workload_id", workload.id);
        });
    }

    fn tensor(&mut self, tensor: &Tensor) {
        self.object(Some((tensor.at, None)), |w| {
            w.optional("address", tensor.address);
            w.optional("align", tensor.align);
            w.optional("bitwidth", tensor.bitwidth);
            if tensor.current {
                w.field("cur_wl_ifmap", true);
            }
            w.optional("end_loading", tensor.phase.end_loading);
            w.optional("end_sending", tensor.phase.end_sending);
            w.name("layer_name", tensor.layer);
            w.corners(&tensor.bounds);
            w.optional("newly_added", tensor.newly_added);
            w.optional("priority", tensor.priority);
            w.field("size", tensor.size);
            if tensor.kind != TensorKind::Ofmap || !tensor.sources.is_empty() {
                w.nested("source", tensor.at, &tensor.sources, |w, owner, source| {
                    w.object(Some(owner), |w| {
                        w.peer(source.peer);
                        w.name("layer_name", source.layer);
                        w.corners(&source.bounds);
                        w.optional("size", source.size);
                        w.field("transfer_id", source.transfer);
                        w.peer_type(source.peer);
                    });
                });
            }
            w.optional("start_loading", tensor.phase.start_loading);
            if tensor.start_send {
                w.field("start_send", true);
            }
            w.optional("start_sending", tensor.phase.start_sending);
            w.optional("tensor_id", tensor.tensor_id);
            w.optional("tensor_order", tensor.tensor_order);
            if tensor.kind != TensorKind::Ofmap || !tensor.transfers.is_empty() {
                w.numbers("transfer_id", &tensor.transfers);
            }
            w.text("type", tensor.kind.name());
            w.optional("workload_id", tensor.workload);
        });
    }

    fn weight_tensor(&mut self, entry: &WeightTensor) {
        self.object(Some((entry.at, None)), |w| {
            w.field("address", entry.address);
            w.optional("align", entry.align);
            w.optional("bitwidth", entry.bitwidth);
            w.name("layer_name", entry.layer);
            if let Some(bounds) = &entry.bounds {
                w.corners(bounds);
            }
            w.field("size", entry.size);
            w.text(
                "source",
                if entry.source == WeightSource::Dram {
                    "DDR"
                } else {
                    "CORE"
                },
            );
            match entry.tensor_order {
                Some(order) => w.field("tensor_order", order),
                None => w.field("tensor_order", "null"),
            }
            w.numbers("transfer_id", &entry.transfers);
        });
    }

    fn tile(&mut self, tile: &Tile) {
        self.key(&format!("tile_num_{}", tile.number));
        self.object(Some((tile.at, None)), |w| {
            let PeTile {
                layer,
                loop_order,
                cut_mode,
                input_channel_cuts,
                activation_mini_tile,
                output_mini_tile,
                mtc0_mtk0,
            } = tile.pe.as_deref().cloned().unwrap_or_default();
            if let Some(mini) = activation_mini_tile {
                w.numbers("act_mini_tile", mini);
            }
            w.optional("ci_cut_num", input_channel_cuts);
            w.name("cut_mode", cut_mode);
            for (bounds, lower, upper) in [
                (tile.ifmap.as_ref(), "ifmap_lower", "ifmap_upper"),
                (tile.ifmap2.as_deref(), "ifmap_lower2", "ifmap_upper2"),
            ] {
                if let Some(bounds) = bounds {
                    w.numbers(lower, bounds.lower);
                    w.numbers(upper, bounds.upper);
                }
            }
            w.name("layer_name", layer);
            w.name("loop_order", loop_order);
            if let Some(counts) = mtc0_mtk0 {
                w.numbers("mtc0_mtk0", counts);
            }
            w.numbers("ofmap_lower", tile.ofmap.lower);
            w.numbers("ofmap_upper", tile.ofmap.upper);
            if let Some(mini) = output_mini_tile {
                w.numbers("out_mini_tile", mini);
            }
            if let Some(time) = tile.time {
                // The shortest text that reads as the same number.
                w.field("single_tile_time_pred", format_args!("{time:?}"));
            }
            if let Some(padding) = tile.padding {
                w.numbers("tile_padding_tblr", padding);
            }
        });
    }
}
