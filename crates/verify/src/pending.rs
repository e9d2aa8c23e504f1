//! What tasks do to the bytes of a buffer, put off until somebody else touches these. The parts of one tensor that tasks read or write one after
//! the other, channel by channel, then mostly are one range.

use crate::access::Strided;
use smallvec::SmallVec;
use std::ops::Range;

/// What is put off at a time, at most.
const ENTRIES: usize = 8;
/// Parts that a new one is compared with.
const PARTS: usize = 8;

/// What tasks do that have one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// They read a tensor: the number of their group, and of the tensor among those of the task.
    Read((u32, u8)),
    /// They write a tensor.
    Write(u32),
}

impl What {
    /// Whether the order of the two does not show.
    fn commutes(self, other: What) -> bool {
        matches!((self, other), (What::Read(_), What::Read(_))) || self == other
    }
}

/// Bytes that something is done to.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) what: What,
    /// What the parts span.
    span: Range<u64>,
    pub(crate) parts: Vec<Strided<'a>>,
    /// The accesses that they belong to.
    pub(crate) uses: SmallVec<[u32; 4]>,
}

impl<'a> Entry<'a> {
    /// Adds bytes, to another part where the two make one.
    fn add(&mut self, new: Strided<'a>, user: u32) {
        if !self.uses.contains(&user) {
            self.uses.push(user);
        }
        for part in self.parts.iter_mut().rev().take(PARTS) {
            let (end, new_end) = (part.offset + part.run, new.offset + new.run);
            let is_one = part.swizzle == new.swizzle
                && part.offset <= new_end
                && new.offset <= end
                && part.loops == new.loops;
            if is_one {
                part.offset = part.offset.min(new.offset);
                part.run = end.max(new_end) - part.offset;
                return;
            }
        }
        self.parts.push(new);
    }
}

/// What is put off of one buffer. No two entries conflict, so that their order does not show.
#[derive(Debug, Default)]
pub(crate) struct Pending<'a>(Vec<Entry<'a>>);

impl<'a> Pending<'a> {
    /// Adds what the access of a task does to bytes that lie inside the buffer. `apply` is given what cannot be put off any more.
    pub(crate) fn add(
        &mut self,
        what: What,
        bytes: Strided<'a>,
        user: u32,
        mut apply: impl FnMut(Entry<'a>),
    ) {
        let (low, high) = bytes.extent();
        let mut span = low as u64..high as u64;
        let own = self.0.iter().position(|entry| entry.what == what);
        if let Some(own) = own.and_then(|own| self.0.get(own)) {
            span = span.start.min(own.span.start)..span.end.max(own.span.end);
        }
        let conflicts = |entry: &mut Entry<'a>| {
            !entry.what.commutes(what) && entry.span.start < span.end && span.start < entry.span.end
        };
        self.0.extract_if(.., conflicts).for_each(&mut apply);
        if let Some(own) = self.0.iter_mut().find(|entry| entry.what == what) {
            own.span = span;
            return own.add(bytes, user);
        }
        if self.0.len() == ENTRIES {
            apply(self.0.remove(0));
        }
        self.0.push(Entry {
            what,
            span,
            parts: vec![bytes],
            uses: [user].into_iter().collect(),
        });
    }

    /// Gives everything that counts.
    pub(crate) fn settle(
        &mut self,
        mut counts: impl FnMut(What) -> bool,
        apply: impl FnMut(Entry<'a>),
    ) {
        let counted = self.0.extract_if(.., |entry| counts(entry.what));
        counted.for_each(apply);
    }
}
