//! Where the addresses of transfers lead, and those of elements that belong to registers.

use super::builder::Builder;
use super::core::{Core, written_once};
use crate::def::VariableType;
use crate::kernels::addressed::{Found, Region, Side};
use crate::kernels::decoded::BOUND_COUNTS;
use crate::kernels::sequencer::{Known, Moved, RegisterMemory};
use crate::kernels::{Context, Elements};
use crate::stream::formats::Dma;
use crate::stream::operand::{Unresolved, leaves_partitions, variable};
use crate::stream::{
    DmaSide, DmaTarget, ElementCode, Instruction, PSUM_PARTITION_BYTES, Slot, Space,
};
use chipless_model::{
    BufferId, ElementType, Fault, Grade, Memory, MemoryKind, Pattern, Program, Role,
};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// Bytes of a register.
const WORD: u64 = 4;

/// Both sides of a transfer, and the registers that its instruction notes for it.
pub(super) struct Sides {
    pub(super) from: Side,
    pub(super) to: Side,
    pub(super) noted: SmallVec<[(Elements, Elements); 4]>,
}

/// Both sides of a transfer, as large as each other and inside their memories.
pub(super) fn sides<'p>(
    core: &mut Core<'p, '_>,
    dma: Dma<'_>,
    (context, known): (&Context, &Known),
    builder: &mut Builder<'p>,
) -> Result<Sides, Fault> {
    if dma.kind() != 0 {
        return Err(Fault::unsupported(format!(
            "transfers of kind {} are not supported: how their tiles lie is not known",
            dma.kind()
        )));
    }
    let (from_code, to_code) = dma.codes();
    let mut noted = SmallVec::new();
    let mut side = |role, side: &DmaSide, code, bound: u8| -> Result<Side, Fault> {
        let wanted = Wanted {
            role,
            target: side.address.target(),
            pattern: side.pattern(),
            element: element(code, dma.casts())?,
        };
        // A bound that counts is looked at when it is known, at the latest when the transfer starts.
        let bound = (bound & BOUND_COUNTS != 0).then_some(bound & 0x3f);
        let limit = bound.map_or(Some(u64::MAX), |bound| known.get(bound).map(u64::from));
        let wanted = wanted.resolved(known, limit);
        let mut side = wanted.side(core, context, &builder.program)?;
        if let Side::Found(found) = &mut side {
            if let Some(bound) = bound {
                found.bound = Some(register(context, bound)?);
            }
            for word in found.words.iter_mut().chain(&mut found.bound) {
                let place = core.note(builder);
                noted.push((std::mem::replace(word, place.clone()), place));
            }
        }
        Ok(side)
    };
    let from = side("src", &dma.src(), from_code, dma.src_bound())?;
    let to = side("dst", &dma.dst(), to_code, dma.dst_bound())?;
    let (source, destination) = (from.elements(), to.elements());
    written_once(destination, &builder.program)?;
    let (read, written) = (
        source.bytes().saturating_mul(destination.element.bits()),
        destination.bytes().saturating_mul(source.element.bits()),
    );
    if read != written {
        return Err(Fault::program(format!(
            "{} bytes are read, {} written",
            source.bytes(),
            destination.bytes()
        )));
    }
    Ok(Sides { from, to, noted })
}

/// The type of a code of a transfer: between equal codes bytes move as they are, whatever they mean.
pub(super) fn element(code: u8, casts: bool) -> Result<ElementType, Fault> {
    match ElementCode::of(code) {
        Some(code) => Ok(code.element),
        None if !casts => Ok(ElementType::UInt8),
        None => Err(Fault::unsupported(format!(
            "element type code {code:#x} is not supported: its meaning is not known"
        ))),
    }
}

/// An instruction that moves elements of memory into registers, or back.
pub(super) fn register_memory<'p>(
    core: &Core<'p, '_>,
    slot: &'p Slot,
    (context, known): (&Context, &Known),
    program: &Program<'_>,
) -> Result<RegisterMemory<'p>, Fault> {
    let moved = Moved::of(slot)?;
    let target = match slot.decode() {
        Instruction::RegisterVariable(_) => moved.scalars.symbolic(),
        _ => moved.scalars.address.target(),
    };
    let first = target.offset().unwrap_or(0);
    let wanted = Wanted {
        role: "memory",
        target,
        pattern: moved.scalars.pattern(first, moved.element.bits() / 8),
        element: moved.element,
    };
    let memory = match target {
        DmaTarget::Absolute(at) => Side::Fixed(moved.on_chip(&context.chip, at)?),
        _ => wanted
            .resolved(known, Some(u64::MAX))
            .side(core, context, program)?,
    };
    let grade = if target.is_in_registers() || matches!(target, DmaTarget::Absolute(_)) {
        Grade::Assumed
    } else {
        Grade::Quoted
    };
    RegisterMemory::new(slot, &moved, memory, grade, context)
}

/// A register of the engine, as the word of an address.
pub(super) fn register(context: &Context, number: u8) -> Result<Elements, Fault> {
    context
        .chip
        .register(context.engine, number, ElementType::UInt32)
}

/// Elements at an address.
pub(super) struct Wanted {
    pub(super) role: &'static str,
    pub(super) target: DmaTarget,
    /// Their bytes, from the offset that the address says.
    pub(super) pattern: Pattern,
    pub(super) element: ElementType,
}

impl Wanted {
    /// With an offset that is known before the program runs, if all bytes stay below the limit.
    pub(super) fn resolved(self, known: &Known, limit: Option<u64>) -> Wanted {
        if let DmaTarget::TableRegister { index, register } = self.target
            && let (Some(offset), Some(limit)) = (known.get(register), limit)
            && let Some(pattern) = self.pattern.shifted(i64::from(offset))
            && pattern.extent().end <= i128::from(limit)
        {
            return Wanted {
                target: DmaTarget::Table { index, offset },
                pattern,
                ..self
            };
        }
        self
    }

    pub(super) fn side(
        self,
        core: &Core<'_, '_>,
        context: &Context,
        program: &Program<'_>,
    ) -> Result<Side, Fault> {
        match self.target {
            DmaTarget::TableRegister { register: n, .. } => {
                let region = self.variable(core, program)?;
                let extent = self.pattern.extent();
                if extent.end - extent.start > i128::from(region.size) {
                    return Err(Fault::program(format!(
                        "{} spans {:#x} bytes of {}, which has {:#x}",
                        self.role,
                        extent.end - extent.start,
                        region.name,
                        region.size
                    )));
                }
                let words = smallvec![register(context, n)?];
                Ok(self.found(words, Arc::new([region])))
            }
            DmaTarget::Registers { low, high } => {
                let words = smallvec![register(context, low)?, register(context, high)?];
                Ok(self.found(words, core.regions(program)))
            }
            _ => {
                let region = self.variable(core, program)?;
                if let Some((space, bytes)) = region.on_chip
                    && let Some(why) = leaves_partitions(&self.pattern, space, bytes)
                {
                    return Err(Fault::program(format!("{}: {why}", region.name)));
                }
                let by = i64::try_from(region.offset).ok();
                let pattern = by.and_then(|by| self.pattern.shifted(by));
                let pattern = pattern.ok_or_else(|| {
                    Fault::program(format!("{}: the offset is beyond 2^63", region.name))
                })?;
                Ok(Side::Fixed(Elements {
                    buffer: region.buffer,
                    pattern,
                    element: self.element,
                }))
            }
        }
    }

    /// The variable that the address leads to.
    pub(super) fn variable(
        &self,
        core: &Core<'_, '_>,
        program: &Program<'_>,
    ) -> Result<Region, Fault> {
        let (position, name, declared) =
            variable(&core.subgraph.definition, self.target).map_err(|why| match why {
                Unresolved::Unsupported(why) => Fault::unsupported(why),
                Unresolved::Missing(what) => Fault::program(format!("the program has no {what}")),
            })?;
        let spot = core.memory.variables.get(position).copied().flatten();
        let spot = spot.ok_or_else(|| Fault::program(format!("{name} has no place in memory")))?;
        let is_state_buffer = declared.kind == Some(VariableType::StateBuffer);
        let usable = core.memory.chip.state_buffer_partition;
        Ok(Region {
            name: name.to_string(),
            buffer: spot.buffer,
            offset: spot.offset,
            size: match declared.size {
                Some(size) if !is_state_buffer => size,
                _ => program.buffers[spot.buffer].size,
            },
            address: 0,
            on_chip: is_state_buffer.then_some((Space::StateBuffer, usable)),
        })
    }

    fn found(self, words: SmallVec<[Elements; 2]>, regions: Arc<[Region]>) -> Side {
        let buffer = regions.first().map_or(BufferId::from_raw(0), |r| r.buffer);
        Side::Found(Box::new(Found {
            role: self.role,
            words,
            bound: None,
            elements: Elements {
                buffer,
                pattern: self.pattern,
                element: self.element,
            },
            regions,
        }))
    }
}

impl<'p> Core<'p, '_> {
    /// Everything that an address of the device may lead to, by address.
    fn regions(&self, program: &Program<'_>) -> Arc<[Region]> {
        let mut regions: Vec<Region> = Vec::new();
        let variables = self.subgraph.definition.variables.iter();
        for ((name, declared), spot) in variables.zip(&self.memory.variables) {
            let (Some(spot), Some(size)) = (spot, declared.size) else {
                continue;
            };
            let start = program.buffers[spot.buffer].address;
            let address = start.and_then(|start| start.checked_add(spot.offset));
            let is_state_buffer = declared.kind == Some(VariableType::StateBuffer);
            if let Some(address) = address.filter(|_| !is_state_buffer) {
                regions.push(Region {
                    name: name.to_string(),
                    buffer: spot.buffer,
                    offset: spot.offset,
                    size,
                    address,
                    on_chip: None,
                });
            }
        }
        let chip = &self.memory.chip;
        let on_chip = [
            ("the state buffer", chip.state_buffer, Space::StateBuffer),
            ("PSUM", chip.psum, Space::Psum),
        ];
        let usable = [chip.state_buffer_partition, PSUM_PARTITION_BYTES];
        let mut address = 0;
        for ((name, buffer, space), bytes) in on_chip.into_iter().zip(usable) {
            regions.push(Region {
                name: name.to_owned(),
                buffer,
                offset: 0,
                size: space.bytes(),
                address,
                on_chip: Some((space, bytes)),
            });
            address += space.bytes();
        }
        regions.sort_by_key(|region| region.address);
        regions.into()
    }

    /// A place for a word that an instruction notes for its transfer. Each has one of its own: several transfers may be on their way.
    pub(super) fn note(&mut self, builder: &mut Builder<'p>) -> Elements {
        let program = &mut builder.program;
        let (buffer, offset) = *self.notes.get_or_insert_with(|| {
            let name = format!("{}.addresses", self.subgraph.name);
            let memory = program.memories.push(Memory {
                name: name.clone(),
                size: 0,
                kind: MemoryKind::Registers,
            });
            let buffer = chipless_model::Buffer {
                address: Some(0),
                ..chipless_model::Buffer::new(name, memory, 0, Role::Scratch)
            };
            (program.buffers.push(buffer), 0)
        });
        self.notes = Some((buffer, offset + WORD));
        let memory = program.buffers[buffer].memory;
        program.buffers[buffer].size = offset + WORD;
        program.memories[memory].size = offset + WORD;
        Elements {
            buffer,
            pattern: Pattern::contiguous(offset, WORD),
            element: ElementType::UInt32,
        }
    }
}
