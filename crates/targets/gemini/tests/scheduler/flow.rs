//! Who reads what, by which transfers it comes, and when.

use super::network::{Box4, From, common};
use super::{Dice, Load, Loaded, Program, Tensor, Transfer, Use, What};

/// Bytes of a feature map: channels come in groups of 8.
pub(super) fn bytes((low, high): Box4) -> u64 {
    let extent = |d: usize| u64::from(high[d] - low[d] + 1);
    extent(0) * extent(1).next_multiple_of(8) * extent(2) * extent(3)
}

pub(super) fn tensor(core: usize, what: What, bounds: Box4, bytes: u64, first: usize) -> Tensor {
    Tensor {
        core,
        what,
        bounds,
        bytes,
        first,
        last: first,
        send_at: first,
        readers: Vec::new(),
        written: f64::MAX,
        left: f64::MIN,
        address: 0,
    }
}

/// Tensors for all operands; one may serve several workloads of its core.
pub(super) fn reads(program: &mut Program, percent: usize, dice: &mut Dice) {
    for index in 0..program.pieces.len() {
        let (layer, core) = (program.pieces[index].layer, program.pieces[index].core);
        let position = program.pieces[index].position;
        for operand in 0..program.layers[layer].reads.len() {
            let bounds = program.layers[layer].needs(operand, program.pieces[index].bounds);
            let Some(bounds) = bounds else {
                program.pieces[index].operands.push(None);
                continue;
            };
            let from = program.layers[layer].reads[operand].clone();
            let holds = |tensor: &Tensor| {
                let same =
                    matches!(&tensor.what, What::Operand { from: held, .. } if *held == from);
                // Both operands of one workload are apart.
                let apart = tensor.readers.last() != Some(&index);
                same && apart
                    && tensor.core == core
                    && common(tensor.bounds, bounds) == Some(bounds)
            };
            let known = program
                .tensors
                .iter()
                .position(holds)
                .filter(|_| dice.chance(60));
            let number = known.unwrap_or_else(|| {
                let through_dram = matches!(from, From::Port(_)) || dice.chance(percent);
                let what = What::Operand { from, through_dram };
                program
                    .tensors
                    .push(tensor(core, what, bounds, bytes(bounds), position));
                program.tensors.len() - 1
            });
            program.tensors[number].readers.push(index);
            program.tensors[number].last = position;
            program.pieces[index].operands.push(Some(number));
        }
    }
}

/// Uses of weights, and the loads that bring them to one core or to several.
pub(super) fn weights(program: &mut Program, dice: &mut Dice) {
    for index in 0..program.pieces.len() {
        let piece = &program.pieces[index];
        if !program.layers[piece.layer].has_weights() {
            continue;
        }
        let (layer, core, position) = (piece.layer, piece.core, piece.position);
        let channels = [piece.bounds.0[1], piece.bounds.1[1]];
        let same = |used: &Use| (used.core, used.layer, used.channels) == (core, layer, channels);
        let known = program
            .uses
            .iter()
            .position(same)
            .filter(|_| dice.chance(70));
        let number = known.unwrap_or_else(|| {
            let (first, last) = (position, position);
            let used = Use {
                core,
                layer,
                channels,
                pieces: Vec::new(),
                first,
                last,
                load: 0,
                address: 0,
            };
            program.uses.push(used);
            program.uses.len() - 1
        });
        program.uses[number].pieces.push(index);
        program.uses[number].last = position;
        program.pieces[index].weights = Some(number);
    }
    for number in 0..program.uses.len() {
        let used = &program.uses[number];
        let fits = |load: &Load| match &load.what {
            Loaded::Weights { uses, .. } => {
                let of = |u: &usize| &program.uses[*u];
                uses.iter().all(|u| of(u).core != used.core)
                    && uses
                        .iter()
                        .any(|u| (of(u).layer, of(u).channels) == (used.layer, used.channels))
            }
            Loaded::Operand { .. } => false,
        };
        let known = program
            .loads
            .iter()
            .position(fits)
            .filter(|_| dice.chance(60));
        let load = known.unwrap_or_else(|| {
            let what = Loaded::Weights {
                uses: Vec::new(),
                through_l2: dice.chance(40),
            };
            program.loads.push(Load { what, at: 0.0 });
            program.loads.len() - 1
        });
        if let Loaded::Weights { uses, .. } = &mut program.loads[load].what {
            uses.push(number);
        }
        program.uses[number].load = load;
    }
}

/// Transfers between cores, to DRAM and from DRAM.
pub(super) fn transfers(program: &mut Program, dice: &mut Dice) {
    for number in 0..program.tensors.len() {
        let What::Operand { from, through_dram } = &program.tensors[number].what else {
            continue;
        };
        let bounds = program.tensors[number].bounds;
        match (from, through_dram) {
            (From::Layer(layer), false) => {
                let makers: Vec<(usize, Box4)> = program.makers(*layer, bounds).collect();
                for (piece, bounds) in makers {
                    send(program, piece, bounds, number, dice);
                }
            }
            _ => {
                load(program, number, dice);
            }
        }
    }
    for piece in 0..program.pieces.len() {
        store(program, piece, dice);
    }
    for load in 0..program.loads.len() {
        let Loaded::Operand { tensors, .. } = &program.loads[load].what else {
            continue;
        };
        let of = &program.tensors[tensors[0]];
        let What::Operand {
            from: From::Layer(layer),
            ..
        } = &of.what
        else {
            continue;
        };
        let stores = program.transfers.iter().enumerate().filter(|(_, t)| {
            t.to_dram
                && program.pieces[t.piece].layer == *layer
                && common(t.bounds, of.bounds).is_some()
        });
        let stores: Vec<usize> = stores.map(|(n, _)| n).collect();
        if let Loaded::Operand { related, .. } = &mut program.loads[load].what {
            *related = stores;
        }
    }
}

fn send(program: &mut Program, piece: usize, bounds: Box4, sink: usize, dice: &mut Dice) {
    let leaves = program.tensors[sink].core != program.pieces[piece].core;
    let number = departing(program, piece, bounds, leaves, dice);
    program.transfers[number].sinks.push(sink);
}

/// The transfer of a part of a result: one that there is already, or another. Of those that leave their core there is one for
/// each box: nothing tells two tensors of one box apart that are new in one snapshot.
fn departing(
    program: &mut Program,
    piece: usize,
    bounds: Box4,
    leaves: bool,
    dice: &mut Dice,
) -> usize {
    let core = program.pieces[piece].core;
    let away = |t: &Transfer| t.sinks.iter().any(|s| program.tensors[*s].core != core);
    let all = || program.transfers.iter().enumerate();
    let mut same = all().filter(|(_, t)| (t.piece, t.bounds) == (piece, bounds));
    let first = same.clone().next().map(|(n, _)| n);
    let leaving = same.find(|(_, t)| away(t)).map(|(n, _)| n);
    let known = leaving
        .filter(|_| leaves)
        .or(first.filter(|_| dice.chance(60)));
    known.unwrap_or_else(|| transfer(program, piece, bounds))
}

fn transfer(program: &mut Program, piece: usize, bounds: Box4) -> usize {
    let (sinks, staged) = (Vec::new(), None);
    program.transfers.push(Transfer {
        piece,
        bounds,
        sinks,
        to_dram: false,
        staged,
        sent: f64::MIN,
        stored: f64::MIN,
    });
    program.transfers.len() - 1
}

/// A workload's result goes to DRAM, as a whole or in two pieces, if somebody reads it there or it is one of the network.
fn store(program: &mut Program, piece: usize, dice: &mut Dice) {
    let (low, high) = program.pieces[piece].bounds;
    let mut parts = vec![(low, high)];
    let d = 2 + dice.below(2);
    if high[d] > low[d] && dice.chance(25) {
        let (mut end, mut start) = (high, low);
        end[d] = low[d] + (high[d] - low[d]) / 2;
        start[d] = end[d] + 1;
        parts = vec![(low, end), (start, high)];
    }
    let layer = From::Layer(program.pieces[piece].layer);
    let is_result = program.layers.iter().all(|l| !l.reads.contains(&layer));
    for bounds in parts {
        let reads = |tensor: &Tensor| {
            let What::Operand { from, through_dram } = &tensor.what else {
                return false;
            };
            *through_dram && *from == layer && common(tensor.bounds, bounds).is_some()
        };
        if !is_result && !program.tensors.iter().any(reads) {
            continue;
        }
        let number = departing(program, piece, bounds, true, dice);
        program.transfers[number].to_dram = true;
    }
}

fn load(program: &mut Program, sink: usize, dice: &mut Dice) {
    let source = |tensor: &Tensor| match &tensor.what {
        What::Operand { from, .. } => Some((from.clone(), tensor.bounds)),
        _ => None,
    };
    let wanted = (source(&program.tensors[sink]), program.tensors[sink].core);
    let fits = |load: &Load| match &load.what {
        Loaded::Operand { tensors, .. } => {
            source(&program.tensors[tensors[0]]) == wanted.0
                && tensors.iter().all(|t| program.tensors[*t].core != wanted.1)
        }
        Loaded::Weights { .. } => false,
    };
    let known = program
        .loads
        .iter()
        .position(fits)
        .filter(|_| dice.chance(50));
    let number = known.unwrap_or_else(|| {
        let what = Loaded::Operand {
            tensors: Vec::new(),
            related: Vec::new(),
        };
        program.loads.push(Load { what, at: 0.0 });
        program.loads.len() - 1
    });
    if let Loaded::Operand { tensors, .. } = &mut program.loads[number].what {
        tensors.push(sink);
    }
}

impl Program {
    /// The first workload that reads what a transfer or a load brings.
    fn deadline(&self, tensors: &[usize]) -> usize {
        let readers = tensors.iter().map(|t| self.tensors[*t].readers[0]);
        readers.min().unwrap_or(usize::MAX)
    }

    fn deadline_of(&self, load: &Load) -> usize {
        match &load.what {
            Loaded::Operand { tensors, .. } => self.deadline(tensors),
            Loaded::Weights { uses, .. } => uses
                .iter()
                .map(|u| self.uses[*u].pieces[0])
                .min()
                .unwrap_or(usize::MAX),
        }
    }

    /// The first workload that reads what a store puts into DRAM.
    fn deadline_of_store(&self, transfer: usize) -> usize {
        let reads = self.loads.iter().filter(|load| {
            matches!(&load.what, Loaded::Operand { related, .. } if related.contains(&transfer))
        });
        reads
            .map(|load| self.deadline_of(load))
            .min()
            .unwrap_or(usize::MAX)
    }
}

/// Snapshots in which tensors and weights stand: early enough for all their transfers, and sometimes earlier.
pub(super) fn snapshots(program: &mut Program, dice: &mut Dice) {
    let mut limits: Vec<(usize, usize)> = Vec::new();
    for transfer in &program.transfers {
        let deadline = program.deadline(&transfer.sinks);
        let maker = &program.pieces[transfer.piece];
        for &sink in &transfer.sinks {
            let core = program.tensors[sink].core;
            let is_own = core == maker.core;
            let limit = if is_own {
                maker.position
            } else {
                program.before(core, deadline)
            };
            limits.push((sink, limit));
        }
    }
    for load in &program.loads {
        let Loaded::Operand { tensors, .. } = &load.what else {
            continue;
        };
        let deadline = program.deadline_of(load);
        limits.extend(
            tensors
                .iter()
                .map(|t| (*t, program.before(program.tensors[*t].core, deadline))),
        );
    }
    for (sink, limit) in limits {
        program.tensors[sink].first = program.tensors[sink].first.min(limit);
    }
    for tensor in &mut program.tensors {
        tensor.first = tensor.first.saturating_sub([0, 0, 1, 2][dice.below(4)]);
    }
    for number in 0..program.loads.len() {
        let deadline = program.deadline_of(&program.loads[number]);
        let Loaded::Weights { uses, through_l2 } = &program.loads[number].what else {
            continue;
        };
        let (uses, through_l2) = (uses.clone(), *through_l2);
        for used in uses {
            let limit = program
                .before(program.uses[used].core, deadline)
                .min(program.uses[used].first);
            program.uses[used].first = limit.saturating_sub([0, 1, 1, 2][dice.below(4)]);
            if through_l2 {
                let of = &program.uses[used];
                let (bounds, size) = weight_box(program, of);
                let mut tensor = tensor(of.core, What::Weights(used), bounds, size, of.first);
                tensor.last = of.last;
                program.tensors.push(tensor);
            }
        }
    }
    for number in 0..program.transfers.len() {
        stage(program, number, dice);
    }
}

/// A piece that leaves its core waits in a tensor of its own, for some snapshots where the DRAM queue is busy.
fn stage(program: &mut Program, number: usize, dice: &mut Dice) {
    let transfer = &program.transfers[number];
    let maker = &program.pieces[transfer.piece];
    let leaves = transfer
        .sinks
        .iter()
        .any(|sink| program.tensors[*sink].core != maker.core);
    if !leaves && !transfer.to_dram {
        return;
    }
    let mut staged = tensor(
        maker.core,
        What::Staged(number),
        transfer.bounds,
        bytes(transfer.bounds),
        maker.position,
    );
    if transfer.to_dram {
        let deadline = program.deadline_of_store(number).min(program.pieces.len());
        let latest = program
            .before(maker.core, deadline)
            .min(program.cores[maker.core].len() - 1);
        let wait = [0, 0, 1, 2][dice.below(4)];
        staged.last = (maker.position + wait).min(latest).max(maker.position);
        staged.send_at = staged.last;
    }
    program.transfers[number].staged = Some(program.tensors.len());
    program.tensors.push(staged);
}

/// The box and bytes of the weights of a use.
pub(super) fn weight_box(program: &Program, used: &Use) -> (Box4, u64) {
    let [_, c, r, s] = program.layers[used.layer].weights();
    let [first, last] = used.channels;
    let channel = u64::from(c.next_multiple_of(8)) * u64::from(r * s) + 32;
    let bounds = ([0, first, 0, 0], [0, last, c - 1, r * s - 1]);
    (bounds, u64::from(last - first + 1) * channel)
}

/// When every transfer happens.
pub(super) fn instants(program: &mut Program, dice: &mut Dice) {
    for number in 0..program.transfers.len() {
        let transfer = &program.transfers[number];
        let maker = &program.pieces[transfer.piece];
        let made = transfer.piece as f64;
        let away = transfer
            .sinks
            .iter()
            .map(|t| &program.tensors[*t])
            .filter(|t| t.core != maker.core);
        let gate = away
            .map(|t| program.gate(t.core, t.first))
            .fold(made, f64::max);
        program.transfers[number].sent = dice.between(
            gate,
            program.deadline(&program.transfers[number].sinks) as f64,
        );
    }
    let ready = |program: &Program, transfer: usize| {
        let of = &program.transfers[transfer];
        let gate = of.staged.map_or(-1.0, |staged| {
            let staged = &program.tensors[staged];
            program.gate(staged.core, staged.send_at)
        });
        gate.max(of.piece as f64)
    };
    let mut latest = vec![f64::MAX; program.transfers.len()];
    for number in 0..program.loads.len() {
        let load = &program.loads[number];
        let mut from = -1.0f64;
        match &load.what {
            Loaded::Operand { tensors, related } => {
                let gates = tensors
                    .iter()
                    .map(|t| program.gate(program.tensors[*t].core, program.tensors[*t].first));
                from = gates
                    .chain(related.iter().map(|t| ready(program, *t)))
                    .fold(from, f64::max);
            }
            Loaded::Weights { uses, .. } => {
                let gates = uses
                    .iter()
                    .map(|u| program.gate(program.uses[*u].core, program.uses[*u].first));
                from = gates.fold(from, f64::max);
            }
        }
        let at = dice.between(from, program.deadline_of(load) as f64);
        program.loads[number].at = at;
        if let Loaded::Operand { related, .. } = &program.loads[number].what {
            for &store in related {
                latest[store] = at.min(latest[store]);
            }
        }
    }
    for (number, latest) in latest.into_iter().enumerate() {
        if !program.transfers[number].to_dram {
            continue;
        }
        let from = ready(program, number);
        let to = latest.min(from + 1.0 + dice.below(6) as f64);
        program.transfers[number].stored = dice.between(from, to);
    }
    writers(program);
}

/// When tensors are first written, and when results have left.
fn writers(program: &mut Program) {
    for transfer in &program.transfers {
        let maker = &program.pieces[transfer.piece];
        let (core, made) = (maker.core, transfer.piece as f64);
        for &sink in &transfer.sinks {
            let tensor = &mut program.tensors[sink];
            let at = if tensor.core == core {
                made
            } else {
                transfer.sent
            };
            tensor.written = tensor.written.min(at);
        }
        if let Some(staged) = transfer.staged {
            let leaves = transfer
                .sinks
                .iter()
                .any(|sink| program.tensors[*sink].core != core);
            let sent = if leaves { transfer.sent } else { f64::MIN };
            let staged = &mut program.tensors[staged];
            staged.written = made;
            staged.left = sent.max(transfer.stored);
        }
    }
    for load in &program.loads {
        match &load.what {
            Loaded::Operand { tensors, .. } => {
                for tensor in tensors {
                    program.tensors[*tensor].written = load.at;
                }
            }
            Loaded::Weights { uses, .. } => {
                for tensor in &mut program.tensors {
                    if matches!(tensor.what, What::Weights(used) if uses.contains(&used)) {
                        tensor.written = load.at;
                    }
                }
            }
        }
    }
}
