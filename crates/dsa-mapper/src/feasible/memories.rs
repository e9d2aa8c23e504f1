//! Which memory each array is in.

use crate::fabric::Fabric;
use crate::kernel::{Kernel, label};
use chipless_dsa::adg::MemoryKind;
use chipless_dsa::graph::{ArrayKind, Graph};

/// Divisions of arrays among memories that are tried, at most.
const MOST_DIVISIONS: usize = 4096;
/// Steps of the search for divisions.
const STEPS: usize = 1 << 18;

fn memory_kind(kind: ArrayKind) -> MemoryKind {
    match kind {
        ArrayKind::Dma => MemoryKind::DirectMemoryAccess,
        ArrayKind::Scratchpad => MemoryKind::Scratchpad,
        ArrayKind::Recurrence => MemoryKind::Recurrence,
        ArrayKind::Generate => MemoryKind::Generate,
        ArrayKind::Register => MemoryKind::Register,
    }
}

/// Ways to divide the arrays among the memories of their kinds, the most even first: for each array its memory.
pub(crate) fn divisions(
    graph: &Graph,
    kernel: &Kernel,
    fabric: &Fabric<'_>,
) -> Result<(Vec<Vec<u32>>, bool), String> {
    let memories: Vec<(u32, ArrayRoom)> = fabric
        .adg
        .elements
        .iter_enumerated()
        .filter_map(|(id, element)| {
            let memory = element.memory()?;
            Some((
                id.index() as u32,
                ArrayRoom {
                    kind: memory.kind,
                    left: memory.capacity,
                },
            ))
        })
        .collect();
    let mut order: Vec<usize> = (0..kernel.arrays.len()).collect();
    order.sort_by_key(|array| std::cmp::Reverse(kernel.arrays[*array].size));
    for array in &kernel.arrays {
        let kind = memory_kind(array.kind);
        let most = memories
            .iter()
            .filter(|(_, room)| room.kind == kind)
            .map(|(_, room)| room.left)
            .max();
        let (name, size) = (label(graph, array.node), array.size);
        match most {
            None => {
                return Err(format!(
                    "the array {name} needs a {}; the fabric has none",
                    kind.name()
                ));
            }
            Some(most) if most < size => {
                return Err(format!(
                    "the array {name} needs {size} bytes of a {}; the largest has {most}",
                    kind.name()
                ));
            }
            Some(_) => {}
        }
    }
    Ok(divide(kernel, &order, memories))
}

#[derive(Clone, Copy)]
struct ArrayRoom {
    kind: MemoryKind,
    left: u64,
}

/// Every array on a memory with room for it, in every way, until there are enough; and whether these are all.
fn divide(
    kernel: &Kernel,
    order: &[usize],
    mut memories: Vec<(u32, ArrayRoom)>,
) -> (Vec<Vec<u32>>, bool) {
    let mut chosen = vec![0; order.len()];
    if order.is_empty() {
        return (vec![chosen], true);
    }
    // The memory with the most room first.
    let options = |memories: &[(u32, ArrayRoom)], array: usize| -> Vec<usize> {
        let (kind, size) = (
            memory_kind(kernel.arrays[array].kind),
            kernel.arrays[array].size,
        );
        let mut fitting: Vec<usize> = (0..memories.len())
            .filter(|memory| memories[*memory].1.kind == kind && memories[*memory].1.left >= size)
            .collect();
        fitting.sort_by_key(|memory| std::cmp::Reverse(memories[*memory].1.left));
        fitting
    };
    let mut found = Vec::new();
    let mut stack: Vec<(Vec<usize>, usize)> = vec![(options(&memories, order[0]), 0)];
    for _ in 0..STEPS {
        let depth = stack.len();
        let Some((fitting, next)) = stack.last_mut() else {
            return (found, true);
        };
        let array = order[depth - 1];
        let size = kernel.arrays[array].size;
        if let Some(&before) = next.checked_sub(1).and_then(|before| fitting.get(before)) {
            memories[before].1.left += size;
        }
        let Some(&memory) = fitting.get(*next) else {
            stack.pop();
            continue;
        };
        *next += 1;
        memories[memory].1.left -= size;
        chosen[array] = memories[memory].0;
        match order.get(depth) {
            Some(array) => stack.push((options(&memories, *array), 0)),
            None => found.push(chosen.clone()),
        }
        if found.len() >= MOST_DIVISIONS {
            break;
        }
    }
    (found, false)
}
