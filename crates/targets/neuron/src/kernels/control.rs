//! Instructions without an effect on memory, and those that are not executed.

use super::{operands_text, unproven_events};
use crate::stream::{Opcode, Slot};
use chipless_model::{Access, Fault, Kernel, Storage};
use std::borrow::Cow;

/// An instruction that touches no memory: it waits, signals, or hands a transfer over.
#[derive(Debug)]
pub(crate) struct Control<'a>(pub(crate) &'a Slot);

/// A slot that is listed, not executed.
#[derive(Debug)]
pub(crate) struct Refused<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) why: String,
}

/// A transfer of a program whose order nobody knows: its streams trigger descriptors.
#[derive(Debug)]
pub(crate) struct Untriggered(pub(crate) String);

/// Time from a trigger to the first byte that moves.
#[derive(Debug)]
pub(crate) struct Start;

fn operation(slot: &Slot) -> Cow<'static, str> {
    match Opcode::of(slot.head.opcode) {
        Some(opcode) => opcode.name.into(),
        None => Opcode::name_of(slot.head.opcode).into(),
    }
}

impl Kernel for Control<'_> {
    fn operation(&self) -> Cow<'static, str> {
        operation(self.0)
    }

    fn details(&self) -> String {
        operands_text(self.0)
    }

    fn accesses(&self, _: &mut dyn FnMut(Access)) {}

    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Ok(())
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        unproven_events(&self.0.decode())
    }
}

impl Kernel for Refused<'_> {
    fn operation(&self) -> Cow<'static, str> {
        operation(self.slot)
    }

    fn details(&self) -> String {
        operands_text(self.slot)
    }

    fn accesses(&self, _: &mut dyn FnMut(Access)) {}

    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Err(Fault::unsupported(format!("{}: {}", self.operation(), self.why)))
    }
}

impl Kernel for Untriggered {
    fn operation(&self) -> Cow<'static, str> {
        "descriptor".into()
    }

    fn details(&self) -> String {
        self.0.clone()
    }

    fn accesses(&self, _: &mut dyn FnMut(Access)) {}

    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Err(Fault::unsupported(self.0.clone()))
    }
}

impl Kernel for Start {
    fn operation(&self) -> Cow<'static, str> {
        "dma start".into()
    }

    fn accesses(&self, _: &mut dyn FnMut(Access)) {}

    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Ok(())
    }
}
