//! Tasks without an effect on memory, and those that are not executed.

use crate::stream::{Details, Opcode, Slot};
use chipless_model::{Access, BufferId, Fault, Kernel, Pattern, Storage};
use std::borrow::Cow;

/// A transfer that cannot be executed: who reaches it learns why.
#[derive(Debug)]
pub(crate) struct Refused<'a> {
    /// The instruction that hands it over; `None` for descriptors.
    pub(crate) slot: Option<&'a Slot>,
    pub(crate) why: Fault,
    /// What it may have written, had it been executed: whoever reads that is not at fault.
    pub(crate) writes: Unknown,
}

/// The bytes of a transfer that cannot be executed, for the timing: a functional run stopped before.
#[derive(Debug)]
pub(crate) struct Skipped {
    /// What it may have written, had it been executed.
    pub(crate) writes: Unknown,
}

/// Buffers, with their sizes, any byte of which may be written: nothing says which.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unknown(pub(crate) std::sync::Arc<[(BufferId, u64)]>);

impl Unknown {
    pub(crate) fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        for (buffer, size) in &*self.0 {
            visit(Access::write(*buffer, Pattern::contiguous(0, *size)).may());
        }
    }
}

/// Time from a trigger to the first byte that moves.
#[derive(Debug)]
pub(crate) struct Start;

impl Kernel for Refused<'_> {
    fn operation(&self) -> Cow<'static, str> {
        self.slot
            .map_or("dma".into(), |slot| Opcode::name_of(slot.head.opcode))
    }

    fn details(&self) -> String {
        self.slot.map_or_else(
            || self.why.message.clone(),
            |slot| Details(slot).to_string(),
        )
    }

    fn waits_above(&self, wait: usize) -> bool {
        self.slot.is_some_and(|slot| slot.waits_above(wait))
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.writes.accesses(visit);
    }

    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Err(Fault {
            message: format!("{}: {}", self.operation(), self.why.message),
            ..self.why
        })
    }
}

impl Kernel for Skipped {
    fn operation(&self) -> Cow<'static, str> {
        "dma skipped".into()
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.writes.accesses(visit);
    }

    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

impl Kernel for Start {
    fn operation(&self) -> Cow<'static, str> {
        "dma start".into()
    }

    fn is_latency(&self) -> bool {
        true
    }

    fn accesses(&self, _: &mut dyn FnMut(Access)) {}

    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Ok(())
    }
}
