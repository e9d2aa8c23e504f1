//! Rows of a sweep as a table, and tables of shards as one.

use crate::pareto::{Front, pareto};
use crate::row::Row;
use crate::sample::{Value, Values};
use crate::shard::Shard;
use bytes::Bytes;
use chipless::Failure;
use chipless_report::tables::{Column, Form, Table, Values as Cells};
use parquet::basic::Type as Physical;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::borrow::Cow;

/// The table of a shard, or of a whole sweep.
pub struct Results {
    table: Table,
    fingerprint: String,
    shard: Shard,
    runs: u64,
    /// Columns of whose front a flag says that a row is on it; none without such a flag.
    front: Vec<String>,
}

const FRONT: &str = "front";
const FINGERPRINT: &str = "plan";
const SHARD: &str = "shard";
const RUNS: &str = "runs";

/// Which rows a table has.
pub(crate) struct Origin {
    /// What the rows depend on.
    pub(crate) fingerprint: String,
    pub(crate) shard: Shard,
    /// Runs of all shards.
    pub(crate) runs: u64,
}

impl Results {
    /// Of rows in order; `axes` are columns of what varies, `columns` name the numbers of a row.
    pub(crate) fn new(
        axes: Vec<(String, Cells)>,
        columns: &[String],
        rows: &[Row],
        origin: Origin,
    ) -> Results {
        let runs = rows.iter().map(|row| row.run).collect();
        let mut table = vec![column("run", Cells::Size(runs))];
        table.extend(axes.into_iter().map(|(name, cells)| column(name, cells)));
        let status = rows.iter().map(|row| row.status.to_string()).collect();
        let message = rows.iter().map(|row| row.message.clone()).collect();
        table.push(column("status", Cells::Text(status)));
        table.push(column("message", Cells::Text(message)));
        for (index, name) in columns.iter().enumerate() {
            let numbers = rows
                .iter()
                .map(|row| row.values.get(index).copied().flatten());
            table.push(column(
                name.clone(),
                Cells::OptionalNumber(numbers.collect()),
            ));
        }
        Results {
            table: Table::new("sweep", table),
            fingerprint: origin.fingerprint,
            shard: origin.shard,
            runs: origin.runs,
            front: Vec::new(),
        }
    }

    /// With a flag that says which rows are on the front of these columns, network by network. A shard gets it when it is merged.
    pub(crate) fn with_front(mut self, columns: Vec<String>) -> Result<Results, Failure> {
        self.front = columns;
        if self.shard == Shard::WHOLE {
            self.flag()?;
        }
        Ok(self)
    }

    fn flag(&mut self) -> Result<(), Failure> {
        if self.front.is_empty() {
            return Ok(());
        }
        let front = self.pareto()?;
        let mut flags = vec![false; self.rows()];
        for row in front.rows() {
            flags[row] = true;
        }
        self.table.push(column(FRONT, Cells::Flag(flags)));
        Ok(())
    }

    /// The front of these columns for each network. Of machines that are equal in all of them, a larger one is beaten.
    ///
    /// # Errors
    /// As [`pareto`].
    pub fn pareto(&self) -> Result<Front, Failure> {
        let names: Vec<&str> = self.front.iter().map(String::as_str).collect();
        pareto(&self.table, &names, Some("network"), Some("area_mm2"))
    }

    /// Columns of whose front a flag says that a row is on it.
    pub fn front(&self) -> &[String] {
        &self.front
    }

    /// What it says, run by run.
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.table.rows()
    }

    /// Runs that did not come to their end.
    pub fn failed(&self) -> usize {
        let status = self.columns().find(|column| column.name == "status");
        match status.map(|column| &column.values) {
            Some(Cells::Text(words)) => words.iter().filter(|word| *word != "ok").count(),
            _ => 0,
        }
    }

    /// Why runs failed: each reason with how many runs have it, the most frequent first.
    pub fn reasons(&self) -> Vec<(usize, &str)> {
        let text = |name: &str| match &self.columns().find(|column| column.name == name)?.values {
            Cells::Text(words) => Some(words),
            _ => None,
        };
        let (Some(status), Some(messages)) = (text("status"), text("message")) else {
            return Vec::new();
        };
        let failed = status
            .iter()
            .zip(messages)
            .filter(|(status, _)| *status != "ok");
        let mut reasons: Vec<(usize, &str)> = Vec::new();
        for (_, message) in failed {
            match reasons.iter_mut().find(|(_, known)| known == message) {
                Some((number, _)) => *number += 1,
                None => reasons.push((1, message)),
            }
        }
        reasons.sort_by(|(one, _), (other, _)| other.cmp(one));
        reasons
    }

    /// Its columns.
    pub fn columns(&self) -> impl Iterator<Item = &Column> {
        self.table.columns()
    }

    /// As a file. Parquet says which shard of which plan it is, so that it can be merged.
    pub fn write(&self, form: Form) -> Vec<u8> {
        let mut metadata = vec![
            (FINGERPRINT, self.fingerprint.clone()),
            (SHARD, self.shard.to_string()),
            (RUNS, self.runs.to_string()),
        ];
        if !self.front.is_empty() {
            metadata.push((FRONT, self.front.join(",")));
        }
        self.table.write_with(form, &metadata)
    }

    /// Reads the file of a shard.
    ///
    /// # Errors
    /// A file that no sweep wrote.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Results, Failure> {
        let refused = |why: &dyn std::fmt::Display| {
            let text = format!(
                "expected the Parquet file of a shard (chipless sweep or tune with -o FILE.parquet --shard I/N): {why}"
            );
            Failure::unreadable(name, text)
        };
        let reader = SerializedFileReader::new(Bytes::copy_from_slice(bytes))
            .map_err(|error| refused(&error))?;
        let file = reader.metadata().file_metadata();
        let said = |key: &str| {
            let pairs = file.key_value_metadata().into_iter().flatten();
            let value = pairs
                .filter(|pair| pair.key == key)
                .find_map(|pair| pair.value.clone());
            value.ok_or_else(|| refused(&format_args!("found none of its marks ({key})")))
        };
        let shard = said(SHARD)?.parse().map_err(|why: String| refused(&why))?;
        let runs = said(RUNS)?
            .parse()
            .map_err(|why: std::num::ParseIntError| refused(&why))?;
        let fingerprint = said(FINGERPRINT)?;
        let front = said(FRONT).unwrap_or_default();
        let front = front.split(',').filter(|name| !name.is_empty());
        let front: Vec<String> = front.map(str::to_owned).collect();
        let mut columns: Vec<Column> = Vec::new();
        for (index, leaf) in file.schema_descr().columns().iter().enumerate() {
            let cells = match (index, leaf.physical_type(), leaf.max_def_level()) {
                (0, Physical::INT64, 0) => Cells::Size(Vec::new()),
                (_, Physical::INT64, 0) => Cells::Whole(Vec::new()),
                (_, Physical::BYTE_ARRAY, 0) => Cells::Text(Vec::new()),
                (_, Physical::DOUBLE, 0) => Cells::Time(Vec::new()),
                (_, Physical::DOUBLE, 1) => Cells::OptionalNumber(Vec::new()),
                (_, Physical::BOOLEAN, 0) => Cells::Flag(Vec::new()),
                _ => {
                    return Err(refused(&format_args!(
                        "found another column {}",
                        leaf.name()
                    )));
                }
            };
            columns.push(column(leaf.name().to_owned(), cells));
        }
        for row in reader.get_row_iter(None).map_err(|error| refused(&error))? {
            let row = row.map_err(|error| refused(&error))?;
            for (column, (_, field)) in columns.iter_mut().zip(row.into_columns()) {
                match (&mut column.values, field) {
                    (Cells::Size(v), Field::ULong(n)) => v.push(n),
                    (Cells::Whole(v), Field::Long(n)) => v.push(n),
                    (Cells::Text(v), Field::Str(text)) => v.push(text),
                    (Cells::Time(v), Field::Double(n)) => v.push(n),
                    (Cells::OptionalNumber(v), Field::Double(n)) => v.push(Some(n)),
                    (Cells::OptionalNumber(v), Field::Null) => v.push(None),
                    (Cells::Flag(v), Field::Bool(flag)) => v.push(flag),
                    _ => {
                        return Err(refused(&format_args!(
                            "found another value in {}",
                            column.name
                        )));
                    }
                }
            }
        }
        Ok(Results {
            table: Table::new("sweep", columns),
            fingerprint,
            shard,
            runs,
            front,
        })
    }

    /// One table of all shards, given in any order.
    ///
    /// # Errors
    /// Shards of several plans, shards that are missing or stand twice.
    pub fn merge(shards: Vec<(String, Results)>) -> Result<Results, Failure> {
        let mut shards = shards.into_iter();
        let Some((first_name, first)) = shards.next() else {
            return Err(Failure::misuse(
                "--merge",
                "expected the files of shards, found none",
            ));
        };
        let (count, mut seen) = (first.shard.count, vec![first.shard.index]);
        let (mut table, plan, runs) = (first.table, first.fingerprint, first.runs);
        let front = first.front;
        for (name, other) in shards {
            if other.fingerprint != plan || other.shard.count != count || other.runs != runs {
                let text = format!(
                    "expected a shard of the same sweep as {first_name}, found one of another"
                );
                return Err(Failure::misuse(name, text));
            }
            if seen.contains(&other.shard.index) {
                let text = format!("expected each shard once, found {} twice", other.shard);
                return Err(Failure::misuse(name, text));
            }
            seen.push(other.shard.index);
            table.append(other.table);
        }
        let missing: Vec<String> = (1..=count)
            .filter(|index| !seen.contains(index))
            .map(|index| format!("{index}/{count}"))
            .collect();
        if !missing.is_empty() {
            let text = format!(
                "expected {count} shards, found {} (missing {})",
                seen.len(),
                missing.join(", ")
            );
            return Err(Failure::misuse("--merge", text));
        }
        let order = match table.columns().next().map(|column| &column.values) {
            Some(Cells::Size(runs)) => {
                let mut order: Vec<usize> = (0..runs.len()).collect();
                order.sort_unstable_by_key(|row| runs[*row]);
                order
            }
            _ => Vec::new(),
        };
        table.reorder(&order);
        Results {
            table,
            fingerprint: plan,
            shard: Shard::WHOLE,
            runs,
            front: Vec::new(),
        }
        .with_front(front)
    }
}

fn column(name: impl Into<Cow<'static, str>>, values: Cells) -> Column {
    Column {
        name: name.into(),
        values,
    }
}

/// The cells of what varies: all of one type.
pub(crate) fn cells(values: &Values, points: &[&Value]) -> Cells {
    let sample = match values {
        Values::List(list) => list.first().cloned(),
        Values::Range(range) if range.is_whole => Some(Value::Whole(0)),
        Values::Range(_) => Some(Value::Number(0.0)),
    };
    let points = points.iter();
    match sample {
        Some(Value::Flag(_)) => Cells::Flag(points.map(|v| **v == Value::Flag(true)).collect()),
        Some(Value::Whole(_)) => Cells::Whole(points.map(|v| whole(v)).collect()),
        Some(Value::Number(_)) => Cells::Time(points.map(|v| number(v)).collect()),
        Some(Value::Text(_)) | None => Cells::Text(points.map(|v| v.text()).collect()),
    }
}

fn whole(value: &Value) -> i64 {
    match value {
        Value::Whole(n) => *n,
        _ => 0,
    }
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Number(n) => *n,
        Value::Whole(n) => *n as f64,
        _ => f64::NAN,
    }
}
