//! Trees as the search holds them: small, and without names.

use crate::machine::Machine;
use crate::tree::{Cut, Partition};

/// A range of the order of cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Region {
    pub(crate) first: u16,
    pub(crate) count: u16,
}

/// How a layer is cut over cores of its region, in one number: the number of cores, the order in which they are taken, which of
/// the ordered factorisations of that number, and the order of the dimensions. Or the position in a table of core lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Site(u64);

const LISTED: u64 = 1 << 63;

/// Orders of four dimensions, the outermost first.
pub(crate) const ORDERS: [[usize; 4]; 24] = orders();

const fn orders() -> [[usize; 4]; 24] {
    let (mut all, mut at, mut a) = ([[0; 4]; 24], 0, 0);
    while a < 4 {
        let mut b = 0;
        while b < 4 {
            let mut c = 0;
            while c < 4 {
                if a != b && b != c && a != c {
                    all[at] = [a, b, c, 6 - a - b - c];
                    at += 1;
                }
                c += 1;
            }
            b += 1;
        }
        a += 1;
    }
    all
}

/// In which order the cores of a region are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// As the machine numbers them, in bands.
    Bands = 0,
    /// Row by row.
    Rows = 1,
}

impl Site {
    pub(crate) fn new(
        region: Region,
        cores: u16,
        line: Line,
        factors: usize,
        order: usize,
    ) -> Site {
        let [first, cores] = [region.first, cores].map(u64::from);
        Site(
            first
                | cores << 13
                | (line as u64) << 26
                | (order as u64) << 28
                | (factors as u64) << 36,
        )
    }

    /// A list of cores that stands in a table.
    pub(crate) fn listed(position: usize) -> Site {
        Site(LISTED | position as u64)
    }

    /// The position in the table, if it is a listed one.
    pub(crate) fn position(self) -> Option<usize> {
        (self.0 & LISTED != 0).then_some((self.0 & !LISTED) as usize)
    }

    /// How many cores it takes.
    pub(crate) fn cores(self) -> u16 {
        (self.0 >> 13 & 0x1FFF) as u16
    }

    /// The same cut at another place.
    pub(crate) fn moved(self, region: Region) -> Site {
        Site(self.0 & !0x1FFF | u64::from(region.first))
    }

    /// As a number, for tables.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// Parts and the core of each.
    pub(crate) fn resolve(
        self,
        machine: &Machine,
        factors: &super::Factors,
    ) -> (Partition, Vec<u16>) {
        let first = (self.0 & 0x1FFF) as usize;
        let cores = usize::from(self.cores());
        let part = factors.of(self.cores())[(self.0 >> 36 & 0x3FF_FFFF) as usize];
        let mut list: Vec<u16> = (first..first + cores)
            .map(|place| machine.core_at(place))
            .collect();
        if self.0 >> 26 & 3 == Line::Rows as u64 {
            list.sort_unstable();
        }
        let places = placement(part, ORDERS[(self.0 >> 28 & 0xFF) as usize]);
        (part, places.into_iter().map(|place| list[place]).collect())
    }
}

/// Place of each part among the cores when the dimensions are counted in this order, the outermost first.
pub(crate) fn placement(part: Partition, order: [usize; 4]) -> Vec<usize> {
    let mut step = [0; 4];
    let mut next = 1;
    for d in order.into_iter().rev() {
        step[d] = next;
        next *= usize::from(part[d]);
    }
    let [pk, pb, ph, pw] = part.map(usize::from);
    let mut places = Vec::with_capacity(next);
    for k in 0..pk {
        for b in 0..pb {
            for h in 0..ph {
                for w in 0..pw {
                    places.push(k * step[0] + b * step[1] + h * step[2] + w * step[3]);
                }
            }
        }
    }
    places
}

/// A node of a tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Leaf(Leaf),
    Cut(Branch),
}

/// A layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leaf {
    pub(crate) layer: u16,
    pub(crate) batch: u32,
    pub(crate) region: Region,
    pub(crate) site: Site,
}

/// A cut.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Branch {
    pub(crate) cut: Cut,
    pub(crate) batch: u32,
    pub(crate) groups: u32,
    pub(crate) region: Region,
    pub(crate) children: Vec<Node>,
}

impl Node {
    pub(crate) fn region(&self) -> Region {
        match self {
            Node::Leaf(leaf) => leaf.region,
            Node::Cut(branch) => branch.region,
        }
    }

    /// Calls a function with each layer, in order.
    pub(crate) fn for_each(&self, f: &mut impl FnMut(&Leaf)) {
        match self {
            Node::Leaf(leaf) => f(leaf),
            Node::Cut(branch) => branch.children.iter().for_each(|child| child.for_each(f)),
        }
    }

    /// Its layers, in order.
    pub(crate) fn layers(&self) -> Vec<u16> {
        let mut all = Vec::new();
        self.for_each(&mut |leaf| all.push(leaf.layer));
        all
    }
}
