//! Tables as JSON: an object for each row.

use super::{MemoryBytes, SCHEMA_VERSION, Table, Values, WaitPart};
use serde_json::{Map, Value, json};

pub(super) fn write(table: &Table) -> Vec<u8> {
    let mut out =
        format!("{{\"schema_version\":{SCHEMA_VERSION},\"{}\":[", table.name).into_bytes();
    for row in 0..table.rows() {
        let columns = table.columns.iter();
        let object: Map<String, Value> = columns
            .map(|column| (column.name.clone().into_owned(), value(&column.values, row)))
            .collect();
        out.extend_from_slice(if row == 0 { b"\n" } else { b",\n" });
        out.extend_from_slice(Value::Object(object).to_string().as_bytes());
    }
    out.extend_from_slice(b"\n]}\n");
    out
}

/// One value.
pub(super) fn value(values: &Values, row: usize) -> Value {
    match values {
        Values::Text(v) => json!(v[row]),
        Values::OptionalText(v) => json!(v[row]),
        Values::Count(v) => json!(v[row]),
        Values::Size(v) => json!(v[row]),
        Values::Whole(v) => json!(v[row]),
        Values::Time(v) => json!(v[row]),
        Values::OptionalNumber(v) => json!(v[row]),
        Values::Flag(v) => json!(v[row]),
        Values::Waits(v) => v[row].iter().map(wait).collect(),
        Values::Bytes(v) => v[row].iter().map(bytes).collect(),
    }
}

fn wait(part: &WaitPart) -> Value {
    json!({"reason": part.reason, "on": part.on, "by": part.by, "ns": part.ns})
}

fn bytes(touched: &MemoryBytes) -> Value {
    json!({"memory": touched.memory, "read": touched.read, "written": touched.written})
}
