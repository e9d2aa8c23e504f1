//! How far the numbers of a schedule are from those of the network in floating point.
//!
//! The schedule is executed. Beside it the network is computed twice without a schedule, layer by layer: as it is stored, and in single
//! precision. The outputs of the first two are compared with the third; the layers of the second show where resolution is lost.

use crate::emit::Written;
use crate::front::{Activation, Declared, Element, Front, Input, Layout, Quantisation, Source};
pub use chipless_gemini::lower::Precision;
use chipless_gemini::lower::whole;
use chipless_gemini::{Data, Network, Schedule, WeightData};
use chipless_kernels::cast::{Rounding, decode_f64, encode_f64};
use chipless_model::{ElementType, Limits, Port, Program, Storage};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Numbers of the inputs that are given, by the model's names, row by row.
pub type Inputs = BTreeMap<String, (Vec<u64>, Vec<f64>)>;

/// The schedule's outputs beside those of the network in floating point.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Comparison {
    /// Output by output.
    pub outputs: Vec<Difference>,
    /// Layers whose numbers are stored too coarsely.
    pub layers: Vec<Loss>,
}

/// How far an output is from the network's.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Difference {
    /// The model's name of the output.
    pub name: String,
    /// Cosine of the angle between both; absent where one of them is zero, or not finite.
    pub cosine: Option<f64>,
    /// Norm of the difference, divided by the norm of the network's output; absent where that is zero and the difference is not, and where one of them
    /// is not finite.
    pub relative_error: Option<f64>,
    /// Whether all numbers of the schedule's output are finite, or are not in the network's either.
    pub is_finite: bool,
    /// Whether all numbers of the schedule's output are one, where the network's are several: nothing is left of what was computed.
    pub is_constant: bool,
}

/// A layer that loses its numbers.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Loss {
    /// The layer.
    pub layer: String,
    /// How many different values its result takes as stored.
    pub levels: usize,
    /// How many of its elements are cut off at the end of the range, as a share. What an activation bounds is not counted.
    pub saturated: f64,
}

/// A result with at most so many values is too coarse, if the network's has more than [`FINE`].
const COARSE: usize = 4;
/// See [`COARSE`].
const FINE: usize = 32;
/// A share of elements beyond the range that is too large.
pub const CUT_OFF: f64 = 0.01;

/// Maps as one run left them, by the name of their layer.
type Maps = HashMap<String, Vec<f64>>;

/// Everything of a comparison that does not depend on the schedule.
#[derive(Debug)]
pub struct Prepared<'f> {
    front: &'f Front,
    /// The network in floating point, where the front end has it otherwise.
    float: Option<Front>,
    written: Written,
    batch: i64,
    /// Numbers of the inputs, in order.
    inputs: Vec<Vec<f64>>,
}

/// Prepares a comparison with a network in floating point, or with the network itself; inputs that are not given are random by `seed`.
///
/// # Errors
/// Inputs of another name or shape, networks that do not correspond.
pub fn prepare<'f>(
    (front, batch): (&'f Front, i64),
    float: Option<Front>,
    given: &Inputs,
    seed: u64,
) -> Result<Prepared<'f>, String> {
    let written = Written::of(front, batch, true)?;
    let of = float.as_ref().unwrap_or(front);
    let inputs = inputs((front, batch), &written, of, given, seed)?;
    Ok(Prepared {
        front,
        float,
        written,
        batch,
        inputs,
    })
}

/// Random numbers for the inputs of a network in floating point.
pub(crate) fn random(front: &Front, seed: u64) -> Result<Vec<Vec<f64>>, String> {
    let written = Written::of(front, 1, false)?;
    inputs((front, 1), &written, front, &Inputs::new(), seed)
}

/// The outputs of a network, computed without a schedule, in the model's order of axes; so are the inputs. Results of layers are of single
/// precision, or as they are stored.
///
/// # Errors
/// Weights that are not there, what cannot be computed.
pub fn outputs(
    front: &Front,
    inputs: &[Vec<f64>],
    precision: Precision,
) -> Result<Vec<Vec<f64>>, String> {
    let written = Written::of(front, 1, true)?;
    let give = |at: usize| Ok(inputs[at].clone());
    let mut maps = computed(&written, precision, &Limits::default(), &give)?;
    let outputs = written.stored_outputs.iter();
    outputs
        .map(|(name, _)| {
            let found = maps.remove(name);
            found.ok_or_else(|| format!("the network does not compute `{name}`"))
        })
        .collect()
}

/// Executes a schedule and compares it with the network.
///
/// # Errors
/// Networks whose outputs do not correspond, what cannot be executed.
pub fn compare(prepared: &Prepared<'_>, schedule: &str) -> Result<Comparison, String> {
    let Prepared {
        front,
        float,
        written,
        batch,
        inputs,
    } = prepared;
    let float = float.as_ref().unwrap_or(front);
    let limits = Limits::default();
    let own = Written::of(float, *batch, true)?;
    let precise = computed(&own, Precision::Single, &limits, &|at| {
        Ok(inputs[at].clone())
    })?;
    let stored = |at: usize| stored_input((front, *batch, written, float), at, &inputs[at]);
    let coarse = computed(written, Precision::Stored, &limits, &stored)?;
    let executed = executed(written, schedule, &limits, &stored)?;
    let mut outputs = Vec::new();
    for (at, (name, _)) in own.stored_outputs.iter().enumerate() {
        let declared = float.declared.get(at);
        let called = declared.map_or(name, |declared| &declared.name);
        let (of, how) = (written.stored_outputs.get(at))
            .ok_or_else(|| format!("the output `{called}` is not in the schedule"))?;
        // The schedule calls an output as the model does, where the front-end file says how.
        let declared = front.declared.get(at).map(|declared| &declared.name);
        let values = declared
            .and_then(|name| executed.get(name))
            .or_else(|| executed.get(of))
            .ok_or_else(|| format!("the schedule does not write the output `{called}`"))?;
        let whole = declared_integer(float.declared.get(at));
        let real = |v: &f64| match whole {
            Some(offset) if front.bits() == 8 => v + offset,
            _ => (v - how.zero) * how.scale,
        };
        let real: Vec<f64> = values.iter().map(real).collect();
        let layout = front.outputs[at].pieces.first().map(|piece| piece.source);
        let layout = match layout {
            Some(Source::Layer(layer)) => front.operations[layer].layout,
            _ => Layout::Map,
        };
        let real = by_images(*batch, &real, &|image| {
            from_stored(layout, front.outputs[at].extents, image)
        });
        let real = real.ok_or_else(|| {
            format!("the output `{called}` has axes in an order that is not compared")
        })?;
        let expected = &precise[name];
        if expected.len() != real.len() {
            return Err(format!(
                "the output `{called}` has {} elements in the network, {} in the schedule",
                expected.len(),
                real.len()
            ));
        }
        outputs.push(difference(called, &real, expected));
    }
    let layers = front.network.layers.iter().zip(&front.operations);
    let layers = layers
        .zip(&written.stored_layers)
        .filter_map(|((layer, operation), how)| {
            let name = &layer.name;
            let range = Range::of(front, operation.activation, *how);
            loss(name, coarse.get(name)?, precise.get(name)?, &range)
        })
        .collect();
    Ok(Comparison { outputs, layers })
}

/// What stored integers of 8 bits lack, where the model itself has such integers.
fn declared_integer(declared: Option<&Declared>) -> Option<f64> {
    match declared?.element {
        "int8" => Some(0.0),
        "uint8" => Some(128.0),
        _ => None,
    }
}

pub(crate) fn difference(name: &str, found: &[f64], expected: &[f64]) -> Difference {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (own, other) = (dot(found, found).sqrt(), dot(expected, expected).sqrt());
    let apart = found.iter().zip(expected).map(|(a, b)| (a - b) * (a - b));
    let apart = apart.sum::<f64>().sqrt();
    let finite = |value: f64| value.is_finite().then_some(value);
    Difference {
        name: name.to_owned(),
        cosine: finite(dot(found, expected) / (own * other)),
        relative_error: if apart == 0.0 {
            Some(0.0)
        } else {
            finite(apart / other)
        },
        is_constant: is_constant(found) && !is_constant(expected),
        is_finite: found
            .iter()
            .zip(expected)
            .all(|(own, of)| own.is_finite() || !of.is_finite()),
    }
}

fn is_constant(numbers: &[f64]) -> bool {
    numbers
        .windows(2)
        .all(|pair| pair[0].to_bits() == pair[1].to_bits())
}

/// What the stored numbers of a layer can stand for.
struct Range {
    /// The least and the greatest number as stored.
    ends: [f64; 2],
    stored: Quantisation,
    activation: Activation,
    /// How far a number may be beyond an end, in stored numbers: it is then stored with no more than the error of its neighbours.
    step: f64,
    /// Whether a `QuantizeLinear` may stand for a `Relu`: one whose range ends at zero.
    is_bound_by_type: bool,
}

impl Range {
    fn of(front: &Front, activation: Activation, stored: Quantisation) -> Range {
        let is_integer = front.bits() == 8;
        Range {
            ends: if is_integer {
                [-128.0, 127.0]
            } else {
                [-65_504.0, 65_504.0]
            },
            stored,
            activation,
            // Half the distance of two numbers in half precision at its end.
            step: if is_integer { 1.0 } else { 16.0 },
            is_bound_by_type: front.is_quantised,
        }
    }

    /// Whether a number that the network keeps is cut off: it is stored as an end, and lies beyond it.
    fn cuts_off(&self, stored: f64, precise: f64) -> bool {
        let kept = match self.activation {
            Activation::None => precise,
            Activation::Relu => precise.max(0.0),
            Activation::Bounded(most) => precise.max(0.0).min(most),
        };
        let wanted = kept / self.stored.scale + self.stored.zero;
        self.ends.iter().any(|end| {
            let is_zero = self.is_bound_by_type && (self.stored.zero - end).abs() < 0.5;
            let sign = end.signum();
            !is_zero && stored * sign >= end.abs() && (wanted - end) * sign > self.step
        })
    }
}

/// Whether a layer's result, as stored, has too few values or is cut off.
fn loss(name: &str, stored: &[f64], precise: &[f64], range: &Range) -> Option<Loss> {
    let levels = |values: &[f64], most: usize| {
        let mut seen = HashSet::new();
        for value in values {
            // Zeros of both signs are one value.
            seen.insert((value + 0.0).to_bits());
            if seen.len() > most {
                break;
            }
        }
        seen.len()
    };
    let pairs = stored.iter().zip(precise);
    let saturated = if stored.len() == precise.len() {
        pairs.filter(|(s, p)| range.cuts_off(**s, **p)).count()
    } else {
        0
    };
    let found = Loss {
        layer: name.to_owned(),
        levels: levels(stored, FINE),
        saturated: saturated as f64 / stored.len().max(1) as f64,
    };
    let coarse = found.levels <= COARSE && levels(precise, FINE) > FINE;
    (coarse || found.saturated >= CUT_OFF).then_some(found)
}

/// Numbers for the inputs in the model's order of axes: what is given, and random ones in the range of the input.
fn inputs(
    (front, batch): (&Front, i64),
    written: &Written,
    float: &Front,
    given: &Inputs,
    seed: u64,
) -> Result<Vec<Vec<f64>>, String> {
    if front.inputs.len() != float.inputs.len() {
        return Err("the schedule has other inputs than the network".to_owned());
    }
    let names: Vec<&str> = (float.inputs.iter())
        .map(|input| {
            input
                .declared
                .as_ref()
                .map_or(input.name.as_str(), |d| &d.name)
        })
        .collect();
    if let Some(name) = given.keys().find(|name| !names.contains(&name.as_str())) {
        return Err(format!(
            "expected the name of an input ({}), found `{name}`",
            names.join(", ")
        ));
    }
    let mut rng = fastrand::Rng::with_seed(seed);
    let of_input = |(at, input): (usize, &Input)| {
        let count = (batch * input.extents.iter().product::<i64>()) as usize;
        if let Some((shape, values)) = given.get(names[at]) {
            let mut expected: Vec<u64> = (input.declared.iter())
                .flat_map(|declared| declared.shape.iter().map(|extent| *extent as u64))
                .collect();
            // A network that int8 has for several images is in floating point one for one.
            let declared: u64 = expected.iter().product();
            if let Some(images) = expected.first_mut() {
                *images *= count as u64 / declared.max(1);
            }
            if *shape != expected {
                return Err(format!(
                    "the input `{}`: expected the shape {expected:?}, found {shape:?}",
                    names[at]
                ));
            }
            return Ok(values.clone());
        }
        let how = written.stored_inputs[at];
        let random = |rng: &mut fastrand::Rng| match (input.element, front.inputs[at].quantisation)
        {
            // Indices and masks: both values are valid in every table.
            (Element::Int16, _) => f64::from(rng.u8(0..2)),
            (_, Some(_)) => (f64::from(rng.i8(..)) - how.zero) * how.scale,
            _ => rng.f64() * 2.0 - 1.0,
        };
        if let Some(offset) = declared_integer(input.declared.as_ref()) {
            let stored = (0..count).map(|_| f64::from(rng.i8(..)) + offset);
            return Ok(stored.collect());
        }
        Ok((0..count).map(|_| random(&mut rng)).collect())
    };
    float.inputs.iter().enumerate().map(of_input).collect()
}

/// An input as the schedule stores it.
fn stored_input(
    (front, batch, written, float): (&Front, i64, &Written, &Front),
    at: usize,
    real: &[f64],
) -> Result<Vec<f64>, String> {
    let (input, how) = (&front.inputs[at], written.stored_inputs[at]);
    let ordered = by_images(batch, real, &|image| {
        to_stored(input.layout, input.extents, image)
    });
    let ordered = ordered.ok_or_else(|| {
        format!(
            "the input `{}` has axes in an order that is not compared",
            input.name
        )
    })?;
    let whole = declared_integer(float.inputs[at].declared.as_ref());
    let stored = |v: f64| match (input.element, whole) {
        (Element::Int8, Some(offset)) => v - offset,
        (Element::Int8, None) => ((v / how.scale + 0.5).floor() + how.zero).clamp(-128.0, 127.0),
        _ => v,
    };
    Ok(ordered.into_iter().map(stored).collect())
}

/// Rows of an array become columns.
fn exchanged(values: &[f64], rows: usize) -> Vec<f64> {
    let columns = values.len() / rows.max(1);
    let column = |x: usize| (0..rows).map(move |y| values[y * columns + x]);
    (0..columns).flat_map(column).collect()
}

/// The elements of each image in another order.
fn by_images(
    batch: i64,
    values: &[f64],
    order: &dyn Fn(Vec<f64>) -> Option<Vec<f64>>,
) -> Option<Vec<f64>> {
    let each = (values.len() / batch.max(1) as usize).max(1);
    let images: Option<Vec<_>> = values
        .chunks(each)
        .map(|image| order(image.to_vec()))
        .collect();
    Some(images?.concat())
}

/// Elements in the model's order as channels, rows, columns.
fn to_stored(layout: Layout, [_, rows, _]: [i64; 3], values: Vec<f64>) -> Option<Vec<f64>> {
    match layout {
        Layout::Map | Layout::Line | Layout::Vector => Some(values),
        Layout::Sequence => Some(exchanged(&values, rows as usize)),
        _ => None,
    }
}

/// Channels, rows, columns in the model's order.
fn from_stored(layout: Layout, [channels, ..]: [i64; 3], values: Vec<f64>) -> Option<Vec<f64>> {
    match layout {
        Layout::Map | Layout::Line | Layout::Vector => Some(values),
        Layout::Sequence => Some(exchanged(&values, channels as usize)),
        _ => None,
    }
}

/// Numbers of the inputs by their place among those of the network.
type Give<'g> = dyn Fn(usize) -> Result<Vec<f64>, String> + 'g;

fn read(written: &Written, limits: &Limits) -> Result<Network, String> {
    Network::read(written.network_text().as_bytes(), limits).map_err(|error| error.to_string())
}

/// Every map of a network, computed without a schedule: channels, rows, columns.
fn computed(
    written: &Written,
    precision: Precision,
    limits: &Limits,
    give: &Give<'_>,
) -> Result<Maps, String> {
    let program = whole(
        &read(written, limits)?,
        &written.numbers()?,
        precision,
        limits,
    )?;
    let channels = |port: &Port| port.shape[3] as usize;
    let of_images = |port: &Port, values: &[f64], rows: usize| -> Vec<f64> {
        let each = values.len() / port.shape[0].max(1) as usize;
        let images = values.chunks(each.max(1));
        images.flat_map(|image| exchanged(image, rows)).collect()
    };
    let places = |port: &Port| (port.shape[1] * port.shape[2]) as usize;
    run(
        &program,
        limits,
        &|port| {
            let values = given(written, port, give)?;
            Ok(of_images(port, &values, channels(port)))
        },
        &|port, values| of_images(port, &values, places(port)),
    )
}

/// The outputs of a schedule, by their names in the program.
fn executed(
    written: &Written,
    schedule: &str,
    limits: &Limits,
    give: &Give<'_>,
) -> Result<Maps, String> {
    let (network, arrays) = (read(written, limits)?, written.numbers()?);
    let data = Data {
        network: Some(&network),
        weights: Some(WeightData::Given(&arrays)),
    };
    let schedule = Schedule::read(schedule).map_err(|error| error.to_string())?;
    let machine = chipless_gemini::Machine::named("set").ok_or("the machine is missing")?;
    let lowered = chipless_gemini::lower(&schedule, &data, &machine, limits);
    let lowered = lowered.map_err(|finding| finding.message.clone())?;
    run(
        &lowered.program,
        limits,
        &|port| given(written, port, give),
        &|_, values| values,
    )
}

/// The numbers of a port, which has the name of the front-end file or the model's.
fn given(written: &Written, port: &Port, give: &Give<'_>) -> Result<Vec<f64>, String> {
    let at = written.input(&port.name);
    give(at.ok_or_else(|| format!("the network has no input `{}`", port.name))?)
}

fn run(
    program: &Program<'_>,
    limits: &Limits,
    give: &dyn Fn(&Port) -> Result<Vec<f64>, String>,
    take: &dyn Fn(&Port, Vec<f64>) -> Vec<f64>,
) -> Result<Maps, String> {
    let mut storage = Storage::new(&program.buffers, limits).map_err(|error| error.to_string())?;
    for port in &program.interface.inputs {
        let values = give(port)?;
        let bytes = port.bytes().unwrap_or(0) as usize;
        if values.len() * port.element.bits() as usize / 8 != bytes {
            return Err(format!("the input `{}` has another size", port.name));
        }
        storage.set(port.buffer, Cow::Owned(encoded(port.element, &values)?));
    }
    let outcome = chipless_sim::run(
        &chipless_sim::Verified::assume(program),
        &mut chipless_sim::Functional::new(&mut storage),
    );
    outcome.end.map_err(|stop| format!("{stop:?}"))?;
    let mut maps = Maps::new();
    for port in &program.interface.outputs {
        let bytes = storage.bytes(port.buffer);
        let mut values = vec![0.0; bytes.len() * 8 / port.element.bits() as usize];
        decode_f64(port.element, bytes, &mut values).map_err(|error| error.to_string())?;
        maps.insert(port.name.clone(), take(port, values));
    }
    Ok(maps)
}

fn encoded(element: ElementType, values: &[f64]) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; values.len() * element.bits() as usize / 8];
    encode_f64(element, values, Rounding::NearestEven, &mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}
