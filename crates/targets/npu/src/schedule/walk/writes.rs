//! DMAs that write registers: they enqueue work and configure barriers.

use super::super::registers::{self, Write};
use super::super::{Configuration, Slice, Task, rules};
use super::Walk;
use crate::address::Target;
use crate::bytes::Record;
use crate::dma::{Descriptor, Operation};

/// 32-bit writes to registers that one DMA may make: the largest seen programs all barriers four deep.
const REGISTER_WRITES: u64 = 4096;

impl Walk<'_, '_> {
    /// Follows a DMA that writes hardware registers.
    pub(super) fn write_registers(
        &mut self,
        descriptor: &Descriptor,
        bytes: Slice,
        task: &mut Task,
    ) {
        let Some(Target::Register(_)) = descriptor.destination(self.image) else {
            return;
        };
        let place = self.place(bytes, "register write");
        let Operation::Move {
            source,
            from,
            destination,
            to,
            conversion: None,
        } = &descriptor.operation
        else {
            return self.report(
                &rules::REGISTER_WRITE,
                place,
                "registers are written by a conversion, a gather or a fill",
            );
        };
        let size = to.bytes().unwrap_or(u64::MAX);
        let base = match self.image.resolve(*source) {
            Target::Section(section, offset)
                if to.run % 4 == 0 && from.run % 4 == 0 && size <= 4 * REGISTER_WRITES =>
            {
                from.shifted(offset as i64)
                    .filter(|p| p.fits(self.image.bytes(section).len() as u64))
                    .map(|p| (section, p))
            }
            _ => None,
        };
        let (Some((section, from)), Some(to)) = (base, to.shifted(*destination as i64)) else {
            return self.report(
                &rules::REGISTER_WRITE,
                place,
                "registers are written with bytes that are not 32-bit words of the file",
            );
        };
        let contents = self.image.bytes(section);
        let words = from
            .runs()
            .flat_map(|start| (start..start + from.run).step_by(4));
        let values: Vec<u32> = words
            .map(|at| Record(&contents[at as usize..]).u32(0))
            .collect();
        let places = to
            .runs()
            .flat_map(|start| (start..start + to.run).step_by(4));
        for ((register, value), at) in places
            .zip(values)
            .zip(from.runs().flat_map(|s| (s..s + from.run).step_by(4)))
        {
            match registers::decode(self.control, register, value) {
                Write::Nothing => {}
                Write::Enqueue(unit, start) => {
                    let piece = self.piece(unit, start, place.clone());
                    task.releases.push(piece);
                }
                Write::Configure {
                    barrier,
                    producers,
                    consumers,
                    last,
                } => {
                    let id = self.schedule.configurations.len();
                    let uses = self
                        .schedule
                        .configurations
                        .iter()
                        .filter(|c| c.barrier == barrier)
                        .count();
                    let number = self.control.nth_use(barrier, uses).unwrap_or(id as u32);
                    let place = self
                        .image
                        .place(section, at, 4)
                        .at(format!("configuration of barrier {barrier}"));
                    self.schedule.configurations.push(Configuration {
                        barrier,
                        number,
                        producers,
                        consumers,
                        releases: 0..0,
                        place,
                    });
                    task.configures.push(id);
                    if last {
                        self.schedule.last = Some(id);
                    }
                }
                Write::Unknown => {
                    let message = format!(
                        "{value:#x} is written to {register:#x}, which is no register that is known"
                    );
                    self.report(&rules::REGISTER_WRITE, place.clone(), message);
                    return;
                }
            }
        }
    }
}
