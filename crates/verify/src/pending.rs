//! What tasks do to the bytes of a buffer, put off until somebody else touches these. The parts of one tensor that tasks read or write one after
//! the other, channel by channel, then mostly are one range.

use crate::access::Strided;
use smallvec::{SmallVec, smallvec};
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
    pub(crate) parts: SmallVec<[Strided<'a>; 1]>,
    /// The accesses that they belong to, perhaps more than once.
    pub(crate) uses: SmallVec<[u32; 4]>,
}

impl<'a> Entry<'a> {
    fn new(what: What, span: Range<u64>, bytes: Strided<'a>, user: u32) -> Entry<'a> {
        Entry {
            what,
            span,
            parts: smallvec![bytes],
            uses: smallvec![user],
        }
    }

    /// Adds bytes, to another part where the two make one.
    fn add(&mut self, new: Strided<'a>, user: u32) {
        if self.uses.last() != Some(&user) {
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
        // A range is done at once: there is nothing to gain.
        let is_now = bytes.is_contiguous();
        let own = self.0.iter().find(|entry| entry.what == what && !is_now);
        if let Some(own) = own {
            span = span.start.min(own.span.start)..span.end.max(own.span.end);
        }
        let conflicts = |entry: &mut Entry<'a>| {
            !entry.what.commutes(what) && entry.span.start < span.end && span.start < entry.span.end
        };
        self.0.extract_if(.., conflicts).for_each(&mut apply);
        if is_now {
            return apply(Entry::new(what, span, bytes, user));
        }
        if let Some(own) = self.0.iter_mut().find(|entry| entry.what == what) {
            own.span = span;
            return own.add(bytes, user);
        }
        if self.0.len() == ENTRIES {
            apply(self.0.remove(0));
        }
        self.0.push(Entry::new(what, span, bytes, user));
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

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::{Loop, Swizzle};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const SIZE: usize = 4096;

    /// Each byte's last writer and whether it has been read since, who read whose bytes, and who ended whom.
    #[derive(Debug, PartialEq, Eq)]
    struct Memory {
        bytes: Vec<(u32, bool)>,
        read: BTreeSet<((u32, u8), u32)>,
        ended: BTreeSet<(u32, u32)>,
    }

    impl Memory {
        fn new() -> Memory {
            Memory {
                bytes: vec![(0, false); SIZE],
                read: BTreeSet::new(),
                ended: BTreeSet::new(),
            }
        }

        fn apply(&mut self, what: What, parts: &[Strided<'_>]) {
            for (low, high) in parts.iter().flat_map(Strided::runs) {
                for byte in &mut self.bytes[low as usize..high as usize] {
                    match what {
                        What::Read(reading) => {
                            self.read.insert((reading, byte.0));
                            byte.1 = true;
                        }
                        What::Write(writer) => {
                            if byte.1 && byte.0 != writer {
                                self.ended.insert((writer, byte.0));
                            }
                            *byte = (writer, false);
                        }
                    }
                }
            }
        }
    }

    fn what() -> impl Strategy<Value = What> {
        prop_oneof![
            (0u32..3, 0u8..2).prop_map(What::Read),
            (1u32..4).prop_map(What::Write)
        ]
    }

    proptest! {
        /// Slices of few tensors, so that many of them touch.
        #[test]
        fn putting_off_changes_nothing(steps in prop::collection::vec((what(), 0u64..12, 1u64..4, 0usize..3, 0u32..2), 0..60)) {
            let loops = [vec![], vec![Loop { count: 5, stride: 96 }], vec![Loop { count: 4, stride: 200 }, Loop { count: 3, stride: 1000 }]];
            let (mut now, mut later) = (Memory::new(), Memory::new());
            let mut pending = Pending::default();
            for (index, (what, slice, count, tensor, key)) in steps.into_iter().enumerate() {
                let bytes = Strided {
                    offset: 16 * slice,
                    run: 16 * count,
                    loops: &loops[tensor],
                    swizzle: Swizzle::from_key(5 * key).expect("key exists"),
                };
                now.apply(what, &[bytes]);
                pending.add(what, bytes, index as u32, |entry| later.apply(entry.what, &entry.parts));
            }
            pending.settle(|_| true, |entry| later.apply(entry.what, &entry.parts));
            prop_assert_eq!(now, later);
        }
    }
}
