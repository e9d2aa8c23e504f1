//! The comparison of a schedule with the network in floating point.

use super::model::{beside, fixed, shapes};
use super::{Arguments, Calibration, Dialect};
use crate::failure::Failure;
use crate::{files, terminal};
use chipless_schedule::compare::{self, CUT_OFF, Comparison, Inputs, Loss, Prepared};
use chipless_schedule::front::Front;
use chipless_schedule::images::of_one;
use chipless_schedule::import::Shapes;
use std::path::Path;

/// Multiplications of a network that is compared unasked, at most: some seconds.
const MOST_COMPARED: i64 = 2_000_000_000;
/// Bytes of a schedule that is executed for it, at most: some seconds as well.
const MOST_EXECUTED: usize = 32 << 20;

/// What is compared with the network in floating point, where that is asked for or does not take long: names and shapes of inputs are looked
/// at before the search.
pub(super) fn prepared<'f>(
    arguments: &Arguments,
    (front, batch): (&'f Front, i64),
    inputs: &Inputs,
) -> Result<Option<Prepared<'f>>, Failure> {
    if arguments.no_compare || arguments.dialect != Dialect::Spec {
        return Ok(None);
    }
    let products = front.network.products().saturating_mul(batch);
    if arguments.inputs.is_empty() && products > MOST_COMPARED {
        let text = format!(
            "it has {products} multiplications, more than {MOST_COMPARED}. Pass --input NAME=FILE.npy to compare all the same"
        );
        return not_compared(arguments, &text);
    }
    let float = if front.bits() == 16 {
        None
    } else {
        let shapes = shapes(&arguments.shape)?;
        let path = arguments.network.as_path();
        let opened = files::open(path);
        let bytes = opened.map_err(|error| Failure::unreadable(path.display(), error))?;
        let bytes = fixed((path, &bytes), &arguments.constant)?;
        match onnx_in_floating_point((path, &bytes), (&shapes, batch)) {
            Ok(float) => Some(float),
            Err(text) => return not_compared(arguments, &text),
        }
    };
    match compare::prepare((front, batch), float, inputs, arguments.seed) {
        Ok(prepared) => Ok(Some(prepared)),
        Err(text) => not_compared(arguments, &text),
    }
}

/// Compares a schedule.
pub(super) fn compared(
    arguments: &Arguments,
    prepared: &Prepared<'_>,
    front: &Front,
    schedule: &str,
) -> Result<Option<Comparison>, Failure> {
    if arguments.inputs.is_empty() && schedule.len() > MOST_EXECUTED {
        let text = format!(
            "its schedule has {} bytes, more than {MOST_EXECUTED}. Pass --input NAME=FILE.npy to compare all the same",
            schedule.len()
        );
        return not_compared(arguments, &text);
    }
    match compare::compare(prepared, schedule) {
        Ok(found) => {
            warn(&arguments.network, front, &found.layers);
            warn_of_outputs(arguments, front, &found);
            Ok(Some(found))
        }
        Err(text) => not_compared(arguments, &text),
    }
}

/// What is not compared is an error where inputs were given, and a note otherwise.
fn not_compared<T>(
    arguments: &Arguments,
    why: &dyn std::fmt::Display,
) -> Result<Option<T>, Failure> {
    let path = arguments.network.display();
    let text = format!("not compared with the floating-point network: {why}");
    if arguments.inputs.is_empty() {
        terminal::complain(&format!("{path}: note: {text}\n"));
        return Ok(None);
    }
    Err(Failure::unreadable(path, text))
}

/// Layers with too little resolution that are named, at most.
const MOST_NAMED: usize = 8;

/// Names the layers that lose resolution.
fn warn(path: &Path, front: &Front, layers: &[Loss]) {
    let advice = if front.bits() == 16 {
        "Its numbers, or those of a layer before it, lie outside of what fp16 has: 6e-5 to 65504 in magnitude. Rescale the network where its range allows that"
    } else if front.is_quantised {
        "Check the scales of the QuantizeLinear behind it, and the range of the inputs"
    } else if front.is_calibrated {
        "Calibrate with more images, real ones, or schedule the network with --precision fp16"
    } else {
        "Schedule the network with --precision fp16, or give int8 its ranges with --calibrate"
    };
    for loss in layers.iter().take(MOST_NAMED) {
        let text = if loss.saturated >= CUT_OFF {
            let percent = loss.saturated * 100.0;
            format!("{percent:.1} % of its results are beyond the range of their type and cut off")
        } else {
            let values = chipless_model::count(loss.levels, "distinct value");
            format!("its results take {values} as stored")
        };
        terminal::complain(&format!(
            "{}: warning: layer `{}` loses resolution: {text}. {advice}\n",
            path.display(),
            loss.layer
        ));
    }
    if layers.len() > MOST_NAMED {
        terminal::complain(&format!(
            "{}: warning: {} more layers lose resolution; --json lists them\n",
            path.display(),
            layers.len() - MOST_NAMED
        ));
    }
}

/// Relative error beyond which an output says little of the network.
const FAR: f64 = 0.1;

/// Names the output that is furthest from the network's, where it is far.
fn warn_of_outputs(arguments: &Arguments, front: &Front, found: &Comparison) {
    for output in found.outputs.iter().filter(|output| !output.is_finite) {
        terminal::complain(&format!(
            "{}: warning: output `{}` has NaN or infinite numbers: somewhere numbers go beyond 65504, the largest of fp16. `run --find-nan` names the first task\n",
            arguments.network.display(),
            output.name
        ));
    }
    for output in found.outputs.iter().filter(|output| output.is_constant) {
        terminal::complain(&format!(
            "{}: warning: output `{}` has one number in all places, where the network has several: nothing is left of what it computes\n",
            arguments.network.display(),
            output.name
        ));
    }
    let errors = found.outputs.iter();
    let errors = errors.filter_map(|output| Some((output, output.relative_error?)));
    let Some((output, error)) = errors.max_by(|(_, one), (_, other)| one.total_cmp(other)) else {
        return;
    };
    if error > FAR {
        let advice = if front.bits() == 16 && arguments.inputs.is_empty() {
            "The comparison had random inputs, on which a network may be far more sensitive to rounding than on data that it knows: pass --input NAME=FILE.npy"
        } else if front.bits() == 16 {
            "Half precision rounds too coarsely for it on these inputs, or an operation goes beyond its range"
        } else if front.is_quantised {
            "Compare on data that the network was quantised for (--input)"
        } else if !front.is_calibrated {
            "Schedule the network with --precision fp16, or give int8 its ranges with --calibrate"
        } else if arguments.calibration == Calibration::Mse {
            "Schedule the network with --precision fp16, or calibrate with more images, real ones"
        } else {
            "Try --calibration mse, or more and real images for --calibrate; --precision fp16 is near the network"
        };
        terminal::complain(&format!(
            "{}: warning: output `{}` is {:.0} % off the floating-point network. {advice}\n",
            arguments.network.display(),
            output.name,
            error * 100.0
        ));
    }
}

/// The network in real numbers, whatever the schedule's precision.
fn onnx_in_floating_point(
    (path, bytes): (&Path, &[u8]),
    (shapes, images): (&Shapes, i64),
) -> Result<Front, String> {
    if bytes.first() == Some(&b'{') {
        return Err("a front-end file has no numbers in floating point".to_owned());
    }
    let read = chipless_schedule::import::read(
        bytes,
        // The comparison takes images one by one.
        &of_one(bytes, shapes, images),
        &|name| beside(path, name),
    );
    read.map_err(|refused| refused.to_string())
}
