//! What a model computes for the inputs of a run.

use super::schedule::model::{beside, fixed};
use crate::commands::run::Model;
use crate::commands::run::ModelOutput;
use crate::failure::Failure;
use crate::files;
use chipless_model::{Kind, Port};
use chipless_schedule::{compare, import, onnx};
use std::path::Path;

/// The outputs of an ONNX model, with the results of its layers in single precision or in half. Its inputs are those of a program of the same
/// names, or the only one of each.
pub(crate) fn model_outputs(
    model: Model<'_>,
    (target, inputs): (&str, &[Port]),
    values: &dyn Fn(&Port) -> Result<Vec<f64>, String>,
) -> Result<Vec<ModelOutput>, Failure> {
    let path = model.path;
    let unreadable = |text: String| Failure::unreadable(path.display(), text);
    let bytes = files::open(path).map_err(unreadable)?;
    let bytes = fixed((path, &bytes), model.constants)?;
    let beside = |name: &str| beside(path, name);
    let read = |shapes: &import::Shapes| import::read(&bytes, shapes, &beside);
    let own = onnx::summary(&bytes).map_or_else(|_| Vec::new(), |summary| summary.inputs);
    // The program says how large open dimensions are, and its batch.
    let shapes: import::Shapes = (own.iter())
        .filter_map(|input| {
            let alone = (own.len() == 1 && inputs.len() == 1).then_some(0);
            let port = &inputs[Port::position(inputs, &input.name).or(alone)?];
            let extents = port.shape.iter().map(|n| *n as i64).collect();
            Some((input.name.clone(), extents))
        })
        .collect();
    // A program may have other dimensions than its model, where that leaves none open.
    let front = read(&shapes)
        .or_else(|refused| read(&import::Shapes::new()).map_err(|_| refused))
        .map_err(|refused| {
            unreadable(format!(
                "{refused}\nFrom Python, `chipless.compare` computes with ONNX Runtime what a model gives (docs/python.md)"
            ))
        })?;
    let given = front.inputs.iter().map(|input| {
        let declared = input.declared.as_ref();
        let name = declared.map_or(&*input.name, |declared| &*declared.name);
        let port = Port::position(inputs, name).map(|at| &inputs[at]);
        let port = port.or(match inputs {
            [only] if front.inputs.len() == 1 => Some(only),
            _ => None,
        });
        let port = port.ok_or_else(|| {
            let names: Vec<&str> = inputs.iter().map(|port| &*port.name).collect();
            unreadable(format!(
                "expected a model with the inputs of the program ({}), found the input \"{name}\"",
                names.join(", ")
            ))
        })?;
        let is_real = declared.is_some_and(|declared| declared.element.starts_with("float"));
        // An NPU's integers are the numbers of the model as they stand; those of an int8 schedule are not.
        let is_quantised = target == "gemini" && port.element.kind() != Kind::Float;
        if is_real && is_quantised && port.scale.is_none() {
            return Err(unreadable(format!(
                "expected an input \"{name}\" of integers, as the program's ({}), whose scale the program does not say, found reals: compare with arrays of the reference instead",
                port.element
            )));
        }
        let mut numbers = values(port).map_err(unreadable)?;
        if let Some(scale) = port.scale.filter(|_| is_real) {
            for number in &mut numbers {
                *number = scale.real(*number);
            }
        }
        match declared.map(|declared| &declared.shape) {
            Some(shape) if shape.iter().product::<i64>() != numbers.len() as i64 => {
                Err(unreadable(format!(
                    "input \"{name}\": expected the program's shape {:?}, found {shape:?}",
                    port.shape
                )))
            }
            _ => Ok(numbers),
        }
    });
    let given = given.collect::<Result<Vec<_>, Failure>>()?;
    let precision = if model.in_half {
        compare::Precision::Stored
    } else {
        compare::Precision::Single
    };
    let outputs = compare::outputs(&front, &given, precision).map_err(unreadable)?;
    let made = front.declared.iter().zip(outputs);
    let made = made.map(|(output, numbers)| ModelOutput {
        name: output.name.clone(),
        shape: output.shape.iter().map(|n| *n as u64).collect(),
        numbers,
    });
    Ok(made.collect())
}

/// What a compiler leaves out of this model without a word.
pub(crate) fn left_out_of(path: &Path, target: &str) -> Option<&'static str> {
    let bytes = files::open(path).ok()?;
    // Release 2026.4.1: with peepholes of 0, outputs agree (docs/compiler-fault.md).
    (target == "npu" && onnx::has_peepholes(&bytes)).then_some(
        "the model has LSTM layers with peepholes (input P). The compiler leaves them out, so the program computes another network; with P = 0 in the model, the rest can be compared",
    )
}
