//! Which layer a task belongs to: the one that its label names, or else the one that data flow gives it to.
//!
//! Compilers name the tasks that compute, and not always those that only bring something. A transfer without a name belongs to the layer that next
//! reads what it brings (weights, descriptors, spilled activations), or else to the layer that wrote what it takes away (results). What a
//! program measures of itself belongs to none.

use super::Row;
use crate::extents::Extents;
use chipless_model::{Direction, IndexVec, Program, Role, TaskId};
use schemars::JsonSchema;
use serde::Serialize;

/// How the layer of a task is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerSource {
    /// The task's label names it.
    Label,
    /// A task of the layer reads what this one writes.
    Reader,
    /// A task of the layer wrote what this one reads.
    Writer,
}

/// The layers of all tasks. A layer is kept as a task whose label names it.
#[derive(Clone, Debug, Default)]
pub struct Layers(IndexVec<TaskId, Option<(TaskId, LayerSource)>>);

impl Layers {
    /// The layers of a run's tasks, whose rows are in order of start. Accesses count from their first byte to their last.
    pub(super) fn of(program: &Program<'_>, rows: &[Row]) -> Layers {
        if program.tasks.iter().all(|task| task.label.is_none()) {
            return Layers::default();
        }
        let mut layers: IndexVec<TaskId, Option<(TaskId, LayerSource)>> = program
            .tasks
            .indices()
            .map(|task| {
                let named = program.layer(task).is_some();
                named.then_some((task, LayerSource::Label))
            })
            .collect();
        // From the end: the layer that reads each byte next. From the start: the layer that wrote it last.
        pass(
            program,
            rows.iter().rev(),
            &mut layers,
            Direction::Write,
            LayerSource::Reader,
        );
        pass(
            program,
            rows.iter(),
            &mut layers,
            Direction::Read,
            LayerSource::Writer,
        );
        Layers(layers)
    }

    /// The layer of a task, and how it is known.
    pub fn get<'p>(
        &self,
        program: &'p Program<'_>,
        task: TaskId,
    ) -> Option<(&'p str, LayerSource)> {
        let (named, source) = (*self.0.get(task)?)?;
        Some((program.layer(named)?, source))
    }
}

/// Gives tasks without a layer that of the task that they meet at the other end of their bytes: of what they write the next reader, where the
/// rows come from the end; of what they read the last writer.
fn pass<'r>(
    program: &Program<'_>,
    rows: impl Iterator<Item = &'r Row>,
    layers: &mut IndexVec<TaskId, Option<(TaskId, LayerSource)>>,
    own: Direction,
    source: LayerSource,
) {
    let mut met: IndexVec<_, Extents<Option<TaskId>>> =
        program.buffers.iter().map(|_| Extents::default()).collect();
    for row in rows {
        let (mut mine, mut others) = (Vec::new(), Vec::new());
        let mut is_profile = false;
        program.kernel(row.task).accesses(&mut |access| {
            let buffer = &program.buffers[access.buffer];
            is_profile |= access.direction == Direction::Write && buffer.role == Role::Profile;
            let extent = access.pattern.inside(buffer.size);
            if extent.is_empty() {
                return;
            }
            let side = if access.direction == own {
                &mut mine
            } else {
                &mut others
            };
            side.push((access.buffer, extent));
        });
        if is_profile {
            continue;
        }
        if layers[row.task].is_none() {
            let found = mine.iter().find_map(|(buffer, extent)| {
                let mut cells = met[*buffer].meeting(extent.clone());
                cells.find_map(|(_, layer)| *layer)
            });
            layers[row.task] = found.map(|layer| (layer, source));
        }
        // Going back, a write hides later readers; going forward, it makes the writer known.
        let layer = layers[row.task].map(|(layer, _)| layer);
        let (hidden, shown) = match own {
            Direction::Write => (mine, others),
            Direction::Read => (Vec::new(), others),
        };
        for (buffer, extent) in hidden {
            met[buffer].put(extent, None, |_, _| {});
        }
        for (buffer, extent) in shown {
            met[buffer].put(extent, layer, |_, _| {});
        }
    }
}
