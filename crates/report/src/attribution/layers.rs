//! Which layer a task belongs to: the one that its label names, or else the one that data flow gives it to.
//!
//! Compilers name the tasks that compute, and not always those that only bring something. A transfer without a name belongs to the layer that next
//! reads what it brings (weights, descriptors, spilled activations), or else to the layer that wrote what it takes away (results). What a
//! program measures of itself belongs to none.

use super::Row;
use crate::extents::Extents;
use chipless_model::{BufferId, Direction, IndexVec, Program, Role, TaskId};
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Range;

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
        if layers.iter().all(Option::is_some) {
            return Layers(layers);
        }
        let touches = Touches::of(program, rows);
        // From the end: the layer that reads each byte next. From the start: the layer that wrote it last.
        let numbered = rows.iter().enumerate();
        pass(
            &touches,
            numbered.clone().rev(),
            &mut layers,
            Direction::Write,
            LayerSource::Reader,
        );
        if layers.iter().any(Option::is_none) {
            pass(
                &touches,
                numbered,
                &mut layers,
                Direction::Read,
                LayerSource::Writer,
            );
        }
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

/// A range that a row touches.
struct Touch {
    buffer: BufferId,
    extent: Range<u64>,
    direction: Direction,
}

/// What each row touches, in the order of its accesses; ranges that continue one another are one. A row that writes what the program measures of
/// itself has none.
struct Touches {
    of: Vec<Touch>,
    /// Behind the last of each row.
    ends: Vec<usize>,
    buffers: usize,
}

impl Touches {
    fn of(program: &Program<'_>, rows: &[Row]) -> Touches {
        let mut of: Vec<Touch> = Vec::new();
        let mut ends = Vec::with_capacity(rows.len());
        for row in rows {
            let first = of.len();
            let mut is_profile = false;
            program
                .kernel(row.task)
                .swizzled_accesses(&mut |access, swizzle| {
                    let buffer = &program.buffers[access.buffer];
                    let direction = access.direction;
                    is_profile |= direction == Direction::Write && buffer.role == Role::Profile;
                    let within = access.pattern.inside(buffer.size);
                    if within.is_empty() {
                        return;
                    }
                    let mut extent = swizzle.rows(within.start, within.end - within.start);
                    extent.end = extent.end.min(buffer.size);
                    match of[first..].last_mut() {
                        Some(last)
                            if last.buffer == access.buffer
                                && last.direction == direction
                                && last.extent.end == extent.start =>
                        {
                            last.extent.end = extent.end;
                        }
                        _ => of.push(Touch {
                            buffer: access.buffer,
                            extent,
                            direction,
                        }),
                    }
                });
            if is_profile {
                of.truncate(first);
            }
            ends.push(of.len());
        }
        Touches {
            of,
            ends,
            buffers: program.buffers.len(),
        }
    }

    fn row(&self, number: usize) -> &[Touch] {
        let before = number.checked_sub(1);
        let first = before.map_or(0, |before| self.ends[before]);
        &self.of[first..self.ends[number]]
    }
}

/// Gives tasks without a layer that of the task that they meet at the other end of their bytes: of what they write the next reader, where the
/// rows come from the end; of what they read the last writer.
fn pass<'r>(
    touches: &Touches,
    rows: impl Iterator<Item = (usize, &'r Row)>,
    layers: &mut IndexVec<TaskId, Option<(TaskId, LayerSource)>>,
    own: Direction,
    source: LayerSource,
) {
    let mut met: IndexVec<BufferId, Extents<Option<TaskId>>> =
        (0..touches.buffers).map(|_| Extents::default()).collect();
    for (number, row) in rows {
        let touches = touches.row(number);
        let mine = || touches.iter().filter(|touch| touch.direction == own);
        if layers[row.task].is_none() {
            let found = mine().find_map(|touch| {
                let mut cells = met[touch.buffer].meeting(touch.extent.clone());
                cells.find_map(|(_, layer)| *layer)
            });
            layers[row.task] = found.map(|layer| (layer, source));
        }
        // Going back, a write hides later readers; going forward, it makes the writer known.
        let layer = layers[row.task].map(|(layer, _)| layer);
        if own == Direction::Write {
            for touch in mine() {
                met[touch.buffer].put(touch.extent.clone(), None, |_, _| {});
            }
        }
        for touch in touches.iter().filter(|touch| touch.direction != own) {
            met[touch.buffer].put(touch.extent.clone(), layer, |_, _| {});
        }
    }
}
