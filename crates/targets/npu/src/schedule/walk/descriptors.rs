//! Which task stands at an address: descriptors, and what they point to.

use super::super::fetches::Content;
use super::super::sections::Found;
use super::super::{Description, Fetched, Slice, Task, Unit, barriers_of, rules};
use super::{Resolved, Walk};
use crate::address::Target;
use crate::bytes::Record;
use crate::dma::{self, Descriptor};
use crate::lint::limits;
use crate::structures::TaskKind;
use chipless_model::Place;

impl Walk<'_, '_> {
    /// The task whose descriptor stands at an address.
    pub(super) fn resolve(&mut self, unit: Unit, address: u64) -> Resolved {
        if let Some(listed) = self.control.listed.get(&address) {
            for (section, index) in &listed.uses {
                self.tasks.count(*section, *index);
            }
            return Resolved::Task(Box::new(listed.task.clone()), listed.next);
        }
        match unit {
            Unit::Dma { engine, list } => {
                self.resolve_dma(engine, list.unwrap_or_default(), address)
            }
            Unit::Dpu(tile) => self.resolve_dpu(tile, address),
            Unit::Shave { tile, .. } => self.resolve_shave(tile, address),
            // Its tasks are listed.
            Unit::Firmware => Resolved::Broken,
        }
    }

    fn resolve_dma(&mut self, engine: u8, list: u8, address: u64) -> Resolved {
        let kind = if list == 0 {
            TaskKind::DmaDdr
        } else {
            TaskKind::DmaCmx
        };
        let target = self.image.resolve(address);
        let found = match target {
            Target::Section(section, offset) => match self.tasks.record(section, offset) {
                Some(found) if found.kind == kind && found.unit == engine as usize => {
                    Some((section, offset, found.index))
                }
                _ => None,
            },
            _ => None,
        };
        let Some((section, offset, index)) = found else {
            let unit = Unit::Dma {
                engine,
                list: Some(list),
            };
            let name = unit.name();
            let (rule, message) = match target {
                Target::Cmx { .. } => (
                    &rules::DMA_IN_CMX,
                    format!(
                        "{name} goes on at {address:#x}, in CMX, where a kernel would write the next link: not supported"
                    ),
                ),
                _ => (
                    &rules::DMA_LINK,
                    format!(
                        "{name} goes on at {address:#x}, where no descriptor of task.dma.{engine}.{list} starts"
                    ),
                ),
            };
            let place = Place::file().in_part(format!("task.dma.{engine}.{list}"));
            self.report(rule, place, message);
            return Resolved::Broken;
        };
        let bytes = Slice {
            section,
            offset,
            size: dma::SIZE as u64,
        };
        if self.tasks.count(section, index) > 1 {
            let message =
                format!("descriptor {index} is reached a second time: the links form a cycle");
            self.report(
                &rules::DMA_CYCLE,
                self.place(bytes, &format!("descriptor {index}")),
                message,
            );
            return Resolved::Broken;
        }
        let descriptor = Descriptor::decode(self.bytes(bytes));
        match descriptor.lengths() {
            Some((read, written)) if read == written => {}
            Some((read, written)) => {
                let message = format!("reads {read} bytes and writes {written}");
                self.report(
                    &rules::DMA_LENGTHS,
                    self.place(bytes, &format!("descriptor {index}")),
                    message,
                );
            }
            None => self.report(
                &rules::DMA_LENGTHS,
                self.place(bytes, &format!("descriptor {index}")),
                "moves more than 2^64 bytes",
            ),
        }
        if let Some(finding) = limits::transfer(
            &descriptor,
            self.image,
            &self.place(bytes, &format!("descriptor {index}")),
        ) {
            self.schedule.findings.push(finding);
        }
        let (link, waits, posts) = (descriptor.link, descriptor.waits, descriptor.posts);
        self.check_masks(bytes, waits | posts, &format!("descriptor {index}"));
        let task = Task::new(
            Description::Dma {
                descriptor: Box::new(descriptor),
                bytes,
            },
            waits,
            posts,
        );
        Resolved::Task(Box::new(task), link)
    }

    fn resolve_dpu(&mut self, tile: u8, address: u64) -> Resolved {
        let Some(variant) = self.fetched(tile, address, 224) else {
            return Resolved::NotYet;
        };
        let Some(Found {
            kind: TaskKind::Variant,
            index,
            ..
        }) = self.tasks.record(variant.from.section, variant.from.offset)
        else {
            let message = format!("dpu{tile} is sent to {address:#x}, where no variant starts");
            self.report(
                &rules::VARIANT_POINTER,
                self.place(variant.from, "variant"),
                message,
            );
            return Resolved::Broken;
        };
        let item = format!("variant {index}");
        let record = Record(self.bytes(variant.from));
        let word = record.u32(0x1c);
        let (waits, posts) = (record.mask(0x20, 0x28), record.mask(0x30, 0x38));
        let (pointer, full) = (u64::from(record.u16(0)) << 5, record.u64(0xc0));
        let cmx = 0x4000_0000 | 1 << (21 + tile);
        if full != cmx + pointer {
            let message = format!(
                "its invariant stands at {pointer:#x} of tile {tile} by invar_ptr, and at {full:#x} by its address"
            );
            self.report(
                &rules::INVARIANT_POINTER,
                self.place(variant.from, &item),
                message,
            );
            return Resolved::Broken;
        }
        let Some(invariant) = self.fetched(tile, full, 352) else {
            return Resolved::NotYet;
        };
        let Some(Found {
            kind: TaskKind::Invariant,
            index: which,
            ..
        }) = self
            .tasks
            .record(invariant.from.section, invariant.from.offset)
        else {
            let message =
                format!("its invariant pointer {full:#x} does not name the start of an invariant");
            self.report(
                &rules::INVARIANT_POINTER,
                self.place(variant.from, &item),
                message,
            );
            return Resolved::Broken;
        };
        if self.tasks.count(variant.from.section, index) > 1 {
            let message = format!("variant {index} is reached a second time: the chain is a cycle");
            self.report(
                &rules::CHAIN_CYCLE,
                self.place(variant.from, &item),
                message,
            );
            return Resolved::Broken;
        }
        self.tasks.count(invariant.from.section, which);
        self.check_masks(variant.from, waits | posts, &item);
        let next = if word >> 15 & 1 != 0 {
            cmx + (u64::from(word >> 16) << 5)
        } else {
            0
        };
        let task = Task::new(
            Description::Dpu {
                tile,
                variant,
                invariant,
            },
            waits,
            posts,
        );
        Resolved::Task(Box::new(task), next)
    }

    fn resolve_shave(&mut self, tile: u8, address: u64) -> Resolved {
        let Some(invocation) = self.fetched(tile, address, 96) else {
            return Resolved::NotYet;
        };
        let Some(Found {
            kind: TaskKind::Invocation,
            index,
            ..
        }) = self
            .tasks
            .record(invocation.from.section, invocation.from.offset)
        else {
            let message =
                format!("shave{tile} is sent to {address:#x}, where no invocation starts");
            self.report(
                &rules::INVOCATION_POINTER,
                self.place(invocation.from, "invocation"),
                message,
            );
            return Resolved::Broken;
        };
        let item = format!("invocation {index}");
        let record = Record(self.bytes(invocation.from));
        let (waits, posts, next) = (
            record.mask(40, 32),
            record.mask(56, 48),
            u64::from(record.u32(92)),
        );
        let pointer = record.u64(0);
        let Some(range) = self.fetched(tile, pointer, 40) else {
            return Resolved::NotYet;
        };
        let Some(Found {
            kind: TaskKind::Range,
            ..
        }) = self.tasks.record(range.from.section, range.from.offset)
        else {
            let message =
                format!("its range pointer {pointer:#x} does not name the start of a range");
            self.report(
                &rules::RANGE_POINTER,
                self.place(invocation.from, &item),
                message,
            );
            return Resolved::Broken;
        };
        if self.tasks.count(invocation.from.section, index) > 1 {
            let message =
                format!("invocation {index} is reached a second time: the chain is a cycle");
            self.report(
                &rules::CHAIN_CYCLE,
                self.place(invocation.from, &item),
                message,
            );
            return Resolved::Broken;
        }
        self.check_masks(invocation.from, waits | posts, &item);
        let task = Task::new(
            Description::Shave {
                tile,
                invocation,
                range,
            },
            waits,
            posts,
        );
        Resolved::Task(Box::new(task), next)
    }

    /// A descriptor in the CMX of this very tile, if the program has brought it there by now.
    fn fetched(&self, tile: u8, address: u64, size: u64) -> Option<Fetched> {
        let Target::Cmx { tiles, offset } = self.image.resolve(address) else {
            return None;
        };
        match self.fetches.at(tile, offset, size) {
            Content::Known(from) if tiles == 1 << tile => Some(Fetched {
                from,
                offset: Some(offset),
            }),
            _ => None,
        }
    }

    fn check_masks(&mut self, bytes: Slice, mask: u128, item: &str) {
        let limit = self.control.barrier_limit();
        if let Some(barrier) = barriers_of(mask).find(|b| u32::from(*b) >= limit) {
            let message = format!("names physical barrier {barrier}; the program has {limit}");
            self.report(&rules::BARRIER_ID, self.place(bytes, item), message);
        }
    }
}
