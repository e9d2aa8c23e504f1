use chipless_model::{Loop, Pattern};

/// Copies by walking both patterns run by run: for runs and loops that do not divide each other. The patterns fit and are
/// equally long.
pub(super) fn copy(source: &[u8], from: &Pattern, destination: &mut [u8], to: &Pattern) {
    let (mut from, mut to) = (Cursor::new(from), Cursor::new(to));
    while let (Some((read, readable)), Some((write, writable))) = (from.rest(), to.rest()) {
        let size = readable.min(writable);
        destination[write..write + size].copy_from_slice(&source[read..read + size]);
        from.advance(size);
        to.advance(size);
    }
}

/// A place in the enumeration of a pattern.
struct Cursor<'a> {
    run: usize,
    loops: &'a [Loop],
    index: Vec<u64>,
    /// Start of the current run; `None` behind the last.
    start: Option<i64>,
    /// Bytes of the current run that are done.
    done: usize,
}

impl Cursor<'_> {
    fn new(pattern: &Pattern) -> Cursor<'_> {
        let empty = pattern.bytes() == Some(0);
        let start = (!empty).then_some(pattern.offset as i64);
        Cursor {
            run: pattern.run as usize,
            loops: &pattern.loops,
            index: vec![0; pattern.loops.len()],
            start,
            done: 0,
        }
    }

    /// Where the rest of the current run is, and its bytes.
    fn rest(&self) -> Option<(usize, usize)> {
        self.start
            .map(|start| (start as usize + self.done, self.run - self.done))
    }

    fn advance(&mut self, size: usize) {
        self.done += size;
        if self.done == self.run {
            self.done = 0;
            self.start = self.start.and_then(|start| self.next_run(start));
        }
    }

    fn next_run(&mut self, mut start: i64) -> Option<i64> {
        for (index, l) in self.index.iter_mut().zip(self.loops) {
            *index += 1;
            if *index < l.count {
                return Some(start + l.stride);
            }
            *index = 0;
            start -= l.stride * (l.count as i64 - 1);
        }
        None
    }
}
