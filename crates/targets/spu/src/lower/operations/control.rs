//! Nodes that run a graph: calls, loops, strided subgraphs.

use super::numeric::stored;
use super::{At, times};
use crate::fqir::plan::{Error, Graph, Node, at_node};
use crate::fqir::rules;
use crate::fqir::tensor::{Element, Move, Tensor};
use crate::kernels::{Action, Conditional, Loop, Strided};
use crate::lower::{Lowering, declared_bits};
use chipless_model::BufferId;
use std::collections::HashSet;

/// A copy between whole tensors of equal shape.
fn whole(from: &Tensor, to: &Tensor) -> Action {
    Action::Move(Move {
        from: from.region(),
        to: to.region(),
    })
}

/// Gives a called graph its inputs, in the order of the node's.
pub(in crate::lower) fn call_inputs<'p>(
    lowering: &mut Lowering<'p, '_>,
    node: &'p Node,
    callee: &'p Graph,
) -> Result<Vec<Action>, Error> {
    let mut moves = Vec::new();
    for (declared, name) in callee
        .inputs
        .iter()
        .zip(node.inputs.values())
        .filter(|(declared, name)| declared.name != **name)
    {
        let Some(from) = lowering.lookup(name).cloned() else {
            return Err(at_node(
                &rules::NAME,
                node,
                format!("expected a tensor `{name}`, found none of that name"),
            ));
        };
        let to = lowering.define(
            node,
            &declared.name,
            &from.shape,
            stored(&from),
            from.element == Element::F64,
        )?;
        moves.push(whole(&from, &to));
    }
    Ok(moves)
}

/// Takes the outputs of a called graph.
pub(in crate::lower) fn call_outputs<'p>(
    lowering: &mut Lowering<'p, '_>,
    node: &'p Node,
    callee: &'p Graph,
) -> Result<Vec<Action>, Error> {
    let mut moves = Vec::new();
    for (declared, name) in callee
        .outputs
        .iter()
        .zip(&node.outputs)
        .filter(|(declared, name)| declared.name != **name)
    {
        let from = result(lowering, node, callee, &declared.name)?;
        let to = lowering.define(
            node,
            name,
            &from.shape,
            stored(&from),
            from.element == Element::F64,
        )?;
        moves.push(whole(&from, &to));
    }
    Ok(moves)
}

fn result(
    lowering: &Lowering<'_, '_>,
    node: &Node,
    callee: &Graph,
    name: &str,
) -> Result<Tensor, Error> {
    lowering.lookup(name).cloned().ok_or_else(|| {
        at_node(
            &rules::NAME,
            node,
            format!(
                "expected a node of `{}` that gives its output `{name}`, found none",
                callee.name
            ),
        )
    })
}

impl<'p> At<'p, '_, '_> {
    pub(super) fn call(&mut self) -> Result<Vec<Action>, Error> {
        let callee = self.lowering.callee(self.graph, self.node)?;
        let mut actions = call_inputs(self.lowering, self.node, callee)?;
        self.lowering.nested += 1;
        actions.extend(self.lowering.body(callee, "body")?);
        self.lowering.nested -= 1;
        actions.extend(call_outputs(self.lowering, self.node, callee)?);
        Ok(actions)
    }

    /// The input of a body: a tensor of its own, since the body may assign to it.
    fn body_input(
        &mut self,
        callee: &'p Graph,
        index: usize,
        like: &Tensor,
        shape: &[u64],
    ) -> Result<Tensor, Error> {
        let Some(declared) = callee.inputs.get(index) else {
            let message = format!(
                "expected at least {} inputs of the subgraph `{}`, found {}",
                index + 1,
                callee.name,
                callee.inputs.len()
            );
            return Err(at_node(&rules::SHAPE, self.node, message));
        };
        let precision = declared_bits(&declared.dtype);
        let (bits, width) = stored(like);
        let bits = (precision.unwrap_or(bits), width.max(precision.unwrap_or(0)));
        self.lowering
            .define(self.node, &declared.name, shape, bits, false)
    }

    fn body_output(&self, callee: &Graph, index: usize) -> Result<Tensor, Error> {
        let Some(declared) = callee.outputs.get(index) else {
            let message = format!(
                "expected at least {} outputs of the subgraph `{}`, found {}",
                index + 1,
                callee.name,
                callee.outputs.len()
            );
            return Err(at_node(&rules::SHAPE, self.node, message));
        };
        result(self.lowering, self.node, callee, &declared.name)
    }

    fn flags(&self, name: &str, count: u64) -> Result<Vec<bool>, Error> {
        let flags: Vec<bool> = if count == 0 {
            Vec::new()
        } else {
            self.integers(name)?.into_iter().map(|n| n != 0).collect()
        };
        if (flags.len() as u64) < count {
            return Err(self.wrong_constant(format!(
                "expected {count} entries of `{name}`, found {}",
                flags.len()
            )));
        }
        Ok(flags)
    }

    pub(super) fn repeat(&mut self) -> Result<Action, Error> {
        let callee = self.lowering.callee(self.graph, self.node)?;
        let iterations = self.count("n_iter", 1)?;
        let LoopPorts {
            recursed,
            sliced,
            scope,
            concatenated,
            finals,
        } = self.loop_ports()?;
        self.only_outputs((concatenated + finals) as usize)?;
        let mut looped = Loop {
            iterations,
            before: Vec::new(),
            slices: Vec::new(),
            body: Vec::new(),
            concatenated: Vec::new(),
            carried: Vec::new(),
            after: Vec::new(),
        };
        self.lowering.nested += 1;
        let outer = self.lowering.iterations;
        self.lowering.iterations = outer.saturating_mul(iterations);
        let mut inputs = Vec::new();
        let (reversed, blocks) = (
            self.flags("reverse_sliced", sliced)?,
            if sliced > 0 {
                self.integers("block_size_sliced")?
            } else {
                Vec::new()
            },
        );
        for index in 0..recursed {
            let from = self.input(&format!("x_recurse_{index}"))?;
            let to = self.body_input(callee, inputs.len(), &from, &from.shape)?;
            looped.before.push(whole(&from, &to));
            inputs.push(to);
        }
        for index in 0..sliced {
            let from = self.input(&format!("x_sliced_{index}"))?;
            let block = self.block(&from, &blocks, index as usize, iterations)?;
            let mut shape = from.shape.clone();
            shape[0] = block;
            let to = self.body_input(callee, inputs.len(), &from, &shape)?;
            let step = block * from.stride(0);
            looped.slices.push((
                Move {
                    from: from.slice(0, 0, block),
                    to: to.region(),
                },
                step,
                reversed[index as usize],
            ));
            inputs.push(to);
        }
        for index in 0..scope {
            let from = self.input(&format!("x_scope_{index}"))?;
            let to = self.body_input(callee, inputs.len(), &from, &from.shape)?;
            looped.before.push(whole(&from, &to));
            inputs.push(to);
        }
        looped.body = self.lowering.body(callee, "body")?;
        self.carry(callee, &inputs[..recursed as usize], &mut looped)?;
        self.lowering.nested -= 1;
        self.lowering.iterations = outer;
        let reversed = self.flags("reverse_concat", concatenated)?;
        for (index, reversed) in (0..concatenated as usize).zip(reversed) {
            let part = self.body_output(callee, recursed as usize + index)?;
            let Some(first) = part.shape.first().copied() else {
                return Err(self.wrong_shape(
                    "expected results with a dimension to concatenate, found single numbers",
                ));
            };
            let mut shape = part.shape.clone();
            shape[0] = first.saturating_mul(iterations);
            let out = self.output(index, &shape, stored(&part))?;
            looped.concatenated.push((
                Move {
                    from: part.region(),
                    to: out.slice(0, 0, first),
                },
                part.count(),
                reversed,
            ));
        }
        for index in 0..finals as usize {
            let last = self.body_output(callee, (recursed + concatenated) as usize + index)?;
            let out = self.output(concatenated as usize + index, &last.shape, stored(&last))?;
            looped.after.push(whole(&last, &out));
        }
        Ok(Action::Loop(looped))
    }

    /// Elements along the first dimension that each iteration takes of a sliced input.
    fn block(
        &self,
        from: &Tensor,
        blocks: &[i64],
        index: usize,
        iterations: u64,
    ) -> Result<u64, Error> {
        let block = blocks.get(index).and_then(|b| u64::try_from(*b).ok());
        let Some(length) = from.shape.first().copied() else {
            return Err(self.wrong_shape(format!(
                "expected {iterations} blocks of a vector, found a tensor without dimensions"
            )));
        };
        block
            .filter(|b| b.checked_mul(iterations).is_some_and(|all| all <= length))
            .ok_or_else(|| {
                let message = format!(
                    "expected {iterations} blocks within {}, found a block size of {blocks:?}",
                    times(&from.shape)
                );
                self.wrong_shape(message)
            })
    }

    /// How many ports of each kind a loop has, which must be among those of its node.
    fn loop_ports(&self) -> Result<LoopPorts, Error> {
        let [recursed, sliced, scope, concatenated, finals] =
            ["n_recurse", "n_sliced", "n_scope", "n_concat", "n_final"]
                .map(|name| self.count(name, 0));
        let (recursed, sliced, scope, concatenated, finals) =
            (recursed?, sliced?, scope?, concatenated?, finals?);
        let ports = self.node.inputs.len() as u64;
        if recursed.saturating_add(sliced).saturating_add(scope) > ports
            || concatenated.saturating_add(finals) > self.node.outputs.len() as u64
        {
            return Err(self.wrong_constant(format!(
                "expected a loop of {ports} inputs and {} outputs, found constants for {recursed} recursed, {sliced} sliced, {scope} scope, {concatenated} concatenated and {finals} final ones",
                self.node.outputs.len()
            )));
        }
        Ok(LoopPorts {
            recursed,
            sliced,
            scope,
            concatenated,
            finals,
        })
    }

    /// Results that become inputs of the next iteration, all at once.
    fn carry(
        &mut self,
        callee: &'p Graph,
        inputs: &[Tensor],
        looped: &mut Loop,
    ) -> Result<(), Error> {
        let mut results = Vec::new();
        for (index, input) in inputs.iter().enumerate() {
            let result = self.body_output(callee, index)?;
            self.same_shape("a recursed result", input, &result)?;
            // The input must hold what comes back.
            if let Some(declared) = callee.inputs.get(index) {
                self.lowering.define(
                    self.node,
                    &declared.name,
                    &input.shape,
                    stored(&result),
                    false,
                )?;
            }
            results.push(result);
        }
        let places: HashSet<BufferId> = inputs.iter().map(|t| t.buffer).collect();
        if results.iter().any(|r| places.contains(&r.buffer)) {
            for result in &mut results {
                let aside = self.lowering.temporary(self.node, result)?;
                looped.carried.push(whole(result, &aside));
                *result = aside;
            }
        }
        looped
            .carried
            .extend(results.iter().zip(inputs).map(|(from, to)| whole(from, to)));
        Ok(())
    }

    /// Inputs and outputs of a node that calls bodies, as its constants say.
    fn body_ports(&self, name: &str) -> Result<(usize, usize), Error> {
        let (inputs, outputs) = (self.count("num_inputs", 0)?, self.count("num_outputs", 0)?);
        if inputs > self.node.inputs.len() as u64 || outputs != self.node.outputs.len() as u64 {
            let message = format!(
                "expected {} outputs of {name} and its inputs, found constants for {outputs} and {inputs}",
                self.node.outputs.len()
            );
            return Err(self.wrong_constant(message));
        }
        Ok((inputs as usize, outputs as usize))
    }

    fn body_outputs(&self, callee: &'p Graph, count: usize) -> Result<Vec<Tensor>, Error> {
        (0..count)
            .map(|index| self.body_output(callee, index))
            .collect()
    }

    fn same_shape(&self, what: &str, expected: &Tensor, found: &Tensor) -> Result<(), Error> {
        if found.shape == expected.shape {
            return Ok(());
        }
        Err(self.wrong_shape(format!(
            "expected {what} of {}, found {}",
            times(&expected.shape),
            times(&found.shape)
        )))
    }

    pub(super) fn strided(&mut self) -> Result<Action, Error> {
        let callee = self.lowering.callee(self.graph, self.node)?;
        let counter = self.input("counter")?;
        if counter.count() != 1 {
            return Err(self.wrong_shape(format!(
                "expected a counter of one element, found {}",
                times(&counter.shape)
            )));
        }
        let (period, phase) = (self.count("n", 1)?, self.integer("k")?);
        let (inputs, outputs) = self.body_ports("strided_subgraph")?;
        let mut body = Vec::new();
        let before = self.lowering.names();
        self.lowering.nested += 1;
        for index in 0..inputs {
            let from = self.input(&format!("input_{index}"))?;
            let to = self.body_input(callee, index, &from, &from.shape)?;
            body.push(whole(&from, &to));
        }
        body.extend(self.lowering.body(callee, "body")?);
        let results = self.body_outputs(callee, outputs)?;
        self.lowering.nested -= 1;
        // What the body defines does not exist in steps in which it does not run.
        self.lowering.set_names(before);
        let mut otherwise = Vec::new();
        for (index, result) in results.iter().enumerate() {
            let default = self.input(&format!("default_output_{index}"))?;
            self.same_shape("a default", result, &default)?;
            let bits = super::numeric::larger(stored(result), stored(&default));
            let out = self.output(index, &result.shape, bits)?;
            body.push(whole(result, &out));
            otherwise.push(whole(&default, &out));
        }
        let name = &self.node.inputs["counter"];
        let bits = crate::lower::precision_of(period as i64);
        let kept = self
            .lowering
            .define(self.node, name, &counter.shape, (bits, bits), false)?;
        if kept.buffer != counter.buffer {
            self.loaded.push((counter, kept.clone()));
        }
        Ok(Action::Strided(Strided {
            counter: kept,
            period: period as i64,
            phase,
            body,
            otherwise,
        }))
    }

    /// `conditional`: both bodies have the same inputs by position, and the outputs of the one that runs are the node's.
    pub(super) fn choose(&mut self) -> Result<Action, Error> {
        let condition = self.input("condition")?;
        if condition.count() == 0 {
            return Err(
                self.wrong_shape("expected a condition of at least one element, found none")
            );
        }
        let names = &self.node.subgraphs;
        let (Some(holds), Some(otherwise)) = (names.get("true"), names.get("false")) else {
            return self.unsupported("conditional cannot be executed without its branches: the plan that the vendor's tools write does not hold them, the .pt file of the graph does");
        };
        let (inputs, outputs) = self.body_ports("conditional")?;
        let mut ways = Vec::new();
        let before = self.lowering.names();
        self.lowering.nested += 1;
        for (key, name) in [("true", holds), ("false", otherwise)] {
            let callee = self
                .lowering
                .callee_named(self.graph, self.node, Some(name))?;
            let mut body = Vec::new();
            let mut taken = Vec::new();
            for index in 0..inputs {
                let from = self.input(&format!("input_{index}"))?;
                let same = callee.inputs.get(index).map(|t| &t.name)
                    == self.node.inputs.get(&format!("input_{index}"));
                if !same {
                    let to = self.body_input(callee, index, &from, &from.shape)?;
                    taken.push(whole(&from, &to));
                }
            }
            body.extend(taken);
            body.extend(self.lowering.body(callee, key)?);
            let results = self.body_outputs(callee, outputs)?;
            // What a body defines does not exist in steps in which it does not run.
            self.lowering.set_names(before.clone());
            ways.push((body, results));
        }
        self.lowering.nested -= 1;
        let (Some((mut no, no_results)), Some((mut yes, yes_results))) = (ways.pop(), ways.pop())
        else {
            return self.unsupported("conditional without two branches is not supported");
        };
        for (index, (a, b)) in yes_results.iter().zip(&no_results).enumerate() {
            if a.shape != b.shape {
                let message = format!(
                    "expected equal shapes from both branches, found {} and {}",
                    times(&a.shape),
                    times(&b.shape)
                );
                return Err(self.wrong_shape(message));
            }
            let bits = super::numeric::larger(stored(a), stored(b));
            let out = self.output(index, &a.shape, bits)?;
            yes.push(whole(a, &out));
            no.push(whole(b, &out));
        }
        Ok(Action::Conditional(Conditional {
            condition,
            holds: yes,
            otherwise: no,
        }))
    }
}

/// Numbers of the inputs and outputs of a loop, in their order.
struct LoopPorts {
    /// Inputs that the body replaces in each iteration.
    recursed: u64,
    /// Inputs of which each iteration takes a block.
    sliced: u64,
    /// Inputs that all iterations read.
    scope: u64,
    /// Outputs that the blocks of all iterations form.
    concatenated: u64,
    /// Outputs of the last iteration.
    finals: u64,
}
