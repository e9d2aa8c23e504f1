//! Which effects touch which bytes: the accesses of all tasks, by buffer and in the order of the run.

use chipless_model::{
    Access, BufferId, Certainty, Direction, ElementType, IndexVec, Pattern, Program, TaskId,
};
use std::ops::Range;

/// Runs of a pattern that are looked at one by one. Of one with more, everything between its first and last byte counts.
const RUNS: u64 = 1 << 16;

/// An access of a task, as far as it takes to find it.
#[derive(Clone, Copy, Debug)]
struct Touch {
    effect: u32,
    low: u64,
    high: u64,
    is_write: bool,
}

/// The accesses of a run.
pub(crate) struct Touches {
    buffers: IndexVec<BufferId, Vec<Touch>>,
}

/// Bytes of one buffer: sorted ranges that do not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// The buffer.
    pub buffer: BufferId,
    ranges: Vec<Range<u64>>,
}

impl Bytes {
    /// Those that a pattern enumerates.
    pub(crate) fn of(buffer: BufferId, pattern: &Pattern) -> Bytes {
        // A buffer's end is the verifier's matter.
        let mut ranges = pattern.ranges(u64::MAX, RUNS);
        ranges.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        Bytes {
            buffer,
            ranges: merged,
        }
    }

    fn extent(&self) -> Range<u64> {
        match (self.ranges.first(), self.ranges.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        }
    }

    fn meets_range(&self, range: &Range<u64>) -> bool {
        let after = self.ranges.partition_point(|own| own.end <= range.start);
        self.ranges
            .get(after)
            .is_some_and(|own| own.start < range.end)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.ranges
            .iter()
            .map(|range| range.end - range.start)
            .sum()
    }

    /// What is left of them without those that a task is sure to write; whether it writes any.
    pub(crate) fn without_writes(&mut self, program: &Program<'_>, task: TaskId) -> bool {
        let mut meets = false;
        program.kernel(task).accesses(&mut |access| {
            if access.direction != Direction::Write || !self.meets(&access) {
                return;
            }
            meets = true;
            if access.certainty == Certainty::Exact {
                for written in Bytes::of(access.buffer, &access.pattern).ranges {
                    self.subtract(&written);
                }
            }
        });
        meets
    }

    fn subtract(&mut self, written: &Range<u64>) {
        let first = self.ranges.partition_point(|own| own.end <= written.start);
        let last = self.ranges.partition_point(|own| own.start < written.end);
        if first >= last {
            return;
        }
        let (low, high) = (self.ranges[first].start, self.ranges[last - 1].end);
        let left = [low..written.start, written.end..high];
        self.ranges.splice(
            first..last,
            left.into_iter().filter(|own| own.start < own.end),
        );
    }

    /// Whether an access touches any of them.
    fn meets(&self, access: &Access) -> bool {
        let other = Bytes::of(access.buffer, &access.pattern);
        access.buffer == self.buffer && other.ranges.iter().any(|range| self.meets_range(range))
    }
}

impl Touches {
    /// Those of the tasks of a run, in the order of their effects.
    pub(crate) fn of(program: &Program<'_>, order: &[TaskId]) -> Touches {
        let mut buffers: IndexVec<BufferId, Vec<Touch>> =
            program.buffers.iter().map(|_| Vec::new()).collect();
        for (effect, task) in order.iter().enumerate() {
            program.kernel(*task).accesses(&mut |access| {
                let extent = access.pattern.inside(u64::MAX);
                if let Some(touches) = buffers.get_mut(access.buffer) {
                    touches.push(Touch {
                        effect: effect as u32,
                        low: extent.start,
                        high: extent.end,
                        is_write: access.direction == Direction::Write,
                    });
                }
            });
        }
        Touches { buffers }
    }

    /// The effects that touch some bytes, in order, among those of these numbers.
    pub(crate) fn find<'t>(
        &'t self,
        program: &'t Program<'_>,
        order: &'t [TaskId],
        bytes: &'t Bytes,
        kind: Kind,
        within: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = usize> + 't {
        let extent = bytes.extent();
        let touches = self
            .buffers
            .get(bytes.buffer)
            .map_or(&[][..], Vec::as_slice);
        let start = touches.partition_point(|touch| (touch.effect as usize) < within.start);
        let end = touches.partition_point(|touch| (touch.effect as usize) < within.end);
        let near = touches[start..end.max(start)].iter().filter(move |touch| {
            kind.includes(touch.is_write) && touch.low < extent.end && extent.start < touch.high
        });
        near.map(|touch| touch.effect as usize)
            .filter(move |effect| touches_bytes(program, order[*effect], bytes, kind))
    }
}

/// Whether a task touches any of these bytes in this way.
pub(crate) fn touches_bytes(
    program: &Program<'_>,
    task: TaskId,
    bytes: &Bytes,
    kind: Kind,
) -> bool {
    let mut found = false;
    program.kernel(task).accesses(&mut |access| {
        let is_write = access.direction == Direction::Write;
        found = found || (kind.includes(is_write) && bytes.meets(&access));
    });
    found
}

/// Which accesses count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Those that read.
    Read,
    /// Those that write.
    Write,
    /// Both.
    Access,
}

impl Kind {
    const fn includes(self, is_write: bool) -> bool {
        match self {
            Kind::Read => !is_write,
            Kind::Write => is_write,
            Kind::Access => true,
        }
    }

    /// As commands name it.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Access => "access",
        }
    }
}

/// The type of the elements that a task leaves at a byte, where its kernel knows it; or the place that it moves the byte from.
pub(crate) fn left_at(
    program: &Program<'_>,
    task: TaskId,
    buffer: BufferId,
    byte: u64,
) -> Option<Left> {
    let kernel = program.kernel(task);
    let (mut certainty, mut element) = (None, None);
    kernel.accesses(&mut |access| {
        let touches = access.direction == Direction::Write
            && access.buffer == buffer
            && access.pattern.position(byte).is_some();
        if touches {
            certainty = Some(access.certainty);
            element = kernel
                .tensor(&access)
                .map(|(element, _)| Left::Elements(element));
        }
    });
    if certainty? == Certainty::May {
        return None;
    }
    kernel.results(&mut |access, known| {
        let touches = access.buffer == buffer && access.pattern.position(byte).is_some();
        if touches && element.is_none() {
            element = Some(Left::Elements(known));
        }
    });
    element.or_else(|| {
        let source = kernel.source_of(buffer, byte);
        source.map(|(buffer, byte)| Left::Moved(buffer, byte))
    })
}

/// See [`left_at`].
pub(crate) enum Left {
    Elements(ElementType),
    Moved(BufferId, u64),
}
