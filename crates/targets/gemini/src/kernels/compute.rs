//! A tile as a kernel: what it touches, and its effect.

use super::arithmetic;
use super::tile::{Input, Tile};
use crate::operation::{Kind, Operation};
use crate::schedule::Bounds;
use chipless_model::{Access, Direction, ElementType, Fault, Kernel, Storage};
use std::borrow::Cow;
use std::fmt::Write;

impl Kernel for Tile {
    /// The unit, as the schedule says: a task is called the same with and without a network.
    fn operation(&self) -> Cow<'static, str> {
        self.unit.into()
    }

    /// The label is the layer.
    fn layer<'l>(&self, label: &'l str) -> Option<&'l str> {
        Some(label)
    }

    fn details(&self) -> String {
        let mut text = match self.meaning.as_deref() {
            Some(Ok(operation)) => format!("{}, output {}", operation.name, self.bounds),
            _ => format!("output {}", self.bounds),
        };
        for input in &self.inputs {
            let _ = write!(text, ", input {}", input.bounds);
        }
        text
    }

    fn arithmetic(&self) -> u64 {
        let outputs = self.bounds.elements();
        let Some(weights) = &self.weights else {
            return outputs;
        };
        let each = if self.products > 0 {
            self.products
        } else {
            // Every output takes the weights of one channel, a byte each.
            let [_, channels, ..] = self.bounds.shape();
            let runs = weights.count.iter().map(|n| u64::from(*n)).product::<u64>();
            runs.saturating_mul(weights.run) / channels.max(1)
        };
        outputs.saturating_mul(2).saturating_mul(each)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.inputs
            .iter()
            .for_each(|input| input.region.read(visit));
        self.weights.iter().for_each(|weights| weights.read(visit));
        self.outputs
            .iter()
            .for_each(|output| output.region.write(visit));
    }

    fn tensor(&self, access: &Access) -> Option<(ElementType, Vec<u64>)> {
        let Some(Ok(operation)) = self.meaning.as_deref() else {
            return None;
        };
        let element = match access.direction {
            Direction::Write => operation.output,
            Direction::Read => {
                let is_meant = |input: &&Input| {
                    let mut found = false;
                    let mut look = |own: Access| found = found || own == *access;
                    input.region.read(&mut look);
                    found
                };
                let Some(input) = self.inputs.iter().find(is_meant) else {
                    return self.weights_of(operation);
                };
                operation.operands.get(usize::from(input.operand))?.element
            }
        };
        Some((element, Vec::new()))
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let operation = match self.meaning.as_deref() {
            Some(Ok(operation)) => operation,
            Some(Err(why)) => return Err(Fault::unsupported(why.clone())),
            None => {
                return Err(Fault::unsupported(
                    "a schedule does not say what its layers compute. Pass `--network net.json` (the front-end file) to compute values",
                ));
            }
        };
        let result = arithmetic::compute(self, operation, storage)?;
        let element = (operation.output.bits() / 8) as usize;
        for output in &self.outputs {
            let bytes = cut(&result, &self.bounds, &output.bounds, element);
            output.region.scatter_runs(
                &bytes,
                output.bounds.shape()[1] * element as u64,
                storage,
            )?;
        }
        Ok(())
    }
}

/// The part `of` a box whose elements lie in the order N, H, W, C.
fn cut(bytes: &[u8], whole: &Bounds, of: &Bounds, element: usize) -> Vec<u8> {
    if whole == of {
        return bytes.to_vec();
    }
    let [_, c, h, w] = whole.shape().map(|extent| extent as usize);
    let from: [usize; 4] = std::array::from_fn(|d| (of.lower[d] - whole.lower[d]) as usize);
    let [images, channels, rows, columns] = of.shape().map(|extent| extent as usize);
    let mut part = Vec::with_capacity(images * channels * rows * columns * element);
    for n in from[0]..from[0] + images {
        for y in from[2]..from[2] + rows {
            for x in from[3]..from[3] + columns {
                let start = (((n * h + y) * w + x) * c + from[1]) * element;
                part.extend_from_slice(&bytes[start..start + channels * element]);
            }
        }
    }
    part
}

impl Tile {
    /// The type of its weights, where no biases and factors lie among them.
    fn weights_of(&self, operation: &Operation) -> Option<(ElementType, Vec<u64>)> {
        match operation.kind {
            Kind::Convolution { weight, .. } if self.parameters.is_some() => {
                Some((weight, Vec::new()))
            }
            _ => None,
        }
    }
}
