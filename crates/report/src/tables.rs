//! A run as tables: tasks, waits, live bytes; as CSV, JSON or Parquet, which hold the same values.
//!
//! Times are nanoseconds, exact to a picosecond; sizes are bytes. docs/tables.md describes each column.

mod csv;
mod json;
#[cfg(feature = "parquet")]
mod parquet;

use crate::attribution::{Attribution, Lives, Row, Touched, Wait, touched};
use chipless_model::{Program, TaskId, Time};
use chipless_sim::Timeline;
use std::borrow::Cow;

/// Version of all tables.
pub const SCHEMA_VERSION: u32 = 1;

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Comma-separated values; lists are JSON texts.
    Csv,
    /// `{schema_version, NAME: […]}`.
    Json,
    /// Apache Parquet, uncompressed; `schema_version` stands in its metadata.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Form {
    /// By the ending of a file's name.
    pub fn of(name: &str) -> Option<Form> {
        let (_, ending) = name.rsplit_once('.')?;
        match ending.to_ascii_lowercase().as_str() {
            "csv" => Some(Form::Csv),
            "json" => Some(Form::Json),
            #[cfg(feature = "parquet")]
            "parquet" => Some(Form::Parquet),
            _ => None,
        }
    }
}

/// A table: its name and its columns, all of one length.
#[derive(Debug)]
pub struct Table {
    name: &'static str,
    columns: Vec<Column>,
}

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    /// Its name.
    pub name: Cow<'static, str>,
    /// A value for each row.
    pub values: Values,
}

/// The values of a column.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names say what is in them")]
pub enum Values {
    Text(Vec<String>),
    OptionalText(Vec<Option<String>>),
    Count(Vec<u32>),
    Size(Vec<u64>),
    Whole(Vec<i64>),
    Time(Vec<f64>),
    OptionalNumber(Vec<Option<f64>>),
    Flag(Vec<bool>),
    Waits(Vec<Vec<WaitPart>>),
    Bytes(Vec<Vec<MemoryBytes>>),
}

/// A part of a task's wait.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitPart {
    /// `sync`, `release`, `server` or `end`.
    pub reason: &'static str,
    /// The sync, where one was waited for.
    pub on: Option<String>,
    /// The task that ended it.
    pub by: Option<String>,
    /// Nanoseconds.
    pub ns: f64,
}

/// What a task touched in a memory, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryBytes {
    /// The memory.
    pub memory: String,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

impl Table {
    /// A row for each task that ran, in order of start, then of number.
    pub fn tasks(program: &Program<'_>, timeline: &Timeline, attribution: &Attribution) -> Table {
        let rows = &attribution.rows;
        let text = |of: &dyn Fn(&Row) -> String| Values::Text(rows.iter().map(of).collect());
        let time =
            |of: &dyn Fn(&Row) -> Time| Values::Time(rows.iter().map(|r| of(r).ns()).collect());
        let count = |of: &dyn Fn(&Row) -> u32| Values::Count(rows.iter().map(of).collect());
        let task = |row: &Row| &program.tasks[row.task];
        let layers = rows
            .iter()
            .map(|r| attribution.layer(program, r.task).map(str::to_owned));
        let waits = rows
            .iter()
            .map(|r| r.waits.iter().map(|w| wait_part(program, w)).collect());
        let bytes = rows.iter().map(|r| {
            let touched = touched(program, r.task);
            touched.iter().map(|t| memory_bytes(program, t)).collect()
        });
        let slack = attribution.slack(program, timeline);
        Table {
            name: "tasks",
            columns: vec![
                column("task", text(&|r| program.task_name(r.task))),
                column(
                    "queue",
                    text(&|r| program.queues[task(r).queue].name.clone()),
                ),
                column("server", count(&|r| r.server)),
                column("index", count(&|r| task(r).index)),
                column("layer", Values::OptionalText(layers.collect())),
                column(
                    "operation",
                    text(&|r| program.kernel(r.task).operation().into_owned()),
                ),
                column("start_ns", time(&|r| r.start)),
                column("end_ns", time(&|r| r.end)),
                column("alone_ns", time(&|r| r.alone)),
                column("wait_ns", time(&|r| r.waited)),
                column("waits", Values::Waits(waits.collect())),
                column("bytes", Values::Bytes(bytes.collect())),
                column(
                    "critical",
                    Values::Flag(rows.iter().map(|r| r.critical).collect()),
                ),
                column(
                    "slack_ns",
                    Values::Time(slack.iter().map(|slack| slack.ns()).collect()),
                ),
            ],
        }
    }

    /// A row for each part of each wait.
    pub fn waits(program: &Program<'_>, attribution: &Attribution) -> Table {
        let rows = attribution.rows.iter();
        let parts: Vec<(&Row, &Wait)> = rows
            .flat_map(|r| r.waits.iter().map(move |w| (r, w)))
            .collect();
        let name = |task: TaskId| program.task_name(task);
        let each = parts.iter();
        Table {
            name: "waits",
            columns: vec![
                column(
                    "task",
                    Values::Text(each.clone().map(|(r, _)| name(r.task)).collect()),
                ),
                column(
                    "queue",
                    Values::Text(
                        each.clone()
                            .map(|(r, _)| program.queues[program.tasks[r.task].queue].name.clone())
                            .collect(),
                    ),
                ),
                column(
                    "reason",
                    Values::Text(
                        each.clone()
                            .map(|(_, w)| w.reason.name().to_owned())
                            .collect(),
                    ),
                ),
                column(
                    "on",
                    Values::OptionalText(
                        each.clone()
                            .map(|(_, w)| w.on.map(|s| program.syncs[s].name.clone()))
                            .collect(),
                    ),
                ),
                column(
                    "by",
                    Values::OptionalText(each.clone().map(|(_, w)| w.by.map(name)).collect()),
                ),
                column(
                    "start_ns",
                    Values::Time(each.clone().map(|(_, w)| w.start.ns()).collect()),
                ),
                column(
                    "end_ns",
                    Values::Time(each.map(|(_, w)| w.end.ns()).collect()),
                ),
            ],
        }
    }

    /// Live bytes of each memory: a row at time 0 and one for each change.
    pub fn memory(program: &Program<'_>, lives: &Lives) -> Table {
        let levels = lives.levels();
        let rows = || {
            levels
                .iter_enumerated()
                .flat_map(|(memory, levels)| levels.iter().map(move |level| (memory, *level)))
        };
        Table {
            name: "memory",
            columns: vec![
                column(
                    "memory",
                    Values::Text(
                        rows()
                            .map(|(m, _)| program.memories[m].name.clone())
                            .collect(),
                    ),
                ),
                column(
                    "time_ns",
                    Values::Time(rows().map(|(_, (at, _))| at.ns()).collect()),
                ),
                column(
                    "live_bytes",
                    Values::Size(rows().map(|(_, (_, bytes))| bytes).collect()),
                ),
            ],
        }
    }

    /// A table of these columns.
    pub fn new(name: &'static str, columns: Vec<Column>) -> Table {
        Table { name, columns }
    }

    /// Its columns.
    pub fn columns(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter()
    }

    /// The table in a form.
    pub fn write(&self, form: Form) -> Vec<u8> {
        self.write_with(form, &[])
    }

    /// The same; Parquet keeps more metadata.
    #[cfg_attr(
        not(feature = "parquet"),
        expect(unused_variables, reason = "no other form keeps any")
    )]
    pub fn write_with(&self, form: Form, metadata: &[(&str, String)]) -> Vec<u8> {
        match form {
            Form::Csv => csv::write(self),
            Form::Json => json::write(self),
            #[cfg(feature = "parquet")]
            Form::Parquet => parquet::write(self, metadata),
        }
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// Adds the rows of a table with the same columns.
    pub fn append(&mut self, other: Table) {
        for (column, more) in self.columns.iter_mut().zip(other.columns) {
            column.values.append(more.values);
        }
    }

    /// Adds a column, which has a value for each row.
    pub fn push(&mut self, column: Column) {
        self.columns.push(column);
    }

    /// Puts the rows in this order.
    pub fn reorder(&mut self, order: &[usize]) {
        for column in &mut self.columns {
            column.values.reorder(order);
        }
    }
}

macro_rules! for_all {
    ($values:expr, $v:ident => $then:expr) => {
        match $values {
            Values::Text($v) => $then,
            Values::OptionalText($v) => $then,
            Values::Count($v) => $then,
            Values::Size($v) => $then,
            Values::Whole($v) => $then,
            Values::Time($v) => $then,
            Values::OptionalNumber($v) => $then,
            Values::Flag($v) => $then,
            Values::Waits($v) => $then,
            Values::Bytes($v) => $then,
        }
    };
}

impl Values {
    fn len(&self) -> usize {
        for_all!(self, v => v.len())
    }

    fn reorder(&mut self, order: &[usize]) {
        fn reordered<T: Clone>(values: &[T], order: &[usize]) -> Vec<T> {
            order.iter().map(|row| values[*row].clone()).collect()
        }
        for_all!(self, v => *v = reordered(v, order));
    }

    /// Adds values of the same kind; others are left out.
    fn append(&mut self, more: Values) {
        match (self, more) {
            (Values::Text(v), Values::Text(more)) => v.extend(more),
            (Values::OptionalText(v), Values::OptionalText(more)) => v.extend(more),
            (Values::Count(v), Values::Count(more)) => v.extend(more),
            (Values::Size(v), Values::Size(more)) => v.extend(more),
            (Values::Whole(v), Values::Whole(more)) => v.extend(more),
            (Values::Time(v), Values::Time(more)) => v.extend(more),
            (Values::OptionalNumber(v), Values::OptionalNumber(more)) => v.extend(more),
            (Values::Flag(v), Values::Flag(more)) => v.extend(more),
            (Values::Waits(v), Values::Waits(more)) => v.extend(more),
            (Values::Bytes(v), Values::Bytes(more)) => v.extend(more),
            _ => {}
        }
    }
}

fn column(name: &'static str, values: Values) -> Column {
    let name = name.into();
    Column { name, values }
}

fn wait_part(program: &Program<'_>, wait: &Wait) -> WaitPart {
    WaitPart {
        reason: wait.reason.name(),
        on: wait.on.map(|sync| program.syncs[sync].name.clone()),
        by: wait.by.map(|task| program.task_name(task)),
        ns: (wait.end - wait.start).ns(),
    }
}

fn memory_bytes(program: &Program<'_>, touched: &Touched) -> MemoryBytes {
    MemoryBytes {
        memory: program.memories[touched.memory].name.clone(),
        read: touched.read,
        written: touched.written,
    }
}
