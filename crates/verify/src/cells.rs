//! A number for each byte of a buffer, where neighbours are mostly alike: one for each page whose bytes are alike, one for each cell of
//! 32 bytes of the others, and one for each *mixture* of numbers that the bytes of a cell have. So bytes that lie in strides cost a look
//! for each cell, since their cells have the same few mixtures.

use crate::window::{WINDOW, WORD, Window};
use chipless_model::Series;
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::ops::Range;

/// Bytes of a cell.
const CELL: usize = 32;
/// Cells of a page, and their bytes.
const PAGE: usize = 256;
const PAGE_BYTES: u64 = (PAGE * CELL) as u64;
/// Cells that are compared and filled together.
const CHUNK: usize = 32;
/// Cells that are compared together where it is not known how many are alike.
const SEVERAL: usize = 8;
/// Cells of a window.
const CELLS: usize = WINDOW as usize / CELL;
/// Marks a cell that has a mixture. Numbers of bytes are below it.
const MIXED: u32 = 1 << 31;
/// Changes of cells that are remembered.
const STEPS: usize = 64;
/// Mixtures that are kept before those that no cell has any more are looked for.
const MIXTURES: usize = 1 << 14;

/// The bytes of a buffer, all of which have the number 0 at first.
#[derive(Debug)]
pub(crate) struct Cells {
    /// Pages that are not here are 0.
    pages: FxHashMap<u64, Page>,
    mixtures: Mixtures,
    /// Mixtures from which on those that are not needed are thrown away.
    most: usize,
}

#[derive(Clone, Debug)]
enum Page {
    /// All bytes are alike.
    Alike(u32),
    /// A number for each cell, or its mixture.
    Mixed(Box<[u32; PAGE]>),
}

impl Default for Cells {
    fn default() -> Cells {
        Cells {
            pages: FxHashMap::default(),
            mixtures: Mixtures::default(),
            most: MIXTURES,
        }
    }
}

impl Cells {
    /// Changes the numbers of some bytes, run by run. `seen` is told each number that was there at least once.
    pub(crate) fn change(
        &mut self,
        series: impl IntoIterator<Item = Series>,
        change: impl Fn(u32) -> u32,
        mut seen: impl FnMut(u32),
    ) {
        self.mixtures.forget_steps();
        for mut rest in series {
            while rest.count > 0 {
                let number = rest.start / PAGE_BYTES;
                let room = (PAGE_BYTES - rest.start % PAGE_BYTES).checked_sub(rest.size);
                if let Some(room) = room
                    && let Some(Page::Mixed(cells)) = self.pages.get_mut(&number)
                    && rest.size < PAGE_BYTES
                {
                    let more = room.checked_div(rest.stride).unwrap_or(0);
                    let here;
                    (here, rest) = rest.split_at(rest.count.min(more + 1));
                    self.mixtures.change_all(cells, here, &change, &mut seen);
                    continue;
                }
                let first;
                (first, rest) = rest.split_at(1);
                let (mut low, high) = (first.start, first.end());
                while low < high {
                    let (number, start) = (low / PAGE_BYTES, low % PAGE_BYTES);
                    let end = start + (high - low).min(PAGE_BYTES - start);
                    self.change_page(number, start as usize..end as usize, &change, &mut seen);
                    low += end - start;
                }
            }
        }
        if self.mixtures.contents.len() > self.most {
            self.forget_mixtures();
        }
    }

    /// Gives some bytes a number, run by run.
    pub(crate) fn set(&mut self, series: impl IntoIterator<Item = Series>, number: u32) {
        self.change(series, |_| number, |_| {});
    }

    fn change_page(
        &mut self,
        number: u64,
        bytes: Range<usize>,
        change: &impl Fn(u32) -> u32,
        seen: &mut impl FnMut(u32),
    ) {
        let is_whole = bytes.len() == PAGE * CELL;
        let Some(page) = self.pages.get_mut(&number) else {
            seen(0);
            let new = change(0);
            if new != 0 {
                let page = if is_whole {
                    Page::Alike(new)
                } else {
                    let mut cells = Box::new([0; PAGE]);
                    self.mixtures.change(&mut cells, bytes, change, seen);
                    Page::Mixed(cells)
                };
                self.pages.insert(number, page);
            }
            return;
        };
        let alike = match page {
            Page::Alike(old) if is_whole || change(*old) == *old => {
                seen(*old);
                Some(change(*old))
            }
            Page::Alike(old) => {
                let mut cells = Box::new([*old; PAGE]);
                self.mixtures.change(&mut cells, bytes, change, seen);
                *page = Page::Mixed(cells);
                return;
            }
            Page::Mixed(cells) => {
                self.mixtures.change(cells, bytes, change, seen);
                (is_whole && cells[0] & MIXED == 0 && are_alike(&cells[..])).then_some(cells[0])
            }
        };
        match alike {
            Some(0) => drop(self.pages.remove(&number)),
            Some(one) => *page = Page::Alike(one),
            None => {}
        }
    }

    /// Throws the mixtures away that no cell has any more.
    fn forget_mixtures(&mut self) {
        let old = std::mem::take(&mut self.mixtures);
        let cells = self.pages.values_mut().flat_map(|page| match page {
            Page::Mixed(cells) => cells.as_mut_slice(),
            Page::Alike(_) => &mut [],
        });
        for cell in cells.filter(|cell| **cell & MIXED != 0) {
            *cell = self
                .mixtures
                .number(&old.contents[(*cell ^ MIXED) as usize]);
        }
        self.most = MIXTURES.max(2 * self.mixtures.contents.len());
    }

    /// Whether any byte may have another number than 0.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The number of a byte.
    pub(crate) fn at(&self, byte: u64) -> u32 {
        self.piece(byte, byte + 1).0
    }

    /// Some bytes in runs of one number. Neighbours may have the same.
    pub(crate) fn runs(&self, bytes: Range<u64>) -> impl Iterator<Item = (Range<u64>, u32)> {
        let Range { start: mut at, end } = bytes;
        std::iter::from_fn(move || {
            let start = at;
            (start < end).then(|| {
                let (number, next) = self.piece(start, end);
                at = next.min(end);
                (start..at, number)
            })
        })
    }

    /// The first bytes of a range whose numbers count.
    pub(crate) fn first(
        &self,
        bytes: Range<u64>,
        counts: impl Fn(u32) -> bool,
    ) -> Option<Range<u64>> {
        if self.is_empty() && !counts(0) {
            return None;
        }
        let mut runs = self.runs(bytes).skip_while(|(_, number)| !counts(*number));
        let (Range { start, mut end }, _) = runs.next()?;
        for (run, _) in runs.take_while(|(_, number)| counts(*number)) {
            end = run.end;
        }
        Some(start..end)
    }

    /// Adds those bytes of a window from `start` on, a multiple of its size, whose numbers count.
    pub(crate) fn add_to(&self, window: &mut Window, start: u64, counts: impl Fn(u32) -> bool) {
        // A page holds whole windows.
        let one = match self.pages.get(&(start / PAGE_BYTES)) {
            None => 0,
            Some(Page::Alike(one)) => *one,
            Some(Page::Mixed(cells)) => {
                let first = (start % PAGE_BYTES) as usize / CELL;
                let (mut last, mut bits) = (0, mask(counts(0)));
                for (number, cell) in cells[first..].iter().take(CELLS).enumerate() {
                    if *cell != last {
                        last = *cell;
                        bits = if cell & MIXED == 0 {
                            mask(counts(*cell))
                        } else {
                            let content = &self.mixtures.contents[(cell ^ MIXED) as usize];
                            let each = content.iter().rev().map(|number| counts(*number));
                            each.fold(0, |bits, counts| bits << 1 | u64::from(counts))
                        };
                    }
                    window.0[number * CELL / WORD] |= bits << (number * CELL % WORD);
                }
                return;
            }
        };
        if counts(one) {
            window.add(0..WINDOW);
        }
    }

    /// The number of a byte, and where a run of it ends; not beyond the page, unless nothing is known of the next ones either.
    fn piece(&self, at: u64, end: u64) -> (u32, u64) {
        let number = at / PAGE_BYTES;
        let start = number * PAGE_BYTES;
        let page_end = start.saturating_add(PAGE_BYTES);
        match self.pages.get(&number) {
            Some(Page::Alike(one)) => (*one, page_end),
            Some(Page::Mixed(cells)) => {
                let within = (at - start) as usize;
                let cell = cells[within / CELL];
                if cell & MIXED == 0 {
                    // What comes after the bytes that are asked for does not count.
                    let last = (end.min(page_end) - start) as usize;
                    let rest = &cells[within / CELL..last.div_ceil(CELL)];
                    (cell, start + ((within / CELL + alike(rest)) * CELL) as u64)
                } else {
                    let content = &self.mixtures.contents[(cell ^ MIXED) as usize];
                    let rest = &content[within % CELL..];
                    let alike = rest.iter().take_while(|other| **other == rest[0]).count();
                    (rest[0], at + alike as u64)
                }
            }
            // Few pages are looked at one by one, many are skipped at once.
            None if (end / PAGE_BYTES - number) as usize > self.pages.len() => {
                let later = self.pages.keys().filter(|other| **other > number).min();
                (0, later.map_or(u64::MAX, |page| page * PAGE_BYTES))
            }
            None => (0, page_end),
        }
    }
}

/// A bit for each byte of a cell.
fn mask(is_set: bool) -> u64 {
    if is_set { (1 << CELL) - 1 } else { 0 }
}

fn are_alike(cells: &[u32]) -> bool {
    cells.iter().fold(0, |d, cell| d | (cell ^ cells[0])) == 0
}

/// How many cells are like the first one until another comes. Several at a time are compared without a branch for each.
fn alike(cells: &[u32]) -> usize {
    let Some(first) = cells.first() else {
        return 0;
    };
    let is_like = |several: &&[u32]| several.iter().fold(0, |d, cell| d | (cell ^ first)) == 0;
    let whole = cells.chunks_exact(SEVERAL).take_while(is_like).count() * SEVERAL;
    let rest = cells[whole..].iter();
    whole + rest.take_while(|cell| *cell == first).count()
}

/// What cells hold whose bytes are not alike.
#[derive(Debug)]
struct Mixtures {
    contents: Vec<[u32; CELL]>,
    /// Their numbers by content.
    numbers: HashTable<u32>,
    /// What the last changes of a cell came to, each in the place that its hash says.
    steps: [Step; STEPS],
    /// Which of them are of the present change.
    age: u32,
}

/// What a change of some bytes of a cell came to.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    age: u32,
    /// The cell before and after.
    old: u32,
    new: u32,
    /// First byte of the cell and one past the last.
    bytes: (u8, u8),
}

impl Default for Mixtures {
    fn default() -> Mixtures {
        Mixtures {
            contents: Vec::new(),
            numbers: HashTable::new(),
            steps: [Step::default(); STEPS],
            age: 0,
        }
    }
}

impl Mixtures {
    fn forget_steps(&mut self) {
        self.age = self.age.wrapping_add(1);
        if self.age == 0 {
            self.steps = [Step::default(); STEPS];
            self.age = 1;
        }
    }

    /// Changes the numbers of the bytes of a series in a page.
    fn change_all(
        &mut self,
        cells: &mut [u32; PAGE],
        series: Series,
        change: &impl Fn(u32) -> u32,
        seen: &mut impl FnMut(u32),
    ) {
        let (page, cell) = (series.start % PAGE_BYTES, series.start as usize % CELL);
        let bytes = (cell, cell + series.size as usize);
        if bytes.1 > CELL || !series.stride.is_multiple_of(CELL as u64) {
            for run in series.runs() {
                let start = (run.start % PAGE_BYTES) as usize;
                let end = start + series.size as usize;
                self.change(cells, start..end, change, seen);
            }
            return;
        }
        // The runs lie alike in their cells, most of which are alike, too.
        let mut known = None;
        let step = (series.stride as usize / CELL).max(1);
        let cells = cells[page as usize / CELL..].iter_mut().step_by(step);
        for cell in cells.take(series.count as usize) {
            match known {
                Some((old, new)) if *cell == old => *cell = new,
                _ => {
                    let old = *cell;
                    self.part(cell, bytes, change, seen);
                    known = Some((old, *cell));
                }
            }
        }
    }

    /// Changes the numbers of some bytes of a page.
    fn change(
        &mut self,
        cells: &mut [u32; PAGE],
        bytes: Range<usize>,
        change: &impl Fn(u32) -> u32,
        seen: &mut impl FnMut(u32),
    ) {
        let Range {
            start: low,
            end: high,
        } = bytes;
        let (first, last) = (low.div_ceil(CELL), high / CELL);
        if first > last {
            // Inside one cell.
            return self.part(&mut cells[last], (low % CELL, high % CELL), change, seen);
        }
        if low % CELL != 0 {
            self.part(&mut cells[first - 1], (low % CELL, CELL), change, seen);
        }
        // Cells that are not all alike mostly take turns of a few: the next is like the one before.
        let mut known = None;
        for chunk in cells[first..last].chunks_mut(CHUNK) {
            let one = chunk[0];
            if one & MIXED == 0 && are_alike(chunk) {
                seen(one);
                chunk.fill(change(one));
                continue;
            }
            for cell in chunk {
                let old = *cell;
                match known {
                    Some((before, new)) if before == old => *cell = new,
                    _ if old & MIXED == 0 => {
                        seen(old);
                        *cell = change(old);
                    }
                    _ => self.part(cell, (0, CELL), change, seen),
                }
                known = Some((old, *cell));
            }
        }
        if high % CELL != 0 {
            self.part(&mut cells[last], (0, high % CELL), change, seen);
        }
    }

    /// Changes the numbers of some bytes of one cell.
    fn part(
        &mut self,
        cell: &mut u32,
        (low, high): (usize, usize),
        change: &impl Fn(u32) -> u32,
        seen: &mut impl FnMut(u32),
    ) {
        let (old, bytes) = (*cell, (low as u8, high as u8));
        let place = old as usize * 31 + low * 7 + high;
        let known = &self.steps[place % STEPS];
        if (known.age, known.old, known.bytes) == (self.age, old, bytes) {
            *cell = known.new;
            return;
        }
        let mut content = match self.contents.get((old ^ MIXED) as usize) {
            Some(content) if old & MIXED != 0 => *content,
            _ => [old; CELL],
        };
        for run in content[low..high].chunk_by_mut(|a, b| a == b) {
            seen(run[0]);
            run.fill(change(run[0]));
        }
        *cell = self.number(&content);
        self.steps[place % STEPS] = Step {
            age: self.age,
            old,
            new: *cell,
            bytes,
        };
    }

    /// What a cell of this content has.
    fn number(&mut self, content: &[u32; CELL]) -> u32 {
        if are_alike(content) {
            return content[0];
        }
        let contents = &mut self.contents;
        let is_same = |known: &u32| contents[*known as usize] == *content;
        if let Some(known) = self.numbers.find(hash(content), is_same) {
            return MIXED | known;
        }
        let number = contents.len() as u32;
        contents.push(*content);
        let hash_of = |known: &u32| hash(&contents[*known as usize]);
        self.numbers.insert_unique(hash(content), number, hash_of);
        MIXED | number
    }
}

fn hash(content: &[u32; CELL]) -> u64 {
    let mut hasher = FxHasher::default();
    content.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const SIZE: u64 = 3 * PAGE_BYTES + 1000;

    /// Bytes in a stride, perhaps in that of cells.
    fn strided() -> impl Strategy<Value = Series> {
        let size = prop_oneof![1u64..40, 1u64..100, 1u64..20_000];
        let stride = prop_oneof![1u64..200, (1u64..9).prop_map(|cells| cells * CELL as u64)];
        let some = (0..SIZE, size, 1u64..400, stride);
        some.prop_map(|(start, size, count, stride)| Series {
            start,
            size: size.min(SIZE - start),
            stride,
            count: count.min((SIZE - start - size.min(SIZE - start)) / stride + 1),
        })
    }

    proptest! {
                #[test]
        fn agrees_with_a_number_for_each_byte(steps in prop::collection::vec((0u32..5, strided(), any::<bool>()), 0..24), asked in (0..SIZE, 0..SIZE)) {
            let mut cells = Cells::default();
            let mut naive = vec![0; SIZE as usize];
            for (number, series, forgets) in steps {
                // One in five doubles what it finds.
                let change = |old: u32| if number == 4 { (2 * old).min(1000) } else { number };
                let (mut got, mut want) = (BTreeSet::new(), BTreeSet::new());
                cells.change([series], change, |old| { got.insert(old); });
                for run in series.runs() {
                    for byte in &mut naive[run.start as usize..run.end as usize] {
                        want.insert(*byte);
                        *byte = change(*byte);
                    }
                }
                // Runs that overlap see what the ones before them left.
                prop_assert_eq!(got, want);
                if forgets {
                    cells.forget_mixtures();
                }
            }
            for (byte, want) in (0..).zip(&naive) {
                prop_assert_eq!(cells.at(byte), *want);
            }
            let (low, high) = (asked.0.min(asked.1), asked.0.max(asked.1));
            let first = (low..high).find(|byte| naive[*byte as usize] > 1);
            let want = first.map(|first| first..(first..high).find(|byte| naive[*byte as usize] <= 1).unwrap_or(high));
            prop_assert_eq!(cells.first(low..high, |number| number > 1), want);
            let mut window = Window::default();
            let low = low / WINDOW * WINDOW;
            cells.add_to(&mut window, low, |number| number > 1);
            for byte in low..low + WINDOW {
                let want = naive.get(byte as usize).is_some_and(|number| *number > 1);
                prop_assert_eq!(window.first(byte - low..byte - low + 1).is_some(), want);
            }
        }
    }
}
