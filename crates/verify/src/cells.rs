//! Who wrote each byte of a buffer last, and whether it has been read since: a number for each page whose bytes are alike, one for each
//! cell of 32 bytes of the others, and one for each byte of the cells that several writers share.

use std::ops::Range;

/// Bytes of a cell.
const CELL: usize = 32;
/// Cells of a page, and their bytes.
const PAGE: usize = 256;
const PAGE_BYTES: usize = PAGE * CELL;
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
#[derive(Debug)]
pub(crate) struct Cells {
    size: usize,
    pages: Vec<Page>,
    shared: Shared,
}

#[derive(Clone, Debug)]
enum Page {
    /// All bytes are alike.
    Alike(State),
    /// A state for each cell, or the place of a shared one.
    Mixed(Box<[u32; PAGE]>),
}

/// Cells whose bytes are not alike.
#[derive(Debug, Default)]
struct Shared {
    bytes: Vec<[State; CELL]>,
    /// Places that are free.
    free: Vec<u32>,
}

impl Cells {
    /// A buffer of so many bytes, none of which has been written.
    pub(crate) fn new(size: u64) -> Cells {
        let size = size as usize;
        Cells {
            size,
            pages: vec![Page::Alike(State::default()); size.div_ceil(PAGE_BYTES)],
            shared: Shared::default(),
        }
    }

    /// Replaces the state of bytes. `old` is told what they were, of neighbours that are alike once.
    pub(crate) fn write(&mut self, low: u64, high: u64, state: State, old: impl FnMut(State)) {
        self.change(low as usize, high as usize, |_| state, old);
    }

    /// Marks bytes as read. `seen` is told what they are, of neighbours that are alike once.
    pub(crate) fn read(&mut self, low: u64, high: u64, seen: impl FnMut(State)) {
        self.change(low as usize, high as usize, State::read, seen);
    }

    fn change(
        &mut self,
        low: usize,
        high: usize,
        change: impl Fn(State) -> State,
        mut seen: impl FnMut(State),
    ) {
        let mut low = low;
        while low < high {
            let start = low / PAGE_BYTES * PAGE_BYTES;
            let end = high.min(start + PAGE_BYTES);
            let is_whole = low == start && (end == start + PAGE_BYTES || end == self.size);
            let page = &mut self.pages[start / PAGE_BYTES];
            match page {
                Page::Alike(state) if is_whole || change(*state) == *state => {
                    seen(*state);
                    *state = change(*state);
                }
                _ => {
                    let cells = page.cells();
                    let bytes = low - start..end - start;
                    self.shared.change_all(cells, bytes, &change, &mut seen);
                    let one = cells[0];
                    if is_whole && one & SHARED == 0 && are_alike(cells) {
                        *page = Page::Alike(State(one));
                    }
                }
            }
            low = end;
        }
    }

    /// The state of a byte.
    #[cfg(test)]
    fn at(&self, byte: u64) -> State {
        let (byte, within) = (byte as usize, byte as usize % PAGE_BYTES);
        match &self.pages[byte / PAGE_BYTES] {
            Page::Alike(state) => *state,
            Page::Mixed(cells) => match cells[within / CELL] {
                cell if cell & SHARED == 0 => State(cell),
                cell => self.shared.bytes[(cell ^ SHARED) as usize][within % CELL],
            },
        }
    }
}

impl Page {
    fn cells(&mut self) -> &mut [u32; PAGE] {
        if let Page::Alike(state) = self {
            *self = Page::Mixed(Box::new([state.0; PAGE]));
        }
        match self {
            Page::Mixed(cells) => cells,
            Page::Alike(_) => unreachable!("it has just been mixed"),
        }
    }
}

fn are_alike(cells: &[u32]) -> bool {
    cells.iter().fold(0, |d, cell| d | (cell ^ cells[0])) == 0
}

impl Shared {
    /// Changes the state of some bytes of a page.
    fn change_all(
        &mut self,
        cells: &mut [u32; PAGE],
        bytes: Range<usize>,
        change: &impl Fn(State) -> State,
        seen: &mut impl FnMut(State),
    ) {
        let Range {
            start: low,
            end: high,
        } = bytes;
        let (first, last) = (low.div_ceil(CELL), high / CELL);
        if first > last {
            // Inside one cell.
            return self.change(&mut cells[last], low % CELL..high % CELL, change, seen);
        }
        if low % CELL != 0 {
            self.change(&mut cells[first - 1], low % CELL..CELL, change, seen);
        }
        if high % CELL != 0 {
            self.change(&mut cells[last], 0..high % CELL, change, seen);
        }
        for chunk in cells[first..last].chunks_mut(CHUNK) {
            let one = chunk[0];
            if one & SHARED == 0 && are_alike(chunk) {
                seen(State(one));
                chunk.fill(change(State(one)).0);
                continue;
            }
            for cell in chunk {
                if *cell & SHARED == 0 {
                    seen(State(*cell));
                    *cell = change(State(*cell)).0;
                } else {
                    self.change(cell, 0..CELL, change, seen);
                }
            }
        }
    }

    /// Changes the state of some bytes of one cell.
    fn change(
        &mut self,
        cell: &mut u32,
        part: Range<usize>,
        change: &impl Fn(State) -> State,
        seen: &mut impl FnMut(State),
    ) {
        if part.is_empty() {
            return;
        }
        if *cell & SHARED == 0 {
            let (old, new) = (State(*cell), change(State(*cell)));
            seen(old);
            if old == new {
                return;
            }
            let mut bytes = [old; CELL];
            bytes[part].fill(new);
            let place = self.free.pop().unwrap_or(self.bytes.len() as u32);
            match self.bytes.get_mut(place as usize) {
                Some(free) => *free = bytes,
                None => self.bytes.push(bytes),
            }
            *cell = SHARED | place;
            return;
        }
        let place = *cell ^ SHARED;
        let bytes = &mut self.bytes[place as usize];
        for state in &mut bytes[part] {
            seen(*state);
            *state = change(*state);
        }
        if bytes.iter().all(|state| *state == bytes[0]) {
            *cell = bytes[0].0;
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
        fn agrees_with_a_state_for_each_byte(steps in prop::collection::vec((any::<bool>(), 0u64..24_000, prop_oneof![1u64..100, 1u64..20_000], 1u32..5), 0..24)) {
            const SIZE: usize = 3 * PAGE_BYTES + 1000;
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
