//! What one core writes into the state buffer of another.

use super::{Elements, move_bytes, tensor_of};
use crate::stream::{Details, Slot};
use chipless_model::{
    Access, BufferId, Dependence, Doubt, ElementType, Fault, Grade, Kernel, Pattern, Storage,
};
use std::borrow::Cow;

use super::dependence::{Relation, follow};

/// Elements of a core go to the other.
#[derive(Debug)]
pub(crate) struct Exchange<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) from: Elements,
    pub(crate) to: Elements,
}

impl Kernel for Exchange<'_> {
    fn operation(&self) -> Cow<'static, str> {
        "exchange".into()
    }

    fn details(&self) -> String {
        Details(self.slot).to_string()
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        visit(self.from.read_access());
        visit(self.to.write_access());
    }

    fn dependence(
        &self,
        doubtful: &dyn Doubt,
        visit: &mut dyn FnMut(BufferId, Pattern),
    ) -> Dependence {
        follow(&self.from, &self.to, Relation::Each, doubtful, visit);
        Dependence::Bytes
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        move_bytes(storage, &self.from, &self.to)
    }

    fn tensor(&self, access: &Access) -> Option<(ElementType, Vec<u64>)> {
        tensor_of(access, [&self.from, &self.to])
    }

    fn source_of(&self, buffer: BufferId, byte: u64) -> Option<(BufferId, u64)> {
        self.to.taken_from(&self.from, buffer, byte)
    }

    fn grade(&self) -> Grade {
        Grade::Assumed
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        Some("that cores wait for each other before and after an exchange".into())
    }
}

/// When all cores have met.
#[derive(Debug)]
pub(crate) struct Passed;

impl Kernel for Passed {
    fn operation(&self) -> Cow<'static, str> {
        "cores met".into()
    }

    fn accesses(&self, _: &mut dyn FnMut(Access)) {}

    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Ok(())
    }
}
