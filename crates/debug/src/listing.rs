//! The text of `list` as a source file: every task of a program, and the line at which each stands.

use chipless_model::{IndexVec, Program, TaskId};
use chipless_report::Paint;
use chipless_report::list::Lister;
use chipless_sim::Timeline;

/// A listing with its lines.
pub(crate) struct Listing {
    pub(crate) text: String,
    /// The line of each task, from 1.
    pub(crate) lines: IndexVec<TaskId, u32>,
}

impl Listing {
    pub(crate) fn of(program: &Program<'_>, timeline: &Timeline) -> Listing {
        let lister = Lister::new(program, Some(timeline), Paint::PLAIN);
        let mut tasks: Vec<TaskId> = program.tasks.indices().collect();
        tasks.sort_by_key(|task| (program.tasks[*task].queue, program.tasks[*task].index));
        let mut listing = Listing {
            text: String::new(),
            lines: program.tasks.iter().map(|_| 0).collect(),
        };
        let (mut queue, mut line, mut counted) = (None, 1, 0);
        for task in tasks {
            let here = program.tasks[task].queue;
            if queue != Some(here) {
                listing
                    .text
                    .push_str(if queue.is_some() { "\n" } else { "" });
                listing.text.push_str(&lister.queue(here));
                queue = Some(here);
            }
            line += listing.text[counted..].matches('\n').count() as u32;
            counted = listing.text.len();
            listing.lines[task] = line;
            lister.text(&mut listing.text, task);
        }
        listing
    }

    /// What the listing has of one task.
    pub(crate) fn of_task(&self, task: TaskId) -> String {
        let mut lines = self.text.lines().skip(self.lines[task] as usize - 1);
        let head = lines.next().unwrap_or_default();
        let rest = lines.take_while(|line| line.starts_with("      "));
        std::iter::once(head)
            .chain(rest)
            .map(|line| format!("{line}\n"))
            .collect()
    }

    /// The tasks at a line, or at the first line behind it that has one.
    pub(crate) fn at(&self, line: u32) -> Option<TaskId> {
        let behind = self
            .lines
            .iter_enumerated()
            .filter(|(_, own)| **own >= line);
        behind.min_by_key(|(_, own)| **own).map(|(task, _)| task)
    }
}
