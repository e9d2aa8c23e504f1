//! Integers that stand for numbers, as quantised networks have them.

use super::Reader;
use super::array::{Array, types};
use super::node::Node;
use super::value::Value;
use crate::front::Source;

/// A step of what stands for numbers that are quantised by what there is.
const STEP: f64 = 1.0 / 64.0;

/// The least and the largest of an integer type.
fn range(kind: i32) -> [f64; 2] {
    match kind {
        types::INT8 => [-128.0, 127.0],
        4 => [0.0, 65_535.0],
        5 => [-32_768.0, 32_767.0],
        _ => [0.0, 255.0],
    }
}

impl Reader<'_> {
    /// A number for each element along an axis, as a shape that goes beside it; a single one as it is.
    fn along(&mut self, value: &Value, axis: usize, rank: usize) -> Result<Value, String> {
        let count = value.shape().iter().product::<i64>();
        if count == 1 {
            return self.reshaped(value, &[]);
        }
        let mut shape = vec![1; rank];
        shape[axis] = count;
        self.reshaped(value, &shape)
    }

    fn scale_and_zero(&mut self, node: &Node<'_>) -> Result<(Value, Option<Value>), String> {
        let rank = node.input(0)?.shape().len();
        if node.int("block_size", 0) != 0 {
            return Err("scales of blocks are not supported".to_owned());
        }
        let axis = node.int("axis", 1);
        let axis = if axis < 0 { axis + rank as i64 } else { axis } as usize;
        let axis = axis.min(rank.saturating_sub(1));
        let scale = node.input(1)?.clone();
        let scale = self.along(&scale, axis, rank)?;
        let zero = match node.optional(2).cloned() {
            Some(zero) => Some(self.along(&zero, axis, rank)?),
            None => None,
        };
        Ok((scale, zero))
    }

    pub(super) fn quantise(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let (scale, zero) = self.scale_and_zero(node)?;
        let kind = match (&zero, node.int("output_dtype", 0)) {
            (Some(zero), _) => zero.kind(),
            (None, 0) => types::UINT8,
            (None, kind) => kind as i32,
        };
        let [least, most] = range(kind);
        let steps = self.binary("Div", &x, &scale)?;
        let mut steps = self.unary("Round", &steps)?;
        if let Some(zero) = zero {
            let zero = self.cast(&zero, types::FLOAT)?;
            steps = self.binary("Add", &steps, &zero)?;
        }
        let inside = self.bounded(&steps, least, most)?;
        self.cast(&inside, kind)
    }

    pub(super) fn dequantise(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let (scale, zero) = self.scale_and_zero(node)?;
        let x = self.cast(&x, types::FLOAT)?;
        let centred = match zero {
            Some(zero) => {
                let zero = self.cast(&zero, types::FLOAT)?;
                self.binary("Sub", &x, &zero)?
            }
            None => x,
        };
        self.binary("Mul", &centred, &scale)
    }

    /// 8-bit integers with a scale and a zero that follow from what there is.
    pub(super) fn quantise_by_range(&mut self, node: &Node<'_>) -> Result<Vec<Value>, String> {
        let x = node.input(0)?.clone();
        let axes: Vec<usize> = (0..x.shape().len()).collect();
        let number = |value: f64| Value::Array(Array::scalar(types::FLOAT, value));
        let readers = node.outputs.first().and_then(|name| self.readers.get(name));
        let multiplies = |kind: &&str| matches!(*kind, "ConvInteger" | "MatMulInteger");
        if readers.is_some_and(|readers| readers.iter().all(multiplies)) {
            // Half precision needs no integers here: it is finer than what 8 bits of any range hold. The steps are small, so that what is
            // rounded to whole ones later, as biases are, loses little.
            let steps = self.binary("Mul", &x, &number(1.0 / STEP))?;
            let zero = Value::Array(Array::scalar(types::UINT8, 0.0));
            return Ok(vec![steps, number(STEP), zero]);
        }
        let most = self.reduced("reduce_max", &x, &axes, false)?;
        let most = self.binary("Max", &most, &number(0.0))?;
        let least = self.reduced("reduce_min", &x, &axes, false)?;
        let least = self.binary("Min", &least, &number(0.0))?;
        let span = self.binary("Sub", &most, &least)?;
        let scale = self.binary("Div", &span, &number(255.0))?;
        let zero = self.binary("Div", &least, &scale)?;
        let zero = self.binary("Sub", &number(0.0), &zero)?;
        let zero = self.unary("Round", &zero)?;
        let zero = self.bounded(&zero, 0.0, 255.0)?;
        let steps = self.binary("Div", &x, &scale)?;
        let steps = self.unary("Round", &steps)?;
        let steps = self.binary("Add", &steps, &zero)?;
        let steps = self.bounded(&steps, 0.0, 255.0)?;
        let (y, zero) = (
            self.cast(&steps, types::UINT8)?,
            self.cast(&zero, types::UINT8)?,
        );
        Ok(vec![y, scale, zero])
    }

    /// Integers less their zero, as real numbers.
    fn centred(
        &mut self,
        value: &Value,
        zero: Option<Value>,
        axis: Option<usize>,
    ) -> Result<Value, String> {
        let rank = value.shape().len();
        let value = self.cast(value, types::FLOAT)?;
        let Some(zero) = zero else {
            return Ok(value);
        };
        let zero = self.cast(&zero, types::FLOAT)?;
        let zero = match axis {
            Some(axis) => self.along(&zero, axis, rank)?,
            None => zero,
        };
        self.binary("Sub", &value, &zero)
    }

    /// Products and convolutions of integers. Their sums go beyond half precision, so they are stored in steps of a power of two.
    pub(super) fn integer_product(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let (a, b) = (node.input(0)?.clone(), node.input(1)?.clone());
        let rank = a.shape().len();
        let rows = |zero: &Value| (zero.shape().len() == 1 && rank >= 2).then(|| rank - 2);
        let (zero_a, zero_b) = (node.optional(2).cloned(), node.optional(3).cloned());
        let axis = zero_a.as_ref().and_then(rows);
        let is_conv = node.kind == "ConvInteger";
        let a = self.centred(&a, zero_a, axis)?;
        let of_b = zero_b
            .as_ref()
            .filter(|zero| is_conv && !zero.shape().is_empty());
        let axis = of_b.map(|_| 0);
        let b = self.centred(&b, zero_b, axis)?;
        let shape = b.shape();
        let summed = if is_conv {
            shape[1..].iter().product()
        } else {
            shape[shape.len().saturating_sub(2)]
        };
        let sums = if is_conv {
            let inner = Node {
                kind: "Conv",
                attributes: node.attributes,
                inputs: vec![Some(a), Some(b)],
                outputs: Vec::new(),
            };
            self.convolution(&inner)?
        } else {
            self.product(&a, &b)?
        };
        let most = summed as f64 * 255.0 * 255.0;
        if let Value::Tensor(tensor) = &sums
            && let Some(layer) = self.builder.open(tensor)
        {
            let exponent = (most / 32_768.0).log2().ceil();
            self.builder.store_in_steps(Source::Layer(layer), exponent);
        }
        Ok(sums)
    }

    /// A product or a convolution of quantised operands, quantised again.
    pub(super) fn quantised_product(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let of = |at: usize| node.input(at).cloned();
        let real = |reader: &mut Self, at: usize, axis: Option<usize>| -> Result<Value, String> {
            let value = of(at)?;
            let rank = value.shape().len();
            let centred = reader.centred(&value, Some(of(at + 2)?), axis)?;
            let scale = of(at + 1)?;
            let scale = match axis {
                Some(axis) => reader.along(&scale, axis, rank)?,
                None => scale,
            };
            reader.binary("Mul", &centred, &scale)
        };
        let x = real(self, 0, None)?;
        let is_conv = node.kind == "QLinearConv";
        let w = real(self, 3, is_conv.then_some(0))?;
        let product = if is_conv {
            let bias = match node.optional(8).cloned() {
                Some(bias) => {
                    let step = self.binary("Mul", &of(1)?, &of(4)?)?;
                    let bias = self.cast(&bias, types::FLOAT)?;
                    Some(self.binary("Mul", &bias, &step)?)
                }
                None => None,
            };
            let inner = Node {
                kind: "Conv",
                attributes: node.attributes,
                inputs: vec![Some(x), Some(w), bias],
                outputs: Vec::new(),
            };
            self.convolution(&inner)?
        } else {
            self.product(&x, &w)?
        };
        let inner = Node {
            kind: "QuantizeLinear",
            attributes: &[],
            inputs: vec![Some(product), Some(of(6)?), Some(of(7)?)],
            outputs: Vec::new(),
        };
        self.quantise(&inner)
    }
}
