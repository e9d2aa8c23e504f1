//! Bytes in the order in which a task reads or writes them, its stream, and where they stand.

use chipless_model::access::Runs;
use chipless_model::{BufferId, Pattern, Series, SeriesBuilder};
use std::ops::Range;

/// Calls with the runs of some bytes of a buffer that have a property, in order.
pub(super) type Each<'f> = &'f dyn Fn(Range<u64>, &mut dyn FnMut(Series));

/// Calls with the bytes of a pattern's stream that `each` finds, in order.
pub(super) fn found(pattern: &Pattern, each: Each<'_>, visit: &mut dyn FnMut(Series)) {
    let mut streamed = 0;
    for start in pattern.runs() {
        each(start..start + pattern.run, &mut |found| {
            visit(Series {
                start: streamed + found.start - start,
                ..found
            });
        });
        streamed += pattern.run;
    }
}

/// Calls with the other bytes of the stream, in order.
pub(super) fn missed(pattern: &Pattern, each: Each<'_>, visit: &mut dyn FnMut(Range<u64>)) {
    let mut at = 0;
    let mut until = |end: u64, next: u64| {
        if at < end {
            visit(at..end);
        }
        at = next;
    };
    found(pattern, each, &mut |found| {
        found.runs().for_each(|run| until(run.start, run.end));
    });
    let end = pattern.bytes().unwrap_or(0);
    until(end, end);
}

/// Bytes of a stream, in order, and where its destinations have them.
pub(super) struct Pieces<'d> {
    destinations: Vec<Destination<'d>>,
    /// What comes next: pieces of the stream that follow each other are one.
    next: Range<u64>,
}

/// A pattern, walked from its start on.
struct Destination<'d> {
    buffer: BufferId,
    /// Bytes of each run.
    run: u64,
    rest: Runs<'d>,
    /// Where in the stream the run starts that was reached, and where in the buffer.
    reached: Option<(u64, u64)>,
    /// Pieces that have been found and not been told yet.
    series: SeriesBuilder,
}

impl<'d> Pieces<'d> {
    pub(super) fn new(destinations: &'d [(BufferId, Pattern)]) -> Pieces<'d> {
        let destination = |(buffer, pattern): &'d (BufferId, Pattern)| {
            let mut rest = pattern.runs();
            Destination {
                buffer: *buffer,
                run: pattern.run,
                reached: rest.next().map(|start| (0, start)),
                rest,
                series: SeriesBuilder::default(),
            }
        };
        Pieces {
            destinations: destinations.iter().map(destination).collect(),
            next: 0..0,
        }
    }

    /// Adds bytes of the stream; none of them lies before those that were added.
    pub(super) fn add(&mut self, bytes: Range<u64>, visit: &mut dyn FnMut(BufferId, Pattern)) {
        if bytes.start <= self.next.end {
            self.next.end = self.next.end.max(bytes.end);
        } else {
            self.find(visit);
            self.next = bytes;
        }
    }

    /// The same of several pieces.
    pub(super) fn add_all(&mut self, bytes: Series, visit: &mut dyn FnMut(BufferId, Pattern)) {
        if bytes.count == 1 || bytes.start <= self.next.end {
            return bytes.runs().for_each(|run| self.add(run, visit));
        }
        self.find(visit);
        for destination in &mut self.destinations {
            destination.series(bytes, visit);
        }
        self.next = bytes.end()..bytes.end();
    }

    /// Looks for where the destinations have what comes next.
    fn find(&mut self, visit: &mut dyn FnMut(BufferId, Pattern)) {
        for destination in &mut self.destinations {
            destination.pieces(self.next.clone(), visit);
        }
    }

    /// Calls with all that has been added and not been told.
    pub(super) fn flush(&mut self, visit: &mut dyn FnMut(BufferId, Pattern)) {
        self.find(visit);
        for destination in &mut self.destinations {
            if let Some(pieces) = destination.series.take() {
                visit(destination.buffer, pieces.into());
            }
        }
    }
}

impl Destination<'_> {
    /// Finds the pieces that hold these bytes of the stream, as far as the pattern has them, and calls with those that they do not continue.
    fn pieces(&mut self, bytes: Range<u64>, visit: &mut dyn FnMut(BufferId, Pattern)) {
        let Range { start: mut at, end } = bytes;
        while at < end
            && let Some((first, start)) = self.reached
        {
            let next = first + self.run;
            if at < next {
                let size = end.min(next) - at;
                let there = start + at - first;
                let tell = |pieces: Series| visit(self.buffer, pieces.into());
                self.series.add(there..there + size, tell);
                at += size;
            }
            if at >= next {
                self.reached = self.rest.next().map(|start| (next, start));
            }
        }
    }

    /// The same of several pieces: those of one run of the pattern at once.
    fn series(&mut self, mut bytes: Series, visit: &mut dyn FnMut(BufferId, Pattern)) {
        while bytes.count > 0
            && let Some((first, start)) = self.reached
        {
            let room = (first + self.run).checked_sub(bytes.start + bytes.size);
            let whole = room.map_or(0, |room| match room.checked_div(bytes.stride) {
                Some(steps) => bytes.count.min(steps + 1),
                None => 1,
            });
            let here;
            (here, bytes) = bytes.split_at(whole.max(1));
            if whole > 0 {
                let there = Series {
                    start: start + here.start - first,
                    ..here
                };
                let tell = |pieces: Series| visit(self.buffer, pieces.into());
                self.series.add_all(there, tell);
            } else {
                self.pieces(here.start..here.end(), visit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::Loop;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Pieces at one distance are told as one pattern: of the same bytes.
        #[test]
        fn pieces_are_told_wherever_the_destinations_have_them(run in 1u64..30, gap in 0u64..5, count in 1u64..40, steps in prop::collection::vec((0u64..6, 1u64..9, 1u64..6), 0..30)) {
            let stride = (run + gap) as i64;
            let to = Pattern::new(1000, run, [Loop { count, stride }]);
            let destinations = [(BufferId::from_raw(0), to)];
            let (mut pieces, mut told, mut want) = (Pieces::new(&destinations), BTreeSet::new(), BTreeSet::new());
            let mut visit = |_, pattern: Pattern| {
                told.extend(pattern.runs().flat_map(|start| start..start + pattern.run));
            };
            let mut at = 0;
            for (skip, size, several) in steps {
                let bytes = Series { start: at + skip, size, stride: size + skip + 1, count: several };
                at = bytes.end();
                let each = bytes.runs().flatten();
                want.extend(each.filter_map(|byte| destinations[0].1.offset_of(byte)));
                pieces.add_all(bytes, &mut visit);
            }
            pieces.flush(&mut visit);
            prop_assert_eq!(told, want);
        }
    }
}
