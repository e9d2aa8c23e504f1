//! Handles of variables, and what stands behind them.

use crate::command::{Console, operands, shown, sync_text, syncs_of, waiting};
use crate::place::Place;
use crate::tensor::Tensor;
use chipless_model::TaskId;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// Children of a tensor that are shown at once.
const PAGE: usize = 100;
/// Syncs and buffers that are shown.
const SHOWN: usize = 1000;

/// What a handle stands for.
#[derive(Clone)]
pub(super) enum Children {
    Operands(Option<TaskId>),
    Syncs(Option<TaskId>),
    Buffers,
    /// The elements of a place.
    Place(Place),
    /// Some elements of a tensor.
    Elements(Arc<Tensor>, usize, usize),
}

/// Handles that have been given out since the last stop.
#[derive(Default)]
pub(super) struct Handles(Vec<Children>);

impl Handles {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn give(&mut self, children: Children) -> i64 {
        self.0.push(children);
        self.0.len() as i64
    }

    pub(super) fn get(&self, handle: i64) -> Result<Children, String> {
        let index = usize::try_from(handle - 1).ok();
        let found = index.and_then(|index| self.0.get(index)).cloned();
        found.ok_or_else(|| format!("expected a variablesReference of this stop, found {handle}"))
    }

    /// The variables behind a handle.
    pub(super) fn list(
        &mut self,
        console: &Console<'_, '_>,
        handle: i64,
    ) -> Result<Vec<Json>, String> {
        let program = console.debugger.session.program();
        Ok(match self.get(handle)? {
            Children::Operands(None) => Vec::new(),
            Children::Operands(Some(task)) => operands(program, task)
                .into_iter()
                .map(|(name, place)| self.place(console, &name, place))
                .collect(),
            Children::Syncs(task) => syncs(console, task),
            Children::Buffers => self.buffers(console),
            Children::Place(place) => {
                let tensor = Arc::new(console.debugger.read(&place)?);
                self.elements(&tensor, 0, tensor.len())
            }
            Children::Elements(tensor, first, count) => self.elements(&tensor, first, count),
        })
    }

    /// A place as a variable.
    fn place(&mut self, console: &Console<'_, '_>, name: &str, place: Place) -> Json {
        let text = console.debugger.text_of(&place);
        let (kind, value, tensor) = shown(console, &place);
        let has_children = tensor.is_some_and(|tensor| tensor.len() > 1);
        json!({
            "name": name,
            "value": value,
            "type": kind,
            "evaluateName": text,
            "variablesReference": if has_children { self.give(Children::Place(place)) } else { 0 },
            "memoryReference": text,
        })
    }

    /// Elements, or pages of them where there are many.
    fn elements(&mut self, tensor: &Arc<Tensor>, first: usize, count: usize) -> Vec<Json> {
        let mut size = 1;
        while count.div_ceil(size) > PAGE {
            size *= PAGE;
        }
        let starts = (first..first + count).step_by(size);
        let each = starts.map(|start| {
            let size = size.min(first + count - start);
            if size == 1 {
                return json!({
                    "name": coordinates(&tensor.shape, start),
                    "value": tensor.text_of(start),
                    "variablesReference": 0,
                });
            }
            let last = start + size - 1;
            let page = Children::Elements(tensor.clone(), start, size);
            json!({
                "name": format!("{}..{}", coordinates(&tensor.shape, start), coordinates(&tensor.shape, last)),
                "value": "",
                "variablesReference": self.give(page),
            })
        });
        each.collect()
    }

    fn buffers(&mut self, console: &Console<'_, '_>) -> Vec<Json> {
        let program = console.debugger.session.program();
        let inputs = (0..program.interface.inputs.len()).map(|n| (false, n));
        let outputs = (0..program.interface.outputs.len()).map(|n| (true, n));
        let mut found: Vec<Json> = Vec::new();
        for (output, index) in inputs.chain(outputs) {
            let name = crate::place::port(program, output, index).name.clone();
            found.push(self.place(console, &name, Place::Port { output, index }));
        }
        for (buffer, b) in program.buffers.iter_enumerated().take(SHOWN) {
            let memory = &program.memories[b.memory].name;
            let place = Place::Range {
                buffer,
                low: 0,
                high: b.size,
            };
            found.push(json!({
                "name": b.name,
                "value": format!("{} bytes, {}, in {memory}", b.size, b.role.name()),
                "memoryReference": console.debugger.text_of(&place),
                "variablesReference": 0,
            }));
        }
        found
    }
}

/// The syncs of a task; all of them at the end.
fn syncs(console: &Console<'_, '_>, task: Option<TaskId>) -> Vec<Json> {
    let session = &console.debugger.session;
    let program = session.program();
    let shown = match task {
        Some(task) => syncs_of(program, task),
        None => program.syncs.indices().take(SHOWN).collect(),
    };
    let each = shown.into_iter().filter_map(|id| {
        let mut value = sync_text(program, *session.moment().syncs.get(id)?);
        let waiting = waiting(console, id);
        if !waiting.is_empty() {
            value.push_str(&format!("; waited for by {}", waiting.join(", ")));
        }
        Some(json!({
            "name": program.syncs[id].name,
            "value": value,
            "variablesReference": 0,
        }))
    });
    each.collect()
}

/// `[0, 3, 2]`.
fn coordinates(shape: &[u64], at: usize) -> String {
    let mut rest = at as u64;
    let mut found: Vec<String> = Vec::new();
    for size in shape.iter().rev() {
        let size = (*size).max(1);
        found.push((rest % size).to_string());
        rest /= size;
    }
    found.reverse();
    format!("[{}]", found.join(", "))
}
