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
//! Descriptors of the engine JSON files are started by instructions (see [`triggers`](crate::triggers)). Without such instructions in a
//! stream, all descriptors of an engine file run once, in list order within a queue set, and all engines at the same time.
//!
//! Rows of a transfer go to the rings of its queue set in turn, from where the last transfer ended, or from the first
//! ring on (`section_start_desc`). A ring is a place on one DMA engine, so the number of rings that a transfer reaches
//! bounds its rate. It is complete when all of them are. Rings of a set are served by different DMA engines: transfers are timed one
//! behind the other, but only rows of one ring are in order. How rows are dealt to rings is not public, so only transfers that touch
//! the same bytes in the same order count as ordered, and those that raise the same semaphore.

mod addresses;
mod after;
mod builder;
mod core;
mod cost;
mod descriptors;
mod element_wise;
mod engines;
mod indexed;
mod labels;
mod meetings;
mod memory;
mod phases;

use crate::graph::Architecture;
use crate::json::Error;
use crate::machine::Machine;
use crate::read::Neff;
use crate::stream::{Opcode, Stream, Support};
use crate::triggers::plans;
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
    lower_as(neff, machine, limits, true)
}

/// As [`lower`], for lists: every slot once, in the order of the file, with a text of its own. It is not for running.
///
/// # Errors
/// As [`lower`].
pub fn lower_for_listing<'p>(
    neff: &'p Neff<'p>,
    machine: &Machine,
    limits: &Limits,
) -> Result<Lowered<'p>, Error> {
    lower_as(neff, machine, limits, false)
}

fn lower_as<'p>(
    neff: &'p Neff<'p>,
    machine: &Machine,
    limits: &Limits,
    follows: bool,
) -> Result<Lowered<'p>, Error> {
    let mut builder = Builder::new(limits, follows);
    let layout = memory::Layout::new(neff, machine, &mut builder)?;
    let rate = machine.memory.hbm_bytes_per_second;
    let hbm = builder.program.resources.push(Resource {
        name: "hbm".into(),
        capacity: rate,
        per_transfer: rate,
        off_chip: true,
    });
    let mut cores: Vec<core::Core<'p, '_>> = Vec::with_capacity(neff.subgraphs.len());
    for index in 0..neff.subgraphs.len() {
        cores.push(core::Core::new(
            index,
            &neff.subgraphs,
            &layout,
            machine,
            hbm,
            &mut builder,
        ));
    }
    let serial = neff.architecture == Architecture::Inf1 && cores.len() > 1;
    let mut phases = phases::Phases::default();
    let mut listed = false;
    for (index, plans) in plans(neff, limits.tasks).iter().enumerate() {
        let phase = if serial { index + 1 } else { 1 };
        listed |= descriptors::lower(&mut cores, index, plans, phase, &mut builder, &mut phases)?;
        engines::lower(&mut cores, index, plans, phase, &mut builder, &mut phases)?;
    }
    phases.order(&mut builder);
    memory::interface(neff, &layout, &mut builder.program);
    let mut program = builder.finish()?;
    program.name = neff.container.header.name();
    Ok(Lowered {
        program,
        notes: notes(neff, listed, serial),
    })
}

fn notes(neff: &Neff<'_>, listed: bool, serial: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if listed {
        notes.push(
            "No instruction triggers the DMA descriptors of the engine files: each runs once, in list order within its queue set.".into(),
        );
    }
    if serial {
        notes.push("The subgraphs run one after the other, each on a core of its own.".into());
    }
    notes.extend(unexecuted(neff));
    notes
}

/// Names the instructions that are listed, not executed.
fn unexecuted(neff: &Neff<'_>) -> Option<String> {
    let mut found = [false; 256];
    let rooms = neff.subgraphs.iter().flat_map(|s| &s.engines);
    for member in rooms.filter_map(|room| room.instructions) {
        for slot in Stream::new(member.bytes).slots {
            found[usize::from(slot.head.opcode)] |= slot.support() == Support::Listed;
        }
    }
    let names: Vec<_> = (0..=u8::MAX)
        .filter(|byte| found[usize::from(*byte)])
        .map(Opcode::name_of)
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "{} {} not executed; for the timing each is assumed to take {} cycles of its engine, and its operands no part in it.",
            names.join(", "),
            if names.len() == 1 { "is" } else { "are" },
            cost::ASSUMED_CYCLES,
        )
    })
}
