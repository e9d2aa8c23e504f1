//! Tables as Parquet, column by column.

use super::{Column, MemoryBytes, SCHEMA_VERSION, Table, Values, WaitPart};
use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

type Group<'g> = SerializedRowGroupWriter<'g, Vec<u8>>;

pub(super) fn write(table: &Table, metadata: &[(&str, String)]) -> Vec<u8> {
    encode(table, metadata).expect("columns and schema are made from the same table")
}

fn encode(table: &Table, metadata: &[(&str, String)]) -> Result<Vec<u8>> {
    let fields = table.columns.iter().map(schema).collect::<Result<_>>()?;
    let schema = Type::group_type_builder(table.name)
        .with_fields(fields)
        .build()?;
    let version = KeyValue::new("schema_version".to_owned(), SCHEMA_VERSION.to_string());
    let more = metadata
        .iter()
        .map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
    let properties = WriterProperties::builder()
        .set_key_value_metadata(Some(std::iter::once(version).chain(more).collect()))
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for column in &table.columns {
        write_column(&mut group, &column.values)?;
    }
    group.close()?;
    writer.into_inner()
}

fn schema(column: &Column) -> Result<TypePtr> {
    let name = &*column.name;
    match &column.values {
        Values::Text(_) => text(name, Repetition::REQUIRED),
        Values::OptionalText(_) => text(name, Repetition::OPTIONAL),
        Values::Count(_) => primitive(name, Physical::INT32, ConvertedType::UINT_32),
        Values::Size(_) => primitive(name, Physical::INT64, ConvertedType::UINT_64),
        Values::Whole(_) => primitive(name, Physical::INT64, ConvertedType::NONE),
        Values::Time(_) => primitive(name, Physical::DOUBLE, ConvertedType::NONE),
        Values::OptionalNumber(_) => {
            let number = Type::primitive_type_builder(name, Physical::DOUBLE);
            let number = number.with_repetition(Repetition::OPTIONAL);
            Ok(Arc::new(number.build()?))
        }
        Values::Flag(_) => primitive(name, Physical::BOOLEAN, ConvertedType::NONE),
        Values::Waits(_) => list(
            name,
            vec![
                text("reason", Repetition::REQUIRED)?,
                text("on", Repetition::OPTIONAL)?,
                text("by", Repetition::OPTIONAL)?,
                primitive("ns", Physical::DOUBLE, ConvertedType::NONE)?,
            ],
        ),
        Values::Bytes(_) => list(
            name,
            vec![
                text("memory", Repetition::REQUIRED)?,
                primitive("read", Physical::INT64, ConvertedType::UINT_64)?,
                primitive("written", Physical::INT64, ConvertedType::UINT_64)?,
            ],
        ),
    }
}

fn text(name: &str, repetition: Repetition) -> Result<TypePtr> {
    let builder = Type::primitive_type_builder(name, Physical::BYTE_ARRAY);
    let text = builder
        .with_repetition(repetition)
        .with_converted_type(ConvertedType::UTF8);
    Ok(Arc::new(text.build()?))
}

fn primitive(name: &str, physical: Physical, converted: ConvertedType) -> Result<TypePtr> {
    let builder = Type::primitive_type_builder(name, physical);
    let value = builder
        .with_repetition(Repetition::REQUIRED)
        .with_converted_type(converted);
    Ok(Arc::new(value.build()?))
}

/// A list of structures, in the three levels of the format's logical type.
fn list(name: &str, fields: Vec<TypePtr>) -> Result<TypePtr> {
    let group = |name, repetition, fields| {
        Type::group_type_builder(name)
            .with_repetition(repetition)
            .with_fields(fields)
    };
    let element = group("element", Repetition::REQUIRED, fields).build()?;
    let list = group("list", Repetition::REPEATED, vec![Arc::new(element)]).build()?;
    let outer = group(name, Repetition::REQUIRED, vec![Arc::new(list)]);
    Ok(Arc::new(
        outer.with_converted_type(ConvertedType::LIST).build()?,
    ))
}

fn write_column(group: &mut Group<'_>, values: &Values) -> Result<()> {
    match values {
        Values::Text(v) => put::<ByteArrayType>(
            group,
            &v.iter().map(|t| bytes(t)).collect::<Vec<_>>(),
            None,
            None,
        ),
        Values::OptionalText(v) => {
            let there: Vec<i16> = v.iter().map(|t| i16::from(t.is_some())).collect();
            put::<ByteArrayType>(
                group,
                &v.iter().flatten().map(|t| bytes(t)).collect::<Vec<_>>(),
                Some(&there),
                None,
            )
        }
        Values::Count(v) => put::<Int32Type>(
            group,
            &v.iter().map(|n| n.cast_signed()).collect::<Vec<_>>(),
            None,
            None,
        ),
        Values::Size(v) => put::<Int64Type>(
            group,
            &v.iter().map(|n| n.cast_signed()).collect::<Vec<_>>(),
            None,
            None,
        ),
        Values::Whole(v) => put::<Int64Type>(group, v, None, None),
        Values::Time(v) => put::<DoubleType>(group, v, None, None),
        Values::OptionalNumber(v) => {
            let there: Vec<i16> = v.iter().map(|n| i16::from(n.is_some())).collect();
            let numbers: Vec<f64> = v.iter().flatten().copied().collect();
            put::<DoubleType>(group, &numbers, Some(&there), None)
        }
        Values::Flag(v) => put::<BoolType>(group, v, None, None),
        Values::Waits(v) => {
            nested::<ByteArrayType, WaitPart>(group, v, 1, |w| Some(bytes(w.reason)))?;
            nested::<ByteArrayType, WaitPart>(group, v, 2, |w| w.on.as_deref().map(bytes))?;
            nested::<ByteArrayType, WaitPart>(group, v, 2, |w| w.by.as_deref().map(bytes))?;
            nested::<DoubleType, WaitPart>(group, v, 1, |w| Some(w.ns))
        }
        Values::Bytes(v) => {
            nested::<ByteArrayType, MemoryBytes>(group, v, 1, |b| Some(bytes(&b.memory)))?;
            nested::<Int64Type, MemoryBytes>(group, v, 1, |b| Some(b.read.cast_signed()))?;
            nested::<Int64Type, MemoryBytes>(group, v, 1, |b| Some(b.written.cast_signed()))
        }
    }
}

fn bytes(text: &str) -> ByteArray {
    ByteArray::from(text)
}

/// One field of the structures in a column of lists. `full` is the definition level of a value that is there: 1 where the field is
/// required, 2 where it is optional; an empty list has level 0.
fn nested<T: DataType, E>(
    group: &mut Group<'_>,
    lists: &[Vec<E>],
    full: i16,
    value: impl Fn(&E) -> Option<T::T>,
) -> Result<()> {
    let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
    for list in lists {
        if list.is_empty() {
            definitions.push(0);
            repetitions.push(0);
        }
        for (n, element) in list.iter().enumerate() {
            let value = value(element);
            definitions.push(if value.is_some() { full } else { 1 });
            repetitions.push(i16::from(n > 0));
            values.extend(value);
        }
    }
    put::<T>(group, &values, Some(&definitions), Some(&repetitions))
}

fn put<T: DataType>(
    group: &mut Group<'_>,
    values: &[T::T],
    definitions: Option<&[i16]>,
    repetitions: Option<&[i16]>,
) -> Result<()> {
    let Some(mut column) = group.next_column()? else {
        return Ok(());
    };
    column
        .typed::<T>()
        .write_batch(values, definitions, repetitions)?;
    column.close()
}
