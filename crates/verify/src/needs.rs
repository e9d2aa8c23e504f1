//! Reads that need one write: what they read, nobody else has written. Advice that lets such a read come first leaves it with bytes of no meaning.

use crate::access::Strided;
use crate::clock::reaches;
use crate::footprint::{Accesses, Use};
use crate::order::Order;
use crate::overlap::{Overlap, overlap};
use crate::race::Race;
use crate::replay::find_order;
use crate::writes::Writes;
use chipless_model::{Certainty, Direction, Program, TaskId};

/// A read that needs a write of another task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    writer: TaskId,
    reader: TaskId,
}

/// The pairs of tasks, of those given, of which one needs what the other one writes.
pub(crate) fn needs(program: &Program<'_>, pairs: &[(TaskId, TaskId)]) -> Vec<Need> {
    if pairs.is_empty() {
        return Vec::new();
    }
    let (order, _) = find_order(program);
    let accesses = Accesses::collect(program);
    let mut search = Search {
        writes: Writes::new(program, &accesses),
        race: Race {
            program,
            accesses: &accesses,
        },
        order: &order,
        place: vec![usize::MAX; program.tasks.len()],
    };
    for (place, task) in order.sequence.iter().enumerate() {
        search.place[task.index()] = place;
    }
    let both = pairs.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
    both.filter(|(writer, reader)| search.is_need(*writer, *reader))
        .map(|(writer, reader)| Need { writer, reader })
        .collect()
}

impl Need {
    /// Whether the read comes first, in every order of the program.
    pub(crate) fn is_reversed(self, order: &Order) -> bool {
        let Need { writer, reader } = self;
        order.ran(writer) && order.ran(reader) && reaches(order.start(writer), order.read(reader))
    }
}

struct Search<'s, 'p, 'a> {
    /// Before the first task.
    writes: Writes<'s>,
    race: Race<'s, 'p, 'a>,
    order: &'s Order,
    /// By task, its place in the reference order.
    place: Vec<usize>,
}

impl Search<'_, '_, '_> {
    fn is_need(&mut self, writer: TaskId, reader: TaskId) -> bool {
        let accesses = self.race.accesses;
        let uses = |task: TaskId, direction: Direction| {
            let uses = accesses.of(task).map(|index| accesses.entry(index));
            uses.filter(move |entry| {
                (entry.direction, entry.certainty) == (direction, Certainty::Exact)
            })
        };
        let mut pairs = uses(reader, Direction::Read)
            .flat_map(|read| uses(writer, Direction::Write).map(move |write| (write, read)));
        pairs.any(|(write, read)| {
            let Overlap::Common(low, high) = self.race.overlap(write, read) else {
                return false;
            };
            let buffer = accesses.footprint_of(read).buffer;
            self.writes.bytes(buffer);
            let is_empty = self.writes.first_gap(buffer, low..high).is_some();
            let common = Strided::contiguous(low, high);
            is_empty
                && !accesses.iter().any(|other| {
                    self.may_come_before(other, write, read) && self.writes_to(other, read, common)
                })
        })
    }

    /// Whether another task may do its work before a task reads, and before the write at hand.
    fn may_come_before(&self, other: &Use, write: &Use, read: &Use) -> bool {
        let place = |entry: &Use| self.place[entry.task.index()];
        other.task != write.task
            && other.task != read.task
            && (place(other) < place(write) || place(other) < place(read))
            && self.order.ran(other.task)
            && self.order.ran(read.task)
            && !reaches(self.order.start(other.task), self.order.read(read.task))
    }

    /// Whether a use writes some of these bytes of the buffer that another one reads.
    fn writes_to(&self, entry: &Use, read: &Use, bytes: Strided<'_>) -> bool {
        let accesses = self.race.accesses;
        let footprint = accesses.footprint_of(entry);
        entry.direction == Direction::Write
            && footprint.buffer == accesses.footprint_of(read).buffer
            && accesses
                .fitting(footprint)
                .any(|pattern| overlap(pattern, bytes) != Overlap::Disjoint)
    }
}
