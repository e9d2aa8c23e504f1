//! Recurrent layers, step after step.

use super::Reader;
use super::array::{Array, types};
use super::builder::element_of;
use super::node::Node;
use super::value::{Tensor, Value};
use crate::front::Named;
use serde_json::Map;

/// Steps of a layer, at most.
const MOST_STEPS: i64 = 1024;

/// One direction of a layer.
struct Direction {
    /// What the input adds to the gates: T, N, gates.
    given: Value,
    /// Recurrence, gates by state.
    weight: Value,
    /// What is added with the state.
    bias: Value,
    /// What the cells of an LSTM add to the gates: 3 times the state, for the input, output and forget gate.
    peepholes: Option<Value>,
    reverse: bool,
    activations: Vec<String>,
}

impl Reader<'_> {
    pub(super) fn recurrent(&mut self, node: &Node<'_>) -> Result<Vec<Value>, String> {
        let mut x = node.input(0)?.clone();
        let batch_first = node.int("layout", 0) != 0;
        if batch_first {
            x = x.transposed(&[1, 0, 2])?;
        }
        let [steps, images, _] = x.shape()[..] else {
            return Err(format!("of {:?} it is not supported", x.shape()));
        };
        if steps > MOST_STEPS {
            return Err(format!(
                "over {steps} steps; at most {MOST_STEPS} are supported"
            ));
        }
        let (w, r) = (node.input(1)?.clone(), node.input(2)?.clone());
        let (count, size) = (w.shape()[0], r.shape()[2]);
        let gates = w.shape()[1];
        if let Some(lengths) = node.constant(4)?
            && lengths.values.iter().any(|length| *length as i64 != steps)
        {
            return Err("sequences of several lengths are not supported".to_owned());
        }
        if node.attribute("clip").is_some() || node.int("input_forget", 0) != 0 {
            return Err("`clip` and `input_forget` are not supported".to_owned());
        }
        let direction = node.text("direction").unwrap_or("forward");
        let zeros = |shape: &[i64]| {
            let count = shape.iter().product::<i64>() as usize;
            Value::Array(Array::new(shape.to_vec(), types::FLOAT, vec![0.0; count]))
        };
        let per = (node.texts("activations").len() / count as usize).max(1);
        let (mut all, mut last, mut cells) = (Vec::new(), Vec::new(), Vec::new());
        for d in 0..count {
            let bias = match node.optional(3) {
                Some(bias) => bias.at(0, d)?,
                None => zeros(&[2 * gates]),
            };
            let state = |at: usize| -> Result<Value, String> {
                match node.optional(at) {
                    None => Ok(zeros(&[images, size])),
                    Some(value) if batch_first => value.at(1, d),
                    Some(value) => value.at(0, d),
                }
            };
            let given = self.product(&x, &w.at(0, d)?.transposed(&[1, 0])?)?;
            let given = self.binary("Add", &given, &bias.sliced(0, 0, gates, 1)?)?;
            let texts = node.texts("activations");
            let of = Direction {
                given,
                weight: r.at(0, d)?.transposed(&[1, 0])?,
                bias: bias.sliced(0, gates, gates, 1)?,
                peepholes: node.optional(7).map(|all| all.at(0, d)).transpose()?,
                reverse: direction == "reverse" || d == 1,
                activations: texts
                    .iter()
                    .skip(d as usize * per)
                    .take(per)
                    .cloned()
                    .collect(),
            };
            let (h, c) = (
                state(5)?,
                if node.kind == "LSTM" {
                    state(6)?
                } else {
                    zeros(&[1])
                },
            );
            let (outputs, h, c) = self.walked(node, &of, [h, c], [steps, images, size])?;
            all.push(outputs.unsqueezed(1)?);
            last.push(h.unsqueezed(0)?);
            cells.push(c);
        }
        let y = self.joined(&all, 1)?;
        let h = self.joined(&last, 0)?;
        let turned = |value: Value, order: &[usize]| {
            if batch_first {
                value.transposed(order)
            } else {
                Ok(value)
            }
        };
        let mut results = vec![turned(y, &[2, 0, 1, 3])?, turned(h, &[1, 0, 2])?];
        if node.kind == "LSTM" {
            let cells: Vec<Value> = cells
                .iter()
                .map(|c| c.unsqueezed(0))
                .collect::<Result<_, _>>()?;
            let c = self.joined(&cells, 0)?;
            results.push(turned(c, &[1, 0, 2])?);
        }
        Ok(results)
    }

    /// A direction from the first step to the last: results T, N, size, and the last states.
    fn walked(
        &mut self,
        node: &Node<'_>,
        of: &Direction,
        [mut h, mut c]: [Value; 2],
        [steps, images, size]: [i64; 3],
    ) -> Result<(Value, Value, Value), String> {
        let mut outputs = Vec::new();
        let usual = ["Sigmoid", "Tanh", "Tanh"]
            .iter()
            .zip(&of.activations)
            .all(|(a, b)| a == b);
        if node.kind == "LSTM" && usual && of.peepholes.is_none() {
            return self.lstm_by_cells(of, [h, c], [steps, images, size]);
        }
        for step in 0..steps {
            let at = if of.reverse { steps - 1 - step } else { step };
            let given = of.given.at(0, at)?;
            match node.kind {
                "LSTM" => {
                    let state = self.stepped(&h, of)?;
                    (h, c) = self.lstm(&given, &state, &c, of, size)?;
                }
                "GRU" => h = self.gru(node, &given, &h, of, size)?,
                _ => {
                    let state = self.stepped(&h, of)?;
                    let sum = self.binary("Add", &given, &state)?;
                    h = self.activated(&of.activations, 0, "Tanh", &sum)?;
                }
            }
            outputs.push(h.unsqueezed(0)?);
        }
        if of.reverse {
            outputs.reverse();
        }
        Ok((self.joined(&outputs, 0)?, h, c))
    }

    /// The steps of an LSTM as operations of the vector processor, whose state is h and c together: what multiplies the state has zeros
    /// for c.
    fn lstm_by_cells(
        &mut self,
        of: &Direction,
        [h, c]: [Value; 2],
        [steps, images, size]: [i64; 3],
    ) -> Result<(Value, Value, Value), String> {
        let zeros = vec![0.0; usize::try_from(4 * size * size).unwrap_or(0)];
        let zeros = Value::Array(Array::new(vec![size, 4 * size], types::FLOAT, zeros));
        let weight = self.joined(&[of.weight.clone(), zeros], 0)?;
        let mut both = self.joined(&[h, c], 1)?;
        let mut outputs = Vec::new();
        for step in 0..steps {
            let at = if of.reverse { steps - 1 - step } else { step };
            let product = self.product(&both, &weight)?;
            let state = self.binary("Add", &product, &of.bias)?;
            let gates = self.binary("Add", &of.given.at(0, at)?, &state)?;
            both = self.cell(&gates, &both, [images, size])?;
            outputs.push(both.unsqueezed(0)?);
        }
        if of.reverse {
            outputs.reverse();
        }
        let all = self.joined(&outputs, 0)?;
        Ok((
            all.sliced(2, 0, size, 1)?,
            both.sliced(1, 0, size, 1)?,
            both.sliced(1, size, size, 1)?,
        ))
    }

    /// What a state adds to the gates.
    fn stepped(&mut self, h: &Value, of: &Direction) -> Result<Value, String> {
        let product = self.product(h, &of.weight)?;
        self.binary("Add", &product, &of.bias)
    }

    fn activated(
        &mut self,
        given: &[String],
        at: usize,
        usual: &str,
        x: &Value,
    ) -> Result<Value, String> {
        let name = given.get(at).map_or(usual, String::as_str);
        match name {
            "Relu" => self.bounded(x, 0.0, f64::INFINITY),
            "Sigmoid" | "Tanh" | "Softsign" | "Softplus" => self.unary(name, x),
            "Affine" => Ok(x.clone()),
            other => Err(format!("the activation `{other}` is not supported")),
        }
    }

    /// A step of the vector processor, whose operands have their gates as channels.
    fn cell(
        &mut self,
        gates: &Value,
        state: &Value,
        [images, size]: [i64; 2],
    ) -> Result<Value, String> {
        let groups = [vec![1], vec![0], Vec::new()];
        let mut reads = Vec::new();
        for operand in [gates, state] {
            let shape = [images, operand.shape()[1]];
            reads.push(match operand.broadcast_to(&shape)? {
                Value::Tensor(tensor) => self.builder.arranged(&tensor, &groups)?,
                Value::Array(array) => {
                    let dims = array.dims();
                    let turned = array.viewed(&[dims[1], dims[0]], 0)?;
                    self.builder.table(&turned, [shape[1], images, 1])
                }
            });
        }
        let named = Named {
            name: "lstm_cell",
            attributes: Map::new(),
            across: true,
        };
        let element = element_of(types::FLOAT);
        let output = [2 * size, images, 1];
        let made = self.builder.vector(named, output, &reads, element)?;
        let shape = [images, 2 * size];
        Ok(Value::Tensor(Tensor::stored(
            made,
            &shape,
            &groups,
            types::FLOAT,
        )))
    }

    fn lstm(
        &mut self,
        given: &Value,
        state: &Value,
        c: &Value,
        of: &Direction,
        size: i64,
    ) -> Result<(Value, Value), String> {
        let sum = self.binary("Add", given, state)?;
        let gate = |number: i64| sum.sliced(1, number * size, size, 1);
        let (mut i, mut o, mut f, new) = (gate(0)?, gate(1)?, gate(2)?, gate(3)?);
        if let Some(peepholes) = &of.peepholes {
            i = self.with_peephole(&i, c, &peepholes.sliced(0, 0, size, 1)?)?;
            f = self.with_peephole(&f, c, &peepholes.sliced(0, 2 * size, size, 1)?)?;
        }
        let i = self.activated(&of.activations, 0, "Sigmoid", &i)?;
        let f = self.activated(&of.activations, 0, "Sigmoid", &f)?;
        let new = self.activated(&of.activations, 1, "Tanh", &new)?;
        let kept = self.binary("Mul", &f, c)?;
        let added = self.binary("Mul", &i, &new)?;
        let c = self.binary("Add", &kept, &added)?;
        if let Some(peepholes) = &of.peepholes {
            o = self.with_peephole(&o, &c, &peepholes.sliced(0, size, size, 1)?)?;
        }
        let o = self.activated(&of.activations, 0, "Sigmoid", &o)?;
        let shown = self.activated(&of.activations, 2, "Tanh", &c)?;
        Ok((self.binary("Mul", &o, &shown)?, c))
    }

    /// A gate that sees the cells, each through a weight of its own.
    fn with_peephole(&mut self, gate: &Value, c: &Value, weights: &Value) -> Result<Value, String> {
        let seen = self.binary("Mul", c, weights)?;
        self.binary("Add", gate, &seen)
    }

    fn gru(
        &mut self,
        node: &Node<'_>,
        given: &Value,
        h: &Value,
        of: &Direction,
        size: i64,
    ) -> Result<Value, String> {
        let state = self.stepped(h, of)?;
        let gate = |value: &Value, number: i64| value.sliced(1, number * size, size, 1);
        let mut sums = Vec::new();
        for number in 0..2 {
            let sum = self.binary("Add", &gate(given, number)?, &gate(&state, number)?)?;
            sums.push(self.activated(&of.activations, 0, "Sigmoid", &sum)?);
        }
        let [z, r] = &sums[..] else {
            return Err("two gates are missing".to_owned());
        };
        let inner = if node.int("linear_before_reset", 0) != 0 {
            self.binary("Mul", r, &gate(&state, 2)?)?
        } else {
            let reset = self.binary("Mul", r, h)?;
            let columns = of.weight.sliced(1, 2 * size, size, 1)?;
            let product = self.product(&reset, &columns)?;
            self.binary("Add", &product, &of.bias.sliced(0, 2 * size, size, 1)?)?
        };
        let sum = self.binary("Add", &gate(given, 2)?, &inner)?;
        let new = self.activated(&of.activations, 1, "Tanh", &sum)?;
        // (1 − z) · new + z · h.
        let apart = self.binary("Sub", h, &new)?;
        let moved = self.binary("Mul", z, &apart)?;
        self.binary("Add", &new, &moved)
    }
}
