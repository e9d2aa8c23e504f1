//! A plain scheduler for tests: any network, every layer cut in its own way over the cores, results on the chip or through DRAM.
//!
//! What it makes is right by construction. Workloads have an order over all cores in which every one comes after those that make
//! what it reads. Each transfer gets an instant in that order, after everything that it must wait for and before its first reader;
//! the DRAM queue is the order of the instants, and space is given to who comes later. So nothing waits for what comes after it.
#![allow(dead_code, reason = "each user takes a part")]

mod flow;
mod front_end;
pub(crate) mod network;
mod place;
mod print;

use chipless_model::SplitMix64;
use network::{Box4, From, Layer, common, whole};
use serde_json::Value;

/// Where chance comes from.
pub(crate) struct Dice(SplitMix64);

impl Dice {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.0.number() % n.max(1) as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Between two instants.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (0.05 + 0.9 * self.below(1 << 20) as f64 / f64::from(1 << 20))
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last + 1));
        }
    }
}

/// A workload.
struct Piece {
    layer: usize,
    bounds: Box4,
    core: usize,
    /// Place on its core.
    position: usize,
    /// Tensors that hold its operands.
    operands: Vec<Option<usize>>,
    /// The use of weights.
    weights: Option<usize>,
}

enum What {
    /// An operand, which comes from DRAM or from the cores that make it.
    Operand { from: From, through_dram: bool },
    /// A piece of a result on its way: a transfer.
    Staged(usize),
    /// Weights on their way to the weight buffer: their use.
    Weights(usize),
}

/// A tensor of L2.
struct Tensor {
    core: usize,
    what: What,
    bounds: Box4,
    bytes: u64,
    /// First and last snapshot.
    first: usize,
    last: usize,
    /// First snapshot with `start_send`.
    send_at: usize,
    /// Workloads that read it.
    readers: Vec<usize>,
    /// When somebody writes into it first, and when it was taken away.
    written: f64,
    left: f64,
    address: u64,
}

/// A piece of a result that goes somewhere.
struct Transfer {
    /// Who makes it.
    piece: usize,
    bounds: Box4,
    /// Tensors of cores that it fills.
    sinks: Vec<usize>,
    to_dram: bool,
    staged: Option<usize>,
    sent: f64,
    stored: f64,
}

/// Who uses weights on one core.
struct Use {
    core: usize,
    layer: usize,
    channels: [u32; 2],
    pieces: Vec<usize>,
    first: usize,
    last: usize,
    load: usize,
    address: u64,
}

enum Loaded {
    Operand {
        tensors: Vec<usize>,
        related: Vec<usize>,
    },
    Weights {
        uses: Vec<usize>,
        through_l2: bool,
    },
}

struct Load {
    what: Loaded,
    at: f64,
}

/// A scheduled program.
pub(crate) struct Program {
    pub(crate) layers: Vec<Layer>,
    mesh: [u32; 2],
    /// From where boxes count: 0 the corner of the layer, 1 that of the piece in N, H and W, 2 in C as well.
    frame: usize,
    /// In the order of all cores.
    pieces: Vec<Piece>,
    /// Pieces of each core.
    cores: Vec<Vec<usize>>,
    tensors: Vec<Tensor>,
    transfers: Vec<Transfer>,
    uses: Vec<Use>,
    loads: Vec<Load>,
    buffer_size: u64,
    /// All addresses are moved on by this.
    turned: u64,
    /// Other choices of the printer.
    salt: u64,
}

/// A network of its own for each seed, scheduled over 1 to 16 cores.
pub(crate) fn random(seed: u64) -> Program {
    let mut dice = Dice(SplitMix64(seed));
    dice.below(2);
    let layers = network::random(&mut dice);
    scheduled(layers, &mut dice)
}

impl Program {
    pub(crate) fn network(&self) -> Value {
        front_end::front_end(&self.layers)
    }

    /// The same network on one core, layer after layer, everything through DRAM.
    pub(crate) fn plain(&self) -> Program {
        let mut dice = Dice(SplitMix64(0));
        let order = self
            .layers
            .iter()
            .enumerate()
            .map(|(n, l)| (n, whole(l.shape), 0))
            .collect();
        finish(self.layers.clone(), [1, 1], order, 100, &mut dice)
    }

    fn makers(&self, layer: usize, bounds: Box4) -> impl Iterator<Item = (usize, Box4)> + '_ {
        let all = self
            .pieces
            .iter()
            .enumerate()
            .filter(move |(_, piece)| piece.layer == layer);
        all.filter_map(move |(n, piece)| Some((n, common(piece.bounds, bounds)?)))
    }

    /// How many workloads of a core come before one of any core.
    fn before(&self, core: usize, piece: usize) -> usize {
        self.cores[core].iter().filter(|p| **p < piece).count()
    }

    /// The instant at which the snapshot of a workload begins to hold.
    fn gate(&self, core: usize, position: usize) -> f64 {
        let before = position.checked_sub(1);
        before.map_or(-1.0, |position| self.cores[core][position] as f64)
    }
}

fn scheduled(layers: Vec<Layer>, dice: &mut Dice) -> Program {
    let meshes = [
        [1, 1],
        [2, 1],
        [2, 1],
        [2, 2],
        [2, 2],
        [3, 1],
        [3, 2],
        [4, 2],
        [4, 4],
    ];
    let mesh = meshes[dice.below(meshes.len())];
    let cores = (mesh[0] * mesh[1]) as usize;
    let mut drafts: Vec<(usize, Box4, usize)> = Vec::new();
    for (layer, of) in layers.iter().enumerate() {
        let mut order: Vec<usize> = (0..cores).collect();
        dice.shuffle(&mut order);
        let parts = split(of.shape, cores, dice);
        drafts.extend(
            parts
                .into_iter()
                .enumerate()
                .map(|(n, part)| (layer, part, order[n % cores])),
        );
    }
    let order = sorted(&layers, drafts, dice);
    let through_dram = [0, 0, 30, 100][dice.below(4)];
    finish(layers, mesh, order, through_dram, dice)
}

/// Everything that follows from the workloads in their order.
fn finish(
    layers: Vec<Layer>,
    mesh: [u32; 2],
    order: Vec<(usize, Box4, usize)>,
    through_dram: usize,
    dice: &mut Dice,
) -> Program {
    let mut program = Program {
        layers,
        mesh,
        frame: dice.below(3),
        pieces: Vec::new(),
        cores: vec![Vec::new(); (mesh[0] * mesh[1]) as usize],
        tensors: Vec::new(),
        transfers: Vec::new(),
        uses: Vec::new(),
        loads: Vec::new(),
        buffer_size: 0,
        turned: 0,
        salt: dice.below(1 << 30) as u64,
    };
    for (layer, bounds, core) in order {
        program.cores[core].push(program.pieces.len());
        let position = program.cores[core].len() - 1;
        program.pieces.push(Piece {
            layer,
            bounds,
            core,
            position,
            operands: Vec::new(),
            weights: None,
        });
    }
    flow::reads(&mut program, through_dram, dice);
    flow::weights(&mut program, dice);
    flow::transfers(&mut program, dice);
    flow::snapshots(&mut program, dice);
    flow::instants(&mut program, dice);
    place::tensors(&mut program, dice);
    place::weights(&mut program);
    program
}

/// A layer cut along one or two dimensions, not always evenly.
fn split(shape: [u32; 4], cores: usize, dice: &mut Dice) -> Vec<Box4> {
    let count = [1, cores, 1 + dice.below(cores), 2 * cores][dice.below(4)];
    let mut dimensions = [0, 1, 2, 3];
    dice.shuffle(&mut dimensions);
    let mut parts = vec![whole(shape)];
    let first = if dice.chance(60) {
        count
    } else {
        1 + dice.below(count)
    };
    for (d, wanted) in [
        (dimensions[0], first),
        (dimensions[1], count.div_ceil(first)),
    ] {
        let extent = shape[d];
        let wanted = (wanted as u32).min(extent);
        let mut cuts: Vec<u32> = (1..extent).collect();
        if dice.chance(60) {
            cuts = (1..wanted).map(|i| extent * i / wanted).collect();
        }
        dice.shuffle(&mut cuts);
        cuts.truncate(wanted as usize - 1);
        cuts.extend([0, extent]);
        cuts.sort_unstable();
        parts = parts
            .into_iter()
            .flat_map(|part| {
                cuts.windows(2).map(move |ends| {
                    let (mut low, mut high) = part;
                    (low[d], high[d]) = (ends[0], ends[1] - 1);
                    (low, high)
                })
            })
            .collect();
    }
    parts
}

/// The drafts in an order in which each comes after those that make what it reads, more or less layer by layer.
fn sorted(
    layers: &[Layer],
    drafts: Vec<(usize, Box4, usize)>,
    dice: &mut Dice,
) -> Vec<(usize, Box4, usize)> {
    let needs = |(layer, bounds, _): &(usize, Box4, usize)| -> Vec<(usize, Box4)> {
        let reads = layers[*layer].reads.iter().enumerate();
        reads
            .filter_map(|(operand, from)| match from {
                From::Layer(made) => Some((*made, layers[*layer].needs(operand, *bounds)?)),
                From::Port(_) => None,
            })
            .collect()
    };
    let haste = [0.0, 1.5, 4.0][dice.below(3)];
    let mut left: Vec<(f64, (usize, Box4, usize))> = drafts
        .into_iter()
        .map(|draft| (draft.0 as f64 + haste * dice.between(0.0, 1.0), draft))
        .collect();
    left.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let is_ready = |draft: &(usize, Box4, usize)| {
            needs(draft).iter().all(|(made, bounds)| {
                left.iter()
                    .all(|(_, other)| other.0 != *made || common(other.1, *bounds).is_none())
            })
        };
        let next = left
            .iter()
            .position(|(_, draft)| is_ready(draft))
            .expect("no circle");
        order.push(left.remove(next).1);
    }
    order
}
