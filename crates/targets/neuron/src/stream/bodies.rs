//! What slots do, apart from which semaphores they wait for and signal: unrolled loops repeat it again and again.

use super::{Events, SLOT_BYTES, Slot};
use rustc_hash::FxHashMap;

/// Numbers for slots: equal ones for slots that touch the same bytes in the same way.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    known: FxHashMap<[u8; SLOT_BYTES], u32>,
    next: u32,
}

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
        let number = *self
            .known
            .entry(zerocopy::transmute!(body))
            .or_insert(self.next);
        let is_new = number == self.next;
        self.next += u32::from(is_new);
        (number, is_new)
    }

    /// Slots that follow are another engine's, whose registers or addresses are others: none of them gets a number of before.
    pub(crate) fn leave_engine(&mut self) {
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
