//! Tasks of the DMA engines.

use super::counted::of_two_bytes;
use super::{Cost, Lowering};
use crate::address::{self, Target};
use crate::dma::{Descriptor, Operation};
use crate::kernels::{self, Source, Transfer};
use crate::schedule::Slice;
use chipless_model::{BufferId, Kernel, Pattern, Place, ResourceId, Role, Time};

impl<'i> Lowering<'_, 'i> {
    pub(super) fn transfer(
        &mut self,
        descriptor: &Descriptor,
        bytes: Slice,
        place: &Place,
    ) -> (Box<dyn Kernel + 'i>, Cost) {
        let operation = &descriptor.operation;
        let (mut name, fixed) = self.begin(operation);
        let source = self.source(operation, place);
        let destinations = self.destinations(operation, place).unwrap_or_else(|| {
            name = kernels::REGISTER_WRITE;
            Vec::new()
        });
        let transfer = Transfer {
            descriptors: self.in_ddr(bytes),
            source,
            destinations,
            name,
        };
        let counted = if name == kernels::FETCH {
            0
        } else {
            self.counts_as(descriptor)
        };
        let cost = Cost {
            fixed,
            moved: descriptor.moved(),
            counted,
            narrower: self.narrower(descriptor),
        };
        self.rest_on(operation, name, &cost);
        (Box::new(transfer), cost)
    }

    /// The name of an operation, and the time that it takes before any byte moves.
    fn begin(&self, operation: &Operation) -> (&'static str, Time) {
        let machine = &self.options.machine;
        let of_cmx = |cycles| Time::from_cycles(cycles, machine.clock.cmx());
        let latency = if within_cmx(operation) {
            of_cmx(machine.dma.cmx_latency)
        } else {
            Time::from_ns(machine.dma.latency)
        };
        match operation {
            Operation::Synchronise => ("sync", of_cmx(machine.dma.synchronise)),
            Operation::Move { source, .. } if self.is_descriptor(*source) => {
                let fetch = machine.dma.latency * machine.dma.fetch;
                (kernels::FETCH, Time::from_ns(fetch))
            }
            Operation::Move { .. } | Operation::Unsupported { .. } => ("dma", latency),
            Operation::Fill { .. } => (kernels::FILL, latency),
            Operation::Gather { .. } => ("gather", latency),
        }
    }

    /// Whether descriptors of tasks stand at an address.
    fn is_descriptor(&self, address: u64) -> bool {
        match self.image.resolve(address) {
            Target::Section(section, _) => self.image.sections()[section].name.starts_with("task."),
            _ => false,
        }
    }

    /// Where the bytes of a transfer come from.
    fn source(&mut self, operation: &Operation, place: &Place) -> Source {
        match operation {
            Operation::Synchronise => Source::None,
            Operation::Unsupported { what, .. } => Source::Unsupported(what),
            Operation::Fill { value, .. } => Source::Fill(*value),
            Operation::Move {
                source,
                from,
                conversion,
                ..
            } => match self.one(*source, "source", place) {
                Some((buffer, offset)) => {
                    Source::Walk(buffer, self.shifted(from, offset, place), *conversion)
                }
                None => Source::None,
            },
            Operation::Gather {
                source,
                row,
                list,
                count,
                ..
            } => {
                match (
                    self.one(*source, "source", place),
                    self.one(*list, "list of indices", place),
                ) {
                    (Some((buffer, offset)), Some((list, start))) => {
                        let rows = kernels::rows_from(
                            offset,
                            *row,
                            self.build.program.buffers[buffer].size,
                        );
                        Source::Rows {
                            buffer,
                            offset,
                            row: *row,
                            rows,
                            list: (list, kernels::list(start, *count)),
                        }
                    }
                    _ => Source::None,
                }
            }
        }
    }

    /// Where the bytes of a transfer go; `None` for a write to registers.
    fn destinations(
        &mut self,
        operation: &Operation,
        place: &Place,
    ) -> Option<Vec<(BufferId, Pattern)>> {
        Some(match operation {
            Operation::Move {
                destination, to, ..
            }
            | Operation::Gather {
                destination, to, ..
            }
            | Operation::Fill {
                destination, to, ..
            } => {
                if let Target::Register(_) = self.image.resolve(*destination) {
                    return None;
                }
                self.all(*destination, place)
                    .into_iter()
                    .map(|(buffer, offset)| (buffer, self.shifted(to, offset, place)))
                    .collect()
            }
            Operation::Unsupported { destination, .. } => self.around(*destination),
            Operation::Synchronise => Vec::new(),
        })
    }

    /// Notes the figures that the time of a transfer rests on.
    fn rest_on(&mut self, operation: &Operation, name: &str, cost: &Cost) {
        let begins = match name {
            "sync" => &["clock.cmx", "dma.synchronise"][..],
            kernels::FETCH => &["dma.latency", "dma.fetch"],
            _ if within_cmx(operation) => &["clock.cmx", "dma.cmx_latency"],
            _ => &["dma.latency"],
        };
        self.rests.on(begins.iter().copied());
        if cost.counted > 0 {
            self.rests.on([
                "clock.cmx",
                "dma.bytes_per_cycle",
                "dma.ddr_bytes_per_second",
            ]);
        }
        let (host, constants) = (self.narrower.host, self.narrower.constants);
        match cost.narrower {
            Some(narrower) if Some(narrower) == host => {
                self.rests.on(["dma.host_bytes_per_second"]);
            }
            Some(narrower) if Some(narrower) == constants => {
                self.rests.on(["dma.constant_bytes_per_second"]);
            }
            _ => {}
        }
    }

    /// What a transfer passes besides DDR, where the machine has anything narrower.
    fn narrower(&self, descriptor: &Descriptor) -> Option<ResourceId> {
        let Operation::Move {
            source,
            destination,
            ..
        } = &descriptor.operation
        else {
            return None;
        };
        let role = |address| match self.image.resolve(address) {
            Target::Section(section, _) => {
                let buffer = self.buffers[section]?;
                Some(self.build.program.buffers[buffer].role)
            }
            _ => None,
        };
        match (role(*source), role(*destination)) {
            (Some(Role::Input), _) | (_, Some(Role::Output | Role::Profile)) => self.narrower.host,
            (Some(Role::Constant), _) => self.narrower.constants,
            _ => None,
        }
    }

    /// What the bytes of a transfer count as in time, as far as its own descriptor and the network's interface tell.
    fn counts_as(&mut self, descriptor: &Descriptor) -> u64 {
        let moved = descriptor.moved();
        let Operation::Move {
            source,
            from,
            destination,
            to,
            conversion,
        } = &descriptor.operation
        else {
            return moved;
        };
        let options = self.options;
        let dma = &options.machine.dma;
        let ends = [*source, *destination].map(|address| match self.image.resolve(address) {
            Target::Section(section, _) => self.buffers[section],
            _ => None,
        });
        let bytes = if conversion.is_some() {
            // 32-bit numbers to or from 16-bit ones.
            from.bytes().unwrap_or(0).min(to.bytes().unwrap_or(0))
        } else {
            let edge = &self.build.program.interface;
            let mut ports = edge.inputs.iter().chain(&edge.outputs);
            match ports.find(|port| ends.contains(&Some(port.buffer))) {
                Some(port) => {
                    let counted = of_two_bytes(moved, port.element.bits(), dma.odd_element);
                    if counted != moved {
                        self.rests.on(["dma.odd_element"]);
                    }
                    counted
                }
                None => moved,
            }
        };
        if ends.iter().all(Option::is_some) {
            self.rests.on(["dma.ddr_to_ddr_bytes_per_second"]);
            let each = dma.bytes_per_cycle * self.options.machine.clock.cmx() * 1e6;
            let each = each.min(dma.ddr_bytes_per_second);
            return (bytes as f64 * each / dma.ddr_to_ddr_bytes_per_second).round() as u64;
        }
        bytes
    }
}

/// Whether a transfer goes from one CMX address to another. Lists of indices do not count: they are fetched ahead.
fn within_cmx(operation: &Operation) -> bool {
    let (source, destination) = match operation {
        Operation::Move {
            source,
            destination,
            ..
        }
        | Operation::Gather {
            source,
            destination,
            ..
        } => (source, destination),
        Operation::Fill { .. } | Operation::Synchronise | Operation::Unsupported { .. } => {
            return false;
        }
    };
    [source, destination]
        .into_iter()
        .all(|address| address::cmx(*address).is_some())
}
