//! What the layers of a program take: a profile of one job alone.

use crate::quantity::ns;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A layer of a program that runs alone. Times count from its first task on.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Layer {
    /// Its name.
    pub name: String,
    /// Its tasks.
    pub tasks: u64,
    /// When the first of them starts.
    pub start_ns: f64,
    /// When the last of them ends.
    pub end_ns: f64,
    /// For how long any of them runs.
    pub busy_ns: f64,
}

/// The layers of tasks, each with its name, start and end in picoseconds, in the order of their starts.
pub fn layers<'n>(tasks: impl Iterator<Item = (&'n str, u64, u64)>) -> Vec<Layer> {
    let mut times: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    let mut first = u64::MAX;
    for (name, start, end) in tasks {
        first = first.min(start);
        times.entry(name).or_default().push((start, end));
    }
    let mut layers: Vec<(u64, Layer)> = Vec::with_capacity(times.len());
    for (name, mut times) in times {
        times.sort_unstable();
        let (mut busy, mut until) = (0, 0);
        for (start, end) in &times {
            busy += end.saturating_sub(until.max(*start));
            until = until.max(*end);
        }
        let start = times.first().map_or(0, |(start, _)| *start);
        let layer = Layer {
            name: name.to_owned(),
            tasks: times.len() as u64,
            start_ns: ns((start - first) as f64),
            end_ns: ns((until - first) as f64),
            busy_ns: ns(busy as f64),
        };
        layers.push((start, layer));
    }
    layers.sort_by_key(|(start, _)| *start);
    layers.into_iter().map(|(_, layer)| layer).collect()
}

#[cfg(test)]
mod tests {
    use super::layers;

    #[test]
    fn a_layer_is_busy_while_any_of_its_tasks_runs() {
        let tasks = [
            ("b", 5_000, 9_000),
            ("a", 1_000, 4_000),
            ("a", 2_000, 3_000),
            ("a", 6_000, 7_000),
        ];
        let found = layers(tasks.into_iter());
        let found: Vec<_> = found
            .iter()
            .map(|l| (&*l.name, l.tasks, l.start_ns, l.end_ns, l.busy_ns))
            .collect();
        assert_eq!(found, [("a", 3, 0.0, 6.0, 4.0), ("b", 1, 4.0, 8.0, 4.0)]);
    }
}
