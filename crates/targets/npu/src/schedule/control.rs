//! What the firmware is told: barriers, work items, what to load and enqueue first, which barrier ends the inference.

use super::{Unit, rules};
use crate::address::{self, Target};
use crate::bytes::Record;
use crate::image::Image;
use chipless_model::{Finding, Place};
use std::ops::Range;

/// Control structures of a blob, checked.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// Virtual barriers (`program.managedBarrier`, 24 bytes each).
    pub(crate) barriers: Vec<VirtualBarrier>,
    /// For each physical barrier in use: its virtual barriers in order of use.
    pub(crate) chains: Vec<Vec<usize>>,
    /// Work items (`program.workItem`, 64 bytes each).
    pub(crate) work_items: Vec<WorkItem>,
    /// Work items that the firmware enqueues at the start.
    pub(crate) bootstrap_work_items: usize,
    /// Virtual barrier whose producers end the inference.
    pub(crate) last_barrier: u32,
    /// Tiles that the program uses.
    pub(crate) tiles: u8,
    /// Who programs barriers and enqueues work: 0 the firmware, 3 the program's own DMAs.
    mode: u8,
}

/// One use of a physical barrier.
#[derive(Debug)]
pub(crate) struct VirtualBarrier {
    /// Virtual barrier that takes over when this one retires.
    next: Option<u32>,
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

const BARRIER_SIZE: usize = 24;
const WORK_ITEM_SIZE: usize = 64;
/// Of `VpuManagedMappedInference` in the section of the mapped inference (NPU4, mapped inference 11.4).
const MANAGED: usize = 1728;

impl Control {
    /// Reads and checks the control structures.
    pub(crate) fn read(image: &Image<'_>) -> Result<Control, Vec<Finding>> {
        let tiles = image.tiles();
        let managed = image.bytes_of("program.mapped_inference");
        let header = Record(managed.get(MANAGED..).unwrap_or_default());
        let mut control = Control { tiles, mode: header.u8(415), last_barrier: header.u32(4), ..Control::default() };
        let mut findings = Vec::new();
        if !matches!(control.mode, 0 | 3) {
            let place = image.place("program.mapped_inference", MANAGED as u64 + 415, 1, "prog_mode");
            findings.push(rules::MODE.at(place, format!("programming mode {} is not supported; modes 0 and 3 are", control.mode)));
        }
        control.read_work_items(image, &mut findings);
        control.read_barriers(image, &mut findings);
        control.bootstrap_work_items = header.u32(696) as usize;
        if control.bootstrap_work_items > control.work_items.len() {
            let place = image.place("program.mapped_inference", MANAGED as u64 + 696, 4, "bootstrap_workitems_count");
            let message = format!("the firmware is to enqueue {} work items; there are {}", control.bootstrap_work_items, control.work_items.len());
            findings.push(rules::WORK_ITEM_RANGE.at(place, message));
        }
        if control.last_barrier as usize >= control.barriers.len() {
            let place = image.place("program.mapped_inference", MANAGED as u64 + 4, 4, "final_barrier");
            let message = format!("the final barrier is {}; there are {}", control.last_barrier, control.barriers.len());
            findings.push(rules::FINAL_BARRIER.at(place, message));
        }
        if findings.is_empty() && !control.managed_by_program() {
            control.read_bootstrap(image, &mut findings);
        }
        if findings.is_empty() { Ok(control) } else { Err(findings) }
    }

    /// Whether the program's own DMAs program barriers and enqueue work.
    pub(crate) fn managed_by_program(&self) -> bool {
        self.mode == 3
    }

    /// The virtual barrier that is the `n`th use of a physical one, in the order of the file.
    pub(crate) fn nth_use(&self, physical: u8, n: usize) -> Option<u32> {
        self.barriers.iter().enumerate().filter(|(_, b)| b.physical == physical).nth(n).map(|(id, _)| id as u32)
    }

    fn read_work_items(&mut self, image: &Image<'_>, findings: &mut Vec<Finding>) {
        const SECTION: &str = "program.workItem";
        for (index, record) in image.bytes_of(SECTION).chunks_exact(WORK_ITEM_SIZE).enumerate() {
            let place = image.place(SECTION, (index * WORK_ITEM_SIZE) as u64, WORK_ITEM_SIZE as u64, &format!("work item {index}"));
            let r = Record(record);
            let (address, unit, list) = (r.u64(0), r.u8(9), r.u8(10));
            let fits = if r.u8(8) == 1 { unit < 2 && list < 2 } else { unit < self.tiles };
            let unit = match r.u8(8) {
                0 => Unit::Dpu(unit),
                1 => Unit::Dma { engine: unit, list },
                2 => Unit::Shave(unit),
                3 => {
                    findings.push(rules::MEDIA.at(place, "media (M2I) work items are not supported"));
                    continue;
                }
                kind => {
                    findings.push(rules::WORK_ITEM_TYPE.at(place, format!("type {kind}; 0 DPU, 1 DMA, 2 SHAVE and 3 media are known")));
                    continue;
                }
            };
            if !fits {
                let message = format!("{} does not exist; the program has {} tiles, 2 DMA engines with 2 lists each", unit.name(), self.tiles);
                findings.push(rules::WORK_ITEM_UNIT.at(place, message));
                continue;
            }
            if let Err(message) = Control::check_address(image, unit, address) {
                findings.push(rules::WORK_ITEM_ADDRESS.at(place, message));
                continue;
            }
            self.work_items.push(WorkItem { unit, address, place });
        }
    }

    /// A work item points to the start of a DMA descriptor of its list, or into the CMX of its own tile.
    fn check_address(image: &Image<'_>, unit: Unit, address: u64) -> Result<(), String> {
        match (unit, address::resolve(image, address)) {
            (Unit::Dma { engine, list }, Target::Section(section, offset)) => {
                let (name, expected) = (image.sections[section].name, format!("task.dma.{engine}.{list}"));
                if name != expected {
                    return Err(format!("{} is sent to {address:#x} in {name}; its descriptors are in {expected}", unit.name()));
                }
                if !offset.is_multiple_of(224) {
                    return Err(format!("{} is sent to byte {offset} of {name}, which is {} bytes into a descriptor", unit.name(), offset % 224));
                }
                Ok(())
            }
            (Unit::Dpu(tile) | Unit::Shave(tile), Target::Cmx { tiles, .. }) if tiles == 1 << tile => Ok(()),
            (Unit::Dpu(tile) | Unit::Shave(tile), _) => Err(format!("{} is sent to {address:#x}, which is not in the CMX of tile {tile}", unit.name())),
            _ => Err(format!("{} is sent to {address:#x}, where no section is", unit.name())),
        }
    }

    fn read_barriers(&mut self, image: &Image<'_>, findings: &mut Vec<Finding>) {
        const SECTION: &str = "program.managedBarrier";
        for (index, record) in image.bytes_of(SECTION).chunks_exact(BARRIER_SIZE).enumerate() {
            let place = image.place(SECTION, (index * BARRIER_SIZE) as u64, BARRIER_SIZE as u64, &format!("barrier {index}"));
            let r = Record(record);
            let physical = r.u8(8);
            let limit = 16 * u32::from(self.tiles);
            if u32::from(physical) >= limit {
                findings.push(rules::BARRIER_ID.at(place.clone(), format!("physical barrier {physical}; {} tiles have {limit}", self.tiles)));
            }
            let (first, count) = (r.u32(12) as usize, r.u32(16) as usize);
            if count > 0 && first.checked_add(count).is_none_or(|end| end > self.work_items.len()) {
                let message = format!("enqueues work items {first}..{}; there are {}", first.saturating_add(count), self.work_items.len());
                findings.push(rules::WORK_ITEM_RANGE.at(place.clone(), message));
            }
            self.barriers.push(VirtualBarrier {
                next: Some(r.u32(0)).filter(|n| *n != u32::MAX),
                producers: u32::from(r.u16(4)),
                consumers: u32::from(r.u16(6)),
                physical,
                releases: if count > 0 { first..first.saturating_add(count) } else { 0..0 },
                place,
            });
        }
        for (index, barrier) in self.barriers.iter().enumerate() {
            let Some(next) = barrier.next else { continue };
            let message = match self.barriers.get(next as usize) {
                None => format!("is followed by barrier {next}; there are {}", self.barriers.len()),
                Some(_) if next as usize <= index => format!("is followed by barrier {next}, which does not come after it"),
                Some(other) if other.physical != barrier.physical => {
                    format!("uses physical barrier {} and is followed by barrier {next}, which uses {}", barrier.physical, other.physical)
                }
                Some(_) => continue,
            };
            findings.push(rules::BARRIER_NEXT.at(barrier.place.clone(), message));
        }
    }

    /// The virtual barriers that the firmware loads first, and what follows each.
    fn read_bootstrap(&mut self, image: &Image<'_>, findings: &mut Vec<Finding>) {
        const SECTION: &str = "program.bootstrap";
        let mut loaded = vec![false; self.barriers.len()];
        let mut in_use = [false; 256];
        for (index, word) in image.bytes_of(SECTION).chunks_exact(4).enumerate() {
            let place = image.place(SECTION, index as u64 * 4, 4, &format!("entry {index}"));
            let id = Record(word).u32(0) as usize;
            let Some(barrier) = self.barriers.get(id) else {
                findings.push(rules::BOOTSTRAP.at(place, format!("names barrier {id}; there are {}", self.barriers.len())));
                continue;
            };
            if std::mem::replace(&mut in_use[barrier.physical as usize], true) {
                let message = format!("loads barrier {id} into physical barrier {}, which has been loaded already", barrier.physical);
                findings.push(rules::BOOTSTRAP.at(place, message));
                continue;
            }
            let chain: Vec<usize> =
                std::iter::successors(Some(id), |at| self.barriers[*at].next.map(|n| n as usize)).collect();
            chain.iter().for_each(|b| loaded[*b] = true);
            self.chains.push(chain);
        }
        if findings.is_empty() {
            for (barrier, _) in self.barriers.iter().zip(&loaded).filter(|(_, loaded)| !**loaded) {
                let message = format!("is never programmed: neither program.bootstrap nor another use of physical barrier {} leads to it", barrier.physical);
                findings.push(rules::BARRIER_UNPROGRAMMED.at(barrier.place.clone(), message));
            }
        }
    }
}
