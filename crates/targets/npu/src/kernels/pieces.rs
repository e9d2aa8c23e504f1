//! Bytes in the order in which a task reads or writes them, its stream, and where they stand.

use chipless_model::access::Runs;
use chipless_model::{BufferId, Pattern};
use std::ops::Range;

/// The first of some bytes of a buffer that have a property, together with those after it that have it too.
type First<'f> = &'f dyn Fn(Range<u64>) -> Option<Range<u64>>;

/// Calls with the bytes of a pattern's stream that `first` finds, in order.
pub(super) fn found(pattern: &Pattern, first: First<'_>, visit: &mut dyn FnMut(Range<u64>)) {
    let mut streamed = 0;
    for start in pattern.runs() {
        let (mut at, end) = (start, start + pattern.run);
        while let Some(found) = first(at..end) {
            at = found.end;
            visit(streamed + found.start - start..streamed + found.end - start);
        }
        streamed += pattern.run;
    }
}

/// Calls with the other bytes of the stream, in order.
pub(super) fn missed(pattern: &Pattern, first: First<'_>, visit: &mut dyn FnMut(Range<u64>)) {
    let mut at = 0;
    let mut until = |end: u64, next: u64| {
        if at < end {
            visit(at..end);
        }
        at = next;
    };
    found(pattern, first, &mut |found| until(found.start, found.end));
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
            self.flush(visit);
            self.next = bytes;
        }
    }

    /// Calls with what has been added last.
    pub(super) fn flush(&mut self, visit: &mut dyn FnMut(BufferId, Pattern)) {
        for destination in &mut self.destinations {
            destination.pieces(self.next.clone(), visit);
        }
    }
}

impl Destination<'_> {
    /// Calls with the pieces that hold these bytes of the stream, as far as the pattern has them.
    fn pieces(&mut self, bytes: Range<u64>, visit: &mut dyn FnMut(BufferId, Pattern)) {
        let Range { start: mut at, end } = bytes;
        while at < end
            && let Some((first, start)) = self.reached
        {
            let next = first + self.run;
            if at < next {
                let size = end.min(next) - at;
                visit(self.buffer, Pattern::contiguous(start + at - first, size));
                at += size;
            }
            if at >= next {
                self.reached = self.rest.next().map(|start| (next, start));
            }
        }
    }
}
