//! From the document to the program model.
//!
//! Each subgraph runs on a core of its own. A core has five engines, each a queue with the slots of its stream in order,
//! and a queue for each queue set of `def.json`. The state buffer, PSUM and the matrix engine's array are buffers of the
//! core; inputs and outputs are shared between cores by name, all other variables belong to one core.
//!
//! # Transfers
//!
//! A `DMA_DIRECT2D` slot only hands its transfer over: the engine's task releases the transfer on the dynamic queue set
//! that the engine owns. There it runs after those before it, and at its end the semaphore rises. The time from the
//! hand-over to the first byte is a task of the set's *start* queue, where it overlaps with that of others.
//!
//! Descriptors of the engine JSON files are triggered by instructions that nobody outside the vendor knows the layout
//! of. Without such instructions in a stream, all descriptors of an engine file run once, in list order within a queue
//! set, and all engines at the same time. With them, a functional run stops at the first descriptor: the order of the
//! list would not be that of the program.
//!
//! Rows of a transfer go to the rings of its queue set in turn, from where the last transfer ended, or from the first
//! ring on (`section_start_desc`). A ring is a place on one DMA engine, so the number of rings that a transfer reaches
//! bounds its rate. It is complete when all of them are.

mod builder;
mod core;
mod cost;
mod descriptors;
mod engines;
mod labels;
mod memory;
mod phases;

use crate::graph::Architecture;
use crate::json::Error;
use crate::machine::Machine;
use crate::read::Neff;
use builder::Builder;
use chipless_model::{Limits, Program, Resource};
pub use labels::attach_labels;

chipless_model::rules! {
    NOT_LOWERED Unsupported Error Chipless "neff-not-lowered" "the program cannot be made to run"
        "A declaration that every execution rests on is missing or makes no sense: a variable without size, more bytes than addresses."
        "The other findings of `check` tell more."
        "NEFF specification";
}

/// A program that can be run, and what people should know before they trust its numbers.
#[derive(Debug)]
pub struct Lowered<'p> {
    /// The program.
    pub program: Program<'p>,
    /// How the file was understood where it does not say, one sentence each.
    pub notes: Vec<String>,
}

/// Lowers a document for a machine.
///
/// # Errors
/// Declarations without which nothing can run, more tasks or bytes than the limits. Instructions and descriptors that cannot be
/// executed are no errors here: their tasks fault when a functional run reaches them.
pub fn lower<'p>(
    neff: &'p Neff<'p>,
    machine: &Machine,
    limits: &Limits,
) -> Result<Lowered<'p>, Error> {
    let mut builder = Builder::new(limits);
    let layout = memory::Layout::new(neff, machine, &mut builder)?;
    let rate = machine.memory.hbm_bytes_per_second;
    let hbm = builder.program.resources.push(Resource {
        name: "hbm".into(),
        capacity: rate,
        per_transfer: rate,
    });
    let mut cores: Vec<core::Core<'p, '_>> = Vec::with_capacity(neff.subgraphs.len());
    for (index, subgraph) in neff.subgraphs.iter().enumerate() {
        cores.push(core::Core::new(
            index,
            subgraph,
            &layout,
            machine,
            hbm,
            &mut builder,
        ));
    }
    let serial = neff.architecture == Architecture::Inf1 && cores.len() > 1;
    let mut phases = phases::Phases::default();
    let mut found = descriptors::Found::default();
    for index in 0..cores.len() {
        let phase = if serial { index + 1 } else { 1 };
        found = found.and(descriptors::lower(
            &mut cores,
            index,
            phase,
            &mut builder,
            &mut phases,
        )?);
        engines::lower(&mut cores[index], phase, &mut builder, &mut phases)?;
    }
    phases.order(&mut builder);
    memory::interface(neff, &layout, &mut builder.program);
    let mut program = builder.finish()?;
    program.name = neff.container.header.name();
    Ok(Lowered {
        program,
        notes: notes(found, serial),
    })
}

fn notes(found: descriptors::Found, serial: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if found.listed {
        notes.push(
            "No instruction triggers the DMA descriptors of the engine files: each runs once, in list order within its queue set.".into(),
        );
    }
    if found.triggered {
        notes.push("Instructions trigger DMA descriptors, which is not supported: for the timing they run once, in list order.".into());
    }
    if serial {
        notes.push("The subgraphs run one after the other, each on a core of its own.".into());
    }
    notes
}
