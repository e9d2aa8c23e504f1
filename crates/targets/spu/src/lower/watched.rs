//! Nodes under observation: what becomes of their integers is counted while they run.

use super::Lowering;
use crate::fqir::plan::Node;
use crate::fqir::tensor::Tensor;
use crate::kernels::NodeHealth;
use crate::kernels::{Action, Scales, Watched};
use chipless_model::Role;

impl<'p> Lowering<'p, '_> {
    /// Puts a node that computes under observation.
    pub(super) fn watched(&self, node: &'p Node, actions: Vec<Action>) -> Vec<Action> {
        let (Some(watching), Some(operation), Role::Scratch) =
            (&self.watching, &node.op_name, self.role)
        else {
            return actions;
        };
        if node.subgraph.is_some() || !node.subgraphs.is_empty() {
            return actions;
        }
        let counts = node
            .outputs
            .iter()
            .filter_map(|name| self.names.get(&**name));
        let each = if operation == "gmac_v2" {
            counts.map(Tensor::count).next().unwrap_or(0)
        } else {
            counts.map(Tensor::count).sum()
        };
        let health = NodeHealth {
            graph: self.path.clone(),
            index: self.index,
            operation: operation.clone(),
            name: node.name.clone(),
            each,
            ..NodeHealth::default()
        };
        let mut all = watching
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        vec![Action::Watched(Box::new(Watched {
            node: all.add(health),
            actions,
            scales: self.scales(node, operation),
        }))]
    }

    /// The scales of a node's operands and output, where all of them are stated and its exact result can be told.
    fn scales(&self, node: &Node, operation: &str) -> Option<Scales> {
        let ports: &[&str] = match operation {
            "vvadd" | "vvsub" | "vvmul" | "matmul" => &["x", "y"],
            "addmm" => &["x", "y", "bias"],
            "vneg" | "shift" | "sum" => &["x"],
            _ => return None,
        };
        let quanta = |name: &str| {
            let stated = self.declared?.get(name)?.quanta?;
            (stated.fract() == 0.0 && stated.abs() <= 512.0).then_some(stated as i32)
        };
        let operands = ports
            .iter()
            .map(|port| quanta(node.inputs.get(*port)?))
            .collect::<Option<Vec<i32>>>()?;
        let operand = |index: usize| operands.get(index).copied().unwrap_or(0);
        Some(Scales {
            x: operand(0),
            y: operand(1),
            bias: operand(2),
            out: quanta(node.outputs.first()?)?,
        })
    }
}
