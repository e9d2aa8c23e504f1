//! What the firmware is told: barriers, work items, what to load and enqueue first, which barrier ends the inference.

use super::{Task, Unit, rules};
use crate::document::Document;
use crate::generation::NPU4000;
use crate::image::Image;
use crate::inference::Inference;
use crate::lint::limits;
use crate::structures::{NO_BARRIER, TaskKind};
use chipless_model::{Finding, Place};
use std::collections::HashMap;
use std::mem::offset_of;
use std::ops::Range;

/// Control structures of a blob, checked.
#[derive(Debug)]
pub(crate) struct Control {
    /// Virtual barriers.
    pub(crate) barriers: Vec<VirtualBarrier>,
    /// For each physical barrier that the firmware loads: its virtual barriers in order of use.
    pub(crate) chains: Vec<Vec<usize>>,
    /// Work items.
    pub(crate) work_items: Vec<WorkItem>,
    /// Work items that the firmware enqueues at the start: the first ones.
    pub(crate) bootstrap_work_items: usize,
    /// Virtual barrier whose producers end the inference; where there is none, it ends with its last task.
    pub(crate) last_barrier: Option<usize>,
    /// Tiles that the program uses.
    pub(crate) tiles: u8,
    /// Tiles that it was compiled for: each brings its barriers, even where nothing computes on it.
    compiled_tiles: u8,
    /// Whether the program's own DMAs program barriers and enqueue work, rather than the firmware.
    pub(crate) managed_by_program: bool,
    /// Whether each SHAVE of a tile has a list of invocations of its own (`NPU_TURBO`).
    pub(crate) two_lists: bool,
    /// Physical barriers that each tile brings.
    barriers_a_tile: u32,
    /// Tasks by the address of their descriptor, where the program lists them all.
    pub(crate) listed: HashMap<u64, Listed>,
}

/// A task of a list.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The task.
    pub(crate) task: Task,
    /// Address of the next one of its piece; 0 where there is none.
    pub(crate) next: u64,
    /// The records that it takes: section and number.
    pub(crate) uses: Vec<(usize, u64)>,
}

/// One use of a physical barrier.
#[derive(Debug)]
pub(crate) struct VirtualBarrier {
    /// Tasks that produce it.
    pub(crate) producers: u32,
    /// Tasks that consume it.
    pub(crate) consumers: u32,
    /// Physical barrier.
    pub(crate) physical: u8,
    /// Work items enqueued when it retires.
    pub(crate) releases: Range<usize>,
    /// Where the file has it.
    pub(crate) place: Place,
}

/// A pointer to the first descriptor of a piece of a queue.
#[derive(Debug)]
pub(crate) struct WorkItem {
    /// The engine.
    pub(crate) unit: Unit,
    /// Where the descriptor is.
    pub(crate) address: u64,
    /// Where the file has the work item.
    pub(crate) place: Place,
}

impl Control {
    /// Reads the control structures and checks what [`Inference::read`] does not.
    pub(crate) fn read(
        document: &Document<'_>,
        image: &Image<'_>,
        inference: &Inference<'_>,
    ) -> Result<Control, Vec<Finding>> {
        let mut findings = Vec::new();
        let managed_by_program = match inference.managed.programming_mode {
            0 => false,
            3 => true,
            mode => {
                let field =
                    offset_of!(crate::structures::ManagedInference, programming_mode) as u64;
                let place = inference_place(image, inference, field, 1).at("programming mode");
                findings.push(rules::MODE.at(
                    place,
                    format!("programming mode {mode} is not supported; modes 0 and 3 are"),
                ));
                false
            }
        };
        let mut control = Control {
            tiles: image.tiles(),
            compiled_tiles: document.tiles().max(image.tiles()),
            barriers: Vec::new(),
            chains: Vec::new(),
            work_items: Vec::new(),
            bootstrap_work_items: inference.managed.bootstrap_work_items.get() as usize,
            last_barrier: Some(inference.managed.final_barrier.get() as usize),
            managed_by_program,
            barriers_a_tile: barriers_a_tile(document),
            listed: HashMap::new(),
            two_lists: image.sections().iter().any(|section| {
                TaskKind::of_section(&section.name)
                    .is_some_and(|found| found.kind.has_second_list() && found.list == 1)
            }),
        };
        control.read_work_items(image, inference, &mut findings);
        control.read_barriers(image, inference, &mut findings);
        if findings.is_empty() && !managed_by_program {
            control.read_bootstrap(image, inference, &mut findings);
        }
        if findings.is_empty() {
            Ok(control)
        } else {
            Err(findings)
        }
    }

    /// Nothing yet, for a program that lists its tasks.
    pub(crate) fn listed(document: &Document<'_>, image: &Image<'_>) -> Control {
        Control {
            barriers: Vec::new(),
            chains: Vec::new(),
            work_items: Vec::new(),
            bootstrap_work_items: 0,
            last_barrier: None,
            tiles: image.tiles(),
            compiled_tiles: document.tiles().max(image.tiles()),
            managed_by_program: false,
            two_lists: false,
            barriers_a_tile: barriers_a_tile(document),
            listed: HashMap::new(),
        }
    }

    /// The SHAVEs of a tile, by the number of their list.
    pub(crate) fn shave(&self, tile: u8, list: u8) -> Unit {
        Unit::Shave {
            tile,
            list: self.two_lists.then_some(list),
        }
    }

    /// Physical barriers that the program has.
    pub(crate) fn barrier_limit(&self) -> u32 {
        self.barriers_a_tile * u32::from(self.compiled_tiles.max(1))
    }

    /// The virtual barrier that is the `n`th use of a physical one, in the order of the file.
    pub(crate) fn nth_use(&self, physical: u8, n: usize) -> Option<u32> {
        self.barriers
            .iter()
            .enumerate()
            .filter(|(_, b)| b.physical == physical)
            .nth(n)
            .map(|(id, _)| id as u32)
    }

    fn read_work_items(
        &mut self,
        image: &Image<'_>,
        inference: &Inference<'_>,
        findings: &mut Vec<Finding>,
    ) {
        let (section, items) = inference.work_items;
        for (index, item) in items.iter().enumerate() {
            let place = image
                .place(
                    section,
                    index as u64 * size_of_val(item) as u64,
                    size_of_val(item) as u64,
                )
                .at(format!("work item {index}"));
            let unit = match item.kind {
                0 | 4 => Unit::Dpu(item.unit),
                1 => Unit::Dma {
                    engine: item.unit,
                    list: Some(item.sub_unit),
                },
                2 if item.sub_unit == 0 || (self.two_lists && item.sub_unit == 1) => {
                    self.shave(item.unit, item.sub_unit)
                }
                2 => {
                    let message = format!(
                        "is for SHAVE {} of tile {} alone, which is not supported",
                        item.sub_unit, item.unit
                    );
                    findings.push(rules::SHAVE_UNIT.at(place, message));
                    continue;
                }
                kind => {
                    findings.push(rules::MEDIA.at(
                        place,
                        format!("work items of kind {kind} (media) are not supported"),
                    ));
                    continue;
                }
            };
            if !matches!(unit, Unit::Dma { .. }) && item.unit >= self.tiles {
                let message = format!("is for tile {}; the program uses {}", item.unit, self.tiles);
                findings.push(rules::TILE.at(place, message));
                continue;
            }
            self.work_items.push(WorkItem {
                unit,
                address: item.descriptor.get(),
                place,
            });
        }
    }

    fn read_barriers(
        &mut self,
        image: &Image<'_>,
        inference: &Inference<'_>,
        findings: &mut Vec<Finding>,
    ) {
        let (section, barriers) = inference.barriers;
        for (index, barrier) in barriers.iter().enumerate() {
            let size = size_of_val(barrier) as u64;
            let place = image
                .place(section, index as u64 * size, size)
                .at(format!("barrier {index}"));
            let (physical, limit) = (barrier.real_id, self.barrier_limit());
            if u32::from(physical) >= limit {
                findings.push(rules::BARRIER_ID.at(
                    place.clone(),
                    format!("uses physical barrier {physical}; the program has {limit}"),
                ));
            }
            findings.extend(limits::barrier(
                barrier.producers.get().into(),
                barrier.consumers.get().into(),
                &place,
            ));
            let first = barrier.work_item.get() as usize;
            self.barriers.push(VirtualBarrier {
                producers: u32::from(barrier.producers.get()),
                consumers: u32::from(barrier.consumers.get()),
                physical,
                releases: first..first + barrier.enqueue_count.get() as usize,
                place,
            });
        }
    }

    /// The virtual barriers that the firmware loads first, and what follows each.
    fn read_bootstrap(
        &mut self,
        image: &Image<'_>,
        inference: &Inference<'_>,
        findings: &mut Vec<Finding>,
    ) {
        let (section, bootstrap) = inference.bootstrap;
        let next = |barrier: &usize| {
            let next = inference.barriers.1[*barrier].next_same_id.get();
            (next != NO_BARRIER).then_some(next as usize)
        };
        let mut loaded = vec![false; self.barriers.len()];
        let mut in_use = [false; 256];
        for (index, id) in bootstrap.iter().enumerate() {
            let id = id.get() as usize;
            let physical = self.barriers[id].physical;
            if std::mem::replace(&mut in_use[physical as usize], true) {
                let place = image
                    .place(section, index as u64 * 4, 4)
                    .at(format!("entry {index}"));
                let message = format!(
                    "loads barrier {id} into physical barrier {physical}, which has been loaded already"
                );
                findings.push(rules::BOOTSTRAP.at(place, message));
                continue;
            }
            let chain: Vec<usize> = std::iter::successors(Some(id), next).collect();
            for barrier in &chain {
                loaded[*barrier] = true;
            }
            self.chains.push(chain);
        }
        if findings.is_empty() {
            for (barrier, _) in self
                .barriers
                .iter()
                .zip(&loaded)
                .filter(|(_, loaded)| !**loaded)
            {
                let message = format!(
                    "is never programmed: neither the start nor another use of physical barrier {} leads to it",
                    barrier.physical
                );
                findings.push(rules::BARRIER_UNPROGRAMMED.at(barrier.place.clone(), message));
            }
        }
    }
}

fn barriers_a_tile(document: &Document<'_>) -> u32 {
    document.generation().unwrap_or(NPU4000).barriers_a_tile
}

fn inference_place(image: &Image<'_>, inference: &Inference<'_>, field: u64, size: u64) -> Place {
    match image.locate(inference.mapped.managed.address.get()) {
        Some((section, offset)) => image.place(section, offset + field, size),
        None => Place::file(),
    }
}
