//! Nodes that take tensors apart and put them together.
//!
//! Along the channels that is a matter of what readers read. Along rows and columns elements change their place: a layer of its own.

use super::attributes::Attributes;
use super::constant::{Constant, Data};
use super::elements::table;
use super::fold::{axis_of, bounds, cuts, product};
use super::graph::Reader;
use super::proto::Node;
use super::value::{Known, Outcome, Scales, Value};
use crate::front::{Action, Layout, Move, Piece};
use crate::network::Kind;
use std::rc::Rc;

/// Where channels stand among channels, rows, columns.
const CHANNELS: usize = 0;

/// Which of channels, rows, columns an axis of the file is, if it is one of them.
fn side(x: &Value, axis: usize) -> Result<usize, String> {
    let side = match (x.layout, axis) {
        (Layout::Map | Layout::Line, 1) | (Layout::Sequence, 2) => Some(CHANNELS),
        (Layout::Vector, 1) if x.extents[1] * x.extents[2] == 1 => Some(CHANNELS),
        (Layout::Map | Layout::Line | Layout::Heads(_), 2)
        | (Layout::Sequence | Layout::Split(_), 1) => Some(1),
        (Layout::Map, 3) => Some(2),
        _ => None,
    };
    side.ok_or_else(|| {
        format!(
            "along the axis {axis} of {:?} of each image it is not supported",
            x.dims()
        )
    })
}

/// An operand of a concatenation.
enum Joined<'i> {
    Value(&'i Value),
    Constant(&'i Constant, Option<&'i Scales>),
}

impl<'g> Reader<'g> {
    /// A layer that moves elements.
    pub(super) fn moved(
        &mut self,
        operands: &[&Value],
        how: Move,
        extents: [i64; 3],
        layout: Layout,
    ) -> Value {
        let layer = self.plain(Kind::Transpose, extents);
        self.layer(layer, operands, None, Action::Move(how), layout)
    }

    /// The same elements with other extents.
    pub(super) fn reshaped(&mut self, x: &Value, extents: [i64; 3], layout: Layout) -> Value {
        if extents == x.extents {
            return Value {
                layout,
                ..x.clone()
            };
        }
        self.moved(&[x], Move::Reshape, extents, layout)
    }

    /// A layer that exchanges channels and rows.
    pub(super) fn exchange(&mut self, x: &Value, layout: Layout) -> Value {
        let [c, h, w] = x.extents;
        let mut layer = self.plain(Kind::Transpose, [h, c, w]);
        layer.order = [1, 0, 2];
        self.layer(layer, &[x], None, Action::Move(Move::Exchange), layout)
    }

    pub(super) fn concat(
        &mut self,
        attributes: &Attributes<'_>,
        inputs: &[Option<Known>],
    ) -> Outcome {
        let mut joined = Vec::new();
        for input in inputs {
            joined.push(match input {
                Some(Known::Value(value)) => Joined::Value(value),
                Some(Known::Constant(constant, scales)) => {
                    Joined::Constant(constant, scales.as_ref())
                }
                _ => return Err("an input is missing".to_owned()),
            });
        }
        let value = |joined: &Joined<'_>| match joined {
            Joined::Value(value) => Some((*value).clone()),
            Joined::Constant(..) => None,
        };
        let first = joined.iter().find_map(value).ok_or("it has no inputs")?;
        let axis = axis_of(attributes.int("axis").unwrap_or(1), first.dims().len() + 1)?;
        let side = side(&first, axis)?;
        let mut values = Vec::new();
        for joined in &joined {
            values.push(match joined {
                Joined::Value(value) => (*value).clone(),
                Joined::Constant(constant, scales) => {
                    self.beside(&first, side, axis, constant, *scales)?
                }
            });
        }
        let alike = |value: &Value| {
            let same = |d: usize| d == side || value.extents[d] == first.extents[d];
            value.layout == first.layout && (0..3).all(same)
        };
        if !values.iter().all(alike) {
            return Err("its inputs have other extents beside that axis".to_owned());
        }
        let mut extents = first.extents;
        extents[side] = values.iter().map(|value| value.extents[side]).sum();
        let constants = joined.len() > joined.iter().filter_map(value).count();
        if side != CHANNELS || constants {
            let operands: Vec<&Value> = values.iter().collect();
            let how = Move::Concat(side);
            return Ok(Known::Value(self.moved(
                &operands,
                how,
                extents,
                first.layout,
            )));
        }
        // Operands that are stored in one way stay so; where they are stored in several, it depends on what stores the result.
        let quantisation = first
            .quantisation
            .filter(|q| values.iter().all(|v| v.quantisation == Some(*q)));
        Ok(Known::Value(Value {
            pieces: values.iter().flat_map(Value::stored).collect(),
            extents,
            layout: first.layout,
            quantisation,
            stored_as: first.stored_as,
            name: Some(self.name.as_str().into()),
        }))
    }

    /// A constant that is joined with activations like this one along a side.
    fn beside(
        &mut self,
        x: &Value,
        side: usize,
        axis: usize,
        constant: &Constant,
        scales: Option<&Scales>,
    ) -> Result<Value, String> {
        let wrong = || {
            format!(
                "a constant of the shape {:?} beside {:?} is not supported",
                constant.shape,
                x.dims()
            )
        };
        let one = one_image(constant, self.batch).ok_or_else(wrong)?;
        let mut like = x.clone();
        like.extents[side] = one.shape.get(axis).copied().unwrap_or(0);
        if like.extents[side] < 1 || one.shape.iter().skip(1).ne(&like.dims()) {
            return Err(wrong());
        }
        let table = table(&like, Self::numbers(&one, scales)).ok_or_else(wrong)?;
        Ok(self.operand_of(table, x.layout))
    }

    pub(super) fn slice(
        &mut self,
        attributes: &Attributes<'_>,
        inputs: &[Option<Known>],
    ) -> Outcome {
        let x = Self::value(inputs, 0)?.clone();
        let list = |at: usize, name: &str| -> Result<Option<Vec<i64>>, String> {
            match Self::constant(inputs, at)? {
                Some((constant, _)) => Self::whole(constant).map(Some),
                None => Ok(attributes.ints(name).map(<[i64]>::to_vec)),
            }
        };
        let dims = x.shape(self.batch);
        let mut cut = x;
        for (axis, ends) in cuts(list)? {
            let axis = axis_of(axis, dims.len())?;
            let range = bounds(ends, dims[axis]);
            // An axis that is taken whole is not cut.
            if range != [0, dims[axis]] {
                cut = self.part(&cut, axis, range)?;
                cut.name = Some(self.name.as_str().into());
            }
        }
        Ok(Known::Value(cut))
    }

    pub(super) fn split(
        &mut self,
        node: &'g Node,
        attributes: &Attributes<'_>,
        inputs: &[Option<Known>],
    ) -> Outcome {
        let x = Self::value(inputs, 0)?.clone();
        let axis = axis_of(attributes.int("axis").unwrap_or(0), x.dims().len() + 1)?;
        let extent = x.shape(self.batch)[axis];
        let sizes = match Self::constant(inputs, 1)? {
            Some((constant, _)) => Self::whole(constant)?,
            None => match attributes.ints("split") {
                Some(sizes) => sizes.to_vec(),
                None => vec![extent / node.output.len().max(1) as i64; node.output.len()],
            },
        };
        if sizes.len() != node.output.len()
            || sizes.iter().any(|size| *size < 1)
            || sizes
                .iter()
                .try_fold(0, |sum: i64, size| sum.checked_add(*size))
                != Some(extent)
        {
            return Err(format!("parts of {sizes:?} of {extent} elements"));
        }
        let mut start = 0;
        for (output, size) in node.output.iter().zip(sizes) {
            let value = self.part(&x, axis, [start, start + size])?;
            self.known.insert(output.clone(), Known::Value(value));
            start += size;
        }
        Ok(Known::Value(x))
    }

    /// Elements that follow each other along an axis.
    pub(super) fn gather(
        &mut self,
        attributes: &Attributes<'_>,
        inputs: &[Option<Known>],
    ) -> Outcome {
        let x = Self::value(inputs, 0)?.clone();
        let (constant, _) = Self::constant(inputs, 1)?.ok_or("its indices are missing")?;
        let axis = axis_of(attributes.int("axis").unwrap_or(0), x.dims().len() + 1)?;
        let extent = x.shape(self.batch)[axis];
        let indices: Vec<i64> = Self::whole(constant)?
            .iter()
            .map(|index| if *index < 0 { index + extent } else { *index })
            .collect();
        let follow = indices
            .windows(2)
            .all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        let (Some(first), Some(last)) = (indices.first(), indices.last()) else {
            return Err("it has no indices".to_owned());
        };
        if !follow || constant.shape.len() > 1 || *first < 0 || *last >= extent {
            return Err(format!(
                "of the indices {indices:?} of {extent} it is not supported; only of those that follow each other"
            ));
        }
        let mut part = self.part(&x, axis, [*first, last + 1])?;
        part.name = Some(self.name.as_str().into());
        if constant.shape.is_empty() {
            return super::view::squeeze(part, true, &[axis as i64]);
        }
        Ok(Known::Value(part))
    }

    /// A range of a tensor along an axis of the file.
    pub(super) fn part(
        &mut self,
        x: &Value,
        axis: usize,
        [start, end]: [i64; 2],
    ) -> Result<Value, String> {
        if start >= end {
            return Err(format!("[{start}, {end}) along the axis {axis} is empty"));
        }
        if let (Layout::Stacked(parts, groups), 0) = (x.layout, axis) {
            let (each, flat) = (x.extents[0] / parts, Layout::Sequence);
            let x = Value {
                layout: flat,
                ..x.clone()
            };
            let part = self.part(&x, 2, [start * each, end * each])?;
            let layout = Layout::Stacked(end - start, groups);
            return Ok(Value { layout, ..part });
        }
        let side = side(x, axis)?;
        let mut extents = x.extents;
        extents[side] = end - start;
        if side != CHANNELS {
            return Ok(self.moved(&[x], Move::Slice(side, start), extents, x.layout));
        }
        let (mut pieces, mut at) = (Vec::new(), 0);
        for piece in &x.pieces {
            let size = piece.channels[1] - piece.channels[0];
            let (low, high) = (start.max(at), end.min(at + size));
            if low < high {
                let channels = [piece.channels[0] + low - at, piece.channels[0] + high - at];
                pieces.push(Piece {
                    channels,
                    ..piece.clone()
                });
            }
            at += size;
        }
        Ok(Value {
            pieces,
            extents,
            layout: x.layout,
            quantisation: x.quantisation,
            stored_as: x.stored_as,
            name: None,
        })
    }

    /// Nearest neighbours, where every row and column becomes so many.
    pub(super) fn resize(
        &mut self,
        kind: &str,
        attributes: &Attributes<'_>,
        inputs: &[Option<Known>],
    ) -> Outcome {
        let x = Self::value(inputs, 0)?.clone();
        let mode = attributes.text("mode").unwrap_or("nearest");
        if mode != "nearest" || x.layout != Layout::Map {
            return Err(format!(
                "of {:?} by `{mode}` it is not supported; only of maps by `nearest`",
                x.dims()
            ));
        }
        let policy = attributes.text("keep_aspect_ratio_policy");
        if let Some(policy) = policy.filter(|policy| *policy != "stretch") {
            return Err(format!("the policy `{policy}` is not supported"));
        }
        // Of the inputs that are not there, some are empty constants.
        let given = |at: usize| -> Result<Option<Vec<f64>>, String> {
            let constant = match inputs.get(at) {
                Some(Some(_)) => Self::constant(inputs, at)?,
                _ => None,
            };
            let numbers = constant
                .map(|(constant, _)| constant.numbers())
                .transpose()?;
            Ok(numbers
                .filter(|all| !all.is_empty())
                .map(|all| all.to_vec()))
        };
        let old = kind == "Upsample" || self.version < 11;
        let scales = match given(if old { 1 } else { 2 })? {
            Some(scales) => scales,
            None if old => return Err("its scales are missing".to_owned()),
            None => {
                let sizes = given(3)?.ok_or("it has neither scales nor sizes")?;
                let from = x.shape(self.batch);
                let ratio = |(size, from): (&f64, i64)| size / from as f64;
                sizes.iter().zip(from).map(ratio).collect()
            }
        };
        let whole = |scale: &f64| scale.fract() == 0.0 && (1.0..4096.0).contains(scale);
        let [1.0, 1.0, rows, columns] = scales[..] else {
            return Err(format!("scales of {scales:?} are not supported"));
        };
        if !scales.iter().all(whole) {
            return Err(format!(
                "scales of {scales:?} are not supported; only whole numbers"
            ));
        }
        let times = [rows as i64, columns as i64];
        let how = (
            attributes.text("coordinate_transformation_mode"),
            attributes.text("nearest_mode"),
        );
        if let Some(way) = times.into_iter().find_map(|times| other(how, times, old)) {
            return Err(way);
        }
        let [c, h, w] = x.extents;
        let extents = [c, h * times[0], w * times[1]];
        if extents == x.extents {
            return Ok(Known::Value(x));
        }
        if product(&extents) >= 1 << 31 {
            return Err(format!("{extents:?} elements"));
        }
        Ok(Known::Value(self.moved(
            &[&x],
            Move::Repeat(times),
            extents,
            Layout::Map,
        )))
    }
}

/// What is said of how neighbours are found, if by that every element is not simply repeated so many times.
fn other(how: (Option<&str>, Option<&str>), times: i64, old: bool) -> Option<String> {
    let (coordinates, nearest) = match how {
        _ if old => ("asymmetric", "floor"),
        (coordinates, nearest) => (
            coordinates.unwrap_or("half_pixel"),
            nearest.unwrap_or("round_prefer_floor"),
        ),
    };
    // Where an element of the result lies among those it is made of, in the middle of a long line.
    let repeats = (0..times).all(|i| {
        let at = match coordinates {
            "asymmetric" => i as f64 / times as f64,
            "half_pixel" | "pytorch_half_pixel" | "half_pixel_symmetric" => {
                (i as f64 + 0.5) / times as f64 - 0.5
            }
            _ => f64::NAN,
        };
        let from = match nearest {
            "floor" => at.floor(),
            "ceil" => at.ceil(),
            "round_prefer_ceil" => (at + 0.5).floor(),
            _ => (at - 0.5).ceil(),
        };
        from == 0.0
    });
    (!repeats && times > 1).then(|| {
        format!("neighbours by `{coordinates}` and `{nearest}` are not supported where each element becomes {times}")
    })
}

/// A constant of one image: its own, or the one that all have in common.
fn one_image(constant: &Constant, batch: i64) -> Option<Constant> {
    let (images, rest) = constant.shape.split_first()?;
    let shape = [&[1], rest].concat();
    let data = match &constant.data {
        Data::There(numbers) if *images > 1 && *images == batch => {
            let each = numbers.len() / *images as usize;
            let (first, others) = numbers.split_at(each);
            let same = others.chunks(each.max(1)).all(|image| image == first);
            Data::There(Rc::new(same.then(|| first.to_vec())?))
        }
        data if *images == 1 || *images == batch => data.clone(),
        _ => return None,
    };
    Some(Constant {
        shape,
        data,
        ..constant.clone()
    })
}
