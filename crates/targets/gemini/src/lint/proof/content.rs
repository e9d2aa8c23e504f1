//! What lies where: boxes of elements instead of bytes.

use crate::lower::region::moved;
use crate::names::Name;
use crate::schedule::Bounds;
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};

/// Distance from the place of an element in its holder to its place in the tensor that it belongs to.
pub(super) type Shift = [i64; 4];

/// What a box holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Elements of a layer's result, an input of the network or a constant.
    Elements(Name, Shift),
    /// Nothing that the network knows; the number of the reason.
    Wrong(u32),
}

/// A box and what it holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) bounds: Bounds,
    pub(super) held: Held,
}

/// Parts of a piece on its way.
pub(super) type Parts = SmallVec<[Part; 1]>;

/// Why a box does not hold what is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Problem {
    /// Nothing was brought here.
    Missing(Bounds),
    /// Other elements.
    Other(Part),
    /// What was brought was wrong already.
    Wrong(u32),
}

/// The distance from one corner to another.
pub(super) fn shift(from: [u32; 4], to: [u32; 4]) -> Shift {
    std::array::from_fn(|d| i64::from(to[d]) - i64::from(from[d]))
}

impl Part {
    /// The part of it inside a box, moved.
    pub(super) fn cut(&self, within: &Bounds, by: Shift) -> Option<Part> {
        let bounds = moved(&self.bounds.intersection(within)?, by)?;
        let held = match self.held {
            Held::Elements(of, from) => {
                Held::Elements(of, std::array::from_fn(|d| from[d] - by[d]))
            }
            wrong @ Held::Wrong(_) => wrong,
        };
        Some(Part { bounds, held })
    }
}

/// Whether a box holds what is wanted, or at least something: later parts lie over earlier ones.
pub(super) fn holds(parts: &[Part], wanted: &Bounds, of: Option<(Name, Shift)>) -> Option<Problem> {
    let mut left: SmallVec<[Bounds; 4]> = SmallVec::from_elem(*wanted, 1);
    for part in parts.iter().rev() {
        if left.is_empty() {
            break;
        }
        if left
            .iter()
            .all(|rest| rest.intersection(&part.bounds).is_none())
        {
            continue;
        }
        match (part.held, of) {
            (Held::Wrong(reason), _) => return Some(Problem::Wrong(reason)),
            (Held::Elements(name, shift), Some(of)) if (name, shift) != of => {
                return Some(Problem::Other(*part));
            }
            (Held::Elements(..), _) => {}
        }
        let mut next = Vec::with_capacity(left.len());
        for rest in &left {
            super::super::cover::subtract(rest, &part.bounds, &mut next);
        }
        left = next.into();
    }
    left.first().map(|hole| Problem::Missing(*hole))
}

/// Images of a store that are kept one by one; what has more is looked at by every load.
const MOST_IMAGES: u32 = 4096;

/// Results that lie in DRAM, by layer and image.
#[derive(Default)]
pub(super) struct Memory {
    maps: HashMap<Name, Map>,
}

#[derive(Default)]
struct Map {
    by_image: BTreeMap<u32, Vec<Stored>>,
    wide: Vec<Stored>,
    count: u32,
}

/// What a store put into DRAM.
#[derive(Clone, Copy)]
pub(super) struct Stored {
    /// Its node.
    pub(super) node: u32,
    pub(super) part: Part,
    /// Its place among the stores of its layer.
    number: u32,
}

impl Memory {
    /// A store of a part of a layer.
    pub(super) fn put(&mut self, of: Name, part: Part, node: u32) {
        let map = self.maps.entry(of).or_default();
        let stored = Stored {
            node,
            part,
            number: map.count,
        };
        map.count += 1;
        let (first, last) = (part.bounds.lower[0], part.bounds.upper[0]);
        if last - first >= MOST_IMAGES {
            map.wide.push(stored);
            return;
        }
        for image in first..=last {
            let mut one = stored;
            (one.part.bounds.lower[0], one.part.bounds.upper[0]) = (image, image);
            map.by_image.entry(image).or_default().push(one);
        }
    }

    /// Whether a store has put something here.
    pub(super) fn has(&self, of: Name) -> bool {
        self.maps.contains_key(&of)
    }

    /// What lies in a box, in the order in which it was put there.
    pub(super) fn get(&self, of: Name, within: &Bounds) -> Vec<Stored> {
        let Some(map) = self.maps.get(&of).filter(|_| !within.is_empty()) else {
            return Vec::new();
        };
        let by_image = map.by_image.range(within.lower[0]..=within.upper[0]);
        let mut found: Vec<Stored> = by_image
            .flat_map(|(_, stored)| stored)
            .chain(&map.wide)
            .filter(|stored| stored.part.bounds.intersection(within).is_some())
            .copied()
            .collect();
        found.sort_by_key(|stored| stored.number);
        found
    }
}
