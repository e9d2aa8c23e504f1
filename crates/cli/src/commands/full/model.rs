//! What a model computes for the inputs of a run.

use super::schedule::beside;
use crate::commands::run::ModelOutput;
use crate::failure::Failure;
use crate::files;
use chipless_model::Port;
use chipless_schedule::{compare, import};
use std::path::Path;

/// The outputs of an ONNX model in single precision. Its inputs are those of a program of the same names, or the only one of each.
pub(crate) fn model_outputs(
    path: &Path,
    inputs: &[Port],
    values: &dyn Fn(&Port) -> Result<Vec<f64>, String>,
) -> Result<Vec<ModelOutput>, Failure> {
    let unreadable = |text: String| Failure::unreadable(path.display(), text);
    let bytes = files::open(path).map_err(unreadable)?;
    let beside = |name: &str| beside(path, name);
    let extents = |port: &Port| port.shape.iter().map(|n| *n as i64).collect();
    let shapes: import::Shapes = (inputs.iter())
        .map(|port| (port.name.clone(), extents(port)))
        .collect();
    // The program says how large open dimensions are, and its batch; where its inputs have other names, the model has to say it.
    let front = import::read(&bytes, &shapes, &beside)
        .or_else(|_| import::read(&bytes, &import::Shapes::new(), &beside))
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
        let numbers = values(port).map_err(unreadable)?;
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
    let outputs = compare::outputs(&front, &given).map_err(unreadable)?;
    let made = front.declared.iter().zip(outputs);
    let made = made.map(|(output, numbers)| ModelOutput {
        name: output.name.clone(),
        shape: output.shape.iter().map(|n| *n as u64).collect(),
        numbers,
    });
    Ok(made.collect())
}
