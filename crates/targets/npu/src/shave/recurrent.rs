//! Recurrent layers, after the matrix product of their input, which the DPU has done.

use super::elementwise::sigmoid;
use super::tensor::{Call, Values};
use chipless_model::Fault;

/// Long short-term memory over a sequence. With H places of state and S steps, the inputs are W·x of S steps with 4H
/// places (gates f, i, c, o), h, c, R in the memory order `[in][out][gate]` and the bias in `[place][gate]`, the last index
/// innermost; the outputs are Y of S steps with H places and the last h and c.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LstmSequence {
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
        let (recurrence, bias) = (call.floats(3)?, call.floats(4)?);
        let size = hidden.len();
        call.expect_elements("cell state", &call.input(2)?.shape, size)?;
        call.expect_elements(
            "recurrence",
            &call.input(3)?.shape,
            (4 * size).saturating_mul(size),
        )?;
        call.expect_elements("bias", &call.input(4)?.shape, 4 * size)?;
        let steps = products.len() / (4 * size);
        call.expect_elements("input products", &call.input(0)?.shape, 4 * size * steps)?;
        call.expect_elements("output sequence", call.output(0)?, size * steps)?;
        let mut sequence = vec![0.0; size * steps];
        for number in 0..steps {
            let step = if self.reverse {
                steps - 1 - number
            } else {
                number
            };
            let products = &products[step * 4 * size..][..4 * size];
            let mut gates = bias.to_vec();
            for (input, weights) in hidden.iter().zip(recurrence.chunks_exact(4 * size)) {
                gates
                    .iter_mut()
                    .zip(weights)
                    .for_each(|(gate, weight)| *gate += input * weight);
            }
            for (place, gates) in gates.chunks_exact(4).enumerate() {
                let [forget, input, candidate, output] =
                    [0, 1, 2, 3].map(|gate| gates[gate] + products[gate * size + place]);
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
