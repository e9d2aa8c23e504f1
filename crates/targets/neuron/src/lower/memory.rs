//! Where variables live.

use super::NOT_LOWERED;
use super::builder::Builder;
use crate::def::{Variable, VariableType};
use crate::json::Error;
use crate::kernels::Chip;
use crate::kernels::array::ARRAY_BYTES;
use crate::kernels::control::Unknown;
use crate::kernels::registers::REGISTER_BYTES;
use crate::machine::Machine;
use crate::read::{Neff, Subgraph};
use crate::stream::Space;
use chipless_model::{
    Buffer, BufferId, Interface, Memory, MemoryId, MemoryKind, Place, Port, Program, Role,
};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Address of the first variable in HBM: no pointer is null, and none leads onto the chip.
const HBM_BASE: u64 = 1 << 26;
const _: () = assert!(HBM_BASE >= Space::StateBuffer.bytes() + Space::Psum.bytes());
/// Least distance of variables in HBM.
const HBM_ALIGNMENT: u64 = 64;

/// The buffers of a program.
pub(super) struct Layout {
    /// In the order of the subgraphs.
    pub(super) cores: Vec<CoreMemory>,
    /// Inputs and outputs by name.
    shared: HashMap<String, BufferId>,
}

/// The buffers of a core.
#[derive(Clone)]
pub(super) struct CoreMemory {
    pub(super) chip: Chip,
    /// By position in `def.json`; `None` for tables, and for what has no size.
    pub(super) variables: Vec<Option<Spot>>,
    /// Every buffer that the core may write.
    pub(super) writable: Unknown,
}

impl CoreMemory {
    /// What a transfer may write of which only the variable is known that it goes to, if that.
    pub(super) fn writes(&self, variable: Option<usize>) -> Unknown {
        let buffer = variable
            .and_then(|at| self.variables.get(at).copied().flatten())
            .map(|spot| spot.buffer);
        match self
            .writable
            .0
            .iter()
            .find(|(writable, _)| Some(*writable) == buffer)
        {
            Some(known) => Unknown([*known].into()),
            None => self.writable.clone(),
        }
    }
}

/// Where a variable starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) buffer: BufferId,
    pub(super) offset: u64,
}

/// Hands out addresses of HBM.
struct Hbm {
    memory: MemoryId,
    next: u64,
}

impl Hbm {
    fn place(&mut self, size: u64, alignment: u64) -> Option<u64> {
        let address = self
            .next
            .checked_next_multiple_of(alignment.max(HBM_ALIGNMENT))?;
        self.next = address.checked_add(size)?;
        Some(address)
    }
}

impl Layout {
    pub(super) fn new<'p>(
        neff: &'p Neff<'p>,
        machine: &Machine,
        builder: &mut Builder<'p>,
    ) -> Result<Layout, Error> {
        let program = &mut builder.program;
        let memory = Memory {
            name: "hbm".into(),
            size: machine.memory.hbm_bytes,
            kind: MemoryKind::Hbm,
        };
        let mut hbm = Hbm {
            memory: program.memories.push(memory),
            next: HBM_BASE,
        };
        let mut layout = Layout {
            cores: Vec::new(),
            shared: HashMap::new(),
        };
        for (name, size, alignment, role) in shared_variables(neff) {
            let at = || Place::file().at(name.to_owned());
            let buffer = in_hbm(
                program,
                &mut hbm,
                name.to_owned(),
                size,
                alignment,
                role,
                Cow::Borrowed(&[]),
                at,
            )?;
            layout.shared.insert(name.to_owned(), buffer);
        }
        for subgraph in &neff.subgraphs {
            let core = layout.core(
                subgraph,
                machine.memory.sbuf_partition_bytes,
                &mut hbm,
                program,
            )?;
            layout.cores.push(core);
        }
        Ok(layout)
    }

    fn core<'p>(
        &self,
        subgraph: &'p Subgraph<'p>,
        partition_bytes: u32,
        hbm: &mut Hbm,
        program: &mut Program<'p>,
    ) -> Result<CoreMemory, Error> {
        let name = &subgraph.name;
        let mut on_chip = |part: &str, size: u64, kind: MemoryKind| {
            let name = format!("{name}.{part}");
            let memory = program.memories.push(Memory {
                name: name.clone(),
                size,
                kind,
            });
            program.buffers.push(Buffer {
                address: Some(0),
                ..Buffer::new(name, memory, size, Role::Scratch)
            })
        };
        let mut core = CoreMemory {
            chip: Chip {
                state_buffer: on_chip("sbuf", Space::StateBuffer.bytes(), MemoryKind::Scratchpad),
                psum: on_chip("psum", Space::Psum.bytes(), MemoryKind::Scratchpad),
                array: on_chip("array", ARRAY_BYTES, MemoryKind::Registers),
                registers: on_chip("registers", REGISTER_BYTES, MemoryKind::Registers),
                state_buffer_partition: partition_bytes,
            },
            variables: Vec::with_capacity(subgraph.definition.variables.len()),
            writable: Unknown::default(),
        };
        let scratchpad = scratchpad(subgraph)?;
        let scratchpad = match scratchpad {
            0 => None,
            size => {
                let (name, at) = (format!("{name}.scratchpad"), || {
                    Place::file().in_part(subgraph.source.member.to_owned())
                });
                Some(in_hbm(
                    program,
                    hbm,
                    name,
                    size,
                    virtual_alignment(subgraph),
                    Role::Scratch,
                    Cow::Borrowed(&[]),
                    at,
                )?)
            }
        };
        for ((variable_name, variable), constant) in subgraph
            .definition
            .variables
            .iter()
            .zip(&subgraph.constants)
        {
            let at = || place(subgraph, variable_name, variable);
            let spot = match (variable.kind, variable.size) {
                (Some(VariableType::StateBuffer), _) => Some(Spot {
                    buffer: core.chip.state_buffer,
                    offset: 0,
                }),
                (Some(VariableType::Input | VariableType::Output), Some(_)) => {
                    self.shared.get(&**variable_name).copied().map(Spot::at)
                }
                (Some(VariableType::Virtual), Some(_)) => scratchpad.map(|buffer| Spot {
                    buffer,
                    offset: variable.backing_variable_off.unwrap_or(0),
                }),
                (
                    Some(VariableType::File | VariableType::TmpBuf | VariableType::Pointer),
                    Some(size),
                ) => {
                    let (role, initial) = match (variable.kind, constant) {
                        (Some(VariableType::File), Some(constant)) => {
                            (Role::Constant, &constant.bytes[..])
                        }
                        (Some(VariableType::TmpBuf), _) => (Role::Scratch, &[][..]),
                        _ => (Role::Constant, &[][..]),
                    };
                    let (name, alignment) = (
                        format!("{name}.{variable_name}"),
                        variable.alignment.unwrap_or(0),
                    );
                    let initial = Cow::Borrowed(initial.get(..size as usize).unwrap_or(initial));
                    Some(Spot::at(in_hbm(
                        program, hbm, name, size, alignment, role, initial, at,
                    )?))
                }
                _ => None,
            };
            core.variables.push(spot);
        }
        core.resolve_pointers(subgraph, program);
        core.note_writable(program);
        Ok(core)
    }
}

impl CoreMemory {
    /// Gives pointers the addresses of what they refer to, which are known now.
    fn resolve_pointers(&self, subgraph: &Subgraph<'_>, program: &mut Program<'_>) {
        for (position, variable) in subgraph.definition.variables.values().enumerate() {
            let Some(referenced) = variable
                .referenced_var_id
                .filter(|_| variable.kind == Some(VariableType::Pointer))
            else {
                continue;
            };
            let Some(Some(pointer)) = self.variables.get(position) else {
                continue;
            };
            let to = subgraph
                .definition
                .variable_by_id(referenced)
                .and_then(|(to, _, _)| self.variables.get(to).copied().flatten());
            let address =
                to.and_then(|to| program.buffers[to.buffer].address?.checked_add(to.offset));
            program.buffers[pointer.buffer].initial =
                Cow::Owned(address.unwrap_or(0).to_le_bytes().to_vec());
        }
    }

    /// Notes every buffer that a task of this core may write.
    fn note_writable(&mut self, program: &Program<'_>) {
        let Chip {
            state_buffer,
            psum,
            array,
            registers,
            ..
        } = self.chip;
        let used: BTreeSet<BufferId> = self
            .variables
            .iter()
            .flatten()
            .map(|spot| spot.buffer)
            .chain([state_buffer, psum, array, registers])
            .collect();
        let writable = used
            .into_iter()
            .map(|buffer| (buffer, &program.buffers[buffer]));
        let writable = writable
            .filter(|(_, b)| !matches!(b.role, Role::Input | Role::Constant))
            .map(|(id, b)| (id, b.size));
        self.writable = Unknown(writable.collect());
    }
}

impl Spot {
    fn at(buffer: BufferId) -> Spot {
        Spot { buffer, offset: 0 }
    }
}

fn place(subgraph: &Subgraph<'_>, name: &str, variable: &Variable<'_>) -> Place {
    let mut pointer = "/var".to_owned();
    crate::json::push_key(&mut pointer, name);
    subgraph.source.place(variable.text, &pointer, "")
}

/// Inputs and outputs of all subgraphs: name, the largest size and alignment that any declares, and what the host does with it.
fn shared_variables<'p>(neff: &'p Neff<'p>) -> Vec<(&'p str, u64, u64, Role)> {
    let mut shared: indexmap::IndexMap<&str, (u64, u64, Role)> = indexmap::IndexMap::new();
    let outputs: HashSet<&str> = neff.interface.outputs.iter().map(|t| &*t.name).collect();
    for (name, variable) in neff.subgraphs.iter().flat_map(|s| &s.definition.variables) {
        let role = match variable.kind {
            Some(VariableType::Input) => Role::Input,
            Some(VariableType::Output) => Role::Output,
            _ => continue,
        };
        let Some(size) = variable.size else { continue };
        let (known, alignment, known_role) = shared.entry(name).or_insert((size, 0, role));
        *known = size.max(*known);
        *alignment = variable.alignment.unwrap_or(0).max(*alignment);
        if *known_role != role {
            // One subgraph's output is another one's input: the host has no part in it, unless the graph says so.
            *known_role = if outputs.contains(&**name) {
                Role::Output
            } else {
                Role::Scratch
            };
        }
    }
    shared
        .into_iter()
        .map(|(name, (size, alignment, role))| (name, size, alignment, role))
        .collect()
}

/// The largest alignment that a virtual variable asks for: at its offset it is aligned if the scratchpad is.
fn virtual_alignment(subgraph: &Subgraph<'_>) -> u64 {
    let variables = subgraph.definition.variables.values();
    variables
        .filter(|variable| variable.kind == Some(VariableType::Virtual))
        .filter_map(|variable| variable.alignment.filter(|a| a.is_power_of_two()))
        .max()
        .unwrap_or(0)
}

/// Bytes that the virtual variables of a subgraph take: the largest end of any.
fn scratchpad(subgraph: &Subgraph<'_>) -> Result<u64, Error> {
    let mut bytes = 0;
    for (name, variable) in &subgraph.definition.variables {
        if let (Some(VariableType::Virtual), Some(size)) = (variable.kind, variable.size) {
            let offset = variable.backing_variable_off.unwrap_or(0);
            let end = offset.checked_add(size).ok_or_else(|| {
                let message = format!("{name} ends at {offset} + {size}, beyond 2^64");
                Box::new(NOT_LOWERED.at(place(subgraph, name, variable), message))
            })?;
            bytes = end.max(bytes);
        }
    }
    Ok(bytes)
}

#[allow(clippy::too_many_arguments)]
fn in_hbm<'p>(
    program: &mut Program<'p>,
    hbm: &mut Hbm,
    name: String,
    size: u64,
    alignment: u64,
    role: Role,
    initial: Cow<'p, [u8]>,
    at: impl Fn() -> Place,
) -> Result<BufferId, Error> {
    let alignment = if alignment.is_power_of_two() {
        alignment
    } else {
        0
    };
    let address = hbm.place(size, alignment).ok_or_else(|| {
        let message = format!("{name} has {size} bytes: the variables together go beyond 2^64");
        Box::new(NOT_LOWERED.at(at(), message))
    })?;
    Ok(program.buffers.push(Buffer {
        address: Some(address),
        alignment: alignment.max(1),
        initial,
        ..Buffer::new(name, hbm.memory, size, role)
    }))
}

/// What the host gives and gets.
pub(super) fn interface(neff: &Neff<'_>, layout: &Layout, program: &mut Program<'_>) {
    let ports = |tensors: &[crate::graph::Tensor<'_>]| {
        let port = |t: &crate::graph::Tensor<'_>| {
            let buffer = *layout.shared.get(&*t.name)?;
            Some(Port {
                name: t.name.to_string(),
                alias: None,
                buffer,
                element: t.element?,
                shape: t.shape.clone(),
                host_element: None,
                scale: None,
            })
        };
        tensors.iter().filter_map(port).collect()
    };
    program.interface = Interface {
        inputs: ports(&neff.interface.inputs),
        outputs: ports(&neff.interface.outputs),
    };
}
