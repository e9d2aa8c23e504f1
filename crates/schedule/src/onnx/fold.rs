//! Nodes whose operands are all constants, or shapes: they are computed here, as no layer is needed for them.

use super::attributes::Attributes;
use super::constant::{Constant, Data};
use super::graph::Reader;
use super::value::{Known, Outcome, Scales, Stored};
use std::rc::Rc;

/// ONNX's number of a 32-bit and of a 64-bit integer.
const INTEGERS: [i32; 2] = [6, 7];

/// Operations that are computed where everything that they read is constant; `Shape` reads any tensor.
const FOLDED: [&str; 20] = [
    "Shape",
    "Gather",
    "Concat",
    "Slice",
    "Squeeze",
    "Unsqueeze",
    "Reshape",
    "Transpose",
    "Cast",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Sqrt",
    "ConstantOfShape",
    "Range",
    "Expand",
    "Equal",
    "Where",
    "QuantizeLinear",
];

impl Reader<'_> {
    /// What a node gives if that follows from constants; nothing if it reads what the network computes.
    pub(super) fn fold(
        &self,
        kind: &str,
        attributes: &Attributes<'_>,
        inputs: &[Option<Known>],
    ) -> Option<Outcome> {
        if !FOLDED.contains(&kind) {
            return None;
        }
        if let ("Shape", Some(Some(Known::Value(value)))) = (kind, inputs.first()) {
            return Some(Ok(self.shape(attributes, &value.shape(self.batch))));
        }
        let mut constants = Vec::new();
        for input in inputs {
            match input {
                Some(Known::Constant(constant, scales)) => {
                    constants.push((constant, scales.as_ref()));
                }
                Some(_) => return None,
                None => {
                    return Some(Err(
                        "an input is left out, which is not supported".to_owned()
                    ));
                }
            }
        }
        let (first, scales) = *constants.first()?;
        Some(match kind {
            "Shape" => Ok(self.shape(attributes, &first.shape)),
            "Transpose" => transpose(first, scales, attributes),
            "QuantizeLinear" => quantise(inputs, attributes),
            "Expand" if scales.is_none_or(|(scales, _)| scales.len() == 1) => {
                let shape = constants.get(1).ok_or("its shape is missing");
                let expanded = shape
                    .map_err(str::to_owned)
                    .and_then(|(shape, _)| expand(first, shape));
                expanded.map(|constant| Known::Constant(constant, scales.cloned()))
            }
            _ if constants.iter().any(|(_, scales)| scales.is_some()) => {
                Err("of a quantised constant it is not supported".to_owned())
            }
            _ => {
                let constants: Vec<&Constant> = constants.iter().map(|(c, _)| *c).collect();
                folded(kind, attributes, &constants).map(|constant| Known::Constant(constant, None))
            }
        })
    }

    fn shape(&self, attributes: &Attributes<'_>, dims: &[i64]) -> Known {
        let rank = dims.len() as i64;
        let bound = |at: i64| (if at < 0 { at + rank } else { at }).clamp(0, rank) as usize;
        let start = bound(attributes.int("start").unwrap_or(0));
        let end = bound(attributes.int("end").unwrap_or(rank)).max(start);
        let numbers = dims[start..end].iter().map(|extent| *extent as f64);
        Known::Constant(
            Constant {
                name: self.name.clone(),
                shape: vec![(end - start) as i64],
                kind: INTEGERS[1],
                data: Data::There(Rc::new(numbers.collect())),
            },
            None,
        )
    }
}

/// Elements that are made here of fewer, at most.
const MOST: i64 = 1 << 24;

/// Elements of a tensor.
pub(super) fn product(extents: &[i64]) -> i64 {
    let all = extents.iter();
    all.fold(1, |all, extent| all.saturating_mul(*extent))
}

/// An axis of a tensor, counted from the front.
pub(crate) fn axis_of(axis: i64, rank: usize) -> Result<usize, String> {
    let from_front = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(from_front)
        .ok()
        .filter(|axis| *axis < rank)
        .ok_or_else(|| format!("expected an axis of {rank} dimensions, found {axis}"))
}

/// Elements of a constant at places that follow from places of the result, where they have any; nothing is read where the numbers are not there.
fn taken(
    constant: &Constant,
    shape: Vec<i64>,
    from: impl Fn(&[i64]) -> Option<Vec<i64>>,
) -> Result<Constant, String> {
    let Data::There(numbers) = &constant.data else {
        return Ok(Constant {
            shape,
            ..constant.clone()
        });
    };
    let count = product(&shape);
    if count > MOST.max(numbers.len() as i64) {
        return Err(too_many(&shape));
    }
    let mut place = vec![0; shape.len()];
    let mut values = Vec::with_capacity(count.max(0) as usize);
    for _ in 0..count {
        let value = from(&place).and_then(|from| {
            let at = from.iter().zip(&constant.shape);
            let at = at.fold(0, |at, (i, extent)| at * extent + i);
            numbers.get(usize::try_from(at).ok()?)
        });
        let outside = || {
            format!(
                "an index lies outside of the constant's {:?}",
                constant.shape
            )
        };
        values.push(*value.ok_or_else(outside)?);
        for (i, extent) in place.iter_mut().zip(&shape).rev() {
            *i += 1;
            if *i < *extent {
                break;
            }
            *i = 0;
        }
    }
    Ok(Constant {
        shape,
        data: Data::There(Rc::new(values)),
        ..constant.clone()
    })
}

fn too_many(shape: &[i64]) -> String {
    format!("expected at most {MOST} elements of a constant, found a shape of {shape:?}")
}

fn transpose(constant: &Constant, scales: Option<&Scales>, attributes: &Attributes<'_>) -> Outcome {
    let rank = constant.shape.len();
    let order: Vec<usize> = match attributes.ints("perm") {
        Some(order) => order
            .iter()
            .map(|axis| axis_of(*axis, rank))
            .collect::<Result<_, _>>()?,
        None => (0..rank).rev().collect(),
    };
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted != (0..rank).collect::<Vec<_>>() {
        return Err(format!("{order:?} is no order of {rank} axes"));
    }
    let shape = order.iter().map(|axis| constant.shape[*axis]).collect();
    let turned = taken(constant, shape, |place| {
        let mut from = vec![0; rank];
        for (i, axis) in place.iter().zip(&order) {
            from[*axis] = *i;
        }
        Some(from)
    })?;
    let scales = scales.map(|(scales, axis)| {
        let to = order.iter().position(|from| *from as i64 == *axis);
        (scales.clone(), to.unwrap_or(0) as i64)
    });
    Ok(Known::Constant(turned, scales))
}

/// A constant as 8-bit integers; ties go to the even number, as ONNX has them.
fn quantise(inputs: &[Option<Known>], attributes: &Attributes<'_>) -> Outcome {
    let (constant, _) = Reader::constant(inputs, 0)?.ok_or("its input is missing")?;
    let (scale, _) = Reader::constant(inputs, 1)?.ok_or("its scale is missing")?;
    let zero = Reader::constant(inputs, 2)?.map(|(zero, _)| zero);
    let stored = Stored::of(zero.map(|zero| zero.kind), attributes, Stored::Unsigned)?;
    let scales = scale.numbers()?;
    let zeros = zero.map_or_else(|| Ok(Rc::default()), Constant::numbers)?;
    let along = if scales.len() > 1 {
        axis_of(attributes.int("axis").unwrap_or(1), constant.shape.len())?
    } else {
        0
    };
    let extents = &constant.shape;
    let inner: i64 = extents.iter().skip(along + 1).product();
    let extent = extents.get(along).copied().unwrap_or(1);
    if scales.len() > 1 && scales.len() as i64 != extent {
        return Err(format!("{} scales along {extent} elements", scales.len()));
    }
    let values = constant.numbers()?;
    let [least, most] = stored.range();
    let numbers = values.iter().enumerate().map(|(at, value)| {
        let channel = (at as i64 / inner.max(1) % extent.max(1)) as usize;
        let of = |all: &[f64]| all.get(channel).or(all.first()).copied();
        let zero = of(&zeros).unwrap_or(0.0);
        ((value / of(&scales).unwrap_or(1.0)).round_ties_even() + zero).clamp(least, most)
    });
    Ok(Known::Constant(
        Constant {
            kind: stored.kind(),
            data: Data::There(Rc::new(numbers.collect())),
            ..constant.clone()
        },
        None,
    ))
}

fn folded(
    kind: &str,
    attributes: &Attributes<'_>,
    constants: &[&Constant],
) -> Result<Constant, String> {
    let first = constants[0];
    let second = || constants.get(1).copied().ok_or("an input is missing");
    let rank = first.shape.len();
    let axes = |at: usize| match constants.get(at) {
        Some(axes) => Reader::whole(axes).map(Some),
        None => Ok(attributes.ints("axes").map(<[i64]>::to_vec)),
    };
    let shaped = |shape: Vec<i64>| {
        let same = product(&shape) == product(&first.shape);
        same.then(|| Constant {
            shape: shape.clone(),
            ..first.clone()
        })
        .ok_or_else(|| {
            let (elements, shape) = (product(&first.shape), &shape);
            format!("expected a shape of {elements} elements, found {shape:?}")
        })
    };
    match kind {
        "Cast" => cast(first, attributes.int("to").unwrap_or(1)),
        "Sqrt" => each(first, f64::sqrt),
        "Add" | "Sub" | "Mul" | "Div" | "Equal" => combined(kind, first, second()?),
        "Where" => {
            let other = constants.get(2).copied().ok_or("an input is missing")?;
            chosen(first, second()?, other)
        }
        "Reshape" => shaped(reshaped(&first.shape, Reader::whole(second()?)?)),
        "Unsqueeze" => {
            let axes = axes(1)?.ok_or("its axes are missing")?;
            let whole = rank + axes.len();
            let mut places = Vec::new();
            for axis in axes {
                places.push(axis_of(axis, whole)?);
            }
            let mut old = first.shape.iter();
            let extent = |at: usize| {
                if places.contains(&at) {
                    1
                } else {
                    old.next().copied().unwrap_or(1)
                }
            };
            shaped((0..whole).map(extent).collect())
        }
        "Squeeze" => {
            let mut shape = first.shape.clone();
            match axes(1)? {
                None => shape.retain(|extent| *extent != 1),
                Some(axes) => {
                    let mut away = Vec::new();
                    for axis in axes {
                        away.push(axis_of(axis, rank)?);
                    }
                    let mut at = 0..;
                    shape.retain(|_| at.next().is_some_and(|at| !away.contains(&at)));
                }
            }
            shaped(shape)
        }
        "Gather" => {
            let axis = axis_of(attributes.int("axis").unwrap_or(0), rank)?;
            gathered(first, second()?, axis)
        }
        "Slice" => slice(first, constants, attributes),
        "Concat" => {
            let axis = axis_of(attributes.int("axis").unwrap_or(0), rank)?;
            joined(constants, axis)
        }
        "Range" => range(constants),
        "ConstantOfShape" => of_shape(first, attributes.tensor("value")?),
        _ => Err("of a constant it is not supported".to_owned()),
    }
}

/// The extents of a reshape: 0 keeps an extent, −1 is what is left.
fn reshaped(old: &[i64], mut shape: Vec<i64>) -> Vec<i64> {
    for (at, extent) in shape
        .iter_mut()
        .enumerate()
        .filter(|(_, extent)| **extent == 0)
    {
        *extent = old.get(at).copied().unwrap_or(0);
    }
    let known: Vec<i64> = shape.iter().copied().filter(|extent| *extent > 0).collect();
    let (known, all) = (product(&known), product(old));
    for extent in shape.iter_mut().filter(|extent| **extent == -1) {
        *extent = all.checked_div(known).unwrap_or(0);
    }
    shape
}

/// Elements along an axis, by index; negative ones count from the end.
fn gathered(of: &Constant, places: &Constant, axis: usize) -> Result<Constant, String> {
    let indices = Reader::whole(places)?;
    let extent = of.shape[axis];
    let (outer, places) = (axis, &places.shape);
    let mut shape = of.shape.clone();
    shape.splice(axis..=axis, places.iter().copied());
    taken(of, shape, |place| {
        let chosen = &place[outer..outer + places.len()];
        let at = chosen.iter().zip(places).fold(0, |at, (i, e)| at * e + i);
        let index = indices.get(at as usize).copied().unwrap_or(-1);
        let index = if index < 0 { index + extent } else { index };
        let index = Some(index).filter(|index| (0..extent).contains(index))?;
        let mut from = place[..outer].to_vec();
        from.push(index);
        from.extend(&place[outer + places.len()..]);
        Some(from)
    })
}

/// From a start to a limit by a step.
fn range(constants: &[&Constant]) -> Result<Constant, String> {
    let number = |at: usize| {
        let constant = constants.get(at);
        let number = constant.and_then(|constant| constant.single());
        number.ok_or_else(|| format!("input {at} is not one number that is known"))
    };
    let (start, limit, step) = (number(0)?, number(1)?, number(2)?);
    let count = ((limit - start) / step).ceil().max(0.0);
    if count.is_nan() || count > MOST as f64 {
        return Err(format!("from {start} to {limit} by {step}"));
    }
    let numbers = (0..count as i64).map(|at| start + at as f64 * step);
    Ok(Constant {
        shape: vec![count as i64],
        data: Data::There(Rc::new(numbers.collect())),
        ..constants[0].clone()
    })
}

/// As many of one number as a shape says.
fn of_shape(shape_of: &Constant, value: Option<Constant>) -> Result<Constant, String> {
    let shape = Reader::whole(shape_of)?;
    let count = product(&shape);
    if !(0..=MOST).contains(&count) {
        return Err(too_many(&shape));
    }
    let number = value.as_ref().and_then(Constant::single).unwrap_or(0.0);
    Ok(Constant {
        name: shape_of.name.clone(),
        kind: value.map_or(1, |value| value.kind),
        data: Data::There(Rc::new(vec![number; count as usize])),
        shape,
    })
}

/// A function of each element.
fn each(constant: &Constant, function: impl Fn(f64) -> f64) -> Result<Constant, String> {
    let numbers = constant.numbers()?;
    Ok(Constant {
        data: Data::There(Rc::new(numbers.iter().map(|v| function(*v)).collect())),
        ..constant.clone()
    })
}

fn cast(constant: &Constant, to: i64) -> Result<Constant, String> {
    let kind = i32::try_from(to).unwrap_or(0);
    let cast = match kind {
        1 => each(constant, |v| f64::from(v as f32)),
        10 | 11 | 16 => each(constant, |v| v),
        kind if INTEGERS.contains(&kind) => each(constant, f64::trunc),
        _ => return Err(format!("to ONNX type {to} it is not supported")),
    }?;
    Ok(Constant { kind, ..cast })
}

/// Two constants of one shape, or one of them with a single element.
fn combined(kind: &str, a: &Constant, b: &Constant) -> Result<Constant, String> {
    let (x, y) = (a.numbers()?, b.numbers()?);
    if a.shape != b.shape && x.len() != 1 && y.len() != 1 {
        return Err(format!(
            "of constants of {:?} and {:?} it is not supported",
            a.shape, b.shape
        ));
    }
    let whole = INTEGERS.contains(&a.kind);
    let of = |x: f64, y: f64| match kind {
        "Add" => Ok(x + y),
        "Sub" => Ok(x - y),
        "Mul" => Ok(x * y),
        "Equal" => Ok(f64::from(u8::from(x - y == 0.0))),
        _ if y == 0.0 => Err("a division by zero".to_owned()),
        _ if whole => Ok((x / y).trunc()),
        _ => Ok(x / y),
    };
    let count = if x.is_empty() || y.is_empty() {
        0
    } else {
        x.len().max(y.len())
    };
    let at = |all: &[f64], i: usize| if all.len() == 1 { all[0] } else { all[i] };
    let numbers: Result<Vec<f64>, String> = (0..count).map(|i| of(at(&x, i), at(&y, i))).collect();
    let larger = if x.len() > y.len() || x.len() == y.len() && a.shape.len() >= b.shape.len() {
        a
    } else {
        b
    };
    Ok(Constant {
        data: Data::There(Rc::new(numbers?)),
        kind: a.kind,
        ..larger.clone()
    })
}

/// A constant with each element repeated along the axes where it has one and the shape has more.
fn expand(constant: &Constant, shape: &Constant) -> Result<Constant, String> {
    let given = Reader::whole(shape)?;
    let rank = given.len().max(constant.shape.len());
    let aligned = |extents: &[i64]| [&vec![1; rank - extents.len()][..], extents].concat();
    let (from, to) = (aligned(&constant.shape), aligned(&given));
    let fits = |(from, to): (&i64, &i64)| *to > 0 && (*from == 1 || *to == 1 || from == to);
    if !from.iter().zip(&to).all(fits) {
        return Err(format!("{:?} as {given:?}", constant.shape));
    }
    let whole = Constant {
        shape: from.clone(),
        ..constant.clone()
    };
    let extents = from.iter().zip(&to).map(|(from, to)| *from.max(to));
    taken(&whole, extents.collect(), |place| {
        let along = place.iter().zip(&from);
        Some(along.map(|(at, extent)| at % extent).collect())
    })
}

/// Elements of the one constant where the condition holds, of the other where it does not.
fn chosen(condition: &Constant, yes: &Constant, no: &Constant) -> Result<Constant, String> {
    let (which, yes_there, no_there) = (condition.numbers()?, yes.numbers()?, no.numbers()?);
    let [first, rest @ ..] = [condition, yes, no].map(|constant| &constant.shape);
    if rest.iter().any(|shape| *shape != first) {
        return Err(format!(
            "of constants of {first:?} and {rest:?} it is not supported"
        ));
    }
    let sides = yes_there.iter().zip(no_there.iter());
    let chosen = which
        .iter()
        .zip(sides)
        .map(|(which, (yes, no))| if *which == 0.0 { *no } else { *yes });
    Ok(Constant {
        data: Data::There(Rc::new(chosen.collect())),
        ..yes.clone()
    })
}

fn slice(
    first: &Constant,
    constants: &[&Constant],
    attributes: &Attributes<'_>,
) -> Result<Constant, String> {
    let list = |at: usize, name: &str| match constants.get(at) {
        Some(constant) => Reader::whole(constant).map(Some),
        None => Ok(attributes.ints(name).map(<[i64]>::to_vec)),
    };
    let (mut shape, mut offset) = (first.shape.clone(), vec![0; first.shape.len()]);
    for (axis, ends) in cuts(list)? {
        let axis = axis_of(axis, shape.len())?;
        let [start, end] = bounds(ends, first.shape[axis]);
        (offset[axis], shape[axis]) = (start, (end - start).max(0));
    }
    taken(first, shape, |place| {
        let from = place.iter().zip(&offset);
        Some(from.map(|(i, start)| i + start).collect())
    })
}

/// The axes that a `Slice` cuts, each with where it starts and ends. `list` gives an input, or the attribute that stood for it up to
/// operator set 9.
pub(super) fn cuts(
    list: impl Fn(usize, &str) -> Result<Option<Vec<i64>>, String>,
) -> Result<Vec<(i64, [i64; 2])>, String> {
    let starts = list(1, "starts")?.ok_or("its starts are missing")?;
    let ends = list(2, "ends")?.ok_or("its ends are missing")?;
    let axes = list(3, "axes")?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    if list(4, "steps")?.is_some_and(|steps| steps.iter().any(|step| *step != 1)) {
        return Err("steps other than 1 are not supported".to_owned());
    }
    if [ends.len(), axes.len()] != [starts.len(); 2] {
        return Err(format!(
            "expected as many ends and axes as starts, {}, found {} and {}",
            starts.len(),
            ends.len(),
            axes.len()
        ));
    }
    let ends = starts.into_iter().zip(ends);
    let cuts = axes.into_iter().zip(ends);
    Ok(cuts
        .map(|(axis, (start, end))| (axis, [start, end]))
        .collect())
}

/// The ends of a slice within an extent; negative ones count from the end.
pub(super) fn bounds(ends: [i64; 2], extent: i64) -> [i64; 2] {
    ends.map(|at| {
        (if at < 0 {
            at.saturating_add(extent)
        } else {
            at
        })
        .clamp(0, extent)
    })
}

fn joined(constants: &[&Constant], axis: usize) -> Result<Constant, String> {
    let first = constants[0];
    let alike = |other: &&Constant| {
        other.shape.len() == first.shape.len()
            && (0..first.shape.len()).all(|d| d == axis || other.shape[d] == first.shape[d])
    };
    if !constants.iter().all(alike) {
        return Err("its inputs have other extents beside that axis".to_owned());
    }
    let outer: i64 = first.shape[..axis].iter().product();
    let (mut numbers, mut extent) = (Vec::new(), 0);
    for other in constants {
        extent += other.shape[axis];
    }
    for row in 0..outer as usize {
        for other in constants {
            let values = other.numbers()?;
            let each = values.len() / outer.max(1) as usize;
            numbers.extend_from_slice(&values[row * each..(row + 1) * each]);
        }
    }
    let mut shape = first.shape.clone();
    shape[axis] = extent;
    Ok(Constant {
        shape,
        data: Data::There(Rc::new(numbers)),
        ..first.clone()
    })
}
