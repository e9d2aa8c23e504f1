//! Slots that are alike: unrolled loops repeat one instruction again and again, with other semaphores or at other addresses.

use super::{OnChip, SLOT_BYTES, Slot};
use hashbrown::HashTable;

/// A slot as words, what makes no difference set to 0.
pub(crate) type Words = [u64; SLOT_BYTES / 8];

impl Slot {
    /// What it does, apart from which semaphores it waits for and signals: slots with equal bodies touch the same bytes in the same way.
    pub(crate) fn body(&self) -> Words {
        let mut slot = *self;
        // The modes stay: some of them keep a slot from being executed.
        if self.has_events() {
            let events = &mut slot.head.events;
            (events.wait_index, events.update_index, events.value) = (0, 0, 0.into());
        }
        zerocopy::transmute!(slot)
    }

    /// Its body with every operand on the chip at the start of its partition: slots of one shape differ in nothing but where in their
    /// partitions they work.
    pub(crate) fn shape(&self) -> Words {
        let mut slot: Slot = zerocopy::transmute!(self.body());
        let bytes = slot.bytes_mut();
        for field in self.format().tensors() {
            let at = usize::from(field.at);
            let address = u32::from_le_bytes(self.array(at));
            if let Some(OnChip { offset, .. }) = OnChip::at(address) {
                bytes[at..at + 4].copy_from_slice(&(address - offset).to_le_bytes());
            }
        }
        zerocopy::transmute!(slot)
    }
}

/// The slots of an engine by their bodies.
#[derive(Clone, Debug)]
pub(crate) struct Bodies {
    /// The number of each slot's body: from 0 on, in the order of the first slot with it.
    pub(crate) numbers: Vec<u32>,
    /// How many there are.
    pub(crate) distinct: usize,
}

impl Bodies {
    pub(crate) fn of(slots: &[Slot]) -> Bodies {
        let mut bodies = Alike::by(Slot::body, slots.len());
        Bodies {
            numbers: slots.iter().map(|slot| bodies.number(slot).0).collect(),
            distinct: bodies.slots.len(),
        }
    }
}

/// Numbers for slots, from 0 on: equal ones for slots whose words are equal.
#[derive(Debug)]
pub(crate) struct Alike<'s> {
    words: fn(&Slot) -> Words,
    /// The low half of a hash, and the number that belongs to it.
    known: HashTable<(u32, u32)>,
    /// The first slot of each number.
    slots: Vec<&'s Slot>,
}

impl<'s> Alike<'s> {
    /// Slots are alike whose words are; there is room for so many.
    pub(crate) fn by(words: fn(&Slot) -> Words, room: usize) -> Alike<'s> {
        Alike {
            words,
            known: HashTable::with_capacity(room),
            slots: Vec::with_capacity(room),
        }
    }

    /// The number of a slot, and whether it is the first with it.
    pub(crate) fn number(&mut self, slot: &'s Slot) -> (u32, bool) {
        let words = (self.words)(slot);
        let hash = hash(&words);
        let is_alike = |(known, number): &(u32, u32)| {
            *known == hash && (self.words)(self.slots[*number as usize]) == words
        };
        if let Some((_, number)) = self.known.find(spread(hash), is_alike) {
            return (*number, false);
        }
        let number = self.slots.len() as u32;
        self.slots.push(slot);
        let entry = (hash, number);
        self.known
            .insert_unique(spread(hash), entry, |(hash, _)| spread(*hash));
        (number, true)
    }
}

fn hash(words: &Words) -> u32 {
    let mix =
        |hash: u64, word: &u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    (words.iter().fold(0, mix) >> 32) as u32
}

/// A hash as tables want it: they look at its lowest and at its highest bits.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(address: u32, semaphore: u8, mode: u8) -> Slot {
        let mut bytes = [0; SLOT_BYTES];
        (bytes[0], bytes[4], bytes[5], bytes[8]) = (0x02, mode, semaphore, semaphore);
        bytes[0x10..0x14].copy_from_slice(&address.to_le_bytes());
        zerocopy::transmute!(bytes)
    }

    #[test]
    fn semaphores_make_no_difference_and_addresses_do() {
        let slots = [
            slot(1, 7, 5),
            slot(1, 8, 5),
            slot(2, 8, 5),
            slot(1, 8, 0xfe),
        ];
        let mut bodies = Alike::by(Slot::body, 0);
        assert_eq!(bodies.number(&slots[0]), (0, true));
        assert_eq!(bodies.number(&slots[1]), (0, false));
        assert_eq!(bodies.number(&slots[2]), (1, true));
        assert_eq!(
            bodies.number(&slots[3]),
            (2, true),
            "what cannot be executed touches nothing"
        );
        let bodies = Bodies::of(&slots);
        assert_eq!(
            (&bodies.numbers[..], bodies.distinct),
            (&[0, 0, 1, 2][..], 3)
        );
    }

    #[test]
    fn shapes_keep_memory_and_partition_of_an_address() {
        let slots = [0x40, 0x3_0000, 0x4_0040, 0x200_0040, 0x200_0080, 0x240_0000]
            .map(|address| slot(address, 0, 0));
        let mut shapes = Alike::by(Slot::shape, 0);
        let numbers = slots.each_ref().map(|slot| shapes.number(slot).0);
        assert_eq!(numbers, [0, 0, 1, 2, 2, 3]);
    }
}
