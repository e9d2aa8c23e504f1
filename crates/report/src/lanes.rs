//! The lanes of a run: one for each server of each queue that ran a task, in natural order.

use crate::attribution::Attribution;
use chipless_model::{Program, QueueId, TaskId};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// A server of a queue, and the tasks that it ran in order.
pub(crate) struct Lane {
    pub(crate) queue: QueueId,
    pub(crate) server: u32,
    pub(crate) tasks: Vec<TaskId>,
}

impl Lane {
    pub(crate) fn name(&self, program: &Program<'_>) -> String {
        let queue = &program.queues[self.queue];
        if queue.servers > 1 {
            format!("{} server {}", queue.name, self.server)
        } else {
            queue.name.clone()
        }
    }
}

pub(crate) fn lanes(program: &Program<'_>, attribution: &Attribution) -> Vec<Lane> {
    let mut order: Vec<QueueId> = program.queues.indices().collect();
    order.sort_by_cached_key(|queue| natural(&program.queues[*queue].name));
    let mut lanes = Vec::new();
    let mut first: FxHashMap<QueueId, usize> = FxHashMap::default();
    for queue in order {
        first.insert(queue, lanes.len());
        lanes.extend((0..program.queues[queue].servers).map(|server| Lane {
            queue,
            server,
            tasks: Vec::new(),
        }));
    }
    for row in &attribution.rows {
        let queue = program.tasks[row.task].queue;
        lanes[first[&queue] + row.server as usize]
            .tasks
            .push(row.task);
    }
    lanes.retain(|lane| !lane.tasks.is_empty());
    lanes
}

/// A key by which names sort as people expect: core 2 before core 10.
fn natural(name: &str) -> Vec<(String, u64)> {
    let key = |(text, digits): (&str, &str)| (text.to_owned(), digits.parse().unwrap_or(0));
    pieces(name).into_iter().map(key).collect()
}

/// A name in pieces: a text, and the number behind it; the last may have none.
pub(crate) fn pieces(name: &str) -> Vec<(&str, &str)> {
    let mut pieces = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digit = |c: char| c.is_ascii_digit();
        let text = rest.find(digit).unwrap_or(rest.len());
        let (text, after) = rest.split_at(text);
        let digits = after.find(|c| !digit(c)).unwrap_or(after.len());
        let (digits, after) = after.split_at(digits);
        pieces.push((text, digits));
        rest = after;
    }
    pieces
}

/// Names that differ in numbers alone as one, `core0–15.pe`: a number that differs shows its range.
pub fn joint(names: &[&str]) -> String {
    let all: Vec<Vec<(&str, &str)>> = names.iter().map(|name| pieces(name)).collect();
    let mut joint = String::new();
    for (at, (text, digits)) in all.iter().take(1).flatten().enumerate() {
        let numbers = all.iter().filter_map(|pieces| Some(pieces.get(at)?.1));
        let value = |digits: &&str| digits.parse::<u64>().unwrap_or(u64::MAX);
        let (least, most) = (
            numbers.clone().min_by_key(value).unwrap_or(digits),
            numbers.max_by_key(value).unwrap_or(digits),
        );
        let _ = if least == most {
            write!(joint, "{text}{digits}")
        } else {
            write!(joint, "{text}{least}–{most}")
        };
    }
    joint
}

/// Names, those that differ in numbers alone as one each, with commas between.
pub fn listed(names: &[&str]) -> String {
    let mut kinds: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for name in names {
        let texts: Vec<&str> = pieces(name).into_iter().map(|(text, _)| text).collect();
        match kinds.iter_mut().find(|(known, _)| *known == texts) {
            Some((_, alike)) => alike.push(name),
            None => kinds.push((texts, vec![name])),
        }
    }
    let joined: Vec<String> = kinds.iter().map(|(_, alike)| joint(alike)).collect();
    joined.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{listed, natural};

    #[test]
    fn names_that_differ_in_numbers_are_listed_as_one() {
        let names = ["dram", "core0.pe", "core0.vp", "core1.pe", "core15.pe"];
        assert_eq!(listed(&names), "dram, core0–15.pe, core0.vp");
    }

    #[test]
    fn numbers_in_names_sort_by_value() {
        let mut names = ["dma10", "dma2", "dma", "core 2.link", "core 10"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["core 2.link", "core 10", "dma", "dma2", "dma10"]);
    }
}
