//! Which bytes that an instruction or a transfer writes depend on doubtful ones that it reads.

use super::Elements;
use chipless_model::{BufferId, Doubt, Pattern};
use std::ops::Range;

/// What of a destination depends on an element of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The element at the same position.
    Each,
    /// The one at the position of its group of so many.
    Group(u64),
    /// All of its partition, of so many partitions.
    Partition(u64),
    /// Of a source with so many elements in each of its partitions, those at the same place in all partitions of the destination.
    Place(u64),
    /// The element that changes places with it: rows of so many elements become columns.
    Transposed(u64),
    /// Elements of blocks of so many partitions and elements, transposed in place: rows have so many elements.
    Block { side: u64, row: u64 },
    /// Everything.
    All,
}

/// Visits what of `to` depends on doubtful bytes of `from`.
pub(super) fn follow(
    from: &Elements,
    to: &Elements,
    relation: Relation,
    doubtful: &dyn Doubt,
    visit: &mut dyn FnMut(BufferId, Pattern),
) {
    let elements = doubtful_elements(from, doubtful);
    let size = size(to);
    let dependent = |elements: Range<u64>| {
        let bytes = elements.start * size..elements.end * size;
        to.pattern.pieces(bytes, |at, size| {
            visit(to.buffer, Pattern::contiguous(at, size));
        });
    };
    relation.map((from.count(), to.count()), &elements, dependent);
}

/// Positions of elements of which any byte is doubtful, in order.
fn doubtful_elements(from: &Elements, doubtful: &dyn Doubt) -> Vec<Range<u64>> {
    let (mut found, size) = (Vec::new(), size(from));
    let mut streamed = 0;
    for start in from.pattern.runs() {
        let (mut at, end) = (start, start + from.pattern.run);
        while let Some(bytes) = doubtful.first(from.buffer, at..end) {
            at = bytes.end;
            let first = (streamed + bytes.start - start) / size;
            let last = (streamed + bytes.end - 1 - start) / size;
            add(&mut found, first..last + 1);
        }
        streamed += from.pattern.run;
    }
    found
}

fn size(elements: &Elements) -> u64 {
    (elements.element.bits() / 8).max(1)
}

/// Adds a range that does not begin before the last one.
fn add(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut().filter(|last| range.start <= last.end) {
        Some(last) => last.end = last.end.max(range.end),
        None => ranges.push(range),
    }
}

impl Relation {
    /// Visits the elements of a destination that depend on these of a source; how many elements both have.
    fn map(
        self,
        (from, to): (u64, u64),
        elements: &[Range<u64>],
        mut dependent: impl FnMut(Range<u64>),
    ) {
        let everything = Range {
            start: 0,
            end: from,
        };
        let relation = match (self, elements) {
            (_, []) => return,
            // The common case of data that is missing.
            (_, [all]) if *all == everything => Relation::All,
            (Relation::Partition(n), _) if n == 0 || from % n != 0 || to % n != 0 => Relation::All,
            _ => self,
        };
        let mut ranges = Vec::new();
        let mut each = |place: &dyn Fn(u64) -> u64| {
            for at in elements.iter().cloned().flatten() {
                let place = place(at);
                dependent(place..place + 1);
            }
        };
        match relation {
            Relation::Transposed(row) => {
                return each(&|at| at % row.max(1) * (from / row.max(1)) + at / row.max(1));
            }
            Relation::Block { side, row } => {
                return each(&|at| {
                    let (partition, element) = (at / row, at % row);
                    let (r, c) = (partition % side, element % side);
                    (partition - r + c) * row + element - c + r
                });
            }
            Relation::Each => ranges.extend_from_slice(elements),
            Relation::Group(group) => {
                let group = group.max(1);
                for range in elements {
                    add(
                        &mut ranges,
                        range.start / group..(range.end - 1) / group + 1,
                    );
                }
            }
            Relation::Partition(partitions) => {
                let (row, written) = (from / partitions, to / partitions);
                for range in elements {
                    let (first, last) = (range.start / row, (range.end - 1) / row);
                    add(&mut ranges, first * written..(last + 1) * written);
                }
            }
            Relation::Place(row) => {
                let mut places = vec![false; row as usize];
                for at in elements.iter().cloned().flatten() {
                    places[(at % row) as usize] = true;
                }
                for partition in 0..to / row.max(1) {
                    for place in (0..row).filter(|place| places[*place as usize]) {
                        let place = partition * row + place;
                        add(&mut ranges, place..place + 1);
                    }
                }
            }
            Relation::All => add(&mut ranges, 0..to),
        }
        ranges.into_iter().for_each(dependent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(relation: Relation, counts: (u64, u64), elements: Range<u64>) -> Vec<u64> {
        let mut found = Vec::new();
        relation.map(counts, &[elements], |range| found.extend(range));
        found
    }

    #[test]
    fn elements_by_relation() {
        assert_eq!(mapped(Relation::Each, (8, 8), 3..5), [3, 4]);
        assert_eq!(mapped(Relation::Group(4), (8, 2), 3..5), [0, 1]);
        // Two partitions of four elements, each of which becomes one; and one of each that is used for four.
        assert_eq!(mapped(Relation::Partition(2), (8, 2), 5..6), [1]);
        assert_eq!(mapped(Relation::Partition(2), (2, 8), 1..2), [4, 5, 6, 7]);
        // A column of moving data is in all partitions of sums.
        assert_eq!(mapped(Relation::Place(4), (8, 12), 6..7), [2, 6, 10]);
        // Two rows of three.
        assert_eq!(mapped(Relation::Transposed(3), (6, 6), 1..2), [2]);
        assert_eq!(mapped(Relation::Transposed(3), (6, 6), 5..6), [5]);
        assert_eq!(
            mapped(Relation::Block { side: 2, row: 4 }, (8, 8), 1..2),
            [4]
        );
        assert_eq!(
            mapped(Relation::Block { side: 2, row: 4 }, (8, 8), 6..7),
            [3]
        );
        assert_eq!(mapped(Relation::All, (8, 3), 1..2), [0, 1, 2]);
    }
}
