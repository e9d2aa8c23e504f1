//! What a run leaves for other tools: traces and tables.

use crate::commands::full;
use crate::failure::Failure;
use crate::files;
use chipless_model::Program;
use chipless_report::attribution::{Attribution, lives};
use chipless_report::tables::{Form, Table};
use chipless_report::{chrome, perfetto};
use chipless_sim::Timeline;
use clap::Args;
use std::path::{Path, PathBuf};

/// Files that a run is written to.
#[derive(Args, Debug)]
#[command(next_help_heading = "Tables and traces")]
pub(super) struct Tables {
    /// Write a trace: .pftrace (Perfetto) or .json (Chrome).
    #[arg(long, value_name = "FILE.pftrace|.json")]
    trace: Option<PathBuf>,
    /// Write a row per task: times, waits, bytes, slack.
    #[arg(long, value_name = "FILE.csv|.json|.parquet")]
    tasks: Option<PathBuf>,
    /// Write a row for each wait: for what, and who ended it.
    #[arg(long, value_name = "FILE.csv|.json|.parquet")]
    waits: Option<PathBuf>,
    /// Write the live bytes of each memory over time.
    #[arg(long, value_name = "FILE.csv|.json|.parquet")]
    memory: Option<PathBuf>,
}

impl Tables {
    /// Refuses endings that mean nothing, before anything runs.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let tables = [
            ("--tasks", &self.tasks),
            ("--waits", &self.waits),
            ("--memory", &self.memory),
        ];
        for (option, path) in tables {
            if let Some(path) = path.as_deref().filter(|path| form(path).is_none()) {
                return Err(unknown(option, full::TABLES, path));
            }
        }
        match &self.trace {
            Some(path) if !is(path, "pftrace") && !is(path, "json") => {
                Err(unknown("--trace", "`.pftrace` or `.json`", path))
            }
            _ => Ok(()),
        }
    }

    /// Whether any was asked for.
    pub(super) fn are_wanted(&self) -> bool {
        let Tables {
            trace,
            tasks,
            waits,
            memory,
        } = self;
        [trace, tasks, waits, memory].iter().any(|p| p.is_some())
    }

    /// Writes what was asked for.
    pub(super) fn write(
        &self,
        file: &str,
        program: &Program<'_>,
        timeline: &Timeline,
        attribution: &Attribution,
    ) -> Result<(), Failure> {
        let Tables {
            trace,
            tasks,
            waits,
            memory,
        } = self;
        let lives = lives(program, timeline);
        if let Some(path) = trace {
            let bytes = if is(path, "json") {
                chrome::trace(file, program, timeline, attribution)
            } else {
                perfetto::trace(file, program, timeline, attribution, &lives)
            };
            files::write(path, &[&bytes])?;
        }
        write(tasks.as_deref(), || {
            Table::tasks(program, timeline, attribution)
        })?;
        write(waits.as_deref(), || Table::waits(program, attribution))?;
        write(memory.as_deref(), || Table::memory(program, &lives))
    }
}

fn write(path: Option<&Path>, table: impl FnOnce() -> Table) -> Result<(), Failure> {
    match path.and_then(|path| Some((path, form(path)?))) {
        Some((path, form)) => files::write(path, &[&table().write(form)]),
        None => Ok(()),
    }
}

fn form(path: &Path) -> Option<Form> {
    Form::of(&path.to_string_lossy())
}

fn is(path: &Path, ending: &str) -> bool {
    path.extension()
        .is_some_and(|e| e.eq_ignore_ascii_case(ending))
}

fn unknown(option: &str, expected: &str, path: &Path) -> Failure {
    let text = format!(
        "expected a name that ends in {expected}, found {}",
        path.display()
    );
    Failure::misuse(option, text)
}
