//! What a workload costs one core: the best mapping onto its array, as SET finds it.
//!
//! Integers are exact and binary64 sums are formed in SET's order; where SET's arithmetic is 32 bits wide it wraps here too, so
//! that its figures come out to the last digit.

use crate::machine::{Array, Buffer, Machine};

/// The largest part of a layer that one core computes; of one group where there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Workload {
    pub(crate) k: i64,
    pub(crate) c: i64,
    pub(crate) b: i64,
    pub(crate) h: i64,
    pub(crate) w: i64,
    pub(crate) kernel: [i64; 2],
    pub(crate) stride: [i64; 2],
    pub(crate) groups: i64,
}

/// Energy (pJ) and time (cycles) of one core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tile {
    pub(crate) energy: f64,
    pub(crate) time: i64,
}

/// ⌈a/b⌉, and 0 for nothing.
pub(crate) const fn ceil(a: i64, b: i64) -> i64 {
    if a == 0 { 0 } else { (a - 1).div_euclid(b) + 1 }
}

/// The part of a number that 32 bits hold.
const fn wrap(value: i128) -> i128 {
    value & 0xFFFF_FFFF
}

/// The mapping with the least energy times time; `None` where there is none.
pub(crate) fn best(machine: &Machine, work: &Workload) -> Option<Tile> {
    match &machine.array {
        Array::Polar { .. } => Polar::new(machine, work)?.best(),
        Array::Eyeriss { .. } => RowStationary::new(machine, work)?.best(),
    }
}

/// Keeps the better of two mappings, the first of equals.
fn keep(best: &mut Option<(Tile, f64)>, tile: Tile) {
    let cost = tile.energy * tile.time as f64;
    if best.is_none_or(|(_, least)| cost < least) {
        *best = Some((tile, cost));
    }
}

/// Dimensions that the array divides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axis {
    C,
    K,
    H,
    W,
    B,
}

/// What the two sides of the array divide.
const SPLITS: [(Axis, Axis); 6] = [
    (Axis::C, Axis::K),
    (Axis::C, Axis::B),
    (Axis::B, Axis::K),
    (Axis::C, Axis::W),
    (Axis::H, Axis::K),
    (Axis::H, Axis::W),
];

/// What a variant reads and writes in each buffer, and what it passes round on the bus: bytes.
struct Accesses {
    al1_read: i128,
    al1_written: i128,
    wl1_read: i128,
    wl1_written: i128,
    ol1_read: i128,
    ol1_written: i128,
    l2_read: i128,
    activations_bus: i128,
    weights_bus: i128,
    weights_l2: i128,
    /// With those that a free buffer takes once more.
    weights_l2_filled: i128,
}

/// A variant of a loop nest: a second weight buffer that costs nothing (a quirk of SET's), weights passed round on the bus,
/// activations passed round.
#[derive(Clone, Copy)]
struct Variant {
    spare: bool,
    weights_round: bool,
    activations_round: bool,
}

/// The NVDLA-like core.
struct Polar<'a> {
    machine: &'a Machine,
    work: &'a Workload,
    array: [i64; 2],
    lanes: i64,
    vector: i64,
    buffers: [Buffer; 4],
    filter: i64,
    ofmap: i64,
    macs: i64,
    copies: i64,
    rounds: i64,
}

/// A split of the array and what follows from it.
struct Split {
    p: [i64; 5],
    weight_copies: i64,
    activation_copies: i64,
    tc: i64,
    tk: i64,
    oc: i64,
    ok: i64,
    tw: i64,
    tb: i64,
    cycles: i64,
    k1: i64,
    kn: i64,
    kb2: i64,
}

/// The tile in L1 and its variant's counts.
struct Loops {
    w1: i64,
    h1: i64,
    h3: i64,
    wn: i64,
    wb2: i64,
    tile: i64,
}

impl<'a> Polar<'a> {
    fn new(machine: &'a Machine, work: &'a Workload) -> Option<Polar<'a>> {
        let Array::Polar {
            array,
            lanes,
            vector,
            al1,
            wl1,
            ol1,
            ol2,
        } = machine.array
        else {
            return None;
        };
        let Workload {
            k,
            c,
            b,
            h,
            w,
            kernel: [r, s],
            groups,
            ..
        } = *work;
        let (mut copies, mut rounds) = (1, groups);
        if groups > 1 {
            copies = (vector / c).min(lanes / k);
            if copies > 1 {
                copies = copies.min(groups);
                rounds = ceil(groups, copies);
            }
        }
        Some(Polar {
            machine,
            work,
            array,
            lanes,
            vector,
            buffers: [al1, wl1, ol1, ol2],
            filter: r * s * c * k,
            ofmap: h * w * k * b,
            macs: c * k * r * s * h * w * b,
            copies,
            rounds,
        })
    }

    fn best(&self) -> Option<Tile> {
        let mut best = None;
        for (inner, outer) in SPLITS {
            self.split(inner, outer, &mut best);
        }
        best.map(|(tile, _)| tile)
    }

    fn split(&self, inner: Axis, outer: Axis, best: &mut Option<(Tile, f64)>) {
        let Workload {
            k,
            c,
            b,
            h,
            w,
            kernel: [r, s],
            stride: [sh, sw],
            ..
        } = *self.work;
        let mut p = [1; 5];
        p[inner as usize] *= self.array[0];
        p[outer as usize] *= self.array[1];
        let [pc, pk, ph, pw, pb] = p;
        let (tc, tk) = (ceil(c, self.vector * pc), ceil(k, self.lanes * pk));
        let (th, tw, tb) = (ceil(h, ph), ceil(w, pw), ceil(b, pb));
        let [al1, wl1, ol1, _] = self.buffers;
        let (activations, results, weights) = (
            al1.bytes / self.vector,
            ol1.bytes / self.lanes,
            wl1.bytes / self.vector,
        );
        let area = activations / tc;
        let most_k = weights / (r * s * tc);
        let most_w = area / r;
        if results == 0 || most_k == 0 || most_w < s {
            return;
        }
        let most_w = ((most_w - s) / sw + 1).min(results).min(tw);
        let k1 = tk.min(most_k);
        let kn = ceil(tk, k1);
        let kb = kn.min(ph * pw * pb);
        let split = Split {
            p,
            weight_copies: ph * pw * pb,
            activation_copies: pk,
            tc,
            tk,
            oc: ceil(c, pc),
            ok: ceil(k, pk),
            tw,
            tb,
            cycles: wrap(i128::from(tc * tk * th) * i128::from(tw * tb * r * s)) as i64,
            k1,
            kn,
            kb2: ceil(kn, kb),
        };
        let tile = r * s * tc * k1;
        let mut last = 0;
        for w1 in (1..=most_w).rev() {
            let width = (w1 - 1) * sw + s;
            let h1 = (results / w1)
                .min((area / width - r).div_euclid(sh) + 1)
                .min(th);
            if h1 == last {
                continue;
            }
            last = h1;
            let wn = ceil(split.tw, w1);
            let wb = wn.min(split.activation_copies);
            let loops = Loops {
                w1,
                h1,
                h3: ceil(th, h1),
                wn,
                wb2: ceil(wn, wb),
                tile: tile * h1 * w1,
            };
            let many = tb > 1 || loops.h3 > 1;
            let mut variant = |spare, weights_round, activations_round| {
                if let Some(tile) = self.variant(
                    &split,
                    &loops,
                    Variant {
                        spare,
                        weights_round,
                        activations_round,
                    },
                ) {
                    keep(best, tile);
                }
            };
            variant(false, false, false);
            if many && wn > 1 && kb > 1 {
                variant(false, true, false);
            }
            if wb > 1 {
                if kb > 1 && split.kb2 > 1 {
                    variant(false, true, true);
                }
                if many && loops.wb2 > 1 {
                    if kn > 1 {
                        variant(true, false, true);
                    }
                    if kb > 1 && split.kb2 > 1 {
                        variant(true, true, true);
                    }
                }
            }
        }
    }

    fn variant(&self, split: &Split, loops: &Loops, variant: Variant) -> Option<Tile> {
        let Workload {
            k,
            c,
            w,
            kernel: [_, s],
            stride: [_, sw],
            ..
        } = *self.work;
        let Variant {
            spare,
            weights_round,
            activations_round,
        } = variant;
        let [pc, pk, _, pw, _] = split.p;
        if !self.keeps_pace(split, loops, variant) {
            return None;
        }
        let wide = |v: i64| i128::from(v);
        let k3 = if weights_round { split.kb2 } else { split.kn };
        let w3 = if activations_round {
            loops.wb2
        } else {
            loops.wn
        };
        let (wbt, filter, ofmap, macs) = (
            loops.wn,
            wide(self.filter),
            wide(self.ofmap),
            wide(self.macs),
        );
        let all_tiles = wrap(wide(wbt) * wide(loops.h3) * wide(split.tb));
        let outer_tiles = wrap(wide(w3) * wide(loops.h3) * wide(split.tb));
        let [strip, l1_size, l2_size] = self.inputs(split, loops, w3, activations_round);
        let l2_fetches = if weights_round && activations_round && !spare {
            1
        } else {
            k3
        };
        let spared = if spare { outer_tiles } else { 1 };
        let weight_writes = if weights_round { all_tiles } else { spared };
        let l2_weight_reads = if activations_round {
            outer_tiles
        } else {
            spared
        };
        let adup = split.activation_copies;
        let (mut extra, mut shared, mut weight_shared) = (0, 0, 0);
        if activations_round {
            let left = wide(((adup - 1) * wbt) % adup);
            extra = strip * wrap(wide(s - sw)) * wide(pw) * wide(k3);
            let rest = wrap(wide(w) - wide(loops.w1 * (wbt - wbt % adup) + sw - s) * wide(pw));
            shared = (strip * rest * wide(k3) + extra) * left;
            extra *= wide(w3 * (adup - 1));
        }
        if weights_round {
            let rest = wrap(
                wide(k)
                    - wide(split.k1 * self.lanes * pk)
                        * wide(split.kn - split.kn % split.weight_copies),
            );
            let left = wide(((split.weight_copies - 1) * split.kn) % split.weight_copies);
            weight_shared = filter / wide(k) * rest * weight_writes * left;
        }
        let activations_l2 = l2_size * wide(l2_fetches);
        let weights_l2 = filter * l2_weight_reads;
        let weights_l2_filled = if spare { filter } else { weights_l2 };
        let mut al1_read = macs / wide(k) * wide(split.tk * pk);
        let al1_written = l1_size * wide(k3) * wide(adup) + extra;
        let (mut activations_bus, mut weights_bus) = (0, 0);
        if activations_round {
            activations_bus = al1_written - activations_l2;
            al1_read += activations_bus - shared;
        }
        let mut wl1_read = filter * all_tiles * wide(split.weight_copies);
        let wl1_written = filter * weight_writes * wide(split.weight_copies);
        if weights_round {
            weights_bus = wl1_written - weights_l2;
            wl1_read += weights_bus - weight_shared;
        }
        let ol1_written = macs / wide(c) * wide(split.tc * pc);
        let ol1_read = ol1_written + wide(pc) * ofmap;
        let l2_read = activations_l2 + weights_l2_filled;
        let accesses = Accesses {
            al1_read,
            al1_written,
            wl1_read,
            wl1_written,
            ol1_read,
            ol1_written,
            l2_read,
            activations_bus,
            weights_bus,
            weights_l2,
            weights_l2_filled,
        };
        Some(self.tile(split.cycles, &accesses, variant))
    }

    /// Elements of the input: in a strip of rows, and what comes to L1 and to L2 with it.
    fn inputs(&self, split: &Split, loops: &Loops, w3: i64, goes_round: bool) -> [i128; 3] {
        let Workload {
            c,
            b,
            h,
            w,
            kernel: [r, s],
            stride: [sh, sw],
            ..
        } = *self.work;
        let [_, _, ph, pw, _] = split.p;
        let wide = |v: i64| i128::from(v);
        let rows = |n: i64| wrap(wide(h + (r - sh) * (n * ph - 1)));
        let columns = |n: i64| wrap(wide(w + (s - sw) * (n * pw - 1)));
        let of_channels = |rows: i128| wrap(rows * wide(c) * wide(b));
        let strip = of_channels(rows(if loops.wn == 1 { 1 } else { loops.h3 }));
        let l1 = strip * columns(if goes_round { w3 } else { 1 });
        let l2 = of_channels(rows(if w3 == 1 { 1 } else { loops.h3 }) * columns(1));
        [strip, l1, l2]
    }

    /// Whether the bus passes what goes round in the time of a tile.
    fn keeps_pace(&self, split: &Split, loops: &Loops, variant: Variant) -> bool {
        let Workload {
            kernel: [r, s],
            stride: [sh, _],
            ..
        } = *self.work;
        let passes = |bytes: i128| (loops.tile as f64) * self.machine.bus.0 >= bytes as f64;
        let weights = r * s * split.oc * split.ok.min(split.k1 * self.lanes) * self.copies;
        let activations =
            wrap(i128::from((loops.h1 + r - sh) * loops.w1) * i128::from(split.oc * self.copies));
        (!variant.weights_round || passes(i128::from(weights)))
            && (!variant.activations_round || passes(activations))
    }

    /// Energy and time of what a variant accesses.
    fn tile(&self, cycles: i64, accesses: &Accesses, variant: Variant) -> Tile {
        let [al1, wl1, ol1, ol2] = self.buffers;
        let machine = self.machine;
        let buffers = accesses.al1_read as f64 * al1.read
            + accesses.al1_written as f64 * al1.write
            + accesses.wl1_read as f64 * wl1.read
            + accesses.wl1_written as f64 * wl1.write
            + accesses.ol1_read as f64 * ol1.read
            + accesses.ol1_written as f64 * ol1.write
            + self.ofmap as f64 * ol2.read
            + self.ofmap as f64 * ol2.write;
        let l2 = accesses.l2_read as f64 * machine.l2.read + self.ofmap as f64 * machine.l2.write;
        let mut round = 0.0;
        if variant.weights_round {
            round += accesses.weights_bus as f64 * machine.bus_energy;
        }
        if variant.activations_round {
            round += accesses.activations_bus as f64 * machine.bus_energy;
        }
        let mut energy = l2 + buffers + round + self.macs as f64 * machine.mac_energy;
        let copies = i128::from(self.copies);
        let mut time = cycles.max(
            machine
                .l2_bandwidth
                .cycles((accesses.l2_read * copies) as i64),
        );
        if variant.spare {
            time = time
                .max(ceil((accesses.weights_l2 * copies) as i64, 256))
                .max(ceil((accesses.weights_l2_filled * copies) as i64, 256));
        }
        if self.work.groups > 1 {
            energy *= self.work.groups as f64;
            time *= self.rounds;
        }
        Tile { energy, time }
    }
}

/// The row-stationary core.
struct RowStationary<'a> {
    machine: &'a Machine,
    work: &'a Workload,
    al1: Buffer,
    wl1: Buffer,
    pl1: Buffer,
    /// Columns that rows of the output occupy, and copies of output channels beside each other.
    columns: i64,
    abreast: i64,
    copies: i64,
    rest_k: i64,
    most_c: i64,
    most_k: i64,
    folded: i64,
}

impl<'a> RowStationary<'a> {
    fn new(machine: &'a Machine, work: &'a Workload) -> Option<RowStationary<'a>> {
        let Array::Eyeriss {
            array: [x, y],
            al1,
            wl1,
            pl1,
        } = machine.array
        else {
            return None;
        };
        let Workload {
            k,
            b,
            h,
            kernel: [r, s],
            ..
        } = *work;
        let most_c = al1.bytes / s;
        if r > y || most_c == 0 {
            return None;
        }
        let most_k = wl1.bytes / (s * most_c);
        if most_k == 0 {
            return None;
        }
        let fold = ceil(h, x);
        let abreast = k.min((x / h).max(1));
        Some(RowStationary {
            machine,
            work,
            al1,
            wl1,
            pl1,
            columns: ceil(h, fold),
            abreast,
            copies: y / r,
            rest_k: ceil(k, abreast),
            most_c,
            most_k,
            folded: b * fold,
        })
    }

    fn best(&self) -> Option<Tile> {
        let mut best = None;
        let (c, copies, abreast, all) = (self.work.c, self.copies, self.abreast, self.folded);
        let most_k = ceil(self.rest_k, self.most_k).min(copies);
        let most_c = ceil(c, self.most_c).min(copies);
        let mut cost = |ct, kt, bt, k_copies, b_copies| {
            keep(&mut best, self.cost(ct, kt, bt, k_copies, b_copies));
        };
        if most_c * most_k >= copies {
            let mut cr = copies / most_k;
            let mut kr = copies / cr;
            loop {
                cost(ceil(c, cr), ceil(self.rest_k, kr), all, abreast * kr, 1);
                if cr >= most_c {
                    break;
                }
                kr = copies / (cr + 1);
                cr = copies / kr;
            }
        } else if most_c * most_k * all >= copies {
            let (kt, left) = (ceil(self.rest_k, most_k), copies / most_k);
            let mut cr = left / all.min(left);
            let mut br = left / cr;
            loop {
                cost(ceil(c, cr), kt, ceil(all, br), abreast * most_k, br);
                if cr >= most_c {
                    break;
                }
                br = left / (cr + 1);
                cr = left / br;
            }
            let (ct, left) = (ceil(c, most_c), copies / most_c);
            let mut kr = left / all.min(left);
            let mut br = left / kr;
            loop {
                cost(ct, ceil(self.rest_k, kr), ceil(all, br), abreast * kr, br);
                if kr >= most_k {
                    break;
                }
                br = left / (kr + 1);
                kr = left / br;
            }
        } else {
            cost(
                ceil(c, most_c),
                ceil(self.rest_k, most_k),
                1,
                abreast * most_k,
                all,
            );
        }
        let groups = self.work.groups;
        best.map(|(tile, _)| Tile {
            energy: tile.energy * groups as f64,
            time: tile.time * groups,
        })
    }

    fn cost(&self, ct: i64, kt: i64, bt: i64, k_copies: i64, b_copies: i64) -> Tile {
        let Workload {
            k,
            c,
            b,
            h,
            w,
            kernel: [r, s],
            stride: [_, sw],
            ..
        } = *self.work;
        let wide = |v: i64| i128::from(v);
        let filter = wide(r * s * c * k);
        let (ofmap, macs) = (wide(h * w * k * b), wide(c * k * r * s) * wide(h * w * b));
        let c2 = ceil(ct, ct.min(self.most_c));
        let k1 = kt.min(self.most_k);
        let k2 = ceil(kt, k1);
        let cycles = wrap(wide(w * s * kt) * wide(ct * bt)) as i64;
        let partial = ofmap * wide(c2);
        let activations = wrap(wide(k2 * c) * wide(b));
        let read = filter + activations + partial;
        let sums = partial + partial - ofmap;
        let mut row_copies = k2 * k_copies;
        if kt % k1 == 1 {
            row_copies -= k_copies - k % k_copies;
        }
        let al1_written = wide(r * c * h) * wide(b * ((w - 1) * sw + s)) * wrap(wide(row_copies));
        let wl1_written = filter * wide(b_copies * self.columns);
        let (al1, wl1, pl1) = (self.al1, self.wl1, self.pl1);
        let machine = self.machine;
        let between = (macs - ofmap) as f64;
        let buffers = al1_written as f64 * al1.write
            + wl1_written as f64 * wl1.write
            + between * pl1.write
            + macs as f64 * al1.read
            + macs as f64 * wl1.read
            + between * pl1.read;
        let l2 = partial as f64 * machine.l2.write + read as f64 * machine.l2.read;
        let bus = activations as f64 * machine.bus_energy
            + filter as f64 * machine.bus_energy
            + sums as f64 * machine.bus_energy;
        let over = |bytes: i128| machine.bus.cycles(bytes as i64);
        Tile {
            energy: l2 + buffers + bus + macs as f64 * machine.mac_energy,
            time: over(activations)
                .max(over(sums))
                .max(over(filter))
                .max(cycles),
        }
    }
}
