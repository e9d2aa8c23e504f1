//! Sections of task descriptors, which of their records ran, and how many variants each invariant got.

use crate::bytes::Record;
use crate::image::Image;
use crate::structures::{TaskKind, TaskSection};
use std::collections::BTreeMap;

#[derive(Debug)]
struct Uses {
    list: TaskSection,
    /// How often each record was used.
    uses: Vec<u32>,
}

/// Every section of descriptors, by index.
#[derive(Debug)]
pub(super) struct TaskSections(BTreeMap<usize, Uses>);

/// A record of a section of descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// What it is.
    pub(super) kind: TaskKind,
    /// Of which engine or tile.
    pub(super) unit: usize,
    /// Which one of the section.
    pub(super) index: u64,
}

impl TaskSections {
    pub(super) fn new(image: &Image<'_>) -> TaskSections {
        let sections = image
            .sections()
            .iter()
            .enumerate()
            .filter_map(|(index, section)| {
                let list = TaskKind::of_section(&section.name)?;
                let uses = vec![0; section.bytes.len() / list.record_size()];
                Some((index, Uses { list, uses }))
            });
        TaskSections(sections.collect())
    }

    /// The record that starts at this offset of a section.
    pub(super) fn record(&self, section: usize, offset: u64) -> Option<Found> {
        let Uses { list, uses } = self.0.get(&section)?;
        let size = list.record_size() as u64;
        let index = offset / size;
        (offset.is_multiple_of(size) && (index as usize) < uses.len()).then_some(Found {
            kind: list.kind,
            unit: list.unit,
            index,
        })
    }

    /// Counts a use of a record, and says the how-manieth it was.
    pub(super) fn count(&mut self, section: usize, index: u64) -> u32 {
        let Some(uses) = self
            .0
            .get_mut(&section)
            .and_then(|s| s.uses.get_mut(index as usize))
        else {
            return 0;
        };
        *uses += 1;
        *uses
    }

    /// Runs of consecutive tasks that never ran: section, kind, size of a record, first index, how many.
    pub(super) fn unreached(&self, mut report: impl FnMut(usize, TaskKind, usize, u64, usize)) {
        let is_task = |kind| !matches!(kind, TaskKind::Invariant | TaskKind::Range);
        for (section, Uses { list, uses }) in self.0.iter().filter(|(_, s)| is_task(s.list.kind)) {
            let mut at = 0;
            for run in uses.chunk_by(|a, b| (*a == 0) == (*b == 0)) {
                if run[0] == 0 {
                    report(
                        *section,
                        list.kind,
                        list.record_size(),
                        at as u64,
                        run.len(),
                    );
                }
                at += run.len();
            }
        }
    }

    /// Invariants whose number of variants differs from what they say: section, index, says, ran.
    pub(super) fn miscounted(
        &self,
        image: &Image<'_>,
        mut report: impl FnMut(usize, usize, u64, u32, u32),
    ) {
        for (section, Uses { list, uses }) in self
            .0
            .iter()
            .filter(|(_, s)| s.list.kind == TaskKind::Invariant)
        {
            let size = list.record_size();
            let records = image.bytes(*section).chunks_exact(size);
            for (index, (record, ran)) in records.zip(uses).enumerate() {
                let says = u32::from(Record(record).u16(list.variant_count()));
                if says != *ran {
                    report(*section, size, index as u64, says, *ran);
                }
            }
        }
    }
}
