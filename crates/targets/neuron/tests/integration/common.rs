//! Programs from text or files, lowered.

use chipless_model::{Action, BufferId, Limits, Program};
use chipless_neuron::{Container, Lowered, Neff, lower, machine::Machine};
use chipless_neuron_assembler::assemble;
use chipless_sim::Timeline;
use std::collections::BTreeMap;

/// Lowers a file for the machine that it names, and does something with the program.
pub(crate) fn with_program<T>(file: &[u8], then: impl FnOnce(&Program<'_>, &[String]) -> T) -> T {
    let limits = Limits::default();
    let container = Container::open(file, &limits).expect("container");
    let neff = Neff::read(&container, &limits).expect("document");
    let machine = neff
        .architecture
        .machine()
        .unwrap_or_else(|| Machine::named("trn2").expect("machine"));
    let Lowered { program, notes } = lower(&neff, &machine, &limits).expect("program");
    then(&program, &notes)
}

/// Assembles a file.
pub(crate) fn assembled(text: &str) -> Vec<u8> {
    assemble(text)
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
        .write(&Limits::default())
        .expect("file")
}

/// The buffer of a name.
pub(crate) fn buffer(program: &Program<'_>, name: &str) -> BufferId {
    program
        .buffers
        .position(|b| b.name == name)
        .unwrap_or_else(|| panic!("no buffer {name}"))
}

/// What semaphores and events stand at after a run.
pub(crate) fn values(program: &Program<'_>, timeline: &Timeline) -> BTreeMap<String, i64> {
    let mut values = BTreeMap::new();
    for signal in timeline
        .order
        .iter()
        .flat_map(|task| program.signals(*task))
    {
        if let Action::Add(sync, by) = signal.action {
            *values.entry(program.syncs[sync].name.clone()).or_default() += by;
        }
    }
    values
}
