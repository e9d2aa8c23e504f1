//! Operations that only move elements.

use super::numeric::{larger, stored};
use super::{At, times};
use crate::fqir::plan::Error;
use crate::fqir::tensor::{Element, Move, Shape, Tensor};
use crate::kernels::Action;

fn moved(from: crate::fqir::tensor::Region, to: crate::fqir::tensor::Region) -> Action {
    Action::Move(Move { from, to })
}

impl At<'_, '_, '_> {
    pub(super) fn copy(&mut self, name: &str) -> Result<Action, Error> {
        let x = self.any_input("x")?;
        if name == "copy" {
            let out = self.output_like(0, &x, &x.shape)?;
            return Ok(moved(x.region(), out.region()));
        }
        // `y` names what the value goes to; what it held does not matter.
        let Some(target) = self.node.inputs.get("y") else {
            return Err(self.wrong_shape("expected an input `y` of assign, found none"));
        };
        let out = self.lowering.define(
            self.node,
            target,
            &x.shape,
            stored(&x),
            x.element == Element::F64,
        )?;
        Ok(moved(x.region(), out.region()))
    }

    fn output_like(&mut self, index: usize, like: &Tensor, shape: &[u64]) -> Result<Tensor, Error> {
        if like.element == Element::F64 {
            return self.unsupported(&format!("{} of reals is not supported", self.name()));
        }
        self.output(index, shape, stored(like))
    }

    pub(super) fn rearrange(&mut self, name: &str) -> Result<Action, Error> {
        let x = self.input("x")?;
        self.only_outputs(1)?;
        match name {
            "reshape" => {
                let wanted = self.integers("shape")?;
                let shape = self.reshaped(&x, &wanted)?;
                let out = self.output_like(0, &x, &shape)?;
                Ok(moved(x.region(), out.region()))
            }
            "squeeze" => {
                let mut shape = x.shape.clone();
                if matches!(
                    self.node.constants.get("dim"),
                    None | Some(serde_json::Value::Null)
                ) {
                    shape.retain(|n| *n != 1);
                } else {
                    let d = self.dimension("dim", self.integer("dim")?, shape.len())?;
                    if shape[d] == 1 {
                        shape.remove(d);
                    }
                }
                let out = self.output_like(0, &x, &shape)?;
                Ok(moved(x.region(), out.region()))
            }
            _ if x.shape.len() < 2 => {
                let out = self.output_like(0, &x, &x.shape)?;
                Ok(moved(x.region(), out.region()))
            }
            _ => {
                let (first, second) = (self.integer("dim0")?, self.integer("dim1")?);
                let first = self.dimension("dim0", first, x.shape.len())?;
                let second = self.dimension("dim1", second, x.shape.len())?;
                if x.shape.len() != 2 || first == second {
                    let message = format!(
                        "expected a matrix and its two dimensions in transpose, found {} and {first}, {second}",
                        times(&x.shape)
                    );
                    return Err(self.wrong_shape(message));
                }
                let out = self.output_like(0, &x, &[x.shape[1], x.shape[0]])?;
                let mut from = x.strided();
                from.loops.swap(0, 1);
                Ok(moved(from, out.region()))
            }
        }
    }

    /// A shape of as many elements; one length may be -1 for what is left.
    fn reshaped(&self, x: &Tensor, wanted: &[i64]) -> Result<Shape, Error> {
        let known: Option<u64> = wanted
            .iter()
            .filter(|n| **n != -1)
            .try_fold(1u64, |n, d| n.checked_mul(u64::try_from(*d).ok()?));
        let open = wanted.iter().filter(|n| **n == -1).count();
        let rest = match (known, open) {
            (Some(known), 0) if known == x.count() => Some(1),
            (Some(known), 1) if known > 0 && x.count().is_multiple_of(known) => {
                Some(x.count() / known)
            }
            _ => None,
        };
        let Some(rest) = rest else {
            return Err(self.wrong_shape(format!(
                "expected a shape of {} elements for {}, found {wanted:?}",
                x.count(),
                times(&x.shape)
            )));
        };
        let lengths: Vec<u64> = wanted
            .iter()
            .map(|n| if *n == -1 { rest } else { *n as u64 })
            .collect();
        self.lowering
            .shape(&lengths)
            .map_err(|(rule, m)| crate::fqir::plan::at_node(rule, self.node, m))
    }

    pub(super) fn divide(&mut self, name: &str) -> Result<Vec<Action>, Error> {
        let x = self.input("x")?;
        let (dimension, lengths) = if name == "chunk" {
            let d = self.dimension("dim", self.integer("dim")?, x.shape.len())?;
            let chunks = self.count("chunks", 1)?;
            if chunks > self.node.outputs.len() as u64 {
                let message = format!(
                    "expected an output for each of {chunks} chunks, found {}",
                    self.node.outputs.len()
                );
                return Err(self.wrong_shape(message));
            }
            // The first ones are longer by one where it does not divide.
            let (each, longer) = (x.shape[d] / chunks, x.shape[d] % chunks);
            (
                d,
                (0..chunks)
                    .map(|n| each + u64::from(n < longer))
                    .collect::<Vec<u64>>(),
            )
        } else {
            // Always the first dimension, whatever `dim` says.
            let lengths = self.integers("lengths")?;
            let lengths: Option<Vec<u64>> =
                lengths.iter().map(|n| u64::try_from(*n).ok()).collect();
            let sum = lengths
                .as_ref()
                .and_then(|all| all.iter().try_fold(0u64, |sum, n| sum.checked_add(*n)));
            let length = x.shape.first().copied().unwrap_or(0);
            match (lengths, sum) {
                (Some(lengths), Some(sum)) if sum <= length && !x.shape.is_empty() => (0, lengths),
                _ => {
                    return Err(self.wrong_shape(format!(
                        "expected lengths of at most {length} together in split of {}",
                        times(&x.shape)
                    )));
                }
            }
        };
        self.only_outputs(lengths.len())?;
        let mut from = 0;
        let mut actions = Vec::new();
        for (index, length) in lengths
            .into_iter()
            .enumerate()
            .take(self.node.outputs.len())
        {
            let mut shape = x.shape.clone();
            shape[dimension] = length;
            let out = self.output_like(index, &x, &shape)?;
            actions.push(moved(x.slice(dimension, from, length), out.region()));
            from += length;
        }
        Ok(actions)
    }

    pub(super) fn join(&mut self, name: &str) -> Result<Vec<Action>, Error> {
        let parts = self.numbered("x")?;
        let Some(first) = parts.first().cloned() else {
            return Err(
                self.wrong_shape(format!("expected inputs x0, x1, … of {name}, found none"))
            );
        };
        let bits = parts.iter().map(stored).fold((0, 0), larger);
        let stacked = name == "stack";
        let dimensions = first.shape.len() + usize::from(stacked);
        let d = self.dimension("dim", self.integer("dim")?, dimensions)?;
        let without = |t: &Tensor| {
            t.shape
                .iter()
                .enumerate()
                .filter(|(at, _)| stacked || *at != d)
                .map(|(_, n)| *n)
                .collect::<Shape>()
        };
        if let Some(other) = parts
            .iter()
            .find(|t| t.shape.len() != first.shape.len() || without(t) != without(&first))
        {
            return Err(self.wrong_shape(format!(
                "expected equal shapes in {name}, found {} and {}",
                times(&first.shape),
                times(&other.shape)
            )));
        }
        let mut shape = first.shape.clone();
        if stacked {
            shape.insert(d, parts.len() as u64);
        } else {
            shape[d] = parts.iter().map(|t| t.shape[d]).sum();
        }
        let shape = self
            .lowering
            .shape(&shape)
            .map_err(|(rule, m)| crate::fqir::plan::at_node(rule, self.node, m))?;
        self.only_outputs(1)?;
        let out = self.output(0, &shape, bits)?;
        let mut at = 0;
        let mut actions = Vec::new();
        for part in &parts {
            let length = if stacked { 1 } else { part.shape[d] };
            actions.push(moved(part.region(), out.slice(d, at, length)));
            at += length;
        }
        Ok(actions)
    }

    pub(super) fn unfold(&mut self) -> Result<Vec<Action>, Error> {
        let (x, buffer) = (self.input("x")?, self.input("buffer")?);
        let (frame, dilation) = (x.count(), self.count("dilation", 1)?);
        if x.shape.len() != 1
            || buffer.shape.len() != 1
            || frame == 0
            || !buffer.count().is_multiple_of(frame)
        {
            let message = format!(
                "expected a buffer of whole frames of {}, found {}",
                times(&x.shape),
                times(&buffer.shape)
            );
            return Err(self.wrong_shape(message));
        }
        let before = buffer.count() / frame;
        let taken: Vec<u64> = (0..=before).step_by(dilation as usize).collect();
        let bits = larger(stored(&x), stored(&buffer));
        self.only_outputs(1)?;
        let out = self.output(0, &[taken.len() as u64 * frame], bits)?;
        let buffer = self.state("buffer", &buffer, &x)?;
        let frame_of = |number: u64| {
            if number < before {
                buffer.slice(0, number * frame, frame)
            } else {
                x.region()
            }
        };
        let mut actions: Vec<Action> = taken
            .iter()
            .enumerate()
            .map(|(at, number)| moved(frame_of(*number), out.slice(0, at as u64 * frame, frame)))
            .collect();
        if before > 0 {
            // The oldest frame goes, the new one is the last.
            actions.push(moved(
                buffer.slice(0, frame, (before - 1) * frame),
                buffer.slice(0, 0, (before - 1) * frame),
            ));
            actions.push(moved(
                x.region(),
                buffer.slice(0, (before - 1) * frame, frame),
            ));
        }
        Ok(actions)
    }
}
