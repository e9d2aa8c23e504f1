//! Constants: what the file holds, and what follows from shapes and counts.

use super::array::{Array, elements, types};
use super::node::Node;
use super::value::Value;
use crate::onnx::constant::{self, Constant, Externals};

/// What follows from shapes and counts.
pub(super) fn counted(node: &Node<'_>) -> Result<Value, String> {
    Ok(Value::Array(match node.kind {
        "Shape" => {
            let shape = node.input(0)?.shape();
            let rank = shape.len() as i64;
            let bound = |at: i64| (if at < 0 { at + rank } else { at }).clamp(0, rank) as usize;
            let start = bound(node.int("start", 0));
            let end = bound(node.int("end", rank)).max(start);
            Array::list(&shape[start..end])
        }
        "Size" => Array::scalar(types::INT64, elements(&node.input(0)?.shape()) as f64),
        "Range" => {
            let number = |at: usize| {
                let array = node.constant(at)?;
                array
                    .and_then(Array::single)
                    .ok_or_else(|| format!("input {at} is missing"))
            };
            let (start, limit, step) = (number(0)?, number(1)?, number(2)?);
            let count = ((limit - start) / step).ceil().max(0.0);
            if count.is_nan() || count >= f64::from(1 << 26) {
                return Err(format!("from {start} to {limit} by {step}"));
            }
            let values = (0..count as i64)
                .map(|at| start + at as f64 * step)
                .collect();
            Array::new(vec![count as i64], node.input(0)?.kind(), values)
        }
        "ConstantOfShape" => {
            let shape = node.constant(0)?.ok_or("its shape is missing")?.whole();
            let value = match node.attribute("value").and_then(|a| a.t.as_ref()) {
                Some(tensor) => {
                    let constant = constant::read(tensor, &mut Externals::default(), &|_| None)?;
                    array_of(&constant)?
                }
                None => Array::scalar(types::FLOAT, 0.0),
            };
            let count = elements(&shape);
            if !(0..1 << 26).contains(&count) {
                return Err(format!("a constant of the shape {shape:?}"));
            }
            let number = value.single().unwrap_or(0.0);
            Array::new(shape, value.kind, vec![number; count as usize])
        }
        _ => {
            let x = node.input(0)?;
            let [rows, columns] = x.shape()[..] else {
                return Err(format!("like {:?}", x.shape()));
            };
            let k = node.int("k", 0);
            let kind = node.int("dtype", i64::from(x.kind())) as i32;
            let of = |at: i64| super::elements::truth(at % columns == at / columns + k);
            Array::new(
                vec![rows, columns],
                kind,
                (0..rows * columns).map(of).collect(),
            )
        }
    }))
}

pub(super) fn array_of(constant: &Constant) -> Result<Array, String> {
    let values = constant.numbers()?;
    Ok(Array {
        shape: constant.shape.clone(),
        kind: constant.kind,
        values,
    })
}

/// The numbers of a `Constant`, however they are written.
pub(super) fn constant_of(node: &Node<'_>) -> Result<Value, String> {
    if let Some(tensor) = node.attribute("value").and_then(|a| a.t.as_ref()) {
        let constant = constant::read(tensor, &mut Externals::default(), &|_| None)?;
        return Ok(Value::Array(array_of(&constant)?));
    }
    let array = |kind: i32, values: Vec<f64>, is_list: bool| {
        let shape = is_list.then_some(values.len() as i64).into_iter().collect();
        Ok(Value::Array(Array::new(shape, kind, values)))
    };
    if let Some(value) = node.attribute("value_float").and_then(|a| a.f) {
        return array(types::FLOAT, vec![f64::from(value)], false);
    }
    if let Some(value) = node.attribute("value_int").and_then(|a| a.i) {
        return array(types::INT64, vec![value as f64], false);
    }
    if let Some(values) = node.floats("value_floats") {
        return array(
            types::FLOAT,
            values.iter().map(|v| f64::from(*v)).collect(),
            true,
        );
    }
    if let Some(values) = node.ints("value_ints") {
        return array(
            types::INT64,
            values.iter().map(|v| *v as f64).collect(),
            true,
        );
    }
    Err("its value is of a form that is not supported".to_owned())
}
