//! Sections of task descriptors, which of their records ran, and how many variants each invariant got.

use crate::bytes::Record;
use crate::image::Image;
use std::collections::BTreeMap;

/// What a section of descriptors holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `task.dma.ENGINE.LIST`
    Dma {
        /// Engine.
        engine: u8,
        /// 0 for sources in DDR, 1 for sources in CMX.
        list: u8,
    },
    /// `task.dpu.variant.TILE.0`
    Variant,
    /// `task.dpu.invariant.TILE.0`
    Invariant,
    /// `task.shave.invocation.TILE.0`
    Invocation,
    /// `task.shave.range.TILE.0`
    Range,
}

impl Kind {
    fn of(name: &str) -> Option<Kind> {
        if let Some(rest) = name.strip_prefix("task.dma.") {
            let (engine, list) = rest.split_once('.')?;
            return Some(Kind::Dma { engine: engine.parse().ok()?, list: list.parse().ok()? });
        }
        let kinds = [
            ("task.dpu.variant.", Kind::Variant),
            ("task.dpu.invariant.", Kind::Invariant),
            ("task.shave.invocation.", Kind::Invocation),
            ("task.shave.range.", Kind::Range),
        ];
        kinds.into_iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, kind)| kind)
    }

    /// Bytes of a record.
    pub(super) fn size(self) -> u64 {
        match self {
            Kind::Dma { .. } | Kind::Variant => 224,
            Kind::Invariant => 352,
            Kind::Invocation => 96,
            Kind::Range => 40,
        }
    }

    /// What a record is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Dma { .. } => "descriptor",
            Kind::Variant => "variant",
            Kind::Invariant => "invariant",
            Kind::Invocation => "invocation",
            Kind::Range => "range",
        }
    }

    /// Whether its records are tasks, rather than parts of tasks.
    fn is_task(self) -> bool {
        matches!(self, Kind::Dma { .. } | Kind::Variant | Kind::Invocation)
    }
}

#[derive(Debug)]
struct TaskSection {
    kind: Kind,
    /// How often each record was used.
    uses: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct TaskSections(BTreeMap<usize, TaskSection>);

impl TaskSections {
    pub(super) fn new(image: &Image<'_>) -> TaskSections {
        let sections = image.sections.iter().enumerate().filter_map(|(index, section)| {
            let kind = Kind::of(section.name)?;
            Some((index, TaskSection { kind, uses: vec![0; section.bytes.len() / kind.size() as usize] }))
        });
        TaskSections(sections.collect())
    }

    /// The record that starts at this offset of a section.
    pub(super) fn record(&self, section: usize, offset: u64) -> Option<(Kind, u64)> {
        let TaskSection { kind, uses } = self.0.get(&section)?;
        let index = offset / kind.size();
        (offset.is_multiple_of(kind.size()) && (index as usize) < uses.len()).then_some((*kind, index))
    }

    /// Counts a use of a record.
    pub(super) fn count(&mut self, section: usize, index: u64) -> u32 {
        let Some(uses) = self.0.get_mut(&section).and_then(|s| s.uses.get_mut(index as usize)) else { return 0 };
        *uses += 1;
        *uses
    }

    /// Counts a task; `false` if it has run before.
    pub(super) fn run(&mut self, section: usize, index: u64) -> bool {
        self.count(section, index) <= 1
    }

    /// Runs of consecutive tasks that never ran: section, kind, first index, how many.
    pub(super) fn unreached(&self, mut report: impl FnMut(usize, Kind, u64, usize)) {
        for (section, TaskSection { kind, uses }) in self.0.iter().filter(|(_, s)| s.kind.is_task()) {
            let mut at = 0;
            for run in uses.chunk_by(|a, b| (*a == 0) == (*b == 0)) {
                if run[0] == 0 {
                    report(*section, *kind, at as u64, run.len());
                }
                at += run.len();
            }
        }
    }

    /// Invariants whose number of variants differs from what they say: section, index, says, ran.
    pub(super) fn miscounted(&self, image: &Image<'_>, mut report: impl FnMut(usize, u64, u32, u32)) {
        for (section, TaskSection { uses, .. }) in self.0.iter().filter(|(_, s)| s.kind == Kind::Invariant) {
            let records = image.sections[*section].bytes.chunks_exact(Kind::Invariant.size() as usize);
            for (index, (record, ran)) in records.zip(uses).enumerate() {
                let says = u32::from(Record(record).u16(0x158));
                if says != *ran {
                    report(*section, index as u64, says, *ran);
                }
            }
        }
    }
}
