//! What slots do, apart from which semaphores they wait for and signal: unrolled loops repeat it again and again.

use super::{Events, SLOT_BYTES, Slot};
use rustc_hash::FxHashMap;

/// Numbers for slots: equal ones for slots that touch the same bytes in the same way.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    /// The last body of each hash.
    known: FxHashMap<u64, u32>,
    /// Bodies since the core began, and before each the one of the same hash.
    #[expect(clippy::struct_field_names, reason = "they are what it holds")]
    bodies: Vec<([u64; SLOT_BYTES / 8], u32)>,
    /// Number of the first of them.
    first: u32,
}

/// Before the first body of a hash stands none.
const NONE: u32 = u32::MAX;

impl Bodies {
    /// The number of a slot, counted from 0, and whether it is the first with it.
    pub(crate) fn number(&mut self, slot: &Slot) -> (u32, bool) {
        let mut body = *slot;
        // The modes stay: some of them keep a slot from being executed.
        let Events {
            wait_mode,
            update_mode,
            ..
        } = slot.head.events;
        body.head.events = Events {
            wait_mode,
            update_mode,
            ..Events::default()
        };
        let body: [u64; SLOT_BYTES / 8] = zerocopy::transmute!(body);
        let mix = |hash: u64, word: &u64| {
            (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
        };
        let hash = body.iter().fold(0, mix);
        let last = self.known.entry(hash ^ hash >> 32).or_insert(NONE);
        let mut at = *last;
        while let Some((known, before)) = self.bodies.get(at as usize) {
            if *known == body {
                return (self.first + at, false);
            }
            at = *before;
        }
        self.bodies.push((body, *last));
        *last = self.bodies.len() as u32 - 1;
        (self.first + *last, true)
    }

    /// Slots that follow are another engine's, whose registers or addresses are others: none of them gets a number of before.
    pub(crate) fn leave_engine(&mut self) {
        self.first += self.bodies.len() as u32;
        self.bodies.clear();
        self.known.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semaphores_make_no_difference_and_addresses_do() {
        let mut bodies = Bodies::default();
        let slot = |address: u8, semaphore: u8, mode: u8| {
            let mut bytes = [0; SLOT_BYTES];
            (bytes[0], bytes[4], bytes[5], bytes[8], bytes[16]) =
                (0x02, mode, semaphore, semaphore, address);
            zerocopy::transmute!(bytes)
        };
        assert_eq!(bodies.number(&slot(1, 7, 5)), (0, true));
        assert_eq!(bodies.number(&slot(1, 8, 5)), (0, false));
        assert_eq!(bodies.number(&slot(2, 8, 5)), (1, true));
        assert_eq!(
            bodies.number(&slot(1, 8, 0xfe)),
            (2, true),
            "what cannot be executed touches nothing"
        );
        bodies.leave_engine();
        assert_eq!(bodies.number(&slot(1, 7, 5)), (3, true));
    }
}
