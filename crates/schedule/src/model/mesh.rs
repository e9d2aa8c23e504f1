//! Transfers over the mesh: byte-hops, DRAM bytes, bytes on each link.

use crate::machine::Machine;
use smallvec::SmallVec;

/// What moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Bytes times links.
    pub(crate) hops: i64,
    /// Bytes from or to DRAM.
    pub(crate) dram: i64,
    /// Bytes on each link: right, up, left, down out of each core; empty where nobody asks.
    pub(crate) links: Vec<i64>,
}

/// Cores that get the same bytes, by columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fan {
    /// First and last column.
    span: [u16; 2],
    /// Column, first and last row.
    columns: SmallVec<[[u16; 3]; 4]>,
}

impl Fan {
    /// The cores (row · columns + column).
    pub(crate) fn new(mesh: [usize; 2], cores: impl Iterator<Item = u16>) -> Fan {
        let width = mesh[0] as u16;
        let mut places: SmallVec<[(u16, u16); 16]> =
            cores.map(|core| (core % width, core / width)).collect();
        places.sort_unstable();
        let mut columns: SmallVec<[[u16; 3]; 4]> = SmallVec::new();
        for (x, y) in &places {
            match columns.last_mut() {
                Some([column, _, last]) if column == x => *last = *y,
                _ => columns.push([*x, *y, *y]),
            }
        }
        let span = [
            places.first().map_or(0, |p| p.0),
            places.last().map_or(0, |p| p.0),
        ];
        Fan { span, columns }
    }

    /// Links that a transfer from this place uses.
    pub(crate) fn length(&self, [x, y]: [u16; 2]) -> i64 {
        let across = x.max(self.span[1]) - x.min(self.span[0]);
        let along: u16 = self
            .columns
            .iter()
            .map(|[_, low, high]| y.max(*high) - y.min(*low))
            .sum();
        i64::from(across) + i64::from(along)
    }
}

impl Traffic {
    /// Nothing, with links of a mesh.
    pub(crate) fn new(machine: &Machine) -> Traffic {
        Traffic {
            hops: 0,
            dram: 0,
            links: vec![0; 4 * machine.cores()],
        }
    }

    /// From one place to several, in XY order, every link once.
    pub(crate) fn send(&mut self, mesh: [usize; 2], [x, y]: [u16; 2], to: &Fan, bytes: i64) {
        self.hops += to.length([x, y]) * bytes;
        if self.links.is_empty() {
            return;
        }
        let (columns, cores) = (mesh[0], mesh[0] * mesh[1]);
        let [first, last] = to.span.map(usize::from);
        let (x, y) = (usize::from(x), usize::from(y));
        for at in (first + 1)..=x {
            self.links[2 * cores + y * columns + at] += bytes;
        }
        for at in x..last {
            self.links[y * columns + at] += bytes;
        }
        for [column, low, high] in &to.columns {
            let (column, low, high) = (usize::from(*column), usize::from(*low), usize::from(*high));
            for at in (low + 1)..=y {
                self.links[cores + at * columns + column] += bytes;
            }
            for at in y..high {
                self.links[3 * cores + at * columns + column] += bytes;
            }
        }
    }

    /// From DRAM, split over its ports.
    pub(crate) fn load(&mut self, machine: &Machine, to: &Fan, bytes: i64) {
        for (port, part) in shares(machine, bytes) {
            self.send(machine.mesh, port, to, part);
        }
        self.dram += bytes;
    }

    /// To DRAM, split over its ports.
    pub(crate) fn store(&mut self, machine: &Machine, from: [u16; 2], bytes: i64) {
        for (port, part) in shares(machine, bytes) {
            let core = port[1] * machine.mesh[0] as u16 + port[0];
            self.send(
                machine.mesh,
                from,
                &Fan::new(machine.mesh, std::iter::once(core)),
                part,
            );
        }
        self.dram += bytes;
    }

    /// A share of it, rounded down everywhere.
    pub(crate) fn divide(&mut self, by: i64) {
        if by != 1 {
            self.hops /= by;
            self.dram /= by;
            self.links.iter_mut().for_each(|link| *link /= by);
        }
    }

    /// Both together.
    pub(crate) fn add(&mut self, other: &Traffic) {
        self.hops += other.hops;
        self.dram += other.dram;
        for (link, more) in self.links.iter_mut().zip(&other.links) {
            *link += more;
        }
    }

    /// Several times.
    pub(crate) fn multiply(&mut self, by: i64) {
        if by != 1 {
            self.hops *= by;
            self.dram *= by;
            self.links.iter_mut().for_each(|link| *link *= by);
        }
    }

    /// Bytes on the busiest link.
    pub(crate) fn busiest(&self) -> i64 {
        self.links.iter().copied().max().unwrap_or(0)
    }

    /// Cycles that DRAM and the busiest link take.
    pub(crate) fn time(&self, machine: &Machine) -> i64 {
        machine
            .dram
            .cycles(self.dram)
            .max(machine.link.cycles(self.busiest()))
    }
}

/// The part of each port that gets one.
fn shares(machine: &Machine, bytes: i64) -> impl Iterator<Item = ([u16; 2], i64)> {
    let count = machine.ports.len() as i64;
    machine.ports.iter().zip(0..).filter_map(move |(port, i)| {
        let part = bytes * (i + 1) / count - bytes * i / count;
        (part > 0).then_some((port.map(|v| v as u16), part))
    })
}
