//! Figures of elements, switches and ports on a Xilinx VU9P as functions of their shape.
//!
//! The functions are a fit of our own to values that the scheduler's authors published: two layers with `max(0, ·)`. Their coefficients, how
//! they were fitted and how far they are off stand in `models.csv`.

use std::sync::OnceLock;

/// What a function is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Element,
    Switch,
    InputPort,
    OutputPort,
    /// Ports without a link to a memory.
    InputPortAlone,
    OutputPortAlone,
}

impl Kind {
    const ALL: [Kind; 6] = [
        Kind::Element,
        Kind::Switch,
        Kind::InputPort,
        Kind::OutputPort,
        Kind::InputPortAlone,
        Kind::OutputPortAlone,
    ];

    const fn name(self) -> &'static str {
        match self {
            Kind::Element => "element",
            Kind::Switch => "switch",
            Kind::InputPort => "input_port",
            Kind::OutputPort => "output_port",
            Kind::InputPortAlone => "input_port_alone",
            Kind::OutputPortAlone => "output_port_alone",
        }
    }
}

/// For each output its bias and the weights of the inputs.
type Layer = Vec<(f64, Vec<f64>)>;

const TABLE: &str = include_str!("models.csv");

/// The three layers of each function.
fn models() -> &'static [[Layer; 3]; 6] {
    static MODELS: OnceLock<[[Layer; 3]; 6]> = OnceLock::new();
    MODELS.get_or_init(|| {
        let mut models: [[Layer; 3]; 6] = Default::default();
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let mut cells = line.split(',');
            let name = cells.next().unwrap_or_default();
            let layer: usize = cells.next().and_then(|cell| cell.parse().ok()).unwrap_or(3);
            let numbers: Vec<f64> = cells.filter_map(|cell| cell.parse().ok()).collect();
            let kind = Kind::ALL.iter().position(|kind| kind.name() == name);
            if let (Some(kind), [bias, weights @ ..]) = (kind, numbers.as_slice())
                && let Some(layer) = models[kind].get_mut(layer)
            {
                layer.push((*bias, weights.to_vec()));
            }
        }
        models
    })
}

/// LUTs, of these for logic, of these as memory, and flip-flops.
pub(crate) fn figures(kind: Kind, shape: &[f64]) -> [f64; 4] {
    let mut values = shape.to_vec();
    for layer in &models()[kind as usize] {
        let next = layer.iter().map(|(bias, weights)| {
            let sum: f64 = weights
                .iter()
                .zip(&values)
                .map(|(weight, value)| weight * value)
                .sum();
            (bias + sum).max(0.0)
        });
        values = next.collect();
    }
    std::array::from_fn(|index| values.get(index).copied().unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_complete() {
        for (kind, inputs) in Kind::ALL.into_iter().zip([8, 6, 8, 7, 8, 7]) {
            let [first, second, last] = &models()[kind as usize];
            assert!(
                first.iter().all(|(_, weights)| weights.len() == inputs),
                "{kind:?}"
            );
            assert!(
                second
                    .iter()
                    .all(|(_, weights)| weights.len() == first.len())
            );
            assert!(
                last.len() == 4
                    && last
                        .iter()
                        .all(|(_, weights)| weights.len() == second.len())
            );
        }
    }
}
