//! Nodes under observation, and how far their results are from exact ones.

use super::watch::Watch;
use super::{Action, Elementwise, Function, Matrix, each_element};
use crate::fqir::tensor::{BLOCK, Tensor, load_all};
use chipless_model::{Fault, Storage};

/// The actions of a node under observation.
#[derive(Debug)]
pub(crate) struct Watched {
    /// Its number among those observed.
    pub(crate) node: usize,
    pub(crate) actions: Vec<Action>,
    /// Where the exact result of its first action can be told.
    pub(crate) scales: Option<Scales>,
}

/// Logarithms of the scales of a node's operands, less that of its output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scales {
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) bias: i32,
    /// Of the output itself: products carry the scales of both factors.
    pub(crate) out: i32,
}

impl Watched {
    pub(super) fn execute<W: Watch>(
        &self,
        storage: &mut Storage<'_>,
        watch: &mut W,
    ) -> Result<(), Fault> {
        watch.enter(self.node);
        let (first, rest) = self.actions.split_at(self.actions.len().min(1));
        super::run(first, storage, watch)?;
        // Results that replace an operand lie aside until the rest has run.
        if let (Some(scales), Some(action)) = (self.scales, first.first()) {
            scales.distances(action, storage, &mut |steps| {
                watch.distance(self.node, steps);
            });
        }
        super::run(rest, storage, watch)
    }
}

impl Scales {
    /// How far each element of an action's output is from the exact result of its operands.
    fn distances(self, action: &Action, storage: &Storage<'_>, told: &mut dyn FnMut(f64)) {
        match action {
            Action::Elementwise(elementwise) => self.elementwise(elementwise, storage, told),
            Action::Matrix(matrix) => self.matrix(matrix, storage, told),
            Action::Sum {
                outer, inner, out, ..
            } => {
                let results = load_all(storage, out);
                let all = storage.bytes(inner.buffer);
                let mut number = 0;
                each_element(outer, |start| {
                    let mut sum = 0i128;
                    each_element(&inner.shifted(start), |at| {
                        sum += i128::from(crate::fqir::tensor::at(all, inner.element, at as usize));
                    });
                    told((sum as f64 * power(self.x - self.out) - results[number] as f64).abs());
                    number += 1;
                });
            }
            _ => {}
        }
    }

    fn elementwise(self, of: &Elementwise, storage: &Storage<'_>, told: &mut dyn FnMut(f64)) {
        let results = load_all(storage, &of.out);
        let (mut x, mut y) = ([0; BLOCK], [0; BLOCK]);
        for (block, results) in results.chunks(BLOCK).enumerate() {
            let (x, y) = (&mut x[..results.len()], &mut y[..results.len()]);
            of.x.take(storage, block * BLOCK, x);
            of.y.take(storage, block * BLOCK, y);
            for ((x, y), result) in x.iter().zip(&*y).zip(results) {
                let (scaled_x, scaled_y) = (
                    *x as f64 * power(self.x - self.out),
                    *y as f64 * power(self.y - self.out),
                );
                let exact = match of.function {
                    Function::Add {
                        subtract: false, ..
                    } => scaled_x + scaled_y,
                    Function::Add { subtract: true, .. } => scaled_x - scaled_y,
                    Function::Multiply { .. } => {
                        (i128::from(*x) * i128::from(*y)) as f64 * power(self.x + self.y - self.out)
                    }
                    Function::Negate { .. } => -scaled_x,
                    Function::Shift { .. } => scaled_x,
                    _ => return,
                };
                told((exact - *result as f64).abs());
            }
        }
    }

    fn matrix(self, of: &Matrix, storage: &Storage<'_>, told: &mut dyn FnMut(f64)) {
        let [x, y, results] =
            [&of.x, &of.y, &of.out].map(|tensor: &Tensor| load_all(storage, tensor));
        let bias = of
            .bias
            .as_ref()
            .map(|bias| (bias.strides, load_all(storage, &bias.tensor)));
        for row in 0..of.rows {
            for column in 0..of.columns {
                let sum: i128 = (0..of.inner)
                    .map(|k| {
                        i128::from(x[row * of.inner + k]) * i128::from(y[k * of.columns + column])
                    })
                    .sum();
                let added = bias.as_ref().map_or(0.0, |((down, along), values)| {
                    values[row * down + column * along] as f64 * power(self.bias - self.out)
                });
                let exact = sum as f64 * power(self.x + self.y - self.out) + added;
                told((exact - results[row * of.columns + column] as f64).abs());
            }
        }
    }
}

fn power(of: i32) -> f64 {
    2f64.powi(of)
}
