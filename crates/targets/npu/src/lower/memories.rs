//! Memories, their buffers, and the interface to the host.

use super::{ELEMENT, LAYOUT, Lowering, Narrower};
use crate::address;
use crate::document::Document;
use crate::info::{Edge, State, Tensor};
use crate::schedule::Control;
use chipless_model::{Buffer, Interface, MemoryKind, Place, Port, Role, Time};
use std::borrow::Cow;

impl Lowering<'_, '_> {
    /// DDR with a buffer for each section that the loader places there, and CMX with one for each tile.
    pub(super) fn memories(&mut self, control: &Control, edge: &Edge) {
        let states: Vec<&str> = edge.states.iter().flat_map(State::sections).collect();
        let ends = self
            .image
            .sections()
            .iter()
            .filter_map(|s| s.address?.checked_add(s.size));
        let ddr_end = ends.max().unwrap_or(0);
        let ddr = self.build.memory("ddr", ddr_end, MemoryKind::Dram);
        for (index, section) in self.image.sections().iter().enumerate() {
            if section.address.is_none() {
                continue;
            }
            let role = match &*section.name {
                name if name.starts_with("io.NetworkInput") => Role::Input,
                name if name.starts_with("io.ProfilingOutput") => Role::Profile,
                name if name.starts_with("io.") => Role::Output,
                name if name.starts_with("buffer.DDR") => Role::Scratch,
                _ if section.bytes.is_empty() => Role::Scratch,
                _ => Role::Constant,
            };
            let sizes = edge
                .bounds
                .iter()
                .find(|bounds| bounds.section == section.name);
            let role = match sizes {
                _ if states.contains(&&*section.name) => Role::State,
                Some(bounds) if bounds.is_input => Role::Constant,
                _ => role,
            };
            let name = section.name.clone();
            self.buffers[index] = Some(self.build.buffer(Buffer {
                address: section.address,
                initial: match (role, sizes) {
                    (Role::State, _) => Cow::Owned(vec![0; section.size as usize]),
                    (Role::Constant, Some(bounds)) => Cow::Owned(bounds.bytes()),
                    _ => Cow::Borrowed(&section.bytes),
                },
                ..Buffer::new(name, ddr, section.size, role)
            }));
        }
        // Where every engine reaches all tiles by one address, they are one memory.
        let (size, count) = (self.generation.cmx_size, control.tiles.min(address::TILES));
        let (size, count) = if self.generation.runtime_symbols {
            (size * u64::from(count), 1)
        } else {
            (size, count)
        };
        self.cmx.size = size;
        for tile in 0..count {
            let name = match count {
                1 if self.generation.runtime_symbols => "cmx".to_owned(),
                _ => format!("cmx{tile}"),
            };
            let memory = self.build.memory(&name, size, MemoryKind::Scratchpad);
            self.cmx.buffers[tile as usize] = Some(self.build.buffer(Buffer {
                address: Some(0),
                ..Buffer::new(name, memory, size, Role::Scratch)
            }));
        }
        let dma = &self.options.machine.dma;
        let per_transfer = dma.bytes_per_cycle * self.options.machine.clock.cmx() * 1e6;
        let whole = dma.ddr_bytes_per_second;
        let ddr = self.build.resource("ddr", whole, per_transfer);
        self.build.program.resources[ddr].off_chip = true;
        // A bound of all their transfers together. That of one transfer is DDR's, where some bytes count as fewer than they are: bytes that
        // pass here count as they are, so the same bound here would hold them up. Nor may DDR's own rate say whether there is one.
        let mut narrower = |name, capacity| {
            (capacity > 0.0).then(|| self.build.resource(name, capacity, capacity))
        };
        self.narrower = Narrower {
            constants: narrower("ddr.constants", dma.constant_bytes_per_second),
            host: narrower("ddr.host", dma.host_bytes_per_second),
        };
        self.build.program.start = Time::from_ns(self.options.machine.inference.start);
    }

    /// The network's inputs and outputs, whose sections [`Inference::read`] has found large enough.
    pub(super) fn interface(&mut self, document: &Document<'_>, edge: Edge) {
        let mut ports = |tensors: Vec<Tensor>| -> Vec<Port> {
            let port = |tensor: Tensor| {
                let place = Place::file().in_part(tensor.section.clone());
                let Some(element) = tensor.element else {
                    let message = format!(
                        "tensor {} has elements of type {}, which is not supported",
                        tensor.name, tensor.dtype
                    );
                    self.findings.push(ELEMENT.at(place, message));
                    return None;
                };
                if tensor.layout.is_some() {
                    self.findings.push(LAYOUT.at(
                        place,
                        format!(
                            "tensor {} is not stored row by row, which is not supported",
                            tensor.name
                        ),
                    ));
                    return None;
                }
                let section = self.image.section(&tensor.section)?;
                let buffer = self.buffers[section]?;
                Some(Port {
                    name: tensor.name,
                    alias: None,
                    buffer,
                    element,
                    shape: tensor.shape,
                    host_element: None,
                    scale: None,
                })
            };
            tensors.into_iter().filter_map(port).collect()
        };
        let interface = Interface {
            inputs: ports(edge.inputs),
            outputs: ports(edge.outputs),
        };
        self.build.program.interface = interface;
        document
            .metadata()
            .identification
            .network
            .text()
            .unwrap_or_default()
            .clone_into(&mut self.build.program.name);
    }
}
