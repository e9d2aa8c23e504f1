//! Rows of a sweep as a table, and tables of shards as one.

use crate::plan::{Plan, Shard};
use crate::sample::{Value, Values};
use bytes::Bytes;
use chipless::Failure;
use chipless_report::tables::{Column, Form, Table, Values as Cells};
use parquet::basic::Type as Physical;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What a run gave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) run: u64,
    /// `ok`, or the kind of failure.
    pub(crate) status: Cow<'static, str>,
    pub(crate) message: String,
    pub(crate) values: Vec<Option<f64>>,
}

/// The table of a shard, or of a whole sweep.
pub struct Results {
    table: Table,
    fingerprint: String,
    shard: Shard,
    runs: u64,
}

const FINGERPRINT: &str = "plan";
const SHARD: &str = "shard";
const RUNS: &str = "runs";

impl Results {
    pub(crate) fn new(
        plan: &Plan,
        values: &[Values],
        fingerprint: String,
        shard: Shard,
        mut rows: Vec<Row>,
    ) -> Results {
        rows.sort_unstable_by_key(|row| row.run);
        let points: Vec<(usize, Vec<Value>)> =
            rows.iter().map(|row| plan.point(values, row.run)).collect();
        let program = |(program, _): &(usize, Vec<Value>)| plan.programs[*program].shown.clone();
        let mut columns = vec![
            column("run", Cells::Size(rows.iter().map(|row| row.run).collect())),
            column("program", Cells::Text(points.iter().map(program).collect())),
        ];
        for (index, dimension) in plan.dimensions().into_iter().enumerate() {
            let of_points = points.iter().map(|(_, point)| point[index].clone());
            let cells = cells(&values[index], &of_points.collect::<Vec<_>>());
            columns.push(column(dimension.name.clone(), cells));
        }
        let status = rows.iter().map(|row| row.status.to_string()).collect();
        let message = rows.iter().map(|row| row.message.clone()).collect();
        columns.push(column("status", Cells::Text(status)));
        columns.push(column("message", Cells::Text(message)));
        for (index, name) in plan.columns.iter().enumerate() {
            let numbers = rows
                .iter()
                .map(|row| row.values.get(index).copied().flatten());
            columns.push(column(
                name.clone(),
                Cells::OptionalNumber(numbers.collect()),
            ));
        }
        Results {
            table: Table::new("sweep", columns),
            fingerprint,
            shard,
            runs: plan.runs().unwrap_or_default(),
        }
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

    /// Its columns.
    pub fn columns(&self) -> impl Iterator<Item = &Column> {
        self.table.columns()
    }

    /// As a file. Parquet says which shard of which plan it is, so that it can be merged.
    pub fn write(&self, form: Form) -> Vec<u8> {
        let metadata = [
            (FINGERPRINT, self.fingerprint.clone()),
            (SHARD, self.shard.to_string()),
            (RUNS, self.runs.to_string()),
        ];
        self.table.write_with(form, &metadata)
    }

    /// Reads the file of a shard.
    ///
    /// # Errors
    /// A file that no sweep wrote.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Results, Failure> {
        let refused = |why: &dyn std::fmt::Display| {
            let text = format!(
                "expected the Parquet file of a shard (chipless sweep PLAN -o FILE.parquet --shard I/N): {why}"
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
        Ok(Results {
            table,
            fingerprint: plan,
            shard: Shard::WHOLE,
            runs,
        })
    }
}

fn column(name: impl Into<Cow<'static, str>>, values: Cells) -> Column {
    Column {
        name: name.into(),
        values,
    }
}

/// The cells of what varies: all of one type.
fn cells(values: &Values, points: &[Value]) -> Cells {
    let sample = match values {
        Values::List(list) => list.first().cloned(),
        Values::Range(range) if range.is_whole => Some(Value::Whole(0)),
        Values::Range(_) => Some(Value::Number(0.0)),
    };
    let points = points.iter();
    match sample {
        Some(Value::Flag(_)) => Cells::Flag(points.map(|v| *v == Value::Flag(true)).collect()),
        Some(Value::Whole(_)) => Cells::Whole(points.map(whole).collect()),
        Some(Value::Number(_)) => Cells::Time(points.map(number).collect()),
        Some(Value::Text(_)) | None => Cells::Text(points.map(Value::text).collect()),
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
