//! Where to draw elements. Meshes tell rows and columns of their switches and processing elements; everything else goes into layers by
//! its distance from the input ports.

use chipless_dsa::adg::{Adg, ElementId, ElementKind};
use index_vec::IndexVec;
use std::collections::BTreeMap;

/// Columns and rows in units of half the distance of two switches.
pub(super) struct Layout {
    pub(super) at: IndexVec<ElementId, (f64, f64)>,
    pub(super) width: f64,
    pub(super) height: f64,
}

pub(super) fn layout(adg: &Adg) -> Layout {
    let mut at: IndexVec<ElementId, (f64, f64)> = adg.elements.iter().map(|_| (0.0, 0.0)).collect();
    let inner = |kind: &ElementKind| {
        matches!(
            kind,
            ElementKind::Switch(_) | ElementKind::ProcessingElement(_)
        )
    };
    let known = adg
        .elements
        .iter()
        .filter(|element| inner(&element.kind))
        .all(|element| element.place.is_some());
    let mut bottom: f64 = 0.0;
    if known
        && adg
            .elements
            .iter()
            .any(chipless_dsa::adg::Element::is_switch)
    {
        for (id, element) in adg.elements.iter_enumerated() {
            if let Some((row, column)) = element.place.filter(|_| inner(&element.kind)) {
                // Rows and columns of real meshes are some dozens; those of others are kept from spoiling the picture.
                let (row, column) = (row.min(255), column.min(255));
                let shift = if element.is_switch() { 0.0 } else { 1.0 };
                at[id] = (
                    2.0 * f64::from(column) + shift,
                    2.0 * f64::from(row) + shift,
                );
                bottom = bottom.max(at[id].1);
            }
        }
    } else {
        bottom = layers(adg, &mut at);
    }
    // Ports above and below, memories along the lower edge.
    let mut lines: BTreeMap<u8, f64> = BTreeMap::new();
    for (id, element) in adg.elements.iter_enumerated() {
        let (line, row) = match element.kind {
            ElementKind::InputPort(_) => (0, -2.0),
            ElementKind::OutputPort(_) => (1, bottom + 2.0),
            ElementKind::Memory(_) => (2, bottom + 4.0),
            _ => continue,
        };
        let column = lines.entry(line).or_insert(0.0);
        at[id] = (*column, row);
        *column += 2.0;
    }
    let width = at.iter().map(|(x, _)| *x).fold(0.0, f64::max);
    for (_, y) in &mut at {
        *y += 2.0;
    }
    let height = at.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    Layout { at, width, height }
}

/// Layers by distance from the input ports; the lowest row.
fn layers(adg: &Adg, at: &mut IndexVec<ElementId, (f64, f64)>) -> f64 {
    let mut layer: IndexVec<ElementId, Option<u32>> = adg.elements.iter().map(|_| None).collect();
    let mut queue: Vec<ElementId> = Vec::new();
    for (id, element) in adg.elements.iter_enumerated() {
        if matches!(element.kind, ElementKind::InputPort(_)) {
            layer[id] = Some(0);
            queue.push(id);
        }
    }
    let mut next = 0;
    while let Some(&id) = queue.get(next) {
        next += 1;
        for link in &adg.elements[id].outputs {
            let sink = adg.links[*link].sink;
            if layer[sink].is_none() {
                layer[sink] = layer[id].map(|layer| layer + 1);
                queue.push(sink);
            }
        }
    }
    let mut columns: BTreeMap<u32, f64> = BTreeMap::new();
    let mut bottom: f64 = 0.0;
    for (id, element) in adg.elements.iter_enumerated() {
        if matches!(
            element.kind,
            ElementKind::Switch(_) | ElementKind::ProcessingElement(_)
        ) {
            let row = layer[id].unwrap_or(1).max(1) - 1;
            let column = columns.entry(row).or_insert(0.0);
            at[id] = (*column, 2.0 * f64::from(row));
            *column += 2.0;
            bottom = bottom.max(at[id].1);
        }
    }
    bottom
}
