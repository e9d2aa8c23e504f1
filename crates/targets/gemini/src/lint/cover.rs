//! Boxes that fill a box.

use crate::schedule::Bounds;

/// Boxes that an exact answer may take apart; beyond it nothing is claimed.
const WORK: usize = 20_000;

/// A part of `whole` that no part fills; `None` if there is none, or if it would take too long to tell.
pub(crate) fn hole(whole: &Bounds, parts: &[Bounds]) -> Option<Bounds> {
    if parts.iter().any(|part| part.contains(whole)) || whole.is_empty() {
        return None;
    }
    let mut left = vec![*whole];
    let mut work = 0;
    for part in parts {
        let mut next = Vec::with_capacity(left.len());
        for piece in left {
            subtract(&piece, part, &mut next);
        }
        work += next.len();
        if work > WORK {
            return None;
        }
        left = next;
    }
    left.first().copied()
}

/// What is left of `from` without `part`.
pub(super) fn subtract(from: &Bounds, part: &Bounds, rest: &mut Vec<Bounds>) {
    let Some(common) = from.intersection(part) else {
        rest.push(*from);
        return;
    };
    let mut inner = *from;
    for d in 0..4 {
        if inner.lower[d] < common.lower[d] {
            let mut below = inner;
            below.upper[d] = common.lower[d] - 1;
            rest.push(below);
            inner.lower[d] = common.lower[d];
        }
        if common.upper[d] < inner.upper[d] {
            let mut above = inner;
            above.lower[d] = common.upper[d] + 1;
            rest.push(above);
            inner.upper[d] = common.upper[d];
        }
    }
}

/// Two of the boxes that overlap, by index; `None` if there are none, or if it would take too long to tell.
pub(super) fn overlap(boxes: &[Bounds]) -> Option<(usize, usize)> {
    let mut order: Vec<usize> = (0..boxes.len()).collect();
    // The dimension along which most of them differ makes the sweep short.
    let distinct = |d: usize| {
        let mut starts: Vec<u32> = boxes.iter().map(|b| b.lower[d]).collect();
        starts.sort_unstable();
        starts.dedup();
        starts.len()
    };
    let d = (0..4).max_by_key(|&d| distinct(d)).unwrap_or(0);
    order.sort_by_key(|&i| boxes[i].lower[d]);
    let mut work = 0;
    for (n, &i) in order.iter().enumerate() {
        for &j in &order[n + 1..] {
            if boxes[j].lower[d] > boxes[i].upper[d] {
                break;
            }
            if boxes[i].intersection(&boxes[j]).is_some() {
                return Some((i.min(j), i.max(j)));
            }
            work += 1;
            if work > WORK * 50 {
                return None;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_box() -> impl Strategy<Value = Bounds> {
        proptest::array::uniform4((0u32..4, 0u32..4)).prop_map(|c| Bounds {
            lower: c.map(|(a, b)| a.min(b)),
            upper: c.map(|(a, b)| a.max(b)),
        })
    }

    fn cells(b: &Bounds) -> impl Iterator<Item = [u32; 4]> + use<> {
        let b = *b;
        (0..256u32)
            .map(|i| [i & 3, i >> 2 & 3, i >> 4 & 3, i >> 6])
            .filter(move |c| (0..4).all(|d| b.lower[d] <= c[d] && c[d] <= b.upper[d]))
    }

    proptest! {
        #[test]
        fn holes_are_what_no_part_fills(whole in any_box(), parts in proptest::collection::vec(any_box(), 0..6)) {
            let free: Vec<_> = cells(&whole).filter(|c| !parts.iter().any(|p| cells(p).any(|x| x == *c))).collect();
            match hole(&whole, &parts) {
                None => prop_assert!(free.is_empty()),
                Some(found) => prop_assert!(cells(&found).all(|c| free.contains(&c))),
            }
        }

        #[test]
        fn overlaps_are_found(boxes in proptest::collection::vec(any_box(), 0..8)) {
            let there = (0..boxes.len()).any(|i| (0..i).any(|j| cells(&boxes[i]).any(|c| cells(&boxes[j]).any(|x| x == c))));
            prop_assert_eq!(overlap(&boxes).is_some(), there);
        }
    }
}
