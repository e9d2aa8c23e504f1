//! Names and source lines of tasks, from the debug files.

use crate::read::Neff;
use crate::stream::DebugInfo;
use crate::stream::SLOT_BYTES;
use chipless_model::Program;
use std::collections::HashMap;

/// Labels the tasks of a [lowered](super::lower) program with the compiler's names for them and the lines of the source
/// that they come from, as far as the debug files tell. Lists, traces and reports show them; a run does without.
pub fn attach_labels(neff: &Neff<'_>, program: &mut Program<'_>) {
    let rooms = neff.subgraphs.iter().flat_map(|s| &s.engines);
    let mut debug: HashMap<&str, _> = rooms
        .filter_map(|room| Some((room.instructions?.path, DebugInfo::of(room))))
        .collect();
    let by_part: Vec<_> = program
        .parts
        .iter()
        .map(|part| debug.remove(part.as_str()))
        .collect();
    for task in &mut program.tasks {
        let Some(Some(debug)) = by_part.get(task.location.part.index()) else {
            continue;
        };
        let slot = task.location.offset as usize / SLOT_BYTES;
        if let Some(line) = debug.slot(slot) {
            task.label = Some(line.to_string().into());
        }
    }
}
