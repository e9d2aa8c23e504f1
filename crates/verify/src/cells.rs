//! Who wrote each byte of a buffer last, and whether it has been read since: a number for each cell of 16 bytes, and one
//! for each byte of the cells that several writers share.

/// Bytes of a cell: what the units of most machines write is a multiple of it.
const CELL: usize = 16;
/// Cells that are compared and filled together.
const CHUNK: usize = 32;
/// Marks a cell whose bytes stand one by one in the table of shared cells.
const SHARED: u32 = 1 << 31;

/// What is known of a byte: its last writer, 0 where there is none, and whether it has been read since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State(u32);

impl State {
    pub(crate) const fn written_by(writer: u32) -> State {
        State((writer & ((SHARED >> 1) - 1)) << 1)
    }

    pub(crate) const fn writer(self) -> u32 {
        self.0 >> 1
    }

    pub(crate) const fn is_read(self) -> bool {
        self.0 & 1 != 0
    }

    const fn read(self) -> State {
        State(self.0 | 1)
    }
}

/// The bytes of a buffer.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    numbers: Vec<u32>,
    shared: Vec<[State; CELL]>,
    /// Places in the table of shared cells that are free.
    free: Vec<u32>,
}

impl Cells {
    /// A buffer of so many bytes, none of which has been written.
    pub(crate) fn new(size: u64) -> Cells {
        Cells {
            numbers: vec![0; size.div_ceil(CELL as u64) as usize],
            ..Cells::default()
        }
    }

    /// Replaces the state of bytes. `old` is told what they were, of neighbours that are alike once.
    pub(crate) fn write(&mut self, low: u64, high: u64, state: State, mut old: impl FnMut(State)) {
        let (low, high) = (low as usize, high as usize);
        let (first, last) = (low.div_ceil(CELL), high / CELL);
        if first > last {
            // Inside one cell.
            return self.change(low / CELL, low % CELL, high % CELL, |_| state, &mut old);
        }
        if low % CELL != 0 {
            self.change(low / CELL, low % CELL, CELL, |_| state, &mut old);
        }
        if high % CELL != 0 {
            self.change(last, 0, high % CELL, |_| state, &mut old);
        }
        for chunk in self.numbers[first..last].chunks_mut(CHUNK) {
            let one = chunk[0];
            if one & SHARED == 0 && chunk.iter().fold(0, |d, cell| d | (cell ^ one)) == 0 {
                old(State(one));
            } else {
                for cell in &*chunk {
                    if cell & SHARED == 0 {
                        old(State(*cell));
                    } else {
                        self.shared[(cell ^ SHARED) as usize]
                            .iter()
                            .copied()
                            .for_each(&mut old);
                        self.free.push(cell ^ SHARED);
                    }
                }
            }
            chunk.fill(state.0);
        }
    }

    /// Marks bytes as read. `seen` is told what they are, of neighbours that are alike once.
    pub(crate) fn read(&mut self, low: u64, high: u64, mut seen: impl FnMut(State)) {
        let (low, high) = (low as usize, high as usize);
        let (first, last) = (low.div_ceil(CELL), high / CELL);
        if first > last {
            return self.change(low / CELL, low % CELL, high % CELL, State::read, &mut seen);
        }
        if low % CELL != 0 {
            self.change(low / CELL, low % CELL, CELL, State::read, &mut seen);
        }
        if high % CELL != 0 {
            self.change(last, 0, high % CELL, State::read, &mut seen);
        }
        for chunk in self.numbers[first..last].chunks_mut(CHUNK) {
            let one = chunk[0];
            if one & SHARED == 0 && chunk.iter().fold(0, |d, cell| d | (cell ^ one)) == 0 {
                seen(State(one));
                chunk.fill(one | 1);
                continue;
            }
            for cell in chunk {
                if *cell & SHARED == 0 {
                    seen(State(*cell));
                    *cell |= 1;
                } else {
                    for state in &mut self.shared[(*cell ^ SHARED) as usize] {
                        seen(*state);
                        *state = state.read();
                    }
                }
            }
        }
    }

    /// The state of a byte.
    #[cfg(test)]
    fn at(&self, byte: u64) -> State {
        let cell = self.numbers[byte as usize / CELL];
        if cell & SHARED == 0 {
            State(cell)
        } else {
            self.shared[(cell ^ SHARED) as usize][byte as usize % CELL]
        }
    }

    /// Changes the state of some bytes of one cell.
    fn change(
        &mut self,
        cell: usize,
        from: usize,
        to: usize,
        change: impl Fn(State) -> State,
        seen: &mut impl FnMut(State),
    ) {
        if from >= to {
            return;
        }
        let found = self.numbers[cell];
        if found & SHARED == 0 {
            let (old, new) = (State(found), change(State(found)));
            seen(old);
            if old == new {
                return;
            }
            let mut bytes = [old; CELL];
            bytes[from..to].fill(new);
            let place = self.free.pop().unwrap_or(self.shared.len() as u32);
            match self.shared.get_mut(place as usize) {
                Some(free) => *free = bytes,
                None => self.shared.push(bytes),
            }
            self.numbers[cell] = SHARED | place;
            return;
        }
        let place = found ^ SHARED;
        let bytes = &mut self.shared[place as usize];
        for state in &mut bytes[from..to] {
            seen(*state);
            *state = change(*state);
        }
        if bytes.iter().all(|state| *state == bytes[0]) {
            self.numbers[cell] = bytes[0].0;
            self.free.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_state_for_each_byte(steps in prop::collection::vec((any::<bool>(), 0u64..3000, 1u64..2000, 1u32..5), 0..24)) {
            const SIZE: usize = 4096;
            let mut cells = Cells::new(SIZE as u64);
            let mut naive = vec![(0, false); SIZE];
            for (is_write, low, size, writer) in steps {
                let high = (low + size).min(SIZE as u64);
                let bytes = &mut naive[low as usize..high as usize];
                let want: BTreeSet<(u32, bool)> = bytes.iter().copied().collect();
                let mut got = BTreeSet::new();
                let mut note = |state: State| { got.insert((state.writer(), state.is_read())); };
                if is_write {
                    cells.write(low, high, State::written_by(writer), &mut note);
                    bytes.fill((writer, false));
                } else {
                    cells.read(low, high, &mut note);
                    for byte in bytes {
                        byte.1 = true;
                    }
                }
                prop_assert_eq!(got, want);
            }
            for (byte, want) in (0..).zip(&naive) {
                let state = cells.at(byte);
                prop_assert_eq!((state.writer(), state.is_read()), *want);
            }
        }
    }
}
