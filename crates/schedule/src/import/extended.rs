//! Operations of ONNX Runtime's own (`com.microsoft`), as its optimiser and its quantiser write them.

use super::Reader;
use super::array::{Array, types};
use super::node::Node;
use super::value::Value;

impl Reader<'_> {
    /// Real numbers of what is stored with a scale and a zero for all, or for each of the last axis.
    fn restored(
        &mut self,
        value: &Value,
        scale: &Value,
        zero: Option<&Value>,
    ) -> Result<Value, String> {
        let value = self.cast(value, types::FLOAT)?;
        let centred = match zero {
            Some(zero) => {
                let zero = self.cast(zero, types::FLOAT)?;
                self.binary("Sub", &value, &zero)?
            }
            None => value,
        };
        self.binary("Mul", &centred, scale)
    }

    /// A product with a stored matrix, with real results.
    pub(super) fn product_of_stored(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let of = |at: usize| node.optional(at).cloned();
        let (a, b) = (node.input(0)?.clone(), node.input(1)?.clone());
        let (product, bias) = if node.kind == "DynamicQuantizeMatMul" {
            let b = self.restored(&b, node.input(2)?, of(3).as_ref())?;
            (self.product(&a, &b)?, of(4))
        } else {
            let a = self.restored(&a, node.input(2)?, of(4).as_ref())?;
            let b = self.restored(&b, node.input(3)?, of(5).as_ref())?;
            (self.product(&a, &b)?, of(6))
        };
        match bias {
            Some(bias) => self.binary("Add", &product, &bias),
            None => Ok(product),
        }
    }

    pub(super) fn fused_product(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let turned = |value: &Value, name: &str| {
            let rank = value.shape().len();
            if node.int(name, 0) == 0 || rank < 2 {
                return Ok(value.clone());
            }
            let mut order: Vec<usize> = (0..rank).collect();
            order.swap(rank - 2, rank - 1);
            value.transposed(&order)
        };
        if node.int("transBatchA", 0) != 0 || node.int("transBatchB", 0) != 0 {
            return Err("transposed batches are not supported".to_owned());
        }
        let a = turned(node.input(0)?, "transA")?;
        let b = turned(node.input(1)?, "transB")?;
        let product = self.product(&a, &b)?;
        let alpha = Array::scalar(types::FLOAT, node.float("alpha", 1.0));
        self.binary("Mul", &product, &Value::Array(alpha))
    }

    /// A sum, and its layer norm.
    pub(super) fn skip_layer_norm(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let (x, skip) = (node.input(0)?.clone(), node.input(1)?.clone());
        let mut sum = self.binary("Add", &x, &skip)?;
        if let Some(bias) = node.optional(4).cloned() {
            sum = self.binary("Add", &sum, &bias)?;
        }
        let inner = Node {
            kind: "LayerNormalization",
            attributes: node.attributes,
            inputs: vec![
                Some(sum),
                node.optional(2).cloned(),
                node.optional(3).cloned(),
            ],
            outputs: Vec::new(),
        };
        self.layer_norm(&inner)
    }

    /// An LSTM whose weights are stored integers, inputs first.
    pub(super) fn quantised_lstm(&mut self, node: &Node<'_>) -> Result<Vec<Value>, String> {
        let of = |at: usize| node.optional(at).cloned();
        let mut weights = Vec::new();
        for (at, scale, zero) in [(1, 8, 9), (2, 10, 11)] {
            let value = node.input(at)?.clone();
            let count = value.shape()[0];
            let beside = |reader: &mut Self, value: Option<Value>| match value {
                Some(value) => {
                    let each = value.shape().iter().product::<i64>() / count;
                    reader.reshaped(&value, &[count, 1, each]).map(Some)
                }
                None => Ok(None),
            };
            let zero = beside(self, of(zero))?;
            let scale = beside(self, of(scale))?.ok_or("a scale is missing")?;
            let real = self.restored(&value, &scale, zero.as_ref())?;
            weights.push(real.transposed(&[0, 2, 1])?);
        }
        let recurrence = weights.pop();
        let inner = Node {
            kind: "LSTM",
            attributes: node.attributes,
            inputs: vec![
                of(0),
                weights.pop(),
                recurrence,
                of(3),
                of(4),
                of(5),
                of(6),
                of(7),
            ],
            outputs: node.outputs.clone(),
        };
        self.recurrent(&inner)
    }
}
