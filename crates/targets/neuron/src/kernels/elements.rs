//! Instructions that work element by element, partition by partition.

use super::{Elements, fault, move_bytes, operands_text, unproven_codes, unproven_events};
use crate::stream::{Instruction, Opcode, Slot};
use chipless_kernels::strided;
use chipless_model::{Access, Fault, Kernel, Storage};
use std::borrow::Cow;

/// `COPY` and `CAST`. Between equal types it moves bits.
#[derive(Debug)]
pub(crate) struct Copy<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) from: Elements,
    pub(crate) to: Elements,
}

/// `MEMSET`.
#[derive(Debug)]
pub(crate) struct Fill<'a> {
    pub(crate) slot: &'a Slot,
    /// The value's bits, low ones first.
    pub(crate) value: [u8; 4],
    pub(crate) to: Elements,
}

/// `TENSOR_TENSOR` that adds.
#[derive(Debug)]
pub(crate) struct Add<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) first: Elements,
    pub(crate) second: Elements,
    pub(crate) to: Elements,
}

fn operation(slot: &Slot) -> Cow<'static, str> {
    Opcode::of(slot.head.opcode).map_or(Cow::Borrowed("?"), |opcode| opcode.name.into())
}

fn read(of: &Elements) -> Access {
    Access::read(of.buffer, of.pattern.clone())
}

fn write(of: &Elements) -> Access {
    Access::write(of.buffer, of.pattern.clone())
}

impl Kernel for Copy<'_> {
    fn operation(&self) -> Cow<'static, str> {
        operation(self.slot)
    }

    fn details(&self) -> String {
        operands_text(self.slot)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        visit(read(&self.from));
        visit(write(&self.to));
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        if self.from.element == self.to.element {
            return move_bytes(storage, &self.from, &self.to);
        }
        let (mut packed, mut values) = (Vec::new(), Vec::new());
        self.from.read(storage, &mut packed, &mut values)?;
        self.to.write(storage, &mut packed, &values)
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        let instruction = self.slot.decode();
        let codes = instruction.operands().into_iter().map(|o| o.code);
        unproven_codes(codes).or_else(|| unproven_events(&instruction))
    }
}

impl Kernel for Fill<'_> {
    fn operation(&self) -> Cow<'static, str> {
        operation(self.slot)
    }

    fn details(&self) -> String {
        operands_text(self.slot)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        visit(write(&self.to));
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let size = (self.to.element.bits() / 8) as usize;
        let value = self.value.get(..size).ok_or_else(|| Fault::unsupported(format!("MEMSET of elements of {size} bytes")))?;
        strided::fill(value, storage.bytes_mut(self.to.buffer), &self.to.pattern).map_err(fault)
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        let instruction = self.slot.decode();
        if self.value != [0; 4] {
            return Some("the value of a MEMSET that is not zero".into());
        }
        let codes = instruction.operands().into_iter().map(|o| o.code);
        unproven_codes(codes).or_else(|| unproven_events(&instruction))
    }
}

impl Kernel for Add<'_> {
    fn operation(&self) -> Cow<'static, str> {
        operation(self.slot)
    }

    fn details(&self) -> String {
        operands_text(self.slot)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        visit(read(&self.first));
        visit(read(&self.second));
        visit(write(&self.to));
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let (mut packed, mut sums, mut addends) = (Vec::new(), Vec::new(), Vec::new());
        self.first.read(storage, &mut packed, &mut sums)?;
        self.second.read(storage, &mut packed, &mut addends)?;
        for (sum, addend) in sums.iter_mut().zip(&addends) {
            *sum += addend;
        }
        self.to.write(storage, &mut packed, &sums)
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        let instruction = self.slot.decode();
        let codes = instruction.operands().into_iter().map(|o| o.code);
        unproven_codes(codes).or_else(|| unproven_events(&instruction))
    }
}

/// Whether the operation of a `TENSOR_TENSOR` is one that is executed.
pub(crate) fn adds(instruction: &Instruction<'_>) -> bool {
    matches!(instruction, Instruction::TensorTensor(i) if i.operation == crate::stream::ADD)
}
