//! Nodes that change nothing but the view of a tensor, or exchange its axes.

use super::attributes::Attributes;
use super::fold::product;
use super::graph::Reader;
use super::proto::Node;
use super::value::{Known, Outcome, Stored, Value};
use crate::front::Layout;

impl<'g> Reader<'g> {
    pub(super) fn view(
        &mut self,
        node: &'g Node,
        kind: &str,
        attributes: &Attributes<'_>,
        inputs: &[Option<Known>],
    ) -> Outcome {
        match kind {
            "Constant" => {
                let listed = ["value_ints", "value_int", "value_floats", "value_float"];
                let constant = match attributes.tensor("value")? {
                    Some(constant) => Some(constant),
                    None => listed.iter().find_map(|name| attributes.listed(name)),
                };
                let constant = constant.ok_or("it has neither a tensor nor numbers")?;
                Ok(Known::Constant(constant, None))
            }
            "Cast" if !matches!(attributes.int("to"), Some(1 | 10 | 11 | 16)) => Err(format!(
                "to ONNX type {} it is not supported",
                attributes.int("to").unwrap_or(0)
            )),
            "Identity" | "Dropout" | "Cast" => inputs
                .first()
                .cloned()
                .flatten()
                .ok_or_else(|| "its input is missing".to_owned()),
            "Flatten" => {
                let x = Self::value(inputs, 0)?.clone();
                let flat = [Layout::Map, Layout::Line, Layout::Vector].contains(&x.layout);
                if attributes.int("axis").unwrap_or(1) != 1 || !flat {
                    return Err(format!(
                        "{:?} along another axis than 1 is not supported",
                        x.dims()
                    ));
                }
                Ok(Known::Value(Value {
                    layout: Layout::Vector,
                    ..x
                }))
            }
            "Reshape" => {
                let x = Self::value(inputs, 0)?.clone();
                let (shape, _) = Self::constant(inputs, 1)?.ok_or("its shape is missing")?;
                let shape = Self::whole(shape)?;
                self.reshape(x, &shape)
            }
            "Squeeze" | "Unsqueeze" => {
                let x = Self::value(inputs, 0)?.clone();
                let mut axes = attributes.ints("axes").unwrap_or_default().to_vec();
                if let Some((constant, _)) = Self::constant(inputs, 1)? {
                    axes = Self::whole(constant)?;
                }
                squeeze(x, kind == "Squeeze", &axes)
            }
            "Concat" => self.concat(attributes, inputs),
            "Slice" => self.slice(attributes, inputs),
            "Split" => self.split(node, attributes, inputs),
            "Gather" => self.gather(attributes, inputs),
            "Resize" | "Upsample" => self.resize(kind, attributes, inputs),
            "Transpose" => {
                let output = node.output.first().map_or("", String::as_str);
                self.transpose(output, attributes, inputs)
            }
            _ => Err("the operation is not supported".to_owned()),
        }
    }

    fn reshape(&mut self, x: Value, shape: &[i64]) -> Outcome {
        let dims = x.dims();
        let all = product(&dims);
        let whole = |d: usize| {
            if d == 0 {
                self.batch
            } else {
                dims.get(d - 1).copied().unwrap_or(1)
            }
        };
        let Some((first, rest)) = shape.split_first() else {
            return Err("a shape of no dimensions".to_owned());
        };
        let mut rest: Vec<i64> = rest
            .iter()
            .zip(1..)
            .map(|(extent, d)| if *extent == 0 { whole(d) } else { *extent })
            .collect();
        let known = rest.iter().filter(|extent| **extent > 0);
        let known = known.fold(1, |all: i64, extent| all.saturating_mul(*extent));
        for extent in rest.iter_mut().filter(|extent| **extent == -1) {
            *extent = if known > 0 { all / known } else { 0 };
        }
        let keeps_batch = matches!(*first, -1..=1) || *first == self.batch;
        if !keeps_batch || rest.iter().any(|extent| *extent < 1) || product(&rest) != all {
            return Err(format!(
                "{dims:?} of each image as {shape:?} is not supported"
            ));
        }
        let [c, h, w] = x.extents;
        let layout = match (x.layout, rest.as_slice()) {
            (_, same) if same == dims => x.layout,
            (Layout::Sequence, [l, g, _]) if *l == h && c % g == 0 => Layout::Split(*g),
            (Layout::Sequence, [l, p, g, _]) if *l == h && c % (p * g) == 0 => {
                Layout::Parts(*p, *g)
            }
            (Layout::Split(_), [l, d]) if *l == h && *d == c => Layout::Sequence,
            (Layout::Map | Layout::Line, [_]) => Layout::Vector,
            (Layout::Vector, [a, b, d]) if [*a, *b, *d] == [c, h, w] => Layout::Map,
            // Channels stay, rows and columns are counted on.
            (Layout::Map | Layout::Line, [k, l]) if *k == c && *l == h * w => {
                return Ok(Known::Value(self.reshaped(&x, [c, h * w, 1], Layout::Line)));
            }
            (Layout::Map | Layout::Line, [k, a, b]) if *k == c && a * b == h * w => {
                return Ok(Known::Value(self.reshaped(&x, [c, *a, *b], Layout::Map)));
            }
            // A sequence of one is a vector, and so is one whose features stand together.
            (Layout::Sequence, [_]) if h == 1 => Layout::Vector,
            (Layout::Vector, [1, _]) if h * w == 1 => Layout::Sequence,
            (Layout::Sequence, [_]) => {
                return Ok(Known::Value(self.exchange(&x, Layout::Vector)));
            }
            _ => {
                return Err(format!(
                    "{dims:?} of each image as {rest:?} is not supported"
                ));
            }
        };
        Ok(Known::Value(Value { layout, ..x }))
    }

    fn transpose(
        &mut self,
        output: &str,
        attributes: &Attributes<'_>,
        inputs: &[Option<Known>],
    ) -> Outcome {
        let x = Self::value(inputs, 0)?.clone();
        let order = attributes.ints("perm").unwrap_or_default();
        let layout = match (x.layout, order) {
            // Positions that follow each other are rows, wherever channels stand.
            (Layout::Line, [0, 2, 1]) => Layout::Sequence,
            (Layout::Sequence, [0, 2, 1]) if self.is_line(output) => Layout::Line,
            (Layout::Split(groups), [0, 2, 1, 3]) => Layout::Heads(groups),
            (Layout::Heads(groups), [0, 2, 1, 3]) => Layout::Split(groups),
            (Layout::Parts(parts, groups), [2, 0, 3, 1, 4]) => Layout::Stacked(parts, groups),
            (_, order)
                if order.iter().zip(0..).all(|(from, to)| *from == to) && !order.is_empty() =>
            {
                x.layout
            }
            (Layout::Sequence, [0, 2, 1]) => {
                return Ok(Known::Value(self.exchange(&x, Layout::Sequence)));
            }
            (Layout::Split(groups), [0, 2, 3, 1]) | (Layout::Heads(groups), [0, 1, 3, 2]) => {
                return self.exchange_heads(&x, groups);
            }
            _ => return Err(format!("{order:?} of {:?} is not supported", x.dims())),
        };
        Ok(Known::Value(Value { layout, ..x }))
    }

    /// The last two axes of each head exchanged: a layer for each of them.
    fn exchange_heads(&mut self, x: &Value, groups: i64) -> Outcome {
        let [c, h, w] = x.extents;
        let x = Value {
            layout: Layout::Sequence,
            ..x.clone()
        };
        let (each, name) = (c / groups, self.name.clone());
        let mut pieces = Vec::new();
        for group in 0..groups {
            let head = self.part(&x, 2, [group * each, (group + 1) * each])?;
            self.name = format!("{name}_head{group}");
            pieces.extend(self.exchange(&head, Layout::Sequence).pieces);
        }
        self.name = name;
        Ok(Known::Value(Value {
            pieces,
            extents: [groups * h, each, w],
            layout: Layout::Heads(groups),
            quantisation: None,
            stored_as: Stored::Signed,
            name: None,
        }))
    }
}

pub(super) fn squeeze(x: Value, away: bool, axes: &[i64]) -> Outcome {
    let dims = x.dims();
    let layout = match (x.layout, away, axes) {
        (Layout::Map, true, [] | [2, 3] | [-2, -1]) if dims[1..] == [1, 1] => Layout::Vector,
        (Layout::Vector, false, [2, 3] | [-2, -1]) if x.extents[1] * x.extents[2] == 1 => {
            Layout::Map
        }
        (Layout::Map, true, [3 | -1]) if dims[2] == 1 => Layout::Line,
        (Layout::Line, false, [3 | -1]) => Layout::Map,
        (Layout::Line, true, [2 | -1]) if dims[1] == 1 => Layout::Vector,
        (Layout::Vector, false, [2 | -1]) if x.extents[1] * x.extents[2] == 1 => Layout::Line,
        (Layout::Sequence, true, [1]) if dims[0] == 1 => Layout::Vector,
        (Layout::Stacked(1, groups), true, [0]) => Layout::Heads(groups),
        (Layout::Vector, false, [1]) if x.extents[1] * x.extents[2] == 1 => Layout::Sequence,
        _ => return Err(format!("{dims:?} along {axes:?} is not supported")),
    };
    Ok(Known::Value(Value { layout, ..x }))
}
