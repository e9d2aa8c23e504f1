//! Whether every vertex can have a place of its own.

use crate::fabric::Fabric;
use crate::kernel::{Kernel, Place, label};
use chipless_dsa::adg::ElementId;
use chipless_dsa::graph::Graph;
use std::collections::BTreeMap;

/// Whether every vertex can have a place of its own: a bipartite matching. Where there is none, the vertices and places that prove it.
pub(super) fn matching(
    graph: &Graph,
    kernel: &Kernel,
    fabric: &Fabric<'_>,
    of: &[Vec<(u32, u32)>],
    place: Place,
    what: &str,
) -> Result<(), String> {
    let mut holders: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    let room = |spot: (u32, u32)| match &fabric.adg.elements[ElementId::new(spot.0 as usize)]
        .processing()
    {
        Some(unit) if unit.is_shared() => unit.instruction_slots as usize,
        _ => 1,
    };
    for (vertex, _) in kernel
        .vertices
        .iter()
        .enumerate()
        .filter(|(_, vertex)| vertex.place == place)
    {
        // Breadth first over alternating paths.
        let mut from: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        let mut queue = vec![vertex];
        let mut next = 0;
        let mut end = None;
        'search: while let Some(&at) = queue.get(next) {
            next += 1;
            for &spot in &of[at] {
                if from.contains_key(&spot) {
                    continue;
                }
                from.insert(spot, at);
                let held = holders.entry(spot).or_default();
                if held.len() < room(spot) {
                    end = Some(spot);
                    break 'search;
                }
                queue.extend(
                    held.iter()
                        .copied()
                        .filter(|other| !queue.contains(other))
                        .collect::<Vec<_>>(),
                );
            }
        }
        let Some(mut spot) = end else {
            let names: Vec<String> = queue
                .iter()
                .take(6)
                .map(|v| label(graph, kernel.vertices[*v].node))
                .collect();
            let more = if queue.len() > names.len() {
                ", …"
            } else {
                ""
            };
            let places: usize = from.keys().map(|spot| room(*spot)).sum();
            return Err(format!(
                "{} {what} ({}{more}) have {places} places between them",
                queue.len(),
                names.join(", ")
            ));
        };
        while let Some(&taker) = from.get(&spot) {
            let previous = holders
                .iter()
                .find(|(_, held)| held.contains(&taker))
                .map(|(spot, _)| *spot);
            if let Some(previous) = previous
                && let Some(held) = holders.get_mut(&previous)
            {
                held.retain(|other| *other != taker);
            }
            holders.entry(spot).or_default().push(taker);
            match previous {
                Some(previous) if taker != vertex => spot = previous,
                _ => break,
            }
        }
    }
    Ok(())
}
