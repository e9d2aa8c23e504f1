//! Recurrent layers, after the matrix product of their input, which the DPU has done.

use super::activation::sigmoid;
use super::tensor::{Call, Values};
use chipless_model::Fault;

/// Long short-term memory over a sequence. With H places of state and S steps, the inputs are W·x of S steps with 4H
/// places (gates f, i, c, o), h, c, R in the memory order `[in][out][gate]` and the bias in `[place][gate]`, or by gate
/// `[gate][out][in]` and `[gate][place]`, the last index innermost; the outputs are Y of S steps with H places and the last h and c.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LstmSequence {
    /// The length of the sequence comes after c: Y is zero beyond it.
    pub lengths: bool,
    /// R and bias lie as the DPU reads them, the gate outermost.
    pub by_gate: bool,
    /// From the last step to the first; Y stays in the order of the input.
    pub reverse: bool,
}

impl LstmSequence {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Vec<Values>, Fault> {
        let (products, mut hidden, mut cell) = (
            call.floats(0)?,
            call.floats(1)?.to_vec(),
            call.floats(2)?.to_vec(),
        );
        let weights = if self.lengths { 4 } else { 3 };
        let (recurrence, bias) = (call.floats(weights)?, call.floats(weights + 1)?);
        let size = hidden.len();
        call.expect_elements("cell state", &call.input(2)?.shape, size)?;
        call.expect_elements(
            "recurrence",
            &call.input(weights)?.shape,
            (4 * size).saturating_mul(size),
        )?;
        call.expect_elements("bias", &call.input(weights + 1)?.shape, 4 * size)?;
        let steps = products.len() / (4 * size);
        call.expect_elements("input products", &call.input(0)?.shape, 4 * size * steps)?;
        call.expect_elements("output sequence", call.output(0)?, size * steps)?;
        let mut sequence = vec![0.0; size * steps];
        let length = self.length(call, steps)?;
        for number in 0..length {
            let step = if self.reverse {
                length - 1 - number
            } else {
                number
            };
            let products = &products[step * 4 * size..][..4 * size];
            let gates = self.gates(&hidden, recurrence, bias);
            for place in 0..size {
                let [forget, input, candidate, output] = [0, 1, 2, 3].map(|gate| {
                    let at = if self.by_gate {
                        gate * size + place
                    } else {
                        4 * place + gate
                    };
                    gates[at] + products[gate * size + place]
                });
                cell[place] = sigmoid(forget) * cell[place] + sigmoid(input) * candidate.tanh();
                hidden[place] = sigmoid(output) * cell[place].tanh();
            }
            sequence[step * size..][..size].copy_from_slice(&hidden);
        }
        Ok(vec![
            Values::Float(sequence),
            Values::Float(hidden),
            Values::Float(cell),
        ])
    }

    /// R·h and the bias, in the order of the bias.
    fn gates(&self, hidden: &[f32], recurrence: &[f32], bias: &[f32]) -> Vec<f32> {
        if self.by_gate {
            let rows = recurrence.chunks_exact(hidden.len()).zip(bias);
            return rows
                .map(|(row, bias)| {
                    let product: f32 = row.iter().zip(hidden).map(|(w, h)| w * h).sum();
                    bias + product
                })
                .collect();
        }
        let mut gates = bias.to_vec();
        for (input, weights) in hidden.iter().zip(recurrence.chunks_exact(bias.len())) {
            gates
                .iter_mut()
                .zip(weights)
                .for_each(|(gate, weight)| *gate += input * weight);
        }
        gates
    }

    fn length(&self, call: Call<'_>, steps: usize) -> Result<usize, Fault> {
        if !self.lengths {
            return Ok(steps);
        }
        call.expect_elements("lengths", &call.input(3)?.shape, 1)?;
        let length = call.integers(3)?.first().copied().unwrap_or(0);
        let fits = usize::try_from(length)
            .ok()
            .filter(|length| *length <= steps);
        fits.ok_or_else(|| call.fault(format_args!("length {length} of {steps} steps")))
    }
}

/// A gated recurrent unit over a sequence. With I places of input, H of state and S steps the inputs are x `[S][I]`, h `[H]`,
/// W `[3H][I]`, R `[3H][H]` and the bias, gates z, r, n, the last index innermost; the outputs are Y `[S][H]` and the last h.
/// More dims outside are batches, each with its own x and h.
#[derive(Clone, Debug, PartialEq)]
pub struct GruSequence {
    /// H.
    pub hidden: u32,
    /// The first input is W·x, `[S][3H]`, and there is no W.
    pub multiplied: bool,
    /// From the last step to the first; Y stays in the order of the input.
    pub reverse: bool,
    /// The reset gate comes after the recurrent product of n, which has a bias of its own.
    pub reset_after: bool,
    /// Sums before the functions stay within ± this; 0 is no bound.
    pub clip: f32,
}

impl GruSequence {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Vec<Values>, Fault> {
        let (x, state) = (call.floats(0)?, call.floats(1)?);
        let w = if self.multiplied {
            None
        } else {
            Some(call.floats(2)?)
        };
        // The tensor of R; the bias follows.
        let recurrence = if self.multiplied { 2 } else { 3 };
        let (r, bias) = (call.floats(recurrence)?, call.floats(recurrence + 1)?);
        let size = self.hidden as usize;
        let gates = 3 * size;
        let inputs = w.map_or(Some(gates), |w| {
            w.len().is_multiple_of(gates).then_some(w.len() / gates)
        });
        let Some(inputs) = inputs.filter(|_| state.len().is_multiple_of(size)) else {
            return Err(call.fault(format_args!(
                "weights {} and state {} for a hidden size of {size}",
                call.input(2)?.shape,
                call.input(1)?.shape
            )));
        };
        let batches = state.len() / size;
        let steps = x.len() / (inputs * batches).max(1);
        call.expect_elements("input", &call.input(0)?.shape, batches * steps * inputs)?;
        call.expect_elements("recurrence", &call.input(recurrence)?.shape, gates * size)?;
        let biases = gates + if self.reset_after { size } else { 0 };
        call.expect_elements("bias", &call.input(recurrence + 1)?.shape, biases)?;
        call.expect_elements("output sequence", call.output(0)?, batches * steps * size)?;
        call.expect_elements("last state", call.output(1)?, batches * size)?;
        let clip = |sum: f32| {
            if self.clip > 0.0 {
                sum.clamp(-self.clip, self.clip)
            } else {
                sum
            }
        };
        let product = |weights: &[f32], values: &[f32]| -> f32 {
            weights.iter().zip(values).map(|(a, b)| a * b).sum()
        };
        let (mut sequence, mut last) = (vec![0.0; batches * steps * size], state.to_vec());
        for batch in 0..batches {
            let hidden = &mut last[batch * size..][..size];
            for number in 0..steps {
                let step = if self.reverse {
                    steps - 1 - number
                } else {
                    number
                };
                let x = &x[(batch * steps + step) * inputs..][..inputs];
                let input = |gate: usize, place: usize| {
                    let row = gate * size + place;
                    bias[row]
                        + w.map_or_else(|| x[row], |w| product(&w[row * inputs..][..inputs], x))
                };
                let recurrent = |gate: usize, place: usize, state: &[f32]| {
                    product(&r[(gate * size + place) * size..][..size], state)
                };
                let gate = |gate: usize| -> Vec<f32> {
                    (0..size)
                        .map(|place| {
                            sigmoid(clip(input(gate, place) + recurrent(gate, place, hidden)))
                        })
                        .collect()
                };
                let (update, reset) = (gate(0), gate(1));
                let before: Vec<f32> = hidden.iter().zip(&reset).map(|(h, r)| h * r).collect();
                let next: Vec<f32> = (0..size)
                    .map(|place| {
                        let sum = if self.reset_after {
                            let product = recurrent(2, place, hidden) + bias[gates + place];
                            input(2, place) + reset[place] * product
                        } else {
                            input(2, place) + recurrent(2, place, &before)
                        };
                        let (n, z) = (clip(sum).tanh(), update[place]);
                        (1.0 - z) * n + z * hidden[place]
                    })
                    .collect();
                hidden.copy_from_slice(&next);
                sequence[(batch * steps + step) * size..][..size].copy_from_slice(hidden);
            }
        }
        Ok(vec![Values::Float(sequence), Values::Float(last)])
    }
}

/// One step of long short-term memory: gates `[4H]` (f, i, c, o, the sums of both products and the bias) and c `[H]` to h and c,
/// row by row.
pub(super) fn lstm_gates(call: Call<'_>) -> Result<Vec<Values>, Fault> {
    let (gates, cells) = (call.floats(0)?, call.floats(1)?);
    let size = call.around(&call.input(1)?.shape, 0)?.size;
    call.expect_elements("gates", &call.input(0)?.shape, 4 * cells.len())?;
    let (mut hidden, mut next) = (
        Vec::with_capacity(cells.len()),
        Vec::with_capacity(cells.len()),
    );
    for (gates, cells) in gates.chunks_exact(4 * size).zip(cells.chunks_exact(size)) {
        for (place, cell) in cells.iter().enumerate() {
            let [forget, input, candidate, output] =
                [0, 1, 2, 3].map(|gate| gates[gate * size + place]);
            let cell = sigmoid(forget) * cell + sigmoid(input) * candidate.tanh();
            hidden.push(sigmoid(output) * cell.tanh());
            next.push(cell);
        }
    }
    Ok(vec![Values::Float(hidden), Values::Float(next)])
}

/// One step of a gated recurrent unit whose reset gate comes after the recurrent product (ONNX `linear_before_reset`).
/// W·x [3H], h [H], R·h [3H] with gates z, r, n; bias [4H] for z, r, W·x of n, R·h of n.
pub(super) fn gru_gates(call: Call<'_>) -> Result<Values, Fault> {
    let (products, state, recurrent, bias) = (
        call.floats(0)?,
        call.floats(1)?,
        call.floats(2)?,
        call.floats(3)?,
    );
    let size = bias.len() / 4;
    call.expect_elements("bias", &call.input(3)?.shape, 4 * size)?;
    if size == 0 || !state.len().is_multiple_of(size) {
        return Err(call.fault(format_args!(
            "state {} for a bias of 4 x {size}",
            call.input(1)?.shape
        )));
    }
    call.expect_elements("input products", &call.input(0)?.shape, 3 * state.len())?;
    call.expect_elements("recurrent products", &call.input(2)?.shape, 3 * state.len())?;
    let mut results = Vec::with_capacity(state.len());
    for (row, state) in state.chunks_exact(size).enumerate() {
        let (w, r) = (
            &products[row * 3 * size..][..3 * size],
            &recurrent[row * 3 * size..][..3 * size],
        );
        for (place, h) in state.iter().enumerate() {
            let [update, reset, new] = [place, size + place, 2 * size + place];
            let z = sigmoid(w[update] + r[update] + bias[update]);
            let gate = sigmoid(w[reset] + r[reset] + bias[reset]);
            let n = (w[new] + bias[new] + gate * (r[new] + bias[3 * size + place])).tanh();
            results.push((1.0 - z) * n + z * h);
        }
    }
    Ok(Values::Float(results))
}
