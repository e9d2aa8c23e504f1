//! Marks on the bytes of buffers: few bytes have one.

use crate::cells::Cells;
use crate::window::Window;
use chipless_model::{BufferId, Series};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A number for each byte; 0 where there is no mark.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    buffers: FxHashMap<BufferId, Cells>,
}

impl Marks {
    /// Whether any byte of a buffer may have one.
    pub(crate) fn has(&self, buffer: BufferId) -> bool {
        self.of(buffer).is_some()
    }

    /// The bytes of a buffer, if any may have one.
    pub(crate) fn of(&self, buffer: BufferId) -> Option<&Cells> {
        self.buffers.get(&buffer).filter(|cells| !cells.is_empty())
    }

    /// The mark of a byte.
    pub(crate) fn at(&self, buffer: BufferId, byte: u64) -> u32 {
        self.of(buffer).map_or(0, |cells| cells.at(byte))
    }

    /// The first bytes of a range that have one.
    pub(crate) fn first(&self, buffer: BufferId, bytes: Range<u64>) -> Option<Range<u64>> {
        self.of(buffer)?.first(bytes, |mark| mark != 0)
    }

    /// The first bytes of a range without one.
    pub(crate) fn first_without(&self, buffer: BufferId, bytes: Range<u64>) -> Option<Range<u64>> {
        match self.of(buffer) {
            Some(cells) => cells.first(bytes, |mark| mark == 0),
            None => Some(bytes).filter(|bytes| !bytes.is_empty()),
        }
    }

    /// Adds those bytes of a window from `start` on whose marks count.
    pub(crate) fn add_to(
        &self,
        window: &mut Window,
        buffer: BufferId,
        start: u64,
        counts: impl Fn(u32) -> bool,
    ) {
        if let Some(cells) = self.of(buffer) {
            cells.add_to(window, start, |mark| mark != 0 && counts(mark));
        }
    }

    pub(crate) fn set(
        &mut self,
        buffer: BufferId,
        series: impl IntoIterator<Item = Series>,
        mark: u32,
    ) {
        self.buffers.entry(buffer).or_default().set(series, mark);
    }

    /// Takes the marks of some bytes away, all of which lie in a span: mostly one that has none.
    pub(crate) fn clear(
        &mut self,
        buffer: BufferId,
        span: &Range<u64>,
        series: impl IntoIterator<Item = Series>,
    ) {
        if self.first(buffer, span.clone()).is_some()
            && let Some(cells) = self.buffers.get_mut(&buffer)
        {
            cells.set(series, 0);
        }
    }

    /// The marks of some bytes, in order, each once.
    pub(crate) fn all(&self, buffer: BufferId, bytes: Range<u64>) -> Vec<u32> {
        let runs = self
            .of(buffer)
            .into_iter()
            .flat_map(|cells| cells.runs(bytes.clone()));
        let mut found: Vec<u32> = runs
            .map(|(_, mark)| mark)
            .filter(|mark| *mark != 0)
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}
