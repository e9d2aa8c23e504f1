//! Tensors of a plan: their shapes, precisions and places.

use super::{Lowering, error_at};
use crate::fqir::plan::{self, Array, Error, Graph, Node, Numbers, at_node};
use crate::fqir::rules;
use crate::fqir::tensor::{Element, Shape, Tensor, store};
use chipless_model::{Buffer, BufferId, Role, Rule};
use std::borrow::Cow;
use std::collections::HashMap;

/// Bytes of tensors that come without their values, at most: the chip has one megabyte.
const MOST_BYTES: u64 = 256 << 20;
/// Dimensions of a tensor.
const MOST_DIMENSIONS: usize = 6;

impl<'p> Lowering<'p, '_> {
    pub(super) fn parameters(&mut self, graph: &'p Graph, role: Role) -> Result<(), Error> {
        for (index, declared) in graph.parameters.iter().enumerate() {
            let pointer = || format!("{}/parameters/{index}", graph.pointer);
            let Some(value) = &declared.value else {
                let message = format!(
                    "expected a value of the parameter `{}`, found none",
                    declared.name
                );
                return Err(error_at(&rules::SHAPE, pointer(), message));
            };
            if declared.shape != value.shape {
                let message = format!(
                    "expected `{}` of shape {:?}, found {:?}",
                    declared.name, declared.shape, value.shape
                );
                return Err(error_at(&rules::SHAPE, pointer(), message));
            }
            let shape = self
                .shape(&value.shape)
                .map_err(|(rule, m)| error_at(rule, pointer(), m))?;
            let real = matches!(value.numbers, Numbers::Reals(_));
            check_values(declared, value)
                .map_err(|m| error_at(&rules::VALUE, format!("{}/value", pointer()), m))?;
            let fit = bits_of(value);
            let bits = declared_bits(&declared.dtype)
                .filter(|bits| *bits >= fit && *bits < 32)
                .unwrap_or(fit);
            let outer = std::mem::replace(&mut self.role, role);
            let tensor = self.create(&declared.name, shape, (bits, bits), real);
            self.role = outer;
            let tensor = tensor.map_err(|m| error_at(&rules::LIMIT, pointer(), m))?;
            if !self.trial {
                self.build.program.buffers[tensor.buffer].initial =
                    Cow::Owned(encoded(&tensor, &value.numbers));
            }
            self.names.insert(&declared.name, tensor);
        }
        Ok(())
    }

    /// A shape that can be worked with.
    pub(crate) fn shape(&self, dimensions: &[u64]) -> Result<Shape, (&'static Rule, String)> {
        if dimensions.len() > MOST_DIMENSIONS {
            let found = dimensions.len();
            let message = format!("expected at most {MOST_DIMENSIONS} dimensions, found {found}");
            return Err((&rules::SHAPE, message));
        }
        let most = self.limits.memory_bytes.min(1 << 40);
        let elements = dimensions
            .iter()
            .try_fold(1u64, |n, d| n.checked_mul((*d).max(1)));
        if elements.is_none_or(|elements| elements > most / 8) {
            let message = format!(
                "a tensor of shape {dimensions:?} takes more than {most} bytes, the limit memory_bytes or 1 TiB"
            );
            return Err((&rules::LIMIT, message));
        }
        Ok(dimensions.iter().copied().collect())
    }

    /// A new tensor: precision, and bits of the type that stores it.
    pub(super) fn create(
        &mut self,
        name: &'p str,
        shape: Shape,
        bits: (u8, u8),
        real: bool,
    ) -> Result<Tensor, String> {
        let known = self.known.get(name).copied().unwrap_or_default();
        let bits = (bits.0.max(known.0), bits.1.max(known.1));
        self.precisions.insert(name, bits);
        let element = if real {
            Element::F64
        } else {
            Element::of_bits(bits.1)
        };
        let mut tensor = Tensor {
            buffer: BufferId::from_usize(0),
            shape,
            bits: bits.0,
            element,
        };
        let size = tensor.bytes();
        self.created =
            self.created
                .saturating_add(if self.role == Role::Constant { 0 } else { size });
        if self.created > MOST_BYTES {
            return Err(format!(
                "expected tensors of at most {MOST_BYTES} bytes besides parameters, found more"
            ));
        }
        if self.build.program.buffers.len() as u64 >= self.limits.declarations {
            return Err(format!(
                "more tensors than the limit declarations = {}",
                self.limits.declarations
            ));
        }
        let table = name.ends_with(".table_values") && self.tables.left >= size;
        let room = match self.data.iter_mut().find(|room| room.left >= size) {
            _ if table => &mut self.tables,
            Some(room) => room,
            None => return Err("expected tensors that memory can hold".to_owned()),
        };
        room.left -= size;
        let memory = room.memory;
        if self.build.program.memories[memory].name == "beyond" {
            self.does_not_fit += size;
        }
        let buffer = Buffer {
            tensor: Some((tensor.element.model(), tensor.shape.to_vec())),
            ..Buffer::new(name, memory, size, self.role)
        };
        tensor.buffer = self.build.buffer(buffer);
        Ok(tensor)
    }

    /// The tensor that a node defines under a name. A name keeps its place as long as its shape stays; inputs and
    /// parameters get another one, since they start anew with each step.
    pub(crate) fn define(
        &mut self,
        node: &'p Node,
        name: &'p str,
        shape: &[u64],
        bits: (u8, u8),
        real: bool,
    ) -> Result<Tensor, Error> {
        if let Some(tensor) = self.names.get(name).cloned() {
            let role = self.build.program.buffers[tensor.buffer].role;
            let same = tensor.shape[..] == *shape && (tensor.element == Element::F64) == real;
            if same && matches!(role, Role::State | Role::Scratch | Role::Output) {
                let known = self.precisions.get(name).copied().unwrap_or_default();
                self.precisions
                    .insert(name, (bits.0.max(known.0), bits.1.max(known.1)));
                return Ok(tensor);
            }
            if role == Role::State || self.nested > 0 {
                let message = format!(
                    "expected `{name}` to keep its shape {:?} and role ({}), found {:?}",
                    &tensor.shape[..],
                    role.name(),
                    shape
                );
                return Err(at_node(&rules::SHAPE, node, message));
            }
        }
        let shape = self
            .shape(shape)
            .map_err(|(rule, m)| at_node(rule, node, m))?;
        let stated = self.stated_bits(name);
        let bits = (bits.0, bits.1.max(stated.unwrap_or(0)));
        let mut tensor = self
            .create(name, shape, bits, real)
            .map_err(|m| at_node(&rules::LIMIT, node, m))?;
        // What the file says of the precision counts; what stores the elements holds what they may be.
        tensor.bits = stated.unwrap_or(tensor.bits);
        self.names.insert(name, tensor.clone());
        Ok(tensor)
    }

    /// Bits of a tensor as the graph at hand declares them.
    fn stated_bits(&self, name: &str) -> Option<u8> {
        declared_bits(&self.declared?.get(name)?.dtype)
    }

    /// A tensor without a name.
    pub(crate) fn temporary(&mut self, node: &'p Node, like: &Tensor) -> Result<Tensor, Error> {
        let role = std::mem::replace(&mut self.role, Role::Scratch);
        let (bits, real) = (like.bits, like.element == Element::F64);
        let stored = (like.element.bytes() * 8) as u8;
        let tensor = self.create("(temporary)", like.shape.clone(), (bits, stored), real);
        self.role = role;
        // Not a name that grows from pass to pass.
        self.precisions.remove("(temporary)");
        tensor.map_err(|m| at_node(&rules::LIMIT, node, m))
    }

    /// What a name holds.
    pub(crate) fn lookup(&self, name: &str) -> Option<&Tensor> {
        self.names.get(name)
    }

    /// Names as they are now: those that a body defines are forgotten when it may not have run.
    pub(crate) fn names(&self) -> HashMap<&'p str, Tensor> {
        self.names.clone()
    }

    pub(crate) fn set_names(&mut self, names: HashMap<&'p str, Tensor>) {
        self.names = names;
    }
}

/// Bits of `fqint16`, `int24`; `None` for other types.
pub(crate) fn declared_bits(dtype: &str) -> Option<u8> {
    let digits = dtype
        .strip_prefix("fqint")
        .or_else(|| dtype.strip_prefix("int"))?;
    digits.parse().ok().filter(|bits| (1..=64).contains(bits))
}

pub(super) fn is_real(dtype: &str) -> bool {
    dtype.starts_with("float")
}

/// The smallest of the usual precisions that holds a number.
pub(crate) fn precision_of(value: i64) -> u8 {
    match value {
        -0x80..0x80 => 8,
        -0x8000..0x8000 => 16,
        -0x80_0000..0x80_0000 => 24,
        -0x8000_0000..0x8000_0000 => 32,
        _ => 64,
    }
}

/// Whether a type holds every value of a parameter.
fn check_values(declared: &plan::Tensor, value: &Array) -> Result<(), String> {
    let bits = declared_bits(&declared.dtype).filter(|bits| *bits < 64);
    let (Some(bits), Numbers::Integers(numbers)) = (bits, &value.numbers) else {
        return Ok(());
    };
    let limit = 1i64 << (bits - 1);
    match numbers
        .iter()
        .enumerate()
        .find(|(_, n)| !(-limit..limit).contains(*n))
    {
        None => Ok(()),
        Some((at, number)) => Err(format!(
            "expected values of {} ({} to {}) in `{}`, found {number} at element {at}",
            declared.dtype,
            -limit,
            limit - 1,
            crate::yaml::shortened(&declared.name)
        )),
    }
}

fn bits_of(array: &Array) -> u8 {
    match &array.numbers {
        plan::Numbers::Integers(numbers) => {
            numbers.iter().map(|n| precision_of(*n)).max().unwrap_or(8)
        }
        plan::Numbers::Reals(_) => 64,
    }
}

fn encoded(tensor: &Tensor, numbers: &Numbers) -> Vec<u8> {
    match numbers {
        Numbers::Integers(integers) => {
            let mut bytes = vec![0; tensor.bytes() as usize];
            store(&mut bytes, tensor.element, 0, integers);
            bytes
        }
        Numbers::Reals(reals) => reals.iter().flat_map(|real| real.to_le_bytes()).collect(),
    }
}
