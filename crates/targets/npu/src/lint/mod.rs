//! What is wrong with a program, or odd, though it could be lowered: passes over what was walked and lowered. What keeps a
//! program from being lowered is found on the way.

pub(crate) mod advice;
pub(crate) mod limits;
mod rotation;
mod tables;

use crate::dpu::Workload;
use crate::image::Image;
use crate::inference::Inference;
use crate::kernels::{Cmx, Constants};
use crate::schedule::{Control, Description, Schedule, Slice};
use chipless_model::{Finding, Place, Program, Rule, TaskId};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// What a program was made from.
#[derive(Debug)]
pub(crate) struct Lint<'i> {
    pub(crate) image: &'i Image<'i>,
    pub(crate) inference: Option<Inference<'i>>,
    pub(crate) control: Control,
    pub(crate) schedule: Schedule,
    /// The on-chip memory of its tiles.
    pub(crate) cmx: Cmx,
    /// Tasks of the program by their position in the walk; `None` for those that could not be lowered.
    pub(crate) tasks: Vec<Option<TaskId>>,
    /// What arrives in on-chip memory, and the DPU workloads.
    pub(crate) constants: Arc<OnceLock<Constants<'i>>>,
    /// What was found on the way.
    pub(crate) findings: Vec<Finding>,
}

impl chipless_model::Lint for Lint<'_> {
    fn check(&self, program: &Program<'_>) -> Vec<Finding> {
        let mut findings = self.findings.clone();
        findings.extend(check(&Subject {
            lint: self,
            program,
        }));
        findings
    }
}

/// A program with what it was made from.
pub(crate) struct Subject<'s, 'i, 'p> {
    lint: &'s Lint<'i>,
    program: &'s Program<'p>,
}

impl<'i> Deref for Subject<'_, 'i, '_> {
    type Target = Lint<'i>;

    fn deref(&self) -> &Lint<'i> {
        self.lint
    }
}

impl Subject<'_, '_, '_> {
    /// The DPU workloads, by their position in the walk.
    fn workloads(&self) -> &[(usize, Arc<Workload>)] {
        self.constants.get().map_or(&[], Constants::workloads)
    }

    fn bytes(&self, slice: Slice) -> &[u8] {
        &self.image.bytes(slice.section)[slice.offset as usize..][..slice.size as usize]
    }

    /// Where the task at a position of the walk stands.
    fn place(&self, walked: usize) -> Place {
        self.tasks[walked].map_or_else(Place::file, |task| self.program.place(task))
    }
}

/// Every rule of the passes.
pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
    let passes = [limits::ALL, advice::ALL, rotation::ALL, tables::ALL];
    passes.into_iter().flatten().copied()
}

/// What there is to say.
fn check(subject: &Subject<'_, '_, '_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut layers = limits::Layers::default();
    for (walked, workload) in subject.workloads() {
        let Description::Dpu {
            tile,
            variant,
            invariant,
        } = subject.schedule.tasks[*walked].description
        else {
            continue;
        };
        let place = || subject.place(*walked);
        findings.extend(limits::workload(workload, &place));
        let table = workload.weight_table_ranges();
        findings.extend(tables::check(subject, *walked, tile, table, &place));
        findings.extend(layers.add(invariant.from, workload, *walked, subject));
        findings.extend(advice::not_executed(workload, &place));
        findings.extend(advice::weight_count(subject.bytes(variant.from), &place));
        let (record, barriers) = (
            subject.bytes(invariant.from),
            subject.control.barriers.len(),
        );
        findings.extend(advice::hint(record, 0x148, barriers, place));
    }
    findings.extend(rotation::check(subject));
    advice::queues(subject, &mut findings);
    if let Some(inference) = &subject.inference {
        findings.extend(advice::task_storage(inference, subject.image));
    }
    findings.extend(advice::final_consumers(
        subject.program,
        subject.control.managed_by_program,
    ));
    findings
}
