//! The program as a schedule of the spec's dialect.

use super::flow::{bytes, weight_box};
use super::front_end::name;
use super::network::{Box4, From};
use super::{Dice, Loaded, Program, Tensor, What, place};
use chipless_model::SplitMix64;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

struct Printer<'p> {
    of: &'p Program,
    frame: usize,
    /// Places in the DRAM queue, of loads and of stores; and how many there are.
    loads: Vec<usize>,
    stores: HashMap<usize, usize>,
    total: usize,
    /// Transfers that fill each tensor, with the box that each brings, and whether it comes from DRAM.
    fills: Vec<Vec<(usize, Box4)>>,
}

impl Program {
    pub(crate) fn schedule(&self) -> Value {
        let mut queue: Vec<(f64, bool, usize)> = Vec::new();
        queue.extend(
            self.loads
                .iter()
                .enumerate()
                .map(|(n, load)| (load.at, false, n)),
        );
        let stored = self.transfers.iter().enumerate().filter(|(_, t)| t.to_dram);
        queue.extend(stored.map(|(n, transfer)| (transfer.stored, true, n)));
        queue.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut printer = Printer {
            of: self,
            frame: self.frame,
            loads: vec![0; self.loads.len()],
            stores: HashMap::new(),
            total: queue.len(),
            fills: vec![Vec::new(); self.tensors.len()],
        };
        for (place, (_, is_store, number)) in queue.into_iter().enumerate() {
            if is_store {
                printer.stores.insert(number, place);
            } else {
                printer.loads[number] = place;
            }
        }
        for (number, transfer) in self.transfers.iter().enumerate() {
            for &sink in &transfer.sinks {
                printer.fills[sink].push((number, transfer.bounds));
            }
        }
        for (number, load) in self.loads.iter().enumerate() {
            if let Loaded::Operand { tensors, .. } = &load.what {
                for &tensor in tensors {
                    printer.fills[tensor]
                        .push((self.transfers.len() + number, self.tensors[tensor].bounds));
                }
            }
        }
        printer.choose_frame();
        printer.program()
    }
}

fn moved((low, high): Box4, origin: [u32; 4]) -> Box4 {
    let less = |corner: [u32; 4]| std::array::from_fn(|d| corner[d] - origin[d]);
    (less(low), less(high))
}

impl Printer<'_> {
    fn load_id(&self, load: usize) -> usize {
        self.of.transfers.len() + load
    }

    /// Readers find out by the boxes of ofmaps from where they count: where they cannot, they count from the layer.
    fn choose_frame(&mut self) {
        let of = self.of;
        let boxes = || {
            of.transfers
                .iter()
                .map(|t| (of.pieces[t.piece].bounds, t.bounds))
        };
        let inside = |a: Box4, b: Box4, dimensions: &[usize]| {
            dimensions
                .iter()
                .all(|d| b.0[*d] <= a.0[*d] && a.1[*d] <= b.1[*d])
        };
        if self.frame == 2
            && boxes().any(|(whole, part)| {
                let written = moved(part, whole.0);
                whole.0[1] > 0 && inside(written, whole, &[1])
            })
        {
            self.frame = 1;
        }
        let origin = |whole: Box4| {
            if self.frame == 2 {
                whole.0
            } else {
                [whole.0[0], 0, whole.0[2], whole.0[3]]
            }
        };
        let tells =
            boxes().any(|(whole, part)| !inside(moved(part, origin(whole)), whole, &[0, 1, 2, 3]));
        let differs = boxes().any(|(whole, _)| origin(whole) != [0; 4]);
        if self.frame > 0 && differs && !tells {
            self.frame = 0;
        }
    }

    /// The corner from which the boxes of a piece or tensor count.
    fn origin(&self, (low, _): Box4) -> [u32; 4] {
        match self.frame {
            0 => [0; 4],
            1 => [low[0], 0, low[2], low[3]],
            _ => low,
        }
    }

    fn program(&self) -> Value {
        let of = self.of;
        let mut schedule = Map::new();
        schedule.insert(
            "-1".into(),
            json!({"in": self.dram_in(), "out": self.dram_out()}),
        );
        for core in 0..of.cores.len() {
            let workloads: Vec<Value> = (0..of.cores[core].len())
                .map(|position| self.workload(core, position))
                .collect();
            schedule.insert(core.to_string(), json!(workloads));
        }
        schedule.insert("buffersize".into(), json!(of.buffer_size));
        schedule.insert("top_batch_cut".into(), json!(1));
        schedule.insert("xlen".into(), json!(of.mesh[0]));
        schedule.insert("ylen".into(), json!(of.mesh[1]));
        Value::Object(schedule)
    }

    fn dram_in(&self) -> Vec<Value> {
        let of = self.of;
        let stored = of.transfers.iter().enumerate().filter(|(_, t)| t.to_dram);
        stored
            .map(|(number, transfer)| {
                let maker = &of.pieces[transfer.piece];
                let reads = of.loads.iter().enumerate().filter(|(_, load)| {
                    matches!(&load.what, Loaded::Operand { related, .. } if related.contains(&number))
                });
                let reads: Vec<usize> = reads.map(|(n, _)| self.load_id(n)).collect();
                json!({"core_id": maker.core, "layer_name": of.layers[maker.layer].name, "lower": transfer.bounds.0, "upper": transfer.bounds.1,
                    "related_ofmap": reads, "transfer_id": number, "workload_id": maker.position})
            })
            .collect()
    }

    fn dram_out(&self) -> Vec<Value> {
        let of = self.of;
        let destination = |piece: usize| {
            let reader = &of.pieces[piece];
            json!({"core_id": reader.core, "layer_name": of.layers[reader.layer].name, "type": "core", "workload_id": reader.position})
        };
        let print = |number: usize| {
            let id = self.load_id(number);
            match &of.loads[number].what {
                Loaded::Operand { tensors, related } => {
                    let bounds = of.tensors[tensors[0]].bounds;
                    let readers = tensors.iter().flat_map(|t| &of.tensors[*t].readers);
                    let to: Vec<Value> = readers.map(|piece| destination(*piece)).collect();
                    let constant = matches!(&of.tensors[tensors[0]].what, What::Operand { from: From::Port(name), .. } if name.starts_with("constant"));
                    json!({"destination": to, "lower": bounds.0, "upper": bounds.1, "related_ifmap": related, "size": bytes(bounds),
                        "transfer_id": id, "type": if constant { "constant" } else { "fmap" }})
                }
                Loaded::Weights { uses, .. } => {
                    let (bounds, size) = weight_box(of, &of.uses[uses[0]]);
                    let to: Vec<Value> = uses
                        .iter()
                        .map(|u| destination(of.uses[*u].pieces[0]))
                        .collect();
                    json!({"destination": to, "lower": bounds.0, "upper": bounds.1, "related_ifmap": [], "size": size, "transfer_id": id, "type": "weight"})
                }
            }
        };
        (0..of.loads.len()).map(print).collect()
    }

    fn workload(&self, core: usize, position: usize) -> Value {
        let of = self.of;
        let index = of.cores[core][position];
        let piece = &of.pieces[index];
        let layer = &of.layers[piece.layer];
        let operands: Vec<(usize, usize)> = piece
            .operands
            .iter()
            .enumerate()
            .filter_map(|(n, t)| Some((n, (*t)?)))
            .collect();
        let ifmap: Vec<Value> = operands
            .iter()
            .map(|(operand, tensor)| {
                let needed = layer.needs(*operand, piece.bounds).expect("needed");
                let (low, high) = moved(needed, self.origin(of.tensors[*tensor].bounds));
                json!({"align": 8, "bitwidth": 8, "lower": low, "upper": high, "size": bytes(needed), "transfer_id": self.ids(*tensor)})
            })
            .collect();
        let tensors = of.tensors.iter().enumerate();
        let here =
            tensors.filter(|(_, t)| t.core == core && (t.first..=t.last).contains(&position));
        let mut buffer: Vec<Value> = here
            .map(|(n, tensor)| self.tensor(n, tensor, position, &operands))
            .collect();
        let mut dice = Dice(SplitMix64(of.salt ^ index as u64));
        dice.shuffle(&mut buffer);
        let mut elements = 1;
        for d in 0..4 {
            elements *= u64::from(piece.bounds.1[d] - piece.bounds.0[d] + 1);
        }
        let time = layer.macs(elements).div_ceil(4096) + 1 + dice.below(300) as u64;
        let tiles: Map<String, Value> = cut(piece.bounds, layer.unit() != "dt", &mut dice)
            .into_iter()
            .enumerate()
            .map(|(n, tile)| (format!("tile_num_{n}"), self.tile(index, tile, time)))
            .collect();
        let key = if of.salt.is_multiple_of(2) {
            "wl0_buffer"
        } else {
            "wl1_buffer"
        };
        let mut value = json!({
            "buffer": buffer, "ifmap": ifmap, "layer_name": layer.name, "layer_type": layer.unit(), "ofmap": self.ofmaps(index),
            "ofmap_size": bytes(piece.bounds), "ring_buffer_info": [[0, of.buffer_size]], "tile_info": tiles,
            "tile_padding_tblr": layer.padding(piece.bounds), "time": time, "workload": [piece.bounds.0, piece.bounds.1],
            "workload_id": position, key: self.held(core, position),
        });
        if let Some(used) = piece.weights {
            let ((low, high), size) = weight_box(of, &of.uses[used]);
            value["weight"] = json!({"lower": low, "upper": high, "size": size, "transfer_id": [self.load_id(of.uses[used].load)]});
        }
        value
    }

    fn ids(&self, tensor: usize) -> Vec<usize> {
        self.fills[tensor].iter().map(|(id, _)| *id).collect()
    }

    fn ofmaps(&self, index: usize) -> Vec<Value> {
        let of = self.of;
        let piece = &of.pieces[index];
        let own = of
            .transfers
            .iter()
            .enumerate()
            .filter(|(_, t)| t.piece == index);
        own.map(|(number, transfer)| {
            let mut to: Vec<Value> = Vec::new();
            if transfer.to_dram {
                to.push(json!({"core_id": -1, "type": "DRAM"}));
            }
            for reader in transfer.sinks.iter().flat_map(|t| &of.tensors[*t].readers) {
                let reader = &of.pieces[*reader];
                let one = json!({"core_id": reader.core, "type": "core", "workload_id": reader.position});
                if !to.contains(&one) {
                    to.push(one);
                }
            }
            let (low, high) = moved(transfer.bounds, self.origin(piece.bounds));
            json!({"destination": to, "lower": low, "upper": high, "size": bytes(transfer.bounds), "transfer_id": number})
        })
        .collect()
    }

    fn tensor(
        &self,
        number: usize,
        tensor: &Tensor,
        position: usize,
        operands: &[(usize, usize)],
    ) -> Value {
        let of = self.of;
        let address = (tensor.address + of.turned) % of.buffer_size;
        let mut value = json!({"address": address, "align": 8, "bitwidth": 8, "size": tensor.bytes, "tensor_id": number});
        let mut set = |more: Value| {
            let (Value::Object(to), Value::Object(more)) = (&mut value, more) else {
                return;
            };
            to.extend(more);
        };
        match &tensor.what {
            What::Staged(transfer) => {
                let maker = &of.pieces[of.transfers[*transfer].piece];
                let (low, high) = moved(tensor.bounds, self.origin(maker.bounds));
                let order = self.stores.get(transfer).copied().unwrap_or(self.total);
                set(
                    json!({"type": "ofmap", "layer_name": of.layers[maker.layer].name, "lower": low, "upper": high,
                    "start_send": position >= tensor.send_at, "tensor_order": order}),
                );
            }
            What::Weights(used) => {
                let load = of.uses[*used].load;
                let (low, high) = tensor.bounds;
                let id = self.load_id(load);
                let source = json!([{"core_id": -1, "lower": low, "upper": high, "size": tensor.bytes, "transfer_id": id, "type": "DRAM"}]);
                set(
                    json!({"type": "weight", "layer_name": of.layers[of.uses[*used].layer].name, "lower": low, "upper": high, "source": source,
                    "transfer_id": [id], "tensor_order": self.loads[load], "newly_added": tensor.first == position}),
                );
            }
            What::Operand { from, .. } => {
                let origin = self.origin(tensor.bounds);
                let mut sources: Vec<Value> = self.fills[number]
                    .iter()
                    .map(|(id, bounds)| {
                        let (low, high) = moved(*bounds, origin);
                        let (core, kind) = match of.transfers.get(*id) {
                            Some(transfer) => (of.pieces[transfer.piece].core as i64, "core"),
                            None => (-1, "DRAM"),
                        };
                        json!({"core_id": core, "layer_name": name(&of.layers, from), "lower": low, "upper": high, "size": bytes(*bounds), "transfer_id": id, "type": kind})
                    })
                    .collect();
                Dice(SplitMix64(of.salt ^ (number * 977 + position) as u64)).shuffle(&mut sources);
                let ids: Vec<&Value> = sources
                    .iter()
                    .map(|source| &source["transfer_id"])
                    .collect();
                let order = self.fills[number][0]
                    .0
                    .checked_sub(of.transfers.len())
                    .map_or(self.total, |load| self.loads[load]);
                let (low, high) = moved(tensor.bounds, origin);
                let is_read = operands
                    .iter()
                    .any(|(_, t)| self.fills[*t] == self.fills[number]);
                set(
                    json!({"type": "ifmap", "lower": low, "upper": high, "transfer_id": ids, "source": sources,
                    "tensor_order": order, "newly_added": tensor.first == position}),
                );
                if is_read {
                    set(json!({"cur_wl_ifmap": true}));
                }
            }
        }
        value
    }

    fn held(&self, core: usize, position: usize) -> Vec<Value> {
        let of = self.of;
        let mut held = Vec::new();
        for (number, used) in of
            .uses
            .iter()
            .enumerate()
            .filter(|(_, used)| used.core == core)
        {
            let Loaded::Weights { through_l2, .. } = &of.loads[used.load].what else {
                continue;
            };
            let (bounds, _) = weight_box(of, used);
            let mut value = json!({"address": used.address, "align": 8, "bitwidth": 8, "layer_name": of.layers[used.layer].name,
                "size": place::held(of, number), "transfer_id": [self.load_id(used.load)]});
            if *through_l2 {
                if used
                    .pieces
                    .iter()
                    .all(|p| of.pieces[*p].position != position)
                {
                    continue;
                }
                value["source"] = json!("CORE");
                value["tensor_order"] = Value::Null;
            } else {
                if !(used.first..=used.last).contains(&position) {
                    continue;
                }
                value["source"] = json!("DDR");
                value["tensor_order"] = json!(self.loads[used.load]);
                value["lower"] = json!(bounds.0);
                value["upper"] = json!(bounds.1);
            }
            held.push(value);
        }
        held
    }

    fn tile(&self, index: usize, tile: Box4, time: u64) -> Value {
        let piece = &self.of.pieces[index];
        let layer = &self.of.layers[piece.layer];
        let mut value = json!({"ofmap_lower": tile.0, "ofmap_upper": tile.1, "single_tile_time_pred": time as f64, "tile_padding_tblr": layer.padding(tile)});
        let live = (0..layer.reads.len()).filter(|operand| piece.operands[*operand].is_some());
        for (operand, suffix) in live.zip(["", "2"]) {
            let needed = layer
                .needs(operand, tile)
                .or_else(|| layer.needs(operand, piece.bounds))
                .expect("needed");
            value[format!("ifmap_lower{suffix}")] = json!(needed.0);
            value[format!("ifmap_upper{suffix}")] = json!(needed.1);
        }
        if layer.unit() == "pe" {
            for (key, entry) in [
                ("act_mini_tile", json!([1, 1, 1, 1])),
                ("out_mini_tile", json!([1, 1, 1, 1])),
                ("mtc0_mtk0", json!([1, 1])),
                ("ci_cut_num", json!(1)),
                ("cut_mode", json!("KH")),
                ("loop_order", json!("KNHW")),
                ("layer_name", json!(layer.name)),
            ] {
                value[key] = entry;
            }
        }
        value
    }
}

/// One tile, or a few along some dimension.
fn cut((low, high): Box4, may: bool, dice: &mut Dice) -> Vec<Box4> {
    let d = dice.below(4);
    let extent = high[d] - low[d] + 1;
    let parts = if may {
        (1 + dice.below(3) as u32).min(extent)
    } else {
        1
    };
    (0..parts)
        .map(|n| {
            let (mut l, mut h) = (low, high);
            (l[d], h[d]) = (
                low[d] + extent * n / parts,
                low[d] + extent * (n + 1) / parts - 1,
            );
            (l, h)
        })
        .collect()
}
