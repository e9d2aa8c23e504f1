//! Graphs inside of graphs: branches and loops.

use super::Reader;
use super::array::{Array, types};
use super::node::Node;
use super::value::Value;
use crate::onnx::constant::Externals;
use crate::onnx::proto;
use std::fmt::Write;

/// Why a branch or a loop has no schedule, and what to do.
const DEPENDS: &str = "its condition depends on what goes into the network, so that nobody knows beforehand what is computed. Where one input decides it, such as a sample rate or a flag, fix that input with --constant NAME=NUMBER; otherwise schedule the part of the model before it (onnx.utils.extract_model cuts it out)";

impl<'g> Reader<'g> {
    /// The branch that a known condition takes.
    pub(super) fn branch(&mut self, node: &Node<'g>) -> Result<Vec<Value>, String> {
        if let Some(Value::Tensor(_)) = node.optional(0) {
            return Err(DEPENDS.to_owned());
        }
        let condition = node.constant(0)?.and_then(Array::single);
        let condition = condition.ok_or("its condition is missing")?;
        let name = if condition == 0.0 {
            "else_branch"
        } else {
            "then_branch"
        };
        self.inlined(node.graph(name)?)
    }

    /// The results of a graph inside of another.
    fn inlined(&mut self, graph: &'g proto::Graph) -> Result<Vec<Value>, String> {
        let outer = self.builder.node.clone();
        self.initialisers(graph, &mut Externals::default(), &|_| None)?;
        let before = self.refused.len();
        self.walk(graph);
        for line in &mut self.refused[before..] {
            let _ = write!(line, " (inside of `{outer}`)");
        }
        self.builder.node = outer;
        let output = |output: &'g proto::ValueInfo| {
            let name = output.name.as_deref().unwrap_or_default();
            let value = self.known.get(name).cloned().flatten();
            value.ok_or_else(|| format!("its output `{name}` cannot be made"))
        };
        graph.output.iter().map(output).collect()
    }

    /// A loop whose number of rounds is known.
    pub(super) fn unrolled(&mut self, node: &Node<'g>) -> Result<Vec<Value>, String> {
        let body = node.graph("body")?;
        let rounds = node.constant(0)?.and_then(Array::single);
        let mut goes_on = node
            .constant(1)?
            .and_then(Array::single)
            .is_none_or(|on| on != 0.0);
        let mut carried: Vec<Value> = (2..node.inputs.len())
            .map(|at| node.input(at).cloned())
            .collect::<Result<_, _>>()?;
        let count = carried.len();
        let scanned = body.output.len().saturating_sub(count + 1);
        let mut scans: Vec<Vec<Value>> = vec![Vec::new(); scanned];
        let mut round = 0;
        while goes_on && rounds.is_none_or(|rounds| f64::from(round) < rounds) {
            if round >= 4096 {
                return Err("more than 4096 rounds".to_owned());
            }
            let first = [
                Value::Array(Array::scalar(types::INT64, f64::from(round))),
                Value::Array(Array::scalar(types::BOOL, 1.0)),
            ];
            for (input, value) in body.input.iter().zip(first.into_iter().chain(carried)) {
                let name = input.name.as_deref().unwrap_or_default();
                if let Value::Tensor(tensor) = &value {
                    self.shared.insert(tensor.source);
                }
                self.known.insert(name, Some(value));
            }
            let names = body.node.iter().flat_map(|node| &node.output);
            names.for_each(|name| {
                self.known.remove(name.as_str());
            });
            let mut results = self.inlined(body)?.into_iter();
            goes_on = match results.next() {
                Some(Value::Array(on)) => on.single().is_some_and(|on| on != 0.0),
                _ => return Err(DEPENDS.to_owned()),
            };
            carried = results.by_ref().take(count).collect();
            for (all, value) in scans.iter_mut().zip(results) {
                all.push(value.unsqueezed(0)?);
            }
            round += 1;
        }
        for scan in scans {
            carried.push(self.joined(&scan, 0)?);
        }
        Ok(carried)
    }
}
