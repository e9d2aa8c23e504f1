//! Tables by the Arrow `PyCapsule` protocol: pyarrow, pandas, polars and duckdb take them without a copy.

use arrow_array::builder::{
    Float64Builder, ListBuilder, StringBuilder, StructBuilder, UInt64Builder,
};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};
use chipless_report::tables::{self, MemoryBytes, Values, WaitPart};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// A table.
#[pyclass(frozen, module = "chipless._native")]
pub(crate) struct Table(RecordBatch);

impl Table {
    pub(crate) fn of(table: &tables::Table) -> PyResult<Table> {
        batch(table)
            .map(Table)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

#[pymethods]
impl Table {
    /// A stream of one batch.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer that wants another schema converts what it gets, as the protocol allows.
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Rows.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let schema = self.0.schema();
        schema.fields().iter().map(|f| f.name().clone()).collect()
    }
}

fn batch(table: &tables::Table) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for column in table.columns() {
        let (array, nullable) = array(&column.values);
        fields.push(Field::new(
            column.name.as_ref(),
            array.data_type().clone(),
            nullable,
        ));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

fn array(values: &Values) -> (ArrayRef, bool) {
    match values {
        Values::Text(v) => (Arc::new(StringArray::from_iter_values(v)), false),
        Values::OptionalText(v) => (Arc::new(v.iter().collect::<StringArray>()), true),
        Values::Count(v) => (
            Arc::new(UInt32Array::from_iter_values(v.iter().copied())),
            false,
        ),
        Values::Size(v) => (
            Arc::new(UInt64Array::from_iter_values(v.iter().copied())),
            false,
        ),
        Values::Whole(v) => (
            Arc::new(Int64Array::from_iter_values(v.iter().copied())),
            false,
        ),
        Values::Time(v) => (
            Arc::new(Float64Array::from_iter_values(v.iter().copied())),
            false,
        ),
        Values::OptionalNumber(v) => (Arc::new(v.iter().copied().collect::<Float64Array>()), true),
        Values::Flag(v) => (
            Arc::new(v.iter().map(|f| Some(*f)).collect::<BooleanArray>()),
            false,
        ),
        Values::Waits(v) => (waits(v), false),
        Values::Bytes(v) => (bytes(v), false),
    }
}

fn waits(rows: &[Vec<WaitPart>]) -> ArrayRef {
    let fields = Fields::from(vec![
        Field::new("reason", DataType::Utf8, false),
        Field::new("on", DataType::Utf8, true),
        Field::new("by", DataType::Utf8, true),
        Field::new("ns", DataType::Float64, false),
    ]);
    let parts = StructBuilder::from_fields(fields.clone(), 0);
    let element = Field::new("element", DataType::Struct(fields), false);
    let mut list = ListBuilder::new(parts).with_field(element);
    for row in rows {
        for part in row {
            let parts = list.values();
            if let Some(column) = parts.field_builder::<StringBuilder>(0) {
                column.append_value(part.reason);
            }
            if let Some(column) = parts.field_builder::<StringBuilder>(1) {
                column.append_option(part.on.as_deref());
            }
            if let Some(column) = parts.field_builder::<StringBuilder>(2) {
                column.append_option(part.by.as_deref());
            }
            if let Some(column) = parts.field_builder::<Float64Builder>(3) {
                column.append_value(part.ns);
            }
            parts.append(true);
        }
        list.append(true);
    }
    Arc::new(list.finish())
}

fn bytes(rows: &[Vec<MemoryBytes>]) -> ArrayRef {
    let fields = Fields::from(vec![
        Field::new("memory", DataType::Utf8, false),
        Field::new("read", DataType::UInt64, false),
        Field::new("written", DataType::UInt64, false),
    ]);
    let parts = StructBuilder::from_fields(fields.clone(), 0);
    let element = Field::new("element", DataType::Struct(fields), false);
    let mut list = ListBuilder::new(parts).with_field(element);
    for row in rows {
        for part in row {
            let parts = list.values();
            if let Some(column) = parts.field_builder::<StringBuilder>(0) {
                column.append_value(&part.memory);
            }
            for (index, number) in [(1, part.read), (2, part.written)] {
                if let Some(column) = parts.field_builder::<UInt64Builder>(index) {
                    column.append_value(number);
                }
            }
            parts.append(true);
        }
        list.append(true);
    }
    Arc::new(list.finish())
}
